"""`tf.contrib.layers.*` and `tf.contrib.slim.*` to `tf.keras.layers.*`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import libcst as cst

from migrator.findings import Severity
from migrator.program.calls import is_false, is_none, is_true, number, string
from migrator.program.parsed import Blocked
from migrator.rules.dropout import rate_of
from migrator.rules.layers import (
    Layer,
    Value,
    build,
    frozen_averages,
    keras_name,
    named_arguments,
    phase_arguments,
    read_phase,
    split_inputs,
    training_rate,
)
from migrator.rules.rule import Example, Rule
from migrator.rules.site import CallRule, Site, keyword

RULES = (
    Rule(
        "TFM223",
        "tf.contrib.layers and slim become tf.keras.layers",
        Severity.MIGRATED,
        """
`tf.contrib` is gone from TensorFlow 2. Its layers are the same computations under other names and with other defaults,
which are written out: `fully_connected` and the convolutions end in a ReLU, convolutions pad (`SAME`), pooling has a
stride of 2, and `dropout` is given what it keeps. With those, losses agree with TF 1.15.5 to 1e-7 to 2e-7 over 60 steps
(measured). `normalizer_fn` becomes a layer of its own between the layer (which then has no bias) and its activation.

`is_training` is True by default in contrib. A call that does not give it trains in evaluation too (TFM222).
""",
        (
            Example(
                "tf.contrib.layers.fully_connected(net, 10)",
                "tf.keras.layers.Dense(10, activation=tf.nn.relu)(net)",
            ),
            Example(
                "tf.contrib.layers.fully_connected(net, num_outputs=10, activation_fn=None, scope='out')",
                "tf.keras.layers.Dense(units=10, name='out')(net)",
            ),
            Example(
                "tf.contrib.slim.fully_connected(net, 4, biases_initializer=None)",
                "tf.keras.layers.Dense(4, use_bias=False, activation=tf.nn.relu)(net)",
            ),
            Example(
                "tf.contrib.layers.conv2d(net, 32, [5, 5], 2)",
                'tf.keras.layers.Conv2D(32, [5, 5], strides=2, padding="same", activation=tf.nn.relu)(net)',
            ),
            Example(
                "tf.contrib.layers.conv2d(net, 32, 3, padding='VALID', rate=2)",
                'tf.keras.layers.Conv2D(32, 3, padding="valid", dilation_rate=2, activation=tf.nn.relu)(net)',
            ),
            Example(
                "tf.contrib.slim.conv2d(net, 8, 3, normalizer_fn=tf.contrib.slim.batch_norm,"
                " normalizer_params={'decay': 0.9, 'is_training': mode == tf.estimator.ModeKeys.TRAIN})",
                "tf.nn.relu(tf.keras.layers.BatchNormalization(momentum=0.9, scale=False)("
                'tf.keras.layers.Conv2D(8, 3, use_bias=False, padding="same")(net)))',
            ),
            Example(
                "tf.contrib.layers.max_pool2d(net, 2)",
                "tf.keras.layers.MaxPooling2D(2, strides=2)(net)",
            ),
            Example(
                "tf.contrib.layers.dropout(net, 0.8, is_training=mode == tf.estimator.ModeKeys.TRAIN)",
                "tf.keras.layers.Dropout(0.2)(net)",
            ),
            Example(
                "tf.contrib.layers.dropout(net, keep_prob=params.keep)",
                "tf.keras.layers.Dropout(rate=1 - params.keep)(net, training=True)",
            ),
            Example(
                "tf.contrib.layers.embed_sequence(ids, vocab_size=100, embed_dim=8)",
                'tf.keras.layers.Embedding(input_dim=100, output_dim=8, embeddings_initializer="glorot_uniform")(ids)',
            ),
            Example("tf.contrib.layers.flatten(net)", "tf.keras.layers.Flatten()(net)"),
            Example(
                "tf.contrib.layers.layer_norm(net, begin_norm_axis=-1)",
                "tf.keras.layers.LayerNormalization(epsilon=1e-12)(net)",
            ),
            Example("tf.contrib.layers.one_hot_encoding(labels, 10)", "tf.one_hot(labels, 10)"),
        ),
    ),
    Rule(
        "TFM224",
        "an unsupported part of tf.contrib.layers or slim",
        Severity.MANUAL,
        """
