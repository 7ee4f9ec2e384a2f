"""Programs with layers of their own, loops that decode, and drivers that write scalars, with their proofs."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from migrator.harness.cluster import ClusterShape, Launch
from tests.end_to_end.proving import Servers, prove_project
from tests.rules.programs import run_project

pytestmark = pytest.mark.tensorflow

_LAYERS = """\
import tensorflow as tf


class Table(tf.layers.Layer):
    def __init__(self, size, depth):
        super(Table, self).__init__()
        self.size, self.depth, self.scope = size, depth, None

    def build(self, _):
        with tf.variable_scope("shared", reuse=tf.AUTO_REUSE):
            start = tf.random_normal_initializer(0.0, self.depth ** -0.5)
            self.weights_of_words = tf.get_variable("weights", [self.size, self.depth], initializer=start)
        self.built = True

    def call(self, words):
        return tf.gather(self.weights_of_words, words) * self.depth ** 0.5

    def scores(self, x):
        with tf.name_scope(self.scope, "scores", [x]):
            return tf.tensordot(x, self.weights_of_words, [[-1], [1]])


class Norm(tf.layers.Layer):
    def __init__(self, depth):
        super(Norm, self).__init__()
        self.depth = depth

    def build(self, _):
        self.scale = tf.get_variable("scale", [self.depth], initializer=tf.ones_initializer())
        self.bias = self.add_variable("bias", [self.depth], initializer=tf.zeros_initializer())
        self.built = True

    def call(self, x, epsilon=1e-6):
        mean = tf.reduce_mean(x, axis=[-1], keepdims=True)
        variance = tf.reduce_mean(tf.square(x - mean), axis=[-1], keepdims=True)
        return (x - mean) * tf.rsqrt(variance + epsilon) * self.scale + self.bias


class Stack(tf.layers.Layer):
    def __init__(self, params):
        super(Stack, self).__init__()
        self.parts = []
        for _ in range(2):
            dense = tf.layers.Dense(params["depth"], use_bias=False, activation=tf.nn.relu, name="q")
            self.parts.append((dense, Norm(params["depth"])))
        self.last = Norm(params["depth"])

    def call(self, x, memory=None):
        for number, (dense, norm) in enumerate(self.parts):
            with tf.variable_scope("layer_%d" % number):
                with tf.variable_scope("inner"):
                    x = x + dense(norm(x))
                if memory is not None:
                    x = x + tf.expand_dims(memory, 1)
        return self.last(x)


class Network(object):
    def __init__(self, params):
        self.params = params
        self.table = Table(params["words"], params["depth"])
        self.encoder = Stack(params)
        self.decoder = Stack(params)

    def __call__(self, inputs, targets=None):
        start = tf.variance_scaling_initializer(1.0, mode="fan_avg", distribution="uniform")
        with tf.variable_scope("network", initializer=start):
            with tf.variable_scope("encode"):
                memory = tf.reduce_mean(self.encoder(self.table(inputs)), axis=1)
            if targets is None:
                return self.guess(memory)
            with tf.variable_scope("decode"):
                shifted = tf.pad(self.table(targets), [[0, 0], [1, 0], [0, 0]])[:, :-1, :]
                return self.table.scores(self.decoder(shifted, memory))

    def guess(self, memory):
        def go_on(i, words, total):
            return tf.logical_and(i < self.params["longest"], tf.reduce_all(total > -1e9))

        def step(i, words, total):
            with tf.variable_scope("decode"):
                seen = tf.pad(self.table(words), [[0, 0], [1, 0], [0, 0]])
                scores = self.table.scores(self.decoder(seen, memory)[:, -1:, :])
            best = tf.to_int32(tf.argmax(scores, axis=-1))
            return i + 1, tf.concat([words, best], axis=1), total + tf.reduce_max(scores, axis=[1, 2])

        empty = tf.zeros([tf.shape(memory)[0], 0], dtype=tf.int32)
        shapes = [tf.TensorShape([]), tf.TensorShape([None, None]), tf.TensorShape([None])]
        _, words, total = tf.while_loop(
            go_on, step, [0, empty, tf.zeros_like(memory[:, 0])], shape_invariants=shapes, back_prop=False)
        return {"words": words, "scores": total}
