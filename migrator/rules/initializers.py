"""TensorFlow 1 initializers to Keras ones, with the TensorFlow 1 defaults written out."""

from __future__ import annotations

import libcst as cst

from migrator.findings import Severity
from migrator.program.calls import is_false, is_true, string
from migrator.program.parsed import Blocked, ParsedFile, name_nodes
from migrator.program.scopes import path_to
from migrator.rules.rule import Example, Rule
from migrator.rules.site import CallRule, Site, call_text, expression
from migrator.walking import walk

RULES = (
    Rule(
        "TFM205",
        "initializers become Keras initializers",
        Severity.MIGRATED,
        """
The defaults changed: `tf.truncated_normal_initializer()` has a standard deviation of 1, Keras' TruncatedNormal one of
0.05, so the TensorFlow 1 values are written out. The random numbers themselves differ between the two versions even
with one seed; `tf-migrate verify` therefore carries the initial values over.
""",
        (
            Example(
                "tf.truncated_normal_initializer(stddev=0.1)",
                "tf.keras.initializers.TruncatedNormal(mean=0.0, stddev=0.1)",
            ),
            Example("tf.zeros_initializer()", "tf.keras.initializers.Zeros()"),
            Example("tf.constant_initializer(0.1)", "tf.keras.initializers.Constant(value=0.1)"),
            Example("tf.glorot_uniform_initializer(seed=1)", "tf.keras.initializers.GlorotUniform(seed=1)"),
            Example("tf.orthogonal_initializer()", "tf.keras.initializers.Orthogonal()"),
            Example("tf.initializers.he_normal(seed=1)", "tf.keras.initializers.HeNormal(seed=1)"),
            Example("tf.contrib.layers.xavier_initializer()", "tf.keras.initializers.GlorotUniform()"),
            Example("tf.contrib.layers.xavier_initializer(uniform=False)", "tf.keras.initializers.GlorotNormal()"),
            Example(
                "tf.contrib.layers.variance_scaling_initializer(mode='FAN_AVG')",
                'tf.keras.initializers.VarianceScaling(scale=2.0, mode="fan_avg", distribution="truncated_normal")',
            ),
        ),
    ),
    Rule(
        "TFM258",
        "one initializer for several layers",
        Severity.REVIEW,
        """
An initializer of TensorFlow 1 draws new numbers for every variable. One object of Keras 2 without a seed draws the same
numbers for all variables of a shape, and warns when the program runs ("unseeded and being called multiple times").
Layers of one shape that share it begin with equal weights; `tf-migrate verify` does not see that, as it carries the
initial values over. Give each layer an initializer of its own where that matters.
""",
    ),
)

# TensorFlow 1 name -> Keras class, its parameters in TensorFlow 1 order, and the defaults to write out
# (source: tensorflow/python/ops/init_ops.py of 1.15).
_TABLE: dict[str, tuple[str, tuple[str, ...], dict[str, str]]] = {
    "zeros": ("Zeros", (), {}),
    "ones": ("Ones", (), {}),
    "constant": ("Constant", ("value",), {"value": "0"}),
    "random_uniform": ("RandomUniform", ("minval", "maxval", "seed"), {"minval": "0.0", "maxval": "1.0"}),
    "random_normal": ("RandomNormal", ("mean", "stddev", "seed"), {"mean": "0.0", "stddev": "1.0"}),
    "truncated_normal": ("TruncatedNormal", ("mean", "stddev", "seed"), {"mean": "0.0", "stddev": "1.0"}),
    "variance_scaling": (
        "VarianceScaling",
        ("scale", "mode", "distribution", "seed"),
        {"scale": "1.0", "mode": '"fan_in"', "distribution": '"truncated_normal"'},
    ),
    "glorot_uniform": ("GlorotUniform", ("seed",), {}),
    "glorot_normal": ("GlorotNormal", ("seed",), {}),
    "he_normal": ("HeNormal", ("seed",), {}),
    "he_uniform": ("HeUniform", ("seed",), {}),
    "lecun_normal": ("LecunNormal", ("seed",), {}),
    "lecun_uniform": ("LecunUniform", ("seed",), {}),
    "orthogonal": ("Orthogonal", ("gain", "seed"), {}),
    "identity": ("Identity", ("gain",), {}),
}


def _initializer(site: Site) -> cst.BaseExpression:
    key = site.name.rpartition(".")[2].removesuffix("_initializer")
    keras, parameters, defaults = _TABLE[key]
    bound = site.arguments((*parameters, "dtype"), "TFM205")
    bound.pop("dtype", None)
    texts = {**defaults, **{name: site.code(value) for name, value in bound.items()}}
    if key == "random_uniform" and texts["maxval"] == "None":
        raise Blocked("TFM205", site.original, "`maxval=None`: pass the upper bound")
    ordered = [f"{name}={texts[name]}" for name in parameters if name in texts]
    return expression(call_text(f"tf.keras.initializers.{keras}", ordered))


