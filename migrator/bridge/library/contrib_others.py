"""Functions of tf.contrib.nn, framework, layers, data, lookup, distribute and learn.datasets."""

from __future__ import annotations

import collections
import csv
import errno
import itertools
import os
import time
import urllib.request

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from tensorflow.python.util import nest

from .mnist import load_mnist


def alpha_dropout(x, keep_prob, noise_shape=None, seed=None, name=None):
    """Dropout for SELUs: what is dropped gets their lowest value, and the mean and variance stay."""
    with tf1.name_scope(name, "alpha_dropout", [x]):
        x = tf.convert_to_tensor(x)
        if isinstance(keep_prob, (int, float)) and not 0 < keep_prob <= 1.0:
            raise ValueError(f"keep_prob must be a scalar tensor or a float in the range (0, 1], got {keep_prob}")
        keep_prob = tf.convert_to_tensor(keep_prob, x.dtype)
        if tf.get_static_value(keep_prob) == 1:
            return x
        lowest = -1.7580993408473766  # of SELUs
        drawn = tf1.random_uniform(tf.shape(x) if noise_shape is None else noise_shape, seed=seed, dtype=x.dtype)
        kept = tf.floor(keep_prob + drawn)
        scale = tf.math.rsqrt(keep_prob + tf.square(tf.cast(lowest, x.dtype)) * keep_prob * (1 - keep_prob))
        made = scale * (x * kept + lowest * (1 - kept)) - scale * lowest * (1 - keep_prob)
        made.set_shape(x.shape)
        return made


def scaled_softplus(x, alpha, clip=None, name=None):
    """`alpha * softplus(x / alpha)`, at most `clip`."""
    with tf1.name_scope(name, "scaled_softplus", [x, alpha]):
        x = tf.convert_to_tensor(x)
        alpha = tf.convert_to_tensor(alpha, x.dtype)
        made = alpha * tf.nn.softplus(x / alpha)
        return made if clip is None else tf.minimum(made, tf.cast(clip, made.dtype))


def flipped_sigmoid_cross_entropy(logits, targets, name=None):
    """Logits before labels."""
    return tf1.nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name=name)


def flipped_softmax_cross_entropy(logits, labels, dim=-1, name=None):
    """Logits before labels."""
    return tf1.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits, dim=dim, name=name)


def flipped_sparse_softmax_cross_entropy(logits, labels, name=None):
    """Logits before labels."""
    return tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name=name)


def smart_constant_value(pred):
    """Whether a predicate is known to be true, or false, before the graph runs; None if it is not."""
    if isinstance(pred, bool) or (isinstance(pred, int) and pred in (0, 1)):
        return bool(pred)
    if not tf.is_tensor(pred):
        raise TypeError(f"`pred` must be a Tensor, or a Python bool, or 1 or 0. Found instead: {type(pred)}")
    known = tf.get_static_value(pred)
    return None if known is None else bool(known)


def smart_cond(pred, true_fn=None, false_fn=None, name=None):
    """A branch by itself where it is known which; else a `tf.cond` of both."""
    if not callable(true_fn) or not callable(false_fn):
        raise TypeError("`true_fn` and `false_fn` must be callable.")
    if isinstance(pred, tf.Variable):
        return tf1.cond(pred, true_fn, false_fn, name=name)
    known = smart_constant_value(pred)
    return tf1.cond(pred, true_fn, false_fn, name=name) if known is None else true_fn() if known else false_fn()


def contrib_py_func(func, args=(), kwargs=None, output_types=None, output_shapes=None, stateful=True, name=None):
    """Calls a Python function with nested arguments, and gives its nested results their shapes."""
    given = tf.nest.map_structure(tf.convert_to_tensor, (list(args), dict(kwargs or {})))
    types = tf.nest.flatten(output_types)
    shapes = [None] * len(types)
    if output_shapes is not None:
        shapes = nest.flatten_up_to(output_types, output_shapes)

    def call(*values):
        positional, named = tf.nest.pack_sequence_as(given, values)
        made = func(*positional, **named)
        return [] if output_types is None else tf.nest.flatten(made)

    made = tf1.py_func(call, tf.nest.flatten(given), types, stateful, name)
    if output_types is None:
        return made
    for one, shape in zip(made, shapes, strict=True):
        one.set_shape(tf.TensorShape(shape))
    return tf.nest.pack_sequence_as(output_types, made)


