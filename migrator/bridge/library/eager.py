"""Where operations run at once, and where they go into the default graph."""

from __future__ import annotations

import atexit
import functools

import tensorflow as tf
import tensorflow.compat.v1 as tf1


def eagerly(method):
    """Lets a method run where operations are eager, whatever graph its caller builds."""

    @functools.wraps(method)
    def run(*args, **kwargs):
        if tf.executing_eagerly():
            return method(*args, **kwargs)
        with tf.__internal__.eager_context.eager_mode():
            return method(*args, **kwargs)

    return run


def each_eagerly(generator):
    """The same for a generator, whose caller builds its graph between two values."""
    advance = eagerly(next)
    end = object()
    while (value := advance(generator, end)) is not end:
        yield value


def build_in_default_graph():
    """What the program makes outside of its model and input functions goes into the one default graph, as ever.

    Estimators leave it: see `eagerly`.
    """
    if not tf.executing_eagerly():
        return
    reset, entered = tf1.reset_default_graph, []

    def enter():
        graph = tf1.get_default_graph().as_default()
        graph.enforce_nesting = False
        graph.__enter__()
        entered[:] = [graph]

    def reset_default_graph():
        entered[0].__exit__(None, None, None)
        reset()
        enter()

    enter()
    tf1.reset_default_graph = reset_default_graph
    atexit.register(lambda: entered)  # kept as long as the program runs
