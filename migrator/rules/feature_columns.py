"""Feature columns: the columns themselves live on, and what reads them becomes a layer."""

from __future__ import annotations

import libcst as cst

from migrator.findings import Severity
from migrator.program.calls import is_none, is_true, string
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
that the variables are added to, and dicts that are filled with them, are unsupported.

Columns of `tf.contrib.layers` become those of `tf.feature_column` that give the same numbers. An embedding there starts
with a standard deviation of `1/sqrt(number of categories)`, which is written out. Columns there with a combiner other
than the sum, vocabulary files, shared embeddings and crossed columns (which cross hashes, where those of
`tf.feature_column` cross words) are left to the bridge.

A `tf.feature_column` of a vocabulary file is the same in TensorFlow 2, which takes its arguments in another order.
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
            Example(
                'tf.contrib.layers.real_valued_column("age", dimension=3)',
                'tf.feature_column.numeric_column("age", shape=3)',
            ),
            Example(
                'tf.contrib.layers.sparse_column_with_hash_bucket("work", hash_bucket_size=1000)',
                'tf.feature_column.categorical_column_with_hash_bucket("work", 1000)',
            ),
            Example(
                "tf.contrib.layers.embedding_column(work, dimension=8)",
                "tf.feature_column.embedding_column(work, 8, "
                "initializer=tf.keras.initializers.TruncatedNormal(stddev=work.num_buckets**-0.5))",
            ),
            Example('tf.contrib.layers.sparse_column_with_keys("g", ["f", "m"], combiner="mean")', None),
            Example(
                'tf.contrib.layers.sparse_column_with_keys("g", ["f", "m"])',
                'tf.feature_column.categorical_column_with_vocabulary_list("g", ["f", "m"])',
            ),
            Example(
                'tf.contrib.layers.sparse_column_with_integerized_feature("id", 100)',
                'tf.feature_column.categorical_column_with_identity("id", 100)',
            ),
            Example(
                "tf.contrib.layers.bucketized_column(age, boundaries=[18, 65])",
                "tf.feature_column.bucketized_column(age, [18, 65])",
            ),
            Example(
                'tf.feature_column.categorical_column_with_vocabulary_file("work", path, 90, 2, dtype=tf.int64)',
                'tf.feature_column.categorical_column_with_vocabulary_file("work", '
                "vocabulary_file=path, vocabulary_size=90, num_oov_buckets=2, dtype=tf.int64)",
            ),
            Example("tf.contrib.layers.one_hot_column(work)", "tf.feature_column.indicator_column(work)"),
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
_LINEAR_MODEL = '''\
def {name}(features, columns, units=1, sparse_combiner="sum"):
    """Returns a weighted sum of feature columns, with a weight for every number and for every category."""
    terms = []
    for column in sorted(columns, key=lambda column: column.name):
{first}        if hasattr(column, "num_buckets"):  # categories
            column = tf.feature_column.embedding_column(column, units, sparse_combiner, tf.zeros_initializer())
            terms.append(tf.keras.layers.DenseFeatures(column{named})({read}))
        else:
            weights = tf.keras.layers.Dense(units, use_bias=False, kernel_initializer="zeros"{named})
            terms.append(weights(tf.keras.layers.DenseFeatures(column)({read})))
    return {bias}(tf.add_n(terms))
'''


def _linear_model(site: Site) -> cst.BaseExpression:
    new = site.arguments(_LINEAR, "TFM243")
    for key in ("weight_collections", "cols_to_vars"):
        if not is_none(new.get(key)):
            raise Blocked("TFM243", site.original, f"`{key}` of `tf.feature_column.linear_model` is unsupported")
    if "trainable" in new and not is_true(new["trainable"]):
        raise Blocked("TFM243", site.original, "`trainable` of `tf.feature_column.linear_model` is unsupported")
    if "features" not in new or "feature_columns" not in new:
        raise Blocked("TFM243", site.original, "`tf.feature_column.linear_model` takes features and columns")
    first, named, read = "", "", "features"
    if site.training.exports:
        read = "read"
        wanted = "{key: features[key] for key in tf.feature_column.make_parse_example_spec([column])}"
        first = f"        read = {wanted}\n"
    bias = f"{site.helper('Bias', _BIAS)}()"
    if site.training.by_name:
        first += "        name = column.name\n"
        named, bias = ", name=name", f'{bias[:-1]}name="bias_weights")'
    model = _LINEAR_MODEL
    for key, text in (("{first}", first), ("{named}", named), ("{read}", read), ("{bias}", bias)):
        model = model.replace(key, text)
    arguments = [site.code(new["features"]), site.code(new["feature_columns"])]
    arguments += [f"{key}={site.code(new[key])}" for key in ("units", "sparse_combiner") if key in new]
    return expression(call_text(site.helper("linear_model", model), arguments))


