"""Recurrent networks that are told to start at zero, which is where they start.

`tf.nn.dynamic_rnn(cell, x, initial_state=cell.zero_state(batch, tf.float32))` is `tf.nn.dynamic_rnn(cell, x,
dtype=tf.float32)`: the size of the batch, which a Keras model does not know, is that of the input in any case.
"""

from __future__ import annotations

import libcst as cst

from migrator.names.bindings import read_bindings, value_given
from migrator.program.calls import calls_in, functions_in, is_none, nodes_in, with_arguments
from migrator.program.parsed import ParsedFile, name_nodes
from migrator.program.reductions import Edits, applied
from migrator.walking import of_kinds

_NETWORKS = (
    *("tf.nn.dynamic_rnn", "tf.nn.bidirectional_dynamic_rnn", "tf.nn.static_rnn", "tf.nn.static_bidirectional_rnn"),
)
_STATES = frozenset(("initial_state", "initial_state_fw", "initial_state_bw"))
_ZERO = "zero_state"


def with_networks_that_start_at_zero(file: ParsedFile) -> ParsedFile:
    """The file with such calls, and without the lines that only made their states."""
    if _ZERO not in file.bare:
        return file
    edits = Edits()
    for function in functions_in(file.module):
        for call in calls_in(function.body):
            if file.imports.tensorflow(call.func) in _NETWORKS and call not in edits.expressions:
                _read(file, function, call, edits)
    return applied(file, edits) if edits else file


def _read(file: ParsedFile, function: cst.FunctionDef, call: cst.Call, edits: Edits) -> None:
    """Adds the edits of a call all of whose states are zero."""
    states = [arg for arg in call.args if arg.keyword is not None and arg.keyword.value in _STATES]
    told = [arg for arg in call.args if arg.keyword is not None and arg.keyword.value == "dtype"]
    zeros = [_zero(function, arg.value) for arg in states]
    if not states or None in zeros or any(arg.star for arg in call.args):
        return
    types = {file.code(dtype) for dtype, _ in (zero for zero in zeros if zero is not None)}
    lines = [line for _, line in (zero for zero in zeros if zero is not None) if line is not None]
    if len(types) != 1 or (told and not is_none(told[0].value) and file.code(told[0].value) not in types):
        return
    kept = [arg for arg in call.args if arg not in states and arg not in told]
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    dtype = cst.Arg(cst.parse_expression(types.pop()), keyword=cst.Name("dtype"), equal=equal)
    edits.expressions[call] = with_arguments(call, [*kept, dtype])
    edits.lines.update({line: [] for line in lines})


def _zero(
    function: cst.FunctionDef, node: cst.BaseExpression
) -> tuple[cst.BaseExpression, cst.SimpleStatementLine | None] | None:
    """The type in `cell.zero_state(batch, type)`, and the line that gives it the name that stands in its place.

    None where it is something else, or the name has other values or readers.
    """
    line: cst.SimpleStatementLine | None = None
    if isinstance(node, cst.Name):
        bound = [one for one in read_bindings(function) if one.name == node.value]
        if len(bound) != 1 or bound[0].target is None:
            return None
        target, name = bound[0].target, node.value
        if sum(one.value == name for one in name_nodes(function)) != 2:
            return None
        value = value_given(function.body, target)
        lines = of_kinds(function.body, cst.SimpleStatementLine)
        line = next(
            (one for one in lines if len(one.body) == 1 and any(each is target for each in nodes_in(one))), None
        )
        if line is None or value is None or not isinstance(line.body[0], cst.Assign) or len(line.body[0].targets) != 1:
            return None
        node = value
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or node.func.attr.value != _ZERO:
        return None
    given = {arg.keyword.value if arg.keyword is not None else index: arg.value for index, arg in enumerate(node.args)}
    dtype = given.get("dtype", given.get(1))
    return (dtype, line) if dtype is not None and len(node.args) == 2 else None
