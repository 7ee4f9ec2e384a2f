"""Which tests that run TensorFlow have something new to say, and which wait since all that they see is as it was.

A test waits while every file that it sees is as it was when it was last green: its own, what that imports, what runs
inside the interpreters with TensorFlow, data files (`whole`). Where only the codemod has changed, which a test of a
migration sees in nothing but the texts that come out (`about` is the rest), the test runs up to its first program: if
the same texts came out of all its migrations as when it was green, it ends there, as skipped.

What records losses and weights for a proof of the codemod or of the bridge is an instrument: where that has changed,
its own tests run, and of the proofs one in `SAMPLE`, another one with each change.

`make test` writes what was green into green.json (`--note-green`); `make test-all` runs everything.
`python -m tests.due FILE...` says what would be due if these files changed.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import sys
import threading
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RECORDED = Path(__file__).with_name("green.json")
#: Of the proofs whose programs are as they were, one in so many runs where the instrument has changed.
SAMPLE = 8

_MIGRATE = ROOT / "migrator" / "migrate.py"
_INSIDE = "migrator/harness/inside/**/*"
#: Due whatever has changed: the environments themselves, and the machine, are no files here.
_DUE_ALWAYS = frozenset(
    f"test_fixture_is_equivalent[{one}]"
    for one in ("between_graph", "classifier", "multi_worker_mirrored", "two_files_keras3")
)
_RUNS = ROOT / "migrator" / "harness" / "runs.py"
_CLUSTER = ROOT / "migrator" / "harness" / "cluster"
#: Folders of tests of which what records is only the instrument.
_PROOFS = ("bridge", "end_to_end", "names", "rules")
_LIBRARY = ROOT / "migrator" / "bridge" / "library"
#: What a test sees of files by the words in it, and in what it imports of the tests: patterns.
_BY_WORD = {
    "fixtures": "fixtures/**/*",
    "benchmarks": "benchmarks/**/*.py",
    "tools": "tools/**/*",
    "tutorials": "docs/**/*.md",
    "examples": "examples/**/*",
}
#: Programs that tests start on the tool's interpreter.
_STARTED = {ROOT / "tests" / "fuzz" / "sides.py": "tests/fuzz/inside/*.py"}
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+(?:\(([^)]*)\)|([^\n(]*))|import[ \t]+([^\n]+))", re.MULTILINE
)
#: Folders of tests, which are others in each run.
_FOLDER = re.compile(r"/[\w./-]*/pytest-of-\w+/pytest-\d+/(popen-gw\d+/)?")
_OURS = ("migrator", "tf_migrate", "tests", "tools", "benchmarks")
_ALWAYS = ("setup.cfg", "migrator/harness/environments.py")


@dataclass(frozen=True)
class Seen:
    """Digests of what the tests of a file see, but for the instrument: all, and all without the codemod; and of the
    instrument, where it is one ("").
    """

    whole: str
    about: str
    instrument: str


@dataclass
class Green:
    """The tests of a file that were green when it saw that: by name, the digest of what their migrations gave (None:
    migrations went on behind the first program, or others were before).
    """

    seen: Seen
    tests: dict[str, str | None] = field(default_factory=dict)


# -- files ---------------------------------------------------------------------------------------------------------


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def _module(name: str) -> Path | None:
    path = ROOT.joinpath(*name.split("."))
    return next((one for one in (path.with_suffix(".py"), path / "__init__.py") if one.is_file()), None)


@cache
def _imported(path: Path) -> frozenset[Path]:
    """The files of this repository that a file imports, inside of functions too, and in programs that it holds."""
    package = path.relative_to(ROOT).parts[:-1]
    names: set[str] = set()
    for dots, module, several, one, plain in _IMPORT.findall(_text(path)):
        if plain:
            names.update(part.split(" as ")[0].strip() for part in plain.split(","))
            continue
        above = package[: len(package) - len(dots) + 1] if dots else ()
        base = ".".join((*above, *([module] if module else [])))
        names |= {base, *(f"{base}.{word}" for word in re.findall(r"\w+", several or one))}
    found = _modules(frozenset(name for name in names if name.startswith(_OURS)))
    # Who looks for modules by pkgutil looks beside itself.
    return (found | _glob(f"{_place(path.parent)}/*.py") if "import pkgutil\n" in _text(path) else found) - {path}


@cache
def _modules(names: frozenset[str]) -> frozenset[Path]:
    parts = {".".join(name.split(".")[: n + 1]) for name in names for n in range(name.count(".") + 1)}
    return frozenset(found for part in parts if (found := _module(part)) is not None)


@cache
def _reached(roots: tuple[Path, ...], *cuts: Callable[[Path], bool]) -> frozenset[Path]:
    """What these files import, and so on; what one of the `cuts` names is not followed where a test imports it."""
    seen: set[Path] = set()
    todo = list(roots)
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        if path in _STARTED:
            todo += ROOT.glob(_STARTED[path])
        of_tests = _place(path).startswith("tests/")
        todo += [one for one in _imported(path) if not (of_tests and any(cut(one) for cut in cuts))]
    return frozenset(seen)


@cache
def _place(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def _words(path: Path) -> frozenset[str]:
    """The strings of a file: a word too many makes a test due too often, no more."""
    tree = ast.parse(_text(path))
    return frozenset(
        node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


@cache
def _of_library(named: frozenset[str]) -> frozenset[Path]:
    """The modules of the bridge's library with these names, and what those import; all where none is named."""
    roots = [path for path in _LIBRARY.glob("*.py") if path.stem in named and path.stem != "__init__"]
    return _reached(tuple(roots or _LIBRARY.rglob("*.py"))) | {_LIBRARY / "__init__.py"}


