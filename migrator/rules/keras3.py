"""What new code says otherwise on Keras 3.

Every other rule writes code for Keras 2. The forms of that code that Keras 3 has differently are data here: TensorFlow
functions on the symbolic tensors of a network, layers, and names below `tf.keras`. What is in no table is refused: a
form that nobody has run on Keras 3 is not written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import libcst as cst

from migrator.findings import Severity
from migrator.names.imports import dotted
from migrator.program.calls import attributes_in, classes_in, is_false, is_none, is_true, number, string
from migrator.rules.rule import Rule

# -- functions on symbolic tensors -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Op:
    """A function of `tf.keras.ops`: `parameters` are pairs of the names in TensorFlow 2 and there, in order.

    A name of None is an argument without influence. `added` are arguments to write out where TensorFlow's default is
    another, `cast` is the type of the result where the function of Keras has another. `needs` must be given.
    """

    name: str
    parameters: tuple[tuple[str, str | None], ...]
    added: Mapping[str, str] = field(default_factory=dict)
    cast: str | None = None
    needs: frozenset[str] = frozenset()


def _op(name: str, parameters: str, cast: str | None = None, needs: str = "", **added: str) -> Op:
    """`parameters` as "input:x axis name:": the last has no counterpart."""
    pairs = []
    for part in parameters.split():
        old, colon, new = part.partition(":")
        pairs.append((old, (new or None) if colon else old))
    return Op(name, tuple(pairs), added, cast, frozenset(needs.split()))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _both(names: str, make: Callable[[str], Op]) -> dict[str, Op]:
    """Functions that TensorFlow has at its top level and in tf.math."""
    return {f"tf.{prefix}{name}": make(name) for name in names.split() for prefix in ("", "math.")}


_REDUCE = "input_tensor:x axis keepdims name:"
OPS: dict[str, Op] = {
    "tf.reshape": _op("reshape", "tensor:x shape:newshape name:"),
    "tf.expand_dims": _op("expand_dims", "input:x axis name:"),
    "tf.squeeze": _op("squeeze", "input:x axis name:"),
    "tf.concat": _op("concatenate", "values:xs axis name:"),
    "tf.stack": _op("stack", "values:x axis name:"),
    "tf.unstack": _op("unstack", "value:x num axis name:"),
    "tf.split": _op("split", "value:x num_or_size_splits:indices_or_sections axis num: name:", axis="0"),
    "tf.cast": _op("cast", "x dtype name:"),
    "tf.transpose": _op("transpose", "a:x perm:axes conjugate: name:"),
    "tf.tile": _op("tile", "input:x multiples:repeats name:"),
    "tf.gather": _op("take", "params:x indices validate_indices: axis batch_dims: name:", axis="0"),
    "tf.where": _op("where", "condition x:x1 y:x2 name:", needs="x1 x2"),
    "tf.pad": _op("pad", "tensor:x paddings:pad_width"),
    "tf.reverse": _op("flip", "tensor:x axis name:"),
    "tf.one_hot": _op("one_hot", "indices:x depth:num_classes on_value: off_value: axis dtype name:"),
    "tf.zeros_like": _op("zeros_like", "input:x dtype name:"),
    "tf.ones_like": _op("ones_like", "input:x dtype name:"),
    "tf.clip_by_value": _op("clip", "t:x clip_value_min:x_min clip_value_max:x_max name:"),
    "tf.norm": _op("norm", "tensor:x ord: axis keepdims name:"),
    "tf.stop_gradient": _op("stop_gradient", "input:variable name:"),
    "tf.matmul": _op("matmul", "a:x1 b:x2"),
    "tf.linalg.matmul": _op("matmul", "a:x1 b:x2"),
    "tf.tensordot": _op("tensordot", "a:x1 b:x2 axes name:"),
    **_both(
        "reduce_mean reduce_sum reduce_max reduce_min reduce_prod reduce_any reduce_all",
        lambda name: _op(name.removeprefix("reduce_"), _REDUCE),
    ),
    **_both("reduce_logsumexp", lambda name: _op("logsumexp", _REDUCE)),
    "tf.math.reduce_std": _op("std", _REDUCE),
    "tf.math.reduce_variance": _op("var", _REDUCE),
    **_both("argmax argmin", lambda name: _op(name, "input:x axis output_type: name:", cast='"int64"', axis="0")),
    **_both("cumsum", lambda name: _op(name, "x axis exclusive: reverse: name:", axis="0")),
    "tf.math.cumprod": _op("cumprod", "x axis exclusive: reverse: name:", axis="0"),
    **_both(
        "abs sqrt square exp sign floor round cos sin tan tanh sigmoid",
        lambda name: _op(name, "x name:"),
    ),
    "tf.negative": _op("negative", "x name:"),
    "tf.math.negative": _op("negative", "x name:"),
    "tf.math.log": _op("log", "x name:"),
    "tf.math.log1p": _op("log1p", "x name:"),
    "tf.math.expm1": _op("expm1", "x name:"),
    "tf.math.rsqrt": _op("rsqrt", "x name:"),
    "tf.math.reciprocal": _op("reciprocal", "x name:"),
    "tf.math.erf": _op("erf", "x name:"),
    "tf.math.ceil": _op("ceil", "x name:"),
    "tf.math.softplus": _op("softplus", "features:x name:"),
    "tf.math.divide_no_nan": _op("divide_no_nan", "x:x1 y:x2 name:"),
    **_both("add subtract multiply divide maximum minimum", lambda name: _op(name, "x:x1 y:x2 name:")),
    **_both("truediv", lambda name: _op("true_divide", "x:x1 y:x2 name:")),
    **_both("pow", lambda name: _op("power", "x:x1 y:x2 name:")),
    **_both(
        "equal not_equal greater greater_equal less less_equal logical_and logical_or",
        lambda name: _op(name, "x:x1 y:x2 name:"),
    ),
    **_both("logical_not", lambda name: _op(name, "x name:")),
    **{f"tf.nn.{name}": _op(name, "features:x name:") for name in ("relu", "relu6", "elu", "selu", "softplus")},
    "tf.nn.softsign": _op("softsign", "features:x name:"),
    "tf.nn.silu": _op("silu", "features:x beta:"),
    "tf.nn.swish": _op("silu", "features:x beta:"),
    "tf.nn.sigmoid": _op("sigmoid", "x name:"),
    "tf.nn.tanh": _op("tanh", "x name:"),
    "tf.nn.leaky_relu": _op("leaky_relu", "features:x alpha:negative_slope name:"),
    "tf.nn.gelu": _op("gelu", "features:x approximate name:", approximate="False"),
    "tf.nn.softmax": _op("softmax", "logits:x axis name:"),
    "tf.nn.log_softmax": _op("log_softmax", "logits:x axis name:"),
    "tf.nn.moments": _op("moments", "x axes shift: keepdims name:"),
    **{
        f"tf.{m}.l2_normalize": _op("normalize", "x axis epsilon: name:", needs="axis", epsilon="1e-6")
        for m in ("nn", "math")
    },
    **{f"tf.{m}.top_k": _op("top_k", "input:x k sorted index_type: name:", k="1") for m in ("nn", "math")},
}
#: Functions that Keras 3 has not, of one tensor (their first argument): they go into a Lambda layer.
WRAPPED = frozenset(
    (
        *(f"tf.nn.{name}" for name in ("lrn", "local_response_normalization", "max_pool", "max_pool2d", "avg_pool2d")),
        *("tf.nn.avg_pool", "tf.nn.max_pool1d", "tf.nn.avg_pool1d", "tf.nn.space_to_depth", "tf.nn.depth_to_space"),
        *("tf.image.resize", "tf.image.per_image_standardization", "tf.image.rgb_to_grayscale", "tf.sequence_mask"),
    )
)
# They make constants, or have nothing to do with tensors.
STATIC = frozenset(
    (
        *("tf.constant", "tf.zeros", "tf.ones", "tf.range", "tf.fill", "tf.eye", "tf.linspace", "tf.name_scope"),
        *("tf.convert_to_tensor", "tf.nest.map_structure", "tf.nest.flatten", "tf.get_logger", "tf.TensorShape"),
        *("tf.io.gfile.GFile", "tf.io.gfile.exists", "tf.io.gfile.glob", "tf.dtypes.as_dtype", "tf.newaxis"),
    )
)
_LAYERS = _words(
    "Dense Conv1D Conv2D Conv3D Conv2DTranspose Conv3DTranspose SeparableConv1D SeparableConv2D DepthwiseConv2D "
    "MaxPooling1D MaxPooling2D MaxPooling3D AveragePooling1D AveragePooling2D AveragePooling3D "
    "GlobalAveragePooling1D GlobalAveragePooling2D GlobalMaxPooling1D GlobalMaxPooling2D Flatten Dropout "
    "BatchNormalization LayerNormalization Embedding Activation Reshape Permute RepeatVector Concatenate Add "
    "Subtract Multiply Average Maximum Minimum Dot Lambda Identity ReLU Softmax ELU ZeroPadding1D ZeroPadding2D "
    "UpSampling2D Input Layer"
)
_KERAS = frozenset(
    (
        *(f"tf.keras.layers.{name}" for name in _LAYERS),
        *("tf.keras.Input", "tf.keras.Model", "tf.keras.Sequential", "tf.keras.layers", "tf.keras.ops"),
    )
)
#: What `tf.keras` has in both generations, with one meaning: by module; None for all of it.
_SAME_MODULES: dict[str, frozenset[str] | None] = {
    "initializers": None,
    "regularizers": None,
    "activations": None,
    "constraints": None,
    "losses": _words(
        "MeanSquaredError MeanAbsoluteError Huber Hinge CategoricalCrossentropy SparseCategoricalCrossentropy "
        "BinaryCrossentropy mse mae huber categorical_crossentropy "
        "sparse_categorical_crossentropy binary_crossentropy"
    ),
    "datasets": None,
    "ops": None,
    "optimizers": _words("SGD Adagrad Adam RMSprop Adadelta Ftrl Adamax schedules Optimizer"),
    "metrics": _words(
        "Mean MeanMetricWrapper MeanSquaredError MeanAbsoluteError RootMeanSquaredError Accuracy BinaryAccuracy "
        "CategoricalAccuracy SparseCategoricalAccuracy TopKCategoricalAccuracy SparseTopKCategoricalAccuracy "
        "Precision Recall AUC TruePositives TrueNegatives FalsePositives FalseNegatives Sum Metric "
        "CosineSimilarity SensitivityAtSpecificity SpecificityAtSensitivity PrecisionAtRecall MeanIoU "
        "sparse_top_k_categorical_accuracy"
    ),
    "callbacks": _words("LambdaCallback"),
    "utils": frozenset(("to_categorical", "set_random_seed", "get_file")),
}
_TYPES = _words("float16 float32 float64 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool string")


def _rows() -> str:
    """The table of the functions, as Markdown."""
    lines = []
    for name in sorted(OPS):
        op = OPS[name]
        given = ", ".join(new for _, new in op.parameters if new is not None)
        text = f"ops.{op.name}({given})"
        notes = [f"`{key}={value}` written out" for key, value in op.added.items()]
        notes += [f"cast to {op.cast}"] if op.cast is not None else []
        lines.append(f"| `{name}` | the same | `{text}`{'; ' + ', '.join(notes) if notes else ''} | 0 |")
    lines += [f"| `{name}` | the same | in a `Lambda` layer | 0 |" for name in sorted(WRAPPED)]
    return "\n".join(lines) + "\n"


RULES = (
    Rule(
        "TFM870",
        "a form that Keras 3 lacks",
        Severity.MANUAL,
        """
