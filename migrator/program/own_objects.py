"""Objects that a model_fn makes of the project's own classes: their constructors, methods, properties and constants.

`model = Model(features, labels, mode)` is inlined like a helper, and `model.loss` becomes a name (see `entries`), where
the class does more than to build a network, or is told the mode. Other objects are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, cast

import libcst as cst

from migrator.program.assignments import assignments
from migrator.program.calls import string
from migrator.program.entries import Record, parameter
from migrator.program.flow import class_of, methods_by_name, with_bases
from migrator.program.helpers import Helper, Scope, touches_training
from migrator.program.parsed import Following, ParsedFile, Project, attributes_named, names_in
from migrator.walking import transformed

_Node = TypeVar("_Node", bound=cst.CSTNode)
#: Between the name of a method and that of the class which `super` means, until the call is inlined.
_OF = "__of__"
_RECORDS = ("namedtuple", "NamedTuple", "Namespace")
_NAMESPACES = ("types.SimpleNamespace", "argparse.Namespace")


@dataclass(frozen=True)
class Made:
    """An object that a model_fn makes by a call of a class, and what the class itself has for attributes."""

    call: cst.Call
    file: ParsedFile
    of: cst.ClassDef
    constants: Mapping[str, cst.BaseExpression]


@dataclass
class OwnObjects:
    """The objects `made` in a model_fn of a file, by name, whose constructors are inlined.

    `same` is told what stood where a new node stands, and gives the new node back.
    """

    project: Project
    file: ParsedFile
    same: Callable[[cst.CSTNode, cst.CSTNode], cst.CSTNode]
    made: dict[str, Made] = field(default_factory=dict)

    def constructed(
        self, small: cst.BaseSmallStatement, value: cst.Call, is_told: Callable[[str, cst.Call], bool]
    ) -> tuple[Helper, cst.Call] | None:
        """The constructor that `model = Model(features, labels, mode)` calls, as a call of a method of `model`.

        Only of a class that trains, or whose object `is_told` the mode by its maker or in a method.
        """
        targets = small.targets if isinstance(small, cst.Assign) else ()
        target = targets[0].target if len(targets) == 1 else None
        made = class_of(self.project, self.file, value.func) if isinstance(target, cst.Name) else None
        if not isinstance(target, cst.Name) or made is None or made[1].decorators or target.value in self.made:
            return None
        methods = methods_by_name(self.project, *made)
        method = methods.get("__init__") if methods is not None else None
        if methods is None or method is None:
            return None
        trains = any(touches_training(self.project, *one) for one in methods.values())
        open_ended = any(takes_any(one) for _, one in methods.values())
        if not trains and (open_ended or not is_told(target.value, value)):
            return None
        constants = _constants(self.project, with_bases(self.project, *made))
        self.made[target.value] = Made(value, *made, constants)
        func = self._same(value.func, cst.Attribute(cst.Name(target.value), cst.Name("__init__")))
        return method, self._same(value, value.with_changes(func=func))

    def method(self, func: cst.BaseExpression) -> Helper | None:
        """The method of such an object that an expression means; None where it means something else."""
        if isinstance(func, cst.Name):
            func = cst.Attribute(func, cst.Name("__call__"))
        if not isinstance(func, cst.Attribute) or not isinstance(func.value, cst.Name):
            return None
        made = self.made.get(func.value.value)
        if made is None:
            return None
        name, _, of = func.attr.value.partition(_OF)
        owners = with_bases(self.project, made.file, made.of)
        owner = next((one for one in owners if one[1].name.value == of), owners[0])
        methods = methods_by_name(self.project, *owner)
        return methods.get(name) if methods is not None else None

    def classes(self) -> tuple[tuple[ParsedFile, cst.ClassDef], ...]:
        """The classes of the objects, and their bases."""
        found = [one for made in self.made.values() for one in with_bases(self.project, made.file, made.of)]
        return tuple(dict.fromkeys(found))

    def with_properties_called(self, line: cst.SimpleStatementLine) -> cst.SimpleStatementLine:
        """A line with properties of the objects as calls of their methods."""
        if not self.made.keys() & names_in(line):
            return line
        new = transformed(line, _PropertiesCalled(self._is_property, self.same))
        assert isinstance(new, cst.SimpleStatementLine)
        return line if new is line else self._same(line, new)

    def with_bases_named(
        self, file: ParsedFile, method: cst.FunctionDef, body: Sequence[cst.BaseStatement]
    ) -> Sequence[cst.BaseStatement]:
        """The statements of a method with `super().run()` as a call that says of which class this is."""
        scope = Scope.of(self.project, file, method)
        owner = next((one for one in reversed(scope.around) if isinstance(one, cst.ClassDef)), None)
        bases = with_bases(self.project, file, owner)[1:] if owner is not None else []
        if not bases:
            return body
        writer = _BasesNamed(scope, bases[0][1].name.value, self.same)
        return [cast(cst.BaseStatement, statement.visit(writer)) for statement in body]

    def _is_property(self, node: cst.Attribute) -> bool:
        if not isinstance(node.value, cst.Name) or node.value.value not in self.made:
            return False
        method = self.method(node)
        return method is not None and decorators_of(method[1]) == {"property"}

    def _same(self, old: cst.CSTNode, new: _Node) -> _Node:
        self.same(old, new)
        return new


def records(project: Project, file: ParsedFile) -> Callable[[cst.Call], Record | None]:
    """What tells of a call in a file which named tuple or namespace it makes."""
    if not any(word in one.bare for one in project.files for word in _RECORDS):
        return lambda call: None

    def record(call: cst.Call) -> Record | None:
        resolved = file.imports.resolve(call.func) or ""
        if resolved in _NAMESPACES:
            return Record((), True)
        made = class_of(project, file, call.func)
        if made is not None:
            bases = [made[0].imports.resolve(base.value) for base in made[1].bases]
            plain = bases == ["typing.NamedTuple"] and not made[1].decorators
            return Record(tuple(_annotated(made[1])), False) if plain else None
        where: ParsedFile | None = file
        name = call.func.value if isinstance(call.func, cst.Name) else ""
        if "." in resolved:
            module, _, name = resolved.rpartition(".")
            where = project.sibling(file, module)
        given = [value for one, value in assignments(where.module) if one == name] if where is not None and name else []
        if where is None or len(given) != 1 or not _is_named_tuple(where, given[0]):
            return None
        fields = _fields(given[0])
        return Record(fields, False) if fields is not None else None

    return record


def decorators_of(helper: cst.FunctionDef) -> set[str]:
    """The names of the decorators of a function; fewer than these are where one is no name."""
    return {d.decorator.value for d in helper.decorators if isinstance(d.decorator, cst.Name)}


def takes_any(method: cst.FunctionDef) -> bool:
    """Whether a method takes any further arguments, `*args` or `**kwargs`."""
    return method.params.star_kwarg is not None or isinstance(method.params.star_arg, cst.Param)


def _annotated(owner: cst.ClassDef) -> list[str]:
    """The names that a class annotates, in their order."""
    smalls = [small for line in owner.body.body if isinstance(line, cst.SimpleStatementLine) for small in line.body]
    targets = [small.target for small in smalls if isinstance(small, cst.AnnAssign)]
    return [target.value for target in targets if isinstance(target, cst.Name)]


def _is_named_tuple(file: ParsedFile, node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and file.imports.resolve(node.func) == "collections.namedtuple"


def _fields(node: cst.BaseExpression) -> tuple[str, ...] | None:
    """The fields of `namedtuple("Name", "first second")`, where they are written out and nothing else is said."""
    assert isinstance(node, cst.Call)
    known = Record(("typename", "field_names"), False)
    given = {parameter(arg, index, known): arg.value for index, arg in enumerate(node.args) if not arg.star}
    if len(node.args) != 2 or set(given) != set(known.fields):
        return None
    said = given["field_names"]
    text = string(said)
    if text is not None:
        return tuple(text.replace(",", " ").split())
    if not isinstance(said, (cst.List, cst.Tuple)):
        return None
    names = [string(element.value) for element in said.elements]
    return tuple(name for name in names if name is not None) if None not in names else None


def _constants(project: Project, classes: Sequence[tuple[ParsedFile, cst.ClassDef]]) -> dict[str, cst.BaseExpression]:
    """The literals that classes have for attributes, where nothing in the project gives such an attribute a value."""
    found: dict[str, cst.BaseExpression] = {}
    for _, owner in reversed(classes):
        found |= {name: value for name, value in assignments(owner.body) if _is_literal(value)}
    return {name: value for name, value in found.items() if not any(_gives(file, name) for file in project.files)}


def _gives(file: ParsedFile, name: str) -> bool:
    """Whether something in a file gives an attribute of a name a value."""
    if f".{name}" not in file.text:
        return "setattr" in file.text
    return any(_is_given(file.parents.get(one), one) for one in attributes_named(file.module, name))


def _is_given(above: cst.CSTNode | None, node: cst.CSTNode) -> bool:
    if isinstance(above, (cst.For, cst.CompFor)):
        return above.target is node
    return isinstance(above, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.Element, cst.Del, cst.AsName))


def _is_literal(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.Tuple):
        return all(_is_literal(element.value) for element in node.elements)
    if isinstance(node, cst.Name):
        return node.value in ("True", "False", "None")
    return isinstance(node, (cst.Integer, cst.Float, cst.SimpleString)) or (
        isinstance(node, cst.UnaryOperation) and _is_literal(node.expression)
    )


class _PropertiesCalled(Following):
    """Properties of objects that the model_fn makes, as calls of their methods."""

    def __init__(
        self, is_property: Callable[[cst.Attribute], bool], same: Callable[[cst.CSTNode, cst.CSTNode], object]
    ) -> None:
        super().__init__(same)
        self.is_property = is_property
        self.called: set[cst.CSTNode] = set()

    def visit_Call(self, node: cst.Call) -> None:
        self.called.add(node.func)

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        if original_node in self.called or not self.is_property(original_node):
            return updated_node
        return cst.Call(updated_node)


class _BasesNamed(Following):
    """`super().run()` in a method, as a call of the object's method `run` of the base."""

    def __init__(self, scope: Scope, base: str, same: Callable[[cst.CSTNode, cst.CSTNode], object]) -> None:
        super().__init__(same)
        self.scope = scope
        self.base = base

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        this = self.scope.of_parent(original_node.value)
        if this is None:
            return updated_node
        return updated_node.with_changes(value=this, attr=cst.Name(f"{updated_node.attr.value}{_OF}{self.base}"))


__all__ = ["Made", "OwnObjects", "decorators_of", "records", "takes_any"]
