"""What the operating system knows of running tasks: stopped or not, processor time, memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

_STOPPED = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)


@dataclass(frozen=True)
class Vitals:
    """One look at a task and the processes below it.

    `memory` is in bytes and does not count mapped files. It counts what a fork shares with its parent as if it
    were the task's own, and so is an upper bound. `stopped` is of the task's own process,
    `switches` how often its main thread gave a core up, `wanted` for how many seconds that thread ran or waited for a
    core.
    """

    stopped: bool
    cpu_seconds: float
    memory: int
    switches: int
    wanted: float


def look(server: int, tasks: Collection[int]) -> tuple[bool, Mapping[int, Vitals]]:
    """Whether the process `server` is stopped, and the vitals of its children `tasks` that run, by process id."""
    try:
        parent = psutil.Process(server)
        stopped = parent.status() in _STOPPED
        below = parent.children(recursive=True)
    except psutil.Error:
        return False, {}
    owners = _owners(server, below, tasks)
    found: dict[int, Vitals] = {}
    for process in below:
        owner = owners.get(process.pid)
        if owner is None:
            continue
        try:
            with process.oneshot():
                status, times, memory = process.status(), process.cpu_times(), process.memory_info()
                own = process.pid == owner
                switches = sum(process.num_ctx_switches()) if own else 0
        except psutil.Error:
            continue
        known = found.get(owner, Vitals(False, 0.0, 0, 0, 0.0))
        found[owner] = Vitals(
            stopped=known.stopped or (own and status in _STOPPED),
            cpu_seconds=known.cpu_seconds + times.user + times.system,
            memory=known.memory + max(0, memory.rss - getattr(memory, "shared", 0)),
            switches=known.switches + switches,
            wanted=known.wanted + (_wanted(owner, times.user + times.system) if own else 0.0),
        )
    return stopped, found


def _wanted(pid: int, used: float) -> float:
    """Seconds that a main thread ran or waited for a core; all that the process `used` where that is not known."""
    try:
        ran, waited = Path(f"/proc/{pid}/schedstat").read_text().split()[:2]
    except (OSError, ValueError):
        return used
    return (int(ran) + int(waited)) / 1e9


def exact_memory(server: int, tasks: Collection[int]) -> Mapping[int, int]:
    """Bytes of memory by task, with shared pages divided among those that share them.

    Costs milliseconds for each process: for when `look` gives cause.
    """
    try:
        below = psutil.Process(server).children(recursive=True)
    except psutil.Error:
        return {}
    owners = _owners(server, below, tasks)
    found: dict[int, int] = {}
    for process in below:
        owner = owners.get(process.pid)
        if owner is None:
            continue
        try:
            memory = process.memory_full_info()
        except psutil.Error:
            continue
        found[owner] = found.get(owner, 0) + int(getattr(memory, "pss", memory.uss))
    return found


def _owners(server: int, below: list[psutil.Process], tasks: Collection[int]) -> dict[int, int]:
    """The task that each process belongs to. One whose parent is gone belongs to the server, so to none."""
    parents: dict[int, int] = {}
    for process in below:
        try:
            parents[process.pid] = process.ppid()
        except psutil.Error:
            continue
    owners: dict[int, int] = {}
    for pid in parents:
        place = pid
        while place not in tasks and place in parents and parents[place] != server:
            place = parents[place]
        if place in tasks:
            owners[pid] = place
    return owners
