"""Which tensor of a TensorFlow 1 checkpoint is which tensor of a migrated program: the name map as entries."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from migrator.checkpoint.transforms import Array, Entry, Scale, Transform
from migrator.harness.protocol import name_map
from migrator.harness.recording import Variable

STEP = "global_step"
ITERATIONS = "iterations"
_PART = re.compile(r"/part_(\d+)(?=/|$)")
_POWER = re.compile(r"(?:.*/)?beta([12])_power(?:_\d+)?")
_NOT_TRAINED = ("moving_mean", "moving_variance")

# Keras optimizer -> its slots, in the order in which the TensorFlow 1 optimizer made them.
_AVERAGE = "average"  # what a program calls the moving average of a weight that its optimizer keeps
_SLOTS: Mapping[str, tuple[str, ...]] = {
    "AdagradDAOptimizer": ("gradient_accumulator", "accumulator"),
    "Adadelta": ("accumulated_grad", "accumulated_delta_var"),
    "Adagrad": ("accumulator",),
    "Adam": ("m", "v"),
    "Adamax": ("m", "u"),
    "Ftrl": ("accumulator", "linear"),
    "RMSprop": ("velocity", "momentum"),
    "SGD": ("m",),
}
_CENTERED = ("velocity", "average_gradient", "momentum")
# Of the classes in tf.keras.optimizers.legacy, where they are others.
_OLDER_SLOTS: Mapping[str, tuple[str, ...]] = {
    "Adadelta": ("accum_grad", "accum_var"),
    "Adamax": ("m", "v"),
    "RMSprop": ("rms", "momentum"),
    "SGD": ("momentum",),
}
_OLDER_CENTERED = ("rms", "mg", "momentum")
_BY_NAME = {"adam_m": "m", "adam_v": "v"}  # of optimizers that people wrote after BERT's


class CheckpointError(Exception):
    """What stands in the way, with the code of its page."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Tensors:
    """The whole variables of a TensorFlow 1 checkpoint: names of what is stored by the name of the variable.

    `created` are the trainable flags of variables in the order in which the graph made them; None where nobody knows.
    """

    stored: Mapping[str, tuple[str, ...]]
    shapes: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, str]
    axes: Mapping[str, int]
    created: Mapping[str, bool] | None


@dataclass(frozen=True)
class CheckpointMap:
    """The entries, what the pairing of the weights rests on, and what neither side has a counterpart for.

    `powers` are Adam's beta powers: names in the checkpoint with the setting that they are powers of. `alone` are
    tensors of the checkpoint that the migrated program does not need; `inert` are slots that nothing ever reads.
    """

    entries: tuple[Entry, ...]
    how: str
    powers: Mapping[str, str] = field(default_factory=dict)
    alone: tuple[str, ...] = ()
    inert: tuple[str, ...] = ()
    step: str | None = None


def read_tensors(values: Mapping[str, Array], created: Sequence[Mapping[str, Any]] | None) -> Tensors:
    """The variables of a checkpoint; parts that were saved one by one are one variable."""
    stored: dict[str, list[str]] = {}
    for name in values:
        stored.setdefault(_PART.sub("", name, count=1), []).append(name)
    names: dict[str, tuple[str, ...]] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    axes: dict[str, int] = {}
    for whole, parts in stored.items():
        if whole in values and len(parts) > 1:
            raise CheckpointError("TFM860", f"`{whole}` is stored both whole and in parts")
        parts.sort(key=_number)
        names[whole] = tuple(parts)
        pieces = [values[name].shape for name in parts]
        axis = next((i for i in range(len(pieces[0])) if len({piece[i] for piece in pieces}) > 1), 0)
        axes[whole] = axis
        shape = list(pieces[0])
        if len(parts) > 1:
            shape[axis] = sum(piece[axis] for piece in pieces)
        shapes[whole] = tuple(shape)
    flags: dict[str, bool] | None = None
    if created is not None:
        flags = {}
        for one in created:
            whole = _PART.sub("", one["name"], count=1)
            if whole in names:
                flags[whole] = flags.get(whole, False) or bool(one["trainable"])
    dtypes = {whole: str(values[parts[0]].dtype) for whole, parts in names.items()}
    return Tensors(names, shapes, dtypes, axes, flags)


def _number(name: str) -> tuple[int, str]:
    found = _PART.search(name)
    return (int(found.group(1)) if found else 0, name)


def slot_of(name: str, shapes: Mapping[str, tuple[int, ...]], trained: Iterable[str]) -> str | None:
    """The variable that a name is a slot of: `dense/kernel` for `dense/kernel/Adam` and `train/dense/kernel/Adam`."""
    trained = set(trained)
    base = name.rpartition("/")[0]
    while base:
        if base in trained and base != name and shapes[base] == shapes[name]:
            return base
        base = base.partition("/")[2]
    return None


