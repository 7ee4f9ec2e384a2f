"""TPUEstimator, with a TPU and without: its batch sizes, host calls and metrics, on the Estimator of this module."""

from __future__ import annotations

import collections
import functools
import threading

import tensorflow as tf

from .config import RunConfig
from .estimator import Estimator
from .specs import EstimatorSpec, ModeKeys
from .tpu_cores import BatchesOfCores, ModelOnCores


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
        if embedding_config_spec is not None:
            raise NotImplementedError("embedding_config_spec: keep the tables in the model, as `tf.feature_column`s.")
        if params is not None and "batch_size" in params:
            raise ValueError("params cannot have the key batch_size: TPUEstimator gives it the batch size of the mode.")
        self._batch_sizes = {
            ModeKeys.TRAIN: train_batch_size,
            ModeKeys.EVAL: eval_batch_size,
            ModeKeys.PREDICT: predict_batch_size,
        }
        if use_tpu and config is not None and not hasattr(config, "tpu_config"):
            raise ValueError("`config` of a TPUEstimator has to be the RunConfig of tf.estimator.tpu.")
        self._use_tpu = bool(use_tpu)
        self._eval_on_tpu = eval_on_tpu
        super().__init__(model_fn, model_dir, config or TPURunConfig(), params, warm_start_from)

    def _runs_on_tpu(self, mode):
        return self._use_tpu and (self._eval_on_tpu or mode != ModeKeys.EVAL)

    def _params_in(self, mode):
        return self._with_batch_size(mode, 1)

    def _with_batch_size(self, mode, divisor, **further):
        """The params with the batch size of a mode, or a part of it, and whether the mode runs on a TPU."""
        params = self.params
        size = self._batch_sizes.get(mode)
        added = {"use_tpu": self._runs_on_tpu(mode), **further}
        if size is not None:
            added["batch_size"] = size // divisor
        for key, value in added.items():
            if not hasattr(params, "add_hparam"):
                params[key] = value
            elif key in params:
                params.set_hparam(key, value)
            else:
                params.add_hparam(key, value)
        return params

    def _model(self, input_fn, mode, strategy):
        if not self._runs_on_tpu(mode):
            return super()._model(input_fn, mode, strategy)
        strategy, settings, seed = tpu_strategy(self._config), self._config.tpu_config, self._config.tf_random_seed
        cores, size = strategy.num_replicas_in_sync, self._batch_sizes[mode]
        if settings.num_cores_per_replica not in (None, 1) or settings.input_partition_dims is not None:
            raise NotImplementedError("TPUConfig: a model that is divided between cores is not supported.")
        if size is None:
            raise ValueError(f"The batch size of mode {mode} has to be set on a TPU.")
        if size % cores:
            raise ValueError(f"The batch size of mode {mode}, {size}, cannot be divided among {cores} cores.")
        kind, kinds = settings.per_host_input_for_training, InputPipelineConfig
        of_each = kind == kinds.PER_HOST_V2 or (mode == ModeKeys.TRAIN and kind in (False, kinds.PER_SHARD_V1))
        shared = kind == kinds.BROADCAST
        of_input = self._with_batch_size(mode, cores if of_each else 1, context=TPUContext(cores, of_each))
        of_core = self._with_batch_size(mode, 1 if shared else cores)
        data = BatchesOfCores(
            lambda context: self._call_input_fn(input_fn, mode, context, of_input),
            cores,
            of_each,
            shared,
            size if mode == ModeKeys.PREDICT else None,
            seed,
        )
        model = ModelOnCores(
            lambda features, labels=None: self._spec_of_model_fn(features, labels, mode, self.config, of_core),
            data,
            strategy,
            seed,
        )
        return model, data


class TPUContext:
    """What an input_fn is told of the TPU, as `params["context"]`."""

    def __init__(self, cores, of_each):
        self.num_replicas = self.num_cores = self.num_of_replicas_per_host = cores
        self.num_hosts = 1
        self.current_host = 0
        self._calls = cores if of_each else 1

    def current_input_fn_deployment(self):
        """The device of this call, its number, how many calls there are, and how many cores each is for."""
        return "/cpu:0", 0, 1, self.num_replicas


