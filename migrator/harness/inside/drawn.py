"""Further draws of initial values: one draw of a small variable says little about what it is drawn from."""

import random

import numpy as np
import parts

# Numbers that show a scale a few per cent off, and the most draws of one variable.
_ENOUGH, _MOST = 20000, 64


def _times(shape):
    size = int(np.prod(shape, dtype=np.int64))
    return min(_MOST, -(-_ENOUGH // size)) if 0 < size < _ENOUGH else 0


def _whole(model):
    """The parts that are whole variables and small enough to be drawn again."""
    return [part for part in model if part.shape == part.whole and _times(part.shape)]


def _eager_seeds():
    """What gives the operations of a program that has set a seed their own ones, one after another; else None."""
    from tensorflow.python.eager import context

    return getattr(context.context(), "_rng", None)


def write(folder, draws):
    """Keeps {name: one array for all draws}, the draws along its first axis."""
    parts.write_arrays(folder.file("drawn.npz"), {name: np.stack(values) for name, values in draws.items() if values})


def _own(value):
    """What this task itself draws for an initial value; None where that needs other tasks.

    Mirrored workers send what the first of them has drawn to the others, which wait for it once.
    """
    while value.op.type == "Identity" or value.op.type.startswith("CollectiveBcastSend"):
        value = value.op.inputs[0]
    waiting, seen = [value.op], set()
    while waiting:
        op = waiting.pop()
        if op.type.startswith("Collective"):
            return None
        if op not in seen:
            seen.add(op)
            waiting.extend(one.op for one in op.inputs)
            waiting.extend(op.control_inputs)
    return value


def of_session(tf, session, model):
    """Draws of a TensorFlow 1 program: what its variables are initialized with is computed again."""
    found = {}
    tensors = {}
    for part in _whole(model):
        value = parts.first_assignment(part.variable)[1] if part.dtype.startswith("float") else None
        drawn = None if value is None else _own(value)
        if drawn is not None:
            tensors[part] = drawn
    for time in range(_MOST):
        wanted = [part for part in tensors if time < _times(part.shape)]
        try:
            values = session.run([tensors[part] for part in wanted])
        except tf.errors.OpError:  # an initial value that is given, or that is computed of others
            return {}
        for part, value in zip(wanted, values):
            found.setdefault(part.name, []).append(value)
    return found


class Initializers(object):
    """The initializers of the weights of Keras layers, as they are made."""

    def __init__(self, tf):
        self.tf = tf
        self.known = []  # (variable, initializer)

    def add_weight(self, original, layer, *args, **kwargs):
        variable = original(layer, *args, **kwargs)
        given = kwargs.get("initializer", args[3] if len(args) > 3 else None)
        try:
            initializer = self.tf.keras.initializers.get("glorot_uniform" if given is None else given)
        except ValueError:
            return variable
        if hasattr(initializer, "get_config"):
            self.known.append((variable, initializer))
        return variable

    def draws(self, model):
        """{name: [array]} of the variables of a model. A new initializer draws other numbers, unless it has a seed."""
        by_variable = {id(part.variable): part for part in _whole(model)}
        found = {}
        state, numpy_state, eager = random.getstate(), np.random.get_state(), _eager_seeds()
        eager_state = eager and eager.getstate()
        try:
            for variable, initializer in self.known:
                part = by_variable.get(id(variable))
                if part is None or not part.dtype.startswith("float"):
                    continue
                values = found.setdefault(part.name, [])
                while len(values) < _times(part.shape):
                    fresh = type(initializer).from_config(initializer.get_config())
                    values.append(np.asarray(fresh(part.shape, dtype=part.dtype)))
                    if len(values) == 2 and np.array_equal(*values):
                        break  # a constant, or one that has a seed
        except (TypeError, ValueError):  # a class of the program's own that cannot be made again
            return {}
        finally:
            random.setstate(state)
            np.random.set_state(numpy_state)
            if eager:
                eager.setstate(eager_state)
        return found
