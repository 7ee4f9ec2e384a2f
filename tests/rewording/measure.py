"""How many programs keep their outcome in other words: `python -m tests.rewording.measure [rewording...]`.

Without names it tries all but those that are known to lack something (`LACKING`).
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache

from migrator.bridge.support import MARK
from migrator.findings import Severity
from migrator.migrate import migrate
from migrator.source.reading import read
from tests.fixture_cases import FixtureCase, load_cases
from tests.rewording.newcomers import LACKING, REWORDINGS
from tests.rewording.rewordings import reword


@dataclass(frozen=True)
class Said:
    """What came of a program: native, bridge, refused, or untouched; its new text, and why it is not native."""

    form: str
    text: str = ""
    why: tuple[str, ...] = field(default=(), compare=False)


@cache
def cases() -> dict[str, FixtureCase]:
    """The fixtures of TensorFlow 1 programs, by name."""
    found = [case for case in load_cases() if not case.tensorflow2 and case.keras == "2"]
    return {case.name: case for case in found}


def said(case: FixtureCase, words: Callable[[ast.Module], str]) -> Said:
    """What the codemod makes of a fixture's files, each given the text that `words` makes of it."""
    sources = [read(path) for path in case.original_files]
    given = [replace(source, text=words(ast.parse(source.text)).rstrip("\n") + "\n") for source in sources]
    results = migrate(given, replace(case.options, style="auto", bridge=True))
    findings = [finding for result in results for finding in result.findings]
    blocked = tuple(f"{f.code} {f.path}:{f.line} {f.message}" for f in findings if f.severity is Severity.MANUAL)
    if blocked:
        return Said("refused", "", blocked)
    if any(MARK in result.text for result in results):
        return Said("bridge", "", tuple(finding.message for finding in findings if finding.code == "TFM155"))
    if all(result.text == result.source.text for result in results):
        return Said("untouched")
    return Said("native", "\n".join(ast.unparse(ast.parse(result.text)) for result in results))


@cache
def _before(name: str) -> str:
    return said(cases()[name], ast.unparse).form


def _outcome(pair: tuple[str, str]) -> tuple[str, str, str, str]:
    rewording, name = pair
    case = cases()[name]
    if not any(reword(path.read_text(encoding="utf-8"), rewording) for path in case.original_files):
        return rewording, name, "", ""
    before = _before(name)
    after = said(case, lambda module: reword(ast.unparse(module), rewording) or ast.unparse(module))
    return rewording, name, before, after.form if after.form == before else f"{after.form}: {'; '.join(after.why)}"


def main(names: list[str]) -> None:
    pairs = [
        (rewording, name)
        for rewording in names or [one for one in REWORDINGS if one not in LACKING]
        for name in cases()
    ]
    with ProcessPoolExecutor() as workers:
        found = [one for one in workers.map(_outcome, pairs, chunksize=4) if one[2]]
    kept: Counter[str] = Counter()
    for rewording, name, before, after in found:
        kept[rewording] += before == after
        if before != after:
            print(f"{rewording:28} {name:24} {before} -> {after[:200]}")
    total = Counter(rewording for rewording, *_ in found)
    for rewording, count in total.items():
        print(f"{rewording:28} {kept[rewording]:3} of {count}")
    print(f"{kept.total()} of {total.total()} keep their outcome")


if __name__ == "__main__":
    main(sys.argv[1:])
