"""What may never pass, at each level that it can reach; layer outputs, order of findings, horizons, turns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest
from numpy_programs import Program, migrated_of, names, run

from migrator.harness.protocol import (
    judging,
    l3_forward,
    l4_state,
    l5_trajectory,
    ladder,
    measurements,
    name_map,
    tolerance,
)
from migrator.harness.protocol.measurements import ACTIVATION, LOSS, STATE, Quantity
from migrator.harness.protocol.results import Control, LevelResult, Reason, Status
from migrator.harness.protocol.tolerance import EPS, FORWARD, TRAJECTORY, UPDATE, Tolerance
from migrator.harness.recording import Batch, Recording, SourceLine, Step, Variable

F = np.float32
PROGRAM = Program(steps=12)
RENAME = {names("migrated")[key]: name for key, name in names("original").items()}


@pytest.fixture(scope="module")
def original() -> Recording:
    return run(PROGRAM)


@pytest.fixture(scope="module")
def migrated() -> Recording:
    return run(migrated_of(PROGRAM))


@pytest.fixture(scope="module")
def control() -> Recording:
    return run(migrated_of(PROGRAM), learning_rate_factor=1.01)


@pytest.fixture(scope="module")
def limits(original: Recording) -> Tolerance:
    plans = tolerance.replicate_plans(original.optimizer)
    return tolerance.derive(
        original,
        [run(PROGRAM, ulp_seed=int(p["ulp_seed"]), learning_rate_factor=p["learning_rate_factor"]) for p in plans],
    )


def _put(value: np.ndarray, at: int, new: float) -> np.ndarray:
    changed = value.copy()
    changed.flat[at] = new
    return changed


# What happens to the migrated tensor (and, where the second is given, to the original's).
BROKEN: Mapping[str, tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray] | None]] = {
    "nan on both sides": (lambda v: _put(v, 1, np.nan), lambda v: _put(v, 1, np.nan)),
    "nan": (lambda v: _put(v, 1, np.nan), None),
    "infinity on both sides": (lambda v: _put(v, 1, np.inf), lambda v: _put(v, 1, np.inf)),
    "one side short": (lambda v: v[:-1], None),
    "permuted rows": (lambda v: v[::-1].copy(), None),
    "transposed": (lambda v: v.T.copy(), None),
    "transposed with the right shape": (lambda v: v.T.reshape(v.shape), None),
    "scaled by two": (lambda v: v * F(2), None),
    "empty": (lambda v: v[:0], None),
    "empty on both sides": (lambda v: v[:0], lambda v: v[:0]),
    "one huge element": (lambda v: _put(v, 5, 3e38), None),
    "another dtype": (lambda v: v.astype(np.float64), None),
    # 8 floors of (4 + sqrt(96)) eps let 1.3e-5 of the greatest element pass.
    "one element off by 1e-4": (lambda v: _put(v, 7, float(v.flat[7]) + 1e-4 * float(np.max(np.abs(v)))), None),
}
TABLES = ("gradients", "states", "slots")


def _changed(recording: Recording, table: str, key: object, change: Callable[[np.ndarray], np.ndarray]) -> Recording:
    """The recording with the kernel's value of step 2 changed."""
    values = dict(getattr(recording, table))
    values[2] = {k: change(v) if k == key else v for k, v in values[2].items()}
    return replace(recording, **{table: values})


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("case", BROKEN)
def test_what_may_never_pass_at_l4(
    case: str, table: str, original: Recording, migrated: Recording, control: Recording, limits: Tolerance
) -> None:
    theirs, ours = BROKEN[case]
    keys = [("dense/kernel", "accumulator"), ("hidden/kernel:0", "accumulator")]
    keys = keys if table == "slots" else [key[0] for key in keys]  # type: ignore[misc]
    right = _changed(migrated, table, keys[1], theirs)
    left = original if ours is None else _changed(original, table, keys[0], ours)
    level = l4_state.judge(left, right, control, RENAME, limits, "a rate 1% higher")
    both_empty = case == "empty on both sides"
    assert level.status is (Status.INCONCLUSIVE if both_empty else Status.DIFFERENT), level.summary
    if both_empty:
        assert level.reason is Reason.MISSING_VALUES and "no elements" in level.summary
    else:
        first = level.differences[0]
        assert first.step == 2 and "dense/kernel" in first.tensor
        assert first.causes
    assert l4_state.judge(original, migrated, control, RENAME, limits, "").status is Status.EQUIVALENT


