"""The training program of a script: its Estimators, what is done with them in order, and what their functions build.

A model_fn is evaluated once for each mode in which it is used, and an input function once for each use, with what the
program has given them by then. What they build is a graph: the operations in the order of their calls, and the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import libcst as cst

from migrator.ir.evaluate import Evaluator, Left, executed, started
from migrator.ir.machine import Arguments, Condition, Effect, File, Files, is_of_library, same
from migrator.ir.store import ABSENT, Elements, Entries, Key, Listening
from migrator.ir.values import (
    Class,
    Constant,
    Either,
    Frame,
    Function,
    Method,
    Object,
    Operation,
    Partial,
    Scope,
    Unknown,
    Value,
    alternatives,
)
from migrator.ir.values import Sequence as Items

_TPU = ("model_fn", "model_dir", "config", "params", "use_tpu", "train_batch_size", "eval_batch_size")
#: What makes an Estimator of a model_fn, and its parameters.
ESTIMATORS: dict[str, tuple[str, ...]] = {
    "tf.estimator.Estimator": ("model_fn", "model_dir", "config", "params", "warm_start_from"),
    "tf.contrib.learn.Estimator": ("model_fn", "model_dir", "config", "params", "feature_engineering_fn"),
    "tf.contrib.tpu.TPUEstimator": _TPU,
    "tf.estimator.tpu.TPUEstimator": _TPU,
}
#: What is done with an Estimator, the parameters, and the modes in which its model_fn is called for that.
METHODS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "train": (("input_fn", "hooks", "steps", "max_steps", "saving_listeners"), ("train",)),
    "evaluate": (("input_fn", "steps", "hooks", "checkpoint_path", "name"), ("eval",)),
    "predict": (("input_fn", "predict_keys", "hooks", "checkpoint_path", "yield_single_examples"), ("infer",)),
    "export_savedmodel": (("export_dir_base", "serving_input_receiver_fn"), ("infer",)),
    "export_saved_model": (("export_dir_base", "serving_input_receiver_fn"), ("infer",)),
}
_BOTH = ("tf.estimator.train_and_evaluate", ("estimator", "train_spec", "eval_spec"))
_CANNED = ("Classifier", "Regressor", "Estimator", "model_to_estimator")


@dataclass(frozen=True)
class Graph:
    """What a function builds: its operations in order, and what it returns.

    `changes` are the names, of functions and modules around it, whose values it changed when it was called, and
    `written` all that it wrote there; `entire` is all that it wrote. `entered` are the functions of the program that
    were called.
    """

    mode: str
    function: Value
    effects: tuple[Effect, ...]
    result: Value
    changes: tuple[str, ...] = ()
    entered: frozenset[cst.CSTNode] = frozenset()
    written: Mapping[Key, object] = field(default_factory=dict)
    entire: frozenset[Key] = frozenset()


@dataclass(frozen=True)
class Use:
    """Something that is done with an Estimator: `method` with its `arguments` by name, where it is known which.

    `inputs` are the graphs of its input functions, by the argument that gives them.
    """

    method: str
    operation: Operation
    arguments: Mapping[str, Value]
    conditions: tuple[Condition, ...]
    repeated: bool
    inputs: Mapping[str, Graph]


@dataclass
class Estimator:
    """An Estimator: how it is made, what is done with it, and the graphs of its model_fn by mode.

    `changes` are the names of what its model_fn reads from outside that is not the same at each use, with the first use
    that finds it changed.
    """

    operation: Operation
    arguments: Mapping[str, Value]
    uses: list[Use] = field(default_factory=list)
    graphs: dict[str, Graph] = field(default_factory=dict)
    changes: dict[str, Operation] = field(default_factory=dict)

    @property
    def is_canned(self) -> bool:
        """Whether its model_fn is one of TensorFlow's own."""
        return self.operation.symbol not in ESTIMATORS


@dataclass(frozen=True)
class Program:
    """A script as it is understood, and the evaluator that knows what its containers hold."""

    file: File
    evaluator: Evaluator
    estimators: tuple[Estimator, ...]
    effects: tuple[Effect, ...]

    @property
    def is_complete(self) -> bool:
        """Whether the whole script was evaluated."""
        return self.evaluator.complete


