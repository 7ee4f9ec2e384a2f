"""The random numbers that a program draws for its data and its initial values: Python's and NumPy's global generators,
and random operations in the functions of datasets and in the initializers of a graph's variables.

Where a program gives no seed, two runs draw different numbers, and no two programs can be compared batch by batch. With
the same ``generators`` in their plans two programs draw the same, as long as they draw in the same order, and a program
begins with the same weights each time: what is said of it does not hang on a draw. What Keras draws from Python's
generator, to seed its initializers, is drawn from another one in all runs: a program with layers of Keras would draw
other numbers for its data than one without.
"""

import importlib
import itertools
import random
import sys
import threading
import zlib

import numpy as np
import parts

_LIBRARIES = ("keras", "tf_keras", "tensorflow", "tensorflow_core", "tensorflow_estimator")


def install(plan):
    number = plan.get("generators")
    if number is None:
        _keep_libraries_apart(random.Random())
        return
    task = plan.get("task") or {}
    # Each task draws its own numbers, as it does where nobody gives it a seed.
    own = zlib.crc32(("%s %s %s" % (number, task.get("type"), task.get("index"))).encode("utf-8"))
    _keep_libraries_apart(random.Random(own))
    random.seed(own)
    np.random.seed(own)
    _seed_operations(own % 2**31)


def _keep_libraries_apart(generator):
    """Has libraries draw integers from a generator of their own; a seed that they set is that of the program."""
    program, library = random.randint, generator.randint

    def randint(a, b):
        caller = sys._getframe(1).f_globals.get("__name__", "").split(".")[0]
        return (library if caller in _LIBRARIES else program)(a, b)

    random.randint = randint


class _Tracing(threading.local):
    drawn = None  # how many random operations the function of a dataset has so far; None outside of one
    initial = False  # whether the initial value of a variable is made


def _wrapper_of_functions():
    """What makes a function of a dataset's operations of a function of Python's."""
    for name in ("tensorflow.python.data.ops.structured_function", "tensorflow.python.data.ops.dataset_ops"):
        try:
            return importlib.import_module(name).StructuredFunctionWrapper
        except (ImportError, AttributeError):
            continue
    return None


def _variables_of_graphs():
    """The classes of variables whose initial values are operations."""
    for module, name in (
        ("resource_variable_ops", "ResourceVariable"),
        ("ref_variable", "RefVariable"),
        ("variables", "RefVariable"),  # where TensorFlow 1 has it
    ):
        try:
            kind = getattr(importlib.import_module("tensorflow.python.ops." + module), name)
        except (ImportError, AttributeError):
            continue
        if "_init_from_args" in vars(kind):
            yield kind


def _seed_operations(number):
    """Gives a seed to every random operation in a function of a dataset, and in what initializes a variable of a graph,
    to which the program gives none.
    """
    wrapper = _wrapper_of_functions()
    if wrapper is None:
        return
    tracing = _Tracing()
    initial = itertools.count(1 << 20)

    def make(original, *args, **kwargs):
        before, tracing.drawn = tracing.drawn, 0
        try:
            return original(*args, **kwargs)
        finally:
            tracing.drawn = before

    def begin(original, *args, **kwargs):
        before, tracing.initial = tracing.initial, True
        try:
            return original(*args, **kwargs)
        finally:
            tracing.initial = before

    def seeds(original, op_seed=None, *args, **kwargs):
        found = original(op_seed, *args, **kwargs)
        if found != (None, None):
            return found
        if tracing.drawn is not None:
            tracing.drawn += 1
            return number, tracing.drawn
        return (number, next(initial)) if tracing.initial else found

    def alone(original, data, map_func, num_parallel_calls=None, *args, **kwargs):
        # Side by side, calls of the function would take what is drawn in any order.
        return original(data, map_func, None, *args, **kwargs)

    kinds = importlib.import_module("tensorflow.python.data.ops.dataset_ops")
    for kind in (kinds.DatasetV1, kinds.DatasetV2):
        if "map" in vars(kind):
            parts.wrap(kind, "map", alone)
    parts.wrap(wrapper, "__init__", make)
    for kind in _variables_of_graphs():
        parts.wrap(kind, "_init_from_args", begin)
    parts.wrap(importlib.import_module("tensorflow.python.framework.random_seed"), "get_seed", seeds)
