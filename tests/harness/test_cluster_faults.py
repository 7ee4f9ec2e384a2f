"""Every role of a cluster hit by every kind of fault, at a random moment: the launcher names it, and nothing is left.

Most of it without TensorFlow, on programs that only behave as a cluster does: servers that serve, trainers that make
steps and need the servers for it, an evaluator that looks for checkpoints. What waits for another task does so in a
file below site-packages/tensorflow, as in real life.
"""

from __future__ import annotations

import dataclasses
import json
import os
import random
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, get_args

import psutil
import pytest

from benchmarks import faults
from migrator.harness import environments, packed
from migrator.harness.cluster import (
    FAILURE_KINDS,
    ClusterShape,
    Failure,
    FailureKind,
    ForkServer,
    ForkServerError,
    Launch,
    RunOutcome,
    Task,
    TaskOutcome,
    logs,
    memory,
)
from migrator.harness.cluster.stacks import Stacks, Suspicion

PYTHON = Path(sys.executable)
SHAPE = ClusterShape.parse("chief=1,worker=2,ps=1,evaluator=1")
STALL = 2.0
LIMIT = 250_000_000
SEED = int(os.environ.get("TF_MIGRATE_FAULT_SEED") or time.time_ns() % 1_000_000)

RUNTIME = """
import select, socket, time


def serve(address):
    # One thread for everything: unlike a real server, this one stops serving when Python code is stuck.
    listener = socket.create_server(address)
    everyone = [listener]
    while True:
        for ready in select.select(everyone, [], [])[0]:
            if ready is listener:
                everyone.append(listener.accept()[0])
            elif ready.recv(1):
                ready.sendall(b"y")
            else:
                everyone.remove(ready)


def connect(address):
    while True:
        try:
            return socket.create_connection(address)
        except OSError:
            time.sleep(0.05)


def call(connection):
    connection.sendall(b"x")
    if not connection.recv(1):
        raise ConnectionError("a server is gone")


def look_for_checkpoints():
    while True:
        time.sleep(0.1)


def join(thread):
    thread.join()


def compute(seconds):
    end = time.time() + seconds
    while time.time() < end:
        pass
"""
PROLOGUE = """
import json, os, signal, sys, threading, time
FOLDER, SERVERS = sys.argv[1], sys.argv[2].split(",")
sys.path.append(FOLDER + "/site-packages")
from tensorflow import runtime

config = json.loads(os.environ.get("TF_CONFIG", '{"task": {"type": "local", "index": 0}, "cluster": {}}'))
task, cluster = config["task"], config["cluster"]
me = "%s:%d" % (task["type"], task["index"])


def address(kind, index):
    host, port = cluster[kind][index].split(":")
    return host, int(port)


def record(kind, index, number):
    folder = "%s/run/record/%s-%d" % (FOLDER, kind, index)
    os.makedirs(folder, exist_ok=True)
    with open(folder + "/steps", "a") as file:
        file.write("%018d%012dloss" % (number, 4))


def spin():
    while True:
        pass


def lock():
    mine = threading.Lock()
    mine.acquire()
    mine.acquire()


def fill():
    held = [bytearray(b"x") * 20_000_000 for _ in range(15)]
    while held:
        time.sleep(0.02)


def happen(*_):
    with open(FOLDER + "/fault") as file:
        fault = file.read()
    if fault == "MemoryError":
        bytearray(1 << 62)
    {"spin": spin, "lock": lock, "memory": fill}[fault]()


signal.signal(signal.SIGUSR2, happen)
with open(FOLDER + "/part-" + me, "w") as file:
    file.write(str(os.getpid()))
os.rename(FOLDER + "/part-" + me, FOLDER + "/pid-" + me)
with open(FOLDER + "/part-" + me, "w") as file:
    json.dump(cluster, file)
os.rename(FOLDER + "/part-" + me, FOLDER + "/ports")
"""
CLUSTER = """
if me in SERVERS:
    runtime.serve(address(task["type"], task["index"]))
if me == "evaluator:0":
    runtime.look_for_checkpoints()
served = [name.split(":") for name in SERVERS]
connections = [runtime.connect(address(kind, int(index))) for kind, index in served]
for number in range(100_000):
    for connection in connections:
        runtime.call(connection)
    if "worker:0" in SERVERS:
        for index in range(len(cluster["worker"])):
            record("worker", index, number)
    else:
        record(task["type"], task["index"], number)
    time.sleep(0.05)
"""


