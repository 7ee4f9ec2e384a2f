"""Entries of a model_fn's own dicts, and attributes of its own objects, as names of their own.

`endpoints["loss"]`, `out["logits"]` of a helper, `result.loss` of a named tuple and `model.loss` of an object that the
model_fn makes are what any name is: values of the model_fn. Said as names they can be told apart; the dict itself stays
where it is given away as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Union

import libcst as cst

from migrator.pairing import equal_zip
from migrator.program.calls import is_none, string, written_entries
from migrator.program.modes import ALL, Modes
from migrator.program.parsed import Following, names_in
from migrator.program.scopes import bindings, parents_below
from migrator.walking import names_below, of_kinds, transformed

Same = Callable[[cst.CSTNode, cst.CSTNode], object]
_Access = Union[cst.Subscript, cst.Attribute]
_READING = ("items", "keys", "values", "copy")  # methods of a dict that leave it as it is


@dataclass(frozen=True)
class Record:
    """What a call of a class makes that only holds values: its parameters in order, and whether it may get others."""

    fields: tuple[str, ...]
    is_open: bool


@dataclass(frozen=True)
class Surroundings:
    """What is known around a model_fn: which calls leave a dict as it is, a new name like one, and what stands where.

    `leaves` says of what is called whether it only reads its arguments, `deep` whether a line may change what an entry
    of something holds (`spec["predictions"]["classes"] = ...`), `modes` in which modes a node runs, given that node and
    those around it, `record` what a call makes where that is a named tuple or a namespace; `same` is told of each new
    node what it stands for.
    """

    leaves: Callable[[cst.BaseExpression], bool]
    deep: bool
    modes: Callable[[cst.FunctionDef], Callable[[Sequence[cst.CSTNode]], Modes]]
    record: Callable[[cst.Call], Record | None]
    fresh: Callable[[str], str]
    same: Same


@dataclass
class _Whole:
    """All that a function does with a dict or object: its accesses by key, and how it is made.

    `stays` says that it is given away as a whole, so that it has to be there; `grows` that entries come later.
    """

    name: str
    is_object: bool
    record: Record | None = None
    made: cst.Assign | None = None
    entries: dict[str, cst.BaseExpression] = field(default_factory=dict)
    accesses: dict[_Access, str] = field(default_factory=dict)
    stored: dict[str, list[cst.BaseExpression | None]] = field(default_factory=dict)
    updates: dict[cst.Expr, dict[str, cst.BaseExpression]] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)
    second: dict[str, str] = field(default_factory=dict)  # `loss = entries["loss"]`: the name that an entry is given to
    asked: dict[cst.Call, str] = field(default_factory=dict)  # `entries.get("key")`
    lines: set[cst.Assign | cst.AugAssign] = field(default_factory=set)
    places: dict[cst.CSTNode, int] = field(default_factory=dict)  # of the lines that give entries, among all uses
    wholes: list[tuple[int, Modes]] = field(default_factory=list)  # places of uses of the whole, and the modes of these
    modes: dict[cst.CSTNode, Modes] = field(default_factory=dict)  # of the lines that give entries
    repeated: set[str] = field(default_factory=set)  # keys that a loop gives again and again
    in_parts: bool = False  # an entry is one of several targets
    stays: bool = False
    grows: bool = False


class NotFollowed(Exception):
    """A use of a dict or object that is more than reading and giving its entries: `node`."""

    def __init__(self, node: cst.CSTNode) -> None:
        super().__init__()
        self.node = node


def with_named_entries(function: cst.FunctionDef, returned: frozenset[str], around: Surroundings) -> cst.FunctionDef:
    """The function with entries of its own dicts as names, where these are `returned` by helpers, or grow by lines.

    A dict display that does not grow stays as it is (its entries are read where they stand), as does one of which
    nothing is read.
    """
    done: set[str] = set()
    if _sets_from_inside(function):
        return function
    while True:
        candidates = [name for name in _dicts(function, around) if name not in done]
        if not candidates:
            return function
        name = candidates[0]
        done.add(name)
        try:
            whole = _read(function, name, False, around)
        except NotFollowed:
            continue
        called = whole.made is not None and isinstance(whole.made.value, cst.Call)
        if whole.made is not None and whole.read and (whole.grows or called or name in returned):
            function = _written(function, whole, around)


def with_named_attributes(
    function: cst.FunctionDef, name: str, constants: Mapping[str, cst.BaseExpression], around: Surroundings
) -> cst.FunctionDef:
    """The function with the attributes of an object of its own as names; nothing makes the object any more.

    `constants` is what stands for attributes that the class itself has. Raises NotFollowed for any other use.
    """
    apart = _one_by_one(function, name, around.same)
    return _written(apart, _read(apart, name, True, around, constants), around, constants)


def _one_by_one(function: cst.FunctionDef, name: str, same: Same) -> cst.FunctionDef:
    """The function with `model.a, model.b = x, y` as two lines, where nothing is read of the object there."""
    new = transformed(function, _Apart(name, same))
    assert isinstance(new, cst.FunctionDef)
    return new


class _Apart(Following):
    def __init__(self, name: str, same: Same) -> None:
        super().__init__(same)
        self.name = name

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        small = updated_node.body[0] if len(updated_node.body) == 1 else None
        target = small.targets[0].target if isinstance(small, cst.Assign) and len(small.targets) == 1 else None
        if not isinstance(small, cst.Assign) or not isinstance(target, cst.Tuple):
            return updated_node
        value, targets = small.value, [one.value for one in target.elements]
        if not isinstance(value, cst.Tuple) or len(value.elements) != len(targets):
            return updated_node
        if self.name in names_in(value) or not all(self._is_own(one) for one in targets):
            return updated_node
        lines = [
            updated_node.with_changes(
                body=[cst.Assign([cst.AssignTarget(one)], given.value)],
                leading_lines=() if index else updated_node.leading_lines,
            )
            for index, (one, given) in enumerate(equal_zip(targets, value.elements))
            if isinstance(one, cst.Attribute)
        ]
        for line in lines:
            self.same(original_node, line)
        return cst.FlattenSentinel(lines)

    def _is_own(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name) and node.value.value == self.name


def _sets_from_inside(function: cst.FunctionDef) -> bool:
    """Whether a function inside of one may give its names values."""
    return bool(of_kinds(function.body, cst.Nonlocal))


def _dicts(function: cst.FunctionDef, around: Surroundings) -> list[str]:
    """The names that are given a dict or record once, and nothing else."""
    found = [name for name, _ in _bound(function)]
    return [
        name
        for name, node in _bound(function)
        if found.count(name) == 1 and isinstance(node, cst.Name) and _made(function, node, around) is not None
    ]


def _bound(function: cst.FunctionDef) -> list[tuple[str, cst.CSTNode]]:
    return [one for one in bindings(function) if isinstance(one[1], (cst.Name, cst.Param, cst.FunctionDef))]


def _made(function: cst.FunctionDef, target: cst.CSTNode, around: Surroundings) -> cst.Assign | None:
    """The assignment of a dict that is written out, or of a record, to a name."""
    parents = parents_below(function)
    assign = parents.get(parents.get(target, target))
    if not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
        return None
    entries = _entries_of(assign.value, _record_of(assign.value, around))
    return assign if entries is not None and _is_line(parents, assign) else None


def _record_of(node: cst.BaseExpression, around: Surroundings) -> Record | None:
    return around.record(node) if isinstance(node, cst.Call) else None


def _is_line(parents: Mapping[cst.CSTNode, cst.CSTNode], small: cst.CSTNode) -> bool:
    line = parents.get(small)
    return (
        isinstance(line, cst.SimpleStatementLine)
        and len(line.body) == 1
        and isinstance(parents.get(line), cst.IndentedBlock)
    )


def _entries_of(node: cst.BaseExpression, record: Record | None = None) -> dict[str, cst.BaseExpression] | None:
    """The entries of a dict that is written out, by keys that are texts, or the values of a record."""
    if record is not None and isinstance(node, cst.Call):
        if (len(node.args) > len(record.fields) and not record.is_open) or any(arg.star for arg in node.args):
            return None
        keys = [parameter(arg, index, record) for index, arg in enumerate(node.args)]
        values = [arg.value for arg in node.args]
    else:
        entries = written_entries(node)
        if entries is None:
            return None
        keys = [string(one.key) for one in entries]
        values = [one.value for one in entries]
    found = {key: value for key, value in equal_zip(keys, values) if key is not None}
    return found if len(found) == len(keys) else None


def parameter(arg: cst.Arg, index: int, record: Record) -> str | None:
    """The field that an argument gives a value to."""
    if arg.keyword is not None:
        return arg.keyword.value
    return record.fields[index] if index < len(record.fields) else None


def _read(
    function: cst.FunctionDef,
    name: str,
    is_object: bool,
    around: Surroundings,
    constants: Mapping[str, cst.BaseExpression] | None = None,
) -> _Whole:
    """All uses of a dict or object. Raises NotFollowed."""
    parents, modes = parents_below(function), around.modes(function)
    whole = _Whole(name, is_object)
    for known, target in _bound(function) if not is_object else ():
        made = _made(function, target, around) if known == name else None
        whole.record = _record_of(made.value, around) if made is not None else whole.record
    for place, node in enumerate(names_below(function.body)):
        if node.value != name:
            continue
        above = parents[node]
        nested = _is_nested(parents, node, function)
        key = _key(node, above, whole)
        if key is not None and isinstance(above, (cst.Subscript, cst.Attribute)):
            _note_access(whole, parents, above, key, nested)
        elif is_object:
            raise NotFollowed(node)
        elif isinstance(above, cst.AssignTarget):
            assign = parents[above]
            assert isinstance(assign, cst.Assign)
            whole.made = assign
            whole.entries = _entries_of(assign.value, whole.record) or {}
            whole.repeated |= whole.entries.keys() if _in_loop(parents, assign) else set()
        else:
            _note_whole(whole, parents, node, nested, around)
            call = parents[parents[node]]
            if call not in whole.asked and parents[call] not in whole.updates:
                around_it = _above(parents, node)
                at = place if not nested and _is_last(around_it) else len(parents)  # it may be looked at any time later
                whole.wholes.append((at, ALL if nested else modes(around_it)))
        for line in (*whole.lines, *whole.updates):
            if line not in whole.places:
                whole.places[line] = place
                whole.modes[line] = modes(_above(parents, line))
    for key, value in whole.entries.items():
        whole.stored.setdefault(key, []).insert(0, value)
    for given in whole.updates.values():
        for key, value in given.items():
            whole.stored.setdefault(key, []).append(value)
    for key in {*whole.asked.values()} - whole.entries.keys():
        whole.stored.setdefault(key, []).insert(0, None)  # it is None from the start
    unknown = whole.read - whole.stored.keys() - (constants or {}).keys()
    if unknown:
        raise NotFollowed(next(node for node, key in whole.accesses.items() if key in unknown))
    if whole.in_parts and whole.stays:
        raise NotFollowed(function)
    return whole


def _above(parents: Mapping[cst.CSTNode, cst.CSTNode], node: cst.CSTNode) -> list[cst.CSTNode]:
    """The nodes around a node, innermost first, and itself before them."""
    found = [node]
    while found[-1] in parents:
        found.append(parents[found[-1]])
    return found


def _is_last(around: Sequence[cst.CSTNode]) -> bool:
    """Whether a dict is looked at where a name of it stands, and not later: in a `return`, or by `**`."""
    is_spread = isinstance(around[1], cst.Arg) and around[1].star == "**"
    statement = next((one for one in around if isinstance(one, cst.BaseSmallStatement)), None)
    return is_spread or isinstance(statement, cst.Return)


def _is_nested(parents: Mapping[cst.CSTNode, cst.CSTNode], node: cst.CSTNode, function: cst.FunctionDef) -> bool:
    """Whether a node stands in a function or class inside of a function."""
    while (node := parents[node]) is not function:
        if isinstance(node, (cst.FunctionDef, cst.Lambda, cst.ClassDef)):
            return True
    return False


def _key(name: cst.Name, above: cst.CSTNode, whole: _Whole) -> str | None:
    """The key in `name["key"]`, or the attribute of an object."""
    if whole.is_object or whole.record is not None:
        key = above.attr.value if isinstance(above, cst.Attribute) and above.value is name else None
        is_closed = whole.record is not None and not whole.record.is_open
        return None if is_closed and whole.record is not None and key not in whole.record.fields else key
    if not isinstance(above, cst.Subscript) or above.value is not name or len(above.slice) != 1:
        return None
    index = above.slice[0].slice
    return string(index.value) if isinstance(index, cst.Index) else None


def _note_access(
    whole: _Whole, parents: Mapping[cst.CSTNode, cst.CSTNode], node: _Access, key: str, nested: bool
) -> None:
    above = parents[node]
    whole.accesses[node] = key
    small = parents.get(above) if isinstance(above, cst.AssignTarget) else above
    if isinstance(above, cst.AssignTarget) or (isinstance(above, cst.AugAssign) and above.target is node):
        is_first = isinstance(small, cst.AugAssign) or (isinstance(small, cst.Assign) and len(small.targets) == 1)
        if isinstance(small, cst.Assign) and not is_first and not nested:
            whole.stored.setdefault(key, []).append(None)
            whole.grows = whole.in_parts = True
            return
        if nested or not is_first or small is None or not _is_line(parents, small):
            raise NotFollowed(node)
        assert isinstance(small, (cst.Assign, cst.AugAssign))
        whole.stored.setdefault(key, []).append(small.value if isinstance(small, cst.Assign) else None)
        whole.lines.add(small)
        whole.grows = True
        if _in_loop(parents, small):
            whole.repeated.add(key)
        if isinstance(small, cst.AugAssign):
            whole.stored[key].append(None)
            whole.read.add(key)
        return
    if isinstance(above, cst.Element) and _is_target(parents, above):
        if nested:
            raise NotFollowed(node)
        whole.stored.setdefault(key, []).append(None)
        whole.grows = whole.in_parts = True
        return
    if isinstance(above, cst.Element) and any(isinstance(one, cst.Del) for one in _above(parents, node)[:6]):
        raise NotFollowed(node)
    if isinstance(above, (cst.Del, cst.NamedExpr, cst.AsName, cst.AnnAssign, cst.For, cst.CompFor)):
        if not isinstance(above, (cst.For, cst.CompFor)) or above.target is node:
            raise NotFollowed(node)
    whole.read.add(key)
    if isinstance(above, cst.Assign) and not nested and not _in_loop(parents, above) and _is_line(parents, above):
        target = above.targets[0].target
        if isinstance(target, cst.Name) and len(above.targets) == 1:
            whole.second[key] = target.value


def _in_loop(parents: Mapping[cst.CSTNode, cst.CSTNode], node: cst.CSTNode) -> bool:
    while node in parents:
        node = parents[node]
        if isinstance(node, (cst.For, cst.While)):
            return True
    return False


def _is_target(parents: Mapping[cst.CSTNode, cst.CSTNode], node: cst.CSTNode) -> bool:
    """Whether an element is one of several that an assignment gives values to."""
    while isinstance(node, (cst.Element, cst.Tuple, cst.List)):
        node = parents[node]
    return isinstance(node, cst.AssignTarget)


def _note_whole(
    whole: _Whole, parents: Mapping[cst.CSTNode, cst.CSTNode], node: cst.Name, nested: bool, around: Surroundings
) -> None:
    """A use of a dict as a whole. Raises NotFollowed where it may change."""
    above = parents[node]
    if whole.record is not None and not whole.record.is_open:
        whole.stays = True  # it never changes
        return
    if isinstance(above, cst.Arg):
        call = parents[above]
        if isinstance(call, cst.Call) and (above.star == "**" or around.leaves(call.func)):
            whole.stays = True
            return
    if isinstance(above, cst.Attribute) and above.value is node and whole.record is None:
        call = parents[above]
        if isinstance(call, cst.Call) and call.func is above:
            expr = parents[call]
            given = _updated(call)
            if isinstance(expr, cst.Expr) and given is not None and not nested and _is_line(parents, expr):
                whole.updates[expr] = given
                whole.repeated |= given.keys() if _in_loop(parents, expr) else set()
                whole.grows = True
                return
            key = _asked(call)
            if key is not None:
                whole.asked[call] = key
                whole.read.add(key)
                return
            if above.attr.value in _READING:
                whole.stays = True
                return
    if isinstance(above, cst.DictElement) and above.value is node and not around.deep:
        whole.stays = True
        return
    if isinstance(above, cst.ComparisonTarget) and isinstance(above.operator, (cst.In, cst.NotIn)):
        whole.stays = True
        return
    raise NotFollowed(node)


def _asked(call: cst.Call) -> str | None:
    """The key in `entries.get("key")`, which is None where there is no such entry."""
    assert isinstance(call.func, cst.Attribute)
    if call.func.attr.value != "get" or not 1 <= len(call.args) <= 2 or any(a.keyword or a.star for a in call.args):
        return None
    return string(call.args[0].value) if len(call.args) == 1 or is_none(call.args[1].value) else None


def _updated(call: cst.Call) -> dict[str, cst.BaseExpression] | None:
    """What `update` is given, where that is written out."""
    assert isinstance(call.func, cst.Attribute)
    if call.func.attr.value != "update":
        return None
    if len(call.args) == 1 and call.args[0].keyword is None and not call.args[0].star:
        return _entries_of(call.args[0].value)
    given = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
    return given if len(given) == len(call.args) else None


def _written(
    function: cst.FunctionDef,
    whole: _Whole,
    around: Surroundings,
    constants: Mapping[str, cst.BaseExpression] | None = None,
) -> cst.FunctionDef:
    """The function with names for the entries that are read, or for all where nothing needs the whole."""
    bound = [name for name, _ in _bound(function)]
    names: dict[str, cst.BaseExpression] = {}
    copies: set[str] = set()
    for key, values in whole.stored.items():
        if whole.stays and key not in whole.read and not _is_for_others(whole, key):
            continue
        only = values[0] if len(values) == 1 else None
        is_copy = isinstance(only, cst.Name) and bound.count(only.value) == 1 and key not in whole.repeated
        second = whole.second.get(key, "")
        if len(values) == 1 and bound.count(second) == 1 and key not in whole.repeated and not is_copy:
            names[key] = cst.Name(second)
        elif isinstance(only, cst.Name) and is_copy and only.value != whole.name:
            names[key] = cst.Name(only.value)
            copies.add(key)
        else:
            names[key] = cst.Name(around.fresh((key.lstrip("_") or key) if key.isidentifier() else whole.name))
    for key in whole.read - names.keys():
        names[key] = (constants or {})[key]
    writer = _Writer(whole, names, copies, around.same)
    new = function.visit(writer)
    assert isinstance(new, cst.FunctionDef)
    around.same(function, new)
    return new


def _is_for_others(whole: _Whole, key: str) -> bool:
    """Whether an entry that nobody reads by its key is given in modes only in which nothing needs the whole."""
    lines = [one for one in whole.lines if _target_key(whole, one) == key]
    given = [*lines, *(one for one, entries in whole.updates.items() if key in entries)]
    if key in whole.entries or not given:
        return False
    return not any(whole.modes[line] & modes for line in given for _, modes in whole.wholes)


def _target_key(whole: _Whole, line: cst.Assign | cst.AugAssign) -> str | None:
    target = line.targets[0].target if isinstance(line, cst.Assign) else line.target
    return whole.accesses.get(target) if isinstance(target, (cst.Subscript, cst.Attribute)) else None


class _Writer(Following):
    """Puts names for entries: where they are read, and before the lines that give them, or in the place of these."""

    def __init__(self, whole: _Whole, names: Mapping[str, cst.BaseExpression], copies: set[str], same: Same) -> None:
        super().__init__(same)
        self.whole = whole
        self.names = names
        self.copies = copies

    def leave_Subscript(self, original_node: cst.Subscript, updated_node: cst.Subscript) -> cst.BaseExpression:
        return self._name(original_node, updated_node)

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        return self._name(original_node, updated_node)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        key = self.whole.asked.get(original_node)
        return updated_node if key is None else self.names[key].deep_clone()

    def _name(self, original: _Access, updated: _Access) -> cst.BaseExpression:
        key = self.whole.accesses.get(original, "")
        return self.names[key].deep_clone() if key in self.names else updated

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement] | cst.RemovalSentinel:
        small, new = original_node.body[0], updated_node.body[0]
        lines: list[cst.SimpleStatementLine] = []
        if isinstance(small, cst.Assign) and small is self.whole.made:
            assert isinstance(new, cst.Assign)
            missing = {*self.whole.asked.values()} - self.whole.entries.keys()
            nothing = {key: cst.Name("None") for key in sorted(missing)}
            lines = self._made({**(_entries_of(new.value, self.whole.record) or {}), **nothing})
            if self.whole.stays:
                value = self._named(new.value)
                lines.append(cst.SimpleStatementLine([new.with_changes(value=value)]))
        elif isinstance(small, cst.Expr) and small in self.whole.updates:
            assert isinstance(new, cst.Expr) and isinstance(new.value, cst.Call)
            lines = self._made(_updated(new.value) or {})
            if self._stays(small, self.whole.updates[small].keys()):
                lines.append(cst.SimpleStatementLine([new.with_changes(value=self._named(new.value))]))
        elif isinstance(small, (cst.Assign, cst.AugAssign)) and small in self.whole.lines:
            target = small.targets[0].target if isinstance(small, cst.Assign) else small.target
            assert isinstance(target, (cst.Subscript, cst.Attribute))
            key = self.whole.accesses[target]
            if key not in self.names:
                return updated_node
            if key not in self.copies:
                lines.append(updated_node.with_changes(leading_lines=()))
            if self._stays(small, {key}):
                kept = cst.Assign([cst.AssignTarget(target.deep_clone())], self.names[key].deep_clone())
                lines.append(cst.SimpleStatementLine([kept]))
        elif isinstance(new, cst.Assign) and _is_same(new) and updated_node is not original_node:
            pass  # `loss = entries["loss"]`
        else:
            return updated_node
        if not lines:
            return cst.RemoveFromParent() if not _comments(original_node) else _nothing(updated_node)
        lines[0] = lines[0].with_changes(leading_lines=updated_node.leading_lines)
        lines[-1] = lines[-1].with_changes(trailing_whitespace=updated_node.trailing_whitespace)
        for line in lines:
            self.same(original_node, line)
        return lines[0] if len(lines) == 1 else cst.FlattenSentinel(lines)

    def _stays(self, small: cst.BaseSmallStatement, keys: Collection[str]) -> bool:
        """Whether something may need the whole after a line that gives entries."""
        place, modes = self.whole.places[small], self.whole.modes[small]
        again = not self.whole.repeated.isdisjoint(keys)
        needed = any((place < where or again) and modes & those for where, those in self.whole.wholes)
        return self.whole.stays and (needed or not self.names.keys() >= set(keys))

    def _made(self, entries: Mapping[str, cst.BaseExpression]) -> list[cst.SimpleStatementLine]:
        """The lines that give entries their names."""
        lines: list[cst.SimpleStatementLine] = []
        for key, value in entries.items():
            name = self.names.get(key)
            if isinstance(name, cst.Name) and key not in self.copies:
                lines.append(cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(name.deep_clone())], value)]))
        return lines

    def _named(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """A dict that is written out, or an update of one, with the names of its entries."""
        if isinstance(node, cst.Dict):
            elements = [
                one.with_changes(value=self.names[key].deep_clone())
                if isinstance(one, cst.DictElement) and (key := string(one.key) or "") in self.names
                else one
                for one in node.elements
            ]
            return node.with_changes(elements=elements)
        assert isinstance(node, cst.Call)
        record = self.whole.record or Record((), True)
        args = [
            arg.with_changes(value=self.names[key].deep_clone())
            if (key := parameter(arg, index, record) or "") in self.names
            else arg.with_changes(value=self._named(arg.value))
            if isinstance(arg.value, cst.Dict) and arg.keyword is None
            else arg
            for index, arg in enumerate(node.args)
        ]
        return node.with_changes(args=args)

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.BaseSuite:
        if updated_node.body:
            return updated_node
        return updated_node.with_changes(body=[cst.SimpleStatementLine([cst.Pass()])])


def _is_same(small: cst.Assign) -> bool:
    """`loss = loss`."""
    target = small.targets[0].target
    return len(small.targets) == 1 and isinstance(target, cst.Name) and small.value.deep_equals(target)


def _comments(line: cst.SimpleStatementLine) -> bool:
    return any(one.comment is not None for one in line.leading_lines) or line.trailing_whitespace.comment is not None


def _nothing(line: cst.SimpleStatementLine) -> cst.SimpleStatementLine:
    """A line that does nothing, and keeps the comments of one that goes."""
    return line.with_changes(body=[cst.Pass()])


__all__ = ["NotFollowed", "Record", "Surroundings", "parameter", "with_named_attributes", "with_named_entries"]
