"""How often a program is not found equivalent to itself.

usage: python benchmarks/false_alarms.py [--times 20] [CASE_FOLDER ...]

Each original (fixtures/* if none is named; one process, or the cluster of its case.toml) is compared with itself so
many times, each time by new runs, and every few times (--fresh) on a new noise floor. Prints one line for each case
and what was not EQUIVALENT. Exit code 1 if there was a false alarm.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from migrator.harness import session
from migrator.harness.mutants import cases
from migrator.harness.protocol.results import Status

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Compares each case with itself, and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--fresh", type=int, default=5, help="comparisons on one noise floor")
    options = parser.parse_args()
    alarms = 0
    with session.open_session() as opened:
        for one in cases.find(options.cases) if options.cases else cases.fixtures():
            case = session.make_case(one.original, one.original, cluster=one.cluster, both_original=True)
            verdicts: Counter[str] = Counter()
            worst, evidence, started = 0.0, None, time.monotonic()
            for number in range(options.times):
                if number % options.fresh == 0:
                    evidence = session.collect_original(opened, case, lambda _: None)
                report = session.verify(case, session=opened, evidence=evidence)
                verdicts[report.status.value] += 1
                for level in report.document["levels"]:
                    ratio = level["ratio"]
                    if isinstance(ratio, float) and level["id"] in ("L3", "L4", "L5", "L5s", "L7"):
                        worst = max(worst, ratio)
                if report.status is not Status.EQUIVALENT:
                    alarms += 1
                    print(f"  {one.name}, number {number + 1}: {report.status.value}: {report.summary}")
            told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
            seconds = (time.monotonic() - started) / options.times
            print(f"{one.name:30} {told:24} worst {worst:.2g} floors, {seconds:.1f} s each", flush=True)
    sys.exit(1 if alarms else 0)


if __name__ == "__main__":
    main()
