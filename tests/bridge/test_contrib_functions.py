"""Functions of tf.contrib that the support file has: the numbers and names of TensorFlow 1.15.5's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.bridge.sides import TENSORFLOW1, run_both

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(not TENSORFLOW1, reason="no TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set"),
]

SETUP = """\
    import tensorflow
"""
PROGRAM = """
OTHER = {"HashTable": "hash_table", "scalar": "summary_scalar"}


def of(module, name):
    return getattr(getattr(tensorflow.contrib, module), name) if OLD else getattr(est, OTHER.get(name, name))


def run(build):
    with tf.Graph().as_default():
        made = build()
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])
            return session.run(made)


random = np.random.RandomState(0)
X, W = random.randn(3, 5, 4).astype("f"), random.randn(4, 4).astype("f")
T, L = random.randint(0, 4, (3, 5)), np.array([5, 2, 0])


def fields():
    x, w = tf.constant(X), tf.constant(W)
    fed = tf.placeholder_with_default(L, None), tf.placeholder_with_default([5, 2, 1], None)  # without a shape
    likelihood, _ = of("crf", "crf_log_likelihood")(x, tf.constant(T), fed[0], w)
    decoded = of("crf", "crf_decode")(x, w, fed[1])
    one = of("crf", "crf_log_likelihood")(x[:, :1], tf.constant(T[:, :1]), tf.constant([1, 1, 1]), w)[0]
    score = of("crf", "crf_sequence_score")(x, tf.constant(T), tf.constant(L), w)
    norm = of("crf", "crf_log_norm")(x, tf.constant(L), w)
    short = of("crf", "crf_decode")(x[:, :1], w, tf.constant([1, 1, 1]))
    return [likelihood, tf.gradients(likelihood, [x, w]), decoded, one, score, norm, short]


def layers():
    outputs = [
        of("layers", "layer_norm")(tf.constant(X), begin_norm_axis=-1, begin_params_axis=-1, scope="LN"),
        of("layers", "layer_norm")(tf.constant(X)),
        of("layers", "l2_regularizer")(0.3)(tf.constant(X)),
        of("layers", "l1_regularizer")(0.3)(tf.constant(X)),
    ]
    of("crf", "crf_log_likelihood")(tf.constant(X), tf.constant(T), tf.constant(L))
    found["names"] = [v.name for v in tf.global_variables() + tf.get_collection(tf.GraphKeys.MODEL_VARIABLES)]
    return outputs


def initial(shape, uniform):
    weights = tf.get_variable("w", shape, initializer=of("layers", "xavier_initializer")(uniform))
    mean, variance = tf.nn.moments(weights, list(range(len(shape))))
    return [mean, tf.sqrt(variance), tf.reduce_max(weights), tf.reduce_min(weights)]


def tables():
    index = of("lookup", "index_table_from_tensor")(mapping=tf.constant(["a", "b"]), num_oov_buckets=2)
    hashed = of("lookup", "HashTable")(tf.lookup.KeyValueTensorInitializer(["a", "b"], [7, 8]), -1)
    strings = of("lookup", "index_to_string_table_from_tensor")(tf.constant(["p", "q"]), default_value="U")
    asked = tf.constant(["b", "a", "zz"])
    return [index.lookup(asked), hashed.lookup(asked), strings.lookup(tf.constant([0, 1, 5], tf.int64))]


def decay():
    made = lambda name, shape: tf.get_variable(name, shape, initializer=tf.ones_initializer(), use_resource=True)
    v, u, q = made("v", [3]), made("u", [4, 2]), made("q", [2])
    loss = tf.reduce_sum(v * v) + tf.reduce_sum(tf.gather(u, [1, 2])) + tf.reduce_sum(q)
    steps = [
        lambda: of("opt", "AdamWOptimizer")(0.1, 0.01).minimize(loss, decay_var_list=[v, u]),
        lambda: of("opt", "MomentumWOptimizer")(0.3, 0.1, 0.9).apply_gradients(
            [(tf.ones([3]), v), (tf.ones([2]), q)], decay_var_list=[q]
        ),
        lambda: of("opt", "extend_with_decoupled_weight_decay")(tf.train.GradientDescentOptimizer)(
            0.2, learning_rate=0.1
        ).apply_gradients([(tf.ones([3]), v)]),
        lambda: of("opt", "AdamWOptimizer")(0.1, 0.01).apply_gradients([(tf.ones([3]), v)], decay_var_list=[]),
    ]
    values = []
    for step in steps:
        with tf.control_dependencies([one for some in values for one in some]):
            with tf.control_dependencies([step()]):
                values.append([v.read_value(), u.read_value(), q.read_value()])
    found["slots"] = [one.name for one in tf.global_variables()]
    return values


