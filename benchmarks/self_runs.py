"""Whether a program is found equivalent to itself, with the same grade, however busy the machine is.

usage: python benchmarks/self_runs.py [--runs 100] [--seconds S] [--to runs.jsonl] [--kind KIND] [CASE ...]

Each case (a fixture or workload by its name, a folder with a case.toml, or a script) is compared with itself in turn,
everything anew each time, until there are so many runs or the seconds are over. One session runs all of one kind:
TensorFlow is imported once a side. Each run is a line of --to, where earlier ones count, too: a hundred runs can be
made in several goes, while a machine is busy and while it is not.

Kinds: "original", an original against itself on its own TensorFlow; "migrated", a migrated program against itself, with
single steps, evaluations and predictions; "pair", the original against the migrated program. A table of all runs is
printed at the end. Exit code 1 if a run was not EQUIVALENT, or two of a case had different grades.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from migrator.harness import session
from migrator.harness.mutants import cases
from migrator.harness.protocol.results import Status

#: Convolutions and a dropout; shuffles with a seed, and data drawn by chance; batch normalisation; embeddings with
#: momentum; feature columns and two optimizers; recurrent cells; a partial batch and a regularizer; two replicas; two
#: mirrored workers.
_PAIRS = Path("tests/harness/pairs")
CASES = (
    "classifier",
    _PAIRS / "passes" / "original.py",
    _PAIRS / "drawn" / "original.py",
    "batch_norm",
    "embedding_momentum",
    "wide_and_deep",
    _PAIRS / "gru" / "original.py",
    "two_files",
    "mirrored_replicas",
    "multi_worker_mirrored",
)
#: Virtual devices of the fixtures that are written for several.
_DEVICES = {"mirrored_replicas": 2}


def case_of(word: str, kind: str) -> tuple[str, session.Case]:
    """The name of a case, and what is compared."""
    path = Path(word)
    if path.suffix == ".py":
        name = f"{path.parent.name}/{path.stem}" if path.stem == "original" else path.stem
        original, migrated, cluster = path, path.with_name("migrated.py"), ""
    else:
        (one,) = cases.find([word])
        name, original, migrated, cluster = one.name, one.original, one.migrated, one.cluster
    options: dict[str, Any] = {"cluster": cluster, "devices": _DEVICES.get(name, 1)}
    if kind == "original":
        return name, session.make_case(original, original, both_original=True, **options)
    if kind == "migrated":
        return name, session.make_case(migrated, migrated, original_runs="2.21", **options)
    return name, session.make_case(original, migrated, **options)


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The runs that were made so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def table(runs: list[dict[str, Any]]) -> int:
    """Prints a line for each case, and what was wrong; how many things were."""
    wrong = 0
    for name, kind in dict.fromkeys((run["case"], run["kind"]) for run in runs):
        own = [run for run in runs if (run["case"], run["kind"]) == (name, kind)]
        verdicts = Counter(run["verdict"] for run in own)
        grades = Counter(run["grade"] for run in own if run["verdict"] == Status.EQUIVALENT.value)
        told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
        seconds, loads = [run["seconds"] for run in own], [run["load"] for run in own]
        print(
            f"| {name} | {kind} | {told} | {len(grades)} | {max(run['worst'] for run in own):.2g} | "
            f"{min(seconds):.0f} to {max(seconds):.0f} | {min(loads):.1f} to {max(loads):.1f} |"
        )
        wrong += len(own) - verdicts[Status.EQUIVALENT.value] + max(len(grades) - 1, 0)
        for run in own:
            if run["verdict"] != Status.EQUIVALENT.value:
                print(f"    {run['verdict']}: {run['summary']}")
        if len(grades) > 1:
            print("\n".join(f"    {count} of grade: {grade}" for grade, count in grades.items()))
    print(f"{len(runs)} runs, load {min(run['load'] for run in runs):.1f} to {max(run['load'] for run in runs):.1f}")
    return wrong


def main() -> None:
    """Compares each case with itself, and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--to", type=Path, default=Path("self_runs.jsonl"))
    parser.add_argument("--kind", choices=("original", "migrated", "pair"), default="original")
    options = parser.parse_args()
    words = [str(one) for one in options.cases or CASES]
    chosen = [case_of(word, options.kind) for word in words]
    earlier = Counter(run["case"] for run in lines_of(options.to) if run["kind"] == options.kind)
    end = time.monotonic() + options.seconds
    with session.open_session() as opened:
        while sum(earlier.values()) < options.runs and time.monotonic() < end:
            name, case = min(chosen, key=lambda one: earlier[one[0]])
            started, load = time.monotonic(), os.getloadavg()[0]
            report = session.verify(case, session=opened)
            document = report.document
            ratios = [level["ratio"] for level in document["levels"] if isinstance(level["ratio"], float)]
            line = {
                "case": name,
                "kind": options.kind,
                "verdict": report.status.value,
                "grade": document["grade"]["said"],
                "summary": report.summary,
                "worst": max(ratios, default=0.0),
                "seconds": time.monotonic() - started,
                "load": max(load, os.getloadavg()[0]),
            }
            with options.to.open("a") as stream:
                stream.write(json.dumps(line) + "\n")
            earlier[name] += 1
    sys.exit(1 if table(lines_of(options.to)) else 0)


if __name__ == "__main__":
    main()
