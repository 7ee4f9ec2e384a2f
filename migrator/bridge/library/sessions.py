"""Sessions that a program makes itself, beside its Estimators."""

import functools

import tensorflow.compat.v1 as tf1


def in_default_graph(function):
    """Lets a function run as all code did in TensorFlow 1: what it makes goes into the one default graph."""

    @functools.wraps(function)
    def run(*args, **kwargs):
        with tf1.get_default_graph().as_default():
            return function(*args, **kwargs)

    return run
