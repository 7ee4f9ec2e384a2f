"""Notebooks through the whole tool."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import nbformat
import pytest
from click.testing import CliRunner, Result

from migrator.cli.program import program
from tests.rules.programs import program as one_program
from tests.source.notebook_files import cut, notebook, sources

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
NATIVE = [("between_graph", 1), ("classifier", 3), ("multi_worker_guide", 1), ("wide_and_deep", 3)]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(program, [str(argument) for argument in arguments], prog_name="tf-migrate")


def lines_of(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip()]


@pytest.mark.parametrize(("case", "statements"), NATIVE)
def test_cells_of_a_program_become_what_the_program_does(case: str, statements: int, tmp_path: Path) -> None:
    path = tmp_path / "book.ipynb"
    cells = cut((FIXTURES / case / "original.py").read_text(), statements)
    document = notebook([cells[0], None, "%matplotlib inline", *cells[1:], "!ls"])
    path.write_text(document)
    result = run(path)
    assert result.exit_code == 0, result.output
    after = path.read_text()
    new = sources(after)
    assert (new[1], new[-1], len(new)) == ("%matplotlib inline", "!ls", len(cells) + 2)
    expected = (FIXTURES / case / "migrated.py").read_text()
    assert lines_of("\n".join([new[0], *new[2:-1]])) == lines_of(expected)
    old_cells, new_cells = json.loads(document)["cells"], json.loads(after)["cells"]
    assert [{**cell, "source": ""} for cell in old_cells] == [{**cell, "source": ""} for cell in new_cells]
    assert run(path).output == "1 file: 1 with nothing to do.\n"
    assert path.read_text() == after


def test_a_bridge_has_its_support_in_a_cell(tmp_path: Path) -> None:
    path = tmp_path / "book.ipynb"
    cells = cut((FIXTURES / "variable_scopes/original/train.py").read_text(), 1)
    path.write_text(notebook(["%tensorflow_version 1.x", None, *cells, "%%bash\nls"]))
    result = run("--format", "json", path)
    assert result.exit_code == 0, result.output
    told = {f["code"]: (f["cell"], f["line"], f["message"]) for f in json.loads(result.stdout)["findings"]}
    assert told["TFM155"][0] == len(cells) + 1 and f"{path}:cell " in told["TFM155"][2]
    assert told["TFM930"][:2] == (1, 1) and "`%tensorflow_version 1.x`" in told["TFM930"][2]
    after = path.read_text()
    nbformat.validate(json.loads(after))
    new = sources(after)
    (support,) = [at for at, code in enumerate(new) if "def make_keras_estimator" in code]
    assert "import tensorflow.compat.v1 as tf" in new[support + 1] and "In[tf-migrate" not in after
    assert [path.name for path in tmp_path.iterdir()] == ["book.ipynb"]
    assert run(path).output == "1 file: 1 with nothing to do.\n"
    assert path.read_text() == after


def test_a_bridge_takes_the_support_file_of_its_project(tmp_path: Path) -> None:
    text = (FIXTURES / "variable_scopes/original/train.py").read_text()
    (tmp_path / "train.py").write_text(text)
    assert run(tmp_path).exit_code == 0
    (tmp_path / "book.ipynb").write_text(notebook(cut(text, 1)))
    assert run(tmp_path).exit_code == 0
    new = "\n".join(sources((tmp_path / "book.ipynb").read_text()))
    assert "import keras_estimator" in new and "make_keras_estimator" not in new


def test_a_notebook_imports_its_siblings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    whole = (FIXTURES / "multi_worker_guide/original.py").read_text()
    model, _, driver = whole.partition("\n\nestimator = ")
    Path("model.py").write_text(f"{model}\n")
    cells = ["import tensorflow as tf\nfrom model import _model_fn, _input_fn, _eval_input_fn", f"estimator = {driver}"]
    Path("book.ipynb").write_text(notebook(cells))
    before = Path("model.py").read_bytes(), Path("book.ipynb").read_bytes()
    result = run("book.ipynb")
    assert result.exit_code == 1 and "book.ipynb:cell 1:2:1: TFM911" in result.output
    assert before == (Path("model.py").read_bytes(), Path("book.ipynb").read_bytes())
    assert run(".").exit_code == 0
    assert "model.compile" in Path("model.py").read_text()
    assert "model.fit" in sources(Path("book.ipynb").read_text())[1]


def test_check_and_diff(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cells = cut((FIXTURES / "classifier/original.py").read_text(), 2)
    path = Path("folder/book.ipynb")
    path.parent.mkdir()
    path.write_text(notebook(cells))
    before = path.read_bytes()
    result = run("--check", ".")
    assert (result.exit_code, path.read_bytes()) == (1, before)
    assert "would migrate folder/book.ipynb" in result.output
    patch = run("--diff", ".").stdout.encode()
    assert run(".").exit_code == 0
    after = path.read_bytes()
    path.write_bytes(before)
    subprocess.run(["patch", "-p1", "--binary"], input=patch, check=True, capture_output=True)
    assert path.read_bytes() == after


def test_what_blocks_is_named_by_cell(tmp_path: Path) -> None:
    blocked = one_program(network="net = tf.placeholder(tf.float32)")
    cells = [None, "!pip install x", *cut(blocked, 1)]
    path = tmp_path / "book.ipynb"
    path.write_text(notebook(cells))
    before = path.read_bytes()
    result = run("--style", "native", path)
    assert (result.exit_code, path.read_bytes()) == (1, before)
    where = [(at, code.split("\n")) for at, code in enumerate(cells, 1) if code and "tf.placeholder" in code]
    ((cell, lines),) = where
    line = next(at for at, text in enumerate(lines, 1) if "tf.placeholder" in text)
    assert f"{path}:cell {cell}:{line}:" in result.output


def test_one_bad_notebook_is_one_finding(tmp_path: Path) -> None:
    (tmp_path / "bad.ipynb").write_text('{"cells": [ tensorflow')
    (tmp_path / "unrelated.ipynb").write_text('{"cells": [')
    (tmp_path / "good.ipynb").write_text(notebook(cut((FIXTURES / "classifier/original.py").read_text(), 1)))
    result = run(tmp_path)
    assert result.exit_code == 2
    assert result.output.count("TFM901") == 1 and f"{tmp_path}/bad.ipynb:1:" in result.output
    assert f"migrated {tmp_path}/good.ipynb" in result.output


def test_a_comment_accepts_in_a_cell(tmp_path: Path) -> None:
    path = tmp_path / "book.ipynb"
    text = "import tensorflow as tf\nx = tf.contrib.bayesflow.x()  # tf-migrate: ignore[TFM270]\n"
    path.write_text(notebook([None, text, "y = tf.contrib.gan.y()\n"]))
    result = run("--check", path)
    told = [line for line in result.output.splitlines() if ": TFM" in line]
    assert len(told) == 1 and told[0].startswith(f"{path}:cell 3:1:5: TFM270")


@pytest.mark.tensorflow
def test_two_notebooks_are_verified(tmp_path: Path) -> None:
    text = (FIXTURES / "multi_worker_guide/original.py").read_text()
    old, new = tmp_path / "old.ipynb", tmp_path / "new.ipynb"
    for path in (old, new):
        path.write_text(notebook(["%matplotlib inline", *cut(text, 2)]))
    assert run(new).exit_code == 0
    result = run("verify", old, new, "--report", tmp_path / "report")
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "report/report.json").read_text())["verdict"] == "EQUIVALENT"
