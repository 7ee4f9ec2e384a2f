"""Functions of TensorFlow 1 whose TensorFlow 2 namesake computes something else for some arguments."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrator.findings import Severity
from migrator.names.imports import dotted
from migrator.pairing import equal_zip
from migrator.program.calls import bind, is_none, number
from migrator.program.parsed import Blocked
from migrator.rules.rule import Example, Rule
from migrator.rules.site import CallRule, Site, call_text, expression

WHERE_OF_EITHER = "`tf.where` broadcasts in TensorFlow 2 and takes rows in `tf.compat.v1.where`: say which is meant"

RULES = (
    Rule(
        "TFM189",
        "a name with another meaning in TensorFlow 2, in a TensorFlow 2 file",
        Severity.REVIEW,
        """
The file names what only TensorFlow 1 has as TensorFlow 2 does (`tf.compat.v1.get_variable`), and nothing of it plainly:
it runs in TensorFlow 2. So a plain `tf.X` is taken for that of TensorFlow 2, and stays. The second argument of
`tf.nn.dropout(x, 0.1)` is then the share that is dropped, where TensorFlow 1 keeps so much; `tf.where` broadcasts;
`tf.while_loop` gives one value in the structure that it is given in. If the program is run in TensorFlow 1.15, where
the same line means the other thing, say which is meant: `rate=0.1`. A file that has both ways to spell is not taken
for either: such calls are refused (TFM204, TFM240).
""",
    ),
    Rule(
        "TFM240",
        "a function that computes something else in TensorFlow 2 for some arguments",
        Severity.MANUAL,
        """
`tf.div` divides integers as Python 2 did: it becomes `tf.divide` or `tf.math.floordiv` where the numbers are
floating-point or integers for certain, and elsewhere a function of the user's file that asks for their type.
`tf.where(condition, x, y)` takes whole rows where the condition is a vector, and TensorFlow 2 broadcasts it along the
last axis instead; where the condition compares `x` or `y` itself the two are the same, elsewhere the operation of
TensorFlow 1 is called by its name (`tf.raw_ops.Select`). A network, whose symbolic tensors that does not take, has a
function of the user's file in its place, which makes such a vector a column. Symbolic tensors do not go through
`tf.map_fn`, `tf.vectorized_map` and functions of `tf.custom_gradient`, `tf.recompute_grad` or `tf.function`; and they
have no `x.op`, `x.graph` and `x.consumers()`, and are no `tf.Tensor`: a network that asks for these becomes a bridge.
`tf.nn.softmax_cross_entropy_with_logits` sends no gradient to the labels in TensorFlow 1. In a file that also says
`compat.v1` a plain `tf.where` may mean either
version: it is refused where the two differ.
""",
        (
            Example("tf.div(x, y)", "div(x, y)"),
            Example("tf.div(x, 2.0)", "tf.divide(x, 2.0)"),
            Example("tf.div(tf.to_float(x), y)", "tf.divide(tf.cast(x, tf.float32), y)"),
            Example("tf.div(tf.shape(x)[0], 2)", "tf.math.floordiv(tf.shape(x)[0], 2)"),
            Example("tf.where(x > 0)", "tf.where(x > 0)"),
            Example("tf.where(x > 0, x, y)", "tf.where(x > 0, x, y)"),
            Example("tf.where(tf.is_nan(x), tf.zeros_like(x), x)", "tf.where(tf.math.is_nan(x), tf.zeros_like(x), x)"),
            Example("tf.where(flags, x, y)", "tf.raw_ops.Select(condition=flags, x=x, y=y)"),
            Example("tf.nn.xw_plus_b(x, w, b)", "tf.nn.bias_add(tf.matmul(x, w), b)"),
            Example(
                "tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=x)",
                "tf.nn.softmax_cross_entropy_with_logits(labels=tf.stop_gradient(y), logits=x)",
            ),
            Example(
                "tf.nn.softmax_cross_entropy_with_logits(labels=tf.one_hot(y, 3), logits=x, dim=-1)",
                "tf.nn.softmax_cross_entropy_with_logits(labels=tf.one_hot(y, 3), logits=x, axis=-1)",
            ),
        ),
    ),
)

_FLOATS = ("tf.float16", "tf.float32", "tf.float64", "tf.bfloat16")
_INTEGERS = ("tf.int8", "tf.int16", "tf.int32", "tf.int64")
_FLOAT_FUNCTIONS = ("exp", "log", "sqrt", "rsqrt", "sigmoid", "tanh")
_FLOAT_CALLS = frozenset(
    [f"tf.{module}{name}" for name in _FLOAT_FUNCTIONS for module in ("", "math.", "nn.")]
    + ["tf.to_float", "tf.to_double", "tf.nn.softmax", "tf.norm"]
)
_INTEGER_CALLS = frozenset(("tf.shape", "tf.size", "tf.rank", "tf.to_int32", "tf.to_int64"))
_DIV = '''\
def {name}(x, y):
    """Divides as TensorFlow 1's tf.div: it rounds down where the numbers are integers."""
    x = tf.convert_to_tensor(x)
    return tf.math.floordiv(x, y) if x.dtype.is_integer else tf.divide(x, y)
