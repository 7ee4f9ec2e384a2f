"""Weights on disk: what a run has recorded of them is removed as soon as nobody reads it any more.

A recording holds weights, slots and gradients after several steps, and a verification makes a dozen recordings: of a
program of 100 million weights all of them together would fill a disk. What is left of a replicate is how far each of
its tensors is from those of the run that it repeats.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

from migrator.harness.protocol import measurements, tolerance
from migrator.harness.recording import APART, Recording
from migrator.harness.runs import Run


def weights_of(recording: Recording) -> int:
    """The bytes of the program's weights."""
    return sum(value.nbytes for value in recording.initial.values())


def without_weights(run: Run) -> None:
    """Removes the weights, slots and gradients that a run has recorded after its steps and of its evaluations."""
    for task in run.record_dir.iterdir() if run.record_dir.is_dir() else ():
        for name in ("states", "slots", "gradients", "evaluations"):
            shutil.rmtree(task / name, ignore_errors=True)


def measured(original: Recording, replicate: Run) -> Run:
    """The replicate with the distances of its tensors from the original's in their place."""
    recording = replicate.recording
    if recording is None or recording.apart is not None:
        return replicate
    apart = tolerance.distances(measurements.tensors(original), measurements.tensors(recording))
    first = min(folder for folder in replicate.record_dir.iterdir() if folder.is_dir())
    rows = [[q.family, q.name, q.slot, step, value] for (q, step), value in apart.items()]
    (first / APART).write_text(json.dumps(rows))
    without_weights(replicate)
    kept = {(q.family, q.name, q.slot, step): value for (q, step), value in apart.items()}
    return replace(replicate, recording=replace(recording, states={}, slots={}, gradients={}, raw_slots={}, apart=kept))
