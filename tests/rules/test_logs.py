"""`tf.logging` where the program has something else under the name of Python's module."""

from __future__ import annotations

from migrator.findings import Severity
from tests.rules.programs import program, run


def test_levels_are_numbers_where_logging_is_something_else() -> None:
    lines = "from tensorflow.python.platform import tf_logging as logging\n\nlogging.log(logging.WARN, 'begun')\n"
    text = program().replace("\n\n\nestimator = ", f"\n\n\n{lines}estimator = ", 1)
    new, findings = run(text)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "tf.get_logger().log(30, 'begun')\n" in new
