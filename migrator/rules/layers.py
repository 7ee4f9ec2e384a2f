"""`tf.layers.*` to `tf.keras.layers.*`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Optional

import libcst as cst

from migrator.findings import Severity
from migrator.program.calls import is_false, is_none, is_true
from migrator.program.modes import ALL, TRAIN
from migrator.program.parsed import Blocked
from migrator.rules.dropout import in_training
from migrator.rules.rule import Example, Rule
from migrator.rules.site import CallRule, Site, keyword

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
            Example("tf.layers.Dense(1, tf.nn.relu).apply(x)", "tf.keras.layers.Dense(1, activation=tf.nn.relu)(x)"),
            Example("tf.layers.dropout(net)", "tf.keras.layers.Dropout(rate=0.5)(net, training=False)"),
            Example(
                "tf.layers.dropout(net, 0.4, training=mode == tf.estimator.ModeKeys.TRAIN)",
                "tf.keras.layers.Dropout(0.4)(net)",
            ),
            Example(
                "tf.layers.Dropout(0.4)(net, training=mode == tf.estimator.ModeKeys.TRAIN)",
                "tf.keras.layers.Dropout(0.4)(net)",
            ),
            Example("tf.layers.flatten(net)", "tf.keras.layers.Flatten()(net)"),
            Example(
                'tf.layers.conv2d(net, 32, [5, 5], 1, "same")',
                'tf.keras.layers.Conv2D(32, [5, 5], strides=1, padding="same")(net)',
            ),
            Example(
                "tf.layers.conv1d(net, 8, 3, dilation_rate=2)", "tf.keras.layers.Conv1D(8, 3, dilation_rate=2)(net)"
            ),
            Example(
                "tf.layers.separable_conv2d(net, 8, 3, depth_multiplier=2)",
                "tf.keras.layers.SeparableConv2D(8, 3, depth_multiplier=2)(net)",
            ),
            Example(
                "tf.layers.conv2d_transpose(net, 8, 3, 2)",
                "tf.keras.layers.Conv2DTranspose(8, 3, strides=2)(net)",
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
`training=` may be the mode test, True or False; anything else (a tensor, a parameter) cannot be resolved here. A
`tf.layers.Dropout` or `tf.layers.BatchNormalization` object must be called where it is made or under the one name that
it is given: the phase belongs to its call in TensorFlow 1, and to the model in Keras.

A `tf.keras.layers.BatchNormalization` in a model_fn, or a network of `tf.keras.applications` that has some, adds its
updates to no collection: unless the train_op runs `model.get_updates_for(...)` or `model.updates`, its moving averages
stay as they were made (verified: 0 after a step of 2.15.1), where `fit` moves them. The bridge keeps such a program.
""",
        (
            Example("tf.layers.dense(net, 10, reuse=True)", None),
            Example("tf.layers.batch_normalization(net, renorm=True)", None),
            Example("[tf.layers.Dropout(0.5)]", None),
        ),
    ),
    Rule(
        "TFM220",
        "tf.layers.batch_normalization becomes tf.keras.layers.BatchNormalization",
        Severity.MIGRATED,
        """
Defaults, gradients and statistics are the same in tf_keras (loss 2e-7, moving variance 7e-7 over 60 steps, measured
against TF 1.15.5; both use the fused kernel on images, whose moving variance is the unbiased one; Keras 3 does not,
and its moving variance is off by 7e-4 to 2e-3). Keras updates the moving averages by itself: `UPDATE_OPS` and the
`tf.control_dependencies` around the train_op go.

A call without `training=` normalizes with the moving averages in TensorFlow 1, in training too, and says so
afterwards (`training=False`); letting Keras choose instead changed the loss by 99 % (measured).
""",
        (
            Example(
                "tf.layers.batch_normalization(net, training=mode == tf.estimator.ModeKeys.TRAIN)",
                "tf.keras.layers.BatchNormalization()(net)",
            ),
            Example(
                "tf.layers.batch_normalization(net, -1, 0.9, fused=True, training=mode == tf.estimator.ModeKeys.TRAIN)",
                "tf.keras.layers.BatchNormalization(axis=-1, momentum=0.9)(net)",
            ),
            Example("tf.layers.batch_normalization(net)", "tf.keras.layers.BatchNormalization()(net, training=False)"),
        ),
    ),
    Rule(
        "TFM221",
        "moving averages that never move",
        Severity.REVIEW,
        """
The model_fn never runs `tf.GraphKeys.UPDATE_OPS`, so the moving mean and variance of its batch normalization keep their
initial values, and evaluation normalizes with those. That is most likely a mistake, but it is what the program
computes: `momentum=1.0` keeps it so. With moving averages that move, evaluation differed by 2e-1 after 60 steps
(measured). To have them move, take `momentum=1.0` out (the default is 0.99).
""",
    ),
    Rule(
        "TFM222",
        "a layer that is always in training mode",
        Severity.REVIEW,
        """
The layer is called with `training=True` (`tf.contrib.layers`: without `is_training`, whose default is True, or
`tf.nn.dropout` outside any test of the mode): it drops units, or normalizes with the statistics of the batch, in
evaluation and prediction too. That is kept. Was it not meant, take `training=True` out. Keras also moves the averages
of such a batch normalization while it evaluates; nothing reads them.
""",
    ),
)

