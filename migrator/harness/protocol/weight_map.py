"""Weights that the two programs keep in another form: one kernel for two, gates in another order, another shape.

Everything here only moves numbers about (and adds a constant to a bias), so that gradients and slots of an optimizer
can be moved the same way, and back. Whether two weights that fit are the same is for the numbers to say (L3 and L4).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from migrator.harness.protocol import name_map
from migrator.harness.protocol.l1_variables import AVERAGE
from migrator.harness.protocol.name_map import leaf
from migrator.harness.recording import Array, OnDisk, Recording, Variable, later

Indices = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@dataclass(frozen=True)
class Group:
    """Weights of the original that are some weights of the migrated program, number by number.

    `places` hold for each migrated weight, in its shape, where each number stands among those of the original's
    weights, one after the other; -1 in rows that only the migrated weight has. `offset` is what the migrated program's
    numbers are greater by: a bias of one that LSTMCell adds in each step is in Keras' weight. `what` says in words how
    they are related.
    """

    original: tuple[Variable, ...]
    migrated: tuple[Variable, ...]
    places: tuple[Indices, ...]
    what: str
    offset: Mapping[str, Array] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """What each of the original's weights is called where it is put together of the migrated program's. The last
        part is the original's own, by which weights are paired.
        """
        if len(self.original) == len(self.migrated) == 1:
            return (self.migrated[0].name,)
        whole = " + ".join(variable.name for variable in self.migrated)
        return tuple(f"({whole} {place})/{leaf(one.name)}" for place, one in enumerate(self.original, 1))

    def to_migrated(self, values: Mapping[str, Array], *, weights: bool = True) -> dict[str, Array]:
        """The migrated program's weights for values of the original's; gradients or slots where not `weights`."""
        flat = np.concatenate([np.asarray(values[one.name]).reshape(-1) for one in self.original])
        made = {one.name: _placed(flat, places) for one, places in zip(self.migrated, self.places, strict=True)}
        added = self.offset if weights else {}
        return {name: (value + added[name] if name in added else value) for name, value in made.items()}

    def to_original(self, values: Mapping[str, Array], *, weights: bool) -> dict[str, Array]:
        """The original's weights, under `names`, of values of the migrated program's; `weights` says that the values
        are those of the weights themselves and not gradients or slots. Empty where one of them is missing.
        """
        if not all(one.name in values for one in self.migrated):
            return {}
        given = {one.name: np.asarray(values[one.name]) for one in self.migrated}
        if weights:
            given = {name: value - self.offset[name] if name in self.offset else value for name, value in given.items()}
        sizes = [math.prod(one.shape) for one in self.original]
        flat = np.empty(sum(sizes), next(iter(given.values())).dtype)
        for one, places in zip(self.migrated, self.places, strict=True):
            if given[one.name].shape != places.shape:
                return {}
            flat[places[places >= 0]] = given[one.name][places >= 0]
        parts = np.split(flat, np.cumsum(sizes)[:-1])
        return {name: part.reshape(v.shape) for name, part, v in zip(self.names, parts, self.original, strict=True)}


def _placed(flat: Array, places: Indices) -> Array:
    """The numbers at some places; in rows that have none the mean of the other rows, so that nothing tells which they
    are as long as they are not used.
    """
    made: Array = flat[places]
    lacking = places < 0
    if lacking.any():
        rows = lacking.all(axis=tuple(range(1, places.ndim)))
        made[rows] = made[~rows].mean(axis=0).astype(made.dtype)
    return made


def _group(
    original: Sequence[Variable],
    migrated: Sequence[Variable],
    what: str,
    arrange: Callable[[list[Indices]], Sequence[Indices]],
) -> Group | None:
    """The group in which `arrange` makes the migrated program's weights of the original's; None if it does not fit."""
    sizes = [math.prod(one.shape) for one in original]
    numbered = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    made = arrange([part.reshape(one.shape) for part, one in zip(numbered, original, strict=True)])
    fits = len(made) == len(migrated) and all(a.shape == b.shape for a, b in zip(made, migrated, strict=True))
    types = {one.dtype for one in (*original, *migrated)}
    if not fits or len(types) != 1 or sum(one.size for one in made) != sum(sizes):
        return None
    return Group(tuple(original), tuple(migrated), tuple(made), what)


# -- recurrent cells -----------------------------------------------------------------------------------------


def _blocks(value: Indices, count: int, order: Sequence[int]) -> Indices:
    """The columns of a weight, which are those of `count` gates, in another order of the gates."""
    parts = np.split(value, count, axis=-1)
    return np.concatenate([parts[place] for place in order], axis=-1)


#: By number of gates: the places of Keras' gates among those of TensorFlow 1 (i, j, f, o; one).
_REORDERED = "gates in another order"
_GATES = {4: (0, 2, 1, 3), 1: (0,)}
_FORGET = 1  # Keras' place of the gate that LSTMCell adds its forget_bias to


def _scopes(variables: Sequence[Variable]) -> dict[str, dict[str, Variable]]:
    found: dict[str, dict[str, Variable]] = {}
    for variable in sorted(variables, key=lambda one: one.order):
        scope, _, last = variable.name.rpartition("/")
        found.setdefault(scope, {})[leaf(last)] = variable
    return found


def _cells(originals: Sequence[Variable], migrated: Sequence[Variable]) -> list[Group]:
    """The recurrent cells of both programs, in the order in which they were made."""
    theirs = [own for own in _scopes(migrated).values() if {"kernel", "recurrent_kernel"} <= set(own)]
    ours = _scopes(originals)
    found: list[Group] = []
    used: set[str] = set()
    for cell in theirs:
        for scope in dict.fromkeys([*ours, *(one.rpartition("/")[0] for one in ours)]):
            made = None if scope in used else _cell(ours, scope, cell)
            if made is not None:
                used |= {scope, f"{scope}/gates", f"{scope}/candidate"}
                found += made
                break
    return found


def _cell(ours: Mapping[str, Mapping[str, Variable]], scope: str, cell: Mapping[str, Variable]) -> list[Group] | None:
    kernel, recurrent, bias = cell["kernel"], cell["recurrent_kernel"], cell.get("bias")
    if len(kernel.shape) != 2 or len(recurrent.shape) != 2:
        return None
    inputs, units = kernel.shape[0], recurrent.shape[0]
    gates = kernel.shape[1] // units
    own = ours.get(scope, {})
    if gates in _GATES and "kernel" in own:
        order = _GATES[gates]
        if own["kernel"].shape != (inputs + units, gates * units) or ("bias" in own) != (bias is not None):
            return None

        def divided(values: list[Indices]) -> list[Indices]:
            whole = _blocks(values[0], gates, order)
            return [whole[:inputs], whole[inputs:]]

        what = "one kernel for inputs and state" + (f", {_REORDERED}" if gates > 1 else "")
        made = [_group([own["kernel"]], [kernel, recurrent], what, divided)]
        if bias is not None:
            arranged = _REORDERED if gates > 1 else "as it is"
            made.append(_group([own["bias"]], [bias], arranged, lambda v: [_blocks(v[0], gates, order)]))
        return None if None in made else [one for one in made if one is not None]
    first, second = ours.get(f"{scope}/gates", {}), ours.get(f"{scope}/candidate", {})
    if gates == 3 and "kernel" in first and "kernel" in second:

        def gru(values: list[Indices]) -> list[Indices]:
            whole = np.concatenate([_blocks(values[0], 2, (1, 0)), values[1]], axis=-1)
            return [whole[:inputs], whole[inputs:]] if whole.ndim == 2 else [whole]

        what = "gates and candidate apart, gates in another order"
        made = [_group([first["kernel"], second["kernel"]], [kernel, recurrent], what, gru)]
        if bias is not None and "bias" in first and "bias" in second:
            made.append(_group([first["bias"], second["bias"]], [bias], what, gru))
        return None if None in made else [one for one in made if one is not None]
    return None


# -- other shapes --------------------------------------------------------------------------------------------


def _reshaped(original: Variable, migrated: Variable) -> Group | None:
    """Two weights of as many numbers: a kernel of two axes for one with the heads apart, or transposed."""
    leaves = leaf(original.name), leaf(migrated.name)
    known = name_map.STANDARD_LEAVES
    if leaves[0] != leaves[1] and set(leaves) <= known:
        return None
    if original.trainable != migrated.trainable:
        return None
    transposed = original.shape == migrated.shape[::-1] and len(original.shape) == 2
    if transposed:
        return _group([original], [migrated], "transposed", lambda v: [v[0].T])
    if math.prod(original.shape) != math.prod(migrated.shape) or math.prod(original.shape) == 0:
        return None
    return _group([original], [migrated], "another shape", lambda v: [v[0].reshape(migrated.shape)])


def with_rows(original: Variable, migrated: Variable, order: Sequence[int] | npt.NDArray[np.int64]) -> Group:
    """The group of two weights, of which `order` says for each row of the migrated one which row of the original's it
    is; -1 for none.
    """
    numbered = np.arange(math.prod(original.shape)).reshape(original.shape)
    rows = np.asarray(order, np.int64)
    places = np.where((rows >= 0).reshape(-1, *[1] * (numbered.ndim - 1)), numbered[np.maximum(rows, 0)], -1)
    more = int((rows < 0).sum())
    what = f"{more} row{'s' if more > 1 else ''} more" if more else "its rows in another order"
    return Group((original,), (migrated,), (places,), what)


def _more_rows(original: Variable, migrated: Variable) -> Group | None:
    """A table of which the migrated program has more rows: for words that are unknown, or for padding. They are taken
    to be its first ones, as StringLookup has them; pairing.more_rows looks which they are.
    """
    leaves = leaf(original.name), leaf(migrated.name)
    if leaves[0] != leaves[1] and set(leaves) <= name_map.STANDARD_LEAVES:
        return None
    alike = (original.dtype, original.trainable) == (migrated.dtype, migrated.trainable)
    if not alike or len(original.shape) != 2 or len(migrated.shape) != 2 or original.shape[1] != migrated.shape[1]:
        return None
    more = migrated.shape[0] - original.shape[0]
    return with_rows(original, migrated, range(-more, original.shape[0])) if more > 0 else None


def _in_order(originals: Sequence[Variable], migrated: Sequence[Variable]) -> list[Group] | None:
    """Groups for what has another shape, if every variable fits its counterpart in the order of creation."""
    if len(originals) != len(migrated):
        return None
    found = []
    for ours, theirs in zip(originals, migrated, strict=True):
        if name_map.fits(ours, theirs):
            continue
        made = _reshaped(ours, theirs) or _more_rows(ours, theirs)
        if made is None:
            return None
        found.append(made)
    return found


@dataclass(frozen=True)
class WeightMap:
    """All groups; empty where both programs keep their weights in the same form. `own` are variables that only the
    migrated program has and does not train: what they are for shows in the numbers. `slots` are variables of its own
    that hold what the original keeps as a slot of a weight, a moving average or a sum of gradients: {name: (the
    original's weight, the weight's own name, the kind of slot)}. `kinds` are the slots of an optimizer of its own, by
    its name for each: {its kind of slot: that of the original which holds the same}.
    """

    groups: tuple[Group, ...] = ()
    own: tuple[str, ...] = ()
    slots: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)

    def initial(
        self, values: Mapping[str, Array], rename: Mapping[str, str], *, weights: bool = True
    ) -> dict[str, Array]:
        """Values of the original's weights (by its names) in the form and under the names of the migrated program; of
        gradients or slots where not `weights`.
        """
        grouped = {one.name for group in self.groups for one in group.original}
        made = {rename[name]: value for name, value in values.items() if name in rename and name not in grouped}
        for group in self.groups:
            if all(one.name in values for one in group.original):
                made |= group.to_migrated(values, weights=weights)
        return {**(self.slots_as_variables(values, AVERAGE) if weights else {}), **made}  # they begin as the weights

    @property
    def begin_as_made(self) -> tuple[str, ...]:
        """The migrated program's variables that begin with its own values, not with what a weight begins with."""
        return (*self.own, *(name for name, (_, _, kind) in self.slots.items() if kind != AVERAGE))

    def slots_as_variables(self, values: Mapping[str, Array], kind: str) -> dict[str, Array]:
        """Slots of the original, by the names of its weights, as values of the migrated program's variables."""
        return {name: values[one] for name, (one, _, slot) in self.slots.items() if slot == kind and one in values}

    def with_rows(
        self, pairs: Iterable[tuple[Variable, Variable]], orders: Mapping[str, npt.NDArray[np.int64]]
    ) -> WeightMap:
        """The map, with the rows of some weights in another order in the migrated program (see pairing.orders)."""
        made = [with_rows(ours, theirs, orders[ours.name]) for ours, theirs in pairs if ours.name in orders]
        gone = {group.original[0].name for group in made}
        kept = (group for group in self.groups if not gone & {one.name for one in group.original})
        return replace(self, groups=(*kept, *made))

    @property
    def with_more_rows(self) -> tuple[Group, ...]:
        """Those of which the migrated program has rows that the original has not."""
        return tuple(group for group in self.groups if any((places < 0).any() for places in group.places))

    def told(self) -> tuple[str, ...]:
        """What is to be said about the groups."""
        said = [
            f"{', '.join(v.name for v in group.original)}: {group.what} in {', '.join(v.name for v in group.migrated)}"
            for group in self.groups
        ]
        said += [f"{name}: only the migrated program has it, and does not train it" for name in self.own]
        for kind in dict.fromkeys(slot for _, _, slot in self.slots.values()):
            names = ", ".join(name for name, (_, _, slot) in self.slots.items() if slot == kind)
            what = "moving averages of weights" if kind == AVERAGE else f'slots "{kind}" of weights'
            said.append(f"{what}: variables of its own in the migrated program ({names})")
        said += [
            f'slots "{theirs}" of the migrated program hold what slots "{ours}" do'
            for theirs, ours in self.kinds.items()
        ]
        return tuple(said)

    @property
    def regrouped(self) -> frozenset[str]:
        """The original's names of the weights whose form differs."""
        return frozenset(one.name for group in self.groups for one in group.original)

    @property
    def added(self) -> dict[str, float]:
        """By the original's names, how much greater the numbers are that the migrated program stores of some weights:
        they are rounded on that scale.
        """
        return {
            one.name: max(float(np.max(np.abs(value), initial=0.0)) for value in group.offset.values())
            for group in self.groups
            if group.offset
            for one in group.original
        }

    def with_offsets(self, original: Mapping[str, Array], migrated: Mapping[str, Array]) -> WeightMap:
        """The map, with what the migrated program adds to a bias when it makes it, by both programs' own values."""
        return replace(self, groups=tuple(_with_offset(one, original, migrated) for one in self.groups))

    def _values(self, values: Mapping[str, Array], *, weights: bool) -> dict[str, Array]:
        gone = {one.name for group in self.groups for one in group.migrated} | set(self.own) | set(self.slots)
        made = {name: value for name, value in values.items() if name not in gone}
        for group in self.groups:
            made |= group.to_original(values, weights=weights)
        return made

    def _with_form(self, values: Mapping[tuple[str, str], Array]) -> dict[tuple[str, str], Array]:
        made: dict[tuple[str, str], Array] = {}
        for slot in dict.fromkeys(slot for _, slot in values):
            own = {name: value for (name, kind), value in values.items() if kind == slot}
            kind = self.kinds.get(slot, slot)
            made |= {(name, kind): value for name, value in self._values(own, weights=slot == AVERAGE).items()}
        return made

    def _with_slots(self, recording: Recording) -> OnDisk[dict[tuple[str, str], Array]]:
        """The slots after each step, with those that are variables among them."""
        slots = later(recording.slots, self._with_form)
        if not self.slots:
            return slots

        def of(step: int) -> Callable[[], dict[tuple[str, str], Array]]:
            def read() -> dict[tuple[str, str], Array]:
                values = recording.states[step]
                found = {(own, kind): values[name] for name, (_, own, kind) in self.slots.items() if name in values}
                return {**slots.get(step, {}), **found}

            return read

        return OnDisk({step: of(step) for step in sorted({*recording.slots, *recording.states})})

    def translate(self, recording: Recording) -> Recording:
        """A recording of the migrated program as if it kept its weights in the form of the original."""
        if self == WeightMap():
            return recording
        alone = {*self.own, *self.slots}
        gone = {one.name: group for group in self.groups for one in group.migrated}
        variables = [one for one in recording.variables if one.name not in gone and one.name not in alone]
        renamed: dict[str, str] = {}
        for group in self.groups:
            order = min(one.order for one in group.migrated)
            renamed |= {one.name: group.names[0] for one in group.migrated}
            variables += [
                replace(ours, name=name, order=order, trainable=group.migrated[0].trainable)
                for name, ours in zip(group.names, group.original, strict=True)
            ]

        def key(name: str) -> str:
            variable, mark, call = name.partition("#")
            return renamed.get(variable, variable) + mark + call

        return replace(
            recording,
            variables=tuple(sorted(variables, key=lambda one: one.order)),
            initial=self._values(recording.initial, weights=True),
            states=later(recording.states, lambda values: self._values(values, weights=True)),
            gradients=later(recording.gradients, lambda values: self._values(values, weights=False)),
            slots=self._with_slots(recording),
            raw_slots=later(recording.raw_slots, self._with_form),
            activations={key(name): value for name, value in recording.activations.items()},
        )


