"""Tables of functions, said as conditions: `OPTIMIZERS[name](rate)` as `if name == "sgd": ... elif ...`.

A table that is written out, that nothing changes, and one of whose functions is called by key, says in other words what
an `if` says. Where a model_fn, or what it calls, chooses its optimizer, its loss or its network so, every reader finds
the calls themselves. The choice stays the user's: the key is asked for when the program runs, as before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Union, cast

import libcst as cst

from migrator.names.bindings import Form, bound_in, dotted, names_changed, owns, read_bindings
from migrator.names.free import free
from migrator.program.calls import calls_in, functions_in, nodes_in, string, written_entries
from migrator.program.parsed import ParsedFile, name_nodes, names_in
from migrator.program.reductions import Edits, applied, bound_arguments, substituted
from migrator.program.scopes import free_names, path_to
from migrator.walking import of_kinds

_MOST = 12  # functions in a table; a longer one is a registry, and its calls would be a page
_CHANGES_TRAINING = ("tf.train.", "tf.losses.", "tf.keras.losses.", "tf.keras.optimizers.", "tf.contrib.", "tf.layers.")
_LATER = (cst.Lambda, cst.GeneratorExp, cst.ListComp, cst.SetComp, cst.DictComp, cst.IfExp, cst.BooleanOperation)
_Scope = Union[cst.Module, cst.FunctionDef]


def with_called_tables(
    file: ParsedFile,
    files: Iterable[ParsedFile],
    elsewhere: Callable[[str], bool],
    unread: Callable[[str], bool] = lambda name: False,
) -> ParsedFile:
    """The file with such calls as conditions, each table without any other reader gone.

    `files` are all of the project: nothing changes where none of them makes an EstimatorSpec. `elsewhere` says whether
    a name stands in another file: a table of that name stays. `unread` says so of files that are not among them.
    """
    if "tensorflow" not in file.bare or not any("EstimatorSpec" in one.bare for one in files):
        return file
    others = [one for one in files if one.path != file.path]

    def may_change(name: str) -> bool:
        return elsewhere(name) and (unread(name) or not all(_is_only_asked(one, name) for one in others))

    asked: set[str] = set()
    while True:
        table, edits = _first(file, may_change)
        if table is None:
            return _without_unread(file, asked, elsewhere)
        asked.add(table.name)
        file = applied(file, edits)


@dataclass(frozen=True)
class _Table:
    """A dict of functions: its name, the line that makes it, and its values by the code of their keys."""

    name: str
    line: cst.SimpleStatementLine
    values: Mapping[str, cst.BaseExpression]
    keys: Mapping[str, cst.BaseExpression]


def _first(file: ParsedFile, may_change: Callable[[str], bool]) -> tuple[_Table | None, Edits]:
    """The first table with a call of its function that may be said as a condition, and the edit.

    `may_change` says whether another file may change a table of a name.
    """
    of_module = {one.name: one for one in _tables(file, file.module) if not may_change(one.name)}
    for function in functions_in(file.module):
        tables = {**of_module, **{one.name: one for one in _tables(file, function)}}
        if not tables or not isinstance(function.body, cst.IndentedBlock):
            continue
        makes_spec = "EstimatorSpec" in file.code(function.body)
        for line in _lines(function.body):
            asked = _asked(file, function, line, tables)
            if asked is not None:
                return asked
            for call in calls_in(line):
                table = _called(file, call, tables)
                if table is None or not (makes_spec or _trains(file, table)):
                    continue
                if _is_hidden(file, function, line, table, table is not of_module.get(table.name)):
                    continue
                edits = _as_conditions(file, line, call, table)
                if edits:
                    return table, edits
    return None, Edits()


def _is_hidden(
    file: ParsedFile, function: cst.FunctionDef, line: cst.SimpleStatementLine, table: _Table, is_own: bool
) -> bool:
    """Whether a name of the table, or of its functions, is another one where a line stands."""
    names = {table.name}
    for value in table.values.values():
        names |= free_names(value) if isinstance(value, cst.Lambda) else names_in(value)
    around = [one for one in path_to(file.module, line) if one is not file.module]
    if is_own:
        around = around[around.index(function) + 1 :]
    return any(owns(one, name) for one in around for name in names)


def _trains(file: ParsedFile, table: _Table) -> bool:
    """Whether a table holds optimizers, losses or layers of TensorFlow, or functions that are made of it there."""
    symbols = [file.imports.tensorflow(value) or "" for value in table.values.values()]
    return any(symbol.startswith(_CHANGES_TRAINING) for symbol in symbols)


def _tables(file: ParsedFile, scope: _Scope) -> Iterator[_Table]:
    """The tables of functions that a scope makes itself, and that nothing can have changed."""
    own = bound_in(scope)
    for binding in own:
        value, place = binding.value, binding.place
        if binding.form not in (Form.ASSIGNED, Form.ANNOTATED) or value is None or binding.target is not place:
            continue
        chained = isinstance(binding.node, cst.Assign) and len(binding.node.targets) != 1  # another name has it, too
        if chained or sum(one.name == binding.name for one in own) != 1:
            continue
        entries = _entries(file, value)
        line = file.parents.get(binding.node)
        if not entries or len(entries) > _MOST or not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
            continue
        block = file.parents.get(line)
        if block is not scope and block is not scope.body:
            continue
        values = {file.code(key): value for key, value in entries}
        made = {one.name for one in own if one.form is Form.FUNCTION}
        said = {string(key) or file.code(key) for key, _ in entries}  # the last of two entries for one key counts
        plain = len(said) == len(entries) and all(_is_function(file, value, made) for value in values.values())
        if plain and _stays_as_it_is(file, scope, binding.name, place):
            yield _Table(binding.name, line, values, {file.code(key): key for key, _ in entries})


def _entries(file: ParsedFile, node: cst.BaseExpression) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """The keys and values of a dict that is written out; nothing where one of them is not."""
    is_builtin = isinstance(node, cst.Call) and _is_builtin(file, node.func, "dict")
    entries = written_entries(node, is_builtin) or []
    plain = (cst.SimpleString, cst.Integer)
    known = all(isinstance(one.key, plain) or _is_mode(file, one.key) for one in entries)
    return [(one.key, one.value) for one in entries] if known else []


def _is_builtin(file: ParsedFile, node: cst.BaseExpression, name: str) -> bool:
    """Whether an expression is a name of Python's that nothing in the file binds."""
    bound = {one.name for one in read_bindings(file.module)} | file.imports.star_names
    return isinstance(node, cst.Name) and node.value == name and name not in bound


