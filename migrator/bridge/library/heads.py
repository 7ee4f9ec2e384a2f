"""Heads: what a model makes of its logits: loss, training step, metrics, predictions and what is served."""

import collections
import inspect

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from .exporting import ClassificationOutput, PredictOutput, RegressionOutput
from .specs import EstimatorSpec, ModeKeys

LossSpec = collections.namedtuple("LossSpec", "training_loss unreduced_loss weights processed_labels")


class Head:
    """The top of a model. Its subclasses say how labels, loss, predictions and metrics are made.

    Args:
        name: suffix of the metrics' names, and the name scope.
        weight_column: name (or numeric column) of the features that weigh the examples; None: all weigh the same.
        loss_reduction: how a batch's losses become one.
        loss_fn: function of `labels` and `logits` (and `features`) that gives the unreduced loss instead.
    """

    def __init__(self, name=None, weight_column=None, loss_reduction=tf1.losses.Reduction.SUM, loss_fn=None):
        if loss_reduction not in tf1.losses.Reduction.all() or loss_reduction == tf1.losses.Reduction.NONE:
            raise ValueError(f"Invalid loss_reduction: {loss_reduction}")
        if loss_fn:
            arguments = set(inspect.signature(loss_fn).parameters)
            if not {"labels", "logits"} <= arguments <= {"labels", "logits", "features"}:
                raise ValueError(f"loss_fn must take labels and logits, and may take features; it takes {arguments}")
        self.name = name
        self._weight_column = weight_column
        self._loss_reduction = loss_reduction
        self._loss_fn = loss_fn

    @property
    def logits_dimension(self):
        """The size of the logits' last dimension."""
        raise NotImplementedError

    def _labels(self, labels, logits):
        """The labels as the loss takes them."""
        raise NotImplementedError

    def _unreduced_loss(self, labels, logits):
        raise NotImplementedError

    def _predictions(self, logits):
        """A dictionary of predictions."""
        raise NotImplementedError

    def _export_outputs(self, predictions):
        raise NotImplementedError

    def _metrics(self, labels, predictions, weights):
        """Metrics by name, without those of the loss."""
        raise NotImplementedError

    _loss_dimension = 1
    _weights_per_logit = False

    def create_loss(self, features, mode, logits, labels):
        """The loss, with the losses of the examples, their weights and the labels."""
        logits = tf.convert_to_tensor(logits)
        labels = self._labels(labels, logits)
        if self._loss_fn:
            keywords = {"features": features} if "features" in inspect.signature(self._loss_fn).parameters else {}
            loss = self._loss_fn(labels=labels, logits=logits, **keywords)
            expected = tf.concat([tf.shape(logits)[:-1], [self._loss_dimension]], axis=0)
            message = f"loss_fn must return a tensor of shape [D0, D1, ... DN, {self._loss_dimension}]"
            with tf.control_dependencies([tf1.assert_equal(tf.shape(loss), expected, message=message)]):
                loss = tf.identity(loss)
        else:
            loss = self._unreduced_loss(labels, logits)
        weights = _weights(features, self._weight_column, logits, self._weights_per_logit)
        training_loss = tf1.losses.compute_weighted_loss(loss, weights=weights, reduction=self._loss_reduction)
        return LossSpec(training_loss, loss, weights, labels)

    def create_estimator_spec(
        self,
        features,
        mode,
        logits,
        labels=None,
        optimizer=None,
        train_op_fn=None,
        regularization_losses=None,
        trainable_variables=None,
        update_ops=None,
    ):
        """The EstimatorSpec of a model with these logits.

        Args:
            features: the model's features.
            mode: a ModeKeys.
            logits: of shape [batch, ..., logits_dimension].
            labels: the model's labels.
            optimizer: minimizes the loss in training, or:
            train_op_fn: function of the loss that gives the training step.
            regularization_losses: losses that are added.
            trainable_variables: what the optimizer changes; None: all that are trainable.
            update_ops: what runs with the training step, besides the graph's UPDATE_OPS.
        """
        with tf1.name_scope(self.name, "head"):
            logits = _checked_logits(logits, self.logits_dimension)
            with tf1.name_scope(None, "predictions", (logits,)):
                predictions = self._predictions(logits)
            if mode == ModeKeys.PREDICT:
                outputs = self._export_outputs(predictions)
                outputs["predict"] = PredictOutput(predictions)
                return EstimatorSpec(mode, predictions=predictions, export_outputs=outputs)
            training_loss, unreduced, weights, labels = self.create_loss(features, mode, logits, labels)
            regularization = tf.add_n(regularization_losses) if regularization_losses else None
            loss = training_loss if regularization is None else tf.add_n([training_loss, regularization])
            if mode == ModeKeys.EVAL:
                with tf1.name_scope(None, "metrics"):
                    metrics = {"average_loss": tf1.metrics.mean(unreduced, weights=weights, name="average_loss")}
                    metrics.update(self._metrics(labels, predictions, weights))
                    if regularization is not None:
                        metrics["regularization_loss"] = tf1.metrics.mean(regularization, name="regularization_loss")
                metrics = {self._key(key): metric for key, metric in metrics.items()}
                return EstimatorSpec(mode, predictions=predictions, loss=loss, eval_metric_ops=metrics)
            train_op = _train_op(loss, optimizer, train_op_fn, trainable_variables)
            updates = [*tf1.get_collection(tf1.GraphKeys.UPDATE_OPS), *(update_ops or [])]
            if updates:
                train_op = tf.group(train_op, *updates)
            summaries = {"loss": loss}
            if self._loss_reduction == tf1.losses.Reduction.SUM:
                summaries["average_loss"] = training_loss / tf.reduce_sum(weights * tf.ones_like(unreduced))
            if regularization is not None:
                summaries["regularization_loss"] = regularization
        with tf1.name_scope(""):
            for key, value in summaries.items():
                tf1.summary.scalar(self._key(key), value)
        return EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=train_op)

    def _key(self, key):
        return f"{key}/{self.name}" if self.name else key