def _with_offset(group: Group, original: Mapping[str, Array], migrated: Mapping[str, Array]) -> Group:
    if len(group.original) != 1 or len(group.migrated) != 1 or group.what != _REORDERED:
        return group
    ours, theirs = original.get(group.original[0].name), migrated.get(group.migrated[0].name)
    if ours is None or theirs is None:
        return group
    before = group.to_migrated({group.original[0].name: ours})[group.migrated[0].name]
    gates = np.split(theirs - before, 4)
    forget = gates[_FORGET]
    others = [gate for place, gate in enumerate(gates) if place != _FORGET]
    if not np.all(forget == forget[0]) or forget[0] == 0.0 or any(map(np.any, others)):
        return group
    offset = np.concatenate([gate if place == _FORGET else np.zeros_like(gate) for place, gate in enumerate(gates)])
    return replace(group, offset={group.migrated[0].name: offset})


def find(originals: Sequence[Variable], migrated: Sequence[Variable], user: Mapping[str, str]) -> WeightMap:
    """The groups without which the variables cannot be paired; none where they can, or where groups do not help.

    `user` pairs are left alone.
    """
    if name_map.build(originals, migrated, user).complete:
        return WeightMap()
    left = sorted((one for one in originals if one.name not in user), key=lambda one: one.order)
    right = sorted((one for one in migrated if one.name not in set(user.values())), key=lambda one: one.order)
    groups = _cells(left, right)
    left, right = _without(left, groups, 0), _without(right, groups, 1)
    others = _in_order(left, right)
    if others is None:  # perhaps only some are out of order
        plain = name_map.build(left, right)
        mine = [one for one in left if one.name in plain.only_original]
        theirs = [one for one in right if one.name in plain.only_migrated]
        others = _in_order(mine, theirs)
    return WeightMap(tuple(groups) + tuple(others or ()))