@pytest.mark.parametrize("case", BROKEN)
def test_what_may_never_pass_among_the_weights_of_l5(
    case: str, original: Recording, migrated: Recording, control: Recording, limits: Tolerance
) -> None:
    last = PROGRAM.steps
    theirs, ours = BROKEN[case]

    def changed(recording: Recording, name: str, change: Callable[[np.ndarray], np.ndarray]) -> Recording:
        return replace(
            recording,
            states={**recording.states, last: {**recording.states[last], name: change(recording.states[last][name])}},
        )

    left = original if ours is None else changed(original, "dense/kernel", ours)
    right = changed(migrated, "hidden/kernel:0", theirs)
    level = l5_trajectory.judge(left, right, control, RENAME, limits, "a rate 1% higher")
    expected = Status.INCONCLUSIVE if case == "empty on both sides" else Status.DIFFERENT
    assert level.status is expected, level.summary


LOSSES = {
    "nan": (math.nan, Status.DIFFERENT),
    "infinite": (math.inf, Status.DIFFERENT),
    "huge": (3e38, Status.DIFFERENT),
    "twice as large": (None, Status.DIFFERENT),
}


@pytest.mark.parametrize("step", [1, 2, 12])
@pytest.mark.parametrize("case", LOSSES)
def test_a_bad_loss_never_passes(
    case: str, step: int, original: Recording, migrated: Recording, control: Recording, limits: Tolerance
) -> None:
    value, expected = LOSSES[case]

    def with_loss(recording: Recording) -> Recording:
        steps = list(recording.steps)
        loss = 2 * steps[step - 1].loss if value is None else value
        steps[step - 1] = replace(steps[step - 1], loss=loss)
        return replace(recording, steps=tuple(steps))

    for left in (original, with_loss(original)) if value is not None and not np.isfinite(value) else (original,):
        level = (
            l3_forward.judge(left, with_loss(migrated), limits, RENAME)
            if step == 1
            else l5_trajectory.judge(left, with_loss(migrated), control, RENAME, limits, "")
        )
        assert level.status is expected, level.summary
        assert level.differences[0].step == step


def test_a_first_loss_that_one_side_lacks_is_no_finding_about_the_program(
    original: Recording, migrated: Recording, limits: Tolerance
) -> None:
    level = l3_forward.judge(original, replace(migrated, steps=migrated.steps[1:]), limits, RENAME)
    assert (level.status, level.reason) == (Status.INCONCLUSIVE, Reason.MISSING_VALUES)


def test_a_training_that_is_one_step_shorter_or_longer_is_different(
    original: Recording, migrated: Recording, control: Recording, limits: Tolerance
) -> None:
    for left, right in (
        (original, replace(migrated, steps=migrated.steps[:-1])),
        (replace(original, steps=original.steps[:-1]), migrated),
    ):
        level = l5_trajectory.judge(left, right, control, RENAME, limits, "")
        assert level.status is Status.DIFFERENT
        assert level.differences[0].step == 12
        assert level.differences[0].causes[0].startswith("missing in")


