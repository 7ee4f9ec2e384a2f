"""Drivers that build operations of their own beside their Estimators: the same on TensorFlow 1 and on the bridge."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from migrator.cli.migrate import command
from migrator.harness.environments import migrated_python, original_python
from tests import warm

pytestmark = pytest.mark.tensorflow
TENSORFLOW1 = os.environ.get("TF_MIGRATE_TENSORFLOW1_PYTHON", "")

PROGRAM = """
import sys
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)
tf.reset_default_graph()

x = tf.placeholder(tf.float32, [None, 2], name="x")
serving = tf.estimator.export.build_raw_serving_input_receiver_fn({"x": x})
a, b = [tf.feature_column.categorical_column_with_identity(name, 5) for name in "ab"]
columns = tf.feature_column.shared_embedding_columns([a, b], 3, initializer=tf.ones_initializer())
writer = tf.summary.FileWriter("events")


def model_fn(features, labels, mode):
    w = tf.get_variable("w", [2, 1], initializer=tf.ones_initializer())
    out = tf.matmul(features["x"], w)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"y": out})
    out += tf.reduce_sum(tf.feature_column.input_layer(features, columns), 1, keepdims=True)
    loss = tf.reduce_mean(tf.square(out - labels))
    train_op = tf.train.AdamOptimizer(.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    ones = np.ones([4], "int64")
    features = {"x": np.ones([4, 2], "float32"), "a": ones, "b": 2 * ones}
    return tf.data.Dataset.from_tensors((features, np.ones([4, 1], "float32"))).repeat(5)


def main(_):
    strategy = tf.distribute.MirroredStrategy(["cpu:0"]) if "mirrored" in sys.argv else None
    estimator = tf.estimator.Estimator(model_fn, config=tf.estimator.RunConfig(train_distribute=strategy))
    estimator.train(input_fn)
    y = tf.placeholder(tf.float32, [])
    doubled = y * 2
    session = tf.Session()
    print("told doubled", session.run(doubled, {y: 4.0}))
    loss = estimator.evaluate(input_fn)["loss"]
    print("told loss %.5f" % loss)
    for one in estimator.predict(lambda: tf.data.Dataset.from_tensors({"x": np.ones([2, 2], "float32")})):
        print("told y %.5f" % one["y"][0], session.run(doubled + 1, {y: 4.0}))
    writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=loss)]), 5)
    writer.close()
    path = estimator.export_saved_model("exported", serving)
    with tf.Session(graph=tf.Graph()) as other:
        tf.saved_model.loader.load(other, ["serve"], path.decode())
    own = tf.get_variable("own", [], initializer=tf.zeros_initializer())
    session.run(tf.global_variables_initializer())
    print("told own", session.run(tf.assign_add(own, 3.0)), [one.name for one in tf.global_variables()])
    print("told", estimator.get_variable_names())


if __name__ == "__main__":
    tf.app.run()
"""


@pytest.mark.parametrize("strategy", ["", "mirrored"])
def test_drivers_with_operations_of_their_own(tmp_path: Path, strategy: str) -> None:
    old, new = tmp_path / "old" / "program.py", tmp_path / "new" / "program.py"
    for path in (old, new):
        path.parent.mkdir()
        path.write_text(PROGRAM)
    done = CliRunner().invoke(command, ["--style", "bridge", str(new)])
    assert done.exit_code == 0, done.output
    was = told(TENSORFLOW1 or str(original_python()), old, strategy)
    assert len(was) == 6 and told(str(migrated_python()), new, strategy) == was


def told(python: str, program: Path, strategy: str) -> list[str]:
    done = warm.run(python, program.name, *([strategy] if strategy else []), cwd=program.parent)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Traceback" not in done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("told")]


OF_KERAS = """
import numpy as np
import tensorflow as tf


def create_model():
    ones = tf.keras.initializers.Ones()
    reshape = tf.keras.layers.Reshape([4], input_shape=(4,))
    return tf.keras.Sequential([reshape, tf.keras.layers.Dense(1, kernel_initializer=ones)])


def model_fn(features, labels, mode):
    y = create_model()(features["x"])
    if mode == tf.estimator.ModeKeys.PREDICT:
        outputs = {"serving_default": tf.estimator.export.PredictOutput({"y": y})}
        return tf.estimator.EstimatorSpec(mode, predictions={"y": y}, export_outputs=outputs)
    loss = tf.losses.mean_squared_error(labels, y)
    train_op = tf.train.GradientDescentOptimizer(0.0).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    return tf.data.Dataset.from_tensors(({"x": np.ones([3, 4], "float32")}, np.ones([3, 1], "float32")))


def main(_):
    estimator = tf.estimator.Estimator(model_fn)
    estimator.train(input_fn)
    image = tf.placeholder(tf.float32, [None, 2, 2])
    serving = tf.estimator.export.build_raw_serving_input_receiver_fn({"x": image})
    path = estimator.export_savedmodel("exported", serving)
    with tf.Session(graph=tf.Graph()) as session:
        saved = tf.saved_model.loader.load(session, ["serve"], path.decode()).signature_def["serving_default"]
        x, y = saved.inputs["x"].name, saved.outputs["y"].name
        print("told", session.run(y, {x: np.full([1, 2, 2], 2.0)}).tolist())


if __name__ == "__main__":
    tf.app.run()
"""


def test_serving_placeholders_beside_keras_models_of_other_shapes(tmp_path: Path) -> None:
    old, new = tmp_path / "old" / "program.py", tmp_path / "new" / "program.py"
    for path in (old, new):
        path.parent.mkdir()
        path.write_text(OF_KERAS)
    done = CliRunner().invoke(command, ["--style", "bridge", str(new)])
    assert done.exit_code == 0, done.output
    assert told(str(migrated_python()), new, "") == ["told [[8.0]]"]
    if TENSORFLOW1:  # Keras of TensorFlow 2.15 looks at the shape
        assert told(TENSORFLOW1, old, "") == ["told [[8.0]]"]


LOOKS = """
import numpy as np
import tensorflow as tf

XS = np.arange(12, dtype=np.float32).reshape(4, 3)


def model_fn(features, labels, mode):
    out = tf.layers.dense(features["x"], 1, kernel_initializer=tf.constant_initializer(0.1))
    loss = tf.losses.mean_squared_error(labels, out)
    train_op = tf.train.GradientDescentOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": XS}, XS[:, :1])).batch(2)


def look(dataset):
    iterator = dataset.make_initializable_iterator()
    batch = iterator.get_next()
    with tf.Session() as session:
        session.run(iterator.initializer)
        print("told", session.run(batch)[1].tolist())


class Scale(object):
    def __init__(self):
        self.largest = tf.reduce_max(XS)

    def show(self):
        with tf.Session():
            return self.largest.eval()


total = tf.reduce_sum(tf.constant(XS))
x, y = input_fn().make_one_shot_iterator().get_next()
with tf.Session() as session:
    print("told", session.run(total), session.run({"x": x["x"]})["x"].tolist())
look(input_fn())
print("told", Scale().show())
estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn)
print("told %.3f" % estimator.evaluate(input_fn)["loss"])
"""


def test_sessions_run_what_is_made_before_them(tmp_path: Path) -> None:
    old, new = tmp_path / "old" / "program.py", tmp_path / "new" / "program.py"
    for path in (old, new):
        path.parent.mkdir()
        path.write_text(LOOKS)
    done = CliRunner().invoke(command, ["--style", "bridge", str(new)])
    assert done.exit_code == 0, done.output
    was = told(TENSORFLOW1 or str(original_python()), old, "")
    assert len(was) == 4 and told(str(migrated_python()), new, "") == was
