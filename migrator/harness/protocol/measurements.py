"""A recording as a flat table of measured quantities, in the original's names."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from migrator.harness.protocol.compare import Array, Distance
from migrator.harness.recording import Recording

ACTIVATION, LOSS, REGULARIZATION = "activation", "loss", "regularization"
GRADIENT, STATE, SLOT = "gradient", "state", "slot"


@dataclass(frozen=True, order=True)
class Quantity:
    """One thing that is measured at several steps.

    For a loss `name` is the position of the trainer among the trainers ("0", "1", ...), so that the chief of
    one cluster can stand against the worker of another; for an activation it is the original's name of the
    layer's first weight ("name#2" for the layer's second call); otherwise it is the original's variable name,
    for a slot followed by the canonical name of the slot.
    """

    family: str
    name: str
    slot: str = ""

    @property
    def variable(self) -> str:
        """The original's name of the variable that this is about; no meaning for losses."""
        return self.name.partition("#")[0] if self.family == ACTIVATION else self.name

    def __str__(self) -> str:
        if self.family == LOSS:
            return f"loss of trainer {self.name}"
        if self.family == ACTIVATION:
            _, _, call = self.name.partition("#")
            return f"output of the layer of {self.variable}" + (f", call {call}" if call else "")
        if self.family == SLOT:
            return f"{self.slot} of {self.name}"
        if self.family == GRADIENT:
            return f"gradient of {self.name}"
        return self.name if self.family == STATE else self.family


Measurements = dict[tuple[Quantity, int], Array]
#: What is compared with the original's: some of it may be known by its distances alone.
Others = Mapping[tuple[Quantity, int], Array | Distance]

_ROLES = ("local", "chief", "master", "worker")


def trainers(recording: Recording) -> tuple[str, ...]:
    """The tasks that took steps, chief first, then by index."""

    def position(task: str) -> tuple[int, int]:
        role, _, index = task.partition(":")
        return (_ROLES.index(role) if role in _ROLES else len(_ROLES), int(index or 0))

    return tuple(sorted({step.task for step in recording.steps}, key=position))


def losses(recording: Recording) -> Measurements:
    """The loss of every step of every trainer, as float32 scalars."""
    positions = {task: str(i) for i, task in enumerate(trainers(recording))}
    return {
        (Quantity(LOSS, positions[step.task]), step.number): np.asarray(step.loss, np.float32)
        for step in recording.steps
    }


def regularization(recording: Recording) -> Measurements:
    """The regularisation part of the first loss, if the program has any."""
    if recording.regularization is None:
        return {}
    return {(Quantity(REGULARIZATION, "total"), 1): np.asarray(recording.regularization, np.float32)}


def activations(recording: Recording, to_original: Mapping[str, str] | None = None) -> Measurements:
    """The outputs of the layers at step 1, in call order, under the original's names of their first weights."""
    table: Measurements = {}
    for key, value in recording.activations.items():
        variable, mark, call = key.partition("#")
        name = (to_original or {}).get(variable, variable) + mark + call
        table[Quantity(ACTIVATION, name), 1] = np.asarray(value)
    return table


def tensors(recording: Recording, to_original: Mapping[str, str] | None = None) -> Measurements:
    """Gradients, weights and optimizer slots at every step at which they were recorded.

    `to_original` renames a migrated recording's variables; a variable that it does not know keeps its own
    name, so that it shows up as missing on the other side.
    """

    def name(variable: str) -> str:
        return to_original.get(variable, variable) if to_original is not None else variable

    table: Measurements = {}
    for step, gradients in recording.gradients.items():
        table.update({(Quantity(GRADIENT, name(v)), step): np.asarray(value) for v, value in gradients.items()})
    for step, states in recording.states.items():
        table.update({(Quantity(STATE, name(v)), step): np.asarray(value) for v, value in states.items()})
    for step, slots in recording.slots.items():
        table.update({(Quantity(SLOT, name(v), s), step): np.asarray(value) for (v, s), value in slots.items()})
    return table


def gone(recording: Recording, among: Container[tuple[Quantity, int]]) -> dict[tuple[Quantity, int], Distance]:
    """What is known of a recording's tensors that are gone, by the original's names, as far as it is `among` what is
    compared; nothing where they are there.
    """
    known = {(Quantity(*names), step): Distance(one) for (*names, step), one in (recording.apart or {}).items()}
    return {key: one for key, one in known.items() if key in among}


def everything(recording: Recording, to_original: Mapping[str, str] | None = None) -> Measurements:
    """Layer outputs, losses, regularisation and tensors in one table."""
    return {
        **activations(recording, to_original),
        **losses(recording),
        **regularization(recording),
        **tensors(recording, to_original),
    }


def steps_of(table: Iterable[tuple[Quantity, int]]) -> tuple[int, ...]:
    """The steps at which a table has values, ascending."""
    return tuple(sorted({step for _, step in table}))
