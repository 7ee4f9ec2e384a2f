"""Cells of tf.contrib.rnn: names, numbers and gradients of TensorFlow 1.15.5."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bridge.sides import TENSORFLOW1, run_new, run_old
from tests.bridge.test_core import close

pytestmark = pytest.mark.tensorflow

SETUP = """\
    import tensorflow
    from tensorflow.contrib.rnn.python.ops import core_rnn_cell
    tensorflow.contrib.rnn.linear_of_parts = core_rnn_cell._linear
    tensorflow.contrib.rnn.LinearOfParts = core_rnn_cell._Linear
"""
MODULES = ("contrib_cells",)
NOTED = Path(__file__).with_name("noted") / "contrib_cells.json"
PROGRAM = """
rnn = tensorflow.contrib.rnn if OLD else est
X = np.random.RandomState(0).randn(3, 4, 3).astype("f")
LENGTHS = [4, 2, 3]
cells = tf.nn.rnn_cell


def run(name, build):
    with tf.Graph().as_default():
        x = tf.constant(X)
        made = [one for one in tf.nest.flatten(build(x))]
        variables = tf.trainable_variables()
        gradients = tf.gradients(tf.add_n([tf.reduce_sum(one * one) for one in made]), [x, *variables])
        found[name + " names"] = [[v.name, v.shape.as_list()] for v in tf.global_variables()]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            starts = session.run([v for v in variables if v.shape.rank == 1])
            for number, v in enumerate(variables):
                count = int(np.prod(v.shape.as_list()))
                v.load(np.sin(np.arange(count) + number).reshape(v.shape.as_list()).astype("f") * 0.5, session)
            found[name] = [np.round(one.astype("d"), 6) for one in session.run(
                made + [tf.convert_to_tensor(one) for one in gradients if one is not None])]
            if "embedded" not in name and "high" not in name and "conv" not in name:
                found[name + " starts"] = [one for one in starts if len(set(one.tolist())) == 1]


def dynamic(cell):
    return lambda x: tf.nn.dynamic_rnn(cell(), x, LENGTHS, dtype=tf.float32)


run("normed", dynamic(lambda: rnn.LayerNormBasicLSTMCell(3)))
run("normed otherwise", dynamic(lambda: rnn.LayerNormBasicLSTMCell(2, 0.5, activation=tf.sigmoid, norm_gain=0.5,
                                                                     norm_shift=0.1)))
run("not normed", dynamic(lambda: rnn.LayerNormBasicLSTMCell(3, layer_norm=False)))
run("highway", dynamic(lambda: rnn.HighwayWrapper(cells.GRUCell(3))))
run("highways", dynamic(lambda: rnn.HighwayWrapper(cells.GRUCell(3), False, 0.5)))
run("projected", dynamic(lambda: rnn.InputProjectionWrapper(cells.GRUCell(2), 5, tf.tanh)))
run("projects", dynamic(lambda: rnn.OutputProjectionWrapper(cells.BasicLSTMCell(2), 4)))
run("projects more", dynamic(lambda: rnn.OutputProjectionWrapper(
    rnn.InputProjectionWrapper(cells.GRUCell(2), 4), 3, tf.nn.relu)))
run("embedded", lambda x: [tf.reduce_sum(x)] + list(tf.nn.dynamic_rnn(
    rnn.EmbeddingWrapper(cells.GRUCell(2), 5, 3), tf.constant([[[1], [4]], [[0], [2]]]), dtype=tf.float32)))
run("attends", dynamic(lambda: rnn.AttentionCellWrapper(cells.BasicLSTMCell(3), 2)))
run("attends otherwise", dynamic(lambda: rnn.AttentionCellWrapper(cells.GRUCell(2), 3, 4, 5, 6)))
run("block", dynamic(lambda: rnn.GRUBlockCell(3)))
run("block 2", dynamic(lambda: rnn.GRUBlockCellV2(cell_size=2, name="mine")))
run("linear", lambda x: rnn.linear_of_parts([x[:, 0], x[:, 1]], 4, True, tf.constant_initializer(0.5)))


def maps(x):
    with tf.variable_scope("mine", initializer=tf.ones_initializer(), partitioner=tf.fixed_size_partitioner(2)):
        made = rnn.LinearOfParts(x[:, 0], 3, True)
    return [made(x[:, 1]), rnn.linear_of_parts(x[:, 2], 2, False)]


run("linear maps", maps)
run("searched", dynamic(lambda: rnn.NASCell(3)))
run("searched, with a bias, projected", dynamic(lambda: rnn.NASCell(4, num_proj=2, use_bias=True)))
run("update", dynamic(lambda: rnn.UGRNNCell(3, forget_bias=0.3)))
run("convolved", lambda x: tf.nn.dynamic_rnn(
    rnn.Conv1DLSTMCell(input_shape=[3, 2], output_channels=2, kernel_shape=[2]),
    tf.stack([x, x * 2], -1), dtype=tf.float32))
