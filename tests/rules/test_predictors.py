"""tf.contrib.predictor.from_saved_model: a function of the user's file, and what the bridge keeps."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import program, run

DRIVER = """\
estimator.train(input_fn, steps=3)
served = {made}
print(served({{"x": [[1.0]]}}))
"""
HELPER = """\
def saved_predictor(folder, signature=None):
    \"\"\"Returns a function of a dict of arrays, which gives those that a SavedModel's signature makes of it.\"\"\"
    model = tf.saved_model.load(tf.compat.as_str_any(folder))
    serve = model.signatures[signature or "serving_default"]
    specs = serve.structured_input_signature[1]

    def predict(inputs):
        unknown = inputs.keys() - specs.keys()
        if unknown:
            raise ValueError(f"The signature has no inputs {sorted(unknown)}: there are {sorted(specs)}.")
        given = {key: tf.constant(value, specs[key].dtype) for key, value in inputs.items()}
        return {key: value.numpy() for key, value in serve(**given).items()}

    predict.model = model  # the weights are there as long as somebody has the model
    return predict
"""


def blocked(text: str) -> list[str]:
    new, findings = run(text)
    assert new == text
    return [finding.code for finding in findings if finding.severity is Severity.MANUAL]


def test_a_program_without_a_predictor_gets_no_function() -> None:
    assert "saved_predictor" not in run(program())[0]


@pytest.mark.parametrize(
    ("arguments", "new"),
    [
        ('"model"', '"model"'),
        ('"model", "predict"', '"model", "predict"'),
        ('export_dir="model", signature_def_key=None', '"model"'),
        ('"model", tags="serve"', '"model"'),
    ],
)
def test_a_predictor_is_a_function_of_a_signature(arguments: str, new: str) -> None:
    made = f"tf.contrib.predictor.from_saved_model({arguments})"
    text, findings = run(program(driver=DRIVER.format(made=made)))
    assert not [finding for finding in findings if finding.severity is Severity.MANUAL]
    assert HELPER in text and f"served = saved_predictor({new})\n" in text


@pytest.mark.parametrize(
    "arguments",
    [
        '"model", config=tf.ConfigProto()',
        '"model", tags="train"',
        '"model", input_names={"a": "x:0"}',
        '"model", graph=g',
    ],
)
def test_sessions_and_tensors_of_a_predictor_take_the_bridge(arguments: str) -> None:
    made = f"tf.contrib.predictor.from_saved_model({arguments})"
    assert "TFM621" in blocked(program(driver=DRIVER.format(made=made)))


def test_a_predictor_that_is_looked_into_takes_the_bridge() -> None:
    driver = DRIVER.format(made='tf.contrib.predictor.from_saved_model("model")')
    assert blocked(program(driver=f"{driver}print(served.feed_tensors)")) == ["TFM621"]
