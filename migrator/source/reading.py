"""From bytes to text, without losing one of them."""

from __future__ import annotations

import os
import re
import sys
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from migrator.findings import Finding, Severity
from migrator.syntax import tree_of

if TYPE_CHECKING:
    from migrator.source.notebooks import Notebook

CANNOT_DECODE = "TFM901"
CANNOT_PARSE = "TFM902"

_BOM = b"\xef\xbb\xbf"
_NEWLINE = re.compile(r"\r\n|\r|\n")

# What Python 2 allows and Python 3 does not, as it shows in the one line that the parser stumbles over.
_PYTHON_2 = re.compile(
    r"""
      ^\s*print\b(?!\s*[(=.,:)\]])                  # print statement
    | ^\s*exec\s+[^\s=.(]                                   # exec statement
    | ^\s*except\s+[^:]+,\s*\w+\s*:                         # except E, e:
    | ^\s*raise\s+[\w.]+\s*,                                # raise E, "message"
    | <> | `                                                # <>, backquotes
    | \b(?:0[0-7]+|0[xX][0-9a-fA-F]+|\d+)[lL]\b | \b0\d+\b  # 10L, 0777
    | \b[uU][rR]["']                                        # ur""
    | ^\s*def\s+\w+\s*\(.*\(.*\).*\)\s*:                    # def f(a, (b, c)):
    """,
    re.VERBOSE,
)
_PYTHON_2_MESSAGES = (
    "Missing parentheses in call to",
    "inconsistent use of tabs",
    "multiple exception types must be",
)


@dataclass(frozen=True)
class Source:
    """A decoded file. ``encode(source, source.text) == source.raw`` always holds."""

    path: Path
    raw: bytes
    text: str
    """Without the byte order mark, with the newlines of the file."""
    encoding: str
    """Name of the codec, never one that adds a byte order mark by itself."""
    bom: bool
    notebook: Notebook | None = None
    """Of a notebook, whose text is that of its cells: where they are, see `with_text`."""
    is_beside: bool = False
    """Whether it has nothing of TensorFlow, and is only imported by files that do: it stays as it is."""


def read(path: Path, *, strict: bool = True) -> Source | Finding:
    """Reads and decodes a file; see `read_bytes` and `decode`."""
    raw = read_bytes(path)
    return raw if isinstance(raw, Finding) else decode(path, raw, strict=strict)


def read_bytes(path: Path) -> bytes | Finding:
    """Returns what is in a file. A file that cannot be opened gives a TFM901 finding."""
    try:
        # This is a third faster than Path, for thousands of files.
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            return file.read()
    except OSError as error:
        return _error(path, CANNOT_DECODE, f"cannot read the file: {error.strerror or error}")
    except ValueError as error:  # a path with a null character
        return _error(path, CANNOT_DECODE, f"cannot read the file: {error}")


def decode(path: Path, raw: bytes, *, strict: bool = True) -> Source | Finding:
    """Returns the text of a Python file, or the one ERROR finding that says why there is none.

    The encoding is the file's own (byte order mark, PEP 263 declaration, else UTF-8). TFM901: the bytes are
    not in that encoding, or would not come back the same. TFM902: the text is not Python 3. A file that does
    not mention TensorFlow holds nothing to migrate, so whether it parses is looked at only when ``strict``.

    The text of a notebook is the code of its cells, see `notebooks`.
    """
    source = decode_text(path, raw)
    if isinstance(source, Source) and (strict or mentions_tensorflow(source)):
        return check_syntax(source) or source
    return source


def decode_text(path: Path, raw: bytes) -> Source | Finding:
    """As `decode`, whatever the text is: no TFM902."""
    try:
        encoding, bom = ("utf-8", raw.startswith(_BOM)) if is_notebook(path) else declared_encoding(raw)
    except SyntaxError as error:
        return _error(path, CANNOT_DECODE, f"{error.msg}; correct the coding line or convert the file to UTF-8")
    body = raw[len(_BOM) :] if bom else raw
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        line, column = _place(body[: error.start].decode("latin-1"))
        message = (
            f"byte 0x{body[error.start]:02x} is not valid {encoding}; declare the real encoding in the first "
            "line (such as # -*- coding: latin-1 -*-) or convert the file to UTF-8"
        )
        return _error(path, CANNOT_DECODE, message, line, column)
    except (UnicodeError, LookupError, ValueError) as error:
        return _error(path, CANNOT_DECODE, f"cannot decode as {encoding}: {error}; convert the file to UTF-8")
    source = _notebook(path, raw, text, bom) if is_notebook(path) else Source(path, raw, text, encoding, bom)
    if isinstance(source, Finding):
        return source
    if not _survives(source):
        message = f"the bytes do not survive a round trip through {encoding}; convert the file to UTF-8"
        return _error(path, CANNOT_DECODE, message)
    return source


