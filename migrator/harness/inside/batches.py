"""Batches on disk: a vector of serialized tensors whose first element is a JSON header.

The same form is written by a hook (original), by ops inside a train step (migrated, also on remote workers)
and read by ops of an input pipeline.
"""

import importlib
import json
import os

ROOTS = ("features", "labels", "weights")
# Whole batches are kept for replay up to this many bytes for each task; digests tell the later ones apart.
KEPT_BYTES = 1 << 28
_BUCKETS = (1 << 63) - 1
_KEY = [0x74662D6D6967, 0x72617465]


def limit(plan):
    """How many bytes of whole batches this task keeps."""
    return KEPT_BYTES if plan.get("keep_batches", True) else 0


def _walk(tf, path, value):
    """(path, tensor or spec) pairs in the order of tf.nest.flatten with composites expanded."""
    if value is None:
        return []
    if isinstance(value, dict):
        items = [(key, value[key]) for key in sorted(value)]
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        items = list(zip(value._fields, value))
    elif isinstance(value, (list, tuple)):
        items = list(enumerate(value))
    else:
        flat = tf.nest.flatten(value, expand_composites=True)
        if len(flat) == 1:
            return [(path, flat[0])]
        return [("%s/%d" % (path, place), leaf) for place, leaf in enumerate(flat)]
    return [pair for key, item in items for pair in _walk(tf, "%s/%s" % (path, key), item)]


def leaves(tf, data):
    """(path, tensor) pairs of a batch (features[, labels[, weights]]); paths such as "features/x". What a step of the
    program's own takes besides is "more/0" and so on.
    """
    data = data if isinstance(data, tuple) and not hasattr(data, "_fields") else (data,)
    roots = ROOTS + tuple("more/%d" % place for place in range(len(data) - len(ROOTS)))
    return [pair for root, value in zip(roots, data) for pair in _walk(tf, root, value)]


def pack(tf, header, tensors):
    """A scalar string tensor that holds a JSON-able header and the tensors."""
    return pack_serialized(tf, header, [tf.io.serialize_tensor(tensor) for tensor in tensors])


def pack_serialized(tf, header, strings):
    """As ``pack``, of tensors that are serialized already."""
    text = tf.constant(json.dumps(header, sort_keys=True))
    return tf.io.serialize_tensor(tf.stack([text, *strings]))


def pack_batch(tf, data, sizes=None):
    """A batch as one string tensor; ``sizes`` says how many of the examples each of several replicas has."""
    pairs = [(path, tf.convert_to_tensor(leaf)) for path, leaf in leaves(tf, data)]
    header = {"paths": [path for path, _ in pairs], "dtypes": [leaf.dtype.name for _, leaf in pairs]}
    return pack(tf, header, [leaf for _, leaf in pairs] + ([] if sizes is None else [sizes]))


def describe(tf, data):
    """What tells a batch from any other: (header, tensors) with a digest and the shape of each component."""
    pairs = [(path, tf.convert_to_tensor(leaf)) for path, leaf in leaves(tf, data)]
    header = {"paths": [path for path, _ in pairs], "dtypes": [leaf.dtype.name for _, leaf in pairs]}
    if not pairs:
        return header, []
    # A strong hash, the same in every version of TensorFlow, and computed where the batch is.
    content = tf.stack([tf.io.serialize_tensor(leaf) for _, leaf in pairs])
    digests = tf.strings.to_hash_bucket_strong(content, _BUCKETS, _KEY)
    return header, [digests] + [tf.shape(leaf, out_type=tf.int64) for _, leaf in pairs]


def _read(path):
    """Header and shapes of a batch file."""
    tensor_pb2 = importlib.import_module("tensorflow.core.framework.tensor_pb2")
    with open(path, "rb") as stream:
        vector = tensor_pb2.TensorProto.FromString(stream.read()).string_val
    shapes = []
    for serialized in vector[1:]:
        proto = tensor_pb2.TensorProto.FromString(serialized)
        shapes.append([dimension.size for dimension in proto.tensor_shape.dim])
    return json.loads(vector[0].decode("utf-8")), shapes


def count(folder):
    """How many batches a recorded task has."""
    return len([name for name in os.listdir(folder) if name.isdigit()])


def match(header, wanted):
    """For each wanted leaf the place of the recorded component; RuntimeError when the two batches are not
    alike.
    """
    recorded = header["paths"]
    names = [path for path, _ in wanted]
    if len(recorded) > len(wanted):
        # A weight for each example that Keras makes of `class_weight`, behind what the program gives it.
        recorded = [path for path in recorded if path in names or not path.startswith("weights")]
    if len(recorded) != len(wanted):
        raise RuntimeError(
            "cannot replay: the recorded batch has components %s, this program's has %s" % (header["paths"], names)
        )
    order = names if sorted(names) == sorted(recorded) else recorded
    places = [header["paths"].index(path) for path in order]
    for (path, leaf), place in zip(wanted, places):
        if leaf.dtype.base_dtype.name != header["dtypes"][place]:
            raise RuntimeError(
                "cannot replay: component %s has dtype %s here and %s in the recording"
                % (path, leaf.dtype.base_dtype.name, header["dtypes"][place])
            )
    return places


