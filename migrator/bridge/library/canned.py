"""Ready-made models on feature columns: baseline, linear, deep, and both together."""

import math

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from .estimator import Estimator
from .heads import binary_or_multi_class_head, regression_head
from .specs import ModeKeys

_SUM = tf1.losses.Reduction.SUM


def optimizer_instance(optimizer, learning_rate=None):
    """The optimizer that a name, a function without arguments, or an optimizer means."""
    names = {
        "Adagrad": tf1.train.AdagradOptimizer,
        "Adam": tf1.train.AdamOptimizer,
        "Ftrl": tf1.train.FtrlOptimizer,
        "RMSProp": tf1.train.RMSPropOptimizer,
        "SGD": tf1.train.GradientDescentOptimizer,
    }
    if isinstance(optimizer, str):
        if optimizer not in names:
            raise ValueError(f"Unsupported optimizer name: {optimizer}. Supported names are: {tuple(names)}")
        if not learning_rate:
            raise ValueError("a learning_rate is needed where the optimizer is a name")
        return names[optimizer](learning_rate=learning_rate)
    if callable(optimizer):
        optimizer = optimizer()
    if not isinstance(optimizer, tf1.train.Optimizer):
        raise ValueError(f"The given object is not an Optimizer instance. Given: {optimizer}")
    return optimizer


def linear_logit_fn_builder(units, feature_columns, sparse_combiner="sum"):
    """A function of the features that gives a linear model's logits."""

    def linear_logit_fn(features):
        logits = tf1.feature_column.linear_model(
            features=features, feature_columns=feature_columns, units=units, sparse_combiner=sparse_combiner
        )
        scope = tf1.get_variable_scope().name
        variables = tf1.get_collection(tf1.GraphKeys.GLOBAL_VARIABLES, scope=f"{scope}/linear_model" if scope else None)
        bias = [variable for variable in variables if "bias_weights" in variable.name]
        weights = [variable for variable in variables if "bias_weights" not in variable.name]
        if bias and units > 1:
            tf1.summary.histogram("bias", tf.concat([tf.convert_to_tensor(part) for part in bias], axis=0))
        elif bias:
            tf1.summary.scalar("bias", bias[0][0])
        if weights:
            tf1.summary.scalar("fraction_of_zero_weights", fraction_of_zero(weights))
        return logits

    return linear_logit_fn


def fraction_of_zero(variables):
    """The share of zeros in variables, of all of them together."""
    zeros = tf.add_n([tf.nn.zero_fraction(v) * tf.cast(tf.size(v), tf.float32) for v in variables])
    return zeros / tf.add_n([tf.cast(tf.size(v), tf.float32) for v in variables])


def dnn_logit_fn_builder(
    units, hidden_units, feature_columns, activation_fn, dropout, input_layer_partitioner, batch_norm=False
):
    """A function of the features and the mode that gives a deep model's logits."""
    if not isinstance(units, int):
        raise ValueError(f"units must be an int. Given type: {type(units)}")

    def dnn_logit_fn(features, mode):
        training = mode == ModeKeys.TRAIN
        with tf1.variable_scope("input_from_feature_columns", partitioner=input_layer_partitioner):
            net = tf1.feature_column.input_layer(features=features, feature_columns=feature_columns)
        for number, size in enumerate(hidden_units):
            with tf1.variable_scope(f"hiddenlayer_{number}") as scope:
                initializer = tf1.glorot_uniform_initializer()
                net = tf1.layers.dense(net, size, activation=activation_fn, kernel_initializer=initializer, name=scope)
                if dropout is not None and training:
                    net = tf1.layers.dropout(net, rate=dropout, training=True)
                if batch_norm:
                    name = f"batchnorm_{number}"
                    net = tf1.layers.batch_normalization(net, momentum=0.999, training=training, name=name)
            summarize_layer(net, scope.name)
        with tf1.variable_scope("logits") as scope:
            logits = tf1.layers.dense(net, units, kernel_initializer=tf1.glorot_uniform_initializer(), name=scope)
        summarize_layer(logits, scope.name)
        return logits

    return dnn_logit_fn


def summarize_layer(value, name):
    """Writes summaries of what a layer gives: the share of zeros, and a histogram."""
    tf1.summary.scalar(f"{name}/fraction_of_zero_values", tf.nn.zero_fraction(value))
    tf1.summary.histogram(f"{name}/activation", value)


