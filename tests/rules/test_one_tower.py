"""Towers inside a model_fn: one takes the place of all, or the program stays as it was."""

from __future__ import annotations

import ast

import pytest

from migrator.findings import Severity
from tests.rules.programs import run, run_project
from tests.rules.tower_models import BRANCHES, PLAIN

GONE = ("tower", "average", "mean_of", "gpu:", "tf.split", "_parts", "reduce_mean", "concat", "add_n(losses)")


@pytest.mark.parametrize("program", [BRANCHES, PLAIN], ids=["branches", "plain"])
def test_replicas_divide_the_batch_of_all_towers(program: str) -> None:
    text, findings = run(program)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    ast.parse(text)
    model = text[: text.index("def make_inputs")]
    assert not [word for word in GONE if word in model], model
    assert "tf.distribute.MirroredStrategy()" in text and "class TrainingLoop" in text
    assert "TFM736" in [f.code for f in findings]


COMPUTED = "tower_gradients.append(optimizer.compute_gradients(loss))"
TAKEN = """tvars = tf.trainable_variables()
            grads = tf.gradients(loss, tvars)
            tower_gradients.append(zip(grads, tvars))"""


@pytest.mark.parametrize("made", [TAKEN, TAKEN.replace("zip(grads, tvars)", "list(zip(grads, tvars))")])
def test_gradients_that_are_taken_of_all_that_is_trained(made: str) -> None:
    assert run(PLAIN.replace(COMPUTED, made))[0] == run(PLAIN)[0]
    grads = "grads = optimizer.compute_gradients(loss)\n                            tower_grads.append(grads)"
    assert grads in BRANCHES
    indented = made.replace("tower_gradients", "tower_grads").replace("\n", "\n" + " " * 16)
    text, findings = run(BRANCHES.replace(grads, indented))
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert text == run(BRANCHES)[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tf.trainable_variables()", "tf.trainable_variables('net')"),
        ("tf.trainable_variables()", "tf.global_variables()"),
        ("tf.trainable_variables()", "tf.trainable_variables()[1:]"),
        ("tf.gradients(loss, tvars)", "tf.gradients(loss, tvars, 2.0)"),
        ("tf.gradients(loss, tvars)", "tf.gradients(loss * 2, tf.global_variables())"),
        ("tf.gradients(loss, tvars)", "[g * 2 for g in tf.gradients(loss, tvars)]"),
        ("zip(grads, tvars)", "zip(tvars, grads)"),
        ("zip(grads, tvars)", "zip([2 * g for g in grads], tvars)"),
        ("            tower_gradients", "            grads = [2 * g for g in grads]\n            tower_gradients"),
        ("            tower_gradients", "            tvars = tvars[1:]\n            tower_gradients"),
        ("            tower_gradients", "            grads[0] *= 2\n            tower_gradients"),
        ("            tower_gradients", "            grads.pop()\n            tower_gradients"),
    ],
)
def test_gradients_that_are_taken_otherwise_are_refused(old: str, new: str) -> None:
    assert old in TAKEN
    program = PLAIN.replace(COMPUTED, TAKEN.replace(old, new, 1))
    text, findings = run(program)
    assert text == program and "TFM743" in [f.code for f in findings], findings


@pytest.mark.parametrize("line", ["hidden = tf.layers.dense(tf.split(", "output = tf.layers.dense(hidden"])
def test_what_is_trained_is_asked_for_when_all_of_it_is_made(line: str) -> None:
    """Before the last layer, the first tower would train less than all of it."""
    program = PLAIN.replace(COMPUTED, TAKEN.replace("tvars = tf.trainable_variables()\n            ", "", 1))
    program = program.replace(
        f"            {line}", f"            tvars = tf.trainable_variables()\n            {line}", 1
    )
    text, findings = run(program)
    assert program.count("tf.trainable_variables()") == 1
    assert text == program and "TFM743" in [f.code for f in findings], findings


def test_one_device_takes_the_whole_batch_where_it_is_asked_to() -> None:
    text, _ = run(PLAIN, strategy="one-device")
    assert "model.fit(" in text and "Mirrored" not in text


def test_one_device_takes_it_where_no_loop_is_written() -> None:
    weighted = PLAIN.replace("mean_absolute_error(labels, output)", "mean_absolute_error(labels, output, labels)")
    text, findings = run(weighted)
    assert weighted != PLAIN and "TFM730" in [f.code for f in findings] and "tower" not in text


