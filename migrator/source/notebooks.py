"""Notebooks: the code of their cells as one text, and a changed text back into the cells that its lines came from.

Every cell begins with a marker, and what is no Python (`%matplotlib inline`, `!pip install x`) has a placeholder in its
place, so that the text parses. Nothing but the sources of cells that changed is written anew: all other bytes stay.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

#: The ending of notebooks' names.
SUFFIX = ".ipynb"
#: Lines around code that is to stand in a cell of its own, before the cell that it was put into.
NEW_CELL, END_OF_CELL = "# In[tf-migrate: new cell]", "# In[tf-migrate: end]"

_MARKER = "# In[tf-migrate: {}]"
_IS_MARKER = re.compile(r"# In\[tf-migrate: (\d+|new cell|end)\]")
_PLACE = "pass  # tf-migrate: line {}"
_VALUE = "get_ipython().tf_migrate({})"
_HIDDEN = re.compile(r"pass  # tf-migrate: line (\d+)|get_ipython\(\)\.tf_migrate\((\d+)\)")
_SPACE = re.compile(r"[ \t\r\n]*")
# A piece of Python that may hold line ends or brackets without meaning them, or one character.
_PIECE = re.compile(
    r"\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|#[^\n]*|\\\n|.",
    re.DOTALL,
)
_MAGIC = re.compile(r"(?P<line>[%!?].*|%{0,2}[\w.*]+\?{1,2}\s*|(?:pip3?|conda|cd|ls|cat|mkdir|cp|mv|rm)\s+[^=\s(].*)\Z")
_ASSIGNED = re.compile(r"(?P<target>[\w.,\[\]'\" \t]+=[ \t]*)(?P<value>[!%][^=].*)\Z", re.DOTALL)
_FUTURE = re.compile(r"from[ \t]+__future__[ \t]+import\b")
_TENSORFLOW_1 = re.compile(r"%tensorflow_version\s+1|\btensorflow(?:[-_]gpu|[-_]cpu)?\s*[=~<]=?=?\s*[\"']?1\.")
# Cell magics whose cell is Python all the same.
_OF_PYTHON = frozenset({"time", "timeit", "capture", "prun", "debug", "memit", "mprun", "python", "python3"})


class NotebookError(ValueError):
    """Why a notebook cannot be read, or changed: a sentence, and the cell and line that it is about."""

    def __init__(self, message: str, cell: int = 0, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.cell = cell
        self.line = line
        self.column = column


@dataclass(frozen=True)
class Cell:
    """A cell of code."""

    number: int
    """Its place among all cells of the notebook, 1-based."""
    begin: int
    """Where its object begins in the document."""
    start: int
    """Where its source begins in the document."""
    end: int
    """The end of that."""
    code: str
    """Its source, as it stands in the notebook."""
    first: int
    """The line of the joined text that its marker is on, 1-based."""
    lines: tuple[int, ...]
    """For each line of the joined text behind the marker: the line of the cell that it is."""
    opaque: bool = False
    """Whether it holds no Python: it may not be given any."""


@dataclass(frozen=True)
class Notebook:
    """What is needed to find a line of the joined text in its cell, and to put a new text in its place."""

    document: str
    cells: tuple[Cell, ...] = ()
    hidden: tuple[str, ...] = field(default=(), repr=False)

    def place(self, line: int) -> tuple[int, int]:
        """The number of a cell, and the line of it, for a line of the joined text."""
        found = next((cell for cell in reversed(self.cells) if cell.first <= line), None)
        if found is None:
            return (self.cells[0].number, 1) if self.cells else (1, 1)
        at = min(line - found.first - 1, len(found.lines) - 1)
        return found.number, found.lines[at] if at >= 0 else 1

    def lines_for_tensorflow_1(self, text: str) -> Iterator[tuple[int, str]]:
        """The lines of a text that ask the notebook's machine for TensorFlow 1, and the place of each, 1-based."""
        for number, line in enumerate(text.split("\n"), 1):
            match = _HIDDEN.search(line)
            if match is not None:
                hidden = self.hidden[int(match[1] or match[2])]
                if _TENSORFLOW_1.search(hidden):
                    yield number, hidden.split("\n")[0]


# -- from the document to one text -----------------------------------------------------------------------------------


