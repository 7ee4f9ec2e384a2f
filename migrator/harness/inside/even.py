"""Random numbers of a training step that are the same in every program: each is decided by its place in an example,
and by which step of the training it is.

They do not depend on the example, or on how many replicas share a batch, and are spread evenly: of n features a dropout
of rate r drops r * n, as near as can be, and others at the next step. What a dropout computes can then be compared: its
rate, its scale, its place, whether it is at work and draws anew, also where a program has written it by hand.
"""

import importlib

import numpy as np
import parts

# The golden ratio's share: multiples of it, without their whole part, fill the interval from 0 to 1 evenly.
_STEP = 0.6180339887498949
# As even, and apart from the first: the share of the square root of two.
_OTHER = 0.4142135623730951
# How far all numbers move from step to step: that of three.
_ANEW = 0.7320508075688772
#: A plan that pins dropouts so has them drop the same features at all places of the axes before the last: at each time
#: step, as one does that draws in a loop over them.
FEATURES = "features"
# A single feature is dropped only at rates above this.
_FIRST = 0.98


def numbers(count):
    """``count`` numbers from 0 to 1, as an array of float64."""
    return np.mod(_FIRST + _STEP * np.arange(count, dtype=np.float64), 1.0)


def _for_each(tf, shape, dtype, made):
    """A tensor in which every row along the first of several axes is the same: ``made`` of the places in a row."""
    known = importlib.import_module("tensorflow.python.framework.tensor_util").constant_value_as_shape(shape)
    shape = tf.cast(shape, tf.int64)
    rank = shape.shape.as_list()[0]
    one = shape if rank is not None and rank < 2 else shape[1:]
    places = tf.cast(tf.range(tf.reduce_prod(one)), tf.float64)
    found = tf.broadcast_to(tf.reshape(tf.cast(made(places), dtype), one), shape)
    found.set_shape(known)  # as far as the program knows it of what it would have drawn
    return found


def _fractions(tf, places, step, at):
    return _moved(tf, tf.constant(_FIRST, tf.float64) + tf.constant(step, tf.float64) * places, at)


def _moved(tf, numbers, at):
    """The fractions of numbers at a step; ``at`` is its place in the training, from 0, None where that is unknown."""
    if at is not None:
        numbers += tf.constant(_ANEW, tf.float64) * tf.cast(at, tf.float64)
    return numbers - tf.floor(numbers)


def uniform(tf, shape, dtype, at=None):
    """A tensor of numbers from 0 to 1; ``shape`` is a tensor, ``at`` the place of the step."""
    return _for_each(tf, shape, dtype, lambda places: _fractions(tf, places, _STEP, at))


def normal(tf, shape, dtype, at=None, most=None):
    """A tensor of numbers of a normal distribution, none beyond ``most`` standard deviations where that is given."""

    def made(places):
        # By the method of Box and Muller, of two even sequences.
        length = tf.sqrt(-2.0 * tf.math.log(1.0 - _fractions(tf, places, _STEP, at)))
        found = length * tf.cos(2.0 * np.pi * _fractions(tf, places, _OTHER, at))
        return found if most is None else tf.clip_by_value(found, -most, most)

    return _for_each(tf, shape, dtype, made)


def dropout(tf, inputs, rate, noise_shape=None, pin=True, at=None):
    """What a dropout of this rate, a number or a tensor, makes of its inputs; ``pin`` is that of the plan, ``at`` the
    place of the step.
    """
    inputs = tf.convert_to_tensor(inputs)
    features = inputs.shape.as_list()[1:] if inputs.shape.ndims else None
    if features and pin == FEATURES and noise_shape is None:
        features[:-1] = [1] * (len(features) - 1)
    known = features is not None and None not in features and noise_shape is None
    even = numbers(int(np.prod(features, dtype=np.int64))).reshape(features) if known else None
    if even is not None and isinstance(rate, (int, float)):
        scale = np.asarray(1.0 / (1.0 - rate) if rate < 1.0 else 0.0)
        if at is None:
            # A constant, so that it is the same on a mesh of devices.
            return inputs * tf.constant((even >= np.float32(rate)) * scale, inputs.dtype)
        kept = _moved(tf, tf.constant(even, tf.float64), at) >= tf.constant(np.float64(np.float32(rate)), tf.float64)
        return inputs * (tf.cast(kept, inputs.dtype) * tf.constant(scale, inputs.dtype))
    rate = tf.cast(rate, inputs.dtype)
    if even is None:
        shape = tf.shape(inputs) if noise_shape is None else _known(tf, noise_shape, inputs)
        even = uniform(tf, shape, inputs.dtype, at)
    elif at is not None:
        even = _moved(tf, tf.constant(even, tf.float64), at)
    kept = tf.cast(tf.cast(even, inputs.dtype) >= rate, inputs.dtype)
    dropped = inputs * kept * tf.math.divide_no_nan(tf.ones([], inputs.dtype), 1 - rate)
    dropped.set_shape(inputs.shape)
    return dropped


