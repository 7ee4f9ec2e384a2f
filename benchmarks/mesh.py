"""What `--strategy dtensor` computes and how fast: devices, layouts and kinds of models against the Estimator.

usage: python benchmarks/mesh.py [--devices N ...] [--kinds NAME ...] [--times] [--json FILE]

Every cell is a proof as those of the tests: the original trains 5 steps on TensorFlow 2.15.1, the program that the
codemod of this checkout makes of it trains from the same weights on a mesh of virtual CPUs, and losses (1e-5), weights
and evaluation (1e-4) are compared. Meshes: `data` divides batches only, `model` variables only, `both` divides
batches, and variables in two. With `--times`: milliseconds of a step in the middle of 40, under DTensor and under
`--strategy mirrored --loop custom`, for the same devices, batches and layers, each in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from migrator.findings import Severity  # noqa: E402
from migrator.harness.cluster import ForkServer  # noqa: E402
from migrator.harness.environments import migrated_python, original_python  # noqa: E402
from migrator.migrate import Options, migrate  # noqa: E402
from migrator.source.reading import Source, decode  # noqa: E402
from tests.end_to_end.proving import Servers, record_both  # noqa: E402

PROGRAM = """
import numpy as np
import tensorflow as tf

STEPS = 5
SIZE = 16


def input_fn():
    random = np.random.RandomState(0)
    features = {features}
    labels = random.randint(0, 8, size=64).astype(np.int32)
    return tf.data.Dataset.from_tensor_slices((features, labels)).repeat().batch(SIZE).take(STEPS)


def model_fn(features, labels, mode):
{network}
    logits = tf.layers.dense(net, 8, name="last")
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    train_op = tf.train.AdagradOptimizer(0.1).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main():
    estimator = tf.estimator.Estimator(model_fn)
    estimator.train(input_fn, steps=STEPS)
    print(estimator.evaluate(input_fn)["loss"])


if __name__ == "__main__":
    main()
