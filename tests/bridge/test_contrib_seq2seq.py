"""Attention and decoders of sequences: names, numbers and gradients of TensorFlow 1.15.5."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.bridge.sides import TENSORFLOW1, run_new, run_old
from tests.bridge.test_core import close

pytestmark = pytest.mark.tensorflow

SETUP = """\
    import tensorflow
"""
MODULES = ("contrib_attention", "contrib_seq2seq", "estimator", "specs")
NOTED = Path(__file__).with_name("noted") / "contrib_seq2seq.json"
PROGRAM = """
s2s = tensorflow.contrib.seq2seq if OLD else est
B, T, D, U, V = 3, 4, 2, 3, 5
RANDOM = np.random.RandomState(0)
MEMORY = RANDOM.randn(B, T, D).astype("f")
INPUTS = RANDOM.randn(B, 4, D).astype("f")
LENGTHS = [4, 2, 3]
cells = tf.nn.rnn_cell


def run(name, build, differentiates=True, maximum=5):
    with tf.Graph().as_default():
        memory, inputs = tf.constant(MEMORY), tf.constant(INPUTS)
        made = build(memory, inputs)
        flat = [one.stack() if isinstance(one, tf.TensorArray) else one for one in tf.nest.flatten(made)]
        variables = tf.trainable_variables()
        gradients = []
        if differentiates:
            total = tf.add_n([tf.reduce_sum(one * one) for one in flat if one.dtype == tf.float32])
            of = [memory, *variables]
            gradients = [
                tf.zeros_like(one) if gradient is None else tf.convert_to_tensor(gradient)
                for one, gradient in zip(of, tf.gradients(total, of))]
        found[name + " names"] = [[v.name, v.shape.as_list()] for v in tf.global_variables()]
        found[name + " shapes"] = [one.shape.as_list() for one in flat if one.dtype == tf.float32]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for number, v in enumerate(variables):
                count = int(np.prod(v.shape.as_list()))
                v.load(np.sin(np.arange(count) * 1.3 + number).reshape(v.shape.as_list()).astype("f"), session)
            found[name] = [np.round(one.astype("d"), 6) for one in session.run(flat + gradients)]


def wrapped(memory, kind, cell=None, tiled=1, lengths=LENGTHS, several=False, **settings):
    of_wrapper = {key: settings.pop(key) for key in list(settings) if key in (
        "attention_layer_size", "alignment_history", "output_attention", "cell_input_fn", "attention_layer")}
    if tiled > 1:
        memory, lengths = s2s.tile_batch(memory, tiled), s2s.tile_batch(tf.constant(lengths), tiled)
    mechanism = kind(U, memory, memory_sequence_length=lengths, **settings)
    if several:
        mechanism = [mechanism, s2s.LuongAttention(U, memory)]
    return s2s.AttentionWrapper(cell or cells.BasicLSTMCell(U), mechanism, **of_wrapper)


def decode(cell, helper, state=None, layer=None, **settings):
    state = cell.zero_state(B, tf.float32) if state is None else state
    return s2s.dynamic_decode(s2s.BasicDecoder(cell, helper, state, layer), **settings)


def trained(kind, impute=True, **settings):
    def build(memory, inputs):
        cell = wrapped(memory, kind, **settings)
        return decode(cell, s2s.TrainingHelper(inputs, LENGTHS), impute_finished=impute)
    return build


def beams(coverage=0.0, length=0.0, steps=5, attention=True, start=None, **settings):
    def build(memory, inputs):
        tokens = tf.fill([B], 1)
        if start is not None:
            tokens = tf.placeholder_with_default(tokens, [None])
            memory = tf.placeholder_with_default(memory, [None, None, D])
        embedding = tf.get_variable("embedding", [V, D])
        if attention:
            cell = wrapped(memory, s2s.LuongAttention, tiled=3, attention_layer_size=U, **settings)
        else:
            cell = cells.GRUCell(U)
        decoder = s2s.BeamSearchDecoder(
            cell, embedding, tokens, 2, cell.zero_state(tf.size(tokens) * 3, tf.float32), 3, tf.layers.Dense(V),
            length_penalty_weight=length, coverage_penalty_weight=coverage)
        made, state, lengths = s2s.dynamic_decode(decoder, maximum_iterations=steps)
        return made.predicted_ids, made.beam_search_decoder_output, lengths, state.lengths, state.log_probs, (
            state.cell_state, state.accumulated_attention_probs)
    return build


run("bahdanau", trained(s2s.BahdanauAttention))
run("normed", trained(s2s.BahdanauAttention, normalize=True, attention_layer_size=4, alignment_history=True))
run("luong", trained(s2s.LuongAttention, impute=False))
run("scaled", trained(
    s2s.LuongAttention, scale=True, attention_layer_size=2, output_attention=False, lengths=None,
    probability_fn=s2s.hardmax))
