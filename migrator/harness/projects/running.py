"""Verifies the programs of a project: those that need the same packages in one session, so that TensorFlow is imported
once a side.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from migrator.harness import session as sessions
from migrator.harness.case import Case, CaseError, make_case
from migrator.harness.environments import Extra, first_python, migrated_python, original_python
from migrator.harness.notebook_scripts import as_script
from migrator.harness.projects.programs import Program
from migrator.harness.projects.settings import VerifySettings
from migrator.harness.protocol.l6_asynchronous import RECOMMENDED_SEEDS
from migrator.harness.protocol.results import Status
from migrator.harness.report import Report, write
from migrator.harness.report.evidence import Document
from migrator.harness.runs import OnProgress, Session
from migrator.source.notebooks import NotebookError

SKIPPED = "SKIPPED"
#: The worst first.
ORDER = (Status.FAILED.value, Status.DIFFERENT.value, Status.INCONCLUSIVE.value, Status.EQUIVALENT.value, SKIPPED)


@dataclass(frozen=True)
class Trees:
    """The project as it was, and as it is. `revision` is what the first is called.

    One of the folders is gone when its reports are read: `gone` is that folder, and what stands for it and the slash
    behind it there, as `HEAD:` in `HEAD:train.py`.
    """

    original: Path
    migrated: Path
    revision: str
    gone: tuple[Path, str]


@dataclass(frozen=True)
class Asked:
    """What holds for all programs of a run: the project's settings, and what the command line says instead of them.

    `options` are fields of a Case. `arguments` (None: those of the settings) go to every program, `extra` to the
    environments. `base` are the words of the command line that ask for the same revision. Relative paths of the
    settings are below `folder`.
    """

    settings: VerifySettings
    folder: Path
    options: Mapping[str, Any] = field(default_factory=dict)
    arguments: tuple[str, ...] | None = None
    extra: Extra = field(default_factory=Extra)
    base: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    runner: str = "local"


@dataclass(frozen=True)
class Result:
    """What came of one program: a verdict (or SKIPPED) in a sentence; times in seconds.

    `report` is None where nothing was compared, and `error` says then that something is wrong with the case itself.
    """

    program: Program
    status: str
    summary: str
    seconds: float = 0.0
    report: Report | None = None


OnProgram = Callable[[Program, int, int], OnProgress]


def verify_programs(
    programs: Sequence[Program], trees: Trees, asked: Asked, folder: Path, on_program: OnProgram
) -> Iterator[Result]:
    """Verifies each program and writes its report below `folder`, yielding results as they are found, not in order.

    Raises ForkServerError and EnvironmentNotReady; anything that is wrong with one program is its own result.
    """
    groups: dict[tuple[int, Extra], list[Program]] = {}
    for program in programs:
        if program.skipped:
            yield Result(program, SKIPPED, program.skipped)
        else:
            groups.setdefault((int(program.settings.keras), _extra(program, asked)), []).append(program)
    total = sum(map(len, groups.values()))
    done = 0
    for (keras, extra), some in groups.items():
        with ExitStack() as stack:
            session: Session | None = None
            for program in some:
                done += 1
                progress = on_program(program, done, total)
                started = time.monotonic()
                with ExitStack() as notebooks:
                    try:
                        case, names = case_of(program, trees, asked, notebooks)
                        if session is None:
                            pythons = original_python(extra=extra), migrated_python(extra=extra)
                            first = partial(first_python, extra=extra)
                            opened = sessions.open_session(
                                *pythons, keras=keras, runner=asked.runner, first_python=first
                            )
                            session = stack.enter_context(opened)
                        case = replace(case, log_dir=folder / place_of(program) / "logs")
                        report = renamed(sessions.verify(case, progress, session=session), names)
                    except CaseError as error:
                        yield Result(program, Status.FAILED.value, str(error), time.monotonic() - started)
                        continue
                write(report, folder / place_of(program))
                yield Result(program, report.status.value, report.summary, time.monotonic() - started, report)


def place_of(program: Program) -> Path:
    """Where a program's own report is, below the folder of all."""
    return Path("programs", program.name.replace("/", "~").replace("\\", "~").lstrip("."))