_WEIGHTS = (
    "activation use_bias kernel_initializer bias_initializer kernel_regularizer bias_regularizer"
    " activity_regularizer kernel_constraint bias_constraint trainable name reuse"
)
_SEPARABLE = (
    "activation use_bias depthwise_initializer pointwise_initializer bias_initializer depthwise_regularizer"
    " pointwise_regularizer bias_regularizer activity_regularizer depthwise_constraint pointwise_constraint"
    " bias_constraint trainable name reuse"
)
_NORMALIZATION = (
    "axis momentum epsilon center scale beta_initializer gamma_initializer moving_mean_initializer"
    " moving_variance_initializer beta_regularizer gamma_regularizer beta_constraint gamma_constraint"
)


Value = Callable[[Site, cst.BaseExpression], Optional[tuple[str, cst.BaseExpression]]]


@dataclass(frozen=True)
class Layer:
    """A Keras layer and the TensorFlow 1 function that it stands for.

    `parameters` are those of the function after `inputs`, in order; the first `positional` mean the same by position
    in Keras. `names` are those that Keras calls otherwise. `added` are arguments to write out where the function's
    default differs from Keras': by the parameter that was not given. `values` turn an argument into the Keras one,
    name and value, or None where Keras is not given it. `phase` is the parameter that says whether it trains, and
    `phase_default` its default.
    """

    keras: str
    parameters: tuple[str, ...]
    positional: int
    names: Mapping[str, str] = field(default_factory=dict)
    added: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    values: Mapping[str, Value] = field(default_factory=dict)
    phase: str | None = None
    phase_default: bool = False


def _layer(keras: str, parameters: str, positional: int, phase: str | None = None) -> Layer:
    added = {"rate": ("rate", "0.5")} if keras == "Dropout" else {}
    return Layer(keras, tuple(parameters.split()), positional, added=added, phase=phase)


