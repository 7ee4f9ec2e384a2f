"""Dropouts: `tf.nn.dropout`, rates that depend on the mode, and dropouts of the TRAIN mode only."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Optional

import libcst as cst

from migrator.findings import Severity
from migrator.names.imports import ImportMap
from migrator.program.calls import is_none, number
from migrator.program.modes import ALL, TRAIN, ModeNames, Modes
from migrator.program.parsed import Blocked
from migrator.rules.rule import Example, Rule
from migrator.rules.site import CallRule, Site, keyword

RULES = (
    Rule(
        "TFM226",
        "tf.nn.dropout becomes tf.keras.layers.Dropout",
        Severity.MIGRATED,
        """
`tf.nn.dropout(x, keep_prob)` drops `1 - keep_prob` of the units whenever it runs. Where it runs in TRAIN mode only, or
where `keep_prob` is 1 otherwise (`keep_prob if training else 1.0`, also under a name), that is what a Keras dropout
does by itself: the branch and the condition go. Where it always runs, it says so (`training=True`, TFM222). Both scale
what they keep by `1 / keep_prob`; the masks differ, as between any two runs.
""",
        (
            Example("tf.nn.dropout(net, 0.8)", "tf.keras.layers.Dropout(0.2)(net, training=True)"),
            Example("tf.nn.dropout(net, rate=0.3)", "tf.keras.layers.Dropout(0.3)(net, training=True)"),
            Example(
                "tf.nn.dropout(net, keep_prob=params.keep if mode == tf.estimator.ModeKeys.TRAIN else 1.0)",
                "tf.keras.layers.Dropout(1 - params.keep)(net)",
            ),
            Example(
                "tf.nn.dropout(net, 0.5) if mode == tf.estimator.ModeKeys.TRAIN else net",
                "tf.keras.layers.Dropout(0.5)(net)",
            ),
        ),
    ),
)

_DROPOUTS = ("tf.nn.dropout", "tf.layers.dropout", "tf.contrib.layers.dropout", "tf.contrib.slim.dropout")
WRAPPER = "tf.nn.rnn_cell.DropoutWrapper"
Definition = Callable[[str], Optional[cst.BaseExpression]]


def rate_of(keep: cst.BaseExpression) -> cst.BaseExpression:
    """The rate of a dropout that keeps `keep`."""
    if isinstance(keep, (cst.Float, cst.Integer)):
        return cst.parse_expression(str(1 - Decimal(keep.value.replace("_", ""))))
    if isinstance(keep, cst.BinaryOperation) and isinstance(keep.operator, cst.Subtract) and number(keep.left) == 1.0:
        return keep.right
    if not isinstance(keep, (cst.Name, cst.Attribute, cst.Subscript, cst.Call)) and not keep.lpar:
        keep = keep.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.BinaryOperation(cst.Integer("1"), cst.Subtract(), keep)


def in_training(
    value: cst.BaseExpression, neutral: float, modes: ModeNames | None, definition: Definition
) -> cst.BaseExpression:
    """What `a if training else neutral` (or a name for it) is in training; any other value as it is."""
    node = definition(value.value) if isinstance(value, cst.Name) else value
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Subtract) and number(node.left) == 1.0:
        right = in_training(node.right, 1.0 - neutral, modes, definition)
        return value if right is node.right else node.with_changes(right=right)
    if not isinstance(node, cst.IfExp) or modes is None:
        return value
    when = modes.when(node.test)
    if when == frozenset((TRAIN,)) and number(node.orelse) == neutral:
        return node.body
    if when == ALL - {TRAIN} and number(node.body) == neutral:
        return node.orelse
    return value


def is_training_dropout(call: cst.CSTNode | None, on: cst.BaseExpression, imports: ImportMap) -> bool:
    """Whether an expression of the TRAIN mode is a dropout at work over the plain name `on`."""
    if not isinstance(call, cst.Call) or not call.args:
        return False
    inputs, symbol = call.args[0], imports.tensorflow(call.func)
    named = inputs.keyword is not None and not (symbol == WRAPPER and inputs.keyword.value == "cell")
    if symbol not in (*_DROPOUTS, WRAPPER) or named or not isinstance(on, cst.Name) or not inputs.value.deep_equals(on):
        return False
    return imports.tensorflow(call.func) != "tf.layers.dropout" or any(
        arg.keyword is not None and arg.keyword.value == "training" for arg in call.args
    )


def drops_nothing(call: cst.BaseExpression, runs: Modes, modes: ModeNames) -> cst.BaseExpression | None:
    """What a dropout lets through as it is, in all of the modes that run it; None for anything else.

    `tf.layers.dropout(net, training=False)`, and what keeps everything: `tf.nn.dropout(net, keep_prob=1.0)`.
    """
    name = modes.imports.tensorflow(call.func) if isinstance(call, cst.Call) else None
    if not isinstance(call, cst.Call) or name not in _DROPOUTS or not call.args or call.args[0].keyword is not None:
        return None
    if any(arg.star for arg in call.args):
        return None
    given = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
    training = given.get("training" if name == "tf.layers.dropout" else "is_training")
    if training is not None:
        when = modes.when(training)
        return call.args[0].value if when is not None and not when & runs else None
    if name == "tf.layers.dropout" and len(call.args) - len(given) <= 2:
        return call.args[0].value  # it drops where it is told to
    keep, rate = given.get("keep_prob"), given.get("rate")
    everything = (keep is not None and number(keep) == 1.0) or (rate is not None and number(rate) == 0.0)
    return call.args[0].value if everything and (keep is None) != (rate is None) else None


def training_dropout(statement: cst.BaseStatement, imports: ImportMap) -> cst.Call | None:
    """The call in `net = dropout(net, ...)`, a statement that runs in TRAIN mode only; None for any other one."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return None
    small = statement.body[0]
    if not isinstance(small, cst.Assign) or len(small.targets) != 1 or not isinstance(small.value, cst.Call):
        return None
    return small.value if is_training_dropout(small.value, small.targets[0].target, imports) else None


