"""A strategy that the program chooses when it runs: by an `if`, by a conditional expression, or in a function."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import libcst as cst

from migrator.program.calls import functions_in, is_none
from migrator.program.parsed import Blocked, ParsedFile, name_nodes
from migrator.program.scopes import always_returns, bindings, path_to, returns_in
from migrator.program.training import TrainingProgram
from migrator.targets.plan import Target
from migrator.targets.registry import ONE_DEVICE, target_of


@dataclass(frozen=True)
class Choice:
    """What a RunConfig may be given as its strategy, every branch of it.

    `calls` make strategies, `nones` stand for one device without any. Both are rewritten where they stand, so that the
    conditions around them stay as they are. `value` is what the RunConfig is given where that is no name, `first` the
    statement from which on strategies may be made (None: the RunConfig makes them). `names` are those of the module
    that may have stood for None.
    """

    target: Target
    calls: tuple[tuple[cst.Call, Target], ...]
    nones: tuple[cst.BaseExpression, ...]
    value: cst.BaseExpression | None
    first: cst.CSTNode | None
    names: tuple[str, ...] = ()


def read_choice(program: TrainingProgram, distribute: cst.BaseExpression) -> Choice | None:
    """The strategies that a `train_distribute` is chosen from; None where it is something else.

    Raises Blocked (TFM704) for a choice that is understood, and cannot be carried over.
    """
    reader = _Reader(program)
    if not reader.read(distribute, program.scope):
        return None
    words = {target.word for _, target in reader.calls}
    if not words:
        return None
    if not words <= {"one-device", "mirrored", "central-storage"}:
        call = next(c for c, t in reader.calls if t.word not in ("one-device", "mirrored", "central-storage"))
        message = "choosing between strategies of one machine and of a cluster is unsupported: make two programs"
        raise Blocked("TFM704", call, message)
    if reader.nones and any("TF_CONFIG" in file.bare for file in (program.file, program.model_file)):
        message = "no strategy means parameter servers if TF_CONFIG has some, else one device: choose one"
        raise Blocked("TFM704", reader.nones[0], message)
    several = [target for _, target in reader.calls if target.word in ("central-storage", "mirrored")]
    target = next((t for t in several if t.word == "central-storage"), several[0] if several else ONE_DEVICE)
    first = min(reader.statements, key=program.file.position) if reader.statements else None
    value = None if isinstance(distribute, cst.Name) else distribute
    names = [name for name, scope in reader.names if scope is program.file.module]
    names += [function.name.value for function in reader.functions]
    choice = Choice(target, tuple(reader.calls), tuple(reader.nones), value, first, tuple(names))
    evaluations = program.config.get("eval_distribute")
    if evaluations is not None:
        if program.file.code(evaluations) != program.file.code(distribute) or value is not None:
            message = (
                "the training strategy is chosen at run time: give `eval_distribute` the same name, or leave it out"
            )
            raise Blocked("TFM704", evaluations, message)
        reader.explained.add(id(evaluations))
    if choice.nones:
        _check_reads(program, reader)
    return choice


def _check_reads(program: TrainingProgram, reader: _Reader) -> None:
    """Raises Blocked (TFM704) where the program may see that there was None, and is a strategy now."""
    by_name = re.search(r"\b(?:locals|globals|vars|eval|exec)\(", program.file.bare)
    if by_name is not None:
        message = f"`{by_name[0]})` may read names, and a strategy of None becomes an object: choose one strategy"
        raise Blocked("TFM704", reader.nones[0], message)
    for name, scope in reader.names:
        own = {id(node) for function in _inner(scope) if _binds(function, name) for node in name_nodes(function)}
        for node in name_nodes(scope):
            if node.value != name or id(node) in reader.explained or id(node) in own:
                continue
            message = f"`{name}`, which may be None, is used outside the RunConfig, but is always a strategy now"
            raise Blocked("TFM704", node, message)
    for function in reader.functions:
        for node in name_nodes(program.file.module):
            if node.value == function.name.value and node is not function.name and id(node) not in reader.explained:
                message = f"`{node.value}`, which may return None, is used outside the RunConfig"
                raise Blocked("TFM704", node, message)


def check_files(choice: Choice, program: TrainingProgram, files: Iterable[ParsedFile]) -> None:
    """Raises Blocked (TFM704) where another file may see that there was None, and is a strategy now."""
    if not choice.nones:
        return
    module = program.file.path.stem
    for file in files:
        if file is program.file or re.search(rf"\bimport\b.*\b{module}\b|\bfrom\b.*\b{module}\b", file.bare) is None:
            continue
        for name in choice.names:
            if re.search(rf"\b{name}\b", file.bare) is not None:
                message = f"`{name}` may be None and {file.path.name} reads it, but it is always a strategy now"
                raise Blocked("TFM704", choice.nones[0], message)


def _inner(scope: cst.CSTNode) -> list[cst.FunctionDef]:
    return [one for one in functions_in(scope) if one is not scope]


def _binds(function: cst.FunctionDef, name: str) -> bool:
    return any(bound == name and node is not function for bound, node in bindings(function))


class _Reader:
    """Reads what an expression may be; every part of it must be known."""

    def __init__(self, program: TrainingProgram) -> None:
        self.program = program
        self.file: ParsedFile = program.file
        self.calls: list[tuple[cst.Call, Target]] = []
        self.nones: list[cst.BaseExpression] = []
        self.statements: list[cst.CSTNode] = []
        self.names: list[tuple[str, cst.CSTNode]] = []
        self.functions: list[cst.FunctionDef] = []
        self.explained: set[int] = set()

    def read(self, node: cst.BaseExpression, scope: cst.CSTNode) -> bool:
        if is_none(node):
            self.nones.append(node)
            self.explained.add(id(node))
            return True
        if isinstance(node, cst.IfExp):
            return self.read(node.body, scope) and self.read(node.orelse, scope)
        if isinstance(node, cst.Call):
            return self._call(node, scope)
        if isinstance(node, cst.Name):
            return self._name(node, scope)
        return False

    def _call(self, node: cst.Call, scope: cst.CSTNode) -> bool:
        name = self.file.imports.resolve(node.func)
        target = None if name is None else target_of(name)
        if target is not None:
            self.calls.append((node, target))
            return True
        function = self.file.functions.get(node.func.value) if isinstance(node.func, cst.Name) else None
        if function is None or function.decorators or function.asynchronous is not None:
            return False
        around = [*bindings(self.file.module), *([] if scope is self.file.module else bindings(scope))]
        if [bound for name, bound in around if name == function.name.value] != [function]:
            return False  # the name may be that of something else
        self.explained.add(id(node.func))
        if function in self.functions:
            return True
        self.functions.append(function)
        returned = returns_in(function.body)
        if not always_returns(function) or any(one.value is None for one in returned):
            title = function.name.value
            message = f"`{title}` may end without returning a strategy: let every branch return one"
            raise Blocked("TFM704", node, message)
        return all(one.value is not None and self.read(one.value, function) for one in returned)

    def _name(self, node: cst.Name, scope: cst.CSTNode) -> bool:
        """A name, of which every assignment must be known, and before the place where it is read."""
        if (node.value, scope) in self.names:
            self.explained.add(id(node))
            return True
        if re.search(rf"\b(?:global|nonlocal)\b[^\n]*\b{node.value}\b", self.file.bare):
            return False
        found = [bound for name, bound in bindings(scope) if name == node.value]
        if not found and scope is not self.file.module:
            if any(name == node.value for name, _ in bindings(self.file.module)):
                return self._name(node, self.file.module)
        self.names.append((node.value, scope))
        self.explained.add(id(node))
        for bound in found:
            way = path_to(scope, bound)
            line, assign = (way[-4], way[-3]) if len(way) > 3 else (None, None)
            if not isinstance(line, cst.SimpleStatementLine) or not isinstance(assign, cst.Assign):
                return False
            if len(assign.targets) != 1 or len(line.body) != 1 or assign.targets[0].target is not bound:
                return False
            if self.file.position(line) > self.file.position(node):
                return False
            self.explained.add(id(bound))
            if scope in (self.program.scope, self.file.module):
                self.statements.append(self._outermost(way))
            if not self.read(assign.value, scope):
                return False
        return bool(found)

    def _outermost(self, way: list[cst.CSTNode]) -> cst.CSTNode:
        """The statement of the scope's own body that a way goes through."""
        inner = (cst.SimpleStatementLine, cst.BaseCompoundStatement)
        return next(n for n in way[1:] if isinstance(n, inner))


def in_place(choice: Choice, text: Callable[[cst.Call, Target], str]) -> dict[cst.CSTNode, cst.BaseExpression]:
    """What stands where strategies were made; `text` is what one of a target becomes."""
    made: dict[cst.CSTNode, cst.BaseExpression] = {
        call: cst.parse_expression(text(call, target)) for call, target in choice.calls
    }
    made.update({none: cst.parse_expression("tf.distribute.get_strategy()") for none in choice.nones})
    return made
