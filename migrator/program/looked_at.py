"""Iterators that a program asks for a look at its data, in a session beside its Estimator.

`x, y = dataset.make_one_shot_iterator().get_next()`, then `sess.run([x, y])`: each run gives the next element. In
TensorFlow 2 a dataset is its own iterator, and `next(...)` gives that element. Understood is a function (or the top of
a file) in which a session does nothing but this; where anything else is done with it, all of it stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Union

import libcst as cst

from migrator.names.bindings import bound_in, dotted, hidden_in, read_bindings
from migrator.names.free import free
from migrator.program.calls import calls_in, functions_in, nodes_in, parameters_of
from migrator.program.folding import lines_instead
from migrator.program.held import may_be_written
from migrator.program.parsed import Blocked, ParsedFile, Remover, name_nodes, removed_by
from migrator.program.scopes import path_to
from migrator.program.surroundings import SESSIONS, asks_default_session, is_setting, lines_of_settings
from migrator.program.telling import is_look, tells
from migrator.rules.iterators import LOOKED_AT
from migrator.rules.sessions import INITIALIZERS

_MAKERS = ("make_one_shot_iterator", "make_initializable_iterator")
_FUNCTIONS = tuple(f"{module}.{name}" for module in ("tf.data", "tf.compat.v1.data") for name in _MAKERS)
_ENDS = "tf.errors.OutOfRangeError"
#: What may be asked of a tensor that is only told: an eager one answers alike.
_ASKED = ("shape", "dtype", "keys", "values", "items")
_INNER = (cst.Lambda, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp, cst.IfExp, cst.BooleanOperation)
_Scope = Union[cst.Module, cst.FunctionDef]


def without_looks(file: ParsedFile) -> tuple[ParsedFile, list[Blocked]]:
    """The file with looks at datasets as TensorFlow 2 takes them, and a remark for each iterator."""
    if "stimator" not in file.bare or not any(word in file.bare for word in _MAKERS) or asks_default_session(file):
        return file, []
    remover = _Remover(file)
    taken = set(file.names)
    scopes: list[_Scope] = [file.module, *functions_in(file.module)]
    for scope in scopes:
        look = _Reader(file, scope, taken).read()
        if look is not None:
            remover.add(look)
    return removed_by(remover, file)


@dataclass
class _Look:
    """The lines of a function that look at data: what each of them becomes.

    `lines` are in the places of some lines, `before` stand before some, `values` in the places of some expressions;
    `opened` are the `with` statements of sessions that go.
    """

    told: list[cst.CSTNode] = field(default_factory=list)
    lines: dict[cst.CSTNode, list[cst.BaseStatement]] = field(default_factory=dict)
    before: dict[cst.CSTNode, list[cst.BaseStatement]] = field(default_factory=dict)
    values: dict[cst.CSTNode, cst.BaseExpression] = field(default_factory=dict)
    opened: set[cst.CSTNode] = field(default_factory=set)


@dataclass
class _Iterator:
    """An iterator: what it goes through, its name (or a new one), and the line and targets of its `get_next`."""

    dataset: cst.BaseExpression
    name: str
    made: cst.SimpleStatementLine
    got: cst.SimpleStatementLine | None = None
    target: cst.BaseExpression | None = None

    @property
    def names(self) -> list[cst.Name]:
        return [] if self.target is None else name_nodes(self.target)


class _Refused(Exception):
    """Something else is done than to look at data."""


class _Reader:
    def __init__(self, file: ParsedFile, scope: _Scope, taken: set[str]) -> None:
        self.file = file
        self.scope = scope
        self.taken = taken
        self.look = _Look()
        self.runs = 0
        self.homes: dict[str, cst.CSTNode] = {}  # the session that runs an iterator, by the iterator's name
        self.again: dict[int, cst.SimpleStatementLine] = {}  # the line that gives an iterator's names their values

    def read(self) -> _Look | None:
        try:
            return self._read()
        except _Refused:
            return None

    def _read(self) -> _Look | None:
        if isinstance(self.scope, cst.FunctionDef) and self._is_part():
            return None
        own = [one for one in nodes_in(self.scope) if self._is_own(one)]
        lines = [one for one in own if isinstance(one, cst.SimpleStatementLine)]
        iterators = self._iterators(lines)
        if not iterators:
            return None
        self._check_names(iterators)
        sessions = self._sessions(own, lines)
        allowed: set[cst.CSTNode] = set(sessions.values())
        for name in {one.value for one in sessions.values()}:
            for mention in self._mentions(name):
                if mention not in allowed:
                    self._run(mention, name, iterators, sessions)
        runs = self.runs
        for iterator in iterators:
            self._rest(iterator, bool(runs))
        self._check_blocks()
        return self.look

    def _is_part(self) -> bool:
        """Whether a function is a generator, or a part of a training program: a model_fn, an input function."""
        assert isinstance(self.scope, cst.FunctionDef)
        if any(isinstance(one, (cst.Yield, cst.Await)) for one in nodes_in(self.scope)):
            return True
        names = {one.name.value for one in parameters_of(self.scope)}
        return bool(names & {"mode", "features", "labels"})

    def _is_own(self, node: cst.CSTNode) -> bool:
        inside = path_to(self.scope, node)[1:]
        return not any(isinstance(one, (cst.FunctionDef, cst.ClassDef, cst.Lambda)) for one in inside)

    def _mentions(self, name: str) -> list[cst.Name]:
        elsewhere = {inner for node in hidden_in(self.scope, name) for inner in name_nodes(node)}
        return [one for one in name_nodes(self.scope) if one.value == name and one not in elsewhere]

    # -- iterators -----------------------------------------------------------------------------------------------------

    def _iterators(self, lines: Sequence[cst.SimpleStatementLine]) -> list[_Iterator]:
        found: list[_Iterator] = []
        for line in lines:
            small = line.body[0] if len(line.body) == 1 else None
            if not isinstance(small, cst.Assign) or len(small.targets) != 1 or not isinstance(small.value, cst.Call):
                continue
            target, call = small.targets[0].target, small.value
            dataset = self._dataset(call)
            if dataset is not None and isinstance(target, cst.Name):
                found.append(_Iterator(dataset, target.value, line))
            elif isinstance(call.func, cst.Attribute) and call.func.attr.value == "get_next" and not call.args:
                made = call.func.value
                dataset = self._dataset(made) if isinstance(made, cst.Call) else None
                if dataset is not None:
                    name = free("iterator", self.taken)
                    self.taken.add(name)
                    found.append(_Iterator(dataset, name, line, line, target))
        for line in lines:
            small = line.body[0] if len(line.body) == 1 else None
            value = small.value if isinstance(small, cst.Assign) and len(small.targets) == 1 else None
            asked = dotted(value.func) if isinstance(value, cst.Call) and not value.args else None
            owner = next((one for one in found if asked == f"{one.name}.get_next"), None)
            if owner is not None and isinstance(small, cst.Assign):
                if owner.got is not None:
                    raise _Refused  # two elements of one run: in which order is not said
                owner.got, owner.target = line, small.targets[0].target
        return [one for one in found if one.got is not None]

    def _dataset(self, call: cst.Call) -> cst.BaseExpression | None:
        """What an iterator goes through that a call makes; None for another call."""
        if self.file.imports.tensorflow(call.func) in _FUNCTIONS:
            one = len(call.args) == 1 and call.args[0].keyword is None and not call.args[0].star
            return call.args[0].value if one else None
        func = call.func
        is_made = isinstance(func, cst.Attribute) and func.attr.value in _MAKERS and not call.args
        return func.value if isinstance(func, cst.Attribute) and is_made else None

    def _check_names(self, iterators: Sequence[_Iterator]) -> None:
        """Refuses names that get another value, or that are told in another way than by a name or a few of them."""
        bound = [one.name for one in bound_in(self.scope)]
        for iterator in iterators:
            target = iterator.target
            elements = [one.value for one in target.elements] if isinstance(target, (cst.Tuple, cst.List)) else [target]
            if not all(isinstance(one, cst.Name) for one in elements):
                raise _Refused
            own = [one.value for one in iterator.names]
            if iterator.made is not iterator.got:
                own.append(iterator.name)
            if len(set(own)) != len(own) or bound.count(iterator.name) > 1:
                raise _Refused
            # `x, y = sess.run([x, y])` gives them their values, once.
            again = [name for name in own if bound.count(name) != 1]
            if again and not (all(bound.count(name) == 2 for name in again) and self._given_by_run(iterator, again)):
                raise _Refused

    def _given_by_run(self, iterator: _Iterator, again: Sequence[str]) -> bool:
        """Whether names of an iterator's tensors get another value in one line, which is no line of a loop."""
        for line in [one for one in nodes_in(self.scope) if isinstance(one, cst.SimpleStatementLine)]:
            names = {one.name for one in read_bindings(line)}
            if line is not iterator.got and names & set(again):
                call = _made_by(line)
                is_run = isinstance(call, cst.Call) and (dotted(call.func) or "").endswith(".run")
                loops = any(isinstance(one, (cst.For, cst.While)) for one in path_to(self.scope, line))
                if loops or not is_run or not names >= set(again):
                    return False
                self.again[id(iterator)] = line
        return True

    # -- sessions ------------------------------------------------------------------------------------------------------

    def _sessions(
        self, own: Sequence[cst.CSTNode], lines: Sequence[cst.SimpleStatementLine]
    ) -> dict[cst.CSTNode, cst.Name]:
        """The statements that make sessions, with the names that these get."""
        found: dict[cst.CSTNode, cst.Name] = {}
        for node in own:
            if not isinstance(node, cst.With) or not any(self._is_session(item.item) for item in node.items):
                continue
            name = node.items[0].asname.name if node.items[0].asname is not None else None
            if len(node.items) != 1 or not isinstance(name, cst.Name) or not isinstance(node.body, cst.IndentedBlock):
                raise _Refused
            found[node] = name
        for line in lines:
            small = line.body[0] if len(line.body) == 1 else None
            if isinstance(small, cst.Assign) and self._is_session(small.value):
                if len(small.targets) != 1 or not isinstance(small.targets[0].target, cst.Name):
                    raise _Refused
                found[line] = small.targets[0].target
        made = [c for c in calls_in(self.scope) if self._is_session(c) and self._is_own(c)]
        if len(made) != len(found):
            raise _Refused
        for node in found:
            call = node.items[0].item if isinstance(node, cst.With) else _made_by(node)
            if not isinstance(call, cst.Call) or not all(is_setting(self.file, arg) for arg in call.args):
                raise _Refused
            for setting in lines_of_settings(self.file, call, self.scope):
                self.look.lines[setting] = []
            if isinstance(node, cst.With):
                self.look.opened.add(node)
            else:
                self.look.lines[node] = []
        return found

    def _is_session(self, node: cst.CSTNode) -> bool:
        return isinstance(node, cst.Call) and self.file.imports.tensorflow(node.func) in SESSIONS

    def _run(
        self,
        mention: cst.Name,
        name: str,
        iterators: Sequence[_Iterator],
        sessions: dict[cst.CSTNode, cst.Name],
    ) -> None:
        """Reads what a session is asked for. Raises _Refused for anything but the next elements."""
        around = self.file.parents.get(mention)
        call = self.file.parents.get(around) if isinstance(around, cst.Attribute) else None
        if not isinstance(around, cst.Attribute) or not isinstance(call, cst.Call) or call.func is not around:
            raise _Refused
        above = path_to(self.scope, call)
        line = next((one for one in reversed(above) if isinstance(one, cst.SimpleStatementLine)), None)
        if line is None or len(line.body) != 1 or not self._is_own(call):
            raise _Refused
        whole = isinstance(line.body[0], cst.Expr) and line.body[0].value is call
        if around.attr.value == "close" and not call.args and whole:
            self.look.lines[line] = []
            return
        if around.attr.value != "run" or len(call.args) != 1 or call.args[0].keyword is not None or call.args[0].star:
            raise _Refused
        asked = call.args[0].value
        if whole and self._initializes(asked, iterators, line):
            self.look.lines[line] = []
            return
        if any(isinstance(one, _INNER) for one in above[above.index(line) :]) or line in self.look.before:
            raise _Refused
        owners = [one for one in iterators if any(n.value in self._named(one) for n in name_nodes(asked))]
        if not owners or not self._is_picked(asked, [n for one in owners for n in self._named(one)]):
            raise _Refused
        self._check_handlers(above)
        if line in self.look.values or any(node in self.look.values for node in nodes_in(line)):
            raise _Refused
        if may_be_written(self.file, call):
            raise _Refused  # the arrays of a dataset are read only
        self.runs += 1
        self._check_home(name, owners, sessions, above)
        for owner in owners:
            if self.again.get(id(owner), line) is not line:
                raise _Refused  # after that line there would be nothing to run
        only = owners[0]
        assert only.target is not None
        following = cst.parse_expression(f"next({only.name})")
        if len(owners) == 1 and self.file.code(asked) == self.file.code(only.target) and isinstance(asked, cst.Name):
            self.look.values[call] = following
            return
        same = self._elements(asked) == self._elements(only.target) != []
        if len(owners) == 1 and same and self._is_unpacked(line, call):
            self.look.values[call] = following
            return
        self.look.before[line] = [
            cst.SimpleStatementLine(
                [cst.Assign([cst.AssignTarget(_bare(one.target))], cst.parse_expression(f"next({one.name})"))]
            )
            for one in owners
            if one.target is not None and isinstance(one.target, (cst.Name, cst.Tuple, cst.List))
        ]
        self.look.values[call] = asked

    def _check_home(
        self,
        name: str,
        owners: Sequence[_Iterator],
        sessions: dict[cst.CSTNode, cst.Name],
        above: Sequence[cst.CSTNode],
    ) -> None:
        """Refuses an iterator that several sessions run, or one again and again: it begins anew in each of them."""
        made = [node for node, given in sessions.items() if given.value == name]
        around = [node for node in made if node in above]
        home = around[-1] if around else made[0]
        if not around and len(made) > 1:
            raise _Refused  # one after the other has this name
        loops = [one for one in path_to(self.scope, home) if isinstance(one, (cst.For, cst.While))]
        for owner in owners:
            if self.homes.setdefault(owner.name, home) is not home:
                raise _Refused
            if any(one not in path_to(self.scope, owner.made) for one in loops):
                raise _Refused

    def _is_unpacked(self, line: cst.SimpleStatementLine, call: cst.Call) -> bool:
        """Whether a line gives the elements of a call's result to names."""
        small = line.body[0]
        if not isinstance(small, cst.Assign) or small.value is not call or len(small.targets) != 1:
            return False
        return isinstance(small.targets[0].target, (cst.Tuple, cst.List))

    def _elements(self, node: cst.BaseExpression) -> list[str]:
        """The elements of a display, as they are written."""
        return [self.file.code(one.value) for one in node.elements] if isinstance(node, (cst.Tuple, cst.List)) else []

    def _named(self, iterator: _Iterator) -> list[str]:
        return [one.value for one in iterator.names]

    def _is_picked(self, node: cst.BaseExpression, names: Sequence[str]) -> bool:
        """Whether an expression is made of elements of some names, and of displays of these."""
        if isinstance(node, cst.Name):
            return node.value in names
        if isinstance(node, (cst.Tuple, cst.List)):
            return all(isinstance(one, cst.Element) and self._is_picked(one.value, names) for one in node.elements)
        if isinstance(node, cst.Dict):
            pairs = [one for one in node.elements if isinstance(one, cst.DictElement)]
            return len(pairs) == len(node.elements) and all(
                isinstance(one.key, cst.SimpleString) and self._is_picked(one.value, names) for one in pairs
            )
        if isinstance(node, cst.Subscript) and len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
            key = node.slice[0].slice.value
            return isinstance(key, cst.SimpleString) and self._is_picked(node.value, names)
        return False

    def _initializes(self, asked: cst.BaseExpression, iterators: Sequence[_Iterator], line: cst.CSTNode) -> bool:
        """Whether what is run only begins iterators, or initializes what is not there."""
        elements = [one.value for one in asked.elements] if isinstance(asked, (cst.Tuple, cst.List)) else [asked]
        for one in elements:
            owner = next((it for it in iterators if dotted(one) == f"{it.name}.initializer"), None)
            if isinstance(one, cst.Call) and self.file.imports.tensorflow(one.func) in INITIALIZERS:
                continue
            loops = [n for n in path_to(self.scope, line) if isinstance(n, (cst.For, cst.While))]
            if owner is None or any(n not in path_to(self.scope, owner.made) for n in loops):
                return False  # it begins again
            mentions = [n for n in self._mentions(owner.name) if self._attribute(n) == "initializer"]
            if len(mentions) != 1:
                return False
        return bool(elements)

    def _attribute(self, node: cst.Name) -> str:
        around = self.file.parents.get(node)
        return around.attr.value if isinstance(around, cst.Attribute) and around.value is node else ""

    def _check_handlers(self, above: Sequence[cst.CSTNode]) -> None:
        """An iterator's end is a StopIteration. Raises _Refused where a handler is for another error of TensorFlow."""
        if isinstance(self.scope, cst.FunctionDef) and self._is_waited_for():
            raise _Refused
        for node in above:
            if not isinstance(node, cst.Try) or node.body not in above:
                continue
            for handler in node.handlers:
                name = self.file.imports.tensorflow(handler.type) if handler.type is not None else None
                if name == _ENDS and handler.type is not None:
                    self.look.values[handler.type] = cst.Name("StopIteration")
                elif handler.type is not None and any(
                    self.file.imports.tensorflow(one) is not None
                    for one in nodes_in(handler.type)
                    if isinstance(one, (cst.Name, cst.Attribute))
                ):
                    raise _Refused

    def _is_waited_for(self) -> bool:
        """Whether code that calls functions of the file waits for the end of the data."""
        for node in nodes_in(self.file.module):
            if not isinstance(node, cst.Try) or not any(
                self._is_end(one) for h in node.handlers for one in nodes_in(h)
            ):
                continue
            called = {(dotted(call.func) or "").rpartition(".")[2] for call in calls_in(node.body)}
            if called & {one.name.value for one in functions_in(self.file.module)}:
                return True
        return False

    def _is_end(self, node: cst.CSTNode) -> bool:
        return isinstance(node, (cst.Name, cst.Attribute)) and self.file.imports.tensorflow(node) == _ENDS

    # -- what is left --------------------------------------------------------------------------------------------------

    def _rest(self, iterator: _Iterator, has_runs: bool) -> None:
        """Reads what else is done with an iterator and its tensors, and says what its own lines become."""
        told = False
        runs = [node for node in self.look.values if isinstance(node, cst.Call)]
        inside = {name for call in runs for name in name_nodes(call)}
        own = {id(one) for one in iterator.names}
        for name in {one.value for one in iterator.names}:
            for mention in self._mentions(name):
                if id(mention) in own or mention in inside or self._is_value(mention, iterator):
                    continue
                self._check_told(mention)
                told = True
        if iterator.made is not iterator.got:
            for mention in self._mentions(iterator.name):
                line = next((n for n in path_to(self.scope, mention) if isinstance(n, cst.SimpleStatementLine)), None)
                gone = (
                    line is not None and self.look.lines.get(line) == [] and self._attribute(mention) == "initializer"
                )
                if line is not iterator.made and line is not iterator.got and not gone:
                    raise _Refused
        run = any(name.value in self._named(iterator) for name in inside)
        if told and run:
            raise _Refused  # which element is told would be another question
        begin = cst.Name("iter") if told else None
        value = (
            cst.Call(begin, [cst.Arg(iterator.dataset)])
            if begin is not None
            else cst.Call(cst.Attribute(_atom(iterator.dataset), cst.Name("as_numpy_iterator")))
        )
        line = cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(iterator.name))], value)])
        assert iterator.got is not None
        lines = [line]
        if iterator.made is not iterator.got:
            self.look.lines[iterator.made] = list(lines)
            lines = []
        if told:
            assert isinstance(iterator.target, (cst.Name, cst.Tuple, cst.List))
            following = cst.parse_expression(f"next({iterator.name})")
            lines.append(cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(iterator.target)], following)]))
        self.look.lines[iterator.got] = list(lines)
        self.look.told.append(iterator.made)

    def _is_value(self, mention: cst.Name, iterator: _Iterator) -> bool:
        """Whether a name has the value that a run gave it, in or behind that line."""
        line = self.again.get(id(iterator))
        position = self.file.position
        return line is not None and (mention in name_nodes(line) or position(mention) > position(line))

    def _check_told(self, mention: cst.Name) -> None:
        """Refuses what a tensor is asked for that an eager one would answer in another way, but for telling it."""
        above = path_to(self.scope, mention)
        line = next((one for one in above if isinstance(one, cst.SimpleStatementLine)), None)
        if line is None or not self._is_own(mention) or not self._tells(line):
            raise _Refused
        asked = [one.attr.value for one in above if isinstance(one, cst.Attribute)]
        if any(one not in _ASKED and one != "format" for one in asked):
            raise _Refused

    def _tells(self, line: cst.SimpleStatementLine) -> bool:
        """Whether a line tells something, and computes nothing for that."""
        small = line.body[0] if len(line.body) == 1 else None
        call = small.value if isinstance(small, cst.Expr) else None
        if not isinstance(call, cst.Call) or not tells(self.file, call.func):
            return False
        inner = [one for arg in call.args for one in calls_in(arg)]
        return not any(isinstance(one, (cst.NamedExpr, cst.Await)) for one in nodes_in(call)) and all(
            is_look(self.file, one.func) or (isinstance(one.func, cst.Attribute) and one.func.attr.value in _ASKED)
            for one in inner
        )

    def _check_blocks(self) -> None:
        """Refuses a block of which nothing would be left."""
        for node in nodes_in(self.scope):
            if isinstance(node, cst.IndentedBlock) and all(self.look.lines.get(line) == [] for line in node.body):
                raise _Refused


