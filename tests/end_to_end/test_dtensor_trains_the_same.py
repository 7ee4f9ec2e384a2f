"""DTensor programs on TensorFlow 2.15.1, and on 2.21 after their migration: the same losses, the same shards.

On virtual CPUs. What these programs print is compared: every number to 1e-5, which is what rounding may do in so few
steps, and everything else, the shapes of the shards among it, word by word.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from migrator.harness.cluster import ClusterShape, ForkServer, Launch
from tests.end_to_end.proving import Servers
from tests.fixture_cases import FixtureCase, load_cases

CASES = {case.name: case for case in load_cases(dtensor=True)}
WHOLE = ("(48, 32)", "(32,)", "(32, 10)")
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")

pytestmark = pytest.mark.tensorflow


def output(server: ForkServer, script: Path, folder: Path, *args: str) -> list[str]:
    """The lines that a program prints."""
    outcome = server.run(Launch("migrated", script, args, ClusterShape.parse(""), folder))
    assert outcome.failure is None, outcome.failure
    return outcome.tasks[0].stdout.read_text(encoding="utf-8").splitlines()


def numbers(lines: list[str]) -> list[float]:
    return [float(number) for line in lines for number in NUMBER.findall(line)]


def both(case: FixtureCase, first: ForkServer, second: ForkServer, folder: Path, *args: str) -> list[str]:
    """Runs the original on 2.15.1 and the migrated program on 2.21, and compares; what the migrated one prints."""
    before = output(first, case.original, folder / "original", *args)
    after = output(second, case.migrated, folder / "migrated", *args)
    assert [NUMBER.sub("#", line) for line in after] == [NUMBER.sub("#", line) for line in before]
    assert numbers(after) == pytest.approx(numbers(before), rel=1e-5, abs=1e-7)
    return after


@pytest.mark.parametrize(
    ("devices", "shards"),
    [
        (8, ["(48, 16)", "(16,)", "(16, 10)"]),
        (4, ["(48, 16)", "(16,)", "(16, 10)"]),
        (2, ["(48, 32)", "(32,)", "(32, 10)"]),
    ],
)
def test_core(devices: int, shards: list[str], first_keras2: ForkServer, servers: Servers, tmp_path: Path) -> None:
    lines = both(CASES["dtensor_core"], first_keras2, servers[1], tmp_path, str(devices))
    losses = numbers([line for line in lines if line.startswith("step")])[::2]
    assert len(losses) == 16 and losses[-1] < 0.9 * losses[0]
    shown = {line.removeprefix("shards of ") for line in lines if line.startswith("shards")}
    assert {f"{whole}: [{shard}]" for whole, shard in zip(WHOLE, shards, strict=True)} <= shown
    assert "(10, 10): [(10, 10)]" in shown


def test_keras(first_keras2: ForkServer, servers: Servers, tmp_path: Path) -> None:
    lines = both(CASES["dtensor_keras"], first_keras2, servers[1], tmp_path)
    for kind in ("by_layers", "subclassed", "functional", "sequential"):
        own = [line.removeprefix(f"{kind} ") for line in lines if line.startswith(f"{kind} ")]
        losses = numbers([line for line in own if line.startswith("step")])
        assert len(losses) == 8 and losses[-1] != losses[0]
        width = 16 if kind == "by_layers" else 8  # of what a device holds of the hidden layer
        shards = {f"(48, 16): [(48, {width})]", f"(16,): [({width},)]", f"(16, 10): [({width}, 10)]"}
        assert shards <= {line.removeprefix("shards of ") for line in own}


TRAPS = """\
import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 8)
devices = [f"CPU:{i}" for i in range(8)]
mesh = dtensor.create_mesh([("model", 4), ("batch", 2)], devices=devices)
layout = dtensor.Layout.batch_sharded(mesh, "batch", rank=2)
rows = np.arange(16, dtype=np.float32)[:, np.newaxis]


def packed(parts):
    shares = tf.split(rows, parts)
    return dtensor.pack([shares[place["batch"]] for place in mesh.local_device_locations()], layout)


print("shape", layout.shape, "shards", layout.num_shards(0))
print("rows by shape", packed(layout.shape[0]).shape[0], "by num_shards", packed(layout.num_shards(0)).shape[0])

whole = dtensor.Layout.replicated(mesh, rank=2)
wide = dtensor.Layout(["model", "unsharded"], mesh)
for name, attempt in {
    "relayout": lambda: dtensor.relayout(dtensor.copy_to_mesh(tf.ones((6, 2)), whole), wide),
    "call_with_layout": lambda: dtensor.call_with_layout(tf.ones, wide, shape=(6, 2)),
    "split": lambda: tf.split(tf.ones((6, 2)), 4),
}.items():
    try:
        attempt()
        print(name, "works")
    except tf.errors.OpError as error:
        print(name, type(error).__name__)


