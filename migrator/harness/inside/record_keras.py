"""Records a Keras 2 program (tf_keras, or tf.keras of TensorFlow 2.15) by patches on Keras' own classes.

What a step computes (loss, batch, gradients) is written by ops inside the traced train step, so that it
also works where the step runs in another process. What lies between steps (weights, slots) is read by the
process that calls ``fit``.
"""

import atexit
import contextlib
import importlib
import inspect
import itertools
import os
import sys
import threading
import time

import appended
import batches
import callback_variables
import drawn
import even
import halves
import keras_optimizers
import keras_patches
import keras_variables
import loss_scales
import nudged
import numpy as np
import origins
import own_optimizers
import parts
import points
import predictions
import record_mesh
import replicas
import shuffles
import sources
from batch_losses import BatchLosses
from folder import OWN_DESCRIPTOR, REPLAY_DESCRIPTOR
from keras_optimizers import stock_class
from keras_variables import assign, copies, read
from redirect import Redirect
from tracing import (
    Clipping,
    LayerTrace,
    Sources,
    ancestors,
    known_number,
    loops_of,
    one_value,
    own_weights,
    pack_activations,
    thresholds,
    watch_clipping,
    within,
)
from turns import Dispatcher, wanted


def has_variables(model):
    """Whether some are there to be trained; a Sequential that does not know its inputs raises."""
    try:
        return bool(model.trainable_variables)
    except ValueError:
        return False


def _dropout(rate, inputs, noise_shape):
    """A dropout at work. One that drops each number of several axes by itself draws for each time step, if one of the
    axes is that of time: nobody knows.
    """
    features, before = parts.features_of(inputs), Sources(inputs)
    if noise_shape is None and not before.loops and (features is None or len(features) > 1):
        before.loops = None
    return rate, features, before


class Step(object):
    """What one traced train step showed so far."""

    def __init__(self):
        self.loss = None
        self.targets = []  # what gradients were asked of
        self.optimizers = []  # those that applied gradients
        self.plain = False  # whether it is that of a whole function, in which a strategy may yet run steps
        self.rate = None
        self.graph = None  # the one that is traced, where that is known; conditions in it have graphs of their own
        self.iteration = None
        self.gradients = None
        self.taken = []  # (gradient, variable) as a GradientTape gave them
        self.takings = []  # (targets, such pairs) of each time that one was asked
        self.of_earlier = 0  # how many of these are of batches before the last that the program asked for
        self.dropouts = []  # (rate, shape of an example, Sources) of every dropout that is at work
        self.mask_loops = []  # in how many loops recurrent layers, and the program itself, draw masks
        self.in_masks = False  # whether what draws is noted already
        self.layers = LayerTrace()
        self.clipping = Clipping()
        self.updates = 0  # assignments to moving averages
        self.draws = 0  # random numbers that no dropout of TensorFlow or Keras asked for
        self.anew = False  # whether what is drawn depends on the step
        self.own = None  # the optimizer, where the step runs one of TensorFlow 1 code
        self.optimizer = None
        self.differentiated = 0  # how often gradients were asked for
        self.applied = 0  # how often an optimizer was given gradients
        self.kept = []  # variables that a loop keeps beside the weights, as their averages
        self.assigned = []  # variables that are given values in a step that is run eagerly
        self.began = {}  # id -> (variable, its value before the step) of what a step by hand moves
        self.elements = []  # the batches that a function asks a dataset for itself; of an eager step all but the last
        self.carried = False  # whether the gradients of several batches are added up, to be applied together
        self.several = False  # whether it asks for more than one of them, or within functions and branches of its own
        self.replayed = []  # the variables that say whether recorded ones stand in their places
        self.unreplayed = None  # why none can
        self.moved = []  # variables that a step by hand gives values, beside those that it trains

    def absorb(self, inner):
        """Takes what was seen in a part of the step, a loop in it, as seen in the step."""
        _absorb(self, inner)

    def as_noted(self, call):
        """The result of a call whose dropouts are noted already."""
        before, self.in_masks = self.in_masks, True
        try:
            return call()
        finally:
            self.in_masks = before


def _absorb(mine, inner):
    """Adds the attributes of one object to those of another one of its class."""
    for name, value in vars(inner).items():
        own = getattr(mine, name)
        if own is None or isinstance(value, bool):
            setattr(mine, name, own or value)
        elif isinstance(value, list):
            known = {id(one) for one in own}
            own += [one for one in value if id(one) not in known]
        elif isinstance(value, int):
            setattr(mine, name, own + value)
        elif isinstance(value, dict):
            own.update(value)
        elif isinstance(value, (LayerTrace, Clipping)):
            _absorb(own, value)


