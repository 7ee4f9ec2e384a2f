"""The Estimators of tf.contrib.learn: their methods, their heads, and their linear and deep models."""

import collections
import inspect
import math

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from .contrib_columns import (
    _LayersColumn,
    layers_infer_real_valued_columns,
    layers_input_from_feature_columns,
    layers_real_valued_column,
    layers_weighted_sum_from_feature_columns,
)
from .contrib_learn import LearnModeKeys, LearnRunConfig, StepsOfMonitors
from .contrib_training import InputFnOps
from .eager import each_eagerly
from .estimator import Estimator
from .exporting import ClassificationOutput, PredictOutput, RegressionOutput, ServingInputReceiver
from .inputs import numpy_input_fn, pandas_input_fn
from .specs import EstimatorSpec


class ModelFnOps(
    collections.namedtuple(
        "ModelFnOps",
        [
            *("predictions", "loss", "train_op", "eval_metric_ops", "output_alternatives", "training_chief_hooks"),
            *("training_hooks", "scaffold", "mode"),
        ],
    )
):
    """What a model_fn of tf.contrib.learn returns."""

    def __new__(
        cls,
        mode,
        predictions=None,
        loss=None,
        train_op=None,
        eval_metric_ops=None,
        output_alternatives=None,
        training_chief_hooks=None,
        training_hooks=None,
        scaffold=None,
    ):
        LearnModeKeys.validate(mode)
        return super().__new__(
            cls,
            predictions,
            loss,
            train_op,
            dict(eval_metric_ops or {}),
            output_alternatives,
            training_chief_hooks or [],
            training_hooks or [],
            scaffold,
            mode,
        )

    def as_estimator_spec(self):
        """The same as the Estimator takes it; a model that is exported has an output for each alternative."""
        exported = {key: _export_output(*found) for key, found in (self.output_alternatives or {}).items()}
        if not exported and self.mode == LearnModeKeys.INFER:
            made = self.predictions if isinstance(self.predictions, dict) else {"output": self.predictions}
            exported = {None: PredictOutput(made)}
        default = tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY
        return EstimatorSpec(
            mode=self.mode,
            predictions=self.predictions,
            loss=self.loss,
            train_op=self.train_op,
            eval_metric_ops=self.eval_metric_ops,
            export_outputs={default if key is None else key: found for key, found in exported.items()},
            training_chief_hooks=self.training_chief_hooks,
            training_hooks=self.training_hooks,
            scaffold=self.scaffold,
        )

    def estimator_spec(self, default_serving_output_alternative_key=None):
        """The EstimatorSpec for a `tf.estimator.Estimator`, whose own metric of the loss it leaves."""
        metrics = {key: found for key, found in self.eval_metric_ops.items() if key != "loss"}
        return self._replace(eval_metric_ops=metrics).as_estimator_spec()


class LearnPredictionKey:
    """The names of predictions."""

    CLASSES = "classes"
    PROBABILITIES = "probabilities"
    LOGITS = "logits"
    LOGISTIC = "logistic"
    SCORES = "scores"
    TOP_K = "top_k"
    GENERIC = "output"


class LearnMetricKey:
    """The names of metrics."""

    LOSS = "loss"
    AUC = "auc"
    AUC_PR = "auc_precision_recall"
    PREDICTION_MEAN = "labels/prediction_mean"
    LABEL_MEAN = "labels/actual_label_mean"
    ACCURACY = "accuracy"
    ACCURACY_BASELINE = "accuracy/baseline_label_mean"
    ACCURACY_MEAN = "accuracy/threshold_%f_mean"
    PRECISION_MEAN = "precision/positive_threshold_%f_mean"
    RECALL_MEAN = "recall/positive_threshold_%f_mean"


class ProblemType:
    """What an exported output is for."""

    UNSPECIFIED = 0
    CLASSIFICATION = 1
    LINEAR_REGRESSION = 2
    LOGISTIC_REGRESSION = 3


def _export_output(problem, tensors):
    scores = tensors.get("scores", tensors.get("probabilities"))
    if problem == ProblemType.LINEAR_REGRESSION:
        return RegressionOutput(scores)
    if problem in (ProblemType.CLASSIFICATION, ProblemType.LOGISTIC_REGRESSION):
        classes = tensors.get("classes")
        return ClassificationOutput(scores, classes if classes is not None and classes.dtype == tf.string else None)
    return PredictOutput(tensors)


class MetricSpec:
    """A metric, and which of the predictions, labels and features it is of.

    The function may call its arguments otherwise (`target`, `logits`, `weight`), and leave out the labels. Predictions
    go to its first argument where none is named for them, or to its second where the first one is for the labels.
    """

    def __init__(self, metric_fn, prediction_key=None, label_key=None, weight_key=None):
        self.prediction_key = prediction_key
        self.label_key = label_key
        self.weight_key = weight_key
        names = [
            name
            for name, parameter in inspect.signature(metric_fn).parameters.items()
            if name not in (getattr(metric_fn, "keywords", None) or {})
            and parameter.kind is not inspect.Parameter.VAR_KEYWORD
        ]

        def named(*choices):
            found = [name for name in names if name in choices]
            if len(found) > 1:
                raise ValueError(f"Ambiguous arguments {found}, must provide only one of {choices}.")
            return found[0] if found else None

        of_labels = named("labels", "label", "targets", "target")
        of_predictions = named("predictions", "prediction", "logits", "logit")
        of_weights = named("weights", "weight")
        for key, argument, what in ((label_key, of_labels, "labels"), (weight_key, of_weights, "weights")):
            if key is not None and argument is None:
                raise ValueError(f"{what} missing from {getattr(metric_fn, '__name__', metric_fn)}({names}).")

        def metric(labels=None, predictions=None, weights=None):
            by_name = {} if weights is None else {of_weights: weights}
            if of_labels is not None and of_predictions is None and of_labels == names[0]:
                return metric_fn(labels, predictions, **by_name)
            if of_labels is not None:
                by_name[of_labels] = labels
            if of_predictions is not None:
                return metric_fn(**by_name, **{of_predictions: predictions})
            return metric_fn(predictions, **by_name)

        self.metric_fn = metric

    def create_metric_ops(self, inputs, labels, predictions):
        """The value of the metric and its update."""
        return self.metric_fn(
            labels=self._one(labels, self.label_key, "label"),
            predictions=self._one(predictions, self.prediction_key, "prediction"),
            weights=inputs[self.weight_key] if self.weight_key else None,
        )

    @staticmethod
    def _one(tensors, key, what):
        if key:
            return tensors[key]
        if isinstance(tensors, dict):
            if len(tensors) != 1:
                raise ValueError(f"MetricSpec without {what}_key needs one {what}, got {list(tensors)}")
            return next(iter(tensors.values()))
        return tensors


