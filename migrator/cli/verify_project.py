"""``tf-migrate verify PROJECT``: all programs of a project against what they were in git."""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from migrator.cli.extras import verify_extra
from migrator.cli.progress import line_per_stage
from migrator.report.outcome import ExitCode

if TYPE_CHECKING:
    from rich.console import Console

    from migrator.harness.environments import Extra
    from migrator.harness.projects.programs import Program
    from migrator.harness.projects.running import Asked, Result, Trees
    from migrator.harness.runs import OnProgress
    from migrator.settings import Project
    from migrator.source.git import Revision

_WIDTH = 120


@dataclass(frozen=True)
class ProjectRequest:
    """What the command line says of a project. `options` are fields of a Case that stand instead of the settings', and
    `words` the same as words of a command line. `module` selects a program by the name it is run by.
    """

    path: Path
    base: str | None = None
    shard: tuple[int, int] | None = None
    module: str = ""
    report_dir: Path | None = None
    arguments: tuple[str, ...] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    extra: Extra | None = None
    inconclusive: str = "fail"
    runner: str = "local"


class Shard(click.ParamType):  # type: ignore[type-arg]
    """A part of all programs: "3/8"."""

    name = "shard"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """The number of the part, from 1, and how many parts there are."""
        number, slash, of = str(value).partition("/")
        if not (slash and number.isdigit() and of.isdigit() and 1 <= int(number) <= int(of)):
            self.fail(f"{value!r} is no part: expected I/N with I from 1 to N, as in 3/8", param, ctx)
        return int(number), int(of)


def verify_project(request: ProjectRequest) -> int:
    """Verifies the programs, prints and writes the page of all, and returns the exit code."""
    with verify_extra():
        from migrator.harness import session
        from migrator.harness.environments import EnvironmentNotReady, Extra
        from migrator.harness.projects import programs, settings, summary, trees
        from migrator.harness.projects.running import Asked, Trees
    if not request.path.exists():
        raise click.UsageError(f"{request.path} does not exist")
    from migrator.settings import SettingsError, find, read
    from migrator.source.git import GitError

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that folders are cleared away
    started, clock = time.time(), time.monotonic()
    try:
        project = find([request.path])
        common = read(project, settings.VerifySettings, settings.SECTION)
        base = request.base or common.base
        with tempfile.TemporaryDirectory(prefix="tf-migrate-base-") as scratch:
            original = Path(scratch).resolve() / "project"
            there = Trees(original, project.root, base, (original, f"{base}:"))
            revision, chosen = _chosen(request, project, common, base)
            if any(one.original is None and not one.skipped for one in chosen):
                assert revision is not None
                trees.tree_at(revision, _tracked(revision.root), there.original)
            asked = Asked(
                common,
                project.folder,
                request.options,
                request.arguments,
                request.extra or Extra(),
                () if base == common.base else ("--base", base),
                request.words,
                request.runner,
            )
            folder = request.report_dir or folder_of(project.root)
            last = summary.load_last(folder)
            results = run_programs(chosen, there, asked, folder)
    except (SettingsError, GitError, programs.ProgramError) as error:
        raise click.UsageError(str(error)) from error
    except (EnvironmentNotReady, session.ForkServerError) as error:
        click.echo(f"Error: {error}", err=True)
        return int(ExitCode.FAILED)
    made = summary.document(
        results,
        root=project.root,
        revision=base,
        commit=None if revision is None else revision.commit,
        shard=None if request.shard is None else f"{request.shard[0]}/{request.shard[1]}",
        started=started,
        duration=time.monotonic() - clock,
        last=last,
    )
    try:
        paths = summary.write(made, folder, last)
    except OSError as error:
        click.echo(f"Error: the page of all programs cannot be written to {folder}: {error}", err=True)
        summary.show(made, _console(), {})
        return int(ExitCode.FAILED)
    summary.show(made, _console(), paths)
    return summary.exit_code(made, warn_inconclusive=request.inconclusive == "warn")


