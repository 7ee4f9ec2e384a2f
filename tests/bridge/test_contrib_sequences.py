"""The input layer of sequences of tf.contrib.feature_column: names, numbers and gradients of TensorFlow 1.15.5."""

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
MODULES = ("contrib_sequences",)
NOTED = Path(__file__).with_name("noted") / "contrib_sequences.json"
PROGRAM = """
fc = tensorflow.contrib.feature_column if OLD else tf.feature_column
layer = fc.sequence_input_layer if OLD else est.sequence_input_layer
PLACES = [[0, 0], [0, 1], [1, 0], [2, 0], [2, 1], [2, 2]]


def run(name, columns):
    with tf.Graph().as_default():
        sparse = lambda values: tf.SparseTensor(PLACES, tf.constant(values), [3, 3])
        features = {
            "word": sparse(["a", "b", "x", "b", "a", "b"]), "kind": sparse(np.array([1, 0, 3, 2, 2, 1])),
            "much": sparse([0.5, 1.5, 2.0, -1.0, 0.1, 3.0])}
        made, lengths = layer(features, columns())
        variables = tf.trainable_variables()
        gradients = tf.gradients(made * made, variables)
        found[name + " names"] = [[v.name, v.shape.as_list()] for v in tf.global_variables()]
        found[name + " shape"] = made.shape.as_list()
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.tables_initializer()])
            for number, v in enumerate(variables):
                count = int(np.prod(v.shape.as_list()))
                v.load(np.sin(np.arange(count) + number).reshape(v.shape.as_list()).astype("f"), session)
            found[name] = session.run([made, lengths] + [tf.convert_to_tensor(one) for one in gradients])


word = lambda: fc.sequence_categorical_column_with_vocabulary_list("word", ["a", "b"], num_oov_buckets=1)
kind = lambda: fc.sequence_categorical_column_with_identity("kind", 4)
much = lambda: fc.sequence_numeric_column("much", normalizer_fn=lambda x: x * 2)
run("one", lambda: [tf.feature_column.embedding_column(word(), 2)])
run("all", lambda: [much(), tf.feature_column.embedding_column(word(), 3), tf.feature_column.indicator_column(kind())])
run("hashed", lambda: [tf.feature_column.embedding_column(
    fc.sequence_categorical_column_with_hash_bucket("word", 5), 2), much()])
"""


def test_names_and_numbers_noted_from_1_15_5(tmp_path: Path) -> None:
    noted, new = json.loads(NOTED.read_text()), run_new(PROGRAM, tmp_path, MODULES)
    assert not {what: (noted[what], new[what]) for what in noted if not close(noted[what], new[what])}


@pytest.mark.skipif(not TENSORFLOW1, reason="no TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set")
def test_names_and_numbers_noted_are_those_of_1_15_5(tmp_path: Path) -> None:
    assert close(json.loads(NOTED.read_text()), run_old(PROGRAM, tmp_path, MODULES, SETUP))
