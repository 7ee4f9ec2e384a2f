"""The engine over a project, in parts that have nothing to do with each other."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from migrator.bridge.support import NAME
from migrator.collecting import seldom_collecting
from migrator.findings import Finding, Severity
from migrator.project.gather import Gathered
from migrator.project.imports import below, is_concerned, joined
from migrator.source.reading import Source, mentions_tensorflow

if TYPE_CHECKING:
    from migrator.migrate import Options
    from migrator.project.cache import Cache

#: How further processes start. macOS has forks that its own libraries do not stand, Windows has none.
STARTS_BY = "fork" if sys.platform == "linux" else "spawn"
_WORTH_IT = 50_000  # bytes of programs: less is done before a second process has started

_ASKS = (
    "`{}` asks for TensorFlow 1, but this notebook now runs on TensorFlow 2: remove it, or ask for "
    "tensorflow and tf_keras"
)


@dataclass(frozen=True)
class Migrated:
    """What the engine made of one file."""

    source: Source
    text: str
    """The text of the source where nothing changes."""
    findings: tuple[Finding, ...] = ()
    alone: bool = False
    """Whether the change makes sense without that of any other file."""

    @property
    def changed(self) -> bool:
        """Whether there is a new text."""
        return self.text != self.source.text


class EngineError(Exception):
    """A mistake of ours that the engine did not get over; the message says what was raised."""


def parts_of(gathered: Gathered) -> list[list[Source]]:
    """The sources of programs that have nothing to do with each other, in the order of the given files.

    A file that does not speak of TensorFlow, and a support file, is with all programs that may need it. What it imports
    belongs to the program that imports it: a package's `__init__.py` may only pass names on.
    """
    sources, edges = gathered.sources, gathered.edges
    support = {path for path in sources if path.stem == NAME}
    members = {path for path, source in sources.items() if is_concerned(source.raw)} - support
    plain = sources.keys() - members - support
    among = {path: edges[path] for path in plain}
    passed = {path: below(among, [path]) & members for path in plain}
    whole = joined(
        {path, *(edges[path] & members), *(one for other in edges[path] & plain for one in passed[other])}
        for path in sources
        if path in members
    )
    parts = []
    for part in whole:
        chosen = part | support | {path for path in plain if passed[path] & part}
        if any(mentions_tensorflow(sources[path]) for path in part):
            parts.append([source for path, source in sources.items() if path in chosen])
            imported = below(gathered.beside_of, chosen)
            parts[-1] += [source for path, source in gathered.beside.items() if path in imported]
    return parts


@dataclass(frozen=True)
class Means:
    """How the work is done, which makes no difference to what comes out."""

    jobs: int = 1
    """How many processes; 0 for as many as there are processors, where it is worth it."""
    cache: Cache | None = None
    advance: Callable[[int, int], None] = lambda done, total: None
    """Is told how many parts are done, of how many."""


def migrate_parts(parts: Sequence[Sequence[Source]], options: Options, means: Means) -> dict[Path, Migrated]:
    """What the engine makes of all files of these parts, new ones first. Raises EngineError."""
    cache = means.cache
    if cache is None:
        keys = [b""] * len(parts)
        answers: list[bytes | None] = [None] * len(parts)
    else:
        from migrator.project.cache import key_of, tool

        version = tool()
        keys = [key_of(part, options, version) for part in parts]
        answers = [cache.get(key) for key in keys]
    missing = [place for place, answer in enumerate(answers) if answer is None]
    done = len(parts) - len(missing)
    for place, answer in _answers({place: parts[place] for place in missing}, options, means.jobs):
        answers[place] = answer
        if cache is not None:
            cache.put(keys[place], answer)
        done += 1
        means.advance(done, len(parts))
    return joint([_unpacked(answer, part) for answer, part in zip(answers, parts) if answer is not None])


def _answers(parts: Mapping[int, Sequence[Source]], options: Options, jobs: int) -> Iterator[tuple[int, bytes]]:
    """What the engine answers of each part, packed, by the place of the part, as they come."""
    sizes = {place: sum(len(source.raw) for source in part) for place, part in parts.items()}
    if not jobs:
        jobs = _processors() if sum(sizes.values()) > _WORTH_IT else 1
    jobs = min(jobs, len(parts))
    if jobs < 2:
        with seldom_collecting():  # once for all parts: it looks through everything at its end
            for place, part in parts.items():
                yield place, _packed(migrate_part(part, options))
        return
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    from migrator import migrate, modern  # noqa: F401 # what all processes need is imported once
    from migrator.bridge import project  # noqa: F401
    from migrator.migration import project as native  # noqa: F401
    from tf_migrate import begin_process

    sys.stdout.flush()
    sys.stderr.flush()
    largest_first = sorted(parts, key=lambda place: -sizes[place])
    here = Path.cwd()
    # A new interpreter looks for modules in the current folder first, and those of the user are not ours to import.
    empty = Path(tempfile.mkdtemp(prefix="tf-migrate-start-")) if STARTS_BY == "spawn" else here
    os.chdir(empty)
    try:
        pool = ProcessPoolExecutor(
            jobs, mp_context=get_context(STARTS_BY), initializer=begin_process, initargs=(str(here),)
        )
        waiting = {pool.submit(_work, parts[place], options): place for place in largest_first}
    finally:
        os.chdir(here)
    try:
        for one in as_completed(waiting):
            yield waiting[one], one.result()
    except BrokenProcessPool:
        raise EngineError("a worker process died, perhaps out of memory; try --jobs 1") from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        if empty != here:
            with contextlib.suppress(OSError):
                empty.rmdir()


def _work(part: Sequence[Source], options: Options) -> bytes:
    return _packed(migrate_part(part, options))


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def _packed(results: Sequence[Migrated]) -> bytes:
    """What the engine made of a part, as bytes that say it without the files themselves."""
    return json.dumps(
        [
            [
                os.fsdecode(one.source.path),
                one.text if one.changed else None,
                [[f.path, f.line, f.column, f.code, f.severity.value, f.message] for f in one.findings],
                one.alone,
            ]
            for one in results
        ]
    ).encode()


def _unpacked(packed: bytes, part: Sequence[Source]) -> list[Migrated]:
    sources = {source.path: source for source in part}
    found = []
    for name, text, findings, alone in json.loads(packed):
        path = Path(name)
        source = sources.get(path) or Source(path, b"", "", "utf-8", False)
        told = tuple(
            Finding(place, line, column, code, Severity(severity), message)
            for place, line, column, code, severity, message in findings
        )
        found.append(Migrated(source, source.text if text is None else text, told, alone))
    return found


def migrate_part(sources: Sequence[Source], options: Options) -> list[Migrated]:
    """What the engine makes of some files, and those that it writes beside them. Raises EngineError."""
    from migrator.migrate import migrate
    from migrator.source.newlines import unified, with_newlines_of

    # New code comes with LF or CRLF, whatever the file has: the engine sees LF only.
    unix = [replace(source, text=unified(source.text)) for source in sources]
    sources = [source for source in sources if not source.is_beside]
    try:
        with seldom_collecting():
            results = migrate(unix, options)
    except Exception as error:
        if os.environ.get("TF_MIGRATE_TRACEBACK"):
            traceback.print_exc()
        raise EngineError(f"{type(error).__name__}: {error}") from None
    given = [
        Migrated(source, with_newlines_of(source.text, result.text), result.findings, result.alone)
        for source, result in zip(sources, results)
    ]
    given = [_asking_for_tensorflow_1(one) if one.source.notebook is not None else one for one in given]
    return given + [
        Migrated(result.source, result.text, result.findings, result.alone) for result in results[len(sources) :]
    ]


def _asking_for_tensorflow_1(one: Migrated) -> Migrated:
    """A notebook with a finding for each line that asks for TensorFlow 1, where its code does not any more."""
    if not one.changed or one.source.notebook is None:
        return one
    found = tuple(
        Finding(str(one.source.path), line, 1, "TFM930", Severity.REVIEW, _ASKS.format(asked))
        for line, asked in one.source.notebook.lines_for_tensorflow_1(one.source.text)
    )
    return replace(one, findings=(*one.findings, *found))


def joint(parts: Sequence[Sequence[Migrated]]) -> dict[Path, Migrated]:
    """What became of the files of all parts; a support file holds what any part needs of it."""
    found: dict[Path, Migrated] = {}
    for one in (one for part in parts for one in part):
        path = one.source.path
        other = found.get(path)
        found[path] = one if other is None else _both(other, one)
    new = {path: one for path, one in found.items() if not one.source.raw and one.text}
    return {**new, **{path: one for path, one in found.items() if path not in new}}


def _both(first: Migrated, second: Migrated) -> Migrated:
    findings = tuple(sorted({*first.findings, *second.findings}))
    if not second.changed or first.text == second.text:
        return replace(first, findings=findings)
    if not first.changed:
        return replace(second, findings=findings)
    from migrator.bridge.assemble import extended, held_by

    text = extended(first.text, held_by(second.text))
    if text is None:
        raise EngineError(f"two programs need different versions of {first.source.path}")
    return replace(first, text=text, findings=findings)
