"""Hits every kind of task of real TensorFlow clusters with every kind of fault, and prints what the launcher says.

usage: python benchmarks/faults.py [--seed N] [--program original|migrated] [--task ps:1] [--fault spin] [--no-tool]

The programs are those of fixtures/parameter_server_max_size, made to train for ever, with the recorder on. A fault
comes at a random moment after the first steps; one that keeps a server from starting comes before that. "Seconds"
are from the fault to the end of the last process; a task that fills the memory needs most of them for that. The
limits in force: 4 s without progress, 6 s without a first step where the fault comes before it, 2 GB of memory for
all tasks. Last, the tool itself is killed, at any moment.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from migrator.harness import environments, packed
from migrator.harness.cluster import ClusterShape, ForkServer, Launch, RunOutcome
from migrator.harness.runs import plan_for
from migrator.harness.session import counterpart, open_session

FIXTURE = Path(__file__).resolve().parent.parent / "fixtures" / "parameter_server_max_size"
SHAPE = ClusterShape.parse("chief=1,worker=2,ps=2,evaluator=1")
#: Kind of failure that each fault has to end in. "spin" and "lock" hang in Python: a loop, and a lock taken twice.
FAULTS = {
    "SIGKILL": ("signal",),
    "SIGSEGV": ("signal",),
    "SIGSTOP": ("stopped",),
    "memory": ("memory",),
    "MemoryError": ("memory",),
    "spin": ("stall", "not_started"),
    "lock": ("stall", "not_started"),
}
STALL, READY, MEMORY = 4.0, 6.0, 2_000_000_000
#: In the environment of what a fork server starts, and of what we start ourselves.
TAG, MARK = "TF_MIGRATE_FORK_SERVER", "TF_MIGRATE_FAULTS"

#: Goes before a program: obeys the order that the file `order` in FOLDER holds for this task.
PRELUDE = """
def _obey_orders(folder):
    import json, os, random, signal, threading, time

    config = json.loads(os.environ["TF_CONFIG"])
    me = "%(type)s:%(index)d" % config["task"]

    def write(name, content):
        with open(os.path.join(folder, name + me), "w") as file:
            file.write(content)
        os.rename(os.path.join(folder, name + me), os.path.join(folder, name))

    def order():
        try:
            with open(os.path.join(folder, "order")) as file:
                given = json.load(file)
        except (OSError, ValueError):
            return None
        return given["fault"] if given["task"] == me else None

    def spin():
        while True:
            pass

    def lock():
        mine = threading.Lock()
        mine.acquire()
        mine.acquire()

    def fill():
        held = []
        while True:
            held.append(bytearray(b"x") * 50000000)
            time.sleep(0.01)

    def happen(*_):
        fault = order()
        if fault == "MemoryError":
            bytearray(1 << 62)
        {"spin": spin, "lock": lock}[fault]()

    def watch():
        while order() is None:
            time.sleep(0.02)
        if order() == "memory":
            fill()
        while True:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR2)
            # An exception may come where Python only prints it: in a destructor, say.
            time.sleep(0.5)
            if order() != "MemoryError":
                break

    write("ports", json.dumps(config["cluster"]))
    if order() is not None:
        time.sleep(random.random())
        write("when", str(time.time()))
        happen()
    signal.signal(signal.SIGUSR2, happen)
    threading.Thread(target=watch, daemon=True).start()
    write("pid-" + me, str(os.getpid()))

"""


@dataclass(frozen=True)
class Case:
    """A task of a program's cluster and what is done to it."""

    program: str
    task: str
    fault: str

    @property
    def before_start(self) -> bool:
        """Whether it comes before the task starts: a server that serves is not in Python, and cannot hang there."""
        serves = self.task.startswith("ps:") or (self.program == "migrated" and self.task.startswith("worker:"))
        return serves and self.fault in ("spin", "lock")


@dataclass(frozen=True)
class Result:
    """What came of a case: `moment` and `seconds` are from the start to the fault and from there to the end."""

    case: Case
    outcome: RunOutcome
    moment: float
    seconds: float
    leftovers: tuple[str, ...]

    @property
    def right(self) -> bool:
        """Whether the failure names the task and the kind of the fault, in time, and nothing is left."""
        failure = self.outcome.failure
        named = failure is not None and str(failure.task) == self.case.task and failure.kind in FAULTS[self.case.fault]
        return named and self.seconds < 10 and not self.leftovers


