"""Runs of programs that go well or wrong in every way, as real processes without TensorFlow."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from migrator.harness.cluster import (
    ClusterShape,
    ForkServer,
    ForkServerError,
    Launch,
    RunOutcome,
    Task,
    TaskOutcome,
)

PYTHON = Path(sys.executable)
FULL = "chief=1,worker=2,ps=1,evaluator=1"
PROLOGUE = """
import json, os, signal, subprocess, sys, threading, time
task = json.loads(os.environ.get("TF_CONFIG", '{"task": {"type": "local", "index": 0}}'))["task"]
me = f"{task['type']}:{task['index']}"
"""
STUBBORN = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"

Run = Callable[..., RunOutcome]


@pytest.fixture(scope="module")
def original() -> Iterator[ForkServer]:
    with ForkServer(PYTHON, "original", preload=()) as server:
        yield server


@pytest.fixture(scope="module")
def migrated() -> Iterator[ForkServer]:
    with ForkServer(PYTHON, "migrated", preload=()) as server:
        yield server


@pytest.fixture
def run(original: ForkServer, migrated: ForkServer, tmp_path: Path) -> Run:
    servers = {"original": original, "migrated": migrated}

    def run(body: str, shape: str = "", program: str = "original", on_line: Any = None, **more: Any) -> RunOutcome:
        script = tmp_path / "program.py"
        script.write_text(PROLOGUE + textwrap.dedent(body))
        given: dict[str, Any] = {"args": (), "total_timeout": 30.0, **more}
        cluster = ClusterShape.parse(shape, coordinated=program == "migrated")
        launch = Launch(program, script, shape=cluster, run_dir=tmp_path / "run", **given)
        outcome = servers[program].run(launch, on_line)
        for task in outcome.tasks:
            assert not psutil.pid_exists(task.pid)
        return outcome

    return run


def outcome_of(outcome: RunOutcome, name: str) -> TaskOutcome:
    return next(task for task in outcome.tasks if str(task.task) == name)


def gone(pids: list[int], within: float) -> bool:
    def runs(pid: int) -> bool:
        try:
            return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:  # at any time, between two looks as well
            return False

    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        if not any(runs(pid) for pid in pids):
            return True
        time.sleep(0.02)
    return False


def eventually(path: Path, lines: int) -> list[str]:
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        if path.exists() and len(path.read_text().split()) >= lines:
            return path.read_text().split()
        time.sleep(0.02)
    raise AssertionError(f"{path} did not get {lines} lines")


# ---- the child is what python itself would have made of the script


@pytest.mark.parametrize(
    ("gpu", "seen"), [(False, "-1 None None"), (True, "1 true 1")], ids=["without a GPU", "with the second one"]
)
def test_gpus_are_given_where_they_are_asked_for(
    gpu: bool, seen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    script = tmp_path / "program.py"
    names = ("CUDA_VISIBLE_DEVICES", "TF_FORCE_GPU_ALLOW_GROWTH", "TF_DETERMINISTIC_OPS")
    script.write_text(f"import os\nprint(*map(os.environ.get, {names}))\n")
    with ForkServer(Path(sys.executable), "original", (), gpu=gpu) as server:
        outcome = server.run(Launch("original", script, (), ClusterShape(), tmp_path / "run"))
    assert outcome.failure is None and outcome.tasks[0].stdout.read_text().strip() == seen


def test_a_script_runs_as_python_would_run_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "sibling.py").write_text("value = 42\n")
    outcome = run(
        """
        import atexit, sibling
        atexit.register(print, "at exit")
        threading.Thread(target=lambda: (time.sleep(0.2), print("from a thread"))).start()
        leads = os.getpgid(0) == os.getpid()
        print(json.dumps([__name__, __file__, sys.argv, sys.path[0], os.getcwd(), sibling.value, leads]))
        print(*map(os.environ.get, ("EXTRA", "TF_CONFIG", "CUDA_VISIBLE_DEVICES")), sys.stdin.read() == "")
        print([name for name in os.environ if name.lower() in ("http_proxy", "https_proxy", "all_proxy")])
        print("to stderr: \\u00fc", file=sys.stderr)
        """,
        args=("--flag", "a b"),
        environment={"EXTRA": "yes"},
    )
    assert outcome.failure is None
    (task,) = outcome.tasks
    assert (str(task.task), task.exit_code, task.signal, task.ended_by_launcher) == (
        "local:0",
        0,
        None,
        False,
    )
    first, second, proxies, *rest = task.stdout.read_text().splitlines()
    script = str(tmp_path / "program.py")
    assert json.loads(first) == [
        "__main__", script, [script, "--flag", "a b"], str(tmp_path), os.getcwd(), 42, True
    ]  # fmt: skip
    assert second == "yes None -1 True"
    assert proxies == "[]"
    assert rest == ["from a thread", "at exit"]
    assert task.stderr.read_text() == "to stderr: \u00fc\n"
    assert task.max_rss_bytes > 1 << 20
    assert task.started <= task.ended <= time.time()


@pytest.mark.parametrize("name", ["child", "server", "shim", "recorder"])
def test_modules_of_the_user_win_over_ours(run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.py").write_text("whose = 'the user'\n")
    outcome = run(f"import {name}; print({name}.whose)")
    assert outcome.tasks[0].tail == ("the user",)


def test_two_tasks_do_not_share_their_random_numbers(run: Run) -> None:
    outcome = run("import random; print(random.random())", "chief=1,worker=1")
    first, second = (task.tail for task in outcome.tasks)
    assert first != second


@pytest.mark.parametrize(
    ("statement", "code", "tail"),
    [
        ("sys.exit()", 0, ()),
        ("sys.exit(7)", 7, ()),
        ("sys.exit('no data')", 1, ("no data",)),
        ("os._exit(9)", 9, ()),
    ],
)
def test_exit_codes(run: Run, statement: str, code: int, tail: tuple[str, ...]) -> None:
    outcome = run(statement)
    assert outcome.tasks[0].exit_code == code
    assert outcome.tasks[0].tail == tail
    assert (outcome.failure is None) == (code == 0)


def test_an_exception_is_reported_without_our_frames(run: Run, tmp_path: Path) -> None:
    outcome = run("def broken():\n    raise ValueError('bad value')\nbroken()")
    assert outcome.failure is not None
    assert outcome.failure.kind == "exit"
    assert outcome.failure.message == "local:0 ended with exit code 1: ValueError: bad value"
    assert outcome.failure.tail[0] == "Traceback (most recent call last):"
    assert outcome.failure.tail[-1] == "ValueError: bad value"
    assert not any(hidden in line for line in outcome.failure.tail for hidden in ("runpy", "child.py", "server.py"))
    error = json.loads((tmp_path / "run/tasks/local-0/error.json").read_text())
    assert (error["task"], error["type"], error["message"]) == ("local:0", "ValueError", "bad value")


def test_a_syntax_error_and_a_missing_script_are_failures(run: Run, original: ForkServer, tmp_path: Path) -> None:
    outcome = run("def broken(:")
    assert outcome.failure is not None and "SyntaxError" in outcome.failure.message
    outcome = original.run(Launch("original", tmp_path / "nowhere.py", (), ClusterShape(), tmp_path / "run"))
    assert outcome.failure is not None and "FileNotFoundError" in outcome.failure.message


def test_a_recorder_that_fails_is_a_failure_of_the_task(run: Run, tmp_path: Path) -> None:
    outcome = run("print('ran')", plan={"record": str(tmp_path / "record"), "steps": "nonsense"})
    assert outcome.failure is not None
    assert "ran" not in outcome.failure.tail


# ---- clusters that go well


def test_each_task_gets_its_own_tf_config(run: Run) -> None:
    outcome = run("print(os.environ['TF_CONFIG'])\nif me == 'ps:0': time.sleep(60)", FULL)
    assert outcome.failure is None
    configs = {str(task.task): json.loads(task.stdout.read_text()) for task in outcome.tasks}
    assert list(configs) == ["ps:0", "worker:0", "worker:1", "chief:0", "evaluator:0"]
    assert [f"{c['task']['type']}:{c['task']['index']}" for c in configs.values()] == list(configs)
    clusters = [config["cluster"] for config in configs.values()]
    assert all(cluster == clusters[0] for cluster in clusters)
    everybody = [address for members in clusters[0].values() for address in members]
    assert len(set(everybody)) == 4 and all(address.startswith("127.0.0.1:") for address in everybody)
    assert [task.started for task in outcome.tasks] == sorted(task.started for task in outcome.tasks)


@pytest.mark.parametrize(
    ("program", "servers"), [("original", {"ps:0"}), ("migrated", {"ps:0", "worker:0", "worker:1"})]
)
def test_servers_are_ended_when_everyone_else_is_done(run: Run, program: str, servers: set[str]) -> None:
    outcome = run(
        f"""
        if me in {servers!r}: time.sleep(60)
        time.sleep(0.6 if me == "evaluator:0" else 0.1)
        """,
        FULL,
        program,
    )
    assert outcome.failure is None
    assert {str(task.task) for task in outcome.tasks if task.ended_by_launcher} == servers
    assert {task.signal for task in outcome.tasks if task.ended_by_launcher} == {"SIGTERM"}
    assert outcome_of(outcome, "evaluator:0").exit_code == 0
    assert 0.6 < outcome.seconds < 4


def test_without_parameter_servers_all_tasks_leave_by_themselves(run: Run) -> None:
    outcome = run("time.sleep(0.5 if me == 'worker:1' else 0)", "worker=2", "migrated")
    assert outcome.failure is None
    assert not any(task.ended_by_launcher for task in outcome.tasks)
    assert outcome.seconds > 0.5


def test_lines_reach_the_tool_while_the_task_runs(run: Run) -> None:
    lines: list[tuple[str, str, float]] = []
    run(
        """
        print("first"); time.sleep(0.8); print("a\\rb\\rc"); print("last", end="")
        """,
        on_line=lambda task, line: lines.append((str(task), line, time.monotonic())),
    )
    assert [line[:2] for line in lines] == [("local:0", "first"), ("local:0", "c"), ("local:0", "last")]
    assert lines[1][2] - lines[0][2] > 0.4


def test_a_run_does_not_see_the_logs_of_the_one_before(run: Run) -> None:
    run("raise ValueError('before')")
    outcome = run("print('now')")
    assert outcome.failure is None
    assert outcome.tasks[0].tail == ("now",)


# ---- clusters that go wrong


@pytest.mark.parametrize(
    ("victim", "program", "stubborn"),
    [
        ("chief:0", "original", ""),
        ("worker:1", "original", STUBBORN),
        ("ps:0", "original", ""),
        ("evaluator:0", "original", ""),
        ("chief:0", "migrated", STUBBORN),
        ("worker:1", "migrated", ""),
        ("ps:0", "migrated", ""),
    ],
    ids=lambda value: "stubborn" if value == STUBBORN else value,
)
def test_a_failure_of_any_role_ends_all_within_5_seconds(
    run: Run, victim: str, program: str, stubborn: str, tmp_path: Path
) -> None:
    outcome = run(
        f"""
        {stubborn}
        if me == {victim!r}:
            time.sleep(0.3)
            for number in range(30): print("line", number)
            open({str(tmp_path / "when")!r}, "w").write(str(time.time()))
            raise RuntimeError("this one")
        time.sleep(60)
        """,
        FULL,
        program,
    )
    assert outcome.failure is not None
    assert str(outcome.failure.task) == victim
    assert outcome.failure.kind == "exit"
    assert outcome.failure.message == f"{victim} ended with exit code 1: RuntimeError: this one"
    assert len(outcome.failure.tail) == 20
    assert "line 29" in outcome.failure.tail
    assert outcome.failure.tail[-1] == "RuntimeError: this one"
    assert max(task.ended for task in outcome.tasks) - float((tmp_path / "when").read_text()) < 5
    assert {str(task.task) for task in outcome.tasks if not task.ended_by_launcher} == {victim}
    assert {task.signal for task in outcome.tasks if task.ended_by_launcher} == {"SIGKILL" if stubborn else "SIGTERM"}


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV", "SIGABRT"])
def test_a_signal_is_named(run: Run, name: str) -> None:
    outcome = run(
        f"if me == 'worker:0': print('here'); os.kill(os.getpid(), signal.{name})\ntime.sleep(60)",
        FULL,
    )
    assert outcome.failure is not None
    assert (str(outcome.failure.task), outcome.failure.kind) == ("worker:0", "signal")
    assert outcome.failure.message == f"worker:0 was ended by {name}"
    assert outcome.failure.tail[0] == "here"
    assert outcome_of(outcome, "worker:0").signal == name


@pytest.mark.parametrize(("program", "victim"), [("original", "ps:0"), ("migrated", "ps:0"), ("migrated", "worker:1")])
def test_a_server_that_leaves_early_is_a_failure_even_with_exit_code_0(run: Run, program: str, victim: str) -> None:
    outcome = run(f"if me != {victim!r}: time.sleep(60)", FULL, program)
    assert outcome.failure is not None
    assert (str(outcome.failure.task), outcome.failure.kind) == (victim, "exit")
    assert "still needed" in outcome.failure.message


def test_the_root_cause_is_the_first_error_not_the_first_exit(run: Run) -> None:
    # worker:1 breaks first but needs a while to leave; the chief notices and is gone before it.
    outcome = run(
        """
        if me == "worker:1":
            import atexit
            atexit.register(time.sleep, 0.6)
            time.sleep(0.2)
            raise ValueError("the cause")
        if me == "chief:0":
            time.sleep(0.4)
            raise ConnectionError("the consequence")
        time.sleep(60)
        """,
        FULL,
    )
    assert outcome.failure is not None
    assert str(outcome.failure.task) == "worker:1"
    assert "the cause" in outcome.failure.message


def test_a_task_that_failed_but_cannot_leave_ends_the_run(run: Run) -> None:
    outcome = run(
        """
        if me == "worker:0":
            threading.Thread(target=time.sleep, args=(60,)).start()
            raise ValueError("stuck")
        time.sleep(60)
        """,
        FULL,
    )
    assert outcome.failure is not None
    assert (str(outcome.failure.task), outcome.failure.kind) == ("worker:0", "exit")
    assert outcome.failure.message == "worker:0 failed but did not leave by itself: ValueError: stuck"
    assert outcome.seconds < 5


def test_a_stall_is_noticed_and_its_stacks_are_shown(run: Run) -> None:
    outcome = run(
        """
        def waits_for_nothing(): time.sleep(60)
        print("started")
        if me == "worker:1": waits_for_nothing()
        for _ in range(12):
            print("step"); time.sleep(0.1)
        time.sleep(60)
        """,
        FULL,
        stall_timeout=1.0,
    )
    assert outcome.failure is not None
    assert (str(outcome.failure.task), outcome.failure.kind) == ("worker:1", "stall")
    assert "no progress for 1 s" in outcome.failure.message
    assert any("waits_for_nothing" in line for line in outcome.failure.tail)
    assert "waits_for_nothing" in outcome.failure.message
    for task in outcome.tasks:
        assert "most recent call first" in task.stderr.with_name("stacks.log").read_text()
        assert task.stderr.read_text() == ""
    assert 2.0 < outcome.seconds < 7


def test_progress_in_the_record_folder_alone_is_no_stall(run: Run, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    outcome = run(
        f"""
        os.makedirs({str(tmp_path / "run/record")!r})
        for step in range(9):
            open({str(tmp_path / "run/record/steps")!r}, "a").write("x"); time.sleep(0.15)
        """,
        stall_timeout=0.7,
    )
    assert outcome.failure is None
    assert outcome.seconds > 1.3


def test_no_sign_of_life_has_its_own_limit(run: Run) -> None:
    outcome = run("time.sleep(1.5); print('slow start')", stall_timeout=0.5, ready_timeout=10.0)
    assert outcome.failure is None
    outcome = run("time.sleep(60)", stall_timeout=30.0, ready_timeout=0.6)
    assert outcome.failure is not None
    assert (outcome.failure.kind, "no sign of life" in outcome.failure.message) == ("not_started", True)


def test_a_quiet_evaluator_is_waited_for_until_the_total_timeout(run: Run) -> None:
    body = "print(me)\nif me == 'ps:0': time.sleep(60)\nif me == 'evaluator:0': time.sleep(1.4)"
    assert run(body, FULL, stall_timeout=0.5).failure is None
    outcome = run(body, FULL, stall_timeout=0.5, total_timeout=0.8)
    assert outcome.failure is not None
    assert (str(outcome.failure.task), outcome.failure.kind) == ("evaluator:0", "timeout")


def test_ports_that_were_taken_are_replaced(run: Run, tmp_path: Path) -> None:
    body = f"""
        log = {str(tmp_path)!r} + "/tries-" + me
        with open(log, "a") as file: print(os.environ["TF_CONFIG"], file=file)
        tries = len(open(log).readlines())
        os.makedirs({str(tmp_path / "run" / "model")!r}, exist_ok=True)
        print(sorted(os.listdir({str(tmp_path / "run" / "model")!r})))
        if me == "worker:0" and tries < LIMIT:
            open({str(tmp_path / "run" / "model" / "left")!r}, "w").close()
            raise RuntimeError("Could not start gRPC server")
        time.sleep(0.5)
        """
    outcome = run(body.replace("LIMIT", "3"), "worker=2", "migrated")
    assert outcome.failure is None
    tries = [json.loads(line)["cluster"]["worker"] for line in (tmp_path / "tries-worker:0").read_text().splitlines()]
    assert len(tries) == 3
    assert len({address for attempt in tries for address in attempt}) == 6
    assert outcome_of(outcome, "worker:0").tail == ("[]",)
    outcome = run(body.replace("LIMIT", "99"), "worker=2", "migrated")
    assert outcome.failure is not None
    assert (str(outcome.failure.task), outcome.failure.kind) == ("worker:0", "ports")
    assert len((tmp_path / "tries-worker:0").read_text().splitlines()) == 6


# ---- nothing is left behind


STRAYS = """
code = "import time; time.sleep(120)"
strays = [
    subprocess.Popen([sys.executable, "-c", code]),
    subprocess.Popen([sys.executable, "-c", code], start_new_session=True),
    subprocess.Popen([sys.executable, "-c", code], start_new_session=True, env={}),
]
pid = os.fork()
if pid == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.setsid()
    time.sleep(120)
