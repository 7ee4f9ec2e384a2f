"""Only the files around a program are parsed."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest

from migrator.program.parsed import ParsedFile
from migrator.program.relevant import around_programs
from migrator.syntax import Trees
from tests.rules.programs import program, run_project

TF = "import tensorflow as tf\n"


def found(files: dict[str, str]) -> set[str]:
    return {str(path) for path in around_programs({Path(name): text for name, text in files.items()})}


def test_imports_are_followed() -> None:
    files = {
        "a/train.py": TF + "from . import nets\nfrom a.data.reader import read\nimport b.tools as t\ntf.estimator.X\n",
        "a/nets.py": TF + "from .blocks import *\n",
        "a/blocks.py": TF,
        "a/data/__init__.py": TF,
        "a/data/reader.py": TF + "from .. import settings\n",
        "a/settings.py": TF,
        "b/tools.py": TF,
        "b/other.py": TF,
        "a/plain.py": "import os\n",
        "c.py": "import a.train\n" + TF,
    }
    assert found(files) == set(files) - {"b/other.py", "a/plain.py", "c.py"}


def test_files_that_cannot_be_parsed_end_the_search() -> None:
    program = TF + "import b, c\ntf.estimator.X\n"
    files = {"a.py": program, "b.py": TF + "print 'old'\nimport d\n", "c.py": TF, "d.py": TF}
    assert found(files) == {"a.py", "b.py", "c.py"}


def test_others_are_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = []
    parse = ParsedFile.parse

    def recorded(path: Path, text: str, trees: Trees[cst.Module] | None = None) -> ParsedFile:
        parsed.append(path.name)
        return parse(path, text, trees)

    monkeypatch.setattr(ParsedFile, "parse", staticmethod(recorded))
    other = TF + "x = tf.trainable_variables()\n"
    results = run_project({"train.py": program(), "other.py": other})
    assert "tf.keras.Model" in results["train.py"][0] and results["other.py"][0] == other
    assert parsed == ["train.py"]


def test_a_use_of_the_model_elsewhere_is_still_seen() -> None:
    use = TF + "from train import model_fn\n\nmodel_fn(1, 2, 'train', {})\n"
    results = run_project({"train.py": program(), "use.py": use})
    assert [finding.code for finding in results["use.py"][1]] == ["TFM113"]
    assert results["train.py"][0] == program()
