"""Programs in the plain words that all readers know: what Python says in a roundabout way, said directly.

A model_fn's `total = loss`, a TrainSpec of `**{...}`, an Estimator taken out of a list, `functools.partial(f, a)(b)`:
each is reduced to what it means, in rounds, until nothing is left to reduce. Only what is certain to compute the same
in the same order is reduced, by the one binding table (`names.bindings`), and only in the functions (and at the top
level) of files that make what a training program consists of. Everything else stays as it is written.
"""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Union, cast

import libcst as cst

from migrator.findings import Finding, Severity
from migrator.ir.calls import FIELDS
from migrator.names.bindings import Binding, Form, bound_in, dotted, read_bindings
from migrator.names.free import free
from migrator.pairing import equal_zip
from migrator.program.called_once import unfolded
from migrator.program.calls import (
    attribute_asked,
    calls_in,
    functions_in,
    in_parentheses,
    is_docstring,
    is_identifier,
    keyword_argument,
    last_name,
    nodes_in,
    string,
    with_arguments,
    written_entries,
)
from migrator.program.chosen_estimators import chosen
from migrator.program.known_values import known_values, text_of
from migrator.program.liveness import is_read_behind
from migrator.program.nested_once import names_apart, nested_once
from migrator.program.parsed import ParsedFile, Tracked, name_nodes, names_in
from migrator.program.plain_lines import (
    called_lambda,
    comprehensions_apart,
    forwarded,
    functions_by_name,
    lines_apart,
    loops_once,
    matches_apart,
    modes_apart,
    names_told,
    objects_apart,
    on_the_processor,
    without_declarations,
    without_forwarding_methods,
    without_globals,
    without_graphs,
    without_idle_scopes,
    without_local_imports,
    without_sure_asserts,
)
from migrator.program.plain_values import attributes_said, classes_chosen, dicts_whole, tables_of_classes
from migrator.walking import of_kinds, transformed

_ROUNDS = 200  # each takes something away; there are as many as lines that are read otherwise
_PARTS = ("Estimator", "Classifier", "Regressor", "EstimatorSpec", "TrainSpec", "EvalSpec", "RunConfig")
_TRAINING = ("train_and_evaluate", "train")
#: Ways to bind a name that do so once each time its scope runs.
_LASTING = (Form.PARAMETER, Form.IMPORTED, Form.FUNCTION, Form.CLASS)
_SINGLETONS = ("None", "True", "False")
#: A line like `net: tf.Tensor`.
_DECLARED = re.compile(r"^\s+\w+\s*:\s*[^\s=:][^=:]*$", re.MULTILINE)
_ALL_NAMES = {"locals", "globals", "vars", "eval", "exec"}
_Scope = Union[cst.Module, cst.FunctionDef]
_Block = Union[cst.Module, cst.IndentedBlock]
_Loop = (cst.For, cst.While)
_Guard = (cst.Try, cst.TryStar, cst.With)
_Comprehension = (cst.GeneratorExp, cst.ListComp, cst.SetComp, cst.DictComp)
_Line = cst.SimpleStatementLine


def reduced(file: ParsedFile, elsewhere: Callable[[str], bool]) -> ParsedFile:
    """The file with what it says in a roundabout way reduced.

    `elsewhere` says whether a name stands in another file: one of the top level then keeps its binding.
    """
    is_concerned = file.built or any(part in file.bare for part in (*_PARTS, "train_and_evaluate", "Session"))
    if is_concerned and ("globals()" in file.bare or "sys.modules" in file.bare):
        told = names_told(file)
        file = applied(file, Edits(expressions=told)) if told else file
    if not is_concerned or _ALL_NAMES & names_in(file.module):
        return file
    made: set[str] = set()
    passed: set[str] = set()  # names in calls whose result is one of their arguments
    old = file
    for _ in range(_ROUNDS):
        edits = _of_lines(file, elsewhere) or _Edits(file, elsewhere, made).read()
        edits = edits or _without_partial(file, old) or _without_forwarders(file, old, elsewhere)
        edits = edits or _without_unread(file, old, passed, elsewhere)
        edits = edits or _of_calls(file, elsewhere) or _of_choices(file)
        if not edits:
            edits = _of_values(file, elsewhere)
            passed |= {name for node in edits.expressions for name in names_in(node)}
        if not edits:
            return file
        made |= edits.made
        file = applied(file, edits)
    return file


def with_attributes_said(file: ParsedFile) -> ParsedFile:
    """The file with each attribute that a method which is told the mode gives its object given by a line."""
    if "mode" not in file.bare or "class " not in file.bare or "self" not in file.bare:
        return file
    edits = Edits(attributes_said(file))
    return applied(file, edits) if edits else file


def applied(file: ParsedFile, edits: Edits) -> ParsedFile:
    """A file with edits made; new code has the place of what it stands for."""
    writer = _Writer(file, edits)
    module = transformed(file.module, writer)
    assert isinstance(module, cst.Module)
    said = (*file.said, *edits.said)
    new = replace(file, module=module, choices={**file.choices, **edits.choices}, said=said)
    new.keep_positions(writer.made, file, writer.orders)
    return new


@dataclass
class Edits:
    """What becomes of lines, and of expressions; `made` are new names.

    `came` are the nodes that new ones take the place of, `choices` and `said` those of the file, see ParsedFile.
    """

    lines: dict[cst.BaseStatement, list[cst.BaseStatement]] = field(default_factory=dict)
    expressions: dict[cst.CSTNode, cst.BaseExpression] = field(default_factory=dict)
    decorators: set[cst.Decorator] = field(default_factory=set)
    made: set[str] = field(default_factory=set)
    touched: set[str] = field(default_factory=set)  # names that an edit of this round is about
    moves: bool = False  # lines get the place of another one
    came: dict[cst.CSTNode, cst.CSTNode] = field(default_factory=dict)
    choices: dict[tuple[int, int], tuple[tuple[int, int], ...]] = field(default_factory=dict)
    said: tuple[Finding, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.lines or self.expressions or self.decorators)


def _of_lines(file: ParsedFile, elsewhere: Callable[[str], bool]) -> Edits:
    """Statements of their own, in the place of what says several things at once, or nothing."""
    text = file.bare
    if ";" in text:
        lines, came = lines_apart(file)
        if lines:
            return Edits(lines, came=came)
    lines = modes_apart(file, _is_concerned) if "mode" in text else {}
    if not lines and "match " in text:
        lines = matches_apart(file, _is_concerned)
    if not lines and "def " in text:
        lines, came = functions_by_name(file, _is_concerned)
        if lines:
            return Edits(lines, came=came)
    if not lines and "Graph" in text:
        lines = without_graphs(file)
    if not lines and "name_scope" in text:
        lines = without_idle_scopes(file, _is_concerned)
    if not lines and "assert " in text:
        lines = without_sure_asserts(file, _is_concerned)
    if not lines and "for " in text:
        lines = loops_once(file, _is_concerned) or comprehensions_apart(file, _is_concerned)
    if not lines and _DECLARED.search(text):
        lines = without_declarations(file, _is_concerned)
    if not lines and "device(" in text:
        lines = on_the_processor(file)
    if not lines and "**" in text:
        lines = dicts_whole(file, _is_concerned)
    if not lines and "Optimizer" in text:
        lines = classes_chosen(file, _is_concerned)
    if not lines and "class " in text:
        tables = tables_of_classes(file, elsewhere)
        if tables[0]:
            return Edits(*tables)
    if not lines and "super" in text:
        lines = without_forwarding_methods(file, _is_concerned)
    if not lines and "class " in text:
        lines = objects_apart(file, _is_concerned)
    if not lines and "global " in text:
        lines = without_globals(file, elsewhere)
    if lines:
        return Edits(lines)
    if text.count("def ") > 1:
        apart = names_apart(file, _is_concerned)
        if apart:
            return Edits(expressions=apart)
    if "nonlocal " in text:
        edits = Edits()
        for one in nested_once(file, _is_concerned):
            edits.lines.update({one.line: list(one.lines), one.function: []})
            edits.expressions.update(one.names)
            edits.moves = True
        if edits:
            return edits
    return Edits(*without_local_imports(file)) if text.count("import tensorflow") > 1 else Edits()


def _without_partial(file: ParsedFile, old: ParsedFile) -> Edits:
    """The line `import functools` goes with the last use of the module."""
    edits = Edits()
    if "functools" not in names_in(file.module) and "functools" in names_in(old.module):
        for line in file.module.body:
            small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
            if isinstance(small, cst.Import) and [dotted(alias.name) for alias in small.names] == ["functools"]:
                edits.lines[cast("_Line", line)] = []
    return edits


