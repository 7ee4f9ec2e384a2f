"""Expressions of a model_fn whose value the evaluator knows to be made by a part of them: that part, in their place.

`next(iter([x]))` gives what `x` gives, `dict(net=x)["net"]` too, and so does any call of Python's own functions or of
the file's that hands on one of its arguments and does nothing else. What a list of the function's own holds when it is
asked (`stack.append(x)`, then `stack.pop()`) is a name in its place, where the list is for nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import libcst as cst

from migrator.ir.calls import HANDING_ON, LOOKED_INTO
from migrator.ir.evaluate import Evaluator
from migrator.ir.files import Parsed, Together
from migrator.ir.machine import TooMuch
from migrator.ir.operators import BUILTINS
from migrator.ir.store import Key
from migrator.ir.values import Constant, Either, Module, Object, Record, Scope, Table, Unknown, Value
from migrator.ir.values import Sequence as Items
from migrator.names.bindings import Form, bound_in, changes_in, read_bindings
from migrator.names.standard import STANDARD_MODULES
from migrator.program.calls import calls_in, functions_in, is_docstring, is_none, nodes_in, parameters_of
from migrator.program.modes import ALL, ModeNames
from migrator.program.parsed import ParsedFile, name_nodes, names_in
from migrator.program.scopes import path_to
from migrator.walking import of_kinds, outside_of

_ENDS = (cst.Raise, cst.Assert, cst.Try, cst.TryStar, cst.Yield, cst.Await, cst.Global, cst.Nonlocal, cst.With)
_INNER = (cst.FunctionDef, cst.Lambda, cst.ClassDef, cst.GeneratorExp, cst.ListComp, cst.SetComp, cst.DictComp)
_LOOP = (cst.For, cst.While)
_UNSEEN = ("setattr", "globals", "vars", "exec", "eval")
_PUTS = ("append", "appendleft", "insert")
_TAKES = ("pop", "popleft")
_MADE = ("list", "collections.deque")
_MODE = "mode"
_CHOOSING = (cst.Subscript, cst.Attribute, cst.BooleanOperation)
_NEW = (cst.Tuple, cst.List, cst.Dict, cst.Set, cst.ListComp, cst.SetComp, cst.DictComp, cst.Lambda)  # made each time
_TELLING_OF_MODES = (cst.Comparison, cst.Call, cst.Subscript, cst.Attribute, cst.BooleanOperation, cst.UnaryOperation)


@dataclass(frozen=True)
class Evaluated:
    """One evaluation of an expression: its value, what it wrote, and how many calls of libraries were made meanwhile.

    `number` counts the evaluations, `until` is that of the last one inside of it. `before` is what held something.
    """

    value: Value
    before: frozenset[object]
    wrote: dict[Key, object]
    effects: int
    number: int
    until: int


class Watched(Evaluator):
    """An evaluator that notes what some expressions of a function give, and all parts of them."""

    def __init__(self, file: Parsed, wanted: Iterable[cst.CSTNode]) -> None:
        super().__init__(Together.of([file]))
        self.wanted = frozenset(node for one in wanted for node in of_kinds(one, cst.BaseExpression))
        self.seen: dict[cst.CSTNode, list[Evaluated]] = {}
        self.count = 0
        self.asked: frozenset[cst.CSTNode] = frozenset()
        self.unpacked: frozenset[cst.CSTNode] = frozenset()
        self.held: dict[cst.CSTNode, list[list[Value] | None]] = {}

    def value(self, node: cst.BaseExpression, scope: Scope) -> Value:
        """What an expression stands for."""
        if node not in self.wanted:
            return super().value(node, scope)
        self.count += 1
        number, mark, effects = self.count, self.store.mark(), len(self.effects)
        before = self.store.owners() if node in self.asked else frozenset()
        found = super().value(node, scope)
        wrote = self.store.since(mark)
        made = Evaluated(found, before, wrote, len(self.effects) - effects, number, self.count)
        self.seen.setdefault(node, []).append(made)
        if node in self.unpacked:
            self.held.setdefault(node, []).append(self.elements(found))
        return found

    def follow(
        self,
        file: ParsedFile,
        function: cst.FunctionDef,
        elsewhere: Callable[[str], bool],
        given: Mapping[str, object] | None = None,
    ) -> bool:
        """Runs a function with parameters that are not known, but for `given` ones; whether all of it was followed.

        What functions change in the module's names, or other files may, is not known either.
        """
        path = path_to(file.module, function)
        try:
            module: Module = self.load(Parsed(file.path, file.module))
            around = module.scope
            changed, hidden = _changed_by_functions(file.module), _gives_names_unseen(file.module)
            for name, held in self.store.held(around).items():
                data = isinstance(held, (Constant, Items, Table, Object, Either))
                if name in changed or (data and (hidden or elsewhere(name))):
                    self.store.set((around, name), Unknown(held.site, f"`{name}` may change"))
            for outer in path[:-1]:
                if isinstance(outer, (cst.FunctionDef, cst.Lambda)):
                    own = frozenset(one.name for one in bound_in(outer))
                    around = Scope("around", own, around, file.path, "function")
            bound = bound_in(function)
            scope = Scope(function.name.value, frozenset(one.name for one in bound), around, file.path, "function")
            for one in bound:
                if one.form is Form.PARAMETER:
                    names = Constant(None, scope.name), Constant(None, one.name)
                    value: Value = self.operation(None, "parameter", *names)
                    if given is not None and one.name in given:
                        value = Constant(None, given[one.name])
                    self.store.set((scope, one.name), value)
            self.scopes = [scope]
            region = self.enter("call")
            self.seen.clear()
            self.close(region, self.run(function.body, scope), Constant(None, None))
        except (TooMuch, RecursionError):
            return False
        return True


@lru_cache(maxsize=8)
def _changed_by_functions(module: cst.Module) -> frozenset[str]:
    """The names of a module whose values its functions change, or parts of them."""
    found: set[str] = set()
    imported = {one.name for one in read_bindings(module) if one.form is Form.IMPORTED and one.level == 0}
    for function in functions_in(module):
        own = {one.name for one in bound_in(function)}
        # What a library's function does is not known to change the library: `tf.estimator.train_and_evaluate(...)`.
        changes = [one for one in changes_in(function) if one.form is not Form.CALLED or one.name not in imported]
        found |= {one.name for one in changes} - own
    return frozenset(found | {one.name for one in read_bindings(module) if one.form is Form.SCOPED})


@lru_cache(maxsize=8)
def _gives_names_unseen(module: cst.Module) -> bool:
    """Whether a file may give names of modules values that no statement shows: `setattr`, `globals()`, `exec`."""
    calls = calls_in(module)
    if any(isinstance(call.func, cst.Name) and call.func.value in _UNSEEN for call in calls):
        return True
    return any(node.attr.value == "__dict__" for node in of_kinds(module, cst.Attribute))


@dataclass(frozen=True)
class Known:
    """What stands in the place of lines, and of expressions; `made` are new names, `decided` tests that go."""

    lines: dict[cst.BaseStatement, list[cst.BaseStatement]]
    expressions: dict[cst.CSTNode, cst.BaseExpression]
    made: frozenset[str] = frozenset()
    decided: tuple[tuple[cst.BaseExpression, bool], ...] = ()


def known_values(
    file: ParsedFile, functions: Sequence[cst.FunctionDef], elsewhere: Callable[[str], bool]
) -> Known | None:
    """The first of some functions with something to say otherwise; None where there is none.

    `elsewhere` says whether a name stands in another file.
    """
    for function in functions:
        known = _of_model(file, function, elsewhere) if _makes_spec(file, function) else None
        if known is not None:
            return known
        asked = list(_candidates(file, function))
        stacks = list(_stacks(file, function))
        tests = list(_tests(file, function))
        unpacked = list(_unpacked(file, function))
        if not asked and not stacks and not tests and not unpacked:
            continue
        puts = [put for stack in stacks for put in stack.puts.values()]
        asks = [ask for stack in stacks for ask in stack.asks]
        wanted = (*asked, *unpacked, *puts, *asks, *(test.test for test in tests))
        watched = Watched(Parsed(file.path, file.module), wanted)
        watched.asked = frozenset((*asked, *unpacked))
        watched.unpacked = frozenset(unpacked)
        if not watched.follow(file, function, elsewhere):
            continue
        expressions = _parts(watched, asked) or _written_out(watched, unpacked)
        if expressions:
            return Known({}, expressions)
        decided = _decided(watched, tests)
        if decided is not None:
            return decided
        for stack in stacks:
            known = _named(file, watched, function, stack)
            if known is not None:
                return known
    return None


def _makes_spec(file: ParsedFile, function: cst.FunctionDef) -> bool:
    """Whether a function makes an EstimatorSpec: it builds a model, and its `mode` is one of the three."""
    return any((file.imports.tensorflow(call.func) or "").endswith("EstimatorSpec") for call in calls_in(function.body))


def _of_model(file: ParsedFile, function: cst.FunctionDef, elsewhere: Callable[[str], bool]) -> Known | None:
    """What is said otherwise in a function that builds a model, and in no other."""
    told = _modes_said(file, function, elsewhere)
    if told:
        return Known({}, told)
    idle = _idle(file, function) or _unread(file, function)
    return Known(idle, {}) if idle else _collected(file, function) or _sum_of_one(file, function)


def text_of(call: cst.Call) -> str | None:
    """The text that a method of a text gives, where everything in the call is written out."""
    if not isinstance(call.func, cst.Attribute) or not isinstance(call.func.value, cst.SimpleString):
        return None
    if any(isinstance(node, cst.Name) for arg in call.args for node in nodes_in(arg.value)):
        return None
    machine = Evaluator(Together.of([]))
    found = machine.value(call, Scope("text", frozenset(), None, machine.nowhere.path, "module"))
    return found.value if isinstance(found, Constant) and isinstance(found.value, str) else None


# -- expressions that give one of their parts --------------------------------------------------------------------------


def _candidates(file: ParsedFile, function: cst.FunctionDef) -> Iterator[cst.BaseExpression]:
    """Calls of Python's functions and of short ones of the file, and entries of what is made for them."""
    bound = {one.name for one in bound_in(file.module)} | {one.name for one in bound_in(function)}
    local = [one.name for one in bound_in(function)]
    inner = {one.name.value: one for one in functions_in(function.body) if local.count(one.name.value) == 1}
    for node in _own_nodes(function):
        if isinstance(node, _CHOOSING):
            of = getattr(node, "value", None)
            is_one = _is_of_made(file, node) and not (isinstance(of, cst.Call) and _is_opaque(file, of, local))
        elif not isinstance(node, cst.Call):
            continue
        elif isinstance(node.func, cst.Name) and node.args:
            name = node.func.value
            own = inner.get(name) if name in inner else None if name in local else file.functions.get(name)
            if name in BUILTINS and name not in bound and name not in file.imports.star_names:
                is_one = name in HANDING_ON
            elif own is not None and _only_computes(own):
                is_one = _may_give_back(file, own)
            else:
                is_one = _is_of_python(file, node) and not _makes_new(file, node)
        else:
            is_one = not isinstance(node.func, cst.Name) and _is_of_python(file, node) and not _makes_new(file, node)
        if is_one and not file.may_have_comment(node):
            yield node


