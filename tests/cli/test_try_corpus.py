"""The tool that counts what the codemod does with other people's programs."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

from tests.rules.programs import program

TOOL = Path(__file__).resolve().parents[2] / "tools" / "try_corpus.py"


def tried(tmp_path: Path, folders: list[Path], style: str = "native") -> tuple[int, list[dict[str, Any]], str]:
    main = runpy.run_path(str(TOOL))["main"]
    table, data = tmp_path / "rates.md", tmp_path / "rates.json"
    code = main([*map(str, folders), "--table", str(table), "--data", str(data), "--timeout", "120", "--style", style])
    return code, json.loads(data.read_text()), table.read_text()


def test_programs_are_counted(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    (first / "good.py").write_text(program())
    (first / "bad.py").write_text(program(network="net = tf.placeholder(tf.float32)"))
    (second / "copy.py").write_text(program())
    cells = [{"cell_type": "code", "source": ["!pip install x\n", "import tensorflow as tf\n"]}]
    used = ["e = tf.estimator.DNNClassifier([3], [])\n", "print(e.config)\n"]
    cells.append({"cell_type": "code", "source": used})
    (second / "notes.ipynb").write_text(json.dumps({"cells": cells}))
    code, data, table = tried(tmp_path, [first, second])
    assert code == 0
    statuses = [(Path(p["file"]).name, p["line"], p["kind"], p["status"]) for t in data for p in t["programs"]]
    lines = [(name, kind, status) for name, _, kind, status in statuses]
    assert sorted(lines) == [
        ("bad.py", "custom", "blocked"),
        ("good.py", "custom", "native"),
        ("notes.py", "canned", "blocked"),
    ]
    assert "| custom | 2 | 1 | 0 | 1 | 0 | 50 % | - |" in table
    assert "**1** (1) TFM203 `tf.placeholder` exists only as `tf.compat.vN.placeholder` in TensorFlow N.N" in table
    assert "Out: 1 of 3 (33 %); of those that need nothing but TensorFlow: 1 of 3 (33 %)." in table
    assert sorted(path.name for path in first.iterdir()) == ["bad.py", "good.py"]
    code, data, table = tried(tmp_path, [first, second], "bridge")
    assert code == 0
    assert [(Path(p["file"]).name, p["status"], p["reached"]) for t in data for p in t["programs"]] == [
        ("bad.py", "bridge", 1),
        ("good.py", "bridge", 1),
        ("notes.py", "bridge", 1),
    ]
    assert "- 1 file: 3 of 3 (100 %); native 0, bridge 3" in table


def test_programs_of_other_libraries_are_counted_apart(tmp_path: Path) -> None:
    folder = tmp_path / "one"
    folder.mkdir()
    (folder / "good.py").write_text(program())
    distributed = "import horovod.tensorflow as hvd\n" + program().replace(
        "estimator.train", "hvd.init()\nestimator.train"
    )
    (folder / "far.py").write_text(distributed)
    _, data, table = tried(tmp_path, [folder])
    assert {(Path(p["file"]).name, p["needs"]) for p in data[0]["programs"]} == {("good.py", ""), ("far.py", "Horovod")}
    assert "of 2 (" in table and "of those that need nothing but TensorFlow: 1 of 1 (100 %)." in table
    assert "What the others need: Horovod 1." in table