def _without_forwarders(file: ParsedFile, old: ParsedFile, elsewhere: Callable[[str], bool]) -> Edits:
    """A function that only passed on to an Estimator what it was given goes with the last call of it."""
    edits = Edits()
    for name, function in file.functions.items():
        value = returned(function)
        if not isinstance(value, cst.Call) or not any(arg.star for arg in value.args) or function.decorators:
            continue
        if file.may_have_comment(function):
            continue
        made = (file.imports.tensorflow(value.func) or "").rpartition(".")[2]
        said, before = ([node.value for node in name_nodes(one.module)].count(name) for one in (file, old))
        if made.endswith(_PARTS[:3]) and said == 1 < before and not elsewhere(name):
            edits.lines[function] = []
    return edits


def _without_unread(file: ParsedFile, old: ParsedFile, passed: set[str], elsewhere: Callable[[str], bool]) -> Edits:
    """Functions whose only calls went, since they only gave what they were given."""
    edits = Edits()
    for function in functions_in(file.module) if passed else ():
        name = function.name.value
        if name not in passed or function.decorators or file.may_have_comment(function):
            continue
        said, before = ([node.value for node in name_nodes(one.module)].count(name) for one in (file, old))
        if said == 1 < before and not elsewhere(name):
            edits.lines[function] = []
    return edits


def _of_calls(file: ParsedFile, elsewhere: Callable[[str], bool]) -> Edits:
    """The lines of a function that the driver calls once, to make an Estimator or to train one, in its own."""
    found = unfolded(file, elsewhere, bound_arguments)
    if found is None:
        return Edits()
    return Edits(
        {found.line: list(found.lines), found.function: []}, dict(found.names), made=set(found.made), moves=True
    )


def _of_choices(file: ParsedFile) -> Edits:
    """One construction of an Estimator, or RunConfig, in the place of several, of which a condition chooses one."""
    found = chosen(file)
    if found is None:
        return Edits()
    if found.symbol.endswith("RunConfig"):
        return Edits(
            {found.statement: list(found.lines)}, made=set(found.made), moves=True, came={found.call: found.calls[0]}
        )
    at = [file.position(call) for call in found.calls]
    places = [(line, column) for line, column in at]
    every = [one for place in places for one in file.choices.get(place, (place,))]
    return Edits(
        {found.statement: list(found.lines)},
        made=set(found.made),
        moves=True,
        came={found.call: found.calls[0]},
        choices={places[0]: tuple(every)},
    )


def _of_values(file: ParsedFile, elsewhere: Callable[[str], bool]) -> Edits:
    """What gives one of its parts, or what was put into a list, by what the evaluator knows of it."""
    found = known_values(file, [one for one in functions_in(file.module) if _is_concerned(one)], elsewhere)
    if found is None:
        return Edits()
    edits = Edits(found.lines, made=set(found.made))
    edits.expressions = {node: fitting(file.parents.get(node), node, new) for node, new in found.expressions.items()}
    edits.said = tuple(
        file.finding(
            "TFM117",
            Severity.REVIEW,
            test,
            f"`{file.code(test)}` is always {holds}: the other branch is gone",
        )
        for test, holds in found.decided
    )
    return edits


@dataclass(frozen=True)
class _Place:
    """A line of one statement: the block around it, and its index there.

    `repeated` says that it may run more than once, `guarded` that the scope may go on when it fails halfway.
    """

    line: _Line
    block: _Block
    index: int
    repeated: bool
    guarded: bool

    @property
    def small(self) -> cst.BaseSmallStatement:
        return self.line.body[0]


