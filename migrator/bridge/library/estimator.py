"""The Estimator: a model_fn of TensorFlow 1 code, run as a Keras model under a strategy of `tf.distribute`."""

from __future__ import annotations

import contextlib
import copy
import inspect
import os
import tempfile

import numpy as np
import tensorflow as tf

from .checkpoints import CheckpointSaver, NamedSaver, kept_in_checkpoints, step_of_checkpoint
from .config import RunConfig, TaskType
from .data import Data, call_with_known_arguments
from .eager import each_eagerly, eagerly
from .exporting import export_all_saved_models, export_saved_model
from .graph import Graph, Session
from .servers import Workers
from .setup import print_numbers_as_ever
from .specs import EstimatorSpec, ModeKeys
from .strategies import any_worker, modern_strategy, serve_coordinator, strategy_of
from .unseen import UnseenSteps


class ModelOfModelFn(tf.keras.Model):
    """A model_fn in one mode, as a Keras model: its weights have the names that TensorFlow 1 gives them."""

    def __init__(self, model_fn, data, strategy=None, seed=None):
        super().__init__(name="model")
        leaves = tf.nest.flatten(data.spec, expand_composites=True)
        on_servers = isinstance(strategy, tf.distribute.ParameterServerStrategy)
        replicas = 1 if strategy is None or on_servers else len(strategy.extended.worker_devices)
        started, specs, metrics = [], [], []  # of each replica of this process

        def on_replica(batches):
            started.append(batches[len(started)])  # the replicas of a process begin in order
            spec = model_fn(*tf.nest.pack_sequence_as(data.spec, started[-1], expand_composites=True))
            specs.append(spec)
            if spec.mode == ModeKeys.EVAL:
                found = dict(spec.eval_metric_ops)
                found.setdefault("loss", tf.compat.v1.metrics.mean(spec.loss))
                metrics.append(found)
            return tf.constant(0.0) if spec.loss is None else spec.loss

        def on_replicas(*tensors):
            self.step = tf.compat.v1.train.get_or_create_global_step()
            # What hooks read the step from: TensorFlow's own would ask the variable for its initial value.
            tf.compat.v1.add_to_collection("global_step_read_op_cache", self.step.read_value() + 0)
            batches = [tensors[start : start + len(leaves)] for start in range(0, len(tensors), len(leaves))]
            if strategy is None:
                return on_replica(batches)
            with _losses_scaled(strategy):
                losses = strategy.run(on_replica, args=(batches,))
                return losses if on_servers else strategy.reduce(tf.distribute.ReduceOp.MEAN, losses, axis=None)

        self.traced = Graph(on_replicas, leaves * replicas, strategy, seed)
        self.traced.beside = data.graph if data.tensors else None
        self.data = data
        self.spec = specs[0]
        self.loss = self.traced.result  # the mean over the replicas
        self.train_ops = [spec.train_op for spec in specs]
        self.metric_values = {key: metrics[0][key][0] for key in sorted(metrics[0])} if metrics else {}
        self.metric_updates = [update for found in metrics for _, update in found.values()]
        self.weights_by_name = self.traced.variables.by_name
        self.session = Session(self.traced, data.draw, [data.graph])
        self.workers = Workers(strategy, self.traced, data) if on_servers else None

    def start(self, checkpoint, warm_start=None):
        """Gives all variables their values: those of a checkpoint, or of the scaffold and the initializers."""
        graph, session, scaffold = self.traced.graph, self.session, self.spec.scaffold
        made = graph.get_collection(tf.compat.v1.GraphKeys.TABLE_INITIALIZERS)
        session.run([one for one in made if getattr(one, "graph", None) is graph])
        if checkpoint is not None:
            NamedSaver(self.kept(), self.traced.strategy).restore(checkpoint)
        else:
            with graph.as_default():
                if warm_start is not None:
                    warm_start()
            self.traced.variables.initialize_later_ones(session)
            # What `init_from_checkpoint` and warm starts have put in the place of the initializers.
            session.run([one for one in map(_initializer, self.weights_by_name.values()) if one is not None])
            with graph.as_default():
                if scaffold.init_op is not None:
                    session.run(scaffold.init_op, scaffold.init_feed_dict)
                if scaffold.init_fn is not None:
                    scaffold.init_fn(session)
        if scaffold.local_init_op is not None:
            session.run(scaffold.local_init_op)

    def kept(self):
        """What its checkpoints have: all variables, unless the scaffold's saver says otherwise."""
        return kept_in_checkpoints(self.traced.variables.saved, self.spec.scaffold.saver)

    def global_step(self):
        """The global step, as a number."""
        with tf.init_scope():
            return int(self.step.numpy())

    def run_unseen(self, unseen):
        """Takes the steps up to the next one that a hook has to see: returns the last loss, None where there was no
        step, and whether a hook asks for the end.
        """
        context = tf.compat.v1.train.SessionRunContext(None, self.session)
        return unseen.take(context), context.stop_requested

    def run(self, fetches, hooks=(), most=None):
        """Computes something for the next batch, as a monitored session does: returns its values, and whether a hook
        asks for the end. The workers of parameter servers do several steps, at most so many. Raises
        tf.errors.OutOfRangeError behind the last batch.
        """
        graph = self.traced.graph
        asked, feeds = [], {}
        context = tf.compat.v1.train.SessionRunContext(tf.compat.v1.train.SessionRunArgs(fetches), self.session)
        with graph.as_default():
            for hook in hooks:
                request = hook.before_run(context)
                asked.append(None if request is None else request.fetches)
                feeds.update((request.feed_dict if request is not None else None) or {})
        if self.workers is None:
            of_input = self.traced.found_beside(asked)
            batch, beside = self.data.draw_with(of_input)
            known = dict(zip(map(id, of_input), beside, strict=True))
            values, *answers = self.session.run_with([fetches, *asked], feeds, batch, known)
        else:
            values, *answers = self.workers.run([fetches, *asked], most)
        with graph.as_default():
            for hook, answer in zip(hooks, answers, strict=True):
                hook.after_run(context, tf.compat.v1.train.SessionRunValues(answer, None, None))
        return values, context.stop_requested


