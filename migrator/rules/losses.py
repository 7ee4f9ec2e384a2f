"""TensorFlow 1 losses to Keras loss objects."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from migrator.findings import Severity
from migrator.names.imports import ImportMap
from migrator.program.calls import bind, is_none, number, string
from migrator.program.parsed import Blocked
from migrator.rules.rule import Example, Rule
from migrator.rules.site import CallRule, Site, call_text, expression

RULES = (
    Rule(
        "TFM301",
        "the loss of a model_fn becomes a Keras loss",
        Severity.MANUAL,
        """
One loss of labels and one output becomes a Keras loss: `tf.losses.mean_squared_error`, `absolute_difference`,
`huber_loss`, `softmax_cross_entropy`, `sparse_softmax_cross_entropy`, `sigmoid_cross_entropy`, or `tf.reduce_mean` of
a `tf.nn.*_cross_entropy_with_logits` or of an expression of labels and model output, or a loss object of Keras over
classes (`tf.keras.losses.SparseCategoricalCrossentropy()(labels, logits)`); plus
`tf.losses.get_regularization_loss()`. The Keras losses agree to 2e-7 over 60 steps (measured, without weights).

Any other loss (several terms, several outputs of the network, features, weights, labels by key) becomes the
`compute_loss` of a small subclass of `tf.keras.Model`, which runs the statements as they were written; the model then
answers with the tensors that they read. Where evaluation reports another loss than the training minimizes (a penalty of
the training alone, weights or smoothing that the mode decides), the subclass has an `evaluation_loss` beside it, and a
`test_step` that reports it. Refused is a loss that reads a name which gets another value later, or what one mode alone
changes for others to read (`params["weight"] = 2.0`).
""",
        (
            Example("tf.losses.mean_squared_error(labels, logits)", "tf.keras.losses.MeanSquaredError()"),
            Example(
                "tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)",
                "tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)",
            ),
            Example(
                "tf.losses.softmax_cross_entropy(labels, logits, label_smoothing=0.1)",
                "tf.keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1)",
            ),
            Example(
                "tf.losses.sigmoid_cross_entropy(labels, logits)",
                "tf.keras.losses.BinaryCrossentropy(from_logits=True)",
            ),
            Example(
                "tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))",
                "tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)",
            ),
        ),
    ),
    Rule(
        "TFM302",
        "a weighted loss, or another loss reduction",
        Severity.MANUAL,
        """
With `weights=` TensorFlow 1 divides by the number of non-zero weights, Keras by the batch size: the loss is 60 to 90 %
off where weights are zero (measured). So such losses are written out in the `compute_loss` of the model, the weighted
mean in a function of three lines. Every reduction of `tf.losses.Reduction` is supported.
""",
    ),
    Rule(
        "TFM311",
        "the loss calls code that may create variables",
        Severity.MANUAL,
        """
A Keras model makes its variables in its network. A loss that calls a layer, or a function of another module, cannot be
moved to `compute_loss`, which sees the network's tensors only. Call the layer outside of the loss and give the loss its
result, or bring the function into the file of the model_fn.
""",
    ),
    Rule(
        "TFM312",
        "the loss selects variables in a way that gives others in Keras",
        Severity.MANUAL,
        """
`tf.trainable_variables()` and the collections of regularization hold what was made so far; a Keras model has all of its
variables whenever it is asked. Where more are made further down, move the line below the network.

Names of variables in TensorFlow 1 have the scopes in them; Keras numbers its layers over all models of a process. A
condition such as `"bias" not in v.name` stays where it says the same of both names for every layer; where it does not,
the layers get the names of TensorFlow 1 (`name="enc/dense"`). Layers that are made in a loop, or by a helper that is
called twice, have no name that is known: choose their variables in another way, by `v.shape` for one.

The order of `tf.trainable_variables()` is that in which they were made, in Keras it is another: `variables[0]` and
`zip(rates, variables)` are refused. So is a loss over all variables where a layer made some that the model's output is
not computed from: a Keras model does not have that layer.
""",
    ),
    Rule(
        "TFM303",
        "the evaluation loss is averaged over examples",
        Severity.REVIEW,
        """