class TestLayerOutputs:
    """L3 with the outputs of the layers."""

    def judge(self, left: Recording, right: Recording, limits: Tolerance) -> LevelResult:
        return l3_forward.judge(left, right, limits, RENAME)

    def test_they_agree(self, original: Recording, migrated: Recording, limits: Tolerance) -> None:
        level = self.judge(original, migrated, limits)
        assert level.status is Status.EQUIVALENT
        assert level.summary == "the first loss agrees bit for bit; the outputs of 2 layers agree too"
        assert level.notes == ()

    def test_the_first_that_differs_is_the_first_divergence(self, original: Recording, limits: Tolerance) -> None:
        relu = replace(
            run(migrated_of(PROGRAM, activation="relu")),
            sources={"variable:hidden/kernel:0": SourceLine("m.py", 3), "loss": SourceLine("m.py", 9)},
        )
        level = self.judge(replace(original, sources={"loss": SourceLine("o.py", 4)}), relu, limits)
        assert level.status is Status.DIFFERENT
        tensors = [d.tensor for d in level.differences]
        assert tensors == [
            "output of the layer of dense/kernel",
            "output of the layer of dense_1/kernel",
            "loss of trainer 0",
        ]
        assert "it begins in the output of the layer of dense/kernel, in row" in level.summary
        assert level.summary.endswith("after 0 layers that agree")
        assert level.differences[0].migrated_source == SourceLine("m.py", 3)
        assert level.differences[0].original_source == SourceLine("o.py", 4)

    def test_a_difference_after_all_layers_is_in_the_loss(self, original: Recording, limits: Tolerance) -> None:
        level = self.judge(original, run(migrated_of(PROGRAM, loss_scale="sum")), limits)
        assert "the outputs of 2 layers agree: it begins after them, in the loss itself" in level.summary
        assert level.differences[0].tensor == "loss of trainer 0"
        assert "the batch has 16 examples: summed instead of averaged" in level.differences[0].causes[0]

    def test_an_output_that_differs_while_the_loss_agrees_is_a_note(
        self, original: Recording, migrated: Recording, limits: Tolerance
    ) -> None:
        outputs = dict(migrated.activations)
        outputs["hidden/kernel:0"] = np.arctanh(outputs["hidden/kernel:0"])
        level = self.judge(original, replace(migrated, activations=outputs), limits)
        assert level.status is Status.EQUIVALENT
        assert "output of the layer of dense/kernel differs at step 1" in level.notes[0]
        assert "yet the loss agrees" in level.notes[0]

    def test_outputs_of_one_side_are_a_note(self, original: Recording, migrated: Recording, limits: Tolerance) -> None:
        for left, right in (
            (original, replace(migrated, activations={})),
            (replace(original, activations={}), migrated),
        ):
            level = self.judge(left, right, limits)
            assert level.status is Status.EQUIVALENT
            assert len(level.notes) == 1 and "layer outputs that only the" in level.notes[0]

    def test_outputs_without_a_floor_are_a_note(
        self, original: Recording, migrated: Recording, limits: Tolerance
    ) -> None:
        floors = {key: floor for key, floor in limits.floors.items() if key[0].family != ACTIVATION}
        level = self.judge(original, migrated, replace(limits, floors=floors))
        assert level.status is Status.EQUIVALENT
        assert "no noise floor" in level.notes[0]

    def test_the_second_call_of_a_layer_is_renamed_too(self, migrated: Recording) -> None:
        twice = replace(migrated, activations={"hidden/kernel:0": np.ones(2, F), "hidden/kernel:0#2": np.ones(2, F)})
        keys = list(measurements.activations(twice, RENAME))
        assert [str(key[0]) for key in keys] == [
            "output of the layer of dense/kernel",
            "output of the layer of dense/kernel, call 2",
        ]

    def test_a_control_that_was_run_replaces_the_computed_one(
        self, original: Recording, migrated: Recording, limits: Tolerance
    ) -> None:
        unseen = Control("a bad run", detected=False, ratio=0.5)
        level = l3_forward.judge(original, migrated, limits, RENAME, control=unseen)
        assert (level.status, level.reason) == (Status.INCONCLUSIVE, Reason.CONTROL_NOT_DETECTED)
        assert level.control == unseen


def test_differences_come_in_the_order_of_computation(original: Recording, limits: Tolerance) -> None:
    bad = run(migrated_of(PROGRAM, loss_scale="sum"))
    found = l4_state.compare(original, bad, RENAME, limits)
    first = [str(f.quantity) for f in found.findings if f.step == 1]
    assert first == [
        "gradient of dense_1/bias",
        "gradient of dense_1/kernel",
        "gradient of dense/bias",
        "gradient of dense/kernel",
        "accumulator of dense/kernel",
        "accumulator of dense/bias",
        "accumulator of dense_1/kernel",
        "accumulator of dense_1/bias",
        "dense/kernel",
        "dense/bias",
        "dense_1/kernel",
        "dense_1/bias",
    ]


