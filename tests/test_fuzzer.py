"""The differential fuzzer itself: its programs are programs, and its comparison sees what it is there to see."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest

from tests.fuzz.axes import AXES, draw, parse, sensible, shown
from tests.fuzz.judging import Kind, after_running, before_running
from tests.fuzz.programs import files
from tests.fuzz.sides import Migration, Run

EVERY_VALUE = [{axis: name} for axis, names in AXES.items() for name in names[1:]]


@pytest.mark.parametrize("values", EVERY_VALUE, ids=shown)
def test_every_value_changes_the_program(values: dict[str, str]) -> None:
    beside = {"updates": {"normalization": "one"}, "binding": {"rebound": "loss before minimize"}}
    partner = next((others for axis, others in beside.items() if axis in values), {})
    made = files({**partner, **values})
    for text in made.values():
        ast.parse(text)
    assert made != files(partner)


def test_a_seed_is_a_program() -> None:
    programs = [draw(seed) for seed in range(400)]
    assert programs == [draw(seed) for seed in range(400)]
    for values in programs:
        assert sensible(values) == values == parse(shown(values))
        for text in files(values).values():
            ast.parse(text)
    seen = {(axis, name) for values in programs for axis, name in values.items()}
    missing = {(axis, name) for axis, names in AXES.items() for name in names[1:]} - seen
    assert {axis for axis, _ in missing} <= {"comment"}  # too many words for so few programs


def test_what_is_no_program() -> None:
    with pytest.raises(ValueError, match="there is no driver: thrice"):
        parse("driver=thrice")
    with pytest.raises(ValueError, match="not a program"):
        parse("driver")


def test_a_migration_that_needs_no_run() -> None:
    texts = {"train.py": "import tensorflow as tf\n"}
    assert before_running(texts, Migration({"train.py": "other"}, (), ())) is None
    refused = before_running(texts, Migration(texts, ("TFM403",), ("TFM403:3 no",)))
    assert refused is not None and refused.kind is Kind.REFUSED and not refused.failed
    silent = before_running(texts, Migration(texts, (), ()))
    assert silent is not None and silent.kind is Kind.DIFFERENT and silent.failed
    broken = before_running(texts, Migration(texts, (), (), "Traceback\nKeyError: 1"))
    assert broken is not None and broken.kind is Kind.CRASHED and broken.reasons == ("the tool itself: KeyError: 1",)


ORIGINAL = Run(
    None,
    "noise 1\nshown 0.5 6\n",
    ({"dense/kernel": [[0.25, 0.5]], "dense/bias": [0.125, 0.0]},),
    (6,),
    ({"loss": 0.5, "accuracy": 0.25, "global_step": 6},),
)
MIGRATED = Run(
    None,
    "noise 2\nshown np.float32(0.500001) 6\n",
    ({"dense_1/bias:0": [0.125, 0.0], "dense_1/kernel:0": [[0.25, 0.500001]]},),
    (6,),
    ({"loss": 0.5, "accuracy": 0.25},),
)


def test_the_same_numbers() -> None:
    assert after_running(ORIGINAL, MIGRATED).kind is Kind.SAME


@pytest.mark.parametrize(
    ("migrated", "reason"),
    [
        (replace(MIGRATED, output="shown 0.501 6\n"), "printed"),
        (replace(MIGRATED, output="shown nan 6\n"), "printed"),
        (replace(MIGRATED, output=""), "1 lines were printed, 0 are now"),
        (replace(MIGRATED, steps=(7,)), "steps: [6] in the original, [7] now"),
        (replace(MIGRATED, weights=()), "models trained: 1 in the original, 0 now"),
        (replace(MIGRATED, weights=({"b": [0.125, 0.0]},)), "dense/kernel (1, 2) is gone"),
        (replace(MIGRATED, weights=({**MIGRATED.weights[0], "more": [1.0, 2.0]},)), "more has no counterpart"),
        (replace(MIGRATED, weights=({**MIGRATED.weights[0], "dense_1/bias:0": [0.126, 0.0]},)), "away from dense/bias"),
        (replace(MIGRATED, evaluations=()), "evaluations: 1 in the original, 0 now"),
        (replace(MIGRATED, evaluations=({"loss": 0.5},)), "accuracy is gone"),
        (replace(MIGRATED, evaluations=({"loss": 0.5, "accuracy": 0.26},)), "accuracy was 0.25 and is 0.26"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_difference(migrated: Run, reason: str) -> None:
    outcome = after_running(ORIGINAL, migrated)
    assert outcome.kind is Kind.DIFFERENT and outcome.failed
    assert len(outcome.reasons) == 1 and reason in outcome.reasons[0]


def test_the_loss_of_an_evaluation_that_the_user_was_told_of() -> None:
    before = replace(ORIGINAL, output="shown evaluated 0.5 6\n")
    after = replace(MIGRATED, output="shown evaluated 0.6 6\n", evaluations=({"loss": 0.6, "accuracy": 0.25},))
    assert after_running(before, after).kind is Kind.DIFFERENT
    assert after_running(before, after, ("TFM303",)).kind is Kind.SAME
    assert after_running(before, replace(after, output="shown evaluated 0.6 7\n"), ("TFM303",)).kind is Kind.DIFFERENT


def test_programs_that_end_badly() -> None:
    assert after_running(ORIGINAL, Run("KeyError: 'x'")).kind is Kind.CRASHED
    assert after_running(Run("KeyError: 'x'"), MIGRATED).kind is Kind.INVALID


def test_a_bridge_is_judged_by_what_it_prints() -> None:
    bridged = replace(MIGRATED, weights=(), steps=(), evaluations=())
    assert after_running(ORIGINAL, bridged).kind is Kind.DIFFERENT
    assert after_running(ORIGINAL, bridged, printed_only=True).kind is Kind.SAME
    other = replace(bridged, output="shown 0.6 6\n")
    assert after_running(ORIGINAL, other, printed_only=True).kind is Kind.DIFFERENT
    assert Migration({"keras_estimator.py": "", "train.py": ""}, (), ()).bridged
    assert not Migration({"train.py": ""}, (), ()).bridged