@lru_cache(maxsize=64)
def _own_nodes(function: cst.FunctionDef) -> tuple[cst.CSTNode, ...]:
    """The nodes of a function that are not inside of functions, classes and comprehensions in it."""
    return tuple(outside_of(function.body, *_INNER))


def _may_give_back(file: ParsedFile, function: cst.FunctionDef) -> bool:
    """Whether what a function returns may be something that it was given, not just what it makes itself each time."""
    names = Counter(one.name for one in bound_in(function))
    inner = {one.name.value for one in functions_in(function.body) if names[one.name.value] == 1 and not one.decorators}
    for node in _own_nodes(function):
        value = node.value if isinstance(node, cst.Return) else None
        is_new = isinstance(value, _NEW) or (isinstance(value, cst.Name) and value.value in inner)
        if value is not None and not is_new and not (isinstance(value, cst.Call) and _is_opaque(file, value, names)):
            return True
    return False


def _is_opaque(file: ParsedFile, call: cst.Call, local: Iterable[str]) -> bool:
    """Whether a call is one of a library of which the evaluator knows no more than its name: it gives what is new.

    `local` are the names of the function around it, which hide those of the file.
    """
    origin = file.imports.resolve(call.func)
    return origin is not None and origin not in LOOKED_INTO and names_in(call.func).isdisjoint(local)


