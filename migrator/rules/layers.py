"""`tf.layers.*` to `tf.keras.layers.*`."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from migrator.findings import Severity
from migrator.program.calls import is_false, is_none, is_true
from migrator.program.modes import TRAIN
from migrator.program.parsed import Blocked
from migrator.rules.rule import Example, Rule
from migrator.rules.site import CallRule, Site

RULES = (
    Rule(
        "TFM201",
        "tf.layers becomes tf.keras.layers",
        Severity.MIGRATED,
        """
The functional form `tf.layers.dense(x, 10)` becomes a Keras layer that is called: `tf.keras.layers.Dense(10)(x)`; the
object form keeps its shape. Default initializers (Glorot uniform kernels, zero biases) and the layout of the weights
are the same in both, so losses agree to rounding: 1e-7 to 3e-7 over 60 steps of momentum (measured, TF 1.15.5
against tf_keras 2.21).

`training=mode == ModeKeys.TRAIN` is dropped: Keras passes the phase to its layers. A dropout without `training` did
nothing in TensorFlow 1, and says so afterwards.
""",
        (
            Example(
                "tf.layers.dense(net, 10, activation=tf.nn.relu)",
                "tf.keras.layers.Dense(10, activation=tf.nn.relu)(net)",
            ),
            Example("tf.layers.dense(inputs=net, units=10)", "tf.keras.layers.Dense(units=10)(net)"),
            Example("tf.layers.Dense(1)(features)", "tf.keras.layers.Dense(1)(features)"),
            Example("tf.layers.dropout(net)", "tf.keras.layers.Dropout(rate=0.5)(net, training=False)"),
            Example(
                "tf.layers.dropout(net, 0.4, training=mode == tf.estimator.ModeKeys.TRAIN)",
                "tf.keras.layers.Dropout(0.4)(net)",
            ),
            Example("tf.layers.flatten(net)", "tf.keras.layers.Flatten()(net)"),
            Example(
                'tf.layers.conv2d(net, 32, [5, 5], 1, "same")',
                'tf.keras.layers.Conv2D(32, [5, 5], strides=1, padding="same")(net)',
            ),
            Example("tf.layers.max_pooling2d(net, 2, 2)", "tf.keras.layers.MaxPooling2D(2, 2)(net)"),
        ),
    ),
    Rule(
        "TFM202",
        "a layer argument has no Keras counterpart",
        Severity.MANUAL,
        """
`reuse=` shares the variables of an earlier call. In Keras a layer is an object: make it once and call it twice.
`training=` may be the mode test, True or False; anything else (a tensor, a parameter) cannot be resolved here.
""",
        (Example("tf.layers.dense(net, 10, reuse=True)", None),),
    ),
)

_WEIGHTS = (
    "activation use_bias kernel_initializer bias_initializer kernel_regularizer bias_regularizer"
    " activity_regularizer kernel_constraint bias_constraint trainable name reuse"
)


@dataclass(frozen=True)
class _Layer:
    """A Keras layer, its TensorFlow 1 parameters after `inputs`, and how many of them stay positional."""

    keras: str
    parameters: tuple[str, ...]
    positional: int


def _layer(keras: str, parameters: str, positional: int) -> _Layer:
    return _Layer(keras, tuple(parameters.split()), positional)


_CONV = "strides padding data_format dilation_rate " + _WEIGHTS
_POOL = "pool_size strides padding data_format name"
_LAYERS = {
    "dense": _layer("Dense", "units " + _WEIGHTS, 1),
    "conv2d": _layer("Conv2D", "filters kernel_size " + _CONV, 2),
    "max_pooling2d": _layer("MaxPooling2D", _POOL, 2),
    "average_pooling2d": _layer("AveragePooling2D", _POOL, 2),
    "flatten": _layer("Flatten", "name data_format", 0),
    "dropout": _layer("Dropout", "rate noise_shape seed training name", 1),
}
_CLASSES = {
    "Dense": "dense",
    "Conv2D": "conv2d",
    "MaxPooling2D": "max_pooling2d",
    "AveragePooling2D": "average_pooling2d",
    "Flatten": "flatten",
    "Dropout": "dropout",
}


def _arguments(site: Site, layer: _Layer, args: list[cst.Arg]) -> list[cst.Arg]:
    """The layer's own arguments as written, those that Keras has not or orders otherwise given by keyword."""
    kept: list[cst.Arg] = []
    for index, arg in enumerate(args):
        if arg.star:
            raise Blocked("TFM202", site.original, f"`{site.name}` is called with * or ** arguments: write them out")
        name = arg.keyword.value if arg.keyword is not None else layer.parameters[index]
        if name not in layer.parameters:
            raise Blocked("TFM202", site.original, f"`{site.name}` has no argument `{name}` that tf-migrate knows")
        if name in ("reuse", "training"):
            if name == "reuse" and not (is_none(arg.value) or is_false(arg.value)):
                raise Blocked("TFM202", site.original, "`reuse=`: in Keras, make the layer once and call it twice")
            continue
        if name.endswith("_regularizer") and not site.keep_regularizers:
            continue
        if arg.keyword is None and index >= layer.positional:
            arg = arg.with_changes(
                keyword=cst.Name(name),
                equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
            )
        kept.append(arg)
    if layer.keras == "Dropout" and not any(a.keyword is None or a.keyword.value == "rate" for a in kept):
        kept.insert(0, _keyword("rate", cst.Float("0.5")))
    last = kept[-1].comma if kept else None
    if isinstance(last, cst.Comma) and isinstance(last.whitespace_after, cst.SimpleWhitespace):
        kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return kept


