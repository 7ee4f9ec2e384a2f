"""Programs that differ in what surrounds the model_fn: input functions, hooks, RunConfig, drivers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.proving import Servers, prove, prove_project

pytestmark = pytest.mark.tensorflow

PROGRAM = """\
import numpy as np
import tensorflow as tf

random = np.random.RandomState(4)
x = random.normal(size=(40, 6)).astype(np.float32)
y = x.sum(axis=1, keepdims=True) / 6

{inputs}

def model_fn(features, labels, mode, params):
    net = tf.layers.dense(features{entry}, 4, tf.nn.tanh)
    logits = tf.layers.dense(net, 1)
    loss = tf.losses.mean_squared_error(labels, logits)
    {model}
    optimizer = tf.train.GradientDescentOptimizer(0.05)
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


{driver}
"""
SLICES = "def input_fn():\n    return tf.data.Dataset.from_tensor_slices((x, y)).batch(8)\n"
ESTIMATOR = "estimator = tf.estimator.Estimator(model_fn, params={'size': 8}{config})\n"
TRAIN = "estimator.train({input_fn}, steps=5{more})\nestimator.evaluate({evaluated})"


def case(
    inputs: str = SLICES,
    input_fn: str = "input_fn",
    evaluated: str = "input_fn",
    config: str = "",
    more: str = "",
    before: str = "",
    driver: str = TRAIN,
    model: str = "",
    entry: str = "",
) -> str:
    lines = (
        before
        + ESTIMATOR.replace("{config}", config)
        + driver.format(input_fn=input_fn, evaluated=evaluated, more=more)
    )
    return PROGRAM.format(inputs=inputs, model=model, entry=entry, driver=lines)


def get_next(lines: str) -> str:
    made = "    ds = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)\n    it = ds.make_one_shot_iterator()\n"
    return f"def input_fn():\n{made}" + "".join(f"    {line}\n" for line in lines.splitlines())


ARRAYS = "tf.estimator.inputs.{kind}_input_fn({arguments}, shuffle=False)"
CASES = {
    "work on the tensors of an iterator": case(
        get_next("features, labels = it.get_next()\nfeatures = features * 2.0 - 1.0\nreturn {'all': features}, labels"),
        entry="['all']",
    ),
    "arrays over epochs that straddle batches": case(
        "",
        "train_fn",
        "eval_fn",
        before="train_fn = "
        + ARRAYS.format(kind="numpy", arguments="{'x1': x}, y, batch_size=16, num_epochs=2")
        + "\neval_fn = "
        + ARRAYS.format(kind="numpy", arguments="x={'x1': x}, y=y, batch_size=8, num_epochs=1")
        + "\n",
        entry="['x1']",
    ),
    "params and mode": case(
        "def input_fn(params, mode):\n    ds = tf.data.Dataset.from_tensor_slices((x, y))\n"
        "    if mode == tf.estimator.ModeKeys.TRAIN:\n        ds = ds.repeat()\n    return ds.batch(params['size'])\n"
    ),
    "contrib's old transformations as of tf.data.experimental": case(
        "def double(a, b):\n    return a * 2.0, b\n\n\ndef input_fn():\n"
        "    ds = tf.data.Dataset.from_tensor_slices((x, y)).apply(tf.data.experimental.shuffle_and_repeat(1, 2))\n"
        "    return ds.apply(tf.data.experimental.map_and_batch(double, 8, drop_remainder=True))\n"
    ),
    "hooks, session settings and replace": case(
        before="session_config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1)\n"
        "config = tf.estimator.RunConfig(session_config=session_config).replace(log_step_count_steps=2)\n"
        "hook = tf.compat.v1.train.LoggingTensorHook({'mse': 'mse'}, every_n_iter=2)\n",
        config=", config=config",
        more=", hooks=[hook]",
        model="tf.identity(loss, name='mse')",
    ),
    "params that change after the Estimator was made": case(
        model="loss = params['share'] * loss",
        driver="params = {{'share': 0.5}}\nestimator = tf.estimator.Estimator(model_fn, params=params)\n"
        "also = params\nalso['share'] = 3.0\n" + TRAIN,
    ),
    "a hook that stops": case(
        driver="estimator.train(input_fn, hooks=[tf.compat.v1.train.StopAtStepHook(last_step=5)])"
    ),
}


CASES["a TPUEstimator without a TPU"] = """\
import numpy as np
import tensorflow as tf

random = np.random.RandomState(4)
x = random.normal(size=(40, 6)).astype(np.float32)
y = x.sum(axis=1, keepdims=True) / 6


def input_fn(params):
    ds = tf.data.Dataset.from_tensor_slices((x, y))
    return ds.batch(params["batch_size"], drop_remainder=True)


def metric_fn(answers, guesses):
    error = tf.metrics.mean_absolute_error(answers, predictions=guesses)
    return {"error": error}


def model_fn(features, labels, mode, params):
    outputs = tf.layers.dense(features, 1)
    loss = tf.losses.mean_squared_error(labels, outputs)
    optimizer = tf.train.MomentumOptimizer(params["rate"], 0.9)
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(
        mode, loss=loss, train_op=train_op, eval_metrics=(metric_fn, [labels, outputs]))


config = tf.estimator.tpu.RunConfig(tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=2))
estimator = tf.estimator.tpu.TPUEstimator(
    model_fn, config=config, params={"rate": 0.05}, use_tpu=False, train_batch_size=8, eval_batch_size=4)
estimator.train(input_fn, steps=5)
estimator.evaluate(input_fn, steps=6)
"""


@pytest.mark.parametrize("construct", CASES)
def test_trains_and_evaluates_the_same(construct: str, servers: Servers, tmp_path: Path) -> None:
    text = CASES[construct].replace("import tensorflow as tf", "import tensorflow.compat.v1 as tf")
    prove(text, servers, tmp_path, style="auto")


LOGGER = """\
import tensorflow.compat.v1 as tf
from tensorflow.python.client import device_lib


def log(results):
    devices = device_lib.list_local_devices(None)
    assert [device.device_type for device in devices] == ["CPU"]
    for name in results:
        if name != tf.GraphKeys.GLOBAL_STEP:
            print(results[tf.GraphKeys.GLOBAL_STEP], name, results[name])
    assert results[tf.GraphKeys.GLOBAL_STEP] == 5
"""


def test_results_are_given_to_a_logger(servers: Servers, tmp_path: Path) -> None:
    driver = "estimator.train({input_fn}, steps=5{more})\nresults = estimator.evaluate({evaluated})\nlog(results)"
    imports = "import tensorflow.compat.v1 as tf\nfrom logger import log"
    text = case(driver=driver).replace("import tensorflow as tf", imports)
    new = prove_project({"train.py": text, "logger.py": LOGGER}, "train.py", servers, tmp_path)
    assert 'results["global_step"]' in new["logger.py"]
