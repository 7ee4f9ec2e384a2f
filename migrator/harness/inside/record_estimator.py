"""Records an Estimator program (TensorFlow 1.15, or 2.x through compat.v1) by patches on TensorFlow's own
classes.
"""

import importlib
import threading
import time

import batches
import drawn
import estimator_patches
import even
import nudged
import numpy as np
import origins
import own_optimizers
import parts
import points
import predictions
import races
import replicas
import shuffles
import sources
import v1_optimizers
from capture import AVERAGED, PLACE, Capture
from folder import call_boundaries
from redirect import Redirect
from step_hook import make_hook
from tracing import Sources, ancestors, known_number, loops_of, watch_clipping
from turns import Turnstile, wanted

#: Where a graph keeps the numbers of known sizes that are drawn in it.
DRAWN = "_drawn_of_known_size"
RATE_TENSORS = ("_learning_rate_tensor", "_lr_t")
#: How the module begins that makes Estimators of Keras models: keras.py with TensorFlow 1.15, keras_lib.py later.
_KERAS_MODELS = "tensorflow_estimator.python.estimator.keras"


class EstimatorRecorder(object):
    """State of the recorder in one process."""

    program = "original"
    keras = None  # the version of Keras that a program was written for

    def __init__(self, tf, plan, folder):
        self.tf = tf
        self.plan = plan
        self.folder = folder
        self.redirect = Redirect(plan["model_dir"])
        # A rate of TensorFlow 1 is none of a checkpoint's: the one that is edited is the one that is used.
        self.factor = float(plan.get("learning_rate_factor") or 1.0) * float(plan.get("edited_rate") or 1.0)
        self.capture = None
        self.threads = threading.local()  # replicas have threads of their own, which take turns
        self.sessions = None  # what sees programs that train by hand
        self.steps_done = 0
        self.loaded = False
        self.sources = {}
        self.state_steps = set(plan.get("state_steps") or [])
        self.replicas = 1
        self.in_step = False  # whether servers make the trainers of this cluster wait for each other
        self.local_replicas = 1
        self.last_evaluated = None
        self.nudging = nudged.Nudging(plan)
        self.predictions = predictions.Predictions(folder)
        self.training = int(plan.get("training") or 0)  # which of the models that the program trains is recorded
        self.trained = []  # the folders of all that trained, in their order
        self.fitted = []  # models of Keras that `fit` has trained beside
        self.before = 0  # how many of them before the Estimator that is recorded
        self.origins = origins.Origins()
        self.origin = None  # where the weights come from that the recorded training begins with
        self.model_dir = None  # of the Estimator that is recorded
        self.unnamed_models = 0
        self.shuffles = None  # those of the training data: known once its input function was called
        self.reading = False
        self.evaluates_averages = False  # moving averages take the place of the weights in evaluations
        self.averaged = set()  # or of these, whose averages the graph of an evaluation reads and not them
        in_turns = wanted(plan, folder) and folder.task in folder.trainers
        self.turns = Turnstile(folder) if in_turns else None
        self.points = points.Points(plan)
        self.effects = None  # the list of what training does beside its steps, where it is wanted

    # -- capture --
    @property
    def tracing(self):
        """The capture of the call of model_fn that this thread is in."""
        return getattr(self.threads, "tracing", None)

    @property
    def estimating(self):
        """Whether a model_fn is being called, in whatever mode."""
        return getattr(self.threads, "estimating", False)

    @property
    def calling_model(self):
        return getattr(self.threads, "calling_model", False)

    def call_model_fn(self, original, estimator, features, labels, mode, config):
        self.threads.estimating = True
        try:
            if mode != self.tf.estimator.ModeKeys.TRAIN or self.is_other(estimator):
                spec = original(estimator, features, labels, mode, config)
                if mode == self.tf.estimator.ModeKeys.EVAL:
                    self.averaged |= averaged_instead(self.tf, spec)
                return spec
            return self.train_model_fn(original, estimator, features, labels, mode, config)
        finally:
            self.threads.estimating = False

    def train_model_fn(self, original, estimator, features, labels, mode, config):
        graph = self.tf.get_default_graph()
        capture = Capture(graph, features, labels)
        known = capture
        if self.capture is None or self.capture.graph is not graph:
            self.capture = capture
        elif replicas.local(self.tf.distribute.get_strategy()) > 1:
            self.capture.replicas.append(capture)
        else:
            known = self.capture
        self.threads.tracing = capture if known is capture else None
        self.threads.calling_model = True
        try:
            spec = original(estimator, features, labels, mode, config)
            self.settle(graph, [spec.loss, *capture.targets])
        finally:
            self.threads.calling_model = False
            self.threads.tracing = None
        if known.loss is None:
            several = known.minimised(self.tf)
            known.loss = spec.loss if several is None else several
        known.train_op = spec.train_op
        step = self.tf.train.get_global_step(graph)
        if races.count_last(spec.train_op, step):
            capture.racing.append(step.op.name)
        return spec

    def apply_gradients(self, original, optimizer, grads_and_vars, *args, **kwargs):
        pairs = [(gradient, variable) for gradient, variable in grads_and_vars]
        if not self.calling_model:
            if self.sessions is not None and self.sessions.building is not None:
                scaled = own_optimizers.scaled_rate(optimizer, self.factor)
                in_order = self.in_order(self.sessions.building.capture, pairs)
                return self.sessions.apply_gradients(original, optimizer, pairs, in_order, scaled, *args, **kwargs)
            self.folder.note_unrecorded("an optimizer outside of a graph", sources.user_line())
            return original(optimizer, pairs, *args, **kwargs)
        capture = self.tracing or self.capture
        self.saw_gradients(optimizer, pairs)
        if hasattr(optimizer, "_hyper"):
            capture.of_keras[id(optimizer)] = v1_optimizers.keras_settings(optimizer)
            v1_optimizers.scale_keras(optimizer, self.factor)
        within = self.tf.get_default_graph()  # a branch of TensorFlow 2 is a graph of its own
        capture.conditional |= within is not capture.graph or within._get_control_flow_context() is not None
        depth = len(capture.applied)
        with own_optimizers.scaled_rate(optimizer, self.factor):
            result = original(optimizer, self.in_order(capture, pairs), *args, **kwargs)
        # A wrapping optimizer calls an inner one, which is the one that holds rates and slots.
        if len(capture.applied) == depth:
            kept = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
            capture.applied.append((optimizer, kept))
            capture.updates.append(result)
        return result

    def in_order(self, capture, pairs):
        """The gradients as they are applied: all of them first, where an update could come before one of them."""
        found = races.racing(pairs)
        if not found:
            return pairs
        capture.racing += found
        return races.gated(self.tf, pairs)

    def average(self, original, averages, var_list=None):
        """`ExponentialMovingAverage.apply`: averages of weights stand beside them as the slots of an optimizer do."""
        capture = self.traced
        result = original(averages, var_list)
        if capture is not None:
            given = self.tf.trainable_variables() if var_list is None else var_list
            kept = [(one, averages.average(one)) for one in given if hasattr(one, "assign")]
            capture.averages += [(one, average, result) for one, average in kept]
        return result

    def compute_gradients(self, original, optimizer, *args, **kwargs):
        pairs = original(optimizer, *args, **kwargs)
        if self.calling_model:
            capture = self.tracing or self.capture
            capture.computed = list(pairs)
            loss = args[0] if args else kwargs.get("loss")
            if isinstance(loss, self.tf.Tensor) and not any(loss is one for one in capture.targets):
                capture.targets.append(loss)
        return pairs

    def saw_gradients(self, optimizer, pairs):
        """What any optimizer is given, also one that hands it on to another."""
        capture = self.tracing or self.capture
        capture.offered.extend(gradient for gradient, _ in pairs if gradient is not None)
        if capture.optimizer_line is None:
            capture.optimizer_line = sources.marked(sources.outermost(("apply_gradients", "minimize"), optimizer))

    @property
    def traced(self):
        """The capture of the network that is being built for training; None when none is."""
        if self.tracing is not None or self.sessions is None:
            return self.tracing
        by_hand = self.sessions.building
        return None if by_hand is None else by_hand.capture

    @property
    def building(self):
        """Whether a network is being built for training, of whichever replica."""
        return self.calling_model or self.traced is not None

    def call_layer(self, original, layer, *args, **kwargs):
        traced = self.traced
        if traced is None:
            return original(layer, *args, **kwargs)
        return traced.layers.call(self.tf, original, layer, *args, **kwargs)

    def saw_shuffle(self, found):
        if self.reading:
            self.shuffles.append(found)

    def saw_dropout(self, rate, inputs):
        traced = self.traced
        if traced is None:
            return
        rate = known_number(rate)
        if rate == 0.0:  # drops nothing
            return
        traced.dropouts.append((rate, parts.features_of(inputs), Sources(inputs)))

    def pending(self, graph):
        """What is drawn in a graph and may be an initial value; None for a function of a step, which makes none."""
        capture = self.traced or self.capture
        if getattr(graph, "building_function", False) and (capture is None or graph is not capture.graph):
            return None
        if getattr(graph, DRAWN, None) is None:
            setattr(graph, DRAWN, [])  # goes with the graph
        return getattr(graph, DRAWN)

    def settle(self, graph, losses):
        """Decides what of the numbers that a graph draws are those of a step: these losses depend on them."""
        drawn = getattr(graph, DRAWN, None)
        if drawn:
            even.settle(
                self.tf, drawn, ancestors([one for one in losses if one is not None]), self.saw_draw, self.place
            )

    def saw_draw(self, shape):
        traced = self.traced
        if traced is not None:
            traced.draws += 1
            traced.draw_loops.append(loops_of(shape))

    def place(self):
        """The place of the step in the training, from 0, as a tensor that each call of a session is given the value of;
        None where masks are the same at each step.
        """
        capture = self.traced or self.capture
        if capture is None or not self.plan.get("anew"):
            return None
        graph = capture.graph
        if getattr(graph, PLACE, None) is None:
            with graph.as_default(), self.tf.control_dependencies(None), graph.device(None):
                made = self.tf.placeholder_with_default(np.int64(0), [], "place_of_step")
            setattr(graph, PLACE, made)  # goes with the graph
        return getattr(graph, PLACE)

    def optimizer_settings(self):
        """The optimizer with the clipping of its gradients, which Keras counts among its settings."""
        capture = self.capture
        described = capture.settings()
        if described is not None:
            described["settings"].update(capture.clipping.settings(capture.offered, capture.loss))
        return described

    def source_lines(self, model):
        """{what: [path, line]} of the user's lines that are known."""
        found = dict(self.sources)
        for part in model:
            found.setdefault("variable:" + part.name, sources.line_of_operation(part.variable.op))
        found["optimizer"] = self.capture.optimizer_line
        found["loss"] = sources.line_of_operation(self.capture.loss.op)
        return {what: line for what, line in found.items() if line is not None}

    def rate_tensor(self, optimizer=None):
        """The rate of an optimizer, the first one if it is not named; None where nothing tells it."""
        optimizer = self.capture.optimizer() if optimizer is None else optimizer
        for name in RATE_TENSORS:
            tensor = getattr(optimizer, name, None)
            here = tensor is not None and getattr(tensor, "graph", None) is self.capture.graph
            if here and self.capture.graph.is_fetchable(tensor):
                return tensor
        if self.capture.conditional:  # made inside of the condition
            rates = [vars(optimizer).get(name) for name in own_optimizers.RATES] if optimizer is not None else []
            return next((self.tf.constant(rate, self.tf.float32) for rate in rates if isinstance(rate, float)), None)
        return self.capture.own_rate

    def replay_dataset(self, spec, strategy=None):
        """The recorded batches that the coming training call is to see: as many as that call saw then; each replica
        of this process has its own of the ``strategy`` (the one whose scope this is called in).
        """
        done = self.steps_done
        later = [steps for steps in call_boundaries(self.folder.replay) if steps > done]
        take = min(later) - done if later else None
        apart = replicas.local(strategy or self.tf.distribute.get_strategy())
        return batches.replay_dataset(self.tf, self.folder.replay, spec, skip=done, take=take, replicas=apart)

    # -- sessions --
    def start_values(self, session):
        """Right after initialisation on the task that initialises, before the first checkpoint is written."""
        if self.loaded or self.capture is None or session.graph is not self.capture.graph:
            return
        self.loaded = True
        model = self.capture.model_parts(self.tf)
        variables = [part.variable for part in model]

        def current():
            return parts.join(model, session.run(variables))

        self.find_origin(current)
        if self.plan.get("draw_initial") and self.folder.leads():
            drawn.write(self.folder, drawn.of_session(self.tf, session, model))
        values = parts.initial_values(self.plan, current)
        if values is not None:
            if self.plan.get("draw_initial"):
                parts.write_arrays(self.folder.file("made.npz"), current())
            feed = {}
            initializers = []
            for part, piece in zip(model, parts.cut(model, values)):
                for variable in part.copies + self.capture.averages_of(part):
                    operation, given = parts.first_assignment(variable)
                    initializers.append(operation)
                    feed[given] = piece
            session.run(initializers, feed)
        parts.write_arrays(self.folder.file("initial.npz"), current())

    def trains(self, estimator):
        """Notes that an Estimator is about to train, and whether it is the one to record."""
        if estimator.model_dir not in self.trained:
            self.trained.append(estimator.model_dir)
            if len(self.trained) == self.training + 1:
                self.model_dir = estimator.model_dir
                self.before = len(self.fitted)

    def saw_fit(self, model):
        """Notes that Keras trains a model beside the Estimators, which is not recorded."""
        if not any(one is model for one in self.fitted):
            self.fitted.append(model)

    def goes_before(self, estimator):
        """The place of a training that comes before the recorded one; None of others."""
        before = self.training and self.model_dir is None and estimator.model_dir in self.trained
        return self.trained.index(estimator.model_dir) if before else None

    def find_origin(self, current):
        """Notes which of the weights that a later training begins with an earlier one has left."""
        self.origin = self.origins.found(current()) if self.training else None

    def is_other(self, estimator):
        """Whether another Estimator is recorded: one run compares one training."""
        if self.model_dir is None:
            return estimator.model_dir in self.trained
        return estimator.model_dir != self.model_dir

    # -- evaluation --
    def record_evaluation(self, estimator, results, checkpoint_path, moved=()):
        numbers = parts.numbers(results)
        step = int(numbers.pop("global_step"))
        if checkpoint_path:
            self.record_checkpoint(checkpoint_path, self.folder.evaluated(step))
        line = {"time": time.time(), "step": step, "results": numbers, "nudged": list(moved)}
        # A premade Estimator evaluates what its authors thought of, and any other the loss.
        premade = any(".canned." in kind.__module__ for kind in type(estimator).__mro__)
        line["unasked"] = sorted(numbers) if premade else ["loss"]
        self.folder.append_line("evaluations.jsonl", line)

    def record_checkpoint(self, checkpoint_path, path):
        """Every number in a checkpoint, by its name there; nothing where there is no ``path`` for it."""
        if path is None:
            return
        try:
            reader = self.tf.train.load_checkpoint(checkpoint_path)
            arrays = {name: np.asarray(reader.get_tensor(name)) for name in reader.get_variable_to_shape_map()}
        except self.tf.errors.OpError:
            return  # the trainer keeps only so many checkpoints, and this one is gone by now
        instead = list(arrays) if self.evaluates_averages else self.averaged
        arrays.update({name: arrays[name + AVERAGED] for name in instead if name + AVERAGED in arrays})
        parts.write_arrays(path, {name: value for name, value in arrays.items() if value.dtype.kind in "biufc"})

    def keep_checkpoint(self, checkpoint_path):
        """Keeps what a checkpoint holds, for another program to take; the step of it, None where it cannot be read."""
        try:
            step = int(self.tf.train.load_checkpoint(checkpoint_path).get_tensor("global_step"))
        except self.tf.errors.OpError:
            return None
        self.record_checkpoint(checkpoint_path, self.folder.evaluated(step))
        return step

    def keep_evaluating(self, model_dir):
        """Whether an evaluator may still see a checkpoint that it has not judged."""
        latest = importlib.import_module("tensorflow.python.training.checkpoint_management").latest_checkpoint(
            model_dir
        )
        over = self.folder.training_over()
        return not over or latest != self.last_evaluated


