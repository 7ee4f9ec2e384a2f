"""A ModelFunction as a function that builds and compiles a Keras model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from migrator.emit import optimizer
from migrator.emit.general import ModelClass, class_name, owner_of
from migrator.emit.layout import bracket, call, statements
from migrator.emit.loss import emit_loss
from migrator.emit.metrics import EmittedMetrics, emit_metrics, key_of, keys_read, reads_model
from migrator.emit.names import free
from migrator.emit.steps import given_steps, with_steps
from migrator.names.bare import bare
from migrator.names.bindings import names_bound
from migrator.program.body import Parameters
from migrator.program.calls import calls_in, is_docstring
from migrator.program.comments import comment_lines
from migrator.program.helpers import HelperPlan
from migrator.program.loss import ANOTHER, GENERAL_FORM, GeneralLoss, output_of
from migrator.program.model_function import ModelFunction
from migrator.program.modes import EVAL, PREDICT, TRAIN, ModalStatement, ModeNames
from migrator.program.outlining import acts, touched
from migrator.program.outlining import given as given_by
from migrator.program.own_weights import OwnWeights
from migrator.program.parsed import Blocked, ParsedFile, names_in
from migrator.rules.dropout import training_dropout
from migrator.rules.embeddings import tables
from migrator.rules.hooks import NO_SPEC_HOOKS, SpecHooks
from migrator.rules.partitioners import Made, matrices_made
from migrator.rules.rewriter import Rewriter
from migrator.rules.scaffolds import lines_of_saved
from migrator.rules.site import TrainingContext
from migrator.rules.weight_averages import EVALUATED
from migrator.walking import transformed, walk

#: Functions of Python that only give values.
_PLAIN_CALLS = frozenset(
    ("dict", "list", "tuple", "set", "len", "int", "float", "str", "bool", "range", "zip", "sorted", "max", "min")
)


@dataclass(frozen=True)
class EmittedModel:
    """The new function, what stood in its way, its partitioners, and remarks (as Blocked: code, node, message).

    `loss_of_class` says that the loss is one of Keras' classes, `loss_of_batch` that the model computes it from whole
    batches, `measures` that the model has metrics, and `measures_itself` that it updates them itself.
    `of_execution` says how many steps `fit` makes
    in one go, whatever the driver says. `unsplit` are layers outside of the
    scopes of the partitioners, `split_scopes` the partitioners of scopes that the new function has, each with the call
    that makes the scope there. `made` are the matrices of the original, in its order (None: that is not known).
    `matrices` are the weights that devices may divide by rows, where they are known, `draws` says that on a mesh layers
    draw random numbers. `outputs` are the names that what the model answers with is computed from. `outside` is the
    call that makes the optimizer where it stands outside of the model_fn.
    """

    node: cst.FunctionDef
    problems: tuple[Blocked, ...]
    partitioners: tuple[tuple[cst.CSTNode, cst.BaseExpression], ...]
    remarks: tuple[Blocked, ...]
    has_predictor: bool
    needs: frozenset[str]
    classes: Mapping[str, str]  # that the file needs: name and text
    hooks: SpecHooks = NO_SPEC_HOOKS
    loss_of_class: bool = True
    loss_of_batch: bool = False
    measures: bool = False
    measures_itself: bool = False
    of_execution: int = 1
    unsplit: tuple[cst.CSTNode, ...] = ()
    split_scopes: tuple[tuple[cst.CSTNode, cst.Call], ...] = ()
    made: tuple[Made, ...] | None = ()
    matrices: tuple[Matrix, ...] | None = ()
    draws: bool = False
    outputs: frozenset[str] = frozenset()
    outside: cst.CSTNode | None = None


@dataclass(frozen=True)
class Matrix:
    """A weight of two axes: `layer.weight`, whether it is a table of embeddings, and its rows and columns where
    they are known.

    `split` says whether it was made under a partitioner (None: that is not known).
    """

    name: str
    table: bool
    rows: int | None
    split: bool | None = None
    columns: int | None = None


def ready_model(node: cst.FunctionDef) -> EmittedModel:
    """What stands for a model that the driver has already."""
    return EmittedModel(node, (), (), (), False, frozenset(), {})


def emit_model_function(
    function: ModelFunction,
    wants_predictor: bool,
    training: TrainingContext,
    replicas: bool,
    plan: HelperPlan,
) -> EmittedModel:
    """Builds the Keras function; `replicas` says that it may train on several devices at a time.

    `plan` has the calls of helpers and of Keras layers that told them the mode. Raises Blocked for what only shows now
    (labels in the network, mode left over).
    """

    def emit(form: ModelFunction) -> EmittedModel:
        emitter = _Emitter(form, wants_predictor, training, replicas)
        emitter.rewriter.dropped_arguments, emitter.rewriter.untold = plan.calls, plan.untold
        return emitter.emit()

    try:
        return emit(function)
    except Blocked as problem:
        if function.general is None or problem.code not in GENERAL_FORM:
            raise
    return emit(function.general)


_INPUTS_OF = '''\
def {name}(outputs, features):
    """Returns the features that outputs are computed from; a client need not send the others."""
{plain}    sources = [tf.keras.utils.get_source_inputs(output) for output in tf.nest.flatten(outputs)]
    read = {id(tensor) for tensors in sources for tensor in tensors}
    return {name: tensor for name, tensor in features.items() if id(tensor) in read}
'''
_PLAIN = """\
    if not isinstance(features, dict):
        return features
