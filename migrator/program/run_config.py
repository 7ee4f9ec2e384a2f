"""A RunConfig as plain data: its arguments, and the lines that made it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import libcst as cst

from migrator.program.calls import bind, is_none
from migrator.program.parsed import Blocked, ParsedFile, name_nodes
from migrator.rules.run_config import COLLECTIVE, LEARN, NO_EFFECT, RUN_CONFIG, SESSION, TPU

Arguments = dict[str, cst.BaseExpression]

_KINDS = {
    "tf.estimator.RunConfig": RUN_CONFIG,
    "tf.contrib.learn.RunConfig": LEARN,
    "tf.contrib.tpu.RunConfig": TPU,
    "tf.estimator.tpu.RunConfig": TPU,
}


@dataclass(frozen=True)
class ReadConfig:
    """The arguments that count, the calls and lines that gave them, what is left out, and remarks about that.

    `session` is the `session_config`, which is among what is left out.
    """

    arguments: Arguments
    calls: tuple[cst.Call, ...]
    lines: tuple[cst.SimpleStatementLine, ...]
    dropped: tuple[cst.BaseExpression, ...]
    remarks: tuple[Blocked, ...]
    session: cst.BaseExpression | None = None


def is_run_config(name: str) -> bool:
    """Whether a TensorFlow 1 symbol is a RunConfig."""
    return name in _KINDS


def read_run_config(
    file: ParsedFile,
    scope: cst.CSTNode,
    node: cst.BaseExpression | None,
    is_config_argument: Callable[[cst.Name], bool],
    conditional: Callable[[cst.CSTNode], bool],
) -> ReadConfig:
    """Reads `RunConfig(...)`, with any number of `.replace(...)`, in place or behind a name of the scope.

    `is_config_argument` tells the names that are given to an Estimator, `conditional` the lines that may not run
    before the Estimator is made. Raises Blocked (TFM108).
    """
    if is_none(node):
        return ReadConfig({}, (), (), (), ())
    assert node is not None
    reader = _Reader(file, scope, is_config_argument, conditional)
    bound = reader.read(node)
    dropped: list[cst.BaseExpression] = []
    remarks: list[Blocked] = []
    for key, value in bound.items():
        if is_none(value):
            continue
        if key in COLLECTIVE:
            raise Blocked("TFM108", value, f"RunConfig's `{key}` is not carried over yet")
        if key in SESSION:
            dropped.append(value)
            message = f"RunConfig's `{key}` is left out: set devices and threads with `tf.config` where you need to"
            remarks.append(Blocked("TFM140", value, message))
        elif key in NO_EFFECT:
            dropped.append(value)
            remarks.append(Blocked("TFM107", value, f"RunConfig's `{key}` is left out: fit has no such setting"))
    arguments = {k: v for k, v in bound.items() if not is_none(v) and not any(v is d for d in dropped)}
    session = bound.get("session_config")
    return ReadConfig(
        arguments,
        tuple(reader.calls),
        tuple(reader.lines),
        tuple(dropped),
        tuple(remarks),
        None if is_none(session) else session,
    )


class _Reader:
    def __init__(
        self,
        file: ParsedFile,
        scope: cst.CSTNode,
        is_config_argument: Callable[[cst.Name], bool],
        conditional: Callable[[cst.CSTNode], bool],
    ) -> None:
        self.file = file
        self.scope = scope
        self.is_config_argument = is_config_argument
        self.conditional = conditional
        self.calls: list[cst.Call] = []
        self.lines: list[cst.SimpleStatementLine] = []
        self.kind: Sequence[str] = RUN_CONFIG

    def read(self, node: cst.BaseExpression) -> Arguments:
        if isinstance(node, cst.Call):
            name = self.file.imports.resolve(node.func)
            if name in _KINDS:
                self.kind = _KINDS[name]
                self.calls.append(node)
                return bind(node, self.kind, name, "TFM108")
            if isinstance(node.func, cst.Attribute) and node.func.attr.value == "replace":
                found = self.read(node.func.value)
                self.calls.append(node)
                return {**found, **bind(node, self.kind, "RunConfig.replace", "TFM108")}
        if isinstance(node, cst.Name):
            return self._behind(node)
        raise Blocked("TFM108", node, "this is not a `tf.estimator.RunConfig` made beside the Estimator")

    def _behind(self, name: cst.Name) -> Arguments:
        """The arguments of what a name stands for: a RunConfig, then `name = name.replace(...)` any number of times."""
        finder = _Assignments(name.value, self.scope)
        self.scope.visit(finder)
        if not finder.found or not finder.plain:
            raise Blocked("TFM108", name, f"`{name.value}` is not a `tf.estimator.RunConfig` made beside the Estimator")
        found: Arguments = {}
        explained: set[int] = set()
        for index, (line, target, value) in enumerate(finder.found):
            if self.conditional(line):
                raise Blocked("TFM108", line, "the RunConfig differs by a condition: make one for all cases")
            explained.add(id(target))
            if index == 0:
                found = self.read(value)
            else:
                again = isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute)
                receiver = value.func.value if again else None  # type: ignore[attr-defined]
                same = isinstance(receiver, cst.Name) and receiver.value == name.value
                if not same or value.func.attr.value != "replace":  # type: ignore[attr-defined]
                    raise Blocked("TFM108", line, f"`{name.value}` stands for more than one RunConfig")
                explained.add(id(receiver))
                self.calls.append(value)  # type: ignore[arg-type]
                found = {**found, **bind(value, self.kind, "RunConfig.replace", "TFM108")}  # type: ignore[arg-type]
            self.lines.append(line)
        for node in name_nodes(self.scope):
            if node.value == name.value and id(node) not in explained and not self.is_config_argument(node):
                raise Blocked("TFM108", node, f"`{name.value}` is used for more than the Estimator")
        return found


class _Assignments(cst.CSTVisitor):
    """`name = value` lines of a scope; `plain` says that nothing else gives the name a value."""

    def __init__(self, name: str, scope: cst.CSTNode) -> None:
        super().__init__()
        self.name = name
        self.scope = scope
        self.found: list[tuple[cst.SimpleStatementLine, cst.Name, cst.BaseExpression]] = []
        self.plain = True

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return node is self.scope

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        return False

    def visit_Param(self, node: cst.Param) -> None:
        self.plain = self.plain and node.name.value != self.name

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        for small in node.body:
            if isinstance(small, cst.Assign):
                targets = [t.target for t in small.targets]
                names = [t for t in targets if isinstance(t, cst.Name) and t.value == self.name]
                if names and len(targets) == 1 and len(node.body) == 1:
                    self.found.append((node, names[0], small.value))
                elif any(n.value == self.name for t in targets for n in name_nodes(t)):
                    self.plain = False
            elif isinstance(small, cst.AugAssign | cst.AnnAssign | cst.Del):
                target = small.target
                self.plain = self.plain and not any(n.value == self.name for n in name_nodes(target))
