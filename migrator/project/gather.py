"""The files that are given, which may be written, and those of the project around them, which are read only."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from migrator.bridge.support import NAME
from migrator.findings import Finding
from migrator.project.accepted import MARK
from migrator.project.imports import WORD, Edges, above, below, edges, is_concerned, joined
from migrator.settings import Project
from migrator.source.discovery import SUFFIXES, Found, files_in, real_path
from migrator.source.reading import Source, code_bytes, decode, is_notebook, read_bytes

if TYPE_CHECKING:
    from migrator.project.python2 import Before, Converted

_MOST_AROUND = 20_000  # files that are looked at beside those that are given
_LARGEST_AROUND = 2_000_000  # bytes of one of them


@dataclass(frozen=True)
class Gathered:
    """What is looked at.

    All paths are as the engine is told them: relative to the current folder, or absolute where one of them is outside
    of it. `shown` says how the user sees them.
    """

    given: tuple[Path, ...]
    """The files that may be written, in the order of the paths that were named."""
    sources: Mapping[Path, Source] = field(default_factory=dict)
    """The files that may have to do with a program of the given ones, these and others."""
    problems: Mapping[Path, Finding] = field(default_factory=dict)
    """Given files that cannot be read."""
    remarked: Mapping[Path, Source] = field(default_factory=dict)
    """Other given files with comments for this tool."""
    edges: Edges = field(default_factory=dict)
    """What the sources import of each other."""
    shown: Mapping[Path, Path] = field(default_factory=dict)
    """How a path is shown, where it is not as it is."""
    beside: Mapping[Path, Source] = field(default_factory=dict)
    """Files that the sources import, which have nothing of TensorFlow: what programs read of them may change there."""
    beside_of: Edges = field(default_factory=dict)
    """Which of those a source, or one of those, imports."""
    before: Mapping[Path, Before] = field(default_factory=dict)
    """The files of Python 2, whose sources are what they were converted to."""

    def as_they_are(self) -> dict[Path, Source]:
        """The sources as users have them."""
        return {path: self.before[path].source if path in self.before else one for path, one in self.sources.items()}

    def show(self, path: Path) -> Path:
        """A path as the user sees it."""
        return self.shown.get(path, path)


def gather(
    found: Sequence[Found],
    project: Project,
    excluded: Collection[Path] = (),
    *,
    whole: bool = False,
    python2: Callable[[Mapping[Path, bytes]], Converted] | None = None,
) -> Gathered:
    """Reads the given files, and what the programs that they are part of consist of beside them.

    Around are the files of the project that a given file imports, those that import one, and all that these import.
    `excluded` are files that would have been given; they are around, too. `whole` says that no other files of the
    project are left. `python2` says what becomes of files of Python 2, before they are looked at.
    """
    raws: dict[Path, bytes] = {}
    problems: dict[Path, Finding] = {}
    for one in found:
        content = read_bytes(one.path)
        if isinstance(content, Finding):
            problems[one.path] = content
        else:
            raws[one.path] = content
    own = [one.path for one in found]
    concerned = [path for path, raw in raws.items() if is_concerned(raw)]
    further = _around(own, () if whole else _listed(own, project), excluded) if concerned else {}
    spelled = _spelled(own, further)
    read = {spelled[path]: raw for path, raw in raws.items()}
    given = [spelled[path] for path in own]
    shown = {spelled[path]: path for path in own if spelled[path] != path}
    if own and not all(path.is_absolute() for path in own):
        shown |= {spelled[path]: Path(os.path.relpath(path)) for path in further if spelled[path].is_absolute()}
    around = {spelled[path]: raw for path, raw in further.items()}
    converted = python2({**read, **around}) if python2 is not None else None
    before: dict[Path, Before] = {}
    if converted is not None:
        # What may not be written and runs as it is stays, and holds nothing up.
        before = {path: one for path, one in converted.files.items() if path in read or not one.both}
        read |= {path: one.raw for path, one in before.items() if path in read}
        around |= {path: one.raw for path, one in before.items() if path in around}
    told = {spelled[path] for path in concerned} | {path for path, raw in around.items() if is_concerned(raw)}
    programs, imports = _programs(read, around, told)
    sources: dict[Path, Source] = {}
    beside: dict[Path, Source] = {}
    remarked: dict[Path, Source] = {}
    for path in (*given, *around):
        raw = read[path] if path in read else around.get(path)
        if raw is None or (path not in programs and (path in around or (_is_plain(raw) and MARK not in raw))):
            continue
        source = decode(path, raw, strict=False)
        if isinstance(source, Finding):
            if path in read:
                why = converted.problems.get(path) if converted is not None else None
                problems[shown.get(path, path)] = why or source
        elif path in programs:
            sources[path] = source
        elif MARK in raw:
            remarked[path] = source
    everything = {**read, **around}
    beside_of = _imported_by(programs, everything)
    for path in sorted(set().union(*beside_of.values())):
        source = decode(path, everything[path], strict=False)
        if isinstance(source, Source):
            beside[path] = replace(source, is_beside=True)
    return Gathered(
        tuple(given),
        sources,
        {spelled[path]: finding for path, finding in problems.items()},
        remarked,
        {path: found & sources.keys() for path, found in imports.items() if path in sources},
        shown,
        beside,
        beside_of,
        before,
    )


def _imported_by(programs: Collection[Path], everything: Mapping[Path, bytes]) -> Edges:
    """What the files of programs import of all other files, and these of each other."""
    others = {path for path in everything if path not in programs and not is_notebook(path)}
    found: dict[Path, frozenset[Path]] = {}
    new = {path for path in programs if path in everything}
    while new and others:
        found.update(edges({path: code_bytes(path, everything[path]) for path in sorted(new)}, others))
        new = set().union(*(found[path] for path in new)) - found.keys()
    return found


def _programs(
    given: Mapping[Path, bytes], around: Mapping[Path, bytes], concerned: set[Path]
) -> tuple[set[Path], Edges]:
    """The files that may belong to a program of the given ones, and what imports what."""
    everything = {path: code_bytes(path, raw) for path, raw in {**given, **around}.items()}
    if not concerned:
        return set(), {}
    importable = {path for path in everything if not is_notebook(path)}  # nothing can import a notebook
    modules = concerned & importable
    own = {path: raw for path, raw in everything.items() if path in concerned}
    imports = edges(own, modules)
    speaking = above(imports, (path for path in modules if WORD in everything[path])) & modules
    passing = _passing({path: raw for path, raw in everything.items() if path not in own}, speaking, importable)
    known = modules | (passing.keys() & importable)
    if known != modules:
        imports = edges(own, known)
    imports |= {path: found & known for path, found in passing.items()}
    found = below(imports, above(imports, concerned & given.keys()))
    parts = joined({path, *imports[path]} for path in imports if path in found)
    found = {path for part in parts if any(WORD in everything[path] for path in part) for path in part & found}
    found |= {path for path in concerned if path.stem == NAME}
    return found, imports


def _passing(
    others: Mapping[Path, bytes], modules: Collection[Path], importable: Collection[Path]
) -> dict[Path, frozenset[Path]]:
    """What files that say nothing of TensorFlow import of what does, by themselves or through others of them.

    A package passes on what its modules have, and so does a module between two others.
    """
    found: dict[Path, set[Path]] = {}
    wanted = set(modules)
    while wanted:
        more = {path: some for path, some in edges(others, wanted).items() if some}
        wanted = (more.keys() - found.keys()) & set(importable)
        for path, some in more.items():
            found.setdefault(path, set()).update(some)
    return {path: frozenset(some) for path, some in found.items()}


def _around(own: Sequence[Path], listed: Iterable[Path], excluded: Collection[Path]) -> dict[Path, bytes]:
    """The files beside the given ones, by their absolute paths, and what is in them."""
    raws: dict[Path, bytes] = {}
    others = [*listed, *(_absolute(path) for path in excluded)]
    known = {real_path(path) for path in own} if others else set()
    for path in others:
        real = real_path(path)
        if real in known:
            continue
        known.add(real)
        try:
            if path.stat().st_size <= _LARGEST_AROUND:
                raws[path] = path.read_bytes()
        except OSError:
            continue
    return raws


def _listed(own: Sequence[Path], project: Project) -> Iterable[Path]:
    if project.marked:
        listed = files_in(project.root, _MOST_AROUND)
        if listed is not None:
            return listed
    # No project, or a very large one: what is right beside the given files.
    folders = dict.fromkeys(_absolute(path).parent for path in own)
    return [path for folder in folders for path in _beside(folder)]


def _beside(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith(SUFFIXES) and entry.is_file())
    except OSError:
        return
    yield from (folder / name for name in names[:_MOST_AROUND] if not name.startswith("."))


def _spelled(own: Sequence[Path], further: Collection[Path]) -> dict[Path, Path]:
    """How the engine is told each path: files that import each other have to be told of in one way."""
    if not further and all(not path.is_absolute() and ".." not in path.parts for path in own):
        return {path: path for path in own}
    here = _absolute(Path())
    absolute = {path: path if path.is_absolute() else _absolute(path) for path in (*own, *further)}
    if all(path.is_absolute() for path in own):
        return {path: path for path in absolute}
    plain = all(not path.is_absolute() and ".." not in path.parts for path in own)
    if plain and all(path.is_relative_to(here) for path in absolute.values()):
        return {path: path if not path.is_absolute() else path.relative_to(here) for path in absolute}
    return {path: _absolute(path) for path in absolute}


def _is_plain(raw: bytes) -> bool:
    """Whether a file is text for certain, which most are."""
    return raw.isascii() and b"coding" not in raw[:200]


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 # links stay as they are named
