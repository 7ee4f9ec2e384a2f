"""Which optimizers of Keras 2 are written: those that update a variable by one operation, where they run."""

from __future__ import annotations

import pytest

from tests.rules.programs import program, run


@pytest.mark.parametrize(
    ("strategy", "fused"),
    [("one-device", True), ("mirrored", True), ("central-storage", False), ("parameter-server", True)],
)
def test_optimizers_of_a_strategy(strategy: str, fused: bool) -> None:
    text = run(program(), strategy=strategy)[0]
    assert "tf.keras.optimizers." in text
    assert ("tf.keras.optimizers.legacy." in text) == fused