def _without(variables: Sequence[Variable], groups: Sequence[Group], side: int) -> list[Variable]:
    gone = {one.name for group in groups for one in (group.original, group.migrated)[side]}
    return [one for one in variables if one.name not in gone]


def with_own(
    originals: Sequence[Variable], migrated: Recording, known: WeightMap, user: Mapping[str, str]
) -> WeightMap:
    """The map with the migrated program's variables that have no counterpart and are not trained.

    Where variables of the original have no counterpart either, only those that never change: the others may be theirs.
    """
    translated = known.translate(migrated)
    names = name_map.build(originals, translated.variables, user)
    by_name = {one.name: one for one in translated.variables}
    states = [values for values in migrated.states.values() if values]

    def changes(name: str) -> bool:
        initial = migrated.initial[name]
        return not states or any(name not in values or not np.array_equal(values[name], initial) for values in states)

    own = [
        name
        for name in names.only_migrated
        if not by_name[name].trainable and name in migrated.initial and not (names.only_original and changes(name))
    ]
    return replace(known, own=tuple(own))


# How far apart slots may be that hold the same, as a share of what they hold: a mistake is for L4 to find.
_ALIKE = 0.05
MOST_KINDS = 5  # of slots that are kept in variables, in any order


def with_kinds(original: Recording, migrated: Recording, known: WeightMap, rename: Mapping[str, str]) -> WeightMap:
    """The map with the original's slots for those that an optimizer of the migrated program's own calls otherwise, by
    what they hold after a step that both trainings kept. `migrated` is in the original's form, and `rename` its names.
    """
    steps = [step for step in sorted(original.slots) if original.slots[step] and migrated.slots.get(step)]
    if not steps:
        return known
    ours = _by_kind(original.slots[steps[0]])
    known = _with_kinds_of_variables(ours, known, migrated.slots[steps[0]], rename)
    theirs = _by_kind({(rename.get(name, name), kind): v for (name, kind), v in migrated.slots[steps[0]].items()})
    apart = sorted(
        (_distance(ours[mine], theirs[other]), other, mine)
        for mine in ours.keys() - theirs.keys()
        for other in theirs.keys() - ours.keys()
    )
    kinds: dict[str, str] = {}
    for distance, other, mine in apart:
        if distance <= _ALIKE and other not in kinds and mine not in kinds.values():
            kinds[other] = mine
    return replace(known, kinds=kinds) if kinds else known


