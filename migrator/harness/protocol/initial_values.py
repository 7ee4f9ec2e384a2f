"""Whether two programs draw their initial weights from the same distributions, from one draw of each or from several.

Constants must be equal. Random values are compared variable by variable with the two-sample Kolmogorov-Smirnov
test and with that of Brown and Forsythe for their spreads, corrected over both and over the variables (Holm's method),
so that the chance to call any variable of a correct migration different is at most ALPHA (measured with a larger
one: see tests/harness/test_protocol_initial.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from migrator.harness.protocol.compare import Array

ALPHA = 1e-6  # of a hundred thousand right migrations, hardly one may be told to be wrong
# With fewer elements the test cannot reject anything worth rejecting.
FEWEST = 20
# So many elements show a scale 3 % off; more would only take longer.
MOST = 200_000
CONTROL_SCALE = math.sqrt(2.0)

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Initial:
    """What became of one variable: "constant", "random", or "few" (too few elements to judge).

    `rejected`: shown to be initialised in another way, and then `original` and `migrated` describe the two. `ratio`
    is the standard deviation of the migrated program's values divided by the original's (None for constants), `p`
    the test's uncorrected probability.
    """

    name: str
    kind: str
    rejected: bool
    ratio: float | None = None
    p: float | None = None
    original: str = ""
    migrated: str = ""

    @property
    def cause(self) -> str:
        """Both in one sentence."""
        told = f"the original's values look like {self.original}, the migrated program's like {self.migrated}"
        return told if self.ratio is None else f"{told}; they spread {self.ratio:.3g} times as far"


@dataclass(frozen=True)
class Outcome:
    """All variables, and whether the original's values scaled by sqrt(2) would have been rejected somewhere."""

    variables: tuple[Initial, ...]
    control_detected: bool

    @property
    def rejected(self) -> tuple[Initial, ...]:
        """The variables that are initialised in another way."""
        return tuple(v for v in self.variables if v.rejected)


def _sample(values: Array) -> Values:
    """At most MOST different values. Shards drawn with the same seed repeat theirs, and a repeated draw says nothing
    new.
    """
    flat = values.reshape(-1)
    if flat.size > 10 * MOST:  # sorting more would take longer and tell no more
        flat = flat[np.random.default_rng(0).integers(0, flat.size, 10 * MOST)]
    flat = flat.astype(np.float64)
    different = np.unique(flat)
    if len(different) >= FEWEST:
        flat = different
    if len(flat) > MOST:
        flat = np.random.default_rng(0).choice(flat, MOST, replace=False)
    return flat


def _p(a: Values, b: Values) -> float:
    """The probability of the two draws if both are of one distribution: of their forms or of their spreads, whichever
    says more. Of a scale alone the Kolmogorov-Smirnov test sees little: half as many numbers show it in the spreads.
    """
    from scipy import stats  # it takes long to import: `session.verify` does so while interpreters start

    form = float(stats.ks_2samp(a, b, method="auto").pvalue)
    spread = float(stats.levene(a, b, center="median").pvalue)
    return min(1.0, 2.0 * min(form, 1.0 if math.isnan(spread) else spread))


def holm(ps: Sequence[float], alpha: float = ALPHA) -> tuple[bool, ...]:
    """Which of several hypotheses are rejected so that the chance of any false rejection is at most alpha."""
    rejected = [False] * len(ps)
    for rank, place in enumerate(sorted(range(len(ps)), key=lambda i: ps[i])):
        if ps[place] > alpha / (len(ps) - rank):
            break
        rejected[place] = True
    return tuple(rejected)


def _constant(values: Array) -> bool:
    """Whether all elements are the same; one element alone may as well be random."""
    return values.size > 1 and bool(np.all(values == values.reshape(-1)[0]))


def _finite(values: Array) -> bool:
    return bool(np.issubdtype(values.dtype, np.floating)) and bool(np.all(np.isfinite(values)))


def _all(name: str, values: Array, more: Mapping[str, Array]) -> Array:
    """All draws of a variable along a first axis, each once; `more` are those beside `values`."""
    others = more.get(name)
    if others is None or others.shape[1:] != values.shape:
        return values[None]
    draws = np.concatenate([values[None], others])
    # One that is read again and again is one draw: its few numbers would count as hundreds.
    kept = np.unique(draws.reshape(len(draws), -1), axis=0, return_index=True)[1]
    different: Array = draws[np.sort(kept)]
    return different


