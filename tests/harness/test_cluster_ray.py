"""The runner on Ray: with a stand-in whose actors are objects of this process, and with Ray where it is installed."""

from __future__ import annotations

import importlib.util
import json
import pickle
import signal
import sys
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner

from migrator.cli.program import program
from migrator.harness import session
from migrator.harness.cluster import ClusterShape, ForkServer, ForkServerError, Launch, RunOutcome, Task
from migrator.harness.cluster.on_ray import RayServer
from migrator.harness.protocol.results import Status
from migrator.report.outcome import ExitCode

FIXTURES = Path(__file__).parents[2] / "fixtures"
PYTHON = Path(sys.executable)
TWO = ClusterShape.parse("worker=2")
HOST = "127.0.0.1"


class RayError(Exception):
    pass


class RayTaskError(RayError):
    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class Group:
    def __init__(self, ray: StandIn, bundles: list[dict[str, float]], strategy: str) -> None:
        self.bundles, self.strategy, self._ray = bundles, strategy, ray

    def wait(self, seconds: float) -> bool:
        return sum(bundle["CPU"] for bundle in self.bundles) <= self._ray.cores


class Actor:
    """A handle: calls are made at once, what goes in and out is copied as on the way to another machine."""

    def __init__(self, instance: Any, where: types.SimpleNamespace) -> None:
        self.instance, self.where, self.gone = instance, where, False

    def __getattr__(self, name: str) -> Any:
        return types.SimpleNamespace(remote=lambda *given: (self, name, pickle.dumps(given)))


class StandIn:
    """As much of the module ray as the runner uses."""

    exceptions = types.SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)

    def __init__(self, cores: float = 8.0) -> None:
        self.cores = cores
        self.actors: list[Actor] = []
        self.groups: list[Group] = []
        self.util = types.SimpleNamespace(
            placement_group=self._group,
            remove_placement_group=self.groups.remove,
            get_node_ip_address=lambda: HOST,
            scheduling_strategies=types.SimpleNamespace(PlacementGroupSchedulingStrategy=types.SimpleNamespace),
        )

    def _group(self, bundles: list[dict[str, float]], strategy: str) -> Group:
        self.groups.append(Group(self, bundles, strategy))
        return self.groups[-1]

    def remote(self, kind: type) -> Any:
        def options(num_cpus: float, scheduling_strategy: types.SimpleNamespace) -> Any:
            def make(*given: Any) -> Actor:
                self.actors.append(Actor(kind(*pickle.loads(pickle.dumps(given))), scheduling_strategy))
                return self.actors[-1]

            return types.SimpleNamespace(remote=make)

        return types.SimpleNamespace(options=options)

    def get(self, call: tuple[Actor, str, bytes], timeout: float | None = None) -> Any:
        actor, name, given = call
        if actor.gone:
            raise RayError("The actor died unexpectedly.")
        try:
            found = getattr(actor.instance, name)(*pickle.loads(given))
        except Exception as error:
            raise RayTaskError(error) from error
        return pickle.loads(pickle.dumps(found))

    def kill(self, actor: Actor) -> None:
        self.lose(actor)
        self.actors.remove(actor)

    def lose(self, actor: Actor) -> None:
        """The machine of an actor goes down."""
        actor.gone = True
        if actor.instance._server is not None:
            actor.instance._server.close()


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    found = StandIn()
    monkeypatch.setitem(sys.modules, "ray", found)
    return found


@pytest.fixture
def server(ray: StandIn) -> Iterator[RayServer]:
    with RayServer(PYTHON, "original", (), ray=ray, cores=1.0) as server:
        yield server


@pytest.fixture(scope="module")
def local() -> Iterator[ForkServer]:
    with ForkServer(PYTHON, "original", preload=()) as server:
        yield server


def launch(folder: Path, text: str, shape: ClusterShape = TWO, **more: Any) -> Launch:
    folder.mkdir(exist_ok=True)
    script = folder / "program.py"
    script.write_text(textwrap.dedent(text))
    return Launch("original", script, (), shape, folder / "run", **more)


