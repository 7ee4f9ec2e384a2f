"""Numbers as a reader wants them, and back from the text that stands for non-finite ones."""

from __future__ import annotations

import math
from typing import Any


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


def finite(value: Any) -> float | None:
    """The number, or None for anything that is none or not finite."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) else None


def share(value: Any) -> str:
    """An error in ln(learning rate) as the change of the rate that it stands for: "+5.1 %"."""
    known = finite(value)
    return number(value) if known is None else f"{100 * math.expm1(min(known, 50.0)):+.1f} %"


def megabytes(value: float) -> str:
    """Bytes as MB."""
    return f"{value / 1e6:,.0f} MB"


def seconds(value: float) -> str:
    """A duration: "0.4 s", "12 s", "3 min 20 s", "2 h 5 min"."""
    if value < 10:
        return f"{value:.1f} s"
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
