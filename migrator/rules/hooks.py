"""Session hooks: those that only report are left out, those that end the training become its number of steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Optional

import libcst as cst

from migrator.findings import Severity
from migrator.names.imports import missing_file
from migrator.names.symbols import home
from migrator.program.calls import is_none, string
from migrator.program.classes import find_class
from migrator.program.parsed import Blocked, ParsedFile, Project, attributes_named, name_nodes
from migrator.program.scopes import bindings, path_to, returns_in
from migrator.rules.callbacks import as_callback, counts_steps, is_hook_base, stops_training
from migrator.rules.catalogue import call_rules
from migrator.rules.early_stopping import StockCallback, read_early_stopping, stop_at_step, stop_prediction
from migrator.rules.iterators import Unpacked, looks_like_one, read_unpacked, unpackings
from migrator.rules.rule import Rule
from migrator.rules.scaffolds import AVERAGES, read_scaffolds
from migrator.walking import walk

RULES = (
    Rule(
        "TFM110",
        "hooks, listeners and scaffolds",
        Severity.MANUAL,
        """
Hooks that only report are left out (TFM141), `StopAtStepHook` becomes the number of steps (or a small callback, where
it is given by a condition), early stopping hooks (TFM163) and custom hooks (TFM161) become Keras callbacks. What is
left may change the training and is unsupported: `FeedFnHook`, `FinalOpsHook`, a hook that comes from a place that
tf-migrate does not see, one that ends an evaluation, saving listeners, scaffolds. Remove them from the program and
write a `tf.keras.callbacks.Callback`; limit the dataset (`dataset.take(n)`) where a hook ended an evaluation. A hook
that a model_fn creates from its tensors has none to read any more: pass it to `train` or to the TrainSpec as `hooks=`.
""",
    ),
    Rule(
        "TFM141",
        "hooks that only report are dropped",
        Severity.REVIEW,
        """
`LoggingTensorHook`, `SummarySaverHook`, `StepCounterHook`, `ProfilerHook`, `CheckpointSaverHook` and
`GlobalStepWaiterHook` do not change what is trained. `Model.fit` prints loss and metrics itself;
`tf.keras.callbacks.TensorBoard(log_dir, update_freq=..., profile_batch=...)` writes summaries, step rate and profiles,
and the migrated program writes checkpoints where the Estimator has a `model_dir`. `NanTensorHook` stopped the program
at a loss that is not a number, as every Estimator did anyway: `tf.keras.callbacks.TerminateOnNaN()` does that. A custom
hook that only looks at values and prints or logs them is left out with its class; where you miss it, print from
`on_train_batch_end(batch, logs)` of a `tf.keras.callbacks.Callback`.
""",
    ),
    Rule(
        "TFM188",
        "hooks of TensorFlow's official models that were not given",
        Severity.REVIEW,
        """
`hooks_helper.get_train_hooks([...])` of TensorFlow's official models (`official/utils/logs/hooks_helper.py`, which many
programs hold a copy of) makes hooks that only report: it knows `LoggingTensorHook`, `ProfilerHook`,
`ExamplesPerSecondHook`, `LoggingMetricHook` and `StepCounterHook`, and raises for other names. Its file was not given,
so that this is taken from its place and the names; the hooks are left out as in TFM141. Look whether your copy does
more, or give tf-migrate the file, too.
""",
    ),
    Rule(
        "TFM160",
        "a program distributed by Horovod",
        Severity.MANUAL,
        """