def _makes_new(file: ParsedFile, call: cst.Call) -> bool:
    """Whether a call of what is Python's makes something each time, and gives nothing that it was given."""
    func: cst.BaseExpression = call.func
    origin = file.imports.resolve(func)
    if origin is not None:
        return origin not in HANDING_ON
    if isinstance(func, cst.Name):
        owner = file.classes.get(func.value)
        return _is_plain_class(owner) if owner is not None else _is_of_tuple(file, call)
    while isinstance(func, (cst.Call, cst.Attribute)):
        func = func.func if isinstance(func, cst.Call) else func.value
        origin = file.imports.resolve(func)
        if origin is not None:
            return origin not in LOOKED_INTO
    # A method of a flag's value, which no object of the program is.
    held = file.constants.get(func.value) if isinstance(func, cst.Name) else None
    return (file.imports.resolve(held) or "").endswith(".FLAGS") and not any(map(names_in, call.args))


def _is_plain_class(owner: cst.ClassDef) -> bool:
    """Whether calling a class makes an object of it, and never gives one that there was: no enumeration, say."""
    bases = [base.value.value if isinstance(base.value, cst.Name) else None for base in owner.bases]
    own = {one.name.value for one in functions_in(owner.body)}
    return not owner.decorators and not owner.keywords and bases in ([], ["object"]) and "__new__" not in own


def _is_of_made(file: ParsedFile, node: cst.Subscript | cst.Attribute | cst.BooleanOperation) -> bool:
    """Whether an expression chooses from what is made there: `[x, y][0]`, `Pair(x, y).first`, `None or f(x)`."""
    if isinstance(node, cst.Subscript):
        return isinstance(node.value, (cst.Call, cst.List, cst.Tuple, cst.Dict))
    if isinstance(node, cst.Attribute):
        return isinstance(node.value, cst.Call) and _is_of_python(file, node.value)
    return bool(calls_in(node))