_CONV = "filters kernel_size strides padding data_format dilation_rate " + _WEIGHTS
_TRANSPOSE = "filters kernel_size strides padding data_format " + _WEIGHTS
_SEPARABLE_CONV = "filters kernel_size strides padding data_format dilation_rate depth_multiplier " + _SEPARABLE
_POOL = "pool_size strides padding data_format name"
_RENORM = "renorm renorm_clipping renorm_momentum fused"
_LAYERS = {
    "dense": _layer("Dense", "units " + _WEIGHTS, 1),
    "conv1d": _layer("Conv1D", _CONV, 2),
    "conv2d": _layer("Conv2D", _CONV, 2),
    "conv3d": _layer("Conv3D", _CONV, 2),
    "conv2d_transpose": _layer("Conv2DTranspose", _TRANSPOSE, 2),
    "conv3d_transpose": _layer("Conv3DTranspose", _TRANSPOSE, 2),
    "separable_conv1d": _layer("SeparableConv1D", _SEPARABLE_CONV, 2),
    "separable_conv2d": _layer("SeparableConv2D", _SEPARABLE_CONV, 2),
    "max_pooling1d": _layer("MaxPooling1D", _POOL, 2),
    "max_pooling2d": _layer("MaxPooling2D", _POOL, 2),
    "max_pooling3d": _layer("MaxPooling3D", _POOL, 2),
    "average_pooling1d": _layer("AveragePooling1D", _POOL, 2),
    "average_pooling2d": _layer("AveragePooling2D", _POOL, 2),
    "average_pooling3d": _layer("AveragePooling3D", _POOL, 2),
    "flatten": _layer("Flatten", "name data_format", 0),
    "dropout": _layer("Dropout", "rate noise_shape seed training name", 1, "training"),
    "batch_normalization": _layer(
        "BatchNormalization",
        f"{_NORMALIZATION} training trainable name reuse {_RENORM} virtual_batch_size adjustment",
        0,
        "training",
    ),
}


def _of_class(layer: Layer) -> Layer:
    """The parameters of the class: no `reuse`, the phase belongs to the call, and two orders of its own."""
    parameters = tuple(p for p in layer.parameters if p not in ("reuse", "training"))
    if layer.keras == "Flatten":
        parameters = ("data_format", "name")
    if layer.keras == "BatchNormalization":
        parameters = tuple(f"{_NORMALIZATION} {_RENORM} trainable virtual_batch_size adjustment name".split())
    return Layer(layer.keras, parameters, layer.positional, phase=layer.phase)


_CLASSES = {f"tf.layers.{layer.keras}": _of_class(layer) for layer in _LAYERS.values()}
# Arguments that Keras has not, and the one thing that they may say.
_ONLY_NONE = ("renorm_clipping", "virtual_batch_size", "adjustment", "batch_weights")
_NEVER = ("renorm", "zero_debias_moving_mean")


def read_phase(value: cst.BaseExpression | None, default: bool, site: Site) -> bool | None:
    """What a `training=` argument says: True or False for always, None for the TRAIN mode only.

    Raises Blocked (TFM202) for anything else.
    """
    when = _literal(value, default)
    if when is None:
        assert value is not None
        modes = site.modes.when(value) if site.modes is not None else None
        if modes == frozenset((TRAIN,)):
            return None
        if modes is None or modes not in (ALL, frozenset()):
            raise Blocked("TFM202", value, "`training=` must be `mode == ModeKeys.TRAIN`, True or False")
        when = modes == ALL
    return None if when and site.only_training else when


def _literal(value: cst.BaseExpression | None, default: bool) -> bool | None:
    if value is None:
        return default
    return is_true(value) if is_true(value) or is_false(value) else None


# -- calls -------------------------------------------------------------------------------------------------------------


def named_arguments(site: Site, parameters: Sequence[str], args: Sequence[cst.Arg]) -> list[tuple[str, cst.Arg]]:
    """Arguments with their TensorFlow 1 names. Raises Blocked (TFM202)."""
    found = []
    for index, arg in enumerate(args):
        if arg.star:
            raise Blocked("TFM202", site.original, f"`{site.name}` is called with * or ** arguments: write them out")
        if arg.keyword is None and index >= len(parameters):
            raise Blocked(
                "TFM202", site.original, f"`{site.name}` has too many positional arguments: pass them by keyword"
            )
        name = arg.keyword.value if arg.keyword is not None else parameters[index]
        if name not in parameters:
            raise Blocked("TFM202", site.original, f"`{site.name}` has no argument `{name}` known to tf-migrate")
        found.append((name, arg))
    return found


