"""How often L6 says what it should, by simulation: 240 paired runs for each condition, judged by the very judge.

usage: python benchmarks/l6_power.py [--quick] [--runs N] [--resamples N] [--trainers N] [--variation CV]
                                     [--trainer-rate LR] [--seed N]

Each run is asynchronous SGD on a small tanh network (16 inputs, 16 hidden units, a sigmoid; 4096 noisy examples,
batches of 32): every trainer reads the weights, takes a random time over its own next batch (log-normal, coefficient
of variation --variation) and applies the gradient of the weights it had read. Runs of one seed share initial weights
and the batches of every trainer; nothing else. A trial draws k of the 240 seeds without replacement and hands
their five loss series to migrator.harness.protocol.l6_asynchronous.judge with a promise of 5 %.

Printed is, for each condition of the migrated program, how often it was called EQUIVALENT/DIFFERENT/INCONCLUSIVE, and
below it what equivalence.md §2.4 reports for the same question. The two simulations are not the same program: that of
the reference was not kept, this one was given the same spread of a seed (0.013 in ln(rate) for windows with hard
ends). "sum/mean" sums the gradient over the batch but goes on to report the mean loss, and the extra L2 is left out
of the reported loss: reported, both would be plain from the first step.

Measured with the defaults, n = 1000 and k = 8: same .984/.002/.014, a rate 5 % off 0/.998/.002, 20 % off 0/1/0. Half
the batch is told worse than in the reference (.899 against 1). That is this world and not the rule: the reference's
rule (hard ends, one run as the baseline) says DIFFERENT in .55 of these same cases, and EQUIVALENT in .77 of "same".
With 4 trainers and --variation 1 the same program is EQUIVALENT in .62/.945/.98 of the draws at k = 5/8/12
(reference .60/.86/.89).

Takes three minutes on one core by itself; --quick a few seconds, for a rough look.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# Matrices of 32 by 16: a second thread costs more than it brings. To be said before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from migrator.harness.protocol.l6_asynchronous import RUNS, Seed, judge

Array = npt.NDArray[np.float32]
INPUTS, HIDDEN, BATCH, EXAMPLES = 16, 16, 32, 4096
LENGTHS, SEEDS = (200, 1000), (3, 5, 8, 12)


@dataclass(frozen=True)
class Condition:
    """What is done to the program: the learning rate times `rate`, and so on."""

    rate: float = 1.0
    batch: int = BATCH
    sum_for_mean: bool = False
    momentum: float = 0.0
    l2: float = 0.0


# The original's four runs, and every migrated program; all are runs of their own, with times of their own.
ORIGINAL = {
    "original": Condition(),
    "again": Condition(),
    "faster": Condition(rate=1.2),
    "slower": Condition(rate=0.8),
}
MIGRATED = {
    "same": Condition(),
    "lr 1%": Condition(rate=1.01),
    "lr 2%": Condition(rate=1.02),
    "lr 5%": Condition(rate=1.05),
    "lr 20%": Condition(rate=1.2),
    "batch/2": Condition(batch=BATCH // 2),
    "sum/mean": Condition(sum_for_mean=True),
    "mu=.1": Condition(momentum=0.1),
    "L2 1e-3": Condition(l2=1e-3),
}
REFERENCE = {
    (200, 3): ".49/.01/.50 .49/.02/.49 .39/.05/.56 .01/.28/.71 0/.79/.21 0/.08/.92 0/.79/.21 0/.61/.40 .53/.01/.47",
    (200, 5): ".73/.01/.26 .77/.02/.21 .68/.09/.23 .00/.90/.09 0/1/0 0/.38/.62 0/1/0 0/1/0 .82/.01/.17",
    (1000, 5): ".96/.00/.04 .87/.01/.12 .89/.04/.07 .01/.96/.04 0/1/0 0/1/0 0/1/0 0/1/0 .02/.94/.04",
    (1000, 8): ".995/0/.005 .98/.01/.02 1/0/0 .005/.995/0 0/1/0 0/1/0 0/1/0 0/1/0 0/1/0",
}


@dataclass(frozen=True)
class World:
    """The examples, and for each of the seeds (first axis) initial weights and a stream of examples per trainer."""

    inputs: Array
    labels: Array
    initial: Array
    stream: npt.NDArray[np.int16]
    variation: float
    learning_rate: float

    @classmethod
    def make(cls, runs: int, steps: int, trainers: int, variation: float, learning_rate: float, seed: int) -> World:
        """Random examples with a label that a small network gives them, up to logistic noise."""
        random = np.random.default_rng(seed)
        inputs = random.normal(size=(EXAMPLES, INPUTS))
        hidden = np.tanh(inputs @ (1.5 * random.normal(size=(INPUTS, 8)) / np.sqrt(INPUTS)))
        score = 3.0 * hidden @ (2.0 * random.normal(size=8) / np.sqrt(8)) + random.logistic(size=EXAMPLES)
        stream = random.integers(0, EXAMPLES, size=(runs, trainers, steps * BATCH), dtype=np.int16)
        initial = np.zeros((runs, INPUTS * HIDDEN + 2 * HIDDEN + 1))
        initial[:, : INPUTS * HIDDEN] = random.normal(size=(runs, INPUTS * HIDDEN)) / np.sqrt(INPUTS)
        initial[:, -HIDDEN - 1 : -1] = random.normal(size=(runs, HIDDEN)) / np.sqrt(HIDDEN)
        labels = (score > 0.0).astype(np.float32)
        return cls(inputs.astype(np.float32), labels, initial.astype(np.float32), stream, variation, learning_rate)

    def turns(self, steps: int, random: np.random.Generator) -> npt.NDArray[np.intp]:
        """Which trainer takes each global step, for each seed."""
        runs, trainers, _ = self.stream.shape
        sigma = np.sqrt(np.log1p(self.variation**2))
        ends = np.cumsum(random.lognormal(-(sigma**2) / 2, sigma, size=(runs, trainers, steps)), axis=2)
        return np.asarray(np.argsort(ends.reshape(runs, -1), axis=1)[:, :steps] // steps)


def gradient(weights: Array, inputs: Array, labels: Array, *, summed: bool) -> tuple[Array, Array]:
    """Mean cross-entropy of each run's batch, and the gradient of the mean or of the sum."""
    runs, batch, _ = inputs.shape
    first = weights[:, : INPUTS * HIDDEN].reshape(runs, INPUTS, HIDDEN)
    bias, second = weights[:, None, INPUTS * HIDDEN : -HIDDEN - 1], weights[:, -HIDDEN - 1 : -1, None]
    hidden = np.tanh(inputs @ first + bias)
    score = (hidden @ second)[:, :, 0] + weights[:, -1:]
    losses = np.logaddexp(np.float32(0.0), score) - labels * score
    # The exponential of a large score is infinite, and its inverse the zero that is meant.
    with np.errstate(over="ignore"):
        error = (1 / (1 + np.exp(-score)) - labels) * np.float32(1.0 if summed else 1.0 / batch)
    back = error[:, :, None] * second.transpose(0, 2, 1) * (1 - hidden * hidden)
    found = np.empty_like(weights)
    found[:, : INPUTS * HIDDEN] = (inputs.transpose(0, 2, 1) @ back).reshape(runs, -1)
    found[:, INPUTS * HIDDEN : -HIDDEN - 1] = back.sum(axis=1)
    found[:, -HIDDEN - 1 : -1] = (error[:, None] @ hidden)[:, 0]
    found[:, -1] = error.sum(axis=1)
    return losses.mean(axis=1), found


