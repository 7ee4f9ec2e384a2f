"""The results of an evaluation have the step where a program may look at all of them, as an Estimator's did."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import program, run

TRAINS = "estimator.train(input_fn, steps=3)\n"
STEP = "global_step=int(model.optimizer.iterations.numpy())"


@pytest.mark.parametrize(
    ("lines", "given"),
    [
        ("results = estimator.evaluate(input_fn)\nfor name in results:\n    print(name)", True),
        ("results = estimator.evaluate(input_fn)\nfor name, value in sorted(results.items()):\n    print(name)", True),
        ("for name in estimator.evaluate(input_fn):\n    print(name)", True),
        ("results = estimator.evaluate(input_fn)\nprint({k: float(v) for k, v in results.items()})", True),
        ("print(sorted(estimator.evaluate(input_fn).items()))", True),
        ("results = estimator.evaluate(input_fn)\nsaved = results\nprint(len(saved))", True),
        ("import json\nresults = estimator.evaluate(input_fn)\njson.dump(results, open('r', 'w'))", True),
        ("history = []\nhistory.append(estimator.evaluate(input_fn))", True),
        ("print(dict(estimator.evaluate(input_fn), fold=1))", True),
        ("print([*estimator.evaluate(input_fn)])", True),
        ("key = 'loss'\nprint(estimator.evaluate(input_fn)[key])", True),
        ("if (results := estimator.evaluate(input_fn)):\n    print(list(results))", True),
        (
            "results = estimator.evaluate(input_fn)\nprint(results['loss'], results.get('loss'), 'loss' in results)",
            False,
        ),
        ("results = estimator.evaluate(input_fn)\nprint('%s %s' % (1, results), f'{results}')", False),
        ("estimator.evaluate(input_fn)", False),
        ("print(estimator.evaluate(input_fn)['loss'])", False),
        ("tf.logging.info('%s', estimator.evaluate(input_fn))", False),
        ("print(estimator.evaluate(input_fn)['global_step'])", True),
    ],
)
def test_the_step_is_among_the_results(lines: str, given: bool) -> None:
    new, findings = run(program(driver=TRAINS + lines))
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert (STEP in "".join(new.split("\n")).replace(" ", "")) is given, new


def test_results_that_a_function_returns() -> None:
    inside = "\ndef main():\n    estimator = tf.estimator.Estimator(model_fn)\n    estimator.train(input_fn, steps=3)\n"
    text = program(driver="").replace('estimator = tf.estimator.Estimator(model_fn, params={"rate": 0.1})\n', inside)
    text = text.replace(", params):", "):").rstrip() + "\n    return estimator.evaluate(input_fn)\n\n\n"
    assert STEP in run(text + "print(sorted(main()))\n")[0]


PREDICTS = """import collections

import tensorflow as tf

Net = collections.namedtuple("Net", "logits doubled")


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


def model_fn(features, labels, mode):
    logits = tf.layers.dense(features, 1)
    net = Net(logits, 2 * logits)
    made = {"logits": logits}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=PREDICTIONS)
    loss = tf.losses.mean_squared_error(labels, logits)
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=3)
print(next(estimator.predict(input_fn)))
"""


@pytest.mark.parametrize(
    ("predictions", "of_dicts"),
    [
        ("made", True),
        ("made.copy()", True),
        ("net._asdict()", True),
        ("collections.OrderedDict(logits=logits)", True),
        ("{key: value for key, value in [('logits', logits)]}", True),
        ("logits", False),
        ("tf.identity(logits)", False),
    ],
)
def test_predictions_are_taken_apart_as_what_they_are(predictions: str, of_dicts: bool) -> None:
    """A dict that is gone through gives its keys: 'string indices must be integers' for the first who reads one."""
    new, _ = run(PREDICTS.replace("PREDICTIONS", predictions))
    assert ("yield dict(zip(predictions, values))" in new) == of_dicts
    assert ("yield from predictions" in new) != of_dicts