def _partitioner(config, min_slice_size=None):
    """Splits what is larger than a slice over the parameter servers."""
    more = {} if min_slice_size is None else {"min_slice_size": min_slice_size}
    servers = config.num_ps_replicas if config else 0
    return tf1.min_max_variable_partitioner(max_partitions=servers, **more)


def _check_features(features):
    if not isinstance(features, dict):
        raise ValueError(f"features should be a dictionary of `Tensor`s. Given type: {type(features)}")


def _linear_model_fn(features, labels, mode, head, feature_columns, optimizer, partitioner, config, sparse_combiner):
    _check_features(features)
    with tf1.variable_scope("linear", partitioner=partitioner or _partitioner(config, 64 << 20)):
        logits = linear_logit_fn_builder(head.logits_dimension, feature_columns, sparse_combiner)(features)
        if not optimizer:
            optimizer = tf1.train.FtrlOptimizer(min(0.2, 1.0 / math.sqrt(len(feature_columns))))
        return head.create_estimator_spec(
            features=features, mode=mode, labels=labels, optimizer=optimizer_instance(optimizer, 0.2), logits=logits
        )


def _dnn_model_fn(
    features,
    labels,
    mode,
    head,
    hidden_units,
    feature_columns,
    optimizer,
    activation_fn,
    dropout,
    input_layer_partitioner,
    config,
    batch_norm,
):
    optimizer = optimizer_instance(optimizer, learning_rate=0.05)
    _check_features(features)
    with tf1.variable_scope("dnn", partitioner=_partitioner(config)):
        logit_fn = dnn_logit_fn_builder(
            units=head.logits_dimension,
            hidden_units=hidden_units,
            feature_columns=feature_columns,
            activation_fn=activation_fn,
            dropout=dropout,
            input_layer_partitioner=input_layer_partitioner or _partitioner(config, 64 << 20),
            batch_norm=batch_norm,
        )
        logits = logit_fn(features=features, mode=mode)
        return head.create_estimator_spec(
            features=features, mode=mode, labels=labels, optimizer=optimizer, logits=logits
        )


def _dnn_linear_combined_model_fn(
    features,
    labels,
    mode,
    head,
    linear_feature_columns,
    linear_optimizer,
    dnn_feature_columns,
    dnn_optimizer,
    dnn_hidden_units,
    dnn_activation_fn,
    dnn_dropout,
    input_layer_partitioner,
    config,
    batch_norm,
    linear_sparse_combiner,
):
    _check_features(features)
    partitioner = input_layer_partitioner or _partitioner(config, 64 << 20)
    logits, parts = [], []  # a part: the optimizer, and the scope of its variables
    if dnn_feature_columns:
        if not dnn_hidden_units:
            raise ValueError("dnn_hidden_units must be defined when dnn_feature_columns is specified.")
        optimizer = _single_optimizer(optimizer_instance(dnn_optimizer, learning_rate=0.001))
        with tf1.variable_scope("dnn", partitioner=_partitioner(config)) as scope:
            logit_fn = dnn_logit_fn_builder(
                units=head.logits_dimension,
                hidden_units=dnn_hidden_units,
                feature_columns=dnn_feature_columns,
                activation_fn=dnn_activation_fn,
                dropout=dnn_dropout,
                input_layer_partitioner=partitioner,
                batch_norm=batch_norm,
            )
            logits.append(logit_fn(features=features, mode=mode))
        parts.append((optimizer, scope.name))
    if linear_feature_columns:
        learning_rate = min(0.005, 1.0 / math.sqrt(len(linear_feature_columns)))
        optimizer = _single_optimizer(optimizer_instance(linear_optimizer, learning_rate))
        with tf1.variable_scope("linear", partitioner=partitioner) as scope:
            logit_fn = linear_logit_fn_builder(head.logits_dimension, linear_feature_columns, linear_sparse_combiner)
            logits.append(logit_fn(features=features))
            summarize_layer(logits[-1], scope.name)
        parts.append((optimizer, scope.name))

    def train_op_fn(loss):
        steps = []
        for optimizer, scope in parts:
            variables = tf1.get_collection(tf1.GraphKeys.TRAINABLE_VARIABLES, scope=scope)
            steps.append(optimizer.minimize(loss, var_list=variables))
        with tf.control_dependencies([tf.group(*steps)]):
            return tf1.assign_add(tf1.train.get_global_step(), 1)

    return head.create_estimator_spec(
        features=features, mode=mode, labels=labels, train_op_fn=train_op_fn, logits=sum(logits[1:], logits[0])
    )


