"""Estimators of compiled Keras models."""

import contextlib

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from .estimator import Estimator
from .exporting import PredictOutput
from .specs import EstimatorSpec, ModeKeys


def model_to_estimator(
    keras_model=None,
    keras_model_path=None,
    custom_objects=None,
    model_dir=None,
    config=None,
    checkpoint_format="saver",
    use_v2_estimator=False,
    metric_names_map=None,
    export_outputs=None,
):
    """An Estimator that trains a copy of a compiled Keras model, from the weights that it has now.

    Features and labels are what the model takes, or dictionaries by the names of its inputs and outputs. Features that
    are {"features": ..., "sample_weights": ...} weigh the examples. Checkpoints hold variables by name, whatever
    `checkpoint_format` says.
    """
    if (keras_model is None) == (keras_model_path is None):
        raise ValueError("one of keras_model and keras_model_path must be given, and only one")
    if keras_model is None:
        keras_model = tf.keras.models.load_model(keras_model_path, custom_objects=custom_objects)
    if not getattr(keras_model, "optimizer", None):
        raise ValueError("The given keras model has not been compiled yet.")
    if not isinstance(keras_model, tf.keras.Sequential) and not keras_model._is_graph_network:
        raise ValueError("subclassed Keras models cannot become Estimators here; train the model by its fit method")
    weights = keras_model.get_weights() if keras_model.built else []
    loss = keras_model.loss
    loss_weights = keras_model.compiled_loss._user_loss_weights
    metrics = keras_model.compiled_metrics._user_metrics
    make_optimizer = _optimizer_maker(keras_model.optimizer)

    def model_fn(features, labels, mode):
        sample_weights = None
        if isinstance(features, dict) and features.keys() == {"features", "sample_weights"}:
            features, sample_weights = features["features"], features["sample_weights"]
        operations = len(tf1.get_default_graph().get_operations())
        with tf.keras.utils.custom_object_scope(custom_objects or {}), _as_in_a_function():
            model = tf.keras.models.clone_model(keras_model)
            outputs = model(_in_order(features, model.input_names), training=mode == ModeKeys.TRAIN)
        if tf.inside_function():
            with tf.init_scope():  # these variables have their values at once; those of an export are restored
                for variable, value in zip(model.weights, weights, strict=False):
                    variable.assign(value)
        outputs = dict(zip(model.output_names, tf.nest.flatten(outputs), strict=True))
        served = {"serving_default": PredictOutput(outputs)}
        if mode == ModeKeys.PREDICT:
            return EstimatorSpec(mode, predictions=outputs, export_outputs={**served, **(export_outputs or {})})
        made = tf1.get_default_graph().get_operations()[operations:]
        updates = [one for one in made if one.type.startswith("Assign")]  # of moving averages
        targets = _in_order(labels, model.output_names)
        targets = targets if isinstance(targets, list) else [targets]
        targets = {name: _as_output(y, outputs[name]) for name, y in zip(model.output_names, targets, strict=True)}
        total = _total_loss(loss, loss_weights, targets, outputs, sample_weights)
        total = tf.add_n([total, *model.losses]) if model.losses else total
        if mode == ModeKeys.EVAL:
            pairs = _metric_pairs(metrics, targets, outputs)
            named = {(metric_names_map or {}).get(name, name): pair for name, pair in pairs.items()}
            return EstimatorSpec(mode, predictions=outputs, loss=total, eval_metric_ops=named)
        train_op = _train_op_of_keras(make_optimizer(), total, model.trainable_weights)
        return EstimatorSpec(mode, predictions=outputs, loss=total, train_op=tf.group(train_op, *updates))

    return Estimator(model_fn, model_dir=model_dir, config=config)


@contextlib.contextmanager
def _as_in_a_function():
    """Keras takes a graph of this name for one of TensorFlow 1, where it would make its layers in another way."""
    graph = tf1.get_default_graph()
    name = getattr(graph, "name", "")
    if name.startswith("wrapped_function"):
        graph.name = "function"
    try:
        yield
    finally:
        if name:
            graph.name = name


def _in_order(tensors, names):
    """Tensors in the order of the model's inputs or outputs; a lone one alone."""
    if isinstance(tensors, dict):
        if tensors.keys() != set(names):
            raise KeyError(f"the model has {sorted(names)}, but is given {sorted(tensors)}")
        tensors = [tensors[name] for name in names]
    if isinstance(tensors, (list, tuple)):
        tensors = list(tensors)
        return tensors[0] if len(tensors) == 1 else tensors
    return tensors


def _as_output(target, output):
    """Labels without the last dimension of their output, of size one, with it."""
    target = tf.convert_to_tensor(target)
    if target.shape.rank is not None and target.shape.rank == (output.shape.rank or 0) - 1:
        return tf.expand_dims(target, -1)
    return target