def _keyword(name: str, value: cst.BaseExpression) -> cst.Arg:
    return cst.Arg(
        value, keyword=cst.Name(name), equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    )


def _function(site: Site) -> cst.BaseExpression:
    """`tf.layers.dense(inputs, ...)` to `tf.keras.layers.Dense(...)(inputs)`."""
    layer = _LAYERS[site.name.rpartition(".")[2]]
    args = list(site.call.args)
    if any(arg.star for arg in args):
        raise Blocked("TFM202", site.original, f"`{site.name}` is called with * or ** arguments: write them out")
    if args and args[0].keyword is None:
        inputs, rest = args[0].value, args[1:]
    else:
        named = [a for a in args if a.keyword is not None and a.keyword.value == "inputs"]
        if not named:
            raise Blocked("TFM202", site.original, f"`{site.name}` is called without its input")
        inputs, rest = named[0].value, [a for a in args if a is not named[0]]
    if len([a for a in rest if a.keyword is None]) > len(layer.parameters):
        raise Blocked("TFM202", site.original, f"`{site.name}` has too many positional arguments")
    call_args = [cst.Arg(inputs)]
    if layer.keras == "Dropout":
        training = _training(site, layer)
        if training is not None:
            call_args.append(_keyword("training", training))
    func = _new_name(site.call.func, layer.keras)
    own = cst.Call(func, _arguments(site, layer, rest))
    if rest and args and rest[-1] is args[-1] and own.args:
        own = own.with_changes(whitespace_before_args=site.call.whitespace_before_args)
        if own.args[-1].value is args[-1].value:
            last = own.args[-1].with_changes(comma=args[-1].comma, whitespace_after_arg=args[-1].whitespace_after_arg)
            own = own.with_changes(args=[*own.args[:-1], last])
    return cst.Call(own, call_args, lpar=site.call.lpar, rpar=site.call.rpar)


def _training(site: Site, layer: _Layer) -> cst.BaseExpression | None:
    """The `training` argument of a dropout's call: None when Keras decides, else True or False."""
    given = site.originals(("inputs", *layer.parameters), "TFM202").get("training")
    if given is None or is_false(given):
        return cst.Name("False")
    if is_true(given):
        return cst.Name("True")
    when = site.modes.when(given) if site.modes is not None else None
    if when == frozenset((TRAIN,)):
        return None
    raise Blocked("TFM202", site.original, "`training=` is neither the test for TRAIN mode nor True or False")


def _class(site: Site) -> cst.BaseExpression:
    """`tf.layers.Dense(...)` to `tf.keras.layers.Dense(...)`."""
    name = site.name.rpartition(".")[2]
    layer = _LAYERS[_CLASSES[name]]
    parameters = tuple(p for p in layer.parameters if p not in ("reuse", "training"))
    if name == "Flatten":
        parameters = ("data_format", "name")
    layer = _Layer(layer.keras, parameters, layer.positional)
    return site.call.with_changes(
        func=_new_name(site.call.func, name), args=_arguments(site, layer, list(site.call.args))
    )


def _new_name(old: cst.BaseExpression, keras: str) -> cst.BaseExpression:
    return cst.parse_expression(f"tf.keras.layers.{keras}")


CALLS: dict[str, CallRule] = {
    **{f"tf.layers.{name}": _function for name in _LAYERS},
    **{f"tf.layers.{name}": _class for name in _CLASSES},
}
