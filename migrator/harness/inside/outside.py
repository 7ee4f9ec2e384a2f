"""What an eager step is given from outside: the arrays that its operations get and that none of them has made. So the
batch is known of a loop that takes it out of arrays of its own, and asks no data set.
"""

import importlib

import numpy as np


class Outside(object):
    """Watches the operations of this thread that are run eagerly, from ``begin`` to ``end``."""

    def __init__(self):
        self._callbacks = importlib.import_module("tensorflow.python.framework.op_callbacks")
        self._made = {}  # id -> tensor, of what operations gave; so that no other tensor gets that id
        self._given = {}  # the same of what they got
        self.watching = False

    def begin(self):
        """From now on everything is new."""
        self._made, self._given = {}, {}
        if not self.watching:
            self._callbacks.add_op_callback(self._saw)
            self.watching = True

    def end(self, variables=()):
        """Nothing is watched any more. What was seen is kept, but for the values of some variables: operations may read
        these without one more that does.
        """
        values = [one.numpy() for one in variables]
        for name, one in list(self._given.items()):
            alike = [value for value in values if value.ndim and value.shape == tuple(one.shape)]
            if any(np.array_equal(value, one.numpy()) for value in alike):
                del self._given[name]
        if self.watching:
            self._callbacks.remove_op_callback(self._saw)
            self.watching = False

    def forget(self):
        """Lets go of what was seen."""
        self.end()
        self._made, self._given = {}, {}

    def _saw(self, op_type, inputs, attrs, outputs, op_name=None, graph=None):
        if graph is None:
            for one in inputs:
                if id(one) not in self._made:
                    self._given.setdefault(id(one), one)
            self._made.update((id(one), one) for one in outputs)

    def got(self, tensors):
        """Whether an operation got one of these tensors, or nothing was watched."""
        return not self._given or any(id(one) in self._given for one in tensors)

    def batch(self):
        """The arrays that hold examples, in the order of their use: those with as many rows as the one of most axes,
        each once. None where there are none.
        """
        found = [one for one in self._given.values() if one.dtype.is_numpy_compatible and one.shape.rank]
        most = max((one.shape.rank for one in found), default=0)
        if most < 2:
            return None
        rows = next(one.shape[0] for one in found if one.shape.rank == most)
        chosen = []
        for one in found:
            if one.shape[0] == rows and not any(_alike(one, known) for known in chosen):
                chosen.append(one)
        return tuple(chosen) if len(chosen) > 1 else chosen[0]


def _alike(one, other):
    return one.dtype == other.dtype and one.shape == other.shape and np.array_equal(one.numpy(), other.numpy())
