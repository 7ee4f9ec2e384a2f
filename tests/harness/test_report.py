"""The report: one document that conforms to its schema, and renderings that say the same."""

from __future__ import annotations

import io
import json
import math
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import pytest
from junitparser import JUnitXml
from numpy_programs import Program, migrated_of, run
from rich.console import Console

from migrator.harness import report
from migrator.harness.cluster import LOCAL, ClusterShape, Failure, RunOutcome, TaskOutcome
from migrator.harness.protocol import l0_runs, ladder, name_map, tolerance, verdict
from migrator.harness.protocol.results import Reason, Status
from migrator.harness.report import html, json_report, junit, terminal
from migrator.harness.report.document import Report, RunSummary, build, plain

ORIGINAL = Program(steps=20)
VERSIONS = (
    {"python": "3.11.7", "tensorflow": "2.15.1", "keras": "2.15.0"},
    {"python": "3.11.7", "tensorflow": "2.21.0", "keras": None},
)


def outcome(failure: Failure | None = None) -> RunOutcome:
    folder = Path("/nowhere")
    code, name = (1, None) if failure else (0, None)
    task = TaskOutcome(
        LOCAL,
        4711,
        1.0,
        3.5,
        code,
        name,
        False,
        300_000_000,
        1.5,
        folder / "out",
        folder / "err",
        ("<last> line",),
    )
    return RunOutcome(folder, (task,), failure, 2.5)


def make(kind: str) -> Report:
    original = run(ORIGINAL)
    changes: dict[str, dict[str, object]] = {
        "EQUIVALENT": {},
        "DIFFERENT": {"loss_scale": "sum"},
        "INCONCLUSIVE": {},
        "FAILED": {},
    }
    migrated = run(migrated_of(ORIGINAL, **changes[kind]))
    control = None
    if kind != "INCONCLUSIVE":
        control = run(migrated_of(ORIGINAL, **changes[kind]), learning_rate_factor=ladder.CONTROL_FACTOR)
    names = name_map.build(original.variables, migrated.variables)
    replicates = [
        run(ORIGINAL, ulp_seed=int(p["ulp_seed"]), learning_rate_factor=p["learning_rate_factor"])
        for p in tolerance.replicate_plans(original.optimizer)
    ]
    limits = tolerance.derive(original, replicates)
    failure = (
        Failure(LOCAL, "exit", "exit code 1", ("Traceback", "ValueError: <no> & never")) if kind == "FAILED" else None
    )
    if failure is not None:
        levels = (l0_runs.failed("migrated", failure.message, failure.tail),)
    else:
        base = ladder.foundation(original, migrated, names, ["local:0"], ["local:0"])
        levels = (*base.levels, *ladder.numbers(original, migrated, control, names, limits))
    levels = verdict.complete(levels)
    shape = str(ClusterShape())
    return build(
        levels=levels,
        verdict=verdict.decide(levels),
        case={
            "original": Path(__file__),
            "migrated": Path("/no/<such> file.py"),
            "args": ["--x", "a b"],
            "cluster": shape,
            "migrated_cluster": shape,
            "compared_cluster": shape,
            "compared_migrated_cluster": shape,
            "parameter_servers": False,
            "steps": 20,
            "report_dir": "out",
        },
        environments=VERSIONS,
        started=1_700_000_000.0,
        seconds=12.5,
        original=original,
        migrated=None if failure else migrated,
        control=control,
        replicates=replicates,
        names=names,
        limits=None if failure else limits,
        runs=(
            RunSummary("original", "original", outcome()),
            RunSummary("migrated", "migrated", outcome(failure)),
        ),
        replayed=False,
        random_order=False,
    )


KINDS = ["EQUIVALENT", "DIFFERENT", "INCONCLUSIVE", "FAILED"]
REPORTS = {kind: make(kind) for kind in KINDS}


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
        ("schema_version", 2),
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


def test_a_file_that_is_no_report_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text("{")
    for path in (tmp_path, tmp_path / "absent.json"):
        with pytest.raises(json_report.ReportError, match=str(path)):
            report.load(path)


VOID = {"meta", "br", "line", "rect", "polyline", "polygon", "link", "img", "input"}


