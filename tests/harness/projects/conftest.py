"""Git repositories with programs, and verifications that run nothing."""

from __future__ import annotations

import copy
import functools
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from report_documents import make

from migrator.harness import session
from migrator.harness.case import Case, CaseError
from migrator.harness.projects import running

_report = functools.cache(make)
ESTIMATOR = """\
import tensorflow.compat.v1 as tf
import helper

tf.estimator.Estimator(model_fn=helper.model_fn).train(helper.input_fn)
"""
KERAS = "import tensorflow as tf\nimport helper\n"


class Repository:
    """A git tree that is written and committed to."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.autocrlf=false")
        command = ["git", "-C", str(self.root), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def commit(self, files: Mapping[str, str] | None = None) -> str:
        self.write(files or {})
        self.git("add", "-A")
        self.git("commit", "-qm", "x")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path.resolve() / "tree")


class Verifications:
    """What was verified, with the texts of both programs as they were then; `verdicts` by the name of the script."""

    def __init__(self) -> None:
        self.cases: list[Case] = []
        self.texts: list[tuple[str, str]] = []
        self.sessions: list[dict[str, Any]] = []
        self.verdicts: dict[str, str] = {}

    def verify(self, case: Case, progress: object, *, session: object = None) -> Any:
        self.cases.append(case)
        self.texts.append((case.original.read_text(), case.migrated.read_text()))
        verdict = self.verdicts.get(case.migrated.name, "EQUIVALENT")
        if verdict == "wrong":
            raise CaseError("the name map names no variable")
        return copy.deepcopy(_report(verdict))

    @contextmanager
    def open_session(self, *pythons: Path, **options: Any) -> Iterator[str]:
        self.sessions.append({"pythons": pythons, **options})
        yield "a session"


@pytest.fixture
def verifications(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Verifications:
    found = Verifications()
    monkeypatch.setattr(session, "verify", found.verify)
    monkeypatch.setattr(session, "open_session", found.open_session)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path.resolve() / "cache"))

    def python(name: str) -> Callable[..., Path]:
        return lambda say=None, extra=None: Path(name, *(extra.packages if extra else ()))

    monkeypatch.setattr(running, "original_python", python("original"))
    monkeypatch.setattr(running, "migrated_python", python("migrated"))
    return found
