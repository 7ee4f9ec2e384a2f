"""L0b: every compared setting as a row, and which of them decide."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy_programs import Program, migrated_of, run

from migrator.harness.protocol import l0b_configuration as configuration
from migrator.harness.protocol.results import LevelResult, Status
from migrator.harness.recording import Batch, Optimizer, Recording, SourceLine, Step

BASE = run(Program(steps=2)), run(migrated_of(Program(steps=2)))
SETTINGS = {"learning_rate": 0.05}


def pair(ours: dict[str, object] | None = None, theirs: dict[str, object] | None = None) -> tuple[Recording, Recording]:
    sides = []
    for recording, changes in zip(BASE, (ours or {}, theirs or {}), strict=True):
        settings = changes.pop("settings", None)
        if settings is not None:
            changes["optimizer"] = Optimizer("Adagrad", {**SETTINGS, **settings})  # type: ignore[dict-item]
        sides.append(replace(recording, **changes))  # type: ignore[arg-type]
    return sides[0], sides[1]


def row(name: str, *sides: Recording) -> configuration.Field:
    return next(field for field in configuration.fields(*sides) if field.name == name)


def judge(ours: dict[str, object] | None = None, theirs: dict[str, object] | None = None) -> LevelResult:
    return configuration.judge(*pair(ours, theirs))


class TestUpdates:
    """Updates of moving averages."""

    @pytest.mark.parametrize(
        ("ours", "theirs", "same"), [(0, 0, True), (4, 4, True), (4, 2, True), (4, 0, False), (0, 4, False)]
    )
    def test_that_there_are_any_decides(self, ours: int, theirs: int, same: bool) -> None:
        level = judge({"update_ops": ours}, {"update_ops": theirs})
        assert level.status is Status.EQUIVALENT  # the averages themselves are compared by L4
        assert (not any("moving averages" in note for note in level.notes)) == same

    def test_the_cause_is_that_of_the_side_that_has_none(self) -> None:
        (missing,) = judge({"update_ops": 4}).notes
        assert "none of the original's 4 updates" in missing and "training=False" in missing
        (added,) = judge(None, {"update_ops": 4}).notes
        assert "UPDATE_OPS" in added and "momentum=1.0" in added


@pytest.mark.parametrize(
    ("decay", "rate", "status"),
    [
        (0.05, 0.01, Status.EQUIVALENT),  # the weights after each step are compared
        (1e-4, 0.001, Status.DIFFERENT),  # no number shows it
        (0.05, None, Status.EQUIVALENT),  # a schedule's, whose first rates are known
        (1e-4, None, Status.DIFFERENT),
    ],
)
def test_a_decay_written_by_hand_is_left_to_the_weights(decay: float, rate: float | None, status: Status) -> None:
    adam: dict[str, float | bool | str | None] = {"beta_1": 0.9, "weight_decay": None, "learning_rate": rate}
    ours = replace(BASE[0], optimizer=Optimizer("AdamOptimizer", adam))
    theirs = replace(BASE[1], optimizer=Optimizer("AdamW", {**adam, "weight_decay": decay}))
    level = configuration.judge(ours, theirs)
    assert level.status is status
    assert any("weight_decay: " in note for note in level.notes) is (status is Status.EQUIVALENT)
    # Both decay, by other shares.
    both = replace(ours, optimizer=Optimizer("AdamW", {**adam, "weight_decay": 0.01}))
    assert configuration.judge(both, theirs).status is Status.DIFFERENT


class TestClipping:
    """Clipping of gradients is a setting of the optimizer on both sides."""

    @pytest.mark.parametrize(
        ("ours", "theirs", "same"),
        [
            ({"global_clipnorm": 5.0}, {"global_clipnorm": 5.0}, True),
            ({"global_clipnorm": 5.0}, {"global_clipnorm": 5.5}, False),
            ({"global_clipnorm": 5.0}, {"global_clipnorm": None}, False),
            ({"global_clipnorm": 5.0}, {}, False),
            ({}, {"clipvalue": 1.0}, False),
            ({"global_clipnorm": 5.0}, {"clipnorm": 5.0}, False),
            ({"clipnorm": None}, {}, True),
            ({"clipvalue": "[-1, 2]"}, {"clipvalue": "[-1, 2]"}, True),
            ({"clipvalue": "[-1, 2]"}, {"clipvalue": 2.0}, False),
            ({"clipnorm": "computed"}, {}, False),
            ({"clip_by_average_norm": 1.0}, {}, False),
        ],
    )
    def test_it_is_compared(self, ours: dict[str, object], theirs: dict[str, object], same: bool) -> None:
        level = judge({"settings": ours}, {"settings": theirs})
        assert (level.status is Status.EQUIVALENT) == same, level.summary

    def test_a_computed_value_is_a_note(self) -> None:
        level = judge({"settings": {"clipnorm": "computed"}}, {"settings": {"clipnorm": 3.0}})
        assert level.status is Status.EQUIVALENT
        assert level.notes == ("clipnorm is computed at run time; only its effect is compared (L4)",)


class TestRates:
    """The learning rate as a setting, and at each step."""

    def test_a_computed_rate_is_judged_by_its_values(self) -> None:
        assert judge({"settings": {"learning_rate": None}}, {"settings": {}}).status is Status.EQUIVALENT
        steps = tuple(replace(s, learning_rate=0.05 if s.number == 1 else 0.06) for s in BASE[1].steps)
        level = judge({"settings": {"learning_rate": None}}, {"settings": {}, "steps": steps})
        assert level.status is Status.DIFFERENT
        assert [(found.tensor, found.step) for found in level.differences] == [("learning rate of each step", 2)]

    def test_rates_that_are_rounded_otherwise_are_the_same(self) -> None:
        """Two units in the last place were measured of a power, eagerly and in a graph; a wrong rate is far off."""
        for units, same in ((2, True), (6, False)):
            rate = float(np.float32(0.05) + units * np.spacing(np.float32(0.05)))
            steps = tuple(replace(s, learning_rate=rate) for s in BASE[1].steps)
            assert row("learning rate of each step", *pair(None, {"steps": steps})).same is same

    def test_what_is_left_of_a_sum_is_rounded_as_its_terms(self) -> None:
        """A decay by a cosine from 0.05, in the words of TensorFlow 1 and of a class of one's own, at step 35."""

        def with_rates(number: int, rate: float) -> dict[str, object]:
            steps = (replace(s, learning_rate=rate if s.number == 2 else 0.05) for s in BASE[number].steps)
            return {"steps": tuple(steps)}

        for other, same in ((0.0128874155, True), (0.01289, False)):
            both = pair(with_rates(0, 0.0128874201), with_rates(1, other))
            assert row("learning rate of each step", *both).same is same

    def test_rates_that_were_not_recorded_are_a_note(self) -> None:
        steps = tuple(replace(s, learning_rate=None) for s in BASE[1].steps)
        level = judge(None, {"steps": steps})
        assert level.status is Status.EQUIVALENT
        assert level.notes == ("learning rates: no step has one on both sides",)

    def test_the_first_step_that_differs_is_named(self) -> None:
        steps = tuple(replace(s, learning_rate=0.06 if s.number == 2 else s.learning_rate) for s in BASE[1].steps)
        found = row("learning rate of each step", *pair(None, {"steps": steps}))
        assert (found.step, found.same) == (2, False)