`Estimator.evaluate` reports the mean of the batches' losses, `Model.evaluate` the mean over examples. They differ only
when the last batch is smaller: 19.17 against 14.5 on batches of 4, 4 and 2 (measured).
""",
    ),
    Rule(
        "TFM304",
        "labels are used outside the loss and the metrics",
        Severity.MANUAL,
        """
A Keras model sees the features only; labels reach the loss and the metrics. A network that reads the labels (teacher
forcing, for one) needs them among its features: move them there in the input function.
""",
    ),
)

_COMMON = ("scope", "loss_collection", "reduction")
# TensorFlow 1 name -> (its parameters, Keras class, function for the same per-example loss, extra keywords)
_LOSSES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "tf.losses.mean_squared_error": (("labels", "predictions", "weights", *_COMMON), "MeanSquaredError", ""),
    "tf.losses.absolute_difference": (("labels", "predictions", "weights", *_COMMON), "MeanAbsoluteError", ""),
    "tf.losses.huber_loss": (("labels", "predictions", "weights", "delta", *_COMMON), "Huber", ""),
    "tf.losses.softmax_cross_entropy": (
        ("labels", "logits", "weights", "label_smoothing", *_COMMON),
        "CategoricalCrossentropy",
        "from_logits=True",
    ),
    "tf.losses.sparse_softmax_cross_entropy": (
        ("labels", "logits", "weights", *_COMMON),
        "SparseCategoricalCrossentropy",
        "from_logits=True",
    ),
    "tf.losses.sigmoid_cross_entropy": (
        ("labels", "logits", "weights", "label_smoothing", *_COMMON),
        "BinaryCrossentropy",
        "from_logits=True",
    ),
}
_FIRST_NAME = {
    "tf.losses.softmax_cross_entropy": "onehot_labels",
    "tf.losses.sigmoid_cross_entropy": "multi_class_labels",
}
_NN = ("_sentinel", "labels", "logits", "dim", "name")
_CROSS_ENTROPIES: dict[str, tuple[tuple[str, ...], str]] = {
    "tf.nn.sparse_softmax_cross_entropy_with_logits": (
        ("_sentinel", "labels", "logits", "name"),
        "SparseCategoricalCrossentropy",
    ),
    "tf.nn.softmax_cross_entropy_with_logits_v2": (
        ("labels", "logits", "axis", "name", "dim"),
        "CategoricalCrossentropy",
    ),
    "tf.nn.softmax_cross_entropy_with_logits": (
        ("_sentinel", "labels", "logits", "dim", "name", "axis"),
        "CategoricalCrossentropy",
    ),
    "tf.nn.sigmoid_cross_entropy_with_logits": (("_sentinel", "labels", "logits", "name"), "BinaryCrossentropy"),
}
_OF_CLASSES = {
    "SparseCategoricalCrossentropy": ("from_logits", "reduction", "name"),
    "CategoricalCrossentropy": ("from_logits", "label_smoothing", "reduction", "name"),
}
_SAME_REDUCTIONS = ("SUM_BY_NONZERO_WEIGHTS", "MEAN", "SUM_OVER_BATCH_SIZE", "SUM_OVER_NONZERO_WEIGHTS")


@dataclass(frozen=True)
class DataLoss:
    """One loss term over labels and model output.

    `keras` is the class (`tf.keras.losses.X`), `arguments` its keyword arguments as text. A term that is
    `tf.reduce_mean` of some other expression has no class, only that expression, which Keras averages in the same way.
    """

    labels: cst.BaseExpression | None
    prediction: cst.BaseExpression | None
    keras: str | None
    arguments: tuple[str, ...]
    mean_of: cst.BaseExpression | None = None


def read_loss(call: cst.Call, imports: ImportMap, code: object) -> DataLoss | None:
    """Recognises one data term of a loss; None when the call is something else. Raises Blocked (TFM301, TFM302)."""
    name = imports.resolve(call.func) or ""
    if name in _LOSSES:
        return _tf_losses(call, name, imports, code)
    if name == "tf.reduce_mean":
        return _reduce_mean(call, imports)
    return None


def read_keras_loss(call: cst.Call, made: cst.Call, imports: ImportMap, code: object) -> DataLoss | None:
    """Recognises a call of a loss object of Keras, which `made` made; None where the call is something else.

    Only cross entropies of classes: the others compare labels `[b]` and an output `[b, 1]` as a table `[b, b]` in
    TensorFlow 1 (measured in 1.15.5), and example by example in `compile`.
    """
    name = imports.tensorflow(made.func) or ""
    keras = name.removeprefix("tf.keras.losses.")
    if keras not in _OF_CLASSES or any(arg.star for arg in (*made.args, *call.args)):
        return None
    bound = bind(made, _OF_CLASSES[keras], name, "TFM301")
    compared = bind(call, ("y_true", "y_pred", "sample_weight"), f"{name}()", "TFM301")
    labels, prediction = compared.get("y_true"), compared.get("y_pred")
    if labels is None or prediction is None or not is_none(compared.get("sample_weight")):
        return None
    reduction = bound.pop("reduction", None)
    if reduction is not None:
        given = string(reduction) or (imports.resolve(reduction) or "").rpartition(".")[2]
        if given.upper() not in ("AUTO", "SUM_OVER_BATCH_SIZE"):
            return None
    bound.pop("name", None)
    arguments = [f"{key}={code(value)}" for key, value in bound.items()]  # type: ignore[operator]
    return DataLoss(labels, prediction, keras, tuple(arguments))


def _tf_losses(call: cst.Call, name: str, imports: ImportMap, code: object) -> DataLoss:
    parameters, keras, extra = _LOSSES[name]
    first = _FIRST_NAME.get(name)
    if first is not None:
        parameters = (first, *parameters[1:])
    bound = bind(call, parameters, name, "TFM301")
    labels = bound.pop(parameters[0], None)
    prediction = bound.pop(parameters[1], None)
    if labels is None or prediction is None:
        raise Blocked("TFM301", call, f"`{name}` is called without labels or predictions")
    weights = bound.pop("weights", None)
    if weights is not None and number(weights) != 1.0:
        raise Blocked(
            "TFM302",
            weights,
            (
                "a weighted loss is unsupported: TensorFlow 1 divides by the number of non-zero "
                "weights, Keras by the batch size"
            ),
        )
    reduction = bound.pop("reduction", None)
    if reduction is not None and (imports.resolve(reduction) or "").rpartition(".")[2] not in _SAME_REDUCTIONS:
        raise Blocked("TFM302", reduction, "this reduction is unsupported")
    bound.pop("scope", None)
    collection = bound.pop("loss_collection", None)
    if collection is not None and is_none(collection):
        pass  # the term is used directly, whether it is collected or not
    arguments = [extra] if extra else []
    for key, value in bound.items():
        if not (key == "label_smoothing" and number(value) == 0.0):
            arguments.append(f"{key}={code(value)}")  # type: ignore[operator]
    if keras == "Huber" and "delta" not in bound:
        arguments.append("delta=1.0")
    return DataLoss(labels, prediction, keras, tuple(arguments))


def _reduce_mean(call: cst.Call, imports: ImportMap) -> DataLoss | None:
    if any(arg.star for arg in call.args):
        return None
    bound = bind(call, ("input_tensor", "axis", "keepdims", "name"), "tf.reduce_mean", "TFM301")
    inner = bound.get("input_tensor")
    if inner is None or set(bound) - {"input_tensor", "name"}:
        return None
    if isinstance(inner, cst.Call):
        found = read_cross_entropy(inner, imports)
        if found is not None:
            return found
    return DataLoss(None, None, None, (), mean_of=inner)


def read_cross_entropy(call: cst.Call, imports: ImportMap) -> DataLoss | None:
    """Recognises a `tf.nn.*_cross_entropy_with_logits` call."""
    name = imports.resolve(call.func) or ""
    if name not in _CROSS_ENTROPIES:
        return None
    parameters, keras = _CROSS_ENTROPIES[name]
    bound = bind(call, parameters, name, "TFM301")
    for key in ("axis", "dim"):
        if key in bound and number(bound[key]) != -1:
            raise Blocked("TFM301", call, f"`{key}=` must be -1")
    if "labels" not in bound or "logits" not in bound:
        raise Blocked("TFM301", call, f"`{name}` is called without labels or logits")
    return DataLoss(bound["labels"], bound["logits"], keras, ("from_logits=True",))


# -- calls in code that stays code (a method of the model, a helper function) ---------------------------------------

_SIGNATURES: dict[str, tuple[str, ...]] = {
    **{name: (_FIRST_NAME.get(name, "labels"), *known[0][1:]) for name, known in _LOSSES.items()},
    "tf.losses.log_loss": ("labels", "predictions", "weights", "epsilon", "scope", "loss_collection", "reduction"),
    "tf.losses.hinge_loss": ("labels", "logits", "weights", "scope", "loss_collection", "reduction"),
    "tf.losses.cosine_distance": ("labels", "predictions", "axis", "weights", *_COMMON, "dim"),
    "tf.losses.compute_weighted_loss": ("losses", "weights", *_COMMON),
}
#: Functions that a file gets, with `{name}` where the name goes.
WEIGHTED_MEAN = '''\
def {name}(losses, weights):
    """The weighted losses over the number of non-zero weights, as tf.losses of TensorFlow 1 had it."""
    weights = tf.broadcast_to(tf.cast(weights, losses.dtype), tf.shape(losses))
    return tf.math.divide_no_nan(tf.reduce_sum(losses * weights), tf.math.count_nonzero(weights, dtype=losses.dtype))
'''
WEIGHTED_AVERAGE = '''\
def {name}(losses, weights):
    """The weighted losses over the sum of the weights."""
    weights = tf.broadcast_to(tf.cast(weights, losses.dtype), tf.shape(losses))
    return tf.math.divide_no_nan(tf.reduce_sum(losses * weights), tf.reduce_sum(weights))
'''


def _written_out(site: Site) -> cst.BaseExpression:
    """A call of tf.losses as arithmetic over its losses."""
    bound = site.arguments(_SIGNATURES[site.name], "TFM301")
    weights = bound.get("weights")
    factor = 1.0 if weights is None else number(weights)
    reduction = "SUM_BY_NONZERO_WEIGHTS"
    if "reduction" in bound:
        given = string(bound["reduction"]) or site.code(site.originals(_SIGNATURES[site.name], "TFM301")["reduction"])
        reduction = given.rpartition(".")[2].upper()
    if reduction not in (*_SAME_REDUCTIONS, "SUM", "NONE"):
        raise Blocked("TFM302", bound["reduction"], "this reduction is not one of tf.losses.Reduction")
    simple = weights is None or factor is not None
    losses = _losses_of(site, bound, means=simple and reduction in _SAME_REDUCTIONS)
    if simple:
        if reduction in _SAME_REDUCTIONS:
            # The mean over the sum of equal weights does not see them.
            factor = 1.0 if reduction == "MEAN" else factor
            losses = f"tf.reduce_mean({losses})"
        elif reduction == "SUM":
            losses = f"tf.reduce_sum({losses})"
        assert weights is None or factor is not None
        scaled = losses if factor == 1.0 or weights is None else f"{site.code(weights)} * {_operand(losses)}"
        return expression(f"({scaled})" if scaled is not losses else scaled)
    assert weights is not None
    given = site.code(weights)
    if reduction in ("SUM_BY_NONZERO_WEIGHTS", "SUM_OVER_NONZERO_WEIGHTS"):
        return expression(f"{site.helper('weighted_mean', WEIGHTED_MEAN)}({losses}, {given})")
    if reduction == "MEAN":
        return expression(f"{site.helper('weighted_average', WEIGHTED_AVERAGE)}({losses}, {given})")
    if site.name == "tf.losses.sparse_softmax_cross_entropy":
        # TensorFlow 1 drops the last axis of weights [b, 1] here; the product would be a table.
        given = f"tf.reshape({given}, [-1])"
    product = f"{_operand(losses)} * {_as_float(given)}"
    return expression(
        {"SUM": f"tf.reduce_sum({product})", "NONE": f"({product})"}.get(reduction, f"tf.reduce_mean({product})")
    )


def _losses_of(site: Site, bound: dict[str, cst.BaseExpression], means: bool) -> str:
    """The losses of single elements (or examples, where TensorFlow 1 has them by example); with `means`, something
    that has the same mean and reads better.
    """
    parameters = _SIGNATURES[site.name]
    if parameters[0] not in bound or (len(parameters) > 5 and parameters[1] not in bound):
        raise Blocked("TFM301", site.original, f"`{site.name}` is called without labels or predictions")
    name = site.name.removeprefix("tf.losses.")
    label = site.code(bound[parameters[0]])
    if name == "compute_weighted_loss":
        return label
    output = site.code(bound[parameters[1]])
    smoothing = bound.get("label_smoothing")
    smooth = smoothing is not None and number(smoothing) != 0.0
    extra = f", label_smoothing={site.code(smoothing)}" if smoothing is not None and smooth else ""
    if name == "softmax_cross_entropy":
        # TensorFlow 1 sends no gradient to these labels, wherever they come from.
        label = label if label.startswith(("tf.one_hot(", "tf.stop_gradient(")) else f"tf.stop_gradient({label})"
        return f"tf.keras.losses.categorical_crossentropy({label}, {output}, from_logits=True{extra})"
    if name == "sparse_softmax_cross_entropy":
        return f"tf.keras.losses.sparse_categorical_crossentropy({label}, {output}, from_logits=True)"
    if means and name in ("mean_squared_error", "absolute_difference"):
        function = {"mean_squared_error": "mean_squared_error", "absolute_difference": "mean_absolute_error"}[name]
        return f"tf.keras.losses.{function}({label}, {output})"
    if name in ("huber_loss", "sigmoid_cross_entropy"):
        if name == "sigmoid_cross_entropy" and not means and not smooth:
            return f"tf.nn.sigmoid_cross_entropy_with_logits({_as_float(label)}, {output})"
        delta = site.code(bound["delta"]) if "delta" in bound else "1.0"
        call = "huber" if name == "huber_loss" else "binary_crossentropy"
        rest = f"delta={delta}" if name == "huber_loss" else f"from_logits=True{extra}"
        if not means:
            # Keras takes the mean over the last axis: one more keeps every element.
            label, output = (f"tf.expand_dims({text}, -1)" for text in (label, output))
        return f"tf.keras.losses.{call}({label}, {output}, {rest})"
    label = _as_float(label)
    if name == "mean_squared_error":
        return f"tf.math.squared_difference({output}, {label})"
    if name == "absolute_difference":
        return f"tf.abs({_operand(output)} - {_operand(label)})"
    if name == "hinge_loss":
        return f"tf.nn.relu(1.0 - (2.0 * {_operand(label)} - 1.0) * {_operand(output)})"
    if name == "cosine_distance":
        axis = bound.get("axis", bound.get("dim"))
        if axis is None:
            raise Blocked("TFM301", site.original, "`tf.losses.cosine_distance` is called without an axis")
        product = f"{_operand(label)} * {_operand(output)}"
        return f"(1.0 - tf.reduce_sum({product}, axis={site.code(axis)}, keepdims=True))"
    assert name == "log_loss"
    epsilon = site.code(bound["epsilon"]) if "epsilon" in bound else "1e-7"
    yes = f"{_operand(label)} * tf.math.log({_operand(output)} + {epsilon})"
    no = f"(1.0 - {_operand(label)}) * tf.math.log(1.0 - {_operand(output)} + {epsilon})"
    return f"(-{yes} - {no})"


def _as_float(text: str) -> str:
    return text if text.startswith("tf.cast(") and text.endswith("tf.float32)") else f"tf.cast({text}, tf.float32)"


def _operand(text: str) -> str:
    """The text of an expression, in parentheses where an operator beside it would take it apart."""
    node = cst.parse_expression(text)
    simple = isinstance(node, (cst.Name, cst.Call, cst.Attribute, cst.Subscript, cst.Integer, cst.Float))
    return text if simple or node.lpar else f"({text})"


def _weighted_cross_entropy(site: Site) -> cst.BaseExpression:
    """Its labels were called targets before TensorFlow 1.15."""
    bound = site.arguments(("labels", "logits", "pos_weight", "name", "targets"), "TFM301")
    bound = {"labels": bound.pop("targets", cst.Name("None")), **bound}
    if is_none(bound["labels"]) or "logits" not in bound or "pos_weight" not in bound:
        raise Blocked("TFM301", site.original, f"`{site.name}` is called without labels, logits or pos_weight")
    return expression(call_text(site.name, [f"{key}={site.code(value)}" for key, value in bound.items()]))


CALLS: dict[str, CallRule] = {
    **dict.fromkeys(_SIGNATURES, _written_out),
    "tf.nn.weighted_cross_entropy_with_logits": _weighted_cross_entropy,
}
