"""Which file of a project imports which, read from bytes: enough to know what may belong together."""

from __future__ import annotations

import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

WORD = b"tensorflow"
_KEYWORD = re.compile(rb"import(?=[ \t(*])")
_NAME = re.compile(rb"\w+")
_FROM = re.compile(rb"(?:^|[:;])[ \t]*from[ \t]*(\.[. \t]*|[ \t])([\w. \t]*)$")
_KERAS = re.compile(rb"^[ \t]*(?:import|from)[ \t]+keras\b", re.MULTILINE)
_COMMENT = re.compile(rb"#[^\n]*")
# More files of one name than these, none of them where Python would look, tell nothing of what is imported.
_FEW = 3
_BACKSLASH = b"\\"[0]

_STANDARD: frozenset[str] = getattr(sys, "stdlib_module_names", frozenset())  # from Python 3.10 on

Edges = Mapping[Path, frozenset[Path]]


def is_concerned(raw: bytes) -> bool:
    """Whether a file may have to do with a program, as `program.relevant.is_concerned` says of its text.

    A file that imports Keras alone may hold the model of a program of sessions.
    """
    return WORD in raw or b"stimator" in raw or b"import *" in raw or _KERAS.search(raw) is not None


def imported(
    raw: bytes, wanted: Callable[[int, bytes], bool] = lambda level, first: True
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """What a file may import: how many dots are in front, and the names. A string may look like an import.

    `wanted` is asked of the dots and of the first name behind them, and leaves out what nobody asks for.
    """
    if b"\r" in raw:
        raw = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for match in _KEYWORD.finditer(raw):
        before = _before(raw, match.start())
        if not before or before.endswith((b":", b";")):
            for one in _rest(raw, match.end()).split(b","):
                name = one.split(b" as ")[0]
                if wanted(0, name.split(b".", 1)[0].strip()) and (names := _dotted(name)):
                    yield 0, names
        elif (origin := _FROM.search(before)) is not None:
            level, base = origin[1].count(b"."), origin[2].strip()
            if (level or base) and wanted(level, base.split(b".", 1)[0].strip()):
                module = _dotted(base)
                yield from ((level, (*module, *name)) for name in _names(raw, match.end()))


def _before(raw: bytes, end: int) -> bytes:
    """The line up to a place, with the lines that it goes on from."""
    start = raw.rfind(b"\n", 0, end) + 1
    while start > 1 and raw[start - 2] == _BACKSLASH:
        start = raw.rfind(b"\n", 0, start - 1) + 1
    return _one_line(raw[start:end]).strip(b" \t") if start < end else b""


def _names(raw: bytes, start: int) -> Iterator[tuple[str, ...]]:
    """What is imported from a module, one name each; none for all of it."""
    names = raw[start : max(raw.find(b")", start), start)] if _opens(raw, start) else _rest(raw, start)
    for one in _COMMENT.sub(b" ", names).strip(b"() \t\n").split(b","):
        name = _NAME.search(one)
        if name or b"*" in one:
            yield (name.group().decode("utf-8", "replace"),) if name else ()


def _opens(raw: bytes, start: int) -> bool:
    return raw[start : start + 9].lstrip(b" \t\\\n").startswith(b"(")


def _rest(raw: bytes, start: int) -> bytes:
    """The rest of a line and those that it goes on in, without a comment and further statements."""
    end = raw.find(b"\n", start)
    while end > 0 and raw[end - 1] == _BACKSLASH:
        end = raw.find(b"\n", end + 1)
    return _one_line(raw[start : end if end >= 0 else len(raw)]).split(b"#", 1)[0].split(b";", 1)[0]


def _one_line(lines: bytes) -> bytes:
    return lines.replace(b"\\\n", b" ") if b"\n" in lines else lines


def _dotted(name: bytes) -> tuple[str, ...]:
    return tuple(one.decode("utf-8", "replace") for one in _NAME.findall(name))


class Resolver:
    """Finds the files that an import may mean: where Python would look, else few files whose path ends like it."""

    def __init__(self, files: Iterable[Path]) -> None:
        self.files: dict[str, Path] = {}
        self.by_name: dict[str, list[tuple[str, ...]]] = defaultdict(list)
        self.starts: set[str] = set()  # of the paths of files
        self.known: set[bytes] = set()  # a package of files that all lie below it is named by its folder only
        for path in files:
            stem = _stem(path)
            self.files["/".join(stem)] = path
            self.by_name[stem[-1]].append(stem)
            self.known.update(os.fsencode(name) for name in stem)
            self.starts.update("/".join(stem[:length]) for length in range(1, len(stem) + 1))

    def may_find(self, folder: tuple[str, ...], level: int, first: bytes) -> bool:
        """Whether `find` may find anything for an import that begins like this; `folder` is that of the file."""
        if not level:
            return first in self.known
        base = folder[: max(len(folder) - level + 1, 0)]
        start = (*base, first.decode("utf-8", "replace")) if first else base
        return "/".join(start) in self.starts or "/".join(base) in self.files

    def find(self, folder: tuple[str, ...], level: int, module: tuple[str, ...]) -> Iterator[Path]:
        """The files that an import may mean in a file of a folder: modules and packages on the way to it, too."""
        if level:
            base = folder[: max(len(folder) - level + 1, 0)]
            yield from self._below(base, module)
            if "/".join(base) in self.files:  # the package itself
                yield self.files["/".join(base)]
            return
        if not module:
            return
        for end in range(len(folder), -1, -1):
            if "/".join((*folder[:end], module[0])) in self.starts and (found := self._below(folder[:end], module)):
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
    return {path: _imports(path, raw, resolver) for path, raw in raws.items()}


def _imports(path: Path, raw: bytes, resolver: Resolver) -> frozenset[Path]:
    folder = _parts(path)[:-1]
    wanted = set(imported(raw, partial(resolver.may_find, folder)))
    return frozenset(
        found for level, module in wanted for found in resolver.find(folder, level, module) if found != path
    )


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
