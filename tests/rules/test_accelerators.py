"""Packages with faster kernels, where they are installed."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import program, run

TRIED = """\
activation = tf.nn.relu
# The package's own, if it is there.
try:
    import intel_extension_for_tensorflow as itex
    activation = itex.ops.gelu
except ImportError:
    pass
net = activation(net)"""


def codes(text: str) -> tuple[str, list[str], list[str]]:
    new, findings = run(text)
    blocking = [finding.code for finding in findings if finding.severity is Severity.MANUAL]
    return new, blocking, [finding.code for finding in findings]


def test_the_program_is_what_runs_without_it() -> None:
    new, blocking, found = codes(program(TRIED))
    assert not blocking and "TFM197" in found
    assert "itex" not in new and "The package's own" not in new
    assert "activation = tf.nn.relu" in new and "net = activation(net)" in new


def test_lines_of_the_handler_stay() -> None:
    text = TRIED.replace("    pass\n", "    # Slower.\n    print('none')\n    activation = tf.nn.elu\n")
    text = text.replace(" ImportError", "").replace("# The package", "# Bends.\n# Intel's itex")
    new, blocking, _ = codes(program(text))
    assert not blocking and "try" not in new and "itex" not in new and "Intel" not in new
    assert "# Bends.\n" in new and "# Slower.\n" in new
    assert "print('none')\n" in new and "activation = tf.nn.elu\n" in new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("except ImportError:", "except KeyError:"),
        ("    import intel", "    print('trying')\n    import intel"),
        ("    pass\n", "    pass\nelse:\n    activation = tf.nn.elu\n"),
    ],
)
def test_what_is_no_such_attempt_stays(old: str, new: str) -> None:
    assert old in TRIED
    _, _, found = codes(program(TRIED.replace(old, new)))
    assert "TFM197" not in found
