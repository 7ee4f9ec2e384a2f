"""Where a program is known to come to: its calls of libraries, under which conditions, and the functions it enters."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import libcst as cst

from migrator.ir.files import Parsed, Together
from migrator.ir.program import understood
from migrator.names.spelling import canonical
from migrator.syntax import walked

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Reached:
    """What a script does as far as it is known.

    `always` are the symbols of a library that are read or called under no condition, `sometimes` those that are where a
    condition holds, `entered` the names of functions of the project all of which are called: what they read was seen.
    `mentioned` are the names that are read where the script comes to, for more than a call. `is_complete` says that the
    whole script was evaluated: a function that is neither entered nor mentioned is never called then. `driver` are the
    symbols that are called outside of model functions and input functions.
    """

    always: frozenset[str]
    sometimes: frozenset[str]
    entered: frozenset[str]
    mentioned: frozenset[str]
    is_complete: bool
    driver: frozenset[str] = frozenset()

    def drives(self, symbol: str) -> bool:
        """Whether the script has to be taken to call a symbol outside of model functions and input functions."""
        return not self.is_complete or symbol in self.driver

    def comes_to(self, symbol: str, function: str) -> bool:
        """Whether the script has to be taken to come to a symbol in a function. What is not known is taken to be so."""
        if symbol in self.always:
            return True
        if symbol in self.sometimes:
            return False
        return not self.is_complete or (function not in self.entered and function in self.mentioned)


def reached(modules: Mapping[Path, cst.Module | None], trees: Sequence[ast.AST], main: Path) -> Reached:
    """What a script of a project does, by both kinds of trees of its files; of one that does not parse, nothing."""
    files = {path: Parsed(path, module) for path, module in modules.items() if module is not None}
    nothing = Reached(frozenset(), frozenset(), frozenset(), frozenset(), False)
    if len(files) < len(modules):
        return nothing
    try:
        others = [one for path, one in files.items() if path != main]
        program = understood(Together.of([files[main], *others]), files[main], only_executed=True)
    except RecursionError:
        return nothing
    graphs = [graph for one in program.estimators for graph in one.graphs.values()]
    graphs += [graph for one in program.estimators for use in one.uses for graph in use.inputs.values()]
    effects = [*program.effects, *(effect for graph in graphs for effect in graph.effects)]
    known = [(one.operation.symbol, not one.conditions) for one in effects] + [*program.evaluator.symbols.items()]
    always = frozenset(canonical(symbol) for symbol, holds in known if holds)
    sometimes = frozenset(canonical(symbol) for symbol, _ in known) - always
    driver = frozenset(canonical(one.operation.symbol) for one in program.effects)
    nodes = [*program.evaluator.called, *(node for graph in graphs for node in graph.entered)]
    defined = Counter(one.name for tree in trees for one in walked(tree) if isinstance(one, _FUNCTIONS))
    called = Counter(one.name.value for one in {*nodes} if isinstance(one, cst.FunctionDef))
    mentioned = frozenset(name for tree in trees for name in _mentioned(tree, frozenset(called)))
    partly = {name for name, count in called.items() if count < defined[name]}  # some of the functions of a name
    return Reached(always, sometimes, frozenset(called) - partly, mentioned | partly, program.is_complete, driver)


def _mentioned(node: ast.AST, entered: frozenset[str]) -> Iterator[str]:
    """The names and attributes that are read in a file, but in functions that are not entered.

    A function that is called by its name is left out: the script would have entered it.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _FUNCTIONS) and child.name not in entered:
            continue
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load):
            if not (isinstance(node, ast.Call) and child is node.func):
                yield child.id
        elif isinstance(child, ast.Attribute):
            yield child.attr
        yield from _mentioned(child, entered)
