"""Which component of a batch of the migrated program is which of the original's, by what they hold.

A migration may read the same examples in another form: X for {"x": X}, int64 labels for int32, classes as one-hot rows,
a weight beside the labels in the place of one among the features. What the program then makes of them is for the levels
after L2 to judge; here it only has to be shown that one form can be computed from the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from migrator.harness.protocol import alike
from migrator.harness.recording import Array

Components = Mapping[str, Array]

#: Batches that have to agree before a way to convert them is believed, where that many were kept.
ENOUGH = 8
# Examples to a key, on the average, and examples to a line: fewer show no rule.
_REPEATED = 4
_COLUMNS = 10_000
# A scaled component was multiplied in float32, and perhaps divided instead.
_ROUNDING = alike.ROUNDING


@dataclass(frozen=True)
class Conversion:
    """How the component `target` of the migrated program's batches comes of the original's `source`.

    `kind` is "same", "cast", "rounded" (as these, but for rounding), "one-hot" (`classes` columns), "class" (the place
    of the one in a one-hot row) or "scaled" (source * `factor` + `offset`, rounded; where they are several, one for
    each number of an example). Then the rows get the shape `row` (of one example; None: that of the source) and the
    type `dtype`; `cast` says of rounded ones that this is another. Rounding is in proportion to the numbers, or to
    `sizes`, the usual ones of the numbers of an example, and `rounding` says which share of it it is. Of kind
    "table" the component is computed in a way that is not known (looked up in a vocabulary, a weight for each
    class): `rows` has it for each example that was seen, by what the original read, or by what the conversion `key`
    makes of that. Of kind "shares" all examples of a batch are the source times a number that comes of the batch as
    a whole: `rows` has what was seen of each batch, by the source in it.
    """

    target: str
    source: str
    kind: str
    dtype: np.dtype[np.generic]
    row: tuple[int, ...] | None = None
    classes: int = 0
    factor: float | tuple[float, ...] = 1.0
    offset: float | tuple[float, ...] = 0.0
    rows: Mapping[bytes, Array] = field(default_factory=dict, repr=False)
    key: Conversion | None = None
    sizes: Array | None = field(default=None, repr=False, compare=False)
    rounding: Array | float = field(default=_ROUNDING, repr=False, compare=False)
    cast: bool = False

    @property
    def known(self) -> bool:
        """Whether it is known of examples that were not seen, too."""
        return self.kind not in ("table", "shares")

    @property
    def of_batches(self) -> bool:
        """Whether it comes of all examples of a batch together: other batches of the same examples tell nothing."""
        return self.kind == "shares"

    def of(self, batch: Components) -> Array:
        """The component in the form of the migrated program, of a batch of the original. ValueError if not known."""
        if self.source not in batch:
            raise ValueError(f"a batch without {self.source}, of which {self.target} is made")
        if self.known:
            return self(batch[self.source])
        if self.of_batches:
            whole = self.rows.get(batch[self.source].tobytes())
            if whole is None:
                raise ValueError(f"what {self.target} is in other batches is not known")
            return whole
        keys = _examples(batch) if self.key is None else _rows(self.key.of(batch))
        if any(key not in self.rows for key in keys):
            raise ValueError(f"what {self.target} is for other examples is not known")
        return np.stack([self.rows[key] for key in keys])

    @property
    def exact(self) -> bool:
        """Whether the converted component is the migrated program's bit for bit."""
        return self.kind not in ("rounded", "scaled")

    @property
    def plain(self) -> bool:
        """Whether the migrated program can read the original's component as it is."""
        return self.kind in ("same", "rounded") and self.source == self.target and self.row is None and not self.cast

    def __call__(self, value: Array) -> Array:
        """The component of a batch in the form of the migrated program."""
        if self.kind == "one-hot":
            flat = value.reshape(len(value), -1)
            value = (flat[..., None] == np.arange(self.classes)).reshape(len(value), -1)
        elif self.kind == "class":
            value = np.argmax(value, axis=-1)
        elif self.kind == "scaled":
            flat = value.astype(np.float64).reshape(len(value), -1) if isinstance(self.factor, tuple) else value
            made = flat.astype(np.float64) * np.asarray(self.factor) + np.asarray(self.offset)
            value = made.reshape(value.shape)
        if self.row is not None:
            value = value.reshape(len(value), *self.row)
        return value if value.dtype == self.dtype else value.astype(self.dtype)

    def __str__(self) -> str:
        if self.of_batches:
            return f"{self.target} is {self.source} times a number of each batch: what comes of it decides"
        if not self.known:
            of = "each example" if self.key is None else f"each {self.key.target}"
            return f"{self.target} is what the migrated program computes for {of}: what comes of it decides"
        form = {
            "same": "as it is",
            "cast": f"as {self.dtype}",
            "rounded": (f"as {self.dtype}, " if self.cast else "") + "but for rounding",
            "one-hot": f"as rows of {self.classes} with a one in each",
            "class": "as the place of the one in each row",
            "scaled": _line(self.factor, self.offset),
        }[self.kind]
        shape = "" if self.row is None else f", an example of shape {list(self.row)}"
        return f"{self.target} is {self.source} {form}{shape}"


