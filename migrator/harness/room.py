"""How much of a program's weights its recordings keep on disk, by how many there are.

A recording holds weights, slots and gradients after several steps, and a verification has several recordings at once:
of a program of 100 million weights all of them would fill a disk. Of such a program a recording keeps the first state
and the last, and a recording that is compared with the original's alone keeps its distances from that one.
"""

from __future__ import annotations

from dataclasses import dataclass

from migrator.harness.recording import Recording

#: Bytes of weights, slots and gradients that a verification has on disk at once: half of it of whole trainings, or all
#: of it of single steps, which are taken in parts.
BYTES = 4 << 30
#: Recordings of whole trainings that are there at once: of both programs, of a replicate, and of known-bad versions.
_RECORDINGS = 6


@dataclass(frozen=True)
class Room:
    """After which steps weights, slots and gradients are kept, the last step (without its gradients) aside; and whether
    all recordings are kept `whole`, and runs are made side by side.
    """

    state_steps: tuple[int, ...] = (1, 2, 10)
    whole: bool = True


#: What a program with many weights has.
SPARSE = Room((1,), whole=False)


def bytes_of(recording: Recording) -> tuple[int, int]:
    """The bytes of a program's weights, and of its slots."""
    state = max(recording.slots, key=lambda step: len(recording.slots[step]), default=None)
    slots = {} if state is None else recording.slots[state]
    return sum(value.nbytes for value in recording.initial.values()), sum(value.nbytes for value in slots.values())


def room_of(recording: Recording, most: int = BYTES) -> Room:
    """What the recordings of a program may keep, of which this is the first one."""
    weights, slots = bytes_of(recording)
    states = len(Room.state_steps) + 1
    whole = _RECORDINGS * (weights + states * (2 * weights + slots)) <= most // 2
    return Room() if whole else SPARSE
