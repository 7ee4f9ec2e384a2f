"""Rates that change with the global step: TensorFlow 1 functions to Keras schedules of the same values.

All agree with TensorFlow 1.15.5 in every bit of the rates applied over 120 steps, but the cosines (4e-7).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import libcst as cst

from migrator.findings import Severity
from migrator.names.fate import without_native_form
from migrator.program.calls import is_none
from migrator.program.parsed import Blocked
from migrator.rules.rule import Example, Rule
from migrator.rules.site import CallRule, Site, call_text, expression

RULES = (
    Rule(
        "TFM402",
        "an unsupported learning rate",
        Severity.MANUAL,
        """
A learning rate may be computed from the global step and from numbers: `tf.train.exponential_decay` and the like become
Keras schedules (TFM411), anything else a schedule class that holds the lines of the program. A learning rate that reads
the data, a variable or a random number is unsupported, and so are another hyperparameter that changes and a learning
rate that the program also uses for something else.
""",
    ),
    Rule(
        "TFM411",
        "decaying learning rates become Keras schedules",
        Severity.MIGRATED,
        """
The functions of `tf.train` that compute a learning rate from the global step have Keras schedules of the same values;
Keras gives them the step. The first step is step 0 in both. `natural_exp_decay` is an exponential decay at the rate
`exp(-decay_rate)`. `linear_cosine_decay` has no Keras class: the file gets one.
""",
        (
            Example(
                "tf.train.exponential_decay(0.1, tf.train.get_global_step(), 100, 0.96, staircase=True)",
                "tf.keras.optimizers.schedules.ExponentialDecay(0.1, 100, 0.96, staircase=True)",
            ),
            Example(
                "tf.train.polynomial_decay(0.1, tf.train.get_or_create_global_step(), 100, power=2.0)",
                "tf.keras.optimizers.schedules.PolynomialDecay(0.1, 100, power=2.0)",
            ),
            Example(
                "tf.train.piecewise_constant(tf.train.get_global_step(), [10, 20], [0.1, 0.05, 0.01])",
                "tf.keras.optimizers.schedules.PiecewiseConstantDecay([10, 20], [0.1, 0.05, 0.01])",
            ),
            Example(
                "tf.train.inverse_time_decay(0.1, tf.train.get_global_step(), 10, 0.5)",
                "tf.keras.optimizers.schedules.InverseTimeDecay(0.1, 10, 0.5)",
            ),
            Example(
                "tf.train.natural_exp_decay(0.1, tf.train.get_global_step(), 10, 0.5)",
                "tf.keras.optimizers.schedules.ExponentialDecay(0.1, 10, math.exp(-0.5))",
            ),
            Example(
                "tf.train.cosine_decay(0.1, tf.train.get_global_step(), 100, alpha=0.1)",
                "tf.keras.optimizers.schedules.CosineDecay(0.1, 100, alpha=0.1)",
            ),
            Example(
                "tf.train.cosine_decay_restarts(0.1, tf.train.get_global_step(), 10, t_mul=1.5)",
                "tf.keras.optimizers.schedules.CosineDecayRestarts(0.1, 10, t_mul=1.5)",
            ),
            Example(
                "tf.train.linear_cosine_decay(0.1, tf.train.get_global_step(), 100)",
                "LinearCosineDecay(0.1, 100)",
            ),
        ),
    ),
)

#: The class that a file gets for a rate that Keras has no schedule of, with `{name}` where its name goes.
LINEAR_COSINE = '''\
class {name}(tf.keras.optimizers.schedules.LearningRateSchedule):
    """A line down to zero times a cosine, as `tf.train.linear_cosine_decay` computed it."""

    def __init__(self, learning_rate, decay_steps, num_periods=0.5, alpha=0.0, beta=0.001):
        self.learning_rate, self.decay_steps = learning_rate, decay_steps
        self.num_periods, self.alpha, self.beta = num_periods, alpha, beta

    def __call__(self, step):
        step = tf.minimum(tf.cast(step, tf.float32), self.decay_steps)
        cosine = 0.5 * (1.0 + tf.cos(math.pi * (2.0 * self.num_periods * (step / self.decay_steps))))
        line = (self.decay_steps - step) / self.decay_steps
        return self.learning_rate * ((self.alpha + line) * cosine + self.beta)
'''


@dataclass(frozen=True)
class _Schedule:
    """A function of the global step: its parameters in order, and the Keras class with its own in order."""

    parameters: tuple[str, ...]
    keras: str
    step: str = "global_step"
    helper: str | None = None


_RATE = ("learning_rate", "global_step")
_PIECEWISE = _Schedule(("x", "boundaries", "values", "name"), "PiecewiseConstantDecay", "x")
_TABLE: Mapping[str, _Schedule] = {
    "exponential_decay": _Schedule((*_RATE, "decay_steps", "decay_rate", "staircase", "name"), "ExponentialDecay"),
    "natural_exp_decay": _Schedule((*_RATE, "decay_steps", "decay_rate", "staircase", "name"), "ExponentialDecay"),
    "inverse_time_decay": _Schedule((*_RATE, "decay_steps", "decay_rate", "staircase", "name"), "InverseTimeDecay"),
    "polynomial_decay": _Schedule(
        (*_RATE, "decay_steps", "end_learning_rate", "power", "cycle", "name"), "PolynomialDecay"
    ),
    "piecewise_constant": _PIECEWISE,
    "piecewise_constant_decay": _PIECEWISE,
    "cosine_decay": _Schedule((*_RATE, "decay_steps", "alpha", "name"), "CosineDecay"),
    "cosine_decay_restarts": _Schedule(
        (*_RATE, "first_decay_steps", "t_mul", "m_mul", "alpha", "name"), "CosineDecayRestarts"
    ),
    "linear_cosine_decay": _Schedule(
        (*_RATE, "decay_steps", "num_periods", "alpha", "beta", "name"),
        "LinearCosineDecay",
        helper=LINEAR_COSINE,
    ),
}
_FUNCTIONS = {f"tf.train.{name}": schedule for name, schedule in _TABLE.items()}
_REFUSED = ("tf.train.noisy_linear_cosine_decay",)
GLOBAL_STEPS = (
    "tf.train.get_global_step",
    "tf.train.get_or_create_global_step",
    "tf.train.create_global_step",
    "tf.contrib.framework.get_global_step",
    "tf.contrib.framework.get_or_create_global_step",
    "tf.contrib.framework.create_global_step",
)
# Parameters that keep their names in the Keras class.
_KEYWORDS = {"learning_rate": "initial_learning_rate"}
# What a call must have in Keras; TensorFlow 1 has defaults for the rest.
_REQUIRED = ("learning_rate", "decay_steps", "first_decay_steps", "decay_rate", "boundaries", "values")


def is_schedule(name: str | None) -> bool:
    """Whether a TensorFlow 1 symbol is a function of the global step that has a Keras schedule."""
    return name in _FUNCTIONS


def step_argument(call: cst.Call, name: str) -> cst.BaseExpression | None:
    """The global step that a call of a schedule function is given."""
    known = _FUNCTIONS[name]
    for index, arg in enumerate(call.args):
        given = arg.keyword.value if arg.keyword is not None else known.parameters[min(index, 7)]
        if given == known.step:
            return arg.value
    return None


def _schedule(site: Site) -> cst.BaseExpression:
    context = site.training
    if context.step is None and site.original not in context.schedules:
        raise Blocked("TFM402", site.original, f"`{site.name}` is not the learning rate of an optimizer")
    known = _FUNCTIONS[site.name]
    bound = site.arguments(known.parameters, "TFM402")
    step = bound.pop(known.step, None)
    bound.pop("name", None)
    if step is None:
        raise Blocked("TFM402", site.original, f"`{site.name}` is called without the global step")
    arguments, plain = [], True
    for parameter in known.parameters:
        if parameter not in bound:
            plain = plain and parameter in (known.step, "name")
            continue
        value = bound[parameter]
        if is_none(value):
            plain = False
            continue
        text = site.code(value)
        if site.name == "tf.train.natural_exp_decay" and parameter == "decay_rate":
            text = (
                f"math.exp(-{text})"
                if isinstance(value, (cst.Integer, cst.Float, cst.Name))
                else f"math.exp(-({text}))"
            )
            context.needs.add("math")
        named = not plain or parameter not in _REQUIRED
        keyword = parameter if known.helper is not None else _KEYWORDS.get(parameter, parameter)
        arguments.append(f"{keyword}={text}" if named else text)
    name = f"tf.keras.optimizers.schedules.{known.keras}"
    if known.helper is not None:
        name = context.helper(known.keras, known.helper)
        context.needs.add("math")
    made = call_text(name, arguments)
    return expression(f"{made}({site.code(step)})" if context.step is not None else made)


def _global_step(site: Site) -> cst.BaseExpression:
    if site.original in site.training.steps:
        return site.call
    if site.training.step is None:
        raise Blocked("TFM402", site.original, "the global step is not used by the training alone")
    return cst.Name(site.training.step)


def _refused(site: Site) -> cst.BaseExpression:
    raise Blocked("TFM402", site.original, "a learning rate with random noise cannot be reproduced")


def _cond(site: Site) -> cst.BaseExpression:
    """A condition on the step; elsewhere it could depend on data."""
    bound = site.arguments(("pred", "true_fn", "false_fn", "strict", "name", "fn1", "fn2"), "TFM203")
    yes, no = bound.get("true_fn", bound.get("fn1")), bound.get("false_fn", bound.get("fn2"))
    if site.training.step is None or "pred" not in bound or yes is None or no is None:
        raise Blocked("TFM203", site.original, without_native_form("tf.cond"))
    return expression(call_text("tf.cond", [site.code(node) for node in (bound["pred"], yes, no)]))


CALLS: dict[str, CallRule] = {
    "tf.cond": _cond,
    **dict.fromkeys(_FUNCTIONS, _schedule),
    **dict.fromkeys(GLOBAL_STEPS, _global_step),
    **dict.fromkeys(_REFUSED, _refused),
}
