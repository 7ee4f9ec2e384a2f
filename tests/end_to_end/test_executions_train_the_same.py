"""Several steps in one execution: the same program with one step in each ends with the same weights, bit for bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from migrator.harness.cluster import ClusterShape, Launch
from migrator.harness.environments import migrated_python
from tests import warm
from tests.end_to_end.proving import Servers
from tests.rules.programs import run

pytestmark = pytest.mark.tensorflow

NATIVE = """\
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf

rng = np.random.RandomState(0)
X = rng.normal(size=(303, 4)).astype(np.float32)
Y = np.abs(X[:, :2]).astype(np.float32)


def train_input_fn():
    return tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(300, seed=3).repeat().batch(8)


def once():
    dataset = tf.data.Dataset.from_tensor_slices((X, Y))
    return dataset.batch(9)


def model_fn(features, labels, mode):
    net = tf.layers.dense(features, 5)
    net = tf.nn.tanh(tf.layers.batch_normalization(net, training=mode == tf.estimator.ModeKeys.TRAIN))
    out = tf.layers.dense(net, 2)
    loss = tf.losses.mean_squared_error(labels, out) + 0.5 * tf.losses.absolute_difference(labels, out)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"size": tf.metrics.mean(out)})
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.05, step, 7, 0.9, staircase=True)
    optimizer = tf.train.AdamOptimizer(rate)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, global_step=step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main():
    estimator = tf.estimator.Estimator(model_fn, model_dir=tempfile.mkdtemp())
    estimator.train(train_input_fn, max_steps=113)  # 20 does not divide it
    print(estimator.evaluate(once, steps=7))
    estimator.train(once)  # ends with the data, after 34 steps
    print(estimator.evaluate(once))


main()
"""
LINES = """\
import os
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf

FOLDER = tempfile.mkdtemp()
np.savetxt(os.path.join(FOLDER, "lines.csv"), np.random.RandomState(0).normal(size=(61, 4)), delimiter=",")


def parse(line):
    columns = tf.io.decode_csv(line, [[0.0]] * 4)
    return tf.stack(columns[:3]), tf.abs(columns[3:])


def input_fn():
    return tf.data.TextLineDataset(os.path.join(FOLDER, "lines.csv")).map(parse).repeat().batch(8)


def model_fn(features, labels, mode):
    out = tf.layers.dense(tf.nn.tanh(tf.layers.dense(features, 5)), 1)
    loss = tf.losses.mean_squared_error(labels, out)
    step = tf.train.get_or_create_global_step()
    train_op = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss, global_step=step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main():
    config = tf.estimator.RunConfig(model_dir=os.path.join(FOLDER, "model"), save_checkpoints_steps=55)
    estimator = tf.estimator.Estimator(model_fn, config=config)
    tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(input_fn, max_steps=165),  # three epochs; 20 does not divide them
        tf.estimator.EvalSpec(input_fn, steps=7),
    )


main()
"""
_REPLICAS = Path(__file__).resolve().parents[2] / "fixtures" / "mirrored_replicas" / "original.py"
_SERVERS = _REPLICAS.parents[1] / "in_process_cluster" / "original.py"
SERVERS = _SERVERS.read_text(encoding="utf-8").replace("MAX_STEPS = 24", "MAX_STEPS = 210")  # 20 does not divide them
REPLICAS = _REPLICAS.read_text(encoding="utf-8").replace(".repeat(2)", ".repeat(3)")  # 25 steps
CENTRAL = REPLICAS.replace(
    "tf.distribute.MirroredStrategy(devices=",
    'tf.distribute.experimental.CentralStorageStrategy(parameter_device="/cpu:0", compute_devices=',
)

WATCH = """\
import hashlib, json, sys
import tensorflow as tf

fit, evaluate, compiled = tf.keras.Model.fit, tf.keras.Model.evaluate, tf.keras.Model.compile
predict_on_batch = tf.keras.Model.predict_on_batch
seen = []