def _is_mode(file: ParsedFile, key: cst.BaseExpression) -> bool:
    return "ModeKeys." in (file.imports.tensorflow(key) or "")


def _is_function(file: ParsedFile, value: cst.BaseExpression, own: Collection[str] = ()) -> bool:
    """Whether a value is a lambda, a function of the file or the scope (`own`), or something of TensorFlow."""
    if isinstance(value, cst.Lambda):
        return True
    if isinstance(value, cst.Name) and (value.value in file.functions or value.value in own):
        return True
    return dotted(value) is not None and file.imports.tensorflow(value) is not None


def _stays_as_it_is(file: ParsedFile, scope: _Scope, name: str, made: cst.Name | None) -> bool:
    """Whether a dict is only asked: for a key, whether it has one, for its keys in order, and how many there are."""
    return all(_asks(file, node) for node in name_nodes(scope) if node.value == name and node is not made)


def _is_only_asked(file: ParsedFile, name: str) -> bool:
    """Whether a file that may have the table of another one by its name, or as a part of its module, only asks it."""
    if name not in file.bare:
        return True
    for node in nodes_in(file.module):
        if isinstance(node, cst.ImportAlias) and dotted(node.name) == name and node.asname is not None:
            return False
        if isinstance(node, cst.Attribute) and node.attr.value == name and not _asks(file, node):
            return False
    read = [node for node in name_nodes(file.module) if node.value == name]
    return all(_asks(file, node) or isinstance(file.parents.get(node), cst.ImportAlias) for node in read)


