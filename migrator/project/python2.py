"""The Python 2 files of a project, as the engine is shown them: converted, and as they were for all that is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from migrator.findings import Finding
from migrator.python2.convert import convert
from migrator.source.newlines import unified, with_newlines_of
from migrator.source.reading import Source, decode_text, encode, is_notebook


@dataclass(frozen=True)
class Before:
    """A file as it is, and what became of it before the engine sees it."""

    source: Source
    text: str
    raw: bytes
    findings: tuple[Finding, ...]
    both: bool
    """Whether it runs in both Pythons."""


@dataclass(frozen=True)
class Converted:
    """The files of some that were converted, and why others that no Python parses were not."""

    files: Mapping[Path, Before] = field(default_factory=dict)
    problems: Mapping[Path, Finding] = field(default_factory=dict)


def converted(raws: Mapping[Path, bytes]) -> Converted:
    """What becomes of the Python 2 files among these; notebooks stay as they are. Raises NoFixer."""
    sources = {}
    for path, raw in raws.items():
        if not is_notebook(path):
            source = decode_text(path, raw)
            if isinstance(source, Source):
                sources[path] = source
    done = convert({path: unified(source.text) for path, source in sources.items()})
    files: dict[Path, Before] = {}
    problems: dict[Path, Finding] = {}
    for path, one in done.items():
        source = sources[path]
        if one.problem is not None:
            problems[path] = one.problem
            continue
        text = with_newlines_of(source.text, one.text)
        try:
            files[path] = Before(source, text, encode(source, text), one.findings, one.both)
        except UnicodeEncodeError:
            continue  # nothing that is put there is beyond ASCII
    return Converted(files, problems)