def _is_of_python(file: ParsedFile, call: cst.Call) -> bool:
    """Whether what is called is Python's: of its library, a lambda, or of a container that is written out there.

    What a call gives may be called in turn, or asked for an attribute: `operator.itemgetter(0)([x])`. A class of the
    file is one of those, too.
    """
    func: cst.CSTNode = call
    while isinstance(func, (cst.Call, cst.Attribute)):
        origin = file.imports.resolve(func) if isinstance(func, cst.Attribute) else None
        if origin is not None:
            return _is_library(origin)
        func = func.func if isinstance(func, cst.Call) else func.value
    if isinstance(func, cst.Name):
        origin = file.imports.resolve(func)
        is_made = func.value in file.classes or func.value in file.constants
        return _is_library(origin) if origin is not None else is_made
    return isinstance(func, (cst.Lambda, cst.Dict, cst.List, cst.Tuple))


def _is_library(origin: str) -> bool:
    """Whether a name is one of Python's library, and not one of `copy`: a copy is never what is copied."""
    return origin.partition(".")[0] in STANDARD_MODULES - {"copy"}


def _only_computes(function: cst.FunctionDef) -> bool:
    lines = [one for one in function.body.body if not is_docstring(one)]
    if function.decorators or function.asynchronous is not None or not lines:
        return False
    return not of_kinds(function.body, *_ENDS)


def _parts(watched: Watched, asked: Sequence[cst.BaseExpression]) -> dict[cst.CSTNode, cst.BaseExpression]:
    """The part of each expression that it gives, where it does nothing else."""
    found: dict[cst.CSTNode, cst.BaseExpression] = {}
    taken: set[cst.CSTNode] = set()
    for node in asked:
        whole = watched.seen.get(node, [])
        if not whole or node in taken or any(isinstance(one.value, Constant) for one in whole):
            continue
        hidden = {below for one in nodes_in(node) if isinstance(one, _INNER) for below in nodes_in(one)}
        for part in nodes_in(node)[1:]:
            inner = watched.seen.get(part, [])
            if part in hidden or not isinstance(part, cst.BaseExpression) or len(inner) != len(whole):
                continue
            if all(_gives(*pair) for pair in zip(whole, inner)):
                found[node] = part
                taken |= set(nodes_in(node))
                break
    return found


def _gives(whole: Evaluated, inner: Evaluated) -> bool:
    """Whether an expression gives what its part gives, and does nothing else."""
    if inner.value is not whole.value or not whole.number < inner.number <= whole.until:
        return False
    return inner.effects == whole.effects and _only_makes(whole, inner)


def _only_makes(whole: Evaluated, inner: Evaluated) -> bool:
    """Whether an expression writes nothing into what was there before, beside what its part does."""
    others = {key[0] for key, value in whole.wrote.items() if inner.wrote.get(key) is not value}
    # What is not known, and an object without attributes, held nothing before and may have been there all the same.
    return all(_holds_at_once(one) and one not in whole.before for one in others)


def _holds_at_once(one: object) -> bool:
    """Whether something holds what it is for from when it is made: a container, or an object of a class with fields."""
    if isinstance(one, Object):
        return bool(one.of.fields) if isinstance(one.of, Record) else one.of.is_data
    return isinstance(one, (Scope, Items, Table))


def _unpacked(file: ParsedFile, function: cst.FunctionDef) -> Iterator[cst.BaseExpression]:
    """`a, b = Pair(f(x), g(x))`, `[a] = [one for one in (f(x),)]`: what names are given the parts of."""
    for node in _own_nodes(function):
        if not isinstance(node, cst.Assign) or len(node.targets) != 1 or file.may_have_comment(node):
            continue
        target, value = node.targets[0].target, node.value
        if not isinstance(target, (cst.Tuple, cst.List)) or not all(
            isinstance(one, cst.Element) and isinstance(one.value, cst.Name) for one in target.elements
        ):
            continue
        is_made = isinstance(value, cst.Subscript) and _is_of_made(file, value)
        if is_made or isinstance(value, cst.ListComp) or (isinstance(value, cst.Call) and _is_of_python(file, value)):
            yield value


def _written_out(watched: Watched, unpacked: Sequence[cst.BaseExpression]) -> dict[cst.CSTNode, cst.BaseExpression]:
    """The parts, written out in the place of what holds them, where making that does nothing else."""
    found: dict[cst.CSTNode, cst.BaseExpression] = {}
    for node in unpacked:
        whole, held = watched.seen.get(node, []), watched.held.get(node, [])
        items = held[0] if len(whole) == len(held) == 1 else None
        parts: list[cst.BaseExpression] = []
        effects, last = 0, 0
        wrote: dict[Key, object] = {}
        for item in items or ():
            written = _constant(item)
            inner = None if written is not None else _part_that_gives(watched, node, whole[0], item)
            if written is None and inner is None:
                break
            parts.append(written if written is not None else inner[0])  # type: ignore[index]
            if inner is not None:
                is_later = inner[1].number > last
                effects, last, wrote = effects + inner[1].effects, inner[1].until, {**wrote, **inner[1].wrote}
                if not is_later:
                    break
        else:
            rest = [key[0] for key, value in whole[0].wrote.items() if wrote.get(key) is not value] if whole else []
            clean = all(_holds_at_once(one) and one not in whole[0].before for one in rest)
            if items and effects == whole[0].effects and clean:
                found[node] = cst.Tuple([cst.Element(one.deep_clone()) for one in parts])
    return found


