"""The stages of the codemod in order: parse, read programs, plan, emit, and all or nothing per program."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

import libcst as cst

from migrator.apart import Apart, Migrate
from migrator.emit.beside import respelled
from migrator.emit.driver import FileNames, emit_driver, is_late, may_be_late, only_predicts, uses_of
from migrator.emit.file import FileChanges, FileRewriter, finish_imports, insert_classes
from migrator.emit.helper import emit_helper
from migrator.emit.layout import statements
from migrator.emit.mapped import MappedRewriter, Style, both_blocked, emit_mapped
from migrator.emit.model_function import EmittedModel, emit_model_function, other_problems, ready_model
from migrator.emit.trainer import emit_trainer
from migrator.findings import Finding, Severity
from migrator.names.imports import dotted
from migrator.program import by_hand
from migrator.program.beside import unused
from migrator.program.calls import functions_in, string
from migrator.program.canned import remarks_of, write_out
from migrator.program.classes import find_class
from migrator.program.exports import Signatures, read_serving, serving_maker, signature_names
from migrator.program.flow import InFile
from migrator.program.handed import ESTIMATORS as HANDED_ESTIMATORS
from migrator.program.handed import estimator_subclasses, read_handed_programs
from migrator.program.helpers import HelperPlan, Scope, Stays
from migrator.program.inlining import Inlined, inline_helpers, inline_training
from migrator.program.layer_names import check_layer_names
from migrator.program.local_names import with_symbols_in_place
from migrator.program.mapped import MappedFunction, only_names, read_mapped_function
from migrator.program.model_function import read_model_function
from migrator.program.modes import EVAL, PREDICT, TRAIN, not_run_in
from migrator.program.own_training import counted_in_any_order
from migrator.program.parsed import Blocked, ParsedFile, Project, name_nodes, names_in
from migrator.program.region import Region, reach
from migrator.program.relevant import around_programs, importing, imports_of, is_concerned
from migrator.program.shared import SERVING, runs_in_both
from migrator.program.tpu import on_tpu, without_tpu
from migrator.program.tpu_branches import without_tpu_branches
from migrator.program.training import (
    Place,
    TrainingProgram,
    attributes_called,
    bindings,
    find_places,
    is_estimator,
    mentions_of,
    path_to,
    read_programs,
)
from migrator.program.variable_order import check_order
from migrator.rules import flags, hparams, keras3, partitioners
from migrator.rules.arrays import array_inputs, as_function
from migrator.rules.callbacks import as_callback
from migrator.rules.early_stopping import STOP_AT_STEP
from migrator.rules.generation import GENERATIONS, KERAS_2, Keras
from migrator.rules.hooks import Hooks, SpecHooks
from migrator.rules.initializers import shared_initializers
from migrator.rules.inputs import InputChanges, rewrite_returns
from migrator.rules.iterators import Unpacked, initializable, without_element
from migrator.rules.layers import runs_updates
from migrator.rules.mlperf import without_deferred_logs
from migrator.rules.optimizers import may_be_sparse
from migrator.rules.site import TrainingContext
from migrator.rules.summary_writers import written_summaries
from migrator.rules.wrapped import check_not_wrapped
from migrator.targets.choosing import choose, for_fit, for_own_loop
from migrator.targets.registry import AUTO, LOOPS, ONE_DEVICE, TARGETS, TPU
from migrator.targets.target import Loop, Target

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


def migrate_project(
    texts: Mapping[Path, str], strategy: str, style: str = "auto", keras: str = "2", loop: str = "fit"
) -> tuple[dict[Path, str], dict[Path, list[Finding]]]:
    """Returns the new texts of the files that change, and all findings by file."""
    findings: dict[Path, list[Finding]] = {}
    files = []
    on_tpus: dict[Path, list[Blocked]] = {}
    for path in around_programs(texts):
        try:
            file, on_tpus[path] = without_tpu_branches(ParsedFile.parse(path, texts[path]))
            file, logs = without_deferred_logs(file)
            on_tpus[path] += logs
            files.append(file)
        except cst.ParserSyntaxError as error:
            message = f"cannot be parsed; is it Python 2? convert it first: 2to3 -w -n {path}"
            finding = Finding(str(path), error.raw_line, error.raw_column + 1, "TFM902", Severity.ERROR, message)
            findings.setdefault(path, []).append(finding)
    files, refused = by_hand.write_out(write_out(files))
    files = [with_symbols_in_place(file) for file in files]
    for finding in refused:
        findings.setdefault(Path(finding.path), []).append(finding)
    project = Project.of(files)
    places = {file.path: _places(file) for file in files if "stimator" in file.text or file.spread}
    new_texts: dict[Path, str] = {}
    wants_tpus = strategy in ("auto", "tpu")
    everything = Everything(project, texts, on_tpus, wants_tpus, GENERATIONS[keras])
    programs, blocked = _read_programs(project, everything, places, findings)
    references = _references_to_models(project, everything, programs, places)
    served = [node for program in programs for _, _, node in program.servings]
    everything.serving |= {node.func for node in served if isinstance(node, cst.Call)}
    for group in _groups(project, programs):
        texts_of_group, group_findings = _migrate_group(
            project,
            group,
            TARGETS[strategy],
            Style(style),
            blocked,
            references,
            everything,
            GENERATIONS[keras],
            LOOPS[loop],
        )
        new_texts.update(texts_of_group)
        for finding_path, found in group_findings.items():
            findings.setdefault(finding_path, []).extend(found)
    return new_texts, findings


def _places(file: ParsedFile) -> list[Place]:
    """The calls of TensorFlow's in a file that may belong to a program, also those of classes derived from it."""
    derived = [Place(name, call, None, _function_around(file, call)) for _, name, call in _derived(file)]
    return [*find_places(file), *derived]


def _derived(file: ParsedFile) -> list[tuple[cst.ClassDef, str, cst.Call]]:
    return [(node, name, call) for node, name, call in estimator_subclasses(file) if call is not None]


def _function_around(file: ParsedFile, node: cst.CSTNode) -> cst.FunctionDef | None:
    return next((n for n in reversed(path_to(file.module, node)) if isinstance(n, cst.FunctionDef)), None)


def _read_programs(
    project: Project,
    everything: Everything,
    places: Mapping[Path, list[Place]],
    findings: dict[Path, list[Finding]],
) -> tuple[list[TrainingProgram], dict[Path, Path]]:
    """The programs that can be read; the files of those that cannot, each with the file that holds the Estimator."""
    programs: list[TrainingProgram] = []
    blocked: dict[Path, Path] = {}

    def block(file: ParsedFile, problem: Blocked, place: cst.CSTNode) -> None:
        for shared in _reach(project, [file]):
            if shared is file:
                blocked[shared.path] = file.path
            blocked.setdefault(shared.path, file.path)
        where = problem.file if isinstance(problem, InFile) else file
        where = next((f for f in (where, *project.files) if problem.node in f.parents), where)
        finding = where.finding(problem.code, Severity.MANUAL, problem.node or place, problem.message)
        findings.setdefault(where.path, []).append(finding)
        if where is not file:
            message = f"this Estimator's program is blocked at {finding.path}:{finding.line}: {problem.message}"
            findings.setdefault(file.path, []).append(file.finding(problem.code, Severity.MANUAL, place, message))
        if problem.code != "TFM160":
            distributed = _horovod(_reach(project, [file]), findings)
            if distributed is not None:
                findings.setdefault(Path(distributed.path), []).append(distributed)

    for file in project.files:
        for place in places.get(file.path, []):
            try:
                if is_estimator(place.name):
                    check_not_wrapped(file, place.function, place.call)
                    programs += _read_place(project, everything, file, place, places)
                elif _is_foreign(place.name):
                    raise Blocked(
                        "TFM102", place.call, f"`{place.name}` is not carried over yet; TensorFlow 2.16 deleted it"
                    )
            except Blocked as problem:
                block(file, problem, place.call)
        for node, name, call in estimator_subclasses(file):
            if call is None:
                message = f"`{node.name.value}` is derived from `{name}`, but does not call `super().__init__` once"
                block(file, Blocked("TFM181", node.name, message), node)
    return programs, blocked


def _horovod(files: Iterable[ParsedFile], findings: Mapping[Path, list[Finding]]) -> Finding | None:
    """What a program that Horovod distributes has to be told, whatever else stands in its way."""
    for file in files:
        for name, origin in file.imports.names.items():
            if origin.startswith("horovod.") and not any(f.code == "TFM160" for f in findings.get(file.path, ())):
                node = file.imports.nodes.get(name)
                message = "Horovod distributes this program, which is not carried over: take it out first, see TFM160"
                return file.finding("TFM160", Severity.MANUAL, node, message)
    return None


def _read_place(
    project: Project, everything: Everything, file: ParsedFile, place: Place, places: Mapping[Path, list[Place]]
) -> list[TrainingProgram]:
    """The programs of one Estimator, driven where it is made, or else wherever it is handed to."""
    try:
        read = read_programs(project, everything.mentioning, file, place, places[file.path])
        return [on_tpu(program, everything.wants_tpus, everything.keras, project.files) for program in read]
    except Blocked as problem:
        if problem.code not in _HANDED or place.name not in HANDED_ESTIMATORS:
            raise
        try:
            return read_handed_programs(project, everything.mentioning, file, place, places)
        except Blocked as other:
            raise (problem if other.code == "TFM103" != problem.code else other) from None


_HANDED = ("TFM103", "TFM108", "TFM109", "TFM146")


