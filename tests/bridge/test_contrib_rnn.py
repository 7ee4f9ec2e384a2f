"""Fused LSTMs, stacks of two directions, embeddings of sequences: names, numbers and gradients of TensorFlow 1.15.5."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bridge.sides import TENSORFLOW1, run_both
from tests.bridge.test_core import close

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(not TENSORFLOW1, reason="no TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set"),
]

SETUP = """\
    import tensorflow
"""
PROGRAM = """
rnn = tensorflow.contrib.rnn if OLD else est
embed_sequence = tensorflow.contrib.layers.embed_sequence if OLD else est.embed_sequence
X = np.random.RandomState(0).randn(5, 3, 4).astype("f")
LENGTHS = [5, 2, 3]


def run(name, build):
    with tf.Graph().as_default():
        x = tf.constant(X)
        made = tf.nest.flatten(build(x))
        variables = tf.trainable_variables()
        gradients = tf.gradients(tf.add_n([tf.reduce_sum(one * one) for one in made]), [x, *variables])
        found[name + " names"] = [[v.name, v.shape.as_list()] for v in tf.global_variables()]
        with tf.Session() as session:
            for number, v in enumerate(variables):
                count = int(np.prod(v.shape.as_list()))
                v.load(np.sin(np.arange(count) + number).reshape(v.shape.as_list()).astype("f"), session)
            found[name] = session.run(made + [tf.convert_to_tensor(one) for one in gradients])


run("fused", lambda x: rnn.LSTMBlockFusedCell(6)(x, dtype=tf.float32))
run("lengths", lambda x: rnn.LSTMBlockFusedCell(6, 0.5, 2.0, True)(x, dtype=tf.float32, sequence_length=LENGTHS))
run("first", lambda x: rnn.LSTMBlockFusedCell(4, name="a")(x, initial_state=(x[0], x[1])))
backward = lambda: rnn.TimeReversedFusedRNN(rnn.LSTMBlockFusedCell(6))
run("reversed", lambda x: backward()(x, dtype=tf.float32, sequence_length=LENGTHS))
run("reversed whole", lambda x: backward()(x, dtype=tf.float32))
run("cell", lambda x: tf.nn.dynamic_rnn(rnn.LSTMBlockCell(6), x, dtype=tf.float32, time_major=True))
run("peepholes", lambda x: rnn.LSTMBlockCell(4, 0.3, 2.0, True)(x[0], (x[1], x[2])))
cudnn = tensorflow.contrib.cudnn_rnn if OLD else est
run("cudnn", lambda x: tf.nn.dynamic_rnn(
    tf.nn.rnn_cell.MultiRNNCell([cudnn.CudnnCompatibleLSTMCell(3), cudnn.CudnnCompatibleLSTMCell(2)]),
    x, dtype=tf.float32, time_major=True))
cells = lambda: [tf.nn.rnn_cell.BasicLSTMCell(3), tf.nn.rnn_cell.GRUCell(2)]
run("stacked", lambda x: rnn.stack_bidirectional_dynamic_rnn(
    cells(), cells(), tf.transpose(x, [1, 0, 2]), dtype=tf.float32, sequence_length=LENGTHS))
run("embedded", lambda x: [
    embed_sequence([[1, 2], [0, 1]], 5, 3) * tf.reduce_sum(x), embed_sequence([3], 5, 2, scope="e")])
"""
NAMES = ["fused", "lengths", "first", "reversed", "reversed whole", "cell", "peepholes", "cudnn", "stacked", "embedded"]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    return run_both(PROGRAM, tmp_path_factory.mktemp("rnn"), ("contrib_rnn",), SETUP)


@pytest.mark.parametrize("what", [one for name in NAMES for one in (name, f"{name} names")])
def test_same_numbers_and_names(what: str, sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    old, new = sides
    assert close(old[what], new[what]), (old[what], new[what])
