"""The binding table: every way in which Python 3.12 gives a name a value, where it does so, and in which scope.

Whoever asks which names a piece of code assigns asks here, so that no reader knows fewer forms than another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Any

import libcst as cst

from migrator.names.annotated import AssignTarget
from migrator.walking import names_below, walk


class Form(Enum):
    """How a name is bound."""

    ASSIGNED = "an assignment"
    ANNOTATED = "an annotated assignment"
    DECLARED = "an annotation without a value"
    AUGMENTED = "an augmented assignment"
    WALRUS = "an assignment expression"
    LOOP = "a for loop"
    COMPREHENSION = "a comprehension"
    CONTEXT = "a with statement"
    EXCEPTION = "an except clause"
    CAPTURED = "a match statement"
    IMPORTED = "an import"
    FUNCTION = "a def statement"
    CLASS = "a class statement"
    PARAMETER = "a parameter"
    DELETED = "a del statement"
    SCOPED = "a global or nonlocal statement"
    TYPE = "a type statement"
    TYPE_PARAMETER = "a type parameter"
    PART = "an assignment to a part of it"
    CALLED = "a method that is called for what it does"


_PARTS = (Form.PART, Form.CALLED)
_COMPREHENSIONS = (cst.GeneratorExp, cst.ListComp, cst.SetComp, cst.DictComp)
_SCOPES = (cst.FunctionDef, cst.Lambda, cst.ClassDef, *_COMPREHENSIONS)


@dataclass(frozen=True)
class Binding:
    """A name and the node that binds it.

    `place` is the name itself, where it stands (None for the first part of a dotted import), and `form` the way.
    `scope` is the function, lambda, class, comprehension or list of type parameters that the name belongs to; None
    where it is the scope that the code which was looked at stands in: the module's, for a module. `within` is the one
    whose code binds it, which is another where it is declared `global` or `nonlocal`. `target` is what stands on the
    left: the name, or the part of it (`x.y`, `x[0]`) that is changed. `value` is what the target as a whole is given,
    where that is one expression.

    `origin` is the dotted name that an import gives it; `is_global` says that the name is one of the module (of a
    declaration: that it is `global`, not `nonlocal`), and
    `is_plain` that it is bound by `name = value` directly in the module's body.
    """

    name: str
    node: cst.CSTNode
    origin: str | None
    level: int
    is_global: bool
    is_plain: bool
    form: Form
    place: cst.Name | None = None
    scope: cst.CSTNode | None = None
    value: cst.BaseExpression | None = None
    target: cst.BaseExpression | None = None
    within: cst.CSTNode | None = None


def dotted(node: cst.BaseExpression | None) -> str | None:
    """`a.b.c` for a chain of attributes on a name, else None."""
    # By classes, which have none derived from them: isinstance takes its time for abstract ones.
    part: Any = node
    parts: list[str] = []
    while type(part) is cst.Attribute:
        parts.append(part.attr.value)
        part = part.value
    if type(part) is not cst.Name:
        return None
    parts.append(part.value)
    return ".".join(reversed(parts))


def read_bindings(module: cst.CSTNode) -> list[Binding]:
    """All bindings of a module (or another node) in the order of its text, those inside functions included."""
    return [binding for binding in _read(module) if binding.form not in _PARTS]


def bound_by(*nodes: cst.CSTNode) -> list[Binding]:
    """What executing some code may bind in the scope that it stands in.

    The names of functions and classes count and what is inside them does not, unless it is declared `nonlocal` or
    `global`. Comprehensions have their own names, but what a walrus in them binds belongs to the scope around.
    """
    return [binding for node in nodes for binding in _read(node) if binding.scope is None and _binds(binding)]


def bound_in(scope: cst.CSTNode) -> list[Binding]:
    """The bindings of the names of a module, or those of a function, lambda, class or comprehension: its own ones."""
    own = None if isinstance(scope, cst.Module) else scope
    return [binding for binding in _read(scope) if binding.scope is own and _binds(binding)]


def owns(scope: cst.CSTNode, name: str) -> bool:
    """Whether a function, lambda, class or comprehension has a name of its own, which hides that of the code around."""
    return isinstance(scope, _SCOPES) and any(binding.name == name for binding in bound_in(scope))


def hidden_in(node: cst.CSTNode, name: str) -> set[cst.CSTNode]:
    """The functions' bodies and parameters, lambdas and comprehensions below a node in which a name is another one.

    What Python evaluates outside of them is none of these: decorators, defaults, the data of a comprehension.
    """
    finder = _Hiding(node, name)
    walk(node, finder)
    return finder.found


class _Hiding(cst.CSTVisitor):
    def __init__(self, top: cst.CSTNode, name: str) -> None:
        super().__init__()
        self.top = top
        self.name = name
        self.found: set[cst.CSTNode] = set()

    def _function(self, node: cst.FunctionDef | cst.Lambda) -> bool:
        if node is self.top or not owns(node, self.name):
            return True
        self.found.add(node.body)
        for parameter in _parameters(node.params):
            self.found.add(parameter.name)
            if parameter.default is not None:
                walk(parameter.default, self)
        return False

    visit_FunctionDef = visit_Lambda = _function

    def _comprehension(self, node: cst.GeneratorExp | cst.ListComp | cst.SetComp | cst.DictComp) -> bool:
        if node is self.top or not owns(node, self.name):
            return True
        parts = (node.key, node.value) if isinstance(node, cst.DictComp) else (node.elt,)
        inner = [] if node.for_in.inner_for_in is None else [node.for_in.inner_for_in]
        self.found.update((*parts, node.for_in.target, *node.for_in.ifs, *inner))
        walk(node.for_in.iter, self)
        return False

    visit_GeneratorExp = visit_ListComp = visit_SetComp = visit_DictComp = _comprehension


def names_bound(nodes: Iterable[cst.CSTNode]) -> set[str]:
    """The names of `bound_by`."""
    return {binding.name for binding in bound_by(*nodes)}


def names_changed(nodes: Iterable[cst.CSTNode]) -> set[str]:
    """The names of `bound_by`, and those that `x[...] = ...` and `x.y = ...` change the values of."""
    found = [binding for node in nodes for binding in _read(node) if binding.scope is None]
    return {binding.name for binding in found if _binds(binding) or binding.form is Form.PART}


def changes_in(scope: cst.CSTNode) -> list[Binding]:
    """What the code of a scope, or of a statement, does to names: it binds them, or changes what they stand for.

    `x[...] = ...`, `x.y = ...` and the statement `x.method(...)` change `x`. Functions and classes inside are left out
    but for their names.
    """
    own = scope if isinstance(scope, (cst.FunctionDef, cst.Lambda)) else None
    known = _read(scope)
    return [b for b in known if b.within is own and b.form not in (Form.SCOPED, Form.DECLARED, Form.COMPREHENSION)]


def values_given(node: cst.CSTNode, name: str) -> list[cst.BaseExpression]:
    """The expressions that a name is given as a whole anywhere in some code, functions inside included."""
    found = [b.value for b in _read(node) if b.name == name and b.form is not Form.PART]
    return [value for value in found if value is not None]


def names_read(node: cst.CSTNode) -> set[str]:
    """The names that some code reads, functions inside included; those of attributes and keywords are none."""
    return {name.value for name in _reads(node)}


def asks_for(node: cst.CSTNode, name: str) -> bool:
    """Whether some code names a variable otherwise than to delete it."""
    deleted = {binding.place for binding in _read(node) if binding.form is Form.DELETED}
    return any(one.value == name and one not in deleted for one in names_below(node))


def free_reads(node: cst.CSTNode) -> list[cst.Name]:
    """Where `names_read` reads names of the code around, and not own ones of functions and comprehensions."""
    found = _reads(node)
    own = {
        inner
        for name in {read.value for read in found}
        for part in hidden_in(node, name)
        for inner in names_below(part)
        if inner.value == name
    }
    return [read for read in found if read not in own]


@lru_cache(maxsize=4096)
def _reads(node: cst.CSTNode) -> tuple[cst.Name, ...]:
    reader = _Names()
    walk(node, reader)
    uses = (Form.AUGMENTED, Form.DELETED, *_PARTS)  # a name that is deleted must have a value
    bound = {binding.place for binding in _read(node) if binding.form not in uses}
    return tuple(name for name in reader.found if name not in bound)


class _Names(cst.CSTVisitor):
    """All names but those of attributes, keywords, modules and fields of patterns."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[cst.Name] = []

    def visit_Name(self, node: cst.Name) -> None:
        self.found.append(node)

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        walk(node.value, self)
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        walk(node.value, self)
        return False

    def visit_MatchKeywordElement(self, node: cst.MatchKeywordElement) -> bool:
        walk(node.pattern, self)
        return False

    def visit_Import(self, node: cst.Import) -> bool:
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False


