"""Statements that only made what a migrated program has no use for any more."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import libcst as cst

from migrator.program.calls import calls_in
from migrator.program.parsed import ParsedFile, name_nodes, names_in
from migrator.program.telling import is_look
from migrator.walking import walk

_PLAIN = frozenset(("dict", "list", "tuple", "int", "float", "str", "bool", "len", "range", "zip", "set"))
_PLAIN_METHODS = frozenset(("format", "join", "items", "keys", "values", "get"))
_ASKS = frozenset(("os.cpu_count", "multiprocessing.cpu_count", "os.path.join", "os.path.expanduser"))


def leftovers(
    file: ParsedFile,
    scope: cst.CSTNode,
    gone: Iterable[cst.CSTNode],
    removed: Collection[cst.CSTNode] = (),
    may_go: Callable[[str], bool] = lambda symbol: True,
    keep: Collection[str] = (),
    own: Collection[str] = (),
) -> list[cst.BaseStatement]:
    """The statements of a scope that serve nothing but `gone`, nodes that are not to be in the new program.

    `removed` are statements that go anyway, but whose values may be needed in other places. A statement serves only
    `gone` when it gives (or changes) a name that nothing else reads, from literals, names and TensorFlow calls alone:
    a ConfigProto and its settings, a hook, the dict of tensors that it logs. An `if` that held nothing else goes too;
    other blocks are never left empty. Names of the module around a function stay, except those that TensorFlow made.
    `may_go` tells the TensorFlow functions whose calls may be left out, `keep` are names that the new program reads,
    `own` the program's own classes and functions whose calls may be left out as well.
    """
    search = _Search(file, list(removed), may_go, frozenset(keep), frozenset(own))
    found = search.of(scope, list(gone), everything=True)
    if scope is not file.module:
        found += search.of(file.module, [*gone, *found], everything=False)
    return found


def emptied_by(file: ParsedFile, scope: cst.CSTNode, gone: Sequence[cst.CSTNode]) -> list[cst.BaseStatement] | None:
    """The `if`s of a scope that hold nothing any more without the lines `gone`; None when another block would be left
    empty, or an `if` whose test may do something.
    """
    blocks = _Blocks()
    walk(scope, blocks)
    return blocks.emptied(_Search(file, [], lambda symbol: True, frozenset(), frozenset()).is_pure, gone)


@dataclass(frozen=True)
class _Search:
    file: ParsedFile
    removed: list[cst.CSTNode]
    may_go: Callable[[str], bool]
    keep: frozenset[str]
    own: frozenset[str]

    def of(self, scope: cst.CSTNode, gone: list[cst.CSTNode], everything: bool) -> list[cst.BaseStatement]:
        blocks = _Blocks()
        walk(scope, blocks)
        found: list[cst.BaseStatement] = []
        queue = sorted(set().union(*(names_in(node) for node in gone))) if gone else []
        seen: set[str] = set()
        every = name_nodes(scope)
        while queue:
            name = queue.pop(0)
            if name in seen or name in self.file.imports.names or name in self.keep:
                continue
            lines = self._makers(blocks, name)
            if not lines or (not everything and not any(self._calls_tensorflow(line) for line in lines)):
                continue
            dying = {id(n) for part in (*gone, *found, *lines) for n in name_nodes(part)}
            if any(node.value == name and id(node) not in dying for node in every):
                continue
            new = [line for line in lines if not any(line is other for other in found)]
            around = blocks.emptied(self.is_pure, [*found, *new, *self.removed])
            if around is None:
                continue
            seen.add(name)
            found += [*new, *around]
            queue += sorted(set().union(*(names_in(line) for line in (*lines, *around))) - seen)
        return found

    def _makers(self, blocks: _Blocks, name: str) -> list[cst.SimpleStatementLine]:
        """The lines that give a name its value, and those that only change what it stands for."""
        makers, changers = [], []
        for line in blocks.lines:
            if len(line.body) != 1:
                continue
            small = line.body[0]
            if isinstance(small, cst.Assign) and len(small.targets) == 1:
                target = small.targets[0].target
                if not self.is_pure(small.value):
                    continue
                if isinstance(target, cst.Name) and target.value == name:
                    makers.append(line)
                elif _root(target) == name:
                    changers.append(line)
            elif isinstance(small, cst.AugAssign):
                if _root(small.target) == name and self.is_pure(small.value):
                    changers.append(line)
            elif isinstance(small, cst.Expr) and self._is_change(small.value, name):
                changers.append(line)
        return [*makers, *changers] if makers else []

    def _is_change(self, node: cst.BaseExpression, name: str) -> bool:
        """`name.append(...)` and the like, of something pure."""
        if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
            return False
        known = node.func.attr.value in ("append", "extend", "update", "CopyFrom", "MergeFrom")
        return known and _root(node.func) == name and all(self.is_pure(arg.value) for arg in node.args)

    def is_pure(self, node: cst.CSTNode) -> bool:
        """Whether leaving out an expression changes nothing: all it calls is TensorFlow's or plain."""
        for call in calls_in(node):
            func = call.func
            name = self.file.imports.tensorflow(func)
            plain = isinstance(func, cst.Name) and func.value in _PLAIN | self.own
            plain = plain or (isinstance(func, cst.Attribute) and func.attr.value in _PLAIN_METHODS | self.own)
            plain = plain or self.file.imports.resolve(func) in _ASKS or is_look(self.file, func)
            if not plain and (name is None or not self.may_go(name)):
                return False
        return True

    def _calls_tensorflow(self, node: cst.CSTNode) -> bool:
        return any(self.file.imports.tensorflow(call.func) is not None for call in calls_in(node))


def _root(node: cst.BaseExpression) -> str | None:
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        node = node.value
    return node.value if isinstance(node, cst.Name) else None


class _Blocks(cst.CSTVisitor):
    """The lines of a scope, functions inside left out, and the blocks with the `if` that each is all of."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[cst.SimpleStatementLine] = []
        self._blocks: list[tuple[Sequence[cst.CSTNode], cst.If | None]] = []
        self._whole: dict[int, cst.If] = {}
        self._elifs: set[cst.CSTNode] = set()

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return not self._blocks

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        return False

    def visit_Module(self, node: cst.Module) -> None:
        self._blocks.append((node.body, None))

    def visit_If(self, node: cst.If) -> None:
        if node.orelse is None and node not in self._elifs:
            self._whole[id(node.body)] = node
        if isinstance(node.orelse, cst.If):
            self._elifs.add(node.orelse)

    def visit_IndentedBlock(self, node: cst.IndentedBlock) -> None:
        self._blocks.append((node.body, self._whole.get(id(node))))

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        self.lines.append(node)

    def emptied(
        self, is_pure: Callable[[cst.CSTNode], bool], lines: Sequence[cst.CSTNode]
    ) -> list[cst.BaseStatement] | None:
        """The `if`s that hold nothing but `lines`; None when another block would be left without statements."""
        gone = {id(line) for line in lines}
        found: list[cst.BaseStatement] = []
        for body, around in reversed(self._blocks):
            if around is not None and id(around) in gone:
                continue
            if body and all(id(statement) in gone for statement in body):
                if around is None or not is_pure(around.test):
                    return None
                gone.add(id(around))
                found.append(around)
        return found