@dataclasses.dataclass(frozen=True)
class Struck:
    """A run that a fault came to: when (time.time()), and what was left of it."""

    outcome: RunOutcome
    moment: float
    leftovers: tuple[str, ...]

    @property
    def seconds(self) -> float:
        return max(task.ended for task in self.outcome.tasks) - self.moment


def prepare(folder: Path, body: str) -> Path:
    package = folder / "site-packages" / "tensorflow"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").touch()
    (package / "runtime.py").write_text(RUNTIME)
    script = folder / "program.py"
    script.write_text(PROLOGUE + textwrap.dedent(body))
    return script


def launch(
    folder: Path, body: str, shape: ClusterShape = SHAPE, program: str = "original", args: str = "", **more: Any
) -> Launch:
    servers = ",".join(map(str, shape.servers()))
    given: dict[str, Any] = {"stall_timeout": STALL, "ready_timeout": 20.0, "total_timeout": 60.0, **more}
    return Launch(program, prepare(folder, body), (str(folder), servers, args), shape, folder / "run", **given)


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer(PYTHON, "original", preload=()) as server:
        yield server


@pytest.fixture
def run(server: ForkServer, tmp_path: Path) -> Callable[..., RunOutcome]:
    def run(body: str, shape: str = "", **more: Any) -> RunOutcome:
        return server.run(launch(tmp_path, body, ClusterShape.parse(shape), **more))

    return run


def failure_of(outcome: RunOutcome) -> Failure:
    assert outcome.failure is not None
    return outcome.failure


# ---- every role and every fault


MATRIX = [
    (program, task, fault)
    for fault in faults.FAULTS
    for program, tasks in (
        ("original", ("chief:0", "worker:1", "ps:0", "evaluator:0")),
        ("migrated", ("chief:0", "worker:1", "ps:0", "evaluator:0")),
    )
    for task in tasks
]


def strike(program: str, victim: str, fault: str, folder: Path, delay: float) -> Struck:
    moments: list[float] = []
    over = threading.Event()

    def act() -> None:
        record = folder / "run" / "record"
        while (
            sum(len(packed.places(steps)) for steps in record.glob("*/steps")) < 6
            or len(list(folder.glob("pid-*"))) < 5
        ):
            if over.wait(0.02):
                return
        time.sleep(delay)
        (folder / "fault").write_text(fault)
        number = getattr(signal, fault) if fault.startswith("SIG") else signal.SIGUSR2
        moments.append(time.time())
        os.kill(int((folder / f"pid-{victim}").read_text()), number)

    # A task that fills the memory makes no steps meanwhile, and on a busy machine 300 MB take longer than a stall.
    patience = STALL if fault != "memory" else 20.0
    given = launch(folder, CLUSTER, program=program, memory_limit=LIMIT, stall_timeout=patience)
    thread = threading.Thread(target=act)
    thread.start()
    try:
        with ForkServer(PYTHON, program, preload=()) as server:
            outcome = server.run(given)
            left = faults.leftovers(server, folder)
    finally:
        over.set()
        thread.join()
    return Struck(outcome, *moments, left)


@pytest.fixture(scope="module")
def struck(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[tuple[str, str, str], Future[Struck]]]:
    """The whole matrix, several clusters at a time."""
    chance = random.Random(SEED)
    with ThreadPoolExecutor(6) as pool:
        yield {
            case: pool.submit(strike, *case, tmp_path_factory.mktemp("fault"), chance.uniform(0.0, 0.8))
            for case in MATRIX
        }


