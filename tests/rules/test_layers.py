"""Layers in whole programs: the phase, layer objects, and what must not be carried over in silence."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import program, run

IS_TRAINING = "is_training = mode == tf.estimator.ModeKeys.TRAIN\n"


def codes(text: str, severity: Severity) -> list[str]:
    new, findings = run(text)
    if any(f.severity is Severity.MANUAL for f in findings):
        assert new == text
    return [f.code for f in findings if f.severity is severity]


def test_updates_that_never_run_keep_the_averages_where_they_are() -> None:
    text = program(network=IS_TRAINING + "net = tf.layers.batch_normalization(net, -1, 0.9, training=is_training)")
    assert "BatchNormalization(momentum=1.0, axis=-1)(net)" in run(text)[0]
    assert "TFM221" in codes(text, Severity.REVIEW)


def test_a_layer_that_always_trains_is_said() -> None:
    text = program(network="net = tf.layers.dropout(net, 0.1, training=True)")
    assert "Dropout(0.1)(net, training=True)" in run(text)[0]
    assert "TFM222" in codes(text, Severity.REVIEW)


def test_a_layer_object_under_a_name_of_its_own() -> None:
    text = program(
        network=IS_TRAINING + "drop = tf.layers.Dropout(0.1)\nnet = drop(net, training=is_training)\nnet = drop(net)\n"
        "net = drop.apply(net, training=not is_training)"
    )
    assert codes(text, Severity.MANUAL) == ["TFM106"]
    new, _ = run(text.replace("not is_training", "False"))
    assert "    net = drop(net)\n    net = drop(net, training=False)\n    net = drop(net, training=False)\n" in new


REFUSED = {
    "an object in a list": "net = [tf.layers.Dropout(0.1), print(1)][0](net)",
    "an object that is passed on": "drop = tf.layers.Dropout(0.1)\nnet = list(map(drop, [net]))[0]",
    "an object with two meanings": "drop = tf.layers.Dropout(0.1)\ndrop = tf.layers.Dropout(0.2)\nnet = drop(net)",
    "a phase by position": "net = tf.layers.Dropout(0.1)(net, True)",
    "a phase that is a parameter": "net = tf.layers.dropout(net, training=params['training'])",
    "a frozen normalization": "net = tf.layers.batch_normalization(net, trainable=False)",
    "an object whose updates never run": "bn = tf.layers.BatchNormalization()\nnet = bn(net, training=True)",
}


@pytest.mark.parametrize("construct", REFUSED)
def test_refused(construct: str) -> None:
    assert "TFM202" in codes(program(network=REFUSED[construct]), Severity.MANUAL)


def test_positional_arguments_get_the_names_that_they_had() -> None:
    text = program(network="net = tf.layers.separable_conv2d(net, 3, 2, 1, 'same', 'channels_last', 1, 2, tf.nn.relu)")
    assert (
        "SeparableConv2D(3, 2, strides=1, padding='same', data_format='channels_last', dilation_rate=1,"
        " depth_multiplier=2, activation=tf.nn.relu)(net)"
    ) in run(text)[0]


def test_reuse_that_shares_nothing() -> None:
    assert "Dense(2, name='a')(net)" in run(program(network="net = tf.layers.dense(net, 2, name='a', reuse=None)"))[0]
    text = program(network="net = tf.layers.dense(net, 2, name='a', reuse=tf.AUTO_REUSE)")
    assert "Dense(2, name='a')(net)" in run(text)[0]
    assert "TFM202" in codes(text.replace("reuse=tf.AUTO_REUSE", "reuse=True"), Severity.MANUAL)


def test_a_class_that_the_file_needs_stands_before_its_functions() -> None:
    text = program(network=IS_TRAINING + "net = tf.contrib.slim.batch_norm(net, is_training=is_training, decay=0.9)")
    new, findings = run(text)
    assert "FusedBatchNormalization(momentum=1.0, scale=False)(net)\n" in new
    assert "import tensorflow as tf\n\n\nclass FusedBatchNormalization(tf.keras.layers.BatchNormalization):\n" in new
    assert (
        "        return super().call(inputs[:, None, None, :], training=training)[:, 0, 0, :]\n\n\ndef input_fn" in new
    )
    assert {"TFM221", "TFM225"} <= {f.code for f in findings}
    taken = text.replace("def input_fn", "FusedBatchNormalization = None\n\n\ndef input_fn")
    assert codes(taken, Severity.MANUAL) == ["TFM224"]


def test_normalizer_params_under_a_name() -> None:
    text = program(
        network=IS_TRAINING + "bn = {'is_training': is_training, 'scale': True, 'updates_collections': None}\n"
        "net = tf.contrib.layers.conv2d(net, 3, 2, normalizer_fn=tf.contrib.layers.batch_norm, normalizer_params=bn,\n"
        "                               activation_fn=None, scope='c')"
    )
    new, findings = run(text)
    assert (
        "    net = tf.keras.layers.BatchNormalization(momentum=0.999)("
        "tf.keras.layers.Conv2D(3, 2, name='c', use_bias=False, padding=\"same\")(net))\n"
    ) in new
    assert "bn =" not in new
    assert not [f for f in findings if f.severity is Severity.MANUAL]


def test_a_dropout_that_keeps_all_outside_training() -> None:
    for keep in ("0.8 if is_training else 1.0", "1. if not is_training else 0.8"):
        text = program(network=IS_TRAINING + f"keep = {keep}\nnet = tf.contrib.layers.dropout(net, keep)")
        new, findings = run(text)
        assert "    net = tf.keras.layers.Dropout(0.2)(net)\n" in new
        assert "TFM222" not in {f.code for f in findings}


NOT_CARRIED_OVER = (
    "net = tf.contrib.layers.conv2d(net, 3, 2, variables_collections=['w'])",
    "net = tf.contrib.layers.batch_norm(net, param_initializers={'beta': tf.ones_initializer()})",
    "net = tf.contrib.layers.batch_norm(net, updates_collections='mine')",
    "net = tf.contrib.layers.layer_norm(net, begin_norm_axis=2)",
    "net = tf.contrib.layers.fully_connected(net, 3, normalizer_fn=tf.nn.l2_normalize)",
    "with tf.contrib.slim.arg_scope([net], stride=2):\n    net = tf.nn.relu(net)",
)


@pytest.mark.parametrize("network", NOT_CARRIED_OVER)
def test_contrib_refused(network: str) -> None:
    assert {"TFM224"} == set(codes(program(network=network), Severity.MANUAL))


def test_dropouts_of_the_training_mode_lose_their_condition() -> None:
    text = program(
        network=IS_TRAINING + "if is_training:\n    # against overfitting\n    net = tf.nn.dropout(net, 0.9)\n"
        "keep = params['rate'] if is_training else 1.0\nfor units in (3, 2):\n    net = tf.layers.dense(net, units)\n"
        "    if mode == tf.estimator.ModeKeys.TRAIN:\n        net = tf.layers.dropout(net, 0.1, training=True)\n"
        "    net = tf.nn.dropout(net, keep)\n"
        "net = tf.nn.dropout(net, 0.8) if is_training else net"
    )
    new, findings = run(text)
    assert not [f for f in findings if f.severity is Severity.MANUAL or f.code == "TFM222"]
    assert (
        "    # against overfitting\n    net = tf.keras.layers.Dropout(0.1)(net)\n"
        "    for units in (3, 2):\n        net = tf.keras.layers.Dense(units)(net)\n"
        "        net = tf.keras.layers.Dropout(0.1)(net)\n"
        "        net = tf.keras.layers.Dropout(1 - params['rate'])(net)\n"
        "    net = tf.keras.layers.Dropout(0.2)(net)\n"
    ) in new


NOT_DROPOUTS = {
    "another tensor": "net = net * 2.0\nif is_training:\n    net = tf.nn.dropout(features, 0.9)",
    "a tensor that changed": "other = net\nnet = net * 2.0\nif is_training:\n    net = tf.nn.dropout(other, 0.9)",
    "more than a dropout": "if is_training:\n    net = tf.nn.dropout(net, 0.9) + 1.0",
    "another value outside training": "net = tf.nn.dropout(net, 0.9 if is_training else 0.95)",
    "evaluation": "if not is_training:\n    net = tf.nn.dropout(net, 0.9)",
    "another tensor outside training": "net = tf.nn.dropout(net, 0.9) if is_training else features",
}


@pytest.mark.parametrize("construct", NOT_DROPOUTS)
def test_what_differs_by_mode_is_refused(construct: str) -> None:
    assert "TFM106" in codes(program(network=IS_TRAINING + NOT_DROPOUTS[construct]), Severity.MANUAL)


SCOPES = """
def half(x, size):
    with tf.variable_scope({first}):
        return tf.layers.dense(x, size, name="hidden")


