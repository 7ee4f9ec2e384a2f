"""L2 where the order is random: how often each example is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from numpy_programs import Program, migrated_of, run

from migrator.harness.protocol import l2_data
from migrator.harness.protocol.results import LevelResult, Reason, Status
from migrator.harness.recording import Recording, Shuffle, SourceLine

PROGRAM = Program(steps=8)


def judge(
    examples: tuple[Mapping[str, int], Mapping[str, int]],
    again: Mapping[str, int] | None = None,
    theirs: Recording | None = None,
    random_order: bool = True,
) -> LevelResult:
    """Two runs that read no batch alike; the examples are given."""
    ours = replace(run(PROGRAM), sources={"input": SourceLine("o.py", 8)})
    other = theirs or run(migrated_of(PROGRAM, data_seed=2))
    read, first = (list(Counter(counts).elements()) for counts in examples)
    repeated = None if again is None else list(Counter(again).elements())
    return l2_data.judge(ours, other, random_order=random_order, examples=l2_data.Read(read, first, repeated)).level


def epochs(count: int, size: int = 6) -> Counter[str]:
    return Counter({f"e{i}": count for i in range(size)})


UNEVEN = Counter({"e0": 4, "e1": 1, "e2": 2, "e3": 2, "e4": 2, "e5": 1})


def test_whole_epochs_of_the_same_examples_are_equivalent() -> None:
    level = judge((epochs(2), epochs(2)))
    assert (level.status, level.reason) == (Status.EQUIVALENT, Reason.ORDER_DIFFERS)
    assert "the same 6 distinct examples, each read as often" in level.summary
    assert len(level.notes) == 1


def test_examples_read_another_number_of_times_are_different() -> None:
    level = judge((epochs(2), UNEVEN))
    assert (level.status, level.reason) == (Status.DIFFERENT, Reason.DATA_DIFFERS)
    first = level.differences[0]
    assert (first.original, first.migrated) == ("6 examples, 2 time(s) each", "6 examples, 1 to 4 times each")
    assert level.summary.startswith("3 examples are not read as often")
    assert first.original_source == SourceLine("o.py", 8)


def test_two_runs_of_the_original_show_that_its_numbers_are_fixed() -> None:
    # "e0" stands twice in the data: uneven, and no chance.
    doubled = epochs(2) + Counter({"e0": 2})
    assert judge((doubled, doubled), doubled).status is Status.EQUIVALENT
    assert judge((doubled, epochs(2) + Counter({"e1": 2})), doubled).status is Status.DIFFERENT
    # Without the second run nobody knows.
    unknown = judge((doubled, epochs(2) + Counter({"e1": 2})))
    assert unknown.status is Status.EQUIVALENT and len(unknown.notes) == 2


def test_numbers_that_are_random_in_the_original_are_not_compared() -> None:
    other = Counter({"e0": 1, "e1": 4, "e2": 2, "e3": 2, "e4": 2, "e5": 1})
    level = judge((UNEVEN, epochs(2)), other)
    assert level.status is Status.EQUIVALENT
    assert "how often each example is read" in level.notes[1]


def test_two_runs_that_end_in_the_same_part_of_a_small_epoch_did_so_by_chance() -> None:
    # Three examples, the training ends after two of them: which two is chance, and one in three runs agrees.
    ours, theirs = Counter({"e0": 7, "e1": 7, "e2": 6}), Counter({"e0": 6, "e1": 7, "e2": 7})
    level = judge((ours, theirs), ours)
    assert level.status is Status.EQUIVALENT and "cut off within an epoch" in level.notes[1]
    assert judge((ours, Counter({"e0": 5, "e1": 7, "e2": 8})), ours).status is Status.DIFFERENT
    # Half of twenty: two runs do not agree by chance.
    half = epochs(2, 20) + Counter({f"e{i}": 1 for i in range(10)})
    other = epochs(2, 20) + Counter({f"e{i}": 1 for i in range(10, 20)})
    assert judge((half, other), half).status is Status.DIFFERENT


def test_a_part_of_the_first_epoch_says_nothing() -> None:
    # Each example once, other ones on both sides: a large data set that was cut off.
    ours, theirs = epochs(1), Counter({f"f{i}": 1 for i in range(6)})
    level = judge((ours, theirs), Counter({f"g{i}": 1 for i in range(6)}))
    assert (level.status, level.reason) == (Status.INCONCLUSIVE, Reason.NONDETERMINISTIC_ORIGINAL)
    assert judge((ours, theirs)).status is Status.INCONCLUSIVE


def test_examples_of_another_data_set_are_different_once_whole_epochs_were_read() -> None:
    level = judge((epochs(2), Counter({f"f{i}": 2 for i in range(6)})))
    assert level.status is Status.DIFFERENT
    assert level.summary.startswith("6 of the 6 examples that the migrated program reads are not in the original")


def test_one_seed_for_the_shuffles_of_both_says_what_a_part_of_an_epoch_cannot() -> None:
    """Equal pipelines read equal batches then; anything else leaves the level open, as it was."""
    part = Counter({"e0": 1, "e1": 1}), Counter({"e2": 1, "e3": 1})
    level = judge(part, Counter({"e4": 1, "e5": 1}))
    assert (level.status, level.reason) == (Status.INCONCLUSIVE, Reason.NONDETERMINISTIC_ORIGINAL)
    seeded = run(replace(PROGRAM, data_seed=5))
    same = l2_data.of_one_seed(level, seeded, run(migrated_of(PROGRAM, data_seed=5)))
    assert same.status is Status.EQUIVALENT and same.reason is Reason.ORDER_DIFFERS and same.notes
    assert "8 batches are the same bit for bit" in same.summary and same.control == level.control
    for other in (migrated_of(PROGRAM, data_seed=2), migrated_of(PROGRAM, data_seed=5, steps=7)):
        assert l2_data.of_one_seed(level, seeded, run(other)) is level
    nothing = replace(seeded, batches=())
    assert l2_data.of_one_seed(level, nothing, nothing) is level


def test_data_that_a_queue_shuffles_are_compared_in_place() -> None:
    """No seed fixes the order of `numpy_input_fn`: what else is read is compared, and how far both mix it."""
    part = Counter({"e0": 1, "e1": 1}), Counter({"e2": 1, "e3": 1})
    level = judge(part, Counter({"e4": 1, "e5": 1}))
    ours, theirs = run(PROGRAM), run(migrated_of(PROGRAM))
    read = sum(batch.size for batch in ours.batches)
    queue = Shuffle(1000, False, True, True, None, least=read // 2)
    of_queue, whole = replace(ours, shuffles=(queue,)), Shuffle(10 * read, False, True)

    def compared(other: Shuffle | None, batches: Recording = theirs, original: Recording = of_queue) -> LevelResult:
        migrated = replace(theirs, shuffles=None if other is None else (other,))
        return l2_data.in_place(level, original, migrated, ours, batches)

    for other in (whole, queue, None):
        same = compared(other)
        assert (same.status, same.reason) == (Status.EQUIVALENT, Reason.ORDER_DIFFERS), same
        assert "nothing is shuffled" in same.summary and same.notes
    less = compared(Shuffle(2, False, True))
    assert less.status is Status.DIFFERENT and less.differences[0].migrated == 2
    # Other data, fewer of them, or shuffles of which a seed could have told more: as open as before.
    assert compared(whole, run(migrated_of(PROGRAM, data_seed=2))) is level
    assert compared(whole, run(migrated_of(PROGRAM, steps=7))) is level
    assert compared(whole, original=replace(ours, shuffles=(whole,))) is level


def test_other_batch_sizes_or_no_examples_are_inconclusive() -> None:
    other = run(migrated_of(PROGRAM, data_seed=2, batch_size=8))
    assert judge((epochs(2), epochs(2)), theirs=other).status is Status.INCONCLUSIVE
    assert judge((Counter(), Counter())).status is Status.INCONCLUSIVE


def test_an_example_that_is_missing_is_different_though_the_last_batch_is_smaller_then() -> None:
    other = run(migrated_of(PROGRAM, data_seed=2, batch_size=8))
    level = judge((epochs(2), epochs(2, size=5)), epochs(2), theirs=other)
    assert level.status is Status.DIFFERENT and "1 examples are not read as often" in level.summary
    # Where how often each is read is chance, nobody knows.
    level = judge((epochs(2), epochs(2, size=5)), UNEVEN, theirs=other)
    assert level.status is Status.INCONCLUSIVE


def test_examples_decide_nothing_where_the_order_is_fixed() -> None:
    assert judge((epochs(2), epochs(2)), random_order=False).status is Status.DIFFERENT


def test_the_beginning_of_a_run() -> None:
    whole = run(PROGRAM)
    begun = replace(whole, batches=whole.batches[:3])
    assert l2_data.same_beginning(whole, begun)
    assert not l2_data.same_beginning(begun, whole)
    assert not l2_data.same_beginning(whole, run(migrated_of(PROGRAM, data_seed=2)))
    assert not l2_data.same_beginning(whole, replace(whole, batches=()))


@pytest.mark.parametrize(
    "batches",
    ["swapped", "one short", "one more", "none"],
)
def test_what_may_never_pass_at_l2(batches: str) -> None:
    ours, theirs = run(PROGRAM), run(migrated_of(PROGRAM))
    rows = list(theirs.batches)
    changed = {
        "swapped": [replace(rows[1], step=1), replace(rows[0], step=2), *rows[2:]],
        "one short": rows[:-1],
        "one more": [*rows, replace(rows[0], step=len(rows) + 1)],
        "none": [],
    }[batches]
    level = l2_data.judge(ours, replace(theirs, batches=tuple(changed))).level
    assert level.status is not Status.EQUIVALENT
    assert l2_data.judge(ours, theirs).level.status is Status.EQUIVALENT
    assert np.all([batch.size == 16 for batch in rows])


def _passes(times: int, *, same: bool = False) -> list[str]:
    """Examples read in so many passes, each in another order unless `same`."""
    names = [str(number) for number in range(100)]
    return [names[(start if same else start + 7 * one) % 100] for one in range(times) for start in range(100)]


class TestShuffles:
    """How the two programs mix their data."""

    HUNDRED = (Shuffle(100, False, True),)

    def judge(
        self, ours: tuple[Shuffle, ...] | None, theirs: tuple[Shuffle, ...] | None, times: int = 3
    ) -> LevelResult:
        original, migrated = (run(PROGRAM), run(migrated_of(PROGRAM, data_seed=2)))
        counts = _passes(times)
        return l2_data.judge(
            replace(original, shuffles=ours),
            replace(migrated, shuffles=theirs),
            random_order=True,
            examples=l2_data.Read(counts, counts, counts),
        ).level

    @pytest.mark.parametrize(
        ("theirs", "what"),
        [
            (HUNDRED, None),
            (None, None),
            ((Shuffle(None, False, True),), None),
            ((Shuffle(1000, False, True),), None),  # no more than all examples can be mixed
            ((Shuffle(2, False, True),), "shuffle buffer"),
            ((Shuffle(100, False, False),), "reshuffle_each_iteration"),
            ((Shuffle(100, False, True, True),), "passes mixed by a shuffle"),
        ],
    )
    def test_buffers_and_passes(self, theirs: tuple[Shuffle, ...] | None, what: str | None) -> None:
        level = self.judge(self.HUNDRED, theirs)
        assert level.status is (Status.EQUIVALENT if what is None else Status.DIFFERENT), level.summary
        assert [one.tensor for one in level.differences] == ([] if what is None else [what])

    @pytest.mark.parametrize(
        ("ours", "theirs", "different"),
        [
            (_passes(3), _passes(3, same=True), True),  # cached behind the shuffle, or an array that is shuffled once
            (_passes(3, same=True), _passes(3), True),
            (_passes(3, same=True), _passes(3, same=True), False),
            (_passes(3), _passes(3), False),
            (_passes(3)[:250], _passes(3, same=True)[:250], True),  # an unfinished pass
            (_passes(1), _passes(1, same=True), False),
            (list("ab" * 3), list("abbaab"), False),  # so few come in the same order by chance
            (list(map(str, range(100))) + ["0"] * 100, _passes(2), False),  # no passes
        ],
    )
    def test_passes_of_the_same_order(self, ours: list[str], theirs: list[str], different: bool) -> None:
        original, migrated = (run(PROGRAM), run(migrated_of(PROGRAM, data_seed=2)))
        level = l2_data.judge(original, migrated, random_order=True, examples=l2_data.Read(ours, theirs)).level
        told = [one.tensor for one in level.differences]
        assert ("order of each pass" in told) is different, level.summary
        if different:
            assert level.status is Status.DIFFERENT
            assert "has the same order in the" in level.summary

    def test_one_pass_has_one_order(self) -> None:
        assert self.judge(self.HUNDRED, (Shuffle(100, False, False),), times=1).status is Status.EQUIVALENT
        assert self.judge(self.HUNDRED, (Shuffle(100, False, True, True),), times=1).status is Status.EQUIVALENT

    def test_another_order_of_the_same_shuffles(self) -> None:
        original, migrated = (run(PROGRAM), run(migrated_of(PROGRAM, data_seed=2)))
        seeded = (Shuffle(100, True, True, False, 7),)
        for ours, theirs, asked in (
            (seeded, seeded, True),
            (seeded, (Shuffle(100, True, True, False, 8),), False),
            (seeded, (Shuffle(50, True, True, False, 7),), False),
            ((Shuffle(100, True, False, False, 7),) * 2, (Shuffle(100, True, False, False, 7),) * 2, True),
            ((Shuffle(100, True, True),), (Shuffle(100, True, True),), False),  # seeds that are computed
            (self.HUNDRED, self.HUNDRED, False),
            ((), (), False),
            (None, None, False),
        ):
            pair = replace(original, shuffles=ours), replace(migrated, shuffles=theirs)
            assert l2_data.may_shuffle_alike(*pair) is asked
        same = replace(original, shuffles=seeded)
        assert not l2_data.may_shuffle_alike(same, same)
        level = l2_data.judge(original, migrated).level
        assert l2_data.of_one_order(level, original, migrated) is None
        told = l2_data.of_one_order(level, original, original)
        assert (
            told is not None
            and told.status is Status.EQUIVALENT
            and "another order of the same shuffles" in told.summary
        )

    def test_the_seed_of_the_program_alone_gives_each_its_own_order(self) -> None:
        original, migrated = (run(PROGRAM), run(migrated_of(PROGRAM, data_seed=2)))
        seeded = (Shuffle(100, True, True),)
        for ours, theirs, chance in (
            (self.HUNDRED, self.HUNDRED, True),
            (seeded, seeded, False),
            (seeded, self.HUNDRED, False),
            (self.HUNDRED, (), False),
            (self.HUNDRED, None, False),
        ):
            pair = replace(original, shuffles=ours), replace(migrated, shuffles=theirs)
            assert l2_data.seeded_by_chance(*pair) is chance
        same = replace(original, shuffles=self.HUNDRED)
        assert not l2_data.seeded_by_chance(same, same)
        both = (self.HUNDRED, self.HUNDRED)
        assert "is up to the program's seed alone" not in self.judge(*both).summary
        # What migrated.py asks for where neither program has a seed of its own and both read in a fixed order.
        counts = _passes(3)
        pair = replace(original, shuffles=both[0]), replace(migrated, shuffles=both[1])
        level = l2_data.judge(*pair, random_order=True, examples=l2_data.Read(counts, counts)).level
        assert level.status is Status.EQUIVALENT
        assert "their order is up to the program's seed alone, and the next levels replay" in level.summary


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (Shuffle(8, True, True, seed=1), ""),
        (
            Shuffle(8, True, True, seed=2),
            ": the seed of the shuffle is 1 in the original and 2 in the migrated program",
        ),
        (
            Shuffle(8, True, False, seed=1),
            ": reshuffle_each_iteration is 1 in the original and 0 in the migrated program",
        ),
    ],
)
def test_a_fixed_order_that_is_another_one_is_said_to_be_that(other: Shuffle, reason: str) -> None:
    ours = replace(run(PROGRAM), shuffles=(Shuffle(8, True, True, seed=1),))
    theirs = replace(run(migrated_of(PROGRAM, data_seed=2)), shuffles=(other,))
    read = list(epochs(2).elements())
    level = l2_data.judge(ours, theirs, examples=l2_data.Read(read, read[::-1])).level
    assert (level.status, level.reason) == (Status.DIFFERENT, Reason.DATA_DIFFERS)
    begin = "the same 6 distinct examples are read as often, in another order from batch 1 of local:0 on"
    assert level.summary == begin + reason
    assert level.differences[-1].tensor == "order of the examples"
    # Other examples are other values.
    level = l2_data.judge(ours, theirs, examples=l2_data.Read(read, [*read[:-1], "e9"])).level
    assert level.status is Status.DIFFERENT and level.summary.endswith("other values")


def test_a_component_that_holds_nothing_of_the_original_is_named_before_one_of_another_name() -> None:
    theirs = run(migrated_of(PROGRAM, data_seed=2))
    first = theirs.batches[0].components
    renamed = [
        replace(batch, components=tuple(("other/" + path, *rest) for path, *rest in batch.components))
        for batch in theirs.batches
    ]
    level = l2_data.judge(
        run(PROGRAM), replace(theirs, batches=tuple(renamed)), unread=("other/" + first[-1][0],)
    ).level
    assert level.status is Status.DIFFERENT
    assert level.summary.endswith(f"other/{first[-1][0]} of the migrated program holds nothing that the original reads")