class TestSmallestError:
    def control(self, ratio: float) -> judging.Judgement:
        quantity = Quantity(STATE, "w")
        value = np.full(1, 1 + ratio * EPS, np.float64)
        limits = Tolerance({(quantity, 1): EPS}, dict.fromkeys((FORWARD, UPDATE, TRAJECTORY), 8.0), {}, 6, 1.0, 1, True)
        return judging.judge({(quantity, 1): np.ones(1)}, {(quantity, 1): value}, limits)

    def test_it_is_in_proportion_to_the_control(self) -> None:
        # A rate 1 % off stands out 800 floors and 8 pass: 0.01 % is what just passes.
        assert judging.smallest_error(self.control(800), 8.0, 1.01) == "a learning rate 0.01 % off would have been seen"
        assert judging.smallest_error(self.control(16), 8.0, 1.01) == "a learning rate 0.5 % off would have been seen"

    def test_a_control_that_is_not_seen_rules_nothing_out(self) -> None:
        assert judging.smallest_error(self.control(7), 8.0, 1.01) is None
        assert judging.smallest_error(None, 8.0, 1.01) is None

    def test_levels_say_it_only_when_they_are_equivalent(
        self, original: Recording, migrated: Recording, control: Recording, limits: Tolerance
    ) -> None:
        good = l4_state.judge(original, migrated, control, RENAME, limits, "")
        assert good.excluded is not None and good.excluded.startswith("a learning rate 0.0")
        bad = l4_state.judge(original, control, control, RENAME, limits, "")
        assert (bad.status, bad.excluded) == (Status.DIFFERENT, None)


# -- horizons --

LONG = 40


def losses_only(values: Mapping[str, list[float]], program: str = "original") -> Recording:
    """A recording of losses by task, and nothing else."""
    steps = tuple(
        Step(n, task, float(F(loss)), 0.1, f"d{n}")
        for task, trainer in values.items()
        for n, loss in enumerate(trainer, start=1)
    )
    return Recording(
        program=program,
        tensorflow="",
        keras=None,
        variables=(Variable("w", (2,), "float32", True, 0, 1),),
        initial={},
        steps=steps,
        batches=tuple(Batch(step.task, step.number, f"d{step.number}", 4, ()) for step in steps),
        states={},
        slots={},
        gradients={},
        optimizer=None,
        regularizers=0,
        regularization=None,
        update_ops=0,
        dropout_rates=(),
        replicas=1,
        evaluations=(),
        participation={task: len(trainer) for task, trainer in values.items()},
    )


def with_floors(floor: Callable[[int], float], steps: int = LONG, trainers: int = 1) -> Tolerance:
    floors = {
        (Quantity(LOSS, str(i)), n): floor(n) for i in range(trainers) for n in range(1, steps + 1) if floor(n) >= 0
    }
    c = dict.fromkeys((FORWARD, UPDATE, TRAJECTORY), 8.0)
    return Tolerance(floors, c, dict.fromkeys(c, (1.0,)), 6, 1.0, 1, True)


def flat(value: float = 1.0, **changes: float) -> Recording:
    """One trainer whose losses are all `value`, but for changes such as s30=1.5."""
    return losses_only({"local:0": [changes.get(f"s{n}", value) for n in range(1, LONG + 1)]})


def judged(theirs: Recording, limits: Tolerance, control: Recording | None = None) -> LevelResult:
    return l5_trajectory.judge(flat(), theirs, control or flat(1.01), {}, limits, "a rate 1% higher")


