"""Canned Estimators and heads on a true TensorFlow 1.15.5, where tf.contrib is, against their Keras form.

Needs an interpreter of its own, named by TF_MIGRATE_TENSORFLOW1_PYTHON (see test_contrib_layers_train_the_same.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrator.harness.cluster import ForkServer
from migrator.harness.environments import migrated_python
from tests.end_to_end.proving import Servers, prove
from tests.end_to_end.test_canned_train_the_same import DATA

PYTHON = os.environ.get("TF_MIGRATE_TENSORFLOW1_PYTHON", "")
pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(not PYTHON, reason="no TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set"),
]

MODEL = """\
def model_fn(features, labels, mode):
    head = {head}
    net = tf.feature_column.input_layer(features, DEEP)
    net = tf.layers.dense(net, 5, activation=tf.nn.relu)
    logits = tf.layers.dense(net, units=head.logits_dimension)
    optimizer = tf.train.AdagradOptimizer(learning_rate=0.1)
    return head.create_estimator_spec(
        features=features,
        mode=mode,
        labels=labels,
        logits=logits,
        train_op_fn=lambda loss: optimizer.minimize(loss, global_step=tf.train.get_global_step()))


"""
DRIVE = """\
estimator = {estimator}
estimator.train(lambda: input_fn({labels}), steps=5)
estimator.evaluate(lambda: input_fn({labels}))
"""
ESTIMATOR = "tf.estimator.Estimator(model_fn)"
BINARY = "(CLASSES > 0).astype(np.int32)"

# By name: the head of a model_fn (None for a canned Estimator), the Estimator, and the labels that it learns.
PROGRAMS: dict[str, tuple[str | None, str, str]] = {
    "binary head": (
        "tf.contrib.estimator.binary_classification_head(thresholds=[0.25, 0.5])",
        ESTIMATOR,
        BINARY,
    ),
    "private head": (
        'head_lib._binary_logistic_or_multi_class_head(4, "w", None, tf.losses.Reduction.SUM)',
        ESTIMATOR,
        "CLASSES",
    ),
    "regression head": (
        'tf.contrib.estimator.regression_head(weight_column="w", label_dimension=3)',
        ESTIMATOR,
        "X",
    ),
    "deep": (None, "tf.estimator.DNNClassifier([6, 4], DEEP)", BINARY),
    "linear": (None, "tf.estimator.LinearRegressor(WIDE)", "X[:, 0]"),
}


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    migrated = migrated_python()
    assert migrated is not None
    with ForkServer(PYTHON, "original") as old, ForkServer(migrated, "migrated") as new:
        yield old, new


@pytest.mark.parametrize("name", PROGRAMS)
def test_on_tensorflow1(name: str, servers: Servers, tmp_path: Path) -> None:
    head, estimator, labels = PROGRAMS[name]
    data = DATA.replace(
        "import tensorflow.compat.v1 as tf1\n", "from tensorflow.python.estimator.canned import head as head_lib\n"
    )
    if name != "private head":
        data = data.replace("from tensorflow.python.estimator.canned import head as head_lib\n", "")
        data = data.replace("random = np", "tf.set_random_seed(3)\nrandom = np")
    model = "" if head is None else MODEL.format(head=head)
    prove(data + model + DRIVE.format(estimator=estimator, labels=labels), servers, tmp_path)
