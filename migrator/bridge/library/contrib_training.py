"""What tf.contrib had around training: train_ops, towers, windows of data, TensorBoard's projector."""

from __future__ import annotations

import collections
import hashlib
import os
import warnings

import tensorflow as tf
import tensorflow.compat.v1 as tf1

USE_GLOBAL_STEP = 0


def create_train_op(
    total_loss,
    optimizer,
    global_step=USE_GLOBAL_STEP,
    update_ops=None,
    variables_to_train=None,
    transform_grads_fn=None,
    summarize_gradients=False,
    gate_gradients=tf1.train.Optimizer.GATE_OP,
    aggregation_method=None,
    colocate_gradients_with_ops=False,
    check_numerics=True,
):
    """A tensor that has the loss, computed behind the updates, and takes a step when it is computed."""
    if global_step is USE_GLOBAL_STEP:
        global_step = tf1.train.get_or_create_global_step()
    collected = tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)
    updates = list(dict.fromkeys(collected if update_ops is None else update_ops))
    if not set(collected) <= set(updates):
        tf1.logging.warning("update_ops in create_train_op does not contain all the update_ops in GraphKeys.UPDATE_OPS")
    if updates:
        with tf.control_dependencies(updates):
            barrier = tf.no_op(name="update_barrier")
        with tf.control_dependencies([barrier]):
            total_loss = tf.identity(total_loss)
    gradients = optimizer.compute_gradients(
        total_loss,
        tf1.trainable_variables() if variables_to_train is None else variables_to_train,
        gate_gradients=gate_gradients,
        aggregation_method=aggregation_method,
        colocate_gradients_with_ops=colocate_gradients_with_ops,
    )
    if transform_grads_fn:
        gradients = transform_grads_fn(gradients)
    if summarize_gradients:
        with tf1.name_scope("summarize_grads"):
            add_gradients_summaries(gradients)
    step = optimizer.apply_gradients(gradients, global_step=global_step)
    with tf1.name_scope("train_op"):
        if check_numerics:
            total_loss = tf.debugging.check_numerics(total_loss, "LossTensor is inf or nan")
        with tf.control_dependencies([step]):
            train_op = tf.identity(total_loss)
    tf1.add_to_collection(tf1.GraphKeys.TRAIN_OP, train_op)
    return train_op


def add_gradients_summaries(grads_and_vars):
    """Summaries of gradients and of their norms."""
    made = []
    for gradient, variable in grads_and_vars:
        if gradient is None:
            continue
        values = gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
        made.append(tf1.summary.histogram(variable.op.name + "_gradient", values))
        made.append(tf1.summary.scalar(variable.op.name + "_gradient_norm", tf.linalg.global_norm([values])))
    return made


def clip_gradient_norms(gradients_to_variables, max_norm):
    """Gradients of which each is clipped by its own norm."""
    clipped = []
    for gradient, variable in gradients_to_variables:
        if isinstance(gradient, tf.IndexedSlices):
            values = tf.clip_by_norm(gradient.values, max_norm)
            gradient = tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
        elif gradient is not None:
            gradient = tf.clip_by_norm(gradient, max_norm)
        clipped.append((gradient, variable))
    return clipped


def clip_gradient_norms_fn(max_norm):
    """`clip_gradient_norms` as a function of the gradients."""
    return lambda gradients: clip_gradient_norms(gradients, max_norm)


def replicate_model_fn(model_fn, loss_reduction=tf1.losses.Reduction.SUM_BY_NONZERO_WEIGHTS, devices=None):
    """The model_fn itself: one device takes the whole batch, as the towers together did."""
    del loss_reduction
    if len(devices or tf.config.list_physical_devices("GPU")) > 1:
        message = "replicate_model_fn trains on one device now: give the RunConfig a tf.distribute.MirroredStrategy"
        warnings.warn(message, stacklevel=2)
    return model_fn


def tower_optimizer(optimizer_or_optimizer_fn):
    """The optimizer itself, of one tower."""
    optimizer = optimizer_or_optimizer_fn
    return optimizer if isinstance(optimizer, tf1.train.Optimizer) else optimizer()


