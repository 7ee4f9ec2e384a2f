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

_SEEDS = ("seed", "seed2")  # the attributes of operations that draw
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

    def apart(name):
        program, library = getattr(random, name), getattr(generator, name)

        def draw(*args, **kwargs):
            return (library if _by_a_library() else program)(*args, **kwargs)

        setattr(random, name, draw)

    seeds = random.seed

    def seed(a=None, *args, **kwargs):
        # What feeds the queue of `numpy_input_fn` seeds the generator of the whole program by the clock.
        if a is not None or not _by_a_library():
            seeds(a, *args, **kwargs)

    apart("randint")
    apart("randrange")
    random.seed = seed


def _by_a_library():
    """Whether the function that calls the caller of this one is TensorFlow's or Keras'."""
    return sys._getframe(2).f_globals.get("__name__", "").split(".")[0] in _LIBRARIES


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


def _draws_behind(value):
    """The random operations of a graph without a seed that a value comes of; what a variable holds is no part of it."""
    first = getattr(value, "op", None) if hasattr(value, "graph") else None
    waiting = [] if first is None else [first]
    seen = set(waiting)
    while waiting:
        operation = waiting.pop()
        kept = {one.name: one for one in operation.op_def.attr} if operation.op_def is not None else {}
        if all(name in kept for name in _SEEDS) and not any(operation.get_attr(name) for name in _SEEDS):
            yield operation
        for one in operation.inputs:
            if one.op not in seen:
                seen.add(one.op)
                waiting.append(one.op)


def _set(operation, name, number):
    """Gives an operation of a graph another attribute, before any session has seen it."""
    attributes = importlib.import_module("tensorflow.core.framework.attr_value_pb2")
    operation._set_attr(name, attributes.AttrValue(i=number))


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

    def begin(original, variable, *args, **kwargs):
        # An initial value may have been made before the variable: tf.Variable(tf.random_normal([2])).
        value = kwargs.get("initial_value", args[0] if args else None)
        for operation in _draws_behind(value):
            for name, seed in zip(_SEEDS, (number, next(initial))):
                _set(operation, name, seed)
        before, tracing.initial = tracing.initial, True
        try:
            return original(variable, *args, **kwargs)
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
