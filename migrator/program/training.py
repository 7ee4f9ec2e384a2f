"""A training program: the Estimator, what it is made of, and how it is driven."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import libcst as cst

from migrator.names.bare import says
from migrator.names.bindings import Form, bound_in, hidden_in, values_given
from migrator.program import ready, tpu
from migrator.program.calls import attributes_in, bind, calls_in, is_false, is_name, is_none, is_true, string
from migrator.program.config_reads import ConfigReads
from migrator.program.exports import EXPORTS, Exporter, check_export, read_exporters
from migrator.program.flow import Mentioning
from migrator.program.leftovers import emptied_by, leftovers
from migrator.program.model_reference import ModelReference, find_models
from migrator.program.order import comes_first
from migrator.program.parsed import Blocked, ParsedFile, Project, name_nodes, names_in
from migrator.program.refusals import Refusals
from migrator.program.region import reach
from migrator.program.run_config import ReadConfig, read_run_config
from migrator.program.scopes import (
    assigned_lambdas,
    attributes_called,
    bindings,
    free_names,
    mentions_of,
    names_behind,
    path_to,
    rebound,
)
from migrator.program.session_config import Session, read_session
from migrator.program.starts import VARIABLES, asks_for_weights
from migrator.program.tensor_names import tensor_names
from migrator.rules.hooks import Hooks, Tensors, read_hooks, unused_reports
from migrator.walking import of_kinds, walk

_ESTIMATORS = ("tf.estimator.Estimator", *tpu.ESTIMATORS, *ready.ESTIMATORS)
_ESTIMATOR = ("model_fn", "model_dir", "config", "params", "warm_start_from")
TRAIN_SPEC = ("input_fn", "max_steps", "hooks", "saving_listeners")
EVAL_SPEC = ("input_fn", "steps", "name", "hooks", "exporters", "start_delay_secs", "throttle_secs")
_TRAIN = ("input_fn", "hooks", "steps", "max_steps", "saving_listeners")
_EVALUATE = ("input_fn", "steps", "hooks", "checkpoint_path", "name")
_PREDICT = ("input_fn", "predict_keys", "hooks", "checkpoint_path", "yield_single_examples")
METHODS = {"train": _TRAIN, "evaluate": _EVALUATE, "predict": _PREDICT, **EXPORTS, **VARIABLES}

_SIZE = "batch_size"
_PHASE_OF_SIZE = {"train": "train", "evaluate": "eval", "predict": "infer"}
_PHASES = {"train": "train", "evaluate": "test", "predict": "predict"}

Arguments = dict[str, cst.BaseExpression]

#: What is said of an Estimator that leaves its line otherwise than by a name.
NOT_NAMED = "assign the result of this call to a plain variable"


@dataclass(frozen=True)
class Place:
    """A call, the statement line that holds it, and the function (None: the module) around it."""

    name: str
    call: cst.Call
    statement: cst.SimpleStatementLine | None
    function: cst.FunctionDef | None


@dataclass(frozen=True)
class Use:
    """`estimator.train(...)` and the like: the method, the call and its arguments."""

    method: str
    place: Place
    arguments: Arguments


@dataclass(frozen=True)
class TrainAndEvaluate:
    """`tf.estimator.train_and_evaluate(...)` with the arguments of its two specs.

    `answers` says that its line does something with the result.
    """

    place: Place
    train: Arguments
    evaluate: Arguments
    exporters: tuple[Exporter, ...] = ()
    answers: bool = False


@dataclass(frozen=True)
class Lent:
    """An Estimator given to a function of the file, which evaluates, predicts or exports with it.

    `argument` is what the call in the program's scope gives, `parameter` what the function calls it.
    """

    call: cst.Call
    argument: cst.Name
    function: cst.FunctionDef
    parameter: str
    uses: tuple[Use, ...]

    @property
    def predicts(self) -> bool:
        """Whether the function wants the model that predicts, not the one that is trained."""
        return any(use.method != "evaluate" for use in self.uses)

    def given(self, name: str) -> cst.BaseExpression | None:
        """What the call gives for a parameter of the function; None when it gives nothing."""
        names = [p.name.value for p in self.function.params.params]
        for index, arg in enumerate(self.call.args):
            if (arg.keyword.value if arg.keyword is not None else names[index]) == name:
                return arg.value
        return None


@dataclass(frozen=True)
class FlowingUse:
    """A training, evaluation or prediction with an Estimator, or a spec of one, in any file: the call, its input
    function, and of its other arguments those that count. `homes` are the files of the functions that it may be.

    `method` is "train", "evaluate" or "predict"; a spec is the call of a TrainSpec or an EvalSpec.
    """

    file: ParsedFile
    method: str
    call: cst.Call
    given: cst.BaseExpression
    settings: Arguments
    homes: tuple[ParsedFile, ...] = ()
    is_spec: bool = False


@dataclass(frozen=True)
class Flowing:
    """An Estimator that an object with its methods takes the place of, and all that is done with it.

    `both` are the calls of train_and_evaluate, with the Estimator and the two specs of each. `configs` are the calls of
    the RunConfigs that it may be given (`RunConfig(...)` or `.replace(...)` of one), with what each says that counts;
    `config` is the argument that gives one of
    them, where that is not beside it, and `may_be_none` says that it may give none. `removed` are statements of other
    functions that only served what is left out. `passes_params` says that an input function takes the params.
    `exporters` are the calls that make those of train_and_evaluate, `exports` the calls of an Estimator that write a
    SavedModel (each with its function, its folder and its serving function); `asks` are the attributes and further
    methods that the Estimator is asked for, and those of its arguments that not every such object takes. `config_asks`
    is where a RunConfig is asked for its `model_dir`, and `config_for` are other Estimators that one is given to.
    """

    uses: tuple[FlowingUse, ...]
    both: tuple[tuple[ParsedFile, cst.Call, tuple[cst.BaseExpression, ...]], ...] = ()
    config: cst.BaseExpression | None = None
    may_be_none: bool = False
    configs: tuple[tuple[ParsedFile, cst.Call, Arguments], ...] = ()
    removed: tuple[tuple[ParsedFile, cst.BaseStatement], ...] = ()
    passes_params: bool = False
    exporters: tuple[tuple[ParsedFile, cst.CSTNode, Exporter], ...] = ()
    exports: tuple[tuple[ParsedFile, cst.CSTNode, cst.Call, cst.BaseExpression, cst.BaseExpression], ...] = ()
    asks: frozenset[str] = frozenset()
    config_asks: tuple[tuple[ParsedFile, cst.Attribute], ...] = ()
    config_for: tuple[cst.Call, ...] = ()

    @property
    def servings(self) -> list[tuple[ParsedFile, cst.CSTNode, cst.BaseExpression]]:
        """The serving functions, as they are given, with their files and scopes."""
        found = [(file, scope, exporter.serving) for file, scope, exporter in self.exporters]
        return [*found, *((file, scope, serving) for file, scope, _, _, serving in self.exports)]


@dataclass(frozen=True)
class TrainingProgram:
    """One Estimator and everything that is done with it in one scope of one file.

    `removed` are the statements of RunConfig, TrainSpec and EvalSpec, whose values are given elsewhere afterwards, and
    those that only served what is left out. `reads_global_step` says that the results of an evaluation are asked for
    it, `folders` are the places where the `model_dir` is asked of the Estimator, `lent` the functions that it is given
    to. `batch_sizes` are those that a TPUEstimator puts into the params of an input function, by mode. `session` is
    what becomes of the session's settings. `hooks` are those of all calls, each with what it is a hook of ("train",
    "test", "predict"); where some stay, the argument "callbacks" of the call is what was its `hooks`. `tpu` says which
    TPU is asked for, `model_batch` the batch size that a model_fn reads of its params, `config_reads` what the program
    reads of its RunConfig. `refusals` are what of it cannot be carried over natively: the rest was read without that.
    `flowing` is set where the Estimator goes from one function to another; nothing else says then what is done with it.
    """

    file: ParsedFile
    scope: cst.CSTNode
    place: Place
    variable: str
    model: ModelReference
    params: cst.BaseExpression | None
    model_dir: cst.BaseExpression | None
    config: Arguments
    uses: tuple[Use, ...]
    train_and_evaluate: TrainAndEvaluate | None
    removed: tuple[cst.BaseStatement, ...]
    remarks: tuple[Blocked, ...]
    reads_global_step: bool = False
    folders: tuple[cst.Attribute, ...] = ()
    lent: tuple[Lent, ...] = ()
    batch_sizes: dict[str, cst.BaseExpression] = field(default_factory=dict)
    session: Session = field(default_factory=Session)
    hooks: tuple[tuple[str, Hooks], ...] = ()
    tensors: Tensors = lambda name: None
    tpu: tpu.TpuUse | None = None
    model_batch: cst.BaseExpression | None = None
    config_reads: ConfigReads = field(default_factory=ConfigReads)
    refusals: tuple[Blocked, ...] = ()
    flowing: Flowing | None = None

    @property
    def model_file(self) -> ParsedFile:
        return self.model.file

    @property
    def model_fn(self) -> cst.FunctionDef:
        return self.model.function

    @property
    def of_towers(self) -> bool:
        """Whether one network takes the place of several, each on a device of its own."""
        return self.variable in self.file.towers or self.model_fn.name.value in self.model_file.tower_models

    @property
    def servings(self) -> list[tuple[ParsedFile, cst.CSTNode, cst.BaseExpression]]:
        """The serving functions of all exports, as they are given, with their files and scopes."""
        both = self.train_and_evaluate
        key = "serving_input_receiver_fn"
        found: list[tuple[cst.CSTNode, cst.BaseExpression]]
        found = [(self.scope, exporter.serving) for exporter in both.exporters] if both is not None else []
        found += [(self.scope, use.arguments[key]) for use in self.uses if use.method in EXPORTS]
        lent = [(one.function, use) for one in self.lent for use in one.uses]
        found += [(scope, use.arguments[key]) for scope, use in lent if use.method in EXPORTS]
        flowing = [] if self.flowing is None else self.flowing.servings
        return [*((self.file, scope, node) for scope, node in found), *flowing]

    def does(self, method: str) -> bool:
        """Whether the program calls a method of its Estimator."""
        flowing = () if self.flowing is None else self.flowing.uses
        return method in {use.method for use in self.all_uses} | {use.method for use in flowing}

    @property
    def all_uses(self) -> list[Use]:
        """What is done with the Estimator, also in functions that it is given to."""
        return [use for use, _ in self.places_of_uses]

    @property
    def places_of_uses(self) -> list[tuple[Use, cst.CSTNode]]:
        """What is done with the Estimator, and the scope that it is done in."""
        lent = [(use, one.function) for one in self.lent for use in one.uses]
        return [*((use, self.scope) for use in self.uses), *lent]

    @property
    def asks_for_weights(self) -> bool:
        """Whether the Estimator is asked for the weights of a linear model, by the names of its columns."""
        return any(asks_for_weights(self.file, use.method, use.arguments.get("name")) for use in self.all_uses)

    def may_read(self, other: TrainingProgram) -> bool:
        """Whether another Estimator of the scope trains in the model_dir of this one between its being made and being
        used: an Estimator reads what is the latest there whenever it is used, a model what was there when it was made.
        """
        if (self.file, self.scope) != (other.file, other.scope) or self.variable == other.variable:
            return False
        if None in (self.model_dir, other.model_dir) or self._folder() != other._folder():
            return False
        at = self.file.position
        made = path_to(self.scope, self.place.call)
        for training in other.training_calls:
            trained = path_to(self.scope, training)
            for call in self.calls:
                used = path_to(self.scope, call)
                both = [node for node in trained if node in used and node not in made]
                later = any(isinstance(node, (cst.FunctionDef, cst.Lambda)) for node in [*trained[1:], *used[1:]])
                again = any(isinstance(node, (cst.For, cst.While)) for node in both)
                if later or again or at(self.place.call) < at(training) < at(call):
                    return True
        return False

    def _folder(self) -> str:
        assert self.model_dir is not None
        text = self.file.string(self.model_dir)
        return self.file.code(self.model_dir) if text is None else repr(text)

    @property
    def training_calls(self) -> list[cst.Call]:
        """The calls that train the Estimator."""
        found = [use.place.call for use in self.uses if use.method == "train"]
        return found if self.train_and_evaluate is None else [*found, self.train_and_evaluate.place.call]

    @property
    def trainings(self) -> list[Arguments]:
        """The arguments of everything that trains the Estimator."""
        both = self.train_and_evaluate
        return [*self._arguments("train"), *([] if both is None else [both.train])]

    @property
    def evaluations(self) -> list[Arguments]:
        """The arguments of everything that evaluates it."""
        both = self.train_and_evaluate
        return [*self._arguments("evaluate"), *([] if both is None else [both.evaluate])]

    def _arguments(self, method: str) -> list[Arguments]:
        return [use.arguments for use in self.all_uses if use.method == method]

    @property
    def calls(self) -> list[cst.Call]:
        """The calls that drive the Estimator, in their order in the file."""
        found = [use.place.call for use in self.uses] + [one.call for one in self.lent]
        if self.train_and_evaluate is not None:
            found.append(self.train_and_evaluate.place.call)
        return sorted(found, key=self.file.position)


def on_tensorflow(file: ParsedFile, node: cst.With) -> bool:
    """Whether a `with` is on something of TensorFlow's, beside files."""
    for item in node.items:
        if any(not name.startswith(("tf.gfile.", "tf.io.")) for name in file.imports.symbols_in(item.item)):
            return True
        if any(one.attr.value in ("as_default", "scope") for one in attributes_in(item.item)):
            return True  # of a graph or a strategy that has a name
    return False


