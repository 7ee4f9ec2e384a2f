"""Proofs of training by tf.contrib, which only TensorFlow 1.15.5 has: TF_MIGRATE_TENSORFLOW1_PYTHON names it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrator.harness.cluster import ForkServer
from migrator.harness.environments import migrated_python
from tests.end_to_end.proving import Servers, prove
from tests.end_to_end.test_training_trains_the_same import DENSE, EMBEDDING, minimized_by, program, same_settings

PYTHON = os.environ.get("TF_MIGRATE_TENSORFLOW1_PYTHON", "")

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(not PYTHON, reason="no TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set"),
]


@pytest.fixture(scope="module")
def contrib() -> Iterator[Servers]:
    with ForkServer(Path(PYTHON), "original") as original, ForkServer(migrated_python(), "migrated") as migrated:
        yield original, migrated


# construct -> training, network, features
CASES: dict[str, tuple[str, str, str]] = {
    "optimize_loss with a decay and clipping": (
        """
        train_op = tf.contrib.layers.optimize_loss(
            loss, tf.train.get_global_step(), params["rate"], "Momentum", clip_gradients=params["clip"],
            learning_rate_decay_fn=lambda rate, step: tf.train.exponential_decay(rate, step, 2, 0.5))
        """,
        DENSE,
        "x",
    ),
    "create_train_op with Nadam": (
        "train_op = tf.contrib.training.create_train_op(loss, tf.contrib.opt.NadamOptimizer(0.01))",
        DENSE,
        "x",
    ),
    "AdaMax": (minimized_by("tf.contrib.opt.AdaMaxOptimizer(0.01)"), DENSE, "x"),
    "LazyAdam on an embedding": (minimized_by("tf.contrib.opt.LazyAdamOptimizer(0.01)"), EMBEDDING, "ids"),
}


@pytest.mark.parametrize("construct", CASES)
def test_trains_the_same(construct: str, contrib: Servers, tmp_path: Path) -> None:
    training, network, features = CASES[construct]
    prove(program(training, network, features), contrib, tmp_path)
    same_settings(tmp_path)
