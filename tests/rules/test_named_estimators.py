"""Estimators that train_and_evaluate is given in place."""

from __future__ import annotations

import pytest

from tests.rules.programs import program, run

BOTH = """
tf.estimator.train_and_evaluate(
    {},
    train_spec=tf.estimator.TrainSpec(input_fn, max_steps=3),
    eval_spec=tf.estimator.EvalSpec(input_fn),
)
"""
MADE = 'tf.estimator.Estimator(model_fn, model_dir="m", params={"rate": 0.1})'


def written(given: str) -> str:
    text = program(driver=BOTH.format(given))
    start = text.index("estimator = ")
    text = text[:start] + text[text.index("\n", start) :]
    new, findings = run(text)
    assert "tf.keras" in new, findings
    return new


@pytest.mark.parametrize("given", ["{}", "estimator={}"])
def test_it_trains_as_one_that_has_a_name(given: str) -> None:
    new = written(given.format(MADE))
    named = program(driver=BOTH.format("estimator"))
    start = named.index("estimator = ")
    named = named[: start + 12] + MADE + named[named.index("\n", start) :]
    assert new.replace("\n", "") == run(named)[0].replace("\n", "")
    assert "class Trainer" not in new and "make_strategy" in new


def test_its_name_is_free() -> None:
    assert "estimator_2" not in written(MADE)


@pytest.mark.parametrize("asked", ["train(input_fn, steps=3)", "evaluate(input_fn)"])
def test_one_that_is_asked_in_place(asked: str) -> None:
    """It is written as one with a name: nothing but what it is asked here can be asked of it."""
    named = run(program(driver=f"estimator.{asked}"))[0]
    text = program(driver=f"estimator.{asked}")
    start, end = text.index("estimator = "), text.index(f"estimator.{asked}")
    new, findings = run(
        text[:start] + text[start + len("estimator = ") : end].rstrip("\n") + text[end + len("estimator") :]
    )
    assert new == named and "tf.keras" in new, findings
