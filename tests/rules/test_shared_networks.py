"""A function that is called again with `reuse=`: a Keras model where both calls share all variables, or not native."""

from __future__ import annotations

import re

import pytest

from migrator.findings import Severity
from tests.rules.programs import run

HEAD = """\
import tensorflow as tf


def input_fn():
    data = {"x": [[1.0, 2.0]], "z": [[2.0, 1.0]]}, [[2.0]]
    return tf.data.Dataset.from_tensor_slices(data).batch(1)

"""
MODEL = """

def model_fn(features, labels, mode, params):
"""
TAIL = """\
    logits = tf.layers.dense(tf.concat([a, b], 1), 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=logits)
    loss = tf.losses.mean_squared_error(labels, logits)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn, params={"units": 4})
estimator.train(input_fn, steps=3)
print(estimator.evaluate(input_fn))
"""
CALLS = '    a = tower(features["x"])\n    b = tower(features["z"])\n'
AGAIN = '    a = tower(features["x"], False)\n    b = tower(features["z"], True)\n'


def tower(*lines: str, parameters: str = "x", reuse: str = "tf.AUTO_REUSE") -> str:
    """A function whose layers stand in a scope that gives them again."""
    inside = "".join(f"        {line}\n" for line in lines)
    return f'\ndef tower({parameters}):\n    with tf.variable_scope("tower", reuse={reuse}):\n{inside}'


METHODS = """
class Model:
    def __init__(self, units):
        self.units = units

    def tower(self, x):
        with tf.variable_scope("tower", reuse=tf.AUTO_REUSE):
            return tf.layers.dense(x, self.units)

    def both(self, features):
        one = self.tower(features["x"])
        other = self.tower(features["z"])
        return one, other
"""
OF_OBJECT = "    a, b = Model(4).both(features)\n"
LAYERS = ("h = tf.layers.dense(x, 3, tf.nn.relu)", "return tf.layers.dense(h, 2)")
SHARED = {
    "auto_reuse": (tower(*LAYERS), CALLS),
    "parameter": (tower(*LAYERS, parameters="x, again=None", reuse="again"), AGAIN),
    "by_hand": (
        '\ndef tower(x, again):\n    with tf.variable_scope("tower") as scope:\n        if again:\n'
        "            scope.reuse_variables()\n        return tf.layers.dense(x, 2)\n",
        AGAIN,
    ),
    "by_layers": ('\ndef tower(x, again):\n    return tf.layers.dense(x, 2, name="h", reuse=again)\n', AGAIN),
    "scopes_around": (
        '\ndef tower(x):\n    return tf.layers.dense(x, 2, name="h")\n',
        '    with tf.variable_scope("s") as scope:\n        a = tower(features["x"])\n'
        '    with tf.variable_scope(scope, reuse=True):\n        b = tower(features["z"])\n',
    ),
    "variable": (
        tower('w = tf.get_variable("w", [2, 3])', "return tf.matmul(x, w)"),
        CALLS,
    ),
    "in_a_network": (
        tower(*LAYERS)
        + "\n\ndef network(left, right):\n    one = tower(left)\n    other = tower(right)\n    return one, other\n",
        '    a, b = network(features["x"], features["z"])\n',
    ),
    "named_between": (
        tower(*LAYERS),
        CALLS.replace('features["z"]', "later").replace("    b", '    later = features["z"]\n    b'),
    ),
}
SCALED = tower("return tf.layers.dense(x, 2) * SCALE").replace("SCALE", "{}")


def between(line: str) -> str:
    """Two calls, and what is done between them."""
    return CALLS.replace("    b", f"    {line}\n    b")