`arg_scope` gives arguments to calls that do not show them. tf-migrate writes them at the calls where it sees all of
them: those inside the `with`, also when a function of the project makes the scope, or is called inside it and nowhere
else with other arguments. Where it does not (functions that are passed around or not given, lambdas, values that only
the caller knows), the finding says why: write the arguments at the calls. Collections (`variables_collections`,
`outputs_collections`) have no Keras counterpart: use the layers themselves. A `normalizer_fn` other than `batch_norm`
and `layer_norm`, a `param_initializers`, or an `activation_fn` that is computed, is left.
""",
        (
            Example("tf.contrib.layers.fully_connected(net, 10, outputs_collections='ends')", None),
            Example("tf.contrib.slim.arg_scope([conv], stride=2)", None),
            Example("tf.contrib.layers.fully_connected(net, 10, normalizer_fn=tf.nn.l2_normalize)", None),
        ),
    ),
    Rule(
        "TFM225",
        "contrib batch and layer normalization that Keras lacks",
        Severity.REVIEW,
        """
`tf.contrib.layers.batch_norm` takes the fused kernel for vectors too, whose moving variance is the unbiased one: with a
batch of 16 the stock layer's moving variance is 6 % off (measured), its training losses are equal.
`tf.contrib.layers.layer_norm` of images takes one mean over height, width and channels, and one scale per channel;
stock LayerNormalization over the channels changes the loss by 27 % in 60 steps (measured). A small class in the file
computes what contrib did. To take the stock layer, name it in place of that class.
""",
    ),
)

_CODE = "TFM224"
_ENDS = (
    "normalizer_fn normalizer_params weights_initializer weights_regularizer biases_initializer biases_regularizer"
    " reuse variables_collections outputs_collections trainable scope"
)
_RELU = {"activation_fn": ("activation", "tf.nn.relu")}
_SAME = {"padding": ("padding", '"same"')}
_STRIDE = {"stride": ("strides", "2")}
_NAMES = {
    "stride": "strides",
    "rate": "dilation_rate",
    "activation_fn": "activation",
    "weights_initializer": "kernel_initializer",
    "weights_regularizer": "kernel_regularizer",
    "biases_initializer": "bias_initializer",
    "biases_regularizer": "bias_regularizer",
    "scope": "name",
    "decay": "momentum",
}


# -- values ------------------------------------------------------------------------------------------------------------


def _none(site: Site, value: cst.BaseExpression) -> None:
    if not is_none(value):
        raise Blocked(_CODE, value, "collections and `param_*` arguments are unsupported")


def _left_out(site: Site, value: cst.BaseExpression) -> None:
    """For what another part of the rule reads."""


def _padding(site: Site, value: cst.BaseExpression) -> tuple[str, cst.BaseExpression]:
    text = string(value)
    return "padding", value if text is None else cst.SimpleString(f'"{text.lower()}"')


def _pool_padding(site: Site, value: cst.BaseExpression) -> tuple[str, cst.BaseExpression] | None:
    return None if (string(value) or "").lower() == "valid" else _padding(site, value)


def _data_format(site: Site, value: cst.BaseExpression) -> tuple[str, cst.BaseExpression] | None:
    text = string(value)
    if is_none(value) or text in ("NHWC", "NWC", "NDHWC"):
        return None
    if text in ("NCHW", "NCW", "NCDHW"):
        return "data_format", cst.SimpleString('"channels_first"')
    raise Blocked(_CODE, value, "the data_format is computed: write a literal")


def _axis(site: Site, value: cst.BaseExpression) -> tuple[str, cst.BaseExpression] | None:
    return None if _data_format(site, value) is None else ("axis", cst.Integer("1"))


def _activation(site: Site, value: cst.BaseExpression) -> tuple[str, cst.BaseExpression] | None:
    return None if is_none(value) else ("activation", value)


def _bias(site: Site, value: cst.BaseExpression) -> tuple[str, cst.BaseExpression]:
    return ("use_bias", cst.Name("False")) if is_none(value) else ("bias_initializer", value)


def _updates_collections(site: Site, value: cst.BaseExpression) -> None:
    if not is_none(value) and site.tensorflow(value) != "tf.GraphKeys.UPDATE_OPS":
        raise Blocked(_CODE, value, "`updates_collections` must be None or UPDATE_OPS")


def _keep(site: Site, value: cst.BaseExpression) -> tuple[str, cst.BaseExpression]:
    return "rate", rate_of(value)


_WEIGHTED: dict[str, Value] = {
    "padding": _padding,
    "data_format": _data_format,
    "activation_fn": _activation,
    "biases_initializer": _bias,
    "normalizer_fn": _left_out,
    "normalizer_params": _left_out,
    "variables_collections": _none,
    "outputs_collections": _none,
}
_POOLED: dict[str, Value] = {"padding": _pool_padding, "data_format": _data_format, "outputs_collections": _none}


# -- layers ------------------------------------------------------------------------------------------------------------


def _weighted(keras: str, parameters: str, positional: int, outputs: str = "filters") -> Layer:
    names = {**_NAMES, "num_outputs": outputs}
    added = {**(_SAME if "padding" in parameters else {}), **_RELU}
    return Layer(keras, tuple(f"{parameters} {_ENDS}".split()), positional, names, added, _WEIGHTED)


def _pooling(keras: str) -> Layer:
    parameters = ("kernel_size", "stride", "padding", "data_format", "outputs_collections", "scope")
    return Layer(keras, parameters, 1, {**_NAMES, "kernel_size": "pool_size"}, _STRIDE, _POOLED)


_CONV = "num_outputs kernel_size stride padding data_format rate activation_fn"
_TRANSPOSE = "num_outputs kernel_size stride padding data_format activation_fn"
_LAYERS = {
    "fully_connected": _weighted("Dense", "num_outputs activation_fn", 1, "units"),
    "conv1d": _weighted("Conv1D", _CONV, 2),
    "conv2d": _weighted("Conv2D", _CONV, 2),
    "conv3d": _weighted("Conv3D", _CONV, 2),
    "conv2d_transpose": _weighted("Conv2DTranspose", _TRANSPOSE, 2),
    "conv3d_transpose": _weighted("Conv3DTranspose", _TRANSPOSE, 2),
    "max_pool2d": _pooling("MaxPooling2D"),
    "max_pool3d": _pooling("MaxPooling3D"),
    "avg_pool2d": _pooling("AveragePooling2D"),
    "avg_pool3d": _pooling("AveragePooling3D"),
    "flatten": Layer("Flatten", ("outputs_collections", "scope"), 0, _NAMES, values={"outputs_collections": _none}),
    "dropout": Layer(
        "Dropout",
        ("keep_prob", "noise_shape", "is_training", "outputs_collections", "scope", "seed"),
        1,
        _NAMES,
        {"keep_prob": ("rate", "0.5")},
        {"keep_prob": _keep, "outputs_collections": _none},
        "is_training",
        True,
    ),
}
_ALIASES = {
    "linear": "fully_connected",
    "relu": "fully_connected",
    "relu6": "fully_connected",
    "convolution1d": "conv1d",
    "convolution2d": "conv2d",
    "convolution3d": "conv3d",
    "convolution2d_transpose": "conv2d_transpose",
    "convolution3d_transpose": "conv3d_transpose",
}
# Those of the three partial functions of contrib whose activation is another.
_ACTIVATIONS: dict[str, dict[str, tuple[str, str]]] = {
    "linear": {},
    "relu": _RELU,
    "relu6": {"activation_fn": ("activation", "tf.nn.relu6")},
}
_BATCH_NORM_PARAMETERS = (
    "decay center scale epsilon activation_fn param_initializers param_regularizers updates_collections is_training"
    " reuse variables_collections outputs_collections trainable batch_weights fused data_format"
    " zero_debias_moving_mean scope renorm renorm_clipping renorm_decay adjustment"
)
_LAYER_NORM_PARAMETERS = (
    "center scale activation_fn reuse variables_collections outputs_collections trainable begin_norm_axis"
    " begin_params_axis scope"
)
_BATCH_NORM = Layer(
    "BatchNormalization",
    tuple(_BATCH_NORM_PARAMETERS.split()),
    0,
    _NAMES,
    {"decay": ("momentum", "0.999"), "scale": ("scale", "False")},
    {
        "activation_fn": _left_out,
        "param_initializers": _none,
        "param_regularizers": _none,
        "variables_collections": _none,
        "outputs_collections": _none,
        "updates_collections": _updates_collections,
        "data_format": _axis,
    },
    "is_training",
    True,
)
_LAYER_NORM = Layer(
    "LayerNormalization",
    tuple(_LAYER_NORM_PARAMETERS.split()),
    0,
    _NAMES,
    {"epsilon": ("epsilon", "1e-12")},
    {
        "activation_fn": _left_out,
        "variables_collections": _none,
        "outputs_collections": _none,
        "begin_norm_axis": _left_out,
        "begin_params_axis": _left_out,
    },
)
_IMAGES = frozenset(
    f"tf.contrib.{module}.{name}"
    for module in ("layers", "slim")
    for name in ("conv2d", "convolution2d", "conv2d_transpose", "max_pool2d", "avg_pool2d")
) | {"tf.layers.conv2d", "tf.layers.max_pooling2d", "tf.layers.average_pooling2d", "tf.layers.conv2d_transpose"}
#: Classes that the migrated file needs where Keras has none that computes the same: name and text.
CLASSES = {
    "FusedBatchNormalization": """\
