"""The drawings of the page as numbers: places in per cent of a plot's width or height, curves in a 1000 x 1000 box.

Nothing is in pixels, so that a plot can have any width; the template puts the numbers into SVG.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from migrator.harness.report.evidence import Document
from migrator.harness.report.numbers import finite, number, seconds

#: About as many points as a curve keeps.
POINTS = 600
#: Processes that the timeline shows at once, but for those that ended badly.
SPANS = 16
BOX = 1000.0
#: The bars of the ladder and the plot of ratios start at a hundredth of the noise floor.
LEAST_RATIO, GREATEST_RATIO = 1e-2, 1e6
LABELS = {
    "original": "original",
    "migrated": "migrated",
    "control": "control: a higher learning rate",
}
Points = list[tuple[int, float]]


@dataclass(frozen=True)
class Tick:
    """A labelled place on an axis, in per cent from the left or from the top."""

    at: float
    label: str


@dataclass(frozen=True)
class Curve:
    """One line: `points` for an SVG polyline, `known` the same as steps and values, `role` for its style."""

    role: str
    label: str
    points: str
    known: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Chart:
    """Curves over the steps of one trainer. `lines` are labelled levels, `horizon` where the judged steps end."""

    id: str
    title: str
    description: str
    band: str
    curves: tuple[Curve, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    lines: tuple[Tick, ...]
    logarithmic: bool
    horizon: float | None
    horizon_step: int | None


@dataclass(frozen=True)
class Scale:
    """From values to shares of an axis, 0 at `low` and 1 at `high`; what lies outside is put on the edge."""

    low: float
    high: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """The share, between 0 and 1."""
        inside = min(max(value, self.low), self.high)
        if self.logarithmic:
            return math.log(inside / self.low) / math.log(self.high / self.low)
        return (inside - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Round values along the axis, at most six."""
        return _log_ticks(self.low, self.high) if self.logarithmic else _nice_ticks(self.low, self.high)


def bar(ratio: object) -> float | None:
    """Where a ratio lies on the bar of a level, in per cent: logarithmic from 0.01 to a million floors."""
    if ratio == "Infinity":
        return 100.0
    value = finite(ratio)
    return None if value is None else round(100 * Scale(LEAST_RATIO, GREATEST_RATIO, True)(value), 1)


def bar_ticks() -> list[Tick]:
    """The axis under the bars."""
    labels = {1e-2: "0.01", 1.0: "1", 1e2: "100", 1e4: "10⁴", 1e6: "10⁶"}
    return [Tick(bar(value) or 0.0, label) for value, label in labels.items()]


def decimate(steps: Sequence[int], values: Sequence[float | None], points: int = POINTS) -> Points:
    """At most about `points` of the finite points; of each bucket the least and the greatest, so that spikes
    stay.
    """
    known = [(step, value) for step, value in zip(steps, values, strict=True) if value is not None]
    if len(known) <= points:
        return known
    size = math.ceil(len(known) / (points / 2))
    kept: Points = []
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


# -- curves over the steps ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Trainer:
    """The series of one trainer: values by step for each role, the name of its task on both sides."""

    number: int
    title: str
    roles: Mapping[str, Mapping[int, float]]
    horizon: int | None
    tolerance: float | None

    def values(self, role: str) -> Mapping[int, float]:
        return self.roles.get(role, {})


def _trainers(document: Document) -> list[_Trainer]:
    l5 = next((level for level in document["levels"] if level["id"] == "L5"), None)
    parts = document["tolerance"]["parts"] if document["tolerance"] else []
    made = []
    for trainer in sorted({series["trainer"] for series in document["series"]}):
        series = [s for s in document["series"] if s["trainer"] == trainer]
        tasks = {s["role"]: s["task"] for s in series}
        names = [tasks[role] for role in ("original", "migrated") if role in tasks]
        known = {
            s["role"]: {
                step: value
                for step, value in zip(s["steps"], map(finite, s["values"]), strict=True)
                if value is not None
            }
            for s in series
        }
        made.append(
            _Trainer(
                trainer,
                " and ".join(dict.fromkeys(names)),
                known,
                None if l5 is None else l5["horizon_step"],
                next((part["c"] for part in parts if part["part"] == "trajectory"), None),
            )
        )
    return made


def loss_charts(document: Document) -> tuple[Chart, ...]:
    """One chart for each trainer that has a loss."""
    return tuple(chart for trainer in _trainers(document) if (chart := _loss_chart(trainer)) is not None)