Horovod starts one process per device and averages gradients in its own optimizer; its `BroadcastGlobalVariablesHook`
gives all processes the same first weights. A native program has no place for that: the bridge supports such a program,
with the workers of TF_CONFIG in the place of Horovod's (TFM186). For a native one take Horovod out first (its `init`,
`rank`, `local_rank`, `size`, `DistributedOptimizer` and hook; mind the learning rate and the steps that were multiplied
or divided by `size`), migrate, and choose `--strategy multi-worker-mirrored`.
""",
    ),
)

_REPORTS = frozenset(
    (
        "LoggingTensorHook",
        "SummarySaverHook",
        "SummaryAtEndHook",
        "StepCounterHook",
        "ProfilerHook",
        "CheckpointSaverHook",
        "GlobalStepWaiterHook",
        "NanTensorHook",
    )
)
_REFUSED = {
    "FinalOpsHook": "use the results of `evaluate`, or write an `on_train_end`",
    "FeedFnHook": "feed these values through the dataset",
}
_HOROVOD = ("horovod.",)
_MAY_CHANGE = "this hook may change the training, and is unsupported: write a Keras callback"
#: The hooks that `get_train_hooks` of TensorFlow's official models (official/utils/logs/hooks_helper.py) knows.
_OFFICIAL = ("loggingtensorhook", "profilerhook", "examplespersecondhook", "loggingmetrichook", "stepcounterhook")

Tensors = Callable[[str], Optional[str]]


@dataclass(frozen=True)
class OwnHook:
    """A hook class of the program that becomes a callback: its file and definition, and the calls that make one."""

    file: ParsedFile
    node: cst.ClassDef
    call: cst.Call
    stops: bool


@dataclass
class Hooks:
    """What becomes of the hooks of one argument.

    `remarks` are about all of them. `nodes` are the expressions that are left out, `classes` the program's own hooks
    among them; `steps` and `max_steps` come from a StopAtStepHook. `callbacks` is the argument when something of it
    stays: `own` hooks as callbacks, and `made` stock hooks with the new call of each. `shorter` are list displays with
    the elements that stay, `instead` sums of lists with the one that stays, and `gone` statements that only added a
    hook that is left out, to a list that stays; `kept_in` are those that gave one to an attribute. `makers` are
    functions that made nothing but hooks that are left out, and `tables` the names of dicts of such functions. `counts`
    says that a hook counts the batches of a prediction as steps. `iterators` are the hooks that only initialize the
    iterator of an input function.
    """

    remarks: list[Blocked] = field(default_factory=list)
    nodes: list[cst.BaseExpression] = field(default_factory=list)
    classes: list[tuple[ParsedFile, cst.ClassDef]] = field(default_factory=list)
    steps: cst.BaseExpression | None = None
    max_steps: cst.BaseExpression | None = None
    callbacks: cst.BaseExpression | None = None
    own: list[OwnHook] = field(default_factory=list)
    made: list[tuple[ParsedFile, cst.Call, StockCallback]] = field(default_factory=list)
    shorter: list[tuple[ParsedFile, cst.List | cst.Tuple, list[cst.BaseElement]]] = field(default_factory=list)
    instead: list[tuple[ParsedFile, cst.BaseExpression, cst.BaseExpression]] = field(default_factory=list)
    gone: list[tuple[ParsedFile, cst.BaseStatement]] = field(default_factory=list)
    kept_in: list[tuple[ParsedFile, cst.BaseStatement]] = field(default_factory=list)
    makers: list[tuple[ParsedFile, cst.FunctionDef]] = field(default_factory=list)
    tables: list[tuple[ParsedFile, str]] = field(default_factory=list)
    counts: bool = False
    iterators: list[Unpacked] = field(default_factory=list)

    @property
    def stops(self) -> bool:
        """Whether a callback may end the training."""
        return bool(self.made) or any(hook.stops for hook in self.own)

    @property
    def reads_evaluations(self) -> bool:
        """Whether a callback looks at the evaluations between the parts of a training."""
        return any(stock.reads_evaluations for _, _, stock in self.made)


def read_hooks(
    file: ParsedFile,
    scope: cst.CSTNode,
    node: cst.BaseExpression | None,
    phase: str,
    project: Project | None = None,
    tensors: Tensors = lambda name: None,
    inside: bool = False,
) -> Hooks:
    """Judges the hooks that an argument gives in "train", "test" or "predict" (`inside`: a model_fn does).

    Raises Blocked (TFM110, TFM160, TFM162, ...) for one that may change the training and is not carried over.
    """
    if is_none(node):
        return Hooks()
    assert node is not None
    judge = _Judge(phase, project or Project.of([file]), tensors, file, inside, node)
    try:
        stays = judge.value(file, scope, node, frozenset())
    except Blocked as problem:
        if problem.node is not None and not path_to(file.module, problem.node):
            raise Blocked(problem.code, node, f"{problem.message} (in a function that creates hooks)") from problem
        raise
    found = judge.found
    if phase != "train" and found.made and (not found.counts or phase == "test"):
        message = "this hook ends an evaluation or a prediction: limit its dataset instead"
        raise Blocked("TFM110", found.made[0][1] if found.made[0][0] is file else node, message)
    if not stays:
        found.nodes[:] = [node]
        found.shorter.clear()
        found.instead.clear()
        found.gone.clear()
        return found
    only = [stock for _, _, stock in found.made]
    plain = isinstance(node, (cst.List, cst.Tuple))
    if plain and len(only) == 1 and not found.own and phase == "train" and only[0].name == "StopAtStep":
        steps = only[0]
        found.steps, found.max_steps = steps.given.get("num_steps"), steps.given.get("last_step")
        found.made.clear()
        found.shorter.clear()
        found.nodes[:] = [node]
        return found
    if inside:
        place = found.own[0].call if found.own else found.made[0][1]
        message = "this hook is created inside the model_fn: pass it to `train`, `evaluate` or the specs as `hooks=`"
        raise Blocked("TFM110", place, message)
    found.callbacks = node
    return found


_SPEC = {
    "training_chief_hooks": "train",
    "training_hooks": "train",
    "evaluation_hooks": "test",
    "prediction_hooks": "predict",
}


@dataclass(frozen=True)
class SpecHooks:
    """What becomes of the hooks of a model_fn's EstimatorSpecs: remarks, the expressions and classes that are left out,
    the functions that made nothing but these, and what one of them ends the training after ("steps" or "max_steps", and
    their number).
    """

    remarks: tuple[Blocked, ...] = ()
    nodes: tuple[cst.BaseExpression, ...] = ()
    classes: tuple[tuple[ParsedFile, cst.ClassDef], ...] = ()
    stop: tuple[str, cst.BaseExpression] | None = None
    makers: tuple[tuple[ParsedFile, cst.FunctionDef], ...] = ()

    @property
    def checkpoint(self) -> Blocked | None:
        """The remark about a `tf.train.Checkpoint` that the Estimator saves, if it does."""
        return next((remark for remark in self.remarks if remark.code == "TFM183"), None)

    @property
    def averages(self) -> Blocked | None:
        """The remark about moving averages that are restored in the place of the weights, if they are."""
        return next((remark for remark in self.remarks if remark.code == AVERAGES), None)


NO_SPEC_HOOKS = SpecHooks()


def read_spec_hooks(
    project: Project,
    file: ParsedFile,
    function: cst.FunctionDef,
    specs: Iterable[Mapping[str, cst.BaseExpression]],
) -> SpecHooks:
    """Judges the hooks of EstimatorSpecs, given by their arguments. Raises Blocked (TFM110, ...)."""
    remarks: dict[cst.CSTNode | None, Blocked] = {}
    nodes: list[cst.BaseExpression] = []
    classes: list[tuple[ParsedFile, cst.ClassDef]] = []
    makers: list[tuple[ParsedFile, cst.FunctionDef]] = []
    stop: tuple[str, cst.BaseExpression] | None = None
    specs = list(specs)
    scaffolds, told = read_scaffolds(file, function, specs)
    nodes += scaffolds
    remarks.update((remark.node, remark) for remark in told)
    for bound in specs:
        for key, phase in _SPEC.items():
            found = read_hooks(file, function, bound.get(key), phase, project, inside=True)
            remarks.update((remark.node, remark) for remark in found.remarks)
            nodes += found.nodes
            classes += found.classes
            makers += found.makers
            for name, value in (("steps", found.steps), ("max_steps", found.max_steps)):
                if value is not None and stop is not None and file.code(stop[1]) != file.code(value):
                    raise Blocked("TFM110", value, "two hooks of the EstimatorSpecs end the training: keep one")
                stop = (name, value) if value is not None else stop
    return SpecHooks(tuple(remarks.values()), tuple(nodes), tuple(classes), stop, tuple(makers))


def unused_reports(file: ParsedFile, scope: cst.CSTNode) -> list[tuple[cst.SimpleStatementLine, cst.Call, Blocked]]:
    """The lines of a scope that make a hook which would only report, under a name that the file never mentions again:
    the line, the call, and the remark about it.
    """
    found = []
    for name, node in bindings(scope):
        line = next((one for one in file.above(node) if isinstance(one, cst.SimpleStatementLine)), None)
        small = line.body[0] if line is not None and len(line.body) == 1 else None
        value = small.value if isinstance(small, (cst.Assign, cst.AnnAssign)) else None
        if line is None or not isinstance(value, cst.Call) or not isinstance(node, cst.Name):
            continue
        last = (file.imports.tensorflow(value.func) or "").rpartition(".")[2]
        if last in _REPORTS and [one.value for one in name_nodes(file.module)].count(name) == 1:
            found.append((line, value, Blocked("TFM141", value, f"the unused `{last}` is dropped")))
    return found


def is_of_official_models(name: str | None, call: cst.Call) -> bool:
    """Whether a call of a function that is not given makes hooks of TensorFlow's official models, by name.

    A copy of their module elsewhere is known by its place (`logs.hooks_helper`) and the names of its hooks.
    """
    module, _, function = (name or "").rpartition(".")
    if function != "get_train_hooks" or not f".{module}".endswith(".logs.hooks_helper") or not call.args:
        return False
    if module.startswith("official."):
        return True
    names = call.args[0].value
    return isinstance(names, cst.List) and all(
        (string(element.value) or "").lower() in _OFFICIAL for element in names.elements
    )


def _mark(scope: cst.CSTNode, name: str) -> str:
    """A name of a scope, or the scope itself, as one of those that are being followed."""
    return f"{id(scope)} {name}"


def _is_among_hooks(path: Sequence[cst.CSTNode]) -> bool:
    """Whether an expression, and what is around it, is one of the hooks that a call is given, or all of them."""
    for node in path:
        if isinstance(node, cst.Arg):
            return node.keyword is not None and node.keyword.value == "hooks"
        if not isinstance(node, (cst.Attribute, cst.Element, cst.List, cst.Tuple)):
            return False
    return False


class _Judge:
    """Walks through the hooks that an expression may hold; each call says whether something of it stays."""

    def __init__(
        self,
        phase: str,
        project: Project,
        tensors: Tensors,
        home: ParsedFile,
        inside: bool,
        argument: cst.BaseExpression,
    ) -> None:
        self.phase = phase
        self.project = project
        self.tensors = tensors
        self.home = home
        self.inside = inside
        self.argument = argument
        self.found = Hooks()
        self.seen: dict[int, bool] = {}
        self.tables = 0  # the calls through a table of functions that are being followed: all of these go, or none

    def value(self, file: ParsedFile, scope: cst.CSTNode, node: cst.BaseExpression, seen: frozenset[str]) -> bool:
        if id(node) not in self.seen:
            self.seen[id(node)] = self._value(file, scope, node, seen)
        return self.seen[id(node)]

    def _value(self, file: ParsedFile, scope: cst.CSTNode, node: cst.BaseExpression, seen: frozenset[str]) -> bool:
        if is_none(node):
            return False
        if isinstance(node, (cst.List, cst.Tuple)):
            return self._display(file, scope, node, seen)
        if isinstance(node, cst.IfExp):
            branches = [self.value(file, scope, branch, seen) for branch in (node.body, node.orelse)]
            if any(branches) and not all(branches):
                place = node.orelse if branches[0] else node.body
                if not is_none(place) and not isinstance(place, (cst.List, cst.Tuple)):
                    raise Blocked(
                        "TFM110",
                        place,
                        (
                            "a condition chooses between a hook that is dropped and one that stays: always pass "
                            "the latter"
                        ),
                    )
            return any(branches)
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
            left, right = (self.value(file, scope, side, seen) for side in (node.left, node.right))
            if left != right:
                self.found.instead.append((file, node, node.left if left else node.right))
                self.found.nodes.append(node.right if left else node.left)
            return left or right
        if isinstance(node, cst.Name) and _mark(scope, node.value) not in seen:
            return self._name(file, scope, node, seen)
        if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name):
            return self._attribute(node, seen)
        if isinstance(node, cst.Call):
            return self._call(file, scope, node, seen)
        raise Blocked("TFM110", node, _MAY_CHANGE)

    def _attribute(self, node: cst.Attribute, seen: frozenset[str]) -> bool:
        """A hook that an object keeps: all that an attribute of this name is given is left out, or none."""
        name = node.attr.value
        given: list[tuple[ParsedFile, cst.SimpleStatementLine, cst.Assign]] = []
        for file in self.project.files if f".{name}" not in seen else ():
            for one in attributes_named(file.module, name) if name in file.bare else ():
                path = [one, *file.above(one)]
                line = path[3] if len(path) > 3 else None
                if isinstance(path[1], cst.AssignTarget) and isinstance(path[2], cst.Assign):
                    if len(path[2].targets) == 1 and isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
                        given.append((file, line, path[2]))
                        continue
                if file.imports.resolve(one) is None and not _is_among_hooks(path):
                    raise Blocked("TFM110", node, _MAY_CHANGE)
        for file, line, assigned in given:
            scope = next((one for one in file.above(line) if isinstance(one, cst.FunctionDef)), file.module)
            if self.value(file, scope, assigned.value, seen | {f".{name}"}):
                raise Blocked("TFM110", node, _MAY_CHANGE)
            self.found.nodes.append(assigned.value)
            self.found.kept_in.append((file, line))
        if not given:
            raise Blocked("TFM110", node, _MAY_CHANGE)
        return False

    def _display(self, file: ParsedFile, scope: cst.CSTNode, node: cst.List | cst.Tuple, seen: frozenset[str]) -> bool:
        stay: list[cst.BaseElement] = []
        for element in node.elements:
            if self.value(file, scope, element.value, seen):
                stay.append(element)
            else:
                self.found.nodes.append(element.value)
        if len(stay) < len(node.elements):
            self.found.shorter.append((file, node, stay))
        return bool(stay)

    def _name(self, file: ParsedFile, scope: cst.CSTNode, node: cst.Name, seen: frozenset[str]) -> bool:
        finder = _Given(node.value)
        walk(scope, finder)
        if not finder.found and scope is not file.module:
            walk(file.module, finder)
        if not finder.found or not finder.plain:
            unpacked = read_unpacked(self.project, file, scope, node.value)
            if unpacked is not None:
                hook = unpacked.initializer.owner[1].name.value
                message = f"`{hook}` is dropped: the input_fn returns the iterator's dataset"
                self.found.remarks.append(Blocked("TFM614", node if file is self.home else self.argument, message))
                self.found.iterators.append(unpacked)
                return False
            title = looks_like_one(self.project, file, scope, node.value)
            if title is not None:
                message = f"`{title}` initializes the iterator of an input_fn: return the dataset instead"
                raise Blocked("TFM165", node, message)
            made = unpackings(scope, node.value)
            if made:
                text = file.code(made[0][1].func).strip()
                message = f"cannot tell which hook `{text[:40]}(...)` returns among its values"
                raise Blocked("TFM110", node, f"{message}: pass its file to tf-migrate as well, or remove the hook")
            raise Blocked("TFM110", node, f"cannot tell which hook `{node.value}` is: create it in this function")
        given = finder.found
        around = path_to(scope, node)
        if around and not any(isinstance(n, (cst.For, cst.While, cst.FunctionDef, cst.Lambda)) for n in around[1:]):
            before = [one for one in given if file.position(one[0]) < file.position(node)]
            given = before if before and path_to(scope, before[0][0]) else given
        stays = []
        for value, line in given:
            stays.append(self.value(file, scope, value, seen | {_mark(scope, node.value)}))
            if not stays[-1] and line is not None:
                self.found.gone.append((file, line))
                self.found.nodes.append(value)
        if any(stays) and not all(stays):
            self._check_index(file, scope, node.value)
        return any(stays)

    def _check_index(self, file: ParsedFile, scope: cst.CSTNode, name: str) -> None:
        """A list that loses elements must not be asked for one by its place, but for the last."""
        finder = _Indexed(name)
        walk(scope, finder)
        for node in finder.found:
            if not self.seen.get(id(finder.last)):
                raise Blocked(
                    "TFM110", node, "hooks are dropped from this list, and it is indexed: name the hook instead"
                )

    def _call(self, file: ParsedFile, scope: cst.CSTNode, node: cst.Call, seen: frozenset[str]) -> bool:
        name = file.imports.resolve(node.func)
        last = (name or "").rpartition(".")[2]
        if name is not None and name.startswith("tf."):
            return self._stock(file, node, name, last)
        if name is not None and name.startswith(_HOROVOD):
            message = f"`{last}` belongs to Horovod, which distributes this program: remove Horovod first"
            raise Blocked("TFM160", node, message)
        own = self._own_class(file, scope, node.func)
        if own is not None:
            return self._own(file, node, *own)
        function = self.project.function(file, node.func)
        functions = [function] if function is not None else self._dispatched(file, scope, node.func)
        if functions and all(_mark(f, "") not in seen for _, f in functions):
            self.tables += function is None
            stays = [
                self.value(where, made, returned.value, seen | {_mark(made, "")})
                for where, made in functions
                for returned in returns_in(made.body)
                if returned.value is not None
            ]
            self.tables -= function is None
            if not any(stays):
                self.found.makers += functions
            elif function is None and not all(stays):
                raise Blocked("TFM110", node, "some hooks of this table are dropped, others are not")
            return any(stays)
        if is_of_official_models(name, node):
            text = file.code(node.func).strip()
            message = (
                f"the hooks of `{text}` are dropped: its file was not given, but such hooks of the "
                "official models only report"
            )
            self._remark(file, node, "TFM188", message)
            return False
        text = file.code(node.func).strip()
        told = missing_file(file.imports, node.func) or ": it is not in the given files"
        raise Blocked("TFM110", node, f"cannot tell which hook `{text[:40]}(...)` returns{told}")

    def _dispatched(
        self, file: ParsedFile, scope: cst.CSTNode, func: cst.BaseExpression
    ) -> list[tuple[ParsedFile, cst.FunctionDef]]:
        """The functions of a table (a dict of the module) that a name may be one of."""
        if not isinstance(func, cst.Name):
            return []
        finder = _Given(func.value)
        walk(scope, finder)
        found: list[tuple[ParsedFile, cst.FunctionDef]] = []
        for value, _ in finder.found:
            if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and value.func.attr.value == "get":
                table: cst.BaseExpression = value.func.value
            elif isinstance(value, cst.Subscript):
                table = value.value
            else:
                return []
            display = file.constants.get(table.value) if isinstance(table, cst.Name) else None
            if not isinstance(display, cst.Dict):
                return []
            for element in display.elements:
                function = self.project.function(file, element.value)
                if function is None:
                    return []
                found.append(function)
            if isinstance(table, cst.Name):
                self.found.tables.append((file, table.value))
        return found

    # -- stock hooks -----------------------------------------------------------------------------------------------

    def _stock(self, file: ParsedFile, node: cst.Call, name: str, last: str) -> bool:
        if last in _REPORTS:
            self._remark(file, node, "TFM141", f"the `{last}` is dropped: it does not affect the training")
            return False
        if last in _REFUSED:
            raise Blocked("TFM110", node, f"`{last}` is unsupported: {_REFUSED[last]}")
        if last == "StopAtStepHook":
            made = stop_at_step(node, name) if self.phase == "train" else stop_prediction(node, name)
        else:
            made = read_early_stopping(node, name) if self.phase == "train" else None
        if made is None:
            raise Blocked("TFM110", node, f"`{last}` is unsupported: write a Keras callback instead")
        self.found.made.append((file, node, made))
        if made.remark is not None:
            self._remark(file, node, "TFM163", made.remark)
        return True

    # -- own hooks -------------------------------------------------------------------------------------------------

    def _own_class(
        self, file: ParsedFile, scope: cst.CSTNode, func: cst.BaseExpression
    ) -> tuple[ParsedFile, cst.ClassDef] | None:
        """The hook class of the program that a call makes an instance of."""
        found = find_class(self.project, file, scope, func)
        if found is None or len(found[1].bases) != 1:
            return None
        base = found[0].imports.tensorflow(found[1].bases[0].value)
        known = is_hook_base(base) or (base is not None and base.rpartition(".")[2] in _REPORTS)
        return found if known else None

    def _own(self, file: ParsedFile, call: cst.Call, where: ParsedFile, node: cst.ClassDef) -> bool:
        if self.phase == "predict" and counts_steps(where, node):
            self.found.counts = True
            message = f"`{node.name.value}` is dropped: callbacks count the batches of a prediction"
            self._remark(file, call, "TFM141", message)
            self.found.classes.append((where, node))
            return False
        if self.tables and _observes(where, node):
            return self._left_out(file, call, where, node)
        try:
            if not is_hook_base(where.imports.tensorflow(node.bases[0].value)):
                raise Blocked("TFM162", node.name, "it changes how a built-in hook reports")
            _check_new_code(where, as_callback(where, node, {self.phase}, self.tensors))
            if self.inside:
                raise Blocked("TFM110", call, "this hook is set in the model_fn: pass it to `train` or the TrainSpec")
        except Blocked as problem:
            try:
                _check_observes(where, node)
            except Blocked:
                raise self._at(file, call, problem) from None
            return self._left_out(file, call, where, node)
        message = f"`{node.name.value}` is now a Keras callback"
        self._remark(file, call, "TFM161", message)
        self.found.own.append(OwnHook(where, node, call, stops_training(node)))
        return True

    def _left_out(self, file: ParsedFile, call: cst.Call, where: ParsedFile, node: cst.ClassDef) -> bool:
        message = f"`{node.name.value}` is dropped: it does not affect the training"
        self._remark(file, call, "TFM141", message)
        self.found.classes.append((where, node))
        return False

    def _at(self, file: ParsedFile, call: cst.Call, problem: Blocked) -> Blocked:
        """A problem in another file is told where its hook is made."""
        if problem.node is not None and path_to(self.home.module, problem.node):
            return problem
        place = call if file is self.home else None
        return Blocked(problem.code, place, problem.message)

    def _remark(self, file: ParsedFile, node: cst.Call, code: str, message: str) -> None:
        self.found.remarks.append(Blocked(code, node if file is self.home else self.argument, message))


def _check_new_code(file: ParsedFile, node: cst.ClassDef) -> None:
    """Refuses a callback class that still speaks of the graph. Raises Blocked (TFM162)."""
    rules = call_rules()
    for name in file.imports.symbols_in(node.body):
        if name not in rules and home(name) is None:
            message = f"`{node.name.value}` cannot become a Keras callback: it uses `{name}`, a graph operation"
            raise Blocked("TFM162", None, message)


class _Indexed(cst.CSTVisitor):
    """`name[...]`, and the hook that was last put into the list of that name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.given = _Given(name)
        self.found: list[cst.Subscript] = []

    def visit_Module(self, node: cst.Module) -> None:
        walk(node, self.given)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        walk(node, self.given)

    def visit_Subscript(self, node: cst.Subscript) -> None:
        if isinstance(node.value, cst.Name) and node.value.value == self.name:
            self.found.append(node)

    @property
    def last(self) -> cst.BaseExpression | None:
        """The last hook of the list, where every mention asks for the last one."""
        if not all(_is_last(node) for node in self.found) or not self.given.found:
            return None
        value = self.given.found[-1][0]
        if isinstance(value, (cst.List, cst.Tuple)) and value.elements:
            return value.elements[-1].value
        return value