class TestHorizon:
    def test_a_training_whose_floor_stays_low_is_trusted_to_its_end(self) -> None:
        level = judged(flat(), with_floors(lambda n: 1e-6))
        assert (level.status, level.horizon_step, level.notes) == (Status.EQUIVALENT, LONG, ())

    def test_steps_that_no_replicate_reached_are_a_note(self) -> None:
        level = judged(flat(s30=1.00001), with_floors(lambda n: 1e-6 if n <= 25 else math.inf))
        assert (level.status, level.horizon_step) == (Status.EQUIVALENT, 25)
        assert level.summary.startswith(f"losses of 25 of {LONG} steps agree")
        assert level.notes == (
            "steps 26 to 40: no replicate went so far, so that there is no noise floor; "
            "the losses are up to 1e-05 of themselves apart there (step 30)",
        )

    def test_steps_without_any_entry_are_the_same(self) -> None:
        level = judged(flat(), with_floors(lambda n: 1e-6, steps=25))
        assert (level.status, level.horizon_step) == (Status.EQUIVALENT, 25)

    def test_a_gross_difference_beyond_the_floors_is_never_equal(self) -> None:
        # Where noise did not grow, ten tolerances of 8 floors of 1e-6 are 8e-5.
        limits = with_floors(lambda n: 1e-6 if n <= 25 else math.inf)
        assert judged(flat(s30=1.00007), limits).status is Status.EQUIVALENT
        level = judged(flat(s30=1.0001), limits)
        assert (level.status, level.reason) == (Status.INCONCLUSIVE, Reason.BEYOND_TRUSTED_HORIZON)
        assert "of step 30" in level.summary

    def test_noise_that_grows_is_expected_to_go_on_growing(self) -> None:
        # Ten times as much every ten steps: 1e-6 at step 1, 2.5e-4 at step 25, 8e-4 at step 30.
        limits = with_floors(lambda n: 1e-6 * 10 ** (n / 10) if n <= 25 else math.inf)
        assert judged(flat(s30=1.05), limits).status is Status.EQUIVALENT
        level = judged(flat(s30=1.2), limits)
        assert level.reason is Reason.BEYOND_TRUSTED_HORIZON

    @pytest.mark.parametrize(("share", "reason"), [(0.04, None), (0.1, Reason.BEYOND_TRUSTED_HORIZON)])
    def test_losses_that_are_apart_all_along_are_never_equal(self, share: float, reason: Reason | None) -> None:
        # Noise of ten times as much every ten steps is expected to hide a loss that is doubled at step 100, and goes
        # another way in every batch. A twentieth of the loss is the least that counts.
        steps = range(1, 121)
        ours = [1.0 + 0.01 * math.sin(n) for n in steps]
        theirs = [one * (1 + share * (n >= 80)) for n, one in zip(steps, ours, strict=True)]
        limits = with_floors(lambda n: 1e-6 * 10 ** (n / 10) if n <= 25 else math.inf, steps=120)
        original, migrated = (losses_only({"local:0": losses}) for losses in (ours, theirs))
        control = losses_only({"local:0": [1.01 * one for one in ours]})
        level = l5_trajectory.judge(original, migrated, control, {}, limits, "a rate 1% higher")
        assert level.reason is reason, level.summary
        noisy = [one * (1 + share * (n >= 80) * (-1) ** n) for n, one in zip(steps, ours, strict=True)]
        level = l5_trajectory.judge(original, losses_only({"local:0": noisy}), control, {}, limits, "a rate 1% higher")
        assert level.status is Status.EQUIVALENT, level.summary

    def test_a_control_that_ends_early_ends_the_horizon(self) -> None:
        short = losses_only({"local:0": [1.01] * 20})
        level = judged(flat(), with_floors(lambda n: 1e-6), short)
        assert (level.status, level.horizon_step) == (Status.EQUIVALENT, 20)

    def test_beyond_the_horizon_only_a_difference_makes_it_inconclusive(self) -> None:
        # A floor of 1e-3 or more hides a rate 1 % higher, which moves the loss by 1e-2.
        limits = with_floors(lambda n: 1e-6 if n <= 25 else 2e-3)
        same = judged(flat(s30=1.01), limits)
        assert (same.status, same.horizon_step) == (Status.EQUIVALENT, 25)
        assert same.notes == ("steps 26 to 40: there a rate 1% higher cannot be told from rounding noise",)
        other = judged(flat(s30=1.02), limits)
        assert (other.status, other.reason) == (Status.INCONCLUSIVE, Reason.BEYOND_TRUSTED_HORIZON)

    def test_a_difference_inside_is_different_whatever_comes_later(self) -> None:
        level = judged(flat(s20=1.0001, s30=1.5), with_floors(lambda n: 1e-6 if n <= 25 else math.inf))
        assert level.status is Status.DIFFERENT
        assert [d.step for d in level.differences] == [20]

    def test_a_hole_in_the_floors_ends_the_horizon(self) -> None:
        level = judged(flat(), with_floors(lambda n: math.inf if n == 5 else 1e-6))
        assert level.horizon_step == 4

    @pytest.mark.parametrize(("floor", "status"), [(1e-6, Status.DIFFERENT), (math.inf, Status.EQUIVALENT)])
    def test_weights_at_the_end_count_as_far_as_they_have_a_floor(self, floor: float, status: Status) -> None:
        limits = with_floors(lambda n: 1e-6 if n <= 25 or math.isfinite(floor) else math.inf)
        key = Quantity(STATE, "w"), LONG
        limits = replace(limits, floors={**limits.floors, key: floor})
        ours = replace(flat(), states={LONG: {"w": np.ones(2, F)}})
        theirs = replace(flat(), states={LONG: {"w": np.full(2, 1.1, F)}})
        level = l5_trajectory.judge(ours, theirs, flat(1.01), {}, limits, "")
        assert level.status is status
        if status is Status.EQUIVALENT:
            assert "weights after step 40: beyond the steps that can be judged" in level.notes

    def test_nothing_is_vouched_for_without_a_control(self) -> None:
        level = l5_trajectory.judge(flat(), flat(), None, {}, with_floors(lambda n: 1e-6), "a rate 1% higher")
        assert (level.status, level.reason) == (Status.INCONCLUSIVE, Reason.CONTROL_NOT_DETECTED)
        assert level.summary == "the control could not be run: the migrated program with a rate 1% higher"
        assert level.horizon_step == 0


