"""L1: the two programs train the same variables."""

from __future__ import annotations

from migrator.harness.protocol.name_map import NameMap
from migrator.harness.protocol.results import Divergence, LevelResult, Reason, Status
from migrator.harness.recording import Recording, Variable

ID, TITLE = "L1", "Same variables"


def _described(variable: Variable) -> str:
    trainable = "" if variable.trainable else ", not trainable"
    return f"{variable.name} {list(variable.shape)} {variable.dtype}{trainable}"


def slots_in_use(recording: Recording) -> dict[str, frozenset[str]]:
    """For each variable the slots that take part in its update.

    An SGD without momentum may keep a momentum slot that nothing reads; it is no difference.
    """
    momentum = recording.optimizer.settings.get("momentum") if recording.optimizer is not None else None
    slots: dict[str, set[str]] = {variable.name: set() for variable in recording.variables}
    for step_slots in recording.slots.values():
        for variable, slot in step_slots:
            if slot != "momentum" or momentum:
                slots.setdefault(variable, set()).add(slot)
    return {name: frozenset(found) for name, found in slots.items()}


def judge(original: Recording, migrated: Recording, names: NameMap, *, parameter_servers: bool = False) -> LevelResult:
    """The map is total and injective, and what it pairs agrees in shape, dtype, trainability and slots.

    On parameter servers the number of shards must agree too: that is all that a partitioner does.
    """
    if not original.variables or not migrated.variables:
        empty = original if not original.variables else migrated
        return LevelResult(
            ID,
            TITLE,
            Status.INCONCLUSIVE,
            f"no variable of the {empty.program} program was recorded",
            Reason.MISSING_VALUES,
        )
    ours = {variable.name: variable for variable in original.variables}
    theirs = {variable.name: variable for variable in migrated.variables}
    differences = [Divergence(name, _described(ours[name]), None) for name in names.only_original]
    differences += [Divergence(name, None, _described(theirs[name])) for name in names.only_migrated]
    if differences:
        return LevelResult(
            ID,
            TITLE,
            Status.DIFFERENT,
            f"{len(names.only_original)} variable(s) only in the original, {len(names.only_migrated)} only "
            "in the migrated program, or differ in shape or dtype",
            Reason.VARIABLES_DIFFER,
            differences=tuple(differences),
            notes=names.conflicts,
        )
    if names.conflicts:
        return LevelResult(
            ID,
            TITLE,
            Status.INCONCLUSIVE,
            f"the variables cannot be paired: {names.conflicts[0]}",
            Reason.UNMAPPED_VARIABLE,
            notes=names.conflicts,
        )
    slots = slots_in_use(original), slots_in_use(migrated)
    for a, b in names.pairs:
        if ours[a].shape != theirs[b].shape or ours[a].dtype != theirs[b].dtype:
            differences.append(Divergence(a, _described(ours[a]), _described(theirs[b])))
        elif ours[a].trainable != theirs[b].trainable:
            differences.append(Divergence(f"trainability of {a}", str(ours[a].trainable), str(theirs[b].trainable)))
        elif slots[0].get(a, frozenset()) != slots[1].get(b, frozenset()):
            differences.append(
                Divergence(
                    f"optimizer slots of {a}",
                    ", ".join(sorted(slots[0].get(a, ()))) or "none",
                    ", ".join(sorted(slots[1].get(b, ()))) or "none",
                )
            )
        elif parameter_servers and ours[a].shards != theirs[b].shards:
            differences.append(Divergence(f"shards of {a}", str(ours[a].shards), str(theirs[b].shards)))
    if len({a for a, _ in names.pairs}) != len(ours) or len({b for _, b in names.pairs}) != len(theirs):
        return LevelResult(
            ID,
            TITLE,
            Status.INCONCLUSIVE,
            "the name map does not cover every variable exactly once",
            Reason.UNMAPPED_VARIABLE,
        )
    if differences:
        return LevelResult(
            ID,
            TITLE,
            Status.DIFFERENT,
            f"{differences[0].tensor}: {differences[0].original} against {differences[0].migrated}",
            Reason.VARIABLES_DIFFER,
            differences=tuple(differences),
        )
    elements = sum(int(_product(variable.shape)) for variable in original.variables)
    return LevelResult(
        ID,
        TITLE,
        Status.EQUIVALENT,
        f"{len(names.pairs)} variables with {elements} elements, paired by {names.how}"
        + (f"; {_shards(original)}" if parameter_servers else ""),
    )


def _shards(recording: Recording) -> str:
    split = [variable for variable in recording.variables if variable.shards > 1]
    if not split:
        return "none is split over the parameter servers"
    return f"{len(split)} split into {sum(variable.shards for variable in split)} shards alike"


def _product(shape: tuple[int, ...]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total
