"""The page: complete, self-contained, readable without a script, by everybody."""

from __future__ import annotations

import base64
import copy
import hashlib
import itertools
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from report_documents import HERE, KINDS, MUTANTS, ORIGINAL, RANDOMNESS, REMEDY, Lazy, reports

from migrator.harness.report import charts, html, json_report
from migrator.harness.report.document import Report
from migrator.harness.report.numbers import number, seconds, share

REPORTS = reports()
RICH = reports(rich=True, steps=60)
ALL = Lazy(
    [f"{kind} {name}" for kind in KINDS for name in ("plain", "rich")],
    lambda name: (RICH if name.endswith("rich") else REPORTS)[name.split()[0]],
)

VOID = {"meta", "br", "line", "rect", "polyline", "polygon", "circle", "path", "link", "img", "input"}


class Page(HTMLParser):
    """Checks that elements close in order; collects text, attributes, what is folded away, and drawings that neither
    have a name nor are hidden because the text beside them says the same.
    """

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.hidden: list[bool] = []
        self.silent: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.visible = ""
        self.everything = ""
        self.points: list[str] = []
        self.blocks: dict[str, list[str]] = {"script": [], "style": []}

    def _see(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.elements.append((tag, dict(attrs)))
        self.points += [value for name, value in attrs if name == "points" and value]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._see(tag, attrs)
        if tag in self.blocks:
            self.blocks[tag].append("")
        if tag in VOID:
            return
        own = dict(attrs)
        hidden = own.get("aria-hidden") == "true" or any(self.hidden)
        named = own.get("role") == "img" and own.get("aria-labelledby")
        if tag == "svg" and "svg" not in self.open and not hidden and not named:
            self.silent.append(str(self.get_starttag_text()))
        self.open.append(tag)
        self.hidden.append(hidden)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._see(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag
        self.hidden.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in self.blocks:
            self.blocks[self.open[-1]][-1] += data
            return
        self.everything += data
        if "details" not in self.open:
            self.visible += data

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def parse(text: str) -> Page:
    parsed = Page()
    parsed.feed(text)
    parsed.close()
    assert parsed.open == []
    return parsed


PAGES = Lazy(list(ALL), lambda name: parse(html.render(ALL[name])))


@pytest.mark.parametrize("name", ALL)
def test_the_page_says_the_verdict_and_never_folds_what_was_not_shown(name: str) -> None:
    parsed, document = PAGES[name], ALL[name].document
    assert document["verdict"] in parsed.visible
    assert document["summary"][1:] in parsed.visible
    assert document["command"] in parsed.visible
    for line in document["not_shown"]:
        assert line in parsed.visible
    for level in document["levels"]:
        assert level["summary"] in parsed.visible
        assert level["excluded"] is None or level["excluded"] in parsed.visible


@pytest.mark.parametrize("name", ALL)
def test_the_page_needs_no_network(name: str) -> None:
    text = html.render(ALL[name])
    assert not re.search(r"https?:|url\(|@import|//[a-z]+\.", text.replace("// Sorting", ""))
    fetched = [a for a in PAGES[name].attributes if a[1] in ("src", "srcset", "action", "data", "poster", "xlink:href")]
    assert fetched == []
    assert all(str(a.get("href")).startswith("#") for a in PAGES[name].of("a"))
    assert PAGES[name].of("link") == PAGES[name].of("img") == PAGES[name].of("iframe") == []


@pytest.mark.parametrize("name", ALL)
def test_the_policy_allows_the_own_style_and_script_and_nothing_else(name: str) -> None:
    parsed = PAGES[name]
    (policy,) = [str(a["content"]) for a in parsed.of("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    (style,) = parsed.blocks["style"]
    data, script = parsed.blocks["script"]

    def hashed(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    assert rules == {
        "default-src": "'none'",
        "style-src": hashed(style),
        "script-src": hashed(script),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert [tag for tag, attribute, _ in parsed.attributes if attribute == "style" or attribute.startswith("on")] == []
    assert {chart["id"] for chart in json.loads(data)["charts"]} <= {a.get("id") for a in parsed.of("figure")}


@pytest.mark.parametrize("name", ALL)
def test_headings_come_in_order_and_names_are_unique(name: str) -> None:
    parsed = PAGES[name]
    levels = [int(tag[1]) for tag, _ in parsed.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    identifiers = [str(a["id"]) for _, a in parsed.elements if "id" in a]
    assert len(identifiers) == len(set(identifiers))
    named = [word for _, a in parsed.elements for word in str(a.get("aria-labelledby") or "").split()]
    linked = [str(a["href"])[1:] for a in parsed.of("a")]
    assert set(named) | set(linked) <= set(identifiers)


@pytest.mark.parametrize("name", ALL)
def test_tables_and_drawings_speak(name: str) -> None:
    parsed = PAGES[name]
    assert len(parsed.of("caption")) == len(parsed.of("table")) == len(parsed.of("thead"))
    assert all(a.get("scope") in ("col", "row") for a in parsed.of("th"))
    regions = [a for a in parsed.of("div") if a.get("role") == "region"]
    assert all(a.get("aria-label") and a.get("tabindex") == "0" for a in regions)
    assert len({a["aria-label"] for a in regions}) == len(regions)
    assert parsed.silent == []


def _luminance(colour: str) -> float:
    digits = colour.lstrip("#")
    digits = "".join(c * 2 for c in digits) if len(digits) == 3 else digits
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, two: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(two)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(mode: int) -> None:
    style = PAGES["EQUIVALENT plain"].blocks["style"][0]
    colours = dict(re.findall(r"--(\w+): (#[0-9a-f]+)", re.findall(r":root \{(.*?)\}", style, re.DOTALL)[mode]))
    for text in ("ink", "soft", "good", "bad", "open", "broken", "none", "one"):
        for ground in ("card", "page"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for line in ("one", "two", "grey", "bad"):
        assert contrast(colours[line], colours["card"]) >= 3.0, line


def test_contrast_is_measured_as_wcag_does() -> None:
    assert contrast("#fff", "#000000") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_the_first_divergence_is_on_the_page_with_its_lines() -> None:
    parsed, document = PAGES["DIFFERENT rich"], RICH["DIFFERENT"].document
    first = document["first_divergence"]
    assert first["level"] == "L3"
    assert f"{first['original']:.9g}" in parsed.visible and f"{first['migrated']:.9g}" in parsed.visible
    for line in (3, 5):
        assert f"{HERE}:{line}" in parsed.visible
    assert first["migrated_source"]["text"] == "from collections.abc import Callable, Iterator, Mapping, Sequence"
    assert "from collections.abc import Callable, Iterator, Mapping, Sequence" in parsed.visible
    assert all(cause in parsed.visible for cause in first["causes"])


def test_every_kind_of_evidence_is_on_the_page() -> None:
    parsed = PAGES["INCONCLUSIVE rich"]
    for text in (REMEDY.found, REMEDY.ruled_out, REMEDY.command):
        assert text in parsed.visible
    for mutant in MUTANTS:
        assert mutant.description in parsed.visible and mutant.detail in parsed.visible
    for item in RANDOMNESS:
        assert item.source in parsed.visible and item.detail in parsed.visible
    for label in ("all steps", "steps 501 to 1000", "original against itself", "too noisy", "outside ✗", "inside"):
        assert label in parsed.visible
    assert "About 14 seeds would settle it." in parsed.visible
    assert "0.43125004" in parsed.visible


def test_a_page_without_evidence_has_no_empty_sections() -> None:
    titles = html.sections(REPORTS["FAILED"].document)
    assert "error" in titles and not {"mutants", "seeds", "evaluations", "remedy", "baseline"} & set(titles)
    assert [a["id"] for a in PAGES["FAILED plain"].of("section")] == list(titles)


def test_many_variables_are_folded_and_many_differences_cut() -> None:
    document = copy.deepcopy(REPORTS["DIFFERENT"].document)
    row = document["variables"][0]
    document["variables"] = [{**row, "original": f"v{i:03d}"} for i in range(40)]
    level = next(level for level in document["levels"] if level["id"] == "L3")
    level["differences"] = [{**level["differences"][0], "tensor": f"t{i:03d}"} for i in range(70)]
    parsed = parse(html.render(Report(document)))
    assert "v011" in parsed.visible and "v012" not in parsed.visible and "v039" in parsed.everything
    assert "70 differences" in parsed.everything and "t049" in parsed.everything and "t050" not in parsed.everything
    assert "20 more are in report.json" in parsed.everything


# -- drawings ------------------------------------------------------------------------------------------------


def inside_the_box(points: str) -> bool:
    pairs = [tuple(map(float, pair.split(","))) for pair in points.split()]
    return all(0 <= value <= charts.BOX for pair in pairs for value in pair)


def test_the_curves_hold_both_programs_the_band_and_only_numbers() -> None:
    (chart,) = charts.loss_charts(REPORTS["EQUIVALENT"].document)
    by_role = {curve.role: curve.points for curve in chart.curves}
    assert list(by_role) == ["control", "original", "migrated"]
    assert by_role["original"] == by_role["migrated"] != by_role["control"]
    assert len(chart.band.split()) == 2 * ORIGINAL.steps
    assert all(map(inside_the_box, (*by_role.values(), chart.band)))
    assert len(by_role["original"].split()) == ORIGINAL.steps


def test_the_ratios_are_those_of_the_level() -> None:
    document = RICH["EQUIVALENT"].document
    (chart,) = charts.ratio_charts(document)
    curves = {curve.role: dict(curve.known) for curve in chart.curves}
    series = {s["role"]: dict(zip(s["steps"], s["values"], strict=True)) for s in document["series"]}
    for step in (1, 30, 60):
        apart = abs(series["migrated"][step] - series["original"][step])
        assert curves["migrated"][step] == apart / series["floor"][step]
    assert max(curves["control"].values()) > document["tolerance"]["parts"][2]["c"] > max(curves["migrated"].values())
    assert [line.label for line in chart.lines] == ["floor", "accepted"]
    assert chart.lines[0].at > chart.lines[1].at, "what is accepted lies above the floor"


def test_what_lies_beyond_the_horizon_is_shaded() -> None:
    document = copy.deepcopy(REPORTS["EQUIVALENT"].document)
    assert all(chart.horizon is None for chart in charts.loss_charts(document))
    next(level for level in document["levels"] if level["id"] == "L5")["horizon_step"] = 10
    for chart in (*charts.loss_charts(document), *charts.ratio_charts(document)):
        assert chart.horizon == pytest.approx(100 * 9 / 19, abs=0.01)
    assert "not judged: after step 10" in parse(html.render(Report(document))).visible


def test_a_curve_without_a_number_is_left_out() -> None:
    document = json.loads(json_report.render(REPORTS["EQUIVALENT"]))
    for series in document["series"]:
        series["values"] = ["NaN"] * len(series["values"])
    assert charts.loss_charts(document) == charts.ratio_charts(document) == ()
    assert "EQUIVALENT" in parse(html.render(Report(document))).visible


def test_decimation_keeps_the_ends_and_every_spike() -> None:
    values: list[float | None] = [1.0 + i * 1e-6 for i in range(5000)]
    values[1234], values[4321], values[77] = 50.0, -50.0, None
    kept = charts.decimate(list(range(1, 5001)), values)
    assert len(kept) <= charts.POINTS + 2
    assert (1235, 50.0) in kept and (4322, -50.0) in kept
    assert kept == sorted(kept)
    assert charts.decimate([1, 2], [3.0, None]) == [(1, 3.0)]


def test_the_forest_cuts_wide_intervals_and_keeps_the_order() -> None:
    found = charts.forest(RICH["INCONCLUSIVE"].document["asynchronous"])
    assert found is not None
    assert [row.label for row in found.rows][0::7] == ["all steps", "original against itself"]
    assert found.margin[0] < found.zero < found.margin[1] < found.control <= 100
    for row in found.rows:
        assert 0 <= row.low <= row.at <= row.high <= 100
    assert (found.rows[1].low, found.rows[1].high) == (0, 100)
    assert found.rows[2].state == "outside" and found.rows[2].high > found.margin[1]
    assert charts.forest(None) is None


def test_the_timeline_folds_runs_that_ended_well_only() -> None:
    found = charts.timeline(RICH["EQUIVALENT"].document)
    assert found is not None and len(found.runs) == 3 and len(found.folded) == 5
    assert max(s.start + s.width for run in (*found.runs, *found.folded) for s in run.spans) <= 100.5
    document = copy.deepcopy(RICH["EQUIVALENT"].document)
    document["processes"][-1].update(exit="SIGSEGV", by_launcher=False)
    again = charts.timeline(document)
    assert again is not None and [run.run for run in again.runs][-1] == "migrated"
    assert again.runs[-1].spans[-1].ended == "SIGSEGV" and not again.runs[-1].spans[-1].well
    assert "SIGSEGV ✗" in parse(html.render(Report(document))).visible
    assert charts.timeline({"processes": []}) is None


@pytest.mark.parametrize(
    ("value", "place"), [(0.0, 0.0), (1e-2, 0.0), (1.0, 25.0), (1e6, 100.0), (1e9, 100.0), ("Infinity", 100.0)]
)
def test_bars_are_logarithmic(value: Any, place: float) -> None:
    assert charts.bar(value) == place
    assert charts.bar(None) is charts.bar("NaN") is None


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
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.4, "0.4 s"), (59.4, "59 s"), (60.0, "1 min"), (212.5, "3 min 32 s"), (7500.0, "2 h 5 min")]
)
def test_durations_for_reading(value: float, text: str) -> None:
    assert seconds(value) == text


@pytest.mark.parametrize(("value", "text"), [(0.05, "+5.1 %"), (-0.05, "-4.9 %"), (0.0, "+0.0 %"), ("NaN", "NaN")])
def test_errors_of_the_learning_rate_for_reading(value: object, text: str) -> None:
    assert share(value) == text
