"""A stand-in for the engine, so that these tests are about the command and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import ModuleType

import pytest
from click.testing import CliRunner, Result

from migrator.cli.program import program
from migrator.findings import Finding, Severity
from migrator.migrate import Options
from migrator.migrate import Result as Migrated
from migrator.source.reading import Source

Run = Callable[..., Result]


def migrate(sources: Sequence[Source], options: Options) -> list[Migrated]:
    """Turns `tf1` into the strategy's name; `blocked` leaves its file as it is; `bug` breaks the new text."""
    if any("crash" in source.text for source in sources):
        raise RuntimeError("engine failure")
    return [_migrated(source, options) for source in sources]


def _migrated(source: Source, options: Options) -> Migrated:
    path, text = str(source.path), source.text
    if "blocked" in text:
        line = text[: text.index("blocked")].count("\n") + 1
        return _result(source, text, Finding(path, line, 1, "TFM203", Severity.MANUAL, "cannot be carried over"))
    if "tf1" not in text:
        return _result(source, text)
    new = text.replace("tf1", "tf_" + options.strategy.replace("-", "_"))
    if "bug" in text:
        new += "= ="
    return _result(
        source,
        new,
        Finding(path, 2, 1, "TFM101", Severity.MIGRATED, "carried over"),
        Finding(path, 2, 5, "TFM102", Severity.REVIEW, "look at this"),
    )


def _result(source: Source, text: str, *findings: Finding) -> Migrated:
    return Migrated(source, text, findings)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("migrator.migrate")
    module.__dict__.update(Options=Options, Result=Migrated, migrate=migrate)
    monkeypatch.setitem(sys.modules, "migrator.migrate", module)


@pytest.fixture
def run(engine: None) -> Run:
    """Runs `tf-migrate` in this process; its result has `exit_code`, `stdout` and `stderr`."""

    def call(*arguments: object, stdin: bytes | None = None) -> Result:
        return CliRunner().invoke(
            program, [str(argument) for argument in arguments], input=stdin, prog_name="tf-migrate"
        )

    return call