def all_given(node: cst.CSTNode) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """The names and parts of names that are given one expression as a whole anywhere in some code, and the values."""
    return [(b.target, b.value) for b in _read(node) if b.target is not None and b.value is not None]


def value_given(node: cst.CSTNode, target: cst.CSTNode) -> cst.BaseExpression | None:
    """What a target in some code is given as a whole, where that is one expression."""
    return next((binding.value for binding in _read(node) if binding.target is target), None)


def _binds(binding: Binding) -> bool:
    return binding.form not in (Form.SCOPED, Form.DECLARED, *_PARTS)


@lru_cache(maxsize=4096)
def _read(module: cst.CSTNode) -> tuple[Binding, ...]:
    lines = module.body if isinstance(module, cst.Module) else ()
    top = {small for line in lines if isinstance(line, cst.SimpleStatementLine) for small in line.body}
    binder = _Binder(top)
    walk(module, binder)
    return tuple(binder.resolved())


@dataclass(frozen=True)
class _Outside:
    """A name that is declared as that of another scope, and the scopes around, the innermost last."""

    is_global: bool
    scopes: tuple[cst.CSTNode, ...]


class _Binder(cst.CSTVisitor):
    def __init__(self, top: set[cst.BaseSmallStatement]) -> None:
        super().__init__()
        self.top = top
        self.found: list[tuple[Binding, _Outside | None]] = []
        self.scopes: list[cst.CSTNode] = []
        self.declared: dict[tuple[cst.CSTNode | None, str], bool] = {}  # and whether global

    def resolved(self) -> list[Binding]:
        """The bindings, those of names that are declared `nonlocal` in the scope that has them."""
        own = {(binding.scope, binding.name) for binding, outside in self.found if outside is None and _binds(binding)}
        found = []
        for binding, outside in self.found:
            if outside is not None:
                scope = None
                for around in () if outside.is_global else reversed(outside.scopes):
                    if isinstance(around, (cst.FunctionDef, cst.Lambda)) and (around, binding.name) in own:
                        scope = around
                        break
                binding = replace(binding, scope=scope, is_global=scope is None)
            found.append(binding)
        return found

    def _add(
        self,
        name: str,
        node: cst.CSTNode,
        form: Form,
        place: cst.Name | None = None,
        value: cst.BaseExpression | None = None,
        origin: str | None = None,
        level: int = 0,
        target: cst.BaseExpression | None = None,
    ) -> None:
        around = self.scopes
        within = around[-1] if around else None
        if form is Form.WALRUS:
            while around and isinstance(around[-1], _COMPREHENSIONS):
                around = around[:-1]
            within = around[-1] if around else None
        scope = around[-1] if around else None
        outside = None
        declared = self.declared.get((scope, name))
        if declared is not None and form is not Form.SCOPED:
            outside = _Outside(declared, tuple(around[:-1]))
        plain = form in (Form.ASSIGNED, Form.ANNOTATED) and node in self.top and value is not None
        target = place if target is None else target
        binding = Binding(name, node, origin, level, scope is None, plain, form, place, scope, value, target, within)
        self.found.append((binding, outside))

    def _target(
        self, target: cst.BaseExpression, node: cst.CSTNode, form: Form, value: cst.BaseExpression | None = None
    ) -> None:
        if isinstance(target, cst.Name):
            self._add(target.value, node, form, target, value)
        elif isinstance(target, (cst.Tuple, cst.List)):
            for element in target.elements:
                self._target(element.value, node, form)
        elif isinstance(target, cst.StarredElement):
            self._target(target.value, node, form)
        else:
            root = target
            while isinstance(root, (cst.Attribute, cst.Subscript)):
                root = root.value
            if isinstance(root, cst.Name):
                self._add(root.value, node, form if form is Form.CALLED else Form.PART, root, value, target=target)

    def visit_Expr(self, node: cst.Expr) -> None:
        if isinstance(node.value, cst.Call) and isinstance(node.value.func, cst.Attribute):
            self._target(node.value.func, node, Form.CALLED)

    def visit_Assign(self, node: cst.Assign) -> None:
        for target in node.targets:
            form = Form.ANNOTATED if isinstance(target, AssignTarget) else Form.ASSIGNED
            self._target(target.target, node, form, node.value)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        self._target(node.target, node, Form.DECLARED if node.value is None else Form.ANNOTATED, node.value)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self._target(node.target, node, Form.AUGMENTED)

    def visit_NamedExpr(self, node: cst.NamedExpr) -> None:
        self._target(node.target, node, Form.WALRUS, node.value)

    def visit_For(self, node: cst.For) -> None:
        self._target(node.target, node, Form.LOOP)

    def visit_Del(self, node: cst.Del) -> None:
        self._target(node.target, node, Form.DELETED)

    def visit_WithItem(self, node: cst.WithItem) -> None:
        if node.asname is not None:
            self._target(node.asname.name, node, Form.CONTEXT)

    def _caught(self, node: cst.ExceptHandler | cst.ExceptStarHandler) -> None:
        if node.name is not None:
            self._target(node.name.name, node.name, Form.EXCEPTION)

    visit_ExceptHandler = visit_ExceptStarHandler = _caught

    def visit_MatchAs(self, node: cst.MatchAs) -> None:
        if node.name is not None:
            self._add(node.name.value, node, Form.CAPTURED, node.name)

    def visit_MatchStar(self, node: cst.MatchStar) -> None:
        if node.name is not None:
            self._add(node.name.value, node, Form.CAPTURED, node.name)

    def visit_MatchMapping(self, node: cst.MatchMapping) -> None:
        if node.rest is not None:
            self._add(node.rest.value, node, Form.CAPTURED, node.rest)

    def visit_Import(self, node: cst.Import) -> bool:
        for alias in node.names:
            origin = dotted(alias.name) or ""
            if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
                self._add(alias.asname.name.value, node, Form.IMPORTED, alias.asname.name, origin=origin)
            else:
                head = origin.partition(".")[0]
                self._add(head, node, Form.IMPORTED, None, origin=head, target=alias.name)
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        aliases: Sequence[cst.ImportAlias] = () if isinstance(node.names, cst.ImportStar) else node.names
        origin = dotted(node.module) or ""
        for alias in aliases:
            name = alias.name.value if isinstance(alias.name, cst.Name) else ""
            as_name = alias.asname.name if alias.asname and isinstance(alias.asname.name, cst.Name) else None
            place = as_name or (alias.name if isinstance(alias.name, cst.Name) else None)
            whole = f"{origin}.{name}" if origin else name
            local = as_name.value if as_name is not None else name
            self._add(local, node, Form.IMPORTED, place, None, whole, len(node.relative))
        return False

    def _declare(self, node: cst.Global | cst.Nonlocal) -> None:
        for item in node.names:
            self.declared[self.scopes[-1] if self.scopes else None, item.name.value] = isinstance(node, cst.Global)
            is_global = isinstance(node, cst.Global)
            binding = Binding(item.name.value, item, None, 0, is_global, False, Form.SCOPED, item.name)
            self.found.append((replace(binding, scope=self.scopes[-1] if self.scopes else None), None))

    visit_Global = visit_Nonlocal = _declare

    def visit_TypeAlias(self, node: cst.TypeAlias) -> bool:
        self._add(node.name.value, node, Form.TYPE, node.name)
        self._type_parameters(node.type_parameters)
        walk(node.value, self)
        self._leave_type_parameters(node.type_parameters)
        return False

    def _type_parameters(self, node: cst.TypeParameters | None) -> None:
        if node is None:
            return
        self.scopes.append(node)
        for one in node.params:
            self._add(one.param.name.value, one, Form.TYPE_PARAMETER, one.param.name)
            walk(one, self)

    def _leave_type_parameters(self, node: cst.TypeParameters | None) -> None:
        if node is not None:
            self.scopes.pop()

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        self._add(node.name.value, node, Form.FUNCTION, node.name)
        for decorator in node.decorators:
            walk(decorator, self)
        for parameter in _parameters(node.params):
            if parameter.default is not None:
                walk(parameter.default, self)
        self._type_parameters(node.type_parameters)
        annotations = [parameter.annotation for parameter in _parameters(node.params)]
        for annotation in (*annotations, node.returns):
            if annotation is not None:
                walk(annotation, self)
        self._function(node, node.params, node.body)
        self._leave_type_parameters(node.type_parameters)
        return False

    def visit_Lambda(self, node: cst.Lambda) -> bool:
        for parameter in _parameters(node.params):
            if parameter.default is not None:
                walk(parameter.default, self)
        self._function(node, node.params, node.body)
        return False

    def _function(self, node: cst.FunctionDef | cst.Lambda, params: cst.Parameters, body: cst.CSTNode) -> None:
        self.scopes.append(node)
        for parameter in _parameters(params):
            self._add(parameter.name.value, parameter, Form.PARAMETER, parameter.name)
        walk(body, self)
        self.scopes.pop()

    def visit_Param(self, node: cst.Param) -> None:
        self._add(node.name.value, node, Form.PARAMETER, node.name)  # one that is looked at without its function

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        self._add(node.name.value, node, Form.CLASS, node.name)
        for decorator in node.decorators:
            walk(decorator, self)
        self._type_parameters(node.type_parameters)
        for argument in (*node.bases, *node.keywords):
            walk(argument, self)
        self.scopes.append(node)
        walk(node.body, self)
        self.scopes.pop()
        self._leave_type_parameters(node.type_parameters)
        return False

    def _comprehension(self, node: cst.GeneratorExp | cst.ListComp | cst.SetComp | cst.DictComp) -> bool:
        walk(node.for_in.iter, self)  # the first one is evaluated outside
        self.scopes.append(node)
        for part in (node.key, node.value) if isinstance(node, cst.DictComp) else (node.elt,):
            walk(part, self)
        self._loops(node.for_in, first=True)
        self.scopes.pop()
        return False

    def _loops(self, node: cst.CompFor, first: bool = False) -> None:
        self._target(node.target, node, Form.COMPREHENSION)
        if not first:
            walk(node.iter, self)
        for condition in node.ifs:
            walk(condition, self)
        if node.inner_for_in is not None:
            self._loops(node.inner_for_in)

    visit_GeneratorExp = visit_ListComp = visit_SetComp = visit_DictComp = _comprehension

    def visit_CompFor(self, node: cst.CompFor) -> bool:
        self._loops(node)  # one that is looked at without its comprehension
        return False


def _parameters(params: cst.Parameters) -> list[cst.Param]:
    stars = [one for one in (params.star_arg, params.star_kwarg) if isinstance(one, cst.Param)]
    return [*params.posonly_params, *params.params, *params.kwonly_params, *stars]