def _asks(file: ParsedFile, node: cst.Name | cst.Attribute) -> bool:
    """Whether an expression, which is a dict, is only asked here."""
    around = file.parents.get(node)
    above = file.parents.get(around) if around is not None else None
    if isinstance(around, cst.Subscript) and around.value is node:
        return not isinstance(above, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.Del, cst.Element))
    if isinstance(around, cst.Attribute) and around.value is node:
        return around.attr.value in ("get", "keys", "items", "values")
    if isinstance(around, cst.Arg):
        asks = ("len", "sorted", "list", "str", "print")
        return isinstance(above, cst.Call) and any(_is_builtin(file, above.func, one) for one in asks)
    return isinstance(around, (cst.ComparisonTarget, cst.CompFor, cst.For))


def _lines(block: cst.IndentedBlock) -> Iterator[cst.SimpleStatementLine]:
    """The lines of one statement in a block and the blocks in it, those of functions and classes inside left out."""
    for node in nodes_in(block):
        if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1:
            inner = path_to(block, node)[1:-1]
            if not any(isinstance(one, (cst.FunctionDef, cst.ClassDef)) for one in inner):
                yield node


def _called(file: ParsedFile, call: cst.Call, tables: Mapping[str, _Table]) -> _Table | None:
    """The table whose function a call calls: `TABLE[key](...)` or `TABLE.get(key, other)(...)`."""
    return _table_of(file, call.func, tables)


def _table_of(file: ParsedFile, func: cst.BaseExpression, tables: Mapping[str, _Table]) -> _Table | None:
    """The table that an expression takes a function of: `TABLE[key]` or `TABLE.get(key, other)`."""
    if isinstance(func, cst.Call) and isinstance(func.func, cst.Attribute) and func.func.attr.value == "get":
        owner: cst.BaseExpression = func.func.value
        if len(func.args) != 2 or any(arg.star or arg.keyword is not None for arg in func.args):
            return None
        if not _is_function(file, func.args[1].value):
            return None
    elif isinstance(func, cst.Subscript) and len(func.slice) == 1 and isinstance(func.slice[0].slice, cst.Index):
        owner = func.value
    else:
        return None
    return tables.get(owner.value) if isinstance(owner, cst.Name) else None


def _asked(
    file: ParsedFile, function: cst.FunctionDef, line: cst.SimpleStatementLine, tables: Mapping[str, _Table]
) -> tuple[_Table, Edits] | None:
    """`kind = TABLE[key]`, whose one reader calls it further down: `TABLE[key](...)` there."""
    small = line.body[0]
    target = small.targets[0].target if isinstance(small, cst.Assign) and len(small.targets) == 1 else None
    if not isinstance(small, cst.Assign) or not isinstance(target, cst.Name):
        return None
    table = _table_of(file, small.value, tables)
    uses = [node for node in name_nodes(function) if node.value == target.value and node is not target]
    bound = [one for one in bound_in(function) if one.name == target.value]
    call = file.parents.get(uses[0]) if len(uses) == 1 else None
    if table is None or len(bound) != 1 or not isinstance(call, cst.Call) or call.func is not uses[0]:
        return None
    block = file.parents.get(line)
    if not isinstance(block, cst.IndentedBlock):
        return None
    after = block.body[block.body.index(line) + 1 :]
    until = next((at for at, one in enumerate(after) if call in nodes_in(one)), None)
    if until is None or names_changed(after[:until]) & names_in(small.value):
        return None
    around = path_to(after[until], call)
    if any(isinstance(one, (*_LATER, cst.FunctionDef, cst.For, cst.While)) for one in around):
        return None
    new = call.with_changes(func=small.value.deep_clone())
    return table, Edits({line: []}, {call: new})