"""

_MODEL = """\
import tensorflow as tf

import layers


def model_fn(features, labels, mode, params):
    with tf.variable_scope("model"):
        output = layers.Network(params)(features, labels)
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(tf.estimator.ModeKeys.PREDICT, predictions=output)
        with tf.name_scope("loss", values=[output, labels]):
            errors = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=output)
            weights = tf.to_float(tf.not_equal(labels, 0))
            loss = tf.reduce_sum(errors * weights) / tf.reduce_sum(weights)
        if mode == tf.estimator.ModeKeys.EVAL:
            return tf.estimator.EstimatorSpec(
                mode=mode, loss=loss, predictions={"scores": output}, eval_metric_ops=all_metrics(output, labels))
        return tf.estimator.EstimatorSpec(mode=mode, loss=loss, train_op=get_train_op(loss, params))


def averaged(metric_fn):
    def metric(*args):
        scores, weights = metric_fn(*args)
        return tf.metrics.mean(scores, weights)
    return metric


def hits(scores, labels):
    with tf.variable_scope("hits", values=[scores, labels]):
        found = tf.to_int32(tf.argmax(scores, axis=-1))
        return tf.to_float(tf.equal(found, labels)), tf.to_float(tf.not_equal(labels, 0))


def all_metrics(scores, labels):
    metrics = {"hits": averaged(hits)(scores, labels)}
    return {"metrics/%s" % name: value for name, value in metrics.items()}


def get_rate(rate, warmup_steps):
    with tf.name_scope("rate"):
        step = tf.to_float(tf.train.get_or_create_global_step())
        rate *= tf.minimum(1.0, (step + 1.0) / tf.to_float(warmup_steps))
        tf.summary.scalar("rate", rate)
        return rate


def get_train_op(loss, params):
    with tf.variable_scope("get_train_op"):
        optimizer = tf.train.MomentumOptimizer(get_rate(params["rate"], 3), 0.9)
        variables = tf.trainable_variables()
        gradients = optimizer.compute_gradients(loss, variables, colocate_gradients_with_ops=True)
        train_op = optimizer.apply_gradients(gradients, global_step=tf.train.get_global_step(), name="train")
        tf.summary.scalar("norm", tf.global_norm(list(zip(*gradients))[0]))
        return train_op
"""

_TRANSLATE = """\
import sys

import numpy as np
import tensorflow as tf

import model

PARAMS = {"words": 11, "depth": 4, "longest": 3, "rate": 0.2}


def translate(estimator, sentences):
    def input_fn():
        return tf.data.Dataset.from_tensor_slices(sentences).batch(4)

    return [one["words"] for one in estimator.predict(input_fn)]


def main():
    estimator = tf.estimator.Estimator(model.model_fn, model_dir=sys.argv[1], params=PARAMS)
    for words in translate(estimator, np.arange(24, dtype=np.int32).reshape(6, 4) % 11):
        print("words", words.tolist())


if __name__ == "__main__":
    main()
"""

_TRAIN = """\
import numpy as np
import tensorflow as tf

import model
import translate


def examples():
    random = np.random.RandomState(5)
    inputs = random.randint(1, 11, size=(20, 4)).astype(np.int32)
    return inputs, (inputs[:, ::-1] * 3 % 11).astype(np.int32)


def train_input_fn(params):
    return tf.data.Dataset.from_tensor_slices(examples()).batch(4)


def note(estimator, writer):
    found = translate.translate(estimator, examples()[0][:6])
    share = float(len(found)) / 32
    summary = tf.Summary(value=[
        tf.Summary.Value(tag="scores/share", simple_value=share),
        tf.Summary.Value(tag="scores/half", simple_value=share / 2),
    ])
    writer.add_summary(summary, int(estimator.latest_checkpoint().split("-")[-1]))
    writer.flush()


def schedule(estimator):
    with tf.Graph().as_default():
        writer = tf.summary.FileWriter(estimator.model_dir + "/scores")
    for _ in range(1):
        estimator.train(train_input_fn, steps=None)
        print(estimator.evaluate(train_input_fn))
        note(estimator, writer)
    writer.close()