class _BinaryHead(Head):
    """One logit: its sigmoid is the probability of the second of two classes."""

    def __init__(self, thresholds, label_vocabulary, **head):
        super().__init__(**head)
        self._thresholds = _checked_thresholds(thresholds)
        if label_vocabulary is not None and not isinstance(label_vocabulary, (list, tuple)):
            raise TypeError(f"label_vocabulary must be a list or tuple; got {type(label_vocabulary)}")
        self._label_vocabulary = label_vocabulary

    @property
    def logits_dimension(self):
        """One."""
        return 1

    def _labels(self, labels, logits):
        labels = _labels_like_logits(labels, logits, 1)
        if self._label_vocabulary is not None:
            labels = _class_ids(self._label_vocabulary, labels)
        return _in_range(tf.cast(labels, tf.float32), 2)

    def _unreduced_loss(self, labels, logits):
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)

    def _predictions(self, logits):
        logistic = tf.sigmoid(logits, name="logistic")
        two_class_logits = tf.concat((tf.zeros_like(logits), logits), axis=-1, name="two_class_logits")
        return {
            "logits": logits,
            "logistic": logistic,
            "probabilities": tf.nn.softmax(two_class_logits, name="probabilities"),
            **_class_predictions(two_class_logits, 2, self._label_vocabulary),
        }

    def _export_outputs(self, predictions):
        classification = _classification_output(predictions["probabilities"], 2, self._label_vocabulary)
        return {
            "serving_default": classification,
            "classification": classification,
            "regression": RegressionOutput(predictions["logistic"]),
        }

    def _metrics(self, labels, predictions, weights):
        class_ids, logistic = predictions["class_ids"], predictions["logistic"]
        label_mean = _weighted_mean(labels, weights, "label/mean")
        metrics = {
            "accuracy": tf1.metrics.accuracy(labels, class_ids, weights=weights, name="accuracy"),
            "precision": tf1.metrics.precision(labels, class_ids, weights=weights, name="precision"),
            "recall": tf1.metrics.recall(labels, class_ids, weights=weights, name="recall"),
            "prediction/mean": _weighted_mean(logistic, weights, "prediction/mean"),
            "label/mean": label_mean,
            "accuracy_baseline": tuple(tf.maximum(mean, 1 - mean) for mean in label_mean),
            "auc": _auc(labels, logistic, weights, "ROC", "auc"),
            "auc_precision_recall": _auc(labels, logistic, weights, "PR", "auc_precision_recall"),
        }
        for threshold in self._thresholds:
            metrics.update(_metrics_at_threshold(labels, logistic, weights, threshold))
        return metrics


