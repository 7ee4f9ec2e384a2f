"""The protocol on a numpy trainer: a good migration passes, each bad one is caught at the level that should
see it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy_programs import Program, initial_values, migrated_of, run

from migrator.harness.protocol import l0b_configuration, l4_state, ladder, measurements, name_map, tolerance, verdict
from migrator.harness.protocol.results import LevelResult, Reason, Status
from migrator.harness.recording import Recording

ADAGRAD = Program()
ADAM = Program(optimizer="adam", learning_rate=0.01, epsilon=1e-8)
SGD = Program(optimizer="sgd", learning_rate=0.1)
MOMENTUM = Program(optimizer="momentum", learning_rate=0.02)
REGULARIZED = Program(optimizer="sgd", learning_rate=0.1, l2=0.01)


def limits_of(original: Program) -> tolerance.Tolerance:
    recording = run(original)
    replicates = [
        run(original, ulp_seed=int(p["ulp_seed"]), learning_rate_factor=p["learning_rate_factor"])
        for p in tolerance.replicate_plans(recording.optimizer)
    ]
    return tolerance.derive(recording, replicates)


def verify(
    original: Program,
    migrated: Program,
    *,
    migrated_recording: Recording | None = None,
    control: Recording | None = None,
) -> tuple[LevelResult, ...]:
    ours = run(original)
    theirs = migrated_recording or run(migrated)
    names = name_map.build(ours.variables, theirs.variables)
    base = ladder.foundation(ours, theirs, names, ["local:0"], ["local:0"])
    levels = base.levels
    if base.comparable:
        control = control or run(migrated, learning_rate_factor=tolerance.CONTROL_FACTOR)
        levels += ladder.numbers(ours, theirs, control, {}, names, limits_of(original))
    return verdict.complete(levels)


def first_bad(levels: tuple[LevelResult, ...]) -> str | None:
    return next((level.id for level in levels if level.status is Status.DIFFERENT), None)


@pytest.mark.parametrize("program", [ADAGRAD, ADAM, SGD, MOMENTUM, REGULARIZED], ids=lambda p: p.optimizer)
@pytest.mark.parametrize("changes", [{}, {"float64_sums": True}], ids=["same", "other kernels"])
def test_a_good_migration_is_equivalent(program: Program, changes: dict[str, object]) -> None:
    levels = verify(program, migrated_of(program, **changes))
    found = verdict.decide(levels)
    assert found.status is Status.EQUIVALENT, found.sentence
    assert all(level.control is None or level.control.detected for level in levels)


BAD = [
    ("learning rate x1.01", ADAGRAD, {"learning_rate": 0.0505}, "L0b"),
    (
        "learning rate x1.01 unseen by the read-back",
        ADAGRAD,
        {"learning_rate": 0.0505, "reported": {"learning_rate": 0.05}},
        "L0b",
    ),
    ("epsilon", ADAGRAD, {"epsilon": 1e-7}, "L0b"),
    ("epsilon 1e-3 unseen by the read-back", ADAGRAD, {"epsilon": 1e-3, "reported": {"epsilon": 0.0}}, "L4"),
    ("accumulator of zero", ADAGRAD, {"accumulator": 0.0, "epsilon": 1e-7}, "L0b"),
    (
        "accumulator 0.11 unseen by the read-back",
        ADAGRAD,
        {"accumulator": 0.11, "reported": {"initial_accumulator_value": 0.1}},
        "L4",
    ),
    ("sum for mean", ADAGRAD, {"loss_scale": "sum"}, "L3"),
    ("half the batch", ADAGRAD, {"batch_size": 8}, "L0b"),
    ("dropped last batch", ADAGRAD, {"drop_last": 1}, "L2"),
    ("other data", ADAGRAD, {"data_seed": 2}, "L2"),
    ("shorter training", ADAGRAD, {"steps": 29}, "L2"),
    ("dropped regulariser", REGULARIZED, {"l2": 0.0}, "L3"),
    ("regulariser x2", REGULARIZED, {"l2": 0.02}, "L3"),
    ("reported loss without the regulariser", REGULARIZED, {"report_regularizer": False}, "L3"),
    ("other activation", ADAGRAD, {"activation": "relu"}, "L3"),
    ("frozen output bias", ADAGRAD, {"train_output": False}, "L4"),
    ("momentum 0.85", MOMENTUM, {"momentum": 0.85}, "L0b"),
    (
        "momentum 0.899 unseen by the read-back",
        MOMENTUM,
        {"momentum": 0.899, "reported": {"momentum": 0.9}},
        "L4",
    ),
    ("beta_2", ADAM, {"beta_2": 0.99}, "L0b"),
    ("beta_2 unseen by the read-back", ADAM, {"beta_2": 0.998, "reported": {"beta_2": 0.999}}, "L4"),
    ("another rate from step 12", ADAGRAD, {"rate_at_step": (12, 0.06)}, "L0b"),
    ("another optimizer", ADAGRAD, {"optimizer": "sgd"}, "L0b"),
]


@pytest.mark.parametrize(("program", "changes", "expected"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_a_bad_migration_is_different_at_the_level_that_sees_it(
    program: Program, changes: dict[str, object], expected: str
) -> None:
    levels = verify(program, migrated_of(program, **changes))
    assert first_bad(levels) == expected, [(level.id, level.status, level.summary) for level in levels]
    found = verdict.decide(levels)
    assert found.status is Status.DIFFERENT
    assert found.level == expected
    assert found.divergence is not None


def _without_rates(recording: Recording) -> Recording:
    return replace(recording, steps=tuple(replace(step, learning_rate=None) for step in recording.steps))


def test_a_rate_that_no_read_back_sees_is_caught_by_the_numbers() -> None:
    ours = _without_rates(run(ADAGRAD))
    bad = migrated_of(ADAGRAD, learning_rate=0.0505, reported={"learning_rate": 0.05})
    theirs = _without_rates(run(bad))
    names = name_map.build(ours.variables, theirs.variables)
    levels = ladder.numbers(ours, theirs, run(bad, learning_rate_factor=1.01), {}, names, limits_of(ADAGRAD))
    assert [level.status for level in levels] == [Status.EQUIVALENT, Status.DIFFERENT]
    assert levels[1].differences[0].step == 1


def test_a_difference_after_the_last_early_state_is_found_in_the_trajectory() -> None:
    bad = migrated_of(ADAGRAD, rate_at_step=(12, 0.06))
    theirs = replace(run(bad), steps=tuple(replace(s, learning_rate=0.05) for s in run(bad).steps))
    levels = verify(ADAGRAD, bad, migrated_recording=theirs)
    # The read-back was forged to agree up to float32 rounding of the rate itself.
    theirs_rate = theirs.steps[0].learning_rate
    assert theirs_rate == 0.05
    assert first_bad(levels) == "L5"
    assert verdict.decide(levels).divergence.step == 13  # type: ignore[union-attr]


def test_a_control_that_is_not_seen_makes_the_level_inconclusive() -> None:
    migrated = run(migrated_of(ADAGRAD))
    levels = verify(ADAGRAD, migrated_of(ADAGRAD), control=migrated)
    found = verdict.decide(levels)
    assert found.status is Status.INCONCLUSIVE
    assert found.reason is Reason.CONTROL_NOT_DETECTED
    assert {level.id for level in levels if level.reason is Reason.CONTROL_NOT_DETECTED} == {"L4", "L5"}


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [
        (((4, 4, 2), (16,)), ((16,), (4, 4, 2)), True),
        (((64,),), ((16,),), False),
        (((64,),), (None,), True),
        (((64,),), (), True),
    ],
)
def test_a_dropout_on_an_input_of_another_shape_is_different(
    ours: tuple[tuple[int, ...] | None, ...], theirs: tuple[tuple[int, ...] | None, ...], same: bool
) -> None:
    original = replace(run(ADAGRAD), dropout_inputs=ours)
    migrated = replace(run(migrated_of(ADAGRAD)), dropout_inputs=theirs)
    level = l0b_configuration.judge(original, migrated)
    assert (level.status is Status.EQUIVALENT) == same, level.summary
    assert same or level.differences[0].tensor == "dropout inputs"


def test_a_missing_control_is_never_a_pass() -> None:
    ours, theirs = run(ADAGRAD), run(migrated_of(ADAGRAD))
    names = name_map.build(ours.variables, theirs.variables)
    levels = ladder.numbers(ours, theirs, None, {}, names, limits_of(ADAGRAD))
    assert [level.status for level in levels] == [Status.EQUIVALENT, Status.INCONCLUSIVE, Status.INCONCLUSIVE]


def test_batches_in_another_order_ask_for_a_replay() -> None:
    ours, theirs = run(ADAGRAD), run(migrated_of(ADAGRAD))
    swapped = list(theirs.batches)
    swapped[3], swapped[5] = replace(swapped[5], step=4), replace(swapped[3], step=6)
    theirs = replace(theirs, batches=tuple(swapped))
    names = name_map.build(ours.variables, theirs.variables)
    fixed = ladder.foundation(ours, theirs, names, ["local:0"], ["local:0"])
    random = ladder.foundation(ours, theirs, names, ["local:0"], ["local:0"], random_order=True)
    assert not fixed.same_order and fixed.comparable
    assert (fixed.levels[3].status, fixed.levels[3].reason) == (Status.INCONCLUSIVE, Reason.ORDER_DIFFERS)
    assert (random.levels[3].status, random.levels[3].reason) == (Status.EQUIVALENT, Reason.ORDER_DIFFERS)
    assert fixed.levels[3].differences[0].step == 4


def test_a_non_finite_loss_never_passes() -> None:
    def broken(recording: Recording) -> Recording:
        steps = list(recording.steps)
        steps[4] = replace(steps[4], loss=float("nan"))
        return replace(recording, steps=tuple(steps))

    ours, theirs = run(ADAGRAD), run(migrated_of(ADAGRAD))
    names = name_map.build(ours.variables, theirs.variables)
    cases = [(ours, broken(theirs), Status.DIFFERENT), (broken(ours), broken(theirs), Status.INCONCLUSIVE)]
    for a, b, expected in cases:
        level = ladder.foundation(a, b, names, ["local:0"], ["local:0"]).levels[0]
        assert (level.status, level.reason) == (expected, Reason.NON_FINITE)
    both = ladder.numbers(broken(ours), broken(theirs), None, {}, names, limits_of(ADAGRAD))
    assert all(level.status is not Status.EQUIVALENT for level in both[1:])


def test_a_trainer_without_a_step_is_not_a_pass() -> None:
    ours, theirs = run(ADAGRAD), run(migrated_of(ADAGRAD))
    names = name_map.build(ours.variables, theirs.variables)
    level = ladder.foundation(ours, theirs, names, ["local:0", "worker:1"], ["local:0"]).levels[0]
    assert (level.status, level.reason) == (Status.INCONCLUSIVE, Reason.DEGENERATE_PARTICIPATION)


@pytest.mark.parametrize("field", ["states", "gradients"])
def test_values_that_one_side_never_recorded_are_inconclusive(field: str) -> None:
    theirs = replace(run(migrated_of(ADAGRAD)), **{field: {}})  # type: ignore[arg-type]
    levels = verify(ADAGRAD, migrated_of(ADAGRAD), migrated_recording=theirs)
    found = verdict.decide(levels)
    assert (found.status, found.reason) == (Status.INCONCLUSIVE, Reason.MISSING_VALUES)


def test_gradients_that_are_summed_over_batches_may_be_missing() -> None:
    theirs = replace(run(migrated_of(ADAGRAD)), gradients={})
    ours, names = run(ADAGRAD), name_map.build(run(ADAGRAD).variables, theirs.variables)
    limits = limits_of(ADAGRAD)
    control = replace(run(migrated_of(ADAGRAD), learning_rate_factor=1.01), gradients={})

    def judged(other: Recording) -> LevelResult:
        conditional = replace(ours, conditional=True)
        return l4_state.judge(conditional, other, control, names.to_original(), limits, "a higher rate")

    level = judged(theirs)
    assert level.status is Status.EQUIVALENT and "of single batches were not compared" in level.notes[-1]
    wrong = replace(run(migrated_of(replace(ADAGRAD, learning_rate=0.0505))), gradients={})
    assert judged(wrong).status is Status.DIFFERENT


def test_a_nan_in_the_weights_of_both_sides_is_a_difference() -> None:
    def poisoned(recording: Recording) -> Recording:
        states = {step: dict(values) for step, values in recording.states.items()}
        name = next(iter(states[2]))
        value = states[2][name].copy()
        value.flat[3] = np.nan
        states[2][name] = value
        return replace(recording, states=states)

    ours, theirs = poisoned(run(ADAGRAD)), poisoned(run(migrated_of(ADAGRAD)))
    names = name_map.build(ours.variables, theirs.variables)
    control = run(migrated_of(ADAGRAD), learning_rate_factor=1.01)
    level = ladder.numbers(ours, theirs, control, {}, names, limits_of(ADAGRAD))[1]
    assert level.status is Status.DIFFERENT
    assert level.differences[0].causes[0] == "non-finite"


def test_the_first_divergence_names_step_tensor_element_and_both_values() -> None:
    levels = verify(ADAGRAD, migrated_of(ADAGRAD, accumulator=0.11, reported={"initial_accumulator_value": 0.1}))
    first = levels[5].differences[0]
    assert (first.tensor, first.step) == ("accumulator of dense/kernel", 1)
    assert first.index is not None and first.original is not None and first.migrated is not None
    assert isinstance(first.original, float) and isinstance(first.migrated, float)
    assert first.migrated - first.original == pytest.approx(0.01, rel=1e-4)
    assert first.absolute == pytest.approx(0.01, rel=1e-4)
    assert first.ulp is not None and first.ulp > 1000
    assert first.ratio is not None and first.ratio > 8


class TestTolerance:
    def test_kappa_is_the_condition_of_the_coefficients(self) -> None:
        assert tolerance.kappa(run(ADAM).optimizer) == pytest.approx(500)
        assert tolerance.kappa(run(MOMENTUM).optimizer) == pytest.approx(10)
        assert tolerance.kappa(run(ADAGRAD).optimizer) == 1
        assert tolerance.kappa(None) == 1

    def test_floors_never_fall_and_never_reach_zero(self) -> None:
        limits = limits_of(ADAM)
        by_quantity: dict[object, list[tuple[int, float]]] = {}
        for (quantity, step), floor in limits.floors.items():
            by_quantity.setdefault(quantity, []).append((step, floor))
        for floors in by_quantity.values():
            values = [floor for _, floor in sorted(floors)]
            assert values == sorted(values)
            assert values[0] > 0

    def test_c_comes_from_the_held_out_replicates(self) -> None:
        limits = limits_of(ADAM)
        for part, c in limits.c.items():
            assert len(limits.held_out[part]) == tolerance.REPLICATES
            assert c == max(tolerance.MINIMUM_C, tolerance.HELD_OUT_FACTOR * max(limits.held_out[part]))

    def test_a_replicate_that_lacks_a_value_gives_no_floor(self) -> None:
        original = run(ADAGRAD)
        replicates = [run(ADAGRAD, ulp_seed=i) for i in range(1, 6)] + [run(replace(ADAGRAD, steps=5), ulp_seed=9)]
        limits = tolerance.derive(original, replicates)
        theirs = run(migrated_of(ADAGRAD))
        names = name_map.build(original.variables, theirs.variables)
        control = run(migrated_of(ADAGRAD), learning_rate_factor=1.01)
        levels = ladder.numbers(original, theirs, control, {}, names, limits)
        assert levels[1].status is Status.INCONCLUSIVE
        assert levels[2].status is Status.INCONCLUSIVE

    def test_an_erratic_replicate_makes_the_result_inconclusive(self) -> None:
        original = run(ADAGRAD)
        erratic = run(ADAGRAD, initial={k: v * np.float32(1.01) for k, v in initial_values().items()})
        limits = tolerance.derive(original, [run(ADAGRAD, ulp_seed=i) for i in range(1, 6)] + [erratic])
        theirs = run(migrated_of(ADAGRAD))
        names = name_map.build(original.variables, theirs.variables)
        control = run(migrated_of(ADAGRAD), learning_rate_factor=1.01)
        levels = ladder.numbers(original, theirs, control, {}, names, limits)
        assert {level.status for level in levels} == {Status.INCONCLUSIVE}

    @pytest.mark.parametrize(
        ("residue", "status"), [(-1.4e-16, Status.EQUIVALENT), (1e-9, Status.EQUIVALENT), (1e-4, Status.DIFFERENT)]
    )
    def test_what_rounding_leaves_of_a_gradient_that_is_zero(self, residue: float, status: Status) -> None:
        # On one processor the terms of the sum cancel to nothing, on another they do not.
        recording, other = run(SGD), run(migrated_of(SGD))
        names = name_map.build(recording.variables, other.variables)
        last = [variable.name for variable in recording.variables][-1]

        def still(one: Recording, name: str, value: float) -> Recording:
            gradients = {step: {**own, name: np.full_like(own[name], value)} for step, own in one.gradients.items()}
            states = {
                step: {**own, name: one.initial[name] - np.float32(0.1 * step * value)}
                for step, own in one.states.items()
            }
            return replace(one, gradients=gradients, states=states)

        replicates = [
            still(run(SGD, ulp_seed=int(p["ulp_seed"]), learning_rate_factor=p["learning_rate_factor"]), last, 0.0)
            for p in tolerance.replicate_plans(recording.optimizer)
        ]
        ours = still(recording, last, 0.0)
        theirs = still(other, names.to_migrated()[last], residue)
        control = still(run(migrated_of(SGD), learning_rate_factor=1.01), names.to_migrated()[last], residue)
        limits = tolerance.derive(ours, replicates)
        levels = ladder.numbers(ours, theirs, control, {}, names, limits)
        assert next(level for level in levels if level.id == "L4").status is status

    def test_a_bias_that_is_stored_beside_a_one_is_rounded_as_that_is(self) -> None:
        recording = run(SGD)
        last = [variable.name for variable in recording.variables][-1]
        replicates = [run(SGD, ulp_seed=seed) for seed in (1, 2)]
        plain = tolerance.derive(recording, replicates)
        beside = tolerance.derive(recording, replicates, added={last: 1.0})
        for key, floor in plain.floors.items():
            greater = beside.floors[key] - floor
            if key[0].family == measurements.STATE and key[0].name == last:
                assert greater > 0.9 * tolerance.EPS or floor > tolerance.EPS
            else:
                assert greater == 0.0

    def test_no_floor_is_below_those_of_rounding_alone(self) -> None:
        # What lies within eight of these lies within the tolerance that any replicates give.
        for program in (ADAGRAD, ADAM, SGD, MOMENTUM, REGULARIZED):
            rounding, limits = tolerance.derive(run(program), ()), limits_of(program)
            assert rounding.floors.keys() == limits.floors.keys()
            assert all(0 < floor <= limits.floors[key] for key, floor in rounding.floors.items())
            assert all(rounding.c[part] <= c for part, c in limits.c.items())
            assert rounding.replicates == 0 and not any(rounding.held_out.values())

    def test_a_single_replicate_counts_twice(self) -> None:
        original = run(ADAM)
        plan = tolerance.replicate_plans(original.optimizer)[0]
        moved = run(ADAM, ulp_seed=int(plan["ulp_seed"]), learning_rate_factor=plan["learning_rate_factor"])
        one, rounding = tolerance.derive(original, [moved]), tolerance.derive(original, ())
        apart = tolerance.distances(measurements.everything(original), measurements.everything(moved))
        late = [key for key in apart if key[1] == 30]
        assert any(2 * apart[key] > rounding.floors[key] for key in late)
        assert all(one.floors[key] >= max(2 * apart[key], rounding.floors[key]) for key in late)
        assert set(one.c.values()) == {tolerance.MINIMUM_C} and one.stable(tolerance.TRAJECTORY)


class TestOneReplicateIsEnough:
    """`agree_strictly`: with limits of rounding alone, whether the spread of replicates can change what is said."""

    def agree(self, original: Program, migrated: Program, **changes: object) -> bool:
        ours = run(original)
        theirs = replace(run(migrated), **changes)  # type: ignore[arg-type]
        names = name_map.build(ours.variables, theirs.variables)
        return ladder.agree_strictly(ours, theirs, names, tolerance.derive(ours, ()), turns=False)

    @pytest.mark.parametrize("program", [ADAGRAD, SGD, MOMENTUM, REGULARIZED], ids=lambda p: p.optimizer)
    @pytest.mark.parametrize("changes", [{}, {"float64_sums": True}], ids=["same", "other kernels"])
    def test_of_good_migrations(self, program: Program, changes: dict[str, object]) -> None:
        assert self.agree(program, migrated_of(program, **changes))

    @pytest.mark.parametrize(
        "changes",
        [
            {"learning_rate": 0.0501},
            {"epsilon": 1e-3},
            {"accumulator": 0.11},
            {"rate_at_step": (30, 0.0)},  # nothing of it is seen but the weights after the last step
            {"train_output": False},
            {"activation": "relu"},
            {"loss_scale": "sum"},
        ],
        ids=str,
    )
    def test_not_of_what_differs(self, changes: dict[str, object]) -> None:
        assert not self.agree(ADAGRAD, migrated_of(ADAGRAD, **changes))

    def test_not_where_something_is_missing_or_no_number(self) -> None:
        good = run(migrated_of(ADAGRAD))
        assert not self.agree(ADAGRAD, migrated_of(ADAGRAD), steps=good.steps[:-1])
        assert not self.agree(ADAGRAD, migrated_of(ADAGRAD), gradients={})
        broken = (*good.steps[:-1], replace(good.steps[-1], loss=float("nan")))
        assert not self.agree(ADAGRAD, migrated_of(ADAGRAD), steps=broken)

    def test_not_where_regularization_is_another(self) -> None:
        good = run(migrated_of(REGULARIZED))
        assert good.regularization is not None
        more = good.regularization * 1.01
        assert not self.agree(REGULARIZED, migrated_of(REGULARIZED), regularization=more)

    def test_not_where_trainings_part_after_the_horizon(self) -> None:
        # Replicates part as far, late in a training: what is inside their spread needs it to be known.
        good = run(migrated_of(ADAGRAD))
        last = good.steps[-1]
        for share, agree in ((1e-7, True), (1e-3, False)):
            steps = (*good.steps[:-1], replace(last, loss=last.loss * (1 + share)))
            assert self.agree(ADAGRAD, migrated_of(ADAGRAD), steps=steps) is agree


def test_a_stop_is_reported_as_not_exercised() -> None:
    levels = verify(ADAGRAD, migrated_of(ADAGRAD, loss_scale="sum"))
    assert [(level.id, level.status) for level in levels[-2:]] == [
        ("L4", Status.NOT_EXERCISED),
        ("L5", Status.NOT_EXERCISED),
    ]
    assert "L3" in levels[-1].summary


def test_a_verdict_needs_every_level() -> None:
    levels = verify(ADAGRAD, migrated_of(ADAGRAD))
    for missing in range(len(levels)):
        partial = verdict.complete(levels[:missing] + levels[missing + 1 :])
        assert verdict.decide(partial).status is not Status.EQUIVALENT
    assert verdict.decide(()).status is Status.INCONCLUSIVE
