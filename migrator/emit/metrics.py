"""The metrics of a model_fn in the two forms that Keras has for them.

Metrics of labels and the model's output alone are given to `Model.compile`. What reads more than that (weights,
features, the labels' own shape, which `compile`'s metrics do not see) is updated in `compute_metrics` of a subclass of
`tf.keras.Model`, which gets features, labels and outputs as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import libcst as cst

from migrator.emit.general import OfOwner, owner_of
from migrator.emit.inlining import Inliner
from migrator.emit.layout import call
from migrator.emit.names import free
from migrator.names.bindings import bound_by
from migrator.names.imports import ImportMap
from migrator.program.body import names_given
from migrator.program.calls import calls_in, number, string
from migrator.program.model_function import ModelFunction
from migrator.program.modes import EVAL, TRAIN
from migrator.program.outputs import answers_in_columns, keeps_examples
from migrator.program.parsed import Blocked, name_nodes, names_in
from migrator.rules import labels as label_rules
from migrator.rules.metrics import TRUTHS, Metric
from migrator.rules.rewriter import Rewriter
from migrator.walking import of_kinds, walk

#: How many metrics may have a class of their own only to compute what they compare: more read better in one method.
_FEW = 2


@dataclass(frozen=True)
class EmittedMetrics:
    """The metrics as text for `compile`, or the methods of a model that updates them itself.

    `classes` are the classes that they need and `made` the dict of the metrics that the model updates itself (lines to
    stand before the model), named `title`. `updated` are the lines of its `compute_metrics`, and `reads` which
    of features, labels and output the latter read, and `outputs` which tensors of the network beside the output.
    `free` are the names that these lines take from the function around them, `copied` the statements of the model_fn
    that stand in `compute_metrics` too.
    """

    metrics: tuple[str, ...]
    classes: tuple[str, ...]
    made: tuple[str, ...]
    title: str
    updated: tuple[str, ...]
    reads: frozenset[str]
    outputs: tuple[str, ...]
    free: frozenset[str]
    copied: frozenset[int]
    remarks: tuple[Blocked, ...]


def emit_metrics(
    function: ModelFunction,
    labels: str,
    output: str,
    outputs: Sequence[str],
    taken: set[str],
    is_static: Callable[[str], bool],
    rewriter: Rewriter,
    compiles: bool,
) -> EmittedMetrics:
    """Builds the metrics of labels (the name `labels`) and the model's output (the name `output`).

    `outputs` are all outputs that the loss needs, `is_static` tells names that depend on neither, and `compiles`
    whether the model has one output and one tensor of labels, as metrics of `Model.compile` want it. New names are
    added to `taken`. Raises Blocked (TFM106, TFM503).
    """
    names = set(taken)
    emitter = _Emitter(function, labels, output, outputs, names, is_static, rewriter)
    for _, metric in function.metrics:
        emitter.check_order(metric)
    compiled = [emitter.compiled_if(key, metric) for key, metric in function.metrics]
    metrics: tuple[str, ...] = ()
    if compiles and all(metric is not None for metric in compiled) and emitter.computing <= _FEW:
        metrics = tuple(metric for metric in compiled if metric is not None)
        taken |= names
    else:
        emitter = _Emitter(function, labels, output, outputs, taken, is_static, rewriter)
        for key, metric in function.metrics:
            emitter.updated_by_the_model(key, metric)
    remarks = [Blocked(code, metric.call, text) for _, metric in function.metrics for code, text in metric.remarks]
    lines = [line for _, text in sorted(emitter.copied.items()) for line in text.splitlines()]
    return EmittedMetrics(
        metrics,
        tuple(emitter.classes),
        tuple(emitter.made_lines()),
        emitter.title,
        (*lines, *emitter.updates),
        frozenset(emitter.reads),
        tuple(sorted(emitter.outputs)),
        frozenset(emitter.free_names()),
        frozenset(emitter.copied),
        tuple(remarks),
    )


class _Emitter:
    def __init__(
        self,
        function: ModelFunction,
        labels: str,
        output: str,
        outputs: Sequence[str],
        taken: set[str],
        is_static: Callable[[str], bool],
        rewriter: Rewriter,
    ) -> None:
        self.rewriter = rewriter
        self.function = function
        self.labels = labels
        self.features = function.parameters.features
        self.output_name = output
        self.known = (*outputs,)
        self.taken = taken
        self.is_static = is_static
        self.imports: ImportMap = function.file.imports
        self.code = function.file.code
        self.indent = function.file.module.default_indent
        self.local = {d.name for d in function.definitions} | function.unclear
        self.classes: list[str] = []
        self.made: list[str] = []
        self.updates: list[str] = []
        self.reads: set[str] = set()
        self.outputs: set[str] = set()
        self.copied: dict[int, str] = {}
        self.computing = 0
        self.owner = owner_of(function)
        self.title = function.metrics_title or free("metrics", taken)
        self._titles: dict[tuple[str, ...], str] = {}

    # -- compile(metrics=...) --------------------------------------------------------------------------------------

    def compiled_if(self, key: cst.BaseExpression, metric: Metric) -> str | None:
        """The metric for `Model.compile`, as an element of a list: one of no elements where there is no such metric."""
        text, only_if = self.compiled(key, metric), self._only_if(metric)
        return text if text is None or only_if is None else f"*([{text}] if {only_if} else [])"

    def _only_if(self, metric: Metric) -> str | None:
        """The condition under which there is a metric. Raises Blocked (TFM501)."""
        if metric.only_if is None:
            return None
        if not all(self.is_static(name) for name in names_in(metric.only_if)):
            raise Blocked("TFM501", metric.call, "whether this metric exists is unknown when the model is created")
        return self._finish(metric.only_if, metric)

    def compiled(self, key: cst.BaseExpression, metric: Metric) -> str | None:
        """The metric for `Model.compile`; None when it reads more than such a metric is given."""
        if metric.weights is not None or metric.keras == "MeanTensor":
            return None
        name = f"name={self.code(key)}"
        signature = f"{self.labels}, {self.output_name}"
        if metric.values is not None:
            values = self._inlined(metric.values)
            if values is None or self.labels in names_in(values):
                return None
            text = metric.update.format(self._finish(values, metric))
            return call("tf.keras.metrics.MeanMetricWrapper", [f"lambda {signature}: {text}", name], self.indent, 3)
        assert metric.labels is not None and metric.predictions is not None
        given, predictions = self._inlined(metric.labels), self._inlined(metric.predictions)
        if given is None or predictions is None:
            return None
        sparse = metric.keras in ("MeanIoU", "SparseTopKCategoricalAccuracy") or self._is_argmax(
            predictions, self.output_name
        )
        family = "SparseCategoricalCrossentropy" if sparse and metric.function != "auc" else metric.keras
        answer = label_rules.Output(partial(answers_in_columns, self.function), partial(keeps_examples, self.function))
        stripped = label_rules.plain(given, family, (), self.imports, answer)[1]
        plain = isinstance(stripped, cst.Name) and stripped.value == self.labels
        if metric.function == "accuracy" and self._is_argmax(predictions, self.output_name):
            if plain:
                return f"tf.keras.metrics.SparseCategoricalAccuracy({name})"
            if self._is_argmax(given, self.labels):
                return f"tf.keras.metrics.CategoricalAccuracy({name})"
        arguments = [*self._arguments(metric), name]
        if metric.function == "auc" and plain and not metric.body and self._is_sigmoid(predictions):
            return call("tf.keras.metrics.AUC", [*arguments[:-1], "from_logits=True", name], self.indent, 3)
        if metric.keras in ("MeanSquaredError", "MeanAbsoluteError"):
            if not (plain and self._is_output(predictions)):
                return None
            keras = metric.keras if self._has_two_axes() else "MeanMetricWrapper"
            arguments = [*self._difference(metric, keras), *arguments]
            return call(f"tf.keras.metrics.{keras}", arguments, self.indent, 3)
        left, right = self._finish(stripped, metric), self._as_read(metric, predictions, left=self.labels)
        if metric.function in TRUTHS and right == self.output_name:
            arguments = ["thresholds=0", *arguments]
        if plain and right == self.output_name and not metric.body:
            return call(f"tf.keras.metrics.{metric.keras}", arguments, self.indent, 3)
        if metric.keras == "MeanMetricWrapper" or label_rules.changes_rank(stripped, self.imports):
            return None
        lines: list[str] = []
        if not plain or right != self.output_name:
            self.computing += 1
            lines = [
                f"def update_state(self, {signature}, sample_weight=None):",
                f"{self.indent}return super().update_state({left}, {right}, sample_weight)",
            ]
        title = metric.title or "".join(part.capitalize() for part in metric.function.split("_"))
        return call(self._class(title, metric, lines), arguments, self.indent, 3)

    def _class(self, title: str, metric: Metric, methods: Sequence[str]) -> str:
        """A subclass of the metric's Keras class with some methods and its own result; returns its name."""
        lines = list(methods)
        if metric.body:
            lines += ["", "def result(self):", *(self.indent + line for line in metric.body)]
            lines = lines[1:] if not methods else lines
        shape = (metric.keras, *lines)
        known = self._titles.get(shape)
        if known is not None:
            return known
        name = free(title, self.taken)
        self.taken.add(name)
        self._titles[shape] = name
        self.classes.append(f"class {name}(tf.keras.metrics.{metric.keras}):")
        if metric.doc:
            self.classes += [f'{self.indent}"""{metric.doc}"""', ""]
        self.classes += [f"{self.indent}{line}" if line else "" for line in lines]
        self.classes.append("")
        return name

    def _as_read(self, metric: Metric, predictions: cst.BaseExpression, left: str) -> str:
        """The predictions as TensorFlow 1 read them; `left` is the labels' text."""
        text = self._finish(predictions, metric)
        if metric.function in TRUTHS:
            if self._is_truth(predictions):
                return text
            if self._is_output(predictions) and self._is_probability(self._output_value()):
                return text
            return f"tf.cast({text}, tf.bool)"
        if metric.function == "accuracy" and not self._is_whole(predictions):
            return f"tf.cast({text}, {left}.dtype)"
        return text

    def _difference(self, metric: Metric, keras: str) -> list[str]:
        """What MeanMetricWrapper is made with to be a mean error of single numbers."""
        if keras != "MeanMetricWrapper":
            return []
        if metric.keras == "MeanSquaredError":
            return ["tf.math.squared_difference"]
        return ["lambda y_true, y_pred: tf.abs(y_true - y_pred)"]

    def _arguments(self, metric: Metric) -> list[str]:
        """The metric's own arguments, rewritten."""
        found = []
        for argument in metric.arguments:
            name, equals, text = argument.partition("=")
            if not equals or not name.isidentifier():
                found.append(argument)
                continue
            found.append(f"{name}={self._finish(cst.parse_expression(text), metric)}")
        return found

    def _finish(self, node: cst.BaseExpression, metric: Metric) -> str:
        """Rewrites an inlined expression; its problems are reported at the metric."""
        new = self._rewritten(node, metric.call)
        assert isinstance(new, cst.BaseExpression)
        return self.code(new)

    def _rewritten(self, node: cst.CSTNode, place: cst.CSTNode) -> object:
        """The new form of what may have no place in the file any more; its problems are reported at `place`."""
        known = len(self.rewriter.problems)
        new = node.visit(self.rewriter)
        problems = self.rewriter.problems[known:]
        self.rewriter.problems[known:] = [Blocked(p.code, place, p.message) for p in problems]
        return new

    def _inlined(self, node: cst.BaseExpression) -> cst.BaseExpression | None:
        """Local names replaced by their values until only labels, the output and static names are left."""
        inliner = Inliner(self.function, {self.output_name}, self.is_static, self.code)
        if not isinstance(self.function.output, cst.Name) and self.known == (self.output_name,):
            inliner.output = (self.code(self.function.output), self.output_name)
        new = node.visit(inliner)
        assert isinstance(new, cst.BaseExpression)
        local = self.local | {self.features}
        if {n for n in names_in(new) & local if not self.is_static(n)} - {self.output_name, self.labels}:
            return None
        if self.labels in names_in(new) and len(self.function.places_given(self.labels)) > 1:
            return None  # the name is left for all that it is given
        return new

    # -- compute_metrics -------------------------------------------------------------------------------------------

    def updated_by_the_model(self, key: cst.BaseExpression, metric: Metric) -> None:
        """Adds the metric to those that the model makes and updates itself. Raises Blocked (TFM106, TFM503)."""
        keras, arguments = metric.keras, self._arguments(metric)
        if keras in ("MeanSquaredError", "MeanAbsoluteError"):
            keras = "MeanMetricWrapper"
            arguments = self._difference(metric, keras)
        made = f"tf.keras.metrics.{keras}" if not metric.body else self._class(metric.title, metric, ())
        made = call(made, [*arguments, f"name={self.code(key)}"], self.indent, 2)
        only_if = self._only_if(metric)
        entry = f"{self.code(key)}: {made}"
        self.made.append(entry if only_if is None else f"**({{{entry}}} if {only_if} else {{}})")
        if metric.values is not None:
            given = [metric.update.format(self._text(metric.values, metric))]
        else:
            assert metric.labels is not None and metric.predictions is not None
            left = self._text(metric.labels, metric)
            self._text(metric.predictions, metric)
            given = [left, self._as_read(metric, self._entries(metric.predictions), left)]
        if metric.weights is not None:
            given.append(self._text(metric.weights, metric))
        lines = self._outward(call(f"{self.title}[{self.code(key)}].update_state", given, self.indent, 3))
        if only_if is not None:
            lines = [f"if {self.code(key)} in {self.title}:", *(self.indent + line for line in lines)]
        self.updates += lines

    def made_lines(self) -> list[str]:
        """The dict of metrics as a statement."""
        if not self.made:
            return []
        inner = "".join(f"{self.indent}{entry},\n" for entry in self.made).replace(
            "\n" + self.indent * 2, "\n" + self.indent
        )
        return [f"{self.title} = {{", *inner.splitlines(), "}"]

    def _outward(self, text: str) -> list[str]:
        """The lines of a text that was laid out three levels deep, without that indentation."""
        return text.replace("\n" + self.indent * 3, "\n").splitlines()

    def _text(self, node: cst.BaseExpression, metric: Metric) -> str:
        """An operand of a metric as `compute_metrics` says it; what it is computed from is copied there first."""
        inlined = self._entries(node)
        self._need(inlined, metric.call)
        return self._finish(inlined, metric)

    def _entries(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """An expression with `predictions["classes"]` replaced by what that entry of the dict is."""
        inlined = node.visit(self._by_output())
        assert isinstance(inlined, cst.BaseExpression)
        new = inlined.visit(OfOwner(self.owner))
        assert isinstance(new, cst.BaseExpression)
        return new

    def _by_output(self) -> Inliner:
        """What writes entries of dicts as what they are, and the output of the model by its name."""
        inliner = Inliner(self.function, set(), lambda name: True, self.code)
        if not isinstance(self.function.output, cst.Name) and self.known == (self.output_name,):
            inliner.output = (self.code(self.function.output), self.output_name)
        return inliner

    def _need(self, node: cst.CSTNode, place: cst.CSTNode) -> None:
        """Sees to it that every name in an expression has its value in `compute_metrics`."""
        for name in sorted(names_in(node) - {self.owner}):
            if name in (*self.known, *self.outputs):
                self.reads.add(name)
                continue
            names = self.function.body.names
            if name == self.function.parameters.config or name in names.about:
                raise Blocked("TFM106", place, f"`{name}` is used for more than branching or `training=`")
            found = [d for d in self.function.definitions if d.name == name]
            if name in (self.labels, self.features):
                if name not in self.function.unclear and not self.function.is_plainly_given(name):
                    raise Blocked(
                        "TFM503", place, f"`{name}` is assigned together with another name: assign it on its own"
                    )
                self.reads.add(name)
            elif self.is_static(name):
                continue
            elif name in self.function.unclear or not found:
                self._output(name, place)
                continue
            if any(self._is_network(d.value) for d in found):
                self._output(name, place)
                continue
            evaluated = [d for d in found if EVAL in d.modes]
            if found and not evaluated:
                place = self.function.statements[found[0].index].node
                raise Blocked("TFM106", place, f"`{name}` is not assigned in evaluation mode")
            for definition in evaluated:
                if definition.index not in self.copied:
                    self.copied[definition.index] = ""
                    statement = self.function.statements[definition.index]
                    self._need(self._entries(definition.value), place)
                    self.copied[definition.index] = self._statement(statement.node)

    def _output(self, name: str, place: cst.CSTNode) -> None:
        """Makes a tensor of the network an output of the model. Raises Blocked (TFM503)."""
        given = [s for s in self.function.statements if name in names_given((s,))]
        of_model = any(reads_model(s.node, self.imports) for s in given)
        if not given or of_model or any(names_in(s.node) & self.function.label_names for s in given):
            raise Blocked("TFM503", place, f"the metric needs `{name}`, which cannot be computed outside the network")
        self.outputs.add(name)
        self.reads.add(name)

    def _statement(self, node: cst.BaseStatement) -> str:
        """A statement of the model_fn, rewritten, as it stands in `compute_metrics`."""
        inner = node.visit(self._by_output())
        assert isinstance(inner, cst.BaseStatement)
        inner = inner.visit(OfOwner(self.owner))
        assert isinstance(inner, cst.BaseStatement)
        new = self._rewritten(inner, node)
        assert isinstance(new, cst.BaseStatement)
        return self.function.file.module.with_changes(header=[], footer=[], body=[new]).code.strip("\n")

    def _is_network(self, node: cst.BaseExpression) -> bool:
        """Whether an expression makes layers or variables, draws random numbers, or calls what may do so."""
        finder = _NetworkCalls(self.imports)
        walk(node, finder)
        return finder.found

    def free_names(self) -> set[str]:
        """The names that the lines of the model's methods take from the function around them."""
        given = {d.name for d in self.function.definitions if d.index in self.copied}
        lines = [
            *self.made_lines(),
            *(line for text in self.copied.values() for line in text.splitlines()),
            *self.updates,
        ]
        return names_in(cst.parse_module("\n".join(lines) + "\n")) - given - self.reads - {self.title}

    # -- order -----------------------------------------------------------------------------------------------------

    def check_order(self, metric: Metric) -> None:
        """What the metric reads must still have that value at the end, where the model is made. Raises Blocked."""
        operands = [n for n in (metric.labels, metric.predictions, metric.values, metric.weights) if n is not None]
        self._behind(operands, partial(self._check_given, metric=metric), metric.position, whole=True)
        seen, nodes = self._behind([self._entries(node) for node in operands])
        # What Keras gives a metric are the labels and features of the data, not what a block made of them before.
        unclear = sorted(seen & {self.labels, self.features} & self.function.unclear)
        unclear = [name for name in unclear if not self._reads_what_stays(name, nodes)]
        if unclear:
            text = f"`{unclear[0]}`, which the metric reads, is reassigned inside a block: assign it on its own line"
            raise Blocked("TFM503", metric.call, text)

    def _behind(
        self,
        operands: Sequence[cst.BaseExpression],
        check: Callable[[set[str], int], None] = lambda names, after: None,
        position: int = 0,
        whole: bool = False,
    ) -> tuple[set[str], list[cst.CSTNode]]:
        """The names behind some expressions, and the expressions that give them their values: of dicts the entries
        that are read, or the `whole`. `check` is told which names are read, and behind which statement.
        """
        behind = {name for node in operands for name in names_in(node)}
        check(behind, position)
        queue, seen = list(behind), set(behind)
        nodes: list[cst.CSTNode] = list(operands)
        while queue:
            name = queue.pop()
            if name in self.known:
                continue
            for definition in self.function.definitions:
                if definition.name == name and not self._is_network(definition.value):
                    value = self._entries(definition.value) if not whole else definition.value
                    read = names_in(value)
                    nodes.append(value)
                    check(read - {name}, definition.index + 1)
                    queue += read - seen
                    seen |= read
        return seen, nodes

    def _reads_what_stays(self, name: str, nodes: Sequence[cst.CSTNode]) -> bool:
        """Whether expressions read entries of a dict alone, by their keys, and only others are given new values."""
        read = {key for one in nodes for key in keys_read(one, name)}
        new: set[str | None] = set()
        for statement in self.function.statements:
            if name in names_given([statement]):
                small = statement.node.body[0] if isinstance(statement.node, cst.SimpleStatementLine) else None
                is_one = isinstance(small, cst.Assign) and len(small.targets) == 1
                new.add(key_of(small.targets[0].target, name) if isinstance(small, cst.Assign) and is_one else None)
        return None not in read | new and not read & new

    def _check_given(self, names: set[str], after: int, metric: Metric) -> None:
        later = [s for s in self.function.statements[after:] if {TRAIN, EVAL} & s.modes]
        changed = names & names_given(later)
        if changed:
            text = f"`{sorted(changed)[0]}` is reassigned after the metric reads it"
            raise Blocked("TFM503", metric.call, text)

    # -- what expressions are --------------------------------------------------------------------------------------

    def _is_output(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Name) and node.value == self.output_name

    def _output_value(self) -> cst.BaseExpression:
        node = self.function.output
        if not isinstance(node, cst.Name):
            return node
        given = [one for one in bound_by(self.function.node.body) if one.name == node.value]
        return given[0].value or node if len(given) == 1 else node

    def _has_two_axes(self) -> bool:
        """Whether the output is what a layer gives that keeps at least two axes."""
        value = self._output_value()
        if not isinstance(value, cst.Call):
            return False
        function = value.func.func if isinstance(value.func, cst.Call) else value.func
        return self.imports.resolve(function) in _TWO_AXES

    def _is_argmax(self, node: cst.BaseExpression, of: str) -> bool:
        if self._called(node) not in ("tf.argmax", "tf.math.argmax"):
            return False
        assert isinstance(node, cst.Call)
        values = [arg.value for arg in node.args if arg.keyword is None or arg.keyword.value in ("input", "axis")]
        return (
            len(values) == 2
            and isinstance(values[0], cst.Name)
            and values[0].value == of
            and number(values[1]) in (1.0, -1.0)
        )

    def _is_sigmoid(self, node: cst.BaseExpression) -> bool:
        return (
            isinstance(node, cst.Call)
            and self._called(node) in _SIGMOIDS
            and len(node.args) == 1
            and self._is_output(node.args[0].value)
        )

    def _is_probability(self, node: cst.BaseExpression) -> bool:
        return self._called(node) in (*_SIGMOIDS, *_SOFTMAXES)

    def _is_whole(self, node: cst.BaseExpression) -> bool:
        """Whether an expression gives whole numbers, which no cast changes."""
        node = self._followed(node)
        if self._is_truth(node):
            return True
        name = self._called(node)
        if name == "tf.cast":
            assert isinstance(node, cst.Call)
            return len(node.args) == 2 and self.imports.resolve(node.args[1].value) in _WHOLE_TYPES
        return name in _WHOLE

    def _is_truth(self, node: cst.BaseExpression) -> bool:
        """Whether an expression gives zeros and ones, or truth values."""
        node = self._followed(node)
        if isinstance(node, cst.Comparison):
            return True
        name = self._called(node)
        if name is None:
            return False
        assert isinstance(node, cst.Call)
        if name in _TRUTHS:
            return True
        if name in _SAME and node.args:
            return self._is_truth(node.args[0].value)
        if name == "tf.round" and len(node.args) == 1:
            return self._is_probability(self._followed(node.args[0].value))
        return False

    def _followed(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """What a name that is assigned once stands for."""
        seen = 0
        while isinstance(node, cst.Name) and seen < 20:
            value = self.function.define(node.value)
            if value is None:
                break
            node, seen = self._entries(value), seen + 1
        return node

    def _called(self, node: cst.BaseExpression) -> str | None:
        return self.imports.resolve(node.func) or "" if isinstance(node, cst.Call) else None


_SIGMOIDS = ("tf.sigmoid", "tf.nn.sigmoid", "tf.math.sigmoid")
_SOFTMAXES = ("tf.nn.softmax", "tf.math.softmax")
_TWO_AXES = ("tf.layers.dense", "tf.layers.Dense", "tf.keras.layers.Dense", "tf.matmul", "tf.nn.xw_plus_b")
_TRUTHS = (
    *(f"tf.{name}" for name in ("greater", "greater_equal", "less", "less_equal", "equal", "not_equal")),
    *(f"tf.math.{name}" for name in ("greater", "greater_equal", "less", "less_equal", "equal", "not_equal")),
    *("tf.logical_and", "tf.logical_or", "tf.logical_not", "tf.nn.in_top_k", "tf.math.in_top_k"),
)
_SAME = (
    *("tf.cast", "tf.to_float", "tf.to_int32", "tf.to_int64", "tf.identity"),
    *("tf.reshape", "tf.squeeze", "tf.expand_dims"),
)
_WHOLE = (
    *("tf.argmax", "tf.argmin", "tf.math.argmax", "tf.math.argmin", "tf.round", "tf.floor", "tf.ceil", "tf.rint"),
    *("tf.to_int32", "tf.to_int64", "tf.sign", "tf.math.round", "tf.math.floor", "tf.math.ceil"),
)
_WHOLE_TYPES = ("tf.int32", "tf.int64", "tf.uint8", "tf.int8", "tf.int16", "tf.bool")


# What is neither a tensor of the network nor to be computed from its outputs.
_OF_MODEL = ("tf.get_collection", "tf.trainable_variables", "tf.global_variables", "tf.losses.get_", "tf.train.")


def reads_model(node: cst.CSTNode, imports: ImportMap) -> bool:
    """Whether an expression reads what TensorFlow 1 kept of the model in its graph: variables, collected losses."""
    return any((imports.resolve(call.func) or "").startswith(_OF_MODEL) for call in calls_in(node))


class _NetworkCalls(cst.CSTVisitor):
    """Finds calls that cannot stand outside the network: layers, variables, random numbers, functions of the user."""

    _NETWORK = (
        *("tf.layers.", "tf.keras.", "tf.contrib.", "tf.slim.", "tf.feature_column.", "tf.train.", "tf.metrics."),
        *("tf.get_variable", "tf.Variable", "tf.random", "tf.nn.dropout", "tf.placeholder", "tf.py_func"),
        *("tf.get_local_variable", "tf.nn.dynamic_rnn", "tf.nn.rnn_cell.", "tf.nn.static", "tf.nn.bidirectional"),
        *("tf.truncated_normal", "tf.multinomial", "tf.make_template", "tf.assign", "tf.placeholder"),
        *_OF_MODEL,
    )
    _METHODS = frozenset(("get_shape", "as_list", "get", "format", "keys", "items", "values"))
    _PLAIN = frozenset(("dict", "list", "tuple", "len", "int", "float", "str", "bool", "range", "zip", "sorted"))

    def __init__(self, imports: ImportMap) -> None:
        super().__init__()
        self.imports = imports
        self.found = False

    def visit_Call(self, node: cst.Call) -> None:
        name = self.imports.tensorflow(node.func)
        if name is not None:
            self.found = self.found or name.startswith(self._NETWORK)
        elif isinstance(node.func, cst.Attribute):
            self.found = self.found or node.func.attr.value not in self._METHODS
        else:
            self.found = self.found or not (isinstance(node.func, cst.Name) and node.func.value in self._PLAIN)


def keys_read(node: cst.CSTNode, name: str) -> set[str | None]:
    """The keys of a dict that an expression reads (`name["key"]`); None among them where it reads it otherwise."""
    parts = [one for one in of_kinds(node, cst.Subscript) if key_of(one, name) is not None]
    inside = {id(one.value) for one in parts}
    others = [one for one in name_nodes(node) if one.value == name and id(one) not in inside]
    return {key_of(one, name) for one in (*parts, *others)}


def key_of(node: cst.CSTNode, name: str) -> str | None:
    """The key of `name["key"]`; None for anything else."""
    if not isinstance(node, cst.Subscript) or not isinstance(node.value, cst.Name) or node.value.value != name:
        return None
    index = node.slice[0].slice if len(node.slice) == 1 else None
    return string(index.value) if isinstance(index, cst.Index) else None
