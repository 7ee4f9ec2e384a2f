"""Records training loops of a program's own: ``strategy.run`` inside a ``tf.function``, a ``GradientTape``, and a Keras
optimizer that applies the gradients; on one device or on the replicas of one process.

What ``strategy.run`` runs is a training step if gradients are taken and applied in it, and else a step of an
evaluation. Everything about a step is known when it is traced, which is before it is run for the first time: then the
weights get the values to start from, and operations are added that write what the step computes. So steps are also
recorded where many of them run in one call (``tf.range``). The loss is the sum over the replicas of what they
differentiate, and the batch that of all replicas.

Several functions may train, as those of the two networks of a GAN do. What they compute one after the other on the same
batch are the parts of one step, as a train_op that does all of it is one step: its loss is the sum of theirs, its
gradients are those of all, and weights and slots are written as the last of them leaves them.
"""

import atexit
import contextlib
import importlib
import itertools
import os
import sys
import time

import appended
import batches
import eager_evaluation
import loop_trainings
import loss_scales
import numpy as np
import own_counts
import parts
import record_mesh
import record_plain
import record_scheduled
import replicas
import sources
from keras_variables import copies, read
from record_keras import Step
from step_parts import StepParts
from tracing import ancestors

LOOK_ON = 6  # steps that are passed over to see what else a program trains
MOST_SKIPPED = 100000  # calls of a step after the last that counts: a loop that waits for its optimizer never ends


class Trained(object):
    """What a traced step trains, or evaluates, with the attributes of a Keras model that the recorder asks for."""

    def __init__(self, step):
        self.layers = list(step.layers.outermost)
        self.optimizer = step.optimizer
        known = {id(_inner(variable)) for variable in _of(self.layers, "variables")}
        updated = [variable for _, variable in step.gradients or [] if id(variable) not in known]
        self.variables = _distinct([*_of(self.layers, "variables"), *updated, *step.kept])
        self.trainable_variables = _distinct([*_of(self.layers, "trainable_variables"), *updated])
        self.weights = self.variables
        self.metrics = _distinct(_of(self.layers, "metrics"))

    @property
    def losses(self):
        """The regularization as the weights are now."""
        return _of(self.layers, "losses")

    def _flatten_layers(self, include_self=True, recursive=True):
        return itertools.chain.from_iterable(layer._flatten_layers() for layer in self.layers)


def _of(layers, name):
    return [one for layer in layers for one in getattr(layer, name, [])]


def kept_beside(tf, graph, step, slots):
    """The variables that a step keeps beside what it trains, as moving averages of weights or sums of gradients: those
    that are formed as a weight and that no layer, metric or optimizer has. ``graph`` is None for a step that was run
    eagerly, ``slots`` are the optimizers'.
    """
    trained = [variable for _, variable in step.gradients or []]
    forms = {(tuple(one.shape.as_list()), one.dtype.base_dtype) for one in trained}
    known = [*trained, *slots, *map(_inner, _of(step.layers.outermost, "variables"))]
    known = {id(one) for variable in known for one in copies(variable)}
    # ``variables`` of a graph is empty as long as it is traced.
    used = step.assigned if graph is None else list(getattr(graph, "_watched_variables", ()))
    # What a step by hand keeps may have been made as any variable is, "trainable".
    moved = {id(one) for one in step.moved}
    found = [one for one in used if isinstance(one, tf.Variable) and (not one.trainable or id(one) in moved)]
    return [
        one for one in found if id(one) not in known and (tuple(one.shape.as_list()), one.dtype.base_dtype) in forms
    ]


def _inner(variable):
    """The TensorFlow variable in a variable of Keras 3; others as they are."""
    return variable._value if hasattr(variable, "path") else variable


def _results(name, value):
    """The numbers of a metric, which Keras 3 has some of in a dict."""
    found = value if isinstance(value, dict) else {name: value}
    return parts.numbers({name: one.numpy() for name, one in found.items()})


def _distinct(things):
    found = {id(thing): thing for thing in things}
    return list(found.values())


class Evaluation(object):
    """The steps of an evaluation since the last training step, and what the program has read of its metrics."""

    def __init__(self):
        self.calls = []  # (function, arguments): what the program ran, to run it with other weights
        self.metrics = []
        self.before = []  # what each of them held before the first of these steps; None where nobody looked
        self.line = None
        self.source = None  # the iterator whose batches it is made with, where its metrics are updated eagerly
        self.others = {}  # results with other weights, of such an evaluation
        self.note = ""  # why there are none

    def add_metric(self, metric, before=None):
        if not any(metric is one for one in self.metrics):
            self.metrics.append(metric)
            self.before.append(before)

    def reset(self):
        """Has the metrics hold what they held before: nothing, unless the program has never reset them."""
        for metric, before in zip(self.metrics, self.before):
            metric.reset_state()
            eager_evaluation.give(before or [])

    def name(self, metric):
        """The metric's name, numbered where others have the same: two of the class Mean are both called "mean"."""
        place = next(n for n, one in enumerate(self.metrics) if one is metric)
        before = sum(one.name == metric.name for one in self.metrics[:place])
        return "%s_%d" % (metric.name, before) if before else metric.name


