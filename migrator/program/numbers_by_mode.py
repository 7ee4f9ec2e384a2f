"""Numbers that the mode decides, said where they are given: `dropout(net, rate=0.3 if mode == "train" else 0.0)`.

A function that is told the mode is evaluated in each mode with nothing else known. What one of its calls is given, and
is one value in training and one number in the other modes, is written as that: however the program came to it, by
branches, helpers, tables, partial functions or dicts of arguments. What only served to choose the number goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import libcst as cst

from migrator.ir.evaluate import Evaluator
from migrator.ir.machine import Arguments, TooMuch, present
from migrator.ir.program import called
from migrator.ir.values import Constant, Function, Method, Object, Site, Table, Value
from migrator.names.bindings import owns
from migrator.program.calls import calls_in, functions_in, nodes_in, number, parameters_of, string
from migrator.program.known import loaded, program_of
from migrator.program.modes import ALL, EVAL, PREDICT, TRAIN, ModeNames
from migrator.program.parsed import ParsedFile, name_nodes, names_in
from migrator.program.reductions import Edits, applied
from migrator.program.scopes import bindings, path_to, rebound
from migrator.query.model import specs
from migrator.walking import of_kinds

_MODE = "mode"  # an Estimator gives it by this name
_NONE_OF_THEM = "no mode of an Estimator"
_DROPS = "dropout"
_FLAGS = ("training", "is_training", _MODE)  # arguments that say the mode itself
_Values = Mapping[str, Mapping[cst.CSTNode, list[Value]]]


def with_numbers_by_mode(
    file: ParsedFile, others: Iterable[ParsedFile], elsewhere: Callable[[str], bool]
) -> ParsedFile:
    """The file with such numbers as conditional expressions in the calls that are given them.

    `elsewhere` says whether a name stands in another file: a function of that name stays.
    """
    if "ModeKeys" not in file.bare or _MODE not in file.bare:
        return file
    others = list(others)
    if not any(_DROPS in one.text.lower() for one in (file, *others)):
        return file
    for function in functions_in(file.module):
        told = [one for one in parameters_of(function) if one.name.value == _MODE]
        changed = [name for name, node in bindings(function) if name == _MODE and node not in told]
        if not told or changed or not isinstance(function.body, cst.IndentedBlock):
            continue
        suspects = _Suspects(file, function)
        if suspects.arguments:
            if not suspects.asks_only_for_modes() or not _may_be_numbers(suspects, others):
                continue
            evaluator = program_of(file, others).evaluator
            values = _by_mode(evaluator, file, function)
            edits = _Edits(file, evaluator, function, suspects, values).read() if values is not None else Edits()
            if edits:
                plain = _without_unread(applied(file, edits), suspects, elsewhere)
                return with_numbers_by_mode(plain, others, elsewhere)
    return file


class _Suspects:
    """The arguments of calls of a function that may be numbers which the mode decides, by the names that they read.

    `names` are those that stand for something which the mode decides, as far as that is no computation.
    """

    def __init__(self, file: ParsedFile, function: cst.FunctionDef) -> None:
        self.file = file
        self.function = function
        self.names = {_MODE}
        self.flags = {_MODE}
        inner = {one for nested in functions_in(function) if nested is not function for one in nodes_in(nested)}
        self.nodes = [one for one in nodes_in(function.body) if one not in inner]
        self.assigned = [one for one in self.nodes if type(one) is cst.Assign]
        known: set[str] = set()
        while known != self.names:
            known = set(self.names)
            self._spread(function.body, False)
        self.arguments = [
            arg for call in self.nodes if isinstance(call, cst.Call) for arg in call.args if self._may_be_a_number(arg)
        ]

    def _spread(self, block: cst.CSTNode, decided: bool) -> None:
        for node in getattr(block, "body", ()):
            if isinstance(node, cst.If):
                self._of_condition(node, decided)
            elif isinstance(node, (cst.With, cst.For, cst.While, cst.Try)):
                self._spread(node.body, decided)
            elif isinstance(node, cst.SimpleStatementLine):
                for small in node.body:
                    self._assigned(small, decided)

    def _of_condition(self, node: cst.If | cst.Else, decided: bool) -> None:
        decided = decided or (isinstance(node, cst.If) and bool(names_in(node.test) & self.names))
        self._spread(node.body, decided)
        if isinstance(node, cst.If) and node.orelse is not None:
            self._of_condition(node.orelse, decided)

    def _assigned(self, small: cst.BaseSmallStatement, decided: bool) -> None:
        if not isinstance(small, cst.Assign):
            return
        if (decided or names_in(small.value) & self.names) and self._chooses(small.value):
            self.names |= {one.value for one in _stored(small)}
            if _says_whether(small.value):
                self.flags |= {one.value for one in _stored(small)}

    def _chooses(self, value: cst.BaseExpression) -> bool:
        """Whether an expression may choose a number: nothing in it is computed by a library."""
        if isinstance(value, cst.Name) and value.value == "None":
            return False
        return all(self._is_own(call) for call in calls_in(value))

    def _is_own(self, call: cst.Call) -> bool:
        return not (self.file.imports.tensorflow(call.func) or "").startswith("tf.")

    def _may_be_a_number(self, arg: cst.Arg) -> bool:
        value = arg.value
        if arg.keyword is not None and arg.keyword.value in _FLAGS:
            return False
        if isinstance(value, cst.Name) and (value.value == _MODE or (not arg.star and self._is_said(value.value))):
            return False
        if isinstance(value, cst.Name) and not arg.star and self._is_a_truth(value.value):
            return False
        if isinstance(value, (cst.Dict, cst.Lambda)) or _says_whether(value) or _is_choice(value):
            return False
        return bool(names_in(value) & self.names) and self._chooses(value)

    def outside_of_training(self) -> set[cst.BaseExpression]:
        """What the suspects are given, where that may be a number outside of training: no text, no part of a spec, and
        not in a branch for training alone.
        """
        names = ModeNames(self.file.imports, _MODE)
        equal = [one for one in self.nodes if isinstance(one, cst.If) and _is_equality(one.test)]
        training = [one.body for one in equal if names.when(one.test) == frozenset((TRAIN,))]
        inside = {call for block in training for call in calls_in(block)}
        found: set[cst.BaseExpression] = set()
        for call in self.nodes:
            if isinstance(call, cst.Call) and call not in inside and not self._is_spec(call):
                found |= {arg.value for arg in call.args if arg in self.arguments and not _formats_text(arg.value)}
        return found

    def _is_spec(self, call: cst.Call) -> bool:
        return (self.file.imports.tensorflow(call.func) or "").endswith("EstimatorSpec")

    def asks_only_for_modes(self) -> bool:
        """Whether the mode is compared with those of Estimators alone, here and in what is asked for a number."""
        asked = [self.file.functions.get(name) for one in self.arguments for name in names_in(one.value)]
        nodes = [node for one in asked if one is not None for node in nodes_in(one)]
        compared = [one for one in nodes if isinstance(one, cst.Comparison)]
        compared += [one for one in self.nodes if isinstance(one, cst.Comparison) and _MODE in names_in(one)]
        literals = [node for one in compared for node in of_kinds(one, cst.SimpleString)]
        texts = [string(node) for node in literals]
        return all(text is None or text in ALL for text in texts)

    def _is_a_truth(self, name: str) -> bool:
        """Whether a name of the function is given nothing but what is true or false: `training = mode == TRAIN`."""
        given = [node for bound, node in bindings(self.function) if bound == name]
        stored = [one for one in self.assigned if name in {n.value for n in _stored(one)}]
        plain = [one for one in stored if len(one.targets) == 1 and isinstance(one.targets[0].target, cst.Name)]
        said = len(plain) == len(stored) == len(given)
        return said and bool(stored) and all(_says_whether(one.value) for one in stored)

    def _is_said(self, name: str) -> bool:
        """Whether a name is given its value once, by a conditional expression that says the mode."""
        given = [one for one in self.assigned if name in names_in(one.targets[0].target)]
        return len(given) == 1 and _is_choice(given[0].value)


def _is_equality(test: cst.BaseExpression) -> bool:
    """`mode == TRAIN`, which no other value of the mode makes true."""
    return (
        isinstance(test, cst.Comparison)
        and len(test.comparisons) == 1
        and isinstance(test.comparisons[0].operator, cst.Equal)
    )


def _formats_text(value: cst.BaseExpression) -> bool:
    """`"%s" % mode`."""
    if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Modulo):
        return string(value.left) is not None
    return isinstance(value, cst.FormattedString)


def _says_whether(value: cst.BaseExpression) -> bool:
    """`mode == TRAIN`, `not training`."""
    if isinstance(value, cst.UnaryOperation):
        return isinstance(value.operator, cst.Not)
    return isinstance(value, cst.Comparison)


def _is_choice(value: cst.BaseExpression) -> bool:
    """`a if mode == TRAIN else 1.0`: this is what is written here."""
    if isinstance(value, cst.BinaryOperation) and number(value.left) is not None:
        value = value.right
    return (
        isinstance(value, cst.IfExp)
        and any(number(one) is not None for one in (value.body, value.orelse))
        and not any(_MODE in names_in(one) for one in (value.body, value.orelse))
        and not any(isinstance(one, cst.IfExp) for one in (value.body, value.orelse))
    )


def _may_be_numbers(suspects: _Suspects, others: Sequence[ParsedFile]) -> bool:
    """Whether a suspect may be a number outside of training, as far as the function by itself says that.

    A run of the whole script, which knows more, takes many times as long, and few of the scripts that are asked about
    choose any number by the mode. The run is what counts wherever the function may be given one, or where code may give
    names of its module other values before.
    """
    file, function = suspects.file, suspects.function
    if any(arg.star for arg in suspects.arguments) or any("global " in one.bare for one in (file, *others)):
        return True
    asked = suspects.outside_of_training()
    if not asked:
        return False
    evaluator = loaded(file, others)
    try:
        given = _callee(evaluator, file, function)
        if given is None:
            return False
        callee, owner = given
        told_by_estimators = False
        for mode in (EVAL, PREDICT, _NONE_OF_THEM):
            if mode == _NONE_OF_THEM and told_by_estimators:
                break
            evaluator.noted, evaluator.work = {}, 0
            given_to_it = _arguments(evaluator, callee, function, mode, owner is not None)
            graph = called(evaluator, mode, callee, given_to_it)
            told_by_estimators = told_by_estimators or bool(specs(graph))
            if any(_is_number(value) for node in asked for value in evaluator.noted.get(node, ())):
                return True
            # What is surely something else in one of these modes is not one number in all of them.
            asked = {node for node in asked if _only(evaluator.noted.get(node, ())) is None}
            if not asked:
                break
    except (TooMuch, RecursionError):
        return True
    finally:
        evaluator.noted, evaluator.work = {}, 0
        evaluator.regions.clear()
        evaluator.conditions.clear()
    return not evaluator.complete


def _by_mode(evaluator: Evaluator, file: ParsedFile, function: cst.FunctionDef) -> _Values | None:
    """What the expressions of a function are in each mode, with nothing else known; None where it is not evaluated.

    None also where it drops nothing out in training: such a function makes the data of the mode, say.
    """
    if evaluator.main is None or not evaluator.complete:
        return None
    before, called_before = evaluator.noted, evaluator.called
    found: dict[str, Mapping[cst.CSTNode, list[Value]]] = {}
    drops, told_by_estimators = False, False
    try:
        given = _callee(evaluator, file, function)
        modes = sorted(ALL) if given is not None else []
        for mode in modes:
            evaluator.noted, evaluator.work = {}, 0
            callee, owner = given if given is not None else (None, None)
            assert callee is not None
            given_to_it = _arguments(evaluator, callee, function, mode, owner is not None)
            graph = called(evaluator, mode, callee, given_to_it)
            found[mode] = evaluator.noted
            told_by_estimators = told_by_estimators or bool(specs(graph))
            if mode == modes[-1] == max(ALL) and not told_by_estimators:
                modes.append(_NONE_OF_THEM)  # somebody else may tell it anything
            drops = drops or any(_DROPS in one.operation.symbol.lower() for one in graph.effects)
    except (TooMuch, RecursionError):
        return None
    finally:
        evaluator.noted, evaluator.called, evaluator.work = before, called_before, 0
        evaluator.regions.clear()
        evaluator.conditions.clear()
    return found if drops else None


def _callee(evaluator: Evaluator, file: ParsedFile, function: cst.FunctionDef) -> tuple[Value, Object | None] | None:
    """A function as a value, where it stands at the top of its file, in a class there, or in one function there."""
    scope = evaluator.load(file).scope
    around = [one for one in path_to(file.module, function) if isinstance(one, (cst.FunctionDef, cst.ClassDef))]
    outer = evaluator.store.get((scope, around[0].name.value))
    if len(around) == 1:
        return (outer, None) if isinstance(outer, Function) and outer.node is function else None
    if len(around) > 2:
        return None
    if isinstance(around[0], cst.ClassDef):
        own = evaluator.store.held(outer.scope) if hasattr(outer, "scope") else {}
        method = own.get(function.name.value)
        if not isinstance(method, Function) or method.node is not function or method.owner is None:
            return None
        made = Object(evaluator.nowhere, method.owner)
        return Method(evaluator.nowhere, made, method.name, method), made
    if not isinstance(outer, Function) or outer.node is not around[0]:
        return None
    evaluator.work = 0
    mark = evaluator.store.mark()
    evaluator.apart(partial(evaluator.enter_function, outer))  # its parameters may be anything
    made_there = evaluator.store.since(mark).values()
    inner = [one for one in made_there if isinstance(one, Function) and one.node is function]
    return (inner[-1], None) if inner else None


def _arguments(evaluator: Evaluator, callee: Value, function: cst.FunctionDef, mode: str, bound: bool) -> Arguments:
    """Everything that the parameters of a function may be given, and the mode."""
    site = Site(evaluator.main_path, function)
    names = [one.name.value for one in parameters_of(function)][1 if bound else 0 :]
    return Arguments(
        (),
        {
            name: Constant(site, mode)
            if name == _MODE
            else evaluator.operation(None, "parameter", callee, Constant(None, name))
            for name in names
        },
    )


def _only(values: Sequence[Value]) -> Value | None:
    """The one value among those of several times."""
    first = values[0] if values else None
    same = all(one is first or _same_constant(one, first) for one in values)
    return first if same else None


@dataclass
class _Edits:
    """The arguments of a function's calls in other words; `evaluator` knows what its dicts hold."""

    file: ParsedFile
    evaluator: Evaluator
    function: cst.FunctionDef
    suspects: _Suspects
    values: _Values
    edits: Edits = field(default_factory=Edits)

    def read(self) -> Edits:
        for call in self.suspects.nodes:
            if isinstance(call, cst.Call) and any(arg in self.suspects.arguments for arg in call.args):
                args = [one for arg in call.args for one in self._said(arg)]
                if any(new is not old for new, old in zip(args, call.args)) or len(args) != len(call.args):
                    self.edits.expressions[call] = call.with_changes(args=args)
        nested = [one for call in self.edits.expressions for one in nodes_in(call) if one is not call]
        for one in nested:
            self.edits.expressions.pop(one, None)  # in another round
        return self.edits

    def _said(self, arg: cst.Arg) -> list[cst.Arg]:
        if arg not in self.suspects.arguments or self.file.may_have_comment(arg) or arg.star == "*":
            return [arg]
        found = {mode: _only(noted.get(arg.value, [])) for mode, noted in self.values.items()}
        if arg.star:
            return self._entries(arg, found)
        chosen = self._chosen(found, arg.value)
        return [arg] if chosen is None else [arg.with_changes(value=chosen)]

    def _entries(self, arg: cst.Arg, found: Mapping[str, Value | None]) -> list[cst.Arg]:
        """The arguments of a dict that is given as `**settings`."""
        tables = {mode: value for mode, value in found.items() if value is not None}
        entries: dict[str, dict[str, Value]] = {}
        for mode, table in tables.items():
            known = self.evaluator.entries_of(table) if isinstance(table, Table) else None
            if known is None or known.more:
                return [arg]
            for key, value in known.items.values():
                if not isinstance(key, Constant) or not isinstance(key.value, str):
                    return [arg]
                entries.setdefault(key.value, {})[mode] = present(value)
        made: list[cst.Arg] = []
        for name, by_mode in entries.items():
            if by_mode.keys() != tables.keys():
                return [arg]
            given: dict[str, Value | None] = dict(by_mode)
            said = self._chosen(given, arg.value) or self._steady(given, arg.value)
            if said is None:
                return [arg]
            equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
            made.append(cst.Arg(said, keyword=cst.Name(name), equal=equal))
        return made or [arg]

    def _steady(self, found: Mapping[str, Value | None], at: cst.BaseExpression) -> cst.BaseExpression | None:
        """The one value of all modes."""
        values = list(found.values())
        same = all(one is values[0] or _same_constant(one, values[0]) for one in values)
        return self._expression(values[0], at) if values and values[0] is not None and same else None

    def _chosen(self, found: Mapping[str, Value | None], at: cst.BaseExpression) -> cst.BaseExpression | None:
        """`value if mode == "train" else number`; None where that is not what the modes give."""
        training = found.get(TRAIN)
        rest = [value for mode, value in found.items() if mode != TRAIN and value is not None]
        if training is None or not rest or not all(_is_number(one) and _same_constant(one, rest[0]) for one in rest):
            return None
        if _same_constant(training, rest[0]):
            return None
        body, orelse = self._expression(training, at), _literal(rest[0])
        if body is None or orelse is None:
            return None
        test = cst.Comparison(cst.Name(_MODE), [cst.ComparisonTarget(cst.Equal(), cst.SimpleString(f'"{TRAIN}"'))])
        return cst.IfExp(test, body, orelse)

    def _expression(self, value: Value, at: cst.BaseExpression) -> cst.BaseExpression | None:
        """An expression for a value at a place of the function: one of its own for it, or its literal."""
        noted = self.values.get(TRAIN, {})
        for node, values in noted.items():
            if not isinstance(node, cst.BaseExpression) or not any(value is one for one in values):
                continue
            if self._may_stand(node, at):
                return node
        return _literal(value) if _is_number(value) else None

    def _may_stand(self, node: cst.BaseExpression, at: cst.BaseExpression) -> bool:
        """Whether an expression of the function means the same at another place of it, and does nothing."""
        if node not in self.suspects.nodes or names_in(node) & self.suspects.names:
            return False
        if not all(_asks_an_entry(call) for call in calls_in(node)):
            return False
        if of_kinds(node, cst.IfExp, cst.NamedExpr, cst.Await, cst.Yield):
            return False
        inner = path_to(self.function, at)
        hidden = [one for one in inner[1:] if any(owns(one, name) for name in names_in(node))]
        return not hidden and rebound(self.file, self.function, node, node, at) is None