@cache
def _glob(pattern: str) -> frozenset[Path]:
    return frozenset(one for one in ROOT.glob(pattern) if one.is_file() and "__pycache__" not in one.parts)


@cache
def _beside(folder: Path) -> frozenset[Path]:
    """Files beside modules that are no modules."""
    return frozenset(one for one in folder.iterdir() if one.is_file() and one.suffix not in (".py", ".pyc"))


def _starts_the_tool(words: Iterable[str]) -> bool:
    return any(word in ("-m", "tf-migrate") or re.search(r"-m (migrator|tf_migrate)\b", word) for word in words)


def _data(path: Path, words: Iterable[str]) -> frozenset[Path]:
    """What lies beside a file of tests and is no module of tests: of many files those that it names."""
    if path.parent.name == "tests":
        return frozenset()
    found = _glob(f"{_place(path.parent)}/**/*")
    named = {word for one in words for word in one.split("/")}
    noted = path.parent.name == "bridge"
    return frozenset(
        one
        for one in found
        if not (one.suffix == ".py" and one.parent == path.parent)
        and not (noted and named.isdisjoint((one.name, one.stem)))
    )


@cache
def _files(path: Path, *cuts: Callable[[Path], bool]) -> frozenset[Path]:
    """All files that the tests of a file see."""
    shared = ROOT / "tests" / "conftest.py"
    roots = [path, *(one for one in (path.parent / "conftest.py",) if one.is_file())]
    found = set(_reached(tuple(roots), *cuts)) | {shared}
    if re.search(r"\b(session_for|servers|first_keras2)\b", _text(path)) and _is_harness not in cuts:
        # The interpreters that tests share.
        found |= {_RUNS, *_reached((_CLUSTER / "forkserver.py",))}
    tests = [one for one in found if _place(one).startswith("tests/") and one.name != "conftest.py"]
    words = {word for one in tests for word in _words(one)}
    if _starts_the_tool(words):
        found |= _reached(tuple((ROOT / "migrator").rglob("*.py")))
    patterns = [pattern for word, pattern in _BY_WORD.items() if any(word in one for one in words)]
    if any(one.parent == _CLUSTER for one in found):
        patterns.append(_INSIDE)
    if any(one.name == "sides.py" and one.parent.name == "bridge" for one in found):
        named = {name for word in _words(path) for name in re.findall(r"\blibrary[./](\w+)", word)} | _words(path)
        found |= _of_library(frozenset(named))
    elif _LIBRARY.parent / "assemble.py" in found:
        found |= _glob("migrator/bridge/library/**/*.py")
    folders = {one.parent for one in found if _place(one).startswith("migrator/")}
    found.update(*map(_beside, folders), *map(_glob, (*patterns, *_ALWAYS)), _data(path, words))
    return frozenset(found - {RECORDED})


