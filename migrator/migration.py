"""The stages of the codemod in order: parse, read programs, plan, emit, and all or nothing per program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import libcst as cst

from migrator.emit.driver import choose_strategy, emit_driver, uses_of
from migrator.emit.file import FileChanges, FileRewriter, finish_imports
from migrator.emit.model_function import EmittedModel, emit_model_function, other_problems
from migrator.findings import Finding, Severity
from migrator.program.model_function import read_model_function
from migrator.program.parsed import Blocked, ParsedFile, Project
from migrator.program.training import Place, TrainingProgram, find_places, read_program
from migrator.rules.inputs import rewrite_returns
from migrator.targets.setup import Strategy

_PART_OF_PROGRAMS = (
    "tf.estimator.Estimator",
    "tf.estimator.EstimatorSpec",
    "tf.estimator.RunConfig",
    "tf.estimator.TrainSpec",
    "tf.estimator.EvalSpec",
    "tf.estimator.train_and_evaluate",
)


@dataclass
class _Group:
    """Programs that share files: they are migrated together or not at all."""

    programs: list[TrainingProgram] = field(default_factory=list)
    files: dict[Path, ParsedFile] = field(default_factory=dict)


def migrate_project(texts: Mapping[Path, str], strategy: str) -> tuple[dict[Path, str], dict[Path, list[Finding]]]:
    """Returns the new texts of the files that change, and all findings by file."""
    findings: dict[Path, list[Finding]] = {}
    files = []
    for path, text in texts.items():
        if "tensorflow" not in text:
            continue
        try:
            files.append(ParsedFile.parse(path, text))
        except cst.ParserSyntaxError as error:
            message = f"cannot be parsed; is it Python 2? convert it first: 2to3 -w -n {path}"
            finding = Finding(str(path), error.raw_line, error.raw_column + 1, "TFM902", Severity.ERROR, message)
            findings.setdefault(path, []).append(finding)
    project = Project.of(files)
    places = {file.path: find_places(file) for file in files if "stimator" in file.text}
    new_texts: dict[Path, str] = {}
    programs, blocked = _read_programs(project, places, findings)
    for group in _groups(project, programs):
        texts_of_group, group_findings = _migrate_group(project, group, Strategy(strategy), blocked)
        new_texts.update(texts_of_group)
        for finding_path, found in group_findings.items():
            findings.setdefault(finding_path, []).extend(found)
    return new_texts, findings


def _read_programs(
    project: Project, places: Mapping[Path, list[Place]], findings: dict[Path, list[Finding]]
) -> tuple[list[TrainingProgram], set[Path]]:
    """The programs that can be read, and the files that hold something of Estimator that cannot."""
    programs: list[TrainingProgram] = []
    blocked: set[Path] = set()
    for file in project.files:
        for place in places.get(file.path, []):
            try:
                if place.name == "tf.estimator.Estimator":
                    programs.append(read_program(project, file, place, places[file.path]))
                elif _is_foreign(place.name):
                    raise Blocked(
                        "TFM102", place.call, f"`{place.name}` is not carried over yet; TensorFlow 2.16 deleted it"
                    )
            except Blocked as problem:
                blocked.add(file.path)
                findings.setdefault(file.path, []).append(
                    file.finding(problem.code, Severity.MANUAL, problem.node or place.call, problem.message)
                )
    return programs, blocked


def _is_foreign(name: str) -> bool:
    last = name.rpartition(".")[2]
    return name not in _PART_OF_PROGRAMS and (
        last.endswith(("Estimator", "Classifier", "Regressor", "_to_estimator", "Experiment", "Hook", "Exporter"))
    )


def _groups(project: Project, programs: Iterable[TrainingProgram]) -> list[_Group]:
    groups: list[_Group] = []
    for program in programs:
        files = {f.path: f for f in _files_of(project, program)}
        merged = _Group([program], files)
        rest = []
        for group in groups:
            if group.files.keys() & files.keys():
                merged.programs[:0] = group.programs
                merged.files.update(group.files)
            else:
                rest.append(group)
        groups = [*rest, merged]
    return groups


def _files_of(project: Project, program: TrainingProgram) -> list[ParsedFile]:
    """The program's files: driver, model, and the modules beside them that they import and that use TensorFlow."""
    found: list[ParsedFile] = []
    queue = [program.file, program.model_file]
    while queue:
        file = queue.pop()
        if file in found:
            continue
        found.append(file)
        for origin in file.imports.names.values():
            parts = origin.split(".")
            for length in range(len(parts), 0, -1):
                other = project.sibling(file, ".".join(parts[:length]))
                if other is not None and "tensorflow" in other.text:
                    queue.append(other)
                    break
    return found


