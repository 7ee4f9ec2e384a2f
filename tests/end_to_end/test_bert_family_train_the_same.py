"""Programs of the BERT family, in the mapped form: what they compute, on TensorFlow 1 and after the migration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from migrator.findings import Severity
from migrator.harness.cluster import ClusterShape, ForkServer, Launch
from tests.end_to_end.proving import Servers
from tests.rules.programs import run_project

pytestmark = pytest.mark.tensorflow

# Writes the checkpoint that a predictor starts with: `python write.py CHECKPOINT`.
WRITE = """\
import sys

import numpy as np
import tensorflow.compat.v1 as tf

random = np.random.RandomState(3)
shapes = {"words/table": (20, 6), "dense/kernel": (6, 5), "dense/bias": (5,), "out/kernel": (5, 2), "out/bias": (2,)}
with tf.Graph().as_default(), tf.Session() as session:
    for name, shape in shapes.items():
        tf.get_variable(name, initializer=random.normal(size=shape).astype(np.float32))
    session.run(tf.global_variables_initializer())
    tf.train.Saver().save(session, sys.argv[1])
"""

NETWORK = """\
import tensorflow.compat.v1 as tf


class Reader(object):
    def __init__(self, tokens, is_training):
        with tf.variable_scope("words"):
            table = tf.get_variable("table", [20, 6])
            net = tf.gather(table, tokens)
        net = tf.reduce_mean(net, axis=1)
        net = tf.layers.batch_normalization(net, center=False, scale=False, training=is_training, name="norm")
        self.layers = [net, tf.layers.dense(net, 5, tf.nn.tanh, name="dense")]
"""

# What BERT's extract_features does: no training anywhere, values of a checkpoint, one prediction per example.
EXTRACT = """\
import json
import sys

import numpy as np
import tensorflow.compat.v1 as tf

import network


def model_fn_builder(start, which, use_tpu):
    def model_fn(features, labels, mode, params):
        reader = network.Reader(features["tokens"], False)

        if mode != tf.estimator.ModeKeys.PREDICT:
            raise ValueError("Only PREDICT modes are supported: %s" % (mode))

        scaffold_fn = None
        names = {v.name[:-2]: v.name[:-2] for v in tf.trainable_variables()}
        if use_tpu:

            def tpu_scaffold():
                tf.train.init_from_checkpoint(start, names)
                return tf.train.Scaffold()

            scaffold_fn = tpu_scaffold
        else:
            tf.train.init_from_checkpoint(start, names)

        predictions = {"unique_id": features["ids"]}
        for i, index in enumerate(which):
            predictions["layer_%d" % i] = reader.layers[index]
        return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, predictions=predictions, scaffold_fn=scaffold_fn)

    return model_fn


def input_fn(params):
    tokens = np.random.RandomState(5).randint(0, 20, size=(7, 4)).astype(np.int32)
    data = tf.data.Dataset.from_tensor_slices({"ids": np.arange(7), "tokens": tokens})
    return data.batch(params["batch_size"])


use_tpu = False
estimator = tf.estimator.tpu.TPUEstimator(
    use_tpu=use_tpu,
    model_fn=model_fn_builder(sys.argv[1], [-1, 0], use_tpu),
    config=tf.estimator.tpu.RunConfig(),
    train_batch_size=2,
    predict_batch_size=3,
)
found = []
for result in estimator.predict(input_fn, yield_single_examples=True):
    found.append({name: np.asarray(value).tolist() for name, value in result.items()})
with open(sys.argv[2], "w") as writer:
    writer.write(json.dumps(found))
"""

# A script beside a training: the model_fn trains and evaluates too, which this program never does.
SERVE = """\
import json
import sys

import numpy as np
import tensorflow.compat.v1 as tf

import network


def train_op_of(loss):
    with tf.Session() as session:
        rate = session.run(tf.constant(0.1))
    return tf.train.GradientDescentOptimizer(rate).minimize(loss)


def model_fn(features, labels, mode, params):
    is_training = mode == tf.estimator.ModeKeys.TRAIN
    logits = tf.layers.dense(network.Reader(features, is_training).layers[1], 2, name="out")
    names = {v.name[:-2]: v.name[:-2] for v in tf.trainable_variables()}
    tf.train.init_from_checkpoint(params["start"], names)
    predictions = {"class": tf.argmax(logits, axis=-1), "chances": tf.nn.softmax(logits)}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.TRAIN:
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op_of(loss))
    correct = tf.metrics.accuracy(labels, predictions["class"])
    return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"correct": correct})


def input_fn():
    tokens = np.random.RandomState(5).randint(0, 20, size=(7, 4)).astype(np.int32)
    return tf.data.Dataset.from_tensor_slices(tokens).batch(2)


def main():
    estimator = tf.estimator.Estimator(model_fn, params={"start": sys.argv[1]})
    found = [{k: np.asarray(v).tolist() for k, v in one.items()} for one in estimator.predict(input_fn)]
    with open(sys.argv[2], "w") as writer:
        writer.write(json.dumps(found))


main()
"""


def run_script(server: ForkServer, program: str, script: Path, folder: Path, *arguments: str) -> None:
    folder.mkdir()
    outcome = server.run(Launch(program, script, arguments, ClusterShape.parse(""), folder))
    assert outcome.failure is None, outcome.failure


def migrate(texts: dict[str, str]) -> tuple[dict[str, str], set[str]]:
    """The files of a program in the mapped form, and the codes of what was said about it."""
    results = run_project(texts, style="auto")
    findings = [finding for _, found in results.values() for finding in found]
    assert not [finding for finding in findings if finding.severity is Severity.MANUAL], findings
    return {name: text for name, (text, _) in results.items()}, {finding.code for finding in findings}


def write(texts: dict[str, str], folder: Path) -> Path:
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("text", "codes"),
    [(EXTRACT, {"TFM427", "TFM857", "TFM420"}), (SERVE, {"TFM427", "TFM857", "TFM171"})],
    ids=["extract_features", "a script beside a training"],
)
def test_predicts_the_same(text: str, codes: set[str], servers: Servers, tmp_path: Path) -> None:
    texts = {"network.py": NETWORK, "run.py": text}
    new, said = migrate(texts)
    assert codes <= said and "train_step" not in new["run.py"]
    original = write({**texts, "write.py": WRITE}, tmp_path / "original")
    migrated = write(new, tmp_path / "migrated")
    start = str(tmp_path / "start")
    run_script(servers[0], "original", original / "write.py", tmp_path / "a", start)
    found: list[Any] = []
    for server, kind, folder in ((servers[0], "original", original), (servers[1], "migrated", migrated)):
        answer = tmp_path / f"{kind}.json"
        run_script(server, kind, folder / "run.py", tmp_path / f"run_{kind}", start, str(answer))
        found.append(json.loads(answer.read_text(encoding="utf-8")))
    assert len(found[0]) == len(found[1]) == 7
    for theirs, ours in zip(*found, strict=True):
        assert theirs.keys() == ours.keys()
        for name, value in theirs.items():
            np.testing.assert_allclose(ours[name], value, rtol=1e-6, atol=1e-6)
