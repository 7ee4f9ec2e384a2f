"""Input functions that must not be called once more for the shapes: what they draw, count or take would be gone."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import run

PROGRAM = """\
import random

import numpy as np
import tensorflow as tf

X = np.ones([8, 1], np.float32)
RNG = np.random.RandomState(0)
PARTS = iter([X, X])
SEEN = []


def of(x):
    return tf.data.Dataset.from_tensor_slices((x, x)).batch(2)


class Reader(object):
    def __init__(self):
        self.calls = 0

    def __call__(self):
        {reader}
        return of(X)


def input_fn():
    {body}
    return of(X)


def plain_fn():
    rng = np.random.RandomState(7)
    return of(rng.rand(8, 1).astype(np.float32))


def model_fn(features, labels, mode):
    outputs = tf.layers.dense(features, 1)
    loss = tf.losses.mean_squared_error(labels, outputs)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


reader = Reader()
{driver}
"""
DRAWS = {
    "the generator of numpy": "x = np.random.permutation(X)",
    "its shuffle": "np.random.shuffle(X)",
    "a generator of the module": "x = X[RNG.permutation(8)]",
    "another name for it": "rng = RNG\n    x = rng.rand(8, 1)",
    "the generator of Python": "x = random.random()",
    "the next of an iterator": "x = next(PARTS)",
    "a list that grows": "SEEN.append(1)",
    "a count": "global X\n    X = X + 1",
    "a count of its own": "input_fn.calls += 1",
}
PLAIN = {
    "a generator of its own": "x = np.random.RandomState(7).rand(8, 1)",
    "its own by a name": "rng = np.random.default_rng(7)\n    x = rng.permutation(X)",
    "a list of its own": "rows = []\n    rows.append(1)\n    rows.sort()",
    "numpy": "x = np.roll(X, 3)",
    "a dataset": "d = of(X).shuffle(8, seed=1)",
}
ONE = "est = tf.estimator.Estimator(model_fn)\nest.train({fn}, steps=3)"


def driver_of(body: str = "pass", driver: str = ONE.format(fn="input_fn"), reader: str = "pass") -> str:
    new, findings = run(PROGRAM.format(body=body, driver=driver, reader=reader))
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    return new[new.index("reader = Reader()") :]


@pytest.mark.parametrize("case", DRAWS)
def test_what_draws_is_called_once(case: str) -> None:
    new = driver_of(DRAWS[case])
    assert new.count("input_fn()") == 1 and "train_data = input_fn()\nest = model_fn(make_inputs(train_data))" in new
    assert "est.fit(train_data.take(3))" in new


@pytest.mark.parametrize("case", PLAIN)
def test_what_draws_nothing_is_asked_for_the_shapes(case: str) -> None:
    assert "est = model_fn(make_inputs(input_fn()))\nest.fit(input_fn().take(3))" in driver_of(PLAIN[case])


def test_an_object_that_counts_its_calls() -> None:
    new = driver_of(driver=ONE.format(fn="reader"), reader="self.calls += 1")
    assert "train_data = reader()\nest = model_fn(make_inputs(train_data))\nest.fit(train_data.take(3))" in new


LOOP = "est = tf.estimator.Estimator(model_fn)\nfor _ in range(2):\n    est.train(input_fn)\n    est.evaluate({fn})"


def test_another_input_function_tells_the_shapes() -> None:
    new = driver_of(DRAWS["its shuffle"], LOOP.format(fn="plain_fn"))
    assert "est = model_fn(make_inputs(plain_fn()))" in new and new.count("input_fn()") == 1


def test_a_fold_has_its_own_dataset() -> None:
    fold = "for fold in range(2):\n" + ONE.format(fn="input_fn")
    new = driver_of(DRAWS["its shuffle"], fold.replace("\n", "\n    "))
    assert "    train_data = input_fn()\n    est = model_fn(make_inputs(train_data))" in new


@pytest.mark.parametrize(
    "driver",
    [
        LOOP.format(fn="input_fn"),
        ONE.format(fn="input_fn").replace("est.train", "if X.size:\n    est.train"),
        "est = tf.estimator.Estimator(model_fn, 'm', tf.estimator.RunConfig(save_checkpoints_steps=5))\n"
        "train = tf.estimator.TrainSpec(lambda: of(X).repeat(), max_steps=10)\n"
        "tf.estimator.train_and_evaluate(est, train, tf.estimator.EvalSpec(input_fn))",
    ],
)
def test_where_the_first_call_is_not_known_it_is_refused(driver: str) -> None:
    _, findings = run(PROGRAM.format(body=DRAWS["its shuffle"], driver=driver, reader="pass"))
    assert [f.code for f in findings if f.severity is Severity.MANUAL] == ["TFM618"], findings


def test_what_is_read_is_read_after_it_is_written() -> None:
    driver = "est = tf.estimator.Estimator(model_fn)\nnp.save('x.npy', X)\nest.train(input_fn, steps=3)"
    late = driver_of("x = np.load('x.npy')", driver)
    assert late.index("np.save('x.npy', X)") < late.index("make_inputs(input_fn())")
    early = driver_of(driver=driver)
    assert early.index("np.save('x.npy', X)") > early.index("make_inputs(input_fn())")


CALLABLE = PROGRAM.replace("def __call__(self):", "def __call__(self, mode, params):")


@pytest.mark.parametrize(
    ("fn", "call"), [("reader", "reader("), ("Reader()", "Reader()("), ("reader.__call__", "reader.__call__(")]
)
def test_an_object_is_given_what_an_input_function_is(fn: str, call: str) -> None:
    driver = f"est = tf.estimator.Estimator(model_fn, params={{'size': 2}})\nest.train({fn}, steps=3)"
    text = CALLABLE.format(body="pass", driver=driver, reader="pass").replace("mode):", "mode, params):")
    new, findings = run(text)
    assert f"""est.fit({call}"train", {{'size': 2}}).take(3))""" in new, findings
