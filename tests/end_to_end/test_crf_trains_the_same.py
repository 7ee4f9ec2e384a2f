"""Linear-chain CRFs against tf.contrib.crf of TensorFlow 1.15.5 (TF_MIGRATE_TENSORFLOW1_PYTHON), and against numpy."""

from __future__ import annotations

import json
import os
import subprocess
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from migrator import bridge
from migrator.harness.cluster import ForkServer
from migrator.harness.environments import migrated_python
from tests.end_to_end.proving import prove

pytestmark = pytest.mark.tensorflow

PYTHON = os.environ.get("TF_MIGRATE_TENSORFLOW1_PYTHON", "")

PROGRAM = """\
import numpy as np
import tensorflow as tf
from tensorflow.contrib import crf

TAGS = 4


def model_fn(features, labels, mode, params):
    words, lengths = features["words"], features["lengths"]
    with tf.variable_scope("words"):
        table = tf.get_variable("table", [20, 6], initializer=tf.random_normal_initializer(stddev=0.5))
        net = tf.nn.embedding_lookup(table, words)
    potentials = tf.layers.dense(net, TAGS, name="potentials")
    with tf.variable_scope("crf"):
        log_likelihood, transitions = crf.crf_log_likelihood(potentials, labels, lengths)
    loss = tf.reduce_mean(-log_likelihood)
    tags, best = tf.contrib.crf.crf_decode(potentials, transitions, sequence_length=lengths)
    if mode == tf.estimator.ModeKeys.EVAL:
        weights = tf.sequence_mask(lengths, tf.shape(labels)[1], dtype=tf.float32)
        accuracy = tf.metrics.accuracy(labels, tags, weights)
        return tf.estimator.EstimatorSpec(
            mode, loss=loss, eval_metric_ops={"accuracy": accuracy, "best": tf.metrics.mean(best)}
        )
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn(repeats):
    words = np.random.RandomState(5).randint(0, 20, size=(12, 7)).astype(np.int32)
    lengths = np.array([7, 3, 1, 5, 7, 2, 6, 4, 0, 7, 1, 3], np.int32)
    data = tf.data.Dataset.from_tensor_slices(({"words": words, "lengths": lengths}, words % TAGS))
    return data.batch(4).repeat(repeats)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(lambda: input_fn(2), steps=5)
estimator.evaluate(lambda: input_fn(1))
"""


@pytest.mark.skipif(not PYTHON, reason="no TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set")
def test_it_trains_the_same(tmp_path: Path) -> None:
    with ForkServer(Path(PYTHON), "original") as original, ForkServer(migrated_python(), "migrated") as migrated:
        new = prove(PROGRAM, (original, migrated), tmp_path, style="bridge")
    assert "tf.contrib" not in new


ENDS = [4, 2, 1, 0, 3]


def _sequences() -> dict[str, Any]:
    """Two cases of potentials, tags and transitions; the second is of whole numbers, many of them alike."""
    random = np.random.RandomState(7)
    x, w = random.normal(size=(2, 5, 4, 3)), random.normal(size=(2, 3, 3))
    x[1], w[1] = np.round(x[1]), np.round(w[1])
    return {"x": x.tolist(), "w": w.tolist(), "tags": random.randint(0, 3, (2, 5, 4)).tolist(), "ends": ENDS}


RUN = """
import json
import sys

import tensorflow as tf

data = json.load(open(sys.argv[1]))
found = []
for x, w, tags in zip(data["x"], data["w"], data["tags"]):
    x, w, ends = tf.constant(x), tf.constant(w), tf.constant(data["ends"])
    likelihood, _ = crf_log_likelihood(x, tf.constant(tags), ends, w)
    decoded, best = crf_decode(x, w, ends)
    of_one, one_best = crf_decode(x[:, :1], w, ends)
    found.append([v.numpy().tolist() for v in (likelihood, decoded, best, of_one, one_best)])
json.dump(found, open(sys.argv[2], "w"))
"""


def test_it_is_what_all_sequences_say(tmp_path: Path) -> None:
    """Likelihoods and the best sequence, found by trying all sequences of tags."""
    functions = (Path(bridge.__file__).parent / "library" / "contrib_crf.py").read_text(encoding="utf-8")
    script = tmp_path / "run.py"
    script.write_text(functions + RUN, encoding="utf-8")
    data = _sequences()
    (tmp_path / "in.json").write_text(json.dumps(data), encoding="utf-8")
    subprocess.run(
        [str(migrated_python()), str(script), str(tmp_path / "in.json"), str(tmp_path / "out.json")], check=True
    )
    for case, found in enumerate(json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))):
        likelihood, decoded, best, of_one, one_best = found
        for index, end in enumerate(ENDS):
            x, w = np.array(data["x"][case][index]), np.array(data["w"][case])
            tags = data["tags"][case][index]

            def score(path: tuple[int, ...], x: Any = x, w: Any = w) -> float:
                return float(sum(x[i, t] for i, t in enumerate(path)) + sum(w[a, b] for a, b in pairwise(path)))

            scores = {path: score(path) for path in product(range(3), repeat=max(end, 1))}
            expected = score(tuple(tags[:end])) - np.log(np.sum(np.exp(list(scores.values())))) if end else 0.0
            np.testing.assert_allclose(likelihood[index], expected, atol=1e-5)
            np.testing.assert_allclose(best[index], max(scores.values()), atol=1e-5)
            np.testing.assert_allclose(scores[tuple(decoded[index][: max(end, 1)])], best[index], atol=1e-5)
            assert decoded[index][max(end, 1) :] == [0] * (4 - max(end, 1))
            assert of_one[index] == [int(np.argmax(x[0]))] and abs(one_best[index] - x[0].max()) < 1e-5
