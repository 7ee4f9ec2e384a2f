"""L8: predictions example by example, of the same weights."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from numpy_programs import Program, migrated_of, run

from migrator.harness.protocol import l8_artefacts
from migrator.harness.protocol.l8_artefacts import Artefacts, Served
from migrator.harness.protocol.results import Artefact, Reason, Status
from migrator.harness.protocol.tolerance import EPS, FORWARD, TRAJECTORY, UPDATE, Tolerance
from migrator.harness.recording import Array, Export, Prediction

C = dict.fromkeys((FORWARD, UPDATE, TRAJECTORY), 8.0)
# A sum of 144 terms: a floor of (4 + 12) eps of the greatest value, and 8 of those pass.
LIMITS = Tolerance({}, C, dict.fromkeys(C, (1.0,)), 6, 1.0, 144, True)
STEP = 16 * EPS

P = np.array([[0.2], [0.9], [0.4], [1.0]], np.float32)
OUTPUTS: dict[str, Array] = {"p": P, "class": (P > 0.5).astype(np.int64)}
INITIAL: dict[str, Array] = {"p": P[::-1] / 2, "class": np.zeros((4, 1), np.int64)}

BASE = {"original": run(Program(steps=2)), "migrated": run(migrated_of(Program(steps=2)))}


def ours(outputs: dict[str, Array] = OUTPUTS, *nudged: dict[str, Array]) -> Prediction:
    return Prediction("local:0", 10, outputs, nudged=nudged)


def theirs(same: dict[str, Array] | None, control: dict[str, Array] | None = INITIAL, note: str = "") -> Prediction:
    return Prediction("local:0", 10, same or {}, same, 10, control, note=note)


def judge(original: list[Prediction], migrated: list[Prediction]) -> Artefacts:
    return l8_artefacts.judge(
        replace(BASE["original"], predictions=tuple(original)),
        replace(BASE["migrated"], predictions=tuple(migrated)),
        LIMITS,
    )


def statuses(found: Artefacts) -> list[tuple[str, str]]:
    return [(one.name, one.status) for one in found.artefacts]


@pytest.mark.parametrize(
    ("times", "status"), [(0.0, Status.EQUIVALENT), (7.5, Status.EQUIVALENT), (9.0, Status.DIFFERENT)]
)
def test_predictions_may_differ_by_rounding(times: float, status: Status) -> None:
    moved = P.astype(np.float64)
    moved[3] += times * STEP
    found = judge([ours()], [theirs({**OUTPUTS, "p": moved})])
    assert found.level.status is status, found.level.summary
    assert found.level.ratio == pytest.approx(times, abs=1e-3)
    assert found.level.control is not None and found.level.control.detected


def test_what_one_ulp_of_the_weights_moves_is_rounding() -> None:
    other = {**OUTPUTS, "p": P + np.float32(1e-3)}
    assert judge([ours()], [theirs(other)]).level.status is Status.DIFFERENT
    noisy = {**OUTPUTS, "p": P - np.float32(5e-4)}
    assert judge([ours(OUTPUTS, noisy)], [theirs(other)]).level.status is Status.EQUIVALENT


def test_one_class_of_one_example_is_a_difference_that_is_named() -> None:
    wrong = OUTPUTS["class"].copy()
    wrong[2] = 1
    level = judge([ours()], [theirs({**OUTPUTS, "class": wrong})]).level
    assert (level.status, level.reason) == (Status.DIFFERENT, Reason.VALUE_DIFFERS)
    assert "'class' of example 3 is 0 in the original and, with the same weights, 1" in level.summary
    assert level.summary.endswith("1 of 4 examples differ")
    assert level.differences[0].index == (2, 0)
    # Unless rounding alone decides on it in the original, too.
    border = judge([ours(OUTPUTS, {**OUTPUTS, "class": wrong})], [theirs({**OUTPUTS, "class": wrong})])
    assert border.level.status is Status.EQUIVALENT


def test_a_factor_and_an_order_are_told_as_causes() -> None:
    factor = judge([ours()], [theirs({**OUTPUTS, "p": P * 2})]).level.differences[0]
    assert "2 times the original's" in factor.causes[0]
    order = judge([ours({"p": P})], [theirs({"p": P[::-1].copy()}, {"p": P / 2})]).level.differences[0]
    assert "another order" in order.causes[0]


def test_only_as_many_examples_as_both_predicted_are_compared() -> None:
    first = {name: value[:2] for name, value in OUTPUTS.items()}
    other = {name: np.concatenate([value[:2], value[:2] * 5]) for name, value in OUTPUTS.items()}
    assert judge([ours(first)], [theirs(other)]).level.status is Status.EQUIVALENT


@pytest.mark.parametrize("shape", [(4,), (4, 1), (4, 1, 1)])
def test_a_row_of_one_is_a_number(shape: tuple[int, ...]) -> None:
    same = {**OUTPUTS, "p": P.reshape(shape)}
    assert judge([ours()], [theirs(same)]).level.status is Status.EQUIVALENT


def test_integers_of_another_width_are_the_same_numbers() -> None:
    assert judge([ours()], [theirs({**OUTPUTS, "class": OUTPUTS["class"].astype(np.int32)})]).level.status is (
        Status.EQUIVALENT
    )


class TestNames:
    """Outputs that the two programs call differently."""

    def test_the_same_numbers_under_another_name(self) -> None:
        other = {"probability": P, "label": OUTPUTS["class"]}
        found = judge([ours()], [theirs(other, {"probability": P / 2, "label": INITIAL["class"]})])
        assert statuses(found) == [("predictions", "same")]

    def test_one_output_stands_beside_the_only_other_whatever_it_holds(self) -> None:
        assert judge([ours({"p": P})], [theirs({"": P}, {"": P / 2})]).level.status is Status.EQUIVALENT
        assert judge([ours({"p": P})], [theirs({"": P * 3}, {"": P / 2})]).level.status is Status.DIFFERENT

    def test_an_output_that_only_the_original_has_is_missing_and_said(self) -> None:
        found = judge([ours()], [theirs({"p": P}, {"p": P / 2})])
        assert found.level.status is Status.EQUIVALENT
        assert statuses(found) == [("predictions", "same"), ("predictions: class", "missing")]
        assert "predictions: class: missing" in found.level.notes[0]

    def test_what_is_paired_by_its_numbers_is_so_in_the_control_too(self) -> None:
        raw = np.array([[0.1, 2.0], [3.0, 1.0], [0.5, 0.2], [0.0, 4.0]], np.float32)
        found = judge([ours()], [theirs({"0": raw, "1": P}, {"0": raw[::-1], "1": P / 2})])
        assert found.level.status is Status.EQUIVALENT, found.level.summary
        assert statuses(found) == [("predictions", "same"), ("predictions: class", "missing")]

    def test_outputs_none_of_which_has_the_values_differ(self) -> None:
        found = judge([ours()], [theirs({"": P * 3}, {"": P / 2})])
        assert found.level.status is Status.DIFFERENT
        assert "no output of the migrated program ('') has the values" in found.level.summary


class TestCalls:
    """Which call stands beside which."""

    def test_they_are_paired_in_order(self) -> None:
        other = {**OUTPUTS, "p": P / 4}
        assert judge([ours(), ours(other)], [theirs(OUTPUTS), theirs(other)]).level.status is Status.EQUIVALENT
        swapped = judge([ours(), ours(other)], [theirs(other), theirs(OUTPUTS)])
        assert statuses(swapped) == [("predictions of call 1", "different"), ("predictions of call 2", "different")]

    def test_a_call_that_has_no_counterpart_is_missing(self) -> None:
        found = judge([ours(), ours()], [theirs(OUTPUTS)])
        assert statuses(found) == [("predictions of call 1", "same"), ("predictions of call 2", "missing")]

    def test_a_program_that_never_predicts_leaves_nothing_to_compare(self) -> None:
        found = judge([ours()], [])
        assert (found.level.status, found.level.reason) == (Status.NOT_EXERCISED, Reason.MISSING_VALUES)
        assert statuses(found) == [("predictions", "missing")]

    def test_an_original_that_never_predicts(self) -> None:
        assert judge([], [theirs(OUTPUTS)]).level.status is Status.NOT_APPLICABLE


def test_weights_that_do_not_fit_are_said() -> None:
    found = judge([ours()], [theirs(None, note="its data can be read only once")])
    assert found.level.status is Status.NOT_EXERCISED
    assert statuses(found) == [("predictions", "not compared")]
    assert "read only once" in found.artefacts[0].detail


def test_trainings_of_other_models_are_named() -> None:
    several = replace(BASE["original"], other_trainings=2)
    found = l8_artefacts.judge(several, BASE["migrated"], LIMITS)
    assert found.level.status is Status.NOT_APPLICABLE
    assert statuses(found) == [("trainings of other models", "not compared")]
    assert "only the first model of 3" in found.level.notes[0]


@pytest.mark.parametrize(
    ("outputs", "of_models", "status"),
    [
        (None, ["same"], Status.EQUIVALENT),
        (OUTPUTS, ["same", "same"], Status.EQUIVALENT),
        (OUTPUTS, ["same", "different"], Status.DIFFERENT),
        (None, ["not compared"], Status.NOT_APPLICABLE),
        ({**OUTPUTS, "p": P + 1}, ["same"], Status.DIFFERENT),
    ],
)
def test_another_model_that_differs_makes_the_level_differ(
    outputs: dict[str, Array] | None, of_models: list[str], status: Status
) -> None:
    several = replace(
        BASE["original"], other_trainings=len(of_models), predictions=() if outputs is None else (ours(),)
    )
    theirs_too = replace(BASE["migrated"], predictions=() if outputs is None else (theirs(outputs),))
    level = l8_artefacts.judge(several, theirs_too, LIMITS).level
    models = [Artefact(l8_artefacts.model(n), one, "a reason") for n, one in enumerate(of_models, start=1)]
    # A kill and a resume say nothing about other models.
    told = Artefact("going on after a kill", "same", "both go on")
    assert any(note.startswith("trainings of other") for note in l8_artefacts.with_further(level, [told]).notes)
    found = l8_artefacts.with_further(level, models)
    assert found.status is status, found.summary
    assert not any(note.startswith("trainings of other models") for note in found.notes)
    if of_models[-1] == "different":
        assert found.summary.startswith("training of model 3: a reason")
    assert any("training of model 2: not compared" in note for note in found.notes) == (of_models == ["not compared"])


def test_predictions_that_the_weights_do_not_move_show_nothing() -> None:
    level = judge([ours()], [theirs(OUTPUTS, OUTPUTS)]).level
    assert (level.status, level.reason) == (Status.INCONCLUSIVE, Reason.CONTROL_NOT_DETECTED)


def test_what_is_no_number_never_passes() -> None:
    broken = {**OUTPUTS, "p": np.where(P > 0.5, np.float32(math.nan), P)}
    assert judge([ours()], [theirs(broken)]).level.status is Status.DIFFERENT
    both = judge([ours(broken)], [theirs(broken)]).level
    assert (both.status, both.reason) == (Status.INCONCLUSIVE, Reason.NON_FINITE)


def test_text_is_compared_byte_by_byte() -> None:
    words = {"word": np.array([b"cat", b"dog"])}
    assert judge([ours(words)], [theirs(words, {"word": np.array([b"dog", b"dog"])})]).level.status is Status.EQUIVALENT
    other = {"word": np.array([b"cat", b"cow"])}
    level = judge([ours(words)], [theirs(other, words)]).level
    assert level.status is Status.DIFFERENT
    assert (level.differences[0].original, level.differences[0].migrated) == ("dog", "cow")


class TestExports:
    """SavedModels of both programs, which were asked the same."""

    WEIGHTS = tuple(dict(recording.states[2]) for recording in BASE.values())

    def judge(self, **changes: object) -> Artefacts:
        answer = replace(theirs(OUTPUTS), outputs=OUTPUTS)
        same = (("serving_default",), ("serving_default",))
        served = Served((self.WEIGHTS[0], self.WEIGHTS[1]), same, {"serving_default": answer}, {})
        export = (Export("/exports/1", None),)
        return l8_artefacts.judge(
            replace(BASE["original"], exports=export),
            replace(BASE["migrated"], exports=export),
            LIMITS,
            replace(served, **changes),  # type: ignore[arg-type]
        )

    def test_the_same_answers_and_the_trained_weights(self) -> None:
        found = self.judge()
        assert found.level.status is Status.EQUIVALENT, found.level.summary
        assert statuses(found) == [("exported model, signature serving_default", "same"), ("exported weights", "same")]

    def test_another_answer(self) -> None:
        wrong = replace(theirs({**OUTPUTS, "p": P * 10}), outputs=OUTPUTS)
        found = self.judge(answers={"serving_default": wrong})
        assert found.level.status is Status.DIFFERENT
        assert "output of signature serving_default 'p' of example" in found.level.summary

    def test_an_answer_under_another_name_is_named(self) -> None:
        renamed = {"output_0": P, "class": OUTPUTS["class"]}
        other = replace(theirs(renamed, {"output_0": P / 2, "class": INITIAL["class"]}), outputs=OUTPUTS)
        found = self.judge(answers={"serving_default": other})
        assert found.level.status is Status.EQUIVALENT, found.level.summary
        title = "exported model, signature serving_default"
        assert (f"{title}: p", "missing") in statuses(found)
        assert f"{title}: p: missing, its answer has output_0 for it" in found.level.notes

    def test_weights_that_were_changed_behind_the_training(self) -> None:
        doubled = {name: value * 2 for name, value in self.WEIGHTS[1].items()}
        found = self.judge(weights=(self.WEIGHTS[0], doubled))
        assert found.level.status is Status.DIFFERENT
        assert "other weights than its training ended with" in found.level.summary
        # Where the original does so too, nobody knows what is right.
        both = {name: value * 2 for name, value in self.WEIGHTS[0].items()}
        assert ("exported weights", "not compared") in statuses(self.judge(weights=(both, doubled)))

    def test_a_request_that_nobody_answers(self) -> None:
        found = self.judge(signatures=(("serving_default",), ("predict",)), answers={})
        assert found.level.status is Status.DIFFERENT
        assert found.level.summary.endswith("has no such signature, but predict")
        other = self.judge(unasked={"serving_default": (("x",), ("input_1",))}, answers={})
        assert other.level.status is Status.DIFFERENT
        assert other.level.summary.endswith("it takes x in the original and input_1 in the other")

    def test_further_signatures_are_missing_and_said(self) -> None:
        found = self.judge(signatures=(("regress", "serving_default"), ("serving_default",)))
        assert found.level.status is Status.EQUIVALENT
        assert statuses(found)[1:] == [
            ("exported weights", "same"),
            ("exported model, signature regress", "missing"),
        ]

    def test_what_could_not_be_asked_is_said(self) -> None:
        found = self.judge(unasked={"serving_default": "no text is known"}, answers={})
        assert found.level.status is Status.NOT_EXERCISED
        assert ("exported model, signature serving_default", "not compared") in statuses(found)

    def test_a_program_that_exports_nothing(self) -> None:
        ours = replace(BASE["original"], exports=(Export("/exports/1", None),))
        found = l8_artefacts.judge(ours, BASE["migrated"], LIMITS)
        assert statuses(found) == [("exported model", "missing")]


class TestComputedBehindThePrediction:
    """What a program makes of the outputs of `Model.predict` is not seen, but for what it prints."""

    LOGITS = np.array([[0.5, -1.0, 2.0], [1.5, 1.0, 0.0], [-2.0, 0.25, 0.0], [3.0, -3.0, 1.0]], np.float32)
    SOFT = (np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)).astype(np.float32)
    TOP = np.argsort(-LOGITS, axis=1)[:, :2].astype(np.int32)
    OUTPUTS: ClassVar[dict[str, Array]] = {"score": np.take_along_axis(SOFT, TOP.astype(np.int64), 1), "index": TOP}

    def judged(
        self, raw: Array, printed: tuple[tuple[float, ...], tuple[float, ...]] = ((), ()), **outputs: Array
    ) -> Artefacts:
        return l8_artefacts.judge(
            replace(BASE["original"], predictions=(ours(outputs or self.OUTPUTS),), printed=printed[0]),
            replace(BASE["migrated"], predictions=(theirs({"": raw}, {"": raw[::-1] * 2}),), printed=printed[1]),
            LIMITS,
        )

    def test_usual_functions_of_the_logits(self) -> None:
        found = self.judged(self.LOGITS)
        assert found.level.status is Status.EQUIVALENT, found.level.summary
        assert statuses(found)[0] == ("predictions", "same") and "not seen" in found.artefacts[0].detail
        one = self.LOGITS[:, :1]
        found = self.judged(one, p=1 / (1 + np.exp(-one)), above=(one > 0).astype(np.int64))
        assert found.level.status is Status.EQUIVALENT, found.level.summary

    @pytest.mark.parametrize("raw", [LOGITS * 2, LOGITS[:, ::-1], SOFT**2])
    def test_other_logits_are_no_such_thing(self, raw: Array) -> None:
        found = self.judged(raw)
        assert found.level.status is Status.DIFFERENT

    def test_what_is_printed_decides(self) -> None:
        own = tuple(sorted(float(f"{one:.5f}") for one in self.OUTPUTS["score"].reshape(-1)))
        other = tuple(sorted(float(one) for one in (1 / (1 + np.exp(-self.LOGITS))).reshape(-1)))
        found = self.judged(self.LOGITS, (own, tuple(sorted((*own, 0.125)))))
        assert found.level.status is Status.EQUIVALENT and "both print the same" in found.artefacts[0].detail
        found = self.judged(self.LOGITS, (own, other))
        assert found.level.status is Status.DIFFERENT and "prints other numbers" in found.artefacts[0].detail
        assert self.judged(self.LOGITS, (other, own)).level.status is Status.EQUIVALENT  # it does not print them itself


class TestPrintedClasses:
    """Classes that a program makes of its predictions in Python are seen where both programs print them."""

    LOGITS = np.random.RandomState(3).normal(size=(60, 3)).astype(np.float32)
    CLASSES = np.argmax(LOGITS, axis=1)
    SCORES: ClassVar[dict[str, Array]] = {"logits": LOGITS, "class": CLASSES}

    def judged(self, mine: Array, other: Array, outputs: dict[str, Array] | None = None) -> Artefacts:
        return l8_artefacts.judge(
            replace(BASE["original"], predictions=(ours(outputs or self.SCORES),), printed_whole=tuple(map(int, mine))),
            replace(
                BASE["migrated"],
                predictions=(theirs({"": self.LOGITS}, {"": self.LOGITS[::-1] * 2}),),
                printed_whole=tuple(map(int, other)),
            ),
            LIMITS,
        )

    @pytest.mark.parametrize("outputs", [None, {"class": CLASSES}])
    def test_both_print_the_same_beside_other_numbers(self, outputs: dict[str, Array] | None) -> None:
        beside = np.stack([np.arange(60), self.CLASSES], axis=1).reshape(-1)
        found = self.judged(beside, np.concatenate([[1, 2, 60], self.CLASSES, [5]]), outputs)
        assert found.level.status is Status.EQUIVALENT, found.level.summary
        assert "missing" not in [status for _, status in statuses(found)[:2]]

    @pytest.mark.parametrize("outputs", [None, {"class": CLASSES}])
    def test_other_classes_are_different(self, outputs: dict[str, Array] | None) -> None:
        wrong = np.argmax(self.LOGITS[:, 1:], axis=1)
        for other in (wrong, wrong + 1, np.zeros_like(wrong), self.CLASSES[::-1], np.where(wrong, 2, self.CLASSES)):
            found = self.judged(self.CLASSES, other, outputs)
            assert found.level.status is Status.DIFFERENT and "prints other numbers" in found.level.summary

    def test_the_first_ones_that_are_printed_are_compared(self) -> None:
        wrong = np.where(np.arange(60) < 20, self.CLASSES, 1)
        assert self.judged(self.CLASSES[:20], wrong).level.status is Status.EQUIVALENT
        assert self.judged(self.CLASSES, wrong).level.status is Status.DIFFERENT

    @pytest.mark.parametrize("mine", [CLASSES[:15], CLASSES[::-1], [], np.arange(200)])
    def test_what_the_original_does_not_print_says_nothing(self, mine: Array) -> None:
        found = self.judged(np.asarray(mine), np.zeros(60))
        assert found.level.status is Status.EQUIVALENT
        assert ("predictions: class", "missing") in statuses(found)

    def test_numbers_of_another_kind_are_no_classes(self) -> None:
        progress = np.tile([30, 60, 1, 2, 100], 60)
        found = self.judged(self.CLASSES, progress)
        assert found.level.status is Status.EQUIVALENT
        assert ("predictions: class", "missing") in statuses(found)
