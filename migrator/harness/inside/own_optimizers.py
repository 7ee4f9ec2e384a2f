"""Optimizer classes of the program's own that apply gradients themselves, under TensorFlow 1's base class."""

import contextlib

import parts

RATES = ("_lr", "_learning_rate", "learning_rate")


def watch(base, seen):
    """From now on ``seen(original, optimizer, grads_and_vars, ...)`` stands around the ``apply_gradients`` of every
    class that a program derives from ``base`` with one of its own.
    """

    def init_subclass(cls, **kwargs):
        super(base, cls).__init_subclass__(**kwargs)
        if "apply_gradients" in vars(cls) and cls.__module__.split(".")[0] not in ("tensorflow", "tensorflow_core"):
            parts.wrap(cls, "apply_gradients", seen)

    base.__init_subclass__ = classmethod(init_subclass)


@contextlib.contextmanager
def scaled_rate(optimizer, factor):
    """The rate of an optimizer times a factor, within the block."""
    before = {}
    if factor != 1.0:
        for name in RATES:
            rate = vars(optimizer).get(name)
            if rate is not None:
                before[name] = rate
                setattr(optimizer, name, (lambda r=rate: r() * factor) if callable(rate) else rate * factor)
    try:
        yield
    finally:
        for name, rate in before.items():
            setattr(optimizer, name, rate)


def rate_of(tf, optimizer):
    """The rate of an optimizer of the program's own, as a float32 tensor; None where it has none by a known name."""
    for name in RATES:
        rate = vars(optimizer).get(name)
        rate = rate() if callable(rate) else rate
        if rate is not None:
            return tf.cast(tf.convert_to_tensor(rate), tf.float32)
    return None


def described(optimizer):
    """The optimizer as both recorders describe one whose rule is the program's own."""
    return {"name": type(optimizer).__name__, "settings": {}, "own": True}
