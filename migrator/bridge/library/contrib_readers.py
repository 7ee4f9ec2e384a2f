"""What tf.contrib.learn.io read from files: examples in batches, through queues."""

from __future__ import annotations

import tensorflow as tf
import tensorflow.compat.v1 as tf1

_KEYS = "__key__"


def read_batch_examples(
    file_pattern,
    batch_size,
    reader,
    randomize_input=True,
    num_epochs=None,
    queue_capacity=10000,
    num_threads=1,
    read_batch_size=1,
    parse_fn=None,
    name=None,
    seed=None,
):
    """Batches of records of the files that match, as they are or as `parse_fn` makes them."""
    _, examples = read_keyed_batch_examples(
        file_pattern,
        batch_size,
        reader,
        randomize_input,
        num_epochs,
        queue_capacity,
        num_threads,
        read_batch_size,
        parse_fn,
        name,
        seed,
    )
    return examples


def read_keyed_batch_examples(
    file_pattern,
    batch_size,
    reader,
    randomize_input=True,
    num_epochs=None,
    queue_capacity=10000,
    num_threads=1,
    read_batch_size=1,
    parse_fn=None,
    name=None,
    seed=None,
):
    """The same with the keys of the records: file and place.

    Args:
        file_pattern: a pattern of paths, or a list of these.
        reader: what makes a reader of records, `tf.compat.v1.TFRecordReader` say.
        num_epochs: how often the files are read; the last batch may be smaller then. None: without end.
        num_threads: readers that work at once; only one keeps the order of the records.
        read_batch_size: records that a reader reads at once; `parse_fn` then gets several.
    """
    files = _files(file_pattern, randomize_input)
    _check_sizes(batch_size, queue_capacity, read_batch_size, num_threads, num_epochs)
    with tf1.name_scope(name, "read_batch_examples", [file_pattern]) as scope:
        with tf1.name_scope("file_name_queue") as of_names:
            names = tf.constant(files, name="input")
            names = tf1.train.string_input_producer(
                names, num_epochs=num_epochs, shuffle=randomize_input, seed=seed, name=of_names
            )
        with tf1.name_scope("read"):
            found = [_records(names, reader, read_batch_size, parse_fn) for _ in range(num_threads)]
        given = {
            "capacity": queue_capacity,
            "enqueue_many": read_batch_size > 1,
            "allow_smaller_final_batch": num_epochs is not None,
            "name": scope,
        }
        if not randomize_input:
            batches = tf1.train.batch_join(found, batch_size, **given)
        else:
            left = int(queue_capacity * 0.4)
            if not tf.is_tensor(batch_size):
                left = max(queue_capacity - 3 * batch_size, batch_size)
            batches = tf1.train.shuffle_batch_join(found, batch_size, min_after_dequeue=left, seed=seed, **given)
    if isinstance(batches, dict):
        return batches.pop(_KEYS), batches
    return batches


def read_batch_features(
    file_pattern,
    batch_size,
    features,
    reader,
    randomize_input=True,
    num_epochs=None,
    queue_capacity=10000,
    feature_queue_capacity=100,
    reader_num_threads=1,
    num_enqueue_threads=2,
    parse_fn=None,
    name=None,
    read_batch_size=None,
):
    """Batches of the features that tf.train.Example protos in the files hold: a dict of tensors."""
    _, found = read_keyed_batch_features(
        file_pattern,
        batch_size,
        features,
        reader,
        randomize_input,
        num_epochs,
        queue_capacity,
        reader_num_threads,
        feature_queue_capacity,
        num_enqueue_threads,
        parse_fn,
        name,
        read_batch_size,
    )
    return found