class KerasRecorder(object):
    """State of the recorder in one process."""

    slot_names = keras_optimizers.SLOTS
    copies = staticmethod(copies)

    def __init__(self, tf, plan, folder):
        self.tf = tf
        self.plan = plan
        self.folder = folder
        self.redirect = Redirect(plan["model_dir"])
        self.factor = float(plan.get("learning_rate_factor") or 1.0)
        self.own_factor = self.factor * float(plan.get("edited_rate") or 1.0)  # of optimizers of TensorFlow 1
        self.state_steps = sorted(set(plan.get("state_steps") or []))
        self.tracing = threading.local()
        self.applying = threading.local()
        self.slots = {}  # id of optimizer -> [(model variable, slot name, slot variable)]
        self.started = False
        self.model = None  # the one that is recorded
        self.others = []  # models whose training is not
        self.origins = origins.Origins()
        self.origin = None  # where the weights come from that the recorded training begins with
        self.initializers = drawn.Initializers(tf)
        self.before = int(plan.get("before") or 0)  # models that are fitted before the trainings that are compared
        self.training = int(plan.get("training") or 0) + self.before  # which of the program's trainings is recorded
        self.leaves_fit = False  # whether what is fitted is no training that is compared
        self.steps_done = 0
        self.first_step = None  # what the optimizer had counted before the first of them
        self.limit = plan.get("steps")
        # The tasks of a cluster end together, when each has done what the others need of it.
        self.only_training = bool(plan.get("only_training")) and plan["task"]["type"] == "local"
        self.recorded_state = None
        self.coordinated = False
        self.parts = []
        self.first = []  # those of the model that the training began with
        self.kept = []  # those of ``parts`` that callbacks of the program keep beside the model
        self.training_depth = 0
        self.given = None  # recorded batches for calls of train_on_batch
        self.by_batch = False  # whether a loop of the program's own calls train_on_batch
        self.last_logs = None  # what the last of them returned
        self.program = {}
        self.traced = None  # what the last trace of a train step said about the program
        self.updating = None  # the optimizer that the traced step applies gradients with, or several together
        self.compiled = {}  # id of model -> the user's line that compiled it
        self.sources = {}
        self.shuffles = None  # those of the training data, where it is a dataset
        self.alone = plan["task"]["type"] == "local"
        self.dispatcher = Dispatcher(folder.trainers) if wanted(plan, folder) else None
        if self.alone:  # workers that the program starts itself: the first of them takes all steps, in their order
            self.dispatcher = Dispatcher(["worker:0"])
        self.batch_losses = BatchLosses(tf)
        self.points = points.Points(plan)
        self.called_in_loop = None  # what is told of layers that are called outside of steps
        self.place_in_loop = None  # what tells the place of a step in a loop of the program's own
        self.nudging = nudged.Nudging(plan)
        self.predictions = predictions.KerasPredictions(self)
        self.effects = None  # the list of what training does beside its steps, where it is wanted

    # -- variables --
    def model_parts(self, model):
        return keras_variables.parts_of(self.tf, model)

    def recorded_parts(self, model):
        """The variables of a model, under the names of those that the training began with: a model that is made anew
        and goes on from a checkpoint, or is evaluated for one on servers, has layers with other numbers, and its
        variables may be whole where those are in pieces.
        """
        found = self.model_parts(model)
        mine, first = ({part.name: part.whole for part in some} for some in (found, self.first))
        if list(mine.values()) == list(first.values()):
            names = dict(zip(mine, first))
            for part in found:
                part.name = names[part.name]
        return found

    def weights_in(self, model):
        """The variables of a model that predicts: those of the recorded model where it shares them."""
        known = {id(part.variable): part for part in self.parts}
        found = self.recorded_parts(model)
        return [known.get(id(part.variable), part) for part in found]

    def current(self):
        return parts.join(self.parts, [read(self.tf, part.variable) for part in self.parts])

    def slot_values(self, optimizer):
        """ "variable|slot" -> whole value, for the slots that exist."""
        whole = {}
        inner = list(getattr(optimizer, "parts", []))
        for part in [optimizer, *inner]:
            found = self.slots_of(part)
            if part is not optimizer and keras_optimizers.divides_by_rate(part):
                rate = np.float32(read(self.tf, keras_optimizers.rate_of(self.tf, part)) * self.factor)
                found = {name: value / -rate if name.endswith("|momentum") else value for name, value in found.items()}
            whole.update(found)
        return whole

    def together(self, optimizers):
        return keras_optimizers.together(optimizers)

    def canonical(self, tf, optimizer, slot, variable):
        """A slot of one of several optimizers, in the form of TensorFlow 1; an operation of the step that reads it."""
        if slot != "momentum" or not keras_optimizers.divides_by_rate(optimizer):
            return variable
        rate = tf.convert_to_tensor(keras_optimizers.rate_of(tf, optimizer)) * self.factor
        return tf.convert_to_tensor(variable) / -rate

    def held(self):
        """The weights of the recorded model as they are, where this process has them."""
        if not self.parts or self.model is None or self.coordinated:
            return None
        gone = {part.name for part in self.kept}
        return {name: value for name, value in self.current().items() if name not in gone}

    def take_point(self, place, optimizer, strategy=None):
        """Gives the program what the step at this place is to start from; see points.py. `strategy` is that of the
        servers, where the program has some.
        """
        if not self.points.given and not self.plan.get("anew"):
            return
        self.points.counter(self.tf, strategy).assign(place)
        point = self.points.at(place)
        if point is None:
            return
        set_rates(optimizer, point.get("rate_before"))
        self.start_from(optimizer, *self.point_values(place, optimizer))
        set_rates(optimizer, point.get("rate"))

    def point_values(self, place, optimizer):
        """What the point at this place gives: (counts, weights, slots), the weights in the order of ``parts`` and the
        slots of each optimizer in that of ``slot_parts``; ``counts`` are the counts of steps before its step and before
        the one that came before it. RuntimeError where it has other slots.
        """
        point = self.points.at(place)
        given = self.points.slots(point)
        found = [(part, slot) for one in _several(optimizer) for part, slot, _ in self.slot_parts(one)]
        known = {slot for _, slot in found}
        if set(given) != known:
            raise RuntimeError("the points have the slots %s, this program %s" % (sorted(given), sorted(known)))
        step = int(point["step"])
        weights = parts.cut(self.parts, self.points.weights(point, place))
        return (step - 1, max(0, step - 2)), weights, [points.cut_slot(part, given[slot], slot) for part, slot in found]

    def start_from(self, optimizer, counts, weights, slots):
        """Gives the program the values of a point: arrays, or tensors in a graph."""
        tf = self.tf
        now, before = counts
        for part, piece in zip(self.parts, weights):
            assign(tf, part.variable, piece)
        remaining = iter(slots)
        for one in _several(optimizer):
            counts = not isinstance(one, record_mesh.ByHand)  # else the count is that of the recorded steps
            if counts:
                one.iterations.assign(before)
            divides = keras_optimizers.divides_by_rate(one)
            rate = tf.convert_to_tensor(keras_optimizers.rate_of(tf, one)) if divides else None
            if divides and tf.executing_eagerly():
                rate = np.float32(float(read(tf, rate)) * self.factor)
            elif divides:
                rate = tf.cast(tf.cast(rate, tf.float64) * self.factor, tf.float32)
            for _, slot, variable in self.slot_parts(one):
                value = next(remaining)
                if slot == "momentum" and divides:
                    value = value * -rate
                assign(tf, variable, value)
            if counts:
                one.iterations.assign(now)

    def take_points_within(self, number, optimizer):
        """Adds operations that give the program what the step after this ``number`` is to start from: many steps may be
        taken in one call, and nothing can be given to the program between them.
        """
        if not self.points.given:
            return
        tf = self.tf
        slots = [variable for one in _several(optimizer) for _, _, variable in self.slot_parts(one)]
        targets = [*(part.variable for part in self.parts), *slots]

        def values(place):
            counts, weights, slots = self.point_values(int(place), optimizer)
            return [np.asarray(one) for one in (*map(np.int64, counts), *weights, *slots)]

        def take():
            types = [tf.int64, tf.int64, *(tf.as_dtype(variable.dtype).base_dtype for variable in targets)]
            now, before, *given = tf.numpy_function(values, [number], types)
            for tensor, variable in zip(given, targets):
                tensor.set_shape(variable.shape)
            for count in (now, before):
                count.set_shape([])
            self.start_from(optimizer, (now, before), given[: len(self.parts)], given[len(self.parts) :])
            rates = [point.get("rate", 0.0) for point in self.points.given]
            set_rates(optimizer, tf.gather(tf.constant(rates, tf.float32), number) if any(rates) else None)
            return tf.constant(True)

        # The first point is the start of the training, whose values the program has.
        tf.cond((number > 0) & (number < len(self.points.given)), take, lambda: tf.constant(False))

    def slot_parts(self, optimizer):
        """[(part of the model's variable, name of the slot, slot variable)] of the slots in use."""
        kind = stock_class(optimizer)
        legacy = keras_optimizers.is_legacy(optimizer)
        canonical = keras_optimizers.LEGACY_SLOTS if legacy else self.slot_names.get(kind.__name__ if kind else "", {})
        by_variable = {id(part.variable): part for part in self.parts}
        found = []
        # Keras makes this slot for plain gradient descent too, where it stays zero.
        inert = {"m"} if kind and kind.__name__ == "SGD" and not legacy and not optimizer.momentum else set()
        for variable, name, value in self.slots.get(id(optimizer), []):
            if name in inert:
                continue
            part = by_variable.get(id(variable))
            if part is not None and tuple(value.shape.as_list()) == part.shape:
                found.append((part, canonical.get(name, name), value))
        return found

    def slots_of(self, optimizer):
        table = {}
        for part, slot, variable in self.slot_parts(optimizer):
            owners, values = table.setdefault(slot, ([], []))
            owners.append(part)
            values.append(read(self.tf, variable))
        whole = {}
        for slot, (owners, values) in table.items():
            for variable, value in parts.join(owners, values).items():
                whole[variable + "|" + slot] = value
        return whole

    # -- one step, at tracing time --
    def target(self, name):
        """Where an op writes: below the folder of the process that runs it."""
        return self.base() + "/" + name + "/"

    def base(self):
        """The folder of the process that runs an op."""
        return "/proc/self/fd/%d" % OWN_DESCRIPTOR if self.coordinated else self.folder.path

    def append(self, name, number, content):
        """The operation that appends a record to "steps", "more" or "batches"."""
        return appended.operation(self.tf, self.base() + "/" + name, number, content)

    def train_step(self, original, model, data):
        tf = self.tf
        step = self.tracing.step = Step()
        step.graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
        self.tracing.model = model
        try:
            outputs = original(data)
        finally:
            self.tracing.step = None
            self.tracing.model = None
        graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
        step.loss = loss_scales.loss_of(tf, step)
        reached = self.note_trace(step, graph, model.optimizer)
        strategy = model.distribute_strategy
        shown = replicas.Shown(
            loss=None if step.loss is None else tf.cast(step.loss, tf.float32),
            rate=step.rate,
            iteration=step.iteration,
            data=data,
            gradients=self.named_gradients(step),
            activations=step.layers.activations(tf, graph, self.name_of, reached),
        )
        if replicas.local(strategy) > 1:
            replicas.together(tf, shown, lambda whole: self.write_step(strategy, whole))
        else:
            self.write_step(strategy, shown)
        return outputs

    def write_step(self, strategy, shown):
        """Writes what a step showed in all replicas of this process together."""
        tf = self.tf
        stamp = self.stamp()
        fields = []
        if shown.loss is not None:
            # What a replica minimises is divided by the number of all replicas.
            workers = int(strategy.num_replicas_in_sync) // replicas.local(strategy)
            fields.append(("loss", shown.loss * float(workers) if workers > 1 else shown.loss))
        if shown.rate is not None:
            fields.append(("learning_rate", shown.rate))
        if shown.iteration is not None:
            fields.append(("counted", shown.iteration))
        header = {"fields": [name for name, _ in fields]}
        tensors = [tensor for _, tensor in fields]
        if self.plan.get("record_batches", True):
            header["components"], described = batches.describe(tf, shown.data)
            tensors += described
            self.keep_batch(stamp, shown.data, shown.iteration, shown.sizes)
        self.append("steps", stamp, batches.pack(tf, header, tensors))
        if self.state_steps and shown.gradients:
            number = shown.iteration + 1
            wanted = tf.reduce_any(tf.equal(number, tf.constant(self.state_steps, number.dtype)))
            tf.cond(wanted, lambda: self.write_gradients(shown.gradients, number), lambda: tf.constant(False))
        if shown.activations and shown.iteration is not None:
            first = tf.equal(shown.iteration, 0)
            tf.cond(first, lambda: self.write_activations(shown.activations), lambda: tf.constant(False))

    def note_trace(self, step, graph, compiled=None):
        """Keeps what the trace of a step says about the program; the names of the operations behind its loss.

        ``compiled`` is the optimizer that is described already, as it is outside of a step.
        """
        reached = ancestors([step.loss]) if graph is not None and getattr(step.loss, "graph", None) is graph else None
        # A recurrent layer calls its cell once more, to learn what comes out.
        dropouts = [one for one in step.dropouts if one[2].used(graph, reached)]
        self.traced = {
            "dropout_rates": [rate for rate, _, _ in dropouts],
            "dropout_inputs": [shape for _, shape, _ in dropouts],
            "dropout_after": [before.weights(self.parts) for _, _, before in dropouts],
            "dropout_loops": within(step.loss, dropouts, step.mask_loops),
            "draws": step.draws,
            "anew": step.anew,
            "update_ops": step.updates,
            "clipping": step.clipping.settings([gradient for gradient, _ in step.gradients or []], step.loss),
        }
        if graph is not None:
            self.traced["thresholds"] = thresholds(graph)
            self.traced["halves"] = halves.formats(graph)
        if step.own is not None:
            self.traced["optimizer"] = own_optimizers.described(step.own)
        elif step.optimizers:
            self.updating = keras_optimizers.together(step.optimizers)
            if self.updating is not compiled:
                with self.tf.init_scope():
                    self.traced["optimizer"] = keras_optimizers.settings(self.tf, self.updating)
                    self.traced["raw_slots"] = keras_optimizers.divides_by_rate(self.updating)
        return reached

    def stamp(self):
        """The number of the record of a step: when it is taken, in microseconds."""
        tf = self.tf
        return tf.strings.as_string(tf.cast(tf.timestamp() * 1e6, tf.int64), width=18, fill="0")

    def keep_batch(self, stamp, data, iteration, sizes=None):
        """Writes the batch itself, as long as all batches up to this one are no more than is to be kept."""
        tf = self.tf

        def write():
            self.append("batches", stamp, packed)
            return tf.constant(True)

        packed = batches.pack_batch(tf, data, sizes)
        if iteration is None:
            write()
            return
        size = tf.cast(tf.strings.length(packed), tf.int64)
        tf.cond(size * tf.cast(iteration, tf.int64) < batches.limit(self.plan), write, lambda: tf.constant(False))

    def part_of(self, variable):
        """The Part of a variable, or the first of one that is stored in several; None for a stranger."""
        by_variable = {id(part.variable): part for part in self.parts}
        pieces = list(getattr(variable, "variables", [])) or [variable]
        return by_variable.get(id(pieces[0]))

    def name_of(self, variable):
        part = self.part_of(variable)
        return None if part is None else part.name

    def write_activations(self, activations):
        tf = self.tf
        tf.io.write_file(self.target("activations") + "%08d" % 1, pack_activations(tf, activations))
        return tf.constant(True)

    def named_gradients(self, step):
        """[(part of a variable, its whole gradient)] of a step; on replicas it is the sum of theirs already."""
        tf = self.tf
        by_variable = {id(part.variable): part for part in self.parts}
        found = []
        given = [] if step.carried else step.gradients or []  # else those of several steps are applied in one
        if step.graph is not None and any(_elsewhere(gradient, step.graph) for gradient, _ in given):
            return []
        for gradient, variable in given:
            part = by_variable.get(id(variable))
            if part is None:
                continue
            if isinstance(gradient, tf.IndexedSlices):
                gradient = tf.math.unsorted_segment_sum(gradient.values, gradient.indices, part.shape[0])
            found.append((part, gradient))
        return found

    def write_gradients(self, gradients, number, behind=""):
        """Writes the gradients of a step; ``behind`` its number stands which part of it they are of."""
        tf = self.tf
        entries = [{"name": part.name, "offset": part.offset, "whole": part.whole} for part, _ in gradients]
        name = tf.strings.as_string(number, width=8, fill="0")
        packed = batches.pack(tf, {"parts": entries}, [gradient for _, gradient in gradients])
        written = tf.io.write_file(self.target("gradients") + name + behind, packed)
        with tf.control_dependencies([] if written is None else [written]):  # no graph of TensorFlow 1 waits by itself
            return tf.constant(True)

    def saw_gradient_call(self, target):
        step = getattr(self.tracing, "step", None)
        if step is None:
            if not self.training_depth:
                self.folder.note_unrecorded("tf.GradientTape in a way that is not recorded", sources.user_line())
            return
        step.differentiated += 1
        step.clipping.before_gradients = len(step.clipping.calls)
        flat = [
            tensor for tensor in self.tf.nest.flatten(target) if hasattr(tensor, "dtype") and tensor.dtype.is_floating
        ]
        # A loss that two optimizers are given the gradients of is one loss.
        new = [tensor for tensor in flat if not any(tensor is one for one in step.targets)]
        if new:
            step.targets += new
            step.loss = loss_scales.total(self.tf, step.targets)

    def clipping(self):
        """Where calls of the clipping functions are noted now."""
        step = getattr(self.tracing, "step", None)
        return None if step is None else step.clipping

    def saw_update(self, optimizer, pairs, rate=None):
        step = getattr(self.tracing, "step", None)
        if step is None:
            return
        step.applied += 1
        if not any(optimizer is one for one in step.optimizers):
            step.optimizers.append(optimizer)
        if step.rate is not None:
            # Of another optimizer, which trains other variables; the first one's rate and count of steps are shown.
            step.gradients += pairs
            return
        tf = self.tf
        step.optimizer = optimizer
        # What an optimizer is given in a branch of a condition (every other step, say) is seen in there alone. What it
        # starts from is read outside.
        inside = step.graph is not None and tf.compat.v1.get_default_graph() is not step.graph
        if inside and self.points.given:
            raise RuntimeError("gradients are applied in some steps only, and a single one does not tell in which")
        with step.graph.as_default() if inside else contextlib.nullcontext():
            rate = keras_optimizers.rate_of(tf, optimizer) if rate is None or inside else rate
            step.rate = tf.cast(tf.convert_to_tensor(rate), tf.float32)
            step.iteration = tf.cast(tf.convert_to_tensor(optimizer.iterations), tf.int64)
        if self.points.given:
            with tf.init_scope():
                counter = self.points.counter()
            step.iteration = counter.read_value()
        step.gradients = list(pairs)

    def saw_rate(self, step, optimizer):
        """Notes the rate and count of an optimizer that has nothing to apply in an eager step."""
        tf = self.tf
        step.optimizer = optimizer
        step.rate = tf.cast(tf.convert_to_tensor(keras_optimizers.rate_of(tf, optimizer)), tf.float32)
        step.iteration = tf.cast(tf.convert_to_tensor(optimizer.iterations), tf.int64)

    def saw_own_update(self, original, optimizer, grads_and_vars, *args, **kwargs):
        """An optimizer of TensorFlow 1 code in a train step: the step counter of Keras counts for it."""
        step = getattr(self.tracing, "step", None)
        pairs = list(grads_and_vars)
        if step is not None and step.own is None:
            tf = self.tf
            step.own = optimizer
            step.iteration = tf.cast(tf.convert_to_tensor(self.tracing.model.optimizer.iterations), tf.int64)
            step.gradients = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
            with own_optimizers.scaled_rate(optimizer, self.own_factor):
                step.rate = own_optimizers.rate_of(tf, optimizer)
        with own_optimizers.scaled_rate(optimizer, self.own_factor):
            return original(optimizer, pairs, *args, **kwargs)

    def dropout_function(self, call, x, rate, noise_shape):
        """A dropout that is no layer's; ``call`` does what was asked."""
        step = getattr(self.tracing, "step", None)
        if step is None or even.is_zero(rate):
            return call()
        pin = self.plan.get("pin_dropout", True)
        if not step.in_masks:
            step.dropouts.append(_dropout(known_number(rate), x, noise_shape))
        elif pin:
            step.draws += 1
        return even.dropout(self.tf, x, rate, noise_shape, pin, self.place()) if pin else step.as_noted(call)

    # -- training --
    def begin(self, model, strategy):
        """Once, before step 1: the values to start from, what the program is, and the start barrier."""
        self.parts = self.recorded_parts(model)
        self.first = self.first or self.parts
        if not self.parts:
            raise RuntimeError("the model has no variables before fit; the recorder needs a built model")
        self.folder.begin_training(self.steps_done)
        if self.started:
            return
        self.started = True
        counted = getattr(getattr(model, "optimizer", None), "iterations", None)
        if not self.coordinated and counted is not None:
            self.first_step = int(read(self.tf, counted))
        if self.training and hasattr(model, "fit"):  # of what loops have trained before nothing is known
            self.origin = self.origins.found(self.current())
        if self.plan.get("initial_awaited"):
            self.folder.write_json("program.json", self.describe(model, strategy))
            self.folder.await_file(self.plan["initial"])
        if self.plan.get("draw_initial") and self.folder.leads():
            drawn.write(self.folder, self.initializers.draws(self.parts))
        values = parts.initial_values(self.plan, self.current)
        if values is not None:
            if self.plan.get("draw_initial"):
                parts.write_arrays(self.folder.file("made.npz"), self.current())
            for part, piece in zip(self.parts, parts.cut(self.parts, values)):
                assign(self.tf, part.variable, piece)
        parts.write_arrays(self.folder.file("initial.npz"), self.current())
        self.program = self.describe(model, strategy)
        self.folder.write_json("program.json", self.program)
        if not self.coordinated:
            self.folder.barrier("start")

    def describe(self, model, strategy):
        tf = self.tf
        layers = list(model._flatten_layers(include_self=False, recursive=True))
        losses = [np.float32(read(tf, loss)) for loss in model.losses if hasattr(loss, "numpy")]
        total = np.float32(0)
        for loss in losses:
            total = np.float32(total + loss)
        return {
            "program": "migrated",
            "tensorflow": tf.__version__,
            "keras": self.keras_version,
            "variables": self.described_parts(),
            "optimizer": keras_optimizers.settings(self.tf, model.optimizer),
            "by_hand": isinstance(model.optimizer, record_mesh.ByHand),
            "raw_slots": keras_optimizers.divides_by_rate(model.optimizer),
            "regularizers": len(losses),
            "regularization": float(total) if losses else None,
            "sources": self.source_lines(model),
            # A stand-in for a TPU is looked at as a whole: one device, which the original ran on.
            "replicas": 1 if replicas.is_stand_in(strategy) else int(strategy.num_replicas_in_sync),
            "replicas_of_batch": 1 if replicas.is_stand_in(strategy) else replicas.local(strategy),
            "gradients": "summed",
            "training": max(0, len(self.others) - self.before),
            "before": self.before,
            "origins": self.origin,
            "loop": self.by_batch or not hasattr(model, "fit"),
            "apart": bool(self.plan.get("apart")),
            "shuffles": self.shuffles,
            "own_workers": int(strategy.extended._num_workers) if self.coordinated and self.alone else 0,
            # Until a train step was traced.
            "update_ops": 0,
            "dropout_rates": [
                parts.float32(layer.rate) for layer in layers if isinstance(layer, self.dropout) and layer.rate != 0.0
            ],
        }

    def joined(self, several, optimizer):
        """What the traces of several functions showed together."""
        traced = dict(several[0], clipping=dict(several[0]["clipping"]))
        for one in several[1:]:
            traced["clipping"].update(one["clipping"])
            traced["anew"] |= one["anew"]
            for key in ("dropout_rates", "dropout_inputs", "dropout_after", "dropout_loops", "draws", "update_ops"):
                traced[key] = None if traced[key] is None or one[key] is None else traced[key] + one[key]
            if "thresholds" in traced:
                traced["thresholds"] = [*traced["thresholds"], *one.get("thresholds", ())]
                traced["halves"] = sorted({*traced["halves"], *one.get("halves", ())})
        self.updating = optimizer
        traced["optimizer"] = keras_optimizers.settings(self.tf, optimizer)
        traced["raw_slots"] = keras_optimizers.divides_by_rate(optimizer)
        return traced

    def described_parts(self):
        """The variables, and how a mesh divides them where there is one."""
        described = parts.describe(self.parts)
        first = {part.name: part.variable for part in reversed(self.parts)}
        return [dict(entry, **record_mesh.describe(self.tf, first[entry["name"]])) for entry in described]

    def further_parts(self, model):
        """The variables of a model that are not those of the recorded one, under names of their own."""
        known = {id(part.variable) for part in self.parts}
        more = [part for part in self.model_parts(model) if id(part.variable) not in known]
        names = {part.name for part in self.parts}
        for part in more:
            plain, number = part.name, 1
            while part.name in names:
                number += 1
                part.name = "%s#%d" % (plain, number)
        return more

    def has_values_for(self, model):
        """Whether the values that the program is to begin with are of this model's variables, too.

        Those of a model that is made anew, and goes on from a checkpoint, have other names.
        """
        values = parts.initial_values(self.plan, self.current)
        return values is None or all(part.name in values for part in self.further_parts(model))

    def extend(self, model):
        """Takes the variables of what else is trained beside the recorded model to its own."""
        more = self.further_parts(model)
        if not more:
            return
        before = parts.read_arrays(self.folder.file("initial.npz"))
        self.parts = [*self.parts, *more]
        self.first = self.parts
        values = parts.initial_values(self.plan, self.current)
        if values is not None:
            for part, piece in zip(more, parts.cut(more, values)):
                assign(self.tf, part.variable, piece)
        parts.write_arrays(self.folder.file("initial.npz"), {**self.current(), **before})
        if self.plan.get("draw_initial") and self.folder.leads():
            drawn.write(self.folder, self.initializers.draws(self.parts))
        self.program["variables"] = self.described_parts()

    def keep_late_slots(self, optimizers):
        """Keeps the slots of optimizers that take their first step after others have taken theirs."""
        values = {}
        for one in optimizers:
            values.update(self.slot_values(one))
        path = self.folder.file("slots", "late.npz")
        parts.write_arrays(path, {**parts.read_arrays(path), **values})

    def give_slots(self, place, optimizers):
        """Gives such optimizers the slots of the point at this place, where there is one."""
        point = self.points.at(place)
        if point is None:
            return
        given = self.points.slots(point)
        for one in optimizers:
            one.iterations.assign(int(point["step"]) - 1)
            rate = np.float32(float(read(self.tf, self.tf.convert_to_tensor(keras_optimizers.rate_of(self.tf, one)))))
            divides = keras_optimizers.divides_by_rate(one)
            for part, slot, variable in self.slot_parts(one):
                value = points.cut_slot(part, given[slot], slot)
                assign(self.tf, variable, value * -rate if slot == "momentum" and divides else value)

    def describe_traced(self, several=(), optimizer=None):
        """Completes the description by what the trace of the train step showed; of ``several`` functions that train,
        with an ``optimizer`` that stands for those of all, by what all of their traces did.
        """
        traced = dict(self.traced) if len(several) < 2 else self.joined(several, optimizer)
        clipping = traced.pop("clipping")
        self.program.update(traced)
        settings = self.program["optimizer"]["settings"]
        for key, value in clipping.items():
            # An optimizer's own clipping is seen twice: as its attribute and as a call.
            known = settings.get(key)
            settings[key] = value if known is None else one_value([known, value])
        self.folder.write_json("program.json", self.program)

    def source_lines(self, model):
        """{what: [path, line]} of the user's lines that are known."""
        found = dict(self.sources)
        found["optimizer"] = sources.marked(model.optimizer)
        found["loss"] = self.compiled.get(id(model))
        for layer in model._flatten_layers():
            for variable in own_weights(layer):
                part = self.part_of(variable)
                if part is not None:
                    found.setdefault("variable:" + part.name, sources.marked(layer))
        return {what: line for what, line in found.items() if line is not None}

    def input_line(self, data):
        """The user's line that made the batches of a dataset, or the function that makes the dataset."""
        make = getattr(data, "dataset_fn", None) or getattr(data, "_dataset_fn", None)
        if make is not None:
            return sources.line_of_function(make)
        waiting = [getattr(data, "_original_dataset", data)]
        while waiting:
            dataset = waiting.pop(0)
            line = sources.marked(dataset)
            if line is not None:
                return line
            if isinstance(dataset, self.tf.data.Dataset):
                waiting.extend(dataset._inputs())
        return None

    def call_layer(self, original, layer, *args, **kwargs):
        step = getattr(self.tracing, "step", None)
        if step is None:
            if self.called_in_loop is not None:
                self.called_in_loop(layer)
            return original(layer, *args, **kwargs)
        return step.layers.call(self.tf, original, layer, *args, **kwargs)

    def saw_assignment(self, layer, variable):
        step = getattr(self.tracing, "step", None)
        # Renormalisation has further averages, which TensorFlow 1 does not count as update operations.
        if step is not None and (variable is layer.moving_mean or variable is layer.moving_variance):
            step.updates += 1

    def dropout_call(self, original, layer, inputs, *args, **kwargs):
        if args:  # what the program says by its place comes before what Keras says by name
            kwargs.pop("training", None)
        training = args[0] if args else kwargs.get("training")
        step = getattr(self.tracing, "step", None)
        if training is None:
            training = self.learning_phase()
        # A layer that was told not to train is no dropout, whatever its rate. Outside of a training step no dropout
        # should be at work: one that is shows in what is evaluated or predicted.
        if step is None or layer.rate == 0.0 or not (hasattr(training, "dtype") or training):
            return original(layer, inputs, *args, **kwargs)
        shape_of = getattr(layer, "_get_noise_shape", lambda inputs: getattr(layer, "noise_shape", None))
        step.dropouts.append(_dropout(parts.float32(layer.rate), inputs, shape_of(inputs)))
        pin = self.plan.get("pin_dropout", True)
        if not pin:
            return step.as_noted(lambda: original(layer, inputs, *args, **kwargs))
        return even.of_layer(self.tf, layer, inputs, training, pin, self.place())

    def place(self):
        """The place of the step in the training, from 0, as a tensor; None where masks are the same at each step."""
        if not self.plan.get("anew") or record_mesh.started():
            return None
        step = getattr(self.tracing, "step", None)
        if step is not None:
            step.anew = True
        # A loop of the program's own may take many steps in one call, and counts them itself.
        if self.training_depth or self.coordinated or self.place_in_loop is None:
            with self.tf.init_scope():
                counter = self.points.counter(self.tf)
            return self.points.before_tensor(self.tf, counter.read_value())
        return self.points.before_tensor(self.tf, self.place_in_loop())

    def recurrent_masks(self, original, generator, ones, rate, training=None, count=1):
        """The masks of a recurrent layer. One that it draws for all time steps at once, of three axes, drops the same
        features at each, as a mask that is drawn in a loop does.
        """
        step = getattr(self.tracing, "step", None)
        if step is None:
            return original(generator, ones, rate, training=training, count=count)
        at_once = ones.shape.rank == 3
        loops = loops_of(ones)
        step.mask_loops.append(None if loops is None else loops + at_once)
        at_once = at_once and self.plan.get("pin_dropout", True)
        inputs = ones[:, 0] if at_once else ones
        made = step.as_noted(lambda: original(generator, inputs, rate, training=training, count=count))
        if not at_once:
            return made
        several = made if isinstance(made, list) else [made]
        several = [self.tf.expand_dims(one, 1) for one in several]
        return several if isinstance(made, list) else several[0]

    def saw_draw(self, shape=None):
        step = self.tracing.step
        step.draws += 1
        if not step.in_masks:  # whose loops are known
            step.mask_loops.append(loops_of(shape))

    def after_step(self, model):
        self.steps_done += 1
        if self.steps_done == 1:
            self.folder.note_cpu(1)
            if self.traced is not None:
                self.describe_traced()
        if not self.kept:
            self.state_after_step(model)
        if self.steps_done == self.plan.get("kill_after"):
            os._exit(0)
        if self.ended():
            model.stop_training = True
            if not self.kept:
                self.leave_after_step(model)

    def state_after_step(self, model):
        if self.steps_done in self.state_steps:
            self.record_state(model)

    def leave_after_step(self, model):
        if self.only_training:
            self.record_last_state(model)
            self.leave()

    def follow_callbacks(self, model, arguments):
        """Has what callbacks of the program keep beside the model recorded with its weights, after their turn."""
        given = arguments.get("callbacks")
        callbacks = [one for one in self.tf.nest.flatten(getattr(given, "callbacks", given)) if one is not None]
        own = callback_variables.of_program(callbacks)
        if not own or self.coordinated:
            return

        def begun():
            self.kept = callback_variables.kept(self.tf, own, model, self.parts)
            if not self.kept:
                return
            self.parts = [*self.parts, *self.kept]
            if not self.steps_done:
                parts.write_arrays(self.folder.file("initial.npz"), self.current())
            self.program["variables"] = self.described_parts()
            self.folder.write_json("program.json", self.program)

        def stepped():
            if self.kept:
                self.state_after_step(model)
                if self.ended():
                    self.leave_after_step(model)

        last = callback_variables.follower(self.tf.keras.callbacks.Callback, begun, stepped)
        if hasattr(given, "callbacks"):
            given.append(last)
        else:
            arguments["callbacks"] = [*callbacks, last]

    def ended(self):
        """Whether as many steps were taken as the plan allows; none are where it only asks for the variables."""
        return self.limit is not None and self.steps_done >= self.limit

    def leave(self):
        """Ends a program of which nothing but its training is wanted: the rest of it takes longer than a few steps."""
        if self.only_training:
            sys.exit(0)

    def record_last_state(self, model):
        if self.steps_done and self.recorded_state != self.steps_done:
            self.record_state(model)

    def record_state(self, model):
        if self.coordinated:
            model._cluster_coordinator.join()
        if not self.coordinated and not self.folder.leads():
            return
        self.recorded_state = self.steps_done
        name = "%08d.npz" % self.steps_done
        parts.write_arrays(self.folder.file("states", name), self.current())
        optimizer = model.optimizer if self.updating is None else self.updating
        parts.write_arrays(self.folder.file("slots", name), self.slot_values(optimizer))

    def build(self, model, arguments, strategy):
        """Makes the variables of a model that knows its inputs by its first batch only, as a class of its own does.
        ``arguments`` are those of the call that trains.
        """
        # What has variables made them by itself; the call of a model_fn of TensorFlow 1 may want labels, too.
        # Keras 3 calls a model built that ``build`` could not make variables for.
        if has_variables(model) or self.is_creator(arguments.get("x")):
            return
        tf = self.tf
        spec = getattr(arguments.get("x"), "element_spec", None) or self.element_spec(arguments)

        def zeros(one):
            return tf.zeros([1, *(size or 1 for size in one.shape[1:])], one.dtype)

        with strategy.scope():
            try:
                model(tf.nest.map_structure(zeros, spec[0] if isinstance(spec, tuple) else spec))
            except NotImplementedError:
                # It has no call, only steps of its own: to trace one makes the variables and computes nothing.
                step = tf.function(lambda data: strategy.run(model.train_step, args=(data,)))
                step.get_concrete_function(spec)

    def fit(self, original, signature, model, *args, **kwargs):
        if self.training_depth or self.leaves_fit:
            return original(model, *args, **kwargs)
        if self.started and self.ended():
            self.leave()
            return self.empty_history(model)
        if self.is_other(model):
            return self.fit_other(original, model, True, *args, **kwargs)
        self.model = model
        strategy = model.distribute_strategy
        self.coordinated = bool(strategy._should_use_with_coordinator)
        bound = signature.bind(model, *args, **kwargs)
        self.training_depth += 1
        if not self.started:
            self.sources["train"] = sources.user_line(model, "fit")
            self.sources["input"] = self.input_line(bound.arguments.get("x"))
            self.shuffles = shuffles.of(self.tf, bound.arguments.get("x"))
        self.watch_callbacks(model, bound.arguments.get("callbacks"))
        self.follow_callbacks(model, bound.arguments)
        try:
            self.build(model, bound.arguments, strategy)
            self.begin(model, strategy)
            if self.folder.replay:
                self.replay(bound, strategy)
            if self.ended():
                self.leave()
                return self.empty_history(model)
            step = model.train_step
            if not getattr(step, "recorded", False):

                def recorded(data):
                    return self.train_step(step, model, data)

                recorded.recorded = True
                model.__dict__["train_step"] = recorded
            try:
                history = original(*bound.args, **bound.kwargs)
            finally:
                model.__dict__.pop("train_step", None)
            self.record_last_state(model)
            self.folder.note_cpu(self.steps_done)
            self.folder.end_training()
            return history
        finally:
            self.training_depth -= 1

    def watch_callbacks(self, model, given):
        """Notes what the callbacks of a call of fit make of its training."""
        if self.effects is None:
            return

        def state():
            # Where parameter servers hold the rate, to ask for it would take longer than a step.
            rate = None if self.coordinated else getattr(model.optimizer, "learning_rate", None)
            known = None if rate is None else float(read(self.tf, self.tf.convert_to_tensor(rate)))
            return bool(model.stop_training), known

        for callback in self.tf.nest.flatten(getattr(given, "callbacks", given)):
            if callback is not None:
                self.effects.watch_callback(callback, state)

    def train_on_batch(self, original, signature, model, *args, **kwargs):
        """One step of a loop that calls ``train_on_batch``."""
        if self.training_depth or self.is_unrecorded(model):
            return original(model, *args, **kwargs)
        if self.started and self.ended():
            self.leave()
            return self.last_logs
        if self.is_other(model):
            return self.fit_other(original, model, False, *args, **kwargs)
        self.model = model
        bound = signature.bind(model, *args, **kwargs)
        arguments = bound.arguments
        self.training_depth += 1
        step = model.train_step
        try:
            if not self.started:
                atexit.register(self.record_last_state, model)
                self.by_batch = True
                self.sources["train"] = sources.user_line(model, "train_on_batch")
                if not model.built:
                    model(self.tf.nest.map_structure(lambda one: self.tf.convert_to_tensor(one[:1]), arguments["x"]))
                self.begin(model, model.distribute_strategy)
                if self.folder.replay:
                    self.given = iter(self.replayed(self.element_spec(arguments))())
                if self.ended():
                    self.leave()
                    return None
            if self.given is not None:
                batch = next(self.given)
                batch = batch if isinstance(batch, tuple) else (batch,)
                arguments.update(zip(("x", "y", "sample_weight"), batch))
            if not getattr(step, "recorded", False):

                def recorded(data):
                    return self.train_step(step, model, data)

                recorded.recorded = True
                model.__dict__["train_step"] = recorded
            self.last_logs = original(*bound.args, **bound.kwargs)
            return self.last_logs
        finally:
            model.__dict__.pop("train_step", None)
            self.training_depth -= 1

    def is_other(self, model):
        """Whether this model does not go on where the recorded one stands: one run compares one training.

        What goes on from a checkpoint of the recorded training, in a new model, has taken its steps.
        """
        if self.is_unrecorded(model):
            return True
        if self.model is None:
            return len(self.others) < self.training
        return bool(self.steps_done) and model is not self.model and not self.model_step(model)

    def is_unrecorded(self, model):
        """Whether this model was trained beside the one that is recorded."""
        return self.leaves_fit or any(model is other for other in self.others)

    def fit_other(self, original, model, of_fit, *args, **kwargs):
        """Trains a model that is not recorded; ``of_fit`` or by one of many single steps."""
        if not self.is_unrecorded(model):
            self.others.append(model)
        place = next(number for number, one in enumerate(self.others) if one is model)
        self.folder.another_training(place)
        before = bool(self.training) and not self.started and not model.distribute_strategy._should_use_with_coordinator
        if before and place not in self.origins.begun:
            self.origins.begins(place, self.values_of(model))
        self.training_depth += 1  # or its steps were those of a loop of the program's own
        try:
            return original(model, *args, **kwargs)
        finally:
            self.training_depth -= 1
            if before and of_fit:
                self.origins.ends(place, self.values_of(model))
            elif before:
                self.origins.later[place] = lambda: self.values_of(model)

    def values_of(self, model):
        """The weights of a model, as far as it has some yet."""
        found = self.model_parts(model) if has_variables(model) else []
        return parts.join(found, [read(self.tf, part.variable) for part in found])

    def empty_history(self, model):
        history = self.tf.keras.callbacks.History()
        history.set_model(model)
        history.on_train_begin()
        model.history = history
        return history

    def replay(self, bound, strategy):
        """Puts the recorded batches in the place of the data given to fit, and ends training where they
        end.
        """
        tf = self.tf
        arguments = bound.arguments
        x = arguments.get("x")
        apart = replicas.local(strategy) if self.is_creator(x) and not self.coordinated else 1
        make = self.replayed(self.element_spec(arguments), apart)
        workers = self.coordinated or strategy.extended._in_multi_worker_mode()
        if self.is_creator(x) or self.coordinated:
            data = tf.keras.utils.experimental.DatasetCreator(make)
        elif workers:
            data = strategy.distribute_datasets_from_function(make)
        else:
            data = make()
        if self.points.given:
            arguments["steps_per_epoch"] = self.limit
        if arguments.get("steps_per_epoch") is None:
            # An epoch ends where the program's own data would have ended.
            size = int(x.cardinality()) if isinstance(x, tf.data.Dataset) and not workers else -1
            if size >= 0:
                arguments["steps_per_epoch"] = size
            elif workers or self.is_creator(x):
                arguments["steps_per_epoch"] = self.limit - self.steps_done
        arguments["x"] = data
        for name in ("y", "sample_weight", "batch_size"):
            arguments.pop(name, None)

    def replayed(self, spec, apart=1):
        """The function that makes a dataset of the recorded batches, whose elements are as ``spec``; training ends
        where they end. With ``apart`` replicas each element is the batch of one of them.
        """
        tf = self.tf
        folder = self.folder
        source = folder.replay_sources[0] if self.coordinated else folder.replay
        several = self.coordinated and len(folder.replay_sources) > 1
        counts = [batches.count(path) for path in (folder.replay_sources if self.coordinated else [source])]
        total = sum(counts)
        self.limit = total if self.limit is None else min(total, self.limit)
        in_turns = several and self.dispatcher is not None
        if in_turns and not self.steps_done:
            self.dispatcher.limit(counts)
        elsewhere = "/proc/self/fd/%d" % REPLAY_DESCRIPTOR if self.coordinated else None

        def make(context=None):
            if in_turns:
                # Each worker goes on after its own last step, which only it knows.
                skip = appended.count(tf, "/proc/self/fd/%d/steps" % OWN_DESCRIPTOR)
            else:
                skip = 0 if several else self.steps_done
            repeat = several and not in_turns
            return batches.replay_dataset(tf, source, spec, elsewhere, skip, repeat=repeat, replicas=apart)

        return make

    def is_creator(self, data):
        """Whether data given to fit is a function that makes a dataset."""
        return isinstance(data, self.tf.keras.utils.experimental.DatasetCreator)

    def element_spec(self, arguments):
        tf = self.tf
        x = arguments.get("x")
        if self.is_creator(x):
            x = x.dataset_fn(tf.distribute.InputContext())
        if hasattr(x, "element_spec"):
            return replicas.spec_of_one(tf, x)
        if hasattr(x, "__next__"):  # a generator: its first batch is given back to it
            first = next(x)
            arguments["x"] = itertools.chain([first], x)
        elif hasattr(x, "__getitem__") and hasattr(x, "on_epoch_end"):  # a Sequence of batches
            first = x[0]
        else:
            given = (x, arguments.get("y"), arguments.get("sample_weight"))
            first = tuple(value for value in given if value is not None)
        return tf.nest.map_structure(self.spec_of_array, tuple(first) if isinstance(first, list) else first)

    def spec_of_array(self, value):
        """Batches of any size, as Keras makes them of an array: its floats are those of the backend."""
        array = value if hasattr(value, "dtype") and hasattr(value, "shape") else np.asarray(value)
        dtype = self.tf.as_dtype(array.dtype)
        kept = not dtype.is_floating or isinstance(value, self.tf.Tensor)
        return self.tf.TensorSpec([None, *array.shape[1:]], dtype if kept else self.tf.keras.backend.floatx())

    def make_train_function(self, original, model, *args, **kwargs):
        function = original(model, *args, **kwargs)
        if getattr(function, "counted", False) or not self.training_depth or self.is_unrecorded(model):
            return function

        def counted(*inputs):
            servers = model.distribute_strategy if self.coordinated else None
            self.take_point(self.steps_done, model.optimizer if self.updating is None else self.updating, servers)
            with self.turn(model._cluster_coordinator if self.coordinated else None):
                result = function(*inputs)
            self.after_step(model)
            return result

        counted.counted = True
        model.train_function = counted
        return counted

    def make_test_function(self, original, model, *args, **kwargs):
        """Lets the first of the workers that the program started itself take all steps of an evaluation, too."""
        function = original(model, *args, **kwargs)
        coordinator = getattr(model, "_cluster_coordinator", None)
        if coordinator is None or not self.alone or getattr(function, "in_turns", False):
            return function

        def in_turns(*inputs):
            with self.turn(coordinator):
                return function(*inputs)

        in_turns.in_turns = True
        model.test_function = in_turns
        return in_turns

    def turn(self, coordinator):
        """Where workers take their steps in a fixed order: the turn of the next one."""
        if coordinator is None or self.dispatcher is None:
            return contextlib.nullcontext()
        return self.dispatcher.turn(coordinator)

    # -- evaluation --
    def evaluate(self, original, signature, model, *args, **kwargs):
        if self.is_unrecorded(model):
            return original(model, *args, **kwargs)
        # The program's own evaluation comes last: metrics end as it leaves them.
        others = {}
        if any(self.plan.get(key) for key in ("evaluate_weights", "evaluation_control", "evaluation_noise")):
            bound = signature.bind(model, *args, **kwargs)
            batches_of, rest = self.read_ahead(bound.arguments.get("x"), bound.arguments.get("steps"))
            others = self.evaluate_others(original, bound, model, batches_of)
            if batches_of is not None or rest is not None:
                bound = signature.bind(model, *args, **kwargs)
                bound.arguments["x"] = rest if batches_of is None else batches_of()
                args, kwargs = bound.args[1:], bound.kwargs
        results, losses = self.batch_losses.measured(model, lambda: original(model, *args, **kwargs))
        named = results
        if not isinstance(results, dict):
            values = results if isinstance(results, (list, tuple)) else [results]
            named = dict(zip(model.metrics_names, values))
        step = self.model_step(model)
        line = {"time": time.time(), "step": step, "results": {**parts.numbers(named), **losses}}
        line.update(others)
        self.keep_evaluated(model, step)
        self.folder.append_line("evaluations.jsonl", line)
        return results

    def keep_evaluated(self, model, step):
        """What was evaluated, for another program to evaluate the same."""
        here = not self.coordinated or self.alone
        if model is self.model and self.steps_done and here and self.folder.leads():
            path = self.folder.evaluated(step)
            if path is not None:
                parts.write_arrays(path, self.current())

    def model_step(self, model):
        optimizer = getattr(model, "optimizer", None)
        if optimizer is None:
            return None
        step = int(read(self.tf, optimizer.iterations))
        if model is self.model and self.first_step is not None and not self.coordinated:
            # Where data end without having said when, Keras counts the step for which nothing was left, too.
            step = min(step, self.first_step + self.steps_done) if self.steps_done else step
        return step

    def read_ahead(self, data, steps):
        """What gives the batches of a generator as often as they are asked for; None of other data, which can be read
        again or not at all, and of more than are kept: then the generator itself comes second, as it was.
        """
        if not inspect.isgenerator(data):
            return None, None
        found, size = [], 0
        for batch in itertools.islice(data, steps):
            found.append(batch)
            size += sum(getattr(one, "nbytes", 0) for one in self.tf.nest.flatten(batch))
            if size > batches.KEPT_BYTES:
                return None, (one for one in itertools.chain(found, data))
        return (lambda: (one for one in found)), None

    def evaluate_others(self, original, bound, model, batches_of=None):
        """The results of the same evaluation with weights that are not the model's, which it keeps.

        ``batches_of`` gives the data anew where they can be read only once.
        """
        data = bound.arguments.get("x")
        if data is None or (hasattr(data, "__next__") and batches_of is None):
            return {"note": "not evaluated with other weights: its data can be read only once"}
        quiet = {"verbose": 0, "return_dict": True, "callbacks": self.callback_list([], model=model)}
        bound.arguments.update(quiet)

        def run():
            if batches_of is not None:
                bound.arguments["x"] = batches_of()
            results, losses = self.batch_losses.measured(model, lambda: original(*bound.args, **bound.kwargs))
            self.settle(model)
            return {**parts.numbers(results), **losses}

        self.settle(model)
        if not model.built:
            run()  # makes the variables
        model_parts = self.recorded_parts(model)
        own = [[self.tf.convert_to_tensor(one).numpy() for one in copies(part.variable)] for part in model_parts]
        found = {}
        try:
            chosen = self.weights_for(self.model_step(model))
            if chosen is not None and self.take_weights(model_parts, chosen["path"], found):
                found.update(same_weights=run(), weights_step=chosen["step"])
            start = self.folder.initial_file() if self.plan.get("evaluation_control") else None
            if start is not None and self.take_weights(model_parts, start, found):
                found["control"] = run()
            found["nudged"] = self.nudging.results(lambda seed: self.run_nudged(model_parts, own, seed, run))
        finally:
            for part, values in zip(model_parts, own):
                for one, value in zip(copies(part.variable), values):
                    one.assign(value)
        return found

    def run_nudged(self, model_parts, own, seed, run):
        """The results of an evaluation with each of the model's weights moved by one ulp."""
        named = {str(place): values[0] for place, values in enumerate(own)}
        half = halves.coarsest(self.traced.get("halves") or () if self.traced else ())
        for place, value in parts.moved_one_ulp(named, seed, halves.DIGITS.get(half)).items():
            assign(self.tf, model_parts[int(place)].variable, value)
        return run()

    def settle(self, model):
        """Waits until workers have done what they were given."""
        coordinator = getattr(model, "_cluster_coordinator", None)
        if coordinator is not None:
            coordinator.join()

    def weights_for(self, step):
        """The entry of the plan's weights that is of this step, else the nearest."""
        given = self.plan.get("evaluate_weights") or []
        if not given:
            return None
        return given[-1] if step is None else min(given, key=lambda one: abs(one["step"] - step))

    def take_weights(self, model_parts, path, found):
        """Gives a model other weights; a note, and false, where they are those of another model."""
        with np.load(path) as archive:
            values = {name: archive[name] for name in archive.files}
        try:
            pieces = parts.cut(model_parts, values)
        except (KeyError, ValueError) as error:
            found["note"] = "not evaluated with other weights: %s" % error.args[0]
            return False
        for part, piece in zip(model_parts, pieces):
            assign(self.tf, part.variable, piece)
        return True

    def checkpoints(self, original, checkpoint_dir, min_interval_secs=0, timeout=None, timeout_fn=None):
        """tf.train.checkpoints_iterator that also ends when every training process is gone and no
        checkpoint is left.
        """
        begun, seen_over = [time.time()], []

        def over():
            if self.folder.training_over():
                # The last checkpoint may have been written after the look that found none: look once more.
                seen_over.append(True)
                return len(seen_over) > 1
            if timeout is not None and time.time() - begun[0] > timeout:
                return timeout_fn() if timeout_fn else True
            return False

        for path in original(checkpoint_dir, min_interval_secs=min_interval_secs, timeout=1, timeout_fn=over):
            yield path
            begun[0] = time.time()


