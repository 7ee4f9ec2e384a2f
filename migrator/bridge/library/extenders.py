"""What makes one Estimator of another, and hooks that know their Estimator."""

import inspect
import os
import tempfile
import time

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from .estimator import Estimator
from .exporting import PredictOutput
from .specs import ModeKeys


def add_metrics(estimator, metric_fn):
    """An Estimator that evaluates with more metrics.

    `metric_fn` takes any of `features`, `labels`, `predictions` and `config`, by these names, and returns metrics by
    name, as `eval_metric_ops` has them; it wins over those that the Estimator has of that name.
    """
    arguments = set(inspect.signature(metric_fn).parameters)
    if not arguments <= {"features", "labels", "predictions", "config"}:
        raise ValueError(f"metric_fn may take features, labels, predictions and config; it takes {arguments}")

    def model_fn(features, labels, mode, config):
        spec = estimator.model_fn(features, labels, mode, config)
        if mode != ModeKeys.EVAL:
            return spec
        given = {"features": features, "labels": labels, "predictions": spec.predictions, "config": config}
        metrics = metric_fn(**{name: given[name] for name in arguments})
        return spec._replace(eval_metric_ops={**(spec.eval_metric_ops or {}), **metrics})

    return Estimator(
        model_fn,
        model_dir=estimator.model_dir,
        config=estimator.config,
        warm_start_from=estimator._warm_start_settings,
    )


def forward_features(estimator, keys=None, sparse_default_values=None):
    """An Estimator whose predictions have features beside them.

    Args:
        estimator: the Estimator.
        keys: the features' name, or a list of names; None: all features.
        sparse_default_values: what fills the gaps of sparse features, by name.
    """
    keys = [keys] if isinstance(keys, str) else keys
    if keys is not None and not (isinstance(keys, (list, tuple)) and all(isinstance(key, str) for key in keys)):
        raise TypeError(f"keys must be a string or a list of strings; got {keys}")

    def model_fn(features, labels, mode, config):
        spec = estimator.model_fn(features, labels, mode, config)
        if spec.predictions is None:
            return spec
        if not isinstance(spec.predictions, dict):
            raise ValueError(f"predictions must be a dictionary to forward features; got {type(spec.predictions)}")
        forwarded = {}
        for key in features if keys is None else keys:
            if key not in features:
                raise ValueError(f"the key {key!r} is not in features: {list(features)}")
            if key in spec.predictions:
                raise ValueError(f"the key {key!r} is in predictions already: {list(spec.predictions)}")
            forwarded[key] = _dense_feature(key, features[key], sparse_default_values or {})
        for name in ("predict", "serving_default"):
            output = (spec.export_outputs or {}).get(name)
            if isinstance(output, PredictOutput):
                output.outputs.update(forwarded)
        return spec._replace(predictions={**spec.predictions, **forwarded})

    return Estimator(model_fn, model_dir=estimator.model_dir, config=estimator.config)


def _dense_feature(key, feature, sparse_default_values):
    if key in sparse_default_values:
        if not isinstance(feature, tf.SparseTensor):
            raise ValueError(f"the feature {key!r} must be a SparseTensor")
        return tf.sparse.to_dense(feature, default_value=sparse_default_values[key])
    if isinstance(feature, tf.SparseTensor):
        raise ValueError(f"the feature {key!r} is sparse; leave it out of keys, or give it a sparse_default_value")
    return tf.convert_to_tensor(feature)


def clip_gradients_by_norm(optimizer, clip_norm):
    """An optimizer that clips all gradients together to a norm before it applies them."""

    def clip(grads_and_vars):
        gradients, variables = zip(*grads_and_vars, strict=True)
        return list(zip(tf.clip_by_global_norm(gradients, clip_norm)[0], variables, strict=True))

    return _TransformGradients(optimizer, clip, name="ClipByNorm" + optimizer.get_name())


class _TransformGradients(tf1.train.Optimizer):
    """An optimizer that changes the gradients before it applies them."""

    def __init__(self, optimizer, transform, name):
        super().__init__(use_locking=False, name=name)
        self._optimizer = optimizer
        self._transform = transform

    def compute_gradients(self, *args, **kwargs):
        """The optimizer's own."""
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        """Changes the gradients, and applies them."""
        return self._optimizer.apply_gradients(self._transform(grads_and_vars), global_step, name)

    def get_slot(self, *args, **kwargs):
        """The optimizer's own."""
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args, **kwargs):
        """The optimizer's own."""
        return self._optimizer.get_slot_names(*args, **kwargs)

    def variables(self):
        """The optimizer's own."""
        return self._optimizer.variables()