def tpu_strategy(config):
    """The strategy of the TPU that a RunConfig names, which is set up once. Raises RuntimeError where there is none."""
    resolver = config.cluster
    address = config.master if resolver is None else resolver.master()
    known = tpu_strategy.known = getattr(tpu_strategy, "known", {})
    if address not in known:
        try:
            if resolver is None:
                resolver = tf.distribute.cluster_resolver.TPUClusterResolver(address or "local")
            tf.config.experimental_connect_to_cluster(resolver)
            tf.tpu.experimental.initialize_tpu_system(resolver)
        except (ValueError, tf.errors.OpError) as error:
            raise RuntimeError(
                f"There is no TPU at {address!r}. Give the RunConfig `cluster`, the resolver of one, or TPUEstimator "
                "`use_tpu=False`."
            ) from error
        known[address] = tf.distribute.TPUStrategy(resolver)
    return known[address]


class CrossShardOptimizer(tf.compat.v1.train.Optimizer):
    """Applies the gradients of all cores together; without a TPU the optimizer in it."""

    def __init__(
        self, opt, reduction=tf.compat.v1.losses.Reduction.MEAN, name="CrossShardOptimizer", group_assignment=None
    ):
        if group_assignment is not None:
            raise NotImplementedError("group_assignment: all cores train together here.")
        super().__init__(False, name)
        self._opt = opt
        self._sums = reduction == tf.compat.v1.losses.Reduction.SUM

    def compute_gradients(self, loss, var_list=None, **kwargs):
        """See the base class. Optimizers divide the loss by the number of cores, whose gradients are added up."""
        cores = tf.distribute.get_strategy().num_replicas_in_sync
        return self._opt.compute_gradients(loss * cores if self._sums and cores > 1 else loss, var_list, **kwargs)

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        """See the base class."""
        base = tf.compat.v1.train.Optimizer
        if tf.distribute.get_strategy().num_replicas_in_sync == 1:
            return self._opt.apply_gradients(grads_and_vars, global_step, name)
        if type(self._opt).apply_gradients is base.apply_gradients:  # which adds them up itself
            return self._opt.apply_gradients(grads_and_vars, global_step, name)
        grads_and_vars = list(grads_and_vars)
        summed = iter(cross_replica_sum([gradient for gradient, _ in grads_and_vars if gradient is not None]))
        grads_and_vars = [(one if one is None else next(summed), variable) for one, variable in grads_and_vars]
        _let_optimizers_take_sums()
        thread = threading.current_thread()  # each core has its own
        thread.gradients_are_sums = True
        try:
            return self._opt.apply_gradients(grads_and_vars, global_step, name)
        finally:
            thread.gradients_are_sums = False

    def get_slot(self, *args, **kwargs):
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args, **kwargs):
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self):
        return self._opt.variables()


def _let_optimizers_take_sums():
    """Lets an optimizer of TensorFlow that one of the program's own calls not add sums of all cores up once more."""
    kind = tf.compat.v1.train.Optimizer
    apply = kind.apply_gradients
    if hasattr(kind, "takes_sums"):
        return

    @functools.wraps(apply)
    def apply_gradients(optimizer, grads_and_vars, *args, **kwargs):
        if getattr(threading.current_thread(), "gradients_are_sums", False):
            part = 1.0 / tf.distribute.get_strategy().num_replicas_in_sync
            grads_and_vars = [(_times(part, gradient), variable) for gradient, variable in grads_and_vars]
        return apply(optimizer, grads_and_vars, *args, **kwargs)

    kind.apply_gradients, kind.takes_sums = apply_gradients, True


def _times(factor, gradient):
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(gradient.values * factor, gradient.indices, gradient.dense_shape)
    return None if gradient is None else gradient * factor


def cross_replica_sum(x, group_assignment=None, name=None):
    """The sum of a tensor, or of several, over all cores."""
    if group_assignment is not None:
        raise NotImplementedError("group_assignment: sums are those of all cores here.")
    if tf.distribute.get_strategy().num_replicas_in_sync == 1:
        return x
    return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, x)
