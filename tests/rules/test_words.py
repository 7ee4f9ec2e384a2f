"""Words that only people read change nothing."""

from __future__ import annotations

import re

import pytest

from tests.rules.programs import run

PROGRAM = """\
{module}import tensorflow as tf
{constant}

def input_fn():
    {function}return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


def model_fn(features, labels, mode):
    {function}logits = tf.layers.dense(features, 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=logits)
    loss = tf.losses.mean_squared_error(labels, logits)
    train_op = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn, model_dir="out"){line}
train_spec = tf.estimator.TrainSpec(input_fn, max_steps=100)
tf.estimator.train_and_evaluate(estimator, train_spec, tf.estimator.EvalSpec(input_fn))
"""
PLACES = {
    "module": '"""{}"""\n',
    "constant": 'NOTES = "{}"\n',
    "function": '"""{}"""\n    # {}\n    ',
    "line": "  # {}",
}
#: What decisions were once taken on, wherever in a file it stood.
WORDS = (
    *("gather", "an embedding", "categorical_column", "batch_norm", "moving_mean", "repeat()", "TF_CONFIG", "dropout"),
    *("tf.contrib.slim", "compat.v1", "CrossShardOptimizer", "import horovod", "arg_scope", "tf.Session() minimize("),
    *("GradientTape", "RunConfig", "HParams", "initializer", "regularizer", "trainable", "GraphKeys.GLOBAL_STEP"),
    *("compute_gradients .device(", "save_checkpoints_secs", "export_saved_model", "add_metrics", "serving", "tpu"),
)


def _without(text: str) -> str:
    """A text without what was put into it."""
    text = re.sub(r"^NOTES = .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r' *""".*WORDS.*"""\n| *# .*WORDS.*\n?', "", text)
    return re.sub(r"\n+", "\n", text)


@pytest.mark.parametrize("strategy", ["auto", "mirrored", "parameter-server"])
@pytest.mark.parametrize("words", [" ".join(WORDS[start::3]) for start in range(3)])
def test_words_of_nobody_s_business(strategy: str, words: str) -> None:
    places = dict.fromkeys(PLACES, "")
    expected, findings = run(PROGRAM.format(**places), strategy=strategy)
    codes = sorted(one.code for one in findings)
    assert "TFM101" in codes
    for place, form in PLACES.items():
        said = form.format(*[f"WORDS {words} WORDS"] * 2)
        new, found = run(PROGRAM.format(**{**places, place: said}), strategy=strategy)
        assert _without(new) == _without(expected), place
        assert sorted(one.code for one in found) == codes, place


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("print(tf.gather([1.0], [0]))", "class LazyAdamOptimizer"),
    ],
)
def test_code_is_read_as_before(line: str, said: str) -> None:
    text = PROGRAM.format(module="", constant="", line="", function="")
    text = text.replace("tf.train.MomentumOptimizer(0.1, 0.9)", "tf.contrib.opt.LazyAdamOptimizer(0.1)")
    assert said not in run(text)[0]
    assert said in run(text.replace("    loss = ", f"    {line}\n    loss = "))[0]
