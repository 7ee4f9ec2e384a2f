"""Counts of steps that a loop keeps in variables of its own, as for its learning rate or for the decay of an average:
single steps (points.py) start with other counts than the program has come to.
"""


class OwnCounts(object):
    """Those of one program: variables without a shape that its first step has made greater by one."""

    def __init__(self):
        self.began = {}  # id -> (variable, what it held before the first step)
        self.counts = None  # [(variable, what it held before the first step)] of those that count

    def note(self, variables):
        """Takes up what a step assigns, before it is run for the first time."""
        for one in variables:
            if one.shape.rank == 0 and (one.dtype.is_integer or one.dtype.is_floating):
                self.began.setdefault(id(one), (one, one.numpy()))

    def found(self):
        """Those that count. One step must have been taken, and no other."""
        if self.counts is None:
            self.counts = [(one, value) for one, value in self.began.values() if one.numpy() - value == 1]
        return self.counts

    def start_from(self, step):
        """Gives the counts what they hold before this step (from 1). The first step must have been taken."""
        for one, value in self.found():
            one.assign(value + (step - 1))

    def start_within(self, tf, number, steps, make_variable):
        """Adds operations behind the step of this ``number``, a tensor, that do the same where the next one is in the
        same call: it is the one at this place in ``steps``. ``make_variable`` makes one of a value.
        """
        number = tf.cast(number, tf.int64)
        coming = tf.gather(tf.constant([step - 1 for step in steps], tf.int64), tf.minimum(number, len(steps) - 1))
        for one, value in self.began.values():
            with tf.init_scope():
                counts = make_variable(False)
            counts.assign(tf.where(tf.equal(number, 1), tf.equal(one - value, 1), counts))
            one.assign(tf.where(counts & (number < len(steps)), value + tf.cast(coming, one.dtype), one))
