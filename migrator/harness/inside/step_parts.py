"""The parts of a step: what several functions of a program train one after another on the same batch, as those of the
two networks of a GAN do (see record_loop.py).
"""


def trained_by(step):
    """What a step trains; another function that trains the same stands in its place."""
    return frozenset(id(variable) for _, variable in step.gradients or ())


class StepParts(object):
    """Which parts of the step under way have been, and what all functions together train.

    ``same_batch(asked)`` says whether a program has asked for no other batch since ``asked()``.
    """

    def __init__(self, tf, asked, same_batch):
        self.tf = tf
        self.asked = asked
        self.same_batch = same_batch
        self.number = None  # a variable: how many parts came before the one that is called now
        self.goes_on = False  # whether what is called now is a further part
        self.optimizers = []  # those of all functions
        self._traces = {}  # what a function trains (see trained_by) -> what its last trace said
        self._done = []  # keys of what has trained in the step under way
        self._asked = None  # for which batch, when it began
        self._tensors = []  # of a batch that what is called now gets
        self._first = []  # those that the first part got
        self._spec = None  # and their structure

    # -- what all functions train --
    def knows(self, step):
        return trained_by(step) in self._traces

    def note(self, step, traced):
        """Notes what the last trace of a function said; returns what is known of all."""
        self._traces[trained_by(step)] = traced
        return self.known()

    def known(self):
        """What the last traces of all functions said."""
        return list(self._traces.values())

    def add_optimizers(self, optimizers):
        """Those of them that are new."""
        late = [one for one in optimizers if not any(one is known for known in self.optimizers)]
        self.optimizers += late
        return late

    # -- the step under way --
    def begin_call(self, key):
        """Before what may train is called: other networks, on the same batch, are a further part."""
        self.goes_on = bool(self._done) and key not in self._done and self.same_batch(self._asked)
        if self.number is not None:
            self.number.assign(len(self._done) if self.goes_on else 0)

    def end_call(self, key):
        """After it was called, and has trained."""
        if not self.goes_on:
            self._done, self._asked = [], self.asked()
        self._done.append(key)
        self.goes_on = False

    def steps_before(self, counter):
        """How many steps are over, as a tensor: ``counter`` counts a step with its first part."""
        return counter.read_value() - self.tf.cast(self.number.read_value() > 0, self.tf.int64)

    # -- its batch --
    def give(self, tensors):
        """Notes the tensors that what is called now gets."""
        self._tensors = tensors
        if not self.goes_on:
            self._first = tensors

    def spec(self, data, spec_of):
        """The structure of what the first part of the step gets."""
        if not self.goes_on:
            self._spec = self.tf.nest.map_structure(spec_of, data)
        return self._spec

    def of_first(self, count):
        """Which tensor of the first part each of ``count`` is; None for those of a further part's own."""
        if not self.goes_on:
            return list(range(count))
        if len(self._tensors) != count:
            return [None] * count
        return [next((n for n, one in enumerate(self._first) if one is mine), None) for mine in self._tensors]