def _asks_an_entry(call: cst.Call) -> bool:
    """`params.get("rate", 0.5)`."""
    given = [arg.value for arg in call.args if not arg.star]
    literal = all(number(one) is not None or string(one) is not None for one in given)
    return isinstance(call.func, cst.Attribute) and call.func.attr.value == "get" and literal and bool(given)


def _is_number(value: Value | None) -> bool:
    return isinstance(value, Constant) and isinstance(value.value, (int, float)) and not isinstance(value.value, bool)


def _same_constant(one: Value | None, other: Value | None) -> bool:
    return (
        isinstance(one, Constant)
        and isinstance(other, Constant)
        and type(one.value) is type(other.value)
        and one.value == other.value
    )


def _literal(value: Value) -> cst.BaseExpression | None:
    """A number as it stands in a function; one that a module knows by a name may be another when the program runs."""
    if not isinstance(value, Constant) or value.site is None or value.site.frame is None:
        return None
    text = repr(value.value)
    return cst.parse_expression(text) if text.replace(".", "").replace("-", "").isdigit() else None


def _without_unread(file: ParsedFile, suspects: _Suspects, elsewhere: Callable[[str], bool]) -> ParsedFile:
    """The file without what only served to choose the numbers: names that nothing reads now, and functions."""
    read = {name for arg in suspects.arguments for name in names_in(arg.value)}
    names = (suspects.names | read) - {_MODE}
    while True:
        edits = Edits()
        for function in functions_in(file.module):
            if any(one.name.value == _MODE for one in parameters_of(function)):
                _Unread(file, function, names).read(edits)
        edits = edits or _uncalled(file, suspects, elsewhere)
        if not edits:
            return file
        file = applied(file, edits)