def _line(factor: float | tuple[float, ...], offset: float | tuple[float, ...]) -> str:
    if isinstance(factor, tuple) or isinstance(offset, tuple):
        return "with each of its columns scaled and moved"
    return f"times {factor:.6g}" + (f" plus {offset:.6g}" if offset else "")


def same(ours: Array, theirs: Array, conversion: Conversion | None = None) -> bool:
    """Whether two components hold the same, of the same shape and type: but for float32 rounding, where the
    `conversion` that made `ours` is one that rounds.
    """
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return False
    if ours.dtype == object or conversion is None or conversion.exact:
        return bool(np.array_equal(ours, theirs, equal_nan=ours.dtype.kind == "f"))
    if not theirs.ndim:
        return bool(np.abs(float(ours) - float(theirs)) <= _ROUNDING * np.abs(float(theirs)))
    rows = [value.reshape(len(value), -1).astype(np.float64) for value in (ours, theirs)]
    sizes, share = conversion.sizes, conversion.rounding
    if sizes is None or sizes.shape != rows[1].shape[1:]:
        sizes, share = alike.columns(theirs), _ROUNDING
    limits = share * np.maximum(np.abs(np.where(np.isfinite(rows[1]), rows[1], 0.0)), sizes)
    with np.errstate(invalid="ignore"):
        apart = np.abs(rows[0] - rows[1])
    return bool(np.all((apart <= limits) | (rows[0] == rows[1]) | (np.isnan(rows[0]) & np.isnan(rows[1]))))


def _rounding(conversion: Conversion, values: Sequence[Array]) -> Conversion:
    """A conversion that rounds with what rounding may do, of what the original read in several batches."""
    widths = {int(np.prod(value.shape[1:], dtype=np.int64)) for value in values}
    if conversion.exact or any(value.ndim == 0 for value in values) or len(widths) > 1:
        return conversion
    every = np.concatenate([value.reshape(len(value), -1) for value in values])
    sizes = alike.columns(every) * np.abs(np.asarray(conversion.factor)) + np.abs(np.asarray(conversion.offset))
    short = conversion.dtype.kind == "f" and conversion.dtype.itemsize < np.dtype(np.float64).itemsize
    return replace(conversion, sizes=sizes, rounding=_ROUNDING if short else alike.rounding(every))


