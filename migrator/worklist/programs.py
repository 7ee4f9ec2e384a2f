"""The programs of a project, by what becomes of them, and why."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from migrator.bridge.table import is_maker, is_trainer
from migrator.findings import Finding, Severity
from migrator.names.references import read_names
from migrator.names.spelling import canonical
from migrator.project.imports import Edges, above, below
from migrator.source.reading import Source
from migrator.syntax import NOT_PYTHON, tree_of, walked

FORMS = ("native", "bridge", "blocked", "silent")
_NATIVE, _BRIDGED = "TFM101", ("TFM155", "TFM199")
_RELAYED = re.compile(r"^(this Estimator's program is blocked at|it shares files with a program that is blocked)")
_OF_OTHERS = ("TFM157",)  # about names of other libraries
_GONE = ("TFM270",)  # names that TensorFlow 2.21 lacks
_QUOTED = re.compile(r"`([^`]*)`")
_SYMBOL = re.compile(r"tf(\.\w+)+")


@dataclass(frozen=True, order=True)
class Reason:
    """One thing that blocks programs: a code, and the symbol that it is about, or else what the finding says."""

    code: str
    what: str
    is_symbol: bool


@dataclass(frozen=True)
class Program:
    """A program: where its Estimator is made (or its session trains), and what becomes of it.

    `form` is native, bridge, blocked, or silent: nothing is said of it, since nothing in the project trains it. `files`
    are those with TensorFlow that it consists of. `blocking` are the findings that stand in its way, by reason, and
    `reviews` those that somebody should look at.
    """

    path: str
    line: int
    made: str
    form: str
    files: tuple[str, ...]
    blocking: tuple[tuple[Reason, tuple[Finding, ...]], ...] = ()
    reviews: tuple[Finding, ...] = ()
    cell: int = 0

    @property
    def place(self) -> str:
        """As in findings, without the column."""
        return f"{self.path}:{f'cell {self.cell}:' if self.cell else ''}{self.line}"

    @property
    def reasons(self) -> frozenset[Reason]:
        """What blocks it."""
        return frozenset(reason for reason, _ in self.blocking)


def programs_of(
    sources: Mapping[Path, Source], findings: Mapping[Path, Sequence[Finding]], edges: Edges, given: Iterable[Path]
) -> list[Program]:
    """The programs that begin in the given files, sorted by place; `findings` are those of all files."""
    own = list(given)
    found: list[Program] = []
    told: set[Path] = set()
    for path in own:
        if path in sources:
            for line, made in _starts(sources[path], findings.get(path, ())):
                program, files = _program(path, line, made, sources, findings, edges)
                found.append(program)
                told |= files
    found = [one for one in found if one.form != "silent" or not _made_for(one, found, sources)]
    for path in own:
        # What trains by hand, and what only uses names that are gone.
        manual = [one for one in findings.get(path, ()) if one.severity is Severity.MANUAL]
        if manual and path not in told:
            program, files = _program(path, manual[0].line, "", sources, findings, edges)
            found.append(program)
            told |= files
    return sorted((_in_cell(one, sources) for one in found), key=lambda one: (one.path, one.cell, one.line))


def _made_for(silent: Program, programs: Sequence[Program], sources: Mapping[Path, Source]) -> bool:
    """Whether an Estimator is made by a function that another program calls: it is that program's."""
    makers = [
        node.name
        for node in walked(tree_of(sources[Path(silent.path)].text))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.lineno <= silent.line <= (node.end_lineno or node.lineno)
    ]
    return any(
        isinstance(node, ast.Call)
        and node.lineno == one.line
        and (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")) in makers
        for one in programs
        if makers and one.form == "native" and not one.made and silent.path in one.files
        for node in walked(tree_of(sources[Path(one.path)].text))
    )


def _starts(source: Source, findings: Sequence[Finding]) -> Iterator[tuple[int, str]]:
    """Where the programs of a file begin, and what is made there."""
    made = dict(_makers(source.text)) if "stimator" in source.text else {}
    for finding in findings:
        if finding.code in (_NATIVE, *_BRIDGED):
            made.setdefault(finding.line, "")
    yield from sorted(made.items())


def _makers(text: str) -> list[tuple[int, str]]:
    try:
        tree = tree_of(text)
    except NOT_PYTHON:
        return []
    heads = {one.nodes[-1]: canonical(one.origin) for one in read_names(tree).references}
    made: list[tuple[int, str]] = []
    trained: list[tuple[int, str]] = []
    for node in walked(tree):
        if isinstance(node, ast.Call):
            name = heads.get(node.func, "")
            if is_maker(name):
                made.append((node.lineno, name))
            elif is_trainer(name):
                trained.append((node.lineno, name))
        elif isinstance(node, ast.ClassDef):
            made += [(node.lineno, heads[base]) for base in node.bases if is_maker(heads.get(base, ""))]
    return made or trained[:1]


def _program(
    path: Path,
    line: int,
    made: str,
    sources: Mapping[Path, Source],
    findings: Mapping[Path, Sequence[Finding]],
    edges: Edges,
) -> tuple[Program, set[Path]]:
    codes = {one.code for one in findings.get(path, ()) if one.line == line}
    reach = {one for one in below(edges, [path]) if one in sources and "tensorflow" in sources[one].text} | {path}
    blocking: dict[Reason, list[Finding]] = {}
    form = "native" if _NATIVE in codes else "bridge" if not codes.isdisjoint(_BRIDGED) else ""
    if not form:
        blocking = _blocking(reach, findings)
        if not blocking:
            reach = {one for one in above(edges, [path]) if one in sources} | reach
            blocking = _blocking(reach, findings)
        form = "blocked" if blocking else "silent"
    reviews = [one for file in sorted(reach) for one in findings.get(file, ()) if one.severity is Severity.REVIEW]
    program = Program(
        str(path),
        line,
        made,
        form,
        tuple(str(one) for one in sorted(reach)),
        tuple((reason, tuple(sorted(some))) for reason, some in sorted(blocking.items())),
        tuple(sorted(one for one in reviews if one.code not in _BRIDGED)) if form in ("native", "bridge") else (),
    )
    return program, reach


def _blocking(files: Iterable[Path], findings: Mapping[Path, Sequence[Finding]]) -> dict[Reason, list[Finding]]:
    manual = [one for file in sorted(files) for one in findings.get(file, ()) if one.severity is Severity.MANUAL]
    first_hand = [one for one in manual if not _RELAYED.match(one.message)]
    found: dict[Reason, list[Finding]] = {}
    for one in first_hand or manual:
        found.setdefault(reason_of(one), []).append(one)
    return found


def says_what_to_write(finding: Finding) -> bool:
    """Whether a finding names what is to stand in the place of a symbol, so that nobody has to find that out."""
    return finding.code in _GONE and ": write `" in finding.message


def reason_of(finding: Finding) -> Reason:
    """The reason that a finding belongs to: that of a symbol, or of all findings that say the same of other names."""
    quoted = _QUOTED.findall(finding.message)
    symbol = next((name for name in quoted if _SYMBOL.fullmatch(name)), None)
    if symbol is None and finding.code in _OF_OTHERS and quoted:
        symbol = quoted[0]
    if symbol is not None:
        return Reason(finding.code, symbol, True)
    said = re.sub(r"\d+", "N", _QUOTED.sub("`\u2026`", finding.message)).partition(": ")[0]
    return Reason(finding.code, said[:100], False)


def _in_cell(program: Program, sources: Mapping[Path, Source]) -> Program:
    source = sources.get(Path(program.path))
    if source is None or source.notebook is None:
        return program
    from dataclasses import replace

    cell, line = source.notebook.place(program.line)
    return replace(program, cell=cell, line=line)
