"""One parsed file, and the project that it belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from migrator.findings import Finding, Severity
from migrator.names.imports import ImportMap, read_imports


class Blocked(Exception):
    """A construct that cannot be carried over: the node, the finding's code, and what to tell the user."""

    def __init__(self, code: str, node: cst.CSTNode | None, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.node = node
        self.message = message


@dataclass(frozen=True)
class ParsedFile:
    """A file as a libcst tree, with its import map and the positions of its nodes."""

    path: Path
    text: str
    module: cst.Module

    @staticmethod
    def parse(path: Path, text: str) -> ParsedFile:
        """Parses `text`; raises libcst.ParserSyntaxError."""
        return ParsedFile(path, text, cst.parse_module(text))

    @cached_property
    def imports(self) -> ImportMap:
        return read_imports(self.module)

    @cached_property
    def _positions(self) -> Mapping[cst.CSTNode, object]:
        wrapper = MetadataWrapper(self.module, unsafe_skip_copy=True)
        return wrapper.resolve(PositionProvider)

    def position(self, node: cst.CSTNode | None) -> tuple[int, int]:
        """1-based line and column of a node of this file's tree; (1, 1) when it is not one."""
        found = self._positions.get(node) if node is not None else None
        start = getattr(found, "start", None)
        return (start.line, start.column + 1) if start is not None else (1, 1)

    def code(self, node: cst.CSTNode) -> str:
        """The source text of a node."""
        return self.module.code_for_node(node)

    def finding(self, code: str, severity: Severity, node: cst.CSTNode | None, message: str) -> Finding:
        line, column = self.position(node)
        return Finding(str(self.path), line, column, code, severity, message)

    @cached_property
    def functions(self) -> dict[str, cst.FunctionDef]:
        """Top-level functions by name."""
        return {s.name.value: s for s in self.module.body if isinstance(s, cst.FunctionDef)}

    @cached_property
    def names(self) -> frozenset[str]:
        """Every identifier in the file, so that new ones can be chosen freely."""
        collector = _Bindings()
        self.module.visit(collector)
        return frozenset(collector.found)

    @cached_property
    def constants(self) -> dict[str, cst.BaseExpression]:
        """Module-level names that are assigned exactly once, and their values."""
        found: dict[str, cst.BaseExpression] = {}
        twice: set[str] = set()
        for statement in self.module.body:
            if not isinstance(statement, cst.SimpleStatementLine):
                continue
            for small in statement.body:
                if isinstance(small, cst.Assign):
                    for target in small.targets:
                        if isinstance(target.target, cst.Name):
                            name = target.target.value
                            (twice.add(name) if name in found else None)
                            found[name] = small.value
        return {name: value for name, value in found.items() if name not in twice}

    def integer(self, node: cst.BaseExpression | None) -> int | None:
        """The value of an integer literal, or of a module-level constant that is one."""
        if isinstance(node, cst.Name):
            node = self.constants.get(node.value)
        if isinstance(node, cst.Integer):
            return int(node.evaluated_value)
        return None


def names_in(node: cst.CSTNode) -> set[str]:
    """Identifiers read or written anywhere in `node`, attribute names and keywords left out."""
    collector = _Loads()
    node.visit(collector)
    return collector.found


class _Loads(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        node.value.visit(self)
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        node.value.visit(self)
        return False

    def visit_Name(self, node: cst.Name) -> None:
        self.found.add(node.value)


class _Bindings(_Loads):
    """Identifiers anywhere, names of functions, parameters and imports included, attributes left out."""

    def visit_Param(self, node: cst.Param) -> None:
        self.found.add(node.name.value)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.found.add(node.name.value)


@dataclass(frozen=True)
class Project:
    """The files given together; functions are looked up across them."""

    files: tuple[ParsedFile, ...]
    _by_path: dict[Path, ParsedFile] = field(default_factory=dict)

    @staticmethod
    def of(files: Iterable[ParsedFile]) -> Project:
        files = tuple(files)
        return Project(files, {_absolute(f.path): f for f in files})

    def sibling(self, importer: ParsedFile, module: str) -> ParsedFile | None:
        """The file that `import module` in `importer` means: beside it, or under one of its parent folders."""
        parts = module.split(".")
        folder = _absolute(importer.path).parent
        for root in (folder, *folder.parents):
            for candidate in (root.joinpath(*parts).with_suffix(".py"), root.joinpath(*parts, "__init__.py")):
                if candidate in self._by_path:
                    return self._by_path[candidate]
        return None

    def function(self, file: ParsedFile, node: cst.BaseExpression) -> tuple[ParsedFile, cst.FunctionDef] | None:
        """The function that a name or `module.name` in `file` refers to, here or in a sibling module."""
        if isinstance(node, cst.Name) and node.value in file.functions:
            return file, file.functions[node.value]
        origin = file.imports.resolve(node)
        if origin is None or "." not in origin:
            return None
        module, _, name = origin.rpartition(".")
        head = node.value if isinstance(node, cst.Name) else None
        if head is not None and head in file.imports.relative:
            module = file.imports.relative[head][1].rpartition(".")[0]
        other = self.sibling(file, module) if module else None
        if other is not None and name in other.functions:
            return other, other.functions[name]
        return None


def _absolute(path: Path) -> Path:
    return Path.cwd() / path
