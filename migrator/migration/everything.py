"""All files that were given, and where they mention functions of programs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import libcst as cst

from migrator.program.body import Parameters
from migrator.program.inlining import Inlined
from migrator.program.model_function import ModelFunction
from migrator.program.modes import ALL, ModalStatement
from migrator.program.own_weights import OwnWeights, own_weights
from migrator.program.parsed import Blocked, ParsedFile, Project
from migrator.program.relevant import around, imports_of
from migrator.program.training import Place, TrainingProgram, attributes_called, bindings, is_estimator, mentions_of
from migrator.rules.generation import KERAS_2, Keras
from migrator.syntax import Trees
from migrator.walking import walk

References = list[tuple[cst.FunctionDef, ParsedFile, cst.CSTNode]]


@dataclass(frozen=True)
class FollowedModel:
    """A model_fn as it was read, which is the same in whatever form it is tried: how far, and what was in the way.

    It is read by its file, its function and its parameters: how a driver calls it makes no difference. `function` is of
    no use where something was `found` in the way.
    """

    file: ParsedFile
    parameters: Parameters
    read: Inlined | None
    function: ModelFunction | None
    found: tuple[Blocked, ...]


class Everything:
    """All files that were given, those that have nothing to do with a program parsed only when they are asked for.

    `remarks` are about what was left out of the files when they were read. `wants_tpus` says that programs which ask
    for a TPU are to get one. `trees` keeps what is parsed. `beside` are texts that the others import,
    which have nothing of TensorFlow.
    """

    def __init__(
        self,
        project: Project,
        texts: Mapping[Path, str],
        remarks: Mapping[Path, list[Blocked]] | None = None,
        wants_tpus: bool = True,
        keras: Keras = KERAS_2,
        trees: Trees[cst.Module] | None = None,
        beside: Mapping[Path, str] | None = None,
    ) -> None:
        self.trees = trees
        self.wants_tpus = wants_tpus
        self.keras = keras
        self.project = project
        self.texts = texts
        self.with_beside = {**texts, **(beside or {})}
        self.remarks = remarks or {}
        self.serving: set[cst.CSTNode] = set()  # what is called for the serving functions of all programs
        self._parsed: dict[Path, ParsedFile | None] = {file.path: file for file in project.files}
        self.followed: dict[cst.FunctionDef, FollowedModel] = {}
        self._own_weights: dict[cst.FunctionDef, OwnWeights] = {}

    @cached_property
    def imported(self) -> dict[Path, set[Path]]:
        """What the imports of every file may mean, see `imports_of`."""
        return imports_of(self.texts)

    def own_weights(self, program: TrainingProgram) -> OwnWeights:
        """The weights that the model_fn of a program makes by itself, as it is written: the same in every form."""
        function, given = program.model_fn, program.model.parameters
        if function not in self._own_weights:
            lines = [ModalStatement(one, ALL) for one in function.body.body if isinstance(one, cst.BaseStatement)]
            found = own_weights(self.project, program.model_file, function, lines, given.features, given.labels)
            self._own_weights[function] = found
        return self._own_weights[function]

    def mentioning(self, names: Collection[str]) -> list[ParsedFile]:
        """The files of the project, and the others, whose text holds one of some names."""
        found = []
        for path, text in self.texts.items():
            if not any(name in text for name in names):
                continue
            file = self._file(path)
            if file is not None:
                found.append(file)
        return found

    def around(self, file: ParsedFile) -> list[ParsedFile]:
        """The files of the project, and what a file imports, directly or not, that is none of these."""
        known = {one.path for one in self.project.files}
        further = [self._file(path) for path in around(self.with_beside, [file.path], every=True) if path not in known]
        return [*self.project.files, *(one for one in further if one is not None)]

    def _file(self, path: Path) -> ParsedFile | None:
        if path not in self._parsed:
            try:
                self._parsed[path] = ParsedFile.parse(path, self.with_beside[path], self.trees)
            except cst.ParserSyntaxError:
                self._parsed[path] = None
        return self._parsed[path]


def references_to_models(
    project: Project,
    everything: Everything,
    programs: Iterable[TrainingProgram],
    places: Mapping[Path, list[Place]],
) -> References:
    """Where the model_fns are mentioned otherwise than as the model_fn of an Estimator."""
    programs = list(programs)
    models = {program.model_fn: program.model_file for program in programs}
    for program in programs:
        models.update({function: file for file, function in program.model.builders})
    known = {node for program in programs for node in program.model.explained}
    names = {model.name.value for model in models} | {m for program in programs for m in program.model.methods}
    files = everything.mentioning(names)
    found: References = []
    for file in files:
        explained = known | {
            arg.value for place in places.get(file.path, []) if is_estimator(place.name) for arg in place.call.args
        }
        finder = _Mentions(project, file, models.keys(), explained)
        walk(file.module, finder)
        found += [(model, file, node) for model, node in finder.found]
        for program in programs:
            methods = attributes_called(file.module, program.model.methods)
            found += [(program.model_fn, file, node) for node in methods if node not in explained]
            for where, scope, name in program.model.aliases:
                if where is file:
                    mentions = mentions_of(scope, name)
                    found += [(program.model_fn, file, node) for node in mentions if node not in explained]
    return found


class _Mentions(cst.CSTVisitor):
    """Names and attributes that mean one of some top-level functions."""

    def __init__(
        self,
        project: Project,
        file: ParsedFile,
        models: Collection[cst.FunctionDef],
        explained: Collection[cst.CSTNode],
    ) -> None:
        super().__init__()
        self.project = project
        self.file = file
        self.models = models
        self.explained = explained
        self.found: list[tuple[cst.FunctionDef, cst.CSTNode]] = []
        self._local: list[set[str]] = []

    def _look_up(self, node: cst.BaseExpression) -> bool:
        if node in self.explained:
            return True
        found = self.project.function(self.file, node)
        if found is not None and found[1] in self.models:
            self.found.append((found[1], node))
            return True
        return False

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        self._local.append({name for name, bound in bindings(node) if bound is not node})
        for part in (node.params, node.body, *node.decorators):
            walk(part, self)
        self._local.pop()
        return False

    def visit_Import(self, node: cst.Import) -> bool:
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False

    def visit_Param(self, node: cst.Param) -> bool:
        if node.default is not None:
            walk(node.default, self)
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        walk(node.value, self)
        return False

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        if not self._look_up(node):
            walk(node.value, self)
        return False

    def visit_Name(self, node: cst.Name) -> None:
        imported = node.value in self.file.imports.names
        if imported or not any(node.value in names for names in self._local):
            self._look_up(node)


def mentions_of_functions(
    project: Project, everything: Everything, functions: Collection[cst.FunctionDef]
) -> list[tuple[ParsedFile, cst.CSTNode]]:
    """Where top-level functions, or methods, are mentioned."""
    return [(file, node) for file, node, _ in mentions_by_function(project, everything, functions)]


def mentions_by_function(
    project: Project, everything: Everything, functions: Collection[cst.FunctionDef]
) -> list[tuple[ParsedFile, cst.CSTNode, cst.FunctionDef]]:
    """Where top-level functions, or methods, are mentioned, each with the one that is meant.

    A file that does not say the name of a function does not mention it.
    """
    found: list[tuple[ParsedFile, cst.CSTNode, cst.FunctionDef]] = []
    at_top = {function for file in project.files for function in file.functions.values()}
    for file in everything.mentioning([function.name.value for function in functions]):
        text = everything.texts[file.path]
        said = {function for function in functions if function.name.value in text}
        finder = _Mentions(project, file, said, ())
        walk(file.module, finder)
        found += [(file, node, function) for function, node in finder.found]
        for function in functions:
            if function in said and function not in at_top:
                found += [(file, node, function) for node in attributes_called(file.module, [function.name.value])]
    return found