def _candidates(source: str, target: str, ours: Array, theirs: Array) -> Iterator[Conversion]:
    """Every way in which `theirs` may come of `ours`, the simplest first. Both are of the same examples or not."""
    if ours.ndim == 0 or theirs.ndim == 0:
        if ours.ndim == theirs.ndim and ours.dtype == theirs.dtype:
            yield Conversion(target, source, "same", theirs.dtype)
        return
    row = tuple(int(n) for n in theirs.shape[1:])
    width, own = int(np.prod(row, dtype=np.int64)), int(np.prod(ours.shape[1:], dtype=np.int64))
    form = None if row == tuple(ours.shape[1:]) else row
    if width == own:
        if ours.dtype == theirs.dtype:
            yield Conversion(target, source, "same", theirs.dtype, form)
        elif object not in (ours.dtype, theirs.dtype):
            yield Conversion(target, source, "cast", theirs.dtype, form)
        if ours.dtype.kind == theirs.dtype.kind == "f":
            yield Conversion(target, source, "rounded", theirs.dtype, form, cast=ours.dtype != theirs.dtype)
    numeric = ours.dtype.kind in "biuf" and theirs.dtype.kind in "biuf"
    if numeric and own and width > own and width % own == 0 and _integral(ours):
        classes = width // own
        if ours.size and float(ours.min()) >= 0 and float(ours.max()) < classes:
            yield Conversion(target, source, "one-hot", theirs.dtype, row, classes)
    if numeric and ours.ndim > 1 and ours.shape[-1] > 1 and width * ours.shape[-1] == own and _one_hot(ours):
        yield Conversion(target, source, "class", theirs.dtype, row)


def _integral(value: Array) -> bool:
    return value.dtype.kind in "iub" or bool(np.all(value == np.floor(value)))


def _one_hot(value: Array) -> bool:
    return bool(np.all((value == 0) | (value == 1)) and np.all(value.sum(axis=-1) == 1))


def _scaled(source: str, target: str, ours: Array, theirs: Array) -> Conversion | None:
    """The line that takes the least and the greatest of `ours` to those of `theirs`."""
    if ours.ndim == 0 or ours.size != theirs.size or ours.size < 2 or theirs.dtype.kind != "f":
        return None
    if ours.dtype.kind not in "iuf":
        return None
    left, right = ours.astype(np.float64).reshape(-1), theirs.astype(np.float64).reshape(-1)
    low, high = int(np.argmin(left)), int(np.argmax(left))
    if left[low] == left[high] or not (np.isfinite(left).all() and np.isfinite(right).all()):
        return None
    factor = (right[high] - right[low]) / (left[high] - left[low])
    least = int(np.argmin(np.abs(left)))
    offset = right[least] - factor * left[least]
    if factor == 0.0 or abs(offset) <= _ROUNDING * np.abs(right[least]):
        offset = 0.0
    row = tuple(int(n) for n in theirs.shape[1:])
    form = None if row == tuple(ours.shape[1:]) else row
    return Conversion(target, source, "scaled", theirs.dtype, form, factor=float(factor), offset=float(offset))


def _columns(source: str, target: str, ours: Sequence[Array], theirs: Sequence[Array]) -> Conversion | None:
    """A line of its own for each number of an example, as where features are standardized."""
    both = [(a, b) for a, b in zip(ours, theirs, strict=False) if a.ndim > 1 and a.shape == b.shape]
    if not both or len(both) < min(len(ours), len(theirs)) or both[0][1].dtype.kind != "f":
        return None
    if both[0][0].dtype.kind not in "iuf":
        return None
    left, right = (np.concatenate([one[n].astype(np.float64).reshape(len(one[n]), -1) for one in both]) for n in (0, 1))
    if len(left) < _REPEATED or left.shape[1] > _COLUMNS or not (np.isfinite(left).all() and np.isfinite(right).all()):
        return None
    every = np.arange(left.shape[1])
    low, high = np.argmin(left, axis=0), np.argmax(left, axis=0)
    width = left[high, every] - left[low, every]
    factor = np.divide(right[high, every] - right[low, every], width, out=np.zeros(len(every)), where=width > 0)
    least = np.argmin(np.abs(left), axis=0)
    offset = right[least, every] - factor * left[least, every]
    lines = tuple(map(float, factor)), tuple(map(float, offset))
    return Conversion(target, source, "scaled", both[0][1].dtype, factor=lines[0], offset=lines[1])


def _rows(value: Array) -> list[bytes]:
    return [repr(np.asarray(row).tolist()).encode() if value.dtype == object else row.tobytes() for row in value]


