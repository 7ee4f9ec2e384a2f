"""No more than the first batches of a data set that a program evaluates: those of huge ones would take hours."""

import functools
import inspect

import parts


def _lesser(asked, most):
    return most if asked is None else min(int(asked), most)


def watch_estimator(estimator, most):
    """``Estimator.evaluate`` takes at most so many batches; ``train_and_evaluate`` calls it."""
    signature = inspect.signature(estimator.evaluate)

    def evaluate(original, *args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.arguments["steps"] = _lesser(bound.arguments.get("steps"), most)
        return original(*bound.args, **bound.kwargs)

    parts.wrap(estimator, "evaluate", evaluate)


def watch_keras(model, is_dataset, most):
    """``Model.evaluate`` and the validation of ``Model.fit``.

    Of arrays, which are in memory, all is evaluated: a number of steps would give them another batch size.
    """

    def limited(name, data, steps):
        method = getattr(model, name)
        signature = inspect.signature(method)

        @functools.wraps(method)
        def call(*args, **kwargs):
            bound = signature.bind(*args, **kwargs)
            if is_dataset(bound.arguments.get(data)):
                bound.arguments[steps] = _lesser(bound.arguments.get(steps), most)
            return method(*bound.args, **bound.kwargs)

        setattr(model, name, call)

    limited("fit", "validation_data", "validation_steps")
    limited("evaluate", "x", "steps")


def install(tf, plan, program):
    """Obeys ``data_sample`` of a plan; behind the patches of the recorder, which sees what is asked then."""
    most = plan.get("data_sample")
    if most is None:
        return
    if program == "original":
        watch_estimator(tf.estimator.Estimator, int(most))
    else:
        watch_keras(tf.keras.Model, lambda data: isinstance(data, tf.data.Dataset), int(most))
