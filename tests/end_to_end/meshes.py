"""Programs for a mesh of devices (`--strategy dtensor`), run beside their Estimator originals."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from migrator.findings import Severity
from migrator.harness.environments import migrated_python
from migrator.harness.recording import Recording
from migrator.migrate import Options, migrate
from migrator.source.reading import Source, decode
from tests import warm

#: The weights of two dense layers, and layouts that divide them over a dimension `model`.
WEIGHTS = ("dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias")
COLUMNS = (r"dense\.kernel=unsharded,model", r"dense\.bias=model", r"dense_1\.kernel=model,unsharded")


@dataclass(frozen=True)
class Seen:
    """What a program for a mesh computed.

    `parts` are the shapes of each variable's part on every device, `held` the bytes of weights and slots on the first.

    `drops` is what the first dropout made of ones, twice, on each device.
    """

    losses: list[float]
    results: dict[str, float]
    weights: list[np.ndarray]
    layouts: list[list[str]]
    parts: list[list[list[int]]]
    slots: list[list[str]]
    drops: list[list[list[list[float]]]]
    held: int


def write(text: str, folder: Path, name: str, mesh: str = "", layouts: tuple[str, ...] = (), **options: str) -> Path:
    """Migrates a program and writes it."""
    source = decode(Path("train.py"), text.encode())
    assert isinstance(source, Source)
    given = {"style": "native", **options}
    [result] = migrate([source], Options("dtensor", mesh=mesh, layouts=layouts, **given))  # type: ignore[arg-type]
    assert not [f for f in result.findings if f.severity is Severity.MANUAL], result.findings
    path = folder / name
    path.write_text(result.text, encoding="utf-8")
    return path


def run_all(runs: dict[str, tuple[Path, list[tuple[str, int]] | None, Path | None]], folder: Path) -> dict[str, Seen]:
    """Runs programs one after the other in one process of TensorFlow 2.21 with eight virtual CPUs."""
    asked = [
        [str(program), mesh, None if initial is None else str(initial), str(folder / f"{name}.json")]
        for name, (program, mesh, initial) in runs.items()
    ]
    (folder / "runs.json").write_text(json.dumps(asked), encoding="utf-8")
    script = Path(__file__).parent / "mesh_runs.py"
    done = warm.run(migrated_python(), str(script), str(folder / "runs.json"), cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    found = {}
    for name in runs:
        seen: dict[str, Any] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        with np.load(folder / f"{name}.json.npz") as weights:
            values = list(weights.values())
        results = seen["results"][-1]
        found[name] = Seen(
            seen["losses"], results, values, seen["layouts"], seen["parts"], seen["slots"], seen["drops"], seen["held"]
        )
    return found


def begin(original: Recording, path: Path, weights: tuple[str, ...] = WEIGHTS) -> Path:
    """Writes the original's first weights, in the order in which the model has them."""
    first = {name.removesuffix(":0"): value for name, value in original.initial.items()}
    np.savez(path, *[first[name] for name in weights])
    return path


def assert_same(seen: Seen, original: Recording, start: int = 0, weights: tuple[str, ...] = WEIGHTS) -> None:
    """The bounds are those of `proving.prove_project`."""
    np.testing.assert_allclose(seen.losses, [step.loss for step in original.steps][start:], rtol=1e-5)
    for name, value in zip(weights, seen.weights, strict=True):
        trained = {key.removesuffix(":0"): each for key, each in original.states[5].items()}[name]
        np.testing.assert_allclose(value, trained, rtol=1e-4, atol=1e-6)
    before = original.evaluations[-1].results
    assert before is not None
    for name, number in before.items():
        if name in seen.results:
            assert seen.results[name] == pytest.approx(number, rel=1e-5), name