def all_reduce_ops(
    all_reduce_alg="nccl", num_packs=1, agg_small_grads_max_bytes=0, agg_small_grads_max_group=10, all_reduce_spec=None
):
    """How gradients of replicas are added up; None, the strategy's own way, where there are not several GPUs."""
    del agg_small_grads_max_bytes, agg_small_grads_max_group, all_reduce_spec
    if len(tf.config.list_physical_devices("GPU")) < 2:
        return None
    ways = {"nccl": tf.distribute.NcclAllReduce, "hierarchical_copy": tf.distribute.HierarchicalCopyAllReduce}
    return ways[all_reduce_alg](num_packs=num_packs) if all_reduce_alg in ways else None


def sliding_window_batch(window_size, stride=None, window_shift=None, window_stride=1):
    """For `dataset.apply`: batches of so many elements, each of which starts `window_shift` behind the one before."""
    if stride is not None and window_shift is not None:
        raise ValueError("Cannot specify both `stride` and `window_shift`")
    shift = window_shift or stride or 1

    def batch(*parts):
        nested = parts[0] if len(parts) == 1 else parts
        return tf.data.Dataset.zip(nested).batch(window_size, drop_remainder=True)

    return lambda dataset: dataset.window(window_size, shift, window_stride, drop_remainder=True).flat_map(batch)


InputFnOps = collections.namedtuple("InputFnOps", ["features", "labels", "default_inputs"])


class _Message:
    """What can be set of a part of the projector's settings, in the order in which it is written."""

    fields = ()

    def __init__(self):
        for name in self.fields:
            setattr(self, name, _Messages() if name == "embeddings" else None)

    def lines(self, indent=""):
        """The settings that were made, as text of a protocol buffer."""
        for name in self.fields:
            value = getattr(self, name)
            for one in value if isinstance(value, list) else [] if value is None else [value]:
                if isinstance(one, _Message):
                    inner = list(one.lines(indent + "  "))
                    written = inner or name == "embeddings"
                    yield from [f"{indent}{name} {{", *inner, f"{indent}}}"] if written else []
                else:
                    yield f'{indent}{name}: "{one}"' if isinstance(one, str) else f"{indent}{name}: {one}"


class _Messages(list):
    def add(self):
        """A further table of embeddings."""
        self.append(_Embedding())
        return self[-1]


class _Sprite(_Message):
    fields = ("image_path", "single_image_dim")

    def __init__(self):
        super().__init__()
        self.single_image_dim = []


class _Embedding(_Message):
    fields = ("tensor_name", "metadata_path", "bookmarks_path", "tensor_shape", "sprite", "tensor_path")

    def __init__(self):
        super().__init__()
        self.tensor_shape, self.sprite = [], _Sprite()


class ProjectorConfig(_Message):
    """What TensorBoard's projector shows."""

    fields = ("model_checkpoint_path", "embeddings", "model_checkpoint_dir")


def visualize_embeddings(summary_writer, config):
    """Writes what the projector shows to the folder of a writer of summaries."""
    folder = summary_writer.get_logdir()
    folder = folder.decode() if isinstance(folder, bytes) else folder
    if folder is None:
        raise ValueError("Summary writer must have a logdir")
    with tf.io.gfile.GFile(os.path.join(folder, "projector_config.pbtxt"), "w") as file:
        file.write("".join(f"{line}\n" for line in config.lines()))


class MetricKeys:
    """The names of the metrics of canned Estimators."""

    LOSS, LOSS_MEAN, LOSS_REGULARIZATION = "loss", "average_loss", "regularization_loss"
    ACCURACY, ACCURACY_BASELINE, PRECISION, RECALL = "accuracy", "accuracy_baseline", "precision", "recall"
    AUC, AUC_PR, LABEL_MEAN, PREDICTION_MEAN = "auc", "auc_precision_recall", "label/mean", "prediction/mean"
    ACCURACY_AT_THRESHOLD = "accuracy/positive_threshold_%g"
    PRECISION_AT_THRESHOLD = "precision/positive_threshold_%g"
    RECALL_AT_THRESHOLD = "recall/positive_threshold_%g"
    PROBABILITY_MEAN_AT_CLASS, PROBABILITY_MEAN_AT_NAME = "probability_mean/class%d", "probability_mean/%s"
    AUC_AT_CLASS, AUC_AT_NAME = "auc/class%d", "auc/%s"
    AUC_PR_AT_CLASS, AUC_PR_AT_NAME = "auc_precision_recall/class%d", "auc_precision_recall/%s"


