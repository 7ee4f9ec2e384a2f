"""The plan key `turns`: trainers of parameter servers step one after another, in both programs."""

import importlib
import itertools
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from migrator.harness import packed
from migrator.harness.cluster import ClusterShape, ForkServer, Launch
from migrator.harness.recording import Recording, read

INSIDE = Path(__file__).parents[2] / "migrator" / "harness" / "inside"
TRAINERS = ["chief:0", "worker:0", "worker:1"]
MODULES = ("turns", "folder", "parts", "appended")


@pytest.fixture
def turns() -> Iterator[ModuleType]:
    """The module as a training process has it: among its siblings, under plain names."""
    sys.path.insert(0, str(INSIDE))
    try:
        yield importlib.import_module("turns")
    finally:
        sys.path.remove(str(INSIDE))
        for name in MODULES:
            sys.modules.pop(name, None)


def folder_of(record: Path, task: str, trainers: list[str] = TRAINERS) -> Any:
    return SimpleNamespace(record=str(record), task=task, trainers=trainers)


class Circle:
    """Trainers as threads, who note each step that they take."""

    def __init__(self, turns: ModuleType, record: Path) -> None:
        self.stiles = {task: turns.Turnstile(folder_of(record, task)) for task in TRAINERS}
        self.taken: list[tuple[int, str]] = []
        self.stepping = 0
        self.failures: list[BaseException] = []

    def train(self, task: str, steps: int, calls: int = 1) -> None:
        try:
            pauses = random.Random(task)
            for _ in range(calls):
                stile = self.stiles[task]
                time.sleep(pauses.random() / 50)
                stile.join()
                for _ in range(steps):
                    number = stile.take()
                    self.stepping += 1
                    assert self.stepping == 1, "two trainers step at once"
                    time.sleep(pauses.random() / 200)
                    self.taken.append((number, task))
                    stile.stepped()
                    # What follows a step, such as a checkpoint, still belongs to its turn.
                    time.sleep(pauses.random() / 200)
                    self.stepping -= 1
                stile.take()
                stile.leave()
        except BaseException as error:
            self.failures.append(error)

    def run(self, steps: dict[str, int], calls: int = 1) -> list[str]:
        threads = [threading.Thread(target=self.train, args=(task, count, calls)) for task, count in steps.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert not any(thread.is_alive() for thread in threads)
        assert not self.failures
        assert [number for number, _ in self.taken] == list(range(1, len(self.taken) + 1))
        return [task for _, task in self.taken]


def test_trainers_step_in_order(turns: ModuleType, tmp_path: Path) -> None:
    order = Circle(turns, tmp_path).run(dict.fromkeys(reversed(TRAINERS), 10))
    assert order == TRAINERS * 10


@pytest.mark.parametrize("counts", [(6, 2, 4), (1, 5, 3), (0, 3, 3), (2, 2, 0)])
def test_who_leaves_early_is_passed_over(turns: ModuleType, tmp_path: Path, counts: tuple[int, ...]) -> None:
    order = Circle(turns, tmp_path).run(dict(zip(TRAINERS, counts, strict=True)))
    assert order == [TRAINERS[place] for place in turns.rota(list(counts))]
    assert [order.count(task) for task in TRAINERS] == list(counts)


def test_every_training_call_has_a_circle_of_its_own(turns: ModuleType, tmp_path: Path) -> None:
    order = Circle(turns, tmp_path).run({"chief:0": 3, "worker:0": 1, "worker:1": 2}, calls=2)
    call = [TRAINERS[place] for place in turns.rota([3, 1, 2])]
    assert order == call * 2


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ([2, 2, 2], [0, 1, 2, 0, 1, 2]),
        ([3, 1, 2], [0, 1, 2, 0, 2, 0]),
        ([0, 2], [1, 1]),
        ([None, 1], [0, 1, 0, 0, 0, 0]),
        ([], []),
    ],
)
def test_rota(turns: ModuleType, limits: list[int | None], expected: list[int]) -> None:
    assert list(itertools.islice(turns.rota(limits), 6)) == expected