run("several", trained(s2s.BahdanauAttention, several=True, attention_layer_size=[2, 4], alignment_history=True))
run("several bare", trained(s2s.LuongAttention, several=True, score_mask_value=-5.0))
for mode in ("parallel", "recursive", "hard"):
    run("monotonic " + mode, trained(s2s.LuongMonotonicAttention, mode=mode, score_bias_init=0.3))
run("monotonic bahdanau", trained(s2s.BahdanauMonotonicAttention, normalize=True))
run("stacked", lambda memory, inputs: trained(
    s2s.LuongAttention, cell=cells.MultiRNNCell([cells.GRUCell(2), cells.LSTMCell(U)]), attention_layer_size=3)(
    memory, inputs))


def shared(memory, inputs):
    def build(training):
        with tf.variable_scope("decode", reuse=tf.AUTO_REUSE):
            embedding = tf.get_variable("embedding", [V, D])
            cell = wrapped(memory, s2s.BahdanauAttention, attention_layer_size=3)
            helper = (s2s.TrainingHelper(inputs, LENGTHS) if training else
                      s2s.GreedyEmbeddingHelper(embedding, tf.fill([B], 1), 2))
            first = cell.zero_state(B, tf.float32).clone(cell_state=cells.LSTMStateTuple(memory[:, 0, :1] * np.ones(
                (B, U), "f"), memory[:, 1, :1] * np.ones((B, U), "f")))
            return decode(cell, helper, first, tf.layers.Dense(V, use_bias=False), maximum_iterations=7)
    return build(True), build(False)


run("shared", shared)
run("time major", lambda memory, inputs: decode(
    cells.GRUCell(U), s2s.TrainingHelper(tf.transpose(inputs, [1, 0, 2]), LENGTHS, time_major=True),
    layer=tf.layers.Dense(V), output_time_major=True))
run("ended", lambda memory, inputs: decode(
    cells.GRUCell(U), s2s.TrainingHelper(inputs, [0, 1, 0]), scope="mine", impute_finished=True))


def custom(memory, inputs):
    helper = s2s.CustomHelper(
        lambda: (tf.fill([B], False), inputs[:, 0]),
        lambda time, outputs, state: tf.argmax(outputs, -1, output_type=tf.int32),
        lambda time, outputs, state, sample_ids: (tf.fill([B], time >= 2), outputs[:, :D], state))
    return decode(cells.GRUCell(U), helper)


run("custom", custom)
run("inference", lambda memory, inputs: decode(cells.GRUCell(U), s2s.InferenceHelper(
    lambda outputs: tf.sigmoid(outputs[:, :D]), [D], tf.float32, inputs[:, 1],
    lambda ids: ids[:, 0] > 0.55, lambda ids: ids * 2), maximum_iterations=6))
run("never sampled", lambda memory, inputs: decode(
    cells.GRUCell(V), s2s.ScheduledEmbeddingTrainingHelper(inputs, LENGTHS, tf.ones([V, D]), 0.0))[0].rnn_output)
run("never output", lambda memory, inputs: decode(cells.GRUCell(1), s2s.ScheduledOutputTrainingHelper(
    inputs[:, :, :1], LENGTHS, 0.0, auxiliary_inputs=inputs[:, :, 1:])))
run("with more", lambda memory, inputs: decode(cells.GRUCell(1), s2s.ScheduledOutputTrainingHelper(
    inputs[:, :, :1], LENGTHS, 1.0, auxiliary_inputs=inputs[:, :, 1:])))
run("always output", lambda memory, inputs: decode(cells.GRUCell(D), s2s.ScheduledOutputTrainingHelper(
    inputs, LENGTHS, 1.0, next_inputs_fn=lambda outputs: outputs * 3)))
run("always embedded", lambda memory, inputs: decode(cells.GRUCell(V), s2s.ScheduledEmbeddingTrainingHelper(
    inputs, LENGTHS, lambda ids: tf.ones([tf.size(ids), D]) * 0.5, 1.0))[0].rnn_output)
run("surely sampled", lambda memory, inputs: decode(cells.GRUCell(V), s2s.SampleEmbeddingHelper(
    tf.constant(np.arange(V * D, dtype="f").reshape(V, D)), tf.fill([B], 0), 4, softmax_temperature=1e-5, seed=1),
    maximum_iterations=4), False)
run("beams", beams(), False)
run("beams of a cell", beams(length=0.7, attention=False), False)
run("beams weighed", beams(coverage=0.3, length=1.1, steps=8, alignment_history=True), False)
run("beams in order", beams(coverage=0.3, length=1.1, steps=8, alignment_history=True, start="later"), False)
run("tree", lambda memory, inputs: s2s.gather_tree(
    tf.constant(RANDOM.randint(0, 5, [6, 3, 4]), tf.int32), tf.constant(RANDOM.randint(0, 4, [6, 3, 4]), tf.int32),
    [6, 3, 0], 2), False)
