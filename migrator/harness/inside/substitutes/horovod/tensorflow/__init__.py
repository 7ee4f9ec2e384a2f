"""A stand-in for ``horovod.tensorflow``: what programs of TensorFlow 1 use of it, over sockets, for a few processes.

The processes are the workers of TF_CONFIG, which is out of the way from ``init()`` on. Rank 0 has a server at its
address: it adds up what all send under one name, in the order of their ranks, and sends the sum to all. It knows
nothing of TensorFlow's own collective operations, by which new programs do the same.
"""

import collections
import json
import os
import pickle
import socket
import struct
import threading
import time

import numpy as np
import tensorflow.compat.v1 as tf

Average, Sum = "Average", "Sum"


class Compression:
    """What tensors are sent as."""

    none = None
    fp16 = "float16"


class _World:
    rank, size, local_rank, local_size = 0, 1, 0, 1
    started = False
    server = None
    exchanges = {}  # noqa: RUF012 (Python 3.7 has ClassVar, but this is one object)
    lock = threading.Lock()


def init(*_, **__):
    """Makes this process the worker that TF_CONFIG says it is."""
    if _World.started:
        return
    _World.started = True
    told = json.loads(os.environ.pop("TF_CONFIG", None) or "{}")
    cluster, task = told.get("cluster") or {}, told.get("task") or {}
    jobs = [job for job in ("chief", "master", "worker") if cluster.get(job)]
    addresses = [address for job in jobs for address in cluster[job]]
    if len(addresses) < 2:
        return
    rank = sum(len(cluster[job]) for job in jobs[: jobs.index(task["type"])]) + int(task.get("index", 0))
    hosts = [address.rpartition(":")[0] for address in addresses]
    _World.rank, _World.size = rank, len(addresses)
    _World.local_rank, _World.local_size = hosts[:rank].count(hosts[rank]), hosts.count(hosts[rank])
    host, _, port = addresses[0].rpartition(":")
    if rank == 0:
        _serve(host, int(port))
    _World.server = host, int(port)


def shutdown():
    """Nothing: the connections end with the process."""


def is_initialized():
    """Whether ``init`` was called."""
    return _World.started


def rank():
    """The number of this process."""
    return _World.rank


def size():
    """How many processes there are."""
    return _World.size


def local_rank():
    """The number of this process among those of its machine."""
    return _World.local_rank


def local_size():
    """How many of the processes are on this machine."""
    return _World.local_size


def mpi_threads_supported():
    """As with MPI that was built with threads."""
    return True


# -- what is sent --


def _send(connection, value):
    data = pickle.dumps(value, 4)
    connection.sendall(struct.pack("!Q", len(data)) + data)


def _receive(connection):
    return pickle.loads(_bytes(connection, struct.unpack("!Q", _bytes(connection, 8))[0]))


def _bytes(connection, count):
    found = b""
    while len(found) < count:
        part = connection.recv(min(count - len(found), 1 << 20))
        if not part:
            raise ConnectionError("another process of the stand-in for Horovod has ended")
        found += part
    return found


def _connect(host, port):
    until = time.time() + 120
    while True:
        try:
            connection = socket.create_connection((host, port))
        except OSError:
            if time.time() > until:
                raise
            time.sleep(0.1)
        else:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection


def _serve(host, port):
    listening = socket.create_server((host, port), backlog=100)
    threading.Thread(target=_answer, args=(listening, _World.size), daemon=True).start()


def _answer(listening, count):
    """Adds up what all processes send under one name, as soon as all have sent it."""
    waiting = collections.defaultdict(dict)  # of each name, what each process has sent, and its connection
    while True:
        connection, _ = listening.accept()
        name, rank, arrays, kind = _receive(connection)
        asked = waiting[name]
        asked[rank] = arrays, connection
        if len(asked) < count:
            continue
        del waiting[name]
        parts = list(zip(*[asked[one][0] for one in range(count)]))
        result = [np.concatenate(one, 0) if kind == "gather" else sum(one[1:], one[0]) for one in parts]
        for _, connection in [asked[one] for one in reversed(range(count))]:  # this process last: it may end then
            _send(connection, result)
            connection.close()


def _exchange(name, arrays, kind="sum"):
    with _World.lock:
        number = _World.exchanges[name] = _World.exchanges.get(name, 0) + 1
    connection = _connect(*_World.server)
    _send(connection, ("%s %d" % (name, number), _World.rank, arrays, kind))
    try:
        return _receive(connection)
    finally:
        connection.close()