def _is_harness(path: Path) -> bool:
    return _place(path).startswith("migrator/harness/") and path.name != "environments.py"


def _is_migrate(path: Path) -> bool:
    return path == _MIGRATE


def _parts(path: Path) -> tuple[frozenset[Path], frozenset[Path], frozenset[Path]]:
    """The files of `Seen`."""
    about = _files(path, _is_migrate)
    if path.parent.name not in _PROOFS or _module("migrator.harness.session") in about:
        return _files(path), about, frozenset()
    bare, whole = _files(path, _is_migrate, _is_harness), _files(path, _is_harness)
    return whole, bare, about - whole


@cache
def _bytes(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _digest(files: Iterable[Path]) -> str:
    made = "".join(f"{_place(one)}\0{_bytes(one)}\0" for one in sorted(files))
    return hashlib.sha256(made.encode()).hexdigest()[:16]


@cache
def seen(path: Path) -> Seen:
    """What the tests of a file see."""
    return Seen(*(_digest(part) if part else "" for part in _parts(path)))


# -- what was green ------------------------------------------------------------------------------------------------


@cache
def recorded() -> dict[str, Green]:
    """By file."""
    if not RECORDED.exists():
        return {}
    stored: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return {name: Green(Seen(*one["seen"]), one["tests"]) for name, one in stored.items()}


def _green(path: Path, name: str) -> Green | None:
    """What is recorded of the file of a test that was green, where that may still be said of it."""
    green = recorded().get(_place(path))
    if green is None or name not in green.tests or name in _DUE_ALWAYS:
        return None
    now = seen(path)
    if now.about != green.seen.about:
        return None
    return None if _drawn(path, name, green.seen) else green


def _drawn(path: Path, name: str, before: Seen) -> bool:
    """Whether the instrument has changed, and the test is one of the sample that is due then."""
    now = seen(path)
    # The tests of a file of the bridge's share their programs.
    one = name if path.parent.name == "end_to_end" else ""
    drawn = zlib.crc32(f"{now.instrument}{_place(path)}{one}".encode()) % SAMPLE == 0
    return drawn and now.instrument != before.instrument


def waits(path: Path, name: str) -> bool:
    """Whether all that a test sees is as it was when it was green."""
    green = _green(path, name)
    return green is not None and green.seen.whole == seen(path).whole


def migrations_when_green(path: Path, name: str) -> str | None:
    """The digest of what the migrations of a test gave when it was green, if that alone can make it another test."""
    green = _green(path, name)
    return green.tests[name] if green else None


def note(passed: dict[Path, dict[str, str | None]], waited: dict[Path, set[str]]) -> None:
    """Records which tests passed, or went as far as their first program and waited. What was neither, of a file whose
    text or surroundings are others than before, or drawn for another instrument, is not green any more.
    """
    stored = dict(recorded())
    for path in sorted({*passed, *waited}):
        now, before = seen(path), stored.get(_place(path))
        kept: dict[str, str | None] = {}
        if before is not None and before.seen.about == now.about:
            same = before.seen.whole == now.whole
            unchanged = (
                before.tests.items()
                if same
                else [one for one in before.tests.items() if one[0] in waited.get(path, ())]
            )
            kept = {name: one for name, one in unchanged if not _drawn(path, name, before.seen)}
        stored[_place(path)] = Green(now, {**kept, **passed.get(path, {})})
    existing = {name: one for name, one in stored.items() if (ROOT / name).is_file() and one.tests}
    lines = {
        name: {"seen": [one.seen.whole, one.seen.about, one.seen.instrument], "tests": dict(sorted(one.tests.items()))}
        for name, one in sorted(existing.items())
    }
    RECORDED.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")


# -- one test -------------------------------------------------------------------------------------------------------


#: The digest of no migration.
_NOTHING = hashlib.sha256().hexdigest()


class Migrations:
    """What the codemod gave in the course of one test, and of what several tests share."""

    def __init__(self) -> None:
        # Of each thread: an interpreter that starts in one must not hide the program that another runs meanwhile.
        self._unseen = threading.local()
        self._first = threading.Lock()
        self._of_shared: dict[str, str] = {}
        self._making: list[hashlib._Hash] = []
        self.begin(None)
        self.end()

    def begin(self, expected: str | None, shared: Collection[str] = ()) -> None:
        """A new test; `expected` is the digest with which it waits, `shared` names what it shares with others."""
        self._expected, self._shared = expected, frozenset(shared)
        self._made = hashlib.sha256()
        self._before: str | None = None
        self._alone = self._looks = True
        self._waits = False

    def end(self) -> None:
        """What comes is of no interest."""
        self._looks = False

    @contextmanager
    def unseen(self) -> Iterator[None]:
        """Programs that this thread runs meanwhile are no programs of the test."""
        before = self._hidden
        self._unseen.here = True
        try:
            yield
        finally:
            self._unseen.here = before

    @contextmanager
    def making(self, name: str) -> Iterator[None]:
        """What several tests share is made: its migrations belong to each of them, its programs to none."""
        self._making.append(hashlib.sha256())
        try:
            with self.unseen():
                yield
        finally:
            made = self._making.pop().hexdigest()
            self._of_shared[name] = "" if made == _NOTHING else made
            self._alone = self._alone and (self._before is None or not self._of_shared[name])

    @property
    def _hidden(self) -> bool:
        return getattr(self._unseen, "here", False)

    @property
    def _sees(self) -> bool:
        return self._looks and not self._hidden

    def made(self, *parts: object) -> None:
        """A migration of these sources and options gave these results."""
        text = _FOLDER.sub("", repr(parts)).encode()
        if self._making:
            self._making[-1].update(text)
        elif self._sees:
            self._alone = self._alone and self._before is None
            self._made.update(text)

    def waits_here(self) -> bool:
        """A program of the test is about to run. Says whether it has nothing new to say from here on."""
        with self._first:  # two programs may begin at the same time, each in a thread
            if self._sees and self._before is None:
                for name in sorted(self._shared):
                    self._made.update(self._of_shared.get(name, "").encode())
                self._before = self._made.hexdigest()[:16]
                self._waits = self._alone and self._before == self._expected
            return self._sees and self._waits

    @property
    def all(self) -> str | None:
        """The digest of all migrations of the test; None where it cannot wait by that."""
        return self._before if self._alone else None


def _told(changed: set[Path]) -> None:
    """What is due if these files change."""
    counts = {"due": 0, "due where another text comes out": 0, f"one in {SAMPLE} due": 0}
    for name, green in recorded().items():
        whole, about, instrument = _parts(ROOT / name)
        kinds = zip(counts, (about, whole, instrument), strict=True)
        if (kind := next((kind for kind, files in kinds if changed & files), None)) is not None:
            counts[kind] += len(green.tests)
            print(f"{len(green.tests):4} {name}: {kind}")
    print(", ".join(f"{number} {kind}" for kind, number in counts.items()))


if __name__ == "__main__":
    _told({(ROOT / one).resolve() for one in sys.argv[1:]})
