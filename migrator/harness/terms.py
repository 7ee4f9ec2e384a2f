"""What the migrated program recorded, in the original's terms: its batches by what they hold, its weights as the
original keeps them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from migrator.harness.protocol import batch_map, l2_data, measurements
from migrator.harness.protocol.batch_map import Conversion
from migrator.harness.protocol.name_map import NameMap
from migrator.harness.protocol.weight_map import WeightMap
from migrator.harness.recording import Array, Batch, Recording, RecordingError, converted_batches, read_batch
from migrator.harness.runs import Run, Session


@dataclass(frozen=True)
class Terms:
    """How the migrated program's recordings are put into the original's terms.

    `data` makes its batches of the original's; empty where both read the same form. `reference` is the run of the
    original that the batches are those of. `own` are values of variables that only the migrated program has. `said` is
    what a report has to say about the form of the data. `without_gradients`: those that the migrated program takes are
    not those that it applies.
    """

    weights: WeightMap = field(default_factory=WeightMap)
    data: tuple[Conversion, ...] = ()
    reference: Run | None = None
    own: Mapping[str, Array] = field(default_factory=dict)
    said: tuple[str, ...] = ()
    without_gradients: bool = False

    def initial(self, values: Mapping[str, Array], names: NameMap) -> dict[str, Array]:
        """Values of the original's weights as the migrated program is given them, by its names."""
        return {**self.own, **self.weights.initial(values, names.to_migrated())}

    def of(self, run: Run, reference: Run | None = None) -> Run:
        """A run of the migrated program in the original's terms; `reference` is the original's run beside it, where
        that is another one.
        """
        if run.recording is None:
            return run
        recording = self._translated(run.recording)
        beside = reference or self.reference
        if self.data and beside is not None:
            recording = replace(recording, batches=_batches(beside, run, self.data))
        return replace(run, recording=recording)

    def weights_of(self, run: Run) -> Run:
        """A run of the migrated program with its weights in the original's terms."""
        return run if run.recording is None else replace(run, recording=self._translated(run.recording))

    def _translated(self, recording: Recording) -> Recording:
        found = self.weights.translate(recording)
        return replace(found, gradients={}) if self.without_gradients else found

    def replay(self, session: Session, record_dir: Path) -> str:
        """The folder of recorded batches to replay to the migrated program in the place of an original's."""
        if all(one.plain for one in self.data):
            return str(record_dir)
        folder = session.new_folder("converted batches")
        return str(converted_batches(record_dir, folder, lambda batch: batch_map.convert(self.data, batch)))


#: As shares of what they hold: gradients that are further apart are others, weights that are closer have moved alike.
_APART, _ALIKE = 1e-3, 1e-5


def applies_others(original: Recording, migrated: Recording | None, rename: Mapping[str, str]) -> bool:
    """Whether a program that moves its weights by hand does something to the gradients first that its tape does not
    show, as adding a decay of the weights: they are not those that the original applies, but the weights move alike.
    `migrated` is in the original's form, and `rename` its names.
    """
    if migrated is None or not migrated.by_hand:
        return False

    def pairs(ours: Mapping[str, Array], theirs: Mapping[str, Array]) -> list[tuple[Array, Array]]:
        named = {rename.get(name, name): value for name, value in theirs.items()}
        return [(ours[name], value) for name, value in named.items() if name in ours]

    moved = pairs(original.states.get(1, {}), migrated.states.get(1, {}))
    given = pairs(original.gradients.get(1, {}), migrated.gradients.get(1, {}))
    alike = bool(moved) and all(_near(one, other, _ALIKE) for one, other in moved)
    return alike and any(not _near(one, other, _APART) for one, other in given)


def _near(one: Array, other: Array, share: float) -> bool:
    apart = np.linalg.norm(one.astype(np.float64) - other.astype(np.float64)) if one.shape == other.shape else np.inf
    return bool(apart <= share * np.linalg.norm(one.astype(np.float64)))


def _kept(run: Run) -> list[tuple[Batch, dict[str, Array]]]:
    """The batches of a run that were kept, of each trainer in order."""
    assert run.recording is not None
    found = []
    for batch in run.recording.batches:
        if batch.kept:
            try:
                found.append((batch, read_batch(run.record_dir, batch)))
            except RecordingError:
                continue
    return found


def _form(recording: Recording) -> list[tuple[str, str, tuple[int, ...]]]:
    return [
        (path, dtype, tuple(shape[1:])) for batch in recording.batches[:1] for path, dtype, shape, _ in batch.components
    ]


def same_form(original: Recording, migrated: Recording) -> bool:
    """Whether both read components of the same names, types and shapes."""
    return _form(original) == _form(migrated)


