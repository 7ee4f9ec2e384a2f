"""The mapped tier: a model_fn stays TensorFlow 1 code, and a small Keras model in the user's file runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any

import libcst as cst

from migrator.emit import layout
from migrator.emit import optimizer as optimizer_of
from migrator.emit.file import FileChanges, FileRewriter
from migrator.emit.layout import statements
from migrator.emit.mapped_class import Form, model_class
from migrator.emit.mapped_contrib import write_out
from migrator.emit.mapped_keras import LAYERS, bases_without_weights, check_layer, layer_function
from migrator.emit.mapped_metrics import metric_tuple
from migrator.emit.model_function import EmittedModel
from migrator.emit.names import free
from migrator.emit.steps import given_steps, with_steps
from migrator.findings import Finding, Severity
from migrator.names.bindings import names_bound
from migrator.names.compat import in_compat, only_two
from migrator.names.symbols import TEXTS, Home, home, is_namespace
from migrator.program import tpu
from migrator.program.accumulation import Accumulation, reads
from migrator.program.body import names_given
from migrator.program.calls import bind, calls_in, is_none, string
from migrator.program.mapped import (
    EvalMetrics,
    MappedFunction,
    is_summary,
    kept_arguments,
    metric_pairs,
    pair_of,
    read_training,
)
from migrator.program.modes import SPEC, TRAIN, ModeNames
from migrator.program.own_graphs import asks_imported_graph
from migrator.program.own_training import is_kept_collection, is_of_training
from migrator.program.params_changes import changed_anew, changes_own
from migrator.program.parsed import Blocked, ParsedFile, names_in
from migrator.program.region import Region
from migrator.program.scopes import path_to, values_of
from migrator.program.train_op import Parts, TrainOp
from migrator.program.update_ops import added_later
from migrator.program.variable_reads import handled, order_read
from migrator.program.variables_in_code import is_variable
from migrator.rules import catalogue, mapped
from migrator.rules.arithmetic import WHERE_OF_EITHER
from migrator.rules.dropout import dropout_parameters
from migrator.rules.layers import runs_updates
from migrator.rules.metrics import is_metric
from migrator.rules.partitioners import is_variable_scope, told_to_a_scope
from migrator.rules.rewriter import Rewriter
from migrator.rules.schedules import GLOBAL_STEPS
from migrator.rules.site import CallRule, TrainingContext
from migrator.rules.warm_starts import RESTORING
from migrator.walking import walk

CLASS = "TF1Model"
_COUNTER = 'tf.keras.optimizers.Optimizer("train_op")'


class Style(Enum):
    """The form of models: AUTO is NATIVE, and MAPPED where that is blocked."""

    AUTO = "auto"
    NATIVE = "native"
    MAPPED = "mapped"


def both_blocked(
    native: dict[Path, list[Finding]], mapped_form: dict[Path, list[Finding]]
) -> dict[Path, list[Finding]]:
    """The findings of a program that no form can carry over: those of the native form, then what blocks the mapped."""
    found = {path: list(findings) for path, findings in native.items()}
    known = {(f.path, f.line, f.code) for findings in native.values() for f in findings}
    for path, findings in mapped_form.items():
        for one in findings:
            if one.severity is Severity.MANUAL and (one.path, one.line, one.code) not in known:
                message = f"the mapped form is blocked too: {one.code}, {one.message}"
                found.setdefault(path, []).append(replace(one, code="TFM153", message=message))
    return found


def variable_function(name: str, indent: str) -> str:
    """The function that makes the `tf.Variable`s of a mapped model_fn, as source text."""
    text = f'''\
def {name}(initial_value, name="Variable", trainable=True, dtype=None):
    """A tf.Variable of TensorFlow 1 code in a Keras model: made by the first call, found again by the next ones."""
    if dtype is None:
        with tf.Graph().as_default():
            dtype = tf.convert_to_tensor(initial_value()).dtype
    with tf.compat.v1.variable_scope(None, default_name=name) as scope:
        own_name = scope.name.rpartition("/")[2]
    outer = tf.compat.v1.get_variable_scope()
    if not tf.executing_eagerly():
        # A scope that is entered again counts anew, but TensorFlow 1 made a new variable then, too.
        made = tf.compat.v1.get_collection_ref((threading.get_ident(), outer.name, name))
        made.append(name)
        own_name = name if len(made) == 1 else f"{{name}}_{{len(made) - 1}}"
    with tf.compat.v1.variable_scope(outer, reuse=tf.compat.v1.AUTO_REUSE, auxiliary_name_scope=False) as scope:
        scope.set_regularizer(None)
        return tf.compat.v1.get_variable(
            own_name,
            initializer=lambda: tf.convert_to_tensor(initial_value(), dtype),
            trainable=trainable,
            dtype=tf.as_dtype(dtype),
        )
'''
    return text.replace("    ", indent)


# By default these give the ids to the parts of a divided table in turn (`partition_strategy="mod"`).
_MIXING = ("tf.nn.embedding_lookup", "tf.nn.embedding_lookup_sparse")
_SHARED_EMBEDDINGS = "tf.feature_column.shared_embedding_columns"
_SHARED_FUNCTION = '''\
def {name}(*args, **kwargs):
    """Shared embedding columns; TensorFlow refuses to make them eagerly."""
    with tf.Graph().as_default():
        return tf.compat.v1.feature_column.shared_embedding_columns(*args, **kwargs)
'''
_VARIABLE = (
    *("initial_value", "trainable", "collections", "validate_shape", "caching_device", "name", "variable_def", "dtype"),
    *("expected_shape", "import_scope", "constraint", "use_resource", "synchronization", "aggregation", "shape"),
)


# -- symbols -----------------------------------------------------------------------------------------------------------


def _safe_calls() -> dict[str, CallRule]:
    """The rules that are as right in TensorFlow 1 code that a Keras model runs: those that make no layers."""
    return {
        name: rule
        for name, rule in catalogue.call_rules().items()
        if not name.startswith(("tf.layers.", "tf.losses.", "tf.train.", "tf.metrics.", "tf.nn.", "tf.feature_column."))
        and (not in_compat(name) or name.startswith("tf.logging."))  # which is Python's own logging in both
    }


class MappedRewriter(FileRewriter):
    """A FileRewriter that leaves TensorFlow 1 code, spelled for TensorFlow 2, in the functions of `region`.

    `dead` are statements to leave out, `skipped` expressions that go with what holds them. `model` is the name of the
    Keras model inside the functions of `model_fns`.
    `kept_partitioners` are the partitioners that were taken out of variable scopes. `in_both` says that a program which
    stays TensorFlow 1 reads the file, too.
    """

    in_both = False

    def map(self, region: frozenset[cst.CSTNode], file: ParsedFile) -> MappedRewriter:
        """Sets the functions and classes that stay TensorFlow 1 code; to be called before the walk."""
        self.region = region
        self.file = file
        self.dead: set[cst.CSTNode] = set()
        self.skipped: set[cst.CSTNode] = set()
        self.model: str | None = None
        self.mode_names: ModeNames | None = None
        self.dropped_partitioners: list[cst.CSTNode] = []
        self.safe = _safe_calls()
        self.pairs = {k: v for node in region for k, v in metric_pairs(file, node).items()}
        self.bases = bases_without_weights(file, list(region))
        self.training_region: frozenset[cst.CSTNode] = frozenset()
        self.restores = False
        self.whole: Region = {}
        self.evaluated: Mapping[cst.CSTNode, EvalMetrics] = {}
        self.mode = "mode"
        self._inside = 0
        self._training = 0
        self._shared: set[cst.CSTNode] = set()
        self._left_out: set[cst.CSTNode] = set()
        self._negative: set[cst.CSTNode] = set()
        return self

    def partitioners_of_scopes(self) -> list[cst.CSTNode]:
        """The partitioners that variables of the code that stays are made with; without those that are None."""
        found: list[cst.CSTNode] = []
        for call in self._calls():
            given = [arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == "partitioner"]
            if isinstance(call.func, cst.Attribute) and call.func.attr.value == "set_partitioner":
                given += [arg.value for arg in call.args]
            found += [value for value in given if not is_none(value)]
        return found

    def mixing_lookups(self) -> list[cst.Call]:
        """The lookups of the code that stays whose ids go to the parts of a divided table in turn."""
        return [
            call
            for call in self._calls()
            if self.imports.tensorflow(call.func) in _MIXING
            and not any(string(arg.value) == "div" for arg in call.args)
        ]

    def _calls(self) -> list[cst.Call]:
        return list(dict.fromkeys(call for node in self.region for call in calls_in(node)))

    # -- where we are --

    def on_visit(self, node: cst.CSTNode) -> bool:
        if node in self.dead or node in self.skipped:
            return False
        if node in self.region:
            self._inside += 1
            self._training += node in self.training_region
        return super().on_visit(node)

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        if original_node in self.dead:
            return cst.RemoveFromParent()
        if original_node in self.skipped:
            return updated_node
        new = super().on_leave(original_node, updated_node)  # type: ignore[no-untyped-call]
        if original_node in self.region:
            self._inside -= 1
            self._training -= original_node in self.training_region
        return new

    def _is_removed(self, node: cst.CSTNode) -> bool:
        return super()._is_removed(node) or (self._inside > 0 and is_summary(self.file, node))

    # -- what is rewritten --

    def visit_Comparison(self, node: cst.Comparison) -> bool:
        return True if self._inside else super().visit_Comparison(node)

    def leave_Comparison(self, original_node: cst.Comparison, updated_node: cst.Comparison) -> cst.BaseExpression:
        """`variable in several` asks for the very same variable in a graph; eager variables compare their values."""
        left, target = original_node.left, original_node.comparisons[0]
        if not self._inside or len(original_node.comparisons) != 1 or not isinstance(left, cst.Name):
            return updated_node
        if not isinstance(target.operator, cst.In | cst.NotIn) or not is_variable(left, self.file, self.whole):
            return updated_node
        other = "other" if left.value != "other" else "one"
        among = self.code(updated_node.comparisons[0].comparator)
        negated = "not " if isinstance(target.operator, cst.NotIn) else ""
        return cst.parse_expression(f"{negated}any({left.value} is {other} for {other} in {among})")

    def visit_With(self, node: cst.With) -> bool:
        if not self._inside and self._is_bfloat16(node):
            self._consumed.add(node.items[0])
            return True
        return True if self._inside else super().visit_With(node)

    def leave_With(
        self, original_node: cst.With, updated_node: cst.With
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        if not self._inside and self._is_bfloat16(original_node):
            message = "the scope is left out: an Estimator calls the model_fn later, in a graph of its own"
            self.remarks.append(Blocked("TFM429", original_node, message))
            assert isinstance(updated_node.body, cst.IndentedBlock)
            first, *rest = updated_node.body.body
            if isinstance(first, cst.SimpleStatementLine | cst.BaseCompoundStatement):
                first = first.with_changes(leading_lines=[*original_node.leading_lines, *first.leading_lines])
            return cst.FlattenSentinel([first, *rest])
        return updated_node if self._inside else super().leave_With(original_node, updated_node)

    def _is_bfloat16(self, node: cst.With) -> bool:
        """Whether a with statement only is `with tf.tpu.bfloat16_scope():`."""
        item = node.items[0]
        if len(node.items) != 1 or item.asname is not None or not isinstance(item.item, cst.Call):
            return False
        return self.imports.tensorflow(item.item.func) == "tf.tpu.bfloat16_scope" and not item.item.args

    def visit_Call(self, node: cst.Call) -> bool:
        if not self._inside:
            if self.imports.tensorflow(node.func) == _SHARED_EMBEDDINGS:
                self._shared.add(node)
                self._consumed.add(node.func)
            return super().visit_Call(node)
        name = self.imports.tensorflow(node.func)
        if name is None:
            self._check_hub(node)
        if name is not None:
            self._consumed.add(node.func)
            if name == "tf.logging.set_verbosity":
                self._consumed.update(arg.value for arg in node.args)
            if name == "tf.estimator.EstimatorSpec" or name in tpu.SPECS:
                parameters = tpu.SPEC if name in tpu.SPECS else SPEC
                kept = kept_arguments(self._training > 0)
                self._left_out |= {a for i, a in enumerate(node.args) if _key(a, i, parameters) not in kept}
        return True

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.RemovalSentinel:
        told = told_to_a_scope(original_node)
        if told is None or not self._inside or not self._tells_scope(told, original_node):
            return updated_node
        self.dropped_partitioners.append(told.args[0].value)
        return cst.RemoveFromParent()

    def _tells_scope(self, told: cst.Call, line: cst.SimpleStatementLine) -> bool:
        """Whether what a line tells its partitioner is a variable scope, and nothing else with such a method."""
        assert isinstance(told.func, cst.Attribute)
        paths = (path_to(root, line) for root in (self.file.module, *self.region))
        around = next((path for path in paths if path), [])
        return is_variable_scope(told.func.value, around, self.imports)

    def visit_Arg(self, node: cst.Arg) -> bool:
        return node not in self._left_out and super().visit_Arg(node)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        if not self._inside:
            if original_node in self._shared:
                return self._shared_embeddings(updated_node)
            return super().leave_Call(original_node, updated_node)
        name = self.imports.tensorflow(original_node.func)
        if name is None:
            return updated_node
        try:
            return self._call(name, original_node, updated_node)
        except Blocked as problem:
            self.problems.append(Blocked(problem.code, original_node, problem.message))
            return updated_node

    def _call(self, name: str, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        if name == "tf.estimator.EstimatorSpec":
            return _spec(original, updated, SPEC, kept_arguments(self._training > 0))
        if name in tpu.SPECS:
            return _spec(original, updated, tpu.SPEC, kept_arguments(self._training > 0))
        if name in RESTORING and self.model is not None:
            self.restores = True
            message = "the values are found in a checkpoint of TensorFlow 1, by the names of its variables"
            self.remarks.append(Blocked("TFM857", original, message))
            return updated.with_changes(func=cst.parse_expression(f"{self.model}.init_from_checkpoint"))
        if is_metric(original, self.imports):
            return self._metric(original, updated)
        if self.model is not None:
            found = self._of_model(name, original)
            if found is not None:
                return found
        if name in ("tf.Variable", "tf.contrib.eager.Variable"):
            return self._variable(name, original, updated)
        if name in LAYERS:
            return self._layer(name, original, updated)
        if name in ("tf.variable_scope", "tf.get_variable"):
            updated = self._without_partitioner(original, updated)
        written = write_out(name, updated, self.file.names, self.classes, self.file.module.default_indent)
        if written is not None:
            return written
        if self.imports.is_of_two(original.func) and only_two(name) and self._refused(name, original) is None:
            return self._of_two(name, original, updated)
        if name == "tf.nn.dropout":
            dropout_parameters(original, self.imports)
        if name == "tf.where" and len(original.args) > 1 and self.imports.may_be_two(original.func):
            raise Blocked("TFM240", original, WHERE_OF_EITHER)
        if name in self.safe:
            new = _of_graphs(self.safe[name](self._site(name, original, updated)), self.code)
            if any(made in self.code(new) for made in ("tf.keras.layers.", "tf.lookup.")):
                raise Blocked("TFM151", original, f"`{name}` would make a Keras layer or a table anew at every call")
            return new
        if name == "tf.name_scope":
            try:
                return catalogue.call_rules()[name](self._site(name, original, updated))
            except Blocked:  # it is known when the network is made only which of its names counts
                return updated.with_changes(func=cst.parse_expression("tf.compat.v1.name_scope"))
        of_import = name == "tf.get_default_graph" and asks_imported_graph(self.file, original)
        if of_import or mapped.is_own_collection(name, original, self.file.constants):
            return updated.with_changes(func=cst.parse_expression(f"tf.compat.v1.{name.removeprefix('tf.')}"))
        reason = self._refused(name, original)
        if reason is not None:
            raise Blocked("TFM151", original, f"`{name}` in a model_fn that stays as it is: {reason}")
        found_home = home(name)
        if found_home is not None:
            try:
                func = self._spelled(found_home.name, original.func)
                return self._renamed(name, found_home, original, updated.with_changes(func=func))
            except Blocked:
                if not in_compat(name) or self._is_another(found_home, original):
                    raise
                # TensorFlow 2 has it with other arguments: that of TensorFlow 1 is meant.
                return updated.with_changes(func=cst.parse_expression(f"tf.compat.v1.{name.removeprefix('tf.')}"))
        return updated.with_changes(func=self._reference(name, original.func, original.func))

    def _of_two(self, name: str, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        """A call of what only TensorFlow 2 calls so, in a file that only runs there: it stays."""
        if any(arg.keyword is None for arg in original.args[1:]) or name in ("tf.where", "tf.while_loop"):
            message = f"`{name}` means that of TensorFlow 2: the file names what only TensorFlow 1 has `tf.compat.v1.X`"
            self.remarks.append(Blocked("TFM189", original, message))
        return updated.with_changes(func=self._spelled(name, original.func))

    def _is_another(self, found: Home, original: cst.Call) -> bool:
        """Whether a call that may be one of TensorFlow 2 gives by its place what is another argument there."""
        places = sum(arg.keyword is None for arg in original.args)
        signature = found.signature
        return signature is not None and places > signature.shared and self.imports.may_be_two(original.func)

    def _variable(self, name: str, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        """`tf.Variable(...)` as a call of a function of the file that finds the variable again in every later call."""
        bound = bind(updated, _VARIABLE, name, "TFM151")
        for key in bound.keys() - {"initial_value", "trainable", "name", "dtype"}:
            if not (is_none(bound[key]) or key in ("validate_shape", "expected_shape", "use_resource")):
                raise Blocked("TFM151", original, f"`{key}` of a `tf.Variable` is not carried over")
        if "initial_value" not in bound:
            raise Blocked("TFM151", original, "a `tf.Variable` without a value is not carried over")
        value = bound["initial_value"]
        given = self.code(value) if isinstance(value, cst.Lambda) else f"lambda: {self.code(value)}"
        parts = [given, *(f"{key}={self.code(bound[key])}" for key in ("name", "trainable", "dtype") if key in bound)]
        title = "variable" if "variable" not in self.file.names else "tf1_variable"
        self.classes[title] = variable_function(title, self.file.module.default_indent)
        self.needs.add("threading")
        return cst.parse_expression(f"{title}({', '.join(parts)})")

    def _layer(self, name: str, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        """`tf.keras.layers.X(...)` as a call of a function of the file that finds the layer again later."""
        collects = self._training > 0
        check_layer(name, original, collects, self.file)
        title = "keras_layer" if "keras_layer" not in self.file.names else "tf1_keras_layer"
        text = layer_function(title, self.file.module.default_indent, collects, self.in_both)
        if self.classes.setdefault(title, text) != text:
            raise Blocked("TFM151", original, "Keras layers of programs that train in two ways: make two files")
        self.needs.add("threading")
        self.remarks.append(Blocked("TFM428", original, "the Keras layer is made once, and found again in later calls"))
        made = updated.with_changes(func=self._spelled(name, original.func))
        return cst.parse_expression(f'{title}("{LAYERS[name]}", lambda: {self.code(made)})')

    def _metric(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        new, metric = metric_tuple(
            original,
            updated,
            self.imports,
            self.code,
            lambda name: values_of(self.file.module, name),
            self.classes,
            self.file.module.default_indent,
        )
        self.remarks += [Blocked(code, original, text) for code, text in metric.remarks]
        return new

    def _refused(self, name: str, original: cst.Call | None = None) -> str | None:
        """Why a symbol cannot stay where the walk is; None when it can."""
        if self._training and is_of_training(name):
            return None
        if self._training and original is not None and name == "tf.get_collection":
            return None if is_kept_collection(self.file, original) else mapped.refused(name)
        return mapped.refused(name)

    def _spelled(self, name: str, original: cst.BaseExpression) -> cst.BaseExpression:
        return original if self.code(original) == name else cst.parse_expression(name)

    def _of_model(self, name: str, call_node: cst.Call) -> cst.BaseExpression | None:
        """What a question to the graph is when it is asked of the Keras model."""
        if self._training and (is_of_training(name) or name == "tf.get_collection"):
            return None  # the model has filled the collections of the graph
        if name == "tf.trainable_variables" and not call_node.args:
            return cst.parse_expression(f"{self.model}.trainable_variables")
        if name == "tf.losses.get_regularization_loss" and not call_node.args:
            return cst.parse_expression(f"sum({self.model}.losses)")
        if name == "tf.losses.get_regularization_losses" and not call_node.args:
            return cst.parse_expression(f"({self.model}.losses or [0.0])")
        if name == "tf.losses.get_total_loss":
            bound = bind(call_node, ("add_regularization_losses", "name", "scope"), name, "TFM151")
            if set(bound) <= {"name"}:
                return cst.parse_expression(
                    f"tf.add_n(tf.compat.v1.losses.get_losses()) + sum({self.model}.losses)"
                ).with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        if name in GLOBAL_STEPS and not call_node.args:
            return cst.parse_expression(f"{self.model}.optimizer.iterations")
        if name == "tf.get_collection":
            bound = bind(call_node, ("key", "scope"), name, "TFM151")
            key = self.imports.tensorflow(bound.get("key")) or ""
            if set(bound) == {"key"} and key == "tf.GraphKeys.REGULARIZATION_LOSSES":
                return cst.parse_expression(f"({self.model}.losses or [0.0])")
            if set(bound) == {"key"} and key == "tf.GraphKeys.TRAINABLE_VARIABLES":
                return cst.parse_expression(f"{self.model}.trainable_variables")
        return None

    def _without_partitioner(self, original: cst.Call, updated: cst.Call) -> cst.Call:
        kept = []
        for old, new in zip(original.args, updated.args, strict=True):
            if old.keyword is not None and old.keyword.value == "partitioner" and not is_none(old.value):
                self.dropped_partitioners.append(old.value)
            else:
                kept.append(new)
        if kept and len(kept) < len(updated.args):
            kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return updated.with_changes(args=kept)

    def _reference(self, name: str, original: cst.BaseExpression, updated: cst.BaseExpression) -> cst.BaseExpression:
        if not self._inside and home(name) is None and mapped.may_stay_outside(name) and name not in TEXTS:
            return cst.parse_expression(f"tf.compat.v1.{name.removeprefix('tf.')}")
        if not self._inside or name in TEXTS or name.startswith(("tf.flags", "tf.app.flags")):
            return super()._reference(name, original, updated)
        if original in self.bases:
            return self._spelled(name, updated)
        reason = self._refused(name)
        if reason is not None:
            self.problems.append(Blocked("TFM151", original, f"`{name}` in a model_fn that stays as it is: {reason}"))
            return updated
        head, rest = name, ""
        while head.count(".") >= 1:
            found = home(head)
            if found is not None and (not rest or found.signature is None):
                return self._spelled(found.name + rest, updated)
            if in_compat(head):
                return cst.parse_expression(f"tf.compat.v1.{head.removeprefix('tf.')}{rest}")
            head, _, last = head.rpartition(".")
            rest = f".{last}{rest}"
            if is_namespace(head):
                break
        self.problems.append(
            Blocked("TFM151", original, f"`{name}` is not in `tf.compat.v1` of TensorFlow 2.21: replace it by hand")
        )
        return updated

    def _shared_embeddings(self, updated: cst.Call) -> cst.Call:
        """shared_embedding_columns outside the network: it makes no variables yet, but does not run eagerly."""
        title = "shared_embedding_columns"
        while title in self.file.names:
            title += "_of_graphs"
        self.classes[title] = _SHARED_FUNCTION.format(name=title).replace("    ", self.file.module.default_indent)
        return updated.with_changes(func=cst.Name(title))

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        if self._inside and original_node.attr.value == "value" and self._is_dimension(original_node.value):
            return updated_node.value  # a number, or None, in TensorFlow 2
        inner = original_node.value
        if self._inside and original_node.attr.value == "name" and isinstance(inner, cst.Attribute):
            if inner.attr.value == "op" and isinstance(inner.value, cst.Name):
                if is_variable(inner.value, self.file, self.whole):  # which has no operation any more
                    return cst.parse_expression(f'{inner.value.value}.name.partition(":")[0]')
        return super().leave_Attribute(original_node, updated_node)

    def _is_dimension(self, node: cst.BaseExpression) -> bool:
        """Whether an expression is `x.shape[i]` or `x.get_shape()[i]`, under whatever name."""
        return isinstance(node, cst.Subscript) and self._is_shape(node.value)

    def _is_shape(self, node: cst.BaseExpression) -> bool:
        if isinstance(node, cst.Name):
            values = values_of(self.file.module, node.value)
            return bool(values) and all(not isinstance(v, cst.Name) and self._is_shape(v) for v in values)
        if isinstance(node, cst.Call):
            return isinstance(node.func, cst.Attribute) and node.func.attr.value == "get_shape"
        return isinstance(node, cst.Attribute) and node.attr.value == "shape"

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        """`value, update = tf.metrics.X(...)` has one name for both."""
        if not self._inside or not is_metric(original_node.value, self.imports):
            return updated_node
        targets = [
            t.with_changes(target=t.target.elements[0].value)
            if isinstance(t.target, cst.Tuple) and isinstance(t.target.elements[0].value, cst.Name)
            else t
            for t in updated_node.targets
        ]
        return updated_node.with_changes(targets=targets)

    def leave_Tuple(self, original_node: cst.Tuple, updated_node: cst.Tuple) -> cst.BaseExpression:
        if self._inside and (name := pair_of(original_node, self.pairs)) is not None:
            return cst.Name(name)
        if original_node in self.evaluated:
            return self._metrics_of(self.evaluated[original_node], updated_node)
        if len(updated_node.elements) == len(original_node.elements):
            return updated_node
        last = updated_node.elements[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        assert isinstance(last, cst.Element)
        if len(updated_node.elements) == 1:
            return last.value
        return updated_node.with_changes(elements=[*updated_node.elements[:-1], last])

    def _metrics_of(self, metrics: EvalMetrics, updated: cst.Tuple) -> cst.BaseExpression:
        """`metric_fn(tensors)` in the place of `(metric_fn, tensors)`, which only TPUEstimator calls, to evaluate."""
        head, tensors = (element.value for element in updated.elements)
        args = [cst.Arg(tensors, star=metrics.star)]
        if not metrics.star:
            assert isinstance(tensors, cst.List | cst.Tuple)
            args = [cst.Arg(element.value, comma=element.comma) for element in tensors.elements]
        made = cst.Call(head, args)
        if metrics.evaluates:
            return made
        return cst.IfExp(cst.parse_expression(f'{self.mode} == "eval"'), made, cst.Name("None"))

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> Any:
        """A branch of which nothing is left goes; what was to be done otherwise takes its place."""
        body, other = updated_node.body, updated_node.orelse
        if not self._inside or not isinstance(body, cst.IndentedBlock) or body.body:
            return updated_node
        if other is None:
            return cst.RemoveFromParent()
        first = self._modes(original_node.test)
        if isinstance(other, cst.If):
            then = self._modes(original_node.orelse.test) if isinstance(original_node.orelse, cst.If) else None
            if first is None or then is None or first & then:
                return updated_node
            return other.with_changes(leading_lines=[*updated_node.leading_lines, *_comments(other)])
        test = _negated(updated_node.test)
        return updated_node.with_changes(test=test, body=other.body, orelse=None)

    def _modes(self, test: cst.BaseExpression) -> frozenset[str] | None:
        return None if self.mode_names is None else self.mode_names.when(test)

    def leave_For(self, original_node: cst.For, updated_node: cst.For) -> Any:
        body = updated_node.body
        if self._inside and isinstance(body, cst.IndentedBlock) and not body.body and updated_node.orelse is None:
            return cst.RemoveFromParent()
        return updated_node


#: Initializers whose every call draws other numbers, as those of TensorFlow 1; one of Keras gives all variables of a
#: shape the same (seen in tf_keras 2.21: two calls of one `GlorotUniform()`).
_INITIALIZERS = {
    "tf.keras.initializers.GlorotUniform": "tf.compat.v1.glorot_uniform_initializer",
    "tf.keras.initializers.GlorotNormal": "tf.compat.v1.glorot_normal_initializer",
    "tf.keras.initializers.VarianceScaling": "tf.compat.v1.variance_scaling_initializer",
}


def _of_graphs(node: cst.BaseExpression, code: Callable[[cst.CSTNode], str]) -> cst.BaseExpression:
    """An initializer in its form for TensorFlow 1 code, which shares it between variables; anything else as it is."""
    found = _INITIALIZERS.get(code(node.func)) if isinstance(node, cst.Call) else None
    if found is None or not isinstance(node, cst.Call):
        return node
    return node.with_changes(func=cst.parse_expression(found))


def _comments(node: cst.If) -> list[cst.EmptyLine]:
    return [line for line in node.leading_lines if line.comment is not None]


def _negated(test: cst.BaseExpression) -> cst.BaseExpression:
    """`not test`, as one would write it."""
    if isinstance(test, cst.Name | cst.Attribute | cst.Call | cst.Subscript):
        return cst.UnaryOperation(cst.Not(), test)
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return test.expression
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1 and not test.lpar:
        target = test.comparisons[0]
        opposite = {cst.Equal: cst.NotEqual(), cst.NotEqual: cst.Equal()}.get(type(target.operator))
        if opposite is not None:
            return test.with_changes(comparisons=[target.with_changes(operator=opposite)])
    inner = test if test.lpar else test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.UnaryOperation(cst.Not(), inner)


def _key(arg: cst.Arg, index: int, parameters: Sequence[str] = SPEC) -> str:
    """The parameter of an EstimatorSpec that an argument is for."""
    return arg.keyword.value if arg.keyword is not None else parameters[index]


def _spec(
    original: cst.Call, updated: cst.Call, parameters: Sequence[str], names: Mapping[str, str]
) -> cst.BaseExpression:
    """An EstimatorSpec as a dict of what is kept of it, laid out as the call was."""
    kept: list[tuple[str, cst.Arg]] = []
    for index, (old, new) in enumerate(zip(original.args, updated.args, strict=True)):
        key = _key(old, index, parameters)
        if key in names and not is_none(old.value):
            kept.append((names[key], new))
    elements = [cst.DictElement(cst.SimpleString(f'"{key}"'), arg.value, comma=arg.comma) for key, arg in kept]
    last = original.args[-1]
    if elements:
        elements[-1] = elements[-1].with_changes(comma=last.comma)
    return cst.Dict(
        elements,
        lbrace=cst.LeftCurlyBrace(whitespace_after=updated.whitespace_before_args),
        rbrace=cst.RightCurlyBrace(whitespace_before=last.whitespace_after_arg),
    )


# -- the function ------------------------------------------------------------------------------------------------------


def emit_mapped(
    function: MappedFunction,
    rewriter: MappedRewriter,
    wants_predictions: bool,
    training: TrainingContext,
    late: bool = False,
    with_params: bool = True,
) -> EmittedModel:
    """Builds the function that makes a compiled Keras model of the user's code. Raises Blocked.

    `late` says that the driver makes the model's variables, `with_params` that it gives the function its `params`.
    """
    if wants_predictions and not function.predictions:
        raise Blocked("TFM111", function.node.name, "predict() is called, but no EstimatorSpec has predictions")
    return _Emitter(function, rewriter, wants_predictions, training, late, with_params).emit()


class _Emitter:
    def __init__(
        self,
        function: MappedFunction,
        rewriter: MappedRewriter,
        predicts: bool,
        training: TrainingContext,
        late: bool,
        with_params: bool,
    ) -> None:
        self.late = late
        self.with_params = with_params
        self.predicts = predicts
        self.training = training
        self.function = function
        self.file = function.file
        self.rewriter = rewriter
        self.indent = function.file.module.default_indent
        self.taken = set(function.file.names)
        self.problems: list[Blocked] = []
        self.remarks: list[Blocked] = []

    def emit(self) -> EmittedModel:
        function = self.function
        self._check_updates()
        self.native = Rewriter(self.file.imports, self.file.code, None, True, self.file.constants.get)
        before: list[cst.BaseStatement] = []
        optimizer = _COUNTER
        if not function.trains_itself and not function.only_predicts:
            train = read_training(function)
            rate_class = optimizer_of.prepare(self.native, self.training, train, self.file.code)
            before, optimizer = self._optimizer(train, rate_class)
        dataset = free("dataset", self.taken)
        model = free("model", self.taken)
        name = free("forward", self.taken)
        forward = self._forward(name, model)
        modes = ', modes=("train", "eval")' if self.function.metrics else ""
        lines = [f"{model} = {CLASS}({name})"]
        if function.trains_itself:
            lines.append("# The train_op applies the gradients. Of this optimizer only the step counter is used.")
        # What ends the training where not every batch counts as a step looks at each of them.
        several = [] if function.counts_by_condition else given_steps(self.training)
        if not function.only_predicts:
            arguments = [f"optimizer={optimizer}", *several]
            lines.append(layout.call(f"{model}.compile", arguments, self.indent, 0))
        if not self.late:
            lines.append(f"{model}.make_variables({dataset}{modes})")
        lines.append(f"return {model}")
        end = statements("\n".join(lines) + "\n", self.file.module)
        body = [forward, *_set_off([*before, *end])]
        node = function.node
        form = Form(
            function.trains_itself,
            self.late,
            self.rewriter.restores,
            function.only_predicts,
            self.predicts and bool(several),
            self.rewriter.in_both,
            self.training.shows_once,
        )
        assert isinstance(node.body, cst.IndentedBlock)
        return EmittedModel(
            node.with_changes(
                params=self._parameters(dataset),
                body=node.body.with_changes(body=body, footer=[]),
                returns=None,
            ),
            tuple(self.problems),
            (),
            tuple(self.remarks),
            self.predicts,
            frozenset(self.native.needs),
            {CLASS: model_class(CLASS, self.indent, form)},
            late=self.late,
            with_params=self.with_params,
            counts_by_condition=function.counts_by_condition,
            of_execution=1 if function.counts_by_condition else self.training.of_execution,
        )

    def _check_updates(self) -> None:
        """In a Keras model batch normalization always updates its averages; a prediction reads none that it made."""
        if self.function.only_predicts:
            return
        if self.function.trains_itself:
            lines = self.function.train.statements
            for index, statement in enumerate(lines):
                reads = TRAIN in statement.modes and runs_updates(statement.node, self.file.imports)
                later = added_later(self.function.project, self.file, lines, index)[1] if reads else None
                if later is not None:
                    message = "updates of layers below are not in UPDATE_OPS yet here, but would run in a Keras model"
                    raise Blocked("TFM151", statement.node, message)
            places = [*self.function.region.items(), (self.function.inlined, self.file)]
            if any(runs_updates(node, file.imports) for node, file in places):
                return
        elif read_training(self.function).updates:
            return
        for node, file in self.function.region.items():
            finder = _Normalizations(file)
            walk(node, finder)
            if finder.found is not None:
                message = "the updates of this batch normalization never ran, but would in a Keras model"
                where = finder.found if file is self.file else self.function.node.name
                raise Blocked("TFM151", where, message)

    # -- signature --

    def _parameters(self, dataset: str) -> cst.Parameters:
        roles = self.function.parameters
        gone = {roles.labels, roles.mode, roles.config} - {None}
        gone |= {roles.features} if self.late else set()
        gone |= set() if self.with_params else {roles.params}
        params = self.function.node.params
        kept = [
            p.with_changes(name=cst.Name(dataset), annotation=None, default=None)
            if p.name.value == roles.features
            else p.with_changes(annotation=None)
            for p in params.params
            if p.name.value not in gone
        ]
        if kept:
            kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        kwonly = [p for p in params.kwonly_params if p.name.value not in gone]
        made = params.with_changes(
            params=kept, kwonly_params=kwonly, star_arg=params.star_arg if kwonly else cst.MaybeSentinel.DEFAULT
        )
        return with_steps(made) if self.training.steps_per_execution else made

    def _forward(self, name: str, model: str) -> cst.FunctionDef:
        """The user's function: features, labels and mode as parameters, the rest from around it."""
        function, roles = self.function, self.function.parameters
        if roles.config is not None and roles.config in names_in(function.node.body):
            raise Blocked("TFM105", function.node.params, "the model_fn reads its `config`")
        self._check_order_of_variables()
        self._check_changes()
        self.rewriter.dead |= function.dead
        self.rewriter.skipped |= set(function.hooks.nodes)
        self.rewriter.model = model
        self.rewriter.evaluated = function.evaluated
        self.rewriter.mode = roles.mode or free("mode", self.taken)
        self.rewriter.mode_names = function.names
        new = function.node.visit(self.rewriter)
        self.rewriter.model, self.rewriter.mode_names = None, None
        assert isinstance(new, cst.FunctionDef)
        wanted = [roles.features, roles.labels or free("labels", self.taken), roles.mode or free("mode", self.taken)]
        params = [cst.Param(cst.Name(one)) for one in wanted]
        given = names_bound((function.node.body,))
        for param in (*function.node.params.params, *function.node.params.kwonly_params):
            if param.name.value in given - {*wanted}:
                equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
                params.append(cst.Param(param.name, default=param.name, equal=equal))  # it gets another value inside
        return new.with_changes(
            name=cst.Name(name),
            params=cst.Parameters(params),
            decorators=[],
            returns=None,
            leading_lines=[],
            lines_after_decorators=[],
            asynchronous=None,
        )

    def _check_order_of_variables(self) -> None:
        """The model sorts its variables, where a graph lists them as they were made. Raises Blocked (TFM312)."""
        function = self.function
        if function.trains_itself or function.project is None:
            return  # the collections of the graph are filled, in its order
        for code in handled(function.project, self.file, function.node, [function.node.body], function.dead):
            place = order_read(code, function.dead)
            if place is not None:
                message = "a Keras model has its variables in another order: choose them by names or shapes"
                raise Blocked("TFM312", place if code.file is self.file else function.node.name, message)

    def _check_changes(self) -> None:
        """Every run of the model_fn begins with the same features, labels and params. Raises Blocked (TFM151)."""
        function, roles = self.function, self.function.parameters
        if function.project is None:
            return
        own = [name for name in (roles.features, roles.labels, roles.params) if name is not None]
        copied = {name for name in own if values_of(function.node, name)}  # `features = dict(features)`
        for name in own:
            if name == roles.params or name in copied:
                continue
            if changes_own(function.project, self.file, function.node, name):
                message = f"`{name}` is changed in place, which a traced function may not: copy the dict first"
                raise Blocked("TFM151", function.node.name, message)
        if function.only_predicts or roles.params is None or roles.params in copied:
            return
        again = changed_anew(function.project, self.file, function.node, roles.params)
        if again is not None:
            message = f"`{roles.params}` is changed here by every run of the model_fn: copy it first"
            raise Blocked("TFM151", again, message)

    # -- training --

    def _optimizer(self, train: TrainOp, rate_class: str | None) -> tuple[list[cst.BaseStatement], str]:
        """The statements that make the optimizer, outside the network, and the expression that gives it."""
        function, roles = self.function, self.function.parameters
        forbidden = {roles.features, roles.labels, roles.mode} - {None}
        kept: list[cst.BaseStatement] = []
        wanted: set[str] = set()
        expression = None
        if train.parts is not None:
            expression, wanted = self._parts(train, train.parts)
        elif train.index is None:
            new = self._natively(train.optimizer)
            wanted = names_in(new)
            expression = self.file.code(new)
        else:
            assert isinstance(train.optimizer, cst.Name)
            expression = train.optimizer.value
            wanted = {expression}
        if train.accumulation is not None:
            expression, more = self._accumulating(train.accumulation, expression)
            wanted |= more
        schedule = self._schedule(train, rate_class)
        own = train.rate.names | {train.rate.step}
        read_by_schedule = {name for line in schedule for name in names_in(line)} - own
        if train.first is None:
            kept += schedule
            wanted |= read_by_schedule
        start = train.index if train.index is not None and train.accumulation is None else -1
        start = len(function.train.statements) - 1 if start < 0 else start
        for index in range(start, -1, -1):
            statement = function.train.statements[index]
            if TRAIN not in statement.modes or not names_given((statement,)) & wanted:
                continue
            if index in train.rate.moved:
                continue
            new_statement = self._natively(statement.node)
            assert isinstance(new_statement, cst.SimpleStatementLine | cst.BaseCompoundStatement)
            kept.insert(0, new_statement)
            replaced = _replaced(statement.node)
            wanted = (wanted - replaced) | (names_in(new_statement) - replaced)
            bad = names_in(new_statement) & forbidden
            if bad:
                message = f"the optimizer is computed from `{sorted(str(b) for b in bad)[0]}`"
                raise Blocked("TFM152", statement.node, message)
            if index == train.first and schedule:
                kept = [*schedule, *_set_off(kept)]
                wanted |= read_by_schedule
        if train.parts is not None or train.accumulation is not None:
            given = set[str]().union(*(names_given((s,)) for s in function.train.statements))
            made = {name for one in self._optimizers(train) for name in names_in(one)}
            name = "optimizer" if "optimizer" in made else free("optimizer", self.taken | given)
            kept += statements(f"{name} = {expression}\n", self.file.module)
            expression = name
        return kept, expression

    def _optimizers(self, train: TrainOp) -> list[cst.BaseExpression]:
        return [train.optimizer] if train.parts is None else [part.optimizer for part in train.parts.trained]

    def _accumulating(self, accumulation: Accumulation, optimizer: str) -> tuple[str, set[str]]:
        """An optimizer that adds up gradients, as an expression, and the names that say how."""

        def new(node: cst.CSTNode) -> str:
            return self.file.code(self._natively(node))

        text = optimizer_of.accumulating(accumulation, optimizer, self.native.training, new, self.indent)
        return text, reads(accumulation)

    def _parts(self, train: TrainOp, parts: Parts) -> tuple[str, set[str]]:
        """The optimizers that train variables by their names, as one expression, and the names that it reads."""
        made = [self._natively(part.optimizer) for part in parts.trained]
        texts = [self.file.code(node) for node in made]
        text = optimizer_of.together(parts, texts, self.native.training, train.clipping is not None, self.indent)
        return text, names_in(cst.parse_expression(text)) - {parts.name}

    def _schedule(self, train: TrainOp, name: str | None) -> list[cst.BaseStatement]:
        """The class of a schedule that the program computes itself."""
        if name is None:
            return []
        known = len(self.native.problems)
        moved = [self.function.train.statements[index].node for index in train.rate.moved]
        lines = optimizer_of.schedule_class(name, train, moved, self.native, self.file.code, self.indent)
        self.problems += self.native.problems[known:]
        return list(statements("\n".join(lines).rstrip("\n") + "\n", self.file.module))

    def _natively(self, node: cst.CSTNode) -> cst.CSTNode:
        known = len(self.native.problems)
        new = node.visit(self.native)
        self.problems += self.native.problems[known:]
        assert isinstance(new, cst.CSTNode)
        return new


class _Normalizations(cst.CSTVisitor):
    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self.found: cst.Call | None = None

    def visit_Call(self, node: cst.Call) -> None:
        if self.file.imports.resolve(node.func) in (
            "tf.layers.batch_normalization",
            "tf.layers.batch_norm",
            "tf.layers.BatchNormalization",
        ):
            self.found = self.found or node


def _replaced(node: cst.BaseStatement) -> set[str]:
    """The names that a statement gives a value to, whatever they were before."""
    small = node.body[0] if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1 else None
    if not isinstance(small, cst.Assign):
        return set()
    return {t.target.value for t in small.targets if isinstance(t.target, cst.Name)} - names_in(small.value)


def _set_off(lines: Sequence[cst.BaseStatement]) -> list[cst.BaseStatement]:
    """Statements under a blank line."""
    first, *rest = lines
    assert isinstance(first, cst.SimpleStatementLine | cst.BaseCompoundStatement)
    own = [line for line in first.leading_lines if line.comment is not None]
    return [first.with_changes(leading_lines=[cst.EmptyLine(indent=False), *own]), *rest]


__all__ = ["CLASS", "FileChanges", "MappedRewriter", "Style", "both_blocked", "emit_mapped", "model_class"]
