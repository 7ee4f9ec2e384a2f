"""How long the extra runs of a verification may be."""

from __future__ import annotations

from dataclasses import replace

import pytest
from numpy_programs import Program, run

from migrator.harness import budget
from migrator.harness.recording import Recording


def recording(steps: int, seconds: float, tasks: tuple[str, ...] = ("local:0",), replicas: int = 1) -> Recording:
    """A recording whose tasks share `steps` steps evenly over `seconds`."""
    base = run(Program(steps=2))
    each = steps // len(tasks)
    made = [
        replace(base.steps[0], task=task, number=number + 1, time=100.0 + seconds * number / (each - 1))
        for task in tasks
        for number in range(each)
    ]
    return replace(base, steps=tuple(made), participation=dict.fromkeys(tasks, each), replicas=replicas)


def test_a_short_training_is_repeated_in_full() -> None:
    assert budget.affordable_steps(recording(500, 7.9), 8, cluster=False) is None
    assert budget.affordable_steps(recording(500, 3.9), 8, cluster=True) is None


def test_a_long_training_is_repeated_in_its_first_steps() -> None:
    # 3 s of 80 s at 100 steps per second: the share would be 0.12 * 160 s / 8 = 2.4 s. Of 12, 24 ... 192 steps.
    assert budget.affordable_steps(recording(8001, 80.0), 8, cluster=False) == 192
    assert budget.affordable_steps(recording(8001, 80.0), 8, cluster=True) == 192


def test_the_extra_runs_together_take_an_eighth_of_what_the_programs_take() -> None:
    # An hour each: 0.12 of two hours over eight runs is 108 s of 3600 s.
    assert budget.affordable_steps(recording(36001, 3600.0), 8, cluster=False) == 768


@pytest.mark.parametrize("busy", [1.0, 1.3, 4.0])
def test_a_busy_machine_changes_nothing(busy: float) -> None:
    # 80 s of the processor, however long they take.
    loaded = replace(recording(8001, 80.0 * busy), cpu=80.0)
    assert budget.affordable_steps(loaded, 8, cluster=False) == 192
    short = replace(recording(500, 7.0 * busy), cpu=7.0)
    assert budget.affordable_steps(short, 8, cluster=False) is None
    # The same program again, a little slower or faster.
    for cpu in (76.0, 84.0):
        assert budget.affordable_steps(replace(loaded, cpu=cpu), 8, cluster=False) == 192


def test_the_steps_that_are_judged_are_never_cut_off() -> None:
    assert budget.affordable_steps(recording(20, 1000.0), 8, cluster=False) == budget.LEAST_STEPS
    assert budget.affordable_steps(recording(10, 1000.0), 8, cluster=False) is None


def test_asynchronous_trainers_share_the_steps_and_synchronous_ones_take_all() -> None:
    assert budget.total_steps(recording(900, 9.0, ("chief:0", "worker:0", "worker:1"))) == 900
    assert budget.total_steps(recording(900, 9.0, ("worker:0", "worker:1", "worker:2"), replicas=3)) == 300


def test_nothing_recorded_needs_no_limit() -> None:
    empty = replace(run(Program(steps=2)), steps=(), participation={})
    assert budget.affordable_steps(empty, 8, cluster=False) is None


@pytest.mark.parametrize(("limits", "least"), [((None, None), None), ((5, None), 5), ((5, 3), 3), ((), None)])
def test_the_strictest_limit_counts(limits: tuple[int | None, ...], least: int | None) -> None:
    assert budget.lesser(*limits) == least
