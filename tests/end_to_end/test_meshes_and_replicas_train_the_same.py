"""One training by the Estimator, on one device, on replicas, and on meshes by batches, by variables and by both;
checkpoints of DTensor programs, which move between layouts.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from migrator.findings import Severity
from migrator.harness.cluster import ClusterShape, ForkServer, Launch
from migrator.harness.recording import Recording
from migrator.migrate import Options, migrate
from migrator.source.reading import Source, decode
from tests.end_to_end.proving import Servers, record, record_both
from tests.end_to_end.test_mesh_trains_the_same import COLUMNS, SQUARES

pytestmark = pytest.mark.tensorflow

WAYS = {
    "batches over a mesh": (Options("dtensor", "native"), 2),
    "variables over a mesh": (Options("dtensor", "native", mesh="model=2", layouts=COLUMNS), 2),
    "both": (Options("dtensor", "native", mesh="model=2", layouts=COLUMNS), 4),
    "replicas": (Options("mirrored", "native", loop="custom"), 2),
    "one device": (Options("auto", "native"), 1),
}
SHAPES = {
    "batches over a mesh": [[[6, 8]] * 2, [[8]] * 2, [[8, 1]] * 2, [[1]] * 2],
    "variables over a mesh": [[[6, 4]] * 2, [[4]] * 2, [[4, 1]] * 2, [[1]] * 2],
    "both": [[[6, 4]] * 4, [[4]] * 4, [[4, 1]] * 4, [[1]] * 4],
}


def migrated(text: str, options: Options) -> str:
    source = decode(Path("train.py"), text.encode())
    assert isinstance(source, Source)
    [result] = migrate([source], options)
    assert not [f for f in result.findings if f.severity is Severity.MANUAL], result.findings
    return result.text


def device_shapes(folder: Path) -> list[list[list[int]]]:
    """What every device has of each variable."""
    [shown] = (folder / "record").glob("*/program.json")
    return [entry["device_shapes"] for entry in json.loads(shown.read_text(encoding="utf-8"))["variables"]]


def test_one_training_five_ways(servers: Servers, tmp_path: Path) -> None:
    """Losses of all steps to 1e-5, weights and the evaluation too; the shards are shards."""
    original = tmp_path / "original.py"
    original.write_text(SQUARES, encoding="utf-8")
    first: Recording | None = None
    for place, (way, (options, devices)) in enumerate(WAYS.items()):
        path = tmp_path / f"way{place}.py"
        path.write_text(migrated(SQUARES, options), encoding="utf-8")
        folder = tmp_path / str(place)
        if first is None:
            first, second, pairs = record_both(servers, original, path, tmp_path, devices)
            names = pairs.to_migrated()
            folder = tmp_path / "migrated-run"
        else:
            second = record(servers[1], "migrated", path, folder, tmp_path / "initial.npz", devices)
        assert len(first.steps) == len(second.steps) == 5, way
        np.testing.assert_allclose(
            [step.loss for step in second.steps], [step.loss for step in first.steps], rtol=1e-5, err_msg=way
        )
        for name, value in first.states[5].items():
            if name in names:
                np.testing.assert_allclose(second.states[5][names[name]], value, rtol=1e-4, atol=1e-6, err_msg=way)
        before, after = first.evaluations[-1].results, second.evaluations[-1].results
        assert before is not None and after is not None
        assert after["error"] == pytest.approx(before["error"], rel=1e-5), way
        if way in SHAPES:
            assert device_shapes(folder) == SHAPES[way], way


CHECKPOINTS = """\
import sys

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)
random = np.random.RandomState(3)
start = [0.3 * random.normal(size=shape).astype(np.float32) for shape in ((6, 8), (8, 4))]
images, labels = random.normal(size=(6, 8, 6)).astype(np.float32), random.randint(0, 4, (6, 8))


