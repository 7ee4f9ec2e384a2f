"""Losses that a program multiplies before it takes their gradients, and whose gradients it divides again, so that small
gradients do not vanish in half precision: by hand, or in a LossScaleOptimizer. The loss of such a step is the one that
was multiplied. Where the gradients stay multiplied, the loss that is minimised is the product, and stays what it is.
"""

import parts
from keras_variables import copies

SAME = ("Identity", "Cast", "StopGradient", "EnsureShape", "PreventGradient", "CheckNumerics")
DIVIDING = ("RealDiv", "Div")
# What a scale may be read from. A scalar that a graph is given from outside is a Placeholder in it.
SOURCES = ("Placeholder", "ReadVariableOp", "VarHandleOp", "VariableV2", "Variable")
ONE = (1.0, {})
ROUNDING = 1e-5  # what sums of gradients may be apart that are the same, as a share of all of it
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


def in_parts(step):
    """The times that gradients of the same variables were asked for in a step, each of a loss of its own, as a batch is
    trained on in parts: [(targets, [(gradient, variable)])]; none where that was once.
    """
    found, variables = [], []
    for targets, pairs, _ in step.takings:
        own = {_key(one) for gradient, one in pairs if gradient is not None}
        known = any(target is one for targets_before, _ in found for target in targets for one in targets_before)
        if own and not known:
            found.append((targets, pairs))
            variables.append(own)
    alike = len(found) > 1 and all(not own.isdisjoint(other) for own in variables for other in variables)
    return found if alike else []


def _key(variable):
    """What tells one variable from others: of one of Keras 3, and of one with copies, the (first) variable in it."""
    return id(copies(variable._value if hasattr(variable, "path") else variable)[0])


def _dense(tf, gradient, variable):
    """The numbers of a gradient, in double precision."""
    if isinstance(gradient, tf.IndexedSlices):
        gradient = tf.math.unsorted_segment_sum(gradient.values, gradient.indices, variable.shape[0])
    return tf.reshape(tf.cast(gradient, tf.float64), [-1])


def _products(tf, one, other):
    """The product of two gradients, each {id of variable: numbers}."""
    both = [tf.reduce_sum(one[name] * other[name]) for name in one if name in other]
    return tf.add_n(both) if both else tf.constant(0.0, tf.float64)


def shares(tf, step, parts_of_step):
    """By how much each loss of `in_parts` counts in what the gradients that are applied are of: a tensor of numbers.
    They are those with which the gradients add up to what is applied (before it is clipped), all alike if they may be;
    one where they add up to nothing of the kind.
    """
    applied = {}
    for gradient, variable in step.gradients or ():
        if gradient is not None:
            name, found = _key(variable), _dense(tf, step.clipping.before(gradient), variable)
            applied[name] = found + applied[name] if name in applied else found
    taken = [
        {_key(one): _dense(tf, gradient, one) for gradient, one in pairs if gradient is not None}
        for _, pairs in parts_of_step
    ]
    count = len(taken)
    among = tf.stack([tf.stack([_products(tf, one, other) for other in taken]) for one in taken])
    with_applied = tf.stack([_products(tf, one, applied) for one in taken])
    whole = _products(tf, applied, applied)

    def explains(numbers):
        """Whether what is left of the gradients is rounding."""
        left = whole - 2.0 * tf.reduce_sum(numbers * with_applied)
        left += tf.reduce_sum(numbers * tf.linalg.matvec(among, numbers))
        return left <= ROUNDING**2 * whole

    one = tf.ones([count], tf.float64)
    alike = one * tf.math.divide_no_nan(tf.reduce_sum(with_applied), tf.reduce_sum(among))
    apart = tf.linalg.matvec(tf.linalg.pinv(among), with_applied)
    return tf.where(explains(alike), alike, tf.where(explains(apart), apart, one))


def loss_of(tf, step):
    """The loss of a traced step."""
    parts_of_step = in_parts(step)
    if parts_of_step:
        numbers = tf.unstack(tf.cast(shares(tf, step, parts_of_step), tf.float32))
        losses = [tf.cast(total(tf, targets), tf.float32) for targets, _ in parts_of_step]
        return tf.add_n([number * loss for number, loss in zip(numbers, losses)])
    meant = [unscaled(one, [gradient for gradient, _ in step.taken]) for one in step.targets]
    if all(one is other for one, other in zip(meant, step.targets)):
        return step.loss
    return total(tf, [tf.cast(one, tf.float32) for one in meant])