def watched(self, *args, **kwargs):
    history = fit(self, *args, **kwargs).history
    weights = hashlib.sha256(b"".join(value.tobytes() for value in self.get_weights())).hexdigest()
    variables = self.optimizer.variables
    variables = variables() if callable(variables) else variables
    state = hashlib.sha256(b"".join(v.numpy().tobytes() for v in variables)).hexdigest()
    seen.append([history, weights, state, int(self.optimizer.iterations.numpy())])
    return history


def watched_evaluate(self, *args, **kwargs):
    found = evaluate(self, *args, **kwargs)
    seen.append(found)
    return found


def set_steps(self, *args, **kwargs):
    seen.append(kwargs.get("steps_per_execution"))
    if steps == 1:
        type(self).predict_on_batch = predict_on_batch
    return compiled(self, *args, **dict(kwargs, steps_per_execution=steps))


tf.keras.Model.fit, tf.keras.Model.evaluate, tf.keras.Model.compile = watched, watched_evaluate, set_steps
found = []
for steps in (1, 20):
    tf.keras.utils.set_random_seed(1)
    seen = []
    names = {"__name__": "__main__"}
    exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"), names)
    found.append([*seen, repr(names.get("shown"))])
json.dump(found, open(sys.argv[2], "w"))
"""


@pytest.mark.parametrize(
    ("text", "counts", "evaluations"),
    [
        (NATIVE, [113, 147], 2),
        (LINES, [165], 3),
        (REPLICAS, [25], 1),
        (CENTRAL, [25], 1),
        (SERVERS, [210], 0),
    ],
    ids=["native", "lines-without-a-cluster", "replicas", "central-storage", "servers"],
)
def test_an_execution_of_many_steps_is_those_steps(
    text: str, counts: list[int], evaluations: int, tmp_path: Path
) -> None:
    new, findings = run(text)
    several_steps = 10 if text is SERVERS else 20
    assert f"steps_per_execution={several_steps}" in new or 'steps_per_execution=2 if "ps" in resolver' in new
    assert "TFM725" in [finding.code for finding in findings]
    single, several = _run(new, tmp_path)
    assert single[0] == several[0] == several_steps
    assert [one[3] for one in several[1:] if isinstance(one, list) and isinstance(one[0], dict)] == counts
    assert len(single) == 2 + len(counts) + evaluations and several == single
    if text is SERVERS:  # steps that are written out against those of Keras
        call = "\nset_train_function(model)\n"
        assert call in new
        assert _run(new.replace(call, "\n"), tmp_path) == [single, several]


@pytest.mark.parametrize(
    ("text", "counts", "evaluations"),
    [(NATIVE, [113, 147], 2), (LINES.replace("=55", "=40").replace("=165", "=120"), [120], 3)],
    ids=["data-that-end", "periods"],
)
def test_executions_of_keras_3(text: str, counts: list[int], evaluations: int, tmp_path: Path) -> None:
    """There `fit` makes whole executions of the steps that it is told, so that it gets as many batches."""
    new, _ = run(text, keras="3", strategy="one-device")
    assert "steps_per_execution=20" in new and "steps_per_epoch=113" not in new
    single, several = _run(new, tmp_path, keras=3)
    assert single[0] == several[0] == 20
    assert [one[3] for one in several[1:] if isinstance(one, list) and isinstance(one[0], dict)] == counts
    assert len(single) == 2 + len(counts) + evaluations and several == single


def test_a_training_on_keras_3_that_ended_between_two_periods(tmp_path: Path) -> None:
    text = LINES.replace("=55", "=40").replace("tempfile.mkdtemp()", repr(str(tmp_path)))
    script = tmp_path / "train.py"
    counts = []
    for most, period in ((24, 24), (120, 40)):
        new, _ = run(text.replace("=165", f"={most}").replace("=40", f"={period}"), keras="3", strategy="one-device")
        assert ("steps_per_execution=20" in new) == (most == 120)
        told = "\n    print('made', int(model.optimizer.iterations.numpy()))\n"
        script.write_text(new.replace("\n\n\nmain()\n", f"{told}\n\nmain()\n"))
        done = warm.run(migrated_python(), str(script), cwd=tmp_path, keras=3)
        assert done.returncode == 0, done.stderr
        counts.append(done.stdout.split("made ")[1].split()[0])
    assert counts == ["24", "120"]


def _run(program: str, folder: Path, keras: int = 2) -> list[list[Any]]:
    """What a program reports with one step in an execution, and with 20."""
    script, watch, found = folder / "train.py", folder / "watch.py", folder / "found.json"
    script.write_text(program)
    watch.write_text(WATCH)
    done = warm.run(migrated_python(), str(watch), str(script), str(found), cwd=folder, keras=keras)
    assert done.returncode == 0, done.stderr
    return list(json.loads(found.read_text()))


WORKERS = """\
import numpy as np
import tensorflow.compat.v1 as tf