def _made_by(line: cst.CSTNode) -> cst.BaseExpression | None:
    """What a line of one assignment gives."""
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
    return small.value if isinstance(small, cst.Assign) else None


def _bare(node: cst.BaseExpression | None) -> Any:
    return node.deep_clone() if node is not None else None


def _atom(node: cst.BaseExpression) -> cst.BaseExpression:
    """An expression that a method may be called of."""
    if isinstance(node, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)) or getattr(node, "lpar", None):
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


class _Remover(Remover):
    """Writes what looks at data as it is in TensorFlow 2."""

    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self._all = _Look()

    def add(self, look: _Look) -> None:
        """Takes the lines of another function."""
        self._all.lines.update(look.lines)
        self._all.before.update(look.before)
        self._all.values.update(look.values)
        self._all.opened |= look.opened
        for line in look.told:
            message = "the program now inspects its data without a graph: one element per run"
            self.gone.append(Blocked(LOOKED_AT, line, message))

    def leave_SimpleStatementLine(self, original_node: cst.SimpleStatementLine, updated_node: Any) -> Any:
        lines = self._all.lines.get(original_node)
        if lines is not None:
            return lines_instead(lines, updated_node.leading_lines)
        before = self._all.before.get(original_node)
        if before is not None:
            return lines_instead([*before, updated_node.with_changes(leading_lines=())], updated_node.leading_lines)
        return updated_node

    def leave_With(self, original_node: cst.With, updated_node: cst.With) -> Any:
        if original_node not in self._all.opened or not isinstance(updated_node.body, cst.IndentedBlock):
            return updated_node
        return lines_instead(updated_node.body.body, updated_node.leading_lines)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        return self._value(original_node, updated_node)

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        return self._value(original_node, updated_node)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        return self._value(original_node, updated_node)

    def _value(self, original_node: cst.CSTNode, updated_node: cst.BaseExpression) -> cst.BaseExpression:
        return self._all.values.get(original_node, updated_node)


__all__ = ["without_looks"]
