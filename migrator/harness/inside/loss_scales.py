"""Losses that a program multiplies before it takes their gradients, and whose gradients it divides again, so that small
gradients do not vanish in half precision: by hand, or in a LossScaleOptimizer. The loss of such a step is the one that
was multiplied. Where the gradients stay multiplied, the loss that is minimised is the product, and stays what it is.
"""

import parts

SAME = ("Identity", "Cast", "StopGradient", "EnsureShape", "PreventGradient", "CheckNumerics")
DIVIDING = ("RealDiv", "Div")
# What a scale may be read from. A scalar that a graph is given from outside is a Placeholder in it.
SOURCES = ("Placeholder", "ReadVariableOp", "VarHandleOp", "VariableV2", "Variable")
ONE = (1.0, {})
BOUNDING = ("Minimum", "Maximum", "Select", "SelectV2", "ClipByValue")


def _same(one, other):
    return one.op is other.op and one.value_index == other.value_index


def _product(one, other, power=1):
    """The product of two scales, or the quotient with ``power`` -1; None where one of them is not known."""
    if one is None or other is None or (power < 0 and not other[0]):
        return None
    powers = dict(one[1])
    for name, exponent in other[1].items():
        powers[name] = powers.get(name, 0) + power * exponent
    return one[0] * other[0] ** power, {name: exponent for name, exponent in powers.items() if exponent}


def scale(tensor):
    """A scalar that is made of constants and variables alone, as (number, {name of what is read: power}), or None."""
    if tensor.shape.rank != 0 or not tensor.dtype.is_floating:
        return None
    operation = tensor.op
    if operation.type in SAME:
        return scale(operation.inputs[0])
    if operation.type == "Const":
        return float(parts.constant(operation)), {}
    if operation.type == "Mul":
        return _product(scale(operation.inputs[0]), scale(operation.inputs[1]))
    if operation.type in DIVIDING:
        return _product(scale(operation.inputs[0]), scale(operation.inputs[1]), -1)
    if operation.type == "Reciprocal":
        return _product(ONE, scale(operation.inputs[0]), -1)
    if operation.type in SOURCES:
        source = operation.inputs[0].op if operation.inputs else operation
        return 1.0, {source.name: 1}
    return None


def _factor(operation, tensor, clipped=False):
    """What an operation multiplies a tensor by; None where it does something else. ``clipped``: by what is computed it
    multiplies as a clipping does, which keeps a gradient that is small enough.
    """
    known = _known_factor(operation, tensor)
    if known is not None or not clipped:
        return known
    first = operation.type == "Mul" or (operation.type in DIVIDING and _same(operation.inputs[0], tensor))
    return ONE if first or operation.type in BOUNDING else None


def _known_factor(operation, tensor):
    if operation.type in SAME:
        return ONE
    if operation.type == "Mul":
        left, right = operation.inputs
        return scale(right if _same(left, tensor) else left)
    if operation.type in DIVIDING and _same(operation.inputs[0], tensor):
        return _product(ONE, scale(operation.inputs[1]), -1)
    return None


def _before(tensor):
    """[(tensor, scale)]: what a loss is a multiple of."""
    found, factor = [], ONE
    while True:
        operation = tensor.op
        inputs = [one for one in operation.inputs if operation.type in (*SAME, "Mul", *DIVIDING)]
        known = [(one, _factor(operation, one)) for one in inputs if scale(one) is None]
        if len(known) != 1 or known[0][1] is None:
            return found
        tensor, factor = known[0][0], _product(factor, known[0][1])
        found.append((tensor, factor))


def _behind(tensor, clipped=True):
    """The scales of all multiples that are made of a gradient, ``clipped`` or not, or of a loss."""
    found, waiting = [], [(tensor, ONE)]
    while waiting:
        tensor, factor = waiting.pop()
        for operation in tensor.consumers():
            own = _factor(operation, tensor, clipped)
            if own is not None:
                found.append(_product(factor, own))
                waiting.append((operation.outputs[0], found[-1]))
    return found


def unscaled(loss, gradients):
    """The loss of which ``loss`` is a multiple, where all ``gradients`` of the multiple are divided again."""
    tensors = [getattr(one, "values", one) for one in gradients if one is not None]
    if not tensors or not all(hasattr(one, "graph") for one in [loss, *tensors]):
        return loss  # eager: how a number came about is not known
    behind = None
    for tensor, factor in _before(loss):
        if factor == ONE:
            continue
        behind = [_behind(one) for one in tensors] if behind is None else behind
        if all(any(_undoes(factor, one) for one in found) for found in behind):
            return tensor
    return loss


def at(tensors, loss):
    """The scale that gradients have where a program clips them: one of those that it multiplies the loss by, and
    that it divides the gradients by afterwards. A number, None where it is computed, 1 where there is none.
    """
    factors = [one for one in _behind(loss, clipped=False) if one not in (None, ONE)] if hasattr(loss, "graph") else []
    behind = [_behind(one) for one in tensors] if factors else []
    for factor in factors:
        if behind and all(any(_undoes(factor, one) for one in found) for found in behind):
            return None if factor[1] else factor[0]
    return 1.0


def _undoes(one, other):
    number, powers = _product(one, other)
    return not powers and abs(number - 1.0) < 1e-6


def total(tf, targets):
    """The sum of what gradients are taken of."""
    sums = [tf.reduce_sum(tensor) if tensor.shape.rank != 0 else tensor for tensor in targets]
    return sums[0] if len(sums) == 1 else tf.add_n(sums)


def loss_of(tf, step):
    """The loss of a traced step."""
    meant = [unscaled(one, [gradient for gradient, _ in step.taken]) for one in step.targets]
    if all(one is other for one, other in zip(meant, step.targets)):
        return step.loss
    return total(tf, [tf.cast(one, tf.float32) for one in meant])
