"""What the evaluator knows of an expression that a call of the program is given."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache, partial
from pathlib import Path

import libcst as cst

from migrator.ir.evaluate import Evaluator
from migrator.ir.files import Parsed, Together
from migrator.ir.machine import TooMuch
from migrator.ir.program import Program, understood
from migrator.ir.values import Constant, Function, Value
from migrator.program.calls import number
from migrator.program.parsed import ParsedFile
from migrator.query.model import symbols_of


def program_of(main: ParsedFile, files: Iterable[ParsedFile] = ()) -> Program:
    """The program of a script as it is understood, with the other files that it may import."""
    return _understood(tuple((file.path, file.module) for file in files), main.path, main.module)


@lru_cache(maxsize=16)
def _understood(files: tuple[tuple[Path, cst.Module], ...], path: Path, module: cst.Module) -> Program:
    """The program of a file; trees never change, so this holds for ever."""
    main = Parsed(path, module)
    return understood(Together.of([main, *(Parsed(*file) for file in files if file[0] != path)]), main)


def loaded(file: ParsedFile, files: Iterable[ParsedFile] = ()) -> Evaluator:
    """An evaluator that has executed a file as a module, so that nothing has called what only a script runs.

    It is kept for the next question about the file: what it has noted there is to be taken away again.
    """
    return _loaded(tuple((one.path, one.module) for one in files), file.path, file.module)


@lru_cache(maxsize=16)
def _loaded(files: tuple[tuple[Path, cst.Module], ...], path: Path, module: cst.Module) -> Evaluator:
    file = Parsed(path, module)
    evaluator = Evaluator(Together.of([file, *(Parsed(*one) for one in files if one[0] != path)]))
    try:
        evaluator.load(file)
    except (TooMuch, RecursionError):
        evaluator.complete = False
        evaluator.regions.clear()
        evaluator.conditions.clear()
    return evaluator


def values_at(program: Program, argument: cst.CSTNode | None) -> list[Value]:
    """What an argument of a call is, each time that the call is made; empty where nothing is known of it."""
    values = program.evaluator.noted.get(argument, []) if argument is not None else []
    return list(dict.fromkeys(values))


def number_at(file: ParsedFile, argument: cst.BaseExpression, files: Iterable[ParsedFile] = ()) -> float | None:
    """The number that an argument of a call always is; None where it is not known. `files` are those it may import."""
    literal = number(argument)
    if literal is not None:
        return literal
    program = program_of(file, files)
    found = {one.value if isinstance(one, Constant) else None for one in values_at(program, argument)}
    only = found.pop() if len(found) == 1 and program.is_complete else None
    return float(only) if isinstance(only, (int, float)) and not isinstance(only, bool) else None


def made_by(file: ParsedFile, function: cst.FunctionDef) -> set[str]:
    """The calls that make what a function of a file returns, by the symbols that they call; "" for what else it is.

    Nothing is known of its parameters. A function that may end without a `return` is not told apart.
    """
    evaluator = program_of(file).evaluator
    main = evaluator.main
    value = evaluator.store.get((evaluator.load(main).scope, function.name.value)) if main is not None else None
    if not isinstance(value, Function) or value.node is not function:
        return {""}
    evaluator.work = 0
    try:
        found = evaluator.apart(partial(evaluator.enter_function, value))
    except (TooMuch, RecursionError):
        return {""}
    finally:
        evaluator.work = 0
    return symbols_of(evaluator, found)


__all__ = ["loaded", "made_by", "number_at", "program_of", "values_at"]
