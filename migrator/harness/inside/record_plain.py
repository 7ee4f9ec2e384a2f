"""Records loops without ``strategy.run``: steps that are a ``tf.function``, and steps that are run eagerly.

A ``tf.function`` that takes gradients and has an optimizer of Keras apply them is a step, as what ``strategy.run`` runs
is one (record_loop.py); where it takes them in a loop of its graph, each turn of that is a step. So is one that assigns
new values to the variables itself, by hand: what such a step keeps beside them, as momenta, is known by its form.

Eagerly, a step begins where a GradientTape is entered and ends where the program asks for its next batch or enters the
next tape after gradients were applied; all optimizers that applied some took part.

What an eager step trains is only known when it is over. So the first one is made twice: its gradients are not applied,
the weights get the values to start from, and the program's dataset gives the same batch once more. What the program
counts in Python is one ahead then. A later run is told which of the batches that the program asks for is the first to
train on (``first_batch``): the weights get their values before it, and if they still have them when gradients are
applied, the step counts as it is.
"""

import functools
import importlib
import inspect
import os
import weakref

import batches
import keras_optimizers
import loss_scales
import numpy as np
import outside
import parts
import record_mesh
import sources
from keras_variables import copies, read, with_names


def _asked(step, variable):
    """Whether a step has asked for the gradient of this variable, or of what it is a copy of."""
    return any(variable is copy for _, one in step.taken for copy in copies(one))


def _numbered(element):
    """The number of an element and the batch in it, as ``Dataset.enumerate`` puts them together; the number of others
    is None.
    """
    pair = isinstance(element, tuple) and len(element) == 2 and not hasattr(element, "_fields")
    numbered = pair and getattr(element[0], "shape", None) == () and element[0].dtype.is_integer
    return element if numbered else (None, element)


NO_DATASET = "an eager loop whose batches come of no tf.data.Dataset"
ON_ONE_BATCH = 8  # a program that takes more steps than these on its first batch may never ask for a second