class _MultiClassHead(Head):
    """A logit for each class: the largest is the class."""

    def __init__(self, n_classes, label_vocabulary, **head):
        super().__init__(**head)
        if n_classes is None or n_classes <= 2:
            raise ValueError(f"n_classes must be > 2: {n_classes}")
        if label_vocabulary is not None and not isinstance(label_vocabulary, (list, tuple)):
            raise ValueError(f"label_vocabulary must be a list or tuple; got {type(label_vocabulary)}")
        self._n_classes = n_classes
        self._label_vocabulary = label_vocabulary

    @property
    def logits_dimension(self):
        """The number of classes."""
        return self._n_classes

    def _labels(self, labels, logits):
        labels = _labels_like_logits(labels, logits, 1)
        if self._label_vocabulary is None:
            if not labels.dtype.is_integer:
                raise ValueError(f"labels must be integers where there is no label_vocabulary; got {labels.dtype}")
        else:
            if labels.dtype != tf.string:
                raise ValueError(f"labels must be strings where there is a label_vocabulary; got {labels.dtype}")
            labels = _class_ids(self._label_vocabulary, labels)
        return _in_range(labels, self._n_classes)

    def _unreduced_loss(self, labels, logits):
        loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits, reduction=tf1.losses.Reduction.NONE)
        return tf.expand_dims(loss, axis=-1)

    def _predictions(self, logits):
        return {
            "logits": logits,
            "probabilities": tf.nn.softmax(logits, name="probabilities"),
            **_class_predictions(logits, self._n_classes, self._label_vocabulary),
        }

    def _export_outputs(self, predictions):
        output = _classification_output(predictions["probabilities"], self._n_classes, self._label_vocabulary)
        return {"serving_default": output, "classification": output}

    def _metrics(self, labels, predictions, weights):
        accuracy = tf1.metrics.accuracy(labels, predictions["class_ids"], weights=weights, name="accuracy")
        return {"accuracy": accuracy}


class _RegressionHead(Head):
    """A logit for each number to be learnt."""

    _weights_per_logit = True

    def __init__(self, label_dimension, inverse_link_fn=None, **head):
        super().__init__(**head)
        if label_dimension < 1:
            raise ValueError(f"Invalid label_dimension {label_dimension}.")
        self._dimension = self._loss_dimension = label_dimension
        self._inverse_link_fn = inverse_link_fn

    @property
    def logits_dimension(self):
        """How many numbers are learnt."""
        return self._dimension

    def _labels(self, labels, logits):
        return tf.cast(_labels_like_logits(labels, logits, self._dimension), tf.float32)

    def _unreduced_loss(self, labels, logits):
        return tf1.losses.mean_squared_error(labels, logits, reduction=tf1.losses.Reduction.NONE)

    def _predictions(self, logits):
        if self._inverse_link_fn:
            return {"predictions": self._inverse_link_fn(logits), "logits": logits}
        return {"predictions": logits}

    def _export_outputs(self, predictions):
        output = RegressionOutput(predictions["predictions"])
        return {"serving_default": output, "regression": output}

    def _metrics(self, labels, predictions, weights):
        return {
            "prediction/mean": _weighted_mean(predictions["predictions"], weights, "prediction/mean"),
            "label/mean": tf1.metrics.mean(labels, weights=weights),
        }


