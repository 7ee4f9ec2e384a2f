"""How far the same training drifts apart between TensorFlow versions, for the tolerance of the levels.

usage: python benchmarks/version_floor.py [--tensorflow1 PYTHON_OF_TF_1.15] [CASE_FOLDER ...]

A case folder holds original.py and migrated.py (fixtures/*, migrator/harness/mutants/workloads/*; clusters are left
out). Every program starts from the same weights. Each column compares one run with the original on the older
TensorFlow 2: the same original again, the original on TensorFlow 1.15, the migrated program on the older and on the
newer TensorFlow 2. Each cell is the greatest |difference| of a family of numbers in units of eps * max|value|; in
brackets the same divided by sqrt(n), n being the longest sum of a forward or backward pass
(protocol/tolerance.py, reduction_terms).
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from migrator.harness import environments
from migrator.harness.cluster import ClusterShape, ForkServer, Launch
from migrator.harness.protocol import compare, measurements, name_map, tolerance
from migrator.harness.recording import Recording, read
from migrator.harness.runs import plan_for

ROOT = Path(__file__).resolve().parents[1]
EPS = float(np.finfo(np.float32).eps)
FAMILIES = ("loss 1", "gradient 1", "state 1", "slot 1", "state 10", "loss last")


def record(
    server: ForkServer, program: str, script: Path, folder: Path, initial: Mapping[str, np.ndarray] | None
) -> tuple[Recording, Path]:
    """One recorded run of a script by itself, from given weights if there are any."""
    weights = None
    if initial is not None:
        folder.mkdir(parents=True)
        weights = folder / "initial.npz"
        with weights.open("wb") as handle:
            np.savez(handle, **initial)  # type: ignore[arg-type]
    plan = plan_for(program, folder, ClusterShape(), initial=None if weights is None else str(weights))
    outcome = server.run(Launch(program, script, (), ClusterShape(), folder, plan=plan))
    if outcome.failure is not None:
        raise SystemExit(f"{script}: {outcome.failure.message}\n" + "\n".join(outcome.failure.tail))
    return read(folder / "record"), folder


def distances(original: Recording, other: Recording, rename: Mapping[str, str] | None) -> dict[str, float]:
    """By family: the greatest difference, in eps times the greatest value of the tensor."""
    ours, theirs = measurements.everything(original), measurements.everything(other, rename)
    last = max(step.number for step in original.steps)
    found: dict[str, float] = {}
    for (quantity, step), value in ours.items():
        family = f"{quantity.family} {'last' if quantity.family == 'loss' and step == last else step}"
        outcome = compare.compare(value, theirs.get((quantity, step)))
        if family in FAMILIES and outcome.kind is compare.Kind.VALUE and np.issubdtype(value.dtype, np.floating):
            scale = float(np.max(np.abs(value))) or 1.0
            found[family] = max(found.get(family, 0.0), outcome.absolute / (EPS * scale))
    return found


def main() -> None:
    """Runs every case on every version and prints one line for each family."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", type=Path)
    parser.add_argument("--tensorflow1", type=Path, help="an interpreter with TensorFlow 1.15")
    options = parser.parse_args()
    folders = options.cases or [
        path.parent
        for place in ("fixtures", "migrator/harness/mutants/workloads")
        for path in sorted((ROOT / place).glob("*/original.py"))
        if "cluster" not in (path.parent / "case.toml").read_text(encoding="utf-8")
    ]
    old, new = environments.original_python(), environments.migrated_python()
    with (
        tempfile.TemporaryDirectory() as place,
        ForkServer(old, "original") as original_server,
        ForkServer(options.tensorflow1 or old, "original") as first_server,
        ForkServer(old, "migrated") as older_server,
        ForkServer(new, "migrated") as newer_server,
    ):
        columns = {
            "again": (original_server, "original"),
            **({"TF 1.15": (first_server, "original")} if options.tensorflow1 else {}),
            "Keras, older": (older_server, "migrated"),
            "Keras, newer": (newer_server, "migrated"),
        }
        print(f"{'case':24} {'family':11} {'sqrt(n)':>8} " + " ".join(f"{name:>22}" for name in columns))
        for number, folder in enumerate(folders):
            base_folder = Path(place) / f"{number}"
            base, _ = record(original_server, "original", folder / "original.py", base_folder / "base", None)
            spread = math.sqrt(tolerance.reduction_terms(base))
            table: dict[str, dict[str, float]] = {}
            for name, (server, program) in columns.items():
                script, rename, initial = folder / f"{program}.py", None, dict(base.initial)
                if program == "migrated":
                    probe, _ = record(server, program, script, base_folder / f"{name} probe", None)
                    names = name_map.build(base.variables, probe.variables, {})
                    rename = names.to_original()
                    initial = {names.to_migrated()[key]: value for key, value in base.initial.items()}
                other, _ = record(server, program, script, base_folder / name, initial)
                table[name] = distances(base, other, rename)
            for family in FAMILIES:
                cells = []
                for name in columns:
                    value = table[name].get(family)
                    cells.append("-" if value is None else f"{value:.3g} ({value / spread:.2g})")
                if any(cell != "-" for cell in cells):
                    print(f"{folder.name:24} {family:11} {spread:8.1f} " + " ".join(f"{cell:>22}" for cell in cells))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