def _tensors(name, tensors, kind="sum"):
    """What comes of tensors that all processes give, as tensors of one operation."""

    def run(*arrays):
        found = _exchange(name, list(arrays), kind)
        return [np.asarray(one, before.dtype) for one, before in zip(found, arrays)]

    results = tf.py_func(run, tensors, [one.dtype for one in tensors], name="HorovodStandIn")
    for result, tensor in zip(results, tensors):
        result.set_shape(tensor.shape if kind == "sum" else [None, *tensor.shape.as_list()[1:]])
    return results


# -- tensors --


def _scaled(total, op, average):
    if average is False or op == Sum:
        return total
    return total / _World.size if total.dtype.is_floating else total // _World.size


def allreduce(tensor, average=None, device_dense="", device_sparse="", compression=None, op=None, name=None):
    """The mean of a tensor over all processes, or its sum."""
    if isinstance(tensor, tf.IndexedSlices):
        values, indices = _tensors("rows of " + tensor.values.name, [tensor.values, tensor.indices], "gather")
        return tf.IndexedSlices(_scaled(values, op, average), indices, tensor.dense_shape)
    tensor = tf.convert_to_tensor(tensor)
    if _World.size == 1:
        return tf.identity(tensor)
    return _scaled(_tensors(name or tensor.name, [tensor])[0], op, average)


def allgather(tensor, name=None):
    """The tensors of all processes, one after another."""
    tensor = tf.convert_to_tensor(tensor)
    return tf.identity(tensor) if _World.size == 1 else _tensors(name or tensor.name, [tensor], "gather")[0]


def broadcast(tensor, root_rank, name=None):
    """The tensor of one process."""
    tensor = tf.convert_to_tensor(tensor)
    if _World.size == 1:
        return tf.identity(tensor)
    own = tensor if _World.rank == root_rank else tf.zeros_like(tensor)
    return _tensors(name or tensor.name, [own])[0]


def broadcast_variables(variables, root_rank):
    """Gives variables the values that they have in one process."""
    variables = list(variables)
    if _World.size == 1 or not variables:
        return tf.no_op()
    own = [one.read_value() if _World.rank == root_rank else tf.zeros_like(one.read_value()) for one in variables]
    return tf.group(*[one.assign(new) for one, new in zip(variables, _tensors("variables", own))])


def broadcast_global_variables(root_rank):
    """Gives all global variables the values that they have in one process."""
    return broadcast_variables(tf.global_variables(), root_rank)


class BroadcastGlobalVariablesHook(tf.train.SessionRunHook):
    """Lets all processes begin with the variables of one of them."""

    def __init__(self, root_rank, device=""):
        self.root_rank = root_rank
        self.update = None

    def begin(self):
        """Adds the operation."""
        if self.update is None or self.update.graph is not tf.get_default_graph():
            self.update = broadcast_global_variables(self.root_rank)

    def after_create_session(self, session, coord):
        """Runs it."""
        session.run(self.update)


class DistributedOptimizer(tf.train.Optimizer):
    """An optimizer whose gradients are the means over all processes."""

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
        op=Average,
    ):
        super(DistributedOptimizer, self).__init__(use_locking, name or "Distributed%s" % type(optimizer).__name__)
        self._optimizer = optimizer
        self._sparse_as_dense = sparse_as_dense
        self._compression = compression
        self._op = op

    def compute_gradients(self, *args, **kwargs):
        """The optimizer's own, of all processes."""
        found = self._optimizer.compute_gradients(*args, **kwargs)
        if _World.size == 1:
            return found
        if self._sparse_as_dense:
            found = [(None if one is None else tf.convert_to_tensor(one), variable) for one, variable in found]
        new, dense = [], [one for one, _ in found if isinstance(one, tf.Tensor)]
        sent = dense if self._compression is None else [tf.cast(one, self._compression) for one in dense]
        sums = dict(zip(map(id, dense), _tensors("gradients", sent))) if dense else {}
        before = next(iter(sums.values()), None)
        for one, variable in found:
            if isinstance(one, tf.Tensor):
                one = _scaled(tf.cast(sums[id(one)], one.dtype), self._op, None)
            elif one is not None:
                with tf.control_dependencies([] if before is None else [before]):
                    values, indices = _tensors("rows of " + variable.name, [one.values, one.indices], "gather")
                before = values
                one = tf.IndexedSlices(_scaled(values, self._op, None), indices, one.dense_shape)
            new.append((one, variable))
        return new

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
