"""Optimizers by the names of canned Estimators, and what datasets said of their elements."""

from __future__ import annotations

from migrator.findings import Severity
from tests.rules.programs import program, run


def test_an_optimizer_that_is_named_when_the_program_runs() -> None:
    text = program(optimizer="optimizers.get_optimizer_instance(params['name'], 0.1)").replace(
        "import tensorflow as tf\n",
        "import tensorflow as tf\nfrom tensorflow.python.estimator.canned import optimizers\n",
    )
    new, findings = run(text)
    assert not [finding for finding in findings if finding.severity is Severity.MANUAL]
    for name in ("Adagrad", "Adam", "Ftrl", "RMSProp", "SGD"):
        assert f'        "{name}": ' in new
    assert "}[params['name']]\n" in new and "tensorflow.python" not in new
    assert "RMSPropOptimizer(learning_rate=0.1, rho=0.9, epsilon=1e-10)" in new
    refused = run(text.replace("params['name']", "'Adamax'"))[1]
    assert [finding.code for finding in refused if finding.severity is Severity.MANUAL] == ["TFM401"]


def test_what_a_dataset_says_of_its_elements() -> None:
    text = program(driver="data = input_fn()\nprint(data.output_shapes)\nestimator.train(input_fn, steps=3)")
    assert "print(tf.nest.map_structure(lambda spec: spec.shape, data.element_spec))" in run(text)[0]