run("tiled", lambda memory, inputs: s2s.tile_batch((memory, tf.constant([1, 2, 3])), 2), False)
WEIGHTS = [[1.0, 1.0, 0.5, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
TARGETS = [[0, 1, 0, 1], [1, 1, 1, 1], [0, 0, 0, 0]]
for number in range(16):
    flags = [bool(number >> bit & 1) for bit in range(4)]
    try:
        build = lambda memory, inputs: s2s.sequence_loss(inputs, tf.constant(TARGETS), tf.constant(WEIGHTS), *flags)
        run("loss", build, False)
        found["loss %d" % number] = found.pop("loss")
        found.pop("loss names"), found.pop("loss shapes")
    except ValueError:
        found["loss %d" % number] = "ValueError"


def waves(shape, dtype=None, partition_info=None):
    return tf.cast(tf.reshape(tf.sin(tf.range(float(np.prod(shape or [1]))) * 1.7), shape), dtype or tf.float32)


def model_fn(features, labels, mode):
    source, lengths, batch = features["source"], features["length"], tf.shape(features["source"])[0]
    with tf.variable_scope("model", initializer=waves):
        embedding = tf.get_variable("embedding", [V, D])
        encoder, words = cells.GRUCell(U), tf.nn.embedding_lookup(embedding, source)
        memory, _ = tf.nn.dynamic_rnn(encoder, words, lengths, dtype=tf.float32)
        if mode == "infer":
            memory, lengths = s2s.tile_batch(memory, 2), s2s.tile_batch(lengths, 2)
        mechanism = s2s.BahdanauAttention(U, memory, memory_sequence_length=lengths, normalize=True)
        cell = s2s.AttentionWrapper(cells.BasicLSTMCell(U), mechanism, U, alignment_history=mode != "infer")
        out = tf.layers.Dense(V, use_bias=False, name="out")
        if mode == "infer":
            first = cell.zero_state(batch * 2, tf.float32)
            decoder = s2s.BeamSearchDecoder(cell, embedding, tf.fill([batch], 1), 2, first, 2, out, 0.5)
            made = s2s.dynamic_decode(decoder, maximum_iterations=6)[0]
            predictions = {"ids": made.predicted_ids, "scores": made.beam_search_decoder_output.scores}
            return est.EstimatorSpec(mode, predictions=predictions)
        starts = tf.nn.embedding_lookup(embedding, tf.concat([tf.ones_like(labels[:, :1]), labels[:, :-1]], 1))
        helper = s2s.TrainingHelper(starts, tf.fill([batch], tf.shape(labels)[1]))
        decoder = s2s.BasicDecoder(cell, helper, cell.zero_state(batch, tf.float32), out)
        made, state, _ = s2s.dynamic_decode(decoder, impute_finished=True, swap_memory=True)
    loss = s2s.sequence_loss(made.rnn_output, labels, tf.ones_like(labels, tf.float32))
    metrics = {"looked at": tf.metrics.mean(state.alignment_history.stack()[-1, :, 0])}
    train_op = tf.train.MomentumOptimizer(0.5, 0.9).minimize(loss, tf.train.get_global_step())
    return est.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def input_fn(labels=True):
    random = np.random.RandomState(1)
    x = {"source": random.randint(0, V, [12, 5]).astype("i"), "length": random.randint(1, 6, [12]).astype("i")}
    y = random.randint(0, V, [12, 3]).astype("i")
    return tf.data.Dataset.from_tensor_slices((x, y) if labels else x).batch(4)


estimator = est.Estimator(model_fn, os.path.join(FOLDER, sys.argv[1]))
estimator.train(input_fn).train(input_fn)
found["estimator"] = estimator.evaluate(input_fn)
found["estimator predicts"] = list(estimator.predict(lambda: input_fn(False)))
found["estimator names"] = sorted(estimator.get_variable_names())
"""


@pytest.fixture(scope="module")
def new_side(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run_new(PROGRAM, tmp_path_factory.mktemp("seq2seq"), MODULES)


def test_numbers_noted_from_1_15_5(new_side: dict[str, Any]) -> None:
    noted = json.loads(NOTED.read_text())
    assert not {what: (noted[what], new_side[what]) for what in noted if not close(noted[what], new_side[what])}


@pytest.mark.skipif(not TENSORFLOW1, reason="no TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set")
def test_names_and_numbers_noted_are_those_of_1_15_5(tmp_path: Path) -> None:
    assert close(json.loads(NOTED.read_text()), run_old(PROGRAM, tmp_path, MODULES, SETUP))