class _Unread:
    """The lines of a function that give values to names which nothing reads."""

    def __init__(self, file: ParsedFile, function: cst.FunctionDef, names: set[str]) -> None:
        self.file = file
        self.function = function
        stored = [name for one in nodes_in(function) for name in _stored(one)]
        counts = [node.value for node in name_nodes(function.body)]
        self.names = {
            name
            for name in names
            if owns(function, name) and counts.count(name) == sum(1 for one in stored if one.value == name)
        }

    def read(self, edits: Edits) -> None:
        if self.names:
            self._block(self.function.body, edits)

    def _block(self, block: cst.CSTNode, edits: Edits) -> bool:
        """Whether nothing of a block stays."""
        gone = [self._goes(one, edits) for one in getattr(block, "body", ())]
        return all(gone)

    def _goes(self, node: cst.CSTNode, edits: Edits) -> bool:
        if isinstance(node, cst.If):
            at: cst.If | cst.Else | None = node
            gone, quiet = True, True
            while at is not None:
                gone = self._block(at.body, edits) and gone
                quiet = quiet and (isinstance(at, cst.Else) or not calls_in(at.test))
                at = at.orelse if isinstance(at, cst.If) else None
            if gone and quiet:
                edits.lines[node] = []
            return gone and quiet
        if not isinstance(node, cst.SimpleStatementLine) or len(node.body) != 1:
            return False
        small = node.body[0]
        names = {one.value for one in _stored(small)}
        if not isinstance(small, cst.Assign) or not names or names - self.names or not self._is_quiet(small):
            return False
        edits.lines[node] = []
        return True

    def _is_quiet(self, small: cst.Assign) -> bool:
        """Whether a line does nothing but to give its names values."""
        targets = {node for one in small.targets for node in nodes_in(one)}
        calls = [call for call in calls_in(small) if call not in targets]
        return all(isinstance(call.func, cst.Name) and self._does_nothing(call.func.value) for call in calls)

    def _does_nothing(self, name: str) -> bool:
        if name in ("dict", "float", "int"):
            return name not in self.file.names_at_top
        function = self.file.functions.get(name)
        return function is not None and _is_quiet(function)


