"""Optimizers of tf.contrib.opt: steps, slots and names of TensorFlow 1.15.5."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bridge.sides import TENSORFLOW1, run_new, run_old
from tests.bridge.test_core import close

pytestmark = pytest.mark.tensorflow

SETUP = """\
    import tensorflow
"""
MODULES = ("contrib_opt", "estimator", "specs")
NOTED = Path(__file__).with_name("noted") / "contrib_opt.json"
PROGRAM = """
opt = tensorflow.contrib.opt if OLD else est
waves = lambda shape: np.sin(np.arange(np.prod(shape)) * 1.3 + 1).reshape(shape).astype("f")


def run(name, optimizer, looks_up=True):
    with tf.Graph().as_default():
        table = tf.get_variable("scope/table", initializer=waves([5, 2]), use_resource=True)
        dense = tf.get_variable("dense", initializer=waves([2, 3]), use_resource=True)
        still = tf.get_variable("still", initializer=tf.zeros([3]), use_resource=True)
        step = tf.train.get_or_create_global_step()
        ids = tf.stack([tf.cast(step, tf.int32) % 4, 2, 2])
        loss = tf.reduce_sum(tf.square(tf.matmul(tf.nn.embedding_lookup(table, ids) if looks_up else table, dense)
                                       + still - 0.3))
        optimizer = optimizer()
        train_op = optimizer.minimize(loss, step)
        found[name + " names"] = sorted(v.name for v in tf.global_variables())
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(4):
                session.run(train_op)
            values = session.run({v.name: v for v in tf.global_variables()})
            found[name] = {key: np.round(np.asarray(value, "d"), 6) for key, value in values.items()}


run("lazy", lambda: opt.LazyAdamOptimizer(0.1))
run("nadam", lambda: opt.NadamOptimizer(0.1, 0.8, epsilon=1e-4, name="mine"))
run("adamax", lambda: opt.AdaMaxOptimizer(0.1, 0.8))
run("lars", lambda: opt.LARSOptimizer(0.5, eeta=0.1, weight_decay=0.01))
run("lars but", lambda: opt.LARSOptimizer(0.1, skip_list=["dense"], use_nesterov=True, epsilon=0.1))


def train(name, optimizer):
    def model_fn(features, labels, mode):
        table = tf.get_variable("table", initializer=waves([5, 2]))
        dense = tf.get_variable("dense", initializer=waves([2, 3]))
        words = tf.nn.embedding_lookup(table, features["ids"])
        loss = tf.reduce_sum(tf.square(tf.matmul(words, dense) - 0.3))
        train_op = optimizer().minimize(loss, tf.train.get_global_step())
        return est.EstimatorSpec(mode, loss=loss, train_op=train_op)

    input_fn = lambda: tf.data.Dataset.from_tensor_slices({"ids": [0, 1, 1, 2, 2, 3]}).batch(3).repeat()
    estimator = est.Estimator(model_fn, os.path.join(FOLDER, sys.argv[1], name))
    # A count of steps: where the data ends, 1.15.5 begins another step, in which Nadam's moments decay.
    estimator.train(input_fn, steps=4)
    estimator.train(input_fn, steps=4)
    found["trained " + name] = {key: estimator.get_variable_value(key) for key in estimator.get_variable_names()}


train("lazy", lambda: opt.LazyAdamOptimizer(0.1))
train("nadam", lambda: opt.NadamOptimizer(0.1))
train("adamax", lambda: opt.AdaMaxOptimizer(0.1))
train("lars", lambda: opt.LARSOptimizer(0.1, eeta=0.1))
faded = lambda step: 1.0 / (1.0 + tf.cast(step, tf.float32))
run_dense = lambda name, optimizer: run(name, optimizer, False)
run_dense("adds", lambda: opt.AddSignOptimizer(0.02, 0.5, 0.8, faded))
run_dense("powers", lambda: opt.PowerSignOptimizer(0.02, 3.0, 0.8))


class Decayed(opt.DecoupledWeightDecayExtension, tf.train.AdagradOptimizer):
    pass