def trainers(sizes: list[int], replicas: int = 1) -> dict[str, object]:
    tasks = [f"worker:{i}" for i in range(len(sizes))]
    return {
        "steps": tuple(Step(1, task, 1.0, 0.05, "d") for task in tasks),
        "batches": tuple(Batch(task, 1, "d", size, ()) for task, size in zip(tasks, sizes, strict=True)),
        "replicas": replicas,
        "participation": dict.fromkeys(tasks, 1),
    }


class TestBatches:
    """The batch of each trainer, and of one update."""

    @pytest.mark.parametrize(
        ("sizes", "replicas", "together"),
        [([16], 1, 16), ([16, 16], 2, 32), ([16, 8], 2, 24), ([16, 16], 1, 16), ([16], 4, 64), ([16, 8], 1, None)],
    )
    def test_examples_in_one_update(self, sizes: list[int], replicas: int, together: int | None) -> None:
        sides = pair(trainers(sizes, replicas), trainers(sizes, replicas))
        found = row("examples in one update", *sides)
        assert (found.original, found.same) == (together, None if together is None else True)
        assert row("batch size of each trainer", *sides).original == str(sizes)

    def test_the_same_batch_on_each_of_more_replicas_is_another_update(self) -> None:
        ours, theirs = pair(trainers([16, 16], 2), trainers([16, 16], 4))
        assert row("batch size of each trainer", ours, theirs).same
        found = row("examples in one update", ours, theirs)
        assert (found.original, found.migrated, found.same) == (32, 64, False)

    def test_a_divided_batch(self) -> None:
        level = judge(trainers([16, 16], 2), trainers([8, 8], 2))
        assert [d.tensor for d in level.differences] == ["batch size of each trainer", "examples in one update"]
        assert "divided" in level.differences[0].causes[0]

    def test_no_batches_are_a_note(self) -> None:
        level = judge({"batches": ()}, {"batches": ()})
        assert level.status is Status.EQUIVALENT
        assert level.notes == ("batch sizes: no batch was recorded",)