def split_inputs(site: Site) -> tuple[cst.BaseExpression, list[cst.Arg]]:
    """The `inputs` of a functional layer, and the other arguments."""
    args = list(site.call.args)
    if any(arg.star for arg in args):
        raise Blocked("TFM202", site.original, f"`{site.name}` is called with * or ** arguments: write them out")
    if args and args[0].keyword is None:
        return args[0].value, args[1:]
    for arg in args:
        if arg.keyword is not None and arg.keyword.value == "inputs":
            return arg.value, [a for a in args if a is not arg]
    raise Blocked("TFM202", site.original, f"`{site.name}` is called without its input")


def _skips(site: Site, layer: Layer, name: str, value: cst.BaseExpression) -> bool:
    """Whether Keras is not given an argument. Raises Blocked (TFM202) where it would have to be."""
    if name == layer.phase:
        return True
    if name == "reuse":
        shared = is_none(value) or is_false(value) or site.tensorflow(value) == "tf.AUTO_REUSE"
        if not shared:
            raise Blocked(
                "TFM202", site.original, "`reuse=` is unsupported: in Keras, create the layer once and call it twice"
            )
        return True
    if name in _ONLY_NONE or name in _NEVER:
        if not (is_none(value) or (name in _NEVER and is_false(value))):
            raise Blocked("TFM202", site.original, f"`{name}=` of `{site.name}` is unsupported")
        return True
    if name in ("renorm_momentum", "renorm_decay"):
        return True
    if name == "fused":
        # On images tf_keras is fused unless told otherwise, on anything else neither is.
        if not (is_none(value) or is_true(value) or is_false(value)):
            raise Blocked("TFM202", site.original, "`fused=` is computed: write a literal")
        return not is_false(value)
    if name == "trainable" and layer.keras == "BatchNormalization" and not is_true(value):
        message = (
            "`trainable=` of a batch normalization is unsupported: Keras would also stop using the batch statistics"
        )
        raise Blocked("TFM202", site.original, message)
    return name.endswith("_regularizer") and not site.keep_regularizers


def own_arguments(site: Site, layer: Layer, args: Sequence[cst.Arg]) -> list[cst.Arg]:
    """The layer's own arguments as written, those that Keras has not or orders otherwise given by keyword."""
    kept: list[cst.Arg] = []
    given = set()
    for index, (name, arg) in enumerate(named_arguments(site, layer.parameters, args)):
        given.add(name)
        if _skips(site, layer, name, arg.value):
            continue
        keras = layer.names.get(name, name)
        if keras == "name" and site.original in site.training.layer_names:
            if not site.training.layer_names[site.original]:
                continue  # two layers would have it
            quoted = cst.SimpleString(f'"{site.training.layer_names[site.original]}"')
            arg = arg.with_changes(value=quoted)
        if name in layer.values:
            made = layer.values[name](site, arg.value)
            if made is None:
                continue
            keras, arg = made[0], arg.with_changes(value=made[1])
        if arg.keyword is None and (index >= layer.positional or len(kept) != index):
            arg = keyword(keras, arg.value).with_changes(comma=arg.comma)
        elif arg.keyword is not None and arg.keyword.value != keras:
            arg = arg.with_changes(keyword=cst.Name(keras))
        kept.append(arg)
    for missing, (name, text) in layer.added.items():
        if missing not in given:
            kept = add_argument(kept, keyword(name, cst.parse_expression(text)))
    if site.training.layer_names.get(site.original) and not given & {"name", "scope"}:
        named = cst.SimpleString(f'"{site.training.layer_names[site.original]}"')
        kept = add_argument(kept, keyword("name", named))
    for name, node in site.training.own.carried.get(site.original, {}).items():
        kept = _given_by_scope(site, layer, name, node, given, kept)
    if layer.keras == "BatchNormalization" and site.training.divided:
        message = "batches are normalized over all replicas together (`synchronized=True`), as on one device"
        site.remarks.append(Blocked("TFM738", site.original, message))
        kept = add_argument(kept, keyword("synchronized", cst.Name("True")))
    return tidy_end(kept)