def test_who_is_left_is_known(turns: ModuleType, tmp_path: Path) -> None:
    first, second, third = (turns.Turnstile(folder_of(tmp_path, task)) for task in TRAINERS)
    for stile in (first, second, third):
        stile.join()
    assert (first.take(), first.departed(), first.alone()) == (1, 0, False)
    first.stepped()
    assert first.steps() == 1
    second.leave()
    assert (first.departed(), first.alone()) == (1, False)
    third.leave()
    assert (first.departed(), first.alone()) == (2, True)
    assert first.take() == 2


def test_nobody_steps_before_all_have_joined(
    turns: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "BARRIER_SECONDS", 0.3)
    monkeypatch.setattr(turns, "LOOK_AFTER_SECONDS", 0.1)
    first, second, _ = (turns.Turnstile(folder_of(tmp_path, task)) for task in TRAINERS)
    first.join()
    second.join()
    with pytest.raises(RuntimeError, match=r"^worker:1 never came to training call 1$"):
        first.take()


DYING = """
import os, sys, time
from types import SimpleNamespace
import turns

record, task, steps, end = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
trainers = ["chief:0", "worker:0", "worker:1"]
stile = turns.Turnstile(SimpleNamespace(record=record, task=task, trainers=trainers))
stile.join()
for _ in range(steps):
    number = stile.take()
    with open(os.path.join(record, "taken"), "a") as stream:
        stream.write("%d %s\\n" % (number, task))
    stile.stepped()
stile.take()
if end == "die":
    os.kill(os.getpid(), 9)
stile.leave()
"""


@pytest.mark.parametrize("dying", TRAINERS)
def test_a_trainer_that_dies_in_its_turn_stops_nobody(tmp_path: Path, dying: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(INSIDE)}
    processes = {
        task: subprocess.Popen(
            [sys.executable, "-c", DYING, str(tmp_path), task, *(("2", "die") if task == dying else ("5", "leave"))],
            env=environment,
        )
        for task in TRAINERS
    }
    try:
        codes = {task: process.wait(60) for task, process in processes.items()}
    finally:
        for process in processes.values():
            process.kill()
    assert codes == {task: -9 if task == dying else 0 for task in TRAINERS}
    alive = [task for task in TRAINERS if task != dying]
    expected = TRAINERS * 2 + alive * 3
    taken = [line.split() for line in (tmp_path / "taken").read_text().splitlines()]
    assert taken == [[str(number), task] for number, task in enumerate(expected, start=1)]


# -- real trainings ------------------------------------------------------------------------------------------

# Each trainer shuffles as it likes: only the recorded batches can make another program see the same. With
# "short" one worker's input ends early.
COMMON = """
import json, os, sys
import numpy as np
import tensorflow as tf
random = np.random.RandomState(0)
X = random.normal(size=(96, 5)).astype(np.float32)
Y = (X.sum(1, keepdims=True) + np.sin(3 * X[:, :1])).astype(np.float32)
task = json.loads(os.environ["TF_CONFIG"])["task"]

def train_data():
    short = "short" in sys.argv
    data = tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(96, seed=3 if short else None).repeat().batch(8)
    return data.take(2) if short and (task["type"], task["index"]) == ("worker", 0) else data
"""

ORIGINAL = (
    COMMON
    + """
def model_fn(features, labels, mode):
    # Seeds: some initial weights begin with losses ten times as large, and rounding errors grow from step to step.
    first, second = (tf.glorot_uniform_initializer(seed=seed) for seed in (1, 2))
    net = tf.layers.dense(features, 16, tf.nn.tanh, kernel_initializer=first)
    net = tf.layers.dense(net, 1, kernel_initializer=second)
    loss = tf.losses.mean_squared_error(labels, net)
    train_op = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

estimator = tf.estimator.Estimator(model_fn, config=tf.estimator.RunConfig(save_checkpoints_steps=4))
train_spec = tf.estimator.TrainSpec(train_data, max_steps=14)
tf.estimator.train_and_evaluate(estimator, train_spec, tf.estimator.EvalSpec(train_data, steps=1))
"""
)