def with_data(terms: Terms, original: Run, migrated: Run, *, random_order: bool) -> Terms:
    """The terms with how the migrated program's batches come of the original's, where they have another form."""
    ours, theirs = original.recording, migrated.recording
    assert ours is not None and theirs is not None
    if not ours.batches or not theirs.batches or l2_data.same_sequences(ours, theirs):
        return terms
    left, right = _kept(original), _kept(migrated)
    if not random_order:
        task = measurements.trainers(ours)[0], measurements.trainers(theirs)[0]
        left = [(b, v) for b, v in left if b.task == task[0]]
        right = [(b, v) for b, v in right if b.task == task[1]]
    found = batch_map.find([v for _, v in left], [v for _, v in right], in_order=not random_order)
    if found is None or not _of_all(found, [values for _, values in left]):
        return terms
    if random_order and same_form(ours, theirs) and not all(one.plain for one in found):
        return terms  # what is in the place of another was found by chance
    said = batch_map.told(found, left[0][1])
    unseen = [batch.step for batch in (*ours.batches, *theirs.batches) if not batch.kept]
    if said and unseen:
        said += (f"batches from step {min(unseen)} on were not kept: what has another form was not compared there",)
    return replace(terms, data=found, reference=original, said=said) if said else terms


def _of_all(found: Sequence[Conversion], ours: Sequence[Mapping[str, Array]]) -> bool:
    """Whether each batch of the original can be put in the form of the migrated program: what that computes is known
    of what it read alone, and it may have read less.
    """
    if all(one.known for one in found):
        return True
    try:
        for values in ours:
            batch_map.convert(found, values)
    except ValueError:
        return False
    return True


def in_any_order(original: Run, migrated: Run) -> tuple[tuple[Conversion, ...], tuple[str, ...]]:
    """How the migrated program's batches come of the original's, wherever the examples stand in these; and the
    components that hold nothing of what the original reads, be it at the same place or elsewhere.
    """
    left, right = ([values for _, values in _kept(run)] for run in (original, migrated))
    found, lacking = batch_map.attempt(left, right, in_order=False)
    if lacking:
        at_their_place = {one.target for one in batch_map.attempt(left, right)[0]}
        lacking = tuple(one for one in lacking if one not in at_their_place)
    return found, lacking


def _batches(original: Run, migrated: Run, conversions: Sequence[Conversion]) -> tuple[Batch, ...]:
    """The migrated program's batches; one that holds what a batch of the original holds is that batch.

    The batch at the same place is looked at first. One that was not kept is told by the components that both programs
    read in the same form alone.
    """
    ours, theirs = original.recording, migrated.recording
    assert ours is not None and theirs is not None
    tasks = dict(zip(measurements.trainers(theirs), measurements.trainers(ours), strict=False))
    at = {(batch.task, batch.step): batch for batch in ours.batches}
    made: list[Batch] = []
    anywhere: dict[tuple[tuple[str, bytes], ...], Batch] | None = None
    for batch in theirs.batches:
        counterpart = at.get((tasks.get(batch.task, ""), batch.step))
        if counterpart is None or not _same(original, migrated, counterpart, batch, conversions):
            if anywhere is None:
                anywhere = _by_content(original, conversions) if all(one.exact for one in conversions) else {}
            counterpart = anywhere.get(_content(read_batch(migrated.record_dir, batch))) if batch.kept else None
        made.append(
            batch
            if counterpart is None
            else replace(counterpart, task=batch.task, step=batch.step, kept=batch.kept and counterpart.kept)
        )
    return tuple(made)


def _content(values: Mapping[str, Array]) -> tuple[tuple[str, bytes], ...]:
    return tuple(
        (path, f"{value.dtype}{value.shape}".encode() + repr(value.tolist()).encode())
        if value.dtype == object
        else (path, f"{value.dtype}{value.shape}".encode() + value.tobytes())
        for path, value in sorted(values.items())
    )


def _by_content(original: Run, conversions: Sequence[Conversion]) -> dict[tuple[tuple[str, bytes], ...], Batch]:
    found = {}
    for batch, values in _kept(original):
        try:
            found[_content(batch_map.convert(conversions, values))] = batch
        except ValueError:  # what the migrated program would have computed of a batch that it never read
            continue
    return found


def _same(original: Run, migrated: Run, ours: Batch, theirs: Batch, conversions: Sequence[Conversion]) -> bool:
    if ours.kept and theirs.kept:
        values = read_batch(migrated.record_dir, theirs)
        source = read_batch(original.record_dir, ours)
        try:
            made = batch_map.convert(conversions, source)
        except (ValueError, KeyError):
            return False
        ways = {one.target: one for one in conversions}
        return set(made) == set(values) and all(batch_map.same(made[path], values[path], ways[path]) for path in made)
    left = {path: (dtype, tuple(shape), digest) for path, dtype, shape, digest in ours.components}
    right = {path: (dtype, tuple(shape), digest) for path, dtype, shape, digest in theirs.components}
    if set(right) != {one.target for one in conversions}:
        return False
    return all(
        left[one.source] == right[one.target] if one.kind == "same" and one.row is None else _rows(left, right, one)
        for one in conversions
    )


def _rows(left: Mapping[str, Any], right: Mapping[str, Any], one: Conversion) -> bool:
    """Whether as many examples are there, where no more is known."""
    return bool(left[one.source][1][:1] == right[one.target][1][:1])
