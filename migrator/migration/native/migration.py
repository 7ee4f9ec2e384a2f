"""Programs that share files, migrated together in the native form."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import libcst as cst

from migrator.emit.model_function import only_follows
from migrator.findings import Finding
from migrator.migration import hooks, inputs, leftovers, servings
from migrator.migration.native.checks import check_files_of_others, check_folder, check_hidden, check_references
from migrator.migration.native.drivers import place_helpers, write_driver
from migrator.migration.native.files import (
    NewTexts,
    asked_for_iterators,
    check_config_reads,
    find_partitioners,
    finish_file,
    parse_flags,
    write_config_reads,
    write_summaries,
)
from migrator.migration.native.models import survey_model, write_lambdas, write_models
from migrator.migration.native.regularizers import keep_regularizers, tell_regularizers
from migrator.migration.native.strategies import share_strategies
from migrator.migration.native.telling import findings_of
from migrator.migration.state import GroupState
from migrator.program.calls import functions_in
from migrator.program.parsed import Blocked
from migrator.program.shared import runs_in_both
from migrator.program.starts import checkpoint_reads
from migrator.program.telling import shown_modules
from migrator.rules.initializers import shared_initializers
from migrator.rules.predictors import looked_into

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
        beside = leftovers.leave_beside(self)
        hooks.leave_out_iterators(self)
        write_config_reads(self)
        for program in self.group.programs:
            self.guarded(program.file, partial(check_hidden, self, program))
            self.guarded(program.file, partial(check_folder, self, program))
        write_models(self)
        for path, file in self.group.files.items():
            left_alone = {inner for node in beside for inner in functions_in(node)}
            for function in functions_in(file.module):
                if function not in left_alone:
                    self.guarded(file, partial(inputs.write_inputs, self, path, file, function))
        for program in self.group.programs:
            self.guarded(program.file, partial(write_lambdas, self, program))
        for path, file in self.group.files.items():
            self.guarded(file, partial(inputs.write_arrays, self, path, file))
        hooks.write_hooks(self)
        for program in self.group.programs:
            self.guarded(program.file, partial(servings.write_servings, self, program))
        for file, problem in self.hparams.problems:
            self.problems[file.path].append(problem)
        keep_regularizers(self)
        check_references(self)
        leftovers.remove_helpers(self)
        # On a mesh all functions of the network are looked at, and get other layers where it wants those.
        for stays in (self.plan.visited if self.asked.mesh else self.plan.helpers).values():
            self.guarded(stays.file, partial(leftovers.write_helper, self, stays))
        for path, file in self.group.files.items():
            find_partitioners(self, path, file)
        share_strategies(self)
        self.stuck_before_drivers = self.stuck
        for program in self.group.programs:
            if program.model_fn in self.models:
                self.guarded(program.file, partial(write_driver, self, program))
        inputs.tell_shuffles(self, zip(self.drivers, self.strategies))
        for path, file in self.group.files.items():
            write_summaries(self, path, file)
            self.problems[path] += [*checkpoint_reads(file), *looked_into(file)]
            self.remarks[path] += shared_initializers(file)
            shown = {node: cst.parse_expression(name) for node, name in shown_modules(file).items()}
            self.rewriters[path].replaced.update(shown)
        place_helpers(self)
        for rewriter in self.rewriters.values():
            rewriter.network, rewriter.untold = self.plan.visited.keys(), self.plan.untold
        for path, file in self.group.files.items():
            parse_flags(self, path, file)

    def finish(self) -> tuple[dict[Path, str], dict[Path, list[Finding]]]:
        """Writes the files behind `prepare`, which finds what else stands in the way."""
        modules = {path: finish_file(self, file) for path, file in self.group.files.items()}
        in_both = {path for path in modules if self.rewriters[path].in_both}
        texts = NewTexts(modules, in_both, partial(asked_for_iterators, self))
        check_config_reads(self, texts)
        for path, unit in self.used_in_both.items():
            if not runs_in_both(self.group.files[path].text, texts[path], self.serving_files.get(path, ())):
                message = f"`{unit.name.value}` is used by code that stays TensorFlow 1: move it to its own file"
                self.problems[path].append(Blocked("TFM114", unit.name, message))
        tell_regularizers(self)
        foreign = check_files_of_others(self)
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
        return ({} if refused else {path: texts[path] for path in modules}), findings_of(self, refused)

    def refused(self) -> dict[Path, list[Finding]]:
        """What else stands in the way of programs that were refused when they were read: nothing of them is written."""
        for program in self.group.programs:
            self.guarded(program.file, partial(check_hidden, self, program))
            if not program.model.ready:
                self.guarded(program.model_file, partial(survey_model, self, program))
        return findings_of(self, refused=True)
