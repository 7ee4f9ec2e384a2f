"""Which programs of a project are verified, and how each is started: from its settings, and from what changed."""

from __future__ import annotations

import ast
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path

from migrator.bridge.files import Imports, read_imports
from migrator.harness.building import way_to_run
from migrator.harness.projects.settings import ProgramSettings, VerifySettings
from migrator.names.standing import has_estimators
from migrator.program.relevant import is_concerned, trains_by_hand
from migrator.source.discovery import module_files
from migrator.source.reading import is_notebook
from migrator.syntax import tree_of

#: Files that are run by other tools, although nothing imports them.
_NO_SCRIPTS = ("setup.py", "conftest.py", "noxfile.py")


class ProgramError(ValueError):
    """A program of the settings that cannot be; the message names it and says why."""


@dataclass(frozen=True)
class Program:
    """A program to verify. Paths are relative to the project's root.

    `script` is its file, which is run as `module` if that is not empty, with `folder` as the working directory. It
    has its `original` there if that is not taken from the revision. `skipped` says why it is not run.
    """

    name: str
    script: Path
    folder: Path = Path()
    module: str = ""
    original: Path | None = None
    settings: ProgramSettings = field(default_factory=ProgramSettings)
    skipped: str = ""


def listed(settings: VerifySettings, root: Path, folder: Path) -> tuple[Program, ...]:
    """The programs of the settings, whose paths are relative to `folder`. Raises ProgramError."""
    return tuple(_listed(name, one, root, folder) for name, one in settings.programs.items())


def discovered(
    before: Mapping[Path, str], now: Mapping[Path, str], root: Path, folder: Path, within: Collection[Path]
) -> tuple[Program, ...]:
    """The scripts and notebooks that have an Estimator, or train by hand, and changed: they or what they import.

    `before` and `now` are the texts of the project's Python files and notebooks, by paths relative to its root. Plain
    scripts run in `folder`, those of packages that import relatively as modules where their package is, notebooks where
    they are. Only those below one of the paths `within` (relative; none: all).
    """
    changed = {path for path, text in before.items() if _differs(text, now.get(path, ""))}
    if not changed:
        return ()
    absolute = {root / path: text for path, text in before.items()}
    imports = read_imports(absolute)
    trains = {path for path, text in absolute.items() if is_concerned(text) and _trains(text)}
    found = []
    for path in sorted(before):
        script = root / path
        if not _may_be_script(path, before[path], imports, script) or not _inside(path, within) or path not in now:
            continue
        reached = set(imports.reach(script))
        if reached & trains and any(root / one in reached for one in changed):
            found.append(_found(path, imports, root, folder))
    return tuple(found)


def unchanged(
    programs: Iterable[Program], before: Mapping[Path, str], now: Mapping[Path, str], root: Path, revision: str
) -> tuple[Program, ...]:
    """The programs, those marked as skipped that are taken from a revision and are there as they are now."""
    changed = {root / path for path, text in before.items() if _differs(text, now.get(path, ""))}
    imports = read_imports({root / path: text for path, text in before.items()}) if changed else None
    found = []
    for one in programs:
        script = root / one.script
        moved = imports is not None and bool(changed & set(imports.reach(script)))
        if one.original is None and not one.skipped and one.script in before and not moved:
            one = replace(one, skipped=f"it is as it was at {revision}, and all that it imports")
        found.append(one)
    return tuple(found)


def shard(programs: Iterable[Program], number: int, of: int) -> tuple[Program, ...]:
    """The programs of part `number` (from 1) of `of`. Which one a program is in depends on its name alone."""
    return tuple(one for one in programs if int(sha256(one.name.encode()).hexdigest(), 16) % of == number - 1)


def without_doubles(programs: Iterable[Program]) -> tuple[Program, ...]:
    """The first program of each script, so that one of the settings stands for the one that was found there; programs
    of the settings may share a script.
    """
    found: list[Program] = []
    scripts: set[Path] = set()
    for one in programs:
        if one.name != str(one.script.as_posix()) or one.script not in scripts:
            found.append(one)
        scripts.add(one.script)
    return tuple(found)


def _differs(before: str, now: str) -> bool:
    """Whether two texts are different code. Comments, layout, and newlines, which a checkout may change, are none."""
    if before == now or before.splitlines() == now.splitlines():
        return False
    try:
        return ast.dump(tree_of(before)) != ast.dump(tree_of(now))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True


def _trains(text: str) -> bool:
    return has_estimators(text) or trains_by_hand(text)


def _may_be_script(path: Path, text: str, imports: Imports, absolute: Path) -> bool:
    name = path.name
    if name in _NO_SCRIPTS or name == "__init__.py" or name.startswith("test_") or name.endswith("_test.py"):
        return False
    return "__main__" in text or not imports.importers([absolute])


def _inside(path: Path, within: Collection[Path]) -> bool:
    return not within or any(path == one or one in path.parents or one == Path() for one in within)


def _found(path: Path, imports: Imports, root: Path, folder: Path) -> Program:
    way = way_to_run(root / path, imports, root)
    if way["module"] and not is_notebook(path):
        return Program(path.as_posix(), path, Path(str(way["folder"])), str(way["module"]))
    return of_script(path, root, folder)


def of_script(path: Path, root: Path, folder: Path) -> Program:
    """The program of a script, which runs in `folder`, or of a notebook, which runs where it is."""
    started = path.parent if is_notebook(path) else Path(os.path.relpath(folder, root))
    return Program(path.as_posix(), path, started)


def _listed(name: str, settings: ProgramSettings, root: Path, folder: Path) -> Program:
    def below(path: str) -> Path:
        relative = Path(os.path.relpath(Path(os.path.abspath(folder / path)), root))  # noqa: PTH100 - links stay
        if relative.parts[:1] == ("..",):
            raise ProgramError(f"program {name}: {path} is outside of the project {root}")
        return relative

    started = below(settings.folder)
    if settings.module:
        files = module_files(Path(), settings.module.split("."))
        candidates = [files[0], files[1].with_name("__main__.py")]
        existing = [started / one for one in candidates if (root / started / one).is_file()]
        script = existing[0] if existing else started / candidates[0]
    elif settings.script:
        script = below(settings.script)
    else:
        raise ProgramError(f"program {name}: neither `script` nor `module` is given")
    original = below(settings.original) if settings.original else None
    if original is not None and settings.module:
        original = original / script.relative_to(started)
    return Program(name, script, started, settings.module, original, settings, settings.skip)