def _with_kinds_of_variables(
    ours: Mapping[str, Mapping[str, Array]],
    known: WeightMap,
    slots: Mapping[tuple[str, str], Array],
    rename: Mapping[str, str],
) -> WeightMap:
    """The map in which variables that stand for slots are those of the kinds that hold the same."""
    kinds = sorted({kind for _, _, kind in known.slots.values()} - {AVERAGE})
    theirs = _by_kind({(rename.get(name, name), kind): value for (name, kind), value in slots.items() if kind in kinds})
    if len(kinds) < 2 or len(kinds) > MOST_KINDS or not all(kind in ours and kind in theirs for kind in kinds):
        return known
    apart = {(mine, other): _distance(ours[mine], theirs[other]) for mine in kinds for other in kinds}
    orders = [dict(zip(kinds, order, strict=True)) for order in itertools.permutations(kinds)]  # theirs: ours
    best = min(orders, key=lambda order: max(apart[mine, other] for other, mine in order.items()))
    if max(apart[mine, other] for other, mine in best.items()) > _ALIKE or all(a == b for a, b in best.items()):
        return known
    chosen = {name: (a, own, best.get(kind, kind)) for name, (a, own, kind) in known.slots.items()}
    return replace(known, slots=chosen)


def _by_kind(slots: Mapping[tuple[str, str], Array]) -> dict[str, dict[str, Array]]:
    found: dict[str, dict[str, Array]] = {}
    for (name, kind), value in slots.items():
        found.setdefault(kind, {})[name] = value
    return found