def estimator_parameters(place: Place) -> Sequence[str]:
    """The parameters of the symbol that makes an Estimator."""
    if place.name in ready.ESTIMATORS:
        return ready.PARAMETERS
    return tpu.PARAMETERS if place.name in tpu.ESTIMATORS else _ESTIMATOR


def is_estimator(name: str) -> bool:
    """Whether a symbol makes an Estimator of a model_fn."""
    return name in _ESTIMATORS


def find_places(file: ParsedFile) -> list[Place]:
    """Every call of a `tf.estimator` symbol in a file."""
    finder = _Finder(file)
    walk(file.module, finder)
    return finder.places


def read_programs(
    project: Project,
    mentioning: Mentioning,
    file: ParsedFile,
    place: Place,
    places: Sequence[Place],
    refusals: Refusals,
) -> list[TrainingProgram]:
    """Reads the program around an Estimator: one for each model_fn that it may have, all driven by the same lines.

    What cannot be carried over is added to `refusals`, all of it, and the programs are read without it; there are none
    where no model_fn is found. Programs may only be migrated where nothing was refused.
    """
    return ProgramReader(project, mentioning, file, place, places, refusals).read()


class ProgramReader:
    """Reads what one function (or the module) does with an Estimator, and what only served that."""

    def __init__(
        self,
        project: Project,
        mentioning: Mentioning,
        file: ParsedFile,
        place: Place,
        places: Sequence[Place],
        refusals: Refusals,
    ) -> None:
        self.refusals = refusals
        self.project = project
        self.mentioning = mentioning
        self.file = file
        self.place = place
        self.places = places
        self.removed: list[cst.BaseStatement] = []
        self.dropped: list[cst.CSTNode] = []
        self.kept: set[str] = set()
        self.folders: list[cst.Attribute] = []
        self.lent: list[Lent] = []
        self.classes: list[cst.ClassDef] = []
        self.made: list[cst.Call] = []
        self.values: list[tuple[cst.CSTNode, cst.BaseExpression]] = []
        self.remarks: list[Blocked] = []
        self.session = Session()
        self.hooks: list[tuple[str, Hooks]] = []
        self.tensors: Tensors = lambda name: None
        self.tpu_settings: Arguments = {}
        self.config_reads = ConfigReads()
        self.model_dir: cst.BaseExpression | None = None
        self.scope: cst.CSTNode = place.function if place.function is not None else file.module

    def read(self) -> list[TrainingProgram]:
        refused = self.refusals
        nothing: Arguments = {}
        none: Sequence[ModelReference] = ()
        bound = refused.of(self._bound, nothing)
        sizes: dict[str, cst.BaseExpression] = {}
        asked: tpu.TpuArguments | None = None
        if self.place.name in tpu.ESTIMATORS and bound:
            asked = refused.of(lambda: tpu.read_tpu(bound), None)
            sizes = asked.batch_sizes if asked is not None else {}
            if not is_none(bound.get("use_tpu")):
                self.dropped.append(bound["use_tpu"])
        variable = self._assigned_name(self.place)
        if variable is None:
            self._refuse_line(self.place, NOT_NAMED)
        if not bound:
            return []
        models = refused.of(lambda: self._models(bound), none)
        refused.of(lambda: tpu.check_optimizers([model.file for model in models]), None)
        self.tensors = tensor_names(self.project, models)
        config = refused.of(lambda: self.read_config(bound.get("config"), may_be_read=True), nothing)
        if asked is None or not asked.asks:
            for node in self.tpu_settings.values():
                message = "the RunConfig's TPU settings are dropped: the program trains without a TPU"
                self.remarks.append(Blocked("TFM140", node, message))
        model_dir = bound.get("model_dir")
        if is_none(model_dir):
            model_dir = config.get("model_dir")
        self.model_dir = model_dir
        refused.of(lambda: self._check_start(bound.get("warm_start_from"), model_dir), None)
        uses, both = self._uses(variable) if variable is not None else ((), None)
        self._check_asked(uses, both)
        if not models:
            return []
        self._leave_out_unused_hooks()
        params = bound.get("params")
        own = self.hook_makers
        kept = self.kept | self.session.kept
        gone = [*self.dropped, *(line for line, made in self.session.lines.items() if not made)]
        use = refused.of(partial(self._tpu, asked), None) if asked is not None and asked.asks else None
        served = [leftovers(self.file, self.scope, gone, self.removed, keep=kept, own=own)]
        if use is not None:
            served.append(leftovers(self.file, self.scope, gone, self.removed, keep=kept | use.reads, own=own))
            use = replace(use, removed=(*self.removed, *served[0], *self._unused_classes(served[0])))
        self.removed += served[-1]
        self.removed += self._unused_classes()
        if use is not None:
            use = tpu.with_own_resolver(use, self.file, self.scope, self.removed)
        program = TrainingProgram(
            file=self.file,
            scope=self.scope,
            place=self.place,
            variable=variable or "",
            model=models[0],
            params=None if is_none(params) else params,
            model_dir=None if is_none(model_dir) else model_dir,
            config=config,
            uses=uses,
            train_and_evaluate=both,
            removed=tuple(self.removed),
            remarks=tuple(self.remarks),
            reads_global_step=self._reads_global_step(),
            folders=tuple(self.folders),
            lent=tuple(self.lent),
            batch_sizes=sizes,
            session=self.session,
            hooks=tuple(self.hooks),
            tensors=self.tensors,
            tpu=use,
            config_reads=self.config_reads,
        )
        programs = [replace(program, model=one) for one in models]
        if sizes and any(self._reads_size(one) for one in programs):
            phases = (
                {"train", "eval"} if both is not None else {_PHASE_OF_SIZE.get(use.method) for use in program.all_uses}
            )
            used = {mode: node for mode, node in sizes.items() if mode in phases}
            if len({self.file.code(node) for node in used.values()}) != 1:
                message = (
                    "the model_fn reads `batch_size`, and this TPUEstimator has several: use "
                    "tf.shape(features)[0], or give all modes the same"
                )
                refused.refuse("TFM145", self.place.call, message)
            else:
                programs = [replace(one, model_batch=next(iter(used.values()))) for one in programs]
        if self.folders and program.model_dir is None:
            message = "the Estimator's model_dir is read, but none was given: pass `model_dir`"
            refused.refuse("TFM103", self.folders[0], message)
        if program.model.ready:
            refused.of(lambda: ready.check_uses(program.place.call, [use.method for use in program.all_uses]), None)
            unkept = partial(ready.check_kept, self.file, self.scope, program.place.call, program.model.callee)
            refused.of(lambda: unkept(program.calls), None)
        for one in programs:
            self._check_steady(one)
            self._check_surroundings(one)
        return [replace(one, refusals=tuple(refused.found)) for one in programs]

    def _bound(self) -> Arguments:
        return bind(self.place.call, estimator_parameters(self.place), self.place.name, "TFM104")

    def _reads_size(self, program: TrainingProgram) -> bool:
        """Whether a model_fn, or a function that it reaches, may read the batch size that a TPUEstimator puts into its
        params."""
        body = program.model_fn.body
        if _names_size(body) and says(program.model_file.code(body), _SIZE):
            return True
        return any(map(_reads_entry_of_size, reach(self.project, program.model_file, program.model_fn)))

    def _tpu(self, asked: tpu.TpuArguments) -> tpu.TpuUse:
        """The TPU that a TPUEstimator asks for."""
        known = {name for name, _ in bindings(self.scope)} | self.file.names

        def value_of(node: cst.BaseExpression) -> cst.BaseExpression | None:
            if not isinstance(node, cst.Name):
                return node
            values = values_given(self.scope, node.value)
            return (
                values[0]
                if len(values) == 1 and len([n for n, _ in bindings(self.scope) if n == node.value]) == 1
                else None
            )

        return tpu.read_use(self.file, self.scope, self.place.call, asked, self.tpu_settings, value_of, known)

    def _check_start(self, node: cst.BaseExpression | None, model_dir: cst.BaseExpression | None) -> None:
        """Refuses an Estimator that starts from another checkpoint than its own. Raises Blocked (TFM146)."""
        if node is None or is_none(node):
            return
        if model_dir is None or is_none(model_dir) or self.file.code(node) != self.file.code(model_dir):
            message = (
                "`warm_start_from` reads a checkpoint by TensorFlow 1 variable names: use the bridge, which keeps them"
            )
            raise Blocked("TFM146", node, message)
        self.dropped.append(node)
        message = "`warm_start_from` is dropped: the latest checkpoint in model_dir is restored anyway"
        self.remarks.append(Blocked("TFM851", node, message))

    def _check_asked(self, uses: Sequence[Use], both: TrainAndEvaluate | None) -> None:
        """Variables are those of the newest checkpoint: the model has these values behind the training only."""
        for use in uses:
            if use.method in VARIABLES and both is not None:
                if self.file.position(use.place.call) < self.file.position(both.place.call):
                    message = (
                        f"`{use.method}` is called before train_and_evaluate: the model has the checkpoint's "
                        "values only after it"
                    )
                    self.refusals.refuse("TFM853", use.place.call, message)

    def _models(self, bound: Arguments) -> Sequence[ModelReference]:
        if self.place.name in ready.ESTIMATORS:
            return [ready.ready_model(self.project, self.file, self.scope, self.place.call, bound)]
        reference = bound.get("model_fn")
        if reference is None:
            raise Blocked("TFM104", self.place.call, "the Estimator has no model_fn")
        return find_models(self.project, self.mentioning, self.file, self.place.call, reference)

    def _leave_out_unused_hooks(self) -> None:
        for line, made, remark in unused_reports(self.file, self.scope):
            emptied = emptied_by(self.file, self.scope, [*self.removed, line])
            knowing = self.mentioning([name for name, _ in bindings(line)]) if self.scope is self.file.module else ()
            elsewhere = any(other.path != self.file.path for other in knowing)
            if emptied is not None and not elsewhere:
                self.removed += [line, *emptied]
                self.dropped.append(made)
                self.remarks.append(remark)

    @property
    def hook_makers(self) -> set[str]:
        """The names of classes and functions that make hooks which are left out."""
        classes = {node.name.value for _, hooks in self.hooks for _, node in hooks.classes}
        functions = {node.name.value for _, hooks in self.hooks for _, node in hooks.makers}
        return classes | functions

    def _unused_classes(self, lines: Sequence[cst.CSTNode] = ()) -> list[cst.ClassDef]:
        """The hook classes that nothing names any more, when some lines go too."""
        gone = {id(name) for node in (*self.dropped, *self.removed, *self.classes, *lines) for name in name_nodes(node)}
        left = {name.value for name in name_nodes(self.file.module) if id(name) not in gone}
        return [node for node in dict.fromkeys(self.classes) if node.name.value not in left]

    def _reads_global_step(self) -> bool:
        scopes = [self.scope, *(one.function for one in self.lent)]
        # Results may be given to a function elsewhere, a logger say, that looks the step up.
        return any(_asks_for_step(one) for one in scopes) or any(
            "GraphKeys.GLOBAL_STEP" in file.bare for file in self.project.files
        )

    def _check_steady(self, program: TrainingProgram) -> None:
        """The arguments of specs are evaluated later than they were: their names must not change in between."""
        last = [self.place.call, *program.calls][-1]
        read = [(call, arg.value) for call in self.made for arg in call.args if not arg.star]
        for place, value in [*read, *self.values]:
            if not _among(value, self.dropped):
                changed = rebound(self.file, self.scope, value, place, last)
                if changed is not None:
                    name, node = changed
                    message = f"`{name}`, which a spec or RunConfig reads, changes before it is used: use another name"
                    self.refusals.refuse("TFM109", node, message)
        if program.model_dir is not None:
            changed = rebound(self.file, self.scope, program.model_dir, self.place.call, last)
            if changed is not None:
                message = f"`{changed[0]}`, which model_dir reads, changes before it is used: use another name"
                self.refusals.refuse("TFM103", changed[1], message)
        self._check_model_reads(program, last)

    def _check_model_reads(self, program: TrainingProgram, last: cst.Call) -> None:
        """TensorFlow 1 called the model_fn when it trained: what it reads from around it must not change until then."""
        model = program.model
        read = [value for _, value in model.template or () if not isinstance(value, str)]
        read += [new for _, new in model.lambdas.values()]
        if path_to(self.scope, model.function):
            names = sorted(free_names(model.function) - {model.function.name.value})
            read.append(cst.Tuple([cst.Element(cst.Name(name)) for name in names]))
        for value in read:
            body = value.body if isinstance(value, cst.Lambda) else value
            changed = rebound(self.file, self.scope, body, self.place.call, last)
            if changed is not None:
                message = (
                    f"`{changed[0]}`, which the model_fn reads, changes after the Estimator is created and "
                    "before it is used: use another name"
                )
                self.refusals.refuse("TFM103", changed[1], message)

    def _check_surroundings(self, program: TrainingProgram) -> None:
        for call in (self.place.call, *program.calls):
            for node in path_to(self.scope, call):
                if isinstance(node, cst.With) and on_tensorflow(self.file, node):
                    message = "the Estimator is inside a `with` on a TensorFlow object: move it out"
                    self.refusals.refuse("TFM103", node, message)

    def _assigned_name(self, place: Place) -> str | None:
        """The name that a call's result is given to; None where it is not simply given to one."""
        if place.statement is not None and len(place.statement.body) == 1:
            small = place.statement.body[0]
            if isinstance(small, cst.Assign) and small.value is place.call and len(small.targets) == 1:
                target = small.targets[0].target
                if isinstance(target, cst.Name):
                    return target.value
        return None

    def _refuse_line(self, place: Place, message: str) -> None:
        """Refuses what a line does with a call; where it has no line of its own, that is what is said."""
        if place.statement is None and any(
            isinstance(node, cst.SimpleStatementSuite) for node in path_to(self.scope, place.call)
        ):
            message = "this shares a line with its `if` (or `for`, `with`, `def`): put it on its own line"
        self.refusals.refuse("TFM103", place.call, message)

    def read_config(self, node: cst.BaseExpression | None, may_be_read: bool = False) -> Arguments:
        """The arguments of the RunConfig that count; remarks say what is left out."""
        given = [arg.value for place in self.places if place.name in _ESTIMATORS for arg in place.call.args]
        around = path_to(self.scope, self.place.call)
        found = read_run_config(
            self.file,
            self.scope,
            around,
            node,
            lambda name: any(name is v for v in given),
            self._is_conditional,
            may_be_read,
        )
        self.config_reads = found.reads
        for value in found.reads.given.values():
            self.kept |= names_in(value)
        self.removed += found.lines
        self.made += found.calls
        self.values += found.values
        self.dropped += found.dropped
        self.tpu_settings = found.tpu
        self._session(found)
        return found.arguments

    def _session(self, found: ReadConfig) -> None:
        """The settings of the session are carried over where that is sure; otherwise they are left out."""
        settings = found.session
        read = None
        if settings is not None:
            read = read_session(self.project, self.file, self.scope, self.place.call, settings)
        if read is not None:
            self.session = read
            self.remarks += read.remarks
            self.removed += [line for line, made in read.lines.items() if not made]
            self.removed += read.gone
        self.remarks += [r for r in found.remarks if read is None or r.node is not settings]

    def _is_conditional(self, line: cst.CSTNode) -> bool:
        """Whether a line may not run before the Estimator is made."""
        around = path_to(self.scope, self.place.call)
        blocks = (cst.If, cst.Else, cst.For, cst.While, cst.Try)
        return any(isinstance(n, blocks) and not _among(n, around) for n in path_to(self.scope, line))

    def _hooks(self, arguments: Arguments, phase: str, scope: cst.CSTNode) -> None:
        """Reads the hooks of a call or spec; what stays of them is the argument "callbacks" afterwards."""
        given = arguments.pop("hooks", None)
        read = partial(read_hooks, self.file, scope, given, phase, self.project, self.tensors)
        found = self.refusals.of(read, Hooks())
        self.hooks.append((phase, found))
        self.remarks += found.remarks
        self.dropped += found.nodes
        self.classes += [node for file, node in found.classes if file is self.file]
        for line in [line for file, line in found.gone if file is self.file]:
            emptied = emptied_by(self.file, scope, [*self.removed, line])
            if emptied is not None:
                self.removed += [line, *emptied]
                found.gone.remove((self.file, line))
        if found.callbacks is not None:
            arguments["callbacks"] = found.callbacks
        for name, value in (("steps", found.steps), ("max_steps", found.max_steps)):
            if value is None:
                continue
            if not is_none(arguments.get("steps")) or not is_none(arguments.get("max_steps")):
                message = "StopAtStepHook is combined with `steps` or `max_steps`: keep one of them"
                self.refusals.refuse("TFM110", value, message)
                continue
            arguments[name] = value
            self.kept |= names_in(value)

    def _spec(self, node: cst.BaseExpression, name: str, parameters: Sequence[str], code: str) -> Arguments:
        """The arguments of a RunConfig, TrainSpec or EvalSpec, given in place or by the name of one."""
        if isinstance(node, cst.Call) and self.file.imports.resolve(node.func) == name:
            self.made.append(node)
            return bind(node, parameters, name, code)
        if isinstance(node, cst.Name):
            made = [
                p
                for p in self.places
                if p.name == name and p.function is self.place.function and self._assigned_name(p) == node.value
            ]
            if len(made) == 1 and made[0].statement is not None:
                references = _references(self.scope, node.value)
                if len(references) == 2:
                    self.removed.append(made[0].statement)
                    self.made.append(made[0].call)
                    return bind(made[0].call, parameters, name, code)
                raise Blocked(
                    code, references[-1], f"`{node.value}` is passed to more than one call: create one for each"
                )
        raise Blocked(code, node, f"this is not a `{name}` created next to the Estimator: create it there")

    def _uses(self, variable: str) -> tuple[tuple[Use, ...], TrainAndEvaluate | None]:
        finder = _MethodCalls(variable, self.scope)
        walk(self.scope, finder)
        uses: list[Use] = []
        both: TrainAndEvaluate | None = None
        explained: set[cst.CSTNode] = set()
        before = len(self.refusals.found)
        unknown: list[cst.Call] = []
        for call, receiver, method, statement in finder.found:
            explained.add(receiver)
            if method not in METHODS:
                unknown.append(call)
                continue
            arguments = self.arguments(call, method, variable, self.scope)
            place = Place(method, call, statement, self.place.function)
            if method == "train" and not _is_whole(place):
                message = (
                    "the result of train() is used, or the line has another statement: put train() on its own line"
                )
                self._refuse_line(place, message)
            if arguments is not None:
                uses.append(Use(method, place, arguments))
        for call in unknown:
            if not any(path_to(node, call) for node in self.dropped):  # of the latest checkpoint, which is taken anyway
                assert isinstance(call.func, cst.Attribute)
                method = call.func.attr.value
                self.refusals.refuse("TFM103", call, f"`{variable}.{method}` is unsupported")
        specs = ("estimator", "train_spec", "eval_spec")
        nothing: Arguments = {}
        for place in self.places:
            if place.name == "tf.estimator.train_and_evaluate" and place.function is self.place.function:
                arguments = self.refusals.of(partial(bind, place.call, specs, place.name, "TFM103"), nothing)
                given = arguments.get("estimator")
                if isinstance(given, cst.Name) and given.value == variable:
                    explained.add(given)
                    if both is not None:
                        message = "train_and_evaluate is called twice on one Estimator"
                        self.refusals.refuse("TFM103", place.call, message)
                        continue
                    both = self.refusals.of(partial(self.read_both, place, arguments), None)
        assert self.place.statement is not None
        asked = [
            one for one in attributes_in(self.scope) if is_name(one.value, variable) and one.attr.value == "model_dir"
        ]
        self.folders += asked
        explained.update(node.value for node in asked)
        for _, hooks in self.hooks:
            explained.update(stock.given["estimator"] for _, _, stock in hooks.made if "estimator" in stock.given)
        for name in _references(self.scope, variable):
            if name not in explained and not _is_target(self.place.statement, name):
                lent = self._lend(name)
                if lent is not None:
                    self.lent.append(lent)
                    continue
                if self._is_refused(name):
                    continue
                message = f"this use of the Estimator `{variable}` is unsupported"
                self.refusals.refuse("TFM103", name, message)
        if len(self.refusals.found) > before:
            return tuple(uses), both
        if not uses and both is None and not self.lent:
            self.refusals.refuse(
                "TFM103", self.place.call, "this Estimator is never used in the function that creates it"
            )
        if self.lent and both is None and not any(use.method in _PHASES for use in uses):
            # Here is no data that tells the shapes of the features.
            message = (
                "this Estimator is trained, evaluated and used to predict in other functions only: "
                "create and use it in one"
            )
            self.refusals.refuse("TFM103", self.place.call, message)
        return tuple(uses), both

    def arguments(self, call: cst.Call, method: str, variable: str, scope: cst.CSTNode) -> Arguments | None:
        """The arguments of a method call on the Estimator, without what is left out; None where they are refused."""
        arguments = self.refusals.of(partial(bind, call, METHODS[method], f"Estimator.{method}", "TFM103"), None)
        if arguments is None:
            return None
        if method in EXPORTS:
            self.remarks += self.refusals.of(partial(check_export, arguments, call), [])
        self._hooks(arguments, _PHASES.get(method, "predict"), scope)
        for key in ("saving_listeners", "checkpoint_path", "yield_single_examples"):
            if key == "checkpoint_path" and self._is_latest(arguments.get(key), variable):
                self.dropped.append(arguments[key])
            elif key.startswith("yield") and key in arguments and (is_true(arguments[key]) or is_false(arguments[key])):
                continue
            elif not is_none(arguments.get(key)):
                ask = ": write True or False" if key.startswith("yield") else ""
                self.refusals.refuse("TFM110", arguments.pop(key), f"`{key}` of `{method}` is unsupported{ask}")
        return arguments

    def _lend(self, name: cst.Name) -> Lent | None:
        """The function that a name of the Estimator is given to, where it may have the Keras model instead.

        None when the name is no argument of a function of the file that takes only Estimators of this scope, or when
        the function does something else with it than to evaluate, or to predict and export.
        """
        calls = [one for one in calls_in(self.scope) if any(arg.value is name for arg in one.args)]
        call = calls[0] if calls else None
        if call is None or not isinstance(call.func, cst.Name) or any(arg.star for arg in call.args):
            return None
        function = self.file.functions.get(call.func.value)
        params = [] if function is None else [p.name.value for p in function.params.params]
        if function is None or len(call.args) > len(params):
            return None
        index = next(i for i, arg in enumerate(call.args) if arg.value is name)
        keyword = call.args[index].keyword
        parameter = keyword.value if keyword is not None else params[index]
        if parameter not in params or not self._takes_estimators(function, params.index(parameter)):
            return None
        methods = _MethodCalls(parameter, function)
        walk(function, methods)
        receivers = [receiver for _, receiver, _, _ in methods.found]
        own = next(p.name for p in function.params.params if p.name.value == parameter)
        if any(n is not own and not _among(n, receivers) for n in _references(function, parameter)):
            return None
        kinds = {method for _, _, method, _ in methods.found}
        if not kinds or not (kinds == {"evaluate"} or kinds <= {"predict", *EXPORTS}):
            return None
        uses = []
        for inner, _, method, statement in methods.found:
            arguments = self.arguments(inner, method, parameter, function)
            if arguments is not None:
                uses.append(Use(method, Place(method, inner, statement, function), arguments))
        return Lent(call, name, function, parameter, tuple(uses))

    def _takes_estimators(self, function: cst.FunctionDef, index: int) -> bool:
        """Whether a function is only called, and always with an Estimator of this scope for the parameter of an index.

        Each call has an Estimator for itself: the programs of all of them change the function's lines alike, or none.
        """
        parameter = function.params.params[index].name.value
        made = [p for p in self.places if is_estimator(p.name) and p.function is self.place.function]
        estimators = {self._assigned_name(place) for place in made}
        for mention in _references(self.file.module, function.name.value):
            call = self.file.parents.get(mention)
            if mention is function.name:
                continue
            if not isinstance(call, cst.Call) or call.func is not mention or any(arg.star for arg in call.args):
                return False
            given = [a.value for a in call.args if a.keyword is not None and a.keyword.value == parameter]
            positional = [a.value for a in call.args if a.keyword is None]
            given += positional[index : index + 1]
            if len(given) != 1 or not isinstance(given[0], cst.Name) or given[0].value not in estimators:
                return False
            if given[0] not in _references(self.scope, given[0].value):
                return False
        return True

    def _is_refused(self, name: cst.Name) -> bool:
        """Whether a name stands on a line of something that is refused already, so that it is no problem of its own."""
        lines = [node for node in path_to(self.scope, name) if isinstance(node, cst.SimpleStatementLine)]
        nodes = [refusal.node for refusal in self.refusals.found]
        return any(path_to(line, node) for line in lines for node in nodes if node is not None)

    def _is_latest(self, node: cst.BaseExpression | None, variable: str) -> bool:
        """Whether a checkpoint is the one that the Estimator takes anyway: the latest of its model_dir."""
        if isinstance(node, cst.Name):
            return self._names_latest(node, variable)
        if not isinstance(node, cst.Call):
            return False
        if _is_method(node, variable, "latest_checkpoint"):
            return not node.args
        if len(node.args) != 1 or self.file.imports.resolve(node.func) != "tf.train.latest_checkpoint":
            return False
        folder = node.args[0].value
        if isinstance(folder, cst.Attribute) and isinstance(folder.value, cst.Name):
            if folder.value.value == variable and folder.attr.value == "model_dir":
                return True
        return self.model_dir is not None and self.file.code(self.model_dir) == self.file.code(folder)

    def _names_latest(self, name: cst.Name, variable: str) -> bool:
        """Whether a name stands for the latest checkpoint, and for nothing else: no training comes behind its line."""
        bound = [one for one in bound_in(self.scope) if one.name == name.value]
        if len(bound) != 1 or not isinstance(bound[0].value, cst.Call) or bound[0].form is not Form.ASSIGNED:
            return False
        at = self.file.position
        trains = [call for call in calls_in(self.scope) if _is_method(call, variable, "train")]
        trains += [p.call for p in self.places if p.name == "tf.estimator.train_and_evaluate"]
        if any(at(call) > at(bound[0].node) or self._runs_later(call) for call in trains):
            return False
        if not self._is_latest(bound[0].value, variable):
            return False
        mentions = [one for one in _references(self.scope, name.value) if one is not bound[0].place]
        calls = [self.file.parents.get(one) for one in mentions]
        keywords = [call.keyword.value if isinstance(call, cst.Arg) and call.keyword else "" for call in calls]
        line = self.file.parents.get(bound[0].node)
        if set(keywords) != {"checkpoint_path"} or not isinstance(line, cst.SimpleStatementLine) or len(line.body) > 1:
            return False
        self.dropped.append(bound[0].value)
        if line not in self.removed:
            self.removed.append(line)
        return True

    def _runs_later(self, call: cst.Call) -> bool:
        """Whether a call stands in a function inside of the scope, so that its place does not tell when it runs."""
        return any(isinstance(node, (cst.FunctionDef, cst.Lambda)) for node in path_to(self.scope, call)[1:])

    def read_both(self, place: Place, arguments: Arguments) -> TrainAndEvaluate | None:
        """A call of train_and_evaluate with the arguments of its specs; None where one of these is refused."""
        refused = self.refusals
        answers = not _is_whole(place)
        if answers and not _is_first(place):
            message = (
                "train_and_evaluate shares its line with other work, or with something that runs "
                "before it: put it on its own line"
            )
            self._refuse_line(place, message)
        if "train_spec" not in arguments or "eval_spec" not in arguments:
            raise Blocked(
                "TFM103",
                place.call,
                "train_and_evaluate is called without both specs: pass a TrainSpec and an EvalSpec",
            )
        given = arguments["train_spec"], arguments["eval_spec"]
        train = refused.of(partial(self._spec, given[0], "tf.estimator.TrainSpec", TRAIN_SPEC, "TFM109"), None)
        evaluate = refused.of(partial(self._spec, given[1], "tf.estimator.EvalSpec", EVAL_SPEC, "TFM109"), None)
        for spec, phase in ((train, "train"), (evaluate, "test")):
            if spec is not None:
                self._hooks(spec, phase, self.scope)
                if not is_none(spec.get("saving_listeners")):
                    refused.refuse("TFM110", spec["saving_listeners"], "`saving_listeners` is unsupported")
        exporters: list[Exporter] = []
        asked = evaluate.get("exporters") if evaluate is not None else None
        if asked is not None and not is_none(asked):
            none: tuple[list[Exporter], list[Blocked]] = ([], [])
            exporters, remarks = refused.of(partial(read_exporters, self.file, self.scope, asked), none)
            self.remarks += remarks
            self.dropped.append(asked)
            for exporter in exporters:
                self.kept |= names_in(exporter.name) | names_in(exporter.serving)
                self._leave_out_exporter(exporter)
            if answers and exporters:
                message = "the result of train_and_evaluate includes what the exporters wrote: do not use the result"
                refused.refuse("TFM103", place.call, message)
        if train is not None and "steps" in train:
            message = "`num_steps` counts from the start of a training: use `max_steps`"
            refused.refuse("TFM110", train["steps"], message)
        if train is None or evaluate is None:
            return None
        return TrainAndEvaluate(place, train, evaluate, tuple(exporters), answers)

    def _leave_out_exporter(self, exporter: Exporter) -> None:
        """Leaves out the line that gives an exporter (or a list with it) a name, whatever makes its serving function:
        that is made where the new program exports."""
        node: cst.CSTNode | None = self.file.parents.get(exporter.call)
        while isinstance(node, (cst.Element, cst.List, cst.Tuple)):
            node = self.file.parents.get(node)
        line = self.file.parents.get(node) if isinstance(node, cst.Assign) and len(node.targets) == 1 else None
        name = node.targets[0].target if isinstance(node, cst.Assign) else None
        if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1 or not isinstance(name, cst.Name):
            return
        if len(_references(self.scope, name.value)) == 2 and line not in self.removed:
            self.removed.append(line)
            self.made.append(exporter.call)


