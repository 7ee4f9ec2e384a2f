"""`tf-migrate checkpoint`: TensorFlow 1 checkpoint to migrated program and back, checked tensor by tensor.

The map is made anew each time, from the program's own model and the checkpoint's own graph: a file of names beside the
program would be wrong as soon as a hyperparameter changes. The migrated program needs none of it when it runs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from migrator.checkpoint.matching import ITERATIONS, CheckpointError, CheckpointMap, Tensors, match, power, read_tensors
from migrator.checkpoint.transforms import Array, back, describe
from migrator.full_disk import full_disk
from migrator.harness.recording import Variable

_SCRIPT = Path(__file__).parents[1] / "harness" / "inside" / "carry.py"
_LINES = 12


@dataclass(frozen=True)
class Row:
    """One tensor of the table: both names, its shape, what is done to its values, and whether it was read back."""

    tf1: str
    keras: str
    shape: tuple[int, ...]
    done: str
    equal: bool


@dataclass(frozen=True)
class Carried:
    """What was written where, tensor by tensor; `remarks` are (code, sentence)."""

    prefix: Path
    rows: tuple[Row, ...]
    how: str
    remarks: tuple[tuple[str, str], ...]

    @property
    def good(self) -> bool:
        """Whether every tensor was read back as it was written."""
        return all(row.equal for row in self.rows)


@dataclass(frozen=True)
class Order:
    """What to do: `keras` is the migrated program's checkpoint to carry back, None to carry `tf1` over.

    `out` None means the folder that the program itself looks into.
    """

    python: Path
    program: Path
    arguments: tuple[str, ...]
    tf1: Path
    keras: Path | None
    out: Path | None
    names: Mapping[str, str]


def carry(order: Order) -> Carried:
    """Does it. Raises CheckpointError for everything that may be wrong with the checkpoint or the program."""
    folder = Path(tempfile.mkdtemp(prefix="tf-migrate-checkpoint-"))
    try:
        return _carry(order, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _carry(order: Order, folder: Path) -> Carried:
    job = {
        "folder": str(folder),
        "script": str(order.program.resolve()),
        "arguments": list(order.arguments),
        "tf1": str(order.tf1.resolve()),
        "keras": None if order.keras is None else str(order.keras.resolve()),
        "out": None if order.out is None else str(order.out.resolve()),
        "step": "global_step",
    }
    (folder / "job.json").write_text(json.dumps(job))
    environment = {name: value for name, value in os.environ.items() if name not in ("TF_CONFIG", "PYTHONPATH")}
    environment.update(CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="2")
    if "TF_USE_LEGACY_KERAS" in order.program.read_text(encoding="utf-8", errors="replace"):
        environment.setdefault("TF_USE_LEGACY_KERAS", "1")  # TensorFlow is imported before the program asks for it
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(order.python), str(_SCRIPT), str(folder / "job.json")],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
        )
        assert process.stdin is not None
        try:
            facts = _wait(process, folder, "facts.json")
            plan = _plan(order, folder, facts)
            arrays: dict[str, Any] = {f"v:{name}": value for name, value in plan.values.items()}
            np.savez(folder / "values.npz", **arrays)
            process.stdin.write(b"write\n")
            process.stdin.close()
            done = _wait(process, folder, "done.json")
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait()
    after = _load(folder / "after.npz")
    out = Path(done["out"])
    _bring(folder / "made", out)
    return Carried(out / done["prefix"], _rows(order, plan, after), plan.map.how, tuple(plan.remarks))


def _bring(made: Path, out: Path) -> None:
    """Puts the files of a new checkpoint into a folder: first beside what is there, then in its place."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".tf-migrate-", dir=out) as name:
            # The file that names the checkpoint comes last: until then nobody looks for the others.
            files = sorted(made.iterdir(), key=lambda file: file.name == "checkpoint")
            for file in files:
                shutil.copyfile(file, Path(name, file.name))
            for file in files:
                Path(name, file.name).replace(out / file.name)
    except OSError as error:
        why = full_disk(error) or error.strerror
        raise CheckpointError("TFM866", f"{out}: the checkpoint cannot be written: {why}") from error


def _wait(process: subprocess.Popen[bytes], folder: Path, name: str) -> dict[str, Any]:
    """What the other process tells; CheckpointError when it ends without a word."""
    while True:
        ended = process.poll() is not None
        if (folder / name).exists():
            found = json.loads((folder / name).read_text())
            assert isinstance(found, dict)
            return found
        if ended:
            raise CheckpointError("TFM865", f"the program ended unexpectedly\n{_last_lines(folder)}")
        try:
            process.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            continue


