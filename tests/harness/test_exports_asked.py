"""What exported models are asked: examples of the training, and the same with numbers half as great. No TensorFlow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy_programs import Program
from numpy_programs import run as trained

from migrator.harness import exports
from migrator.harness.cluster import RunOutcome
from migrator.harness.recording import Array, Batch
from migrator.harness.runs import Run


def asked(monkeypatch: pytest.MonkeyPatch, batches: list[dict[str, Array]], **changes: Any) -> dict[str, Array]:
    described = tuple(Batch("local:0", n, str(n), 3, (), **changes) for n in range(1, len(batches) + 1))
    recording = replace(trained(Program(steps=2)), batches=described)
    monkeypatch.setattr(exports, "read_batch", lambda folder, batch: batches[batch.step - 1])
    return exports._features(Run("original", "original", RunOutcome(Path(), (), None, 1.0), recording))


def test_a_request_has_all_examples_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    words = np.array([b"a", b"bcd", b"e"], object)
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    batches = [{"features/x": x + n, "features/w": words, "features/n": np.arange(3), "labels": x} for n in (0, 10)]
    found = asked(monkeypatch, batches)
    assert set(found) == {"x", "w", "n"}
    whole = np.concatenate([x, x + 10])
    np.testing.assert_array_equal(found["x"], np.concatenate([whole, whole / 2]))
    assert found["x"].dtype == np.float32 and found["w"].tolist() == [b"a", b"bcd", b"e"] * 4
    np.testing.assert_array_equal(found["n"], np.tile(np.arange(3), 4))


def test_no_more_than_are_asked_and_none_of_another_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [{"features": np.zeros((3, 1 + (n == 1)), np.float32)} for n in range(60)]
    found = asked(monkeypatch, batches)
    assert found["features"].shape == (2 * 128, 1)
    images = [{"features": np.zeros((3, 200, 200, 3), np.float32)} for _ in range(10)]
    assert len(asked(monkeypatch, images)["features"]) == 2 * 8
    assert asked(monkeypatch, batches, kept=False) == {}
