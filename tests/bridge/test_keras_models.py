"""Keras models that became Estimators: the same numbers as of TensorFlow 1, from the same weights."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bridge.sides import TENSORFLOW1, run_both
from tests.bridge.test_exports import alike

pytestmark = pytest.mark.tensorflow

PROGRAM = """
if OLD:
    make = tf.keras.estimator.model_to_estimator
else:
    make = est.model_to_estimator
K = tf.keras
X = np.random.RandomState(1).normal(size=(12, 3)).astype(np.float32)
CLASSES = (X[:, 0] > 0).astype(np.int32) + (X[:, 1] > 0.5)
NUMBERS = X.sum(axis=1, keepdims=True)


def dense(units, **more):
    kernel = tf.constant_initializer(np.linspace(-0.5, 0.5, 3 * units).reshape(3, units))
    return K.layers.Dense(units, kernel_initializer=kernel, **more)


def classifier(optimizer, metrics=("accuracy",)):
    model = K.Sequential([
        dense(4, activation="relu", input_shape=(3,), name="first"),
        K.layers.BatchNormalization(name="norm"),
        K.layers.Dense(3, activation="softmax", kernel_initializer="zeros", name="last"),
    ])
    model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy", metrics=list(metrics))
    return model


def two():
    x, w = K.Input((3,), name="x"), K.Input((1,), name="w")
    h = dense(3, activation="tanh", kernel_regularizer=K.regularizers.l2(0.01), name="h")(x)
    size = K.layers.Dense(1, kernel_initializer="ones", name="size")(K.layers.Concatenate()([h, w]))
    sign = K.layers.Dense(1, activation="sigmoid", kernel_initializer="zeros", name="sign")(h)
    model = K.Model([x, w], [size, sign])
    model.compile(
        optimizer=K.optimizers.SGD(0.1, momentum=0.9),
        loss={"size": "mse", "sign": "binary_crossentropy"},
        loss_weights={"size": 0.5, "sign": 2.0},
        metrics={"sign": ["accuracy"], "size": ["mae"]},
    )
    return model


def simple(x, y):
    return lambda epochs=1: tf.data.Dataset.from_tensor_slices((x, y)).repeat(epochs).batch(4)


PROGRAMS = {
    "adam": (lambda: classifier(K.optimizers.Adam(0.05)), simple({"first_input": X}, CLASSES)),
    "by name": (lambda: classifier("rmsprop", ["acc"]), simple(X, CLASSES)),
    "of tf.train": (lambda: classifier(tf.train.MomentumOptimizer(0.1, 0.9)), simple({"first_input": X}, CLASSES)),
    "two outputs": (two, simple({"x": X, "w": NUMBERS}, {"size": NUMBERS, "sign": (NUMBERS > 0).astype(np.int32)})),
    "weights": (
        lambda: classifier("sgd"),
        simple({"features": X, "sample_weights": np.linspace(0, 2, 12).astype(np.float32)}, CLASSES),
    ),
}
for name, (made, input_fn) in PROGRAMS.items():
    K.backend.clear_session()
    folder = os.path.join(FOLDER, sys.argv[1] + name.replace(" ", "_"))
    estimator = make(keras_model=made(), model_dir=folder)
    estimator.train(lambda: input_fn(None), steps=4)
    estimator.train(lambda: input_fn(None), steps=3)
    names = [n for n, _ in tf.train.list_variables(folder)]
    plain_input_fn = simple(X, CLASSES) if name == "weights" else input_fn
    outputs = [dict(row) for row in estimator.predict(plain_input_fn)]
    found[name] = {"names": names, "last": dict(estimator.evaluate(input_fn)), "predictions": outputs}
    found[name]["weights"] = {n: tf.train.load_variable(folder, n) for n in names if "training" not in n}
"""
MODULES = ("exporting", "estimator", "keras_models")
NAMES = ("adam", "by name", "of tf.train", "two outputs", "weights")


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    return run_both(PROGRAM, tmp_path_factory.mktemp("keras"), MODULES)


@pytest.mark.skipif(
    not TENSORFLOW1, reason="2.15 names metrics otherwise (accuracy for acc): set TF_MIGRATE_TENSORFLOW1_PYTHON"
)
@pytest.mark.parametrize("name", NAMES)
def test_it_trains_as_in_tensorflow1(name: str, sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    old, new = sides
    for part in ("last", "predictions", "weights"):
        assert alike(old[name][part], new[name][part]), (part, old[name][part], new[name][part])
