"""The optimizer of a model_fn: the calls that make it, whatever names, wrappers or functions they go through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

from migrator.ir.values import Constant, Either, Function, Method, Operation, Value, alternatives
from migrator.program.calls import bind
from migrator.program.parsed import Blocked
from migrator.program.scopes import path_to
from migrator.program.train_body import TrainBody
from migrator.program.trained import Trained
from migrator.query.gradients import named
from migrator.rules.optimizers import is_optimizer
from migrator.rules.schedules import GLOBAL_STEPS
from migrator.walking import walk

_SHARDED = ("tf.contrib.tpu.CrossShardOptimizer", "tf.tpu.CrossShardOptimizer")
_CLIPPING = "tf.contrib.estimator.clip_gradients_by_norm"
WRAPPERS = (*_SHARDED, _CLIPPING)


@dataclass(frozen=True)
class Clipping:
    """Gradients are clipped: the Keras argument that does the same, and its value."""

    argument: str
    value: cst.BaseExpression


@dataclass(frozen=True)
class Helper:
    """A function that makes an optimizer; one that is bound has its first parameter, the object, already."""

    node: cst.FunctionDef
    is_bound: bool

    @property
    def parameters(self) -> list[str]:
        """The names of what a call gives it, in their order."""
        return [one.name.value for one in self.node.params.params][self.is_bound :]


@dataclass(frozen=True)
class MadeOptimizer:
    """The optimizer that something is asked of: the calls that make it, and the expression for it in the model_fn."""

    operations: tuple[Operation, ...]
    node: cst.BaseExpression
    index: int | None
    at: int
    made: tuple[cst.Call, ...]
    clipping: Clipping | None = None
    place: cst.CSTNode | None = None
    helper: Helper | None = None
    call: cst.Call | None = None
    kept: bool = False  # it is made around the model_fn


@dataclass
class Optimizers:
    """Says which optimizer a value of a model_fn is."""

    body: TrainBody
    trained: Trained
    read_at: dict[cst.CSTNode, int] = field(default_factory=dict)  # the statements that read what is written elsewhere

    def _operations(self, value: Value | None) -> tuple[Operation, ...] | None:
        """The calls that make an optimizer; None where a value is none, and nothing where another object has it."""
        found: list[Operation] = []
        for one in alternatives(value) if value is not None else ():
            inner = self._unwrapped(one)
            if isinstance(inner, Either):
                more = self._operations(inner)
                if not more:
                    return None
                found += more
            elif isinstance(inner, Operation) and is_optimizer(inner.symbol):
                found.append(inner)
            else:
                return None
        return tuple(dict.fromkeys(found)) if found else None

    def _unwrapped(self, value: Value) -> Value:
        while isinstance(value, Operation) and (value.symbol in _SHARDED or value.symbol == _CLIPPING):
            if value.symbol in _SHARDED and len(value.args) + len(value.kwargs) != 1:
                raise Blocked("TFM401", self._place(value), "this CrossShardOptimizer cannot be resolved")
            inner = value.argument(0, "opt", "optimizer")
            if inner is None or isinstance(inner, Constant):
                raise Blocked("TFM401", self._place(value), "this CrossShardOptimizer cannot be resolved")
            value = inner
        found = self._of_checkpoint(value)
        return found if found is not None else value

    def _wrapping(self, value: Value) -> list[Operation]:
        """The calls around an optimizer that clip its gradients."""
        found = []
        for one in alternatives(value):
            while isinstance(one, Operation) and (one.symbol in _SHARDED or one.symbol == _CLIPPING):
                found += [one] if one.symbol == _CLIPPING else []
                one = one.argument(0, "opt", "optimizer") or one
        return list(dict.fromkeys(found))

    def _optimizer(self, value: Value, node: cst.CSTNode | None) -> MadeOptimizer | None:
        """The optimizer whose method a call is, or that a call is given."""
        receiver = node.func.value if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) else node
        operations = self._operations(value)
        if operations is None:
            return self._of_class(value, receiver)
        assert isinstance(receiver, cst.BaseExpression)
        indices = {self.trained.at.get(one) for one in operations}
        if indices == {None}:
            place = operations[0].site.node if operations[0].site is not None else None
            return MadeOptimizer(operations, receiver, None, 0, (), place=place, kept=True)
        if len(indices) != 1:
            return None
        [index] = indices
        assert index is not None
        clipping = self._clipping_around(value)
        nodes = [self.trained.node(one) for one in operations]
        helper = self._helper(operations, nodes)
        made = tuple(one for one in nodes if isinstance(one, cst.Call))
        if helper is None:
            if len(made) != len(nodes) or any(not is_optimizer(self._resolve(one)) for one in made):
                return None
            if any(one.site is not None and one.site.frame is not None for one in operations):
                return None
        names = [
            name
            for name, one in (self.trained.done[index].given.items() if index in self.trained.done else ())
            if self._operations(one) == operations and not self._wrapping(one)
        ]
        if isinstance(receiver, cst.Name) and receiver.value in names:
            names = [receiver.value]
        call = made[0]
        expression: cst.BaseExpression = cst.Name(names[0]) if names else call if len(made) == 1 or helper else receiver
        self.read_at.setdefault(expression, index)
        for one in made:
            self.read_at.setdefault(one, index)
        return MadeOptimizer(
            operations,
            expression,
            index if names else None,
            index,
            () if helper is not None else made,
            clipping,
            helper=helper,
            call=call if helper is not None else None,
        )

    def _helper(self, operations: Sequence[Operation], nodes: Sequence[cst.CSTNode | None]) -> Helper | None:
        """The function or method of the file that makes an optimizer, where one does."""
        if not all(one.site is not None and one.site.frame is not None for one in operations):
            return None
        if any(one is not nodes[0] for one in nodes) or not isinstance(nodes[0], cst.Call):
            return None
        called = self.trained.value(nodes[0].func)
        function = called.function if isinstance(called, Method) else called
        if not isinstance(function, Function) or not isinstance(function.node, cst.FunctionDef):
            return None
        return Helper(function.node, is_bound=isinstance(called, Method))

    def _clipping_around(self, value: Value) -> Clipping | None:
        found = None
        for one in self._wrapping(value):
            node = self.trained.node(one)
            bound = bind(node, ("optimizer", "clip_norm"), _CLIPPING, "TFM403") if isinstance(node, cst.Call) else {}
            if "clip_norm" not in bound or found is not None:
                message = "the optimizer whose gradients are clipped cannot be resolved"
                raise Blocked("TFM401", self._place(one), message)
            found = Clipping("global_clipnorm", bound["clip_norm"])
            self.read_at.setdefault(found.value, self.trained.at.get(one, self.trained.end))
        return found

    def _of_class(self, value: Value, node: cst.CSTNode | None) -> MadeOptimizer | None:
        """`self.optimizer` of the class around the model_fn."""
        if not isinstance(node, cst.Attribute) or not isinstance(node.value, cst.Name):
            return None
        file, function = self.body.file.home(self.body.function)
        around = path_to(file.module, function) if function is not None else []
        owner = next((n for n in reversed(around) if isinstance(n, cst.ClassDef)), None)
        if owner is None or self._resolve(node) is not None:
            return None
        method = next(n for n in around[around.index(owner) + 1 :] if isinstance(n, cst.FunctionDef))
        if [p.name.value for p in method.params.params][:1] != [node.value.value]:
            return None
        given = _Stored(node.attr.value)
        walk(owner, given)
        if len(given.found) != 1 or not isinstance(given.found[0][1], cst.Call):
            return None
        maker, made = given.found[0]
        if not isinstance(made, cst.Call) or maker != "__init__" or not is_optimizer(self._resolve(made)):
            return None
        return MadeOptimizer((), node, None, 0, (), place=made, kept=True)

    def _is_of_keras(self, optimizer: MadeOptimizer) -> bool:
        symbols = [one.symbol for one in optimizer.operations]
        return bool(symbols) and all(name.startswith(("tf.keras.", "tf.optimizers.")) for name in symbols)

    def _is_step(self, value: Value | None) -> bool:
        value = self._of_checkpoint(value)
        return isinstance(value, Operation) and value.symbol in GLOBAL_STEPS

    def _of_checkpoint(self, value: Value | None) -> Value | None:
        """What an attribute of a `tf.train.Checkpoint` is."""
        if named_symbol(value) == "getattr" and isinstance(value, Operation):
            owner, name = value.args
            if isinstance(owner, Operation) and owner.symbol == "tf.train.Checkpoint":
                return owner.kwargs.get(named(name), value)
        return value

    def _resolve(self, node: cst.CSTNode) -> str | None:
        func = node.func if isinstance(node, cst.Call) else node
        return self.body.imports.resolve(func) if isinstance(func, cst.BaseExpression) else None

    def _place(self, operation: Operation) -> cst.CSTNode:
        return self.trained.node(operation) or self.body.function.name


class _Stored(cst.CSTVisitor):
    """What the methods of a class give to `self.name`: the method, and the value (None where it is no assignment)."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.found: list[tuple[str, cst.BaseExpression | None]] = []
        self._methods: list[str] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._methods.append(node.name.value)

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        self._methods.pop()

    def visit_Assign(self, node: cst.Assign) -> None:
        for target in node.targets:
            if isinstance(target.target, (cst.Tuple, cst.List)):
                inner = [e.value for e in target.target.elements]
                self.found += [("", None) for one in inner if self._is_it(one)]
            elif self._is_it(target.target):
                self.found.append((self._methods[0] if len(self._methods) == 1 else "", node.value))

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        if self._is_it(node.target):
            self.found.append(("", None))

    def _is_it(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Attribute) and node.attr.value == self.name and isinstance(node.value, cst.Name)


def named_symbol(value: Value | None) -> str:
    """What an operation calls; empty for anything else."""
    return value.symbol if isinstance(value, Operation) else ""


__all__ = ["WRAPPERS", "Clipping", "MadeOptimizer", "Optimizers", "named_symbol"]
