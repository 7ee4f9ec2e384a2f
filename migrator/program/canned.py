"""Canned Estimators and heads, written out as the model_fns that they stand for.

`tf.estimator.DNNClassifier(...)` becomes an Estimator with a model_fn in TensorFlow 1 code, and
`head.create_estimator_spec(...)` the lines of an EstimatorSpec, before anything else looks at the file; every rule and
reader then treats them as any other. The text that a user sees is never this one: places of findings are mapped back,
and where the program cannot be carried over, its file stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import libcst as cst

from migrator.findings import Finding, Severity
from migrator.ir.values import Operation
from migrator.names.annotated import parse_module
from migrator.names.bare import bare
from migrator.names.bindings import value_given
from migrator.names.imports import dotted
from migrator.names.symbols import is_new
from migrator.program.added_metrics import Added, added_to, adds_metrics, said_of, with_added_metrics, written_at_top
from migrator.program.calls import (
    attributes_in,
    bind,
    calls_in,
    functions_in,
    is_false,
    is_name,
    is_none,
    is_true,
    number,
    string,
)
from migrator.program.constant_inputs import is_constant, may_have_constant_inputs, pieces_of, with_constant_inputs
from migrator.program.inline_servings import may_make_servings, with_named_servings
from migrator.program.known import number_at, program_of, values_at
from migrator.program.made_before import made_before
from migrator.program.made_by_functions import Folded, fold, without_folded
from migrator.program.made_optimizers import WRAPPERS
from migrator.program.parsed import Blocked, ParsedFile, name_nodes, names_in
from migrator.program.plain import removal, says_nothing, without_what_says_nothing
from migrator.program.relevant import connected
from migrator.program.scopes import bindings, path_to
from migrator.program.settings_in_place import made_at
from migrator.program.spread import Edit, Kept, Written, spread
from migrator.program.tapes import may_hold_tapes, without_tapes
from migrator.query.learn import count_of, size_of_array, uses_of_learn
from migrator.rules import heads
from migrator.rules.canned import CANNED, LEARN, TWO, Canned, default_optimizer, is_only_one, optimizer_named
from migrator.rules.optimizers import is_optimizer
from migrator.walking import of_kinds, walk

_INDENT = "    "
_BLANK = 2  # lines between functions
#: A name for what an Estimator gives its model_fn as `config`, while names of the program are told apart from it.
_CONFIG = "tf_migrate_config"
_MIXED = ("model_dir", "config", "warm_start_from")
# What Estimators of tf.contrib.learn take, and their bridge alone understands.
_LEFT_TO_THE_BRIDGE = (
    "weight_column_name",
    "gradient_clip_norm",
    "enable_centered_bias",
    "_joint_weight",
    "_joint_weights",
    "_joint_linear_weights",
    "feature_engineering_fn",
    "embedding_lr_multipliers",
    "input_layer_min_slice_size",
    "label_keys",
)
_PREDICTION = ("x", "input_fn", "batch_size", "as_iterable")
_PARAMETERS_OF_LEARN = {
    "fit": ("x", "y", "input_fn", "steps", "batch_size", "monitors", "max_steps"),
    "evaluate": (
        *("x", "y", "input_fn", "feed_fn", "batch_size", "steps", "metrics", "name", "checkpoint_path", "hooks"),
        "log_progress",
    ),
    "predict": ("x", "input_fn", "batch_size", "outputs", "as_iterable", "iterate_batches"),
    "predict_classes": _PREDICTION,
    "predict_proba": _PREDICTION,
    "predict_scores": _PREDICTION,
}
_KEYS = {"predict_classes": "classes", "predict_proba": "probabilities", "predict_scores": "scores"}
_PREDICTS = ("predict", *_KEYS)
# What `predict` gives of each example, by the ends of the Estimators' names; others give everything.
_SHOWN = {"Classifier": "classes", "Regressor": "scores"}


def write_out(files: Sequence[ParsedFile], texts: Mapping[Path, str]) -> list[ParsedFile]:
    """The files with their canned Estimators and heads written out, where that can be done.

    `texts` are those of all files, also of those that do without TensorFlow. Nothing is written in a file of which
    something was left out already: it would stand in the old text.
    """
    exported = any(
        word in file.bare for file in files for word in ("export_savedmodel", "export_saved_model", "Exporter")
    )
    made = []
    for file in files:
        others = [bare(text) for path, text in texts.items() if path != file.path] if _may_hold(file) else []
        made.append(_Writer(file, exported, files, others, texts).write() if _may_hold(file) else file)
    return made


def _may_hold(file: ParsedFile) -> bool:
    words = (
        "Classifier",
        "Regressor",
        "contrib.learn",
        "create_estimator_spec",
        "logits_dimension",
        "LinearEst",
        "DNNEst",
        "CombinedEst",
    )
    concerned = any(word in file.bare for word in words) or says_nothing(file.text) or may_hold_tapes(file.text)
    concerned = concerned or adds_metrics(file.text) or may_make_servings(file.text)
    concerned = concerned or may_have_constant_inputs(file.text)
    return concerned and file.is_as_written


if TYPE_CHECKING:
    # An argument of a call that is written: a node that is kept, a text, or pieces of both.
    _Given = cst.BaseExpression | str | tuple[Kept | Written, ...]


@dataclass(frozen=True)
class _Version:
    """Which TensorFlow a file means by `tensorflow`, and whether something in it says so."""

    number: int
    sure: bool


def _version_of(file: ParsedFile) -> _Version:
    """As `verify` runs the file: as TensorFlow 1, unless it was plainly written for TensorFlow 2."""
    symbols = [
        name
        for node in attributes_in(file.module)
        if (name := file.imports.tensorflow(node)) is not None and "compat.v1" not in _spelling(file, node)
    ]
    imported = [dotted(one.module) or "" for one in of_kinds(file.module, cst.ImportFrom)]
    old = any(is_only_one(name) for name in symbols) or any(one.startswith("tensorflow.contrib") for one in imported)
    new = any(is_new(name) for name in symbols)
    old = old or ".make_one_shot_iterator(" in file.bare
    if any((origin + ".").startswith("tensorflow.compat.v1.") for origin in file.imports.names.values()):
        return _Version(1 if old and not new else 2, True)
    new = new or (".numpy()" in file.bare and not old)
    return _Version(1 if old or not new else 2, old or new)


def _spelling(file: ParsedFile, node: cst.BaseExpression) -> str:
    """A dotted name with what its first part was imported from."""
    head, _, rest = (dotted(node) or "").partition(".")
    return f"{file.imports.names.get(head, head)}.{rest}"


@dataclass
class _Function:
    """A model_fn that is being written: its name, its text after the def line, and what it is given by name."""

    text: str
    given: tuple[tuple[str, cst.BaseExpression], ...]


@dataclass(frozen=True)
class _Metrics:
    """The metrics that are added to a canned Estimator: the name of their function, and its lines at the top."""

    added: Added
    function: str
    pieces: tuple[Kept | Written, ...]

    def called(self, features: str, labels: str, predictions: str) -> str:
        """The call in the model_fn."""
        values = {"features": features, "labels": labels, "predictions": predictions}
        return f"{self.function}({', '.join(values[one] for one in self.added.takes)})"


@dataclass
class _Writer:
    """Writes out what stands in a file; `exported` says that the program exports its models, to be served.

    `files` are those that it may import, `others` the texts of the other files, without what is no code, `texts` those
    of all files.
    """

    file: ParsedFile
    exported: bool
    files: Sequence[ParsedFile] = ()
    others: Sequence[str] = ()
    texts: Mapping[Path, str] = field(default_factory=dict)
    edits: list[Edit] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    said: list[Finding] = field(default_factory=list)
    refused: dict[tuple[int, int], tuple[str, str]] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    folded: list[Folded] = field(default_factory=list)
    arrays: list[cst.Name] = field(default_factory=list)

    def write(self) -> ParsedFile:
        self.taken = set(self.file.names)
        finder = _Calls(self.file)
        walk(self.file.module, finder)
        self.edits, self.said = without_what_says_nothing(self.file)
        self.starts: set[int] = set()  # where functions were written
        self.edits += without_tapes(self.file, self._tensorflow)
        added, said = with_added_metrics(self.file)
        self.edits += added
        self.said += said
        self.edits += with_named_servings(self.file, self.taken)
        self.edits += with_constant_inputs(self.file, self._tensorflow)
        first = len(self.edits)
        for call, name in finder.canned:
            self._try(call, lambda call=call, name=name: self._canned(call, name))  # type: ignore[misc]
        self._of_learn([call for call, name in finder.canned if name.startswith(LEARN)], finder.learn)
        if len(self.edits) > first:
            self._tell_apart([call for call, _ in finder.canned])
        for call, line, function in finder.specs:
            self._try(call, lambda c=call, s=line, f=function: self._spec(c, s, f), line)  # type: ignore[misc]
        for title, maker, function in finder.heads:
            self._only_a_size(title, maker, function)
        self.edits += without_folded(self.file, self.folded, lambda name: any(name in text for text in self.others))
        if not self.edits:
            return replace(self.file, refused=self.refused)
        made = spread(self.file.text, self.edits)
        module = parse_module(made.text)
        return replace(
            self.file, module=module, spread=made, said=tuple(dict.fromkeys(self.said)), refused=self.refused
        )

    def _tell_apart(self, calls: Sequence[cst.Call]) -> None:
        """A script that gives one name to several canned Estimators, one after the other: each gets its own."""
        module = self.file.module
        made: dict[str, list[cst.Name]] = {}
        for statement in module.body:
            small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
            if isinstance(small, cst.Assign) and len(small.targets) == 1 and any(small.value is c for c in calls):
                target = small.targets[0].target
                if isinstance(target, cst.Name):
                    made.setdefault(target.value, []).append(target)
        for name, targets in made.items():
            bound = [node for known, node in bindings(module) if known == name and isinstance(node, cst.Name)]
            bound = [node for node in bound if not self._is_gone(node)]
            uses = [n for n in name_nodes(module) if n.value == name]
            inside = any(isinstance(n, cst.FunctionDef) for use in uses for n in path_to(module, use))
            if len(targets) < 2 or len(bound) != len(targets) or inside:
                continue
            places = [self.file.range(target)[0] for target in targets]
            names = [name, *(_free(name, self.taken) for _ in targets[1:])]
            for use in uses:
                start, end = self.file.range(use)
                number = sum(place <= start for place in places) - 1
                if number > 0 and not self._is_gone(use):
                    self.edits.append(Edit(start, end, (Written(names[number], start),)))

    def _is_gone(self, node: cst.CSTNode) -> bool:
        start, _ = self.file.range(node)
        return any(edit.start <= start < edit.end for edit in self.edits)

    def _try(self, call: cst.Call, step: Callable[[], None], line: cst.SimpleStatementLine | None = None) -> None:
        known = len(self.edits), dict(self.functions), len(self.folded)
        try:
            step()
        except Blocked as problem:
            del self.edits[known[0] :]
            self.functions = known[1]
            del self.folded[known[2] :]
            for node in (call, line):
                if node is not None:
                    self.refused[self.file.position(node)] = problem.code, problem.message

    # -- canned Estimators -----------------------------------------------------------------------------------------

    def _canned(self, call: cst.Call, name: str) -> None:
        canned = CANNED[name]
        around = path_to(self.file.module, call)
        bound = bind(call, canned.parameters(1), name, "TFM190")
        version = self._version(call, name, bound, canned)
        bound = bind(call, canned.parameters(version), name, "TFM190")
        if version == 0:
            bound = self._plain_arguments_of_learn(call, bound, canned)
        define = self._definitions(around)
        head = self._head_of(canned, bound, version, call, define)
        tf = self._tensorflow(call)
        added = added_to(self.file, call, self._is_said_elsewhere) if version else None
        metrics = self._metrics_function(added) if added is not None else None
        text, given = self._model(canned, bound, head, tf, version, around, define, call, metrics)
        reads_config = _CONFIG in text
        if reads_config and any(parameter == "config" for parameter, _ in given):
            raise Blocked("TFM190", call, "`config` of this Estimator has the name of something else: rename it")
        text = text.replace(_CONFIG, "config")
        key = f"{text}|{[parameter for parameter, _ in given]}"
        function = self.functions.get(key)
        if function is None:
            function = _free(canned.function, self.taken)
            self.functions[key] = function
            extra = "".join(f", {parameter}" for parameter, _ in given) + (", config" if reads_config else "")
            doc = f'    """What the canned {canned.title} was."""\n'
            whole = self._indented(f"def {function}(features, labels, mode{extra}):\n{doc}{text}")
            anchor = self.file.range(call)[0]
            start, before, behind = self._top(around)
            own = (Written(before, anchor), *metrics.pieces) if metrics is not None and metrics.pieces else ()
            before = "\n" * _BLANK if own else before
            self.edits.append(Edit(start, start, (*own, Written(f"{before}{whole}{behind}", anchor))))
        if added is not None:
            self.edits += added.edits
            self.said.append(said_of(self.file, added.call))
        self._estimator(call, tf, function, given, bound, reads_config)
        message = "the constant predictions `all_class_ids` and `all_classes` are dropped"
        if version and head.kind != "numbers" and ".predict(" in self.file.bare and not self.exported:
            self._say("TFM193", call, message)
        if head.weights is not None and ".predict(" in self.file.bare:
            self._say(
                "TFM195", call, f"the features for predictions must include {head.weights} as well, with any values"
            )

    def _is_said_elsewhere(self, name: str) -> bool:
        return any(name in text for text in self.others)

    def _metrics_function(self, added: Added) -> _Metrics | None:
        """How the model_fn calls the function of metrics that are added, which may have to be written before it."""
        if added.is_at_top:
            assert isinstance(added.function, cst.FunctionDef)
            return _Metrics(added, added.function.name.value, ())
        name = added.function.name.value if isinstance(added.function, cst.FunctionDef) else "metric_fn"
        others = [one for one in functions_in(self.file.module) if one.name.value == name]
        if len(others) != 1 or name in self.file.names_at_top or isinstance(added.function, cst.Lambda):
            name = _free(name, self.taken)
        pieces = written_at_top(self.file, added, name)
        if pieces is None:
            raise Blocked("TFM103", added.call, "the function of these metrics cannot be resolved")
        return _Metrics(added, name, pieces)

    def _indented(self, text: str) -> str:
        """Lines that are indented by four spaces, as the file has it."""
        indent = self.file.module.default_indent
        found = []
        for line in text.split("\n"):
            left = line.lstrip(" ")
            found.append(indent * ((len(line) - len(left)) // len(_INDENT)) + left)
        return "\n".join(found)

    def _say(self, code: str, node: cst.CSTNode, message: str) -> None:
        self.said.append(self.file.finding(code, Severity.REVIEW, node, message))

    def _version(self, call: cst.Call, name: str, bound: Mapping[str, cst.BaseExpression], canned: Canned) -> int:
        if canned.only is not None:
            return canned.only
        if "compat.v1" in _spelling(self.file, call.func):
            return 1
        version = _version_of(self.file)
        explicit = all(key in bound for key in (*canned.optimizers, "head" if "head" in bound else "loss_reduction"))
        if not version.sure and not explicit:
            message = (
                f"`{canned.title}` is taken for TensorFlow 1's, whose loss is the sum over the batch; "
                "TensorFlow 2's takes the mean: if the program ran on that, pass its `loss_reduction` "
                "and optimizer explicitly"
            )
            self._say("TFM191", call, message)
        return version.number

    def _definitions(self, around: Sequence[cst.CSTNode]) -> Callable[[str], cst.BaseExpression | None]:
        """What a name stands for at a place: the value of its only assignment."""
        functions = [n for n in around if isinstance(n, cst.FunctionDef)]

        def define(name: str) -> cst.BaseExpression | None:
            for function in reversed(functions):
                found = [node for bound, node in bindings(function) if bound == name and node is not function]
                if found:
                    return value_given(function, found[0]) if len(found) == 1 else None
            return self.file.constants.get(name)

        return define

    def _count(self, node: cst.BaseExpression) -> float | None:
        return number_at(self.file, node, self.files)

    def _head_of(
        self,
        canned: Canned,
        bound: Mapping[str, cst.BaseExpression],
        version: int,
        call: cst.Call,
        define: Callable[[str], cst.BaseExpression | None],
    ) -> heads.Head:
        if canned.task != "Estimator":
            return heads.head_of_task(canned.task, bound, version, call, self.file.code, self._count)
        node = bound.get("head")
        if isinstance(node, cst.Name):
            node = define(node.value)
        name = heads.head_name(self.file.imports.resolve(node.func)) if isinstance(node, cst.Call) else None
        if name is None or not isinstance(node, cst.Call):
            raise Blocked("TFM190", call, "this Estimator has a head unknown to tf-migrate")
        return heads.read_head(node, name, self.file.code, self._count)

    def _tensorflow(self, call: cst.Call) -> str:
        """How TensorFlow 1 is spelled in this file."""
        names = self.file.imports.names
        here = (dotted(call.func) or "").partition(".")[0]
        for name in (here, *names):
            if names.get(name) in ("tensorflow.compat.v1", "tensorflow_core.compat.v1"):
                return name
        for name in (here, *names):
            if names.get(name) in ("tensorflow", "tf"):  # `tf = tf.compat.v1` is of the second kind
                return f"{name}.compat.v1" if "compat.v1" in self.file.bare else name
        raise Blocked("TFM190", call, "TensorFlow is not imported as a module: write `import tensorflow as tf`")

    def _top(self, around: Sequence[cst.CSTNode]) -> tuple[int, str, str]:
        """Where a function goes that the code around it calls, and the blank lines before and behind it.

        It stands before the top-level statement of that code, its comments and the blank lines above it.
        """
        statement = around[1]
        lines = self.file.text.splitlines(keepends=True)
        nodes = [statement, *getattr(statement, "decorators", ())]
        row = min(self.file.position(node)[0] for node in nodes) - 1
        row -= len(getattr(statement, "leading_lines", ()))
        start = sum(len(line) for line in lines[:row])
        above = next((at for at, line in enumerate(lines[row:]) if line.strip()), 0)
        before = self.file.module.body[0] is not statement and (above >= _BLANK or start not in self.starts)
        self.starts.add(start)
        return start, "\n" * _BLANK * before, "\n" * (_BLANK - min(above, _BLANK))

    def _estimator(
        self,
        call: cst.Call,
        tf: str,
        function: str,
        given: Sequence[tuple[str, cst.BaseExpression]],
        bound: Mapping[str, cst.BaseExpression],
        reads_config: bool,
    ) -> None:
        """The call of the canned Estimator becomes one of Estimator."""
        start, end = self.file.range(call)
        pieces: list[Kept | Written] = [Written(f"{tf}.estimator.Estimator(", start)]
        more = ", config" if reads_config else ""
        read = {name for _, value in given for name in names_in(value)}
        features, labels = (_free(name, read) for name in ("features", "labels"))
        lambda_ = f"lambda {features}, {labels}, mode{more}: {function}({features}, {labels}, mode"
        pieces.append(Written(f"model_fn={lambda_}" if given else f"model_fn={function}", start))
        for parameter, value in given:
            pieces += [Written(f", {parameter}=", start), Kept(*self.file.range(value))]
        if given:
            pieces.append(Written(", config=config)" if reads_config else ")", start))
        for key in _MIXED:
            if key in bound:
                pieces += [Written(f", {key}=", start), Kept(*self.file.range(bound[key]))]
        self.edits.append(Edit(start, end, (*pieces, Written(")", start))))

    # -- the model_fn ----------------------------------------------------------------------------------------------

    def _model(
        self,
        canned: Canned,
        bound: Mapping[str, cst.BaseExpression],
        head: heads.Head,
        tf: str,
        version: int,
        around: Sequence[cst.CSTNode],
        define: Callable[[str], cst.BaseExpression | None],
        call: cst.Call,
        metrics: _Metrics | None,
    ) -> tuple[str, list[tuple[str, cst.BaseExpression]]]:
        """The body of the model_fn, and the parameters that it needs beside features, labels and mode."""
        local = self._local(around)
        for name in sorted(names_in(cst.parse_expression(head.size)) & local):
            # The function stands at the top, where this name means nothing.
            if head.count is None:
                raise Blocked("TFM190", call, f"the number of logits depends on `{name}`: pass a number")
            head = replace(head, size=str(head.count))
        given: list[tuple[str, cst.BaseExpression]] = []
        used: set[str] = set()
        own_values = _OwnValues(given, local | self.file.names_at_top)

        def take(parameter: str, value: cst.BaseExpression) -> str:
            given.append((parameter, value))
            return parameter

        def inline(node: cst.BaseExpression) -> str:
            """The text of an expression; what it reads from the function around becomes a parameter."""
            used.update(names_in(node))
            if "self" in local:
                changed = node.visit(own_values)
                assert isinstance(changed, cst.BaseExpression)
                node = changed
            for name in sorted(names_in(node) & local):
                if all(name != known for known, _ in given):
                    given.append((name, next(n for n in name_nodes(node) if n.value == name)))
            return self.file.code(node)

        def columns(key: str) -> str:
            node = bound.get(key)
            if node is None or is_none(node):
                raise Blocked("TFM190", call, f"`{canned.title}` has no {key.replace('_', ' ')}")
            return take(key, node)

        array = self._array(bound, tf) if version == 0 else None

        both = canned.network == "combined"
        lines: list[str] = []
        deep = "dnn_" if both else ""
        if canned.network != "linear":
            made = array or f"{tf}.feature_column.input_layer(features, {columns(f'{deep}feature_columns')})"
            lines += self._hidden(bound, deep, made, tf, take, inline, call)
            lines.append(f"{deep}logits = {tf}.layers.dense(net, {head.size})")
        if canned.network == "linear" and array is not None:
            zeros = f"kernel_initializer={tf}.zeros_initializer()"
            lines += [f"net = {array}", f"logits = {tf}.layers.dense(net, {head.size}, {zeros})"]
        elif canned.network != "dnn":
            wide = "linear_" if both else ""
            combiner = string(bound.get(f"{wide}sparse_combiner")) or "sum"
            extra = f', sparse_combiner="{combiner}"' if combiner != "sum" else ""
            units = f", units={head.size}" if head.size != "1" else ""
            of_columns = f"features, {columns(f'{wide}feature_columns')}{units}{extra}"
            lines.append(f"{wide}logits = {tf}.feature_column.linear_model({of_columns})")
        partitioner = bound.get("partitioner", bound.get("input_layer_partitioner"))
        if partitioner is not None and not is_none(partitioner):
            known = define(partitioner.value) if isinstance(partitioner, cst.Name) else None
            if known is not None and isinstance(partitioner, cst.Name):
                self._without_line(partitioner.value, known)
            asked = (known or partitioner).visit(_ServersOf(bound.get("config")))
            assert isinstance(asked, cst.BaseExpression)
            lines.insert(0, f"{tf}.get_variable_scope().set_partitioner({inline(asked)})")
            message = "the partitioner of the input layer now applies to all variables"
            self.said.append(self.file.finding("TFM891", Severity.REVIEW, partitioner, message))
        if both:
            lines.append("logits = dnn_logits + linear_logits")
            count = self._count_of_columns(bound, "linear_feature_columns")
            parts = [
                self._optimizer(bound.get(f"{key}_optimizer"), part, tf, version, define, inline, call, count)
                for key, part in (("dnn", "deep"), ("linear", "wide"))
            ]
            optimizer = f"{tf}.{TWO}({', '.join(parts)})"
            if ".keras." in parts[1] and "global_step(" in parts[1]:
                message = (
                    "the deep part and the linear part, whose learning rate reads the global step, update "
                    "it in any order"
                )
                self._say("TFM425", call, message)
        else:
            count = 1 if array is not None else self._count_of_columns(bound, "feature_columns")
            optimizer = self._optimizer(
                bound.get("optimizer"), canned.network, tf, version, define, inline, call, count
            )

        def training(loss: str) -> list[str]:
            return [f"optimizer = {optimizer}", f"optimizer.minimize({loss}, {tf}.train.get_global_step())"]

        own = {"features", "labels", "mode", "logits", "net", "units", "optimizer", "dnn_logits", "linear_logits"}
        clash = sorted(used & own)
        if clash:
            raise Blocked("TFM190", call, f"`{clash[0]}` of this Estimator has the name of something else: rename it")
        taken = {name for name, _ in given} | own | used
        names = heads.Names(tf, "features", "labels", "mode", "logits", lambda name: _free(name, taken))
        normalized = not is_false(bound.get("batch_norm")) and "batch_norm" in bound
        added = None if metrics is None else heads.Added(metrics.called, metrics.added.keys)
        lines += heads.spec_lines(head, names, training, normalized, self.exported, added)
        return "".join(f"{_INDENT}{line}\n" for line in lines), given

    def _without_line(self, name: str, value: cst.BaseExpression) -> None:
        """Takes the line `name = value` out, where the canned Estimator was the only one to read the name."""
        module = self.file.module
        path = path_to(module, value)
        line = path[-3] if len(path) > 3 else None
        if len([n for n in name_nodes(module) if n.value == name]) != 2 or any(name in text for text in self.others):
            return
        if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 and isinstance(line.body[0], cst.Assign):
            block = path[-4]
            alone = isinstance(block, cst.IndentedBlock) and len(block.body) == 1
            self.edits.append(removal(self.file, line, keeps_block=alone))

    def _hidden(
        self,
        bound: Mapping[str, cst.BaseExpression],
        prefix: str,
        made: str,
        tf: str,
        take: Callable[[str, cst.BaseExpression], str],
        inline: Callable[[cst.BaseExpression], str],
        call: cst.Call,
    ) -> list[str]:
        units = bound.get(f"{prefix}hidden_units")
        if units is None:
            raise Blocked("TFM190", call, "this Estimator has no hidden units")
        sizes = [number(e.value) for e in units.elements] if isinstance(units, (cst.List, cst.Tuple)) else [None]
        literal = self.file.code(units) if None not in sizes else take(f"{prefix}hidden_units", units)
        activation = bound.get(f"{prefix}activation_fn")
        function = f"{tf}.nn.relu" if activation is None else inline(activation)
        lines = [
            f"net = {made}",
            f"for units in {literal}:",
            f"    net = {tf}.layers.dense(net, units, activation={function})",
        ]
        training = f"training=mode == {tf}.estimator.ModeKeys.TRAIN"
        dropout = bound.get(f"{prefix}dropout")
        if dropout is not None and not is_none(dropout):
            lines.append(f"    net = {tf}.layers.dropout(net, rate={inline(dropout)}, {training})")
        normalized = bound.get("batch_norm")
        if normalized is not None and not is_false(normalized):
            if not is_true(normalized):
                raise Blocked("TFM190", normalized, "`batch_norm` must be a literal True or False")
            lines.append(f"    net = {tf}.layers.batch_normalization(net, momentum=0.999, {training})")
        return lines

    def _optimizer(
        self,
        node: cst.BaseExpression | None,
        part: str,
        tf: str,
        version: int,
        define: Callable[[str], cst.BaseExpression | None],
        inline: Callable[[cst.BaseExpression], str],
        call: cst.Call,
        columns: int | str = 1,
    ) -> str:
        """The expression that makes an optimizer; `columns` is the number of columns, or an expression for it."""
        if node is None or (version == 0 and is_none(node)):
            return default_optimizer(part, version, tf, columns)
        if string(node) is not None:
            made = optimizer_named(str(string(node)), part, version, tf, columns)
            if made is None:
                raise Blocked("TFM190", node, "canned Estimators have no optimizer of this name")
            return made
        if is_none(node):
            raise Blocked(
                "TFM190",
                node,
                "`optimizer=None` derives a learning rate from the number of columns: pass an optimizer",
            )
        if isinstance(node, cst.Name):
            value = self._made_before(node, call)
            if value is None and all(known != node.value for known, _ in self._bound_around(call)):
                value = define(node.value)
                if value is not None:
                    self._remove(node, call)
            if value is None:
                raise Blocked(
                    "TFM190", node, f"`{node.value}` cannot be resolved to the call that creates an optimizer"
                )
            node = value
        folded = fold(self.file, node) if isinstance(node, cst.Call) else None
        if folded is None and isinstance(node, cst.Call):
            optimizer = made_at(self.file, node, _makes_optimizers)
            function = self.file.functions.get(node.func.value) if isinstance(node.func, cst.Name) else None
            if optimizer is not None and function is not None:
                folded = Folded(node, function, optimizer, None)
        if folded is not None:
            self.folded += [] if any(one.call is node for one in self.folded) else [folded]
            node = folded.value
        if isinstance(node, cst.Lambda) and not node.params.params:
            node = node.body
        name = self.file.imports.resolve(node.func) if isinstance(node, cst.Call) else None
        if name is None and isinstance(node, cst.Call):
            name = self._called(node)
            for one in name_nodes(node.func) if name is not None else ():
                table = define(one.value)
                if isinstance(table, cst.Dict):
                    self._without_line(one.value, table)
            if name is not None:
                node = node.with_changes(func=cst.parse_expression(f"{tf}.{name.partition('.')[2]}"))
        if name is None:
            raise Blocked("TFM190", node, "the optimizer of a canned Estimator must be created by a call in this place")
        if any(isinstance(n, cst.Name) and n.value == "lambda" for n in name_nodes(node)):
            raise Blocked("TFM190", node, "this optimizer cannot be resolved")
        return inline(node if folded is None else _on_one_line(node))

    def _called(self, call: cst.Call) -> str | None:
        """The class of optimizers that a call always makes an object of, however it names the class."""
        program = program_of(self.file)
        values = values_at(program, call) if program.is_complete else []
        made = values[0] if len(values) == 1 else None
        own = isinstance(made, Operation) and made.site is not None and made.site.node is call
        written = all(not arg.star for arg in call.args) and len(call.args) == (
            len(made.given) if isinstance(made, Operation) else -1
        )
        return made.symbol if own and written and isinstance(made, Operation) and is_optimizer(made.symbol) else None

    def _made_before(self, name: cst.Name, call: cst.Call) -> cst.BaseExpression | None:
        """What a name stands for that only this call reads; the lines that made it go."""
        made = made_before(self.file, name, call, self._is_of_optimizers, self._is_lambda)
        if made is None:
            return None
        stem = self.file.path.parent.name if self.file.path.stem == "__init__" else self.file.path.stem
        inside = any(isinstance(one, cst.FunctionDef) for one in path_to(self.file.module, made.lines[0]))
        if not inside and any(name.value in text and stem in text for text in self.others):
            return None  # a file that may import the name
        for line in made.lines:
            self._remove_statement(line)
        return made.value

    def _bound_around(self, call: cst.Call) -> list[tuple[str, cst.CSTNode]]:
        """What the innermost code around a call binds: that of its function, or the script's."""
        path = path_to(self.file.module, call)
        return bindings(next((one for one in reversed(path) if isinstance(one, cst.FunctionDef)), self.file.module))

    def _is_lambda(self, node: cst.BaseExpression) -> bool:
        """Whether a value makes an optimizer for each part of an Estimator: one in two would count its steps twice."""
        folded = fold(self.file, node) if isinstance(node, cst.Call) else None
        return isinstance(node if folded is None else folded.value, cst.Lambda)

    def _is_of_optimizers(self, node: cst.BaseExpression) -> bool:
        name = self.file.imports.resolve(node.func) if isinstance(node, cst.Call) else None
        return is_optimizer(name) or name in WRAPPERS

    def _remove(self, name: cst.Name, call: cst.Call) -> None:
        """The line that gives a name its value, which only the canned Estimator reads."""
        uses = [n for n in name_nodes(self.file.module) if n.value == name.value]
        if len(uses) != 2:
            raise Blocked("TFM190", name, f"`{name.value}` is used by more than this Estimator: create one for each")
        for node in path_to(self.file.module, uses[0]):
            if isinstance(node, cst.SimpleStatementLine):
                if len(node.body) != 1:
                    break
                start, end = self.file.range(node)
                text = self.file.text
                start = text.rfind("\n", 0, start) + 1
                end = text.find("\n", end) + 1 or len(text)
                self.edits.append(Edit(start, end, ()))
                return
        raise Blocked("TFM190", name, f"assign `{name.value}` on its own line")

    def _local(self, around: Sequence[cst.CSTNode]) -> set[str]:
        """The names of the functions around a place; `tf.estimator.train_and_evaluate(...)` gives `tf` no value."""
        functions = [n for n in around if isinstance(n, cst.FunctionDef)]
        return {
            name
            for function in functions
            for name, node in bindings(function)
            if node is not function and not isinstance(node, (cst.Attribute, cst.Subscript))
        }

    # -- tf.contrib.learn ------------------------------------------------------------------------------------------

    def _plain_arguments_of_learn(
        self, call: cst.Call, bound: dict[str, cst.BaseExpression], canned: Canned
    ) -> dict[str, cst.BaseExpression]:
        """The arguments under the names that tf.estimator gives them. Raises Blocked for what only the bridge does."""
        for key in _LEFT_TO_THE_BRIDGE:
            if key in bound and not is_none(bound[key]) and not is_false(bound[key]):
                raise Blocked("TFM190", bound[key], f"`{key}` of tf.contrib.learn Estimators is unsupported")
        if canned.network == "combined" and not is_true(bound.get("fix_global_step_increment_bug")):
            message = "every step counts twice without `fix_global_step_increment_bug`: the training would be longer"
            raise Blocked("TFM190", call, message)
        if self.exported:
            raise Blocked("TFM190", call, "exports of tf.contrib.learn Estimators are unsupported")
        return bound

    def _array(self, bound: Mapping[str, cst.BaseExpression], tf: str) -> str | None:
        """The input of a network whose features are one array without names; None where its columns have names."""
        node = bound.get("feature_columns")
        program = program_of(self.file)
        sizes = {size_of_array(program.evaluator, value) for value in values_at(program, node)}
        size = sizes.pop() if len(sizes) == 1 else None
        if node is None or size is None:
            return None
        if isinstance(node, cst.Name):
            self.arrays.append(node)
        numbers = f"{tf}.cast(features, {tf}.float32)"
        return f"{tf}.layers.flatten({numbers})" if size < 2 else numbers

    def _count_of_columns(self, bound: Mapping[str, cst.BaseExpression], key: str) -> int | str:
        """How many columns an Estimator has, or an expression for that in its model_fn."""
        node = bound.get(key)
        program = program_of(self.file)
        counts = {count_of(program.evaluator, value) for value in values_at(program, node)}
        count = counts.pop() if len(counts) == 1 else None
        return f"len({key})" if count is None else count

    def _of_learn(self, canned: Sequence[cst.Call], others: Sequence[tuple[cst.Call, str]]) -> None:
        """What is done with Estimators of tf.contrib.learn is said as with those of tf.estimator, all or nothing."""
        made = [*canned, *(call for call, name in others if name.endswith(".Estimator"))]
        if not made:
            return
        known = len(self.edits)
        try:
            if any(self.file.position(call) in self.refused for call in made):
                raise Blocked("TFM190", made[0], "a second tf.contrib.learn Estimator in this file is unsupported")
            for call, name in others:
                self._called_otherwise(call, name)
            self._uses_of_learn(made)
            self._without_columns()
        except Blocked as problem:
            del self.edits[known:]
            self._without_what_was_written(canned)
            for call in made:
                self.refused.setdefault(self.file.position(call), (problem.code, problem.message))

    def _without_what_was_written(self, calls: Sequence[cst.Call]) -> None:
        """Takes back the Estimators that were written out; nothing calls their functions then."""
        places = {self.file.range(call)[0] for call in calls}

        def is_of_these(edit: Edit) -> bool:
            return any(isinstance(piece, Written) and piece.anchor in places for piece in edit.pieces)

        self.edits[:] = [edit for edit in self.edits if not is_of_these(edit)]

    def _called_otherwise(self, call: cst.Call, name: str) -> None:
        """`learn.Estimator(...)` and `ModelFnOps(...)` become those of tf.estimator."""
        tf = self._tensorflow(call)
        if name.endswith(".Estimator"):
            bound = bind(call, ("model_fn", "model_dir", "config", "params", "feature_engineering_fn"), name, "TFM190")
            if not is_none(bound.pop("feature_engineering_fn", None)):
                raise Blocked("TFM190", call, "`feature_engineering_fn` is unsupported")
            if self.exported:
                raise Blocked("TFM190", call, "exports of tf.contrib.learn Estimators are unsupported")
            self._call_instead(call, f"{tf}.estimator.Estimator", [(key, bound[key]) for key in bound])
            return
        parameters = ("mode", "predictions", "loss", "train_op", "eval_metric_ops", "output_alternatives")
        bound = bind(call, parameters, name, "TFM190")
        if not is_none(bound.pop("output_alternatives", None)):
            raise Blocked("TFM190", call, "`output_alternatives` of ModelFnOps are unsupported")
        self._call_instead(call, f"{tf}.estimator.EstimatorSpec", [(key, bound[key]) for key in bound])

    def _call_instead(self, call: cst.Call, callee: str, given: Sequence[tuple[str, _Given]]) -> None:
        """Another call in the place of one: its arguments by name, kept or written."""
        start, end = self.file.range(call)
        pieces: list[Kept | Written] = [Written(f"{callee}(", start)]
        for key, value in given:
            pieces.append(Written(f"{', ' * (len(pieces) > 1)}{key}=", start))
            if isinstance(value, tuple):
                pieces += value
            else:
                pieces.append(Written(value, start) if isinstance(value, str) else Kept(*self.file.range(value)))
        self.edits.append(Edit(start, end, (*pieces, Written(")", start))))

    def _uses_of_learn(self, made: Sequence[cst.Call]) -> None:
        """`fit`, `evaluate` and the ways to predict, on arrays or input functions."""
        near = connected(self.texts, {self.file.path}) - {self.file.path}
        if any(f".{method}(" in bare(self.texts[path]) for path in near for method in (*_PREDICTS, "fit")):
            raise Blocked("TFM190", made[0], "another file may use this tf.contrib.learn Estimator")
        uses = uses_of_learn(program_of(self.file))
        for call in calls_in(self.file.module):
            method = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
            if method not in ("fit", "evaluate", *_PREDICTS, "partial_fit"):
                continue
            use = uses.get(call)
            if use is None or (use.unclear and method in ("fit", *_PREDICTS)) or (use.symbols and use.unclear):
                raise Blocked("TFM190", call, f"cannot tell whose `{method}` this is")
            if use.symbols:
                self._use_of_learn(call, method, use.symbols)

    def _use_of_learn(self, call: cst.Call, method: str, symbols: Collection[str]) -> None:
        parameters = _PARAMETERS_OF_LEARN.get(method)
        if parameters is None:
            raise Blocked("TFM190", call, f"`{method}` of a tf.contrib.learn Estimator is unsupported")
        bound = bind(call, parameters, method, "TFM190")
        for key in ("monitors", "metrics", "feed_fn", "outputs", "iterate_batches"):
            if not is_none(bound.get(key)) and not is_false(bound.get(key)):
                raise Blocked("TFM190", bound[key], f"`{key}` of `{method}` is unsupported")
        if "as_iterable" in bound and not is_true(bound["as_iterable"]):
            raise Blocked("TFM190", bound["as_iterable"], "predictions that are not an iterable are unsupported")
        given: list[tuple[str, _Given]] = []
        if is_none(bound.get("input_fn")):
            if is_none(bound.get("x")):
                raise Blocked("TFM190", call, f"`{method}` has neither an input_fn nor arrays")
            given.append(("input_fn", self._rows(call, method, bound)))
        else:
            given.append(("input_fn", self._input_of_learn(call, method, bound)))
        for key in ("steps", "max_steps", "name", "checkpoint_path", "hooks"):
            if not is_none(bound.get(key)):
                given.append((key, bound[key]))
        assert isinstance(call.func, cst.Attribute)
        owner = self.file.code(call.func.value)
        name = {"fit": "train", "evaluate": "evaluate"}.get(method, "predict")
        self._call_instead(call, f"{owner}.{name}", given)
        shown = self._key(call, method, symbols)
        if shown is not None:
            one = _free("one", self.taken)
            *_, edit = self.edits
            alone = isinstance(self.file.parents.get(call), cst.Arg) and len(self._around(call).args) == 1
            first, last = ("", "") if alone else ("(", ")")
            before = Written(f'{first}{one}["{shown}"] for {one} in ', edit.start)
            self.edits[-1] = replace(edit, pieces=(before, *edit.pieces, Written(last, edit.start)))

    def _around(self, call: cst.Call) -> cst.Call:
        """The call that another one is an argument of."""
        return next(n for n in reversed(path_to(self.file.module, call)) if isinstance(n, cst.Call) and n is not call)

    def _key(self, call: cst.Call, method: str, symbols: Collection[str]) -> str | None:
        """The prediction that a method gives of each example; None where it gives all, or is no prediction."""
        if method in _KEYS:
            return _KEYS[method]
        keys = {_SHOWN.get(next(end for end in (*_SHOWN, "Estimator") if name.endswith(end))) for name in symbols}
        if method == "predict" and len(keys) == 1:
            return keys.pop()
        if method == "predict":
            raise Blocked("TFM190", call, "cannot tell whether this predicts classes or numbers")
        return None

    def _input_of_learn(self, call: cst.Call, method: str, bound: Mapping[str, cst.BaseExpression]) -> _Given:
        """An input function that is given; one of constants is one batch of predictions, else it repeats."""
        node = bound["input_fn"]
        if not is_constant(self.file, node):
            return node
        ends = any(not is_none(bound.get(key)) for key in ("steps", "max_steps"))
        if method in ("fit", "evaluate") and not ends:
            raise Blocked("TFM190", call, f"the data of this `{method}` are endless: pass `steps`")
        return pieces_of(self.file, node, self._tensorflow(call), repeats=method in ("fit", "evaluate"))

    def _rows(self, call: cst.Call, method: str, bound: Mapping[str, cst.BaseExpression]) -> str:
        """An input function of arrays: the batches that tf.contrib.learn made of them."""
        x, y, size = (bound.get(key) for key in ("x", "y", "batch_size"))
        assert x is not None
        arrays = self.file.code(x) if y is None or is_none(y) else f"({self.file.code(x)}, {self.file.code(y)})"
        dataset = f"lambda: {self._tensorflow(call)}.data.Dataset."
        if is_none(size) or size is None:
            return f"{dataset}from_tensors({arrays}){'.repeat()' if method == 'fit' else ''}"
        rows = f"{dataset}from_tensor_slices({arrays})"
        batches = f".batch({self.file.code(size)})"
        if method != "fit":
            return f"{rows}{batches}"
        self._say(
            "TFM611", call, "shuffled arrays come in random order in both programs: their batches cannot be compared"
        )
        return f"{rows}.shuffle(len({self.file.code(x)})){batches}.repeat()"

    def _without_columns(self) -> None:
        """The lines that make the columns of arrays go, where nothing else reads them."""
        for name in dict.fromkeys(node.value for node in self.arrays):
            uses = [n for n in name_nodes(self.file.module) if n.value == name]
            if len(uses) != 1 + sum(node.value == name for node in self.arrays):
                continue
            for node in path_to(self.file.module, uses[0]):
                if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1:
                    if isinstance(node.body[0], (cst.Assign, cst.AnnAssign)):
                        self._remove_statement(node)

    # -- heads -----------------------------------------------------------------------------------------------------

    def _spec(self, call: cst.Call, line: cst.SimpleStatementLine, function: cst.FunctionDef) -> None:
        """`return head.create_estimator_spec(...)` becomes the lines of an EstimatorSpec."""
        assert isinstance(call.func, cst.Attribute)
        owner = call.func.value
        around = path_to(self.file.module, call)
        made: cst.BaseExpression | None = owner
        define = self._definitions(around)
        if isinstance(owner, cst.Name):
            made = define(owner.value)
        name = heads.head_name(self.file.imports.resolve(made.func)) if isinstance(made, cst.Call) else None
        if name is None or not isinstance(made, cst.Call):
            raise Blocked(
                "TFM192", owner, "this head is created where tf-migrate cannot see it: write the EstimatorSpec out"
            )
        head = heads.read_head(made, name, self.file.code, self._count)
        tf = self._tensorflow(made)
        parameters = ("features", "mode", "logits", "labels", "optimizer")
        later = ("trainable_variables", "train_op_fn", "update_ops", "regularization_losses")
        bound = bind(call, (*parameters, *later), "create_estimator_spec", "TFM192")
        if not is_none(bound.get("regularization_losses")):
            raise Blocked("TFM192", bound["regularization_losses"], "`regularization_losses` are unsupported")
        for key in ("features", "mode", "logits", "labels"):
            if not isinstance(bound.get(key), cst.Name):
                raise Blocked("TFM192", bound.get(key, call), f"assign the head's `{key}` to a plain variable")
        text = {key: self.file.code(bound[key]) for key in ("features", "mode", "logits", "labels")}
        taken = set(names_in(function))
        training = self._training(bound, call, tf)
        names = heads.Names(
            tf, text["features"], text["labels"], text["mode"], text["logits"], lambda name: _free(name, taken)
        )
        code = bare(self.file.code(function))
        # A model_fn that says what it serves has returned it where the head would.
        exported = self.exported and "export_outputs" not in code
        lines = heads.spec_lines(head, names, training, "batch_norm" in code, exported)
        lines = [self._indented(line) for line in lines]
        start, end = self.file.range(line)
        column = start - (self.file.text.rfind("\n", 0, start) + 1)
        indent = self.file.text[start - column : start]
        self.edits.append(Edit(start, end, (Written(f"\n{indent}".join(lines), self.file.range(call)[0]),)))
        if isinstance(owner, cst.Name):
            self._head_is_gone(owner.value, head, made, function, call)

    def _training(self, bound: Mapping[str, cst.BaseExpression], call: cst.Call, tf: str) -> Callable[[str], list[str]]:
        """How the loss is minimized."""
        optimizer, train_op_fn = bound.get("optimizer"), bound.get("train_op_fn")
        if train_op_fn is None or is_none(train_op_fn):
            if optimizer is None or is_none(optimizer):
                raise Blocked("TFM192", call, "the head has neither an optimizer nor a train_op_fn")
            made = self.file.code(optimizer)
            return lambda loss: [f"{made}.minimize({loss}, {tf}.train.get_global_step())"]
        if not isinstance(train_op_fn, cst.Lambda):
            made = self.file.code(train_op_fn)
            return lambda loss: [f"{made}({loss})"]
        params, body = train_op_fn.params.params, train_op_fn.body
        if len(params) != 1:
            raise Blocked("TFM192", train_op_fn, "a train_op_fn must take only the loss")
        parameter = params[0].name.value

        def training(loss: str) -> list[str]:
            new = body.visit(_Renamed(parameter, loss))
            assert isinstance(new, cst.BaseExpression)
            return [self.file.code(new)]

        return training

    def _head_is_gone(
        self, name: str, head: heads.Head, made: cst.Call, function: cst.FunctionDef, call: cst.Call
    ) -> None:
        """The line that makes the head goes; `head.logits_dimension` is the number that it was."""
        sizes = _sizes(function, name)
        uses = [n for n in name_nodes(function) if n.value == name]
        if len(uses) != 2 + len(sizes):
            raise Blocked("TFM192", call, f"`{name}` is used for more than its EstimatorSpec")
        for size in sizes:
            start, end = self.file.range(size)
            self.edits.append(Edit(start, end, (Written(head.size, start),)))
        for node in path_to(function, made):
            if isinstance(node, cst.SimpleStatementLine):
                self._remove_statement(node)

    def _only_a_size(self, name: str, made: cst.Call, function: cst.FunctionDef) -> None:
        """A head that is only asked for `logits_dimension` goes."""
        kind = heads.head_name(self.file.imports.resolve(made.func))
        sizes = _sizes(function, name)
        uses = [n for n in name_nodes(function) if n.value == name]
        if kind is None or not sizes or len(uses) != 1 + len(sizes):
            return
        try:
            head = heads.read_head(made, kind, self.file.code, self._count)
        except Blocked:
            return  # it stays, and is a symbol without a home
        for size in sizes:
            start, end = self.file.range(size)
            self.edits.append(Edit(start, end, (Written(head.size, start),)))
        for node in path_to(function, made):
            if isinstance(node, cst.SimpleStatementLine):
                self._remove_statement(node)

    def _remove_statement(self, node: cst.BaseStatement) -> None:
        start, end = self.file.range(node)
        text = self.file.text
        start = text.rfind("\n", 0, start) + 1
        end = text.find("\n", end) + 1 or len(text)
        self.edits.append(Edit(start, end, ()))


