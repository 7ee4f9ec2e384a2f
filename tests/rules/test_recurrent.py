"""Recurrent networks become functions and cells of the file around `tf.keras.layers.RNN`."""

from __future__ import annotations

import pytest

from tests.rules.programs import program, run_or_blocked

RUN = "net, state = tf.nn.dynamic_rnn(cell, net, dtype=tf.float32)\nnet = net[:, -1]"
CELL = "cell = tf.nn.rnn_cell.GRUCell(4)\n"


def migrated(network: str, keras: str = "2") -> tuple[str, list[str]]:
    """The new text, and the codes of what blocks it."""
    return run_or_blocked(program(network).replace("[[1.0]]", "[[[1.0], [2.0]]]"), keras)


@pytest.mark.parametrize(
    ("made", "becomes"),
    [
        (CELL, "cell = GRUCell(4)"),
        ("cell = tf.contrib.rnn.BasicLSTMCell(4, 0.5)\n", "cell = LSTMCell(4, 0.5)"),
        ("cell = tf.nn.rnn_cell.BasicLSTMCell(4, state_is_tuple=True)\n", "cell = LSTMCell(4)"),
        (
            "cell = tf.nn.rnn_cell.LSTMCell(4, initializer=tf.orthogonal_initializer(), use_peepholes=False)\n",
            "cell = LSTMCell(4, initializer=tf.keras.initializers.Orthogonal())",
        ),
        ("cell = tf.nn.rnn_cell.BasicRNNCell(4, tf.nn.relu)\n", "cell = BasicRNNCell(4, tf.nn.relu)"),
        (
            "cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.GRUCell(n) for n in [4, 5]])\n",
            "cell = tf.keras.layers.StackedRNNCells([GRUCell(n) for n in [4, 5]])",
        ),
        (
            'cells = []\nfor n in params["sizes"]:\n    cells.append(tf.nn.rnn_cell.GRUCell(n))\n'
            "cell = tf.nn.rnn_cell.MultiRNNCell(cells)\n",
            "cells.append(GRUCell(n))",
        ),
    ],
)
def test_cells_become_classes_of_the_file(made: str, becomes: str) -> None:
    new, blocked = migrated(made + RUN)
    assert not blocked and f"    {becomes}\n" in new and "net, state = dynamic_rnn(cell, net)" in new


def test_the_type_of_the_weights_is_that_of_the_call() -> None:
    new, blocked = migrated(CELL + RUN.replace("32", "64"))
    assert not blocked and "GRUCell(4, dtype=tf.float64)" in new


@pytest.mark.parametrize(
    ("network", "becomes"),
    [
        (
            "other = tf.nn.rnn_cell.GRUCell(4)\n"
            "both, _ = tf.nn.bidirectional_dynamic_rnn(cell, other, net, dtype=tf.float32)\n"
            "net = tf.concat(both, 2)[:, 0]",
            "both, _ = bidirectional_dynamic_rnn(cell, other, net)",
        ),
        (
            "outs, _ = tf.nn.static_rnn(cell, tf.unstack(net, axis=1), dtype=tf.float32)\nnet = outs[-1]",
            "outs, _ = static_rnn(cell, tf.unstack(net, axis=1))",
        ),
        (
            "other = tf.nn.rnn_cell.GRUCell(4)\n"
            "outs, _, _ = tf.nn.static_bidirectional_rnn(cell, other, tf.unstack(net, axis=1), dtype=tf.float32)\n"
            "net = outs[-1]",
            "outs, _, _ = static_bidirectional_rnn(cell, other, tf.unstack(net, axis=1))",
        ),
        (
            "lengths = tf.reduce_sum(tf.ones_like(net, tf.int32), [1, 2])\n"
            "_, state = tf.nn.dynamic_rnn(cell, net, lengths, scope='words', dtype=tf.float32)\nnet = state",
            "_, state = dynamic_rnn(cell, net, lengths)",
        ),
    ],
)
def test_what_runs_cells_becomes_a_function_of_the_file(network: str, becomes: str) -> None:
    new, blocked = migrated(CELL + network)
    assert not blocked and f"    {becomes}\n" in new and new.count("\ndef dynamic_rnn(") == 1


