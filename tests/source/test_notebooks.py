"""Notebooks: one text of all cells, and changes of it back in their cells, everything else byte for byte."""

from __future__ import annotations

import ast
import difflib
import json
import re
from pathlib import Path

import nbformat
import pytest

from migrator.findings import Finding
from migrator.source.notebooks import END_OF_CELL, NEW_CELL, NotebookError, code_of, read_notebook, with_text
from migrator.source.reading import Source, decode, encode
from tests.source.notebook_files import notebook, sources

PATH = Path("book.ipynb")

MAGICS = [
    "%tensorflow_version 1.x",
    "!pip install -q foo \\\n    bar\nimport os",
    "%%bash\nls -l\nfor i in x; do echo $i; done",
    "from __future__ import print_function\nprint('%s' %\n  1)",
    "files = !ls -l\nsize = %timeit -o 1\nfor f in files:\n    !echo {f}\n    print(f)\n",
    'text = """\n%not a magic\n!nor this\n"""\nos.getcwd?\n?os\n%matplotlib inline',
    "%%time\n# a comment\nx = [\n  3\n  %2]\n!date",
    "pip install tensorflow==1.15",
    "",
    "x  # the last",
]


def read(document: str) -> Source:
    source = decode(PATH, document.encode())
    assert isinstance(source, Source), source
    return source


@pytest.mark.parametrize("indent", [None, 1, 2])
def test_magics_are_python_and_come_back(indent: int | None) -> None:
    source = read(notebook([None, *MAGICS], indent))
    ast.parse(source.text)
    assert "print('%s' %" in source.text and "%not a magic" in source.text and "x = [" in source.text
    assert "ls -l" not in source.text and "echo" not in source.text
    assert encode(source, source.text) == source.raw


def test_a_change_is_in_its_cell_and_nowhere_else() -> None:
    source = read(notebook([None, *MAGICS]))
    new = source.text.replace("print(f)", "print(f, 'é')").replace("x = [", "y = [")
    before, after = source.raw.decode(), encode(source, new).decode()
    changed = [line for line in difflib.ndiff(before.splitlines(True), after.splitlines(True)) if line[0] in "+-"]
    assert [line.strip() for line in changed] == [
        '-     "    print(f)\\n"',
        "+     \"    print(f, 'é')\\n\"",
        '-     "x = [\\n",',
        '+     "y = [\\n",',
    ]


def test_layouts_of_json_are_kept() -> None:
    spread = '{"nbformat" : 4, "cells": [ {"source" : "import a\\nb = \\"\\u00e9\\"", "cell_type":"code"},\r\n'
    spread += '\t{"cell_type": "code", "source": [\r\n\t\t"c = 1\\n" ,\r\n\t\t"d = 2"\r\n\t]}]}'
    source = read(spread)
    assert encode(source, source.text) == source.raw
    new = source.text.replace("import a\n", "import a\nimport z\n").replace("c = 1\n", "c = 1\ne = 3\n")
    assert encode(source, new).decode() == spread.replace("import a\\n", "import a\\nimport z\\n").replace(
        '"c = 1\\n" ,\r\n\t\t', '"c = 1\\n" ,\r\n\t\t"e = 3\\n" ,\r\n\t\t'
    )


def test_what_is_new_comes_with_what_uses_it() -> None:
    cells = ["import a", "%%bash\nls", "first()\n", "def f():\n  return 1", None, "%time 1\nrun(f)", "%%html\n<p>"]
    source = read(notebook(cells))
    new = source.text.replace("run(f)", "def helper():\n  return f\n\n\nrun(helper)")
    new = new.replace("import a", "import os\nimport a").replace("first()\n", "") + "last()\n"
    assert sources(encode(source, new).decode()) == [
        "import os\nimport a",
        "%%bash\nls",
        "",
        "def f():\n  return 1",
        "%time 1\ndef helper():\n  return f\n\n\nrun(helper)\nlast()",
        "%%html\n<p>",
    ]


def test_new_imports_come_behind_the_first_magics() -> None:
    source = read(notebook(["%cd x\n!pip install y", None, "!ls\nimport a\na.b()", "c()"]))
    first = source.text.index("pass  #")
    for place in (0, first):
        new = f"{source.text[:place]}import os\nimport sys\n\n{source.text[place:]}"
        assert sources(encode(source, new).decode()) == [
            "%cd x\n!pip install y",
            "!ls\nimport os\nimport sys\nimport a\na.b()",
            "c()",
        ]


