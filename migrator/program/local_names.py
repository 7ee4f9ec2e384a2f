"""Names that a function gives to TensorFlow symbols: `conv = tf.layers.conv2d`, and then `conv(...)`.

The scope that a function is in is one of them: `scope = tf.get_variable_scope()`, then `scope.set_partitioner(...)`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import libcst as cst

from migrator.names.bindings import read_bindings
from migrator.program.calls import calls_in
from migrator.program.parsed import ParsedFile, Tracked, name_nodes
from migrator.walking import walk

#: Symbols whose calls are rewritten, so that it must be seen that they are called.
_REWRITTEN = ("tf.layers.", "tf.metrics.", "tf.losses.", "tf.summary.", "tf.contrib.layers.", "tf.contrib.metrics.")


def with_symbols_in_place(file: ParsedFile) -> ParsedFile:
    """The file with such names written out where they are called, and without the lines that gave them.

    Only names that a function gives once, by a line of its own body, and that are nothing but called; and those that
    the next line calls, and gives what comes of it: `optimizer = tf.train.AdamOptimizer`, `optimizer = optimizer(0.1)`.
    """
    if not any(f"= {alias}" in file.bare for alias in _spelled(file)):
        return file
    finder = _Finder(file)
    walk(file.module, finder)
    if not finder.lines:
        return file
    writer = _Writer(finder)
    module = file.module.visit(writer)
    assert isinstance(module, cst.Module)
    new = replace(file, module=module)
    new.keep_positions(writer.made, file)
    return new


def _spelled(file: ParsedFile) -> list[str]:
    """What the right sides of such lines begin with: names that TensorFlow, or something in it, is imported by."""
    known = file.imports
    return [f"{name}." for name in known.names if name.isidentifier() and known.tensorflow(cst.Name(name)) is not None]


class _Finder(cst.CSTVisitor):
    """The lines that go, and the names that are written out, with what they stand for."""

    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self.lines: set[cst.CSTNode] = set()
        self.values: dict[cst.CSTNode, cst.BaseExpression] = {}

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        if not isinstance(node.body, cst.IndentedBlock) or len(node.body.body) < 2:
            return
        called: set[cst.CSTNode] = {call.func for call in calls_in(node)}
        for line in node.body.body:
            small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
            if not isinstance(small, cst.Assign) or len(small.targets) != 1:
                continue
            target, value = small.targets[0].target, small.value
            if isinstance(target, cst.Name) and isinstance(value, cst.Call) and self._is_scope(value):
                self._take(node, line, target, value, _told(node.body))
                continue
            symbol = self.file.imports.tensorflow(value) if isinstance(value, cst.Attribute) else None
            if not isinstance(target, cst.Name) or not (symbol or "").startswith(_REWRITTEN):
                continue
            self._take(node, line, target, value, called)

    def visit_IndentedBlock(self, node: cst.IndentedBlock) -> None:
        for line, following in zip(node.body, node.body[1:]):
            given, called = _given(line), _given(following)
            if given is None or called is None or given[0] != called[0] or not isinstance(called[1], cst.Call):
                continue
            symbol = self.file.imports.tensorflow(given[1]) if isinstance(given[1], cst.Attribute) else None
            function = called[1].func
            alone = isinstance(function, cst.Name) and function.value == given[0]
            if alone and [n.value for n in name_nodes(following)].count(given[0]) == 2 and _is_rewritten(symbol):
                self.lines.add(line)
                self.values[function] = given[1]

    def _is_scope(self, call: cst.Call) -> bool:
        return not call.args and self.file.imports.resolve(call.func) == "tf.get_variable_scope"

    def _take(
        self,
        function: cst.FunctionDef,
        line: cst.BaseStatement,
        target: cst.Name,
        value: cst.BaseExpression,
        known: set[cst.CSTNode],
    ) -> None:
        """Notes a name whose every mention is one of those that can be written out."""
        reads = [n for n in name_nodes(function) if n.value == target.value and n is not target]
        bound = [binding for binding in read_bindings(function) if binding.name == target.value]
        if reads and len(bound) == 1 and all(n in known for n in reads):
            self.lines.add(line)
            self.values.update(dict.fromkeys(reads, value))


def _given(line: cst.BaseStatement) -> tuple[str, cst.BaseExpression] | None:
    """The name and the value of a line that only gives one."""
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    if not isinstance(small, cst.Assign) or len(small.targets) != 1:
        return None
    target = small.targets[0].target
    return (target.value, small.value) if isinstance(target, cst.Name) else None


def _is_rewritten(symbol: str | None) -> bool:
    return symbol is not None and symbol.startswith((*_REWRITTEN, "tf.train."))


def _told(body: cst.IndentedBlock) -> set[cst.CSTNode]:
    """The names that a line of a body itself, in no scope inside it, tells a partitioner."""
    found: set[cst.CSTNode] = set()
    for line in body.body:
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
        call = small.value if isinstance(small, cst.Expr) else None
        method = call.func if isinstance(call, cst.Call) else None
        if isinstance(method, cst.Attribute) and method.attr.value == "set_partitioner":
            found.add(method.value)
    return found


class _Writer(Tracked):
    def __init__(self, finder: _Finder) -> None:
        super().__init__()
        self.finder = finder

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        if original_node in self.finder.lines:
            return cst.RemoveFromParent()
        new = super().on_leave(original_node, updated_node)
        if original_node in self.finder.values:
            new = self.finder.values[original_node].deep_clone()
            self.made[new] = original_node
        return new


__all__ = ["with_symbols_in_place"]
