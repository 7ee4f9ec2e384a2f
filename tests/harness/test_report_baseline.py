"""Baselines: what counts as worse, what has to be accepted, and what is kept."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from report_documents import KINDS, SPREAD, reports

from migrator.harness import report
from migrator.harness.report import baseline, html, json_report, junit
from migrator.harness.report.document import Report

REPORTS = reports()
RICH = reports(rich=True)


@cache
def saved() -> dict[str, Any]:
    """What is kept of a report to compare others with."""
    return baseline.of(RICH["EQUIVALENT"])


def changed(**replaced: Any) -> Report:
    return Report({**copy.deepcopy(RICH["EQUIVALENT"].document), **replaced})


def found(made: Report) -> dict[str, baseline.Change]:
    return {change.what: change for change in baseline.changes(saved(), baseline.of(made))}


def counting(made: Report) -> list[str]:
    return [change.what for change in baseline.changes(saved(), baseline.of(made)) if change.counts]


def level(document: dict[str, Any], name: str) -> dict[str, Any]:
    return next(level for level in document["levels"] if level["id"] == name)


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_is_as_its_own_baseline_says(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "new" / "base.json"
    baseline.save(path, baseline.of(REPORTS[kind]))
    assert baseline.load(path) == baseline.of(REPORTS[kind])
    assert [p.name for p in path.parent.iterdir()] == ["base.json"]
    again = baseline.compared(REPORTS[kind], path, baseline.load(path), "no need")
    json_report.validate(again.document)
    assert again.document["baseline"]["changes"] == []
    assert (again.document["baseline"]["accepted"], again.document["baseline"]["reason"]) == (False, None)
    assert not baseline.regressed(again.document)
    assert report.exit_code(again) == report.exit_code(REPORTS[kind])


@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize("after", range(4))
def test_a_worse_verdict_counts_and_a_better_one_is_named(before: int, after: int) -> None:
    order = ["EQUIVALENT", "INCONCLUSIVE", "DIFFERENT", "FAILED"]
    old = {**saved(), "verdict": order[before]}
    changes = [c for c in baseline.changes(old, {**saved(), "verdict": order[after]}) if c.what == "verdict"]
    assert [c.counts for c in changes] == [after > before] * (before != after)


@pytest.mark.parametrize(
    ("old", "new", "worse"),
    [
        ("EQUIVALENT", "DIFFERENT", True),
        ("EQUIVALENT", "NOT_EXERCISED", True),
        ("EQUIVALENT", "NOT_APPLICABLE", True),
        ("EQUIVALENT", None, True),
        ("INCONCLUSIVE", "EQUIVALENT", False),
        ("NOT_EXERCISED", "INCONCLUSIVE", True),
        (None, "EQUIVALENT", False),
        (None, "DIFFERENT", True),
    ],
)
def test_levels(old: str | None, new: str | None, worse: bool) -> None:
    sides = []
    for status in (old, new):
        side = copy.deepcopy(saved())
        if status is None:
            del side["levels"]["L7"]
        else:
            side["levels"]["L7"]["status"] = status
        sides.append(side)
    (change,) = baseline.changes(*sides)
    assert change == baseline.Change("status of L7", old, new, worse)


@pytest.mark.parametrize(
    ("ratio", "left"), [(7.9, False), (8.0, False), (8.1, True), ("NaN", True), ("Infinity", True)]
)
def test_a_ratio_that_left_the_tolerance(ratio: object, left: bool) -> None:
    made = changed()
    level(made.document, "L7")["ratio"] = ratio
    assert counting(made) == ["ratio of L7 (accepted: 8.0)"] * left
    assert baseline.changes(baseline.of(made), baseline.of(made)) == []


def last_losses(made: Report, role: str, value: object) -> str:
    series = next(s for s in made.document["series"] if s["role"] == role)
    series["values"][-1] = value
    return f"loss of the {role} program, local:0, step 20"


@pytest.mark.parametrize(("floors", "counts"), [(0.5, False), (7.9, False), (8.5, True), (1e6, True)])
def test_a_last_loss_counts_beyond_what_is_noise(floors: float, counts: bool) -> None:
    made = changed()
    name = "loss of the migrated program, local:0, step 20"
    losses = saved()["losses"][name]
    assert last_losses(made, "migrated", losses["value"] + losses["accepted"] * floors / 8.0) == name
    assert counting(made) == [name] * counts


def test_a_loss_that_is_no_number_counts_unless_it_was_none_before() -> None:
    made = changed()
    name = last_losses(made, "original", "NaN")
    assert counting(made) == [name]
    assert baseline.changes(baseline.of(made), baseline.of(made)) == []


def test_a_loss_without_a_floor_is_named_and_does_not_count() -> None:
    made = changed(tolerance=None)
    old = baseline.of(made)
    name = last_losses(made, "migrated", 17.0)
    (change,) = baseline.changes(old, baseline.of(made))
    assert (change.what, change.after, change.counts) == (name, 17.0, False)


def test_a_metric_counts_beyond_what_two_runs_of_one_program_differ_by() -> None:
    made = changed()
    loss = made.document["evaluations"][1]
    assert loss["noise"] == pytest.approx(8.0 * SPREAD["average_loss"])
    loss["own_weights"] += 7e-5
    assert [change.counts for change in found(made).values()] == []
    loss["own_weights"] += 2e-5
    assert counting(made) == ["average_loss of the migrated program, step 20"]


def test_a_metric_that_no_replicate_moves_counts_with_any_step() -> None:
    made = changed()
    made.document["evaluations"][0]["same_weights"] -= 1 / 1024
    assert counting(made) == ["accuracy of the migrated program on the original's weights, step 20"]


def test_a_metric_that_is_there_no_more_counts_and_one_without_noise_does_not() -> None:
    made = changed()
    made.document["evaluations"].pop(0)
    assert len(counting(made)) == 3
    made = changed()
    made.document["evaluations"][2]["original"] = 0.5
    assert counting(made) == [] and [change.after for change in found(made).values()] == [0.5]


def test_values_are_not_compared_from_other_weights_or_batches() -> None:
    made = changed()
    name = last_losses(made, "migrated", 17.0)
    made.document["data"]["initial_sha256"] = "0" * 64
    (change,) = found(made).values()
    assert change.what.startswith("SHA-256 of the original's initial weights") and not change.counts
    made = changed()
    last_losses(made, "migrated", 17.0)
    made.document["data"]["per_task"][0]["sha256"] = "0" * 64
    assert counting(made) == ["SHA-256 of the batches of the original local:0"]
    assert name not in found(made)


def test_random_data_is_no_change_but_becoming_random_is() -> None:
    made = changed()
    made.document["data"]["random_order"] = True
    assert counting(made) == ["order of the data"]
    other = copy.deepcopy(made)
    other.document["data"]["per_task"][0]["sha256"] = "0" * 64
    assert baseline.changes(baseline.of(made), baseline.of(other)) == []


def test_another_case_has_to_be_accepted() -> None:
    made = changed()
    made.document["inputs"].update(steps=40, args=["--y"])
    made.document["cluster"]["original"] = "worker=2"
    assert counting(made) == ["cluster", "limit of the steps", "arguments of the scripts"]


def test_other_scripts_and_versions_are_named_and_do_not_count() -> None:
    made = changed()
    made.document["inputs"]["migrated"]["sha256"] = "0" * 64
    made.document["environment"]["migrated"]["tensorflow"] = "2.22.0"
    assert list(found(made)) == ["SHA-256 of the migrated program", "tensorflow of the migrated program"]
    assert counting(made) == []
    assert not baseline.regressed(baseline.compared(made, Path("b.json"), saved()).document)


def test_the_changes_that_count_come_first() -> None:
    made = changed(verdict="DIFFERENT")
    made.document["inputs"]["original"]["sha256"] = "0" * 64
    made.document["evaluations"][0]["same_weights"] = 0.5
    counts = [change.counts for change in baseline.changes(saved(), baseline.of(made))]
    assert counts == sorted(counts, reverse=True) and len(set(counts)) == 2


def worse(reason: str | None = None) -> Report:
    made = changed()
    level(made.document, "L7").update(ratio=9.0)
    return baseline.compared(made, Path("base.json"), saved(), reason)


def test_worse_than_the_baseline_ends_with_1_until_it_is_accepted() -> None:
    assert report.exit_code(RICH["EQUIVALENT"]) == 0
    assert (report.exit_code(worse()), report.exit_code(worse("a new data set"))) == (1, 0)
    inconclusive = Report({**worse().document, "verdict": "INCONCLUSIVE"})
    assert report.exit_code(inconclusive) == 3
    assert report.exit_code(inconclusive, warn_inconclusive=True) == 1
    assert report.exit_code(REPORTS["INCONCLUSIVE"], warn_inconclusive=True) == 0
    assert report.exit_code(REPORTS["DIFFERENT"], warn_inconclusive=True) == 1


def test_a_reason_does_not_make_a_verdict_better() -> None:
    different = baseline.compared(REPORTS["DIFFERENT"], Path("b.json"), baseline.of(REPORTS["EQUIVALENT"]), "so be it")
    assert different.document["baseline"]["accepted"]
    assert report.exit_code(different) == 1


def test_old_new_and_reason_are_kept_in_every_rendering() -> None:
    for made, words in ((worse(), "Not as the baseline says"), (worse("a new data set"), "a new data set")):
        json_report.validate(made.document)
        assert made.document["baseline"]["changes"] == [
            {"what": "ratio of L7 (accepted: 8.0)", "before": 0.4, "after": 9.0, "counts": True}
        ]
        page = html.render(made)
        assert words in page and "ratio of L7 (accepted: 8.0)" in page
        assert "ratio of L7 (accepted: 8.0): 0.4 -&gt; 9.0" in junit.render(made)
    assert "1 changes since base.json" in junit.render(worse())
    assert "changes since base.json" not in junit.render(worse("a new data set"))
    assert baseline.of(worse("x"), "a new data set")["reason"] == "a new data set"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("{", "cannot be read"), ("[]", "is no baseline"), ("{}", "is no baseline"), ('{"baseline_version": 2}', "is no")],
)
def test_a_file_that_is_no_baseline_is_one_clear_error(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "base.json"
    path.write_text(text)
    with pytest.raises(baseline.BaselineError, match=f"{path} {complaint}"):
        baseline.load(path)


def test_a_report_is_not_taken_for_a_baseline(tmp_path: Path) -> None:
    report.write(RICH["EQUIVALENT"], tmp_path)
    with pytest.raises(baseline.BaselineError, match="is no baseline"):
        baseline.load(tmp_path / "report.json")


def test_a_baseline_is_small(tmp_path: Path) -> None:
    baseline.save(tmp_path / "base.json", saved())
    assert (tmp_path / "base.json").stat().st_size < 8000
    assert json.loads((tmp_path / "base.json").read_text()) == saved()