@pytest.mark.parametrize(("program", "victim", "fault"), MATRIX)
def test_each_fault_of_each_role_is_named_and_ends_all_within_10_seconds(
    struck: Mapping[tuple[str, str, str], Future[Struck]], program: str, victim: str, fault: str
) -> None:
    print(f"TF_MIGRATE_FAULT_SEED={SEED}")
    result = struck[program, victim, fault].result()
    failure = failure_of(result.outcome)
    assert (str(failure.task), failure.kind) == (victim, faults.FAULTS[fault][0]), failure
    assert result.seconds < 10
    assert result.leftovers == ()
    assert not any(psutil.pid_exists(task.pid) for task in result.outcome.tasks)
    if fault in ("spin", "lock"):
        assert f"it is in {fault} (" in failure.message
        assert any(line.startswith(f"  {fault} (") for line in failure.tail)


def test_the_kinds_of_failure_are_a_closed_list_that_reports_know() -> None:
    assert set(FAILURE_KINDS) == set(get_args(FailureKind))
    schema = json.loads((Path(logs.__file__).parent.parent / "report" / "schema.json").read_text())
    error = schema["properties"]["error"]["oneOf"][1]
    assert set(error["properties"]["kind"]["enum"]) == set(FAILURE_KINDS)


# ---- who hangs, and who only waits for it


LOCKSTEP = """
for number in range(8):
    if me == "worker:0" and number == 4:
        HANG
    record(task["type"], task["index"], number)
    files = ["%s/run/record/%s/steps" % (FOLDER, one) for one in os.listdir(FOLDER + "/run/record")]
    while len([one for one in files if os.path.exists(one) and os.path.getsize(one) > 34 * number]) < 3:
        files = ["%s/run/record/%s/steps" % (FOLDER, one) for one in os.listdir(FOLDER + "/run/record")]
        time.sleep(0.02)
"""


@pytest.mark.parametrize(("hang", "load"), [("spin()", "used "), ("lock()", "used [0-2]% of a core")])
def test_the_one_that_hangs_is_named_and_not_those_that_wait_for_it(
    run: Callable[..., RunOutcome], hang: str, load: str
) -> None:
    outcome = run(LOCKSTEP.replace("HANG", hang), "chief=1,worker=2", stall_timeout=1.0)
    failure = failure_of(outcome)
    assert (str(failure.task), failure.kind) == ("worker:0", "stall")
    assert re.search(load, failure.message)  # the kernel counts in ticks of 10 ms, 1% of this second: one of each kind
    assert "it made 4 steps, " in failure.message


def test_the_one_that_hangs_is_named_when_the_others_are_done(run: Callable[..., RunOutcome]) -> None:
    outcome = run("record(*task.values(), 0)\nif me == 'worker:1': lock()", "chief=1,worker=2", stall_timeout=1.0)
    failure = failure_of(outcome)
    assert (str(failure.task), failure.kind) == ("worker:1", "stall")
    assert {str(task.task) for task in outcome.tasks if task.ended_by_launcher} == {"worker:1"}


def test_a_thread_of_the_program_that_hangs_is_found_below_a_call_of_tensorflow(
    run: Callable[..., RunOutcome],
) -> None:
    # As a generator of an input pipeline does: the main thread is in TensorFlow, in every task.
    body = """
    record(*task.values(), 0)
    def generator():
        if me == "chief:0": lock()
        time.sleep(60)
    thread = threading.Thread(target=generator, daemon=True)
    thread.start()
    runtime.join(thread)
    """
    failure = failure_of(run(body, "chief=1,worker=2", stall_timeout=1.0))
    assert (str(failure.task), failure.kind) == ("chief:0", "stall")
    assert "it is in lock (" in failure.message


def test_without_anything_in_the_program_the_wait_is_shown(run: Callable[..., RunOutcome]) -> None:
    failure = failure_of(run("record(*task.values(), 0)\nruntime.look_for_checkpoints()", stall_timeout=0.6))
    assert failure.kind == "stall"
    assert "it waits in look_for_checkpoints (" in failure.message


