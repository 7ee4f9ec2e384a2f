"""Whether what a line of a function gives a name is read again."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrator.names.bindings import Form, bound_by
from migrator.program.parsed import ParsedFile, name_nodes, names_in
from migrator.walking import of_kinds

_LATER = (cst.FunctionDef, cst.Lambda, cst.GeneratorExp, cst.ClassDef)
_LOOP = (cst.For, cst.While)


def is_read_behind(file: ParsedFile, function: cst.FunctionDef, line: cst.BaseStatement, name: str) -> bool:
    """Whether a value that a name of a function has behind a line may be read there, or by a function inside."""
    if any(name in names_in(one) for one in of_kinds(function.body, *_LATER)):
        return True
    node: cst.CSTNode = line
    while node is not function:
        around = file.parents.get(node)
        if around is None or isinstance(around, (cst.Try, cst.TryStar, cst.Match)):
            return True
        if isinstance(around, _LOOP) and _next_turn_reads(file, around, name):
            return True
        if isinstance(around, cst.With) and not _is_of_tensorflow(file, around):
            return True  # it may go on behind an error
        if isinstance(around, cst.IndentedBlock):
            read = _reads(file, _behind(around.body, node), name)
            if read is not None:
                return read
        node = around
    return False


def _next_turn_reads(file: ParsedFile, loop: cst.For | cst.While, name: str) -> bool:
    """Whether another turn of a loop may read what a name has at the end of one."""
    if of_kinds(loop, cst.Break, cst.Continue):
        return True
    if isinstance(loop, cst.While) and name in names_in(loop.test):
        return True
    return _reads(file, loop.body.body, name) is True


def _behind(lines: Sequence[cst.BaseStatement], node: cst.CSTNode) -> Sequence[cst.BaseStatement]:
    return lines[next(at for at, one in enumerate(lines) if one is node) + 1 :]


def _is_of_tensorflow(file: ParsedFile, node: cst.With) -> bool:
    calls = [one.item for one in node.items]
    return all(isinstance(one, cst.Call) and file.imports.tensorflow(one.func) is not None for one in calls)


def _reads(file: ParsedFile, lines: Sequence[cst.CSTNode], name: str) -> bool | None:
    """Whether lines read the value that a name has above them; None where they leave it as it is."""
    for line in lines:
        read = _reads_first(file, line, name)
        if read is not None:
            return read
    return None


def _reads_first(file: ParsedFile, line: cst.CSTNode, name: str) -> bool | None:
    if isinstance(line, cst.SimpleStatementLine):
        for small in line.body:
            mentions = [node for node in name_nodes(small) if node.value == name]
            bound = [one for one in bound_by(small) if one.name == name and one.target is one.place]
            places = {one.place for one in bound if one.form in (Form.ASSIGNED, Form.ANNOTATED)}
            if any(node not in places for node in mentions):
                return True
            if mentions or isinstance(small, (cst.Return, cst.Raise)):
                return False
        return None
    if isinstance(line, cst.If):
        return _of_ways(file, line, name)
    if name not in names_in(line):
        return None
    if isinstance(line, _LOOP):
        asked = line.iter if isinstance(line, cst.For) else line.test
        first = name in names_in(asked) or (line.orelse is not None and name in names_in(line.orelse))
        return True if first or _reads(file, line.body.body, name) else None  # there may be no turn
    if isinstance(line, cst.With) and _is_of_tensorflow(file, line):
        inside = name not in {one for item in line.items for one in names_in(item)}
        return _reads(file, line.body.body, name) if inside else True
    return True


def _of_ways(file: ParsedFile, line: cst.If, name: str) -> bool | None:
    """What both ways through an `if` do with a name: read it if one does, leave it as it is if one does."""
    if name in names_in(line.test):
        return True
    ways = [_reads(file, line.body.body, name)]
    other = line.orelse
    if isinstance(other, cst.If):
        ways.append(_of_ways(file, other, name))
    else:
        ways.append(_reads(file, other.body.body, name) if other is not None else None)
    return True if True in ways else None if None in ways else False


__all__ = ["is_read_behind"]