def case_of(program: Program, trees: Trees, asked: Asked, notebooks: ExitStack) -> tuple[Case, dict[str, str]]:
    """The comparison of a program with its original, and what paths that are gone soon are to be called, in order.

    Scripts that are made of notebooks are there as long as `notebooks`. Raises CaseError for what cannot be run.
    """
    own, common = program.settings, asked.settings
    script = program.original or program.script
    tree = trees.migrated if program.original is not None else trees.original
    revision = program.script if program.original is not None else f"{trees.revision}:{program.script}"
    original, migrated = tree / script, trees.migrated / program.script
    if not original.is_file():
        raise CaseError(f"there is no original: {revision} does not exist")
    if not migrated.is_file():
        raise CaseError(f"the script {program.script} does not exist")
    names: dict[str, str] = {}
    scripts = []
    for path, called in ((original, revision), (migrated, str(program.script))):
        try:
            made = notebooks.enter_context(as_script(path))
        except NotebookError as error:
            raise CaseError(f"{called}: {error}") from None
        if made != path:
            names |= {str(made): str(path), f"{made.parent}/": f"{path.parent}/"}
        scripts.append(made)
    names[f"{trees.gone[0]}/"] = trees.gone[1]
    folders = tree / program.folder, trees.migrated / program.folder
    if program.module and program.original is not None:
        folders = tree / _above(program.original, program.module), folders[1]
    options: dict[str, Any] = {
        "cluster": own.cluster,
        "steps": own.steps or common.steps or None,
        "keras": int(own.keras),
        "devices": own.devices,
        "tpu_cores": own.tpu_cores,
        "total_timeout": own.timeout or common.timeout,
        "stall_timeout": own.stall_timeout or common.stall_timeout,
        "allow_writes": own.allow_writes,
        "original_runs": own.original_tensorflow,
        "all_mutants": own.full,
        "seeds": RECOMMENDED_SEEDS if own.full else 0,
        "stdin": asked.folder / own.stdin if own.stdin else None,
        "names": _names(asked.folder / own.name_map) if own.name_map else {},
        "kept": True,
        **asked.options,
    }
    said = ("-m", program.module) if program.module else (str(program.script),)
    case = make_case(
        *scripts,
        args=own.args if asked.arguments is None else asked.arguments,
        module=program.module,
        folders=folders,
        command=("tf-migrate", "verify", *said, *asked.base),
        options=asked.words,
        **options,
    )
    return case, names


def renamed(report: Report, names: Mapping[str, str]) -> Report:
    """The report with other names for the files in folders that are gone soon."""

    def change(value: Any) -> Any:
        if isinstance(value, str):
            for path, name in names.items():
                value = value.replace(path, name)
            return value
        if isinstance(value, dict):
            return {key: change(item) for key, item in value.items()}
        return [change(item) for item in value] if isinstance(value, list) else value

    document: Document = change(report.document)
    return Report(document)


def _above(script: Path, module: str) -> Path:
    """The folder that a module is looked up in, from its file."""
    parts = len(module.split(".")) + (script.name == "__main__.py")
    return script.parents[parts - 1]


def _extra(program: Program, asked: Asked) -> Extra:
    files = (*asked.settings.requirements, *program.settings.requirements)
    packages = (*asked.settings.packages, *program.settings.packages)
    return Extra(
        tuple(dict.fromkeys([*asked.extra.files, *(asked.folder / one for one in files)])),
        tuple(dict.fromkeys([*asked.extra.packages, *packages])),
    )


def _names(path: Path) -> dict[str, str]:
    try:
        names = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise CaseError(f"the map of names {path} cannot be read: {error}") from None
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise CaseError(f"{path} is not a JSON object from names to names")
    return names
