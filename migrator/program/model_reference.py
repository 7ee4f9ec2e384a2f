"""Which function the `model_fn=` of an Estimator means, and how the new program calls it.

A model_fn is a function of the file or of a module beside it, a function inside another one, a method, what a builder
returns, a `functools.partial`, a lambda that calls one of these, or another name for any of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import libcst as cst

from migrator.names.bindings import all_given, asks_for, value_given
from migrator.names.imports import dotted, missing_file
from migrator.program.body import Parameters
from migrator.program.calls import parameters_of
from migrator.program.flow import Calls, Mentioning, Parents, class_of, decorators, method_of
from migrator.program.parsed import Blocked, ParsedFile, Project, names_in
from migrator.program.scopes import Binding, always_returns, bindings, path_to, returns_in

_ROLES = ("mode", "params", "config")
_DEPTH = 8  # names, partials and builders followed one after the other; more is a circle
_DECORATORS = ("staticmethod", "classmethod", "configurable", "typechecked", "no_type_check")
_MOST = 12  # model_fns that one Estimator may choose from


@dataclass(frozen=True)
class ModelReference:
    """A model_fn, found: `function` of `file`, and how the driver calls what becomes of it.

    `callee` is the expression to call, in the driver's file. `template` are the arguments of a call that a lambda
    made in place, as (keyword, value), where "features" and "params" stand for what Estimator gives; None for the
    usual ones, followed by `more`, the arguments of a partial in place. `explained` are mentions that the new program
    keeps correct, `aliases` the other names of the function with their scopes, `builders` the functions it is made by,
    `methods` the names of methods among these. `lambdas` is what lambdas that stay become, with their files. A `ready`
    one is no function but a Keras model that the driver has already, which `callee` names.
    """

    file: ParsedFile
    function: cst.FunctionDef
    parameters: Parameters
    callee: cst.BaseExpression
    template: tuple[tuple[str | None, str | cst.BaseExpression], ...] | None = None
    more: tuple[cst.Arg, ...] = ()
    explained: frozenset[cst.CSTNode] = frozenset()
    aliases: tuple[tuple[ParsedFile, cst.CSTNode, str], ...] = ()
    builders: tuple[tuple[ParsedFile, cst.FunctionDef], ...] = ()
    methods: tuple[str, ...] = ()
    lambdas: dict[cst.CSTNode, tuple[ParsedFile, cst.BaseExpression]] = field(default_factory=dict)
    ready: bool = False

    @property
    def reads_labels(self) -> bool:
        """Whether the model_fn asks for labels: the datasets of one that does not may have none."""
        labels = self.parameters.labels
        return labels is not None and asks_for(self.function.body, labels)


def read_parameters(node: cst.FunctionDef, given: frozenset[str] = frozenset(), is_method: bool = False) -> Parameters:
    """The roles of a model_fn's parameters, which Estimator passes by name.

    An older one passed features and labels by position, whatever they were called.
    """
    stars = [one.name.value for one in (node.params.star_arg, node.params.star_kwarg) if isinstance(one, cst.Param)]
    if not names_in(node.body).isdisjoint(stars):
        raise Blocked("TFM105", node.params, "the model_fn has * or ** parameters: name them")
    names = [p.name.value for p in parameters_of(node)]
    if is_method:
        names = names[1:]
    if given & {"mode", "labels"}:
        raise Blocked(
            "TFM105", node.params, "a partial or lambda binds the model_fn's `mode` or `labels`: Estimator passes these"
        )
    open_names = [n for n in names if n not in given]
    if not open_names:
        raise Blocked("TFM105", node, "the model_fn has no parameters")
    features = "features" if "features" in open_names else open_names[0]
    second = open_names[1] if len(open_names) > 1 and open_names[1] not in (*_ROLES, features) else None
    labels = "labels" if "labels" in open_names else second
    roles = {role: (role if role in open_names else None) for role in _ROLES}
    known = {features, labels, *roles.values()}
    unknown = [n for n in open_names if n not in known]
    if unknown:
        raise Blocked(
            "TFM105",
            node.params,
            (
                f"the model_fn has a parameter `{unknown[0]}` that Estimator does not pass: bind it "
                "with functools.partial"
            ),
        )
    before = [n for n in open_names[: open_names.index(features)] if n not in ("mode", labels)]
    if before:
        message = f"the model_fn takes `{before[0]}` before its features: put the features first"
        raise Blocked("TFM105", node.params, message)
    return Parameters(features, labels, roles["mode"], roles["params"], roles["config"], given & set(names))


def find_models(
    project: Project, mentioning: Mentioning, file: ParsedFile, place: cst.CSTNode, reference: cst.BaseExpression
) -> list[ModelReference]:
    """The model_fns that `reference` may mean in the call `place`. Raises Blocked (TFM104, TFM105).

    There are several where a condition or a key chooses, or where the function around is called with several.
    """
    pending: list[dict[cst.CSTNode, int]] = [{}]
    found: list[ModelReference] = []
    while pending:
        finder = _Finder(project, mentioning, pending.pop(0))
        one = finder.expression(file, _around(file, place), reference, 0).reference(reference)
        known = dict(finder.chosen)
        for key, count in finder.met.items():
            pending += [{**known, key: index} for index in range(1, count)]
            known[key] = 0
        same = next((other for other in found if other.function is one.function), None)
        if same is None:
            found.append(one)
        else:
            found[found.index(same)] = _merged(same, one, reference)
        if len(found) + len(pending) > _MOST:
            raise Blocked("TFM104", reference, "too many candidates for the model_fn: pass the function itself")
    return found


def _merged(one: ModelReference, other: ModelReference, reference: cst.BaseExpression) -> ModelReference:
    """The same function, come to in two ways."""
    if one.parameters != other.parameters or (one.template is None) is not (other.template is None):
        raise Blocked("TFM105", reference, "the same model_fn is passed with different arguments")
    return replace(
        one,
        explained=one.explained | other.explained,
        aliases=(*one.aliases, *other.aliases),
        builders=tuple(dict.fromkeys((*one.builders, *other.builders))),
        methods=tuple(dict.fromkeys((*one.methods, *other.methods))),
        lambdas={**one.lambdas, **other.lambdas},
    )


def _around(file: ParsedFile, node: cst.CSTNode) -> list[cst.CSTNode]:
    """The functions and classes around a node, outermost first."""
    return [n for n in path_to(file.module, node) if isinstance(n, (cst.FunctionDef, cst.ClassDef)) and n is not node]


@dataclass(frozen=True)
class _Found:
    """A function with some of its parameters filled in, on the way to a ModelReference."""

    file: ParsedFile
    function: cst.FunctionDef
    is_method: bool = False
    given: frozenset[str] = frozenset()
    roles: Parameters | None = None
    callee: cst.BaseExpression | None = None  # None: what was asked for
    template: tuple[tuple[str | None, str | cst.BaseExpression], ...] | None = None
    more: tuple[cst.Arg, ...] = ()
    explained: frozenset[cst.CSTNode] = frozenset()
    aliases: tuple[tuple[ParsedFile, cst.CSTNode, str], ...] = ()
    builders: tuple[tuple[ParsedFile, cst.FunctionDef], ...] = ()
    methods: tuple[str, ...] = ()
    lambdas: dict[cst.CSTNode, tuple[ParsedFile, cst.BaseExpression]] = field(default_factory=dict)

    def reference(self, asked: cst.BaseExpression) -> ModelReference:
        for decorator in self.function.decorators:
            made = decorator.decorator
            name = dotted(made.func if isinstance(made, cst.Call) else made)
            if (name or "").rpartition(".")[2] not in _DECORATORS:
                message = "the model_fn has a decorator, and what it does with the arguments cannot be resolved"
                raise Blocked("TFM104", self.function, message)
        parameters = self.roles or read_parameters(self.function, self.given, self.is_method)
        return ModelReference(
            self.file,
            self.function,
            parameters,
            self.callee if self.callee is not None else asked,
            self.template,
            self.more,
            self.explained,
            self.aliases,
            self.builders,
            self.methods,
            self.lambdas,
        )

    def kept(self, node: cst.BaseExpression) -> _Found:
        """The same behind an expression that stays in the program, and is what is called."""
        return replace(self, callee=node, template=None, more=())


class _Finder:
    """Looks for a model_fn; `chosen` says which of several values to take, `met` counts those of other places."""

    def __init__(self, project: Project, mentioning: Mentioning, chosen: dict[cst.CSTNode, int]) -> None:
        self.project = project
        self.parents = Parents()
        self.calls = Calls(project, mentioning, self.parents)
        self.chosen = chosen
        self.met: dict[cst.CSTNode, int] = {}

    def _choose(self, place: cst.CSTNode, count: int) -> int:
        """Which of several values to take at a place."""
        if count < 2:
            return 0
        if place not in self.chosen:
            self.met[place] = count
        return self.chosen.get(place, 0)

    def expression(
        self, file: ParsedFile, around: Sequence[cst.CSTNode], node: cst.BaseExpression, depth: int
    ) -> _Found:
        if depth > _DEPTH:
            raise Blocked("TFM104", node, "the model_fn is passed through too many names: pass the function itself")
        if isinstance(node, cst.Name):
            return self._name(file, around, node, depth)
        if isinstance(node, cst.Attribute):
            return self._attribute(file, around, node, depth)
        if isinstance(node, cst.Call):
            if file.imports.resolve(node.func) == "functools.partial":
                return self._partial(file, around, node, depth)
            return self._built(file, around, node, depth)
        if isinstance(node, cst.Lambda):
            return self._lambda(file, around, node, depth)
        if isinstance(node, cst.IfExp):
            value = (node.body, node.orelse)[self._choose(node, 2)]
            return self._one_of(file, around, node, value, depth)
        if isinstance(node, cst.Subscript):
            return self._registered(file, around, node, depth)
        raise Blocked("TFM104", node, "the model_fn is not a function, a partial, a lambda or a builder's call")

    def _one_of(
        self,
        file: ParsedFile,
        around: Sequence[cst.CSTNode],
        node: cst.BaseExpression,
        value: cst.BaseExpression,
        depth: int,
    ) -> _Found:
        """What `node` means when its value is `value`."""
        found = self.expression(file, around, value, depth + 1)
        if isinstance(value, cst.Lambda):
            found = self._lambda_stays(file, found, value)
        callee = node
        if isinstance(node, cst.IfExp) and not node.lpar:
            callee = node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        return replace(found.kept(callee), explained=found.explained | {value, node})

    def _registered(self, file: ParsedFile, around: Sequence[cst.CSTNode], node: cst.Subscript, depth: int) -> _Found:
        """`MODELS[name]`: any value of the dict."""
        table = node.value
        where = file
        if isinstance(table, cst.Name):
            scopes = [*reversed([n for n in around if isinstance(n, cst.FunctionDef)]), file.module]
            values = [v for scope in scopes for v in _dicts(scope, table.value)]
            given = [b for scope in scopes for b in bindings(scope) if b[0] == table.value]
            if len(values) == 1 and len(given) == 1:
                table = values[0]
        elif isinstance(table, cst.Attribute):
            module, _, name = (file.imports.resolve(table) or "").rpartition(".")
            other = self.project.sibling(file, module) if module else None
            if other is not None and isinstance(other.constants.get(name), cst.Dict):
                where, table, around = other, other.constants[name], ()
        if isinstance(table, cst.Name):
            module, _, name = (file.imports.resolve(table) or "").rpartition(".")
            other = self.project.sibling(file, module) if module else None
            if other is not None and isinstance(other.constants.get(name), cst.Dict):
                where, table, around = other, other.constants[name], ()
        if not isinstance(table, cst.Dict) or not table.elements:
            raise Blocked("TFM104", node, "the model_fn is looked up in something other than a dict of functions")
        if any(isinstance(e, cst.StarredDictElement) for e in table.elements):
            raise Blocked(
                "TFM104", node, "the model_fn is looked up in a dict that is merged from others: write one literal"
            )
        value = table.elements[self._choose(table, len(table.elements))].value
        return self._one_of(where, around, node, value, depth)

    # -- names -----------------------------------------------------------------------------------------------------

    def _name(self, file: ParsedFile, around: Sequence[cst.CSTNode], node: cst.Name, depth: int) -> _Found:
        for index in range(len(around) - 1, -1, -1):
            scope = around[index]
            if isinstance(scope, cst.FunctionDef):
                bound = [b for b in bindings(scope) if b[0] == node.value and b[1] is not scope]
                if bound and _imported(bound[0][1], file, node.value):
                    break
                if bound:
                    return self._bound(file, around[: index + 1], scope, bound, node, depth)
        bound = [b for b in bindings(file.module) if b[0] == node.value]
        if bound and not _imported(bound[0][1], file, node.value):
            return self._bound(file, (), file.module, bound, node, depth)
        found = self.project.function(file, node)
        if found is not None:
            return _Found(*found)
        module, _, name = (file.imports.resolve(node) or "").rpartition(".")
        other = self.project.sibling(file, module) if module else None
        if other is not None and other is not file:
            bound = [b for b in bindings(other.module) if b[0] == name]
            if bound and not _imported(bound[0][1], other, name):
                asked = node if name == node.value else cst.Name(name)
                return self._bound(other, (), other.module, bound, asked, depth + 1)
        raise _not_found(file, node)

    def _bound(
        self,
        file: ParsedFile,
        around: Sequence[cst.CSTNode],
        scope: cst.CSTNode,
        bound: Sequence[Binding],
        node: cst.Name,
        depth: int,
    ) -> _Found:
        if len(bound) != 1:
            every = [_value_given(scope, by) for _, by in bound]
            if any(v is None or node.value in names_in(v) for v in every) or not isinstance(bound[0][1], cst.Name):
                raise Blocked(
                    "TFM104", node, f"`{node.value}` is assigned more than once: cannot tell which is the model_fn"
                )
        by = bound[self._choose(bound[0][1], len(bound))][1]
        if isinstance(by, cst.Param) and isinstance(scope, cst.FunctionDef):
            return self._parameter(file, around, scope, node, depth)
        if isinstance(by, cst.FunctionDef):
            at_top = file.functions.get(node.value) is by
            return _Found(file, by, aliases=() if at_top else ((file, scope, node.value),))
        value = _value_given(scope, by)
        if value is None:
            raise Blocked("TFM104", node, f"`{node.value}` cannot be resolved to a function in the given files")
        found = self.expression(file, around, value, depth + 1)
        if isinstance(value, cst.Lambda):
            found = self._lambda_stays(file, found, value)
        explained = found.explained | {value}
        return replace(found.kept(node), explained=explained, aliases=(*found.aliases, (file, scope, node.value)))

    def _parameter(
        self,
        file: ParsedFile,
        around: Sequence[cst.CSTNode],
        function: cst.FunctionDef,
        node: cst.Name,
        depth: int,
    ) -> _Found:
        """A parameter: what the calls of its function give for it."""
        try:
            given = [
                (where, call, self.calls.argument(file, function, call, node.value))
                for where, call in self.calls.of(file, function)
                if isinstance(call, cst.Call)
            ]
        except Blocked as problem:
            message = f"`{node.value}` cannot be resolved: {problem.message}"
            raise Blocked("TFM104", node, message) from problem
        values: list[tuple[ParsedFile, cst.CSTNode, cst.BaseExpression]]
        values = [(where, call, value) for where, call, value in given if value is not None]
        default = next((p.default for p in parameters_of(function) if p.name.value == node.value), None)
        if len(values) != len(given) and default is not None:
            values.append((file, function, default))
        if not values:
            name = function.name.value
            message = f"`{node.value}` is an argument of `{name}`, which is never called in the given files"
            raise Blocked("TFM104", node, message)
        key = next(p for p in parameters_of(function) if p.name.value == node.value)
        where, place, value = values[self._choose(key, len(values))]
        found = self.expression(where, _around(where, place), value, depth + 1)
        if isinstance(value, cst.Lambda):
            found = self._lambda_stays(where, found, value)
        return replace(
            found.kept(node),
            explained=found.explained | {value},
            aliases=(*found.aliases, (file, function, node.value)),
        )

    def _kept_in_object(self, file: ParsedFile, owner: cst.ClassDef, node: cst.Attribute, depth: int) -> _Found | None:
        """`self.model_fn`, where the methods of the class give it a value."""
        values = self._kept(file, owner, node.attr.value)
        if not values:
            return None
        where, value = values[self._choose(owner, len(values))]
        found = self.expression(file, _around(file, where), value, depth + 1)
        if isinstance(value, cst.Lambda):
            found = self._lambda_stays(file, found, value)
        return replace(found.kept(node), explained=found.explained | {value})

    def _kept(
        self, file: ParsedFile, owner: cst.ClassDef, name: str
    ) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
        """What the methods of a class give an attribute of its objects, each with the object where it is given."""
        given = [(where, v) for where, v in all_given(owner) if isinstance(where, cst.Attribute)]
        kept = [(where.value, value) for where, value in given if where.attr.value == name]
        return [(where, value) for where, value in kept if self.parents.own_class(file, where) is owner]

    def _callable(self, file: ParsedFile, around: Sequence[cst.CSTNode], node: cst.Call) -> _Found | None:
        """An object that can be called: its `__call__` is the model_fn."""
        made = class_of(self.project, file, node.func)
        if made is None:
            return None
        found = method_of(self.project, *made, "__call__")
        if found is None:
            message = f"the model_fn is an instance of `{made[1].name.value}`, which has no `__call__`"
            raise Blocked("TFM104", node, message)
        where, method = found
        if method.decorators:
            raise Blocked("TFM104", method, "the model_fn is a method with a decorator")
        return _Found(where, method, is_method=True).kept(node)

    def _attribute(self, file: ParsedFile, around: Sequence[cst.CSTNode], node: cst.Attribute, depth: int) -> _Found:
        found = self.project.function(file, node)
        if found is not None:
            return _Found(*found)
        owner = self._class(file, around, node.value, depth)
        if owner is None:
            raise _not_found(file, node)
        where, of, through_instance = owner
        meant = method_of(self.project, where, of, node.attr.value)
        if meant is None and through_instance:
            kept = self._kept_in_object(where, of, node, depth)
            if kept is not None:
                return kept
        if meant is None:
            message = f"`{of.name.value}` has no method `{node.attr.value}`, or a subclass overrides it"
            raise Blocked("TFM104", node, message)
        where, method = meant
        kinds = {d.decorator.value for d in method.decorators if isinstance(d.decorator, cst.Name)}
        if method.decorators and kinds not in ({"staticmethod"}, {"classmethod"}):
            raise Blocked("TFM104", method, "the model_fn is a method with a decorator")
        if not kinds and not through_instance:
            raise Blocked(
                "TFM104",
                node,
                ("the model_fn is a method of a class, without an instance: create one, or make it a function"),
            )
        return _Found(where, method, is_method=kinds != {"staticmethod"}, methods=(node.attr.value,))

    def _class(
        self, file: ParsedFile, around: Sequence[cst.CSTNode], node: cst.BaseExpression, depth: int
    ) -> tuple[ParsedFile, cst.ClassDef, bool] | None:
        """The class of an expression, or the class that it names; whether it is an object of the class."""
        if depth > _DEPTH:
            return None
        if isinstance(node, cst.Call):
            made = self._class(file, around, node.func, depth + 1)
            if made is None:
                return self._class_returned(file, node, depth)
            return None if made[2] else (made[0], made[1], True)
        if isinstance(node, (cst.BooleanOperation, cst.IfExp)):
            either = (node.left, node.right) if isinstance(node, cst.BooleanOperation) else (node.body, node.orelse)
            return self._class(file, around, either[self._choose(node, 2)], depth + 1)
        if isinstance(node, cst.Attribute):
            return self._class_kept(file, node, depth)
        if not isinstance(node, cst.Name):
            return None
        for index in range(len(around) - 1, 0, -1):
            function, owner = around[index], around[index - 1]
            if isinstance(function, cst.FunctionDef) and isinstance(owner, cst.ClassDef):
                first = [p.name.value for p in function.params.params[:1]]
                kinds = decorators(function)
                if first == [node.value] and "staticmethod" not in kinds:
                    return file, owner, "classmethod" not in kinds
        for scope in (*reversed([n for n in around if isinstance(n, cst.FunctionDef)]), file.module):
            bound = [b for b in bindings(scope) if b[0] == node.value and not isinstance(b[1], cst.Attribute)]
            if not bound or _imported(bound[0][1], file, node.value):
                continue
            if len(bound) != 1 and any(_value_given(scope, by) is None for _, by in bound):
                return None
            by = bound[self._choose(bound[0][1], len(bound))][1]
            if isinstance(by, cst.ClassDef):
                return file, by, False
            if isinstance(by, cst.Param) and isinstance(scope, cst.FunctionDef):
                return self._class_given(file, scope, node, depth)
            value = _value_given(scope, by)
            return self._class(file, around, value, depth + 1) if value is not None else None
        return self._imported_class(file, node)

    def _class_kept(
        self, file: ParsedFile, node: cst.Attribute, depth: int
    ) -> tuple[ParsedFile, cst.ClassDef, bool] | None:
        """The class of `self.model`, where the methods of the class around give that attribute a value."""
        owner = self.parents.own_class(file, node.value)
        values = [] if owner is None else self._kept(file, owner, node.attr.value)
        if owner is None or not values or self._is_given_outside(owner, node.attr.value):
            return None
        where, value = values[self._choose(node, len(values))]
        return self._class(file, _around(file, where), value, depth + 1)

    def _class_returned(
        self, file: ParsedFile, node: cst.Call, depth: int
    ) -> tuple[ParsedFile, cst.ClassDef, bool] | None:
        """The class of what a function of the project returns."""
        made = self.project.function(file, node.func)
        if made is None or made[1].decorators or not always_returns(made[1].body):
            return None
        where, function = made
        returns = returns_in(function.body)
        value = returns[self._choose(function, len(returns))].value
        return None if value is None else self._class(where, _around(where, value), value, depth + 1)

    def _is_given_outside(self, owner: cst.ClassDef, name: str) -> bool:
        """Whether code that is no method gives an attribute of this name a value, of whatever object, or a class does
        that is derived from its own."""
        for file in self.calls.mentioning([name]):
            for where, _ in all_given(file.module):
                if isinstance(where, cst.Attribute) and where.attr.value == name:
                    own = self.parents.own_class(file, where.value)
                    bases = [] if own is None else [(dotted(base.value) or "").rpartition(".")[2] for base in own.bases]
                    if own is None or owner.name.value in bases:
                        return True
        return False

    def _class_given(
        self, file: ParsedFile, function: cst.FunctionDef, node: cst.Name, depth: int
    ) -> tuple[ParsedFile, cst.ClassDef, bool] | None:
        """The class of what the calls of a function give for a parameter; None where one gives nothing."""
        try:
            calls = [(where, call) for where, call in self.calls.of(file, function) if isinstance(call, cst.Call)]
            given = [(where, call, self.calls.argument(file, function, call, node.value)) for where, call in calls]
        except Blocked as problem:
            message = f"`{node.value}` cannot be resolved: {problem.message}"
            raise Blocked("TFM104", node, message) from problem
        if not given:
            return None
        where, call, value = given[self._choose(function, len(given))]
        return None if value is None else self._class(where, _around(where, call), value, depth + 1)

    def _imported_class(self, file: ParsedFile, node: cst.Name) -> tuple[ParsedFile, cst.ClassDef, bool] | None:
        module, _, name = (file.imports.resolve(node) or "").rpartition(".")
        other = self.project.sibling(file, module) if module else None
        if other is None:
            return None
        classes = [s for s in other.module.body if isinstance(s, cst.ClassDef) and s.name.value == name]
        return (other, classes[0], False) if len(classes) == 1 else None

    # -- what makes a function of a function -----------------------------------------------------------------------

    def _partial(self, file: ParsedFile, around: Sequence[cst.CSTNode], node: cst.Call, depth: int) -> _Found:
        if not node.args or node.args[0].keyword is not None or any(a.star for a in node.args):
            raise Blocked("TFM104", node, "this partial cannot be resolved: pass the function itself")
        if any(arg.keyword is None for arg in node.args[1:]):
            raise Blocked(
                "TFM105", node, "the partial binds positional arguments in place of the features: bind them by keyword"
            )
        inner = self.expression(file, around, node.args[0].value, depth + 1)
        if inner.template is not None:
            raise Blocked("TFM104", node, "a partial of a lambda is unsupported: pass the function itself")
        callee = inner.callee if inner.callee is not None else node.args[0].value
        return replace(
            inner,
            given=inner.given | {arg.keyword.value for arg in node.args[1:] if arg.keyword is not None},
            callee=callee,
            more=(*inner.more, *node.args[1:]),
            explained=inner.explained | {node.args[0].value},
        )

    def _built(self, file: ParsedFile, around: Sequence[cst.CSTNode], node: cst.Call, depth: int) -> _Found:
        made = self._callable(file, around, node)
        if made is not None:
            return made
        maker = self.expression(file, around, node.func, depth + 1)
        if maker.callee is not None or not isinstance(maker.function.body, cst.IndentedBlock):
            raise Blocked("TFM104", node, "cannot tell which model_fn this call returns: pass the function itself")
        returns = returns_in(maker.function.body)
        if not returns or not always_returns(maker.function.body):
            raise Blocked("TFM104", node, "the function that builds the model_fn does not always return one")
        value = returns[self._choose(maker.function.body, len(returns))].value
        if value is None:
            raise Blocked("TFM104", node, "the function that builds the model_fn returns nothing")
        inside = [*_around(maker.file, maker.function), maker.function]
        found = self.expression(maker.file, inside, value, depth + 1)
        if isinstance(value, cst.Lambda):
            found = self._lambda_stays(maker.file, found, value)
        explained = found.explained | maker.explained | {value, node.func}
        aliases = (*found.aliases, *maker.aliases)
        builders = (*found.builders, *maker.builders, (maker.file, maker.function))
        methods = (*found.methods, *maker.methods)
        found = replace(found, explained=explained, aliases=aliases, builders=builders, methods=methods)
        return found.kept(node)

    def _lambda(self, file: ParsedFile, around: Sequence[cst.CSTNode], node: cst.Lambda, depth: int) -> _Found:
        names = [p.name.value for p in node.params.params]
        if node.params.kwonly_params or node.params.star_kwarg or isinstance(node.params.star_arg, cst.Param):
            raise Blocked(
                "TFM105", node, "the model_fn is a lambda with * or keyword-only parameters: make it a function"
            )
        if not isinstance(node.body, cst.Call) or not names or any(a.star for a in node.body.args):
            raise Blocked(
                "TFM104", node, "the model_fn is a lambda that does more than call a function: make it a function"
            )
        if any(p.default is not None for p in node.params.params):
            raise Blocked("TFM105", node, "the model_fn is a lambda with a default value: make it a function")
        inner = self.expression(file, around, node.body.func, depth + 1)
        if inner.template is not None or inner.roles is not None:
            raise Blocked("TFM104", node, "a lambda of a lambda is unsupported: pass the function itself")
        labels = "labels" if "labels" in names else next((n for n in names[1:2] if n not in _ROLES), None)
        meaning = {names[0]: "features", **{role: role for role in _ROLES}}
        if labels is not None:
            meaning[labels] = "labels"
        if any(name not in meaning for name in names):
            raise Blocked("TFM105", node, "the lambda has a parameter that Estimator does not pass")
        meaning = {name: role for name, role in meaning.items() if name in names}
        own = [p.name.value for p in (*inner.function.params.params, *inner.function.params.kwonly_params)]
        positional = [p.name.value for p in inner.function.params.params]
        if inner.is_method:
            own, positional = own[1:], positional[1:]
        roles: dict[str, str] = {}
        given = set(inner.given)
        template: list[tuple[str | None, str | cst.BaseExpression]] = []
        for index, arg in enumerate(node.body.args):
            if arg.keyword is None and index >= len(positional):
                raise Blocked("TFM105", node, "the lambda passes the model_fn more arguments than it has parameters")
            name = positional[index] if arg.keyword is None else arg.keyword.value
            keyword = None if arg.keyword is None else arg.keyword.value
            role = meaning.get(arg.value.value) if isinstance(arg.value, cst.Name) else None
            if role is not None:
                if role in roles:
                    raise Blocked("TFM105", arg, f"the lambda passes its {role} twice")
                roles[role] = name
                if role in ("features", "params"):
                    template.append((keyword, role))
            elif names_in(arg.value) & meaning.keys():
                raise Blocked(
                    "TFM105", arg, "the lambda computes something from what Estimator passes: make it a function"
                )
            else:
                given.add(name)
                template.append((keyword, arg.value))
        every = (*inner.function.params.params, *inner.function.params.kwonly_params)
        needed = {p.name.value for p in every if p.default is None} & set(own)
        missing = needed - given - set(roles.values())
        if missing or "features" not in roles:
            raise Blocked("TFM105", node, "the lambda does not pass the model_fn all its arguments")
        parameters = Parameters(
            roles["features"],
            roles.get("labels"),
            roles.get("mode"),
            roles.get("params"),
            roles.get("config"),
            frozenset(own) - set(roles.values()),
        )
        return replace(
            inner,
            roles=parameters,
            callee=inner.callee if inner.callee is not None else node.body.func,
            template=(*template, *((a.keyword.value if a.keyword else None, a.value) for a in inner.more)),
            more=(),
            explained=inner.explained | {node.body.func},
        )

    def _lambda_stays(self, file: ParsedFile, found: _Found, node: cst.Lambda) -> _Found:
        """A lambda that is not written in the Estimator's call: it takes features and params afterwards."""
        assert isinstance(node.body, cst.Call) and found.roles is not None
        names = [p.name.value for p in node.params.params]
        labels = "labels" if "labels" in names else next((n for n in names[1:2] if n not in _ROLES), None)
        gone = {labels, "mode", "config"}
        args = [a for a in node.body.args if not (isinstance(a.value, cst.Name) and a.value.value in gone)]
        used = {a.value.value for a in args if isinstance(a.value, cst.Name)}
        params = [p for p in node.params.params if p.name.value in used]
        params[-1] = params[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        args[-1] = args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        new = node.with_changes(params=node.params.with_changes(params=params), body=node.body.with_changes(args=args))
        return replace(found, lambdas={**found.lambdas, node: (file, new)})


def _imported(bound: cst.CSTNode, file: ParsedFile, name: str) -> bool:
    """Whether a binding of a name at the top of a file is its import."""
    return (
        name in file.imports.names
        and isinstance(bound, (cst.Name, cst.Attribute))
        and (name not in file.functions and name not in file.constants)
    )


def _value_given(scope: cst.CSTNode, target: cst.CSTNode) -> cst.BaseExpression | None:
    """What a name in a scope is given; None for a part of it."""
    return value_given(scope, target) if isinstance(target, cst.Name) else None


def _dicts(scope: cst.CSTNode, name: str) -> list[cst.Dict]:
    """The dict displays that a name is given in a scope."""
    found = []
    for bound, node in bindings(scope):
        value = _value_given(scope, node) if bound == name else None
        if isinstance(value, cst.Dict):
            found.append(value)
    return found


def _not_found(file: ParsedFile, node: cst.Name | cst.Attribute) -> Blocked:
    """Why a model_fn, or what makes one, is not known."""
    if (file.imports.resolve(node) or "").endswith("contrib.estimator.replicate_model_fn"):
        message = (
            "replicate_model_fn runs the model_fn on several GPUs: give the Estimator the model_fn "
            "itself, remove TowerOptimizer, and migrate with `--strategy mirrored --loop custom`, "
            "whose replicas divide each batch as well (with "
            "`RunConfig(train_distribute=tf.distribute.MirroredStrategy())` each takes one)"
        )
        return Blocked("TFM104", node, message)
    told = missing_file(file.imports, node)
    return Blocked("TFM104", node, f"the model_fn is not a function in the given files{told}")
