"""What the parts of a driver share while it is written: the program, what is asked for, and what came up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import libcst as cst

from migrator.emit.datasets import Datasets
from migrator.emit.driver.data import DriverData
from migrator.emit.layout import statements
from migrator.emit.names import free
from migrator.program.parsed import Blocked, ParsedFile, Project
from migrator.program.ready_scopes import Scoped
from migrator.program.training import TrainingProgram
from migrator.rules.generation import KERAS_2, Keras
from migrator.rules.rewriter import Rewriter
from migrator.targets.choosing import OwnStrategy, draws_batches, own_strategy
from migrator.targets.clusters import ONE_EVALUATOR, Clusters
from migrator.targets.plan import Loop, Target
from migrator.targets.registry import LOOPS, TPU


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


@dataclass(frozen=True)
class DrivenModel:
    """What the driver has to know of the model that the model_fn became.

    - `has_predictor`: the function that makes the model gives one that predicts, too
    - `predictions_are_dicts`: what it predicts is a dict
    - `signatures`: the names that the predictions are served under
    - `stop`: what the model_fn ends the training after, see SpecHooks
    - `takes_steps`: the function takes `steps_per_execution`
    - `loss_of_class`: the loss is one of Keras' classes
    - `loss_of_batch`: the model computes its loss from whole batches
    - `measures`, `measures_itself`: it has metrics; it updates them itself
    - `scoped`: the statements that make a model of the program's own, which go into the strategy's scope
    - `rates`: whose learning rates a checkpoint leaves as they are, see setup.rates_kept ("": nobody's)
    - `shares_penalties`: each replica adds its share of what regularizers say
    """

    has_predictor: bool
    predictions_are_dicts: bool
    signatures: Sequence[str] = ()
    stop: tuple[str, cst.BaseExpression] | None = None
    takes_steps: bool = False
    loss_of_class: bool = True
    loss_of_batch: bool = False
    measures: bool = False
    measures_itself: bool = False
    scoped: Scoped | None = None
    rates: str = ""
    shares_penalties: bool = False


@dataclass(frozen=True)
class Asked:
    """What is asked of a driver.

    - `partitioner`: the expression of that of parameter servers, if there is one
    - `loop`: what trains
    - `on_servers`: the steps that `fit` makes in one execution on parameter servers (0: that is not looked at)
    - `many_steps`: they may be more than one on the clusters of the target
    - `clusters`: what is asked of a program that runs on them
    """

    target: Target
    partitioner: str | None = None
    keras: Keras = KERAS_2
    loop: Loop = LOOPS["fit"]
    on_servers: int = 0
    many_steps: bool = False
    clusters: Clusters = ONE_EVALUATOR


@dataclass
class Draft:
    """A driver that is being written.

    `rewriter` is the one that the rest of the file is rewritten with. `loop` is what trains (`fit` where nothing does),
    `own` the program's own strategy, where it is that of the target, `evaluates_apart` says that evaluations are under
    one, too. `names` are those of the new code, by what they are for. `draws` says that each replica of a loop of the
    program's own draws whole batches, `iterates` that such a loop goes over the batches one by one. `folder_line` gives
    the `model_dir` a name. `changed` are expressions of the program that become others, `helpers` functions to put
    before the driver, and `needs` modules that the new lines import.
    """

    project: Project
    program: TrainingProgram
    rewriter: Rewriter
    file_names: FileNames
    model: DrivenModel
    asked: Asked
    own: OwnStrategy | None
    loop: Loop
    names: dict[str, str]
    datasets: Datasets
    data: DriverData
    model_name: str = ""
    folder_line: str | None = None
    draws: bool = False
    iterates: bool = False
    remarks: list[Blocked] = field(default_factory=list)
    needs: set[str] = field(default_factory=set)
    helpers: list[str] = field(default_factory=list)
    changed: dict[cst.CSTNode, cst.BaseExpression] = field(default_factory=dict)

    @property
    def file(self) -> ParsedFile:
        return self.program.file

    @property
    def target(self) -> Target:
        return self.asked.target

    @property
    def keras(self) -> Keras:
        return self.asked.keras

    @property
    def indent(self) -> str:
        return self.file.module.default_indent

    @property
    def evaluates_apart(self) -> bool:
        return self.datasets.apart

    def free(self, wanted: str) -> str:
        return self.file_names.free(wanted)

    def helper(self, wanted: str, build: Callable[[str], str]) -> str:
        """The name of a function beside the program; the programs of a file share those of the same text."""
        key = build(wanted)
        if key not in self.file_names.helpers:
            self.file_names.helpers[key] = self.free(wanted)
        name = self.names[wanted] = self.file_names.helpers[key]
        self.helpers.append(build(name))
        return name

    def say(self, code: str, node: cst.CSTNode, message: str) -> None:
        """A remark about the program."""
        self.remarks.append(Blocked(code, node, message))

    def text(self, node: cst.BaseExpression) -> str:
        """The new text of an expression of the user's."""
        new = node.visit(self.rewriter)
        assert isinstance(new, cst.BaseExpression)
        return self.file.code(new)

    def argument(self, arg: cst.Arg) -> str:
        """The new text of an argument that is given on."""
        name = "" if arg.keyword is None else f"{arg.keyword.value}="
        return f"{arg.star}{name}{self.text(arg.value)}"

    def of_config(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """An expression, or what the RunConfig was given where it only reads that."""
        return self.program.config_reads.given.get(node, node)

    def parsed(self, lines: Sequence[str]) -> list[cst.BaseStatement]:
        """The statements of lines."""
        return statements("\n".join(lines) + "\n", self.file.module)


def begin(
    project: Project, program: TrainingProgram, rewriter: Rewriter, names: FileNames, model: DrivenModel, asked: Asked
) -> Draft:
    """A driver of which nothing is written yet. Raises Blocked where its strategy cannot be read."""
    target = asked.target
    own = own_strategy(program) if program.config.get("train_distribute") is not None else None
    own = own if own is not None and own.target is target else None
    session = any([program.session.first, *program.session.lines.values()])
    if own is not None and own.line in names.shared and not (target.reads_cluster or session):
        own = replace(own, elsewhere=True)
    apart = target.per_replica and program.config.get("eval_distribute") is not None and own is not None
    taken = {wanted: names.free(wanted) for wanted in ("resolver", "checkpoint", "steps")}
    taken["strategy"] = names.free(target.scope)
    strategy = taken["strategy"] if own is None or own.name is None else own.name
    divided = asked.loop.own and not (draws_batches(program, target) or target.parameter_servers)
    datasets = Datasets(project, program, rewriter, target, strategy, apart, divided)
    if target.mesh:
        taken["mesh"] = names.free("mesh")
    if program.tpu is not None and target is TPU and program.tpu.name is not None:
        taken["resolver"] = program.tpu.name
    trains = program.train_and_evaluate is not None or program.does("train") or program.does("evaluate")
    loop = asked.loop if trains else LOOPS["fit"]
    data = DriverData(project, program, target, datasets, taken, names.free)
    draft = Draft(project, program, rewriter, names, model, asked, own, loop, taken, datasets, data)
    draft.remarks += program.remarks
    return draft


__all__ = ["Asked", "Draft", "DrivenModel", "FileNames", "begin"]
