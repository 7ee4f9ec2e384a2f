"""The report: one document that conforms to its schema, and renderings that say the same."""

from __future__ import annotations

import io
import json
import math
import os
import re
import stat
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from junitparser import JUnitXml, TestCase
from numpy_programs import run
from report_documents import HERE, KINDS, MUTANTS, ORIGINAL, REMEDY, make, reports
from rich.console import Console

from migrator.harness import report
from migrator.harness.cluster import RunOutcome, Write, logs
from migrator.harness.cluster.launch import FAILURE_KINDS
from migrator.harness.protocol import verdict
from migrator.harness.protocol.results import Reason, Status
from migrator.harness.recording import SourceLine, StandIn
from migrator.harness.report import json_report, junit, terminal
from migrator.harness.report.document import Report, RunSummary, plain, stand_ins
from migrator.harness.report.evidence import LONGEST_LINE, source

REPORTS = reports()
RICH = reports(rich=True, steps=60)


@pytest.mark.parametrize("kind", KINDS)
def test_the_document_conforms_and_survives_a_round_trip(kind: str, tmp_path: Path) -> None:
    made = REPORTS[kind]
    assert made.status is Status(kind)
    paths = report.write(made, tmp_path / "new" / "folder")
    assert report.load(tmp_path / "new" / "folder").document == made.document
    assert report.load(paths["json"]).document == made.document
    assert sorted(p.name for p in (tmp_path / "new" / "folder").iterdir()) == [
        "report.html",
        "report.json",
        "report.xml",
    ]


def test_exit_codes() -> None:
    assert [report.exit_code(REPORTS[kind]) for kind in KINDS] == [0, 1, 3, 4]


def test_losses_keep_full_precision(tmp_path: Path) -> None:
    series = json.loads(json_report.render(REPORTS["EQUIVALENT"]))["series"]
    values = next(s["values"] for s in series if s["role"] == "original")
    assert values == [step.loss for step in run(ORIGINAL).steps]