OTHERWISE = {
    "a sum by its number": ("tf.reduce_mean(tower_losses)", "tf.add_n(tower_losses) / num_gpus"),
    "a sum by its length": ("tf.reduce_mean(tower_losses)", "sum(tower_losses) / len(tower_losses)"),
    "a stack": ("tf.reduce_mean(tower_losses)", "tf.reduce_mean(tf.stack(tower_losses), 0)"),
    "another name": (
        "loss = tf.reduce_mean(tower_losses)\n",
        "mean_loss = tf.reduce_mean(tower_losses)\n    tf.summary.scalar('mean', mean_loss)\n",
    ),
    "an added term": (
        "            tower_gradients.append(",
        "            loss += tf.losses.get_regularization_loss()\n            tower_gradients.append(",
    ),
    "lists in one line": (
        "    tower_losses = []\n    tower_outputs = []\n",
        "    tower_losses, tower_outputs = [], []\n",
    ),
    "a block around": (
        "    for i in range(num_gpus):\n",
        "    with tf.variable_scope(tf.get_variable_scope()), tf.device('/cpu:0'):\n      for i in range(num_gpus):\n",
    ),
}


@pytest.mark.parametrize("how", OTHERWISE)
def test_ways_to_put_the_towers_together(how: str) -> None:
    old, new = OTHERWISE[how]
    program = PLAIN.replace("loss=loss", "loss=mean_loss") if "mean_loss" in new else PLAIN
    text, findings = run(program.replace(old, new))
    assert "class TrainingLoop" in text, findings


REFUSED = {
    "another term": (
        "            tower_gradients.append(",
        "            loss += tf.reduce_sum(output)\n            tower_gradients.append(",
        "cannot tell that the loss of a tower is a mean",
    ),
    "a sum of losses": ("tf.reduce_mean(tower_losses)", "tf.add_n(tower_losses)", "use the mean"),
    "the last loss": ("tf.reduce_mean(tower_losses)", "tower_losses[-1]", "use the mean"),
    "rows beside each other": ("tower_outputs, axis=0", "tower_outputs, axis=1", "all rows"),
    "a batch that meets": (
        "            output = tf",
        "            hidden = tf.layers.batch_normalization(hidden)\n            output = tf",
        "may mix examples",
    ),
    "weights of its own": ('"net", reuse=i > 0', '"net%d" % i', "every tower has its own variables"),
    "a sum of gradients": (
        "tf.reduce_mean(tf.stack([g for g, _ in p]), 0)",
        "tf.add_n([g for g, _ in p])",
        "averages the gradients",
    ),
    "parts of another number": (
        "tf.split(labels, num_gpus)",
        "tf.split(labels, 2)",
        "a tower may only select its part",
    ),
    "a loop in a branch": (
        "    for i in range(num_gpus):\n",
        "    if num_gpus > 1:\n      for i in range(num_gpus):\n",
        "the loop is in a block",
    ),
    "a mean of what is none": (
        "tower_losses.append(loss)",
        "tower_losses.append(tf.reduce_sum(output))",
        "cannot tell that the loss of a tower is a mean",
    ),
}


@pytest.mark.parametrize("how", REFUSED)
def test_other_towers_are_refused_with_what_is_in_the_way(how: str) -> None:
    old, new, reason = REFUSED[how]
    program = PLAIN.replace(old, new)
    text, findings = run(program)
    assert program != PLAIN and text == program
    found = [f for f in findings if f.code == "TFM743"]
    assert len(found) == 1 and reason in found[0].message, findings
    assert "for i in range(num_gpus)" in program.splitlines()[found[0].line - 1]


def test_a_strategy_around_towers_is_refused() -> None:
    program = PLAIN.replace("RunConfig(", "RunConfig(train_distribute=tf.distribute.MirroredStrategy(), ")
    text, findings = run(program)
    assert text == program and "TFM743" in [f.code for f in findings]


def test_a_model_fn_of_another_file() -> None:
    at = PLAIN.index("config = ")
    driver = "import tensorflow.compat.v1 as tf\nfrom model import input_fn, model_fn\n\n" + PLAIN[at:]
    results = run_project({"model.py": PLAIN[:at], "train.py": driver})
    assert "class TrainingLoop" in results["train.py"][0] and "tower" not in results["model.py"][0]
