"""What GitHub Actions gets: annotations at the migrated program's lines, and a summary of the step."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from report_documents import HERE, KINDS, REMEDY, reports

from migrator.harness.report import github
from migrator.harness.report.document import Report

RICH = reports(rich=True, steps=20)
FOLDER = Path(HERE).parent
NAME = Path(HERE).name


def with_differences(count: int) -> Report:
    """As many differences, each on its own line, the later the worse; one more on the first line."""
    document = copy.deepcopy(RICH["DIFFERENT"].document)
    level = next(level for level in document["levels"] if level["id"] == "L3")
    first = level["differences"][0]
    place = first["migrated_source"]
    level["differences"] = [
        {**first, "tensor": f"t{i}", "ratio": 100.0 + i, "migrated_source": {**place, "line": 10 + i}}
        for i in range(count)
    ]
    level["differences"].append({**first, "tensor": "lesser", "ratio": 50.0, "migrated_source": {**place, "line": 10}})
    return Report(document)


def test_a_difference_is_shown_at_the_line_of_the_migrated_program() -> None:
    difference, verdict = github.commands(RICH["DIFFERENT"], FOLDER)
    assert difference.startswith(f"::error file={NAME},line=5,title=tf-migrate L3%3A DIFFERENT::loss of trainer 0: ")
    assert "%0ALook at: " in difference
    assert verdict.startswith("::error title=tf-migrate%3A DIFFERENT::L3 (same loss")


def test_at_most_ten_are_sent_the_worst_first_and_the_last_says_how_many_more() -> None:
    lines = github.commands(with_differences(14), FOLDER)
    assert len(lines) == 10
    assert [line.split("line=")[1].split(",")[0] for line in lines[:-1]] == [str(23 - i) for i in range(9)]
    assert lines[-1].endswith("(5 more places)")


def test_differences_of_one_line_are_one_annotation() -> None:
    *_, last, _verdict = github.commands(with_differences(2), FOLDER)
    assert "line=10," in last and "::t0: " in last and last.endswith("%0A1 more of this line")


def test_a_wrong_setting_comes_before_any_number() -> None:
    made = with_differences(3)
    level = next(level for level in made.document["levels"] if level["id"] == "L3")
    level["differences"][1]["ratio"] = None
    assert "::t1: " in github.commands(made, FOLDER)[0]


def test_no_line_is_invented() -> None:
    document = copy.deepcopy(RICH["DIFFERENT"].document)
    for level in document["levels"]:
        for difference in level["differences"]:
            difference["migrated_source"] = None
    (only,) = github.commands(Report(document), FOLDER)
    assert only.startswith("::error title=")


def test_a_file_outside_the_workspace_is_named_in_the_text(tmp_path: Path) -> None:
    difference, _ = github.commands(RICH["DIFFERENT"], tmp_path)
    assert difference.startswith(f"::error title=tf-migrate L3%3A DIFFERENT::{HERE}:5: ")


def test_a_failure_is_shown_where_the_traceback_ends_in_the_script() -> None:
    (line,) = github.commands(RICH["FAILED"], FOLDER)
    assert line.startswith(f"::error file={NAME},line=7,title=tf-migrate%3A FAILED::")


def test_kinds() -> None:
    assert github.commands(RICH["EQUIVALENT"], FOLDER)[0].startswith("::notice ")
    assert github.commands(RICH["INCONCLUSIVE"], FOLDER)[0].startswith("::error ")
    assert github.commands(RICH["INCONCLUSIVE"], FOLDER, warn_inconclusive=True)[0].startswith("::warning ")
    assert github.commands(RICH["DIFFERENT"], FOLDER, warn_inconclusive=True)[0].startswith("::error ")


def test_properties_and_messages_are_escaped() -> None:
    assert (
        github.workflow_command("error", "50% a,b: c\r\nd", file="a,b:c%.py", line=1, title=None)
        == "::error file=a%2Cb%3Ac%25.py,line=1::50%25 a,b: c%0Ad"
    )
    assert github.workflow_command("notice", "x") == "::notice::x"


@pytest.mark.parametrize("kind", KINDS)
def test_the_summary_says_everything_in_short(kind: str) -> None:
    text = github.summary(RICH[kind])
    assert text.startswith("## ") and kind in text.splitlines()[0]
    for level in RICH[kind].document["levels"]:
        assert f"| {level['id']} " in text
    assert text.count("\n- ") == len(RICH[kind].document["not_shown"])
    assert (f"<pre>{REMEDY.command}</pre>" in text) is (kind == "INCONCLUSIVE")
    assert ("from collections.abc import Callable, Iterator, Mapping, Sequence" in text) is (kind == "DIFFERENT")
    assert ("ValueError: &lt;no&gt; &amp; never" in text) is (kind == "FAILED")


def test_the_summary_is_cut_where_github_would_refuse_it() -> None:
    document = copy.deepcopy(RICH["EQUIVALENT"].document)
    document["not_shown"] = ["é" * 1000] * 2000
    text = github.summary(Report(document))
    assert github.SUMMARY_LIMIT - 4 <= len(text.encode()) <= github.SUMMARY_LIMIT
    assert text.endswith("GitHub takes no longer summary.\n")
    assert len(github.summary(Report(document), 5000).encode()) <= 5000
    assert github.summary(Report(document), 10) == ""


def test_publishing_appends_to_the_summary_as_far_as_there_is_room(tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    environment = {"GITHUB_WORKSPACE": str(FOLDER), "GITHUB_STEP_SUMMARY": str(path)}
    said: list[str] = []
    path.write_text("before\n")
    github.publish(RICH["DIFFERENT"], environment, said.append)
    assert path.read_text() == "before\n" + github.summary(RICH["DIFFERENT"])
    assert said == github.commands(RICH["DIFFERENT"], FOLDER)
    path.write_text("x" * (github.SUMMARY_LIMIT - 300))
    github.publish(RICH["DIFFERENT"], environment, said.append)
    assert path.stat().st_size <= github.SUMMARY_LIMIT


def test_a_summary_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    said: list[str] = []
    github.publish(RICH["EQUIVALENT"], {"GITHUB_STEP_SUMMARY": str(tmp_path)}, said.append)
    assert said[-1].startswith("::warning title=tf-migrate::the summary of the step cannot be written")
    github.publish(RICH["EQUIVALENT"], {}, said.append)
    assert said[-1].startswith("::notice ")


@pytest.mark.parametrize(
    ("environment", "here"), [({"GITHUB_ACTIONS": "true"}, True), ({"GITHUB_ACTIONS": "1"}, False), ({}, False)]
)
def test_where_it_is_wanted(environment: dict[str, Any], here: bool) -> None:
    assert github.wanted(environment) is here