def _last_lines(folder: Path) -> str:
    lines = (folder / "log").read_text(encoding="utf-8", errors="replace").splitlines()
    lines = [line for line in lines if not re.match(r"[IWE]\d{4} |WARNING: All log messages before absl", line)]
    return "\n".join(f"    {line}" for line in lines[-_LINES:])


def _load(path: Path) -> dict[str, Array]:
    with np.load(path) as archive:
        return {name[2:]: archive[name] for name in archive.files}


@dataclass(frozen=True)
class _Plan:
    map: CheckpointMap
    tensors: Tensors
    values: dict[str, Array]
    remarks: list[tuple[str, str]]


def _plan(order: Order, folder: Path, facts: Mapping[str, Any]) -> _Plan:
    """The map, and the values to write. Raises CheckpointError."""
    if facts["tf1"]["problem"] is not None:
        raise CheckpointError("TFM860", f"{order.tf1}: {facts['tf1']['problem']}")
    if facts["problem"] is not None:
        raise CheckpointError("TFM865", f"{order.program}: {facts['problem']}\n{_last_lines(folder)}")
    if facts["keras_problem"] is not None:
        raise CheckpointError("TFM860", f"{order.keras}: {facts['keras_problem']}")
    values = _load(folder / "tf1.npz")
    tensors = read_tensors(values, facts["tf1"]["created"])
    weights = [
        Variable(one["name"], tuple(one["shape"]), one["dtype"], one["trainable"], index, 1)
        for index, one in enumerate(facts["weights"])
    ]
    slots = [(weight, slot) for weight, slot in facts["slots"]]
    found = match(tensors, weights, slots, facts["optimizer"], order.names)
    remarks = [("TFM862", f"`{name}` does not exist in the program") for name in found.alone]
    remarks += [("TFM862", f"`{name}` is not numeric") for name in facts["tf1"]["other"]]
    if order.keras is not None:
        return _Plan(found, tensors, _back_values(folder, found, values, facts), remarks)
    if order.out is None and facts["folder"] is None:
        raise CheckpointError("TFM866", f"{order.program} looks for no checkpoint of its own: give a folder with -o")
    out = Path(facts["folder"]) if order.out is None else order.out
    if (out / "ckpt.index").exists():
        raise CheckpointError("TFM866", f"{out} holds a checkpoint of the migrated program already")
    remarks += _power_remarks(found, values, facts)
    return _Plan(found, tensors, {entry.target: entry.to_keras(values) for entry in found.entries}, remarks)


def _power_remarks(
    found: CheckpointMap, values: Mapping[str, Array], facts: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """Where Adam counted other steps than the global step, Keras corrects its bias otherwise."""
    remarks = []
    for name, setting in found.powers.items():
        assert found.step is not None
        expected = power(facts["optimizer"]["settings"][setting], int(values[found.step]))
        if not np.isclose(values[name], expected, rtol=1e-3, atol=1e-30):
            message = (
                f"`{name}` is {float(values[name]):.6g}, not {float(expected):.6g}: Adam has taken another number of "
                "steps than the global step says, which Keras counts by"
            )
            remarks.append(("TFM867", message))
    return remarks


def _back_values(
    folder: Path, found: CheckpointMap, values: Mapping[str, Array], facts: Mapping[str, Any]
) -> dict[str, Array]:
    keras = _load(folder / "keras.npz")
    shapes = {name: value.shape for name, value in values.items()}
    new = back(found.entries, keras, shapes)
    for name, setting in found.powers.items():
        new[name] = np.asarray(power(facts["optimizer"]["settings"][setting], int(keras[ITERATIONS])), np.float32)
    for name in (*found.alone, *found.inert):
        new[name] = values[name]
    return {name: value.astype(values[name].dtype) for name, value in new.items()}


def _rows(order: Order, plan: _Plan, after: Mapping[str, Array]) -> tuple[Row, ...]:
    rows = []
    for entry in plan.map.entries:
        names = [entry.target] if order.keras is None else list(entry.sources)
        equal = all(name in after and np.array_equal(after[name], plan.values[name]) for name in names)
        shape = plan.values[names[0]].shape
        keras = entry.target.removeprefix("weight:").removeprefix("slot:").replace("|", " ")
        if entry.target == ITERATIONS:
            keras = "optimizer.iterations"
        source = entry.sources[0] if len(entry.sources) == 1 else f"{entry.sources[0]} ..."
        rows.append(Row(source, keras, shape, describe(entry), equal))
    rest: Sequence[str] = () if order.keras is None else (*plan.map.powers, *plan.map.inert, *plan.map.alone)
    for name in rest:
        equal = name in after and np.array_equal(after[name], plan.values[name])
        done = "computed" if name in plan.map.powers else "as it was"
        rows.append(Row(name, "", plan.values[name].shape, done, equal))
    return tuple(rows)
