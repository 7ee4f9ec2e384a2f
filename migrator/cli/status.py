"""``tf-migrate status PATH...``: the programs of a project, what becomes of each, and what stands in the way."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from migrator.cli.extras import MissingExtra
from migrator.report.outcome import ExitCode, FileOutcome, Outcome
from migrator.settings import UsageProblem, find

if TYPE_CHECKING:
    from migrator.findings import Finding


@click.command(
    short_help="List the programs that remain, and what blocks them.",
    epilog="Exit code: 0, whatever remains; 2 for wrong usage, or an unreadable file.",
)
@click.argument("paths", nargs=-1, metavar="[PATH...]", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "html"]),
    default="text",
    show_default=True,
    help="Text, JSON, or a self-contained HTML page.",
)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write it to a file.")
def command(paths: tuple[Path, ...], form: str, output: Path | None) -> None:
    """List the TensorFlow 1 programs in PATH... (the current folder when left out): what becomes of each, and why.

    Programs are native, bridged, blocked by something, or not judged, since nothing in PATH trains them. What blocks
    them is listed by how many programs it blocks, with the one, two and three things that unblock most programs once
    they are gone. Nothing is changed.
    """
    try:
        data, failed = worklist(paths or (Path(),))
    except UsageProblem as error:
        raise click.UsageError(str(error)) from None
    if output is None and form == "text":
        from migrator.worklist.text import print_text

        print_text(data, sys.stdout)
    else:
        text = _rendered(data, form)
        if output is None:
            sys.stdout.write(text)
        else:
            try:
                output.write_text(text, encoding="utf-8")
            except OSError as error:
                raise click.UsageError(f"{output} cannot be written: {error.strerror or error}") from None
    raise SystemExit(int(ExitCode.FAILED if failed else ExitCode.DONE))


def worklist(paths: tuple[Path, ...]) -> tuple[dict[str, Any], bool]:
    """The worklist of some paths, and whether a file could not be read. Raises UsageProblem."""
    from migrator.cli.migrate import Settings, in_cells, looked_at
    from migrator.project.choices import Wishes, choices_of
    from migrator.rules.catalogue import all_rules
    from migrator.worklist.document import document
    from migrator.worklist.programs import programs_of

    project = find(paths)
    settings = Settings(check=True, paths=paths)
    gathered, results = looked_at(paths, settings, Wishes(project, choices_of(project), {}))
    findings = {path: one.findings for path, one in results.items()}
    programs = programs_of(gathered.sources, findings, gathered.edges, gathered.given)
    titles = {rule.code: rule.title for rule in all_rules()}
    problems = tuple(gathered.problems.values())
    told = [one for program in programs for one in program.reviews]
    told += [one for program in programs for _, some in program.blocking for one in some]
    shown = _shown({*told, *problems}, lambda found: in_cells(found, gathered), gathered.show)
    programs = [
        replace(
            program,
            path=str(gathered.show(Path(program.path))),
            files=tuple(str(gathered.show(Path(file))) for file in program.files),
            blocking=tuple((reason, tuple(shown[one] for one in some)) for reason, some in program.blocking),
            reviews=tuple(shown[one] for one in program.reviews),
        )
        for program in programs
    ]
    return document(programs, [shown[one] for one in problems], titles), bool(problems)


def _shown(findings: set[Finding], cells: Any, show: Any) -> Mapping[Finding, Finding]:
    """Findings as users see them: with their paths, and by cell in notebooks."""
    order = sorted(findings)
    renamed = [replace(one, path=str(show(Path(one.path)))) for one in order]
    files = tuple(FileOutcome(one.path, False, False, (one,)) for one in renamed)
    placed = cells(Outcome(files, dry=True, check=True))
    return {old: file.findings[0] for old, file in zip(order, placed.files)}


def _rendered(data: Mapping[str, Any], form: str) -> str:
    import io

    from migrator.worklist.document import to_html, to_json
    from migrator.worklist.text import print_text

    if form == "json":
        return to_json(data)
    if form == "html":
        try:
            return to_html(data)
        except ModuleNotFoundError as error:
            raise MissingExtra(error.name or "jinja2") from error
    stream = io.StringIO()
    print_text(data, stream)
    return stream.getvalue()