if __name__ == "__main__":
    schedule(tf.estimator.Estimator(model_fn=model.model_fn, model_dir="model", params=translate.PARAMS))
"""
#: Instead of `print`: what a program says is written down.
_NOTE = "(lambda path, line: open(path, 'a').write(str(line) + '\\n'))"
PROJECT = {"layers.py": _LAYERS, "model.py": _MODEL, "translate.py": _TRANSLATE, "train.py": _TRAIN}


def test_layers_of_its_own_train_the_same_and_the_driver_writes_the_same(servers: Servers, tmp_path: Path) -> None:
    prove_project(PROJECT, "train.py", servers, tmp_path, style="bridge")
    for run in ("original-run", "migrated-run"):
        events = b"".join(path.read_bytes() for path in (tmp_path / run).rglob("scores/events*"))
        for tag, value in ((b"scores/share", 6 / 32), (b"scores/half", 3 / 32)):
            at = events.index(tag)
            around = events[max(0, at - 60) : at + 60]  # the message is that short, and its step stands before the tag
            assert struct.pack("<f", value) in around
            assert b"\x10\x05" in around, around  # field 2 of an event: step 5


def test_a_program_that_only_predicts_reads_the_checkpoint_of_a_training(servers: Servers, tmp_path: Path) -> None:
    """The migrated translate.py predicts with the checkpoint of TensorFlow 1 what the original predicts with it."""
    texts = {path: text for path, (text, _) in run_project(PROJECT, style="bridge").items()}
    model_dir = tmp_path / "model"
    shown = []
    for server, kind, files in ((servers[0], "original", PROJECT), (servers[1], "migrated", texts)):
        folder = tmp_path / kind
        folder.mkdir()
        for name, text in files.items():
            where = text.replace('"model"', repr(str(model_dir))) if name == "train.py" else text
            (folder / name).write_text(
                where.replace('print("words", words', f'{_NOTE}("{folder}/words", words'), "utf-8"
            )
        for script in ("train.py", "translate.py")[kind == "migrated" :]:
            run = tmp_path / f"{kind}-{script}"
            run.mkdir()
            launch = Launch(kind, folder / script, (str(model_dir),), ClusterShape.parse(""), run)
            outcome = server.run(launch)
            assert outcome.failure is None, outcome.failure
        shown.append((folder / "words").read_text(encoding="utf-8").splitlines())
    assert len(shown[0]) == 6 and shown[0] == shown[1]


# A class derived from Estimator that keeps its optimizer, chosen by a name, and its networks in attributes.
_DERIVED = """\
import numpy as np
import tensorflow as tf

OPTIMIZERS = {"Adagrad": tf.train.AdagradOptimizer, "SGD": tf.train.GradientDescentOptimizer}


def plain(features, mode, params):
    table = tf.get_variable("table", [12, params["depth"]], initializer=tf.random_normal_initializer())
    net = tf.reduce_mean(tf.nn.embedding_lookup(table, features), axis=1)
    return tf.layers.dense(net, 1)


def shared(features, mode, params):
    known = tf.get_collection("words seen")
    if known:
        (words,) = known
    else:
        words = tf.one_hot(features, 12)
        tf.add_to_collection("words seen", words)
    cell = tf.nn.rnn_cell.BasicLSTMCell(num_units=params["depth"])
    outputs, _ = tf.nn.dynamic_rnn(cell, words, dtype=tf.float32)
    return tf.layers.dense(outputs[:, -1], 1)