With `--keras 3` a program is supported where every layer, optimizer and metric of it is known to work on Keras 3:
optimizers, metrics, losses and the common layers were run there and gave the numbers of TensorFlow 1; rarer layers
(three-dimensional convolutions, global pooling, padding, products) were only seen to exist. The one named here has no
such form, or does not work there: feature columns (`DenseFeatures` is gone from Keras 3), `training=` at the call of a
layer object (a model of Keras 3 tells its layers its own phase in any case: measured, the loss is off by half), custom
hooks, weighted `mean_iou`, and helper classes that tf-migrate writes for Keras 2 only. Leave `--keras 3` out: Keras 2
(`tf_keras`) carries it over. Or replace the line by a form that the finding names.
""",
    ),
    Rule(
        "TFM871",
        "a TensorFlow function on a network tensor that keras.ops lacks",
        Severity.MANUAL,
        """
A network of Keras 3 is built of symbolic tensors that TensorFlow's own functions refuse (`tf.reshape(features, ...)`
raises ValueError: "A KerasTensor cannot be used as input to a TensorFlow function"). tf-migrate writes the same
function of `tf.keras.ops`, with the defaults of TensorFlow written out where they are others. This function, or one of
its arguments, has no equal there. Move it into the input function, put it into a layer of your own (a `call` gets
tensors that every TensorFlow function takes), or leave `--keras 3` out.
""",
    ),
    Rule(
        "TFM872",
        "no cluster training with fit of Keras 3",
        Severity.MANUAL,
        """