def understood(files: Files, main: File, only_executed: bool = False) -> Program:
    """The program of a script; functions that nothing calls come last.

    `only_executed` leaves those out, but for what libraries are given: they are taken to call it.
    """
    reader = _Reader(files, main)
    if only_executed:
        executed(reader.evaluator, main, reader.escaped)
    else:
        started(reader.evaluator, main)
    return Program(main, reader.evaluator, tuple(reader.estimators), tuple(reader.evaluator.effects))


class _Reader:
    """Looks at the calls of a program while it is evaluated."""

    def __init__(self, files: Files, main: File) -> None:
        self.evaluator = Evaluator(files, main)
        self.evaluator.watch = self._called
        self.estimators: list[Estimator] = []
        self.surroundings: dict[Operation, _Surroundings] = {}
        self.params: dict[Operation, Value] = {}
        self.inside = False
        self.escaped: list[tuple[Value, bool]] = []  # to libraries, and whether a condition decides it

    def _called(self, effect: Effect) -> None:
        operation = effect.operation
        conditional = len(effect.conditions) > self.evaluator.outer
        self.escaped += [(one, conditional) for one in operation.given]
        if self.inside:
            return
        if _makes_estimator(operation):
            parameters = ESTIMATORS.get(operation.symbol, ())
            made = Estimator(operation, {**dict(zip(parameters, operation.args)), **operation.kwargs})
            self.estimators.append(made)
            if "params" in made.arguments:
                self.params[operation] = self._copied(made.arguments["params"])
            self.surroundings[operation] = _Surroundings(self.evaluator)
            return
        name, parameters = _BOTH
        given = {**dict(zip(parameters, operation.args)), **operation.kwargs}
        if operation.symbol == name:
            self._use(effect, "train_and_evaluate", given.get("estimator"), given, ("train", "eval"))
        elif operation.symbol.startswith(".") and operation.symbol[1:] in METHODS and operation.args:
            parameters, modes = METHODS[operation.symbol[1:]]
            given = {**dict(zip(parameters, operation.args[1:])), **operation.kwargs}
            self._use(effect, operation.symbol[1:], operation.args[0], given, modes)

    def _use(
        self, effect: Effect, method: str, owner: Value | None, given: Mapping[str, Value], modes: Sequence[str]
    ) -> None:
        made = alternatives(owner) if owner is not None else []
        store = self.evaluator.store
        for estimator in self.estimators:
            if not any(one is estimator.operation for one in made):
                continue
            inputs: dict[str, Graph] = {}
            for name, function, mode in _input_functions(given):
                values = self._arguments(estimator, function, mode, ("params", "config", "mode"), ())
                inputs[name] = self._graph("input", function, values)
                self._leave(inputs[name], method == "train_and_evaluate")
            conditions = effect.conditions
            estimator.uses.append(Use(method, effect.operation, given, conditions, effect.repeated, inputs))
            if estimator.is_canned:
                continue
            surroundings = self.surroundings[estimator.operation]
            if len(estimator.uses) == 1:
                surroundings.first.update({key: store.get(key) for one in inputs.values() for key in one.entire})
            for mode in modes:
                if mode not in estimator.graphs:
                    listening = Listening(surroundings.read)
                    before = store.listen(listening)
                    estimator.graphs[mode] = self._model(estimator, mode)
                    store.listen(before)
                    surroundings.own |= listening.own
            for name in surroundings.changed():
                estimator.changes.setdefault(name, effect.operation)

    def _leave(self, made: Graph, again: bool) -> None:
        """Keeps what an input function leaves outside; where it may be called `again`, its values are not known."""
        for key, value in made.written.items():
            if again and isinstance(value, Value):
                value = Unknown(value.site, "an input function changes it")
            elif again and isinstance(value, (Elements, Entries)):
                value = replace(value, more=True)
            self.evaluator.store.set(key, value)

    def _model(self, estimator: Estimator, mode: str) -> Graph:
        function = estimator.arguments.get("model_fn")
        if function is None:
            return Graph(mode, estimator.operation, (), estimator.operation)
        given = self._arguments(estimator, function, mode, ("labels", "mode", "params", "config"), ("features",))
        return self._graph(mode, function, given)

    def _arguments(
        self, estimator: Estimator, function: Value, mode: str, named: Sequence[str], placed: Sequence[str]
    ) -> Arguments:
        """What an Estimator gives a function, by those of its parameters that it asks for."""
        site = estimator.operation.site
        known = parameters_of(function)
        values: dict[str, Value] = {
            "mode": Constant(site, mode),
            "params": self._params(estimator, mode),
            "config": estimator.arguments.get("config") or Operation(site, "tf.estimator.RunConfig"),
        }

        def value(name: str) -> Value:
            return values.get(name) or self.evaluator.operation(None, "parameter", function, Constant(None, name))

        args = tuple(value(name) for name in placed)
        rest = [name for name in named if name in known]
        return Arguments(args, {name: value(name) for name in rest})

    def _params(self, estimator: Estimator, mode: str) -> Value:
        """The params of an Estimator, with the batch size that a TPUEstimator puts into them."""
        site = estimator.operation.site
        given = self.params.get(estimator.operation)
        size = estimator.arguments.get({"train": "train_batch_size", "eval": "eval_batch_size"}.get(mode, "predict"))
        if "TPU" not in estimator.operation.symbol:
            return given or self.evaluator.table(site, [])
        entries = self.evaluator.entries_of(given) if given is not None else None
        if given is not None and entries is None:
            return given
        items = list(entries.items.values()) if entries is not None else []
        unknown = self.evaluator.operation(site, "parameter", estimator.operation, Constant(None, "batch_size"))
        items.append((Constant(site, "batch_size"), size or unknown))
        return self.evaluator.table(site, items, entries is not None and entries.more)

    def _copied(self, params: Value) -> Value:
        """What an Estimator keeps of its params, which may change afterwards; objects in them are not copied."""
        machine, site = self.evaluator, params.site or self.evaluator.nowhere
        content, entries = machine.content_of(params), machine.entries_of(params)
        if entries is not None:
            pairs = [(key, self._copied(one)) for key, one in entries.items.values()]
            return machine.table(site, pairs, entries.more)
        if content is not None and isinstance(params, Items):
            return machine.sequence(site, params.kind, [self._copied(one) for one in content.items], content.more)
        return params

    def _graph(self, mode: str, function: Value, given: Arguments) -> Graph:
        """Calls a function apart from the program."""
        self.inside = True
        try:
            return called(self.evaluator, mode, function, given)
        finally:
            self.inside = False


