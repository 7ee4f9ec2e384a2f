"""`tf-migrate report`, and the options of `verify` that are about its report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from report_documents import KINDS, make, reports

from migrator.cli.program import program
from migrator.harness import report, session
from migrator.harness.report import baseline
from migrator.harness.report.document import Report

REPORTS = reports()


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)


def call(*arguments: object) -> Result:
    return CliRunner().invoke(program, [str(argument) for argument in arguments], prog_name="tf-migrate")


def words(result: Result) -> str:
    """What was printed, as if no line had been too long."""
    return " ".join(result.stdout.split())


# -- report --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["", "report.json"])
def test_the_files_are_rendered_again(tmp_path: Path, kind: str, name: str) -> None:
    paths = report.write(REPORTS[kind], tmp_path)
    before = {kind: path.read_text() for kind, path in paths.items()}
    for other in ("html", "junit"):
        paths[other].unlink()
    result = call("report", tmp_path / name)
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"{kind}: " in result.stdout and str(paths["html"]) in result.stdout
    assert {kind: path.read_text() for kind, path in paths.items()} == before


def test_they_may_go_elsewhere(tmp_path: Path) -> None:
    report.write(REPORTS["EQUIVALENT"], tmp_path / "in")
    (tmp_path / "in" / "report.html").unlink()
    assert call("report", tmp_path / "in", "--output", tmp_path / "out").exit_code == 0
    assert (tmp_path / "out" / "report.html").exists()
    assert not (tmp_path / "in" / "report.html").exists()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (None, "cannot be read"),
        ("{", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("{}", "schema_version"),
        ("[]", "is not of type 'object'"),
        ('{"schema_version": 1}', "older tf-migrate"),
        ('{"schema_version": 99}', "newer tf-migrate"),
    ],
)
def test_what_is_no_report_is_one_line(tmp_path: Path, text: str | None, complaint: str) -> None:
    if text is not None:
        (tmp_path / "report.json").write_text(text)
    result = call("report", tmp_path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert complaint in result.stderr and str(tmp_path) in result.stderr
    assert len(result.stderr.splitlines()) == 1 and len(result.stderr) < 500


def test_a_report_that_breaks_the_schema_says_where(tmp_path: Path) -> None:
    report.write(REPORTS["EQUIVALENT"], tmp_path)
    path = tmp_path / "report.json"
    document = json.loads(path.read_text())
    document["levels"][2]["status"] = "FINE"
    path.write_text(json.dumps(document))
    result = call("report", path)
    assert result.exit_code == 2
    assert "levels/2/status" in result.stderr


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    report.write(REPORTS["EQUIVALENT"], tmp_path)
    (tmp_path / "file").write_text("")
    result = call("report", tmp_path, "--output", tmp_path / "file" / "out")
    assert result.exit_code == 2 and result.stderr.startswith("Error: ")


@pytest.mark.parametrize(
    ("environment", "options", "expected"),
    [
        ({}, [], False),
        ({"GITHUB_ACTIONS": "true"}, [], True),
        ({"GITHUB_ACTIONS": "true"}, ["--no-github"], False),
        ({}, ["--github"], True),
    ],
)
def test_github(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], options: list[str], expected: bool
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    report.write(REPORTS["FAILED"], tmp_path)
    result = call("report", tmp_path, *options)
    lines = result.stdout.splitlines()
    assert any(line.startswith("::error title=tf-migrate%3A FAILED") for line in lines) is expected
    assert (tmp_path / "summary.md").exists() is expected
    if expected:
        # What the program printed stands between these two, where GitHub obeys nothing.
        (start,) = [i for i, line in enumerate(lines) if line.startswith("::stop-commands::")]
        token = lines[start].removeprefix("::stop-commands::")
        end = lines.index(f"::{token}::")
        (tail,) = [i for i, line in enumerate(lines) if "ValueError: <no> & never" in line]
        assert start < tail < end


# -- verify --------------------------------------------------------------------------------------------------


class Verify:
    """`tf-migrate verify` with a session that has already found out."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.runs = 0
        self.made = REPORTS["EQUIVALENT"]
        monkeypatch.setattr(session, "verify", self._verify)
        for name in ("original.py", "migrated.py"):
            (folder / name).write_text("x = 1\n")

    def _verify(self, _case: object, _progress: object) -> Report:
        self.runs += 1
        return self.made

    def __call__(self, *options: object) -> Result:
        scripts = self.folder / "original.py", self.folder / "migrated.py"
        return call("verify", *scripts, "--report", self.folder / "out", *options)

    @property
    def document(self) -> dict[str, Any]:
        return report.load(self.folder / "out").document


