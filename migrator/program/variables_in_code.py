"""Names that stand for variables in TensorFlow 1 code: loop variables over what `tf.trainable_variables()` gives."""

from __future__ import annotations

import libcst as cst

from migrator.program.calls import calls_in
from migrator.program.parsed import ParsedFile
from migrator.program.region import Region
from migrator.walking import walk

_ASKING = ("tf.trainable_variables", "tf.global_variables")
_DEPTH = 5


def is_variable(name: cst.Name, file: ParsedFile, region: Region) -> bool:
    """Whether a name is what a loop around it takes from the variables of the graph, through calls in a region."""
    around: cst.CSTNode | None = name
    while around is not None:
        over = None
        if isinstance(around, cst.For) and _is_name(around.target, name.value):
            over = around.iter
        if isinstance(around, cst.ListComp | cst.SetComp | cst.DictComp | cst.GeneratorExp):
            over = around.for_in.iter if _is_name(around.for_in.target, name.value) else None
        if over is not None:
            return _gives(over, file, region, _DEPTH)
        around = file.parents.get(around)
    return False


def _gives(node: cst.BaseExpression, file: ParsedFile, region: Region, depth: int) -> bool:
    """Whether an expression is the variables of the graph."""
    if isinstance(node, cst.Call):
        return file.imports.tensorflow(node.func) in _ASKING
    function = _function(node, file)
    if not isinstance(node, cst.Name) or function is None or depth == 0:
        return False
    assigned = _Assigned(node.value)
    walk(function, assigned)
    if assigned.found:
        return all(_gives(value, file, region, depth - 1) for value in assigned.found)
    names = [param.name.value for param in function.params.params]
    if node.value not in names:
        return False
    given: list[tuple[cst.BaseExpression | None, ParsedFile]] = []
    for where, other in region.items():
        for call in calls_in(where):
            called = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
            if _is_name(called, function.name.value):
                given.append((_argument(call, node.value, names.index(node.value)), other))
    return bool(given) and all(value is not None and _gives(value, other, region, depth - 1) for value, other in given)


def _function(node: cst.CSTNode, file: ParsedFile) -> cst.FunctionDef | None:
    around = file.parents.get(node)
    while around is not None and not isinstance(around, cst.FunctionDef):
        around = file.parents.get(around)
    return around


def _argument(call: cst.Call, name: str, index: int) -> cst.BaseExpression | None:
    for position, arg in enumerate(call.args):
        if arg.star:
            return None
        if arg.keyword is not None and arg.keyword.value == name:
            return arg.value
        if arg.keyword is None and position == index:
            return arg.value
    return None


def _is_name(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


class _Assigned(cst.CSTVisitor):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.found: list[cst.BaseExpression] = []

    def visit_Assign(self, node: cst.Assign) -> None:
        if any(_is_name(target.target, self.name) for target in node.targets):
            self.found.append(node.value)


__all__ = ["is_variable"]
