"""Stands in for a TPU where there is none: names, places and strategies of TPUs mean processors of this machine.

A migrated program runs unchanged: its resolver finds a TPU of some cores, to connect and to initialize does nothing,
and its TPUStrategy is a MirroredStrategy over as many virtual CPUs. An original runs as with ``use_tpu=False``: one
processor, which takes the global batch. Both tell the record folder that they did (``stand_in.json``).
"""

import collections.abc
import contextlib
import importlib
import threading

from cores import Kept
from parts import wrap
from replicas import STAND_IN
from virtual_devices import divide

_PLACES = ("tensorflow", "tensorflow.compat.v2", "tensorflow.compat.v1")
_RESOLVERS = (
    "tensorflow.python.distribute.cluster_resolver.tpu.tpu_cluster_resolver",
    "tensorflow.python.distribute.cluster_resolver.tpu_cluster_resolver",
)


def install(plan, folder, program):
    """Obeys ``plan["tpu_cores"]``, the number of virtual CPUs for a migrated program; None: no stand-in."""
    cores = plan.get("tpu_cores")
    if not cores:
        return
    _patch_resolvers(cores)
    if program == "original":
        _patch_estimator(folder)
    else:
        tf = importlib.import_module("tensorflow")
        kept = Kept(tf, folder) if plan.get("evaluate") else None
        _patch_strategies(tf, cores, folder, kept)


def _modules(names):
    found = []
    for name in names:
        with contextlib.suppress(ImportError):
            found.append(importlib.import_module(name))
    return found


def _patch_resolvers(cores):
    """A resolver asks nobody, whatever TPU it is given."""

    def create(self, tpu=None, zone=None, project=None, job_name="worker", *args, **kwargs):
        self._tpu = tpu or "stand-in"
        self.task_type = job_name
        self.task_id = 0

    def accelerators(self, *args, **kwargs):
        return {"TPU": cores}

    for module in _modules(_RESOLVERS):
        kinds = [value for name, value in vars(module).items() if name.startswith("TPUClusterResolver")]
        for kind in kinds:
            kind.__init__ = create
            kind.master = kind.get_master = lambda self, *args, **kwargs: ""
            kind.cluster_spec = lambda self: None
            kind.num_accelerators = accelerators
            kind.environment = property(lambda self: "")
            kind.connect = staticmethod(lambda tpu=None, zone=None, project=None, kind=kind: kind(tpu, zone, project))


def _patch_strategies(tf, cores, folder, kept):
    """TPUStrategy, and the functions that come before it. What its cores are given to compute is `kept`, if at all."""
    device = tf.config.list_physical_devices("CPU")[0]
    if cores > 1:
        divide(tf, device, cores)

    def make(cls, *args, **kwargs):
        folder.write_json("stand_in.json", {"stands_for": "TPUStrategy", "cores": cores})
        strategy = tf.distribute.MirroredStrategy(["/cpu:%d" % number for number in range(cores)])
        setattr(strategy, STAND_IN, True)
        run = strategy.run
        if kept is not None:
            kept.note_layers()
            run = kept.watching(run)
        strategy.run = lambda *args, **kwargs: _run(tf.compat.v1, run, *args, **kwargs)
        return strategy

    module = importlib.import_module("tensorflow.python.distribute.tpu_strategy")
    for name in ("TPUStrategy", "TPUStrategyV1", "TPUStrategyV2"):
        kind = getattr(module, name, None)
        if kind is not None:
            kind.__new__ = make

    def nothing(*args, **kwargs):
        return None

    for place in _modules(_PLACES):
        for holder, name in (
            (place.config, "experimental_connect_to_cluster"),
            (place.config, "experimental_connect_to_host"),
            (place.tpu.experimental, "initialize_tpu_system"),
            (place.tpu.experimental, "shutdown_tpu_system"),
        ):
            if hasattr(holder, name):
                setattr(holder, name, nothing)
        for holder, name in (
            (place.config, "list_logical_devices"),
            (place.config.experimental, "list_logical_devices"),
        ):
            if hasattr(holder, name):
                wrap(holder, name, _of_cpus)