@pytest.mark.parametrize(
    "network",
    [
        "cell = tf.nn.rnn_cell.LSTMCell(4, use_peepholes=True)\n" + RUN,
        "cell = tf.nn.rnn_cell.LSTMCell(4, num_proj=3)\n" + RUN,
        "cell = tf.nn.rnn_cell.BasicLSTMCell(4, state_is_tuple=False)\n" + RUN,
        "cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.GRUCell(1)] * 2)\n" + RUN,  # one cell in two layers
        CELL + "start = cell.zero_state(1, tf.float32)\n" + RUN,
        CELL + "net, state = cell(net[:, 0], net[:, 0, :4])",
        CELL + RUN.replace("net, dtype", "net, time_major=True, dtype"),
        CELL + RUN.replace("net, dtype", "net, initial_state=net[:, 0], dtype"),
        # Two networks of one scope, whose variables AUTO_REUSE shares.
        'with tf.variable_scope("a", reuse=tf.AUTO_REUSE):\n'
        "    net, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(1), net, dtype=tf.float32)\n"
        "    net, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(1), net, dtype=tf.float32)\n"
        "net = net[:, 0]",
        # The scope's initializer starts the kernel.
        'with tf.variable_scope("a", initializer=tf.zeros_initializer()):\n    ' + (CELL + RUN).replace("\n", "\n    "),
    ],
)
def test_what_is_another_network_is_refused(network: str) -> None:
    _, blocked = migrated(network)
    assert set(blocked) & {"TFM203", "TFM705"}


TRAINS = "mode == tf.estimator.ModeKeys.TRAIN"


@pytest.mark.parametrize(
    ("wrapped", "becomes"),
    [
        ("cell = WRAP(cell, output_keep_prob=0.7)\n", "DropoutWrapper(cell, output_rate=0.3, always=True)"),
        (f"if {TRAINS}:\n    cell = WRAP(cell=cell, input_keep_prob=0.8)\n", "DropoutWrapper(cell, input_rate=0.2)"),
        (
            f"keep = 0.5 if {TRAINS} else 1.0\ncell = WRAP(cell, 1.0, keep, state_keep_prob=1.0)\n",
            "DropoutWrapper(cell, output_rate=0.5)",
        ),
    ],
)
def test_a_wrapper_drops_when_it_did(wrapped: str, becomes: str) -> None:
    new, blocked = migrated(CELL + wrapped.replace("WRAP", "tf.contrib.rnn.DropoutWrapper") + RUN)
    assert not blocked and f"    cell = {becomes}\n" in new


@pytest.mark.parametrize(
    "given", ["0.5, 0.5 if TRAINS else 1.0", "state_keep_prob=0.5", "0.5, variational_recurrent=True"]
)
def test_a_wrapper_that_drops_in_other_ways_is_refused(given: str) -> None:
    wrapped = f"cell = tf.nn.rnn_cell.DropoutWrapper(cell, {given})\n".replace("TRAINS", TRAINS)
    assert set(migrated(CELL + wrapped + RUN)[1]) & {"TFM106", "TFM203"}


def test_a_cell_that_runs_twice_has_its_weights_once() -> None:
    """As in TensorFlow 1.15, where a cell is a layer that is built once."""
    twice = "net, state = tf.nn.dynamic_rnn(cell, net, dtype=tf.float32)\n"
    new, blocked = migrated("cell = tf.nn.rnn_cell.GRUCell(1)\n" + twice * 2 + "net = net[:, -1]")
    assert not blocked and new.count("dynamic_rnn(cell, net)") == 2 and new.count(" GRUCell(1)") == 1


def test_keras_3_was_not_tried() -> None:
    assert "TFM203" in migrated(CELL + RUN, keras="3")[1]