class Adam(tf.Module):
    def __init__(self, variable, counter):
        self.variable, self.t = variable, counter
        self.first = dtensor.DVariable(dtensor.call_with_layout(tf.zeros, variable.layout, shape=variable.shape))
        self.second = dtensor.DVariable(dtensor.call_with_layout(tf.zeros, variable.layout, shape=variable.shape))

    def apply(self, gradient):
        self.first.assign(0.9 * self.first + 0.1 * gradient)
        self.second.assign(0.999 * self.second + 0.001 * tf.square(gradient))
        step = self.first / (1 - 0.9**self.t)
        size = self.second / (1 - 0.999**self.t)
        self.variable.assign_sub(0.1 * step / (tf.sqrt(size) + 1e-7))
        if isinstance(self.t, float):
            self.t += 1.0
        else:
            self.t.assign_add(1.0)


def train(counter, relaid=True):
    variable = dtensor.DVariable(dtensor.copy_to_mesh(tf.ones((16, 1)), whole))
    optimizer = Adam(variable, counter)

    @tf.function
    def step(data):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(variable * data - 30.0))
        gradient = tape.gradient(loss, variable)
        optimizer.apply(dtensor.relayout(gradient, variable.layout) if relaid else gradient)

    for _ in range(20):
        step(packed(layout.num_shards(0)))
    return float(optimizer.t), variable.numpy().ravel()


one = dtensor.call_with_layout(tf.ones, dtensor.Layout.replicated(mesh, rank=0), shape=[])
frozen, wrong = train(1.0)
counted, right = train(dtensor.DVariable(one))
stale = train(dtensor.DVariable(one), relaid=False)[1]
value, first, second = np.ones(16), 0.0, 0.0
for t in range(1, 21):
    gradient = 2 * (value * rows[:, 0] - 30.0) * rows[:, 0]
    first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
    value = value - 0.1 * first / (1 - 0.9**t) / (np.sqrt(second / (1 - 0.999**t)) + 1e-7)
print("frozen counter", frozen, "a variable", counted)
print("Adam with a frozen counter:", "Adam" if np.allclose(wrong, value, rtol=1e-3) else "another optimizer")
print("Adam with a variable:", "Adam" if np.allclose(right, value, rtol=1e-4) else "another optimizer")
print("Adam of gradients as they are:", "Adam" if np.allclose(stale, value, rtol=1e-3) else "another optimizer")

random = np.random.RandomState(0)
inputs, labels = random.randn(64, 6).astype(np.float32), random.randint(0, 10, 64)
kernels = [0.3 * random.randn(6, 16).astype(np.float32), 0.3 * random.randn(16, 10).astype(np.float32)]


def two_layers(place, relaid):
    variables = [place(kernel) for kernel in kernels]
    mesh_of_it = {} if isinstance(variables[0], tf.Variable) and not hasattr(variables[0], "layout") else {"mesh": mesh}
    optimizer = tf.keras.optimizers.Adam(0.01, **mesh_of_it)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            logits = tf.nn.relu(x @ variables[0]) @ variables[1]
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
        gradients = tape.gradient(loss, variables)
        if relaid:
            gradients = [dtensor.relayout(g, v.layout) for g, v in zip(gradients, variables)]
        optimizer.apply_gradients(zip(gradients, variables))
        return loss

    def put(array):
        if not mesh_of_it:
            return tf.constant(array)
        shares = tf.split(array, 2)
        split = dtensor.Layout.batch_sharded(mesh, "batch", rank=array.ndim)
        return dtensor.pack([shares[one["batch"]] for one in mesh.local_device_locations()], split)

    return [float(step(put(inputs), put(labels))) for _ in range(4)]


alone = two_layers(tf.Variable, False)
for relaid in (False, True):
    losses = two_layers(lambda kernel: dtensor.DVariable(dtensor.copy_to_mesh(kernel, whole)), relaid)
    print("Keras Adam", "relaid" if relaid else "as they are", [round(loss, 4) for loss in losses])
print("Keras Adam on one device", [round(loss, 4) for loss in alone])

layouts = tf.keras.dtensor.experimental.LayoutMap(mesh=mesh)
layouts["dense.kernel"] = dtensor.Layout(["unsharded", "model"], mesh)
tf.keras.backend.experimental.enable_tf_random_generator()
with layouts.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(4, input_shape=(1,), name="hidden")])
print("no key matches:", model.layers[-1].kernel.layout.sharding_specs)
"""


def test_traps(first_keras2: ForkServer, servers: Servers, tmp_path: Path) -> None:
    """What TFM772, TFM773, TFM775, TFM777 and the page on DTensor say."""
    script = tmp_path / "traps.py"
    script.write_text(TRAPS, encoding="utf-8")
    for name, server in (("before", first_keras2), ("after", servers[1])):
        lines = output(server, script, tmp_path / name)
        assert [line for line in lines if not line.startswith("Keras Adam")] == [
            "shape [4, 2] shards 2",
            "rows by shape 8 by num_shards 16",
            "relayout UnknownError",
            "call_with_layout UnknownError",
            "split InvalidArgumentError",
            "frozen counter 2.0 a variable 21.0",
            "Adam with a frozen counter: another optimizer",
            "Adam with a variable: Adam",
            "Adam of gradients as they are: another optimizer",
            "no key matches: ['unsharded', 'unsharded']",
        ]
        stale, relaid, alone = [numbers([line]) for line in lines if line.startswith("Keras Adam")]
        assert stale[0] == pytest.approx(alone[0], abs=2e-4) and stale[1] > alone[1] + 0.005
        if name == "after":
            assert relaid == pytest.approx(alone, abs=2e-4)
