"""What is kept of an original: its name by content, what is read back, and when it is not believed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from numpy_programs import Program
from numpy_programs import run as trained

from migrator.harness import kept, session
from migrator.harness.case import Case
from migrator.harness.cluster import ClusterShape, Launch, RunOutcome
from migrator.harness.original import OriginalEvidence
from migrator.harness.runs import Run, Session

PROGRAMS = Path(__file__).parent / "programs"


def fake(**described: str) -> Any:
    server = SimpleNamespace(describe=lambda: {"tensorflow": "2.15.1", **described}, python=Path("/no/bin/python"))
    return SimpleNamespace(server=lambda case, program: server)


@pytest.fixture
def case(tmp_path: Path) -> Case:
    (tmp_path / "old").mkdir()
    (tmp_path / "old/train.py").write_text("import helper\n")
    (tmp_path / "old/helper.py").write_text("x = 1\n")
    (tmp_path / "old/migrated.py").write_text("import helper\n")
    return Case(tmp_path / "old/train.py", tmp_path / "old/migrated.py", kept=True)


class TestName:
    def test_it_changes_with_what_the_original_depends_on(self, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
        names = [
            kept.key_of(case, fake()),
            kept.key_of(case, fake(tensorflow="2.16")),
            kept.key_of(replace(case, args=("--x",)), fake()),
            kept.key_of(replace(case, shape=ClusterShape.parse("worker=2")), fake()),
            kept.key_of(replace(case, steps=5), fake()),
            kept.key_of(replace(case, stdin=case.migrated), fake()),
        ]
        monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")
        names.append(kept.key_of(case, fake()))
        monkeypatch.delenv("TF_ENABLE_ONEDNN_OPTS")
        case.original.with_name("helper.py").write_text("x = 2\n")
        names.append(kept.key_of(case, fake()))
        case.original.write_text("import helper  # new\n")
        names.append(kept.key_of(case, fake()))
        assert len(set(names)) == len(names)

    def test_it_stays_with_what_it_does_not_depend_on(self, case: Case, tmp_path: Path) -> None:
        name = kept.key_of(case, fake())
        case.migrated.write_text("import helper  # mended\n")
        (tmp_path / "old/other.py").write_text("")
        assert kept.key_of(case, fake()) == name
        assert kept.key_of(replace(case, names={"a": "b"}, report_dir=tmp_path, total_timeout=5.0), fake()) == name
        # A revision's files are in another folder each time.
        (tmp_path / "old").rename(tmp_path / "new")
        moved = Case(tmp_path / "new/train.py", tmp_path / "new/migrated.py", kept=True)
        assert kept.key_of(moved, fake()) == name


def test_an_interpreter_whose_packages_are_known_need_not_start(case: Case, tmp_path: Path) -> None:
    def asked() -> dict[str, str]:
        raise AssertionError("it has been started")

    packages = tmp_path / "env/lib/python3.11/site-packages"
    server = SimpleNamespace(describe=asked, python=tmp_path / "env/bin/python")
    opened: Any = SimpleNamespace(server=lambda case, program: server)
    names = []
    for name in ("tensorflow-2.15.0", "tensorflow-2.15.1", "tensorflow_cpu-2.15.1"):
        folder = packages / f"{name}.dist-info"
        folder.mkdir(parents=True)
        names.append(kept.key_of(case, opened))
        folder.rmdir()
    assert len(set(names)) == 3
    (packages / "tensorflow_estimator-2.15.0.dist-info").mkdir()
    with pytest.raises(AssertionError, match="started"):
        kept.key_of(case, opened)


def test_what_the_interpreter_was_is_kept_beside_what_it_ran(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert kept.description("k") is None
    (tmp_path / "run/record").mkdir(parents=True)
    outcome = RunOutcome(tmp_path / "run", (), None, 1.0)
    run = Run("original", "original", outcome, trained(Program(steps=2)))
    kept.save("k", case, OriginalEvidence(run, run, None), {"tensorflow": "2.15.1"})
    assert kept.description("k") == {"tensorflow": "2.15.1"}
    kept.forget("k")
    assert kept.description("k") is None


def test_what_is_read_stays_until_nobody_reads_it(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another verification of the same original may forget it, or keep a new one, meanwhile."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    place = tmp_path / "tf-migrate/originals"
    (tmp_path / "run/record").mkdir(parents=True)
    outcome = RunOutcome(tmp_path / "run", (), None, 1.0)
    run = Run("original", "original", outcome, trained(Program(steps=2)))
    evidence = OriginalEvidence(run, run, None)
    kept.save("k", case, evidence, {"number": 1})
    read = (place / "k").resolve()
    kept.save("k", case, evidence, {"number": 2})
    assert kept.description("k") == {"number": 2} and (read / "runs/run/record").is_dir()
    second = (place / "k").resolve()
    kept.forget("k")
    kept.forget("k")
    assert (second / "evidence.pickle").is_file() and kept.description("k") is None
    long_ago = time.time() - 3 * 86400
    os.utime(read, (long_ago, long_ago))
    kept.save("other", case, evidence, {"number": 3})
    assert not read.exists() and second.exists() and kept.description("other") == {"number": 3}
    os.utime((place / "other").resolve(), (long_ago, long_ago))
    kept.save("k", case, evidence, {"number": 4})
    assert kept.description("other") == {"number": 3}  # it has its link


def test_what_cannot_be_read_is_not_there(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    entry = tmp_path / "tf-migrate/originals/k"
    entry.mkdir(parents=True)
    assert kept.load("k", case, fake()) is None
    for content in (b"", b"no pickle", b"\x80\x04N."):
        (entry / "evidence.pickle").write_bytes(content)
        assert kept.load("k", case, fake()) is None


def test_a_run_that_reads_other_data_or_has_other_settings_is_not_the_same(tmp_path: Path) -> None:
    def of(**changes: Any) -> Run:
        return Run("original", "original", RunOutcome(tmp_path, (), None, 1.0), trained(Program(steps=6, **changes)))

    evidence = OriginalEvidence(of(), None, None)
    assert kept.reads_the_same(evidence, of())
    assert not kept.reads_the_same(evidence, of(data_seed=2))
    assert not kept.reads_the_same(evidence, of(learning_rate=0.1))
    assert not kept.reads_the_same(evidence, of(optimizer="adam"))
    assert not kept.reads_the_same(replace(evidence, random_order=True), of())
    assert not kept.reads_the_same(evidence, replace(of(), recording=None))


@pytest.mark.tensorflow
def test_an_original_runs_once_until_its_data_change(
    session_for: Callable[[int], Session], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "_folder", lambda: tmp_path / "originals")
    seed = tmp_path / "seed"
    seed.write_text("1")
    paths = []
    for name in ("original", "migrated"):
        text = (PROGRAMS / f"regression_{name}.py").read_text()
        assert "RandomState(1)" in text
        paths.append(tmp_path / f"{name}.py")
        paths[-1].write_text(text.replace("RandomState(1)", f"RandomState(int(open({str(seed)!r}).read()))"))
    case = session.make_case(*paths, kept=True)
    runs: list[str] = []
    opened = session_for(2)
    own = opened.original.run

    def counted(launch: Launch) -> RunOutcome:
        # Single steps are taken from states that the comparison chooses: they are not the original's alone.
        if "single-steps" not in launch.run_dir.name:
            runs.append(launch.run_dir.name)
        return own(launch)

    monkeypatch.setattr(opened.original, "run", counted)

    theirs: list[str] = []
    of_migrated = opened.migrated.run

    def counted_too(launch: Launch) -> RunOutcome:
        theirs.append(launch.run_dir.name.partition("-")[2])
        return of_migrated(launch)

    monkeypatch.setattr(opened.migrated, "run", counted_too)
    first = session.verify(case, session=opened)
    assert "migrated-probe" in theirs
    assert (first.document["verdict"], len(runs)) == (
        "EQUIVALENT",
        2,
    )  # as many as are needed where the numbers are the same
    runs.clear()
    theirs.clear()
    second = session.verify(case, session=opened)
    assert (second.document["verdict"], runs) == ("EQUIVALENT", [])
    assert "migrated-probe" not in theirs  # the same variables as before
    assert second.document["levels"][2] == first.document["levels"][2] | {
        "duration_s": second.document["levels"][2]["duration_s"]
    }
    assert second.document["series"][0] == first.document["series"][0]
    assert second.document["tolerance"] == first.document["tolerance"]

    # A migrated program that differs: the original is asked for its data once, and believed.
    good = paths[1].read_text()
    paths[1].write_text(good.replace("learning_rate=0.05", "learning_rate=0.06"))
    assert session.verify(case, session=opened).document["verdict"] == "DIFFERENT"
    assert len(runs) == 1 and "original-again" in runs[0]
    runs.clear()
    # Other variables: they are looked at, and no more is made of it.
    theirs.clear()
    renamed = good.replace("tf.keras.layers.Dense(", "tf.keras.layers.Dense(name='other', units=", 1)
    assert renamed != good
    paths[1].write_text(renamed)
    assert session.verify(case, session=opened).document["verdict"] == "EQUIVALENT"
    assert theirs.count("migrated") == 2 and "migrated-probe" in theirs
    runs.clear()
    # Other data, which nothing in the name tells: what was kept is thrown away.
    paths[1].write_text(good)
    seed.write_text("2")
    assert session.verify(case, session=opened).document["verdict"] == "EQUIVALENT"
    assert len(runs) == 3
