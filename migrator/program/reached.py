"""Where a value of a program gets to: by names, attributes, results and parameters of functions, in all files.

What is not followed is told, so that nothing is done with the value that nobody saw. Names stand for the value wherever
they may, whatever else they are given: more places are found than a run comes to, never fewer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst

from migrator.names.bindings import hidden_in, owns
from migrator.program.calls import is_none
from migrator.program.flow import Calls, Mentioning, Parents, imported
from migrator.program.parsed import Blocked, ParsedFile, Project, attributes_named, name_nodes
from migrator.program.region import class_of
from migrator.program.scopes import path_to

_INNER = (cst.FunctionDef, cst.Lambda, cst.GeneratorExp, cst.ListComp, cst.SetComp, cst.DictComp)
_LOOPS = (cst.For, cst.CompFor)
_TESTS = (cst.If, cst.IfExp, cst.While, cst.Assert)
_PLAIN = ("staticmethod", "classmethod")


@dataclass(frozen=True)
class Asked:
    """A method or an attribute that the value is asked for, and the function (or module) where that is."""

    file: ParsedFile
    scope: cst.CSTNode
    node: cst.Attribute
    call: cst.Call | None

    @property
    def name(self) -> str:
        return self.node.attr.value


@dataclass(frozen=True)
class Given:
    """A call of something that is no function of the project, which the value is given to."""

    file: ParsedFile
    scope: cst.CSTNode
    call: cst.Call
    value: cst.BaseExpression


@dataclass
class Reached:
    """All that is done with a value: what it is asked for, what it is given to, and what of that is not followed."""

    asked: list[Asked] = field(default_factory=list)
    given: list[Given] = field(default_factory=list)
    unknown: list[tuple[ParsedFile, cst.CSTNode]] = field(default_factory=list)


def reached_by(
    project: Project,
    mentioning: Mentioning,
    file: ParsedFile,
    made: cst.Call,
    returning: frozenset[str] = frozenset(),
) -> Reached:
    """What is done with the result of a call; methods that are `returning` answer with the value itself."""
    follower = _Follower(project, mentioning, returning)
    follower.follow(file, made)
    return follower.found


class _Follower:
    def __init__(self, project: Project, mentioning: Mentioning, returning: frozenset[str]) -> None:
        self.project = project
        self.mentioning = mentioning
        self.calls = Calls(project, mentioning, Parents())
        self.returning = returning
        self.found = Reached()
        self.seen: set[cst.CSTNode | tuple[object, object]] = set()  # what was looked at already

    def follow(self, file: ParsedFile, node: cst.BaseExpression) -> None:
        """Looks at what stands around an expression that the value may be."""
        if node in self.seen:
            return
        self.seen.add(node)
        if file not in self.project.files:
            self._lost(file, node)  # in a file that nothing is written in
            return
        around = file.parents.get(node)
        if isinstance(around, cst.Attribute):
            self._asked(file, around)
        elif isinstance(around, cst.Arg):
            call = file.parents.get(around)
            if isinstance(call, cst.Call) and not around.star:
                self._given(file, call, around, node)
            else:
                self._lost(file, node)
        elif isinstance(around, (cst.Assign, cst.AnnAssign, cst.NamedExpr)) and around.value is node:
            targets = [t.target for t in around.targets] if isinstance(around, cst.Assign) else [around.target]
            for target in targets:
                self._bound(file, target)
            if isinstance(around, cst.NamedExpr):
                self.follow(file, around)
        elif isinstance(around, cst.Return):
            self._returned(file, node, None)
        elif isinstance(around, cst.Element):
            self._held(file, around)
        elif (isinstance(around, cst.IfExp) and around.test is not node) or isinstance(around, cst.BooleanOperation):
            self.follow(file, around)
        elif not self._leaves_alone(around, node):
            self._lost(file, node)

    def _leaves_alone(self, around: cst.CSTNode | None, node: cst.BaseExpression) -> bool:
        """Whether what stands around the value takes nothing of it: its own statement, a test, a name that is given
        something."""
        if isinstance(around, cst.Comparison):
            return len(around.comparisons) == 1 and is_none(around.comparisons[0].comparator)
        if isinstance(around, cst.UnaryOperation):
            return isinstance(around.operator, cst.Not)
        targets = (cst.AssignTarget, cst.Expr, cst.NameItem, cst.Del)
        if isinstance(around, cst.AnnAssign):
            return around.target is node
        if isinstance(around, cst.Param):
            return around.name is node
        return isinstance(around, (*targets, *_TESTS)) or (isinstance(around, _LOOPS) and around.target is node)

    def _lost(self, file: ParsedFile, node: cst.CSTNode) -> None:
        self.found.unknown.append((file, node))

    def _scope(self, file: ParsedFile, node: cst.CSTNode) -> cst.CSTNode:
        """The function around a node, or the module."""
        above = file.parents.get(node)
        while above is not None and not isinstance(above, cst.FunctionDef):
            above = file.parents.get(above)
        return above or file.module

    def _asked(self, file: ParsedFile, node: cst.Attribute) -> None:
        around = file.parents.get(node)
        call = around if isinstance(around, cst.Call) and around.func is node else None
        self.found.asked.append(Asked(file, self._scope(file, node), node, call))
        if call is not None and node.attr.value in self.returning:
            self.follow(file, call)

    def _held(self, file: ParsedFile, element: cst.Element) -> None:
        """Follows the value out of a tuple or list that is taken apart: at once, by a loop, or where it is returned."""
        display = file.parents[element]
        around = file.parents.get(display)
        if isinstance(around, cst.AssignTarget) or (isinstance(around, _LOOPS) and around.target is display):
            return
        if not isinstance(display, (cst.Tuple, cst.List)) or _has_star(display):
            self._lost(file, element.value)
            return
        index = display.elements.index(element)
        if isinstance(around, cst.Return):
            self._returned(file, element.value, index)
        elif isinstance(around, _LOOPS) and around.iter is display:
            self._bound(file, around.target)
        elif not self._taken_apart(file, display, index):
            self._lost(file, element.value)

    def _taken_apart(self, file: ParsedFile, whole: cst.BaseExpression, index: int) -> bool:
        """Follows an element of a sequence to the name that it is given, or to where it is asked for by its number."""
        around = file.parents.get(whole)
        if isinstance(around, cst.Subscript) and around.value is whole and len(around.slice) == 1:
            at = around.slice[0].slice
            if isinstance(at, cst.Index) and isinstance(at.value, cst.Integer):
                if int(at.value.value, 0) == index:
                    self.follow(file, around)
                return True
        if not isinstance(around, cst.Assign) or len(around.targets) != 1:
            return isinstance(around, cst.Expr)
        target = around.targets[0].target
        if not isinstance(target, (cst.Tuple, cst.List)) or len(target.elements) <= index:
            return False
        if _has_star(target):
            return False
        self._bound(file, target.elements[index].value)
        return True

    def _bound(self, file: ParsedFile, target: cst.BaseExpression) -> None:
        if isinstance(target, cst.Name):
            owner = self._owner(file, target)
            if owner is None:
                self._lost(file, target)
            else:
                self._named(file, owner, target.value)
        elif isinstance(target, cst.Attribute):
            self._kept(target.attr.value)
        else:
            self._lost(file, target)

    def _owner(self, file: ParsedFile, name: cst.Name) -> cst.CSTNode | None:
        """The function or module that a name belongs to; None for one of a class."""
        above = file.parents.get(name)
        first = True
        while above is not None:
            if isinstance(above, cst.ClassDef) and first and owns(above, name.value):
                return None
            if isinstance(above, _INNER):
                if owns(above, name.value):
                    return above
                first = False
            above = file.parents.get(above)
        return file.module

    def _named(self, file: ParsedFile, scope: cst.CSTNode, name: str) -> None:
        if (scope, name) not in self.seen:
            self.seen.add((scope, name))
            for where, node in self._mentions(file, scope, name):
                self.follow(where, node)

    def _mentions(
        self, file: ParsedFile, scope: cst.CSTNode, name: str
    ) -> Iterator[tuple[ParsedFile, cst.BaseExpression]]:
        """Where a name of a scope is mentioned, in other files too where it is one of a module."""
        yield from ((file, node) for node in _references(scope, name))
        if scope is file.module:
            for other in self.mentioning([name]):
                if other.path != file.path:
                    yield from ((other, node) for node in imported(self.project, other, file, name))

    def _kept(self, name: str) -> None:
        """Follows the value in an attribute: any of that name in the project may be the one."""
        if ("attribute", name) in self.seen:
            return
        self.seen.add(("attribute", name))
        for file in self.mentioning([name]):
            for node in attributes_named(file.module, name) if name in file.bare else ():
                if file.imports.resolve(node) is None:  # what a library calls so is something else
                    self.follow(file, node)

    def _returned(self, file: ParsedFile, node: cst.CSTNode, index: int | None) -> None:
        """Follows the value to the calls of the function that returns it, or a tuple with it at an index."""
        function = self._scope(file, node)
        if not isinstance(function, cst.FunctionDef):
            self._lost(file, node)
            return
        try:
            calls = self.calls.of(file, function)
        except Blocked as problem:
            self._lost(file, problem.node or node)
            return
        if (index, function) in self.seen:
            return
        self.seen.add((index, function))
        for where, call in calls:
            if where not in self.project.files:
                if not isinstance(where.parents.get(call), cst.Expr):
                    self._lost(file, node)  # in a file that nothing is written in
            elif index is None:
                self.follow(where, call)
            elif not self._taken_apart(where, call, index):
                self._lost(where, call)

    def _given(self, file: ParsedFile, call: cst.Call, arg: cst.Arg, node: cst.BaseExpression) -> None:
        found = self._function(file, call)
        if found is None:
            self.found.given.append(Given(file, self._scope(file, call), call, node))
            return
        where, function, bound = found
        name = _parameter(function, call, arg, bound)
        if name is None:
            self._lost(file, node)
        else:
            self._named(where, function, name)

    def _function(self, file: ParsedFile, call: cst.Call) -> tuple[ParsedFile, cst.FunctionDef, int] | None:
        """The function of the project that a call is of, and how many of its parameters are given before."""
        func = call.func
        if isinstance(func, cst.Name):
            owner = self._owner(file, func)
            if isinstance(owner, cst.FunctionDef):
                inner = [one for one in _functions(owner) if one.name.value == func.value]
                return (file, inner[0], 0) if len(inner) == 1 else None
        found = self.project.function(file, func)
        if found is not None:
            return (*found, 0)
        made = class_of(self.project, file, func)
        if made is not None:
            return self._method(*made, "__init__")
        if isinstance(func, cst.Attribute) and isinstance(func.value, cst.Name) and func.value.value in ("self", "cls"):
            for above in reversed(path_to(file.module, call)):
                if isinstance(above, cst.ClassDef):
                    return self._method(file, above, func.attr.value)
        return None

    def _method(
        self, file: ParsedFile, node: cst.ClassDef, name: str
    ) -> tuple[ParsedFile, cst.FunctionDef, int] | None:
        methods = [s for s in node.body.body if isinstance(s, cst.FunctionDef) and s.name.value == name]
        if len(methods) != 1:
            return None
        decorators = [one.decorator.value for one in methods[0].decorators if isinstance(one.decorator, cst.Name)]
        if len(decorators) != len(methods[0].decorators) or any(one not in _PLAIN for one in decorators):
            return None
        return file, methods[0], 0 if "staticmethod" in decorators else 1


def _parameter(function: cst.FunctionDef, call: cst.Call, arg: cst.Arg, bound: int) -> str | None:
    """The parameter that an argument of a call is for; None where that is not one of its own."""
    if any(one.star for one in call.args):
        return None
    params = function.params
    ordered = [one.name.value for one in (*params.posonly_params, *params.params)]
    if arg.keyword is not None:
        named = [*ordered, *(one.name.value for one in params.kwonly_params)]
        return arg.keyword.value if arg.keyword.value in named else None
    index = bound + [one for one in call.args if one.keyword is None].index(arg)
    return ordered[index] if index < len(ordered) else None


def _references(scope: cst.CSTNode, name: str) -> list[cst.Name]:
    """Where a scope mentions a name, but for functions inside in which it is another one."""
    elsewhere = {inner for node in hidden_in(scope, name) if node is not scope for inner in name_nodes(node)}
    own = scope.body if isinstance(scope, cst.FunctionDef) else scope
    return [node for node in name_nodes(own) if node.value == name and node not in elsewhere]


def _has_star(display: cst.Tuple | cst.List) -> bool:
    return any(isinstance(one, cst.StarredElement) for one in display.elements)


def _functions(node: cst.FunctionDef) -> list[cst.FunctionDef]:
    return [one for one in node.body.body if isinstance(one, cst.FunctionDef)]


__all__ = ["Asked", "Given", "Reached", "reached_by"]