_FAMILIES = (
    "tf.estimator.",
    "tf.contrib.learn.",
    "tf.contrib.tpu.",
    "tf.contrib.estimator.",
    "tf.keras.estimator.",
)


class _Finder(cst.CSTVisitor):
    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self.places: list[Place] = []
        self._functions: list[cst.FunctionDef] = []
        self._lines: list[cst.SimpleStatementLine] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._functions.append(node)

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        self._functions.pop()

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        self._lines.append(node)

    def leave_SimpleStatementLine(self, original_node: cst.SimpleStatementLine) -> None:
        self._lines.pop()

    def visit_Call(self, node: cst.Call) -> None:
        name = self.file.imports.resolve(node.func)
        if name is not None and name.startswith(_FAMILIES):
            line = self._lines[-1] if self._lines else None
            function = self._functions[-1] if self._functions else None
            self.places.append(Place(name, node, line, function))


class _MethodCalls(cst.CSTVisitor):
    """Calls `variable.method(...)` in a scope, but for where the name is another one."""

    def __init__(self, variable: str, scope: cst.CSTNode) -> None:
        super().__init__()
        self.hidden = hidden_in(scope, variable)
        self.variable = variable
        self.found: list[tuple[cst.Call, cst.Name, str, cst.SimpleStatementLine | None]] = []
        self._lines: list[cst.SimpleStatementLine] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node not in self.hidden and super().on_visit(node)

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        self._lines.append(node)

    def leave_SimpleStatementLine(self, original_node: cst.SimpleStatementLine) -> None:
        self._lines.pop()

    def visit_Call(self, node: cst.Call) -> None:
        if isinstance(node.func, cst.Attribute) and isinstance(node.func.value, cst.Name):
            if node.func.value.value == self.variable:
                line = self._lines[-1] if self._lines else None
                self.found.append((node, node.func.value, node.func.attr.value, line))