def ratio_charts(document: Document) -> tuple[Chart, ...]:
    """One chart for each trainer whose losses have noise floors: how many floors the losses are apart."""
    return tuple(chart for trainer in _trainers(document) if (chart := _ratio_chart(trainer)) is not None)


def _curve(role: str, values: Mapping[int, float], x: Scale, y: Scale) -> Curve:
    kept = decimate(list(values), list(values.values()))
    points = " ".join(f"{x(step) * BOX:.1f},{(1 - y(value)) * BOX:.1f}" for step, value in kept)
    return Curve(role, LABELS[role], points, tuple(kept))


def _steps(trainer: _Trainer) -> Scale:
    steps = [step for role, values in trainer.roles.items() if role != "floor" for step in values]
    return Scale(min(steps), max(max(steps), min(steps) + 1))


def _step_ticks(x: Scale) -> tuple[Tick, ...]:
    return tuple(Tick(round(100 * x(step), 2), str(int(step))) for step in x.ticks() if step == int(step))


def _horizon(trainer: _Trainer, x: Scale) -> float | None:
    horizon = trainer.horizon
    if horizon is None or not x.low <= horizon < x.high:
        return None
    return round(100 * x(horizon), 2)


def _loss_scale(values: Sequence[float]) -> Scale:
    low, high = min(values), max(values)
    if low > 0 and high / low > 50:
        return Scale(low / 1.5, high * 1.5, True)
    margin = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    return Scale(low - margin, high + margin)


def _loss_chart(trainer: _Trainer) -> Chart | None:
    shown = [role for role in ("control", "original", "migrated") if trainer.values(role)]
    values = [value for role in shown for value in trainer.values(role).values()]
    if not values:
        return None
    x, y = _steps(trainer), _loss_scale(values)
    return Chart(
        id=f"loss-{trainer.number}",
        title=f"Loss at each step, {trainer.title}",
        description=_said_of_losses(trainer, shown),
        band=_band(trainer, x, y),
        curves=tuple(_curve(role, trainer.values(role), x, y) for role in shown),
        x_ticks=_step_ticks(x),
        y_ticks=tuple(Tick(round(100 * (1 - y(v)), 2), number(v)) for v in y.ticks()),
        lines=(),
        logarithmic=y.logarithmic,
        horizon=_horizon(trainer, x),
        horizon_step=trainer.horizon,
    )


def _said_of_losses(trainer: _Trainer, shown: Sequence[str]) -> str:
    sentences = []
    for role in sorted(shown, key=list(LABELS).index):
        values = trainer.values(role)
        first, last = min(values), max(values)
        sentences.append(
            f"{LABELS[role]}: {number(values[first], 5)} at step {first}, {number(values[last], 5)} at step {last}"
        )
    return "; ".join(sentences) + "."


def _band(trainer: _Trainer, x: Scale, y: Scale) -> str:
    """The polygon of what would still pass around the original: its loss plus and minus c floors."""
    original, floor, c = trainer.values("original"), trainer.values("floor"), trainer.tolerance
    if c is None:
        return ""
    kept = decimate(list(original), [value if step in floor else None for step, value in original.items()])
    upper = [(step, value + c * floor[step]) for step, value in kept]
    lower = [(step, value - c * floor[step]) for step, value in reversed(kept)]
    return " ".join(f"{x(step) * BOX:.1f},{(1 - y(value)) * BOX:.1f}" for step, value in upper + lower)


def _ratios(trainer: _Trainer, role: str) -> dict[int, float]:
    original, floor = trainer.values("original"), trainer.values("floor")
    return {
        step: abs(value - original[step]) / floor[step]
        for step, value in trainer.values(role).items()
        if step in original and floor.get(step, 0.0) > 0.0
    }


def _ratio_chart(trainer: _Trainer) -> Chart | None:
    curves = {role: ratios for role in ("control", "migrated") if (ratios := _ratios(trainer, role))}
    c = trainer.tolerance
    if "migrated" not in curves or c is None:
        return None
    x = _steps(trainer)
    greatest = max(c * 10, *(max(ratios.values()) for ratios in curves.values()))
    y = Scale(LEAST_RATIO, 10.0 ** math.ceil(math.log10(greatest)), True)
    worst = max(curves["migrated"], key=lambda step: curves["migrated"][step])
    said = f"The migrated program is furthest at step {worst}, by {number(curves['migrated'][worst])} noise floors"
    if "control" in curves:
        said += f"; the control reaches {number(max(curves['control'].values()))}"
    return Chart(
        id=f"ratio-{trainer.number}",
        title=f"Distance in noise floors, {trainer.title}",
        description=f"{said}; up to {number(c)} is accepted.",
        band="",
        curves=tuple(_curve(role, curves[role], x, y) for role in curves),
        x_ticks=_step_ticks(x),
        y_ticks=tuple(Tick(round(100 * (1 - y(v)), 2), number(v)) for v in y.ticks()),
        lines=(Tick(round(100 * (1 - y(1.0)), 2), "floor"), Tick(round(100 * (1 - y(c)), 2), "accepted")),
        logarithmic=True,
        horizon=_horizon(trainer, x),
        horizon_step=trainer.horizon,
    )


