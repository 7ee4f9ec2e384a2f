"""Feature columns: the columns themselves live on, and what reads them becomes a layer."""

from __future__ import annotations

import libcst as cst

from migrator.findings import Severity
from migrator.program.calls import is_none, is_true
from migrator.program.parsed import Blocked
from migrator.rules.rule import Example, Rule
from migrator.rules.site import CallRule, Site, call_text, expression

RULES = (
    Rule(
        "TFM243",
        "feature columns",
        Severity.MANUAL,
        """
`tf.feature_column.input_layer` becomes a `tf.keras.layers.DenseFeatures` layer: it takes the same columns, sorts them
by name as TensorFlow 1 does, starts embeddings from the same distribution, and computes the same numbers. Collections
that the variables are added to, and dicts that are filled with them, are not carried over.
""",
        (
            Example(
                "tf.feature_column.input_layer(features, columns)", "tf.keras.layers.DenseFeatures(columns)(features)"
            ),
            Example(
                "tf.feature_column.input_layer(features=x, feature_columns=y, trainable=False)",
                "tf.keras.layers.DenseFeatures(y, trainable=False)(x)",
            ),
            Example("tf.feature_column.input_layer(features, columns, cols_to_vars=found)", None),
        ),
    ),
)

_PARAMETERS = (
    "features",
    "feature_columns",
    "weight_collections",
    "trainable",
    "cols_to_vars",
    "cols_to_output_tensors",
)


_LINEAR = (
    "features",
    "feature_columns",
    "units",
    "sparse_combiner",
    "weight_collections",
    "trainable",
    "cols_to_vars",
)
_BIAS = '''\
class Bias(tf.keras.layers.Layer):
    """Adds a number to every output, which starts at zero."""

    def build(self, shape):
        self.bias = self.add_weight(name="bias", shape=shape[-1:], initializer="zeros")

    def call(self, inputs):
        return inputs + self.bias
'''
_FOR_COLUMN = "    for column in sorted(columns, key=lambda column: column.name):\n"
_LINEAR_MODEL = '''\
def {name}(features, columns, units=1, sparse_combiner="sum"):
    """Returns a weighted sum of feature columns, with a weight for every number and for every category."""
    terms = []
    for column in sorted(columns, key=lambda column: column.name):
        if hasattr(column, "num_buckets"):  # categories
            column = tf.feature_column.embedding_column(column, units, sparse_combiner, tf.zeros_initializer())
            terms.append(tf.keras.layers.DenseFeatures(column)(features))
        else:
            weights = tf.keras.layers.Dense(units, use_bias=False, kernel_initializer="zeros")
            terms.append(weights(tf.keras.layers.DenseFeatures(column)(features)))
    return Bias()(tf.add_n(terms))
'''


def _linear_model(site: Site) -> cst.BaseExpression:
    new = site.arguments(_LINEAR, "TFM243")
    for key in ("weight_collections", "cols_to_vars"):
        if not is_none(new.get(key)):
            raise Blocked("TFM243", site.original, f"`{key}` of `tf.feature_column.linear_model` is not carried over")
    if "trainable" in new and not is_true(new["trainable"]):
        raise Blocked("TFM243", site.original, "`trainable` of `tf.feature_column.linear_model` is not carried over")
    if "features" not in new or "feature_columns" not in new:
        raise Blocked("TFM243", site.original, "`tf.feature_column.linear_model` takes features and columns")
    model = _LINEAR_MODEL.replace("Bias()", f"{site.helper('Bias', _BIAS)}()")
    if site.training.exports:
        read = "{key: features[key] for key in tf.feature_column.make_parse_example_spec([column])}"
        model = model.replace("DenseFeatures(column)(features)", "DenseFeatures(column)(read)")
        model = model.replace(_FOR_COLUMN, f"{_FOR_COLUMN}        read = {read}\n")
    arguments = [site.code(new["features"]), site.code(new["feature_columns"])]
    arguments += [f"{key}={site.code(new[key])}" for key in ("units", "sparse_combiner") if key in new]
    return expression(call_text(site.helper("linear_model", model), arguments))


def _input_layer(site: Site) -> cst.BaseExpression:
    new = site.arguments(_PARAMETERS, "TFM243")
    for key in ("weight_collections", "cols_to_vars", "cols_to_output_tensors"):
        if not is_none(new.get(key)):
            raise Blocked("TFM243", site.original, f"`{key}` of `tf.feature_column.input_layer` is not carried over")
    if "features" not in new or "feature_columns" not in new:
        raise Blocked("TFM243", site.original, "`tf.feature_column.input_layer` takes features and columns")
    parts = [site.code(new["feature_columns"])]
    if "trainable" in new and not is_true(new["trainable"]):
        parts.append(f"trainable={site.code(new['trainable'])}")
    features = _read_by(site, new["features"], parts[0])
    return expression(f"{call_text('tf.keras.layers.DenseFeatures', parts)}({features})")


def _read_by(site: Site, features: cst.BaseExpression, columns: str) -> str:
    """The features that columns read: where others need not be served, the layer must not be given them."""
    text = site.code(features)
    if not site.training.exports:
        return text
    key = "key" if "key" not in (text, columns) else "name"
    return f"{{{key}: {text}[{key}] for {key} in tf.feature_column.make_parse_example_spec({columns})}}"


CALLS: dict[str, CallRule] = {
    "tf.feature_column.input_layer": _input_layer,
    "tf.feature_column.linear_model": _linear_model,
}