def _part_that_gives(
    watched: Watched, node: cst.BaseExpression, whole: Evaluated, item: Value
) -> tuple[cst.BaseExpression, Evaluated] | None:
    """The outermost part of an expression that gives a value, and its evaluation."""
    hidden = {
        below for one in nodes_in(node) if isinstance(one, (cst.Lambda, cst.FunctionDef)) for below in nodes_in(one)
    }
    targets = {below for one in nodes_in(node) if isinstance(one, cst.CompFor) for below in nodes_in(one.target)}
    own = {one.value for one in targets if isinstance(one, cst.Name)}
    for part in nodes_in(node)[1:]:
        inner = watched.seen.get(part, [])
        if part in hidden or not isinstance(part, cst.BaseExpression) or len(inner) != 1 or names_in(part) & own:
            continue
        if inner[0].value is item and whole.number < inner[0].number <= whole.until:
            return part, inner[0]
    return None


def _constant(value: Value) -> cst.BaseExpression | None:
    known = isinstance(value, Constant) and (value.value is None or isinstance(value.value, (bool, int, float, str)))
    return cst.parse_expression(repr(value.value)) if known and isinstance(value, Constant) else None


# -- what is there or not ----------------------------------------------------------------------------------------------


def _tests(file: ParsedFile, function: cst.FunctionDef) -> Iterator[cst.If | cst.IfExp]:
    """`net = f(x) if USED else None`, and the same as statements: a value, or nothing."""
    for node in _own_nodes(function):
        if not isinstance(node, (cst.IfExp, cst.If)) or file.may_have_comment(node):
            continue
        if isinstance(node, cst.IfExp) and is_none(node.body) is not is_none(node.orelse):
            yield node
        elif (
            isinstance(node, cst.If) and isinstance(node.orelse, cst.Else) and isinstance(node.body, cst.IndentedBlock)
        ):
            if not isinstance(file.parents.get(node), cst.If) and _gives_none(node.body) is not _gives_none(
                node.orelse.body
            ):
                yield node


def _gives_none(block: cst.BaseSuite) -> bool:
    """Whether all that a block does is to give names nothing."""
    smalls = [
        small for line in block.body for small in (line.body if isinstance(line, cst.SimpleStatementLine) else (None,))
    ]
    return bool(smalls) and all(
        isinstance(one, cst.Pass) or (isinstance(one, cst.Assign) and is_none(one.value)) for one in smalls
    )


def _decided(watched: Watched, tests: Sequence[cst.If | cst.IfExp]) -> Known | None:
    """Those of which constants of the program decide that there is something."""
    lines: dict[cst.BaseStatement, list[cst.BaseStatement]] = {}
    expressions: dict[cst.CSTNode, cst.BaseExpression] = {}
    known: list[tuple[cst.BaseExpression, bool]] = []
    for node in tests:
        values = [one.value for one in watched.seen.get(node.test, [])]
        answers = {bool(one.value) if isinstance(one, Constant) else None for one in values}
        holds = answers.pop() if len(answers) == 1 else None
        if holds is None or any(below in expressions or below in lines for below in nodes_in(node)):
            continue
        if isinstance(node, cst.IfExp):
            chosen = node.body if holds else node.orelse
            if is_none(chosen):
                continue
            expressions[node] = chosen
        else:
            assert isinstance(node.orelse, cst.Else)
            block = node.body if holds else node.orelse.body
            if _gives_none(block) or not isinstance(block, cst.IndentedBlock):
                continue
            first, *rest = block.body
            above = [*node.leading_lines, *getattr(first, "leading_lines", ())]
            lines[node] = [first.with_changes(leading_lines=above), *rest]
        known.append((node.test, holds))
    return Known(lines, expressions, decided=tuple(known)) if known else None


# -- the mode ----------------------------------------------------------------------------------------------------------


def _modes_said(
    file: ParsedFile, function: cst.FunctionDef, elsewhere: Callable[[str], bool]
) -> dict[cst.CSTNode, cst.BaseExpression]:
    """`Phase(mode) is Phase.TRAIN` and `phase.train`: the modes that an expression is True in, as `mode == "train"`.

    Those are said that the readers of modes do not see through: they know of no classes and tables.
    """
    bound = [one for one in bound_in(function) if one.name == _MODE]
    if [one.form for one in bound] != [Form.PARAMETER] or not any(
        one.name.value == _MODE for one in parameters_of(function)
    ):
        return {}
    asked = list(_mode_tests(file, function))
    found: dict[cst.BaseExpression, dict[str, Value]] = {node: {} for node in asked}
    local = {one.name for one in bound_in(function)}
    for mode in sorted(ALL):
        if not any(_may_be_said(file, node, values, local) for node, values in found.items()):
            return {}
        watched = Watched(Parsed(file.path, file.module), asked)
        if not watched.follow(file, function, elsewhere, {_MODE: mode}):
            return {}
        for node in asked:
            values = watched.seen.get(node, [])
            if len(values) > 1:
                return {}
            if values:
                found[node][mode] = values[0].value
    said: dict[cst.CSTNode, cst.BaseExpression] = {}
    for node, values_of in found.items():
        answers = {mode: value.value for mode, value in values_of.items() if isinstance(value, Constant)}
        if (
            len(answers) != len(values_of)
            or set(map(type, answers.values())) != {bool}
            or len(set(answers.values())) < 2
        ):
            continue
        if not any(node in set(nodes_in(other)) for other in said):
            said[node] = _said_of_modes([mode for mode in sorted(answers) if answers[mode]])
    return said