def call_logit_fn(logit_fn, features, mode, params, config):
    """Calls a logit_fn with those of the arguments that it takes; it gives a tensor, or a dictionary of tensors."""
    given = {"mode": mode, "params": params, "config": config}
    taken = inspect.signature(logit_fn).parameters
    logits = logit_fn(features=features, **{name: value for name, value in given.items() if name in taken})
    if not (tf.is_tensor(logits) or isinstance(logits, dict)):
        raise ValueError(f"a logit_fn must return a tensor or a dictionary of tensors; got {logits}")
    return logits


def make_stop_at_checkpoint_step_hook(estimator, last_step, wait_after_file_check_secs=30):
    """A hook that ends the training at a step; workers besides the chief wait for the checkpoint of that step."""
    if estimator.config.is_chief:
        return tf1.train.StopAtStepHook(last_step=last_step)
    return _StopAtCheckpointStepHook(estimator.model_dir, last_step, wait_after_file_check_secs)


class _StopAtCheckpointStepHook(tf1.train.SessionRunHook):
    """Ends the training once a checkpoint of the last step has been written."""

    def __init__(self, model_dir, last_step, wait_after_file_check_secs):
        self._model_dir = model_dir
        self._last_step = last_step
        self._wait = wait_after_file_check_secs

    def begin(self):
        """Finds the step."""
        self._global_step = tf1.train.get_global_step()

    def before_run(self, run_context):
        """Asks for the step."""
        return tf1.train.SessionRunArgs(self._global_step)

    def after_run(self, run_context, run_values):
        """Ends the training, or waits before the next look at the checkpoints."""
        if run_values.results + 1 < self._last_step:
            return
        newest = tf.train.latest_checkpoint(self._model_dir)
        if newest and tf.train.load_variable(newest, "global_step") >= self._last_step:
            run_context.request_stop()
        else:
            time.sleep(self._wait)


class InMemoryEvaluatorHook(tf1.train.SessionRunHook):
    """Evaluates before the training, every `every_n_iter` steps, and at its end, with the values of that moment."""

    def __init__(self, estimator, input_fn, steps=None, hooks=None, name=None, every_n_iter=100):
        if every_n_iter is None or every_n_iter <= 0:
            raise ValueError(f"invalid every_n_iter={every_n_iter}.")
        if estimator.config.num_ps_replicas > 0 or estimator.config.num_worker_replicas > 1:
            raise ValueError("InMemoryEvaluator supports only single machine (aka Local) setting.")
        self._estimator = estimator
        self._evaluation = {"input_fn": input_fn, "steps": steps, "hooks": hooks, "name": name}
        self._timer = tf1.train.SecondOrStepTimer(every_steps=every_n_iter)

    def begin(self):
        """Starts to count."""
        self._timer.reset()
        self._iterations = 0

    def after_create_session(self, session, coord):
        """Evaluates before the training."""
        self._variables = tf1.global_variables()
        self._evaluate(session)

    def after_run(self, run_context, run_values):
        """Evaluates if it is time."""
        self._iterations += 1
        if self._timer.should_trigger_for_step(self._iterations):
            self._evaluate(run_context.session)

    def end(self, session):
        """Evaluates at the end."""
        self._evaluate(session)

    def _evaluate(self, session):
        values = session.run(self._variables)
        pieces = [getattr(variable, "_save_slice_info", None) for variable in self._variables]  # of split variables
        names = [variable.name.split(":")[0] for variable in self._variables]
        with tempfile.TemporaryDirectory() as folder, tf.init_scope():
            checkpoint = os.path.join(folder, "values")
            tf.raw_ops.SaveV2(
                prefix=checkpoint,
                tensor_names=[p.full_name if p else name for p, name in zip(pieces, names, strict=True)],
                shape_and_slices=[piece.spec if piece else "" for piece in pieces],
                tensors=values,
            )
            self._estimator.evaluate(**self._evaluation, checkpoint_path=checkpoint)
        self._timer.update_last_triggered_step(self._iterations)
