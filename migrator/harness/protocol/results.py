"""What the levels of the protocol say: statuses, reasons, divergences and results, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from migrator.harness.recording import SourceLine


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
    INSUFFICIENT_SEEDS = "insufficient_seeds"
    NOT_EXERCISED = "not_exercised"
    TIMEOUT = "timeout"
    STOPPED_EARLIER = "stopped_earlier"
    REQUIRED_MISSING = "required_missing"
    NOT_COMPILED = "not_compiled"


def counted(count: int, noun: str) -> str:
    """The count with its noun, in the plural where it is not one: "1 step", "20 steps"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


@dataclass(frozen=True)
class Control:
    """A known-bad version of the same workload, judged by the same level. `ratio` is in noise floors. `mistake` says
    what alone is wrong in it, where that is a thing: "a learning rate 1% higher".
    """

    name: str
    detected: bool
    ratio: float | None = None
    mistake: str = ""

    @classmethod
    def of(cls, mistake: str, detected: bool, ratio: float | None = None) -> Control:
        """The control that is the migrated program with this mistake."""
        return cls(f"the migrated program with {mistake}", detected, ratio, mistake)


@dataclass(frozen=True)
class Divergence:
    """The first place where the two programs part.

    `step` is 1-based. `index` addresses the worst element of `tensor`. `original` and `migrated` are the two
    values there (text for settings and digests). `ulp` counts float32 numbers between the two, `ratio` is the
    absolute difference divided by the noise floor. `causes` are likely ones, most likely first. The sources are
    the lines of the two programs that made the quantity, where they are known.
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
    original_source: SourceLine | None = None
    migrated_source: SourceLine | None = None


@dataclass(frozen=True)
class LevelResult:
    """What one level found.

    `statistic` and `floor` are the absolute difference and the noise floor of the worst quantity, `ratio`
    their quotient, and `tolerance` the greatest ratio that passes (the factor c). `horizon_step` is the last
    step that the level vouches for. `notes` are things this level could not show. `excluded` says, in words, the
    smallest error that the level rules out.
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
    excluded: str | None = None


@dataclass(frozen=True)
class MutantOutcome:
    """What became of one known-bad version of the migrated program.

    `status` is "killed" (some level said DIFFERENT, `killed_at`), "missed" (none did, although the change took
    effect), "not_exercised" (this workload cannot show the change) or "not_applicable" (nothing in the program to
    change). `ratio` is in noise floors, of the level that killed it.
    """

    id: str
    description: str
    expected_level: str
    status: str
    killed_at: str | None = None
    ratio: float | None = None
    detail: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Artefact:
    """One thing that the original leaves behind, and what became of it in the migrated program.

    `status` is "same", "different", "missing" (only the original has it) or "not compared". `ratio` is in noise floors.
    """

    name: str
    status: str
    detail: str = ""
    ratio: float | None = None


@dataclass(frozen=True)
class Randomness:
    """What was done about one source of randomness: "pinned", "replayed", "excluded", "free" or "none"."""

    source: str
    treatment: str
    detail: str


@dataclass(frozen=True)
class Remedy:
    """For an inconclusive or failed verdict: what was found and what to do, what is ruled out all the same, and the
    command that settles it; None where a script or the machine has to be changed first, and the command stays.
    """

    found: str
    ruled_out: str
    command: str | None


@dataclass(frozen=True)
class AsyncWindow:
    """One range of steps of the asynchronous comparison.

    `estimate` and `ci90` are errors in ln(learning rate): 0.05 reads "as if the rate were about 5 % higher".
    `sensitive`: the window could have passed, had there been no difference; only such windows have to.
    """

    first_step: int
    last_step: int
    estimate: float
    ci90: tuple[float, float]
    sensitive: bool
    passed: bool


@dataclass(frozen=True)
class AsyncEvidence:
    """What `k` paired seeds of the free-running cluster showed. Errors are in ln(learning rate).

    `promised` is the relative error of the learning rate that the verdict promises to exclude, `margin` the bound
    on the 90 % confidence interval that follows from it. The null is the original against itself, the control the
    original with a learning rate 20 % higher.
    """

    k: int
    steps: int
    promised: float
    margin: float
    estimate: float
    ci90: tuple[float, float]
    p_equivalent: float
    p_different: float
    windows: tuple[AsyncWindow, ...]
    null_estimate: float
    null_ci90: tuple[float, float]
    control_estimate: float
    seeds_needed: int | None
    per_seed: tuple[float, ...]
