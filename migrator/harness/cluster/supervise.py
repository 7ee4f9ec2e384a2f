"""One attempt at a run: start the tasks, watch them, decide, end them, say what came of it."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import psutil

from migrator.harness import packed
from migrator.harness.cluster import logs, memory, writes
from migrator.harness.cluster.launch import Failure, FailureKind, Launch, TaskOutcome
from migrator.harness.cluster.stacks import Stacks, Suspicion
from migrator.harness.cluster.tasks import Task
from migrator.harness.cluster.vitals import Vitals
from migrator.harness.cluster.watch import TAIL_LINES, Activity, LogTail, Pace, last_lines

#: Seconds between the request to end (SIGTERM) and the order (SIGKILL).
GRACE = 1.5
#: The same when every byte that is written meanwhile may be one too many.
_SHORT_GRACE = 0.2
#: Seconds that a task may take to leave after it wrote its error.json (its threads may never let it).
_LAST_WORDS = 1.0
#: Seconds by which a death may be known later than those know of it who were connected to the dead: a process closes
#: its connections first, then gives its memory back, and only then can be found to have ended.
_LATE = 0.7
#: Seconds that tasks get to write the stacks of their threads.
_STACKS = 0.5
#: Seconds that a task may be stopped: a debugger does that for moments, and so does a terminal.
_STOPPED = 1.5
#: Seconds between two looks at what the operating system knows of the tasks.
_LOOK = 0.5
#: Bytes that tasks may fill in a second; with less than that to the limit the looks follow each other faster.
_FILLING = 2_000_000_000
#: Share of the time that the main thread of a task without progress wants a core, from which on it is busy.
_BUSY = 0.5
#: How often the main thread of a task that is stuck may have run: for the signals that it got.
_WAKE_UPS = 3
#: Seconds that the server gets to say that all tasks have ended.
_PATIENCE = 6.0
#: Lines of a stack that are shown behind the last lines of the logs.
_STACK_LINES = 14

#: Bytes of a disk with which nothing can be said any more.
_ROOM = 8192

_KERAS = "TF_USE_LEGACY_KERAS"
_THREADS = "TF_NUM_INTEROP_THREADS"
#: Beside the folders of runs: the batches of recordings, as they are given to other runs.
REPLAYS = "replays"

OnLine = Callable[[Task, str], None]


class ForkServerError(Exception):
    """The fork server could not be started, or died. The message says which and shows its last lines."""


class Channel(Protocol):
    """The way to the fork server."""

    def send(self, request: Mapping[str, Any]) -> None:
        """Ask for something. ForkServerError if the server is gone."""

    def poll(self, timeout: float) -> list[dict[str, Any]]:
        """The events since the last call, waiting at most `timeout` seconds for the first.

        ForkServerError if the server is gone.
        """

    def look(self, tasks: Mapping[Task, int]) -> tuple[int | None, Mapping[Task, Vitals]]:
        """The process id of a server that is stopped (None: none is); the vitals of those tasks that run, whose process
        ids are given.
        """

    def exact_memory(self, tasks: Mapping[Task, int]) -> Mapping[Task, int]:
        """Bytes of memory of those tasks that run, with shared pages divided among those that share them."""

    def available(self) -> int:
        """Bytes of memory that can still be had, on all machines together."""


@dataclass
class _Member:
    """What is known of a task while it runs. Moments are of time.monotonic(), but for `started` and in `end`."""

    task: Task
    folder: Path
    tails: tuple[LogTail, LogTail]
    activity: Activity
    pid: int = 0
    started: float = 0.0
    end: dict[str, Any] | None = None
    by_launcher: bool = False
    error_seen: float | None = None
    spoke: bool = False
    vitals: Vitals | None = None
    looked: float = 0.0
    stopped_since: float | None = None
    #: The first look after the last sign of progress, which was noticed at `sign`: when, and what was seen.
    sign: float = 0.0
    sign_looked: float = 0.0
    sign_vitals: Vitals | None = None
    #: The looks of the last seconds, the oldest first.
    recent: deque[tuple[float, Vitals]] = field(default_factory=deque)
    #: When stacks were asked for, and where in the file each answer begins.
    asked: list[tuple[float, int]] = field(default_factory=list)

    @property
    def alive(self) -> bool:
        return self.end is None

    def tail(self) -> tuple[str, ...]:
        return last_lines(self.folder / "stdout.log", self.folder / "stderr.log")

    def error(self) -> dict[str, Any] | None:
        try:
            content: dict[str, Any] = json.loads((self.folder / "error.json").read_text("utf-8"))
        except FileNotFoundError:
            return None
        return content

    def last_sign(self) -> float:
        """When it last wrote anything (time.time())."""
        written = [log.stat().st_mtime for log in (self.folder / "stdout.log", self.folder / "stderr.log")]
        return max(self.started, self.activity.newest, *written)

    @property
    def steps(self) -> int:
        """How many steps it has made."""
        return self.activity.counted

    def note_vitals(self, seen: Vitals | None, now: float, span: float) -> None:
        """Takes in a look at the process, and keeps those of the last `span` seconds."""
        self.vitals, self.looked = seen, now
        if seen is None or not seen.stopped:
            self.stopped_since = None
        elif self.stopped_since is None:
            self.stopped_since = now
        if self.sign != self.activity.last_change or self.sign_vitals is None:
            self.sign, self.sign_looked, self.sign_vitals = self.activity.last_change, now, seen
        if seen is not None:
            self.recent.append((now, seen))
        while len(self.recent) > 2 and self.recent[1][0] <= now - span:
            self.recent.popleft()

    def load(self) -> float | None:
        """Cores used since the last sign of progress; None if that is not known."""
        if self.vitals is None or self.sign_vitals is None or self.looked - self.sign_looked < _STACKS / 2:
            return None
        used = self.vitals.cpu_seconds - self.sign_vitals.cpu_seconds
        return max(0.0, used) / (self.looked - self.sign_looked)

    @property
    def busy(self) -> bool:
        """Whether its main thread has computed lately, or would have, had it got a core."""
        if len(self.recent) < 2:
            return False
        (before, first), (now, last) = self.recent[0], self.recent[-1]
        return last.wanted - first.wanted > _BUSY * (now - before)

    @property
    def still(self) -> bool:
        """Whether its main thread has not run at all lately."""
        return len(self.recent) > 1 and self.recent[-1][1].switches - self.recent[0][1].switches <= _WAKE_UPS

    def stacks(self, request: int) -> Stacks:
        """What the task answered to one of the requests in `asked`."""
        begins = [start for _, start in self.asked]
        content = _content(self.folder / logs.STACKS)
        end = begins[request + 1] if request + 1 < len(begins) else len(content)
        return Stacks.parse(content[begins[request] : end].decode("utf-8", "replace"))


def _cores() -> int:
    """How many processor cores this process, and so what it starts, may run on."""
    return len(psutil.Process().cpu_affinity()) if hasattr(psutil.Process, "cpu_affinity") else os.cpu_count() or 1


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


@dataclass
class Attempt:
    """One attempt at `launch` with the given addresses; `run` does it.

    `own` is the folder that a confined program may write to (its run's when None).
    """

    channel: Channel
    launch: Launch
    addresses: Mapping[Task, str]
    on_line: OnLine | None = None
    own: Path | None = None
    _members: dict[Task, _Member] = field(default_factory=dict)
    _replay: Path | None = None
    _ending_since: float | None = None
    _ended_all: bool = False
    _changes: list[dict[str, Any]] = field(default_factory=list)
    _refused: Failure | None = None
    _kills: int | None = None
    _server_stopped_since: float | None = None
    #: When the files of the run were last looked at (time.monotonic()).
    _looked: float = 0.0

    @property
    def ended_all(self) -> bool:
        """Whether the server has said that no task is left."""
        return self._ended_all

    def writes(self) -> tuple[writes.Write, ...]:
        """What a program that was confined tried to change outside of the run, once that is over."""
        return writes.found_in(self.launch.run_dir / "tasks", self._changes) if self.launch.confine else ()

    def run(self) -> tuple[tuple[TaskOutcome, ...], Failure | None]:
        """Outcomes in start order and the root cause of a failure.

        No task is left when it returns. Also when it raises: KeyboardInterrupt, or what
        `on_line` raises.
        """
        verdict: Failure | None = None
        left = self.channel.available()
        self._reserve = memory.reserve(left)
        given = self.launch.memory_limit
        self._memory_limit = left - self._reserve if given is None else given
        self._kills = memory.kills()
        try:
            self._start()
            verdict = self._watch()
        except ForkServerError:
            raise  # with its server a run has ended, too
        except BaseException:
            # The caller does not want results any more, so nobody gets time to say goodbye.
            self._end(grace=0.0)
            raise
        self._end(_SHORT_GRACE if verdict is not None and verdict.kind == "memory" else GRACE)
        self._show_lines(final=True)
        outcomes = tuple(self._outcome(member) for member in self._members.values() if member.end is not None)
        return outcomes, verdict or self._root_cause()

    def _start(self) -> None:
        launch = self.launch
        servers = set(launch.shape.servers())
        self._awaited = [task for task in launch.shape.tasks() if task not in servers]
        record = Path(launch.plan.get("record") or launch.run_dir / "record")
        if launch.plan.get("replay"):
            self._replay = packed.for_replay(Path(launch.plan["replay"]), launch.run_dir.absolute().parent / REPLAYS)
        model = Path(launch.plan.get("model_dir") or launch.run_dir / "model")
        own = {task: (record / task.folder, launch.folder(task)) for task in launch.shape.tasks()}
        elsewhere = [folder for folders in own.values() for folder in folders]
        self._shared = Activity([record, model, launch.run_dir / "tasks"], without=elsewhere)
        for task in self.launch.shape.tasks():
            folder = self.launch.folder(task)
            folder.mkdir(parents=True)
            out, err = folder / "stdout.log", folder / "stderr.log"
            out.touch()
            err.touch()
            # The logs are read: not all that comes there is progress.
            without = (folder / logs.STACKS, out, err)
            activity = Activity(own[task], without, count=record / task.folder / "steps")
            self._members[task] = _Member(task, folder, (LogTail(out), LogTail(err)), activity)
            self.channel.send({"op": "start", "job": self._job(task, folder)})

    def _job(self, task: Task, folder: Path) -> dict[str, Any]:
        environment = dict(self.launch.environment)
        config = self.launch.shape.tf_config(task, self.addresses)
        if config:
            environment["TF_CONFIG"] = json.dumps(config)
            if _cores() == 1 and _THREADS not in os.environ:
                # TensorFlow takes one thread for each core to run operations side by side. With a single one a
                # Keras program waits for its parameter servers for ever (measured with TensorFlow 2.21).
                environment.setdefault(_THREADS, "2")
        plan = dict(self.launch.plan)
        if plan:
            plan |= {"program": self.launch.program, "task": {"type": task.type, "index": task.index}}
        if self._replay is not None:
            plan["replay"] = str(self._replay)
        cwd = (self.launch.cwd or Path.cwd()).absolute()
        confine = None
        if self.launch.confine:
            own = (self.own or self.launch.run_dir).absolute()
            near = [str(cwd), str(self.launch.script.absolute().parent)]
            confine = {"run": f"{self.launch.run_dir} {id(self)}", "own": [str(own)], "near": near}
        return {
            "task": str(task),
            "confine": confine,
            "keras_asked": {"of_user": os.environ.get(_KERAS)} if self.launch.asks_for_keras else None,
            "script": str(self.launch.script),
            "module": self.launch.module,
            "args": self.launch.shape.arguments(self.launch.args, task, self.addresses),
            "cwd": str(cwd),
            "stdin": os.devnull if self.launch.stdin is None else str(self.launch.stdin.absolute()),
            "environment": environment,
            "plan": plan,
            "stdout": str(folder / "stdout.log"),
            "stderr": str(folder / "stderr.log"),
            "error": str(folder / "error.json"),
            "stacks": str(folder / logs.STACKS),
        }

    def _watch(self) -> Failure | None:
        """Wait until the run is over in one way or another; a Failure if the run was given up on."""
        launch = self.launch
        deadline = time.monotonic() + launch.total_timeout
        files, processes = Pace(0.25), Pace(_LOOK)
        while True:
            self._apply(self.channel.poll(0.05))
            self._show_lines()
            if self._refused is not None:
                return self._refused
            if self._is_over():
                self._wait_for_the_cause()
                return None
            with files.due() as due:
                if due:
                    self._shared.look()
                    for member in self._members.values():
                        member.activity.look()
                    self._looked = time.monotonic()
            with processes.due() as due:
                if due:
                    self._look()
                    room = self._memory_limit - sum(one.vitals.memory for one in self._alive() if one.vitals)
                    processes.interval = min(_LOOK, max(0.1, room / _FILLING))
                    failure = self._stopped() or self._short_of_memory()
                    if failure is not None:
                        return failure
            if time.monotonic() > deadline:
                return self._give_up("timeout", f"did not end within {launch.total_timeout:g} s")
            failure = self._stalled() or self._left_behind()
            if failure is not None:
                return failure

    def _alive(self) -> list[_Member]:
        return [member for member in self._members.values() if member.alive]

    def _look(self) -> None:
        """Take in what the operating system knows of the tasks."""
        alive = self._alive()
        stopped, seen = self.channel.look({member.task: member.pid for member in alive})
        now = time.monotonic()
        for member in alive:
            member.note_vitals(seen.get(member.task), now, self.launch.stall_timeout / 2)
        self._server_stopped_since = None if stopped is None else self._server_stopped_since or now
        if self._server_stopped_since is not None and now - self._server_stopped_since > _STOPPED:
            raise ForkServerError(f"the fork server (process {stopped}) was stopped, by SIGSTOP or a debugger")

    def _stopped(self) -> Failure | None:
        since = [(member.stopped_since, member) for member in self._alive() if member.stopped_since is not None]
        if not since:
            return None
        moment, member = min(since, key=lambda one: one[0])
        if time.monotonic() - moment < _STOPPED:
            return None
        message = f"{member.task} (process {member.pid}) was stopped, by SIGSTOP or a debugger, and did not go on"
        return Failure(member.task, "stopped", message, member.tail())

    def _short_of_memory(self) -> Failure | None:
        alive = {member.task: member for member in self._alive() if member.vitals is not None}
        held = {task: member.vitals.memory for task, member in alive.items() if member.vitals is not None}
        exceeded = sum(held.values()) > self._memory_limit
        if exceeded:
            # The quick look counts what tasks share once for each of them.
            held = dict(self.channel.exact_memory({task: member.pid for task, member in alive.items()}))
            exceeded = sum(held.values()) > self._memory_limit
        left = self.channel.available()
        if not held or not (exceeded or left < self._reserve // 2):
            return None
        task, size = max(held.items(), key=lambda one: one[1])
        member = alive[task]
        every = memory.text(sum(held.values()))
        together = f"{member.task} holds {memory.text(size)} of memory, all {len(held)} tasks {every}"
        if exceeded:
            why = f"the limit is {memory.text(self._memory_limit)}"
        else:
            why = f"the machine, or the container, has only {memory.text(left)} left"
        return Failure(member.task, "memory", f"{together}; {why}", member.tail())

    def _stalled(self) -> Failure | None:
        """The failure of a run in which nobody makes progress."""
        # An evaluator may wait for minutes between two looks at the checkpoints. And nobody waits for it: that it
        # goes on looking for the first one is no progress of the run.
        members = [member for member in self._members.values() if member.task.type != "evaluator"]
        if not any(member.alive for member in members if member.task in self._awaited):
            return None
        if self.launch.plan.get("record"):
            began = any(member.steps for member in members)
        else:
            began = any(member.spoke or member.activity.anything for member in members)
        limit = self.launch.stall_timeout if began else self.launch.ready_timeout
        last = max(self._shared.last_change, *(member.activity.last_change for member in members))
        # What came since the last look at the files is not known yet.
        if self._looked - last <= limit:
            return None
        if began:
            return self._give_up("stall", f"showed no progress for {limit:g} s")
        return self._give_up("not_started", f"showed no sign of life for {limit:g} s, before the first step")

    def _left_behind(self) -> Failure | None:
        """The failure of a task that is stuck in its own code while others go on, or wait for no one.

        Only what can be seen to be stuck counts: twice, half of the limit apart, in one and the same call. A task in
        a call of TensorFlow's, or asleep, may well have to wait for long. One that has not begun may have much to
        prepare. And nobody is asked who is neither busy nor still: a signal may disturb a program that is well.
        """
        now, limit = self._looked, self.launch.stall_timeout
        for member in (self._members[task] for task in self._awaited):
            if not member.alive or not (member.steps or member.task.type == "evaluator"):
                continue
            quiet = now - member.activity.last_change
            if quiet < limit / 2:
                member.asked.clear()
            elif not member.asked:
                if member.busy or member.still:
                    self._ask([member])
            elif len(member.asked) == 1:
                if quiet > limit and now - member.asked[0][0] > limit / 2:
                    self._ask([member])
            elif time.monotonic() - member.asked[1][0] > _STACKS:
                stacks = member.stacks(1)
                if stacks.stuck_since(member.stacks(0)):
                    self._look()
                    return self._hang(member, "stall", f"showed no progress for {limit:g} s", stacks)
                del member.asked[0]
        return None

    def _ask(self, members: Collection[_Member]) -> None:
        """Ask tasks for the stacks of their threads."""
        for member in members:
            member.asked.append((time.monotonic(), len(_content(member.folder / logs.STACKS))))
        names = [str(member.task) for member in members]
        self.channel.send({"op": "signal", "signal": int(signal.SIGUSR1), "tasks": names})

    def _is_over(self) -> bool:
        members = self._members.values()
        if any(self._broke(member) for member in members):
            return True
        if not any(self._members[task].alive for task in self._awaited):
            return True
        now = time.monotonic()
        for member in members:
            if member.alive and member.error_seen is None and (member.folder / "error.json").exists():
                member.error_seen = now
        return any(
            member.alive and member.error_seen is not None and now - member.error_seen > _LAST_WORDS
            for member in members
        )

    def _broke(self, member: _Member) -> bool:
        """Whether `member` ended by itself in a way it must not."""
        end = member.end
        if end is None or member.by_launcher:
            return False
        if member.task in self._awaited:
            return bool(end["exit_code"] != 0)
        # A server may end as it likes once everyone that it serves is done, and must not end before that.
        served = [self._members[task] for task in self._awaited]
        if any(one.end is None or one.by_launcher or one.end["time"] > end["time"] for one in served):
            return True
        # Of those that failed none was done: perhaps they failed because this one was about to die.
        return end["exit_code"] != 0 and any(one.end is not None and one.end["exit_code"] != 0 for one in served)

    def _apply(self, events: list[dict[str, Any]]) -> None:
        """Take in what the server told."""
        for event in events:
            kind = event["event"]
            if kind == "ending":
                self._ending_since = event["time"]
            elif kind == "ended all":
                self._ended_all = True
                self._changes = event["changes"]
            elif kind == "started":
                member = self._members[Task.parse(event["task"])]
                member.pid, member.started = event["pid"], event["time"]
                member.sign = time.monotonic()
            elif kind == "not started":
                task = Task.parse(event["task"])
                short = event["errno"] == errno.ENOMEM
                message = f"no process could be made for {task}: {event['message']}"
                self._refused = self._refused or Failure(task, "memory" if short else "not_started", message, ())
            elif kind == "ended":
                member = self._members[Task.parse(event["task"])]
                member.end, member.by_launcher = event, self._ending_since is not None
                self._shared.note()

    def _end(self, grace: float) -> None:
        self.channel.send({"op": "end", "grace": grace})
        patience = time.monotonic() + grace + _PATIENCE
        while not self._ended_all:
            self._apply(self.channel.poll(0.5))
            if time.monotonic() > patience:
                raise ForkServerError("the fork server did not end its tasks")

    def _give_up(self, kind: FailureKind, message: str) -> Failure | None:
        """The failure of a run in which nothing failed by itself: of the task that the others wait for.

        None if the run came to its end while its tasks were asked where they are.
        """
        alive = self._alive()
        for member in alive:
            member.asked.clear()
        self._ask(alive)
        patience = time.monotonic() + _STACKS
        while time.monotonic() < patience:
            self._apply(self.channel.poll(0.05))
        if self._is_over():
            return None
        self._look()
        alive = [member for member in alive if member.alive]
        seen = {member.task: member.stacks(0) for member in alive}
        culprit = max(self._suspects(alive), key=lambda member: self._suspicion(member, seen[member.task]))
        return self._hang(culprit, kind, message, seen[culprit.task])

    def _suspects(self, alive: list[_Member]) -> list[_Member]:
        """Those that the run may be waiting for."""
        training = [member for member in alive if member.task in self._awaited and member.task.type != "evaluator"]
        if not training:
            return [member for member in alive if member.task in self._awaited]
        # Nobody waits for an evaluator. A server is quiet by nature: there must be more against it than that.
        return training + [member for member in alive if member.task not in self._awaited]

    def _suspicion(self, member: _Member, stacks: Stacks) -> tuple[bool, Suspicion, bool, int, float]:
        """What speaks against `member`, the weightiest first."""
        suspicion = stacks.suspicion()
        serves = member.task not in self._awaited
        waited_for = not serves or suspicion > Suspicion.NONE or member.busy
        steps = max(other.steps for other in self._members.values()) if serves else member.steps
        return waited_for, suspicion, member.busy, -steps, -member.last_sign()

    def _hang(self, member: _Member, kind: FailureKind, message: str, stacks: Stacks) -> Failure:
        """The failure of a task that does not go on, with what was seen of it."""
        seen = [f"{member.task} {message}"]
        place = stacks.place()
        if place is None:
            seen.append("it did not answer when it was asked for the stacks of its threads")
        elif stacks.suspicion() is Suspicion.NONE:
            seen.append(f"it waits in {place}")
        elif stacks.suspicion() is Suspicion.SLEEPS:
            seen.append(f"it sleeps in {place}")
        else:
            seen.append(f"it is in {place}")
        load = member.load()
        if load is not None:
            seen.append(f"it used {load:.0%} of a core meanwhile")
        ahead = max(self._members.values(), key=lambda other: other.steps)
        trains = member.task in self._awaited and member.task.type != "evaluator"
        if trains and ahead.task in self._awaited and member.steps < ahead.steps:
            seen.append(f"it made {member.steps} steps, {ahead.task} {ahead.steps}")
        stack = [f"  {frame}: {frame.source}" if frame.source else f"  {frame}" for frame in stacks.telling()]
        shown = [f"where {member.task} is, innermost call first:", *stack[:_STACK_LINES]] if stack else []
        tail = member.tail()
        return Failure(member.task, kind, "; ".join(seen), (*tail[len(tail) - (TAIL_LINES - len(shown)) :], *shown))

    def _root_cause(self) -> Failure | None:
        """The failure of the task that went wrong first; None if none did."""
        causes = [(moment, member) for member in self._members.values() if (moment := self._went_wrong(member))]
        if not causes:
            return None
        moment, member = min(causes, key=lambda cause: cause[0])
        if _lost_a_connection(member):
            # Whoever is at the other end knows why, even if the launcher heard of it a moment later.
            others = [
                (when, other) for when, other in causes if not _lost_a_connection(other) and when < moment + _LATE
            ]
            _, member = min(others, key=lambda cause: cause[0], default=(moment, member))
        kind, message = self._describe(member)
        return Failure(member.task, kind, message, member.tail())

    def _wait_for_the_cause(self) -> None:
        """Let a death become known if all that is known so far is that connections broke."""
        patience = time.monotonic() + _LATE
        while time.monotonic() < patience:
            wrong = [member for member in self._members.values() if self._went_wrong(member) is not None]
            if not wrong or not all(map(_lost_a_connection, wrong)):
                return
            self._apply(self.channel.poll(0.05))

    def _went_wrong(self, member: _Member) -> float | None:
        """When `member` went wrong (time.time()), None if it did not."""
        ending = self._ending_since or time.time()
        error = member.error()
        moments = [error["time"]] if error and error["time"] <= ending else []
        if member.end is not None and self._broke(member):
            moments.append(member.end["time"])
        return min(moments, default=None)

    def _describe(self, member: _Member) -> tuple[FailureKind, str]:
        end = member.end or {}
        error = member.error()
        said = ""
        if error and error["type"] != "SystemExit":
            summary = next(iter(str(error["message"]).splitlines()), "")
            said = f": {error['type']}: {summary}" if summary else f": {error['type']}"
        if end.get("signal") and not member.by_launcher:
            kind: FailureKind = "signal"
            if end["signal"] == "SIGKILL" and self._was_killed_for_memory():
                kind, said = "memory", f" because memory had run out{self._last_held(member)}"
            elif end["signal"] == "SIGABRT" and any("std::bad_alloc" in line for line in member.tail()):
                kind, said = "memory", f" because memory had run out{self._last_held(member)}: std::bad_alloc"
            return kind, f"{member.task} was ended by {end['signal']}{said}"
        kind = "memory" if error and _ran_out(error) else "exit"
        if (error and _had_no_room(error)) or (not error and self._has_no_room()):
            kind, said = "disk", f" because the disk was full{said}"
        if end.get("exit_code") == 0:
            return "exit", f"{member.task} ended with exit code 0 while other tasks still needed it"
        if member.by_launcher:
            return kind, f"{member.task} failed but did not leave by itself{said}"
        return kind, f"{member.task} ended with exit code {end.get('exit_code')}{said}"

    def _has_no_room(self) -> bool:
        """Whether there is no room left for so much as a word on what went wrong."""
        try:
            return shutil.disk_usage(self.launch.run_dir).free < _ROOM
        except OSError:
            return False

    def _was_killed_for_memory(self) -> bool:
        now = memory.kills()
        return now is not None and self._kills is not None and now > self._kills

    def _last_held(self, member: _Member) -> str:
        return f" (it held {memory.text(member.end['max_rss_bytes'])})" if member.end is not None else ""

    def _show_lines(self, final: bool = False) -> None:
        for member in self._members.values():
            for tail in member.tails:
                for line in tail.lines(final):
                    if self.on_line is not None:
                        self.on_line(member.task, line)
                if tail.progress:
                    tail.progress, member.spoke = False, True
                    member.activity.note()

    def _outcome(self, member: _Member) -> TaskOutcome:
        assert member.end is not None, "the server reported the end of all tasks"
        return TaskOutcome(
            task=member.task,
            pid=member.pid,
            started=member.started,
            ended=member.end["time"],
            exit_code=member.end["exit_code"],
            signal=member.end["signal"],
            ended_by_launcher=member.by_launcher,
            max_rss_bytes=member.end["max_rss_bytes"],
            cpu_seconds=member.end["cpu_seconds"],
            stdout=member.folder / "stdout.log",
            stderr=member.folder / "stderr.log",
            tail=member.tail(),
        )


_LOST = re.compile(r"(?i)connection (was )?(reset|refused|closed|aborted)|socket closed|broken pipe|failed to connect")


def _lost_a_connection(member: _Member) -> bool:
    """Whether `member` failed by an exception that only says that another task could not be reached any more."""
    error = member.error()
    if error is None or (member.end is not None and member.end["signal"] and not member.by_launcher):
        return False
    lost = ("UnavailableError", "ConnectionError", "ConnectionResetError", "ConnectionRefusedError", "BrokenPipeError")
    return error["type"] in lost or _LOST.search(str(error["message"])) is not None


_NO_ROOM = re.compile(
    # Of the system, in TensorFlow's words too; of numpy, which does not tell why it wrote less than it had to.
    r"No space left on device|Disk quota exceeded|\[Errno (28|122)\]|^\d+ requested and \d+ written$"
)


def _had_no_room(error: Mapping[str, Any]) -> bool:
    """Whether an exception says that the disk was full."""
    return _NO_ROOM.search(str(error["message"])) is not None


def _ran_out(error: Mapping[str, Any]) -> bool:
    """Whether an exception says that there was no memory: Python's, numpy's or TensorFlow's."""
    if error["type"] in ("MemoryError", "_ArrayMemoryError"):
        return True
    return error["type"] == "ResourceExhaustedError" and "OOM when allocating" in str(error["message"])
