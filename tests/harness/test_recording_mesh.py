"""Steps on a DTensor mesh: recorded, started from given weights, replayed, evaluated, limited."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from migrator.harness.cluster import LOCAL, ClusterShape, ForkServer, Launch
from migrator.harness.recording import Recording, UnrecordedTraining, read

pytestmark = pytest.mark.tensorflow

PROGRAM = """
import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

SEED = 1
devices = len(tf.config.list_logical_devices("CPU"))
mesh = dtensor.create_mesh([("batch", devices // 2), ("model", 2)], device_type="CPU")
layouts = tf.keras.dtensor.experimental.LayoutMap(mesh=mesh)
layouts["hidden.kernel"] = dtensor.Layout(["unsharded", "model"], mesh)
layouts["hidden.bias"] = dtensor.Layout(["model"], mesh)
tf.keras.backend.experimental.enable_tf_random_generator()
tf.keras.utils.set_random_seed(1)
with layouts.scope():
    model = tf.keras.Sequential([
        tf.keras.layers.Dense(6, "tanh", input_shape=(3,), name="hidden"),
        tf.keras.layers.Dense(1, name="last"),
    ])
optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9, mesh=mesh)
error = tf.keras.metrics.MeanAbsoluteError(name="error", mesh=mesh)


def data(count, seed):
    random = np.random.RandomState(seed)
    x = random.normal(size=(count, 3)).astype(np.float32)
    y = x @ np.array([[1.0], [-2.0], [0.5]], np.float32)
    for batch in tf.data.Dataset.from_tensor_slices((x, y)).batch(8):
        yield tuple(split(tensor) for tensor in batch)


def split(tensor):
    shares = tf.split(tensor, mesh.dim_size("batch"))
    layout = dtensor.Layout.batch_sharded(mesh, "batch", rank=2)
    return dtensor.pack([shares[place["batch"]] for place in mesh.local_device_locations()], layout)


class Loop:
    @tf.function
    def train_step(self, batch):
        features, labels = batch
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(features, training=True) - labels))
        variables = model.trainable_variables
        gradients = [dtensor.relayout(g, v.layout) for g, v in zip(tape.gradient(loss, variables), variables)]
        optimizer.apply_gradients(zip(gradients, variables))
        return loss

    @tf.function
    def test_step(self, batch):
        features, labels = batch
        error.update_state(labels, model(features, training=False))


loop = Loop()
for epoch in range(2):
    for batch in data(32, SEED):
        print("%.9g" % loop.train_step(batch).numpy())
    error.reset_state()
    for batch in data(16, 7):
        loop.test_step(batch)
    print("error", error.result().numpy())
