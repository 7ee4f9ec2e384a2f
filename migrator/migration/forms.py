"""The forms that a group of programs is tried in: native or mapped, on a TPU or without, all together or apart."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from migrator.apart import Apart, Migrate
from migrator.emit.mapped import Style, both_blocked
from migrator.findings import Finding, Severity
from migrator.migration.isolation import isolated
from migrator.migration.mapped import MappedMigration
from migrator.migration.native import NativeMigration
from migrator.migration.reading import files_of
from migrator.migration.state import Group, Request
from migrator.program.borrowed import names_read
from migrator.program.tpu import without_tpu
from migrator.program.training import TrainingProgram
from migrator.targets.registry import AUTO

_WHY = "on a TPU something is in the way"


def migrate_group(group: Group, request: Request, style: Style) -> tuple[dict[Path, str], dict[Path, list[Finding]]]:
    """New texts of a group's files, or none of them and what stood in the way.

    Programs whose flag asks for a TPU come out as they run without one, where they cannot be carried over to a TPU.
    """
    keras = request.keras
    if style is Style.MAPPED and not keras.runs_tensorflow1:
        message = "the mapped style runs TensorFlow 1 code in a model, which only Keras 2 can: leave `--keras 3` out"
        refused: dict[Path, list[Finding]] = {}
        for program in group.programs:
            finding = program.file.finding("TFM870", Severity.MANUAL, program.place.call, message)
            refused.setdefault(program.file.path, []).append(finding)
        return {}, refused
    texts, native, findings = _in_styles(group, request, style)
    by_flag = [program for program in group.programs if program.tpu is not None and program.tpu.flag is not None]
    if not texts and by_flag and request.asked is AUTO:
        before = native, findings
        texts, native, findings = _in_styles(Group(_by_flag(group.programs, _WHY), group.files), request, style)
        # What stood in the way on a TPU is what did in the style that now carries the program over.
        ways = before[0] if findings is native else before[1]
        first = next(f for found in ways.values() for f in found if f.severity is Severity.MANUAL)
        why = f"on a TPU something is in the way at {first.path}:{first.line} ({first.code}: {first.message})"
        findings = {
            path: [replace(f, message=f.message.replace(_WHY, why)) for f in found] for path, found in findings.items()
        }
    if texts or style is Style.NATIVE or not keras.runs_tensorflow1:
        return texts, findings if texts else _told(group, findings)

    def of(programs: Sequence[TrainingProgram]) -> Group:
        return Group(list(programs), {f.path: f for p in programs for f in files_of(request.project, p)})

    exported: dict[Path, Collection[str]] = {}

    def form(migration: type[NativeMigration]) -> Migrate:
        def migrate(
            programs: Sequence[TrainingProgram], stays: Collection[Path]
        ) -> tuple[dict[Path, str], dict[Path, list[Finding]]]:
            group = of(programs)

            def run() -> tuple[dict[Path, str], dict[Path, list[Finding]]]:
                made = migration(group, replace(request, blocked_files={}, for_both=frozenset(stays)))
                done = made.run()
                exported.update(made.only_exported)
                return done

            return isolated(group, run)

        return migrate

    def without(form: Migrate) -> Migrate:
        return lambda programs, stays: form(_by_flag(programs, _WHY), stays)

    kinds = (MappedMigration,) if style is Style.MAPPED else (NativeMigration, MappedMigration)
    forms: tuple[Migrate, ...] = tuple(form(kind) for kind in kinds)
    if by_flag and request.asked is AUTO:
        forms += tuple(without(form) for form in forms)
    shared = {path: home for path, home in request.blocked_files.items() if path in group.files}
    files, names = partial(files_of, request.project), partial(names_read, request.project)
    found = Apart(group.programs, forms, files, shared, native, exported, names).migrate()
    if found is not None:
        return found
    return {}, _told(group, findings if style is Style.MAPPED else both_blocked(native, findings))


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


def _in_styles(
    group: Group, request: Request, style: Style
) -> tuple[dict[Path, str], dict[Path, list[Finding]], dict[Path, list[Finding]]]:
    """New texts of a group's files in the first style that carries them over; the findings of the native one, and all
    of the last.
    """
    native: dict[Path, list[Finding]] = {}
    if style is not Style.MAPPED:
        texts, native = isolated(group, lambda: NativeMigration(group, request).run())
        if texts or style is Style.NATIVE or not request.keras.runs_tensorflow1:
            return texts, native, native
    reasons = [finding for findings in native.values() for finding in findings]
    texts, findings = isolated(group, lambda: MappedMigration(group, request, reasons).run())
    return texts, native, findings