class _Surroundings:
    """What the model_fn of an Estimator finds around it.

    An Estimator calls its model_fn anew at each use; a Keras model is built once, of what there was when the Estimator
    was made, and its first input function called.
    """

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.read: set[Key] = set()
        self.own: set[Key] = set()  # what the model_fn itself gives values
        self.mark = evaluator.store.mark()
        self.turns = evaluator.repeated
        self.first = evaluator.store.held_now()

    def changed(self) -> list[str]:
        """The names of what the model_fn reads that is not as it was at first, or that a loop may change."""
        first, store = self.first, self.evaluator.store
        loops = [one.mark for one in self.evaluator.regions if one.kind == "loop" and one.mark >= self.mark]
        turning = store.since(loops[0]) if loops and self.evaluator.repeated > self.turns else {}
        found: list[str] = []
        for key in self.read:
            old, new = first.get(key, ABSENT), store.get(key)
            is_own = old is ABSENT and (key in self.own or key[0] == "module")
            if not is_own and (not _alike(old, new) or (key in turning and not _is_plain(new))):
                found.append(_named(key))
        return sorted(found)


def _alike(first: object, second: object) -> bool:
    """Whether a name or a container holds what it held before."""
    if isinstance(first, Value) and isinstance(second, Value):
        return same(first, second)
    if isinstance(first, Elements) and isinstance(second, Elements):
        parts = list(zip(first.items, second.items))
        return (len(first.items), first.more) == (len(second.items), second.more) and all(same(*one) for one in parts)
    if isinstance(first, Entries) and isinstance(second, Entries):
        values = [(one[1], second.items[key][1]) for key, one in first.items.items() if key in second.items]
        return (
            first.items.keys() == second.items.keys()
            and first.more == second.more
            and all(same(*one) for one in values)
        )
    return first is second


