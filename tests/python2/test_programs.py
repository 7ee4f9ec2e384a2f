"""Programs of Python 2, converted, print under Python 3 what Python 2.7.18 printed (`programs/NAME.out`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from migrator.python2.convert import convert
from migrator.python2.signs import parsed, signs

PROGRAMS = Path(__file__).parent / "programs"
#: What is told of each, by code and line: all else computes the same.
TOLD = {
    "classes": [("TFM941", 32)],
    "pickles": [("TFM942", 11), ("TFM942", 14), ("TFM942", 21), ("TFM942", 28)],
}


@pytest.mark.parametrize("name", sorted(path.stem for path in PROGRAMS.glob("*.py2")))
def test_prints_what_python_2_printed(name: str, tmp_path: Path) -> None:
    path = Path("program.py")
    text = (PROGRAMS / f"{name}.py2").read_text(encoding="utf-8")
    assert parsed(text) is None or signs(text)
    made = convert({path: text})[path]
    (tmp_path / "program.py").write_text(made.text, encoding="utf-8")
    done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    expected = (PROGRAMS / f"{name}.out").read_text(encoding="utf-8")
    assert [line.rstrip() for line in done.stdout.splitlines()] == expected.splitlines()
    told = [(finding.code, finding.line) for finding in made.findings if finding.code != "TFM940"]
    assert told == TOLD.get(name, [])
    assert convert({path: made.text}) == {}, "a second run finds no Python 2"


def test_numbers_differ_without_it(tmp_path: Path) -> None:
    """The fixer alone leaves `/` as it is, and the training goes another way."""
    from migrator.python2.fixers import fixed

    text = fixed((PROGRAMS / "training.py2").read_text(encoding="utf-8")).text
    done = subprocess.run([sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert done.stdout != (PROGRAMS / "training.out").read_text(encoding="utf-8")
