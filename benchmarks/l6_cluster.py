"""What L6 says on a real cluster: of a migrated program as it is, and with its learning rate some per cent off.

usage: python benchmarks/l6_cluster.py --cluster SHAPE [--seeds 8] [--off 0.05] ORIGINAL MIGRATED

`tf-migrate verify --full` never shows the second: L0b reads the rate back and ends there. Here the same seeds are run
once more with the rate changed while the program runs, and L6 judges both.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from migrator.harness import seeds, session
from migrator.harness.case import without_evaluator
from migrator.harness.migrated import build_names, probe
from migrator.harness.original import record_original
from migrator.harness.protocol import l6_asynchronous
from migrator.harness.runs import migrated_shape, run_program, weights_file


def main() -> None:
    """Runs all seeds, and prints what L6 says of both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("original", type=Path)
    parser.add_argument("migrated", type=Path)
    parser.add_argument("--cluster", required=True)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--off", type=float, default=0.05)
    options = parser.parse_args()
    case = session.make_case(options.original, options.migrated, cluster=options.cluster, seeds=options.seeds)
    with session.open_session() as opened:
        evidence = record_original(opened, replace(case, steps=12), lambda _: None)
        first = probe(opened, case).recording
        assert evidence.main.recording is not None and first is not None, "a program failed"
        names = build_names(evidence.main.recording, first, {})
        values = evidence.main.recording.initial
        made = seeds.run_seeds(opened, case, lambda one: print(f"  {one}", file=sys.stderr), values, names)
        assert made.failed is None, made.failed
        shape = migrated_shape(case, without_evaluator(case.shape))
        changed = []
        for number, seed in enumerate(made.seeds):
            initial = weights_file(opened, seeds.another_draw(values, number), names.to_migrated())
            run = run_program(
                opened,
                case,
                "migrated",
                f"seed {number + 1} changed",
                shape,
                initial=initial,
                learning_rate_factor=1.0 + options.off,
                state_steps=[],
                record_batches=False,
            )
            assert run.recording is not None, run.complaint
            changed.append(replace(seed, migrated=np.asarray(seeds.losses_in_order(run.recording))))
    for name, pairs in (("as it is", made.seeds), (f"rate {options.off:+.0%}", tuple(changed))):
        level, shown = l6_asynchronous.judge(pairs, made.participation, case.promised)
        print(f"{name:10} {level.status.value:13} {level.summary}")
        if shown is not None:
            print(f"{'':10} of each seed: " + " ".join(f"{one:+.2%}" for one in shown.per_seed))


if __name__ == "__main__":
    main()
