"""Canned Estimators: their parameters and defaults.

Read from `tensorflow_estimator` 1.15.1 and 2.15.0 and measured on both. Version 1 are the classes of TensorFlow 1 and
of `tf.compat.v1.estimator`, version 2 those of `tf.estimator` in TensorFlow 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from migrator.findings import Severity
from migrator.program.parsed import Blocked
from migrator.rules.rule import Rule
from migrator.rules.site import CallRule, Site, expression

RULES = (
    Rule(
        "TFM190",
        "canned Estimators become Keras models",
        Severity.MANUAL,
        """
`tf.estimator.LinearClassifier`, `LinearRegressor`, `DNNClassifier`, `DNNRegressor`, `DNNLinearCombinedClassifier`,
`DNNLinearCombinedRegressor`, and `LinearEstimator`, `DNNEstimator` and `DNNLinearCombinedEstimator` with a head of
TensorFlow, become a function that builds a Keras model of their feature columns, with the same loss, optimizer, metrics
and predictions. The two optimizers of a combined model become the parts of one, in a class of a few lines. The defaults
are written out, those of the class that the program uses:

| | TensorFlow 1, `compat.v1` | TensorFlow 2 |
|---|---|---|
| loss of a batch | sum | mean |
| DNN | Adagrad 0.05 | Adagrad 0.001 |
| Linear | Ftrl 0.2 | Ftrl 0.2 |
| DNNLinearCombined | Adagrad 0.001, Ftrl 0.005 | Adagrad 0.001, Ftrl 0.005 |
| an optimizer by name | 0.05 (DNN), 0.2 (Linear) | its own rate (DNN), 0.2 (Linear) |

The documented rate of linear models, `min(0.2, 1/sqrt(number of columns))`, is that of an explicit `optimizer=None`
only (measured with 30 columns). Losses and weights agree with the Estimators of TensorFlow 1.15.5 and 2.15.1 to 1e-6.

An optimizer that a function of the file makes is folded where the function only chooses, by comparing its parameters
with literals, what it returns: `create_optimizer("tf1")` takes that branch with it when nothing else comes there.
Optimizers of Keras become those of `tf.keras.optimizers.legacy`, which TensorFlow 1 and the canned Estimators had.

Those of `tf.contrib.learn` are read as the same kinds with their own defaults: the loss is the mean, DNNs train
with Adagrad at 0.05, linear models and linear parts with Ftrl at `min(0.2, 1/sqrt(number of columns))`, and predictions
and metrics have their own names (`scores`, `labels/prediction_mean`). `fit`, `evaluate` and `predict` on arrays become
datasets of the same batches, `predict_classes` and its kin read one of the predictions. A column
`real_valued_column("")`, or what `infer_real_valued_columns_from_input` makes, is the array itself. Their column
weights, centered bias, clipping, monitors, `metrics=`, and combined models whose step counts twice (without
`fix_global_step_increment_bug`) are left to the bridge.

Refused are label vocabularies, `warm_start_from`, an optimizer that is shared with something else, and
`n_classes` that cannot be known from the file (two classes are one logit).
""",
    ),
    Rule(
        "TFM147",
        "metrics of add_metrics become the model's own",
        Severity.REVIEW,
        """
`estimator = tf.estimator.add_metrics(estimator, metric_fn)` makes an Estimator in the same `model_dir` whose
evaluations have the metrics of `metric_fn`, too. A Keras model is compiled with its metrics, so they are there from the
beginning: evaluations before that line give them as well, all other numbers are the same. Supported are one such line
for an Estimator that the file makes of its own model_fn, whose EstimatorSpec has its metrics in a dict that is written
out, or for a canned one, and a function of `features`, `labels` and `predictions` that returns such a dict.
""",
    ),
    Rule(
        "TFM191",
        "a canned Estimator may be TensorFlow 1's or 2's",
        Severity.REVIEW,
        """
`tf.estimator.DNNClassifier` of TensorFlow 1 adds up the losses of a batch and trains with Adagrad at 0.05, that of
TensorFlow 2 takes their mean and trains at 0.001. Nothing in this file exists only in TensorFlow 1 or only in 2, so it
is taken for TensorFlow 1, and `verify` runs it as that. If it ran on TensorFlow 2, give the canned Estimator its
`loss_reduction` and its optimizer, and migrate again.
""",
    ),
    Rule(
        "TFM891",
        "the partitioner of a canned Estimator applies to all variables",
        Severity.REVIEW,
        """
