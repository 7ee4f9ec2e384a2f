"""The mapped form of a model_fn: TensorFlow 1 code that a Keras model runs. What may stay, and what may not."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from migrator.findings import Severity
from migrator.names.compat import in_compat
from migrator.program.calls import string
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM150",
        "the model_fn stays TensorFlow 1 code",
        Severity.REVIEW,
        """
The native form, a Keras model of Keras layers, was blocked by the construct that this finding names (or
`--style mapped` was asked for). So the program was migrated in the *mapped* form: the model_fn keeps its code, with
branches on `mode`, `get_variable`, `tf.Variable`, variable scopes, reuse and `tf.layers`, spelled `tf.compat.v1` where
TensorFlow 2 has no other name for it. A small subclass of `tf.keras.Model` in the same file runs it. Around it
everything is migrated: `fit`, `evaluate`, the optimizer, metrics, strategies, checkpoints, exports.

The variables keep their TensorFlow 1 names. Batch normalization updates its averages by itself, as
`tf.control_dependencies(update_ops)` made it do. The program needs Keras 2 (`tf_keras` from TensorFlow 2.16 on).

Measured against the same model_fn under an Estimator (TensorFlow 2.15.1 against 2.21, `tf-migrate verify`): see
the fixtures `mapped_scopes` and `mapped_builder`.

`--style native` refuses such programs instead.
""",
    ),
    Rule(
        "TFM151",
        "a symbol that the mapped form cannot keep",
        Severity.MANUAL,
        """
In the mapped form the model_fn runs inside a Keras model, without a session and without graph collections. The named
symbol is gone from `tf.compat.v1` of TensorFlow 2.21, or it is there and means something else in such a model:
collections are empty, Keras layers would make new variables at every call, placeholders and savers need a session.
Replace the line by hand: `tf.layers` instead of Keras layers, for one. Collections of the program's own (a name that is
written out and that TensorFlow has not taken) and `losses` stay: each trace of the model_fn fills them anew.
""",
    ),
    Rule(
        "TFM152",
        "the optimizer depends on the batch",
        Severity.MANUAL,
        """
The optimizer is made once, outside the network. The named statement computes one of its arguments from features,
labels or the mode.
""",
    ),
    Rule(
        "TFM153",
        "the mapped form is blocked as well",
        Severity.MANUAL,
        """
The native form is blocked by the lines of the other findings, and the mapped form (see TFM150), which needs less to be
understood, by the named one. To change either is enough.
""",
    ),
    Rule(
        "TFM154",
        "a partitioner in the mapped form",
        Severity.REVIEW,
        """
