"""Programs that were given a training loop of their own (`--loop custom`) train as the Estimator did."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from migrator.harness.cluster import ClusterShape, Launch
from tests.end_to_end.proving import Servers, prove_project
from tests.end_to_end.test_strategies_train_the_same import ALL, CENTRAL, MEAN, MIRRORED, MOMENTUM, NORMALIZED
from tests.end_to_end.test_strategies_train_the_same import PROGRAM as REPLICAS
from tests.end_to_end.test_tpu_trains_the_same import NATIVE
from tests.end_to_end.test_tpu_trains_the_same import PROGRAM as ON_TPU
from tests.rules.programs import run

pytestmark = pytest.mark.tensorflow

PROGRAM = """
import numpy as np
import tensorflow as tf


def input_fn():
    random = np.random.RandomState(0)
    features = {{"a": random.normal(size=(22, 3)).astype(np.float32), "b": random.randint(0, 6, size=(22, 1))}}
    labels = random.randint(0, 3, size={labels}).astype({dtype})
    return tf.data.Dataset.from_tensor_slices((features, labels)).batch(8)


def model_fn(features, labels, mode):
    one_hot = tf.one_hot(features["b"][:, 0], 6)
    net = tf.layers.dense(tf.concat([features["a"], one_hot], 1), 5, activation=tf.nn.tanh)
    output = tf.layers.dense({net}, {units})
    {loss}
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss{metrics})
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = {optimizer}.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


{driver}
"""
TWICE = """\
estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=2)
estimator.train(input_fn, steps=9)
print(estimator.evaluate(input_fn)["loss"])
"""
PERIODS = """\
config = tf.estimator.RunConfig(model_dir="/tmp/own_loop", save_checkpoints_steps=5)
estimator = tf.estimator.Estimator(model_fn, config=config)
train_spec = tf.estimator.TrainSpec(lambda: input_fn().repeat(), max_steps=10)
tf.estimator.train_and_evaluate(estimator, train_spec, tf.estimator.EvalSpec(input_fn, steps=None))
"""
SHARED = """\
strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
estimator = tf.estimator.Estimator(model_fn, config=tf.estimator.RunConfig(train_distribute=strategy))
train_spec = tf.estimator.TrainSpec(lambda: input_fn().repeat(), max_steps=6)
tf.estimator.train_and_evaluate(estimator, train_spec, tf.estimator.EvalSpec(input_fn, steps=None))
"""
WORKERS = "multi-worker-mirrored"
SERVERS = "parameter-server"
SERVED = "chief=1,worker=1,ps=2,evaluator=1"
CLASSES = {
    "labels": "22",
    "dtype": "np.int32",
    "units": "3",
    "net": "net",
    "loss": "loss = tf.losses.sparse_softmax_cross_entropy(labels, output)",
    "metrics": ', eval_metric_ops={"accuracy": tf.metrics.accuracy(labels, tf.argmax(output, 1))}',
    "optimizer": "tf.train.MomentumOptimizer(0.1, 0.9)",
}
SQUARES = {
    "labels": "22",
    "dtype": "np.float32",
    "units": "1",
    "net": "tf.layers.batch_normalization(net, training=mode == tf.estimator.ModeKeys.TRAIN)",
    "loss": "loss = tf.reduce_mean(tf.square(tf.reshape(labels, [-1, 1]) - output))",
    "metrics": "",
    "optimizer": "tf.train.AdagradOptimizer(0.1)",
}
OWN_CLASSES = CLASSES | {
    "loss": "xent = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=output)\n"
    "    loss = tf.reduce_mean(2.0 * xent)"
}


@pytest.mark.parametrize(
    ("parts", "driver", "steps", "strategy", "devices", "clusters"),
    [
        pytest.param(CLASSES, TWICE, 5, "auto", 1, ("", ""), id="a-class-on-one-device"),
        pytest.param(SQUARES, PERIODS, 10, "mirrored", 2, ("", ""), id="a-function-on-two-replicas"),
        pytest.param(SQUARES, PERIODS, 10, WORKERS, 1, ("", "worker=2,evaluator=1"), id="two-workers-that-divide"),
        pytest.param(CLASSES, SHARED, 6, "auto", 1, ("worker=2", "worker=2"), id="two-workers-that-draw"),
        pytest.param(SQUARES, PERIODS, 10, SERVERS, 1, ("", SERVED), id="a-coordinator-that-schedules"),
        pytest.param(OWN_CLASSES, TWICE, 5, "mirrored", 2, ("", ""), id="a-loss-of-classes-on-two-replicas"),
    ],
)
def test_a_loop_of_its_own(
    parts: dict[str, str],
    driver: str,
    steps: int,
    strategy: str,
    devices: int,
    clusters: tuple[str, str],
    servers: Servers,
    tmp_path: Path,
) -> None:
    text = PROGRAM.format(**parts, driver=driver)
    new = prove_project(
        {"train.py": text},
        "train.py",
        servers,
        tmp_path,
        steps=steps,
        strategy=strategy,
        loop="custom",
        devices=devices,
        clusters=clusters,
    )
    divides = strategy not in ("auto", SERVERS)
    assert ("tf.nn.compute_average_loss(" in new["train.py"]) == divides and ".fit(" not in new["train.py"]


@pytest.mark.parametrize("strategy", [MIRRORED, CENTRAL])
def test_replicas_that_draw_whole_batches(strategy: str, servers: Servers, tmp_path: Path) -> None:
    """Ten batches of 8 for two replicas; their moving averages and a divided evaluation as the Estimator's."""
    parts = {"strategy": strategy, "network": NORMALIZED, "loss": MEAN, "optimizer": MOMENTUM, "driver": ALL}
    text = REPLICAS.format(**parts, count=80, evaluation="")
    new = prove_project({"train.py": text}, "train.py", servers, tmp_path, loop="custom")
    assert "loop.own_batches(" in new["train.py"] and ".fit(" not in new["train.py"]