def test_what_tensorflow_says_while_it_waits_is_no_progress(run: Callable[..., RunOutcome]) -> None:
    body = """
    record(*task.values(), 0)
    while True:
        print("CreateSession still waiting for response from worker: /job:ps/replica:0/task:1", file=sys.stderr)
        time.sleep(0.1)
    """
    outcome = run(body, stall_timeout=1.0, total_timeout=20.0)
    assert failure_of(outcome).kind == "stall"


def test_a_progress_bar_is_progress(run: Callable[..., RunOutcome]) -> None:
    body = """
    record(*task.values(), 0)
    for done in range(15):
        print("\\r%d/15" % done, end="", flush=True); time.sleep(0.1)
    """
    assert run(body, stall_timeout=0.8).failure is None


def test_an_evaluator_that_goes_on_talking_does_not_hide_a_hang(run: Callable[..., RunOutcome]) -> None:
    body = """
    if me == "chief:0":
        record(*task.values(), 0)
        lock()
    while True:
        print("evaluating"); time.sleep(0.1)
    """
    failure = failure_of(run(body, "chief=1,evaluator=1", stall_timeout=1.0, total_timeout=20.0))
    assert (str(failure.task), failure.kind) == ("chief:0", "stall")


def test_a_long_wait_is_not_taken_for_a_hang(run: Callable[..., RunOutcome]) -> None:
    # For three times the limit: asleep in its own code, waiting in TensorFlow, at work in TensorFlow.
    body = """
    record(*task.values(), 0)
    if me == "worker:0": time.sleep(3.0)
    if me == "worker:1":
        thread = threading.Timer(3.0, print)
        thread.start()
        runtime.join(thread)
    if me == "evaluator:0": runtime.compute(3.0)
    if me == "chief:0":
        for number in range(40):
            record(*task.values(), number); time.sleep(0.1)
    """
    outcome = run(body, "chief=1,worker=2,evaluator=1", stall_timeout=1.0)
    assert outcome.failure is None, outcome.failure


def test_a_task_that_is_stopped_for_a_moment_goes_on(run: Callable[..., RunOutcome], tmp_path: Path) -> None:
    body = """
    if me == "worker:0": os.kill(os.getpid(), signal.SIGSTOP)
    else:
        time.sleep(0.5)
        os.kill(int(open(FOLDER + "/pid-worker:0").read()), signal.SIGCONT)
        time.sleep(2.5)
    """
    assert run(body, "chief=1,worker=1").failure is None


def test_stacks_tell_the_program_from_what_it_waits_in() -> None:
    head = "Current thread 0x00007f (most recent call first):\n"
    waits = '  File "/v/lib/python3.11/threading.py", line 327 in wait\n'
    runtime = '  File "/v/lib/python3.11/site-packages/tensorflow/python/client/session.py", line 1402 in run\n'
    library = '  File "/v/lib/python3.11/site-packages/requests/api.py", line 7 in get\n'
    program = '  File "/home/me/train.py", line 12 in model_fn\n'
    main = '  File "/home/me/train.py", line 80 in <module>\n'

    def suspicion(*threads: str) -> Suspicion:
        return Stacks.parse("\n".join(head + thread for thread in threads)).suspicion()

    assert suspicion() is Suspicion.NONE
    assert suspicion(waits + program + main) is Suspicion.OWN_CODE
    assert suspicion(waits + library + main) is Suspicion.OWN_CODE
    assert suspicion(waits + runtime + program + main) is Suspicion.NONE
    assert suspicion(waits + program, runtime + main) is Suspicion.THREAD
    assert suspicion(waits, runtime + main) is Suspicion.NONE
    stacks = Stacks.parse(head + waits + runtime + program + main)
    assert str(stacks.place()) == "run (/v/lib/python3.11/site-packages/tensorflow/python/client/session.py:1402)"
    assert [frame.line for frame in stacks.telling()] == [327, 1402, 12, 80]


