"""What tf.contrib.learn put around an Estimator: experiments, how they are run, and their settings."""

import json
import math
import os
import time

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from .config import RunConfig
from .exporting import _delete_old_exports


class LearnModeKeys:
    """What a model_fn of tf.contrib.learn is called for."""

    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"

    @classmethod
    def validate(cls, key):
        """Raises a ValueError for what is none of them."""
        if key not in (cls.TRAIN, cls.EVAL, cls.INFER):
            raise ValueError(f"Invalid mode {key}.")


class LearnRunConfig(RunConfig):
    """RunConfig with the arguments of tf.contrib.learn, and checkpoints every ten minutes if nothing else is said."""

    def __init__(
        self,
        master=None,
        num_cores=0,
        log_device_placement=False,
        gpu_memory_fraction=1,
        tf_random_seed=None,
        save_summary_steps=100,
        save_checkpoints_secs=600,
        save_checkpoints_steps=None,
        keep_checkpoint_max=5,
        keep_checkpoint_every_n_hours=10000,
        log_step_count_steps=100,
        protocol=None,
        evaluation_master="",
        model_dir=None,
        session_config=None,
        session_creation_timeout_secs=7200,
    ):
        super().__init__(
            model_dir=model_dir,
            tf_random_seed=tf_random_seed,
            save_summary_steps=save_summary_steps,
            save_checkpoints_steps=save_checkpoints_steps,
            save_checkpoints_secs=save_checkpoints_secs if save_checkpoints_steps is None else None,
            session_config=session_config,
            keep_checkpoint_max=keep_checkpoint_max,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            log_step_count_steps=log_step_count_steps,
            protocol=protocol,
            session_creation_timeout_secs=session_creation_timeout_secs,
        )
        self.tf_config = tf1.ConfigProto(
            log_device_placement=log_device_placement,
            inter_op_parallelism_threads=num_cores,
            intra_op_parallelism_threads=num_cores,
            gpu_options=tf1.GPUOptions(per_process_gpu_memory_fraction=gpu_memory_fraction),
        )
        self.environment = json.loads(os.environ.get("TF_CONFIG") or "{}").get("environment", "local")
        if master is not None:
            self.master = master
        if evaluation_master:
            self.evaluation_master = evaluation_master


class ExportStrategy:
    """What an experiment exports, and under which name below `export`."""

    def __init__(self, name, export_fn, strip_default_attrs=None):
        self.name = name
        self.export_fn = export_fn
        self.strip_default_attrs = strip_default_attrs

    def export(self, estimator, export_path, checkpoint_path=None, eval_result=None):
        """Exports; returns the path."""
        return self.export_fn(estimator, export_path, checkpoint_path=checkpoint_path)


def make_export_strategy(
    serving_input_fn,
    default_output_alternative_key=None,
    assets_extra=None,
    as_text=False,
    exports_to_keep=5,
    strip_default_attrs=None,
):
    """Exports a SavedModel into `export/Servo`, and keeps the newest `exports_to_keep` (None: all)."""

    def export_fn(estimator, export_dir_base, checkpoint_path=None, strip_default_attrs=False):
        if default_output_alternative_key is not None and not hasattr(estimator, "fit"):
            raise ValueError("default_output_alternative_key is of models of tf.contrib.learn; name the export_outputs")
        path = estimator.export_saved_model(
            export_dir_base,
            serving_input_fn,
            assets_extra=assets_extra,
            as_text=as_text,
            checkpoint_path=checkpoint_path,
        )
        _delete_old_exports(export_dir_base, exports_to_keep)
        return path

    return ExportStrategy("Servo", export_fn, strip_default_attrs)


