"""Loops that `--loop custom` wrote, as input of `--strategy dtensor`: their class of steps is made one of a mesh."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product

from migrator.pairing import equal_zip
from migrator.targets import custom
from migrator.targets.plan import LoopShape
from migrator.targets.setup import RATE, RATES_OF_PARTS

#: What the class is asked for by its program, and the class of a mesh has as well.
METHODS = frozenset(("batches", "checkpoints", "evaluate", "model", "train"))
_MADE = (
    "of_class",
    "saves",
    "measures",
    "evaluates",
    "divides",
    "draws",
    "sized",
    "averages",
    "counts",
    "measures_itself",
)
_NAME = "TrainingLoop"


def shape_of(text: str, name: str, indent: str) -> LoopShape | None:
    """What a class of this text does for its program; None where the codemod did not write it, or not as it is now."""
    return _shapes().get(text.strip().replace(indent, "    ").replace(f"class {name}:", f"class {_NAME}:", 1))


@lru_cache(maxsize=1)
def _shapes() -> dict[str, LoopShape]:
    return {custom.training_loop(_NAME, "    ", shape).strip(): shape for shape in _replicated()}


def _replicated() -> Iterator[LoopShape]:
    """All shapes of loops on the replicas of one process."""
    for values in product((False, True), repeat=len(_MADE)):
        given = dict(equal_zip(_MADE, values))
        for rates in ("", RATE, RATES_OF_PARTS) if given["saves"] else ("",):
            shape = LoopShape(**given, rates=rates)
            if shape.divides != shape.draws and (shape.draws or not shape.sized):
                yield shape
