"""One parsed file, and the project that it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import libcst as cst

from migrator.findings import Finding, Severity
from migrator.names.annotated import in_plain_words, parse_module
from migrator.names.bare import bare
from migrator.names.bindings import Binding, read_bindings
from migrator.names.imports import ImportMap, canonical, read_imports
from migrator.places import Range, places_of, text_of
from migrator.program.clusters import Cluster
from migrator.program.spread import Spread, line_starts
from migrator.source.discovery import module_files
from migrator.syntax import Trees
from migrator.walking import Transformer, children_of, names_below, of_kinds, parents_in, walk


class Blocked(Exception):
    """A construct that cannot be carried over: the node, the finding's code, and what to tell the user."""

    def __init__(self, code: str, node: cst.CSTNode | None, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.node = node
        self.message = message


@dataclass(frozen=True)
class Further:
    """A name that a file does not have yet: the other file that it is `of`, and the `line` that imports it."""

    of: ParsedFile
    line: str


class Position(tuple[int, int]):
    """1-based line and column of code as it was written. Positions sort in the order in which the code stands now.

    That is another one where the lines of a function stand in the place of its call.
    """

    order: tuple[int, ...]

    def __new__(cls, place: tuple[int, int], order: tuple[int, ...] | None = None) -> Position:
        made = super().__new__(cls, place)
        made.order = order or place
        return made

    def __lt__(self, other: tuple[int, ...]) -> bool:
        return self.order < _order(other)

    def __le__(self, other: tuple[int, ...]) -> bool:
        return self.order <= _order(other)

    def __gt__(self, other: tuple[int, ...]) -> bool:
        return self.order > _order(other)

    def __ge__(self, other: tuple[int, ...]) -> bool:
        return self.order >= _order(other)


def _order(place: tuple[int, ...]) -> tuple[int, ...]:
    return place.order if isinstance(place, Position) else place


@dataclass(frozen=True)
class ParsedFile:
    """A file as a libcst tree, with its import map and the positions of its nodes.

    `origins` says for nodes that were made from others which these were, `others` the files that they may be in.
    `spread` is set where the tree is of a text with something written out (a canned Estimator's model_fn), and says
    where its places were; `said` are remarks about that, and `refused` why something could not be written out, by its
    place in the file. `left_out` are branches for TPUs, which the tree does not have any more, `clusters` those that
    programs make by hand, by the names of their Estimators, `towers` the Estimators whose programs built towers, and
    `tower_models` the model_fns that did. `further` are names of other files that statements read which were put here,
    `choices` the places of the Estimators of which a condition chooses one, by that of the first, `built` those of
    constructions of other files that stand in the place of a call here, by that of the call.
    """

    path: Path
    text: str
    module: cst.Module
    origins: dict[cst.CSTNode, cst.CSTNode] = field(default_factory=dict, compare=False)
    others: list[ParsedFile] = field(default_factory=list, compare=False)
    spread: Spread | None = field(default=None, compare=False)
    said: tuple[Finding, ...] = field(default=(), compare=False)
    refused: Mapping[tuple[int, int], tuple[str, str]] = field(default_factory=dict, compare=False)
    left_out: tuple[cst.CSTNode, ...] = field(default=(), compare=False)
    clusters: Mapping[str, Cluster] = field(default_factory=dict, compare=False)
    towers: frozenset[str] = field(default=frozenset(), compare=False)
    tower_models: frozenset[str] = field(default=frozenset(), compare=False)
    further: dict[str, Further] = field(default_factory=dict, compare=False)
    choices: Mapping[tuple[int, int], tuple[tuple[int, int], ...]] = field(default_factory=dict, compare=False)
    built: Mapping[tuple[int, int], tuple[Path, tuple[int, int]]] = field(default_factory=dict, compare=False)

    @staticmethod
    def parse(path: Path, text: str, trees: Trees[cst.Module] | None = None) -> ParsedFile:
        """Parses `text`, or takes its tree from `trees`; raises libcst.ParserSyntaxError."""
        module = parse_module(text) if trees is None else in_plain_words(trees.of(text, path))
        file = ParsedFile(path, text, module)
        file.__dict__["written"] = text  # a tree that was just made is written as what it was made of
        return file

    @property
    def bare(self) -> str:
        """The file's text with nothing in it but code: what decisions on words are taken on."""
        return bare(self.text)

    @cached_property
    def imports(self) -> ImportMap:
        return read_imports(self.module, self.text)

    @cached_property
    def _positions(self) -> Mapping[cst.CSTNode, Range]:
        return places_of(self.module)

    @cached_property
    def written(self) -> str:
        """The text of the file's tree, which is another one than `text` where something was read in other words."""
        return text_of(self.module, self.module)

    @cached_property
    def is_as_written(self) -> bool:
        """Whether the file's tree is written as `text`, and nothing of it was left out or put in other words."""
        return not self.left_out and self.written == self.text

    @cached_property
    def _orders(self) -> Mapping[cst.CSTNode, tuple[int, ...]]:
        return {}

    def keep_positions(
        self,
        made: Mapping[cst.CSTNode, cst.CSTNode],
        of: ParsedFile,
        orders: Mapping[cst.CSTNode, tuple[int, ...]] | None = None,
    ) -> None:
        """Gives the nodes of this file's tree the positions that the nodes they were made of have in another.

        `orders` are those of nodes that stand elsewhere now, see Position.
        """
        positions = of._positions
        new = {node: positions[old] for node, old in made.items() if old in positions}
        self.__dict__["_positions"] = {**positions, **new}
        moved = {node: of._orders[old] for node, old in made.items() if old in of._orders} if of._orders else {}
        self.__dict__["_orders"] = {**of._orders, **moved, **(orders or {})}

    def has(self, node: cst.CSTNode) -> bool:
        """Whether a node has a position in this file."""
        return node in self._positions

    def position(self, node: cst.CSTNode | None) -> Position:
        """1-based line and column of a node of this file's tree; (1, 1) when it is not one."""
        found = self._positions.get(node) if node is not None else None
        if found is None and node in self.origins:
            return self.position(self.origins[node])
        if found is None or node is None:
            return Position((1, 1))
        line, column = found[0]
        if self.spread is not None:
            line, column = self.spread.original(line, column)
        return Position((line, column + 1), self._orders.get(node))

    def range(self, node: cst.CSTNode) -> tuple[int, int]:
        """The offsets of a node of this file's tree in its text: where it begins, and where it has ended."""
        lines = line_starts(self.written)
        start, end = self._positions[node]
        return lines[start[0] - 1] + start[1], lines[end[0] - 1] + end[1]

    @cached_property
    def parents(self) -> Mapping[cst.CSTNode, cst.CSTNode]:
        """The node around each node of this file's tree that says something."""
        return dict(parents_in(self.module))

    def above(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The nodes around a node, innermost first."""
        around = self.parents.get(node)
        while around is not None:
            yield around
            around = self.parents.get(around)

    def home(self, node: cst.CSTNode | None) -> tuple[ParsedFile, cst.CSTNode | None]:
        """The file and the node that a node comes from: another file's when a helper there was inlined."""
        while node is not None and node not in self._positions and node in self.origins:
            node = self.origins[node]
        if node is not None and node not in self._positions:
            for other in self.others:
                if node in other._positions:
                    return other, node
        return self, node

    def code(self, node: cst.CSTNode) -> str:
        """The source text of a node."""
        return text_of(self.module, node)

    @cached_property
    def _hashed(self) -> dict[cst.CSTNode, bool]:
        """Whether there is a `#` in the text of the nodes that were asked about, and of those below them."""
        return {}

    def may_have_comment(self, node: cst.CSTNode) -> bool:
        """Whether there may be a comment inside of a node: its text has a `#`."""
        known = self._hashed.get(node)
        if known is None:
            value = getattr(node, "value", None)
            here = type(value) is str and "#" in value
            known = self._hashed[node] = here or any(map(self.may_have_comment, children_of(node)))
        return known

    def finding(self, code: str, severity: Severity, node: cst.CSTNode | None, message: str) -> Finding:
        file, node = self.home(node)
        line, column = file.position(node)
        if code in ("TFM102", "TFM105", "TFM224", "TFM743"):  # what is left of something that could not be written out
            code, message = file.refused.get((line, column), (code, message))
        return Finding(str(file.path), line, column, code, severity, message)

    @cached_property
    def functions(self) -> dict[str, cst.FunctionDef]:
        """Top-level functions by name."""
        return {s.name.value: s for s in self.module.body if isinstance(s, cst.FunctionDef)}

    @cached_property
    def classes(self) -> dict[str, cst.ClassDef]:
        """Top-level classes by name, the first of each."""
        found: dict[str, cst.ClassDef] = {}
        for statement in self.module.body:
            if isinstance(statement, cst.ClassDef):
                found.setdefault(statement.name.value, statement)
        return found

    @cached_property
    def names(self) -> frozenset[str]:
        """Every identifier in the file, so that new ones can be chosen freely."""
        bound = {binding.name for binding in read_bindings(self.module)}
        return frozenset(names_in(self.module) | bound | self.imports.star_names)

    @cached_property
    def names_at_top(self) -> frozenset[str]:
        """The names that are bound at the top level."""
        return frozenset(binding.name for binding in read_bindings(self.module) if binding.is_global)

    @cached_property
    def constants(self) -> dict[str, cst.BaseExpression]:
        """Module-level names that are bound exactly once, by a plain assignment, and their values."""
        found: dict[str, list[Binding]] = {}
        for binding in read_bindings(self.module):
            if binding.is_global:
                found.setdefault(binding.name, []).append(binding)
        return {
            name: bindings[0].node.value
            for name, bindings in found.items()
            if len(bindings) == 1 and bindings[0].is_plain and isinstance(bindings[0].node, cst.Assign)
        }

    def string(self, node: cst.BaseExpression | None) -> str | None:
        """The value of a string literal, or of a module-level constant that is one."""
        if isinstance(node, cst.Name):
            node = self.constants.get(node.value)
        found = node.evaluated_value if isinstance(node, (cst.SimpleString, cst.ConcatenatedString)) else None
        return found if isinstance(found, str) else None

    def integer(self, node: cst.BaseExpression | None) -> int | None:
        """The value of an integer literal, or of a module-level constant that is one."""
        if isinstance(node, cst.Name):
            node = self.constants.get(node.value)
        if isinstance(node, cst.Integer):
            return int(node.evaluated_value)
        return None


class Tracked(Transformer):
    """Notes of new nodes which they were `made` of, for `ParsedFile.keep_positions`."""

    looks_by_methods = True

    def __init__(self) -> None:
        super().__init__()
        self.made: dict[cst.CSTNode, cst.CSTNode] = {}

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        new = super().on_leave(original_node, updated_node)
        if new is original_node:
            return new
        if isinstance(new, cst.CSTNode):
            self.made[new] = original_node
        elif isinstance(new, cst.FlattenSentinel):
            for one in new:
                self.made.setdefault(one, original_node)
        return new


class Remover(Tracked):
    """Leaves something out of a file: `gone` says what, for those who read the findings."""

    def __init__(self) -> None:
        super().__init__()
        self.gone: list[Blocked] = []


def removed_by(remover: Remover, file: ParsedFile) -> tuple[ParsedFile, list[Blocked]]:
    """The file as a remover leaves it, whose nodes keep their positions, and a remark for each thing that is gone."""
    module = file.module.visit(remover)
    if not remover.gone:
        return file, []
    assert isinstance(module, cst.Module)
    new = replace(file, module=module)
    new.keep_positions(remover.made, file)
    return new, remover.gone


class Following(Transformer):
    """Tells `same` of each new node what it stands for."""

    def __init__(self, same: Callable[[cst.CSTNode, cst.CSTNode], object]) -> None:
        super().__init__()
        self.same = same

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        new = super().on_leave(original_node, updated_node)
        if new is not original_node and isinstance(new, cst.CSTNode):
            self.same(original_node, new)
        return new


class NameCollector(cst.CSTVisitor):
    """Collects the identifiers read or written below a node; attribute names, keywords and imports left out."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[cst.Name] = []

    def visit_ImportAlias(self, node: cst.ImportAlias) -> bool:
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        walk(node.value, self)
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        walk(node.value, self)
        return False

    def visit_Name(self, node: cst.Name) -> None:
        self.found.append(node)


class _AttributeCollector(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[cst.Attribute] = []

    def visit_Attribute(self, node: cst.Attribute) -> None:
        self.found.append(node)

    def visit_Import(self, node: cst.Import) -> bool:
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False


def attributes_named(node: cst.CSTNode, name: str) -> list[cst.Attribute]:
    """The attributes of this name anywhere in `node`, whatever they are of, but for modules in imports."""
    collector = _AttributeCollector()
    walk(node, collector)
    return [one for one in collector.found if one.attr.value == name]


def name_nodes(node: cst.CSTNode) -> list[cst.Name]:
    """The identifiers read or written anywhere in `node`."""
    return list(names_below(node))


def names_in(node: cst.CSTNode) -> set[str]:
    """Names read or written anywhere in `node`."""
    return {name.value for name in names_below(node)}


@dataclass(frozen=True)
class Project:
    """The files given together; functions are looked up across them."""

    files: tuple[ParsedFile, ...]
    _by_path: dict[Path, ParsedFile] = field(default_factory=dict)
    _siblings: dict[tuple[Path, str], ParsedFile | None] = field(default_factory=dict)
    #: What functions reach, see `region.reach`: its file, by where each begins and what is left out.
    reached: dict[
        tuple[Path, cst.CSTNode, frozenset[cst.CSTNode]], tuple[ParsedFile, Mapping[cst.CSTNode, ParsedFile]]
    ] = field(default_factory=dict, compare=False, repr=False)

    @staticmethod
    def of(files: Iterable[ParsedFile]) -> Project:
        files = tuple(files)
        project = Project(files, {_absolute(f.path): f for f in files})
        for file in files:
            project._through_siblings(file)
        return project

    def with_files(self, files: Iterable[ParsedFile]) -> Project:
        """The project with further files, whose imports are not read through those of their siblings."""
        known = {file.path for file in self.files}
        more = tuple(file for file in files if file.path not in known)
        return self if not more else Project((*self.files, *more), {_absolute(f.path): f for f in (*self.files, *more)})

    def _through_siblings(self, file: ParsedFile) -> None:
        """TensorFlow names that reach a file through the imports of its siblings."""
        imports = file.imports
        for star in imports.stars:
            other = self.sibling(file, star)
            if other is None or other is file:
                continue
            imports.star_names.update(self._public(other, set()))
            for name, origin in self._public(other, set()).items():
                if origin is not None and name not in imports.names:
                    imports.names[name] = origin
        modules: dict[str, ParsedFile] = {}
        for name, origin in list(imports.names.items()):
            if name.startswith("*"):
                continue
            whole = self.sibling(file, origin)
            if whole is not None and whole is not file:
                modules[name] = whole
            module, _, attribute = origin.rpartition(".")
            other = self.sibling(file, module) if module else None
            given = _tensorflow_names(other).get(attribute) if other is not None and other is not file else None
            if given is not None:
                imports.names[name] = given
                imports.problems.append(
                    (
                        imports.nodes.get(name, file.module),
                        f"`{name}` is TensorFlow, imported through `{module}`: import it here",
                    )
                )
        for module_name, other in modules.items():
            shared = _tensorflow_names(other)
            if shared:
                for node in of_kinds(file.module, cst.Attribute):
                    if not isinstance(node.value, cst.Name) or node.value.value != module_name:
                        continue
                    if node.attr.value not in shared:
                        continue
                    text = file.code(node)
                    imports.problems.append(
                        (node, f"`{text}` is TensorFlow, imported through another module: import it here")
                    )

    def _public(self, file: ParsedFile, seen: set[Path]) -> dict[str, str | None]:
        """What `import *` of a file gives: names, and their origin where that is TensorFlow."""
        if file.path in seen:
            return {}
        seen.add(file.path)
        found: dict[str, str | None] = {}
        for star in file.imports.stars:
            other = self.sibling(file, star)
            if other is not None:
                found.update(self._public(other, seen))
        tensorflow = _tensorflow_names(file)
        for binding in read_bindings(file.module):
            if binding.is_global and not binding.name.startswith("_"):
                found[binding.name] = tensorflow.get(binding.name)
        return found

    def sibling(self, importer: ParsedFile, module: str) -> ParsedFile | None:
        """The file that `import module` in `importer` means: beside it, or under one of its parent folders."""
        key = importer.path, module
        if key not in self._siblings:
            self._siblings[key] = self._sibling(importer, module)
        return self._siblings[key]

    def _sibling(self, importer: ParsedFile, module: str) -> ParsedFile | None:
        parts = module.split(".")
        folder = _absolute(importer.path).parent
        for root in (folder, *folder.parents):
            for candidate in module_files(root, parts):
                if candidate in self._by_path:
                    return self._by_path[candidate]
        return None

    def function(
        self, file: ParsedFile, node: cst.BaseExpression, depth: int = 0
    ) -> tuple[ParsedFile, cst.FunctionDef] | None:
        """The function that a name or `module.name` in `file` refers to, here or in a sibling module."""
        if isinstance(node, cst.Name) and node.value in file.functions:
            return file, file.functions[node.value]
        origin = file.imports.resolve(node)
        if origin is None and isinstance(node, cst.Name):
            return self._through_stars(file, node, {file.path})
        if origin is None or "." not in origin:
            return None
        module, _, name = origin.rpartition(".")
        head = node.value if isinstance(node, cst.Name) else None
        if head is not None and head in file.imports.relative:
            module = file.imports.relative[head][1].rpartition(".")[0]
        other = self.sibling(file, module) if module else None
        if other is None or other is file:
            return None
        if name in other.functions:
            return other, other.functions[name]
        # A package passes on what its modules define (`from .layers import dense` in `__init__.py`).
        passed = name in other.imports.names
        return self.function(other, cst.Name(name), depth + 1) if passed and depth < 4 else None

    def _through_stars(
        self, file: ParsedFile, node: cst.Name, seen: set[Path]
    ) -> tuple[ParsedFile, cst.FunctionDef] | None:
        for star in reversed(file.imports.stars):
            other = self.sibling(file, star)
            if other is None or other.path in seen:
                continue
            seen.add(other.path)
            if node.value in other.functions:
                return other, other.functions[node.value]
            found = self._through_stars(other, node, seen)
            if found is not None:
                return found
        return None


def _tensorflow_names(file: ParsedFile) -> dict[str, str]:
    """The names of a file that stand for TensorFlow or something in it, and their origins."""
    return {
        name: origin
        for name, origin in file.imports.names.items()
        if not name.startswith("*") and canonical(origin).partition(".")[0] == "tf"
    }


def _absolute(path: Path) -> Path:
    return Path.cwd() / path
