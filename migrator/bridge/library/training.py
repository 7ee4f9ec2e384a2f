"""`train_and_evaluate`: on one machine, or as the task of a cluster that TF_CONFIG names."""

from __future__ import annotations

import os
import time

import tensorflow as tf

from .config import TaskType

# Who evaluates new checkpoints on a cluster: its "evaluator" task, or the "coordinator", while the others wait.
EVALUATES_ON = "evaluator"


def train_and_evaluate(estimator, train_spec, eval_spec):
    """Trains, and evaluates every new checkpoint; in a cluster, does what the task of TF_CONFIG has to do.

    Returns what the last evaluation found and what was exported then, where this process did both.
    """
    config = estimator.config
    if config.task_type == TaskType.EVALUATOR:
        if EVALUATES_ON == "evaluator":
            _evaluate_checkpoints(estimator, train_spec, eval_spec)
        return None
    on_cluster = config.num_ps_replicas > 0 or config.num_worker_replicas > 1
    evaluates = config.is_chief and EVALUATES_ON == "coordinator"
    evaluates |= config.task_type == TaskType.MASTER and config.num_ps_replicas > 0  # a master always does
    if on_cluster and not evaluates:
        _train(estimator, train_spec)
        return None
    listener = EvaluatingListener(estimator, train_spec, eval_spec)
    _train(estimator, train_spec, [listener])
    return listener.results, listener.exports


def _train(estimator, spec, listeners=()):
    estimator.train(
        spec.input_fn,
        hooks=list(spec.hooks),
        max_steps=spec.max_steps,
        saving_listeners=[*spec.saving_listeners, *listeners],
    )


def _evaluate_and_export(estimator, train_spec, eval_spec, checkpoint):
    """Evaluates a checkpoint and runs the exporters; returns what was found, what was exported, and whether it is the
    last.
    """
    results = estimator.evaluate(
        eval_spec.input_fn,
        steps=eval_spec.steps,
        hooks=list(eval_spec.hooks),
        checkpoint_path=checkpoint,
        name=eval_spec.name,
    )
    last = train_spec.max_steps is not None and results["global_step"] >= train_spec.max_steps
    exports = [
        exporter.export(
            estimator=estimator,
            export_path=os.path.join(estimator.model_dir, "export", exporter.name),
            checkpoint_path=checkpoint,
            eval_result=results,
            is_the_final_export=last,
        )
        for exporter in eval_spec.exporters
    ]
    return results, exports, last


class EvaluatingListener(tf.compat.v1.train.CheckpointSaverListener):
    """Evaluates new checkpoints while the training waits: not the first, and not more often than the spec allows."""

    def __init__(self, estimator, train_spec, eval_spec):
        self._specs = estimator, train_spec, eval_spec
        self._timer = None
        self._first = True
        self.results = None
        self.exports = None

    def begin(self):
        self._timer = tf.compat.v1.train.SecondOrStepTimer(every_secs=self._specs[2].throttle_secs)
        self._first = True

    def after_save(self, session, global_step_value):
        if self._first:  # nothing has been trained yet
            self._first = False
        elif self._timer.should_trigger_for_step(global_step_value):
            self._evaluate(global_step_value)

    def end(self, session, global_step_value):
        if global_step_value != self._timer.last_triggered_step():
            self._evaluate(global_step_value)

    def _evaluate(self, step):
        self._timer.update_last_triggered_step(step)
        estimator, train_spec, eval_spec = self._specs
        with tf.init_scope():  # out of the graph that is trained
            self.results, self.exports, _ = _evaluate_and_export(
                estimator, train_spec, eval_spec, estimator.latest_checkpoint()
            )


def _evaluate_checkpoints(estimator, train_spec, eval_spec):
    """What the evaluator of a cluster does: evaluates new checkpoints, up to that of the last step."""
    time.sleep(eval_spec.start_delay_secs)
    before, last = None, False
    while not last:
        started = time.monotonic()
        checkpoint = estimator.latest_checkpoint()
        if checkpoint is not None and checkpoint != before:
            _, _, last = _evaluate_and_export(estimator, train_spec, eval_spec, checkpoint)
            before = checkpoint
        if not last:
            time.sleep(max(1.0, eval_spec.throttle_secs - (time.monotonic() - started)))
