"""The cache: it gives back what was put, for the same files, options and tool, and is never worse than none."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from migrator.migrate import Options
from migrator.project.cache import Cache, key_of
from migrator.source.reading import Source, decode

PROGRAM = Path(__file__).parents[2] / "fixtures/multi_worker_guide/original.py"


def source(name: str, raw: bytes) -> Source:
    made = decode(Path(name), raw)
    assert isinstance(made, Source)
    return made


def test_what_is_put_is_there_for_others(tmp_path: Path) -> None:
    file = tmp_path / "new/folder/x.sqlite"
    with Cache(file) as cache, Cache(file) as other:
        assert cache.get(b"a") is None
        cache.put(b"a", b"1" * 1000)
        assert other.get(b"a") == b"1" * 1000
        other.put(b"a", b"2")
        assert cache.get(b"a") == b"2"
    with Cache(file) as cache:
        assert (cache.get(b"a"), cache.get(b"b")) == (b"2", None)


def test_what_was_not_used_for_long_goes_first(tmp_path: Path) -> None:
    file = tmp_path / "x.sqlite"
    with Cache(file, most=30_000) as cache:
        for number in range(5):
            cache.put(b"%d" % number, os.urandom(5_000))
    with sqlite3.connect(file) as connection:
        for number in range(5):
            connection.execute("update kept set used = ? where key = ?", (number * 100, b"%d" % number))
    connection.close()
    with Cache(file, most=30_000) as cache:
        assert cache.get(b"0") is not None, "which is a use of it"
        for number in range(5, 7):
            cache.put(b"%d" % number, os.urandom(5_000))
    with Cache(file) as cache:
        assert [number for number in range(7) if cache.get(b"%d" % number) is None] == [1, 2, 3]
    assert file.stat().st_size < 40_000


@pytest.mark.parametrize("content", [b"", b"no database" * 100, b"SQLite format 3\0" + b"x" * 5000])
def test_a_broken_file_is_made_anew(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.sqlite"
    file.write_bytes(content)
    with Cache(file) as cache:
        assert cache.get(b"a") is None
        cache.put(b"a", b"1")
        assert cache.get(b"a") == b"1"


def test_a_changed_value_is_none(tmp_path: Path) -> None:
    file = tmp_path / "x.sqlite"
    with Cache(file) as cache:
        cache.put(b"a", b"x" * 100)
        cache.put(b"b", b"y" * 100)
    with sqlite3.connect(file) as connection:
        ((value,),) = connection.execute("select value from kept where key = ?", (b"b",)).fetchall()
        connection.execute("update kept set value = ? where key = ?", (value, b"a"))
        connection.execute("update kept set value = 'text' where key = ?", (b"b",))
    connection.close()
    with Cache(file) as cache:
        assert (cache.get(b"a"), cache.get(b"b")) == (None, None)


def test_a_place_that_cannot_be_written_is_no_cache(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with Cache(tmp_path / "file" / "x.sqlite") as cache:
        cache.put(b"a", b"1")
        assert cache.get(b"a") is None


def test_several_processes_at_once(tmp_path: Path) -> None:
    file = tmp_path / "x.sqlite"
    script = f"""
import os
from pathlib import Path
from migrator.project.cache import Cache
with Cache(Path({str(file)!r}), most=300_000) as cache:
    for number in range(60):
        cache.put(b"%d" % number, b"%d" % number * 1000)
        assert cache.get(b"%d" % number) in (None, b"%d" % number * 1000)
"""
    root = Path(__file__).parents[2]
    some = [subprocess.Popen([sys.executable, "-c", script], cwd=root) for _ in range(4)]
    assert [one.wait(timeout=120) for one in some] == [0] * 4
    with Cache(file) as cache:
        assert cache.get(b"59") == b"59" * 1000


def test_a_key_is_of_all_that_matters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = source("a.py", b"x = 1\n"), source("b.py", b"x = 2\n")
    keys = [
        key_of([a, b], Options(), "1"),
        key_of([a], Options(), "1"),
        key_of([b, a], Options(), "1"),
        key_of([a, b], Options(style="bridge"), "1"),
        key_of([a, b], Options(), "2"),
        key_of([replace(a, path=Path("c.py")), b], Options(), "1"),
        key_of([source("a.py", b"x = 3\n"), b], Options(), "1"),
    ]
    assert len({*keys}) == len(keys)
    assert key_of([a, b], Options(), "1") == keys[0]
    monkeypatch.chdir(tmp_path)
    assert key_of([a, b], Options(), "1") != keys[0]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_the_second_run_does_not_load_the_engine(tmp_path: Path, jobs: str) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_bytes(PROGRAM.read_bytes())
    script = """
import sys
sys.argv = ["tf-migrate", *sys.argv[1:]]
from migrator.cli import main
try:
    main()
finally:
    print("libcst" in sys.modules, file=sys.stderr)
"""
    environment = {
        **os.environ,
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "TF_MIGRATE_CACHE": "1",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }

    def run(*arguments: str) -> tuple[str, str]:
        command = [sys.executable, "-c", script, "--check", "--format", "json", "--jobs", jobs, *arguments]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 1, done.stderr
        return done.stdout, done.stderr.splitlines()[-1]

    first = run(".")
    assert first[1] == "True"
    assert run(".") == (first[0], "False")
    assert run(".", "--no-cache") == first
    assert run(".", "--keras", "3")[1] == "True"
    (tmp_path / "one/train.py").write_bytes(PROGRAM.read_bytes() + b"# more\n")
    assert run(".")[1] == "True"
    assert run("two")[1] == "False", "one program was not changed"
