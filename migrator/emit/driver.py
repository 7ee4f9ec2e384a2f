"""The driver of a training program: what replaces the Estimator, its specs and the calls on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import libcst as cst

from migrator.emit.datasets import Datasets
from migrator.emit.file import Within
from migrator.emit.layout import call, statements
from migrator.emit.mesh import MESH
from migrator.emit.names import free
from migrator.emit.steps import STEPS
from migrator.names.bare import bare
from migrator.names.bindings import bound_in, values_given
from migrator.program.calls import is_false, is_none, number
from migrator.program.comments import comment_lines
from migrator.program.exports import EXPORTS
from migrator.program.params_changes import changes_later, changes_own
from migrator.program.parsed import Blocked, ParsedFile, Project, names_in
from migrator.program.ready_scopes import Scoped, is_mean
from migrator.program.region import Region, reach
from migrator.program.results import looks_at_all
from migrator.program.starts import VARIABLES, asks_global_step
from migrator.program.tpu import TpuUse
from migrator.program.training import (
    Lent,
    TrainAndEvaluate,
    TrainingProgram,
    Use,
    bindings,
    names_behind,
    path_to,
    rebound,
)
from migrator.rules.arrays import is_array_input
from migrator.rules.batches import LOSS_OF_EXAMPLES, check_batches, reads_batch, static_batches, whole_batches
from migrator.rules.endless import never_end
from migrator.rules.executions import STEPS_OF_EXECUTION, ends_early, know_their_sizes, trains_to_an_unknown_end
from migrator.rules.folders import may_be_empty
from migrator.rules.generation import KERAS_2, Keras
from migrator.rules.repeatable import Effect, acts, effect_of
from migrator.rules.rewriter import Rewriter
from migrator.rules.session_config import Setting
from migrator.rules.tpu_operations import told_on_tpu
from migrator.targets import dtensor, many_steps, setup, tf_config
from migrator.targets.choosing import (
    OwnStrategy,
    arguments_of,
    divides_batches,
    draws_batches,
    own_strategy,
    replicas_of,
    uses_local_gpus,
)
from migrator.targets.chosen import in_place
from migrator.targets.clusters import ONE_EVALUATOR, Clusters
from migrator.targets.plan import Loop, LoopShape, Target, TrainingPlan, as_argument, evaluated, primary, restore
from migrator.targets.registry import AUTO, LOOPS, ONE_DEVICE, TPU

_AVERAGES = re.compile(r"batch_?norm|moving_?(mean|average|variance)|on_read", re.IGNORECASE)
_MODELS = re.compile(r"\bapplications\b|\bload_model|\bmodel_from_|\bfrom_config|\bclone_model")  # with what not
_LONGEST = 120  # a line of the user's with something else on it is broken beyond this
_ON_TPU = "the new program trains on the TPU that it asks for: run it there before you rely on it"
_MANY_STEPS = 10_000  # fewer are made in the 600 seconds after which an Estimator saves, or not much later
_MODES = {"train": "train", "evaluate": "eval", "predict": "infer"}


@dataclass(frozen=True)
class EmittedDriver:
    """Replacements by node: statements for statements (none: removed), an expression for an expression.

    `before` are statements to put before others, `within` those that get a `with` line around them. `helpers` are
    functions to put before the driver, as source text. `in_scope` says that the model is made under a strategy.
    """

    statements: dict[cst.CSTNode, list[cst.BaseStatement]]
    expressions: dict[cst.CSTNode, cst.BaseExpression]
    before: dict[cst.CSTNode, list[cst.BaseStatement]]
    helpers: tuple[str, ...]
    needs: frozenset[str]
    remarks: tuple[Blocked, ...]
    target: Target
    within: tuple[Within, ...] = ()
    in_scope: bool = False


@dataclass
class FileNames:
    """The names taken in one file, and the helper functions that it gets: text under the wanted name -> name.

    `shared` are the lines that make a strategy for several programs of the file, which stay where they are.
    """

    taken: set[str]
    helpers: dict[str, str] = field(default_factory=dict)
    shared: set[cst.SimpleStatementLine] = field(default_factory=set)

    def free(self, wanted: str) -> str:
        name = free(wanted, self.taken)
        self.taken.add(name)
        return name


def emit_driver(
    project: Project,
    program: TrainingProgram,
    rewriter: Rewriter,
    target: Target,
    partitioner: str | None,
    has_predictor: bool,
    predictions_are_dicts: bool,
    names: FileNames,
    signatures: Sequence[str] = (),
    stop: tuple[str, cst.BaseExpression] | None = None,
    keras: Keras = KERAS_2,
    takes_steps: bool = False,
    loop: Loop = LOOPS["fit"],
    loss_of_class: bool = True,
    measures: bool = False,
    loss_of_batch: bool = False,
    measures_itself: bool = False,
    scoped: Scoped | None = None,
    on_servers: int = 0,
    many_steps_on_clusters: bool = False,
    rates: str = "",
    shares_penalties: bool = False,
    clusters: Clusters = ONE_EVALUATOR,
) -> EmittedDriver:
    """Builds the driver. `rewriter` is the one that the rest of the file is rewritten with.

    `signatures` are the names that the predictions are served under. `takes_steps` says that the function which makes
    the model takes `steps_per_execution`.
    `stop` is what the model_fn ends the training after, see ModelFunction.
    `loop` is what trains; one of the program's own asks whether the loss is one of Keras' classes, and whether the
    model `measures` anything else. `loss_of_batch` says that the model computes its loss from whole batches,
    `measures_itself` that it updates its metrics. `scoped` are the statements that make a model of the program's own,
    which go into the strategy's scope. `on_servers` are the steps that `fit` makes in one execution on parameter
    servers (0: that is not looked at), `many_steps_on_clusters` says that they may be more than one on the clusters of
    the target. `rates` says whose learning rates a checkpoint leaves as they are, see setup.rates_kept ("": nobody's).
    `clusters` is what is asked of a program that runs on them.
    """
    return _Emitter(
        project,
        program,
        rewriter,
        target,
        partitioner,
        has_predictor,
        predictions_are_dicts,
        names,
        signatures,
        stop,
        keras,
        takes_steps,
        loop,
        loss_of_class,
        measures,
        loss_of_batch,
        measures_itself,
        scoped,
        on_servers,
        many_steps_on_clusters,
        rates,
        shares_penalties,
        clusters,
    ).emit()


def session_lines(
    made: Sequence[Setting],
    text: Callable[[cst.BaseExpression], str],
    gpu: str,
    file: ParsedFile,
    replicas: bool = False,
) -> list[cst.BaseStatement]:
    """The statements that say what a ConfigProto said; `gpu` is a free name."""
    found: list[cst.BaseStatement] = []
    for setting in made:
        if setting.of_replicas and not replicas:
            continue
        value = "" if setting.value is None else text(setting.value)
        found += statements(setting.text.format(value=value, gpu=gpu) + "\n", file.module)
    return found


class _Emitter:
    def __init__(
        self,
        project: Project,
        program: TrainingProgram,
        rewriter: Rewriter,
        target: Target,
        partitioner: str | None,
        has_predictor: bool,
        predictions_are_dicts: bool,
        names: FileNames,
        signatures: Sequence[str],
        stop: tuple[str, cst.BaseExpression] | None,
        keras: Keras,
        takes_steps: bool,
        loop: Loop,
        loss_of_class: bool,
        measures: bool,
        loss_of_batch: bool,
        measures_itself: bool,
        scoped: Scoped | None,
        on_servers: int,
        many_steps_on_clusters: bool,
        rates: str,
        shares_penalties: bool,
        clusters: Clusters,
    ) -> None:
        self.project = project
        self.keras = keras
        self.program = program
        self.file = program.file
        self.rewriter = rewriter
        self.target = target
        self.partitioner = partitioner
        self.has_predictor = has_predictor
        self.predictions_are_dicts = predictions_are_dicts
        self.stop = stop
        self.takes_steps = takes_steps
        self.on_servers = on_servers
        self.many_steps = many_steps_on_clusters
        self.rates = rates
        self.loss_of_batch = loss_of_batch
        self.clusters = clusters
        self.in_scope = False
        self.scoped = scoped
        self.indent = program.file.module.default_indent
        self.remarks = list(program.remarks)
        self.further_needs: set[str] = set()
        own = own_strategy(program) if program.config.get("train_distribute") is not None else None
        self.own = own if own is not None and own.target is target else None
        session = any([program.session.first, *program.session.lines.values()])
        if self.own is not None and self.own.line in names.shared and not (target.reads_cluster or session):
            self.own = replace(self.own, elsewhere=True)
        self.plan: TrainingPlan | None = None
        own_evaluations = program.config.get("eval_distribute") is not None and self.own is not None
        self.evaluates_apart = target.per_replica and own_evaluations
        self.changed: dict[cst.CSTNode, cst.BaseExpression] = {}
        self._effects: dict[cst.BaseExpression | None, Effect] = {}
        self.file_names = names
        self.helpers: list[str] = []
        self.names = {wanted: self._free(wanted) for wanted in ("resolver", "checkpoint", "steps")}
        self.names["strategy"] = self._free(target.scope)
        strategy = self.names["strategy"] if self.own is None or self.own.name is None else self.own.name
        draws = draws_batches(program, target)
        divided = loop.own and not (draws or target.parameter_servers)
        self.datasets = Datasets(project, program, rewriter, target, strategy, self.evaluates_apart, divided)
        if target.mesh:
            self.names["mesh"] = self._free("mesh")
        if program.tpu is not None and target is TPU and program.tpu.name is not None:
            self.names["resolver"] = program.tpu.name
        make_strategy = target.helper
        if make_strategy is not None:
            self._helper(target.helper_name, lambda name: make_strategy(name, partitioner, self.indent))
        labelled = program.train_and_evaluate is not None or any(
            use.method in ("train", "evaluate") for use in program.all_uses
        )
        labelled = labelled and program.model.reads_labels
        if not program.model.ready:
            whole = not (divided or target is TPU or target.mesh)  # each replica is given batches of the dataset
            static = whole and reads_batch(project, program) and static_batches(project, program)
            if not static:
                check_batches(project, program)
            named = keras.named_inputs
            self._helper(
                "make_inputs", lambda name: setup.make_inputs(name, self.indent, labelled, named, static=static)
            )
        ready = program.model.ready
        if (has_predictor or ready) and uses_of(program, "predict"):
            watched = any("callbacks" in use.arguments for use in program.all_uses if use.method == "predict")
            ends = any(phase == "predict" and hooks.stops for phase, hooks in program.hooks)
            asked = [use.arguments["predict_keys"] for use in program.all_uses if _asks_for_keys(use)]
            if asked and target.mesh:
                raise Blocked("TFM110", asked[0], "`predict_keys` is not carried over to a mesh")
            if asked and not (predictions_are_dicts or ready):
                raise Blocked("TFM110", asked[0], "`predict_keys` needs predictions that are a dict of the model_fn")
            for wanted in _predictions(program):
                whole = wanted == "predict_batches"
                if target.mesh:
                    if whole:
                        use = next(use for use in program.all_uses if _name_of_prediction(use) == wanted)
                        node = use.arguments["yield_single_examples"]
                        raise Blocked("TFM110", node, "whole batches of predictions are not carried over to a mesh")
                    self._helper(wanted, lambda n: setup.predict_on_mesh(n, predictions_are_dicts, self.indent))
                    continue
                make = partial(
                    setup.predict,
                    of_dicts=predictions_are_dicts or ready,
                    indent=self.indent,
                    callbacks=watched,
                    stops=ends,
                    batches=whole,
                    named=ready,
                    keys=bool(asked),
                )
                self._helper(wanted, make)
        if program.servings:
            self._helper("export_model", lambda name: setup.export_model(name, signatures, self.indent, ready))
        trains = program.train_and_evaluate is not None or uses_of(program, "train") or uses_of(program, "evaluate")
        self.loop = loop if trains else LOOPS["fit"]
        make_loop = self.loop.make
        self.draws = False  # each replica of a loop of the program's own draws whole batches
        self.iterates = False  # such a loop goes over the batches one by one
        if make_loop is not None:
            if divides_batches(program, target):
                message = "the replicas divide each batch of the input function: a step is what it was on one device"
                self.remarks.append(Blocked("TFM736", program.place.call, message))
            if draws and target.mesh:
                message = "a step takes the batches of all replicas of the RunConfig's strategy, as one"
                self.remarks.append(Blocked("TFM798", program.place.call, message))
            elif draws:
                message = "each replica draws whole batches, as under the strategy of the RunConfig"
                self.remarks.append(Blocked("TFM740", program.place.call, message))
            if target.mesh:
                message = "all devices compute each step together, each on its share of the batch"
                self.remarks.append(Blocked("TFM794", program.place.call, message))
            if target.in_step and keras.number == 3 and self._has_averages():
                message = "moving averages of replicas were not tried in a loop on Keras 3: leave `--keras 3` out"
                raise Blocked("TFM872", program.place.call, message)
            shape = LoopShape(
                of_class=loss_of_class,
                saves=program.model_dir is not None,
                measures=measures,
                evaluates=program.train_and_evaluate is not None or uses_of(program, "evaluate"),
                divides=target.in_step and not draws,
                draws=draws or target.parameter_servers,
                sized=draws and target.per_replica and know_their_sizes(project, program),
                averages=draws and target.replicas and self._has_averages(),
                on_workers=target.mirrored_workers,
                on_servers=target.parameter_servers,
                counts=self._is_counted() and not target.parameter_servers,
                on_keras3=keras.number == 3,
                of_batch=loss_of_batch,
                measures_itself=measures_itself,
                may_end=self._may_end(),
                rates=rates,
                shares_penalties=shares_penalties,
            )
            if shares_penalties and loss_of_batch:
                message = "regularizers and a loss of whole batches: add what they say to the loss yourself"
                raise Blocked("TFM707", program.place.call, message)
            self._helper("TrainingLoop", lambda name: make_loop(name, self.indent, shape))
            self.draws = shape.draws
            self.iterates = target.mesh or not (shape.counts or shape.on_servers)
            if target.layouts:
                self._helper("check_layouts", lambda name: dtensor.check_layouts(name, self.indent))
                self.further_needs.add("re")
            self.names["loop"] = self._free("loop")
        self.kept: dict[cst.BaseExpression, str] = {}  # datasets that are made before their use: input function -> name
        self.model = self._model_name()
        if has_predictor:
            self.names["predictor"] = self._free("predictor")

    def _free(self, wanted: str) -> str:
        return self.file_names.free(wanted)

    def _helper(self, wanted: str, build: Callable[[str], str]) -> None:
        """A function beside the program; the programs of a file share those of the same text."""
        key = build(wanted)
        if key not in self.file_names.helpers:
            self.file_names.helpers[key] = self._free(wanted)
        self.names[wanted] = self.file_names.helpers[key]
        self.helpers.append(build(self.names[wanted]))

    def _left_out(self) -> OwnStrategy | None:
        """The program's own strategy, where one device is asked for instead. Raises Blocked (TFM704)."""
        wanted = self.program.config.get("train_distribute") is not None and self.target is ONE_DEVICE
        own = own_strategy(self.program) if wanted else None
        if own is None:
            return None
        if own.choice is not None:
            message = "the program chooses its strategy when it runs: take the choice out, which one device has not got"
            raise Blocked("TFM704", own.call, message)
        if own.elsewhere:
            message = (
                f"`{own.name}` is read for more than the RunConfig, which one device has not got: take it out there"
            )
            raise Blocked("TFM704", own.call, message)
        message = "the strategy is left out: one device takes one batch in a step, where every replica took one"
        self.remarks.append(Blocked("TFM406", own.call, message))
        return own

    def _model_name(self) -> str:
        """The user's own name for the Estimator, unless that name says Estimator, or that of a model that is ready."""
        if self.program.model.ready:
            return self.file.code(self.program.model.callee)
        if "estimator" in self.program.variable.lower():
            return self._free("model")
        return self.program.variable

    def emit(self) -> EmittedDriver:
        program = self.program
        kept = [] if program.model.ready else self._keep_first()
        plan = self.plan = self._plan()
        replaced: dict[cst.CSTNode, list[cst.BaseStatement]] = {line: [] for line in program.removed}
        replaced.update({line: self._settings(made) for line, made in program.session.lines.items()})
        replaced.update(self._task())
        assert program.place.statement is not None
        first, later = self._first_dataset()
        setup_lines, after = self._set_up(plan, first)
        lines = self._parsed("\n".join([*kept, *setup_lines, *after]) + "\n")
        before: dict[cst.CSTNode, list[cst.BaseStatement]] = {}
        chosen = self.own.choice.first if self.own is not None and self.own.choice is not None else None
        if chosen is not None and program.session.first:
            before[chosen] = self._settings(program.session.first)
        elif self.scoped is None:
            lines = [*self._settings(program.session.first), *lines]
        if later is None:
            replaced[program.place.statement] = lines
        else:
            replaced[program.place.statement] = []
            before.setdefault(later, []).extend(lines)
        within = self._scope_model(plan, replaced, before)
        own = own_strategy(program) if self.target.mesh else self.own or self._left_out()
        if own is not None and own.line is not None and not plan.made:
            replaced[own.line] = []
        expressions: dict[cst.CSTNode, cst.BaseExpression] = dict(self.changed)
        both = program.train_and_evaluate
        if both is not None and any(hooks.stops for phase, hooks in program.hooks if phase == "train"):
            message = "a hook ends the training: the new program is for one device, whatever TF_CONFIG says"
            self.remarks.append(Blocked("TFM166", both.place.call, message))
        if self.target is TPU:
            self.remarks += told_on_tpu(self.project, program)
        if program.tpu is not None and self.target is TPU:
            self.remarks.append(Blocked("TFM440", program.tpu.place, _ON_TPU))
            self.remarks += program.tpu.remarks
            if not any("CrossShardOptimizer" in file.bare for file in self.project.files):
                message = "no CrossShardOptimizer: every core trained on its own gradients, which are summed now"
                self.remarks.append(Blocked("TFM444", program.tpu.place, message))
            if program.tpu.iterations is not None and not self.takes_steps and not self.loop.own:
                message = "every step is an execution of its own: the function that makes the model takes no number"
                self.remarks.append(Blocked("TFM445", program.tpu.iterations, message))
        self._tell_loss()
        if plan.model_dir is not None:
            message = (
                "an Estimator's checkpoints in the `model_dir` are not read: `tf-migrate checkpoint` carries them over"
            )
            if plan.loop.own:
                message = "an Estimator's checkpoints in the `model_dir` are not read, and not carried over to a loop"
            self.remarks.append(Blocked("TFM850", program.place.call, message))
        if (
            self.target.per_replica
            and not plan.loop.own
            and not plan.evaluates_apart
            and (both is not None or any(use.method == "evaluate" for use in program.all_uses))
        ):
            of_batch = self.scoped is not None and not is_mean(program, self.scoped)
            if self.loss_of_batch or of_batch:
                message = "the evaluation would divide batches whose loss may be a sum: give it `eval_distribute`, too"
                raise Blocked("TFM721", program.place.call, message)
            message = "the evaluation divides every batch between the replicas, an Estimator's ran on one device"
            self.remarks.append(Blocked("TFM709", program.place.call, message))
        if self.target.per_replica and not plan.loop.own and self.own is None:
            message = "a step takes a whole batch for every replica, where the Estimator took one"
            self.remarks.append(Blocked("TFM724", program.place.call, message))
        uncounted = self.target.per_replica and not plan.loop.own and not plan.counted
        if uncounted and ends_early(self.project, program):
            message = "where the data end before the steps that are asked for, the optimizer counts one step too many"
            self.remarks.append(Blocked("TFM723", program.place.call, message))
        if self.scoped is not None and self.own is not None and (plan.evaluates_apart or self.target.mirrored_workers):
            message = "the Estimator showed its loss divided by the number of replicas; the new program shows it whole"
            self.remarks.append(Blocked("TFM729", program.place.call, message))
        if plan.averages:
            message = "replicas get the mean of their moving averages; an Estimator's first one counted a batch more"
            self.remarks.append(Blocked("TFM722", program.place.call, message))
        if self.own is not None and self.target.word == "multi-worker-mirrored":
            if uses_local_gpus(program, self.own):
                message = (
                    "without TF_CONFIG the new program trains on one device, where the strategy took all GPUs of the "
                    "machine: `--strategy mirrored` for one machine, or a TF_CONFIG with one worker"
                )
                self.remarks.append(Blocked("TFM759", self.own.call, message))
        if both is not None and self.target.reads_cluster and plan.model_dir is None and not plan.clusters.coordinates:
            self.remarks.append(
                Blocked(
                    "TFM112", program.place.call, "without a model_dir an evaluator task has no checkpoints; it ends"
                )
            )
        if both is not None and self.target.reads_cluster:
            for use in program.all_uses:
                message = (
                    f"on a cluster every task runs this `{use.method}` after train_and_evaluate; it is untried there"
                )
                self.remarks.append(Blocked("TFM704", use.place.call, message))
        if both is not None:
            assert both.place.statement is not None
            lines_of_both = [*self._keep_counted(both.train.get("input_fn"), plan), plan.loop.train_and_evaluate(plan)]
            replaced[both.place.statement] = [
                *self._parsed("\n".join(lines_of_both)),
                *self._answered(plan, both),
            ]
        if both is not None and both.exporters:
            assert both.place.statement is not None
            replaced[both.place.statement] += self._parsed("\n".join(self._exporters(both, plan)) + "\n")
        for use in program.uses:
            if use.method == "train":
                self._train(use, plan, replaced)
            elif use.method in EXPORTS:
                expressions[use.place.call] = self._export(use)
            elif use.method in VARIABLES:
                expressions[use.place.call] = self._variables(use)
            else:
                expressions[use.place.call] = self._evaluate_or_predict(use)
        for lent in program.lent:
            expressions[lent.argument] = cst.Name(
                self.names.get("predictor", self.model) if lent.predicts else self.model
            )
            for use in lent.uses:
                made = self._export(use, lent) if use.method in EXPORTS else self._evaluate_or_predict(use, lent)
                expressions[use.place.call] = made
        for node in program.folders:
            assert plan.model_dir is not None
            expressions[node] = cst.parse_expression(plan.model_dir)
        self._keep_comments(replaced)
        if plan.evaluates_apart:  # what the strategy of the evaluations says is carried over
            self.remarks = [remark for remark in self.remarks if remark.code != "TFM173"]
        return EmittedDriver(
            replaced,
            expressions,
            before,
            tuple(self.helpers),
            self._needs(plan),
            tuple(self.remarks),
            self.target,
            within,
            self.in_scope,
        )

    def _task(self) -> dict[cst.CSTNode, list[cst.BaseStatement]]:
        """The line that takes the place of a RunConfig which the program asks for its task."""
        reads = self.program.config_reads
        if reads.line is None:
            return {}
        self._helper("ClusterTask", lambda name: setup.cluster_task(name, self.indent, reads.task))
        self.further_needs |= {"json", "os"}
        message = f"`{reads.name}` says of TF_CONFIG what the RunConfig said, and nothing else"
        self.remarks.append(Blocked("TFM178", reads.line, message))
        return {reads.line: self._parsed(f"{reads.name} = {self.names['ClusterTask']}()\n")}

    def _scope_model(
        self,
        plan: TrainingPlan,
        replaced: dict[cst.CSTNode, list[cst.BaseStatement]],
        before: dict[cst.CSTNode, list[cst.BaseStatement]],
    ) -> tuple[Within, ...]:
        """Puts the statements that make a model of the program's own into the strategy's scope, and it before them."""
        if self.scoped is None:
            return ()
        settings = self._settings(self.program.session.first)
        for line, made in self.program.session.lines.items():
            if self._position(line) > self._position(self.scoped.first):
                settings += self._settings(made)
                replaced[line] = []
        strategy = self._strategy_lines(plan)
        if self.scoped.runs and [*settings, *strategy]:
            before[self.scoped.runs[0][-1]] = [*settings, *self._parsed("\n".join(strategy) + "\n")]
        return tuple(Within(f"with {plan.strategy_name}.scope():", run) for run in self.scoped.runs)

    def _strategy_lines(self, plan: TrainingPlan) -> list[str]:
        """Lines that make the strategy; those of one that stays where the program made it are put there."""
        made = self.target.set_up(plan) if self.own is None or self.own.choice is None else self._chosen(self.own, plan)
        if self.own is not None and self.own.line is not None and made and plan.made:
            self.changed[self.own.call] = cst.parse_expression(made[-1].partition(" = ")[2])
            made = []
        return made

    def _needs(self, plan: TrainingPlan) -> frozenset[str]:
        """Modules that the new lines import."""
        needs = {"os", "time"} if self.program.servings else {"os"} if plan.model_dir is not None else set()
        needs = needs | ({"copy"} if self.copies_params else set()) | ({"itertools"} if self.iterates else set())
        if self.loop.own and self.target.mirrored_workers and plan.model_dir is not None:
            needs = needs | {"tempfile"}
        needs = needs | self.further_needs
        return frozenset(needs)

    def _keep_comments(self, replaced: dict[cst.CSTNode, list[cst.BaseStatement]]) -> None:
        """Puts the comments inside replaced statements over what comes in their place.

        Those of removed statements are kept by the file's rewriter.
        """
        for node, lines in replaced.items():
            if not lines:
                continue
            text = self.file.code(self.file.module.with_changes(body=lines))
            empty = [cst.EmptyLine(comment=cst.Comment(value)) for value in _comments_in(node) if value not in text]
            first = lines[0]
            assert isinstance(first, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
            lines[0] = first.with_changes(leading_lines=[*empty, *first.leading_lines])

    def _settings(self, made: Sequence[Setting]) -> list[cst.BaseStatement]:
        """The statements that say what a ConfigProto said."""
        if any("{gpu}" in setting.text for setting in made) and "gpu" not in self.names:
            self.names["gpu"] = self._free("gpu")
        return session_lines(made, self._text, self.names.get("gpu", ""), self.file, self.target.per_replica)

    # -- text of the user's expressions ----------------------------------------------------------------------------

    def _text(self, node: cst.BaseExpression) -> str:
        new = node.visit(self.rewriter)
        assert isinstance(new, cst.BaseExpression)
        return self.file.code(new)

    def _of_config(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """An expression, or what the RunConfig was given where it only reads that."""
        return self.program.config_reads.given.get(node, node)

    def _parsed(self, text: str) -> list[cst.BaseStatement]:
        return statements(text, self.file.module)

    def _never_end(self, arguments: Mapping[str, cst.BaseExpression], mode: str) -> bool:
        """Whether `fit` and `evaluate` are told the steps of data that have no end.

        They start what `take` leaves of it twice before the first batch, so that a shuffle reads its second order.
        """
        return never_end(self.project, self.program, arguments.get("input_fn"), mode)

    def _may_end(self) -> bool:
        """Whether the data of train_and_evaluate may end before the last of its periods."""
        both = self.program.train_and_evaluate
        if both is None or is_none(self.program.config.get("save_checkpoints_steps")):
            return False
        if self.loop.own and self.target.parameter_servers:
            return False  # TFM742
        return not self._never_end(both.train, "train")

    def _limited(self, dataset: str, steps: cst.BaseExpression | None, default: str | None) -> str:
        """A dataset of at most `steps` batches."""
        if steps is None:
            return dataset if default is None else f"{primary(dataset)}.take({default})"
        if is_none(steps):
            return dataset
        text = self._batches(steps)
        if self._may_be_none(steps):
            text = f"-1 if {text} is None else {text}"  # -1 takes all
        return f"{primary(dataset)}.take({text})"

    def _counted(
        self, dataset: str, steps: cst.BaseExpression | None, default: str | None, endless: bool
    ) -> tuple[str, str | None]:
        """A dataset of at most `steps` batches; or the whole, and the steps for a call that is told them."""
        told = self.target.counts or (endless and self.keras.cuts_executions)
        if not told or self.loop.own:
            return self._limited(dataset, steps, default), None
        if steps is None:
            return dataset, default
        return dataset, None if is_none(steps) else self._batches(steps)

    def _may_be_none(self, node: cst.BaseExpression) -> bool:
        """Whether an expression is a name that is None somewhere in the scope of the program."""
        node = self._of_config(node)
        if not isinstance(node, cst.Name):
            return False
        return any(is_none(value) for value in values_given(self.program.scope, node.value))

    # -- the plan --------------------------------------------------------------------------------------------------

    def _plan(self) -> TrainingPlan:
        program = self.program
        both = program.train_and_evaluate
        folder = None if program.model_dir is None else self._of_config(program.model_dir)
        model_dir = self._text(folder) if folder is not None else None
        empty = folder is not None and may_be_empty(self.file, program.scope, folder)
        if empty:  # an Estimator took a temporary folder then
            model_dir = f"{primary(str(model_dir))} or tempfile.mkdtemp()"
            self.further_needs.add("tempfile")
        if model_dir is not None and (empty or not isinstance(folder, (cst.Name, cst.Attribute))):
            self.model_dir_line: str | None = f"{self._free('model_dir')} = {model_dir}"
            model_dir = self.model_dir_line.partition(" ")[0]
        else:
            self.model_dir_line = None
        tpu = program.tpu if self.target is TPU else None
        plan = TrainingPlan(
            target=self.target,
            loop=self.loop,
            model=self.model,
            resolver=self.names["resolver"],
            strategy_name=self.names["strategy"],
            checkpoint=self.names["checkpoint"] + ("s" if self.keras.checkpoints_by_manager else ""),
            steps=self.names["steps"],
            indent=self.indent,
            train_dataset="",
            eval_dataset="",
            max_steps=None,
            period=None,
            epochs=None,
            model_dir=model_dir,
            again=self._trains_again(),
            keras=self.keras,
            make_strategy=self.names.get(self.target.helper_name, ""),
            mesh=self.names.get("mesh", ""),
            check_layouts=self.names.get("check_layouts", ""),
            tpu_flag=None if tpu is None or tpu.flag is None else self._text(tpu.flag),
            tpu_resolver=self._resolver(tpu),
            loop_name=self.names.get("loop", ""),
            loop_class=self.names.get("TrainingLoop", ""),
            draws=self.draws,
            steps_per_call=self._steps_per_call(tpu),
        )
        plan = self._on_cluster(self._with_strategy(plan))
        trains = both is not None or bool(uses_of(program, "train"))
        if model_dir is not None and trains and self.rates and not self.loop.own:
            rates = self.rates
            self._helper("load_checkpoint", lambda name: setup.load_checkpoint(name, self.indent, rates))
            plan = replace(plan, load=self.names["load_checkpoint"])
        self._tell_saves(model_dir)
        to_data = not (self.target.creates or self.target.counts or self.target.mesh or self.loop.own)
        counts_on = to_data and (plan.again or model_dir is not None or self._reads_steps())
        told = self.target.creates and not self.loop.own
        if (counts_on and trains_to_an_unknown_end(self.project, program)) or (
            told and self.keras.number == 2 and ends_early(self.project, program)
        ):
            self._helper("CountedSteps", lambda name: setup.counted_steps(name, self.indent))
            plan = replace(plan, counted=self.names["CountedSteps"])
        if both is None:
            every = program.config.get("save_checkpoints_steps")
            if every is not None and model_dir is not None and self.loop.own:
                message = "checkpoints come at the end of every training only: what an interrupted one has done is lost"
                self.remarks.append(Blocked("TFM109", every, message))
            elif every is not None and model_dir is not None and self.target.parameter_servers:
                message = "checkpoints come at the end of every training only: a coordinator does not see single steps"
                self.remarks.append(Blocked("TFM109", every, message))
            elif every is not None and model_dir is not None:
                plan = self._with_saves(plan, every)
            return plan
        max_steps = self._limits(both.train, both.place.call).get("max_steps")
        eval_dataset = self._dataset(both.evaluate.get("input_fn"), both.place.call, "eval")
        given_steps = both.evaluate.get("steps")
        eval_steps = None
        if not plan.evaluates_apart:
            endless = self._never_end(both.evaluate, "eval")
            eval_dataset, eval_steps = self._counted(eval_dataset, given_steps, "100", endless)
        elif given_steps is None or not is_none(given_steps):
            eval_steps = "100" if given_steps is None else self._batches(given_steps)
        plan = replace(
            plan,
            batches=self._free("batches") if self.loop.own else "",
            train_dataset=self._dataset(both.train.get("input_fn"), both.place.call, "train"),
            eval_dataset=eval_dataset,
            eval_steps=eval_steps,
            max_steps=None if is_none(max_steps) else self._batches(max_steps),  # type: ignore[arg-type]
            endless=self._is_endless(max_steps),
            told_steps=self._never_end(both.train, "train"),
            callbacks=self._callbacks(both.train),
            eval_callbacks=self._callbacks(both.evaluate),
        )
        plan = self._with_period(plan, both)
        if both.answers:
            plan = self._with_result(plan, both)
        watching = {
            p: {one.node for q, hooks in program.hooks if q == p for one in hooks.own} for p in ("train", "test")
        }
        shared = watching["train"] & watching["test"]
        if shared and plan.period is not None:
            name = next(iter(shared)).name.value
            message = (
                f"`{name}` is a hook of the training and of its evaluations, which `fit` would mix up: make it two"
            )
            raise Blocked("TFM162", both.place.call, message)
        return plan

    def _with_result(self, plan: TrainingPlan, both: TrainAndEvaluate) -> TrainingPlan:
        """The plan of a train_and_evaluate whose line does something with the result."""
        statement = both.place.statement
        assert statement is not None
        if self.loop.own:
            message = "the result of train_and_evaluate is used, which no loop but `fit` gives: leave `--loop` out"
            raise Blocked("TFM103", both.place.call, message)
        if any(use.place.statement is statement for use in self.program.all_uses):
            message = "this line does more with the Estimator than train_and_evaluate: give that a line of its own"
            raise Blocked("TFM103", both.place.call, message)
        if plan.period is not None:
            self._helper("last_evaluation", lambda name: setup.last_evaluation(name, self.indent))
            plan = replace(plan, last_evaluation=self.names["last_evaluation"])
        named = _named(both)
        return replace(plan, result=self._free("results") if named is None else named)

    def _answered(self, plan: TrainingPlan, both: TrainAndEvaluate) -> list[cst.BaseStatement]:
        """The user's line that goes on with the result of train_and_evaluate; none where it only names that."""
        if not both.answers or _named(both) is not None:
            return []
        assert both.place.statement is not None
        self.rewriter.replaced[both.place.call] = cst.parse_expression(plan.result)
        line = both.place.statement.visit(self.rewriter)
        assert isinstance(line, cst.SimpleStatementLine)
        return [line.with_changes(leading_lines=())]

    def _reads_steps(self) -> bool:
        """Whether the program looks at the number of steps behind a training."""
        both = self.program.train_and_evaluate
        return (both is not None and both.answers) or any(
            asks_global_step(self.file, use.arguments.get("name"))
            if use.method == "get_variable_value"
            else use.method == "evaluate" and self._tells_steps(use, scope)
            for use, scope in self.program.places_of_uses
        )

    def _tells_steps(self, use: Use, scope: cst.CSTNode) -> bool:
        """Whether the result of an evaluation may be asked for the number of steps."""
        return self.program.reads_global_step or looks_at_all(scope, use.place.call, self.file.imports)

    def _tell_loss(self) -> None:
        """Says where the loss of an evaluation is that of examples, and a last batch may have fewer than the others."""
        program = self.program
        if self.loop.own or self.loss_of_batch:
            return
        both = program.train_and_evaluate
        evaluations = [(both.place.call, both.evaluate)] if both is not None else []
        evaluations += [(use.place.call, use.arguments) for use in program.all_uses if use.method == "evaluate"]
        for place, arguments in evaluations:
            if not whole_batches(self.project, program, arguments.get("input_fn"), "eval"):
                self.remarks.append(Blocked("TFM303", place, LOSS_OF_EXAMPLES))
                return

    def _tell_saves(self, model_dir: str | None) -> None:
        """Says where an Estimator would have saved a checkpoint every 600 seconds, if the training may be long."""
        program = self.program
        both = program.train_and_evaluate
        told = "save_checkpoints_secs" in program.file.bare  # TFM107 says where they come
        if model_dir is None or told or "save_checkpoints_steps" in program.config or self._trains_again():
            return
        trainings = [(both.place.call, both.train)] if both is not None else []
        trainings += [(use.place.call, use.arguments) for use in program.uses if use.method == "train"]
        for call_, arguments in trainings:
            limits = [arguments[name] for name in ("steps", "max_steps") if not is_none(arguments.get(name))]
            count = self.file.integer(limits[0]) if limits else 0
            if count is None or count >= _MANY_STEPS:
                evaluated = " and evaluated" if both is not None else ""
                message = (
                    f"an Estimator saved a checkpoint{evaluated} every 600 seconds, the new program at the end only"
                )
                self.remarks.append(Blocked("TFM109", call_, f"{message}: give `save_checkpoints_steps`"))

    def _with_saves(self, plan: TrainingPlan, every: cst.BaseExpression) -> TrainingPlan:
        """The plan with the period of its checkpoints; 0 is none."""
        count = self.file.integer(every)
        if count == 0:
            return plan
        if plan.averages and self.keras.number == 3:
            message = "moving averages of replicas are saved by the epoch on Keras 3: leave save_checkpoints_steps out"
            raise Blocked("TFM872", every, message)
        return replace(plan, saves_every=self._batches(every), saves_surely=count is not None)

    def _batches(self, count: cst.BaseExpression) -> str:
        """A number of batches, which an Estimator also took as a float: it went on until that was reached."""
        count = self._of_config(count)
        known = self.file.constants.get(count.value, count) if isinstance(count, cst.Name) else count
        value = number(known)
        if isinstance(known, cst.Float) and value is not None and value == int(value) and known is count:
            return str(int(value))
        divided = isinstance(known, cst.BinaryOperation) and isinstance(known.operator, cst.Divide)
        if not divided and not isinstance(known, cst.Float):
            return self._text(count)
        self.further_needs.add("math")
        return f"math.ceil({self._text(count)})"

    def _on_cluster(self, plan: TrainingPlan) -> TrainingPlan:
        """The plan with what is asked for clusters: who evaluates there, and servers in one process.

        Raises Blocked (TFM753).
        """
        program, asked, both = self.program, self.clusters, self.program.train_and_evaluate
        by_hand = program.variable in program.file.clusters
        if asked.in_process and (by_hand or not self.target.parameter_servers):
            message = "no servers start in this program's process: it has no parameter servers that TF_CONFIG names"
            self.remarks.append(Blocked("TFM754", program.place.call, message))
        if not self.target.reads_cluster:
            return plan
        coordinates = asked.coordinates and both is not None
        if coordinates:
            if by_hand:
                message = "the cluster is made by hand, where the coordinator does not evaluate: leave the option out"
                raise Blocked("TFM753", program.place.call, message)
            if self.loop.own and self.target.mirrored_workers:
                message = "a loop of its own on mirrored workers does not evaluate on a cluster: leave `--loop` out"
                raise Blocked("TFM753", program.place.call, message)
            if program.model.ready:
                message = "a Keras model of the program's own is not made a second time: leave the evaluation out"
                raise Blocked("TFM753", program.place.call, message)
            assert both is not None
            if both.exporters:
                message = "exporters belong to an evaluator task: with the coordinator, export after the training"
                raise Blocked("TFM753", both.exporters[0].call, message)
            message = "on a cluster the coordinator evaluates after every period, and the others wait"
            self.remarks.append(Blocked("TFM753", both.place.call, message))
        plan = replace(plan, clusters=asked if coordinates else ONE_EVALUATOR)
        if asked.in_process and self.target.parameter_servers and not by_hand:
            self._helper("create_in_process_cluster", lambda name: tf_config.start_servers(name, self.indent))
            self.further_needs |= {"os", "socket"}
            message = (
                f"without TF_CONFIG {asked.workers} worker(s) and {asked.ps} parameter server(s) start in the process"
            )
            self.remarks.append(Blocked("TFM754", program.place.call, message))
            name = self.names["create_in_process_cluster"]
            plan = replace(plan, start_servers=name, clusters=replace(asked, coordinates=coordinates))
        evaluates = coordinates or (both is None and not by_hand and uses_of(program, "evaluate"))
        if evaluates and not self.loop.own:
            self._helper("LocalCopy", lambda name: setup.local_copy(name, self.indent))
            plan = replace(plan, local=self._free("local"))
        if coordinates and not self.loop.own:
            self._helper("CoordinatorEvaluation", lambda name: setup.coordinator_evaluation(name, self.indent))
            self.further_needs.add("concurrent.futures")
            plan = replace(plan, coordinator=self.names["CoordinatorEvaluation"])
        return plan

    def _resolver(self, tpu: TpuUse | None) -> tuple[str, ...] | None:
        """The arguments of the TPU's resolver; None where the program makes it itself."""
        if tpu is None:
            return ()
        return None if tpu.made else tuple(self._given(arg) for arg in tpu.resolver)

    def _given(self, arg: cst.Arg) -> str:
        """An argument that is given on."""
        return f"{arg.star}{self._text(arg.value)}" if arg.keyword is None else self._argument(arg)

    def _with_strategy(self, plan: TrainingPlan) -> TrainingPlan:
        """The plan with what the program's own strategy says, where that is the one of the target."""
        if self.target.per_replica and not self.loop.own:
            if self.evaluates_apart and self.keras.number == 3:
                message = "an evaluation of whole batches for every replica was not tried on Keras 3"
                raise Blocked("TFM872", self.program.config["eval_distribute"], message)
            creates = self.keras.number == 2  # Keras 3 has no DatasetCreator
            sized = know_their_sizes(self.project, self.program)
            self._helper("per_replica", lambda name: setup.per_replica(name, self.indent, creates, sized))
            plan = replace(plan, per_replica=self.names["per_replica"])
            if self._has_averages():
                kind = "ReplicaAverages" if creates else "replica_averages"
                make = setup.replica_averages if creates else setup.replica_averages_on_keras3
                self._helper(kind, lambda name: make(name, self.indent))
                plan = replace(plan, averages=self.names[kind])
        own = self.own
        if self.target.mesh and self.draws:
            own = own_strategy(self.program)
            assert own is not None
            return replace(plan, replicas=replicas_of(self.program, own, self._text, self.names["mesh"]))
        if own is None:
            return plan
        apart = self.evaluates_apart
        if apart and self.loop.own:
            message = "an evaluation under a strategy of its own, in a loop of the program's own: leave it out"
            raise Blocked("TFM704", self.program.config["eval_distribute"], message)
        if own.choice is not None:
            self._check_settings(own)
            return replace(
                plan, strategy_name=own.name or plan.strategy_name, made=own.name is not None, evaluates_apart=apart
            )
        plan = replace(plan, devices=arguments_of(self.program, own, self._text, self.remarks), evaluates_apart=apart)
        if own.name is not None:
            if own.elsewhere and self.target.reads_cluster:
                message = f"`{own.name}` is read for more than the RunConfig, where the new one does not exist yet"
                raise Blocked("TFM704", own.call, message)
            if own.elsewhere and any([self.program.session.first, *self.program.session.lines.values()]):
                message = "the strategy is made before the settings of the session: make it in the RunConfig"
                raise Blocked("TFM704", own.call, message)
            plan = replace(plan, strategy_name=own.name, made=own.elsewhere)
        return plan

    def _check_settings(self, own: OwnStrategy) -> None:
        """The settings of the session come before the first strategy is made. Raises Blocked (TFM704)."""
        first = own.choice.first if own.choice is not None else None
        if first is None:
            return
        program, message = self.program, "a strategy is made before the settings of the session: set these before"
        late = [
            line
            for line, made in program.session.lines.items()
            if made and self._position(line) > self._position(first)
        ]
        if late:
            raise Blocked("TFM704", late[0], message)
        read = [one.value for one in program.session.first if one.value is not None]
        if not program.session.first:
            return
        if not path_to(program.scope, first):
            raise Blocked("TFM704", own.call, message)
        for value in read:
            changed = rebound(self.file, program.scope, value, first, program.place.call)
            if changed is not None:
                raise Blocked("TFM704", changed[1], message)

    def _is_counted(self) -> bool:
        """Whether every training is surely told its steps."""
        given = self.program.trainings
        return bool(given) and all(
            self.stop is not None or any(self._is_number(arguments.get(name)) for name in ("steps", "max_steps"))
            for arguments in given
        )

    def _is_number(self, node: cst.BaseExpression | None) -> bool:
        """Whether an argument is surely not None when the program runs, as far as can be seen."""
        if node is None or is_none(node) or self._may_be_none(node):
            return False
        flag = node.attr.value if isinstance(node, cst.Attribute) else None
        empty = rf"""DEFINE_\w+\(\s*(?:name=)?["']{flag}["'],\s*(?:default=)?None\b"""
        return flag is None or re.search(empty, self.file.bare) is None

    def _is_endless(self, steps: cst.BaseExpression | None) -> bool:
        """Whether the steps of a training, which are given, may be None when the program runs; `fit` is told of."""
        if steps is None or is_none(steps) or self._is_number(steps):
            return False
        if self.loop.own and self.target.parameter_servers:
            message = "steps that may be None: on parameter servers a loop of its own needs a number"
            raise Blocked("TFM737", steps, message)
        if not self.loop.own:
            message = "steps that are None when the program runs trained on all data: `fit` fails then, give a number"
            self.remarks.append(Blocked("TFM115", steps, message))
        return True

    def _steps_per_call(self, tpu: TpuUse | None) -> str | None:
        """How many steps a loop of the program's own makes in one call, where the program says it."""
        if tpu is None or tpu.iterations is None or not self.loop.own or not self._is_counted():
            return None
        return self._text(tpu.iterations)

    def _has_averages(self) -> bool:
        """Whether the model may have moving averages, which each replica keeps by itself."""
        if self.scoped is not None and self.scoped.unknown:
            return True
        model = self.program.model
        scoped = self.scoped
        region: Region = reach(self.project, model.file, model.function) if scoped is None else scoped.region
        texts = [bare(file.code(node)) for node, file in region.items()]
        return any(_AVERAGES.search(text) or (scoped is not None and _MODELS.search(text)) for text in texts)

    def _callbacks(self, arguments: Mapping[str, cst.BaseExpression]) -> tuple[str, ...]:
        """The elements of the list of callbacks that a call's hooks have become."""
        node = arguments.get("callbacks")
        if node is None:
            return ()
        if self.target.mesh:
            raise Blocked("TFM790", node, "hooks become callbacks, which no loop on a mesh calls: leave them out")
        if self.loop.own:
            raise Blocked("TFM735", node, "hooks become callbacks, which only `fit` calls: leave `--loop custom` out")
        new = node.visit(self.rewriter)
        if isinstance(new, (cst.List, cst.Tuple)):
            return tuple(self.file.code(e.with_changes(comma=cst.MaybeSentinel.DEFAULT)) for e in new.elements)
        assert isinstance(new, cst.BaseExpression)
        text = self.file.code(new)
        return (f"*{text}" if isinstance(new, (cst.Name, cst.Call, cst.Attribute)) else f"*({text})",)

    def _limits(self, arguments: Mapping[str, cst.BaseExpression], place: cst.Call) -> Mapping[str, cst.BaseExpression]:
        """The arguments of a training, with the end that a hook of the model_fn sets it."""
        if self.stop is None:
            return arguments
        name, value = self.stop
        model_file = self.program.model_file
        known = names_in(value) <= (self.file.constants.keys() if model_file is self.file else set())
        if not known:
            message = "a StopAtStepHook in the model_fn reads what the driver does not know: give it to `train`"
            raise Blocked("TFM110", value, message)
        given = [key for key in ("steps", "max_steps") if not is_none(arguments.get(key))]
        if not given:
            return {**arguments, name: value}
        if given != [name]:
            raise Blocked("TFM110", place, "a StopAtStepHook in the model_fn beside another kind of steps: keep one")
        both = [self.file.code(arguments[name]), self.file.code(value)]
        return {**arguments, name: cst.parse_expression(f"min({', '.join(both)})")}

    def _trains_again(self) -> bool:
        """Whether a training of this Estimator may follow another: several calls, or one in a loop or a function."""
        program = self.program
        training = [use.place.call for use in program.uses if use.method == "train"]
        if program.train_and_evaluate is not None:
            training.append(program.train_and_evaluate.place.call)
        if len(training) != 1:
            return bool(training)
        around = path_to(program.scope, program.place.call)
        repeats = (cst.For, cst.While, cst.FunctionDef)
        inside = path_to(program.scope, training[0])
        return any(isinstance(node, repeats) and not any(node is other for other in around) for node in inside)

    def _with_period(self, plan: TrainingPlan, both: TrainAndEvaluate) -> TrainingPlan:
        """Sets the period of checkpoints and evaluations where it divides the training."""
        every = self.program.config.get("save_checkpoints_steps")
        reads = any(hooks.reads_evaluations for _, hooks in self.program.hooks)
        if reads and (is_none(every) or plan.max_steps is None):
            message = "a hook reads the evaluations: give `max_steps`, and `save_checkpoints_steps` in the RunConfig"
            raise Blocked("TFM164", both.place.call, message)
        if every is None:
            return plan
        steps = both.train.get("max_steps")
        period, total = self.file.integer(every), self.file.integer(steps)
        if reads and (period is None or total is None or total % period):
            assert plan.max_steps is not None
            text = self._batches(every)
            epochs = f"-(-{primary(plan.max_steps)} // {primary(text)})"
            left = plan.max_steps
            if plan.resumes:
                left = f"{primary(left)} - {plan.model}.optimizer.iterations.numpy()"
            limited = f"{primary(plan.train_dataset)}.take({left})"
            return replace(plan, train_dataset=limited, period=primary(text), epochs=epochs, uneven=True)
        if period is None or total is None or total % period:
            self.remarks.append(
                Blocked(
                    "TFM109",
                    every,
                    "checkpoints and evaluation come at the end only: the period does not divide max_steps",
                )
            )
            return plan
        if self._effect(both.evaluate.get("input_fn")) is Effect.DRAWS:
            message = "each evaluation called this input function, `fit` evaluates on one dataset: draw outside of it"
            raise Blocked("TFM618", both.evaluate["input_fn"], message)
        text = self._text(every)
        if self._may_end():
            plan = replace(plan, may_end=self.loop.own)
            if not self.loop.own:
                message = (
                    "where the data end before `max_steps`, the Estimator stopped; `fit` begins anew or counts one more"
                )
                self.remarks.append(Blocked("TFM617", both.place.call, message))
        total_text = plan.max_steps or str(total)
        return replace(plan, period=text, epochs=f"{total_text} // {text}")

    # -- statements ------------------------------------------------------------------------------------------------

    def _first_dataset(self) -> tuple[str, cst.CSTNode | None]:
        """The dataset that tells the shapes of the features, and the statement that the set-up stands before.

        None for the place of the Estimator. It is too early when the dataset reads a name that is bound later; then
        the set-up goes before the statement, in the Estimator's own block, that uses the Estimator first.
        """
        program = self.program
        if program.model.ready:
            return "", None
        datasets = replace(self.datasets, only_shapes=True)
        candidates = self._candidates()
        top = self._first_use()
        if self.kept:  # the first use is given the dataset that tells the shapes
            assert top is not None
            if self.target is TPU and program.model_batch is not None:
                message = "the model_fn reads the batch size of one core, but its input function "
                message += "can be called only once, for a batch of all: read the size from the shape of a tensor"
                raise Blocked("TFM145", program.place.call, message)
            return next(iter(self.kept.values())), top if self._acts_before(top) else None
        late: tuple[str, cst.CSTNode] | None = None
        for node, place, mode in candidates:
            dataset = datasets.text(node, place, mode)
            assert node is not None
            bound = self._bound_later(node, place)
            if not bound:
                if top is None or self._effect(node) is Effect.NONE or not self._acts_before(top):
                    return dataset, None
                self._check_move(top)
                return dataset, top
            late = late or bound[0]
            if top is not None and all(self._position(b) < self._position(top) for _, b in bound):
                self._check_move(top)
                return dataset, top
        if late is None:
            message = "no input function tells the shapes of the features: the program must train or evaluate here"
            raise Blocked("TFM103", program.place.call, message)
        message = f"`{late[0]}` gets its value after the Estimator is made, but the new model needs it: move it up"
        raise Blocked("TFM103", late[1], message)

    def _candidates(self) -> list[tuple[cst.BaseExpression | None, cst.Call, str]]:
        """The input functions that can tell the shapes, best first, with the calls that they are given to.

        Those that may be called once more come before those that may not.
        """
        program = self.program
        found: list[tuple[cst.BaseExpression | None, cst.Call, str]] = []
        both = program.train_and_evaluate
        if both is not None:
            found.append((both.train.get("input_fn"), both.place.call, "train"))
        fed = [use for use in program.uses if use.method in _MODES]
        order = sorted(fed, key=lambda use: ("train", "evaluate", "predict").index(use.method))
        labelled = bool(found) or any(use.method != "predict" for use in order)
        found += [
            (use.arguments.get("input_fn"), use.place.call, _MODES[use.method])
            for use in order
            if use.method != "predict" or not labelled
        ]
        if any(self._effect(node) is Effect.DRAWS for node, _, _ in found):
            if both is not None:
                found.insert(1, (both.evaluate.get("input_fn"), both.place.call, "eval"))
            found.sort(key=lambda one: self._effect(one[0]) is Effect.DRAWS)
        return found

    def _effect(self, given: cst.BaseExpression | None) -> Effect:
        """What one more call of an input function does."""
        if given not in self._effects:
            self._effects[given] = effect_of(self.project, self.program, given)
        return self._effects[given]

    def _acts_before(self, top: cst.CSTNode) -> bool:
        """Whether the program does something between the Estimator and its first use that changes what is read."""
        made = self._position(self.program.place.call)
        block = path_to(self.program.scope, top)[-2]
        assert isinstance(block, (cst.Module, cst.IndentedBlock))
        return any(
            made < self._position(one) < self._position(top) and acts(self.file, one)
            for one in block.body
            if one not in self.program.removed
        )

    def _keep_first(self) -> list[str]:
        """Lines that make the dataset of the first use early, where no other one may tell the shapes.

        Raises Blocked (TFM618) where it is not known which use comes first.
        """
        candidates = self._candidates()
        if not candidates or self._effect(candidates[0][0]) is not Effect.DRAWS:
            return []
        first = self.program.calls[0]
        given, place, mode = next((one for one in candidates if one[1] is first), candidates[0])
        top = self._first_use()
        assert given is not None
        if place is not first or not isinstance(top, cst.SimpleStatementLine):
            message = "one more call of this input function, for the shapes, would change the data: draw outside of it"
            raise Blocked("TFM618", given, message)
        self._check_move(top)
        return self._keep(given, mode)

    def _keep(self, given: cst.BaseExpression | None, mode: str) -> list[str]:
        """The line that makes a dataset for all that wants it before, or in, the use of its input function."""
        assert given is not None
        text = self.datasets.text(given, self.program.place.call, mode)
        self.kept[given] = self._free({"train": "train_data", "eval": "eval_data"}.get(mode, "data"))
        return [f"{self.kept[given]} = {text}"]

    def _keep_counted(self, given: cst.BaseExpression | None, plan: TrainingPlan) -> list[str]:
        """The line that makes a dataset whose batches are counted before a training on all of them."""
        both = self.program.train_and_evaluate
        if given is None or given in self.kept or not plan.target.creates or self._effect(given) is not Effect.DRAWS:
            return []
        if both is not None and given is both.train.get("input_fn"):
            if plan.max_steps is None:
                message = "counting the batches of this input function would change the data: give `max_steps`"
                raise Blocked("TFM618", given, message)
            return []
        return self._keep(given, "train")

    def _dataset(self, given: cst.BaseExpression | None, place: cst.Call, mode: str) -> str:
        """The dataset of an input function, or its name where it is made already; tasks of a cluster make their own."""
        if given is None or given not in self.kept:
            return self.datasets.text(given, place, mode)
        if not self.target.reads_cluster:
            return self.kept[given]
        jobs = f"{self.names['resolver']}.cluster_spec().jobs"
        return f"{self.datasets.text(given, place, mode)} if {jobs} else {self.kept[given]}"

    def _position(self, node: cst.CSTNode) -> tuple[int, int]:
        return self.file.position(node)

    def _first_use(self) -> cst.CSTNode | None:
        """The statement of the Estimator's own block that holds its first use."""
        program = self.program
        around = path_to(program.scope, program.place.call)
        assert program.place.statement is not None
        block = around[next(i for i, n in enumerate(around) if n is program.place.statement) - 1]
        inside = path_to(program.scope, program.calls[0])
        at = next((i for i, n in enumerate(inside) if n is block), None)
        return None if at is None else inside[at + 1]

    def _bound_later(self, node: cst.BaseExpression, place: cst.Call) -> list[tuple[str, cst.CSTNode]]:
        """What binds names that the dataset reads, between the Estimator and the call that gets the dataset."""
        program = self.program
        names = names_behind(self.file, program.scope, node) - {program.variable}
        inner = [n for n in path_to(program.scope, place)[1:] if isinstance(n, cst.FunctionDef)]
        since, until = self._position(program.place.call), self._position(place)
        found = [
            (name, bound)
            for name, bound in bindings(program.scope)
            if name in names
            and bound not in inner
            and self._position(bound) > since
            and (inner or self._position(bound) < until)
            and not (name in self.file.imports.names and isinstance(bound, cst.Attribute))  # module.function(...)
        ]
        for function in inner:
            found += [(name, bound) for name, bound in bindings(function) if name in names and bound is not function]
        return found

    def _check_move(self, top: cst.CSTNode) -> None:
        """What the set-up reads besides the dataset must be the same at its new place."""
        program = self.program
        read = [
            program.params,
            program.model_dir,
            program.model.callee,
            *self._given_to_model(),
            *program.config.values(),
        ]
        for node in read:
            if node is None:
                continue
            changed = rebound(self.file, program.scope, node, program.place.call, top)
            if changed is not None:
                message = f"`{changed[0]}` changes between the Estimator and its first use"
                raise Blocked("TFM103", changed[1], message)

    def _set_up(self, plan: TrainingPlan, dataset: str) -> tuple[list[str], list[str]]:
        """Lines that make strategy and model, and lines that restore a checkpoint."""
        program = self.program
        lines: list[str] = []
        if self.model_dir_line is not None:
            lines.append(self.model_dir_line)
        seed = program.config.get("tf_random_seed")
        if seed is not None:
            lines.append(f"tf.random.set_seed({self._text(seed)})")
        if program.model.ready:
            return lines, restore(plan) if program.train_and_evaluate is None and plan.model_dir is not None else []
        inputs = f"{self.names['make_inputs']}({dataset})"
        arguments = self._model_arguments(inputs)
        target = f"{self.model}, {self.names['predictor']}" if self.has_predictor else self.model
        head = f"{target} = {self._text(program.model.callee)}"
        made = self._strategy_lines(plan)
        if made or plan.made:
            self.in_scope = True
            scope = f"with {plan.strategy_name}.scope():"
            lines += [*made, scope, self.indent + call(head, arguments, self.indent, 1)]
            lines += self._on_every_task(plan)
            if plan.local:
                copy = call(self._text(program.model.callee), arguments, self.indent, 1).rstrip()
                copy = f"lambda: {copy}{'[0]' if self.has_predictor else ''}"
                made_local = f"{plan.local} = {self.names['LocalCopy']}"
                lines.append(call(made_local, [self.model, copy], self.indent, 0))
        else:
            lines.append(call(head, arguments, self.indent, 0))
        lines += plan.loop.set_up(plan)
        if self.many_steps:
            servers, workers = self.on_servers > 1, self.target.mirrored_workers
            make = partial(many_steps.set_train_function, indent=self.indent, servers=servers, workers=workers)
            self._helper("set_train_function", make)
            lines.append(f"{self.names['set_train_function']}({self.model})")
        after: list[str] = []
        if plan.loop.own:
            return lines, after
        if program.train_and_evaluate is None and plan.model_dir is not None:
            after = restore(plan)
        return lines, after

    def _on_every_task(self, plan: TrainingPlan) -> list[str]:
        """Lines for the tasks of a cluster that a plain `train` runs on: it evaluates there, and has no evaluator."""
        by_hand = self.program.variable in self.program.file.clusters
        if self.program.train_and_evaluate is not None or not self.target.reads_cluster or by_hand:
            return []
        return [
            f'if {plan.resolver}.task_type == "evaluator":',
            f'{self.indent}raise ValueError("this program evaluates where it trains, and has no evaluator task")',
        ]

    def _chosen(self, own: OwnStrategy, plan: TrainingPlan) -> list[str]:
        """The line that makes a strategy which is chosen in the RunConfig; none where lines of the program do."""
        choice = own.choice
        assert choice is not None

        def text(made: cst.Call, target: Target) -> str:
            one = OwnStrategy(target, made)
            devices = arguments_of(self.program, one, self._text, self.remarks)
            lines = target.set_up(replace(plan, devices=devices))
            return lines[-1].partition(" = ")[2] if lines else "tf.distribute.get_strategy()"

        if choice.nones:
            message = "no strategy is TensorFlow's default one now: one device, whatever TF_CONFIG says"
            self.remarks.append(Blocked("TFM726", choice.nones[0], message))
        new = in_place(choice, text)
        self.changed.update(new)
        if choice.value is None:
            return []
        self.rewriter.replaced.update(new)
        return [f"{plan.strategy_name} = {self._text(choice.value)}"]

    def _variables(self, use: Use) -> cst.BaseExpression:
        """What the Estimator's newest checkpoint has, asked of the model."""
        call_node, name = use.place.call, use.arguments.get("name")
        if use.method == "get_variable_value" and asks_global_step(self.file, name):
            return cst.parse_expression(f"int({self.model}.optimizer.iterations.numpy())")
        message = "the weights have these names in TensorFlow 1 only: the bridge keeps them"
        raise Blocked("TFM853", call_node, message)

    def _given_to_model(self) -> list[cst.BaseExpression]:
        """What a partial or a lambda in the Estimator's own call gives the model_fn."""
        model = self.program.model
        template = [value for _, value in model.template or () if not isinstance(value, str)]
        return [*template, *(arg.value for arg in model.more)]

    @property
    def copies_params(self) -> bool:
        """Whether the params must be copied, as an Estimator copies them: they change."""
        params, model = self.program.params, self.program.model
        if params is None:
            return False
        if changes_later(self.project, self.file, params, self.program.place.call):
            return True
        if changes_own(self.project, model.file, model.function, model.parameters.params):
            return isinstance(params, (cst.Name, cst.Attribute, cst.Subscript))
        return False

    def _model_arguments(self, inputs: str) -> list[str]:
        """The arguments of the call that makes the model."""
        model = self.program.model
        params = self._model_params()
        if self.copies_params:
            params = f"copy.deepcopy({params})"
        if model.template is not None:
            arguments = []
            for keyword, value in model.template:
                text = {"features": inputs, "params": params}[value] if isinstance(value, str) else self._text(value)
                arguments.append(text if keyword is None else f"{keyword}={text}")
            return arguments + self._further()
        arguments = [inputs]
        roles = model.parameters
        if roles.params is not None:
            left = [p.name.value for p in model.function.params.params]
            left = [name for name in left if name not in (roles.labels, roles.mode, roles.config)]
            second = left[left.index(roles.features) + 1 :][:1]
            plain = second == [roles.params] and not model.lambdas
            arguments.append(params if plain else f"params={params}")
        return arguments + [self._argument(arg) for arg in model.more] + self._further()

    def _further(self) -> list[str]:
        """What the function that makes the model is told of the target."""
        return [f"{MESH}={self.names['mesh']}"] if self.target.mesh else self._steps_per_execution()

    def _steps_per_execution(self) -> list[str]:
        """The argument that says how many steps a TPU makes in one go, or `fit` where servers make a difference."""
        if self.target is AUTO and self.takes_steps:
            jobs = f"{self.names['resolver']}.cluster_spec().jobs"
            return [f'{STEPS}={self.on_servers} if "ps" in {jobs} else {STEPS_OF_EXECUTION}']
        tpu = self.program.tpu
        if tpu is None or self.target is not TPU or not self.takes_steps or tpu.iterations is None:
            return []
        steps = self._text(tpu.iterations)
        return [f"{STEPS}={steps}" if tpu.flag is None else f"{STEPS}={steps} if {self._text(tpu.flag)} else 1"]

    def _model_params(self) -> str:
        """The params that the model is made with; a TPUEstimator puts the batch size of a core into them."""
        params = "{}" if self.program.params is None else self._text(self.program.params)
        size = self.program.model_batch
        if size is None:
            return params
        text = self._text(size)
        if self.target is TPU:
            text = f"{primary(text)} // {self.names['strategy']}.num_replicas_in_sync"
        return f'{{"batch_size": {text}}}' if params == "{}" else f"dict({params}, batch_size={text})"

    def _argument(self, arg: cst.Arg) -> str:
        assert arg.keyword is not None
        return f"{arg.keyword.value}={self._text(arg.value)}"

    def _train(self, use: Use, plan: TrainingPlan, replaced: dict[cst.CSTNode, list[cst.BaseStatement]]) -> None:
        statement = use.place.statement
        assert statement is not None
        begin: list[str] = []
        limits = self._limits(use.arguments, use.place.call)
        steps, max_steps = limits.get("steps"), limits.get("max_steps")
        told = self._never_end(use.arguments, "train")
        plan = replace(plan, callbacks=self._callbacks(use.arguments), told_steps=told)
        if any(hooks.reads_evaluations for _, hooks in self.program.hooks):
            raise Blocked("TFM164", use.place.call, "a hook reads evaluations, which `train` does not make")
        if is_none(max_steps) and is_none(steps):
            begin += self._keep_counted(use.arguments.get("input_fn"), plan)
        dataset = self._dataset(use.arguments.get("input_fn"), use.place.call, _MODES[use.method])
        if not is_none(max_steps):
            assert max_steps is not None
            plan = replace(plan, endless=self._is_endless(max_steps))
            lines = plan.loop.train(plan, dataset, self._batches(max_steps), True)
        else:
            text = None if is_none(steps) else self._batches(steps)  # type: ignore[arg-type]
            self._is_endless(steps)
            lines = plan.loop.train(plan, dataset, text, False)
        replaced[statement] = self._parsed("\n".join([*begin, *lines]) + "\n")

    # -- exports ---------------------------------------------------------------------------------------------------

    def _export(self, use: Use, lent: Lent | None = None) -> cst.BaseExpression:
        folder = self._text(use.arguments["export_dir_base"])
        serving = self._text(use.arguments["serving_input_receiver_fn"])
        predictor = self.names.get("predictor", self.model) if lent is None else lent.parameter
        text = f"{self.names['export_model']}({predictor}, {serving}, {folder})"
        statement = use.place.statement
        small = statement.body[0] if statement is not None else None
        if not isinstance(small, cst.Expr) or small.value is not use.place.call:
            text += ".encode()"  # an Estimator answers with bytes
        return cst.parse_expression(text)

    def _exporters(self, both: TrainAndEvaluate, plan: TrainingPlan) -> list[str]:
        """Lines that export when the training is over: in the process that evaluates."""
        lines = []
        for exporter in both.exporters:
            if plan.model_dir is None:
                raise Blocked("TFM142", exporter.call, "exporters write below the `model_dir`: give the Estimator one")
            if exporter.kind == "Best" and plan.period is not None:
                raise Blocked("TFM142", exporter.call, "which of several evaluations is the best is not looked for")
            if exporter.kind != "Final" and (plan.period is not None or self.target.reads_cluster):
                message = f"the {exporter.kind}Exporter writes once, when the training is over"
                self.remarks.append(Blocked("TFM143", exporter.call, message))
            folder = f'os.path.join({plan.model_dir}, "export", {self._text(exporter.name)})'
            arguments = [self.names.get("predictor", self.model), self._text(exporter.serving), folder]
            depth = 1 if self.target.reads_cluster else 0
            lines.append(self.indent * depth + call(self.names["export_model"], arguments, self.indent, depth))
        if self.target.reads_cluster:
            evaluates = f'{plan.resolver}.task_type == "evaluator" or not {plan.resolver}.cluster_spec().jobs'
            lines.insert(0, f"if {evaluates}:")
        return lines

    def _lent_dataset(self, use: Use, lent: Lent) -> str:
        """The dataset of an input function in a function that has the model from elsewhere."""
        node = use.arguments.get("input_fn")
        if isinstance(node, cst.Name):
            given = lent.given(node.value)
            if given is not None:
                self.datasets.check_returned(given)
                callee = self.datasets.callee(given)
                if callee is not None and self.datasets.passed(*callee, given, _MODES[use.method]):
                    raise Blocked("TFM602", given, "an input function that takes `params` is given to a function")
                return f"{node.value}()"
            if any(is_array_input(self.file.imports.tensorflow(made)) for made in _made_in(lent.function, node.value)):
                return f"{node.value}()"  # the line becomes a function of that name
        if node is not None and names_in(node) & {name for name, _ in bindings(self.program.scope)}:
            shared = names_in(node) & {name for name, _ in bindings(self.program.scope)}
            if not shared <= self.file.functions.keys():
                raise Blocked("TFM602", node, "this input function has a name that means something else in the driver")
        return self.datasets.text(node, use.place.call, _MODES[use.method])

    def _is_too_long(self, old: cst.Call, text: str) -> bool:
        """Whether a line gets too long when a call on it that fits there becomes `text`."""
        before = self.file.code(old)
        if "\n" in before:
            return self.file.position(old)[1] - 1 + len(text) > _LONGEST
        line = self.file.text.splitlines()[self.file.position(old)[0] - 1].rstrip()
        return len(line) - len(before) + len(text) > max(_LONGEST, len(line))

    def _evaluate_or_predict(self, use: Use, lent: Lent | None = None) -> cst.BaseExpression:
        if lent is not None:
            dataset = self._lent_dataset(use, lent)
        else:
            dataset = self._dataset(use.arguments.get("input_fn"), use.place.call, _MODES[use.method])
        model = self.model if lent is None else lent.parameter
        predictor = lent.parameter if lent is not None else self.names.get("predictor", self.model)
        if use.method == "evaluate":
            given_steps = use.arguments.get("steps")
            callbacks = as_argument(self._callbacks(use.arguments), self.indent, 0)
            if self.plan is not None and self.plan.evaluates_apart:
                count = None if given_steps is None or is_none(given_steps) else self._batches(given_steps)
                fed = evaluated(replace(self.plan, eval_dataset=dataset, eval_steps=count), 1)
            else:
                endless = self._never_end(use.arguments, "eval")
                data, steps = self._counted(dataset, given_steps, None, endless)
                fed = [data, *([] if steps is None else [f"steps={steps}"])]
            on_cluster = self.plan is not None and self.plan.local and self.program.train_and_evaluate is None
            evaluated_model = f"{self.plan.local}.current()" if on_cluster and self.plan is not None else model
            head, arguments = f"{evaluated_model}.evaluate", [*fed, *callbacks, "return_dict=True"]
            if self.loop.own:
                loop = self.names["loop"]
                head, arguments = f"{loop}.evaluate", [f"{loop}.batches({fed[0]})"]
            if self._tells_steps(use, self.program.scope if lent is None else lent.function):
                arguments = [
                    f"{head}({', '.join(arguments)})",
                    f"global_step=int({model}.optimizer.iterations.numpy())",
                ]
                head = "dict"
        else:
            head = self.names[_name_of_prediction(use)]
            arguments = [predictor, dataset]
            watched = as_argument(self._callbacks(use.arguments), self.indent, 0)
            arguments += [argument.removeprefix("callbacks=") for argument in watched]
            if _asks_for_keys(use):
                arguments.append(f"predict_keys={self._text(use.arguments['predict_keys'])}")
        text = f"{head}({', '.join(arguments)})"
        comments = [value for value in _comments_in(use.place.call) if value not in text]
        if comments or self._is_too_long(use.place.call, text):
            # Lines in parentheses are printed with the indentation of the block that they come to.
            above = "".join(f"{value}\n{self.indent}" for value in comments)
            filler = "" if comments else " " * _LONGEST  # what stands around it makes the line too long
            text = call(head, [above + arguments[0], *arguments[1:]], self.indent, 0, filler).rstrip()
        return cst.parse_expression(text)


def _made_in(function: cst.FunctionDef, name: str) -> list[cst.BaseExpression]:
    """What is called for the only value of a name of a function's own; nothing where it has others."""
    own = [one for one in bound_in(function) if one.name == name]
    return [one.value.func for one in own if len(own) == 1 and isinstance(one.value, cst.Call)]


def _named(both: TrainAndEvaluate) -> str | None:
    """The name that is all that a line does with the result of train_and_evaluate."""
    small = both.place.statement.body[0] if both.place.statement is not None else None
    if isinstance(small, cst.Assign) and small.value is both.place.call and len(small.targets) == 1:
        target = small.targets[0].target
        return target.value if isinstance(target, cst.Name) else None
    return None


def _comments_in(node: cst.CSTNode) -> list[str]:
    """The comments inside a node and at its end, not those over a statement."""
    return [line.comment.value for line in comment_lines(node, leading=False) if line.comment is not None]


def _name_of_prediction(use: Use) -> str:
    """The function that a prediction becomes a call of: it answers by examples, or by whole batches."""
    return "predict_batches" if is_false(use.arguments.get("yield_single_examples")) else "predict"


def _asks_for_keys(use: Use) -> bool:
    """Whether a prediction is asked for some of its keys only."""
    return use.method == "predict" and not is_none(use.arguments.get("predict_keys"))


def _predictions(program: TrainingProgram) -> list[str]:
    """The functions that a program needs for its predictions."""
    return sorted({_name_of_prediction(use) for use in program.all_uses if use.method == "predict"})


def uses_of(program: TrainingProgram, method: str) -> bool:
    """Whether a program calls a method of its Estimator."""
    flowing = () if program.flowing is None else program.flowing.uses
    return method in {use.method for use in program.all_uses} | {use.method for use in flowing}


__all__ = [
    "EmittedDriver",
    "FileNames",
    "ParsedFile",
    "emit_driver",
    "session_lines",
    "uses_of",
]
