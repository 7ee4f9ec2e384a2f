"""The specialised body of a model_fn: its statements, what its names stand for, and what its EstimatorSpecs say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from migrator.names.bindings import names_changed
from migrator.program.calls import is_none
from migrator.program.modes import ModalStatement, ModeNames, Modes, Spec
from migrator.program.parsed import Blocked, ParsedFile


@dataclass(frozen=True)
class Parameters:
    """The parameter names of a model_fn; None where it has none of that kind.

    `given` are parameters that a partial or a lambda fills in.
    """

    features: str
    labels: str | None
    mode: str | None
    params: str | None
    config: str | None
    given: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Definition:
    """A simple assignment `name = value` of the specialised body."""

    index: int
    name: str
    value: cst.BaseExpression
    modes: Modes


@dataclass(frozen=True)
class Body:
    """What the readers of loss, training and metrics look at.

    `definitions` are the assignments of one name to one expression, `unclear` the names that are given a value in
    some other way too, `specs` the EstimatorSpecs with their arguments by name, and `names` what is known of the mode.
    """

    file: ParsedFile
    node: cst.FunctionDef
    parameters: Parameters
    statements: tuple[ModalStatement, ...]
    definitions: tuple[Definition, ...]
    unclear: frozenset[str]
    specs: tuple[tuple[Spec, Mapping[str, cst.BaseExpression]], ...]
    names: ModeNames | None = None

    @property
    def about(self) -> frozenset[str]:
        """The names that say something of the mode."""
        return self.names.about if self.names is not None else frozenset()

    def piece(self, key: str, mode: str) -> cst.BaseExpression | None:
        """What the spec of `mode` says for `key`; None when it says nothing (or None)."""
        found = [bound[key] for spec, bound in self.specs if mode in spec.modes and not is_none(bound.get(key))]
        if len({self.file.code(value) for value in found}) > 1:
            raise Blocked("TFM105", found[1], f"two EstimatorSpecs of one mode have different `{key}`: use the same")
        return found[0] if found else None

    def definitions_of(self, name: str, mode: str) -> list[Definition]:
        """The assignments of a name that `mode` runs, in order."""
        return [d for d in self.definitions if d.name == name and mode in d.modes]

    def check_clear(self, name: cst.Name, code: str) -> None:
        """Refuses a name that a loop, a condition or an unpacking gives a value."""
        if name.value in self.unclear:
            place = next((s.node for s in self.statements if name.value in assigned_in_blocks((s,))), name)
            raise Blocked(
                code, place, f"`{name.value}` is assigned in a block that cannot be resolved: assign it outside"
            )


def definitions_in(statements: Sequence[ModalStatement]) -> Iterator[Definition]:
    """The simple assignments of a body, `name += value` as `name = name + value`."""
    for index, statement in enumerate(statements):
        if not isinstance(statement.node, cst.SimpleStatementLine):
            continue
        for small in statement.node.body:
            if (
                isinstance(small, cst.Assign)
                and len(small.targets) == 1
                and isinstance(small.targets[0].target, cst.Name)
            ):
                yield Definition(index, small.targets[0].target.value, small.value, statement.modes)
            elif isinstance(small, cst.AnnAssign) and small.value is not None and isinstance(small.target, cst.Name):
                yield Definition(index, small.target.value, small.value, statement.modes)
            elif isinstance(small, cst.AugAssign) and isinstance(small.operator, cst.AddAssign):
                if isinstance(small.target, cst.Name):
                    value = cst.BinaryOperation(small.target, cst.Add(), small.value)
                    yield Definition(index, small.target.value, value, statement.modes)


def assigned_in_blocks(statements: Sequence[ModalStatement]) -> set[str]:
    """Names that a loop, a condition or an unpacking gives a value: no single expression stands for them."""
    return names_given([one for one in statements if not _defines(one)])


def _defines(statement: ModalStatement) -> bool:
    """Whether a statement only gives names one expression each, or defines a function."""
    if isinstance(statement.node, cst.FunctionDef):
        return names_given((statement,)) == {statement.node.name.value}
    return isinstance(statement.node, cst.SimpleStatementLine) and bool(list(definitions_in((statement,))))


def names_given(statements: Sequence[ModalStatement]) -> set[str]:
    """Every name that statements give a value to, or to a part of whose value, wherever in them."""
    return names_changed(statement.node for statement in statements)