# Gradients that do not depend on variables: TensorFlow 1 does not wait for them before weights decay.
for some in (False, True):
    with tf.Graph().as_default():
        pair = [tf.get_variable(name, initializer=waves([2, 3]), use_resource=True) for name in "ab"]
        gradients = [(tf.constant(waves([2, 3]) + 0.3), one) for one in pair]
        optimizer = Decayed(0.01, learning_rate=0.1)
        train_op = optimizer.apply_gradients(gradients, decay_var_list=pair[:1] if some else None)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(3):
                session.run(train_op)
            found["decays %s" % some] = {v.name: session.run(v) for v in tf.global_variables()}
run("adagrad", lambda: opt.RegAdagradOptimizer(0.1))


def still_slots():
    optimizer = opt.RegAdagradOptimizer(0.005)
    optimizer.minimize = lambda loss, step: minimize_still(optimizer, loss, step)
    return optimizer


def minimize_still(optimizer, loss, step):
    with optimizer.avoid_updating_slots():
        return optimizer.apply_gradients(optimizer.compute_gradients(loss), step)


run("adagrad, still", still_slots)
variable = lambda name: [v for v in tf.global_variables() if name in v.name][0]
run("cut", lambda: opt.VariableClippingOptimizer(
    tf.train.MomentumOptimizer(0.1, 0.9), {variable("table"): [1], variable("dense"): [0]}, 0.7))
run("cut over all", lambda: opt.VariableClippingOptimizer(
    tf.train.GradientDescentOptimizer(0.1), {variable("table"): [0, 1]}, 1.5))
# Without resource variables: TensorFlow 1 has sparse steps for others alone.
train("adds", lambda: opt.AddSignOptimizer(0.02, 1.5))
train("powers", lambda: opt.PowerSignOptimizer(0.02, sign_decay_fn=faded))


def averaged(features, labels, mode):
    kernel = tf.get_variable("kernel", initializer=waves([2, 3]))
    still = tf.get_variable("still", initializer=tf.ones([3]), trainable=False)
    loss = tf.reduce_sum(tf.square(tf.matmul(features["x"], kernel) + still))
    if mode != est.ModeKeys.TRAIN:
        return est.EstimatorSpec(mode, loss=loss, predictions={"sum": tf.reduce_sum(kernel, keepdims=True)})
    optimizer = opt.MovingAverageOptimizer(tf.train.MomentumOptimizer(0.1, 0.9), 0.8, tf.train.get_global_step())
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    scaffold = tf.train.Scaffold(saver=optimizer.swapping_saver())
    return est.EstimatorSpec(mode, loss=loss, train_op=train_op, scaffold=scaffold)


points = lambda: tf.data.Dataset.from_tensor_slices({"x": waves([6, 2])}).batch(2).repeat()
estimator = est.Estimator(averaged, os.path.join(FOLDER, sys.argv[1], "averaged"))
estimator.train(points, steps=3)
estimator.train(points, steps=3)
found["averaged"] = {key: estimator.get_variable_value(key) for key in estimator.get_variable_names()}
found["evaluated with averages"] = estimator.evaluate(points, steps=3)["loss"]
with tf.Graph().as_default(), tf.Session() as session:
    pairs = [(tf.constant([3.0, 4.0]), tf.constant(1.0)), (tf.zeros([2]), tf.constant(2.0))]
    for clip in (2.0, 20.0):
        found["clipped %s" % clip] = session.run(opt.clip_gradients_by_global_norm(pairs, clip))
"""


def test_numbers_noted_from_1_15_5(tmp_path: Path) -> None:
    noted, new = json.loads(NOTED.read_text()), run_new(PROGRAM, tmp_path, MODULES)
    assert not {what: (noted[what], new[what]) for what in noted if not close(noted[what], new[what])}


@pytest.mark.skipif(not TENSORFLOW1, reason="no TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set")
def test_numbers_noted_are_those_of_1_15_5(tmp_path: Path) -> None:
    assert close(json.loads(NOTED.read_text()), run_old(PROGRAM, tmp_path, MODULES, SETUP))
