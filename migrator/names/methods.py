"""Methods and attributes of tf.data datasets that TensorFlow 2.21 does not have, where a file surely has a dataset."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Union

from migrator.names.patterns import captured
from migrator.names.uses import uses
from migrator.syntax import NOT_PYTHON, children_of, tree_of, walked

#: What datasets of `tf.data` had in TensorFlow 1, with what does the same in both versions.
LACKING = {
    "make_one_shot_iterator": "tf.compat.v1.data.make_one_shot_iterator(dataset)",
    "make_initializable_iterator": "tf.compat.v1.data.make_initializable_iterator(dataset)",
    "output_shapes": "tf.compat.v1.data.get_output_shapes(dataset)",
    "output_types": "tf.compat.v1.data.get_output_types(dataset)",
    "output_classes": "tf.compat.v1.data.get_output_classes(dataset)",
    "map_with_legacy_function": "map",
    "filter_with_legacy_function": "filter",
}
_GIVING = frozenset(
    (
        *("apply", "batch", "cache", "concatenate", "enumerate", "filter", "flat_map", "interleave", "map"),
        *("padded_batch", "prefetch", "repeat", "shard", "shuffle", "skip", "take", "unbatch", "window"),
        *("with_options", "map_with_legacy_function", "filter_with_legacy_function", "snapshot", "take_while"),
    )
)
_MADE = (
    *("tf.data.Dataset.", "tf.data.TextLineDataset", "tf.data.TFRecordDataset"),
    *("tf.data.FixedLengthRecordDataset", "tf.data.experimental.CsvDataset", "tf.data.experimental.SqlDataset"),
    *("tf.data.experimental.RandomDataset", "tf.data.experimental.make_csv_dataset"),
    "tf.data.experimental.make_batched_features_dataset",
)
_Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_FUNCTIONS, ast.Lambda, ast.ClassDef)
_DEPTH = 12


@dataclass(frozen=True)
class Method:
    """A method or attribute of a dataset that is gone, where it is read."""

    name: str
    line: int
    column: int
    to: str


def lacking(text: str) -> tuple[Method, ...]:
    """The methods that datasets of a file no longer have, in order; none where the program is ready for an error."""
    if "tensorflow" not in text or not any(name in text for name in LACKING):
        return ()
    made = {(use.line, use.column) for use in uses(text) if use.called and use.name.startswith(_MADE)}
    if not made:
        return ()
    try:
        tree = tree_of(text)
    except NOT_PYTHON:
        return ()
    return tuple(sorted(_Datasets(tree, made).found(), key=lambda one: (one.line, one.column)))


@dataclass
class _Datasets:
    """Says which expressions of a file are datasets."""

    tree: ast.Module
    made: set[tuple[int, int]]
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in walked(self.tree):
            for child in children_of(node):
                self.parents[child] = node

    def found(self) -> Iterator[Method]:
        for node in walked(self.tree):
            if isinstance(node, ast.Attribute) and node.attr in LACKING and isinstance(node.ctx, ast.Load):
                if self.is_dataset(node.value) and not self._is_guarded(node):
                    name = f"tf.data.Dataset.{node.attr}"
                    yield Method(name, node.lineno, node.col_offset + 1, LACKING[node.attr])

    def is_dataset(self, node: ast.expr | None, depth: int = _DEPTH) -> bool:
        if depth == 0 or node is None:
            return False
        if isinstance(node, ast.IfExp):
            return self.is_dataset(node.body, depth - 1) and self.is_dataset(node.orelse, depth - 1)
        if isinstance(node, ast.NamedExpr):
            return self.is_dataset(node.value, depth - 1)
        if isinstance(node, ast.Name):
            return self._all(self._given(node.id, node), depth)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            return self._all(self._given_to_self(node), depth)
        if not isinstance(node, ast.Call):
            return False
        if _is_name(node.func) and (node.func.lineno, node.func.col_offset + 1) in self.made:
            return True
        if isinstance(node.func, ast.Attribute):
            return node.func.attr in _GIVING and self.is_dataset(node.func.value, depth - 1)
        if isinstance(node.func, ast.Name):
            functions = [f for f in self._bound(node.func.id, node) if isinstance(f, _FUNCTIONS)]
            if len(functions) != 1 or len(self._bound(node.func.id, node)) != 1:
                return False
            return self._all([one.value for one in _returns(functions[0])], depth)
        return False

    def _all(self, values: list[ast.expr | None], depth: int) -> bool:
        # A name that is given what is made of itself, `data = data.map(f)`, is a dataset if it was one before.
        return bool(values) and all(self.is_dataset(value, depth - 1) for value in values)

    def _scopes(self, node: ast.AST) -> list[ast.AST]:
        found: list[ast.AST] = []
        here: ast.AST | None = node
        while here is not None:
            here = self.parents.get(here)
            if isinstance(here, (*_SCOPES, ast.Module)):
                found.append(here)
        return found

    def _bound(self, name: str, node: ast.AST) -> list[ast.AST]:
        """What binds a name in the innermost scope that has it: functions, parameters, targets."""
        for index, scope in enumerate(self._scopes(node)):
            if index and isinstance(scope, ast.ClassDef):
                continue
            found = [one for one in _in_scope(scope) if _binds(one, name)]
            if isinstance(scope, (*_FUNCTIONS, ast.Lambda)):
                given = scope.args
                every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
                found += [one for one in every if one is not None and one.arg == name]
            if found:
                return found
        return []

    def _given(self, name: str, node: ast.AST) -> list[ast.expr | None]:
        """The values of a name, in order; None for what is not a plain assignment. Those after a read count too."""
        values: list[ast.expr | None] = []
        for one in self._bound(name, node):
            around = self.parents.get(one)
            if isinstance(around, ast.Assign) and one in around.targets:
                value: ast.expr | None = around.value
            elif isinstance(around, (ast.AnnAssign, ast.NamedExpr)):
                value = around.value
            else:
                value = None
            if value is not None and _begins_with(value, name):
                continue
            values.append(value)
        return values

    def _given_to_self(self, node: ast.Attribute) -> list[ast.expr | None]:
        owner = next((scope for scope in self._scopes(node) if isinstance(scope, ast.ClassDef)), None)
        values: list[ast.expr | None] = []
        for one in walked(owner) if owner is not None else ():
            if isinstance(one, ast.Attribute) and one.attr == node.attr and not isinstance(one.ctx, ast.Load):
                around = self.parents.get(one)
                value = around.value if isinstance(around, ast.Assign) and one in around.targets else None
                if value is None or not ast.unparse(value).startswith(f"self.{node.attr}."):
                    values.append(value)
        return values

    def _is_guarded(self, node: ast.AST) -> bool:
        here, around = node, self.parents.get(node)
        while around is not None:
            if isinstance(around, ast.Try) and here in around.body and around.handlers:
                return True
            if isinstance(around, (ast.If, ast.IfExp)) and here is not around.test:
                test = ast.unparse(around.test).lower()
                if "hasattr" in test or "version" in test or "executing_eagerly" in test:
                    return True
            here, around = around, self.parents.get(around)
        return False


def _is_name(node: ast.expr) -> bool:
    """Whether an expression is a dotted name, `tf.data.Dataset.range`, and no method of what a call gives."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _begins_with(value: ast.expr, name: str) -> bool:
    """Whether a value is a chain of a dataset's methods on that name, `data.map(f).batch(8)`."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _GIVING:
        value = value.func.value
    return isinstance(value, ast.Name) and value.id == name


def _in_scope(scope: ast.AST) -> Iterator[ast.AST]:
    queue = children_of(scope)
    while queue:
        node = queue.pop()
        yield node
        if not isinstance(node, _SCOPES):
            queue += children_of(node)


def _binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name and not isinstance(node.ctx, ast.Load)
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return any((alias.asname or alias.name.partition(".")[0]) == name for alias in node.names)
    if isinstance(node, ast.ExceptHandler):
        return node.name == name
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return name in node.names
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        return node.name == name
    return captured(node) == name


def _returns(function: _Function) -> list[ast.Return]:
    return [node for node in _in_scope(function) if isinstance(node, ast.Return)]
