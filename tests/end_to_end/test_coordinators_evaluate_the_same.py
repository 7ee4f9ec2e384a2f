"""`--evaluate-on coordinator`, `--servers` and plain trainings on real clusters: the numbers of an evaluator task."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from migrator.findings import Severity
from migrator.harness.recording import Evaluation, Recording
from migrator.migrate import Options, migrate
from migrator.source.reading import Source, decode
from tests.end_to_end.proving import Servers, losses, record, record_both

pytestmark = pytest.mark.tensorflow

PROGRAM = '''
import numpy as np
import tensorflow as tf


def points(seed, count):
    random = np.random.RandomState(seed)
    x = random.uniform(-1.0, 1.0, size=(count, 6)).astype(np.float32)
    return x, np.maximum(x[:, :1], 0.0) - 0.5 * x[:, 1:2]


def train_input_fn():
    return tf.data.Dataset.from_tensor_slices(points(1, 64)).repeat().batch(16)


def eval_input_fn():
    """Three batches, which no number of workers divides."""
    return tf.data.Dataset.from_tensor_slices(points(2, 33)).batch(11)


def model_fn(features, labels, mode):
    with tf.variable_scope("network", partitioner=PARTITIONER):
        hidden = tf.layers.dense(features, 8, activation=tf.nn.tanh)
        output = tf.layers.dense(hidden, 1)
    loss = tf.losses.mean_squared_error(labels, output)
    metrics = {"mae": tf.metrics.mean_absolute_error(labels, output)}
    train_op = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


config = tf.estimator.RunConfig(model_dir=MODEL_DIR, save_checkpoints_steps=4)
estimator = tf.estimator.Estimator(model_fn, config=config)
'''
BOTH = """tf.estimator.train_and_evaluate(
    estimator,
    tf.estimator.TrainSpec(train_input_fn, max_steps=12),
    tf.estimator.EvalSpec(eval_input_fn, steps=None, start_delay_secs=0, throttle_secs=0),
)
"""
PLAIN = """estimator.train(train_input_fn, steps=12)
print(estimator.evaluate(eval_input_fn))
"""
EVALUATED = ("chief=1,ps=2,evaluator=1", "chief=1,worker=1,ps=2")


def program(folder: Path, driver: str, partitioner: str = "tf.fixed_size_partitioner(2)") -> str:
    text = PROGRAM.replace("MODEL_DIR", json.dumps(str(folder / "model"))).replace("PARTITIONER", partitioner)
    return text + driver


def on_workers(text: str) -> str:
    made = "RunConfig(train_distribute=tf.distribute.experimental.MultiWorkerMirroredStrategy(), "
    return text.replace("RunConfig(", made)


def write(folder: Path, text: str, **options: str) -> Path:
    """The script of a program, migrated if there are options, with the files beside it."""
    folder.mkdir()
    results = {"train.py": text}
    if options:
        source = decode(Path("train.py"), text.encode())
        assert isinstance(source, Source)
        made = migrate([source], Options(**{"style": "native", **options}))  # type: ignore[arg-type]
        assert not [one for result in made for one in result.findings if one.severity is Severity.MANUAL]
        results = {str(one.source.path): one.text for one in made}
    for name, new in results.items():
        (folder / name).write_text(new, encoding="utf-8")
    return folder / "train.py"


def metrics(evaluation: Evaluation) -> dict[str, float]:
    return {name: evaluation.results[name] for name in ("loss", "mae")}


def of_steps(recording: Recording) -> dict[int | None, dict[str, float]]:
    return {one.step: metrics(one) for one in recording.evaluations}


CASES = {
    "servers": ({}, EVALUATED, False),
    "servers, a loop of its own": ({"loop": "custom", "strategy": "parameter-server"}, EVALUATED, False),
    "workers": ({}, ("worker=2,evaluator=1", "worker=2"), True),
}


@pytest.mark.parametrize("case", CASES)
def test_the_coordinator_finds_what_the_evaluator_found(case: str, servers: Servers, tmp_path: Path) -> None:
    options, clusters, mirrored = CASES[case]
    text = program(tmp_path, BOTH, "None" if mirrored else "tf.fixed_size_partitioner(2)")
    text = on_workers(text) if mirrored else text
    original = write(tmp_path / "original", text)
    migrated = write(tmp_path / "migrated", text, evaluate_on="coordinator", **options)
    before, after, _ = record_both(servers, original, migrated, tmp_path, clusters=clusters)
    found, known = of_steps(after), of_steps(before)
    assert list(found) == [4, 8, 12] and found[12] != found[8]  # the evaluator may have come too late for one
    shared = [step for step in found if step in known]
    assert 12 in shared
    for step in shared:
        assert found[step] == pytest.approx(known[step], rel=1e-4), step
    tasks = {one.task for one in after.evaluations}
    assert not any("evaluator" in task or "ps" in task for task in tasks), tasks


@pytest.mark.parametrize("style", ["native", "bridge"])
def test_servers_in_one_process_train_and_evaluate_as_processes_do(
    style: str, servers: Servers, tmp_path: Path
) -> None:
    text = program(tmp_path, BOTH)
    original = write(tmp_path / "original", text)
    script = write(tmp_path / "migrated", text, style=style, servers="worker=1,ps=2")
    first, apart, _ = record_both(servers, original, script, tmp_path, clusters=("chief=1,ps=2", EVALUATED[1]))
    beside = tmp_path / "beside"
    beside.mkdir()
    script = write(beside / "program", program(beside, BOTH), style=style, servers="worker=1,ps=2")
    together = record(servers[1], "migrated", script, beside / "run", tmp_path / "initial.npz")
    # Beside the recorder's hook the workers of a bridge take up to ten steps between two looks for a checkpoint.
    assert list(of_steps(together)) == list(of_steps(apart)) == ([4, 8, 12] if style == "native" else [4, 12])
    for step, values in of_steps(apart).items():
        assert of_steps(together)[step] == pytest.approx(values, rel=1e-6), step
    np.testing.assert_allclose(losses(together), losses(apart), rtol=1e-6)
    np.testing.assert_allclose(losses(together), losses(first), rtol=1e-5)


@pytest.mark.parametrize("style", ["native", "bridge"])
def test_a_plain_training_runs_on_servers(style: str, servers: Servers, tmp_path: Path) -> None:
    text = program(tmp_path, PLAIN)
    original = write(tmp_path / "original", text)
    options = {"strategy": "parameter-server"} if style == "native" else {}
    script = write(tmp_path / "migrated", text, style=style, **options)
    first, second, _ = record_both(servers, original, script, tmp_path, clusters=("", EVALUATED[1]))
    np.testing.assert_allclose(losses(second), losses(first), rtol=1e-5)
    assert len(losses(second)) == 12
    assert of_steps(second) == {12: pytest.approx(of_steps(first)[12], rel=1e-5)}


def test_a_plain_training_runs_on_workers(servers: Servers, tmp_path: Path) -> None:
    text = program(tmp_path, PLAIN, "None")
    original = write(tmp_path / "original", text)
    script = write(tmp_path / "migrated", text, strategy="multi-worker-mirrored")
    first, second, _ = record_both(servers, original, script, tmp_path, clusters=("", "worker=2"))
    np.testing.assert_allclose(losses(second), losses(first), rtol=1e-5)  # both workers draw the same batches
    for one in second.evaluations:
        assert metrics(one) == pytest.approx(of_steps(first)[12], rel=1e-5)
    assert second.evaluations
