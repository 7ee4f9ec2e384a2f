"""Programs for Ascend NPUs stay, and are told so."""

from __future__ import annotations

import pytest

from migrator.findings import Finding, Severity
from tests.rules.programs import program, run

TEXT = program(driver="estimator.train(input_fn, steps=3)")
TRIED = "try:\n    from npu_bridge.npu_config import NPURunConfig\nexcept ImportError:\n    NPURunConfig = None\n"


def manual(findings: list[Finding]) -> list[tuple[str, int]]:
    return [(f.code, f.line) for f in findings if f.severity is Severity.MANUAL]


def test_other_names_are_nothing() -> None:
    assert run(TEXT)[0] != TEXT
    assert run("npu_bridge = 1\n" + TEXT)[0] != "npu_bridge = 1\n" + TEXT


@pytest.mark.parametrize("adapter", ["from npu_bridge.npu_init import *\n", "import npu_bridge\n"])
def test_a_program_is_told_so_and_stays(adapter: str) -> None:
    new, findings = run(adapter + TEXT)
    assert new == adapter + TEXT and manual(findings)[0][0] == "TFM182"


@pytest.mark.parametrize(
    "adapter",
    [
        "from npu_bridge.npu_init import *\n",
        "from npu_bridge.estimator.npu.npu_estimator import NPUEstimator\n",
    ],
)
def test_an_estimator_is_told_so(adapter: str) -> None:
    text = adapter + TEXT.replace("tf.estimator.Estimator(", "NPUEstimator(")
    new, findings = run(text)
    assert new == text
    line = next(i for i, one in enumerate(text.splitlines(), 1) if "NPUEstimator(" in one)
    assert manual(findings) == [("TFM182", line)]


def test_an_adapter_that_is_tried_counts_where_it_is_used() -> None:
    new, findings = run(TRIED + TEXT)
    assert new != TRIED + TEXT and manual(findings) == []
    used = TRIED + TEXT + "if NPURunConfig is not None:\n    print(NPURunConfig())\n"
    new, findings = run(used)
    assert new == used and manual(findings)[0][0] == "TFM182"