def compare(
    original: Mapping[str, Array],
    migrated: Mapping[str, Array],
    drawn: tuple[Mapping[str, Array], Mapping[str, Array]] = ({}, {}),
) -> Outcome:
    """Compares the initial values that each program drew by itself, under the original's names. `drawn` are further
    draws of both, along a first axis.

    Variables that one side lacks are left out: the name map has spoken about them.
    """
    found: dict[str, Initial] = {}
    random: list[str] = []
    every: dict[str, tuple[Array, Array]] = {}
    for name, ours in original.items():
        theirs = migrated.get(name)
        if theirs is None or ours.shape != theirs.shape or ours.size == 0:
            continue
        every[name] = _all(name, ours, drawn[0]), _all(name, theirs, drawn[1])
        if not (_finite(ours) and _finite(theirs)) or any(map(_constant, every[name])):
            found[name] = _exact(name, ours, theirs)
        elif np.array_equal(ours, theirs):
            found[name] = Initial(name, "constant" if ours.size == 1 else "random", False, 1.0, 1.0)
        elif min(len(_sample(one)) for one in every[name]) < FEWEST:
            found[name] = Initial(name, "few", False)
        else:
            random.append(name)
    samples = {name: (_sample(every[name][0]), _sample(every[name][1])) for name in random}
    ps = [_p(*samples[name]) for name in random]
    for name, p, rejected in zip(random, ps, holm(ps), strict=True):
        ours, theirs = every[name]
        ratio = _spread(theirs) / _spread(ours)
        shape = original[name].shape
        looks = (family(ours, shape), family(theirs, shape)) if rejected else ("", "")
        found[name] = Initial(name, "random", rejected, ratio, p, *looks)
    control = [_p(CONTROL_SCALE * ours, theirs) for ours, theirs in samples.values()]
    return Outcome(tuple(found[name] for name in original if name in found), any(holm(control)))


def _exact(name: str, ours: Array, theirs: Array) -> Initial:
    """A constant against anything: equal within one unit in the last place, or rejected."""
    if _finite(ours) and _finite(theirs):
        gap = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
        if np.all(gap <= np.spacing(np.abs(ours)).astype(np.float64)):
            return Initial(name, "constant", False)
    elif not np.issubdtype(ours.dtype, np.floating) and np.array_equal(ours, theirs):
        return Initial(name, "constant", False)
    return Initial(name, "constant", True, None, None, family(ours), family(theirs))


def _spread(values: Array) -> float:
    return float(np.std(values.astype(np.float64)))


def _fans(shape: tuple[int, ...]) -> tuple[float, float]:
    if len(shape) < 2:
        return (float(shape[0]), float(shape[0])) if shape else (1.0, 1.0)
    field = math.prod(shape[:-2])
    return float(shape[-2] * field), float(shape[-1] * field)


def family(values: Array, shape: tuple[int, ...] | None = None) -> str:
    """What a draw looks like: the form (by its fourth moment) and the rule that gives its standard deviation. `shape`
    is that of the variable, where there are several draws.
    """
    if not _finite(values):
        return "values that are not all finite numbers"
    centred = values.astype(np.float64).reshape(-1)
    centred = centred - np.mean(centred)
    spread = float(np.std(centred))
    if spread == 0.0:
        return f"the constant {float(values.reshape(-1)[0]):.6g}"
    flatness = float(np.mean(centred**4)) / spread**4
    # 1.8 for a uniform, 2.37 for a normal distribution cut at two standard deviations, 3 for a normal one.
    form = min(
        ((1.8, "uniform"), (2.37, "truncated normal"), (3.0, "normal")), key=lambda known: abs(known[0] - flatness)
    )[1]
    ins, outs = _fans(values.shape if shape is None else shape)
    rules = {
        "glorot": math.sqrt(2.0 / (ins + outs)),
        "he": math.sqrt(2.0 / ins),
        "lecun": math.sqrt(1.0 / ins),
    }
    if form == "uniform":
        rules["Keras' embedding default of +-0.05"] = 0.05 / math.sqrt(3.0)
    rule = min(rules, key=lambda key: abs(math.log(rules[key] / spread)))
    if abs(math.log(rules[rule] / spread)) > 4.0 / math.sqrt(centred.size) + 0.02:
        return f"{form} of standard deviation {spread:.3g}"
    return f"{rule} {form} (standard deviation {spread:.3g}, by the rule {rules[rule]:.3g})"
