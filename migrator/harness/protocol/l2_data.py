"""L2: the two programs train on the same batches."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from migrator.harness.protocol import measurements
from migrator.harness.protocol.results import Control, Divergence, LevelResult, Reason, Status
from migrator.harness.recording import Batch, Recording

ID, TITLE = "L2", "Same data"
# Parts of an epoch, one of which two runs read by chance: with fewer, that they read the same one says nothing.
_FEW_PARTS = 1000


@dataclass(frozen=True)
class DataResult:
    """The level's result; whether each trainer saw the same batches in the same order (no replay needed)."""

    level: LevelResult
    same_order: bool


def _sequences(recording: Recording) -> tuple[tuple[Batch, ...], ...]:
    return tuple(
        tuple(sorted((b for b in recording.batches if b.task == task), key=lambda b: b.step))
        for task in measurements.trainers(recording)
    )


def same_sequences(a: Recording, b: Recording) -> bool:
    """Whether each trainer of the one saw exactly the batches of the same trainer of the other."""
    return [[x.digest for x in s] for s in _sequences(a)] == [[x.digest for x in s] for s in _sequences(b)]


def same_beginning(whole: Recording, beginning: Recording) -> bool:
    """Whether each trainer of a run that was ended on purpose saw the first batches of its counterpart."""
    ours, theirs = _sequences(whole), _sequences(beginning)
    return len(ours) == len(theirs) and all(
        0 < len(b) <= len(a) and [x.digest for x in a[: len(b)]] == [x.digest for x in b]
        for a, b in zip(ours, theirs, strict=True)
    )


def same_first_batches(a: Recording, b: Recording) -> bool:
    """Whether each trainer of the one began with the batch that the same trainer of the other began with."""
    return [[x.digest for x in s[:1]] for s in _sequences(a)] == [[x.digest for x in s[:1]] for s in _sequences(b)]


def seeded_by_chance(original: Recording, migrated: Recording) -> bool:
    """Whether both programs shuffle by the seed of the whole program alone, which gives each its own fixed order: what
    TensorFlow makes of it depends on the operations that a program has besides.
    """
    sides = [recording.shuffles for recording in (original, migrated)]
    if queued(original, migrated):
        return False
    return all(side and not any(one.seeded for one in side) for side in sides) and not same_sequences(
        original, migrated
    )


def queued(*recordings: Recording) -> bool:
    """Whether a queue shuffles the data of one of them: its order is that of threads, and no seed fixes it."""
    return any(one.least is not None for recording in recordings for one in recording.shuffles or ())


def order_by_nature(original: Recording, migrated: Recording) -> bool:
    """Whether the order of the data is made in another way than by a `Dataset.shuffle` in either: by a queue, or by
    Keras, of arrays. It is another one then in both, whatever seeds they are given.
    """
    return queued(original, migrated) or migrated.shuffles is None


def may_shuffle_alike(original: Recording, migrated: Recording) -> bool:
    """Whether the shuffles of both programs are the same, with seeds of their own, and both still read other sequences:
    the one may begin its data once more than the other (`Model.fit` does, where it is not told its steps), and reads
    the order of a later pass then; or the programs have other seeds as a whole, as the RunConfig of an Estimator has.
    """
    ours, theirs = original.shuffles, migrated.shuffles
    alike = bool(ours) and ours == theirs and all(one.seed is not None for one in ours or ())
    return alike and not same_sequences(original, migrated)


def of_one_order(level: LevelResult, original: Recording, migrated: Recording) -> LevelResult | None:
    """L2 of two runs in which each pass over the data has the order of the first; None where they still differ."""
    how = (
        "where each pass over the data has the order of the first and both programs have one seed as a whole; by "
        "itself the migrated program reads another order of the same shuffles"
    )
    order = "the order of the examples, which is another one of the same shuffles with the same seeds"
    return _of_short_runs(level, original, migrated, how, order)


def _of_short_runs(
    level: LevelResult, original: Recording, migrated: Recording, how: str, order: str
) -> LevelResult | None:
    """L2 where short runs whose shuffles were given one order read the same batches; None where they do not."""
    ours = _sequences(original)
    if not any(ours) or not same_sequences(original, migrated):
        return None
    count = sum(len(sequence) for sequence in ours)
    summary = f"{count} batches are the same bit for bit {how}, and the next levels replay the original's batches"
    return replace(
        level, status=Status.EQUIVALENT, reason=Reason.ORDER_DIFFERS, summary=summary, differences=(), notes=(order,)
    )


