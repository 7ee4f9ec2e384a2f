"""Programs that share files, migrated together in the mapped form: their model_fns stay TensorFlow 1 code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import libcst as cst

from migrator.emit.beside import respelled
from migrator.emit.driver import is_late, may_be_late, only_predicts, uses_of
from migrator.emit.mapped import MappedRewriter, emit_mapped
from migrator.emit.mapped_keras import ONLY_IN_MODELS
from migrator.emit.model_function import EmittedModel, ready_model
from migrator.findings import Finding
from migrator.migration import hooks
from migrator.migration.leftovers import is_in_the_way
from migrator.migration.native import NativeMigration
from migrator.migration.state import Group, Request, Rewriter
from migrator.program.inlining import inline_training
from migrator.program.mapped import MappedFunction, only_names, read_mapped_function, read_training
from migrator.program.modes import PREDICT, not_run_in
from migrator.program.own_training import counted_in_any_order
from migrator.program.parsed import Blocked, ParsedFile
from migrator.program.region import Region, reach
from migrator.program.tpu import without_host_call
from migrator.program.training import TrainingProgram
from migrator.targets.registry import AUTO, ONE_DEVICE
from migrator.targets.target import Target


class MappedGroupRewriter(Rewriter, MappedRewriter):
    """A Rewriter for files with model_fns that stay TensorFlow 1 code."""


class MappedMigration(NativeMigration):
    """The migration of a group in the mapped form; `reasons` are the findings that stand in the way of the native."""

    mapped = True
    rewriter_class = MappedGroupRewriter

    def __init__(self, group: Group, request: Request, reasons: Sequence[Finding] = ()) -> None:
        super().__init__(group, request)
        self.reasons = reasons
        self.unread: dict[cst.FunctionDef, tuple[Blocked, ...]] = {}
        self.trained_by_themselves: dict[cst.FunctionDef, tuple[str, str]] = {}  # the code and what the refusal says

    def _strategy(self, program: TrainingProgram) -> Target:
        strategy = super()._strategy(program)
        if program.model_fn in self.trained_by_themselves and not strategy.alone:
            if strategy is not AUTO:
                code, what = self.trained_by_themselves[program.model_fn]
                raise Blocked(code, program.place.call, f"{what} one device only")
            return ONE_DEVICE
        return strategy

    def _models(self, models: dict[cst.FunctionDef, tuple[EmittedModel, bool]]) -> None:
        functions: dict[cst.FunctionDef, MappedFunction] = {}
        for program in self.group.programs:
            if program.model.ready:
                models[program.model_fn] = ready_model(program.model_fn), False
            else:
                self.guarded(program.model_file, partial(self._read, program, functions))
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
                self.guarded(program.model_file, partial(self._emit, program, functions[program.model_fn], models))
            self.changes[program.model_file.path].statements.setdefault(program.model_fn, [])

    def _served_what_is_gone(self, function: MappedFunction, region: Mapping[cst.CSTNode, ParsedFile]) -> Region:
        """Helpers of lines that are left out, where these are TensorFlow 1 code of the same kind as the model_fn."""
        found: dict[cst.CSTNode, ParsedFile] = {}
        for node, file in reach(self.project, function.file, function.node).items():
            if node not in region and isinstance(node, cst.FunctionDef) and is_in_the_way(file, node):
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

    def _rewriter(self, file: ParsedFile) -> MappedGroupRewriter:
        rewriter = self.rewriters[file.path]
        assert isinstance(rewriter, MappedGroupRewriter)
        return rewriter

    def _read(self, program: TrainingProgram, functions: dict[cst.FunctionDef, MappedFunction]) -> None:
        if program.model_fn in functions:
            return
        file, node, parameters = program.model_file, program.model_fn, program.model.parameters
        self._check_replicas(p for p in self.group.programs if p.model_fn is node)
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
        if function.trains_itself:
            what = "a train_op of the program's own trains on"
            self.trained_by_themselves[program.model_fn] = "TFM422", what
        elif _adds_up(function):
            self.trained_by_themselves[program.model_fn] = "TFM417", "gradients are added up over batches on"
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
            self.remarks[file.path].append(without_host_call(written))
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
        hooks.remove_hooks_of_specs(self, file, program, function.hooks)
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
        """Variables of TensorFlow 1 code are not split: a lookup that gives ids to the parts in turn is refused."""
        if not any(self._rewriter(one).partitioners_of_scopes() for one in self.group.files.values()):
            return
        message = (
            "a partitioner splits this program's variables, and this lookup gives the ids to the parts of a table in "
            'turn: in a whole table the row of an id is another. Give it `partition_strategy="div"`'
        )
        self.problems[path] += [Blocked("TFM796", call, message) for call in self._rewriter(file).mixing_lookups()]

    def _finish(self, file: ParsedFile) -> str:
        text = super()._finish(file)
        if self.rewriters[file.path].in_both:
            self.only_exported[file.path] = {*self.only_exported.get(file.path, ()), ONLY_IN_MODELS}
            self.serving_files[file.path] = {*self.serving_files.get(file.path, ()), ONLY_IN_MODELS}
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


def _adds_up(function: MappedFunction) -> bool:
    """Whether gradients are added up over batches; what blocks the reading is told when the optimizer is written."""
    try:
        return not function.only_predicts and read_training(function).accumulation is not None
    except Blocked:
        return False
