"""Processes that train in step: each with a model and data of its own, whose gradients are averaged.

TF_CONFIG names the processes (a chief, if there is one, and the workers). What they tell each other is sent by the
collective operations of MultiWorkerMirroredStrategy.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import zlib
from typing import ClassVar

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from .eager import eagerly
from .graph import _outside_of_graphs


class ThisWorker:
    """What this process is among the workers: alone, until `start_worker` has read TF_CONFIG."""

    started = False
    rank, count = 0, 1
    local_rank, local_count = 0, 1  # among the workers of this machine
    server = None  # what sends values: the strategy, or the server of a program with sessions of its own
    exchanges: ClassVar = {}  # how often values were exchanged eagerly, by what they are called


def start_worker(*_, **__):
    """Makes this process the one of the workers that TF_CONFIG says it is; without TF_CONFIG it is alone.

    From here on the process is one of its own to all others that read TF_CONFIG: it trains, evaluates and saves its
    own model. Raises ValueError for a task that is no worker.
    """
    if ThisWorker.started:
        return
    ThisWorker.started = True
    told = json.loads(os.environ.pop("TF_CONFIG", None) or "{}")
    cluster, task = told.get("cluster") or {}, told.get("task") or {}
    jobs = [job for job in ("chief", "master", "worker") if cluster.get(job)]
    addresses = [address for job in jobs for address in cluster[job]]
    if len(addresses) < 2:
        return
    if task.get("type") not in jobs:
        raise ValueError(f"Workers that train in step are the chief and the workers of TF_CONFIG, not {task}.")
    rank = sum(len(cluster[job]) for job in jobs[: jobs.index(task["type"])]) + int(task.get("index", 0))
    hosts = [address.rpartition(":")[0] for address in addresses]
    ThisWorker.rank, ThisWorker.count = rank, len(addresses)
    ThisWorker.local_rank, ThisWorker.local_count = hosts[:rank].count(hosts[rank]), hosts.count(hosts[rank])
    workers = tf.train.ClusterSpec({"worker": addresses})
    if _outside_of_graphs(tf.executing_eagerly):
        gpus = tf.config.list_physical_devices("GPU")
        if len(gpus) >= ThisWorker.local_count > 1:  # one for each process
            tf.config.set_visible_devices(gpus[ThisWorker.local_rank], "GPU")
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(workers, "", "worker", rank, rpc_layer="grpc")
        ThisWorker.server = eagerly(tf.distribute.MultiWorkerMirroredStrategy)(resolver)
    else:
        ThisWorker.server = tf1.train.Server(workers, "worker", rank, config=_on_this_worker(None))
        for kind in (tf1.Session, tf1.InteractiveSession):
            kind.__init__ = _on_server(kind.__init__, ThisWorker.server.target)
    atexit.register(stop_worker)


def _on_server(make, target):
    """How a session is made that runs on the server of this worker, unless it names another."""

    def make_session(session, other="", graph=None, config=None, **others):
        if other:
            make(session, other, graph, config, **others)
        else:
            make(session, target, graph, _on_this_worker(config), **others)

    return make_session


def _on_this_worker(config):
    """The settings of a session of this worker, which sees its own devices, and has variables of its own."""
    new = tf1.ConfigProto()
    if config is not None:
        new.CopyFrom(config)
    elif ThisWorker.local_count > 1:
        new.gpu_options.visible_device_list = str(ThisWorker.local_rank)
    new.experimental.collective_group_leader = "/job:worker/replica:0/task:0"
    new.device_filters.append(f"/job:worker/task:{ThisWorker.rank}")
    new.isolate_session_state = True
    return new


def stop_worker():
    """Waits for the other workers before this one ends: those that still compute would fail without it."""
    server, ThisWorker.server = ThisWorker.server, None
    if server is None or hasattr(sys, "last_type"):  # a worker that failed is not waited for
        return
    if isinstance(server, tf1.train.Server):
        with tf1.Graph().as_default(), tf1.Session() as session:
            session.run(_sum_over_workers(tf.constant(1.0), "end"))
    else:
        eagerly(lambda: _sum_over_workers(tf.constant(1.0), "end"))()


def is_worker_started():
    """Whether `start_worker` was called."""
    return ThisWorker.started


def worker_rank():
    """The number of this process: the chief is 0."""
    return ThisWorker.rank


def worker_count():
    """How many processes train in step."""
    return ThisWorker.count


def worker_local_rank():
    """The number of this process among those of its machine."""
    return ThisWorker.local_rank


def worker_local_count():
    """How many of the processes are on this machine."""
    return ThisWorker.local_count


def always_built(*_):
    """Workers talk by TensorFlow's own operations, which are always there."""
    return True


#: How the values of workers are put together.
SUM_OF_WORKERS = "Sum"
MEAN_OF_WORKERS = "Average"


