"""The parts of the recorder that need no TensorFlow."""

import ast
import builtins
import contextlib
import functools
import importlib.util
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import Mock, patch

import numpy as np
import pytest

INSIDE = Path(__file__).parents[2] / "migrator" / "harness" / "inside"


def load(name: str) -> ModuleType:
    specification = importlib.util.spec_from_file_location(f"inside_{name}", INSIDE / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


parts = load("parts")
redirect = load("redirect")
sources = load("sources")


@pytest.fixture
def nudged(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(INSIDE))
    monkeypatch.setitem(sys.modules, "capture", SimpleNamespace(components=lambda one: [one]))  # type: ignore[arg-type]
    return load("nudged")


@pytest.mark.parametrize(("batches", "found"), [(3, {"loss": 0.5}), (0, {})])
def test_an_evaluation_that_had_no_data_left_tells_nothing(
    nudged: ModuleType, batches: int, found: dict[str, float]
) -> None:
    """Those of numpy_input_fn can be read once: a second evaluation of the same graph has none, and zero metrics."""
    graph = Mock()
    tf = SimpleNamespace(train=SimpleNamespace(SessionRunHook=object), get_default_graph=lambda: graph)

    def run(estimator: object, checkpoint: str, scaffold: object, op: object, values: object, hooks, folder):  # type: ignore[no-untyped-def]
        for _ in range(batches):
            hooks[0].after_run(None, None)
        return {"loss": 0.5 if batches else 0.0}

    assert nudged.again(tf, run, None, "ckpt", None, None, {}, [], "folder", 1) == found
    graph.finalize.assert_called_once_with()


def test_scheduled_steps_are_taken_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a step is to start from is given once the workers have taken the one before, and to no evaluation."""
    monkeypatch.syspath_prepend(str(INSIDE))
    monkeypatch.setitem(sys.modules, "parts", parts)
    monkeypatch.setitem(sys.modules, "replicas", ModuleType("replicas"))
    told: list[object] = []
    recorder = SimpleNamespace(
        points=SimpleNamespace(given=[{}, {}], counter=lambda tf, strategy: told.append(("counter", strategy))),
        take_point=lambda *given: told.append(("take", *given)),
        tf=None,
        training_depth=0,
        turn=lambda coordinator: contextlib.nullcontext(),
        steps_done=0,
        state_steps=[],
    )
    loop = SimpleNamespace(
        recorder=recorder, kinds={}, passive=0, over=lambda: False, optimizer="optimizer", seen=set(), settle=None
    )
    coordinator = SimpleNamespace(strategy="servers", join=lambda: told.append("join"))
    steps = load("record_scheduled").ScheduledSteps(loop)

    def original(coordinator: object, fn: object, args: object, kwargs: object) -> None:
        loop.seen.add("train" if fn is train else "evaluate")
        told.append("step" if fn is train else "evaluation")

    def train() -> None: ...

    def evaluate() -> None: ...

    for fn in (train, train, evaluate, evaluate):
        steps.schedule(original, coordinator, fn)
    # What a function does is known once it was traced: the first step starts where the program does.
    assert told == [
        *[("counter", "servers"), "step"],
        *[("counter", "servers"), "join", ("take", 1, "optimizer", "servers"), "step"],
        *[("counter", "servers"), "evaluation"],
        "evaluation",
    ]
    assert recorder.steps_done == 2


def two_parts() -> list[object]:
    return [
        parts.Part("w", None, [2, 0], [1, 2], [3, 2], "float32", True),
        parts.Part("w", None, [0, 0], [2, 2], [3, 2], "float32", True),
        parts.Part("b", None, [0], [2], [2], "float32", False),
    ]


def test_parts_are_joined_and_cut() -> None:
    whole = {"w": np.arange(6, dtype=np.float32).reshape(3, 2), "b": np.array([7, 8], np.float32)}
    pieces = parts.cut(two_parts(), whole)
    assert [piece.tolist() for piece in pieces] == [[[4, 5]], [[0, 1], [2, 3]], [7, 8]]
    joined = parts.join(two_parts(), pieces)
    assert joined.keys() == whole.keys()
    for name, value in whole.items():
        np.testing.assert_array_equal(joined[name], value)


def test_parts_are_described_as_one_variable() -> None:
    first, second = parts.describe(two_parts())
    assert (first["name"], first["shape"], first["shards"], first["order"]) == ("w", [3, 2], 2, 0)
    assert (second["name"], second["shards"], second["trainable"], second["order"]) == ("b", 1, False, 1)


def test_values_that_do_not_fit_are_refused() -> None:
    with pytest.raises(KeyError, match="no initial value for variable 'w'"):
        parts.cut(two_parts(), {"b": np.zeros(2)})
    with pytest.raises(ValueError, match=r"'w' has shape \(2, 3\)"):
        parts.cut(two_parts(), {"w": np.zeros((2, 3)), "b": np.zeros(2)})


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_ulp_moves(dtype: type) -> None:
    value = np.random.RandomState(0).normal(size=(50, 20)).astype(dtype)
    values = {"w": value, "b": value.copy(), "counts": np.arange(3)}
    moved = parts.moved_one_ulp(values, 3)
    assert moved["w"].dtype == dtype
    up = moved["w"] == np.nextafter(value, dtype(np.inf))
    down = moved["w"] == np.nextafter(value, dtype(-np.inf))
    assert np.all(up ^ down)
    assert 0.4 < up.mean() < 0.6
    np.testing.assert_array_equal(moved["counts"], np.arange(3))
    np.testing.assert_array_equal(moved["w"], parts.moved_one_ulp({"w": value}, 3)["w"])
    assert np.any(moved["w"] != moved["b"])
    assert np.any(moved["w"] != parts.moved_one_ulp(values, 4)["w"])


def test_initial_values_are_given_and_then_moved(tmp_path: Path) -> None:
    own = {"w": np.random.RandomState(0).normal(size=(3, 2)).astype(np.float32)}
    given = {"w": np.ones((3, 2), np.float32) * np.arange(2, dtype=np.float32)}
    np.savez(tmp_path / "given.npz", **given)
    assert parts.initial_values({}, lambda: own) is None
    plan = {"ulp_seed": 2, "initial": str(tmp_path / "given.npz")}
    expected = parts.moved_one_ulp(given, 2)
    np.testing.assert_array_equal(parts.initial_values(plan, lambda: own)["w"], expected["w"])


def test_scalars_among_results() -> None:
    results = {"loss": np.float32(0.5), "count": 3, "matrix": np.ones(2), "nested": {"a": 1}, "name": "x", "no": None}
    assert parts.numbers(results) == {"loss": 0.5, "count": 3.0}


def here() -> list[object]:
    return sources.user_line()


class Base:
    def __init__(self) -> None:
        self.line = sources.user_line(self, "__init__")


class Derived(Base):
    def __init__(self) -> None:
        super().__init__()


def test_the_innermost_line_of_the_user() -> None:
    path, line = here()
    assert (path, line) == (__file__, here.__code__.co_firstlineno + 1)
    frame = inspect.currentframe()
    assert frame is not None
    made = Derived()
    assert made.line == [__file__, frame.f_lineno - 1]


def test_lines_of_libraries_are_not_the_users() -> None:
    # Frames of Python's own module lie between the two.
    line = Mock(side_effect=sources.user_line)()
    assert line == [__file__, test_lines_of_libraries_are_not_the_users.__code__.co_firstlineno + 2]
    assert ThreadPoolExecutor(1).submit(sources.user_line).result() is None
    assert not sources.is_users(ast.__file__)
    assert not sources.is_users(np.__file__)
    assert not sources.is_users(str(INSIDE / "recorder.py"))
    assert not sources.is_users("<frozen runpy>")
    assert not sources.is_users("/tmp/__autograph_generated_file8ab.py")
    assert sources.is_users("/home/a/model.py")


def test_where_a_function_begins() -> None:
    @functools.wraps(here)
    def decorated() -> object:
        return here()

    class Input:
        def __call__(self) -> None: ...

        def method(self) -> None: ...

    first = here.__code__.co_firstlineno
    for function in (here, functools.partial(here), decorated, functools.partial(decorated)):
        assert sources.line_of_function(function) == [__file__, first]
    assert sources.line_of_function(Input()) == [__file__, Input.__call__.__code__.co_firstlineno]
    assert sources.line_of_function(Input().method) == [__file__, Input.method.__code__.co_firstlineno]
    assert sources.line_of_function(len) is None
    assert sources.line_of_function(ast.parse) is None


def test_the_line_of_an_operation() -> None:
    inner = ("/x/site-packages/tensorflow/ops.py", 9, "f", "")
    named = SimpleNamespace(filename="/home/a/model.py", lineno=7)
    for user in (("/home/a/model.py", 7, "model_fn", "loss ="), named):
        operation = SimpleNamespace(traceback=(("/home/a/main.py", 1, "m", ""), user, inner))
        assert sources.line_of_operation(operation) == ["/home/a/model.py", 7]
    assert sources.line_of_operation(SimpleNamespace(traceback=[inner])) is None
    assert sources.line_of_operation(SimpleNamespace()) is None


def test_the_outermost_of_wrapped_optimizers() -> None:
    class Optimizer:
        def __init__(self, inner: "Optimizer | None" = None) -> None:
            self.inner = inner

        def apply_gradients(self) -> object:
            return self.inner.apply_gradients() if self.inner else sources.outermost(("apply_gradients",), self)

    plain, inner = Optimizer(), Optimizer()
    outer = Optimizer(inner)
    assert outer.apply_gradients() is inner
    for optimizer in (inner, outer):
        sources.mark(optimizer, ["/home/a/model.py", 3])
    assert outer.apply_gradients() is outer
    assert plain.apply_gradients() is plain


def test_arrays_of_any_name_on_disk(tmp_path: Path) -> None:
    arrays = {"file": np.ones(2), "a/b|c": np.arange(3), "scalar": np.float32(2)}
    parts.write_arrays(str(tmp_path / "x.npz"), arrays)
    with np.load(tmp_path / "x.npz") as archive:
        assert sorted(archive.files) == sorted(arrays)
        np.testing.assert_array_equal(archive["a/b|c"], np.arange(3))
        assert archive["scalar"].shape == ()
    assert os.listdir(tmp_path) == ["x.npz"]


def test_folders_are_moved_consistently(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = redirect.Redirect(str(tmp_path / "model"))
    monkeypatch.chdir(tmp_path)
    assert moved.folder("runs/a") == moved.folder(str(tmp_path / "runs" / "a")) == moved.folder(b"runs/a")
    assert moved.folder("runs/a") != moved.folder("runs/b")
    assert moved.folder("runs/a/eval") == moved.folder("runs/a") + "/eval"
    assert moved.folder(moved.folder("runs/a")) == moved.folder("runs/a")
    assert moved.folder(None) is None
    assert moved.folder(Path("runs/a")).startswith(str(tmp_path / "model"))


def test_files_are_moved_with_their_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = redirect.Redirect(str(tmp_path / "model"))
    monkeypatch.chdir(tmp_path)
    assert moved.file("runs/a/ckpt-{epoch}") == moved.folder("runs/a") + "/ckpt-{epoch}"
    assert moved.file("ckpt") == moved.folder(".") + "/ckpt"
    assert os.path.isdir(moved.folder("runs/a"))
    assert not os.path.exists("runs")


def test_a_file_that_the_run_did_not_write_is_read_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = redirect.Redirect(str(tmp_path / "model"))
    monkeypatch.chdir(tmp_path)
    Path("given").mkdir()
    Path("given/ckpt-1.index").touch()
    assert moved.reading("given/ckpt-1") == "given/ckpt-1"
    Path(moved.file("given/ckpt-1.index")).touch()
    assert moved.reading("given/ckpt-1") == moved.folder("given") + "/ckpt-1"
    assert moved.reading("absent/ckpt-1") == moved.folder("absent") + "/ckpt-1"


def test_an_argument_is_changed_however_it_is_passed() -> None:
    def function(first: str, second: str = "s") -> tuple[str, str]:
        return first, second

    wrapped = redirect.wrap_argument(function, "second", str.upper)
    assert wrapped("a", "b") == wrapped("a", second="b") == wrapped(first="a", second="b") == ("a", "B")
    assert wrapped("a") == ("a", "s")


@pytest.mark.parametrize(
    "name",
    [
        "batches",
        "folder",
        "parts",
        "capture",
        "estimator_patches",
        "keras_optimizers",
        "keras_patches",
        "keras_variables",
        "record_estimator",
        "record_keras",
        "record_session",
        "recorder",
        "redirect",
        "sources",
        "step_hook",
        "tracing",
        "v1_optimizers",
    ],
)
def test_the_recorder_is_python_37(name: str) -> None:
    ast.parse((INSIDE / f"{name}.py").read_text(), feature_version=(3, 7))


# -- loops of Keras 3 --------------------------------------------------------------------------------------------------


def together(name: str) -> ModuleType:
    """A module of the recorder that imports others."""
    with patch.dict(sys.modules), patch.object(sys, "path", [str(INSIDE), *sys.path]):
        return load(name)


def test_what_a_loop_within_a_step_shows_is_of_the_step() -> None:
    """Dropouts, layers and draws in it count; a layer is outermost only where none is under way around the loop."""
    make = together("record_keras").Step
    step, inner = make(), make()
    tf = SimpleNamespace(Tensor=object, nest=SimpleNamespace(flatten=lambda one: []))
    cell, model = (SimpleNamespace(_trainable_weights=[name], _non_trainable_weights=[]) for name in ("w", "v"))

    def body(layer: object) -> None:
        inner.layers.go_on_from(step.layers)
        inner.layers.call(tf, lambda layer: None, cell)
        inner.dropouts.append(0.5)
        inner.draws, inner.clipping.calls = 2, ["clip"]
        step.absorb(inner)

    step.dropouts.append(0.1)
    step.layers.call(tf, body, model)
    assert step.layers.outermost == [model] and step.layers.owned == ["w", "v"]
    assert (step.dropouts, step.draws, step.clipping.calls) == ([0.1, 0.5], 2, ["clip"])
    assert step.loss is None and step.gradients is None and not step.plain
    body_alone = make()
    body_alone.layers.call(tf, lambda layer: None, cell)
    assert body_alone.layers.outermost == [cell]


class Metric:
    """A metric of Keras 3; all those of a model together have no result."""

    def __init__(self, name: str, value: float | None) -> None:
        self.name = name
        self.value = value
        self.resets = 0

    def reset_state(self) -> None:
        self.resets += 1

    def result(self) -> SimpleNamespace:
        if self.value is None:
            raise NotImplementedError
        return SimpleNamespace(numpy=lambda: np.float32(self.value))


def test_an_evaluation_again_reads_the_metrics_that_have_a_result() -> None:
    recorder = together("record_loop").LoopRecorder
    metrics = [Metric("compile_metrics", None), Metric("error", 0.5)]
    call = Mock()
    evaluation = together("record_loop").Evaluation()
    evaluation.calls = [(call, "step", (1,), {})]
    for metric in metrics:
        evaluation.add_metric(metric)
    loop = Mock(results_of=lambda one: recorder.results_of(Mock(), one))
    assert recorder.again(loop, evaluation) == {"error": 0.5}
    assert [metric.resets for metric in metrics] == [1, 1]
    call.assert_called_once_with("step", 1)


class Counted:
    """A variable of a process without TensorFlow."""

    def __init__(self, value: float) -> None:
        self.value = value

    def numpy(self) -> float:
        return self.value

    def assign(self, value: float) -> None:
        self.value = value


class Summed:
    """A metric that adds up what it is updated with."""

    name = "sum"

    def __init__(self) -> None:
        self.total = Counted(0.0)
        self.variables = [self.total]

    def reset_state(self) -> None:
        self.total.assign(0.0)


@pytest.mark.parametrize("resets", [True, False])
def test_a_program_goes_through_an_eager_evaluation_once_more_for_other_weights(resets: bool) -> None:
    """The program is a generator here that sums up weight times element; it is stopped where an evaluation ends."""
    eager = together("eager_evaluation")
    evaluation = together("record_loop").Evaluation
    weight, metric, begun = Counted(2.0), Summed(), []
    iterator = SimpleNamespace(_dataset=SimpleNamespace(_variant_tensor="data"), _iterator_resource="iterator")

    def take(parts: list[Any], path: str, found: dict[str, Any]) -> bool:
        parts[0].variable.assign({"same": 10.0, "first": 1.0}[path])
        return True

    recorder = SimpleNamespace(
        plan={"evaluate_weights": [{"step": 4, "path": "same"}], "evaluation_control": True},
        parts=[SimpleNamespace(variable=weight)],
        weights_for=lambda step: {"step": 4, "path": "same"},
        take_weights=take,
    )
    loop = SimpleNamespace(
        tf=None,
        recorder=recorder,
        evaluation=evaluation(),
        dirty=False,
        folder=SimpleNamespace(initial_file=lambda: "first"),
        step_of_optimizer=lambda: 4,
        results_of=lambda one: {"sum": metric.total.value},
        new_evaluation=evaluation,
        write_evaluation=lambda: None,
    )
    plain = SimpleNamespace(source=iterator, step=None, trains_on=lambda one: False)
    evaluations = eager.EagerEvaluations(loop, plain)
    mesh = SimpleNamespace(whole=lambda tf, one: one.numpy(), placed=lambda tf, value, one: value)
    generated = SimpleNamespace(make_iterator=lambda *given: begun.append(given))

    def evaluate() -> float:
        if resets:
            metric.reset_state()
        while True:
            for element in (1.0, 2.0):
                evaluations.updating(metric)
                metric.total.value += weight.value * element
            if not evaluations.begins_again(iterator):
                return metric.total.value

    with (
        patch.object(eager, "record_mesh", mesh),
        patch.object(eager.importlib, "import_module", lambda name: generated),
    ):
        assert evaluate() == 6.0
        assert loop.evaluation.others == {"same_weights": {"sum": 30.0}, "weights_step": 4, "control": {"sum": 3.0}}
        assert weight.value == 2.0 and begun == [("data", "iterator")] * 2 and not loop.evaluation.note
        loop.evaluation = evaluation()
        assert evaluate() == (6.0 if resets else 12.0)
    # What it held before belongs to what the program evaluates.
    assert loop.evaluation.others["same_weights"] == {"sum": 30.0 if resets else 36.0}


@pytest.mark.parametrize("replicas", [1, 2])
def test_gradients_of_keras3_are_those_of_all_replicas(replicas: int) -> None:
    def all_reduce(kind: str, gradients: list[float]) -> list[float]:
        assert kind == "SUM"
        return [replicas * gradient for gradient in gradients]

    context = SimpleNamespace(num_replicas_in_sync=replicas, all_reduce=all_reduce)
    tf = SimpleNamespace(distribute=SimpleNamespace(get_replica_context=lambda: context))
    summed = together("record_keras3").Keras3Recorder.summed
    assert summed(SimpleNamespace(tf=tf), [(1.5, "kernel"), (2.0, "bias")]) == [
        (1.5 * replicas, "kernel"),
        (2.0 * replicas, "bias"),
    ]


def test_a_step_of_its_own_is_one_that_does_not_hand_the_update_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(INSIDE))
    has_own_step = load("keras_optimizers").has_own_step

    class Stock:
        def update_step(self, gradient: float, variable: float) -> None: ...

    class Own(Stock):
        def update_step(self, gradient: float, variable: float) -> None:
            self.rule = gradient - variable

    class Averaged(Stock):
        def update_step(self, gradient: float, variable: float) -> None:
            super().update_step(gradient, variable)

    class AveragedOwn(Own):
        def update_step(self, gradient: float, variable: float) -> None:
            super().update_step(gradient, variable)

    assert [has_own_step(kind, Stock) for kind in (Stock, Own, Averaged, AveragedOwn)] == [False, True, False, True]


def test_a_slot_is_asked_for_by_place_or_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an optimizer of tf.keras.optimizers.legacy, one of now, and TensorFlow on restoring a checkpoint do."""
    monkeypatch.syspath_prepend(str(INSIDE))
    asked = load("keras_optimizers").slot_asked
    assert asked("kernel", "rms", "ones") == ("kernel", "rms")
    assert asked(model_variable="kernel", variable_name="m", initial_value=None) == ("kernel", "m")
    assert asked(initializer=None, var="kernel", slot_name="m", shape=None) == ("kernel", "m")


@pytest.mark.parametrize("branch", [False, True])
def test_what_an_optimizer_starts_from_is_read_outside_of_a_branch(branch: bool) -> None:
    """A step that applies its gradients in a `tf.cond`: tensors in there cannot be written outside."""

    @contextlib.contextmanager
    def as_default(graph: object) -> Iterator[None]:
        stack.append(graph)
        yield
        stack.pop()

    outer, inner = SimpleNamespace(), SimpleNamespace()
    outer.as_default = lambda: as_default(outer)
    stack = [outer, inner] if branch else [outer]
    tf = SimpleNamespace(
        compat=SimpleNamespace(v1=SimpleNamespace(get_default_graph=lambda: stack[-1])),
        cast=lambda value, dtype: value,
        convert_to_tensor=lambda value: (value, stack[-1]),
        float32="float32",
        int64="int64",
        IndexedSlices=tuple,
    )
    module = together("record_keras")
    step = module.Step()
    step.graph = outer
    variable = object()
    recorder = SimpleNamespace(
        tf=tf,
        tracing=SimpleNamespace(step=step),
        points=SimpleNamespace(given=[]),
        parts=[SimpleNamespace(variable=variable)],
    )
    gradient = SimpleNamespace(graph=stack[-1])
    optimizer = SimpleNamespace(learning_rate="rate", iterations="iterations")
    module.KerasRecorder.saw_update(recorder, optimizer, [(gradient, variable)])
    assert (step.rate, step.iteration) == (("rate", outer), ("iterations", outer))
    assert stack[-1] is (inner if branch else outer)
    found = module.KerasRecorder.named_gradients(recorder, step)
    assert found == ([] if branch else [(recorder.parts[0], gradient)])


def test_metrics_of_one_name_in_a_loop_stay_apart() -> None:
    """Two of the class Mean are both called "mean", and the second would take the place of the first."""
    evaluation = together("record_loop").Evaluation()
    several = [SimpleNamespace(name="mean"), SimpleNamespace(name="auc"), SimpleNamespace(name="mean")]
    for metric in several:
        evaluation.add_metric(metric)
    assert [evaluation.name(metric) for metric in several] == ["mean", "auc", "mean_1"]


@pytest.fixture
def lines() -> Iterator[Any]:
    """What notes the lines that run."""
    module = together("lines")
    seen = module.Lines(None)
    with patch.object(builtins, module.NAME, seen.seen.add, create=True):
        yield seen


def run_watched(lines: Any, program: Path, text: str, **names: Any) -> dict[str, Any]:
    program.write_text(text)
    names = {"__name__": "__main__", **names}
    exec(lines.compiled(text.encode(), str(program)), names)
    return names


def test_lines_that_run_are_told_from_those_that_can(tmp_path: Path, lines: Any) -> None:
    program = tmp_path / "train.py"
    run_watched(
        lines,
        program,
        '"""Trains."""\n\n\ndef used(x):\n    if x:\n        return 1\n    return 2\n\n\n'
        "def unused():\n    return 3\n\n\nfor _ in range(3):\n    used(True)\n",
    )
    # What AutoGraph made of `unused` ran: its first line comes of line 11 of the program.
    made = str(tmp_path / "__autograph_generated_file_a.py")
    run_watched(lines, Path(made), "\n" * 6 + "x = 3\ny = 4\n")
    lines.origins[made, 7] = (str(program), 11)
    assert set(lines.said()) == {str(program)}
    said = lines.said()[str(program)]
    assert set(said["of"]) - set(said["ran"]) == {7}
    assert {1, 4, 5, 6, 10, 11, 14, 15} <= set(said["ran"])
    assert said["branches"] == [(5, "else"), (5, "then"), (14, "body")]
    assert said["taken"] == [(5, "then"), (14, "body")]


WHOLE = '''"""All kinds of statements."""

from __future__ import annotations

import contextlib
import functools


@functools.lru_cache(
    maxsize=None
)
def f(
    x,
    y=3,
):
    """Of several lines:

    this is one.
    """
    global z
    z = [
        x,
        y if x else
        0,
    ]
    return z


def only_a_docstring():
    """Nothing else."""


class A:
    """Has a docstring."""

    one: int = 1
    of = staticmethod(lambda: (
        None.gone
    ))

    def never(self):
        return (
            1
        )


def generator():
    for x in (
        __name__, 2,
    ):
        yield x
    else:
        yield 3


with contextlib.suppress(
    ValueError
), contextlib.suppress(KeyError):
    try:
        f(1)
        only_a_docstring()
        raise ValueError(*generator())
    except KeyError:
        never = 1
    except (
        TypeError,
        ValueError,
    ) as error:
        raised = error.args
    finally:
        at_the_end = True
shown = f"""{f(0)}
{z}"""
text = A.__doc__, f.__doc__, only_a_docstring.__doc__, A.__annotations__, __doc__
place = f.__wrapped__.__code__.co_firstlineno
'''


def test_a_watched_program_does_what_it_did(tmp_path: Path, lines: Any) -> None:
    program = tmp_path / "train.py"
    plain: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(WHOLE, str(program), "exec"), plain)
    watched = run_watched(lines, program, WHOLE)
    for name in ("shown", "text", "place", "raised", "at_the_end"):
        assert watched[name] == plain[name], name
    assert watched.keys() == plain.keys() and vars(watched["A"]).keys() == vars(plain["A"]).keys()
    said = lines.said()[str(program)]
    numbers = {text.strip(): line for line, text in enumerate(WHOLE.splitlines(), 1)}
    assert set(said["of"]) - set(said["ran"]) == {
        numbers[text] for text in ("return (", "1", "except KeyError:", "never = 1") if numbers[text] in said["of"]
    }
    assert {
        numbers["z = ["],
        numbers["return z"],
        numbers["__name__, 2,"],
        numbers["yield 3"],
        numbers["ValueError,"],
    } <= set(said["ran"])
    # Whether a lambda was called is not seen.
    assert numbers["None.gone"] not in said["of"]
    assert (numbers["except ("], "except") in said["taken"]
    assert (numbers["except KeyError:"], "except") in set(said["branches"]) - set(said["taken"])