_ACROSS = "passes mixed by a shuffle"


def _ordered_otherwise(original: Recording, migrated: Recording, examples: Examples) -> LevelResult | None:
    """DIFFERENT where only one of the programs reads each pass over its data in the order of the first."""
    in_order = examples.repeats
    if None in in_order or in_order[0] == in_order[1]:
        return None
    sides = ("original", "migrated program")
    one, other = sides if in_order[0] else sides[::-1]
    first = Divergence(
        "order of each pass",
        original="that of the first" if in_order[0] else "another each time",
        migrated="that of the first" if in_order[1] else "another each time",
        causes=("a cache after the shuffle keeps its order, and so does an array that is shuffled once",),
        original_source=original.sources.get("input"),
        migrated_source=migrated.sources.get("input"),
    )
    summary = f"each pass over the data has the same order in the {one}, but a new one in the {other}"
    return LevelResult(ID, TITLE, Status.DIFFERENT, summary, Reason.DATA_DIFFERS, differences=(first,))


def _shuffled_otherwise(original: Recording, migrated: Recording, examples: Examples) -> LevelResult | None:
    """DIFFERENT where the two programs mix their data to another extent; None if they do not, or nobody knows."""
    ours, theirs = original.shuffles, migrated.shuffles
    if ours is None or theirs is None or not ours or len(ours) != len(theirs) or queued(original, migrated):
        return None
    passes = max(examples.original.values(), default=0)
    for mine, other in zip(ours, theirs, strict=True):
        buffers = [None if one.buffer is None else min(one.buffer, len(examples.original)) for one in (mine, other)]
        if None not in buffers and buffers[0] != buffers[1]:
            what, values = "shuffle buffer", (float(mine.buffer or 0), float(other.buffer or 0))
            causes: tuple[str, ...] = ("a smaller buffer mixes less: an example stays near its place in the data",)
        elif passes > 1 and mine.each_time != other.each_time:
            what, values = "reshuffle_each_iteration", (float(mine.each_time), float(other.each_time))
            causes = ("each pass over the data has the same order, or not",)
        elif passes > 1 and mine.across != other.across:
            what, values = _ACROSS, (float(mine.across), float(other.across))
            causes = ("repeat before shuffle for shuffle before repeat, which mixes the passes",)
        else:
            continue
        first = Divergence(
            what,
            *values,
            causes=causes,
            original_source=original.sources.get("input"),
            migrated_source=migrated.sources.get("input"),
        )
        summary = f"{what} is {values[0]:g} in the original and {values[1]:g} in the migrated program"
        if what == _ACROSS:
            summary = "repeat comes before shuffle in the {} and after it in the {}, where passes are not mixed".format(
                *(("original", "migrated program") if mine.across else ("migrated program", "original"))
            )
        return LevelResult(ID, TITLE, Status.DIFFERENT, summary, Reason.DATA_DIFFERS, differences=(first,))
    return None


def _component(ours: Batch, theirs: Batch, unread: Sequence[str] = ()) -> tuple[str, str]:
    """What is different between two batches: a component that is `unread` in the original, the first other one in
    name order, or the size.
    """
    left = {path: (dtype, shape, digest) for path, dtype, shape, digest in ours.components}
    right = {path: (dtype, shape, digest) for path, dtype, shape, digest in theirs.components}
    for path in sorted(set(left) | set(right), key=lambda path: (path not in unread, path)):
        if path in unread:
            return path, f"{path} of the migrated program holds nothing that the original reads"
        if path not in left or path not in right:
            side = "migrated" if path not in left else "original"
            return path, f"only the {side} program has {path}"
        (a_type, a_shape, a_digest), (b_type, b_shape, b_digest) = left[path], right[path]
        if a_type != b_type:
            return path, f"dtype {a_type} against {b_type}"
        if tuple(a_shape) != tuple(b_shape):
            return path, f"shape {list(a_shape)} against {list(b_shape)}"
        if a_digest != b_digest:
            return path, "other values"
    return "batch", "other content"


