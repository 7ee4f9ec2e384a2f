"""Likely causes: each pattern is named with its numbers, and only where it explains the difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrator.harness.protocol import causes, judging
from migrator.harness.protocol.compare import Kind, compare
from migrator.harness.protocol.judging import Finding
from migrator.harness.protocol.measurements import (
    ACTIVATION,
    GRADIENT,
    LOSS,
    REGULARIZATION,
    SLOT,
    STATE,
    Quantity,
)
from migrator.harness.protocol.results import Divergence
from migrator.harness.recording import Batch, Optimizer, Recording, SourceLine, Step, Variable

F = np.float32
RANDOM = np.random.default_rng(5)
KERNEL = RANDOM.normal(size=(8, 4)).astype(F)
GRADIENTS = RANDOM.normal(size=(8, 4)).astype(F)
RENAME = {"k:0": "k", "b:0": "b", "m:0": "m"}


def batch(step: int, size: int = 20, digest: str = "", outputs: int = 1) -> Batch:
    shape = (size, outputs) if outputs > 1 else (size,)
    return Batch("local:0", step, digest or f"d{step}", size, (("labels", "float32", shape, ""),))


def recording(program: str = "original", **changes: object) -> Recording:
    """A recording of two steps with a kernel "k", a bias "b" and a moving average "m"."""
    mark = "" if program == "original" else ":0"
    values = {
        "program": program,
        "tensorflow": "2.15.1",
        "keras": None,
        "variables": (
            Variable("k" + mark, (8, 4), "float32", True, 0, 1),
            Variable("b" + mark, (4,), "float32", True, 1, 1),
            Variable("m" + mark, (4,), "float32", False, 2, 1),
        ),
        "initial": {"k" + mark: KERNEL, "b" + mark: np.zeros(4, F), "m" + mark: np.ones(4, F)},
        "steps": tuple(Step(n, "local:0", 1.0, 0.1, f"d{n}") for n in (1, 2)),
        "batches": (batch(1), batch(2)),
        "states": {},
        "slots": {},
        "gradients": {},
        "optimizer": Optimizer("SGD", {"learning_rate": 0.1}),
        "regularizers": 0,
        "regularization": None,
        "update_ops": 0,
        "dropout_rates": (),
        "replicas": 1,
        "evaluations": (),
        "participation": {"local:0": 2},
        **changes,
    }
    return Recording(**values)  # type: ignore[arg-type]


def found(quantity: Quantity, step: int, ours: Recording, theirs: Recording) -> str:
    """The first cause."""
    return causes.explain(causes.evidence(ours, theirs, RENAME), quantity, step)[0]


def losses(*values: float, program: str = "original", **changes: object) -> Recording:
    steps = tuple(Step(n, "local:0", float(F(value)), 0.1, f"d{n}") for n, value in enumerate(values, start=1))
    return replace(recording(program, **changes), steps=steps)


class TestLoss:
    def cause(self, ours: float, theirs: float, **changes: object) -> str:
        return found(Quantity(LOSS, "0"), 1, losses(ours, **changes), losses(theirs, program="migrated"))

    def test_a_sum_for_a_mean_is_the_batch_size(self) -> None:
        text = self.cause(0.75, 15.0)
        assert text == "the loss is 20 times the original's, and the batch has 20 examples: summed instead of averaged"

    def test_a_mean_for_a_sum(self) -> None:
        assert self.cause(15.0, 0.75).startswith("the loss is 1/20 of the original's, and the batch has 20 examples")

    def test_a_sum_over_all_outputs(self) -> None:
        text = self.cause(0.5, 30.0, batches=(batch(1, outputs=3),))
        assert "60 numbers in its labels" in text

    def test_a_factor_that_counts_nothing_is_no_cause(self) -> None:
        given_ = causes.evidence(losses(0.75), losses(0.75 * 17, program="migrated"), RENAME)
        assert not any("17" in text for text in causes.explain(given_, Quantity(LOSS, "0"), 1))

    @pytest.mark.parametrize(
        ("total", "meaning"), [(0.75, "leaves it out"), (1.25, "once more"), (0.875, "L2(s/2)"), (1.125, "half of it")]
    )
    def test_a_difference_of_the_regularisation(self, total: float, meaning: str) -> None:
        text = self.cause(1.0, total, regularization=0.25)
        assert "regularisation of 0.25" in text and meaning in text

    def test_a_regularisation_that_only_the_migrated_program_has(self) -> None:
        theirs = losses(1.25, program="migrated", regularization=0.25)
        assert "migrated program's regularisation of 0.25" in found(Quantity(LOSS, "0"), 1, losses(1.0), theirs)

    def test_the_sum_of_the_data_part_only(self) -> None:
        ours, theirs = losses(1.0, regularization=0.5), losses(10.5, program="migrated", regularization=0.5)
        assert found(Quantity(LOSS, "0"), 1, ours, theirs).startswith(
            "the loss without its regularisation is 20 times the original's"
        )

    def test_replicas(self) -> None:
        assert "3 replicas" in self.cause(1.0, 3.0, replicas=3)

    def test_a_partial_batch_divided_by_the_full_size(self) -> None:
        partial = (batch(1), batch(2, size=5))
        ours, theirs = losses(1.0, 0.8, batches=partial), losses(1.0, 0.2, program="migrated", batches=partial)
        text = found(Quantity(LOSS, "0"), 2, ours, theirs)
        assert "batch of 5 examples where a full one has 20: divided by the full size" in text

    def test_a_difference_after_a_partial_batch(self) -> None:
        partial = (batch(1), batch(2, size=5), batch(3))
        ours = losses(1.0, 0.8, 0.7, batches=partial)
        theirs = losses(1.0, 0.8, 0.71, program="migrated", batches=partial)
        assert found(Quantity(LOSS, "0"), 3, ours, theirs).startswith("batch 2 has 5 examples and a full one 20")

    def test_a_difference_where_the_rate_changes(self) -> None:
        rates = (0.1, 0.1, 0.01, 0.01)
        ours = replace(
            losses(1.0, 0.9, 0.8, 0.7),
            steps=tuple(Step(n, "local:0", 1.0, rate, "") for n, rate in enumerate(rates, start=1)),
        )
        theirs = losses(1.0, 0.9, 0.8, 0.65, program="migrated")
        assert found(Quantity(LOSS, "0"), 4, ours, theirs) == (
            "the learning rate goes from 0.1 to 0.01 at step 3: the schedule"
        )

    @pytest.mark.parametrize("ahead", [0, 1])
    def test_a_count_of_steps_that_is_ahead(self, ahead: int) -> None:
        ours = losses(1.0, 0.9, 0.8, 0.7)
        theirs = losses(1.0, 0.9, 0.8, 0.75, program="migrated")
        counts = (0, 1, 2 + ahead, 3 + ahead)
        steps = tuple(replace(step, counted=n) for step, n in zip(theirs.steps, counts, strict=True))
        text = found(Quantity(LOSS, "0"), 4, ours, replace(theirs, steps=steps))
        told = "before step 3 the migrated program's optimizer has counted 3 steps"
        assert text.startswith(told) if ahead else told not in text

    def test_a_difference_at_the_beginning_of_an_epoch(self) -> None:
        batches = tuple(batch(n, digest=f"e{(n - 1) % 3}") for n in range(1, 8))
        ours = losses(*[1.0] * 7, batches=batches)
        theirs = losses(*[1.0] * 6, 0.9, program="migrated")
        assert found(Quantity(LOSS, "0"), 7, ours, theirs) == "step 7 follows the beginning of epoch 3 (of 3 batches)"


@pytest.mark.parametrize(
    ("ours", "theirs", "text"),
    [(0.1, 0.2, "2 times"), (0.2, 0.1, "0.5 times"), (0.1, 0.0, "migrated one's none"), (0.0, 0.1, "original's none")],
)
def test_the_regularisation(ours: float, theirs: float, text: str) -> None:
    a, b = recording(regularization=ours), recording("migrated", regularization=theirs)
    assert text in found(Quantity(REGULARIZATION, "total"), 1, a, b)


def gradients(change: Callable[[np.ndarray], np.ndarray], **changes: object) -> tuple[Recording, Recording]:
    ours = recording(gradients={1: {"k": GRADIENTS, "b": GRADIENTS[0]}}, **changes)
    theirs = {"k:0": change(GRADIENTS).astype(F), "b:0": GRADIENTS[0]}
    return ours, recording("migrated", gradients={1: theirs})


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda g: g * 20, "the gradient is 20 times the original's, and the batch has 20 examples"),
        (lambda g: g * 1.5, "it is 1.5 times the original's in every element"),
        (lambda g: g * 0, "zero everywhere"),
        (
            lambda g: g + 0.02 * KERNEL,
            "0.02 times the weight itself: an L2 regulariser of 0.01 that the original lacks",
        ),
        (lambda g: g - 0.02 * KERNEL, "L2 regulariser of 0.01 that the migrated program lacks"),
        (lambda g: g + 0.003 * np.sign(KERNEL), "0.003 times the sign of the weight: an L1 regulariser"),
        (lambda g: np.clip(g, -0.5, 0.5), "cut at 0.5: clipped by value"),
        (lambda g: g * (0.5 / np.linalg.norm(g)), "its norm is 0.5: clipped"),
        (lambda g: g[::-1], "the same rows in another order (8 of 8 stand elsewhere)"),
        (lambda g: g[:, [0, 2, 1, 3]], "at other places"),
        (lambda g: g.ravel()[RANDOM.permutation(32)].reshape(8, 4), "the same 32 values at other places"),
    ],
)
def test_gradients(change: Callable[[np.ndarray], np.ndarray], text: str) -> None:
    assert text in found(Quantity(GRADIENT, "k"), 1, *gradients(change))


def test_a_transposed_square_and_the_gates_of_an_lstm() -> None:
    square, gates = RANDOM.normal(size=(6, 6)).astype(F), RANDOM.normal(size=(3, 8)).astype(F)
    for value, other, text in (
        (square, square.T, "transposed"),
        (gates, np.concatenate([gates[:, :2], gates[:, 4:6], gates[:, 2:4], gates[:, 6:]], axis=1), "1, 3, 2, 4"),
    ):
        ours = recording(gradients={1: {"k": value}})
        theirs = recording("migrated", gradients={1: {"k:0": np.ascontiguousarray(other)}})
        assert text in found(Quantity(GRADIENT, "k"), 1, ours, theirs)


def test_all_gradients_clipped_by_their_global_norm() -> None:
    both = {"k": GRADIENTS, "b": GRADIENTS[0]}
    norm = float(np.sqrt(sum(np.sum(g.astype(np.float64) ** 2) for g in both.values())))
    clipped = {name + ":0": (g * (2.5 / norm)).astype(F) for name, g in both.items()}
    ours, theirs = recording(gradients={1: both}), recording("migrated", gradients={1: clipped})
    text = found(Quantity(GRADIENT, "k"), 1, ours, theirs)
    assert text.startswith("all 2 gradients are") and "global norm of the migrated program's is 2.5" in text


def test_two_variables_that_are_paired_wrongly() -> None:
    other = RANDOM.normal(size=(8, 4)).astype(F)
    ours = recording(gradients={1: {"k": GRADIENTS, "b": other}})
    theirs = recording("migrated", gradients={1: {"k:0": other, "b:0": GRADIENTS}})
    assert "equals the original's gradient of b: the two are paired wrongly" in found(
        Quantity(GRADIENT, "k"), 1, ours, theirs
    )


def states(
    ours: Mapping[str, np.ndarray], theirs: Mapping[str, np.ndarray], **changes: object
) -> tuple[Recording, Recording]:
    """Weights after step 1."""
    fill = {"k": KERNEL, "b": np.zeros(4, F), "m": np.ones(4, F)}
    left = {**fill, **{name: value.astype(F) for name, value in ours.items()}}
    right = {name + ":0": value.astype(F) for name, value in {**left, **theirs}.items()}
    return recording(states={1: left}, **changes), recording("migrated", states={1: right})


MOVE = (0.1 * RANDOM.normal(size=(8, 4))).astype(F)
STEP = 0.1 * RANDOM.normal(size=4)


class TestState:
    def cause(self, name: str, pair: tuple[Recording, Recording]) -> str:
        return found(Quantity(STATE, name), 1, *pair)

    def test_an_update_that_is_a_hundredth_longer(self) -> None:
        text = self.cause("k", states({"k": KERNEL + MOVE}, {"k": KERNEL + 1.01 * MOVE}))
        assert text.startswith("the update is 1.01 times the original's in every element")
        assert "the original's learning rate is 0.1, 0.101 would do this" in text

    def test_all_updates_that_are_a_hundredth_longer(self) -> None:
        pair = states({"k": KERNEL + MOVE, "b": STEP}, {"k": KERNEL + 1.01 * MOVE, "b": 1.01 * STEP})
        assert self.cause("k", pair).startswith("the updates of 2 variables are 1.01 times the original's")

    def test_an_update_that_follows_its_gradient(self) -> None:
        ours, theirs = states({"k": KERNEL + MOVE}, {"k": KERNEL + 2 * MOVE})
        ours = replace(ours, gradients={1: {"k": GRADIENTS}})
        theirs = replace(theirs, gradients={1: {"k:0": 2 * GRADIENTS}})
        assert self.cause("k", (ours, theirs)) == "the update is 2 times the original's because its gradient is"

    def test_a_frozen_variable(self) -> None:
        assert "did not move" in self.cause("k", states({"k": KERNEL + MOVE}, {"k": KERNEL}))

    def test_weight_decay(self) -> None:
        text = self.cause("k", states({"k": KERNEL + MOVE}, {"k": KERNEL + MOVE - 0.001 * KERNEL}))
        assert text == "the update differs by -0.001 times the weight itself: weight decay"

    def test_rows_that_the_original_leaves_alone(self) -> None:
        lazy, dense = MOVE.copy(), MOVE.copy()
        lazy[3:] = 0
        text = self.cause("k", states({"k": KERNEL + lazy}, {"k": KERNEL + dense}))
        assert text.startswith("the 5 rows of k that differ (of 8) are rows that the original left alone")
        assert "dense update where the original's is lazy" in text

    def test_rows_that_are_set_to_zero(self) -> None:
        lazy, zeroed = MOVE.copy(), KERNEL + MOVE
        lazy[3:], zeroed[3:] = 0, 0
        assert "set to zero" in self.cause("k", states({"k": KERNEL + lazy}, {"k": zeroed}))

    def test_rows_that_the_migrated_program_leaves_alone(self) -> None:
        lazy = MOVE.copy()
        lazy[3:] = 0
        text = self.cause("k", states({"k": KERNEL + MOVE}, {"k": KERNEL + lazy}))
        assert "migrated program left alone" in text and "the 5 rows" in text

    def test_only_row_zero(self) -> None:
        other = MOVE.copy()
        other[0] *= 3
        assert "only row 0 of k differs" in self.cause("k", states({"k": KERNEL + MOVE}, {"k": KERNEL + other}))

    @pytest.mark.parametrize(("epsilon", "word"), [(1e-3, "0.001 larger"), (-5e-4, "0.0005 smaller")])
    def test_an_epsilon_of_adagrad(self, epsilon: float, word: str) -> None:
        accumulator = 0.1 + GRADIENTS.astype(np.float64) ** 2
        move = [-0.1 * GRADIENTS / (np.sqrt(accumulator) + e) for e in (1e-3, 1e-3 + epsilon)]
        ours, theirs = states({"k": KERNEL + move[0]}, {"k": KERNEL + move[1]})
        ours = replace(
            ours,
            gradients={1: {"k": GRADIENTS}},
            slots={1: {("k", "accumulator"): accumulator.astype(F)}},
            optimizer=Optimizer("Adagrad", {"epsilon": 1e-3}),
        )
        assert f"epsilon {word} (0.001 in the original)" in self.cause("k", (ours, theirs))

    def test_an_epsilon_of_adam(self) -> None:
        gradient = (1e-5 * GRADIENTS).astype(np.float64)
        moment, square = 0.1 * gradient, 0.001 * gradient**2
        rate = 0.1 * np.sqrt(1 - 0.999) / (1 - 0.9)
        move = [-rate * moment / (np.sqrt(square) + e) for e in (1e-8, 1e-7)]
        ours, theirs = states({"k": KERNEL + move[0]}, {"k": KERNEL + move[1]})
        ours = replace(
            ours,
            slots={1: {("k", "first_moment"): moment.astype(F), ("k", "second_moment"): square.astype(F)}},
            optimizer=Optimizer("Adam", {"epsilon": 1e-8, "beta_1": 0.9, "beta_2": 0.999}),
        )
        assert "epsilon 9e-08 larger (1e-08 in the original)" in self.cause("k", (ours, theirs))


class TestMovingAverages:
    def cause(self, ours: np.ndarray, theirs: np.ndarray) -> str:
        return found(Quantity(STATE, "m"), 1, *states({"m": ours}, {"m": theirs}))

    def test_a_missing_update(self) -> None:
        text = self.cause(1 + STEP, np.ones(4))
        assert "never moved in the migrated program: its update is missing; the 2 trainable variables agree" in text

    def test_another_momentum(self) -> None:
        text = self.cause(1 + 0.01 * (STEP - 1), 1 + 0.1 * (STEP - 1))
        assert "moved 10 times as far in every element: another momentum" in text

    def test_the_variance_of_a_fused_batch_normalisation(self) -> None:
        variance = 1.0 + STEP
        moved = [0.1 * (v - 1.0) for v in (variance * 16 / 15, variance)]
        text = self.cause(1 + moved[0], 1 + moved[1])
        assert "0.9375 times the original's, (n-1)/n for n = 16" in text


class TestSlots:
    def cause(
        self,
        slot: str,
        ours: np.ndarray,
        theirs: np.ndarray,
        step: int = 1,
        before: np.ndarray | None = None,
        **settings_: float,
    ) -> str:
        tables: list[dict[int, dict[tuple[str, str], np.ndarray]]] = [
            {step: {("k", slot): ours.astype(F)}},
            {step: {("k:0", slot): theirs.astype(F)}},
        ]
        if before is not None:
            tables[0][step - 1] = {("k", slot): before.astype(F)}
            tables[1][step - 1] = {("k:0", slot): before.astype(F)}
        a = recording(slots=tables[0], optimizer=Optimizer("X", dict(settings_)))
        return found(Quantity(SLOT, "k", slot), step, a, recording("migrated", slots=tables[1]))

    def test_another_start_of_the_accumulator(self) -> None:
        text = self.cause("accumulator", 0.1 + MOVE**2, 0.11 + MOVE**2, initial_accumulator_value=0.1)
        assert text == "it differs by 0.01 in every element: it started 0.01 higher (0.1 in the original)"

    def test_the_start_of_rmsprop(self) -> None:
        text = self.cause("second_moment", 0.9 + 0.1 * MOVE**2, 0.1 * MOVE**2, rho=0.9)
        assert "it started 1 lower (TF1's RMSProp starts it at 1, Keras' at 0)" in text

    def test_another_beta(self) -> None:
        text = self.cause("second_moment", 0.001 * MOVE**2, 0.01 * MOVE**2, beta_2=0.999)
        assert text == "it is 10 times the original's: as with beta_2 = 0.99 for 0.999"

    def test_another_momentum(self) -> None:
        text = self.cause("momentum", 0.9 * KERNEL + MOVE, 0.85 * KERNEL + MOVE, 2, KERNEL, momentum=0.9)
        assert text == "it differs by -0.05 times its value of step 1: as with a momentum of 0.85 for 0.9"

    def test_rows_of_a_lazy_slot(self) -> None:
        dense = 0.9 * KERNEL + MOVE
        lazy = dense.copy()
        lazy[:2] = KERNEL[:2]
        text = self.cause("momentum", lazy, dense, 2, KERNEL, momentum=0.9)
        assert text.startswith("the 2 rows of momentum of k that differ")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda x: np.maximum(x, 0), "program's is relu and the original's no activation of the same numbers"),
        (np.tanh, "program's is tanh and the original's no activation"),
        (lambda x: 1 / (1 + np.exp(-x)), "program's is sigmoid and the original's no activation"),
        (lambda x: np.exp(x) / np.exp(x).sum(axis=1, keepdims=True), "program's is softmax and the original's no"),
        (lambda x: x + np.array([0.5, -1, 2, 0.1]), "every row is off by the same 4 numbers: a bias"),
        (lambda x: x * 3, "3 times the original's"),
    ],
)
def test_layer_outputs(change: Callable[[np.ndarray], np.ndarray], text: str) -> None:
    output = RANDOM.normal(size=(20, 4)).astype(F)
    ours, theirs = output, change(output).astype(F)
    quantity = Quantity(ACTIVATION, "k")
    assert text in found(quantity, 1, recording(activations={"k": ours}), recording("m", activations={"k:0": theirs}))


def test_two_activations_of_the_same_numbers() -> None:
    before = RANDOM.normal(size=(20, 4))
    relu, tanh = np.maximum(before, 0).astype(F), np.tanh(before).astype(F)
    sigmoid = (1 / (1 + np.exp(-before))).astype(F)
    for ours, theirs, text in (
        (relu, tanh, "the original's is relu and the migrated program's tanh of the same numbers"),
        (tanh, relu, "the migrated program's is relu and the original's tanh of the same numbers"),
        (sigmoid, tanh, "the migrated program's is tanh and the original's sigmoid of the same numbers"),
        (relu, before.astype(F), "the original's is relu and the migrated program's no activation"),
    ):
        sides = recording(activations={"k": ours}), recording("migrated", activations={"k:0": theirs})
        assert text in found(Quantity(ACTIVATION, "k"), 1, *sides)


def finding(quantity: Quantity, step: int, ours: np.ndarray | None, theirs: np.ndarray | None) -> Finding:
    return Finding(quantity, step, compare(ours, theirs), 1e-6, 100.0, 8.0)


def test_a_divergence_of_a_report_is_looked_up_by_its_words() -> None:
    ours, theirs = gradients(lambda g: 20 * g)
    divergence = Divergence("gradient of k", 1.0, 20.0, step=1)
    direct = finding(Quantity(GRADIENT, "k"), 1, GRADIENTS, 20 * GRADIENTS)
    assert causes.ranked(ours, theirs, divergence, RENAME) == causes.ranked(ours, theirs, direct, RENAME)
    assert causes.ranked(ours, theirs, Divergence("batch size", "1", "2"), RENAME) == ()


def test_sources_come_along_and_causes_are_given_for_the_first_findings() -> None:
    lines = {name: SourceLine("a.py", n) for n, name in enumerate(["variable:k", "optimizer", "loss"], start=1)}
    migrated = {"variable:k:0": SourceLine("b.py", 7), "loss": SourceLine("b.py", 9)}
    ours, theirs = gradients(lambda g: 20 * g, sources=lines)
    given_ = causes.evidence(ours, replace(theirs, sources=migrated), RENAME)
    expected = {
        Quantity(GRADIENT, "k"): (lines["variable:k"], migrated["variable:k:0"]),
        Quantity(ACTIVATION, "k#2"): (lines["variable:k"], migrated["variable:k:0"]),
        Quantity(GRADIENT, "b"): (lines["loss"], migrated["loss"]),
        Quantity(SLOT, "b", "momentum"): (lines["optimizer"], None),
        Quantity(LOSS, "0"): (lines["loss"], migrated["loss"]),
    }
    for quantity, pair in expected.items():
        assert causes.sources(given_, quantity) == pair
    many = [finding(Quantity(GRADIENT, "k"), 1, GRADIENTS, 20 * GRADIENTS)] * (causes.EXPLAINED_FINDINGS + 1)
    divergences = causes.divergences(given_, many)
    assert [bool(d.causes) for d in divergences] == [True] * causes.EXPLAINED_FINDINGS + [False]
    assert divergences[-1].original_source == lines["variable:k"]


def test_what_cannot_be_compared_has_only_the_possibilities_of_its_kind() -> None:
    ours = recording(gradients={1: {"k": GRADIENTS}})
    for other in (GRADIENTS[:4], GRADIENTS * np.float32("nan"), GRADIENTS[:0]):
        theirs = recording("migrated", gradients={1: {"k:0": other}})
        texts = causes.explain(causes.evidence(ours, theirs, RENAME), Quantity(GRADIENT, "k"), 1)
        assert texts == ("another loss or reduction", "a regulariser or a clipping that only one program has")
    missing = finding(Quantity(GRADIENT, "k"), 1, GRADIENTS, None)
    assert missing.outcome.kind is Kind.MISSING
    assert judging.divergence(missing).causes == ("missing in migrated",)


values = st.floats(-1e6, 1e6, width=32)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_two_recordings_of_finite_numbers_can_be_explained(data: st.DataObject) -> None:
    def tensor(shape: tuple[int, ...]) -> np.ndarray:
        kind = data.draw(st.sampled_from(["zero", "constant", "any"]))
        if kind == "any":
            size = int(np.prod(shape))
            return np.array(data.draw(st.lists(values, min_size=size, max_size=size)), F).reshape(shape)
        return np.full(shape, 0.0 if kind == "zero" else data.draw(values), F)

    shape = data.draw(st.sampled_from([(4, 4), (2, 4), (3,), (1, 1), ()]))
    sides = []
    for program, mark in (("original", ""), ("migrated", ":0")):
        variables = (
            Variable("k" + mark, shape, "float32", True, 0, 1),
            Variable("m" + mark, shape, "float32", False, 1, 1),
        )
        names = ("k" + mark, "m" + mark)
        sides.append(
            recording(
                program,
                variables=variables,
                initial={name: tensor(shape) for name in names},
                gradients={n: {names[0]: tensor(shape)} for n in (1, 2)},
                states={n: {name: tensor(shape) for name in names} for n in (1, 2)},
                slots={n: {(names[0], s): tensor(shape) for s in ("momentum", "accumulator")} for n in (1, 2)},
                activations={names[0]: tensor(shape)},
                regularization=float(tensor(())),
                optimizer=Optimizer("X", {"momentum": 0.9, "epsilon": 0.0, "learning_rate": 0.1}),
            )
        )
    found_ = causes.evidence(sides[0], sides[1], RENAME)
    for quantity, step in found_.ours:
        texts = causes.explain(found_, quantity, step)
        assert texts and all(text and "nan" not in text for text in texts)