def _is_quiet(function: cst.FunctionDef) -> bool:
    """Whether a function calls nothing, and changes nothing but names of its own."""
    quiet = (cst.Assign, cst.Return, cst.Pass)
    smalls = of_kinds(function.body, cst.BaseSmallStatement)
    plain = all(isinstance(one, quiet) or _is_text(one) for one in smalls)
    names = all(isinstance(t.target, cst.Name) for one in smalls if isinstance(one, cst.Assign) for t in one.targets)
    return plain and names and not calls_in(function.body)


def _is_text(small: cst.BaseSmallStatement) -> bool:
    return isinstance(small, cst.Expr) and isinstance(small.value, cst.SimpleString)


def _stored(node: cst.CSTNode) -> list[cst.Name]:
    """The names that an assignment gives something, as a whole or by an entry."""
    found: list[cst.Name] = []
    for one in node.targets if isinstance(node, cst.Assign) else ():
        target = one.target
        elements = [e.value for e in target.elements] if isinstance(target, (cst.Tuple, cst.List)) else [target]
        for element in elements:
            while isinstance(element, cst.Subscript):
                element = element.value
            if not isinstance(element, cst.Name):
                return []
            found.append(element)
    return found


def _uncalled(file: ParsedFile, suspects: _Suspects, elsewhere: Callable[[str], bool]) -> Edits:
    """The functions that the arguments called, and that nothing speaks of now."""
    said = [node.value for node in name_nodes(file.module)]
    asked = {name for arg in suspects.arguments for name in names_in(arg.value)}
    asked |= {n for one in suspects.nodes if isinstance(one, cst.Assign) and _stored(one) for n in names_in(one.value)}
    edits = Edits()
    for statement in file.module.body:
        named: cst.BaseExpression | None = statement.name if isinstance(statement, cst.FunctionDef) else None
        if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
            small = statement.body[0]
            if isinstance(small, cst.Assign) and isinstance(small.value, cst.Lambda) and len(small.targets) == 1:
                named = small.targets[0].target
        if isinstance(named, cst.Name) and named.value in asked and said.count(named.value) == 1:
            if not elsewhere(named.value):
                edits.lines[statement] = []
    return edits


__all__ = ["with_numbers_by_mode"]
