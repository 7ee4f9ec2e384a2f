"""How often Python looks for cycles."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def seldom_collecting() -> Iterator[None]:
    """Lets Python look for cycles seldom: trees have none, and looking through them is a tenth of the work."""
    before = gc.get_threshold()
    gc.set_threshold(1_000_000, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


__all__ = ["seldom_collecting"]