class TestTurns:
    """L5s: trainers that step one after another, judged as L5 under its own name."""

    TASKS = ("chief:0", "worker:0", "worker:1")

    def recording(self, losses: Mapping[tuple[int, int], float], value: float = 1.0, **states: float) -> Recording:
        """Five steps of each of three trainers; `losses` by (trainer, its step), `states` by global step (g7=1.1)."""
        table = {task: [losses.get((i, n), value) for n in range(1, 6)] for i, task in enumerate(self.TASKS)}
        weights = {step: {"w": np.full(2, states.get(f"g{step}", 1.0), F)} for step in (1, 2, 10)}
        return replace(losses_only(table), states=weights)

    def judge(self, theirs: Recording, control: Recording | None = None) -> LevelResult:
        limits = with_floors(lambda n: 1e-6, steps=5, trainers=3)
        weights = {(Quantity(STATE, "w"), step): 1e-6 for step in (1, 2, 10)}
        limits = replace(limits, floors={**limits.floors, **weights})
        return l5_trajectory.judge(
            self.recording({}),
            theirs,
            control or self.recording({}, 1.01),
            {},
            limits,
            "a rate 1% higher",
            level_id="L5s",
            title="In turns",
            turns=True,
        )

    def test_the_clock(self) -> None:
        when = l5_trajectory.clock(self.recording({}), True)
        assert [when(Quantity(LOSS, str(i)), n) for n in (1, 2) for i in range(3)] == [1, 2, 3, 4, 5, 6]
        assert when(Quantity(STATE, "w"), 10) == 10
        assert l5_trajectory.clock(self.recording({}), False)(Quantity(LOSS, "2"), 2) == 2

    def test_the_same_is_equivalent_to_the_last_global_step(self) -> None:
        level = self.judge(self.recording({}))
        assert (level.id, level.title, level.status) == ("L5s", "In turns", Status.EQUIVALENT)
        assert level.horizon_step == 15
        assert "losses of 15 of 15 steps" in level.summary

    def test_the_first_difference_is_the_first_in_global_steps(self) -> None:
        # The third trainer's 2nd step is global step 6, the chief's 3rd is 7.
        level = self.judge(self.recording({(0, 3): 1.1, (2, 2): 1.1}))
        assert level.status is Status.DIFFERENT
        assert [(d.task, d.step) for d in level.differences] == [("worker:1", 2), ("chief:0", 3)]

    def test_early_weights_are_compared_because_no_l4_saw_this_run(self) -> None:
        level = self.judge(self.recording({}, g2=1.1))
        assert level.status is Status.DIFFERENT
        assert (level.differences[0].tensor, level.differences[0].step) == ("w", 2)

    def test_a_control_that_ends_early_ends_the_horizon_in_global_steps(self) -> None:
        full = self.recording({}, 1.01)
        short = replace(full, steps=tuple(s for s in full.steps if s.number <= 2))
        assert self.judge(self.recording({}), short).horizon_step == 6


def test_the_ladder_passes_with_everything_recorded(
    original: Recording, migrated: Recording, control: Recording, limits: Tolerance
) -> None:
    pairs = name_map.build(original.variables, migrated.variables)
    levels = ladder.numbers(original, migrated, control, {}, pairs, limits)
    assert [level.status for level in levels] == [Status.EQUIVALENT] * 3
    assert all(level.excluded for level in levels[1:])
