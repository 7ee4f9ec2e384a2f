"""Whether every Keras layer of a model_fn that does something else in training is told about it.

What is made must be called, by itself or in a model, in calls of which that is known; all else is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import libcst as cst

from migrator.program import keras_calls
from migrator.program.calls import classes_in
from migrator.program.helpers import HelperPlan, Scope, Unit
from migrator.program.modes import ModeNames
from migrator.program.parsed import Blocked, ParsedFile, Project, name_nodes
from migrator.program.scopes import bindings, parents_below
from migrator.walking import own_of_kinds, walk

_UNTOLD = (
    "cannot tell whether this Keras layer is active in training: create and call it in the "
    "model_fn, with `training=`, or use `tf.layers`"
)
# Attributes of a Keras layer or model that call none.
_HARMLESS = frozenset(
    (
        *("add", "summary", "trainable_variables", "trainable_weights", "variables", "weights", "name", "losses"),
        *("updates", "get_updates_for", "get_losses_for"),
    )
)
Part = tuple[ParsedFile, cst.CSTNode]


#: What gives a name a meaning.
_DEFINING = (cst.FunctionDef, cst.ClassDef, cst.Assign)


def plan_model(
    plan: HelperPlan,
    project: Project,
    scope: Scope,
    names: ModeNames,
    nodes: Sequence[cst.CSTNode],
    apart: Collection[cst.FunctionDef] = (),
) -> None:
    """Plans the code of a model_fn; `apart` are functions that are in it. Raises Blocked (TFM122, TFM404, TFM405)."""
    left_out = [*scope.around[-1:], *apart]
    parts = _reached(project, scope, nodes, left_out)
    functional = any(keras_calls.mentions(file, node, keras_calls.INPUTS, left_out) for file, node in parts)
    plan.add(project, scope, names, nodes, functional)
    for file, node in parts:
        keras_calls.check_terms(file, node)
    _tell_models(plan)
    settling = _Settling(plan)
    for unit in plan.units:
        for node in unit.nodes:
            wanted = {*keras_calls.PHASED, *(keras_calls.FUNCTIONALS if plan.symbolic else ())}
            for found in keras_calls.mentions(unit.scope.file, node, wanted):
                if not settling.is_settled(unit, found):
                    raise Blocked("TFM404", found, _UNTOLD)
    looked_at = {*plan.visited, *plan.own_classes, *nodes, *left_out}
    for file, node in parts:
        found_elsewhere = keras_calls.mentions(file, node, keras_calls.PHASED, looked_at)
        if found_elsewhere:
            raise Blocked("TFM404", found_elsewhere[0], _UNTOLD)


def _tell_models(plan: HelperPlan) -> None:
    """Says of models that are made of layers on Keras inputs that they do not train. Raises Blocked (TFM404)."""
    for (file, code), call, flagged in plan.models:
        if not keras_calls.mentions(file, code, keras_calls.FUNCTIONALS):
            continue
        if plan.flagged and (plan.symbolic or (call in plan.settled and not flagged)):
            message = (
                "some layers of this Keras model are active in training, others are not: pass `training=` to each call"
            )
            raise Blocked("TFM404", call, message)
        if plan.symbolic and call not in plan.settled:
            plan.settled.add(call)
            plan.untold.add(call)


def _definitions(nodes: Sequence[cst.CSTNode]) -> dict[str, list[cst.CSTNode]]:
    """What gives names a meaning, what is inside of functions and classes left out."""
    found: dict[str, list[cst.CSTNode]] = {}
    for node in nodes:
        for one in own_of_kinds(node, *_DEFINING, inner=_DEFINING, enter=False):
            if isinstance(one, cst.Assign):
                for name in (name for target in one.targets for name in name_nodes(target.target)):
                    found.setdefault(name.value, []).append(one.value)
            else:
                found.setdefault(one.name.value, []).append(one)
    return found


def _methods(file: ParsedFile) -> dict[str, list[cst.CSTNode]]:
    statements = [s for owner in classes_in(file.module) for s in owner.body.body if isinstance(s, cst.FunctionDef)]
    found: dict[str, list[cst.CSTNode]] = {}
    for function in statements:
        if not function.name.value.startswith("__"):
            found.setdefault(function.name.value, []).append(function)
    return found


class _Names(cst.CSTVisitor):
    """The names that code reads, and the attributes that it calls."""

    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self.names: set[str] = set()
        self.methods: set[str] = set()

    def visit_Arg(self, node: cst.Arg) -> bool:
        walk(node.value, self)
        return False

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        if self.file.imports.tensorflow(node) is None:
            origin = self.file.imports.resolve(node)
            if origin is not None:
                self.names.add(origin.rpartition(".")[2])
            walk(node.value, self)
        return False

    def visit_Name(self, node: cst.Name) -> None:
        if self.file.imports.tensorflow(node) is None:
            self.names |= {node.value, (self.file.imports.resolve(node) or node.value).rpartition(".")[2]}

    def visit_Call(self, node: cst.Call) -> None:
        if isinstance(node.func, cst.Attribute) and self.file.imports.tensorflow(node.func) is None:
            self.methods.add(node.func.attr.value)


def _reached(
    project: Project, scope: Scope, nodes: Sequence[cst.CSTNode], left_out: Sequence[cst.CSTNode]
) -> list[Part]:
    """The code that some code may come to, itself first: by the names that it reads, and the methods it calls."""
    near: dict[Path, list[ParsedFile]] = {}
    top: dict[Path, tuple[Mapping[str, list[cst.CSTNode]], Mapping[str, list[cst.CSTNode]]]] = {}
    around = [n for outer in scope.around[:-1] for n in _inside(outer)]
    inner = _definitions(around)
    found: list[Part] = [(scope.file, node) for node in nodes]
    for owner in scope.around[:-1]:
        if isinstance(owner, cst.ClassDef):
            found += [(scope.file, f) for f in _inside(owner) if _is_start(f)]
    for file, node in found:  # which grows
        names = _Names(file)
        walk(node, names)
        new = [(scope.file, one) for name in names.names for one in inner.get(name, ())]
        own = next((f for f in (*reversed(scope.around), node) if isinstance(f, cst.FunctionDef)), None)
        own = node if isinstance(node, cst.FunctionDef) else own if node in nodes else None
        local = {name for name, _ in bindings(own)} if own is not None else set()
        if file.path not in near:
            near[file.path] = _near(project, file)
        for other in near[file.path]:
            if other.path not in top:
                top[other.path] = _definitions(other.module.body), _methods(other)
            defined, methods = top[other.path]
            new += [(other, one) for name in names.names - local for one in defined.get(name, ())]
            new += [(other, one) for name in names.methods for one in methods.get(name, ())]
        known = {id(one) for _, one in found} | {id(one) for one in left_out}
        unique = {id(part[1]): part for part in new if id(part[1]) not in known}
        found += unique.values()
    return found


def _near(project: Project, file: ParsedFile) -> list[ParsedFile]:
    """A file, and the given files that it imports."""
    modules = {part for name in file.imports.names.values() for part in (name, name.rpartition(".")[0]) if part}
    found = [project.sibling(file, module) for module in sorted(modules)]
    return list({other.path: other for other in (file, *found) if other is not None}.values())


def _inside(node: cst.CSTNode) -> Sequence[cst.CSTNode]:
    return node.body.body if isinstance(node, (cst.FunctionDef, cst.ClassDef)) else ()


def _is_start(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.FunctionDef) and node.name.value == "__init__"


@dataclass(frozen=True)
class _Settling:
    """Whether what makes Keras layers is called in calls that are settled, and in no other."""

    plan: HelperPlan

    @cached_property
    def parents(self) -> Mapping[cst.CSTNode, cst.CSTNode]:
        nodes = [node for unit in self.plan.units for node in unit.nodes]
        return {below: above for node in nodes for below, above in parents_below(node).items()}

    def is_settled(self, unit: Unit, symbol: cst.BaseExpression) -> bool:
        """Whether what the class makes that is meant here is told about the training."""
        above = self.parents.get(symbol)
        if isinstance(above, cst.Assign):  # a local name of the class, which is followed
            return all(unit.scope.file.imports.tensorflow(target.target) is not None for target in above.targets)
        return isinstance(above, cst.Call) and above.func is symbol and self._used(unit, above, frozenset())

    def _used(self, unit: Unit, node: cst.BaseExpression, seen: frozenset[cst.CSTNode]) -> bool:
        """Whether a layer or model, where it stands, comes to settled calls only."""
        above = self.parents.get(node)
        if node in seen or above is None:
            return False
        seen = seen | {node}
        if isinstance(above, cst.Call):
            return above.func is node and above in self.plan.settled
        if isinstance(above, cst.Attribute):
            return above.attr.value in _HARMLESS
        if isinstance(above, cst.Assign):
            return all(self._named(unit, above.value, target.target, seen) for target in above.targets)
        if isinstance(above, cst.Return):
            return self._returned(unit, above, seen)
        if isinstance(above, cst.Element):
            above = self.parents.get(self.parents[above])
        holder = self.parents.get(above) if isinstance(above, cst.Arg) else None
        if not isinstance(holder, cst.Call):
            return False
        if keras_calls.makes_sequential(unit.scope.file, holder):
            return self._used(unit, holder, seen)
        if isinstance(holder.func, cst.Attribute) and holder.func.attr.value == "add":
            model = keras_calls.one_value(unit.nodes, holder.func.value)
            if model is not None and keras_calls.makes_sequential(unit.scope.file, model):
                return self._used(unit, model, seen)
        return False

    def _named(
        self, unit: Unit, value: cst.BaseExpression, target: cst.BaseExpression, seen: frozenset[cst.CSTNode]
    ) -> bool:
        """Whether all that reads the name which is given to a layer or model comes to settled calls only."""
        if not isinstance(target, cst.Name) or keras_calls.one_value(unit.nodes, target) is not value:
            return False
        bound = [n for node in unit.nodes for one, n in bindings(node) if one == target.value]
        if any(isinstance(n, cst.Name) and n is not target for n in bound):
            return False
        reads = [n for node in unit.nodes for n in name_nodes(node) if n.value == target.value and n is not target]
        return all(self._used(unit, name, seen) for name in reads)

    def _returned(self, unit: Unit, statement: cst.Return, seen: frozenset[cst.CSTNode]) -> bool:
        """Whether every call of the function that returns a layer or model comes to settled calls only."""
        inner = next((n for n in self._above(statement) if isinstance(n, (cst.FunctionDef, cst.Lambda))), None)
        function = inner if inner is not None else unit.scope.around[-1]
        callers = self.plan.callers.get(function, []) if isinstance(function, cst.FunctionDef) else []
        if not isinstance(function, cst.FunctionDef) or not callers:
            return False
        called = {id(call.func) for _, call in callers}
        for one in self.plan.units:
            for name in (n for node in one.nodes for n in name_nodes(node) if n.value == function.name.value):
                if id(name) not in called and not isinstance(self.parents.get(name), cst.FunctionDef):
                    return False
        return all(self._used(where, call, seen) for where, call in callers)

    def _above(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        above = self.parents.get(node)
        while above is not None:
            yield above
            above = self.parents.get(above)