def _examples(batch: Components) -> list[bytes]:
    """What the original read of each example, all components together."""
    several = [_rows(value) for _, value in sorted(batch.items()) if value.ndim]
    return [b"|".join(one) for one in zip(*several, strict=True)]


def _table(
    target: str, ours: Sequence[Components], theirs: Sequence[Components], found: Sequence[Conversion], in_order: bool
) -> Conversion | None:
    """The component as a table of the examples, which others tell: those that came bit for bit of the original's."""
    telling = [one for one in found if one.exact and _tells(one, theirs)]
    if not telling or any(target not in batch or batch[target].ndim == 0 for batch in theirs):
        return None
    keys: list[Conversion | None] = []
    if target.startswith("weights"):  # of a class, say: what is alike has the same
        keys = list(telling)
    elif in_order and not _alike(theirs[0][target], ours[0].values()):
        keys = [None]
    for key in keys:
        rows: dict[bytes, Array] = {}
        tables = (
            [(_examples(own), other) for own, other in zip(ours, theirs, strict=False)]
            if key is None
            else [(_rows(other[key.target]), other) for other in theirs]
        )
        pairs = [(one, row) for names, batch in tables for one, row in zip(names, batch[target], strict=False)]
        alike = all(np.array_equal(rows.setdefault(name, row), row) for name, row in pairs)
        if alike and (key is None or len(rows) * _REPEATED <= len(pairs)):
            return Conversion(target, found[0].source, "table", theirs[0][target].dtype, rows=rows, key=key)
    return None


def _shares(
    target: str, ours: Sequence[Components], theirs: Sequence[Components], found: Sequence[Conversion]
) -> Conversion | None:
    """Weights that are those of the original divided by something of each batch, their sum, say; others tell that the
    examples are the same.
    """
    if not target.startswith("weights") or not any(one.exact and _tells(one, theirs) for one in found):
        return None
    for source in ours[0]:
        pairs = [(own.get(source), other.get(target)) for own, other in zip(ours, theirs, strict=False)]
        if all(a is not None and b is not None and _one_share(a, b) for a, b in pairs):
            rows = {a.tobytes(): b for a, b in pairs if a is not None and b is not None}
            return Conversion(target, source, "shares", theirs[0][target].dtype, rows=rows)
    return None


def _one_share(ours: Array, theirs: Array) -> bool:
    """Whether one component is the other times a positive number, but for rounding."""
    if ours.size != theirs.size or ours.ndim == 0 or {ours.dtype.kind, theirs.dtype.kind} != {"f"}:
        return False
    a, b = ours.astype(np.float64).reshape(-1), theirs.astype(np.float64).reshape(-1)
    factor = float(np.abs(b).max(initial=0.0)) / max(float(np.abs(a).max(initial=0.0)), 1e-300)
    return bool(factor > 0.0 and np.all(np.abs(a * factor - b) <= _ROUNDING * np.abs(b).max()))


def _alike(value: Array, sources: Iterable[Array]) -> bool:
    """Whether a component is of the form of one that the original reads, but for its numbers: other data, then."""
    classes = value.ndim == 2 and value.shape[1] > 1 and value.dtype.kind in "biuf" and _one_hot(value)
    return any(
        (one.dtype == value.dtype and one.shape[1:] == value.shape[1:]) or (classes and one.dtype.kind in "iu")
        for one in sources
    )


def _tells(one: Conversion, theirs: Sequence[Components]) -> bool:
    """Whether a component says which examples are which: it is not the same in all of them."""
    return len({row for batch in theirs if batch[one.target].ndim for row in _rows(batch[one.target])}) > 1


def _share(conversion: Conversion, ours: Sequence[Array], theirs: Sequence[Array], in_order: bool) -> float:
    """The share of the migrated program's rows that the conversion explains."""
    try:
        made = [conversion(value) for value in ours]
    except (ValueError, OverflowError):
        return 0.0
    if in_order:
        agree = [same(a, b, conversion) for a, b in zip(made, theirs, strict=False)]
        return sum(agree) / len(agree) if agree else 0.0
    if any(value.ndim == 0 for value in (*made, *theirs)):
        return 0.0
    if conversion.kind == "rounded":
        return _near(made, theirs)
    if not conversion.exact:
        return 0.0
    known = Counter(row for value in made for row in _rows(value))
    wanted = Counter(row for value in theirs for row in _rows(value))
    total = sum(wanted.values())
    return sum((known & wanted).values()) / total if total else 0.0


