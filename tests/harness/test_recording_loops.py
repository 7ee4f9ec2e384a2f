"""Training loops of a program's own: recorded on one device and on several replicas, replayed, evaluated, limited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from migrator.harness.cluster import LOCAL, ClusterShape, ForkServer, Launch
from migrator.harness.recording import Recording, UnrecordedTraining, chosen_batches, read, read_batch

pytestmark = pytest.mark.tensorflow

HEAD = """
import os
import numpy as np
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
import tensorflow as tf

GLOBAL = 8


def data(count, seed):
    random = np.random.RandomState(seed)
    x = random.normal(size=(count, 3)).astype(np.float32)
    y = x @ np.array([1.0, -2.0, 0.5], np.float32) + 0.1 * random.normal(size=count).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(GLOBAL)


tf.keras.utils.set_random_seed(1)  # weights of another seed may cancel to almost nothing, where rounding shows
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([
        tf.keras.layers.Dense(5, "tanh", input_shape=(3,), kernel_regularizer=tf.keras.regularizers.L2(0.01)),
        tf.keras.layers.Dense(1),
    ])
    optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
    loss_object = tf.keras.losses.MeanSquaredError(reduction=tf.keras.losses.Reduction.NONE)
    mean_loss = tf.keras.metrics.Mean(name="loss")
    error = tf.keras.metrics.MeanAbsoluteError(name="error")
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
    manager = tf.train.CheckpointManager(checkpoint, "{folder}", max_to_keep=2)


def compute_loss(labels, predictions):
    loss = tf.nn.compute_average_loss(loss_object(labels[:, tf.newaxis], predictions), global_batch_size=GLOBAL)
    return loss + tf.nn.scale_regularization_loss(tf.add_n(model.losses))


def train_step(inputs):
    features, labels = inputs
    with tf.GradientTape() as tape:
        loss = compute_loss(labels, model(features, training=True))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


def test_step(inputs):
    features, labels = inputs
    predictions = model(features, training=False)
    mean_loss.update_state(compute_loss(labels, predictions) * strategy.num_replicas_in_sync)
    error.update_state(labels[:, tf.newaxis], predictions)


@tf.function
def distributed_test_step(inputs):
    strategy.run(test_step, args=(inputs,))


def evaluate():
    for metric in (mean_loss, error):
        metric.reset_state()
    for batch in strategy.experimental_distribute_dataset(data(24, 2)):
        distributed_test_step(batch)
    print(mean_loss.result().numpy(), error.result().numpy())
"""
LOOP = """

@tf.function
def distributed_train_step(inputs):
    return strategy.reduce("SUM", strategy.run(train_step, args=(inputs,)), axis=None)


for epoch in range(2):
    for batch in strategy.experimental_distribute_dataset(data(32, 1)):
        print("%.9g" % distributed_train_step(batch))
    evaluate()
    manager.save()
"""
MANY = """

@tf.function
def train(iterator, steps):
    for _ in tf.range(steps):
        strategy.run(train_step, args=(next(iterator),))


train(iter(strategy.experimental_distribute_dataset(data(32, 1).repeat())), tf.constant(6))
evaluate()
"""
UNEVEN = """

def compute_loss(labels, predictions):
    return tf.reduce_mean(loss_object(labels[:, tf.newaxis], predictions)) / strategy.num_replicas_in_sync


def batches(context):
    whole = data(32, {seed}).unbatch()
    return whole.batch(6).take(1).concatenate(whole.skip(6).batch(2).take(1)).repeat()


@tf.function
def train(iterator, steps):
    for _ in tf.range(steps):
        strategy.run(train_step, args=(next(iterator),))


train(iter(strategy.distribute_datasets_from_function(batches)), tf.constant(2))
"""
WITHOUT_STRATEGY = """

@tf.function
def plain_step(inputs):
    return train_step(inputs)


for batch in data(32, 1):
    plain_step(batch)
"""
EAGER = """

for batch in data(32, 1):
    print("step", float(train_step(batch)))
"""
OVER_DATA = """

@tf.function
def every_step(batches):
    for batch in batches:
        train_step(batch)


every_step(data(32, 1))
"""
WHILE = """

@tf.function
def every_step(batches):
    done = tf.constant(0)
    while done < 4:
        train_step(next(batches))
        done += 1


every_step(iter(data(32, 1).repeat()))
"""
ASKING = """

@tf.function
def asking_step(batches):
    train_step(next(batches))


batches = iter(data(32, 1))
for _ in range(4):
    asking_step(batches)
"""
AROUND_A_LOOP = """

def compute_loss(labels, predictions):
    total = tf.constant(0.0)
    for count in tf.range(2):  # a loop within the step, in which a layer is called
        total += tf.reduce_mean(tf.square(labels - tf.nn.dropout(predictions, 0.5)[:, 0])) / 2.0
        total += 0.0 * tf.reduce_mean(model.layers[1](tf.zeros([1, 5])))
    return total


def own_step(features, labels):
    with tf.GradientTape() as tape:
        loss = compute_loss(labels, model(features, training=True))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))


@tf.function
def plain_step(features, labels):
    own_step(features, labels)


for features, labels in data(32, 1):
    plain_step(features, labels)
"""
SEVERAL = """

@tf.function
def train_step(batches):
    with tf.GradientTape() as tape:
        loss = tf.constant(0.0)
        for _ in tf.range(2):
            features, labels = next(batches)
            loss += compute_loss(labels, model(features, training=True)) / 2.0
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))


batches = iter(data(32, 1))
for _ in range(2):
    train_step(batches)
"""
EVALUATED_EAGERLY = """
mean_loss, error = tf.keras.metrics.Mean("loss"), tf.keras.metrics.MeanAbsoluteError("error")


def evaluate():
    for metric in (mean_loss, error):
        metric.reset_state()
    for features, labels in data(24, 2):
        predictions = model(features, training=False)
        mean_loss.update_state(compute_loss(labels, predictions))
        error.update_state(labels[:, tf.newaxis], predictions)
    print("evaluated %.9g %.9g" % (mean_loss.result(), error.result()))


