"""L7: metrics of the same weights, metrics of each program's own training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from numpy_programs import Program, migrated_of, run

from migrator.harness.protocol import l7_evaluation
from migrator.harness.protocol.results import LevelResult, Reason, Status
from migrator.harness.protocol.tolerance import EPS, FORWARD, TRAJECTORY, UPDATE, Tolerance
from migrator.harness.recording import LOSS_OF_BATCHES, LOSS_OF_EXAMPLES, Evaluation, Prediction, Recording, SourceLine

C = dict.fromkeys((FORWARD, UPDATE, TRAJECTORY), 8.0)
# A sum of 144 terms: a floor of (4 + 12) eps of the value, and 8 of those pass.
LIMITS = Tolerance({}, C, dict.fromkeys(C, (1.0,)), 6, 1.0, 144, True)
STEP = 16 * EPS
GOOD = {"loss": 0.5, "accuracy": 0.75}
WORSE = {"loss": 2.5, "accuracy": 0.125}

BASE = {"original": run(Program(steps=2)), "migrated": run(migrated_of(Program(steps=2)))}


def original(*evaluations: Evaluation, **changes: object) -> Recording:
    return replace(BASE["original"], evaluations=evaluations or (ev(10, GOOD),), **changes)  # type: ignore[arg-type]


def migrated(*evaluations: Evaluation) -> Recording:
    return replace(BASE["migrated"], evaluations=evaluations)


def ev(
    step: int | None,
    results: dict[str, float],
    same: dict[str, float] | None = None,
    control: dict[str, float] | None = None,
    weights_step: int | None = None,
) -> Evaluation:
    return Evaluation("evaluator:0", step, results, same, weights_step or (step if same else None), control)


def theirs(results: dict[str, float] = GOOD, same: dict[str, float] | None = None, step: int = 10) -> Evaluation:
    return ev(step, results, same if same is not None else dict(GOOD), dict(WORSE))


def replicates(*values: float, step: int = 10) -> Sequence[Recording]:
    return [original(ev(step, {"loss": v, "accuracy": 0.75})) for v in values]


def judge(ours: Recording, other: Recording, **options: object) -> LevelResult:
    return l7_evaluation.judge(ours, other, LIMITS, **options)  # type: ignore[arg-type]


def test_the_same_weights_and_the_same_training() -> None:
    level = judge(
        original(), migrated(theirs({"loss": 0.5 + 1e-6, "accuracy": 0.75})), replicates=replicates(0.5, 0.50001)
    )
    assert level.status is Status.EQUIVALENT, level.summary
    assert level.summary.startswith("accuracy, loss of the same weights agree")
    assert "own training in 1 evaluation" in level.summary
    assert level.control is not None and level.control.detected
    assert level.notes == ()


@pytest.mark.parametrize(
    ("times", "status"), [(0.0, Status.EQUIVALENT), (7.5, Status.EQUIVALENT), (9.0, Status.DIFFERENT)]
)
def test_rounding_is_all_that_the_same_weights_may_show(times: float, status: Status) -> None:
    other = {"loss": 0.5 * (1 + times * STEP), "accuracy": 0.75}
    level = judge(original(), migrated(theirs(same=other)))
    assert level.status is status
    assert level.ratio == pytest.approx(times, abs=1e-6)
    assert level.tolerance == 8.0


def test_what_one_ulp_of_the_weights_moves_the_metric_by_is_rounding_too() -> None:
    other = {"loss": 0.5, "accuracy": 0.752}
    assert judge(original(), migrated(theirs(same=other))).status is Status.DIFFERENT
    moved = replace(ev(10, GOOD), nudged=({"loss": 0.5, "accuracy": 0.75}, {"loss": 0.5, "accuracy": 0.751}))
    level = judge(original(moved), migrated(theirs(same=other)))
    assert level.status is Status.EQUIVALENT and level.ratio == pytest.approx(2.0)


def test_trainings_that_part_excuse_no_metric_of_the_same_weights() -> None:
    # One of a thousand examples counted otherwise, where replicates of the training part in ten of them.
    other = {"loss": 0.5, "accuracy": 0.749}
    flips = [original(ev(10, {"loss": 0.5, "accuracy": value})) for value in (0.76, 0.74)]
    level = judge(original(), migrated(theirs(same=other)), replicates=flips)
    assert level.status is Status.DIFFERENT
    assert level.differences[0].tensor == "accuracy"


def test_a_repeated_evaluation_that_is_no_number_widens_nothing() -> None:
    moved = replace(ev(10, GOOD), nudged=({"loss": math.nan, "accuracy": math.inf},))
    assert judge(original(moved), migrated(theirs(same=WORSE))).status is Status.DIFFERENT


class TestOwnTraining:
    """Part (b)."""

    def test_it_is_judged_by_the_spread_of_the_replicates(self) -> None:
        near, far = {"loss": 0.507, "accuracy": 0.75}, {"loss": 0.509, "accuracy": 0.75}
        spread = replicates(0.501, 0.4995)
        assert judge(original(), migrated(theirs(near)), replicates=spread).status is Status.EQUIVALENT
        level = judge(original(), migrated(theirs(far)), replicates=spread)
        assert level.status is Status.DIFFERENT
        assert level.differences[0].tensor == "loss of its own training"
        assert level.differences[0].ratio == pytest.approx(9.0)
        assert "the trainings part" in level.differences[0].causes[0]

    def test_it_is_not_judged_without_replicates_nor_where_one_of_several_evaluated(self) -> None:
        alone = (*replicates(0.5), *replicates(0.5, step=20))
        for some in ((), alone):
            level = judge(original(), migrated(theirs(WORSE)), replicates=some)
            assert level.status is Status.EQUIVALENT
            assert "fewer than two replicates" in level.notes[0]

    @pytest.mark.parametrize(("loss", "status"), [(0.515, Status.EQUIVALENT), (0.517, Status.DIFFERENT)])
    def test_the_only_replicate_counts_twice(self, loss: float, status: Status) -> None:
        other = migrated(theirs({"loss": loss, "accuracy": 0.75}))
        assert judge(original(), other, replicates=replicates(0.501)).status is status

    def test_whether_a_spread_is_needed(self) -> None:
        def strictly(own: dict[str, float], same: dict[str, float] = GOOD) -> bool:
            return l7_evaluation.agrees_strictly(original(), migrated(theirs(own, same)), LIMITS)

        assert strictly(GOOD) and strictly({"loss": 0.5 * (1 + 7 * STEP), "accuracy": 0.75})
        assert not strictly({"loss": 0.5 * (1 + 9 * STEP), "accuracy": 0.75})
        assert not strictly(GOOD, {"loss": 0.5 * (1 + 9 * STEP), "accuracy": 0.75})
        assert not strictly({"loss": 0.5, "accuracy": 0.7433})
        # A metric that one program lacks is so in any number of replicates.
        assert strictly({"loss": 0.5}, {"loss": 0.5})

    def test_one_example_counted_otherwise_is_left_to_the_same_weights(self) -> None:
        # Six replicates counted as many examples each; the losses part within their noise.
        flipped = {"loss": 0.501, "accuracy": 0.7433}
        spread = replicates(0.501, 0.4995)
        level = judge(original(), migrated(theirs(flipped)), replicates=spread)
        assert level.status is Status.EQUIVALENT, level.summary
        assert "accuracy of its own training of step 10 is 0.7433, and 0.75 in the original" in level.notes[0]
        # Not where the metric itself is another, nor where the training is.
        wrong = theirs(flipped, {"loss": 0.5, "accuracy": 0.7433})
        assert judge(original(), migrated(wrong), replicates=spread).status is Status.DIFFERENT
        far = theirs({"loss": 0.509, "accuracy": 0.7433})
        found = judge(original(), migrated(far), replicates=spread)
        assert found.status is Status.DIFFERENT and len(found.differences) == 2

    def test_replicates_of_another_step_give_no_floor(self) -> None:
        level = judge(original(), migrated(theirs(WORSE)), replicates=replicates(0.5, 0.5, step=20))
        assert level.status is Status.EQUIVALENT
        assert "fewer than two replicates" in level.notes[0]

    def test_evaluations_are_paired_by_step_and_other_steps_are_a_note(self) -> None:
        ours = original(ev(10, GOOD), ev(20, {"loss": 0.4, "accuracy": 0.8}))
        late = Evaluation("local:0", 20, {"loss": 0.4, "accuracy": 0.8}, GOOD, 10, WORSE)
        spread = [original(ev(20, {"loss": v, "accuracy": 0.8})) for v in (0.4, 0.4)]
        level = judge(ours, migrated(late), replicates=spread)
        assert level.status is Status.EQUIVALENT
        assert level.notes[0] == "the original evaluates at 10, 20, the migrated program at 20"

    def test_without_steps_they_are_paired_in_order(self) -> None:
        bad = replace(theirs(WORSE), step=None)
        spread = [original(ev(None, {"loss": v, "accuracy": 0.75})) for v in (0.5, 0.5)]
        level = judge(original(), migrated(bad), replicates=spread)
        assert level.status is Status.DIFFERENT


def test_who_evaluates() -> None:
    nobody = replace(original(), evaluations=())
    assert judge(nobody, migrated()).status is Status.NOT_APPLICABLE
    only = judge(nobody, migrated(theirs()))
    assert only.status is Status.NOT_APPLICABLE and "the original never does" in only.notes[0]
    never = judge(original(), migrated())
    assert (never.status, never.reason) == (Status.DIFFERENT, Reason.SETTING_DIFFERS)
    assert never.differences[0].original == 1.0


def test_a_control_that_looks_like_the_trained_weights_is_inconclusive() -> None:
    level = judge(original(), migrated(ev(10, GOOD, GOOD, GOOD)))
    assert (level.status, level.reason) == (Status.INCONCLUSIVE, Reason.CONTROL_NOT_DETECTED)
    none = judge(original(), migrated(ev(10, GOOD, GOOD)))
    assert none.reason is Reason.CONTROL_NOT_DETECTED and "could not be run" in none.summary
    one_metric = judge(original(), migrated(ev(10, GOOD, GOOD, {**GOOD, "loss": 2.5})))
    assert one_metric.status is Status.EQUIVALENT


def test_weights_that_were_never_evaluated_are_inconclusive_and_say_why() -> None:
    told = replace(ev(10, GOOD), note="the weights do not fit")
    level = judge(original(), migrated(told))
    assert (level.status, level.reason) == (Status.INCONCLUSIVE, Reason.MISSING_VALUES)
    assert level.summary.endswith("of any step: the weights do not fit")


def test_the_weights_of_a_step_stand_beside_the_original_of_that_step() -> None:
    ours = original(ev(10, {"loss": 0.9}), ev(20, {"loss": 0.5}))
    right = ev(10, {"loss": 0.9}, {"loss": 0.5}, {"loss": 3.0}, weights_step=20)
    assert judge(ours, migrated(right)).status is Status.EQUIVALENT
    assert judge(ours, migrated(replace(right, weights_step=10))).status is Status.DIFFERENT


def test_two_data_sets_at_one_step_stay_apart() -> None:
    ours = original(ev(10, {"loss": 0.9}), ev(10, {"loss": 0.5}))
    one, two = ev(10, {"loss": 0.9}, {"loss": 0.9}, {"loss": 3.0}), ev(10, {"loss": 0.5}, {"loss": 0.5}, {"loss": 3.0})
    assert judge(ours, migrated(one, two)).status is Status.EQUIVALENT
    assert judge(ours, migrated(two, one)).status is Status.DIFFERENT


class TestNames:
    """Metrics that the two programs call differently."""

    RENAMED = theirs({"loss": 0.5, "acc": 0.75}, {"loss": 0.5, "acc": 0.75})

    def test_a_metric_of_the_same_values_is_the_same_metric(self) -> None:
        level = judge(original(), migrated(self.RENAMED))
        assert level.status is Status.EQUIVALENT
        assert level.notes[0] == "accuracy is the migrated program's acc"

    def test_it_has_the_same_value_wherever_both_evaluate(self) -> None:
        ours = original(ev(10, GOOD), ev(20, {"loss": 0.4, "accuracy": 0.8}))
        later = {"loss": 0.4, "acc": 0.81}
        level = judge(ours, migrated(self.RENAMED, theirs(later, later, 20)))
        assert (level.status, level.summary) == (Status.INCONCLUSIVE, "only the original has accuracy")

    def test_an_output_or_a_word_may_stand_before_its_name(self) -> None:
        def named(value: float) -> LevelResult:
            results = {"loss": 0.5, "head_accuracy": value}
            return judge(original(), migrated(theirs(results, results)))

        assert named(0.75).status is Status.EQUIVALENT
        level = named(0.7)
        assert level.status is Status.DIFFERENT and level.notes[0] == "accuracy is the migrated program's head_accuracy"

    def test_two_metrics_are_not_one(self) -> None:
        ours = original(ev(10, {**GOOD, "precision": 0.75}))
        level = judge(ours, migrated(self.RENAMED))
        assert (level.status, level.summary) == (Status.INCONCLUSIVE, "only the original has precision")

    def test_what_a_premade_estimator_adds_may_be_left_out(self) -> None:
        results = {**GOOD, "average_loss": 0.4}
        for unasked, status in (("loss", Status.INCONCLUSIVE), ("average_loss", Status.EQUIVALENT)):
            ours = replace(ev(10, results), unasked=frozenset({unasked}))
            assert judge(original(ours), migrated(theirs())).status is status
        # Not if nothing else agrees.
        nothing = theirs({"other": 1.0}, {"other": 1.0})
        ours = replace(ev(10, results), unasked=frozenset(results))
        assert judge(original(ours), migrated(nothing)).status is Status.INCONCLUSIVE

    def test_a_loop_may_leave_out_the_loss_if_it_has_no_other_number(self) -> None:
        def of_loop(**results: float) -> Recording:
            return replace(migrated(theirs(results, results)), loop=True)

        level = judge(original(), of_loop(accuracy=0.75))
        assert level.status is Status.EQUIVALENT and level.notes[0].startswith("only the original has loss, which")
        level = judge(original(), of_loop(accuracy=0.75, test_loss=0.9))
        assert (level.status, level.summary) == (Status.INCONCLUSIVE, "only the original has loss")
        assert judge(original(), migrated(theirs({"accuracy": 0.75}, {"accuracy": 0.75}))).status is Status.INCONCLUSIVE

    def test_metrics_that_a_program_computes_of_its_predictions_are_printed(self) -> None:
        """A fit program without evaluate: it predicts, and NumPy does the rest."""
        silent = replace(migrated([]), evaluations=())
        predicted = replace(silent, predictions=(Prediction("local:0", 10, {}),))
        for recording, status in (
            (replace(predicted, printed=(0.1, 0.75003)), Status.NOT_EXERCISED),
            (replace(predicted, printed=(0.1, 0.76)), Status.DIFFERENT),
            (replace(silent, printed=(0.75,)), Status.DIFFERENT),  # of its training, say
            (predicted, Status.DIFFERENT),
        ):
            assert judge(original(), recording).status is status

    def test_no_hint_where_the_value_is_another(self) -> None:
        other = theirs({"loss": 0.5, "acc": 0.7}, {"loss": 0.5, "acc": 0.7})
        assert judge(original(), migrated(other)).summary == "only the original has accuracy"

    def test_a_mapping_settles_it(self) -> None:
        renamed = replace(self.RENAMED, control={"loss": 2.5, "acc": 0.1})
        level = judge(original(), migrated(renamed), metric_names={"accuracy": "acc"})
        assert level.status is Status.EQUIVALENT
        assert level.notes == (
            "metrics of each program's own training: not judged, because fewer than two replicates evaluated there",
        )

    def test_a_metric_of_the_migrated_program_alone_is_a_note(self) -> None:
        more = theirs(same={**GOOD, "auc": 0.9}, results={**GOOD, "auc": 0.9})
        level = judge(original(), migrated(more))
        assert level.status is Status.EQUIVALENT
        assert "metrics that only the migrated program has: auc" in level.notes

    def test_the_global_step_is_no_metric(self) -> None:
        ours = original(ev(10, {**GOOD, "global_step": 10.0}))
        assert judge(ours, migrated(theirs())).status is Status.EQUIVALENT


class TestCauses:
    """What is said of a metric that differs."""

    def causes(self, same: dict[str, float], **changes: object) -> tuple[str, ...]:
        return judge(original(**changes), migrated(theirs(same=same))).differences[0].causes

    def test_only_the_loss(self) -> None:
        causes = self.causes({"loss": 0.6, "accuracy": 0.75})
        assert causes[0].startswith("only the loss differs (1 other metric judged the same): TF1's evaluate() averages")

    def test_everything(self) -> None:
        causes = self.causes(WORSE)
        assert not any(cause.startswith("only the loss") for cause in causes)

    def test_a_factor(self) -> None:
        assert any("4 times the original's" in cause for cause in self.causes({"loss": 2.0, "accuracy": 0.75}))

    def test_the_line_of_the_loss(self) -> None:
        ours = original(sources={"loss": SourceLine("o.py", 3)})
        level = judge(ours, migrated(theirs(same={"loss": 0.6, "accuracy": 0.75})))
        assert level.differences[0].original_source == SourceLine("o.py", 3)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_never_passes(value: float) -> None:
    broken = {"loss": value, "accuracy": 0.75}
    assert judge(original(), migrated(theirs(same=broken))).status is Status.DIFFERENT
    both = judge(original(ev(10, broken)), migrated(theirs(same=broken, results=broken)))
    assert (both.status, both.reason) == (Status.INCONCLUSIVE, Reason.NON_FINITE)


def test_rows_for_the_report() -> None:
    other = {"loss": 0.5 * (1 + 16 * STEP)}
    table = l7_evaluation.rows(original(), migrated(theirs({"loss": 0.7, "accuracy": 0.75}, other)), LIMITS)
    loss, accuracy = table
    assert (loss.metric, loss.step, loss.original) == ("loss", 10, 0.5)
    assert loss.same_weights == other["loss"] and loss.own_weights == 0.7
    assert loss.same_ratio == pytest.approx(16) and loss.own_ratio is not None and math.isnan(loss.own_ratio)
    assert loss.status == "different"
    assert (accuracy.same_weights, accuracy.same_ratio, accuracy.status) == (None, None, "missing")


def test_the_training_that_read_the_batches_of_the_original_is_compared() -> None:
    shuffled, replayed = theirs({"loss": 0.75, "accuracy": 0.5}), theirs(dict(GOOD))
    alone = judge(original(), migrated(shuffled), replicates=replicates(0.5, 0.5 + 1e-6))
    assert alone.status is Status.DIFFERENT
    both = l7_evaluation.with_training_of(migrated(shuffled), migrated(ev(10, dict(GOOD)), ev(20, dict(GOOD))))
    assert [(e.step, e.results, e.same_weights) for e in both.evaluations] == [(10, GOOD, GOOD)]
    assert judge(original(), both, replicates=replicates(0.5, 0.5 + 1e-6)).status is Status.EQUIVALENT
    wrong = l7_evaluation.with_training_of(migrated(replayed), migrated(ev(10, dict(WORSE))))
    assert judge(original(), wrong, replicates=replicates(0.5, 0.5 + 1e-6)).status is Status.DIFFERENT


def test_the_mean_over_batches_stands_for_a_loss_that_is_the_mean_over_examples() -> None:
    other = {"loss": 0.45, LOSS_OF_EXAMPLES: 0.45, LOSS_OF_BATCHES: 0.5, "accuracy": 0.75}
    level = judge(original(), migrated(theirs(other, other)), replicates=replicates(0.5, 0.50001))
    assert level.status is Status.EQUIVALENT, level.summary
    assert any("0.45, the mean over examples" in note for note in level.notes)


def test_means_over_examples_are_compared_where_both_programs_report_them() -> None:
    """An original that is a Keras program itself, and a last batch that is partial."""
    mine = {"loss": 0.45, LOSS_OF_EXAMPLES: 0.45, LOSS_OF_BATCHES: 0.5}
    level = judge(original(ev(10, mine)), migrated(theirs(mine, mine)))
    assert level.status is Status.EQUIVALENT and not any("mean over examples" in note for note in level.notes)
    other = {"loss": 0.5, LOSS_OF_EXAMPLES: 0.5, LOSS_OF_BATCHES: 0.45}
    assert judge(original(ev(10, mine)), migrated(theirs(other, other))).status is Status.DIFFERENT


@pytest.mark.parametrize(
    "other",
    [
        # Neither mean is the reported loss: something else was added or left out.
        {"loss": 0.45, LOSS_OF_EXAMPLES: 0.4, LOSS_OF_BATCHES: 0.5, "accuracy": 0.75},
        # The batches' mean is another one as well.
        {"loss": 0.45, LOSS_OF_EXAMPLES: 0.45, LOSS_OF_BATCHES: 0.51, "accuracy": 0.75},
    ],
)
def test_another_loss_is_not_excused_by_its_means(other: dict[str, float]) -> None:
    level = judge(original(), migrated(theirs(same=other)))
    assert level.status is Status.DIFFERENT
    assert level.differences[0].tensor == "loss"
