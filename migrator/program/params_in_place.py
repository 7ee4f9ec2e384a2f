"""What params hold of TensorFlow itself, said where it is read: `params={"optimizer": tf.train.AdamOptimizer}`.

`params["optimizer"](0.1)` of a model_fn that one Estimator has is `tf.train.AdamOptimizer(0.1)`: rules know what that
is in Keras. Numbers and texts stay in the params.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import libcst as cst

from migrator.names.bindings import bound_in, dotted, read_bindings
from migrator.program.calls import bind, calls_in, parameters_of, string, with_arguments, written_entries
from migrator.program.parsed import Blocked, ParsedFile, name_nodes
from migrator.program.reductions import Edits, applied
from migrator.walking import of_kinds

_ESTIMATOR = "tf.estimator.Estimator"
_TAKES = ("model_fn", "model_dir", "config", "params", "warm_start_from")
_OF_RULES = ("tf.train.", "tf.losses.", "tf.layers.", "tf.metrics.", "tf.contrib.", "tf.nn.rnn_cell.")
_PARAMS = "params"  # an Estimator gives them by this name


def with_params_in_place(file: ParsedFile, elsewhere: Callable[[str], bool]) -> ParsedFile:
    """The file with such entries where the model_fn reads them, and without them in the params.

    `elsewhere` says whether a name stands in another file: params of a model_fn of that name stay.
    """
    if "Estimator" not in file.bare or _PARAMS not in file.bare:
        return file
    edits = Edits()
    for call in calls_in(file.module):
        if file.imports.resolve(call.func) == _ESTIMATOR and not file.may_have_comment(call):
            _read(file, call, elsewhere, edits)
    return applied(file, edits) if edits else file


def _read(file: ParsedFile, call: cst.Call, elsewhere: Callable[[str], bool], edits: Edits) -> None:
    """Adds the edits of one Estimator, where its model_fn is no other's and only asks its params for entries."""
    try:
        given = bind(call, _TAKES, _ESTIMATOR, "TFM103")
    except Blocked:
        return
    named, params = given.get("model_fn"), given.get("params")
    function = file.functions.get(named.value) if isinstance(named, cst.Name) else None
    if isinstance(params, cst.Name):
        params = _only_for(file, params, elsewhere)
    entries = _entries(file, params)
    if function is None or entries is None or elsewhere(function.name.value):
        return
    if sum(node.value == function.name.value for node in name_nodes(file.module)) != 2:
        return
    held = {key: entry for key, entry in entries.items() if _is_symbol(file, entry.value)}
    reads = _reads(file, function)
    if reads is None:
        return
    if not isinstance(params, cst.Dict) or all(
        string(getattr(one, "key", None)) is not None for one in params.elements
    ):
        edits.expressions.update(_defaults(file, reads, entries))
    gone: set[cst.CSTNode] = set()
    for key, entry in held.items():
        asked = [node for node, asked_for in reads.items() if asked_for == key]
        said = [one for one in of_kinds(file.module, cst.SimpleString) if string(one) == key]
        own = isinstance(entry, cst.DictElement)
        if asked and len(said) == len(asked) + own:  # nobody else speaks of it
            gone.add(entry)
            edits.expressions.update({node: entry.value.deep_clone() for node in asked})
    if gone and isinstance(params, cst.Dict):
        stay = [one for one in params.elements if one not in gone]
        stay[-1:] = [one.with_changes(comma=params.elements[-1].comma) for one in stay[-1:]]
        edits.expressions[params] = params.with_changes(elements=stay)
    elif gone and isinstance(params, cst.Call):
        edits.expressions[params] = with_arguments(params, [one for one in params.args if one not in gone])


def _defaults(
    file: ParsedFile, reads: Mapping[cst.CSTNode, str], entries: Mapping[str, cst.DictElement | cst.Arg]
) -> dict[cst.CSTNode, cst.BaseExpression]:
    """The defaults of TensorFlow in `params.get("optimizer", tf.train.AdamOptimizer)`, where no entry has that key."""
    found: dict[cst.CSTNode, cst.BaseExpression] = {}
    for node, key in reads.items():
        default = node.args[1].value if isinstance(node, cst.Call) and len(node.args) > 1 else None
        if default is not None and key not in entries and _is_symbol(file, default):
            found[node] = default.deep_clone()
    return found


def _entries(file: ParsedFile, params: cst.BaseExpression | None) -> Mapping[str, cst.DictElement | cst.Arg] | None:
    """The entries of `{"a": b}`, or of `dict(a=b)`, by key; None where another expression may have others."""
    if params is None or file.may_have_comment(params):
        return None
    entries = written_entries(params, "dict" not in file.names_at_top)
    return None if entries is None else {key: one.node for one in entries if (key := string(one.key)) is not None}


def _only_for(file: ParsedFile, name: cst.Name, elsewhere: Callable[[str], bool]) -> cst.BaseExpression | None:
    """What a name is given once, and that nobody but one reader of the name has."""
    bound = [one for one in read_bindings(file.module) if one.name == name.value]
    said = [node for node in name_nodes(file.module) if node.value == name.value]
    [one] = bound if len(bound) == 1 else [None]
    chained = one is None or (isinstance(one.node, cst.Assign) and len(one.node.targets) != 1)
    if one is None or chained or one.target is not one.place or len(said) != 2 or elsewhere(name.value):
        return None
    return one.value


def _is_symbol(file: ParsedFile, value: cst.BaseExpression) -> bool:
    """Whether a value is something of TensorFlow that Keras has otherwise: no activation, which is the same in both."""
    return dotted(value) is not None and (file.imports.tensorflow(value) or "").startswith(_OF_RULES)


def _reads(file: ParsedFile, function: cst.FunctionDef) -> Mapping[cst.CSTNode, str] | None:
    """The entries that a model_fn asks its params for, by key; None where it does anything else with them."""
    bound = Counter(one.name for one in bound_in(function))
    if bound[_PARAMS] != 1 or _PARAMS not in {one.name.value for one in parameters_of(function)}:
        return None
    second = {  # `p = params`
        one.name: one
        for one in bound_in(function)
        if isinstance(one.value, cst.Name) and one.value.value == _PARAMS and bound[one.name] == 1
    }
    passed = {node for one in second.values() for node in (one.value, one.place)}
    found: dict[cst.CSTNode, str] = {}
    for node in name_nodes(function.body):
        if (node.value != _PARAMS and node.value not in second) or node in passed:
            continue
        around = file.parents.get(node)
        above = file.parents.get(around) if around is not None else None
        if isinstance(around, cst.Subscript) and around.value is node and len(around.slice) == 1:
            index = around.slice[0].slice
            key = string(index.value) if isinstance(index, cst.Index) else None
            if isinstance(above, (cst.AssignTarget, cst.AugAssign, cst.Del)):
                return None
            asked: cst.CSTNode = around
        elif isinstance(around, cst.Attribute) and around.attr.value == "get" and isinstance(above, cst.Call):
            key, asked = string(above.args[0].value) if above.args else None, above
        else:
            return None
        if key is None:
            return None
        found[asked] = key
    return found


__all__ = ["with_params_in_place"]