# -- windows of L6 -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Interval:
    """An estimate with its interval: places in per cent, the numbers themselves, and what became of it."""

    label: str
    at: float
    low: float
    high: float
    estimate: float
    ci90: tuple[float, float]
    state: str


@dataclass(frozen=True)
class Forest:
    """The estimates of L6 one above the other. `margin` are the two ends of what passes, `zero` no difference."""

    rows: tuple[Interval, ...]
    margin: tuple[float, float]
    zero: float
    control: float
    ticks: tuple[Tick, ...]


def forest(evidence: Document | None) -> Forest | None:
    """The plot of the whole comparison, its windows and the null, all on the scale of ln(learning rate)."""
    if evidence is None:
        return None
    margin, control = evidence["margin"], finite(evidence["control_estimate"]) or 0.0
    rows = [("all steps", evidence["estimate"], evidence["ci90"], "")]
    rows += [
        (
            f"steps {window['first_step']} to {window['last_step']}",
            window["estimate"],
            window["ci90"],
            _window_state(window),
        )
        for window in evidence["windows"]
    ]
    rows.append(("original against itself", evidence["null"]["estimate"], evidence["null"]["ci90"], ""))
    reach = 1.15 * max(3 * margin, abs(control))
    scale = Scale(-reach, reach)
    end = max(_nice_ticks(-reach, reach))

    def at(value: object) -> float:
        known = finite(value)
        return round(100 * scale(0.0 if known is None else known), 2)

    return Forest(
        rows=tuple(
            Interval(label, at(estimate), at(ci[0]), at(ci[1]), estimate, (ci[0], ci[1]), state)
            for label, estimate, ci, state in rows
        ),
        margin=(at(-margin), at(margin)),
        zero=at(0.0),
        control=at(control),
        ticks=tuple(Tick(at(value), f"{100 * value:+.0f} %" if value else "0") for value in (-end, 0.0, end)),
    )


def _window_state(window: Document) -> str:
    if finite(window["estimate"]) is None:
        return "no effect of the rate" if window["passed"] else "outside"
    if not window["sensitive"]:
        return "too noisy"
    return "inside" if window["passed"] else "outside"


# -- processes in time ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Span:
    """One process: its place on the time axis in per cent, and how it ended."""

    task: str
    start: float
    width: float
    duration: float
    ended: str
    well: bool


@dataclass(frozen=True)
class RunSpans:
    """The processes of one run."""

    run: str
    program: str
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class Timeline:
    """All processes of all runs from the first start to the last end; `folded` are runs that may be hidden."""

    runs: tuple[RunSpans, ...]
    folded: tuple[RunSpans, ...]
    ticks: tuple[Tick, ...]


def ended(process: Document) -> str:
    """How a process ended, in words."""
    if process["by_launcher"]:
        return "ended by the tool"
    return f"exit {process['exit']}" if process["exit"].isdigit() else str(process["exit"])


def timeline(document: Document) -> Timeline | None:
    """The processes by run, in the order in which the runs are given."""
    processes = document["processes"]
    if not processes:
        return None
    first, last = min(p["start"] for p in processes), max(p["end"] for p in processes)
    scale = Scale(0.0, max(last - first, 1e-3))

    def span(process: Document) -> Span:
        start = 100 * scale(process["start"] - first)
        width = max(100 * scale(process["end"] - first) - start, 0.4)
        well = process["by_launcher"] or process["exit"] == "0"
        duration = process["end"] - process["start"]
        return Span(process["task"], round(start, 2), round(width, 2), duration, ended(process), well)

    shown: list[RunSpans] = []
    folded: list[RunSpans] = []
    rows = 0
    for (run, program), group in groupby(processes, key=lambda p: (p["run"], p["program"])):
        spans = tuple(map(span, group))
        rows += len(spans)
        hidden = rows > SPANS and all(s.well for s in spans)
        (folded if hidden else shown).append(RunSpans(run, program, spans))
    return Timeline(
        tuple(shown),
        tuple(folded),
        tuple(Tick(round(100 * scale(value), 2), seconds(value) if value else "0") for value in scale.ticks()),
    )