class Net(tf.estimator.Estimator):
    def __init__(self, params, model_dir=None, optimizer="Adagrad", config=None):
        self.optimizer = OPTIMIZERS[optimizer](params["rate"])
        self.networks = {"plain": plain, "shared": shared}

        def _model_fn(features, labels, mode, params):
            logits = 0.0
            for name in params["networks"]:
                with tf.variable_scope(name):
                    logits += self.networks[name](features, mode, params)
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
            tf.add_to_collection("losses", loss)
            tf.add_to_collection("losses", 0.01 * self.size(logits))
            loss = tf.add_n(tf.get_collection("losses"))
            if mode == tf.estimator.ModeKeys.EVAL:
                return tf.estimator.EstimatorSpec(mode, loss=loss)
            train_op = self.optimizer.minimize(loss, global_step=tf.train.get_global_step())
            return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

        super(Net, self).__init__(model_fn=_model_fn, model_dir=model_dir, params=params, config=config)

    def size(self, x):
        return self._params["size"] * tf.reduce_mean(tf.square(x))


def input_fn():
    words = np.random.RandomState(2).randint(0, 12, size=(20, 5))
    return tf.data.Dataset.from_tensor_slices((words, (words[:, :1] % 2).astype(np.float32))).batch(4)


def main():
    params = {"rate": 0.3, "depth": 3, "networks": ["plain", "shared", "shared"][:2], "size": 2.0}
    net = Net(params, "model", optimizer="SGD")
    net.train(input_fn, steps=5)
    print(net.evaluate(input_fn))


if __name__ == "__main__":
    main()
"""


def test_a_class_derived_from_estimator_that_keeps_its_optimizer(servers: Servers, tmp_path: Path) -> None:
    prove_project({"train.py": _DERIVED}, "train.py", servers, tmp_path, style="bridge")


# A recurrent network that is asked in a loop, each time with the state of the time before.
_ASKED = """\
import numpy as np
import tensorflow as tf


def input_fn():
    words = np.random.RandomState(2).randint(1, 9, size=(20, 6))
    return tf.data.Dataset.from_tensor_slices({"words": words, "length": words[:, 0] % 3 + 4}).batch(4)


def model_fn(features, labels, mode):
    words = features["words"]
    with tf.variable_scope("main", initializer=tf.glorot_uniform_initializer()):
        table = tf.get_variable("table", [9, 4], dtype=tf.float32)
        cells = [tf.nn.rnn_cell.GRUCell(3) for _ in range(2)]
        cell = tf.nn.rnn_cell.MultiRNNCell(cells, state_is_tuple=False)
        net = tf.nn.embedding_lookup(table, words)
        if mode == tf.estimator.ModeKeys.PREDICT:
            net, state = tf.nn.dynamic_rnn(cell, net, initial_state=features["state"], scope="rnn")
        else:
            net, state = tf.nn.dynamic_rnn(cell, net, sequence_length=features["length"], dtype=tf.float32, scope="rnn")
        logits = tf.layers.dense(net, 9, name="logits")
        if mode == tf.estimator.ModeKeys.PREDICT:
            predictions = {"state": features["state"] + 1.0, "real": tf.convert_to_tensor(state)}
            return tf.estimator.EstimatorSpec(mode, predictions=predictions)
        weights = tf.sign(tf.abs(tf.cast(words[:, 1:], tf.float32)))
        loss = tf.losses.sparse_softmax_cross_entropy(words[:, 1:], logits[:, :-1], weights=weights)
        variables = tf.trainable_variables()
        gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 0.5)
        rate = tf.train.exponential_decay(0.5, tf.train.get_global_step(), 2, 0.9)
        optimizer = tf.train.GradientDescentOptimizer(rate)
        train_op = optimizer.apply_gradients(zip(gradients, variables), global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def train():
    estimator = tf.estimator.Estimator(model_fn, "model")
    estimator.train(input_fn, steps=5)


def ask():
    estimator = tf.estimator.Estimator(model_fn, "model")
    state = np.zeros((1, 6), np.float32)
    for time in range(3):
        asked = tf.estimator.inputs.numpy_input_fn({"words": np.ones((1, 1), np.int64), "state": state}, shuffle=False)
        answer = next(estimator.predict(asked))
        state = np.expand_dims(answer["state"], 0)
        assert state[0, 0] == time + 1 and answer["real"].shape == (6,), answer


train()
ask()
"""


def test_predictions_in_a_loop_are_fed_what_came_before(servers: Servers, tmp_path: Path) -> None:
    prove_project({"train.py": _ASKED}, "train.py", servers, tmp_path, style="bridge")
