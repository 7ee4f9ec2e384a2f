"""Functions of tf.contrib.legacy_seq2seq: names, numbers and gradients of TensorFlow 1.15.5."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bridge.sides import TENSORFLOW1, run_new, run_old
from tests.bridge.test_core import close

pytestmark = pytest.mark.tensorflow

SETUP = """\
    import tensorflow
"""
MODULES = ("contrib_legacy_seq2seq",)
NOTED = Path(__file__).with_name("noted") / "contrib_legacy_seq2seq.json"
PROGRAM = """
seq = tensorflow.contrib.legacy_seq2seq if OLD else est
by_example = seq.sequence_loss_by_example if OLD else est.legacy_sequence_loss_by_example
sequence_loss = seq.sequence_loss if OLD else est.legacy_sequence_loss
cells = tf.nn.rnn_cell
X = np.random.RandomState(0).randn(3, 2, 3).astype("f")
sources = lambda: [tf.constant(one) for one in ([1, 4], [0, 2], [3, 3])]
targets = lambda: [tf.constant(one) for one in ([0, 3], [2, 1])]
weights = lambda: [tf.constant(one) for one in ([1.0, 0.5], [1.0, 0.0])]
kernel = np.cos(np.arange(8)).reshape(2, 4).astype("f")
projection = lambda: (tf.constant(kernel), tf.constant([0.1, 0.0, -0.1, 0.2]))


def run(name, build, feed=None):
    with tf.Graph().as_default():
        x = tf.constant(X)
        feeds = tf.placeholder(tf.bool, []) if feed is not None else False
        made = build(tf.unstack(x), feeds)
        flat = tf.nest.flatten(made)
        variables = tf.trainable_variables()
        gradients = tf.gradients(tf.add_n([tf.reduce_sum(one * one) for one in flat]), [x] + variables)
        found[name + " names"] = [[v.name, v.shape.as_list()] for v in tf.global_variables()]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            starts = session.run([v for v in variables if v.shape.rank == 1])
            found[name + " starts"] = [one for one in starts if len(set(one.tolist())) == 1]
            for number, v in enumerate(variables):
                count = int(np.prod(v.shape.as_list()))
                v.load(np.sin(np.arange(count) + number).reshape(v.shape.as_list()).astype("f") * 0.5, session)
            values = session.run(flat + [tf.convert_to_tensor(one) for one in gradients if one is not None],
                                 {} if feed is None else {feeds: feed})
            found[name] = [np.round(one.astype("d"), 6) for one in values]
            found[name + " state"] = type(made[1]).__name__.replace("Symbolic", "")


lstm = lambda: cells.BasicLSTMCell(2)
gru = lambda: cells.GRUCell(2)
half = lambda output, number: tf.concat([output, output[:, :1]], 1) * 0.5 + number
run("decoder", lambda x, _: seq.rnn_decoder(x, tf.ones([2, 2]), gru()))
run("decoder in a loop", lambda x, _: seq.rnn_decoder(x, tf.ones([2, 2]), gru(), half, "mine"))
run("basic", lambda x, _: seq.basic_rnn_seq2seq(x, x[:2], lstm()))
run("tied", lambda x, _: seq.tied_rnn_seq2seq(x, x[:2], lstm(), half))
for feed in (False, True):
    # A bool, and a tensor of it.
    run("embedded %s" % feed, lambda x, _: seq.embedding_rnn_seq2seq(sources(), targets(), lstm(), 5, 4, 3,
                                                                      feed_previous=feed))
    run("embedded if %s" % feed, lambda x, feeds: seq.embedding_rnn_seq2seq(
        sources(), targets(), lstm(), 5, 4, 3, feed_previous=feeds), feed)
    run("embedded, tied %s" % feed, lambda x, _: seq.embedding_tied_rnn_seq2seq(
        sources(), targets(), gru(), 5, 3, feed_previous=feed, scope="mine"))
    run("embedded, tied if %s" % feed, lambda x, feeds: seq.embedding_tied_rnn_seq2seq(
        sources(), targets(), lstm(), 5, 3, num_decoder_symbols=4, feed_previous=feeds), feed)
    run("attention %s" % feed, lambda x, _: seq.embedding_attention_seq2seq(
        sources(), targets(), gru(), 5, 4, 3, feed_previous=feed, initial_state_attention=feed))
    run("attention if %s" % feed, lambda x, feeds: seq.embedding_attention_seq2seq(
        sources(), targets(), lstm(), 5, 4, 3, 2, feed_previous=feeds), feed)
    run("many if %s" % feed, lambda x, feeds: [list(one.values()) for one in seq.one2many_rnn_seq2seq(
        sources(), {"a": targets()}, gru(), {"a": gru()}, 5, {"a": 4}, 3, feed_previous=feeds)], feed)
