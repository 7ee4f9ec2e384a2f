"""The workers of parameter servers: they take the steps of a training, several at a time where nobody looks."""

from __future__ import annotations

import functools

import numpy as np
import tensorflow as tf

from .graph import draws_seeded_numbers, leaves_of, packed, with_variables


class Workers:
    """The workers of a ParameterServerStrategy, which take steps at the same time, each with data of its own."""

    steps_of_each = 10  # between two looks of hooks that would see every step
    steps_at_once = (10, 5, 2, 1)  # what a worker may be given in one call: for each number there is a function

    def __init__(self, strategy, graph, data):
        self.count = strategy._num_workers
        self.taken = 0  # steps, of all workers together
        self._graph = graph
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        self._data = data
        self._batches = None
        self._endless = None  # whether the data are known to have no end
        self._functions = {}
        with strategy.scope():
            self._ended = tf.Variable(tf.zeros([self.count], tf.int32))  # 1: a worker has seen all of its data

    def run(self, fetches, most=None):
        """Lets the workers take steps, at most so many; returns what was asked for as the last of them computed it.

        Raises tf.errors.OutOfRangeError when all have seen all of their data.
        """
        count = min(self.count * self.steps_of_each, most or self.count * self.steps_of_each)
        variables = [self._graph.variable_of(leaf) for leaf in leaves_of(fetches)]
        leaves = [leaf for leaf, variable in zip(leaves_of(fetches), variables, strict=True) if variable is None]
        flat = [self._graph.value_of(leaf) for leaf in leaves]
        _, tensors = self._take(flat, count, only_last=True)[-1]
        tensors = iter(tensors)
        results = [None if isinstance(one, tf.Operation) else next(tensors) for one in flat]
        return packed(fetches, with_variables(variables, results))

    def losses_of(self, loss, count):
        """Lets the workers take so many steps, fewer where data end; returns the loss of each.

        Raises tf.errors.OutOfRangeError when all have seen all of their data.
        """
        return np.concatenate([losses[:taken] for taken, (losses,) in self._take([loss], count, only_last=False)])

    def _take(self, flat, count, only_last):
        """For each call of a worker the steps that it took and what they computed; without calls that took none."""
        if self._batches is None:
            self._batches = iter(self._coordinator.create_per_worker_dataset(self._data.dataset))
            self._endless = self._data.endless
        step, sizes = self._step_of(flat)
        found = []
        while not found:
            if not self._endless and int(tf.reduce_sum(self._ended)) == self.count:
                raise tf.errors.OutOfRangeError(None, None, "End of sequence")
            calls, left = [], count
            while left:  # fewer at once to the end, so that all workers are done at about the same time
                size = next(size for size in sizes if size <= max(1, left // self.count))
                calls.append(self._coordinator.schedule(self._call(step, size, only_last), args=(self._batches,)))
                left -= size
            self._coordinator.join()
            found = [(int(taken), values) for taken, *values in (call.fetch() for call in calls) if taken]
        self.taken += sum(taken for taken, _ in found)
        return found

    def _step_of(self, flat):
        """The function of a step that computes something, and how many of them a call may take."""
        step, _ = self._graph.function_of(flat, self._graph.inputs)
        if id(step) not in self._functions:
            # Each step of a call draws numbers of its own: from seeds these would be the same numbers.
            seeded = draws_seeded_numbers(self._graph.graph, flat)
            self._functions[id(step)] = (1,) if seeded else self.steps_at_once
        return step, self._functions[id(step)]

    def _call(self, step, size, only_last):
        """The function of a call that takes so many steps: the steps taken, and what the last or each computed."""
        key = id(step), size, only_last
        if key not in self._functions:
            made = self._steps if self._endless else self._steps_or_fewer
            self._functions[key] = tf.function(functools.partial(made, step, size, only_last), autograph=False)
        return self._functions[key]

    def _steps(self, step, size, only_last, batches):
        """Steps of a worker. They are written out: the rounds of a loop would be messages to all servers."""
        found = []
        for _ in range(size):
            found.append([one for one in step(*self._data.flat(next(batches))) if one is not None])
        return [tf.constant(size), *(found[-1] if only_last else map(tf.stack, zip(*found, strict=True)))]

    def _steps_or_fewer(self, step, size, only_last, batches):
        """Like `_steps`, of a worker whose data may end before those of others do."""
        last = [one for one in step.outputs if one is not None]
        shapes = [[size or 0 for size in one.shape] if one.shape.rank else [] for one in last]
        last = [tf.zeros(shape, one.dtype) for shape, one in zip(shapes, last, strict=True)]
        found, taken = [], tf.constant(0)
        for _ in range(size):
            following = batches.get_next_as_optional()
            is_there = following.has_value()

            def take(following=following):
                return [one for one in step(*self._data.flat(following.get_value())) if one is not None]

            last = tf.cond(is_there, take, lambda last=last: [tf.identity(one) for one in last])
            found.append(last)
            taken += tf.cast(is_there, tf.int32)
        worker = tf.distribute.coordinator.experimental_get_current_worker_index()
        tf.cond(is_there, tf.no_op, lambda: tf.group(self._ended.scatter_nd_update([[worker]], [1])))
        return [taken, *(last if only_last else map(tf.stack, zip(*found, strict=True)))]