trained, compiled = tf.keras.metrics.Mean("trained"), tf.function(train_step)
for epoch in range(2):
    for batch in data(32, 1):
        trained.update_state({step}(batch))
    evaluate()
"""
TWO_NETWORKS = """
net, other = [
    tf.keras.Sequential([tf.keras.layers.Dense(4, "tanh", input_shape=(width,)), tf.keras.layers.Dense(out)])
    for width, out in ((3, 3), (3, 1))
]
net_optimizer = tf.keras.optimizers.Adam(0.01)
other_optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)


def other_step(features, labels):
    with tf.GradientTape() as tape:
        # Squared, for Grappler (2.21) leaves a read that gradients do not depend on without order before an update.
        made = tf.reduce_mean(tf.square(other(net(features)) + 1.0))
        loss = tf.reduce_mean(tf.square(other(features) - labels[:, tf.newaxis])) + made
    gradients = tape.gradient(loss, other.trainable_variables)
    other_optimizer.apply_gradients(zip(gradients, other.trainable_variables))
    return loss


def net_step(features):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(other(net(features))))
    net_optimizer.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))
    return loss
"""
IN_ONE = """

@tf.function
def both(features, labels):
    return other_step(features, labels) + net_step(features)


for features, labels in data(32, 1):
    both(features, labels)
"""
IN_TWO = """

if {compiled}:
    other_step, net_step = tf.function(other_step), tf.function(net_step)
for number, (features, labels) in enumerate(data(32, 1)):
    other_step(features, labels)
    if number % {every} == {every} - 1:
        net_step(features)
"""
DROPPED = """
with strategy.scope():
    model = tf.keras.Sequential([
        tf.keras.layers.Dense(5, "tanh", input_shape=(3,), kernel_regularizer=tf.keras.regularizers.L2(0.01)),
        tf.keras.layers.Dropout(0.4),
        tf.keras.layers.Dense(1),
    ])
"""


class Loops:
    """Runs programs in one interpreter, each in a folder of its own."""

    def __init__(self, server: ForkServer, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.count = 0

    def run(self, body: str, **plan: Any) -> tuple[Recording, Path]:
        self.count += 1
        folder = self.folder / str(self.count)
        folder.mkdir()
        script = folder / "train.py"
        script.write_text(HEAD.replace("{folder}", str(folder / "unused")) + body, encoding="utf-8")
        full = {
            "record": str(folder / "record"),
            "model_dir": str(folder / "model"),
            "trainers": [str(LOCAL)],
            "state_steps": [1, 3],
            "evaluate": True,
            **plan,
        }
        outcome = self.server.run(Launch("migrated", script, (), ClusterShape.parse(""), folder, full))
        assert outcome.failure is None, outcome.failure
        assert not (folder / "unused").exists()
        return read(folder / "record"), folder

    def save(self, recording: Recording) -> str:
        self.count += 1
        path = self.folder / f"{self.count}.npz"
        np.savez(path, **recording.initial)  # type: ignore[arg-type]
        return str(path)


@pytest.fixture(scope="module")
def loops(tmp_path_factory: pytest.TempPathFactory, servers: tuple[ForkServer, ForkServer]) -> Loops:
    return Loops(servers[1], tmp_path_factory.mktemp("loops"))


@pytest.fixture(scope="module")
def one(loops: Loops) -> tuple[Recording, Path]:
    return loops.run(LOOP, evaluation_control=True)


LEGACY = """
with strategy.scope():
    rates = tf.keras.optimizers.schedules.PiecewiseConstantDecay([2], [0.1, 0.05])
    optimizer = tf.keras.optimizers.legacy.SGD(rates, momentum=0.9, clipvalue=0.5)