def _metrics_of(metrics, features, labels, predictions):
    """The metrics that an evaluation is given: MetricSpecs, or functions of predictions and labels."""
    found = {}
    for name, metric in sorted((metrics or {}).items(), key=str):
        if isinstance(metric, MetricSpec):
            found[name] = metric.create_metric_ops(features, labels, predictions)
        elif isinstance(name, tuple):
            of = labels[name[1]] if isinstance(labels, dict) and name[1] in labels else labels
            found[name[0]] = metric(predictions[name[1]], of)
        else:
            found[name] = metric(predictions, labels)
    return found


def rows_input_fn(x, y=None, batch_size=None, shuffle=False, epochs=1):
    """An input function over the rows of arrays, in the order in which tf.contrib.learn read them.

    Args:
        x: the features: an array, a pandas frame, or a dictionary of arrays.
        y: the labels, likewise; None for features alone.
        batch_size: rows in a batch, the last one of an epoch may have less; None: all rows.
        shuffle: whether each epoch has its own order, which is the same in every run.
        epochs: how often the rows are read; None for ever.
    """
    x = {name: np.asarray(column) for name, column in x.items()} if isinstance(x, dict) else np.asarray(x)
    y = y if y is None or isinstance(y, dict) else np.asarray(y)
    features, labels = (one if isinstance(one, dict) else {"": one} for one in (x, y))
    features = {name: column[:, None] if column.ndim == 1 else column for name, column in features.items()}
    if y is None:
        labels = {}
    labels = {name: np.asarray(column) for name, column in labels.items()}
    labels = {
        name: column.reshape((len(column), *column.shape[2:])) if column.ndim > 1 and column.shape[1] == 1 else column
        for name, column in labels.items()
    }
    count = len(next(iter(features.values())))
    size = batch_size or count

    def orders():
        random, done = np.random.RandomState(42), 0
        while epochs is None or done < epochs:
            order = random.permutation(count) if shuffle else np.arange(count)
            for start in range(0, count, size):
                yield order[start : start + size]
            done += 1

    def input_fn():
        rows = tf.data.Dataset.from_generator(orders, output_signature=tf.TensorSpec([None], tf.int64))

        def batch(order):
            inputs = {name: tf.gather(column, order) for name, column in features.items()}
            outputs = {name: tf.gather(column, order) for name, column in labels.items()}
            inputs = inputs if isinstance(x, dict) else inputs[""]
            return inputs if y is None else (inputs, outputs if isinstance(y, dict) else outputs[""])

        return rows.map(batch)

    return input_fn


def learn_numpy_input_fn(x, y=None, batch_size=128, num_epochs=1, shuffle=True, queue_capacity=1000, num_threads=1):
    """As `numpy_input_fn`, and shuffles where nothing else is said."""
    return numpy_input_fn(x, y, batch_size, num_epochs, shuffle, queue_capacity, num_threads)


def learn_pandas_input_fn(
    x,
    y=None,
    batch_size=128,
    num_epochs=1,
    shuffle=True,
    queue_capacity=1000,
    num_threads=1,
    target_column="target",
):
    """As `pandas_input_fn`, and shuffles where nothing else is said."""
    return pandas_input_fn(x, y, batch_size, num_epochs, shuffle, queue_capacity, num_threads, target_column)


def build_parsing_serving_input_fn(feature_spec, default_batch_size=None):
    """For `export_savedmodel`: features that are parsed from serialized Examples."""

    def input_fn():
        serialized = tf1.placeholder(tf.string, [default_batch_size], name="input_example_tensor")
        return InputFnOps(tf1.parse_example(serialized, feature_spec), None, {"examples": serialized})

    return input_fn


def build_default_serving_input_fn(features, default_batch_size=None):
    """For `export_savedmodel`: features like these tensors, as they are."""

    def input_fn():
        given = {
            name: tf1.placeholder(tensor.dtype, [default_batch_size, *tensor.shape.as_list()[1:]], name=name)
            for name, tensor in features.items()
        }
        return InputFnOps(given, None, given)

    return input_fn


def infer_real_valued_columns_from_input(x):
    """A column of numbers for each feature of arrays."""
    x = {name: np.asarray(column) for name, column in x.items()} if isinstance(x, dict) else np.asarray(x)
    with tf.Graph().as_default():
        return layers_infer_real_valued_columns(tf.nest.map_structure(tf.constant, x))


def infer_real_valued_columns_from_input_fn(input_fn):
    """A column of numbers for each feature that an input_fn gives."""
    with tf.Graph().as_default():
        found = input_fn()
        if isinstance(found, tf.data.Dataset):
            found = tf1.data.make_one_shot_iterator(found).get_next()
        return layers_infer_real_valued_columns(found[0] if isinstance(found, (tuple, list)) else found)


