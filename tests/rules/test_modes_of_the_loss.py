"""The loss of evaluation: that of training, whatever names its parts have in each mode, or one of its own."""

from __future__ import annotations

import pytest

from tests.rules.programs import run_or_blocked

PROGRAM = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


def model_fn(features, labels, mode):
    out = tf.layers.dense(features, 1)
    is_training = mode == tf.estimator.ModeKeys.TRAIN
    if is_training:
        {trained}
        train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
    {evaluated}
    return tf.estimator.EstimatorSpec(mode, loss=cost, eval_metric_ops={{"size": tf.metrics.mean(part)}})


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=3)
print(estimator.evaluate(input_fn))
"""


def program(trained: str, evaluated: str) -> str:
    return PROGRAM.format(trained=trained.replace("\n", "\n        "), evaluated=evaluated.replace("\n", "\n    "))


def methods(text: str) -> list[list[str]]:
    """What is computed where each mode has its own loss: the lines of `compute_loss` and of `evaluation_loss`."""
    found = []
    for name in ("compute_loss", "evaluation_loss"):
        lines = text[text.index(f"def {name}(") :].splitlines()[1:]
        end = next(index for index, line in enumerate(lines) if not line.startswith(" " * 12))
        found.append([line.strip() for line in lines[:end] if "loss_tracker" not in line])
    return found


OTHERS = {
    "parentheses that are not said": (
        "loss = tf.reduce_mean(tf.abs(labels - out) * 3 - 1)",
        "part = 3 - 1\ncost = tf.reduce_mean(tf.abs(labels - out) * part)",
        ["loss = tf.reduce_mean(tf.abs(labels - out) * 3 - 1)", "return loss"],
        ["part = 3 - 1", "cost = tf.reduce_mean(tf.abs(labels - out) * part)", "return cost"],
    ),
    "another number": (
        "loss = tf.reduce_mean(labels - out)",
        "part = labels - 2 * out\ncost = tf.reduce_mean(part)",
        ["loss = tf.reduce_mean(labels - out)", "return loss"],
        ["part = labels - 2 * out", "cost = tf.reduce_mean(part)", "return cost"],
    ),
    "a list that training adds to": (
        "parts = [tf.reduce_mean(labels - out)]\nparts.append(tf.reduce_mean(out))\nloss = tf.add_n(parts)",
        "part = out\nparts = [tf.reduce_mean(labels - out)]\ncost = tf.add_n(parts)",
        [
            "parts = [tf.reduce_mean(labels - out)]",
            "parts.append(tf.reduce_mean(out))",
            "loss = tf.add_n(parts)",
            "return loss",
        ],
        ["parts = [tf.reduce_mean(labels - out)]", "cost = tf.add_n(parts)", "return cost"],
    ),
    "a penalty of the training alone": (
        "loss = tf.reduce_mean(labels - out)\nmore = tf.reduce_sum(tf.square(out))\n"
        "loss += 0.1 * more + tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables()])",
        "part = out\ncost = tf.reduce_mean(labels - out)",
        [
            "loss = tf.reduce_mean(labels - out)",
            "more = tf.reduce_sum(tf.square(out))",
            "loss += 0.1 * more + tf.add_n([tf.nn.l2_loss(v) for v in self.trainable_variables])",
            "return loss",
        ],
        ["cost = tf.reduce_mean(labels - out)", "return cost"],
    ),
    "more losses that were made before": (
        "tf.losses.mean_squared_error(labels, out)\ntf.losses.absolute_difference(labels, out)\n"
        "loss = tf.losses.get_total_loss()",
        "part = out\ntf.losses.mean_squared_error(labels, out)\ncost = tf.losses.get_total_loss()",
        [
            "loss = tf.reduce_mean(tf.keras.losses.mean_squared_error(labels, out)) + "
            "tf.reduce_mean(tf.keras.losses.mean_absolute_error(labels, out)) + sum(self.losses)",
            "return loss",
        ],
        [
            "cost = tf.reduce_mean(tf.keras.losses.mean_squared_error(labels, out)) + sum(self.losses)",
            "return cost",
        ],
    ),
    "a name that is given twice": (
        "loss = tf.reduce_mean(labels - out)",
        "part = labels - out\npart = part * 2\ncost = tf.reduce_mean(part)",
        ["loss = tf.reduce_mean(labels - out)", "return loss"],
        ["part = labels - out", "part = part * 2", "cost = tf.reduce_mean(part)", "return cost"],
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_each_mode_has_its_own_loss(name: str) -> None:
    trained, evaluated, first, second = OTHERS[name]
    new, blocked = run_or_blocked(program(trained, evaluated))
    assert not blocked
    assert [lines[1:] for lines in methods(new)] == [first, second]
    assert "self.loss_tracker.update_state(self.evaluation_loss(x, y, y_pred))" in new


SAME = {
    "a part has a name in evaluation": (
        "loss = tf.reduce_mean(tf.abs(labels - out))",
        "part = tf.abs(labels - out)\ncost = tf.reduce_mean(part)",
    ),
    "parts have other names": (
        "miss = labels - out\nloss = tf.reduce_mean(tf.abs(miss) + 1)",
        "part = tf.abs(labels - (out))\ncost = tf.reduce_mean(part + 1)",
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_one_loss_in_other_words(name: str) -> None:
    new, blocked = run_or_blocked(program(*SAME[name]))
    assert not blocked and new.count("def compute_loss") == 1


COMMON = """\
import numpy as np
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