def _distance(ours: Mapping[str, Array], theirs: Mapping[str, Array]) -> float:
    """How far two kinds of slots are apart, as a share of what the first holds; infinite if they belong to others."""
    if ours.keys() != theirs.keys() or any(value.shape != theirs[name].shape for name, value in ours.items()):
        return math.inf
    pairs = [(value.astype(np.float64), theirs[name].astype(np.float64)) for name, value in ours.items()]
    size, apart = (
        sum(float(np.sum(np.square(one))) for one in some)
        for some in ((a for a, _ in pairs), (a - b for a, b in pairs))
    )
    return math.sqrt(apart / size) if size else math.inf


def with_slots(original: Recording, migrated: Recording, known: WeightMap, user: Mapping[str, str]) -> WeightMap:
    """The map with the variables in which the migrated program keeps by itself what are slots in the original: moving
    averages, sums of gradients. They are paired in the order of creation, by shape; averages begin as the weights do.
    Whether that is right is for the numbers to say (`with_kinds`).
    """
    translated = known.translate(migrated)
    kept = {key for values in original.slots.values() for key in values}
    there = {key for values in translated.slots.values() for key in values}
    names = name_map.build(original.variables, translated.variables, user)
    by_name = {one.name: one for one in translated.variables}
    free = sorted(
        (by_name[name] for name in names.only_migrated if not by_name[name].trainable), key=lambda one: one.order
    )
    found: dict[str, tuple[str, str, str]] = {}
    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}  # the kinds that the same weights lack
    for kind in sorted({slot for _, slot in kept}):
        lacking = [pair for pair in names.pairs if (pair[0], kind) in kept and (pair[1], kind) not in there]
        alike.setdefault(tuple(sorted(lacking, key=lambda pair: by_name[pair[1]].order)), []).append(kind)
    for lacking_all, kinds in alike.items():
        blocks: list[dict[str, tuple[str, str]]] = []
        for _ in kinds:
            block: dict[str, tuple[str, str]] = {}
            for ours, own in lacking_all:
                form = by_name[own].shape, by_name[own].dtype
                taken = {*found, *block, *(name for other in blocks for name in other)}
                fitting = [one for one in free if one.name not in taken and (one.shape, one.dtype) == form]
                if not fitting:
                    break
                block[fitting[0].name] = (ours, own)
            if len(block) == len(lacking_all):
                blocks.append(block)
        for kind in sorted(kinds, key=lambda one: one != AVERAGE):
            chosen = [one for one in blocks if kind == AVERAGE and _begins_as_weights(translated, one)] or blocks
            if chosen:
                blocks = [one for one in blocks if one is not chosen[0]]
                found |= {name: (ours, own, kind) for name, (ours, own) in chosen[0].items()}
    return replace(known, slots=found)


def _begins_as_weights(migrated: Recording, block: Mapping[str, tuple[str, str]]) -> bool:
    """Whether variables hold at first what the weights do that they stand beside."""
    first = migrated.initial
    return all(name in first and np.array_equal(first[name], first[own]) for name, (_, own) in block.items())
