"""The programs whose speed is measured come out, in the style that their row says."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import throughput

NETWORKS = [name for name, case in throughput.CASES.items() if case.text]


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_of_one_kind_come_out(name: str, tmp_path: Path) -> None:
    case = throughput.CASES[name]
    folders = tmp_path / "original", tmp_path / "migrated"
    for folder in folders:
        folder.mkdir()
    throughput.migrated(case, throughput.originals(case, folders[0]), folders[1])
    new = (folders[1] / case.script).read_text(encoding="utf-8")
    assert ("model.fit(" in new) == (case.style == "native")
    assert (folders[1] / "keras_estimator.py").exists() == (case.style == "bridge")
    assert "UNITS" not in new and "FEATURES" not in new
