"""Weights that a network makes by itself, `tf.get_variable` and `tf.Variable`, as layers that own one weight."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrator.findings import Severity
from migrator.program.calls import bind, is_none, string
from migrator.program.own_weights import OwnWeight
from migrator.program.parsed import Blocked
from migrator.query.variables import GET, LOOKUP, PARAMETERS
from migrator.rules.layers import tidy_end
from migrator.rules.rule import Example, Rule
from migrator.rules.site import CallRule, Site, keyword

RULES = (
    Rule(
        "TFM278",
        "weights that the network creates itself",
        Severity.MIGRATED,
        """
A variable that `tf.get_variable` or `tf.Variable` makes, and that the network computes with, becomes a layer that owns
this one weight. A layer of a functional model is called with a tensor, whichever; this one gives its weight:

```python
w = Weight([784, 10], name="w")(images)
b = Weight([10], initializer=tf.keras.initializers.Zeros(), name="b")(images)
logits = tf.matmul(images, w) + b
```

The small class stands in the file. The weight starts as TensorFlow 1 starts it (`glorot_uniform` where nothing is
said), is trained, sharded and saved as other weights of the model, and its gradient stays sparse where it is only
looked up in. Measured beside TensorFlow 1.15.5 from the same weights, with Adagrad, a lookup and an L2 term over 20
steps: weights and losses differ by less than 1e-7, on one device and on two replicas, in 2.15.1 and in 2.21.

What variable scopes around it set (`initializer`, `regularizer`) is given to the layer. A table whose rows are looked
up and nothing else stays a `tf.keras.layers.Embedding`.

Unsupported are variables that are changed by hand (`tf.assign`, `scatter_update`), that two calls share (`reuse=True`,
or `tf.AUTO_REUSE` with the same names), or that are trained by themselves (`var_list`), and those of Keras 3 and of
meshes: the program becomes a bridge.
""",
        (
            Example("tf.nn.embedding_lookup(x, y, 'div', 'rows')", "tf.nn.embedding_lookup(x, y, name='rows')"),
            Example("tf.nn.embedding_lookup([x], ids=y)", "tf.nn.embedding_lookup([x], ids=y)"),
        ),
    ),
)

_SHAPED = '''\
class {name}(tf.keras.layers.Layer):
    """A weight that the model's own code computes with. Called with any tensor of the model, the layer gives it."""

    def __init__(self, shape, initializer="glorot_uniform", regularizer=None, **kwargs):
        super().__init__(**kwargs)
        self.options = {"shape": shape, "initializer": initializer, "regularizer": regularizer}

    def build(self, input_shape):
        self.weight = self.add_weight(name="weight", **self.options)

    def call(self, inputs):
        return tf.convert_to_tensor(self.weight)
'''
_VALUED = '''\
class {name}(tf.keras.layers.Layer):
    """A weight that starts at a value. Called with any tensor of the model, the layer gives it."""

    def __init__(self, initial_value, dtype=None, **kwargs):
        self.initial_value = tf.convert_to_tensor(initial_value, dtype)
        super().__init__(dtype=self.initial_value.dtype, **kwargs)

    def build(self, input_shape):
        value = self.initial_value
        self.weight = self.add_weight(name="weight", shape=value.shape, initializer=lambda *args, **kwargs: value)

    def call(self, inputs):
        return tf.convert_to_tensor(self.weight)