def model_variables(
    tensors: Tensors, weights: Collection[str] = ()
) -> tuple[list[str], dict[str, list[str]], list[str], str | None]:
    """(variables of the model, slots by variable, Adam's powers, the global step) of a checkpoint.

    What `weights` of the program are called is no slot: a train_op of the program's own keeps its slots as weights.
    """
    names = list(tensors.created) if tensors.created is not None else sorted(tensors.stored, key=natural)
    left = [name for name in tensors.stored if name not in set(names)]
    names += sorted(left, key=natural)
    step = next((name for name in names if name == STEP), None)
    powers = [name for name in names if _POWER.fullmatch(name) and tensors.shapes[name] == ()]
    plain = [name for name in names if name != step and name not in powers]
    flags = tensors.created
    if flags is not None and any(flags.values()):
        trained = [name for name in plain if flags.get(name, False)]
    else:
        trained = [name for name in plain if slot_of(name, tensors.shapes, plain) is None]
    slots: dict[str, list[str]] = {}
    variables: list[str] = []
    for name in plain:
        owner = None if name in trained or name in weights else slot_of(name, tensors.shapes, trained)
        if owner is None:
            variables.append(name)
        else:
            slots.setdefault(owner, []).append(name)
    for found in slots.values():
        found.sort(key=natural)
    return variables, slots, powers, step


