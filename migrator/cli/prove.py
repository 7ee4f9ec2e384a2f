"""``tf-migrate PATH... --verify``: programs are trained before and after, and what is not proven is not written."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from migrator.cli.extras import verify_extra
from migrator.cli.verify_project import folder_of, run_programs, texts_now
from migrator.findings import Severity
from migrator.project.gather import Gathered
from migrator.project.imports import below
from migrator.project.run import Migrated
from migrator.project.together import Refused
from migrator.report.outcome import ExitCode

if TYPE_CHECKING:
    from migrator.harness.projects.running import Result
    from migrator.settings import Project

CODE = "TFM916"
_PROVEN = "EQUIVALENT"


def unproven(results: Mapping[Path, Migrated], gathered: Gathered, project: Project) -> dict[Path, Refused]:
    """The files that change and belong to a program that is not EQUIVALENT, or to none that was verified.

    The programs run before and after as `tf-migrate verify` runs them, with the project's settings for that.
    """
    changing = {path: one for path, one in results.items() if one.changed}
    if not changing:
        return {}
    with verify_extra():
        from migrator.harness import session
        from migrator.harness.environments import EnvironmentNotReady
        from migrator.harness.projects import programs, settings, trees
        from migrator.harness.projects.running import Asked, Trees
    from migrator.settings import SettingsError, read
    from migrator.source.reading import encode

    root = project.root
    places = {path: Path.cwd().joinpath(path).resolve().relative_to(root) for path in changing}
    before = texts_now(root)
    now = {**before, **{places[path]: one.text for path, one in changing.items()}}
    try:
        common = read(project, settings.VerifySettings, settings.SECTION)
        chosen = programs.listed(common, root, project.folder)
        if common.discover:
            found = programs.discovered(before, now, root, project.folder, ())
            chosen = programs.without_doubles((*chosen, *found))
        chosen = programs.unchanged(chosen, before, now, root, "")
        chosen = tuple(one for one in chosen if not one.skipped)
        with tempfile.TemporaryDirectory(prefix="tf-migrate-proof-") as scratch:
            there = Path(scratch).resolve() / "project"
            files = {places[path]: encode(one.source, one.text) for path, one in changing.items()}
            trees.tree_with(root, files, (), there)
            folder = folder_of(root)
            both = Trees(root, there, "the project", (there, f"{root}/"))
            verdicts = run_programs(chosen, both, Asked(common, project.folder), folder)
    except (SettingsError, programs.ProgramError) as error:
        raise click.UsageError(str(error)) from error
    except (EnvironmentNotReady, session.ForkServerError) as error:
        click.echo(f"Error: {error}", err=True)
        raise SystemExit(int(ExitCode.FAILED)) from error
    for one in verdicts:
        click.echo(f"{one.status} {one.program.name}: {one.summary}", err=True)
    click.echo(f"The reports are in {folder / 'programs'}.", err=True)
    return _refused(changing, places, verdicts, gathered, root)


def _refused(
    changing: Mapping[Path, Migrated],
    places: Mapping[Path, Path],
    verdicts: list[Result],
    gathered: Gathered,
    root: Path,
) -> dict[Path, Refused]:
    by_place = {Path.cwd().joinpath(path).resolve(): path for path in gathered.sources}
    told: dict[Path, list[Result]] = {path: [] for path in changing}
    for one in verdicts:
        script = by_place.get(root / one.program.script)
        for path in below(gathered.edges, [script]) if script is not None else ():
            if path in told:
                told[path].append(one)
    refused = {}
    for path, found in told.items():
        if not changing[path].source.raw:
            continue  # a file of ours goes with those that need it
        worst = next((one for one in found if one.status != _PROVEN), None)
        if worst is not None:
            why = f"{worst.program.name} is {worst.status} ({worst.summary})"
            todo = "see its report"
        elif not found:
            why, todo = "no verified program runs this file", "name a script that imports it, or leave --verify out"
        else:
            continue
        refused[path] = Refused(path, CODE, why, todo, Severity.MANUAL)
    return refused
