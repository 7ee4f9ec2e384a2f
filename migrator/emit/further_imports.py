"""Imports of names that new lines read, among the imports that a file has."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from migrator.names.bindings import read_bindings
from migrator.names.imports import dotted
from migrator.names.standard import STANDARD_MODULES
from migrator.program.parsed import names_in


def with_imports(module: cst.Module, lines: Mapping[str, str]) -> cst.Module:
    """The module with those import lines, by the names that they bind, that its code reads and has not."""
    if not lines:
        return module
    bound = {binding.name for binding in read_bindings(module) if binding.is_global}
    wanted = names_in(module) - bound
    for name in [name for name in lines if name in wanted]:
        line = cst.parse_module(lines[name] + "\n").body[0]
        assert isinstance(line, cst.SimpleStatementLine)
        module = _merged(module, line) or _inserted(module, line)
    return module


def _merged(module: cst.Module, line: cst.SimpleStatementLine) -> cst.Module | None:
    """The module with the name added to a `from module import ...` that it has, if it has one."""
    new = line.body[0]
    if not isinstance(new, cst.ImportFrom) or isinstance(new.names, cst.ImportStar):
        return None
    for statement in module.body:
        small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
        if not isinstance(small, cst.ImportFrom) or isinstance(small.names, cst.ImportStar):
            continue
        if dotted(small.module) != dotted(new.module) or len(small.relative) != len(new.relative):
            continue
        names = sorted([*small.names, *new.names], key=_spelled) if _is_sorted(small) else [*small.names, *new.names]
        between = small.lpar.whitespace_after if small.lpar is not None else cst.SimpleWhitespace("")
        apart = cst.Comma(whitespace_after=cst.SimpleWhitespace(" ") if between.empty else between)
        last = names[-1].with_changes(comma=small.names[-1].comma)
        names = [*(alias.with_changes(comma=apart) for alias in names[:-1]), last]
        changed = module.deep_replace(small, small.with_changes(names=names))
        assert isinstance(changed, cst.Module)
        return changed
    return None


def _spelled(alias: cst.ImportAlias) -> str:
    return dotted(alias.name) or ""


def _is_sorted(line: cst.ImportFrom) -> bool:
    assert not isinstance(line.names, cst.ImportStar)
    return [_spelled(a) for a in line.names] == sorted(_spelled(a) for a in line.names)


def _inserted(module: cst.Module, line: cst.SimpleStatementLine) -> cst.Module:
    """The module with a line of its own behind the last import of its kind, or else before the first import."""
    kind = _is_standard(line)
    tops = [(i, s) for i, s in enumerate(module.body) if isinstance(s, cst.SimpleStatementLine) and _is_import(s)]
    first_other = next((i for i, s in enumerate(module.body) if isinstance(s, (cst.FunctionDef, cst.ClassDef))), None)
    tops = [(i, s) for i, s in tops if first_other is None or i < first_other]
    same = [i for i, s in tops if _is_standard(s) == kind]
    body = list(module.body)
    if same:
        at = same[-1] + 1
    elif kind and tops:
        at = tops[0][0]
        following = tops[0][1]
        line = line.with_changes(leading_lines=following.leading_lines)
        body[at] = following.with_changes(leading_lines=[cst.EmptyLine(indent=False)])
    else:
        at = tops[-1][0] + 1 if tops else 0
    return module.with_changes(body=[*body[:at], line, *body[at:]])


def _is_import(line: cst.SimpleStatementLine) -> bool:
    return isinstance(line.body[0], (cst.Import, cst.ImportFrom))


def _is_standard(line: cst.SimpleStatementLine) -> bool:
    small = line.body[0]
    if isinstance(small, cst.ImportFrom):
        return not small.relative and (dotted(small.module) or "").partition(".")[0] in _STANDARD
    return isinstance(small, cst.Import) and (dotted(small.names[0].name) or "").partition(".")[0] in _STANDARD


_STANDARD = frozenset(STANDARD_MODULES)


__all__ = ["with_imports"]
