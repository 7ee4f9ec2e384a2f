"""One file of a TensorFlow 2 program, as its checks see it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar

import libcst as cst

from migrator.findings import Severity
from migrator.names.imports import dotted
from migrator.program.calls import nodes_in
from migrator.program.parsed import ParsedFile
from migrator.walking import walk

Node = TypeVar("Node", bound=cst.CSTNode)
Edit = Callable[[cst.CSTNode], cst.CSTNode]


@dataclass(frozen=True)
class Change:
    """What a check found at one node, and how that is mended.

    `edit` makes the new node from the node as it is after the changes inside it; without one the file stays as it is
    there, and `message` says what to do; one without a message is part of another, which says it. `keras_2` says that
    the place runs on Keras 2 (tf_keras) only.
    """

    code: str
    node: cst.CSTNode
    message: str
    edit: Edit | None = None
    severity: Severity = Severity.MIGRATED
    keras_2: bool = False


class Check(Protocol):
    """A rule's own look at a file."""

    def __call__(self, file: ModernFile) -> Iterable[Change]: ...


STRATEGIES = (
    "MirroredStrategy",
    "MultiWorkerMirroredStrategy",
    "ParameterServerStrategy",
    "CentralStorageStrategy",
    "TPUStrategy",
    "OneDeviceStrategy",
)
RUN = ("run", "experimental_run_v2")


class ModernFile:
    """A parsed file with its calls, what its names were made by, and the functions that run on replicas.

    `others` are the texts of the other files of the program.
    """

    def __init__(self, parsed: ParsedFile, others: Sequence[str] = ()) -> None:
        self.parsed = parsed
        self.others = others
        finder = _Finder()
        walk(parsed.module, finder)
        self.calls = finder.calls
        self.attributes = finder.attributes
        self.imports = finder.imports
        self.imports_from = finder.imports_from
        self.functions = finder.functions
        self.classes = finder.classes
        self.divisions = finder.divisions
        self._assigned = finder.assigned

    def name(self, node: cst.BaseExpression | None) -> str | None:
        """`tf.X` for an expression that is a symbol of TensorFlow 2, however it is spelled.

        What is taken of `tf.compat.v1` keeps the meaning of TensorFlow 1, and is none.
        """
        return None if self.parsed.imports.is_compat(node) else self.parsed.imports.tensorflow(node)

    def made_by(self, node: cst.BaseExpression) -> str | None:
        """The TensorFlow symbol whose call made the value of a name, of an attribute, or of the call itself.

        None where it is not known, or where a name has values of several kinds.
        """
        if isinstance(node, cst.Call):
            return self.name(node.func)
        key = dotted(node)
        values = self._assigned.get(key, []) if key else []
        kinds = {self.name(value.func) if isinstance(value, cst.Call) else None for value in values}
        return kinds.pop() if len(kinds) == 1 else None

    def value_of(self, node: cst.BaseExpression) -> cst.BaseExpression | None:
        """What a name or an attribute is given, when that is one expression in the whole file."""
        values = self._assigned.get(dotted(node) or "", [])
        return values[0] if len(values) == 1 else None

    @property
    def aliases(self) -> Iterable[tuple[str, cst.BaseExpression]]:
        """All names and attributes of the file, with the expressions that they are given."""
        return ((key, value) for key, values in self._assigned.items() for value in values)

    def values_of(self, node: cst.BaseExpression) -> Sequence[cst.BaseExpression]:
        """All that a name or an attribute is given in the file."""
        return self._assigned.get(dotted(node) or "", [])

    def is_assigned(self, node: cst.BaseExpression) -> bool:
        """Whether the file gives a name, or an attribute, any value."""
        return (dotted(node) or "") in self._assigned

    def is_strategy(self, node: cst.BaseExpression) -> bool:
        """Whether an expression is a distribution strategy: made as one, got as one, or called one."""
        made = self.made_by(node)
        if made is not None:
            return made.rpartition(".")[2] in STRATEGIES or made == "tf.distribute.get_strategy"
        return (dotted(node) or "").rpartition(".")[2].lstrip("_") == "strategy"

    @cached_property
    def on_replicas(self) -> tuple[cst.FunctionDef, ...]:
        """The functions of this file that `strategy.run` is given, and those of this file that they call by name."""
        by_name = {function.name.value: function for function in self.functions}
        found: list[cst.FunctionDef] = []
        queue: list[str] = []
        for call in self.calls:
            function = call.func
            if isinstance(function, cst.Attribute) and function.attr.value in RUN and call.args:
                if self.is_strategy(function.value):
                    queue.append((dotted(call.args[0].value) or "").rpartition(".")[2])
        while queue:
            one = by_name.get(queue.pop())
            if one is None or one in found:
                continue
            found.append(one)
            inner = _Finder()
            walk(one.body, inner)
            queue += [(dotted(call.func) or "").rpartition(".")[2] for call in inner.calls]
        return tuple(found)

    @cached_property
    def _replicated(self) -> frozenset[cst.CSTNode]:
        found: set[cst.CSTNode] = set()
        for function in self.on_replicas:
            found |= set(nodes_in(function.body))
        return frozenset(found)

    def runs_on_replicas(self, node: cst.CSTNode) -> bool:
        """Whether a node stands in a function that runs on each replica."""
        return node in self._replicated


class _Finder(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[cst.Call] = []
        self.attributes: list[cst.Attribute] = []
        self.imports: list[cst.Import] = []
        self.imports_from: list[cst.ImportFrom] = []
        self.functions: list[cst.FunctionDef] = []
        self.classes: list[cst.ClassDef] = []
        self.divisions: list[cst.BinaryOperation] = []
        self.assigned: dict[str, list[cst.BaseExpression]] = {}

    def visit_Call(self, node: cst.Call) -> None:
        self.calls.append(node)

    def visit_Attribute(self, node: cst.Attribute) -> None:
        self.attributes.append(node)

    def visit_Import(self, node: cst.Import) -> bool:
        self.imports.append(node)
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        self.imports_from.append(node)
        return False

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.functions.append(node)

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self.classes.append(node)

    def visit_BinaryOperation(self, node: cst.BinaryOperation) -> None:
        if isinstance(node.operator, cst.Divide):
            self.divisions.append(node)

    def visit_Assign(self, node: cst.Assign) -> None:
        for target in node.targets:
            key = dotted(target.target)
            if key is not None:
                self.assigned.setdefault(key, []).append(node.value)

    def visit_For(self, node: cst.For) -> None:
        key = dotted(node.target)
        if key is not None:
            # The values of a loop over a list of calls are all the calls.
            values = [element.value for element in node.iter.elements] if _is_list(node.iter) else [node.iter]  # type: ignore[attr-defined]
            self.assigned.setdefault(key, []).extend(values)


def _is_list(node: cst.BaseExpression) -> bool:
    return isinstance(node, (cst.List, cst.Tuple))


def keyword(call: cst.Call, name: str) -> cst.Arg | None:
    """The argument that is given by a keyword."""
    return next((arg for arg in call.args if arg.keyword is not None and arg.keyword.value == name), None)


def is_edit_of(node: cst.CSTNode, kind: type[Node]) -> Node:
    """The node, which must be of a kind: an edit is given what it was asked to change."""
    assert isinstance(node, kind)
    return node