def _as_conditions(file: ParsedFile, line: cst.SimpleStatementLine, call: cst.Call, table: _Table) -> Edits:
    """A line that calls a function of a table, as the branches of an `if`; nothing where that would do other things."""
    small = line.body[0]
    if not isinstance(small, (cst.Assign, cst.Return, cst.Expr)) or small.value is None or file.may_have_comment(small):
        return Edits()
    around = path_to(small, call)[:-1]
    if any(isinstance(one, _LATER) for one in around) or not _comes_first(small, call):
        return Edits()
    assert isinstance(call.func, (cst.Subscript, cst.Call))
    other = call.func.args[1].value if isinstance(call.func, cst.Call) else None
    key = call.func.args[0].value if isinstance(call.func, cst.Call) else _index(call.func)
    calls = {code: _with(file, call, value) for code, value in table.values.items()}
    last = _with(file, call, other) if other is not None else None
    if any(made is None for made in calls.values()) or (other is not None and last is None):
        return Edits()
    made: set[str] = set()
    before: list[cst.BaseStatement] = []
    if calls_in(key):  # asked once, as before
        name = free("key", {*file.names, *(one.name for one in read_bindings(file.module))})
        before.append(cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(name))], key.deep_clone())]))
        made, key = {name}, cst.Name(name)
    if file.code(key) in table.values:
        chosen = calls[file.code(key)]
        assert chosen is not None
        return Edits({line: [_said(line, small, call, chosen)]})
    ending: Sequence[cst.BaseStatement]
    if last is not None:
        ending = [_said(None, small, call, last)]
    else:
        problem = cst.Call(cst.Name("KeyError"), [cst.Arg(key.deep_clone())])
        ending = [cst.SimpleStatementLine([cst.Raise(problem)])]
    branch: cst.If | cst.Else = cst.Else(cst.IndentedBlock(ending))
    for code, chosen in reversed(calls.items()):
        assert chosen is not None
        asked = cst.ComparisonTarget(cst.Equal(), table.keys[code].deep_clone())
        test = cst.Comparison(key.deep_clone(), [asked])
        branch = cst.If(test, cst.IndentedBlock([_said(None, small, call, chosen)]), orelse=branch)
    assert isinstance(branch, cst.If)
    above = branch.with_changes(leading_lines=() if before else line.leading_lines)
    if before:
        before[0] = cast("cst.SimpleStatementLine", before[0]).with_changes(leading_lines=line.leading_lines)
    return Edits({line: [*before, above]}, made=made)


def _index(node: cst.Subscript) -> cst.BaseExpression:
    index = node.slice[0].slice
    assert isinstance(index, cst.Index)
    return index.value


def _comes_first(small: cst.BaseSmallStatement, call: cst.Call) -> bool:
    """Whether nothing else of a statement is called before this call is: its arguments are its own."""
    own = set(nodes_in(call))
    around = set(path_to(small, call))
    for other in calls_in(small):  # in the order of the text, which is that of Python outside of branches
        if other is call:
            return True
        if other not in around and other not in own:
            return False
    return False


def _with(file: ParsedFile, call: cst.Call, function: cst.BaseExpression) -> cst.BaseExpression | None:
    """The call with a function of the table by name; of a lambda what it gives."""
    if not isinstance(function, cst.Lambda):
        return call.with_changes(func=function.deep_clone())
    given = bound_arguments(function, call)
    if given is None or of_kinds(function.body, cst.NamedExpr, *_LATER[:5]):
        return None
    read = [node.value for node in name_nodes(function.body)]
    if any(calls_in(value) and read.count(name) != 1 for name, value in given.items()):
        return None  # computed once for each time that it is read
    return substituted(file, function.body, given)


def _said(
    line: cst.SimpleStatementLine | None, small: cst.BaseSmallStatement, call: cst.Call, chosen: cst.BaseExpression
) -> cst.SimpleStatementLine:
    """The statement with a call in the place of the table's."""
    new = cast("cst.BaseSmallStatement", small.deep_replace(call, chosen)).deep_clone()
    assert isinstance(new, cst.BaseSmallStatement)
    return cst.SimpleStatementLine([new]) if line is None else line.with_changes(body=[new])


def _without_unread(file: ParsedFile, asked: set[str], elsewhere: Callable[[str], bool]) -> ParsedFile:
    """The file without the tables that nothing asks any more."""
    scopes: list[_Scope] = [file.module, *functions_in(file.module)]
    edits = Edits()
    for scope in scopes:
        for table in _tables(file, scope):
            read = [node for node in name_nodes(scope) if node.value == table.name]
            if table.name in asked and len(read) == 1 and (scope is not file.module or not elsewhere(table.name)):
                edits.lines[table.line] = []
    return applied(file, edits) if edits else file


__all__ = ["with_called_tables"]