def _may_be_said(file: ParsedFile, node: cst.BaseExpression, values: Mapping[str, Value], local: Iterable[str]) -> bool:
    """Whether an expression may be True or False in each mode, after what it was in some of them."""
    is_other = isinstance(node, cst.Call) and _is_opaque(file, node, local)
    return not is_other and all(isinstance(one, Constant) and isinstance(one.value, bool) for one in values.values())


def _mode_tests(file: ParsedFile, function: cst.FunctionDef) -> Iterator[cst.BaseExpression]:
    """Expressions that may say something of the mode where that is asked: tests, arguments, values of names."""
    names = ModeNames(file.imports, _MODE, functions=file.functions)
    about = {_MODE}
    for one in bound_in(function):
        if one.value is not None and names_in(one.value) & about and names.when(one.value) is None:
            about.add(one.name)
    for node in _own_nodes(function):
        if not isinstance(node, _TELLING_OF_MODES):
            continue
        above = file.parents.get(node)
        is_test = isinstance(above, (cst.If, cst.IfExp, cst.While)) and above.test is node
        is_value = isinstance(above, (cst.Arg, cst.Assign, cst.BooleanOperation, cst.UnaryOperation))
        if not (is_test or is_value):
            continue
        if names_in(node) & about and not file.may_have_comment(node) and names.when(node) is None:
            yield node


def _said_of_modes(modes: Sequence[str]) -> cst.BaseExpression:
    """`mode == "train"`, or `mode in (...)`."""
    texts = [cst.SimpleString(f'"{mode}"') for mode in modes]
    if len(texts) == 1:
        return cst.Comparison(cst.Name(_MODE), [cst.ComparisonTarget(cst.Equal(), texts[0])])
    every = cst.Tuple([cst.Element(one) for one in texts])
    return cst.Comparison(cst.Name(_MODE), [cst.ComparisonTarget(cst.In(), every)])


# -- containers that nobody asks --------------------------------------------------------------------------------------


def _idle(file: ParsedFile, function: cst.FunctionDef) -> dict[cst.BaseStatement, list[cst.BaseStatement]]:
    """`end_points = {}` and `end_points["net"] = net`, where nothing reads the dict: the lines go."""
    found: dict[cst.BaseStatement, list[cst.BaseStatement]] = {}
    bound = bound_in(function)
    names = Counter(one.name for one in bound)
    for one in bound:
        made = one.value if one.form is Form.ASSIGNED and one.target is one.place and names[one.name] == 1 else None
        line = file.parents.get(one.node)
        if made is None or not _is_empty(file, made) or not isinstance(line, cst.SimpleStatementLine):
            continue
        if len(line.body) != 1 or (isinstance(one.node, cst.Assign) and len(one.node.targets) != 1):
            continue
        uses = [node for node in name_nodes(function) if node.value == one.name and node is not one.place]
        puts = [_put_line(file, node) for node in uses]
        lines = [put for put in puts if put is not None]
        if not lines or len(lines) != len(puts) or any(file.may_have_comment(each.body[0]) for each in (line, *lines)):
            continue
        found.update({each: [] for each in (line, *lines)})
    return found


