"""``tf-migrate PATH...``: rewrite programs in place, or only show or judge what would be rewritten."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from migrator.cli.program import DefaultCommand
from migrator.findings import Finding
from migrator.pairing import equal_zip
from migrator.report.outcome import ExitCode, FileOutcome, Outcome
from migrator.targets import LOOPS, STRATEGIES

if TYPE_CHECKING:
    from migrator.source.discovery import Found
    from migrator.source.reading import Source

STYLES = ("auto", "native", "bridge")
KERAS = ("2", "3")
_ASKED = ("strategy", "style", "keras", "loop", "mesh", "layouts")  # what the engine is told
STDIN = Path("<stdin>")


@dataclass(frozen=True)
class Settings:
    """What the user asked for."""

    strategy: str = "auto"
    style: str = "auto"
    keras: str = "2"
    loop: str = "fit"
    diff: bool = False
    check: bool = False
    tries: bool = False
    mesh: str = ""
    layouts: tuple[str, ...] = ()

    @property
    def dry(self) -> bool:
        """Whether files are left alone."""
        return self.diff or self.check


@dataclass(frozen=True)
class _Rewritten:
    """A file and its new text, which is the old one when there was nothing to do."""

    source: Source
    text: str
    findings: tuple[Finding, ...] = ()


@click.command(
    cls=DefaultCommand,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit code: 0 nothing left to do, or all migrated; 1 --check would change a file, a program is "
    "blocked, or a name stands that TensorFlow 2.21 lacks; 2 wrong usage, or a file could not be read or written. A "
    "path that is named like a command is given as ./verify.",
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path))
@click.option("--diff", is_flag=True, help="Show what would change, as a patch on stdout; leave the files alone.")
@click.option("--check", is_flag=True, help="Leave the files alone; exit with 1 if one would change.")
@click.option(
    "--try",
    "tries",
    is_flag=True,
    help="Run each bridged program in a copy of its project, so far that its models are built; leave those alone that "
    "fail. Needs the environment of migrated programs.",
)
@click.option(
    "--strategy",
    type=click.Choice(STRATEGIES),
    default="auto",
    show_default=True,
    help="The tf.distribute strategy of the new programs; auto takes that of the RunConfig, or what TF_CONFIG asks for "
    "when they run.",
)
@click.option(
    "--style",
    type=click.Choice(STYLES),
    default="auto",
    show_default=True,
    help="The form of models: native Keras layers, or bridge (all code stays, and runs through a file beside it); auto "
    "takes the bridge for programs whose native form is blocked.",
)
@click.option(
    "--keras",
    type=click.Choice(KERAS),
    default="2",
    show_default=True,
    help="The generation of Keras that the new programs run on: 2 (tf_keras) for every strategy, or 3 for one device "
    "(with --loop custom also for mirrored replicas and workers).",
)
@click.option(
    "--loop",
    type=click.Choice(LOOPS),
    default="fit",
    show_default=True,
    help="What trains: Model.fit, or a custom loop of strategy.run, for one device or replicas in step.",
)
@click.option(
    "--mesh",
    default="",
    metavar="NAME=SIZE",
    help="With --strategy dtensor: a dimension of the mesh beside `batch`, as in model=2; more with commas.",
)
@click.option(
    "--layout",
    "layouts",
    multiple=True,
    metavar="PATTERN=DIMENSIONS",
    help="With --strategy dtensor: what the axes of variables are divided over, as in dense.*kernel=unsharded,model; "
    "may be given several times.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of the report.",
)
@click.option("-q", "--quiet", is_flag=True, help="Report only what stands in the way.")
@click.option("-v", "--verbose", is_flag=True, help="Report also what was carried over, line by line.")
def command(
    paths: tuple[Path, ...],
    diff: bool,
    check: bool,
    tries: bool,
    strategy: str,
    style: str,
    keras: str,
    loop: str,
    mesh: str,
    layouts: tuple[str, ...],
    form: str,
    quiet: bool,
    verbose: bool,
) -> None:
    """Rewrite the TensorFlow 1 Estimator programs in PATH... as Keras and tf.distribute programs.

    PATH is a file or a folder. Files are rewritten in place, each in one step. A program that cannot be
    carried over whole is left byte for byte as it was, and the report names the lines that block it. With -
    for PATH the program is read from stdin and written to stdout, and the report goes to stderr, as it does
    with --diff.
    """
    settings = Settings(strategy, style, keras, loop, diff, check, tries, mesh, layouts)
    _check_layouts(settings)
    if quiet and verbose:
        raise click.UsageError("--quiet and --verbose exclude each other")
    if Path("-") in paths:
        if len(paths) > 1:
            raise click.UsageError("- (stdin) cannot be combined with other paths")
        outcome = _stdin(settings)
    else:
        outcome = _files(paths, settings)
    stdout_taken = diff or (Path("-") in paths and not check)
    _report(outcome, form, "stderr" if stdout_taken else "stdout", quiet, verbose)
    raise SystemExit(int(outcome.exit_code))


def _check_layouts(settings: Settings) -> None:
    """Wrong usage where the mesh or the layouts make no sense."""
    if settings.strategy != "dtensor":
        if settings.mesh or settings.layouts:
            raise click.UsageError("--mesh and --layout are for --strategy dtensor")
        return
    from migrator.targets.dtensor import LayoutError, parse

    try:
        parse(settings.mesh, settings.layouts)
    except LayoutError as error:
        raise click.UsageError(str(error)) from None


def _files(paths: Sequence[Path], settings: Settings) -> Outcome:
    from migrator.source.discovery import discover
    from migrator.source.reading import read
    from migrator.source.writing import write_all

    discovered = list(discover(paths))
    discovered += _support_files(discovered)
    items = _migrated([read(found.path, strict=found.named) for found in discovered], settings)
    if settings.tries:
        items = _tried(items)
    rewritten = [item.source for item in items if not isinstance(item, Finding) and item.text != item.source.text]
    missing: dict[Path, list[Finding]] = {}
    if rewritten:
        from migrator.not_given import not_given

        missing = not_given(rewritten, [found.path for found in discovered])
    files: list[FileOutcome] = []
    for item in items:
        if isinstance(item, Finding):
            files.append(FileOutcome(item.path, changed=False, written=False, findings=(item,)))
            continue
        files.append(_judged(replace(item, findings=(*item.findings, *missing.get(item.source.path, ()))), settings))
    if not settings.dry:
        changed = [
            (place, item)
            for place, (file, item) in enumerate(equal_zip(files, items))
            if file.changed and not isinstance(item, Finding)
        ]
        problems = write_all([(item.source, item.text) for _, item in changed])
        for (place, _), problem in equal_zip(changed, problems):
            findings = (*files[place].findings, *([problem] if problem else []))
            files[place] = FileOutcome(files[place].path, problem is None, problem is None, tuple(sorted(findings)))
    return Outcome(tuple(files), settings.dry, settings.check)


def _tried(items: Sequence[_Rewritten | Finding]) -> list[_Rewritten | Finding]:
    """The files of bridged programs whose models are built, as they would be; those of others as they were."""
    from migrator.harness.building import build_models

    programs = {
        item.source.path
        for item in items
        if not isinstance(item, Finding) and any(finding.code == "TFM155" for finding in item.findings)
    }
    texts = {item.source.path: item.text for item in items if not isinstance(item, Finding)}
    built = build_models(texts, programs)
    done: list[_Rewritten | Finding] = []
    for item in items:
        if not isinstance(item, Finding):
            found = built.findings.get(item.source.path, [])
            if item.source.path in built.failed:
                kept = [finding for finding in item.findings if finding.code != "TFM155"]
                item = replace(item, text=item.source.text, findings=(*kept, *found))
            else:
                item = replace(item, findings=(*item.findings, *found))
        done.append(item)
    return [item for item in done if isinstance(item, Finding) or item.source.raw or item.text]


def _support_files(discovered: Sequence[Found]) -> list[Found]:
    """The files that earlier runs wrote for bridged programs, beside the files that were given."""
    from migrator.bridge.support import NAME
    from migrator.source.discovery import Found

    known = {found.path for found in discovered}
    beside = dict.fromkeys(found.path.with_name(f"{NAME}.py") for found in discovered if found.path.name)
    return [Found(path, named=False) for path in beside if path not in known and path.is_file()]


def _stdin(settings: Settings) -> Outcome:
    from migrator.source.reading import decode, encode

    raw = sys.stdin.buffer.read()
    item = _migrated([decode(STDIN, raw)], settings, inside=True)[0]
    if isinstance(item, Finding):
        file = FileOutcome(item.path, changed=False, written=False, findings=(item,))
    else:
        file = _judged(item, settings)
        if not settings.dry:
            text = item.text if file.changed else item.source.text
            sys.stdout.buffer.write(encode(item.source, text))
            file = FileOutcome(file.path, file.changed, file.changed, file.findings)
    return Outcome((file,), settings.dry, settings.check)


def _judged(result: _Rewritten, settings: Settings) -> FileOutcome:
    """Shows the patch if that was asked for, and returns the outcome of a text that is not written yet."""
    from migrator.report.diff import to_diff
    from migrator.source.writing import check

    path = result.source.path
    findings = result.findings
    changed = result.text != result.source.text
    if changed:
        new = check(result.source, result.text)
        if isinstance(new, Finding):
            changed, findings = False, (*findings, new)
        elif settings.diff:
            sys.stdout.buffer.write(to_diff(path, result.source.raw, new))
    return FileOutcome(str(path), changed, written=False, findings=tuple(sorted(findings)))


def _migrated(
    inputs: Sequence[Source | Finding], settings: Settings, inside: bool = False
) -> list[_Rewritten | Finding]:
    """Returns the new text for each source, and each finding as it is, in the same order."""
    from migrator.source.reading import mentions_tensorflow

    sources = [item for item in inputs if not isinstance(item, Finding)]
    if not any(mentions_tensorflow(source) for source in sources):
        # Most runs of a pre-commit hook: files that cannot concern the engine, which is slow to load.
        return [item if isinstance(item, Finding) else _Rewritten(item, item.text) for item in inputs]
    from migrator.migrate import Options, migrate
    from migrator.source.newlines import unified, with_newlines_of

    # New code comes with LF or CRLF, whatever the file has: the engine sees LF only.
    unix = [replace(source, text=unified(source.text)) for source in sources]
    try:
        asked = {name: getattr(settings, name) for name in _ASKED}
        results = migrate(unix, Options(**asked, bridge=settings.style == "auto", inside=inside))
    except Exception as error:
        if os.environ.get("TF_MIGRATE_TRACEBACK"):
            traceback.print_exc()
        raise _InternalError(error) from error
    new = {
        source.path: _Rewritten(source, with_newlines_of(source.text, result.text), result.findings)
        for source, result in zip(sources, results)
    }
    beside: list[_Rewritten | Finding] = [
        _Rewritten(result.source, result.text, result.findings) for result in results[len(sources) :]
    ]
    return [*beside, *(item if isinstance(item, Finding) else new[item.path] for item in inputs)]


class _InternalError(click.ClickException):
    exit_code = int(ExitCode.FAILED)

    def __init__(self, error: Exception) -> None:
        super().__init__(
            f"internal error: {type(error).__name__}: {error}. No file was changed. Please report it, with "
            "the output of the same command under TF_MIGRATE_TRACEBACK=1."
        )


def _report(outcome: Outcome, form: str, stream: str, quiet: bool, verbose: bool) -> None:
    out = sys.stdout if stream == "stdout" else sys.stderr
    if form == "json":
        from migrator.report.json import to_json

        out.write(to_json(outcome))
        return
    from migrator.report.text import print_text

    print_text(outcome, out, quiet=quiet, verbose=verbose)