def cases(program: str) -> list[Case]:
    """Each kind of task of a program's cluster with each fault that it can have."""
    tasks = ("chief:0", "worker:1", "ps:1", "evaluator:0")
    found = [Case(program, task, fault) for task in tasks for fault in FAULTS]
    # An exception in a server's main thread cannot come while that thread is in TensorFlow for good.
    return [case for case in found if case.fault != "MemoryError" or not Case(program, case.task, "spin").before_start]


def endless(program: str, folder: Path) -> Path:
    """The fixture's program as it never ends, obeying orders in `folder`."""
    text = (FIXTURE / f"{program}.py").read_text()
    assert "MAX_STEPS = 40\n" in text
    text = text.replace("MAX_STEPS = 40\n", "MAX_STEPS = 10_000_000\n")
    # Else only the last five are kept, and an evaluator that shares two cores with six others comes too late.
    text = text.replace("save_checkpoints_steps=20", "save_checkpoints_secs=3, keep_checkpoint_max=1000")
    script = folder / f"{program}.py"
    script.write_text(f"{PRELUDE}\n_obey_orders({str(folder)!r})\n{text}")
    return script


def launch_of(program: str, folder: Path, ready: float = 90.0) -> Launch:
    """A run of the endless program in `folder`."""
    shape = SHAPE if program == "original" else counterpart(SHAPE)
    run_dir = folder / "run"
    plan = plan_for(program, run_dir, shape, evaluate=True)
    script = endless(program, folder)
    return Launch(program, script, (), shape, run_dir, plan, {}, ready, STALL, total_timeout=180.0, memory_limit=MEMORY)


def run(server: ForkServer, case: Case, folder: Path, chance: random.Random) -> Result:
    """One case on a cluster of its own. `folder` is for its files and must be empty."""
    launch = launch_of(case.program, folder, READY if case.before_start else 90.0)
    if case.before_start:
        _give(case, folder)
    delay, over = chance.uniform(0.0, 2.0), threading.Event()
    striker = threading.Thread(target=_strike, args=(launch, case, folder, delay, over))
    started = time.time()
    if not case.before_start:
        striker.start()
    try:
        outcome = server.run(launch)
    finally:
        over.set()
        if not case.before_start:
            striker.join()
    # Without the file the run was over before the fault could come: there is no moment to measure from.
    struck = float((folder / "when").read_text()) if (folder / "when").exists() else math.nan
    ended = max((task.ended for task in outcome.tasks), default=math.nan)
    return Result(case, outcome, struck - started, ended - struck, leftovers(server, folder))


def _strike(launch: Launch, case: Case, folder: Path, delay: float, over: threading.Event) -> None:
    """Waits until the cluster trains, and a moment more, then does what the case says."""
    pid = folder / f"pid-{case.task}"
    while not (
        pid.exists() and sum(len(packed.places(one)) for one in (launch.run_dir / "record").glob("*/steps")) >= 10
    ):
        if over.wait(0.05):
            return
    if over.wait(delay):
        return
    (folder / "when").write_text(str(time.time()))
    if case.fault.startswith("SIG"):
        os.kill(int(pid.read_text()), getattr(signal, case.fault))
    else:
        _give(case, folder)


def _give(case: Case, folder: Path) -> None:
    (folder / "order.part").write_text(json.dumps({"task": case.task, "fault": case.fault}))
    (folder / "order.part").rename(folder / "order")