def _first_difference(
    ours: Sequence[Sequence[Batch]],
    theirs: Sequence[Sequence[Batch]],
    tasks: Sequence[str],
    unread: Sequence[str] = (),
) -> tuple[Divergence, str]:
    found: list[tuple[int, int, Divergence, str]] = []
    for i, (left, right) in enumerate(zip(ours, theirs, strict=True)):
        for position in range(max(len(left), len(right))):
            a = left[position] if position < len(left) else None
            b = right[position] if position < len(right) else None
            if a is not None and b is not None and a.digest == b.digest:
                continue
            if a is None or b is None:
                present = a or b
                assert present is not None
                side = "original" if b is None else "migrated"
                path, detail = "batch", f"only the {side} program trained on a batch there"
            else:
                path, detail = _component(a, b, unread)
            divergence = Divergence(
                path,
                None if a is None else f"{a.size} examples, sha256 {a.digest[:12]}",
                None if b is None else f"{b.size} examples, sha256 {b.digest[:12]}",
                step=position + 1,
                task=tasks[i],
                causes=(
                    detail,
                    "another batch size, shuffle seed, repeat, shard or drop_remainder in the input function",
                ),
            )
            found.append((position, i, divergence, detail))
            break
    _, _, divergence, detail = min(found, key=lambda item: item[:2])
    return divergence, detail


@dataclass(frozen=True)
class Read:
    """The examples that each program read, in order, and those of a second run of the original where there is one.

    Those that are the same, but for rounding at the most, have one name.
    """

    original: Sequence[str]
    migrated: Sequence[str]
    again: Sequence[str] | None = None


@dataclass(frozen=True)
class Examples:
    """How often each example was read: by the original, by the migrated program, and by a second run of the original
    where there is one. Keys are names of examples. `repeats` says of both programs whether each pass over the data
    had the order of the first one (None: too few examples, or no two passes, to tell).
    """

    original: Mapping[str, int]
    migrated: Mapping[str, int]
    again: Mapping[str, int] | None = None
    repeats: tuple[bool | None, bool | None] = (None, None)

    @property
    def settled(self) -> bool:
        """Whether the original reads each example a fixed number of times, although in a random order.

        Then two runs of it read the same multiset; or, where only one is known, each example equally often and more
        than once, as whole epochs do. (Once each may also be a part of the first epoch, which is another in each
        run.) Runs that all end within an epoch may have read the same part of it by chance, if there are few such
        parts.
        """
        counts = Counter(self.original.values())
        if self.again is None:
            return len(counts) == 1 and min(counts) > 1
        if Counter(self.original) != Counter(self.again):
            return False
        theirs = set(self.migrated.values())
        within_an_epoch = all(values and max(values) - min(values) == 1 for values in (counts, theirs))
        return not within_an_epoch or math.comb(len(self.original), counts[max(counts)]) >= _FEW_PARTS

    @property
    def uneven(self) -> bool:
        """Whether the original reads each example equally often but for its last, unfinished epoch (two runs of it at
        most once more or less), and the migrated program does not.
        """
        runs = [self.original] if self.again is None else [self.original, self.again]
        even = all(counts and max(counts.values()) - min(counts.values()) <= 1 for counts in runs)
        whole = all(min(counts.values(), default=0) > 1 for counts in runs)
        return even and whole and max(self.migrated.values()) - min(self.migrated.values()) > 1


# Examples of which two passes do not come in the same order by chance.
_FEWEST_IN_ORDER = 10