rng = np.random.RandomState(0)
X = rng.normal(size=(60, 4)).astype(np.float32)
Y = np.argmax(X, 1).astype(np.int32)


def input_fn():
    return tf.data.Dataset.from_tensor_slices((X, Y)).repeat().batch(8)


def model_fn(features, labels, mode):
    net = tf.layers.dense(features, 5)
    net = tf.nn.tanh(tf.layers.batch_normalization(net, training=mode == tf.estimator.ModeKeys.TRAIN))
    out = tf.layers.dense(net, 4)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, out)
    if mode == tf.estimator.ModeKeys.EVAL:
        right = tf.metrics.accuracy(labels, tf.argmax(out, 1))
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"right": right})
    step = tf.train.get_or_create_global_step()
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = tf.train.AdamOptimizer(0.02).minimize(loss, global_step=step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
estimator = tf.estimator.Estimator(model_fn, config=tf.estimator.RunConfig(train_distribute=strategy))
train_spec = tf.estimator.TrainSpec(input_fn, max_steps=113)  # 20 does not divide it
tf.estimator.train_and_evaluate(estimator, train_spec, tf.estimator.EvalSpec(input_fn, steps=5))
"""


def test_workers_that_exchange_what_is_shown_once_for_an_execution(servers: Servers, tmp_path: Path) -> None:
    """Two workers: weights, moments, averages, loss and metric that `fit` shows, against Keras' own function."""
    new, _ = run(WORKERS)
    call = "\nset_train_function(model)\n"
    assert call in new and "steps_per_execution=20" in new
    new = new.replace("\nstrategy = ", "\ntf.keras.utils.set_random_seed(1)\nstrategy = ", 1)
    new = new.replace("    model.fit(", "    h = model.fit(")
    found = {}
    for how, text in (("own", new), ("of Keras", new.replace(call, "\n"))):
        folder = tmp_path / how
        folder.mkdir()
        values = "[value.numpy() for value in [*model.weights, *model.optimizer.variables()]]"
        save = f"np.savez({str(folder)!r} + '/found-%d' % resolver.task_id, *{values}, **h.history)"
        script = folder / "train.py"
        script.write_text(f"{text}\n{save}\n")
        shape = ClusterShape.parse("worker=2")
        outcome = servers[1].run(Launch("migrated", script, (), shape, folder / "run", total_timeout=300.0))
        assert outcome.failure is None, outcome.failure
        for path in sorted(folder.glob("found-*.npz")):
            with np.load(path) as archive:
                assert "loss" in archive.files
                assert 0.0 < archive["right"][0] < 1.0
                found[how, path.name] = {name: archive[name].tobytes() for name in archive.files}
    assert len(found) == 4
    for worker in (0, 1):
        assert found["own", f"found-{worker}.npz"] == found["of Keras", f"found-{worker}.npz"]
