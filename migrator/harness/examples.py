"""The examples that both programs read, wherever they stand in batches; those that are the same have one name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from migrator.harness.original import OriginalEvidence
from migrator.harness.protocol import alike, batch_map, l2_data
from migrator.harness.protocol.l2_data import Read
from migrator.harness.recording import Array, read_batch
from migrator.harness.runs import Run
from migrator.harness.terms import Terms, in_any_order, same_form


def read(
    evidence: OriginalEvidence, migrated: Run, terms: Terms, *, random: bool
) -> tuple[Read | None, tuple[str, ...]]:
    """What the original and a run of the migrated program read, where their sequences are not the same; and the
    components of the migrated program's batches that hold nothing of what the original reads.
    """
    original = evidence.main
    assert original.recording is not None and migrated.recording is not None
    if not random and l2_data.same_sequences(original.recording, migrated.recording):
        return None, ()
    if not (random or terms.data or same_form(original.recording, migrated.recording)):
        found, lacking = in_any_order(original, migrated)
        if lacking or not found:
            return None, lacking
        terms = replace(terms, data=found)
    return _named(original, _again(evidence), migrated, terms), ()


def _again(evidence: OriginalEvidence) -> Run | None:
    """A second, equally long run of an original whose order is random; None if there is none."""
    repeat = evidence.repeat
    if not evidence.random_order or repeat is None or repeat.recording is None or evidence.limited:
        return None
    return repeat


def _named(original: Run, again: Run | None, migrated: Run, terms: Terms) -> Read:
    """Each example by the digest of all its components together, those of the original in the form of the migrated
    program; where they are not the same bit for bit, what is so but for rounding has one name.
    """
    ours, second = (tuple(name for name, _ in _examples(run, terms)) if run else () for run in (original, again))
    theirs = tuple(name for name, _ in _examples(migrated, None))
    if {*ours, *second} != set(theirs):
        tables = [
            {name: alike.example(values) for run in runs for name, values in _examples(run, of)}
            for runs, of in (([one for one in (original, again) if one is not None], terms), ([migrated], None))
        ]
        left, right = alike.names(*tables)
        ours, second = (tuple(left.get(name, name) for name in side) for side in (ours, second))
        theirs = tuple(right.get(name, name) for name in theirs)
    return Read(ours, theirs, None if again is None else second)


def _examples(run: Run, terms: Terms | None) -> Iterator[tuple[str, Mapping[str, Array]]]:
    """The examples that a run trained on, in order, each with its digest.

    Of the batches that were kept; original.py ends the compared runs where they end.
    """
    assert run.recording is not None
    for batch in run.recording.batches:
        if not batch.kept:
            continue
        values = sorted(_converted(read_batch(run.record_dir, batch), terms).items())
        rows = [(path, value) for path, value in values if value.shape[:1] == (batch.size,)]
        for row in range(batch.size):
            # A string of an array of objects is no array by itself.
            yield _digest(rows, row), {path: np.asarray(value[row], value.dtype) for path, value in rows}


def _converted(batch: Mapping[str, Array], terms: Terms | None) -> Mapping[str, Array]:
    """A batch of the original in the form of the migrated program, or as it is where that is not known of it."""
    if terms is None or not terms.data:
        return batch
    try:
        return batch_map.convert(terms.data, batch)
    except ValueError:
        return batch


def _digest(rows: Sequence[tuple[str, Array]], row: int) -> str:
    digest = hashlib.sha256()
    for path, value in rows:
        content = value[row : row + 1]
        digest.update(path.encode())
        digest.update(repr(content.tolist()).encode() if content.dtype == object else content.tobytes())
    return digest.hexdigest()
