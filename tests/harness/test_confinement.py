"""Programs that write, delete and rename elsewhere than in their run, as real processes without TensorFlow."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from migrator.harness.cluster import ClusterShape, ForkServer, Launch, RunOutcome
from migrator.harness.runs import Run as OneRun
from migrator.harness.runs import began_anew

PYTHON = Path(os.environ.get("CONFINED_PYTHON", sys.executable))
Run = Callable[..., RunOutcome]


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer(PYTHON, "original", preload=()) as server:
        yield server


@pytest.fixture(scope="module")
def server_without_views() -> Iterator[ForkServer]:
    with ForkServer(PYTHON, "original", preload=(), views=False) as server:
        yield server


@pytest.fixture
def real(tmp_path: Path) -> Path:
    """A folder of the user's, with what was there before."""
    folder = tmp_path / "real"
    (folder / "model").mkdir(parents=True)
    (folder / "model" / "checkpoint").write_text("trained for a week")
    (folder / "data.txt").write_text("1 2 3")
    return folder


def content(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def runner(server: ForkServer, tmp_path: Path) -> Run:
    def run(body: str, shape: str = "", **more: Any) -> RunOutcome:
        script = tmp_path / "program.py"
        script.write_text("import json, os, shutil, subprocess, sys, time\n" + textwrap.dedent(body))
        given: dict[str, Any] = {"args": (), "total_timeout": 30.0, "confine": True, **more}
        return server.run(
            Launch("original", script, shape=ClusterShape.parse(shape), run_dir=tmp_path / "run", **given)
        )

    return run


@pytest.fixture
def run(server: ForkServer, tmp_path: Path) -> Run:
    return runner(server, tmp_path)


@pytest.fixture
def refused(server_without_views: ForkServer, tmp_path: Path) -> Run:
    return runner(server_without_views, tmp_path)


def needs_views() -> None:
    """Where the kernel has no views the same programs are tested below, for what is refused."""
    if not _VIEWS:
        pytest.skip("this kernel, or container, gives no mount namespaces")


INSIDE = Path(__file__).parents[2] / "migrator" / "harness" / "inside"


def _views_work() -> bool:
    code = "import sys; sys.path.insert(0, sys.argv[1]); import views; sys.exit(bool(views.try_out()))"
    return subprocess.run([sys.executable, "-c", code, str(INSIDE)], check=False).returncode == 0


_VIEWS = _views_work()

CHANGES = {
    "a folder deleted": ("shutil.rmtree({real!r} + '/model')", "/model", "deleted"),
    "a folder deleted and made again": (
        "shutil.rmtree({real!r} + '/model'); os.makedirs({real!r} + '/model')",
        "/model",
        "deleted",
    ),
    "a file deleted": ("os.remove({real!r} + '/data.txt')", "/data.txt", "deleted"),
    "a file replaced": ("open({real!r} + '/data.txt', 'w').write('4')", "/data.txt", "written"),
    "a file added to": ("open({real!r} + '/data.txt', 'ab').write(b'4')", "/data.txt", "written"),
    "a descriptor": ("os.write(os.open({real!r} + '/data.txt', os.O_WRONLY), b'4')", "/data.txt", "written"),
    "a file cut": ("os.truncate({real!r} + '/data.txt', 1)", "/data.txt", "written"),
    "an export": (
        "os.makedirs({real!r} + '/export/1'); open({real!r} + '/export/1/x', 'w').write('x')",
        "/export",
        "made",
    ),
    "a folder renamed": ("os.rename({real!r} + '/model', {real!r} + '/old')", "/model", "deleted"),
    "a relative path": ("os.chdir({real!r}); os.remove('data.txt')", "/data.txt", "deleted"),
    "a path by its parts": (
        "import pathlib; pathlib.Path({real!r}, 'model', '..', 'data.txt').unlink()",
        "/data.txt",
        "deleted",
    ),
}


@pytest.mark.parametrize("kind", sorted(CHANGES))
def test_what_a_program_changes_stays_in_its_run(run: Run, real: Path, tmp_path: Path, kind: str) -> None:
    needs_views()
    statement, path, what = CHANGES[kind]
    before = content(real)
    outcome = run("\n" + statement.format(real=str(real)))
    assert outcome.failure is None
    assert content(real) == before
    found = {write.path: write for write in outcome.writes}
    write = found[str(real) + path]
    assert (write.what, write.where, write.code) == (what, f"{tmp_path}/program.py:3", "write_kept")


def test_the_folder_of_the_run_is_real_where_it_would_be_covered_by_itself(tmp_path: Path) -> None:
    """As where something is mounted beside it: what programs recorded stayed in the layer then, and was gone."""
    needs_views()
    code = """
import os, sys
sys.path.insert(0, sys.argv[1])
import views
views._to_cover = lambda: sys.argv[2:]
view = views.View(sys.argv[2:3])
view.make()
if os.fork() == 0:
    view.enter()
    for folder in sys.argv[2:]:
        open(os.path.join(folder, "written"), "w").close()
    os._exit(0)
os.wait()
view.close()
"""
    folders = [tmp_path / "run", tmp_path / "beside"]
    for folder in folders:
        folder.mkdir()
    subprocess.run([PYTHON, "-c", code, str(INSIDE), *map(str, folders)], check=True)
    assert [(folder / "written").exists() for folder in folders] == [True, False]


@pytest.mark.parametrize("kind", sorted(CHANGES))
def test_where_there_are_no_views_it_is_refused(refused: Run, real: Path, tmp_path: Path, kind: str) -> None:
    before = content(real)
    outcome = refused("\n" + CHANGES[kind][0].format(real=str(real)))
    assert outcome.failure is not None and outcome.failure.kind == "exit"
    assert "PermissionError" in outcome.failure.message and "--allow-writes" in outcome.failure.message
    assert content(real) == before
    (write,) = outcome.writes
    assert (write.code, write.where) == ("write_refused", f"{tmp_path}/program.py:3")
    assert write.path.startswith(str(real))


def test_a_program_sees_what_was_there_and_what_it_did(run: Run, real: Path) -> None:
    needs_views()
    outcome = run(
        f"""
        os.chdir({str(real)!r})
        assert open("model/checkpoint").read() == "trained for a week"
        assert os.listdir("model") == ["checkpoint"]
        open("model/checkpoint", "a").write(" more")
        assert open("model/checkpoint").read() == "trained for a week more"
        os.rename("model", "older"); os.mkdir("model")
        assert sorted(os.listdir(".")) == ["data.txt", "model", "older"] and os.listdir("older") == ["checkpoint"]
        os.replace("data.txt", "model/data.txt")
        assert os.listdir("model") == ["data.txt"]
        """
    )
    assert outcome.failure is None, outcome.failure
    assert content(real) == {"model/checkpoint": "trained for a week", "data.txt": "1 2 3"}


def test_tasks_of_one_run_share_and_two_runs_do_not(run: Run, real: Path) -> None:
    needs_views()
    program = f"""
        task = json.loads(os.environ["TF_CONFIG"])["task"]["type"]
        path = {str(real)!r} + "/model/shared"
        if task == "chief":
            assert not os.path.exists(path)
            open(path + ".part", "w").write("from the chief")
            os.rename(path + ".part", path)
        end = time.time() + 20
        while not os.path.exists(path):
            assert time.time() < end
            time.sleep(0.01)
        print(open(path).read())
        """
    for _ in range(2):
        outcome = run(program, "chief=1,worker=1")
        assert outcome.failure is None
        assert [task.tail for task in outcome.tasks] == [("from the chief",)] * 2
    assert not (real / "model" / "shared").exists()


def test_other_processes_and_other_languages_are_confined_too(run: Run, real: Path) -> None:
    needs_views()
    outcome = run(
        f"""
        subprocess.run(["rm", "-r", {str(real / "model")!r}], check=True)
        os.system("echo 4 > {real / "data.txt"}")
        """
    )
    assert outcome.failure is None
    assert content(real) == {"model/checkpoint": "trained for a week", "data.txt": "1 2 3"}
    assert {(write.path, write.what) for write in outcome.writes} == {
        (str(real / "model"), "deleted"),
        (str(real / "data.txt"), "written"),
    }


def test_other_processes_are_refused_by_the_kernel(refused: Run, real: Path) -> None:
    if not _has_landlock():
        pytest.skip("this kernel has no Landlock")
    outcome = refused(
        f"""
        assert subprocess.run(["rm", "-r", {str(real / "model")!r}], check=False).returncode != 0
        assert os.system("echo 4 > {real / "data.txt"}") != 0
        """
    )
    assert outcome.failure is None
    assert content(real) == {"model/checkpoint": "trained for a week", "data.txt": "1 2 3"}


def _has_landlock() -> bool:
    import ctypes

    if not sys.platform.startswith("linux"):
        return False
    version = ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    return bool(version >= 2)


@pytest.mark.parametrize("how", ["run", "refused"])
def test_the_run_itself_and_temporary_files_are_written(
    request: pytest.FixtureRequest, tmp_path: Path, how: str
) -> None:
    run = request.getfixturevalue(how)
    outcome = run(
        f"""
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            open(os.path.join(folder, "x"), "w").write("x")
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"x")
        os.makedirs({str(tmp_path / "run" / "model")!r})
        open({str(tmp_path / "run" / "model" / "weights")!r}, "w").write("x")
        open(os.devnull, "w").write("x")
        os.makedirs({str(tmp_path)!r}, exist_ok=True)
        try:
            os.remove({str(tmp_path / "nothing")!r})
        except FileNotFoundError:
            print("as always")
        """
    )
    assert outcome.failure is None, outcome.failure
    assert outcome.tasks[0].tail == ("as always",)
    assert outcome.writes == ()
    assert (tmp_path / "run" / "model" / "weights").read_text() == "x"


def test_an_old_checkpoint_that_nobody_went_on_from_is_named(run: Run, real: Path, tmp_path: Path) -> None:
    # The recorder gives the checkpoints of a program a folder of the run: this program does what that comes to.
    inside = tmp_path / "run" / "model" / str(real).lstrip("/") / "model"
    program = f"os.makedirs({str(inside)!r}, exist_ok=True); open({str(inside)!r} + '/checkpoint', 'w')\n"

    def named(outcome: RunOutcome) -> tuple[Path, ...]:
        return began_anew([OneRun("original", "original", outcome, None)])

    assert named(run(program)) == (real / "model",)
    if _VIEWS:
        assert named(run(f"shutil.rmtree({str(real / 'model')!r})\n" + program)) == (), "deleted by the program"
    (real / "model" / "checkpoint").unlink()
    assert named(run(program)) == ()


def test_without_confinement_all_is_as_it_was(run: Run, real: Path) -> None:
    outcome = run(f"shutil.rmtree({str(real / 'model')!r})", confine=False)
    assert outcome.failure is None and outcome.writes == ()
    assert not (real / "model").exists()


def test_nothing_is_left_behind(real: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "cache" / "tf-migrate").mkdir(parents=True)
    with ForkServer(PYTHON, "original", preload=()) as server:
        outcome = runner(server, tmp_path)(f"os.makedirs({str(real)!r} + '/x/y'); os.chmod({str(real)!r} + '/x', 0)")
        assert outcome.failure is None
    assert list((tmp_path / "cache" / "tf-migrate").iterdir()) == []
    assert sorted(os.listdir(tmp_path / "run")) == ["tasks"]


def test_the_user_of_a_program_stays_the_same(run: Run) -> None:
    outcome = run("print(os.getuid(), os.geteuid(), os.getgid(), os.access('/proc/self/fd', os.R_OK))")
    assert outcome.tasks[0].tail == (f"{os.getuid()} {os.geteuid()} {os.getgid()} True",)