class LearnEstimator(Estimator):
    """Trains, evaluates and uses a model_fn as tf.contrib.learn did: with `fit`, and on arrays, too."""

    def __init__(self, model_fn=None, model_dir=None, config=None, params=None, feature_engineering_fn=None):
        super().__init__(model_fn, model_dir=model_dir, config=config or LearnRunConfig(), params=params)
        self._feature_engineering_fn = feature_engineering_fn
        self._metrics = None  # of the evaluation that is under way
        self._labels = None  # what the labels of the last training or evaluation were like

    def _spec_of_model_fn(self, features, labels, mode, config, params=None):
        if labels is not None:
            self._labels = tf.nest.map_structure(tf.type_spec_from_value, labels)
        elif self._labels is not None:  # a model_fn may compute its loss whatever it is called for
            labels = tf.nest.map_structure(lambda one: tf1.placeholder(one.dtype, one.shape), self._labels)
        if self._feature_engineering_fn is not None:
            features, labels = self._feature_engineering_fn(features, labels)
        names = inspect.signature(self._model_fn).parameters
        given = {"mode": mode, "params": self.params, "config": config, "model_dir": self.model_dir}
        made = self._model_fn(features, labels, **{name: value for name, value in given.items() if name in names})
        if not isinstance(made, ModelFnOps):
            predictions, loss, train_op = made
            made = ModelFnOps(mode, predictions, loss, train_op)
        if mode == LearnModeKeys.EVAL:
            made.eval_metric_ops.update(_metrics_of(self._metrics, features, labels, made.predictions))
        return made

    def fit(self, x=None, y=None, input_fn=None, steps=None, batch_size=None, monitors=None, max_steps=None):
        """Trains on arrays or on an input_fn. Returns this object."""
        if input_fn is None:
            input_fn = rows_input_fn(x, y, batch_size, shuffle=True, epochs=None)
        for monitor in monitors or ():
            if hasattr(monitor, "set_estimator"):
                monitor.set_estimator(self)
        return self.train(input_fn, hooks=monitors, steps=steps, max_steps=max_steps)

    def partial_fit(self, x=None, y=None, input_fn=None, steps=1, batch_size=None, monitors=None):
        """Trains for one step more, or some."""
        return self.fit(x, y, input_fn, steps, batch_size, monitors)

    def evaluate(
        self,
        x=None,
        y=None,
        input_fn=None,
        feed_fn=None,
        batch_size=None,
        steps=None,
        metrics=None,
        name=None,
        checkpoint_path=None,
        hooks=None,
        log_progress=True,
    ):
        """Returns the metrics of the model, and those that are given besides, with `loss` and `global_step`."""
        if feed_fn is not None:
            raise ValueError("a feed_fn is not carried over; give an input_fn")
        if checkpoint_path is None:
            self._checkpoint_to_read()
        if input_fn is None:
            input_fn = rows_input_fn(x, y, batch_size)
        self._metrics = metrics
        return super().evaluate(input_fn, steps=steps or None, hooks=hooks, checkpoint_path=checkpoint_path, name=name)

    def predict(self, x=None, input_fn=None, batch_size=None, outputs=None, as_iterable=True, iterate_batches=False):
        """Yields the predictions of each example, or of each batch; the first batch where it is no iterable."""
        constant = []

        def features():
            found = input_fn()
            if not isinstance(found, tf.data.Dataset) and not tf1.get_collection(tf1.GraphKeys.QUEUE_RUNNERS):
                constant.append(found)  # tensors that no queue fills are one batch
            return found

        made = features if input_fn is not None else rows_input_fn(x, None, batch_size)
        self._checkpoint_to_read()
        batches = each_eagerly(self._predict(made, outputs, None, None, False))
        if not as_iterable:
            return next(batches)

        def each():
            for batch in batches:
                if iterate_batches:
                    yield batch
                elif not isinstance(batch, dict):
                    yield from batch
                else:
                    for row in range(len(next(iter(batch.values())))):
                        yield {key: value[row] for key, value in batch.items()}
                if constant:
                    return

        return each()

    def _predictions_of(self, key, x, input_fn, batch_size, as_iterable):
        found = LearnEstimator.predict(self, x, input_fn, batch_size, [key], as_iterable)
        return (one[key] for one in found) if as_iterable else found[key]

    def export_savedmodel(
        self,
        export_dir_base,
        serving_input_fn,
        default_output_alternative_key=None,
        assets_extra=None,
        as_text=False,
        checkpoint_path=None,
        graph_rewrite_specs=None,
        strip_default_attrs=False,
    ):
        """Writes a SavedModel into a new folder; returns its path, as bytes."""

        def receiver():
            features, _, inputs = serving_input_fn()
            return ServingInputReceiver(features, inputs)

        return super().export_saved_model(export_dir_base, receiver, assets_extra, as_text, checkpoint_path)

    def export_saved_model(self, export_dir_base, serving_input_fn, **others):
        """The same under its later name."""
        return self.export_savedmodel(export_dir_base, serving_input_fn, **others)


class SKCompat:
    """An Estimator of tf.contrib.learn that takes arrays, in batches of 128."""

    def __init__(self, estimator):
        self._estimator = estimator

    def fit(self, x, y, batch_size=128, steps=None, max_steps=None, monitors=None):
        """Trains it."""
        self._estimator.fit(x, y, batch_size=batch_size, steps=steps, max_steps=max_steps, monitors=monitors)
        return self

    def score(self, x, y, batch_size=128, steps=None, metrics=None, name=None):
        """Evaluates it."""
        return self._estimator.evaluate(x, y, batch_size=batch_size, steps=steps, metrics=metrics, name=name)

    def predict(self, x, batch_size=128, outputs=None):
        """All predictions, as arrays."""
        found = list(LearnEstimator.predict(self._estimator, x, None, batch_size, outputs, iterate_batches=True))
        if not isinstance(found[0], dict):
            return np.concatenate(found)
        return {key: np.concatenate([batch[key] for batch in found]) for key in found[0]}