def natural(name: str) -> list[tuple[int, str]]:
    """A sorting key: `dense_2` before `dense_10`."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def match(
    tensors: Tensors,
    weights: Sequence[Variable],
    slots: Sequence[tuple[str, str]],
    optimizer: Mapping[str, Any] | None,
    user: Mapping[str, str] | None = None,
) -> CheckpointMap:
    """The map between a checkpoint and a model.

    `slots` are (weight, slot name) of the Keras optimizer, which `optimizer` describes (None: the model has none).
    Raises CheckpointError where the two do not fit.
    """
    variables, stored_slots, powers, step = model_variables(tensors, {weight.name for weight in weights})
    pairs, how, alone = _pair(tensors, variables, weights, user or {})
    entries = [_entry(tensors, name, f"weight:{weight}") for name, weight in pairs]
    inert: list[str] = []
    named_powers: dict[str, str] = {}
    if optimizer is not None:
        wanted: dict[str, list[str]] = {}
        for weight, slot in slots:
            wanted.setdefault(weight, []).append(slot)
        for name, weight in pairs:
            found, unread = _slots(tensors, name, stored_slots.get(name, []), weight, wanted.get(weight, []), optimizer)
            entries += found
            inert += unread
        if wanted and _order(optimizer) and not any(stored_slots.get(name) for name, _ in pairs):
            kind = optimizer["kinds"][0]
            raise CheckpointError("TFM864", f"the program's {kind} has slots, but the checkpoint has none")
        if step is None:
            raise CheckpointError("TFM861", f"the checkpoint has no `{STEP}`, from which the optimizer counts")
        entries.append(Entry(ITERATIONS, (step,)))
        for name in powers:
            which = _POWER.fullmatch(name)
            assert which is not None
            if f"beta_{which.group(1)}" in optimizer["settings"]:
                named_powers[name] = f"beta_{which.group(1)}"
    used = {source for entry in entries for source in entry.sources} | set(inert) | set(named_powers)
    rest = [name for parts in tensors.stored.values() for name in parts if name not in used]
    return CheckpointMap(tuple(entries), how, named_powers, tuple(sorted({*alone, *rest})), tuple(inert), step)


def _entry(tensors: Tensors, name: str, target: str, transforms: tuple[Transform, ...] = ()) -> Entry:
    return Entry(target, tensors.stored[name], tensors.axes[name], None, transforms)


def _pair(
    tensors: Tensors, variables: Sequence[str], weights: Sequence[Variable], user: Mapping[str, str]
) -> tuple[list[tuple[str, str]], str, list[str]]:
    """(pairs, what they rest on, variables that only the checkpoint has)."""
    flags = tensors.created
    originals = [
        Variable(
            name,
            tensors.shapes[name],
            tensors.dtypes[name],
            name_map.leaf(name) not in _NOT_TRAINED if flags is None else flags.get(name, False),
            order,
            len(tensors.stored[name]),
        )
        for order, name in enumerate(variables)
    ]
    if len(originals) > len(weights):
        # What is not trained may have no counterpart: a rate that optimize_loss keeps, moving averages of weights.
        kept = [one for one in originals if one.trainable or name_map.leaf(one.name) in _NOT_TRAINED]
        spare = [one.name for one in originals if one not in kept]
        if len(kept) >= len(weights) or not spare:
            originals = kept
    try:
        if flags is None and not user:
            found = _without_order(originals, weights)
        else:
            found = name_map.build(originals, weights, user)
    except name_map.NameMapError as error:
        raise CheckpointError("TFM863", str(error)) from None
    if found.only_original or found.only_migrated or found.conflicts:
        raise _misfit(found, originals, weights)
    names = {one.name for one in originals}
    return list(found.pairs), found.how, [name for name in variables if name not in names]


def _without_order(originals: Sequence[Variable], weights: Sequence[Variable]) -> name_map.NameMap:
    """Pairs without knowledge of the order: equal names, then shapes and leaf names that occur once on either side."""
    theirs = {weight.name: weight for weight in weights}
    pairs = [(one.name, one.name) for one in originals if one.name in theirs and theirs[one.name].shape == one.shape]
    if len(pairs) == len(originals) == len(weights):
        return name_map.NameMap(tuple(pairs), "equal names")
    groups: dict[tuple[tuple[int, ...], str], tuple[list[str], list[str]]] = {}
    for side, some in enumerate((originals, weights)):
        for one in some:
            groups.setdefault((one.shape, name_map.leaf(one.name)), ([], []))[side].append(one.name)
    for ours, others in groups.values():
        if len(ours) > 1 and len(others) > 1:
            raise CheckpointError(
                "TFM863",
                f"{', '.join(ours)} look alike, and without the checkpoint's .meta file nothing tells which of "
                f"{', '.join(others)} each is: name the pairs with --name-map",
            )
    return name_map.build(originals, weights)


def _misfit(found: name_map.NameMap, originals: Sequence[Variable], weights: Sequence[Variable]) -> CheckpointError:
    ours, theirs = {one.name: one for one in originals}, {one.name: one for one in weights}
    same = [name for name in found.only_original if name in theirs and theirs[name].shape != ours[name].shape]
    if same:
        name = same[0]
        return CheckpointError(
            "TFM863",
            f"`{name}` is {list(ours[name].shape)} in the checkpoint and {list(theirs[name].shape)} in the program",
        )
    if found.only_migrated:
        shown = ", ".join(f"{name} {list(theirs[name].shape)}" for name in found.only_migrated)
        more = ", ".join(f"{name} {list(ours[name].shape)}" for name in found.only_original)
        told = f"; left over in the checkpoint: {more}" if more else ""
        return CheckpointError("TFM861", f"the checkpoint has no values for {shown}{told}")
    if found.only_original:
        shown = ", ".join(f"{name} {list(ours[name].shape)}" for name in found.only_original)
        return CheckpointError("TFM862", f"the program has no weight for {shown}")
    return CheckpointError("TFM863", found.conflicts[0])


def _slots(
    tensors: Tensors,
    name: str,
    stored: Sequence[str],
    weight: str,
    slots: Sequence[str],
    optimizer: Mapping[str, Any],
) -> tuple[list[Entry], list[str]]:
    """The entries of the slots of one weight, and the stored slots that nothing reads."""
    kinds = optimizer["kinds"]
    order = _order(optimizer)
    if order is None:
        if slots:
            raise CheckpointError("TFM864", f"the slots of the optimizer {kinds[0]} are unknown")
        return [], []
    by_name = {_BY_NAME[last]: one for one in stored if (last := one.rpartition("/")[2]) in _BY_NAME}
    averages = [one for one in stored if "ExponentialMovingAverage" in one.rpartition("/")[2]]
    entries, inert = [], []
    if _AVERAGE in slots:
        if len(averages) != 1:
            told = ", ".join(averages) or "none"
            raise CheckpointError(
                "TFM864", f"the program keeps a moving average of `{name}`, but the checkpoint {told}"
            )
        entries.append(_entry(tensors, averages[0], f"slot:{weight}|{_AVERAGE}"))
    stored = [one for one in stored if one not in averages]
    found = by_name if by_name else dict(zip(order, stored))
    if not stored:
        return entries, []  # a variable that was not trained
    if not by_name and len(stored) != len(order):
        told = ", ".join(stored) or "none"
        raise CheckpointError(
            "TFM864", f"{kinds[0]} has {len(order)} slot(s) for `{name}` ({', '.join(order)}), the checkpoint {told}"
        )
    for slot, source in found.items():
        if slot not in slots:
            inert.append(source)  # RMSProp without momentum keeps that slot, too
            continue
        transforms: tuple[Transform, ...] = ()
        if "SGD" in kinds and not optimizer["own_step"]:
            if not optimizer["rate"]:
                raise CheckpointError(
                    "TFM864", "Keras' momentum is scaled by the learning rate, which is not constant here"
                )
            transforms = (Scale(-optimizer["rate"]),)
        entries.append(_entry(tensors, source, f"slot:{weight}|{slot}", transforms))
    return entries, inert


def _order(optimizer: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The slots of a Keras optimizer in TensorFlow 1's order; None for an optimizer that is not known."""
    kinds, settings = optimizer["kinds"], optimizer["settings"]
    kind = next((one for one in _SLOTS if one in kinds), None)
    if kind is None:
        return None
    if kind == "SGD" and not settings.get("momentum"):
        return ()  # Keras keeps one that stays zero
    older = bool(optimizer.get("older"))
    if kind == "RMSprop" and settings.get("centered"):
        return _OLDER_CENTERED if older else _CENTERED
    return _OLDER_SLOTS.get(kind, _SLOTS[kind]) if older else _SLOTS[kind]


def power(base: float, steps: int) -> float:
    """Adam's beta power after so many steps, as TensorFlow 1 keeps it."""
    return float(np.float32(base)) ** (steps + 1)
