"""How long the extra runs may be: short trainings are repeated in full, long ones only in their first steps.

A verification of a minute's training must not take much longer than the two programs do by themselves, and it makes
about ten runs: the noise floor and the known-bad version of a long training come from its beginning. What the
programs read and how they are set is compared to the end all the same, for that needs no extra run.

What a verdict vouches for should not hang on how busy a machine is: the time is that of the processors.
"""

from __future__ import annotations

from migrator.harness.recording import Recording

#: A training of so many seconds is repeated in full: a local one, and one of a cluster.
LOCAL_SECONDS, CLUSTER_SECONDS = 8.0, 4.0
#: The extra runs of a longer one may together take this share of what both programs take,
SHARE = 0.12
#: and each of them so many seconds of training whatever the share.
LEAST_SECONDS = 3.0
#: Never fewer steps: the last state that L4 compares is that of step 10.
LEAST_STEPS = 12


def training_seconds(recording: Recording) -> float:
    """Processor seconds of all tasks from the first recorded step to the last: how busy the machine is has no part in
    them. Where they are not known, those on the clock.
    """
    if recording.cpu is not None:
        return recording.cpu
    times = [step.time for step in recording.steps]
    return max(times) - min(times) if times else 0.0


def total_steps(recording: Recording) -> int:
    """The training steps of all asynchronous trainers together, or of one of the synchronous ones."""
    counts = recording.participation.values()
    if not counts:
        return 0
    return max(counts) if recording.replicas > 1 else sum(counts)


def affordable_steps(recording: Recording, runs: int, *, cluster: bool) -> int | None:
    """The steps of each of `runs` extra runs beside a full-length run that left `recording`; None: all of them."""
    seconds, steps = training_seconds(recording), total_steps(recording)
    each = max(LEAST_SECONDS, SHARE * 2.0 * seconds / max(runs, 1))
    if seconds <= max(each, CLUSTER_SECONDS if cluster else LOCAL_SECONDS) or steps < 2:
        return None
    affordable = LEAST_STEPS
    # Each number of steps is twice the one before, so that little changes of the time taken change nothing.
    while 2 * affordable * seconds <= each * (steps - 1):
        affordable *= 2
    return affordable if affordable < steps else None


def lesser(*limits: int | None) -> int | None:
    """The strictest of several limits; None does not limit."""
    given = [limit for limit in limits if limit is not None]
    return min(given, default=None)