class LoopRecorder(object):
    """State of the recorder of loops in one process; ``recorder`` is that of the process's Keras."""

    def __init__(self, recorder):
        self.tf = recorder.tf
        self.recorder = recorder
        self.folder = recorder.folder
        self.passive = 0  # depth of Keras' own loops, which the Keras recorder knows
        self.depth = 0  # of functions that the program calls
        self.kinds = {}  # id of function -> (function, whether it trains)
        self.seen = set()  # the kinds of steps that were traced since the outermost call began
        self.updated = []  # the metrics that were updated since
        self.metric_kinds = {}  # id of function -> metrics that it updates
        self.evaluating = []  # the layers that a step of an evaluation, traced since the outermost call began, calls
        self.evaluating_kinds = {}  # id of function -> those of its last trace
        self.counter = None
        self.traced_steps = 0  # in the call under way
        self.limit = recorder.limit
        self.optimizer = None
        self.restored = None  # the optimizer that an evaluator, which does not train, reads from checkpoints
        self.settled = 0
        self.dirty = False
        self.passing = []  # the files of a state that is kept if no step follows
        self.last = None
        self.results = {}  # what each function that trains returned last
        self.described = False
        self.skipped = 0
        self.evaluation = Evaluation()
        self.evaluated = None  # the last step of an evaluation that was traced
        self.evaluating_others = False
        self.trainings = loop_trainings.LoopTrainings(recorder)
        recorder.place_in_loop = self.place
        recorder.called_in_loop = self.called if self.trainings.apart else None
        self.mesh = record_mesh.MeshSteps(self, Step, Trained, data_of)
        self.scheduled = record_scheduled.ScheduledSteps(self)
        self.plain = record_plain.PlainSteps(self, Step, Trained, data_of, kept_beside)
        self.counts = own_counts.OwnCounts()
        self.parts = StepParts(self.tf, self.plain.asked, self.plain.same_batch)
        self.eager = eager_evaluation.EagerEvaluations(self, self.plain)

    # -- a step, at tracing time --
    def run(self, original, strategy, fn, args=(), kwargs=None, options=None):
        tf = self.tf
        recorder = self.recorder
        around = getattr(recorder.tracing, "step", None)  # the function that this is called in, until it is known
        own = not self.passive and not recorder.training_depth and (around is None or around.plain)
        inside = tf.distribute.has_strategy() and not tf.distribute.in_cross_replica_context()
        if not own or inside or tf.executing_eagerly():
            return original(strategy, fn, args=args, kwargs=kwargs, options=options)
        steps = []
        converted = _converted(fn)

        def replica(*inputs, **named):
            step = recorder.tracing.step = Step()
            recorder.tracing.model = None
            steps.append(step)
            try:
                return converted(*inputs, **named)
            finally:
                recorder.tracing.step = around

        replayed = None
        if self.traced_steps and not recorder.coordinated:  # one behind the other in one call
            recorder.take_points_within(self.counter.read_value(), self.optimizer)
        if self.folder.replay and not recorder.coordinated:
            args, kwargs, replayed = self.replay(args, kwargs or {})
        result = original(strategy, _artifact(replica), args=args, kwargs=kwargs, options=options)
        if any(step.loss is not None for step in steps):
            other = self.is_other(steps[0])
            self.seen.add("other" if other else "train")
            if not other and self.recordable(steps):
                if replayed is not None:
                    with tf.init_scope():
                        replayed.assign(True)
                data, sizes = data_of(tf, args, kwargs or {}), sizes_of(tf, args, kwargs or {})
                self.trained(strategy, steps, data, sizes=sizes)
        else:
            self.saw_evaluation(steps[0] if steps else None)
        return result

    def saw_evaluation(self, step):
        """A step of an evaluation was traced."""
        self.seen.add("evaluate")
        self.evaluated = step
        self.evaluating = [] if step is None else step.layers.outermost

    def recordable(self, steps, **of):
        """Whether the steps of the replicas are of the form that is recorded; notes what is not. ``graph`` is None for
        steps that are run eagerly.
        """
        graph = of.get("graph", self.tf.compat.v1.get_default_graph())
        for step in steps:
            problem = None
            if step.gradients is None and self.is_of_other_keras():
                problem = "what it imports as `keras`, which is Keras 3 (verify it with --keras 3)"
            elif step.gradients is None:
                problem = "a step that changes weights without a Keras optimizer"
            elif step.applied > max(1, len(step.optimizers)):
                problem = "an optimizer that is given gradients several times in one step"
            elif graph is not None and step.several:
                problem = "a step that asks for several batches itself"
            elif graph is not None and step.loss.graph is not graph:
                problem = "a GradientTape inside a loop or branch of one step"
            if problem is not None:
                self.folder.note_unrecorded(problem, sources.user_line())
                return False
        return True

    def is_of_other_keras(self):
        """Whether the program has imported Keras 3 by its own name, where Keras 2 is recorded."""
        recorded, other = self.recorder.keras_version, getattr(sys.modules.get("keras"), "__version__", "")
        return str(recorded).startswith("2") and other.startswith("3")

    def trained(self, strategy, steps, data, **of):
        """Records a step; ``graph`` is None where it was run eagerly, ``sizes`` says how many of the examples each of
        several replicas has.
        """
        tf = self.tf
        recorder = self.recorder
        first = steps[0]
        graph = of.get("graph", tf.compat.v1.get_default_graph())
        for step in steps:
            step.loss = loss_scales.loss_of(tf, step)
        if first.optimizers:
            first.optimizer = recorder.together(first.optimizers)
        if not recorder.coordinated:
            slots = [one for optimizer in first.optimizers for _, _, one in recorder.slots.get(id(optimizer), ())]
            first.kept = [] if first.carried else kept_beside(tf, graph, first, slots)
        with tf.init_scope():
            if self.optimizer is None:
                self.begin(Trained(first), strategy)
            anew = not recorder.has_values_for(Trained(first))  # the same model, made anew
            if not anew:
                self.add(first)
        new = not anew and not self.parts.knows(first)
        reached = recorder.note_trace(first, graph)
        known = self.parts.known() if anew else self.parts.note(first, recorder.traced)
        with tf.init_scope():
            if graph is not None or not self.described or new:
                recorder.describe_traced(known, self.optimizer)
                self.described = True
            if self.over() and not self.parts.goes_on and (self.limit or recorder.coordinated or _in_loop(graph)):
                raise SystemExit(0)  # only the variables were asked for
        self.traced_steps += 1
        part = None
        if recorder.coordinated:  # only what lives on the servers can be counted from all workers
            number = first.iteration + 1
        else:
            part = self.parts.number.read_value()
            new = tf.cast(tf.equal(part, 0), tf.int64)
            number = tf.convert_to_tensor(self.counter.assign_add(new, read_value=True))
            self.parts.number.assign(0)

        def write():
            self.write_step(strategy, steps, data, number, of.get("sizes"), part)
            found = [
                step.layers.activations(
                    tf, graph, recorder.name_of, ancestors([step.loss]) if step is not first else reached
                )
                for step in steps
            ]
            together = _together(tf, [_whole(tf, one, len(loss_scales.in_parts(first))) for one in found])
            if together:
                first_part = tf.equal(number, 1) if part is None else tf.equal(number, 1) & tf.equal(part, 0)
                tf.cond(first_part, lambda: recorder.write_activations(together), lambda: tf.constant(False))
            return tf.constant(True)

        if self.limit is None or recorder.coordinated:
            write()
        else:
            tf.cond(number <= self.limit, write, lambda: tf.constant(False))
        if _in_loop(graph) and not recorder.coordinated:
            self.between(number, first.plain)

    def between(self, number, plain=True):
        """Adds what gives the program what its next step is to start from, where it comes in the same call."""
        recorder = self.recorder
        recorder.take_points_within(number, self.optimizer)
        if recorder.points.given and plain:  # what a strategy runs has its counts on every replica
            steps = [int(point["step"]) for point in recorder.points.given]
            self.counts.start_within(self.tf, number, steps, _plain_variable)

    def is_other(self, step):
        """Whether a step is of another training than the recorded one."""
        return self.trainings.is_other([one for _, one in step.gradients or ()], self.parts.goes_on)

    def turn_to(self, elsewhere):
        """What is evaluated from now on is the model of another training (``elsewhere``), or of the recorded one."""
        self.write_evaluation()
        self.evaluation = Evaluation()
        if self.dirty:
            self.settle()
        self.trainings.elsewhere = elsewhere

    def called(self, *models):
        """Models, or layers of theirs, are called outside of training: what is evaluated now is of their training."""
        if self.passive or self.recorder.training_depth or self.evaluating_others or self.eager.running is not None:
            return
        elsewhere = self.trainings.lies_elsewhere(models)
        if elsewhere is not None and elsewhere != self.trainings.elsewhere:
            with self.tf.init_scope():
                self.turn_to(elsewhere)

    def leave(self):
        """Another training goes on: what is evaluated from now on is its model."""
        self.turn_to(True)
        if self.optimizer is not None and self.over() and self.recorder.only_training:
            raise SystemExit(0)

    def learn(self, step):
        """Notes what another function trains, whose step is not taken any more."""
        if self.parts.knows(step):
            return
        with self.tf.init_scope():
            if not self.recorder.has_values_for(Trained(step)):
                return
            self.add(step)
        self.recorder.note_trace(step, None)
        self.recorder.describe_traced(self.parts.note(step, self.recorder.traced), self.optimizer)

    def add(self, step):
        """What another function trains beside what is known already."""
        if self.parts.knows(step):
            return
        recorder = self.recorder
        recorder.extend(Trained(step))
        late = self.parts.add_optimizers(step.optimizers)
        if not late or len(self.parts.optimizers) == len(late):
            return
        self.optimizer = recorder.together(self.parts.optimizers)
        place = self.steps_done() - self.parts.goes_on
        if place > 0:  # earlier steps had these slots, too
            recorder.keep_late_slots(late)
            recorder.give_slots(place, late)

    def begin(self, trained, strategy):
        """Once, before step 1."""
        recorder = self.recorder
        self.make_counter()
        self.optimizer = trained.optimizer
        recorder.sources.setdefault("train", sources.user_line())
        recorder.begin(trained, strategy)
        if recorder.coordinated:
            self.limit = recorder.limit
        elif self.folder.replay:
            count = batches.count(self.folder.replay)
            self.limit = count if self.limit is None else min(count, self.limit)

    def write_step(self, strategy, steps, data, number, sizes=None, part=None):
        """Adds the operations that write one step, or the ``part`` of it that comes behind so many others."""
        tf = self.tf
        recorder = self.recorder
        first = steps[0]
        losses = [tf.cast(step.loss, tf.float32) for step in steps]
        loss = losses[0] if len(losses) == 1 else tf.add_n(losses)
        elsewhere = strategy.num_replicas_in_sync // len(steps)
        if elsewhere > 1:  # the share of this process, as if it were alone
            loss *= float(elsewhere)
        fields = [("loss", loss)] + ([] if first.rate is None else [("learning_rate", first.rate)])
        header = {"fields": [name for name, _ in fields]}
        tensors = [tensor for _, tensor in fields]
        stamp = recorder.stamp()
        behind = ""
        if part is not None:
            behind = tf.where(tf.equal(part, 0), "", tf.strings.join(["+", tf.strings.as_string(part)]))
        if recorder.plan.get("record_batches", True) and data is not None:
            header["components"], described = batches.describe(tf, data)
            tensors += described

            def keep():
                recorder.keep_batch(stamp, data, number - 1, sizes)
                return tf.constant(True)

            if part is None:
                keep()
            else:
                tf.cond(tf.equal(part, 0), keep, lambda: tf.constant(False))
        self.append(batches.pack(tf, header, tensors), stamp, number, part)
        last = [self.limit] if self.limit else []
        gradients = recorder.named_gradients(first)
        self.at(number, recorder.state_steps, lambda: recorder.write_gradients(gradients, number, behind))
        if self.folder.leads() and not recorder.coordinated:  # else the coordinator writes them
            self.at(number, [*recorder.state_steps, *last], lambda: self.write_state(number))

    def append(self, record, stamp, number, part):
        """Adds the operation that appends what a step came to, or a part of it that comes behind others."""
        tf = self.tf

        def step():
            self.recorder.append("steps", stamp, record)
            return tf.constant(True)

        def further():
            self.recorder.append("more", tf.strings.as_string(number, width=appended.NUMBER, fill="0"), record)
            return tf.constant(True)

        if part is None:
            step()
        else:
            tf.cond(tf.equal(part, 0), step, further)

    def at(self, number, steps, write):
        """Adds the operations of ``write``, which are run at some steps."""
        tf = self.tf
        if steps:
            chosen = tf.reduce_any(tf.equal(number, tf.constant(sorted(set(steps)), tf.int64)))
            tf.cond(chosen, write, lambda: tf.constant(False))

    def write_state(self, number):
        """Adds the operations that write weights and slots after a step."""
        tf = self.tf
        recorder = self.recorder
        name = tf.strings.as_string(number, width=8, fill="0")
        weights = [(part.name, part, part.variable) for part in recorder.parts]
        several = getattr(self.optimizer, "parts", [])
        slots = [
            (part.name + "|" + slot, part, recorder.canonical(tf, optimizer, slot, variable) if several else variable)
            for optimizer in several or [self.optimizer]
            for part, slot, variable in recorder.slot_parts(optimizer)
        ]
        for folder, wanted in (("states", weights), ("slots", slots)):
            entries = [{"name": key, "offset": part.offset, "whole": part.whole} for key, part, _ in wanted]
            tensors = [mean_of_copies(tf, variable) for _, _, variable in wanted]
            tf.io.write_file(recorder.target(folder) + name, batches.pack(tf, {"parts": entries}, tensors))
        return tf.constant(True)

    # -- recorded batches in the place of the program's own --
    def replay(self, args, kwargs, rows=None):
        """The arguments of a step, with the recorded batch in them once it is known to train; and the variable that
        says so. ``rows`` are those of the batch that this is, where it is but a part: where they begin, and how many.
        """
        tf = self.tf
        data = data_of(tf, args, kwargs)
        leaves = [] if data is None else tf.nest.flatten(raw_data_of(tf, args, kwargs))
        if not leaves:
            return args, kwargs, None
        chosen = self.parts.of_first(len(leaves))
        if self.parts.goes_on and not any(place is not None for place in chosen):
            return args, kwargs, None
        with tf.init_scope():
            flag = _plain_variable(False)
            self.make_counter()
        spec = self.parts.spec(data, lambda leaf: _spec(tf, leaf))
        leaves = [leaf for leaf, place in zip(leaves, chosen) if place is not None]
        own = [list(leaf.values) if _per_replica(leaf) else [leaf] for leaf in leaves]
        pieces = len(own[0])
        files = self.folder.replay
        names = sorted(name for name in os.listdir(files) if name.isdigit())
        parse = batches.replay_reader(tf, files, spec)
        sizes_in = batches.replay_sizes(tf, files, pieces)
        flat_own = [tensor for tensors in own for tensor in tensors]

        def recorded():
            place = tf.minimum(self.parts.steps_before(self.counter), len(names) - 1)
            name = tf.constant(files + os.sep) + tf.gather(tf.constant(names), place)
            read = tf.nest.flatten(parse(name))
            whole = [read[one] for one in chosen if one is not None]
            if rows is not None:
                whole = [tensor[rows[0] : rows[0] + rows[1]] for tensor in whole]
            sizes = sizes_in(name, tf.shape(whole[0], out_type=tf.int64)[0])
            return [piece for tensor in whole for piece in tf.split(tensor, sizes, num=pieces)]

        found = tf.cond(flag.read_value(), recorded, lambda: [tf.identity(tensor) for tensor in flat_own])
        new = {}
        for place, leaf in enumerate(leaves):
            tensors = found[place * pieces : (place + 1) * pieces]
            for tensor, old in zip(tensors, own[place]):
                tensor.set_shape(tf.TensorShape([None]).concatenate(old.shape[1:]))
            new[id(leaf)] = type(leaf)(tensors) if _per_replica(leaf) else tensors[0]
        args, kwargs = tf.nest.map_structure(lambda leaf: new.get(id(leaf), leaf), (tuple(args), dict(kwargs)))
        return args, kwargs, flag

    # -- between the calls of the program --
    def make_counter(self):
        if self.counter is None:
            self.counter = _plain_variable(np.int64(self.recorder.steps_done))
            self.parts.number = _plain_variable(np.int64(0))

    def place(self):
        """The place of the step under way, from 0, as a tensor."""
        with self.tf.init_scope():
            self.make_counter()
        return self.parts.steps_before(self.counter)

    def steps_done(self):
        if self.recorder.coordinated:
            return self.recorder.steps_done
        return 0 if self.counter is None else int(self.counter.numpy())

    def take_point(self):
        """Gives the program what its next step is to start from, where single steps are taken."""
        place = self.steps_done()
        if place == 1:
            self.counts.found()
        self.recorder.take_point(place, self.optimizer)
        point = self.recorder.points.at(place)
        if point is not None:
            self.counts.start_from(int(point["step"]))

    def over(self):
        return self.limit is not None and self.steps_done() >= self.limit

    def call(self, original, function, *args, **kwargs):
        """A call of a ``tf.function``."""
        busy = self.depth or self.passive or self.recorder.training_depth or self.scheduled.elsewhere()
        again = self.evaluating_others or self.eager.running is not None
        if busy or again or not self.tf.executing_eagerly():
            return original(function, *args, **kwargs)
        if id(function) in self.plain.in_python:
            return self.plain.run_in_python(function, args, kwargs)
        known = self.kinds.get(id(function))
        if known is not None and known[1] == "evaluate":
            given = [one for one in (*args, *kwargs.values()) if isinstance(one, self.tf.Module)]
            if self.trainings.lies_elsewhere(given) is None:  # metrics are modules, too
                given = self.evaluating_kinds.get(id(function), [])
            self.called(*given)
        if known is not None and (known[1] == "other" or (known[1] == "evaluate" and self.trainings.elsewhere)):
            if known[1] == "other":
                self.leave()
            return original(function, *args, **kwargs)
        if self.plain.step is None:  # else it is called within an eager step
            self.parts.begin_call(id(function))
        if known is not None and known[1] == "train":
            self.trainings.elsewhere = False
            self.write_evaluation()
            self.evaluation = Evaluation()
            if self.over() and not self.parts.goes_on:
                self.mesh.skip(function)
                return self.skip(id(function))
            if not self.parts.goes_on:
                self.take_point()
        elif self.dirty and not (known is None and self.parts.goes_on):
            self.settle()
        if known is not None and known[1] == "evaluate":
            # What is read between the batches of an eager evaluation does not end it.
            under_way = self.evaluation.source is not None and self.evaluation.source is self.plain.source
            if self.evaluation.line is not None and not under_way:
                self.write_evaluation()
                self.evaluation = Evaluation()
            for metric in self.metric_kinds.get(id(function), []):
                if not any(metric is one for one in self.evaluation.metrics):
                    self.evaluation.add_metric(metric, eager_evaluation.held(metric))
        self.depth += 1
        self.seen, self.updated, self.evaluating = set(), [], []
        self.traced_steps = 0
        if self.folder.replay:
            data = raw_data_of(self.tf, args, kwargs)
            self.parts.give([] if data is None else self.tf.nest.flatten(data))
        try:
            call = self.mesh.call if self.mesh.takes(args, kwargs) else self.plain.call
            result = call(original, function, *args, **kwargs)
        finally:
            self.depth -= 1
        if id(function) in self.plain.in_python:
            return self.plain.run_in_python(function, args, kwargs)
        if self.seen:
            kind = next(one for one in ("train", "other", "evaluate") if one in self.seen)
            self.kinds[id(function)] = (function, kind)
            self.metric_kinds[id(function)] = self.updated
            self.evaluating_kinds[id(function)] = self.evaluating
            if kind == "evaluate":
                self.called(*self.evaluating)
            if known is None and "train" in self.seen:
                self.write_evaluation()
                self.evaluation = Evaluation()
        kind = self.kinds.get(id(function), (None, None))[1]
        if kind == "other":
            self.leave()
        elif kind == "train":
            self.trainings.elsewhere = False
            self.plain.trained_on()
            self.parts.end_call(id(function))
            self.dirty = True
            self.last = self.results[id(function)] = result
        elif self.dirty:
            self.settle()  # what was called for the first time has left the weights as they were
        if kind == "evaluate" and not self.trainings.elsewhere:
            if self.evaluation.source is None:
                self.evaluation.calls.append((original, function, args, kwargs))
            for metric in self.metric_kinds.get(id(function), []):
                self.evaluation.add_metric(metric)
        return result

    def skip(self, key=None):
        """In the place of a training step after the last one: the program goes on to what it does after training.

        Where it would end with its training, it goes on to what else it trains, which may come every few steps.
        """
        self.skipped += 1
        looks_on = self.recorder.only_training and self.skipped <= LOOK_ON
        if not looks_on and (not self.recorder.plan.get("evaluate") or self.skipped > MOST_SKIPPED):
            raise SystemExit(0)
        return self.results.get(key, self.last)

    def settle(self, passing=False):
        """Writes weights and slots as the last step has left them. ``passing``: it is the last one only if no other
        follows, and what was written is gone then, unless the program looks at the weights before.
        """
        self.dirty = passing
        self.scheduled.join()
        steps = self.steps_done()
        beyond = self.limit is not None and steps > self.limit
        if steps == self.settled or beyond or not self.folder.leads():
            self.passing = self.passing if passing else []
            return
        self.settled = steps
        recorder = self.recorder
        for path in self.passing:
            os.remove(path)
        self.passing = []
        name = "%08d" % steps
        if not os.path.exists(self.folder.file("states", name)):
            parts.write_arrays(self.folder.file("states", name + ".npz"), recorder.current())
            parts.write_arrays(self.folder.file("slots", name + ".npz"), recorder.slot_values(self.optimizer))
            if passing and steps not in recorder.state_steps:
                self.passing = [self.folder.file(kind, name + ".npz") for kind in ("states", "slots")]

    def end(self):
        self.plain.end_of_step()
        if self.optimizer is not None:
            self.settle()
            if self.counts.counts and self.recorder.program is not None and self.folder.leads():
                self.recorder.program["own_counts"] = len(self.counts.counts)
                self.folder.write_json("program.json", self.recorder.program)
        elif self.plain.unapplied is not None and not self.recorder.started:
            self.folder.note_unrecorded("gradients that no optimizer of Keras applies", self.plain.unapplied)
        self.write_evaluation()

    def before_reading(self, original, checkpoint, *args, **kwargs):
        """Before weights are read from a checkpoint."""
        if self.dirty:
            self.settle()
        elif self.optimizer is None:
            optimizers = [one for one in vars(checkpoint).values() if hasattr(one, "iterations")]
            self.restored = optimizers[0] if len(optimizers) == 1 else None
        return original(checkpoint, *args, **kwargs)

    # -- evaluation --
    def new_evaluation(self):
        return Evaluation()

    def saw_metric(self, metric):
        if self.passive or self.recorder.training_depth or self.evaluating_others:
            return
        if self.depth:
            if not any(metric is one for one in self.updated):
                self.updated.append(metric)
        elif not self.trainings.elsewhere and self.tf.executing_eagerly() and self.recorder.plan.get("evaluate", True):
            self.eager.updating(metric)

    def metric_result(self, metric, original, *args, **kwargs):
        value = original(*args, **kwargs)
        evaluation = self.evaluation
        busy = self.depth or self.passive or self.recorder.training_depth or self.evaluating_others
        busy = busy or self.eager.running is not None or self.trainings.elsewhere
        if busy or not self.recorder.plan.get("evaluate", True) or not self.tf.executing_eagerly():
            return value
        made = evaluation.calls or evaluation.source is not None
        if made and any(metric is one for one in evaluation.metrics):
            if evaluation.line is None:
                evaluation.line = self.evaluation_line(evaluation)
            evaluation.line["results"].update(_results(evaluation.name(metric), value))
        return value

    def step_of_optimizer(self):
        """The count of steps that the weights have been trained for; None where no optimizer is known."""
        optimizer = self.restored if self.optimizer is None else self.optimizer
        return None if optimizer is None else int(read(self.tf, optimizer.iterations))

    def evaluation_line(self, evaluation):
        recorder = self.recorder
        step = self.step_of_optimizer()
        line = {"time": time.time(), "step": step, "results": {}}
        if step is not None and recorder.parts:
            # What was evaluated: another program is to evaluate the same.
            path = self.folder.evaluated(step)
            if path is not None:
                parts.write_arrays(path, recorder.current())
        if recorder.plan.get("evaluate_weights") or recorder.plan.get("evaluation_control"):
            if evaluation.source is None:
                line.update(self.evaluate_others(evaluation, step))
            else:
                line.update(evaluation.others)
                if evaluation.note:
                    line["note"] = evaluation.note
        return line

    def evaluate_others(self, evaluation, step):
        """The results of the same steps with weights that are not the program's, which it keeps."""
        recorder = self.recorder
        weights = recorder.parts
        if not weights and self.evaluated is not None:  # in a task that only evaluates
            weights = recorder.model_parts(Trained(self.evaluated))
        if not weights:
            return {"note": "not evaluated with other weights: nothing was trained before"}
        sums = [variable for metric in evaluation.metrics for variable in metric.variables]
        kept = [*(part.variable for part in weights), *sums]
        values = [[record_mesh.whole(self.tf, one) for one in copies(variable)] for variable in kept]
        found = {}
        self.evaluating_others = True
        try:
            chosen = recorder.weights_for(step)
            if chosen is not None and recorder.take_weights(weights, chosen["path"], found):
                found.update(same_weights=self.again(evaluation), weights_step=chosen["step"])
            start = self.folder.initial_file() if recorder.plan.get("evaluation_control") else None
            if start is not None and recorder.take_weights(weights, start, found):
                found["control"] = self.again(evaluation)
        finally:
            self.evaluating_others = False
            for variable, several in zip(kept, values):
                for one, value in zip(copies(variable), several):
                    one.assign(record_mesh.placed(self.tf, value, one))
        return found

    def again(self, evaluation):
        evaluation.reset()
        for original, function, args, kwargs in evaluation.calls:
            original(function, *args, **kwargs)
        return self.results_of(evaluation)

    def results_of(self, evaluation):
        found = {}
        for metric in evaluation.metrics:
            # All metrics of a Keras 3 model together have no result; they are here one by one, too.
            with contextlib.suppress(NotImplementedError):
                found.update(_results(evaluation.name(metric), metric.result()))
        return found

    def write_evaluation(self):
        line = self.evaluation.line
        if line is not None:
            self.evaluation.line = None
            self.folder.append_line("evaluations.jsonl", line)