'''
# Predicates that look at each element of their arguments by itself.
_COMPARISONS = ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal", "is_nan", "is_inf", "is_finite")
_ELEMENTWISE = frozenset(
    [f"tf.{module}{name}" for name in _COMPARISONS for module in ("", "math.")]
    + ["tf.logical_not", "tf.logical_and", "tf.logical_or"]
)


def _name(node: cst.BaseExpression) -> str | None:
    """The name of a called function, as the file spells it."""
    name = dotted(node.func) if isinstance(node, cst.Call) else None
    return name.replace(".compat.v1.", ".") if name is not None else None


def _is(node: cst.BaseExpression, literal: type[cst.BaseNumber], calls: frozenset[str], types: Sequence[str]) -> bool:
    """Whether a literal, a call or a cast gives an expression its kind of numbers."""
    if isinstance(node, cst.UnaryOperation):
        return _is(node.expression, literal, calls, types)
    if isinstance(node, cst.BinaryOperation):
        if isinstance(node.operator, cst.Divide) and calls is _INTEGER_CALLS:
            return False
        return _is(node.left, literal, calls, types) or _is(node.right, literal, calls, types)
    if isinstance(node, cst.Subscript):
        return _is(node.value, literal, calls, types)
    if isinstance(node, cst.Call) and _name(node) in ("tf.cast", "tf.constant", "tf.ones", "tf.zeros"):
        return any(dotted(arg.value) in types for arg in node.args[1:])
    return isinstance(node, literal) or _name(node) in calls


def _div(site: Site) -> cst.BaseExpression:
    given = site.originals(("x", "y", "name"), "TFM240")
    new = [site.code(node) for key, node in site.arguments(("x", "y", "name"), "TFM240").items() if key != "name"]
    numbers = [given[key] for key in ("x", "y") if key in given]
    if any(_is(node, cst.Float, _FLOAT_CALLS, _FLOATS) for node in numbers):
        return expression(call_text("tf.divide", new))
    # An integer literal takes the type of the other operand, and says nothing.
    if any(_is(node, cst.Imaginary, _INTEGER_CALLS, _INTEGERS) for node in numbers):
        return expression(call_text("tf.math.floordiv", new))
    return expression(call_text(site.helper("div", _DIV), new))


def _where(site: Site) -> cst.BaseExpression:
    given = site.originals(("condition", "x", "y", "name"), "TFM240")
    if is_none(given.get("x")) and is_none(given.get("y")):
        return site.call
    if "condition" not in given or "x" not in given or "y" not in given:
        raise Blocked("TFM240", site.original, "`tf.where` takes a condition alone, or a condition with x and y")
    like = {site.code(node) for value in (given["x"], given["y"]) for node in (value, _likened(value))}
    if _compares(given["condition"], like, site):
        return site.call
    if site.imports is not None and site.imports.is_of_two(site.original.func):
        site.remarks.append(Blocked("TFM189", site.original, "`tf.where` broadcasts, as in TensorFlow 2"))
        return site.call
    if site.imports is not None and site.imports.may_be_two(site.original.func):
        raise Blocked("TFM240", site.original, WHERE_OF_EITHER)
    new = site.arguments(("condition", "x", "y", "name"), "TFM240")
    return expression(call_text("tf.raw_ops.Select", [f"{key}={site.code(node)}" for key, node in new.items()]))


def _likened(node: cst.BaseExpression) -> cst.BaseExpression:
    """`x` of `tf.zeros_like(x)`."""
    if isinstance(node, cst.Call) and _name(node) in ("tf.zeros_like", "tf.ones_like") and len(node.args) == 1:
        return node.args[0].value
    return node


def _compares(node: cst.BaseExpression, like: set[str], site: Site) -> bool:
    """Whether a condition has the shape of what is chosen from: it compares that with itself or with numbers."""
    if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        parts = [node.left, node.comparisons[0].comparator]
    elif isinstance(node, cst.Call) and _name(node) in _ELEMENTWISE:
        parts = [arg.value for arg in node.args if arg.keyword is None or arg.keyword.value != "name"]
    elif isinstance(node, (cst.BooleanOperation, cst.BinaryOperation)):
        parts = [node.left, node.right]
    else:
        return False
    same = [site.code(part) in like or _compares(part, like, site) for part in parts]
    return any(same) and all(alike or number(part) is not None for alike, part in equal_zip(same, parts))


def _xw_plus_b(site: Site) -> cst.BaseExpression:
    new = site.arguments(("x", "weights", "biases", "name"), "TFM240")
    if not {"x", "weights", "biases"} <= new.keys():
        raise Blocked("TFM240", site.original, "`tf.nn.xw_plus_b` takes x, weights and biases")
    product = call_text("tf.matmul", [site.code(new["x"]), site.code(new["weights"])])
    return expression(call_text("tf.nn.bias_add", [product, site.code(new["biases"])]))


_ENTROPY = ("_sentinel", "labels", "logits", "dim", "name", "axis")


def _softmax_cross_entropy(site: Site) -> cst.BaseExpression:
    given = bind(site.original, _ENTROPY, site.name, "TFM240")
    new = site.arguments(_ENTROPY, "TFM240")
    if "labels" not in given or "logits" not in given or not is_none(given.get("_sentinel")):
        raise Blocked("TFM240", site.original, "labels and logits must be keyword arguments")
    labels = site.code(new["labels"])
    if _name(given["labels"]) not in ("tf.one_hot", "tf.stop_gradient"):
        labels = call_text("tf.stop_gradient", [labels])
    parts = [f"labels={labels}", f"logits={site.code(new['logits'])}"]
    parts += [f"axis={site.code(new[key])}" for key in ("dim", "axis") if not is_none(given.get(key))]
    parts += [f"name={site.code(new['name'])}"] if "name" in new else []
    return expression(call_text("tf.nn.softmax_cross_entropy_with_logits", parts))


CALLS: dict[str, CallRule] = {
    "tf.div": _div,
    "tf.where": _where,
    "tf.nn.xw_plus_b": _xw_plus_b,
    "tf.nn.softmax_cross_entropy_with_logits": _softmax_cross_entropy,
}
