"""What two programs do that are started again after a kill."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from migrator.harness import resuming, session
from migrator.harness.case import Case
from migrator.harness.cluster import ClusterShape

PAIR = Path(__file__).parent / "pairs" / "resumed"
LOSSES = [0.5, 0.4, 0.3]


@pytest.mark.parametrize(
    ("theirs", "random", "status", "said"),
    [
        (LOSSES, False, "same", "both resume at step 5, for 3 steps"),
        ([0.5001, 0.4, 0.3], False, "same", "both resume"),
        ([0.9] * 8, False, "missing", "the migrated program starts from scratch"),
        ([0.4, 0.3], False, "missing", "takes 2 steps more, where the original takes 3"),
        # The weights came back, and the slots of the optimizer did not.
        ([0.5, 0.45, 0.38], False, "different", "the loss of its step 2 is 0.4 then, and 0.45"),
        ([0.5, 0.45, 0.38], True, "same", "both resume"),
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
    ("theirs", "taken", "status", "said"),
    [
        (([0.1, 0.1], [0.05, 0.05]), True, "same", "both take it, for 2 steps"),
        # A rate that Keras restores with its optimizer.
        (([0.1, 0.1], [0.1, 0.1]), True, "different", "the one of its checkpoint"),
        (([0.1, 0.1], [0.1, 0.1]), False, "not compared", "could not be changed"),
        (([0.1, 0.1], [0.05, 0.1]), True, "different", "that of its step 2 is 0.05 then, and 0.1 in the"),
        (([0.1, 0.1], [0.05, None]), True, "different", "is 0.05 then, and none in"),
        (([0.1, 0.1], [0.05]), True, "different", "continues with its new learning rate"),
    ],
)
def test_what_comes_of_another_learning_rate_after_a_kill(
    theirs: tuple[list[float | None], list[float | None]], taken: bool, status: str, said: str
) -> None:
    found = resuming.compared_rates(([0.1, 0.1], [0.05, 0.05]), theirs, taken=taken)
    assert found is not None and (found.name, found.status) == (resuming.RATE_NAME, status)
    assert said in found.detail


def test_an_original_that_has_the_same_rate_again_asks_for_nothing() -> None:
    """Its rate comes of a variable that the checkpoint keeps, say, or is not known."""
    for after in ([0.1], [None]):
        assert resuming.compared_rates(([0.1], after), ([0.1], [0.05]), taken=True) is None


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
def test_more_runs_are_made_where_they_are_wanted(changes: dict[str, object], wanted: bool) -> None:
    assert resuming.asked_for(Case(Path("a.py"), Path("b.py"), **changes)) is wanted  # type: ignore[arg-type]


@pytest.mark.tensorflow
@pytest.mark.parametrize(("migrated", "status"), [("migrated", "same"), ("kept_rate", "different")])
def test_the_rate_that_a_program_goes_on_with(
    session_for: Callable[[int], session.Session], migrated: str, status: str
) -> None:
    """Keras restores the learning rate with the optimizer, and an Estimator does not: a user who has written another
    one goes on with the old one where the program does not see to it.
    """
    case = session.make_case(PAIR / "original.py", PAIR / f"{migrated}.py", required=("artefacts",))
    findings = session.compare(case, lambda _: None, session_for(2))
    found = {one.name: one for one in findings.artefacts}
    assert found[resuming.NAME].status == "same", found
    assert found[resuming.RATE_NAME].status == status, found