MIGRATED = (
    COMMON
    + """
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type in ("worker", "ps"):
    tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id
    ).join()
strategy = tf.distribute.ParameterServerStrategy(resolver)
with strategy.scope():
    model = tf.keras.Sequential(
        [tf.keras.layers.Dense(16, tf.nn.tanh, input_shape=(5,)), tf.keras.layers.Dense(1)]
    )
    model.compile(tf.keras.optimizers.SGD(0.05, momentum=0.9), "mse")
data = tf.keras.utils.experimental.DatasetCreator(lambda context: train_data())
for epochs in (1, 2):
    model.fit(data, steps_per_epoch=7, epochs=epochs, initial_epoch=epochs - 1, verbose=0)
"""
)
STEPS = 14
SHAPES = {"original": "chief=1,worker=2,ps=2", "migrated": "chief=1,worker=3,ps=2"}
WORKERS = ["worker:0", "worker:1", "worker:2"]


@dataclass(frozen=True)
class Run:
    folder: Path
    recording: Recording
    order: list[int]
    losses: list[float]

    @property
    def record(self) -> str:
        return str(self.folder / "record")


class Runner:
    """Runs the two programs in turns, each run in a fresh folder."""

    def __init__(self, folder: Path, servers: dict[str, ForkServer]) -> None:
        self.folder = folder
        self.servers = servers
        self.count = 0

    def run(self, program: str, *args: str, turns: bool = True, **plan: Any) -> Run:
        self.count += 1
        run_dir = self.folder / f"run-{self.count}"
        run_dir.mkdir()
        script = run_dir / "program.py"
        script.write_text(ORIGINAL if program == "original" else MIGRATED)
        trainers = TRAINERS if program == "original" else WORKERS
        launch = Launch(
            program,
            script,
            args,
            ClusterShape.parse(SHAPES[program], coordinated=program == "migrated"),
            run_dir,
            plan={
                "record": str(run_dir / "record"),
                "model_dir": str(run_dir / "model"),
                "program": program,
                "trainers": trainers,
                "turns": turns,
                "state_steps": [1, 2, 5],
                "evaluate": False,
                **plan,
            },
            total_timeout=180.0,
        )
        outcome = self.servers[program].run(launch)
        assert outcome.failure is None, outcome.failure
        recording = read(run_dir / "record")
        stamps = sorted(
            (one.number, place, number)
            for place, task in enumerate(trainers)
            for number, one in enumerate(packed.places(run_dir / "record" / task.replace(":", "-") / "steps"))
        )
        losses = {(step.task, step.number): step.loss for step in recording.steps}
        return Run(
            run_dir,
            recording,
            [place for _, place, _ in stamps],
            [losses[trainers[place], number + 1] for _, place, number in stamps],
        )


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory, servers: tuple[ForkServer, ForkServer]) -> Runner:
    return Runner(tmp_path_factory.mktemp("runs"), {"original": servers[0], "migrated": servers[1]})


@pytest.fixture(scope="module")
def original(runner: Runner) -> Run:
    return runner.run("original")


@pytest.fixture(scope="module")
def initial(original: Run) -> str:
    # Both programs leave their variables the names that layers have by themselves.
    return str(original.folder / "record" / "chief-0" / "initial.npz")


@pytest.fixture(scope="module")
def migrated(runner: Runner, original: Run, initial: str) -> Run:
    return runner.run("migrated", initial=initial, replay=original.record)


def check_equal(first: Run, second: Run) -> None:
    """Every loss and every recorded array, to the last bit."""
    assert first.losses == second.losses
    for kind in ("states", "slots", "gradients"):
        left, right = getattr(first.recording, kind), getattr(second.recording, kind)
        assert left.keys() == right.keys()
        for number in left:
            assert left[number].keys() == right[number].keys()
            for name, value in left[number].items():
                np.testing.assert_array_equal(value, right[number][name])


