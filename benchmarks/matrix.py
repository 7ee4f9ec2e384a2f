"""What becomes of one small program under every strategy, in both loops, on both generations of Keras.

usage: python benchmarks/matrix.py [--json FILE] [--markdown FILE] [--timeout SECONDS] [CELL ...]

The program is written for each strategy as Estimator programs ask for it (a RunConfig's `train_distribute`, TF_CONFIG,
a TPUEstimator). Each cell is migrated by the codemod of this checkout. What comes out is run against the original as by
`tf-migrate verify`, on virtual CPUs or a local cluster, and the cell has its verdict; what is refused has the codes of
the findings. The interpreters of a generation of Keras serve all of its cells. A CELL is `strategy/loop/keras`, parts
of which may be left out: `mirrored`, `tpu/custom`, `/fit/3`. With --json, cells of the file that are equivalent or
refused are kept, and not run again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from migrator.findings import Severity
from migrator.harness import session
from migrator.migrate import Options, migrate
from migrator.source.reading import decode
from migrator.targets import LOOPS

KERAS = ("2", "3")

PLAIN = """\
import numpy as np
import tensorflow as tf


def input_fn():
    random = np.random.RandomState(7)
    x = random.normal(size=(240, 6)).astype(np.float32)
    y = np.maximum(x[:, :1], 0.0) - 0.5 * x[:, 1:2]
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(12).repeat()


def model_fn(features, labels, mode):
    hidden = tf.layers.dense(features, 8, tf.nn.tanh, kernel_initializer=tf.truncated_normal_initializer(stddev=0.5))
    output = tf.layers.dense(hidden, 1)
    loss = tf.losses.mean_squared_error(labels, output)
    if mode == tf.estimator.ModeKeys.EVAL:
        error = tf.metrics.mean_absolute_error(labels, output)
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"error": error})
    train_op = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss, tf.train.get_or_create_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main():
    config = tf.estimator.RunConfig(%s)
    estimator = tf.estimator.Estimator(model_fn, model_dir="/tmp/tf_migrate_matrix", config=config)
    tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(input_fn, max_steps=30),
        tf.estimator.EvalSpec(input_fn, steps=5, start_delay_secs=0, throttle_secs=0),
    )


if __name__ == "__main__":
    main()
"""
ON_TPU = """\
import numpy as np
import tensorflow as tf


def input_fn(params):
    random = np.random.RandomState(7)
    x = random.normal(size=(240, 6)).astype(np.float32)
    y = np.maximum(x[:, :1], 0.0) - 0.5 * x[:, 1:2]
    return tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(params["batch_size"], drop_remainder=True)


def model_fn(features, labels, mode, params):
    hidden = tf.layers.dense(features, 8, tf.nn.tanh, kernel_initializer=tf.truncated_normal_initializer(stddev=0.5))
    output = tf.layers.dense(hidden, 1)
    loss = tf.losses.mean_squared_error(labels, output)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss)
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.MomentumOptimizer(0.05, 0.9))
    train_op = optimizer.minimize(loss, tf.train.get_or_create_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def main():
    config = tf.estimator.tpu.RunConfig(
        master="grpc://10.0.0.1:8470", tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=10)
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn, model_dir="/tmp/tf_migrate_matrix", config=config, train_batch_size=12, eval_batch_size=12
    )
    estimator.train(input_fn, max_steps=30)
    print(estimator.evaluate(input_fn, steps=5))


if __name__ == "__main__":
    main()
