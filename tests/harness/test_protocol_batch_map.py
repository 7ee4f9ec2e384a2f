"""Batches in another form: what is found, and that nothing is found where the examples are others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from migrator.harness.protocol import batch_map
from migrator.harness.recording import Array

Batches = list[dict[str, Array]]
RANDOM = np.random.RandomState(0)
X = [RANDOM.normal(size=(6, 3)).astype(np.float32) for _ in range(4)]
C = [RANDOM.randint(0, 4, size=6).astype(np.int32) for _ in range(4)]
C[0][:4] = range(4)
ORIGINAL: Batches = [{"features": x, "labels": c} for x, c in zip(X, C, strict=True)]


def form(make: Callable[[Array, Array], dict[str, Array]]) -> Batches:
    return [make(x, c) for x, c in zip(X, C, strict=True)]


@pytest.mark.parametrize(
    ("theirs", "kinds"),
    [
        (form(lambda x, c: {"features/x": x, "labels": c}), ["same", "same"]),
        (form(lambda x, c: {"features": x, "labels": c.astype(np.int64)}), ["same", "cast"]),
        (form(lambda x, c: {"features": x.astype(np.float64), "labels": c[:, None]}), ["cast", "same"]),
        (form(lambda x, c: {"features": x, "labels": np.eye(4, dtype=np.float32)[c]}), ["same", "one-hot"]),
        (form(lambda x, c: {"features": (x / np.float32(255)), "labels": c}), ["scaled", "same"]),
        (form(lambda x, c: {"features": x * 2 - 1, "labels": c}), ["scaled", "same"]),
    ],
)
def test_the_form_is_found(theirs: Batches, kinds: list[str]) -> None:
    found = batch_map.find(ORIGINAL, theirs)
    assert found is not None and [one.kind for one in found] == kinds
    for ours, wanted in zip(ORIGINAL, theirs, strict=True):
        made = batch_map.convert(found, ours)
        assert all(batch_map.same(made[path], wanted[path], rounded=True) for path in wanted)


def test_classes_come_of_one_hot_rows() -> None:
    ours = form(lambda x, c: {"features": x, "labels": np.eye(4, dtype=np.float32)[c]})
    found = batch_map.find(ours, form(lambda x, c: {"features": x, "labels": c.astype(np.int64)}))
    assert found is not None and [one.kind for one in found] == ["same", "class"]


@pytest.mark.parametrize(
    "theirs",
    [
        form(lambda x, c: {"features": x, "labels": (c + 1) % 4}),
        form(lambda x, c: {"features": x, "labels": np.eye(4, dtype=np.float32)[(c + 1) % 4]}),
        form(lambda x, c: {"features": x[::-1].copy(), "labels": c}),
        form(lambda x, c: {"features": x + np.float32(1e-3) * x**2, "labels": c}),
        form(lambda x, c: {"features": x, "labels": np.eye(3, dtype=np.float32)[np.minimum(c, 2)]}),
        form(lambda x, c: {"features": x, "labels": c, "weights": np.arange(6, dtype=np.float32)}),
    ],
)
def test_other_examples_are_not_taken_for_another_form(theirs: Batches) -> None:
    assert batch_map.find(ORIGINAL, theirs) is None


def test_a_form_that_fits_the_first_batches_only_is_none() -> None:
    theirs = form(lambda x, c: {"features/x": x, "labels": c})
    theirs[3]["labels"] = theirs[3]["labels"] * 0
    assert batch_map.find(ORIGINAL, theirs) is None


def test_in_a_random_order_rows_are_matched_wherever_they_are() -> None:
    rows = RANDOM.permutation(24)
    x, c = np.concatenate(X)[rows], np.concatenate(C)[rows].astype(np.int64)
    theirs = [{"features/x": x[n : n + 6], "labels": c[n : n + 6]} for n in range(0, 24, 6)]
    assert batch_map.find(ORIGINAL, theirs) is None
    found = batch_map.find(ORIGINAL, theirs, in_order=False)
    assert found is not None and [one.kind for one in found] == ["same", "cast"]


def test_what_is_said() -> None:
    theirs = form(lambda x, c: {"features/x": x})
    found = batch_map.find(ORIGINAL, theirs)
    assert found is not None
    assert batch_map.told(found, ORIGINAL[0]) == (
        "features/x is features as it is",
        "the migrated program does not read labels",
    )