WEIGHTS = {{"w": 1.0}}


def doubled(weights):
    weights["out"] = 2.0


def model_fn(features, labels, mode, params):
    out = tf.layers.dense(features, 1)
    {before}
    if {test}:
        {there}
    loss = {loss}
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn, params={{"more": True}})
estimator.train(input_fn, steps=3)
print(estimator.evaluate(input_fn))
"""
PARTS = {
    "a list": ("parts = [tf.reduce_mean(labels - out)]", "parts.append(tf.reduce_mean(out))", "tf.add_n(parts)"),
    "another name of a list": (
        "parts = [tf.reduce_mean(labels - out)]\n    more = parts",
        "more.append(tf.reduce_mean(out))",
        "tf.add_n(parts)",
    ),
    "a number": ("weight = 1.0", "weight = 2.0", "weight * tf.reduce_mean(labels - out)"),
    "the weight of a known loss": (
        "weight = 1.0",
        "weight = 2.0",
        "tf.losses.mean_squared_error(labels, out, weights=weight)",
    ),
    "a number in a dict": ("w = {'out': 1.0}", "w['out'] = 2.0", "w['out'] * tf.reduce_mean(labels - out)"),
    "numbers of an array": ("w = np.ones([1])", "w.fill(2.0)", "tf.reduce_mean(w * (labels - out))"),
    "a dict that a function changes": ("w = {'out': 1.0}", "doubled(w)", "w['out'] * tf.reduce_mean(labels - out)"),
    "a loss that is not named": (
        "tf.losses.mean_squared_error(labels, out)",
        "tf.losses.absolute_difference(labels, out)",
        "tf.losses.get_total_loss()",
    ),
    "an entry of the params": (
        "params['w'] = 1.0",
        "params['w'] = 2.0",
        "params['w'] * tf.reduce_mean(labels - out)",
    ),
    "an entry of what the file has": (
        "w = 1.0",
        "WEIGHTS['w'] = 2.0",
        "WEIGHTS['w'] * tf.reduce_mean(labels - out)",
    ),
    "two numbers": ("a, b = 1.0, 2.0", "a, b = b, a", "a * tf.reduce_mean(labels - out)"),
}


#: What the training computes there and the evaluation does not; None where the program is refused.
TRAINED = {
    "a list": ["parts.append(tf.reduce_mean(out))"],
    "another name of a list": ["parts.append(tf.reduce_mean(out))"],
    "a number": ["weight = 2.0"],
    "the weight of a known loss": ["weight = 2.0"],
    "a number in a dict": ["out_2 = 2.0"],
    "two numbers": ["a = b"],
    "numbers of an array": None,
    "a dict that a function changes": None,
    "an entry of the params": None,
    "an entry of what the file has": None,
}


@pytest.mark.parametrize("name", TRAINED)
def test_what_one_mode_alone_gives_a_loss(name: str) -> None:
    before, there, loss = PARTS[name]
    text = COMMON.format(test="mode == tf.estimator.ModeKeys.TRAIN", before=before, there=there, loss=loss)
    new, blocked = run_or_blocked(text)
    wanted = TRAINED[name]
    if wanted is None:
        assert "TFM301" in blocked
        return
    trained, evaluated = methods(new)
    assert not blocked and [line for line in trained if line not in evaluated] == wanted
    assert [line for line in trained if line not in wanted] == evaluated


def test_a_loss_that_the_training_alone_makes_without_a_name() -> None:
    before, there, loss = PARTS["a loss that is not named"]
    new, blocked = run_or_blocked(
        COMMON.format(test="mode == tf.estimator.ModeKeys.TRAIN", before=before, there=there, loss=loss)
    )
    assert not blocked
    assert ["mean_absolute_error" in "".join(lines) for lines in methods(new)] == [True, False]


def test_a_number_that_a_conditional_expression_gives_by_mode() -> None:
    chosen = "weight = 2.0 if mode == tf.estimator.ModeKeys.TRAIN else 1.0"
    text = COMMON.format(
        test='params["more"]', before=chosen, there="pass", loss="weight * tf.reduce_mean(labels - out)"
    )
    new, blocked = run_or_blocked(text)
    assert not blocked
    assert [lines[1] for lines in methods(new)] == ["weight = 2.0", "weight = 1.0"]


@pytest.mark.parametrize("name", ["a list", "a number", "the weight of a known loss"])
def test_what_the_settings_give_a_loss_stays(name: str) -> None:
    before, there, loss = PARTS[name]
    assert not run_or_blocked(COMMON.format(test='params["more"]', before=before, there=there, loss=loss))[1]


LISTS = {
    "one mode adds": ("outs = [features]", "outs.append(features * 2)"),
    "one mode turns it": ("outs = [features, out]", "outs.reverse()"),
    "one mode adds in front": ("outs = []\n    outs.append(out)", "outs.insert(0, features)"),
}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("test", ["mode == tf.estimator.ModeKeys.TRAIN", "mode != tf.estimator.ModeKeys.TRAIN"])
def test_a_list_of_the_network_that_one_mode_fills_is_refused(name: str, test: str) -> None:
    before, there = LISTS[name]
    loss = "tf.losses.mean_squared_error(labels, tf.layers.dense(tf.concat(outs, 1), 1))"
    text = COMMON.format(test=test, before=before, there=there, loss=loss)
    assert "TFM106" in run_or_blocked(text)[1]


ACTS = {
    "by another name": ("outs = [features]\n    parts = {'a': outs}", "parts['a'].append(features)", "outs[-1]"),
    "by a function of its own": (
        "outs = [features]\n\n    def more():\n        outs.append(features)\n",
        "more()",
        "outs[-1]",
    ),
    "by a library": ("w = np.ones([1])", "np.copyto(w, [3.0])", "features * w"),
    "of the file": ("w = WEIGHTS['out']", "WEIGHTS['out'] = 2.0", "features * w"),
}


@pytest.mark.parametrize("name", ACTS)
def test_a_line_of_one_mode_that_changes_something_is_refused(name: str) -> None:
    before, there, out = ACTS[name]
    loss = f"tf.losses.mean_squared_error(labels, tf.layers.dense({out}, 1))"
    text = COMMON.format(test="mode == tf.estimator.ModeKeys.TRAIN", before=before, there=there, loss=loss)
    text = text.replace("def input_fn", "WEIGHTS = {'out': 1.0}\n\n\ndef input_fn")
    assert "TFM106" in run_or_blocked(text)[1]


@pytest.mark.parametrize("line", ["print('training')", "tf.logging.info('training')"])
def test_a_line_of_one_mode_that_tells_something(line: str) -> None:
    loss = "tf.losses.mean_squared_error(labels, out)"
    text = COMMON.format(test="mode == tf.estimator.ModeKeys.TRAIN", before="w = 1", there=line, loss=loss)
    assert not run_or_blocked(text)[1]


APART = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


def model_fn(features, labels, mode):
    out = tf.layers.dense(features, 1)
    average = tf.losses.mean_squared_error(labels, out)
    total = tf.to_float(tf.shape(labels)[0]) * average
    train_op = None
    if mode == tf.estimator.ModeKeys.TRAIN:
        train_op = tf.train.AdamOptimizer(0.1).minimize(average, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=total, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=3)
print(estimator.evaluate(input_fn))
"""
MORE = """\
        l2 = tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables()])
        more = total + l2
"""
MINIMIZED = {
    "a part of it": (APART, "return average"),
    "more than it": (APART.replace("minimize(average,", "minimize(total + average,"), "return total + average"),
    "more, of the training alone": (
        APART.replace("        train_op =", MORE + "        train_op =").replace("minimize(average,", "minimize(more,"),
        "return more",
    ),
}


