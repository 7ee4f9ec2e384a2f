"""Which tests go together when several processes share the work (`pytest -n logical`), what waits for a release, the
interpreters that the tests of a process share, and how properties are tried: with the same examples in every run,
however slow the machine is.
"""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from migrator.harness.environments import EnvironmentNotReady, first_made
from tests import release

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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks what waits for a release, see tests/release.py; a whole collection says what is marked no longer there."""
    known = {(one.file, name) for one in release.WAITING for name in one.tests}
    for item in items:
        known -= {(item.path.stem, item.name), (item.path.stem, f"{item.name.partition('[')[0]}[*]")}
        found = release.find(item.path.stem, item.name)
        if found is not None and found.waits(item.name):
            item.add_marker(pytest.mark.release(found.reason))
    whole = config.args_source is not pytest.Config.ArgsSource.ARGS and not config.getoption("lf", False)
    passed_over = config.stash.get(_PASSED_OVER, set())
    lost = [f"tests/release.py: there is no {file}::{name}" for file, name in sorted(known) if file not in passed_over]
    if lost and whole:
        raise pytest.UsageError("\n".join(lost))


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
                server = ForkServer(migrated_python(), "migrated", folder=other.folder, keras=keras)
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

    with ForkServer(original_python(), "migrated") as server:
        yield server