`input_layer_partitioner` (`partitioner` of a linear model) splits the embeddings and the weights of the columns. The
hidden layers of a canned Estimator are split by a partitioner of its own, into at most as many shards as there are
parameter servers, of at least 256 KB. A ParameterServerStrategy has one partitioner for all variables: the one that is
given. No number changes. Without the argument a canned Estimator splits its input layer into shards of at least 64 MB,
and the migrated program nothing: where tables are larger than that, give the strategy a MinSizePartitioner.
""",
    ),
    Rule(
        "TFM194",
        "an Estimator created from a Keras model becomes that model",
        Severity.MANUAL,
        """
`tf.keras.estimator.model_to_estimator(keras_model=model)` goes, and the compiled model itself is trained and evaluated.
The Estimator trained a copy of the model. So the program is refused where the model, a part of it or another name of it
is used after that call, trained before it, shared with the model of another Estimator, or not compiled beside it or in
the function that makes it, and where its name is bound again before the Estimator's last use. How the model is built
may be asked at any time (`model.summary()`, `model.input_names`). Predictions and exports have the names of the model's
outputs, as the Estimator's had. Under a strategy the model is made in its scope (TFM727).
""",
    ),
)

# What a program can only mean TensorFlow 1 with, when it does not say compat.v1.
_ONLY_ONE = ("app", "contrib", "estimator.inputs", "flags", "gfile", "layers", "logging", "python_io")
_ONLY_ONE_NAMES = frozenset(
    f"tf.{name}"
    for name in (
        "ConfigProto", "FixedLenFeature", "GPUOptions", "Session", "VarLenFeature", "decode_csv", "decode_raw",
        "disable_v2_behavior", "div", "enable_eager_execution", "feature_column.input_layer",
        "feature_column.linear_model", "get_collection", "get_default_graph", "get_variable",
        "global_variables_initializer", "log", "parse_example", "parse_single_example", "placeholder", "random_normal",
        "random_uniform", "read_file", "reset_default_graph", "set_random_seed", "string_split", "to_float", "to_int32",
        "to_int64", "train.get_global_step", "train.get_or_create_global_step", "variable_scope",
    )
)  # fmt: skip
_END = ("config", "warm_start_from")
_DNN_REST = ("activation_fn", "dropout")


@dataclass(frozen=True)
class Canned:
    """A canned Estimator: its network (linear, dnn, combined), its task, and its parameters (`_`: version 1 only).

    `only` is the version that it has whatever the file means by `tensorflow`: 0 is tf.contrib.learn.
    """

    title: str
    network: str
    task: str
    _parameters: tuple[str, ...]
    only: int | None = None

    def parameters(self, version: int) -> tuple[str, ...]:
        """Its parameters in their order."""
        if self.only is not None:
            return self._parameters
        return tuple(name.lstrip("_") for name in self._parameters if version == 1 or not name.startswith("_"))

    @property
    def optimizers(self) -> tuple[str, ...]:
        return ("linear_optimizer", "dnn_optimizer") if self.network == "combined" else ("optimizer",)

    @property
    def function(self) -> str:
        """The name of the function that takes its place."""
        network = {"linear": "linear", "dnn": "dnn", "combined": "wide_and_deep"}[self.network]
        return f"{network}_{'model' if self.task == 'Estimator' else self.task.lower()}"


_CLASSES = ("n_classes", "weight_column", "label_vocabulary")
_NUMBERS = ("label_dimension", "weight_column")
_COMBINED = (
    "linear_feature_columns",
    "linear_optimizer",
    "dnn_feature_columns",
    "dnn_optimizer",
    "dnn_hidden_units",
    "dnn_activation_fn",
    "dnn_dropout",
)


def _linear(task: str, middle: tuple[str, ...]) -> Canned:
    reduction = ("loss_reduction", "sparse_combiner")
    parameters = ("feature_columns", "model_dir", *middle, "optimizer", "config", "_partitioner", "warm_start_from")
    if task == "Estimator":
        parameters = ("head", "feature_columns", "model_dir", "optimizer", "config", "_partitioner")
        reduction = ("sparse_combiner", "warm_start_from")
    return Canned(f"Linear{task}", "linear", task, (*parameters, *reduction))


def _dnn(task: str, middle: tuple[str, ...]) -> Canned:
    first = ("head",) if task == "Estimator" else ()
    rest = ("optimizer", *_DNN_REST, "_input_layer_partitioner", *_END)
    last = ("batch_norm",) if task == "Estimator" else ("loss_reduction", "batch_norm")
    return Canned(
        f"DNN{task}", "dnn", task, (*first, "hidden_units", "feature_columns", "model_dir", *middle, *rest, *last)
    )


def _combined(task: str, middle: tuple[str, ...]) -> Canned:
    first = ("head",) if task == "Estimator" else ()
    last = ("batch_norm",) if task == "Estimator" else ("loss_reduction", "batch_norm")
    parameters = (*first, "model_dir", *_COMBINED, *middle, "_input_layer_partitioner", *_END, *last)
    return Canned(f"DNNLinearCombined{task}", "combined", task, (*parameters, "linear_sparse_combiner"))


_TASKS = (("Classifier", _CLASSES), ("Regressor", _NUMBERS), ("Estimator", ()))
#: What stands before the names of the Estimators that tf.contrib.learn had.
LEARN = "tf.contrib.learn."


def _of_learn(network: str, task: str) -> Canned:
    """The same kind of Estimator in tf.contrib.learn: the order of its arguments, and those that it has alone."""
    classes = ("n_classes",) if task == "Classifier" else ()
    numbers = ("label_dimension",) if task == "Regressor" else ()
    words = ("label_keys",) if task == "Classifier" else ()
    bias = ("gradient_clip_norm", "enable_centered_bias")
    deep = ("embedding_lr_multipliers", "input_layer_min_slice_size")
    end = ("config", "feature_engineering_fn")
    if network == "linear":
        first = ("feature_columns", "model_dir", *classes, "weight_column_name", "optimizer", *bias)
        joint = "_joint_weight" if classes else "_joint_weights"
        return Canned(f"Linear{task}", network, task, (*first, *numbers, joint, *end, *words), 0)
    if network == "dnn":
        first = ("hidden_units", "feature_columns", "model_dir", *classes, "weight_column_name", "optimizer")
        rest = ("activation_fn", "dropout", *bias, *end, *numbers, *deep, *words)
        return Canned(f"DNN{task}", network, task, (*first, *rest), 0)
    columns = (*_COMBINED[:2], "_joint_linear_weights", *_COMBINED[2:])
    first = ("model_dir", *classes, "weight_column_name", *columns, *bias)
    rest = (*numbers, *end, *deep, *words, "fix_global_step_increment_bug")
    return Canned(f"DNNLinearCombined{task}", network, task, (*first, *rest), 0)


CANNED: dict[str, Canned] = {
    **{
        f"tf.estimator.{canned.title}": canned
        for make in (_linear, _dnn, _combined)
        for canned in (make(task, middle) for task, middle in _TASKS)
    },
    **{
        f"{LEARN}{canned.title}": canned
        for canned in (_of_learn(kind, task) for kind in ("linear", "dnn", "combined") for task, _ in _TASKS[:2])
    },
}


def is_only_one(name: str) -> bool:
    """Whether a symbol that is spelled plainly is certainly not one of TensorFlow 2."""
    parts = name.split(".")
    if any(".".join(parts[1:length]) in _ONLY_ONE for length in (2, 3)):
        return True
    return name in _ONLY_ONE_NAMES or (name.startswith("tf.train.") and name.endswith("Optimizer"))


_RATES = {"linear": "0.2", "dnn": "0.05", "wide": "0.005", "deep": "0.001"}
# Those of tf.contrib.learn; that of a linear model depends on the number of its columns.
_OF_LEARN = {"dnn": "0.05", "deep": "0.05"}
_OLD = {
    "Adagrad": "AdagradOptimizer",
    "Adam": "AdamOptimizer",
    "Ftrl": "FtrlOptimizer",
    "RMSProp": "RMSPropOptimizer",
    "SGD": "GradientDescentOptimizer",
}
# The rates that Keras' own classes have.
_NEW = {
    "Adagrad": ("Adagrad", "0.001", ", initial_accumulator_value=0.1, epsilon=1e-07"),
    "Adam": ("Adam", "0.001", ", beta_1=0.9, beta_2=0.999, epsilon=1e-07"),
    "Ftrl": ("Ftrl", "0.001", ""),
    "RMSProp": ("RMSprop", "0.001", ", rho=0.9, epsilon=1e-07"),
    "SGD": ("SGD", "0.01", ""),
}


def default_optimizer(part: str, version: int, tf: str, columns: int | str = 1) -> str:
    """The optimizer of a part (linear, dnn, and wide and deep of both) that is given none.

    `columns` is the number of its columns, or an expression for it: tf.contrib.learn takes a linear rate from that.
    """
    found = optimizer_named("Ftrl" if part in ("linear", "wide") else "Adagrad", part, version, tf, columns)
    assert found is not None
    return found


def optimizer_named(name: str, part: str, version: int, tf: str, columns: int | str = 1) -> str | None:
    """The optimizer that a canned Estimator makes of a name; None for names that it does not know."""
    if name not in _OLD and not (name == "Momentum" and version == 0):
        return None
    rate = _RATES[part] if version else _OF_LEARN.get(part) or _rate_of_columns(columns)
    if name == "Ftrl" and part in ("linear", "wide"):
        # All weights of a linear model start at zero: there the stock class is exact for rows that a batch leaves out.
        return f"{tf.removesuffix('.compat.v1')}.keras.optimizers.Ftrl(learning_rate={rate})"
    if name == "Momentum":
        return f"{tf}.train.MomentumOptimizer(learning_rate={rate}, momentum=0.9)"
    if version < 2:
        return f"{tf}.train.{_OLD[name]}(learning_rate={rate})"
    keras, own, rest = _NEW[name]
    rate = own if part == "dnn" else rate
    return f"{tf.removesuffix('.compat.v1')}.keras.optimizers.{keras}(learning_rate={rate}{rest})"


def _rate_of_columns(columns: int | str) -> str:
    if isinstance(columns, str):
        return f"min(0.2, {columns} ** -0.5)"
    return f"{min(0.2, columns**-0.5):.10g}"


_TWO = '''\
class {name}(tf.keras.optimizers.legacy.Optimizer):
    """Trains the linear part of a model with one optimizer and the rest with another."""

    def __init__(self, deep, linear, linear_variables):
        super().__init__("{name}")
        self.parts = [deep, linear]
        for name, part in zip(("deep", "linear"), self.parts):
            part.iterations = self.iterations
            self._track_trackable(part, name)  # so that checkpoints hold its slots
        self.linear = {variable.ref() for variable in linear_variables}

    @property
    def learning_rate(self):
        return self.parts[0].learning_rate

    def _prepare(self, var_list):
        return [part._prepare(var_list) for part in self.parts]

    def _create_slots(self, var_list):
        for number, part in enumerate(self.parts):
            part._create_all_weights([variable for variable in var_list if self._number(variable) == number])

    def _resource_apply_dense(self, grad, var, apply_state):
        number = self._number(var)
        return self.parts[number]._resource_apply_dense(grad, var, apply_state[number])

    def _resource_apply_sparse_duplicate_indices(self, grad, var, indices, apply_state):
        number = self._number(var)
        part = self.parts[number]
        return part._resource_apply_sparse_duplicate_indices(grad, var, indices, apply_state=apply_state[number])

    def _number(self, variable):
        return int(variable.ref() in self.linear)
'''
#: What stands for the two optimizers of a DNNLinearCombined Estimator; the names are those of its model_fn.
TWO = "train.WideAndDeepOptimizer"


_KERAS = "tf.keras.optimizers."


def _two(site: Site) -> cst.BaseExpression:
    deep, linear = (_part(site, part.value) for part in site.call.args)
    name = site.training.helper("WideAndDeepOptimizer", _TWO)
    variables = "tf.keras.Model(features, linear_logits).trainable_variables"
    return expression(f"{name}(\n    deep={deep},\n    linear={linear},\n    linear_variables={variables},\n)")


def _part(site: Site, made: cst.BaseExpression) -> str:
    """The optimizer of one part, as source text. Raises Blocked (TFM190) for one that is of no class of `legacy`."""
    name = site.code(made.func) if isinstance(made, cst.Call) else ""
    if name.startswith(_KERAS) and not name.startswith(f"{_KERAS}legacy."):
        raise Blocked("TFM190", site.original, f"a linear and a deep part with `{name}` are unsupported")
    return site.code(made)


CALLS: dict[str, CallRule] = {f"tf.{TWO}": _two}