class _Calls(cst.CSTVisitor):
    """Calls of canned Estimators, and `return head.create_estimator_spec(...)` with its line and function."""

    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self.canned: list[tuple[cst.Call, str]] = []
        self.learn: list[tuple[cst.Call, str]] = []  # an Estimator of tf.contrib.learn with a model_fn, and its specs
        self.specs: list[tuple[cst.Call, cst.SimpleStatementLine, cst.FunctionDef]] = []
        self.heads: list[tuple[str, cst.Call, cst.FunctionDef]] = []
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
        name = self.file.imports.resolve(node.func) or ""
        if name in CANNED:
            self.canned.append((node, name))
        elif name.startswith(LEARN) and name.endswith((".Estimator", ".ModelFnOps")):
            self.learn.append((node, name))

    def visit_Assign(self, node: cst.Assign) -> None:
        target = node.targets[0].target
        if len(node.targets) == 1 and isinstance(target, cst.Name) and isinstance(node.value, cst.Call):
            if self._functions and heads.head_name(self.file.imports.resolve(node.value.func)) is not None:
                self.heads.append((target.value, node.value, self._functions[-1]))

    def visit_Return(self, node: cst.Return) -> None:
        value = node.value
        if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and self._functions:
            line = self._lines[-1] if self._lines else None
            if value.func.attr.value == "create_estimator_spec" and line is not None and line.body[-1] is node:
                if len(line.body) == 1:
                    self.specs.append((value, line, self._functions[-1]))


