"""Which input functions give data without an end: `fit` and `evaluate` are told their steps for those.

What an input function does is followed as it would run: statement by statement, through the functions that it calls and
that make it, with the arguments that are known (`repeat` under `if training:`). What is not understood may end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Union

import libcst as cst

from migrator.names.bindings import Form, changes_in, read_bindings
from migrator.pairing import equal_zip
from migrator.program.calls import number, parameters_of, string
from migrator.program.parsed import ParsedFile, Project
from migrator.program.region import class_of
from migrator.program.scopes import path_to
from migrator.program.training import TrainingProgram
from migrator.rules.arrays import is_array_input


@dataclass(frozen=True)
class _Constant:
    """A value that is written down."""

    value: object


@dataclass(frozen=True)
class _Data:
    """A dataset without an end, an iterator over it, or what that gives."""


@dataclass(frozen=True)
class _Function:
    """A function, the values of the names around it, and the arguments that a partial gives it (None: by position)."""

    file: ParsedFile = field(compare=False)
    node: cst.FunctionDef | cst.Lambda
    around: Mapping[str, _Value] = field(compare=False)
    given: tuple[tuple[str | None, _Value], ...] = ()


@dataclass(frozen=True)
class _ArrayInput:
    """An input function of arrays that are repeated for ever."""


@dataclass(frozen=True)
class _Object:
    """An object of a class of the project."""

    file: ParsedFile = field(compare=False)
    node: cst.ClassDef


_Value = Union[_Constant, _Data, _Function, _ArrayInput, _Object, None]
_ENDLESS = _Data()
_DEPTH = 12
_MODES = {
    f"{module}.ModeKeys.{key}": value
    for module in ("tf.estimator", "tf.contrib.learn")
    for key, value in (("TRAIN", "train"), ("EVAL", "eval"), ("PREDICT", "infer"), ("INFER", "infer"))
}
#: Methods that give something without an end for something without one. A `filter` may keep nothing: TensorFlow 1 would
#: look for a batch for ever, too.
_KEEP = frozenset(
    (
        *("batch", "cache", "concatenate", "enumerate", "filter", "flat_map", "interleave", "map", "padded_batch"),
        *("prefetch", "repeat", "shard", "shuffle", "skip", "unbatch", "window", "with_options"),
        *("get_next", "make_initializable_iterator", "make_one_shot_iterator"),
    )
)
#: What Estimators and strategies give an input function that has such a parameter, beside the mode: values of the run.
_GIVEN = ("params", "config", "input_context", "labels_shape")
_ITERATORS = ("tf.data.make_initializable_iterator", "tf.data.make_one_shot_iterator")
#: Transformations for `apply` that do the same, by the ends of their names.
_APPLIED = frozenset(
    (
        *("assert_cardinality", "bucket_by_sequence_length", "copy_to_device", "dense_to_ragged_batch"),
        *("dense_to_sparse_batch", "ignore_errors", "map_and_batch", "parallel_interleave", "prefetch_to_device"),
        *("unbatch",),
    )
)


def never_end(project: Project, program: TrainingProgram, given: cst.BaseExpression | None, mode: str) -> bool:
    """Whether the data of the input function that a training is given (or what has that `mode`) surely have no end."""
    return _Reader(project).of_input(program, given, mode) == _ENDLESS


def functions_behind(
    project: Project, program: TrainingProgram, given: cst.BaseExpression | None, mode: str
) -> set[cst.CSTNode]:
    """The functions that make the data of an input function, as far as they are understood."""
    reader = _Reader(project)
    reader.of_input(program, given, mode)
    return reader.followed


class _Lazy(dict[str, "_Value"]):
    """The values of the names of a scope that are bound once, looked up when they are read, before those around it."""

    def __init__(
        self, reader: _Reader, file: ParsedFile, bound: Mapping[str, cst.CSTNode], around: Mapping[str, _Value]
    ) -> None:
        super().__init__()
        self.reader = reader
        self.file = file
        self.bound = bound
        self.around = around

    def __contains__(self, name: object) -> bool:
        return name in self.bound or name in self.around

    def __missing__(self, name: str) -> _Value:
        if name not in self.bound:
            return self.around[name]
        node = self.bound[name]
        self[name] = None  # while it is looked up
        if isinstance(node, cst.FunctionDef):
            self[name] = _Function(self.file, node, self)
        elif isinstance(node, cst.BaseExpression):
            self[name] = self.reader.value(self.file, node, self, _DEPTH)
        return self[name]


def _of_scope(scope: cst.CSTNode) -> dict[str, cst.CSTNode]:
    """The names of a scope, with the value or function of those that are bound once (others: neither)."""
    found: dict[str, list[cst.CSTNode]] = {}
    for binding in changes_in(scope):
        known = binding.value if binding.form is not Form.PART else None
        found.setdefault(binding.name, []).append(known or binding.node)
    several = cst.Pass()
    return {
        name: nodes[0] if len(nodes) == 1 and isinstance(nodes[0], (cst.FunctionDef, cst.BaseExpression)) else several
        for name, nodes in found.items()
    }


@dataclass
class _Reader:
    """Follows functions; `depth` is how many more of them may be in one another."""

    project: Project
    followed: set[cst.CSTNode] = field(default_factory=set)

    # -- functions -------------------------------------------------------------------------------------------------

    def of_input(self, program: TrainingProgram, given: cst.BaseExpression | None, mode: str) -> _Value:
        """What the input function of a program gives."""
        names: Mapping[str, _Value] = {}
        for scope in path_to(program.file.module, program.scope):
            if scope is program.scope or isinstance(scope, cst.FunctionDef):
                names = _Lazy(self, program.file, _of_scope(scope), names)
        value = self.value(program.file, given, names, _DEPTH)
        if isinstance(value, _ArrayInput):
            return _ENDLESS
        if isinstance(value, _Object):
            value = self._method_of(value, "__call__")
        told = {**dict.fromkeys(_GIVEN), "mode": _Constant(mode)}
        return self.called(value, [], told, _DEPTH) if isinstance(value, _Function) else None

    def called(
        self, function: _Function, args: Sequence[tuple[str | None, _Value]], told: Mapping[str, _Value], depth: int
    ) -> _Value:
        """What a call gives: `args` by keyword (None: by position), `told` for parameters of these names."""
        if depth == 0:
            return None
        file, node = function.file, function.node
        self.followed.add(node)
        parameters = parameters_of(node)
        left = [parameter.name.value for parameter in parameters]
        names = {p.name.value: self.value(file, p.default, function.around, depth - 1) for p in parameters}
        names.update({name: value for name, value in told.items() if name in left})
        several = (node.params.star_arg, node.params.star_kwarg)
        names.update({star.name.value: None for star in several if isinstance(star, cst.Param)})
        for keyword, value in [*function.given, *args]:
            if keyword is None and left:
                names[left.pop(0)] = value
            elif keyword is not None and keyword in left:
                left.remove(keyword)
                names[keyword] = value
        around = _Joined(names, function.around)
        if isinstance(node, cst.Lambda):
            return self.value(file, node.body, around, depth - 1)
        if node.decorators or node.asynchronous is not None:
            return None
        run = _Run(self, file, around, depth - 1)
        run.block(node.body)
        return run.result()

    # -- expressions -----------------------------------------------------------------------------------------------

    def value(
        self, file: ParsedFile, node: cst.BaseExpression | None, names: Mapping[str, _Value], depth: int
    ) -> _Value:
        """What an expression gives, as far as it is known."""
        if depth == 0 or node is None:
            return None
        if isinstance(node, cst.Name):
            return self._name(file, node, names, depth)
        if isinstance(node, cst.Lambda):
            return _Function(file, node, names)
        if isinstance(node, (cst.Tuple, cst.List)):
            return self._all(file, [element.value for element in node.elements], names, depth)
        if isinstance(node, cst.Dict):
            return self._all(file, [element.value for element in node.elements], names, depth)
        if isinstance(node, cst.IfExp):
            truth = self.truth(file, node.test, names, depth)
            both = [node.body, node.orelse] if truth is None else [node.body if truth else node.orelse]
            values = [self.value(file, one, names, depth) for one in both]
            return values[0] if all(value == values[0] for value in values) else None
        if isinstance(node, cst.Call):
            return self._call(file, node, names, depth)
        if isinstance(node, cst.Attribute):
            name = file.imports.resolve(node)
            if name in _MODES:
                return _Constant(_MODES[name])
            owner = self.value(file, node.value, names, depth - 1)
            if isinstance(owner, _Object):
                return self._method_of(owner, node.attr.value)
            found = self.project.function(file, node)
            return None if found is None else _Function(*found, around={})
        for known in (number(node), string(node), self._compared(file, node, names, depth)):
            if known is not None:
                return _Constant(known)
        return None

    def _name(self, file: ParsedFile, node: cst.Name, names: Mapping[str, _Value], depth: int) -> _Value:
        if node.value in ("True", "False", "None"):
            return _Constant({"True": True, "False": False}.get(node.value))
        if node.value in names:
            return names[node.value]
        found = self.project.function(file, node)
        if found is not None:
            return _Function(*found, around={})
        constant = file.constants.get(node.value)
        return None if constant is None else self.value(file, constant, {}, depth - 1)

    def _all(
        self, file: ParsedFile, nodes: Sequence[cst.BaseExpression], names: Mapping[str, _Value], depth: int
    ) -> _Value:
        """What iterators give, together: without an end where all of them are."""
        values = [self.value(file, node, names, depth) for node in nodes]
        return _ENDLESS if values and all(value == _ENDLESS for value in values) else None

    def truth(self, file: ParsedFile, node: cst.BaseExpression, names: Mapping[str, _Value], depth: int) -> bool | None:
        """Whether a condition holds, where that is known."""
        value = self.value(file, node, names, depth)
        return bool(value.value) if isinstance(value, _Constant) else None

    def _compared(
        self, file: ParsedFile, node: cst.BaseExpression, names: Mapping[str, _Value], depth: int
    ) -> bool | None:
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
            truth = self.truth(file, node.expression, names, depth)
            return None if truth is None else not truth
        if isinstance(node, cst.BooleanOperation):
            both = [self.truth(file, one, names, depth) for one in (node.left, node.right)]
            decides = isinstance(node.operator, cst.Or)
            if decides in both:
                return decides
            return None if None in both else not decides
        if not isinstance(node, cst.Comparison) or len(node.comparisons) != 1:
            return None
        left = self.value(file, node.left, names, depth)
        right = self.value(file, node.comparisons[0].comparator, names, depth)
        if not isinstance(left, _Constant) or not isinstance(right, _Constant):
            return None
        if isinstance(node.comparisons[0].operator, (cst.Equal, cst.Is)):
            return left == right
        return left != right if isinstance(node.comparisons[0].operator, (cst.NotEqual, cst.IsNot)) else None

    # -- calls -----------------------------------------------------------------------------------------------------

    def _call(self, file: ParsedFile, node: cst.Call, names: Mapping[str, _Value], depth: int) -> _Value:
        name = file.imports.resolve(node.func)
        if name == "functools.partial" and node.args:
            function = self.value(file, node.args[0].value, names, depth)
            if not isinstance(function, _Function):
                return None
            return replace(function, given=(*function.given, *self._args(file, node.args[1:], names, depth)))
        if is_array_input(name):
            return _ArrayInput() if self._repeats(file, node, 3, "num_epochs", names, depth, 1) else None
        if name in _ITERATORS and node.args:
            return self.value(file, node.args[0].value, names, depth)
        if name == "tf.data.Dataset.zip":
            return self._zipped(file, node, names, depth)
        if name is None and isinstance(node.func, cst.Attribute):
            found = self._method(file, node, node.func, names, depth)
            if found is not None:
                return found
        made = class_of(self.project, file, node.func)
        if made is not None:
            return _Object(*made)
        function = self.value(file, node.func, names, depth)
        if isinstance(function, _Object):
            function = self._method_of(function, "__call__")
        if not isinstance(function, _Function) or any(arg.star for arg in node.args):
            return None
        return self.called(function, self._args(file, node.args, names, depth), {}, depth)

    def _method_of(self, owner: _Object, name: str) -> _Value:
        """A method of an object; its `self` is given, of which nothing else is known."""
        where: tuple[ParsedFile, cst.ClassDef] | None = (owner.file, owner.node)
        for _ in range(_DEPTH):
            if where is None:
                break
            file, node = where
            found = [s for s in node.body.body if isinstance(s, cst.FunctionDef) and s.name.value == name]
            if found:
                if len(found) > 1 or found[0].decorators:
                    return None
                return _Function(file, found[0], {}, ((None, owner),))
            bases = [arg.value for arg in node.bases if arg.keyword is None]
            where = class_of(self.project, file, bases[0]) if len(bases) == 1 else None
        return None

    def _zipped(self, file: ParsedFile, node: cst.Call, names: Mapping[str, _Value], depth: int) -> _Value:
        """What `zip` gives, of one structure of datasets or of several datasets: it ends where the first one does."""
        given = [arg for arg in node.args if arg.keyword is None or arg.keyword.value != "name"]
        if any(arg.star or (arg.keyword is not None and arg.keyword.value != "datasets") for arg in given):
            return None
        return self._all(file, [arg.value for arg in given], names, depth)

    def _args(
        self, file: ParsedFile, args: Sequence[cst.Arg], names: Mapping[str, _Value], depth: int
    ) -> list[tuple[str | None, _Value]]:
        keywords = [None if arg.keyword is None else arg.keyword.value for arg in args]
        return [(k, self.value(file, arg.value, names, depth)) for k, arg in equal_zip(keywords, args)]

    def _method(
        self, file: ParsedFile, node: cst.Call, func: cst.Attribute, names: Mapping[str, _Value], depth: int
    ) -> _Value:
        if func.attr.value == "repeat" and self._repeats(file, node, 0, "count", names, depth):
            return _ENDLESS
        if func.attr.value == "apply" and len(node.args) == 1:
            applied = node.args[0].value
            kind = (file.imports.resolve(applied.func) or "").rpartition(".") if isinstance(applied, cst.Call) else ""
            if not kind or "data" not in kind[0]:
                return None
            assert isinstance(applied, cst.Call)
            if kind[2] == "shuffle_and_repeat" and self._repeats(file, applied, 1, "count", names, depth):
                return _ENDLESS
            kept = kind[2] in _APPLIED or kind[2] == "shuffle_and_repeat"
            return self.value(file, func.value, names, depth) if kept else None
        if func.attr.value not in _KEEP:
            return None
        return _ENDLESS if self.value(file, func.value, names, depth) == _ENDLESS else None

    def _repeats(
        self,
        file: ParsedFile,
        node: cst.Call,
        position: int,
        keyword: str,
        names: Mapping[str, _Value],
        depth: int,
        default: object = None,
    ) -> bool:
        """Whether a call that repeats data is told to do so for ever: by None or -1."""
        if any(arg.star for arg in node.args):
            return False
        given = [
            a.value for i, a in enumerate(node.args) if (a.keyword.value == keyword if a.keyword else i == position)
        ]
        value = self.value(file, given[0], names, depth) if given else _Constant(default)
        return isinstance(value, _Constant) and value.value in (None, -1)


class _Joined(dict[str, "_Value"]):
    """The names of a function, before those around it."""

    def __init__(self, names: Mapping[str, _Value], around: Mapping[str, _Value]) -> None:
        super().__init__(names)
        self.around = around

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.around

    def __missing__(self, name: str) -> _Value:
        return self.around[name]


@dataclass
class _Run:
    """Runs the statements of a function: what names are worth, and what it returned so far."""

    reader: _Reader
    file: ParsedFile
    names: _Joined
    depth: int
    returned: list[_Value] = field(default_factory=list)

    def result(self) -> _Value:
        first = self.returned[0] if self.returned else None
        return first if all(value == first for value in self.returned) else None

    def block(self, body: cst.BaseSuite) -> bool:
        """Runs statements; whether they surely return or raise."""
        return any(self._statement(statement) for statement in body.body)

    def _statement(self, statement: cst.CSTNode) -> bool:
        if isinstance(statement, cst.SimpleStatementLine):
            return any(self._small(small) for small in statement.body)
        if isinstance(statement, cst.BaseSmallStatement):
            return self._small(statement)
        if isinstance(statement, cst.If):
            return self._if(statement)
        if isinstance(statement, cst.With):
            return self.block(statement.body)
        if isinstance(statement, cst.FunctionDef):
            self.names[statement.name.value] = _Function(self.file, statement, self.names)
            return False
        self._forget(statement)
        for part in statement.children:
            if isinstance(part, cst.BaseSuite):
                self.block(part)
            elif isinstance(part, (cst.Else, cst.ExceptHandler, cst.Finally)):
                self.block(part.body)
        self._forget(statement)
        return False

    def _small(self, small: cst.CSTNode) -> bool:
        if isinstance(small, cst.Return):
            self.returned.append(self.reader.value(self.file, small.value, self.names, self.depth))
        if isinstance(small, (cst.Return, cst.Raise)):
            return True
        if isinstance(small, cst.Assign):
            value = self.reader.value(self.file, small.value, self.names, self.depth)
            self._forget(small)
            for target in small.targets:
                parts = target.target.elements if isinstance(target.target, (cst.Tuple, cst.List)) else [target.target]
                for part in parts:
                    name = part.value if isinstance(part, cst.Element) else part
                    if isinstance(name, cst.Name) and (name is target.target or value == _ENDLESS):
                        self.names[name.value] = value
        else:
            self._forget(small)
        return False

    def _if(self, node: cst.If) -> bool:
        truth = self.reader.truth(self.file, node.test, self.names, self.depth)
        before = dict(self.names)
        ends = truth is not False and self.block(node.body)
        if truth is True:
            return ends
        one = dict(self.names)
        self._set(before)
        orelse = node.orelse
        other = False
        if isinstance(orelse, cst.If):
            other = self._if(orelse)
        elif orelse is not None:
            other = self.block(orelse.body)
        if truth is False or ends:
            return other
        if other:
            self._set(one)
            return False
        two = dict(self.names)
        missing = object()
        self._set({n: v if two.get(n, missing) == one.get(n, missing) else None for n, v in {**one, **two}.items()})
        return False

    def _set(self, names: Mapping[str, _Value]) -> None:
        self.names.clear()
        self.names.update(names)

    def _forget(self, node: cst.CSTNode) -> None:
        """What a statement binds has a value that is not known."""
        for binding in read_bindings(node):
            self.names[binding.name] = None