def test_a_program_that_cannot_be_compiled_says_so_as_before(tmp_path: Path, lines: Any) -> None:
    for text in ("x = (\n", "return 1\n"):
        found = []
        for compiled in (lines.compiled, functools.partial(compile, mode="exec")):
            with pytest.raises(SyntaxError) as error:
                compiled(text, str(tmp_path / "train.py"))
            found.append((error.value.args, error.value.lineno))
        assert found[0] == found[1]
    # What is nested deeply runs.
    deep = "".join(" " * depth + "if True:\n" for depth in range(99)) + " " * 99 + "x = 1\n"
    names: dict[str, Any] = {}
    exec(lines.compiled(deep, str(tmp_path / "deep.py")), names)
    exec(lines.compiled("y = " + "+".join(["1"] * 2000), str(tmp_path / "long.py")), names)
    assert (names["x"], names["y"]) == (1, 2000)


def test_imported_modules_are_watched_and_libraries_are_not(tmp_path: Path) -> None:
    """Also where there is a compiled file already, which is left as it is."""
    (tmp_path / "helper.py").write_text("def f():\n    return 1\n")
    (tmp_path / "train.py").write_text("import helper\nimport colorsys\nhelper.f()\n")
    program = f"""
import json, runpy, sys
sys.path[:0] = [{str(tmp_path)!r}]
import helper
del sys.modules["helper"]
sys.path.append({str(INSIDE)!r})
import lines, types
lines.install(types.SimpleNamespace(write_json=lambda name, value: print(json.dumps(value))))
runpy.run_path({str(tmp_path / "train.py")!r}, run_name="__main__")
"""
    api = "tensorflow.python.autograph.impl.api"
    stand_in = f"import sys, types; sys.modules[{api!r}] = types.ModuleType({api!r})"
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    run = subprocess.run(
        [sys.executable, "-c", stand_in + program], capture_output=True, text=True, check=True, env=environment
    )
    said = json.loads(run.stdout)
    assert {Path(path).name: one["ran"] for path, one in said.items()} == {"helper.py": [1, 2], "train.py": [1, 2, 3]}
    [compiled] = (tmp_path / "__pycache__").glob("helper*.pyc")
    assert b"__tf_migrate_runs__" not in compiled.read_bytes()


