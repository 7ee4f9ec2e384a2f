"""Functions that a driver calls once, to make an Estimator or to do something with one: their lines, in its own.

`model = build_estimator(args)` and `train_model(model, args)` are the driver's own steps, said in functions: where such
a function is called in one place, and returns at its end, its lines stand there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Optional, Union, cast

import libcst as cst

from migrator.names.bindings import Form, bound_in, names_read, read_bindings
from migrator.names.free import free
from migrator.pairing import equal_zip
from migrator.program.calls import calls_in, is_docstring
from migrator.program.parsed import ParsedFile, name_nodes, names_in
from migrator.program.scopes import always_returns, returns_in
from migrator.walking import of_kinds

_MADE = ("Estimator", "Classifier", "Regressor", "model_to_estimator")
_TRAINS = ("train", "train_and_evaluate")
_Scope = Union[cst.Module, cst.FunctionDef]
Arguments = Mapping[str, cst.BaseExpression]


@dataclass(frozen=True)
class Unfolded:
    """The lines that stand in the place of a call's line, names that are called otherwise there, and new names."""

    function: cst.FunctionDef
    line: cst.SimpleStatementLine
    lines: tuple[cst.BaseStatement, ...]
    names: Mapping[cst.CSTNode, cst.BaseExpression] = field(default_factory=dict)
    made: frozenset[str] = frozenset()


def unfolded(
    file: ParsedFile,
    elsewhere: Callable[[str], bool],
    arguments: Callable[[cst.FunctionDef, cst.Call], Arguments | None],
) -> Unfolded | None:
    """The first such function of a file; None where there is none.

    `elsewhere` says whether a name stands in another file, `arguments` what the parameters of a function are given.
    """
    functions = [s for s in file.module.body if isinstance(s, cst.FunctionDef)]
    for function in functions:
        name = function.name.value
        if elsewhere(name) or file.functions.get(name) is not function or not _is_plain(function):
            continue
        mentions = [n for n in name_nodes(file.module) if n.value == name and n is not function.name]
        call = file.parents.get(mentions[0]) if len(mentions) == 1 else None
        if not isinstance(call, cst.Call) or call.func is not mentions[0]:
            continue
        reader = _Call(file, function, call, arguments(function, call))
        found = reader.read()
        if found is not None:
            return found
    return None


def _is_plain(function: cst.FunctionDef) -> bool:
    """Whether a function runs its lines to the end, and keeps its names to itself."""
    if function.decorators or function.asynchronous is not None or not isinstance(function.body, cst.IndentedBlock):
        return False
    if _answered(function.body.body, lambda line, value: [line]) is None:
        return False
    bound = read_bindings(function.body)
    return not any(one.form in (Form.SCOPED, Form.DELETED) for one in bound) and not _suspends(function)


_Answer = Callable[[cst.SimpleStatementLine, Optional[cst.BaseExpression]], Sequence[cst.BaseStatement]]


def _answered(body: Sequence[cst.BaseStatement], answer: _Answer) -> list[cst.BaseStatement] | None:
    """The lines of a function with what `answer` makes of a line that returns in its place, and no return.

    What stands behind an `if` whose ways all return stands in its `else` then. None where a loop, `with` or `try`
    returns, or only some of the ways through the function return.
    """
    for index, line in enumerate(body):
        if not returns_in(line):
            continue
        before, rest = list(body[:index]), body[index + 1 :]
        if isinstance(line, cst.SimpleStatementLine):
            small = line.body[0]
            only = len(line.body) == 1 and isinstance(small, cst.Return) and not rest
            return [*before, *answer(line, cst.ensure_type(small, cst.Return).value)] if only else None
        new = _ways(line, rest, answer) if isinstance(line, cst.If) else None
        return [*before, new] if new is not None else None
    return list(body)