def read_notebook(document: str) -> tuple[Notebook, str]:
    """The notebook in a JSON document, and its code as one text; none where its language is not Python.

    Raises NotebookError for what is no notebook of format 4.
    """
    try:
        data = json.loads(document)
    except (ValueError, RecursionError) as error:
        line, column = (error.lineno, error.colno) if isinstance(error, json.JSONDecodeError) else (1, 1)
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise NotebookError(f"the notebook is not JSON: {reason}", 0, line, column) from None
    if isinstance(data, dict) and "worksheets" in data:
        raise NotebookError("the notebook has an old format: jupyter nbconvert --to notebook --inplace converts it")
    if not isinstance(data, dict) or not isinstance(data.get("cells"), list):
        raise NotebookError("the file is not a notebook: it has no list of cells")
    if not _is_python(data.get("metadata")):
        return Notebook(document), ""
    hidden: list[str] = []
    cells: list[Cell] = []
    text: list[str] = []
    for number, (begin, start, end, code) in enumerate(_sources(document), 1):
        if code is None:
            continue
        body, lines, opaque = _readable(code, hidden, is_first=not any(text[1:]))
        cells.append(Cell(number, begin, start, end, code, len(text) + 1, lines, opaque))
        text += [_MARKER.format(number), *body]
    return Notebook(document, tuple(cells), tuple(hidden)), "".join(f"{line}\n" for line in text)


def code_of(document: str) -> str:
    """The code of a notebook's cells as one script, where lines that are no Python do nothing; "" if it has none."""
    try:
        notebook, text = read_notebook(document)
    except NotebookError:
        return ""

    def shown(match: re.Match[str]) -> str:
        line = notebook.hidden[int(match[1] or match[2])].replace("\n", " ")
        if _FUTURE.match(line):
            return "pass"
        return f"pass  # {line}" if match[1] else "None"

    lines = [line for line in text.split("\n") if not _IS_MARKER.fullmatch(line)]
    return _HIDDEN.sub(shown, "\n".join(lines))


def _is_python(metadata: Any) -> bool:
    metadata = metadata if isinstance(metadata, dict) else {}
    for key, name in (("kernelspec", "language"), ("language_info", "name")):
        said = metadata.get(key)
        language = said.get(name) if isinstance(said, dict) else None
        if isinstance(language, str) and language:
            return "python" in language.lower()
    return True


def _sources(document: str) -> Iterator[tuple[int, int, int, str | None]]:
    """For each cell where it begins, where its source begins and ends, and that as text (None if it is no code)."""
    at = next(start for key, start, _, _ in _members(document, _skip(document, 0)) if key == "cells")
    for begin, cell in _elements(document, at):
        source = None
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            for key, start, end, value in _members(document, begin):
                if key == "source":
                    joined = "".join(map(str, value)) if isinstance(value, list) else str(value)
                    source = start, end, joined
        yield (begin, *source) if source is not None else (begin, 0, 0, None)


def _skip(document: str, at: int) -> int:
    found = _SPACE.match(document, at)
    assert found is not None
    return found.end()


def _members(document: str, at: int) -> Iterator[tuple[str, int, int, Any]]:
    """The members of the object that begins at a place: their keys, where their values begin and end, and these."""
    decoder = json.JSONDecoder()
    at = _skip(document, at + 1)
    while document[at] != "}":
        key, at = scanstring(document, at + 1)
        start = _skip(document, _skip(document, at) + 1)
        value, end = decoder.raw_decode(document, start)
        yield key, start, end, value
        at = _skip(document, end)
        if document[at] == ",":
            at = _skip(document, at + 1)


def _elements(document: str, at: int) -> Iterator[tuple[int, Any]]:
    """Where the elements of the list that begins at a place begin, and these."""
    decoder = json.JSONDecoder()
    at = _skip(document, at + 1)
    while document[at] != "]":
        value, end = decoder.raw_decode(document, at)
        yield at, value
        at = _skip(document, end)
        if document[at] == ",":
            at = _skip(document, at + 1)