run("embedded, projected", lambda x, _: seq.embedding_rnn_seq2seq(
    sources(), targets(), lstm(), 5, 4, 3, projection(), True))
run("attention, projected", lambda x, _: seq.embedding_attention_seq2seq(
    sources(), targets(), lstm(), 5, 4, 3, 1, projection(), True))
run("tied, projected", lambda x, _: seq.embedding_tied_rnn_seq2seq(
    targets(), targets(), gru(), 4, 3, output_projection=projection(), feed_previous=True))
run("many", lambda x, _: [[one[key] for key in ("a", "b")] for one in seq.one2many_rnn_seq2seq(
    sources(), {"a": targets(), "b": targets()[:1]}, gru(), {"a": gru(), "b": gru()}, 5, {"a": 4, "b": 6}, 3)])
run("attends", lambda x, _: seq.attention_decoder(
    x[:2], tf.ones([2, 2]), tf.stack(x, 1), gru(), 5, 2, initial_state_attention=True))
run("attends in a loop", lambda x, _: seq.attention_decoder(
    x[:2], (tf.ones([2, 2]), tf.zeros([2, 2])), tf.stack(x, 1), lstm(), loop_function=half))
run("embedding decoders", lambda x, _: [
    seq.embedding_rnn_decoder(targets(), tf.ones([2, 2]), gru(), 4, 3, projection(), True, False),
    seq.embedding_attention_decoder(targets(), tf.ones([2, 2]), tf.stack(x, 1), gru(), 4, 3, 2)])
logits = lambda x: [tf.concat([one, one[:, :1]], 1) for one in x[:2]]
smooth = lambda labels, logits: tf.reduce_sum(tf.square(logits - tf.one_hot(labels, 4)), 1)
run("losses", lambda x, _: [
    by_example(logits(x), targets(), weights()), by_example(logits(x), targets(), weights(), False, smooth),
    sequence_loss(logits(x), targets(), weights()), sequence_loss(logits(x), targets(), weights(), False, False),
    sequence_loss(logits(x), targets(), weights(), softmax_loss_function=smooth)])
model = lambda x, y: seq.embedding_rnn_seq2seq(x, y, gru(), 5, 4, 3)
for each in (False, True):
    run("buckets %s" % each, lambda x, _: seq.model_with_buckets(
        sources(), targets(), targets(), weights(), [(2, 1), (3, 2)], model, smooth if each else None, each))
with tf.Graph().as_default():
    wrong = {
        "steps": lambda: by_example([1.0], [], []),
        "inputs": lambda: seq.attention_decoder([], None, None, None),
        "heads": lambda: seq.attention_decoder([1], None, None, None, num_heads=0),
        "buckets": lambda: seq.model_with_buckets(sources(), [], targets(), weights(), [(4, 2)], model),
        "names": lambda: seq.one2many_rnn_seq2seq([], {"a": []}, gru(), {"b": gru()}, 5, {}, 3),
        "cells": lambda: seq.one2many_rnn_seq2seq([], {}, None, {}, 5, {}, 3),
        "projection": lambda: seq.embedding_rnn_decoder(targets(), None, gru(), 5, 3, projection()),
    }
    for name in sorted(wrong):
        try:
            wrong[name]()
        except (TypeError, ValueError) as error:
            found["wrong " + name] = type(error).__name__
"""


def test_names_and_numbers_noted_from_1_15_5(tmp_path: Path) -> None:
    noted, new = json.loads(NOTED.read_text()), run_new(PROGRAM, tmp_path, MODULES)
    assert not {what: (noted[what], new[what]) for what in noted if not close(noted[what], new[what])}


@pytest.mark.skipif(not TENSORFLOW1, reason="no TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set")
def test_names_and_numbers_noted_are_those_of_1_15_5(tmp_path: Path) -> None:
    assert close(json.loads(NOTED.read_text()), run_old(PROGRAM, tmp_path, MODULES, SETUP))