class FusedBatchNormalization(tf.keras.layers.BatchNormalization):
    # Fused on vectors too: their moving variance is the unbiased one.

    def build(self, input_shape):
        if len(input_shape) == 2:
            input_shape = (input_shape[0], 1, 1, input_shape[1])
        super().build(input_shape)
        self.input_spec = None

    def call(self, inputs, training=None):
        if len(inputs.shape) != 2:
            return super().call(inputs, training=training)
        return super().call(inputs[:, None, None, :], training=training)[:, 0, 0, :]
""",
    "WholeLayerNormalization": """\
class WholeLayerNormalization(tf.keras.layers.Layer):
    # One mean and variance per example, one scale and offset per channel.

    def build(self, input_shape):
        self.beta = self.add_weight(name="beta", shape=input_shape[-1:], initializer="zeros")
        self.gamma = self.add_weight(name="gamma", shape=input_shape[-1:], initializer="ones")

    def call(self, inputs):
        axes = list(range(1, len(inputs.shape)))
        mean, variance = tf.nn.moments(inputs, axes, keepdims=True)
        return tf.nn.batch_normalization(inputs, mean, variance, self.beta, self.gamma, 1e-12)
""",
}


# -- calls -------------------------------------------------------------------------------------------------------------


def _table_entry(site: Site) -> Layer:
    name = site.name.rpartition(".")[2]
    layer = _LAYERS[_ALIASES.get(name, name)]
    if name in _ACTIVATIONS:
        parameters = tuple(p for p in layer.parameters if p != "activation_fn")
        return replace(layer, parameters=parameters, added=_ACTIVATIONS[name])
    return layer


def _function(site: Site) -> cst.BaseExpression:
    layer = _table_entry(site)
    inputs, rest = split_inputs(site)
    bound = dict(named_arguments(site, layer.parameters, rest))
    if layer.phase is not None:
        return _dropout(site, layer, inputs, rest)
    normalizer = bound["normalizer_fn"].value if "normalizer_fn" in bound else None
    if is_none(normalizer):
        return build(site, layer, inputs, rest)
    assert normalizer is not None
    name = (site.tensorflow(normalizer) or "").rpartition(".")
    if name[0] not in _MODULES or name[2] not in ("batch_norm", "layer_norm"):
        raise Blocked(_CODE, site.original, "the normalizer_fn must be batch_norm or layer_norm")
    activation = bound["activation_fn"].value if "activation_fn" in bound else cst.parse_expression("tf.nn.relu")
    kept = [arg for key, arg in bound.items() if key not in ("activation_fn", "biases_initializer")]
    without_bias = replace(layer, added={k: v for k, v in layer.added.items() if k != "activation_fn"})
    own = build(site, without_bias, inputs, [*kept, keyword("biases_initializer", cst.Name("None"))])
    own = own.with_changes(lpar=[], rpar=[])
    params = [keyword(key, value) for key, value in _params(site, bound).items()]
    rewritten = _normalize_batch if name[2] == "batch_norm" else _normalize_layer
    return _activated(site, activation, rewritten(site, own, params, layer.keras == "Conv2D"))


def _params(site: Site, bound: Mapping[str, cst.Arg]) -> dict[str, cst.BaseExpression]:
    """The arguments in `normalizer_params`: a dict that is written at the call or under one name."""
    node = bound["normalizer_params"].value if "normalizer_params" in bound else None
    if isinstance(node, cst.Name) and not is_none(node):
        node = site.definition(node.value)
        if node is None or not isinstance(node, (cst.Dict, cst.Call)):
            raise Blocked(_CODE, site.original, "the normalizer_params are not one dict literal: write them out")
    if is_none(node):
        return {}
    if isinstance(node, cst.Dict):
        found = {}
        for element in node.elements:
            key = string(element.key) if isinstance(element, cst.DictElement) else None
            if key is None:
                raise Blocked(_CODE, site.original, "the normalizer_params are not literals: write them out")
            found[key] = element.value
        return found
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "dict":
        if all(arg.keyword is not None and not arg.star for arg in node.args):
            return {arg.keyword.value: arg.value for arg in node.args if arg.keyword is not None}
    raise Blocked(_CODE, site.original, "the normalizer_params are not a dict literal: write them out")


def _activated(site: Site, activation: cst.BaseExpression | None, call: cst.BaseExpression) -> cst.BaseExpression:
    """`activation(call)`; a name that may stand for None goes through Keras' Activation."""
    if activation is None or is_none(activation):
        return call
    if isinstance(activation, cst.Attribute) and activation.deep_equals(cst.parse_expression("tf.identity")):
        return call
    if not isinstance(activation, cst.Attribute) or not site.code(activation).startswith("tf."):
        activation = cst.Call(keras_name("Activation"), [cst.Arg(activation)])
    return cst.Call(activation, [cst.Arg(call)])