def safe_embedding_lookup_sparse(
    embedding_weights,
    sparse_ids,
    sparse_weights=None,
    combiner=None,
    default_id=None,
    name=None,
    partition_strategy="div",
    max_norm=None,
):
    """The embeddings of sets of ids, combined; empty sets have that of `default_id`, or zeros."""
    return tf1.nn.safe_embedding_lookup_sparse(
        embedding_weights,
        sparse_ids,
        sparse_weights,
        combiner or "mean",
        default_id,
        name,
        partition_strategy,
        max_norm,
    )


def padded_batch_and_drop_remainder(batch_size, padded_shapes, padding_values=None):
    """For `dataset.apply`: padded batches of just this size."""
    return lambda dataset: dataset.padded_batch(batch_size, padded_shapes, padding_values, drop_remainder=True)


def sloppy_interleave(map_func, cycle_length, block_length=1):
    """For `dataset.apply`: elements of several datasets, in the order in which they come."""
    return tf.data.experimental.parallel_interleave(map_func, cycle_length, block_length, sloppy=True)


def mutable_hash_table(key_dtype, value_dtype, default_value, *args, **kwargs):
    """The table that tf.contrib.lookup.MutableHashTable made."""
    kwargs.pop("shared_name", None)
    return tf.lookup.experimental.MutableHashTable(key_dtype, value_dtype, default_value, *args, **kwargs)


class PrivateThreadPool:
    """Threads of a dataset's own, for `override_threadpool`. The name for traces has no counterpart."""

    def __init__(self, num_threads, display_name=None, max_intra_op_parallelism=1):
        self.num_threads, self.max_intra_op_parallelism = num_threads, max_intra_op_parallelism


def override_threadpool(dataset, thread_pool):
    """A dataset whose functions run on threads of its own."""
    options = tf.data.Options()
    options.threading.private_threadpool_size = thread_pool.num_threads
    options.threading.max_intra_op_parallelism = thread_pool.max_intra_op_parallelism
    return dataset.with_options(options)


class DistributeConfig(
    collections.namedtuple("DistributeConfig", ("train_distribute", "eval_distribute", "remote_cluster"))
):
    """The strategies of a RunConfig, as `experimental_distribute` of it takes them."""

    def __new__(cls, train_distribute=None, eval_distribute=None, remote_cluster=None):
        return super().__new__(cls, train_distribute, eval_distribute, remote_cluster)


def collective_strategy(num_gpus_per_worker=0, communication=None):
    """The strategy that tf.contrib.distribute.CollectiveAllReduceStrategy made."""
    tf.config.set_visible_devices(tf.config.list_physical_devices("GPU")[:num_gpus_per_worker], "GPU")
    made = tf1.distribute.experimental.MultiWorkerMirroredStrategy
    return made() if communication is None else made(communication)


class Dataset(collections.namedtuple("Dataset", ("data", "target"))):
    """Examples and what they are: two arrays."""


