"""Curves of a training on handwritten digits: the Estimator, one device, two replicas, and meshes of eight CPUs.

usage: python benchmarks/mesh_curves.py [--digits digits.csv.gz]

With `--digits` (1797 images of 8 x 8, in scikit-learn's wheel: sklearn/datasets/data) they are trained, and what was
recorded is written to docs/figures/mesh_curves.json. Then, and without it, the recorded numbers are drawn:
docs/figures/mesh_curves.svg.

The Estimator runs on TensorFlow 2.15.1, what the codemod of this checkout makes of it on 2.21 from the same weights.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.mesh import migrated  # noqa: E402
from migrator.harness.cluster import ForkServer  # noqa: E402
from migrator.harness.environments import migrated_python, original_python  # noqa: E402
from migrator.harness.recording import Recording  # noqa: E402
from migrator.harness.report.charts import Scale  # noqa: E402
from migrator.harness.report.numbers import number  # noqa: E402
from migrator.migrate import Options  # noqa: E402
from tests.end_to_end.proving import record, record_both  # noqa: E402

FIGURES = ROOT / "docs" / "figures"
PROGRAM = """
import gzip

import numpy as np
import tensorflow as tf

EPOCHS = 4
BATCH = 64
STEPS = 22


def digits():
    with gzip.open("DIGITS", "rt") as file:
        rows = np.loadtxt(file, delimiter=",", dtype=np.float32)
    return rows[:, :-1] / 16, rows[:, -1].astype(np.int32)


def train_input_fn():
    images, labels = digits()
    return tf.data.Dataset.from_tensor_slices((images[: STEPS * BATCH], labels[: STEPS * BATCH])).batch(BATCH)


def test_input_fn():
    images, labels = digits()
    return tf.data.Dataset.from_tensor_slices((images[STEPS * BATCH :], labels[STEPS * BATCH :])).batch(BATCH)


def model_fn(features, labels, mode):
    net = tf.layers.dense(features, 64, activation=tf.nn.relu, name="hidden")
    net = tf.layers.dense(net, 32, activation=tf.nn.relu, name="second")
    logits = tf.layers.dense(net, 10, name="digits")
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        accuracy = tf.metrics.accuracy(labels, tf.argmax(logits, axis=1))
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"accuracy": accuracy})
    train_op = tf.train.MomentumOptimizer(0.02, 0.9).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main():
    estimator = tf.estimator.Estimator(model_fn)
    for epoch in range(EPOCHS):
        estimator.train(train_input_fn)
        results = estimator.evaluate(test_input_fn)
        print("epoch %d: loss %.4f, accuracy %.4f" % (epoch + 1, results["loss"], results["accuracy"]))


if __name__ == "__main__":
    main()
