"""Tasks and the shape of a cluster: plain data, no processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: The order in which tasks are started: those that are waited for come after those that wait for them.
START_ORDER = ("ps", "worker", "chief", "master", "evaluator", "local")
_TYPES = ("chief", "master", "worker", "ps", "evaluator")


@dataclass(frozen=True)
class Task:
    """One process of a cluster, by its TF_CONFIG type and index. `str()` gives "worker:1"."""

    type: str
    index: int

    def __str__(self) -> str:
        return f"{self.type}:{self.index}"

    @property
    def folder(self) -> str:
        """The name of the task's folder inside a run folder, "worker-1"."""
        return f"{self.type}-{self.index}"

    @staticmethod
    def parse(text: str) -> Task:
        """The task of "worker:1". ValueError for anything else."""
        kind, _, index = text.partition(":")
        if not kind or not index.isdigit():
            raise ValueError(f"{text!r} is no task: expected TYPE:INDEX, for example worker:1")
        return Task(kind, int(index))


#: The single task of a program that runs without TF_CONFIG.
LOCAL = Task("local", 0)


@dataclass(frozen=True)
class ClusterShape:
    """How many tasks of each type a cluster has. Without counts: no TF_CONFIG, one local task.

    `in_step`: the program that runs there makes its trainers wait for each other although there are parameter servers.
    `coordinated`: with parameter servers the chief only coordinates and its workers are servers, as in TensorFlow 2.
    """

    counts: tuple[tuple[str, int], ...] = ()
    in_step: bool = False
    coordinated: bool = False

    @staticmethod
    def parse(text: str, coordinated: bool = False) -> ClusterShape:
        """The shape of "chief=1,worker=2,ps=2"; empty text is one local task. ValueError if malformed."""
        counts: dict[str, int] = {}
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            kind, equals, number = (piece.strip() for piece in part.partition("="))
            if not equals or not number.isdigit():
                raise ValueError(f"{part!r} is no count of tasks: expected TYPE=NUMBER, for example worker=2")
            if kind not in _TYPES:
                raise ValueError(f"{kind!r} is no task type: expected one of {', '.join(_TYPES)}")
            if kind in counts:
                raise ValueError(f"{kind!r} is given twice in {text!r}")
            counts[kind] = int(number)
        shape = ClusterShape(tuple((kind, number) for kind, number in counts.items() if number), False, coordinated)
        shape._check(text)
        return shape

    def _check(self, text: str) -> None:
        for kind in ("chief", "master", "evaluator"):
            if self.count(kind) > 1:
                raise ValueError(f"a cluster has at most one {kind}, but {text!r} asks for {self.count(kind)}")
        if self.count("chief") and self.count("master"):
            raise ValueError("a cluster has a chief or a master (its older name), not both")
        if self.counts and not self.trainers():
            raise ValueError(f"{text!r} has no task that trains: add chief=1 or worker=1")

    def __str__(self) -> str:
        return ",".join(f"{kind}={number}" for kind, number in self.counts)

    def count(self, kind: str) -> int:
        """How many tasks of type `kind` there are."""
        return dict(self.counts).get(kind, 0)

    def tasks(self) -> list[Task]:
        """All tasks in the order in which they are started."""
        if not self.counts:
            return [LOCAL]
        return [Task(kind, index) for kind in START_ORDER for index in range(self.count(kind))]

    def trainers(self) -> list[Task]:
        """The chief, unless it only coordinates, then the workers; the local task of an empty shape."""
        return [task for task in self._workers() if task.type != "chief" or not self.coordinates]

    def _workers(self) -> list[Task]:
        """All tasks that a TensorFlow 1 program trains on, chief first."""
        if not self.counts:
            return [LOCAL]
        return [Task(kind, index) for kind in ("chief", "master", "worker") for index in range(self.count(kind))]

    @property
    def coordinates(self) -> bool:
        """Whether the chief of this cluster does not train itself."""
        return self.coordinated and self.count("ps") > 0 and self.count("chief") > 0

    def servers(self) -> list[Task]:
        """The tasks that never exit by themselves."""
        kinds = ("ps", "worker") if self.coordinates else ("ps",)
        return [Task(kind, index) for kind in kinds for index in range(self.count(kind))]

    @property
    def lists_evaluator(self) -> bool:
        """Whether the evaluator belongs into TF_CONFIG's cluster.

        MultiWorkerMirroredStrategy in an evaluator looks itself up there; with parameter servers it must be
        left out.
        """
        return not self.count("ps")

    def addressed(self) -> list[Task]:
        """The tasks that get an address of their own, in start order."""
        if not self.counts:
            return []
        return [task for task in self.tasks() if task.type != "evaluator" or self.lists_evaluator]

    def tf_config(self, task: Task, addresses: Mapping[Task, str]) -> dict[str, Any]:
        """TF_CONFIG for `task`; empty for an empty shape. `addresses`: "host:port" of addressed()."""
        if not self.counts:
            return {}
        cluster: dict[str, list[str]] = {}
        for member in self.addressed():
            cluster.setdefault(member.type, []).append(addresses[member])
        return {"cluster": cluster, "task": {"type": task.type, "index": task.index}}

    def arguments(self, args: Sequence[str], task: Task, addresses: Mapping[Task, str]) -> list[str]:
        """A script's arguments for `task`, with what programs take that have no TF_CONFIG filled in.

        `{ps_hosts}` and `{worker_hosts}` are addresses with commas between them, `{job_name}` is "ps" or "worker",
        `{task_index}` the place among these. A chief is the first of the workers, as such programs have it.
        """
        trainers = self._workers()
        servers = [member for member in self.tasks() if member.type == "ps"]
        among = servers if task.type == "ps" else trainers
        filled = {
            "{ps_hosts}": ",".join(addresses[member] for member in servers),
            "{worker_hosts}": ",".join(addresses.get(member, "") for member in trainers),
            "{job_name}": "ps" if task.type == "ps" else "worker",
            "{task_index}": str(among.index(task)) if task in among else "0",
        }
        found = []
        for arg in args:
            for name, value in filled.items():
                arg = arg.replace(name, value)
            found.append(arg)
        return found
