"""Choosing names that are not used yet."""

from __future__ import annotations

from collections.abc import Iterable


def free(wanted: str, taken: Iterable[str]) -> str:
    """`wanted`, or `wanted_2`, `wanted_3` ... when it is taken."""
    taken = set(taken)
    if wanted not in taken:
        return wanted
    number = 2
    while f"{wanted}_{number}" in taken:
        number += 1
    return f"{wanted}_{number}"
