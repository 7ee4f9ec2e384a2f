"""`verify` of programs that keep their code and run it on a support file: what trains there is recorded and judged."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from migrator.harness import session
from migrator.migrate import Options, migrate
from migrator.source.reading import Source, read
from tests.end_to_end.proving import told
from tests.fixture_cases import load_cases

#: Fixtures of TensorFlow 1, by name.
FIXTURES = {
    case.name: case for case in load_cases() if not (case.tensorflow2 or case.keras != "2" or case.tpu_cores > 1)
}

pytestmark = pytest.mark.tensorflow

PROGRAM = """\
import numpy as np
import tensorflow as tf


class Damped(tf.train.Optimizer):
    def __init__(self, rate):
        super(Damped, self).__init__(False, "Damped")
        self.learning_rate = rate

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        moves = []
        for gradient, variable in grads_and_vars:
            with tf.variable_scope(variable.op.name):
                m = tf.get_variable("damped_m", variable.shape, trainable=False, initializer=tf.zeros_initializer())
            new = 0.9 * m + gradient
            moves += [m.assign(new), variable.assign_sub(self.learning_rate * new)]
        return tf.group(*(moves + [global_step.assign_add(1)]), name=name)


def data():
    random = np.random.RandomState(0)
    x = random.normal(size=(64, 4)).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, x.sum(1, keepdims=True)))


def train_input_fn():
    return data().shuffle(64).repeat().batch(8)


def model_fn(features, labels, mode, params):
    training = mode == tf.estimator.ModeKeys.TRAIN
    with tf.variable_scope("net", partitioner=None if params["own"] else tf.fixed_size_partitioner(2)):
        w = tf.get_variable("w", [4, 6])
    net = tf.layers.batch_normalization(tf.matmul(features["x"], w), momentum=0.5, training=training)
    net = tf.layers.dropout(net, 0.3, training=training)
    out = tf.layers.dense(net, 1, kernel_regularizer=tf.keras.regularizers.l2(0.01))
    loss = tf.losses.mean_squared_error(labels, out) + tf.losses.get_regularization_loss()
    if not training:
        metrics = {"mae": tf.metrics.mean_absolute_error(labels, out)}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    optimizer = Damped(0.02) if params["own"] else tf.train.AdamOptimizer(0.02)
    weights = tf.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, weights), 0.5)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.apply_gradients(zip(gradients, weights), global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimators = [tf.estimator.Estimator(model_fn, params={"own": OWN}, config=tf.estimator.RunConfig(tf_random_seed=3))]
spec = tf.estimator.TrainSpec(train_input_fn, max_steps=12)
print(tf.estimator.train_and_evaluate(estimators[0], spec, tf.estimator.EvalSpec(lambda: data().batch(16))))
"""


REPLICAS = """\
import numpy as np
import tensorflow as tf


def data():
    x = np.random.RandomState(7).normal(size=(80, 4)).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, x[:, :1] - 0.5 * x[:, 1:2]))


def input_fn():
    return data().shuffle(80).batch(8).repeat()