BRANCHES = """def f(x):
    if x > 1:
        x = 1
    elif x:
        x = 2
    else:
        x = 3
    while x > 5:
        x -= 1
    try:
        if x == 3:
            raise ValueError
    except ValueError:
        x = 4
    if x == 9:
        x = 0


if __name__ == "__main__":
    f(0)
"""


@pytest.mark.parametrize(
    ("called_with", "taken"),
    [
        ((), set()),
        ((2,), {(2, "then"), (11, "else"), (15, "else")}),
        ((0,), {(2, "else"), (4, "else"), (11, "then"), (13, "except"), (15, "else")}),
        (
            (2, 1, 0),
            {
                (2, "then"),
                (2, "else"),
                (4, "then"),
                (4, "else"),
                (11, "then"),
                (11, "else"),
                (13, "except"),
                (15, "else"),
            },
        ),
    ],
)
def test_branches_that_were_taken_are_told_from_those_that_can_be(
    called_with: tuple[int, ...], taken: set[tuple[int, str]], tmp_path: Path, lines: Any
) -> None:
    program = tmp_path / "train.py"
    names = run_watched(lines, program, BRANCHES, __name__="other")
    for one in called_with:
        names["f"](one)
    every = {(2, "then"), (2, "else"), (4, "then"), (4, "else"), (8, "body"), (11, "then"), (11, "else")}
    every |= {(13, "except"), (15, "then"), (15, "else")}
    said = lines.said()[str(program)]
    assert (set(said["taken"]), set(said["branches"])) == (taken, every)


