"""Estimator programs of one kind of network each, for throughput.py: what comes of UNITS and STEPS is put in there."""

import textwrap

_PROGRAM = '''\
import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.ERROR)


def input_fn():
    random = np.random.RandomState(1)
    features = FEATURES
    labels = random.randint(0, 10, size=2048).astype(np.int64)
    return tf.data.Dataset.from_tensor_slices((features, labels)).repeat().batch(32)


def model_fn(features, labels, mode):
    NETWORK
    logits = tf.layers.dense(net, 10)
    loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    train_op = tf.train.OPTIMIZER.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=STEPS)
'''
_NUMBERS = "random.normal(size=(2048, {})).astype(np.float32)"
_IDS = "random.randint(0, ROWS, size=(2048, 20)).astype(np.int64)"

#: By kind: the data, the network, and the optimizer.
_KINDS = {
    "dense": (
        _NUMBERS.format(64),
        """
        net = tf.layers.dense(features, UNITS, activation=tf.nn.relu)
        net = tf.layers.dense(net, UNITS, activation=tf.nn.relu)
        """,
        "AdamOptimizer(1e-3)",
    ),
    "convolutional, batch norm": (
        _NUMBERS.format("12, 12, 3"),
        """
        net = tf.layers.conv2d(features, CHANNELS, 3, padding="same", use_bias=False)
        net = tf.layers.batch_normalization(net, training=mode == tf.estimator.ModeKeys.TRAIN)
        net = tf.layers.flatten(tf.nn.relu(net))
        net = tf.layers.dense(net, UNITS, activation=tf.nn.relu)
        """,
        "MomentumOptimizer(1e-3, 0.9)",
    ),
    "embedding": (
        _IDS,
        """
        table = tf.get_variable("table", [ROWS, UNITS])
        net = tf.reduce_mean(tf.nn.embedding_lookup(table, features), axis=1)
        """,
        "AdagradOptimizer(1e-2)",
    ),
    "LSTM": (
        _NUMBERS.format("12, 16"),
        """
        cell = tf.nn.rnn_cell.LSTMCell(UNITS)
        outputs, _ = tf.nn.dynamic_rnn(cell, features, dtype=tf.float32)
        net = outputs[:, -1, :]
        """,
        "AdamOptimizer(1e-3)",
    ),
}
#: By kind: what makes of it a small one, of some thousand weights, and one of a million.
_SIZES = {
    "dense": ({"UNITS": 16}, {"UNITS": 968}),
    "convolutional, batch norm": ({"CHANNELS": 4, "UNITS": 8}, {"CHANNELS": 16, "UNITS": 434}),
    "embedding": ({"ROWS": 200, "UNITS": 8}, {"ROWS": 31250, "UNITS": 32}),
    "LSTM": ({"UNITS": 16}, {"UNITS": 492}),
}
KINDS = tuple(_KINDS)


def program(kind: str, large: bool, steps: int = 100_000) -> str:
    """The text of a program."""
    features, network, optimizer = _KINDS[kind]
    body = textwrap.indent(textwrap.dedent(network).strip("\n"), "    ").strip()
    if kind.startswith("convolutional"):
        update = "with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):\n        train_op"
    else:
        update = "train_op"
    text = _PROGRAM.replace("train_op =", f"{update} =", 1)
    text = text.replace("FEATURES", features).replace("NETWORK", body).replace("OPTIMIZER", optimizer)
    for name, value in {**_SIZES[kind][large], "STEPS": steps}.items():
        text = text.replace(name, str(value))
    return text
