"""The mutators: each makes its one mistake, changes the text, and leaves Python that runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.harness.mutants import MUTANTS, Mutant, UnchangedError, applicable, apply

GOOD = (Path(__file__).parent / "programs" / "regression_migrated.py").read_text()
BY_ID = {mutant.id: mutant for mutant in MUTANTS}


def test_every_mutant_applies_to_the_test_program() -> None:
    assert [mutant.id for mutant, _ in applicable(GOOD)] == [mutant.id for mutant in MUTANTS]
    assert len({text for _, text in applicable(GOOD)}) == len(MUTANTS)


@pytest.mark.parametrize(
    ("mutant", "expected"),
    [
        ("learning-rate", "learning_rate=0.0505,"),
        ("epsilon", "epsilon=1e-07)"),
        ("sum-for-mean", 'MeanSquaredError(reduction="sum")'),
        ("batch-split", ".batch((BATCH_SIZE) // 2)"),
        ("dropped-regularizer", "tf.keras.layers.Dense(1)(hidden)"),
        ("dropped-last-batch", ".batch(BATCH_SIZE).apply(lambda d: d.take(d.cardinality() - 1)).repeat()"),
        ("missing-accumulator", "initial_accumulator_value=1e-06,"),
    ],
)
def test_what_is_changed(mutant: str, expected: str) -> None:
    changed = apply(BY_ID[mutant], GOOD)
    assert changed is not None
    assert expected in changed


def test_the_last_batch_of_data_that_is_repeated_first_is_its_last_examples() -> None:
    changed = apply(BY_ID["dropped-last-batch"], "def f():\n    return make().repeat().batch(16)\n")
    assert changed == "def f():\n    return make().apply(lambda d: d.take(d.cardinality() - (16))).repeat().batch(16)\n"


def test_what_nobody_could_see_is_no_mutant() -> None:
    single = "data.batch(1)\nloss = tf.keras.losses.MeanSquaredError()\n"
    assert apply(BY_ID["batch-split"], single) is None
    assert apply(BY_ID["sum-for-mean"], single) is None
    assert apply(BY_ID["dropped-regularizer"], single) is None


def test_a_mutant_that_changes_nothing_is_an_error() -> None:
    with pytest.raises(UnchangedError):
        apply(Mutant("idle", "does nothing", "L0", lambda text: text), GOOD)
    already = GOOD.replace("epsilon=0.0", "epsilon=1e-07")
    with pytest.raises(UnchangedError):
        apply(BY_ID["epsilon"], already)
