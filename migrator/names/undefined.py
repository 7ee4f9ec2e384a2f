"""Names that a text reads and nothing gives a value: a program that comes to one fails with NameError."""

from __future__ import annotations

import builtins
import symtable
from collections.abc import Iterator

_ALWAYS = {*dir(builtins), "__file__", "__name__", "__doc__", "__spec__", "__path__", "__package__", "__builtins__"}
_ALWAYS |= {"__class__", "__annotations__", "__loader__", "__cached__", "get_ipython"}


def undefined(text: str) -> frozenset[str]:
    """The names of a module that some code of it reads from around, where nothing of the module binds them.

    None are told of a module with `import *`, which may bind any, and of one that this Python cannot compile.
    """
    if "import *" in text:
        return frozenset()
    try:
        top = symtable.symtable(text, "<text>", "exec")
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    scopes, own = list(_scopes(top)), top.get_symbols()
    bound = {one.get_name() for one in own if one.is_assigned() or one.is_imported() or one.is_namespace()}
    for scope in scopes:
        if scope is not top:
            symbols = scope.get_symbols()
            bound |= {one.get_name() for one in symbols if one.is_declared_global() and one.is_assigned()}
    read = {
        one.get_name() for scope in scopes for one in scope.get_symbols() if one.is_referenced() and one.is_global()
    }
    read |= {one.get_name() for one in own if one.is_referenced()}
    return frozenset(read - bound - _ALWAYS)


def _scopes(scope: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield scope
    for inner in scope.get_children():
        yield from _scopes(inner)


__all__ = ["undefined"]
