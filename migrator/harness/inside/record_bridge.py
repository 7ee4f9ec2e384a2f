"""Records a program whose Estimator is the class of its own support file (``keras_estimator``), on TensorFlow 2.

The classes are known by what they define, where the program makes them: the file may have another name, or stand inside
of the program. What trains is TensorFlow 1 code in a graph, so it is recorded as an Estimator's is, by a hook.
"""

import builtins
import contextlib
import importlib
import time

import bridge_servers
import estimator_patches
import numpy as np
import own_optimizers
import parts
import replicas
import sources
from capture import make_part
from record_estimator import EstimatorRecorder, element_spec
from tracing import watch_clipping

TRAIN = "train"
_CLASSES = ("Estimator", "EvalSpec", "ModelOfModelFn", "ModelOnCores", "BatchesOfCores")


class BridgeRecorder(EstimatorRecorder):
    """State of the recorder in one process; ``keras`` is the one of other Keras programs."""

    program = "migrated"

    def __init__(self, tf, plan, folder, keras):
        super(BridgeRecorder, self).__init__(tf, plan, folder)
        self.keras = keras.keras_version
        self.keras_recorder = keras
        self.weights_for = keras.weights_for
        self.only_training = bool(plan.get("only_training")) and plan["task"]["type"] == "local"
        self.other_weights = None  # whole values by name, which an evaluation is made with instead of its checkpoint's
        self.evaluating_others = False
        self.workers = None  # those of parameter servers, which take the steps of the training
        self.taken_before = 0  # steps of the trainings before
        self.handing_out = False
        self.awaiting = False
        self.earlier = None  # the model of the training under way, if it comes before the recorded one
        self.before = int(plan.get("before") or 0)

    def trains(self, estimator):
        before = self.before
        super(BridgeRecorder, self).trains(estimator)
        self.before = before  # as many as in the original, whose number the plan says

    def call_model_fn(self, original, estimator, features, labels, mode, config, params=None):
        def call(*given):
            return original(*given) if params is None else original(*given, params)

        if mode != TRAIN or self.is_other(estimator):
            return call(estimator, features, labels, mode, config)
        self.threads.estimating = True
        try:
            return self.train_model_fn(call, estimator, features, labels, mode, config)
        finally:
            self.threads.estimating = False

    @contextlib.contextmanager
    def by_itself(self):
        """What the recorders of Keras' loops and of a program's own leave to this one."""
        self.keras_recorder.training_depth += 1
        try:
            yield
        finally:
            self.keras_recorder.training_depth -= 1

    def ended(self):
        """Whether as many steps were taken as the plan allows."""
        limit = self.plan.get("steps")
        return limit is not None and self.steps_done >= limit

    def train(self, original, estimator, input_fn, hooks=None, steps=None, max_steps=None, saving_listeners=None):
        """``Estimator.train``, for no more steps than the plan allows."""
        limit = self.plan.get("steps")
        self.keras_recorder.leaves_fit = True  # what Keras fits besides, it fits in the original, too
        self.trains(estimator)
        if not self.is_other(estimator):
            self.sources.setdefault("train", sources.user_line(estimator, "train"))
            self.sources.setdefault("input", sources.line_of_function(input_fn))
        if limit is not None and not self.is_other(estimator):
            if self.ended():
                return estimator
            if steps is not None:
                steps = min(steps, limit - self.steps_done)
            else:
                max_steps = limit if max_steps is None else min(max_steps, limit)
        return original(estimator, input_fn, hooks, steps, max_steps, saving_listeners)

    def train_model(self, original, estimator, input_fn, hooks, saving_listeners):
        """One training: with the hook that records its steps."""
        if self.is_other(estimator):
            self.folder.another_training(self.trained.index(estimator.model_dir))
            return self.train_other(original, estimator, input_fn, hooks, saving_listeners)
        if self.keras_recorder.effects is not None:
            for hook in hooks:
                self.keras_recorder.effects.watch_hook(hook)
        hooks.insert(0, bridge_servers.make_hook(self, hooks, self.keras_recorder))
        # What is written and read lies in the folders of the workers.
        self.keras_recorder.coordinated = bool(estimator.config.num_ps_replicas)
        with self.by_itself():
            result = original(estimator, input_fn, hooks, saving_listeners)
        if self.only_training and self.ended():
            raise SystemExit(0)
        return result

    def train_other(self, original, estimator, *args):
        """A training that is not recorded."""
        place, self.earlier = self.goes_before(estimator), None
        self.awaiting = place is not None
        try:
            result = original(estimator, *args)
        finally:
            self.awaiting = False
        if place is not None and self.earlier is not None:
            begun, variables = self.earlier
            self.origins.begins(place, begun)
            self.origins.ends(place, self.values_of(variables))
        return result

    def values_of(self, variables):
        """Whole values of the variables of a model, by name."""
        with self.tf.init_scope():
            model = [make_part(one, one.trainable) for one in variables]
            return parts.join(model, [part.variable.numpy() for part in model])

    def make_model(self, original, model, model_fn, data, strategy=None, seed=None):
        result = original(model, model_fn, data, strategy, seed)
        capture = self.capture
        if capture is not None and capture.graph is model.traced.graph and strategy is not None:
            if not replicas.is_stand_in(strategy):  # which is looked at as a whole: one device
                self.replicas = int(strategy.num_replicas_in_sync)
                self.local_replicas = replicas.local(strategy)
            if replicas.local(strategy) > 1:
                capture.reduced = model.loss
            self.workers, self.taken_before = model.workers, self.steps_done
            if self.workers is not None:
                self.workers.steps_at_once = (1,)  # each is handed out, and recorded, by itself
        return result

    def run_model(self, original, model, fetches, hooks=(), most=None):
        """One look of the hooks: workers stop before and behind each step that states are recorded of."""
        if self.workers is None or self.capture is None or model.traced.graph is not self.capture.graph:
            return original(model, fetches, hooks, most)
        number = self.steps_done + 1
        limits = [max(1, step - number) for step in self.state_steps | {1} if step >= number]
        if self.keras_recorder.limit is not None:  # as many as were recorded, where batches are replayed
            limits.append(self.keras_recorder.limit - self.steps_done)
        if limits and min(limits) <= 0:
            raise self.tf.errors.OutOfRangeError(None, None, "as many steps were taken as there are batches for")
        most = min(limits + ([] if most is None else [most]), default=None)
        self.handing_out = True
        try:
            return original(model, fetches, hooks, most)
        finally:
            self.handing_out = False

    def start(self, original, model, *args, **kwargs):
        """Behind the first values of a model: those that the plan asks for."""
        result = original(model, *args, **kwargs)
        if self.awaiting:
            variables = list(model.traced.variables.saved.values())
            self.earlier = self.values_of(variables), variables
        if self.other_weights is not None:
            self._take(model.traced.variables.saved.values(), self.other_weights)
        elif self.capture is not None and model.traced.graph is self.capture.graph:
            self.start_values(model.session)
        return result

    def start_values(self, session):
        if self.sessions.of(session.graph) is not None:
            super(BridgeRecorder, self).start_values(session)
            return
        if self.loaded:
            return
        self.loaded = True
        model = self.capture.model_parts(self.tf)

        def current():
            return parts.join(model, [part.variable.numpy() for part in model])

        with self.tf.init_scope():
            self.find_origin(current)
            values = parts.initial_values(self.plan, current)
            if values is not None:
                for part, piece in zip(model, parts.cut(model, values)):
                    for variable in part.copies + self.capture.averages_of(part):
                        variable.assign(piece)
            parts.write_arrays(self.folder.file("initial.npz"), current())

    # -- evaluation --
    def evaluate(self, original, estimator, input_fn, steps=None, hooks=None, checkpoint_path=None, name=None):
        given = (input_fn, steps, hooks, checkpoint_path, name)
        checkpoint = checkpoint_path or estimator.latest_checkpoint()
        results = original(estimator, *given)
        self.last_evaluated = checkpoint
        if self.is_other(estimator) or self.evaluating_others or not self.plan.get("evaluate", True):
            return results
        numbers = parts.numbers(results)
        step = int(numbers.pop("global_step"))
        self.record_checkpoint(checkpoint, self.folder.evaluated(step))
        line = {"time": time.time(), "step": step, "results": numbers}
        self.evaluating_others = True
        try:
            line.update(self._with_other_weights(lambda: original(estimator, *given), step))
        finally:
            self.evaluating_others = False
            self.other_weights = None
        self.folder.append_line("evaluations.jsonl", line)
        return results

    def predict(
        self,
        original,
        estimator,
        input_fn,
        predict_keys=None,
        hooks=None,
        checkpoint_path=None,
        yield_single_examples=True,
    ):
        """``Estimator.predict``, and behind it what is predicted with the weights of the plan and the first ones."""

        def made():
            return original(estimator, input_fn, predict_keys, hooks, checkpoint_path, yield_single_examples)

        if self.is_other(estimator) or not self.plan.get("evaluate", True):
            return made()

        def others(number, take, whole):
            chosen = self.predictions.chosen(self.plan, number)
            start = self.folder.initial_file() if self.plan.get("evaluation_control") else None
            outputs, notes = {}, {}
            for what, path in (("same", chosen and chosen["path"]), ("control", start)):
                if path is None:
                    continue
                with np.load(path) as archive:
                    self.other_weights = {name: archive[name] for name in archive.files}
                try:
                    outputs[what] = take(made())
                except (KeyError, ValueError) as error:
                    notes["note"] = "not predicted with other weights: %s" % error.args[0]
                finally:
                    self.other_weights = None
            if "same" in outputs:
                notes["weights_step"] = chosen["step"]
            return outputs, notes

        return self.predictions.watched(made(), self.steps_done, others, yield_single_examples)

    def latest_checkpoint(self, original, estimator):
        """What an evaluator looks for until the training is over and its last checkpoint evaluated."""
        over = self.folder.training_over()
        found = original(estimator)
        if over and found == self.last_evaluated:
            raise SystemExit(0)
        return found

    def _with_other_weights(self, evaluate, step):
        """The results of the same evaluation with the weights of the plan, and with those that the run began with."""
        found = {}
        chosen = self.weights_for(step)
        start = self.folder.initial_file() if self.plan.get("evaluation_control") else None
        for what, path in (("same_weights", chosen and chosen["path"]), ("control", start)):
            if path is None:
                continue
            with np.load(path) as archive:
                self.other_weights = {name: archive[name] for name in archive.files}
            try:
                numbers = parts.numbers(evaluate())
            except (KeyError, ValueError) as error:
                found["note"] = "not evaluated with other weights: %s" % error.args[0]
                continue
            numbers.pop("global_step")
            found[what] = numbers
        if "same_weights" in found:
            found["weights_step"] = chosen["step"]
        return found

    def _take(self, variables, values):
        """Gives the variables of a model whole values by their names.

        There may be more values, and more variables: of an optimizer, which a model_fn makes in all modes, or counters.
        """
        with self.tf.init_scope():
            model = [make_part(one, one.trainable) for one in variables]
            model = [part for part in model if part.trainable or part.name in values]
            for part, piece in zip(model, parts.cut(model, values)):
                part.variable.assign(piece)

    # -- the program's classes --
    def saw_class(self, made):
        """Records by the classes of a support file, when the program makes them."""
        known = vars(made)
        if made.__name__ == "ModelOfModelFn" and "start" in known:
            parts.wrap(made, "__init__", self.make_model)
            parts.wrap(made, "start", self.start)
            parts.wrap(made, "run", self.run_model)
        elif made.__name__ == "ModelOnCores" and "run" in known:
            parts.wrap(made, "__init__", self.make_model)
            made.__init__.__wrapped__.__globals__["as_one_operation"] = self._in_one_graph
        elif made.__name__ == "BatchesOfCores" and self.plan.get("replay"):
            parts.wrap(made, "__init__", self._of_all_cores)
        elif made.__name__ == "EvalSpec" and "start_delay_secs" in made._fields:
            estimator_patches.patch_eval_spec(made, self.plan)
        elif made.__name__ == "Estimator" and "_call_model_fn" in known and "_chief_hooks" in known:
            self._watch(made)

    def _in_one_graph(self, function, tensors, variables, seed=None):
        """What the cores of a TPU do, as operations of the graph around it: what they compute can be asked for."""
        del seed
        with self.tf.variable_creator_scope(variables.make):
            return self.tf.nest.flatten(function(*tensors))

    @staticmethod
    def _of_all_cores(original, batches, input_fn, cores, of_each=False, *args, **kwargs):
        """Recorded batches are those of all cores."""
        return original(batches, input_fn, cores, False, *args, **kwargs)

    def _watch(self, estimator):
        estimator_patches.patch_model_dir(estimator, self)
        known = "_spec_of_model_fn" in vars(estimator)  # what cores of a TPU call, too
        parts.wrap(estimator, "_spec_of_model_fn" if known else "_call_model_fn", self.call_model_fn)
        parts.wrap(estimator, "train", self.train)
        parts.wrap(estimator, "_train", self.train_model)
        if self.plan["task"]["type"] == "evaluator":
            parts.wrap(estimator, "latest_checkpoint", self.latest_checkpoint)
        parts.wrap(estimator, "evaluate", self.evaluate)
        parts.wrap(estimator, "predict", self.predict)
        if self.plan.get("replay"):

            def call_input_fn(original, this, input_fn, mode, *args, **kwargs):
                result = original(this, input_fn, mode, *args, **kwargs)
                if mode != TRAIN or self.is_other(this):
                    return result
                spec = element_spec(self.tf, result)
                if self.keras_recorder.coordinated:
                    return self.keras_recorder.replayed(spec)()
                return self.replay_dataset(spec, this._train_strategy)

            parts.wrap(estimator, "_call_input_fn", call_input_fn)


