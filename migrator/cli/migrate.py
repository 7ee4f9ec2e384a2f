"""``tf-migrate PATH...``: rewrite programs in place, or only show or judge what would be rewritten."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from migrator.cli.program import DefaultCommand
from migrator.collecting import seldom_collecting
from migrator.findings import Finding
from migrator.pairing import equal_zip
from migrator.project.choices import KERAS, STYLES, Wish, Wishes, baseline_of, check_codes, choices_of
from migrator.report.outcome import ExitCode, FileOutcome, Outcome
from migrator.settings import UsageProblem, find
from migrator.targets import EVALUATE_ON, LOOPS, STRATEGIES

if TYPE_CHECKING:
    from migrator.project.baseline import Baseline
    from migrator.project.gather import Gathered
    from migrator.project.python2 import Before, Converted
    from migrator.project.run import Migrated
    from migrator.project.together import Refused
    from migrator.source.discovery import Found
    from migrator.source.reading import Source

# The forms of a report, and what makes them: the modules are imported when they are asked for.
_RENDERERS = {
    "json": ("migrator.report.json", "to_json"),
    "sarif": ("migrator.report.sarif", "to_sarif"),
    "github": ("migrator.report.github", "to_github"),
    "junit": ("migrator.report.junit", "to_junit"),
}
FORMATS = ("text", *_RENDERERS)
_FILE = click.Path(dir_okay=False, path_type=Path)
STDIN = Path("<stdin>")


@dataclass(frozen=True)
class Settings:
    """What the user asked for, here or in the settings of the project."""

    diff: bool = False
    check: bool = False
    tries: bool = False
    staged: bool = False
    force: bool = False
    proves: bool = False
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    baseline: Baseline | None = None
    write_baseline: Path | None = None
    jobs: int = 0
    cache: bool = True
    bar: bool = True
    backup: bool = False
    out: Path | None = None
    paths: tuple[Path, ...] = ()
    python2: bool = False

    @property
    def dry(self) -> bool:
        """Whether files are left alone."""
        return self.diff or self.check

    @property
    def in_place(self) -> bool:
        """Whether files are overwritten."""
        return not self.dry and self.out is None


@click.command(
    cls=DefaultCommand,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit code: 0 nothing left to do, or all migrated; 1 --check would change a file, a program is blocked, "
    "or a name remains that TensorFlow 2.21 lacks; 2 wrong usage, or a file could not be read or written. "
    "Write a path that is named like a command as ./verify.",
)
@click.argument("paths", nargs=-1, metavar="PATH...", type=click.Path(path_type=Path))
@click.option("--diff", is_flag=True, help="Show the changes as a patch on stdout; do not write files.")
@click.option("--check", is_flag=True, help="Do not write files; exit with 1 if one would change.")
@click.option(
    "--staged",
    is_flag=True,
    help="Write only files of the next git commit (below PATH, if given); the rest of the project is read.",
)
@click.option("--force", is_flag=True, help="Overwrite files even if git does not have their content.")
@click.option("--backup", is_flag=True, help="Keep each overwritten file as train.py.orig.")
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Leave PATH unchanged, and write everything to a new folder: unchanged files and migrated ones.",
)
@click.option(
    "--try",
    "tries",
    is_flag=True,
    help="Run each bridged program in a copy of its project until its models are built or its session has taken a "
    "step, and leave those that fail unchanged. Needs the environment of migrated programs.",
)
@click.option(
    "--verify",
    "proves",
    is_flag=True,
    help="Train each program before and after, as verify does, and write only those that are EQUIVALENT.",
)
@click.option(
    "--strategy",
    type=click.Choice(STRATEGIES),
    default="auto",
    show_default=True,
    help="The tf.distribute strategy of the new programs; auto uses that of the RunConfig, or what TF_CONFIG asks "
    "for at run time.",
)
@click.option(
    "--style",
    type=click.Choice(STYLES),
    default="auto",
    show_default=True,
    help="The form of models: native Keras layers, or bridge (the code stays, and runs on a file beside it); auto "
    "uses the bridge for programs whose native form is blocked. With --strategy dtensor also module: a "
    "tf.Module with its own optimizer and steps, without Keras.",
)
@click.option(
    "--keras",
    type=click.Choice(KERAS),
    default="2",
    show_default=True,
    help="The Keras version of the new programs: 2 (tf_keras) for every strategy, or 3 for one device (with "
    "--loop custom also for mirrored replicas and workers).",
)
@click.option(
    "--loop",
    type=click.Choice(LOOPS),
    default="fit",
    show_default=True,
    help="The training loop: Model.fit, or a custom loop of strategy.run, for one device or synchronous replicas.",
)
@click.option(
    "--evaluate-on",
    type=click.Choice(EVALUATE_ON),
    default="evaluator",
    show_default=True,
    help="Who evaluates the checkpoints of a training on a cluster: the evaluator task, in parallel with the "
    "training, or the coordinator (the chief), while the others wait.",
)
@click.option(
    "--servers",
    default="",
    metavar="worker=N,ps=M",
    help="With parameter servers: if TF_CONFIG names no cluster, start this many servers in the program's own "
    "process; the coordinator evaluates.",
)
@click.option(
    "--mesh",
    default="",
    metavar="NAME=SIZE",
    help="With --strategy dtensor: a mesh dimension beside `batch`, such as model=2; separate several with commas.",
)
@click.option(
    "--layout",
    "layouts",
    multiple=True,
    metavar="PATTERN=DIMENSIONS",
    help="With --strategy dtensor: the mesh dimensions of a variable's axes, such as "
    "dense.*kernel=unsharded,model; may be given several times. `auto` chooses them by size, see "
    "--device-memory.",
)
@click.option(
    "--device-memory",
    default="",
    metavar="SIZE",
    help="With --layout auto: the memory of a device, such as 16GiB. As few variables are sharded as needed to "
    "fit their weights, slots and gradients.",
)
@click.option(
    "--python2",
    is_flag=True,
    help="Convert the Python 2 files in PATH to Python 3 first, including those without TensorFlow. Needs "
    "tf-migrate[python2].",
)
@click.option("--select", "select", metavar="CODES", help="Report only these codes, or prefixes of codes: TFM2,TFM415.")
@click.option(
    "--ignore", "ignore", metavar="CODES", help="Accept these codes: do not report them, and do not fail on them."
)
@click.option(
    "--baseline",
    type=_FILE,
    help="A file of accepted findings: only others are reported, and fail.",
)
@click.option(
    "--write-baseline", type=_FILE, help="Write the current blocking findings to a file, for --baseline; exit with 0."
)
@click.option(
    "--jobs",
    type=click.IntRange(min=0),
    default=0,
    show_default="the number of processors",
    help="Number of worker processes.",
)
@click.option(
    "--cache/--no-cache",
    default=True,
    envvar="TF_MIGRATE_CACHE",
    help="Reuse results of this version for unchanged files from the user's cache. Default: on; "
    "TF_MIGRATE_CACHE=0 turns it off.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="Format of the report: text, JSON, SARIF 2.1.0, GitHub workflow commands, or JUnit XML.",
)
@click.option("-q", "--quiet", is_flag=True, help="Report only blocking findings.")
@click.option("-v", "--verbose", is_flag=True, help="Also report each migrated line.")
@click.pass_context
def command(
    context: click.Context,
    /,
    paths: tuple[Path, ...],
    diff: bool,
    check: bool,
    staged: bool,
    force: bool,
    backup: bool,
    out: Path | None,
    tries: bool,
    proves: bool,
    python2: bool,
    select: str | None,
    ignore: str | None,
    baseline: Path | None,
    write_baseline: Path | None,
    jobs: int,
    cache: bool,
    form: str,
    quiet: bool,
    verbose: bool,
    **asked: Any,
) -> None:
    """Rewrite the TensorFlow 1 Estimator programs in PATH... as Keras and tf.distribute programs.

    PATH is a file or a folder. Files are rewritten in place, each in one step. A program that cannot be
    carried over whole is left byte for byte as it was, and the report names the lines that block it. With -
    for PATH the program is read from stdin and written to stdout, and the report goes to stderr, as it does
    with --diff.
    """
    if quiet and verbose:
        raise click.UsageError("--quiet and --verbose exclude each other")
    if not paths and not staged:
        raise click.UsageError("Missing argument 'PATH...'.")
    if Path("-") in paths:
        if staged:
            raise click.UsageError("--staged works on files, and - is stdin")
        if len(paths) > 1:
            raise click.UsageError("- (stdin) cannot be combined with other paths")
    elif baseline is not None and write_baseline is not None:
        raise click.UsageError("--baseline and --write-baseline exclude each other")
    if out is not None:
        _check_out(out, paths, diff or check or staged or backup or Path("-") in paths)
    try:
        project = find([Path()] if paths in ((), (Path("-"),)) else paths)
        choices = choices_of(project)
        named = {name for name in asked if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
        wishes = Wishes(project, choices, {name: value for name, value in asked.items() if name in named})
        settings = Settings(
            *(diff, check, tries, staged, force, proves),
            choices.select if select is None else _codes(select),
            choices.ignore if ignore is None else _codes(ignore),
            None if write_baseline is not None else _baseline(baseline or baseline_of(project, choices)),
            write_baseline,
            jobs,
            cache,
            not quiet,
            backup,
            out,
            paths,
            python2,
        )
        if python2:
            _check_python2(proves)
        _check_layouts(wishes.everywhere)
        _check_servers(wishes.everywhere)
        if proves and Path("-") in paths:
            raise click.UsageError("--verify trains programs in place, and - is stdin")
        outcome = _stdin(settings, wishes) if Path("-") in paths else _files(paths, settings, wishes)
    except UsageProblem as error:
        raise click.UsageError(str(error)) from None
    stdout_taken = diff or (Path("-") in paths and not check)
    _report(outcome, form, "stderr" if stdout_taken else "stdout", quiet, verbose)
    raise SystemExit(int(outcome.exit_code))


def _baseline(path: Path | None) -> Baseline | None:
    if path is None:
        return None
    from migrator.project.baseline import load

    return load(path)


def _codes(words: str) -> tuple[str, ...]:
    codes = tuple(one.strip().upper() for one in words.split(",") if one.strip())
    try:
        check_codes(codes)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    return codes


def _check_layouts(asked: Mapping[str, Any]) -> None:
    """Wrong usage where the mesh or the layouts make no sense."""
    if asked["strategy"] != "dtensor":
        if asked["style"] == "module":
            raise click.UsageError("--style module requires --strategy dtensor")
        if asked["mesh"] or asked["layouts"] or asked["device_memory"]:
            raise click.UsageError("--mesh, --layout and --device-memory require --strategy dtensor")
        return
    from migrator.targets.dtensor import LayoutError, parse
    from migrator.targets.sizes import SizeError, memory

    try:
        by_size = parse(asked["mesh"], tuple(asked["layouts"])).by_size
        if by_size != bool(asked["device_memory"]):
            raise click.UsageError("--layout auto and --device-memory SIZE require each other")
        if by_size:
            memory(asked["device_memory"])
    except (LayoutError, SizeError) as error:
        raise click.UsageError(str(error)) from None


def _check_servers(asked: Mapping[str, Any]) -> None:
    """Wrong usage where servers are asked for that cannot be started, or of a strategy that has none."""
    from migrator.targets.clusters import ServersError, parse

    try:
        clusters = parse(asked["evaluate_on"], asked["servers"])
    except ServersError as error:
        raise click.UsageError(str(error)) from None
    if clusters.in_process and asked["strategy"] not in ("auto", "parameter-server"):
        raise click.UsageError(
            "--servers starts parameter servers and workers: use --strategy auto or parameter-server"
        )


def _check_python2(proves: bool) -> None:
    """Wrong usage where Python 2 cannot be converted, or would have to run."""
    from migrator.python2 import fixers

    if proves:
        raise click.UsageError("--verify runs the original program, which Python 2 cannot do here: convert it first")
    try:
        fixers.check()
    except fixers.NoFixer as error:
        raise UsageProblem(f"TFM945 --python2 {error}") from None


def _files(paths: Sequence[Path], settings: Settings, wishes: Wishes) -> Outcome:
    with seldom_collecting():  # once for all steps: it looks through everything at its end
        gathered, results = looked_at(paths, settings, wishes)
        results = _with_not_given(results, gathered)
        outcome = in_cells(_accepted(_written(results, gathered, settings), gathered, settings, wishes), gathered)
        return replace(outcome, programs=_counted(results, gathered))


def _counted(results: Mapping[Path, Migrated], gathered: Gathered) -> dict[str, int]:
    """How many programs of each form begin in the given files."""
    if not any(one.findings for one in results.values()):
        return {}
    from migrator.worklist.plan import counts
    from migrator.worklist.programs import programs_of

    findings = {path: one.findings for path, one in results.items()}
    return counts(programs_of(gathered.sources, findings, gathered.edges, gathered.given))


def looked_at(paths: Sequence[Path], settings: Settings, wishes: Wishes) -> tuple[Gathered, dict[Path, Migrated]]:
    """What was read for some paths, and what becomes of the files that belong to programs; nothing is written."""
    from migrator.project.gather import gather

    found = _found(paths, settings)
    excluded = [one.path for one in found if not one.named and wishes.patterns.excludes(one.path)]
    left_out = set(excluded)
    whole = not settings.staged and any(_holds(path, wishes.project.root) for path in paths)
    python2: Callable[[Mapping[Path, bytes]], Converted] | None = None
    if settings.python2:
        from migrator.project.python2 import converted

        python2 = converted
    own = [one for one in found if one.path not in left_out]
    gathered = gather(own, wishes.project, excluded, whole=whole, python2=python2)
    return gathered, _results(gathered, settings, wishes)


def _holds(path: Path, folder: Path) -> bool:
    return path.is_dir() and folder.is_relative_to(path.resolve())


def _results(gathered: Gathered, settings: Settings, wishes: Wishes) -> dict[Path, Migrated]:
    """What becomes of all files, each migrated as it is wished for it; no program is half written."""
    from migrator.project.run import joint, parts_of
    from migrator.project.together import kept_whole

    wished = {path: wishes.of(gathered.show(path)) for path in gathered.given if path in gathered.sources}
    parts: dict[Wish, list[list[Source]]] = {}
    for part in parts_of(gathered):
        for wish in dict.fromkeys(wished[source.path] for source in part if source.path in wished):
            parts.setdefault(wish, []).append(part)
    found: list[list[Migrated]] = []
    given, seen = set(gathered.given), set[Path]()
    for wish, some in parts.items():
        results = _migrated(some, wish, settings)
        if settings.tries:
            results = _tried(results)
        results = _as_they_were(results, gathered)
        own = {path for path, one in wished.items() if one == wish}
        results = kept_whole(results, gathered.edges, _refused(results, own, settings), gathered)
        found.append([one for path, one in results.items() if path in own or path not in wished])
        seen |= results.keys()
    rest = {path: one for path, one in gathered.before.items() if path in given and path not in seen}
    if rest:
        from migrator.project.as_they_were import only_converted

        alone = {path: only_converted(one) for path, one in rest.items()}
        found.append([*kept_whole(alone, {}, _refused(alone, given, settings), gathered).values()])
    whole = joint(found)
    if settings.proves:
        from migrator.cli.prove import unproven

        whole = kept_whole(whole, gathered.edges, unproven(whole, gathered, wishes.project), gathered)
    return whole


def _as_they_were(results: dict[Path, Migrated], gathered: Gathered) -> dict[Path, Migrated]:
    """The results as changes of the files that there are, where these were converted first."""
    if not gathered.before:
        return results
    from migrator.project.as_they_were import as_it_was

    before = gathered.before
    return {path: as_it_was(one, before[path]) if path in before else one for path, one in results.items()}


def _accepted(outcome: Outcome, gathered: Gathered, settings: Settings, wishes: Wishes) -> Outcome:
    """The outcome without what is accepted, by comments, codes and the baseline; writes that if it was asked for."""
    from migrator.project import baseline
    from migrator.project.accepted import MARK, accepted, is_silenced, remarks_in
    from migrator.source.reading import lines_of

    remarks = {
        str(gathered.show(path)): remarks_in(source.text)
        for path, source in {**gathered.as_they_are(), **gathered.remarked}.items()
        if MARK in source.raw
    }

    def silenced(path: str, code: str) -> bool:
        return is_silenced(code, settings.select, (*settings.ignore, *wishes.patterns.of(Path(path)).ignore))

    files = accepted(outcome.files, remarks, silenced)
    if settings.baseline is None and settings.write_baseline is None:
        return replace(outcome, files=tuple(files))
    lines = {str(gathered.show(path)): lines_of(source.text) for path, source in gathered.as_they_are().items()}
    if settings.write_baseline is not None:
        known = baseline.of(files, lines, settings.write_baseline, dry=settings.dry)
        baseline.save(known)
    else:
        assert settings.baseline is not None
        known = settings.baseline
    files, tolerated = baseline.without_known(files, lines, known)
    return replace(outcome, files=tuple(files), tolerated=frozenset(tolerated))


def in_cells(outcome: Outcome, gathered: Gathered) -> Outcome:
    """The outcome with places in notebooks as a user sees them."""
    notebooks = {
        str(path): source.notebook
        for key, source in gathered.sources.items()
        if source.notebook is not None
        for path in (key, gathered.show(key))
    }
    if not notebooks:
        return outcome
    from migrator.report import cells

    return cells.in_cells(outcome, notebooks)


def _found(paths: Sequence[Path], settings: Settings) -> list[Found]:
    """The files that may be written."""
    from migrator.bridge.support import NAME
    from migrator.source.discovery import SUFFIXES, Found, discover

    if not settings.staged:
        found = discover(paths)
    else:
        from migrator.source.git import staged_files

        found = []
        for path in paths or [Path()]:
            staged = staged_files(path)
            if staged is None:
                raise click.UsageError(f"--staged: {path.absolute()} is not in a git repository, or git failed")
            found += [
                Found(_as_given(file, path), named=False)
                for file in staged
                if file.suffix in SUFFIXES and file.is_file()
            ]
    # What earlier runs wrote for bridged programs belongs to the tool, and to the files beside it.
    folders = dict.fromkeys(os.path.dirname(one.path) for one in found if one.path.name)  # noqa: PTH120 # thousands
    beside = [Path(folder, f"{NAME}.py") for folder in folders]
    known = {one.path for one in found}
    return found + [Found(path, named=False) for path in beside if path not in known and path.is_file()]


def _as_given(file: Path, folder: Path) -> Path:
    """The path of a file, from that of a folder as the user gave it."""
    return folder / file.relative_to(folder.resolve())


def _refused(results: Mapping[Path, Migrated], own: Collection[Path], settings: Settings) -> dict[Path, Refused]:
    """The files that must not be written: those that were not given, and those whose content nobody else has."""
    from migrator.project.together import NOT_NAMED, Refused
    from migrator.project.uncommitted import uncommitted

    changed = [one.source for one in results.values() if one.changed]
    refused = {
        source.path: Refused(source.path, NOT_NAMED, "", "")
        for source in changed
        if source.path not in own and source.raw
    }
    if settings.in_place and not settings.force and not settings.backup:
        refused |= uncommitted([source for source in changed if source.path in own], staged=settings.staged)
    return refused


def _with_not_given(results: Mapping[Path, Migrated], gathered: Gathered) -> dict[Path, Migrated]:
    rewritten = [one.source for one in results.values() if one.changed]
    if not rewritten:
        return dict(results)
    from migrator.not_given import not_given

    missing = not_given(rewritten, [*gathered.given, *gathered.sources])
    return {
        path: replace(one, findings=(*one.findings, *missing.get(path, ()))) if path in missing else one
        for path, one in results.items()
    }


def _written(results: Mapping[Path, Migrated], gathered: Gathered, settings: Settings) -> Outcome:
    """Writes what changes, unless that was not asked for, and returns what became of every file."""
    from migrator.project.report import around_outcomes, outcome_of

    files: list[FileOutcome] = []
    changed: list[tuple[int, Migrated]] = []
    new = [path for path, one in results.items() if not one.source.raw and path not in gathered.given]
    for path in (*new, *gathered.given):
        one = results.get(path)
        if path in gathered.problems or one is None:
            files.append(outcome_of(path, gathered))
            continue
        file = _judged(one, gathered, settings)
        if file.changed:
            changed.append((len(files), one))
        files.append(file)
    files += around_outcomes(results, gathered)
    if settings.out is not None:
        _write_elsewhere(settings.out, [one for _, one in changed], settings)
        for place, _ in changed:
            files[place] = replace(files[place], written=True)
    elif not settings.dry and changed:
        from migrator.source.writing import write_all

        problems = write_all([(one.source, one.text) for _, one in changed], backup=settings.backup)
        for (place, _), problem in equal_zip(changed, problems):
            file = files[place]
            told = [replace(problem, path=file.path)] if problem else []
            files[place] = FileOutcome(
                file.path, problem is None, problem is None, tuple(sorted((*file.findings, *told)))
            )
    return Outcome(tuple(files), settings.dry, settings.check)


def _write_elsewhere(out: Path, changed: Sequence[Migrated], settings: Settings) -> None:
    from migrator.source.elsewhere import ElsewhereError, write_elsewhere
    from migrator.source.reading import encode

    try:
        write_elsewhere(settings.paths, {one.source.path: encode(one.source, one.text) for one in changed}, out)
    except ElsewhereError as error:
        raise _Failed(str(error)) from error


def _check_out(out: Path, paths: Sequence[Path], others: bool) -> None:
    """Wrong usage where a new project cannot be written to `out`."""
    from migrator.source.elsewhere import ElsewhereError, check_folder

    if others:
        raise click.UsageError("--out cannot be combined with --diff, --check, --staged, --backup or stdin")
    try:
        check_folder(out, paths)
    except ElsewhereError as error:
        raise click.UsageError(f"--out: {error}") from None


def _tried(results: Mapping[Path, Migrated]) -> dict[Path, Migrated]:
    """The files of bridged programs whose models are built, as they would be; those of others as they were."""
    from migrator.harness.building import build_models
    from migrator.source.newlines import old_lines

    bridges, sessions = (
        {path for path, one in results.items() if any(finding.code == code for finding in one.findings)}
        for code in ("TFM155", "TFM199")
    )
    built = build_models({path: one.text for path, one in results.items()}, bridges, sessions=sessions)
    done: dict[Path, Migrated] = {}
    for path, one in results.items():
        found = built.findings.get(path, [])
        if path in built.failed:
            kept = [finding for finding in one.findings if finding.code not in ("TFM155", "TFM199")]
            old = old_lines(one.source.text, one.text)
            found = [replace(f, line=old(f.line)) for f in found]
            one = replace(one, text=one.source.text, findings=(*kept, *found))
        else:
            one = replace(one, findings=(*one.findings, *found))
        done[path] = one
    return {path: one for path, one in done.items() if one.source.raw or one.text}


def _stdin(settings: Settings, wishes: Wishes) -> Outcome:
    from migrator.project.gather import Gathered
    from migrator.project.run import Migrated
    from migrator.source.reading import decode, encode, mentions_tensorflow

    raw = sys.stdin.buffer.read()
    before: Mapping[Path, Before] = {}
    if settings.python2:
        from migrator.project.python2 import converted

        before = converted({STDIN: raw}).files
    source = decode(STDIN, before[STDIN].raw if before else raw)
    if isinstance(source, Finding):
        return Outcome((FileOutcome(source.path, False, False, (source,)),), settings.dry, settings.check)
    results = _migrated([[source]] if mentions_tensorflow(source) else [], wishes.of(STDIN), settings, inside=True)
    gathered = Gathered((STDIN,), {STDIN: source}, before=before)
    one = _as_they_were({STDIN: results.get(STDIN, Migrated(source, source.text))}, gathered)[STDIN]
    file = _judged(one, gathered, settings)
    if not settings.dry:
        text = one.text if file.changed else one.source.text
        sys.stdout.buffer.write(encode(source, text))
        file = FileOutcome(file.path, file.changed, file.changed, file.findings)
    return _accepted(Outcome((file,), settings.dry, settings.check), gathered, settings, wishes)


def _judged(one: Migrated, gathered: Gathered, settings: Settings) -> FileOutcome:
    """Shows the patch if that was asked for, and returns the outcome of a text that is not written yet."""
    from migrator.report.diff import to_diff
    from migrator.source.writing import check

    path = gathered.show(one.source.path)
    findings = one.findings
    changed = one.changed
    if changed:
        new = check(one.source, one.text)
        if isinstance(new, Finding):
            changed, findings = False, (*findings, new)
        elif settings.diff:
            sys.stdout.buffer.write(to_diff(path, one.source.raw, new))
    shown = sorted({replace(finding, path=str(path)) for finding in findings})
    return FileOutcome(str(path), changed, written=False, findings=tuple(shown))


def _migrated(
    parts: Sequence[Sequence[Source]], wish: Wish, settings: Settings, inside: bool = False
) -> dict[Path, Migrated]:
    """What the engine makes of the files of programs."""
    if not parts:
        return {}  # most runs of a pre-commit hook: the engine is slow to load
    from migrator.cli.progress import bar
    from migrator.migrate import Options
    from migrator.project.run import EngineError, Means, migrate_parts

    asked = dict(wish)
    options = Options(**asked, bridge=asked["style"] == "auto", inside=inside)
    try:
        with contextlib.ExitStack() as stack:
            cache = None
            if settings.cache and not inside and not os.environ.get("TF_MIGRATE_TRACEBACK"):
                from migrator.project.cache import Cache

                cache = stack.enter_context(Cache())
            advance = stack.enter_context(bar("Migrating", settings.bar))
            return migrate_parts(parts, options, Means(settings.jobs, cache, advance))
    except EngineError as error:
        raise _InternalError(error) from error


class _Failed(click.ClickException):
    exit_code = int(ExitCode.FAILED)


class _InternalError(click.ClickException):
    exit_code = int(ExitCode.FAILED)

    def __init__(self, error: Exception) -> None:
        super().__init__(
            f"internal error: {error}. No file was changed. Please report it, with "
            "the output of the same command under TF_MIGRATE_TRACEBACK=1."
        )


def _report(outcome: Outcome, form: str, stream: str, quiet: bool, verbose: bool) -> None:
    out = sys.stdout if stream == "stdout" else sys.stderr
    if form in _RENDERERS:
        module, function = _RENDERERS[form]
        try:
            render = getattr(importlib.import_module(module), function)
        except ModuleNotFoundError as error:
            from migrator.cli.extras import MissingExtra

            raise MissingExtra(error.name or module) from error
        out.write(render(outcome))
        return
    from migrator.report.text import print_text

    print_text(outcome, out, quiet=quiet, verbose=verbose)
