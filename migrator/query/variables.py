"""The variables that a network makes: in which scopes, which tensors there are by then, and what uses them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from migrator.ir.evaluate import Evaluator
from migrator.ir.machine import Effect, identity
from migrator.ir.values import (
    Constant,
    Either,
    Function,
    Operation,
    Scope,
    Sequence,
    Symbol,
    Table,
    Value,
    alternatives,
    is_nothing,
)

GET, NEW = "tf.get_variable", "tf.Variable"
#: The parameters of what makes a variable.
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    GET: (
        *("name", "shape", "dtype", "initializer", "regularizer", "trainable", "collections", "caching_device"),
        *("partitioner", "validate_shape", "use_resource", "custom_getter", "constraint", "synchronization"),
        "aggregation",
    ),
    NEW: (
        *("initial_value", "trainable", "collections", "validate_shape", "caching_device", "name", "variable_def"),
        *("dtype", "expected_shape", "import_scope", "constraint", "use_resource", "synchronization", "aggregation"),
        "shape",
    ),
}
SCOPE = "tf.variable_scope"
INPUT = "tf.keras.Input"
LOOKUP = "tf.nn.embedding_lookup"
_CELL = "tf.nn.rnn_cell."
#: Recurrent cells that can be written for Keras, and their parameters.
CELLS: Mapping[str, tuple[str, ...]] = {
    f"{_CELL}BasicLSTMCell": (*("num_units", "forget_bias", "state_is_tuple", "activation", "reuse", "name", "dtype"),),
    f"{_CELL}LSTMCell": (
        *("num_units", "use_peepholes", "cell_clip", "initializer", "num_proj", "proj_clip", "num_unit_shards"),
        *("num_proj_shards", "forget_bias", "state_is_tuple", "activation", "reuse", "name", "dtype"),
    ),
    f"{_CELL}GRUCell": (
        *("num_units", "activation", "reuse", "kernel_initializer", "bias_initializer", "name", "dtype"),
    ),
    f"{_CELL}BasicRNNCell": ("num_units", "activation", "reuse", "name", "dtype"),
    f"{_CELL}MultiRNNCell": ("cells", "state_is_tuple"),
    f"{_CELL}DropoutWrapper": (
        *("cell", "input_keep_prob", "output_keep_prob", "state_keep_prob", "variational_recurrent", "input_size"),
        *("dtype", "seed", "dropout_state_filter_visitor"),
    ),
}
_STATES = ("initial_state", "dtype", "parallel_iterations", "swap_memory", "time_major", "scope")
_BOTH_STATES = ("initial_state_fw", "initial_state_bw", *_STATES[1:])
#: What runs cells over sequences, and its parameters.
RECURRENT: Mapping[str, tuple[str, ...]] = {
    "tf.nn.dynamic_rnn": ("cell", "inputs", "sequence_length", *_STATES),
    "tf.nn.bidirectional_dynamic_rnn": ("cell_fw", "cell_bw", "inputs", "sequence_length", *_BOTH_STATES),
    "tf.nn.static_rnn": ("cell", "inputs", "initial_state", "dtype", "sequence_length", "scope"),
    "tf.nn.static_bidirectional_rnn": (
        *("cell_fw", "cell_bw", "inputs", "initial_state_fw", "initial_state_bw", "dtype", "sequence_length", "scope"),
    ),
}
_LAYERS = ("tf.layers.", "tf.contrib.layers.", "tf.contrib.slim.", "tf.nn.rnn_cell.", "tf.contrib.rnn.")
_SCOPED = {name: "bidirectional_rnn" if "bidirectional" in name else "rnn" for name in RECURRENT}
#: What reads a variable as the tensor that it is, in the place where one may stand.
_READING = ("tf.assign", "tf.scatter", "tf.train.", "tf.gradients", "tf.contrib.", "tf.estimator.", "tf.is_variable")
_ABOUT_SHAPES = frozenset((".get_shape", ".as_list", ".append", ".extend", ".insert", ".format"))
_ARITHMETIC = frozenset(
    "getitem add sub mul truediv floordiv mod pow matmul neg call and or xor == != < <= > >=".split()  # noqa: SIM905
)


@dataclass(frozen=True)
class Made:
    """A variable, or a layer: the call, whether it is made any number of times or under a condition, and the names
    that stand for tensors where it is made.

    `scope` is that of the names, `tensors` are theirs in the order in which they are bound. `function` is the function
    of the program that makes it (None: the model_fn itself), and `caller` the same variable as seen from the call of
    that function.
    """

    operation: Operation
    repeated: bool
    conditional: bool
    scope: Scope
    tensors: Mapping[str, Value] = field(default_factory=dict)
    function: Function | None = None
    caller: Made | None = None


@dataclass(frozen=True)
class _Sources:
    """The values of a kind, and which others are known to be computed from one, or from none, at one moment."""

    holds: Callable[[Value], bool]
    behind: set[Value] = field(default_factory=set)
    never: set[Value] = field(default_factory=set)


class Variables:
    """Watches a program build its network; `features` and `labels` say which values are these."""

    def __init__(
        self, machine: Evaluator, features: Callable[[Value], bool], labels: Callable[[Value], bool], outer: Scope
    ) -> None:
        self.machine = machine
        self.features = features
        self.labels = labels
        self.outer = outer
        self.made: list[Made] = []
        self.layers: list[Made] = []
        self.effects: list[Operation] = []
        self._calls: set[Value] = set()

    def watch(self, effect: Effect) -> None:
        """Sees a call of a library."""
        one = effect.operation
        self.effects.append(one)
        self._calls.add(one)
        if one.symbol not in PARAMETERS and not one.symbol.startswith(_LAYERS) and one.symbol not in RECURRENT:
            return
        found = self.made if one.symbol in PARAMETERS else self.layers
        seen: Made | None = None
        scopes, functions = [self.outer, *self.machine.scopes], [None, *(one for one, _ in self.machine.calls)]
        for scope, function in zip(scopes, functions):
            tensors = self._tensors(scope) if one.symbol in PARAMETERS else {}
            seen = Made(one, effect.repeated, bool(effect.conditions), scope, tensors, function, seen)
        assert seen is not None
        found.append(seen)

    # -- tensors

    def _tensors(self, scope: Scope | None) -> dict[str, Value]:
        """The names that stand for tensors computed from the features here, those of functions around it included."""
        found: dict[str, Value] = {}
        of_features, of_labels = _Sources(self._is_source), _Sources(self.labels)
        while scope is not None and scope.kind != "module":
            for name, value in self.machine.store.held(scope).items():
                if name not in found and self._is_tensor(value, of_features, of_labels):
                    found[name] = value
            scope = scope.outer
        return found

    def is_tensor(self, value: Value) -> bool:
        """Whether a value is a tensor that is computed from the features, and not from the labels."""
        return self._is_tensor(value, _Sources(self._is_source), _Sources(self.labels))

    def _is_source(self, value: Value) -> bool:
        """Whether a value is features, or stands for some in a Keras model of the program."""
        return self.features(value) or (isinstance(value, Operation) and value.symbol == INPUT)

    def reads_features(self, values: Iterable[Value], without: Collection[Value]) -> bool:
        """Whether one of some values is computed from features or labels in another way than by what is left out."""
        return any(
            one not in without and (self.features(one) or self.labels(one)) for one in self._all_behind(values, without)
        )

    def _is_tensor(self, value: Value, of_features: _Sources, of_labels: _Sources) -> bool:
        """Whether a value is a tensor that is computed from the features, and not from the labels."""
        if self.features(value):
            return True
        if isinstance(value, Either):
            return all(self._is_tensor(one, of_features, of_labels) for one in alternatives(value))
        if not isinstance(value, Operation):
            return False
        plain = value.symbol in _ARITHMETIC or value.symbol.startswith("tf.")
        return plain and self._comes_from(value, of_features) and not self._comes_from(value, of_labels)

    def _comes_from(self, value: Value, sources: _Sources) -> bool:
        """Whether a value is computed from one of the sources; shapes, which are known before, are not."""
        if value in sources.never:
            return False
        seen: list[Value] = []
        for one in self._all_behind([value], sources.never):
            if one in sources.behind or sources.holds(one):
                sources.behind.add(value)
                return True
            seen.append(one)
        sources.never.update(seen)
        return False

    def _all_behind(self, values: Iterable[Value], known: Collection[Value] = ()) -> Iterator[Value]:
        """Values and all that they are computed from, the nearest first; what is `known` is not looked behind."""
        seen: set[Value] = set()
        queue = deque(values)
        while queue:
            one = queue.popleft()
            if one not in seen:
                seen.add(one)
                yield one
                queue.extend(() if one in known else self._behind(one))

    def _behind(self, value: Value) -> list[Value]:
        if isinstance(value, Either):
            return [value.then, value.otherwise]
        if isinstance(value, Operation):
            if value.symbol in (".get_shape", "getattr"):
                return []
            return list(value.given)
        return list(self._held(value))

    def _held(self, value: Value) -> Iterator[Value]:
        content = self.machine.content_of(value) if isinstance(value, Sequence) else None
        yield from content.items if content is not None else ()
        entries = self.machine.entries_of(value) if isinstance(value, Table) else None
        yield from [one for _, one in entries.items.values()] if entries is not None else ()

    def key_behind(self, value: Value) -> str | None:
        """The key of the features that a value is computed from; None where it reads them otherwise."""
        for one in self._all_behind([value]):
            if isinstance(one, Operation) and one.symbol == "getitem" and self.features(one.args[0]):
                key = one.args[1]
                if isinstance(key, Constant) and isinstance(key.value, str):
                    return key.value
        return None

    # -- uses

    def uses(self, variable: Operation) -> list[Operation]:
        """The calls that are given a variable, by itself, in a container, or in an expression."""
        return [one for one in self._readers.get(variable, ()) if one is not variable]

    @cached_property
    def _readers(self) -> dict[Value, list[Operation]]:
        """The calls that are given a value, by the value, once the network is built."""
        found: dict[Value, list[Operation]] = {}
        for one in self.effects:
            for part in self._all_behind(one.given, self._calls):
                found.setdefault(part, []).append(one)
        return found

    def only_read(self, variable: Operation) -> Operation | None:
        """A call that does more with a variable than to compute with its value; None where there is none."""
        for one in self.uses(variable):
            reads = one.symbol.startswith("tf.") and not one.symbol.startswith(_READING)
            if not reads and one.symbol not in _ABOUT_SHAPES and one.symbol not in _ARITHMETIC - {"call"}:
                return one
        return None

    # -- scopes

    def path(self, operation: Operation) -> list[tuple[Operation, tuple[object, ...]]]:
        """The variable scopes around a call, each with the path of names up to it."""
        found: list[tuple[Operation, tuple[object, ...]]] = []
        names: tuple[object, ...] = ()
        for scope in operation.scopes:
            if isinstance(scope, Operation) and scope.symbol == SCOPE:
                names = self._inside(names, scope)
                found.append((scope, names))
        return found

    def _inside(self, names: tuple[object, ...], scope: Operation) -> tuple[object, ...]:
        given = scope.argument(0, "name_or_scope")
        if isinstance(given, Constant) and isinstance(given.value, str):
            return (*names, given.value)
        if given is None or is_nothing(given):
            return (*names, scope)  # of its default name, with a number
        if isinstance(given, Operation) and given.symbol == "tf.get_variable_scope":
            return names
        if isinstance(given, Operation) and given.symbol == SCOPE:
            inner = self.path(given)
            return self._inside(inner[-1][1] if inner else (), given)
        return (*names, Unclear(identity(given)))


@dataclass(frozen=True)
class Unclear:
    """A name of a scope that is not known: what it is the value of."""

    value: object


def name_of(operation: Operation) -> str | None:
    """The name that a variable or a layer gets in its scope, where that is said."""
    place = PARAMETERS[operation.symbol].index("name") if operation.symbol in PARAMETERS else None
    named = operation.argument(place, "name", "scope")
    if named is None and operation.symbol in _SCOPED:
        return _SCOPED[operation.symbol]
    return named.value if isinstance(named, Constant) and isinstance(named.value, str) else None


def only_reuses(scope: Operation) -> bool:
    """Whether a variable scope gives variables that are there already, or may do nothing else."""
    given = scope.argument(8, "reuse")
    return reuses(scope) and not (isinstance(given, Symbol) and given.name == "tf.AUTO_REUSE")


def reuses(scope: Operation) -> bool:
    """Whether a variable scope may give variables that are there already."""
    given = scope.argument(8, "reuse")
    return given is not None and not (isinstance(given, Constant) and not given.value)


__all__ = [
    "CELLS",
    "GET",
    "INPUT",
    "LOOKUP",
    "NEW",
    "PARAMETERS",
    "RECURRENT",
    "SCOPE",
    "Made",
    "Unclear",
    "Variables",
    "name_of",
    "only_reuses",
    "reuses",
]