class PredictionKeys:
    """The names of the predictions of canned Estimators."""

    CLASSES, CLASS_IDS, ALL_CLASSES, ALL_CLASS_IDS = "classes", "class_ids", "all_classes", "all_class_ids"
    LOGISTIC, LOGITS, PREDICTIONS = "logistic", "logits", "predictions"
    PROBABILITIES, TOP_K = "probabilities", "top_k"


def get_optimizer_instance(opt, learning_rate=None):
    """An optimizer: itself, what a function makes, or the one of a name."""
    kinds = {
        "Adagrad": tf1.train.AdagradOptimizer,
        "Adam": tf1.train.AdamOptimizer,
        "Ftrl": tf1.train.FtrlOptimizer,
        "RMSProp": tf1.train.RMSPropOptimizer,
        "SGD": tf1.train.GradientDescentOptimizer,
    }
    if isinstance(opt, str):
        if opt not in kinds:
            raise ValueError(f"Unsupported optimizer name: {opt}. Supported names are: {tuple(sorted(kinds))}")
        if not learning_rate:
            raise ValueError("learning_rate must be specified when opt is string.")
        return kinds[opt](learning_rate=learning_rate)
    opt = opt() if callable(opt) else opt
    if not isinstance(opt, tf1.train.Optimizer):
        raise ValueError(f"The given object is not an Optimizer instance. Given: {opt}")
    return opt


class RandomStrategy:
    """Spreads variables over parameter servers by a hash of their names."""

    def __init__(self, num_ps_tasks, seed=0):
        self._tasks, self._seed = num_ps_tasks, seed

    def __call__(self, op):
        digest = hashlib.md5(f"{op.name}_{self._seed}".encode()).hexdigest()
        return int(digest, 16) % self._tasks


class GreedyLoadBalancingStrategy:
    """Gives each variable to the parameter server that has the smallest load by `load_fn` until then."""

    def __init__(self, num_tasks, load_fn):
        self._loads, self._load_fn = [0.0] * num_tasks, load_fn

    def __call__(self, op):
        task = self._loads.index(min(self._loads))
        self._loads[task] += self._load_fn(op)
        return task


def byte_size_load_fn(op):
    """The bytes of a variable, for `GreedyLoadBalancingStrategy`."""
    if len(op.outputs) != 1:
        raise ValueError(f"Op {op} must have a single output")
    output = op.outputs[0]
    is_resource = output.dtype == tf.resource  # a handle, whose operation says what it holds
    dtype = op.get_attr("dtype") if is_resource else output.dtype.base_dtype
    known = not is_resource and output.shape.is_fully_defined()
    shape = output.shape if known else tf.TensorShape(op.get_attr("shape"))
    shape.assert_is_fully_defined()
    return shape.num_elements() * dtype.size


def profiler_options(**settings):
    """Settings of TensorFlow's profiler, as tf.contrib.tfprof had them by default, but for some."""
    return {
        "max_depth": 10000,
        "min_bytes": 0,
        "min_micros": 0,
        "min_params": 0,
        "min_float_ops": 0,
        "order_by": "name",
        "account_type_regexes": [".*"],
        "start_name_regexes": [".*"],
        "trim_name_regexes": [],
        "show_name_regexes": [".*"],
        "hide_name_regexes": [],
        "account_displayed_op_only": True,
        "select": [],
        "output": "stdout",
        "dump_to_file": "",
        **settings,
    }


TRAINABLE_VARS_PARAMS_STAT_OPTIONS = profiler_options(account_type_regexes=["_trainable_variables"], select=["params"])
FLOAT_OPS_OPTIONS = profiler_options(min_float_ops=1, order_by="float_ops", select=["float_ops"])
PRINT_ALL_TIMING_MEMORY = profiler_options(min_bytes=1, min_micros=1, select=["micros", "bytes"])


def print_model_analysis(graph, run_meta=None, op_log=None, tfprof_cmd="scope", tfprof_options=0):
    """What TensorFlow's profiler says of a graph: its parameters, say, or its floating point operations."""
    return tf1.profiler.profile(graph, run_meta, op_log, tfprof_cmd, tfprof_options)