def _plain_variable(value):
    """A variable of this process, made as no strategy would make it."""
    kind = importlib.import_module("tensorflow.python.ops.resource_variable_ops").ResourceVariable
    return kind(value, trainable=False)


def _in_loop(graph):
    """Whether a graph is that of a loop, or a branch, in a function."""
    return hasattr(getattr(graph, "outer_graph", None), "outer_graph")


# -- the data of a step --


def _per_replica(value):
    return type(value).__name__ == "PerReplica"


def _is_data(tf, value):
    value = value.values[0] if _per_replica(value) else value
    if isinstance(value, (tf.RaggedTensor, tf.SparseTensor)):
        return True
    return isinstance(value, tf.Tensor) and value.shape.rank != 0


def raw_data_of(tf, args, kwargs):
    """The arguments of a step that are batches, or parts of one, as they are: of one replica or of each."""
    given = [*args, *(kwargs[name] for name in sorted(kwargs))]
    data = [one for one in given if one is not None and all(_is_data(tf, leaf) for leaf in tf.nest.flatten(one))]
    data = [one for one in data if tf.nest.flatten(one)]
    if not data:
        return None
    return data[0] if len(data) == 1 else tuple(data)


def data_of(tf, args, kwargs):
    """The batch of all replicas; None where a step gets none."""
    data = raw_data_of(tf, args, kwargs)
    if data is None:
        return None
    return tf.nest.map_structure(lambda leaf: tf.concat(leaf.values, 0) if _per_replica(leaf) else leaf, data)