"""


def losses(recording: Recording) -> list[float]:
    return [step.loss for step in recording.steps]


def test_an_optimizer_of_before_2_11_is_recorded(loops: Loops) -> None:
    recording = loops.run(LEGACY + LOOP, evaluate=False, steps=4)[0]
    optimizer = recording.optimizer
    assert optimizer is not None and optimizer.name == "SGD"
    known = {name: optimizer.settings[name] for name in ("momentum", "nesterov", "clipvalue", "clipnorm", "use_ema")}
    wanted = {"momentum": np.float32(0.9), "nesterov": False, "clipvalue": 0.5, "clipnorm": None, "use_ema": False}
    assert known == wanted and optimizer.settings["learning_rate"] is None  # a schedule's
    rates = [step.learning_rate for step in recording.steps]
    np.testing.assert_allclose(rates, [0.1, 0.1, 0.1, 0.05], rtol=1e-6)
    for variable in recording.variables:
        gradient = recording.gradients[1][variable.name]
        assert np.abs(gradient).max() <= 0.5
        # The sum of gradients, as TensorFlow 1 keeps it, and not Keras' product with the rate.
        np.testing.assert_allclose(recording.slots[1][variable.name, "momentum"], gradient, rtol=1e-5, atol=1e-7)
        moved = recording.initial[variable.name] - np.float32(0.1) * gradient
        np.testing.assert_allclose(recording.states[1][variable.name], moved, rtol=1e-5, atol=1e-7)
    control = loops.run(LEGACY + LOOP, evaluate=False, steps=1, learning_rate_factor=2.0)[0]
    name = recording.variables[0].name
    moved = recording.initial[name] - np.float32(0.2) * recording.gradients[1][name]
    np.testing.assert_allclose(control.states[1][name], moved, rtol=1e-5, atol=1e-7)


def test_a_loop_is_recorded(loops: Loops, one: tuple[Recording, Path]) -> None:
    recording, folder = one
    printed = next(iter(folder.rglob("*stdout*"))).read_text().split("\n")
    shown = [np.float32(line) for line in printed if line and " " not in line]
    assert [np.float32(loss) for loss in losses(recording)] == shown
    assert len(shown) == 8
    assert [v.shape for v in recording.variables] == [(3, 5), (5,), (5, 1), (1,)]
    assert recording.optimizer is not None and recording.optimizer.name == "SGD"
    assert recording.regularizers == 1
    given = loops.run(LOOP, initial=loops.save(recording), steps=0, evaluate=False)[0]
    kernel = recording.variables[0].name
    for one_of_both in (recording, given):
        assert one_of_both.regularization == pytest.approx(0.01 * np.sum(recording.initial[kernel] ** 2), rel=1e-6)
    assert sorted(recording.states) == [1, 3, 4, 8]
    assert sorted(recording.gradients) == [1, 3]
    assert [batch.size for batch in recording.batches] == [8] * 8
    moved = recording.initial[kernel] - np.float32(0.1) * recording.gradients[1][kernel]
    np.testing.assert_allclose(recording.states[1][kernel], moved, rtol=1e-6)
    assert recording.slots[1].keys() == {(v.name, "momentum") for v in recording.variables}
    assert [e.step for e in recording.evaluations] == [4, 8]
    first, last = recording.evaluations
    assert first.results.keys() == {"loss", "error"}
    assert first.control == last.control != first.results


@pytest.mark.parametrize("devices", [2, 4])
def test_replicas_train_as_one_device_does(loops: Loops, one: tuple[Recording, Path], devices: int) -> None:
    """Measured: 2e-7 over 12 steps on tf_keras and on Keras 3 (guides.md 2.4)."""
    recording, _ = loops.run(LOOP, devices=devices, initial=loops.save(one[0]))
    assert recording.replicas == recording.replicas_of_batch == devices
    np.testing.assert_allclose(losses(recording), losses(one[0]), rtol=2e-6)
    for step, values in one[0].states.items():
        for name, value in values.items():
            np.testing.assert_allclose(recording.states[step][name], value, rtol=1e-5, atol=1e-7)
    for mine, other in zip(one[0].evaluations, recording.evaluations, strict=True):
        assert other.results == pytest.approx(mine.results, rel=2e-6)
    assert [batch.digest for batch in recording.batches] == [batch.digest for batch in one[0].batches]
    assert recording.activations.keys() == one[0].activations.keys()
    for name, value in one[0].activations.items():
        np.testing.assert_allclose(recording.activations[name], value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("devices", [1, 2])
def test_recorded_batches_take_the_place_of_others(loops: Loops, one: tuple[Recording, Path], devices: int) -> None:
    other = LOOP.replace("data(32, 1)", "data(32, 7).shuffle(4, seed=3)")
    initial = loops.save(one[0])
    different, _ = loops.run(other, initial=initial)
    assert not {batch.digest for batch in different.batches} & {batch.digest for batch in one[0].batches}
    replayed, _ = loops.run(other, initial=initial, replay=str(one[1] / "record"), devices=devices)
    np.testing.assert_allclose(losses(replayed), losses(one[0]), rtol=2e-6)
    assert [batch.digest for batch in replayed.batches] == [batch.digest for batch in one[0].batches]
    # What is evaluated stays the program's own.
    assert replayed.evaluations[0].results == pytest.approx(one[0].evaluations[0].results, rel=2e-6)


def test_steps_of_one_call_are_recorded_one_by_one(loops: Loops, one: tuple[Recording, Path]) -> None:
    recording, _ = loops.run(MANY, initial=loops.save(one[0]), devices=2)
    assert len(recording.steps) == 6
    np.testing.assert_allclose(losses(recording)[:4], losses(one[0])[:4], rtol=2e-6)
    for name, value in one[0].states[3].items():
        np.testing.assert_allclose(recording.states[3][name], value, rtol=1e-5, atol=1e-7)
    assert [e.step for e in recording.evaluations] == [6]


def test_recorded_batches_are_divided_as_they_were(loops: Loops, one: tuple[Recording, Path]) -> None:
    every = {"initial": loops.save(one[0]), "devices": 2}
    recording, folder = loops.run(UNEVEN.replace("{seed}", "1"), **every)
    other, _ = loops.run(UNEVEN.replace("{seed}", "5"), **every)
    replayed, _ = loops.run(UNEVEN.replace("{seed}", "5"), **every, replay=str(folder / "record"))
    assert losses(replayed) == losses(recording) != losses(other)


def test_steps_of_one_call_start_from_points(loops: Loops, one: tuple[Recording, Path]) -> None:
    every = {"initial": loops.save(one[0]), "devices": 2, "state_steps": [1, 2, 3, 4, 5, 6]}
    known, folder = loops.run(MANY, **every)
    chosen = (1, 5, 3)
    points: list[dict[str, Any]] = [{"step": 1, "weights": None, "slots": None}]
    for step in chosen[1:]:
        paths = {kind: str(folder / f"{kind}{step}.npz") for kind in ("weights", "slots")}
        np.savez(paths["weights"], **known.states[step - 1])  # type: ignore[arg-type]
        slots = {f"{name}|{slot}": value for (name, slot), value in known.slots[step - 1].items()}
        np.savez(paths["slots"], **slots)  # type: ignore[arg-type]
        points.append({"step": step, **paths})
    batches = [([one for one in known.batches if one.step == step], lambda _, value: value) for step in chosen]
    replay = chosen_batches(folder / "record", folder / "replay", batches)
    taken, _ = loops.run(MANY, **every, points=points, replay=str(replay), steps=3, only_training=True)
    assert losses(taken) == pytest.approx([losses(known)[step - 1] for step in chosen], rel=1e-6)
    for place, step in enumerate(chosen, start=1):
        for name, value in known.states[step].items():
            np.testing.assert_allclose(taken.states[place][name], value, rtol=1e-6, atol=1e-7)
        for slot, value in known.slots[step].items():
            np.testing.assert_allclose(taken.slots[place][slot], value, rtol=1e-6, atol=1e-7)


def test_the_limit_ends_training(loops: Loops) -> None:
    recording, _ = loops.run(LOOP, steps=2)
    assert len(recording.steps) == 2
    assert sorted(recording.states) == [1, 2]
    assert {e.step for e in recording.evaluations} == {2}
    recording, _ = loops.run(MANY, steps=2, evaluate=False)
    assert len(recording.steps) == 2
    assert sorted(recording.states) == [1, 2]
    recording, _ = loops.run(LOOP, steps=0, evaluate=False)
    assert not recording.steps and len(recording.variables) == 4


def test_weights_of_another_run_are_evaluated(loops: Loops, one: tuple[Recording, Path]) -> None:
    weights = {"step": 8, "path": loops.save(one[0])}
    recording, _ = loops.run(LOOP, initial=loops.save(one[0]), evaluate_weights=[weights])
    assert recording.evaluations[0].same_weights == pytest.approx(one[0].evaluations[0].control)
    assert losses(recording) == losses(one[0])
    assert [e.results for e in recording.evaluations] == [e.results for e in one[0].evaluations]


def test_a_rate_one_per_cent_higher_shows(loops: Loops, one: tuple[Recording, Path]) -> None:
    recording, _ = loops.run(LOOP, initial=loops.save(one[0]), learning_rate_factor=1.01)
    assert losses(recording)[0] == losses(one[0])[0]
    assert losses(recording)[1] != pytest.approx(losses(one[0])[1], rel=1e-4)


@pytest.mark.parametrize("body", [WITHOUT_STRATEGY, EAGER, OVER_DATA, WHILE, ASKING])
def test_a_loop_without_a_strategy_is_recorded_alike(loops: Loops, one: tuple[Recording, Path], body: str) -> None:
    recording, _ = loops.run(body, initial=loops.save(one[0]))
    np.testing.assert_allclose(losses(recording), losses(one[0])[:4], rtol=2e-6)
    assert [batch.digest for batch in recording.batches] == [batch.digest for batch in one[0].batches[:4]]
    for step in (1, 3):
        for name, value in one[0].states[step].items():
            np.testing.assert_allclose(recording.states[step][name], value, rtol=1e-5, atol=1e-7)
        for name, value in one[0].gradients[step].items():
            np.testing.assert_allclose(recording.gradients[step][name], value, rtol=1e-4, atol=1e-6)
    assert recording.loop and len(recording.slots[3]) == 4


@pytest.mark.parametrize("body", [EAGER, OVER_DATA, WHILE, ASKING])
def test_recorded_batches_take_the_place_of_a_loops_own(loops: Loops, one: tuple[Recording, Path], body: str) -> None:
    other = body.replace("data(32, 1)", "data(32, 7)")
    recording, _ = loops.run(other, initial=loops.save(one[0]), replay=str(one[1] / "record"), steps=4)
    np.testing.assert_allclose(losses(recording), losses(one[0])[:4], rtol=2e-6)


def test_the_number_of_a_batch_is_no_part_of_it(loops: Loops, one: tuple[Recording, Path]) -> None:
    numbered = EAGER.replace("for batch in data(32, 1)", "for number, batch in data(32, 1).enumerate()")
    recording, _ = loops.run(numbered, initial=loops.save(one[0]))
    assert [batch.digest for batch in recording.batches] == [batch.digest for batch in one[0].batches[:4]]
    other = numbered.replace("data(32, 1)", "data(32, 7)")
    replayed, _ = loops.run(other, initial=loops.save(one[0]), replay=str(one[1] / "record"), steps=4)
    np.testing.assert_allclose(losses(replayed), losses(one[0])[:4], rtol=2e-6)


COUNTED = """
warmed = next(iter(data(32, 3)))  # is not trained on
for step, batch in enumerate(data(32, 1)):
    if step == 3:
        break
    optimizer.learning_rate = 0.1 / (1 + step)
    train_step(batch)