def test_an_else_that_is_not_written_is_left_out_where_nobody_sees_it(tmp_path: Path, lines: Any) -> None:
    """What AutoGraph makes of a function has lines, and no statement for what is not written."""
    program = tmp_path / "train.py"
    run_watched(lines, program, BRANCHES, __name__="other")
    made = str(tmp_path / "__autograph_generated_file_b.py")
    run_watched(lines, Path(made), "x = 1\nx = 2\nx = 3\n")
    lines.origins.update({(made, 1): (str(program), 2), (made, 2): (str(program), 3), (made, 3): (str(program), 15)})
    said = lines.said()[str(program)]
    assert said["taken"] == [(2, "then")]
    assert {(15, "then"), (11, "else")} <= set(said["branches"]) and (15, "else") not in said["branches"]


def test_weights_that_were_evaluated_are_kept_until_there_are_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = together("folder")
    monkeypatch.setattr(module, "EVALUATED_BYTES", 10)
    folder = SimpleNamespace(file=lambda *names: str(tmp_path.joinpath(*names)))
    evaluated = functools.partial(module.TaskFolder.evaluated, folder)
    (tmp_path / "evaluations").mkdir()
    for step in (1, 2):
        path = evaluated(step)
        assert path == str(tmp_path / "evaluations" / f"{step:08d}.npz")
        Path(path).write_bytes(b"sixbytes"[:6])
        assert evaluated(step) is None
    assert evaluated(3) is None