def sizes_of(tf, args, kwargs):
    """How many examples of the batch each of several replicas has; None where one has all of them."""
    data = raw_data_of(tf, args, kwargs)
    leaves = [] if data is None else tf.nest.flatten(data)
    return replicas.sizes_of(tf, [leaf.values for leaf in leaves if _per_replica(leaf)])


def _spec(tf, leaf):
    if not isinstance(leaf, tf.Tensor):
        raise RuntimeError("cannot replay: a step of this program takes ragged or sparse batches")
    shape = leaf.shape
    return tf.TensorSpec(shape if shape.rank is None else [None, *shape[1:]], leaf.dtype)


def mean_of_copies(tf, variable):
    """The value of a variable, in the graph: the mean where each replica has a value of its own."""
    several = copies(variable)
    of_its_own = str(getattr(variable, "synchronization", "")).endswith("ON_READ")
    if of_its_own and len(several) > 1 and several[0].dtype.is_floating:
        return tf.add_n([tf.convert_to_tensor(one) for one in several]) / float(len(several))
    return tf.convert_to_tensor(several[0])


def _whole(tf, activations, count):
    """The activations of a step of so many parts as those of its whole batch: layers that are called once for each."""
    if count < 2:
        return activations
    calls = {}
    for name, tensor in activations:
        calls.setdefault(name.partition("#")[0], []).append(tensor)
    return [
        (name, tf.concat(tensors, 0))
        for name, tensors in calls.items()
        if len(tensors) == count and all(tensor.shape.rank for tensor in tensors)
    ]