def _dropout(site: Site, layer: Layer, inputs: cst.BaseExpression, rest: list[cst.Arg]) -> cst.BaseExpression:
    given = site.originals(("inputs", *layer.parameters), "TFM202").get("is_training")
    phase = read_phase(given, layer.phase_default, site)
    if phase:
        rest, phase = training_rate(site, layer, rest, "keep_prob", 1.0)
    return build(site, layer, inputs, rest, phase_arguments(site, phase))


def _batch_norm(site: Site) -> cst.BaseExpression:
    inputs, rest = split_inputs(site)
    bound = dict(named_arguments(site, _BATCH_NORM.parameters, rest))
    params = [keyword(name, arg.value) for name, arg in bound.items()]
    originals = site.originals(("inputs", *_BATCH_NORM.parameters), "TFM202")
    if "is_training" in originals:
        params = [keyword("is_training", originals["is_training"]) if _is(a, "is_training") else a for a in params]
    activation = bound["activation_fn"].value if "activation_fn" in bound else None
    return _activated(site, activation, _normalize_batch(site, inputs, params, _is_image(site, originals["inputs"])))


def _is(arg: cst.Arg, name: str) -> bool:
    return arg.keyword is not None and arg.keyword.value == name


def _is_image(site: Site, node: cst.BaseExpression, depth: int = 4) -> bool:
    """Whether a tensor is known to have four axes: what a convolution or a pooling made."""
    if isinstance(node, cst.Name) and depth:
        value = site.definition(node.value)
        return value is not None and _is_image(site, value, depth - 1)
    if not isinstance(node, cst.Call):
        return False
    name = site.tensorflow(node.func)
    if name in ("tf.nn.relu", "tf.identity", "tf.nn.elu", "tf.nn.leaky_relu") and node.args and depth:
        return _is_image(site, node.args[0].value, depth - 1)
    return name in _IMAGES