class _Edits:
    """Reads one round of edits from a file. Edits of a round are about different names and different lines."""

    def __init__(self, file: ParsedFile, elsewhere: Callable[[str], bool], made: set[str]) -> None:
        self.file = file
        self.elsewhere = elsewhere
        self.made = made
        self.edits = Edits()
        self.taken = set(file.names) | made
        self.bindings = Counter(binding.name for binding in read_bindings(file.module))
        self.as_text = _printed_as_text(file.module)

    def replace(self, node: cst.CSTNode, new: cst.BaseExpression) -> None:
        """An expression in the place of another, in parentheses where it needs them there."""
        self.edits.expressions[node] = fitting(self.file.parents.get(node), node, new)

    @cached_property
    def stored(self) -> frozenset[str]:
        """The attributes that anything in the file gets by that name."""
        attributes = of_kinds(self.file.module, cst.Attribute)
        above = [self.file.parents.get(one) for one in attributes]
        return frozenset(
            one.attr.value
            for one, around in equal_zip(attributes, above)
            if isinstance(around, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.Element, cst.StarredElement))
        )

    def read_elsewhere(self, function: cst.FunctionDef) -> set[str]:
        """The names of attributes that stand outside of a function, here or in another file, and all after a `*`."""
        inside = set(nodes_in(function))
        every = of_kinds(self.file.module, cst.Attribute)
        outer = {one.attr.value for one in every if one not in inside}
        return outer | {one.attr.value for one in every if one in inside and self.elsewhere(one.attr.value)}

    def has_comment(self, node: cst.CSTNode) -> bool:
        """Whether there may be a comment inside of a node."""
        return self.file.may_have_comment(node)

    def is_builtin(self, name: str) -> bool:
        """Whether nothing in the file binds a name of Python's."""
        return name not in self.bindings and not self.file.imports.star_names & {name}

    def read(self) -> Edits:
        _OfScope(self, self.file.module).read()
        for function in functions_in(self.file.module):
            if _is_concerned(function):
                _OfScope(self, function).read()
        self._expressions()
        return self.edits

    def _expressions(self) -> None:
        """Expressions that mean the same wherever they stand."""
        for call in reversed(calls_in(self.file.module)):  # the inner ones first
            if call in self.as_text or self.has_comment(call):
                continue
            new = (
                self._attribute(call)
                or self._partial(call)
                or self._spread(call)
                or self._text(call)
                or self._replaced(call)
            )
            new = new or called_lambda(self.file, call) or forwarded(self.file, call)
            if new is not None and not self._is_edited(call):
                self.replace(call, new)
        for function in functions_in(self.file.module):
            self._chosen_by_mode(function)
        functions = self.file.functions
        said = [node.value for node in name_nodes(self.file.module)]
        for function in functions_in(self.file.module):
            is_read = said.count(function.name.value) > 1 or self.elsewhere(function.name.value)
            for one in function.decorators if is_read else ():
                name = one.decorator
                known = functions.get(name.value) if isinstance(name, cst.Name) else None
                if known is None or not _is_identity(known) or self.bindings[known.name.value] != 1:
                    continue
                if not self.has_comment(one):
                    self.edits.decorators.add(one)

    def _chosen_by_mode(self, function: cst.FunctionDef) -> None:
        """`{TRAIN: a, EVAL: b}[mode]`, `{TRAIN: a}.get(mode, b)()` in a model_fn: conditional expressions."""
        if "mode" not in {parameter.name.value for parameter in function.params.params}:
            return
        dicts = [one for one in of_kinds(function, cst.Dict) if one.elements]
        for table in dicts:
            chosen, entries, default = self._asked(table)
            if chosen is None or chosen in self.as_text or self.has_comment(chosen):
                continue
            call = self.file.parents.get(chosen)
            if not isinstance(call, cst.Call) or call.func is not chosen:
                call = None
            if self._is_edited(call or chosen):
                continue
            if default is None:
                (_, default), entries = entries[-1], entries[:-1]
            value = call.with_changes(func=default) if call is not None else default
            for key, one in reversed(entries):
                test = cst.Comparison(cst.Name("mode"), [cst.ComparisonTarget(cst.Equal(), key)])
                value = cst.IfExp(test, call.with_changes(func=one) if call is not None else one, value)
            self.replace(call or chosen, value)

    def _asked(
        self, table: cst.Dict
    ) -> tuple[
        cst.Subscript | cst.Call | None,
        list[tuple[cst.BaseExpression, cst.BaseExpression]],
        cst.BaseExpression | None,
    ]:
        """What asks a dict for the entry of the mode, its entries, and the default; all of them names or constants."""
        entries = [(one.key, one.value) for one in table.elements if isinstance(one, cst.DictElement)]
        parent = self.file.parents.get(table)
        nothing = None, entries, None
        if len(entries) != len(table.elements) or not all(is_harmless(one) for pair in entries for one in pair):
            return nothing
        if isinstance(parent, cst.Subscript) and parent.value is table and len(parent.slice) == 1:
            index = parent.slice[0].slice
            is_mode = isinstance(index, cst.Index) and isinstance(index.value, cst.Name) and index.value.value == "mode"
            return (parent, entries, None) if is_mode else nothing
        call = self.file.parents.get(parent) if isinstance(parent, cst.Attribute) else None
        if not isinstance(call, cst.Call) or not isinstance(parent, cst.Attribute) or parent.attr.value != "get":
            return nothing
        values = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
        if len(values) != len(call.args) or len(values) != 2 or not is_harmless(values[1]):
            return nothing
        is_mode = isinstance(values[0], cst.Name) and values[0].value == "mode"
        return (call, entries, values[1]) if is_mode else nothing

    def _is_edited(self, node: cst.CSTNode) -> bool:
        """Whether a node, or one below, is edited already in this round."""
        return any(one in self.edits.expressions for one in nodes_in(node))

    def _attribute(self, call: cst.Call) -> cst.BaseExpression | None:
        """`getattr(x, "name")`."""
        found = attribute_asked(_with_whole_text(call))
        return found if found is not None and self.is_builtin("getattr") and _is_dotted(found.value) else None

    def _partial(self, call: cst.Call) -> cst.Call | None:
        """`functools.partial(f, a)(b)`."""
        inner = call.func
        if not isinstance(inner, cst.Call) or self.file.imports.resolve(inner.func) != "functools.partial":
            return None
        return _applied(inner, call)

    def _text(self, call: cst.Call) -> cst.SimpleString | None:
        """`"{}".format("name")`, `"_".join(["a", "b"])`, `"A".lower()`: a text that TensorFlow is given."""
        arg = self.file.parents.get(call)
        given = self.file.parents.get(arg) if isinstance(arg, cst.Arg) else None
        if not isinstance(given, cst.Call) or self.file.imports.tensorflow(given.func) is None:
            return None
        text = text_of(call)
        return cst.SimpleString(repr(text)) if text is not None else None

    def _replaced(self, call: cst.Call) -> cst.Call | None:
        """`TrainSpec(input_fn)._replace(max_steps=40)`: `TrainSpec(input_fn, max_steps=40)`."""
        made = call.func.value if isinstance(call.func, cst.Attribute) and call.func.attr.value == "_replace" else None
        symbol = self.file.imports.tensorflow(made.func) if isinstance(made, cst.Call) else None
        if not isinstance(made, cst.Call) or symbol not in ("tf.estimator.TrainSpec", "tf.estimator.EvalSpec"):
            return None
        if any(arg.star for arg in (*made.args, *call.args)) or any(arg.keyword is None for arg in call.args):
            return None
        places = [arg for arg in made.args if arg.keyword is None]
        named = {arg.keyword.value for arg in (*made.args, *call.args) if arg.keyword is not None}
        whole = len(named) + len(places) == len(made.args) + len(call.args)
        is_apart = whole and named.isdisjoint(FIELDS[symbol][: len(places)])
        return with_arguments(made, [*made.args, *call.args]) if is_apart else None

    def _spread(self, call: cst.Call) -> cst.Call | None:
        """`f(**{"a": b})`, `f(**dict(a=b))`, `f(*[a, b])`."""
        args: list[cst.Arg] = []
        for arg in call.args:
            written = self._written_out(arg)
            args += [arg] if written is None else written
        given = [arg.keyword.value for arg in args if arg.keyword is not None]
        if len(set(given)) != len(given):
            return None
        if len(args) == len(call.args) and all(a is b for a, b in equal_zip(args, call.args)):
            return None
        return with_arguments(call, args)

    def _written_out(self, arg: cst.Arg) -> list[cst.Arg] | None:
        if arg.star == "**":
            given = self.keywords_of(arg.value)
            return None if given is None else [keyword_argument(name, value) for name, value in given.items()]
        if arg.star == "*" and isinstance(arg.value, (cst.List, cst.Tuple)):
            values = [one.value for one in arg.value.elements if isinstance(one, cst.Element)]
            return [cst.Arg(value) for value in values] if len(values) == len(arg.value.elements) else None
        return None

    def keywords_of(self, node: cst.BaseExpression) -> dict[str, cst.BaseExpression] | None:
        """What a dict of keywords holds: `{"a": b}` or `dict(a=b)`, also `{**{"a": b}}` and `dict({"a": b})`."""
        is_dict = self.is_builtin("dict")
        if isinstance(node, cst.Name):
            return self._keywords_kept(node.value)
        entries = written_entries(node, is_dict)
        parts: list[dict[str, cst.BaseExpression] | None] = []
        if entries is not None:
            named = [(string(one.key), one.value) for one in entries]
            parts = [{name: value} if name is not None and is_identifier(name) else None for name, value in named]
        elif isinstance(node, cst.Dict):
            for one in node.elements:
                parts.append(self.keywords_of(one.value if type(one) is cst.StarredDictElement else cst.Dict([one])))
        elif isinstance(node, cst.Call) and dotted(node.func) == "dict" and is_dict and node.args:
            first, *rest = node.args
            if first.keyword is None and not first.star:
                parts = [self.keywords_of(first.value), self.keywords_of(node.with_changes(args=rest))]
        found: dict[str, cst.BaseExpression] = {}
        for more in parts or (None,):
            if more is None or not all(is_harmless(found[one]) for one in found.keys() & more):
                return None if parts or entries is None else {}
            found = {**{name: value for name, value in found.items() if name not in more}, **more}
        return found

    def _keywords_kept(self, name: str) -> dict[str, cst.BaseExpression] | None:
        """What a dict of the module holds that nobody changes: constants, and names of TensorFlow."""
        value = self.file.constants.get(name)
        if value is None or isinstance(value, cst.Name) or self.elsewhere(name) or self.bindings[name] != 1:
            return None
        uses = [node for node in name_nodes(self.file.module) if node.value == name]
        above = [self.file.parents.get(node) for node in uses]
        if not all(isinstance(one, cst.AssignTarget) or (isinstance(one, cst.Arg) and one.star) for one in above):
            return None
        found = self.keywords_of(value)
        known = found is not None and all(
            _is_literal(one) or self.file.imports.tensorflow(one) is not None for one in found.values()
        )
        return found if known else None