@pytest.fixture
def verify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Verify:
    return Verify(tmp_path, monkeypatch)


@pytest.mark.parametrize("kind", KINDS)
def test_exit_codes(verify: Verify, kind: str) -> None:
    verify.made = REPORTS[kind]
    code = {"EQUIVALENT": 0, "DIFFERENT": 1, "INCONCLUSIVE": 3, "FAILED": 4}[kind]
    assert verify().exit_code == verify("--inconclusive", "fail").exit_code == code
    warned = verify("--inconclusive=warn")
    assert warned.exit_code == (0 if kind == "INCONCLUSIVE" else code)
    assert f"{kind}: " in warned.stdout


def test_a_baseline_is_saved_compared_with_and_replaced_for_a_reason_only(verify: Verify) -> None:
    path = verify.folder / "base.json"
    assert verify("--save-baseline", path).exit_code == 0
    saved = path.read_text()
    same = verify("--against", path)
    assert same.exit_code == 0 and "As the baseline" in words(same)
    assert verify.document["baseline"]["changes"] == []

    verify.made = make("EQUIVALENT", steps=21)
    other = verify("--against", path)
    assert other.exit_code == 1
    assert "limit of the steps: 20 → 21" in words(other)
    assert path.read_text() == saved and not verify.document["baseline"]["accepted"]

    accepted = verify("--against", path, "--reason", "one more step")
    assert accepted.exit_code == 0 and "accepted: one more step" in words(accepted)
    kept = verify.document["baseline"]
    assert (kept["accepted"], kept["reason"], kept["file"]) == (True, "one more step", str(path))
    assert {"what": "limit of the steps", "before": 20, "after": 21, "counts": True} in kept["changes"]
    assert baseline.load(path)["reason"] == "one more step"
    assert verify("--against", path).exit_code == 0


def test_an_accepted_verdict_is_still_that_verdict(verify: Verify) -> None:
    path = verify.folder / "base.json"
    verify("--save-baseline", path)
    verify.made = REPORTS["DIFFERENT"]
    assert verify("--against", path, "--reason", "so be it").exit_code == 1
    assert baseline.load(path)["verdict"] == "DIFFERENT"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--reason", "x"], "requires --against"),
        (["--against", "BASE", "--reason", " "], "is empty"),
        (["--against", "BASE", "--save-baseline", "NEW"], "exclude each other"),
        (["--save-baseline", "BASE"], "exists; to replace"),
        (["--against", "ABSENT"], "cannot be read"),
        (["--against", "WRONG"], "is no baseline"),
        (["--inconclusive", "skip"], "skip"),
    ],
)
def test_wrong_usage_is_found_before_anything_runs(verify: Verify, options: list[str], complaint: str) -> None:
    base, wrong = verify.folder / "BASE", verify.folder / "WRONG"
    baseline.save(base, baseline.of(verify.made))
    wrong.write_text("{}")
    before = base.read_text()
    result = verify(*(verify.folder / option if option.isupper() else option for option in options))
    assert (result.exit_code, verify.runs) == (2, 0)
    assert complaint in result.stderr
    assert base.read_text() == before


def test_a_baseline_that_cannot_be_written_still_leaves_the_report(verify: Verify) -> None:
    (verify.folder / "file").write_text("")
    result = verify("--save-baseline", verify.folder / "file" / "base.json")
    assert result.exit_code == 2
    assert "the baseline cannot be written" in result.stderr and "EQUIVALENT: " in result.stdout
    assert verify.document["verdict"] == "EQUIVALENT"


def test_github_gets_a_warning_for_what_is_only_warned_of(verify: Verify, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    verify.made = REPORTS["INCONCLUSIVE"]
    assert "\n::error title=" in verify().stdout
    assert "\n::warning title=" in verify("--inconclusive=warn").stdout