def test_numbers_that_json_has_not_are_text() -> None:
    assert plain({"a": (math.nan, math.inf, -math.inf, 1.5)}) == {"a": ["NaN", "Infinity", "-Infinity", 1.5]}
    assert "NaN" not in re.findall(r"[^\"]NaN[^\"]", json_report.render(REPORTS["DIFFERENT"]))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("verdict", "FINE"),
        ("levels", []),
        ("not_shown", []),
        ("schema_version", 1),
        ("duration_s", "NaN"),
        ("extra", 1),
    ],
)
def test_a_document_that_breaks_the_schema_is_never_written(key: str, value: object, tmp_path: Path) -> None:
    broken = Report({**REPORTS["EQUIVALENT"].document, key: value})
    with pytest.raises(json_report.ReportError):
        report.write(broken, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("key", sorted(REPORTS["EQUIVALENT"].document))
def test_every_key_is_required(key: str) -> None:
    document = dict(REPORTS["EQUIVALENT"].document)
    del document[key]
    with pytest.raises(json_report.ReportError):
        json_report.validate(document)


def test_the_schema_knows_every_status_and_reason() -> None:
    schema = json.loads((Path(json_report.__file__).parent / "schema.json").read_text())
    assert set(schema["$defs"]["reason"]["enum"]) == {reason.value for reason in Reason}
    assert set(schema["$defs"]["status"]["enum"]) == {status.value for status in Status}
    assert tuple(schema["$defs"]["level_id"]["enum"]) == verdict.ORDER
    failure = schema["properties"]["error"]["oneOf"][1]["properties"]["kind"]["enum"]
    assert set(failure) == set(FAILURE_KINDS)


def test_a_file_that_is_no_report_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text("{")
    for path in (tmp_path, tmp_path / "absent.json"):
        with pytest.raises(json_report.ReportError, match=str(path)):
            report.load(path)


@pytest.mark.parametrize("version", [2, 4])
def test_a_report_of_another_version_says_what_to_do(version: int, tmp_path: Path) -> None:
    document = {**REPORTS["EQUIVALENT"].document, "schema_version": version}
    (tmp_path / "report.json").write_text(json.dumps(document))
    with pytest.raises(json_report.ReportError, match=rf"schema_version {version}, this one reads 3.*verify again"):
        report.load(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_with_every_kind_of_evidence_conforms(kind: str, tmp_path: Path) -> None:
    assert RICH[kind].status is Status(kind)
    report.write(RICH[kind], tmp_path)
    assert report.load(tmp_path).document == RICH[kind].document


def test_what_was_missed_and_what_did_not_run_is_not_shown() -> None:
    lines = RICH["EQUIVALENT"].document["not_shown"]
    assert any("sum_for_mean" in line and "no level noticed" in line for line in lines)
    assert any("clip" in line and "no gradient is that long" in line for line in lines)
    assert not any("lr_1.01" in line or "no_updates" in line for line in lines)
    assert any(line.startswith("L7: auc") for line in lines)
    assert "evaluation metrics: not compared" not in lines
    assert "evaluation metrics: not compared" in REPORTS["EQUIVALENT"].document["not_shown"]
    assert "L4, L5: not run: L3 decided the verdict" in REPORTS["DIFFERENT"].document["not_shown"]


def test_missed_versions_come_first() -> None:
    statuses = [mutant["status"] for mutant in RICH["EQUIVALENT"].document["mutants"]]
    assert statuses == ["missed", "not_exercised", "killed", "killed", "not_applicable"]
    assert len(statuses) == len(MUTANTS)


def test_source_lines_are_read_when_the_report_is_made(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("x = 1\n  y = 2  \n" + "z" * 1000 + "\n")
    assert source(SourceLine(str(script), 2)) == {"path": str(script), "line": 2, "text": "  y = 2"}
    assert source(SourceLine(str(script), 3)) == {"path": str(script), "line": 3, "text": "z" * LONGEST_LINE}
    script.write_text("other = 1\n")
    assert source(SourceLine(str(script), 1)) == {"path": str(script), "line": 1, "text": "other = 1"}
    assert source(SourceLine(str(script), 9)) == {"path": str(script), "line": 9, "text": ""}
    assert source(SourceLine(str(tmp_path / "absent.py"), 1)) is not None
    assert source(None) is None


def test_the_command_holds_the_options_of_the_case() -> None:
    made = make("EQUIVALENT")
    assert made.document["command"].endswith("--steps 20 --report out -- --x 'a b'")


def cases(made: Report) -> dict[str, TestCase]:
    (suite,) = JUnitXml.fromstring(junit.render(made).encode())
    assert suite.time == pytest.approx(made.document["duration_s"])
    pairs = {case.classname.rpartition(".")[0] for case in suite}
    assert len(pairs) == 1 and pairs.pop().endswith(("such> file", "harness.report_documents"))
    return {case.classname.rpartition(".")[2]: case for case in suite}


def test_junit_has_a_case_for_each_level_and_counts_inconclusive_as_error() -> None:
    counts = {}
    for kind in KINDS:
        found = cases(REPORTS[kind])
        assert list(found) == [level["id"] for level in REPORTS[kind].document["levels"]]
        results = [type(result).__name__ for case in found.values() for result in case.result]
        counts[kind] = (results.count("Failure"), results.count("Error"), results.count("Skipped"))
    assert counts == {
        "EQUIVALENT": (0, 0, 0),
        "DIFFERENT": (1, 0, 2),
        "INCONCLUSIVE": (0, 2, 0),
        "FAILED": (0, 1, 6),
    }


def test_junit_says_why_a_level_did_not_pass() -> None:
    (result,) = cases(RICH["INCONCLUSIVE"])["L6"].result
    assert (result._tag, result.type) == ("error", "inconclusive")
    (skipped,) = cases(REPORTS["DIFFERENT"])["L4"].result
    assert (skipped._tag, skipped.type) == ("skipped", "stopped_earlier")
    failed = cases(REPORTS["FAILED"])["L0"]
    assert "ValueError: <no> & never" in str(failed.system_out)


def test_junit_has_the_numbers_as_properties() -> None:
    (suite,) = JUnitXml.fromstring(junit.render(RICH["INCONCLUSIVE"]).encode())
    properties = {p.name: p.value for p in suite.properties()}
    level = next(level for level in RICH["INCONCLUSIVE"].document["levels"] if level["id"] == "L4")
    assert properties["L4.ratio"] == str(level["ratio"])
    assert properties["L4.floor"] == str(level["floor"])
    assert properties["L4.control"] == str(level["control"]["ratio"])
    assert (properties["L6.k"], properties["mutants.missed"]) == ("8", "1")


@pytest.mark.parametrize("kind", KINDS)
def test_the_terminal_shows_the_ladder_and_the_verdict_without_control_codes_in_a_pipe(kind: str) -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=120)
    with terminal.LiveProgress(console) as progress:
        progress(Step("original", 0, 2))
        progress(Step("original", 2, 2))
    assert stream.getvalue() == ""
    terminal.show(REPORTS[kind], console, {"html": Path("/a/report.html")})
    text = stream.getvalue()
    assert "\x1b" not in text
    assert f"{kind}: " in text
    assert "/a/report.html" in text
    for level in REPORTS[kind].document["levels"]:
        assert level["id"] in text


def shown(made: Report, width: int) -> str:
    stream = io.StringIO()
    terminal.show(made, Console(file=stream, width=width))
    return stream.getvalue()


@pytest.mark.parametrize("kind", KINDS)
def test_the_terminal_does_with_80_columns(kind: str) -> None:
    text = shown(RICH[kind], 80)
    too_long = [line for line in text.splitlines() if len(line) > 80]
    assert too_long == [f"  {REMEDY.command}"] * (kind == "INCONCLUSIVE")
    for level in RICH[kind].document["levels"]:
        assert level["status"].replace("_", " ") in text


def test_the_terminal_shows_lines_mutants_and_the_remedy() -> None:
    different, open_question = shown(RICH["DIFFERENT"], 200), shown(RICH["INCONCLUSIVE"], 200)
    name = Path(HERE).name
    assert f"{name}:3" in different and f"{name}:5" in different
    assert Path(HERE).read_text().splitlines()[4].strip() in different
    assert "2 of 3 known-bad versions were caught; 1 cannot show on this workload." in different
    assert "missed: sum instead of mean in the loss (sum_for_mean)" in different
    for text in (REMEDY.found, REMEDY.ruled_out, REMEDY.command):
        assert text in open_question


def test_the_terminal_shows_progress_on_a_terminal() -> None:
    stream = io.StringIO()
    with terminal.LiveProgress(Console(file=stream, width=100, force_terminal=True)) as progress:
        progress(Step("replicates", 3, 6))
    assert "noise floor" in stream.getvalue()


@dataclass(frozen=True)
class Step:
    stage: str
    done: int
    total: int


def test_variables_come_worst_first() -> None:
    ratios = [row["ratio"] for row in REPORTS["DIFFERENT"].document["variables"]]
    assert ratios == sorted(ratios, reverse=True)
    assert {row["status"] for row in REPORTS["DIFFERENT"].document["variables"]} == {"outside"}
    assert {row["status"] for row in REPORTS["EQUIVALENT"].document["variables"]} == {"inside"}


def test_a_stand_in_for_a_tpu_is_named_everywhere(tmp_path: Path) -> None:
    original = replace(run(ORIGINAL), program="original", stand_in=StandIn("TPUEstimator", 1))
    migrated = replace(original, program="migrated", stand_in=StandIn("TPUStrategy", 2))
    found = stand_ins(original, migrated)
    assert [(one["program"], one["stands_for"], one["cores"]) for one in found] == [
        ("original", "TPUEstimator", 1),
        ("migrated", "TPUStrategy", 2),
    ]
    (old,) = stand_ins(replace(original, stand_in=StandIn("TPUStrategy", 1)), None)
    assert old["said"].startswith("the original's TPUStrategy was a stand-in, a MirroredStrategy over one virtual CPU")
    assert stand_ins(run(ORIGINAL), None) == REPORTS["EQUIVALENT"].document["stand_in"] == []
    made = Report({**REPORTS["EQUIVALENT"].document, "stand_in": found})
    report.write(made, tmp_path)
    assert report.load(tmp_path).document == made.document
    console = Console(file=io.StringIO(), width=200)
    terminal.show(made, console)
    for text in (console.file.getvalue(), (tmp_path / "report.html").read_text()):  # type: ignore[attr-defined]
        assert "a MirroredStrategy over 2 virtual CPUs; no TPU was there" in text
        assert "use_tpu=False: on one CPU, with the global batch" in text


def test_what_was_kept_out_of_the_users_folders_is_said_everywhere(tmp_path: Path) -> None:
    def kept(*writes: Write) -> RunOutcome:
        return RunOutcome(tmp_path, (), None, 1.0, writes)

    made = make(
        "EQUIVALENT",
        runs=(
            RunSummary("original", "original", kept(Write("/real/export/1", "made", "t.py:9"))),
            RunSummary(
                "original replicate 1",
                "original",
                kept(Write("/real/export/2", "made", "t.py:9"), Write("/real/model", "deleted", "t.py:3")),
            ),
            RunSummary("migrated", "migrated", kept(Write("/real/x", "refused"))),
        ),
    )
    assert [(one["code"], one["path"], one["where"], one["count"]) for one in made.document["writes"]] == [
        ("write_kept", "/real/model", "t.py:3", 1),
        ("write_kept", "/real/export/1", "t.py:9", 2),
        ("write_refused", "/real/x", None, 1),
    ]
    report.write(made, tmp_path)
    assert report.load(tmp_path).document == made.document
    console = Console(file=io.StringIO(), width=200)
    terminal.show(made, console)
    for text in (console.file.getvalue(), (tmp_path / "report.html").read_text()):  # type: ignore[attr-defined]
        assert "the original program (t.py:3) deleted /real/model." in text
        assert "the original program (t.py:9) made /real/export/1 and 1 more in /real/export." in text
        assert "was refused to change /real/x." in text


def test_reports_and_logs_are_for_their_owner_alone(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.mkdir()
    old.chmod(0o755)
    folder = old / "new" / "report"
    mask = os.umask(0)
    try:
        report.write(REPORTS["FAILED"], folder)
        (tmp_path / "stdout.log").write_text("secret")
        logs.keep(folder / "logs" / "original" / "local-0.log", "local:0", [tmp_path / "stdout.log"])
    finally:
        os.umask(mask)
    modes = {str(path.relative_to(old)): stat.S_IMODE(path.stat().st_mode) for path in old.rglob("*")}
    assert {mode for path, mode in modes.items() if (old / path).is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if (old / path).is_file()} == {0o600}
    assert len(modes) == 4 + 4 and stat.S_IMODE(old.stat().st_mode) == 0o755