def _normalize_batch(site: Site, inputs: cst.BaseExpression, params: list[cst.Arg], image: bool) -> cst.BaseExpression:
    """`BatchNormalization(...)(inputs)` of arguments with contrib's names, all by keyword."""
    given = {arg.keyword.value: arg.value for arg in params if arg.keyword is not None}
    phase = read_phase(given.get("is_training"), True, site)
    at_once = "updates_collections" in given and is_none(given["updates_collections"])
    if not at_once:
        params = frozen_averages(site, phase, params)
    layer = _BATCH_NORM
    if any(_is(arg, "momentum") for arg in params):
        layer = replace(
            layer,
            parameters=(*layer.parameters, "momentum"),
            added={k: v for k, v in layer.added.items() if k != "decay"},
        )
    if is_true(given.get("scale")):
        params = [arg for arg in params if not _is(arg, "scale")]
        layer = replace(layer, added={k: v for k, v in layer.added.items() if k != "scale"})
    call = build(site, layer, inputs, params, phase_arguments(site, phase)).with_changes(lpar=[], rpar=[])
    if not image and not is_false(given.get("fused")) and phase is not False:
        return _own_class(site, call, "FusedBatchNormalization")
    return call


def _own_class(site: Site, call: cst.Call, name: str) -> cst.Call:
    site.classes[name] = CLASSES[name]
    message = f"`{name}` in this file computes something else than the Keras layer"
    site.remarks.append(Blocked("TFM225", site.original, message))
    assert isinstance(call.func, cst.Call)
    return call.with_changes(func=call.func.with_changes(func=cst.Name(name)))


