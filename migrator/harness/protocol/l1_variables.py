"""L1: the two programs train the same variables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from migrator.harness.protocol import initial_values
from migrator.harness.protocol.compare import Array
from migrator.harness.protocol.name_map import NameMap
from migrator.harness.protocol.results import Control, Divergence, LevelResult, Reason, Status, counted
from migrator.harness.recording import Recording, Variable

ID, TITLE = "L1", "Same variables"

#: What recordings call the moving average of a variable, which is kept beside it as a slot is.
AVERAGE, SUM = "average", "sum"


def _described(variable: Variable) -> str:
    trainable = "" if variable.trainable else ", not trainable"
    return f"{variable.name} {list(variable.shape)} {variable.dtype}{trainable}"


def slots_in_use(recording: Recording) -> dict[str, frozenset[str]]:
    """For each variable the slots that take part in its update.

    An SGD without momentum may keep a momentum slot that nothing reads; it is no difference.
    """
    optimizers = (recording.optimizer, *recording.optimizer.others) if recording.optimizer is not None else ()
    # Of an optimizer of the program's own no setting is known.
    momentum = any(optimizer.settings.get("momentum") or not optimizer.settings for optimizer in optimizers)
    slots: dict[str, set[str]] = {variable.name: set() for variable in recording.variables}
    for step_slots in recording.slots.values():
        for variable, slot in step_slots:
            if slot != "momentum" or momentum:
                slots.setdefault(variable, set()).add(slot)
    return {name: frozenset(found) for name, found in slots.items()}


def trained(recording: Recording) -> frozenset[str]:
    """The trainable variables that are given a gradient in some recorded step; all of them where no gradient is known.

    A program may freeze a variable by what it hands to its optimizer (`var_list`), and leave it trainable.
    """
    given = {name for values in recording.gradients.values() for name in values}
    return frozenset(v.name for v in recording.variables if v.trainable and (v.name in given or not given))


def judge(
    original: Recording,
    migrated: Recording,
    names: NameMap,
    *,
    parameter_servers: bool = False,
    own_initial: tuple[Mapping[str, Array], Mapping[str, Array]] | None = None,
    drawn: tuple[Mapping[str, Array], Mapping[str, Array]] = ({}, {}),
    regrouped: frozenset[str] = frozenset(),
) -> LevelResult:
    """The map is total and injective, and what it pairs agrees in shape, dtype, trainability and slots.

    On parameter servers the number of shards must agree too: that is all that a partitioner does. `own_initial`
    are the initial values that the original and the migrated program drew by themselves (each in its own names,
    the latter from a run that was given none): constants must be equal, random values of the same distribution.
    `drawn` are further draws of them, along a first axis: of few numbers one draw tells little. Those
    of `regrouped` variables, which the migrated program keeps in another form, are drawn by the rule of another shape:
    that is a note.
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
            f"{counted(len(names.only_original), 'variable')} only in the original, {len(names.only_migrated)} only "
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
    moved = trained(original), trained(migrated)
    for a, b in names.pairs:
        if migrated.carried and a in slots[0]:  # what their sums come to shows in the weights
            slots[0][a] -= {SUM}
        if AVERAGE not in slots[0].get(a, ()) and b in slots[1]:
            # Those of an original that does not say in which order they move are not recorded.
            slots[1][b] -= {AVERAGE}
        if ours[a].shape != theirs[b].shape or ours[a].dtype != theirs[b].dtype:
            differences.append(Divergence(a, _described(ours[a]), _described(theirs[b])))
        elif ours[a].trainable != theirs[b].trainable and (a in moved[0]) != (b in moved[1]):
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
    summary = f"{len(names.pairs)} variables with {_elements(original)} elements, paired by {names.how}"
    if parameter_servers:
        summary += f"; {_shards(original)}"
    result = LevelResult(ID, TITLE, Status.EQUIVALENT, summary)
    if own_initial is None:
        return result
    rename = names.to_original()
    theirs_drawn, more = (
        {rename.get(name, name): value for name, value in table.items()} for table in (own_initial[1], drawn[1])
    )
    # What an earlier training has left was drawn by nobody; whether both programs have it is judged beside the models.
    left = {rename.get(name, name) for name in (migrated.origins.of if migrated.origins else ())}
    left |= set(original.origins.of if original.origins else ())
    ours_drawn, theirs_drawn, of_original, more = (
        {name: value for name, value in table.items() if name not in left}
        for table in (own_initial[0], theirs_drawn, drawn[0], more)
    )
    found = initial_values.compare(ours_drawn, theirs_drawn, (of_original, more))
    told = tuple(v for v in found.rejected if v.name in regrouped and v.ratio is not None)
    if told:
        kept = tuple(replace(v, rejected=False) if v in told else v for v in found.variables)
        found = replace(found, variables=kept)
        notes = tuple(f"{v.name} is drawn by the rule of another shape: {v.cause}" for v in told)
        result = replace(result, notes=(*result.notes, *notes))
    return _with_initial(result, found, original, migrated, names)


def _with_initial(
    result: LevelResult, found: initial_values.Outcome, original: Recording, migrated: Recording, names: NameMap
) -> LevelResult:
    """Adds what the programs' own initial values say."""
    counts = Counter(v.kind for v in found.variables)
    notes = list(result.notes)
    if counts["few"]:
        few = ", ".join(v.name for v in found.variables if v.kind == "few")
        notes.append(f"initial values of {few}: fewer than {initial_values.FEWEST} random numbers, not judged")
    control = None
    if counts["random"]:
        if found.control_detected:
            control = Control("the original's initial values, scaled by the square root of two", True)
        else:  # what is not judged for want of numbers is no part of what this level says
            notes.append("initial values: too few numbers to see that they are scaled by the square root of two")
    if not found.rejected:
        told = f"; their own initial values agree ({counts['constant']} constant, {counts['random']} random)"
        return replace(result, summary=result.summary + told, control=control, notes=tuple(notes))
    renamed = names.to_migrated()
    differences = tuple(
        Divergence(
            f"initial value of {v.name}",
            v.original,
            v.migrated,
            causes=(v.cause,),
            original_source=original.sources.get(f"variable:{v.name}"),
            migrated_source=migrated.sources.get(f"variable:{renamed.get(v.name, v.name)}"),
        )
        for v in found.rejected
    )
    first = found.rejected[0]
    return replace(
        result,
        status=Status.DIFFERENT,
        reason=Reason.VARIABLES_DIFFER,
        summary=f"{first.name} is initialised in another way: {first.cause}"
        + (f"; {len(found.rejected) - 1} more" if len(found.rejected) > 1 else ""),
        control=control,
        differences=differences,
        notes=tuple(notes),
    )


def _elements(recording: Recording) -> int:
    return sum(math.prod(variable.shape) for variable in recording.variables)


def _shards(recording: Recording) -> str:
    split = [variable for variable in recording.variables if variable.shards > 1]
    if not split:
        return "none is split over the parameter servers"
    return f"{len(split)} split into {sum(variable.shards for variable in split)} shards alike"
