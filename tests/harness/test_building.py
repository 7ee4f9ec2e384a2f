"""What `--try` copies and runs, without TensorFlow."""

from __future__ import annotations

from pathlib import Path

from migrator.harness.building import build_models


def test_a_program_whose_package_is_the_named_folder(tmp_path: Path) -> None:
    texts = {
        tmp_path / "app" / "run.py": "from app import helper\n",
        tmp_path / "app" / "helper.py": "x = 1\n",
    }
    for path, text in texts.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    program = tmp_path / "app" / "run.py"
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\ncp "$2" "$(dirname "$0")/asked.json"\n')
    python.chmod(0o755)
    built = build_models(texts, {program}, python=python)
    assert built.states[program] == "ends" and not built.failed
    asked = (tmp_path / "asked.json").read_text()
    assert '"script": "app/run.py"' in asked and '"paths": ["."]' in asked