The partitioner of the variable scope is left out: variables that TensorFlow 1 code makes in a Keras model are not
split. On parameter servers they are placed whole, in turns. The numbers do not change. (Where they would, because a
lookup gives the ids to the parts of a table in turn, the program is refused: TFM796.)
""",
    ),
)

# Symbols of `tf.compat.v1` that make variables, or look at the graph, wherever they stand.
_OF_GRAPHS = (
    *("tf.get_variable", "tf.get_local_variable", "tf.variable_scope", "tf.VariableScope", "tf.Variable", "tf.layers"),
    *("tf.losses", "tf.nn.rnn_cell", "tf.nn.dynamic_rnn", "tf.nn.bidirectional_dynamic_rnn", "tf.nn.raw_rnn"),
    *("tf.nn.static_rnn", "tf.nn.static_state_saving_rnn", "tf.nn.static_bidirectional_rnn", "tf.flags", "tf.app"),
    *("tf.feature_column.input_layer", "tf.feature_column.linear_model", "tf.logging", "tf.while_loop", "tf.cond"),
    *("tf.feature_column.shared_embedding_columns", "tf.global_norm", "tf.resource_loader", "tf.Print"),
)


# Symbols that `tf.compat.v1` has, but that do not do in a Keras model what they do in an Estimator's graph; the reasons
# were seen by running them there (TensorFlow 2.15.1 and 2.21).
_REASONS = {
    "it would be made anew at every call": (
        "tf.train.ExponentialMovingAverage",
        "tf.make_template",
        "tf.keras",
    ),
    "graph collections are empty there": (
        "tf.add_to_collection",
        "tf.add_to_collections",
        "tf.get_collection",
        "tf.get_collection_ref",
        "tf.all_variables",
        "tf.global_variables",
        "tf.local_variables",
        "tf.model_variables",
        "tf.moving_average_variables",
        "tf.trainable_variables",
        "tf.report_uninitialized_variables",
        "tf.losses.get_regularization_loss",
        "tf.losses.get_regularization_losses",
        "tf.losses.get_total_loss",
        "tf.contrib.framework.get_variables",
    ),
    "there is no session": (
        "tf.placeholder",
        "tf.placeholder_with_default",
        "tf.sparse_placeholder",
        "tf.Session",
        "tf.InteractiveSession",
        "tf.ConfigProto",
        "tf.get_default_session",
        "tf.get_session_handle",
        "tf.global_variables_initializer",
        "tf.local_variables_initializer",
        "tf.tables_initializer",
        "tf.initialize_all_variables",
        "tf.variables_initializer",
        "tf.Graph",
        "tf.import_graph_def",
        "tf.get_default_graph",
        "tf.reset_default_graph",
        "tf.data.make_initializable_iterator",
        "tf.data.make_one_shot_iterator",
        "tf.summary.merge",
        "tf.summary.merge_all",
        "tf.summary.FileWriter",
    ),
    "it runs at every call there, whether its result is used or not": (
        "tf.assign",
        "tf.assign_add",
        "tf.assign_sub",
        "tf.scatter_update",
        "tf.scatter_add",
        "tf.scatter_sub",
        "tf.count_up_to",
    ),
    "it is not carried over there": (
        "tf.train",
        "tf.estimator",
        "tf.saved_model",
        "tf.gradients",
        "tf.hessians",
        "tf.distribute",
        "tf.metrics",
        "tf.summary",
        "tf.tpu",
        "tf.colocate_with",
        "tf.custom_gradient",
        "tf.initializers.tables_initializer",
        "tf.enable_eager_execution",
        "tf.disable_eager_execution",
        "tf.RunOptions",
        "tf.test",
        "tf.lite",
    ),
}
_KEPT = (
    *("tf.train.list_variables", "tf.train.load_checkpoint", "tf.train.load_variable", "tf.train.latest_checkpoint"),
    *("tf.tpu.bfloat16_scope", "tf.keras.mixed_precision.Policy"),
    *("tf.keras.regularizers", "tf.keras.initializers", "tf.keras.activations", "tf.keras.losses"),
    *("tf.keras.backend.epsilon", "tf.keras.backend.binary_crossentropy", "tf.keras.backend.categorical_crossentropy"),
    *("tf.keras.backend.sparse_categorical_crossentropy", "tf.keras.backend.int_shape", "tf.keras.backend.floatx"),
    *(
        f"tf.keras.backend.{name}"
        for name in (
            *("sum", "mean", "abs", "log", "exp", "square", "sqrt", "dot", "batch_dot", "concatenate", "expand_dims"),
            *("squeeze", "reshape", "clip", "relu", "softmax", "sigmoid", "tanh", "l2_normalize", "max", "min", "cast"),
            *("argmax", "argmin", "flatten", "batch_flatten", "shape", "ndim", "stack", "pow", "equal", "maximum"),
            *(
                "minimum",
                "permute_dimensions",
                "transpose",
                "softplus",
                "stop_gradient",
                "gather",
                "tile",
                "var",
                "std",
            ),
            *("zeros_like", "ones_like", "prod", "any", "all", "repeat_elements", "round", "sign", "not_equal"),
        )
    ),
)


# The names of the collections that TensorFlow 1 fills itself (tf.GraphKeys, TensorFlow 1.15); in a function that Keras
# traces, `losses` is filled as in an Estimator's graph.
_FILLED_BY_TENSORFLOW = frozenset(
    (
        *("variables", "local_variables", "model_variables", "trainable_variables", "trainable_resource_variables"),
        *("moving_average_variables", "metric_variables", "concatenated_variables", "global_step", "eval_step"),
        *("update_ops", "regularization_losses", "summaries", "_summary_tags", "summary_op", "train_op", "init_op"),
        *("local_init_op", "ready_op", "ready_for_local_init_op", "queue_runners", "table_initializer", "resources"),
        *("local_resources", "saveable_objects", "savers", "asset_filepaths", "weights", "biases", "activations"),
        *("cond_context", "while_context"),
    )
)


def is_own_collection(name: str, node: cst.Call, constants: Mapping[str, cst.BaseExpression]) -> bool:
    """Whether a call reads or fills a collection that only the program fills, by a name that is written out."""
    if name not in ("tf.get_collection", "tf.add_to_collection") or len(node.args) != (1 if "get" in name else 2):
        return False
    named = {arg.keyword.value: arg.value for arg in node.args if arg.keyword is not None}
    key = named.get("key" if "get" in name else "name", node.args[0].value)
    if isinstance(key, cst.Name):
        key = constants.get(key.value, key)
    text = string(key)
    return text is not None and text not in _FILLED_BY_TENSORFLOW


def may_stay_outside(name: str) -> bool:
    """Whether a symbol of `tf.compat.v1` does the same in functions that no graph is made by: input functions, say."""
    stateful = any(name == symbol or name.startswith((symbol + ".", symbol + "_")) for symbol in _OF_GRAPHS)
    return in_compat(name) and not stateful and refused(name) is None


def refused(name: str) -> str | None:
    """Why a symbol cannot stay in a model_fn that a Keras model runs; None when it can, as far as this is known."""
    if name.startswith(_KEPT):
        return None
    for reason, symbols in _REASONS.items():
        if any(name == symbol or name.startswith(symbol + ".") for symbol in symbols):
            return reason
    return None