def _xavier(site: Site) -> cst.BaseExpression:
    bound = site.arguments(("uniform", "seed", "dtype"), "TFM205")
    uniform = bound.get("uniform")
    if uniform is not None and not (is_true(uniform) or is_false(uniform)):
        raise Blocked("TFM205", site.original, "`uniform` must be True or False")
    seed = [f"seed={site.code(bound['seed'])}"] if "seed" in bound else []
    return expression(call_text(f"tf.keras.initializers.Glorot{'Normal' if is_false(uniform) else 'Uniform'}", seed))


def _contrib_scaling(site: Site) -> cst.BaseExpression:
    """Its normal distribution is cut at two deviations and scaled by 1.3, Keras' by 1/0.8796² = 1.2925."""
    bound = site.arguments(("factor", "mode", "uniform", "seed", "dtype"), "TFM205")
    uniform, mode = bound.get("uniform"), string(bound.get("mode", cst.SimpleString('"FAN_IN"')))
    if mode is None or (uniform is not None and not (is_true(uniform) or is_false(uniform))):
        raise Blocked("TFM205", site.original, "`mode` and `uniform` must be literals")
    arguments = [
        f"scale={site.code(bound['factor']) if 'factor' in bound else '2.0'}",
        f'mode="{mode.lower()}"',
        f'distribution="{"uniform" if is_true(uniform) else "truncated_normal"}"',
    ]
    arguments += [f"seed={site.code(bound['seed'])}"] if "seed" in bound else []
    return expression(call_text("tf.keras.initializers.VarianceScaling", arguments))


_CONTRIB: dict[str, CallRule] = {
    "xavier_initializer": _xavier,
    "xavier_initializer_conv2d": _xavier,
    "variance_scaling_initializer": _contrib_scaling,
}
CALLS: dict[str, CallRule] = {
    **{f"tf.contrib.{module}.{name}": rule for module in ("layers", "slim") for name, rule in _CONTRIB.items()},
    **{f"tf.{name}_initializer": _initializer for name in _TABLE if not name.startswith(("he_", "lecun_", "identity"))},
    **{f"tf.initializers.{name}": _initializer for name in _TABLE},
    **{
        f"tf.keras.initializers.{name}": _initializer
        for name in ("glorot_uniform", "glorot_normal", "he_normal", "he_uniform", "lecun_normal", "lecun_uniform")
    },
}
REFERENCES = {
    name: f"tf.keras.initializers.{_TABLE[name.rpartition('.')[2].removesuffix('_initializer')][0]}()"
    for name in CALLS
    if not name.startswith("tf.contrib.")
}


_RANDOM = ("random_uniform", "random_normal", "truncated_normal", "variance_scaling", "glorot_uniform", "glorot_normal")


def shared_initializers(file: ParsedFile) -> list[Blocked]:
    """Remarks (TFM258) on random initializers without a seed that have a name which is used several times."""
    finder = _Named(file)
    if "nitializer" in file.bare:
        walk(file.module, finder)
    return finder.found


class _Named(cst.CSTVisitor):
    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self.found: list[Blocked] = []
        self._functions: list[cst.FunctionDef] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._functions.append(node)

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        self._functions.pop()

    def visit_Assign(self, node: cst.Assign) -> None:
        target, value = node.targets[0].target, node.value
        if not isinstance(target, cst.Name) or not isinstance(value, cst.Call) or not self._is_random(value):
            return
        scope = self._functions[-1] if self._functions else self.file.module
        uses = [n for n in name_nodes(scope) if n.value == target.value and n is not target]
        uses = [n for n in uses if self.file.position(n) > self.file.position(target)]
        loops = [n for n in path_to(scope, uses[0]) if isinstance(n, (cst.For, cst.While))] if uses else []
        if len(uses) > 1 or any(not path_to(loop, node) for loop in loops):
            message = (
                f"layers of the same shape that share `{target.value}` now start with equal weights, "
                "unlike in TensorFlow 1"
            )
            self.found.append(Blocked("TFM258", value, message))

    def _is_random(self, call: cst.Call) -> bool:
        name = self.file.imports.tensorflow(call.func) or ""
        if name not in CALLS or any(arg.keyword is not None and arg.keyword.value == "seed" for arg in call.args):
            return False
        return name.startswith("tf.contrib.") or name.rpartition(".")[2].removesuffix("_initializer") in _RANDOM