def other(x):
    with tf.variable_scope("outer"):
        with tf.variable_scope({second}):
            x = tf.layers.dense(x, 2, name="hidden")
        return tf.contrib.layers.fully_connected(x, 2, scope="own")
"""


def scoped(first: str = '"first"', second: str = '"second"', network: str = "net = other(half(net, 2))") -> str:
    helpers = SCOPES.format(first=first, second=second)
    return program(network=network).replace("\ndef model_fn", helpers + "\n\ndef model_fn", 1)


def test_layers_of_one_name_in_several_scopes_are_told_apart() -> None:
    new, _ = run(scoped())
    assert 'Dense(size, name="first_hidden")(x)' in new and 'Dense(2, name="outer_second_hidden")(x)' in new
    assert 'name="own"' in new and 'tf.name_scope("second")' in new


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (scoped(network="net = half(half(net, 2), 2)"), "TFM202"),
        (scoped('"first", reuse=tf.AUTO_REUSE', network="net = half(net, 1)\nnet = half(net, 1)"), "TFM202"),
        (scoped(network="net = half(net, 2)\nnet = half(net, 3)"), "TFM202"),
        (scoped('"first", reuse=True'), "TFM705"),
    ],
)
def test_layers_that_share_name_and_scope_are_refused(text: str, code: str) -> None:
    assert code in codes(text, Severity.MANUAL)


TOWER = """
def tower(x, units, name):
    with tf.variable_scope(name{more}):
        for i, size in enumerate(units):
            x = tf.layers.dense(x, size, name={named})
        return {last}


