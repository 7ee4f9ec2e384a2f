"""No more than the first batches of what a program evaluates or predicts: those of huge data sets would take hours."""

import functools
import importlib
import inspect

import parts


def _lesser(asked, most):
    return most if asked is None else min(int(asked), most)


def _limited(call, change):
    """A method whose arguments are those that ``change`` leaves in a dict of them."""
    signature = inspect.signature(call)

    @functools.wraps(call)
    def wrapper(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        change(bound.arguments)
        return call(*bound.args, **bound.kwargs)

    return wrapper


def watch_estimator(estimator, most, is_dataset):
    """``Estimator.evaluate`` takes at most so many batches; ``train_and_evaluate`` calls it. Predictions are for those
    of a data set.
    """

    def evaluate(arguments):
        arguments["steps"] = _lesser(arguments.get("steps"), most)

    estimator.evaluate = _limited(estimator.evaluate, evaluate)

    def call_input_fn(original, self, input_fn, mode, *args, **kwargs):
        found = original(self, input_fn, mode, *args, **kwargs)
        return found.take(most) if mode == "infer" and is_dataset(found) else found

    parts.wrap(estimator, "_call_input_fn", call_input_fn)


def _first(data, count):
    """The first examples of arrays in dicts, lists and tuples."""
    if isinstance(data, dict):
        return type(data)((name, _first(one, count)) for name, one in data.items())
    if isinstance(data, (list, tuple)):
        return type(data)(_first(one, count) for one in data)
    return None if data is None else data[:count]


def _arrays(data):
    """Whether data are arrays, or dicts, lists and tuples of them."""
    if isinstance(data, dict):
        return all(_arrays(one) for one in data.values())
    if isinstance(data, (list, tuple)):
        return all(_arrays(one) for one in data if one is not None)
    return hasattr(data, "shape") and not hasattr(data, "element_spec")


def watch_keras(model, most):
    """``Model.evaluate``, ``Model.predict`` and the validation of ``Model.fit``.

    Of arrays the first examples are taken: a number of steps would give them another batch size.
    """

    def limited(of, names, steps, sizes):
        def change(arguments):
            data = arguments.get(of)
            if data is None:
                return
            if not _arrays(data):
                arguments[steps] = _lesser(arguments.get(steps), most)
            elif arguments.get(steps) is None:
                count = most * next((arguments[size] for size in sizes if arguments.get(size) is not None), 32)
                for name in names:
                    if arguments.get(name) is not None:
                        arguments[name] = _first(arguments[name], count)

        return change

    for method, *how in (
        ("fit", "validation_data", ("validation_data",), "validation_steps", ("validation_batch_size", "batch_size")),
        ("evaluate", "x", ("x", "y", "sample_weight"), "steps", ("batch_size",)),
        ("predict", "x", ("x",), "steps", ("batch_size",)),
    ):
        setattr(model, method, _limited(getattr(model, method), limited(*how)))


def watch_loops(dataset, most, over):
    """Loops of a program's own over a data set, once its training is ``over()``."""
    parts.wrap(dataset, "__iter__", lambda original, self: original(self.take(most) if over() else self))


def install(tf, plan, program, over):
    """Obeys ``data_sample`` of a plan; behind the patches of the recorder, which sees what is asked then. ``over()``
    says of a Keras program whether all steps were taken.
    """
    most = plan.get("data_sample")
    if most is None:
        return
    kind = importlib.import_module("tensorflow").data.Dataset
    if program == "original":
        watch_estimator(tf.estimator.Estimator, int(most), lambda found: isinstance(found, kind))
    else:
        watch_keras(tf.keras.Model, int(most))
        watch_loops(kind, int(most), over)
