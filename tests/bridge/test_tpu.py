"""A bridged TPUEstimator on the stand-in for a TPU of two cores: the numbers that the program has without a TPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.bridge.sides import run_both
from tests.bridge.test_core import close

pytestmark = pytest.mark.tensorflow

MODULES = ("specs", "config", "estimator", "training", "tpu")
INSIDE = Path(__file__).parents[2] / "migrator" / "harness" / "inside"
PROGRAM = """
import re, types
tpu = tf.estimator.tpu if OLD else est
config_class = tf.estimator.tpu.RunConfig if OLD else est.TPURunConfig
sharded = (lambda optimizer: optimizer) if OLD else est.CrossShardOptimizer
if not OLD:
    import tensorflow as tf2
    initialize = tf2.tpu.experimental.initialize_tpu_system
    sys.path.insert(0, {inside!r})
    import tpu_stand_in
    tpu_stand_in.install({{"tpu_cores": 2}}, types.SimpleNamespace(write_json=lambda *args: None), "migrated")
x = np.random.RandomState(0).normal(size=(64, 4)).astype(np.float32)
y = (x[:, :1] > 0).astype(np.float32)
cores = 1 if OLD else 2


def kernel(*shape):
    return tf.constant_initializer(np.sin(np.arange(np.prod(shape))).reshape(shape).astype(np.float32))


class Own(tf.train.Optimizer):
    def __init__(self, rate):
        super().__init__(False, "Own")
        self.rate = rate

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        updates = []
        for gradient, variable in grads_and_vars:
            name = re.match("^(.*):\\\\d+$", variable.name).group(1)
            m = tf.get_variable(name + "/m", variable.shape, trainable=False, initializer=tf.zeros_initializer())
            following = 0.9 * m + 0.1 * gradient
            updates += [variable.assign(variable - self.rate * following), m.assign(following)]
        return tf.group(*updates)


class Clipping(tf.train.Optimizer):
    def __init__(self, optimizer):
        super().__init__(False, "Clipping")
        self.optimizer = optimizer

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        clipped = [(tf.clip_by_norm(gradient, 0.5), variable) for gradient, variable in grads_and_vars]
        return self.optimizer.apply_gradients(clipped, global_step)


def model_fn(features, labels, mode, params):
    assert features["x"].shape.as_list()[0] in (8 // cores, None) and params["batch_size"] == 8 // cores
    assert params["use_tpu"] is (not OLD)
    small = tf.keras.regularizers.l2(0.01)
    with tf.variable_scope("net", regularizer=lambda w: 0.03 * tf.reduce_sum(w * w)):
        net = tf.matmul(features["x"], tf.get_variable("w", initializer=np.eye(4, dtype=np.float32)))
    hidden = tf.layers.dense(net, 5, tf.nn.relu, kernel_initializer=kernel(4, 5), kernel_regularizer=small)
    out = tf.layers.dense(hidden, 1, kernel_initializer=kernel(5, 1))
    if mode == "infer":
        return tpu.TPUEstimatorSpec(mode, predictions={{"out": out, "x": features["x"]}})
    loss = tf.losses.mean_squared_error(labels, out) + tf.losses.get_regularization_loss()
    if mode == "eval":
        metrics = lambda y, out: {{"mean": tf.metrics.mean(out), "auc": tf.metrics.auc(y, tf.nn.sigmoid(out))}}
        return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metrics, {{"y": labels, "out": out}}))
    step = tf.train.get_or_create_global_step()
    tf.get_variable("never", [], trainable=False, initializer=tf.zeros_initializer()).assign_add(1.0)
    counted = tf.reshape(step, [1])
    with tf.control_dependencies([counted]):  # what is not ordered is read before the update, or after it
        rate = tf.train.exponential_decay(0.1, step, 3, 0.9)
    if params["kind"] == "momentum":
        train_op = sharded(tf.train.MomentumOptimizer(rate, 0.9)).minimize(loss, step)
    elif params["kind"] == "clipping":
        train_op = sharded(Clipping(tf.train.AdagradOptimizer(rate))).minimize(loss, step)
    else:  # as BERT's: gradients that nobody divides by the number of cores, and a step that is assigned
        gradients = tf.tuple(tf.gradients(loss / cores, tf.trainable_variables()))  # all of them before an update
        update = sharded(Own(rate)).apply_gradients(zip(gradients, tf.trainable_variables()))
        with tf.control_dependencies([update] if OLD else []):
            train_op = tf.group(update, [step.assign(step + 1)])

    def host(steps, losses):
        return tf.py_func(lambda *values: seen.append([float(np.mean(one)) for one in values]), [steps, losses], [])

    def scaffold():  # weights to begin with, as programs for TPUs find them
        folder = os.path.join(FOLDER, sys.argv[1] + "momentum")
        tf.train.init_from_checkpoint(folder, {{"dense/kernel": "dense/kernel"}})
        return tf.train.Scaffold()

    scaffold_fn = scaffold if params["kind"] == "own" else None
    call = (host, [counted, tf.reshape(loss, [1])])
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, host_call=call, scaffold_fn=scaffold_fn)