class Experiment:
    """An Estimator with what it trains on and what it is evaluated on.

    Args:
        estimator: the Estimator.
        train_input_fn: its data for training.
        eval_input_fn: its data for evaluations.
        eval_metrics: metrics besides the model's, of an Estimator of tf.contrib.learn; None for others.
        train_steps: the global step that training ends at; None: the end of the data.
        eval_steps: batches of an evaluation; None: all.
        train_monitors: hooks of the training.
        eval_hooks: hooks of the evaluations.
        local_eval_frequency: steps between evaluations of `local_run`; None: only at the end.
        eval_delay_secs: seconds before `evaluate` and `continuous_eval` begin.
        continuous_eval_throttle_secs: seconds from one evaluation of `continuous_eval` to the next, at least.
        min_eval_frequency: steps between the evaluations of `train_and_evaluate`, at least; 0: only at the end.
        delay_workers_by_global_step: workers begin late by steps, not by seconds.
        export_strategies: what is exported after evaluations, an ExportStrategy or several.
        train_steps_per_iteration: steps between the evaluations of `continuous_train_and_eval`.
        checkpoint_and_export: `train_and_evaluate` evaluates and exports each checkpoint.
        saving_listeners: listeners of the checkpoints.
        check_interval_secs: seconds between looks for a new checkpoint, at least.
    """

    def __init__(
        self,
        estimator,
        train_input_fn,
        eval_input_fn,
        eval_metrics=None,
        train_steps=None,
        eval_steps=100,
        train_monitors=None,
        eval_hooks=None,
        local_eval_frequency=None,
        eval_delay_secs=120,
        continuous_eval_throttle_secs=60,
        min_eval_frequency=None,
        delay_workers_by_global_step=False,
        export_strategies=None,
        train_steps_per_iteration=None,
        checkpoint_and_export=False,
        saving_listeners=None,
        check_interval_secs=5,
    ):
        if eval_metrics is not None and not hasattr(estimator, "fit"):
            raise ValueError("eval_metrics must be None; use eval_metric_ops of the EstimatorSpec instead")
        self.estimator = estimator
        self.train_steps = train_steps
        self.eval_steps = eval_steps
        self.eval_metrics = eval_metrics
        self._train_input_fn = train_input_fn
        self._eval_input_fn = eval_input_fn
        self._train_monitors = list(train_monitors or [])
        self._eval_hooks = list(eval_hooks or [])
        self._local_eval_frequency = local_eval_frequency
        self._eval_delay_secs = eval_delay_secs
        self._continuous_eval_throttle_secs = continuous_eval_throttle_secs
        self._min_eval_frequency = 1 if min_eval_frequency is None else min_eval_frequency
        self._delay_workers_by_global_step = delay_workers_by_global_step
        self._train_steps_per_iteration = train_steps_per_iteration
        self._checkpoint_and_export = checkpoint_and_export
        self._saving_listeners = saving_listeners
        self._check_interval_secs = check_interval_secs
        self.reset_export_strategies(export_strategies)

    def reset_export_strategies(self, new_export_strategies=None):
        """Sets what is exported; returns what was before."""
        before = getattr(self, "_export_strategies", ())
        new = new_export_strategies or ()
        self._export_strategies = (new,) if isinstance(new, ExportStrategy) else tuple(new)
        return before

    def extend_train_hooks(self, additional_hooks):
        """Adds hooks to the training."""
        self._train_monitors.extend(additional_hooks)

    def train(self, delay_secs=None):
        """Trains up to `train_steps`, workers some seconds later than the chief."""
        task, hooks = self.estimator.config.task_id or 0, []
        if delay_secs is None and self._delay_workers_by_global_step:
            hooks.append(tf1.train.GlobalStepWaiterHook(int(8000.0 * math.log(task + 1))))
        elif delay_secs is None:
            delay_secs = min(60, task * 5)
        time.sleep(delay_secs or 0)
        return self._train(hooks, max_steps=self.train_steps)

    def evaluate(self, delay_secs=None, name=None):
        """Evaluates the newest checkpoint once."""
        time.sleep(self._eval_delay_secs if delay_secs is None else delay_secs)
        return self._evaluate(name or "one_pass")

    def local_run(self):
        """As `train_and_evaluate`, with evaluations every `local_eval_frequency` steps."""
        return self._train_and_evaluate(self._local_eval_frequency)

    def train_and_evaluate(self):
        """Trains with evaluations between; returns the results of the last one, and what was exported."""
        return self._train_and_evaluate(self._min_eval_frequency)

    def test(self):
        """Trains one step, evaluates one and exports; returns the evaluation's results."""
        self._train([], steps=1)
        results = self.estimator.evaluate(input_fn=self._eval_input_fn, steps=1, name="one_pass")
        self._export(results)
        return results

    def continuous_eval(
        self,
        delay_secs=None,
        throttle_delay_secs=None,
        evaluate_checkpoint_only_once=True,
        continuous_eval_predicate_fn=None,
        name="continuous",
    ):
        """Evaluates each new checkpoint, until one has the step `train_steps` or the predicate says no."""
        time.sleep(self._eval_delay_secs if delay_secs is None else delay_secs)
        throttle = self._continuous_eval_throttle_secs if throttle_delay_secs is None else throttle_delay_secs
        results, before = None, None
        while continuous_eval_predicate_fn is None or continuous_eval_predicate_fn(results):
            if results and self.train_steps and results["global_step"] >= self.train_steps:
                return
            start, newest = time.time(), self.estimator.latest_checkpoint()
            if newest and not (evaluate_checkpoint_only_once and newest == before):
                results = self._evaluate(name, newest)
                self._export(results, newest)
                before = newest
            else:
                results = {}
            time.sleep(max(0, throttle - (time.time() - start)))

    def continuous_train_and_eval(self, continuous_eval_predicate_fn=None):
        """Trains and evaluates in turn; returns the results of the last evaluation, and what was exported."""
        steps = self._train_steps_per_iteration or (1000 if self.train_steps is None else int(self.train_steps / 10))
        results, exported = None, None
        while continuous_eval_predicate_fn is None or continuous_eval_predicate_fn(results):
            if results and self.train_steps and results["global_step"] >= self.train_steps:
                break
            self._train([], steps=steps)
            results = self._evaluate("one_pass", self.estimator.latest_checkpoint())
            exported = self._export(results)
        return results, exported

    def run_std_server(self):
        """Serves variables to the other tasks, for ever."""
        config = self.estimator.config
        server = tf.distribute.Server(config.cluster_spec, config.task_type, config.task_id)
        server.join()

    def _train(self, hooks, **until):
        hooks = [*self._train_monitors, *hooks]
        listeners = {} if self._saving_listeners is None else {"saving_listeners": self._saving_listeners}
        return self.estimator.train(self._train_input_fn, hooks=hooks, **until, **listeners)

    def _evaluate(self, name=None, checkpoint=None):
        more = {"metrics": self.eval_metrics} if hasattr(self.estimator, "fit") else {}
        return self.estimator.evaluate(
            input_fn=self._eval_input_fn,
            steps=self.eval_steps,
            hooks=self._eval_hooks,
            checkpoint_path=checkpoint,
            name=name,
            **more,
        )

    def _export(self, results, checkpoint=None):
        folder = os.path.join(self.estimator.model_dir, "export")
        return [
            strategy.export(self.estimator, os.path.join(folder, strategy.name), checkpoint, results)
            for strategy in self._export_strategies
        ]

    def _train_and_evaluate(self, every):
        config = self.estimator.config
        exporting = self._checkpoint_and_export and (config.save_checkpoints_secs or config.save_checkpoints_steps)
        found = {}

        def evaluate(checkpoint):
            found["results"] = self._evaluate("intermediate_export" if exporting else None, checkpoint)
            if exporting:
                found["exported"] = self._export(found["results"], checkpoint)

        hooks = []
        if exporting or every:
            steps, seconds = (1, 0) if exporting else (every, self._check_interval_secs)
            hooks.append(_EvaluateNewCheckpoints(self.estimator, evaluate, steps, seconds, at_end=exporting))
        self._train(hooks, max_steps=self.train_steps)
        if exporting:
            return found.get("results"), found.get("exported")
        results = self._evaluate()
        return results, self._export(results)