@contextlib.contextmanager
def _losses_scaled(strategy):
    """Losses are divided by the number of replicas by the optimizers, as they are under an Estimator."""
    before, strategy._scale_loss_for_estimator = strategy._scale_loss_for_estimator, True
    try:
        yield
    finally:
        strategy._scale_loss_for_estimator = before


def _initializer(variable):
    """The operation that was put in the place of a variable's initializer; None for most."""
    return getattr(variable, "_initializer_op", None)


def _summary_writer(folder):
    """The writer of summaries that hooks share; made in an empty graph, which it writes too."""
    with tf.Graph().as_default():
        return tf.compat.v1.summary.FileWriterCache.get(folder)


class Estimator:
    """Trains, evaluates and uses a model_fn. Its state is what is in its `model_dir`."""

    def __init__(self, model_fn, model_dir=None, config=None, params=None, warm_start_from=None):
        if model_fn is None:
            raise ValueError("model_fn must be provided to Estimator.")
        print_numbers_as_ever()
        if isinstance(config, dict):
            config = RunConfig(**config)
        config = config or RunConfig()
        if model_dir is not None and config.model_dir not in (None, model_dir):
            raise ValueError(
                "`model_dir` are set both in constructor and `RunConfig`, but with different values. "
                f"In constructor: '{model_dir}', in `RunConfig`: '{config.model_dir}' "
            )
        model_dir = model_dir or config.model_dir or tempfile.mkdtemp()
        self._config = config.replace(model_dir=model_dir)
        self._model_dir = model_dir
        self._model_fn = model_fn
        self._params = copy.deepcopy(params or {})
        self._warm_start_settings = warm_start_from
        self._train_strategy = None
        self._eval_strategy = modern_strategy(config.eval_distribute)

    @property
    def model_dir(self):
        return self._model_dir

    @property
    def config(self):
        return copy.deepcopy(self._config) if self._config.train_distribute is None else self._config

    @property
    def params(self):
        return copy.deepcopy(self._params)

    @property
    def model_fn(self):
        """The model_fn as a function of features, labels, mode and config."""
        return lambda features, labels, mode, config: self._call_model_fn(features, labels, mode, config)

    def eval_dir(self, name=None):
        """Where the summaries of an evaluation are written."""
        return os.path.join(self.model_dir, "eval" if not name else f"eval_{name}")

    def latest_checkpoint(self):
        """The path of the newest checkpoint; None where there is none."""
        return tf.train.latest_checkpoint(self.model_dir)

    def get_variable_names(self):
        """The names of all variables of the newest checkpoint."""
        return [name for name, _ in tf.train.list_variables(self._checkpoint_to_read())]

    def get_variable_value(self, name):
        """The value that a variable has in the newest checkpoint, as an array."""
        return tf.train.load_variable(self._checkpoint_to_read(), name)

    def _checkpoint_to_read(self):
        checkpoint = self.latest_checkpoint()
        if checkpoint is None:
            raise ValueError(f"Could not find trained model in model_dir: {self.model_dir}.")
        return checkpoint

    # -- training --
    @eagerly
    def train(self, input_fn, hooks=None, steps=None, max_steps=None, saving_listeners=None):
        """Trains for so many steps, or until the global step is `max_steps`, or the data end. Returns this object.

        On a cluster of parameter servers the chief trains; a worker or ps serves it, and does not return.
        """
        if self._config.num_ps_replicas and self._config.task_type in (TaskType.WORKER, TaskType.PS):
            serve_coordinator(self._config)
        if steps is not None and max_steps is not None:
            raise ValueError("Can not provide both steps and max_steps.")
        for name, value in (("steps", steps), ("max_steps", max_steps)):
            if value is not None and value <= 0:
                raise ValueError(f"Must specify {name} > 0, given: {value}")
        if max_steps is not None and max_steps <= step_of_checkpoint(self.model_dir):
            tf.compat.v1.logging.info("Skipping training since max_steps has already saved.")
            return self
        hooks = list(hooks or ())
        if steps is not None or max_steps is not None:
            hooks.append(tf.compat.v1.train.StopAtStepHook(steps, max_steps))
        loss = self._train(input_fn, hooks, list(saving_listeners or ()))
        tf.compat.v1.logging.info("Loss for final step: %s.", loss)
        return self

    def _train(self, input_fn, hooks, saving_listeners):
        """Trains one model from the newest checkpoint on; returns the last loss."""
        if self._train_strategy is None:
            self._train_strategy = strategy_of(self._config)
        strategy = self._train_strategy
        model, data = self._model(input_fn, ModeKeys.TRAIN, strategy)
        checkpoint = self.latest_checkpoint()
        data.start(Session(data.graph))
        _summary_writer(self.model_dir)
        with model.traced.graph.as_default():
            keys = tf.compat.v1.GraphKeys
            if not any(one.op.name == "loss" for one in tf.compat.v1.get_collection(keys.SUMMARIES)):
                tf.compat.v1.summary.scalar("loss", model.loss)
            tf.compat.v1.add_to_collection(keys.LOSSES, model.loss)
            hooks = [
                *self._chief_hooks(model, hooks, saving_listeners),
                *(hook for hook in hooks if not isinstance(hook, tf.compat.v1.train.CheckpointSaverHook)),
                tf.compat.v1.train.NanTensorHook(model.loss),
                *self._logging_hooks({"loss": model.loss, "step": model.step}),
                *model.spec.training_hooks,
            ]
        self._begin(model, hooks, checkpoint)
        loss, stopped = None, False
        stops = [hook for hook in hooks if isinstance(hook, tf.compat.v1.train.StopAtStepHook)]
        unseen = UnseenSteps(model, hooks)
        while not stopped:
            left = [hook._last_step - model.global_step() for hook in stops] if model.workers else []
            if any(steps <= 0 for steps in left):  # the worker that was the last may not have seen it
                break
            try:
                last, stopped = model.run_unseen(unseen)
                loss = loss if last is None else last
                if not stopped:
                    most = min([*left, *unseen.steps_of_look()], default=None)
                    (_, loss), stopped = model.run([model.train_ops, model.loss], hooks, most)
                    unseen.saw_step()
            except tf.errors.OutOfRangeError as error:
                last = getattr(error, "loss", None)
                loss = loss if last is None else last
                break
        if loss is None:
            tf.compat.v1.logging.warning(
                "Training with estimator made no steps. Perhaps input is empty or misspecified."
            )
        with model.traced.graph.as_default():
            for hook in hooks:
                hook.end(model.session)
        return loss

    def _logging_hooks(self, tensors):
        every = self._config.log_step_count_steps
        return [tf.compat.v1.train.LoggingTensorHook(tensors, every_n_iter=every)] if every else []

    def _chief_hooks(self, model, hooks, listeners):
        """Those that write checkpoints and summaries, in the order of a monitored session."""
        config, spec, strategy = self._config, model.spec, model.traced.strategy
        # Averages that each worker has its own of are read by all workers together, of whom the chief writes.
        together = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
        if not config.is_chief and not together:
            return []
        listeners = listeners if config.is_chief else []
        settings = None if spec.scaffold.saver is None else spec.scaffold.saver.as_saver_def()
        saver = NamedSaver(
            model.kept(),
            strategy,
            config.keep_checkpoint_max if settings is None else settings.max_to_keep,
            config.keep_checkpoint_every_n_hours if settings is None else settings.keep_checkpoint_every_n_hours,
            config.is_chief,
        )
        own = [
            hook
            for hook in [*hooks, *spec.training_hooks, *spec.training_chief_hooks]
            if isinstance(hook, tf.compat.v1.train.CheckpointSaverHook)
        ]
        seconds, steps = config.save_checkpoints_secs, config.save_checkpoints_steps
        found = []
        if own:
            timer = own[0]._timer
            seconds, steps = timer._every_secs, timer._every_steps
            if config.is_chief:
                listeners = [*own[0]._listeners, *(one for one in listeners if one not in own[0]._listeners)]
        if seconds or steps:
            agree = any_worker(strategy) if together and seconds else None
            step = model.global_step
            found.append(CheckpointSaver(saver, step, self.model_dir, seconds, steps, listeners, agree=agree))
        elif listeners:
            raise ValueError(
                "There should be a CheckpointSaverHook to use saving_listeners. Please set one of the "
                "RunConfig.save_checkpoints_steps or RunConfig.save_checkpoints_secs."
            )
        if not config.is_chief:
            return found
        found += [hook for hook in spec.training_chief_hooks if hook not in own]
        if config.log_step_count_steps:
            every = config.log_step_count_steps
            found.append(tf.compat.v1.train.StepCounterHook(every_n_steps=every, output_dir=self.model_dir))
        summaries = spec.scaffold.summary_op
        if summaries is None:
            summaries = tf.compat.v1.summary.merge_all()
        if config.save_summary_steps and summaries is not None:
            every = config.save_summary_steps
            found.append(tf.compat.v1.train.SummarySaverHook(every, output_dir=self.model_dir, summary_op=summaries))
        return found

    # -- evaluation --
    @eagerly
    def evaluate(self, input_fn, steps=None, hooks=None, checkpoint_path=None, name=None):
        """Returns the metrics over so many batches, or all, as a dict with `loss` and `global_step`."""
        if steps is not None and steps <= 0:
            raise ValueError(f"Must specify steps > 0, given: {steps}")
        checkpoint = checkpoint_path or self.latest_checkpoint()
        model, data = self._model(input_fn, ModeKeys.EVAL, self._eval_strategy)
        data.start(Session(data.graph))
        hooks = [*(hooks or ()), *model.spec.evaluation_hooks]
        self._begin(model, hooks, checkpoint)
        done, stopped = 0, False
        while not stopped and (steps is None or done < steps):
            try:
                _, stopped = model.run(model.metric_updates, hooks)
            except tf.errors.OutOfRangeError:
                break
            done += 1
        results = model.session.run({**model.metric_values, "global_step": model.step})
        with model.traced.graph.as_default():
            for hook in hooks:
                hook.end(model.session)
            self._write_summary(self.eval_dir(name), results)
        return results

    def _write_summary(self, folder, results):
        """Writes what an evaluation found where TensorBoard looks for it."""
        step = int(results["global_step"])
        found = ", ".join(f"{key} = {value!s}" for key, value in sorted(results.items()))
        tf.compat.v1.logging.info("Saving dict for global step %d: %s", step, found)
        summary = tf.compat.v1.Summary()
        for key, value in results.items():
            if key != "global_step" and np.ndim(value) == 0 and np.issubdtype(np.asarray(value).dtype, np.number):
                summary.value.add(tag=key, simple_value=float(value))
        writer = _summary_writer(folder)
        writer.add_summary(summary, step)
        writer.flush()

    # -- prediction --
    def predict(self, input_fn, predict_keys=None, hooks=None, checkpoint_path=None, yield_single_examples=True):
        """Yields the predictions for each example, or for each batch, as arrays."""
        return each_eagerly(self._predict(input_fn, predict_keys, hooks, checkpoint_path, yield_single_examples))

    def _predict(self, input_fn, predict_keys, hooks, checkpoint_path, yield_single_examples):
        checkpoint = checkpoint_path or self.latest_checkpoint()
        model, data = self._model(input_fn, ModeKeys.PREDICT, None)
        predictions = self._chosen(model.spec.predictions, predict_keys)
        hooks = [*(hooks or ()), *model.spec.prediction_hooks]
        data.start(Session(data.graph))
        self._begin(model, hooks, checkpoint)
        stopped = False
        while not stopped:
            try:
                found, stopped = model.run(predictions, hooks)
            except tf.errors.OutOfRangeError:
                break
            if not yield_single_examples:
                yield found
            elif not isinstance(found, dict):
                yield from found
            else:
                sizes = {len(value) for value in found.values()}
                if len(sizes) != 1:
                    raise ValueError("Batch length of predictions should be same.")
                for row in range(sizes.pop()):
                    yield {key: value[row] for key, value in found.items()}
        with model.traced.graph.as_default():
            for hook in hooks:
                hook.end(model.session)

    @staticmethod
    def _chosen(predictions, keys):
        if not keys:
            return predictions
        if not isinstance(predictions, dict):
            raise ValueError("predict_keys argument is not valid in case of non-dict predictions.")
        found = {key: value for key, value in predictions.items() if key in keys}
        if not found:
            raise ValueError(f"Expected to run at least one output from {list(predictions)}, provided {keys}.")
        return found

    # -- export --
    @eagerly
    def export_saved_model(
        self,
        export_dir_base,
        serving_input_receiver_fn,
        assets_extra=None,
        as_text=False,
        checkpoint_path=None,
        experimental_mode=ModeKeys.PREDICT,
    ):
        """Writes a SavedModel into a new folder of `export_dir_base`; returns its path, as bytes."""
        return export_saved_model(
            self, export_dir_base, serving_input_receiver_fn, assets_extra, as_text, checkpoint_path, experimental_mode
        )

    def export_savedmodel(
        self,
        export_dir_base,
        serving_input_receiver_fn,
        assets_extra=None,
        as_text=False,
        checkpoint_path=None,
        strip_default_attrs=True,
    ):
        """The old name of `export_saved_model`."""
        return self.export_saved_model(
            export_dir_base, serving_input_receiver_fn, assets_extra, as_text, checkpoint_path
        )

    @eagerly
    def experimental_export_all_saved_models(
        self, export_dir_base, input_receiver_fn_map, assets_extra=None, as_text=False, checkpoint_path=None
    ):
        """Writes one SavedModel with the graphs of several modes; returns its path, as bytes."""
        return export_all_saved_models(
            self, export_dir_base, input_receiver_fn_map, assets_extra, as_text, checkpoint_path
        )

    # -- the model --
    def _model(self, input_fn, mode, strategy):
        """The model of one mode and its data. Calls the input_fn, then the model_fn, once each."""
        seed = self._config.tf_random_seed
        data = Data(
            lambda context: self._call_input_fn(input_fn, mode, context), strategy, seed, mode == ModeKeys.PREDICT
        )
        seed = data.graph.graph.seed  # which the input_fn may have set
        model = ModelOfModelFn(
            lambda features, labels=None: self._call_model_fn(features, labels, mode, self.config), data, strategy, seed
        )
        if model.spec.mode != mode:
            raise ValueError(f"model_fn returned an EstimatorSpec for mode {model.spec.mode}, called for {mode}.")
        return model, data

    def _params_in(self, mode):
        """The `params` that input_fn and model_fn are given in a mode; a TPUEstimator adds the batch size."""
        del mode
        return self.params

    def _call_input_fn(self, input_fn, mode, input_context=None, params=None):
        params = self._params_in(mode) if params is None else params
        known = {"mode": mode, "params": params, "config": self.config, "input_context": input_context}
        return call_with_known_arguments(input_fn, **known)

    def _call_model_fn(self, features, labels, mode, config):
        spec = self._spec_of_model_fn(features, labels, mode, config)
        if hasattr(spec, "as_estimator_spec"):
            spec = spec.as_estimator_spec()
        if not isinstance(spec, EstimatorSpec):
            raise ValueError("model_fn should return an EstimatorSpec.")
        return spec

    def _spec_of_model_fn(self, features, labels, mode, config, params=None):
        """What the model_fn returns."""
        known = inspect.signature(self._model_fn).parameters
        if labels is not None and "labels" not in known:
            raise ValueError("model_fn does not take labels, but input_fn returns labels.")
        params = self._params_in(mode) if params is None else params
        given = {"labels": labels, "mode": mode, "params": params, "config": config}
        tf.compat.v1.logging.info("Calling model_fn.")
        spec = self._model_fn(features=features, **{name: value for name, value in given.items() if name in known})
        tf.compat.v1.logging.info("Done calling model_fn.")
        return spec

    def _begin(self, model, hooks, checkpoint):
        """Lets hooks add to the graph, gives the variables their values, and shows hooks the session."""
        with model.traced.graph.as_default():
            for hook in hooks:
                hook.begin()
        model.start(checkpoint, self._warm_start() if checkpoint is None else None)
        with model.traced.graph.as_default():
            for hook in hooks:
                hook.after_create_session(model.session, None)

    def _warm_start(self):
        """What starts the variables from another training, called in the graph of the model; None for nothing."""
        given = self._warm_start_settings
        if given is None:
            return None
        if isinstance(given, str):
            path = given
            exported = os.path.join(given, "variables", "variables")
            if tf.io.gfile.exists(exported + ".index"):
                path = exported
            return lambda: tf.compat.v1.train.warm_start(path)
        return lambda: tf.compat.v1.train.warm_start(*given)