class ValidationMonitor(tf1.train.SessionRunHook):
    """Evaluates the newest checkpoint every so many steps, and ends a training that gets no better.

    Args:
        x, y, input_fn, batch_size, eval_steps, metrics, hooks, name: of the evaluations.
        every_n_steps: steps from one look for a new checkpoint to the next.
        early_stopping_rounds: steps without a better value that end the training; None: it goes on.
        early_stopping_metric: the metric whose value that is.
        early_stopping_metric_minimize: whether less is better.
        check_interval_secs: seconds from one look to the next, at least.
    """

    def __init__(
        self,
        x=None,
        y=None,
        input_fn=None,
        batch_size=None,
        eval_steps=None,
        every_n_steps=100,
        metrics=None,
        hooks=None,
        early_stopping_rounds=None,
        early_stopping_metric="loss",
        early_stopping_metric_minimize=True,
        name=None,
        check_interval_secs=5,
    ):
        self._given = {"input_fn": input_fn, "steps": eval_steps, "hooks": hooks, "name": name}
        self._of_arrays = {"x": x, "y": y, "batch_size": batch_size, "metrics": metrics}
        self._steps = StepsOfMonitors(every_n_steps)
        self._clock = tf1.train.SecondOrStepTimer(every_secs=check_interval_secs) if check_interval_secs else None
        self._rounds = early_stopping_rounds
        self._metric = early_stopping_metric
        self._sign = 1 if early_stopping_metric_minimize else -1
        self._seen = None
        self.best_step = self.best_value = self.best_metrics = None
        self.early_stopped = False

    def set_estimator(self, estimator):
        """Says whose checkpoints these are."""
        self._estimator = estimator

    def begin(self):
        """Finds the step."""
        self._global_step = tf1.train.get_global_step()

    def before_run(self, run_context):
        """Asks for the step."""
        return tf1.train.SessionRunArgs(self._global_step)

    def after_run(self, run_context, run_values):
        """Evaluates if it is time and there is a new checkpoint."""
        step = run_values.results
        if not self._steps.due(step):
            return
        if self._clock is not None:
            if not self._clock.should_trigger_for_step(step):
                return
            self._clock.update_last_triggered_step(step)
        newest = self._estimator.latest_checkpoint()
        if newest is None or newest == self._seen:
            return
        self._seen = newest
        arrays = self._of_arrays if hasattr(self._estimator, "fit") else {}
        with tf.init_scope():
            found = self._estimator.evaluate(**arrays, **self._given)
        text = ", ".join(f"{name} = {value}" for name, value in found.items())
        tf1.logging.info("Validation (step %d): %s", step, text)
        if self._rounds is not None:
            value = found[self._metric]
            if self.best_value is None or self._sign * value < self._sign * self.best_value:
                self.best_value, self.best_step, self.best_metrics = value, step, dict(found)
            if step - self.best_step >= self._rounds:
                self.early_stopped = True
                run_context.request_stop()


class LearnHead:
    """What a model predicts and what it loses, from its logits. Subclasses say how, for one kind of label."""

    scope = "head"
    problem = ProblemType.UNSPECIFIED

    def __init__(
        self, logits_dimension, label_name=None, weight_column_name=None, enable_centered_bias=False, head_name=None
    ):
        self.logits_dimension = logits_dimension
        self.head_name = head_name
        self._label_name = label_name
        self._weight_column_name = weight_column_name
        self._enable_centered_bias = enable_centered_bias

    def create_model_fn_ops(
        self, features, mode, labels=None, train_op_fn=None, logits=None, logits_input=None, scope=None
    ):
        """The ModelFnOps of a mode, of logits or of what a last layer makes logits of."""
        with tf1.variable_scope(scope, default_name=self.head_name or self.scope):
            if logits is None:
                logits = _learn_layer(logits_input, self.logits_dimension, None, "logits")
            if self._enable_centered_bias:
                bias = tf1.Variable(tf.zeros([self.logits_dimension]), name="centered_bias_weight")
                logits = tf.nn.bias_add(logits, bias)
            predictions = self._predictions(logits)
            loss = train_op = metrics = None
            if mode != LearnModeKeys.INFER and labels is not None:
                labels = labels[self._label_name] if isinstance(labels, dict) else labels
                weights = self._weights(features)
                loss, mean = _weighted_loss(self._losses(labels, logits), weights)
                tf1.summary.scalar(self._key("loss"), mean)
                if mode == LearnModeKeys.TRAIN:
                    with tf1.name_scope(None, "train_op"):  # which the powers of Adam are named after
                        train_op = train_op_fn(loss)
                    if self._enable_centered_bias:
                        tiled = tf.tile(bias[None, :], [tf.shape(logits)[0], 1])
                        of_bias, _ = _weighted_loss(self._losses(labels, tiled), weights)
                        step = tf1.train.AdagradOptimizer(0.1).minimize(of_bias, var_list=[bias])
                        train_op = tf.group(train_op, step)
                else:
                    metrics = {"loss": tf1.metrics.mean(mean), **self._metrics(predictions, labels, weights)}
                    metrics = {self._key(name): value for name, value in metrics.items()}
            exported = {self.head_name: (self.problem, self._exported(predictions))}
            return ModelFnOps(mode, predictions, loss, train_op, metrics, exported)

    def _key(self, name):
        return f"{name}/{self.head_name}" if self.head_name else name

    def _weights(self, features):
        if not self._weight_column_name:
            return None
        weights = tf.cast(features[self._weight_column_name], tf.float32)
        return tf.reshape(weights, [-1, 1]) if weights.shape.rank == 1 else weights

    def _metrics(self, predictions, labels, weights):
        return {}

    def _exported(self, predictions):
        return predictions