class _MultiLabelHead(Head):
    """A logit for each class: an example may be of several classes, or of none."""

    def __init__(self, n_classes, thresholds, label_vocabulary, classes_for_class_based_metrics, **head):
        super().__init__(**head)
        if n_classes is None or n_classes < 2:
            raise ValueError(f"n_classes must be > 1 for multi-label classification; got {n_classes}")
        if label_vocabulary is not None:
            if not isinstance(label_vocabulary, (list, tuple)):
                raise ValueError(f"label_vocabulary must be a list or tuple; got {type(label_vocabulary)}")
            if len(label_vocabulary) != n_classes:
                raise ValueError(f"label_vocabulary must have {n_classes} words; it has {len(label_vocabulary)}")
        classes = list(classes_for_class_based_metrics or [])
        if classes and isinstance(classes[0], str):
            if not label_vocabulary:
                raise ValueError("a label_vocabulary is needed where classes_for_class_based_metrics are strings")
            classes = [label_vocabulary.index(name) for name in classes]
        if any(class_id < 0 or class_id >= n_classes for class_id in classes):
            raise ValueError(f"classes_for_class_based_metrics must be in [0, {n_classes - 1}]; got {classes}")
        self._n_classes = n_classes
        self._thresholds = _checked_thresholds(thresholds)
        self._label_vocabulary = label_vocabulary
        self._classes = classes

    @property
    def logits_dimension(self):
        """The number of classes."""
        return self._n_classes

    def _labels(self, labels, logits):
        if labels is None:
            raise ValueError("You must provide a labels Tensor. Given: None.")
        if isinstance(labels, tf.SparseTensor):
            if labels.dtype == tf.string:
                values = _class_ids(self._label_vocabulary, labels.values)
            else:
                values = _in_range(labels.values, self._n_classes)
            ids = tf.SparseTensor(labels.indices, values, labels.dense_shape)
            labels = tf.cast(tf1.sparse_to_indicator(ids, self._n_classes), tf.int64)
        else:
            labels = _in_range(labels, 2)
        return _labels_like_logits(labels, logits, self._n_classes)

    def _unreduced_loss(self, labels, logits):
        loss = tf1.losses.sigmoid_cross_entropy(labels, logits, reduction=tf1.losses.Reduction.NONE)
        return tf.reduce_mean(loss, axis=-1, keepdims=True)

    def _predictions(self, logits):
        return {"logits": logits, "probabilities": tf.sigmoid(logits, name="probabilities")}

    def _export_outputs(self, predictions):
        output = _classification_output(predictions["probabilities"], self._n_classes, self._label_vocabulary)
        return {"serving_default": output, "classification": output}

    def _metrics(self, labels, predictions, weights):
        probabilities = predictions["probabilities"]
        metrics = {
            "auc": tf1.metrics.auc(labels, probabilities, weights=weights, name="auc"),
            "auc_precision_recall": tf1.metrics.auc(
                labels, probabilities, weights=weights, curve="PR", name="auc_precision_recall"
            ),
        }
        for threshold in self._thresholds:
            metrics.update(_metrics_at_threshold(labels, probabilities, weights, threshold))
        for class_id in self._classes:
            name = self._label_vocabulary[class_id] if self._label_vocabulary else f"class{class_id}"
            of_labels = labels[..., class_id : class_id + 1]
            of_class = probabilities[..., class_id : class_id + 1]
            mean, auc, pr = f"probability_mean/{name}", f"auc/{name}", f"auc_precision_recall/{name}"
            metrics[mean] = _weighted_mean(of_class, weights, mean)
            metrics[auc] = _auc(of_labels, of_class, weights, "ROC", auc)
            metrics[pr] = _auc(of_labels, of_class, weights, "PR", pr)
        return metrics


