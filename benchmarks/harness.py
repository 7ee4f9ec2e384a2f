"""What a verification costs beside the two programs themselves.

usage: python benchmarks/harness.py [--steps N] [--set NAME=VALUE] [--cluster SHAPE] [ORIGINAL MIGRATED]

Runs each program alone (a fresh interpreter that imports TensorFlow once and is forked for each task, no recorder:
for a cluster that is cheaper than starting each task by itself, so the ratio is rather too high than too low), then
`tf-migrate verify` on both, and prints the wall times side by side. Without programs: benchmarks/programs/minute_*.py
with --steps for about a minute each. `--set MAX_STEPS=3000` changes a constant in temporary copies of both; {folder}
and {program} in the value stand for a fresh folder and for original or migrated: alone, the programs write where they
say and would find each other's checkpoints there, so give `--set 'MODEL_DIR="{folder}/{program}"'`.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from pathlib import Path

from migrator.harness import environments, session
from migrator.harness.cluster import ClusterShape, ForkServer, Launch

PROGRAMS = Path(__file__).resolve().parent / "programs"


def alone(program: str, script: Path, shape: ClusterShape, arguments: tuple[str, ...]) -> float:
    """Seconds that a program takes by itself, the start of its interpreter included."""
    python = environments.original_python() if program == "original" else environments.migrated_python()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, ForkServer(python, program) as server:
        launch = Launch(program, script, arguments, shape, Path(folder), total_timeout=3600.0, stall_timeout=3600.0)
        outcome = server.run(launch)
        if outcome.failure is not None:
            sys.exit(f"{script} failed: {outcome.failure.message}\n" + "\n".join(outcome.failure.tail))
    return time.monotonic() - started


def changed_copy(script: Path, constants: list[str], folder: Path) -> Path:
    """The script with other values for some of its constants, in `folder`."""
    text = script.read_text(encoding="utf-8")
    for constant in constants:
        name, _, value = constant.partition("=")
        text, count = re.subn(rf"^{re.escape(name)} = .*$", f"{name} = {value}", text, flags=re.MULTILINE)
        if count != 1:
            sys.exit(f"{script} has no single constant {name}")
    path = folder / script.name
    path.write_text(text, encoding="utf-8")
    return path


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("original", nargs="?", type=Path)
    parser.add_argument("migrated", nargs="?", type=Path)
    parser.add_argument("--steps", type=int, default=4000, help="for the benchmark's own programs")
    parser.add_argument("--cluster", default="")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", dest="constants")
    options = parser.parse_args()
    arguments: tuple[str, ...] = ()
    if options.original is None:
        options.original, options.migrated = PROGRAMS / "minute_original.py", PROGRAMS / "minute_migrated.py"
        arguments = ("--steps", str(options.steps))
    with tempfile.TemporaryDirectory() as folder:
        scripts = []
        for program, script in (("original", options.original), ("migrated", options.migrated)):
            constants = [one.replace("{folder}", folder).replace("{program}", program) for one in options.constants]
            scripts.append(changed_copy(script, constants, Path(folder)))
        case = session.make_case(
            scripts[0], scripts[1], cluster=options.cluster, args=arguments, total_timeout=3600.0, stall_timeout=600.0
        )
        seconds = {
            "original alone": alone("original", scripts[0], case.shape, arguments),
            "migrated alone": alone("migrated", scripts[1], session.counterpart(case.shape), arguments),
        }
        both = sum(seconds.values())
        started = time.monotonic()
        report = session.verify(case, lambda progress: print(f"  {progress}", file=sys.stderr))
        seconds["verify"] = time.monotonic() - started
    for name, value in seconds.items():
        print(f"{name:16} {value:7.1f} s")
    print(f"{'ratio':16} {seconds['verify'] / both:7.2f}   ({report.status.value}: {report.summary})")


if __name__ == "__main__":
    main()