def test_a_process_that_evaluates_after_it_trained_waits_for_nobody(tmp_path: Path) -> None:
    folder = together("folder").TaskFolder.__new__(together("folder").TaskFolder)
    folder.record, folder.path, folder._training = str(tmp_path), str(tmp_path), 0
    (tmp_path / "ready").mkdir()
    assert not folder.training_over()  # nobody has trained yet
    folder.begin_training(0)
    assert not folder.training_over()
    folder.end_training()
    assert folder.training_over()
    (tmp_path / "ready" / f"training-{os.getppid()}").touch()  # another process, which runs
    assert not folder.training_over()


def test_weights_that_keras_makes_of_classes_are_not_replayed() -> None:
    match = together("batches").match

    def leaf(dtype: str) -> SimpleNamespace:
        return SimpleNamespace(dtype=SimpleNamespace(base_dtype=SimpleNamespace(name=dtype)))

    header = {"paths": ["features", "weights", "labels"], "dtypes": ["float32", "float32", "int64"]}
    wanted = [("features/x", leaf("float32")), ("labels", leaf("int64"))]
    assert match(header, wanted) == [0, 2]
    assert match(header, [("labels", leaf("int64")), ("features", leaf("float32"))]) == [2, 0]
    with pytest.raises(RuntimeError, match="cannot replay"):
        match({"paths": ["features", "other", "labels"], "dtypes": ["float32"] * 3}, wanted)