class MultiHead(Head):
    """Several heads: their losses are added, and their logits lie side by side (or in a dictionary by head)."""

    def __init__(self, heads, head_weights=None):
        if not heads or not all(head.name for head in heads):
            raise ValueError("there must be heads, and all must have names")
        if head_weights and len(head_weights) != len(heads):
            raise ValueError(f"there must be as many head_weights as heads; got {head_weights}")
        super().__init__(name="_".join(head.name for head in heads))
        self._heads = tuple(heads)
        self._head_weights = head_weights

    @property
    def logits_dimension(self):
        """The heads' dimensions, added."""
        return sum(head.logits_dimension for head in self._heads)

    def create_loss(self, features, mode, logits, labels):
        """The weighted sum of the heads' losses; the other fields are dictionaries by head."""
        logits = self._split(logits)
        specs = {h.name: h.create_loss(features, mode, logits[h.name], labels[h.name]) for h in self._heads}
        losses, weights = [], {}
        for number, (name, spec) in enumerate(specs.items()):
            weight = self._head_weights[number] if self._head_weights else 1.0
            losses.append(spec.training_loss)
            weights[name] = spec.weights * weight
        return LossSpec(
            self._merged(losses),
            {name: spec.unreduced_loss for name, spec in specs.items()},
            weights,
            {name: spec.processed_labels for name, spec in specs.items()},
        )

    def create_estimator_spec(
        self, features, mode, logits, labels=None, optimizer=None, train_op_fn=None, trainable_variables=None
    ):
        """The EstimatorSpec of a model with these logits; predictions have ("head", "name") for keys."""
        logits = self._split(logits)
        if labels is not None and not isinstance(labels, dict):
            raise ValueError(f"labels must be a dictionary by head; got {labels}")
        specs = []
        for head in self._heads:
            specs.append(
                head.create_estimator_spec(
                    features=features,
                    mode=mode,
                    logits=logits[head.name],
                    labels=labels[head.name] if labels else None,
                    train_op_fn=lambda loss: tf.no_op(),
                )
            )
        named = list(zip(self._heads, specs, strict=True))
        predictions = {(h.name, key): value for h, spec in named for key, value in spec.predictions.items()}
        if mode == ModeKeys.PREDICT:
            outputs = {"serving_default": specs[0].export_outputs["serving_default"]}
            together = {}
            for head, spec in named:
                for key, output in spec.export_outputs.items():
                    outputs[head.name if key == "serving_default" else f"{head.name}/{key}"] = output
                    if key == "predict":
                        together.update({f"{head.name}/{name}": value for name, value in output.outputs.items()})
            outputs["predict"] = PredictOutput(together)
            return EstimatorSpec(mode, predictions=predictions, export_outputs=outputs)
        loss = self._merged([spec.loss for spec in specs])
        metrics = {}
        for head, spec in named:
            if mode == ModeKeys.EVAL:
                metrics[f"loss/{head.name}"] = tf1.metrics.mean(spec.loss, name=f"loss/{head.name}")
            metrics.update(spec.eval_metric_ops or {})
        if mode == ModeKeys.EVAL:
            return EstimatorSpec(mode, predictions=predictions, loss=loss, eval_metric_ops=metrics)
        train_op = _train_op(loss, optimizer, train_op_fn, trainable_variables)
        with tf1.name_scope(""):
            tf1.summary.scalar("loss", loss)
        return EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=train_op, eval_metric_ops=metrics)

    def _split(self, logits):
        """The logits by head."""
        if isinstance(logits, dict):
            return logits
        logits = tf.convert_to_tensor(logits)
        if logits.shape[-1] not in (None, self.logits_dimension):
            raise ValueError(f"the heads need logits of {self.logits_dimension} numbers; their shape is {logits.shape}")
        split, start = {}, 0
        for head in self._heads:
            split[head.name] = logits[..., start : start + head.logits_dimension]
            start += head.logits_dimension
        return split

    def _merged(self, losses):
        weights = self._head_weights or [None] * len(losses)
        return tf.add_n(
            [loss if weight is None else loss * weight for loss, weight in zip(losses, weights, strict=True)]
        )


_MEAN = tf1.losses.Reduction.SUM_OVER_BATCH_SIZE


def binary_classification_head(
    weight_column=None, thresholds=None, label_vocabulary=None, loss_reduction=_MEAN, loss_fn=None, name=None
):
    """A head for two classes; labels are numbers from 0 to 1, or words of the vocabulary."""
    return _BinaryHead(
        thresholds,
        label_vocabulary,
        name=name,
        weight_column=weight_column,
        loss_reduction=loss_reduction,
        loss_fn=loss_fn,
    )


def multi_class_head(
    n_classes, weight_column=None, label_vocabulary=None, loss_reduction=_MEAN, loss_fn=None, name=None
):
    """A head for three or more classes; labels are the classes' numbers, or words of the vocabulary."""
    return _MultiClassHead(
        n_classes,
        label_vocabulary,
        name=name,
        weight_column=weight_column,
        loss_reduction=loss_reduction,
        loss_fn=loss_fn,
    )


def regression_head(
    weight_column=None, label_dimension=1, loss_reduction=_MEAN, loss_fn=None, inverse_link_fn=None, name=None
):
    """A head for numbers, with the squared error; `inverse_link_fn` makes the predictions of the logits."""
    return _RegressionHead(
        label_dimension,
        inverse_link_fn,
        name=name,
        weight_column=weight_column,
        loss_reduction=loss_reduction,
        loss_fn=loss_fn,
    )


def canned_binary_head(
    weight_column=None,
    thresholds=None,
    label_vocabulary=None,
    loss_reduction=tf1.losses.Reduction.SUM,
    loss_fn=None,
    name=None,
):
    """The head of TensorFlow 1's canned classifiers of two classes, whose loss is a sum over the batch."""
    return binary_classification_head(weight_column, thresholds, label_vocabulary, loss_reduction, loss_fn, name)