def encode(source: Source, text: str) -> bytes:
    """Returns the bytes of ``text`` in the encoding of ``source``; UnicodeEncodeError for what it lacks.

    Of a notebook: its bytes with that text in its cells; NotebookError where that is not possible.
    """
    if source.notebook is not None:
        from migrator.source.notebooks import with_text

        text = with_text(source.notebook, source.text, text)
    return (_BOM if source.bom else b"") + text.encode(source.encoding)


def lines_of(text: str) -> list[str]:
    """The lines of a text, without their ends, as findings count them."""
    return _NEWLINE.split(text)


def is_notebook(path: Path) -> bool:
    """Tells whether a file is a notebook, by its name."""
    return os.fspath(path).endswith(".ipynb")


def code_bytes(path: Path, raw: bytes) -> bytes:
    """Returns the code that is in a file, as UTF-8 where it is a notebook: all of it where that cannot be read."""
    if not is_notebook(path):
        return raw
    from migrator.source.notebooks import NotebookError, read_notebook

    try:
        return read_notebook(raw.decode("utf-8-sig", "replace"))[1].encode("utf-8", "replace")
    except NotebookError:
        return raw


def _notebook(path: Path, raw: bytes, document: str, bom: bool) -> Source | Finding:
    """The source of a notebook; where its JSON cannot be read, or it has another format, TFM901."""
    from migrator.source.notebooks import NotebookError, read_notebook

    try:
        notebook, text = read_notebook(document)
    except NotebookError as error:
        return _error(path, CANNOT_DECODE, error.message, error.line, error.column)
    return Source(path, raw, text, "utf-8", bom, notebook)


def mentions_tensorflow(source: Source) -> bool:
    """Tells whether a file can hold anything to migrate at all; costs next to nothing."""
    return b"tensorflow" in source.raw


def check_syntax(source: Source) -> Finding | None:
    """Returns a TFM902 finding when the text is not Python that this interpreter can parse."""
    if source.notebook is None:
        return _check_syntax(source.path, source.text)
    lines = source.text.split("\n")
    for cell in source.notebook.cells:
        # Each by itself: a bracket that one cell leaves open is not the mistake of the next one.
        found = _check_syntax(source.path, "\n".join(lines[cell.first : cell.first + len(cell.lines)]))
        if found is not None:
            at = min(found.line, len(cell.lines)) - 1
            return replace(found, line=cell.lines[at], cell=cell.number)
    return _check_syntax(source.path, source.text)


def _check_syntax(path: Path, text: str) -> Finding | None:
    error = syntax_error(text)
    if error is None:
        return None
    line = error.lineno or 1
    lines = _NEWLINE.split(text)
    content = lines[line - 1] if line <= len(lines) else ""
    reason = error.msg.split(". Did you mean")[0]
    if error.msg.startswith(_PYTHON_2_MESSAGES) or _PYTHON_2.search(content):
        tool = "correct the cell" if is_notebook(path) else f"`tf-migrate --python2 {path}` converts it first"
        todo = f"it looks like Python 2; {tool}"
    else:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        todo = f"correct it, or run tf-migrate under the Python it is written for (this is {version})"
    return _error(path, CANNOT_PARSE, f"cannot parse: {reason}; {todo}", line, max(1, error.offset or 1))


def syntax_error(text: str) -> SyntaxError | None:
    """Returns why ``text`` is not Python, or None when it is."""
    try:
        tree_of(text)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError) as error:
        return SyntaxError(str(error) or "nested too deeply")
    return None


def declared_encoding(raw: bytes) -> tuple[str, bool]:
    """Returns the encoding a file declares and whether it has a byte order mark; SyntaxError if unknown."""
    # The first two lines as Python counts them: `tokenize` by itself does not end a line at a lone CR.
    head = re.split(rb"\r\n|\r|\n", raw, maxsplit=2)[:2]
    try:
        encoding = _detect(head)
    except SyntaxError as error:
        if "invalid or missing encoding declaration" not in str(error):
            raise
        # Bytes in the first two lines that are not UTF-8: the decoder can say which.
        encoding = "utf-8-sig" if raw.startswith(_BOM) else "utf-8"
    if encoding == "utf-8-sig":
        return "utf-8", True
    return encoding, False


def _detect(lines: Iterable[bytes]) -> str:
    rest = iter(lines)
    return tokenize.detect_encoding(lambda: next(rest) + b"\n")[0]


def _survives(source: Source) -> bool:
    try:
        return encode(source, source.text) == source.raw
    except UnicodeError:
        return False


def _place(before: str) -> tuple[int, int]:
    lines = _NEWLINE.split(before)
    return len(lines), len(lines[-1]) + 1


def _error(path: Path, code: str, message: str, line: int = 1, column: int = 1) -> Finding:
    return Finding(str(path), line, column, code, Severity.ERROR, message)