def test_cores_of_a_tpu(servers: Servers, tmp_path: Path) -> None:
    """Two cores divide the batches and make three steps in one call, then two; the stand-in has two virtual CPUs."""
    total = (
        'tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)) / params["batch_size"]'
    )
    text = ON_TPU.format(network=NATIVE, spec="").replace(total, "tf.losses.sigmoid_cross_entropy(labels, logits)")
    new = prove_project({"train.py": text}, "train.py", servers, tmp_path, loop="custom", tpu_cores=2)
    assert "TrainingLoop(model, steps_per_call=3)" in new["train.py"] and ".fit(" not in new["train.py"]


def test_steps_that_a_worker_makes_at_a_time(servers: Servers, tmp_path: Path) -> None:
    """Thirteen steps of one worker, in calls of 5, 5 and 3, or of one each: the same weights and slots, bit for bit."""
    driver = PERIODS.replace("config = tf.estimator.RunConfig(", "config = tf.estimator.RunConfig(tf_random_seed=3, ")
    driver = driver.replace("checkpoints_steps=5", "checkpoints_steps=13").replace("max_steps=10", "max_steps=13")
    new = run(PROGRAM.format(**SQUARES, driver=driver), SERVERS, loop="custom")[0]
    assert "tf.random.set_seed(3)" in new
    new = new.replace("tf.random.set_seed(3)", "tf.keras.utils.set_random_seed(3)")  # also what layers start with
    found = {}
    for several in (1, 5):
        folder = tmp_path / str(several)
        folder.mkdir()
        text = new.replace("/tmp/own_loop", f"{folder}/model")
        changed = text.replace("steps_per_call=5", f"steps_per_call={several}")
        assert several == 5 or changed != text
        values = "[value.numpy() for value in [*model.weights, *model.optimizer.variables()]]"
        script = folder / "train.py"
        script.write_text(f"{changed}\nnp.savez({str(folder / 'found.npz')!r}, *{values})\n")
        shape = ClusterShape.parse("chief=1,worker=1,ps=2", coordinated=True)
        outcome = servers[1].run(Launch("migrated", script, (), shape, folder / "run", total_timeout=300.0))
        assert outcome.failure is None, outcome.failure
        with np.load(folder / "found.npz") as archive:
            assert max(int(value) for value in archive.values() if value.dtype == np.int64) == 13  # steps counted
            found[several] = [hashlib.sha256(archive[name].tobytes()).hexdigest() for name in sorted(archive.files)]
    assert len(found[5]) > 10 and found[1] == found[5]
