"""L8: when programs save, evaluate and export, what they tell TensorBoard, and callbacks that never acted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from numpy_programs import Program, migrated_of, run

from migrator.harness.protocol import l8_artefacts, l8_effects
from migrator.harness.protocol.results import Artefact, Status
from migrator.harness.protocol.tolerance import FORWARD, TRAJECTORY, UPDATE, Tolerance
from migrator.harness.recording import Effect, Evaluation, Recording

C = dict.fromkeys((FORWARD, UPDATE, TRAJECTORY), 8.0)
LIMITS = Tolerance({}, C, dict.fromkeys(C, (1.0,)), 6, 1.0, 144, True)
ORIGINAL, MIGRATED = run(Program(steps=6)), run(migrated_of(Program(steps=6)))


def saves(recording: Recording, *steps: int, place: str = "/run/model/home/me/ckpt") -> Recording:
    return replace(recording, effects=tuple(Effect("checkpoint", step, f"{place}-{step}") for step in steps))


def named(found: list[Artefact]) -> list[tuple[str, str]]:
    return [(one.name, one.status) for one in found]


def test_checkpoints_after_the_same_steps() -> None:
    # Estimators save what they begin with too, which nobody has trained.
    found = l8_effects.compare(saves(ORIGINAL, 0, 2, 4, 6), saves(MIGRATED, 2, 4, 6))
    assert found == [Artefact("checkpoints", "same", "after steps 2, 4 and 6")]


@pytest.mark.parametrize(
    ("theirs", "said"),
    [
        ((6,), "after steps 2, 4 and 6 in the original; after steps 6 in the migrated program"),
        ((), "after steps 2, 4 and 6 in the original; the migrated program writes no checkpoint"),
    ],
)
def test_checkpoints_that_are_not_written_are_named(theirs: tuple[int, ...], said: str) -> None:
    found = l8_artefacts.judge(saves(ORIGINAL, 2, 4, 6), saves(MIGRATED, *theirs), LIMITS)
    assert found.artefacts == (Artefact("checkpoints", "missing", said),)
    assert found.level.notes == (f"checkpoints: missing, {said}",)
    # Nothing was asked for its numbers.
    assert found.level.status is Status.NOT_APPLICABLE


def test_weights_that_no_checkpoint_holds_are_named() -> None:
    def held(count: int, *lacking: str) -> Recording:
        more = (Effect("holds", 4, str(count)), *(Effect("lacks", 4, name) for name in lacking))
        one = saves(MIGRATED, 2, 4)
        return replace(one, effects=one.effects + more)

    ours = saves(ORIGINAL, 2, 4)
    assert named(l8_effects.compare(ours, held(4))) == [("checkpoints", "same"), ("what checkpoints hold", "same")]
    found = l8_effects.compare(ours, held(3, "dense/bias"))[1]
    assert (found.status, found.detail) == ("missing", "those of the migrated program lack the values of dense/bias")


def test_an_estimator_without_a_folder_leaves_no_checkpoint() -> None:
    temporary = saves(ORIGINAL, 2, 4, place="/tmp/run/model/unnamed-0/model.ckpt")
    assert l8_effects.compare(temporary, MIGRATED) == []


def test_evaluations_at_other_steps() -> None:
    def evaluated(recording: Recording, *steps: int) -> Recording:
        return replace(recording, evaluations=tuple(Evaluation("local:0", step, {"loss": 1.0}) for step in steps))

    assert named(l8_effects.compare(evaluated(ORIGINAL, 3, 6), evaluated(MIGRATED, 3, 6))) == [
        ("times of evaluations", "same")
    ]
    assert named(l8_effects.compare(evaluated(ORIGINAL, 3, 6), evaluated(MIGRATED, 6))) == [
        ("times of evaluations", "missing")
    ]


def test_tags_that_nobody_writes_any_more() -> None:
    once = {1: None}
    ours = replace(ORIGINAL, summaries={"loss": once, "global_step/sec": once, "gates": once, "norm": once})
    (found,) = l8_effects.compare(ours, replace(MIGRATED, summaries={"gates": once, "epoch_loss": {0: 1.0}}))
    assert found == Artefact("tags of summaries", "missing", "the migrated program writes no norm")


@pytest.mark.parametrize(
    ("theirs", "status"),
    [
        ({1: 2.0, 6: 3.0002}, "same"),
        ({0: 2.0, 5: 3.0}, "same"),  # steps counted from zero
        ({1: 2.0, 6: 3.3}, "missing"),
        ({1: 4.0, 6: 6.0}, "missing"),
        ({1: 2.0, 6: 3.0, 200: 5.0}, "same"),  # what a long training comes to is not a matter of summaries
        ({40: 2.0}, None),
        ({1: None, 6: None}, None),
    ],
)
def test_numbers_at_the_same_steps(theirs: dict[int, float | None], status: str | None) -> None:
    ours = replace(ORIGINAL, summaries={"norm": {1: 2.0, 6: 3.0, 200: 9.0}})
    found = l8_effects.compare(ours, replace(MIGRATED, summaries={"norm": theirs}))
    assert named(found) == [
        ("tags of summaries", "same"),
        *([] if status is None else [("numbers of summaries", status)]),
    ]
    if status == "missing":
        assert f"and {theirs[6] if theirs[1] == 2.0 else 4:.6g} in the migrated program" in found[1].detail


def test_only_late_numbers_are_compared_at_the_first_step_that_both_have() -> None:
    ours = replace(ORIGINAL, summaries={"norm": {100: 2.0, 200: 9.0}})
    for theirs, status in (({100: 2.0, 200: 5.0}, "same"), ({100: 3.0, 200: 9.0}, "missing")):
        found = l8_effects.compare(ours, replace(MIGRATED, summaries={"norm": theirs}))
        assert found[1].status == status


def test_numbers_of_other_batches_say_nothing() -> None:
    other = run(migrated_of(Program(steps=6), data_seed=2))
    ours = replace(ORIGINAL, summaries={"norm": {1: 2.0}})
    assert named(l8_effects.compare(ours, replace(other, summaries={"norm": {1: 4.0}}))) == [
        ("tags of summaries", "same")
    ]


def test_a_callback_that_never_acted_is_named_and_one_that_did_is_not() -> None:
    theirs = replace(
        MIGRATED,
        effects=(
            Effect("callback", 0, "EarlyStopping"),
            Effect("callback", 0, "ReduceLROnPlateau"),
            Effect("acted", 4, "ReduceLROnPlateau"),
        ),
    )
    found = l8_effects.compare(ORIGINAL, theirs)
    assert named(found) == [("EarlyStopping of the migrated program", "not compared")]
    assert "within 6 steps" in found[0].detail


def test_many_steps_are_told_by_their_ends() -> None:
    assert l8_effects.listed(range(10, 101, 10)) == "10, 20, 30 ... 100 (10 times)"
    assert l8_effects.listed([7]) == "7"