def _readable(code: str, hidden: list[str], is_first: bool) -> tuple[list[str], tuple[int, ...], bool]:
    """The lines of a cell as Python, the line of the cell that each of them is, and whether there is no Python.

    What is no Python is added to `hidden`, and so is a `from __future__ import` that does not come first.
    """
    start = re.match(r"\s*%%(\w+)[^\n]*", code)
    if start is not None and start[1] not in _OF_PYTHON:
        return [], (), True
    if start is None and _parses(code) and (is_first or "__future__" not in code):
        lines = code.split("\n")
        kept = lines if lines[-1] else lines[:-1]
        return kept, tuple(range(1, len(kept) + 1)), False
    shown: list[str] = []
    numbers: list[int] = []
    number = 1
    for statement in _logical_lines(code):
        text = _placed(statement, hidden, is_first and not any(shown)).split("\n")
        shown += text
        numbers += range(number, number + len(text))
        number += statement.count("\n") + 1
    while shown and not shown[-1]:
        shown.pop()
    return shown, tuple(numbers[: len(shown)]), False


def _placed(statement: str, hidden: list[str], is_first: bool) -> str:
    """A logical line as Python."""
    stripped = statement.lstrip(" \t")
    indent = statement[: len(statement) - len(stripped)]
    hides = _MAGIC.fullmatch(stripped.replace("\\\n", " ")) is not None
    if hides or (not is_first and _FUTURE.match(stripped)):
        if hides and not stripped.startswith(("%", "!", "?")) and _parses(stripped):
            return statement  # `ls -l` where both are numbers, say
        hidden.append(stripped)
        return indent + _PLACE.format(len(hidden) - 1)
    assigned = _ASSIGNED.fullmatch(stripped)
    if assigned is not None and not _parses(stripped):
        hidden.append(assigned["value"])
        return indent + assigned["target"] + _VALUE.format(len(hidden) - 1)
    return statement


def _logical_lines(code: str) -> Iterator[str]:
    """The logical lines of a cell, without their ends. One that is no Python ends where its line ends."""
    at = 0
    while at < len(code):
        start = at
        head = re.compile(r"[ \t]*[%!?]|[\w.,\[\] \t]+=[ \t]*[%!]").match(code, at)
        if head is not None:
            end = re.compile(r"(?:\\\n|[^\n])*").match(code, at)
            assert end is not None
            at = end.end()
        else:
            depth = 0
            while at < len(code) and (code[at] != "\n" or depth > 0):
                piece = _PIECE.match(code, at)
                assert piece is not None
                depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(piece[0], 0)
                at = piece.end()
        yield code[start:at]
        at += 1


