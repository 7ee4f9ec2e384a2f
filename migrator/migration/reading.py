"""The programs of a project, and which of them share files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import libcst as cst

from migrator.findings import Finding, Severity
from migrator.migration.everything import Everything
from migrator.migration.isolation import blocked_by
from migrator.migration.state import Group
from migrator.program import npus
from migrator.program.each_use import check_each_use
from migrator.program.flow import InFile
from migrator.program.flowing import read_flowing
from migrator.program.parsed import Blocked, ParsedFile, Project
from migrator.program.refusals import Refusals
from migrator.program.subclasses import estimator_subclasses
from migrator.program.tpu_programs import on_tpu
from migrator.program.training import NOT_NAMED, Place, TrainingProgram, is_estimator, read_programs
from migrator.rules.wrapped import check_not_wrapped

_OF_HOROVOD = "native forms are unsupported for Horovod"
_PART_OF_PROGRAMS = (
    "tf.estimator.Estimator",
    "tf.estimator.EstimatorSpec",
    "tf.estimator.RunConfig",
    "tf.estimator.TrainSpec",
    "tf.estimator.EvalSpec",
    "tf.estimator.train_and_evaluate",
)


@dataclass(frozen=True)
class AllPrograms:
    """The programs that can be migrated, and those `refused`, as far as these could be read.

    `blocked` are the files of those that cannot, each with the file that holds the Estimator. `flowing` reads a program
    as one whose driver stays; there is none where that is refused.
    """

    programs: list[TrainingProgram]
    refused: list[TrainingProgram]
    blocked: dict[Path, Path]
    flowing: Callable[[TrainingProgram], list[TrainingProgram]]


def read_all(
    project: Project,
    everything: Everything,
    places: Mapping[Path, list[Place]],
    findings: dict[Path, list[Finding]],
) -> AllPrograms:
    """Reads the programs around all Estimators; what is refused of one is told in the findings, all of it."""
    programs: list[TrainingProgram] = []
    refused: list[TrainingProgram] = []
    blocked: dict[Path, Path] = {}

    def block(file: ParsedFile, problem: Blocked, place: cst.CSTNode) -> None:
        for shared in _reach(project, [file]):
            if shared is file:
                blocked[shared.path] = file.path
            blocked.setdefault(shared.path, file.path)
        where = problem.file if isinstance(problem, InFile) else file
        where = next((f for f in (where, *project.files) if problem.node in f.parents), where)
        finding = where.finding(problem.code, Severity.MANUAL, problem.node or place, problem.message)
        findings.setdefault(where.path, []).append(finding)
        if where is not file:
            message = f"this Estimator's program is blocked at {finding.path}:{finding.line}: {problem.message}"
            findings.setdefault(file.path, []).append(file.finding(problem.code, Severity.MANUAL, place, message))
        if problem.code != "TFM160":
            distributed = _horovod(_reach(project, [file]), findings)
            if distributed is not None:
                findings.setdefault(Path(distributed.path), []).append(distributed)

    for file in project.files:
        made_for_npus = npus.estimators(file)
        adapted = npus.adapted(_reach(project, [file])) if places.get(file.path) or made_for_npus else None
        if adapted is not None:
            for made in made_for_npus:
                block(file, Blocked("TFM182", made, npus.MESSAGE), made)
        for place in places.get(file.path, []):
            refusals = Refusals()
            read: list[TrainingProgram] = []
            try:
                if is_estimator(place.name):
                    if adapted is not None:
                        refusals.add(InFile(adapted, "TFM182", npus.imported(adapted), npus.MESSAGE))
                    check_not_wrapped(file, place.function, place.call)
                    around = project, everything.mentioning, file, place, places[file.path]
                    found = read_programs(*around, refusals)
                    if found and not refusals:
                        check_each_use(file, place, everything.around(file), refusals)
                    if refusals and adapted is None:
                        followed = Refusals()
                        nothing: list[TrainingProgram] = []
                        flowing = followed.of(partial(read_flowing, *around, followed), nothing)
                        found, refusals = (
                            (flowing, followed) if flowing and not followed else (found, _told(refusals, followed))
                        )
                    distributed = next(filter(None, map(_imported_horovod, _reach(project, [file]))), None)
                    if distributed is not None and not any(one.code == "TFM160" for one in refusals.found):
                        refusals.add(InFile(distributed[0], "TFM160", distributed[1], _OF_HOROVOD))
                    for one in found:
                        asked = partial(on_tpu, one, everything.wants_tpus, everything.keras, project.files)
                        read.append(refusals.of(asked, one))
                elif _is_foreign(place.name):
                    message = f"`{place.name}` is unsupported, and was removed in TensorFlow 2.16"
                    refusals.refuse("TFM102", place.call, message)
            except Blocked as refusal:
                refusals.add(refusal)
            except Exception as error:
                refusals.add(blocked_by(error, place.call))
            if refusals:
                refused += read
            else:
                programs += read
            for problem in refusals.found:
                block(file, problem, place.call)
        for node, name, _ in estimator_subclasses(file):
            message = f"`{node.name.value}` is derived from `{name}`: use the bridge"
            block(file, Blocked("TFM181", node.name, message), node)

    def flowing_of(program: TrainingProgram) -> list[TrainingProgram]:
        followed = Refusals()
        around = project, everything.mentioning, program.file, program.place, places[program.file.path]
        nothing: list[TrainingProgram] = []
        found = followed.of(partial(read_flowing, *around, followed), nothing)
        return [] if followed else found

    return AllPrograms(programs, refused, blocked, flowing_of)


def _told(refusals: Refusals, followed: Refusals) -> Refusals:
    """Why a program stays as it is: where its Estimator goes elsewhere, what is in the way there."""
    told = Refusals()
    for one in refusals.found:
        for instead in followed.found if (one.code, one.message) == ("TFM103", NOT_NAMED) and followed else [one]:
            told.add(instead)
    return told


def _horovod(files: Iterable[ParsedFile], findings: Mapping[Path, list[Finding]]) -> Finding | None:
    """What a program that Horovod distributes has to be told, whatever else stands in its way."""
    for file in files:
        found = _imported_horovod(file)
        if found is not None and not any(f.code == "TFM160" for f in findings.get(file.path, ())):
            return file.finding("TFM160", Severity.MANUAL, found[1], _OF_HOROVOD)
    return None


def _imported_horovod(file: ParsedFile) -> tuple[ParsedFile, cst.CSTNode | None] | None:
    """The file, and its first import of Horovod."""
    names = [name for name, origin in file.imports.names.items() if origin.startswith("horovod.")]
    return (file, file.imports.nodes.get(names[0])) if names else None


def _is_foreign(name: str) -> bool:
    last = name.rpartition(".")[2]
    return name not in _PART_OF_PROGRAMS and (
        last.endswith(("Estimator", "Classifier", "Regressor", "_to_estimator", "Experiment"))
    )


def groups_of(project: Project, programs: Iterable[TrainingProgram]) -> list[Group]:
    """The programs in groups that share files."""
    groups: list[Group] = []
    for program in programs:
        files = {f.path: f for f in files_of(project, program)}
        merged = Group([program], files)
        rest = []
        for group in groups:
            if group.files.keys() & files.keys():
                merged.programs[:0] = group.programs
                merged.files.update(group.files)
            else:
                rest.append(group)
        groups = [*rest, merged]
    return groups


def files_of(project: Project, program: TrainingProgram) -> list[ParsedFile]:
    """The program's files: driver, model, and the modules beside them that they import and that use TensorFlow."""
    used: list[ParsedFile] = []
    if program.flowing is not None:
        used += [file for use in program.flowing.uses for file in (use.file, *use.homes)]
        used += [file for file, *_ in (*program.flowing.both, *program.flowing.configs)]
        used += [file for file, _ in program.flowing.config_asks]
    return _reach(project, [program.file, program.model_file, *used])


def _reach(project: Project, files: Iterable[ParsedFile]) -> list[ParsedFile]:
    """Files and the modules beside them that they import, directly or not, and that use TensorFlow."""
    found: list[ParsedFile] = []
    queue = list(files)
    while queue:
        file = queue.pop()
        if any(file is other for other in found):
            continue
        found.append(file)
        for origin in file.imports.names.values():
            parts = origin.split(".")
            for length in range(len(parts), 0, -1):
                other = project.sibling(file, ".".join(parts[:length]))
                if other is not None:
                    queue.append(other)
                    break
    return found
