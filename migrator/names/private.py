"""Names of TensorFlow 1.15 that are other names of public symbols: the same Python objects (compared there)."""

from __future__ import annotations

_CELLS = (
    *("BasicRNNCell", "BasicLSTMCell", "LSTMCell", "GRUCell", "MultiRNNCell", "DropoutWrapper", "ResidualWrapper"),
    *("DeviceWrapper", "RNNCell", "LSTMStateTuple"),
)
_REDUCTIONS = (*("NONE", "SUM", "MEAN", "SUM_OVER_BATCH_SIZE", "SUM_BY_NONZERO_WEIGHTS", "SUM_OVER_NONZERO_WEIGHTS"),)
#: Modules of tensorflow.python, the public module of some of their symbols, and these.
_MODULES = (
    (
        "ops.math_ops",
        "tf",
        "abs add add_n argmax argmin cast cumsum div divide equal exp floor greater greater_equal less "
        "less_equal log logical_and logical_not logical_or matmul maximum minimum mod multiply negative "
        "not_equal pow range round rsqrt sigmoid sign sqrt square squared_difference subtract tanh tensordot "
        "to_float to_int32 to_int64 truediv",
    ),
    (
        "ops.array_ops",
        "tf",
        "boolean_mask concat expand_dims fill gather gather_nd identity one_hot ones ones_like pad "
        "placeholder rank reshape reverse sequence_mask shape size slice split squeeze stack stop_gradient "
        "tile transpose unstack where zeros zeros_like",
    ),
    ("ops.state_ops", "tf", "assign assign_add assign_sub scatter_add scatter_sub scatter_update"),
    ("ops.control_flow_ops", "tf", "cond group no_op tuple while_loop"),
    (
        "ops.init_ops",
        "tf",
        "constant_initializer glorot_normal_initializer glorot_uniform_initializer ones_initializer "
        "orthogonal_initializer random_normal_initializer random_uniform_initializer "
        "truncated_normal_initializer uniform_unit_scaling_initializer variance_scaling_initializer "
        "zeros_initializer",
    ),
    ("ops.variable_scope", "tf", "AUTO_REUSE get_variable get_variable_scope variable_scope"),
    ("ops.linalg_ops", "tf", "norm"),
    ("ops.clip_ops", "tf", "clip_by_global_norm clip_by_norm clip_by_value global_norm"),
    ("ops.random_ops", "tf", "random_normal random_uniform random_shuffle truncated_normal"),
    (
        "ops.variables",
        "tf",
        "global_variables global_variables_initializer trainable_variables local_variables local_variables_initializer",
    ),
    (
        "ops.nn",
        "tf.nn",
        "batch_normalization bias_add conv2d dropout elu embedding_lookup fused_batch_norm l2_loss "
        "l2_normalize leaky_relu log_softmax max_pool moments relu relu6 selu "
        "sigmoid_cross_entropy_with_logits softmax softplus sparse_softmax_cross_entropy_with_logits tanh "
        "sigmoid zero_fraction",
    ),
    ("ops.embedding_ops", "tf.nn", "embedding_lookup embedding_lookup_sparse"),
    (
        "ops.metrics",
        "tf.metrics",
        "accuracy auc mean precision recall mean_absolute_error mean_squared_error root_mean_squared_error",
    ),
    (
        "ops.partitioned_variables",
        "tf",
        "fixed_size_partitioner min_max_variable_partitioner variable_axis_size_partitioner",
    ),
    (
        "framework.ops",
        "tf",
        "GraphKeys IndexedSlices Tensor add_to_collection control_dependencies convert_to_tensor "
        "get_collection get_default_graph name_scope",
    ),
    ("framework.sparse_tensor", "tf", "SparseTensor"),
    ("framework.tensor_shape", "tf", "TensorShape"),
    ("framework.dtypes", "tf", "as_dtype bool float16 float32 float64 int32 int64 string uint8"),
    ("training.training_util", "tf.train", "get_global_step get_or_create_global_step"),
    ("training.optimizer", "tf.train", "Optimizer"),
    ("training.session_run_hook", "tf.train", "SessionRunArgs SessionRunContext SessionRunHook SessionRunValues"),
    (
        "training.basic_session_run_hooks",
        "tf.train",
        "LoggingTensorHook ProfilerHook SecondOrStepTimer StopAtStepHook CheckpointSaverHook SummarySaverHook "
        "StepCounterHook NanTensorHook",
    ),
    (
        "training.learning_rate_decay",
        "tf.train",
        "exponential_decay polynomial_decay piecewise_constant cosine_decay natural_exp_decay inverse_time_decay",
    ),
    (
        "platform.tf_logging",
        "tf.logging",
        "DEBUG ERROR FATAL INFO WARN debug error fatal info set_verbosity warn warning",
    ),
    (
        "platform.gfile",
        "tf.gfile",
        "Copy DeleteRecursively Exists FastGFile GFile Glob IsDirectory ListDirectory MakeDirs MkDir Open "
        "Remove Rename Stat Walk",
    ),
    ("summary.summary", "tf.summary", "FileWriter histogram image merge_all scalar"),
)
#: The public names of objects that TensorFlow 1.15 has under a private one, or one of contrib, too.
PUBLIC = {
    **{
        f"tf.python.{module}.{name}": f"{public}.{name}" for module, public, names in _MODULES for name in names.split()
    },
    **{f"tf.contrib.rnn.{name}": f"tf.nn.rnn_cell.{name}" for name in _CELLS},
    **{f"tf.python.ops.rnn_cell.{name}": f"tf.nn.rnn_cell.{name}" for name in _CELLS},
    **{f"tf.python.ops.rnn_cell_impl.{name}": f"tf.nn.rnn_cell.{name}" for name in _CELLS},
    "tf.contrib.cluster_resolver.TPUClusterResolver": "tf.distribute.cluster_resolver.TPUClusterResolver",
    "tf.contrib.tpu.bfloat16_scope": "tf.tpu.bfloat16_scope",
    "tf.contrib.rnn.static_rnn": "tf.nn.static_rnn",
    "tf.contrib.rnn.static_bidirectional_rnn": "tf.nn.static_bidirectional_rnn",
    **{
        f"tf.python.ops.losses.losses.{name}": f"tf.losses.{name}"
        for name in ("Reduction", *(f"Reduction.{kind}" for kind in _REDUCTIONS))
    },
    **{
        f"tf.python.framework.{module}.{name}": f"tf.graph_util.{name}"
        for module in ("graph_util", "graph_util_impl")
        for name in (
            *("convert_variables_to_constants", "extract_sub_graph", "must_run_on_cpu", "remove_training_nodes"),
            "tensor_shape_from_node_def_name",
        )
    },
    "tf.python.layers.core.Dense": "tf.layers.Dense",
    "tf.python.layers.core.dense": "tf.layers.dense",
    **{
        f"tf.python.training.{module}.{name}": f"tf.train.{name}"
        for module, name in (
            *(("adam", "AdamOptimizer"), ("adagrad", "AdagradOptimizer"), ("momentum", "MomentumOptimizer")),
            *(("gradient_descent", "GradientDescentOptimizer"), ("rmsprop", "RMSPropOptimizer")),
            *(("ftrl", "FtrlOptimizer"), ("adadelta", "AdadeltaOptimizer")),
        )
    },
    **{
        f"{module}.{name}": f"tf.nest.{name}"
        for module in ("tf.python.util.nest", "tf.contrib.framework.nest")
        for name in ("map_structure", "flatten", "pack_sequence_as", "assert_same_structure")
    },
}

