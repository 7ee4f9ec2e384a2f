"""Decoding: every byte comes back, and what cannot be decoded is one finding that says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.findings import Finding, Severity
from migrator.source.newlines import unified, with_newlines_of
from migrator.source.reading import Source, decode, encode, read

PATH = Path("train.py")

DECODABLE = {
    "empty": (b"", "utf-8"),
    "plain": (b"x = 1\n", "utf-8"),
    "no final newline": (b"x = 1", "utf-8"),
    "crlf": (b"x = 1\r\ny = 2\r\n", "utf-8"),
    "cr": (b"x = 1\ry = 2\r", "utf-8"),
    "mixed": (b"x = 1\r\ny = 2\nz = 3\rw = 4", "utf-8"),
    "form feed": (b"x = 1\n\x0c\ny = 2\n", "utf-8"),
    "utf-8": ("é = '漢'\n".encode(), "utf-8"),
    "latin-1": ("# -*- coding: latin-1 -*-\ns = 'é'\n".encode("latin-1"), "iso-8859-1"),
    "latin-1 in line 2": (
        "#!/usr/bin/env python\n# vim: set fileencoding=latin-1 :\ns = 'é'\n".encode("latin-1"),
        "iso-8859-1",
    ),
    "latin-1 after lone CR": (
        "#!/usr/bin/python\r# coding: latin-1\rs = 'é'\r".encode("latin-1"),
        "iso-8859-1",
    ),
    "cp1252": ("# coding: cp1252\ns = '€'\r\n".encode("cp1252"), "cp1252"),
    "euc-jp": ("# coding: euc_jp\ns = '日本'\n".encode("euc_jp"), "euc_jp"),
    "declaration too late": (b"import os\nimport sys\n# coding: latin-1\n", "utf-8"),
    "declaration after code on a lone CR": (b"import os\r# coding: latin-1\r", "utf-8"),
    "U+2028 is no newline": ("s = 'a\u2028b'\nt = 1\n".encode(), "utf-8"),
}


@pytest.mark.parametrize(("raw", "encoding"), DECODABLE.values(), ids=DECODABLE.keys())
@pytest.mark.parametrize("bom", [False, True])
def test_round_trip(raw: bytes, encoding: str, bom: bool, tmp_path: Path) -> None:
    if encoding != "utf-8":
        bom = False  # a byte order mark contradicts any other declaration
    path = tmp_path / "x.py"
    path.write_bytes(b"\xef\xbb\xbf" * bom + raw)
    source = read(path)
    assert isinstance(source, Source)
    assert (source.encoding, source.bom) == (encoding, bom)
    assert not source.text.startswith("\ufeff")
    assert encode(source, source.text) == path.read_bytes()


@given(st.lists(st.tuples(st.sampled_from(["x = 1", "# é漢", "", "\x0c"]), st.sampled_from(["\n", "\r\n", "\r"]))))
def test_round_trip_of_any_newlines(lines: list[tuple[str, str]]) -> None:
    raw = "".join(line + newline for line, newline in lines).encode()
    source = decode(PATH, raw)
    assert isinstance(source, Source)
    assert encode(source, source.text) == raw


UNDECODABLE = {
    "latin-1 without declaration": (b"# one\r\ns = '\xe9'\n", (2, 6), "0xe9 is not valid utf-8"),
    "in the first line": (b"s = '\xe9'\n", (1, 6), "0xe9 is not valid utf-8"),
    "unknown encoding": (b"# coding: klingon\nx = 1\n", (1, 1), "unknown encoding: klingon"),
    "no text encoding": (b"# coding: hex\nx = 1\n", (1, 1), "hex"),
    "byte order mark against declaration": (b"\xef\xbb\xbf# coding: latin-1\n", (1, 1), "encoding problem"),
    "bytes that would change": (b"# coding: iso2022_jp\ns = '\x1b(B\x1b(B'\n", (1, 1), "do not survive"),
}


@pytest.mark.parametrize(("raw", "place", "said"), UNDECODABLE.values(), ids=UNDECODABLE.keys())
def test_undecodable(raw: bytes, place: tuple[int, int], said: str) -> None:
    finding = decode(PATH, raw)
    assert isinstance(finding, Finding)
    assert (finding.code, finding.severity, finding.path) == ("TFM901", Severity.ERROR, "train.py")
    assert (finding.line, finding.column) == place
    assert said in finding.message
    assert "UTF-8" in finding.message, "it says what to do"


PYTHON_2 = {
    "print": "x = 1\nprint 'hello'\n",
    "except": "try:\n  pass\nexcept ValueError, e:\n  pass\n",
    "raise": "x = 1\nraise ValueError, 'wrong'\n",
    "exec": "x = 1\nexec 'y = 1'\n",
    "octal": "x = 1\nos.chmod(p, 0755)\n",
    "long": "x = 1\ny = 10L\n",
    "backquotes": "x = 1\ny = `x`\n",
    "unequal": "x = 1\nif x <> 2: pass\n",
    "raw unicode": "x = 1\ny = ur'a'\n",
    "tuple parameter": "x = 1\ndef f(a, (b, c)): pass\n",
    "tabs and spaces": "if 1:\n        x = 1\n\ty = 2\n",
}


@pytest.mark.parametrize("text", PYTHON_2.values(), ids=PYTHON_2.keys())
def test_python_2_is_named_and_sent_to_its_conversion(text: str) -> None:
    finding = decode(PATH, text.encode())
    assert isinstance(finding, Finding)
    assert (finding.code, finding.severity) == ("TFM902", Severity.ERROR)
    assert finding.line == (3 if text.startswith(("try", "if 1")) else 2)
    assert "`tf-migrate --python2 train.py` converts it first" in finding.message


@pytest.mark.parametrize("text", ["x = (\n", "x = = 1\n", "def f(:\n  pass\n", "x = '\0'\n", "(" * 500 + ")" * 500])
def test_other_syntax_errors_are_not_called_python_2(text: str) -> None:
    finding = decode(PATH, text.encode())
    assert isinstance(finding, Finding)
    assert finding.code == "TFM902"
    assert "python2" not in finding.message
    assert "\n" not in finding.message


def test_place_of_a_syntax_error_after_lone_crs() -> None:
    finding = decode(PATH, b"x = 1\ry = 2\rprint 'z'\r")
    assert isinstance(finding, Finding)
    assert (finding.line, finding.column) == (3, 1)
    assert str(finding).startswith("train.py:3:1: TFM902 cannot parse: ")


def test_syntax_of_files_that_do_not_concern_us_is_looked_at_only_when_strict() -> None:
    assert isinstance(decode(PATH, b"print 'x'\n", strict=False), Source)
    assert isinstance(decode(PATH, b"import tensorflow\nprint 'x'\n", strict=False), Finding)


def test_warnings_about_the_users_code_are_not_shown() -> None:
    assert isinstance(decode(PATH, b"x = '\\d'\n"), Source)  # pytest turns warnings into errors


def test_missing_file_and_folder(tmp_path: Path) -> None:
    for path, said in (
        (tmp_path / "no.py", "No such file"),
        (tmp_path, "Is a directory"),
        (Path("a\0b"), "null"),
    ):
        finding = read(path)
        assert isinstance(finding, Finding)
        assert finding.code == "TFM901"
        assert said in finding.message


MIXED = "a\r\nb\nc\rd\n"


def test_newlines_come_back() -> None:
    assert with_newlines_of(MIXED, unified(MIXED)) == MIXED
    assert with_newlines_of(MIXED, "a\nnew\nb\nd") == "a\r\nnew\nb\nd"
    assert with_newlines_of("a\r\nb", "a\nb\nc\n") == "a\r\nb\r\nc\r\n"
    assert with_newlines_of("a\rb\r", "b\n") == "b\r"


LINES = st.lists(st.tuples(st.sampled_from(["a", "b", "", "\x0c", "\u2028"]), st.sampled_from(["\n", "\r\n", "\r"])))


def joined(lines: list[tuple[str, str]]) -> str:
    return "".join(line + newline for line, newline in lines)


@given(LINES)
def test_newlines_of_any_unchanged_text_come_back(lines: list[tuple[str, str]]) -> None:
    text = joined(lines)
    assert with_newlines_of(text, unified(text)) == text


@given(LINES, LINES)
def test_newlines_never_change_the_lines(lines: list[tuple[str, str]], new: list[tuple[str, str]]) -> None:
    changed = unified(joined(new))
    assert unified(with_newlines_of(joined(lines), changed)) == changed
