"""Programs that share files, migrated together in the native form."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import libcst as cst

from migrator.emit.driver.draft import Asked, DrivenModel
from migrator.emit.driver.driver import emit_driver
from migrator.emit.file import FileRewriter, finish_imports, insert_classes
from migrator.emit.flowing import check_model, emit_flowing
from migrator.emit.further_imports import with_imports
from migrator.emit.layout import statements
from migrator.emit.mesh import called, on_mesh
from migrator.emit.model_function import EmittedModel, emit_model_function, only_follows, other_problems, ready_model
from migrator.findings import Finding, Severity
from migrator.migration import hooks, inputs, leftovers, partitioning, ready, servers, servings, workers
from migrator.migration.everything import FollowedModel
from migrator.migration.state import GroupState
from migrator.names.bare import bare, says
from migrator.names.imports import dotted
from migrator.places import text_of
from migrator.program.borrowed import names_read
from migrator.program.calls import calls_in, functions_in, is_false, is_none, is_true, nodes_in
from migrator.program.canned import remarks_of
from migrator.program.config_reads import written
from migrator.program.exports import Signatures, signature_names
from migrator.program.flow import InFile
from migrator.program.helpers import Scope
from migrator.program.inlining import Inlined, inline_helpers
from migrator.program.keras_phase import plan_model
from migrator.program.layer_names import name_layers
from migrator.program.loss import GeneralLoss
from migrator.program.model_function import ModelFunction, read_model_function
from migrator.program.modes import EVAL, TRAIN
from migrator.program.outputs import predicts_dicts
from migrator.program.own_weights import own_weights, touches_weights
from migrator.program.parsed import Blocked, ParsedFile
from migrator.program.ready_scopes import check_optimizers
from migrator.program.refusals import Refusals
from migrator.program.region import reach
from migrator.program.scopes import path_to
from migrator.program.shared import asks_for_iterators, runs_in_both, spelled_for_both, with_old_datasets
from migrator.program.starts import checkpoint_reads
from migrator.program.telling import shown_modules
from migrator.program.training import TrainingProgram
from migrator.program.unused_layers import unused_layers
from migrator.program.variable_names import named_layers, names_to_give
from migrator.program.variable_order import check_order
from migrator.program.variable_reads import handled, measures, order_read
from migrator.rules import flags, keras3, rebinding
from migrator.rules.executions import (
    STEPS_OF_EXECUTION,
    ends_early,
    epochs_are_executions,
    may_end,
    steps_of_execution,
    steps_on_servers,
)
from migrator.rules.generation import KERAS_2
from migrator.rules.initializers import shared_initializers
from migrator.rules.model_towers import find_towers
from migrator.rules.optimizers import is_optimizer
from migrator.rules.own_loops import over_examples
from migrator.rules.replicas import check_replicas
from migrator.rules.site import TrainingContext
from migrator.rules.summary_writers import written_summaries
from migrator.targets import dtensor
from migrator.targets.choosing import choose, divides_batches, draws_batches, for_mesh, for_own_loop, own_strategy
from migrator.targets.chosen import check_files
from migrator.targets.clusters import ONE_EVALUATOR
from migrator.targets.plan import Target
from migrator.targets.registry import AUTO, ONE_DEVICE, TPU
from migrator.targets.setup import RATE, RATE_ON_KERAS3, RATES_OF_PARTS
from migrator.walking import transformed

#: What stands in the way of a strategy that the program asks for.
_OF_STRATEGIES = ("TFM704", "TFM707", "TFM708", "TFM721", "TFM790")
#: What may stand in the way of writing a driver anew, and not of leaving it.
_OF_DRIVERS = frozenset(("TFM103", "TFM109", "TFM110", "TFM602"))
#: What a program is made of: symbols that have no home, and need none where it is carried over.
_OF_PROGRAMS = (
    *("tf.estimator.", "tf.contrib.estimator.", "tf.contrib.tpu.", "tf.tpu.", "tf.keras.estimator.", "tf.metrics."),
    *("tf.contrib.distribute.", "tf.distribute.", "tf.contrib.cluster_resolver.", "tf.contrib.learn."),
)
#: Strategies under which several steps in one execution are the same steps, to the last bit (measured).
_SAME_STEPS = ("mirrored", "multi-worker-mirrored", "central-storage")


class _Texts(dict[Path, str]):
    """The texts of new files, each written when it is asked for; those of `in_both` run in TensorFlow 1.15, too.

    `asked` says whose datasets are asked for what only those of TensorFlow 1 have.
    """

    def __init__(
        self, modules: Mapping[Path, cst.Module], in_both: Collection[Path], asked: Callable[[Path], bool]
    ) -> None:
        super().__init__()
        self._modules = modules
        self._in_both = in_both
        self._asked = asked

    def __missing__(self, path: Path) -> str:
        module = self._modules[path]
        text = text_of(module, module)
        if self._asked(path):
            text = with_old_datasets(text)
        self[path] = spelled_for_both(text) if path in self._in_both else text
        return self[path]


class NativeMigration(GroupState):
    """The migration of a group in the native form."""

    def run(self) -> tuple[dict[Path, str], dict[Path, list[Finding]]]:
        """The new texts of the files, or none where something stands in the way; and the findings."""
        self.prepare()
        return self.finish()

    @property
    def stuck(self) -> bool:
        """Whether something stands in the way."""
        return any(self.problems.values())

    def prepare(self) -> None:
        """Reads the programs and says what becomes of their lines; nothing of a file is written yet."""
        models = self.models
        beside = leftovers.leave_beside(self, self._never_run())
        hooks.leave_out_iterators(self)
        self._config_reads()
        for program in self.group.programs:
            self.guarded(program.file, partial(self._check_hidden, program))
            self.guarded(program.file, partial(self._check_folder, program))
        self._models(models)
        for path, file in self.group.files.items():
            left_alone = {inner for node in beside for inner in functions_in(node)}
            for function in functions_in(file.module):
                if function not in left_alone:
                    self.guarded(file, partial(inputs.write_inputs, self, path, file, function))
        for program in self.group.programs:
            self.guarded(program.file, partial(self._write_lambdas, program))
        for path, file in self.group.files.items():
            self.guarded(file, partial(inputs.write_arrays, self, path, file))
        hooks.write_hooks(self)
        for program in self.group.programs:
            self.guarded(program.file, partial(servings.write_servings, self, program, models))
        for file, problem in self.hparams.problems:
            self.problems[file.path].append(problem)
        self._regularizers()
        self._references()
        leftovers.remove_helpers(self)
        # On a mesh all functions of the network are looked at, and get other layers where it wants those.
        for stays in (self.plan.visited if self.asked.mesh else self.plan.helpers).values():
            self.guarded(stays.file, partial(leftovers.write_helper, self, stays))
        for path, file in self.group.files.items():
            self._find_partitioners(path, file)
        self._share_strategies()
        self.stuck_before_drivers = self.stuck
        for program in self.group.programs:
            if program.model_fn in models:
                self.guarded(program.file, partial(self._driver, program, models))
        inputs.tell_shuffles(self, zip(self.drivers, self.strategies))
        for path, file in self.group.files.items():
            self._summaries(path, file)
            self.problems[path] += checkpoint_reads(file)
            self._initializers(path, file)
            shown = {node: cst.parse_expression(name) for node, name in shown_modules(file).items()}
            self.rewriters[path].replaced.update(shown)
        self._place_helpers()
        for rewriter in self.rewriters.values():
            rewriter.network, rewriter.untold = self.plan.visited.keys(), self.plan.untold
        for path, file in self.group.files.items():
            self._flags(path, file)

    def finish(self) -> tuple[dict[Path, str], dict[Path, list[Finding]]]:
        """Writes the files behind `prepare`, which finds what else stands in the way."""
        modules = {path: self._finish(file) for path, file in self.group.files.items()}
        in_both = {path for path in modules if self.rewriters[path].in_both}
        texts = _Texts(modules, in_both, self._asked_for_iterators)
        self._check_config_reads(texts)
        for path, unit in self.used_in_both.items():
            if not runs_in_both(self.group.files[path].text, texts[path], self.serving_files.get(path, ())):
                message = f"`{unit.name.value}` is used by code that stays TensorFlow 1: move it to a file of its own"
                self.problems[path].append(Blocked("TFM114", unit.name, message))
        self._dropped_regularizers()
        foreign = self._blocked_elsewhere()
        # What is left of the Estimator, or of its strategy, when that stands in the way is no problem of its own.
        left = ["`tf.estimator."] if any(self.problems.values()) or foreign else []
        if any(p.code in _OF_STRATEGIES for problems in self.problems.values() for p in problems):
            left += ["`tf.distribute.", "`tf.contrib.distribute."]
        found = {one.code for problems in self.problems.values() for one in problems}
        self.by_drivers = bool(found) and found <= _OF_DRIVERS and not self.stuck_before_drivers and not foreign
        for path, rewriter in self.rewriters.items():
            unread = any(program.model_fn not in self.models for program in self.group.programs)
            known = len(self.problems[path])
            self.problems[path] += [
                problem
                for problem in rewriter.problems
                if not any(name in problem.message for name in left) and not (unread and only_follows(problem))
            ]
            self.by_drivers = self.by_drivers and len(self.problems[path]) == known
        refused = any(self.problems.values()) or foreign
        return ({} if refused else {path: texts[path] for path in modules}), self._findings(refused)

    def _asked_for_iterators(self, path: Path) -> bool:
        """Whether code that does not change with the group may ask datasets of a file for an iterator."""
        files = [file for file in self.project.files if file.path not in self.group.files]
        asking = [file.path for file in files if asks_for_iterators(file.text)]
        return bool(asking) and names_read(self.project, path, asking) != set()

    def _config_reads(self) -> None:
        """Writes what a RunConfig was given where it is read, before the new lines that may hold it are made."""
        for program in self.group.programs:
            rewriter = self.rewriters[program.file.path]
            for place, value in program.config_reads.given.items():
                new = value.visit(rewriter)
                assert isinstance(new, cst.BaseExpression)
                rewriter.replaced[place] = written(program.file, place, new)

    def _check_config_reads(self, texts: Mapping[Path, str]) -> None:
        """Finds reads of a RunConfig that got into new lines by another way, where it is not made any more."""
        for path, file in self.group.files.items():
            reads = [p.config_reads for p in self.group.programs if p.file.path == path]
            given = [node for one in reads for node in one.given if isinstance(node, cst.Attribute)]
            given = list(dict.fromkeys(given))
            for text in sorted({dotted(node) or "" for node in given}):
                places = [node for node in given if dotted(node) == text]
                count = re.compile(rf"(?<![\w.]){re.escape(text)}\b")
                if len(count.findall(texts[path])) > len(count.findall(file.text)) - len(places):
                    message = f"`{text}` is read in lines that are replaced: give its value a name before"
                    self.problems[path].append(Blocked("TFM108", places[0], message))

    def _never_run(self) -> frozenset[cst.CSTNode]:
        """Statements of model_fns that the programs never come to."""
        return frozenset()

    def _models(self, models: dict[cst.FunctionDef, tuple[EmittedModel, bool]]) -> None:
        for program in self.group.programs:
            self.guarded(program.model_file, partial(self._model, program, models))

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
        updates = set(self.updating.values())
        for rewriter in self.rewriters.values():
            rewriter.keep_regularizers = keep or not self.regularized
            rewriter.updates = next(iter(updates), True) if len(updates) < 2 else None

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

    def _find_partitioners(self, path: Path, file: ParsedFile) -> None:
        """Partitioners of variable scopes outside the model_fns."""
        if not any("partitioner" in one.text for one in self.project.files):
            return  # all three have the word in their names, and no new code has it from elsewhere
        probe = FileRewriter(file.imports, file.code, definition=file.constants.get)
        transformed(file.module, probe.prepare(file.module, self.changes[path]))
        self.partitioners += [(file, node, text) for node, text in probe.partitioners]

    def _place_helpers(self) -> None:
        for program in self.group.programs:
            changes = self.changes[program.file.path]
            if changes.helpers_before is None:
                gone = self.rewriters[program.file.path].is_gone
                scoped = self.scoped.get(program.place.call)
                first = scoped.first if scoped is not None and scoped.runs else program.place.call
                changes.helpers_before = _top_level(program.file.module, first, gone)

    def _model(self, program: TrainingProgram, models: dict[cst.FunctionDef, tuple[EmittedModel, bool]]) -> None:
        if program.model_fn in models:
            return
        if program.model.ready:
            models[program.model_fn] = ready_model(program.model_fn), False
            return
        file = program.model_file
        sharing = [p for p in self.group.programs if p.model_fn is program.model_fn]
        wants = any(p.does("predict") or p.servings for p in sharing)
        self.changes[file.path].statements[program.model_fn] = []  # not to be walked into, whatever happens below
        try:
            function = self._read_model(program)
            if function is None:
                self.problems[file.path] += self._other_problems(program)
                return
            self.regularized[program.model_fn] = function.regularized
            self.updating[program.model_fn] = function.train.updates
            scope = Scope.of(self.project, file, program.model_fn)
            calls = [*(s.node for s in function.statements), *(spec.call for spec in function.body.specs)]
            plan_model(self.plan, self.project, scope, function.body.names, calls, function.inlined)
            self.layer_names.update(name_layers(self.project, scope, calls, self.layer_names))
            self._plan_weights(program, function)
            read_all = self._name_variables(program, function, scope, calls)
            replicas = any(self._strategy(p).in_step and not self.loop.own for p in sharing)
            self._check_replicas(sharing)
            emitted = emit_model_function(function, wants, self._training(program), replicas, self.plan)
            if read_all or function.regularized:
                self._check_unused(program, function, scope, emitted, read_all)
            if self.training[file.path].divided:
                self._check_examples(program, emitted)
        except Blocked:
            self.problems[file.path] += self._other_problems(program)
            raise
        if any(self._strategy(p).mesh for p in sharing):
            functions = called(self.plan.visited)
            gathers = any(dtensor.gathers(self._strategy(p).layouts) for p in sharing)
            emitted = on_mesh(
                emitted, file, program.model_fn.name, self.training[file.path].helpers, functions, gathers
            )
            if any(draws_batches(p, self._strategy(p)) for p in sharing):
                self._check_rounds(program, emitted)
        for made in function.inlined:
            if made in file.module.body:
                self.inlined.setdefault(made, (file, []))[1].append(program.model_fn)
        hooks.remove_hooks_of_specs(self, file, program, function.hooks)
        if any(p.servings for p in sharing):
            signatures = signature_names(file, function.export_outputs, function.predictions, function.define)
            self.signatures[program.model_fn] = signatures
            self.remarks[file.path] += signatures.remarks
        self.changes[file.path].statements[program.model_fn] = [emitted.node]
        self.problems[file.path] += emitted.problems
        self.remarks[file.path] += emitted.remarks
        self.changes[file.path].needs |= emitted.needs
        self.changes[file.path].classes.update(emitted.classes)
        models[program.model_fn] = emitted, predicts_dicts(function, self.project)

    def _plan_weights(self, program: TrainingProgram, function: ModelFunction | None = None) -> None:
        """Finds the weights that a network makes by itself; without what was read of it for the sake of its report."""
        sharing = [p for p in self.group.programs if p.model_fn is program.model_fn]
        if self.keras.number != 2 or any(self._strategy(p).mesh for p in sharing):
            return  # not tried there
        if function is None:
            self.own_weights.update(self.everything.own_weights(program))
            return
        given, made = program.model.parameters, function.statements
        found = own_weights(self.project, program.model_file, function.node, made, given.features, given.labels)
        self.own_weights.update(found)

    def _other_problems(self, program: TrainingProgram) -> list[Blocked]:
        """The lines of a refused model_fn that are in the way too; what other functions make is known behind it."""
        self._plan_weights(program)
        return self._problems_of_lines(program)

    def _problems_of_lines(self, program: TrainingProgram) -> list[Blocked]:
        return other_problems(program.model_file, program.model_fn, program.model.parameters, self.own_weights)

    def _read_model(self, program: TrainingProgram) -> ModelFunction | None:
        """A model_fn as plain data; None where it is refused, which is among the problems of its file."""
        file = program.model_file
        refusals = Refusals()
        refusals.of(lambda: self._check_names(program), None)
        refusals.of(lambda: self._check_towers(program), None)
        function = None
        if not refusals:  # where names cannot be followed, nothing is known of what is computed with them
            known = self.everything.followed.get(program.model_fn)
            if known is None or known.model is not program.model:
                read, function = self._follow_model(program, refusals)
                known = FollowedModel(program.model, read, function, tuple(refusals.found))
                self.everything.followed[program.model_fn] = known
            for problem in known.found:
                refusals.add(problem)
            function = known.function
            if function is not None and function.train.updates_keras:
                for reached in reach(self.project, file, program.model_fn).values():
                    if reached.path in self.rewriters:
                        self.rewriters[reached.path].moves_averages = True
            if known.read is not None:
                self.read[program.model_fn] = known.read
        self._refuse(file, refusals)
        return None if refusals else function

    def _write_lambdas(self, program: TrainingProgram) -> None:
        """Lambdas that a model_fn is made of. Raises Blocked (TFM104) where one is in a file that does not change."""
        for node, (file, new) in program.model.lambdas.items():
            if file.path not in self.rewriters:
                message = f"the model_fn is made of a lambda in {file.path.name}, which does not change with this file"
                raise Blocked("TFM104", program.place.call, message)
            rewritten = new.visit(self.rewriters[file.path])
            assert isinstance(rewritten, cst.BaseExpression)
            self.changes[file.path].expressions[node] = rewritten

    def _follow_model(
        self, program: TrainingProgram, refusals: Refusals
    ) -> tuple[Inlined | None, ModelFunction | None]:
        """A model_fn with its helpers in the places of their calls, and that as plain data, as far as both go."""
        file, parameters = program.model_file, program.model.parameters
        read = refusals.of(lambda: inline_helpers(self.project, program.model), None)
        if read is None:
            return None, None
        function = read_model_function(self.project, file, read.node, parameters, refusals)
        if function is not None:
            for mode in (TRAIN, EVAL):
                # The variables of a Keras model are all of them, whenever they are asked for.
                nodes = [s.node for s in function.statements if mode in s.modes]
                refusals.of(partial(check_order, self.project, file, nodes), None)
            moved = function.train.updates_keras
            refusals.of(lambda: self._check_moving_averages(program, moved), None)
        return read, function

    def _check_moving_averages(self, program: TrainingProgram, moved: bool) -> None:
        """Refuses a batch normalization of Keras whose moving averages no step moves, as `fit` does. Raises Blocked.

        Its updates are in no collection (TensorFlow 1.15.5 and 2.15.1): a train_op has to ask the model for them. Where
        it does, the layers of TensorFlow 1 go on with the batch's statistics when they are not trainable, those of
        TensorFlow 2 do not.
        """
        for node, file in reach(self.project, program.model_file, program.model_fn).items():
            for call in calls_in(node):
                name = file.imports.tensorflow(call.func) or ""
                if moved and name == "tf.keras.layers.BatchNormalization" and not file.imports.means_two(call.func):
                    frozen = [arg for arg in call.args if arg.keyword is not None and arg.keyword.value == "trainable"]
                    frozen = [arg for arg in frozen if not is_true(arg.value)]
                    targets = [one.target for one in nodes_in(file.module) if isinstance(one, cst.AssignTarget)]
                    if frozen or any(
                        isinstance(one, cst.Attribute) and one.attr.value == "trainable" for one in targets
                    ):
                        message = "a batch normalization that is not trainable is another one in TensorFlow 2"
                        raise InFile(file, "TFM202", call, message)
                elif not moved and _normalizes_batches(name) and not _is_frozen(call):
                    message = (
                        "no step moves the averages of this layer, and `fit` would: let the train_op run "
                        "`model.get_updates_for(None) + model.get_updates_for(features)`"
                    )
                    raise InFile(file, "TFM202", call, message)

    def refused(self) -> dict[Path, list[Finding]]:
        """What else stands in the way of programs that were refused when they were read: nothing of them is written."""
        for program in self.group.programs:
            self.guarded(program.file, partial(self._check_hidden, program))
            if not program.model.ready:
                self.guarded(program.model_file, partial(self._survey_model, program))
        return self._findings(refused=True)

    def _survey_model(self, program: TrainingProgram) -> None:
        """Finds what stands in the way in the lines of a model_fn, whether it can be read or not."""
        if program.model_fn not in self.read:
            self._read_model(program)
            if touches_weights(program.model_file, program.model_fn):  # nobody looks at other functions here
                self._plan_weights(program)
            self.problems[program.model_file.path] += self._problems_of_lines(program)

    def _name_variables(
        self, program: TrainingProgram, function: ModelFunction, scope: Scope, calls: Sequence[cst.CSTNode]
    ) -> bool:
        """Gives layers the names that a loss or a metric means by the names of variables, and tells whether one reads
        variables at all. Raises Blocked (TFM312)."""
        if not isinstance(function.loss, GeneralLoss):
            return False
        file = function.file
        nodes: list[cst.CSTNode] = [function.statements[i].node for i in function.loss.carved.statements]
        nodes += [*function.loss.nodes, *(node for node in calls if measures(node, file.imports))]
        reads = handled(self.project, file, function.node, list(dict.fromkeys(nodes)))
        for code in reads:
            place = order_read(code)
            if place is not None:
                message = "a Keras model has its variables in another order: choose them by names or shapes"
                raise Blocked("TFM312", place if code.file is file else program.model_fn.name, message)
        layers = named_layers(self.project, scope, calls, self.layer_names)
        given = names_to_give(layers, reads, slashes=self.keras.number == 2)
        for call, name in given.items():
            if self.layer_names.get(call, name) != name:
                message = f"two model_fns want this layer to have different names (`{name}` is one): make two functions"
                raise Blocked("TFM312", program.model_fn.name, message)
        self.layer_names.update(given)
        return bool(reads)

    def _check_unused(
        self, program: TrainingProgram, function: ModelFunction, scope: Scope, emitted: EmittedModel, read_all: bool
    ) -> None:
        """Refuses a loss over variables of layers that the Keras model does not have. Raises Blocked (TFM312)."""
        kept = [s for i, s in enumerate(function.statements) if i not in function.train.consumed]
        found = unused_layers(self.project, scope, kept, emitted.outputs, function.output)
        if found is None or not (read_all or says(self._texts(program), "regularizer")):
            return
        message = "the loss adds up variables of a layer that it is not computed from: a Keras model has no such layer"
        raise Blocked("TFM312", found, message)

    def _texts(self, program: TrainingProgram) -> str:
        """The code that a model_fn reaches."""
        region = reach(self.project, program.model_file, program.model_fn)
        return "\n".join(file.code(node) for node, file in region.items())

    def _check_hidden(self, program: TrainingProgram) -> None:
        """Refuses a program that gives names values in ways which no statement shows. Raises Blocked (TFM128)."""
        run: dict[cst.CSTNode, ParsedFile] = {file.module: file for file in self.group.files.values()}
        run.update(reach(self.project, program.model_file, program.model_fn))
        if program.scope not in run:
            run[program.scope] = program.file
        for node, file in run.items():
            try:
                rebinding.check_hidden(self.project, file, node)
            except Blocked as problem:
                raise InFile(file, problem.code, problem.node, problem.message) from None

    def _check_folder(self, program: TrainingProgram) -> None:
        """Refuses an Estimator that reads what another one has trained in their model_dir. Raises Blocked (TFM103)."""
        for other in self.group.programs:
            if other is not program and program.may_read(other):
                message = (
                    f"`{program.variable}` reads what `{other.variable}` trains in the same model_dir: make it after "
                    "that training"
                )
                raise Blocked("TFM103", program.place.call, message)

    def _check_names(self, program: TrainingProgram) -> None:
        """Refuses a network that binds a name in a way that is not followed. Raises Blocked (TFM128)."""
        rebinding.check_mode(program.model_fn, program.model.parameters.mode)
        for node, file in reach(self.project, program.model_file, program.model_fn).items():
            try:
                rebinding.check_names(node)
            except Blocked as problem:
                raise InFile(file, problem.code, problem.node, problem.message) from None

    def _check_towers(self, program: TrainingProgram) -> None:
        """Refuses a network for each device, and a strategy around what was some. Raises Blocked (TFM743)."""
        given = program.config.get("train_distribute")
        if program.of_towers and given is not None and not is_none(given):
            raise Blocked("TFM743", program.model_fn.name, "towers under a strategy: each replica would build all")
        for node, file in reach(self.project, program.model_file, program.model_fn).items():
            found = find_towers(node, file.imports)
            if found is not None:
                message = "towers that average their gradients: write the model_fn for one, and take a MirroredStrategy"
                place = found if file is program.model_file else program.model_fn.name
                raise Blocked("TFM743", place, message)

    def _check_examples(self, program: TrainingProgram, emitted: EmittedModel) -> None:
        """Refuses what is computed over all examples of a batch that replicas divide. Raises Blocked (TFM739)."""
        for node, file in self._functions_of(program, emitted):
            found = over_examples(node, file.imports)
            if found is not None:
                text = file.code(found)
                message = f"`{text}` is computed over all examples, which replicas divide: `--strategy one-device`"
                raise Blocked("TFM739", program.model_fn.name if node is emitted.node else found, message)

    def _check_rounds(self, program: TrainingProgram, emitted: EmittedModel) -> None:
        """Refuses what replicas computed each over its own batch, which a mesh has in one. Raises Blocked (TFM790)."""
        place = program.model_fn.name
        if emitted.loss_of_batch:
            message = "each replica divided its loss by what is in its own batch: a mesh would by all of them"
            raise Blocked("TFM790", place, f"{message}: write a mean over examples, or choose another `--strategy`")
        for node, file in self._functions_of(program, emitted):
            text = bare(file.code(node))
            found = over_examples(node, file.imports)
            what = None
            if re.search(r"[Bb]atch_?[Nn]orm", text):
                what = "batches are normalized, which is"
            elif re.search(r"\b(?:global_)?clip(?:norm|value)=|tf\.clip_by_\w*norm", text):
                what = "gradients are"
            elif found is not None:
                what = f"`{file.code(found)}` is"
            if what is not None:
                message = f"{what} computed by each replica for its own batch, and on a mesh for those of all"
                raise Blocked("TFM790", place, f"{message}: choose another `--strategy`")

    def _functions_of(
        self, program: TrainingProgram, emitted: EmittedModel
    ) -> Iterator[tuple[cst.CSTNode, ParsedFile]]:
        """The function that makes the model, as it is emitted, and the other functions that it reaches."""
        yield emitted.node, program.model_file
        for node, file in reach(self.project, program.model_file, program.model_fn).items():
            if node is not program.model_fn:
                yield node, file

    def _training(self, program: TrainingProgram) -> TrainingContext:
        """What is known of the training of a program: on mirrored workers gradients are clipped before their sum."""
        strategy = self._strategy(program)
        sharing = [p for p in self.group.programs if p.model_fn is program.model_fn]
        known = self.training[program.model_file.path]
        return replace(
            known,
            steps_per_execution=any(self._takes_steps(p) for p in sharing),
            of_execution=min(self._of_execution(p) for p in sharing),
            per_replica=strategy.in_step
            and not strategy.parameter_servers
            and not self.keras.clips_per_replica
            and not (self.loop.own and divides_batches(program, strategy)),
            resumes=any(p.model_dir is not None or p.flowing is not None for p in sharing),
            of_examples=self.loop.own,
            on_mesh=strategy.mesh,
            fused=known.fused and strategy.fuses,
        )

    def _takes_steps(self, program: TrainingProgram) -> bool:
        """Whether the driver says how many steps `fit` makes in one execution. A lambda would not take that."""
        if self._executes_apart(program):
            return True
        if program.tpu is None or program.tpu.iterations is None or program.model.lambdas or self.loop.own:
            return False
        return self._strategy(program) is TPU

    def _executes_apart(self, program: TrainingProgram) -> bool:
        """Whether the steps of an execution depend on the parameter servers that the program finds when it starts."""
        if self._strategy(program) is not AUTO or program.model.lambdas or program.train_and_evaluate is None:
            return False
        return 0 < self._on_servers(program) < STEPS_OF_EXECUTION == steps_of_execution(self.project, program)

    def _many_on_clusters(self, program: TrainingProgram) -> bool:
        """Whether `fit` makes several steps in one execution on the clusters that the program may find."""
        return self._strategy(program).reads_cluster and (
            self._executes_apart(program) or self._of_execution(program) > 1
        )

    def _on_servers(self, program: TrainingProgram) -> int:
        """How many steps a worker of parameter servers makes in one execution; 0 where it was not looked at."""
        if not self._strategy(program).parameter_servers:
            return 0
        if self.loop.own or self.keras is not KERAS_2:
            return 0
        if may_end(self.project, program):
            return 0
        return steps_on_servers(self.project, program)

    def _of_execution(self, program: TrainingProgram) -> int:
        """How many steps `fit` makes in one execution, whatever the driver says."""
        strategy = self._strategy(program)
        if program.flowing is not None:
            return 1
        if self.loop.own or not (self.keras.cuts_executions or (strategy.alone and epochs_are_executions(program))):
            return 1
        if strategy.parameter_servers:
            apart = strategy is AUTO and self._on_servers(program) < STEPS_OF_EXECUTION
            return 1 if apart else self._on_servers(program) or 1
        if not strategy.alone and strategy.word not in _SAME_STEPS:
            return 1
        if strategy.creates and ends_early(self.project, program):
            return 1  # an execution whose data end in it is lost: what it has done is not told of
        return steps_of_execution(self.project, program)

    def _check_replicas(self, programs: Iterable[TrainingProgram]) -> None:
        """Refuses what replicas in step compute in another way in Keras, where the Estimator had some."""
        for program in programs:
            strategy = self._strategy(program)
            local = strategy.per_replica or strategy.mesh
            several = local or strategy.mirrored_workers
            if program.config.get("train_distribute") is not None and several and strategy is not AUTO:
                shares = self.loop.own and strategy.per_replica and is_none(program.config.get("eval_distribute"))
                region = reach(self.project, program.model_file, program.model_fn)
                if check_replicas(region, local, shares):
                    self.sharing_penalties.add(program.model_fn)

    def _share_strategies(self) -> None:
        """Finds the lines that make a strategy for several Estimators of a file."""
        made: dict[cst.SimpleStatementLine, set[cst.Call]] = {}
        for program in self.group.programs:
            try:
                own = own_strategy(program)
            except Blocked:
                continue  # its driver says so
            if own is not None and own.line is not None:
                made.setdefault(own.line, set()).add(program.place.call)
                if len(made[own.line]) > 1:
                    self.names[program.file.path].shared.add(own.line)

    def _strategy(self, program: TrainingProgram) -> Target:
        """The strategy of a program. Raises Blocked (TFM704, TFM872)."""
        if program.model.ready and self.keras.number == 3:
            message = "a Keras model of the program's own was not tried on Keras 3: leave `--keras 3` out"
            raise Blocked("TFM870", program.place.call, message)
        strategy = choose(program, self.asked)
        if program.flowing is not None and (
            strategy not in (ONE_DEVICE, AUTO) or self.loop.own or self.keras is not KERAS_2
        ):
            message = (
                "this Estimator is not used in the function that makes it: that is for one device, for what TF_CONFIG "
                "asks for, for `fit` and Keras 2"
            )
            raise Blocked("TFM704", program.place.call, message)
        if program.flowing is not None and strategy is AUTO and self.clusters != ONE_EVALUATOR:
            message = "this Estimator is not used in the function that makes it: an evaluator task evaluates it"
            raise Blocked("TFM704", program.place.call, message)
        if program.model.ready and not strategy.alone and not strategy.mesh and not self.loop.own:
            strategy = self._of_ready_model(program, strategy)
        if strategy.mesh:
            strategy = for_mesh(program, strategy, self.keras)
        elif self.loop.own:
            strategy = for_own_loop(program, strategy, self.keras)
            if self.asked is AUTO and any("TF_CONFIG" in file.bare for file in self.group.files.values()):
                message = "the program reads or writes TF_CONFIG: name the `--strategy` of its loop"
                raise Blocked("TFM737", program.place.call, message)
            if self.training[program.file.path].divided and draws_batches(program, strategy):
                message = "a program beside it has no strategy, so that its replicas divide batches: migrate it alone"
                raise Blocked("TFM737", program.place.call, message)
        if self.keras.fits_on_clusters or strategy.fits_on_keras3 or (self.loop.own and strategy.loops_on_keras3):
            return strategy
        if strategy is not AUTO:
            message = f"this program was not tried on Keras 3 under the {strategy.word} strategy: leave `--keras 3` out"
            raise Blocked("TFM872", program.place.call, message)
        if any("TF_CONFIG" in file.bare for file in self.group.files.values()):
            message = "the program reads or writes TF_CONFIG, and Keras 3 fits on no cluster: leave `--keras 3` out"
            raise Blocked("TFM872", program.place.call, message)
        message = "the new program trains in its own process, whatever TF_CONFIG says"
        remark = Blocked("TFM873", program.place.call, message)
        if remark not in self.remarks[program.file.path]:
            self.remarks[program.file.path].append(remark)
        return ONE_DEVICE

    def _of_ready_model(self, program: TrainingProgram, strategy: Target) -> Target:
        """The strategy of a Keras model of the program's own, which has to be made in its scope."""
        try:
            self.scoped[program.place.call] = scoped = ready.into_scope(self.project, program, strategy)
        except Blocked as problem:
            if strategy is not AUTO or any("TF_CONFIG" in file.bare for file in self.group.files.values()):
                raise
            message = f"the new program trains in its own process, whatever TF_CONFIG says: {problem.message}"
            remark = Blocked("TFM728", program.place.call, message)
            if remark.message not in [one.message for one in self.remarks[program.file.path]]:
                self.remarks[program.file.path].append(remark)
            return ONE_DEVICE
        if strategy.in_step and strategy is not AUTO:
            check_optimizers(program, scoped)
        return strategy

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

    def _driver(self, program: TrainingProgram, models: dict[cst.FunctionDef, tuple[EmittedModel, bool]]) -> None:
        emitted, of_dicts = models[program.model_fn]
        file = program.file
        strategy = self._strategy(program)
        if self.loop.own and strategy.mirrored_workers and divides_batches(program, strategy):
            workers.check_batches(self, program)
        if self.loop.own and strategy.parameter_servers:
            servers.check_data(self, program)
        if strategy.parameter_servers:
            servers.check_tasks(self, program, strategy)
        served = self.signatures.get(program.model_fn)
        shape = (emitted.has_predictor, of_dicts, program.model.parameters.params is None, served)
        known = self.driven.setdefault(program.place.call, shape)
        if known != shape:
            message = "the model_fns that this Estimator may have differ in what they take or predict"
            raise Blocked("TFM105", program.place.call, message)
        if any(p.place is program.place for p in self.drivers):
            return  # the same lines drive another model_fn too
        if program.flowing is not None:
            self._flowing(program, models, strategy)
            self.strategies.append(strategy)
            return
        self.drivers.append(program)
        if strategy.mesh:
            strategy = partitioning.on_mesh(self, program, emitted, strategy)
            if emitted.draws or self.draws:
                strategy = dtensor.drawing(strategy)
                message = "layers that drop units draw from generators, each device for its part of a tensor"
                self.remarks[file.path].append(Blocked("TFM797", program.place.call, message))
        both = program.train_and_evaluate
        calls = [program.place, *(use.place for use in program.uses), *([] if both is None else [both.place])]
        read = [*(place.call for place in calls), *program.removed]
        rebinding.check_names(program.scope, rebinding.names_behind(program.scope, read))
        partitioner = partitioning.partitioner_of(self, program, emitted, strategy)
        own = own_strategy(program) if program.config.get("train_distribute") is not None else None
        if own is not None and own.choice is not None:
            check_files(own.choice, program, self.everything.mentioning(own.choice.names))
        model = DrivenModel(
            has_predictor=emitted.has_predictor,
            predictions_are_dicts=of_dicts,
            signatures=self.signatures.get(program.model_fn, Signatures()).names,
            stop=emitted.hooks.stop,
            takes_steps=self._takes_steps(program),
            loss_of_class=emitted.loss_of_class,
            loss_of_batch=emitted.loss_of_batch,
            measures=emitted.measures,
            measures_itself=emitted.measures_itself,
            scoped=self.scoped.get(program.place.call),
            rates=self._rates(program),
            shares_penalties=program.model_fn in self.sharing_penalties,
        )
        asked = Asked(
            target=strategy,
            partitioner=partitioner,
            keras=self.keras,
            loop=self.loop,
            on_servers=self._on_servers(program) if self._executes_apart(program) or strategy is not AUTO else 0,
            many_steps=self._many_on_clusters(program),
            clusters=self.clusters,
        )
        names = self.names[file.path]
        driver = emit_driver(self.project, program, self.rewriters[file.path], names, model, asked)
        if driver.in_scope and emitted.outside is not None and not calls_in(program.model.callee):
            message = (
                "this optimizer is made before the strategy, which has to make its variables: make it in the model_fn"
            )
            raise Blocked("TFM403", emitted.outside, message)
        self.rewriters[file.path].before.update(driver.before)
        changes = self.changes[file.path]
        changes.within.update({one: within for within in driver.within for one in within.statements})
        changes.statements.update(driver.statements)
        whole = [node for node in program.removed if isinstance(node, (cst.ClassDef, cst.FunctionDef))]
        changes.moved.update(whole)  # comments and all
        for node, new in driver.expressions.items():
            if node in changes.expressions and file.code(changes.expressions[node]) != file.code(new):
                message = "a function is given several Estimators that this line would become different code for"
                raise Blocked("TFM103", node, message)
        changes.expressions.update(driver.expressions)
        for helper in driver.helpers:
            if helper not in changes.helpers:
                changes.helpers.append(helper)
        changes.needs |= driver.needs
        for changes_of_file in self.changes.values():
            changes_of_file.keras = self.keras  # whichever module is imported first must choose
            changes_of_file.on_cluster |= strategy.reads_cluster
        self.remarks[file.path] += driver.remarks
        steps = emitted.of_execution
        if self._executes_apart(program):
            fewer = self._on_servers(program)
            message = f"without servers `fit` makes {STEPS_OF_EXECUTION} steps in one execution, which callbacks see"
            if fewer > 1:
                message += f"; with servers it makes {fewer}"
            self.remarks[file.path].append(Blocked("TFM725", program.place.call, message))
        if steps > 1:
            message = f"`fit` makes {steps} steps in one execution: callbacks that you add see every {steps}th step"
            self.remarks[file.path].append(Blocked("TFM725", program.place.call, message))
        if strategy.parameter_servers and emitted is not None:
            message = "on parameter servers the chief only coordinates: one worker more keeps the throughput"
            if strategy.word == "parameter-server" and program.variable not in file.clusters:
                message += "; TF_CONFIG has to name a chief (the new program raises an error where it does not)"
            self.remarks[file.path].append(Blocked("TFM706", program.place.call, message))
        self.strategies.append(strategy)

    def _flowing(
        self,
        program: TrainingProgram,
        models: Mapping[cst.FunctionDef, tuple[EmittedModel, bool]],
        strategy: Target,
    ) -> None:
        """The object in the place of an Estimator that goes from one function to another."""
        choice = [one for one in self.group.programs if one.place is program.place]
        if any(one.model_fn not in models for one in choice) or len({self._rates(one) for one in choice}) > 1:
            message = "the model_fns that this Estimator may have differ in their optimizers"
            raise Blocked("TFM105", program.place.call, message)
        for one in choice:
            check_model(self.project, one, models[one.model_fn][0])
        staying = {one.place.call for one in self.group.programs if one.flowing is not None}
        if program.flowing is not None and not staying.issuperset(program.flowing.config_for):
            message = "the RunConfig is another Estimator's, too, which becomes something else: give each its own"
            raise Blocked("TFM103", program.place.call, message)
        emitted, of_dicts = models[program.model_fn]
        rebinding.check_names(program.scope, rebinding.names_behind(program.scope, [program.place.call]))
        names, rates = self.names[program.file.path], self._rates(program)
        beside = [one.flowing for one in self.group.programs if one.file is program.file and one.flowing is not None]
        partitioner = partitioning.partitioner_of(self, program, emitted, strategy)
        make, indent = strategy.helper, program.file.module.default_indent
        driver = emit_flowing(
            self.project,
            program,
            self.rewriters,
            emitted,
            of_dicts,
            names,
            rates,
            beside,
            None if make is None else lambda name: make(name, partitioner, indent),
            self.signatures.get(program.model_fn, Signatures()).names,
        )
        self.drivers.append(program)
        for path, new in driver.expressions.items():
            for node, expression in new.items():
                known = self.changes[path].expressions.setdefault(node, expression)
                if program.file.code(known) != program.file.code(expression):
                    message = "this line is for several Estimators that it would become different code for"
                    raise Blocked("TFM103", program.place.call, message)
        changes = self.changes[program.file.path]
        changes.statements.update({line: [] for line in program.removed})
        for where, line in () if program.flowing is None else program.flowing.removed:
            self.changes[where.path].statements[line] = []
        changes.helpers += [one for one in driver.helpers if one not in changes.helpers]
        changes.needs |= driver.needs
        for changes_of_file in self.changes.values():
            changes_of_file.keras = self.keras
            changes_of_file.on_cluster |= strategy.reads_cluster
        for where, remark in driver.remarks:
            self.remarks[where.path].append(remark)

    def _rates(self, program: TrainingProgram) -> str:
        """Whose learning rates a checkpoint leaves as they are, see setup.rates_kept; "" where it restores them.

        Rates of tf.train optimizers are part of a program. Those of Keras optimizers were variables, which an Estimator
        saved and restored (TensorFlow 1.15.5).
        """
        nodes = reach(self.project, program.model_file, program.model_fn)
        nodes |= {program.scope: program.file} if program.model.ready else {}
        names = {file.imports.tensorflow(call.func) or "" for node, file in nodes.items() for call in calls_in(node)}
        trains = any(name.startswith("tf.train.") and is_optimizer(name) for name in names)
        if any(is_optimizer(name) and not name.startswith("tf.train.") for name in names) or (
            program.model.ready and not trains
        ):
            return ""
        if self.keras.number == 3:
            return RATE_ON_KERAS3
        parts = any(".parts = [" in text for text in self.training[program.model_file.path].helpers.values())
        return RATES_OF_PARTS if parts else RATE

    def _finish(self, file: ParsedFile) -> cst.Module:
        module = transformed(file.module, self.rewriters[file.path])
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
        module = finish_imports(module, changes)
        return with_imports(module, {name: found.line for name, found in file.further.items()})

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
        causes = any(not _is_of_program(problem) for problems in self.problems.values() for problem in problems)
        for path, file in [*self.group.files.items(), *self.outside.items()]:
            found.setdefault(path, [])
            for problem in self.problems[path]:
                if causes and _is_of_program(problem):
                    continue  # it goes with its program, which something else is in the way of
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
                done = program.file.finding("TFM101", Severity.MIGRATED, program.place.call, message)
                places = program.file.choices.get((done.line, done.column), ())
                message = "this Estimator, one of those that a condition chooses from, is now a Keras program"
                found[program.file.path] += [
                    replace(done, line=line, column=column, message=message) for line, column in places
                ] or [done]
                if (done.line, done.column) in program.file.built:
                    path, (line, column) = program.file.built[done.line, done.column]
                    found.setdefault(path, []).append(replace(done, path=str(path), line=line, column=column))
        return {path: list(dict.fromkeys(lines)) for path, lines in found.items() if lines}