def _spread(weights, values):
    """Weights in the shape of the values. Raises ValueError where they are not one for each."""
    none = tf1.losses.Reduction.NONE
    return tf1.losses.compute_weighted_loss(tf.ones_like(values), weights, loss_collection=None, reduction=none)


def _weighted_loss(losses, weights):
    """The loss that is trained on, the mean, and the one that is told, the weighted mean."""
    if weights is None:
        mean = tf.reduce_mean(losses)
        return mean, mean
    weights = _spread(weights, losses)
    return tf.reduce_mean(losses * weights), tf.reduce_sum(losses * weights) / tf.reduce_sum(weights)


class _LearnRegressionHead(LearnHead):
    scope = "regression_head"
    problem = ProblemType.LINEAR_REGRESSION
    link = staticmethod(tf.identity)

    def _losses(self, labels, logits):
        labels = tf.expand_dims(labels, 1) if labels.shape.rank == 1 else labels
        return tf.math.squared_difference(logits, tf.cast(labels, tf.float32))

    def _predictions(self, logits):
        return {"scores": self.link(tf.squeeze(logits, [1]) if self.logits_dimension == 1 else logits)}


class _LearnBinaryHead(LearnHead):
    scope = "binary_logistic_head"
    problem = ProblemType.LOGISTIC_REGRESSION
    thresholds = (0.5,)

    def _losses(self, labels, logits):
        labels = tf.cast(labels, tf.float32)
        labels = tf.expand_dims(labels, 1) if labels.shape.rank == 1 else labels
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)

    def _predictions(self, logits):
        both = tf.concat([tf.zeros_like(logits), logits], 1)
        return {
            "logits": logits,
            "logistic": tf.sigmoid(logits, name="logistic"),
            "probabilities": tf.nn.softmax(both, name="probabilities"),
            "classes": tf.argmax(both, 1, name="classes"),
        }

    def _metrics(self, predictions, labels, weights):
        logistic, numbers = predictions["logistic"], tf.cast(labels, tf.float32)
        of_logistic = None if weights is None else _spread(weights, logistic)
        of_labels = None if weights is None else _spread(weights, numbers)
        truth = tf.cast(labels, tf.bool)
        found = {
            "accuracy": tf1.metrics.accuracy(labels, predictions["classes"], weights),
            "labels/prediction_mean": tf1.metrics.mean(logistic, of_logistic),
            "labels/actual_label_mean": tf1.metrics.mean(numbers, of_labels),
            "accuracy/baseline_label_mean": tf1.metrics.mean(numbers, of_labels),
            "auc": tf1.metrics.auc(truth, logistic, of_logistic),
            "auc_precision_recall": tf1.metrics.auc(truth, logistic, of_logistic, curve="PR"),
        }
        for threshold in self.thresholds:
            above = tf.cast(tf.greater_equal(logistic, threshold), tf.float32)
            precision = tf1.metrics.precision_at_thresholds(labels, logistic, (threshold,), weights)
            recall = tf1.metrics.recall_at_thresholds(labels, logistic, (threshold,), weights)
            found[f"accuracy/threshold_{threshold:f}_mean"] = tf1.metrics.accuracy(labels, above, weights)
            found[f"precision/positive_threshold_{threshold:f}_mean"] = tuple(map(tf.squeeze, precision))
            found[f"recall/positive_threshold_{threshold:f}_mean"] = tuple(map(tf.squeeze, recall))
        return found

    def _exported(self, predictions):
        return _classes_as_words(predictions["probabilities"], None)


class _LearnMultiClassHead(LearnHead):
    scope = "multi_class_head"
    problem = ProblemType.CLASSIFICATION
    words = None

    def _losses(self, labels, logits):
        ids = self._ids(labels)
        if not ids.dtype.is_integer:
            raise ValueError(f"Labels dtype should be integer. Instead got {ids.dtype}.")
        if ids.shape.rank != 2:
            return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=ids, logits=logits)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.squeeze(ids, [1]), logits=logits)
        return tf.expand_dims(losses, 1)

    def _ids(self, labels):
        if not self.words:
            return labels
        ids = tf.range(len(self.words), dtype=tf.int64)
        entries = tf.lookup.KeyValueTensorInitializer(tf.constant(list(self.words)), ids)
        return tf1.lookup.StaticHashTable(entries, -1).lookup(labels)

    def _predictions(self, logits):
        classes = tf.argmax(logits, 1, name="classes")
        return {
            "logits": logits,
            "probabilities": tf.nn.softmax(logits, name="probabilities"),
            "classes": tf.gather(list(self.words), classes) if self.words else classes,
        }

    def _metrics(self, predictions, labels, weights):
        return {"accuracy": tf1.metrics.accuracy(labels, predictions["classes"], weights)}

    def _exported(self, predictions):
        return _classes_as_words(predictions["probabilities"], self.words)


def _classes_as_words(probabilities, words):
    size = tf.shape(probabilities)
    classes = tf.constant(list(words)) if words else tf.as_string(tf.range(size[1]))
    return {"probabilities": probabilities, "classes": tf.tile(classes[None, :], [size[0], 1])}


def learn_regression_head(
    label_name=None,
    weight_column_name=None,
    label_dimension=1,
    enable_centered_bias=False,
    head_name=None,
    link_fn=None,
):
    """The head for numbers: their squared error."""
    head = _LearnRegressionHead(label_dimension, label_name, weight_column_name, enable_centered_bias, head_name)
    head.link = link_fn or head.link
    return head