class _OfScope:
    """The edits of one scope: of its names that are bound once, and of its lines."""

    def __init__(self, of: _Edits, scope: _Scope) -> None:
        self.of = of
        self.file = of.file
        self.scope = scope
        self.edits = of.edits
        self.places = {place.small: place for place in _places(scope)}
        self.bound: dict[str, list[Binding]] = {}
        for binding in bound_in(scope):
            self.bound.setdefault(binding.name, []).append(binding)
        everywhere: dict[str, int] = {}
        for binding in read_bindings(scope):
            everywhere[binding.name] = everywhere.get(binding.name, 0) + 1
        self.shadowed = {name for name, count in everywhere.items() if count != len(self.bound.get(name, ()))}
        self.shadowed |= {node.value for node in self.of.as_text if isinstance(node, cst.Name)}
        self.nodes: dict[str, list[cst.Name]] = {}
        for node in name_nodes(scope):
            self.nodes.setdefault(node.value, []).append(node)

    def read(self) -> None:
        for place in self.places.values():
            small = place.small
            if place.line in self.edits.lines:
                continue
            if self.of.has_comment(small):
                continue
            if isinstance(small, cst.Expr) and isinstance(small.value, cst.NamedExpr):
                self._walrus(place, small.value)
            elif isinstance(small, cst.Assign) and not self._unread_yet(place, small):
                self._chained(place, small)
                self._unpacked(place, small)
                self._copy(place, small)
                self._container(place, small)
                self._keywords(place, small)
                self._named_partial(place, small)
                self._bound_method(place, small)
                self._result(place, small)
        self._attributes()
        for function in self._builders():
            self._inlined(function)

    # -- what is known of names

    def _single(self, name: str) -> _Place | None:
        """The line that binds a name of this scope, where that is the only one, a plain assignment of it alone."""
        bindings = self.bound.get(name, [])
        if len(bindings) != 1 or name in self.shadowed or name in self.edits.touched:
            return None
        binding = bindings[0]
        if binding.form not in (Form.ASSIGNED, Form.ANNOTATED) or not isinstance(binding.node, cst.Assign):
            return None
        if len(binding.node.targets) != 1 or not isinstance(binding.node.targets[0].target, cst.Name):
            return None
        return self.places.get(binding.node)

    def _may_go(self, name: str) -> bool:
        return isinstance(self.scope, cst.FunctionDef) or not self.of.elsewhere(name)

    def _uses(self, name: str) -> list[cst.Name]:
        """Where a name is read, by functions inside too."""
        [binding] = self.bound[name]
        return [node for node in self.nodes.get(name, ()) if node is not binding.place]

    def _is_unread(self, name: str) -> bool:
        """Whether nothing reads a name of this scope, which all its bindings assign."""
        bindings = self.bound.get(name, [])
        places = {binding.place for binding in bindings}
        assigned = all(binding.form is Form.ASSIGNED for binding in bindings)
        return assigned and self._may_go(name) and all(node in places for node in self.nodes.get(name, ()))

    def _is_steady(self, node: cst.BaseExpression) -> bool:
        """Whether an expression gives the same wherever in the scope it is evaluated: constants, names bound once."""
        if isinstance(node, cst.Attribute):  # of TensorFlow: those of other objects may change
            symbol = self.file.imports.tensorflow(node)
            return symbol is not None and "FLAGS" not in symbol
        if not isinstance(node, cst.Name):
            return _is_constant(node)
        name = node.value
        if name not in self.bound:
            if name in self._around:
                return False
            of_module = [binding for binding in bound_in(self.file.module) if binding.name == name]
            lasting = [binding for binding in of_module if binding.form in _LASTING]
            return not of_module or (len(of_module) == 1 and (bool(lasting) or name in self.file.constants))
        if len(self.bound[name]) != 1:
            return False
        [binding] = self.bound[name]
        if binding.form in _LASTING:
            return True
        place = self.places.get(cast("cst.BaseSmallStatement", binding.node))
        return place is not None and not place.repeated

    @cached_property
    def _around(self) -> set[str]:
        """The names of the functions around the scope."""
        found: set[str] = set()
        node = self.file.parents.get(self.scope)
        while node is not None:
            if isinstance(node, (cst.FunctionDef, cst.Lambda)):
                found |= {binding.name for binding in bound_in(node)}
            node = self.file.parents.get(node)
        return found

    def _free(self, wanted: str) -> str:
        wanted = re.sub(r"\W+", "_", wanted).strip("_").lower() or "value"
        name = free(f"{wanted}_" if keyword.iskeyword(wanted) else wanted, self.of.taken)
        self.of.taken.add(name)
        self.edits.made.add(name)
        return name

    # -- lines

    def _put(self, place: _Place, smalls: Sequence[cst.BaseSmallStatement]) -> None:
        """Lines in the place of one; the comments above it stay above the first."""
        lines: list[cst.BaseStatement] = [cst.SimpleStatementLine([small]) for small in smalls]
        if lines:
            lines[0] = cast("_Line", lines[0]).with_changes(leading_lines=place.line.leading_lines)
            lines[-1] = cast("_Line", lines[-1]).with_changes(trailing_whitespace=place.line.trailing_whitespace)
        self.edits.lines[place.line] = lines

    def _walrus(self, place: _Place, node: cst.NamedExpr) -> None:
        """`(x := value)` as a statement."""
        self._put(place, [_assign(cast("cst.Name", node.target), node.value)])

    def _chained(self, place: _Place, small: cst.Assign) -> None:
        """`a = b = value`."""
        names = [one.target for one in small.targets]
        if len(names) < 2 or not all(isinstance(one, cst.Name) for one in names):
            return
        first = cast("cst.Name", names[0])
        again = small.value if _is_literal(small.value) else cst.Name(first.value)
        more = [_assign(cast("cst.Name", one), again.deep_clone()) for one in names[1:]]
        self._put(place, [_assign(first, small.value), *more])
        self.edits.touched |= {cast("cst.Name", one).value for one in names}

    def _unpacked(self, place: _Place, small: cst.Assign) -> None:
        """`(a, b) = (c, d)`, where d does not read a."""
        target, value = small.targets[0].target, small.value
        if len(small.targets) != 1 or not isinstance(target, (cst.Tuple, cst.List)):
            return
        while self._is_gone_over(value):
            value = cast("cst.Call", value).args[0].value
        if not isinstance(value, (cst.Tuple, cst.List)):
            return
        names = [one.value for one in target.elements]
        values = [one.value for one in value.elements if isinstance(one, cst.Element)]
        if len(values) != len(value.elements):
            return
        starred = [index for index, one in enumerate(target.elements) if isinstance(one, cst.StarredElement)]
        if starred and len(values) >= len(names) - 1:
            [start], end = starred, len(values) - (len(names) - 1 - starred[0])
            middle = values[start:end]
            name = names[start]
            if isinstance(name, cst.Name) and self._is_unread(name.value) and all(map(_is_literal, middle)):
                values[start:end] = []
                del names[start]
            else:
                values[start:end] = [cst.List([cst.Element(one) for one in middle])]
        if not names or len(values) != len(names) or not all(isinstance(one, cst.Name) for one in names):
            return
        if place.guarded and not all(isinstance(one, cst.Name) or _is_literal(one) for one in values[1:]):
            return  # where one of them fails, none of the names has its value
        known = [cast("cst.Name", one).value for one in names]
        if len(known) > 1 and len(set(known)) == len(known) and any(map(is_harmless, values)):
            # What changes place with another, and is not read any more, is given to no name.
            kept = [
                pair for pair in equal_zip(known, values) if not is_harmless(pair[1]) or self._is_live(place, pair[0])
            ]
            known, values = [name for name, _ in kept], [one for _, one in kept]
        if len(set(known)) != len(known) or not set(known) <= set(self.bound):
            return
        for index, one in enumerate(values):
            before = set(known[:index])
            seen = before & names_in(one) or (_has_call(one) and any(self._is_read_inside(name) for name in before))
            if seen:
                return
        self._put(place, [_assign(cst.Name(name), one) for name, one in equal_zip(known, values)])
        self.edits.touched |= set(known)

    def _is_gone_over(self, node: cst.BaseExpression) -> bool:
        """Whether an expression is `list(x)`, `tuple(x)` or `iter(x)`."""
        name = node.func.value if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) else ""
        if not isinstance(node, cst.Call) or name not in ("list", "tuple", "iter") or len(node.args) != 1:
            return False
        return self.of.is_builtin(name) and not node.args[0].star and node.args[0].keyword is None

    def _yielded(self, function: cst.FunctionDef, call: cst.Call) -> cst.BaseExpression | None:
        """`iter([a, b])` for a generator of nothing but `yield a` and `yield b`, all of which are asked for at once."""
        lines = [line for line in function.body.body if not is_docstring(line)]
        smalls = [one for line in lines for one in (line.body if isinstance(line, _Line) else (None,))]
        given = [
            one.value.value if isinstance(one, cst.Expr) and isinstance(one.value, cst.Yield) else None
            for one in smalls
        ]
        values = [one for one in given if isinstance(one, cst.BaseExpression)]
        arg = self.file.parents.get(call)
        above = self.file.parents.get(arg) if isinstance(arg, cst.Arg) else arg
        asks_once = isinstance(above, cst.Call) and isinstance(above.func, cst.Name) and above.func.value == "next"
        whole = self._is_gone_over(above) if isinstance(above, cst.Call) else isinstance(above, cst.Assign)
        if not values or len(values) != len(smalls) or not self.of.is_builtin("iter"):
            return None
        if isinstance(above, cst.Assign) and not all(
            isinstance(one.target, (cst.Tuple, cst.List)) for one in above.targets
        ):
            return None
        if not (whole or (asks_once and len(values) == 1 and self.of.is_builtin("next"))):
            return None
        return cst.Call(cst.Name("iter"), [cst.Arg(cst.List([cst.Element(one) for one in values]))])

    def _is_live(self, place: _Place, name: str) -> bool:
        """Whether the value that a line gives a name may be read behind it."""
        if not isinstance(self.scope, cst.FunctionDef) or name not in self.bound or name in self.shadowed:
            return True
        return is_read_behind(self.file, self.scope, place.line, name)

    def _unread_yet(self, place: _Place, small: cst.Assign) -> bool:
        """`loss = None` above a line that gives the name another value: it goes."""
        target = small.targets[0].target
        if len(small.targets) != 1 or not isinstance(target, cst.Name) or not _is_literal(small.value):
            return False
        name = target.value
        if len(self.bound.get(name, ())) < 2 or name in self.edits.touched or self._is_live(place, name):
            return False
        self.edits.lines[place.line] = []
        self.edits.touched.add(name)
        return True

    def _is_read_inside(self, name: str) -> bool:
        """Whether a function may read a name of this scope when it is called."""
        if isinstance(self.scope, cst.Module) and self.of.elsewhere(name):
            return True
        body = self.scope if isinstance(self.scope, cst.Module) else self.scope.body
        return any(name in names_in(function) for function in functions_in(body))

    def _copy(self, place: _Place, small: cst.Assign) -> None:
        """`b = a`, where each of both is bound once: one name for both."""
        target, value = small.targets[0].target, small.value
        if len(small.targets) != 1 or not isinstance(target, cst.Name) or not isinstance(value, cst.Name):
            return
        both = {target.value, value.value}
        if len(both) == 1 or value.value in _SINGLETONS or both & self.edits.touched:
            return
        if self._is_made_for(place, target.value, value.value):
            return
        one, other = self._single(target.value), self._single(value.value)
        old, new = value.value, target.value
        if other is not None and self._is_only_for(other, value.value, place, one):
            nodes: list[cst.CSTNode] = [cst.ensure_type(other.small, cst.Assign).targets[0].target]
        elif target.value not in self.shadowed and self._is_unread(target.value):
            nodes = []
        elif one is place and other is not None and not (one.repeated or other.repeated) and self._may_go(target.value):
            old, new, nodes = target.value, value.value, list(self._uses(target.value))
        else:
            return
        for node in nodes:
            self.of.replace(node, cst.Name(new))
        self.edits.lines[place.line] = []
        self.edits.touched |= {old, new}

    def _is_made_for(self, place: _Place, target: str, name: str) -> bool:
        """Gives a name what the line above made for it under another name, which is not read any more."""
        above = place.block.body[place.index - 1] if place.index else None
        small = above.body[0] if isinstance(above, cst.SimpleStatementLine) and len(above.body) == 1 else None
        if not isinstance(small, cst.Assign) or len(self.bound.get(name, ())) < 2 or above in self.edits.lines:
            return False
        made = small.targets[0].target
        if len(small.targets) != 1 or not isinstance(made, cst.Name) or made.value != name:
            return False
        if target in self.shadowed or target not in self.bound or self._is_live(place, name):
            return False
        if self.of.has_comment(small) or self._is_read_inside(target):
            return False
        self.of.replace(made, cst.Name(target))
        self.edits.lines[place.line] = []
        self.edits.touched |= {target, name}
        return True

    def _is_only_for(self, other: _Place, name: str, place: _Place, one: _Place | None) -> bool:
        """Whether a name is bound for nothing but its copy in a line, so that its value may get the other name."""
        if len(self._uses(name)) != 1 or not self._may_go(name) or not _follows(other, place):
            return False
        return other.index + 1 == place.index or (one is place and not one.repeated)

    def _container(self, place: _Place, small: cst.Assign) -> None:
        """`c = {"a": x}`, of which only `c["a"]` is read: each of its values gets a name, and one of TensorFlow has its
        own."""
        target = small.targets[0].target
        fields = self._fields(small.value)
        values = fields or _elements(small.value)
        if not values or not isinstance(target, cst.Name) or self._single(target.value) is not place:
            return
        public = all(
            self.file.imports.tensorflow(value) is not None or self._is_function(value) or self._is_kept(value)
            for value in values.values()
        )
        if not self._may_go(target.value) or not (public or any(_computes(value) for value in values.values())):
            return
        reads: list[tuple[cst.BaseExpression, str | int]] = []
        for use in self._uses(target.value):
            node, key = self._field_read(use) if fields else self._entry_read(use)
            if node is None or key is None or key not in values:
                return
            if public and not self._means_the_same(names_in(values[key]), node):
                return
            reads.append((node, key))
        if public:
            for node, key in reads:
                self.of.replace(node, values[key].deep_clone())
            if reads:
                self.edits.lines[place.line] = []
                self.edits.touched.add(target.value)
            return
        names = {key: self._free(f"{target.value}_{key}") for key in values}
        self._put(place, [_assign(cst.Name(names[key]), value) for key, value in values.items()])
        for node, key in reads:
            self.of.replace(node, cst.Name(names[key]))
        self.edits.touched.add(target.value)

    def _fields(self, node: cst.BaseExpression) -> dict[str | int, cst.BaseExpression]:
        """What the attributes of a named tuple are given that is made there, in their order; nothing for others."""
        if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Name):
            return {}
        made = self.file.constants.get(node.func.value)
        if not isinstance(made, cst.Call) or self.file.imports.resolve(made.func) != "collections.namedtuple":
            return {}
        names = _field_names(made)
        given = [arg.keyword.value if arg.keyword is not None else None for arg in node.args]
        keys = [name or at for name, at in zip(given, names)]
        if len(given) != len(names) or sorted(keys) != sorted(names) or any(arg.star for arg in node.args):
            return {}
        return {key: arg.value for key, arg in equal_zip(keys, node.args)}

    def _is_kept(self, node: cst.BaseExpression) -> bool:
        """Whether an expression is a name of the scope that is given a value once."""
        return isinstance(node, cst.Name) and node.value in self.bound and self._is_steady(node)

    def _is_function(self, node: cst.BaseExpression) -> bool:
        """Whether an expression is the name of a function of the scope that is always this one."""
        bound = self.bound.get(node.value, ()) if isinstance(node, cst.Name) else ()
        return len(bound) == 1 and bound[0].form is Form.FUNCTION

    def _entry_read(self, use: cst.Name) -> tuple[cst.BaseExpression | None, str | int | None]:
        """The expression `c["a"]` or `c.get("a")` that a mention of a container is part of, and its key."""
        parent = self.file.parents.get(use)
        if isinstance(parent, cst.Subscript) and parent.value is use and not self._is_stored(parent):
            return parent, _key(parent)
        call = self.file.parents.get(parent) if isinstance(parent, cst.Attribute) else None
        if isinstance(parent, cst.Attribute) and isinstance(call, cst.Call) and call.func is parent:
            if parent.attr.value == "get" and len(call.args) == 1 and not (call.args[0].star or call.args[0].keyword):
                return call, _literal(call.args[0].value)
        return None, None

    def _field_read(self, use: cst.Name) -> tuple[cst.BaseExpression | None, str | int | None]:
        """The expression `pair.first` that a mention of a named tuple is part of, and its field."""
        parent = self.file.parents.get(use)
        if isinstance(parent, cst.Attribute) and parent.value is use and parent.attr.value not in self.of.stored:
            return parent, parent.attr.value
        return None, None

    def _is_stored(self, node: cst.Subscript) -> bool:
        """Whether an assignment of any kind, a loop or a `with` gives an entry a value, or `del` takes it away."""
        at: cst.CSTNode = node
        parent = self.file.parents.get(at)
        while isinstance(parent, (cst.Element, cst.StarredElement, cst.Tuple, cst.List)):
            at, parent = parent, self.file.parents.get(parent)
        if isinstance(parent, (cst.Del, cst.AsName)):
            return True
        return getattr(parent, "target", None) is at

    def _keywords(self, place: _Place, small: cst.Assign) -> None:
        """`options = {"a": b}`, whose only use is one `f(**options)`: `f(a=b)`; a tuple of one `f(*parts)`, too."""
        target = small.targets[0].target
        if not isinstance(target, cst.Name) or self._single(target.value) is not place:
            return
        named = self.of.keywords_of(small.value)
        parts = small.value.elements if isinstance(small.value, (cst.List, cst.Tuple)) else None
        whole = parts is not None and all(isinstance(one, cst.Element) for one in parts)
        placed = _elements(small.value) if whole else None
        given: Mapping[str | int, cst.BaseExpression] | None = cast("Any", named) if named is not None else placed
        uses = self._uses(target.value)
        if given is None or len(uses) != 1 or not self._may_go(target.value) or place.repeated:
            return
        arg = self.file.parents.get(uses[0])
        if named and self._merged(place, small, uses[0]):
            return
        star = "**" if named is not None else "*"
        call = self.file.parents.get(arg) if isinstance(arg, cst.Arg) and arg.star == star else None
        if not isinstance(call, cst.Call) or self.of._is_edited(call) or self.of.has_comment(call):
            return
        taken = {one.keyword.value for one in call.args if one.keyword is not None}
        if taken & set(given):
            return
        if not self._may_move(place, call) and not all(self._is_steady(value) for value in given.values()):
            names = {name: self._free(f"{target.value}_{name}") for name in given}
            self._put(place, [_assign(cst.Name(names[name]), value) for name, value in given.items()])
            given = {name: cst.Name(names[name]) for name in given}
        else:
            self.edits.lines[place.line] = []
        args: list[cst.Arg] = []
        for one in call.args:
            new = [keyword_argument(n, value) if isinstance(n, str) else cst.Arg(value) for n, value in given.items()]
            args += new if one is arg else [one]
        self.of.replace(call, with_arguments(call, args))
        self.edits.touched.add(target.value)

    def _merged(self, place: _Place, small: cst.Assign, use: cst.Name) -> bool:
        """Puts a dict into the one that it is only there for: `{**options, "c": d}`. What may change gets a name."""
        above = self.file.parents.get(use)
        call = self.file.parents.get(above) if isinstance(above, cst.Arg) and not above.star else None
        made = isinstance(call, cst.Call) and call.args[0] is above and self.of.keywords_of(call) is None
        made = made and isinstance(call, cst.Call) and last_name(call.func) == "dict" and self.of.is_builtin("dict")
        given = self.of.keywords_of(small.value) or {}
        if not (made or isinstance(above, cst.StarredDictElement)) or above is None or self.of._is_edited(above):
            return False
        target = cast("cst.Name", small.targets[0].target).value
        names = {key: self._free(f"{target}_{key}") for key, value in given.items() if not self._is_steady(value)}
        values = [cst.Name(names[key]) if key in names else value for key, value in given.items()]
        elements = [cst.DictElement(cst.SimpleString(f'"{key}"'), value) for key, value in equal_zip(given, values)]
        self.of.replace(use, cst.Dict(elements))
        self._put(place, [_assign(cst.Name(name), given[key]) for key, name in names.items()])
        self.edits.touched.add(target)
        return True

    def _may_move(self, place: _Place, call: cst.Call) -> bool:
        """Whether what a line computes may be computed in a call of the next line, and nothing else comes between."""
        body = place.block.body
        after = body[place.index + 1] if place.index + 1 < len(body) else None
        if not isinstance(after, cst.SimpleStatementLine) or len(after.body) != 1:
            return False
        small = after.body[0]
        value = getattr(small, "value", None)
        if value is not call:
            return False
        return all(self._is_steady(part) for part in (call.func, *(arg.value for arg in call.args)))

    def _bound_method(self, place: _Place, small: cst.Assign) -> None:
        """`run = estimator.train`, which is only called: `estimator.train(...)` there."""
        target, value = small.targets[0].target, small.value
        if not isinstance(target, cst.Name) or not isinstance(value, cst.Attribute) or place.line in self.edits.lines:
            return
        if (self.file.imports.tensorflow(value) or "").endswith("Optimizer"):
            self._named_class(place, target, value)
            return
        if (
            not isinstance(value.value, cst.Name)
            or value.value.value not in self.bound
            or not self._may_go(target.value)
        ):
            return
        if self._single(target.value) is not place or not self._is_steady(value.value):
            return
        uses = self._uses(target.value)
        calls = [self.file.parents.get(use) for use in uses]
        called = all(isinstance(call, cst.Call) and call.func is use for call, use in equal_zip(calls, uses))
        if not uses or not called or value.attr.value in self.of.stored:
            return
        for use in uses:
            self.of.replace(use, value.deep_clone())
        self.edits.lines[place.line] = []
        self.edits.touched |= {target.value, value.value.value}

    def _named_class(self, place: _Place, target: cst.Name, value: cst.Attribute) -> None:
        """`kind = tf.train.AdamOptimizer`, which is only called: the class there."""
        if self._single(target.value) is not place or not self._may_go(target.value):
            return
        uses = self._uses(target.value)
        calls = [self.file.parents.get(use) for use in uses]
        called = all(isinstance(call, cst.Call) and call.func is use for call, use in equal_zip(calls, uses))
        if not uses or not called or not all(self._means_the_same(names_in(value), use) for use in uses):
            return
        for use in uses:
            self.of.replace(use, value.deep_clone())
        self.edits.lines[place.line] = []
        self.edits.touched.add(target.value)

    def _attributes(self) -> None:
        """Attributes that a function gives an object and reads again, and nobody else: names of its own.

        The object is that of the method, or one of a class without more to it that the function makes for this.
        """
        if not isinstance(self.scope, cst.FunctionDef):
            return
        found: dict[str, list[cst.Attribute]] = {}
        for node in of_kinds(self.scope, cst.Attribute):
            if isinstance(node.value, cst.Name):
                found.setdefault(node.value.value, []).append(node)
        first = self.scope.params.params[0].name.value if self.scope.params.params else None
        is_method = isinstance(self.file.parents.get(self.file.parents.get(self.scope) or self.scope), cst.ClassDef)
        for owner, nodes in found.items():
            if owner in self.edits.touched or owner in self.shadowed or len(self.bound.get(owner, ())) != 1:
                continue
            place = self._single(owner)
            if place is not None and not place.repeated and self._is_plain_object(place.small):
                if len(nodes) == len(self._uses(owner)):
                    self._as_names(owner, {one.attr.value for one in nodes}, nodes, place)
            elif is_method and owner == first:
                self._as_names(
                    owner, {one.attr.value for one in nodes} - self.of.read_elsewhere(self.scope), nodes, None
                )

    def _as_names(self, owner: str, wanted: set[str], nodes: list[cst.Attribute], place: _Place | None) -> None:
        """Names in the place of attributes that the function's own lines give a value before they are read."""
        inside = {node for one in functions_in(cast("cst.FunctionDef", self.scope).body) for node in nodes_in(one)}
        first: dict[str, cst.Attribute] = {}
        for one in nodes:
            target = self.file.parents.get(one)
            first.setdefault(one.attr.value, one)
            if isinstance(target, cst.AssignTarget):
                assign = self.file.parents.get(target)
                below = set(nodes_in(assign.value)) if isinstance(assign, cst.Assign) else set()
                read = {other.attr.value for other in nodes if other in below}
                is_first = first[one.attr.value] is one and one.attr.value in read
                if one in inside or is_first or not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
                    wanted = wanted - {one.attr.value}
            elif isinstance(target, (cst.Del, cst.AugAssign, cst.AnnAssign, cst.Element)) or one in self.of.as_text:
                wanted = wanted - {one.attr.value}
        given = {name for name, one in first.items() if isinstance(self.file.parents.get(one), cst.AssignTarget)}
        wanted = wanted & given
        if not wanted or (place is not None and wanted != first.keys()):
            return
        if any(self.of._is_edited(one) for one in nodes if one.attr.value in wanted):
            return
        names = {name: self._free(name) for name in sorted(wanted)}
        for one in nodes:
            if one.attr.value in names:
                self.of.replace(one, cst.Name(names[one.attr.value]))
        if place is not None:
            self.edits.lines[place.line] = []
        self.edits.touched |= {owner, *names.values()}

    def _is_plain_object(self, small: cst.BaseSmallStatement) -> bool:
        """Whether a line makes an object that has nothing of its own: `types.SimpleNamespace()`, an empty class."""
        call = small.value if isinstance(small, cst.Assign) else None
        if not isinstance(call, cst.Call) or call.args:
            return False
        if self.file.imports.resolve(call.func) in ("types.SimpleNamespace", "argparse.Namespace"):
            return True
        named = call.func.value if isinstance(call.func, cst.Name) else None
        made = [one for one in self.file.module.body if isinstance(one, cst.ClassDef) and one.name.value == named]
        if len(made) != 1 or self.of.bindings[made[0].name.value] != 1 or made[0].decorators or made[0].keywords:
            return False
        bases = [dotted(base.value) for base in made[0].bases]
        nothing = (cst.Pass, cst.Expr)
        lines = [line for line in made[0].body.body if not is_docstring(line)]
        smalls = [one for line in lines for one in (line.body if isinstance(line, _Line) else (None,))]
        return bases in ([], ["object"]) and all(isinstance(one, nothing) for one in smalls)

    def _named_partial(self, place: _Place, small: cst.Assign) -> None:
        """`make = functools.partial(f, a)`, which is only called: `f(a, ...)` there.

        What is computed for it gets a name where the partial was.
        """
        target, value = small.targets[0].target, small.value
        if (
            not isinstance(target, cst.Name)
            or self._single(target.value) is not place
            or not isinstance(value, cst.Call)
            or place.repeated
        ):
            return
        if self.file.imports.resolve(value.func) != "functools.partial" or not self._may_go(target.value):
            return
        uses = self._uses(target.value)
        calls = [call for use in uses if isinstance(call := self.file.parents.get(use), cst.Call) and call.func is use]
        if not calls or len(calls) != len(uses) or any(self.of._is_edited(call) for call in calls):
            return
        if any(self.of.has_comment(call) for call in calls) or any(arg.star for arg in value.args):
            return
        first, *given = value.args
        computed = [arg for arg in given if not self._is_steady(arg.value)]
        in_lambdas = isinstance(self.scope, cst.Module) and any(isinstance(arg.value, cst.Lambda) for arg in computed)
        if (not first.keyword and not self._is_steady(first.value)) or in_lambdas:
            return
        names = {
            arg: self._free(f"{target.value}_{arg.keyword.value}" if arg.keyword is not None else target.value)
            for arg in computed
        }
        named = [arg.with_changes(value=cst.Name(names[arg])) if arg in names else arg for arg in given]
        partial = value.with_changes(args=[first, *named])
        read = {name for arg in (first, *given) for name in names_in(arg.value)}
        applied = [_applied(partial if call is calls[0] else partial.deep_clone(), call, True) for call in calls]
        if any(one is None for one in applied) or not all(self._means_the_same(read, call) for call in calls):
            return
        for call, one in equal_zip(calls, applied):
            assert one is not None
            self.of.replace(call, one)
        self._put(place, [_assign(cst.Name(name), arg.value) for arg, name in names.items()])
        self.edits.touched.add(target.value)

    def _result(self, place: _Place, small: cst.Assign) -> None:
        """`result = train_and_evaluate(...)`, which nothing reads."""
        target, value = small.targets[0].target, small.value
        if (
            not isinstance(target, cst.Name)
            or self._single(target.value) is not place
            or not isinstance(value, cst.Call)
        ):
            return
        if last_name(value.func) in _TRAINING and not self._uses(target.value) and self._may_go(target.value):
            self._put(place, [cst.Expr(value)])
            self.edits.touched.add(target.value)

    # -- functions that return what one expression makes

    def _builders(self) -> Iterator[cst.FunctionDef]:
        for name, bindings in self.bound.items():
            made = bindings[0].node if len(bindings) == 1 and name not in self.shadowed else None
            if isinstance(made, cst.FunctionDef) and not made.decorators and made.asynchronous is None:
                yield made

    def _inlined(self, function: cst.FunctionDef) -> None:
        """`def build(): return Estimator(...)`, called once where its names mean the same: the expression there."""
        name = function.name.value
        closed = isinstance(self.scope, cst.FunctionDef) and not _takes(function)
        if not self._may_go(name) or name in self.edits.touched:
            return
        uses = [node for node in self.nodes.get(name, ()) if node is not function.name]
        call = self.file.parents.get(uses[0]) if len(uses) == 1 else None
        if not isinstance(call, cst.Call) or call.func is not uses[0] or self.of._is_edited(call):
            return
        value = returned(function) or self._yielded(function, call)
        if value is None or not (_makes_parts(value) or (closed and _has_call(value))):
            return
        if self.of.has_comment(function.body) or self.of.has_comment(call):
            return
        given = bound_arguments(function, call)
        if given is None or not all(is_harmless(one) for one in given.values()):
            return
        late = _names_read_late(value) & set(given)
        if not all(_is_literal(given[one]) for one in late):
            return
        inner = {binding.name for binding in read_bindings(function.body)}
        if inner or not self._means_the_same(names_in(value) - set(given), call):
            return
        self.of.replace(call, substituted(self.file, value, given))
        self.edits.lines[function] = []
        self.edits.touched.add(name)

    def _means_the_same(self, names: Iterable[str], call: cst.CSTNode) -> bool:
        """Whether names of this scope are not those of a function between it and a call."""
        node: cst.CSTNode | None = call
        while node is not None and node is not self.scope:
            node = self.file.parents.get(node)
            if (
                isinstance(node, (cst.FunctionDef, cst.Lambda, cst.ClassDef, *_Comprehension))
                and node is not self.scope
            ):
                if {binding.name for binding in bound_in(node)} & set(names):
                    return False
        return node is self.scope


