"""Tries the codemod on programs put together by chance: both sides are run, their numbers compared.

    python tools/fuzz.py --seed 1 --programs 200 --jobs 1
    python tools/fuzz.py --only 'driver=two models; regularization=name starts not'
    python tools/fuzz.py --seed 7 --show            # the program of a seed, nothing is run
    python tools/fuzz.py --tree ../older-checkout   # the tool of another tree
    python tools/fuzz.py --reword 4         # programs in other words (tests/rewording)
    python tools/fuzz.py --style bridge             # what bridges print is compared

Program n of a run has the seed SEED + n. Exit code 1 if a program trains otherwise or crashes once it is migrated, or
if the tool itself fails; each of these is made as small as it can be and printed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.fuzz.axes import draw, parse, sensible, shown
from tests.fuzz.judging import Kind
from tests.fuzz.programs import files
from tests.fuzz.sides import TREE, Setting
from tests.fuzz.trying import Trial, attempt, shrink

_BATCH = 25


def report(trial: Trial, name: str, setting: Setting, smaller: bool) -> None:
    """Prints a failure, as small as it can be made."""
    print(f"\n{name}: {trial.outcome.kind.value}: {shown(trial.values)}")
    if smaller:
        trial = shrink(trial, setting)
        print(f"  smallest: --only '{shown(trial.values)}'")
    for reason in trial.outcome.reasons[:6]:
        print(f"  {reason}")
    if smaller:
        for file, text in trial.texts.items():
            print(f"  --- {file}\n" + "".join(f"  | {line}\n" for line in text.splitlines()))
    sys.stdout.flush()


def main() -> int:
    """The command; 1 if something failed."""
    parser = argparse.ArgumentParser(description="Tries the codemod on programs put together by chance.")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first program")
    parser.add_argument("--programs", type=int, default=50, help="how many programs")
    parser.add_argument("--only", action="append", default=[], metavar="AXES", help="this program (may be repeated)")
    parser.add_argument("--jobs", type=int, default=1, help="how many interpreters at a time")
    parser.add_argument("--shrink", type=int, default=3, help="how many failures are made small")
    parser.add_argument("--tree", type=Path, default=TREE, help="the checkout whose tool is tried")
    parser.add_argument("--tensorflow1", type=Path, help="a Python with TensorFlow 1.15 for the originals")
    parser.add_argument("--style", default="auto", choices=("auto", "native", "bridge"), help="of the tool")
    parser.add_argument("--bridge", action="store_true", help="what is blocked may become a bridge, as for users")
    parser.add_argument("--reword", type=int, default=0, metavar="N", help="say each program in N other ways at once")
    parser.add_argument("--show", action="store_true", help="print the programs only")
    parser.add_argument("--verbose", action="store_true", help="a line for every program")
    options = parser.parse_args()
    if options.only:
        programs = {f"program {n}": sensible(parse(text)) for n, text in enumerate(options.only)}
    else:
        programs = {f"seed {seed}": draw(seed) for seed in range(options.seed, options.seed + options.programs)}
    if options.show:
        for name, values in programs.items():
            print(f"# {name}: {shown(values)}")
            for file, text in files(values).items():
                print(f"# --- {file}\n{text}")
        return 0
    tree, bridge = options.tree.resolve(), options.bridge or options.style == "bridge"
    setting = Setting(tree, options.tensorflow1, options.jobs, options.style, bridge, options.reword)
    counted: Counter[Kind] = Counter()
    failed = 0
    started = time.monotonic()
    names = list(programs)
    for begin in range(0, len(names), _BATCH):
        batch = names[begin : begin + _BATCH]
        for name, trial in zip(batch, attempt([programs[name] for name in batch], setting), strict=True):
            counted[trial.outcome.kind] += 1
            if trial.outcome.failed:
                report(trial, name, setting, failed < options.shrink)
                failed += 1
            elif options.verbose:
                print(f"{name}: {trial.outcome.kind.value}: {shown(trial.values)} {trial.outcome.reasons[:1] or ''}")
    figures = ", ".join(f"{counted[kind]} {kind.value}" for kind in Kind if counted[kind])
    print(f"{len(names)} programs: {figures}; {time.monotonic() - started:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
