"""Edits of nodes, and what is asked of a node by its form: functions without a state."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrator.emit.mesh import with_parameter
from migrator.names.imports import dotted
from migrator.program.calls import is_docstring
from migrator.program.modern import Edit, ModernFile, is_edit_of


def method(call: cst.Call) -> str | None:
    """The method that is called, by its name."""
    return call.func.attr.value if isinstance(call.func, cst.Attribute) else None


def receiver(call: cst.Call) -> str | None:
    """What a method is called of, as source text; None where that is no name."""
    return dotted(call.func.value) if isinstance(call.func, cst.Attribute) else None


def decorator_place(file: ModernFile, function: cst.FunctionDef) -> int | None:
    """Which decorator makes a function a tf.function, without arguments."""
    found = [i for i, one in enumerate(function.decorators) if file.name(one.decorator) == "tf.function"]
    return found[0] if found else None


def with_text(text: str) -> Edit:
    """An expression in place of another one."""
    return lambda node: cst.parse_expression(text)


def with_node(new: cst.CSTNode) -> Edit:
    """A node in place of another one."""
    return lambda node: new


def with_new_parameter(node: cst.FunctionDef, name: str) -> cst.FunctionDef:
    """A function with one more parameter."""
    return node.with_changes(params=with_parameter(node.params, name))


def each(edits: Sequence[Edit]) -> Edit:
    """Several edits of one node, in their order."""

    def edit(node: cst.CSTNode) -> cst.CSTNode:
        for one in edits:
            node = one(node)
        return node

    return edit


def in_place_of(old: cst.SimpleStatementLine, new: Sequence[cst.BaseStatement]) -> cst.CSTNode:
    """New statements, the first of which has the comments of the old one."""
    first = new[0].with_changes(leading_lines=old.leading_lines)
    return cst.FlattenSentinel([first, *new[1:]])  # type: ignore[return-value]


def put_before(node: cst.CSTNode, new: Sequence[cst.BaseStatement]) -> cst.CSTNode:
    """New statements before one, or before the several that it has become."""
    several = list(node) if isinstance(node, cst.FlattenSentinel) else [node]
    leading = several[0].leading_lines  # type: ignore[union-attr]
    first = new[0].with_changes(leading_lines=leading)
    rest = [several[0].with_changes(leading_lines=[]), *several[1:]]
    return cst.FlattenSentinel([first, *new[1:], *rest])  # type: ignore[return-value]


def with_more(new: Sequence[cst.BaseStatement]) -> Edit:
    """New statements after one."""
    return lambda node: cst.FlattenSentinel([node, *new])  # type: ignore[return-value]


def put_after(node: cst.CSTNode, new: Sequence[cst.BaseStatement]) -> cst.CSTNode:
    """New statements after one, or after the several that it has become."""
    several = list(node) if isinstance(node, cst.FlattenSentinel) else [node]
    return cst.FlattenSentinel([*several, *new])  # type: ignore[return-value]


def put_in_place(node: cst.CSTNode, old: cst.SimpleStatementLine, new: Sequence[cst.BaseStatement]) -> cst.CSTNode:
    """New statements in place of an old one, which may have got others before it."""
    if isinstance(node, cst.FlattenSentinel):
        return cst.FlattenSentinel([*list(node)[:-1], *new])  # type: ignore[return-value]
    return in_place_of(old, new)


def placed(call: cst.Call, kind: str, mesh: str) -> cst.Call:
    """The call that divides a dataset, as one that puts its batches on the mesh."""
    last = cst.Arg(cst.Name(mesh))
    first = call.args[0].with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
    return call.with_changes(func=cst.Name(kind), args=[first, last])


def second_argument(value: cst.BaseExpression) -> Edit:
    """A call that becomes its second argument."""
    return lambda node: is_edit_of(node, cst.Call).args[1].value


def with_function(node: cst.CSTNode) -> cst.CSTNode:
    """A function as a tf.function."""
    function = is_edit_of(node, cst.FunctionDef)
    decorator = cst.Decorator(cst.parse_expression("tf.function"))
    return function.with_changes(decorators=[decorator, *function.decorators])


def without_function(node: cst.FunctionDef, place: int, body: Sequence[cst.BaseStatement]) -> cst.FunctionDef:
    """A function with another body, which is no tf.function any more."""
    decorators = [one for index, one in enumerate(node.decorators) if index != place]
    kept = [line for line in node.body.body[:1] if is_docstring(line)]
    block = is_edit_of(node.body, cst.IndentedBlock).with_changes(body=[*kept, *body])
    return node.with_changes(decorators=decorators, body=block)


def extended(node: cst.FunctionDef, more: Sequence[cst.BaseStatement]) -> cst.FunctionDef:
    """A function with more lines at its end."""
    block = is_edit_of(node.body, cst.IndentedBlock)
    return node.with_changes(body=block.with_changes(body=[*block.body, *more]))


def with_gradients(node: cst.Return, name: str) -> cst.Return:
    """A return that gives the gradients, too."""
    assert node.value is not None
    elements = [cst.Element(node.value), cst.Element(cst.Name(name))]
    return node.with_changes(value=cst.Tuple(elements, lpar=[], rpar=[]))
