"""TPUEstimator as it runs without a TPU: its batch sizes, host calls and metrics, on the Estimator of this module."""

from __future__ import annotations

import collections

import tensorflow as tf

from .config import RunConfig
from .estimator import Estimator
from .specs import EstimatorSpec, ModeKeys


class InputPipelineConfig:
    """How often an input_fn is called on a TPU."""

    PER_SHARD_V1 = 1
    PER_HOST_V1 = 2
    PER_HOST_V2 = 3
    BROADCAST = 4
    SLICED = 5


class TPUConfig(
    collections.namedtuple(
        "TPUConfig",
        [
            "iterations_per_loop",
            "num_shards",
            "num_cores_per_replica",
            "per_host_input_for_training",
            "tpu_job_name",
            "initial_infeed_sleep_secs",
            "input_partition_dims",
            "eval_training_input_configuration",
            "experimental_host_call_every_n_steps",
        ],
        defaults=[2, None, None, True, None, None, None, InputPipelineConfig.PER_HOST_V1, 1],
    )
):
    """The settings of a TPU; without one they change nothing."""


class TPURunConfig(RunConfig):
    """A RunConfig with the settings of a TPU."""

    def __init__(self, tpu_config=None, evaluation_master=None, master=None, cluster=None, **settings):
        super().__init__(**settings)
        self.tpu_config = tpu_config or TPUConfig()
        self.cluster = cluster
        self.master = master or self.master
        self.evaluation_master = evaluation_master or self.master


class TPUEstimatorSpec(
    collections.namedtuple(
        "TPUEstimatorSpec",
        [
            "mode",
            "predictions",
            "loss",
            "train_op",
            "eval_metrics",
            "export_outputs",
            "scaffold_fn",
            "host_call",
            "training_hooks",
            "evaluation_hooks",
            "prediction_hooks",
        ],
        defaults=[None] * 10,
    )
):
    """What the model_fn of a TPUEstimator returns: its metrics are a function and the tensors it is called with."""

    def as_estimator_spec(self):
        """The same for an Estimator."""
        called = _called(self.host_call)
        hooks = () if called is None else (RunEachStep(called),)
        return EstimatorSpec(
            mode=self.mode,
            predictions=self.predictions,
            loss=self.loss,
            train_op=self.train_op,
            eval_metric_ops=_called(self.eval_metrics) if self.mode == ModeKeys.EVAL else None,
            export_outputs=self.export_outputs,
            scaffold=self.scaffold_fn() if self.scaffold_fn else None,
            training_hooks=(*(self.training_hooks or ()), *hooks),
            evaluation_hooks=(*(self.evaluation_hooks or ()), *hooks),
            prediction_hooks=(*(self.prediction_hooks or ()), *hooks),
        )


def _called(call):
    """What a function returns for its tensors, which are a list or a dict."""
    if call is None:
        return None
    function, tensors = call
    return function(**tensors) if isinstance(tensors, dict) else function(*tensors)


class RunEachStep(tf.compat.v1.train.SessionRunHook):
    """Computes something in every step, and passes it over."""

    def __init__(self, fetches):
        self.computed_in_each_step = fetches

    def before_run(self, run_context):
        return tf.compat.v1.train.SessionRunArgs(self.computed_in_each_step)

    def unseen_runs(self, step):
        """How many runs this hook need not see: all, where they compute its fetches."""
        del step
        return 10**9


class TPUEstimator(Estimator):
    """An Estimator whose `params` have the batch size of the mode, for the input_fn and the model_fn."""

    def __init__(
        self,
        model_fn=None,
        model_dir=None,
        config=None,
        params=None,
        use_tpu=True,
        train_batch_size=None,
        eval_batch_size=None,
        predict_batch_size=None,
        batch_axis=None,
        eval_on_tpu=True,
        export_to_tpu=True,
        export_to_cpu=True,
        warm_start_from=None,
        embedding_config_spec=None,
        export_saved_model_api_version=None,
    ):
        if use_tpu:
            raise NotImplementedError(
                "This TPUEstimator runs on CPUs and GPUs: give it use_tpu=False. For a TPU the training has to be "
                "written with tf.distribute.TPUStrategy."
            )
        if embedding_config_spec is not None:
            raise NotImplementedError("embedding_config_spec needs a TPU.")
        if params is not None and "batch_size" in params:
            raise ValueError("params cannot have the key batch_size: TPUEstimator gives it the batch size of the mode.")
        self._batch_sizes = {
            ModeKeys.TRAIN: train_batch_size,
            ModeKeys.EVAL: eval_batch_size,
            ModeKeys.PREDICT: predict_batch_size,
        }
        super().__init__(model_fn, model_dir, config or TPURunConfig(), params, warm_start_from)

    def _params_in(self, mode):
        params = self.params
        size = self._batch_sizes.get(mode)
        if size is not None:
            if hasattr(params, "add_hparam"):
                params.add_hparam("batch_size", size)
            else:
                params["batch_size"] = size
        return params