def averaged_instead(tf, spec):
    """The names of the weights that what a model_fn returns does not read, but moving averages of them."""
    wanted = [spec.loss, *tf.nest.flatten(getattr(spec, "eval_metric_ops", None) or {})]
    reached = ancestors([one for one in wanted if hasattr(one, "op")])
    return {name[: -len(AVERAGED)] for name in reached if name.endswith(AVERAGED)} - reached


def install(plan, folder):
    """Records Estimators; the state of the recorder, for what else is to be recorded."""
    tf = importlib.import_module("tensorflow.compat.v1")
    estimator = importlib.import_module("tensorflow_estimator.python.estimator.estimator")
    training = importlib.import_module("tensorflow_estimator.python.estimator.training")
    optimizers = importlib.import_module("tensorflow.python.training.optimizer")
    recorder = EstimatorRecorder(tf, plan, folder)
    Estimator = estimator.Estimator

    shuffles.install(tf, recorder.saw_shuffle)
    estimator_patches.patch_places(tf, Estimator, recorder)
    estimator_patches.patch_waiting(training, plan)
    estimator_patches.patch_limits(training, Estimator, recorder)
    estimator_patches.patch_dropout(tf, recorder)
    estimator_patches.patch_layers(tf, recorder)
    estimator_patches.patch_fit(tf, recorder)
    estimator_patches.patch_sources(tf, Estimator, optimizers, recorder)
    watch_clipping(lambda: recorder.traced.clipping if recorder.traced is not None else None)

    estimator_patches.patch_end(tf, recorder)
    parts.wrap(Estimator, "_call_model_fn", recorder.call_model_fn)
    parts.wrap(optimizers.Optimizer, "apply_gradients", recorder.apply_gradients)
    parts.wrap(optimizers.Optimizer, "compute_gradients", recorder.compute_gradients)
    # The optimizers of Keras that an Estimator takes: all there were before 2.11, the legacy ones since.
    keras = getattr(tf.keras.optimizers, "legacy", tf.keras.optimizers).Optimizer
    if hasattr(keras, "get_updates"):
        parts.wrap(keras, "apply_gradients", recorder.apply_gradients)

    def apply_by_itself(original, self, grads_and_vars, *args, **kwargs):
        if recorder.traced is not None:
            recorder.traced.own_rate = own_optimizers.rate_of(tf, self)
        return recorder.apply_gradients(original, self, grads_and_vars, *args, **kwargs)

    own_optimizers.watch(optimizers.Optimizer, apply_by_itself)
    parts.wrap(tf.train.ExponentialMovingAverage, "apply", recorder.average)

    def variables_to_restore(original, *args, **kwargs):
        recorder.evaluates_averages |= recorder.estimating and not recorder.calling_model
        return original(*args, **kwargs)

    parts.wrap(tf.train.ExponentialMovingAverage, "variables_to_restore", variables_to_restore)

    def train_with_spec(original, self, spec, worker_hooks, *args, **kwargs):
        if recorder.is_other(self):
            folder.another_training(recorder.trained.index(self.model_dir))
            place = recorder.goes_before(self)
            if place is not None:
                worker_hooks.insert(0, recorder.origins.hook(tf, place))
            return original(self, spec, worker_hooks, *args, **kwargs)
        strategy = getattr(self, "_train_distribution", None)
        recorder.replicas = int(strategy.num_replicas_in_sync) if strategy is not None else 1
        recorder.local_replicas = 1 if strategy is None else replicas.local(strategy)
        # Each replica of a Keras model has its share of the loss only, those of other workers as well.
        shares = recorder.replicas > 1 and _KERAS_MODELS in getattr(self._model_fn, "__module__", "")
        if (recorder.local_replicas > 1 or shares) and recorder.capture is not None:
            recorder.capture.reduced = spec.loss
        if recorder.capture is not None and strategy is None:
            recorder.capture.train_op = getattr(spec.train_op, "op", spec.train_op)
        if recorder.effects is not None:
            for hook in worker_hooks:
                recorder.effects.watch_hook(hook)
        worker_hooks.insert(0, make_hook(recorder, worker_hooks))
        try:
            return original(self, spec, worker_hooks, *args, **kwargs)
        finally:
            # Not before the session is closed: the last checkpoint belongs to the last turn.
            if recorder.turns is not None:
                recorder.turns.leave()

    parts.wrap(Estimator, "_train_with_estimator_spec", train_with_spec)

    def close(original, self):
        # TensorFlow 2.15 may wait for ever for the iterator that feeds several local replicas (seen once in ten runs).
        if recorder.local_replicas == 1:
            return original(self)
        closing = threading.Thread(target=original, args=(self,))
        closing.daemon = True
        closing.start()
        closing.join(5.0)
        return None

    parts.wrap(importlib.import_module("tensorflow.python.client.session").BaseSession, "close", close)
    manager = importlib.import_module("tensorflow.python.training.session_manager").SessionManager

    def prepare_session(original, self, *args, **kwargs):
        session = original(self, *args, **kwargs)
        recorder.start_values(session)
        return session

    parts.wrap(manager, "prepare_session", prepare_session)

    if plan.get("replay"):

        def call_input_fn(original, self, input_fn, mode, *args, **kwargs):
            result = original(self, input_fn, mode, *args, **kwargs)
            if mode != tf.estimator.ModeKeys.TRAIN or recorder.is_other(self):
                return result
            with tf.device("/cpu:0"):
                return recorder.replay_dataset(element_spec(tf, result))

        estimator_patches.wrap_input_fn(Estimator, call_input_fn)

    def evaluate_run(original, self, checkpoint_path, scaffold, update_op, eval_dict, all_hooks, output_dir):
        given = (scaffold, update_op, eval_dict, all_hooks)
        if checkpoint_path is None and plan.get("evaluate", True) and not recorder.is_other(self):
            checkpoint_path = drawn_checkpoint(tf, scaffold, folder.file("drawn-for-evaluation"))
        results = original(self, checkpoint_path, *given, output_dir=output_dir)
        recorder.last_evaluated = checkpoint_path
        if plan.get("evaluate", True) and not recorder.is_other(self):

            def again(seed):
                place = folder.file("eval-again")
                return nudged.again(tf, original, self, checkpoint_path, *given, folder=place, seed=seed)

            recorder.record_evaluation(self, results, checkpoint_path, recorder.nudging.results(again))
        return results

    parts.wrap(Estimator, "_evaluate_run", evaluate_run)

    def predict(
        original, self, input_fn, predict_keys=None, hooks=None, checkpoint_path=None, yield_single_examples=True
    ):
        def made(checkpoint, watching):
            return original(self, input_fn, predict_keys, watching, checkpoint, yield_single_examples)

        found = checkpoint_path or tf.train.latest_checkpoint(self.model_dir)
        if not plan.get("evaluate", True) or recorder.is_other(self) or not found:
            return made(checkpoint_path, hooks)

        def moved(number, take, whole):
            seeds = range(1, nudged.TIMES + 1) if number <= nudged.EVALUATIONS else ()
            outputs = {"nudged%d" % seed: take(made(found, [nudged.make_hook(tf, seed)])) for seed in seeds}
            if not whole:
                outputs["own"] = take(made(found, None))
            return outputs, {}

        step = recorder.keep_checkpoint(found)
        return recorder.predictions.watched(made(checkpoint_path, hooks), step, moved, yield_single_examples)

    parts.wrap(Estimator, "predict", predict)
    return recorder


def drawn_checkpoint(tf, scaffold, path):
    """The path of a checkpoint of the weights that an evaluation draws, where a training has left none: another
    program can be given them then, and they are the same when the evaluation is repeated. None where more than their
    initializers decides what they are.
    """
    if scaffold is not None and (scaffold.init_op is not None or scaffold.init_fn is not None):
        return None
    variables = tf.global_variables()
    if not variables:
        return None
    begin, saver = tf.variables_initializer(variables), tf.train.Saver(variables)
    with tf.Session() as session:
        session.run(begin)
        return saver.save(session, path, write_meta_graph=False, write_state=False)


def element_spec(tf, result):
    """The element structure of what an input_fn returned: a dataset, or (features, labels) tensors."""
    if hasattr(result, "element_spec"):
        return result.element_spec
    if isinstance(result, tf.data.Dataset):
        return tf.data.experimental.get_structure(result)

    def spec(value):
        kind = getattr(value, "_type_spec", None)
        return kind if kind is not None else tf.TensorSpec(value.shape, value.dtype)

    return tf.nest.map_structure(spec, result)
