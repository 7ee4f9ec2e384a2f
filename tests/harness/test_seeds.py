"""The runs behind L6: a seed's runs must start alike, whatever the two programs call their variables."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy_programs import Program, run

from migrator.harness import seeds
from migrator.harness.cluster import RunOutcome
from migrator.harness.runs import Run, Session
from migrator.harness.session import make_case

VALUES = {
    "dense/kernel": np.random.RandomState(0).normal(size=(6, 5)).astype(np.float32),
    "dense_1/kernel": np.random.RandomState(0).normal(size=(6, 5)).astype(np.float32),
    "dense/bias": np.arange(5, dtype=np.float32),
    "counts": np.arange(4).reshape(2, 2),
}


def test_another_draw_has_the_same_elements() -> None:
    drawn = seeds.another_draw(VALUES, 3)
    for name in ("dense/kernel", "dense_1/kernel"):
        np.testing.assert_array_equal(np.sort(drawn[name], axis=None), np.sort(VALUES[name], axis=None))
        assert (drawn[name] != VALUES[name]).mean() > 0.5
        assert np.any(drawn[name] != seeds.another_draw(VALUES, 4)[name])
    assert np.any(drawn["dense/kernel"] != drawn["dense_1/kernel"])
    for name in ("dense/bias", "counts"):
        np.testing.assert_array_equal(drawn[name], VALUES[name])
    for name, value in seeds.another_draw(VALUES, 0).items():
        np.testing.assert_array_equal(value, VALUES[name])


def test_both_programs_start_a_seed_from_the_same_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = run(Program()).variables
    theirs = {one.name: f"net/{one.name}:0" for one in variables}
    values = {one.name: np.random.RandomState(7).normal(size=one.shape).astype(np.float32) for one in variables}
    started: dict[str, dict[str, dict[str, np.ndarray]]] = {}

    def run_program(
        session: Session, case: Any, program: str, role: str, shape: Any, *, initial: str, **plan: Any
    ) -> Run:
        with np.load(initial) as archive:
            started.setdefault(role.split()[1], {})[role] = {name: archive[name] for name in archive.files}
        return Run(role, program, RunOutcome(tmp_path, (), None, 1.0), run(Program()))

    def renamed(drawn: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {theirs[name]: value for name, value in drawn.items()}

    monkeypatch.setattr(seeds, "run_program", run_program)
    script = tmp_path / "script.py"
    script.write_text("", encoding="utf-8")
    case = make_case(script, script, cluster="chief=1,worker=1,ps=1", seeds=3)
    server: Any = None
    session = Session(server, server, tmp_path, itertools.count(1), lambda: server, lambda: server)
    made = seeds.run_seeds(session, case, lambda _: None, values, renamed)
    assert len(made.seeds) == 3 and made.failed is None
    for number, runs in started.items():
        assert len(runs) == len(seeds.ARMS)
        wanted = seeds.another_draw(values, int(number) - 1)
        for role, given in runs.items():
            for name, value in wanted.items():
                ours = theirs[name] if role.endswith("migrated") else name
                np.testing.assert_array_equal(given[ours], value)
