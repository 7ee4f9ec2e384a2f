"""Python's own tree of a text: made once for all that look at the same text one after the other, who only read it."""

from __future__ import annotations

import ast
import warnings
from functools import lru_cache

#: What is raised for a text that is not Python, or that Python gives up on.
NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)


@lru_cache(maxsize=8)
def tree_of(text: str) -> ast.Module:
    """The tree of a text, which nobody may change. Raises one of NOT_PYTHON."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an invalid escape is the user's, and not ours to print
        return ast.parse(text)


__all__ = ["NOT_PYTHON", "tree_of"]
