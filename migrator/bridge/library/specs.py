"""What describes a training: the modes of a model_fn, what it returns, and what is to be run."""

from __future__ import annotations

import collections

import tensorflow as tf


class ModeKeys:
    """What a model_fn is called for."""

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"


class EstimatorSpec(
    collections.namedtuple(
        "EstimatorSpec",
        [
            "mode",
            "predictions",
            "loss",
            "train_op",
            "eval_metric_ops",
            "export_outputs",
            "training_chief_hooks",
            "training_hooks",
            "scaffold",
            "evaluation_hooks",
            "prediction_hooks",
        ],
    )
):
    """What a model_fn returns: the tensors and operations of one mode."""

    def __new__(
        cls,
        mode,
        predictions=None,
        loss=None,
        train_op=None,
        eval_metric_ops=None,
        export_outputs=None,
        training_chief_hooks=None,
        training_hooks=None,
        scaffold=None,
        evaluation_hooks=None,
        prediction_hooks=None,
    ):
        if mode == ModeKeys.TRAIN and train_op is None:
            raise ValueError("Missing train_op.")
        if mode in (ModeKeys.TRAIN, ModeKeys.EVAL) and loss is None:
            raise ValueError("Missing loss.")
        if mode == ModeKeys.PREDICT and predictions is None:
            raise ValueError("Missing predictions.")
        if loss is not None:
            loss = tf.convert_to_tensor(loss)
            if loss.shape.rank is not None and loss.shape.num_elements() not in (None, 1):
                raise ValueError(f"Loss must be a scalar, given: {loss}")
            if loss.shape.rank not in (0, None):
                loss = tf.reshape(loss, [])
        return super().__new__(
            cls,
            mode,
            {} if predictions is None else predictions,
            loss,
            train_op,
            eval_metric_ops or {},
            export_outputs,
            tuple(training_chief_hooks or ()),
            tuple(training_hooks or ()),
            scaffold or tf.compat.v1.train.Scaffold(),
            tuple(evaluation_hooks or ()),
            tuple(prediction_hooks or ()),
        )


class TrainSpec(collections.namedtuple("TrainSpec", ["input_fn", "max_steps", "hooks", "saving_listeners"])):
    """What `train_and_evaluate` trains on, and until which global step."""

    def __new__(cls, input_fn, max_steps=None, hooks=None, saving_listeners=None):
        if max_steps is not None and max_steps <= 0:
            raise ValueError(f"Must specify max_steps > 0, given: {max_steps}")
        return super().__new__(cls, input_fn, max_steps, tuple(hooks or ()), tuple(saving_listeners or ()))


class EvalSpec(
    collections.namedtuple(
        "EvalSpec", ["input_fn", "steps", "name", "hooks", "exporters", "start_delay_secs", "throttle_secs"]
    )
):
    """What `train_and_evaluate` evaluates on, and how often; `steps=None` is all of the data."""

    def __new__(
        cls, input_fn, steps=100, name=None, hooks=None, exporters=None, start_delay_secs=120, throttle_secs=600
    ):
        if steps is not None and steps <= 0:
            raise ValueError(f"Must specify steps > 0, given: {steps}")
        if exporters is not None and not isinstance(exporters, (list, tuple)):
            exporters = (exporters,)
        return super().__new__(
            cls, input_fn, steps, name, tuple(hooks or ()), tuple(exporters or ()), start_delay_secs, throttle_secs
        )


class WarmStartSettings(
    collections.namedtuple(
        "WarmStartSettings",
        [
            "ckpt_to_initialize_from",
            "vars_to_warm_start",
            "var_name_to_vocab_info",
            "var_name_to_prev_var_name",
        ],
        defaults=[".*", None, None],
    )
):
    """Which variables start from those of another training, and under which names."""
