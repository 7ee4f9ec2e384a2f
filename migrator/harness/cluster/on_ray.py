"""Runs on a Ray cluster: each task is an actor, on whichever machine Ray has room for it.

An actor has a fork server on its machine, which starts its task from the same job as a local one, and the same
supervision watches over them. The folder of the runs, the programs and the interpreters have to be at the same place on
all machines.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import secrets
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from migrator.harness.cluster.runner import Runner
from migrator.harness.cluster.supervise import ForkServerError
from migrator.harness.cluster.tasks import LOCAL, Task
from migrator.harness.cluster.vitals import Vitals

#: Seconds that a Ray cluster gets to make room for the tasks of a run.
_PATIENCE = 120.0
#: Seconds that an actor gets to end what it started, before Ray ends it.
_GOODBYE = 10.0
#: Seconds between two looks at what the actors tell.
_LOOK = 0.05


@contextlib.contextmanager
def ray_runners() -> Iterator[Callable[..., Runner]]:
    """For the block, a Ray cluster: the one that RAY_ADDRESS names, else one on this machine that ends with the block.

    Yields what makes a runner on it, with the arguments of a ForkServer. Raises ForkServerError where there is none.
    """
    address = os.environ.get("RAY_ADDRESS")
    variables = {"RAY_USAGE_STATS_ENABLED": "0"}
    if not address:
        # Ray listens on all addresses of the machine and runs whatever it is sent.
        variables |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    environment = {name: value for name, value in os.environ.items() if name not in variables}
    for name, value in variables.items():  # for good: Ray reads them once in a process
        os.environ.setdefault(name, value)
    ray: Any = importlib.import_module("ray")  # by name: the types of an extra are not there for everybody
    # In a tool that can be interrupted SIGTERM is not Ray's.
    main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM)
    with contextlib.ExitStack() as stack:
        own: dict[str, Any] = {}
        if not address:
            scratch = tempfile.mkdtemp(prefix="tfm-ray-", dir="/tmp")  # sockets are in it: their paths have to be short
            stack.callback(shutil.rmtree, scratch, ignore_errors=True)
            own = {
                "_temp_dir": scratch,
                "include_dashboard": False,
                "_system_config": {"worker_niceness": 0},
            }
        try:
            ray.init(address=address or "local", log_to_driver=False, logging_level="error", **own)
        except Exception as error:  # of many kinds: of Ray, of gRPC, of the system
            where = f"the Ray cluster at {address} cannot be joined" if address else "Ray cannot be started"
            raise ForkServerError(f"{where}: {error}") from error
        stack.callback(ray.shutdown)
        if main:
            signal.signal(signal.SIGTERM, handler)
        # On this machine tasks share the cores, as local processes do; elsewhere Ray keeps one free for each.
        yield partial(RayServer, ray=ray, cores=0.01 if own else 1.0, environment=environment)


class RayServer(Runner):
    """Fork servers in the actors of a placement group, used as one. See ForkServer for the `options`."""

    def __init__(
        self,
        python: Path,
        program: str,
        preload: tuple[str, ...] = ("tensorflow",),
        folder: Path | None = None,
        *,
        ray: Any,
        cores: float,
        **options: Any,
    ) -> None:
        """`ray` is the module, which has been initialized; `cores` are reserved for each task."""
        super().__init__(python, program, preload, folder)
        self._ray = ray
        self._cores = cores
        self._options = {"python": python.absolute(), "program": program, "preload": preload, "folder": folder}
        self._options |= options
        self._open = False
        self._group: Any = None
        self._actors: list[Any] = []
        self._places: dict[Task, Any] = {}
        self._description: dict[str, Any] | None = None
        #: Tasks that were started since the last end of a run; those that have yet to end; what they changed.
        self._started: list[Task] = []
        self._ending: set[Task] | None = None
        self._changes: list[dict[str, Any]] = []
        self._told_ending = False

    def __enter__(self) -> RayServer:
        self._open = True
        return self

    def describe(self) -> dict[str, Any]:
        """See Runner.describe; "pid" is of a process on the machine of the first actor."""
        if self._description is None:
            self._place([LOCAL])
        assert self._description is not None
        return dict(self._description)

    def addresses(self, tasks: Sequence[Task]) -> dict[Task, str]:
        """See Runner.addresses."""
        return self._ask("address", dict.fromkeys(tasks, ()))

    def send(self, request: Mapping[str, Any]) -> None:
        """Pass a request on to the actors of the tasks that it is about."""
        if request["op"] == "start":
            tasks = [Task.parse(request["job"]["task"])]
            self._started += tasks
        elif request["op"] == "signal":
            tasks = [Task.parse(name) for name in request["tasks"]]
        else:
            tasks = self._started
            self._ending, self._changes, self._told_ending = set(tasks), [], False
        self._ask("send", {task: (dict(request),) for task in tasks})

    def poll(self, timeout: float) -> list[dict[str, Any]]:
        """The events of all actors in the order of their times, and that all ended once it did everywhere."""
        deadline = time.monotonic() + timeout
        while True:
            told = self._ask("poll", dict.fromkeys(self._started, (0.0,)))
            events = [event for task, some in told.items() for event in some if not self._kept_back(task, event)]
            if self._ending is not None and not self._ending:
                events.append({"event": "ended all", "time": time.time(), "changes": self._changes})
                self._ending, self._started = None, []
            if events or time.monotonic() > deadline:
                return sorted(events, key=lambda event: float(event["time"]) if "time" in event else 0.0)
            time.sleep(_LOOK)

    def _kept_back(self, task: Task, event: Mapping[str, Any]) -> bool:
        """Takes in what only all actors together can say."""
        if event["event"] == "ended all":
            assert self._ending is not None
            self._ending.discard(task)
            self._changes += event["changes"]
            return True
        again = event["event"] == "ending" and self._told_ending
        self._told_ending = self._told_ending or event["event"] == "ending"
        return again

    def look(self, tasks: Mapping[Task, int]) -> tuple[int | None, Mapping[Task, Vitals]]:
        """See Channel.look."""
        seen = self._ask("look", {task: ({task: pid},) for task, pid in tasks.items()})
        stopped = next((pid for pid, _ in seen.values() if pid is not None), None)
        return stopped, {task: one for _, some in seen.values() for task, one in some.items()}

    def exact_memory(self, tasks: Mapping[Task, int]) -> Mapping[Task, int]:
        """See Channel.exact_memory."""
        found = self._ask("exact_memory", {task: ({task: pid},) for task, pid in tasks.items()})
        return {task: size for some in found.values() for task, size in some.items()}

    def available(self) -> int:
        """See Channel.available."""
        return sum(dict(self._ask("available", dict.fromkeys(self._places, ())).values()).values())

    def close(self) -> None:
        """See Runner.close."""
        self._open = False
        self._leave()

    def _check_running(self) -> None:
        if not self._open:
            raise ForkServerError(f"the actors of {self._python} on the Ray cluster have ended")

    def _place(self, tasks: Sequence[Task]) -> None:
        """Have an actor for each task; where there are too few, those of one placement group instead.

        They are spread over the machines, as the tasks of a cluster are, and share those that there are.
        """
        self._check_running()
        if len(tasks) > len(self._actors):
            self._leave()
            ray = self._ray
            self._group = ray.util.placement_group([{"CPU": self._cores}] * len(tasks), strategy="SPREAD")
            if not self._group.wait(_PATIENCE):
                self.close()
                raise ForkServerError(f"the Ray cluster has no room for {len(tasks)} tasks of {self._cores:g} cores")
            actor = ray.remote(_task_actor())
            where = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy
            self._actors = [
                actor.options(
                    num_cpus=self._cores,
                    scheduling_strategy=where(placement_group=self._group, placement_group_bundle_index=number),
                ).remote(self._options)
                for number in range(len(tasks))
            ]
            self._places = dict(zip(tasks, self._actors, strict=True))
            self._description = next(iter(self._ask("start", dict.fromkeys(tasks, ())).values()))
        self._places = dict(zip(tasks, self._actors, strict=False))

    def _ask(self, method: str, arguments: Mapping[Task, tuple[Any, ...]]) -> dict[Task, Any]:
        """What the actors of the tasks answer, which are all asked at once. With one that is gone all end."""
        self._check_running()
        asked = {task: getattr(self._places[task], method).remote(*given) for task, given in arguments.items()}
        found: dict[Task, Any] = {}
        for task, answer in asked.items():
            try:
                found[task] = self._ray.get(answer)
            except self._ray.exceptions.RayTaskError as error:
                self.close()
                if not isinstance(error.cause, ForkServerError):
                    raise
                raise ForkServerError(f"{task}: {error.cause}") from None
            except self._ray.exceptions.RayError as error:
                self.close()
                why = str(error).partition("\n")[0]
                raise ForkServerError(f"the actor of {task} on the Ray cluster is gone: {why}") from None
        return found

    def _leave(self) -> None:
        actors, group = self._actors, self._group
        self._actors, self._places, self._group = [], {}, None
        goodbyes = [actor.close.remote() for actor in actors]
        for actor, goodbye in zip(actors, goodbyes, strict=True):
            with contextlib.suppress(self._ray.exceptions.RayError):
                self._ray.get(goodbye, timeout=_GOODBYE)
            self._ray.kill(actor)
        if group is not None:
            self._ray.util.remove_placement_group(group)


def _task_actor() -> type:
    """What runs on the machine of a task. Ray sends classes of functions along with their code, which is then the first
    of ours that runs there.
    """

    class TaskActor:
        def __init__(self, options: Mapping[str, Any]) -> None:
            import tf_migrate  # noqa: F401, finds the rest by its place

            self._options = options
            self._server: Any = None

        def start(self) -> dict[str, Any]:
            """Starts the fork server and describes it."""
            from migrator.harness.cluster.forkserver import ForkServer
            from migrator.harness.cluster.supervise import ForkServerError

            folder = self._options["folder"]
            if folder is not None and not folder.is_dir():
                raise ForkServerError(
                    f"{folder} is not on the machine {os.uname().nodename}: have TMPDIR name a folder that all share"
                )
            self._server = ForkServer(**self._options)
            self._server.__enter__()
            found: dict[str, Any] = self._server.describe()
            return found

        def address(self) -> str:
            """A free port of this machine, by the address that the others reach it at."""
            from migrator.harness.cluster import ports

            ray: Any = importlib.import_module("ray")
            return ports.address(ray.util.get_node_ip_address())

        def send(self, request: dict[str, Any]) -> None:
            self._server.send(request)

        def poll(self, timeout: float) -> Any:
            return self._server.poll(timeout)

        def look(self, tasks: Mapping[Any, int]) -> Any:
            return self._server.look(tasks)

        def exact_memory(self, tasks: Mapping[Any, int]) -> Any:
            return self._server.exact_memory(tasks)

        def available(self) -> tuple[str, int]:
            """The name of this machine and the bytes that can be had on it."""
            return os.uname().nodename, self._server.available()

        def close(self) -> None:
            if self._server is not None:
                self._server.close()

    return TaskActor
