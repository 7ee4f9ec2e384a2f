"""What the optimizers of Keras are called, which settings they have, and what their slots hold."""

import parts
from keras_variables import read

STOCK = ("SGD", "Adagrad", "Adam", "AdamW", "RMSprop", "Adadelta", "Ftrl", "Adamax", "Nadam")
SETTINGS = {
    "SGD": ("learning_rate", "momentum", "nesterov"),
    "Adagrad": ("learning_rate", "initial_accumulator_value", "epsilon"),
    "Adam": ("learning_rate", "beta_1", "beta_2", "epsilon", "amsgrad"),
    "RMSprop": ("learning_rate", "rho", "momentum", "epsilon", "centered"),
    "Adadelta": ("learning_rate", "rho", "epsilon"),
    "Ftrl": (
        "learning_rate",
        "learning_rate_power",
        "initial_accumulator_value",
        "l1_regularization_strength",
        "l2_regularization_strength",
        "l2_shrinkage_regularization_strength",
    ),
    "Adamax": ("learning_rate", "beta_1", "beta_2", "epsilon"),
}
SETTINGS["AdamW"] = SETTINGS["Adam"]
# Update rules of TensorFlow 1 that Keras does not have: a subclass of this name computes one.
OWN_RULES = {
    "ProximalGradientDescentOptimizer": ("l1_regularization_strength", "l2_regularization_strength"),
    "ProximalAdagradOptimizer": ("l1_regularization_strength", "l2_regularization_strength"),
    "AdagradDAOptimizer": ("l1_regularization_strength", "l2_regularization_strength"),
    "NadamOptimizer": (),
}
COMMON_SETTINGS = ("clipnorm", "clipvalue", "global_clipnorm", "weight_decay", "use_ema")
SLOTS = {
    "SGD": {"m": "momentum"},
    "Adagrad": {"accumulator": "accumulator"},
    "Adam": {"m": "first_moment", "v": "second_moment"},
    "Adamax": {"m": "first_moment", "u": "second_moment"},
    "Adadelta": {"accumulated_grad": "accumulator", "accumulated_delta_var": "accum_update"},
    "RMSprop": {"velocity": "second_moment", "momentum": "momentum", "average_gradient": "first_moment"},
}
SLOTS["AdamW"] = SLOTS["Adam"]
# Of the optimizers that Keras had before 2.11, and keeps as tf.keras.optimizers.legacy.
LEGACY_SLOTS = {
    "m": "first_moment",
    "v": "second_moment",
    "rms": "second_moment",
    "mg": "first_moment",
    "accum_grad": "accumulator",
    "accum_var": "accum_update",
}


class Together(object):
    """Several optimizers that train the variables of one model, each its own."""

    def __init__(self, optimizers):
        self.parts = optimizers
        self.iterations = optimizers[0].iterations


def together(optimizers):
    """One optimizer as it is, several as one."""
    return optimizers[0] if len(optimizers) == 1 else Together(optimizers)


def stock_class(optimizer):
    """The Keras optimizer class that this one is, or derives from; None for a stranger."""
    for kind in type(optimizer).__mro__:
        if kind.__name__ in STOCK and kind.__module__.split(".")[0] in ("keras", "tf_keras"):
            return kind
    return None


def is_legacy(optimizer):
    """Whether this is an optimizer, or the class of one, as Keras had them before 2.11, tf.keras.optimizers.legacy."""
    return hasattr(optimizer if isinstance(optimizer, type) else type(optimizer), "_decayed_lr")


def rate_of(tf, optimizer):
    """The rate of the next step, that of the first of several parts: a number, a variable or a tensor."""
    optimizer = getattr(optimizer, "parts", [optimizer])[0]
    return optimizer._decayed_lr(tf.float32) if is_legacy(optimizer) else optimizer.learning_rate


def set_rate(optimizer, rate):
    """Gives an optimizer whose rate is a variable another one; ``rate`` may be a tensor."""
    variable = optimizer._hyper["learning_rate"] if is_legacy(optimizer) else optimizer._learning_rate
    variable.assign(rate)


def build(optimizer, variables):
    """Makes the slots of an optimizer for the variables of its model."""
    make = optimizer._create_all_weights if is_legacy(optimizer) else optimizer.build
    make(variables)


def slot_asked(model_variable=None, variable_name=None, *_, var=None, slot_name=None, **__):
    """(The model's variable, the name of the slot) of a call that makes a slot: TensorFlow names the arguments where a
    checkpoint wants a slot that is not there yet.
    """
    return (var if model_variable is None else model_variable), (variable_name or slot_name)


def own_rule(optimizer):
    """The update rule of TensorFlow 1 that a subclass of a Keras optimizer computes; None for Keras' own."""
    for kind in type(optimizer).__mro__:
        if kind.__name__ in OWN_RULES:
            return kind.__name__
    return None


def settings(tf, optimizer):
    """Those of the first, and of the `others`, where an optimizer hands its variables to several (`parts`)."""
    first, *others = getattr(optimizer, "parts", [optimizer])
    return dict(_settings(tf, first), others=[_settings(tf, other) for other in others])


def _settings(tf, optimizer):
    kind = stock_class(optimizer)
    if kind is None:
        return {"name": type(optimizer).__name__, "settings": {}, "own": True}
    found = {}
    rule = own_rule(optimizer)
    for key in SETTINGS.get(kind.__name__, ("learning_rate",)) + OWN_RULES.get(rule, ()) + COMMON_SETTINGS:
        value = value_of(optimizer, key)
        if hasattr(value, "numpy"):
            value = read(tf, value).item()
        number = isinstance(value, (bool, int, float, str))
        found[key] = parts.float32(value) if number else None
    for key, absent in (("momentum", 0.0), ("use_ema", False)):
        if key in found and found[key] is None:
            found[key] = absent
    return {"name": rule or kind.__name__, "settings": found}


def value_of(optimizer, key):
    """What an optimizer was given for a setting; what is computed from the count of steps is no number."""
    if not is_legacy(optimizer):
        return getattr(optimizer, "_learning_rate" if key == "learning_rate" else key, None)
    if key == "learning_rate" and optimizer._initial_decay:
        return None
    given = optimizer._hyper if key in optimizer._hyper else vars(optimizer)
    return given.get(key, given.get("_" + key))


def divides_by_rate(optimizer):
    """Whether the momentum slot is Keras' own -rate * accumulator; a subclass with its own step may
    keep another.
    """
    kind = stock_class(optimizer)
    if kind is None or kind.__name__ != "SGD":
        return False
    return not has_own_step(type(optimizer), kind)


def has_own_step(kind, stock):
    """Whether a subclass of a Keras optimizer computes the update itself. One that keeps moving averages of the weights
    leaves that to the class that it derives from.
    """
    for one in kind.__mro__[: kind.__mro__.index(stock)]:
        if is_legacy(one) and {"_resource_apply_dense", "_resource_apply_sparse"} & set(vars(one)):
            return True
        step = vars(one).get("update_step")
        if step is not None and "update_step" not in step.__code__.co_names:
            return True
    return False