"""
_READ_ELSEWHERE = (
    "tf.losses.",
    "tf.metrics.",
    "tf.estimator.",
    "tf.summary.",
    "tf.train.",
    "tf.nn.",
    "tf.reduce_",
    "tf.add_n",
    "tf.gradients",
    "tf.trainable_variables",
    "tf.clip_by_",
    "tf.global_norm",
    "tf.get_collection",
    "tf.GraphKeys.",
    "tf.control_dependencies",
    "tf.group",
)


def other_problems(file: ParsedFile, node: cst.FunctionDef, parameters: Parameters, own: OwnWeights) -> list[Blocked]:
    """The lines of a refused model_fn that are in the way too, whatever it was refused for."""
    rewriter = Rewriter(file.imports, file.code, ModeNames(file.imports, parameters.mode, functions=file.functions))
    rewriter.training = TrainingContext(own=own)
    transformed(node.body, rewriter)
    return [
        p
        for p in rewriter.problems
        if not (p.code == "TFM203" and p.message.startswith(tuple(f"`{s}" for s in _READ_ELSEWHERE)))
        and not only_follows(p)
        and p.code != "TFM402"  # a rate is judged with the optimizer that it belongs to
    ]


def only_follows(problem: Blocked) -> bool:
    """Whether a problem is that a layer's mode is not known, as it is not where a model_fn could not be read."""
    return problem.code == "TFM202" and problem.message.startswith(("`training=`", "this `tf.layers."))


