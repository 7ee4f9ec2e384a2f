"""The optimizer that `tf.contrib.layers.optimize_loss` makes: by its name, its class or a function of the rate."""

from __future__ import annotations

import libcst as cst

from migrator.pairing import equal_zip
from migrator.program.calls import is_none, string
from migrator.program.parsed import Blocked, names_in
from migrator.program.train_body import TrainBody
from migrator.rules.optimizers import is_optimizer

_NAMES_OF_OPTIMIZERS = {
    # The optimizers that optimize_loss knows by name (tf.contrib.layers.OPTIMIZER_CLS_NAMES).
    "Adagrad": "tf.train.AdagradOptimizer({})",
    "Adam": "tf.train.AdamOptimizer({})",
    "Ftrl": "tf.train.FtrlOptimizer({})",
    "Momentum": "tf.train.MomentumOptimizer({}, momentum=0.9)",
    "RMSProp": "tf.train.RMSPropOptimizer({})",
    "SGD": "tf.train.GradientDescentOptimizer({})",
}
_EQUAL = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))


def optimizer_of_loss(body: TrainBody, node: cst.Call, bound: dict[str, cst.BaseExpression]) -> cst.Call:
    """The call that makes the optimizer of a call of optimize_loss. Raises Blocked (TFM401, TFM402)."""
    given = bound.get("optimizer")
    if given is None:
        raise Blocked("TFM401", node, "optimize_loss is called without an optimizer: pass one")
    rate = bound.get("learning_rate")
    if rate is None or is_none(rate):
        raise Blocked("TFM401", node, "optimize_loss is called without a learning rate: pass one")
    decay = bound.get("learning_rate_decay_fn")
    if decay is not None and not is_none(decay):
        rate = _decayed(body, rate, decay)
    if isinstance(given, cst.Lambda) and len(given.params.params) == 1:
        return _from_lambda(body, given, rate)
    known, symbol = string(given), body.imports.resolve(given)
    if known in _NAMES_OF_OPTIMIZERS:
        text = _NAMES_OF_OPTIMIZERS[str(known)]
    elif is_optimizer(symbol):
        text = f"{symbol}({{}})"
    else:
        raise Blocked("TFM401", given, "the optimizer of optimize_loss cannot be resolved")
    call = cst.parse_expression(text.format("rate"))
    assert isinstance(call, cst.Call)
    arguments = [cst.Arg(rate, keyword=cst.Name("learning_rate"), equal=_EQUAL), *call.args[1:]]
    return call.with_changes(func=_here(body, call.func, given), args=arguments)


def _here(body: TrainBody, function: cst.BaseExpression, given: cst.BaseExpression) -> cst.BaseExpression:
    """A TensorFlow name in the spelling of this file."""
    if body.imports.resolve(given) is not None:
        return given
    for name, origin in body.imports.names.items():
        if origin in ("tensorflow", "tensorflow.compat.v1", "tf"):
            return cst.parse_expression(body.file.code(function).replace("tf.", f"{name}.", 1))
    raise Blocked("TFM401", given, "TensorFlow is not imported under a name in this file")


def _from_lambda(body: TrainBody, given: cst.Lambda, rate: cst.BaseExpression) -> cst.Call:
    made = given.body
    parameter = given.params.params[0].name.value
    if not isinstance(made, cst.Call) or not is_optimizer(body.imports.resolve(made.func)):
        raise Blocked("TFM401", given, "the optimizer of optimize_loss cannot be resolved")
    args = [
        arg.with_changes(value=rate) if isinstance(arg.value, cst.Name) and arg.value.value == parameter else arg
        for arg in made.args
    ]
    if any(parameter in names_in(a.value) for a, b in equal_zip(args, made.args) if a is b):
        raise Blocked("TFM402", given, "the learning rate is changed in the lambda")
    return made.with_changes(args=args)


def _decayed(body: TrainBody, rate: cst.BaseExpression, decay: cst.BaseExpression) -> cst.BaseExpression:
    """The rate that `lambda rate, step: tf.train.exponential_decay(rate, step, ...)` gives."""
    if not isinstance(decay, cst.Lambda) or len(decay.params.params) != 2:
        raise Blocked("TFM402", decay, "this learning_rate_decay_fn cannot be resolved: write it as a lambda")
    first, second = (param.name.value for param in decay.params.params)
    step = _here(body, cst.parse_expression("tf.train.get_global_step()"), decay)
    new = decay.body.visit(_Substitution({first: rate, second: step}))
    assert isinstance(new, cst.BaseExpression)
    return new


class _Substitution(cst.CSTTransformer):
    def __init__(self, values: dict[str, cst.BaseExpression]) -> None:
        super().__init__()
        self.values = values

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        return True

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        return self.values.get(original_node.value, updated_node)


__all__ = ["optimizer_of_loss"]