def install(plan, folder, keras):
    """Records Estimators of support files beside what ``keras`` records."""
    tf = importlib.import_module("tensorflow.compat.v1")
    optimizers = importlib.import_module("tensorflow.python.training.optimizer")
    recorder = BridgeRecorder(tf, plan, folder, keras)
    make = builtins.__build_class__

    def build_class(function, name, *bases, **keywords):
        made = make(function, name, *bases, **keywords)
        if name in _CLASSES and isinstance(made, type):
            recorder.saw_class(made)
        return made

    builtins.__build_class__ = build_class
    bridge_servers.install(recorder, keras)
    estimator_patches.patch_end(tf, recorder)
    estimator_patches.patch_dropout(tf, recorder)
    estimator_patches.patch_layers(tf, recorder)
    estimator_patches.patch_optimizer_lines(optimizers)
    watch_clipping(lambda: recorder.traced.clipping if recorder.traced is not None else None)

    def apply_gradients(original, self, grads_and_vars, *args, **kwargs):
        if not recorder.building:
            return original(self, grads_and_vars, *args, **kwargs)
        return recorder.apply_gradients(original, self, grads_and_vars, *args, **kwargs)

    def apply_by_itself(original, self, grads_and_vars, *args, **kwargs):
        if not recorder.building:
            return keras.saw_own_update(original, self, grads_and_vars, *args, **kwargs)
        if type(self).__name__ == "CrossShardOptimizer":
            grads_and_vars = list(grads_and_vars)
            if replicas.local(tf.distribute.get_strategy()) > 1:  # what it hands on may be sums over the cores
                recorder.traced.local = [(one, variable) for one, variable in grads_and_vars if one is not None]
            return recorder.apply_gradients(original, self, grads_and_vars, *args, **kwargs)
        recorder.traced.own_rate = own_optimizers.rate_of(tf, self)
        return recorder.apply_gradients(original, self, grads_and_vars, *args, **kwargs)

    parts.wrap(optimizers.Optimizer, "apply_gradients", apply_gradients)
    parts.wrap(optimizers.Optimizer, "compute_gradients", recorder.compute_gradients)
    own_optimizers.watch(optimizers.Optimizer, apply_by_itself)
    parts.wrap(tf.train.ExponentialMovingAverage, "apply", recorder.average)
    return recorder