def _single_optimizer(optimizer):
    if isinstance(optimizer, tf1.train.SyncReplicasOptimizer):
        raise ValueError("SyncReplicasOptimizer cannot be used for a model with two optimizers.")
    return optimizer


def _baseline_model_fn(features, labels, mode, head, optimizer, weight_column, config):
    """Learns one number for each logit, whatever the features are."""
    columns = features if isinstance(features, dict) else {"": features}
    key = getattr(weight_column, "key", weight_column)
    batches = [tf.shape(column)[0] for name, column in columns.items() if name != key]
    checks = [tf1.assert_equal(batches[0], batch) for batch in batches[1:]]
    with tf.control_dependencies(checks), tf1.variable_scope("baseline"):
        bias = tf1.get_variable("bias", shape=[head.logits_dimension], initializer=tf1.zeros_initializer())
        logits = tf.multiply(bias, tf.ones([batches[0], head.logits_dimension]))

    def train_op_fn(loss):
        return optimizer_instance(optimizer, 0.3).minimize(loss, global_step=tf1.train.get_global_step())

    return head.create_estimator_spec(
        features=features, mode=mode, logits=logits, labels=labels, train_op_fn=train_op_fn
    )


class LinearEstimator(Estimator):
    """A linear model with a head of your own."""

    def __init__(
        self,
        head,
        feature_columns,
        model_dir=None,
        optimizer="Ftrl",
        config=None,
        partitioner=None,
        sparse_combiner="sum",
        warm_start_from=None,
    ):
        columns = tuple(feature_columns or [])

        def model_fn(features, labels, mode, config):
            return _linear_model_fn(
                features, labels, mode, head, columns, optimizer, partitioner, config, sparse_combiner
            )

        super().__init__(model_fn, model_dir=model_dir, config=config, warm_start_from=warm_start_from)


class LinearClassifier(LinearEstimator):
    """A linear model of classes: `n_classes` numbers, or the words of `label_vocabulary`."""

    def __init__(
        self,
        feature_columns,
        model_dir=None,
        n_classes=2,
        weight_column=None,
        label_vocabulary=None,
        optimizer="Ftrl",
        config=None,
        partitioner=None,
        warm_start_from=None,
        loss_reduction=_SUM,
        sparse_combiner="sum",
    ):
        head = binary_or_multi_class_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        super().__init__(
            head, feature_columns, model_dir, optimizer, config, partitioner, sparse_combiner, warm_start_from
        )


class LinearRegressor(LinearEstimator):
    """A linear model of numbers."""

    def __init__(
        self,
        feature_columns,
        model_dir=None,
        label_dimension=1,
        weight_column=None,
        optimizer="Ftrl",
        config=None,
        partitioner=None,
        warm_start_from=None,
        loss_reduction=_SUM,
        sparse_combiner="sum",
    ):
        head = regression_head(weight_column, label_dimension, loss_reduction)
        super().__init__(
            head, feature_columns, model_dir, optimizer, config, partitioner, sparse_combiner, warm_start_from
        )


class DNNEstimator(Estimator):
    """A deep model with a head of your own."""

    def __init__(
        self,
        head,
        hidden_units,
        feature_columns,
        model_dir=None,
        optimizer="Adagrad",
        activation_fn=tf.nn.relu,
        dropout=None,
        input_layer_partitioner=None,
        config=None,
        warm_start_from=None,
        batch_norm=False,
    ):
        columns = tuple(feature_columns or [])

        def model_fn(features, labels, mode, config):
            return _dnn_model_fn(
                features=features,
                labels=labels,
                mode=mode,
                head=head,
                hidden_units=hidden_units,
                feature_columns=columns,
                optimizer=optimizer,
                activation_fn=activation_fn,
                dropout=dropout,
                input_layer_partitioner=input_layer_partitioner,
                config=config,
                batch_norm=batch_norm,
            )

        super().__init__(model_fn, model_dir=model_dir, config=config, warm_start_from=warm_start_from)


