"""Programs that read their features through feature columns train the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.proving import Servers, prove

pytestmark = [pytest.mark.tensorflow]

PROGRAM = """\
import numpy as np
import tensorflow as tf

random = np.random.RandomState(0)
WORDS = random.choice(["red", "green", "blue"], [40])
SIZES = random.randint(0, 50, [40])
X = random.uniform(-1.0, 1.0, [40, 3]).astype(np.float32)
AGE = random.uniform(10.0, 80.0, [40]).astype(np.float32)
Y = (X[:, :1] + AGE[:, None] / 50.0).astype(np.float32)

word = tf.feature_column.categorical_column_with_vocabulary_list("word", ["red", "green", "blue"])
size = tf.feature_column.categorical_column_with_hash_bucket("size", 10, tf.int64)
age = tf.feature_column.numeric_column("age")
COLUMNS = [
    tf.feature_column.numeric_column("x", shape=[3]),
    tf.feature_column.indicator_column(word),
    tf.feature_column.embedding_column(size, 4),
    tf.feature_column.embedding_column(
        tf.feature_column.crossed_column([word, tf.feature_column.bucketized_column(age, [20.0, 40.0])], 12), 2
    ),
    age,
]


def input_fn():
    features = {"word": WORDS, "size": SIZES, "x": X, "age": AGE}
    return tf.data.Dataset.from_tensor_slices((features, Y)).batch(8)


def model_fn(features, labels, mode, params):
    net = tf.feature_column.input_layer(features, params["columns"])
    net = tf.layers.dense(net, 5, activation=tf.nn.tanh)
    logits = tf.layers.dense(net, 1)
    loss = tf.losses.mean_squared_error(labels, logits)
    train_op = tf.train.AdagradOptimizer(0.1).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn, params={"columns": COLUMNS})
estimator.train(input_fn, steps=5)
estimator.evaluate(input_fn)
"""


FILE = """\
with open("words.txt", "w") as file:
    file.write("red\\ngreen\\n")
word = tf.feature_column.categorical_column_with_vocabulary_file("word", "words.txt", 2, 3)
"""


def test_words_of_a_file(servers: Servers, tmp_path: Path) -> None:
    """Those that it does not hold are put into buckets by their hash."""
    start = PROGRAM.index("word = ")
    text = (
        PROGRAM[:start] + FILE.replace("words.txt", str(tmp_path / "words.txt")) + PROGRAM[PROGRAM.index("size = ") :]
    )
    new = prove(text, servers, tmp_path)
    assert "words.txt', vocabulary_size=2, num_oov_buckets=3)" in new.replace('"', "'")


def test_input_layer(servers: Servers, tmp_path: Path) -> None:
    new = prove(PROGRAM, servers, tmp_path)
    assert 'tf.keras.layers.DenseFeatures(params["columns"])(features)' in new
