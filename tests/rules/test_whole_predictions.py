"""Predictions that are taken batch by batch."""

from __future__ import annotations

import ast

from migrator.findings import Severity
from tests.rules.programs import program, run

SPEC = ", predictions={'guess': logits, 'square': logits * logits}"
DRIVER = """\
estimator.train(input_fn, steps=3)
for batch in estimator.predict(input_fn, yield_single_examples=False):
    print(batch["guess"].shape)"""
WHOLE = '''
def predict_batches(predictor, dataset):
    """Yields the predictions for one batch after the other."""
    for batch in dataset:
        features = batch[0] if isinstance(batch, tuple) else batch
        predictions = predictor.predict_on_batch(features)
        yield predictions
'''


def test_batches() -> None:
    new, findings = run(program(spec=SPEC, driver=DRIVER))
    assert not [finding for finding in findings if finding.severity is Severity.MANUAL]
    ast.parse(new)
    assert WHOLE in new and "yield_single_examples" not in new


def test_both_ways_in_one_program() -> None:
    driver = DRIVER + "\nprint(next(estimator.predict(input_fn)))"
    new, findings = run(program(spec=SPEC, driver=driver))
    assert not [finding for finding in findings if finding.severity is Severity.MANUAL]
    assert "for batch in predict_batches(predictor, input_fn()):" in new
    assert "print(next(predict(predictor, input_fn())))" in new and WHOLE in new


def test_a_value_that_is_not_known_is_passed_on() -> None:
    new, findings = run(program(spec=SPEC, driver=DRIVER.replace("False", "WHOLE")))
    assert "yield_single_examples=WHOLE" in new and not [f for f in findings if f.severity is Severity.MANUAL]
    assert "            if not yield_single_examples:\n                yield predictions\n" in new


KEPT = """
        if predict_keys:
            predictions = {key: value for key, value in predictions.items() if key in predict_keys}
            if not predictions:
                raise ValueError(f"None of {predict_keys} is predicted.")
"""


def test_some_keys() -> None:
    driver = """\
estimator.train(input_fn, steps=3)
print(next(estimator.predict(input_fn, predict_keys=["guess"])))
print(next(estimator.predict(input_fn, ["square"])))
print(next(estimator.predict(input_fn, predict_keys=None)))
print(next(estimator.predict(input_fn, predict_keys="square", yield_single_examples=False)))"""
    new, findings = run(program(spec=SPEC, driver=driver))
    assert not [finding for finding in findings if finding.severity is Severity.MANUAL]
    ast.parse(new)
    assert "def predict(predictor, dataset, predict_keys=None):" in new
    assert "def predict_batches(predictor, dataset, predict_keys=None):" in new and new.count(KEPT) == 2
    calls = [line for line in new.splitlines() if line.startswith("print(next(")]
    assert calls == [
        'print(next(predict(predictor, input_fn(), predict_keys=["guess"])))',
        'print(next(predict(predictor, input_fn(), predict_keys=["square"])))',
        "print(next(predict(predictor, input_fn())))",
        'print(next(predict_batches(predictor, input_fn(), predict_keys="square")))',
    ]


def test_keys_of_one_tensor_are_refused() -> None:
    driver = 'estimator.train(input_fn, steps=3)\nprint(next(estimator.predict(input_fn, predict_keys="x")))'
    _, findings = run(program(spec=", predictions=logits", driver=driver))
    assert [one.code for one in findings if one.severity is Severity.MANUAL] == ["TFM110"]
