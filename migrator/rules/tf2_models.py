"""Methods of Keras models and metrics that TensorFlow 2 dropped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import libcst as cst

from migrator.findings import Severity
from migrator.names.bindings import dotted, read_bindings
from migrator.program.calls import attributes_in
from migrator.program.modern import Change, ModernFile, is_edit_of, keyword
from migrator.rules.rule import Example, Rule

RULES = (
    Rule(
        "TFM714",
        "generators, and the classes of predictions",
        Severity.MIGRATED,
        """
`fit_generator`, `evaluate_generator` and `predict_generator` are `fit`, `evaluate` and `predict`, which take the same
arguments by name; Keras 3 has only these. `predict_classes` and `predict_proba` are gone since TensorFlow 2.6: their
meaning depends on the last layer, so they are named and left as they are.
""",
        (
            Example("model.fit_generator(batches, 10, epochs=2)", "model.fit(batches, steps_per_epoch=10, epochs=2)"),
            Example("model.predict_classes(x)", None),
        ),
    ),
    Rule(
        "TFM715",
        "metrics are reset by reset_state",
        Severity.MIGRATED,
        """
`metric.reset_states()` is `metric.reset_state()`: the older name does not exist on Keras 3. Only what is known to be a
metric is renamed; `reset_states` of a recurrent layer or a model means something else and stays.

A custom metric with a method `reset_states` has `reset_state` now, which `fit` of both Keras calls. Keras 3 never calls
the older one and sets every variable to zero instead: the smallest value of an epoch, which such a metric set to 1e9
between them, was 0.0 from the second epoch on (measured). Where it is not plain what else calls or inherits the method
(another file, a class with both, a base that is not known), the file gets Keras 2, which calls it.
""",
        (Example("tf.keras.metrics.Mean().reset_states()", "tf.keras.metrics.Mean().reset_state()"),),
    ),
)

_FIT = (
    "generator",
    "steps_per_epoch",
    "epochs",
    "verbose",
    "callbacks",
    "validation_data",
    "validation_steps",
    "validation_freq",
    "class_weight",
    "max_queue_size",
    "workers",
    "use_multiprocessing",
    "shuffle",
    "initial_epoch",
)
_OTHERS = ("generator", "steps", "callbacks", "max_queue_size", "workers", "use_multiprocessing", "verbose")
_GENERATORS = {
    "fit_generator": ("fit", _FIT),
    "evaluate_generator": ("evaluate", _OTHERS),
    "predict_generator": ("predict", _OTHERS),
}
_KERAS_2 = ("workers", "use_multiprocessing", "max_queue_size")
_METRICS = "tf.keras.metrics."
_CLASSES = {
    "predict_classes": "use tf.argmax(model.predict(x), axis=-1), or model.predict(x) > 0.5 after one sigmoid",
    "predict_proba": "use model.predict",
}


def check_models(file: ModernFile) -> Iterable[Change]:
    """Calls of methods of models and metrics."""
    for call in file.calls:
        if keyword(call, "period") is not None and file.name(call.func) == "tf.keras.callbacks.ModelCheckpoint":
            yield Change("TFM712", call.func, "`period` of ModelCheckpoint exists on Keras 2 only", keras_2=True)
        scale = keyword(call, "loss_scale")
        if scale is not None and (file.name(call.func) or "").endswith(".Policy"):
            message = "Policy no longer takes `loss_scale`: pass it to a tf.keras.mixed_precision.LossScaleOptimizer"
            yield Change("TFM711", scale, message, severity=Severity.MANUAL)
        if not isinstance(call.func, cst.Attribute):
            continue
        method, owner = call.func.attr.value, call.func.value
        if method in _GENERATORS:
            new, parameters = _GENERATORS[method]
            if any(arg.star for arg in call.args) or len(call.args) > len(parameters):
                message = f"`{method}` is now `{new}`, whose arguments have another order: write them out"
                yield Change("TFM711", call, message, severity=Severity.MANUAL)
                continue
            given = {arg.keyword.value for arg in call.args if arg.keyword} | set(parameters[: len(call.args)])
            edit = partial(_by_name, new, parameters)
            yield Change("TFM714", call, f"`{method}` is now `{new}`", edit, keras_2=not given.isdisjoint(_KERAS_2))
        elif method in _CLASSES and call.args:
            message = f"`{method}` was removed in TensorFlow 2.6: {_CLASSES[method]}"
            yield Change("TFM714", call, message, severity=Severity.MANUAL)
        elif method in ("fit", "evaluate", "predict") and any(keyword(call, name) is not None for name in _KERAS_2):
            message = "`workers`, `use_multiprocessing` and `max_queue_size` are arguments of the dataset on Keras 3"
            yield Change("TFM712", call.func.attr, message, keras_2=True)
        elif method == "reset_states" and (file.made_by(owner) or "").startswith("tf.keras.metrics."):
            yield Change("TFM715", call.func.attr, "`reset_states` is now `reset_state`", _reset_state)


def check_metrics(file: ModernFile) -> Iterable[Change]:
    """Metrics of the program's own that have a method `reset_states`."""
    resets = _Resets(file)
    if not resets.methods and not resets.calls and not resets.super_of_both:
        return
    if resets.is_plain():
        for name in resets.methods:
            message = "`reset_states` is now `reset_state`: Keras 3 calls only that"
            yield Change("TFM715", name, message, _reset_state)
        for name in resets.calls:
            yield Change("TFM715", name, "`reset_states` is now `reset_state`", _reset_state)
    else:
        message = "Keras 3 never calls `reset_states` of this metric, and other code may"
        first = next(iter((*resets.methods, *resets.super_of_both, *resets.calls)))
        yield Change("TFM712", first, message, keras_2=True)


