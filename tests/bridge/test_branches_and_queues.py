"""Gradients that a branch of a condition asks for, and input functions that read queues: as on TensorFlow 1."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bridge.sides import run_both, run_new

pytestmark = pytest.mark.tensorflow
MODULES = ("specs", "config", "estimator", "training")

BRANCHES = """
x = np.linspace(-1, 1, 32).reshape(8, 4).astype(np.float32)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(x).repeat().batch(4)


def model_fn(features, labels, mode, params):
    with tf.variable_scope("made"):
        made = tf.matmul(features, tf.get_variable("w", [4, 4], initializer=tf.constant_initializer(0.1)))
    with tf.variable_scope("judged"):
        table = tf.get_variable("table", [3, 4], initializer=tf.constant_initializer(0.2))
        weights = tf.nn.embedding_lookup(table, [0, 2, 0])
        judged = tf.reduce_mean(tf.square(tf.matmul(made, weights, transpose_b=True) - 1.0))
    if mode == "eval":
        return est.EstimatorSpec(mode, loss=judged)
    step = tf.train.get_global_step()
    makes, judges = tf.train.GradientDescentOptimizer(0.1), tf.train.MomentumOptimizer(0.1, 0.9)
    own, others = tf.trainable_variables("made"), tf.trainable_variables("judged")

    def make():
        grads = tf.gradients(judged, own)
        return makes.apply_gradients([(-tf.clip_by_norm(g, 0.5), v) for g, v in zip(grads, own)], step)

    turn = tf.equal(tf.floormod(step, 3), 2)
    train_op = tf.cond(turn, make, lambda: judges.minimize(judged, step, var_list=others))
    return est.EstimatorSpec(mode, loss=judged, train_op=train_op)


one = est.Estimator(model_fn, FOLDER + "/branches" + sys.argv[1])
one.train(input_fn, steps=7)
found["loss"] = float(one.evaluate(input_fn, steps=2)["loss"])
found["weights"] = {n: one.get_variable_value(n) for n in ("made/w", "judged/table", "judged/table/Momentum")}
"""

QUEUES = """
path = FOLDER + "/data" + sys.argv[1]
with tf.python_io.TFRecordWriter(path) as writer:
    for i in range(10):
        feature = tf.train.Feature(float_list=tf.train.FloatList(value=[i / 10.0, 1.0]))
        writer.write(tf.train.Example(features=tf.train.Features(feature={"x": feature})).SerializeToString())


def records(epochs=None):
    names = tf.train.string_input_producer([path], num_epochs=epochs, shuffle=False)
    _, text = tf.TFRecordReader().read(names)
    x = tf.parse_single_example(text, {"x": tf.FixedLenFeature([2], tf.float32)})["x"]
    return {"x": tf.train.batch([x], 4, allow_smaller_final_batch=True)}, None


def slices(epochs=None):
    values = np.arange(12, dtype=np.float32).reshape(6, 2) / 10
    return {"x": tf.train.batch(tf.train.slice_input_producer([values], epochs, shuffle=False), 3)}, None


def model_fn(features, labels, mode):
    y = tf.layers.dense(features["x"], 1, kernel_initializer=tf.ones_initializer(), name="d")
    if mode == "infer":
        return est.EstimatorSpec(mode, predictions={"y": y})
    loss = tf.reduce_mean(tf.square(y - 3.0))
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return est.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops={"mean": tf.metrics.mean(y)})


for name, read in (("records", records), ("slices", slices)):
    one = est.Estimator(model_fn, FOLDER + "/" + name + sys.argv[1])
    one.train(read, steps=4)
    one.train(lambda: read(3))  # until the queues are closed
    found[name] = {key: float(value) for key, value in one.evaluate(lambda: read(1)).items()}
    found[name + " predicted"] = [float(each["y"][0]) for each in one.predict(lambda: read(1))]
"""

BROKEN = """
def input_fn():
    def read(at):
        if at > 6:
            raise ValueError("no such row")
        return np.float32([at])

    row = tf.train.slice_input_producer([np.arange(9)], shuffle=False)[0]
    x = tf.py_func(read, [row], tf.float32)
    x.set_shape([1])
    return tf.train.batch([x], 2), None


def model_fn(features, labels, mode):
    loss = tf.reduce_mean(tf.layers.dense(features, 1))
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return est.EstimatorSpec(mode, loss=loss, train_op=train_op)


try:
    est.Estimator(model_fn, FOLDER + "/broken").train(input_fn, steps=20)
except Exception as error:
    found["error"] = str(error)
"""


def test_branches_ask_for_gradients_of_a_loss_from_before(tmp_path: Path) -> None:
    old, new = run_both(BRANCHES, tmp_path, MODULES)
    assert new["loss"] == pytest.approx(old["loss"], rel=1e-5)
    for name, values in old["weights"].items():
        for row, other in zip(new["weights"][name], values, strict=True):
            assert row == pytest.approx(other, rel=1e-5, abs=1e-7), name


def test_queues_are_filled_to_their_end(tmp_path: Path) -> None:
    old, new = run_both(QUEUES, tmp_path, MODULES)
    assert old["records"]["global_step"] == 4 + 8 and old["slices"]["global_step"] == 4 + 6
    assert old.keys() == new.keys()
    for name, values in old.items():
        assert new[name] == pytest.approx(values, rel=1e-5), name


def test_what_fails_while_a_queue_is_filled_ends_the_training(tmp_path: Path) -> None:
    assert "no such row" in run_new(BROKEN, tmp_path, MODULES)["error"]