def check_shape(run: Run) -> None:
    assert run.order == [number % 3 for number in range(STEPS)]
    # The last one, and at the end of each of two calls of fit.
    ends = {STEPS} if run.recording.program == "original" else {7, STEPS}
    assert set(run.recording.states) == set(run.recording.slots) == {1, 2, 5} | ends
    assert set(run.recording.gradients) == {1, 2, 5}
    for entries in run.recording.slots.values():
        assert {slot for _, slot in entries} == {"momentum"}


@pytest.mark.tensorflow
def test_an_original_in_turns_repeats_itself(runner: Runner, original: Run, initial: str) -> None:
    check_shape(original)
    check_equal(original, runner.run("original", initial=initial, replay=original.record))
    # Without a seed it sees other batches, in the same order of trainers.
    other = runner.run("original", initial=initial)
    assert other.order == original.order
    assert other.losses != original.losses


@pytest.mark.tensorflow
def test_states_and_gradients_carry_the_number_of_the_step(original: Run) -> None:
    recording = original.recording
    before = {"initial": recording.initial, 1: recording.states[1], 2: recording.states[2]}
    first = {name: before["initial"][name] - 0.05 * value for name, value in recording.gradients[1].items()}
    for name, value in first.items():
        np.testing.assert_allclose(before[1][name], value, rtol=1e-5, atol=1e-6)
        second = before[1][name] - 0.05 * (0.9 * recording.gradients[1][name] + recording.gradients[2][name])
        np.testing.assert_allclose(before[2][name], second, rtol=1e-5, atol=1e-6)


@pytest.mark.tensorflow
def test_a_migrated_program_in_turns_repeats_itself(runner: Runner, original: Run, migrated: Run, initial: str) -> None:
    check_shape(migrated)
    check_equal(migrated, runner.run("migrated", initial=initial, replay=original.record))


@pytest.mark.tensorflow
def test_both_programs_agree_and_a_wrong_rate_shows(runner: Runner, original: Run, migrated: Run, initial: str) -> None:
    def batches(run: Run) -> list[list[str | None]]:
        tasks = list(run.recording.participation)
        return [[step.batch for step in run.recording.steps if step.task == task] for task in tasks]

    def distance(run: Run) -> Any:
        left, right = np.array(original.losses), np.array(run.losses)
        return np.abs(left - right) / left

    assert batches(original) == batches(migrated)
    assert distance(migrated).max() < 2e-6
    left, right = original.recording, migrated.recording
    for number in left.states:
        for name, value in left.states[number].items():
            np.testing.assert_allclose(value, right.states[number][name], rtol=1e-5, atol=1e-6)
        for key, value in left.slots[number].items():
            np.testing.assert_allclose(value, right.slots[number][key], rtol=1e-4, atol=1e-5)
    for number in left.gradients:
        for name, value in left.gradients[number].items():
            np.testing.assert_allclose(value, right.gradients[number][name], rtol=1e-4, atol=1e-5)
    wrong = runner.run("migrated", initial=initial, replay=original.record, learning_rate_factor=1.0001)
    assert distance(wrong).max() > 10 * distance(migrated).max()


@pytest.mark.tensorflow
def test_a_trainer_whose_input_ends_leaves_the_circle(runner: Runner) -> None:
    original = runner.run("original", "short")
    expected = [0, 1, 2, 0, 1, 2] + [0, 2] * 4
    assert original.order == expected
    assert set(original.recording.states) == {1, 2, 5, STEPS}
    migrated = runner.run(
        "migrated", initial=str(Path(original.record) / "chief-0" / "initial.npz"), replay=original.record
    )
    assert migrated.order == expected
    np.testing.assert_allclose(migrated.losses, original.losses, rtol=2e-6)


@pytest.mark.tensorflow
def test_without_turns_nobody_waits(runner: Runner) -> None:
    for program in ("original", "migrated"):
        free = runner.run(program, turns=False)
        # Estimator's workers read the count at the start of a step: each but the last may be two steps past the end.
        assert STEPS <= len(free.order) <= STEPS + 4
        assert not (free.folder / "record" / "turns").exists()