def tagged(tag: str, name: str = TAG) -> list[int]:
    """Processes that carry `tag` in their environment, by default that of a fork server. Zombies are not counted."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(name) == tag:
                found.append(process.pid)
    return found


def listening(ports: set[int]) -> set[int]:
    """Those of `ports` that somebody listens on."""
    connections = psutil.net_connections("tcp")
    found = {each.laddr.port for each in connections if each.status == psutil.CONN_LISTEN and each.laddr}
    return found & ports


def ports_of(folder: Path) -> set[int]:
    """The ports of the cluster, which the launcher wrote for its tasks."""
    file = folder / "ports"
    content: dict[str, list[str]] = json.loads(file.read_text()) if file.exists() else {}
    return {int(address.rpartition(":")[2]) for addresses in content.values() for address in addresses}


def leftovers(server: ForkServer, folder: Path) -> tuple[str, ...]:
    """What of a run is still there: processes and listening ports."""
    pid = server.describe()["pid"]
    own = psutil.Process(pid).environ()[TAG]
    left = [f"process {other}" for other in tagged(own) if other != pid]
    return (*left, *(f"port {port}" for port in listening(ports_of(folder))))


# -- the tool itself -----------------------------------------------------------------------------------------


def tool(program: str, folder: Path) -> None:
    """What is killed: a session with a run that never ends."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with open_session() as session:
        server = session.server(program)
        server.run(dataclasses.replace(launch_of(program, folder), run_dir=session.new_folder("run")))


def kill_tool(program: str, name: str, folder: Path, delay: float) -> tuple[float, tuple[str, ...]]:
    """Sends the signal `name` to the tool `delay` seconds after its start; seconds until it and all it started are
    gone, and what is left after 10 s.
    """
    temporary = folder / "tmp"
    temporary.mkdir()
    environment = os.environ | {"TMPDIR": str(temporary), MARK: str(folder)}
    command = [sys.executable, __file__, "--victim", str(folder), "--program", program]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as victim:
        time.sleep(delay)
        victim.send_signal(getattr(signal, name))
        started = time.monotonic()
        while True:
            left = [f"process {pid}" for pid in tagged(str(folder), MARK) if pid != victim.pid]
            left += [f"port {port}" for port in listening(ports_of(folder))]
            left += [f"file {path.name}" for path in temporary.iterdir()]
            left += ["the tool"] if victim.poll() is None else []
            seconds = time.monotonic() - started
            if not left or seconds > 10:
                victim.kill()
                return seconds, tuple(left)
            time.sleep(0.05)


def main() -> int:
    """Runs what was asked for; the number of cases that went wrong, at most 1, is the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--program", choices=("original", "migrated"))
    parser.add_argument("--task")
    parser.add_argument("--fault", choices=tuple(FAULTS))
    parser.add_argument("--no-tool", action="store_true")
    parser.add_argument("--victim", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.victim is not None:
        tool(options.program, options.victim)
        return 0
    chance = random.Random(options.seed)
    programs = [options.program] if options.program else ["original", "migrated"]
    print(f"seed {options.seed}\n")
    print(f"{'program':9} {'task':12} {'fault':12} {'moment':>7}  {'kind':12} {'named':12} {'seconds':>7}  left over")
    wrong = 0
    for program in programs:
        python = environments.original_python() if program == "original" else environments.migrated_python()
        with ForkServer(python, program) as server:
            for case in cases(program):
                if options.task not in (None, case.task) or options.fault not in (None, case.fault):
                    continue
                with tempfile.TemporaryDirectory(prefix="tf-migrate-faults-") as folder:
                    result = run(server, case, Path(folder), chance)
                wrong += not result.right
                print(line(result), flush=True)
        for name in () if options.no_tool else ("SIGKILL", "SIGTERM", "SIGINT"):
            delay = chance.uniform(1.0, 20.0)
            with tempfile.TemporaryDirectory(prefix="tf-migrate-faults-") as folder:
                seconds, left = kill_tool(program, name, Path(folder), delay)
            wrong += bool(left)
            said = ", ".join(left) or "nothing"
            print(
                f"{program:9} {'the tool':12} {name:12} {delay:7.1f}  {'':12} {'':12} {seconds:7.1f}  {said}",
                flush=True,
            )
    print(f"\n{wrong} wrong")
    return min(1, wrong)


def line(result: Result) -> str:
    """A row of the table; a wrong result is shown in full."""
    case, failure = result.case, result.outcome.failure
    kind, named = (failure.kind, str(failure.task)) if failure is not None else ("none", "")
    row = (
        f"{case.program:9} {case.task:12} {case.fault:12} {result.moment:7.1f}  {kind:12} {named:12} "
        f"{result.seconds:7.1f}  {', '.join(result.leftovers) or 'nothing'}"
    )
    if result.right:
        return row
    return "\n".join([f"{row}  WRONG", failure.message if failure else "", *(failure.tail if failure else ())])


if __name__ == "__main__":
    sys.exit(main())