def train(
    world: World, condition: Condition, steps: int, random: np.random.Generator
) -> tuple[Array, npt.NDArray[np.intp]]:
    """The loss of each seed (first axis) at each global step, and the trainer that took it."""
    runs, trainers, _ = world.stream.shape
    every, turns = np.arange(runs), world.turns(steps, random)
    weights = world.initial.copy()
    read = np.repeat(weights[:, None], trainers, axis=1)
    taken = np.zeros((runs, trainers), dtype=np.intp)
    velocity = np.zeros_like(weights)
    matrices = np.ones(weights.shape[1], dtype=np.float32)
    matrices[INPUTS * HIDDEN : -HIDDEN - 1] = matrices[-1] = 0.0
    losses = np.empty((runs, steps), dtype=np.float32)
    for step in range(steps):
        trainer = turns[:, step]
        old = read[every, trainer]
        at = (taken[every, trainer] * condition.batch)[:, None] + np.arange(condition.batch)
        batch = world.stream[every[:, None], trainer[:, None], at]
        losses[:, step], found = gradient(old, world.inputs[batch], world.labels[batch], summed=condition.sum_for_mean)
        if condition.l2:
            found += np.float32(2.0 * condition.l2) * old * matrices
        if condition.momentum:
            velocity = found = np.float32(condition.momentum) * velocity + found
        weights = weights - np.float32(world.learning_rate * condition.rate) * found
        read[every, trainer] = weights
        taken[every, trainer] += 1
    return losses, turns