class Losses(tf.train.SessionRunHook):
    def before_run(self, context):
        return tf.train.SessionRunArgs(tf.get_collection("losses")[-1])

    def after_run(self, context, values):
        losses.append(values.results)


def data(params):
    return tf.data.Dataset.from_tensor_slices(({{"x": x}}, y)).batch(params["batch_size"], drop_remainder=True)


def uneven(params):
    return tf.data.Dataset.from_tensor_slices({{"x": x[:21]}}).batch(params["batch_size"])


kinds = tpu.InputPipelineConfig
for kind, given in ("momentum", kinds.PER_HOST_V1), ("clipping", kinds.PER_HOST_V2), ("own", kinds.PER_HOST_V2):
    seen, losses = [], []
    master = {{}} if OLD else {{"master": "grpc://a.tpu"}}
    config = config_class(tpu_config=tpu.TPUConfig(2, per_host_input_for_training=given), **master)
    sizes = {{name + "_batch_size": 8 for name in ("train", "eval", "predict")}}
    folder = os.path.join(FOLDER, sys.argv[1] + kind)
    estimator = tpu.TPUEstimator(model_fn, folder, config, {{"kind": kind}}, use_tpu=not OLD, **sizes)
    estimator.train(lambda params: data(params).repeat(), max_steps=8, hooks=[Losses()])
    found["losses " + kind] = losses
    estimator.train(lambda params: data(params).repeat(), max_steps=30)
    found["weights " + kind] = {{one: estimator.get_variable_value(one) for one in estimator.get_variable_names()}}
    if kind == "momentum":
        found["host call"] = sorted(seen)
        found["evaluation"] = estimator.evaluate(data, steps=8)
        predictions = list(estimator.predict(uneven))
        found["predictions"] = {{key: [one[key] for one in predictions] for key in ("out", "x")}}
if not OLD:  # a TPU that is not there
    tf2.tpu.experimental.initialize_tpu_system = initialize
    try:
        est.TPUEstimator(model_fn, train_batch_size=8).train(data, steps=1)
    except RuntimeError as error:
        found["no TPU"] = str(error)
"""


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    return run_both(PROGRAM.format(inside=str(INSIDE)), tmp_path_factory.mktemp("tpu"), MODULES)


KINDS = ("momentum", "clipping", "own")
FOUND = [*(f"{what} {kind}" for kind in KINDS for what in ("losses", "weights")), "host call", "evaluation"]


@pytest.mark.parametrize("what", [*FOUND, "predictions"])
def test_two_cores_train_as_one_device_does(what: str, sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    old, new = sides
    assert close(old[what], new[what]), f"{old[what]}\n{new[what]}"
    assert old[what]


def test_what_is_compared_is_a_training(sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    new = sides[1]
    assert len(new["losses own"]) == 8 and new["losses own"][:5] != new["losses momentum"][:5]
    assert len(new["host call"]) == 30 and len(new["predictions"]["x"]) == 21
    assert new["weights momentum"]["never"] == 0  # no update is asked for it


def test_without_a_tpu_it_is_said(sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    assert sides[1]["no TPU"].startswith("There is no TPU at ''. ") and "use_tpu=False" in sides[1]["no TPU"]
