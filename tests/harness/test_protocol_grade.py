"""How strong a verdict is, and what a user may require of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from numpy_programs import Program, migrated_of, run

from migrator.harness.protocol import grade, verdict
from migrator.harness.protocol.grade import Grade
from migrator.harness.protocol.results import Artefact, Control, LevelResult, Status
from migrator.harness.recording import Evaluation, Lines, Recording

PROGRAM = Program(steps=20)
ORIGINAL, MIGRATED = run(PROGRAM), run(migrated_of(PROGRAM))


def level(name: str, status: Status = Status.EQUIVALENT, **more: object) -> LevelResult:
    return LevelResult(name, verdict.TITLES[name], status, "so it is", **more)  # type: ignore[arg-type]


LEVELS = [
    level("L4", excluded="a learning rate 0.01 % off would have been seen"),
    level("L5", horizon_step=15),
    level("L7", Status.NOT_APPLICABLE),
    level("L8", Status.NOT_EXERCISED),
]


def found(**changes: object) -> Grade:
    one = grade.grade(LEVELS, [Artefact("predictions", "missing")], ORIGINAL, MIGRATED)
    return replace(one, **changes)  # type: ignore[arg-type]


def test_what_a_grade_is_made_of() -> None:
    one = found()
    assert (one.steps, one.of_steps, one.trainers) == (15, 20, 1)
    assert (one.levels, one.open) == (("L4", "L5"), ("L8",))
    assert one.modes == ("train",)
    assert (one.artefacts, one.missing) == ((), ("predictions",))
    evaluated = replace(ORIGINAL, evaluations=(Evaluation("local:0", 20, {"loss": 1.0}),))
    assert grade.grade(LEVELS, [], evaluated, MIGRATED).modes == ("train", "evaluate")


def test_a_level_that_is_not_equivalent_vouches_for_no_step() -> None:
    levels = [level("L5", Status.INCONCLUSIVE, horizon_step=15)]
    one = grade.grade(levels, [], ORIGINAL, MIGRATED)
    assert (one.steps, one.apart, one.open) == (0, None, ("L5",))


@pytest.mark.parametrize(
    ("factor", "said"),
    [
        (1.0, "are the same bit for bit"),
        (1.0 + 2e-7, "agree to 6 digits"),
        (1.05, "agree to 1 digit"),
        (5.0, "agree within their noise"),
    ],
)
def test_digits_are_those_of_the_worst_of_the_steps_vouched_for(factor: float, said: str) -> None:
    steps = tuple(replace(s, loss=s.loss * (factor if s.number == 9 else 1.0)) for s in ORIGINAL.steps)
    one = grade.grade([level("L5", horizon_step=15)], [], ORIGINAL, replace(ORIGINAL, steps=steps))
    assert grade.headline(one) == f"15 of 20 steps: the losses {said}"
    # A step behind them is not vouched for.
    before = grade.grade([level("L5", horizon_step=8)], [], ORIGINAL, replace(ORIGINAL, steps=steps))
    assert before.apart == 0.0


def test_the_headline_in_plain_words() -> None:
    one = found(steps=29, of_steps=29, trainers=3, apart=2e-8, levels=("L5", "L7", "L8"))
    assert grade.headline(replace(one, artefacts=("predictions of call 1", "predictions of call 2"))) == (
        "29 steps on 3 trainers: the losses agree to 7 digits, and the evaluations and predictions with the same "
        "weights agree too"
    )
    names = ("predictions", "exported model, signature serving_default", "exported weights")
    assert grade.headline(replace(one, artefacts=names)).endswith(
        "and the evaluations, predictions and exported models with the same weights agree too"
    )
    left = ("checkpoints", "training of model 3", "training of model 2, its first weights")
    assert grade.headline(replace(one, missing=left)).endswith(
        "agree too; not every model that the script trains was compared: training of model 3"
    )


@pytest.mark.parametrize(
    ("apart", "losses", "joined"),
    [
        (None, "were not compared", "but the {} with the same weights agree"),
        (0.0, "are the same bit for bit", "and the {} with the same weights agree too"),
        (3e-2, "agree to 1 digit", "and the {} with the same weights agree too"),
        (2e-8, "agree to 7 digits", "and the {} with the same weights agree too"),
        (2.0, "agree within their noise", "and the {} with the same weights agree too"),
    ],
)
@pytest.mark.parametrize(
    ("levels", "artefacts", "listed"),
    [
        (("L5",), (), ""),
        (("L5", "L7"), (), "evaluations"),
        (("L5", "L8"), ("predictions",), "predictions"),
        (("L5", "L8"), ("exported model",), "exported models"),
        (("L5", "L7", "L8"), ("exported model",), "evaluations and exported models"),
        (("L5", "L7", "L8"), ("predictions", "exported model"), "evaluations, predictions and exported models"),
    ],
)
def test_the_headline_is_a_sentence_in_all_combinations(
    apart: float | None, losses: str, joined: str, levels: tuple[str, ...], artefacts: tuple[str, ...], listed: str
) -> None:
    one = found(steps=20, of_steps=20, apart=apart, levels=levels, artefacts=artefacts)
    rest = f", {joined.format(listed)}" if listed else ""
    assert grade.headline(one) == f"20 steps: the losses {losses}{rest}"


@pytest.mark.parametrize(
    ("steps", "of", "said"), [(1, 1, "1 step"), (0, 1, "0 of 1 step"), (1, 20, "1 of 20 steps"), (20, 20, "20 steps")]
)
def test_steps_are_counted_in_words(steps: int, of: int, said: str) -> None:
    assert grade.headline(found(steps=steps, of_steps=of, apart=0.0)).startswith(f"{said}: the losses are")


RATE = Control.of("a learning rate 1% higher", True, 812.3)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ((), ""),
        (
            (level("L5s", ratio=0.0, tolerance=8.0),),
            "; the losses of several trainers in a fixed order agree bit for bit",
        ),
        ((level("L6", excluded="an error of 5 % was excluded"),), "; running freely, an error of 5 % was excluded"),
        ((level("L7"),), "; the evaluations agree too"),
        ((level("L7", Status.NOT_APPLICABLE),), ""),
        ((level("L7"), level("L8")), "; the evaluations agree too; so it is"),
    ],
)
@pytest.mark.parametrize(
    ("control", "wrong"),
    [
        (None, ""),
        (RATE, "; a learning rate 1% higher stands out by 812 noise floors"),
        (replace(RATE, ratio=None), ""),
        (Control("a run without updates", True, 9.0), "; a run without updates stands out by 9 noise floors"),
    ],
)
@pytest.mark.parametrize(("steps", "counted"), [(1, "1 step"), (15, "15 steps")])
def test_the_sentence_of_a_verdict_in_all_combinations(
    more: tuple[LevelResult, ...], said: str, control: Control | None, wrong: str, steps: int, counted: str
) -> None:
    levels = [level(name) for name in verdict.REQUIRED[:5]]
    levels += [level("L4", ratio=0.0, tolerance=8.0, control=control), level("L5", horizon_step=steps), *more]
    assert verdict.decide(levels).sentence == (
        f"weights and optimizer state agree bit for bit, and the losses of {counted} agree as far as they were measured"
        f"{said}{wrong}"
    )


def test_a_ratio_is_said_with_what_is_accepted() -> None:
    levels = [level(name, ratio=0.21, tolerance=8.0, horizon_step=20) for name in verdict.REQUIRED]
    assert verdict.decide(levels).sentence == (
        "weights and optimizer state agree within 0.21 noise floors (accepted: 8), and the losses of 20 steps agree "
        "within 0.21 noise floors (accepted: 8)"
    )


def test_the_grade_in_one_line() -> None:
    assert grade.line(found()) == (
        "15 of 20 steps; levels L4, L5 (not L8); ran: train; artefacts: none (not predictions); "
        "a learning rate 0.01 % off would have been seen"
    )
    assert "; many weights: noise of 1 replicate; a learning" in grade.line(
        found(spared="many weights: noise of 1 replicate")
    )


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        ((), ()),
        (("steps=15",), ()),
        (("steps=16",), ("16 steps (vouched for: 15)",)),
        (("steps",), ("20 steps (vouched for: 15)",)),
        (("l5", "L7,L8"), ("level L7", "level L8")),
        (("artefacts",), ("predictions",)),
    ],
)
def test_what_is_required_and_was_not_shown(words: tuple[str, ...], missing: tuple[str, ...]) -> None:
    assert grade.lacking(found(), grade.checked(words, verdict.ORDER)) == missing


def test_artefacts_cannot_be_had_where_there_are_none() -> None:
    assert grade.lacking(found(missing=()), ("artefacts",)) == ("an artefact to compare",)
    assert grade.lacking(found(missing=(), artefacts=("predictions",)), ("artefacts",)) == ()


@pytest.mark.parametrize("word", ["L10", "steps=0", "steps=many", "artefacts=2", "", "L7=1"])
def test_what_cannot_be_required(word: str) -> None:
    with pytest.raises(ValueError, match="cannot be required: name steps, steps=N, artefacts, or a level"):
        grade.checked((word,), verdict.ORDER)


def watched(ran: set[int], of: set[int]) -> Recording:
    return replace(ORIGINAL, lines={"/old/train.py": Lines(frozenset(ran), frozenset(of))})


def test_lines_that_never_ran_are_part_of_it() -> None:
    whole = watched({1, 2, 3, 8}, {1, 2, 3, 5, 6, 8, 9}), replace(MIGRATED, lines={})
    one = grade.grade(LEVELS, [], ORIGINAL, MIGRATED, 1, whole)
    assert one.lines == (grade.Covered(4, 7, ("train.py:5-6", "train.py:9")), None)
    assert "ran: train, 57 % of the original's lines;" in grade.line(one)
    assert grade.never_ran(one) == ("lines of the original that never ran: train.py:5-6, train.py:9",)
    assert grade.never_ran(found()) == ()


def test_so_are_branches() -> None:
    taken, branches = frozenset({(2, "then"), (2, "else")}), frozenset({(2, "then"), (2, "else"), (7, "then")})
    lines = Lines(frozenset({1, 2, 3}), frozenset({1, 2, 3, 8}), taken, branches)
    both = replace(ORIGINAL, lines={"/old/train.py": lines}), replace(MIGRATED, lines={"/new/train.py": lines})
    one = grade.grade(LEVELS, [], ORIGINAL, MIGRATED, 1, both)
    shares = [f"75 % of the {program}'s lines and 2 of 3 branches" for program in ("original", "migrated")]
    assert f"ran: train, {', '.join(shares)};" in grade.line(one)