def canned_multi_class_head(
    n_classes,
    weight_column=None,
    label_vocabulary=None,
    loss_reduction=tf1.losses.Reduction.SUM,
    loss_fn=None,
    name=None,
):
    """The head of TensorFlow 1's canned classifiers of three or more classes, whose loss is a sum over the batch."""
    return multi_class_head(n_classes, weight_column, label_vocabulary, loss_reduction, loss_fn, name)


def canned_class_head(n_classes, weight_column, label_vocabulary, loss_reduction):
    """The head of TensorFlow 1's canned classifiers."""
    if n_classes == 2:
        return canned_binary_head(
            weight_column=weight_column, label_vocabulary=label_vocabulary, loss_reduction=loss_reduction
        )
    return canned_multi_class_head(n_classes, weight_column, label_vocabulary, loss_reduction)


def canned_regression_head(
    weight_column=None,
    label_dimension=1,
    loss_reduction=tf1.losses.Reduction.SUM,
    loss_fn=None,
    inverse_link_fn=None,
    name=None,
):
    """The head of TensorFlow 1's canned regressors, whose loss is a sum over the batch."""
    return regression_head(weight_column, label_dimension, loss_reduction, loss_fn, inverse_link_fn, name)


def poisson_regression_head(
    weight_column=None, label_dimension=1, loss_reduction=_MEAN, compute_full_loss=True, name=None
):
    """A head for counts: the logits are the logarithm of the mean."""

    def loss_fn(labels, logits):
        return tf.nn.log_poisson_loss(labels, logits, compute_full_loss=compute_full_loss)

    return regression_head(weight_column, label_dimension, loss_reduction, loss_fn, tf.exp, name)


def logistic_regression_head(weight_column=None, loss_reduction=_MEAN, name=None):
    """A head for a number from 0 to 1: the sigmoid of the logit."""

    def loss_fn(labels, logits):
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=_in_range(labels, 2), logits=logits)

    return regression_head(weight_column, 1, loss_reduction, loss_fn, tf.sigmoid, name)


def multi_label_head(
    n_classes,
    weight_column=None,
    thresholds=None,
    label_vocabulary=None,
    loss_reduction=_MEAN,
    loss_fn=None,
    classes_for_class_based_metrics=None,
    name=None,
):
    """A head for several classes at once; labels are zeros and ones, or a sparse tensor of numbers or words."""
    return _MultiLabelHead(
        n_classes,
        thresholds,
        label_vocabulary,
        classes_for_class_based_metrics,
        name=name,
        weight_column=weight_column,
        loss_reduction=loss_reduction,
        loss_fn=loss_fn,
    )


def multi_head(heads, head_weights=None):
    """Several heads over one model."""
    return MultiHead(heads, head_weights)


class BinaryClassHead(_BinaryHead):
    """A head for two classes; labels are numbers from 0 to 1, or words of the vocabulary."""

    def __init__(
        self,
        weight_column=None,
        thresholds=None,
        label_vocabulary=None,
        loss_reduction=_MEAN,
        loss_fn=None,
        name=None,
    ):
        head = {"name": name, "weight_column": weight_column, "loss_reduction": loss_reduction, "loss_fn": loss_fn}
        super().__init__(thresholds, label_vocabulary, **head)


class MultiClassHead(_MultiClassHead):
    """A head for three or more classes; labels are the classes' numbers, or words of the vocabulary."""

    def __init__(
        self, n_classes, weight_column=None, label_vocabulary=None, loss_reduction=_MEAN, loss_fn=None, name=None
    ):
        head = {"name": name, "weight_column": weight_column, "loss_reduction": loss_reduction, "loss_fn": loss_fn}
        super().__init__(n_classes, label_vocabulary, **head)


class RegressionHead(_RegressionHead):
    """A head for numbers, with the squared error; `inverse_link_fn` makes the predictions of the logits."""

    def __init__(
        self,
        label_dimension=1,
        weight_column=None,
        loss_reduction=_MEAN,
        loss_fn=None,
        inverse_link_fn=None,
        name=None,
    ):
        head = {"name": name, "weight_column": weight_column, "loss_reduction": loss_reduction, "loss_fn": loss_fn}
        super().__init__(label_dimension, inverse_link_fn, **head)