def substituted(
    file: ParsedFile, value: cst.BaseExpression, given: Mapping[str, cst.BaseExpression]
) -> cst.BaseExpression:
    """An expression of a file with what names in it are given in their place."""
    nodes: dict[cst.CSTNode, cst.BaseExpression] = {
        node: fitting(file.parents.get(node), node, given[node.value])
        for node in name_nodes(value)
        if node.value in given
    }
    return cast("cst.BaseExpression", value.visit(_Again(nodes)))


class _Writer(Tracked):
    def __init__(self, file: ParsedFile, edits: Edits) -> None:
        super().__init__()
        self.file = file
        self.edits = edits
        self.orders: dict[cst.CSTNode, tuple[int, ...]] = {}
        self.around: set[cst.CSTNode] = {file.module}
        for node in (*edits.lines, *edits.expressions, *edits.decorators):
            for above in file.above(node):
                if above in self.around:
                    break
                self.around.add(above)

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Whether an edit is below a node: what stands elsewhere stays as it is, with all that is known of it."""
        return node in self.around

    def _note(self, new: cst.CSTNode, again: _Again, instead_of: cst.CSTNode) -> None:
        """Where the nodes of new code come from: the node itself, or what the code stands for."""
        for part in nodes_in(new):
            old = again.made.get(part, part)
            old = self.edits.came.get(old, old)
            self.made[part] = old if self.file.has(old) else instead_of

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        if original_node in self.edits.expressions:
            new = self.edits.expressions[original_node]
            inner = _Again(self.edits.expressions)
            new = cast("cst.BaseExpression", new.visit(inner))
            self._note(new, inner, original_node)
            return new
        return super().on_leave(original_node, updated_node)

    def leave_Decorator(
        self, original_node: cst.Decorator, updated_node: cst.Decorator
    ) -> cst.Decorator | cst.RemovalSentinel:
        return cst.RemoveFromParent() if original_node in self.edits.decorators else updated_node

    def _lines(
        self, old: Sequence[cst.BaseStatement], new: Sequence[cst.BaseStatement]
    ) -> tuple[list[cst.BaseStatement], list[cst.EmptyLine]]:
        """The lines of a block, and the comments of the last ones that went."""
        found: list[cst.BaseStatement] = []
        above: list[cst.EmptyLine] = []
        for before, after in equal_zip(old, new):
            lines = self.edits.lines.get(before)
            if lines is None:
                if above:
                    after = after.with_changes(leading_lines=[*above, *getattr(after, "leading_lines", ())])
                    self.made[after] = before
                    above = []
                found.append(after)
                continue
            if lines and above:
                first = cast("_Line", lines[0])
                lines = [first.with_changes(leading_lines=[*above, *first.leading_lines]), *lines[1:]]
                above = []
            again = _Again(self.edits.expressions)
            for index, line in enumerate(lines):
                made = cast("cst.BaseStatement", line.visit(again))
                self._note(made, again, before)
                found.append(made)
                if self.edits.moves:
                    here = (*self.file.position(before).order, index)
                    self.orders.update(
                        {part: (*here, *self.file.position(self.made[part]).order) for part in nodes_in(made)}
                    )
            if not lines and not self.edits.moves:
                above = [one for one in (*above, *getattr(before, "leading_lines", ())) if one.comment is not None]
                trailing = getattr(getattr(before, "trailing_whitespace", None), "comment", None)
                above += [cst.EmptyLine(comment=trailing)] if trailing is not None else []
        return found, above

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        if not any(line in self.edits.lines for line in original_node.body):
            return updated_node
        body, below = self._lines(original_node.body, updated_node.body)
        footer = [*below, *updated_node.footer]
        return updated_node.with_changes(body=body or [cst.SimpleStatementLine([cst.Pass()])], footer=footer)

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        body, below = self._lines(original_node.body, updated_node.body)
        return updated_node.with_changes(body=body, footer=[*below, *updated_node.footer])


class _Again(Tracked):
    """Replaces expressions in new code that was made of old."""

    def __init__(self, expressions: Mapping[cst.CSTNode, cst.BaseExpression]) -> None:
        super().__init__()
        self.expressions = expressions

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        new = self.expressions.get(original_node)
        if new is not None:
            self.made[new] = original_node
            return new
        return super().on_leave(original_node, updated_node)


def _names_read_late(node: cst.CSTNode) -> set[str]:
    """The names that lambdas and generators read, when they are called."""
    return {name for one in of_kinds(node, cst.Lambda, cst.GeneratorExp) for name in names_in(one)}


def _has_call(node: cst.CSTNode) -> bool:
    return bool(calls_in(node))


def _computes(node: cst.BaseExpression) -> bool:
    return _has_call(node) or isinstance(node, (cst.Comparison, cst.BooleanOperation, cst.IfExp))


def _with_whole_text(call: cst.Call) -> cst.Call:
    """`getattr(x, "a" + "b")` with the text in one."""
    if len(call.args) != 2 or not isinstance(call.args[1].value, cst.BinaryOperation):
        return call
    text = _text_of(call.args[1].value)
    if text is None:
        return call
    return call.with_changes(args=[call.args[0], call.args[1].with_changes(value=cst.SimpleString(repr(text)))])


def _text_of(node: cst.BaseExpression) -> str | None:
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
        parts = _text_of(node.left), _text_of(node.right)
        return None if parts[0] is None or parts[1] is None else parts[0] + parts[1]
    return (
        node.evaluated_value if isinstance(node, cst.SimpleString) and isinstance(node.evaluated_value, str) else None
    )


def _makes_parts(node: cst.CSTNode) -> bool:
    return any(last_name(call.func).endswith(_PARTS) for call in calls_in(node))


def _is_concerned(function: cst.FunctionDef) -> bool:
    """Whether a function makes, or trains, what a training program consists of."""
    called = [last_name(one) for call in calls_in(function.body) for one in (call.func, *_first_of_partial(call))]
    return any(name.endswith(_PARTS) or name in _TRAINING for name in called)


def _first_of_partial(call: cst.Call) -> tuple[cst.BaseExpression, ...]:
    return (call.args[0].value,) if last_name(call.func) == "partial" and call.args else ()


def _places(scope: _Scope) -> list[_Place]:
    """The lines of one statement of a scope itself."""
    found: list[_Place] = []

    def of(block: cst.BaseSuite | cst.Module, repeated: bool, guarded: bool) -> None:
        if not isinstance(block, (cst.Module, cst.IndentedBlock)):
            return
        for index, statement in enumerate(block.body):
            if isinstance(statement, cst.SimpleStatementLine):
                if len(statement.body) == 1:
                    found.append(_Place(statement, block, index, repeated, guarded))
            elif not isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
                for inner in _suites(statement):
                    of(inner, repeated or isinstance(statement, _Loop), guarded or isinstance(statement, _Guard))

    of(scope if isinstance(scope, cst.Module) else scope.body, False, False)
    return found


def _suites(statement: cst.CSTNode) -> Iterator[cst.BaseSuite]:
    for child in statement.children:
        if isinstance(child, cst.BaseSuite):
            yield child
        elif isinstance(
            child, (cst.If, cst.Else, cst.Finally, cst.ExceptHandler, cst.ExceptStarHandler, cst.MatchCase)
        ):
            yield from _suites(child)


def _follows(first: _Place, second: _Place) -> bool:
    """Whether one line stands behind another in the same block."""
    return first.block is second.block and first.index < second.index


def _assign(target: cst.Name, value: cst.BaseExpression) -> cst.Assign:
    return cst.Assign([cst.AssignTarget(target)], in_parentheses(value))


def fitting(parent: cst.CSTNode | None, node: cst.CSTNode, new: cst.BaseExpression) -> cst.BaseExpression:
    """An expression as it may stand below `parent` instead of a node: in parentheses, unless it needs none."""
    if isinstance(new, (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.List, cst.Dict, cst.Set)):
        return new
    if isinstance(new, cst.SimpleString) or new.lpar:
        return new
    if isinstance(new, cst.BaseNumber) and not isinstance(parent, cst.Attribute):
        return new
    alone = isinstance(parent, (cst.Assign, cst.AnnAssign, cst.Expr, cst.Return))
    part = isinstance(parent, (cst.Arg, cst.Element, cst.DictElement, cst.Index, cst.Param))
    if getattr(parent, "value", None) is node and (alone or (part and not isinstance(new, cst.Tuple))):
        return in_parentheses(new)
    return new.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _applied(partial: cst.Call, call: cst.Call, is_steady: bool = False) -> cst.Call | None:
    """A call of `functools.partial(f, ...)` as one of f.

    `is_steady` says that what the partial has is the same whenever it is read.
    """
    if not partial.args or any(arg.star for arg in (*partial.args, *call.args)) or partial.args[0].keyword is not None:
        return None
    first, *given = partial.args
    keywords = [arg.keyword.value for arg in (*given, *call.args) if arg.keyword is not None]
    if len(set(keywords)) != len(keywords) or not _is_dotted(first.value):
        return None
    earlier = [arg.value for arg in given if arg.keyword is not None]
    later = [arg.value for arg in call.args if arg.keyword is None]
    in_order = (
        is_steady
        or all(map(is_harmless, (*earlier, *later)))
        or any(all(map(_is_literal, one)) for one in (earlier, later))
    )
    if not in_order:  # positional arguments are computed first
        return None
    return with_arguments(call.with_changes(func=first.value), [*given, *call.args])


def _elements(node: cst.BaseExpression) -> dict[str | int, cst.BaseExpression]:
    """The values of a list, tuple or dict that is written out, by index or key; nothing for another expression."""
    found: dict[str | int, cst.BaseExpression] = {}
    if isinstance(node, (cst.List, cst.Tuple)):
        for index, element in enumerate(node.elements):
            if not isinstance(element, cst.Element):
                return {}
            found[index] = element.value
    elif isinstance(node, cst.Dict):
        for entry in node.elements:
            key = _literal(entry.key) if isinstance(entry, cst.DictElement) else None
            if key is None or key in found:
                return {}
            found[key] = entry.value
    return found


def _field_names(made: cst.Call) -> list[str]:
    """The fields in `collections.namedtuple("Pair", "first second")`; nothing where they are not written out."""
    if len(made.args) != 2 or any(arg.star or arg.keyword is not None for arg in made.args):
        return []
    said = made.args[1].value
    if isinstance(said, (cst.List, cst.Tuple)):
        texts = [_literal(one.value) for one in said.elements]
        return [one for one in texts if isinstance(one, str)] if all(isinstance(one, str) for one in texts) else []
    text = _literal(said)
    return text.replace(",", " ").split() if isinstance(text, str) else []


def _literal(node: cst.BaseExpression) -> str | int | None:
    if isinstance(node, cst.SimpleString):
        return node.evaluated_value if isinstance(node.evaluated_value, str) else None
    return int(node.evaluated_value) if isinstance(node, cst.Integer) else None


def _key(node: cst.Subscript) -> str | int | None:
    index = node.slice[0].slice if len(node.slice) == 1 else None
    return _literal(index.value) if isinstance(index, cst.Index) else None


def _is_constant(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.UnaryOperation):
        return isinstance(node.expression, cst.BaseNumber)
    return isinstance(node, (cst.SimpleString, cst.BaseNumber, cst.Ellipsis))


def _is_literal(node: cst.BaseExpression) -> bool:
    return _is_constant(node) or last_name(node) in _SINGLETONS


def _is_dotted(node: cst.BaseExpression) -> bool:
    while isinstance(node, cst.Attribute):
        node = node.value
    return isinstance(node, cst.Name)


def is_harmless(node: cst.BaseExpression) -> bool:
    """Whether evaluating an expression does nothing: a constant, or a dotted name."""
    return _is_dotted(node) or _is_constant(node)


def _is_identity(function: cst.FunctionDef) -> bool:
    """`def f(x): return x`."""
    params = function.params
    value = returned(function)
    return (
        not function.decorators
        and len(params.params) == 1
        and not (params.posonly_params or params.kwonly_params or params.star_kwarg)
        and not isinstance(params.star_arg, cst.Param)
        and isinstance(value, cst.Name)
        and value.value == params.params[0].name.value
    )


def _takes(function: cst.FunctionDef) -> bool:
    """Whether a function has parameters."""
    params = function.params
    star = isinstance(params.star_arg, cst.Param)
    return bool(params.params or params.posonly_params or params.kwonly_params or star or params.star_kwarg)


def returned(function: cst.FunctionDef) -> cst.BaseExpression | None:
    """The expression that a function consists of."""
    body = list(function.body.body)
    if len(body) > 1 and is_docstring(body[0]):
        del body[0]
    if len(body) != 1 or not isinstance(body[0], cst.SimpleStatementLine) or len(body[0].body) != 1:
        return None
    small = body[0].body[0]
    return small.value if isinstance(small, cst.Return) else None


def bound_arguments(function: cst.FunctionDef | cst.Lambda, call: cst.Call) -> dict[str, cst.BaseExpression] | None:
    """What each parameter of a function is given; None where that is not sure, or would be computed in another order.

    `*args` is given a tuple and `**kwargs` a dict of what the others are not.
    """
    params = function.params
    if params.posonly_params or params.kwonly_params:
        return None
    names = [one.name.value for one in params.params]
    star = params.star_arg.name.value if isinstance(params.star_arg, cst.Param) else None
    stars = params.star_kwarg.name.value if params.star_kwarg is not None else None
    given: dict[str, cst.BaseExpression] = {}
    places: list[cst.BaseExpression] = []
    keywords: dict[str, cst.BaseExpression] = {}
    for index, arg in enumerate(call.args):
        name = arg.keyword.value if arg.keyword is not None else names[index] if index < len(names) else None
        if arg.star or name in given or name in keywords:
            return None
        if name in names and name is not None:
            if (places or keywords) and not all(map(is_harmless, (*places, *keywords.values(), arg.value))):
                return None
            given[name] = arg.value
        elif name is None and star is not None:
            places.append(arg.value)
        elif name is not None and stars is not None:
            keywords[name] = arg.value
        else:
            return None
    for one in params.params:
        if one.name.value not in given:
            if one.default is None or not _is_literal(one.default):
                return None
            given[one.name.value] = one.default
    if star is not None:
        given[star] = cst.Tuple([cst.Element(value) for value in places])
    if stars is not None:
        entries = [cst.DictElement(cst.SimpleString(f'"{name}"'), value) for name, value in keywords.items()]
        given[stars] = cst.Dict(entries)
    return given


__all__ = ["reduced"]


def _printed_as_text(module: cst.Module) -> set[cst.CSTNode]:
    """What stands in `f"{...=}"`, which prints the text of it."""
    shown = of_kinds(module, cst.FormattedStringExpression)
    return {node for one in shown if one.equal is not None for node in nodes_in(one.expression)}