def repeats(read: Sequence[str]) -> bool | None:
    """Whether each pass over the data had the order of the first one; None where that cannot be told."""
    once = len(set(read))
    if once < _FEWEST_IN_ORDER or len(read) < 2 * once or max(Counter(read).values()) > -(-len(read) // once):
        return None
    return all(one == before for one, before in zip(read[once:], read, strict=False))


def _spread(counts: Mapping[str, int]) -> str:
    low, high = min(counts.values()), max(counts.values())
    return f"{low} time(s)" if low == high else f"{low} to {high} times"


def _same_sizes(original: Recording, migrated: Recording) -> bool:
    sizes = [[[batch.size for batch in s] for s in _sequences(r)] for r in (original, migrated)]
    return sizes[0] == sizes[1]


def _random_order(original: Recording, migrated: Recording, examples: Examples) -> LevelResult | None:
    """What the examples say where the order is random; None if they say nothing."""
    ours, theirs = Counter(examples.original), Counter(examples.migrated)
    if not ours or not theirs:
        return None
    if not _same_sizes(original, migrated):
        return _read_otherwise(original, migrated, examples) if ours != theirs else None
    mixed = _ordered_otherwise(original, migrated, examples) or _shuffled_otherwise(original, migrated, examples)
    if mixed is not None:
        return mixed
    chance = seeded_by_chance(original, migrated) and examples.again is None
    how = "is up to the program's seed alone" if chance else "is random in the original"
    order = f"the order of the examples, which {how}"
    tail = f"their order {how}{'' if chance else ' too'}, and the next levels replay the original's"
    if ours == theirs:
        summary = f"the same {len(ours)} distinct examples, each read as often, in batches of the same sizes; {tail}"
        return LevelResult(ID, TITLE, Status.EQUIVALENT, summary, Reason.ORDER_DIFFERS, notes=(order,))
    otherwise = _read_otherwise(original, migrated, examples)
    if otherwise is not None:
        return otherwise
    if ours.keys() == theirs.keys():
        summary = f"the same {len(ours)} distinct examples in batches of the same sizes; {tail}"
        often = "how often each example is read, which is random in the original or cut off within an epoch"
        return LevelResult(ID, TITLE, Status.EQUIVALENT, summary, Reason.ORDER_DIFFERS, notes=(order, often))
    return None


def _read_otherwise(original: Recording, migrated: Recording, examples: Examples) -> LevelResult | None:
    """DIFFERENT where how often the original reads each example is not random, and the migrated program, whose examples
    are not the same, reads them otherwise; None where nobody knows.
    """
    ours, theirs = Counter(examples.original), Counter(examples.migrated)
    if examples.settled or examples.uneven:
        others = len((ours - theirs) | (theirs - ours))
        first = Divergence(
            "how often each example is read",
            f"{len(ours)} examples, {_spread(ours)} each",
            f"{len(theirs)} examples, {_spread(theirs)} each",
            causes=(
                "repeat before shuffle for shuffle before repeat, which mixes the epochs",
                "other data, or another part of it",
            ),
            original_source=original.sources.get("input"),
            migrated_source=migrated.sources.get("input"),
        )
        summary = (
            f"{others} examples are not read as often as in the original: {first.migrated}, against {first.original}, "
            "which is not random there"
        )
        new, missing = theirs.keys() - ours.keys(), ours.keys() - theirs.keys()
        if new:
            summary = (
                f"{len(new)} of the {len(theirs)} examples that the migrated program reads are not in "
                f"the original, and {len(missing)} of the original's {len(ours)} are not read"
            )
        return LevelResult(ID, TITLE, Status.DIFFERENT, summary, Reason.DATA_DIFFERS, differences=(first,))
    return None


def _of_other_shuffles(original: Recording, migrated: Recording) -> str:
    """What is not the same of the shuffles of both programs, though they mix the data as far; empty if nothing."""
    ours, theirs = original.shuffles, migrated.shuffles
    if ours is None or theirs is None:
        return ""
    if bool(ours) != bool(theirs):
        return f"only the {'original' if ours else 'migrated program'} shuffles"
    for mine, other in zip(ours, theirs, strict=False):
        if mine.each_time != other.each_time:
            values = float(mine.each_time), float(other.each_time)
            return "reshuffle_each_iteration is {:g} in the original and {:g} in the migrated program".format(*values)
        if mine.seed != other.seed:
            return f"the seed of the shuffle is {mine.seed} in the original and {other.seed} in the migrated program"
    return ""


def _in_another_order(
    original: Recording, migrated: Recording, examples: Examples, first: Divergence
) -> LevelResult | None:
    """DIFFERENT where the order of the original is fixed and the migrated program reads the same examples in another
    one, with what makes it; None where the examples are others. `first` is the first batch that differs.
    """
    count = len(examples.original)
    if not count or Counter(examples.original) != Counter(examples.migrated):
        return None
    place = f"from batch {first.step} of {first.task} on"
    sizes = "" if _same_sizes(original, migrated) else ", and in batches of other sizes"
    summary = f"the same {count} distinct examples are read as often, in another order {place}{sizes}"
    mixed = _ordered_otherwise(original, migrated, examples) or _shuffled_otherwise(original, migrated, examples)
    differences: tuple[Divergence, ...] = (replace(first, tensor="order of the examples", causes=first.causes[1:]),)
    reason = _of_other_shuffles(original, migrated) if mixed is None else mixed.summary
    if mixed is not None:
        differences = (*mixed.differences, *differences)
    summary += f": {reason}" if reason else ""
    return LevelResult(ID, TITLE, Status.DIFFERENT, summary, Reason.DATA_DIFFERS, differences=differences)


def _compare(
    original: Recording,
    migrated: Recording,
    random_order: bool,
    examples: Examples | None = None,
    unread: Sequence[str] = (),
) -> DataResult:
    ours, theirs = _sequences(original), _sequences(migrated)
    tasks = measurements.trainers(original)
    if not any(ours) or not any(theirs):
        side = "original" if not any(ours) else "migrated"
        return DataResult(
            LevelResult(
                ID,
                TITLE,
                Status.INCONCLUSIVE,
                f"no batch of the {side} program was recorded",
                Reason.DATA_NOT_REPLAYABLE,
            ),
            False,
        )
    if len(ours) != len(theirs):
        return DataResult(
            LevelResult(
                ID,
                TITLE,
                Status.DIFFERENT,
                f"{len(ours)} trainers read data in the original and {len(theirs)} in the migrated program",
                Reason.DATA_DIFFERS,
                differences=(Divergence("trainers", float(len(ours)), float(len(theirs))),),
            ),
            False,
        )
    if same_sequences(original, migrated):
        count = sum(len(sequence) for sequence in ours)
        sizes = sorted({b.size for sequence in ours for b in sequence}, reverse=True)
        return DataResult(
            LevelResult(
                ID,
                TITLE,
                Status.EQUIVALENT,
                f"{count} batches of {' and '.join(map(str, sizes))} examples are the same bit for bit",
            ),
            True,
        )
    first, detail = _first_difference(ours, theirs, tasks, unread)
    place = f"batch {first.step} of {first.task}"
    if Counter(b.digest for s in ours for b in s) == Counter(b.digest for s in theirs for b in s):
        status = Status.EQUIVALENT if random_order else Status.INCONCLUSIVE
        tail = "the original's own order is random" if random_order else "the original's own order is fixed"
        return DataResult(
            LevelResult(
                ID,
                TITLE,
                status,
                f"the same batches in another order, first at {place}; {tail}",
                Reason.ORDER_DIFFERS,
                differences=(first,),
            ),
            False,
        )
    told = _random_order(original, migrated, examples) if random_order and examples is not None else None
    if told is not None:
        return DataResult(told, False)
    if random_order:
        return DataResult(
            LevelResult(
                ID,
                TITLE,
                Status.INCONCLUSIVE,
                "the original reads its data in a random order: its batches cannot be compared one by one "
                f"({place}: {detail}); the next levels replay the original's batches",
                Reason.NONDETERMINISTIC_ORIGINAL,
                differences=(first,),
            ),
            False,
        )
    elsewhere = None if examples is None else _in_another_order(original, migrated, examples, first)
    if elsewhere is not None:
        return DataResult(elsewhere, False)
    return DataResult(
        LevelResult(
            ID,
            TITLE,
            Status.DIFFERENT,
            f"{place} differs in {first.tensor}: {detail}",
            Reason.DATA_DIFFERS,
            differences=(first,),
        ),
        False,
    )


def without_last_batch(recording: Recording) -> Recording:
    """The known-bad version of the data: each trainer's last batch is dropped."""
    last = {batch.task: batch.step for batch in sorted(recording.batches, key=lambda batch: batch.step)}
    return replace(recording, batches=tuple(b for b in recording.batches if b.step < last[b.task]))


def judge(
    original: Recording,
    migrated: Recording,
    *,
    random_order: bool = False,
    examples: Read | None = None,
    unread: Sequence[str] = (),
) -> DataResult:
    """Compares the batch digests of each trainer in order.

    `random_order` says that two runs of the original itself read different sequences. Then `examples` decide; those of
    a second run of the original show whether how often each is read is random too. In a fixed order they tell whether
    other batches hold other examples or the same in another order. `unread` are components of the migrated program's
    batches that hold nothing of what the original reads. The control is the original's own record without its last
    batches, put through the same comparison.
    """
    counted = None
    if examples is not None:
        again = None if examples.again is None else Counter(examples.again)
        in_order = repeats(examples.original), repeats(examples.migrated)
        counted = Examples(Counter(examples.original), Counter(examples.migrated), again, in_order)
    result = _compare(original, migrated, random_order, counted, unread)
    control = Control(
        "the original's own batches without the last one",
        detected=_compare(original, without_last_batch(original), False).level.status is not Status.EQUIVALENT,
    )
    level = replace(result.level, control=control)
    if level.status is Status.EQUIVALENT and not control.detected:
        level = replace(level, status=Status.INCONCLUSIVE, reason=Reason.CONTROL_NOT_DETECTED)
    return DataResult(level, result.same_order)


def fixed_order(level: LevelResult) -> LevelResult:
    """L2 of an original with a random order, when two runs of the migrated program read the same sequence.

    Not DIFFERENT, because a few examples may come in the same order twice by chance.
    """
    if level.status is not Status.EQUIVALENT:
        return level
    return replace(
        level,
        status=Status.INCONCLUSIVE,
        reason=Reason.ORDER_DIFFERS,
        summary="the original's order is random, and two runs of the migrated program read the same order: "
        "a shuffle is missing, or its seed is fixed",
    )


def of_one_seed(level: LevelResult, original: Recording, migrated: Recording) -> LevelResult:
    """L2 of an original with a random order of which the examples say nothing, when each shuffle of both programs was
    given the same seed: then equal pipelines read equal batches, bit for bit. Others leave the level as it was.
    """
    how = (
        "where the shuffles of both programs are given one seed, and each pass has the order of the first; "
        "by themselves both read in a random order"
    )
    order = "the order of the examples, which is random in the original"
    return _of_short_runs(level, original, migrated, how, order) or level


def in_place(
    level: LevelResult, original: Recording, migrated: Recording, ours: Recording, theirs: Recording
) -> LevelResult:
    """L2 of programs with a random order of which neither examples nor a seed say anything, since a queue shuffles or
    Keras does: `ours` and `theirs` are short runs in which nothing was shuffled. Where these read equal batches, and
    both programs mix their data as far, their order differs by nature. Others leave the level as it was.
    """
    if not order_by_nature(original, migrated):
        return level
    how = "where nothing is shuffled; by themselves both read in a random order"
    order = "the order of the examples, which is random in the original"
    same = _of_short_runs(level, ours, theirs, how, order)
    if same is None:
        return level
    read = sum(batch.size for batch in ours.batches)
    mixed = [_mixed(one, read) for one in (original, migrated)]
    low, high = max(one[0] for one in mixed), min(one[1] for one in mixed)
    if low <= high:
        return same
    ours_at, theirs_at = (one[0] if one[0] == low else one[1] for one in mixed)
    first = Divergence(
        "shuffle buffer",
        ours_at,
        theirs_at,
        causes=("a smaller buffer mixes less: an example stays near its place in the data",),
        original_source=original.sources.get("input"),
        migrated_source=migrated.sources.get("input"),
    )
    summary = f"one of {ours_at:g} examples is drawn in the original, one of {theirs_at:g} in the migrated program"
    return replace(level, status=Status.DIFFERENT, reason=Reason.DATA_DIFFERS, summary=summary, differences=(first,))


def _mixed(recording: Recording, read: int) -> tuple[float, float]:
    """Among how many examples one is drawn, at the least and at the most, where so many were read."""
    if recording.shuffles is None:
        return 0.0, float(read)  # of arrays, say: Keras shuffles them whole, and a generator as it likes
    least = [one.buffer or 1 if one.least is None else one.least + 1 for one in recording.shuffles]
    most = [one.buffer or read if one.least is None else read for one in recording.shuffles]
    return float(min(read, max(least, default=1))), float(min(read, max(most, default=1)))


def free_cluster(
    level: LevelResult, original: Recording, migrated: Recording, tasks: Sequence[tuple[str, str]]
) -> LevelResult:
    """Adds to L2 what the free-running cluster read: each trainer's batches must begin as its counterpart's
    do.

    `tasks` pairs the trainers (original, migrated). How many batches a trainer gets is chance there; which
    ones come first is not, if the data has a fixed order (which the caller knows from the one-trainer
    cluster).
    """
    compared = 0
    for ours, theirs in tasks:
        left = [b for b in original.batches if b.task == ours]
        right = [b for b in migrated.batches if b.task == theirs]
        for number, (a, b) in enumerate(zip(left, right, strict=False), start=1):
            if a.digest != b.digest:
                path, detail = _component(a, b)
                first = Divergence(
                    path,
                    f"{a.size} examples, sha256 {a.digest[:12]}",
                    f"{b.size} examples, sha256 {b.digest[:12]}",
                    step=number,
                    task=theirs,
                    causes=(detail, "the data is sharded another way between the workers"),
                )
                return replace(
                    level,
                    status=Status.DIFFERENT,
                    reason=Reason.DATA_DIFFERS,
                    differences=(first,),
                    summary=f"in the free-running cluster batch {number} of {theirs} is not that of "
                    f"the original's {ours}: {path}: {detail}",
                )
            compared += 1
    return replace(level, summary=f"{level.summary}; so do {compared} batches of the free-running cluster")
