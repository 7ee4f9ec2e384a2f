"""Programs with canned Estimators and heads train the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.proving import Servers, prove

pytestmark = [pytest.mark.tensorflow]

DATA = """\
import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

random = np.random.RandomState(0)
WORDS = random.choice(["red", "green", "blue"], [40])
SIZES = random.randint(0, 50, [40])
X = random.uniform(-1.0, 1.0, [40, 3]).astype(np.float32)
AGE = random.uniform(10.0, 80.0, [40]).astype(np.float32)
W = random.uniform(0.0, 2.0, [40]).astype(np.float32)
CLASSES = ((AGE + 20.0 * X[:, 0]) // 30.0).astype(np.int32)
FEATURES = {"word": WORDS, "size": SIZES, "x": X, "age": AGE, "w": W}

word = tf.feature_column.categorical_column_with_vocabulary_list("word", ["red", "green", "blue"])
size = tf.feature_column.categorical_column_with_hash_bucket("size", 10, tf.int64)
age = tf.feature_column.numeric_column("age", normalizer_fn=lambda value: value / 80.0)
x = tf.feature_column.numeric_column("x", shape=[3])
decade = tf.feature_column.bucketized_column(tf.feature_column.numeric_column("age"), [20.0, 40.0])
WIDE = [word, size, age, x, decade, tf.feature_column.crossed_column([word, decade], 12)]
DEEP = [x, age, tf.feature_column.indicator_column(word), tf.feature_column.embedding_column(size, 4)]


def input_fn(labels):
    return tf.data.Dataset.from_tensor_slices((FEATURES, labels)).batch(8)



"""

# By name: the Estimator, and the labels that it learns. tf.estimator is TensorFlow 2's here, beside compat.v1.
PROGRAMS = {
    "linear binary": ("tf1.estimator.LinearClassifier(WIDE)", "CLASSES > 0"),
    "linear classes": ("tf.estimator.LinearClassifier(WIDE, n_classes=4)", "CLASSES"),
    "linear weighted": (
        'tf.compat.v1.estimator.LinearRegressor(WIDE, weight_column="w", sparse_combiner="mean", optimizer="SGD")',
        "X[:, :1]",
    ),
    "deep binary": ('tf.estimator.DNNClassifier([6, 4], DEEP, weight_column="w")', "CLASSES > 0"),
    "deep classes": (
        "tf1.estimator.DNNClassifier([6, 4], DEEP, n_classes=4, batch_norm=True,"
        " optimizer=tf1.train.MomentumOptimizer(0.05, 0.9))",
        "CLASSES[:, None]",
    ),
    "wide and deep": (
        "tf1.estimator.DNNLinearCombinedClassifier(linear_feature_columns=WIDE, dnn_feature_columns=DEEP,"
        " dnn_hidden_units=[6, 4], linear_optimizer=tf1.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01))",
        "CLASSES > 0",
    ),
    "wide and deep of TensorFlow 2": (
        "tf.estimator.DNNLinearCombinedRegressor(linear_feature_columns=WIDE, dnn_feature_columns=DEEP,"
        " dnn_hidden_units=[6], dnn_optimizer='Adam', linear_sparse_combiner='sqrtn', weight_column='w')",
        "X[:, 0]",
    ),
    "deep numbers": (
        "tf1.estimator.DNNRegressor([6], DEEP, label_dimension=3, activation_fn=tf.nn.tanh, dropout=0.3)",
        "X",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_canned_estimator(name: str, servers: Servers, tmp_path: Path) -> None:
    estimator, labels = PROGRAMS[name]
    labels = f"({labels}).astype(np.int32)" if ">" in labels else labels
    drive = f"estimator.train(lambda: input_fn({labels}), steps=5)\nestimator.evaluate(lambda: input_fn({labels}))\n"
    new = prove(f"{DATA}estimator = {estimator}\n{drive}", servers, tmp_path)
    assert "estimator." not in new.replace("estimator.fit", "").replace("estimator.evaluate", "")


KERAS = """\
def build():
    model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="relu", input_shape=(3,))])
    model.add(tf.keras.layers.BatchNormalization(momentum=0.8))
    model.add(tf.keras.layers.Dropout(0.3))
    model.add(tf.keras.layers.Dense(1))
    model.compile(optimizer=tf1.train.AdamOptimizer(0.01), loss="mse",
                  metrics=[tf.keras.metrics.MeanAbsoluteError(name="mae")])
    return model


def arrays():
    return tf.data.Dataset.from_tensor_slices((X, AGE[:, None] / 80.0)).batch(8)


estimator = tf1.keras.estimator.model_to_estimator(keras_model=build())
estimator.train(arrays, steps=5)
estimator.evaluate(arrays)
"""


def test_an_estimator_of_a_keras_model(servers: Servers, tmp_path: Path) -> None:
    new = prove(DATA + KERAS, servers, tmp_path)
    assert "BatchNormalization(momentum=0.8)" in new and "Dropout(0.3)" in new and ".fit(arrays().take(5))" in new
