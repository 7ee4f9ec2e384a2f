"""Has XLA compile what the cores of a stand-in for a TPU were given, in a process of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from migrator.harness.case import Case
from migrator.harness.cluster import ClusterShape, Launch
from migrator.harness.protocol import l9_compiled
from migrator.harness.protocol.l9_compiled import Graph, Operation
from migrator.harness.protocol.results import LevelResult, Reason, Status
from migrator.harness.protocol.verdict import TITLES
from migrator.harness.runs import Run, Session

_SCRIPT = Path(__file__).parent / "inside" / "compile_steps.py"
#: Seconds that XLA may take, whatever a run may: it takes one for some thousand operations.
_MOST_SECONDS = 300.0


def judge(session: Session, case: Case, migrated: Run) -> LevelResult | None:
    """L9 of a run in which evaluation was looked at; None where no TPUStrategy was stood in for."""
    recording = migrated.recording
    if recording is None or recording.stand_in is None or recording.stand_in.stands_for != "TPUStrategy":
        return None
    failed = sorted(migrated.record_dir.glob("*/cores_failed.json"))
    if failed:
        said = json.loads(failed[0].read_text())["said"]
        return _not_known(f"a step could not be kept for it: {said}")
    paths = sorted(path.with_suffix("") for path in migrated.record_dir.glob("*/cores/*.pb"))
    if not paths:
        return l9_compiled.judge(())
    folder = session.new_folder("compiled")
    result = folder / "result.json"
    parts = recording.batches[0].components if recording.batches else ()
    job = {
        "graphs": list(map(str, paths)),
        "components": [[kind, list(shape)] for _, kind, shape, _ in parts],
        "cores": recording.stand_in.cores,
        "result": str(result),
    }
    (folder / "job.json").write_text(json.dumps(job))
    seconds = min(case.total_timeout, _MOST_SECONDS)
    launch = Launch(
        "migrated",
        _SCRIPT,
        (str(folder / "job.json"),),
        ClusterShape(),
        folder,
        ready_timeout=seconds,
        stall_timeout=seconds,
        total_timeout=seconds,
    )
    outcome = session.server(case, "migrated").run(launch)
    if outcome.failure is not None or not result.exists():
        why = "it took too long" if outcome.failure and outcome.failure.kind in ("timeout", "stall") else "it failed"
        return _not_known(why, () if outcome.failure is None else tuple(outcome.failure.tail))
    return l9_compiled.judge(read(json.loads(result.read_text())))


def _not_known(why: str, notes: tuple[str, ...] = ()) -> LevelResult:
    summary = f"what XLA says is not known: {why}"
    title = TITLES[l9_compiled.ID]
    return LevelResult(l9_compiled.ID, title, Status.NOT_EXERCISED, summary, Reason.NOT_EXERCISED, notes=notes)


def read(found: Sequence[Mapping[str, Any]]) -> tuple[Graph, ...]:
    """The answer of compile_steps.py."""
    return tuple(
        Graph(
            trains=bool(one["trains"]),
            operations=int(one["operations"]),
            on_host=tuple(Operation(kind, lacks, _place(place)) for kind, lacks, place in one["host"]),
            refused=None if one["refused"] is None else _refused(*one["refused"]),
            unknown=one["open"],
            sized=bool(one["sizes"]),
            soft_placement=bool(one["soft_placement"]),
        )
        for one in found
    )


def _refused(kind: str, said: str, place: Sequence[Any] | None) -> tuple[Operation, str]:
    return Operation(kind or "an operation", "", _place(place)), said


def _place(place: Sequence[Any] | None) -> str:
    return "" if place is None else f"{os.path.relpath(place[0])}:{place[1]}"
