"""One attempt at a run: start the tasks, watch them, decide, end them, say what came of it."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from migrator.harness.cluster.launch import Failure, Launch, TaskOutcome
from migrator.harness.cluster.tasks import Task
from migrator.harness.cluster.watch import Activity, LogTail, last_lines

#: Seconds between the request to end (SIGTERM) and the order (SIGKILL).
GRACE = 1.5
#: Seconds that a task may take to leave after it wrote its error.json (its threads may never let it).
_LAST_WORDS = 1.0
#: Seconds that tasks get to write the stacks of their threads.
_STACKS = 0.5

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


@dataclass
class _Member:
    """What is known of a task while it runs."""

    task: Task
    folder: Path
    tails: tuple[LogTail, LogTail]
    pid: int = 0
    started: float = 0.0
    end: dict[str, Any] | None = None
    by_launcher: bool = False
    error_seen: float | None = None

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
        logs = (self.folder / "stdout.log", self.folder / "stderr.log")
        return max((log.stat().st_mtime for log in logs if log.exists()), default=self.started)


@dataclass
class Attempt:
    """One attempt at `launch` with the given addresses; `run` does it."""

    channel: Channel
    launch: Launch
    addresses: Mapping[Task, str]
    on_line: OnLine | None = None
    _members: dict[Task, _Member] = field(default_factory=dict)
    _ending_since: float | None = None
    _ended_all: bool = False

    @property
    def ended_all(self) -> bool:
        """Whether the server has said that no task is left."""
        return self._ended_all

    def run(self) -> tuple[tuple[TaskOutcome, ...], Failure | None]:
        """Outcomes in start order and the root cause of a failure.

        No task is left when it returns. Also when it raises: KeyboardInterrupt, or what
        `on_line` raises.
        """
        verdict: Failure | None = None
        try:
            self._start()
            verdict = self._watch()
        except ForkServerError:
            raise  # with its server a run has ended, too
        except BaseException:
            # The caller does not want results any more, so nobody gets time to say goodbye.
            self._end(grace=0.0)
            raise
        self._end(GRACE)
        self._show_lines(final=True)
        return tuple(self._outcome(member) for member in self._members.values()), verdict or self._root_cause()

    def _start(self) -> None:
        servers = set(self.launch.shape.servers(self.launch.program))
        self._awaited = [task for task in self.launch.shape.tasks() if task not in servers]
        for task in self.launch.shape.tasks():
            folder = self.launch.folder(task)
            folder.mkdir(parents=True)
            logs = [folder / "stdout.log", folder / "stderr.log"]
            for log in logs:
                log.touch()
            self._members[task] = _Member(task, folder, (LogTail(logs[0]), LogTail(logs[1])))
            self.channel.send({"op": "start", "job": self._job(task, folder)})

    def _job(self, task: Task, folder: Path) -> dict[str, Any]:
        environment = dict(self.launch.environment)
        config = self.launch.shape.tf_config(task, self.addresses)
        if config:
            environment["TF_CONFIG"] = json.dumps(config)
        plan = dict(self.launch.plan)
        if plan:
            plan |= {"program": self.launch.program, "task": {"type": task.type, "index": task.index}}
        return {
            "task": str(task),
            "script": str(self.launch.script),
            "args": list(self.launch.args),
            "cwd": str(Path.cwd()),
            "environment": environment,
            "plan": plan,
            "stdout": str(folder / "stdout.log"),
            "stderr": str(folder / "stderr.log"),
            "error": str(folder / "error.json"),
        }

    def _watch(self) -> Failure | None:
        """Wait until the run is over in one way or another; a Failure if the run was given up on."""
        launch = self.launch
        record = Path(launch.plan.get("record") or launch.run_dir / "record")
        model = Path(launch.plan.get("model_dir") or launch.run_dir / "model")
        logs = launch.run_dir / "tasks"
        activity = Activity([record, model, logs])
        first_sign = Activity([record if launch.plan.get("record") else logs])
        deadline = time.monotonic() + launch.total_timeout
        while True:
            if self._apply(self.channel.poll(0.05)):
                activity.note()
            self._show_lines()
            if self._is_over():
                return None
            if time.monotonic() > deadline:
                return self._give_up("timeout", f"did not end within {launch.total_timeout:g} s")
            activity.look()
            if not first_sign.anything:
                first_sign.look()
            limit = launch.stall_timeout if first_sign.anything else launch.ready_timeout
            # An evaluator may wait for minutes between two looks at the checkpoints.
            trains = any(self._members[task].alive for task in self._awaited if task.type != "evaluator")
            if trains and time.monotonic() - activity.last_change > limit:
                what = "showed no progress" if first_sign.anything else "showed no sign of life"
                return self._give_up("stall", f"{what} for {limit:g} s")

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
        served = (self._members[task] for task in self._awaited)
        return any(one.end is None or one.by_launcher or one.end["time"] > end["time"] for one in served)

    def _apply(self, events: list[dict[str, Any]]) -> bool:
        """Take in what the server told; whether a task ended."""
        ended = False
        for event in events:
            kind = event["event"]
            if kind == "ending":
                self._ending_since = event["time"]
            elif kind == "ended all":
                self._ended_all = True
            elif kind == "started":
                member = self._members[Task.parse(event["task"])]
                member.pid, member.started = event["pid"], event["time"]
            elif kind == "ended":
                member = self._members[Task.parse(event["task"])]
                member.end, member.by_launcher = event, self._ending_since is not None
                ended = True
        return ended

    def _end(self, grace: float) -> None:
        self.channel.send({"op": "end", "grace": grace})
        while not self._ended_all:
            self._apply(self.channel.poll(0.5))

    def _give_up(self, kind: str, message: str) -> Failure:
        """The failure of a run in which nothing failed by itself; asks all tasks for their stacks."""
        culprit = min(
            (self._members[task] for task in self._awaited if self._members[task].alive),
            key=_Member.last_sign,
        )
        alive = [member for member in self._members.values() if member.alive]
        self.channel.send(
            {"op": "signal", "signal": int(signal.SIGUSR1), "tasks": [str(member.task) for member in alive]}
        )
        patience = time.monotonic() + _STACKS
        while time.monotonic() < patience:
            self._apply(self.channel.poll(0.05))
        return Failure(
            culprit.task,
            kind,
            f"{culprit.task} {message}; its last lines show where its threads were",
            culprit.tail(),
        )

    def _root_cause(self) -> Failure | None:
        """The failure of the task that went wrong first; None if none did."""
        causes = [(moment, member) for member in self._members.values() if (moment := self._went_wrong(member))]
        if not causes:
            return None
        _, member = min(causes, key=lambda cause: cause[0])
        kind, message = self._describe(member)
        return Failure(member.task, kind, message, member.tail())

    def _went_wrong(self, member: _Member) -> float | None:
        """When `member` went wrong (time.time()), None if it did not."""
        ending = self._ending_since or time.time()
        error = member.error()
        moments = [error["time"]] if error and error["time"] <= ending else []
        if member.end is not None and self._broke(member):
            moments.append(member.end["time"])
        return min(moments, default=None)

    def _describe(self, member: _Member) -> tuple[str, str]:
        end = member.end or {}
        error = member.error()
        said = ""
        if error and error["type"] != "SystemExit":
            summary = next(iter(str(error["message"]).splitlines()), "")
            said = f": {error['type']}: {summary}"
        if end.get("signal") and not member.by_launcher:
            return "signal", f"{member.task} was ended by {end['signal']}{said}"
        if end.get("exit_code") == 0:
            return "exit", f"{member.task} ended with exit code 0 while other tasks still needed it"
        if member.by_launcher:
            return "exit", f"{member.task} failed but did not leave by itself{said}"
        return "exit", f"{member.task} ended with exit code {end.get('exit_code')}{said}"

    def _show_lines(self, final: bool = False) -> None:
        if self.on_line is None:
            return
        for member in self._members.values():
            for tail in member.tails:
                for line in tail.lines(final):
                    self.on_line(member.task, line)

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
