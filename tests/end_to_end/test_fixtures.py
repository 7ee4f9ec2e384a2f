"""Every fixture trains the same after its migration: real processes, real clusters, one verdict each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixture_cases import FixtureCase, load_cases

CASES = load_cases()
LEVELS = ("L0", "L0b", "L1", "L2", "L3", "L4", "L5")

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_fixture_is_equivalent(case: FixtureCase, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "migrator", "verify", str(case.original), str(case.migrated)]
    command += ["--report", str(tmp_path)]
    if case.cluster:
        command += ["--cluster", case.cluster]
    command += ["--keras", case.keras]
    run = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    print(run.stdout, run.stderr)
    assert run.returncode == 0
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert report["verdict"] == "EQUIVALENT"
    levels = {level["id"]: level["status"] for level in report["levels"]}
    required = (*LEVELS, "L5s") if "ps=" in case.cluster else LEVELS
    assert {level: levels[level] for level in required} == dict.fromkeys(required, "EQUIVALENT")
    assert levels["L7"] in ("EQUIVALENT", "NOT_APPLICABLE")
    sentinels = {mutant["id"]: mutant["status"] for mutant in report["mutants"]}
    assert len(sentinels) == 4 and "missed" not in sentinels.values()
    assert sentinels["learning-rate-x1.01"] == sentinels["last-batch-dropped"] == "killed"
    assert (tmp_path / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize("case", [c for c in CASES if not c.cluster], ids=lambda case: case.name)
def test_migrated_program_runs_by_itself(case: FixtureCase, tmp_path: Path) -> None:
    """On plain TensorFlow 2.15.1 (its own Keras) and on 2.21 with tf_keras, without tf-migrate on the path; what was
    written for Keras 3 on that of 2.21.
    """
    from migrator.harness.environments import migrated_python, original_python

    foreign = ("PYTHONPATH", "TF_CONFIG", "TF_USE_LEGACY_KERAS")
    for python in (original_python(), migrated_python()) if case.keras == "2" else (migrated_python(),):
        environment = {key: value for key, value in os.environ.items() if key not in foreign}
        environment["TF_CPP_MIN_LOG_LEVEL"] = "2"
        run = subprocess.run(
            [str(python), str(case.migrated)],
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
            cwd=tmp_path,
            env=environment,
        )
        assert run.returncode == 0, run.stderr[-2000:]
        assert "loss" in run.stdout
