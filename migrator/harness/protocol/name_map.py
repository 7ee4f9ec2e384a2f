"""Which variable of the migrated program is which variable of the original."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from migrator.harness.recording import Variable

# Leaf names that both worlds give to the same thing: a kernel may never be taken for a bias of the same
# shape.
STANDARD_LEAVES = frozenset(
    {
        "kernel",
        "bias",
        "gamma",
        "beta",
        "moving_mean",
        "moving_variance",
        "depthwise_kernel",
        "pointwise_kernel",
        "recurrent_kernel",
        "embeddings",
        "alpha",
    }
)


class NameMapError(ValueError):
    """A user's name map names a variable that does not exist, or one twice."""


@dataclass(frozen=True)
class NameMap:
    """Pairs (original name, migrated name). `complete` only if every variable of both sides is in one pair.

    `how` says in words what the pairing rests on; `only_original` and `only_migrated` are left over;
    `conflicts` are sentences about pairs that position suggests and that shape, dtype or leaf name forbid.
    """

    pairs: tuple[tuple[str, str], ...]
    how: str
    only_original: tuple[str, ...] = ()
    only_migrated: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every variable of both programs is in exactly one pair."""
        return bool(self.pairs) and not (self.only_original or self.only_migrated or self.conflicts)

    def to_migrated(self) -> dict[str, str]:
        """Migrated names by original name."""
        return dict(self.pairs)

    def to_original(self) -> dict[str, str]:
        """Original names by migrated name."""
        return {migrated: original for original, migrated in self.pairs}


def leaf(name: str) -> str:
    """The last part of a variable name, without output number, uniquifying suffix and shard."""
    parts = [part for part in name.split(":")[0].split("/") if not re.fullmatch(r"part_\d+", part)]
    last = parts[-1] if parts else name
    stripped = re.sub(r"_\d+$", "", last)
    return stripped if stripped in STANDARD_LEAVES else last


def _fits(original: Variable, migrated: Variable) -> str | None:
    """Why the two cannot be the same variable, or None."""
    if original.shape != migrated.shape:
        return f"shape {list(original.shape)} against {list(migrated.shape)}"
    if original.dtype != migrated.dtype:
        return f"dtype {original.dtype} against {migrated.dtype}"
    leaves = leaf(original.name), leaf(migrated.name)
    if leaves[0] != leaves[1] and leaves[0] in STANDARD_LEAVES and leaves[1] in STANDARD_LEAVES:
        return f"{leaves[0]} against {leaves[1]}"
    return None


def fits(original: Variable, migrated: Variable) -> bool:
    """Whether nothing known of two variables forbids that they are the same one."""
    return _fits(original, migrated) is None


def _signature(variable: Variable) -> tuple[tuple[int, ...], str, str, bool]:
    name = leaf(variable.name)
    return variable.shape, variable.dtype, name if name in STANDARD_LEAVES else "", variable.trainable


def _scope(name: str) -> str:
    """What a layer's variables have in common: their names without the last part and the output number."""
    return name.split(":")[0].rpartition("/")[0]


def _beside(
    groups: Sequence[tuple[Sequence[Variable], Sequence[Variable]]],
) -> list[tuple[list[Variable], list[Variable]]]:
    """The groups, with the variables of each in the order in which they are pairs: those of layers whose other
    variables are paired already go together, the others in the order of creation.
    """
    scopes: dict[str, str] = {}
    found: list[tuple[list[Variable], list[Variable]]] = []
    for ours, theirs in sorted(groups, key=lambda group: len(group[0])):  # the plainest first
        right = {_scope(one.name): one for one in theirs}
        together = [(one, right[scopes[_scope(one.name)]]) for one in ours if scopes.get(_scope(one.name)) in right]
        known = len(right) == len(theirs) and len({id(other) for _, other in together}) == len(together)
        pairs = together if known else []
        left = [one for one in ours if all(one is not mine for mine, _ in pairs)]
        rest = [one for one in theirs if all(one is not other for _, other in pairs)]
        first, second = [one for one, _ in pairs] + left, [other for _, other in pairs] + rest
        found.append((first, second))
        for one, other in zip(first, second, strict=False):
            scopes.setdefault(_scope(one.name), _scope(other.name))
    return found