def said(outcome: RunOutcome) -> dict[str, Any]:
    return {str(task.task): json.loads(task.stdout.read_text()) for task in outcome.tasks}


def test_tasks_find_each_other_by_addresses_of_their_machines(server: RayServer, ray: StandIn, tmp_path: Path) -> None:
    outcome = server.run(launch(tmp_path, "import os; print(os.environ['TF_CONFIG'])"))
    assert outcome.failure is None
    found = said(outcome)
    workers = found["worker:0"]["cluster"]["worker"]
    assert found["worker:1"] == {"cluster": {"worker": workers}, "task": {"type": "worker", "index": 1}}
    assert [address.partition(":")[0] for address in workers] == [HOST, HOST]
    assert len(set(workers)) == 2
    # An actor for each task, in one group, each in a bundle of its own.
    assert [(group.bundles, group.strategy) for group in ray.groups] == [([{"CPU": 1.0}] * 2, "SPREAD")]
    assert [one.where.placement_group_bundle_index for one in ray.actors] == [0, 1]
    assert {one.where.placement_group for one in ray.actors} == set(ray.groups)


FAILING = {
    "an exception": "raise ValueError('no such file')",
    "a signal": "os.kill(os.getpid(), 9)",
    "no progress": "print('begins', flush=True); time.sleep(60)",
    "stopped": "os.kill(os.getpid(), 19)",
}


@pytest.mark.parametrize("statement", FAILING.values(), ids=FAILING.keys())
def test_failures_are_those_of_the_local_runner(
    server: RayServer, local: ForkServer, tmp_path: Path, statement: str
) -> None:
    text = f"""
    import json, os, time
    if json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 1:
        {statement}
    open({str(tmp_path)!r} + "/waits", "w").close()
    time.sleep(60)
    """
    outcomes = [
        runner.run(launch(tmp_path / name, text, stall_timeout=1.5, ready_timeout=10.0))
        for name, runner in (("ray", server), ("local", local))
    ]
    failures = [outcome.failure for outcome in outcomes]
    assert failures[0] is not None and failures[1] is not None
    assert [one.kind for one in failures if one] == [failures[1].kind] * 2
    if statement != FAILING["no progress"]:  # of two that sleep either may be named
        assert failures[0].task == failures[1].task == Task("worker", 1)
    if statement in (FAILING["an exception"], FAILING["a signal"]):
        assert failures[0].message == failures[1].message
    # A task that is asked to end may be too slow to do so on a busy machine: then it is killed.
    ends = [
        [(one.task, one.exit_code, one.ended_by_launcher or one.signal, one.ended_by_launcher) for one in found.tasks]
        for found in outcomes
    ]
    if statement == FAILING["no progress"]:
        ends = [sorted(str(end[1:]) for end in one) for one in ends]  # the one that is named ends otherwise
    assert ends[0] == ends[1]
    assert not any(psutil.pid_exists(one.pid) for one in outcomes[0].tasks)


def test_actors_are_used_again_and_replaced_where_they_are_too_few(
    server: RayServer, ray: StandIn, tmp_path: Path
) -> None:
    text = "import os; print(os.getppid())"
    assert server.describe()["python"] == sys.version.split()[0]
    first = list(ray.actors)
    one = said(server.run(launch(tmp_path / "a", text, ClusterShape())))["local:0"]
    assert ray.actors == first
    two = said(server.run(launch(tmp_path / "b", text)))
    assert first[0].gone and not psutil.pid_exists(one)
    again = said(server.run(launch(tmp_path / "c", text, ClusterShape())))["local:0"]
    assert again == two["worker:0"] != two["worker:1"]
    server.close()
    server.close()
    assert (ray.actors, ray.groups) == ([], [])
    assert not any(map(psutil.pid_exists, two.values()))
    with pytest.raises(ForkServerError, match="have ended"):
        server.run(launch(tmp_path / "d", text))