def placed(mesh, value, layout):
    whole = dtensor.Layout.replicated(mesh, rank=value.ndim)
    return dtensor.relayout(dtensor.pack([tf.constant(value.copy()) for _ in range(mesh.size)], whole), layout)


class Network(tf.Module):
    def __init__(self, mesh, divided):
        super().__init__()
        self.mesh = mesh
        specs = [("unsharded", "model"), ("model", "unsharded")] if divided else [("unsharded", "unsharded")] * 2
        layouts = [dtensor.Layout(list(spec), mesh) for spec in specs]
        self.kernels = [dtensor.DVariable(placed(mesh, value, layout)) for value, layout in zip(start, layouts)]
        self.moments = [dtensor.DVariable(placed(mesh, 0 * value, layout)) for value, layout in zip(start, layouts)]

    @tf.function
    def gradients(self, x, y):
        with tf.GradientTape() as tape:
            logits = tf.matmul(tf.tanh(tf.matmul(x, self.kernels[0])), self.kernels[1])
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
        return loss, tape.gradient(loss, self.kernels)

    def train(self, first, last):
        layouts = [dtensor.Layout.batch_sharded(self.mesh, "batch", rank=rank) for rank in (2, 1)]
        for step in range(first, last):
            x, y = placed(self.mesh, images[step], layouts[0]), placed(self.mesh, labels[step], layouts[1])
            loss, gradients = self.gradients(x, y)
            for kernel, moment, gradient in zip(self.kernels, self.moments, gradients):
                moment.assign(0.9 * moment + gradient)
                kernel.assign_sub(0.2 * moment)
            print("%d %.7f" % (step, loss.numpy()))


def network(dims, divided):
    count = int(np.prod([size for _, size in dims]))
    return Network(dtensor.create_mesh(dims, devices=["CPU:%d" % i for i in range(count)]), divided)


DATA = [("batch", 4), ("model", 1)], False
BOTH = [("batch", 2), ("model", 2)], True
MODEL = [("batch", 1), ("model", 2)], True
print("in one go")
network(*DATA).train(0, 6)
before = None
print("by checkpoints")
for place, (dims, divided) in enumerate([DATA, BOTH, MODEL]):
    made = network(dims, divided)
    if before is not None:
        tf.train.Checkpoint(made).restore(before).assert_consumed()
    made.train(2 * place, 2 * place + 2)
    before = tf.train.Checkpoint(made).save(sys.argv[1] + "/%d" % place)
    print("shards", sorted({tuple(part.shape) for part in dtensor.unpack(made.kernels[0].read_value())}))
"""


def test_checkpoints_of_programs_move_between_layouts(
    first_keras2: ForkServer, servers: Servers, tmp_path: Path
) -> None:
    """Two steps with whole variables, two with divided ones on a mesh of two dimensions, two on fewer devices: as six
    in one go, on 2.15.1 and on 2.21.
    """
    script = tmp_path / "checkpoints.py"
    script.write_text(CHECKPOINTS, encoding="utf-8")
    for name, server in (("before", first_keras2), ("after", servers[1])):
        folder = tmp_path / name
        outcome = server.run(Launch("migrated", script, (str(folder),), ClusterShape.parse(""), folder))
        assert outcome.failure is None, outcome.failure
        lines = outcome.tasks[0].stdout.read_text(encoding="utf-8").splitlines()
        at = lines.index("by checkpoints")
        alone = [line.split() for line in lines[1:at]]
        moved = [line.split() for line in lines[at + 1 :] if line[0].isdigit()]
        assert [step for step, _ in moved] == [step for step, _ in alone] == list("012345")
        np.testing.assert_allclose([float(loss) for _, loss in moved], [float(loss) for _, loss in alone], rtol=1e-5)
        assert float(alone[-1][1]) != float(alone[0][1])
        shards = [line for line in lines if line.startswith("shards")]
        assert shards == ["shards [(6, 8)]", "shards [(6, 4)]", "shards [(6, 4)]"]