def _together(tf, found):
    """The activations of all replicas as those of one batch; none where the replicas' are not alike."""
    if len(found) == 1:
        return found[0]
    names = [[name for name, _ in one] for one in found]
    if any(one != names[0] for one in names):
        return []
    rows = zip(*[[tensor for _, tensor in one] for one in found])
    return [(name, tf.concat(row, 0)) for name, row in zip(names[0], rows) if all(t.shape.rank != 0 for t in row)]


# -- AutoGraph --


def _converted(fn):
    """A function as ``strategy.run`` would convert it in the place where it is called."""
    impl = importlib.import_module("tensorflow.python.autograph.impl.api")
    context = importlib.import_module("tensorflow.python.autograph.core.ag_ctx")
    return impl.tf_convert(fn, context.control_status_ctx(), convert_by_default=False)


def _artifact(function):
    """A function that AutoGraph leaves alone."""
    return importlib.import_module("tensorflow.python.autograph.impl.api").autograph_artifact(function)


def install(recorder):
    """Records loops beside what ``recorder``, that of Keras, records. Returns their recorder."""
    tf = recorder.tf
    loop = LoopRecorder(recorder)
    atexit.register(loop.end)
    strategies = importlib.import_module("tensorflow.python.distribute.distribute_lib")
    parts.wrap(strategies.StrategyBase, "run", loop.run)
    _artifact(strategies.StrategyBase.run)
    functions = importlib.import_module("tensorflow.python.eager.polymorphic_function.polymorphic_function")
    parts.wrap(functions.Function, "__call__", loop.call)
    loop.scheduled.install()
    apply = loop.plain.install()
    legacy = getattr(tf.keras.optimizers, "legacy", tf.keras.optimizers).Optimizer
    # Keras 3 has the name, and a class that warns.
    for kind in (tf.keras.optimizers.Optimizer, *([legacy] if hasattr(legacy, "apply_gradients") else [])):
        parts.wrap(kind, "apply_gradients", apply)
        _artifact(kind.apply_gradients)
    for name in ("read", "restore"):
        parts.wrap(tf.train.Checkpoint, name, loop.before_reading)
    _leave_to_keras(loop, tf.keras.Model)
    _watch_metrics(loop, tf.keras.metrics.Metric)
    return loop


def _leave_to_keras(loop, model):
    """The loops of Keras itself are those of the Keras recorder."""

    def within(original, *args, **kwargs):
        loop.passive += 1
        try:
            return original(*args, **kwargs)
        finally:
            loop.passive -= 1

    for name in ("evaluate", "predict", "predict_on_batch", "test_on_batch"):
        parts.wrap(model, name, within)


def _watch_metrics(loop, metric):
    make = metric.__new__

    def new(cls, *args, **kwargs):
        made = make(cls) if make is object.__new__ else make(cls, *args, **kwargs)
        result, update = made.result, made.update_state

        def seen(*inputs, **named):
            return loop.metric_result(made, result, *inputs, **named)

        def updating(*inputs, **named):
            loop.saw_metric(made)
            return update(*inputs, **named)

        object.__setattr__(made, "result", _artifact(seen))
        object.__setattr__(made, "update_state", _artifact(updating))
        return made

    metric.__new__ = staticmethod(new)
