"""Variables that callbacks of a program's own keep beside a model, as moving averages of its weights."""

import keras_variables
import parts

_BATCHES = ("on_train_batch_end", "on_batch_end")


def of_program(callbacks):
    """Those callbacks that are no ones of Keras' own and do something after each batch."""
    found = []
    for callback in callbacks:
        own = type(callback).__module__.split(".")[0] not in ("keras", "tf_keras", "tensorflow")
        methods = [getattr(callback, name, None) for name in _BATCHES]
        if own and any(one is not None and not getattr(one, "_is_default", False) for one in methods):
            found.append(callback)
    return found


def follower(base, begun, stepped):
    """A callback that comes after all others: ``begun()`` when training begins, ``stepped()`` after each batch."""

    class Follower(base):
        _supports_tf_logs = True  # it reads none, and nothing has to be made of them for it

        def on_train_begin(self, logs=None):
            begun()

        def on_train_batch_end(self, batch, logs=None):
            stepped()

    return Follower()


def kept(tf, callbacks, model, known):
    """Parts of the variables that the callbacks keep in attributes, lists, tuples and dicts, and that are formed as a
    weight of ``known``, the parts of the model. They are no weights: no optimizer trains them.
    """
    forms = {(part.whole, part.dtype) for part in known}
    seen = {id(variable) for variable in model.variables} | {id(part.variable) for part in known}
    found = {}
    for callback in callbacks:
        for variable in _variables(tf, vars(callback)):
            if id(variable) in seen:
                continue
            seen.add(id(variable))
            shape, dtype = variable.shape.as_list(), variable.dtype.base_dtype.name
            if (tuple(shape), dtype) not in forms:
                continue
            name = "%s/%s" % (type(callback).__name__, variable.name.partition(":")[0])
            while name in found:
                name += "#"
            found[name] = parts.Part(name, variable, [0] * len(shape), shape, shape, dtype, False)
    return sorted(found.values(), key=lambda part: keras_variables.creation_order(part.variable))


def _variables(tf, value):
    if isinstance(value, tf.Variable):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [one for each in value for one in _variables(tf, each)] if isinstance(value, (list, tuple)) else []
