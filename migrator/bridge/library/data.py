"""What an input_fn gives: a dataset, or tensors that another batch is drawn for in every step."""

from __future__ import annotations

import inspect
import threading
import weakref

import tensorflow as tf

from .graph import Graph, operations_behind, without_prefetch


def call_with_known_arguments(function, **arguments):
    """Calls a function with those of the arguments that it takes by name."""
    known = inspect.signature(function).parameters
    return function(**{name: value for name, value in arguments.items() if name in known})


def features_and_labels(element, only_features=False):
    """The parts of a batch that a model_fn is given: the features, and the labels if there are any."""
    if not isinstance(element, (tuple, list)) or hasattr(element, "_fields"):
        return (element,)
    if only_features:
        return (element[0],)
    if len(element) != 2:
        raise ValueError("input_fn should return (features, labels) as a len 2 tuple.")
    return tuple(element) if element[1] is not None else (element[0],)


def _input_context(strategy):
    """Which part of the data this process reads; None without a strategy, and on parameter servers."""
    if strategy is None or isinstance(strategy, tf.distribute.ParameterServerStrategy):
        return None
    replicas, own = strategy.num_replicas_in_sync, len(strategy.extended.worker_devices)
    resolver = strategy.cluster_resolver
    number = 0
    if resolver is not None and replicas > own:
        jobs = resolver.cluster_spec().as_dict()
        number = resolver.task_id + (len(jobs.get("chief", [])) if resolver.task_type == "worker" else 0)
    return tf.distribute.InputContext(replicas // own, number, replicas)


class Queues:
    """The threads that fill the queues of an input_fn, as the sessions of TensorFlow 1 start them."""

    def __init__(self, graph):
        self._closed = threading.Event()
        self._runners = []  # for each queue: what its threads run, what closes it, what lets all threads go
        for runner in graph.graph.get_collection(tf.compat.v1.GraphKeys.QUEUE_RUNNERS):
            operations = [*runner.enqueue_ops, runner.close_op, runner.cancel_op]
            *fill, close, cancel = (graph.function_of([one])[0] for one in operations)
            self._runners.append((fill, close, cancel, runner.queue_closed_exception_types))
        self.error = None

    def start(self):
        for fill, close, cancel, ends in self._runners:
            left = list(fill)  # those that have not come to the end
            for one in fill:
                arguments = (one, left, close, cancel, ends)
                threading.Thread(target=self._fill, args=arguments, daemon=True).start()

    def _fill(self, one, left, close, cancel, ends):
        try:
            while not self._closed.is_set():
                one()
        except ends:
            left.remove(one)
            if not left:
                close()
        except tf.errors.CancelledError:
            pass
        except Exception as error:
            self.error = error
            cancel()

    def stop(self):
        """Ends the threads, which wait for room in their queues."""
        self._closed.set()
        for _, _, cancel, _ in self._runners:
            cancel()


class Data:
    """The batches of an input_fn, each a flat list of tensors. The input_fn is called once, in a graph of its own."""

    def __init__(self, input_fn, strategy=None, seed=None, only_features=False):
        self._strategy = strategy
        self._only_features = only_features
        self.graph = Graph(lambda: input_fn(_input_context(strategy)), seed=seed)
        self._flat = None
        made = self.graph.result
        if isinstance(made, tf.data.Dataset):
            self.spec = self._parts(made.element_spec)
            self._dataset = made
        else:
            if strategy is not None:
                raise ValueError("Under a distribution strategy an input_fn has to return a `tf.data.Dataset`.")
            parts = self._parts(made)
            self.spec = tf.nest.map_structure(tf.type_spec_from_value, parts)
            self._flat = tf.nest.flatten(parts, expand_composites=True)
            self._dataset = None
        self._next = None
        self._queues = None

    def _parts(self, element):
        return features_and_labels(element, self._only_features)

    def start(self, session):
        """Initializes tables and iterators and begins to fill the queues, before the first batch is drawn."""
        made = self.graph.graph.get_collection(tf.compat.v1.GraphKeys.TABLE_INITIALIZERS)
        session.run([one for one in made if getattr(one, "graph", None) is self.graph.graph])
        if self._queues is None:
            self._queues = Queues(self.graph)
            self._queues.start()
            weakref.finalize(self, self._queues.stop)

    def dataset(self):
        """The dataset of the input_fn, which is not called again for it."""
        return without_prefetch(self.graph.function.prune([], self._dataset)(), self.graph.graph)

    @property
    def endless(self):
        """Whether the dataset is known to have no end."""
        return int(self.dataset().cardinality()) == tf.data.INFINITE_CARDINALITY

    def flat(self, element):
        """The tensors of an element of the dataset."""
        return tf.nest.flatten(self._parts(element), expand_composites=True)

    @property
    def tensors(self):
        """What the batches are drawn as, where the input_fn gave tensors and no dataset."""
        return self._flat or []

    @property
    def may_be_drawn_in_functions(self):
        """Whether a function of TensorFlow may draw batches: of a dataset, or of iterators, and not of queues."""
        return not any("Queue" in one.type or "Reader" in one.type for one in operations_behind(self.tensors))

    def iterator(self):
        """The iterator that all batches come from, of each replica its own where there is a strategy; () of tensors."""
        if self._flat is not None:
            return ()
        if self._next is None:
            dataset = self.dataset()
            if self._strategy is not None:
                dataset = self._strategy.distribute_datasets_from_function(lambda context: dataset)
            self._next = iter(dataset)
        return self._next

    def draw(self):
        """Returns the next batch. Raises tf.errors.OutOfRangeError behind the last."""
        try:
            return self.batch_of(self.iterator())
        except StopIteration:
            raise tf.errors.OutOfRangeError(None, None, "End of sequence") from None

    def draw_with(self, others):
        """Returns the next batch, and what other tensors of the input_fn's graph are in the same step."""
        if not others:
            return self.draw(), []
        values = self._compute([*self.tensors, *others])
        return values[: len(self.tensors)], values[len(self.tensors) :]

    def batch_of(self, iterator):
        """The next batch of an iterator: the tensors of all replicas of this process, one behind the other."""
        if self._flat is not None:
            return self._compute(self._flat)
        return self.tensors_of(next(iterator))

    def _compute(self, fetches):
        try:
            return self.graph.compute(fetches)
        except tf.errors.OutOfRangeError:
            if self._queues is not None and self._queues.error is not None:
                raise self._queues.error from None
            raise

    def tensors_of(self, element):
        """The tensors of an element of the iterator, of all replicas one behind the other."""
        if self._strategy is None:
            return self.flat(element)
        parts = [self._strategy.experimental_local_results(one) for one in tf.nest.flatten(element)]
        return [
            tensor
            for replica in zip(*parts, strict=True)
            for tensor in self.flat(tf.nest.pack_sequence_as(element, replica))
        ]