"""
TWO = '["/gpu:0", "/gpu:1"]'  # the harness gives virtual CPUs for them


@dataclass(frozen=True)
class Case:
    """The original under a strategy, what the codemod is asked beside the loop, and how both are run.

    `loops` are those that train as the original did: replicas that `fit` is asked for take a batch each (TFM724).
    """

    text: str
    asked: str = "auto"
    run: Mapping[str, Any] = field(default_factory=dict)
    loops: tuple[str, ...] = LOOPS


CASES: Mapping[str, Case] = {
    "one-device": Case(PLAIN % "", "one-device"),
    "mirrored": Case(PLAIN % f"train_distribute=tf.distribute.MirroredStrategy({TWO})", run={"devices": 2}),
    "mirrored, divided": Case(PLAIN % "", "mirrored", {"devices": 2}, ("custom",)),
    "multi-worker-mirrored": Case(
        PLAIN % "train_distribute=tf.distribute.experimental.MultiWorkerMirroredStrategy()",
        run={"cluster": "worker=2"},
    ),
    "parameter-server": Case(PLAIN % "", "parameter-server", {"cluster": "chief=1,worker=1,ps=1,evaluator=1"}),
    "central-storage": Case(
        PLAIN % f"train_distribute=tf.distribute.experimental.CentralStorageStrategy({TWO})", run={"devices": 2}
    ),
    "tpu": Case(ON_TPU, run={"tpu_cores": 2}),
}


def cells(wanted: list[str]) -> list[tuple[str, str, str]]:
    """The cells that are asked for, all where none is."""
    every = [cell for cell in itertools.product(CASES, LOOPS, KERAS) if cell[1] in CASES[cell[0]].loops]
    if not wanted:
        return every
    found = []
    for cell in every:
        for text in wanted:
            parts = [*text.split("/"), "", ""][:3]
            if all(part in ("", own) for part, own in zip(parts, cell, strict=True)):
                found.append(cell)
                break
    if not found:
        raise SystemExit(f"there is no cell {', '.join(wanted)}")
    return found


class Judge:
    """Judges cells in interpreters that stay open; one for each generation of Keras."""

    def __init__(self, stack: ExitStack, timeout: float) -> None:
        self.stack = stack
        self.timeout = timeout
        self.opened: dict[str, session.Session] = {}

    def session(self, keras: str) -> session.Session:
        """The interpreters of both programs."""
        if keras not in self.opened:
            self.opened[keras] = self.stack.enter_context(session.open_session(keras=int(keras)))
        return self.opened[keras]

    def judge(self, strategy: str, loop: str, keras: str) -> str:
        """The verdict on a cell, or the codes of the findings that refuse it."""
        case = CASES[strategy]
        with tempfile.TemporaryDirectory(prefix="tf-migrate-matrix-") as name:
            original, migrated = Path(name) / "original.py", Path(name) / "migrated.py"
            original.write_text(case.text, encoding="utf-8")
            options = Options(strategy=case.asked, keras=keras, loop=loop, style="native")
            (result,) = migrate([decode(original, case.text.encode())], options)
            refused = sorted({f.code for f in result.findings if f.severity is Severity.MANUAL})
            if refused:
                return f"refused: {', '.join(refused)}"
            migrated.write_text(result.text, encoding="utf-8")
            times: dict[str, Any] = {"total_timeout": self.timeout, "stall_timeout": self.timeout}
            try:
                made = session.make_case(original, migrated, keras=int(keras), **times, **case.run)
            except session.CaseError as error:
                return f"not run: {error}"
            document = session.verify(made, lambda _: None, session=self.session(keras)).document
            verdict = str(document["verdict"])
            if verdict != "EQUIVALENT":
                print(f"{strategy}/{loop}/{keras}: {document['reason']}: {document['summary']}", flush=True)
            inconclusive = [level["id"] for level in document["levels"] if level["status"] == "INCONCLUSIVE"]
            return " ".join([verdict, *inconclusive])


def table(found: Mapping[str, str]) -> str:
    """The cells as Markdown."""
    head = ["strategy", *(f"{loop}, Keras {keras}" for loop in LOOPS for keras in KERAS)]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for strategy in CASES:
        row = [
            found.get(f"{strategy}/{loop}/{keras}", "not run here" if loop in CASES[strategy].loops else "")
            for loop in LOOPS
            for keras in KERAS
        ]
        lines.append(f"| {' | '.join([strategy, *row])} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Judges the cells and writes them down after each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cells", nargs="*", metavar="CELL")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--timeout", type=float, default=600.0)
    given = parser.parse_args()
    found: dict[str, str] = {}
    if given.json is not None and given.json.exists():
        found = json.loads(given.json.read_text(encoding="utf-8"))
    with ExitStack() as stack:
        judge = Judge(stack, given.timeout)
        for strategy, loop, keras in sorted(cells(given.cells), key=lambda cell: cell[2]):
            cell = f"{strategy}/{loop}/{keras}"
            if found.get(cell, "").partition(":")[0] in ("EQUIVALENT", "refused"):
                continue
            begun = time.time()
            found[cell] = judge.judge(strategy, loop, keras)
            print(f"{cell}: {found[cell]} ({time.time() - begun:.0f} s)", flush=True)
            if given.json is not None:
                given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if given.markdown is not None:
        given.markdown.write_text(table(found), encoding="utf-8")
    else:
        print(table(found))


if __name__ == "__main__":
    main()