class PlainSteps(object):
    """The steps in the program of ``loop``, a LoopRecorder, that no strategy runs."""

    def __init__(self, loop, make_step, make_trained, data_of, kept_beside):
        self.loop = loop
        self.tf = loop.tf
        self.recorder = loop.recorder
        self.make_step = make_step
        self.make_trained = make_trained
        self.data_of = data_of
        self.kept_beside = kept_beside
        self.wanted = None  # the function that the program calls now
        self.step = None  # the eager step under way
        self.element = None  # the batch that the program got of a dataset last
        self.given_last = None  # that element of the dataset as it is, with a number where it has one
        self.source = None  # the iterator that gave it
        self.place = ()  # the user's lines that it is asked at
        self.training = []  # the iterators whose elements steps were trained on
        self.places = []  # the lines that those are asked at: in each epoch there is another iterator
        self.line = None  # the user's line that applied gradients last
        self.unapplied = None  # that of a step whose gradients no optimizer applied before the next batch
        self.again = None  # (iterator, element) that is to be given once more
        self.counts = {}  # id of iterator -> how often it was asked
        self.first = []  # the steps of the first batch, which is to be given once more
        self.eagerly = False  # whether steps are run eagerly
        self.applying = False  # whether an optimizer applies gradients
        self.before = {}  # id -> (variable, what it held before the first steps, which are made once more)
        self.by_hand = None  # in the place of the optimizer, where steps assign the variables themselves
        self.requests = 0  # how many batches the program has asked for
        # Which of them is the first that it trains on; of batches of no data set minus the number of the tape.
        self.first_batch = self.recorder.plan.get("first_batch")
        self.starting = False  # whether it has that one
        self.started = None  # the step that was made from the values to start from, and counts as it is
        # Whether gradients of a batch are a step, applied or not, as in an original that applies those of several.
        self.summing = bool(self.recorder.plan.get("summing"))
        self.requests_a_step = int(self.recorder.plan.get("requests") or 1)  # how many batches a step takes
        self.waiting = []  # [(step, batch)] of before the first gradients were applied
        self.given_before = {}  # id of a tensor -> (itself, the number of the batch that it is of, that batch)
        self.in_python = {}  # id of a function -> what it is of, where its gradients are applied outside of it
        self.unmoved = []  # [(variable, value)] of before the first call of such a function
        self.outside = outside.Outside()
        self.tapes = 0  # how many the program has entered
        self.of_arrays = self.first_batch is not None and self.first_batch < 0  # whether no data set gives its batches
        self.asking_for_replicas = 0  # how deep in an iterator of a strategy
        self.awaited = {}  # name -> value to start from, of variables that are yet to be made

    # -- steps that are a tf.function --
    def call(self, original, function, *args, **kwargs):
        """A call of a function that the program makes itself."""
        if not getattr(function._python_function, "plain", False):
            function._python_function = self.watched(function, function._python_function)
        self.wanted = function
        try:
            return original(function, *args, **kwargs)
        finally:
            self.wanted = None

    def run_in_python(self, function, args, kwargs):
        """A call of what is a ``tf.function``, run eagerly: it takes the gradients of an eager step."""
        self.give(self.unmoved)
        self.unmoved = []
        return self.in_python[id(function)](*args, **kwargs)

    # -- steps that assign variables themselves --
    def take_by_hand(self, step, assigned):
        """Takes a step for one whose gradients were applied, if it has ``assigned`` variables that it asked gradients
        of. ``assigned`` are all variables that it gives values.
        """
        ids = {id(one) for one in assigned}
        pairs = [
            (step.clipping.after(gradient), one)
            for gradient, one in step.taken
            if gradient is not None and any(id(copy) in ids for copy in copies(one))
        ]
        if step.loss is None or step.applied or not pairs:
            return
        step.gradients, step.applied = pairs, 1
        trained = {id(copy) for _, one in pairs for copy in copies(one)}
        step.moved = [one for one in assigned if id(one) not in trained]
        if self.by_hand is None:
            with self.tf.init_scope():
                self.by_hand = record_mesh.ByHand(self.loop)
        step.optimizer = self.by_hand
        self.recorder.slots.setdefault(id(self.by_hand), [])

    def about_to_move(self, step, variable):
        """Notes what a variable that a step trains held before the step assigns it by hand, where the step is to be
        greater than it is: nothing has a rate that could be made greater.
        """
        if self.recorder.factor != 1.0 and not self.applying and _asked(step, variable):
            step.began.setdefault(id(variable), (variable, variable.read_value()))

    def move_further(self, step):
        """Makes what a step by hand has moved move by as much more as the plan says."""
        for variable, value in step.began.values() if step.optimizer is self.by_hand else ():
            variable.assign(value + self.tf.cast(self.recorder.factor, value.dtype) * (variable.read_value() - value))
        step.began = {}

    def watched(self, function, own):
        converted = record_mesh._converted(own) if function._autograph else own

        def watched(*inputs, **named):
            recorder = self.recorder
            if self.wanted is not function or getattr(recorder.tracing, "step", None) is not None:
                return converted(*inputs, **named)
            return self.traced(converted, inputs, named)

        watched.plain = True
        return record_mesh._artifact(watched)

    def traced(self, function, args, kwargs):
        step = self.make_step()
        result, args, kwargs = self.trace(step, function, args, kwargs)
        if step.loss is not None and step.gradients is None and not self.loop.is_of_other_keras():
            self.in_python[id(self.wanted)] = function
            with self.tf.init_scope():
                self.unmoved = [(one, one.numpy()) for one in step.assigned if one.is_initialized()]
        elif step.loss is not None:
            self.trained(step, args, kwargs)
        elif not self.loop.seen and step.layers.outermost:
            self.loop.saw_evaluation(step)
        return result

    def trace(self, step, function, args, kwargs):
        """Calls a function, or the body of a loop, as a step. Returns its result and the arguments that it got."""
        tf, loop, recorder = self.tf, self.loop, self.recorder
        around, recorder.tracing.step = getattr(recorder.tracing, "step", None), step
        step.plain, step.graph = True, tf.compat.v1.get_default_graph()
        recorder.tracing.model = None
        try:
            args, kwargs = self.recorded_in(step, args, kwargs)
            result = function(*args, **kwargs)
        finally:
            recorder.tracing.step = around
        graph = tf.compat.v1.get_default_graph()
        moved = step.assigned = record_mesh.assigned(graph, record_mesh.variables_read(graph))
        self.take_by_hand(step, moved)
        self.move_further(step)
        own = [one for one in moved if one is not loop.counter and one is not loop.parts.number]
        with tf.init_scope():
            loop.counts.note(own)
        return result, args, kwargs

    def recorded_in(self, step, args, kwargs, rows=None):
        """What a step gets, with recorded batches in the places of its own once it is known to train."""
        if not self.recorder.folder.replay or self.recorder.coordinated:
            return args, kwargs
        try:
            args, kwargs, replayed = self.loop.replay(args, kwargs, rows)
        except RuntimeError as error:
            step.unreplayed = error  # which is none if the step does not train
            return args, kwargs
        step.replayed += [] if replayed is None else [replayed]
        return args, kwargs

    def trained(self, step, args, kwargs):
        """Records a step that was traced."""
        tf, loop = self.tf, self.loop
        if step.unreplayed is not None:
            raise step.unreplayed
        if loop.is_other(step):
            loop.seen.add("other")
            return
        graph = tf.compat.v1.get_default_graph()
        step.several |= any(leaf.graph is not graph for leaf in tf.nest.flatten(step.elements))
        loop.seen.add("train")
        if loop.recordable([step]):
            with tf.init_scope():
                for replayed in step.replayed:
                    replayed.assign(True)
            self.recorder.program["requests"] = max(1, len(step.elements))
            elements = step.elements
            if len(elements) > 1:
                elements = [tf.nest.map_structure(lambda *some: tf.concat(some, 0), *elements)]
            loop.trained(tf.distribute.get_strategy(), [step], self.data_of(tf, (*args, *elements), kwargs))

    # -- loops in a tf.function, each of whose turns is a step --
    def in_loop(self, place):
        """A loop of AutoGraph, which is given the body at this ``place``."""

        def loop(original, *args, **kwargs):
            tf = self.tf
            around = getattr(self.recorder.tracing, "step", None)
            if around is None or not around.plain or tf.executing_eagerly() or len(args) <= place:
                return original(*args, **kwargs)
            graph, body = tf.compat.v1.get_default_graph(), args[place]
            # Of what a strategy divides its replicas get their own, and parts of a tensor are no batches.
            of_data = isinstance(args[0], (tf.data.Dataset, tf.data.Iterator))

            def turn(*iterates):
                if tf.compat.v1.get_default_graph() is graph:
                    return body(*iterates)  # a loop of Python, of which the graph knows nothing
                return self.turn(around, body, iterates, of_data)

            return original(*args[:place], turn, *args[place + 1 :], **kwargs)

        return loop

    def turn(self, around, body, iterates, of_data):
        """One turn of a loop, which is a step if it trains, and else part of what is ``around`` it."""
        step = self.make_step()
        step.layers.go_on_from(around.layers)
        counts = [_numbered(one)[0] for one in iterates] if of_data else []

        def numbered(*batches):
            pairs = zip(counts, batches)
            return body(*[batch if count is None else (count, batch) for count, batch in pairs])

        if of_data:
            result, batches, _ = self.trace(step, numbered, tuple(_numbered(one)[1] for one in iterates), {})
        else:
            result, batches, _ = self.trace(step, lambda: body(*iterates), (), {})
        if step.loss is not None and step.applied:
            self.trained(step, batches, {})
        else:
            around.several = around.several or bool(batches or step.elements)
            step.elements, step.replayed = [], []
            around.absorb(step)
        return result

    def element_within(self, original, iterator):
        """A batch that a function asks for itself, as it is traced."""
        element = original(iterator)
        step = getattr(self.recorder.tracing, "step", None)
        if step is None or not step.plain or self.asking_for_replicas:
            return element
        if step.applied and step.graph is self.tf.compat.v1.get_default_graph():
            self.end_within(step)
        count, batch = _numbered(element)
        (batch,), _ = self.recorded_in(step, (batch,), {}, self.rows(step, batch))
        step.elements.append(batch)
        return batch if count is None else (count, batch)

    def rows(self, step, batch):
        """Which rows of the batch of a step one that it asks for is, as tensors: where they begin, and how many there
        are. None where it is all of it.
        """
        if self.requests_a_step == 1:
            return None
        sizes = [self.tf.shape(self.tf.nest.flatten(one)[0])[0] for one in [*step.elements, batch]]
        return sum(sizes[:-1], self.tf.constant(0)), sizes[-1]

    def end_within(self, step):
        """Records what a function has trained on the batches before, as a step of its own: it goes on with another."""
        done = self.make_step()
        vars(done).update(vars(step))
        vars(step).update(vars(self.make_step()))
        step.plain, step.graph = True, done.graph
        step.layers.go_on_from(done.layers)
        self.recorder.tracing.step = done
        try:
            self.trained(done, (), {})
            if not self.recorder.coordinated and self.loop.optimizer is not None:
                self.loop.between(self.loop.counter.read_value())
        finally:
            self.recorder.tracing.step = step

    def for_replicas(self, original, *args, **kwargs):
        """An iterator of a strategy asks those of its devices."""
        self.asking_for_replicas += 1
        try:
            return original(*args, **kwargs)
        finally:
            self.asking_for_replicas -= 1

    # -- steps that are run eagerly --
    def busy(self):
        """Whether this is not the program's own doing, or not eager."""
        loop = self.loop
        own = loop.depth or loop.passive or self.recorder.training_depth or loop.evaluating_others
        return bool(own) or loop.scheduled.elsewhere() or not self.tf.executing_eagerly()

    def enter(self, original, tape):
        if not self.busy() and self.tf.distribute.get_strategy().num_replicas_in_sync == 1:
            self.end_of_step()
            self.tapes += 1
            if self.of_arrays:
                self.element = None
            if self.element is None:
                self.outside.begin()
                if -self.tapes == self.first_batch and self.loop.optimizer is None:
                    self.starting = True
                    self.give_start()
            if self.step is None and getattr(self.recorder.tracing, "step", None) is None:
                self.loop.write_evaluation()
                self.loop.evaluation = self.loop.new_evaluation()
                self.step = self.recorder.tracing.step = self.make_step()
                self.step.key = None
                self.step.asked, self.step.tape = self.requests, self.tapes
                self.recorder.tracing.model = None
            if self.step is not None and self.step.key is None:
                self.begin_step()
        return original(tape)

    def gradient(self, original, tape, *args, **kwargs):
        if self.outside.watching:  # what gradients are made of is no batch
            self.outside.end(tape.watched_variables() if self.tf.executing_eagerly() else ())
        return original(tape, *args, **kwargs)

    def begin_step(self):
        loop = self.loop
        self.step.key = sources.user_lines()
        loop.parts.begin_call(self.step.key)
        self.step.goes_on = loop.parts.goes_on
        if loop.optimizer is not None and not loop.parts.goes_on:
            loop.passive += 1  # what a point gives the weights, no step by hand assigns them
            try:
                loop.take_point()
            finally:
                loop.passive -= 1

    def asked(self):
        """(iterator, how often it was asked) of the one that the last batch came of; None where none was asked, but
        functions take their batches themselves.
        """
        return None if self.source is None else (self.source, self.counts.get(id(self.source), 0))

    def same_batch(self, asked):
        """Whether that iterator was not asked since."""
        return asked is not None and self.counts.get(id(asked[0]), 0) == asked[1]

    def next_element(self, original, iterator):
        """The next batch of a dataset that the program asks for."""
        if not self.tf.executing_eagerly():
            return self.element_within(original, iterator)
        if self.busy():
            return original(iterator)
        self.end_of_step()
        if self.first and self.loop.optimizer is None:
            self.begin()
        if self.step is not None:
            if self.step.loss is not None and not self.step.applied:
                self.goes_on_with_another()
            if self.step is not None:
                self.step.key = None  # nothing was applied: it goes on with another batch
                self.step.of_earlier = len(self.step.taken)
        self.counts[id(iterator)] = self.counts.get(id(iterator), 0) + 1
        if self.again is not None and self.again[0] is iterator:
            element, self.again = self.again[1], None
            self.starting = False
        else:
            element = self.given(original, iterator)
            self.requests += 1
            first = self.requests == self.first_batch
            # What is asked for before the first step ends is kept in a list, or is of the same step.
            self.starting = self.loop.optimizer is None and (first or self.starting)
            if first and self.starting:
                self.give_start()
        if iterator is not self.source:
            self.source, self.place = iterator, sources.user_lines()
        self.given_last = element
        count, batch = _numbered(element)
        if self.recorder.folder.replay and (self.starting or (self.eagerly and self.trains_on(iterator))):
            batch = self.recorded(batch)
            element = batch if count is None else (count, batch)
        self.element = batch
        self.remember(batch)
        if self.loop.optimizer is None and self.first_batch is None:
            self.outside.begin()  # to see whether anything is made of it
        return element

    def remember(self, batch):
        """Notes what a batch is made of, so that it is known where a program that keeps its batches trains on it."""
        tensors = self.tf.nest.flatten(batch)
        if all(isinstance(one, self.tf.Tensor) for one in tensors):
            known = self.tf.nest.map_structure(weakref.ref, batch)
            for one in tensors:
                forget = functools.partial(self.given_before.pop, id(one))  # with what is gone for default
                self.given_before[id(one)] = (weakref.ref(one, forget), self.requests, known)

    def kept_batch(self, step):
        """(number, batch) of a batch that the program has asked for at an earlier time than its last, and that its
        network was given in a step; None where it was given the last one, or something else.
        """
        for tensor in reversed(step.layers.inputs):
            found = self.given_before.get(id(tensor))
            if found is not None and found[0]() is tensor:
                batch = self.tf.nest.map_structure(lambda one: one(), found[2])
                gone = any(one is None for one in self.tf.nest.flatten(batch))
                last = found[1] == self.requests and self.element is not None
                return None if gone or last else (found[1], batch)
        return None

    def batch_of(self, step):
        """(What a run is to be told of the batch of an eager step, the batch); None where nobody knows it."""
        kept = self.kept_batch(step)
        if kept is None and self.element is not None and self.loop.optimizer is None:
            unused = not self.outside.got(self.tf.nest.flatten(self.element))
            self.of_arrays = unused and not self.first and self.outside.batch() is not None
        if kept is not None or (self.element is not None and not self.of_arrays):
            self.outside.forget()
            return kept or (step.asked, self.element)
        found = None if loss_scales.in_parts(step) else self.outside.batch()
        self.outside.forget()
        if found is None or not self.recorder.folder.replay:
            return None if found is None else (-step.tape, found)
        recorded = self.recorded(found)
        pairs = zip(self.tf.nest.flatten(found), self.tf.nest.flatten(recorded))
        if all(np.array_equal(one.numpy(), other.numpy()) for one, other in pairs):
            return -step.tape, found
        raise RuntimeError("cannot replay: an eager step of this program takes its batch out of arrays of its own")

    def goes_on_with_another(self):
        """The program asks for another batch, and no gradients of the last one were applied."""
        step = self.step
        self.unapplied = self.unapplied or sources.user_line()
        if not self.summing:
            step.elements.append(self.element)
            return
        if self.loop.optimizer is None:
            self.waiting.append((step, self.element))
            self.loop.parts.end_call(step.key)
        else:
            self.summed(step, self.element)
        self.step = self.recorder.tracing.step = None

    def summed(self, step, batch):
        """Writes a step whose gradients the program keeps, to apply them with those of others."""
        loop = self.loop
        if loop.over() and not step.goes_on:
            loop.skip()
            return
        if self.recorder.points.given:
            raise RuntimeError("gradients are applied in some steps only, and a single one does not tell in which")
        step.gradients = [pair for pair in step.taken if pair[0] is not None]
        step.optimizers, step.applied, step.carried = list(loop.parts.optimizers), 1, True
        self.recorder.saw_rate(step, loop.parts.optimizers[0])
        self.trained_on()
        loop.trained(self.tf.distribute.get_strategy(), [step], batch, graph=None)
        loop.parts.end_call(step.key)
        loop.dirty = True

    def given(self, original, iterator):
        """What an iterator gives, which begins again where its data set is to be evaluated once more."""
        while True:
            try:
                return original(iterator)
            except StopIteration:
                if not self.loop.eager.begins_again(iterator):
                    if not self.trains_on(iterator):
                        self.element = None  # what is trained on next, as batches that were kept in a list, is not it
                    raise

    def trains_on(self, iterator):
        """Whether steps are trained on what an iterator gives, which is the last that was asked."""
        return any(iterator is one for one in self.training) or self.place in self.places

    def trained_on(self):
        """Notes that a step was trained on what was asked for last."""
        if self.source is None or self.trains_on(self.source):
            return
        self.training.append(self.source)
        self.places.append(self.place)
        if self.loop.evaluation.source is self.source:
            self.loop.evaluation = self.loop.new_evaluation()  # it was none

    def recorded(self, element):
        """The recorded batch of the coming step, in the form of the program's own."""
        tf = self.tf
        files = self.recorder.folder.replay
        names = sorted(name for name in os.listdir(files) if name.isdigit())
        spec = tf.nest.map_structure(lambda leaf: tf.TensorSpec([None, *leaf.shape[1:]], leaf.dtype), element)
        place = self.loop.steps_done() + len(self.waiting)
        if self.starting and self.step is None and not (self.waiting or self.of_arrays):
            place = self.requests - self.first_batch  # before the first step: a program that keeps its batches
        found = batches.replay_reader(tf, files, spec)(os.path.join(files, names[min(place, len(names) - 1)]))
        if self.requests_a_step == 1:
            return found
        before = [] if self.step is None else self.step.elements
        begin = sum(int(tf.shape(tf.nest.flatten(one)[0])[0]) for one in before)
        size = int(tf.shape(tf.nest.flatten(element)[0])[0])
        return tf.nest.map_structure(lambda leaf: leaf[begin : begin + size], found)

    def apply(self, original, optimizer, grads_and_vars, *args, **kwargs):
        """A call of ``optimizer.apply_gradients``."""
        step = self.step
        if step is None or self.busy():
            return original(optimizer, grads_and_vars, *args, **kwargs)
        self.line = sources.user_line()
        grads_and_vars = list(grads_and_vars)
        if self.loop.trainings.is_other([variable for _, variable in grads_and_vars], step.goes_on):
            self.step = self.recorder.tracing.step = None
            self.loop.leave()
            return original(optimizer, grads_and_vars, *args, **kwargs)
        self.loop.trainings.elsewhere = False
        step.carried = self.summing
        if self.starting and (self.loop.optimizer is None or step is self.started):
            pairs = [pair for pair in grads_and_vars if pair[0] is not None]
            if step is self.started:
                self.join(step, optimizer, pairs)
            elif self.starts(step, optimizer, pairs):
                self.started = step
                if self.waiting:
                    keras_optimizers.build(optimizer, [variable for _, variable in pairs])
                    self.write_waiting()
                return original(optimizer, grads_and_vars, *args, **kwargs)
        if self.loop.optimizer is None or (self.loop.over() and not step.goes_on):
            pairs = [pair for pair in grads_and_vars if pair[0] is not None]
            step.optimizers += [one for one in [optimizer] if not any(one is known for known in step.optimizers)]
            step.gradients = [*(step.gradients or []), *pairs]
            step.applied += 1
            return optimizer.iterations
        return original(optimizer, grads_and_vars, *args, **kwargs)

    def write_waiting(self):
        """Writes the steps that came before the first that applies gradients, now that it is known what they train."""
        under_way, waiting, self.waiting = self.step, self.waiting, []
        for step, batch in waiting:
            self.step = step
            self.summed(step, batch)
        self.step = self.recorder.tracing.step = under_way

    def assign(self, original, variable, *args, **kwargs):
        """A call of ``variable.assign``, or of one that adds to it or takes away."""
        step = self.step
        traced = getattr(self.recorder.tracing, "step", None)
        if step is None and traced is not None and traced.plain:
            self.about_to_move(traced, variable)
        if step is None:
            own = not self.applying and not self.busy()
            if own and self.loop.dirty and self.recorder.part_of(variable) is not None:
                self.loop.settle(passing=True)  # what comes now is no part of the last step
            return original(variable, *args, **kwargs)
        if self.busy():
            return original(variable, *args, **kwargs)
        if self.loop.optimizer is None and id(variable) not in self.before:
            self.before[id(variable)] = variable, variable.numpy()
        if self.starting and self.eagerly:
            self.loop.counts.note([variable])
        if not any(variable is one for one in step.assigned):
            step.assigned.append(variable)
        by_hand = _asked(step, variable) and not self.applying and not step.applied
        if by_hand and self.loop.over() and not step.goes_on:
            return variable.read_value()  # no step follows the last one
        self.about_to_move(step, variable)
        return original(variable, *args, **kwargs)

    def end_of_step(self):
        """Writes the step under way, if its gradients were applied."""
        step = self.step
        if step is not None:
            self.take_by_hand(step, step.assigned)
        if step is None or not step.applied:
            return
        self.move_further(step)
        self.step = self.recorder.tracing.step = None
        loop = self.loop
        if step.loss is None or not loop.recordable([step], graph=None):
            return
        self.leave_out_unused(step)
        batch = (step.asked, self.element) if step.elements else self.batch_of(step)
        if batch is None:
            loop.folder.note_unrecorded(NO_DATASET, self.line)
            raise SystemExit(0)
        loop.parts.goes_on = step.goes_on
        if loop.optimizer is None:
            self.first.append(step)
            loop.parts.end_call(step.key)
            again = [one.key for one in self.first].count(step.key) > ON_ONE_BATCH
            if batch[1] is not self.element or again:
                self.begin(batch)
            return
        if loop.over() and not step.goes_on:
            loop.learn(step)
            loop.skip()
            return
        self.trained_on()
        whole = batch[1]
        if step.elements:
            whole = self.tf.nest.map_structure(lambda *some: self.tf.concat(some, 0), *step.elements, whole)
        loop.trained(self.tf.distribute.get_strategy(), [step], whole, graph=None)
        loop.parts.end_call(step.key)
        loop.dirty = True

    def leave_out_unused(self, step):
        """Leaves out what gradients were asked of, for other batches, that are not applied."""
        groups = loss_scales.in_parts(step) if step.elements else []
        if not groups:
            return
        numbers = loss_scales.shares(self.tf, step, groups).numpy()
        unused = [targets for (targets, _), number in zip(groups, numbers) if abs(number) < 1e-3 * abs(numbers).max()]
        if not unused:
            return
        gone = {id(one) for targets in unused for one in targets}
        step.takings = [one for one in step.takings if not any(id(target) in gone for target in one[0])]
        step.targets = [one for one in step.targets if id(one) not in gone]
        step.loss = loss_scales.total(self.tf, step.targets)
        used = {place for _, _, place in step.takings}
        step.elements = [one for place, one in enumerate(step.elements) if place in used]

    def begin(self, batch=None):
        """What the steps of the first batch were, which are to be made once more. ``batch`` is that (see `batch_of`)
        where it is not what the program got last.
        """
        loop = self.loop
        step = self.make_step()
        for one in self.first:
            step.layers.outermost += [
                layer for layer in one.layers.outermost if not any(layer is known for known in step.layers.outermost)
            ]
            step.gradients = [*(step.gradients or []), *one.gradients]
            step.optimizers += [new for new in one.optimizers if not any(new is known for known in step.optimizers)]
            step.assigned += [new for new in one.assigned if not any(new is known for known in step.assigned)]
            step.moved = [*step.moved, *one.moved]
        step.optimizer = self.recorder.together(step.optimizers) if step.optimizers else self.by_hand
        step.kept = [] if self.waiting else self.kept_beside(self.tf, None, step, ())  # else sums are among them
        one, plain = self.first[0], self.is_plain(step)
        apart = batch is not None and batch[1] is not self.element
        number = self.waiting[0][0].asked if self.waiting else batch[0] if apart else one.asked
        # Of these the program cannot be given the batches once more: another run is told which is the first.
        told = bool(self.waiting or apart or one.elements)
        if told and not plain:
            loop.folder.note_unrecorded("an eager loop whose first batches cannot be given once more", self.line)
            raise SystemExit(0)
        self.give(self.before.values())  # counts of the program's own, say
        loop.counts.note([variable for variable, _ in self.before.values()])
        self.before = {}
        with self.tf.init_scope():
            loop.begin(self.make_trained(step), self.tf.distribute.get_strategy())
        self.recorder.program.update(twice=True, first_batch=number if plain else None)
        self.recorder.program.update(requests=1 + len(one.elements), carried=bool(self.waiting))
        if loop.over() or told:
            traces = []
            for one in self.first:
                self.recorder.note_trace(one, None)
                traces.append(self.recorder.traced)
            self.recorder.describe_traced(traces, loop.optimizer)
            raise SystemExit(0)
        self.eagerly = True
        self.trained_on()
        self.again = (self.source, self.given_last)

    def is_plain(self, step):
        """Whether all that the first step has trained is known when its gradients are applied: each optimizer applies
        some once, and the step keeps nothing beside its weights.
        """
        one = self.first[0]
        alone = len(self.first) == 1 and one.applied == len(step.optimizers)
        return alone and not step.kept

    # -- the first step of a run that knows it --
    def give(self, values):
        """Gives variables their values; this is no part of a step."""
        self.loop.passive += 1
        try:
            for variable, value in values:
                variable.assign(value)
        finally:
            self.loop.passive -= 1

    def give_start(self):
        """Gives the variables the values to start from, by their names: those that there are, and others when they are
        made. Which of them the step trains shows later (see `starts`).
        """
        values = parts.initial_values(self.recorder.plan, dict) or {}
        found = with_names(self.tf, values)
        self.give([(variable, values[name]) for name, variable in found.items()])
        self.awaited = {name: value for name, value in values.items() if name not in found}

    def made(self, original, variable, *args, **kwargs):
        """A variable is made."""
        original(variable, *args, **kwargs)
        if self.awaited and self.starting and self.tf.executing_eagerly():
            value = self.awaited.pop(variable.name.partition(":")[0], None)
            if value is not None and tuple(variable.shape) == value.shape:
                self.give([(variable, value)])

    def starts(self, step, optimizer, pairs):
        """Whether the step under way, whose gradients are about to be applied, is the first that counts, since it was
        made from the values to start from. Begins the recording then.
        """
        kept = self.kept_batch(step)
        number = step.asked if kept is None else kept[0]
        if self.waiting:
            number = self.waiting[0][0].asked
        elif kept is None and self.element is None:
            number = -step.tape
        if self.first or step.applied or step.loss is None or number != self.first_batch:
            return False
        loop = self.loop
        trained = self.make_trained(self.part(step, optimizer, pairs))
        # What the step has moved already, as averages of batches, is put back for as long as this takes.
        moved = [(variable, variable.numpy()) for variable, _ in self.before.values()]
        self.give(self.before.values())
        began = self.as_given(trained)
        if began:
            loop.counts.note([variable for variable, _ in self.before.values()])
            with self.tf.init_scope():
                loop.begin(trained, self.tf.distribute.get_strategy())
            loop.parts.add_optimizers([optimizer])
            self.recorder.program.update(first_batch=self.first_batch, requests=1 + len(step.elements))
            self.recorder.program["carried"] = bool(self.waiting)
            self.eagerly, self.before = True, {}
            self.trained_on()
        self.give(moved)
        return began

    def part(self, step, optimizer, pairs):
        """What one of the optimizers of a step trains, as a step."""
        part = self.make_step()
        part.layers.outermost += step.layers.outermost
        part.gradients, part.optimizers = pairs, [optimizer]
        part.optimizer = self.recorder.together(part.optimizers)
        return part

    def join(self, step, optimizer, pairs):
        """Takes what a further optimizer of the first step trains to what is recorded, before it has moved it."""
        if not any(optimizer is one for one in self.loop.parts.optimizers):
            with self.tf.init_scope():
                self.loop.add(self.part(step, optimizer, pairs))

    def as_given(self, trained):
        """Whether what is trained has the values to start from."""
        values = parts.initial_values(self.recorder.plan, dict)
        if values is None:
            return True
        found = self.recorder.recorded_parts(trained)
        if not all(part.name in values and values[part.name].shape == part.whole for part in found):
            return False
        return all(
            np.array_equal(read(self.tf, part.variable), piece) for part, piece in zip(found, parts.cut(found, values))
        )

    def install(self):
        tape = self.tf.GradientTape
        parts.wrap(tape, "__enter__", self.enter)
        parts.wrap(tape, "gradient", self.gradient)
        iterators = importlib.import_module("tensorflow.python.data.ops.iterator_ops")
        for name in ("__next__", "get_next"):
            parts.wrap(iterators.OwnedIterator, name, self.next_element)
        distributed = importlib.import_module("tensorflow.python.distribute.input_lib").DistributedIteratorBase
        for name in ("get_next", "get_next_as_optional"):
            parts.wrap(distributed, name, self.for_replicas)
            record_mesh._artifact(getattr(distributed, name))
        control_flow = importlib.import_module("tensorflow.python.autograph.operators.control_flow")
        operators = importlib.import_module("tensorflow.python.autograph.operators")
        for name in ("for_stmt", "while_stmt"):
            place = list(inspect.signature(getattr(control_flow, name)).parameters).index("body")
            for module in (control_flow, operators):
                parts.wrap(module, name, self.in_loop(place))
        variables = importlib.import_module("tensorflow.python.ops.resource_variable_ops")
        if self.first_batch is not None:
            parts.wrap(variables.ResourceVariable, "__init__", self.made)
        for kind in (variables.ResourceVariable, variables.BaseResourceVariable):
            for name in {"assign", "assign_add", "assign_sub"} & set(vars(kind)):
                parts.wrap(kind, name, self.assign)
                record_mesh._artifact(getattr(kind, name))
        kept = self.loop.mesh.apply

        def apply(original, optimizer, *args, **kwargs):
            def inner(optimizer, *args, **kwargs):
                return self.apply(original, optimizer, *args, **kwargs)

            before, self.applying = self.applying, True
            try:
                return kept(inner, optimizer, *args, **kwargs)
            finally:
                self.applying = before

        return apply