def _is_foreign(name: str) -> bool:
    last = name.rpartition(".")[2]
    return name not in _PART_OF_PROGRAMS and (
        last.endswith(("Estimator", "Classifier", "Regressor", "_to_estimator", "Experiment"))
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
    where = [] if program.handed is None else [one.use.file for one in program.handed.uses]
    where += [] if program.handed is None else [file for file, _, _ in program.handed.arguments]
    return _reach(project, [program.file, program.model_file, *where])


def _reach(project: Project, files: Iterable[ParsedFile]) -> list[ParsedFile]:
    """Files and the modules beside them that they import, directly or not, and that use TensorFlow."""
    found: list[ParsedFile] = []
    queue = list(files)
    while queue:
        file = queue.pop()
        if any(file is other for other in found):
            continue
        found.append(file)
        for origin in file.imports.names.values():
            parts = origin.split(".")
            for length in range(len(parts), 0, -1):
                other = project.sibling(file, ".".join(parts[:length]))
                if other is not None and is_concerned(other.text):
                    queue.append(other)
                    break
    return found


class Everything:
    """All files that were given, those that have nothing to do with a program parsed only when they are asked for.

    `remarks` are about what was left out of the files when they were read. `wants_tpus` says that programs which ask
    for a TPU are to get one.
    """

    def __init__(
        self,
        project: Project,
        texts: Mapping[Path, str],
        remarks: Mapping[Path, list[Blocked]] | None = None,
        wants_tpus: bool = True,
        keras: Keras = KERAS_2,
    ) -> None:
        self.wants_tpus = wants_tpus
        self.keras = keras
        self.project = project
        self.texts = texts
        self.remarks = remarks or {}
        self.serving: set[cst.CSTNode] = set()  # what is called for the serving functions of all programs
        self._parsed: dict[Path, ParsedFile | None] = {file.path: file for file in project.files}

    @cached_property
    def imported(self) -> dict[Path, set[Path]]:
        """What the imports of every file may mean, see `imports_of`."""
        return imports_of(self.texts)

    def mentioning(self, names: Collection[str]) -> list[ParsedFile]:
        """The files of the project, and the others, whose text holds one of some names."""
        found = []
        for path, text in self.texts.items():
            if not any(name in text for name in names):
                continue
            if path not in self._parsed:
                try:
                    self._parsed[path] = ParsedFile.parse(path, text)
                except cst.ParserSyntaxError:
                    self._parsed[path] = None
            file = self._parsed[path]
            if file is not None:
                found.append(file)
        return found


References = list[tuple[cst.FunctionDef, ParsedFile, cst.CSTNode]]


def _references_to_models(
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
        file.module.visit(finder)
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
            part.visit(self)
        self._local.pop()
        return False

    def visit_Import(self, node: cst.Import) -> bool:
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False

    def visit_Param(self, node: cst.Param) -> bool:
        if node.default is not None:
            node.default.visit(self)
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        node.value.visit(self)
        return False

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        if not self._look_up(node):
            node.value.visit(self)
        return False

    def visit_Name(self, node: cst.Name) -> None:
        imported = node.value in self.file.imports.names
        if imported or not any(node.value in names for names in self._local):
            self._look_up(node)


def _migrate_group(
    project: Project,
    group: _Group,
    asked: Target,
    style: Style,
    blocked_files: Mapping[Path, Path],
    references: References,
    everything: Everything,
    keras: Keras,
    loop: Loop,
) -> tuple[dict[Path, str], dict[Path, list[Finding]]]:
    """New texts of a group's files, or none of them and what stood in the way.

    Programs whose flag asks for a TPU come out as they run without one, where they cannot be carried over to a TPU.
    """
    if style is Style.MAPPED and not keras.runs_tensorflow1:
        message = "the mapped style runs TensorFlow 1 code in a model, which only Keras 2 can: leave `--keras 3` out"
        refused: dict[Path, list[Finding]] = {}
        for program in group.programs:
            finding = program.file.finding("TFM870", Severity.MANUAL, program.place.call, message)
            refused.setdefault(program.file.path, []).append(finding)
        return {}, refused
    options = (asked, style, blocked_files, references, everything, keras, loop)
    texts, native, findings = _in_styles(project, group, *options)
    by_flag = [program for program in group.programs if program.tpu is not None and program.tpu.flag is not None]
    if not texts and by_flag and asked is AUTO:
        before = native, findings
        texts, native, findings = _in_styles(project, _Group(_by_flag(group.programs, _WHY), group.files), *options)
        # What stood in the way on a TPU is what did in the style that now carries the program over.
        ways = before[0] if findings is native else before[1]
        first = next(f for found in ways.values() for f in found if f.severity is Severity.MANUAL)
        why = f"on a TPU something is in the way at {first.path}:{first.line} ({first.code}: {first.message})"
        findings = {
            path: [replace(f, message=f.message.replace(_WHY, why)) for f in found] for path, found in findings.items()
        }
    if texts or style is Style.NATIVE or not keras.runs_tensorflow1:
        return texts, findings

    def of(programs: Sequence[TrainingProgram]) -> _Group:
        return _Group(list(programs), {f.path: f for p in programs for f in _files_of(project, p)})

    exported: dict[Path, Collection[str]] = {}

    def natively(programs: Sequence[TrainingProgram]) -> tuple[dict[Path, str], dict[Path, list[Finding]]]:
        migration = _GroupMigration(project, of(programs), asked, {}, references, everything, keras, loop)
        done = migration.run()
        exported.update(migration.only_exported)
        return done

    def mapped(programs: Sequence[TrainingProgram]) -> tuple[dict[Path, str], dict[Path, list[Finding]]]:
        migration = _MappedMigration(project, of(programs), asked, {}, references, everything, keras, loop, ())
        done = migration.run()
        exported.update(migration.only_exported)
        return done

    def without(form: Migrate) -> Migrate:
        return lambda programs: form(_by_flag(programs, _WHY))

    forms: tuple[Migrate, ...] = (mapped,) if style is Style.MAPPED else (natively, mapped)
    if by_flag and asked is AUTO:
        forms += tuple(without(form) for form in forms)
    shared = {path: home for path, home in blocked_files.items() if path in group.files}
    found = Apart(group.programs, forms, partial(_files_of, project), shared, native, exported).migrate()
    if found is not None:
        return found
    if style is Style.MAPPED:
        return texts, findings
    return {}, both_blocked(native, findings)


_WHY = "on a TPU something is in the way"


def _by_flag(programs: Sequence[TrainingProgram], why: str) -> list[TrainingProgram]:
    """The programs, those whose flag asks for a TPU as they run without one."""
    return [p if p.tpu is None or p.tpu.flag is None else without_tpu(p, why) for p in programs]


def _in_styles(
    project: Project,
    group: _Group,
    asked: Target,
    style: Style,
    blocked_files: Mapping[Path, Path],
    references: References,
    everything: Everything,
    keras: Keras,
    loop: Loop,
) -> tuple[dict[Path, str], dict[Path, list[Finding]], dict[Path, list[Finding]]]:
    """New texts of a group's files in the first style that carries them over; the findings of the native one, and all
    of the last.
    """
    native: dict[Path, list[Finding]] = {}
    if style is not Style.MAPPED:
        texts, native = _GroupMigration(project, group, asked, blocked_files, references, everything, keras, loop).run()
        if texts or style is Style.NATIVE or not keras.runs_tensorflow1:
            return texts, native, native
    reasons = [finding for findings in native.values() for finding in findings]
    run = _MappedMigration(project, group, asked, blocked_files, references, everything, keras, loop, reasons).run
    texts, findings = run()
    return texts, native, findings


class _Rewriter(FileRewriter):
    """A FileRewriter that also puts statements before others."""

    def prepare(self, module: cst.Module, changes: FileChanges) -> _Rewriter:
        super().prepare(module, changes)
        self.before: dict[cst.CSTNode, list[cst.BaseStatement]] = {}
        self.network: Collection[cst.CSTNode] = ()  # functions that build networks
        return self

    def is_gone(self, node: cst.CSTNode) -> bool:
        """Whether nothing will stand in a statement's place."""
        return self.changes.statements.get(node) == [] or node in self.changes.moved or self._is_removed(node)

    def on_leave(self, original_node, updated_node):  # type: ignore[no-untyped-def]
        new = super().on_leave(original_node, updated_node)  # type: ignore[no-untyped-call]
        if original_node in self.network and isinstance(new, cst.FunctionDef):
            if original_node not in self.changes.statements:
                new = self.of_network(new, original_node.name)
        if original_node not in self.before:
            return new
        first, *rest = self.before[original_node]
        after = list(new) if isinstance(new, cst.FlattenSentinel) else [new]
        above: list[cst.EmptyLine] = []
        if isinstance(after[0], cst.SimpleStatementLine | cst.BaseCompoundStatement):
            lines = list(after[0].leading_lines)
            while lines and lines[0].comment is None:
                above.append(lines.pop(0))
            after[0] = after[0].with_changes(leading_lines=lines)
        assert isinstance(first, cst.SimpleStatementLine | cst.BaseCompoundStatement)
        first = first.with_changes(leading_lines=[*above, *first.leading_lines])
        return cst.FlattenSentinel([first, *rest, *after])


class _MappedRewriter(_Rewriter, MappedRewriter):
    """A _Rewriter for files with model_fns that stay TensorFlow 1 code."""


class _GroupMigration:
    """The migration of a group in the native form."""

    mapped = False
    rewriter_class: type[_Rewriter] = _Rewriter

    def __init__(
        self,
        project: Project,
        group: _Group,
        asked: Target,
        blocked_files: Mapping[Path, Path],
        references: References,
        everything: Everything,
        keras: Keras,
        loop: Loop,
    ) -> None:
        self.project = project
        self.loop = loop
        self.keras = keras
        self.group = group
        self.asked = asked
        self.blocked_files = blocked_files
        self.references = references
        self.everything = everything
        self.outside: dict[Path, ParsedFile] = {}
        self.names = {path: FileNames(set(file.names)) for path, file in group.files.items()}
        self.regularized: dict[cst.FunctionDef, bool] = {}
        self.read: dict[cst.FunctionDef, Inlined] = {}
        self.makers: list[tuple[ParsedFile, cst.FunctionDef]] = []  # of hooks that model_fns leave out
        self.dead: list[cst.CSTNode] = []  # statements of model_fns that stay, but for these
        self.plan = HelperPlan()
        self.partitioners: list[tuple[ParsedFile, cst.CSTNode, cst.BaseExpression]] = []
        self.changes = {path: FileChanges() for path in group.files}
        self.rewriters = {
            path: self.rewriter_class(file.imports, file.code, definition=file.constants.get).prepare(
                file.module, self.changes[path]
            )
            for path, file in group.files.items()
        }
        self.problems: dict[Path, list[Blocked]] = {path: [] for path in group.files}
        self.remarks: dict[Path, list[Blocked]] = {path: [*everything.remarks.get(path, [])] for path in group.files}
        self.setters: set[cst.CSTNode] = set()  # lines that give a hook which is left out an iterator to initialize
        self.for_both: set[cst.FunctionDef] = set()  # input functions that TensorFlow 1 code uses, too
        self.gone_hooks: list[cst.CSTNode] = []  # the lines that made hooks which only initialized iterators
        self.used_in_both: dict[Path, cst.FunctionDef | cst.ClassDef] = {}  # that code uses which stays TensorFlow 1
        self.serving_files: dict[Path, Collection[str]] = {}  # symbols of functions that nothing but exports run
        self.only_exported: dict[Path, Collection[str]] = {}  # those, where these are exports of this group
        self.strategies: list[Target] = []
        self.drivers: list[TrainingProgram] = []
        self.driven: dict[cst.Call, tuple[bool, bool, bool, Signatures | None]] = {}
        self.signatures: dict[cst.FunctionDef, Signatures] = {}
        sparse = any(may_be_sparse(file.text) for file in group.files.values())
        self.training = {
            path: TrainingContext(
                sparse=sparse,
                taken=set(file.names),
                keras=keras,
                exports=any(program.servings for program in group.programs),
            )
            for path, file in group.files.items()
        }
        for path, rewriter in self.rewriters.items():
            rewriter.training = self.training[path]
        for program in group.programs:
            # Also where the driver is not written, because the model is blocked: these lines are in nobody's way.
            gone = [*program.removed, *program.session.lines]
            self.changes[program.file.path].statements.update({line: [] for line in gone})
            for where, line in program.handed.statements if program.handed is not None else ():
                self.changes[where.path].statements[line] = []

    def run(self) -> tuple[dict[Path, str], dict[Path, list[Finding]]]:
        models: dict[cst.FunctionDef, tuple[EmittedModel, bool]] = {}
        beside = self._beside()
        self._iterators()
        self._models(models)
        for path, file in self.group.files.items():
            left_alone = {inner for node in beside for inner in functions_in(node)}
            for function in functions_in(file.module):
                if function not in left_alone:
                    self._guarded(file, partial(self._inputs, path, file, function))
        for program in self.group.programs:
            for node, (file, new) in program.model.lambdas.items():
                rewritten = new.visit(self.rewriters[file.path])
                assert isinstance(rewritten, cst.BaseExpression)
                self.changes[file.path].expressions[node] = rewritten
        for path, file in self.group.files.items():
            self._guarded(file, partial(self._arrays, path, file))
        self._hooks()
        for program in self.group.programs:
            self._guarded(program.file, partial(self._servings, program, models))
        for file, problem in hparams.check_uses(list(self.group.files.values())):
            self.problems[file.path].append(problem)
        self._regularizers()
        self._references()
        self._remove_helpers()
        for stays in self.plan.helpers.values():
            self._guarded(stays.file, partial(self._helper, stays))
        for path, file in self.group.files.items():
            self._find_partitioners(path, file)
        for program in self.group.programs:
            if program.model_fn in models:
                self._guarded(program.file, partial(self._driver, program, models))
        for path, file in self.group.files.items():
            self._summaries(path, file)
            self._initializers(path, file)
        self._place_helpers()
        for rewriter in self.rewriters.values():
            rewriter.network = self.plan.visited.keys()
        for path, file in self.group.files.items():
            self._flags(path, file)
        texts = {path: self._finish(file) for path, file in self.group.files.items()}
        for path, unit in self.used_in_both.items():
            if not runs_in_both(self.group.files[path].text, texts[path], self.serving_files.get(path, ())):
                message = f"`{unit.name.value}` is used by code that stays TensorFlow 1: move it to a file of its own"
                self.problems[path].append(Blocked("TFM114", unit.name, message))
        self._dropped_regularizers()
        foreign = self._blocked_elsewhere()
        known = any(self.problems.values()) or foreign
        for path, rewriter in self.rewriters.items():
            # What is left of the Estimator when something else stands in the way is no problem of its own.
            self.problems[path] += [p for p in rewriter.problems if not (known and "`tf.estimator." in p.message)]
        refused = any(self.problems.values()) or foreign
        return ({} if refused else texts), self._findings(refused)

    def _beside(self) -> list[cst.FunctionDef | cst.ClassDef]:
        """Functions and classes that the programs do not run stay what they are where they would be in the way."""
        roots = [p.model_fn for p in self.group.programs]
        roots += [p.place.function for p in self.group.programs if p.place.function is not None]
        files = self.group.files
        never = self._never_run()
        blocking = {
            unit
            for path, units in unused(files.values(), [], roots, never).items()
            for unit in units
            if self._is_in_the_way(files[path], unit)
        }
        if not blocking:
            return []
        mentioning = self.everything.mentioning({unit.name.value for unit in blocking})
        # A file that does not import one of these, through whatever files, means another thing by the name.
        users = importing(self.everything.imported, files)
        others = [file for file in mentioning if file.path not in files and file.path in users]
        found = []
        for path, units in unused(files.values(), others, roots, never).items():
            for unit in units:
                if unit in blocking:
                    new, remarks = respelled(unit, files[path].imports)
                    self.changes[path].statements[unit] = [new]
                    self.remarks[path] += remarks
                    found.append(unit)
        return [*found, *self._of_others(blocking - set(found), others)]

    def _of_others(
        self, units: Collection[cst.FunctionDef | cst.ClassDef], others: Sequence[ParsedFile]
    ) -> list[cst.FunctionDef | cst.ClassDef]:
        """Functions and classes that only files beside the programs use stay TensorFlow 1 code that runs in both."""
        if not self.mapped:
            return []  # what is written natively is no TensorFlow 1 code
        imported = self.everything.imported
        reached, queue = {path.with_suffix("") for path in self.group.files}, list(self.group.files)
        while queue:
            more = imported.get(queue.pop(), set()) - reached
            reached |= more
            queue += [path for path in imported if path.with_suffix("") in more]
        users = [other for other in others if other.path.with_suffix("") not in reached]
        if len(users) < len(others):
            return []
        found = []
        for path, file in self.group.files.items():
            for unit in file.module.body:
                if isinstance(unit, cst.FunctionDef | cst.ClassDef) and unit in units:
                    new = respelled(unit, file.imports, used=True)
                    if len(new[1]) == 1 and runs_in_both(file.code(unit), file.code(new[0])):
                        self.changes[path].statements[unit] = [new[0]]
                        self.remarks[path] += new[1]
                        self.used_in_both[path] = unit
                        found.append(unit)
        return found

    def _never_run(self) -> frozenset[cst.CSTNode]:
        """Statements of model_fns that the programs never come to."""
        return frozenset()

    def _is_in_the_way(self, file: ParsedFile, unit: cst.FunctionDef | cst.ClassDef) -> bool:
        """Whether something in a function or class cannot be carried over."""
        probe = FileRewriter(file.imports, file.code, definition=file.constants.get)
        probe.prepare(file.module, FileChanges())
        known = len(probe.problems)
        unit.visit(probe)
        return len(probe.problems) > known

    def _models(self, models: dict[cst.FunctionDef, tuple[EmittedModel, bool]]) -> None:
        for program in self.group.programs:
            self._guarded(program.model_file, partial(self._model, program, models))

    def _blocked_elsewhere(self) -> bool:
        """Whether a program that cannot be read shares a file with this group; says so when it is not in the group."""
        shared = sorted(self.blocked_files.keys() & self.group.files.keys())
        for path in shared:
            other = self.blocked_files[path]
            if other not in self.group.files:
                for program in self.group.programs:
                    message = f"`{path}` also belongs to the program in `{other}`, which is blocked: all or none change"
                    self.problems[program.file.path].append(Blocked("TFM114", program.place.call, message))
        return bool(shared)

    def _regularizers(self) -> None:
        """Regularizers outside the model_fns count or not as the model_fns say."""
        keep = bool(self.regularized) and all(self.regularized.values())
        nodes = [
            (self.read[p.model_fn].node if p.model_fn in self.read else p.model_fn, p) for p in self.group.programs
        ]
        updates = {runs_updates(node, p.model_file.imports) for node, p in nodes}
        for rewriter in self.rewriters.values():
            rewriter.keep_regularizers = keep or not self.regularized
            rewriter.updates = next(iter(updates)) if len(updates) == 1 else None

    def _dropped_regularizers(self) -> None:
        agree = len(set(self.regularized.values())) < 2
        for path, rewriter in self.rewriters.items():
            for node in rewriter.dropped_regularizers:
                if agree:
                    message = "the regularizer is left out: the loss of the model_fn never had its term"
                    self.remarks[path].append(Blocked("TFM206", node, message))
                else:
                    message = "one model_fn adds the terms of regularizers to its loss, another does not"
                    self.problems[path].append(Blocked("TFM206", node, message))

    def _references(self) -> None:
        models = {program.model_fn for program in self.group.programs}
        models |= {function for program in self.group.programs for _, function in program.model.builders}
        for model, file, node in self.references:
            if model in models:
                message = f"`{model.name.value}` gets another signature, but is used here outside an Estimator"
                self.problems.setdefault(file.path, []).append(Blocked("TFM113", node, message))
                if file.path not in self.group.files:
                    self.outside[file.path] = file

    def _helper(self, stays: Stays) -> None:
        """A helper that stays, without the parameters that told it the mode."""
        path, name = stays.file.path, stays.node.name.value
        if path not in self.changes:
            raise Blocked("TFM122", stays.node.name, f"`{name}` is told the mode, but its file is not migrated")
        for file, node in mentions_of_functions(self.project, self.everything, {stays.node}):
            if not self._is_planned(file, node):
                message = f"`{name}` loses the parameter that told it the mode, but is used here too"
                self.problems.setdefault(file.path, []).append(Blocked("TFM122", node, message))
                if file.path not in self.group.files:
                    self.outside[file.path] = file
        mine = self.rewriters[path]
        emitted = emit_helper(stays, self.plan, mine, stays.file.constants.get)
        self.changes[path].statements[stays.node] = [emitted.node]
        self.problems[path] += emitted.rewriter.problems
        self.remarks[path] += emitted.rewriter.remarks
        self.partitioners += [(stays.file, node, text) for node, text in emitted.rewriter.partitioners]
        mine.dropped_regularizers += emitted.rewriter.dropped_regularizers
        mine.classes.update(emitted.rewriter.classes)
        mine.needs |= emitted.rewriter.needs

    def _is_planned(self, file: ParsedFile, node: cst.CSTNode) -> bool:
        """Whether a mention of a helper that stays is in a call of which it is known what goes."""
        functions = {call.func for call in self.plan.calls if isinstance(call, cst.Call)}
        if node in functions or self._is_read(node):
            return True
        homes = {where.home(function)[1] for where in self.group.files.values() for function in functions}
        gone = [program.model_fn for program in self.group.programs]
        gone += (
            [f for f in self.changes[file.path].moved if isinstance(f, cst.FunctionDef)]
            if (file.path in self.changes)
            else []
        )
        return node in homes and any(path_to(function, node) for function in gone)

    def _is_read(self, node: cst.CSTNode) -> bool:
        """Whether a mention of a helper is in a call that is gone."""
        return any(node in read.mentions for read in self.read.values())

    def _remove_helpers(self) -> None:
        """Helpers that were read through, and that nothing else mentions, go, and with them their imports."""
        helpers = {helper: file for read in self.read.values() for file, helper in read.helpers}
        helpers |= {maker: file for _, hooks in self._all_hooks() for file, maker in hooks.makers}
        helpers |= {maker: file for file, maker in self.makers}
        makers = set(helpers) & {maker for _, hooks in self._all_hooks() for _, maker in hooks.makers}
        tables = [
            line
            for _, hooks in self._all_hooks()
            for file, name in hooks.tables
            for line in file.module.body
            if isinstance(line, cst.SimpleStatementLine) and _gives(line, name)
            if all(self._is_within(node, [*makers, line]) for node in self._named(name))
        ]
        left_out = [*tables, *(node for _, hooks in self._all_hooks() for node in hooks.nodes)]
        left_out += [line for program in self.group.programs for line in program.removed]
        left_out += self.dead
        while True:
            mentions = [
                (file, node, helper)
                for helper in helpers
                for file, node in mentions_of_functions(self.project, self.everything, {helper})
            ]
            inside = {node for _, node, _ in mentions for other in (*helpers, *left_out) if path_to(other, node)}
            used = {helper for _, node, helper in mentions if node not in inside and not self._is_read(node)}
            if not used:
                break
            helpers = {helper: file for helper, file in helpers.items() if helper not in used}
        for helper, file in helpers.items():
            if file.path not in self.changes:
                continue
            if all(path in self.changes or not imports for path, imports in self._importers(helper)):
                self.changes[file.path].moved.add(helper)
        for line in tables:
            for path, file in self.group.files.items():
                if makers <= helpers.keys() and line in file.module.body:
                    self.changes[path].statements[line] = []
        for path, file in self.group.files.items():
            gone = {
                name
                for helper in helpers
                if helper in self.changes[helpers[helper].path].moved
                for importer, names in self._importers(helper)
                if importer == path
                for name in names
            }
            self.changes[path].statements.update(without_imports(file, gone))
        self._remove_hook_classes([*left_out, *self.gone_hooks])

    def _remove_hook_classes(self, left_out: Sequence[cst.CSTNode]) -> None:
        """Classes of hooks that are left out go where nothing that stays mentions them, and with them their imports."""
        classes = {node: file for _, hooks in self._all_hooks() for file, node in hooks.classes}
        moved = [node for changes in self.changes.values() for node in changes.moved]
        for node, home in classes.items():
            name = node.name.value
            mentions: list[tuple[Path, cst.CSTNode]] = []
            for path, file in self.group.files.items():
                finder = _NamedSo(name)
                file.module.visit(finder)
                found = ((n, find_class(self.project, file, file.module, n)) for n in finder.found)
                mentions += [(path, n) for n, known in found if known is not None and known[1] is node]
            if home.path not in self.changes:
                continue
            if all(self._is_within(n, [node, *moved, *left_out]) for _, n in mentions):
                self.changes[home.path].moved.add(node)
                for path in {path for path, _ in mentions} - {home.path}:
                    file = self.group.files[path]
                    self.changes[path].statements.update(without_imports(file, {name}))

    def _importers(self, helper: cst.FunctionDef) -> list[tuple[Path, list[str]]]:
        """The files that import a function, and under which names."""
        found = []
        for file in self.everything.mentioning([helper.name.value]):
            names = [
                name
                for name in file.imports.names
                if name not in file.functions
                and not name.startswith("*")
                and (known := self.project.function(file, cst.Name(name))) is not None
                and known[1] is helper
            ]
            found.append((file.path, names))
        return found

    def _find_partitioners(self, path: Path, file: ParsedFile) -> None:
        """Partitioners of variable scopes outside the model_fns."""
        probe = FileRewriter(file.imports, file.code, definition=file.constants.get)
        file.module.visit(probe.prepare(file.module, self.changes[path]))
        self.partitioners += [(file, node, text) for node, text in probe.partitioners]

    def _place_helpers(self) -> None:
        for program in self.group.programs:
            changes = self.changes[program.file.path]
            if changes.helpers_before is None:
                gone = self.rewriters[program.file.path].is_gone
                changes.helpers_before = _top_level(program.file.module, program.place.call, gone)

    def _guarded(self, file: ParsedFile, step: Callable[[], None]) -> None:
        try:
            step()
        except Blocked as problem:
            self.problems[file.path].append(problem)

    def _model(self, program: TrainingProgram, models: dict[cst.FunctionDef, tuple[EmittedModel, bool]]) -> None:
        if program.model_fn in models:
            return
        if program.model.ready:
            models[program.model_fn] = ready_model(program.model_fn), False
            return
        file = program.model_file
        sharing = [p for p in self.group.programs if p.model_fn is program.model_fn]
        wants = any(uses_of(p, "predict") or p.servings for p in sharing)
        self.changes[file.path].statements[program.model_fn] = []  # not to be walked into, whatever happens below
        try:
            read = inline_helpers(self.project, program.model)
            self.read[program.model_fn] = read
            function = read_model_function(self.project, file, read.node, program.model.parameters)
            for mode in (TRAIN, EVAL):
                # The variables of a Keras model are all of them, whenever they are asked for.
                check_order(self.project, file, [s.node for s in function.statements if mode in s.modes])
            self.regularized[program.model_fn] = function.regularized
            scope = Scope.of(self.project, file, program.model_fn)
            calls = [*(s.node for s in function.statements), *(spec.call for spec in function.body.specs)]
            self.plan.add(self.project, scope, function.body.names, calls)
            check_layer_names(self.project, scope, calls)
            replicas = any(self._strategy(p).in_step and not self.loop.own for p in sharing)
            emitted = emit_model_function(function, wants, self._training(program), replicas, self.plan.calls)
        except Blocked:
            self.problems[file.path] += other_problems(file, program.model_fn, program.model.parameters)
            raise
        for made in function.inlined:
            own = [id(name) for node in (made, program.model_fn) for name in name_nodes(node)]
            left = [n for n in name_nodes(file.module) if n.value == made.name.value and id(n) not in own]
            if made in file.module.body and not left:
                self.changes[file.path].moved.add(made)  # comments and all
        self._hooks_of_specs(file, program, function.hooks)
        if any(p.servings for p in sharing):
            signatures = signature_names(file, function.export_outputs, function.predictions, function.define)
            self.signatures[program.model_fn] = signatures
            self.remarks[file.path] += signatures.remarks
        self.changes[file.path].statements[program.model_fn] = [emitted.node]
        self.problems[file.path] += emitted.problems
        self.remarks[file.path] += emitted.remarks
        self.changes[file.path].needs |= emitted.needs
        self.changes[file.path].classes.update(emitted.classes)
        models[program.model_fn] = emitted, function.predicts_dicts

    def _hooks_of_specs(self, file: ParsedFile, program: TrainingProgram, hooks: SpecHooks) -> None:
        """Classes of hooks that only EstimatorSpecs named go with these."""
        for where, node in hooks.classes:
            if where is not file:
                continue
            own = {id(name) for part in (node, program.model_fn) for name in name_nodes(part)}
            if not any(n.value == node.name.value and id(n) not in own for n in name_nodes(file.module)):
                self.changes[file.path].moved.add(node)

    def _training(self, program: TrainingProgram) -> TrainingContext:
        """What is known of the training of a program: on mirrored workers gradients are clipped before their sum."""
        strategy = self._strategy(program)
        sharing = [p for p in self.group.programs if p.model_fn is program.model_fn]
        return replace(
            self.training[program.model_file.path],
            steps_per_execution=any(self._takes_steps(p) for p in sharing),
            per_replica=strategy.in_step
            and not strategy.parameter_servers
            and not self.keras.clips_per_replica
            and not self.loop.own,  # its replicas divide the batches of one device
            of_examples=self.loop.own,
        )

    def _takes_steps(self, program: TrainingProgram) -> bool:
        """Whether the driver says how many steps `fit` makes in one execution. A lambda would not take that."""
        if program.tpu is None or program.tpu.iterations is None or program.model.lambdas:
            return False
        # What a mapped model predicts, it predicts itself: each time as many batches as it trains on in one execution.
        predicts = self.mapped and (uses_of(program, "predict") or bool(program.servings))
        return self._strategy(program) is TPU and not predicts

    def _strategy(self, program: TrainingProgram) -> Target:
        """The strategy of a program. Raises Blocked (TFM704, TFM872)."""
        if program.model.ready and self.keras.number == 3:
            message = "a Keras model of the program's own was not tried on Keras 3: leave `--keras 3` out"
            raise Blocked("TFM870", program.place.call, message)
        strategy = choose(program, self.asked)
        if self.loop.own:
            strategy = for_own_loop(program, strategy, self.keras, self.mapped)
            if self.asked is AUTO and any("TF_CONFIG" in file.text for file in self.group.files.values()):
                message = "the program reads or writes TF_CONFIG: name the `--strategy` of its loop"
                raise Blocked("TFM737", program.place.call, message)
        else:
            strategy = for_fit(program, strategy, (file.text for file in self.group.files.values()))
        if self.keras.fits_on_clusters or strategy.fits_on_keras3:
            return strategy
        if strategy is not AUTO:
            message = f"this program was not tried on Keras 3 under the {strategy.word} strategy: leave `--keras 3` out"
            raise Blocked("TFM872", program.place.call, message)
        if any("TF_CONFIG" in file.text for file in self.group.files.values()):
            message = "the program reads or writes TF_CONFIG, and Keras 3 fits on no cluster: leave `--keras 3` out"
            raise Blocked("TFM872", program.place.call, message)
        message = "the new program trains in its own process, whatever TF_CONFIG says"
        remark = Blocked("TFM873", program.place.call, message)
        if remark not in self.remarks[program.file.path]:
            self.remarks[program.file.path].append(remark)
        return ONE_DEVICE

    def _inputs(self, path: Path, file: ParsedFile, function: cst.FunctionDef) -> None:
        rewriter = self.rewriters[path]
        changes = rewrite_returns(function, file.imports, file.functions.keys(), self.setters)
        if function in self.for_both:
            self._both_generations(file, function, changes)
            return
        for statement, made in changes.functions.items():
            self.changes[path].statements[statement] = [made.visit(rewriter)]  # type: ignore[list-item]
        self.changes[path].moved |= changes.moved
        for node, new in changes.expressions.items():
            if new is None:
                self.changes[path].statements[node] = []
            else:
                replaced = new.visit(rewriter)
                assert isinstance(replaced, cst.BaseExpression)
                self.changes[path].expressions[node] = replaced

    def _iterators(self) -> None:
        """Hooks that initialize the iterators of input functions are left out where these are unpacked and made."""
        found: dict[cst.FunctionDef, list[Unpacked]] = {}
        for _, hooks in self._all_hooks():
            for one in hooks.iterators:
                known = found.setdefault(one.initializer.maker, [])
                if not any(one.call is other.call for other in known):
                    known.append(one)
        for several in found.values():
            self._guarded(several[0].file, partial(self._without_initializer, several))

    def _without_initializer(self, unpacked: Sequence[Unpacked]) -> None:
        initializer = unpacked[0].initializer
        path, maker = initializer.file.path, initializer.maker
        if any(f.path not in self.changes for f in (initializer.file, initializer.owner[0])):
            raise Blocked("TFM165", unpacked[0].call, "the file that makes this hook is not migrated")
        left_out = [node for _, hooks in self._all_hooks() for node in hooks.nodes]
        for one in unpacked:
            for name in name_nodes(one.scope):
                if name.value == one.hook.value and name is not one.hook and not self._is_within(name, left_out):
                    raise Blocked("TFM165", name, "the hook is left out, but is used here too")
        own = [one.call.func for one in unpacked]
        others = [
            (file, node)
            for file, node in mentions_of_functions(self.project, self.everything, {maker})
            if not any(node is func for func in own)
        ]
        self.setters |= {line for _, line in initializer.setters}
        for one in unpacked:
            target: cst.BaseExpression
            if others:
                hidden = one.hook.with_changes(value="_")
                target = one.target.with_deep_changes(one.hook, value=hidden.value)
            else:
                target = without_element(one.target, initializer.index)
            self.changes[one.file.path].expressions[one.target] = target
        if others:
            where, node = others[0]
            self.for_both |= {function for function, _ in initializer.setters}
            self.used_in_both[path] = maker
            home, owner = initializer.owner
            self.changes[home.path].statements[owner] = [respelled(owner, home.imports)[0]]
            message = f"`{maker.name.value}` is used at {where.path}:{where.position(node)[0]}, too: it works for both"
            self.remarks[path].append(Blocked("TFM615", maker.name, message))
            return
        changes = self.changes[path]
        changes.statements[initializer.made] = []
        self.gone_hooks.append(initializer.made)
        for returned in initializer.returns:
            changes.expressions[returned] = without_element(returned, initializer.index)
        for _, hooks in self._all_hooks():
            if any(one in unpacked for one in hooks.iterators):
                hooks.classes.append(initializer.owner)

    def _both_generations(self, file: ParsedFile, function: cst.FunctionDef, found: InputChanges) -> None:
        """An input function that returns its dataset in TensorFlow 2, and tensors in TensorFlow 1."""
        new = [value for value in found.expressions.values() if value is not None]
        lines = [line for line, value in found.expressions.items() if value is None]
        at_top = [line for line in function.body.body if line in lines]
        first = at_top[0] if at_top else None
        if found.functions or found.fed or len(new) != 1 or first is None:
            message = "code that stays TensorFlow 1 uses this input function too: give it one of its own"
            raise Blocked("TFM165", function.name, message)
        rewriter = self.rewriters[file.path]
        text = file.code(new[0].visit(rewriter))  # type: ignore[arg-type]
        source = f"if tf.compat.v1.executing_eagerly_outside_functions():\n{file.module.default_indent}return {text}\n"
        (check,) = statements(source, file.module)
        assert isinstance(check, cst.If) and isinstance(check.body, cst.IndentedBlock)
        body = check.body.with_changes(footer=[cst.EmptyLine(indent=False)])
        rewriter.before[first] = [check.with_changes(body=body)]
        assert isinstance(first, cst.SimpleStatementLine) and isinstance(first.body[0], cst.Assign)
        made = first.body[0].value
        dataset = initializable(made, file.imports)
        if dataset is not None:
            spelled = cst.parse_expression("tf.compat.v1.data.make_initializable_iterator")
            argument = dataset.visit(rewriter)
            assert isinstance(argument, cst.BaseExpression)
            self.changes[file.path].expressions[made] = cst.Call(spelled, [cst.Arg(argument)])

    def _flags(self, path: Path, file: ParsedFile) -> None:
        """Parses the command line before a flag is read outside of functions, as TensorFlow 1 did by itself."""
        found = flags.first_read(file.module, file.imports)
        if found is None:
            return
        name, statement = found
        line = statements(f"{name}(sys.argv)\n", file.module)
        before = self.rewriters[path].before
        before[statement] = [*line, *before.get(statement, [])]
        self.changes[path].needs.add("sys")
        self.remarks[path].append(Blocked("TFM856", statement, "the command line is parsed before a flag is read here"))

    def _arrays(self, path: Path, file: ParsedFile) -> None:
        """Input functions over arrays: `name = numpy_input_fn(...)` becomes a function of that name."""
        found, problems, remarks = array_inputs(file)
        self.problems[path] += problems
        self.remarks[path] += remarks
        for one in found:
            if one.line is not None:
                made = one.call.visit(self.rewriters[path])
                if isinstance(made, cst.Lambda):
                    self.changes[path].statements[one.line] = [as_function(one, made.body, file.module)]

    def _summaries(self, path: Path, file: ParsedFile) -> None:
        """Summaries that the driver writes for TensorBoard itself."""

        def rewrite(node: cst.BaseExpression) -> str:
            new = node.visit(self.rewriters[path])
            assert isinstance(new, cst.BaseExpression)
            return file.code(new)

        found = written_summaries(file, rewrite)
        self.changes[path].statements.update(found.statements)
        self.problems[path] += found.problems

    def _initializers(self, path: Path, file: ParsedFile) -> None:
        """Tells of initializers of Keras that several layers share."""
        self.remarks[path] += shared_initializers(file)

    def _named(self, name: str) -> list[cst.Name]:
        return [node for file in self.group.files.values() for node in name_nodes(file.module) if node.value == name]

    @staticmethod
    def _is_within(node: cst.CSTNode, places: Iterable[cst.CSTNode]) -> bool:
        return any(path_to(place, node) for place in places)

    def _all_hooks(self) -> list[tuple[str, Hooks]]:
        return [found for program in self.group.programs for found in program.hooks]

    def _hooks(self) -> None:
        """Hooks that stay become callbacks: their classes, the calls that make them, and the lists that hold them."""
        own: dict[cst.ClassDef, tuple[TrainingProgram, ParsedFile, set[str], list[cst.Call]]] = {}
        for program in self.group.programs:
            for phase, hooks in program.hooks:
                for hook in hooks.own:
                    _, _, phases, calls = own.setdefault(hook.node, (program, hook.file, set(), []))
                    phases.add(phase)
                    calls.append(hook.call)
                self._guarded(program.file, partial(self._lists, hooks))
        for node, (program, file, phases, calls) in own.items():
            self._guarded(file, partial(self._callback, program, file, node, phases, calls))

    def _callback(
        self, program: TrainingProgram, file: ParsedFile, node: cst.ClassDef, phases: set[str], calls: list[cst.Call]
    ) -> None:
        if file.path not in self.changes:
            raise Blocked("TFM162", None, f"`{node.name.value}` is a hook, but its file is not migrated")
        known = {id(call.func) for call in calls} | {id(node.name)}
        for where in self.group.files.values():
            for name in name_nodes(where.module):
                if name.value == node.name.value and id(name) not in known and not path_to(node, name):
                    found = find_class(self.project, where, where.module, name)
                    if found is not None and found[1] is node:
                        message = f"`{node.name.value}` becomes a callback, but is used here too"
                        self.problems[where.path].append(Blocked("TFM162", name, message))
        new = as_callback(file, node, phases, program.tensors)
        self.changes[file.path].statements[node] = [new.visit(self.rewriters[file.path])]  # type: ignore[list-item]

    def _lists(self, hooks: Hooks) -> None:
        """What holds hooks, without those that are left out, and the new calls of stock hooks."""
        for file, call, stock in hooks.made:
            changes, rewriter = self._of(file, call)
            name = self.training[file.path].helper(stock.name, stock.text)
            texts = []
            for key, value in stock.arguments.items():
                text = stock.defaults[key] if value is None else file.code(value.visit(rewriter))  # type: ignore[arg-type]
                texts.append(f"{key}={text}")
            changes.expressions[call] = cst.parse_expression(f"{name}({', '.join(texts)})")
            changes.needs |= stock.needs
        for file, line in hooks.gone:
            changes, _ = self._of(file, line)
            changes.statements[line] = [cst.SimpleStatementLine([cst.Pass()])]
        for file, display, stay in hooks.shorter:
            changes, rewriter = self._of(file, display)
            elements = [e.visit(rewriter) for e in stay]
            if elements:
                last = elements[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)  # type: ignore[union-attr]
                one = isinstance(display, cst.Tuple) and len(elements) == 1
                elements[-1] = last.with_changes(comma=cst.Comma()) if one else last
            changes.expressions[display] = display.with_changes(elements=elements)
        for file, whole, part in hooks.instead:
            changes, rewriter = self._of(file, whole)
            changes.expressions[whole] = part.visit(rewriter)  # type: ignore[assignment]

    def _of(self, file: ParsedFile, node: cst.CSTNode) -> tuple[FileChanges, _Rewriter]:
        if file.path not in self.changes:
            raise Blocked("TFM162", None, f"hooks are made in `{file.path}`, which is not migrated")
        return self.changes[file.path], self.rewriters[file.path]

    def _servings(self, program: TrainingProgram, models: dict[cst.FunctionDef, tuple[EmittedModel, bool]]) -> None:
        """Serving functions become functions of the predictor."""
        if program.model_fn not in models:
            return
        for where, scope, node in program.servings:
            only_here = self._check_maker(where, node)
            serving = read_serving(
                self.project,
                where,
                scope,
                node,
                not models[program.model_fn][1],
                lambda file: (self.rewriters[file.path], self.changes[file.path].expressions),
                self.signatures.get(program.model_fn, Signatures()),
            )
            self.changes[serving.file.path].statements[serving.node] = [serving.new]
            if only_here is not None:
                self.serving_files[serving.file.path] = SERVING
                self.only_exported.update({serving.file.path: SERVING} if only_here else {})

    def _check_maker(self, file: ParsedFile, node: cst.BaseExpression) -> bool | None:
        """Whether a function that makes a serving function serves nothing but the exports of these programs.

        None where no function makes it.
        """
        made = serving_maker(self.project, file, node) if isinstance(node, cst.Call) else None
        if made is None:
            return None
        given = {one.func for p in self.group.programs for _, _, one in p.servings if isinstance(one, cst.Call)}
        mentions = mentions_of_functions(self.project, self.everything, {made[1]})
        for where, mention in mentions:
            if mention not in given | self.everything.serving:
                message = f"`{made[1].name.value}` is used at {where.path}:{where.position(mention)[0]}, too"
                raise Blocked("TFM142", node, f"{message}: give the export a serving function of its own")
        return all(mention in given for _, mention in mentions)

    def _driver(self, program: TrainingProgram, models: dict[cst.FunctionDef, tuple[EmittedModel, bool]]) -> None:
        emitted, of_dicts = models[program.model_fn]
        file = program.file
        strategy = self._strategy(program)
        served = self.signatures.get(program.model_fn)
        shape = (emitted.has_predictor, of_dicts, program.model.parameters.params is None, served)
        known = self.driven.setdefault(program.place.call, shape)
        if known != shape:
            message = "the model_fns that this Estimator may have differ in what they take or predict"
            raise Blocked("TFM105", program.place.call, message)
        if any(p.place is program.place for p in self.drivers):
            return  # the same lines drive another model_fn too
        self.drivers.append(program)
        if program.handed is not None:
            if emitted.counts_by_condition:
                message = "the global step is counted by a condition, and the Estimator is handed around: drive it here"
                raise Blocked("TFM422", program.place.call, message)
            if emitted.hooks.stop is not None:
                message = "a StopAtStepHook in the model_fn of an Estimator that is handed around: give it to `train`"
                raise Blocked("TFM110", emitted.hooks.stop[1], message)
            self._trainer(program, emitted, of_dicts, served)
            self.strategies.append(strategy)
            return
        partitioner = self._partitioner(program, emitted, strategy)
        driver = emit_driver(
            self.project,
            program,
            self.rewriters[file.path],
            strategy,
            partitioner,
            emitted.has_predictor,
            of_dicts,
            self.names[file.path],
            self.signatures.get(program.model_fn, Signatures()).names,
            self.mapped,
            emitted.hooks.stop,
            self.keras,
            self.mapped and emitted.late,
            emitted.with_params,
            self._takes_steps(program),
            self.loop,
            emitted.loss_of_class,
            emitted.measures,
            self._stopper(program) if emitted.counts_by_condition else "",
        )
        self.rewriters[file.path].before.update(driver.before)
        changes = self.changes[file.path]
        changes.statements.update(driver.statements)
        whole = [node for node in program.removed if isinstance(node, cst.ClassDef | cst.FunctionDef)]
        changes.moved.update(whole)  # comments and all
        changes.expressions.update(driver.expressions)
        for helper in driver.helpers:
            if helper not in changes.helpers:
                changes.helpers.append(helper)
        changes.needs |= driver.needs
        for changes_of_file in self.changes.values():
            changes_of_file.keras = self.keras  # whichever module is imported first must choose
            changes_of_file.on_cluster |= strategy.reads_cluster
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

    def _stopper(self, program: TrainingProgram) -> str:
        """The callback that ends a training of which not every batch counts as a step."""
        if self.loop.own:
            message = "the global step is counted by a condition, which `--loop custom` does not know: leave it out"
            raise Blocked("TFM422", program.place.call, message)
        message = "a callback ends the training: the train_op does not count every batch as a step"
        self.remarks[program.file.path].append(Blocked("TFM430", program.place.call, message))
        return self.training[program.file.path].helper("StopAtStep", STOP_AT_STEP)

    def _trainer(
        self, program: TrainingProgram, emitted: EmittedModel, of_dicts: bool, served: Signatures | None
    ) -> None:
        """A class in the place of an Estimator that is handed around."""
        assert program.handed is not None
        if self.keras.number == 3:
            message = "an Estimator that is handed around was not tried on Keras 3: leave `--keras 3` out"
            raise Blocked("TFM870", program.place.call, message)
        group = [p.handed for p in self.group.programs if p.handed is not None]
        seen = {node for handed in group for node in handed.flow.seen}
        stranger = program.handed.flow.stranger(seen)
        if stranger is not None:
            where, node = stranger
            message = "this comes where the Estimator does, but is not followed to one"
            self.problems.setdefault(where.path, []).append(Blocked("TFM103", node, message))
            return
        made = emit_trainer(
            program,
            self.rewriters,
            self.changes,
            self.names[program.file.path],
            emitted.has_predictor,
            of_dicts,
            self.mapped,
            served,
            self.mapped and emitted.late,
        )
        changes = self.changes[program.file.path]
        changes.helpers += [helper for helper in made.helpers if helper not in changes.helpers]
        changes.needs |= made.needs
        for changes_of_file in self.changes.values():
            changes_of_file.keras = self.keras
        if made.before:
            around = path_to(program.file.module, program.place.call)
            line = next(
                n for n in reversed(around) if isinstance(n, cst.SimpleStatementLine | cst.BaseCompoundStatement)
            )
            self.rewriters[program.file.path].before[line] = made.before
        for where, remark in made.remarks:
            self.remarks.setdefault(where.path, []).append(remark)

    def _partitioner(self, program: TrainingProgram, emitted: EmittedModel, strategy: Target) -> str | None:
        own = sorted(emitted.partitioners, key=lambda given: program.model_file.position(given[0]))
        found = [*((program.model_file, *given) for given in own), *self.partitioners]
        if not found:
            return None
        if not strategy.parameter_servers:
            file, node, _ = found[0]
            message = "the partitioner is left out: without parameter servers variables are not split"
            self.remarks[file.path].append(Blocked("TFM703", node, message))
            return None
        texts = []
        roles = program.model.parameters
        for number, (file, node, made) in enumerate(found):
            names = (roles.config, roles.params) if number < len(own) else (None, None)
            given = partitioners.Given(*names, partial(self._param, program, node))
            try:
                text = partitioners.for_strategy(node, made, file.imports, file.code, given)
            except Blocked as problem:
                self.problems[file.path].append(problem)
                continue
            if text is not None:
                self._check_partitioner(program, file, node, text)
            texts.append(text)
        if len(set(texts)) > 1:
            file, node, _ = found[-1]
            message = "a second, different partitioner: ParameterServerStrategy takes one"
            self.problems[file.path].append(Blocked("TFM702", node, message))
        if texts and texts[0] is not None and own and emitted.unsplit:
            message = "this is not in the scope of the partitioner, which splits all variables now"
            self.remarks[program.model_file.path].append(Blocked("TFM890", emitted.unsplit[0], message))
        return texts[0] if texts else None

    def _param(self, program: TrainingProgram, place: cst.CSTNode, key: str) -> cst.BaseExpression | None:
        """What the Estimator's params hold under a key; None if they do not have it."""
        params = program.params
        if isinstance(params, cst.Name):
            params = program.file.constants.get(params.value)
        if program.params is None:
            return None
        if isinstance(params, cst.Dict) and all(
            isinstance(e, cst.DictElement) and string(e.key) is not None for e in params.elements
        ):
            held = {string(e.key): e.value for e in params.elements if isinstance(e, cst.DictElement)}
            return held.get(key)
        called = isinstance(params, cst.Call) and isinstance(params.func, cst.Name) and params.func.value == "dict"
        if isinstance(params, cst.Call) and called and all(a.keyword is not None for a in params.args):
            return {a.keyword.value: a.value for a in params.args if a.keyword is not None}.get(key)
        message = f"the partitioner reads `params` for `{key}`: what these hold is not known before the program runs"
        raise Blocked("TFM701", place, message)

    def _check_partitioner(self, program: TrainingProgram, file: ParsedFile, node: cst.CSTNode, text: str) -> None:
        """The text moves to a top-level function of the driver's file: it must mean the same there."""
        for name in sorted(names_in(cst.parse_expression(text)) - {"tf", "None", "True", "False", "cluster"}):
            around = [n for n in path_to(file.module, node) if isinstance(n, cst.FunctionDef)]
            local = any(name == bound for function in around for bound, n in bindings(function) if n is not function)
            here = {bound for bound, _ in bindings(program.file.module)}
            origins = file.imports.names.get(name), program.file.imports.names.get(name)
            elsewhere = file is not program.file and (origins[0] is None or origins[0] != origins[1])
            own = here | {bound for bound, _ in bindings(file.module)}
            if name in ("int", "len", "max", "min") and not local and name not in own:
                continue
            if local or elsewhere or name not in here:
                message = f"the partitioner reads `{name}`, which the strategy's function in the driver cannot see"
                self.problems[file.path].append(Blocked("TFM701", node, message))
                return

    def _finish(self, file: ParsedFile) -> str:
        module = file.module.visit(self.rewriters[file.path])
        assert isinstance(module, cst.Module)
        changes = self.changes[file.path]
        training = self.training[file.path]
        changes.needs |= self.rewriters[file.path].needs | training.needs
        self.remarks[file.path] += [*self.rewriters[file.path].remarks, *training.remarks]
        changes.classes.update(self.rewriters[file.path].classes)
        if not self.keras.symbolic_tensorflow:
            module = self._on_keras3(file, module)
        for name in sorted(changes.classes.keys() & file.names):
            self.problems[file.path].append(Blocked("TFM224", None, f"the file needs a class `{name}`: rename yours"))
        changes.classes.update(training.helpers)
        module = insert_classes(module, changes.classes)
        return finish_imports(module, changes).code

    def _on_keras3(self, file: ParsedFile, module: cst.Module) -> cst.Module:
        """A new file, and the classes that it needs, in their form for Keras 3; what has none is a problem."""
        module = keras3.renamed(module)
        changes = self.changes[file.path]
        place = next((p.place.call for p in self.group.programs if p.file is file), None)
        for name, text in list(changes.classes.items()):
            new = keras3.class_text(name, text)
            if new is None:
                message = f"`{name}`, which the new file would need, was not tried on Keras 3: leave `--keras 3` out"
                self.problems[file.path].append(Blocked("TFM870", place, message))
            else:
                changes.classes[name] = new
        for name in keras3.foreign_names(module):
            message = f"`{name}` does not exist on Keras 3, or was not tried there: leave `--keras 3` out"
            self.problems[file.path].append(Blocked("TFM870", place, message))
        return module

    def _findings(self, refused: bool) -> dict[Path, list[Finding]]:
        found: dict[Path, list[Finding]] = {}
        for path, file in [*self.group.files.items(), *self.outside.items()]:
            found.setdefault(path, [])
            for problem in self.problems[path]:
                finding = file.finding(problem.code, Severity.MANUAL, problem.node, problem.message)
                found.setdefault(Path(finding.path), []).append(finding)
            if not refused:
                for said in remarks_of([file]):
                    found[path].append(said)
                for remark in self.remarks.get(path, []):
                    finding = file.finding(remark.code, Severity.REVIEW, remark.node, remark.message)
                    found.setdefault(Path(finding.path), []).append(finding)
        if not refused:
            for program in self.group.programs:
                message = f"`{program.model_fn.name.value}` and its Estimator are now a Keras program"
                found[program.file.path].append(
                    program.file.finding("TFM101", Severity.MIGRATED, program.place.call, message)
                )
        return {path: list(dict.fromkeys(lines)) for path, lines in found.items() if lines}


class _MappedMigration(_GroupMigration):
    """The migration of a group in the mapped form; `reasons` are the findings that stand in the way of the native."""

    mapped = True
    rewriter_class = _MappedRewriter

    def __init__(
        self,
        project: Project,
        group: _Group,
        asked: Target,
        blocked_files: Mapping[Path, Path],
        references: References,
        everything: Everything,
        keras: Keras,
        loop: Loop,
        reasons: Sequence[Finding],
    ) -> None:
        super().__init__(project, group, asked, blocked_files, references, everything, keras, loop)
        self.reasons = reasons
        self.unread: dict[cst.FunctionDef, tuple[Blocked, ...]] = {}
        self.trained_by_themselves: set[cst.FunctionDef] = set()

    def _strategy(self, program: TrainingProgram) -> Target:
        strategy = super()._strategy(program)
        if program.model_fn in self.trained_by_themselves and not strategy.alone:
            if strategy is not AUTO:
                message = "a train_op of the program's own trains on one device only"
                raise Blocked("TFM422", program.place.call, message)
            return ONE_DEVICE
        return strategy

    def _models(self, models: dict[cst.FunctionDef, tuple[EmittedModel, bool]]) -> None:
        functions: dict[cst.FunctionDef, MappedFunction] = {}
        for program in self.group.programs:
            if program.model.ready:
                models[program.model_fn] = ready_model(program.model_fn), False
            else:
                self._guarded(program.model_file, partial(self._read, program, functions))
        region = {node: file for function in functions.values() for node, file in function.region.items()}
        for program in self.group.programs:
            if (
                program.model_fn not in functions and not program.model.ready
            ):  # what would stay, so that only the rest is reported
                region.update(reach(self.project, program.model_file, program.model_fn))
        for function in functions.values():
            region.update(self._served_what_is_gone(function, region))
        by_itself = {node for function in functions.values() if function.trains_itself for node in function.region}
        others = {node for function in functions.values() if not function.trains_itself for node in function.region}
        for path, file in self.group.files.items():
            rewriter = self._rewriter(file)
            rewriter.map(frozenset(n for n, where in region.items() if where.path == path), file)
            rewriter.training_region = frozenset(by_itself - others)
            rewriter.whole = region
        for program in self.group.programs:
            self.regularized[program.model_fn] = True
            if program.model_fn in functions:
                self._guarded(program.model_file, partial(self._emit, program, functions[program.model_fn], models))
            self.changes[program.model_file.path].statements.setdefault(program.model_fn, [])

    def _served_what_is_gone(self, function: MappedFunction, region: Mapping[cst.CSTNode, ParsedFile]) -> Region:
        """Helpers of lines that are left out, where these are TensorFlow 1 code of the same kind as the model_fn."""
        found: dict[cst.CSTNode, ParsedFile] = {}
        for node, file in reach(self.project, function.file, function.node).items():
            if node not in region and isinstance(node, cst.FunctionDef) and self._is_in_the_way(file, node):
                if len(respelled(node, file.imports)[1]) == 1:
                    found[node] = file
        return found

    def _never_run(self) -> frozenset[cst.CSTNode]:
        found: set[cst.CSTNode] = set()
        for program in self.group.programs:
            body = program.model_fn.body
            if self._only_predicts(program.model_fn) and isinstance(body, cst.IndentedBlock):
                mode = program.model.parameters.mode
                found |= set(not_run_in(PREDICT, body.body, program.model_file.imports, mode))
        return frozenset(found)

    def _only_predicts(self, model_fn: cst.FunctionDef) -> bool:
        return all(only_predicts(p) for p in self.group.programs if p.model_fn is model_fn)

    def _rewriter(self, file: ParsedFile) -> _MappedRewriter:
        rewriter = self.rewriters[file.path]
        assert isinstance(rewriter, _MappedRewriter)
        return rewriter

    def _read(self, program: TrainingProgram, functions: dict[cst.FunctionDef, MappedFunction]) -> None:
        if program.model_fn in functions:
            return
        file, node, parameters = program.model_file, program.model_fn, program.model.parameters
        if self._only_predicts(node):
            functions[node] = read_mapped_function(self.project, file, node, parameters, only_predicts=True)
            return
        inlined, self.unread[program.model_fn] = inline_training(self.project, program.model)
        function = read_mapped_function(self.project, file, node, parameters, inlined.node)
        functions[program.model_fn] = function
        gone = tuple((file, helper) for file, helper in inlined.helpers if helper not in function.region)
        self.read[program.model_fn] = replace(inlined, helpers=gone)

    def _emit(
        self,
        program: TrainingProgram,
        function: MappedFunction,
        models: dict[cst.FunctionDef, tuple[EmittedModel, bool]],
    ) -> None:
        if program.model_fn in models:
            return
        file = program.model_file
        changes = self.changes[file.path]
        sharing = [p for p in self.group.programs if p.model_fn is program.model_fn]
        if any(p.servings for p in sharing):
            signatures = function.signature_names()
            self.signatures[program.model_fn] = signatures
            self.remarks[file.path] += signatures.remarks
        wants = any(uses_of(p, "predict") or p.servings for p in sharing)
        self.trained_by_themselves |= {program.model_fn} if function.trains_itself else set()
        late = any(is_late(p, self._strategy(p)) for p in sharing)
        late = late and all(may_be_late(p, self._strategy(p)) for p in sharing)
        without_params = all(p.params is None and p.handed is None for p in sharing) and not function.reads_params
        try:
            emitted = emit_mapped(
                function, self._rewriter(file), wants, self._training(program), late, not (late and without_params)
            )
        except Blocked as problem:
            unread = self.unread[program.model_fn]
            if problem.code != "TFM403" or not unread:
                raise
            raise Blocked(problem.code, problem.node, f"{problem.message}: {unread[0].message}") from problem
        for written in function.host_calls:
            self.remarks[file.path].append(Blocked("TFM423", written, "the host_call is left out: it wrote summaries"))
        if function.trains_itself:
            message = "the train_op stays as it is: it trains on one device"
            self.remarks[file.path].append(Blocked("TFM421", function.train_op, message))
            for where, counting in counted_in_any_order(function.region):
                message = "TensorFlow 1 may count this step before the rate reads it; the new program reads it first"
                self.remarks[where.path].append(Blocked("TFM425", counting, message))
        if function.elsewhere:
            message = "the program only predicts: what the model_fn does to train or to evaluate is left out"
            self.remarks[file.path].append(Blocked("TFM427", program.model_fn.name, message))
        for name, text in emitted.classes.items():
            if changes.classes.setdefault(name, text) != text:
                message = "two model_fns of one file that train in different ways: put them into two files"
                raise Blocked("TFM422", program.model_fn.name, message)
        emitted = replace(emitted, hooks=function.hooks)
        self.makers += function.hooks.makers
        self.dead += function.dead
        self.remarks[file.path] += function.hooks.remarks
        self._hooks_of_specs(file, program, function.hooks)
        changes.statements[program.model_fn] = [emitted.node]
        changes.classes.update(emitted.classes)
        changes.needs |= emitted.needs
        self.problems[file.path] += emitted.problems
        self.remarks[file.path] += emitted.remarks
        for where, node in function.summaries:
            if only_names(where, node):
                message = "the name of this tensor is left out: Keras has no graph in which to look it up"
                self.remarks[where.path].append(Blocked("TFM512", node, message))
                continue
            message = "the summary is left out: Keras writes loss and metrics with a TensorBoard callback"
            self.remarks[where.path].append(Blocked("TFM801", node, message))
        models[program.model_fn] = emitted, function.predicts_dicts

    def _initializers(self, path: Path, file: ParsedFile) -> None:
        """Those of TensorFlow 1 code stay what they are."""

    def _find_partitioners(self, path: Path, file: ParsedFile) -> None:
        """Variables of TensorFlow 1 code are not split."""

    def _finish(self, file: ParsedFile) -> str:
        text = super()._finish(file)
        for node in self._rewriter(file).dropped_partitioners:
            message = "the partitioner is left out: variables of code that stays as it is are not split"
            self.remarks[file.path].append(Blocked("TFM154", node, message))
        return text

    def _findings(self, refused: bool) -> dict[Path, list[Finding]]:
        for program in self.group.programs:
            message = f"`{program.model_fn.name.value}` stays TensorFlow 1 code, which a Keras model runs"
            if self.reasons:
                why = self.reasons[0]
                message += f"; a native model is blocked by {why.code} at {why.path}:{why.line} ({why.message})"
            self.remarks[program.file.path].append(Blocked("TFM150", program.place.call, message))
        return super()._findings(refused)


def mentions_of_functions(
    project: Project, everything: Everything, functions: Collection[cst.FunctionDef]
) -> list[tuple[ParsedFile, cst.CSTNode]]:
    """Where top-level functions, or methods, are mentioned."""
    found: list[tuple[ParsedFile, cst.CSTNode]] = []
    names = [function.name.value for function in functions]
    at_top = {function for file in project.files for function in file.functions.values()}
    for file in everything.mentioning(names):
        finder = _Mentions(project, file, functions, ())
        file.module.visit(finder)
        found += [(file, node) for _, node in finder.found]
        methods = [function.name.value for function in functions if function not in at_top]
        found += [(file, node) for node in attributes_called(file.module, methods)]
    return found


def without_imports(file: ParsedFile, gone: Collection[str]) -> dict[cst.CSTNode, list[cst.BaseStatement]]:
    """The import statements of a file that import names which are gone, without these."""
    new: dict[cst.CSTNode, list[cst.BaseStatement]] = {}
    for line in file.module.body:
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
        if not isinstance(small, cst.ImportFrom) or isinstance(small.names, cst.ImportStar):
            continue
        kept = [a for a in small.names if dotted(a.asname.name if a.asname is not None else a.name) not in gone]
        if len(kept) != len(small.names):
            if kept:
                kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
            new[line] = [line.with_changes(body=[small.with_changes(names=kept)], leading_lines=[])] if kept else []
    return new


class _NamedSo(cst.CSTVisitor):
    """`name` and `module.name` outside imports."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.found: list[cst.BaseExpression] = []

    def visit_ImportAlias(self, node: cst.ImportAlias) -> bool:
        return False

    def visit_ClassDef_name(self, node: cst.ClassDef) -> None:
        return None

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        if node.attr.value == self.name:
            self.found.append(node)
            return False
        node.value.visit(self)
        return False

    def visit_Name(self, node: cst.Name) -> None:
        if node.value == self.name:
            self.found.append(node)


def _gives(line: cst.SimpleStatementLine, name: str) -> bool:
    """Whether a line is `name = ...`."""
    small = line.body[0]
    return (
        isinstance(small, cst.Assign)
        and len(small.targets) == 1
        and isinstance(small.targets[0].target, cst.Name)
        and small.targets[0].target.value == name
    )


class _Contains(cst.CSTVisitor):
    def __init__(self, node: cst.CSTNode) -> None:
        super().__init__()
        self.node = node
        self.found = False

    def on_visit(self, node: cst.CSTNode) -> bool:
        self.found = self.found or node is self.node
        return not self.found


def _top_level(
    module: cst.Module, node: cst.CSTNode, is_gone: Callable[[cst.CSTNode], bool] = lambda statement: False
) -> cst.CSTNode | None:
    """Where helper functions go: before the top-level code that holds a node, after the functions above it.

    A statement that is removed cannot be the place.
    """
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
    start = first if behind_function else index
    return next((s for s in module.body[start:] if not is_gone(s)), None)