def test_stuck_is_the_same_call_in_the_program_at_two_times() -> None:
    def stacks(function: str, line: int, caller: int) -> Stacks:
        frames = f'  File "/p.py", line {line} in {function}\n  File "/p.py", line {caller} in <module>\n'
        return Stacks.parse("Thread 0x01 (most recent call first):\n" + frames)

    assert stacks("loop", 3, 9).stuck_since(stacks("loop", 4, 9))
    assert not stacks("loop", 3, 9).stuck_since(stacks("loop", 3, 10))
    assert not stacks("loop", 3, 9).stuck_since(stacks("other", 3, 9))
    assert not Stacks().stuck_since(Stacks())


@pytest.mark.parametrize("stays", [True, False])
def test_a_broken_connection_is_not_the_cause_when_its_other_end_died(
    run: Callable[..., RunOutcome], stays: bool
) -> None:
    # Under load a death becomes known to the launcher after those have failed who were connected to the dead.
    body = f"""
    if me == "ps:0":
        time.sleep(0.6)
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.3)
    if {stays}: threading.Thread(target=time.sleep, args=(60,)).start()
    raise ConnectionResetError("Connection reset by peer")
    """
    failure = failure_of(run(body, "chief=1,ps=1"))
    assert (str(failure.task), failure.kind) == ("ps:0", "signal")


def test_a_broken_connection_is_the_cause_when_nobody_died(run: Callable[..., RunOutcome]) -> None:
    failure = failure_of(
        run("time.sleep(0.2)\nif me == 'chief:0': raise ConnectionError\ntime.sleep(60)", "chief=1,ps=1")
    )
    assert (str(failure.task), failure.kind) == ("chief:0", "exit")


# ---- memory


def test_too_many_tasks_for_the_memory_are_refused(run: Callable[..., RunOutcome], tmp_path: Path) -> None:
    outcome = run("print('ran')", "chief=1,worker=2", memory_limit=2 * memory.TASK)
    failure = failure_of(outcome)
    assert (failure.task, failure.kind) == (Task("chief", 0), "memory")
    assert "3 tasks need about 63 MB of memory, 21 MB each, and may take 42 MB" in failure.message
    assert outcome.tasks == ()
    assert outcome.keep_logs(tmp_path / "kept") == ()
    assert not (tmp_path / "run" / "tasks").exists()


def test_the_largest_task_is_named_when_memory_runs_short(run: Callable[..., RunOutcome]) -> None:
    body = """
    held = bytearray(b"x") * (150_000_000 if me == "worker:1" else 60_000_000)
    while True:
        print("."); time.sleep(0.1)
    """
    failure = failure_of(run(body, "chief=1,worker=2", memory_limit=200_000_000))
    assert (str(failure.task), failure.kind) == ("worker:1", "memory")
    assert "the limit is 200 MB" in failure.message
    outcome = run(body.replace("while True:", "for _ in range(20):"), "chief=1,worker=2", memory_limit=500_000_000)
    assert outcome.failure is None


def test_a_child_of_a_task_counts_as_the_task(run: Callable[..., RunOutcome]) -> None:
    body = """
    import subprocess
    code = "held = bytearray(b'x') * 150_000_000; import time; time.sleep(60)"
    if me == "worker:0": subprocess.run([sys.executable, "-c", code])
    time.sleep(60)
    """
    failure = failure_of(run(body, "chief=1,worker=1", memory_limit=120_000_000))
    assert (str(failure.task), failure.kind) == ("worker:0", "memory")


def test_the_machine_is_not_run_out_of_memory(run: Callable[..., RunOutcome], monkeypatch: pytest.MonkeyPatch) -> None:
    left = iter([8 << 30, 8 << 30, 7 << 30])
    monkeypatch.setattr(memory, "available", lambda: next(left, 100 << 20))
    failure = failure_of(run("while True: print('.'); time.sleep(0.1)"))
    assert failure.kind == "memory"
    assert "has only 105 MB left" in failure.message


