"""Every fixture trains the same after its migration: real processes, real clusters, one verdict each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from migrator.harness import session
from migrator.harness.cluster import ClusterShape, ForkServer, Launch
from migrator.harness.environments import migrated_python
from migrator.harness.report import exit_code, write
from tests.end_to_end.proving import told
from tests.fixture_cases import FixtureCase, load_cases

#: Without those of TensorFlow 2, of which test_mirrored_becomes_a_mesh.py trains some in a fraction of `verify`'s time.
CASES = [case for case in load_cases() if not case.tensorflow2]
#: Verified by the command itself: a cluster, a single device, Keras 3.
BY_COMMAND = frozenset({"multi_worker_guide", "two_files", "two_files_keras3"})
LEVELS = ("L0", "L0b", "L1", "L2", "L3", "L4", "L5")

pytestmark = pytest.mark.tensorflow


def run_command(case: FixtureCase, folder: Path) -> None:
    """`tf-migrate verify`, as a user types it, with its report in the folder."""
    command = [sys.executable, "-m", "migrator", "verify", str(case.original), str(case.migrated)]
    command += ["--report", str(folder)]
    if case.cluster:
        command += ["--cluster", case.cluster]
    if case.devices:
        command += ["--devices", str(case.devices)]
    command += ["--keras", case.keras, "--tpu-cores", str(case.tpu_cores), "--", *case.args]
    run = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    print(run.stdout, run.stderr)
    assert run.returncode == 0


def run_session(case: FixtureCase, opened: session.Session, folder: Path) -> None:
    """The same in interpreters that other fixtures have used: TensorFlow takes 10 s to be imported twice."""
    made = session.make_case(
        case.original,
        case.migrated,
        cluster=case.cluster,
        args=case.args,
        keras=int(case.keras),
        tpu_cores=case.tpu_cores,
        devices=case.devices or 1,
    )
    made = replace(made, log_dir=folder / "logs")
    report = session.verify(made, print, session=opened)
    write(report, folder)
    assert exit_code(report) == 0, told(report.document)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_fixture_is_equivalent(
    case: FixtureCase, session_for: Callable[[int], session.Session], tmp_path: Path
) -> None:
    if case.name in BY_COMMAND:
        run_command(case, tmp_path)
    else:
        run_session(case, session_for(int(case.keras)), tmp_path)
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert report["verdict"] == "EQUIVALENT"
    levels = {level["id"]: level["status"] for level in report["levels"]}
    # Trainers that do not wait for each other:
    several = "ps=" in case.cluster and "worker=" in case.cluster and not case.in_step
    required = (*LEVELS, "L5s") if several else LEVELS
    assert {level: levels[level] for level in required} == dict.fromkeys(required, "EQUIVALENT")
    assert levels["L7"] in ("EQUIVALENT", "NOT_APPLICABLE")
    sentinels = {mutant["id"]: mutant["status"] for mutant in report["mutants"]}
    assert len(sentinels) == 4 and "missed" not in sentinels.values()
    assert sentinels["learning-rate-x1.01"] == sentinels["last-batch-dropped"] == "killed"
    assert (tmp_path / "report.html").stat().st_size > 10_000
    if case.in_step:
        rows = {(row["program"], row["task"]) for row in report["data"]["per_task"]}
        assert rows == {(one, task) for one in ("original", "migrated") for task in ("chief:0", "worker:0")}
        assert "L5s" not in levels
    if case.cluster.startswith("worker="):
        count = int(case.cluster.removeprefix("worker="))
        assert {row["task"] for row in report["data"]["per_task"]} == {f"worker:{index}" for index in range(count)}
    asked = {one["stands_for"]: one["cores"] for one in report["stand_in"]}
    assert asked == ({"TPUEstimator": 1, "TPUStrategy": case.tpu_cores} if case.tpu_cores > 1 else {})
    compiled = [level for level in report["levels"] if level["id"] == "L9"]
    assert [level["status"] for level in compiled] == ["EQUIVALENT"] * len(asked.keys() & {"TPUStrategy"})
    assert all("XLA compiles the step of training" in level["summary"] for level in compiled)


@pytest.mark.parametrize(
    "case", [c for c in CASES if not c.cluster and c.strategy != "dtensor"], ids=lambda case: case.name
)
def test_migrated_program_runs_by_itself(case: FixtureCase, first_keras2: ForkServer, tmp_path: Path) -> None:
    """Without tf-migrate on the path, on TensorFlow 2.21 with tf_keras, or on its Keras 3; and on plain TensorFlow
    2.15.1, which chooses nothing (its own Keras is Keras 2): there it need not be a process from the start.
    """
    foreign = ("PYTHONPATH", "TF_CONFIG", "TF_USE_LEGACY_KERAS")
    environment = {key: value for key, value in os.environ.items() if key not in foreign}
    environment["TF_CPP_MIN_LOG_LEVEL"] = "2"
    run = subprocess.run(
        [str(migrated_python()), str(case.migrated)],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        cwd=tmp_path,
        env=environment,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    told = "0." if case.style == "bridge" else "loss"  # an Estimator prints nothing by itself
    assert told in run.stdout
    if case.keras == "2":
        outcome = first_keras2.run(Launch("migrated", case.migrated, (), ClusterShape.parse(""), tmp_path / "run"))
        assert outcome.failure is None, outcome.failure
        assert told in outcome.tasks[0].stdout.read_text(encoding="utf-8")
