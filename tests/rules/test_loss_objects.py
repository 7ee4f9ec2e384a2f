"""Loss objects of Keras that a model_fn calls: the functions behind them, which compare what they are given."""

from __future__ import annotations

import pytest

from tests.rules.programs import program, run_or_blocked

MEAN = "tf.reduce_mean(tf.keras.losses.{})"
# loss of the model_fn -> what `compute_loss` has
BECOMES = {
    "loss_fn = tf.keras.losses.MeanSquaredError()\nloss = loss_fn(labels, logits)": MEAN.format(
        "mean_squared_error(labels, logits)"
    ),
    "loss = tf.keras.losses.MeanAbsoluteError()(y_true=labels, y_pred=logits)": MEAN.format(
        "mean_absolute_error(labels, logits)"
    ),
    'loss = tf.reduce_sum(tf.keras.losses.MeanSquaredError("none")(labels, logits))': (
        "tf.reduce_sum(tf.keras.losses.mean_squared_error(labels, logits))"
    ),
    "loss = tf.reduce_mean(tf.keras.losses.Poisson(reduction=tf.keras.losses.Reduction.NONE)(labels, logits))": (
        "tf.reduce_mean(tf.keras.losses.poisson(labels, logits))"
    ),
    "loss = tf.keras.losses.MeanSquaredError()(labels, logits) + 0.1 * tf.reduce_mean(logits)": (
        "tf.reduce_mean(tf.keras.losses.mean_squared_error(labels, logits)) + 0.1 * tf.reduce_mean(logits)"
    ),
}


@pytest.mark.parametrize("loss", BECOMES)
def test_the_call_of_a_loss_object_is_that_of_its_function(loss: str) -> None:
    """MeanSquaredError of labels [4] and an output [4, 1]: 0.325 in TensorFlow 1.15.5, 0.225 in 2.21, whose function
    gives 0.325. A program of 8 steps on such labels evaluates to 4.763731 in both, with the object in 2.21 to 4.613030.
    """
    new, blocked = run_or_blocked(program(loss=loss))
    assert not blocked and f"loss = {BECOMES[loss]}\n" in new, new
    assert "loss_fn" not in new and "Reduction" not in new


def test_an_object_of_the_file() -> None:
    text = program(loss="loss = LOSS(labels, logits)")
    text = text.replace("\n\ndef input_fn", "\nLOSS = tf.keras.losses.MeanSquaredError()\n\n\ndef input_fn", 1)
    new, blocked = run_or_blocked(text)
    assert not blocked and "loss = tf.reduce_mean(tf.keras.losses.mean_squared_error(labels, logits))\n" in new


@pytest.mark.parametrize(
    "loss",
    [
        "loss = tf.keras.losses.CosineSimilarity()(labels, logits)",  # of the other sign in TensorFlow 2
        "loss = tf.keras.losses.MeanSquaredError()(labels, logits, tf.abs(labels))",
        "loss = tf.keras.losses.MeanSquaredError(reduction='sum')(labels, logits)",  # replicas add it up
        "loss = tf.keras.losses.MeanSquaredError(reduction=params['reduction'])(labels, logits)",
        "if params['rate'] > 1:\n    loss_fn = tf.keras.losses.MeanSquaredError()\nelse:\n"
        "    loss_fn = tf.keras.losses.MeanAbsoluteError()\nloss = loss_fn(labels, logits)",
    ],
)
def test_other_objects_are_refused(loss: str) -> None:
    text = program(loss=loss)
    new, blocked = run_or_blocked(text)
    assert new == text and set(blocked) & {"TFM301", "TFM311"}


def test_the_objects_of_a_program_for_both_versions_are_refused() -> None:
    """TensorFlow 2 compares labels of [b] and outputs of [b, 1] one by one, TensorFlow 1.15 all with all."""
    text = program(loss="loss = tf.keras.losses.MeanSquaredError()(labels, logits)")
    text = text.replace("tf.layers", "tf.compat.v1.layers").replace("tf.train.", "tf.compat.v1.train.")
    new, blocked = run_or_blocked(text)
    assert new == text and "TFM311" in blocked


def test_functions_that_line_labels_up_on_keras_3_are_refused() -> None:
    """mse([1, 2, 3], [[1], [5], [2]]) is [0, 9, 1] on Keras 3, [1.67, 9.67, 0.67] on Keras 2 and TensorFlow 1.15.5."""
    function = program(loss="loss = tf.reduce_mean(tf.keras.losses.mean_squared_error(labels, logits))")
    assert not run_or_blocked(function)[1]
    assert run_or_blocked(function, keras="3") == (function, ["TFM870"])
