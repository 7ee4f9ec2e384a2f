"""Batches in another form: what is found, and that nothing is found where the examples are others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from migrator.harness import terms
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
    ways = {one.target: one for one in found}
    for ours, wanted in zip(ORIGINAL, theirs, strict=True):
        made = batch_map.convert(found, ours)
        assert all(batch_map.same(made[path], wanted[path], ways[path]) for path in wanted)


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


WIDE = [np.exp(4 * x).astype(np.float32) for x in X]
WIDE[0][0] = 1e7
TIMES = [1.6e9 + 1000.0 * x.astype(np.float64) for x in X]


@pytest.mark.parametrize(
    ("ours", "change", "kind"),
    [
        (WIDE, lambda x: x * np.float32(1 / 3) * 3, "rounded"),
        (WIDE, lambda x: x + np.float32(1), "scaled"),
        (WIDE, lambda x: (x - np.float32(500)) / np.float32(7), "scaled"),
        (WIDE, np.rint, None),
        (WIDE, lambda x: np.rint(x) / np.float32(255), None),
        (TIMES, lambda x: x * (1 / 3) * 3, "rounded"),
        (TIMES, lambda x: x.astype(np.float32), "cast"),
        (TIMES, lambda x: (x - 1.6e9) / 1800, "scaled"),
        (TIMES, lambda x: x.astype(np.float32).astype(np.float64), None),
        (TIMES, lambda x: (x.astype(np.float32).astype(np.float64) - 1.6e9) / 1800, None),
    ],
)
def test_rounding_is_in_proportion_to_the_number(
    ours: list[Array], change: Callable[[Array], Array], kind: str | None
) -> None:
    """Not to the greatest of all, and not to float32's digits where the original has more."""
    left = [{"features": x} for x in ours]
    found = batch_map.find(left, [{"features": change(x)} for x in ours])
    assert (None if found is None else found[0].kind) == kind


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


def test_the_component_that_comes_of_nothing_is_known() -> None:
    theirs = form(lambda x, c: {"x": x, "labels": (c + 1) % 4})
    found, lacking = batch_map.attempt(ORIGINAL, theirs)
    assert [one.target for one in found] == ["x"] and lacking == ("labels",)


def test_weights_that_each_batch_divides_by_its_own_are_those_of_the_original() -> None:
    weights = [RANDOM.uniform(0.5, 2.0, size=6).astype(np.float32) for _ in X]
    ours = [{**one, "features/w": w} for one, w in zip(ORIGINAL, weights, strict=True)]
    theirs = [{**one, "weights": w / w.sum()} for one, w in zip(ORIGINAL, weights, strict=True)]
    found = batch_map.find(ours, theirs)
    assert found is not None and found[-1].kind == "shares" and not found[-1].known
    np.testing.assert_array_equal(batch_map.convert(found, ours[2])["weights"], theirs[2]["weights"])
    assert batch_map.told(found, ours[0]) == (
        "weights is features/w times a number of each batch: what comes of it decides",
    )
    with pytest.raises(ValueError, match="in other batches"):
        batch_map.convert(found, {**ours[0], "features/w": weights[0] * 2})
    # One of them is another weight.
    theirs[1]["weights"][3] *= 1.01
    assert batch_map.find(ours, theirs) is None


def test_what_is_said() -> None:
    theirs = form(lambda x, c: {"features/x": x})
    found = batch_map.find(ORIGINAL, theirs)
    assert found is not None
    assert batch_map.told(found, ORIGINAL[0]) == (
        "features/x is features as it is",
        "the migrated program does not read labels",
    )


WEIGHTS = np.float32([1.0, 3.0, 0.5, 2.0])


class TestWhatTheMigratedProgramComputes:
    """Components that come of the data in a way that is not known."""

    def test_standardized_columns(self) -> None:
        mean, scale = np.float32([0.1, 0.2, 0.3]), np.float32([1, 2, 3])
        found = batch_map.find(ORIGINAL, form(lambda x, c: {"features": (x - mean) / scale, "labels": c}))
        assert found is not None and [one.kind for one in found] == ["scaled", "same"]
        np.testing.assert_allclose(found[0].of({"features": X[0] * 30}), (X[0] * 30 - mean) / scale, rtol=1e-5)
        assert "each of its columns" in str(found[0])

    def test_words_of_a_vocabulary_and_buckets(self) -> None:
        words = np.array([b"a", b"b", b"c", b"d"], object)
        ours = form(lambda x, c: {"features/x": x, "features/w": words[c], "labels": c.astype(np.float32)})
        theirs = form(
            lambda x, c: {
                "features/x": np.digitize(x, [0.0]),
                "features/w": (c + 7) % 5,
                "labels": c.astype(np.float32),
            }
        )
        found = batch_map.find(ours, theirs)
        assert found is not None
        assert {one.target: one.known for one in found} == {"features/x": False, "features/w": False, "labels": True}
        for own, wanted in zip(ours, theirs, strict=True):
            made = batch_map.convert(found, own)
            assert all(batch_map.same(made[path], wanted[path]) for path in wanted)
        assert batch_map.told(found, ours[0])[-1].endswith("for each example: what comes of it decides")
        with pytest.raises(ValueError, match="other examples"):
            batch_map.convert(found, {**ours[0], "features/x": ours[0]["features/x"] * 30})

    def test_weights_of_classes_in_a_random_order(self) -> None:
        theirs = form(lambda x, c: {"features": x, "labels": c, "weights": WEIGHTS[c]})
        shuffled = [{path: value[::-1].copy() for path, value in batch.items()} for batch in reversed(theirs)]
        found = batch_map.find(ORIGINAL, shuffled, in_order=False)
        assert found is not None
        np.testing.assert_array_equal(batch_map.convert(found, ORIGINAL[2])["weights"], WEIGHTS[C[2]])

    def test_in_a_random_order_a_value_for_each_example_shows_no_rule(self) -> None:
        theirs = form(lambda x, c: {"features": x, "labels": c, "weights": x[:, 0]})
        assert batch_map.find(ORIGINAL, theirs, in_order=False) is None

    def test_nothing_is_computed_of_examples_that_nothing_tells(self) -> None:
        theirs = form(lambda x, c: {"features": np.tanh(x), "labels": np.full(6, 2, np.int32)})
        ours = form(lambda x, c: {"features": x, "labels": np.full(6, 2, np.int32)})
        assert batch_map.find(ours, theirs) is None


def test_what_is_computed_of_batches_that_were_not_read_is_no_form() -> None:
    weights = [RANDOM.uniform(0.5, 2.0, size=6).astype(np.float32) for _ in X]
    ours = [{**one, "features/w": w} for one, w in zip(ORIGINAL, weights, strict=True)]
    theirs = [{**one, "weights": w / w.sum()} for one, w in zip(ORIGINAL, weights, strict=True)]
    found = batch_map.find(ours[:3], theirs[:3])
    assert found is not None
    assert terms._of_all(found, ours[:3]) and not terms._of_all(found, ours)
    # A form that is known of all examples is one of others, too.
    known = batch_map.find(ORIGINAL[:3], form(lambda x, c: {"features/x": x, "labels": c})[:3])
    assert known is not None and terms._of_all(known, ours)
