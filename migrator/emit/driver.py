"""The driver of a training program: what replaces the Estimator, its specs and the calls on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import libcst as cst

from migrator.emit.layout import call, statements
from migrator.emit.names import free
from migrator.names.imports import dotted
from migrator.program.calls import is_none
from migrator.program.parsed import Blocked, ParsedFile, Project
from migrator.program.training import TrainAndEvaluate, TrainingProgram, Use
from migrator.rules.rewriter import Rewriter
from migrator.targets import cluster, one_device, setup
from migrator.targets.plan import TrainingPlan, restore
from migrator.targets.setup import Strategy

_MIRRORED = (
    "tf.distribute.experimental.MultiWorkerMirroredStrategy",
    "tf.distribute.MultiWorkerMirroredStrategy",
    "tf.contrib.distribute.CollectiveAllReduceStrategy",
)


@dataclass(frozen=True)
class EmittedDriver:
    """Replacements by node: statements for statements (none: removed), an expression for an expression.

    `helpers` are functions to put before the driver, as source text.
    """

    statements: dict[cst.CSTNode, list[cst.BaseStatement]]
    expressions: dict[cst.CSTNode, cst.BaseExpression]
    helpers: tuple[str, ...]
    needs: frozenset[str]
    remarks: tuple[Blocked, ...]
    strategy: Strategy


def choose_strategy(program: TrainingProgram, asked: Strategy) -> Strategy:
    """The strategy of a program: the one asked for, else what its RunConfig and its driver say."""
    distribute = program.config.get("train_distribute")
    mirrored = False
    if distribute is not None:
        function = distribute.func if isinstance(distribute, cst.Call) else distribute
        if isinstance(distribute, cst.Name):
            value = program.file.constants.get(distribute.value)
            function = value.func if isinstance(value, cst.Call) else function
        if program.file.imports.resolve(function) not in _MIRRORED:
            raise Blocked("TFM704", distribute, "this train_distribute strategy is not carried over yet")
        if isinstance(distribute, cst.Name) or (isinstance(distribute, cst.Call) and distribute.args):
            raise Blocked("TFM704", distribute, "give the strategy in the RunConfig, without arguments")
        mirrored = True
    if asked is not Strategy.AUTO:
        return asked
    if mirrored:
        return Strategy.MULTI_WORKER_MIRRORED
    return Strategy.AUTO if program.train_and_evaluate is not None else Strategy.ONE_DEVICE


def emit_driver(
    project: Project,
    program: TrainingProgram,
    rewriter: Rewriter,
    strategy: Strategy,
    partitioner: str | None,
    has_predictor: bool,
    predictions_are_dicts: bool,
) -> EmittedDriver:
    """Builds the driver. `rewriter` is the one that the rest of the file is rewritten with."""
    return _Emitter(project, program, rewriter, strategy, partitioner, has_predictor, predictions_are_dicts).emit()


class _Emitter:
    def __init__(
        self,
        project: Project,
        program: TrainingProgram,
        rewriter: Rewriter,
        strategy: Strategy,
        partitioner: str | None,
        has_predictor: bool,
        predictions_are_dicts: bool,
    ) -> None:
        self.project = project
        self.program = program
        self.file = program.file
        self.rewriter = rewriter
        self.strategy = strategy
        self.partitioner = partitioner
        self.has_predictor = has_predictor
        self.predictions_are_dicts = predictions_are_dicts
        self.indent = program.file.module.default_indent
        self.remarks = list(program.remarks)
        self.taken = set(program.file.names)
        self.names = {
            wanted: self._free(wanted)
            for wanted in (
                "resolver",
                "strategy",
                "checkpoint",
                "steps",
                "make_strategy",
                "make_inputs",
                "predict",
                "predictor",
            )
        }
        self.model = self._model_name()

    def _free(self, wanted: str) -> str:
        name = free(wanted, self.taken)
        self.taken.add(name)
        return name

    def _model_name(self) -> str:
        """The user's own name for the Estimator, unless that name says Estimator."""
        if "estimator" in self.program.variable.lower():
            return self._free("model")
        return self.program.variable

    def emit(self) -> EmittedDriver:
        program = self.program
        plan = self._plan()
        replaced: dict[cst.CSTNode, list[cst.BaseStatement]] = {line: [] for line in program.removed}
        assert program.place.statement is not None
        setup_lines, after = self._set_up(plan)
        replaced[program.place.statement] = self._parsed("\n".join([*setup_lines, *after]) + "\n")
        expressions: dict[cst.CSTNode, cst.BaseExpression] = {}
        both = program.train_and_evaluate
        if both is not None and self.strategy.cluster and plan.model_dir is None:
            self.remarks.append(
                Blocked(
                    "TFM112", program.place.call, "without a model_dir an evaluator task has no checkpoints; it ends"
                )
            )
        if both is not None:
            target = cluster if self.strategy.cluster else one_device
            assert both.place.statement is not None
            replaced[both.place.statement] = self._parsed(target.train_and_evaluate(plan))
        for use in program.uses:
            if use.method == "train":
                self._train(use, plan, replaced)
            else:
                expressions[use.place.call] = self._evaluate_or_predict(use)
        return EmittedDriver(
            replaced,
            expressions,
            tuple(self._helpers()),
            frozenset(("os",)) if plan.model_dir is not None else frozenset(),
            tuple(self.remarks),
            self.strategy,
        )

    # -- text of the user's expressions ----------------------------------------------------------------------------

    def _text(self, node: cst.BaseExpression) -> str:
        new = node.visit(self.rewriter)
        assert isinstance(new, cst.BaseExpression)
        return self.file.code(new)

    def _parsed(self, text: str) -> list[cst.BaseStatement]:
        return statements(text, self.file.module)

    def _dataset(self, node: cst.BaseExpression | None, place: cst.CSTNode) -> str:
        """The expression that makes the dataset of an input function."""
        if node is None:
            raise Blocked("TFM602", place, "no input function is given")
        if isinstance(node, cst.Lambda):
            if node.params.params or node.params.kwonly_params:
                raise Blocked("TFM602", node, "the input function is a lambda with parameters")
            return self._text(node.body)
        if isinstance(node, cst.Call):
            if self.file.imports.resolve(node.func) == "functools.partial" and node.args:
                inner = cst.Call(node.args[0].value, [a.deep_clone() for a in node.args[1:]])
                return self.file.code(inner)
            return f"{self._text(node)}()"
        found = self.project.function(self.file, node)
        arguments: list[str] = []
        if found is not None:
            for parameter in found[1].params.params:
                if parameter.default is not None:
                    continue
                if parameter.name.value != "params" or self.program.params is None:
                    raise Blocked("TFM602", node, f"the input function needs an argument `{parameter.name.value}`")
                arguments.append(self._text(self.program.params))
        if dotted(node) is None:
            raise Blocked("TFM602", node, "this input function is not a name, a lambda or a partial")
        return f"{self.file.code(node)}({', '.join(arguments)})"

    def _limited(self, dataset: str, steps: cst.BaseExpression | None, default: str | None) -> str:
        """A dataset of at most `steps` batches."""
        if steps is None:
            return dataset if default is None else f"{dataset}.take({default})"
        return dataset if is_none(steps) else f"{dataset}.take({self._text(steps)})"

    # -- the plan --------------------------------------------------------------------------------------------------

    def _plan(self) -> TrainingPlan:
        program = self.program
        both = program.train_and_evaluate
        model_dir = self._text(program.model_dir) if program.model_dir is not None else None
        if model_dir is not None and not isinstance(program.model_dir, cst.Name | cst.Attribute):
            self.model_dir_line: str | None = f"{self._free('model_dir')} = {model_dir}"
            model_dir = self.model_dir_line.partition(" ")[0]
        else:
            self.model_dir_line = None
        plan = TrainingPlan(
            strategy=self.strategy,
            model=self.model,
            resolver=self.names["resolver"],
            strategy_name=self.names["strategy"],
            checkpoint=self.names["checkpoint"],
            steps=self.names["steps"],
            indent=self.indent,
            train_dataset="",
            eval_dataset="",
            max_steps=None,
            period=None,
            epochs=None,
            model_dir=model_dir,
        )
        if both is None:
            return plan
        max_steps = both.train.get("max_steps")
        plan = replace(
            plan,
            train_dataset=self._dataset(both.train.get("input_fn"), both.place.call),
            eval_dataset=self._limited(
                self._dataset(both.evaluate.get("input_fn"), both.place.call), both.evaluate.get("steps"), "100"
            ),
            max_steps=None if is_none(max_steps) else self._text(max_steps),  # type: ignore[arg-type]
        )
        return self._with_period(plan, both)

    def _with_period(self, plan: TrainingPlan, both: TrainAndEvaluate) -> TrainingPlan:
        """Sets the period of checkpoints and evaluations where it divides the training."""
        every = self.program.config.get("save_checkpoints_steps")
        if every is None:
            return plan
        steps = both.train.get("max_steps")
        period, total = self.file.integer(every), self.file.integer(steps)
        if period is None or total is None or total % period:
            self.remarks.append(
                Blocked(
                    "TFM109",
                    every,
                    "checkpoints and evaluation come at the end only: the period does not divide max_steps",
                )
            )
            return plan
        text = self._text(every)
        total_text = plan.max_steps or str(total)
        return replace(plan, period=text, epochs=f"{total_text} // {text}")

    # -- statements ------------------------------------------------------------------------------------------------

    def _first_dataset(self) -> str:
        """The dataset that tells the shapes of the features."""
        program = self.program
        if program.train_and_evaluate is not None:
            both = program.train_and_evaluate
            return self._dataset(both.train.get("input_fn"), both.place.call)
        order = sorted(program.uses, key=lambda use: ("train", "evaluate", "predict").index(use.method))
        return self._dataset(order[0].arguments.get("input_fn"), order[0].place.call)

    def _set_up(self, plan: TrainingPlan) -> tuple[list[str], list[str]]:
        """Lines that make strategy and model, and lines that restore a checkpoint."""
        program = self.program
        lines: list[str] = []
        if self.model_dir_line is not None:
            lines.append(self.model_dir_line)
        seed = program.config.get("tf_random_seed")
        if seed is not None:
            lines.append(f"tf.keras.utils.set_random_seed({self._text(seed)})")
        arguments = [f"{self.names['make_inputs']}({self._first_dataset()})"]
        if program.params is not None and self._takes_params():
            arguments.append(self._text(program.params))
        target = f"{self.model}, {self.names['predictor']}" if self.has_predictor else self.model
        head = f"{target} = {self.file.code(program.model_fn_reference)}"
        if not self.strategy.cluster:
            lines.append(call(head, arguments, self.indent, 0))
        else:
            lines += [
                f"{plan.resolver} = tf.distribute.cluster_resolver.TFConfigClusterResolver()",
                f"{plan.strategy_name} = {self.names['make_strategy']}({plan.resolver})",
                f"with {plan.strategy_name}.scope():",
                self.indent + call(head, arguments, self.indent, 1),
            ]
        after: list[str] = []
        if program.train_and_evaluate is None and plan.model_dir is not None:
            after = restore(plan)
        return lines, after

    def _takes_params(self) -> bool:
        return any(p.name.value == "params" for p in self.program.model_fn.params.params)

    def _train(self, use: Use, plan: TrainingPlan, replaced: dict[cst.CSTNode, list[cst.BaseStatement]]) -> None:
        statement = use.place.statement
        if statement is None or len(statement.body) != 1 or not isinstance(statement.body[0], cst.Expr):
            raise Blocked("TFM103", use.place.call, "the result of train() is used")
        dataset = self._dataset(use.arguments.get("input_fn"), use.place.call)
        steps, max_steps = use.arguments.get("steps"), use.arguments.get("max_steps")
        if not is_none(max_steps):
            assert max_steps is not None
            lines = one_device.fit(plan, dataset, self._text(max_steps), absolute=True)
        else:
            text = None if is_none(steps) else self._text(steps)  # type: ignore[arg-type]
            lines = one_device.fit(plan, dataset, text, absolute=False)
        replaced[statement] = self._parsed("\n".join(lines) + "\n")

    def _evaluate_or_predict(self, use: Use) -> cst.BaseExpression:
        dataset = self._dataset(use.arguments.get("input_fn"), use.place.call)
        if use.method == "evaluate":
            limited = self._limited(dataset, use.arguments.get("steps"), None)
            return cst.parse_expression(f"{self.model}.evaluate({limited}, return_dict=True)")
        return cst.parse_expression(f"{self.names['predict']}({self.names['predictor']}, {dataset})")

    def _helpers(self) -> Sequence[str]:
        found = []
        if self.strategy.cluster:
            found.append(setup.make_strategy(self.names["make_strategy"], self.strategy, self.partitioner, self.indent))
        found.append(setup.make_inputs(self.names["make_inputs"], self.indent))
        if self.has_predictor:
            found.append(setup.predict(self.names["predict"], self.predictions_are_dicts, self.indent))
        return found


def uses_of(program: TrainingProgram, method: str) -> bool:
    """Whether a program calls a method of its Estimator."""
    return any(use.method == method for use in program.uses)


__all__ = ["EmittedDriver", "ParsedFile", "choose_strategy", "emit_driver", "uses_of"]
