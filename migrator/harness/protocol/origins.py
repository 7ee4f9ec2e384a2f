"""Which weights a later training of a script begins with are those that an earlier one has left.

Each training is compared from the original's weights, so that nothing else would tell whether the second model of the
migrated program goes on where the first one ended, or begins anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from migrator.harness.protocol.l8_artefacts import DIFFERENT, NOT_COMPARED, SAME, model
from migrator.harness.protocol.name_map import NameMap
from migrator.harness.protocol.results import Artefact
from migrator.harness.recording import Recording

_UNKNOWN = "what earlier trainings of one of the programs have left is not known"


def judge(
    place: int, original: Recording, migrated: Recording, names: NameMap, earlier: Mapping[int, NameMap]
) -> Artefact | None:
    """What the training at this place begins with, in both programs; None where it begins anew in both. ``earlier`` are
    the names of what the trainings before it have trained.
    """
    name = f"{model(place)}, its first weights"
    ours, theirs = original.origins, migrated.origins
    if ours is None or theirs is None:
        known = ours or theirs
        if known is None or not known.of:
            return None
        return Artefact(name, NOT_COMPARED, _UNKNOWN)
    carried, unknown = 0, False
    for mine, other in names.pairs:
        found = _as_migrated(ours.of.get(mine, ()), earlier)
        there = theirs.of.get(other, ())
        carried += bool(there and found)
        if any(one in there for one in found):
            continue
        if any(source in theirs.known for source in found):
            said = f"begins with {there[0][1]}" if there else "begins anew"
            source = ours.of[mine][0]
            return Artefact(
                name,
                DIFFERENT,
                f"{mine} begins with what {source[1]} had come to in the training of model {source[0] + 1}; "
                f"in the migrated program {other} {said}",
            )
        known_there = [one for one in there if one in _as_migrated(ours.known, earlier)]
        if known_there:
            number, source_name = known_there[0]
            return Artefact(
                name,
                DIFFERENT,
                f"{mine} does not begin with what the training of model {number + 1} has left; in the migrated program "
                f"{other} does, with that of {source_name}",
            )
        unknown |= mine in ours.of or bool(there)
    if not carried:
        return Artefact(name, NOT_COMPARED, _UNKNOWN) if unknown else None
    return Artefact(name, SAME, f"{carried} of them are what an earlier training left")


def _as_migrated(sources: Iterable[tuple[int, str]], earlier: Mapping[int, NameMap]) -> list[tuple[int, str]]:
    """Variables of the original's earlier trainings as the migrated program names them, as far as it has them."""
    tables = {place: names.to_migrated() for place, names in earlier.items()}
    return [(place, tables[place][name]) for place, name in sources if name in tables.get(place, {})]
