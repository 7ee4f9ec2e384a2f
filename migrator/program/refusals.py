"""What stands in the way of a program, collected while it is read: one run of the tool names all of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import libcst as cst

from migrator.program.parsed import Blocked

_Read = TypeVar("_Read")


class Refusals:
    """The refusals of one program, in the order in which they were found, each once.

    A reader goes on behind a construct that is refused as if the program did without it.
    """

    def __init__(self) -> None:
        self.found: list[Blocked] = []

    def __bool__(self) -> bool:
        return bool(self.found)

    def add(self, refusal: Blocked) -> None:
        """Adds a refusal, unless the same is said of the same node already."""
        if not any(
            r.node is refusal.node and (r.code, r.message) == (refusal.code, refusal.message) for r in self.found
        ):
            self.found.append(refusal)

    def refuse(self, code: str, node: cst.CSTNode | None, message: str) -> None:
        """Adds what is to be said of a node."""
        self.add(Blocked(code, node, message))

    def of(self, step: Callable[[], _Read], instead: _Read) -> _Read:
        """What a step of the reading gives; `instead` where it meets something that cannot be carried over."""
        try:
            return step()
        except Blocked as refusal:
            self.add(refusal)
            return instead