def _is_last(node: cst.Subscript) -> bool:
    index = node.slice[0].slice
    if not isinstance(index, cst.Index) or not isinstance(index.value, cst.UnaryOperation):
        return False
    return isinstance(index.value.expression, cst.Integer) and index.value.expression.value == "1"


_TELLS = frozenset(
    ("print", "len", "str", "int", "float", "range", "zip", "dict", "list", "sorted", "super", "isinstance")
)
_METHODS = frozenset(
    (
        *("format", "join", "items", "keys", "values", "get", "append", "__init__", "time", "total_seconds", "now"),
        *("get_tensor_by_name", "get_operation_by_name", "should_trigger_for_step", "update_last_triggered_step"),
        *("add_summary", "info", "warning", "debug", "error", "log", "reset", "flush"),
    )
)
_SYMBOLS = (
    *("tf.logging.", "tf.train.SessionRunArgs", "tf.estimator.SessionRunArgs", "tf.train.SecondOrStepTimer"),
    *("tf.train.get_global_step", "tf.train.get_or_create_global_step", "tf.get_default_graph", "tf.Summary"),
    *("tf.summary.FileWriter", "tf.train.basic_session_run_hooks", "tf.estimator.SecondOrStepTimer"),
    *("tf.RunOptions", "tf.core.protobuf.config_pb2.RunOptions", "tf.python.client.timeline.Timeline"),
    "tf.python.training.training_util._get_or_create_global_step_read",
)
# What writes a profile to a file.
_PROFILERS = ("tf.python.client.timeline.Timeline", "tf.profiler.")
_OF_FILES = ("tf.gfile.", "tf.io.gfile.", "os.path.")
_METHODS_OF_PROFILES = ("write", "generate_chrome_trace_format")