with open(PIDS, "a") as file:
    file.write("".join(f"{one}\\n" for one in [os.getpid(), pid, *(stray.pid for stray in strays)]))
"""


@pytest.mark.parametrize("end", ["", "raise ValueError('end')", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_descendants_of_tasks_end_with_the_run(run: Run, tmp_path: Path, end: str) -> None:
    body = f"""
PIDS = {str(tmp_path / "pids")!r}
{STRAYS}
if me != "ps:0":
    time.sleep(0.3)
    {end or "sys.exit(0)"}
time.sleep(60)
"""
    outcome = run(body, "chief=1,ps=1")
    assert (outcome.failure is None) == (end == "")
    pids = [int(pid) for pid in eventually(tmp_path / "pids", 10)]
    assert not any(psutil.pid_exists(pid) for pid in pids)


# What a shell starts in the background (a CI job, say) ignores SIGINT from birth; Ctrl-C is tried as in the foreground.
HEAR_CTRL_C = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
"""

TOOL = f"""{HEAR_CTRL_C}
import sys
from pathlib import Path
from migrator.harness.cluster import ClusterShape, ForkServer, Launch

script, run_dir = map(Path, sys.argv[1:])
with ForkServer(Path(sys.executable), "original", preload=(), folder=run_dir.parent) as server:
    print(server.describe()["pid"], flush=True)
    shape = ClusterShape.parse("chief=1,worker=2,ps=1,evaluator=1")
    server.run(Launch("original", script, (), shape, run_dir))
"""


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_nothing_survives_the_tool(tmp_path: Path, name: str) -> None:
    script = tmp_path / "program.py"
    script.write_text(f"{PROLOGUE}{STUBBORN}PIDS = {str(tmp_path / 'pids')!r}\n{STRAYS}\ntime.sleep(60)\n")
    tool = subprocess.Popen(
        [sys.executable, "-c", TOOL, str(script), str(tmp_path / "runs" / "run")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert tool.stdout is not None
        server = int(tool.stdout.readline())
        pids = [server, *(int(pid) for pid in eventually(tmp_path / "pids", 25))]
        assert all(psutil.pid_exists(pid) for pid in pids)
        tool.send_signal(getattr(signal, name))
        assert gone(pids, within=4.0)
        _, errors = tool.communicate(timeout=10)
    finally:
        tool.kill()
        tool.wait()
    assert ("KeyboardInterrupt" in errors.decode()) == (name == "SIGINT")
    # A tool that can still tidy up does so itself.
    assert (tmp_path / "runs").exists() == (name == "SIGINT")


SLOW_TOOL = f"""{HEAR_CTRL_C}
import sys
from pathlib import Path
from migrator.harness.cluster import ForkServer

folder = Path(sys.argv[1])
with ForkServer(Path(sys.executable), "original", preload=("slow_to_import",), folder=folder) as server:
    server.describe()
"""


@pytest.mark.parametrize("name", ["SIGKILL", "SIGINT"])
def test_a_server_that_still_imports_ends_with_the_tool(tmp_path: Path, name: str) -> None:
    note = tmp_path / "pid"
    (tmp_path / "slow_to_import.py").write_text(
        f"import os, time\nopen({str(note)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)\n"
    )
    runs = tmp_path / "runs"
    runs.mkdir()
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    tool = subprocess.Popen(
        [sys.executable, "-c", SLOW_TOOL, str(runs)],
        env={**os.environ, "PYTHONPATH": path},
        stderr=subprocess.DEVNULL,
    )
    try:
        pids = [int(pid) for pid in eventually(note, 1)]
        tool.send_signal(getattr(signal, name))
        assert gone(pids, within=2.0)
        tool.wait(5)
        assert runs.exists() == (name == "SIGINT")
    finally:
        tool.kill()
        tool.wait()


def test_an_exception_in_the_tool_ends_the_run(original: ForkServer, run: Run, tmp_path: Path) -> None:
    def refuse(task: Task, line: str) -> None:
        raise LookupError(line)

    with pytest.raises(LookupError, match=r"[0-9]+"):
        run(STUBBORN + "print(os.getpid())\ntime.sleep(60)", FULL, on_line=refuse)
    server = psutil.Process(original.describe()["pid"])
    assert server.children(recursive=True) == []
    assert run("print('still works')").failure is None


def test_a_server_that_is_killed_takes_its_tasks_along(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        f"{PROLOGUE}PIDS = {str(tmp_path / 'pids')!r}\n{STRAYS.replace(', env={}', '')}\ntime.sleep(60)\n"
    )
    with ForkServer(PYTHON, "original", preload=()) as server:
        launch = Launch("original", script, (), ClusterShape.parse("chief=1,worker=1"), tmp_path / "run")
        pid = server.describe()["pid"]

        def kill() -> None:
            eventually(tmp_path / "pids", 10)
            os.kill(pid, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.raises(ForkServerError, match="signal 9"):
            server.run(launch)
        killer.join()
        assert gone([int(pid) for pid in eventually(tmp_path / "pids", 10)], within=2.0)


def test_a_server_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    server = ForkServer(PYTHON, "original", preload=())
    starter = threading.Thread(target=server.__enter__)
    starter.start()
    starter.join()
    time.sleep(0.3)
    (tmp_path / "program.py").write_text("print('alive')")
    try:
        outcome = server.run(Launch("original", tmp_path / "program.py", (), ClusterShape(), tmp_path / "run"))
    finally:
        server.close()
    assert outcome.tasks[0].tail == ("alive",)


def test_closing_ends_the_server_and_can_be_repeated() -> None:
    with ForkServer(PYTHON, "original", preload=("decimal",)) as server:
        pid = server.describe()["pid"]
        assert psutil.pid_exists(pid)
    assert not psutil.pid_exists(pid)
    server.close()


def test_a_server_that_waits_starts_when_it_is_needed(tmp_path: Path) -> None:
    own = psutil.Process()
    before = set(own.children())
    with ForkServer(PYTHON, "original", preload=(), waits=True) as server:
        assert set(own.children()) == before
    with ForkServer(PYTHON, "original", preload=(), waits=True) as server:
        server.begin()
        server.begin()
        assert len(set(own.children()) - before) == 1
    script = tmp_path / "x.py"
    script.write_text("print('alive')\n")
    with ForkServer(PYTHON, "original", preload=(), waits=True) as server:
        outcome = server.run(Launch("original", script, (), ClusterShape(), tmp_path / "run"))
    assert outcome.tasks[0].tail == ("alive",)
    server.close()
    server.begin()  # nothing comes of it any more
    assert set(own.children()) == before
    with (
        pytest.raises(ForkServerError, match="cannot be started"),
        ForkServer(tmp_path / "python", "original", waits=True) as server,
    ):
        server.describe()


# ---- servers that cannot start


def test_an_interpreter_without_the_modules_says_so() -> None:
    with (
        ForkServer(PYTHON, "original", preload=("no_such_module",)) as server,
        pytest.raises(ForkServerError, match="no_such_module"),
    ):
        server.describe()


def test_an_interpreter_that_does_not_exist_says_so(tmp_path: Path) -> None:
    with pytest.raises(ForkServerError, match="cannot be started"):
        ForkServer(tmp_path / "python", "original").__enter__()


def test_an_interpreter_that_crashes_on_start_says_so(tmp_path: Path) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho it is broken >&2\nexit 3\n")
    broken.chmod(0o755)
    with (
        ForkServer(broken, "original") as server,
        pytest.raises(ForkServerError, match=r"exit code 3.*\n.*it is broken"),
    ):
        server.describe()


def test_programs_are_not_mixed_up(original: ForkServer, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="runs original"):
        original.run(Launch("migrated", tmp_path / "x.py", (), ClusterShape(), tmp_path))
    with pytest.raises(ValueError, match="no program"):
        ForkServer(PYTHON, "other")


def test_a_closed_server_says_so(tmp_path: Path) -> None:
    with ForkServer(PYTHON, "original", preload=()) as server:
        server.describe()
    with pytest.raises(ForkServerError, match=r"is not running"):
        server.run(Launch("original", tmp_path / "x.py", (), ClusterShape(), tmp_path))


def test_runs_that_two_threads_ask_for_are_made_one_after_the_other(original: ForkServer, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("import time\nprint(time.monotonic())\ntime.sleep(0.5)\nprint(time.monotonic())\n")
    times: dict[int, list[float]] = {}

    def once(number: int) -> None:
        lines: list[str] = []
        launch = Launch("original", script, (), ClusterShape.parse(""), tmp_path / str(number), total_timeout=60.0)
        outcome = original.run(launch, lambda task, line: lines.append(line))
        assert outcome.failure is None
        times[number] = [float(word) for line in lines for word in line.split() if word.replace(".", "").isdigit()]

    threads = [threading.Thread(target=once, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first, second = sorted(times.values())
    assert len(first) == len(second) == 2 and first[1] <= second[0]