def _given_by_scope(
    site: Site, layer: Layer, name: str, node: cst.BaseExpression, given: Collection[str], args: list[cst.Arg]
) -> list[cst.Arg]:
    """The arguments with what a variable scope sets for the weights that are given nothing themselves."""
    if name == "regularizer" and not site.keep_regularizers:
        return args
    # A bias starts at zeros, whatever the scope says.
    ends = (f"kernel_{name}", *((f"bias_{name}",) if name == "regularizer" else ()))
    for parameter in [one for one in layer.parameters if one.endswith(ends) and one not in given]:
        args = add_argument(args, keyword(layer.names.get(parameter, parameter), site.rewritten(node)))
    return args


def add_argument(args: list[cst.Arg], arg: cst.Arg) -> list[cst.Arg]:
    """`args` and one more, laid out like the ones before it."""
    if not args:
        return [arg]
    last = args[-1]
    separator = args[0].comma if len(args) > 1 else cst.MaybeSentinel.DEFAULT
    if isinstance(last.comma, cst.Comma):
        arg = arg.with_changes(comma=last.comma)
    return [*args[:-1], last.with_changes(comma=separator), arg]


def tidy_end(args: list[cst.Arg]) -> list[cst.Arg]:
    """Without a comma before the closing parenthesis that was one between arguments."""
    last = args[-1].comma if args else None
    if isinstance(last, cst.Comma) and isinstance(last.whitespace_after, cst.SimpleWhitespace):
        args[-1] = args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return args


def build(
    site: Site, layer: Layer, inputs: cst.BaseExpression, rest: list[cst.Arg], call_args: Sequence[cst.Arg] = ()
) -> cst.Call:
    """`tf.keras.layers.X(rest)(inputs)`, with the layout of the original call."""
    args = list(site.call.args)
    own = cst.Call(keras_name(layer.keras), own_arguments(site, layer, rest))
    if rest and args and rest[-1] is args[-1] and own.args:
        own = own.with_changes(whitespace_before_args=site.call.whitespace_before_args)
        if own.args[-1].value is args[-1].value:
            last = own.args[-1].with_changes(comma=args[-1].comma, whitespace_after_arg=args[-1].whitespace_after_arg)
            own = own.with_changes(args=[*own.args[:-1], last])
    return cst.Call(own, [cst.Arg(inputs), *call_args], lpar=site.call.lpar, rpar=site.call.rpar)


def keras_name(name: str) -> cst.BaseExpression:
    """`tf.keras.layers.X`."""
    return cst.parse_expression(f"tf.keras.layers.{name}")


def phase_arguments(site: Site, phase: bool | None) -> list[cst.Arg]:
    """The `training=` of a call, and a remark where it is True."""
    if phase is None:
        return []
    if phase:
        message = "this layer stays in training mode in evaluation and prediction, as before"
        site.remarks.append(Blocked("TFM222", site.original, message))
    return [keyword("training", cst.Name(str(phase)))]


def training_rate(
    site: Site, layer: Layer, args: list[cst.Arg], name: str, neutral: float, phase: bool | None = True
) -> tuple[list[cst.Arg], bool | None]:
    """The arguments of a dropout that is not always off, and its phase, which its rate may say instead."""
    chosen = []
    for key, arg in named_arguments(site, layer.parameters, args):
        if key == name:
            value = in_training(arg.value, neutral, site.modes, site.definition)
            phase = phase if value is arg.value else None
            arg = arg.with_changes(value=value)
        chosen.append(arg)
    return chosen, phase


