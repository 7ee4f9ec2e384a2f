"""report.html: one file for a person, without network and without script needed to read it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jinja2

from migrator.harness.report.document import Document, Report

POINTS = 600
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 300, 64, 12, 12, 34
ICONS = {
    "EQUIVALENT": "✓",
    "DIFFERENT": "✗",
    "INCONCLUSIVE": "?",
    "FAILED": "!",
    "NOT_EXERCISED": "–",
    "NOT_APPLICABLE": "–",
}


@dataclass(frozen=True)
class Curve:
    """One line of the chart, in pixels: `points` for an SVG polyline, `role` for its style."""

    role: str
    label: str
    points: str


@dataclass(frozen=True)
class Tick:
    """A labelled place on an axis, in pixels."""

    at: float
    label: str


@dataclass(frozen=True)
class Chart:
    """The loss curves of one trainer."""

    title: str
    band: str
    curves: tuple[Curve, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    logarithmic: bool
    horizon: float | None
    horizon_step: int | None


def number(value: Any, digits: int = 3) -> str:
    """A number for reading: at most `digits` significant digits; text and None as they are."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int) and abs(value) < 10**6:
        return str(value)
    if value != 0 and not 1e-3 <= abs(value) < 1e5:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        if "." in mantissa:
            mantissa = mantissa.rstrip("0").rstrip(".")
        return f"{mantissa}e{int(exponent)}"
    return f"{value:.{digits}g}" if abs(value) < 1000 else f"{value:,.0f}"


def exact(value: Any) -> str:
    """A float32 in enough digits to tell it from its neighbours."""
    return f"{value:.9g}" if isinstance(value, float) else number(value)


def _finite(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def bar(ratio: Any) -> float | None:
    """Where a ratio lies on the bar of a level, in per cent of its width: logarithmic from 0.01 to 1e6
    floors.
    """
    if ratio == "Infinity":
        return 100.0
    value = _finite(ratio)
    if value is None:
        return None
    return min(100.0, max(0.0, (math.log10(max(value, 1e-2)) + 2) / 8 * 100))


def decimate(steps: Sequence[int], values: Sequence[float | None], points: int = POINTS) -> list[tuple[int, float]]:
    """At most about `points` of the finite points; of each bucket the least and the greatest, so that spikes
    stay.
    """
    known = [(step, value) for step, value in zip(steps, values, strict=True) if value is not None]
    if len(known) <= points:
        return known
    size = math.ceil(len(known) / (points / 2))
    kept: list[tuple[int, float]] = []
    for start in range(0, len(known), size):
        bucket = known[start : start + size]
        ends = {bucket.index(min(bucket, key=lambda p: p[1])), bucket.index(max(bucket, key=lambda p: p[1]))}
        kept += [bucket[i] for i in sorted(ends)]
    return kept


def _nice_ticks(low: float, high: float) -> list[float]:
    span = high - low or abs(high) or 1.0
    step = 10 ** math.floor(math.log10(span / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if span / (step * factor) <= 5)
    first = math.ceil(low / step - 1e-9)
    return [step * i for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    every = max(1, math.ceil(len(decades) / 6))
    return [10.0**d for d in decades if d % every == 0 and low <= 10.0**d <= high]


def charts(document: Document) -> tuple[Chart, ...]:
    """One chart for each trainer that has a loss curve."""
    trainers = sorted({series["trainer"] for series in document["series"]})
    l5 = next((level for level in document["levels"] if level["id"] == "L5"), None)
    horizon = None if l5 is None else l5["horizon_step"]
    c = next(
        (part["c"] for part in (document["tolerance"] or {"parts": []})["parts"] if part["part"] == "trajectory"),
        None,
    )
    made = (_chart([s for s in document["series"] if s["trainer"] == t], t, horizon, c) for t in trainers)
    return tuple(chart for chart in made if chart is not None)


def _chart(series: list[Document], trainer: int, horizon: int | None, c: float | None) -> Chart | None:
    lines = {s["role"]: decimate(s["steps"], [_finite(v) for v in s["values"]]) for s in series if s["role"] != "floor"}
    values = [value for line in lines.values() for _, value in line]
    steps = [step for line in lines.values() for step, _ in line]
    if not values:
        return None
    low, high = min(values), max(values)
    logarithmic = low > 0 and high / low > 50
    if not logarithmic:
        margin = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
        low, high = low - margin, high + margin
    elif high / low < 1e3:
        low, high = low / 1.5, high * 1.5
    first, last = min(steps), max(max(steps), min(steps) + 1)

    def x(step: float) -> float:
        return round(LEFT + (step - first) / (last - first) * (WIDTH - LEFT - RIGHT), 1)

    def y(value: float) -> float:
        value = min(max(value, low), high)
        share = math.log(value / low) / math.log(high / low) if logarithmic else (value - low) / (high - low)
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)

    tasks = {s["role"]: s["task"] for s in series}
    labels = {"original": "original", "migrated": "migrated", "control": "control: learning rate 1% higher"}
    curves = tuple(
        Curve(role, labels[role], " ".join(f"{x(s)},{y(v)}" for s, v in lines[role]))
        for role in ("control", "original", "migrated")
        if lines.get(role)
    )
    names = [tasks[role] for role in ("original", "migrated") if role in tasks]
    step_ticks = [s for s in _nice_ticks(first, last) if s == int(s)]
    return Chart(
        title=" and ".join(dict.fromkeys(names)),
        band=_band(series, c, x, y),
        curves=curves,
        x_ticks=tuple(Tick(x(s), str(int(s))) for s in step_ticks),
        y_ticks=tuple(
            Tick(y(v), number(v)) for v in (_log_ticks(low, high) if logarithmic else _nice_ticks(low, high))
        ),
        logarithmic=logarithmic,
        horizon=None if horizon is None or horizon >= last or horizon < first else x(horizon),
        horizon_step=horizon,
    )


def _band(series: list[Document], c: float | None, x: Any, y: Any) -> str:
    """The polygon of what would still pass around the original: its loss plus and minus c floors."""
    original = next((s for s in series if s["role"] == "original"), None)
    floor = next((s for s in series if s["role"] == "floor"), None)
    if original is None or floor is None or c is None:
        return ""
    points = [
        (step, value, noise)
        for step, value, noise in zip(
            original["steps"], map(_finite, original["values"]), map(_finite, floor["values"]), strict=True
        )
        if value is not None and noise is not None
    ]
    every = max(1, len(points) // (POINTS // 2))
    points = points[::every]
    upper = [f"{x(step)},{y(value + c * noise)}" for step, value, noise in points]
    lower = [f"{x(step)},{y(value - c * noise)}" for step, value, noise in reversed(points)]
    return " ".join(upper + lower)


def _trimmed(value: Any) -> str:
    """Bytes as MB, for a reader."""
    return f"{value / 1e6:,.0f} MB"


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("migrator.harness.report", ""),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(number=number, exact=exact, megabytes=_trimmed)
    environment.globals.update(bar=bar, icons=ICONS)
    return environment.get_template("report.html.jinja")


def render(report: Report) -> str:
    """The whole page as text."""
    document = report.document
    return _template().render(
        r=document,
        charts=charts(document),
        width=WIDTH,
        height=HEIGHT,
        left=LEFT,
        right=RIGHT,
        top=TOP,
        bottom=BOTTOM,
    )