def _ways(line: cst.If, rest: Sequence[cst.BaseStatement], answer: _Answer) -> cst.If | None:
    """An `if`, each way through it with its answer; the `rest` behind it is where none of its tests holds."""
    block = _way(line.body, answer)
    otherwise: cst.If | cst.Else | None
    if isinstance(line.orelse, cst.If):
        otherwise = _ways(line.orelse, rest, answer)
    elif line.orelse is not None:
        last = _way(line.orelse.body, answer) if not rest else None
        otherwise = line.orelse.with_changes(body=last) if last is not None else None
    else:
        last = _way(cst.IndentedBlock(list(rest)), answer) if rest else None
        otherwise = cst.Else(last) if last is not None else None
    return line.with_changes(body=block, orelse=otherwise) if block is not None and otherwise is not None else None


def _way(block: cst.BaseSuite, answer: _Answer) -> cst.BaseSuite | None:
    if not isinstance(block, cst.IndentedBlock) or not always_returns(block):
        return None
    lines = _answered(block.body, answer)
    return block.with_changes(body=lines or [cst.SimpleStatementLine([cst.Pass()])]) if lines is not None else None


class _Call:
    """The only call of a function."""

    def __init__(self, file: ParsedFile, function: cst.FunctionDef, call: cst.Call, given: Arguments | None) -> None:
        self.file = file
        self.function = function
        self.call = call
        self.given = given
        self.own = {one.name for one in bound_in(function)}
        around = list(self._around(call))
        self.line = next((n for n in around if isinstance(n, cst.SimpleStatementLine)), None)
        self.scope: _Scope = next((n for n in around if isinstance(n, cst.FunctionDef)), file.module)

    def _around(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        around = self.file.parents.get(node)
        while around is not None:
            yield around
            around = self.file.parents.get(around)

    def read(self) -> Unfolded | None:
        """The lines of the function in the place of the call; None where they would do something else there."""
        if self.given is None or self.line is None or len(self.line.body) != 1 or self.scope is self.function:
            return None
        targets = self._targets(self.line.body[0])
        if targets is None or not (self._makes_estimator() or self._is_given_estimator()):
            return None
        if self.file.may_have_comment(self.call) or self.line.trailing_whitespace.comment or not self._means_the_same():
            return None
        body = list(cast("cst.IndentedBlock", self.function.body).body)
        if len(body) > 1 and is_docstring(body[0]):
            del body[0]
        values = [one.value for one in returns_in(self.function.body)]
        if targets and (not values or None in values):
            return None
        results = self._results(targets, [value for value in values if value is not None])
        called = self._called(results) if results is not None else None
        if called is None or not self._in_turn(targets, values, called):
            return None
        literals = {name: given for name, given in self.given.items() if self._is_always(name, given)}
        before = [
            _assigned(called.get(name, name), given)
            for name, given in self.given.items()
            if name not in literals and (not isinstance(given, cst.Name) or given.value != called.get(name, name))
        ]

        def answer(line: cst.SimpleStatementLine, value: cst.BaseExpression | None) -> Sequence[cst.BaseStatement]:
            if value is not None and targets:
                given = [
                    _assigned(target, part)
                    for target, part in equal_zip(targets, _parts(value, len(targets)))
                    if not (isinstance(part, cst.Name) and called.get(part.value, part.value) == target)
                    or (part.value not in self.own)
                ]
                return [
                    one.with_changes(leading_lines=() if at else line.leading_lines) for at, one in enumerate(given)
                ]
            if value is not None and not isinstance(value, cst.Name):
                return [cst.SimpleStatementLine([cst.Expr(value)], leading_lines=line.leading_lines)]
            return []

        lines = [*before, *(_answered(body, answer) or ())]
        if not lines:
            return None
        above = [one for one in _leading(self.function) if one.comment is not None]
        lines[0] = lines[0].with_changes(leading_lines=[*_leading(self.line), *above, *_leading(lines[0])])
        names: dict[cst.CSTNode, cst.BaseExpression] = {
            node: literals[node.value] if node.value in literals else cst.Name(called[node.value])
            for node in name_nodes(self.function.body)
            if node.value in literals or called.get(node.value, node.value) != node.value
        }
        made = frozenset(called.values()) | self.own
        return Unfolded(self.function, self.line, tuple(lines), names, made)

    def _targets(self, small: cst.BaseSmallStatement) -> tuple[str, ...] | None:
        """The names that get the result, or its parts, if any do; None where the line does something else."""
        if isinstance(small, cst.Expr) and small.value is self.call:
            return ()
        if isinstance(small, cst.Assign) and small.value is self.call and len(small.targets) == 1:
            target = small.targets[0].target
            parts: Sequence[cst.CSTNode] = [target]
            if isinstance(target, (cst.Tuple, cst.List)):
                parts = [e.value if isinstance(e, cst.Element) else e for e in target.elements]
            names = [part.value for part in parts if isinstance(part, cst.Name)]
            return tuple(names) if parts and len(names) == len(parts) == len(set(names)) else None
        return None

    def _results(self, targets: Sequence[str], values: Sequence[cst.BaseExpression]) -> dict[str, str] | None:
        """The function's own names that it returns everywhere, and the names which get them; None where what it returns
        is not known by its parts."""
        if any(len(_parts(value, len(targets))) != len(targets) for value in values if targets):
            return None
        found: dict[str, str] = {}
        for at, target in enumerate(targets):
            names = {
                part.value if isinstance(part, cst.Name) else ""
                for part in (_parts(v, len(targets))[at] for v in values)
            }
            only = names.pop() if len(names) == 1 else ""
            if only in self.own - set(self.given or ()) and only not in found:
                found[only] = target
        return found

    def _in_turn(
        self, targets: Sequence[str], values: Sequence[cst.BaseExpression | None], called: Mapping[str, str]
    ) -> bool:
        """Whether the parts of a result may be given to their names one after the other."""
        for value in values if len(targets) > 1 else ():
            parts = _parts(value, len(targets)) if value is not None else ()
            before: set[str] = set()
            for target, part in equal_zip(targets, parts):
                if {called.get(name, name) for name in names_in(part)} & before:
                    return False
                if not (isinstance(part, cst.Name) and called.get(part.value, part.value) == target):
                    before.add(target)
        return True

    def _makes_estimator(self) -> bool:
        """Whether the function returns an Estimator that it makes."""
        returned = [one.value for one in returns_in(self.function.body) if one.value is not None]
        made = [part for value in returned for part in _parts(value, 0)]
        named = [one.value for one in made if isinstance(one, cst.Name)]
        made += [value for name in named for value in self._values(self.function, name)]
        return any(self._is_made(value) for value in made)

    def _is_given_estimator(self) -> bool:
        """Whether an argument is an Estimator, which the function trains."""
        for name, given in (self.given or {}).items():
            if not isinstance(given, cst.Name):
                continue
            if any(self._is_made(one) for one in self._values(self.scope, given.value)) and self._trains(name):
                return True
        return False

    def _is_made(self, node: cst.BaseExpression) -> bool:
        name = self.file.imports.tensorflow(node.func) if isinstance(node, cst.Call) else None
        return name is not None and "estimator" in name and name.endswith(_MADE)

    def _values(self, scope: _Scope, name: str) -> Iterator[cst.BaseExpression]:
        for one in bound_in(scope):
            if one.name == name and isinstance(one.node, cst.Assign):
                yield one.node.value

    def _trains(self, name: str) -> bool:
        for call in calls_in(self.function.body):
            func = call.func
            if isinstance(func, cst.Attribute) and func.attr.value in _TRAINS:
                owner = isinstance(func.value, cst.Name) and func.value.value == name
                if owner or any(isinstance(arg.value, cst.Name) and arg.value.value == name for arg in call.args):
                    return True
        return False

    def _means_the_same(self) -> bool:
        """Whether what the function reads around itself means the same at the call."""
        read = names_read(self.function.body) - self.own
        for node in self._around(self.call):
            if isinstance(node, (cst.Lambda, cst.ClassDef)):
                return False
            if isinstance(node, cst.FunctionDef) and {one.name for one in bound_in(node)} & read:
                return False
        return True

    def _called(self, results: Mapping[str, str]) -> dict[str, str] | None:
        """What the names of the function are called at the call, by those that change; None where one cannot."""
        parameters = {p.name.value for p in self.function.params.params}
        taken = self._taken()
        called: dict[str, str] = {}
        everywhere = [one.name for one in read_bindings(self.function.body) if one.name in self.own]
        here = [one.name for one in bound_in(self.function)]
        for name in sorted(self.own):
            given = (self.given or {}).get(name)
            new = name
            if name in results and results[name] not in self.own - {name}:
                new = results[name]
            elif given is not None and self._is_always(name, given):
                continue
            elif name in parameters and isinstance(given, cst.Name) and self._is_steady(name, given):
                new = given.value
            elif name in taken:
                new = free(name, {*taken, *self.own, *called.values()})
            if new != name:
                inner = everywhere.count(name) + (name in parameters) != here.count(name)
                if inner:
                    return None  # a function inside has the name for something else
                called[name] = new
        return called

    def _is_always(self, name: str, given: cst.BaseExpression) -> bool:
        """Whether a parameter is a literal wherever it is read."""
        literal = isinstance(given, (cst.SimpleString, cst.Integer, cst.Float)) or (
            isinstance(given, cst.Name) and given.value in ("True", "False", "None")
        )
        if not literal or [one.name for one in read_bindings(self.function)].count(name) != 1:
            return False
        reads = [node for node in name_nodes(self.function.body) if node.value == name]
        return not any(isinstance(self.file.parents.get(node), (cst.Attribute, cst.Subscript)) for node in reads)

    def _is_steady(self, name: str, given: cst.Name) -> bool:
        """Whether a parameter and the name that it is given stay the same, so that one stands for both."""
        own = [one for one in bound_in(self.function) if one.name == name]
        there = [one for one in bound_in(self.scope) if one.name == given.value]
        return len(own) == 1 and len(there) == 1 and given.value not in self.own - {name}

    def _taken(self) -> set[str]:
        """Names that mean something else around the call."""
        if isinstance(self.scope, cst.Module):
            return names_in(self.scope) - (names_in(self.function) - self._outside())
        found = names_in(self.scope)
        return found | {one.name for one in bound_in(self.file.module)} & names_read(self.scope)

    def _outside(self) -> set[str]:
        """The names that stand outside of the function."""
        inside = {id(node) for node in name_nodes(self.function)}
        return {node.value for node in name_nodes(self.file.module) if id(node) not in inside}


def _parts(value: cst.BaseExpression, count: int) -> Sequence[cst.BaseExpression]:
    """A result where one name gets it, or the parts that are written out in it (with a `count` of 0: either)."""
    if count == 1 or not isinstance(value, (cst.Tuple, cst.List)):
        return [value]
    plain = all(isinstance(element, cst.Element) for element in value.elements)
    return [element.value for element in value.elements] if plain else []


def _assigned(name: str, value: cst.BaseExpression) -> cst.SimpleStatementLine:
    return cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(name))], value)])


def _leading(line: cst.CSTNode) -> Iterable[cst.EmptyLine]:
    return cast("Iterable[cst.EmptyLine]", getattr(line, "leading_lines", ()))


__all__ = ["Unfolded", "unfolded"]


def _suspends(function: cst.FunctionDef) -> bool:
    """Whether a function is a generator, or asks for its own names."""
    if of_kinds(function.body, cst.Yield, cst.Await):
        return True
    return bool(names_in(function) & {"locals", "vars", "super", "eval", "exec"})