def _near(ours: Sequence[Array], theirs: Sequence[Array]) -> float:
    """The share of rows that there are on the other side, but for rounding."""
    width = {int(np.prod(value.shape[1:], dtype=np.int64)) for value in (*ours, *theirs)}
    if len(width) != 1:
        return 0.0
    rows = [np.concatenate([value.reshape(len(value), -1) for value in side]) for side in (ours, theirs)]
    if not len(rows[1]) or not all(np.isfinite(side).all() for side in rows):
        return 0.0
    return sum(one >= 0 for one in alike.pairs(*rows)[0]) / len(rows[1])


def find(
    ours: Sequence[Components], theirs: Sequence[Components], *, in_order: bool = True
) -> tuple[Conversion, ...] | None:
    """The conversion of each component of the migrated program's batches; None where one comes of nothing.

    `ours` and `theirs` are batches of the two programs as they read them, those at the same place being of the same
    examples if `in_order`; else the examples are the same for the most part, in whatever batches. A component of the
    original of the same name is tried first. Different components may come of the same one.
    """
    found, lacking = attempt(ours, theirs, in_order=in_order)
    return None if lacking or not found else found


def attempt(
    ours: Sequence[Components], theirs: Sequence[Components], *, in_order: bool = True
) -> tuple[tuple[Conversion, ...], tuple[str, ...]]:
    """As `find`, with the components of the migrated program that come of nothing behind what was found."""
    if not ours or not theirs or not ours[0] or not theirs[0]:
        return (), ()
    every = ours, theirs
    ours, theirs = ours[:ENOUGH] if in_order else ours, theirs[:ENOUGH] if in_order else theirs
    found, computed = [], []
    for target in theirs[0]:
        wanted = [batch[target] for batch in theirs if target in batch]
        tried: list[tuple[bool, float, int, Conversion]] = []
        for source in ours[0]:
            own = [batch[source] for batch in ours if source in batch]
            ways = list(_candidates(source, target, own[0], wanted[0]))
            line = _scaled(source, target, own[0], wanted[0]) if in_order else None
            lines = [line, _columns(source, target, own, wanted)] if in_order else []
            for rank, way in enumerate([*ways, *(one for one in lines if one is not None)]):
                if way.kind == "rounded" and any(known[:2] == (source != target, -1.0) for known in tried):
                    continue  # it is so bit for bit
                way = _rounding(way, own)
                share = _share(way, own, wanted, in_order)
                if share >= (1.0 if in_order else 0.5):
                    tried.append((source != target, -share, rank, way))
        if tried:
            found.append(min(tried, key=lambda one: one[:3])[3])
        else:
            computed.append(target)
    lacking = []
    for target in computed:
        table = _table(target, *every, [one for one in found if one.known], in_order)
        if table is None and in_order:
            table = _shares(target, *every, [one for one in found if one.known])
        if table is None:
            lacking.append(target)
        else:
            found.append(table)
    return tuple(found), tuple(lacking)


def convert(conversions: Sequence[Conversion], batch: Components) -> dict[str, Array]:
    """A batch of the original as the migrated program reads it."""
    return {one.target: one.of(batch) for one in conversions}


def told(conversions: Sequence[Conversion], ours: Components) -> tuple[str, ...]:
    """What is to be said about another form of the data: each conversion that is one, and what is left out."""
    said = [str(one) for one in conversions if one.target != one.source or one.kind != "same" or one.row is not None]
    used = {one.source for one in conversions}
    left = [path for path in ours if path not in used]
    if not all(one.known for one in conversions):
        left = []  # it may be what another is computed of
    if left:
        said.append(f"the migrated program does not read {', '.join(sorted(left))}")
    return tuple(said)