"""


class Meshes:
    """Runs programs in one interpreter, each in a folder of its own."""

    def __init__(self, server: ForkServer, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.count = 0

    def run(self, program: str = PROGRAM, **plan: Any) -> tuple[Recording, Path]:
        self.count += 1
        folder = self.folder / str(self.count)
        folder.mkdir()
        script = folder / "train.py"
        script.write_text(program, encoding="utf-8")
        full = {
            "record": str(folder / "record"),
            "model_dir": str(folder / "model"),
            "trainers": [str(LOCAL)],
            "state_steps": [1, 3],
            "evaluate": True,
            "devices": 4,
            **plan,
        }
        outcome = self.server.run(Launch("migrated", script, (), ClusterShape.parse(""), folder, full))
        assert outcome.failure is None, outcome.failure
        return read(folder / "record"), folder

    def save(self, recording: Recording) -> str:
        self.count += 1
        path = self.folder / f"{self.count}.npz"
        np.savez(path, **recording.initial)  # type: ignore[arg-type]
        return str(path)


@pytest.fixture(scope="module")
def meshes(tmp_path_factory: pytest.TempPathFactory, servers: tuple[ForkServer, ForkServer]) -> Meshes:
    return Meshes(servers[1], tmp_path_factory.mktemp("meshes"))


@pytest.fixture(scope="module")
def one(meshes: Meshes) -> tuple[Recording, Path]:
    return meshes.run(evaluation_control=True)


def losses(recording: Recording) -> list[float]:
    return [step.loss for step in recording.steps]


def assert_same_training(found: Recording, wanted: Recording) -> None:
    """The same losses, and the same weights at each step that has them."""
    np.testing.assert_allclose(losses(found), losses(wanted), rtol=2e-6)
    for step, values in wanted.states.items():
        for name, value in values.items():
            np.testing.assert_allclose(found.states[step][name], value, rtol=1e-5, atol=1e-7)


def by_hand(recording: Recording, rows: np.ndarray, rate: float = 0.1, momentum: float = 0.9) -> list[float]:
    """The losses of 8 steps of two epochs, in numpy, from the recorded weights."""
    first, bias, second, last = (recording.initial[v.name].astype(np.float64) for v in recording.variables)
    weights, moments, found = [first, bias, second, last], [0.0, 0.0, 0.0, 0.0], []
    labels = rows @ np.array([[1.0], [-2.0], [0.5]])
    for step in range(8):
        part = slice(step % 4 * 8, step % 4 * 8 + 8)
        x, y = rows[part], labels[part]
        hidden = np.tanh(x @ weights[0] + weights[1])
        off = hidden @ weights[2] + weights[3] - y
        found.append(float(np.mean(off**2)))
        back = 2 * off / 8
        inner = back @ weights[2].T * (1 - hidden**2)
        gradients = [x.T @ inner, inner.sum(0), hidden.T @ back, back.sum(0)]
        moments = [momentum * m - rate * g for m, g in zip(moments, gradients, strict=True)]
        weights = [w + m for w, m in zip(weights, moments, strict=True)]
    return found


def test_steps_on_a_mesh_are_recorded(one: tuple[Recording, Path]) -> None:
    recording, folder = one
    printed = next(iter(folder.rglob("*stdout*"))).read_text().split("\n")
    shown = [np.float32(line) for line in printed if line and " " not in line]
    assert [np.float32(loss) for loss in losses(recording)] == shown
    assert len(shown) == 8
    rows = np.random.RandomState(1).normal(size=(32, 3)).astype(np.float32)
    np.testing.assert_allclose(losses(recording), by_hand(recording, rows), rtol=1e-5)
    assert [v.shape for v in recording.variables] == [(3, 6), (6,), (6, 1), (1,)]
    assert recording.optimizer is not None and recording.optimizer.name == "SGD"
    assert sorted(recording.states) == [1, 3, 4, 8]
    assert sorted(recording.gradients) == [1, 3]
    assert [batch.size for batch in recording.batches] == [8] * 8
    for variable in recording.variables:
        moved = recording.initial[variable.name] - np.float32(0.1) * recording.gradients[1][variable.name]
        np.testing.assert_allclose(recording.states[1][variable.name], moved, rtol=1e-5, atol=1e-7)
    assert recording.slots[1].keys() == {(v.name, "momentum") for v in recording.variables}
    first, last = recording.evaluations
    assert (first.step, last.step) == (4, 8) and first.results.keys() == {"error"}
    assert first.control == last.control != first.results


def test_what_each_device_holds_is_recorded(one: tuple[Recording, Path]) -> None:
    program = json.loads(next(one[1].rglob("program.json")).read_text())
    shown = [(entry["layout"], entry["device_shapes"]) for entry in program["variables"]]
    assert shown == [
        (["unsharded", "model"], [[3, 3]] * 4),
        (["model"], [[3]] * 4),
        (["unsharded", "unsharded"], [[6, 1]] * 4),
        (["unsharded"], [[1]] * 4),
    ]


def test_a_mesh_of_others_trains_the_same(meshes: Meshes, one: tuple[Recording, Path]) -> None:
    other = PROGRAM.replace("SEED = 1", "SEED = 5")
    different, _ = meshes.run(other, devices=8, initial=meshes.save(one[0]), steps=3)
    assert not {batch.digest for batch in different.batches} & {batch.digest for batch in one[0].batches}
    assert len(different.steps) == 3
    replay = str(one[1] / "record")
    replayed, _ = meshes.run(other, devices=8, initial=meshes.save(one[0]), replay=replay)
    assert_same_training(replayed, one[0])
    assert [batch.digest for batch in replayed.batches] == [batch.digest for batch in one[0].batches]
    assert replayed.evaluations[0].results == pytest.approx(one[0].evaluations[0].results, rel=2e-5)


def outside() -> str:
    """The program with its gradients applied outside of the function that computes them."""
    begin = PROGRAM.index("        gradients = [dtensor.relayout")
    end = PROGRAM.index("    @tf.function\n    def test_step")
    after = """        return loss, tape.gradient(loss, model.trainable_variables)

    def train_step(self, batch):
        loss, gradients = self.gradients(batch)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

"""
    return PROGRAM.replace(PROGRAM[begin:end], after).replace("def train_step", "def gradients", 1)


def test_gradients_that_are_applied_outside_of_their_function_are_recorded(
    meshes: Meshes, one: tuple[Recording, Path]
) -> None:
    program = outside().replace("SEED = 1", "SEED = 5")
    initial, replay = meshes.save(one[0]), str(one[1] / "record")
    replayed, _ = meshes.run(program, initial=initial, replay=replay, evaluation_control=True)
    np.testing.assert_allclose(losses(replayed), losses(one[0]), rtol=2e-6)
    assert [batch.digest for batch in replayed.batches] == [batch.digest for batch in one[0].batches]
    assert [step.learning_rate for step in replayed.steps] == [step.learning_rate for step in one[0].steps]
    assert replayed.evaluations[0].results == pytest.approx(one[0].evaluations[0].results, rel=2e-5)
    assert sorted(replayed.states) == sorted(one[0].states) and replayed.gradients.keys() == one[0].gradients.keys()
    for mine, other in ((replayed.states, one[0].states), (replayed.gradients, one[0].gradients)):
        for step, values in other.items():
            for name, value in values.items():
                np.testing.assert_allclose(mine[step][name], value, rtol=1e-5, atol=1e-6)
    for key, value in one[0].slots[1].items():
        np.testing.assert_allclose(replayed.slots[1][key], value, rtol=1e-5, atol=1e-6)
    short, _ = meshes.run(program, initial=initial, steps=3)
    assert len(short.steps) == 3 and short.evaluations[0].step == 3
    faster, _ = meshes.run(program, initial=initial, replay=replay, steps=2, learning_rate_factor=2.0)
    assert [step.learning_rate for step in faster.steps] == pytest.approx([0.2, 0.2])
    assert losses(faster)[0] == pytest.approx(losses(replayed)[0]) and losses(faster)[1] != losses(replayed)[1]


NORMALIZED = """
class Normalization(tf.keras.layers.BatchNormalization):
    def call(self, inputs, training=None):
        mean, variance = tf.nn.moments(inputs, [0]) if training else (self.moving_mean, self.moving_variance)
        if training:
            self.moving_mean.assign(0.5 * self.moving_mean + 0.5 * mean)
            self.moving_variance.assign(0.5 * self.moving_variance + 0.5 * variance)
        return tf.nn.batch_normalization(inputs, mean, variance, self.beta, self.gamma, 1e-3)