@pytest.mark.parametrize(("rank", "count"), [(3, 4), (3, 1), (2, 4)])
def test_masks_of_recurrent_layers_for_all_time_steps_are_those_of_one(rank: int, count: int) -> None:
    """`LSTM(dropout=)` draws for [batch, time, features] at once, its cell for [batch, features]."""
    module = together("record_keras")
    step = module.Step()

    class Ones:
        shape = SimpleNamespace(rank=rank)
        of = np.ones((2, 5, 3) if rank == 3 else (2, 3))

        def __getitem__(self, place: Any) -> Any:
            return self.of[place]

    def original(generator: Any, ones: Any, rate: float, training: Any = None, count: int = 1) -> Any:
        made = np.asarray(getattr(ones, "of", ones)) * rate
        return [made] * count if count > 1 else made

    recorder = SimpleNamespace(
        tracing=SimpleNamespace(step=step), plan={}, tf=SimpleNamespace(expand_dims=np.expand_dims)
    )
    masks = module.KerasRecorder.recurrent_masks(recorder, original, None, Ones(), 0.5, count=count)
    shapes = [one.shape for one in (masks if isinstance(masks, list) else [masks])]
    assert shapes == [(2, 1, 3) if rank == 3 else (2, 3)] * count
    assert step.mask_loops == [None]  # an eager one: nobody knows
    recorder.tracing.step = None  # not in a step of the training
    assert np.asarray(module.KerasRecorder.recurrent_masks(recorder, original, None, Ones(), 0.5)).ndim == rank
