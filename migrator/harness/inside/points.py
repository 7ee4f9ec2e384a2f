"""Steps taken one at a time: before each, weights, slots and the count of steps become those of a point in a training.

The plan's ``points`` are [{"step", "weights", "slots"}]: the number of the step (from 1), and npz files of whole
weights and of slots ("variable|slot", as TensorFlow 1 keeps them), by the names of this program; and "rate" and
"rate_before", the learning rates of the step and of the one before it, for a program that sets them itself and not by
the count of steps. The first point is the
start of the training, which no file describes. Which batch a point trains on is the matter of ``replay``.
"""

import importlib

import keras_variables
import numpy as np
import parts
from capture import components, in_graph


class Points(object):
    """The points of a plan; none in most runs."""

    def __init__(self, plan):
        self.given = list(plan.get("points") or [])
        self.seed = plan.get("ulp_seed")
        self.variable = None

    def at(self, place):
        """The point of the step at this place, from 0; None where the program goes on as it is."""
        return self.given[place] if 0 < place < len(self.given) else None

    def over(self, place):
        """Whether the steps of all points were taken."""
        return bool(self.given) and place >= len(self.given)

    def before(self, place):
        """How many steps of the training came before the one at this place."""
        return int(self.given[place]["step"]) - 1 if 0 <= place < len(self.given) else place

    def before_tensor(self, tf, place):
        """As `before`, for a place that is a tensor."""
        if not self.given:
            return place
        steps = tf.constant([int(point["step"]) - 1 for point in self.given], tf.int64)
        return tf.gather(steps, tf.minimum(place, len(self.given) - 1))

    def weights(self, point, place):
        values = _arrays(point["weights"])
        return values if self.seed is None else parts.moved_one_ulp(values, self.seed + 1000 * place)

    def slots(self, point):
        """{slot: {variable: value}}."""
        found = {}
        for key, value in _arrays(point["slots"]).items():
            variable, _, slot = key.rpartition("|")
            found.setdefault(slot, {})[variable] = value
        return found

    def counter(self, tf=None, strategy=None):
        """A variable with the place of the step, since the program's own count of steps jumps: of this process, or of
        the parameter servers of a ``strategy``, whose workers take the steps.
        """
        if self.variable is None and strategy is not None:
            with strategy.scope():
                self.variable = tf.Variable(0, dtype=tf.int64, trainable=False)
        if self.variable is None:
            kind = importlib.import_module("tensorflow.python.ops.resource_variable_ops").ResourceVariable
            self.variable = kind(np.int64(0), trainable=False)
        return self.variable


def _arrays(path):
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


def cut_slot(part, values, slot):
    """The piece of a slot that belongs to a part of a variable."""
    if part.name not in values:
        raise RuntimeError("the points have no %s of %s" % (slot, part.name))
    return np.asarray(values[part.name])[part.slices()]


def of_session(tf, point, place, points, session, capture, model, slots):
    """Gives a TensorFlow 1 program the values of a point. ``slots`` is {slot: (parts, variables)}."""
    eager = importlib.import_module("tensorflow.python.framework.ops").EagerTensor
    # By the name of the first, the variables of all replicas of this process.
    every = {}
    for variable in capture.graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES):
        of_replicas = components(variable)
        if in_graph(of_replicas[0]):
            every[of_replicas[0].op.name] = of_replicas

    def load(variable, value):
        """Nothing is added to the graph, which is finalized: the variable's own initializer is given the value."""
        of_replicas = components(variable)
        first = of_replicas[0]
        value = np.asarray(value, first.dtype.as_numpy_dtype)
        found = every.get(first.op.name, of_replicas) if in_graph(first) else of_replicas
        for one in [copy for each in found for copy in keras_variables.copies(each)]:
            if isinstance(getattr(one, "handle", None), eager):  # that of a support file, which runs in TensorFlow 2
                with tf.init_scope():
                    one.assign(value)
            else:
                operation, given = parts.first_assignment(one)
                session.run(operation, {given: value})

    for part, piece in zip(model, parts.cut(model, points.weights(point, place))):
        for variable in part.copies:
            load(variable, piece)
    given = points.slots(point)
    if set(given) != set(slots):
        raise RuntimeError("the points have the slots %s, this program %s" % (sorted(given), sorted(slots)))
    for slot, (owners, variables) in slots.items():
        for part, variable in zip(owners, variables):
            load(variable, cut_slot(part, given[slot], slot))
    done = int(point["step"]) - 1
    load(tf.train.get_global_step(capture.graph), done)
    for optimizer, _ in capture.applied:
        powers = getattr(optimizer, "_get_beta_accumulators", None)
        betas = [getattr(optimizer, name, None) for name in ("_beta1", "_beta2")]
        if powers is None or None in betas:
            continue
        for beta, power in zip(betas, powers()):
            if power is not None and isinstance(beta, float):
                load(power, np.float32(np.float64(np.float32(beta)) ** (done + 1)))