def _chosen(
    request: ProjectRequest, project: Project, common: Any, base: str
) -> tuple[Revision | None, tuple[Program, ...]]:
    """The revision, unless nothing is taken from one, and the programs that were asked for, of this part."""
    from migrator.harness.projects import programs
    from migrator.source.git import GitError, read_revision

    root = project.root
    found = programs.listed(common, root, project.folder)
    within = _within(request.path, root)
    if request.module:
        found = _by_module(request, found, root)
    elif within is not None:
        found = tuple(one for one in found if within in (one.script, *one.script.parents))
    needs = any(one.original is None for one in found) or common.discover
    try:
        revision = read_revision(root, base) if needs else None
    except GitError:
        if any(one.original is None for one in found) or not found:
            raise
        revision = None  # every program brings its original along
    if revision is not None:
        before, now = _texts_at(revision), texts_now(root)
        if common.discover and not request.module:
            more = programs.discovered(before, now, root, project.folder, () if within is None else (within,))
            found = programs.without_doubles((*found, *more))
        if request.path.is_file() and not found:
            assert within is not None
            found = (programs.of_script(within, root, project.folder),)
        found = programs.unchanged(found, before, now, root, base)
    if request.shard is not None:
        found = programs.shard(found, *request.shard)
    return revision, found


def _by_module(request: ProjectRequest, found: Sequence[Program], root: Path) -> tuple[Program, ...]:
    from migrator.harness.projects.programs import listed
    from migrator.harness.projects.settings import ProgramSettings, VerifySettings

    known = tuple(one for one in found if one.module == request.module)
    if known:
        return known
    one = VerifySettings(programs={request.module: ProgramSettings(module=request.module)})
    return listed(one, root, request.path.resolve())


def _within(path: Path, root: Path) -> Path | None:
    """What of the project was asked for, relative to its root; None for all of it."""
    relative = _relative(path.resolve(), root)
    return None if relative == Path() else relative


def _relative(path: Path, root: Path) -> Path:
    return path.relative_to(root) if path.is_relative_to(root) else Path()


def _texts_at(revision: Revision) -> dict[Path, str]:
    from migrator.source.discovery import SKIPPED_FOLDERS, SUFFIXES
    from migrator.source.git import read_blobs

    paths = [
        path
        for path in revision.files
        if path.suffix in SUFFIXES
        and not any(part.startswith(".") or part in SKIPPED_FOLDERS for part in path.parts)
        and revision.files[path].mode.startswith("100")
    ]
    contents = read_blobs(revision, [revision.files[path].name for path in paths])
    return {path: text for path, raw in zip(paths, contents, strict=True) if (text := _text(path, raw)) is not None}


def texts_now(root: Path) -> dict[Path, str]:
    """The texts of a project's Python files and notebooks, by paths relative to its root."""
    from migrator.source.discovery import discover

    found = {}
    for one in discover([root]):
        text = _text(one.path, one.path.read_bytes())
        if text is not None:
            found[one.path.relative_to(root)] = text
    return found


def _text(path: Path, raw: bytes) -> str | None:
    from migrator.findings import Finding
    from migrator.source.reading import decode

    source = decode(path, raw, strict=False)
    return None if isinstance(source, Finding) else source.text


def _tracked(root: Path) -> list[Path]:
    from migrator.source.git import tracked_files

    return tracked_files(root)


def folder_of(root: Path) -> Path:
    """Where the reports of a project are kept from run to run where the user names no folder."""
    import hashlib

    from migrator.harness.environments import cache_folder

    digest = hashlib.sha256(str(root).encode()).hexdigest()[:10]
    return cache_folder().parent / "projects" / f"{root.name or 'root'}-{digest}"


def run_programs(chosen: Sequence[Program], there: Trees, asked: Asked, folder: Path) -> list[Result]:
    """Verifies programs, telling on stderr which one is under way."""
    from rich.console import Console

    from migrator.harness.projects.running import verify_programs
    from migrator.harness.report import terminal

    with ExitStack() as stack:
        terminals = sys.stderr.isatty()

        def on_program(program: Program, number: int, total: int) -> OnProgress:
            prefix = f"verify {program.name} ({number}/{total})"
            if not terminals:
                return line_per_stage(prefix)
            click.echo(prefix, err=True)
            stack.close()
            return stack.enter_context(terminal.LiveProgress(Console(stderr=True)))

        return list(verify_programs(chosen, there, asked, folder, on_program))


def _console() -> Console:
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else _WIDTH)