def _normalizes_batches(name: str) -> bool:
    """Whether a class of Keras is a batch normalization, or one of its ready networks that hold some."""
    _, _, network = name.partition("tf.keras.applications.")
    last = network.rpartition(".")[2]
    return name == "tf.keras.layers.BatchNormalization" or (last[:1].isupper() and not last.startswith("VGG"))


def _is_frozen(call: cst.Call) -> bool:
    """Whether a layer is made with `trainable=False`, so that a batch normalization stays as it is."""
    return any(
        arg.keyword is not None and arg.keyword.value == "trainable" and is_false(arg.value) for arg in call.args
    )


def _is_of_program(problem: Blocked) -> bool:
    """Whether a problem is a symbol without a home that goes where its program is carried over."""
    return problem.code == "TFM203" and problem.message.startswith(tuple(f"`{one}" for one in _OF_PROGRAMS))


def _top_level(
    module: cst.Module, node: cst.CSTNode, is_gone: Callable[[cst.CSTNode], bool] = lambda statement: False
) -> cst.CSTNode | None:
    """Where helper functions go: before the top-level code that holds a node, after the functions above it.

    A statement that is removed cannot be the place.
    """
    path = path_to(module, node)
    if len(path) < 2:
        return None
    first = index = next(i for i, statement in enumerate(module.body) if statement is path[1])
    while first > 0 and isinstance(module.body[first - 1], cst.SimpleStatementLine):
        first -= 1
    behind_function = first > 0 and isinstance(module.body[first - 1], (cst.FunctionDef, cst.ClassDef))
    start = first if behind_function else index
    return next((s for s in module.body[start:] if not is_gone(s)), None)