class _Resets:
    """The methods `reset_states` of the metrics that a file defines (`methods`), and what calls them (`calls`)."""

    def __init__(self, file: ModernFile) -> None:
        self.file = file
        self.classes = {node.name.value: node for node in file.classes}
        self.metrics = [node for node in file.classes if self._is_metric(node)]
        bases = {base for node in self.metrics for base in self._bases(node)}
        # Parts of metrics, and what has the methods of one and a base that is not known.
        self.unsure = [
            node
            for node in file.classes
            if node not in self.metrics and (node in bases or self._may_be_metric(node)) and self._method(node)
        ]
        both = [node for node in self.metrics if self._has(node, "reset_state")]
        own = [node for node in both if any(binding.name == "reset_state" for binding in read_bindings(node.body))]
        self.unsure += [node for node in both if node not in own and self._method(node)]
        self.metrics = [node for node in self.metrics if node not in both]
        found = (self._method(node) for node in (*self.metrics, *self.unsure))
        self.methods = [name for name in found if name is not None]
        inside = {id(node) for one in self.metrics for node in attributes_in(one)}
        inside_both = {id(node) for one in both for node in attributes_in(one)}
        self.calls: list[cst.Name] = []
        self.super_of_both: list[cst.Name] = []  # `super().reset_states()` in a class that has both methods
        self.unknown = False
        for node in file.attributes:
            if node.attr.value != "reset_states":
                continue
            owner = node.value
            if (file.made_by(owner) or "").startswith("tf.keras."):
                continue  # renamed by itself, or a layer's
            if id(node) in inside_both:
                self.super_of_both += [node.attr] if _is_super(owner) else []
            elif id(node) in inside:
                self.unknown |= not (dotted(owner) == "self" or _is_super(owner) or self._is_own(owner))
                self.calls.append(node.attr)
            elif self._is_own(owner):
                self.calls.append(node.attr)
            elif not self._is_one_of(owner, both):
                self.unknown = True

    def is_plain(self) -> bool:
        """Whether all that has to be renamed is in sight."""
        if (
            self.unsure
            or self.unknown
            or self.super_of_both
            or "'reset_states'" in self._text
            or '"reset_states"' in self._text
        ):
            return False
        names = [node.name.value for node in self.metrics]
        return not any("reset_states" in other and any(name in other for name in names) for other in self.file.others)

    @property
    def _text(self) -> str:
        return self.file.parsed.bare

    def _bases(self, node: cst.ClassDef) -> list[cst.ClassDef]:
        return [self.classes[base] for arg in node.bases if (base := dotted(arg.value)) in self.classes]

    def _is_metric(self, node: cst.ClassDef, seen: frozenset[str] = frozenset()) -> bool:
        if node.name.value in seen:
            return False
        if any((self.file.name(arg.value) or "").startswith(_METRICS) for arg in node.bases):
            return True
        seen |= {node.name.value}
        return any(self._is_metric(base, seen) for base in self._bases(node))

    def _may_be_metric(self, node: cst.ClassDef) -> bool:
        known = ("object", "ABC", "abc.ABC", *self.classes)
        strange = any(self.file.name(arg.value) is None and dotted(arg.value) not in known for arg in node.bases)
        return strange and self._has(node, "update_state") and self._has(node, "result")

    def _method(self, node: cst.ClassDef) -> cst.Name | None:
        """The name of `def reset_states`."""
        body = node.body.body
        return next((s.name for s in body if isinstance(s, cst.FunctionDef) and s.name.value == "reset_states"), None)

    def _has(self, node: cst.ClassDef, name: str) -> bool:
        """Whether a class, or a base of it in the file, has something of a name."""
        return any(binding.name == name for binding in read_bindings(node.body)) or any(
            base is not node and self._has(base, name) for base in self._bases(node)
        )

    def _is_own(self, node: cst.BaseExpression) -> bool:
        """Whether the value of an expression is a metric of this file whatever happens."""
        return self._is_one_of(node, self.metrics)

    def _is_one_of(self, node: cst.BaseExpression, classes: Iterable[cst.ClassDef]) -> bool:
        values = [node] if isinstance(node, cst.Call) else self.file.values_of(node)
        known = {one.name.value for one in classes}
        return bool(values) and all(
            isinstance(value, cst.Call)
            and (dotted(value.func) in known or (self.file.name(value.func) or "").startswith(_METRICS))
            for value in values
        )


def _is_super(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and dotted(node.func) == "super"


def _reset_state(node: cst.CSTNode) -> cst.CSTNode:
    return is_edit_of(node, cst.Name).with_changes(value="reset_state")


def _by_name(method: str, parameters: Sequence[str], node: cst.CSTNode) -> cst.CSTNode:
    call = is_edit_of(node, cst.Call)
    function = is_edit_of(call.func, cst.Attribute)
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    args = []
    for position, arg in enumerate(call.args):
        if arg.keyword is not None and arg.keyword.value == "generator":
            arg = arg.with_changes(keyword=cst.Name("x"))
        elif arg.keyword is None and position:
            arg = arg.with_changes(keyword=cst.Name(parameters[position]), equal=equal)
        args.append(arg)
    return call.with_changes(func=function.with_changes(attr=cst.Name(method)), args=args)


CHECKS = (check_models, check_metrics)
