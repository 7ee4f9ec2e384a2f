"""The names that a pattern of `match` binds. Python 3.9 knows no patterns, and reads no file that has one."""

from __future__ import annotations

import ast
import sys

if sys.version_info >= (3, 10):
    _NAMED = (ast.MatchAs, ast.MatchStar)
    _MAPPINGS = (ast.MatchMapping,)
else:
    _NAMED = _MAPPINGS = ()


def captured(node: ast.AST) -> str | None:
    """The name that this part of a pattern binds, if it binds one."""
    if isinstance(node, _NAMED):
        return node.name
    if isinstance(node, _MAPPINGS):
        return node.rest
    return None
