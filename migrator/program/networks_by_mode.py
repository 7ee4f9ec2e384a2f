"""A network that each branch of the mode makes for itself, made once above them.

`if mode == TRAIN: logits = net(x, True)` with `logits = net(x, False)` in the other branches becomes one line,
`logits = net(x, mode == TRAIN)`: a Keras model is made once, and told the mode when it is called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import cast

import libcst as cst

from migrator.names.bindings import all_given, names_changed
from migrator.program.calls import calls_in, functions_in, is_false, is_true, nodes_in, number, parameters_of, string
from migrator.program.modes import ALL, EVAL, PREDICT, TRAIN, ModalStatement, ModeNames, SpecialisedBody, specialise
from migrator.program.parsed import Blocked, ParsedFile, names_in
from migrator.program.reductions import Edits, applied
from migrator.program.scopes import bindings, path_to
from migrator.walking import of_kinds

_MODE = "mode"  # an Estimator gives it by this name
_BRANCHES = (cst.If, cst.Else, cst.IndentedBlock)
#: What makes no variable, draws nothing, and adds nothing that a network may ask for: it may stand behind it as well.
_HARMLESS = ("tf.logging.", "tf.summary.", "tf.train.")
_LAYERS = ("tf.layers.", "tf.contrib.layers.", "tf.contrib.slim.", "tf.keras.")
_PLAIN = frozenset(("tf.argmax", "tf.cast", "tf.constant", "tf.identity", "tf.one_hot", "tf.to_float", "tf.to_int32"))
_PYTHON = frozenset(("print", "int", "float", "bool", "str", "len", "isinstance"))


def with_networks_by_mode(file: ParsedFile) -> ParsedFile:
    """The file with such calls of model_fns said once, where all that stands between may follow the network."""
    if "ModeKeys" not in file.bare or _MODE not in file.bare or "EstimatorSpec" not in file.bare:
        return file
    for function in functions_in(file.module):
        told = any(one.name.value == _MODE for one in parameters_of(function))
        if told and isinstance(function.body, cst.IndentedBlock):
            once = _Networks(file, function).read()
            if once is not None:
                return with_networks_by_mode(_applied(file, function, once))
    return file


@dataclass(frozen=True)
class _Once:
    """A line for all modes, those that it stands for, and which statement of its function it comes before."""

    line: cst.SimpleStatementLine
    instead_of: Sequence[cst.SimpleStatementLine]
    before: int


def _applied(file: ParsedFile, function: cst.FunctionDef, once: _Once) -> ParsedFile:
    number_of_function = list(functions_in(file.module)).index(function)
    body = function.body.body
    if body[once.before] in once.instead_of:
        edits = Edits({one: [] for one in once.instead_of})
        edits.lines[cast("cst.BaseStatement", body[once.before])] = [once.line]
        return applied(file, edits)
    file = applied(file, Edits({one: [] for one in once.instead_of}))
    place = cast("cst.BaseStatement", list(functions_in(file.module))[number_of_function].body.body[once.before])
    return applied(file, Edits({place: [once.line, place]}))


@dataclass(frozen=True)
class _Made:
    """A line `name = call(...)`, the modes that run it, and how many statements come before it."""

    line: cst.SimpleStatementLine
    name: str
    call: cst.Call
    modes: frozenset[str]
    position: int


class _Networks:
    """The networks of one model_fn."""

    def __init__(self, file: ParsedFile, function: cst.FunctionDef) -> None:
        self.file = file
        self.function = function

    def read(self) -> _Once | None:
        """The first network that is made by several branches."""
        assert isinstance(self.function.body, cst.IndentedBlock)
        if of_kinds(self.function.body, cst.Global, cst.Nonlocal):
            return None
        try:
            body = specialise(self.function.body.body, self.file.imports, _MODE, True, self.file.functions)
        except Blocked:
            return None
        by_name: dict[str, list[_Made]] = {}
        for position, statement in enumerate(body.statements):
            made = self._made(statement, position)
            if made is not None:
                by_name.setdefault(made.name, []).append(made)
        for made_by_modes in by_name.values():
            once = self._once(made_by_modes, body)
            if once is not None:
                return once
        return None

    def _made(self, statement: ModalStatement, position: int) -> _Made | None:
        line = statement.node
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
        if not isinstance(small, cst.Assign) or len(small.targets) != 1 or not isinstance(small.value, cst.Call):
            return None
        target = small.targets[0].target
        if not isinstance(target, cst.Name) or statement.after or statement.modes == ALL:
            return None
        name = self.file.imports.tensorflow(small.value.func) or ""
        if name.startswith("tf.") and not name.startswith(_LAYERS):
            return None
        assert isinstance(line, cst.SimpleStatementLine)
        around = path_to(self.function, line)[1:-1]
        if not all(isinstance(one, _BRANCHES) for one in around):
            return None
        return _Made(line, target.value, small.value, statement.modes, position)

    def _once(self, made: Sequence[_Made], body: SpecialisedBody) -> _Once | None:
        """One line in the place of some, which together are of all modes."""
        modes = [mode for one in made for mode in one.modes]
        spoken_of = {mode for spec in body.specs for mode in spec.modes}
        if not spoken_of or len(made) < 2 or len(modes) != len(set(modes)) or not {TRAIN, EVAL} <= set(modes):
            return None
        if PREDICT in spoken_of and PREDICT not in modes:
            return None
        call = self._said(made)
        first = min(made, key=lambda one: one.position)
        place = self._outermost(first.line)
        if call is None or not all(self._may_move(one, place, body) for one in made):
            return None
        small = first.line.body[0]
        assert isinstance(small, cst.Assign)
        above = first.line.leading_lines if place is first.line else ()  # others stay where they were
        line = first.line.with_changes(body=[small.with_changes(value=call)], leading_lines=above)
        assert isinstance(self.function.body, cst.IndentedBlock)
        before = next(at for at, one in enumerate(self.function.body.body) if one is place)
        return _Once(line, [one.line for one in made], before)

    def _outermost(self, line: cst.SimpleStatementLine) -> cst.BaseStatement:
        """The statement of the function itself that a line stands in."""
        place = path_to(self.function, line)[2]
        assert isinstance(place, cst.BaseStatement)
        return place

    def _may_move(self, made: _Made, place: cst.BaseStatement, body: SpecialisedBody) -> bool:
        """Whether a line does the same before all of a statement of the function."""
        if not all(self._is_harmless(call) for arg in made.call.args for call in calls_in(arg)):
            return False
        assert isinstance(self.function.body, cst.IndentedBlock)
        above = takewhile(lambda one: one is not place, self.function.body.body)
        before = {id(node) for one in above for node in nodes_in(one)}
        asked = names_in(made.call).union(*(names_in(one) for one in self._inner())) - self.file.imports.names.keys()
        last = self._outermost(made.line)
        behind = [one for one in self.function.body.body if id(one) not in before]
        between = [*takewhile(lambda one: one is not last, behind), last]
        changed = {id(node) for one in between for node in nodes_in(one)}
        if any(name in asked and id(node) in changed for name, node in bindings(self.function)):
            return False
        for statement in body.statements[: made.position]:
            if not statement.modes & made.modes:
                continue
            if made.name in names_in(statement.node):
                return False
            if id(statement.node) in before:
                continue
            if not self._may_follow(statement) or names_changed((statement.node,)) & asked:
                return False
        return True

    def _inner(self) -> list[cst.CSTNode]:
        """The functions inside, which may read what a line changes."""
        return of_kinds(self.function.body, cst.FunctionDef, cst.Lambda)

    def _may_follow(self, statement: ModalStatement) -> bool:
        """Whether a statement does nothing that a network could notice: it makes no variables, and draws nothing."""
        if not isinstance(statement.node, (cst.SimpleStatementLine, cst.If)) or statement.after:
            return False
        if of_kinds(statement.node, cst.Await, cst.Yield, cst.Del, cst.Global):
            return False
        if any(not isinstance(one, cst.Name) for one, _ in all_given(statement.node)) or _changes_in_place(statement):
            return False  # what the network is made of may read it
        return all(self._is_harmless(call) for call in calls_in(statement.node))

    def _is_harmless(self, call: cst.Call) -> bool:
        name = self.file.imports.tensorflow(call.func) or ""
        if name:
            return name in _PLAIN or name.startswith(_HARMLESS)
        if isinstance(call.func, cst.Attribute):  # `params.get("rate", 0.5)`
            given = [arg.value for arg in call.args if not arg.star]
            literal = all(number(one) is not None or string(one) is not None for one in given)
            return call.func.attr.value == "get" and literal and bool(given)
        return isinstance(call.func, cst.Name) and call.func.value in _PYTHON - self.file.names_at_top

    # -- what is said ----------------------------------------------------------------------------------------------

    def _said(self, made: Sequence[_Made]) -> cst.Call | None:
        """The call of all modes; None where the modes differ in more than what the training alone is told."""
        training = next(one for one in made if TRAIN in one.modes)
        others = [one for one in made if one is not training]
        if "#" in "".join(self.file.code(one.call) for one in made):
            return None
        told = self._arguments(training.call, [one.call for one in made])
        different = [self._arguments(one.call, [one.call for one in made]) for one in others]
        if told is None or any(one is None or one.keys() != told.keys() for one in different):
            return None
        if any(self.file.code(one.call.func) != self.file.code(training.call.func) for one in others):
            return None
        args: list[cst.Arg] = []
        for key, arg in told.items():
            rest = [one[key].value for one in different if one is not None]
            texts = {self.file.code(value) for value in rest}
            if texts == {self.file.code(arg.value)}:
                args.append(arg)
                continue
            tell = self._by_mode if training.modes == {TRAIN} else self._tested
            said = tell(arg.value, rest[0]) if len(texts) == 1 and not arg.star else None
            if said is None:
                return None
            args.append(arg.with_changes(value=said))
        return training.call.with_changes(args=args)

    def _arguments(self, call: cst.Call, calls: Sequence[cst.Call]) -> Mapping[object, cst.Arg] | None:
        """The arguments by place or name, and what the function takes by itself where another call says it."""
        named = {arg.keyword.value for one in calls for arg in one.args if arg.keyword is not None}
        function = self.file.functions.get(call.func.value) if isinstance(call.func, cst.Name) else None
        defaults = {one.name.value: one.default for one in parameters_of(function)} if function is not None else {}
        places: Sequence[object] = range(max(len(one.args) for one in calls))
        stars = any(arg.star for one in calls for arg in one.args)
        plain = function is not None and not stars and not function.params.posonly_params
        if function is not None and plain and len(places) <= len(function.params.params):
            places = [one.name.value for one in function.params.params]
            named |= {str(places[at]) for one in calls for at, arg in enumerate(one.args) if arg.keyword is None}
        found: dict[object, cst.Arg] = {
            places[at] if arg.keyword is None else arg.keyword.value: arg for at, arg in enumerate(call.args)
        }
        missing = named - found.keys()
        if not missing:
            return found
        for name in sorted(missing):
            default = defaults.get(name)
            if default is None or not (is_true(default) or is_false(default) or number(default) is not None):
                return None
            equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
            found[name] = cst.Arg(default, keyword=cst.Name(name), equal=equal)
        return found

    def _by_mode(self, training: cst.BaseExpression, other: cst.BaseExpression) -> cst.BaseExpression | None:
        """`mode == TRAIN` for True and False, `rate if mode == TRAIN else 1.0` for numbers."""
        if is_true(training) and is_false(other):
            return self._test(cst.Equal())
        if is_false(training) and is_true(other):
            return self._test(cst.NotEqual())
        if number(other) is None:
            return None
        test = self._test(cst.Equal())
        return None if test is None else cst.IfExp(test, training, other)

    def _tested(self, training: cst.BaseExpression, other: cst.BaseExpression) -> cst.BaseExpression | None:
        """`mode == TRAIN` of a call that is made in other modes as well, where the rest is told False."""
        told = ModeNames(self.file.imports, _MODE).when(training) == frozenset((TRAIN,))
        return training if told and is_false(other) else None

    def _test(self, operator: cst.BaseCompOp) -> cst.Comparison | None:
        """The mode compared with that of the training, by the name that the function has for such modes."""
        names = ModeNames(self.file.imports, _MODE)
        for node in nodes_in(self.function):
            key = node.comparisons[0].comparator if isinstance(node, cst.Comparison) else None
            if isinstance(key, cst.Attribute) and key.attr.value in ("TRAIN", "EVAL", "PREDICT"):
                train = key.with_changes(attr=cst.Name("TRAIN"))
                test = cst.Comparison(cst.Name(_MODE), [cst.ComparisonTarget(cst.Equal(), train)])
                if names.when(test) == frozenset((TRAIN,)):
                    return cst.Comparison(cst.Name(_MODE), [cst.ComparisonTarget(operator, train)])
        return None


def _changes_in_place(statement: ModalStatement) -> bool:
    """Whether a statement may change a part of an object: `params["rate"] += 1`."""
    targets = [one.target for one in of_kinds(statement.node, cst.AssignTarget, cst.AugAssign)]
    return any(isinstance(part, (cst.Attribute, cst.Subscript)) for one in targets for part in nodes_in(one))


__all__ = ["with_networks_by_mode"]
