"""The variables that an Estimator is asked for, by the names of TensorFlow 1."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from migrator.names.bindings import read_bindings
from migrator.program.calls import calls_in, string
from migrator.program.parsed import Blocked, ParsedFile, name_nodes
from migrator.program.telling import tells
from migrator.walking import of_kinds

#: Methods that read variables of the newest checkpoint, with their parameters.
VARIABLES: Mapping[str, tuple[str, ...]] = {"get_variable_value": ("name",), "get_variable_names": ()}
_GLOBAL_STEP = "global_step"
_FILES = "model.ckpt"
_NEWEST = "tf.train.latest_checkpoint"
_ALL = ("all_model_checkpoint_paths", "all_model_checkpoint_timestamps")  # a native program tells of the newest alone
_READERS = ("tf.train.load_checkpoint", "tf.train.load_variable", "tf.train.list_variables")


def asks_global_step(file: ParsedFile, node: cst.BaseExpression | None) -> bool:
    """Whether the name of a variable is that of the global step."""
    return string(node) == _GLOBAL_STEP or (
        node is not None and file.imports.tensorflow(node) == "tf.GraphKeys.GLOBAL_STEP"
    )


def asks_for_weights(file: ParsedFile, method: str, node: cst.BaseExpression | None) -> bool:
    """Whether a method of an Estimator asks for a variable that a column of a linear model has, or for its bias.

    These end in the same words whatever the column is called: "linear/linear_model/%s/weights" and
    "linear/linear_model/bias_weights".
    """
    if method != "get_variable_value" or node is None:
        return False
    texts = of_kinds(node, cst.SimpleString, cst.FormattedStringText)
    last = max(texts, key=file.position, default=None)
    if last is None:
        return False
    text = last.value if isinstance(last, cst.FormattedStringText) else string(last)
    return isinstance(text, str) and text.rpartition("/")[2] in ("weights", "bias_weights")


def checkpoint_reads(file: ParsedFile) -> list[Blocked]:
    """What looks for checkpoints, or for variables in them, by names that a native program does not write (TFM853)."""
    words = (_FILES, *_ALL, *(name.rpartition(".")[2] for name in (*_READERS, _NEWEST)))
    if not any(word in file.text for word in words):
        return []
    message = "the names in this checkpoint are TensorFlow 1's: use the bridge, which keeps them"
    calls = [call for call in calls_in(file.module) if file.imports.tensorflow(call.func) in _READERS]
    strings = [node for node in of_kinds(file.module, cst.SimpleString) if _FILES in node.value]
    paths = [one for one in strings if len(str(string(one)).split()) == 1]  # no help text, no docstring
    newest = [call for call in calls_in(file.module) if file.imports.tensorflow(call.func) == _NEWEST]
    apart = [call for call in newest if any(_is_taken_apart(file, one) for one in _mentions(file, call))]
    every = [node for node in of_kinds(file.module, cst.Attribute) if node.attr.value in _ALL]
    told = "a native program keeps the path of its newest checkpoint only: use the bridge"
    return [
        *(Blocked("TFM853", node, message) for node in (*calls, *paths, *apart)),
        *(Blocked("TFM853", node, told) for node in every),
    ]


def _mentions(file: ParsedFile, value: cst.BaseExpression) -> list[cst.CSTNode]:
    """Where a value is read: the mentions of the names that it is given, second names too, or the value itself."""
    named = [one for one in read_bindings(file.module) if one.target is one.place]
    found: list[cst.CSTNode] = [value]
    for node in found:  # which grows
        names = {one.name for one in named if one.value is node}
        places = {one.place for one in named if one.name in names}
        found += [one for one in name_nodes(file.module) if one.value in names and one not in {*places, *found}]
    return [node for node in found if not any(one.value is node for one in named)]


def _is_taken_apart(file: ParsedFile, node: cst.CSTNode) -> bool:
    """Whether more is done with the path of a checkpoint than to test it, tell it, or give it as `checkpoint_path`."""
    around = file.parents.get(node)
    if isinstance(around, cst.Arg):
        call = file.parents.get(around)
        given = around.keyword is not None and around.keyword.value in ("checkpoint_path", "warm_start_from")
        return not given and not (isinstance(call, cst.Call) and tells(file, call.func))
    if isinstance(around, (cst.ComparisonTarget, cst.Comparison, cst.UnaryOperation, cst.BooleanOperation)):
        return False
    if isinstance(around, (cst.If, cst.While, cst.IfExp)):
        return around.test is not node
    return not isinstance(around, (cst.AssignTarget, cst.Expr))
