"""Where the first weights of a later training come from, in both programs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrator.harness.protocol import origins
from migrator.harness.protocol.l8_artefacts import DIFFERENT, NOT_COMPARED, SAME
from migrator.harness.protocol.name_map import NameMap
from migrator.harness.recording import Origins
from tests.harness.numpy_programs import Program, run

FIRST = NameMap((("body/kernel", "dense/kernel"), ("body/bias", "dense/bias")), "names")
SECOND = NameMap((("body/kernel", "dense_2/kernel"), ("out/kernel", "dense_3/kernel")), "names")
OURS = frozenset({(0, "body/kernel"), (0, "body/bias")})
THEIRS = frozenset({(0, "dense/kernel"), (0, "dense/bias")})
GOES_ON = Origins(OURS, {"body/kernel": ((0, "body/kernel"),)})
ANEW = Origins(OURS, {})


def judged(ours: Origins | None, theirs: Origins | None) -> tuple[str, str] | None:
    one = run(Program())
    found = origins.judge(1, replace(one, origins=ours), replace(one, origins=theirs), SECOND, {0: FIRST})
    return None if found is None else (found.status, found.detail)


def test_weights_of_an_earlier_training_on_both_sides_are_the_same() -> None:
    found = judged(GOES_ON, Origins(THEIRS, {"dense_2/kernel": ((0, "dense/kernel"),)}))
    assert found == (SAME, "1 of them are what an earlier training left")


def test_a_model_that_begins_anew_in_one_program_differs() -> None:
    found = judged(GOES_ON, Origins(THEIRS, {}))
    assert found is not None and found[0] == DIFFERENT
    assert (
        "body/kernel begins with what body/kernel had come to" in found[1] and "dense_2/kernel begins anew" in found[1]
    )
    found = judged(ANEW, Origins(THEIRS, {"dense_2/kernel": ((0, "dense/kernel"),)}))
    assert found is not None and found[0] == DIFFERENT
    assert "does not begin with what the training of model 1 has left" in found[1]


def test_weights_of_another_variable_differ() -> None:
    found = judged(GOES_ON, Origins(THEIRS, {"dense_2/kernel": ((0, "dense/bias"),)}))
    assert found is not None and found[0] == DIFFERENT and "begins with dense/bias" in found[1]


@pytest.mark.parametrize("theirs", [Origins(THEIRS, {}), None])
def test_where_both_begin_anew_there_is_nothing_to_say(theirs: Origins | None) -> None:
    assert judged(ANEW, theirs) is None


def test_what_is_not_known_of_one_program_is_not_compared() -> None:
    found = judged(GOES_ON, None)
    assert found is not None and found[0] == NOT_COMPARED
    # Another model than the one of the original was trained before: nothing tells what its weights are there.
    found = judged(GOES_ON, Origins(frozenset({(0, "other/kernel")}), {}))
    assert found is not None and found[0] == NOT_COMPARED