def test_an_actor_that_is_gone_is_named_with_its_task(server: RayServer, ray: StandIn, tmp_path: Path) -> None:
    text = "import time; print('up', flush=True); time.sleep(60)"

    def lose(task: Task, line: str) -> None:
        ray.lose(ray.actors[1])

    with pytest.raises(ForkServerError, match=r"the actor of worker:1 on the Ray cluster is gone: The actor died"):
        server.run(launch(tmp_path, text), lose)
    assert (ray.actors, ray.groups) == ([], [])


def test_a_server_of_an_actor_that_dies_is_named_with_its_task(server: RayServer, tmp_path: Path) -> None:
    text = """
    import json, os, time
    if json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 1:
        os.kill(os.getppid(), 9)
    time.sleep(60)
    """
    with pytest.raises(ForkServerError, match=r"worker:1: the fork server .* ended by itself \(signal 9\)"):
        server.run(launch(tmp_path, text))


def test_too_few_cores(tmp_path: Path) -> None:
    ray = StandIn(cores=1.0)
    with RayServer(PYTHON, "original", (), ray=ray, cores=1.0) as server:
        assert server.describe()["python"]
        with pytest.raises(ForkServerError, match="no room for 2 tasks of 1 cores"):
            server.run(launch(tmp_path, "print(1)"))
    assert (ray.actors, ray.groups) == ([], [])


def test_a_folder_that_is_not_shared(ray: StandIn, tmp_path: Path) -> None:
    with (
        RayServer(PYTHON, "original", (), tmp_path / "elsewhere", ray=ray, cores=1.0) as server,
        pytest.raises(ForkServerError, match=r"local:0: .*elsewhere is not on the machine .*TMPDIR"),
    ):
        server.describe()


def test_what_confined_tasks_change_is_told_of_all_of_them(
    server: RayServer, local: ForkServer, tmp_path: Path
) -> None:
    text = f"""
    import json, os
    index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
    open({str(tmp_path)!r} + f"/written{{index}}", "w").write("x")
    """
    found = []
    for name, runner in (("ray", server), ("local", local)):
        outcome = runner.run(launch(tmp_path / name, text, confine=True))
        found.append((outcome.failure is None, {(one.path, one.what) for one in outcome.writes}))
    assert found[0] == found[1]
    assert len(found[0][1]) == 2
    assert not list(tmp_path.glob("written*"))


def test_too_little_memory_is_refused(server: RayServer, tmp_path: Path) -> None:
    outcome = server.run(launch(tmp_path, "print(1)", memory_limit=1))
    assert outcome.failure is not None
    assert (outcome.failure.kind, outcome.tasks) == ("memory", ())


def test_without_ray_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    (tmp_path / "a.py").write_text("")
    told = CliRunner().invoke(program, ["verify", str(tmp_path / "a.py"), str(tmp_path / "a.py"), "--runner", "ray"])
    assert told.exit_code == ExitCode.FAILED
    assert "pip install 'tf-migrate[ray]'" in told.output


# -- with Ray ------------------------------------------------------------------------------------------------


@pytest.mark.tensorflow
@pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed: pip install 'tf-migrate[ray]'"
)
@pytest.mark.filterwarnings("default")
def test_mirrored_workers_are_verified_on_ray(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    fixture = FIXTURES / "multi_worker_mirrored"
    case = session.make_case(fixture / "original.py", fixture / "migrated.py", cluster="worker=2", kept=False)
    killed = """
    import json, os, time
    if json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 1:
        os.kill(os.getpid(), 9)
    time.sleep(60)
    """
    handler = signal.getsignal(signal.SIGTERM)
    with session.open_session(runner="ray") as opened:
        assert signal.getsignal(signal.SIGTERM) == handler
        report = session.verify(case, session=opened)
        outcome = opened.original.run(launch(tmp_path, killed))
        below = psutil.Process().children(recursive=True)
    assert report.status is Status.EQUIVALENT, report.summary
    assert outcome.failure is not None
    assert (outcome.failure.task, outcome.failure.kind) == (Task("worker", 1), "signal")
    assert not [one for one in below if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
