"""Examples that two programs read in a random order are told from each other, but for rounding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from migrator.harness.protocol import alike, batch_map
from migrator.harness.recording import Array

RANDOM = np.random.RandomState(5)
IMAGES = RANDOM.randint(0, 256, (60, 12)).astype(np.float32)
LABELS = RANDOM.randint(0, 10, 60).astype(np.int32)


def counted(features: Array, labels: Array) -> list[dict[str, Array]]:
    return [{"features": x, "labels": y} for x, y in zip(features, labels, strict=True)]


def same(ours: Sequence[dict[str, Array]], theirs: Sequence[dict[str, Array]]) -> bool:
    """Whether both are the same examples, each as often, by the names that they get."""
    tables, read = [], []
    for side in (ours, theirs):
        named = [(repr([(path, value.tobytes()) for path, value in one.items()]), one) for one in side]
        tables.append({name: alike.example(one) for name, one in named})
        read.append([name for name, _ in named])
    left, right = alike.names(*tables)
    return Counter(left.get(name, name) for name in read[0]) == Counter(right.get(name, name) for name in read[1])


def shuffled(examples: list[dict[str, Array]]) -> list[dict[str, Array]]:
    return [examples[place] for place in np.random.RandomState(1).permutation(len(examples))]


OURS = counted(IMAGES / np.float32(255), LABELS)
BY_PRODUCT = IMAGES * np.float32(1 / 255)


def test_a_product_for_a_quotient_is_rounding() -> None:
    assert not np.array_equal(IMAGES / np.float32(255), BY_PRODUCT)  # some are one unit in the last place apart
    assert same(OURS, shuffled(counted(BY_PRODUCT, LABELS)))
    # Each as often as before: twice the same epoch, in both forms at once.
    assert same(OURS * 2, shuffled([*counted(BY_PRODUCT, LABELS), *OURS]))


def moved(where: int, how: float) -> Array:
    made: Array = BY_PRODUCT.copy()
    made[where] += np.float32(how)
    return made


@pytest.mark.parametrize(
    "theirs",
    [
        counted(IMAGES / np.float32(256), LABELS),
        counted(BY_PRODUCT * np.float32(1.00001), LABELS),
        counted(BY_PRODUCT + 1e-3 * np.random.RandomState(2).normal(size=IMAGES.shape).astype(np.float32), LABELS),
        counted(moved(3, 1e-5), LABELS),
        counted(BY_PRODUCT, np.where(np.arange(60) == 7, (LABELS + 1) % 10, LABELS).astype(np.int32)),
        counted(BY_PRODUCT, LABELS)[:-1],
        [*counted(BY_PRODUCT, LABELS)[:-1], counted(BY_PRODUCT, LABELS)[0]],
        counted(BY_PRODUCT.astype(np.float64), LABELS),
        counted(BY_PRODUCT, LABELS.astype(np.int64)),
    ],
    ids=["scale", "little scale", "noise", "one", "label", "missing", "twice", "dtype", "dtype of labels"],
)
def test_other_data_are_other_data(theirs: list[dict[str, Array]]) -> None:
    assert not same(OURS, shuffled(theirs))


def test_columns_are_compared_by_their_own_size() -> None:
    """A salary does not hide what became of a rate."""
    rows = np.stack([RANDOM.uniform(1e6, 2e6, 30), RANDOM.uniform(0.0, 1.0, 30)], axis=1).astype(np.float32)
    ours = counted(rows, LABELS[:30])
    assert same(ours, counted(np.nextafter(rows, np.float32(np.inf)), LABELS[:30]))
    assert not same(ours, counted(rows + np.array([0, 1e-3], np.float32), LABELS[:30]))


def test_the_greatest_of_a_column_does_not_hide_what_became_of_the_others() -> None:
    rows = np.exp(RANDOM.normal(size=(60, 1)) * 4).astype(np.float32)
    rows[7] = 1e7
    ours = counted(rows, LABELS)
    assert same(ours, shuffled(counted(np.nextafter(rows, np.float32(np.inf)), LABELS)))
    assert not same(ours, counted(np.rint(rows), LABELS))
    rows[:40] = 0  # a column of few numbers
    assert same(counted(rows, LABELS), counted(np.nextafter(rows, rows * 2), LABELS))
    assert not same(counted(rows, LABELS), counted(np.rint(rows), LABELS))


def test_small_results_of_a_difference_are_rounded_as_its_terms_are() -> None:
    """log(1 + x) - 0.5 is a unit of 0.5 apart wherever it is next to nothing."""
    rows = RANDOM.uniform(-1.0, 1.0, (60, 1)).astype(np.float32)
    rows[:40] *= np.float32(0.01)
    moved_ = rows + np.float32(2**-23) * RANDOM.choice([-1, 1], rows.shape).astype(np.float32)
    assert same(counted(rows, LABELS), shuffled(counted(moved_, LABELS)))
    assert not same(counted(rows, LABELS), counted(rows + np.float32(2**-19), LABELS))


def test_what_has_more_digits_than_float32_was_not_rounded_to_it() -> None:
    """Seconds since 1970: as float32 they are a minute off."""
    times = 1.6e9 + RANDOM.uniform(0.0, 3600.0, (60, 1))
    ours, single = counted(times, LABELS), times.astype(np.float32).astype(np.float64)
    assert same(ours, shuffled(counted(np.nextafter(times, np.inf), LABELS)))
    assert not same(ours, counted(single, LABELS))
    floats = (IMAGES / np.float32(255)).astype(np.float64)  # computed in float32
    assert same(counted(floats, LABELS), counted(IMAGES.astype(np.float64) / 255, LABELS))


def test_neighbours_on_either_side_of_any_edge_are_the_same() -> None:
    """No value lies so that it and the next one are told apart, however a grid would be laid."""
    values = np.linspace(0.1, 1.0, 20_000).astype(np.float32)[:, None]
    labels = np.zeros(len(values), np.int32)
    for towards in (-np.inf, np.inf):
        theirs = counted(np.nextafter(values, np.float32(towards)), labels)
        assert same(counted(values, labels), shuffled(theirs))


def test_neighbours_are_not_taken_twice() -> None:
    """Where examples are neighbours themselves, one of them in the place of another is still one too few."""
    first = np.float32(0.5)
    steps = [first]
    for _ in range(5):
        steps.append(np.nextafter(steps[-1], np.float32(1)))
    values = np.array(steps, np.float32)[:, None]
    labels = np.zeros(5, np.int32)
    assert same(counted(values[:5], labels), counted(values[1:], labels))  # each is the next one
    rows = np.concatenate([values[:1]] * 4 + [values[:1] + 1])
    assert not same(counted(values[[0, 0, 0, 0, 5]], labels), counted(rows, labels))


def test_two_of_the_one_program_may_be_one_of_the_other() -> None:
    pair = np.array([[0.5], [np.nextafter(np.float32(0.5), np.float32(1))]], np.float32)
    labels = np.zeros(2, np.int32)
    one = counted(pair[[0, 0]], labels)
    assert same(counted(pair, labels), one) and same(one, counted(pair, labels))


def test_strings_and_numbers_that_are_none() -> None:
    ours = [{"name": np.array(b"a", object), "x": np.array([0.5, np.nan, np.inf], np.float32)}]
    alike_ = [{"name": np.array(b"a", object), "x": np.array([np.nextafter(np.float32(0.5), 1), np.nan, np.inf], "f")}]
    assert same(ours, alike_)
    assert not same(ours, [{**alike_[0], "name": np.array(b"b", object)}])
    assert not same(ours, [{**alike_[0], "x": np.array([0.5, np.nan, -np.inf], np.float32)}])


def test_rows_that_are_many_and_all_alike() -> None:
    """More neighbours than are looked at: as many are found as there are."""
    rows = (np.float32(0.5) + np.arange(300, dtype=np.float32)[:, None] * np.float32(6e-8)).astype(np.float32)
    found, _ = alike.pairs(rows, np.nextafter(rows, np.float32(1)))
    taken = [row for row in found if row >= 0]
    assert len(taken) == len(set(taken)) >= 299


ORIGINAL = [{path: value[None] for path, value in one.items()} for one in OURS]


class TestForms:
    """Batches, whose components are told from each other in the same way."""

    def test_in_order_and_in_a_random_order(self) -> None:
        theirs = [{"features": x[None], "labels": y[None]} for x, y in zip(BY_PRODUCT, LABELS, strict=True)]
        mixed = [theirs[place] for place in np.random.RandomState(3).permutation(60)]
        for batches, in_order in ((theirs, True), (mixed, False)):
            found = batch_map.find(ORIGINAL, batches, in_order=in_order)
            assert found is not None and [one.kind for one in found] == ["rounded", "same"]
            assert all(one.plain for one in found)
            said = batch_map.told(found, ORIGINAL[0])
            assert said == ("features is features but for rounding",)

    def test_bit_for_bit_is_said_to_be_that(self) -> None:
        found = batch_map.find(ORIGINAL, ORIGINAL[::-1], in_order=False)
        assert found is not None and [one.kind for one in found] == ["same", "same"]

    def test_a_great_column_hides_nothing(self) -> None:
        rows = [np.array([[1e6, 0.5], [2e6, 0.25]], np.float32) + n for n in range(9)]
        labels = np.arange(2, dtype=np.int32)
        ours = [{"features": one, "labels": labels} for one in rows]
        wrong = [{"features": one + np.array([0.0, 0.01], np.float32), "labels": labels} for one in rows]
        wrong[3]["features"][0, 1] += 0.3
        assert batch_map.find(ours, wrong) is None
