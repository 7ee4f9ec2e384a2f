"""Input functions with a hook that initializes their iterator: the same batches train to the same numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from migrator.harness.environments import migrated_python, original_python
from tests import warm
from tests.end_to_end.proving import Servers, prove, prove_project

pytestmark = pytest.mark.tensorflow

HOOK = """\
class InitializerHook(tf.train.SessionRunHook):
    def __init__(self):
        super(InitializerHook, self).__init__()
        self.initialize = None

    def after_create_session(self, session, coord):
        self.initialize(session)
"""

FED = (
    """\
import numpy as np
import tensorflow as tf


"""
    + HOOK
    + """\


def inputs(size, repeat):
    hook = InitializerHook()

    def read():
        random = np.random.RandomState(3)
        x = random.normal(size=(40, 3))
        y = x.sum(axis=1, keepdims=True).astype(np.float32)
        features = tf.placeholder(tf.float32, x.shape)
        labels = tf.placeholder(y.dtype, [None, 1])
        data = tf.data.Dataset.from_tensor_slices((features, labels))
        if repeat:
            data = data.repeat()
        data = data.batch(size)
        iterator = tf.data.make_initializable_iterator(data)
        hook.initialize = lambda session: session.run(iterator.initializer, feed_dict={features: x, labels: y})
        a, b = iterator.get_next()
        return a * 2.0, b

    return read, hook


def in_collection():
    iterator = inputs_of_ones().make_initializable_iterator()
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    return iterator.get_next()


def inputs_of_ones():
    return tf.data.Dataset.from_tensor_slices((np.ones((8, 3), np.float32), np.zeros((8, 1), np.float32))).batch(4)


def model_fn(features, labels, mode):
    out = tf.layers.dense(features, 1)
    loss = tf.losses.mean_squared_error(labels, out)
    train_op = tf.train.GradientDescentOptimizer(0.05).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


train_fn, train_hook = inputs(8, True)
eval_fn, eval_hook = inputs(10, False)
estimator = tf.estimator.Estimator(model_fn)
estimator.train(train_fn, steps=3, hooks=[train_hook])
estimator.train(in_collection, steps=2)
estimator.evaluate(eval_fn, hooks=[eval_hook])
"""
)

READER = (
    """\
import numpy as np
import tensorflow as tf


"""
    + HOOK
    + """\


class Reader(object):
    def __init__(self, examples, dtypes):
        self.examples = examples
        self.dtypes = dtypes

    def inputs(self, size):
        hook = InitializerHook()

        def read():
            def generate():
                random = np.random.RandomState(5)
                while True:
                    x = random.normal(size=(2, 2, 1)).astype(np.float32)
                    yield {"features": {"x": x}, "labels": {"y": x.sum(axis=(0, 1))}}

            shapes = {"features": {"x": [2, 2, 1]}, "labels": {"y": [1]}}
            data = tf.data.Dataset.from_generator(generate, self.dtypes, shapes).batch(size)

            iterator = data.make_initializable_iterator()
            batch = iterator.get_next()
            # the hook runs this
            hook.initialize = lambda session: session.run(iterator.initializer)
            return batch["features"], batch.get("labels")

        return read, hook

    def serving_fn(self, shapes):
        def receive():
            inputs = {
                key: tf.placeholder(shape=[None] + shapes[key], dtype=self.dtypes["features"][key])
                for key in list(self.dtypes["features"].keys())}
            return tf.estimator.export.ServingInputReceiver(inputs, inputs)

        return receive
"""
)
TRAIN = """\
import os

import tensorflow as tf
from reader import Reader


def network(x, training):
    conv_op = tf.layers.conv2d
    params = {"padding": "same", "use_bias": False}
    net = conv_op(x, 3, 2, **params)
    net = tf.layers.flatten(tf.layers.batch_normalization(net, training=training))
    outputs = {"value": tf.layers.dense(net, 1)}
    outputs["positive"] = tf.greater(outputs["value"], 0.0)
    return outputs


def model_fn(features, labels, mode, params):
    outputs = network(features["x"], mode == tf.estimator.ModeKeys.TRAIN)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(
            mode, predictions=outputs, export_outputs={"out": tf.estimator.export.PredictOutput(outputs)})
    loss = tf.losses.mean_squared_error(labels["y"], outputs["value"])
    update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.control_dependencies(update_ops):
        train_op = tf.train.MomentumOptimizer(params["rate"], 0.9).minimize(loss, tf.train.get_global_step())
    images = {}
    images["x"] = features["x"]
    size = [2, 2, 2, 1]
    [tf.summary.image(name, tf.reshape(image[:2], size)) for name, image in images.items()]
    rmse = tf.metrics.root_mean_squared_error
    metrics = {"rmse": rmse(labels["y"], outputs["value"])}
    return tf.estimator.EstimatorSpec(mode, outputs, loss, train_op, eval_metric_ops=metrics)


def main():
    tf.logging.set_verbosity(tf.logging.ERROR)
    reader = Reader(None, {"features": {"x": tf.float32}, "labels": {"y": tf.float32}})
    train_fn, train_hook = reader.inputs(4)
    eval_fn, eval_hook = reader.inputs(3)
    estimator = tf.estimator.Estimator(model_fn, params={"rate": 0.05})
    here = os.path.dirname(__file__)
    count_hook = tf.train.StepCounterHook(10, output_dir=os.path.join(here, "counts"))
    estimator.train(train_fn, hooks=[train_hook, count_hook], steps=5)
    estimator.evaluate(eval_fn, hooks=[eval_hook], steps=2)
    folder = os.path.join(here, "served")
    estimator.export_savedmodel(folder, reader.serving_fn({"x": [2, 2, 1]}))


if __name__ == "__main__":
    main()
"""
OTHER = """\
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()

from reader import Reader

reader = Reader(None, {"features": {"x": tf.float32}, "labels": {"y": tf.float32}})
read_fn, read_hook = reader.inputs(2)
features, labels = read_fn()
with tf.train.MonitoredTrainingSession(hooks=[read_hook]) as session:
    print(session.run(labels["y"]).shape)
"""
ASK = """\
import glob, json, sys
import tensorflow as tf
found = []
for folder in sys.argv[1:]:
    path = max(glob.glob(folder + "/*"))
    for name, signature in sorted(tf.saved_model.load(path).signatures.items()):
        answer = signature(x=tf.reshape(tf.range(4.0), [1, 2, 2, 1]))
        found.append([name, sorted([key, value.shape.as_list()] for key, value in answer.items())])
print(json.dumps(found))
"""


def test_arrays_fed_to_placeholders(servers: Servers, tmp_path: Path) -> None:
    new = prove(FED, servers, tmp_path)
    assert "placeholder" not in new and "Hook" not in new and "iterator" not in new


def test_a_reader_that_tensorflow1_uses_too(servers: Servers, tmp_path: Path) -> None:
    texts = {"train.py": TRAIN, "reader.py": READER, "other.py": OTHER}
    prove_project(texts, "train.py", servers, tmp_path, style="bridge")

    def run(python: Path, folder: Path, *command: str) -> str:
        done = warm.run(python, *command, cwd=folder)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()[-1]

    assert run(original_python(), tmp_path / "migrated", "other.py") == "(2, 1)"
    asked = json.loads(run(migrated_python(), tmp_path, "-c", ASK, str(tmp_path / "migrated" / "served")))
    expected = [["positive", [1, 1]], ["value", [1, 1]]]
    assert asked == [["out", expected], ["serving_default", expected]]  # what the original serves, and its input `x`