class Page(HTMLParser):
    """Checks that elements close in order, and collects text, attributes and what is folded away."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.visible = ""
        self.points: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.points += [value for name, value in attrs if name == "points" and value]
        if tag not in VOID or tag in ("polyline",):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.points += [value for name, value in attrs if name == "points" and value]

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "details" not in self.open and "style" not in self.open:
            self.visible += data


def page(kind: str) -> tuple[str, Page]:
    text = html.render(REPORTS[kind])
    parsed = Page()
    parsed.feed(text)
    parsed.close()
    assert parsed.open == []
    return text, parsed


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_says_the_verdict_and_never_folds_what_was_not_shown(kind: str) -> None:
    _, parsed = page(kind)
    document = REPORTS[kind].document
    assert kind in parsed.visible
    assert document["summary"][1:] in parsed.visible
    for line in document["not_shown"]:
        assert line in parsed.visible
    for level in document["levels"]:
        assert level["summary"] in parsed.visible


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_needs_no_network(kind: str) -> None:
    text, parsed = page(kind)
    assert "http:" not in text and "https:" not in text and "url(" not in text and "@import" not in text
    assert not [a for a in parsed.attributes if a[1] in ("src", "href", "srcset", "action", "data")]


def test_the_page_escapes_what_the_programs_said() -> None:
    text, parsed = page("FAILED")
    assert "<such>" not in text and "<no>" not in text
    assert "ValueError: <no> & never" in parsed.visible


def test_the_curves_hold_both_programs_the_band_and_only_numbers() -> None:
    (chart,) = html.charts(REPORTS["EQUIVALENT"].document)
    assert {curve.role for curve in chart.curves} == {"original", "migrated", "control"}
    by_role = {curve.role: curve.points for curve in chart.curves}
    assert by_role["original"] == by_role["migrated"] != by_role["control"]
    assert len(chart.band.split()) == 2 * ORIGINAL.steps
    for points in (*by_role.values(), chart.band):
        for pair in points.split():
            x, y = map(float, pair.split(","))
            assert 0 <= x <= html.WIDTH and 0 <= y <= html.HEIGHT


def test_a_curve_without_a_number_is_left_out() -> None:
    document = json.loads(json_report.render(REPORTS["EQUIVALENT"]))
    for series in document["series"]:
        series["values"] = ["NaN"] * len(series["values"])
    assert html.charts(document) == ()
    assert "EQUIVALENT" in html.render(Report(document))


def test_decimation_keeps_the_ends_and_every_spike() -> None:
    values: list[float | None] = [1.0 + i * 1e-6 for i in range(5000)]
    values[1234], values[4321], values[77] = 50.0, -50.0, None
    kept = html.decimate(list(range(1, 5001)), values)
    assert len(kept) <= html.POINTS + 2
    assert (1235, 50.0) in kept and (4322, -50.0) in kept
    assert kept == sorted(kept)
    assert html.decimate([1, 2], [3.0, None]) == [(1, 3.0)]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0"),
        (0.125, "0.125"),
        (31655.54, "31,656"),
        (1.5e-9, "1.5e-9"),
        ("Infinity", "Infinity"),
        (7, "7"),
    ],
)
def test_numbers_for_reading(value: object, text: str) -> None:
    assert html.number(value) == text


def test_junit_has_a_case_for_each_level_and_counts_inconclusive_as_error() -> None:
    counts = {}
    for kind in KINDS:
        (suite,) = JUnitXml.fromstring(junit.render(REPORTS[kind]).encode())
        assert [case.classname for case in suite] == [level["id"] for level in REPORTS[kind].document["levels"]]
        results = [type(result).__name__ for case in suite for result in case.result]
        counts[kind] = (results.count("Failure"), results.count("Error"), results.count("Skipped"))
    assert counts == {
        "EQUIVALENT": (0, 0, 0),
        "DIFFERENT": (1, 0, 2),
        "INCONCLUSIVE": (0, 2, 0),
        "FAILED": (0, 1, 6),
    }


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


def test_the_first_divergence_is_on_the_page() -> None:
    _, parsed = page("DIFFERENT")
    first = REPORTS["DIFFERENT"].document["first_divergence"]
    assert first["level"] == "L3"
    assert f"{first['original']:.9g}" in parsed.visible and f"{first['migrated']:.9g}" in parsed.visible


def test_variables_come_worst_first() -> None:
    ratios = [row["ratio"] for row in REPORTS["DIFFERENT"].document["variables"]]
    assert ratios == sorted(ratios, reverse=True)
    assert {row["status"] for row in REPORTS["DIFFERENT"].document["variables"]} == {"outside"}
    assert {row["status"] for row in REPORTS["EQUIVALENT"].document["variables"]} == {"inside"}
