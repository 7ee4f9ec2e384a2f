"""Several optimizers, one of some variables, and sums of gradients train to the numbers of the originals."""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np
import pytest

from migrator.harness.cluster import ClusterShape, Launch
from tests.end_to_end.proving import Servers, losses, prove, record
from tests.rules.programs import run_project

pytestmark = pytest.mark.tensorflow

_PROGRAM = """
import numpy as np
import tensorflow as tf


def input_fn():
    random = np.random.RandomState(3)
    words = random.randint(0, 12, size=(24, 5)).astype(np.int64)
    values = random.normal(size=(24, 3)).astype(np.float32)
    labels = (words[:, :1] % 3 + values[:, :1] > 1.0).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({{"words": words, "values": values}}, labels)).batch(4)


def model_fn(features, labels, mode):
    training = mode == tf.estimator.ModeKeys.TRAIN
    with tf.variable_scope("linear"):
        weights = tf.get_variable("weights", [12, 1], initializer=tf.random_normal_initializer(0.0, 0.1))
        wide = tf.reduce_sum(tf.nn.embedding_lookup(weights, features["words"]), 1)
    # With variables of TensorFlow 1 one optimizer's update races with the gradients of the other.
    with tf.variable_scope("dnn", use_resource=True):
        net = tf.layers.dense(features["values"], 8, use_bias=False, name="first")
        net = tf.nn.relu(tf.layers.batch_normalization(net, training=training, momentum=0.9))
        deep = tf.layers.dense(net, 1, name="last")
    loss = tf.losses.sigmoid_cross_entropy(labels, wide + deep)
    step = tf.train.get_or_create_global_step()
{training}
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=5)
"""
_UPDATES = "tf.get_collection(tf.GraphKeys.UPDATE_OPS)"
TRAININGS = {
    "Ftrl on the wide part, Adagrad on the deep one": f"""
        train_ops = []
        for_wide = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="linear")
        train_ops.append(tf.train.FtrlOptimizer(0.2, l1_regularization_strength=0.01).minimize(loss, var_list=for_wide))
        deep_optimizer = tf.train.AdagradOptimizer(0.1)
        with tf.control_dependencies({_UPDATES}):
            train_ops.append(deep_optimizer.minimize(loss, var_list=tf.trainable_variables("dnn")))
        train_op = tf.group(*train_ops)
        with tf.control_dependencies([train_op]):
            train_op = tf.assign_add(step, 1)
    """,
    "a rate that falls for the last layer, Adam and momentum for others": f"""
        last, others = [], []
        for v in tf.trainable_variables():
            if "dnn/last" in v.name:
                last.append(v)
            elif "linear" not in v.name:
                others.append(v)
        rate = tf.train.exponential_decay(0.3, step, 2, 0.5)
        with tf.control_dependencies({_UPDATES}):
            one = tf.train.GradientDescentOptimizer(rate).minimize(loss, step, var_list=last)
            two = tf.train.AdamOptimizer(0.05).minimize(loss, var_list=others)
        some = [v for v in tf.trainable_variables() if v.name.startswith("linear/")]
        three = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, var_list=some)
        train_op = tf.group(one, two, three)
    """,
    "a head that is trained alone, clipped by the norm of its gradients": f"""
        head = tf.trainable_variables("dnn/(last|batch)")
        optimizer = tf.train.AdamOptimizer(0.05)
        with tf.control_dependencies({_UPDATES}):
            gradients, variables = zip(*optimizer.compute_gradients(loss, var_list=head))
            gradients, _ = tf.clip_by_global_norm(gradients, 0.05)
            train_op = optimizer.apply_gradients(zip(gradients, variables), global_step=step)
    """,
}


def program(training: str) -> str:
    return _PROGRAM.format(training=textwrap.indent(textwrap.dedent(training).strip("\n"), "    ")).lstrip()


@pytest.mark.parametrize("name", TRAININGS)
def test_trains_the_same(name: str, servers: Servers, tmp_path: Path) -> None:
    text = program(TRAININGS[name])
    prove(text, servers, tmp_path, style="bridge")
    if name.startswith("Ftrl"):
        all_by_one(text, servers, tmp_path)