class StepsOfMonitors:
    """When a monitor of TensorFlow 1 acts: so many steps behind step 0 first, wherever the training begins."""

    def __init__(self, every):
        self._every = every
        self._next = every

    def due(self, step):
        """Whether it acts behind this step."""
        if step < self._next:
            return False
        self._next = step + self._every
        return True


class _EvaluateNewCheckpoints(tf1.train.SessionRunHook):
    """Looks for a new checkpoint every so many steps and seconds, and evaluates it."""

    def __init__(self, estimator, evaluate, every_steps, every_seconds, at_end=False):
        self._estimator = estimator
        self._evaluate = evaluate
        self._steps = StepsOfMonitors(every_steps)
        self._seconds = every_seconds
        self._at_end = at_end
        self._seen = self._looked = None

    def begin(self):
        """Finds the step."""
        self._global_step = tf1.train.get_global_step()

    def before_run(self, run_context):
        """Asks for the step."""
        return tf1.train.SessionRunArgs(self._global_step)

    def after_run(self, run_context, run_values):
        """Looks for a checkpoint if it is time."""
        waited = self._looked is None or time.time() - self._looked > self._seconds
        if self._steps.due(run_values.results) and waited:
            self._look()

    def end(self, session):
        """Looks for the last checkpoint."""
        if self._at_end:
            self._look()

    def _look(self):
        self._looked = time.time()
        newest = self._estimator.latest_checkpoint()
        if newest is not None and newest != self._seen:
            self._seen = newest
            with tf.init_scope():
                self._evaluate(newest)


def run_experiment(experiment_fn, output_dir=None, schedule=None, run_config=None, hparams=None):
    """Makes an experiment and calls one of its methods: what tf.contrib.learn.learn_runner.run was.

    Args:
        experiment_fn: function of `run_config` and `hparams`, or of `output_dir`, that returns an Experiment.
        output_dir: the model's folder, for an experiment_fn that takes it.
        schedule: the name of the method; None: that of this task of the cluster.
        run_config: a RunConfig with a model_dir.
        hparams: what the experiment_fn is given besides.
    """
    if (output_dir is None) == (run_config is None):
        raise ValueError("one of output_dir and run_config must be given, and only one")
    if not callable(experiment_fn):
        raise TypeError(f"the experiment_fn is no function: {experiment_fn}")
    if run_config is not None:
        if not run_config.model_dir:
            raise ValueError("run_config must have a model_dir")
        experiment = experiment_fn(run_config, hparams)
    elif hparams is not None:
        raise ValueError("hparams cannot be given with output_dir")
    else:
        experiment = experiment_fn(output_dir=output_dir)
    if not isinstance(experiment, Experiment):
        raise TypeError(f"experiment_fn must return an Experiment; got {type(experiment)}")
    schedule = schedule or _default_schedule(run_config or experiment.estimator.config)
    if not hasattr(experiment, schedule):
        raise ValueError(f"Schedule references non-existent task {schedule}")
    return getattr(experiment, schedule)()


def _default_schedule(config):
    cluster = config.cluster_spec.as_dict() if config.cluster_spec else {}
    if sum(map(len, cluster.values())) <= 1:
        return "train_and_evaluate"
    schedules = {"master": "train_and_evaluate", "chief": "train_and_evaluate", "ps": "run_std_server"}
    return {**schedules, "worker": "train"}[config.task_type]