def _observes(file: ParsedFile, node: cst.ClassDef) -> bool:
    try:
        _check_observes(file, node)
    except Blocked:
        return False
    return True


def _check_observes(file: ParsedFile, node: cst.ClassDef) -> None:
    """Refuses a hook class that may do more than look at values and report them."""
    derived = not is_hook_base(file.imports.tensorflow(node.bases[0].value))
    finder = _Deeds(file, node, derived)
    walk(node.body, finder)
    if finder.found:
        text = file.code(finder.found[0])
        message = f"`{node.name.value}` may change the training (`{text.strip()[:40]}`): write a Keras callback instead"
        raise Blocked("TFM110", node.name, message)


def _is_of_base(node: cst.Call) -> bool:
    """Whether a call is one of `super()`, or reads the tensors that a stock hook keeps."""
    func = node.func
    if not isinstance(func, cst.Attribute):
        return False
    if isinstance(func.value, cst.Call):
        return isinstance(func.value.func, cst.Name) and func.value.func.value == "super"
    reads = len(node.args) == 1 and _own_attribute(node.args[0].value) == "_current_tensors"
    return func.attr.value == "run" and reads


def _own_attribute(node: cst.CSTNode) -> str | None:
    """The name in `self.name`."""
    if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name) and node.value.value == "self":
        return node.attr.value
    return None