def _collected(file: ParsedFile, function: cst.FunctionDef) -> Known | None:
    """`losses = []`, `losses.append(f(x))`, `tf.add_n(losses)`: names, and the list written out where it is read."""
    bound = bound_in(function)
    names = Counter(one.name for one in bound)
    for one in bound:
        made = one.value if one.form is Form.ASSIGNED and one.target is one.place and names[one.name] == 1 else None
        line = file.parents.get(one.node)
        block = file.parents.get(line) if line is not None else None
        if made is None or not _is_empty_list(file, made) or not isinstance(block, cst.IndentedBlock):
            continue
        uses = [node for node in name_nodes(function) if node.value == one.name and node is not one.place]
        puts = [_use(file, node) for node in uses[:-1]]
        values = [put for put in puts if isinstance(put, tuple) and _appends(put[0])]
        if not values or len(values) != len(puts) or any(line not in block.body for line, _ in values):
            continue
        arg, reader = file.parents.get(uses[-1]), uses[-1]
        call = file.parents.get(arg) if isinstance(arg, cst.Arg) and not arg.star else None
        if not isinstance(call, cst.Call) or file.imports.tensorflow(call.func) != "tf.add_n":
            continue
        below = path_to(function, reader)
        if block not in below or any(isinstance(part, (*_LOOP, *_INNER)) for part in below[below.index(block) :]):
            continue
        if any(file.may_have_comment(each) for each in (one.node, *(line.body[0] for line, _ in values))):
            continue
        taken, new = set(file.names), [f"{one.name}_{count}" for count in range(1, len(values) + 1)]
        if taken & set(new) or not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
            continue
        lines: dict[cst.BaseStatement, list[cst.BaseStatement]] = {line: []}
        for name, (put, value) in zip(new, values):
            lines[put] = [put.with_changes(body=[cst.Assign([cst.AssignTarget(cst.Name(name))], value)])]
        whole = cst.List([cst.Element(cst.Name(name)) for name in new])
        return Known(lines, {reader: whole}, made=frozenset(new))
    return None


def _appends(line: cst.SimpleStatementLine) -> bool:
    small = line.body[0]
    func = small.value.func if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call) else None
    return isinstance(func, cst.Attribute) and func.attr.value == "append"


def _sum_of_one(file: ParsedFile, function: cst.FunctionDef) -> Known | None:
    """`tf.add_n([loss])`, which gives what the list holds."""
    for call in calls_in(function.body):
        if len(call.args) != 1 or call.args[0].star or file.imports.tensorflow(call.func) != "tf.add_n":
            continue
        held = call.args[0].value
        one = held.elements[0] if isinstance(held, (cst.List, cst.Tuple)) and len(held.elements) == 1 else None
        if isinstance(one, cst.Element) and not file.may_have_comment(call):
            return Known({}, {call: one.value})
    return None


def _unread(file: ParsedFile, function: cst.FunctionDef) -> dict[cst.BaseStatement, list[cst.BaseStatement]]:
    """`phase = Phase(mode == TRAIN, mode == EVAL)`, where nothing asks the named tuple any more: the line goes."""
    found: dict[cst.BaseStatement, list[cst.BaseStatement]] = {}
    said = Counter(node.value for node in name_nodes(function))
    for one in bound_in(function):
        made, line = one.value, file.parents.get(one.node)
        if one.form is not Form.ASSIGNED or said[one.name] != 1 or one.target is not one.place:
            continue
        if not isinstance(made, cst.Call) or not _is_of_tuple(file, made) or any(map(calls_in, made.args)):
            continue
        if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 and not file.may_have_comment(one.node):
            if isinstance(one.node, cst.Assign) and len(one.node.targets) == 1:
                found[line] = []
    return found


def _is_of_tuple(file: ParsedFile, call: cst.Call) -> bool:
    """Whether a call makes a named tuple of the file."""
    kind = file.constants.get(call.func.value) if isinstance(call.func, cst.Name) else None
    if isinstance(kind, cst.Call):
        return file.imports.resolve(kind.func) == "collections.namedtuple"
    owner = file.classes.get(call.func.value) if isinstance(call.func, cst.Name) else None
    bases = [file.imports.resolve(base.value) for base in owner.bases] if owner is not None else []
    return bases == ["typing.NamedTuple"] and owner is not None and not functions_in(owner.body)


def _put_line(file: ParsedFile, node: cst.Name) -> cst.SimpleStatementLine | None:
    """The line that only puts names and constants into a container."""
    above = file.parents.get(node)
    around = file.parents.get(above) if above is not None else None
    small: cst.CSTNode | None = None
    given: list[cst.CSTNode] = []
    if isinstance(above, cst.Subscript) and above.value is node and isinstance(around, cst.AssignTarget):
        small = file.parents.get(around)
        assert isinstance(small, cst.Assign)
        given = [*above.slice, small.value]
        if len(small.targets) != 1:
            return None
    elif isinstance(above, cst.Attribute) and isinstance(around, cst.Call) and around.func is above:
        small = file.parents.get(around)
        given = [arg.value for arg in around.args]
        if not isinstance(small, cst.Expr) or above.attr.value not in (*_PUTS, "add"):
            return None
    line = file.parents.get(small) if small is not None else None
    quiet = (cst.Name, cst.Attribute, cst.SimpleString, cst.BaseNumber, cst.SubscriptElement, cst.Index, cst.Dot)
    if not given or not all(isinstance(part, quiet) for one in given for part in nodes_in(one)):
        return None
    return line if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None


def _is_empty(file: ParsedFile, made: cst.BaseExpression) -> bool:
    """Whether an expression makes a list, set or dict with nothing in it."""
    if isinstance(made, (cst.List, cst.Dict)):
        return not made.elements
    if not isinstance(made, cst.Call) or made.args:
        return False
    named = file.imports.resolve(made.func)
    if named is None and isinstance(made.func, cst.Name) and made.func.value not in file.names_at_top:
        named = made.func.value
    return named in (*_MADE, "dict", "set", "collections.OrderedDict")