def _is_method(call: cst.Call, variable: str, method: str) -> bool:
    """Whether a call is `variable.method(...)`."""
    func = call.func
    return (
        isinstance(func, cst.Attribute)
        and isinstance(func.value, cst.Name)
        and (func.value.value, func.attr.value) == (variable, method)
    )


def _references(scope: cst.CSTNode, name: str) -> list[cst.Name]:
    """Where a scope mentions a name, but for functions inside in which it is another one."""
    elsewhere = {inner for node in hidden_in(scope, name) for inner in name_nodes(node)}
    return [node for node in name_nodes(scope) if node.value == name and node not in elsewhere]


def _is_target(statement: cst.SimpleStatementLine, name: cst.Name) -> bool:
    small = statement.body[0]
    return isinstance(small, cst.Assign) and any(target.target is name for target in small.targets)


def _is_whole(place: Place) -> bool:
    """Whether the call is all that its line does."""
    if place.statement is None or len(place.statement.body) != 1:
        return False
    small = place.statement.body[0]
    return isinstance(small, cst.Expr) and small.value is place.call


def _is_first(place: Place) -> bool:
    """Whether a line of one statement begins with the call, and goes on with its result."""
    if place.statement is None or len(place.statement.body) != 1:
        return False
    small = place.statement.body[0]
    if not isinstance(small, (cst.Expr, cst.Assign, cst.AnnAssign, cst.Return)) or small.value is None:
        return False
    return comes_first(small.value, place.call)