def simulate(
    world: World, steps: int, random: np.random.Generator, migrated: Mapping[str, Condition] = MIGRATED
) -> dict[str, tuple[Array, npt.NDArray[np.intp]]]:
    """The runs of the original and of every migrated program."""
    return {name: train(world, condition, steps, random) for name, condition in {**ORIGINAL, **migrated}.items()}


def verdicts(
    runs: Mapping[str, tuple[Array, npt.NDArray[np.intp]]],
    name: str,
    steps: int,
    k: int,
    resamples: int,
    random: np.random.Generator,
) -> Counter[str]:
    """How often `resamples` draws of k seeds led to which verdict, as "EQUIVALENT" or "INCONCLUSIVE reason"."""
    chosen = [runs[run if run != "migrated" else name] for run in RUNS]
    count, trainers = len(chosen[0][0]), int(chosen[0][1].max()) + 1
    seeds = [Seed(*(losses[row, :steps].astype(np.float64) for losses, _ in chosen)) for row in range(count)]
    participation = [
        {
            run: {f"worker:{task}": int(np.sum(turns[row, :steps] == task)) for task in range(trainers)}
            for run, (_, turns) in zip(RUNS, chosen, strict=True)
        }
        for row in range(count)
    ]
    found: Counter[str] = Counter()
    for _ in range(resamples):
        rows = random.choice(count, size=k, replace=False)
        level, _ = judge([seeds[row] for row in rows], [participation[row] for row in rows])
        reason = f" {level.reason.value}" if level.status.value == "INCONCLUSIVE" and level.reason else ""
        found[level.status.value + reason] += 1
    return found


def shares(found: Counter[str]) -> str:
    """EQUIVALENT/DIFFERENT/INCONCLUSIVE as fractions."""
    total = sum(found.values())
    parts = [sum(n for key, n in found.items() if key.startswith(s)) for s in ("EQUIVALENT", "DIFFERENT", "INCONC")]
    return "/".join(f"{n / total:.3f}".removeprefix("0").rstrip("0").rstrip(".") or "0" for n in parts)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="60 runs of 200 steps, 40 draws, k = 5 and 8")
    parser.add_argument("--runs", type=int, default=240, help="paired runs for each condition")
    parser.add_argument("--resamples", type=int, default=1000, help="draws of k seeds for each figure")
    parser.add_argument("--trainers", type=int, default=2)
    parser.add_argument("--variation", type=float, default=0.5, help="coefficient of variation of a step's duration")
    parser.add_argument("--trainer-rate", type=float, default=0.2, help="learning rate of the original")
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args()
    if options.quick:
        options.runs, options.resamples = min(options.runs, 60), min(options.resamples, 40)
    lengths, counts = ((200,), (5, 8)) if options.quick else (LENGTHS, SEEDS)

    # The reference has a table for two trainers with the same pace only.
    comparable = options.trainers == 2 and (options.variation, options.trainer_rate) == (0.5, 0.2)
    started = time.monotonic()
    world = World.make(
        options.runs, max(lengths), options.trainers, options.variation, options.trainer_rate, options.seed
    )
    runs = simulate(world, max(lengths), np.random.default_rng(options.seed + 1))
    print(f"{len(runs)} x {options.runs} runs of {max(lengths)} steps: {time.monotonic() - started:.0f} s")
    print(
        f"EQUIVALENT/DIFFERENT/INCONCLUSIVE, {options.resamples} draws"
        + ("; beneath: the reference\n" if comparable else "\n")
    )
    print(f"{'':>14}" + "".join(f"{name:>16}" for name in MIGRATED))
    why: dict[tuple[int, int], Counter[str]] = {}
    for steps in lengths:
        for k in counts:
            random = np.random.default_rng(options.seed + 1000 * k + steps)
            found = {name: verdicts(runs, name, steps, k, options.resamples, random) for name in MIGRATED}
            print(f"n={steps:<5} k={k:<4} " + "".join(f"{shares(one):>16}" for one in found.values()), flush=True)
            if (steps, k) in REFERENCE and comparable:
                print(f"{'':>14}" + "".join(f"{entry:>16}" for entry in REFERENCE[steps, k].split()))
            why[steps, k] = found["same"]
    print("\nwhy the same program was INCONCLUSIVE or DIFFERENT:")
    for (steps, k), one in why.items():
        reasons = ", ".join(
            f"{key} {n / options.resamples:.3f}" for key, n in sorted(one.items()) if key != "EQUIVALENT"
        )
        print(f"n={steps} k={k}: {reasons or 'never'}")
    print(f"\n{time.monotonic() - started:.0f} s in all")


if __name__ == "__main__":
    main()
