"""Keras models and layers inside of a model_fn: the numbers and the names of TensorFlow 1, in every mode."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bridge.sides import TENSORFLOW1, run_both
from tests.bridge.test_core import close

pytestmark = pytest.mark.tensorflow

PROGRAM = """
K = tf.keras
x = np.random.RandomState(0).normal(size=(64, 4)).astype(np.float32)
y = (x[:, :1] > 0).astype(np.float32)
once = lambda: tf.data.Dataset.from_tensor_slices((x, y)).batch(16)
data = lambda: once().repeat()


def dense(units, **more):
    kernel = np.linspace(-0.5, 0.5, 64)[:units * 4].reshape(4, units)
    return K.layers.Dense(units, kernel_initializer=tf.constant_initializer(kernel), **more)


class Scaled(K.layers.Layer):
    def build(self, shape):
        self.w = self.add_weight(name="w", shape=(int(shape[-1]), 3), initializer=tf.constant_initializer(0.1))
        self.calls = self.add_weight(name="calls", shape=(), initializer="zeros", trainable=False)
        super().build(shape)

    def call(self, inputs):
        self.add_loss(0.01 * tf.reduce_sum(self.w ** 2))
        self.add_update(tf.assign_add(self.calls, 1.0))
        return tf.matmul(inputs, self.w)


def norm():
    return K.layers.BatchNormalization(momentum=0.8)


def last(**more):
    return K.layers.Dense(1, kernel_initializer=tf.constant_initializer(0.5), **more)


def built_by_call(features, training):
    model = K.Sequential([dense(4, activation="relu"), norm(), Scaled(), last()])
    return model, model(features, training=training)


def of_inputs(features, training):
    inputs = K.Input((4,))
    hidden = norm()(dense(4, activation="relu")(inputs))
    model = K.Model(inputs, last(kernel_regularizer=K.regularizers.l2(0.01))(hidden))
    return model, model(features, training=training)


def by_phase(features, training):
    K.backend.set_learning_phase(training)
    model = K.Sequential([dense(4, input_shape=(4,)), norm(), last()])
    return model, model(features)


def of_the_tensor(features, training):
    inputs = K.Input(tensor=features)
    with tf.variable_scope("scope"):
        hidden = norm()(dense(4)(inputs), training=training)
    model = K.Model(inputs, last()(hidden))
    return model, model.output


class Own(K.Model):
    def __init__(self):
        super().__init__(name="own")
        self.one, self.norm, self.two = dense(4), norm(), last()

    def call(self, inputs, training=False):
        return self.two(self.norm(self.one(inputs), training=training))


def subclassed(features, training):
    model = Own()
    return model, model(features, training=training)


def recurrent(features, training):
    ones = {"kernel_initializer": "ones", "recurrent_initializer": "ones"}
    model = K.Sequential([K.layers.Reshape((2, 2)), K.layers.LSTM(3, return_sequences=True, **ones),
                          K.layers.Bidirectional(K.layers.GRU(2, **ones)), last()])
    return model, model(features, training=training)


class Losses(tf.train.SessionRunHook):
    def __init__(self):
        self.found = []

    def before_run(self, context):
        return tf.train.SessionRunArgs(tf.get_collection("losses"))

    def after_run(self, context, values):
        self.found.append(values.results)


def model_fn(features, labels, mode, params):
    model, out = params["make"](features, mode == "train")
    names = [[one.name for one in some] for some in (tf.global_variables(), tf.trainable_variables(), model.weights)]
    found[params["make"].__name__ + " " + mode] = [names, len(model.losses), len(tf.get_collection("update_ops"))]
    if mode == "infer":
        return est.EstimatorSpec(mode, predictions={"out": out})
    loss = tf.losses.mean_squared_error(labels, out) + (tf.add_n(model.losses) if model.losses else 0.0)
    if mode == "eval":
        return est.EstimatorSpec(mode, loss=loss, eval_metric_ops={"mean": tf.metrics.mean(out)})
    updates = model.get_updates_for(features) + model.get_updates_for(None) if params["updates"] else []
    with tf.control_dependencies(updates):
        train_op = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss, tf.train.get_global_step())
    return est.EstimatorSpec(mode, loss=loss, train_op=train_op)


for make in (built_by_call, of_inputs, by_phase, of_the_tensor, subclassed, recurrent):
    for updates in (True, False):
        if make is not of_inputs and not updates:
            continue
        K.backend.clear_session()
        name = make.__name__ + ("" if updates else " without")
        folder = os.path.join(FOLDER, sys.argv[1] + name.replace(" ", "_"))
        estimator = est.Estimator(model_fn, folder, params={"make": make, "updates": updates})
        hook = Losses()
        estimator.train(data, hooks=[hook], steps=6)
        values = {name: estimator.get_variable_value(name) for name in estimator.get_variable_names()}
        predicted = [row for row, _ in zip(estimator.predict(once), range(3))]
        modes = [found.pop(make.__name__ + " train")]
        evaluation = estimator.evaluate(once)
        modes += [found.pop(make.__name__ + " eval"), found.pop(make.__name__ + " infer")]
        found[name] = [hook.found, values, evaluation, predicted, modes]
        events = [os.path.join(folder, one) for one in os.listdir(folder) if one.startswith("events")]
        found[name] += [sorted({value.tag for one in events for event in tf.train.summary_iterator(one)
                                for value in event.summary.value})]
"""
PARTS = ("losses", "values", "evaluation", "predictions", "modes", "summaries")


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    return run_both(PROGRAM, tmp_path_factory.mktemp("keras_in_model_fn"), ("specs", "config", "estimator", "training"))


@pytest.mark.parametrize(
    "name", ["built_by_call", "of_inputs", "of_inputs without", "by_phase", "of_the_tensor", "subclassed", "recurrent"]
)
def test_it_is_as_in_tensorflow_1(name: str, sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    if name == "recurrent" and not TENSORFLOW1:
        pytest.skip("2.15 names recurrent layers otherwise: set TF_MIGRATE_TENSORFLOW1_PYTHON")
    for part, old, new in zip(PARTS, sides[0][name], sides[1][name], strict=True):
        assert close(old, new), (part, old, new)


def test_averages_are_updated_by_those_who_ask_for_it(sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """The comparison sees averages that nobody updates: training is the same, evaluation is not."""
    asked, not_asked = sides[1]["of_inputs"], sides[1]["of_inputs without"]
    assert close(asked[0], not_asked[0])
    assert not close(asked[2], not_asked[2])