class DNNClassifier(DNNEstimator):
    """A deep model of classes: `n_classes` numbers, or the words of `label_vocabulary`."""

    def __init__(
        self,
        hidden_units,
        feature_columns,
        model_dir=None,
        n_classes=2,
        weight_column=None,
        label_vocabulary=None,
        optimizer="Adagrad",
        activation_fn=tf.nn.relu,
        dropout=None,
        input_layer_partitioner=None,
        config=None,
        warm_start_from=None,
        loss_reduction=_SUM,
        batch_norm=False,
    ):
        super().__init__(
            binary_or_multi_class_head(n_classes, weight_column, label_vocabulary, loss_reduction),
            hidden_units,
            feature_columns,
            model_dir=model_dir,
            optimizer=optimizer,
            activation_fn=activation_fn,
            dropout=dropout,
            input_layer_partitioner=input_layer_partitioner,
            config=config,
            warm_start_from=warm_start_from,
            batch_norm=batch_norm,
        )


class DNNRegressor(DNNEstimator):
    """A deep model of numbers."""

    def __init__(
        self,
        hidden_units,
        feature_columns,
        model_dir=None,
        label_dimension=1,
        weight_column=None,
        optimizer="Adagrad",
        activation_fn=tf.nn.relu,
        dropout=None,
        input_layer_partitioner=None,
        config=None,
        warm_start_from=None,
        loss_reduction=_SUM,
        batch_norm=False,
    ):
        super().__init__(
            regression_head(weight_column, label_dimension, loss_reduction),
            hidden_units,
            feature_columns,
            model_dir=model_dir,
            optimizer=optimizer,
            activation_fn=activation_fn,
            dropout=dropout,
            input_layer_partitioner=input_layer_partitioner,
            config=config,
            warm_start_from=warm_start_from,
            batch_norm=batch_norm,
        )


class DNNLinearCombinedEstimator(Estimator):
    """A linear and a deep model, their logits added, with a head of your own."""

    def __init__(
        self,
        head,
        model_dir=None,
        linear_feature_columns=None,
        linear_optimizer="Ftrl",
        dnn_feature_columns=None,
        dnn_optimizer="Adagrad",
        dnn_hidden_units=None,
        dnn_activation_fn=tf.nn.relu,
        dnn_dropout=None,
        input_layer_partitioner=None,
        config=None,
        batch_norm=False,
        linear_sparse_combiner="sum",
        warm_start_from=None,
    ):
        linear_columns, dnn_columns = tuple(linear_feature_columns or []), tuple(dnn_feature_columns or [])
        if not linear_columns and not dnn_columns:
            raise ValueError("Either linear_feature_columns or dnn_feature_columns must be defined.")

        def model_fn(features, labels, mode, config):
            return _dnn_linear_combined_model_fn(
                features=features,
                labels=labels,
                mode=mode,
                head=head,
                linear_feature_columns=linear_columns,
                linear_optimizer=linear_optimizer,
                dnn_feature_columns=dnn_columns,
                dnn_optimizer=dnn_optimizer,
                dnn_hidden_units=dnn_hidden_units,
                dnn_activation_fn=dnn_activation_fn,
                dnn_dropout=dnn_dropout,
                input_layer_partitioner=input_layer_partitioner,
                config=config,
                batch_norm=batch_norm,
                linear_sparse_combiner=linear_sparse_combiner,
            )

        super().__init__(model_fn, model_dir=model_dir, config=config, warm_start_from=warm_start_from)


class DNNLinearCombinedClassifier(DNNLinearCombinedEstimator):
    """A linear and a deep model of classes: `n_classes` numbers, or the words of `label_vocabulary`."""

    def __init__(
        self,
        model_dir=None,
        linear_feature_columns=None,
        linear_optimizer="Ftrl",
        dnn_feature_columns=None,
        dnn_optimizer="Adagrad",
        dnn_hidden_units=None,
        dnn_activation_fn=tf.nn.relu,
        dnn_dropout=None,
        n_classes=2,
        weight_column=None,
        label_vocabulary=None,
        input_layer_partitioner=None,
        config=None,
        warm_start_from=None,
        loss_reduction=_SUM,
        batch_norm=False,
        linear_sparse_combiner="sum",
    ):
        super().__init__(
            binary_or_multi_class_head(n_classes, weight_column, label_vocabulary, loss_reduction),
            model_dir=model_dir,
            linear_feature_columns=linear_feature_columns,
            linear_optimizer=linear_optimizer,
            dnn_feature_columns=dnn_feature_columns,
            dnn_optimizer=dnn_optimizer,
            dnn_hidden_units=dnn_hidden_units,
            dnn_activation_fn=dnn_activation_fn,
            dnn_dropout=dnn_dropout,
            input_layer_partitioner=input_layer_partitioner,
            config=config,
            batch_norm=batch_norm,
            linear_sparse_combiner=linear_sparse_combiner,
            warm_start_from=warm_start_from,
        )