def _layer_norm(site: Site) -> cst.BaseExpression:
    inputs, rest = split_inputs(site)
    bound = dict(named_arguments(site, _LAYER_NORM.parameters, rest))
    params = [keyword(name, arg.value) for name, arg in bound.items()]
    activation = bound["activation_fn"].value if "activation_fn" in bound else None
    return _activated(site, activation, _normalize_layer(site, inputs, params, False))


def _normalize_layer(site: Site, inputs: cst.BaseExpression, params: list[cst.Arg], image: bool) -> cst.BaseExpression:
    given = {arg.keyword.value: arg.value for arg in params if arg.keyword is not None}
    first, scaled = number(given.get("begin_norm_axis", cst.Integer("1"))), given.get("begin_params_axis")
    if first not in (1.0, -1.0) or (scaled is not None and number(scaled) != -1.0):
        raise Blocked(_CODE, site.original, "`begin_norm_axis` must be 1 or -1, and `begin_params_axis` -1")
    call = build(site, _LAYER_NORM, inputs, params).with_changes(lpar=[], rpar=[])
    if first == -1.0:
        return call
    if any(key in given for key in ("center", "scale", "trainable")):
        raise Blocked(_CODE, site.original, "`center`, `scale` and `trainable` of this layer_norm are unsupported")
    call = _own_class(site, call, "WholeLayerNormalization")
    assert isinstance(call.func, cst.Call)
    named = [arg for arg in call.func.args if _is(arg, "name")]
    return call.with_changes(func=call.func.with_changes(args=named))


def _once(site: Site, value: cst.BaseExpression) -> None:
    if not is_false(value) and not is_none(value):
        raise Blocked(_CODE, value, "`unique=` of embed_sequence is unsupported")


