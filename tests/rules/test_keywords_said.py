"""Keywords that a driver gives as a dict which has a name."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import program, run, run_project


def blocked(text: str) -> list[str]:
    new, findings = run(text)
    assert new == text
    return [finding.code for finding in findings if finding.severity is Severity.MANUAL]


RUN = """\
def run(estimator, **more):
    estimator.train(input_fn, **more)


"""


def with_run(text: str, calls: str) -> str:
    return text.replace("estimator = tf.est", f"{RUN}estimator = tf.est", 1).replace(
        "estimator.train(input_fn, steps=3)", calls
    )


def test_a_driver_that_gives_its_arguments_stays_as_it_is_written() -> None:
    assert "model.fit(input_fn().take(3))" in run(program())[0]


@pytest.mark.parametrize(
    ("calls", "new"),
    [
        ("run(estimator, steps=3)\nrun(estimator, steps=5)", 'steps=more["steps"]'),
        ("run(estimator)\nrun(estimator)", "estimator.train(input_fn)"),
    ],
)
def test_keywords_that_all_callers_give_stand_in_the_call(calls: str, new: str) -> None:
    found, findings = run(with_run(program(), calls))
    assert not [finding for finding in findings if finding.severity is Severity.MANUAL], findings
    assert new in found


@pytest.mark.parametrize("calls", ["run(estimator, steps=3)\nrun(estimator)", "run(estimator, **load())"])
def test_keywords_that_differ_or_are_not_known_stay(calls: str) -> None:
    text = with_run(program(), calls).replace(
        "import tensorflow as tf\n", "import tensorflow as tf\nfrom there import load\n"
    )
    assert "TFM103" in blocked(text)


def test_a_dict_that_changes_between_two_calls_is_read_at_each() -> None:
    driver = (
        'more = {"steps": 3}\nestimator.train(input_fn, **more)\nmore["hooks"] = []\nestimator.train(input_fn, **more)'
    )
    assert "TFM103" not in [f.code for f in run(program(driver=driver))[1] if f.severity is Severity.MANUAL]


def test_another_file_may_give_more() -> None:
    main = with_run(program(), "if __name__ == '__main__':\n    run(estimator, steps=3)")
    other = "import train\n\ntrain.run(train.estimator, max_steps=9)\n"
    found = run_project({"train.py": main, "other.py": other})
    assert "TFM103" in [f.code for f in found["train.py"][1] if f.severity is Severity.MANUAL]


def test_settings_of_a_nested_dict() -> None:
    text = program().replace(
        "estimator = tf.estimator.Estimator(model_fn, ",
        'CONFIG = {"run": {"tf_random_seed": 1}, "model": {}}\n'
        'config = tf.estimator.RunConfig(**CONFIG["run"])\n'
        "estimator = tf.estimator.Estimator(model_fn, config=config, ",
    )
    new, findings = run(text)
    assert not [finding for finding in findings if finding.severity is Severity.MANUAL]
    assert 'tf.random.set_seed(CONFIG["run"]["tf_random_seed"])' in new or "tf.random.set_seed(1)" in new
