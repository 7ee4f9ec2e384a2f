"""What `--strategy dtensor` computes and how fast: devices, layouts and kinds of models against the Estimator.

usage: python benchmarks/mesh.py [--devices N ...] [--kinds NAME ...] [--inputs | --mirrored | --times [--rounds N]]
                                 [--json FILE]

Every cell is a proof as those of the tests: the original trains 5 steps on TensorFlow 2.15.1, the program that the
codemod of this checkout makes of it trains from the same weights on a mesh of virtual CPUs, and losses (1e-5), weights
and evaluation (1e-4) are compared. Meshes: `data` divides batches only, `model` variables only, `both` divides
batches, and variables in two. With `--inputs`: DTensor programs (benchmarks/programs/mesh_models.py), the original on
2.15.1 against the migrated one on 2.21, and against one device. With `--mirrored`: a TensorFlow 2 program on two
replicas, its model subclassed, functional or Sequential, against the mesh that it becomes. With `--times`: milliseconds
of a step, under data parallel DTensor and under MirroredStrategy (a loop of its own, many steps in a call and one, and
`fit`), for the same devices, batches of all devices together and layers: every way in a process of its own that trains
when it is its turn.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from migrator.findings import Severity  # noqa: E402
from migrator.harness.cluster import ClusterShape, ForkServer, Launch  # noqa: E402
from migrator.harness.environments import migrated_python, original_python  # noqa: E402
from migrator.migrate import Options, migrate  # noqa: E402
from migrator.source.reading import Source, decode  # noqa: E402
from tests.end_to_end.proving import Servers, record, record_both  # noqa: E402

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


#: Kinds of models of DTensor programs: `layers` have layouts as arguments, the others get theirs from a LayoutMap.
INPUT_KINDS = ("subclassed", "functional", "sequential", "layers")
INPUT = Path(__file__).parent / "programs" / "mesh_models.py"
_NUMBER = re.compile(r"-?\d+\.\d+")


def printed(server: ForkServer, script: Path, folder: Path, *args: str) -> dict[str, list[str]]:
    """The lines of a program by kind of model and by where gradients are applied."""
    outcome = server.run(Launch("migrated", script, args, ClusterShape.parse(""), folder))
    assert outcome.failure is None, outcome.failure
    found: dict[str, list[str]] = {}
    for line in outcome.tasks[0].stdout.read_text(encoding="utf-8").splitlines():
        kind, place, rest = line.split(" ", 2)
        found.setdefault(f"{kind} {place}", []).append(rest)
    return found


def distance(after: Sequence[str], before: Sequence[str]) -> str:
    """`same` and the largest difference where lines say the same, their numbers to 1e-5."""
    if [_NUMBER.sub("#", line) for line in after] != [_NUMBER.sub("#", line) for line in before]:
        return "DIFFERENT"
    pairs = zip(_NUMBER.findall(" ".join(after)), _NUMBER.findall(" ".join(before)), strict=True)
    off = max(abs(float(a) - float(b)) / max(abs(float(b)), 1e-2) for a, b in pairs)
    return f"same ({off:.0e})" if off <= 1e-5 else f"DIFFERENT ({off:.1e})"


def input_verdicts(
    devices: Sequence[int], layouts: Sequence[str], kinds: Sequence[str], folder: Path
) -> Iterator[dict[str, object]]:
    """DTensor programs on 2.15.1 against what the codemod makes of them on 2.21, and that against one device.

    `as written` applies gradients in the traced step, `outside` after it, as TFM777 says.
    """
    new = folder / "migrated.py"
    new.write_text(migrated(INPUT.read_text(encoding="utf-8"), Options()), encoding="utf-8")
    with ForkServer(original_python(), "migrated") as first, ForkServer(migrated_python(), "migrated") as second:
        alone = printed(second, new, folder / "alone", "0", "0", *kinds)
        for count in devices:
            for layout in layouts:
                if layout == "both" and count == 2:
                    continue
                parts = MESHES[layout](count)
                mesh = (str(count // parts), str(parts))
                before = printed(first, INPUT, folder / f"{count}-{layout}-before", *mesh, *kinds)
                after = printed(second, new, folder / f"{count}-{layout}-after", *mesh, *kinds)
                for kind in kinds:
                    row: dict[str, object] = {"devices": count, "layout": layout, "kind": kind}
                    for place, name in (("inside", "as written"), ("outside", "outside")):
                        one = f"{kind} {place}"
                        row[f"{name}, against 2.15.1"] = distance(after[one], before[one])
                        row[f"{name}, against one device"] = distance(after[one][: len(alone[one])], alone[one])
                    yield row


MIRRORED = """
import numpy as np
import tensorflow as tf