"""
#: What is drawn beside the Estimator, and what the codemod is asked for.
RUNS = {
    "DTensor, batches over 8": Options("dtensor", "native"),
    "DTensor, 4 x 2": Options(
        "dtensor",
        "native",
        mesh="model=2",
        layouts=("hidden.kernel=unsharded,model", "hidden.bias=model", "second.kernel=model,unsharded"),
    ),
    "one device": Options("auto", "native"),
    "Mirrored, 2 replicas": Options("mirrored", "native", loop="custom"),
}


def curves(recording: Recording) -> dict[str, Any]:
    """The losses of all steps, and what was evaluated after which step."""
    shown = [{"step": one.step, **dict(one.results or {})} for one in recording.evaluations]
    return {
        "losses": [round(float(step.loss), 7) for step in recording.steps],
        "evaluations": [{name: one[name] for name in ("step", "loss", "accuracy")} for one in shown],
    }


def train(digits: Path, folder: Path) -> Iterator[dict[str, Any]]:
    """The curves of the Estimator and of all that comes of it: what is known after each training."""
    text = PROGRAM.replace("DIGITS", str(digits.resolve()))
    original = folder / "original.py"
    original.write_text(text, encoding="utf-8")
    found: dict[str, Any] = {}
    with ForkServer(original_python(), "original") as first, ForkServer(migrated_python(), "migrated") as second:
        for place, (name, options) in enumerate(RUNS.items()):
            path = folder / f"migrated{place}.py"
            path.write_text(migrated(text, options), encoding="utf-8")
            devices = {"one device": 1, "Mirrored, 2 replicas": 2}.get(name, 8)
            if not found:
                one, two, _ = record_both((first, second), original, path, folder, devices)
                found["Estimator"] = curves(one)
            else:
                two = record(second, "migrated", path, folder / str(place), folder / "initial.npz", devices)
            found[name] = curves(two)
            print(name, found[name]["evaluations"][-1], flush=True)
            yield found


# -- drawing --

COLOURS = ("#1b1b1b", "#0b6bcb", "#c2410c", "#15803d", "#7c3aed")
DASHES = ("", "9 5", "3 4", "12 4 3 4", "1 5")
WIDTH, HEIGHT, LEFT, TOP = 340, 220, 60, 34
Series = Mapping[str, Sequence[tuple[float, float]]]


def panel(series: Series, title: str, x_label: str, left: int) -> str:
    """One chart: its axes, and a line for each series, the later ones thinner and dashed so that all are seen."""
    points = [point for one in series.values() for point in one]
    low, high = min(y for _, y in points), max(y for _, y in points)
    margin = 0.06 * (high - low)
    x, y = Scale(min(x for x, _ in points), max(x for x, _ in points)), Scale(low - margin, high + margin)
    made = [f'<text x="{left}" y="{TOP - 12}" class="title">{escape(title)}</text>']
    for tick in y.ticks():
        at = TOP + HEIGHT * (1 - y(tick))
        made.append(f'<path d="M{left},{at:.1f}h{WIDTH}" class="grid"/>')
        made.append(f'<text x="{left - 6}" y="{at + 4:.1f}" class="y">{number(tick)}</text>')
    for tick in x.ticks():
        if tick == int(tick):
            made.append(f'<text x="{left + WIDTH * x(tick):.1f}" y="{TOP + HEIGHT + 16}" class="x">{int(tick)}</text>')
    made.append(f'<text x="{left + WIDTH / 2:.1f}" y="{TOP + HEIGHT + 33}" class="x">{escape(x_label)}</text>')
    for place, one in enumerate(series.values()):
        line = " ".join(f"{left + WIDTH * x(a):.1f},{TOP + HEIGHT * (1 - y(b)):.1f}" for a, b in one)
        thick = 4.5 if place == 0 else 2.2
        dash = f' stroke-dasharray="{DASHES[place]}"' if DASHES[place] else ""
        shade = ' stroke-opacity="0.35"' if place == 0 else ""
        made.append(f'<polyline points="{line}" stroke="{COLOURS[place]}" stroke-width="{thick}"{dash}{shade}/>')
    return "\n".join(made)


def figure(panels: Sequence[tuple[Series, str, str]], said: str) -> str:
    """Charts beside each other with one legend below."""
    step = LEFT + WIDTH + 16
    names = list(panels[0][0])
    below = TOP + HEIGHT + 56
    width, height = step * len(panels) + 10, below + 12
    made = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        f"<title>{escape(said)}</title>",
        "<style>text{font:12px sans-serif;fill:#333}.title{font-weight:600}.y{text-anchor:end}.x{text-anchor:middle}"
        ".grid{stroke:#ddd;fill:none}polyline{fill:none;stroke-linejoin:round}</style>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    made += [
        panel(series, title, x_label, LEFT + step * place) for place, (series, title, x_label) in enumerate(panels)
    ]
    for place, name in enumerate(names):
        at = LEFT + place * (width - LEFT) / len(names)
        dash = f' stroke-dasharray="{DASHES[place]}"' if DASHES[place] else ""
        shade = ' stroke-width="4.5" stroke-opacity="0.35"' if place == 0 else ' stroke-width="2.2"'
        made.append(f'<path d="M{at:.0f},{below}h28" stroke="{COLOURS[place]}"{shade}{dash}/>')
        made.append(f'<text x="{at + 34:.0f}" y="{below + 4}">{escape(name)}</text>')
    return "\n".join([*made, "</svg>"]) + "\n"


def draw_digits(runs: Mapping[str, Any]) -> str:
    """Three charts over the steps."""

    def evaluated(name: str) -> Series:
        return {key: [(one["step"], one[name]) for one in run["evaluations"]] for key, run in runs.items()}

    losses = {key: list(enumerate(run["losses"], 1)) for key, run in runs.items()}
    ends = ", ".join(f"{key} {run['evaluations'][-1]['accuracy']:.4f}" for key, run in runs.items())
    return figure(
        [
            (losses, "Loss of each step", "step"),
            (evaluated("loss"), "Loss of evaluation", "step"),
            (evaluated("accuracy"), "Accuracy of evaluation", "step"),
        ],
        f"Training on handwritten digits. Accuracy at the end: {ends}",
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--digits", type=Path)
    given = parser.parse_args(arguments)
    path = FIGURES / "mesh_curves.json"
    if given.digits is not None:
        with tempfile.TemporaryDirectory() as folder:
            FIGURES.mkdir(exist_ok=True)
            for found in train(given.digits, Path(folder)):
                path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    path.with_suffix(".svg").write_text(draw_digits(json.loads(path.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main()