run("convolved twice", lambda x: tf.nn.dynamic_rnn(
    rnn.Conv2DLSTMCell(input_shape=[3, 2, 1], output_channels=2, kernel_shape=[3, 2], use_bias=False),
    tf.stack([x, x * 2], -1)[..., None], dtype=tf.float32))
thrice = lambda: rnn.ConvLSTMCell(3, [3, 2, 1, 1], 2, [2, 2, 1], skip_connection=True, forget_bias=0.2)
run("convolved thrice", lambda x: thrice()(
    tf.stack([x, x * 2], -1)[:, 0, :, :, None, None], [tf.ones([3, 3, 2, 1, 2])] * 2))
run("stacked", lambda x: rnn.stack_bidirectional_rnn(
    [cells.GRUCell(2), cells.GRUCell(3)], [cells.GRUCell(2), cells.GRUCell(3)],
    tf.unstack(rnn.transpose_batch_time(x)), dtype=tf.float32, sequence_length=LENGTHS))
coupled = rnn.CoupledInputForgetGateLSTMCell
run("coupled", dynamic(lambda: coupled(3)))
run("coupled, in shards", dynamic(lambda: coupled(3, True, None, 2, 0.1, 2, 2, 0.5)))
run("coupled, normed", dynamic(lambda: coupled(3, layer_norm=True, norm_gain=0.5, norm_shift=0.1)))
run("coupled, of one state", dynamic(lambda: coupled(3, num_proj=2, state_is_tuple=False, activation=tf.sigmoid)))
run("intersects", dynamic(lambda: rnn.IntersectionRNNCell(3, forget_bias=0.4)))
run("intersects, projected", dynamic(lambda: rnn.IntersectionRNNCell(4, 4, y_activation=tf.tanh)))
run("groups", dynamic(lambda: rnn.GLSTMCell(6, number_of_groups=3)))
run("groups, projected", lambda x: tf.nn.dynamic_rnn(
    rnn.GLSTMCell(4, None, 2, 2, 0.2, tf.sigmoid), tf.concat([x, x[:, :, :1]], 2), dtype=tf.float32))
phased = lambda cell, dtype=tf.float32: lambda x: tf.nn.dynamic_rnn(
    cell(), (tf.cast(np.arange(12).reshape(3, 4, 1) * 0.37, dtype), x), LENGTHS, dtype=tf.float32)
run("phased", phased(lambda: rnn.PhasedLSTMCell(3)))
run("phased, peeps", phased(lambda: rnn.PhasedLSTMCell(3, True, 0.1, 0.4, False, 2.0, 5.0), tf.float64))
with tf.Graph().as_default(), tf.Session() as session:
    rnn.PhasedLSTMCell(200, period_init_min=2.0, period_init_max=5.0)(
        (tf.ones([1, 1]), tf.ones([1, 1])), [tf.ones([1, 200])] * 2)
    session.run(tf.global_variables_initializer())
    period, phase = session.run([v for v in tf.global_variables() if v.op.name.endswith(("period", "phase"))])
    found["phases"] = [bool((period >= 2).all()), bool((period <= 5).all()), bool((phase <= period).all()),
                       bool((phase > 2).any()), bool((phase >= 0).all()), len(set(period)) > 150]
run("simple", dynamic(lambda: rnn.SRUCell(3)))
run("simple, named", dynamic(lambda: rnn.SRUCell(2, tf.sigmoid, name="mine")))
run("alone", dynamic(lambda: rnn.IndRNNCell(3)))
run("alone, GRU", dynamic(lambda: rnn.IndyGRUCell(3, tf.sigmoid)))
run("alone, GRU, begun", dynamic(lambda: rnn.IndyGRUCell(2, bias_initializer=tf.constant_initializer(0.3))))
run("alone, LSTM", dynamic(lambda: rnn.IndyLSTMCell(3, 0.4)))


class Own(rnn.LayerRNNCell):
    state_size = output_size = 3

    def build(self, shape):
        self.kernel = self.add_variable("own/kernel", [int(shape[1]), 3])
        self.built = True

    def call(self, inputs, state):
        return inputs @ self.kernel, state + inputs


run("own", dynamic(lambda: Own(name="mine")))
run("own in layers", dynamic(lambda: cells.MultiRNNCell([Own(), rnn.SRUCell(3), rnn.IndRNNCell(2)])))
"""


def test_names_and_numbers_noted_from_1_15_5(tmp_path: Path) -> None:
    noted, new = json.loads(NOTED.read_text()), run_new(PROGRAM, tmp_path, MODULES)
    assert not {what: (noted[what], new[what]) for what in noted if not close(noted[what], new[what])}


@pytest.mark.skipif(not TENSORFLOW1, reason="no TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set")
def test_names_and_numbers_noted_are_those_of_1_15_5(tmp_path: Path) -> None:
    assert close(json.loads(NOTED.read_text()), run_old(PROGRAM, tmp_path, MODULES, SETUP))
