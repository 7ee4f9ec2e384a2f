"""What the passes over a file share while a mesh takes its strategy's place: what was read, and what comes up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar

import libcst as cst

from migrator.emit.layout import statements
from migrator.migration.mesh.models import Models
from migrator.names.free import free
from migrator.program.modern import Edit, ModernFile
from migrator.program.parsed import Blocked
from migrator.targets.dtensor import Layouts
from migrator.targets.plan import LoopShape

CODE, KEPT = "TFM780", "TFM799"
KERAS = "tf.keras."
_Node = TypeVar("_Node", bound=cst.CSTNode)


def refuse(node: cst.CSTNode | None, message: str, code: str = KEPT) -> NoReturn:
    """Blocks the whole file."""
    raise Blocked(code, node, message)


def above(file: ModernFile, node: cst.CSTNode, *kinds: type[_Node]) -> _Node | None:
    """The nearest node of a kind around a node."""
    parents = file.parsed.parents
    one = parents.get(node)
    while one is not None and not isinstance(one, kinds):
        one = parents.get(one)
    return one


@dataclass(frozen=True)
class Strategy:
    """Where a file makes its strategy: the call, its line, its name, and the uses of that name.

    `around` is the function that makes it, None for the module.
    """

    call: cst.Call
    line: cst.SimpleStatementLine
    uses: Sequence[cst.Name]
    around: cst.FunctionDef | None


@dataclass
class Draft:
    """A file, and what it is to become.

    Read: the layouts that are asked for, the strategy, classes of steps that `--loop custom` wrote (`own`), all other
    calls and attributes, the models, and which optimizer of Keras a class of the file stands for (`kinds`).
    To become: edits of nodes in their order, helpers (name -> text), imports, names that are taken, functions that
    get the mesh or the layouts as a parameter, and the uses of the strategy that other edits have taken care of.
    """

    file: ModernFile
    layouts: Layouts
    strategy: Strategy
    own: Mapping[cst.CSTNode | None, LoopShape]
    calls: Sequence[cst.Call]
    attributes: Sequence[cst.Attribute]
    models: Models
    kinds: Mapping[str, str]
    taken: set[str]
    mesh: str = ""
    scope: str = ""
    edits: list[tuple[cst.CSTNode, Edit]] = field(default_factory=list)
    helpers: dict[str, str] = field(default_factory=dict)
    imports: list[str] = field(default_factory=list)
    parameters: set[tuple[cst.FunctionDef, str]] = field(default_factory=set)
    accounted: set[cst.CSTNode] = field(default_factory=set)
    _wanted: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.mesh, self.scope = self.new("mesh"), self.new("layouts")

    @property
    def module(self) -> cst.Module:
        """The parsed file."""
        return self.file.parsed.module

    @property
    def parents(self) -> Mapping[cst.CSTNode, cst.CSTNode]:
        """The node around each node."""
        return self.file.parsed.parents

    @property
    def indent(self) -> str:
        """One step of indentation of the file."""
        return self.module.default_indent

    def new(self, wanted: str) -> str:
        """A name that nothing in the file has."""
        name = free(wanted, self.taken)
        self.taken.add(name)
        return name

    def helper(self, wanted: str, written: Callable[[str], str], imports: Collection[str] = ()) -> str:
        """The name of a function or class that the file gets once, written for that name."""
        if wanted not in self._wanted:
            name = self._wanted[wanted] = self.new(wanted)
            self.helpers[name] = written(name)
            self.imports += imports
        return self._wanted[wanted]

    def text(self, node: cst.CSTNode) -> str:
        """A node as source text."""
        return self.module.code_for_node(node)

    def lines(self, text: str) -> Sequence[cst.BaseStatement]:
        """Source text as statements of the file."""
        return statements(text + "\n", self.module)

    def edit(self, node: cst.CSTNode, edit: Edit) -> None:
        """Puts an edit of a node down, after those that it has."""
        self.edits.append((node, edit))

    def above(self, node: cst.CSTNode, *kinds: type[_Node]) -> _Node | None:
        """The nearest node of a kind around a node."""
        return above(self.file, node, *kinds)

    def line_of(self, node: cst.CSTNode) -> cst.SimpleStatementLine:
        """The line that a node is on. Raises Blocked where the line holds other statements, too."""
        line = self.above(node, cst.SimpleStatementLine)
        if line is None or len(line.body) != 1:
            refuse(node, "this training call is part of a compound statement: put it on its own line")
        return line