class TestDropout:
    """Where dropouts stand."""

    @pytest.mark.parametrize(
        ("ours", "theirs", "same"),
        [((1, 2), (1, 2), True), ((1, 2), (2, 1), True), ((1,), (2,), False), ((1,), (None,), None), ((1,), (), None)],
    )
    def test_places_are_compared_where_both_are_known(
        self, ours: tuple[int | None, ...], theirs: tuple[int | None, ...], same: bool | None
    ) -> None:
        rates = (0.5,) * len(ours)
        sides = pair({"dropout_after": ours, "dropout_rates": rates}, {"dropout_after": theirs, "dropout_rates": rates})
        assert row("weights before each dropout", *sides).same is same
        level = configuration.judge(*sides)
        assert (level.status is Status.DIFFERENT) == (same is False)
        assert any("weights before each dropout: not known" in note for note in level.notes) == (same is None)

    def test_two_rates_that_changed_places(self) -> None:
        ours = {"dropout_after": (1, 2), "dropout_rates": (0.1, 0.5)}
        theirs = {"dropout_after": (1, 2), "dropout_rates": (0.5, 0.1)}
        found = row("weights before each dropout", *pair(dict(ours), dict(theirs)))
        assert (found.original, found.migrated, found.same) == ("1 (0.1); 2 (0.5)", "1 (0.5); 2 (0.1)", False)

    @pytest.mark.parametrize(("draws", "decides"), [(0, True), (1, False)])
    def test_a_mask_that_a_program_draws_itself_is_left_to_the_numbers(self, draws: int, decides: bool) -> None:
        ours = {"dropout_rates": (0.3,), "dropout_inputs": ((8,),)}
        level = judge(dict(ours), {"draws": draws})
        assert (level.status is Status.DIFFERENT) == decides
        assert decides or any(note.startswith("dropout rates") and "L3 compares" in note for note in level.notes)
        # A mask too many takes the place of no dropout.
        assert judge({**ours, "draws": draws}).status is Status.DIFFERENT

    def test_weights_that_are_frozen_by_other_means_are_not_counted(self) -> None:
        frozen = tuple(replace(one, trainable=False) for one in BASE[1].variables)
        ours: dict[str, object] = {"dropout_rates": (0.25,), "dropout_inputs": ((16,),), "dropout_after": (2,)}
        theirs = {**ours, "dropout_after": (0,)}
        assert judge(dict(ours), dict(theirs)).status is Status.DIFFERENT
        assert judge(dict(ours), {**theirs, "variables": frozen}).status is Status.EQUIVALENT

    @pytest.mark.parametrize(
        ("loops", "others", "status"),
        [
            ((1,), (0,), Status.DIFFERENT),
            ((0,), (1,), Status.DIFFERENT),
            ((1,), (1,), Status.EQUIVALENT),
            ((1,), (2,), Status.EQUIVALENT),
            ((0,), (0,), Status.EQUIVALENT),
            ((1,), (None,), Status.EQUIVALENT),
            ((1,), (), Status.EQUIVALENT),
        ],
    )
    def test_masks_for_each_time_step(self, loops: object, others: object, status: Status) -> None:
        common: dict[str, object] = {"dropout_rates": (0.25,), "dropout_inputs": ((4,),), "dropout_after": (0,)}
        level = judge({**common, "dropout_loops": loops}, {**common, "dropout_loops": others})
        assert level.status is status
        assert status is Status.EQUIVALENT or "at each time step" in level.differences[0].causes[0]

    @pytest.mark.parametrize(
        ("theirs", "decides"),
        [
            ({"dropout_rates": (0.3,)}, False),
            ({"dropout_rates": (0.4,)}, True),
            ({"dropout_rates": (), "draws": 1, "dropout_inputs": ()}, False),
            ({"dropout_rates": (), "dropout_inputs": ()}, False),  # none there: L3 has a mask on one side
            ({"dropout_rates": (0.3, 0.3), "dropout_inputs": ((8,), (8,))}, True),
        ],
    )
    @pytest.mark.parametrize("swapped", [False, True])
    def test_a_rate_that_is_computed_is_left_to_the_numbers(
        self, theirs: dict[str, object], decides: bool, swapped: bool
    ) -> None:
        """A placeholder or a schedule: both programs have a dropout, whose rate nobody can read in one of them."""
        computed: dict[str, object] = {"dropout_rates": (), "dropout_inputs": ((8,),)}
        known: dict[str, object] = {"dropout_inputs": ((8,),), **theirs}
        if theirs["dropout_rates"] == (0.4,):  # where both are known, another rate is another setting
            computed["dropout_rates"] = (0.3,)
        sides = (known, computed) if swapped else (computed, known)
        level = judge(*sides)
        assert (level.status is Status.DIFFERENT) == decides

    @pytest.mark.parametrize(
        ("rates", "loops", "decides"),
        [
            ((0.2, 0.3) * 6, (0,) * 12, False),
            ((0.2, 0.3, 0.3), (0,) * 3, True),
            ((0.2, 0.2), (0, 0), True),
            ((0.2, 0.3), (0, 0), True),
        ],
    )
    def test_a_loop_of_python_over_time_draws_as_often_as_one_of_the_graph(
        self, rates: tuple[float, ...], loops: tuple[int, ...], decides: bool
    ) -> None:
        looped: dict[str, object] = {
            "dropout_rates": (0.2, 0.3),
            "dropout_loops": (1, 1),
            "dropout_inputs": ((5,), (8,)),
            "dropout_after": (0, 2),
        }
        unrolled: dict[str, object] = {
            "dropout_rates": rates,
            "dropout_loops": loops,
            "dropout_inputs": ((5,), (8,)) * (len(rates) // 2),
            "dropout_after": (0, 2) * (len(rates) // 2),
        }
        for sides in ((looped, unrolled), (unrolled, looped)):
            assert (judge(*sides).status is Status.DIFFERENT) == decides

    def test_a_program_without_dropout_has_one_row(self) -> None:
        names = [field.name for field in configuration.fields(*pair())]
        assert "dropout rates" in names and "dropout inputs" not in names


def test_every_field_is_a_row_and_a_difference_carries_its_lines() -> None:
    ours, theirs = pair({"settings": {"epsilon": 0.0}}, {"settings": {"epsilon": 1e-7}})
    theirs = replace(theirs, sources={"optimizer": SourceLine("m.py", 12)})
    names = [field.name for field in configuration.fields(ours, theirs)]
    assert names == [
        "update rule",
        "epsilon",
        "learning_rate",
        "learning rate of each step",
        "batch size of each trainer",
        "examples in one update",
        "regularisation terms",
        "half precision of products",
        "updates of moving averages",
        "dropout rates",
        "replicas",
    ]
    first = configuration.judge(ours, theirs).differences[0]
    assert (first.tensor, first.original, first.migrated) == ("optimizer epsilon", 0.0, 1e-7)
    assert first.migrated_source == SourceLine("m.py", 12) and "1e-7" in first.causes[0]


def test_an_epsilon_that_adds_nothing_is_left_to_the_steps() -> None:
    level = judge({"settings": {"epsilon": 0.0}}, {"settings": {"epsilon": 1e-30}})
    assert level.status is Status.EQUIVALENT
    assert any("epsilon" in note and "L4 compares" in note for note in level.notes), level.notes


@pytest.mark.parametrize(
    ("begin", "epsilon", "status"),
    [(0.1, 1e-12, Status.EQUIVALENT), (0.1, 1e-7, Status.DIFFERENT), (1e-6, 1e-12, Status.DIFFERENT)],
)
def test_an_epsilon_of_adagrad_is_left_to_the_steps_where_it_is_nothing_beside_its_sums(
    begin: float, epsilon: float, status: Status
) -> None:
    ours, theirs = pair(
        {"settings": {"epsilon": 0.0, "initial_accumulator_value": begin}},
        {"settings": {"epsilon": epsilon, "initial_accumulator_value": begin}},
    )
    assert configuration.judge(ours, theirs).status is status


@pytest.mark.parametrize(("slot", "status"), [("average", Status.EQUIVALENT), ("accumulator", Status.DIFFERENT)])
def test_averages_beside_the_optimizer_may_be_those_of_keras_own(slot: str, status: Status) -> None:
    name = BASE[0].variables[0].name
    ours: dict[str, object] = {"settings": {}, "slots": {1: {(name, slot): BASE[0].initial[name]}}}
    assert judge(ours, {"settings": {"use_ema": True}}).status is status


def test_flags_are_shown_as_words() -> None:
    level = judge({"settings": {"nesterov": False}}, {"settings": {"nesterov": True}})
    assert (level.differences[0].original, level.differences[0].migrated) == ("False", "True")
    assert level.summary == "optimizer nesterov is False in the original and True in the migrated program"


@pytest.mark.parametrize(
    ("ours", "theirs", "status"),
    [
        (("float16",), ("float16",), Status.EQUIVALENT),
        (("float16",), (), Status.DIFFERENT),
        ((), ("bfloat16",), Status.DIFFERENT),
        (("float16",), None, Status.EQUIVALENT),  # an eager step shows no operations
    ],
)
def test_half_precision_is_a_setting(ours: object, theirs: object, status: Status) -> None:
    level = judge({"halves": ours}, {"halves": theirs})
    assert level.status is status
    if status is Status.DIFFERENT:
        assert level.summary.startswith("half precision of products is")


def test_a_class_of_its_own_with_the_name_of_a_rule_is_left_to_the_weights() -> None:
    settings: dict[str, float | bool | str | None] = {"rho": 0.95, "momentum": 0.5, "epsilon": 1e-6}
    ours = replace(BASE[0], optimizer=Optimizer("RMSPropOptimizer", settings))
    theirs = replace(BASE[1], optimizer=Optimizer("RMSProp", {}, own=True))
    level = configuration.judge(ours, theirs)
    assert level.status is Status.EQUIVALENT
    assert any("update rule: rmsprop" in note and "L4 compares" in note for note in level.notes)
    assert configuration.judge(ours, replace(theirs, optimizer=Optimizer("RMSProp", {}))).status is Status.DIFFERENT