def of_layer(tf, layer, inputs, training, pin=True, at=None):
    """What a Dropout layer makes of its inputs, where it trains; ``training`` may be a tensor."""
    shape_of = getattr(layer, "_get_noise_shape", None)
    noise_shape = getattr(layer, "noise_shape", None) if shape_of is None else shape_of(inputs)
    dropped = dropout(tf, inputs, layer.rate, noise_shape, pin, at)
    return tf.cond(tf.cast(training, tf.bool), lambda: dropped, lambda: inputs) if _asked(training) else dropped


def _asked(training):
    return hasattr(training, "dtype") and hasattr(training, "graph")


def _known(tf, noise_shape, inputs):
    """The shape of a mask as a tensor; what it leaves open is that of the inputs."""
    if hasattr(noise_shape, "as_list"):
        noise_shape = noise_shape.as_list()
    if isinstance(noise_shape, (list, tuple)):
        given = [getattr(one, "value", one) for one in noise_shape]  # TensorFlow 1 has sizes that are objects
        sizes = tf.shape(inputs)
        return tf.stack([sizes[axis] if one is None else tf.cast(one, tf.int32) for axis, one in enumerate(given)])
    return tf.convert_to_tensor(noise_shape)


def is_zero(rate):
    """Whether a dropout of this rate drops nothing, and draws nothing."""
    return isinstance(rate, (int, float)) and rate == 0


def watch_dropouts(around):
    """From now on each dropout that TensorFlow computes is ``around(call, x, rate, noise_shape)``, whatever name it was
    asked for by: functions of all interfaces, wrappers of cells, contrib. ``call()`` does what was asked.
    """
    module = importlib.import_module("tensorflow.python.ops.nn_ops")

    def function(original, x, rate, noise_shape=None, *args, **kwargs):
        return around(lambda: original(x, rate, noise_shape, *args, **kwargs), x, rate, noise_shape)

    # What all others call; TensorFlow 1 has it as the one of TensorFlow 2.
    parts.wrap(module, "_dropout" if hasattr(module, "_dropout") else "dropout_v2", function)


def settle(tf, pending, reached, saw, place):
    """Puts even numbers in the place of those ``pending`` ones that are drawn for the operations ``reached``."""
    for drawn, make in pending:
        operation = drawn.op
        if operation.name not in reached:
            continue
        saw(drawn)
        context = operation._get_control_flow_context()
        with drawn.graph.as_default(), tf.control_dependencies(None), drawn.graph.device(operation.device):
            at = place()
            if context is not None:
                context.Enter()
            made = make(tf, tf.constant(drawn.shape.as_list(), tf.int32), drawn.dtype, at)
            if context is not None:
                context.Exit()
        for consumer in drawn.consumers():
            for place_of_input, tensor in enumerate(consumer.inputs):
                if tensor is drawn:
                    consumer._update_input(place_of_input, made)
    del pending[:]


def candidates(kind, classes, count, unique, most, step):
    """What a candidate sampler gives at a step of the training: the classes that it samples, and how often it would
    sample the true ones and these, as TensorFlow reckons it.
    """
    random = np.random.RandomState([_SEED, int(step) % (1 << 31)])

    def share(some):
        if kind == "uniform":
            return np.full(some.shape, 1.0 / most)
        return np.log((some + 2.0) / (some + 1.0)) / np.log(most + 1.0)

    def drawn(size):
        numbers = random.random_sample(size)
        some = numbers * most if kind == "uniform" else np.exp(numbers * np.log(most + 1.0)) - 1.0
        return np.minimum(some.astype(np.int64), most - 1)

    sampled, tries = drawn(count), count
    if unique:
        found, tries = {}, 0
        while len(found) < count:
            for one in drawn(4 * count):
                tries += 1
                found[int(one)] = None
                if len(found) == count:
                    break
        sampled = np.asarray(list(found), np.int64)

    def expected(some):
        shares = share(some.astype(np.float64))
        with np.errstate(divide="ignore"):
            return (-np.expm1(tries * np.log1p(-shares)) if unique else shares * count).astype(np.float32)

    return sampled, expected(classes), expected(sampled)