class _Deeds(cst.CSTVisitor):
    """What a hook does beside looking at values, keeping some of its own, and reporting them; what it does more may be
    `derived` from a stock hook that only reports.
    """

    def __init__(self, file: ParsedFile, node: cst.ClassDef, derived: bool) -> None:
        super().__init__()
        self.file = file
        self.derived = derived
        self.own = {s.name.value for s in node.body.body if isinstance(s, cst.FunctionDef)}
        self.profiles = any(name.startswith(_PROFILERS) for name in file.imports.symbols_in(node.body))
        self._methods: list[str] = []
        self.found: list[cst.CSTNode] = []

    def visit_Call(self, node: cst.Call) -> None:
        name = self.file.imports.resolve(node.func) or ""
        tells = isinstance(node.func, cst.Name) and node.func.value in _TELLS
        method = isinstance(node.func, cst.Attribute) and node.func.attr.value in _METHODS
        symbol = name.startswith(_SYMBOLS) or name.startswith(("time.", "datetime.", "logging."))
        symbol |= "log" in name.rpartition(".")[2].lower() and not name.startswith("tf.")
        symbol |= self.derived and _is_of_base(node)
        symbol |= self.profiles and self._writes(node, name)
        own = _own_attribute(node.func)
        symbol |= own is not None and (own in self.own or own.startswith("log"))
        if isinstance(node.func, cst.Attribute) and _own_attribute(node.func.value) is not None:
            symbol |= node.func.attr.value.startswith("log")
        if not (tells or symbol or (method and not name.startswith("tf."))):
            self.found.append(node)

    def _writes(self, node: cst.Call, name: str) -> bool:
        """Whether a call has to do with the file of a profile."""
        if isinstance(node.func, cst.Name) and node.func.value == "open":
            return True
        method = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
        return name.startswith(_OF_FILES) or (not name.startswith("tf.") and method in _METHODS_OF_PROFILES)

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        root: cst.BaseExpression = node.target
        while isinstance(root, (cst.Attribute, cst.Subscript)):
            root = root.value
        if root is not node.target and not (isinstance(root, cst.Name) and root.value == "self"):
            self.found.append(node)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._methods.append(node.name.value)

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        self._methods.pop()

    def visit_Raise(self, node: cst.Raise) -> bool:
        checks = self._methods[-1:] in (["__init__"], ["begin"])  # how the hook was made
        if not checks:
            self.found.append(node)
        return not checks

    def visit_Global(self, node: cst.Global) -> None:
        self.found.append(node)