class MultiLabelHead(_MultiLabelHead):
    """A head for several classes at once; labels are zeros and ones, or a sparse tensor of numbers or words."""

    def __init__(
        self,
        n_classes,
        weight_column=None,
        thresholds=None,
        label_vocabulary=None,
        loss_reduction=_MEAN,
        loss_fn=None,
        classes_for_class_based_metrics=None,
        name=None,
    ):
        head = {"name": name, "weight_column": weight_column, "loss_reduction": loss_reduction, "loss_fn": loss_fn}
        super().__init__(n_classes, thresholds, label_vocabulary, classes_for_class_based_metrics, **head)


def PoissonRegressionHead(
    label_dimension=1, weight_column=None, loss_reduction=_MEAN, compute_full_loss=True, name=None
):
    """A head for counts: the logits are the logarithm of the mean."""
    return poisson_regression_head(weight_column, label_dimension, loss_reduction, compute_full_loss, name)


def LogisticRegressionHead(weight_column=None, loss_reduction=_MEAN, name=None):
    """A head for a number from 0 to 1: the sigmoid of the logit."""
    return logistic_regression_head(weight_column, loss_reduction, name)


def binary_or_multi_class_head(
    n_classes, weight_column, label_vocabulary, loss_reduction=tf1.losses.Reduction.SUM, loss_fn=None, name=None
):
    """The head of a classifier."""
    if n_classes == 2:
        return binary_classification_head(weight_column, None, label_vocabulary, loss_reduction, loss_fn, name)
    return multi_class_head(n_classes, weight_column, label_vocabulary, loss_reduction, loss_fn, name)


def _checked_thresholds(thresholds):
    thresholds = tuple(thresholds or ())
    if not all(0 < threshold < 1 for threshold in thresholds):
        raise ValueError(f"thresholds must be in (0, 1): {thresholds}")
    return thresholds


def _checked_logits(logits, dimension):
    """The logits as single precision, of at least two dimensions, the last of size `dimension`."""
    logits = tf.cast(logits, tf.float32)
    if logits.shape.rank is not None and (logits.shape.rank < 2 or logits.shape[-1] not in (None, dimension)):
        raise ValueError(f"logits shape must be [D0, D1, ... DN, {dimension}], got {logits.shape}.")
    if logits.shape.rank is not None and logits.shape[-1] is not None:
        return logits
    with tf.control_dependencies([tf1.assert_equal(tf.shape(logits)[-1], dimension)]):
        return tf.identity(logits)


def _labels_like_logits(labels, logits, dimension):
    """Labels of the logits' shape, but for the last dimension, which is `dimension` (1 is added where it lacks)."""
    if labels is None:
        raise ValueError("You must provide a labels Tensor. Given: None.")
    if isinstance(labels, tf.SparseTensor):
        raise ValueError("SparseTensor labels are not supported; make them dense in the input_fn.")
    labels = tf.convert_to_tensor(labels)
    if labels.shape.rank is not None and logits.shape.rank is not None and labels.shape.rank == logits.shape.rank - 1:
        labels = tf.expand_dims(labels, -1)
    if labels.shape.rank is not None and labels.shape.rank >= 1 and labels.shape[-1] not in (None, dimension):
        raise ValueError(f"Mismatched label shape. Expected labels dimension={dimension}. Received {labels.shape[-1]}.")
    message = f"labels shape must be [D0, D1, ... DN, {dimension}]; check n_classes and the shape of the labels"
    expected = tf.concat([tf.shape(logits)[:-1], [dimension]], axis=0)
    with tf.control_dependencies([tf1.assert_equal(expected, tf.shape(labels), message=message)]):
        return tf.identity(labels)