def all_by_one(text: str, servers: Servers, tmp_path: Path) -> None:
    """A wrong migration, one optimizer for all variables, is seen in the second loss."""
    new = (tmp_path / "migrated" / "train.py").read_text(encoding="utf-8")
    wrong = new.replace(
        "tf.train.FtrlOptimizer(0.2, l1_regularization_strength=0.01)", "tf.train.AdagradOptimizer(0.1)"
    )
    wrong = wrong.replace(
        "tf.compat.v1.train.FtrlOptimizer(0.2, l1_regularization_strength=0.01)",
        "tf.compat.v1.train.AdagradOptimizer(0.1)",
    )
    assert wrong != new
    script = tmp_path / "migrated" / "wrong.py"
    script.write_text(wrong, encoding="utf-8")
    initial = tmp_path / "initial.npz"
    found = losses(record(servers[1], "migrated", script, tmp_path / "wrong-run", initial))
    right = losses(record(servers[1], "migrated", tmp_path / "migrated" / "train.py", tmp_path / "again", initial))
    assert found[0] == pytest.approx(right[0], rel=1e-6)
    assert np.abs(found[1] / right[1] - 1.0) > 1e-3


_SUMS = """
    optimizer = {optimizer}
    variables = tf.trainable_variables()
    sums = [
        tf.get_variable(v.op.name + "/sum", v.shape, initializer=tf.zeros_initializer(), trainable=False)
        for v in variables
    ]
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        pairs = optimizer.compute_gradients({minimized}, variables)
        add = [total.assign_add(g) for total, (g, _) in zip(sums, pairs)]

    def apply_and_clear():
        apply = optimizer.apply_gradients([({total}, v) for total, v in zip(sums, variables)])
        with tf.control_dependencies([apply]):
            return tf.group(*[total.assign(tf.zeros_like(total)) for total in sums])

    with tf.control_dependencies(add):
        update = tf.cond(tf.equal({step} % 3, 0), apply_and_clear, tf.no_op)
    with tf.control_dependencies([update]):
        train_op = tf.assign_add(step, 1)
"""

_START = """\
def start(shape, dtype=None, partition_info=None):
    size = int(np.prod(shape))
    return tf.constant(np.random.RandomState(size).normal(scale=0.5, size=size).reshape(shape).astype(np.float32))


"""
_TELL = """
import sys

names = [n for n in estimator.get_variable_names() if n != "checkpoint_initialized"]
np.savez(sys.argv[1], **{n: estimator.get_variable_value(n) for n in names})
"""


@pytest.mark.parametrize(
    ("optimizer", "minimized", "total", "step"),
    [
        ("tf.train.AdamOptimizer(0.05)", "loss", "total / 3.0", "(step + 1)"),
        ("tf.train.MomentumOptimizer(0.1, 0.9)", "loss / 3.0", "total", "step"),
    ],
)
def test_sums_of_gradients_train_the_same(
    optimizer: str, minimized: str, total: str, step: str, servers: Servers, tmp_path: Path
) -> None:
    training = _SUMS.format(optimizer=optimizer, minimized=minimized, total=total, step=step)
    text = program(training).replace(".batch(4)", ".repeat(2).batch(4)").replace("steps=5", "steps=9")
    # The same weights at the start of both, and the weights at the end instead of a recording.
    text = text.replace("tf.random_normal_initializer(0.0, 0.1)", "None")
    start = "    training = mode == tf.estimator.ModeKeys.TRAIN\n"
    seeded = "    tf.get_variable_scope().set_initializer(start)\n"
    text = text.replace(start, seeded + start, 1).replace("def model_fn", _START + "def model_fn") + _TELL
    results = run_project({"train.py": text}, style="bridge")
    found = []
    for server, kind, files in (
        (servers[0], "original", {"train.py": text}),
        (servers[1], "migrated", {name: new for name, (new, _) in results.items()}),
    ):
        folder = tmp_path / kind
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_text(content, encoding="utf-8")
        run = tmp_path / f"{kind}-run"
        run.mkdir()
        launch = Launch(kind, folder / "train.py", (str(folder / "told.npz"),), ClusterShape.parse(""), run)
        outcome = server.run(launch)
        assert outcome.failure is None, outcome.failure
        with np.load(folder / "told.npz") as archive:
            found.append({name: archive[name] for name in archive.files})
    assert found[0].keys() == found[1].keys() and found[0]["global_step"] == 9
    for name, value in found[0].items():
        np.testing.assert_allclose(found[1][name], value, rtol=1e-4, atol=1e-6, err_msg=name)