On TensorFlow 2.21 with Keras 3, `Model.fit` raises under ParameterServerStrategy and MultiWorkerMirroredStrategy, and a
coordinator's own loop loses steps of the optimizer with two workers or more (44, 36 and 38 of 60 counted in three
runs). Such a program stays as it was. Leave `--keras 3` out: Keras 2 (`tf_keras`) fits on all of them. Or take `--loop
custom`, whose steps mirrored replicas and workers make on Keras 3, too.
""",
    ),
    Rule(
        "TFM873",
        "on Keras 3 the program trains on one device",
        Severity.REVIEW,
        """
`train_and_evaluate` reads TF_CONFIG and trains on the cluster that it finds there. Keras 3 cannot (TFM872), so that the
new program trains in its own process, whatever TF_CONFIG says: do not start it as the tasks of a cluster, each would
train its own model. For a program that runs on clusters leave `--keras 3` out.
""",
    ),
    Rule(
        "TFM874",
        "the functions of a network become keras.ops",
        Severity.MIGRATED,
        """
With `--keras 3`, functions of TensorFlow on the tensors of a network become those of `tf.keras.ops`, which run the same
kernels. Defaults that differ are written out: `argmax`, `take` and `cumsum` flatten where TensorFlow takes the first
axis, `gelu` is approximate, and indices are 32 bits wide. A function that only TensorFlow has, and that reads one
tensor (`tf.nn.lrn`, pooling, images), goes into a `Lambda` layer.