def metrics():
    labels, predictions, scores = tf.constant([1, 1, 0]), tf.constant([1, 0, 1]), tf.constant([0.1, 0.8, 0.6])
    made = [of("metrics", "streaming_" + n)(predictions, labels)[1] for n in ("accuracy", "precision", "recall")]
    errors = ("mean_squared_error", "root_mean_squared_error", "mean_absolute_error")
    made += [of("metrics", "streaming_" + n)(scores, tf.cast(labels, tf.float32))[1] for n in errors]
    made += [of("metrics", "f1_score")(labels, scores, **more)[1] for more in ({}, {"num_thresholds": 11})]
    made.append(of("metrics", "f1_score")(labels, scores, weights=tf.constant([2.0, 0.5, 1.0]))[1])
    return [*made, of("metrics", "streaming_auc")(scores, tf.cast(labels, tf.bool))[1]]


found["fields"] = run(fields)
found["viterbi"] = list(of("crf", "viterbi_decode")(X[0], W))
found["layers"] = run(layers)
found["initial"] = [
    run(lambda: initial(shape, uniform)) for shape in ([300, 200], [3, 3, 60, 50], [40000]) for uniform in (True, False)
]
found["tables"] = run(tables)
found["decay"] = run(decay)
found["metrics"] = run(metrics)
dataset = tf.data.Dataset.range(5).apply(of("data", "batch_and_drop_remainder")(2))
found["batches"] = str(tf.data.get_output_shapes(dataset))
with tf.Graph().as_default():
    writer = of("summary", "create_file_writer")(os.path.join(FOLDER, sys.argv[1]))
    step = tf.train.get_or_create_global_step()
    with writer.as_default(), of("summary", "always_record_summaries")():
        of("summary", "scalar")("x", tf.constant(3.0), step=step)
        written = of("summary", "all_summary_ops")()
    with tf.Session() as session:
        session.run([step.initializer, of("summary", "summary_writer_initializer_op")()])
        session.run(written)
        session.run(writer.flush())
    (name,) = os.listdir(os.path.join(FOLDER, sys.argv[1]))
    events = tf.train.summary_iterator(os.path.join(FOLDER, sys.argv[1], name))
    found["summaries"] = [[v.tag, v.metadata.plugin_data.plugin_name] for e in events for v in e.summary.value]
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    folder: Path = tmp_path_factory.mktemp("contrib")
    return run_both(PROGRAM, folder, ("contrib_functions", "contrib_metrics", "contrib_crf", "contrib_opt"), SETUP)


@pytest.mark.parametrize(
    "what", ["fields", "viterbi", "layers", "names", "tables", "decay", "slots", "metrics", "batches", "summaries"]
)
def test_same_numbers_and_names(found: tuple[dict[str, Any], dict[str, Any]], what: str) -> None:
    old, new = found
    assert len(_flat(new[what])) == len(_flat(old[what]))
    for one, other in zip(_flat(new[what]), _flat(old[what]), strict=True):
        assert one == (other if isinstance(other, str) else pytest.approx(other, rel=1e-5, abs=1e-6))


def test_initial_weights_are_drawn_from_the_same_distribution(
    found: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    for old, new in zip(found[0]["initial"], found[1]["initial"], strict=True):
        # 40,000 draws at least: the standard deviation is known to 0.5 %, the limits to less.
        assert new[0] == pytest.approx(old[0], abs=0.02 * old[1])
        assert new[1:] == pytest.approx(old[1:], rel=0.02)


def _flat(value: object) -> list[Any]:
    return [one for item in value for one in _flat(item)] if isinstance(value, list) else [value]