# -- lists that are asked for what was put into them ------------------------------------------------------------------


@dataclass(frozen=True)
class _Stack:
    """A list of a function: its name, the line that makes it, what is put into it by which lines, and what asks it."""

    name: str
    line: cst.SimpleStatementLine
    puts: dict[cst.SimpleStatementLine, cst.BaseExpression]
    asks: tuple[cst.BaseExpression, ...]


def _stacks(file: ParsedFile, function: cst.FunctionDef) -> Iterator[_Stack]:
    bound = bound_in(function)
    for one in bound:
        made = one.value if one.form is Form.ASSIGNED and one.target is one.place else None
        if made is None or sum(other.name == one.name for other in bound) != 1 or not _is_empty_list(file, made):
            continue
        line = file.parents.get(one.node)
        if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1 or file.may_have_comment(one.node):
            continue
        if isinstance(one.node, cst.Assign) and len(one.node.targets) != 1:
            continue
        uses = [node for node in name_nodes(function) if node.value == one.name and node is not one.place]
        stack = _Stack(one.name, line, {}, ())
        asks: list[cst.BaseExpression] = []
        for node in uses:
            found = _use(file, node)
            if isinstance(found, tuple):
                stack.puts[found[0]] = found[1]
            elif found is not None:
                asks.append(found)
            else:
                break
            if any(isinstance(above, _INNER) for above in path_to(function, node)[1:]):
                break
        else:
            if asks and stack.puts:
                yield _Stack(one.name, line, stack.puts, tuple(asks))


def _is_empty_list(file: ParsedFile, made: cst.BaseExpression) -> bool:
    if isinstance(made, cst.List):
        return not made.elements
    named = file.imports.resolve(made.func) if isinstance(made, cst.Call) and not made.args else None
    if isinstance(made, cst.Call) and isinstance(made.func, cst.Name) and named is None and not made.args:
        named = made.func.value if made.func.value not in file.names_at_top else None
    return named in _MADE


def _use(
    file: ParsedFile, node: cst.Name
) -> tuple[cst.SimpleStatementLine, cst.BaseExpression] | cst.BaseExpression | None:
    """A line that puts something into a list, and that; an expression that asks for an element; None otherwise."""
    above = file.parents.get(node)
    if isinstance(above, cst.Subscript) and above.value is node:
        around = file.parents.get(above)
        stored = isinstance(around, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.Del, cst.Element))
        return None if stored else above
    call = file.parents.get(above) if above is not None else None
    if not isinstance(above, cst.Attribute) or not isinstance(call, cst.Call) or call.func is not above:
        return None
    if file.may_have_comment(call) or any(arg.star or arg.keyword is not None for arg in call.args):
        return None
    if above.attr.value in _TAKES:
        return call
    small = file.parents.get(call)
    line = file.parents.get(small) if isinstance(small, cst.Expr) else None
    if above.attr.value not in _PUTS or not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return None
    return (line, call.args[-1].value) if call.args else None


def _in_turn(put: Sequence[Evaluated], asked: Sequence[Evaluated]) -> bool:
    """Whether what is asked for is always what was put there last."""
    if not asked or len(put) != len(asked):
        return False
    later = [*(one.number for one in put[1:]), asked[-1].number + 1]
    return all(a.value is b.value and a.number < b.number < after for a, b, after in zip(put, asked, later))


def _named(file: ParsedFile, watched: Watched, function: cst.FunctionDef, stack: _Stack) -> Known | None:
    """Names in the place of what a list holds; None where it is not known which one each expression asks for."""
    names: dict[cst.SimpleStatementLine, str] = {}
    expressions: dict[cst.CSTNode, cst.BaseExpression] = {}
    taken = set(file.names)
    for ask in stack.asks:
        asked = watched.seen.get(ask, [])
        lines = [line for line, value in stack.puts.items() if _in_turn(watched.seen.get(value, []), asked)]
        if len(lines) != 1:
            return None
        [line] = lines
        block = file.parents.get(line)
        path = path_to(function, ask)
        if block not in path or any(isinstance(one, _LOOP) for one in path[path.index(block) :]):
            return None
        if not file.position(line) < file.position(ask):
            return None
        if line not in names:
            name = f"{stack.name}_{len(names) + 1}"
            while name in taken:
                name += "_"
            names[line] = name
        expressions[ask] = cst.Name(names[line])
    new: dict[cst.BaseStatement, list[cst.BaseStatement]] = {stack.line: []}
    for line, value in stack.puts.items():
        small: cst.BaseSmallStatement | None = cst.Expr(value) if calls_in(value) else None
        if line in names:
            small = cst.Assign([cst.AssignTarget(cst.Name(names[line]))], value)
        new[line] = [line.with_changes(body=[small])] if small is not None else []
    return Known(new, expressions, made=frozenset(names.values()))


__all__ = ["Known", "known_values", "text_of"]