def learn_multi_class_head(
    n_classes,
    label_name=None,
    weight_column_name=None,
    enable_centered_bias=False,
    head_name=None,
    thresholds=None,
    metric_class_ids=None,
    loss_fn=None,
    label_keys=None,
):
    """The head for classes: their cross entropy."""
    if n_classes is None or n_classes < 2:
        raise ValueError(f"n_classes must be > 1 for classification: {n_classes}.")
    if metric_class_ids or loss_fn:
        raise ValueError("metric_class_ids and loss_fn of heads of tf.contrib.learn are not carried over")
    rest = (label_name, weight_column_name, enable_centered_bias, head_name)
    if n_classes > 2:
        head = _LearnMultiClassHead(n_classes, *rest)
        head.words = label_keys
        return head
    head = _LearnBinaryHead(1, *rest)
    head.thresholds = thresholds or head.thresholds
    return head


def _learn_layer(inputs, units, activation, scope, collection=None):
    """A layer as tf.contrib.layers.fully_connected made it."""
    collections = [tf1.GraphKeys.GLOBAL_VARIABLES, tf1.GraphKeys.MODEL_VARIABLES, *([collection] if collection else [])]
    with tf1.variable_scope(scope):
        size = [inputs.shape[-1], units]
        weights = tf1.get_variable(
            "weights", size, tf.float32, tf1.glorot_uniform_initializer(), collections=collections
        )
        zeros = tf1.zeros_initializer()
        biases = tf1.get_variable("biases", [units], tf.float32, zeros, collections=collections)
        outputs = tf.nn.bias_add(tf.matmul(inputs, weights), biases)
        return outputs if activation is None else activation(outputs)


def _learn_partitioner(config, min_slice_size=256 << 10):
    return tf1.min_max_variable_partitioner(config.num_ps_replicas if config else 0, min_slice_size=min_slice_size)


def _learn_linear_logits(features, columns, units, scope):
    if all(isinstance(column, _LayersColumn) for column in columns):
        return layers_weighted_sum_from_feature_columns(features, columns, units, ["linear"], scope=scope)[0]
    return tf1.feature_column.linear_model(features, columns, units, weight_collections=["linear"])


def _learn_deep_logits(features, mode, params, config):
    columns, activation = params["dnn_feature_columns"], params["dnn_activation_fn"] or tf.nn.relu
    if not params["dnn_hidden_units"]:
        raise ValueError("the sizes of the hidden layers must be given")
    if isinstance(activation, str):
        activation = getattr(tf.nn, activation)
    partitioner = _learn_partitioner(config, params["input_layer_min_slice_size"] or 64 << 20)
    with tf1.variable_scope("input_from_feature_columns", partitioner=partitioner) as scope:
        if all(isinstance(column, _LayersColumn) for column in columns):
            net = layers_input_from_feature_columns(features, columns, ["dnn"], scope=scope)
        else:
            net = tf1.feature_column.input_layer(features, columns, weight_collections=["dnn"])
    for number, size in enumerate(params["dnn_hidden_units"]):
        net = _learn_layer(net, size, activation, f"hiddenlayer_{number}", "dnn")
        if params["dnn_dropout"] is not None and mode == LearnModeKeys.TRAIN:
            net = tf1.layers.dropout(net, rate=params["dnn_dropout"], training=True)
    return _learn_layer(net, params["head"].logits_dimension, None, "logits", "dnn")


def _learn_optimizer(optimizer, learning_rate):
    names = {
        "Adagrad": tf1.train.AdagradOptimizer,
        "Adam": tf1.train.AdamOptimizer,
        "Ftrl": tf1.train.FtrlOptimizer,
        "Momentum": lambda rate: tf1.train.MomentumOptimizer(rate, momentum=0.9),
        "RMSProp": tf1.train.RMSPropOptimizer,
        "SGD": tf1.train.GradientDescentOptimizer,
    }
    if isinstance(optimizer, str):
        return names[optimizer](learning_rate)
    return optimizer() if callable(optimizer) else optimizer


def _learn_step(optimizer, loss, variables, clip_norm, step=None):
    """One step of an optimizer, its gradients clipped together."""
    gradients = optimizer.compute_gradients(loss, variables)
    if clip_norm:
        clipped, _ = tf.clip_by_global_norm([gradient for gradient, _ in gradients], clip_norm)
        gradients = [(gradient, variable) for gradient, (_, variable) in zip(clipped, gradients, strict=True)]
    return optimizer.apply_gradients(gradients, global_step=step)


def _learn_scoped_step(scope, optimizer, learning_rate, loss, variables, clip_norm, step=None):
    """The same as tf.contrib.layers.optimize_loss did it: with a variable for the rate, whoever reads it."""
    with tf1.variable_scope(scope):
        rate = tf1.get_variable(
            "learning_rate", [], trainable=False, initializer=tf1.constant_initializer(learning_rate)
        )
        return _learn_step(_learn_optimizer(optimizer, rate), loss, variables, clip_norm, step)


def _learn_linear_model_fn(features, labels, mode, params, config):
    """A linear model alone."""
    features = features if isinstance(features, dict) else {"": features}
    head, columns = params["head"], params["feature_columns"]
    if hasattr(params["optimizer"], "get_train_step"):
        return _learn_sdca_model_fn(features, labels, mode, params)
    rate = min(0.2, 1.0 / math.sqrt(len(columns)))

    def train_op_fn(loss):
        optimizer = _learn_optimizer(params["optimizer"] or "Ftrl", rate)
        step = tf1.train.get_global_step()
        return _learn_step(optimizer, loss, tf1.get_collection("linear"), params["gradient_clip_norm"], step)

    with tf1.variable_scope("linear", partitioner=_learn_partitioner(config, 64 << 20)) as scope:
        logits = _learn_linear_logits(features, columns, head.logits_dimension, scope)
        return head.create_model_fn_ops(features, mode, labels, train_op_fn, logits)