def model_fn(features, labels, mode):
    net = tf.layers.dense(features["x"], 8)
    net = tf.layers.batch_normalization(net, momentum=0.5, training=mode == tf.estimator.ModeKeys.TRAIN)
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(tf.nn.relu(net), 1))
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    gradients, weights = zip(*optimizer.compute_gradients(loss))
    gradients, _ = tf.clip_by_global_norm(gradients, 0.5)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.apply_gradients(zip(gradients, weights), tf.train.get_or_create_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


config = tf.estimator.RunConfig(train_distribute=STRATEGY)
estimator = tf.estimator.Estimator(model_fn, config=config)
train_spec = tf.estimator.TrainSpec(input_fn, max_steps=STEPS)
tf.estimator.train_and_evaluate(estimator, train_spec, tf.estimator.EvalSpec(lambda: data().batch(8)))
"""
MIRRORED = REPLICAS.replace("STRATEGY", 'tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])').replace("STEPS", "5")
WORKERS = REPLICAS.replace("STRATEGY", "tf.distribute.experimental.MultiWorkerMirroredStrategy()")
# Gradients this small are never clipped: a loss that the workers do not share shows in them.
WORKERS = WORKERS.replace("STEPS", "10").replace("gradients, 0.5", "gradients, 50.0")

SERVERS = """\
import numpy as np
import tensorflow as tf


def data():
    random = np.random.RandomState(7)
    x = random.normal(size=(48, 4)).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": x, "word": random.randint(9, size=48)}, x[:, :1] * 0.5))


def model_fn(features, labels, mode):
    with tf.variable_scope("net", partitioner=tf.fixed_size_partitioner(2)):
        table = tf.get_variable("table", [9, 4])
        net = tf.layers.dense(features["x"], 6, name="hidden")
    net = tf.layers.batch_normalization(net, momentum=0.5, training=mode == tf.estimator.ModeKeys.TRAIN)
    words = tf.nn.embedding_lookup(table, features["word"], partition_strategy="div")
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(tf.concat([net, words], 1), 1))
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss)
    step = tf.train.get_global_step()
    train = tf.train.MomentumOptimizer(tf.train.exponential_decay(0.1, step, 2, 0.9), 0.9).minimize(loss, step)
    train_op = tf.group(train, *tf.get_collection(tf.GraphKeys.UPDATE_OPS))
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn, "/tmp/of_bridges_on_servers")
train_spec = tf.estimator.TrainSpec(lambda: data().batch(8))
tf.estimator.train_and_evaluate(estimator, train_spec, tf.estimator.EvalSpec(lambda: data().batch(16)))
"""
ON_SERVERS = "chief=1,worker=1,ps=2"


def bridged(text: str, folder: Path) -> tuple[Path, Path]:
    """The original and the bridged program, written into a folder."""
    original, new = folder / "original.py", folder / "new.py"
    original.write_text(text, encoding="utf-8")
    source = Source(new, text.encode(), text, "utf-8", False)
    for made in migrate([source], Options(style="bridge")):
        made.source.path.write_text(made.text, encoding="utf-8")
    assert (folder / "keras_estimator.py").exists()
    return original, new


def judged(original: Path, new: Path, opened: session.Session, **options: Any) -> dict[str, Any]:
    return session.verify(session.make_case(original, new, **options), session=opened).document


@dataclass(frozen=True)
class Recorded:
    """An original with its bridged program, and what is known of it: several programs are compared with that."""

    case: session.Case
    opened: session.Session
    evidence: session.OriginalEvidence

    def judged(self, new: Path | None = None) -> dict[str, Any]:
        """The report on the bridged program, or on another one."""
        case = self.case if new is None else replace(self.case, migrated=new)
        return session.verify(case, session=self.opened, evidence=self.evidence).document

    def spoiled(self, folder: Path, name: str, old: str, new: str) -> Path:
        """The bridged program in a folder of its own, with other words in one of its files."""
        for file in ("new.py", "keras_estimator.py"):
            shutil.copyfile(self.case.migrated.with_name(file), folder / file)
        text = (folder / name).read_text(encoding="utf-8")
        assert old in text
        (folder / name).write_text(text.replace(old, new), encoding="utf-8")
        return folder / "new.py"


def recorded(text: str, opened: session.Session, folder: Path, **options: Any) -> Recorded:
    case = session.make_case(*bridged(text, folder), **options)
    return Recorded(case, opened, session.collect_original(opened, case, lambda _: None, replicates=1))


@pytest.fixture(scope="module")
def adam(session_for: Callable[[int], session.Session], tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return recorded(PROGRAM.replace("OWN", "False"), session_for(2), tmp_path_factory.mktemp("adam"))


@pytest.fixture(scope="module")
def workers(session_for: Callable[[int], session.Session], tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return recorded(WORKERS, session_for(2), tmp_path_factory.mktemp("workers"), cluster="worker=2")


def assert_bridged(report: dict[str, Any]) -> None:
    """Shuffled batches are replayed to it, evaluations are made with the original's weights, too."""
    assert report["verdict"] == "EQUIVALENT", told(report)
    levels = {level["id"]: level["status"] for level in report["levels"]}
    assert {levels[name] for name in ("L0b", "L1", "L2", "L3", "L4", "L5", "L7")} == {"EQUIVALENT"}


def test_a_bridged_program_is_equivalent(adam: Recorded) -> None:
    assert_bridged(adam.judged())


def test_an_optimizer_of_its_own_is_equivalent(session_for: Callable[[int], session.Session], tmp_path: Path) -> None:
    assert_bridged(judged(*bridged(PROGRAM.replace("OWN", "True"), tmp_path), session_for(2)))


def assert_replayed(report: dict[str, Any]) -> None:
    """Each replica is given its own batches, in the order of the original; averages that each has are compared."""
    assert report["verdict"] == "EQUIVALENT", told(report)
    levels = {level["id"]: level for level in report["levels"]}
    assert {levels[name]["status"] for name in ("L0b", "L1", "L2", "L3", "L4", "L5")} == {"EQUIVALENT"}
    assert "replay" in levels["L2"]["summary"]