On Keras 2 nothing of that is needed: `tf.keras` of `tf_keras` takes every function of TensorFlow. Losses, metrics,
schedules and input functions see real tensors on both, and stay TensorFlow.

| TensorFlow 1 | on Keras 2 | on Keras 3 | measured difference |
|---|---|---|---|
"""
        + _rows(),
    ),
    Rule(
        "TFM875",
        "batch normalization on Keras 3",
        Severity.REVIEW,
        """
The fused kernel of TensorFlow 1, and of Keras 2 on images, keeps the unbiased variance of a batch in its moving
average. Keras 3 keeps the biased one: evaluation after 60 steps is off by 7e-4 to 1.7e-3 in the moving variance
(measured), the training losses are equal. `FusedBatchNormalization` in the file calls the same kernel as TensorFlow 1
and differs by 3e-7. Where that does not matter, take `tf.keras.layers.BatchNormalization` in its place.
""",
    ),
    Rule(
        "TFM876",
        "optimizers on Keras 3",
        Severity.REVIEW,
        """
Keras 3 does not add up the gradients of an embedding row that a batch uses twice before it updates the row, which
TensorFlow 1 and Keras 2 do: with Adam the loss differs by 0.3 % and the weights by 5 % after 100 steps, with Adagrad by
0.001 % and 0.04 % (measured). The class in the file adds them up first (2e-7). A learning rate that is not a float is
refused by Keras 3 and becomes one by `float(...)`.
""",
    ),
)


# -- the network -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Carried:
    """Code of a network in its form for Keras 3, what stood in its way, remarks, and classes that the file needs."""

    node: cst.CSTNode
    problems: tuple[tuple[str, str], ...]
    remarks: tuple[tuple[str, str], ...]
    classes: Mapping[str, str]


_NORMALIZATION = '''\
class {name}(tf.keras.layers.BatchNormalization):
    """Keeps the unbiased variance of a batch of %s, as the fused kernel of TensorFlow 1 did."""

    def call(self, inputs, training=False):
        outputs = super().call(inputs, training=training)
        if training and %s:
            values = tf.reshape(inputs, [-1, inputs.shape[-1]])
            count = tf.cast(tf.shape(values)[0], values.dtype)
            correction = tf.math.reduce_variance(values, axis=0) / (count - 1.0)
            self.moving_variance.assign_add((1.0 - self.momentum) * correction)
        return outputs
'''
#: Classes that files need on Keras 3: those that the rules write for Keras 2, and one more.
CLASSES = {
    "ImageBatchNormalization": (_NORMALIZATION % ("images", "len(inputs.shape) == 4")).replace(
        "{name}", "ImageBatchNormalization"
    ),
    "FusedBatchNormalization": (_NORMALIZATION % ("vectors and images", "len(inputs.shape) in (2, 4)")).replace(
        "{name}", "FusedBatchNormalization"
    ),
}
_PHASE = '''\
class {name}(tf.keras.layers.%s):
    """%s, whatever phase the model is in."""

    def call(self, inputs, training=False):
        return super().call(inputs, training=%s)
'''
CLASSES.update(
    {
        name: (_PHASE % (base, doc, phase)).replace("{name}", name)
        for name, base, doc, phase in (
            ("AlwaysDropout", "Dropout", "Drops units", "True"),
            ("FrozenBatchNormalization", "BatchNormalization", "Normalizes with its moving averages", "False"),
            ("BatchBatchNormalization", "BatchNormalization", "Normalizes with the statistics of the batch", "True"),
        )
    }
)
# A phase that a call is given, by layer: the class; None for no layer at all.
_PHASES = {
    ("Dropout", True): "AlwaysDropout",
    ("Dropout", False): None,
    ("BatchNormalization", False): "FrozenBatchNormalization",
    ("BatchNormalization", True): "BatchBatchNormalization",
}
#: Classes of the rules that are the same on both.
SAME_CLASSES = frozenset(
    (
        *("WholeLayerNormalization", "weighted_mean", "weighted_average", "CountedSteps"),
        *("AUC", "MeanPerClassAccuracy", "SensitivityAtSpecificity", "SpecificityAtSensitivity"),
    )
)


def on_symbolic(node: cst.CSTNode, code: Callable[[cst.CSTNode], str]) -> Carried:
    """Carries code that builds a network (new code, for Keras 2) over to symbolic tensors of Keras 3."""
    walk = _Symbolic(code)
    new = node.visit(walk)
    assert isinstance(new, cst.CSTNode)
    return Carried(new, tuple(walk.problems), tuple(walk.remarks), walk.classes)


class _Symbolic(cst.CSTTransformer):
    def __init__(self, code: Callable[[cst.CSTNode], str]) -> None:
        super().__init__()
        self.code = code
        self.problems: list[tuple[str, str]] = []
        self.remarks: list[tuple[str, str]] = []
        self.classes: dict[str, str] = {}
        self._kept: set[cst.CSTNode] = set()
        self._sizes: set[cst.CSTNode] = set()
        self._phased: set[cst.CSTNode] = set()  # layers whose call is told its phase

    def _problem(self, code: str, message: str) -> None:
        if (code, message) not in self.problems:
            self.problems.append((code, message))

    # -- names ---------------------------------------------------------------------------------------------------------

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        name = dotted(node)
        return name is None or not name.startswith("tf.")

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        if original_node in self._kept:
            return updated_node
        name = dotted(original_node)
        if name is None or not name.startswith("tf."):
            return self._of_shape(updated_node)
        if name.startswith("tf.keras."):
            self._check_keras(name)
        elif name in OPS and not OPS[name].added and OPS[name].cast is None:
            return cst.parse_expression(f"tf.keras.ops.{OPS[name].name}")
        elif name.removeprefix("tf.") not in _TYPES and name not in STATIC:
            self._problem("TFM871", f"`{name}` has no counterpart in `tf.keras.ops`")
        return updated_node

    def _check_keras(self, name: str) -> None:
        if not is_in_keras3(name):
            self._problem("TFM870", f"`{name}` is untested on Keras 3, or does not exist there")

    def _of_shape(self, node: cst.Attribute) -> cst.BaseExpression:
        """`x.shape.ndims`: the shape of a symbolic tensor of Keras 3 is a tuple."""
        if node.attr.value in ("ndims", "rank") and isinstance(node.value, cst.Attribute):
            if node.value.attr.value == "shape":
                return cst.Call(cst.Name("len"), [cst.Arg(node.value)])
        return node

    # -- calls ---------------------------------------------------------------------------------------------------------

    def visit_Call(self, node: cst.Call) -> bool:
        name = dotted(node.func)
        if name is not None and name.startswith("tf."):
            self._kept.add(node.func)
        if any(arg.keyword is not None and arg.keyword.value == "training" for arg in node.args):
            self._phased.add(node.func)
        for arg in node.args:
            if arg.keyword is not None and arg.keyword.value.endswith("activation"):
                self._kept.add(arg.value)  # a layer gives its activation real tensors
        if name == "tf.reshape" and len(node.args) > 1 and isinstance(node.args[1].value, cst.List):
            elements = [element.value for element in node.args[1].value.elements]
            if not any(number(element) == -1.0 for element in elements):
                self._sizes.update(e for e in elements if self._size(e) == 0)
        return True

    def _size(self, node: cst.BaseExpression) -> int | None:
        """The axis of `tf.shape(x)[axis]`."""
        if not isinstance(node, cst.Subscript) or not isinstance(node.value, cst.Call) or len(node.slice) != 1:
            return None
        index = node.slice[0].slice
        if dotted(node.value.func) != "tf.shape" or len(node.value.args) != 1 or not isinstance(index, cst.Index):
            return None
        value = number(index.value)
        return None if value is None else int(value)

    def visit_Subscript(self, node: cst.Subscript) -> bool:
        return self._size(node) is None

    def leave_Subscript(self, original_node: cst.Subscript, updated_node: cst.Subscript) -> cst.BaseExpression:
        if original_node in self._sizes:
            return cst.parse_expression("-1")
        axis = self._size(original_node)
        if axis is None:
            return updated_node
        if axis == 0:
            self._problem("TFM871", "a Keras 3 network has no batch size (`tf.shape(x)[0]`)")
            return updated_node
        assert isinstance(original_node.value, cst.Call)
        inner = original_node.value.args[0].value.visit(self)
        return updated_node.with_changes(value=cst.Attribute(inner, cst.Name("shape")))  # type: ignore[arg-type]

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        name = dotted(original_node.func)
        phase = next((a.value for a in original_node.args if a.keyword and a.keyword.value == "training"), None)
        if phase is not None:
            return self._with_phase(original_node, updated_node, phase)
        if name is None or not name.startswith("tf."):
            return self._method(updated_node)
        if name.startswith("tf.keras."):
            return self._keras(name, updated_node, original_node in self._phased)
        if any(arg.star for arg in updated_node.args) and name not in STATIC:
            self._problem("TFM871", f"`{name}` is called with * or ** arguments: write them out")
        elif name in ("tf.squared_difference", "tf.math.squared_difference"):
            inner = self._converted(_op("subtract", "x:x1 y:x2 name:"), name, updated_node)
            return cst.Call(cst.parse_expression("tf.keras.ops.square"), [cst.Arg(inner)])
        elif name in OPS:
            return self._converted(OPS[name], name, updated_node)
        elif name == "tf.identity" and updated_node.args:
            return updated_node.args[0].value
        elif name in ("tf.add_n", "tf.math.add_n"):
            return self._on_layer("tf.keras.layers.Add()", updated_node)
        elif name in WRAPPED and updated_node.args and updated_node.args[0].keyword is None:
            return self._wrapped(updated_node)
        elif name not in STATIC:
            self._problem("TFM871", f"`{name}` has no counterpart in `tf.keras.ops`")
        return updated_node

    def _method(self, node: cst.Call) -> cst.BaseExpression:
        """`x.get_shape()` and `x.shape.as_list()`."""
        func = node.func
        if not isinstance(func, cst.Attribute) or node.args:
            if isinstance(func, cst.Attribute) and func.attr.value == "set_shape":
                self._problem("TFM871", "`set_shape` does not exist on Keras 3 tensors: use a reshape instead")
            return node
        if func.attr.value == "get_shape":
            return cst.Attribute(func.value, cst.Name("shape"))
        if func.attr.value == "as_list" and isinstance(func.value, cst.Attribute) and func.value.attr.value == "shape":
            return cst.Call(cst.Name("list"), [cst.Arg(func.value)])
        return node

    def _converted(self, op: Op, name: str, call: cst.Call) -> cst.BaseExpression:
        """The call of a function of keras.ops, with the layout of the original one."""
        order = [new for _, new in op.parameters if new is not None]
        known = dict(op.parameters)
        names = [old for old, _ in op.parameters]
        args: list[cst.Arg] = []
        given: set[str] = set()
        for index, arg in enumerate(call.args):
            old = arg.keyword.value if arg.keyword is not None else names[index] if index < len(names) else None
            if old is None or old not in known:
                which = f"`{old}`" if old is not None else f"argument {index + 1}"
                self._problem("TFM871", f"{which} of `{name}` has no counterpart in `tf.keras.ops.{op.name}`")
                return call
            new = known[old]
            if new is None:
                if old == "name" or is_none(arg.value):
                    continue
                self._problem("TFM871", f"`{old}` of `{name}` has no counterpart in `tf.keras.ops.{op.name}`")
                return call
            given.add(new)
            value = self._value(name, new, arg.value)
            if arg.keyword is None and len(args) < len(order) and order[len(args)] == new:
                args.append(arg.with_changes(value=value))
            else:
                args.append(_keyword(new, value).with_changes(comma=arg.comma))
        if op.needs - given:
            self._problem("TFM871", f"`{name}` without `{min(op.needs - given)}` has no counterpart in `tf.keras.ops`")
        for new, text in op.added.items():
            if new not in given:
                if args:
                    args[-1] = args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
                args.append(_keyword(new, cst.parse_expression(text)))
        last = args[-1].comma if args else None
        if len(args) != len(call.args) and isinstance(last, cst.Comma):
            args[-1] = args[-1].with_changes(comma=call.args[-1].comma)
        made: cst.BaseExpression = call.with_changes(func=cst.parse_expression(f"tf.keras.ops.{op.name}"), args=args)
        if op.cast is not None:
            made = cst.Call(
                cst.parse_expression("tf.keras.ops.cast"), [cst.Arg(made), cst.Arg(cst.parse_expression(op.cast))]
            )
        return made

    def _value(self, name: str, parameter: str, value: cst.BaseExpression) -> cst.BaseExpression:
        """An argument as keras.ops has it."""
        if parameter == "pad_width" and isinstance(value, cst.Call) and dotted(value.func) == "tf.constant":
            return value.args[0].value if value.args else value
        if parameter != "indices_or_sections" or isinstance(value, cst.Integer):
            return value
        sizes = [number(element.value) for element in value.elements] if isinstance(value, cst.List) else [None]
        if any(size is None or size < 0 for size in sizes):
            self._problem("TFM871", f"the sizes of `{name}` are not literals: Keras 3 needs the indices to split at")
            return value
        ends = [int(sum(size or 0.0 for size in sizes[: index + 1])) for index in range(len(sizes) - 1)]
        return cst.parse_expression(repr(ends))

    def _wrapped(self, call: cst.Call) -> cst.BaseExpression:
        """`tf.keras.layers.Lambda(lambda values: tf.nn.lrn(values, 4))(net)`."""
        inputs = call.args[0]
        args = [inputs.with_changes(value=cst.Name("values")), *call.args[1:]]
        inner = self.code(call.with_changes(args=args, lpar=[], rpar=[]))
        return cst.Call(
            cst.parse_expression(f"tf.keras.layers.Lambda(lambda values: {inner})"), [cst.Arg(inputs.value)]
        )

    def _on_layer(self, layer: str, call: cst.Call) -> cst.BaseExpression:
        args = [arg for arg in call.args if arg.keyword is None or arg.keyword.value == "inputs"]
        return cst.Call(cst.parse_expression(layer), [cst.Arg(arg.value) for arg in args])

    # -- layers --------------------------------------------------------------------------------------------------------

    def _keras(self, name: str, call: cst.Call, phased: bool) -> cst.BaseExpression:
        self._check_keras(name)
        args = [self._layer_argument(arg) for arg in call.args] if name.startswith("tf.keras.layers.") else call.args
        call = call.with_changes(args=args)
        if name == "tf.keras.layers.BatchNormalization":
            return self._normalization(call, phased)
        return call

    def _with_phase(self, original: cst.Call, call: cst.Call, phase: cst.BaseExpression) -> cst.BaseExpression:
        """`Dropout(0.5)(net, training=True)`: a model of Keras 3 tells its layers its own phase in any case."""
        layer = original.func
        name = dotted(layer.func) if isinstance(layer, cst.Call) else None
        kind = ((name or "").removeprefix("tf.keras.layers."), is_true(phase))
        if not (is_true(phase) or is_false(phase)) or kind not in _PHASES:
            message = "`training=` has no effect in a Keras 3 model, which sets the training mode of its layers"
            self._problem("TFM870", message)
            return call
        assert isinstance(layer, cst.Call) and isinstance(call.func, cst.Call)
        args = [arg for arg in call.args if arg.keyword is None or arg.keyword.value != "training"]
        if args:
            args[-1] = args[-1].with_changes(comma=call.args[-1].comma)
        chosen = _PHASES[kind]
        if chosen is None:
            return cst.Call(cst.parse_expression("tf.keras.layers.Identity()"), args)
        self.classes[chosen] = CLASSES[chosen]
        new = call.func.with_changes(func=cst.Name(chosen))
        return call.with_changes(func=new, args=args)

    def _layer_argument(self, arg: cst.Arg) -> cst.Arg:
        """Keras 3 wants `padding` in small letters, and no slash in a name."""
        text, key = string(arg.value), arg.keyword.value if arg.keyword is not None else None
        if text is None:
            return arg
        if text in ("SAME", "VALID"):
            return arg.with_changes(value=cst.SimpleString(f'"{text.lower()}"'))
        if key == "name" and "/" in text:
            return arg.with_changes(value=cst.SimpleString(repr(text.replace("/", "_")).replace("'", '"')))
        return arg

    def _normalization(self, call: cst.Call, phased: bool) -> cst.BaseExpression:
        """Fused on images, unless it says that it is not, or nothing reads its averages."""
        kept: list[cst.Arg] = []
        fused = not phased
        for arg in call.args:
            key = arg.keyword.value if arg.keyword is not None else None
            if key == "fused":
                fused = False  # only False is written out
                continue
            if key == "axis" and number(arg.value) not in (-1.0, 3.0):
                self._problem("TFM870", "batch normalization over an axis other than the last is untested on Keras 3")
            kept.append(arg)
        if kept and len(kept) < len(call.args):
            kept[-1] = kept[-1].with_changes(comma=call.args[-1].comma)
        call = call.with_changes(args=kept)
        if not fused:
            return call
        name = "ImageBatchNormalization"
        self.classes[name] = CLASSES[name]
        self.remarks.append(("TFM875", f"`{name}` keeps the unbiased variance of images, as TensorFlow 1 did"))
        return call.with_changes(func=cst.Name(name))


def _keyword(name: str, value: cst.BaseExpression) -> cst.Arg:
    return cst.Arg(
        value, keyword=cst.Name(name), equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    )


# -- whole files -------------------------------------------------------------------------------------------------------


def is_in_keras3(name: str) -> bool:
    """Whether `tf.keras.X` is known to mean the same in Keras 3."""
    if name in _KERAS:
        return True
    parts = name.split(".")
    if parts[:2] != ["tf", "keras"] or len(parts) < 3:
        return False
    module = parts[2]
    if module not in _SAME_MODULES:
        return False
    allowed = _SAME_MODULES[module]
    return allowed is None or len(parts) == 3 or parts[3] in allowed


def known_names() -> frozenset[str]:
    """Every name below `tf.keras` that is known to mean the same in Keras 3."""
    found = set(_KERAS)
    for module, names in _SAME_MODULES.items():
        found |= {f"tf.keras.{module}", *(f"tf.keras.{module}.{name}" for name in names or ())}
    return frozenset((*found, *(f"tf.keras.ops.{op.name}" for op in OPS.values())))


# What is called otherwise there.
_RENAMED = {
    "tf.keras.losses.mean_squared_error": "tf.keras.losses.mse",
    "tf.keras.losses.mean_absolute_error": "tf.keras.losses.mae",
}


# Functions that give labels of [b] and outputs of [b, 1] one shape there; Keras 2 compares a table of [b, b], as
# TensorFlow 1 does (measured in 1.15.5 and 2.21).
_LINES_UP = frozenset(
    """mean_squared_error mean_absolute_error mean_absolute_percentage_error mean_squared_logarithmic_error mse mae mape
    msle MSE MAE MAPE MSLE binary_crossentropy hinge squared_hinge poisson huber log_cosh logcosh""".split()  # noqa: SIM905
)


def lines_up(name: str) -> bool:
    """Whether a function of Keras 3 compares labels and outputs one by one, where that of Keras 2 may not."""
    module, _, function = name.rpartition(".")
    return module in ("tf.keras.losses", "tf.keras.metrics") and function in _LINES_UP


class _Rename(cst.CSTTransformer):
    def visit_Attribute(self, node: cst.Attribute) -> bool:
        return dotted(node) is None

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        new = _RENAMED.get(dotted(original_node) or "")
        return updated_node if new is None else cst.parse_expression(new)


def renamed(module: cst.Module) -> cst.Module:
    """A new file with the names that Keras 3 has for what Keras 2 calls otherwise."""
    new = module.visit(_Rename())
    assert isinstance(new, cst.Module)
    return new


def foreign_names(module: cst.Module) -> list[str]:
    """The names below `tf.keras` in a new file that are in no table of this module."""
    known = [one for one in classes_in(module) if one.name.value in SAME_CLASSES]
    inside = {node for one in known for node in attributes_in(one)}
    found: list[str] = []
    for node in attributes_in(module):
        name = None if node in inside else dotted(node)
        if name is not None:
            inside |= set(attributes_in(node))
            if name.startswith("tf.keras.") and not is_in_keras3(name) and name not in found:
                found.append(name)
    return found


def class_text(name: str, text: str) -> str | None:
    """A class that a rule puts into the file for Keras 2 as it is on Keras 3; None where nobody has tried it."""
    if name in CLASSES:
        return CLASSES[name]
    return text if name in SAME_CLASSES or "tf.keras" not in text else None
