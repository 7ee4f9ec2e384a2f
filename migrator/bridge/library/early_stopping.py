"""Hooks that end a training early, by the metrics of its evaluations."""

import operator
import os

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from .exporting import summaries_of_events
from .unseen import unseen_runs_before


def read_eval_metrics(eval_dir):
    """The metrics in the event files of a folder: {global step: {name: value}}, sorted by step."""
    metrics = {}
    for step, scalars in summaries_of_events(os.path.join(eval_dir, "events.out.tfevents.*")):
        if scalars:
            metrics.setdefault(step, {}).update(scalars)
    return dict(sorted(metrics.items()))


def make_early_stopping_hook(estimator, should_stop_fn, run_every_secs=60, run_every_steps=None):
    """A hook that ends the training of all workers when `should_stop_fn()` is true.

    The chief asks, every `run_every_secs` seconds or every `run_every_steps` steps (the other one must be None).
    """
    if not callable(getattr(estimator, "train", None)):
        raise TypeError(f"estimator must be an Estimator; got {type(estimator)}")
    if run_every_secs is not None and run_every_steps is not None:
        raise ValueError("only one of run_every_secs and run_every_steps can be given; set the other one to None")
    if estimator.config.is_chief:
        return _StopOnPredicateHook(should_stop_fn, run_every_secs, run_every_steps)
    return _CheckForStoppingHook()


def stop_if_higher_hook(
    estimator, metric_name, threshold, eval_dir=None, min_steps=0, run_every_secs=60, run_every_steps=None
):
    """A hook that ends the training when an evaluation's metric is higher than `threshold`."""
    should_stop = _threshold_crossed(estimator, metric_name, threshold, operator.gt, eval_dir, min_steps)
    return make_early_stopping_hook(estimator, should_stop, run_every_secs, run_every_steps)


def stop_if_lower_hook(
    estimator, metric_name, threshold, eval_dir=None, min_steps=0, run_every_secs=60, run_every_steps=None
):
    """A hook that ends the training when an evaluation's metric is lower than `threshold`."""
    should_stop = _threshold_crossed(estimator, metric_name, threshold, operator.lt, eval_dir, min_steps)
    return make_early_stopping_hook(estimator, should_stop, run_every_secs, run_every_steps)


def stop_if_no_increase_hook(
    estimator,
    metric_name,
    max_steps_without_increase,
    eval_dir=None,
    min_steps=0,
    run_every_secs=60,
    run_every_steps=None,
):
    """A hook that ends the training when a metric has not increased for `max_steps_without_increase` steps."""
    should_stop = _no_improvement(estimator, metric_name, max_steps_without_increase, operator.gt, eval_dir, min_steps)
    return make_early_stopping_hook(estimator, should_stop, run_every_secs, run_every_steps)


def stop_if_no_decrease_hook(
    estimator,
    metric_name,
    max_steps_without_decrease,
    eval_dir=None,
    min_steps=0,
    run_every_secs=60,
    run_every_steps=None,
):
    """A hook that ends the training when a metric has not decreased for `max_steps_without_decrease` steps."""
    should_stop = _no_improvement(estimator, metric_name, max_steps_without_decrease, operator.lt, eval_dir, min_steps)
    return make_early_stopping_hook(estimator, should_stop, run_every_secs, run_every_steps)


def _threshold_crossed(estimator, metric_name, threshold, is_better, eval_dir, min_steps):
    """A function that says whether a metric of any evaluation from `min_steps` on is beyond the threshold."""
    eval_dir = estimator.eval_dir() if eval_dir is None else eval_dir

    def should_stop():
        for step, metrics in read_eval_metrics(eval_dir).items():
            if step >= min_steps and is_better(metrics[metric_name], threshold):
                tf1.logging.info("%s is %s at step %s: stopping early", metric_name, metrics[metric_name], step)
                return True
        return False

    return should_stop


def _no_improvement(estimator, metric_name, max_steps, is_better, eval_dir, min_steps):
    """A function that says whether a metric was once, from `min_steps` on, no better for `max_steps` steps."""
    eval_dir = estimator.eval_dir() if eval_dir is None else eval_dir

    def should_stop():
        best = best_step = None
        for step, metrics in read_eval_metrics(eval_dir).items():
            if step < min_steps:
                continue
            if best is None or is_better(metrics[metric_name], best):
                best, best_step = metrics[metric_name], step
            if step - best_step >= max_steps:
                tf1.logging.info("%s has not improved for %s steps: stopping early", metric_name, step - best_step)
                return True
        return False

    return should_stop


def _stop_variable():
    """The variable by which the chief tells all workers to stop."""
    with tf1.variable_scope("signal_early_stopping", reuse=tf1.AUTO_REUSE):
        return tf1.get_variable(
            "STOP",
            shape=[],
            dtype=tf.bool,
            initializer=tf1.constant_initializer(False),
            collections=[tf1.GraphKeys.GLOBAL_VARIABLES],
            trainable=False,
        )


class _StopOnPredicateHook(tf1.train.SessionRunHook):
    """The chief's: asks now and then, and tells all when it is time."""

    def __init__(self, should_stop_fn, run_every_secs=60, run_every_steps=None):
        if not callable(should_stop_fn):
            raise TypeError("should_stop_fn must be callable")
        self._should_stop_fn = should_stop_fn
        self._timer = tf1.train.SecondOrStepTimer(every_secs=run_every_secs, every_steps=run_every_steps)

    def begin(self):
        """Makes the variable, and what sets it."""
        self._global_step = tf1.train.get_global_step()
        self._stop = tf1.assign(_stop_variable(), True)

    def before_run(self, run_context):
        """Asks for the step."""
        return tf1.train.SessionRunArgs(self._global_step)

    def unseen_runs(self, step):
        """How many runs, the next of which begins at this global step, this hook need not see."""
        return unseen_runs_before(self._timer, step + 1)

    def after_run(self, run_context, run_values):
        """Stops if it is time to ask and the answer is yes."""
        step = run_values.results
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            if self._should_stop_fn():
                tf1.logging.info("Stopping early at global step %d", step)
                run_context.session.run(self._stop)
                run_context.request_stop()


class _CheckForStoppingHook(tf1.train.SessionRunHook):
    """The other workers': stops when the chief has said so."""

    def begin(self):
        """Makes the variable."""
        self._stop = _stop_variable()

    def before_run(self, run_context):
        """Asks for the variable."""
        return tf1.train.SessionRunArgs(self._stop)

    def after_run(self, run_context, run_values):
        """Stops if the chief has said so."""
        if run_values.results:
            run_context.request_stop()
