"""Half precision: in which formats a program multiplies, and how far rounding takes its numbers there.

A weight of float32 that is moved by one unit in its last place is mostly the same number again when it is cast to half
precision, so that such a move says nothing of what is computed there. In a replicate each cast to a half format
therefore gives a neighbour of the number that it would give, above or below: the least by which two correct programs
are apart.
"""

import importlib

import parts

#: The formats, and how many binary digits of a number behind its first one they keep.
DIGITS = {"float16": 10, "bfloat16": 7}
_SCOPE = "moved_cast"
#: Operations that add up products.
PRODUCTS = ("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum")


def _multiplies(kind):
    # Not ConcatV2, ConjugateTranspose and their like: a digit follows.
    return kind in PRODUCTS or kind.startswith(("Conv2D", "Conv3D", "DepthwiseConv2d"))


def formats(graph, reached=None):
    """The half formats in which operations of a graph, or of functions in it, multiply matrices or convolve; only those
    of the operations ``reached`` of the graph itself, where these are given.
    """
    found = set()
    for operation in graph.get_operations():
        if (reached is None or operation.name in reached) and _multiplies(operation.type):
            found.add(operation.inputs[0].dtype.base_dtype.name)
    kinds = importlib.import_module("tensorflow").as_dtype
    for function in getattr(graph, "_functions", {}).values():
        definition = getattr(function, "definition", None) or getattr(function, "function_def", None)
        for node in getattr(definition, "node_def", ()):
            if _multiplies(node.op):
                found.add(kinds(node.attr["T"].type).base_dtype.name)
    return sorted(found & set(DIGITS))


def coarsest(names):
    """The format of the fewest digits; None where there is none."""
    return min(names, key=DIGITS.get, default=None)


def source(tensor):
    """What a tensor of a graph, or a variable, is cast from; itself where it is not."""
    while True:
        operation = tensor.op
        inputs = getattr(operation, "inputs", ())  # a variable of a bridge has an operation with a name alone
        moved = operation.type == "Mul" and _SCOPE in operation.name
        if not inputs or not (moved or operation.type in ("Cast", "Identity", "ReadVariableOp")):
            return tensor
        tensor = inputs[0]


def _neighbours(tf, cast, rounded, seed):
    """Each number of a tensor of half precision moved to a neighbour, above or below by its place."""
    wide = cast(rounded, tf.float32)
    places = cast(tf.range(tf.size(wide)), tf.float64)
    # Signs that look drawn, without a generator whose draws others would get.
    mixed = tf.sin(places * 12.9898 + (seed % 1000) * 78.233) * 43758.5453
    up = tf.reshape(mixed - tf.floor(mixed) < 0.5, tf.shape(wide))
    # Three quarters of a unit at the least, and one and a half at the most, are rounded to one, if not to two.
    unit = 0.75 * 2.0 ** -DIGITS[rounded.dtype.base_dtype.name]
    one = tf.ones_like(wide)
    moved = cast(wide * tf.where(up, one * (1.0 + unit), one * (1.0 - unit)), rounded.dtype)
    moved.set_shape(rounded.shape)
    return moved


def move_casts(seed):
    """From now on what is cast to half precision is moved by one unit in its last place, but for single numbers: these
    are scales of losses.
    """
    tf = importlib.import_module("tensorflow.compat.v1")

    def cast(original, x, dtype, *args, **kwargs):
        rounded = original(x, dtype, *args, **kwargs)
        half = isinstance(rounded, tf.Tensor) and rounded.dtype.base_dtype.name in DIGITS
        was = getattr(getattr(x, "dtype", None), "base_dtype", None)
        if not half or rounded.shape.ndims in (None, 0) or was == rounded.dtype.base_dtype:
            return rounded
        with tf.name_scope(_SCOPE):
            return _neighbours(tf, original, rounded, seed)

    holders = []
    for name in ("tensorflow", "tensorflow.compat.v1", "tensorflow.compat.v2", "tensorflow.python.ops.math_ops"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        for holder in (module, getattr(module, "dtypes", None)):
            if hasattr(holder, "cast") and not any(holder is other for other in holders):
                holders.append(holder)
    for holder in holders:
        parts.wrap(holder, "cast", cast)
