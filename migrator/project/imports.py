"""Which file of a project imports which, read from bytes: enough to know what may belong together."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from pathlib import Path

WORD = b"tensorflow"
_KEYWORD = re.compile(rb"import(?=[ \t(*])")
_NAME = re.compile(rb"\w+")
_FROM = re.compile(rb"(?:^|[:;])[ \t]*from[ \t]*(\.[. \t]*|[ \t])([\w. \t]*)$")
_COMMENT = re.compile(rb"#[^\n]*")
# More files of one name than these, none of them where Python would look, tell nothing of what is imported.
_FEW = 3

_STANDARD: frozenset[str] = getattr(sys, "stdlib_module_names", frozenset())  # from Python 3.10 on

Edges = Mapping[Path, frozenset[Path]]


def is_concerned(raw: bytes) -> bool:
    """Whether a file may have to do with a program, as `program.relevant.is_concerned` says of its text."""
    return WORD in raw or b"stimator" in raw or b"import *" in raw


def imported(raw: bytes, known: Container[str] | None = None) -> Iterator[tuple[int, tuple[str, ...]]]:
    """What a file may import: how many dots are in front, and the names. A string may look like an import.

    With `known`, absolute imports that begin with another name are left out.
    """
    raw = _with_whole_lines(raw)
    for match in _KEYWORD.finditer(raw):
        start = raw.rfind(b"\n", 0, match.start()) + 1
        before = raw[start : match.start()].rstrip(b" \t")
        if not before.strip() or before.endswith((b":", b";")):
            for one in _rest(raw, match.end()).split(b","):
                names = _dotted(one.split(b" as ")[0])
                if names and (known is None or names[0] in known):
                    yield 0, names
        elif (origin := _FROM.search(before)) is not None:
            level, base = origin[1].count(b"."), _dotted(origin[2])
            if not level and (not base or (known is not None and base[0] not in known)):
                continue
            yield from ((level, (*base, *name)) for name in _names(raw, match.end()))


def _names(raw: bytes, start: int) -> Iterator[tuple[str, ...]]:
    """What is imported from a module, one name each; none for all of it."""
    names = raw[start : max(raw.find(b")", start), start)] if _opens(raw, start) else _rest(raw, start)
    for one in _COMMENT.sub(b" ", names).strip(b"() \t\n").split(b","):
        name = _NAME.search(one)
        if name or b"*" in one:
            yield (name.group().decode("utf-8", "replace"),) if name else ()


def _opens(raw: bytes, start: int) -> bool:
    return raw[start : start + 9].lstrip(b" \t").startswith(b"(")


def _rest(raw: bytes, start: int) -> bytes:
    """The rest of a line, without a comment and further statements."""
    end = raw.find(b"\n", start)
    return raw[start : end if end >= 0 else len(raw)].split(b"#", 1)[0].split(b";", 1)[0]


def _with_whole_lines(raw: bytes) -> bytes:
    if b"\\\n" in raw:
        raw = raw.replace(b"\\\n", b" ")
    return raw.replace(b"\\\r\n", b" ").replace(b"\r", b"\n") if b"\r" in raw else raw


def _dotted(name: bytes) -> tuple[str, ...]:
    return tuple(one.decode("utf-8", "replace") for one in _NAME.findall(name))


class Resolver:
    """Finds the files that an import may mean: where Python would look, else few files whose path ends like it."""

    def __init__(self, files: Iterable[Path]) -> None:
        self.files: dict[str, Path] = {}
        self.by_name: dict[str, list[tuple[str, ...]]] = defaultdict(list)
        self.folders: set[str] = set()
        for path in files:
            stem = _stem(path)
            self.files["/".join(stem)] = path
            self.by_name[stem[-1]].append(stem)
            self.folders.update(stem)
        # A package of files that all lie below it is named by its folder only.
        self.known = self.folders | self.by_name.keys()

    def find(self, importing: Path, level: int, module: tuple[str, ...]) -> Iterator[Path]:
        """The files that an import may mean in a file: modules and packages on the way to it, too."""
        if not level and (not module or module[0] not in self.known):
            return
        parts = _parts(importing)[:-1]
        if level:
            folder = parts[: max(len(parts) - level + 1, 0)]
            yield from self._below(folder, module)
            if "/".join(folder) in self.files:  # the package itself
                yield self.files["/".join(folder)]
            return
        for end in range(len(parts), -1, -1):
            found = self._below(parts[:end], module)
            if found:
                yield from found
                return
        if module[0] in _STANDARD:
            return
        for length in range(len(module), 0, -1):
            head = module[:length]
            ends = [stem for stem in self.by_name.get(head[-1], ()) if stem[-length:] == head]
            if ends and (length > 1 or len(ends) <= _FEW):
                for stem in ends:
                    yield from self._below(stem[:-length], module)
                return

    def _below(self, folder: tuple[str, ...], module: tuple[str, ...]) -> list[Path]:
        names = ("/".join((*folder, *module[:length])) for length in range(len(module), 0, -1))
        return [self.files[name] for name in names if name in self.files]


def edges(raws: Mapping[Path, bytes], known: Collection[Path]) -> dict[Path, frozenset[Path]]:
    """For each file those of `known` that it may import. All paths are absolute, or relative to the same folder."""
    resolver = Resolver(known)
    return {
        path: frozenset(
            found
            for level, module in set(imported(raw, resolver.known))
            for found in resolver.find(path, level, module)
            if found != path
        )
        for path, raw in raws.items()
    }


def below(of: Edges, some: Iterable[Path]) -> set[Path]:
    """Some files, and all that they import, directly or not."""
    found: set[Path] = set()
    queue = list(some)
    while queue:
        path = queue.pop()
        if path not in found:
            found.add(path)
            queue += of.get(path, ())
    return found


def above(of: Edges, some: Iterable[Path]) -> set[Path]:
    """Some files, and all that import one of them, directly or not."""
    importers: dict[Path, list[Path]] = defaultdict(list)
    for path, found in of.items():
        for one in found:
            importers[one].append(path)
    return below({path: frozenset(found) for path, found in importers.items()}, some)


def joined(sets: Iterable[Collection[Path]]) -> list[set[Path]]:
    """Sets of files, those that share one made one; in the order in which they first come."""
    home: dict[Path, set[Path]] = {}
    for one in sets:
        whole = set(one)
        for path in one:
            other = home.get(path)
            if other is not None and other is not whole:
                small, whole = sorted((whole, other), key=len)
                whole |= small
        for path in whole:
            home[path] = whole
    return list({id(whole): whole for whole in home.values()}.values())


def _parts(path: Path) -> tuple[str, ...]:
    return path.parts if path.parts[0] != "/" else ("", *path.parts[1:])


def _stem(path: Path) -> tuple[str, ...]:
    parts = _parts(path)
    parts = (*parts[:-1], parts[-1].rpartition(".")[0] or parts[-1])
    return parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts
