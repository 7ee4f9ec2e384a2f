"""Which tests go together when several processes share the work (`pytest -n logical`), what waits for a release or
since nothing has changed for it, the interpreters that the tests of a process share, and how properties are tried: with
the same examples in every run, however slow the machine is.
"""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from migrator.harness.environments import EnvironmentNotReady, first_made
from tests import due, release

if TYPE_CHECKING:
    from migrator.harness.cluster import ForkServer
    from migrator.harness.runs import Session

# What a test sees is made for it, by the tree that is tested; tests of the cache turn it on.
os.environ["TF_MIGRATE_CACHE"] = "0"
# Tests start the tool some hundred times: each start would compile its modules again, 1.2 s of a processor.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# TensorFlow 1.15.5, where `tf-migrate environments` has made it.
with suppress(ImportError, EnvironmentNotReady):
    if (_FIRST := first_made()) is not None:
        os.environ["TF_MIGRATE_TENSORFLOW1_PYTHON"] = str(_FIRST)

hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True)
hypothesis.settings.load_profile("repeatable")

#: A verification of a fixture takes as long as a file and shares nothing: each goes where there is room, last.
_ALONE = "::test_fixture_is_equivalent["

#: What a file says all of whose tests run TensorFlow; the names of those that were not read, none of whose tests wait
#: for a release unseen: the tests that run TensorFlow are collected, too.
_ONLY_TENSORFLOW = re.compile(r"^pytestmark = pytest\.mark\.tensorflow$", re.MULTILINE)
_PASSED_OVER = pytest.StashKey[set[str]]()
_MAY_WAIT = pytest.StashKey[bool]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks what waits for a release, see tests/release.py; a whole collection says what is marked no longer there."""
    known = {(one.file, name) for one in release.WAITING for name in one.tests}
    # Where all is asked for, nothing waits; nor where a test is asked for by its name.
    something = "not release" in _marks(config) and not any("::" in one for one in config.args)
    config.stash[_MAY_WAIT] = something and not config.getoption("all_due")
    for item in items:
        known -= {(item.path.stem, item.name), (item.path.stem, f"{item.name.partition('[')[0]}[*]")}
        found = release.find(item.path.stem, item.name)
        if found is not None and found.waits(item.name):
            item.add_marker(pytest.mark.release(found.reason))
        elif config.stash[_MAY_WAIT] and item.get_closest_marker("tensorflow") and due.waits(item.path, _name(item)):
            item.add_marker(pytest.mark.release("all that it sees is as it was when it was green"))
    whole = config.args_source is not pytest.Config.ArgsSource.ARGS and not config.getoption("lf", False)
    passed_over = config.stash.get(_PASSED_OVER, set())
    lost = [f"tests/release.py: there is no {file}::{name}" for file, name in sorted(known) if file not in passed_over]
    if lost and whole:
        raise pytest.UsageError("\n".join(lost))


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("due", "tests that run TensorFlow (tests/due.py)")
    group.addoption("--note-green", action="store_true", help="write into tests/green.json what was green")
    group.addoption("--all-due", action="store_true", help="none waits since nothing has changed for it")


# -- tests that wait where nothing has changed for them, see due.py ---------------------------------------------------

_MIGRATIONS = due.Migrations()
_WAITS = "the same texts come out as when it was green"


def pytest_configure(config: pytest.Config) -> None:
    """What tests ask of the codemod, and the programs that they run, are seen where they happen."""
    from migrator import migrate
    from migrator.harness.cluster import ForkServer

    asked, runs, launch, starts = migrate.migrate, ForkServer.run, ForkServer._launch, subprocess.Popen.__init__

    def migrated(sources: Any, options: Any) -> Any:
        results = asked(sources, options)
        _MIGRATIONS.made(options, *((str(one.source.path), one.source.text, one.text, one.findings) for one in results))
        return results

    def run(server: ForkServer, *asked_for: Any) -> Any:
        _about_to_run()
        return runs(server, *asked_for)

    def start_server(server: ForkServer) -> None:
        with _MIGRATIONS.unseen():
            launch(server)

    def start(process: Any, *args: Any, **options: Any) -> None:
        command = args[0] if args else options["args"]
        program = str(command if isinstance(command, (str, os.PathLike)) else command[0])
        if "/environments/" in program or program == os.environ.get("TF_MIGRATE_TENSORFLOW1_PYTHON"):
            _about_to_run()
        starts(process, *args, **options)

    changed: list[tuple[Any, str, Any]] = [
        (migrate, "migrate", migrated),
        (ForkServer, "run", run),
        (ForkServer, "_launch", start_server),
        (subprocess.Popen, "__init__", start),
    ]
    for owner, name, new in changed:
        setattr(owner, name, wraps(getattr(owner, name))(new))
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Noted(config), "noted")


def _name(item: pytest.Item) -> str:
    """With that of its class, and without that of its file."""
    return item.nodeid.partition("::")[2]


def _about_to_run() -> None:
    if _MIGRATIONS.waits_here():
        pytest.skip(_WAITS)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any) -> Iterator[None]:
    """What several tests share is made in the first of them."""
    name = _shared(fixturedef)
    if name is None:
        return (yield)
    with _MIGRATIONS.making(name):
        return (yield)


def _shared(fixture: Any) -> str | None:
    """A name for what that fixture of these tests makes, if several tests share it."""
    ours = str(getattr(fixture.func, "__module__", "")).startswith("tests.")
    return f"{fixture.baseid}::{fixture.argname}" if ours and fixture.scope != "function" else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    may = item.config.stash.get(_MAY_WAIT, False)
    if item.get_closest_marker("tensorflow"):
        fixtures = [one for several in item._fixtureinfo.name2fixturedefs.values() for one in several]  # type: ignore[attr-defined]
        shared = {name for one in fixtures if (name := _shared(one)) is not None}
        _MIGRATIONS.begin(due.migrations_when_green(item.path, _name(item)) if may else None, shared)
    else:
        _MIGRATIONS.end()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[Any]:
    report = yield
    waits = item.get_closest_marker("release") is not None
    if item.get_closest_marker("tensorflow") and not waits and call.when == "call":
        report.user_properties.append(("migrations", _MIGRATIONS.all))
    return report


class _Noted:
    """What was green in this run, or waited, in the process that sees all tests."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._passed: dict[Path, dict[str, str | None]] = {}
        self._waited: dict[Path, set[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file, _, name = report.nodeid.partition("::")
        path = self._config.rootpath / file
        found = dict(report.user_properties)
        if report.skipped and _WAITS in str(report.longrepr):
            self._waited.setdefault(path, set()).add(name)
        elif report.when == "call" and report.passed and "migrations" in found:
            self._passed.setdefault(path, {})[name] = found["migrations"]
        elif report.failed:
            self._passed.get(path, {}).pop(name, None)

    def pytest_sessionfinish(self) -> None:
        if self._config.getoption("note_green"):
            due.note(self._passed, self._waited)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: no later look for garbage goes through it again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


@pytest.hookimpl(tryfirst=True)
def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files without a test that is asked for are not read: those that run no TensorFlow for the tests that do, those
    that do nothing else for the others. This takes seconds in each process.
    """
    if collection_path.suffix != ".py":
        return None
    if re.match(r"not tensorflow\b(?! or)", _marks(config)):
        if _ONLY_TENSORFLOW.search(collection_path.read_text(encoding="utf-8")):
            config.stash.setdefault(_PASSED_OVER, set()).add(collection_path.stem)
            return True
    elif re.match(r"tensorflow\b(?! or)", _marks(config)):
        waits = any(one.file == collection_path.stem for one in release.WAITING)
        if not waits and "mark.tensorflow" not in collection_path.read_text(encoding="utf-8"):
            return True
    return None


def _marks(config: pytest.Config) -> str:
    return str(config.option.markexpr)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file's tests stay together, for they share what they start; the files with the most tests go first.

    (`--dist loadgroup` with a mark would say the same, and says nothing in pytest 9: xdist 3.8 writes the group into
    an attribute that is no longer read.)
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return nodeid if _ALONE in nodeid else nodeid.partition("::")[0]

    return ByFile(config, log)


@pytest.fixture(scope="session")
def session_for() -> Iterator[Callable[[int], Session]]:
    """Gives the interpreters of both programs, the migrated one on that generation of Keras.

    TensorFlow is imported once in a process of tests for each kind of program.
    """
    from migrator.harness.cluster import ForkServer
    from migrator.harness.environments import migrated_python
    from migrator.harness.runs import open_session

    with ExitStack() as stack:
        opened: dict[int, Session] = {}

        def session_for(keras: int) -> Session:
            if keras in opened:
                return opened[keras]
            if not opened:
                opened[keras] = stack.enter_context(open_session(keras=keras))
            else:
                other = next(iter(opened.values()))
                server = ForkServer(migrated_python(), "migrated", folder=other.folder, keras=keras, waits=True)
                opened[keras] = replace(other, migrated=stack.enter_context(server))
            return opened[keras]

        yield session_for


@pytest.fixture(scope="session")
def servers(session_for: Callable[[int], Session]) -> tuple[ForkServer, ForkServer]:
    """The interpreters of the original and of the migrated program."""
    opened = session_for(2)
    return opened.original, opened.migrated


@pytest.fixture(scope="session")
def first_keras2() -> Iterator[ForkServer]:
    """TensorFlow 2.15.1, for programs that are migrated already."""
    from migrator.harness.cluster import ForkServer
    from migrator.harness.environments import original_python

    with ForkServer(original_python(), "migrated", waits=True) as server:
        yield server
