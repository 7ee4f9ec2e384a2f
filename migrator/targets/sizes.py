"""Which variables a mesh divides, by what a device has room for: the fewest whose parts fit."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from migrator.targets.dtensor import UNSHARDED

_UNITS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
_UNITS |= {"ki": 1024, "mi": 1024**2, "gi": 1024**3, "ti": 1024**4}
#: What Keras' optimizers keep beside each weight on a mesh: slots that lie as the weight does, and slots that are whole
#: on every device (counted on tf_keras 2.21; gradient descent has a slot with and without momentum).
_SLOTS = {
    "sgd": (1, 0),
    "adam": (2, 0),
    "adagrad": (0, 1),
    "adadelta": (2, 0),
    "adamax": (2, 0),
    "ftrl": (1, 1),
    "rmsprop": (1, 0),
}
_MORE = {"amsgrad": ("adam",), "momentum": ("rmsprop",), "centered": ("rmsprop",)}


class SizeError(ValueError):
    """A size of memory that cannot be, or that the weights do not fit into: one sentence."""


class Weight(Protocol):
    """What is asked of a weight, see `query.weights.Weight`."""

    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def bytes(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def trained(self) -> bool: ...
    @property
    def behind_images(self) -> bool: ...


@dataclass(frozen=True)
class Choice:
    """The variables that are divided, each with what its axes are divided over; bytes that a device then holds, and
    would hold if all were whole.
    """

    divided: tuple[tuple[str, tuple[str, ...]], ...]
    bytes: int
    whole: int


def memory(text: str) -> int:
    """The bytes of `16GiB`, `512MB` or a number. Raises SizeError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?", text.strip(), re.IGNORECASE)
    size = 0 if found is None or found[2].lower() == "i" else int(float(found[1]) * _UNITS[found[2].lower()])
    if size < 1:
        raise SizeError(f"`{text}` is not a memory size, as in 16GiB")
    return size


def written(size: int) -> str:
    """A number of bytes for people, and exactly."""
    for unit, power in (("GiB", 3), ("MiB", 2), ("KiB", 1)):
        if size >= 1024**power:
            return f"{size / 1024**power:.2f} {unit} ({size:,} bytes)"
    return f"{size:,} bytes"


def slots(optimizer: str, given: Mapping[str, object]) -> tuple[int, int]:
    """How many slots of each weight lie as it does, and how many are whole on every device. Raises SizeError."""
    kind = optimizer.lower()
    if not kind:
        return 0, 0
    if kind not in _SLOTS:
        raise SizeError(f"the number of slots of `{optimizer}` is unknown")
    divided, whole = _SLOTS[kind]
    for name, kinds in _MORE.items():
        # What is not a constant may be anything.
        divided += kind in kinds and name in given and given[name] not in (0, 0.0, False)
    return divided, whole


def choose(weights: Sequence[Weight], kept: tuple[int, int], dimension: str, parts: int, limit: int) -> Choice:
    """The fewest variables to divide so that a device holds at most `limit` bytes of weights, slots and gradients.

    `kept` is as of `slots`. Those that save most are divided first, which makes them the fewest. Raises SizeError.
    """
    divided, whole = kept
    total = sum(one.bytes * (1 + (divided + whole + 1) * one.trained) for one in weights)
    saving: list[tuple[int, Weight, tuple[str, ...]]] = []
    for one in weights:
        axes = _axes(one, dimension, parts)
        if axes is not None and parts > 1:
            moved = one.bytes * (1 + (divided + 1) * one.trained)
            saving.append((moved - moved // parts, one, axes))
    left, chosen = total, []
    for saved, one, axes in sorted(saving, key=lambda each: -each[0]):
        if left <= limit:
            break
        left -= saved
        chosen.append((one.name, axes))
    if left > limit:
        message = (
            f"a device would hold {written(left)} of weights, slots and gradients with all variables "
            f"sharded that `{dimension}={parts}` divides evenly, and {written(total)} with none: "
            f"{written(limit)} are too few"
        )
        largest = max(weights, key=lambda one: one.bytes * (one.name not in dict(chosen)))
        if largest.name not in dict(chosen):
            message += f". `{largest.name}` of {list(largest.shape)} stays unsharded: {_why(largest, dimension, parts)}"
        raise SizeError(message)
    order = [one.name for one in weights]
    return Choice(tuple(sorted(chosen, key=lambda pair: order.index(pair[0]))), left, total)


def _axes(one: Weight, dimension: str, parts: int) -> tuple[str, ...] | None:
    """What the axes of a weight are divided over; None where it stays whole. Filters and averages were not tried."""
    if one.kind == "Dense" and len(one.shape) == 1:
        return (dimension,) if one.shape[0] % parts == 0 else None
    if one.kind not in ("Dense", "Embedding") or len(one.shape) != 2:
        return None
    rows, columns = (size % parts == 0 for size in one.shape)
    by_rows, by_columns = (dimension, UNSHARDED), (UNSHARDED, dimension)
    if one.kind == "Embedding":
        return by_rows if rows else by_columns if columns else None
    # Behind a convolution a kernel that is divided by rows raises (TFM791).
    return by_columns if columns else by_rows if rows and not one.behind_images else None


def _why(one: Weight, dimension: str, parts: int) -> str:
    if one.kind not in ("Dense", "Embedding"):
        return f"a mesh keeps the weights of a `{one.kind}` whole on every device"
    if one.behind_images and one.shape[0] % parts == 0:
        return f"`{dimension}` divides only its rows, which raises an error behind a convolution"
    return f"`{dimension}` divides neither of its axes evenly"


__all__ = ["Choice", "SizeError", "choose", "memory", "slots", "written"]
