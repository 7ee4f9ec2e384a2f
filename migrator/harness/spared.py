"""Weights on disk: what a run has recorded of them is removed as soon as nobody reads it any more.

What is left of a replicate, and of a known-bad version where there is little room, is how far each of its tensors is
from those of the run of the original that it is compared with.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from migrator.harness.protocol import ladder, measurements, tolerance
from migrator.harness.recording import APART, Array, Recording, task_folders, with_states
from migrator.harness.room import Room
from migrator.harness.runs import Run

_TENSORS = ("states", "slots", "gradients")


def without_weights(run: Run) -> None:
    """Removes the weights, slots and gradients that a run has recorded after its steps and of its evaluations."""
    for task in run.record_dir.iterdir() if run.record_dir.is_dir() else ():
        for name in (*_TENSORS, "evaluations"):
            shutil.rmtree(task / name, ignore_errors=True)


def bare(run: Run) -> Run:
    """A run with nothing left of its weights, those before the first step included; its steps and settings stay."""
    without_weights(run)
    for path in run.record_dir.glob("*/initial.npz"):
        path.unlink()
    recording = run.recording
    return run if recording is None else replace(run, recording=replace(with_states(recording, ()), initial={}))


def emptied(run: Run, room: Room) -> Run:
    """A run whose tensors nobody asks for any more; they stay where there is room for everything."""
    if run.recording is None or room.whole:
        return run
    without_weights(run)
    return replace(run, recording=with_states(run.recording, ()))


def within(run: Run, room: Room) -> Run:
    """A run that was made before it was known how much room there is, without the states that there is none for."""
    recording = run.recording
    if recording is None or room.whole:
        return run
    kept = {*room.state_steps, max(recording.states, default=0)}
    for kind in _TENSORS:
        for path in run.record_dir.glob(f"*/{kind}/*"):
            if path.stem.isdigit() and int(path.stem) not in kept:
                path.unlink(missing_ok=True)
    return replace(run, recording=with_states(recording, kept))


def measured(original: Recording, other: Run, rename: Mapping[str, str] | None = None, good: Run | None = None) -> Run:
    """A run with the distances of its tensors from the original's in their place.

    A run of the migrated program is given with the original's names of its variables; a known-bad version of it with
    the `good` run, too: whether it is another one at all cannot be told later.
    """
    recording = other.recording
    if recording is None or recording.apart is not None:
        return other
    unmoved = None
    if good is not None and good.recording is not None:
        unmoved = ladder.unobservable(recording, good.recording)
    apart = tolerance.distances(measurements.tensors(original), measurements.tensors(recording, rename))
    first = next(iter(task_folders(other.record_dir).values()))
    rows = [[q.family, q.name, q.slot, step, value] for (q, step), value in apart.items()]
    (first / APART).write_text(json.dumps(rows))
    kept = {(q.family, q.name, q.slot, step): value for (q, step), value in apart.items()}
    if rename is None:  # a replicate, of which nobody asks where it started
        left = bare(other)
    else:
        without_weights(other)
        left = replace(other, recording=with_states(recording, ()))
    assert left.recording is not None
    return replace(left, recording=replace(left.recording, apart=kept, unmoved=unmoved))


def sharing(original: Recording, other: Run, rename: Mapping[str, str]) -> Run:
    """A run of the migrated program whose values before the first step are the original's own arrays where they are
    the same; where all are, its file of them is removed.
    """
    recording = other.recording
    if recording is None:
        return other

    def shared(name: str, value: Array) -> Array:
        known = original.initial.get(rename.get(name, name))
        return known if known is not None and np.array_equal(known, value) else value

    initial = {name: shared(name, value) for name, value in recording.initial.items()}
    if all(initial[name] is not value for name, value in recording.initial.items()):
        for path in other.record_dir.glob("*/initial.npz"):
            path.unlink()
    return replace(other, recording=replace(recording, initial=initial))