#: Modules of tensorflow.python.keras whose symbols are those of tf.keras under the same path, and what of them is not
#: (compared there: 576 symbols are the same objects).
_KERAS = (
    *("activations", "applications", "backend", "callbacks", "constraints", "datasets", "estimator", "initializers"),
    *("layers", "losses", "metrics", "models", "preprocessing", "regularizers", "utils", "wrappers"),
)
_OTHER_IN_KERAS = (
    *("applications.resnet50", "backend.name_scope", "callbacks.TensorBoard", "layers.DenseFeatures", "losses.cosine"),
    *("metrics.KLD", "metrics.cosine", "metrics.kld"),
)
_DEEPER = ("applications", "datasets", "preprocessing", "wrappers")


def public_keras(name: str) -> str | None:
    """`tf.keras.X` of a `tf.python.keras.X` that is the same object in TensorFlow 1.15; None where that is not sure."""
    path = name.removeprefix("tf.python.keras.")
    parts = path.split(".")
    if path in ("Model", "Sequential", "Input"):
        return f"tf.keras.{path}"
    depth = 3 if parts[0] in _DEEPER else 2
    if path == name or parts[0] not in _KERAS or len(parts) != depth:
        return None
    if any(path == other or path.startswith(f"{other}.") for other in _OTHER_IN_KERAS):
        return None
    return f"tf.keras.{path}"