def frozen_averages(site: Site, phase: bool | None, args: list[cst.Arg]) -> list[cst.Arg]:
    """The arguments of a batch normalization (TensorFlow 1 names, none by position), kept from moving its averages
    where the program never ran their updates."""
    if phase is False or site.updates:
        return args
    if site.updates is None:
        raise Blocked(
            "TFM202", site.original, "one model_fn with this layer runs UPDATE_OPS, another does not: run them in both"
        )
    message = "UPDATE_OPS is never run: the moving averages keep their initial values (`momentum=1.0`)"
    site.remarks.append(Blocked("TFM221", site.original, message))
    kept = [a for a in args if a.keyword is None or a.keyword.value not in ("momentum", "decay")]
    return [keyword("momentum", cst.Float("1.0")), *kept]


def _function(site: Site) -> cst.BaseExpression:
    """`tf.layers.dense(inputs, ...)` to `tf.keras.layers.Dense(...)(inputs)`."""
    layer = _LAYERS[site.name.rpartition(".")[2]]
    inputs, rest = split_inputs(site)
    if layer.phase is None:
        return build(site, layer, inputs, rest)
    given = site.originals(("inputs", *layer.parameters), "TFM202").get(layer.phase)
    phase = read_phase(given, layer.phase_default, site)
    if layer.keras == "Dropout" and phase is not False:
        rest, phase = training_rate(site, layer, rest, "rate", 0.0, phase)
    if layer.keras == "BatchNormalization":
        named = [
            arg if arg.keyword is not None else keyword(name, arg.value).with_changes(comma=arg.comma)
            for name, arg in named_arguments(site, layer.parameters, rest)
        ]
        frozen = frozen_averages(site, phase, named)
        if frozen is not named or any(a.keyword is None for a in rest):
            rest = frozen
    return build(site, layer, inputs, rest, phase_arguments(site, phase))


def _class(site: Site) -> cst.BaseExpression:
    """`tf.layers.Dense(...)` to `tf.keras.layers.Dense(...)`."""
    layer = _CLASSES[site.name]
    args = list(site.call.args)
    if layer.keras == "BatchNormalization" and not site.updates:
        raise Blocked("TFM202", site.original, "UPDATE_OPS is never run: set `momentum=1.0`, or run the updates")
    return site.call.with_changes(func=keras_name(layer.keras), args=own_arguments(site, layer, args))


def has_phase(name: str | None) -> bool:
    """Whether a TensorFlow 1 class is of layers that are told at their call whether they train."""
    return name in _CLASSES and _CLASSES[name].phase is not None


def is_class(name: str | None) -> bool:
    """Whether a name is that of a layer class of tf.layers."""
    return name in _CLASSES


def called_object(site: Site, updated: cst.Call) -> cst.Call:
    """The call of a layer object: `site.name` is its class, `updated` the call with its arguments rewritten."""
    func = updated.func
    if isinstance(func, cst.Attribute) and func.attr.value in ("apply", "__call__"):
        updated = updated.with_changes(func=func.value)
    if not has_phase(site.name):
        return updated
    given = {a.keyword.value: a.value for a in site.original.args if a.keyword is not None}
    if len(site.original.args) - len(given) > 1 or any(a.star for a in site.original.args):
        raise Blocked("TFM202", site.original, "`training` of a layer object is positional: pass it by keyword")
    phase = read_phase(given.get("training"), False, site)
    kept = [a for a in updated.args if a.keyword is None or a.keyword.value != "training"]
    for arg in phase_arguments(site, phase):
        kept = add_argument(kept, arg)
    return updated.with_changes(args=tidy_end(kept))


CALLS: dict[str, CallRule] = {
    **{f"tf.layers.{name}": _function for name in _LAYERS},
    **dict.fromkeys(_CLASSES, _class),
}
#: Where the functions say whether they train: the parameter and its position.
PHASES = {
    f"tf.layers.{name}": (layer.phase, 1 + layer.parameters.index(layer.phase))
    for name, layer in _LAYERS.items()
    if layer.phase is not None
}
