"""Files that a migrated program imports and that were not given are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run

OLD = "import tensorflow as tf1\n{}\ntf1.x()\n"
WITH = "import tensorflow as tf\n"


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("from ..net import network", "net.py"),
        ("from pack.other import net", "pack/other/net.py"),
        ("import pack.other.net", "pack/other/net.py"),
    ],
)
def test_a_missing_file_is_named_where_it_is_imported(run: Run, tmp_path: Path, line: str, place: str) -> None:
    script = tmp_path / "pack" / "inner" / "train.py"
    missing = tmp_path / place if "/" in place else script.parent.parent / place
    write(tmp_path, pack__inner__train=OLD.format(line))
    missing.parent.mkdir(exist_ok=True)
    missing.write_text(WITH)
    result = run(script)
    assert result.exit_code == 0
    (told,) = [text for text in result.stdout.splitlines() if ": TFM198 " in text]
    assert told.startswith(f"{script}:2:1: TFM198 `net.py` is imported here and uses TensorFlow, but was not given")


@pytest.mark.parametrize("line", ["import net", "import net as n, os", "from net import x", "from .net import x"])
def test_what_is_beside_is_read(run: Run, tmp_path: Path, line: str) -> None:
    write(tmp_path, train=OLD.format(line), net=WITH)
    assert "TFM198" not in run(tmp_path / "train.py").stdout


@pytest.mark.parametrize(
    "files",
    [
        {"train": OLD.format("import net"), "net": "import numpy\n"},
        {"train": OLD.format("import net"), "elsewhere__net": WITH},
        {"train": OLD.format("import os"), "net": WITH},
        {"train": WITH + "import net\n", "net": WITH},
    ],
    ids=["without TensorFlow", "another folder", "not imported", "nothing changed"],
)
def test_nothing_is_missing(run: Run, tmp_path: Path, files: dict[str, str]) -> None:
    write(tmp_path, **files)
    assert "TFM198" not in run(tmp_path / "train.py").stdout


def test_a_file_that_was_given_is_not_missing(run: Run, tmp_path: Path) -> None:
    write(tmp_path, train=OLD.format("import net"), net=WITH)
    assert "TFM198" not in run(tmp_path).stdout
    assert "TFM198" not in run(tmp_path / "train.py", tmp_path / "net.py").stdout