BATCH = 16


class Subclassed(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden = tf.keras.layers.Dense(64, activation="relu")
        self.last = tf.keras.layers.Dense(8)

    def call(self, inputs):
        return self.last(self.hidden(inputs))


def functional():
    inputs = tf.keras.Input((12,))
    hidden = tf.keras.layers.Dense(64, activation="relu", name="hidden")(inputs)
    return tf.keras.Model(inputs, tf.keras.layers.Dense(8, name="last")(hidden))


def sequential():
    hidden = tf.keras.layers.Dense(64, activation="relu", name="hidden", input_shape=(12,))
    return tf.keras.Sequential([hidden, tf.keras.layers.Dense(8, name="last")])


def main():
    strategy = tf.distribute.MirroredStrategy()
    random = np.random.RandomState(0)
    features = random.normal(size=(80, 12)).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices((features, random.randint(0, 8, size=80))).batch(BATCH)
    batches = strategy.experimental_distribute_dataset(data)
    with strategy.scope():
        model = MAKE()
        optimizer = tf.keras.optimizers.Adam(0.01)
        losses = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    def train_step(features, labels):
        with tf.GradientTape() as tape:
            logits = model(features, training=True)
            loss = tf.nn.compute_average_loss(losses(labels, logits), global_batch_size=BATCH)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    @tf.function
    def train_all(features, labels):
        return strategy.reduce("SUM", strategy.run(train_step, args=(features, labels)), axis=None)

    for features, labels in batches:
        print(train_all(features, labels).numpy())


if __name__ == "__main__":
    main()
"""
MODELS = {"subclassed": "Subclassed", "functional": "functional", "sequential": "sequential"}


def mirrored_program(kind: str) -> str:
    """The program whose model is of a kind; without the class of the others."""
    text = MIRRORED.replace("MAKE()", f"{MODELS[kind]}()")
    return text if kind == "subclassed" else text[: text.index("class")] + text[text.index("def functional") :]


def mirrored_verdicts(
    server: ForkServer, devices: Sequence[int], layouts: Sequence[str], kinds: Sequence[str], folder: Path
) -> Iterator[dict[str, object]]:
    """A program on two replicas against the mesh of so many devices that it becomes, from the same weights, on 2.21."""
    for kind in kinds:
        original = folder / f"{kind}.py"
        original.write_text(mirrored_program(kind), encoding="utf-8")
        first = record(server, "migrated", original, folder / kind, None, 2)
        np.savez(folder / f"{kind}.npz", **first.initial)  # type: ignore[arg-type]
        for count, layout in ((count, layout) for count in devices for layout in layouts):
            if layout == "both" and count == 2:
                continue
            parts = MESHES[layout](count)
            options = Options("dtensor", "native", mesh=f"model={parts}", layouts=_COLUMNS)
            new = folder / f"{kind}-{count}-{layout}.py"
            new.write_text(migrated(mirrored_program(kind), options), encoding="utf-8")
            run = folder / new.stem
            second = record(server, "migrated", new, run, folder / f"{kind}.npz", count)
            off = max(abs(a.loss / b.loss - 1) for a, b in zip(second.steps, first.steps, strict=True))
            same = off <= 1e-5 and all(
                np.allclose(second.states[5][name], value, rtol=1e-4, atol=1e-6)
                for name, value in first.states[5].items()
            )
            [shown] = (run / "record").glob("*/program.json")
            parts_of = json.loads(shown.read_text(encoding="utf-8"))["variables"]
            yield {
                "devices": count,
                "layout": layout,
                "kind": kind,
                "verdict": f"{'same' if same else 'DIFFERENT'} ({off:.0e})",
                "hidden kernel of a device": parts_of[0]["device_shapes"][0],
            }


#: Ways to train that are timed, and what the codemod is asked for: the mesh, batches divided between replicas (as many
#: steps in a call as are emitted, or one), and `fit`, whose replicas draw batches of their own.
WAYS = {
    "dtensor": Options("dtensor", "native"),
    "custom": Options("mirrored", "native", loop="custom"),
    "single": Options("mirrored", "native", loop="custom"),
    "fit": Options("mirrored", "native"),
}
STEPS = 30
BATCH = 256


class Trainers:
    """Processes that train programs, one for each way, and are quiet while another does."""

    def __init__(self) -> None:
        command = [str(migrated_python()), str(Path(__file__).parent / "programs" / "mesh_steps.py")]
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def ask(self, way: str, **job: object) -> list[float]:
        """The seconds that a job took, and those of the CPU."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps({"way": way, **job}), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        assert answer, f"{way}: ended"
        return [float(one) for one in answer.split()]

    def prepare(self, way: str, kind: Kind, devices: int, folder: Path) -> None:
        """Writes a program for as many devices, and trains it once."""
        size = BATCH // devices if way == "fit" else BATCH
        text = program(kind).replace("STEPS = 5", f"STEPS = {STEPS}").replace("SIZE = 16", f"SIZE = {size}")
        if way == "fit":  # as many batches for every replica
            text = text.replace(".take(STEPS)", f".take(STEPS * {devices})")
        path = folder / f"{way}.py"
        path.write_text(migrated(text, WAYS[way]), encoding="utf-8")
        self.ask(way, prepare=[str(path), devices, 1])


def step_times(devices: Sequence[int], kinds: Sequence[str], rounds: int, folder: Path) -> Iterator[dict[str, object]]:
    """Milliseconds of a step by way of training, and of the CPU, medians of `rounds` trainings that take turns."""
    trainers = Trainers()
    try:
        for count in devices:
            for kind in kinds:
                for way in WAYS:
                    trainers.prepare(way, KINDS[kind], count, folder)
                found: dict[str, list[list[float]]] = {way: [] for way in WAYS}
                for _ in range(rounds):
                    for way in WAYS:
                        found[way].append(trainers.ask(way, train=True))
                row: dict[str, object] = {"devices": count, "kind": kind, "load": round(os.getloadavg()[0], 1)}
                for way, several in found.items():
                    middle = [statistics.median(1000 * values[i] / STEPS for values in several) for i in (0, 1)]
                    row[way], row[f"{way}, CPU"] = (round(value, 2) for value in middle)
                yield row
    finally:
        assert trainers.process.stdin is not None
        trainers.process.stdin.close()
        trainers.process.wait()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, nargs="*", default=[2, 4, 8])
    parser.add_argument("--kinds", nargs="*", choices=[*KINDS, *INPUT_KINDS])
    parser.add_argument("--layouts", nargs="*", default=list(MESHES), choices=list(MESHES))
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--inputs", action="store_true")
    parser.add_argument("--mirrored", action="store_true")
    parser.add_argument("--rounds", type=int, default=5, help="trainings of each way that are timed")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    several = INPUT_KINDS if given.inputs else MODELS if given.mirrored else KINDS
    kinds = given.kinds or (["dense"] if given.times else list(several))
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as name:
        if given.times:
            for row in step_times(given.devices, kinds, given.rounds, Path(name)):
                rows.append(row)
                print(row, flush=True)
        elif given.mirrored:
            with ForkServer(migrated_python(), "migrated") as server:
                for row in mirrored_verdicts(server, given.devices, given.layouts, kinds, Path(name)):
                    rows.append(row)
                    print(row, flush=True)
        elif given.inputs:
            for row in input_verdicts(given.devices, given.layouts, kinds, Path(name)):
                rows.append(row)
                print(row, flush=True)
        else:
            with (
                ForkServer(original_python(), "original") as first,
                ForkServer(migrated_python(), "migrated") as second,
            ):
                for devices in given.devices:
                    for layout in given.layouts:
                        if layout == "both" and devices == 2:
                            continue
                        for kind in kinds:
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