with layouts.scope():
"""


def test_averages_rates_and_clipping_are_those_of_the_step(meshes: Meshes) -> None:
    """The recorder sees a step whose gradients are applied outside of it when it has run: its moving averages have
    moved then, its rate is not computed yet, and its gradients are not clipped.
    """
    schedule = "tf.keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5, staircase=True), global_clipnorm=0.25"
    program = outside().replace("with layouts.scope():\n", NORMALIZED, 1).replace("SGD(0.1,", f"SGD({schedule},")
    program = program.replace('name="hidden"),', 'name="hidden"),\n        Normalization(),')
    recording, folder = meshes.run(program)
    assert [step.learning_rate for step in recording.steps] == [np.float32(0.1 * 0.5**step) for step in range(8)]
    assert recording.update_ops == 2
    averages = [variable.name for variable in recording.variables if "moving" in variable.name]
    assert [set(recording.initial[name].tolist()) for name in averages] == [{0.0}, {1.0}]
    assert all((recording.states[1][name] != recording.initial[name]).all() for name in averages)
    squares = sum(float(np.sum(np.square(gradient))) for gradient in recording.gradients[1].values())
    assert squares**0.5 == pytest.approx(0.25, rel=1e-5)
    initial, replay = meshes.save(recording), str(folder / "record")
    again, _ = meshes.run(program.replace("SEED = 1", "SEED = 5"), initial=initial, replay=replay)
    assert_same_training(again, recording)
    faster, _ = meshes.run(program, initial=initial, steps=2, learning_rate_factor=2.0)
    assert [step.learning_rate for step in faster.steps] == pytest.approx([0.2, 0.1])


APPLIED = "optimizer.apply_gradients(zip(gradients, variables))"


def test_steps_that_assign_by_themselves_are_recorded(meshes: Meshes, one: tuple[Recording, Path]) -> None:
    """Without an optimizer that Keras knows; and such a step is traced no more often than without a recording."""
    own = PROGRAM.replace(APPLIED, "[v.assign_sub(0.1 * g) for v, g in zip(variables, gradients)]; traces.append(1)")
    own = "traces = []\n" + own + 'print("traces", len(traces))\n'
    assert own.count("assign_sub") == 1
    rows = np.random.RandomState(1).normal(size=(32, 3)).astype(np.float32)
    alone, folder = meshes.run(own)
    np.testing.assert_allclose(losses(alone), by_hand(alone, rows, momentum=0.0), rtol=1e-5)
    assert sorted(alone.states) == [1, 3, 4, 8] and sorted(alone.gradients) == [1, 3]
    assert [v.shape for v in alone.variables] == [(3, 6), (6,), (6, 1), (1,)]
    assert alone.optimizer is not None and alone.optimizer.name == "ByHand"
    initial, replay = meshes.save(alone), str(folder / "record")
    replayed, again = meshes.run(own.replace("SEED = 1", "SEED = 5"), initial=initial, replay=replay)
    assert_same_training(replayed, alone)
    for each in (folder, again):
        assert "traces 1\n" in next(iter(each.rglob("*stdout*"))).read_text()
    faster, _ = meshes.run(own, initial=initial, replay=replay, learning_rate_factor=2.0)
    np.testing.assert_allclose(losses(faster), by_hand(alone, rows, 0.2, 0.0), rtol=1e-5)


def test_gradients_that_are_assigned_outside_of_their_function_are_not_recorded(meshes: Meshes) -> None:
    outside = PROGRAM.replace(APPLIED, "pass").replace("        return loss\n", "        return loss, gradients\n", 1)
    outside = outside.replace(
        'print("%.9g" % loop.train_step(batch).numpy())',
        "[v.assign_sub(0.1 * g) for v, g in zip(model.trainable_variables, loop.train_step(batch)[1])]",
    )
    with pytest.raises(UnrecordedTraining, match="without a Keras optimizer"):
        meshes.run(outside)