def _is_plain(held: object) -> bool:
    """Whether what is held is the same in all turns of a loop."""
    if isinstance(held, Elements):
        return all(map(_is_plain, held.items))
    if isinstance(held, Entries):
        return all(_is_plain(one) for _, one in held.items.values())
    return not isinstance(held, (Operation, Either, Unknown))


def called(evaluator: Evaluator, mode: str, function: Value, given: Arguments) -> Graph:
    """What a function builds when it is called now; what it makes is kept, what it changes outside is not."""
    site = function.site or evaluator.nowhere
    before = Left.of(evaluator)
    entered, evaluator.called = evaluator.called, set()
    outer, evaluator.outer = evaluator.outer, len(before.conditions)
    mark = evaluator.store.mark()
    try:
        evaluator.frame = Frame(mode, site, mode)
        result = evaluator.call(function, given, site)
        depth = len(before.conditions)
        made = evaluator.effects
        effects = tuple(Effect(one.operation, one.conditions[depth:], one.repeated) for one in made)
    finally:
        before.restore(evaluator)
        entered, evaluator.called = evaluator.called, entered | evaluator.called
        evaluator.outer = outer
    written = evaluator.store.undo(mark)
    new = {
        key: value for key, value in written.items() if evaluator.store.get(key) is ABSENT and not is_of_library(key)
    }
    evaluator.store.write(new)
    outside = {key: value for key, value in written.items() if key not in new}
    names = sorted({_named(key) for key in outside})
    return Graph(mode, function, effects, result, tuple(names), frozenset(entered), outside, frozenset(written))


def _named(key: tuple[object, ...]) -> str:
    owner, *parts = key
    if isinstance(owner, tuple):
        return str(owner[-1])  # an entry of a library's name
    if isinstance(owner, (Scope, str)):
        return str(parts[0])
    inner = ".".join(str(part) for part in parts if isinstance(part, str))
    return f"{type(owner).__name__.lower()}.{inner}" if inner else type(owner).__name__.lower()


def _makes_estimator(operation: Operation) -> bool:
    name = operation.symbol
    if name in ESTIMATORS:
        return True
    last = name.rpartition(".")[2]
    public = name.startswith(("tf.estimator.", "tf.contrib.learn.", "tf.keras.estimator.", "tf.contrib.estimator."))
    return public and last.endswith(_CANNED) and not last.startswith("Base") and name.count(".") < 4


def _input_functions(given: Mapping[str, Value]) -> list[tuple[str, Value, str]]:
    """The input functions of a use, each with the argument that gives it and the mode in which it is called."""
    found: list[tuple[str, Value, str]] = []
    for name, mode in (("input_fn", "train"), ("train_spec", "train"), ("eval_spec", "eval")):
        value = given.get(name)
        if isinstance(value, Operation) and name.endswith("spec"):
            value = value.argument(0, "input_fn")
        if isinstance(value, (Function, Partial, Method, Object)):
            found.append((name, value, mode))
    return found


def _innermost(function: Value) -> Function | None:
    """The function that a partial or a method calls in the end."""
    while isinstance(function, (Partial, Method)):
        inner = function.function
        if inner is None:
            return None
        function = inner
    return function if isinstance(function, Function) else None


def takes_any(function: Value) -> bool:
    """Whether a function takes arguments of any name."""
    inner = _innermost(function)
    return inner is not None and inner.node.params.star_kwarg is not None


def parameters_of(function: Value) -> set[str]:
    """The names by which a function may be given something."""
    inner = _innermost(function)
    if inner is None:
        is_object = isinstance(function, Object) and isinstance(function.of, Class)
        return {"labels", "mode"} | ({"features", "params", "config"} if is_object else set())
    params = inner.node.params
    names = {one.name.value for one in (*params.posonly_params, *params.params, *params.kwonly_params)}
    names |= {"labels", "mode", "params", "config"} if params.star_kwarg is not None else set()
    return names - (set(function.kwargs) if isinstance(function, Partial) else set())


__all__ = [
    "ESTIMATORS",
    "METHODS",
    "Estimator",
    "Graph",
    "Program",
    "Use",
    "called",
    "parameters_of",
    "takes_any",
    "understood",
]