def _is_global_step(node: cst.BaseExpression) -> bool:
    return string(node) == "global_step" or (isinstance(node, cst.Attribute) and node.attr.value == "GLOBAL_STEP")


def _names_size(node: cst.CSTNode) -> bool:
    """Whether a name or a text in a node has that of the batch size in it."""
    return any(_SIZE in one.value for one in of_kinds(node, cst.Name, cst.SimpleString, cst.FormattedStringText))


def _reads_entry_of_size(node: cst.CSTNode) -> bool:
    """Whether a node says `"batch_size"`, or asks something for an attribute of that name."""
    texts = (one.raw_value for one in of_kinds(node, cst.SimpleString))
    return _SIZE in texts or any(one.attr.value == _SIZE for one in of_kinds(node, cst.Attribute))


__all__ = [
    "Place",
    "TrainAndEvaluate",
    "TrainingProgram",
    "Use",
    "assigned_lambdas",
    "attributes_called",
    "bindings",
    "find_places",
    "free_names",
    "mentions_of",
    "names_behind",
    "path_to",
    "read_programs",
    "rebound",
]


def _among(node: cst.CSTNode, nodes: Sequence[cst.CSTNode]) -> bool:
    return any(node is other for other in nodes)


def _asks_for_step(scope: cst.CSTNode) -> bool:
    """`["global_step"]` and `.get("global_step")`, and texts with `{global_step}` to be filled in."""
    for node in of_kinds(scope, cst.Subscript, cst.Call, cst.SimpleString):
        if isinstance(node, cst.SimpleString):
            asks = "{global_step" in node.value or "(global_step)" in node.value
        elif isinstance(node, cst.Subscript):
            indices = [element.slice for element in node.slice]
            asks = any(isinstance(one, cst.Index) and _is_global_step(one.value) for one in indices)
        else:
            gets = isinstance(node.func, cst.Attribute) and node.func.attr.value == "get" and len(node.args) > 0
            asks = gets and _is_global_step(node.args[0].value)
        if asks:
            return True
    return False
