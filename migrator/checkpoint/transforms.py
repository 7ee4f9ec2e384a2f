"""How the values of a TensorFlow 1 variable become those of a Keras weight: data that can be applied and inverted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from migrator.pairing import equal_zip

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Transpose:
    """The axes in another order, as `numpy.transpose` has them."""

    axes: tuple[int, ...]

    def apply(self, values: Array) -> Array:
        """The Keras values of TensorFlow 1 values."""
        return np.transpose(values, self.axes)

    @property
    def inverse(self) -> Transpose:
        """What leads back."""
        return Transpose(tuple(int(axis) for axis in np.argsort(self.axes)))


@dataclass(frozen=True)
class Scale:
    """Every element times a factor: the momentum slot of Keras is -rate times that of TensorFlow 1."""

    factor: float

    def apply(self, values: Array) -> Array:
        """The Keras values of TensorFlow 1 values."""
        scaled: Array = (values * values.dtype.type(self.factor)).astype(values.dtype)
        return scaled

    @property
    def inverse(self) -> Scale:
        """What leads back, to rounding."""
        return Scale(1.0 / self.factor)


@dataclass(frozen=True)
class Gates:
    """The last axis in blocks of equal size, block i of the result being block `order[i]`; then `added` to each block.

    The gates of an LSTM stand as i, j, f, o in TensorFlow 1 and as i, f, c, o in Keras: order (0, 2, 1, 3). The forget
    bias, which TensorFlow 1 adds in every step, is part of Keras' bias: added (0, 1, 0, 0).
    """

    order: tuple[int, ...]
    added: tuple[float, ...] = ()

    def apply(self, values: Array) -> Array:
        """The Keras values of TensorFlow 1 values."""
        blocks = np.split(values, len(self.order), axis=-1)
        moved = [blocks[index] for index in self.order]
        if self.added:
            moved = [block + block.dtype.type(more) for block, more in equal_zip(moved, self.added)]
        return np.concatenate(moved, axis=-1)

    @property
    def inverse(self) -> Gates:
        """What leads back, to rounding."""
        order = tuple(int(index) for index in np.argsort(self.order))
        return Gates(order, tuple(-self.added[index] for index in order) if self.added else ())


Transform = Union[Transpose, Scale, Gates]


@dataclass(frozen=True)
class Entry:
    """One Keras tensor and what it is made of.

    `sources` are names in the TensorFlow 1 checkpoint, several for the parts of a partitioned variable that were saved
    one by one; they are joined along `axis`. `rows` are those of the joined values that belong to this tensor (None:
    all): a TensorFlow 1 LSTM keeps in one kernel what Keras keeps in two.
    """

    target: str
    sources: tuple[str, ...]
    axis: int = 0
    rows: tuple[int, int] | None = None
    transforms: tuple[Transform, ...] = ()

    def to_keras(self, values: Mapping[str, Array]) -> Array:
        """The Keras tensor, from the values of a TensorFlow 1 checkpoint."""
        parts = [values[name] for name in self.sources]
        joined = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=self.axis)
        if self.rows is not None:
            joined = joined[slice(*self.rows)]
        for transform in self.transforms:
            joined = transform.apply(joined)
        return joined

    def from_keras(self, value: Array) -> Array:
        """The joined TensorFlow 1 values, or those of its `rows`."""
        for transform in reversed(self.transforms):
            value = transform.inverse.apply(value)
        return value


def back(
    entries: Iterable[Entry], keras: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, Array]:
    """The tensors of a TensorFlow 1 checkpoint, of the given shapes, from Keras tensors."""
    found: dict[str, Array] = {}
    for entry in entries:
        value = entry.from_keras(keras[entry.target])
        if entry.rows is not None:
            (name,) = entry.sources
            found.setdefault(name, np.zeros(shapes[name], value.dtype))[slice(*entry.rows)] = value
        elif len(entry.sources) == 1:
            found[entry.sources[0]] = value
        else:
            ends = np.cumsum([shapes[name][entry.axis] for name in entry.sources])[:-1]
            found.update(equal_zip(entry.sources, np.split(value, ends, axis=entry.axis)))
    return found


def lstm(
    kernel: str, bias: str, targets: Sequence[str], inputs: int, units: int, forget_bias: float = 1.0
) -> tuple[Entry, ...]:
    """The entries of an LSTM: `targets` are Keras' kernel, recurrent kernel and bias.

    TensorFlow 1 has one kernel of [inputs + units, 4 * units], gates i, j, f, o, and adds `forget_bias` as it runs.
    """
    order = (0, 2, 1, 3)
    return (
        Entry(targets[0], (kernel,), rows=(0, inputs), transforms=(Gates(order),)),
        Entry(targets[1], (kernel,), rows=(inputs, inputs + units), transforms=(Gates(order),)),
        Entry(targets[2], (bias,), transforms=(Gates(order, (0.0, forget_bias, 0.0, 0.0)),)),
    )


def describe(entry: Entry) -> str:
    """What an entry does to values, in a few words; empty for nothing."""
    words = [f"{len(entry.sources)} parts joined"] if len(entry.sources) > 1 else []
    if entry.rows is not None:
        words.append(f"rows {entry.rows[0]} to {entry.rows[1]}")
    for one in entry.transforms:
        if isinstance(one, Transpose):
            words.append("transposed")
        elif isinstance(one, Scale):
            words.append(f"times {one.factor:g}")
        else:
            words.append("gates reordered" + (", forget bias added" if any(one.added) else ""))
    return ", ".join(words)