class DNNLinearCombinedRegressor(DNNLinearCombinedEstimator):
    """A linear and a deep model of numbers."""

    def __init__(
        self,
        model_dir=None,
        linear_feature_columns=None,
        linear_optimizer="Ftrl",
        dnn_feature_columns=None,
        dnn_optimizer="Adagrad",
        dnn_hidden_units=None,
        dnn_activation_fn=tf.nn.relu,
        dnn_dropout=None,
        label_dimension=1,
        weight_column=None,
        input_layer_partitioner=None,
        config=None,
        warm_start_from=None,
        loss_reduction=_SUM,
        batch_norm=False,
        linear_sparse_combiner="sum",
    ):
        super().__init__(
            regression_head(weight_column, label_dimension, loss_reduction),
            model_dir=model_dir,
            linear_feature_columns=linear_feature_columns,
            linear_optimizer=linear_optimizer,
            dnn_feature_columns=dnn_feature_columns,
            dnn_optimizer=dnn_optimizer,
            dnn_hidden_units=dnn_hidden_units,
            dnn_activation_fn=dnn_activation_fn,
            dnn_dropout=dnn_dropout,
            input_layer_partitioner=input_layer_partitioner,
            config=config,
            batch_norm=batch_norm,
            linear_sparse_combiner=linear_sparse_combiner,
            warm_start_from=warm_start_from,
        )


class BaselineEstimator(Estimator):
    """The best that can be said without looking at the features, with a head of your own."""

    def __init__(self, head, model_dir=None, optimizer="Ftrl", config=None, weight_column=None):
        def model_fn(features, labels, mode, config):
            return _baseline_model_fn(features, labels, mode, head, optimizer, weight_column, config)

        super().__init__(model_fn, model_dir=model_dir, config=config)


class BaselineClassifier(BaselineEstimator):
    """Learns how frequent the classes are."""

    def __init__(
        self,
        model_dir=None,
        n_classes=2,
        weight_column=None,
        label_vocabulary=None,
        optimizer="Ftrl",
        config=None,
        loss_reduction=_SUM,
    ):
        head = binary_or_multi_class_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        super().__init__(head, model_dir, optimizer, config, weight_column)


class BaselineRegressor(BaselineEstimator):
    """Learns the mean of the labels."""

    def __init__(
        self,
        model_dir=None,
        label_dimension=1,
        weight_column=None,
        optimizer="Ftrl",
        config=None,
        loss_reduction=_SUM,
    ):
        head = regression_head(weight_column, label_dimension, loss_reduction)
        super().__init__(head, model_dir, optimizer, config)


def classifier_parse_example_spec(
    feature_columns, label_key, label_dtype=tf.int64, label_default=None, weight_column=None
):
    """What `tf.parse_example` needs to read the features, the label and the weight of a classifier."""
    label = tf1.FixedLenFeature((1,), label_dtype, label_default)
    return _parse_example_spec(feature_columns, label_key, label, weight_column)


def regressor_parse_example_spec(
    feature_columns, label_key, label_dtype=tf.float32, label_default=None, label_dimension=1, weight_column=None
):
    """What `tf.parse_example` needs to read the features, the labels and the weight of a regressor."""
    label = tf1.FixedLenFeature((label_dimension,), label_dtype, label_default)
    return _parse_example_spec(feature_columns, label_key, label, weight_column)


def _parse_example_spec(feature_columns, label_key, label, weight_column):
    spec = tf1.feature_column.make_parse_example_spec(feature_columns)
    if label_key in spec:
        raise ValueError(f"label should not be used as feature. label_key: {label_key}, features: {list(spec)}")
    spec[label_key] = label
    if weight_column is None:
        return spec
    column = tf.feature_column.numeric_column(weight_column) if isinstance(weight_column, str) else weight_column
    if column.key in spec:
        raise ValueError(f"weight_column should not be used as feature. weight_column: {column.key}")
    spec.update(column.parse_example_spec)
    return spec