"""
MADE_LATE = """
class Late(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = tf.keras.layers.Dense(5, "tanh", name="dense"), tf.keras.layers.Dense(1, name="dense_1")
        self.norm = tf.keras.layers.BatchNormalization(name="norm")

    def call(self, x, training=None):
        return self.out(self.norm(self.hidden(x), training=training))


def compute_loss(labels, predictions):
    return tf.reduce_mean(loss_object(labels[:, tf.newaxis], predictions))


model, optimizer = Late(), tf.keras.optimizers.SGD(0.1, momentum=0.9)
"""


@pytest.mark.parametrize("late", ["", MADE_LATE])
def test_a_run_that_knows_the_first_batch_makes_its_step_once(loops: Loops, late: str) -> None:
    """What the program counts in Python is not ahead then; values to start from and batches are given as before."""
    shown, _ = loops.run(late + COUNTED, steps=1, only_training=True)
    assert shown.twice and shown.first_batch == 2
    ahead, _ = loops.run(late + COUNTED)
    assert [step.learning_rate for step in ahead.steps] == pytest.approx([0.1 / 2, 0.1 / 3])
    known = {"initial": loops.save(shown), "first_batch": 2}
    recording, folder = loops.run(late + COUNTED, **known)
    assert not recording.twice and recording.first_batch == 2
    assert [step.learning_rate for step in recording.steps] == pytest.approx([0.1, 0.1 / 2, 0.1 / 3])
    assert all(np.array_equal(value, shown.initial[name]) for name, value in recording.initial.items())
    other = (late + COUNTED).replace("data(32, 1)", "data(32, 7)")
    replayed, _ = loops.run(other, replay=str(folder / "record"), **known)
    assert not replayed.twice and losses(replayed) == losses(recording)
    again, _ = loops.run(other, replay=str(folder / "record"), initial=known["initial"], first_batch=5)
    assert again.twice and losses(again)[0] == losses(recording)[0]


TWO_AT_ONCE = """
with strategy.scope():
    second = tf.keras.optimizers.Adam(0.1)


def train_step(inputs):
    features, labels = inputs
    with tf.GradientTape() as tape:
        loss = compute_loss(labels, model(features, training=True))
    pairs = list(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    optimizer.apply_gradients(pairs[:2])
    second.apply_gradients(pairs[2:])
    return loss
"""


def test_a_first_step_of_several_optimizers_is_made_once_too(loops: Loops) -> None:
    shown, _ = loops.run(TWO_AT_ONCE + COUNTED, steps=1, only_training=True)
    assert shown.twice and shown.first_batch == 2
    known = {"initial": loops.save(shown), "first_batch": 2}
    recording, _ = loops.run(TWO_AT_ONCE + COUNTED, **known)
    assert not recording.twice
    assert [step.learning_rate for step in recording.steps] == pytest.approx([0.1, 0.1 / 2, 0.1 / 3])
    assert all(np.array_equal(value, shown.initial[name]) for name, value in recording.initial.items())
    assert recording.optimizer.name == shown.optimizer.name
    # The first step, whose first rate alone depends on what is counted: 0.1 / 2 where it was made twice.
    for name, value in shown.states[1].items():
        moved, once = value - shown.initial[name], recording.states[1][name] - shown.initial[name]
        np.testing.assert_allclose(once, moved * (2.0 if name.startswith("dense/") else 1.0), rtol=1e-4, atol=1e-7)
    for name, slot in shown.slots[1].items():
        np.testing.assert_allclose(recording.slots[1][name], slot, rtol=1e-5, atol=1e-8)


KEEPING = """
count = tf.Variable(0.0)
averages = [tf.Variable(weight, trainable=False) for weight in model.trainable_variables]
trained = train_step


def train_step(inputs):
    loss = trained(inputs)
    count.assign_add(1.0)
    decay = tf.minimum(0.9, (1.0 + count) / (10.0 + count))
    for average, weight in zip(averages, model.trainable_variables):
        average.assign_sub((1.0 - decay) * (average - weight))
    return loss
"""


@pytest.mark.parametrize("body", [WITHOUT_STRATEGY, EAGER])
def test_what_a_loop_keeps_beside_its_weights_is_recorded(loops: Loops, body: str) -> None:
    """Its averages, and the first steps of an eager loop, which are made once more, are counted once."""
    recording, _ = loops.run(KEEPING + body)
    kept = [one.name for one in recording.variables if not one.trainable]
    trained = [one.name for one in recording.variables if one.trainable]
    assert len(kept) == len(trained) == 4
    for average, weight in zip(kept, trained, strict=True):
        before, after = recording.initial[weight], recording.states[1][weight]
        decay = np.float32(2.0 / 11.0)
        wanted = before - (1 - decay) * (before - after)
        np.testing.assert_allclose(recording.states[1][average], wanted, rtol=1e-5, atol=1e-7)


OF_ARRAYS = """
features, labels = next(iter(data(32, 1).unbatch().batch(32)))
features, labels = features.numpy(), labels.numpy()


def take(place):
    return features[place * 8 : place * 8 + 8], labels[place * 8 : place * 8 + 8]


for place in range(4):
    train_step(take(place))
"""


def test_an_eager_loop_may_take_its_batches_out_of_arrays(loops: Loops, one: tuple[Recording, Path]) -> None:
    """What is told of the first batch is the number of its tape; nothing can stand in the place of such batches."""
    shown, _ = loops.run(OF_ARRAYS, steps=1, only_training=True)
    assert shown.first_batch == -1
    known = {"initial": loops.save(shown), "first_batch": -1}
    recording, folder = loops.run(OF_ARRAYS, **known)
    np.testing.assert_allclose(losses(recording), losses(one[0])[:4], rtol=2e-6)
    for name, value in one[0].states[3].items():
        np.testing.assert_allclose(recording.states[3][name], value, rtol=1e-5, atol=1e-7)
    first = read_batch(folder / "record", recording.batches[0])
    theirs = read_batch(one[1] / "record", one[0].batches[0])
    assert {len(value) for value in first.values()} == {8}
    assert sorted(map(np.ravel, first.values()), key=len)[1].tolist() == theirs["features"].ravel().tolist()
    assert losses(loops.run(OF_ARRAYS, replay=str(folder / "record"), **known)[0]) == losses(recording)
    other = OF_ARRAYS.replace("data(32, 1)", "data(32, 7)")
    with pytest.raises(AssertionError, match="cannot replay"):
        loops.run(other, replay=str(folder / "record"), **known)


def test_an_eager_loop_whose_batches_nothing_shows_is_not_recorded(loops: Loops) -> None:
    with pytest.raises(UnrecordedTraining, match=r"tf\.data\.Dataset"):
        loops.run(MEAN + IN_HALVES.replace("in data(32, 1).unbatch().batch(16):", "in [2 * [np.ones([16, 3], 'f')]]:"))


BY_HAND = """
speeds = [tf.Variable(tf.zeros(weight.shape)) for weight in model.trainable_variables]
count = tf.Variable(0)


def train_step(inputs):
    features, labels = inputs
    with tf.GradientTape() as tape:
        loss = compute_loss(labels, model(features, training=True))
    count.assign_add(1)
    weights = model.trainable_variables
    rate = tf.where(count > 2, 0.05, 0.1)
    for weight, speed, gradient in zip(weights, speeds, tape.gradient(loss, weights)):
        speed.assign(0.9 * speed + gradient)
        weight.assign_sub(rate * speed)
    return loss
"""


@pytest.mark.parametrize("body", [WITHOUT_STRATEGY, EAGER, WHILE])
def test_a_loop_that_moves_its_weights_by_hand_is_recorded(
    loops: Loops, one: tuple[Recording, Path], body: str
) -> None:
    recording, folder = loops.run(BY_HAND + body)
    # As with an optimizer, as long as the rates are those of one.
    np.testing.assert_allclose(losses(recording)[:3], losses(one[0])[:3], rtol=2e-6)
    weights = [variable.name for variable in one[0].variables]
    assert [variable.name for variable in recording.variables][:4] == weights and len(recording.variables) == 8
    for name in weights:
        np.testing.assert_allclose(recording.states[1][name], one[0].states[1][name], rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(recording.gradients[3][name], one[0].gradients[3][name], rtol=1e-4, atol=1e-6)
    # Nothing has a rate to make greater: the moves are.
    control = loops.run(BY_HAND + body, initial=loops.save(recording), steps=1, learning_rate_factor=2.0)[0]
    begun, name = recording.initial, weights[0]
    moved = begun[name] + 2.0 * (recording.states[1][name] - begun[name])
    np.testing.assert_allclose(control.states[1][name], moved, rtol=1e-5, atol=1e-7)
    # A step by itself has the count of the training, which the program keeps for its rate.
    with (folder / "weights.npz").open("wb") as file:
        np.savez(file, **recording.states[1])  # type: ignore[arg-type]
    points = [{"step": n, "weights": str(file.name), "slots": None} for n in (1, 2, 3)]
    for point in points[1:]:
        point["slots"] = str(folder / "none.npz")
    np.savez(folder / "none.npz")
    batch = chosen_batches(folder / "record", folder, [((recording.batches[place],), _as_it_is) for place in (0, 1, 1)])
    given = {"initial": loops.save(recording), "replay": str(batch), "points": points, "state_steps": [2, 3]}
    single = loops.run(BY_HAND + body, **given)[0]
    before = recording.states[1][name]
    steps = [single.states[place][name] - before for place in (2, 3)]
    np.testing.assert_allclose(steps[1], 0.5 * steps[0], rtol=1e-3, atol=1e-7)


def _as_it_is(path: str, value: np.ndarray) -> np.ndarray:
    return value


def test_an_eager_loop_that_leaves_its_gradients_alone_is_not_recorded(loops: Loops) -> None:
    step = """
def train_step(inputs):
    features, labels = inputs
    with tf.GradientTape() as tape:
        loss = compute_loss(labels, model(features, training=True))
    tape.gradient(loss, model.trainable_variables)
    return loss
"""
    with pytest.raises(UnrecordedTraining, match="gradients that no optimizer of Keras applies"):
        loops.run(step + EAGER)


MEAN = """
def compute_loss(labels, predictions):
    return tf.reduce_mean(loss_object(labels[:, tf.newaxis], predictions))
"""
ADDED_UP = """
collected = []
for number, (features, labels) in enumerate(data(32, 1)):
    with tf.GradientTape() as tape:
        loss = compute_loss(labels, model(features, training=True))
    collected.append(tape.gradient(loss, model.trainable_variables))
    if number % 2:
        mean = [tf.add_n(list(some)) / 2.0 for some in zip(*collected)]
        optimizer.apply_gradients(zip(mean, model.trainable_variables))
        collected = []
"""
ADDED_UP_IN_FUNCTION = """

@tf.function
def step(batches):
    collected = []
    for _ in range(2):
        features, labels = next(batches)
        with tf.GradientTape() as tape:
            loss = compute_loss(labels, model(features, training=True))
        collected.append(tape.gradient(loss, model.trainable_variables))
    mean = [tf.add_n(list(some)) / 2.0 for some in zip(*collected)]
    optimizer.apply_gradients(zip(mean, model.trainable_variables))


batches = iter(data(32, 1))
for _ in range(2):
    step(batches)
"""
IN_HALVES = """
for features, labels in data(32, 1).unbatch().batch(16):
    collected = []
    for some, theirs in zip(tf.split(features, 2), tf.split(labels, 2)):
        with tf.GradientTape() as tape:
            loss = compute_loss(theirs, model(some, training=True))
        collected.append(tape.gradient(loss, model.trainable_variables))
    mean = [tf.add_n(list(some)) / 2.0 for some in zip(*collected)]
    optimizer.apply_gradients(zip(mean, model.trainable_variables))
"""


@pytest.mark.parametrize(
    ("body", "requests"),
    [(ADDED_UP, 2), (ADDED_UP_IN_FUNCTION, 2), (IN_HALVES, 1)],
    ids=["eager", "function", "halves"],
)
def test_gradients_of_several_batches_are_those_of_a_large_one(loops: Loops, body: str, requests: int) -> None:
    whole, _ = loops.run(MEAN + EAGER.replace("data(32, 1)", "data(32, 1).unbatch().batch(16)"))
    shown, _ = loops.run(MEAN + body, steps=1, only_training=True)
    assert shown.requests == requests and shown.first_batch == (None if body == ADDED_UP_IN_FUNCTION else 1)
    known = {"initial": loops.save(shown), "first_batch": shown.first_batch, "requests": requests}
    recording, folder = loops.run(MEAN + body, **known)
    assert [batch.size for batch in recording.batches] == [16, 16]
    np.testing.assert_allclose(losses(recording), losses(whole), rtol=2e-6)
    for name, value in whole.states[1].items():
        np.testing.assert_allclose(recording.states[1][name], value, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(recording.gradients[1][name], whole.gradients[1][name], rtol=1e-4, atol=1e-6)
    # The share of each batch is told by what is applied.
    wrong, _ = loops.run((MEAN + body).replace("/ 2.0", "/ 1.6"), **known)
    assert losses(wrong)[0] == pytest.approx(losses(whole)[0] * 2.0 / 1.6, rel=1e-5)
    replayed, _ = loops.run((MEAN + body).replace("data(32, 1)", "data(32, 7)"), replay=str(folder / "record"), **known)
    assert losses(replayed) == losses(recording)
    # A single step has all its parts from what it is given.
    with (folder / "weights.npz").open("wb") as file:
        np.savez(file, **recording.states[1])  # type: ignore[arg-type]
    with (folder / "slots.npz").open("wb") as file:
        np.savez(file, **{"|".join(key): value for key, value in recording.slots[1].items()})  # type: ignore[arg-type]
    files = {"weights": str(folder / "weights.npz"), "slots": str(folder / "slots.npz")}
    points = [{"step": n, **files} for n in (1, 2)]
    single, _ = loops.run(MEAN + body, replay=str(folder / "record"), points=points, **known)
    assert losses(single)[1] == pytest.approx(losses(recording)[1], rel=1e-6)


def test_gradients_that_are_asked_for_and_not_applied_are_no_part_of_a_step(loops: Loops) -> None:
    looked = """
features, labels = next(iter(data(24, 2)))
with tf.GradientTape() as tape:
    loss = compute_loss(labels, model(features, training=True))
tape.gradient(loss, model.trainable_variables)
"""
    plain, _ = loops.run(MEAN + EAGER)
    shown, _ = loops.run(MEAN + looked + EAGER, steps=1, only_training=True)
    known = {"initial": loops.save(shown), "first_batch": shown.first_batch, "requests": shown.requests}
    recording, _ = loops.run(MEAN + looked + EAGER, **known)
    assert losses(recording) == losses(plain)
    assert [batch.digest for batch in recording.batches] == [batch.digest for batch in plain.batches]


def test_steps_that_apply_gradients_together_later_are_steps(loops: Loops) -> None:
    """Where the original counts a step for each batch (``summing``), and applies the gradients of several in one."""
    shown, _ = loops.run(MEAN + ADDED_UP, steps=1, only_training=True, summing=True)
    assert shown.carried and shown.first_batch == 1
    known = {"initial": loops.save(shown), "first_batch": 1, "summing": True}
    recording, folder = loops.run(MEAN + ADDED_UP, **known)
    whole, _ = loops.run(MEAN + EAGER.replace("data(32, 1)", "data(32, 1).unbatch().batch(16)"))
    assert recording.carried and [batch.size for batch in recording.batches] == [8] * 4
    np.testing.assert_allclose(np.mean(losses(recording)[:2]), losses(whole)[0], rtol=2e-6)
    assert not any(recording.gradients.values())
    for name, value in recording.initial.items():
        np.testing.assert_array_equal(recording.states[1][name], value)
        np.testing.assert_allclose(recording.states[3][name], whole.states[1][name], rtol=1e-5, atol=1e-7)
    other = (MEAN + ADDED_UP).replace("data(32, 1)", "data(32, 7)")
    replayed, _ = loops.run(other, replay=str(folder / "record"), **known)
    assert losses(replayed) == losses(recording)


IN_A_LIST = """
batches = list(data(32, 1))
for batch in batches[::{order}]:
    train_step(batch)
"""


@pytest.mark.parametrize("order", [1, -1])
def test_batches_that_are_kept_in_a_list_are_known_again(loops: Loops, one: tuple[Recording, Path], order: int) -> None:
    body = IN_A_LIST.replace("{order}", str(order))
    shown, _ = loops.run(body, steps=1, only_training=True)
    assert shown.first_batch == (1 if order == 1 else 4)
    known = {"initial": loops.save(shown), "first_batch": shown.first_batch}
    recording, folder = loops.run(body, **known)
    digests = [batch.digest for batch in one[0].batches][:4]
    assert [batch.digest for batch in recording.batches] == digests[::order]
    if order == 1:
        np.testing.assert_allclose(losses(recording), losses(one[0])[:4], rtol=2e-6)
        other = body.replace("data(32, 1)", "data(32, 7)")
        assert losses(loops.run(other, replay=str(folder / "record"), **known)[0]) == losses(recording)


UNROLLED = """

@tf.function
def two_steps(batches):
    for _ in range(2):
        train_step(next(batches))


batches = iter(data(32, 1).repeat(2))
for _ in range(3):
    two_steps(batches)
"""


def test_steps_that_a_function_takes_one_after_another_are_recorded_one_by_one(
    loops: Loops, one: tuple[Recording, Path]
) -> None:
    recording, folder = loops.run(UNROLLED)
    np.testing.assert_allclose(losses(recording), losses(one[0])[:6], rtol=2e-6)
    for step in (1, 3):
        for name, value in one[0].states[step].items():
            np.testing.assert_allclose(recording.states[step][name], value, rtol=1e-5, atol=1e-7)
    other = UNROLLED.replace("data(32, 1)", "data(32, 7)")
    replayed, _ = loops.run(other, initial=loops.save(recording), replay=str(folder / "record"))
    assert losses(replayed) == losses(recording)


def test_a_loop_within_a_step_is_part_of_it(loops: Loops) -> None:
    recording, _ = loops.run(AROUND_A_LOOP)
    assert len(recording.steps) == 4 and len(recording.variables) == 4
    assert recording.dropout_rates == (0.5,)
    # The regularization of a layer that is called in the loop, too, counts once.
    assert recording.regularizers == 1


def test_a_step_that_asks_for_several_batches_is_not_recorded(loops: Loops) -> None:
    with pytest.raises(UnrecordedTraining, match="several batches"):
        loops.run(SEVERAL)


def printed(folder: Path, word: str) -> list[list[float]]:
    lines = next(iter(folder.rglob("*stdout*"))).read_text().split("\n")
    return [[float(one) for one in line.split()[1:]] for line in lines if line.startswith(word)]


@pytest.mark.parametrize("step", ["train_step", "compiled"])
def test_an_eager_evaluation_is_made_with_other_weights_too(
    loops: Loops, one: tuple[Recording, Path], step: str
) -> None:
    initial = loops.save(one[0])
    recording, folder = loops.run(
        EVALUATED_EAGERLY.replace("{step}", step),
        initial=initial,
        evaluate_weights=[{"step": 8, "path": initial}],
        evaluation_control=True,
    )
    np.testing.assert_allclose(losses(recording), losses(one[0]), rtol=2e-6)
    assert [e.step for e in recording.evaluations] == [4, 8]
    for mine, known in zip(recording.evaluations, one[0].evaluations, strict=True):
        assert mine.results == pytest.approx(known.results, rel=2e-6)
        assert mine.control == pytest.approx(known.control, rel=2e-6)
        assert mine.same_weights == pytest.approx(known.control, rel=2e-6) and mine.weights_step == 8
    # The program goes on with what its own weights gave.
    own = [[e.results["loss"], e.results["error"]] for e in recording.evaluations]
    np.testing.assert_allclose(printed(folder, "evaluated"), own, rtol=1e-6)


def test_a_metric_that_is_not_reset_shows_with_the_same_weights(loops: Loops, one: tuple[Recording, Path]) -> None:
    initial = loops.save(one[0])
    weights = [{"step": step, "path": initial} for step in (4, 8)]
    never = EVALUATED_EAGERLY.replace("{step}", "train_step").replace("metric.reset_state()", "pass")
    recording, _ = loops.run(never, initial=initial, evaluate_weights=weights)
    first, second = (e.same_weights for e in recording.evaluations)
    assert first is not None and second is not None
    assert first == pytest.approx(one[0].evaluations[0].control, rel=2e-6)
    assert all(abs(second[name] - first[name]) > 1e-2 * abs(first[name]) for name in first)


@pytest.mark.parametrize("compiled", [True, False])
def test_functions_that_train_on_one_batch_are_one_step(loops: Loops, compiled: bool) -> None:
    known, _ = loops.run(TWO_NETWORKS + IN_ONE, draw_initial=True)
    initial = loops.save(known)
    body = TWO_NETWORKS + IN_TWO.replace("{compiled}", str(compiled)).replace("{every}", "1")
    recording, folder = loops.run(body, initial=initial)
    assert [v.name for v in recording.variables] == [v.name for v in known.variables]
    np.testing.assert_allclose(losses(recording), losses(known), rtol=2e-6)
    assert [b.digest for b in recording.batches] == [b.digest for b in known.batches]
    for step in (1, 3):
        for name, value in known.states[step].items():
            np.testing.assert_allclose(recording.states[step][name], value, rtol=1e-5, atol=1e-7)
        assert recording.slots[step].keys() == known.slots[step].keys()
        for slot, value in known.slots[step].items():
            np.testing.assert_allclose(recording.slots[step][slot], value, rtol=1e-4, atol=1e-7)
        assert recording.gradients[step].keys() == known.gradients[step].keys()
    assert recording.optimizer is not None and known.optimizer is not None
    names = [[first.name, *(other.name for other in first.others)] for first in (recording.optimizer, known.optimizer)]
    assert names[0] == names[1] == ["SGD", "Adam"]
    # Recorded batches reach both functions, though one is given a part of them.
    other, _ = loops.run(body.replace("data(32, 1)", "data(32, 7)"), initial=initial, replay=str(folder / "record"))
    assert losses(other) == losses(recording)
    limited, _ = loops.run(body, initial=initial, steps=2)
    assert losses(limited) == losses(recording)[:2]
    for name, value in recording.states[1].items():
        assert np.array_equal(limited.states[1][name], value)
    probed, _ = loops.run(body, steps=0, evaluate=False)
    assert [v.name for v in probed.variables] == [v.name for v in known.variables] and not probed.steps


def test_a_function_that_trains_every_other_time_belongs_to_the_step_before_it(loops: Loops) -> None:
    body = TWO_NETWORKS + IN_TWO.replace("{compiled}", "True").replace("{every}", "2")
    recording, _ = loops.run(body)
    assert len(recording.steps) == 4
    probed, _ = loops.run(body, steps=1, only_training=True, evaluate=False)
    assert [v.name for v in probed.variables] == [v.name for v in recording.variables] and len(probed.steps) == 1
    assert len(recording.gradients[1]) == len(recording.gradients[3]) == 4
    moved = [v.name for v in recording.variables if v.name in recording.states[1]]
    still = [n for n in moved if np.array_equal(recording.states[1][n], recording.initial[n])]
    assert len(still) == 4  # the other network's, which takes its first step behind the second batch
    assert recording.slots[1].keys() == recording.slots[3].keys()


def test_masks_differ_from_step_to_step(loops: Loops) -> None:
    dropout = DROPPED + WITHOUT_STRATEGY
    by_step, _ = loops.run(dropout, anew=True)
    initial = loops.save(by_step)
    by_place, _ = loops.run(dropout, initial=initial)
    assert by_step.anew and not by_place.anew
    assert losses(by_step)[0] == losses(by_place)[0] and losses(by_step)[1] != losses(by_place)[1]
    again, _ = loops.run(dropout.replace("plain_step(batch)", "train_step(batch)"), initial=initial, anew=True)
    np.testing.assert_allclose(losses(again), losses(by_step), rtol=2e-6)


APPLIED_OUTSIDE = """

@tf.function
def gradients(features, labels):
    count.assign_add(1.0)
    with tf.GradientTape() as tape:
        loss = compute_loss(labels, model(features, training=True))
    return tape.gradient(loss, model.trainable_variables)


count = tf.Variable(0.0)
for features, labels in data(32, 1):
    optimizer.apply_gradients(zip(gradients(features, labels), model.trainable_variables))
print("count", float(count))
"""


def test_gradients_of_a_function_may_be_applied_outside_of_it(loops: Loops, one: tuple[Recording, Path]) -> None:
    shown, _ = loops.run(APPLIED_OUTSIDE, steps=1, only_training=True)
    assert shown.first_batch == 1
    known = {"initial": loops.save(shown), "first_batch": 1}
    recording, folder = loops.run(APPLIED_OUTSIDE, **known)
    np.testing.assert_allclose(losses(recording), losses(one[0])[:4], rtol=2e-6)
    for name, value in one[0].states[3].items():
        np.testing.assert_allclose(recording.states[3][name], value, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(recording.gradients[3][name], one[0].gradients[3][name], rtol=1e-4, atol=1e-6)
    assert printed(folder, "count") == [[4.0]]  # its first run, to see what it is, does not count