class _Given(cst.CSTVisitor):
    """Everything that a name is given, and that is added to the list that it stands for, each with its line when that
    only adds.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.found: list[tuple[cst.BaseExpression, cst.BaseStatement | None]] = []
        self.plain = True
        self._line: cst.SimpleStatementLine | None = None

    def _is_name(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Name) and node.value == self.name

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        self._line = node if len(node.body) == 1 else None

    def visit_Assign(self, node: cst.Assign) -> None:
        for target in node.targets:
            if self._is_name(target.target):
                self.found.append((node.value, None))
            elif isinstance(target.target, (cst.Tuple, cst.List)):
                self.plain = self.plain and not any(self._is_name(e.value) for e in target.target.elements)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        if self._is_name(node.target):
            self.found.append((node.value, self._line))

    def visit_Param(self, node: cst.Param) -> None:
        self.plain = self.plain and node.name.value != self.name

    def visit_For(self, node: cst.For) -> None:
        self.plain = self.plain and not self._is_name(node.target)

    def visit_Call(self, node: cst.Call) -> None:
        if isinstance(node.func, cst.Attribute) and self._is_name(node.func.value) and node.args:
            if node.func.attr.value in ("append", "extend", "insert"):
                self.found.append((node.args[-1].value, self._line))
            else:
                self.plain = False
