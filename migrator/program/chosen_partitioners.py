"""Partitioners that a model_fn chooses by an `if`, as the conditional expressions that they amount to.

`if n > 1: scope.set_partitioner(A)` is `scope.set_partitioner(A if n > 1 else None)`, `if not given: given = A` is
`given = given or A` (as TensorFlow's own canned Estimators have it), and where a scope is told its partitioner first of
all, it might have been given it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import libcst as cst

from migrator.program.calls import is_none
from migrator.program.parsed import ParsedFile, Tracked, name_nodes, names_in
from migrator.rules.partitioners import CALLS, told_to_a_scope

_Value = tuple[str, cst.BaseExpression]


def with_chosen_partitioners(file: ParsedFile) -> ParsedFile:
    """The file with such statements written as expressions, which the reader of partitioners knows."""
    if "partitioner(" not in file.bare or ("if " not in file.bare and " as " not in file.bare):
        return file
    writer = _Writer(file)
    module = file.module.visit(writer)
    assert isinstance(module, cst.Module)
    if not writer.changed:
        return file
    new = replace(file, module=module)
    new.keep_positions(writer.made, file)
    return new


class _Writer(Tracked):
    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self.changed = False
        self._functions: list[cst.FunctionDef] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._functions.append(node)

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        self._functions.pop()
        return updated_node

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> Any:
        if not self._functions:
            return updated_node
        body: list[cst.BaseStatement] = []
        for statement in updated_node.body:
            new = self._chosen(statement, body) if isinstance(statement, cst.If) else None
            body.append(statement if new is None else new)
            if new is not None:
                self.changed = True
                self.made[new] = self.made[new.body[0]] = self.made.get(statement, original_node)
        return updated_node.with_changes(body=body)

    def _chosen(self, node: cst.If, before: list[cst.BaseStatement]) -> cst.SimpleStatementLine | None:
        """The line that an `if` amounts to; a line `name = None` before it goes then."""
        asked = _asked_for(node.test)
        if asked is not None:
            return self._fallback(node, asked, before)
        cases = self._cases(node)
        if cases is None:
            return None
        targets, value = cases
        made = [one for one in _leaves(value) if not (is_none(one) and isinstance(one, cst.Name))]
        if len(set(targets)) != 1 or not any(one is not _MISSING for one in made):
            return None
        target = targets[0]
        lines = [*node.leading_lines]
        if any(one is _MISSING for one in made):
            default: cst.BaseExpression | None = cst.Name("None") if "." in target else None
            if default is None:
                index = _given_before(before, target)
                line = None if index is None else before[index]
                default = None if line is None else _value_of(line)
                if default is None or not (is_none(default) or self._is_partitioner(default)):
                    return None
                assert isinstance(line, cst.SimpleStatementLine) and index is not None
                lines = [*line.leading_lines, *lines]
                del before[index]
            value = _filled(value, default)
        text = f"{target}({{}})" if "." in target else f"{target} = {{}}"
        statement = cst.parse_statement(text.format(self.file.code(value)), self.file.module.config_for_parsing)
        assert isinstance(statement, cst.SimpleStatementLine)
        statement = _with_value(statement, value)
        return statement.with_changes(leading_lines=lines)

    def _fallback(self, node: cst.If, target: str, before: list[cst.BaseStatement]) -> cst.SimpleStatementLine | None:
        """The line `target = given or made` for `if not target:`; the line above that gives it goes then."""
        if node.orelse is not None or not isinstance(node.body, cst.IndentedBlock):
            return None
        *lines, last = node.body.body
        value = _value_of(last) if _given_before([last], target) is not None else None
        if value is None or not self._is_partitioner(value):
            return None
        for line in reversed(lines):
            local, found = _assigned(line), _value_of(line)
            if local is None or found is None:
                return None
            inside = [n for n in name_nodes(node) if n.value == local]
            mentions = sum(n.value == local for n in name_nodes(value))
            if not mentions or (mentions > 1 and not isinstance(found, (cst.Name, cst.Attribute, cst.Integer))):
                return None
            if len(inside) != len([n for n in name_nodes(self._functions[-1]) if n.value == local]):
                return None
            put = value.visit(_Put(local, found))
            assert isinstance(put, cst.BaseExpression)
            value = put
        index = _given_before(before, target)
        line_before = None if index is None else before[index]
        default = None if line_before is None else _value_of(line_before)
        if default is None or target in names_in(value):
            return None
        assert isinstance(line_before, cst.SimpleStatementLine) and index is not None
        if not is_none(default):
            value = cst.BooleanOperation(_apart(default), cst.Or(), _apart(value))
        statement = cst.parse_statement(f"{target} = {self.file.code(value)}", self.file.module.config_for_parsing)
        assert isinstance(statement, cst.SimpleStatementLine)
        del before[index]
        comments = [*line_before.leading_lines, *node.leading_lines]
        return _with_value(statement, value).with_changes(leading_lines=comments)

    def _cases(self, node: cst.If | cst.Else) -> tuple[list[str], cst.BaseExpression] | None:
        """What is given a value in every branch, and the value; None where a branch does anything else."""
        one = self._only(node.body)
        if one is None:
            return None
        if isinstance(node, cst.Else):
            return [one[0]], one[1]
        other: tuple[list[str], cst.BaseExpression] | None = [], _MISSING
        if node.orelse is not None:
            other = self._cases(node.orelse)
        if other is None:
            return None
        return [one[0], *other[0]], cst.IfExp(test=_apart(node.test), body=_apart(one[1]), orelse=_apart(other[1]))

    def _only(self, body: cst.BaseSuite) -> _Value | None:
        """The one line of a branch that gives a name, or a scope, a partitioner or None."""
        line = body.body[0] if isinstance(body, cst.IndentedBlock) and len(body.body) == 1 else None
        told = told_to_a_scope(line) if line is not None else None
        if told is not None and isinstance(told.func, cst.Attribute) and told.args[0].keyword is None:
            value = told.args[0].value
            return (self.file.code(told.func), value) if self._is_partitioner(value) or is_none(value) else None
        if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
            return None
        small = line.body[0]
        if not isinstance(small, cst.Assign) or len(small.targets) != 1:
            return None
        target = small.targets[0].target
        if not isinstance(target, cst.Name) or not (self._is_partitioner(small.value) or is_none(small.value)):
            return None
        return target.value, small.value

    def _is_partitioner(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Call) and self.file.imports.resolve(node.func) in CALLS

    # -- scopes that are told ---------------------------------------------------------------------------------------

    def leave_With(self, original_node: cst.With, updated_node: cst.With) -> cst.With:
        """`with tf.variable_scope("a") as scope: scope.set_partitioner(p)`: the scope is given it."""
        item = updated_node.items[0]
        made = item.item
        if len(updated_node.items) != 1 or item.asname is None or not isinstance(made, cst.Call) or not self._functions:
            return updated_node
        name = item.asname.name
        if not isinstance(name, cst.Name) or self.file.imports.resolve(made.func) != "tf.variable_scope":
            return updated_node
        body = updated_node.body
        told = told_to_a_scope(body.body[0]) if isinstance(body, cst.IndentedBlock) and len(body.body) > 1 else None
        if told is None or not isinstance(told.func, cst.Attribute) or not isinstance(told.func.value, cst.Name):
            return updated_node
        uses = [n for n in name_nodes(self._functions[-1]) if n.value == name.value]
        inside = [n for n in name_nodes(original_node) if n.value == name.value]
        first = original_node.body.body[0]
        told_first = [n for n in name_nodes(first) if n.value == name.value]
        if name.value in names_in(told.args[0].value):
            return updated_node
        if told.func.value.value != name.value or len(uses) != len(inside) or len(inside) != 1 + len(told_first):
            return updated_node
        given = {arg.keyword.value for arg in made.args if arg.keyword is not None}
        if "partitioner" in given or any(arg.star for arg in made.args) or len(made.args) - len(given) > 6:
            return updated_node
        assert isinstance(body, cst.IndentedBlock)
        equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        *before, last = made.args
        added = cst.Arg(told.args[0].value, keyword=cst.Name("partitioner"), equal=equal)
        call = made.with_changes(args=[*before, last.with_changes(comma=comma), added]) if made.args else made
        if not made.args:
            return updated_node
        second = body.body[1]
        comments = [*body.body[0].leading_lines, *second.leading_lines]  # type: ignore[attr-defined]
        rest = second.with_changes(leading_lines=comments)
        self.made[call] = original_node.items[0].item
        self.made[rest] = self.made.get(second, original_node)
        self.changed = True
        new = item.with_changes(item=call, asname=None)
        return updated_node.with_changes(items=[new], body=body.with_changes(body=[rest, *body.body[2:]]))


_MISSING = cst.Name("__no_partitioner__")


def _apart(node: cst.BaseExpression) -> cst.BaseExpression:
    """An expression that may stand in a conditional one."""
    if node is _MISSING or node.lpar or not isinstance(node, (cst.IfExp, cst.Lambda, cst.NamedExpr)):
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _leaves(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    return [*_leaves(node.body), *_leaves(node.orelse)] if isinstance(node, cst.IfExp) else [node]


def _filled(node: cst.BaseExpression, default: cst.BaseExpression) -> cst.BaseExpression:
    if node is _MISSING:
        return default
    if not isinstance(node, cst.IfExp):
        return node
    return node.with_changes(body=_filled(node.body, default), orelse=_filled(node.orelse, default))


class _Put(cst.CSTTransformer):
    """The value of a name in its place."""

    def __init__(self, name: str, value: cst.BaseExpression) -> None:
        super().__init__()
        self.name = name
        self.value = value

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        if original_node.value != self.name:
            return updated_node
        plain = isinstance(self.value, (cst.Name, cst.Attribute, cst.Integer, cst.Call)) or self.value.lpar
        if plain:
            return self.value
        return self.value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)  # no mention of the name

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)


def _asked_for(test: cst.BaseExpression) -> str | None:
    """The name that `not name` or `name is None` asks for."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return test.expression.value if isinstance(test.expression, cst.Name) else None
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1 and isinstance(test.left, cst.Name):
        compared = test.comparisons[0]
        if isinstance(compared.operator, (cst.Is, cst.Equal)) and is_none(compared.comparator):
            return test.left.value
    return None


