"""What the levels of the protocol say: statuses, reasons, divergences and results, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Status(Enum):
    """The outcome of a level, or of the whole comparison (there only the first four occur)."""

    EQUIVALENT = "EQUIVALENT"
    DIFFERENT = "DIFFERENT"
    INCONCLUSIVE = "INCONCLUSIVE"
    FAILED = "FAILED"
    NOT_EXERCISED = "NOT_EXERCISED"
    NOT_APPLICABLE = "NOT_APPLICABLE"


class Reason(Enum):
    """Why a level is not simply EQUIVALENT. The list is closed: a consumer of the report may switch on it."""

    PROGRAM_FAILED = "program_failed"
    DEGENERATE_PARTICIPATION = "degenerate_participation"
    NON_FINITE = "non_finite"
    SETTING_DIFFERS = "setting_differs"
    UNMAPPED_VARIABLE = "unmapped_variable"
    VARIABLES_DIFFER = "variables_differ"
    ORDER_DIFFERS = "order_differs"
    DATA_DIFFERS = "data_differs"
    DATA_NOT_REPLAYABLE = "data_not_replayable"
    VALUE_DIFFERS = "value_differs"
    MISSING_VALUES = "missing_values"
    CONTROL_NOT_DETECTED = "control_not_detected"
    BEYOND_TRUSTED_HORIZON = "beyond_trusted_horizon"
    NONDETERMINISTIC_ORIGINAL = "nondeterministic_original"
    ENVIRONMENT_UNSTABLE = "environment_unstable"
    STOPPED_EARLIER = "stopped_earlier"
    NOT_BUILT = "not_built"


@dataclass(frozen=True)
class Control:
    """A known-bad version of the same workload, judged by the same level. `ratio` is in noise floors."""

    name: str
    detected: bool
    ratio: float | None = None


@dataclass(frozen=True)
class Divergence:
    """The first place where the two programs part.

    `step` is 1-based. `index` addresses the worst element of `tensor`. `original` and `migrated` are the two
    values there (text for settings and digests). `ulp` counts float32 numbers between the two, `ratio` is the
    absolute difference divided by the noise floor. `causes` are likely ones, most likely first.
    """

    tensor: str
    original: float | str | None
    migrated: float | str | None
    step: int | None = None
    task: str | None = None
    index: tuple[int, ...] | None = None
    absolute: float | None = None
    relative: float | None = None
    ulp: int | None = None
    ratio: float | None = None
    causes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LevelResult:
    """What one level found.

    `statistic` and `floor` are the absolute difference and the noise floor of the worst quantity, `ratio`
    their quotient, and `tolerance` the greatest ratio that passes (the factor c). `horizon_step` is the last
    step that the level vouches for. `notes` are things this level could not show.
    """

    id: str
    title: str
    status: Status
    summary: str
    reason: Reason | None = None
    statistic: float | None = None
    floor: float | None = None
    tolerance: float | None = None
    ratio: float | None = None
    control: Control | None = None
    horizon_step: int | None = None
    differences: tuple[Divergence, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