class Compression:
    """What values are sent as."""

    none = None
    fp16 = tf.float16


def _name_of(tensor):
    """What all workers call a tensor, if they build the same graph."""
    return "eager" if tf.executing_eagerly() else tensor.op.name


def _sum_over_workers(tensor, name):
    """The sum of a tensor of all workers, who know it by its name and by how often that was used before."""
    taken = ThisWorker.exchanges
    if not tf.executing_eagerly():
        taken = tf1.get_collection_ref("exchanges_of_workers") or [{}]
        tf1.get_collection_ref("exchanges_of_workers")[:] = taken
        taken = taken[0]
    taken[name] = taken.get(name, 0) + 1
    key = f"{name} {taken[name]}"
    if tensor.shape.is_fully_defined():
        number = zlib.crc32(key.encode()) & 0x7FFFFFFF
    else:  # under one number all have to have one shape, in all steps
        with tf.device("/cpu:0"):
            text = tf.strings.join([key, tf.strings.reduce_join(tf.strings.as_string(tf.shape(tensor)), separator=" ")])
            number = tf.cast(tf.strings.to_hash_bucket_fast(text, 0x7FFFFFFF), tf.int32)
    return tf.raw_ops.CollectiveReduceV2(
        input=tensor,
        group_size=ThisWorker.count,
        group_key=1,
        instance_key=number,
        ordering_token=[],
        merge_op="Add",
        final_op="Id",
    )


def _put_together(total, op, average=None):
    """The sum over all workers, or the mean."""
    if op not in (None, SUM_OF_WORKERS, MEAN_OF_WORKERS):
        raise ValueError(f"Values of workers are averaged or summed up; got {op}.")
    if op == SUM_OF_WORKERS or (op is None and average is False):
        return total
    return total / ThisWorker.count if total.dtype.is_floating else total // ThisWorker.count


def all_reduce(tensor, average=None, device_dense="", device_sparse="", compression=None, op=None, name=None):
    """The mean of a tensor over all workers, or its sum; the rows of IndexedSlices are those of all workers."""
    del device_dense, device_sparse
    if isinstance(tensor, tf.IndexedSlices):
        values, indices = all_gather(tensor.values), all_gather(tensor.indices)
        return tf.IndexedSlices(_put_together(values, op, average), indices, tensor.dense_shape)
    tensor = tf.convert_to_tensor(tensor)
    if ThisWorker.count == 1:
        return _put_together(tf.identity(tensor), op, average)
    sent = tf.cast(tensor, compression) if compression is not None and tensor.dtype.is_floating else tensor
    return _put_together(tf.cast(_sum_over_workers(sent, name or _name_of(tensor)), tensor.dtype), op, average)


def all_gather(tensor, name=None):
    """The tensors of all workers, one after another along their first axis, in which they may differ."""
    tensor = tf.convert_to_tensor(tensor)
    if ThisWorker.count == 1:
        return tf.identity(tensor)
    name = name or _name_of(tensor)
    shape = tf1.shape(tensor, out_type=tf.int64)
    counts = _sum_over_workers(tf.one_hot(ThisWorker.rank, ThisWorker.count, dtype=tf.int64) * shape[0], f"{name}/rows")
    before = tf.reduce_sum(counts[: ThisWorker.rank])
    after = tf.reduce_sum(counts[ThisWorker.rank + 1 :])
    around = [[before, after], *([0, 0] for _ in tensor.shape[1:])]
    rows = _sum_over_workers(tf.pad(_as_number(tensor), around), name)  # each row is one worker's
    rows.set_shape([None, *tensor.shape[1:]])
    return tf.cast(rows, tensor.dtype)


def broadcast_from(tensor, root_rank, name=None):
    """The tensor of one of the workers, at all of them."""
    tensor = tf.convert_to_tensor(tensor)
    if ThisWorker.count == 1:
        return tf.identity(tensor)
    own = _as_number(tensor)
    sent = own if ThisWorker.rank == root_rank else tf.zeros_like(own)
    return tf.cast(_sum_over_workers(sent, name or _name_of(tensor)), tensor.dtype)


def _as_number(tensor):
    return tf.cast(tensor, tf.int32) if tensor.dtype == tf.bool else tensor


def broadcast_variables(variables, root_rank):
    """Gives variables the values that they have at one of the workers."""
    updates = []
    for variable in variables if ThisWorker.count > 1 else ():
        if variable.dtype.base_dtype != tf.string:
            value = broadcast_from(variable.read_value(), root_rank, f"broadcast/{variable.name}")
            updates.append(variable.assign(value))
    return None if tf.executing_eagerly() else tf.group(*updates)


