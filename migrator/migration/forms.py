"""The ways in which a group of programs is tried: on a TPU or without, all together or apart."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import libcst as cst

from migrator.apart import Apart, InTheWay
from migrator.findings import Finding, Severity
from migrator.migration.isolation import isolated
from migrator.migration.native.migration import NativeMigration
from migrator.migration.reading import files_of
from migrator.migration.state import Group, Request
from migrator.program.borrowed import names_read
from migrator.program.tpu_programs import without_tpu
from migrator.program.training import TrainingProgram
from migrator.targets.registry import AUTO

_WHY = "the TPU form is blocked"


def migrate_group(group: Group, request: Request) -> tuple[dict[Path, str], dict[Path, list[Finding]]]:
    """New texts of a group's files, or none of them and what stood in the way.

    Programs whose flag asks for a TPU come out as they run without one, where they cannot be carried over to a TPU.
    Where nothing but drivers is in the way, they stay, and another object takes the place of their Estimators.
    """
    made = NativeMigration(group, request)
    texts, native = isolated(group, made.run)
    if not texts and made.by_drivers:
        flowing = _flowing(group, request)
        other = ({}, {}) if flowing is None else isolated(flowing, lambda: NativeMigration(flowing, request).run())
        if other[0]:
            return other
    by_flag = [program for program in group.programs if program.tpu is not None and program.tpu.flag is not None]
    if not texts and by_flag and request.asked is AUTO:
        without_any = Group(_by_flag(group.programs, _WHY), group.files)
        texts, findings = isolated(group, lambda: NativeMigration(without_any, request).run())
        first = next(f for found in native.values() for f in found if f.severity is Severity.MANUAL)
        why = f"a TPU form is blocked at {first.path}:{first.line} ({first.code}: {first.message})"
        if texts:
            return texts, {
                path: [replace(f, message=f.message.replace(_WHY, why)) for f in found]
                for path, found in findings.items()
            }
    if texts:
        return texts, native

    def of(programs: Sequence[TrainingProgram]) -> Group:
        return Group(list(programs), {f.path: f for p in programs for f in files_of(request.project, p)})

    exported: dict[Path, Collection[str]] = {}

    def native_form(programs: Sequence[TrainingProgram], stays: Collection[Path]) -> tuple[dict[Path, str], InTheWay]:
        group = of(programs)
        made = NativeMigration(group, replace(request, blocked_files={}, for_both=frozenset(stays)))

        def prepare() -> tuple[dict[Path, str], dict[Path, list[Finding]]]:
            made.prepare()
            exported.update(made.only_exported)
            return {}, {}

        _, failed = isolated(group, prepare)
        if failed:
            return {}, lambda: failed
        if made.stuck:  # files are written for what else stands in the way, where somebody asks for that
            return {}, lambda: isolated(group, made.finish)[1]
        texts, found = isolated(group, made.finish)
        return texts, lambda: found

    def without_tpus(programs: Sequence[TrainingProgram], stays: Collection[Path]) -> tuple[dict[Path, str], InTheWay]:
        return native_form(_by_flag(programs, _WHY), stays)

    forms = (native_form, without_tpus) if by_flag and request.asked is AUTO else (native_form,)
    shared = {path: home for path, home in request.blocked_files.items() if path in group.files}
    files, names = partial(files_of, request.project), partial(names_read, request.project)
    found = Apart(group.programs, forms, files, shared, exported, names).migrate()
    return found if found is not None else ({}, _told(group, native))


def _flowing(group: Group, request: Request) -> Group | None:
    """The group with such of its programs as can be read so as ones whose drivers stay; None where there are none."""
    made: dict[cst.Call, list[TrainingProgram]] = {}
    for program in group.programs:
        if program.flowing is None and program.place.call not in made:
            made[program.place.call] = request.flowing(program)
    if not any(made.values()):
        return None
    stay = [one for one in group.programs if not made.get(one.place.call)]
    programs = [*stay, *(one for found in made.values() for one in found)]
    return Group(programs, {f.path: f for one in programs for f in files_of(request.project, one)})


def refused_group(group: Group, request: Request) -> tuple[dict[Path, str], dict[Path, list[Finding]]]:
    """What else stands in the way of programs that cannot be read, so that all of it is told at once; no texts."""
    return {}, NativeMigration(group, request).refused()


def _told(group: Group, findings: dict[Path, list[Finding]]) -> dict[Path, list[Finding]]:
    """The findings of a group that stays as it is, and a word for each program in which nothing stands in the way."""
    blocking = [f for found in findings.values() for f in found if f.severity is Severity.MANUAL]
    told = {Path(finding.path) for finding in blocking}
    for program in group.programs:
        if blocking and not told & {program.file.path, program.model_file.path}:
            first = blocking[0]
            message = f"it shares files with a program that is blocked at {first.path}:{first.line}: all or none change"
            finding = program.file.finding("TFM114", Severity.MANUAL, program.place.call, message)
            findings.setdefault(program.file.path, []).append(finding)
    return findings


def _by_flag(programs: Sequence[TrainingProgram], why: str) -> list[TrainingProgram]:
    """The programs, those whose flag asks for a TPU as they run without one."""
    return [p if p.tpu is None or p.tpu.flag is None else without_tpu(p, why) for p in programs]
