"""Methods of Keras models and metrics that TensorFlow 2 dropped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import libcst as cst

from migrator.findings import Severity
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
_CLASSES = {
    "predict_classes": "take tf.argmax(model.predict(x), axis=-1), or model.predict(x) > 0.5 after one sigmoid",
    "predict_proba": "use model.predict",
}


def check_models(file: ModernFile) -> Iterable[Change]:
    """Calls of methods of models and metrics."""
    for call in file.calls:
        if keyword(call, "period") is not None and file.name(call.func) == "tf.keras.callbacks.ModelCheckpoint":
            yield Change("TFM712", call.func, "`period` of a ModelCheckpoint is Keras 2's", keras_2=True)
        scale = keyword(call, "loss_scale")
        if scale is not None and (file.name(call.func) or "").endswith(".Policy"):
            message = "a Policy has no `loss_scale` any more: give it to a tf.keras.mixed_precision.LossScaleOptimizer"
            yield Change("TFM711", scale, message, severity=Severity.MANUAL)
        if not isinstance(call.func, cst.Attribute):
            continue
        method, owner = call.func.attr.value, call.func.value
        if method in _GENERATORS:
            new, parameters = _GENERATORS[method]
            if any(arg.star for arg in call.args) or len(call.args) > len(parameters):
                message = f"`{method}` is `{new}` now, whose arguments stand in another order: write them out"
                yield Change("TFM711", call, message, severity=Severity.MANUAL)
                continue
            yield Change("TFM714", call, f"`{method}` is `{new}` now", partial(_by_name, new, parameters))
        elif method in _CLASSES and call.args:
            message = f"`{method}` is gone since TensorFlow 2.6: {_CLASSES[method]}"
            yield Change("TFM714", call, message, severity=Severity.MANUAL)
        elif method in ("fit", "evaluate", "predict") and any(keyword(call, name) is not None for name in _KERAS_2):
            message = "`workers`, `use_multiprocessing` and `max_queue_size` are those of the data on Keras 3"
            yield Change("TFM712", call.func.attr, message, keras_2=True)
        elif method == "reset_states" and (file.made_by(owner) or "").startswith("tf.keras.metrics."):
            yield Change("TFM715", call.func.attr, "`reset_states` is `reset_state` now", _reset_state)


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


CHECKS = (check_models,)