def _by_output(given, outputs):
    """What is given for all outputs, for each in order, or by name, as a dictionary by name."""
    if isinstance(given, dict):
        return given
    if isinstance(given, (list, tuple)):
        return dict(zip(outputs, given, strict=True))
    return dict.fromkeys(outputs, given)


def _total_loss(loss, loss_weights, targets, outputs, sample_weights):
    losses, weights = _by_output(loss, outputs), _by_output(loss_weights, outputs)
    total = []
    for name, output in outputs.items():
        if losses.get(name) is None:
            continue
        function = tf.keras.losses.get(losses[name])
        if isinstance(function, tf.keras.losses.Loss):
            value = function(targets[name], output, sample_weight=sample_weights)
        else:
            value = function(tf.cast(targets[name], output.dtype), output)
            if sample_weights is not None:
                shape = [-1] + [1] * (value.shape.rank - 1)
                value *= tf.reshape(tf.cast(sample_weights, value.dtype), shape)
            value = tf.reduce_mean(value)
        total.append(value * (1.0 if weights.get(name) is None else weights[name]))
    return tf.add_n(total)


def _metric_pairs(metrics, targets, outputs):
    """The metrics as pairs of a value and an update, by the names that Keras gives them."""
    several = len(outputs) > 1
    given = _by_output(metrics if isinstance(metrics, dict) or _nested(metrics) else [metrics] * len(outputs), outputs)
    pairs = {}
    for name, output in outputs.items():
        chosen = given.get(name)
        chosen = chosen if isinstance(chosen, (list, tuple)) else [] if chosen is None else [chosen]
        for one in chosen:
            metric, own = _metric_like(one, targets[name], output)
            update = metric.update_state(targets[name], output)
            pairs[f"{name}_{own}" if several else own] = metric.result(), update
    return pairs


def _nested(metrics):
    return isinstance(metrics, (list, tuple)) and any(isinstance(one, (list, tuple)) for one in metrics)


def _metric_like(metric, target, output):
    """A new metric like the one that the model was compiled with, and its name; its variables are local."""

    def local(next_creator, **arguments):
        return next_creator(**{**arguments, "collections": [tf1.GraphKeys.LOCAL_VARIABLES]})

    with tf.variable_creator_scope(local):
        if isinstance(metric, tf.keras.metrics.Metric):
            return type(metric).from_config(metric.get_config()), metric.name
        kinds = {"accuracy": "accuracy", "acc": "accuracy", "crossentropy": "crossentropy", "ce": "crossentropy"}
        if isinstance(metric, str) and metric in kinds:
            name = "acc" if kinds[metric] == "accuracy" else "ce"  # as Keras of TensorFlow 1 names them
            return tf.keras.metrics.MeanMetricWrapper(_by_shape(kinds[metric], target, output), name=name), name
        function = tf.keras.metrics.get(metric)
        if isinstance(function, tf.keras.metrics.Metric):
            return function, function.name
        return tf.keras.metrics.MeanMetricWrapper(function, name=function.__name__), function.__name__


def _by_shape(kind, target, output):
    """The accuracy or cross entropy that goes with the shapes of labels and outputs."""
    of = tf.keras.metrics
    if output.shape[-1] == 1:
        return of.binary_accuracy if kind == "accuracy" else of.binary_crossentropy
    if target.shape.rank == output.shape.rank and target.shape[-1] != 1:
        return of.categorical_accuracy if kind == "accuracy" else of.categorical_crossentropy
    return of.sparse_categorical_accuracy if kind == "accuracy" else of.sparse_categorical_crossentropy


def _optimizer_maker(optimizer):
    """A function that makes an optimizer like the one that the model was compiled with.

    One of Keras is made in the form that TensorFlow 1 had, with variables for its settings and for what it remembers.
    """
    of_tf1 = getattr(optimizer, "optimizer", optimizer)
    if isinstance(of_tf1, tf1.train.Optimizer):
        return lambda: of_tf1
    kind = getattr(tf.keras.optimizers.legacy, type(optimizer).__name__)
    known = {*kind().get_config(), "clipnorm", "clipvalue", "global_clipnorm"}
    config = optimizer.get_config()
    return lambda: kind.from_config({k: v for k, v in config.items() if k in known and v is not None})


def _train_op_of_keras(optimizer, loss, variables):
    """The training step."""
    step = tf1.train.get_or_create_global_step()
    if isinstance(optimizer, tf1.train.Optimizer):
        return optimizer.minimize(loss, global_step=step, var_list=variables)
    optimizer.iterations = step
    with tf1.name_scope("training"):
        gradients = tf.gradients(loss, variables)
        return optimizer.apply_gradients(zip(gradients, variables, strict=True))