class _OwnValues(cst.CSTTransformer):
    """`self.rate` becomes a parameter `rate`, which is added to those that are given, but for names that are taken."""

    def __init__(self, given: list[tuple[str, cst.BaseExpression]], taken: Collection[str]) -> None:
        super().__init__()
        self.given = given
        self.taken = taken

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        if not isinstance(original_node.value, cst.Name) or original_node.value.value != "self":
            return updated_node
        name = original_node.attr.value
        known = dict(self.given).get(name)
        if name in self.taken or not (known is None or known.deep_equals(original_node)):
            return updated_node
        if known is None:
            self.given.append((name, original_node))
        return cst.Name(name)


class _ServersOf(cst.CSTTransformer):
    """`run_config.num_ps_replicas` of the RunConfig that an Estimator is given: it gives it to its model_fn."""

    def __init__(self, config: cst.BaseExpression | None) -> None:
        super().__init__()
        self.config = config.value if isinstance(config, cst.Name) else None

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        owner, name = original_node.value, original_node.attr.value
        if name != "num_ps_replicas" or not isinstance(owner, cst.Name) or owner.value != self.config:
            return updated_node
        return updated_node.with_changes(value=cst.Name(_CONFIG))


class _Renamed(cst.CSTTransformer):
    def __init__(self, old: str, new: str) -> None:
        super().__init__()
        self.old = old
        self.new = new

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        return cst.Name(self.new) if original_node.value == self.old else updated_node