def _leftover_groups(
    originals: Sequence[Variable], migrated: Sequence[Variable]
) -> list[tuple[list[Variable], list[Variable]]]:
    """Variables of one shape, dtype and trainability that only one world has a standard name for.

    `weights` and `biases` of tf.contrib.layers are a kernel and a bias in Keras. As many on either side, in creation
    order, and none of them against another standard name.
    """
    groups: dict[tuple[tuple[int, ...], str, bool], tuple[list[Variable], list[Variable]]] = {}
    for side, variables in enumerate((originals, migrated)):
        for variable in variables:
            key = variable.shape, variable.dtype, variable.trainable
            groups.setdefault(key, ([], []))[side].append(variable)
    return [
        (ours, theirs)
        for ours, theirs in groups.values()
        if len(ours) == len(theirs) and all(_fits(a, b) is None for a, b in zip(ours, theirs, strict=True))
    ]


def _user_pairs(
    originals: Sequence[Variable], migrated: Sequence[Variable], user: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    known = {variable.name for variable in originals}, {variable.name for variable in migrated}
    for position, names in enumerate((list(user), list(user.values()))):
        program = ("original", "migrated")[position]
        for name in names:
            if name not in known[position]:
                raise NameMapError(
                    f"the name map names {name!r}, which is no variable of the {program} program; "
                    f"it has {', '.join(sorted(known[position])) or 'none'}"
                )
        if len(set(names)) != len(names):
            raise NameMapError(f"the name map uses a variable of the {program} program twice")
    return tuple(user.items())


def build(
    originals: Sequence[Variable], migrated: Sequence[Variable], user: Mapping[str, str] | None = None
) -> NameMap:
    """Pairs the variables: the user's pairs first, the others in creation order.

    A pair must agree in shape and dtype, and in the leaf name where both use a standard one. If creation
    order alone leads to a conflict, variables with the same shape, dtype, leaf name and trainability are
    paired among themselves, beside those of the same layer or in creation order, then those that only one
    program has a standard name for.
    Raises NameMapError if the user's map cannot be applied at all.
    """
    pairs = list(_user_pairs(originals, migrated, user or {}))
    taken = {name for name, _ in pairs}, {name for _, name in pairs}
    left = sorted((v for v in originals if v.name not in taken[0]), key=lambda v: v.order)
    right = sorted((v for v in migrated if v.name not in taken[1]), key=lambda v: v.order)
    by_original = {v.name: v for v in originals}
    by_migrated = {v.name: v for v in migrated}
    user_conflicts = tuple(
        f"{a} and {b}: {why}" for a, b in pairs if (why := _fits(by_original[a], by_migrated[b])) is not None
    )
    prefix = "the user's map, then " if pairs else ""

    conflicts = [
        f"{a.name} and {b.name}: {why}" for a, b in zip(left, right, strict=False) if (why := _fits(a, b)) is not None
    ]
    if len(left) == len(right) and not conflicts:
        pairs += [(a.name, b.name) for a, b in zip(left, right, strict=True)]
        return NameMap(tuple(pairs), prefix + "creation order", conflicts=user_conflicts)

    groups: dict[tuple[tuple[int, ...], str, str, bool], tuple[list[Variable], list[Variable]]] = {}
    for side, variables in enumerate((left, right)):
        for variable in variables:
            groups.setdefault(_signature(variable), ([], []))[side].append(variable)
    only_original: list[str] = []
    only_migrated: list[str] = []
    for ours, theirs in _beside(list(groups.values())):
        pairs += [(a.name, b.name) for a, b in zip(ours, theirs, strict=False)]
        only_original += [v.name for v in ours[len(theirs) :]]
        only_migrated += [v.name for v in theirs[len(ours) :]]
    for ours, theirs in _leftover_groups(
        [v for v in left if v.name in set(only_original)], [v for v in right if v.name in set(only_migrated)]
    ):
        pairs += [(a.name, b.name) for a, b in zip(ours, theirs, strict=True)]
        only_original = [name for name in only_original if name not in {v.name for v in ours}]
        only_migrated = [name for name in only_migrated if name not in {v.name for v in theirs}]
    leftovers = bool(only_original or only_migrated)
    return NameMap(
        tuple(pairs),
        prefix + "shape, dtype, leaf name and trainability, in creation order where these agree",
        tuple(only_original),
        tuple(only_migrated),
        user_conflicts + (tuple(conflicts) if leftovers else ()),
    )