def _apart(tf, files, folder, spec, replicas):
    """The batch of each replica on its own, from files that hold those of all of them."""
    wanted = leaves(tf, spec)
    header = _read(os.path.join(folder, min(name for name in os.listdir(folder) if name.isdigit())))[0]
    places = match(header, wanted)
    if len(wanted) != len(tf.nest.flatten(spec)):
        raise RuntimeError("cannot replay: sparse batches of several replicas are recorded as one")

    def parse(name):
        vector = tf.io.parse_tensor(tf.io.read_file(name), tf.string)
        sizes = tf.io.parse_tensor(vector[1 + len(header["paths"])], tf.int64)
        columns = []
        for (_, leaf), place in zip(wanted, places):
            tensor = tf.io.parse_tensor(vector[1 + place], leaf.dtype.base_dtype)
            shape = tf.TensorShape(leaf.shape)
            pieces = [tensor] * replicas if shape.ndims == 0 else tf.split(tensor, sizes, num=replicas)
            for piece in pieces:
                piece.set_shape(shape)
            columns.append(pieces)
        own = [tf.nest.pack_sequence_as(spec, list(row)) for row in zip(*columns)]
        dataset = tf.data.Dataset.from_tensors(own[0])
        for element in own[1:]:
            dataset = dataset.concatenate(tf.data.Dataset.from_tensors(element))
        return dataset

    return files.flat_map(parse)


def replay_reader(tf, folder, spec):
    """A function that reads a recorded batch of one task from a file, with the element structure ``spec``.

    ``folder`` is looked at now, the files are read when the function's operations run. A static size of the first axis
    is kept only where every recorded batch has it.
    """
    names = sorted(name for name in os.listdir(folder) if name.isdigit())
    contents = [_read(os.path.join(folder, name)) for name in names]
    header = contents[0][0]
    wanted = leaves(tf, spec)
    places = match(header, wanted)
    shapes = []
    for (path, leaf), place in zip(wanted, places):
        recorded = [one[place] for _, one in contents]
        shape = tf.TensorShape(leaf.shape)
        if shape.ndims is not None:
            dims = shape.as_list()
            if dims and any(not one or one[0] != dims[0] for one in recorded):
                dims[0] = None
            shape = tf.TensorShape(dims)
        for one in recorded:
            if not shape.is_compatible_with(one):
                raise RuntimeError(
                    "cannot replay: component %s has shape %s here and %s in the recording" % (path, leaf.shape, one)
                )
        shapes.append(shape)

    def parse(name):
        vector = tf.io.parse_tensor(tf.io.read_file(name), tf.string)
        flat = []
        for (_, leaf), place, shape in zip(wanted, places, shapes):
            tensor = tf.io.parse_tensor(vector[1 + place], leaf.dtype.base_dtype)
            tensor.set_shape(shape)
            flat.append(tensor)
        return tf.nest.pack_sequence_as(spec, flat, expand_composites=True)

    return parse


def replay_sizes(tf, folder, replicas):
    """A function that reads from a file of a recorded batch how many of its examples each of so many ``replicas`` had;
    they divide them evenly, the first ones more, where that is not known.
    """
    names = sorted(name for name in os.listdir(folder) if name.isdigit())
    components = len(_read(os.path.join(folder, names[0]))[0]["paths"])

    def read(name, count):
        vector = tf.io.parse_tensor(tf.io.read_file(name), tf.string)
        size = -(-count // replicas)
        ends = tf.minimum(size * tf.range(replicas + 1, dtype=tf.int64), count)
        even = ends[1:] - ends[:-1]

        def recorded():
            sizes = tf.io.parse_tensor(vector[1 + components], tf.int64)
            return tf.cond(tf.equal(tf.size(sizes), replicas), lambda: tf.ensure_shape(sizes, [replicas]), lambda: even)

        return tf.cond(tf.size(vector) > 1 + components, recorded, lambda: even)

    return read


def replay_dataset(tf, folder, spec, read_from=None, skip=0, take=None, repeat=False, replicas=1):
    """A dataset of the recorded batches of one task, in order, with the element structure ``spec``.

    ``folder`` is looked at now, ``read_from`` (default the same) is read when the pipeline runs, perhaps in
    another process; ``skip`` may be a tensor, also evaluated there. With several ``replicas`` each element is the
    batch of one of them.
    """
    parse = replay_reader(tf, folder, spec)
    files = tf.data.Dataset.list_files((read_from or folder) + "/*[0-9]", shuffle=False)
    if not isinstance(skip, int) or skip:
        files = files.skip(skip)
    if take is not None:
        files = files.take(take)
    dataset = files.map(parse)
    if replicas > 1:
        dataset = _apart(tf, files, folder, spec, replicas)
    return dataset.repeat() if repeat else dataset