def model_fn"""
TWO = 'net = tower(net, params["sizes"], "a")\nnet = tower(net, params["sizes"], "b")'
REUSE = ", reuse=tf.AUTO_REUSE"


def towers(more: str = "", named: str = '"layer_%d" % i', last: str = "x", network: str = TWO) -> str:
    text = TOWER.lstrip().format(more=more, named=named, last=last)
    return program(network=network).replace("def model_fn", text, 1)


@pytest.mark.parametrize("more", ["", REUSE])
@pytest.mark.parametrize("named", ['"layer_%d" % i', '"layer_{}".format(i)', '"layer" + str(i)', 'f"layer_{i}"'])
def test_computed_names_of_two_calls_are_left_out(more: str, named: str) -> None:
    """Keras wants a name for each layer in all the model: two would be `layer_0`."""
    new, findings = run(towers(more, named))
    assert not [f for f in findings if f.severity is Severity.MANUAL]
    assert "            x = tf.keras.layers.Dense(size)(x)\n" in new


@pytest.mark.parametrize(
    ("network", "named"),
    [('net = tower(net, params["sizes"], "a")', '"layer_%d" % i'), (TWO, '"%s_%d" % (name, i)')],
)
def test_computed_names_that_are_told_apart_stay(network: str, named: str) -> None:
    new, findings = run(towers(named=named, network=network))
    assert not [f for f in findings if f.severity is Severity.MANUAL]
    assert f"x = tf.keras.layers.Dense(size, name={named})(x)" in new


def test_names_in_scopes_whose_names_are_computed_are_left_out() -> None:
    new, findings = run(towers(named='"layer_%d" % i', last='tf.layers.dense(x, 2, name="last")'))
    assert not [f for f in findings if f.severity is Severity.MANUAL]
    assert "return tf.keras.layers.Dense(2)(x)\n" in new
    assert not codes(scoped(first='name + "a"', second='name + "b"').replace('"outer"', "name"), Severity.MANUAL)


@pytest.mark.parametrize(
    "text",
    [
        towers(REUSE, network=TWO.replace('"b"', '"a"')),
        towers(REUSE, named='"layer"'),
        towers(REUSE, named='"layer_%d" % (i % 2)'),
        towers(REUSE, named='"layer_%d" % size'),
        towers(named='"layer_%d" % i, reuse=tf.AUTO_REUSE'),
        towers(REUSE, last='tf.layers.dense(x, 2, name="layer_0")'),
        towers(REUSE, last="x", network='net = tower(net, params["sizes"], "a")', named='"layer_%d" % i').replace(
            "        return x\n",
            "        for j in range(2):\n            x = tf.layers.dense(x, 3, name=f'layer_{j}')\n        return x\n",
        ),
        towers(last='tf.layers.dense(x, 2, name="last", reuse=tf.AUTO_REUSE)', network=TWO.replace('"b"', '"a"')),
        towers(REUSE, network="for _ in range(params['n']):\n    net = tower(net, params['sizes'], 'a')"),
    ],
    ids=[
        "one scope",
        "one name",
        "every second turn",
        "another number",
        "layers",
        "one of them",
        "two loops",
        "a layer",
        "a scope in a loop",
    ],
)
def test_turns_that_share_their_variables_are_refused(text: str) -> None:
    assert {"TFM705", "TFM202"} & set(codes(text, Severity.MANUAL))


NAMED = """
def block(x, name="hidden"):
    return tf.layers.dense(x, 2, name=name)


def model_fn"""


@pytest.mark.parametrize(("second", "told"), [('"h"', False), ("", False), ('name="hidden"', False), ('"other"', True)])
def test_names_that_a_function_is_given(second: str, told: bool) -> None:
    first = second if second == '"h"' else ""
    network = f'with tf.variable_scope("a"):\n    net = block(net, {first})\nwith tf.variable_scope("b"):\n'
    text = program(network=f"{network}    net = block(net, {second})").replace("def model_fn", NAMED.lstrip(), 1)
    assert codes(text, Severity.MANUAL) == ([] if told else ["TFM202"])