def _run(tf, original, function, args=(), kwargs=None, **others):
    """`strategy.run`. In TensorFlow 1 code each core has collections of its own, as it has a program of its own: the
    replicas of a MirroredStrategy would share them, and a penalty of the first be that of all.
    """
    if tf.executing_eagerly() or not getattr(tf.get_default_graph(), "name", "").startswith("wrapped_function"):
        return original(function, args, kwargs, **others)
    graph = tf.get_default_graph()
    graph._collections = collections_of = _Collections(graph._collections)

    def see(variable):
        keys = [tf.GraphKeys.GLOBAL_VARIABLES] + [tf.GraphKeys.TRAINABLE_VARIABLES] * bool(variable.trainable)
        for key in keys:
            if all(known is not variable for known in tf.get_collection(key)):
                tf.add_to_collection(key, variable)
        return variable

    def get(getter, name, *args, **kwargs):
        before = {id(known) for known in tf.global_variables()}
        terms = len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))
        variable = getter(name, *args, **kwargs)
        penalty = kwargs.get("regularizer")
        added = len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) > terms
        if penalty is not None and not added and hasattr(variable, "assign") and id(variable) not in before:
            tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, penalty(variable))
        return see(variable) if hasattr(variable, "assign") else variable

    def on_core(*args, **kwargs):
        collections_of.begin()
        with tf.variable_scope(tf.get_variable_scope(), custom_getter=get):
            return function(*args, **kwargs)

    try:
        return original(on_core, args, kwargs, **others)
    finally:
        graph._collections = collections_of.whole()


class _Collections(collections.abc.MutableMapping):
    """The collections of a graph, of which each thread has its own from where it began."""

    def __init__(self, before):
        self.before = before
        self.first = {key: list(value) for key, value in before.items()}
        self.own = {}

    def begin(self):
        self.own[threading.current_thread()] = {key: list(value) for key, value in self.first.items()}

    def whole(self):
        """All of what is a variable, and the first core's of all else."""
        for number, own in enumerate(self.own.values()):
            for key, values in own.items():
                known = self.before.setdefault(key, [])
                new = [one for one in values if all(one is not other for other in known)]
                known.extend(one for one in new if number == 0 or hasattr(one, "assign"))
        return self.before

    def _of(self, key):
        return self.own.get(threading.current_thread(), self.before) if isinstance(key, str) else self.before

    def __getitem__(self, key):
        return self._of(key)[key]

    def __setitem__(self, key, value):
        self._of(key)[key] = value

    def __delitem__(self, key):
        del self._of(key)[key]

    def __iter__(self):
        return iter(dict(self.before, **self.own.get(threading.current_thread(), {})))

    def __len__(self):
        return len(list(iter(self)))


def _of_cpus(original, device_type=None):
    """The virtual CPUs are the cores of the TPU."""
    return original("CPU" if device_type == "TPU" else device_type)


def _patch_estimator(folder):
    """A TPUEstimator works without a TPU, and what its model_fn asks of other cores has its own value."""
    estimator = importlib.import_module("tensorflow_estimator.python.estimator.tpu.tpu_estimator").TPUEstimator

    def create(original, self, model_fn=None, model_dir=None, config=None, params=None, use_tpu=True, *args, **kwargs):
        if use_tpu:
            folder.write_json("stand_in.json", {"stands_for": "TPUEstimator", "cores": 1})
        for name in ("_master", "_evaluation_master"):
            if getattr(config, name, None):
                setattr(config, name, "")  # the address of the TPU
        return original(self, model_fn, model_dir, config, params, False, *args, **kwargs)

    wrap(estimator, "__init__", create)
    operations = importlib.import_module("tensorflow.python.tpu.ops.tpu_ops")
    operations.cross_replica_sum = lambda x, *args, **kwargs: x