def _makes_optimizers(symbol: str) -> bool:
    return is_optimizer(symbol) or symbol in WRAPPERS


def _on_one_line(node: cst.BaseExpression) -> cst.BaseExpression:
    """An expression of another place without its line breaks, which are indented for that place."""
    new = node.visit(_OneLine())
    assert isinstance(new, cst.BaseExpression)
    return new


class _OneLine(cst.CSTTransformer):
    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        comma = updated_node.comma
        if isinstance(comma, cst.Comma) and isinstance(comma.whitespace_after, cst.ParenthesizedWhitespace):
            comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        return updated_node.with_changes(comma=comma, whitespace_after_arg=cst.SimpleWhitespace(""))

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        args = list(updated_node.args)
        args[-1:] = [arg.with_changes(comma=cst.MaybeSentinel.DEFAULT) for arg in args[-1:]]
        return updated_node.with_changes(args=args, whitespace_before_args=cst.SimpleWhitespace(""))


def _free(name: str, taken: set[str]) -> str:
    found, count = name, 2
    while found in taken:
        found, count = f"{name}_{count}", count + 1
    taken.add(found)
    return found


def remarks_of(files: Iterable[ParsedFile]) -> list[Finding]:
    """What is to be said about everything that was written out in some files."""
    return [finding for file in files for finding in file.said]


def _sizes(function: cst.FunctionDef, name: str) -> list[cst.Attribute]:
    """`head.logits_dimension` in a function."""
    found = attributes_in(function)
    return [one for one in found if is_name(one.value, name) and one.attr.value == "logits_dimension"]
