"""What two programs do that are started again after a kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.harness import resuming
from migrator.harness.case import Case
from migrator.harness.cluster import ClusterShape

LOSSES = [0.5, 0.4, 0.3]


@pytest.mark.parametrize(
    ("theirs", "random", "status", "said"),
    [
        (LOSSES, False, "same", "both go on from step 5, for 3 steps"),
        ([0.5001, 0.4, 0.3], False, "same", "both go on"),
        ([0.9] * 8, False, "missing", "the migrated program begins anew"),
        ([0.4, 0.3], False, "missing", "takes 2 steps more, where the original takes 3"),
        # The weights came back, and the slots of the optimizer did not.
        ([0.5, 0.45, 0.38], False, "different", "the loss of its step 2 is 0.4 then, and 0.45"),
        ([0.5, 0.45, 0.38], True, "same", "both go on"),
        ([], False, "missing", "takes 0 steps more"),
        ([0.5, float("nan"), 0.3], False, "different", "nan"),
    ],
)
def test_what_comes_of_a_kill(theirs: list[float], random: bool, status: str, said: str) -> None:
    found = resuming.compared(LOSSES, theirs, 8, random=random)
    assert found is not None and found.status == status
    assert said in found.detail


def test_an_original_that_begins_anew_asks_for_nothing() -> None:
    assert resuming.compared(LOSSES, [0.1], 3, random=False) is None


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, False),
        ({"required": ("artefacts",)}, True),
        ({"all_mutants": True}, True),
        ({"all_mutants": True, "shape": ClusterShape.parse("worker=2")}, False),
        ({"required": ("artefacts",), "both_original": True}, False),
    ],
)
def test_four_more_runs_are_made_where_they_are_wanted(changes: dict[str, object], wanted: bool) -> None:
    assert resuming.asked_for(Case(Path("a.py"), Path("b.py"), **changes)) is wanted  # type: ignore[arg-type]