def _several(optimizer):
    """The optimizers that train a model, mostly one."""
    return getattr(optimizer, "parts", []) or [optimizer]


def set_rates(optimizer, rate):
    """Gives the optimizers that train a model another rate, where there is one."""
    for one in _several(optimizer) if rate is not None else []:
        keras_optimizers.set_rate(one, rate)


def _elsewhere(gradient, graph):
    """Whether a gradient is that of a branch of a condition in a graph."""
    return getattr(getattr(gradient, "values", gradient), "graph", graph) is not graph


def patch_train_on_batch(model, recorder):
    """Every call of ``train_on_batch`` of a class of models."""
    signature = inspect.signature(model.train_on_batch)
    parts.wrap(
        model,
        "train_on_batch",
        lambda original, self, *args, **kwargs: recorder.train_on_batch(original, signature, self, *args, **kwargs),
    )


def patch_predictions(model, recorder):
    """Both ways in which a class of models predicts."""
    signature = inspect.signature(model.predict)
    parts.wrap(
        model,
        "predict",
        lambda original, self, *args, **kwargs: recorder.predictions.predict(
            original, signature, self, *args, **kwargs
        ),
    )
    parts.wrap(model, "predict_on_batch", recorder.predictions.predict_on_batch)


def install(plan, folder):
    tf = importlib.import_module("tensorflow")
    base = tf.keras.Model.__module__.split(".")[0] + ".src."
    model = importlib.import_module(base + "engine.training").Model
    optimizer = importlib.import_module(base + "optimizers.optimizer")
    legacy = importlib.import_module(base + "optimizers.legacy.optimizer_v2").OptimizerV2
    dropout = importlib.import_module(base + "layers.regularization.dropout").Dropout
    recorder = KerasRecorder(tf, plan, folder)
    recorder.dropout = dropout
    recorder.learning_phase = importlib.import_module(base + "backend").learning_phase
    recorder.callback_list = importlib.import_module(base + "callbacks").CallbackList
    recorder.keras_version = getattr(importlib.import_module(base.partition(".")[0]), "__version__", None)

    signature = inspect.signature(model.fit)
    parts.wrap(
        model,
        "fit",
        lambda original, self, *args, **kwargs: recorder.fit(original, signature, self, *args, **kwargs),
    )
    patch_train_on_batch(model, recorder)
    parts.wrap(model, "make_train_function", recorder.make_train_function)
    parts.wrap(model, "make_test_function", recorder.make_test_function)
    if plan.get("evaluate", True):
        evaluation = inspect.signature(model.evaluate)
        parts.wrap(
            model,
            "evaluate",
            lambda original, self, *args, **kwargs: recorder.evaluate(original, evaluation, self, *args, **kwargs),
        )
    shuffles.install(tf)
    if plan.get("draw_initial"):
        layer = importlib.import_module(base + "engine.base_layer").Layer
        parts.wrap(layer, "add_weight", recorder.initializers.add_weight)
    patch_predictions(model, recorder)
    keras_patches.patch_compile(model, recorder)
    keras_patches.patch_layers(base, recorder)
    keras_patches.patch_sources(tf, base, (optimizer._BaseOptimizer, legacy), recorder)
    watch_clipping(recorder.clipping)
    keras_patches.patch_waiting(recorder)
    if recorder.dispatcher is not None:
        coordinator = importlib.import_module("tensorflow.python.distribute.coordinator.cluster_coordinator")
        parts.wrap(coordinator._CoordinatedClosureQueue, "put", recorder.dispatcher.put)
    keras_patches.patch_gradients(tf, optimizer, legacy, recorder)
    parts.wrap(
        dropout,
        "call",
        lambda original, self, inputs, *args, **kwargs: recorder.dropout_call(original, self, inputs, *args, **kwargs),
    )
    masks = importlib.import_module(base + "layers.rnn.dropout_rnn_cell_mixin")
    parts.wrap(masks, "_generate_dropout_mask", recorder.recurrent_masks)
    even.watch_dropouts(recorder.dropout_function)
    if plan.get("pin_dropout", True):

        def at_work():
            return getattr(recorder.tracing, "step", None) is not None

        even.install(tf, at_work, recorder.saw_draw, recorder.place, alone=plan["task"]["type"] == "local")
    keras_patches.patch_places(tf, model, importlib.import_module(base + "callbacks"), recorder)
    keras_patches.patch_sidecar(base, recorder)
    return recorder
