"""What tf.contrib.training did to examples in queues: it draws some of them again, or not, and batches by buckets."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from tensorflow.python.training import input as queues
from tensorflow.python.training import moving_averages


def rejection_sample(
    tensors,
    accept_prob_fn,
    batch_size,
    queue_threads=1,
    enqueue_many=False,
    prebatch_capacity=16,
    prebatch_threads=1,
    runtime_checks=False,
    name=None,
):
    """Batches of the examples that are drawn: `accept_prob_fn` gives the probability of an example."""
    with tf1.variable_scope(name, "rejection_sample", tensors):
        parts = [tf.convert_to_tensor(one) for one in tensors]
        if enqueue_many:
            parts = _one_by_one(parts, prebatch_threads, prebatch_capacity)
        probability = accept_prob_fn(parts)
        if runtime_checks:
            checks = [tf1.assert_less_equal(0.0, probability), tf1.assert_less_equal(probability, 1.0)]
            with tf.control_dependencies(checks):
                probability = tf.identity(probability, name="prob_with_checks")
        batches = tf1.train.maybe_batch(parts, tf1.random_uniform([]) < probability, batch_size, queue_threads)
        return [batches] if isinstance(batches, tf.Tensor) else batches


def stratified_sample(
    tensors,
    labels,
    target_probs,
    batch_size,
    init_probs=None,
    enqueue_many=False,
    queue_capacity=16,
    threads_per_queue=1,
    name=None,
):
    """Batches with as much of each class as `target_probs` says, and their labels; other examples are left out."""
    with tf1.name_scope(name, "stratified_sample", [*tensors, labels]):
        parts = [tf.convert_to_tensor(one) for one in tensors]
        labels = tf.convert_to_tensor(labels)
        targets = tf.convert_to_tensor(target_probs, tf.float32)
        if not enqueue_many:
            parts, labels = [one[tf.newaxis] for one in parts], labels[tf.newaxis]
        targets.shape.assert_is_fully_defined()
        classes = targets.shape.num_elements()
        found = _shares_seen(labels, classes) if init_probs is None else tf.convert_to_tensor(init_probs, tf.float32)
        if found.shape.as_list() != [classes]:
            raise ValueError("Probability parameters must have the same length.")
        parts, labels = _checked_examples(parts, labels, classes)
        found, targets = _checked_shares(found, targets)
        ratios = targets / found
        ratios = tf.where(tf.math.is_nan(ratios), tf.zeros_like(ratios), ratios)
        accepted = ratios / tf.reduce_max(ratios)
        *parts, label = _one_by_one([*parts, labels], threads_per_queue, queue_capacity)
        keep = tf1.random_uniform([]) < tf.gather(accepted, label)
        *batches, labels = tf1.train.maybe_batch([*parts, label], keep, batch_size, threads_per_queue)
        return batches, labels


def _one_by_one(tensors, threads, capacity):
    batched = tf1.train.batch(tensors, 1, threads, capacity, enqueue_many=True)
    return [tf.squeeze(one, [0]) for one in (batched if isinstance(batched, list) else [batched])]


def _shares_seen(labels, classes):
    """The share of each class among the labels until now, each counted ten times from the start."""
    start = tf.constant([10] * classes, tf.int64)
    seen = tf1.Variable(start, trainable=False, name="class_count", dtype=tf.int64)
    seen = seen.assign_add(tf.reduce_sum(tf.one_hot(labels, classes, dtype=tf.int64), 0)) + 0
    return tf.cast(seen / tf.reduce_sum(seen), tf.float32)


def _checked_examples(tensors, labels, classes):
    labels.shape.assert_has_rank(1)
    for one in tensors:
        one.shape.with_rank_at_least(1)[:1].assert_is_compatible_with(labels.shape)
    count = tf.shape(labels)[0]
    has_some = tf1.assert_positive(count)
    checks = [tf1.assert_integer(labels), tf1.assert_non_negative(labels)]
    checks.append(tf1.assert_less(labels, tf.cast(classes, labels.dtype)))
    checked = [_checked(one, [has_some, tf1.assert_equal(tf.shape(one)[0], count)]) for one in tensors]
    return checked, _checked(labels, [has_some, *checks])


def _checked_shares(found, targets):
    # Not checked together with the examples: whoever reads the shares would take examples out of their queue.
    checks = []
    for one in (found, targets):
        total = tf.reduce_sum(one)
        checks += [tf1.assert_non_negative(one), tf1.assert_less(total, 1 + 1e-6), tf1.assert_less(1 - 1e-6, total)]
    reachable = tf.reduce_all(tf.logical_or(tf.not_equal(found, 0), tf.equal(targets, 0)))
    told = "All classes with zero initial probability must also have zero target probability: "
    checks.append(tf1.Assert(reachable, [told, found, targets]))
    return _checked(found, checks), _checked(targets, checks)


def _checked(tensor, checks):
    with tf.control_dependencies(checks):
        return tf.identity(tensor)


def resample_at_rate(inputs, rates, scope=None, seed=None, back_prop=False):
    """Rows of the tensors, each as often as a Poisson distribution of its rate says."""
    with tf1.name_scope(scope, "resample_at_rate", [*inputs, rates]):
        rates = tf.convert_to_tensor(rates)
        counts = tf.cast(tf1.random_poisson(rates, (), rates.dtype, seed=seed), tf.int32)
        rows = tf.repeat(tf.range(tf.shape(counts)[0]), counts)
        if not back_prop:
            rows = tf.stop_gradient(rows)
        return [tf.gather(one, rows) for one in inputs]


def weighted_resample(inputs, weights, overall_rate, scope=None, mean_decay=0.999, seed=None):
    """Rows of the tensors, drawn by their weights, and the rate of each one that was drawn."""
    with tf1.name_scope(scope, "weighted_resample", inputs) as own:
        with tf1.variable_scope(scope, "estimate_mean", inputs):
            start = tf.zeros([], weights.dtype)
            mean = tf1.get_local_variable("estimated_mean", initializer=start, dtype=weights.dtype)
            mean = moving_averages.assign_moving_average(mean, tf.reduce_mean(weights), mean_decay)
        rates = weights * overall_rate / mean
        drawn = resample_at_rate([rates, *inputs], rates, own, seed)
        return drawn[1:], drawn[0]


def bucket(
    tensors,
    which_bucket,
    batch_size,
    num_buckets,
    num_threads=1,
    capacity=32,
    bucket_capacities=None,
    shapes=None,
    dynamic_pad=False,
    allow_smaller_final_batch=False,
    keep_input=True,
    shared_name=None,
    name=None,
):
    """The number of a bucket, and a batch of it: each example waits in its bucket until there are enough."""
    sizes = list(batch_size) if isinstance(batch_size, (list, tuple)) else [batch_size] * num_buckets
    if len(sizes) != num_buckets:
        raise ValueError("If batch_size is a list it must have num_buckets elements")
    capacities = bucket_capacities or [capacity] * num_buckets
    if len(capacities) != num_buckets:
        raise ValueError(f"bucket_capacities ({bucket_capacities}) must have exactly num_buckets ({num_buckets}).")
    parts = queues._as_tensor_list(tensors)
    if not parts:
        raise ValueError("Expected at least one tensor in bucket().")
    with tf1.name_scope(name, "bucket", parts):
        keep = queues._validate_keep_input(keep_input, enqueue_many=False)
        parts = [one if isinstance(one, tf.SparseTensor) else tf.convert_to_tensor(one) for one in parts]
        parts, of_sparse = queues._store_sparse_tensors(parts, enqueue_many=False, keep_input=keep)
        types, shapes = queues._dtypes([parts]), queues._shapes([parts], shapes, enqueue_many=False)
        which = tf.convert_to_tensor(which_bucket, tf.int32)
        make = queues._which_queue(dynamic_pad)
        waiting = [
            make(
                capacity=capacities[number],
                dtypes=types,
                shapes=shapes,
                shared_name=shared_name and f"{shared_name}_{number}",
                name=f"bucket_queue_{number}",
            )
            for number in range(num_buckets)
        ]
        is_same = not (allow_smaller_final_batch or isinstance(batch_size, (list, tuple)))
        rows = tf.get_static_value(sizes[0]) if is_same else None
        full = tf1.PaddingFIFOQueue(
            capacity,
            [tf.int32, *types],
            [tf.TensorShape([]), *(tf.TensorShape([rows]).concatenate(one) for one in waiting[0].shapes)],
            shared_name=shared_name,
            name="top_queue",
        )

        def enqueue():
            into = [
                tf1.cond(tf.equal(which, number), lambda one=one: one.enqueue(parts), tf.no_op)
                for number, one in enumerate(waiting)
            ]
            return tf.group(*into, name="group_enqueues")

        batches = [
            full.enqueue([number, *_as_list((one.dequeue_up_to if allow_smaller_final_batch else one.dequeue_many)(n))])
            for number, (one, n) in enumerate(zip(waiting, sizes, strict=True))
        ]
        known = tf.get_static_value(keep)
        kept = tf1.cond(keep, enqueue, tf.no_op) if known is None else (enqueue() if known else tf.no_op())
        _run_queue(waiting[0], batches, [full])
        _run_queue(full, [kept] * num_threads, waiting)
        filled = tf.cast(full.size(), tf.float32)
        for one in waiting:
            tf1.summary.scalar(f"bucket/{one.name}/size", filled)
        tf1.summary.scalar(f"bucket/{full.name}/fraction_of_{capacity}_full", filled * (1.0 / capacity))
        number, *found = full.dequeue(name="dequeue_top")
        return number, queues._as_original_type(tensors, queues._restore_sparse_tensors(_only(found), of_sparse))


def _as_list(found):
    return list(found) if isinstance(found, (list, tuple)) else [found]


def _only(found):
    return found[0] if len(found) == 1 else found


def _run_queue(queue, operations, closes):
    """Threads that run the operations; when there is nothing more for them, the queues `closes` end too."""
    runner = tf1.train.QueueRunner(
        queue,
        operations,
        close_op=tf.group(*[one.close() for one in closes]),
        cancel_op=tf.group(*[one.close(cancel_pending_enqueues=True) for one in closes]),
        queue_closed_exception_types=(tf.errors.OutOfRangeError, tf.errors.CancelledError),
    )
    tf1.train.add_queue_runner(runner)


def bucket_by_length(
    input_length,
    tensors,
    batch_size,
    bucket_boundaries,
    num_threads=1,
    capacity=32,
    bucket_capacities=None,
    shapes=None,
    dynamic_pad=False,
    allow_smaller_final_batch=False,
    keep_input=True,
    shared_name=None,
    name=None,
):
    """The lengths of a batch, and the batch, of examples between the same two of `bucket_boundaries`."""
    if not isinstance(bucket_boundaries, (list, tuple)):
        raise TypeError(f"bucket_boundaries must be a list or tuple, but received: {bucket_boundaries}")
    if not bucket_boundaries:
        raise ValueError("bucket_boundaries must not be empty")
    if not all(isinstance(one, int) for one in bucket_boundaries):
        raise TypeError(f"bucket boundaries must be integers, but saw: {bucket_boundaries}")
    if list(bucket_boundaries) != sorted(set(bucket_boundaries)):
        raise ValueError(f"Buckets must contain sequential increasing lengths, but saw: {bucket_boundaries}")
    parts = queues._as_tensor_list(tensors)
    with tf1.name_scope(name, "bucket_by_sequence_length", [input_length, *parts]):
        length = tf.convert_to_tensor(input_length, tf.int32)
        which = tf.reduce_sum(tf.cast(tf.constant(np.asarray(bucket_boundaries, np.int32)) <= length, tf.int32))
        _, (lengths, *found) = bucket(
            [length, *parts],
            which,
            batch_size,
            len(bucket_boundaries) + 1,
            num_threads,
            capacity,
            bucket_capacities,
            shapes and [tf.TensorShape([]), *shapes],
            dynamic_pad,
            allow_smaller_final_batch,
            keep_input,
            shared_name,
        )
        return lengths, queues._as_original_type(tensors, _only(found))