def _input_layer(site: Site) -> cst.BaseExpression:
    new = site.arguments(_PARAMETERS, "TFM243")
    for key in ("weight_collections", "cols_to_vars", "cols_to_output_tensors"):
        if not is_none(new.get(key)):
            raise Blocked("TFM243", site.original, f"`{key}` of `tf.feature_column.input_layer` is unsupported")
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


_OF_LAYERS = "tf.contrib.layers."
#: Columns of tf.contrib.layers: their parameters, which of them is given as what, and what takes their place.
_COLUMNS: dict[str, tuple[str, dict[str, str]]] = {
    "real_valued_column": (
        "numeric_column",
        {"column_name": "", "dimension": "shape", "default_value": "default_value", "dtype": "dtype",
         "normalizer": "normalizer_fn"},
    ),
    "bucketized_column": ("bucketized_column", {"source_column": "", "boundaries": ""}),
    "sparse_column_with_hash_bucket": (
        "categorical_column_with_hash_bucket",
        {"column_name": "", "hash_bucket_size": "", "combiner": "sum", "dtype": "dtype"},
    ),
    "sparse_column_with_integerized_feature": (
        "categorical_column_with_identity",
        {"column_name": "", "bucket_size": "", "combiner": "sum", "dtype": "-"},
    ),
    "sparse_column_with_keys": (
        "categorical_column_with_vocabulary_list",
        {"column_name": "", "keys": "", "default_value": "default_value", "combiner": "sum", "dtype": "dtype"},
    ),
    "one_hot_column": ("indicator_column", {"sparse_id_column": ""}),
}  # fmt: skip
_EMBEDDING = ("sparse_id_column", "dimension", "combiner", "initializer")


def _column(site: Site) -> cst.BaseExpression:
    """A column of tf.contrib.layers as one of tf.feature_column. Raises Blocked (TFM243)."""
    made, parameters = _COLUMNS[site.name.removeprefix(_OF_LAYERS)]
    given = site.arguments(tuple(parameters), "TFM243")
    arguments = []
    for key, new in parameters.items():
        if key == "combiner":
            if key in given and string(given[key]) != new:
                raise Blocked("TFM243", site.original, f"combiners other than {new} are unsupported")
        elif key in given and new != "-":
            text = site.code(given[key])
            arguments.append(f"{new}={text}" if new else text)
    return expression(call_text(f"tf.feature_column.{made}", arguments))


def _embedding_column(site: Site) -> cst.BaseExpression:
    given = site.arguments(_EMBEDDING, "TFM243")
    column = given.get("sparse_id_column")
    if column is None or "dimension" not in given:
        raise Blocked("TFM243", site.original, "an embedding column takes a column and its dimension")
    arguments = [site.code(column), site.code(given["dimension"])]
    arguments += [f"combiner={site.code(given['combiner'])}"] if "combiner" in given else []
    if not is_none(given.get("initializer")):
        arguments.append(f"initializer={site.code(given['initializer'])}")
    elif isinstance(column, cst.Name):
        spread = f"stddev={column.value}.num_buckets**-0.5"
        arguments.append(f"initializer=tf.keras.initializers.TruncatedNormal({spread})")
    else:
        raise Blocked(
            "TFM243", site.original, "assign the column of this embedding to a name, or pass an `initializer`"
        )
    return expression(call_text("tf.feature_column.embedding_column", arguments))


_VOCABULARY = ("key", "vocabulary_file", "vocabulary_size", "num_oov_buckets", "default_value", "dtype")


def _vocabulary_file(site: Site) -> cst.BaseExpression:
    """The same column: TensorFlow 2 takes its parameters in another order."""
    given = site.arguments(_VOCABULARY, "TFM243")
    arguments = [f"{key}={site.code(value)}" for key, value in given.items()]
    return expression(call_text(site.name, [one.removeprefix("key=") for one in arguments]))


CALLS: dict[str, CallRule] = {
    **dict.fromkeys((f"{_OF_LAYERS}{name}" for name in _COLUMNS), _column),
    f"{_OF_LAYERS}embedding_column": _embedding_column,
    "tf.feature_column.categorical_column_with_vocabulary_file": _vocabulary_file,
    "tf.feature_column.input_layer": _input_layer,
    "tf.feature_column.linear_model": _linear_model,
}