def _weights(features, column, logits, per_logit):
    """The examples' weights, of a shape that goes with the logits; 1 where there is no column."""
    if column is None:
        return 1.0
    key, normalize = (column, None) if isinstance(column, str) else (column.key, column.normalizer_fn)
    weights = tf.convert_to_tensor(features[key])
    if weights.shape.rank == 1:
        weights = tf.expand_dims(weights, -1)
    weights = tf.cast(weights, tf.float32)
    if normalize:
        weights = normalize(weights)
    if weights.shape.rank is not None and logits.shape.rank is not None and weights.shape.rank == logits.shape.rank - 1:
        weights = tf.expand_dims(weights, -1)
    batch, size = tf.shape(logits)[:-1], tf.shape(weights)[-1]
    allowed = tf.equal(size, 1) | tf.equal(size, tf.shape(logits)[-1]) if per_logit else tf.equal(size, 1)
    message = "weights must have the shape of the logits, with 1 for the last dimension (or without it)"
    checks = [tf1.assert_equal(batch, tf.shape(weights)[:-1], message=message), tf1.Assert(allowed, [message, size])]
    with tf.control_dependencies(checks):
        return tf.identity(weights)


def _in_range(labels, n_classes):
    """Labels that are checked to be from 0 to `n_classes` - 1."""
    labels = tf.convert_to_tensor(labels)
    checks = [
        tf1.assert_less_equal(labels, tf.cast(n_classes - 1, labels.dtype), message="Labels must <= n_classes - 1"),
        tf1.assert_non_negative(labels, message="Labels must >= 0"),
    ]
    with tf.control_dependencies(checks):
        return tf.identity(labels)


def _class_ids(vocabulary, labels):
    """The numbers of words in the vocabulary; -1 for all others."""
    keys, values = tf.constant(vocabulary), tf.range(len(vocabulary), dtype=tf.int64)
    return tf1.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), -1).lookup(labels)


def _class_predictions(logits, n_classes, vocabulary):
    """The class of each example, and all classes beside it, as numbers and as names."""
    class_ids = tf.expand_dims(tf.argmax(logits, axis=-1, name="class_ids"), axis=-1)
    batch = tf.shape(logits)[0]
    return {
        "class_ids": class_ids,
        "classes": tf.gather(tf.constant(vocabulary), class_ids) if vocabulary else tf.as_string(class_ids),
        "all_class_ids": tf.tile(tf.expand_dims(tf.range(n_classes), 0), [batch, 1]),
        "all_classes": _all_classes(batch, n_classes, vocabulary),
    }


def _all_classes(batch, n_classes, vocabulary):
    names = tf.constant(vocabulary) if vocabulary else tf.as_string(tf.range(n_classes))
    return tf.tile(tf.expand_dims(names, 0), [batch, 1])


def _classification_output(scores, n_classes, vocabulary):
    return ClassificationOutput(scores, _all_classes(tf.shape(scores)[0], n_classes, vocabulary))


def _broadcast(weights, values):
    """Weights as large as the values, as the metrics want them."""
    return tf.cast(weights, tf.float32) * tf.ones_like(tf.cast(values, tf.float32))


def _weighted_mean(values, weights, name):
    values = tf.cast(values, tf.float32)
    return tf1.metrics.mean(values, weights=_broadcast(weights, values), name=name)


def _auc(labels, predictions, weights, curve, name):
    predictions = tf.cast(predictions, tf.float32)
    return tf1.metrics.auc(labels, predictions, weights=_broadcast(weights, predictions), curve=curve, name=name)


def _metrics_at_threshold(labels, predictions, weights, threshold):
    """Accuracy, precision and recall where a prediction from `threshold` on counts as true."""
    suffix = f"positive_threshold_{threshold:g}"
    above = tf.cast(tf.greater_equal(predictions, threshold), tf.float32)
    precision = tf1.metrics.precision_at_thresholds(labels, predictions, (threshold,), weights=weights)
    recall = tf1.metrics.recall_at_thresholds(labels, predictions, (threshold,), weights=weights)
    return {
        f"accuracy/{suffix}": tf1.metrics.accuracy(labels, above, weights=weights),
        f"precision/{suffix}": tuple(map(tf.squeeze, precision)),
        f"recall/{suffix}": tuple(map(tf.squeeze, recall)),
    }


def _train_op(loss, optimizer, train_op_fn, variables):
    """The training step, by an optimizer or by the program's own function."""
    if (optimizer is None) == (train_op_fn is None):
        raise ValueError("one of optimizer and train_op_fn must be given, and only one")
    if train_op_fn is not None:
        return train_op_fn(loss)
    if not isinstance(optimizer, tf1.train.Optimizer):
        raise TypeError(f"the optimizer must be one of tf.train, not of Keras; got {optimizer}")
    return optimizer.minimize(loss, global_step=tf1.train.get_global_step(), var_list=variables)
