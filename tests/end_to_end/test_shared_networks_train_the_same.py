"""Networks that are called again with `reuse=`, run before and after."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.proving import Servers, prove

pytestmark = pytest.mark.tensorflow

PROGRAM = """\
import numpy as np
import tensorflow.compat.v1 as tf

random = np.random.RandomState(0)
words = {"question": random.randint(0, 9, (40, 6)), "answer": random.randint(0, 9, (40, 4))}
y = (words["question"][:, 0] > words["answer"][:, 0]).astype(np.int64)


def embed(ids, size):
    with tf.variable_scope("embedding", reuse=tf.AUTO_REUSE):
        table = tf.get_variable("table", [9, size])
        return tf.nn.embedding_lookup(table, ids)


def encode(x, units, training, reuse=False):
    with tf.variable_scope("encoder", reuse=reuse):
        hidden = tf.layers.dense(tf.reduce_mean(x, 1), units, tf.tanh)
        hidden = tf.layers.dropout(hidden, 0.0, training=training)
        return tf.layers.dense(hidden, 3)


def model_fn(features, labels, mode):
    training = mode == tf.estimator.ModeKeys.TRAIN
    question = embed(features["question"], 4)
    answer = embed(features["answer"], 4)
    left = encode(question, 5, training)
    right = encode(answer, 5, training, reuse=True)
    logits = tf.layers.dense(tf.concat([left, right, left * right], 1), 2)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=tf.nn.softmax(logits))
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    train_op = tf.train.AdamOptimizer(0.05).minimize(loss, tf.train.get_global_step())
    accuracy = tf.metrics.accuracy(labels, tf.argmax(logits, 1))
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops={"accuracy": accuracy})


def input_fn():
    return tf.data.Dataset.from_tensor_slices((words, y)).repeat().batch(8)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=5)
print(estimator.evaluate(input_fn, steps=2))
"""


def test_an_embedding_and_an_encoder_for_two_texts(servers: Servers, tmp_path: Path) -> None:
    new = prove(PROGRAM, servers, tmp_path)
    assert new.count("embed_model(") == 2 and new.count("encode_model(") == 2 and "reuse=True" not in new
