"""report.html: one file for a person, without network and without script needed to read it.

The page carries a content security policy that allows its own style sheet and script, by their hashes, and nothing
else: no style or script that a program smuggled into a name could ever take effect, even if it were not escaped.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import Any

import jinja2

from migrator.harness.report import charts
from migrator.harness.report.baseline import regressed
from migrator.harness.report.charts import Chart
from migrator.harness.report.document import Report
from migrator.harness.report.evidence import Document
from migrator.harness.report.numbers import exact, megabytes, number, seconds, share
from migrator.harness.report.texts import clean, short

ICONS = {
    "EQUIVALENT": "✓",
    "DIFFERENT": "✗",
    "INCONCLUSIVE": "?",
    "FAILED": "!",
    "NOT_EXERCISED": "–",
    "NOT_APPLICABLE": "–",
}
_TITLES = {
    "curves": "Losses",
    "error": "What failed",
    "divergence": "Where they part first",
    "remedy": "What would settle it",
    "baseline": "Against the baseline",
    "levels": "Levels",
    "ratios": "Noise floors",
    "not-shown": "What was not shown",
    "seeds": "Asynchronous training, paired seeds",
    "evaluations": "Evaluation",
    "variables": "Variables, worst first",
    "mutants": "Known-bad versions",
    "optimizer": "Optimizer",
    "data-read": "Data",
    "randomness": "Randomness",
    "processes": "Processes",
    "tolerance": "Where the tolerance comes from",
    "environment": "Environment",
}


def sections(document: Document) -> dict[str, str]:
    """The sections that the page has, in their order: id and heading."""
    absent = {
        "error": document["error"] is None,
        "baseline": document["baseline"] is None,
        "remedy": document["remedy"] is None,
        "divergence": document["first_divergence"] is None,
        "curves": not charts.loss_charts(document),
        "ratios": not charts.ratio_charts(document),
        "seeds": document["asynchronous"] is None,
        "evaluations": not document["evaluations"],
        "variables": not document["variables"],
        "mutants": not document["mutants"],
        "optimizer": not document["optimizer"],
        "data-read": not document["data"]["per_task"],
        "randomness": not document["randomness"],
        "processes": not document["processes"],
    }
    return {name: title for name, title in _TITLES.items() if not absent.get(name)}


def mutant_sentence(mutants: list[Document]) -> str:
    """How many known-bad versions were caught, of those that could be; empty without any."""
    counts = {status: sum(x["status"] == status for x in mutants) for status in ("killed", "missed", "not_exercised")}
    if not mutants:
        return ""
    sentence = f"{counts['killed']} of {counts['killed'] + counts['missed']} known-bad versions were caught"
    if counts["not_exercised"]:
        sentence += f"; {counts['not_exercised']} cannot show on this workload"
    return sentence + "."


@cache
def asset(name: str) -> tuple[str, str]:
    """A style sheet or script, and its hash as a content security policy names it."""
    text = resources.files(__package__).joinpath(name).read_text("utf-8")
    return text, "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("migrator.harness.report", ""),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: clean(value) if type(value) is str else value,
    )
    environment.filters.update(
        number=number, exact=exact, megabytes=megabytes, seconds=seconds, share=share, short=short
    )
    environment.globals.update(bar=charts.bar, ended=charts.ended, icons=ICONS)
    return environment.get_template("report.html.jinja")


def _for_script(chart: Chart) -> dict[str, Any]:
    """What the script needs to read values off a chart."""
    steps = [step for curve in chart.curves for step, _ in curve.known]
    return {
        "id": chart.id,
        "first": min(steps),
        "last": max(max(steps), min(steps) + 1),
        "curves": [{"label": curve.label, "points": curve.known} for curve in chart.curves],
    }


def render(report: Report) -> str:
    """The whole page as text."""
    document = report.document
    losses, ratios = charts.loss_charts(document), charts.ratio_charts(document)
    (style, style_hash), (script, script_hash) = asset("report.css"), asset("report.js")
    original = [s["steps"] for s in document["series"] if s["role"] == "original"]
    return _template().render(
        r=document,
        sections=sections(document),
        loss_charts=losses,
        ratio_charts=ratios,
        forest=charts.forest(document["asynchronous"]),
        timeline=charts.timeline(document),
        has_bars=any(charts.bar(level["ratio"]) is not None for level in document["levels"]),
        bar_ticks=charts.bar_ticks(),
        mutant_sentence=mutant_sentence(document["mutants"]),
        regressed=regressed(document),
        compared_steps=max((max(steps, default=0) for steps in original), default=0),
        data={"charts": [_for_script(chart) for chart in (*losses, *ratios)]},
        style=style,
        style_hash=style_hash,
        script=script,
        script_hash=script_hash,
    )
