"""TensorFlow 1 optimizers to Keras ones, with every default that changed written out."""

from __future__ import annotations

import libcst as cst

from migrator.findings import Severity
from migrator.names.imports import ImportMap
from migrator.program.calls import is_true
from migrator.program.parsed import Blocked
from migrator.rules.rule import Example, Rule
from migrator.rules.site import CallRule, Site, call_text, expression

RULES = (
    Rule(
        "TFM401",
        "optimizers become Keras optimizers",
        Severity.MANUAL,
        """
Carried over: GradientDescent, Momentum, Adagrad and Adam with a constant rate. All numbers are written out, because
the defaults changed: Adam's epsilon was 1e-8 and is 1e-7 in Keras (1.1 % in the weights after 100 steps, measured),
Adagrad had no epsilon at all. With them the weights agree to 2e-6 after 100 steps (dense variables, measured against
TensorFlow 1.15.5).

Other optimizers (RMSProp, Ftrl, Adadelta, ...) compute something else in Keras and are not carried over yet.
""",
        (
            Example("tf.train.GradientDescentOptimizer(0.1)", "tf.keras.optimizers.SGD(learning_rate=0.1)"),
            Example("tf.train.MomentumOptimizer(0.1, 0.9)", "tf.keras.optimizers.SGD(learning_rate=0.1, momentum=0.9)"),
            Example(
                "tf.train.AdagradOptimizer(0.05)",
                "tf.keras.optimizers.Adagrad(learning_rate=0.05, initial_accumulator_value=0.1, epsilon=0.0)",
            ),
            Example(
                "tf.train.AdamOptimizer(learning_rate=rate, epsilon=1e-4)",
                "tf.keras.optimizers.Adam(learning_rate=rate, beta_1=0.9, beta_2=0.999, epsilon=1e-4)",
            ),
        ),
    ),
    Rule(
        "TFM402",
        "the learning rate is not a constant",
        Severity.MANUAL,
        """
The rate is computed from the global step (`tf.train.exponential_decay` and the like). Keras has schedules with the
same values; they are not carried over yet. By hand: pass a `tf.keras.optimizers.schedules` object as `learning_rate`.
""",
    ),
    Rule(
        "TFM403",
        "the train_op is not a plain minimize",
        Severity.MANUAL,
        """
`optimizer.minimize(loss, global_step=tf.train.get_global_step())` is what `Model.fit` does by itself. Gradient
clipping, several optimizers, `tf.group` and control dependencies are not carried over yet.
""",
    ),
)

_TAIL = ("use_locking", "name")
_TABLE: dict[str, tuple[tuple[str, ...], str, dict[str, str], dict[str, str]]] = {
    # TensorFlow 1 class: (parameters, Keras class, keyword by parameter, defaults to write out)
    "GradientDescentOptimizer": (("learning_rate", *_TAIL), "SGD", {}, {}),
    "MomentumOptimizer": (
        ("learning_rate", "momentum", *_TAIL, "use_nesterov"),
        "SGD",
        {"momentum": "momentum", "use_nesterov": "nesterov"},
        {},
    ),
    "AdagradOptimizer": (
        ("learning_rate", "initial_accumulator_value", *_TAIL),
        "Adagrad",
        {"initial_accumulator_value": "initial_accumulator_value"},
        {"initial_accumulator_value": "0.1"},
    ),
    "AdamOptimizer": (
        ("learning_rate", "beta1", "beta2", "epsilon", *_TAIL),
        "Adam",
        {"beta1": "beta_1", "beta2": "beta_2", "epsilon": "epsilon"},
        {"learning_rate": "0.001", "beta1": "0.9", "beta2": "0.999", "epsilon": "1e-08"},
    ),
}
_FIXED = {"AdagradOptimizer": ("epsilon=0.0",)}


def is_optimizer(name: str | None) -> bool:
    """Whether a TensorFlow 1 symbol is an optimizer class, known or not."""
    return name is not None and name.startswith(("tf.train.", "tf.contrib.opt.")) and name.endswith("Optimizer")


def _optimizer(site: Site) -> cst.BaseExpression:
    key = site.name.rpartition(".")[2]
    parameters, keras, keywords, defaults = _TABLE[key]
    bound = site.arguments(parameters, "TFM401")
    texts = {**defaults, **{name: site.code(value) for name, value in bound.items() if name not in _TAIL}}
    if "learning_rate" not in texts:
        raise Blocked("TFM401", site.original, f"`{site.name}` is called without a learning rate")
    if "use_nesterov" in bound and not is_true(bound["use_nesterov"]) and site.code(bound["use_nesterov"]) == "False":
        texts.pop("use_nesterov")
    ordered = [f"learning_rate={texts['learning_rate']}"]
    ordered += [f"{keywords[p]}={texts[p]}" for p in keywords if p in texts]
    return expression(call_text(f"tf.keras.optimizers.{keras}", [*ordered, *_FIXED.get(key, ())]))


CALLS: dict[str, CallRule] = {f"tf.train.{name}": _optimizer for name in _TABLE}


def refuse_schedule(rate: cst.BaseExpression, imports: ImportMap) -> None:
    """Raises Blocked (TFM402) when a learning rate is computed with TensorFlow."""
    finder = _TensorFlowCalls(imports)
    rate.visit(finder)
    if finder.found is not None:
        raise Blocked("TFM402", finder.found, "the learning rate is computed: give a Keras schedule by hand")


class _TensorFlowCalls(cst.CSTVisitor):
    def __init__(self, imports: ImportMap) -> None:
        super().__init__()
        self.imports = imports
        self.found: cst.Call | None = None

    def visit_Call(self, node: cst.Call) -> None:
        if self.found is None and self.imports.tensorflow(node.func) is not None:
            self.found = node