"""
_DENSE = '    net = tf.layers.dense(features, 64, activation=tf.nn.relu, name="hidden")\n'
_TABLE = (
    '    table = tf.get_variable("table", [48, 16])\n'
    "    net = tf.reduce_mean(tf.nn.embedding_lookup(table, features), axis=1)\n"
    '    net = tf.layers.dense(net, 64, activation=tf.nn.tanh, name="hidden")'
)
_IMAGES = (
    '    net = tf.layers.conv2d(features, 8, 3, padding="same", activation=tf.nn.relu, name="filters")\n'
    "    net = tf.layers.flatten(tf.layers.max_pooling2d(net, 2, 2))\n"
    '    net = tf.layers.dense(net, 64, activation=tf.nn.relu, name="hidden")'
)
_COLUMNS = ("hidden.kernel=unsharded,model", "hidden.bias=model")


@dataclass(frozen=True)
class Kind:
    """A kind of model: what its features are, its network, and the layouts that divide it over a dimension `model`."""

    features: str
    network: str
    layouts: tuple[str, ...] = _COLUMNS


KINDS = {
    "dense": Kind("random.normal(size=(64, 12)).astype(np.float32)", _DENSE),
    "embedding": Kind(
        "random.randint(0, 48, size=(64, 4)).astype(np.int64)",
        _TABLE,
        ("table.embeddings=model,unsharded", *_COLUMNS),
    ),
    "images": Kind("random.normal(size=(64, 8, 8, 2)).astype(np.float32)", _IMAGES),
}
#: Dimensions of a mesh of so many devices beside the batch's.
MESHES = {"data": lambda devices: 1, "model": lambda devices: devices, "both": lambda devices: 2}


def program(kind: Kind) -> str:
    """The original."""
    return PROGRAM.format(features=kind.features, network=kind.network)


def migrated(text: str, options: Options) -> str:
    """What the codemod makes of it."""
    source = decode(Path("train.py"), text.encode())
    assert isinstance(source, Source)
    [result] = migrate([source], options)
    blocked = [finding for finding in result.findings if finding.severity is Severity.MANUAL]
    assert not blocked, blocked
    return result.text


def verdict(servers: Servers, kind: Kind, layout: str, devices: int, folder: Path) -> str:
    """What comes of one cell."""
    parts = MESHES[layout](devices)
    options = Options("dtensor", "native")
    if parts > 1:
        options = Options("dtensor", "native", mesh=f"model={parts}", layouts=kind.layouts)
    original, new = folder / "original.py", folder / "migrated.py"
    original.write_text(program(kind), encoding="utf-8")
    new.write_text(migrated(program(kind), options), encoding="utf-8")
    try:
        first, second, pairs = record_both(servers, original, new, folder, devices)
    except (AssertionError, RuntimeError) as problem:
        return "fails: " + str(problem).strip().splitlines()[-1][:120]
    off = max(abs(a.loss / b.loss - 1) for a, b in zip(second.steps, first.steps, strict=True))
    if off > 1e-5:
        return f"DIFFERENT: losses are off by {off:.1e}"
    new_names = pairs.to_migrated()
    for name, value in first.states[5].items():
        if name in new_names and not np.allclose(second.states[5][new_names[name]], value, rtol=1e-4, atol=1e-6):
            return f"DIFFERENT: {name}"
    return f"same ({off:.0e})"


_TIMED = """
import importlib.util, os, statistics, sys, time
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * int(sys.argv[2]))
spec = importlib.util.spec_from_file_location("program", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
if hasattr(module, "make_strategy"):
    names = ["/cpu:%d" % i for i in range(int(sys.argv[2]))]
    module.make_strategy = lambda *a, **k: tf.distribute.MirroredStrategy(names)
loop = module.TrainingLoop
step = "distributed_train_step" if hasattr(loop, "distributed_train_step") else "train_step"
own, times = getattr(loop, step), []
def timed(self, batch):
    loss = (own.__get__(self) if hasattr(own, "__get__") else own)(batch)
    loss.numpy()
    times.append(time.perf_counter())
    return loss
setattr(loop, step, timed)
module.main()
found = [1000 * (b - a) for a, b in zip(times[10:], times[11:])]
print("TIME", statistics.median(found))
"""


def step_time(kind: Kind, strategy: str, devices: int, folder: Path) -> float:
    """Milliseconds of a step; batches of 256."""
    options = Options("dtensor", "native") if strategy == "dtensor" else Options("mirrored", "native", loop="custom")
    text = program(kind).replace("STEPS = 5", "STEPS = 40").replace("SIZE = 16", "SIZE = 256")
    path = folder / f"{strategy}.py"
    path.write_text(migrated(text, options), encoding="utf-8")
    command = [str(migrated_python()), "-c", _TIMED, str(path), str(devices)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    shown = [line for line in done.stdout.splitlines() if line.startswith("TIME ")]
    assert shown, done.stderr[-2000:]
    return float(shown[0].split()[1])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, nargs="*", default=[2, 4, 8])
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--layouts", nargs="*", default=list(MESHES), choices=list(MESHES))
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as name:
        if given.times:
            for devices in given.devices:
                for kind in given.kinds:
                    found = {one: step_time(KINDS[kind], one, devices, Path(name)) for one in ("dtensor", "mirrored")}
                    rows.append({"devices": devices, "kind": kind, **found})
                    print(rows[-1], flush=True)
        else:
            with (
                ForkServer(original_python(), "original") as first,
                ForkServer(migrated_python(), "migrated") as second,
            ):
                for devices in given.devices:
                    for layout in given.layouts:
                        if layout == "both" and devices == 2:
                            continue
                        for kind in given.kinds:
                            folder = Path(name) / f"{devices}-{layout}-{kind}"
                            folder.mkdir()
                            found_verdict = verdict((first, second), KINDS[kind], layout, devices, folder)
                            row = {"devices": devices, "layout": layout, "kind": kind, "verdict": found_verdict}
                            rows.append(row)
                            print(row, flush=True)
    if given.json is not None:
        given.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