def _learn_sdca_model_fn(features, labels, mode, params):
    """A linear model that an SDCAOptimizer trains."""
    head, columns, optimizer = params["head"], params["feature_columns"], params["optimizer"]
    if head.logits_dimension != 1:
        raise ValueError("an SDCAOptimizer trains models of numbers or of two classes")
    kind = "squared_loss" if head.problem == ProblemType.LINEAR_REGRESSION else "logistic_loss"
    with tf1.variable_scope("linear") as scope:
        logits, variables, bias = layers_weighted_sum_from_feature_columns(features, columns, 1, scope=scope)
        ones = layers_real_valued_column("tf_virtual_bias_column")
        found = {**features, ones.column_name: tf.ones_like(logits)}

        def train_op_fn(loss):
            step = tf1.train.get_global_step()
            return optimizer.get_train_step(
                {**variables, ones: [bias]}, params["weight_column_name"], kind, found, labels, step
            )

        return head.create_model_fn_ops(features, mode, labels, train_op_fn, logits)


def _learn_dnn_model_fn(features, labels, mode, params, config):
    """A deep model alone."""
    features = features if isinstance(features, dict) else {"": features}
    head = params["head"]

    def train_op_fn(loss):
        optimizer, step = params["dnn_optimizer"] or "Adagrad", tf1.train.get_global_step()
        return _learn_scoped_step("dnn", optimizer, 0.05, loss, None, params["gradient_clip_norm"], step)

    with tf1.variable_scope("dnn", partitioner=_learn_partitioner(config)):
        logits = _learn_deep_logits(features, mode, params, config)
        return head.create_model_fn_ops(features, mode, labels, train_op_fn, logits)


def _learn_combined_model_fn(features, labels, mode, params, config):
    """A linear and a deep model, their logits added."""
    features = features if isinstance(features, dict) else {"": features}
    head, linear = params["head"], params["linear_feature_columns"]
    if not linear and not params["dnn_feature_columns"]:
        raise ValueError("Either linear_feature_columns or dnn_feature_columns must be defined.")
    logits, parts = [], []
    if params["dnn_feature_columns"]:
        with tf1.variable_scope("dnn", partitioner=_learn_partitioner(config)):
            logits.append(_learn_deep_logits(features, mode, params, config))
        parts.append(("dnn", params["dnn_optimizer"] or "Adagrad", 0.05))
    if linear:
        with tf1.variable_scope("linear", partitioner=_learn_partitioner(config, 64 << 20)) as scope:
            logits.append(_learn_linear_logits(features, linear, head.logits_dimension, scope))
        parts.append(("linear", params["linear_optimizer"] or "Ftrl", min(0.2, 1.0 / math.sqrt(len(linear)))))

    def train_op_fn(loss):
        step, clip = tf1.train.get_global_step(), params["gradient_clip_norm"]
        counted = step if params["each_part_counts"] else None  # then a step of both parts counts as two
        steps = [
            _learn_scoped_step(scope, optimizer, rate, loss, tf1.get_collection(scope), clip, counted)
            for scope, optimizer, rate in parts
        ]
        if counted is not None:
            return tf.group(*steps)
        with tf.control_dependencies(steps):
            return tf1.assign_add(step, 1).op

    return head.create_model_fn_ops(features, mode, labels, train_op_fn, sum(logits[1:], logits[0]))


class _LearnCanned(LearnEstimator):
    """A ready-made model. Predicts `_shown` where nothing else is asked for."""

    _shown = "scores"

    def predict(self, x=None, input_fn=None, batch_size=None, outputs=None, as_iterable=True, iterate_batches=False):
        """Yields the class or the number of each example, or the `outputs` that are asked for."""
        if not outputs:
            return self._predictions_of(self._shown, x, input_fn, batch_size, as_iterable)
        return super().predict(x, input_fn, batch_size, outputs, as_iterable, iterate_batches)


class _LearnClassifier(_LearnCanned):
    _shown = "classes"

    def predict_classes(self, x=None, input_fn=None, batch_size=None, as_iterable=True):
        """Yields the class of each example."""
        return self._predictions_of("classes", x, input_fn, batch_size, as_iterable)

    def predict_proba(self, x=None, input_fn=None, batch_size=None, as_iterable=True):
        """Yields the probabilities of all classes for each example."""
        return self._predictions_of("probabilities", x, input_fn, batch_size, as_iterable)


class _LearnRegressor(_LearnCanned):
    def predict_scores(self, x=None, input_fn=None, batch_size=None, as_iterable=True):
        """Yields the number of each example."""
        return self._predictions_of("scores", x, input_fn, batch_size, as_iterable)


def _learn_deep_params(columns, hidden_units, optimizer, activation_fn, dropout, multipliers, min_slice_size):
    if multipliers:
        raise ValueError("embedding_lr_multipliers are not carried over")
    return {
        "dnn_feature_columns": tuple(columns or ()),
        "dnn_hidden_units": hidden_units,
        "dnn_optimizer": optimizer,
        "dnn_activation_fn": activation_fn,
        "dnn_dropout": dropout,
        "input_layer_min_slice_size": min_slice_size,
    }


class LearnLinearClassifier(_LearnClassifier):
    """A linear model of classes."""

    def __init__(
        self,
        feature_columns,
        model_dir=None,
        n_classes=2,
        weight_column_name=None,
        optimizer=None,
        gradient_clip_norm=None,
        enable_centered_bias=False,
        _joint_weight=False,
        config=None,
        feature_engineering_fn=None,
        label_keys=None,
    ):
        params = {
            "head": learn_multi_class_head(
                n_classes, None, weight_column_name, enable_centered_bias, label_keys=label_keys
            ),
            "feature_columns": tuple(feature_columns or ()),
            "optimizer": optimizer,
            "weight_column_name": weight_column_name,
            "gradient_clip_norm": gradient_clip_norm,
        }
        super().__init__(_learn_linear_model_fn, model_dir, config, params, feature_engineering_fn)