@pytest.mark.parametrize("case", MINIMIZED)
def test_another_loss_is_minimized_than_is_reported(case: str) -> None:
    text, returned = MINIMIZED[case]
    new, problem = run_or_blocked(text)
    assert not problem, problem
    assert f"            self.loss_tracker.update_state(total)\n            {returned}\n" in new


@pytest.mark.parametrize(
    "text",
    [
        APART.replace("    return tf.estimator", "    average = 2 * average\n    return tf.estimator"),
        APART.replace("minimize(average,", "minimize(tf.square(total),"),  # a call, which may be one of collections
        APART.replace("minimize(average,", "minimize(tf.losses.get_total_loss(),"),
        APART.replace("    average = tf.losses", "    average = 3.0\n    average = average * tf.losses")
        .replace("minimize(average,", "minimize(weight,")
        .replace("    total =", "    weight = tf.get_variable('w', [])\n    total ="),
    ],
)
def test_another_loss_that_is_not_there_when_the_model_is_made(text: str) -> None:
    _, problem = run_or_blocked(text)
    assert problem


TOLD = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [2.0])).batch(1)


def model_fn(features, labels, mode):
    net = tf.layers.batch_normalization(features, training=mode == tf.estimator.ModeKeys.TRAIN)
    out = tf.layers.dense(net, 1)
    loss = tf.reduce_mean(tf.square(tf.reshape(labels, [-1, 1]) - out))
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=3)
estimator.evaluate(input_fn)
"""


def test_a_network_that_is_told_the_mode_leaves_the_loss_one() -> None:
    """Layers get `training=`: a mean of the labels and their output is the loss of both modes, a function beside it."""
    new, blocked = run_or_blocked(TOLD)
    assert not blocked
    assert "return tf.square(tf.reshape(labels, [-1, 1]) - out)" in new and "loss=loss_fn" in new


def test_rows_that_the_labels_choose_see_them_with_their_own_axes() -> None:
    """`tf.where` of TensorFlow 1 takes a vector for rows, and a loss function of Keras gets a column (ValueError)."""
    text = TOLD.replace(
        "tf.reduce_mean(tf.square(tf.reshape(labels, [-1, 1]) - out))",
        "tf.reduce_mean(tf.square(tf.where(labels > 0, out, -out)))",
    )
    new, blocked = run_or_blocked(text)
    assert not blocked and "def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None):" in new
    assert "tf.raw_ops.Select(condition=labels > 0, x=out, y=-out)" in new