def _parses(code: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


# -- from a new text to the document ---------------------------------------------------------------------------------


def with_text(notebook: Notebook, old: str, new: str) -> str:
    """The document with a new text in the place of the old one, each line in the cell where it belongs.

    Raises NotebookError where a line that is no Python would be lost, or a cell would not parse by itself.
    """
    plain, added = _without_new_cells(new)
    held = [int(match[1] or match[2]) for match in _HIDDEN.finditer(plain)]
    if held != list(range(len(notebook.hidden))):
        lost = next((n for n in range(len(notebook.hidden)) if held.count(n) != 1), 0)
        line = notebook.hidden[lost].split("\n")[0]
        raise NotebookError(f"the migrated notebook would lose or move the line `{line}`")
    if new == old:
        return notebook.document
    if all(cell.opaque for cell in notebook.cells):
        raise NotebookError("the notebook has no cell for the migrated code")
    before = old.split("\n")
    lines = plain.split("\n") if added else _behind_first_magics(before, plain.split("\n"))
    owners = _owners(notebook, before, lines)
    edits: list[tuple[int, int, str]] = []
    for index, cell in enumerate(notebook.cells):
        further = [code for at, code in added if owners[min(at, len(owners) - 1)] == index]
        if further:
            edits.append((cell.begin, cell.begin, "".join(_new_cell(notebook, code, cell) for code in further)))
        if cell.opaque:
            continue
        own = [line for line, owner in zip(lines, owners) if owner == index and not _IS_MARKER.fullmatch(line.strip())]
        code = _code(own, notebook, cell)
        if code != cell.code:
            edits.append((cell.start, cell.end, _source(notebook, cell, code)))
    document = notebook.document
    for start, end, text in reversed(edits):
        document = document[:start] + text + document[end:]
    if added:
        _check_format(notebook.document, document)
    return document


def _without_new_cells(text: str) -> tuple[str, list[tuple[int, str]]]:
    """The text without the code of new cells, and that, with the line that it stood before (0-based)."""
    kept: list[str] = []
    added: list[tuple[int, str]] = []
    within: list[str] | None = None
    for line in text.split("\n"):
        if line == NEW_CELL:
            within = []
        elif line == END_OF_CELL and within is not None:
            added.append((len(kept), "\n".join(within).strip("\n")))
            within = None
        elif within is not None:
            within.append(line)
        else:
            kept.append(line)
    return "\n".join(kept), added


def _behind_first_magics(old: Sequence[str], new: list[str]) -> list[str]:
    """The lines of a text, the first new statements behind the lines after them that are no Python.

    What is imported may be what `!pip install` puts there, and nothing new belongs into a cell of settings.
    """
    known = {line.strip() for line in old if line.strip()}
    statements = list(_statements(new))
    stay = [any(line.strip() in known for line in new[start:end]) for start, end in statements]
    first = stay.index(False) if False in stay else len(stay)
    added = next((at for at in range(first, len(stay)) if stay[at]), len(stay))
    last = added
    while last < len(statements) and _HIDDEN.fullmatch(new[statements[last][0]]):
        last += 1
    if last == added:
        return new
    start, stop = statements[first][0], statements[added - 1][1]
    middle, end = statements[added][0], statements[last - 1][1]
    gap = [line for line in new[stop:middle] if _IS_MARKER.fullmatch(line)]
    if end < len(new) and _IS_MARKER.fullmatch(new[end]):
        end += 1
    return [*new[:start], *gap, *new[middle:end], *new[start:stop], *new[end:]]


def _owners(notebook: Notebook, old: Sequence[str], new: Sequence[str]) -> list[int]:
    """For each line of a new text the index of the cell that it belongs to; a statement is never divided.

    A line that stays is in its cell, what takes the place of others is in the last cell that they were in, and what is
    new comes with what follows it.
    """
    cells = notebook.cells
    of_old = [0] * len(old)
    for index, cell in enumerate(cells):
        for at in range(cell.first - 1, len(old)):
            of_old[at] = index
    marked = [_IS_MARKER.fullmatch(line.strip()) is not None for line in old]
    kept: list[int | None] = [None] * len(new)
    meant: list[int | None] = [None] * len(new)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for what, start, end, target, target_end in matcher.get_opcodes():
        gone = [of_old[at] for at in range(start, end) if old[at].strip() and not marked[at]]
        for at in range(target, target_end):
            if what == "equal":
                kept[at] = of_old[start + at - target]
            elif gone:
                meant[at] = gone[-1]
    for first, last in _statements(new):
        votes = Counter(owner for owner in kept[first:last] if owner is not None)
        if votes:
            most = max(votes.values())
            kept[first:last] = [max(owner for owner, count in votes.items() if count == most)] * (last - first)
        else:
            kept[first:last] = [None] * (last - first)
            meant[first:last] = [next((one for one in meant[first:last] if one is not None), None)] * (last - first)
    wanted = [own if own is not None else other for own, other in zip(kept, meant)]
    # Nothing but the marker of a cell without Python is its own.
    wanted = [None if one is None or cells[one].opaque else one for one in wanted]
    return _in_order(wanted, next(index for index, cell in enumerate(cells) if not cell.opaque))


def _in_order(wanted: Sequence[int | None], first: int) -> list[int]:
    """The owners of all lines: those without one belong to the next cell, else to that before."""
    following: list[int | None] = []
    after: int | None = None
    for owner in reversed(wanted):
        after = after if owner is None else owner
        following.append(after)
    following.reverse()
    found: list[int] = []
    before = first
    for nearest in following:
        before = max(before, before if nearest is None else nearest)
        found.append(before)
    return found


def _statements(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The lines of each statement of the top level, as a range, 0-based."""
    for node in ast.parse("\n".join(lines)).body:
        decorators = getattr(node, "decorator_list", [])
        yield min([node.lineno, *(one.lineno for one in decorators)]) - 1, node.end_lineno or node.lineno


def _code(lines: list[str], notebook: Notebook, cell: Cell) -> str:
    """The source of a cell that is made of some lines of the text."""
    first = next((at for at, line in enumerate(lines) if _is_cell_magic(line, notebook)), 0)
    lines = [lines[first], *lines[:first], *lines[first + 1 :]] if first else lines
    text = "\n".join(lines)
    if not _parses(text):
        raise NotebookError("the migrated cell does not parse on its own", cell.number)
    text = _HIDDEN.sub(lambda match: notebook.hidden[int(match[1] or match[2])], text).strip("\n")
    if text == cell.code.strip("\n"):
        return cell.code
    before = cell.code[: len(cell.code) - len(cell.code.lstrip("\n"))]
    after = cell.code[len(cell.code.rstrip("\n")) :]
    return f"{before}{text}{after}" if text else ""


def _is_cell_magic(line: str, notebook: Notebook) -> bool:
    match = _HIDDEN.fullmatch(line)
    return match is not None and match[1] is not None and notebook.hidden[int(match[1])].startswith("%%")


def _source(notebook: Notebook, cell: Cell, code: str) -> str:
    """A source as JSON, laid out as that of the cell was; lines that stay keep their bytes."""
    document = notebook.document
    old = document[cell.start : cell.end]
    if not old.startswith("["):
        return json.dumps(code, ensure_ascii=_escapes(old))
    known = {}
    gaps: list[str] = []
    at = cell.start + 1
    for begin, value in _elements(document, cell.start):
        _, end = scanstring(document, begin + 1) if document[begin] == '"' else (None, begin)
        if isinstance(value, str) and end > begin:
            known[value] = document[begin:end]
        gaps.append(document[at:begin])
        at = end
    opening, between, closing = _layout(notebook, cell)
    if gaps:
        opening, closing = gaps[0], document[at : cell.end - 1]
        between = gaps[1] if len(gaps) > 1 else f",{opening}" if "\n" in opening else between
    lines = [known.get(line) or json.dumps(line, ensure_ascii=_escapes(old)) for line in _lines(code)]
    return f"[{opening}{between.join(lines)}{closing}]" if lines else "[]"


def _lines(code: str) -> list[str]:
    return [line for line in re.split(r"(?<=\n)", code) if line]


def _layout(notebook: Notebook, cell: Cell) -> tuple[str, str, str]:
    """What stands before, between and behind the lines of a source in this document."""
    document = notebook.document
    line = document[document.rfind("\n", 0, cell.start) + 1 : cell.start]
    indent = line[: len(line) - len(line.lstrip(" \t"))]
    if line.strip() not in ('"source":', '"source" :'):
        return "", ", ", ""
    unit = indent[: max(1, len(indent) // 3)]
    return f"\n{indent}{unit}", f",\n{indent}{unit}", f"\n{indent}"


def _escapes(old: str) -> bool:
    """Whether letters beyond ASCII are written as numbers."""
    return old.isascii() and re.search(r"\\u(?!00[01])", old) is not None


def _new_cell(notebook: Notebook, code: str, before: Cell) -> str:
    """A new cell as JSON, and what stands between it and the cell behind it."""
    from nbformat import v4

    data = json.loads(notebook.document)
    cell = dict(v4.new_code_cell(code, id=hashlib.sha256(code.encode()).hexdigest()[:8]))  # type: ignore[no-untyped-call]
    if (data.get("nbformat", 4), data.get("nbformat_minor", 0)) < (4, 5):
        del cell["id"]
    cell["source"] = _lines(code)
    line = notebook.document[notebook.document.rfind("\n", 0, before.begin) + 1 : before.begin]
    if line.strip():
        return json.dumps(cell, sort_keys=True, ensure_ascii=False) + ", "
    text = json.dumps(cell, sort_keys=True, ensure_ascii=False, indent=line[: max(1, len(line) // 2)])
    return text.replace("\n", f"\n{line}") + f",\n{line}"


def _check_format(old: str, new: str) -> None:
    """Raises NotebookError where a notebook was as its format demands, and is not any more."""
    import nbformat

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before, after = json.loads(old), json.loads(new)
        try:
            nbformat.validate(before)
        except (nbformat.ValidationError, KeyError, TypeError):
            return
        try:
            nbformat.validate(after)
        except nbformat.ValidationError as error:
            raise NotebookError(f"the migrated notebook is invalid: {error.message}") from None
