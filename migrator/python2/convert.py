"""The Python 2 files of a project as Python 3 ones: which these are, and what becomes of each."""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from migrator.findings import Finding, Severity
from migrator.python2.division import divide
from migrator.python2.edits import Edits
from migrator.python2.fixers import Fixed, NotPython2, fixed
from migrator.python2.kinds import Everywhere
from migrator.python2.meanings import Meanings
from migrator.python2.relative import local_imports
from migrator.python2.signs import divides_truly, is_of_python_3, parsed, signs
from migrator.source.newlines import old_lines
from migrator.source.reading import syntax_error

CONVERTED, DIVISION, MEANING, BOTH = "TFM940", "TFM941", "TFM942", "TFM944"
_CANNOT_PARSE = "TFM902"
_MAY_DIFFER = re.compile(r"/|\b(?:map|filter|zip)\(|\.(?:keys|items|values)\(")
#: What sets the encoding of texts in Python 2, and does not exist in Python 3, where it is UTF-8.
_ENCODING = re.compile(
    r"^reload\(sys\)[ \t]*(?:;[ \t]*|\n(?:[ \t]*\n)*)sys\.setdefaultencoding\([^\n()]*\)[ \t]*;?[ \t]*\n", re.M
)


@dataclass(frozen=True)
class Conversion:
    """What became of one file. The lines of the findings are those of the text before."""

    text: str
    findings: tuple[Finding, ...] = ()
    problem: Finding | None = None
    """Why it stays as it is."""
    both: bool = False
    """Whether it runs in both Pythons."""


def convert(texts: Mapping[Path, str]) -> dict[Path, Conversion]:
    """What becomes of the Python 2 files among these, whose newlines are LF; raises NoFixer.

    These are: what only Python 2 parses; what has names that only Python 2 has; and, where there is one of these, the
    files beside it that run in both Pythons and do not say that they divide as Python 3 does. A file that neither
    Python parses stays as it is, with a problem.
    """
    found: dict[Path, _Read] = {}
    done: dict[Path, Conversion] = {}
    plain: list[Path] = []
    for path, text in texts.items():
        if parsed(text) is None or signs(text):
            try:
                before = _ENCODING.sub("", text)
                found[path] = _Read(fixed(before))
            except NotPython2 as error:
                if parsed(text) is None:
                    message = f"cannot parse: {error}; it is neither Python 2 nor Python 3: correct it"
                    problem = Finding(str(path), error.line, error.column, _CANNOT_PARSE, Severity.ERROR, message)
                    done[path] = Conversion(text, problem=problem)
        else:
            plain.append(path)
    if found:
        for path in plain:
            text = texts[path]
            if _MAY_DIFFER.search(text) and not divides_truly(text) and not is_of_python_3(text):
                try:
                    found[path] = _Read(fixed(text, harmless=True), both=True)
                except NotPython2:
                    continue
    new = {path: _with_spaces(one.fixed.text) for path, one in found.items()}
    everything = {**texts, **new}
    trees = {path: tree for path, text in everything.items() if (tree := parsed(text)) is not None}
    everywhere = Everywhere(trees)
    for path, one in found.items():
        made = _converted(path, texts[path], one, everywhere, everything)
        if made is not None:
            done[path] = made
    return done


@dataclass(frozen=True)
class _Read:
    fixed: Fixed
    both: bool = False


def _converted(
    path: Path,
    text: str,
    one: _Read,
    everywhere: Everywhere,
    everything: Mapping[Path, str],
) -> Conversion | None:
    code, severity = (BOTH, Severity.REVIEW) if one.both else (CONVERTED, Severity.MIGRATED)
    new = everything[path]
    if path not in everywhere.trees:
        return _failed(path, text, new)
    edits, kinds = Edits(new), everywhere.kinds(path)
    told = [(number, MEANING, Severity.REVIEW, f"could not be converted: {why}") for number, why in one.fixed.warnings]
    old = old_lines(text, new)
    told = [(min(line, text.count("\n") + 1), *rest) for line, *rest in told]  # type: ignore[misc]
    if not one.both:
        meanings = Meanings(edits, kinds)
        meanings.keep()
        told += [(old(node.lineno), MEANING, Severity.REVIEW, message) for node, message in meanings.told]
        told += [
            (old(line), MEANING, Severity.REVIEW, message)
            for line, message in local_imports(path, edits, kinds.tree, everything)
        ]
    if not divides_truly(text):
        changed, unsure = divide(edits, kinds)
        told += [
            (old(node.lineno), code, severity, f"`{_short(edits, node)}` divides integers: `//` now")
            for node in changed
        ]
        told += [
            (
                old(node.lineno),
                DIVISION,
                Severity.REVIEW,
                f"`{_short(edits, node)}`: for two integers Python 2 dropped the fraction: write `//` if they are",
            )
            for node in unsure
        ]
    new = edits.written()
    if parsed(new) is None:
        return _failed(path, text, new)
    if new == text and not told:
        return None
    if new != text:
        words = "may be Python 2, as others of the project are" if one.both else "Python 2"
        told.append((_first_difference(text, new), code, severity, f"{words}: written as Python 3"))
    findings = sorted({Finding(str(path), line, 1, code, severity, message) for line, code, severity, message in told})
    return Conversion(new, tuple(findings), both=one.both)


def _failed(path: Path, text: str, new: str) -> Conversion:
    error = syntax_error(new)
    line = old_lines(text, new)(error.lineno or 1) if error is not None else 1
    reason = error.msg if error is not None else "it is not Python"
    message = f"cannot parse: {reason}, also after the conversion from Python 2; correct it by hand"
    return Conversion(text, problem=Finding(str(path), line, 1, _CANNOT_PARSE, Severity.ERROR, message))


def _short(edits: Edits, node: ast.expr | ast.stmt) -> str:
    code = " ".join(edits.code(node).split())
    return code if len(code) <= 60 else f"{code[:57]}..."


def _first_difference(text: str, new: str) -> int:
    pairs = zip(text.split("\n"), new.split("\n"))
    return next((number for number, (one, other) in enumerate(pairs, 1) if one != other), 1)


def _with_spaces(text: str) -> str:
    """Indentation in spaces, as Python 2 counted tabs, where Python 3 finds them inconsistent."""
    if "\t" not in text or not isinstance(syntax_error(text), TabError):
        return text
    lines = text.split("\n")
    for number in _beginnings(text):
        line = lines[number - 1]
        rest = line.lstrip(" \t")
        lines[number - 1] = line[: len(line) - len(rest)].expandtabs(8) + rest
    return "\n".join(lines)


def _beginnings(text: str) -> Iterator[int]:
    """The lines that a statement or a comment begins on; those inside of texts over several lines are none."""
    from fissix.pgen2 import tokenize

    last = 0
    try:
        for kind, _, (start, _), (end, _), _ in tokenize.generate_tokens(io.StringIO(text).readline):
            if kind in (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
                continue
            if start > last:
                yield start
            last = max(last, end)
    except (tokenize.TokenError, IndentationError):
        return