STATE = METHODS.replace("        other", "        self.units = 5\n        other")
#: Neither is the second network the first one, or what the first call does is not done by a Keras model again.
APART = {
    "variables": (tower("w = tf.Variable(tf.ones([2, 3]))", "return tf.matmul(x, w)"), CALLS),
    "keras_layers": (tower("return tf.keras.layers.Dense(3)(tf.layers.dense(x, 2))"), CALLS),
    "normalized_twice": (tower("return tf.layers.batch_normalization(tf.layers.dense(x, 2), training=False)"), CALLS),
    "drawn_twice": (tower("return tf.layers.dense(x, 2) + tf.random_normal([1])"), CALLS),
    "printed_twice": (tower('print("tower")', "return tf.layers.dense(x, 2)"), CALLS),
    "another_setting": (
        tower("h = tf.layers.dense(x, 2)", "return tf.nn.relu(h) if act else h", parameters="x, act"),
        AGAIN,
    ),
    "a_list_of_the_model_fn": (
        tower("acc.append(x)", "return tf.layers.dense(x, 2)", parameters="x, acc"),
        '    acc = []\n    a = tower(features["x"], acc)\n    b = tower(features["z"], acc) + len(acc)\n',
    ),
    "a_number_of_the_module": (
        "\nCALLS = {0: 0}\n\n\ndef count():\n    CALLS[0] += 1\n    return float(CALLS[0])\n\n"
        + tower("return tf.layers.dense(x, 2) * count()"),
        CALLS,
    ),
    "another_tensor": (
        "",
        '    other = features["z"] * 2.0\n'
        + tower("return tf.layers.dense(x, 2) + other").replace("\n", "\n    ").rstrip()[1:]
        + "\n"
        + CALLS,
    ),
    "a_third_reader": (
        tower('return tf.layers.dense(x, 2, name="h")'),
        CALLS
        + '    with tf.variable_scope("tower", reuse=True):\n        k = tf.get_variable("h/kernel")\n    a += k[0]\n',
    ),
    "an_entry_that_changes_between": ("\nSCALE = [1.0]\n" + SCALED.format("SCALE[0]"), between("SCALE[0] = 3.0")),
    "an_attribute_that_changes_between": (
        "\n\nclass Flags(object):\n    scale = 1.0\n\n" + SCALED.format("Flags.scale"),
        between("Flags.scale = 3.0"),
    ),
    "a_number_that_a_function_changes_between": (
        "\nSCALE = 1.0\n\n\ndef grow():\n    global SCALE\n    SCALE = 3.0\n\n" + SCALED.format("SCALE"),
        between("grow()"),
    ),
    "an_object": (METHODS, OF_OBJECT),
    "an_object_that_changes": (STATE, OF_OBJECT),
    "an_object_twice": (METHODS, OF_OBJECT + OF_OBJECT.replace("a, b", "c, d")),
    "a_loop": (tower(*LAYERS), '    a = b = features["x"]\n    for _ in range(2):\n        a = tower(a)\n'),
    "half_of_it": (
        '\ndef tower(x, name):\n    with tf.variable_scope("s", reuse=tf.AUTO_REUSE):\n'
        "        h = tf.layers.dense(x, 3)\n    with tf.variable_scope(name):\n        return tf.layers.dense(h, 2)\n",
        '    a = tower(features["x"], "l")\n    b = tower(features["z"], "r")\n',
    ),
}


@pytest.mark.parametrize("name", SHARED)
def test_calls_that_share_all_variables_are_calls_of_one_keras_model(name: str) -> None:
    functions, calls = SHARED[name]
    new, findings = run(HEAD + functions + MODEL + calls + TAIL)
    assert not [f for f in findings if f.severity is Severity.MANUAL]
    assert len(re.findall(r"= tf\.keras\.Model\(x_input, (?:self\.)?tower\(x_input", new)) == 1
    assert len(re.findall(r"= tower_model\(", new)) == 2
    assert "reuse" not in new.replace("again", "")


@pytest.mark.parametrize("name", APART)
def test_calls_of_which_that_is_not_sure_have_no_native_form(name: str) -> None:
    functions, calls = APART[name]
    text = HEAD + functions + MODEL + calls + TAIL
    new, findings = run(text)
    assert [f for f in findings if f.severity is Severity.MANUAL]
    assert new == text


def test_the_default_name_of_a_scope_counts_where_the_name_is_none() -> None:
    function = (
        '\ndef block(x, scope=None):\n    with tf.variable_scope(scope, "block", [x]):\n'
        "        return tf.layers.dense(x, 2)\n"
    )
    calls = '    a = block(features["x"])\n    b = block(a, scope="last")\n'
    new, _ = run(HEAD + function + MODEL + calls + TAIL)
    assert 'with tf.name_scope(scope or "block"):' in new
