"""Reads a checkpoint of the original program with its own TensorFlow, as a state to start single steps from."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np

from migrator.harness import environments
from migrator.harness.recording import Array, Recording
from migrator.harness.runs import Session

_READ = """
import sys, zipfile
import numpy as np
import tensorflow as tf
reader = tf.train.load_checkpoint(sys.argv[1])
names = sorted(reader.get_variable_to_shape_map())
arrays = [(name, np.asarray(reader.get_tensor(name))) for name in names]
with zipfile.ZipFile(sys.argv[2], "w") as archive:
    for name, value in arrays:
        if value.dtype.kind in "biuf":
            with archive.open(name + ".npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, value)
"""


class NoState(Exception):
    """A checkpoint holds no state of this program; the message says what is missing."""


def with_checkpoint(session: Session, original: Recording, prefix: Path) -> Recording:
    """The recording with the weights and slots of a checkpoint as those of the step that it was written at. NoState."""
    path = session.new_folder("checkpoint") / "values.npz"
    command = [str(environments.original_python()), "-c", _READ, str(prefix), str(path)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        said = (made.stderr.strip().splitlines() or ["it cannot be read"])[-1]
        raise NoState(f"checkpoint {prefix}: {said}")
    with np.load(path) as archive:
        values: dict[str, Array] = {name: archive[name] for name in archive.files}
    if "global_step" not in values:
        raise NoState(f"checkpoint {prefix} has no global_step: it was not written by TensorFlow 1")
    weights = {one.name: _taken(values, one.name, one.shape, prefix) for one in original.variables}
    slots: dict[tuple[str, str], Array] = {}
    shapes = {one.name: one.shape for one in original.variables}
    for key in next(iter(original.slots.values()), {}):
        name = original.slot_variables.get(key)
        if name is None:
            raise NoState(f"the name of {key[1]} of {key[0]} in a checkpoint is unknown")
        slots[key] = _taken(values, name, shapes[key[0]], prefix)
    step = int(values["global_step"])
    return replace(original, states={**original.states, step: weights}, slots={**original.slots, step: slots})


def _taken(values: dict[str, Array], name: str, shape: tuple[int, ...], prefix: Path) -> Array:
    if name not in values:
        raise NoState(f"checkpoint {prefix} has no {name}")
    if values[name].shape != shape:
        raise NoState(f"{name} has shape {list(values[name].shape)} in checkpoint {prefix}, and {list(shape)} here")
    return values[name]