# Fisher's measurements of 150 irises, 50 of each kind, in millimetres: length and width of sepals and petals.
_IRISES = """\
5135140249301402473213024631150250361402543917044634140350341502442914024931150154371502483416024830140143301101
5840120257441504543913045135140357381703513815035434170251371504463610025133170548341902503016025034160452351502
5234140247321602483116025434150452411501554214024931150150321202553513024931150144301302513415025035130345231303
4432130250351606513819044830140351381602463214025337150250331402703247146432451569314915552340136528461557284513
6333471649243310662946135227391450203510593042156022401061294714562936136731441456304515582741106222451556253911
5932481861284013632549156128471264294313663044146828481467305017602945155726351055243811552437105827391260275116
5430451560344516673147156323441356304113552540135526441261304614582640125023331056274213573042125729421362294313
5125301157284113633360255827511971305921632956186530582276306621492545177329631867255818723661256532512064275319
6830552157255020582851246432532365305518773867227726692360225015693257235628492077286720632749186733572172326018
6228481861304918642856217230581674286119793864206428562263285115612656147730612363345624643155186030481869315421
67315624693151235827511968325923673357256730522363255019653052206234542359305118"""


def load_iris(data_path=None):
    """Fisher's irises."""
    if data_path is not None:
        return load_csv_with_header(data_path, np.int64, np.float64)
    digits = _IRISES.replace("\n", "")
    data = np.array([int(digits[place : place + 2]) for place in range(0, len(digits), 2)]).reshape(150, 4) / 10.0
    return Dataset(data, np.repeat(np.arange(3, dtype=np.int64), 50))


def load_dataset(name, size="small", test_with_fake_data=False):
    """Examples that TensorFlow 1 came with."""
    if name == "iris":
        return load_iris()
    if name == "mnist":
        return load_mnist()
    if name not in ("boston", "dbpedia"):
        raise ValueError(f"Name of dataset is not found: {name}")
    instead = {
        "boston": "tf.keras.datasets.boston_housing has it in two parts",
        "dbpedia": "download it",
    }
    raise ValueError(
        f"TensorFlow 2 does not come with the dataset {name}: {instead[name]}, or read a file of your own."
    )


def load_csv_with_header(filename, target_dtype, features_dtype, target_column=-1):
    """A file whose first line says how many examples and features it has."""
    with tf1.gfile.Open(filename) as file:
        rows = csv.reader(file)
        samples, features = (int(one) for one in next(rows)[:2])
        data, target = np.zeros((samples, features), features_dtype), np.zeros((samples,), target_dtype)
        for number, row in enumerate(rows):
            target[number] = np.asarray(row.pop(target_column), target_dtype)
            data[number] = np.asarray(row, features_dtype)
    return Dataset(data, target)


def load_csv_without_header(filename, target_dtype, features_dtype, target_column=-1):
    """A file of examples alone."""
    data, target = [], []
    with tf1.gfile.Open(filename) as file:
        for row in csv.reader(file):
            target.append(row.pop(target_column))
            data.append(np.asarray(row, features_dtype))
    return Dataset(np.array(data), np.array(target, target_dtype).astype(target_dtype))


def shrink_csv(filename, ratio):
    """Writes every so-manieth row of a file to a second one, whose name ends in `_small`."""
    with tf1.gfile.Open(filename) as whole, tf1.gfile.Open(filename.replace(".", "_small."), "w") as part:
        csv.writer(part).writerows(itertools.islice(csv.reader(whole), 0, None, ratio))


def urlretrieve_with_retry(url, filename=None):
    """Downloads a file, after a lost connection up to five times again; returns its name and headers."""
    for delay in (1, 2, 4, 8, 16):
        try:
            return urllib.request.urlretrieve(url, filename)
        except OSError as error:
            if error.errno != errno.ETIMEDOUT:
                raise
            time.sleep(delay)
    return urllib.request.urlretrieve(url, filename)


def maybe_download(filename, work_directory, source_url):
    """The path of a file in a folder, which is downloaded where it is not there."""
    tf1.gfile.MakeDirs(work_directory)
    path = os.path.join(work_directory, filename)
    if not tf1.gfile.Exists(path):
        downloaded, _ = urlretrieve_with_retry(source_url)
        tf1.gfile.Copy(downloaded, path)
        print("Successfully downloaded", filename, tf1.gfile.Stat(path).length, "bytes.")
    return path


LOSS_METRIC_KEY = "loss"
AVERAGE_LOSS_METRIC_KEY = "average_loss"