def _migrate_group(
    project: Project, group: _Group, asked: Strategy, blocked_files: set[Path]
) -> tuple[dict[Path, str], dict[Path, list[Finding]]]:
    """New texts of a group's files, or none of them and what stood in the way."""
    return _GroupMigration(project, group, asked, blocked_files).run()


class _GroupMigration:
    def __init__(self, project: Project, group: _Group, asked: Strategy, blocked_files: set[Path]) -> None:
        self.project = project
        self.group = group
        self.asked = asked
        self.blocked_files = blocked_files
        self.changes = {path: FileChanges() for path in group.files}
        self.rewriters = {
            path: FileRewriter(file.imports, file.code, definition=file.constants.get).prepare(
                file.module, self.changes[path]
            )
            for path, file in group.files.items()
        }
        self.problems: dict[Path, list[Blocked]] = {path: [] for path in group.files}
        self.remarks: dict[Path, list[Blocked]] = {path: [] for path in group.files}
        self.strategies: list[Strategy] = []

    def run(self) -> tuple[dict[Path, str], dict[Path, list[Finding]]]:
        models: dict[cst.FunctionDef, tuple[EmittedModel, bool]] = {}
        for program in self.group.programs:
            self._guarded(program.model_file, partial(self._model, program, models))
        for path, file in self.group.files.items():
            for function in _all_functions(file.module):
                self._guarded(file, partial(self._inputs, path, file, function))
        for program in self.group.programs:
            if program.model_fn in models:
                self._guarded(program.file, partial(self._driver, program, models))
        texts = {path: self._finish(file) for path, file in self.group.files.items()}
        known = any(self.problems.values()) or any(self.blocked_files & self.group.files.keys())
        for path, rewriter in self.rewriters.items():
            # What is left of the Estimator when something else stands in the way is no problem of its own.
            self.problems[path] += [p for p in rewriter.problems if not (known and "`tf.estimator." in p.message)]
        refused = any(self.problems.values()) or bool(self.blocked_files & self.group.files.keys())
        return ({} if refused else texts), self._findings(refused)

    def _guarded(self, file: ParsedFile, step: Callable[[], None]) -> None:
        try:
            step()
        except Blocked as problem:
            self.problems[file.path].append(problem)

    def _model(self, program: TrainingProgram, models: dict[cst.FunctionDef, tuple[EmittedModel, bool]]) -> None:
        if program.model_fn in models:
            return
        file = program.model_file
        sharing = [p for p in self.group.programs if p.model_fn is program.model_fn]
        wants = any(uses_of(p, "predict") for p in sharing)
        self.changes[file.path].statements[program.model_fn] = []  # not to be walked into, whatever happens below
        try:
            function = read_model_function(file, program.model_fn)
            emitted = emit_model_function(function, wants)
        except Blocked:
            self.problems[file.path] += other_problems(file, program.model_fn)
            raise
        self.changes[file.path].statements[program.model_fn] = [emitted.node]
        self.problems[file.path] += emitted.problems
        self.remarks[file.path] += emitted.remarks
        self.changes[file.path].needs |= emitted.needs
        of_dicts = isinstance(function.predictions, cst.Dict) or (
            isinstance(function.predictions, cst.Name)
            and isinstance(function.define(function.predictions.value), cst.Dict | cst.Call)
        )
        models[program.model_fn] = emitted, of_dicts

    def _inputs(self, path: Path, file: ParsedFile, function: cst.FunctionDef) -> None:
        rewriter = self.rewriters[path]
        for node, new in rewrite_returns(function, file.imports).items():
            if new is None:
                self.changes[path].statements[node] = []
            else:
                replaced = new.visit(rewriter)
                assert isinstance(replaced, cst.BaseExpression)
                self.changes[path].expressions[node] = replaced

    def _driver(self, program: TrainingProgram, models: dict[cst.FunctionDef, tuple[EmittedModel, bool]]) -> None:
        emitted, of_dicts = models[program.model_fn]
        file = program.file
        strategy = choose_strategy(program, self.asked)
        partitioner = self._partitioner(program, emitted)
        if partitioner is not None and not strategy.parameter_servers:
            node, _ = emitted.partitioners[0]
            self.remarks[program.model_file.path].append(
                Blocked(
                    "TFM703", node, "the partitioner is left out: without parameter servers variables are not split"
                )
            )
        driver = emit_driver(
            self.project, program, self.rewriters[file.path], strategy, partitioner, emitted.has_predictor, of_dicts
        )
        changes = self.changes[file.path]
        changes.statements.update(driver.statements)
        changes.expressions.update(driver.expressions)
        for helper in driver.helpers:
            if helper not in changes.helpers:
                changes.helpers.append(helper)
        if changes.helpers_before is None:
            changes.helpers_before = _top_level(file.module, program.place.call)
        changes.needs |= driver.needs
        for changes_of_file in self.changes.values():
            changes_of_file.legacy_keras = True  # whichever module is imported first must choose
            changes_of_file.on_cluster |= strategy.cluster
        self.remarks[file.path] += driver.remarks
        if strategy.parameter_servers and emitted is not None:
            self.remarks[file.path].append(
                Blocked(
                    "TFM706",
                    program.place.call,
                    "on parameter servers the chief only coordinates: one worker more keeps the throughput",
                )
            )
        self.strategies.append(strategy)

    def _partitioner(self, program: TrainingProgram, emitted: EmittedModel) -> str | None:
        found = sorted(emitted.partitioners, key=lambda given: program.model_file.position(given[0]))
        if len({text for _, text in found}) > 1:
            node, _ = found[-1]
            problem = Blocked("TFM702", node, "a second, different partitioner: ParameterServerStrategy takes one")
            self.problems[program.model_file.path].append(problem)
        return found[0][1] if found else None

    def _finish(self, file: ParsedFile) -> str:
        module = file.module.visit(self.rewriters[file.path])
        assert isinstance(module, cst.Module)
        changes = self.changes[file.path]
        changes.needs |= self.rewriters[file.path].needs
        return finish_imports(module, changes).code

    def _findings(self, refused: bool) -> dict[Path, list[Finding]]:
        found: dict[Path, list[Finding]] = {}
        for path, file in self.group.files.items():
            lines = found.setdefault(path, [])
            for problem in self.problems[path]:
                lines.append(file.finding(problem.code, Severity.MANUAL, problem.node, problem.message))
            if not refused:
                for remark in self.remarks[path]:
                    lines.append(file.finding(remark.code, Severity.REVIEW, remark.node, remark.message))
        if not refused:
            for program in self.group.programs:
                message = f"`{program.model_fn.name.value}` and its Estimator are now a Keras program"
                found[program.file.path].append(
                    program.file.finding("TFM101", Severity.MIGRATED, program.place.call, message)
                )
        return {path: list(dict.fromkeys(lines)) for path, lines in found.items() if lines}


class _Functions(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[cst.FunctionDef] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.found.append(node)


def _all_functions(module: cst.Module) -> list[cst.FunctionDef]:
    collector = _Functions()
    module.visit(collector)
    return collector.found


class _Contains(cst.CSTVisitor):
    def __init__(self, node: cst.CSTNode) -> None:
        super().__init__()
        self.node = node
        self.found = False

    def on_visit(self, node: cst.CSTNode) -> bool:
        self.found = self.found or node is self.node
        return not self.found


def _top_level(module: cst.Module, node: cst.CSTNode) -> cst.CSTNode | None:
    """Where helper functions go: before the top-level code that holds a node, after the functions above it."""
    for index, statement in enumerate(module.body):  # noqa: B007
        finder = _Contains(node)
        statement.visit(finder)
        if finder.found:
            break
    else:
        return None
    first = index
    while first > 0 and isinstance(module.body[first - 1], cst.SimpleStatementLine):
        first -= 1
    behind_function = first > 0 and isinstance(module.body[first - 1], cst.FunctionDef | cst.ClassDef)
    return module.body[first] if behind_function else module.body[index]