_EMBEDDING = Layer(
    "Embedding",
    ("vocab_size", "embed_dim", "unique", "initializer", "regularizer", "trainable", "scope", "reuse"),
    2,
    {
        "vocab_size": "input_dim",
        "embed_dim": "output_dim",
        "scope": "name",
        "initializer": "embeddings_initializer",
        "regularizer": "embeddings_regularizer",
    },
    {"initializer": ("embeddings_initializer", '"glorot_uniform"')},
    {"unique": _once},
)


def _embed_sequence(site: Site) -> cst.BaseExpression:
    """`embed_sequence(ids, 11, 4)`: a table, and a lookup in it."""
    args = [arg for arg in site.call.args if arg.keyword is None or arg.keyword.value != "ids"]
    given = [arg.value for arg in site.call.args if arg not in args]
    ids, rest = (given[0], args) if given else split_inputs(site)
    bound = dict(named_arguments(site, _EMBEDDING.parameters, rest))
    sizes = [bound[name].value if name in bound else None for name in ("vocab_size", "embed_dim")]
    if any(is_none(size) for size in sizes):
        raise Blocked(_CODE, site.original, "this embed_sequence has no `vocab_size` or no `embed_dim`: pass both")
    kept = [arg for name, arg in bound.items() if name != "initializer" or not is_none(arg.value)]
    return build(site, _EMBEDDING, ids, kept if len(kept) < len(bound) else rest)


def _one_hot(site: Site) -> cst.BaseExpression:
    bound = site.arguments(("labels", "num_classes", "on_value", "off_value", "outputs_collections", "scope"), _CODE)
    if not set(bound) <= {"labels", "num_classes"}:
        raise Blocked(_CODE, site.original, "only `labels` and `num_classes` of one_hot_encoding are supported")
    return cst.Call(cst.parse_expression("tf.one_hot"), [cst.Arg(bound["labels"]), cst.Arg(bound["num_classes"])])


@dataclass(frozen=True)
class ScopedCall:
    """A function whose calls take arguments from `arg_scope`: its key there, its parameters in order (the inputs too),
    and those that it fixes itself."""

    key: str
    parameters: tuple[str, ...]
    fixed: frozenset[str] = frozenset()


def scoped_call(symbol: str) -> ScopedCall | None:
    """What `arg_scope` gives to calls of a TensorFlow 1 symbol goes by; None for one that it gives nothing to."""
    module, _, name = symbol.rpartition(".")
    if module not in _MODULES:
        return None
    if name in _NORMALIZATIONS:
        return ScopedCall(name, ("inputs", *_NORMALIZATIONS[name].parameters))
    key = _ALIASES.get(name, name)
    if key not in _LAYERS:
        return None
    fixed = frozenset(("activation_fn",)) if name in _ACTIVATIONS else frozenset[str]()
    return ScopedCall(key, ("inputs", *_LAYERS[key].parameters), fixed)


def _arg_scope(site: Site) -> cst.BaseExpression:
    raise Blocked(_CODE, site.original, "`arg_scope` is unsupported: pass the arguments to the calls inside")


_MODULES = ("tf.contrib.layers", "tf.contrib.slim")
_NORMALIZATIONS = {"batch_norm": _BATCH_NORM, "layer_norm": _LAYER_NORM}
_RULES: dict[str, CallRule] = {
    **dict.fromkeys((*_LAYERS, *_ALIASES), _function),
    "batch_norm": _batch_norm,
    "layer_norm": _layer_norm,
    "one_hot_encoding": _one_hot,
    "embed_sequence": _embed_sequence,
}
CALLS: dict[str, CallRule] = {
    **{f"{module}.{name}": rule for module in _MODULES for name, rule in _RULES.items()},
    "tf.contrib.slim.arg_scope": _arg_scope,
    "tf.contrib.framework.arg_scope": _arg_scope,
}
#: Where the functions say whether they train: the parameter and its position.
PHASES = {
    f"{module}.{name}": ("is_training", position)
    for module in _MODULES
    for name, position in (("dropout", 3), ("batch_norm", 9))
}