def _assigned(line: cst.BaseStatement) -> str | None:
    """The only name that a line gives a value."""
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    if not isinstance(small, cst.Assign) or len(small.targets) != 1:
        return None
    target = small.targets[0].target
    return target.value if isinstance(target, cst.Name) else None


def _given_before(before: Sequence[cst.BaseStatement], name: str) -> int | None:
    """The last line of a block that mentions a name, where it gives it a value and nothing else."""
    for index in range(len(before) - 1, -1, -1):
        if name in names_in(before[index]):
            line = before[index]
            small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
            plain = isinstance(small, cst.Assign) and len(small.targets) == 1
            if isinstance(small, cst.Assign) and plain and isinstance(small.targets[0].target, cst.Name):
                return index if name not in names_in(small.value) else None
            return None
    return None


def _value_of(line: cst.BaseStatement) -> cst.BaseExpression | None:
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
    return small.value if isinstance(small, cst.Assign) else None


def _with_value(line: cst.SimpleStatementLine, value: cst.BaseExpression) -> cst.SimpleStatementLine:
    """The line with the nodes of the value themselves, whose places are known."""
    small = line.body[0]
    if isinstance(small, cst.Assign):
        return line.with_changes(body=[small.with_changes(value=value)])
    assert isinstance(small, cst.Expr) and isinstance(small.value, cst.Call)
    call = small.value.with_changes(args=[cst.Arg(value)])
    return line.with_changes(body=[small.with_changes(value=call)])