class _Emitter:
    def __init__(
        self, function: ModelFunction, wants_predictor: bool, training: TrainingContext, replicas: bool
    ) -> None:
        self.function = function
        self.replicas = replicas
        self.keras = training.keras
        self.steps_per_execution = training.steps_per_execution
        self.given_steps = given_steps(training)
        self.file = function.file
        self.indent = function.file.module.default_indent
        self.labels = function.parameters.labels or "labels"
        self.rewriter = Rewriter(
            function.file.imports,
            function.file.code,
            function.body.names,
            function.regularized,
            lambda name: function.define(name) or function.file.constants.get(name),
        )
        self.rewriter.local = function.define
        self.rewriter.moves_averages = function.train.updates_keras
        if self.keras.number == 2:  # not tried on Keras 3
            self.rewriter.tables = tables(function.node, function.file.imports)
        for statement in function.statements:
            call = training_dropout(statement.node, function.file.imports)
            if call is not None and statement.modes == {TRAIN}:
                self.rewriter.training_calls.add(call)
        self.rewriter.updates = function.train.updates
        self.rate_class = optimizer.prepare(self.rewriter, training, function.train, function.file.code)
        if wants_predictor and function.predictions is None:
            raise Blocked("TFM111", function.node.name, "predict() is called, but no EstimatorSpec has predictions")
        self.predictions = function.predictions if wants_predictor else None
        self.taken = set(function.file.names) | names_in(function.node)
        if isinstance(function.output, cst.Name):
            self.output_name = function.output.value
        else:
            self.output_name = free("outputs", self.taken)
        self.further_outputs: tuple[str, ...] = ()
        self.moved: set[int] = set()
        self.kept: set[int] = set()
        self.remarks: list[Blocked] = []

    def emit(self) -> EmittedModel:
        function = self.function
        general = function.loss if isinstance(function.loss, GeneralLoss) else None
        several = general is not None and (len(general.outputs) > 1 or function.labels_by_key)
        compiles = not several and function.reads_labels
        outputs = general.outputs if general is not None else (self.output_name,)
        metrics = emit_metrics(
            function,
            self.labels,
            self.output_name,
            outputs,
            self.taken,
            self._is_static,
            self.rewriter,
            compiles=compiles,
        )
        self.remarks += [*metrics.remarks, *function.remarks]
        self.moved |= {i for i in metrics.copied if names_in(function.statements[i].node) & function.label_names}
        self.further_outputs = metrics.outputs
        loss = emit_loss(
            function,
            self.labels,
            self.output_name,
            self.taken,
            self._text,
            self.rewriter.replaced,
            self._is_static,
            self.replicas,
            metrics.outputs,
            of_examples=self.rewriter.training.of_examples,
            keras=self.keras,
        )
        if self.rewriter.training.on_mesh:
            if general is not None and general.evaluated is not None:
                raise Blocked("TFM301", general.evaluated.expression, f"{ANOTHER}: choose another `--strategy`")
            if metrics.outputs and loss.model is None:
                message = (
                    "a metric reads a tensor that the loss does not: use `--strategy mirrored`, or leave the metric out"
                )
                raise Blocked("TFM793", function.node.name, message)
        elif self.rewriter.training.of_examples and (loss.model is not None or metrics.made or metrics.outputs):
            message = "the loss or a metric needs more than labels and one output, which only `fit` supports"
            raise Blocked("TFM735", function.node.name, message)
        if loss.lines and not self.keras.loss_sees_labels:
            message = "Keras 3 passes labels to the loss as floats, which this loss cannot use"
            raise Blocked("TFM301", function.node.name, message)
        self.moved |= loss.moved
        self.kept |= loss.kept
        self.remarks += loss.remarks
        rate = self._rate()
        if function.train.index is None:
            trained_by = self._optimizer_text()
        else:
            assert isinstance(function.train.optimizer, cst.Name)
            trained_by = function.train.optimizer.value
        given = [*(rate if function.train.index is None else ()), *loss.lines, *metrics.classes]
        body, comments = self._network(
            [*(one.lstrip("*") for one in metrics.metrics), *loss.reads], given, rate, metrics.free
        )
        inputs = self._inputs(body)
        model_name = free("model", self.taken)
        model = loss.model
        if metrics.made:
            if model is None:
                answers = (self.output_name, *metrics.outputs)
                model = ModelClass(class_name(function, self.taken), answers, owner=owner_of(function))
            self._add_metrics(model, metrics)
        lines = [*given, *metrics.made, *(model.lines(self.indent, self.keras) if model is not None else ())]
        output = self._one_line(self._built(function.output))
        if general is None:
            self._no_mode(function.output, function.output)
        if general is not None:
            output = self._one_line(self._rewritten(output_of((*outputs, *metrics.outputs))))
        elif metrics.outputs:
            named = {self.output_name: output, **{name: name for name in metrics.outputs}}
            output = "{" + ", ".join(f'"{name}": {value}' for name, value in named.items()) + "}"
        base = self._base()
        lines = [line.replace("(tf.keras.Model):", f"({base}):") for line in lines]
        lines.append(f"{model_name} = {model.name if model is not None else base}({inputs}, {output})")
        arguments = [f"optimizer={trained_by}", *loss.arguments]
        if metrics.metrics:
            arguments.append(f"metrics={bracket(metrics.metrics, self.indent, 2)}")
        arguments += self.given_steps
        if self.keras.compiles:
            arguments.append("jit_compile=False")
        lines.append(call(f"{model_name}.compile", arguments, self.indent, 1).replace("\n" + self.indent, "\n"))
        if function.hooks.checkpoint is not None:
            lines += lines_of_saved(function.train.saved, model_name)
        result = model_name
        if self.predictions is not None:
            self._no_mode(self.predictions, self.predictions)
            predicted = self._one_line(self._built(self.predictions))
            if self.rewriter.training.exports and self._takes_dicts():
                if not isinstance(self.predictions, cst.Name):
                    name = free("predictions", self.file.names | names_in(function.node))
                    lines.append(f"{name} = {predicted}")
                    predicted = name
                text = _INPUTS_OF.replace("{plain}", _PLAIN if self._takes_tensors_too() else "")
                inputs = f"{self.rewriter.training.helper('inputs_of', text)}({predicted}, {inputs})"
            result += f", tf.keras.Model({inputs}, {predicted})"
        lines.append(f"return {result}")
        end = statements("\n".join(lines) + "\n", self.file.module)
        node = function.node
        assert isinstance(node.body, cst.IndentedBlock)
        own = next(line for line in lines if line).startswith(("class ", "def "))
        if self._is_airy() or own or (rate and function.train.index is None):
            comments = [cst.EmptyLine(indent=False), *comments]
        end = self._with_comments(end, comments)
        block = node.body.with_changes(body=[*body, *end])
        self._remarks()
        decorators = [d.with_changes(decorator=self._rewritten(d.decorator)) for d in node.decorators]
        return EmittedModel(
            node.with_changes(params=self._parameters(), body=block, returns=None, decorators=decorators),
            tuple(self.rewriter.problems),
            tuple(self.rewriter.partitioners),
            tuple(self.remarks),
            self.predictions is not None,
            frozenset(self.rewriter.needs),
            dict(self.rewriter.classes),
            function.hooks,
            loss_of_class=not loss.lines,
            loss_of_batch=loss.model is not None,
            measures=bool(metrics.metrics or metrics.made),
            measures_itself=bool(metrics.made),
            unsplit=tuple(self.rewriter.unsplit) if not self.rewriter.splits_all else (),
            split_scopes=tuple(self.rewriter.split_scopes),
            of_execution=self.rewriter.training.of_execution,
            outputs=frozenset(names_in(function.output) | set(self.further_outputs)),
            made=matrices_made(node, self.file, self.rewriter.tables.variables),
            outside=function.train.place if function.train.outside else None,
        )

    def _base(self) -> str:
        """The class of the model: its own where it evaluates with moving averages. Raises Blocked (TFM413)."""
        averages, training = self.function.hooks.averages, self.rewriter.training
        if averages is None:
            return "tf.keras.Model"
        if training.of_examples:
            raise Blocked("TFM413", averages.node, "a custom loop cannot evaluate with moving averages: use `fit`")
        return training.helper("AveragedModel", EVALUATED)

    # -- optimizer -------------------------------------------------------------------------------------------------

    def _rate(self) -> list[str]:
        """The lines of the schedule class, where the rate needs one."""
        if self.rate_class is None:
            return []
        train = self.function.train
        self.moved |= set(train.rate.moved)
        moved = [self.function.statements[index].node for index in train.rate.moved]
        return optimizer.schedule_class(self.rate_class, train, moved, self.rewriter, self.file.code, self.indent)

    def _optimizer_text(self) -> str:
        """The optimizer that is made where it is used. Problems of a call that was put together have no place."""
        known = len(self.rewriter.problems)
        text = self.file.code(self._rewritten(self.function.train.optimizer))
        place = self.function.train.place
        if place is not None:
            for found in (self.rewriter.problems, self.rewriter.training.remarks):
                start = known if found is self.rewriter.problems else 0
                found[start:] = [
                    Blocked(p.code, place, p.message) if p.node in self.function.train.made or not start else p
                    for p in found[start:]
                ]
        return text

    def _add_metrics(self, model: ModelClass, metrics: EmittedMetrics) -> None:
        """Lets the class of the model update its metrics itself."""
        features = self.function.parameters.features
        if features in metrics.reads:
            changed = _Mutations(features)
            walk(self.function.node.body, changed)
            read = keys_read(cst.parse_module("\n".join(metrics.updated) + "\n"), features)
            if changed.found and (None in changed.keys | read or changed.keys & read):
                raise Blocked("TFM503", self.function.node.name, "a metric reads features that the model_fn changes")
        values = {features: "x", self.labels: "y"}
        several = len(model.outputs) > 1
        values |= {name: f'y_pred["{name}"]' if several else "y_pred" for name in model.outputs}
        pairs = [(n, v) for n, v in values.items() if n in metrics.reads and n != v]
        if pairs:
            model.metrics.append(f"{', '.join(n for n, _ in pairs)} = {', '.join(v for _, v in pairs)}")
        if self.keras.number == 3:  # as for the mean of losses, see emit_general_loss
            model.metrics.append("with tf.control_dependencies(tf.nest.flatten(y_pred)):")
            model.metrics += [self.indent + line if line else line for line in metrics.updated]
        else:
            model.metrics += metrics.updated
        model.own_metrics, model.listed = True, metrics.title
        if not model.loss and several:
            more = ", training" if self.keras.loss_has_phase else ""
            model.loss.append(f'return super().compute_loss(x, y, y_pred["{self.output_name}"], sample_weight{more})')

    # -- signature -------------------------------------------------------------------------------------------------

    def _parameters(self) -> cst.Parameters:
        roles = self.function.parameters
        gone = {roles.labels, roles.mode, roles.config} - {None}
        params = self.function.node.params
        kept = [self._parameter(p) for p in params.params if p.name.value not in gone]
        if kept:
            kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        kwonly = [self._parameter(p) for p in params.kwonly_params if p.name.value not in gone]
        made = params.with_changes(
            params=kept,
            kwonly_params=kwonly,
            star_arg=params.star_arg if kwonly else cst.MaybeSentinel.DEFAULT,
            star_kwarg=None,  # nothing reads it
        )
        return with_steps(made) if self.steps_per_execution else made

    def _parameter(self, param: cst.Param) -> cst.Param:
        default = self._rewritten(param.default) if param.default is not None else None
        annotation = param.annotation
        if annotation is not None:
            annotation = annotation.with_changes(annotation=self._rewritten(annotation.annotation))
        return param.with_changes(default=default, annotation=annotation)

    def _inputs(self, body: list[cst.BaseStatement]) -> str:
        """The name of the Keras inputs; a first line keeps them when the body gives their name to something else."""
        features = self.function.parameters.features
        changed = _Mutations(features)
        walk(self.function.node.body, changed)
        if not changed.found and features not in names_bound(body):
            return features
        name = free("inputs", self.taken)
        at = 1 if body and is_docstring(body[0]) else 0
        text = f"{name} = {features}\n"
        if changed.found:
            text += f"{features} = dict({features})  # changed below, while the inputs stay\n"
        body[at:at] = statements(text, self.file.module)
        return name

    def _is_static(self, name: str, seen: frozenset[str] = frozenset()) -> bool:
        """Whether a local name does not depend on the features (a number read from params, say)."""
        local = {d.name for d in self.function.definitions} | self.function.unclear
        if name in (self.function.parameters.features, self.labels) or name in seen:
            return False
        if name not in local:
            return True
        value = self.function.define(name)
        if value is None or reads_model(value, self.file.imports):
            return False  # a sum over the model's variables, say, which are there when the model is
        changing = [s.node for s in self.function.statements if name in given_by(s)]  # `layers.append(...)` as well
        read = {other for node in (value, *changing) for other in names_in(node)} - {name}
        return name not in names_in(value) and all(self._is_static(n, seen | {name}) for n in read)

    # -- network ---------------------------------------------------------------------------------------------------

    def _network(
        self, expressions: Iterable[str], definitions: Iterable[str], rate: Sequence[str], names: Iterable[str]
    ) -> tuple[list[cst.BaseStatement], list[cst.EmptyLine]]:
        """The forward statements that the model needs, rewritten, and the comments that are left for its end.

        `expressions` and `definitions` are the texts of loss and metrics, which stand after them; `rate` is the
        schedule that the optimizer reads.
        """
        self._check_modes()
        live = self._roots(expressions, definitions) | set(names)
        keep: list[int] = []
        new: dict[int, list[cst.BaseStatement]] = {}
        skipped = set(self.function.consumed) | self.moved
        for index in range(len(self.function.statements) - 1, -1, -1):
            statement = self.function.statements[index]
            if index in skipped and index != self.function.train.index:
                continue
            if self.rewriter.takes_partitioner(statement.node):
                continue
            names = names_in(statement.node)
            if names & self.function.label_names and index not in skipped:
                if any(d.index == index for d in self.function.definitions):
                    continue  # computed from the labels for metrics only, which compute it themselves
                raise Blocked("TFM304", statement.node, "the network reads the labels")
            if statement.modes == {PREDICT} and self.predictions is None:
                continue  # nothing in the program predicts
            only_predicts = statement.modes == {PREDICT} and not self._predicts(index)
            if only_predicts and (index in skipped or not acts(statement, self.file)):
                continue
            defined = {d.name for d in self.function.definitions if d.index == index}
            if defined and not defined & live and self._may_go(index, defined):
                continue
            some = only_predicts or len(statement.modes & {TRAIN, EVAL}) == 1
            if index not in skipped and some and acts(statement, self.file):
                raise Blocked("TFM106", statement.node, "this line runs in some modes only")
            keep.append(index)
            new[index] = self._statements_of(statement.node)
            live |= set().union(*(names_in(one) for one in new[index]))
        kept = set(keep)
        body: list[cst.BaseStatement] = []
        waiting: list[cst.EmptyLine] = []
        final: list[cst.EmptyLine] = []
        for index, statement in enumerate(self.function.statements):
            waiting += statement.comments
            node = statement.node
            if index in kept:
                for one in new[index]:
                    self._no_mode(one, node)
                if index == self.function.train.index and rate:
                    lines = statements("\n".join(rate) + "\n", self.file.module)
                    body += self._with_comments(lines, [cst.EmptyLine(indent=False), *waiting])
                    waiting = [cst.EmptyLine(indent=False)]
                body += self._with_comments(new[index], [*waiting, *_lost_comments(node, new[index])])
                waiting = []
                if index == self.function.train.index:
                    body += statements(optimizer.clips_later(self.function.train, self.file.code), self.file.module)
            elif index in skipped:
                # Loss, training and metrics are what `compile` says now: their comments go there.
                final += waiting
                final += comment_lines(node) if index not in self.moved | self.kept else []
                waiting = []
        final += [*waiting, *self.function.body.trailing_comments]
        return body, final

    def _takes_dicts(self) -> bool:
        """Whether the features are read by their keys."""
        features = self.function.parameters.features
        text = bare(self.file.code(self.function.node.body))
        return f"{features}[" in text or "tf.feature_column." in text or "DenseFeatures" in text

    def _takes_tensors_too(self) -> bool:
        """Whether it is asked what the features are: a dict for some callers, one tensor for others."""
        text = bare(self.file.code(self.function.node.body))
        return re.search(rf"\b(?:isinstance|type|hasattr)\({self.function.parameters.features}\b", text) is not None

    def _slice(self, roots: set[str]) -> set[int]:
        """The statements that the values of some names can come from."""
        names, found = set(roots), set()
        for index in range(len(self.function.statements) - 1, -1, -1):
            if index in self.function.consumed or index in self.moved:
                continue
            statement = self.function.statements[index]
            if touched(statement, self.file) & names:
                found.add(index)
                names |= names_in(statement.node)
        return found

    def _predicts(self, index: int) -> bool:
        assert self.predictions is not None
        return index in self._slice(names_in(self.predictions))

    def _check_modes(self) -> None:
        """The network must be the same in every mode that runs it. Raises Blocked (TFM106)."""
        output = self._slice(names_in(self.function.output) | set(self.further_outputs))
        predicted = self._slice(names_in(self.predictions)) if self.predictions is not None else set()
        shared: set[str] = names_in(self.function.output) | set(self.further_outputs)
        for index in output:
            shared |= touched(self.function.statements[index], self.file)
        for index in sorted(output | predicted):
            statement = self.function.statements[index]
            only_predict = statement.modes == {PREDICT}
            wanted = ({TRAIN, EVAL} if index in output else set()) | ({PREDICT} if index in predicted else set())
            if only_predict and not touched(statement, self.file) & shared:
                continue
            if only_predict and self.predictions is None:
                continue
            if wanted - statement.modes and not self._is_training_dropout(statement):
                raise Blocked("TFM106", statement.node, "this part of the network runs in some modes only")

    def _is_training_dropout(self, statement: ModalStatement) -> bool:
        """`if mode == TRAIN: net = tf.layers.dropout(net, ...)`, which is what a Keras dropout does."""
        return (
            statement.modes == {TRAIN}
            and isinstance(statement.node, cst.SimpleStatementLine)
            and training_dropout(statement.node, self.file.imports) in self.rewriter.training_calls
        )

    def _may_act(self, node: cst.CSTNode) -> bool:
        """Whether a call may do more than return a value: all but TensorFlow's, those of built-in types, and `get`."""
        called = [one.func for one in calls_in(node)]
        acting = [one for one in called if not isinstance(one, cst.Name) or one.value not in _PLAIN_CALLS]
        acting = [one for one in acting if not isinstance(one, cst.Attribute) or one.attr.value != "get"]
        return any(self.file.imports.tensorflow(one) is None for one in acting)

    def _may_go(self, index: int, defined: set[str]) -> bool:
        """Whether an assignment that the new function does not read may be left out.

        It may when the old one read it for what is said otherwise now (loss, metrics, predictions). One that nothing
        ever read is the user's own business, and a call may have effects beside its value.
        """
        if self._may_act(self.function.statements[index].node):
            return False
        read = set().union(*(names_in(spec.statement) for spec in self.function.body.specs))
        for other, statement in enumerate(self.function.statements):
            if other != index:
                read |= names_in(statement.node)
        return bool(defined & read)

    def _roots(self, expressions: Iterable[str], definitions: Iterable[str]) -> set[str]:
        roots = names_in(self.function.output) | names_in(self.function.train.optimizer)
        if self.function.train.clipping is not None:
            roots |= names_in(self.function.train.clipping.value)
        if self.function.train.averages is not None:
            roots |= names_in(self.function.train.averages.decay)
        roots |= set(self.further_outputs)
        if self.predictions is not None:
            roots |= names_in(self.predictions)
        for text in expressions:
            roots |= names_in(cst.parse_expression(text))
        roots |= names_in(cst.parse_module("\n".join(definitions) + "\n"))
        for index in self.moved:
            roots |= names_in(self.function.statements[index].node)
        return roots

    def _no_mode(self, new: cst.CSTNode, original: cst.CSTNode) -> None:
        left = names_in(new) & self.function.body.names.about
        if left:
            raise Blocked("TFM106", original, f"`{sorted(left)[0]}` is used for more than branching or `training=`")
        config = self.function.parameters.config
        if config is not None and config in names_in(new):
            raise Blocked("TFM105", original, "the model_fn reads its `config`")

    # -- helpers ---------------------------------------------------------------------------------------------------

    def _rewritten(self, node: cst.CSTNode) -> cst.BaseStatement:
        return node.visit(self.rewriter)  # type: ignore[return-value]

    def _built(self, node: cst.CSTNode) -> cst.BaseStatement:
        """The new form of what builds the network."""
        return self.rewriter.of_network(self._rewritten(node), node)  # type: ignore[return-value]

    def _statements_of(self, node: cst.BaseStatement) -> list[cst.BaseStatement]:
        """The new form of a statement, which is several where a block around them is gone."""
        written = node.visit(self.rewriter)
        parts = list(written) if isinstance(written, cst.FlattenSentinel) else [written]
        return [self.rewriter.of_network(one, node) for one in parts]  # type: ignore[misc, arg-type]

    def _text(self, node: cst.CSTNode) -> str:
        """The new code of a node of the original."""
        return self._one_line(self._rewritten(node))

    def _one_line(self, node: cst.CSTNode) -> str:
        return self.file.code(node)

    def _with_comments(
        self, nodes: Sequence[cst.BaseStatement], comments: Sequence[cst.EmptyLine]
    ) -> list[cst.BaseStatement]:
        first = nodes[0]
        if comments and isinstance(first, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            first = first.with_changes(leading_lines=_tidy([*comments, *first.leading_lines]))
        return [first, *nodes[1:]]

    def _is_airy(self) -> bool:
        """Whether the user sets off the parts of this function with blank lines."""
        return any(line.comment is None for s in self.function.body.statements for line in _leading(s.node)) or any(
            line.comment is None for spec in self.function.body.specs for line in _leading(spec.statement)
        )

    def _remarks(self) -> None:
        self.remarks += self.function.hooks.remarks
        self.remarks += self.rewriter.remarks
        for node in self.function.summaries:
            self.remarks.append(
                Blocked("TFM801", node, "the summary is dropped: Keras' TensorBoard callback writes loss and metrics")
            )
        for node in self.rewriter.dropped_regularizers:
            self.remarks.append(
                Blocked("TFM206", node, "the regularizer is dropped: the model_fn never added it to its loss")
            )
        if self.function.predictions is not None and self.predictions is None:
            self.remarks.append(
                Blocked("TFM111", self.function.predictions, "the program never predicts: the predictions are dropped")
            )


class _Mutations(cst.CSTVisitor):
    """Finds changes of the dict of features: entries set, deleted, popped.

    `keys` are those of entries that are set (None: one that is not known, or another change).
    """

    def __init__(self, features: str) -> None:
        super().__init__()
        self.features = features
        self.found = False
        self.keys: set[str | None] = set()

    def _is_features(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Name) and node.value == self.features

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        if isinstance(node.target, cst.Subscript) and self._is_features(node.target.value):
            self.found = True
            self.keys.add(key_of(node.target, self.features))

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        if isinstance(node.target, cst.Subscript) and self._is_features(node.target.value):
            self.found = True
            self.keys.add(key_of(node.target, self.features))

    def visit_Del(self, node: cst.Del) -> None:
        elements = node.target.elements if isinstance(node.target, (cst.Tuple, cst.List)) else (node.target,)
        for element in elements:
            target = element.value if isinstance(element, cst.Element) else element
            if isinstance(target, cst.Subscript) and self._is_features(target.value):
                self.found = True
                self.keys.add(None)

    def visit_Call(self, node: cst.Call) -> None:
        if isinstance(node.func, cst.Attribute) and self._is_features(node.func.value):
            if node.func.attr.value in ("pop", "popitem", "update", "setdefault", "clear"):
                self.found = True
                self.keys.add(None)


def _lost_comments(old: cst.CSTNode, new: Sequence[cst.CSTNode]) -> list[cst.EmptyLine]:
    """The comments of a statement that its new form has not any more."""
    left = [line.comment.value for one in new for line in comment_lines(one) if line.comment is not None]
    left += [line.comment.value for one in new for line in _leading(one) if line.comment is not None]
    lost = []
    for line in comment_lines(old, leading=False):
        assert line.comment is not None
        if line.comment.value in left:
            left.remove(line.comment.value)
        else:
            lost.append(line)
    return lost


def _leading(node: cst.CSTNode) -> Sequence[cst.EmptyLine]:
    return node.leading_lines if isinstance(node, (cst.SimpleStatementLine, cst.BaseCompoundStatement)) else ()


def _tidy(lines: Sequence[cst.EmptyLine]) -> list[cst.EmptyLine]:
    """Without a second blank line after a first."""
    return [
        line
        for index, line in enumerate(lines)
        if line.comment is not None or index == 0 or lines[index - 1].comment is not None
    ]
