"""The optimizers of TensorFlow 1 and, where an Estimator takes one, of Keras: their settings by the names of Keras."""

import numpy as np
import own_optimizers
import parts

# Optimizer class -> (canonical class, attribute of each setting, settings that it cannot change).
OPTIMIZERS = {
    "GradientDescentOptimizer": (
        "SGD",
        {"learning_rate": "_learning_rate"},
        {"momentum": 0.0, "nesterov": False},
    ),
    "MomentumOptimizer": (
        "SGD",
        {"learning_rate": "_learning_rate", "momentum": "_momentum", "nesterov": "_use_nesterov"},
        {},
    ),
    "AdagradOptimizer": (
        "Adagrad",
        {"learning_rate": "_learning_rate", "initial_accumulator_value": "_initial_accumulator_value"},
        {"epsilon": 0.0},
    ),
    "AdamOptimizer": (
        "Adam",
        {"learning_rate": "_lr", "beta_1": "_beta1", "beta_2": "_beta2", "epsilon": "_epsilon"},
        {"amsgrad": False},
    ),
    "RMSPropOptimizer": (
        "RMSprop",
        {
            "learning_rate": "_learning_rate",
            "rho": "_decay",
            "momentum": "_momentum",
            "epsilon": "_epsilon",
            "centered": "_centered",
        },
        {},
    ),
    "AdadeltaOptimizer": ("Adadelta", {"learning_rate": "_lr", "rho": "_rho", "epsilon": "_epsilon"}, {}),
    "FtrlOptimizer": (
        "Ftrl",
        {
            "learning_rate": "_learning_rate",
            "learning_rate_power": "_learning_rate_power",
            "initial_accumulator_value": "_initial_accumulator_value",
            "l1_regularization_strength": "_l1_regularization_strength",
            "l2_regularization_strength": "_l2_regularization_strength",
            "l2_shrinkage_regularization_strength": "_l2_shrinkage_regularization_strength",
        },
        {},
    ),
    "ProximalGradientDescentOptimizer": (
        "ProximalGradientDescentOptimizer",
        {
            "learning_rate": "_learning_rate",
            "l1_regularization_strength": "_l1_regularization_strength",
            "l2_regularization_strength": "_l2_regularization_strength",
        },
        {},
    ),
    "ProximalAdagradOptimizer": (
        "ProximalAdagradOptimizer",
        {
            "learning_rate": "_learning_rate",
            "initial_accumulator_value": "_initial_accumulator_value",
            "l1_regularization_strength": "_l1_regularization_strength",
            "l2_regularization_strength": "_l2_regularization_strength",
        },
        {},
    ),
    "AdagradDAOptimizer": (
        "AdagradDAOptimizer",
        {
            "learning_rate": "_learning_rate",
            "initial_accumulator_value": "_initial_gradient_squared_accumulator_value",
            "l1_regularization_strength": "_l1_regularization_strength",
            "l2_regularization_strength": "_l2_regularization_strength",
        },
        {},
    ),
    "AdaMaxOptimizer": (
        "Adamax",
        {"learning_rate": "_lr", "beta_1": "_beta1", "beta_2": "_beta2", "epsilon": "_epsilon"},
        {},
    ),
    "NadamOptimizer": (
        "NadamOptimizer",
        {"learning_rate": "_lr", "beta_1": "_beta1", "beta_2": "_beta2", "epsilon": "_epsilon"},
        {"amsgrad": False},
    ),
}
NOT_IN_TF1 = {
    "clipnorm": None,
    "clipvalue": None,
    "global_clipnorm": None,
    "weight_decay": None,
    "use_ema": False,
}
SLOTS = {
    "momentum": "momentum",
    "accumulator": "accumulator",
    "accum": "accumulator",
    "gradient_squared_accumulator": "accumulator",
    "m": "first_moment",
    "v": "second_moment",
    "rms": "second_moment",
    "mg": "first_moment",
}
# What optimizers of Keras, which canned Estimators of TensorFlow 2 make, keep beside their numbers.
OF_KERAS = ("epsilon", "amsgrad", "centered", "nesterov", "_initial_accumulator_value", "_learning_rate_power")


def described(optimizer):
    """Canonical optimizer class and settings; a setting that is a tensor is None."""
    for kind in type(optimizer).__mro__:
        if kind.__name__ in OPTIMIZERS:
            break
    else:
        return own_optimizers.described(optimizer)
    name, attributes, fixed = OPTIMIZERS[kind.__name__]
    settings = dict(NOT_IN_TF1)
    settings.update(fixed)
    for key, attribute in attributes.items():
        value = getattr(optimizer, attribute, None)
        value = value() if callable(value) else value
        if isinstance(value, np.generic):
            value = value.item()
        number = isinstance(value, (bool, int, float, str))
        settings[key] = parts.float32(value) if number else None
    return {"name": name, "settings": settings}


def keras_settings(optimizer):
    """The settings of an optimizer of Keras by their names there; one that is no number is None."""
    settings = dict(NOT_IN_TF1)
    values = {name.lstrip("_"): getattr(optimizer, name) for name in OF_KERAS if hasattr(optimizer, name)}
    values.update((name, value) for name, value in optimizer._hyper.items() if name != "decay")
    for name, value in values.items():
        number = isinstance(value, (bool, int, float))
        settings[name] = parts.float32(value) if number else None
    return settings


def scale_keras(optimizer, factor):
    """Multiplies the rate of an optimizer of Keras."""
    rate = optimizer._hyper.get("learning_rate")
    if factor != 1.0 and not hasattr(rate, "get_config"):
        optimizer._hyper["learning_rate"] = (lambda: rate() * factor) if callable(rate) else rate * factor