def test_batches_of_two_workers_are_replayed(workers: Recorded) -> None:
    assert_replayed(workers.judged())


@pytest.mark.parametrize(
    ("program", "options"),
    [(MIRRORED, {"devices": 2}), (WORKERS, {"cluster": "worker=2,evaluator=1"})],
    ids=["mirrored", "evaluator"],
)
def test_batches_of_replicas_are_replayed(
    program: str, options: dict[str, Any], session_for: Callable[[int], session.Session], tmp_path: Path
) -> None:
    assert_replayed(judged(*bridged(program, tmp_path), session_for(2), **options))


@pytest.mark.parametrize("order", ["as they are", "random"])
def test_a_bridged_program_on_servers_is_equivalent(
    order: str, session_for: Callable[[int], session.Session], tmp_path: Path
) -> None:
    """Divided variables, trainers of which each reads its data once, alone and in a fixed order, and an evaluator.

    Of a random order that many runs would have to show, only this is said: batches are replayed to each worker.
    """
    text = SERVERS if order == "as they are" else SERVERS.replace("data().batch(8)", "data().shuffle(48).batch(8)")
    report = judged(*bridged(text, tmp_path), session_for(2), cluster=ON_SERVERS + ",evaluator=1")
    levels = {level["id"]: level for level in report["levels"]}
    found = {levels[name]["status"] for name in ("L0", "L0b", "L1", "L3", "L4", "L5", "L5s", "L7")}
    assert found == {"EQUIVALENT"}, told(report)
    assert "3 split into 6 shards alike" in levels["L1"]["summary"]
    if order == "as they are":
        assert report["verdict"] == "EQUIVALENT", told(report)


def test_a_wrong_rate_on_servers_is_different(session_for: Callable[[int], session.Session], tmp_path: Path) -> None:
    original, new = bridged(SERVERS, tmp_path)
    text = new.read_text(encoding="utf-8")
    assert "exponential_decay(0.1, step, 2, 0.9)" in text
    new.write_text(text.replace("exponential_decay(0.1, step, 2", "exponential_decay(0.1, step, 3"), encoding="utf-8")
    report = judged(original, new, session_for(2), cluster="chief=1,ps=2")
    assert report["verdict"] == "DIFFERENT", told(report)


def test_workers_that_do_not_share_the_loss_are_different(workers: Recorded, tmp_path: Path) -> None:
    """The gradients of two workers are added up, where the optimizer does not divide the loss by two."""
    old = "strategy._scale_loss_for_estimator = strategy._scale_loss_for_estimator, True"
    new = workers.spoiled(tmp_path, "keras_estimator.py", old, old.replace("True", "False"))
    report = workers.judged(new)
    assert report["verdict"] == "DIFFERENT", told(report)
    assert next(level["id"] for level in report["levels"] if level["status"] == "DIFFERENT") == "L4"


def test_a_wrong_support_file_is_different(adam: Recorded, tmp_path: Path) -> None:
    """The updates of the moving averages are lost."""
    old = "tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS))"
    report = adam.judged(adam.spoiled(tmp_path, "new.py", old, "tf.control_dependencies([])"))
    assert report["verdict"] == "DIFFERENT", told(report)


@pytest.mark.parametrize(
    "name",
    [
        *("classifier", "mirrored_replicas"),
        *("in_process_cluster", "multi_worker_mirrored", "multi_worker_sharded", "parameter_server_fixed_shards"),
        *("parameter_server_max_size", "parameter_server_min_size", "partitioned_embedding", "two_files"),
        "wide_and_deep",
    ],
)
def test_a_fixture_on_the_bridge_is_equivalent(
    name: str, session_for: Callable[[int], session.Session], tmp_path: Path
) -> None:
    case = FIXTURES[name]
    place = case.original.parent if case.script else case.original
    files = sorted(place.glob("*.py")) if place.is_dir() else [place]
    new = tmp_path / "new" / case.original.name
    new.parent.mkdir()
    sources = [source for source in map(read, files) if isinstance(source, Source)]
    for made in migrate(sources, Options(style="bridge")):
        (new.parent / made.source.path.name).write_text(made.text, encoding="utf-8")
    assert "keras_estimator" in new.read_text(encoding="utf-8")
    asked = session.make_case(case.original, new, args=case.args, devices=case.devices or 1, cluster=case.cluster)
    report = session.verify(asked, session=session_for(2)).document
    assert report["verdict"] == "EQUIVALENT", told(report)