'''
_LOOKUP = ("params", "ids", "partition_strategy", "name", "validate_indices", "max_norm")
_DROPPED = (
    *("collections", "caching_device", "validate_shape", "use_resource", "partitioner", "import_scope"),
    *("synchronization", "aggregation", "expected_shape", "variable_def"),
)


def layer(site: Site, plan: OwnWeight) -> cst.BaseExpression:
    """The layer in the place of the call that makes a variable, called with its tensor. Raises Blocked (TFM203)."""
    parameters = PARAMETERS[site.name]
    given = bind(site.call, parameters, site.name, "TFM203")
    original = bind(site.original, parameters, site.name, "TFM203")
    for name in ("collections", "custom_getter", "constraint", "shape") if site.name != GET else ("custom_getter",):
        if not is_none(given.get(name, cst.Name("None"))):
            raise Blocked("TFM203", site.original, f"`{name}` of `{site.name}` is unsupported")
    args: list[cst.Arg] = []
    for index, arg in enumerate(site.call.args):
        name = arg.keyword.value if arg.keyword is not None else parameters[index]
        made = _argument(site, plan, name, arg, original[name])
        if made is not None:
            args.append(made)
    present = {arg.keyword.value for arg in args if arg.keyword is not None}
    for name, node in plan.carried.items():
        if name not in present and not plan.value and (name == "initializer" or site.keep_regularizers):
            args.append(keyword(name, site.rewritten(node)))
    if plan.name:
        args.append(keyword("name", cst.SimpleString(f'"{plan.name}"')))
    named = original.get("name")
    placed = [arg.value for arg in site.original.args if arg.keyword is None]
    args.sort(key=lambda arg: _rank(arg, any(value is named for value in placed)))
    made_by = site.training.helper(*(("Variable", _VALUED) if plan.value else ("Weight", _SHAPED)))
    owner = site.call.with_changes(func=cst.Name(made_by), args=_laid_out(args, site.call.args))
    return owner if plan.tensor is None else called(owner, plan.tensor)


def _rank(arg: cst.Arg, name_last: bool) -> int:
    """Where an argument goes: those without a keyword first, a name that had none last."""
    if arg.keyword is None:
        return 0
    return 2 if name_last and arg.keyword.value == "name" else 1


def called(made: cst.BaseExpression, tensor: str) -> cst.Call:
    """A layer that is called with a tensor."""
    return cst.Call(made, [cst.Arg(cst.parse_expression(tensor))])


def partitioner(name: str | None, call: cst.Call) -> cst.BaseExpression | None:
    """The partitioner that a variable is given."""
    if name != GET:
        return None
    try:
        given = bind(call, PARAMETERS[GET], GET, "TFM203").get("partitioner")
    except Blocked:
        return None
    return None if is_none(given) else given


def _argument(site: Site, plan: OwnWeight, name: str, arg: cst.Arg, original: cst.BaseExpression) -> cst.Arg | None:
    """An argument as the layer takes it; None where it says nothing there. Raises Blocked (TFM203)."""
    if name in _DROPPED or (is_none(original) and name != "trainable") or (name == "name" and plan.name != ""):
        return None
    if name == "regularizer" and not site.keep_regularizers:
        return None
    if name == "dtype" and site.name == GET:
        dtype = site.tensorflow(original) or ""
        if dtype == "tf.float32":
            return None
        if dtype != "tf.float64":
            raise Blocked("TFM203", site.original, "the `dtype` of this variable is not a literal float type")
    first = name == "initial_value" or (name == "initializer" and plan.value)
    if first or (name == "shape" and arg.keyword is None):
        value = arg.value
        if name == "shape" and plan.whole:
            value = cst.List([cst.Element(value.with_changes(lpar=[], rpar=[]))])
        return arg.with_changes(value=value, keyword=None, equal=cst.MaybeSentinel.DEFAULT)
    if name == "shape" and plan.whole:
        arg = arg.with_changes(value=cst.List([cst.Element(arg.value)]))
    if arg.keyword is None:
        return keyword(name, arg.value).with_changes(comma=arg.comma)
    return arg


def _laid_out(args: Sequence[cst.Arg], old: Sequence[cst.Arg]) -> list[cst.Arg]:
    """Arguments on the lines of those in whose place they stand."""
    found: list[cst.Arg] = []
    for index, arg in enumerate(args):
        last = index == len(args) - 1
        place = old[-1] if last else old[index] if index < len(old) - 1 else None
        if place is None:
            comma: cst.Comma | cst.MaybeSentinel = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
            found.append(arg.with_changes(comma=comma, whitespace_after_arg=cst.SimpleWhitespace("")))
        else:
            found.append(arg.with_changes(comma=place.comma, whitespace_after_arg=place.whitespace_after_arg))
    return found


def divides(call: cst.Call) -> bool:
    """Whether a lookup gives the ids to the parts of a table as a partitioner does."""
    given = bind(call, _LOOKUP, LOOKUP, "TFM203").get("partition_strategy")
    return given is not None and string(given) == "div"


def _looked_up(site: Site) -> cst.BaseExpression:
    """`tf.nn.embedding_lookup` of TensorFlow 2, whose lists of tables give the ids to their parts another way."""
    given = site.arguments(_LOOKUP, "TFM203")
    if isinstance(given["params"], (cst.List, cst.Tuple)) and len(given["params"].elements) != 1:
        raise Blocked("TFM203", site.original, "`tf.nn.embedding_lookup` in a list of tables is unsupported")
    kept: list[cst.Arg] = []
    for index, arg in enumerate(site.call.args):
        name = arg.keyword.value if arg.keyword is not None else None
        if name in ("partition_strategy", "validate_indices") or (name is None and index in (2, 4)):
            continue
        if name is None and index > 1:
            arg = keyword(("name", "max_norm")[index > 3], arg.value).with_changes(comma=arg.comma)
        kept.append(arg)
    return site.call.with_changes(func=cst.parse_expression("tf.nn.embedding_lookup"), args=tidy_end(kept))


CALLS: dict[str, CallRule] = {LOOKUP: _looked_up}

__all__ = ["CALLS", "RULES", "called", "divides", "layer", "partitioner"]
