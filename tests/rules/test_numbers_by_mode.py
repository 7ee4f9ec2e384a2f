"""Numbers that the mode decides, in whatever words: native where a dropout drops nothing outside of training."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from migrator.findings import Severity
from migrator.ir.program import Program
from migrator.program import numbers_by_mode
from migrator.program.parsed import ParsedFile
from tests.rules.programs import run

HEAD = """\
import functools

import tensorflow as tf

RATE = 0.4


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


"""
MODEL = """\
def model_fn(features, labels, mode, params):
    net = tf.layers.dense(features, 2)
{body}
    logits = tf.layers.dense(net, 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=logits)
    loss = tf.losses.mean_squared_error(labels, logits)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn, params={{"keep": 0.7}})
estimator.train(input_fn, steps=3)
print(estimator.evaluate(input_fn))
"""
TRAIN = "tf.estimator.ModeKeys.TRAIN"
KEYS = f"{{{TRAIN}: 0.3, tf.estimator.ModeKeys.EVAL: 0.0, tf.estimator.ModeKeys.PREDICT: 0.0}}"


def program(body: str, helpers: str = "") -> str:
    lines = "".join(f"    {line}\n" for line in body.splitlines()).rstrip("\n")
    return HEAD + helpers + MODEL.format(body=lines)


HELPER = f"def rate_of(mode, rate):\n    if mode == {TRAIN}:\n        return rate\n    return 0.0\n\n\n"
CHOSEN = [
    (f"keep = mode == {TRAIN} and 0.7 or 1.0\nnet = tf.nn.dropout(net, keep)", "", "Dropout(0.3)(net)"),
    (f"rates = {KEYS}\nnet = tf.nn.dropout(net, rate=rates[mode])", "", "Dropout(0.3)(net)"),
    ("net = tf.nn.dropout(net, rate=rate_of(mode, 0.3))", HELPER, "Dropout(0.3)(net)"),
    ("net = tf.nn.dropout(net, rate=rate_of(mode, 1 - params['keep']))", HELPER, "Dropout(1 - params['keep'])(net)"),
    (f"net = tf.nn.dropout(net, rate=0.3 * (mode == {TRAIN}))", "", "Dropout(0.3)(net)"),
    (
        f"keep = params['keep']\nif mode != {TRAIN}:\n    keep = 1.0\nnet = tf.nn.dropout(net, keep_prob=keep)",
        "",
        "Dropout(1 - params['keep'])(net)",
    ),
    (
        f"settings = dict(rate=0.0)\nif mode == {TRAIN}:\n    settings['rate'] = 0.3\n"
        "net = tf.nn.dropout(net, **settings)",
        "",
        "Dropout(0.3)(net)",
    ),
    (
        f"if mode == {TRAIN}:\n    keep, scale = 0.7, 2.0\nelse:\n    keep, scale = 1.0, 2.0\n"
        "net = tf.nn.dropout(net, keep)",
        "",
        "Dropout(0.3)(net)",
    ),
    (
        f"if mode == {TRAIN}:\n    chosen = RATE\nelse:\n    chosen = 0.0\nrate = chosen\n"
        "net = tf.nn.dropout(net, rate=rate)",
        "",
        "Dropout(RATE)(net)",
    ),
]


@pytest.mark.parametrize(("body", "helpers", "written"), CHOSEN)
def test_a_rate_of_training_in_other_words(body: str, helpers: str, written: str) -> None:
    new, findings = run(program(body, helpers))
    assert not [one for one in findings if one.severity is Severity.MANUAL]
    assert written in new
    for word in ("ModeKeys", "rate_of", "rates", "settings", "chosen", "keep ="):
        assert word not in new


@pytest.mark.parametrize(
    "body",
    [
        # The params are others when the rate is read.
        f"keep = params['keep']\nparams = {{'keep': 0.1}}\nif mode != {TRAIN}:\n    keep = 1.0\n"
        "net = tf.nn.dropout(net, keep_prob=keep)",
        # Something is dropped in evaluations, too.
        f"rate = 0.3 if mode == {TRAIN} else 0.1\nnet = tf.nn.dropout(net, rate=rate)",
        f"rates = {KEYS.replace('EVAL: 0.0', 'EVAL: 0.1')}\nnet = tf.nn.dropout(net, rate=rates[mode])",
        # What is not known decides.
        f"rate = 0.0\nif mode == {TRAIN} and params['drops']:\n    rate = 0.3\nnet = tf.nn.dropout(net, rate=rate)",
        # The layers have different rates.
        f"for rate in (0.1, 0.2):\n    net = tf.nn.dropout(net, rate=rate * (mode == {TRAIN}))",
    ],
)
def test_what_is_no_dropout_of_training(body: str) -> None:
    text = program(body)
    new, findings = run(text)
    assert new == text
    assert [one for one in findings if one.severity is Severity.MANUAL]


def test_a_network_that_others_tell_their_own_modes() -> None:
    network = (
        "def network(net, mode):\n    rate = 0.0\n    if mode == 'finetune':\n        rate = 0.1\n"
        f"    if mode == {TRAIN}:\n        rate = 0.3\n    return tf.nn.dropout(net, rate=rate)\n\n\n"
    )
    text = program("net = network(net, mode)", network)
    assert run(text)[0] == text


def test_numbers_of_functions_without_dropouts_stay_as_they_are() -> None:
    data = (
        f"def data(mode):\n    if mode == {TRAIN}:\n        size = 2\n    else:\n        size = 1\n"
        "    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(size)\n\n\n"
    )
    text = program("", data).replace("train(input_fn", f"train(lambda: data({TRAIN})")
    new, _ = run(text)
    assert ".batch(size)" in new


def test_a_function_that_prints_stays() -> None:
    told = HELPER.replace("    return 0.0\n", "    print('no dropout')\n    return 0.0\n")
    text = program("rate = rate_of(mode, 0.3)\nnet = tf.nn.dropout(net, rate=rate)", told)
    new, findings = run(text)
    assert new == text and [one for one in findings if one.severity is Severity.MANUAL]


def test_a_number_that_the_script_gives_its_module_when_it_runs() -> None:
    helpers = "OFF = None\n\n\ndef begin():\n    global OFF\n    OFF = 0.0\n\n\nbegin()\n\n\n"
    text = program(f"rate = OFF\nif mode == {TRAIN}:\n    rate = 0.3\nnet = tf.nn.dropout(net, rate=rate)", helpers)
    assert "Dropout(0.3)(net)" in run(text)[0]


def test_a_script_is_not_run_where_its_function_is_given_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """BERT's scripts: what their own functions are told the mode for are tensors, and running main() takes long."""
    network = (
        "def network(net, is_training):\n    if is_training:\n        net = tf.nn.dropout(net, rate=0.5)\n"
        "    return net, tf.reduce_sum(net)\n\n\n"
    )
    text = program(f"net, total = network(net, mode == {TRAIN})\ntf.summary.scalar('total', total)", network)
    ran: list[str] = []
    original = numbers_by_mode.program_of

    def program_of(file: ParsedFile, others: Iterable[ParsedFile] = ()) -> Program:
        ran.append(file.path.name)
        return original(file, others)

    monkeypatch.setattr(numbers_by_mode, "program_of", program_of)
    without = run(text)
    assert not ran
    monkeypatch.setattr(numbers_by_mode, "_may_be_numbers", lambda suspects, others: True)
    assert run(text) == without
    assert ran
