"""Programs that share files with blocked ones: which of them are migrated without these.

A program that stays as it is runs on TensorFlow 1.15. So the modules that it shares with a migrated one must run there
as well, and those that drive another program must stay what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from migrator.findings import Finding, Severity
from migrator.program.borrowed import not_to_borrow
from migrator.program.parsed import ParsedFile
from migrator.program.shared import runs_in_both
from migrator.program.training import TrainingProgram

Findings = dict[Path, list[Finding]]
#: Says what stands in the way of programs, and what else is to be told of them, when that is asked.
InTheWay = Callable[[], Findings]
#: Migrates some programs together: their new texts, or none where something stands in the way. The files that programs
#: which stay as they are read, too, are written to run in TensorFlow 1.15 as well.
Migrate = Callable[[Sequence[TrainingProgram], Collection[Path]], tuple[dict[Path, str], InTheWay]]


@dataclass(frozen=True)
class _Clash:
    """A file that would not do for a program that stays, and why."""

    path: Path
    message: str


@dataclass(frozen=True)
class Apart:
    """What is needed to tell the programs of one group apart.

    `forms` are the ways to migrate programs, the best first. `files_of` gives the files of a program. `blocked_files`
    are those of programs that cannot be read, each with the file that holds such a program's Estimator. `exported`
    are the symbols of functions that nothing but exports of migrated programs run, by file; the forms fill it.
    `names_read` gives the names of one file that others read, None where that is not known.
    """

    programs: Sequence[TrainingProgram]
    forms: Sequence[Migrate]
    files_of: Callable[[TrainingProgram], Sequence[ParsedFile]]
    blocked_files: Mapping[Path, Path]
    exported: Mapping[Path, Collection[str]]
    names_read: Callable[[Path, Collection[Path]], Collection[str] | None]

    def migrate(self) -> tuple[dict[Path, str], Findings] | None:
        """The new texts of the programs that nothing of their own blocks, and all findings; None where that is none."""
        files = {id(program): {f.path: f for f in self.files_of(program)} for program in self.programs}
        closures = {id(program): self._closure(program, files) for program in self.programs}
        if not self.blocked_files and all(len(closure) == len(self.programs) for closure in closures.values()):
            return None
        tried: dict[frozenset[int], InTheWay | None] = {}
        good: list[TrainingProgram] = []
        bad: dict[int, InTheWay] = {}
        for program in self.programs:
            closure = closures[id(program)]
            key = frozenset(map(id, closure))
            if key not in tried:
                texts, in_the_way = self._first(closure)
                tried[key] = None if texts else in_the_way
            stopped = tried[key]
            if stopped is not None:
                bad[id(program)] = partial(self._own, program, stopped)
            else:
                good.append(program)
        innocent = {path for program in good for path in (program.file.path, program.model_file.path)}
        stays = dict(self.blocked_files)
        while True:
            for program in self.programs:
                if id(program) in bad:
                    stays.update((path, program.file.path) for path in files[id(program)] if path not in stays)
            kept = self._own_files(bad) & stays.keys()
            used = [(p, path) for p in good for path in (p.file.path, p.model_file.path) if path in kept]
            for program, path in used:
                message = f"`{stays[path]}`, whose program is blocked, uses this file: migrate the others without it"
                bad[id(program)] = partial(_blocked, program, message)
            good = [program for program in good if id(program) not in bad]
            if not good:
                return None
            if used:
                continue
            done = self._together(good, files, stays)
            if not isinstance(done, _Clash):
                break
            for program in good:
                if done.path in files[id(program)]:
                    bad[id(program)] = partial(_blocked, program, done.message)
            good = [program for program in good if id(program) not in bad]
        if done is None:
            return None
        texts, findings = done
        changed = {path for program in good for path in files[id(program)]}
        for stopped in bad.values():
            for path, lines in stopped().items():
                if path in changed:  # what blocks a program there is told in its own file
                    continue
                if path in innocent:
                    lines = [line for line in lines if line.code == "TFM114"]
                known = findings.setdefault(path, [])
                known += [line for line in lines if line not in known]
        return texts, findings

    def _closure(self, program: TrainingProgram, files: Mapping[int, Collection[Path]]) -> list[TrainingProgram]:
        """A program, and those whose own files it uses."""
        found = [program]
        for one in found:
            for other in self.programs:
                own = {other.file.path, other.model_file.path}
                if not any(other is known for known in found) and own & set(files[id(one)]):
                    found.append(other)
        return [other for other in self.programs if any(other is known for known in found)]

    def _own_files(self, bad: Collection[int]) -> set[Path]:
        """The files that make the Estimators of programs which stay, or hold their model_fns."""
        stuck = [program for program in self.programs if id(program) in bad]
        own = {path for program in stuck for path in (program.file.path, program.model_file.path)}
        return own | set(self.blocked_files.values())

    def _first(self, programs: Sequence[TrainingProgram]) -> tuple[dict[Path, str], InTheWay]:
        """The first form that carries programs over, or what stands in the way of the last."""
        for form in self.forms:
            texts, found = form(programs, ())
            if texts:
                break
        return texts, found

    def _together(
        self,
        good: Sequence[TrainingProgram],
        files: Mapping[int, Mapping[Path, ParsedFile]],
        stays: Mapping[Path, Path],
    ) -> tuple[dict[Path, str], Findings] | _Clash | None:
        """The programs that come out; or a file that would not do for one that stays; None where they do not agree."""
        old = {path: file for program in good for path, file in files[id(program)].items()}
        driving = {path for program in good for path in (program.file.path, program.model_file.path)}
        found: _Clash | None = None
        for form in self.forms:
            texts, told = form(good, stays)
            changed = [path for path in sorted(stays.keys() & texts.keys()) if texts[path] != old[path].text]
            clashes = [self._clash(old[p], texts[p], stays, p in driving) for p in changed]
            clash = next((clash for clash in clashes if clash is not None), None)
            if not texts or clash is not None:
                found = clash or found
                continue
            findings = told()
            for path in changed:
                other = stays[path]
                message = f"`{other}`, which is unchanged, uses this file: it runs in TensorFlow 1.15 as well as in 2"
                findings.setdefault(path, []).append(old[path].finding("TFM424", Severity.REVIEW, None, message))
            return texts, findings
        return found

    def _clash(self, old: ParsedFile, new: str, stays: Mapping[Path, Path], drives: bool) -> _Clash | None:
        """Why a new file would not do for a program that stays; `drives`: it is the main file of one that does not."""
        path, exported = old.path, self.exported.get(old.path, ())
        if not drives:
            if runs_in_both(old.text, new, exported):
                return None
            return _Clash(path, f"`{path}` would no longer run in TensorFlow 1.15, where `{stays[path]}` needs it")
        names = self.names_read(path, {*stays, *stays.values()})
        lost = not_to_borrow(old.text, new, names, exported)
        if lost is None:
            return None
        message = (
            f"`{stays[path]}`, whose program is blocked, uses this file, and {lost}: migrate the others without it"
        )
        return _Clash(path, message)

    def _own(self, program: TrainingProgram, in_the_way: InTheWay) -> Findings:
        """What blocks a program, one of it in the file of its Estimator."""
        found = in_the_way()
        blocking = [line for lines in found.values() for line in lines if _blocks(line)]
        if blocking and not any(line.path == str(program.file.path) for line in blocking):
            first = blocking[0]
            message = f"this Estimator's program is blocked at {first.path}:{first.line}: {first.message}"
            finding = program.file.finding(first.code, Severity.MANUAL, program.place.call, message)
            found = {**found, program.file.path: [*found.get(program.file.path, []), finding]}
        return found


def _blocks(finding: Finding) -> bool:
    return finding.severity is Severity.MANUAL and finding.code != "TFM114"


def _blocked(program: TrainingProgram, message: str) -> Findings:
    return {program.file.path: [program.file.finding("TFM114", Severity.MANUAL, program.place.call, message)]}


__all__ = ["Apart", "InTheWay"]