def read_keyed_batch_features(
    file_pattern,
    batch_size,
    features,
    reader,
    randomize_input=True,
    num_epochs=None,
    queue_capacity=10000,
    reader_num_threads=1,
    feature_queue_capacity=100,
    num_enqueue_threads=2,
    parse_fn=None,
    name=None,
    read_batch_size=None,
):
    """The same with the keys of the records."""
    with tf1.name_scope(name, "read_batch_features", [file_pattern]) as scope:
        keys, examples = read_keyed_batch_examples(
            file_pattern,
            batch_size,
            reader,
            randomize_input,
            num_epochs,
            queue_capacity,
            reader_num_threads,
            batch_size if read_batch_size is None else read_batch_size,
            parse_fn,
            scope,
        )
        parsed = tf1.parse_example(examples, features)
        return queue_parsed_features(parsed, keys, feature_queue_capacity, num_enqueue_threads, scope)


def read_batch_record_features(
    file_pattern,
    batch_size,
    features,
    randomize_input=True,
    num_epochs=None,
    queue_capacity=10000,
    reader_num_threads=1,
    name="dequeue_record_examples",
):
    """Batches of the features in TFRecord files."""
    return read_batch_features(
        file_pattern,
        batch_size,
        features,
        tf1.TFRecordReader,
        randomize_input,
        num_epochs,
        queue_capacity,
        reader_num_threads=reader_num_threads,
        name=name,
    )


def queue_parsed_features(parsed_features, keys=None, feature_queue_capacity=100, num_enqueue_threads=2, name=None):
    """A queue of batches that were parsed: the keys, and the features that come out of it.

    How full it is, of which TensorFlow 1 wrote a summary, is not told.
    """
    made = {name: parsed_features[name] for name in sorted(parsed_features)}
    if keys is not None:
        made = [made, keys]
    flat = tf.nest.flatten(made, expand_composites=True)
    with tf1.name_scope(name, "queue_parsed_features", flat):
        queue = tf1.FIFOQueue(feature_queue_capacity, [one.dtype for one in flat])
        fill = [queue.enqueue(flat) for _ in range(num_enqueue_threads)]
        ends = (tf.errors.OutOfRangeError, tf.errors.CancelledError)
        tf1.train.add_queue_runner(tf1.train.QueueRunner(queue, fill, queue_closed_exception_types=ends))
        taken = queue.dequeue()
        taken = taken if isinstance(taken, list) else [taken]
        for one, was in zip(taken, flat, strict=True):
            one.set_shape(was.shape)
    found = tf.nest.pack_sequence_as(made, taken, expand_composites=True)
    return (None, found) if keys is None else (found[1], found[0])


def _files(pattern, randomize_input):
    if isinstance(pattern, list) and not pattern:
        raise ValueError("No files given to dequeue_examples.")
    files = [path for one in (pattern if isinstance(pattern, list) else [pattern]) for path in tf.io.gfile.glob(one)]
    if not files:
        raise ValueError(f"No files match {pattern}.")
    return files if randomize_input else sorted(files)


def _check_sizes(batch_size, queue_capacity, read_batch_size, num_threads, num_epochs):
    if not queue_capacity or queue_capacity <= 0:
        raise ValueError(f"Invalid queue_capacity {queue_capacity}.")
    if batch_size is None or (not tf.is_tensor(batch_size) and not 0 < batch_size < queue_capacity):
        raise ValueError(f"Invalid batch_size {batch_size}, with queue_capacity {queue_capacity}.")
    if read_batch_size is None or (not tf.is_tensor(read_batch_size) and read_batch_size <= 0):
        raise ValueError(f"Invalid read_batch_size {read_batch_size}.")
    if not num_threads or num_threads <= 0:
        raise ValueError(f"Invalid num_threads {num_threads}.")
    if num_epochs is not None and num_epochs <= 0:
        raise ValueError(f"Invalid num_epochs {num_epochs}.")


def _records(names, reader, count, parse_fn):
    keys, records = reader().read_up_to(names, count) if count > 1 else reader().read(names)
    if parse_fn is None:
        return keys, records
    parsed = parse_fn(records)
    return {**parsed, _KEYS: keys} if isinstance(parsed, dict) else (keys, parsed)
