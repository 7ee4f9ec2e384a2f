"""Losses of tf.keras in a model_fn: the numbers of TensorFlow 1.15.5's own, whatever the shapes are."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bridge.sides import TENSORFLOW1, run_both

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(not TENSORFLOW1, reason="no TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set"),
]
CLASSES = (
    *("MeanSquaredError", "MeanAbsoluteError", "MeanAbsolutePercentageError", "MeanSquaredLogarithmicError"),
    *("BinaryCrossentropy", "Hinge", "SquaredHinge", "Huber", "LogCosh", "Poisson", "KLDivergence", "CosineSimilarity"),
)
PROGRAM = """
def loss(name, **given):
    return getattr(tf.keras.losses, name)(**given) if OLD else getattr(est, name + "Loss")(**given)


random = np.random.RandomState(0)
P, Y = random.rand(4, 1).astype("f"), random.rand(4, 1).astype("f")
SHAPES = ((Y, P), (Y[:, 0], P), (Y, P[:, 0]), (Y[:, 0], P[:, 0]), (np.tile(Y, 2), np.tile(P, 2)), (np.tile(Y, 2), P))


def values(name, *weights, **given):
    made = []
    for labels, outputs in SHAPES:
        with tf.Graph().as_default(), tf.Session() as session:
            made.append(session.run(loss(name, **given)(tf.constant(labels), tf.constant(outputs), *weights)))
    return made


found.update({name: values(name) for name in CLASSES})
found["weighted"] = values("MeanSquaredError", 0.5)
found["summed"] = values("Huber", delta=0.1, reduction="sum")
found["summed"] += values("LogCosh", reduction="sum")
found["smoothed"] = values("BinaryCrossentropy", label_smoothing=0.2)
with tf.Graph().as_default(), tf.Session() as session:
    same = tf.keras.losses.cosine_similarity if OLD else est.cosine_similarity_loss
    found["function"] = session.run(same(tf.constant(np.tile(Y, 2)), tf.constant(np.tile(P, 2))))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    return run_both(
        PROGRAM.replace("in CLASSES", f"in {CLASSES}"), tmp_path_factory.mktemp("losses"), ("keras_losses",)
    )


@pytest.mark.parametrize("what", [*CLASSES, "weighted", "summed", "smoothed", "function"])
def test_same_numbers(found: tuple[dict[str, Any], dict[str, Any]], what: str) -> None:
    old, new = found
    assert new[what] == pytest.approx(old[what], rel=2e-6)