class LearnLinearRegressor(_LearnRegressor):
    """A linear model of numbers."""

    def __init__(
        self,
        feature_columns,
        model_dir=None,
        weight_column_name=None,
        optimizer=None,
        gradient_clip_norm=None,
        enable_centered_bias=False,
        label_dimension=1,
        _joint_weights=False,
        config=None,
        feature_engineering_fn=None,
    ):
        params = {
            "head": learn_regression_head(None, weight_column_name, label_dimension, enable_centered_bias),
            "feature_columns": tuple(feature_columns or ()),
            "optimizer": optimizer,
            "weight_column_name": weight_column_name,
            "gradient_clip_norm": gradient_clip_norm,
        }
        super().__init__(_learn_linear_model_fn, model_dir, config, params, feature_engineering_fn)


class LearnDNNClassifier(_LearnClassifier):
    """A deep model of classes."""

    def __init__(
        self,
        hidden_units,
        feature_columns,
        model_dir=None,
        n_classes=2,
        weight_column_name=None,
        optimizer=None,
        activation_fn=tf.nn.relu,
        dropout=None,
        gradient_clip_norm=None,
        enable_centered_bias=False,
        config=None,
        feature_engineering_fn=None,
        embedding_lr_multipliers=None,
        input_layer_min_slice_size=None,
        label_keys=None,
    ):
        params = {
            "head": learn_multi_class_head(
                n_classes, None, weight_column_name, enable_centered_bias, label_keys=label_keys
            ),
            **_learn_deep_params(
                feature_columns,
                hidden_units,
                optimizer,
                activation_fn,
                dropout,
                embedding_lr_multipliers,
                input_layer_min_slice_size,
            ),
            "gradient_clip_norm": gradient_clip_norm,
        }
        super().__init__(_learn_dnn_model_fn, model_dir, config, params, feature_engineering_fn)


class LearnDNNRegressor(_LearnRegressor):
    """A deep model of numbers."""

    def __init__(
        self,
        hidden_units,
        feature_columns,
        model_dir=None,
        weight_column_name=None,
        optimizer=None,
        activation_fn=tf.nn.relu,
        dropout=None,
        gradient_clip_norm=None,
        enable_centered_bias=False,
        config=None,
        feature_engineering_fn=None,
        label_dimension=1,
        embedding_lr_multipliers=None,
        input_layer_min_slice_size=None,
    ):
        params = {
            "head": learn_regression_head(None, weight_column_name, label_dimension, enable_centered_bias),
            **_learn_deep_params(
                feature_columns,
                hidden_units,
                optimizer,
                activation_fn,
                dropout,
                embedding_lr_multipliers,
                input_layer_min_slice_size,
            ),
            "gradient_clip_norm": gradient_clip_norm,
        }
        super().__init__(_learn_dnn_model_fn, model_dir, config, params, feature_engineering_fn)


class LearnDNNLinearCombinedClassifier(_LearnClassifier):
    """A linear and a deep model of classes, their logits added."""

    def __init__(
        self,
        model_dir=None,
        n_classes=2,
        weight_column_name=None,
        linear_feature_columns=None,
        linear_optimizer=None,
        _joint_linear_weights=False,
        dnn_feature_columns=None,
        dnn_optimizer=None,
        dnn_hidden_units=None,
        dnn_activation_fn=tf.nn.relu,
        dnn_dropout=None,
        gradient_clip_norm=None,
        enable_centered_bias=False,
        config=None,
        feature_engineering_fn=None,
        embedding_lr_multipliers=None,
        input_layer_min_slice_size=None,
        label_keys=None,
        fix_global_step_increment_bug=False,
    ):
        params = {
            "head": learn_multi_class_head(
                n_classes, None, weight_column_name, enable_centered_bias, label_keys=label_keys
            ),
            "linear_feature_columns": tuple(linear_feature_columns or ()),
            "linear_optimizer": linear_optimizer,
            **_learn_deep_params(
                dnn_feature_columns,
                dnn_hidden_units,
                dnn_optimizer,
                dnn_activation_fn,
                dnn_dropout,
                embedding_lr_multipliers,
                input_layer_min_slice_size,
            ),
            "gradient_clip_norm": gradient_clip_norm,
            "each_part_counts": not fix_global_step_increment_bug,
        }
        super().__init__(_learn_combined_model_fn, model_dir, config, params, feature_engineering_fn)


class LearnDNNLinearCombinedRegressor(_LearnRegressor):
    """A linear and a deep model of numbers, their logits added."""

    def __init__(
        self,
        model_dir=None,
        weight_column_name=None,
        linear_feature_columns=None,
        linear_optimizer=None,
        _joint_linear_weights=False,
        dnn_feature_columns=None,
        dnn_optimizer=None,
        dnn_hidden_units=None,
        dnn_activation_fn=tf.nn.relu,
        dnn_dropout=None,
        gradient_clip_norm=None,
        enable_centered_bias=False,
        label_dimension=1,
        config=None,
        feature_engineering_fn=None,
        embedding_lr_multipliers=None,
        input_layer_min_slice_size=None,
        fix_global_step_increment_bug=False,
    ):
        params = {
            "head": learn_regression_head(None, weight_column_name, label_dimension, enable_centered_bias),
            "linear_feature_columns": tuple(linear_feature_columns or ()),
            "linear_optimizer": linear_optimizer,
            **_learn_deep_params(
                dnn_feature_columns,
                dnn_hidden_units,
                dnn_optimizer,
                dnn_activation_fn,
                dnn_dropout,
                embedding_lr_multipliers,
                input_layer_min_slice_size,
            ),
            "gradient_clip_norm": gradient_clip_norm,
            "each_part_counts": not fix_global_step_increment_bug,
        }
        super().__init__(_learn_combined_model_fn, model_dir, config, params, feature_engineering_fn)
