"""The guide's program on a true TensorFlow 1.15.5 against its migration on 2.21.

Needs an interpreter of its own: Python 3.7 with `tensorflow==1.15.5 'protobuf<3.21' 'numpy<1.19'`, named by
TF_MIGRATE_TENSORFLOW1_PYTHON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixture_cases import load_cases

PYTHON = os.environ.get("TF_MIGRATE_TENSORFLOW1_PYTHON", "")
CASES = {case.name: case for case in load_cases()}

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(not PYTHON, reason="no TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set"),
]


@pytest.mark.parametrize("name", ["multi_worker_guide", "two_files", "parameter_server_min_size"])
def test_equivalent_to_tensorflow_1(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    command = [sys.executable, "-m", "migrator", "verify", str(case.original), str(case.migrated)]
    command += ["--report", str(tmp_path), *(["--cluster", case.cluster] if case.cluster else [])]
    environment = {**os.environ, "TF_MIGRATE_ORIGINAL_PYTHON": PYTHON}
    run = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False, env=environment)
    assert run.returncode == 0, run.stdout + run.stderr
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert report["verdict"] == "EQUIVALENT"
    assert report["environment"]["original"]["tensorflow"] == "1.15.5"