ONE = ("x", "keep_prob", "noise_shape", "seed", "name", "rate")
TWO = ("x", "rate", "noise_shape", "seed", "name")


def dropout_parameters(call: cst.Call, imports: ImportMap) -> tuple[str, ...]:
    """The parameters of `tf.nn.dropout`, whose second one is another in TensorFlow 2. Raises Blocked (TFM204)."""
    if len(call.args) < 2 or call.args[1].keyword is not None or not imports.may_be_two(call.func):
        return ONE
    if imports.is_of_two(call.func):
        return TWO
    message = "argument 2 of `tf.nn.dropout` is keep_prob in TensorFlow 1 and rate in TensorFlow 2"
    raise Blocked("TFM204", call, f"{message}: pass it by keyword")


def _dropout(site: Site) -> cst.BaseExpression:
    parameters = ONE if site.imports is None else dropout_parameters(site.original, site.imports)
    if parameters is TWO:
        message = "the second argument of `tf.nn.dropout` is the rate, as in TensorFlow 2"
        site.remarks.append(Blocked("TFM189", site.original, message))
    bound = site.arguments(parameters, "TFM202")
    keep, rate = bound.get("keep_prob"), bound.get("rate")
    if "x" not in bound or is_none(keep) == is_none(rate):
        raise Blocked("TFM202", site.original, "`tf.nn.dropout` takes exactly one of `keep_prob` and `rate`")
    value, neutral = (keep, 1.0) if not is_none(keep) else (rate, 0.0)
    assert value is not None
    chosen = in_training(value, neutral, site.modes, site.definition)
    phase = None if chosen is not value or site.only_training else True
    args = [cst.Arg(rate_of(chosen) if neutral else chosen)]
    args += [keyword(name, bound[name]) for name in ("noise_shape", "seed") if not is_none(bound.get(name))]
    own = cst.Call(cst.parse_expression("tf.keras.layers.Dropout"), args)
    call_args = [cst.Arg(bound["x"])]
    if phase:
        message = "dropout stays active in evaluation and prediction, as before"
        site.remarks.append(Blocked("TFM222", site.original, message))
        call_args.append(keyword("training", cst.Name("True")))
    return cst.Call(own, call_args, lpar=site.call.lpar, rpar=site.call.rpar)


CALLS: dict[str, CallRule] = {"tf.nn.dropout": _dropout}