def broadcast_global_variables(root_rank):
    """Gives all global variables the values that they have at one of the workers."""
    return broadcast_variables(tf1.global_variables(), root_rank)


class BroadcastVariablesHook(tf1.train.SessionRunHook):
    """Lets all workers begin with the variables of one of them, be they new or from a checkpoint."""

    def __init__(self, root_rank, device=""):
        del device
        self._root_rank = root_rank
        self._update = None

    def begin(self):
        """Adds the operation, once for each graph."""
        if self._update is None or self._update.graph is not tf1.get_default_graph():
            self._update = broadcast_global_variables(self._root_rank)

    def after_create_session(self, session, coord):
        """Runs it."""
        session.run(self._update)


class DistributedOptimizer(tf1.train.Optimizer):
    """An optimizer whose gradients are the means over all workers."""

    def __init__(
        self,
        optimizer,
        name=None,
        use_locking=False,
        device_dense="",
        device_sparse="",
        compression=None,
        sparse_as_dense=False,
        backward_passes_per_step=1,
        op=MEAN_OF_WORKERS,
        gradient_predivide_factor=1.0,
    ):
        del device_dense, device_sparse
        if backward_passes_per_step != 1 or gradient_predivide_factor != 1.0:
            raise ValueError("Gradients are averaged in every step, and divided by nothing else.")
        super().__init__(use_locking, name or f"Distributed{type(optimizer).__name__}")
        self._optimizer = optimizer
        self._compression = compression
        self._sparse_as_dense = sparse_as_dense
        self._op = op

    def compute_gradients(self, *args, **kwargs):
        """The optimizer's own, of all workers."""
        found = self._optimizer.compute_gradients(*args, **kwargs)
        if ThisWorker.count == 1:
            return found
        if self._sparse_as_dense:
            found = [(None if one is None else tf.convert_to_tensor(one), variable) for one, variable in found]
        dense = self._dense_over_workers([one for one, _ in found if isinstance(one, tf.Tensor)])
        before = list(dense.values())[-1:]
        result = []
        for one, variable in found:
            if isinstance(one, tf.IndexedSlices):
                with tf1.control_dependencies(before):  # in one order at all workers
                    new = all_reduce(one, op=self._op)
                before = [new.values]
            else:
                new = None if one is None else dense[id(one)]
            result.append((new, variable))
        return result

    def _dense_over_workers(self, gradients):
        """By the id of each gradient; all of one type are sent at once."""
        result = {}
        for dtype in dict.fromkeys(one.dtype for one in gradients):
            some = [one for one in gradients if one.dtype == dtype]
            sent = tf.concat([tf.reshape(one, [-1]) for one in some], 0)
            total = all_reduce(sent, compression=self._compression, op=self._op, name=f"gradients/{dtype.name}")
            parts = tf.split(total, tf.stack([tf.size(one) for one in some]), num=len(some))
            for one, part in zip(some, parts, strict=True):
                result[id(one)] = tf.ensure_shape(tf.reshape(part, tf.shape(one)), one.shape)
        return result

    def apply_gradients(self, *args, **kwargs):
        """The optimizer's own."""
        return self._optimizer.apply_gradients(*args, **kwargs)

    def get_slot(self, *args, **kwargs):
        """The optimizer's own."""
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args, **kwargs):
        """The optimizer's own."""
        return self._optimizer.get_slot_names(*args, **kwargs)

    def variables(self, *args, **kwargs):
        """The optimizer's own."""
        return self._optimizer.variables(*args, **kwargs)


# A class that takes a name of this file for its own sees only what a module holds: other names for these.
_broadcast_variables = broadcast_variables
_broadcast_global_variables = broadcast_global_variables
_Optimizer = DistributedOptimizer
_Compression = Compression


class AllWorkers:
    """The workers as one value, for code that is handed it, under the names that such code was written for."""

    init = staticmethod(start_worker)
    shutdown = staticmethod(stop_worker)
    is_initialized = staticmethod(is_worker_started)
    rank = staticmethod(worker_rank)
    size = staticmethod(worker_count)
    local_rank = staticmethod(worker_local_rank)
    local_size = staticmethod(worker_local_count)
    mpi_built = mpi_enabled = mpi_threads_supported = staticmethod(always_built)
    gloo_built = gloo_enabled = nccl_built = staticmethod(always_built)
    allreduce = staticmethod(all_reduce)
    allgather = staticmethod(all_gather)
    broadcast = staticmethod(broadcast_from)
    broadcast_variables = staticmethod(_broadcast_variables)
    broadcast_global_variables = staticmethod(_broadcast_global_variables)
    BroadcastGlobalVariablesHook = BroadcastVariablesHook
    DistributedOptimizer = _Optimizer
    Compression = _Compression
    Average, Sum = MEAN_OF_WORKERS, SUM_OF_WORKERS