def test_sigkill_is_memory_when_the_kernel_says_so(
    run: Callable[..., RunOutcome], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    killed = tmp_path / "killed"
    monkeypatch.setattr(memory, "kills", lambda: 4 + killed.exists())
    body = "if me == 'worker:0':\n    open(sys.argv[3], 'w')\n    os.kill(os.getpid(), signal.SIGKILL)\ntime.sleep(60)"
    failure = failure_of(run(body, "chief=1,worker=1", args=str(tmp_path / "elsewhere")))
    assert (str(failure.task), failure.kind) == ("worker:0", "signal")
    failure = failure_of(run(body, "chief=1,worker=1", args=str(killed)))
    assert (str(failure.task), failure.kind) == ("worker:0", "memory")
    assert "was ended by SIGKILL because memory had run out (it held " in failure.message


@pytest.mark.parametrize(
    "body",
    [
        "raise MemoryError",
        "class ResourceExhaustedError(Exception): pass\nraise ResourceExhaustedError('OOM when allocating tensor')",
        "print('terminate called after: std::bad_alloc', file=sys.stderr)\nos.abort()",
    ],
)
def test_exceptions_that_say_there_is_no_memory(run: Callable[..., RunOutcome], body: str) -> None:
    assert failure_of(run(body)).kind == "memory"


def test_control_groups_are_read_in_both_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Machine:
        available = 10 << 30

    monkeypatch.setattr(psutil, "virtual_memory", Machine)
    proc, mount = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    assert memory.available(proc) == 10 << 30  # no files at all
    assert memory.kills(proc) is None
    (proc / "vmstat").write_text("nr_free_pages 5\noom_kill 7\n")
    assert memory.kills(proc) == 7

    inner = mount / "user" / "job"
    inner.mkdir(parents=True)
    (proc / "self" / "cgroup").write_text("0::/user/job\n")
    (proc / "self" / "mountinfo").write_text(f"31 23 0:28 / {mount} rw - cgroup2 cgroup2 rw\n")
    (inner / "memory.max").write_text("max\n")
    (inner / "memory.current").write_text("500\n")
    (inner / "memory.events").write_text("oom 9\noom_kill 3\n")
    (mount / "user" / "memory.max").write_text("1000\n")
    (mount / "user" / "memory.current").write_text("900\n")
    (mount / "user" / "memory.stat").write_text("anon 1\nactive_file 20\ninactive_file 30\n")
    assert memory.available(proc) == 150
    assert memory.kills(proc) == 3

    (proc / "self" / "cgroup").write_text("4:cpu,memory:/docker/abc\n0::/\n")
    (proc / "self" / "mountinfo").write_text(f"31 23 0:28 /docker/abc {mount} ro - cgroup cgroup rw,memory\n")
    (mount / "memory.limit_in_bytes").write_text("2000\n")
    (mount / "memory.usage_in_bytes").write_text("1990\n")
    (mount / "memory.stat").write_text("inactive_file 1\ntotal_inactive_file 5\n")
    (mount / "memory.oom_control").write_text("under_oom 0\noom_kill 11\n")
    assert memory.available(proc) == 15
    assert memory.kills(proc) == 11
    (mount / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    assert memory.available(proc) == 10 << 30


# ---- the launcher's own means


def test_a_process_that_cannot_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "few_forks.py").write_text(
        "import errno, os\nfork, left = os.fork, [2]\n"
        "def limited():\n    left[0] -= 1\n"
        "    if left[0] < 0: raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))\n    return fork()\n"
        "os.fork = limited\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with ForkServer(PYTHON, "original", preload=("few_forks",)) as server:
        outcome = server.run(launch(tmp_path, "time.sleep(60)"))
        failure = failure_of(outcome)
        assert (str(failure.task), failure.kind) == ("worker:1", "not_started")
        assert "Resource temporarily unavailable" in failure.message
        assert {str(task.task) for task in outcome.tasks} == {"ps:0", "worker:0"}
        assert faults.leftovers(server, tmp_path) == ()


def test_a_fork_server_that_is_stopped_does_not_stop_the_tool(tmp_path: Path) -> None:
    with ForkServer(PYTHON, "original", preload=()) as server:
        pid = server.describe()["pid"]
        tag = psutil.Process(pid).environ()[faults.TAG]
        stopper = threading.Timer(0.5, os.kill, (pid, signal.SIGSTOP))
        stopper.start()
        started = time.monotonic()
        with pytest.raises(ForkServerError, match="was stopped"):
            server.run(launch(tmp_path, CLUSTER))
        assert time.monotonic() - started < 10
        stopper.join()
    assert faults.tagged(tag) == []


def test_one_core_gets_two_threads_for_operations(tmp_path: Path) -> None:
    mine = os.sched_getaffinity(0)
    body = "print(os.environ.get('TF_NUM_INTEROP_THREADS'))"
    try:
        os.sched_setaffinity(0, {min(mine)})
        with ForkServer(PYTHON, "original", preload=()) as server:
            outcome = server.run(launch(tmp_path / "few", body, ClusterShape.parse("worker=2")))
            assert {task.tail for task in outcome.tasks} == {("2",)}
            given = {"TF_NUM_INTEROP_THREADS": "7"}
            shape = ClusterShape.parse("worker=2")
            outcome = server.run(launch(tmp_path / "given", body, shape, environment=given))
            assert {task.tail for task in outcome.tasks} == {("7",)}
            outcome = server.run(launch(tmp_path / "local", body, ClusterShape()))
            assert outcome.tasks[0].tail == ("None",)
    finally:
        os.sched_setaffinity(0, mine)


TOOL = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from pathlib import Path
from migrator.harness.cluster import ClusterShape, ForkServer, Launch

script, folder, python = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.executable)
with ForkServer(python, "original", preload=(), folder=folder / "run") as server:
    shape = ClusterShape.parse("chief=1,worker=2,ps=1,evaluator=1")
    server.run(Launch("original", script, (str(folder), "ps:0"), shape, folder / "run"))
"""


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGINT"])
@pytest.mark.parametrize("part", [0, 1])
def test_nothing_is_left_of_a_tool_that_is_killed_at_any_moment(tmp_path: Path, name: str, part: int) -> None:
    print(f"TF_MIGRATE_FAULT_SEED={SEED}")
    script = prepare(tmp_path, CLUSTER)
    command = [sys.executable, "-c", TOOL, str(script), str(tmp_path)]
    environment = os.environ | {faults.MARK: str(tmp_path)}

    def as_in_a_terminal() -> None:
        # A shell's background jobs ignore it, and their children until they ask for it.
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, preexec_fn=as_in_a_terminal) as tool:
        # While it starts, and while the cluster trains.
        while part and not (tmp_path / "run" / "record").exists():
            assert tool.poll() is None
            time.sleep(0.02)
        time.sleep(random.Random(SEED + part).uniform(0.0, 1.0))
        tool.send_signal(getattr(signal, name))
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            left = [*faults.tagged(str(tmp_path), faults.MARK), *faults.listening(faults.ports_of(tmp_path))]
            if tool.poll() is not None and not left:
                break
            time.sleep(0.05)
        assert left == []
    # A tool that hears of its end removes its folders itself; here it has none.
    assert name == "SIGINT" or not (tmp_path / "run").exists()
    if part:
        assert faults.ports_of(tmp_path)


def test_the_folder_goes_even_if_the_server_sees_the_end_of_a_killed_tool_before_the_kernel_is_done(
    tmp_path: Path,
) -> None:
    # A process that dies closes its files first, and only then do its children get another parent.
    for name, orderly in (("orderly", True), ("dying", False)):
        folder = tmp_path / name
        folder.mkdir()
        server = ForkServer(PYTHON, "original", preload=(), folder=folder).__enter__()
        process = psutil.Process(server.describe()["pid"])
        if not orderly:
            with open(os.devnull, "w") as nothing:
                os.dup2(nothing.fileno(), server._requests)
            process.wait(5)
        server.close()
        assert not process.is_running()
        assert folder.exists() == orderly


# ---- logs that stay


def test_logs_are_kept_with_head_and_tail(run: Callable[..., RunOutcome], tmp_path: Path) -> None:
    body = """
    if me == "worker:0":
        print("first"); print("x" * 100 * 80_000); print("last")
        print("to stderr", file=sys.stderr)
        sys.exit(3)
    time.sleep(60)
    """
    outcome = run(body, "chief=1,worker=1")
    worker, chief = outcome.keep_logs(tmp_path / "kept")
    assert worker == tmp_path / "kept" / "run" / "worker-0.log"
    assert outcome.keep_logs(tmp_path / "kept", "original")[1] == tmp_path / "kept" / "original" / "chief-0.log"
    text = worker.read_text()
    assert text.startswith(f"# worker:0, process {outcome.tasks[0].pid}: exit code 3\n\n# stdout\nfirst\nxxx")
    assert "bytes are left out here ...\nxxx" in text
    assert text.endswith("xxx\nlast\n\n# stderr\nto stderr\n")
    assert logs.KEPT < len(text) < logs.KEPT + 500
    assert chief.read_text() == f"# chief:0, process {outcome.tasks[1].pid}: SIGTERM, ended by the launcher\n"


def test_stacks_are_kept_with_the_logs(run: Callable[..., RunOutcome], tmp_path: Path) -> None:
    outcome = run("record(*task.values(), 0)\nlock()", stall_timeout=0.5)
    (kept,) = outcome.keep_logs(tmp_path / "kept")
    assert "\n# stacks\n" in kept.read_text()
    assert " in lock\n" in kept.read_text()


# ---- real clusters


@pytest.fixture(scope="module")
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tasks of the real clusters have their temporary files."""
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture(scope="module")
def tensorflow(temporary: Path) -> Iterator[Mapping[str, ForkServer]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(temporary))
        with (
            ForkServer(environments.original_python(), "original") as original,
            ForkServer(environments.migrated_python(), "migrated") as migrated,
        ):
            yield {"original": original, "migrated": migrated}


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "case",
    [
        faults.Case("original", "ps:1", "SIGKILL"),
        faults.Case("original", "worker:1", "SIGSTOP"),
        faults.Case("original", "chief:0", "lock"),
        faults.Case("migrated", "ps:1", "SIGKILL"),
        faults.Case("migrated", "worker:1", "SIGSTOP"),
        faults.Case("migrated", "chief:0", "spin"),
    ],
    ids=lambda case: f"{case.program}-{case.task}-{case.fault}",
)
def test_faults_of_real_clusters(
    tensorflow: Mapping[str, ForkServer], tmp_path: Path, temporary: Path, case: faults.Case
) -> None:
    print(f"TF_MIGRATE_FAULT_SEED={SEED}")
    result = faults.run(tensorflow[case.program], case, tmp_path, random.Random(SEED))
    assert result.right, faults.line(result)
    assert list(temporary.iterdir()) == []
    (chief,) = (task for task in result.outcome.tasks if str(task.task) == "chief:0")
    # A chief that ends by itself takes its files with it, as one may be doing that sees its ps die and is ended then;
    # one that waits or spins until it is ended leaves them, in its own folder.
    if case.program == "migrated" and case.fault != "SIGKILL":
        assert chief.signal is not None
        assert list((tmp_path / "run" / "tasks" / "chief-0").glob("__autograph_generated_file*.py"))


@pytest.mark.tensorflow
def test_a_keras_program_trains_with_parameter_servers_on_one_core(tmp_path: Path) -> None:
    mine = os.sched_getaffinity(0)
    given = faults.launch_of("migrated", tmp_path)
    given = dataclasses.replace(given, plan={**given.plan, "steps": 20}, stall_timeout=30.0)
    try:
        os.sched_setaffinity(0, {min(mine)})
        with ForkServer(environments.migrated_python(), "migrated") as server:
            outcome = server.run(given)
    finally:
        os.sched_setaffinity(0, mine)
    assert outcome.failure is None, outcome.failure
    chief: TaskOutcome = next(task for task in outcome.tasks if task.task == Task("chief", 0))
    assert chief.exit_code == 0