def _sampler(tf, kind, original, place):
    """What stands in the place of the ``original`` sampler of this kind."""

    def sampler(true_classes, num_true, num_sampled, unique, range_max, *args, **kwargs):
        if unique and num_sampled > range_max:  # which it says itself
            return original(true_classes, num_true, num_sampled, unique, range_max, *args, **kwargs)
        at = place()
        at = tf.constant(0, tf.int64) if at is None else at

        def draw(classes, step):
            return candidates(kind, classes, int(num_sampled), unique, int(range_max), step)

        types = [tf.int64, tf.float32, tf.float32]
        sampled, of_true, of_sampled = tf.numpy_function(draw, [true_classes, at], types)
        of_true.set_shape(true_classes.shape)
        for one in (sampled, of_sampled):
            one.set_shape([int(num_sampled)])
        return sampled, of_true, of_sampled

    return sampler


def install(tf, at_work, saw, place, pending=None, alone=False):
    """From now on random numbers of a step are even, where ``at_work()``: a mask of the program's own, or noise.
    ``saw(shape)`` is called for each, ``place()`` is that of the step.

    Initial values have sizes that are known when a graph is built, as a batch may have. ``pending(graph)`` is the list
    of what is drawn so in a graph that has both: `settle` tells them apart once it is known what a step computes. None
    where a graph has no initial values. ``alone``: all operations run in this process.
    """
    static = importlib.import_module("tensorflow.python.framework.tensor_util").constant_value
    inside = []

    def watch(module, name, make):
        original = getattr(module, name)

        def wrapper(shape, *args, **kwargs):
            if inside or not at_work() or not hasattr(shape, "graph"):
                return original(shape, *args, **kwargs)
            later = pending(shape.graph) if pending is not None and static(shape) is not None else None
            if later is not None:
                found = original(shape, *args, **kwargs)
                later.append((found, make))
                return found
            saw(shape)
            inside.append(True)
            try:
                return make(tf, shape, _type_asked_for(args, kwargs), place())
            finally:
                inside.pop()

        setattr(module, name, wrapper)

    def truncated(*given):
        return normal(*given, most=2.0)

    # What is drawn from a seed of its own, or a Generator, as Keras 3 does for its layers, is noise like any other.
    for module, names in _DRAWN:
        try:
            found = importlib.import_module("tensorflow.python.ops." + module)
        except ImportError:  # of another version of TensorFlow
            continue
        for name, make in zip(names, (uniform, normal, truncated)):
            watch(found, name, make)

    def seeded(name):
        original = getattr(samplers, name)
        kind = name[: -len("_candidate_sampler")]
        ours = _sampler(tf, kind, original, place) if alone and kind in ("uniform", "log_uniform") else None

        def sampler(true_classes, *args, **kwargs):
            if at_work() and hasattr(true_classes, "graph"):
                if ours is not None:
                    return ours(true_classes, *args, **kwargs)
                kwargs.update(seed=_SEED, seed2=_SEED)
            return original(true_classes, *args, **kwargs)

        setattr(samplers, name, sampler)

    # What a sampled softmax or nce_loss draws is no number from 0 to 1. Where the step cannot tell what, it is drawn of
    # one seed.
    samplers = importlib.import_module("tensorflow.python.ops.gen_candidate_sampling_ops")
    for name in _SAMPLERS:
        seeded(name)


def _type_asked_for(args, kwargs):
    """The type of numbers to draw, wherever it stands among the arguments."""
    types = (one for one in args if hasattr(one, "as_numpy_dtype"))
    return kwargs.get("dtype") or next(types, np.float32)


_SAMPLERS = tuple(
    kind + "_candidate_sampler" for kind in ("uniform", "log_uniform", "learned_unigram", "fixed_unigram")
)
_SEED = 20151

# Where TensorFlow draws: uniform numbers, those of a normal distribution, and of one that is cut off.
_DRAWN = (
    ("gen_random_ops", ("random_uniform", "random_standard_normal", "truncated_normal")),
    (
        "gen_stateless_random_ops",
        ("stateless_random_uniform", "stateless_random_normal", "stateless_truncated_normal"),
    ),
    (
        "gen_stateless_random_ops_v2",
        ("stateless_random_uniform_v2", "stateless_random_normal_v2", "stateless_truncated_normal_v2"),
    ),
)
