"""The syntax and the names of Python 2, by fissix: the fork of lib2to3 that is kept after Python 3.12 dropped that.

Its fixers rewrite what only Python 2 understands and wrap what became an iterator in `list(...)`. Left out are those
that guess wrongly here: `import` looks at folders and not at how a program is started, `sorted` takes `np.sort(x, 0)`
for a list's, `types` makes StringType bytes, `future` takes out the imports that say how a file divides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_LEFT_OUT = frozenset(("import", "sorted", "types", "future", "buffer", "idioms", "set_literal", "ws_comma"))
#: What makes no difference where it is done again: for files that may be Python 3 already.
_HARMLESS = frozenset(("dict", "filter", "map", "zip"))
_WARNING = re.compile(r"Line (\d+): (?:could not convert: )?(.*)", re.DOTALL)


class NoFixer(Exception):
    """The package is not installed, or cannot be used; the message says which."""


class NotPython2(Exception):
    """A text that is not Python 2; the message says why."""

    def __init__(self, reason: str, line: int, column: int) -> None:
        super().__init__(reason)
        self.line, self.column = line, column


@dataclass(frozen=True)
class Fixed:
    """A text after the fixers, and what they could not convert: lines, from 1, and why."""

    text: str
    warnings: tuple[tuple[int, str], ...] = ()


def check() -> None:
    """Raises NoFixer where fissix is not there."""
    _tool(False, False)


def fixed(text: str, *, harmless: bool = False) -> Fixed:
    """The text in Python 3, where its newlines are LF; see `_HARMLESS`. Raises NotPython2 and NoFixer."""
    if not text.strip():
        return Fixed(text)
    try:
        return _fixed(text, harmless, False)
    except NotPython2:
        try:  # `print` as a function, without saying so
            return _fixed(text, harmless, True)
        except NotPython2:
            pass
        raise


def _fixed(text: str, harmless: bool, functions: bool) -> Fixed:
    from fissix.pgen2.parse import ParseError
    from fissix.pgen2.tokenize import TokenError

    tool = _tool(harmless, functions)
    tool.fixer_log.clear()
    ends = text.endswith("\n")
    try:
        tree = tool.refactor_string(text if ends else f"{text}\n", "<text>")
    except ParseError as error:
        line, column = error.context[1] if error.context else (1, 0)
        raise NotPython2(str(error.msg), line, column + 1) from None
    except TokenError as error:
        line, column = error.args[1] if len(error.args) > 1 else (1, 0)
        raise NotPython2(str(error.args[0]), line, column + 1) from None
    except IndentationError as error:
        raise NotPython2(error.msg, error.lineno or 1, error.offset or 1) from None
    new = text if tree is None or not tree.was_changed else str(tree)
    if not ends and new.endswith("\n") and new != text:
        new = new[:-1]
    found = [_WARNING.match(one) for one in tool.fixer_log if isinstance(one, str)]
    return Fixed(new, tuple((int(one[1]), " ".join(one[2].split())) for one in found if one is not None))


@lru_cache(maxsize=4)
def _tool(harmless: bool, functions: bool) -> Any:
    try:
        from fissix import refactor

        names = [
            name
            for name in refactor.get_fixers_from_package("fissix.fixes")
            if (short := name.rpartition(".fix_")[2]) not in _LEFT_OUT and (not harmless or short in _HARMLESS)
        ]
        return refactor.RefactoringTool(names, {"print_function": functions})
    except ModuleNotFoundError as error:
        raise NoFixer(f"needs {error.name}, which is not installed: pip install 'tf-migrate[python2]'") from None
    except OSError as error:
        raise NoFixer(f"cannot start fissix, which keeps its grammar in the user's cache: {error}") from None
