"""The random numbers that a program draws for its data: Python's and NumPy's global generators, and random operations
in the functions of datasets.

Where a program gives no seed, two runs draw different numbers, and no two programs can be compared batch by batch. With
the same ``generators`` in their plans two programs draw the same, as long as they draw in the same order. What Keras
draws from Python's generator, to seed its initializers, is drawn from another one in all runs: a program with layers of
Keras would draw other numbers for its data than one without.
"""

import importlib
import random
import sys
import threading
import zlib

import numpy as np
import parts

_LIBRARIES = ("keras", "tf_keras", "tensorflow", "tensorflow_core", "tensorflow_estimator")


def install(plan):
    _keep_libraries_apart()
    number = plan.get("generators")
    if number is None:
        return
    task = plan.get("task") or {}
    # Each task draws its own numbers, as it does where nobody gives it a seed.
    own = zlib.crc32(("%s %s %s" % (number, task.get("type"), task.get("index"))).encode("utf-8"))
    random.seed(own)
    np.random.seed(own)
    _seed_datasets(own % 2**31)


def _keep_libraries_apart():
    """Has libraries draw integers from a generator of their own; a seed that they set is that of the program."""
    program, library = random.randint, random.Random().randint

    def randint(a, b):
        caller = sys._getframe(1).f_globals.get("__name__", "").split(".")[0]
        return (library if caller in _LIBRARIES else program)(a, b)

    random.randint = randint


class _Tracing(threading.local):
    drawn = None  # how many random operations the function of a dataset has so far; None outside of one


def _wrapper_of_functions():
    """What makes a function of a dataset's operations of a function of Python's."""
    for name in ("tensorflow.python.data.ops.structured_function", "tensorflow.python.data.ops.dataset_ops"):
        try:
            return importlib.import_module(name).StructuredFunctionWrapper
        except (ImportError, AttributeError):
            continue
    return None


def _seed_datasets(number):
    """Gives a seed to every random operation in a function of a dataset to which the program gives none."""
    wrapper = _wrapper_of_functions()
    if wrapper is None:
        return
    tracing = _Tracing()

    def make(original, *args, **kwargs):
        before, tracing.drawn = tracing.drawn, 0
        try:
            return original(*args, **kwargs)
        finally:
            tracing.drawn = before

    def seeds(original, op_seed=None, *args, **kwargs):
        found = original(op_seed, *args, **kwargs)
        if tracing.drawn is None or found != (None, None):
            return found
        tracing.drawn += 1
        return number, tracing.drawn

    def alone(original, data, map_func, num_parallel_calls=None, *args, **kwargs):
        # Side by side, calls of the function would take what is drawn in any order.
        return original(data, map_func, None, *args, **kwargs)

    kinds = importlib.import_module("tensorflow.python.data.ops.dataset_ops")
    for kind in (kinds.DatasetV1, kinds.DatasetV2):
        if "map" in vars(kind):
            parts.wrap(kind, "map", alone)
    parts.wrap(wrapper, "__init__", make)
    parts.wrap(importlib.import_module("tensorflow.python.framework.random_seed"), "get_seed", seeds)