def test_a_magic_of_a_whole_cell_stays_first() -> None:
    source = read(notebook(["x = 1", "%%time\nrun(x)"]))
    first = source.text.index("pass  #")
    new = f"{source.text[:first]}import os\n{source.text[first:].replace('run(x)', 'run(os)')}"
    assert sources(encode(source, new).decode()) == ["x = 1", "%%time\nimport os\nrun(os)"]


@pytest.mark.parametrize("minor", [2, 5])
def test_new_cells(minor: int) -> None:
    document = notebook(["import b", None, "x = 1\ny = 2"], minor=minor)
    source = read(document)
    new = source.text.replace("y = 2", f"{NEW_CELL}\ndef g():\n  pass\n{END_OF_CELL}\ny = 3")
    after = encode(source, new).decode()
    assert sources(after) == ["import b", "def g():\n  pass", "x = 1\ny = 3"]
    nbformat.validate(json.loads(after))
    assert encode(source, new).decode() == after, "also the name of the new cell"
    kept = difflib.ndiff(document.splitlines(), after.splitlines())
    assert [line.strip() for line in kept if line[0] == "-"] == ['-     "y = 2"']


def test_nothing_is_lost() -> None:
    source = read(notebook(["%cd x\nimport a", "!ls", "run()"]))
    with pytest.raises(NotebookError, match=r"lose or move the line `%cd x`"):
        encode(source, source.text.replace("pass  # tf-migrate: line 0\n", ""))
    with pytest.raises(NotebookError, match=r"lose or move the line"):
        encode(source, re.sub(r"(pass.*\n)import a\n(.*\n)(pass.*\n)", r"\3\2\1", source.text))
    only_shell = read(notebook(["%%bash\nls"]))
    with pytest.raises(NotebookError, match="no cell for"):
        encode(only_shell, only_shell.text + "run()\n")


@pytest.mark.parametrize(
    ("document", "code", "line", "said"),
    [
        ('{"cells": [\n', "TFM901", 2, "not JSON"),
        ('{"metadata": {}}', "TFM901", 1, "no list of cells"),
        ("[1]", "TFM901", 1, "no list of cells"),
        ('{"worksheets": [], "nbformat": 3}', "TFM901", 1, "nbconvert"),
    ],
)
def test_what_is_no_notebook(document: str, code: str, line: int, said: str) -> None:
    finding = decode(PATH, document.encode())
    assert isinstance(finding, Finding)
    assert (finding.code, finding.line) == (code, line) and said in finding.message


def test_the_cell_that_does_not_parse_is_named() -> None:
    finding = decode(PATH, notebook([None, "f(", "!ls\nx = 1\nprint 'tensorflow'"]).encode())
    assert isinstance(finding, Finding)
    assert str(finding).startswith("book.ipynb:cell 2:1:2: TFM902 cannot parse:")
    finding = decode(PATH, notebook([None, "f()", "!ls \\\n -l\nx = 1\nprint 'tensorflow'"]).encode())
    assert isinstance(finding, Finding)
    assert str(finding).startswith("book.ipynb:cell 3:4:1: TFM902 cannot parse:") and "Python 2" in finding.message


def test_other_languages_have_no_code() -> None:
    source = read(notebook(["library(tensorflow)"], language_info={"name": "R"}))
    assert source.text == "" and encode(source, "") == source.raw
    assert read(notebook(["x = 1"], language_info={"name": "python"})).text != ""


def test_lines_are_found_in_their_cells() -> None:
    source = read(notebook([None, "a = 1\n!x \\\n y\nb = 2", "", "c = 3"]))
    assert source.notebook is not None
    lines = source.text.split("\n")
    places = {
        line: source.notebook.place(number) for number, line in enumerate(lines, 1) if line[:1] in ("a", "b", "c")
    }
    assert places == {"a = 1": (2, 1), "b = 2": (2, 4), "c = 3": (4, 1)}


def test_as_a_script() -> None:
    text = code_of(notebook(MAGICS))
    ast.parse(text)
    compile(text, "x", "exec")
    assert "pass  # %tensorflow_version 1.x" in text and "files = None" in text
    assert code_of("{") == ""


def test_old_text_and_new_text() -> None:
    book, text = read_notebook(notebook(["a = 1"]))
    assert with_text(book, text, text) == book.document
