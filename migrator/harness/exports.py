"""Asks the SavedModels that both programs exported the same, in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from migrator.harness.case import Case
from migrator.harness.cluster import ClusterShape, Launch
from migrator.harness.protocol.l8_artefacts import Served
from migrator.harness.protocol.name_map import NameMap
from migrator.harness.recording import Array, Prediction, read_batch
from migrator.harness.runs import Run, Session

_SCRIPT = Path(__file__).parent / "inside" / "serve_exports.py"


def ask(session: Session, case: Case, original: Run, migrated: Run, names: NameMap, initial: str) -> Served | None:
    """What the last SavedModel of each run says to the same requests with the same weights.

    `initial` names a file of the weights, under the original's names, that training began with. None where a run left
    no SavedModel, or where one could not be loaded.
    """
    copies = [
        run.recording.exports[-1].copy if run.recording is not None and run.recording.exports else None
        for run in (original, migrated)
    ]
    if None in copies:
        return None
    folder = session.new_folder("exports")
    features = folder / "features.npz"
    with features.open("wb") as handle:
        np.savez(handle, **_features(original))  # type: ignore[arg-type]
    result = folder / "result.npz"
    job = {
        "original": str(copies[0]),
        "migrated": str(copies[1]),
        "names": names.to_migrated(),
        "initial": initial,
        "features": str(features),
        "result": str(result),
    }
    (folder / "job.json").write_text(json.dumps(job))
    launch = Launch(
        "migrated",
        _SCRIPT,
        (str(folder / "job.json"),),
        ClusterShape(),
        folder,
        ready_timeout=case.total_timeout,
        stall_timeout=case.total_timeout,
        total_timeout=case.total_timeout,
    )
    outcome = session.server(case, "migrated").run(launch)
    return _read(result) if outcome.failure is None and result.exists() else None


#: Examples of the training in a request, which come once more with numbers half as great: fewer, down to the second
#: number, where they are more than so many bytes (images, which take their time).
_EXAMPLES, _FEW, _BYTES = 128, 8, 1 << 20


def _features(run: Run) -> dict[str, Array]:
    """The features of the first examples, without the first part of their paths; text as bytes. The second half are the
    same with floats half as great: what a model decides by a threshold shows where there are many values about it.
    """
    assert run.recording is not None
    found: dict[str, list[Array]] = {}
    for batch in run.recording.batches:
        if not batch.kept or sum(map(len, next(iter(found.values()), []))) >= _EXAMPLES:
            continue
        values = {
            path: value for path, value in read_batch(run.record_dir, batch).items() if path.startswith("features")
        }
        named = {path.partition("/")[2] or path: value for path, value in values.items()}
        fits = {name: value for name, value in named.items() if value.shape[:1] == (batch.size,)}
        if found and {name: value.shape[1:] for name, value in fits.items()} != {
            name: several[0].shape[1:] for name, several in found.items()
        }:
            continue
        for name, value in fits.items():
            found.setdefault(name, []).append(value)
    each = sum(several[0][:1].nbytes for several in found.values())
    count = min(_EXAMPLES, max(_FEW, _BYTES // max(each, 1)))
    return {name: _asked(np.concatenate(several)[:count]) for name, several in found.items()}


def _asked(value: Array) -> Array:
    if value.dtype == object:
        value = value.astype("S")
    again = value / value.dtype.type(2) if value.dtype.kind == "f" else value
    return np.concatenate([value, again])


def _read(path: Path) -> Served:
    with np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    said = json.loads(str(arrays.pop("said")))
    weights: dict[str, dict[str, Array]] = {"original": {}, "migrated": {}}
    outputs: dict[str, dict[str, dict[str, Array]]] = {}
    for name, value in arrays.items():
        kind, what, rest = name.split("|", 2)
        if kind == "weights":
            weights[what][rest] = value
        else:
            key, _, output = rest.partition("|")
            outputs.setdefault(key, {}).setdefault(what, {})[output] = value
    unasked: dict[str, str | tuple[tuple[str, ...], tuple[str, ...]]] = {
        key: why if isinstance(why, str) else (tuple(why["original"]), tuple(why["migrated"]))
        for key, why in said["not_asked"].items()
    }
    return Served(
        (weights["original"], weights["migrated"]),
        (tuple(said["original"]), tuple(said["migrated"])),
        {key: _answer(of_key) for key, of_key in outputs.items() if "same" in of_key},
        unasked,
    )


def _answer(outputs: Mapping[str, dict[str, Array]]) -> Prediction:
    return Prediction(
        task="",
        step=None,
        outputs=outputs["own"],
        same_weights=outputs["same"],
        control=outputs.get("control"),
        nudged=tuple(value for what, value in sorted(outputs.items()) if what.startswith("nudged")),
    )
