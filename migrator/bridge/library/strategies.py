"""The strategy of `tf.distribute` for what a RunConfig, or the cluster of TF_CONFIG, asks for."""

from __future__ import annotations

import os

import tensorflow as tf

from .eager import eagerly


@eagerly
def modern_strategy(strategy):
    """The strategy of TensorFlow 2 for one of `tf.compat.v1.distribute`; others as they are."""
    if strategy is None or not hasattr(tf.compat.v1.distribute, "MirroredStrategy"):
        return strategy
    if isinstance(strategy, (tf.distribute.MirroredStrategy, tf.distribute.OneDeviceStrategy)):
        _check_devices(strategy.extended.worker_devices)
    old = tf.compat.v1.distribute
    # Reductions of two strategies in one process would take each other for their own, and fail where shapes differ.
    for kind in (tf.distribute.MirroredStrategy, tf.distribute.MultiWorkerMirroredStrategy):
        kind._collective_key_base += 1000
    if isinstance(strategy, old.MirroredStrategy):
        _check_devices(strategy.extended.worker_devices)
        return tf.distribute.MirroredStrategy(strategy.extended.worker_devices)
    if isinstance(strategy, old.experimental.CentralStorageStrategy):
        _check_devices([*strategy.extended.worker_devices, *strategy.extended.parameter_devices])
        return tf.distribute.experimental.CentralStorageStrategy(
            strategy.extended.worker_devices, strategy.extended.parameter_devices[0]
        )
    if isinstance(strategy, old.experimental.MultiWorkerMirroredStrategy):
        return _of_workers(strategy.extended)
    if isinstance(strategy, old.OneDeviceStrategy):
        _check_devices(strategy.extended.worker_devices)
        return tf.distribute.OneDeviceStrategy(strategy.extended.worker_devices[0])
    return strategy


def _of_workers(old):
    """A MultiWorkerMirroredStrategy for one of `tf.compat.v1.distribute`, which has started this worker's server.

    Started once more, the server would forget what faster workers have asked it for, and they would wait for ever.
    """
    kind = type(old)
    kind._std_server_started = True
    try:
        return tf.distribute.MultiWorkerMirroredStrategy(old._cluster_resolver, old._communication_options)
    finally:
        del kind._std_server_started


def _check_devices(devices):
    """Raises ValueError for devices that TensorFlow has not here: it would wait for them for ever."""
    there = tf.config.list_logical_devices()
    known = {(one.device_type, one.name.rpartition(":")[2]) for one in there}
    missing = []
    for name in devices:
        device = tf.DeviceSpec.from_string(name)
        is_here = device.job in (None, "localhost")  # a device of another process is asked for there
        if is_here and (device.device_type, str(device.device_index or 0)) not in known:
            missing.append(f"/{device.device_type.lower()}:{device.device_index or 0}")
    if missing:
        raise ValueError(
            f"The strategy names {', '.join(missing)}, which TensorFlow does not have here. It has "
            f"{', '.join(f'/{kind.lower()}:{number}' for kind, number in sorted(known))}. Name other devices, or make "
            "virtual ones with tf.config.set_logical_device_configuration before the strategy is made."
        )


def _resolver(config):
    """The cluster of TF_CONFIG for tf.distribute, which knows a chief and no master."""
    jobs = {("chief" if job == "master" else job): tasks for job, tasks in config.cluster_spec.as_dict().items()}
    jobs.pop("evaluator", None)
    return tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(jobs),
        task_type="chief" if config.task_type == "master" else config.task_type,
        task_id=config.task_id,
        rpc_layer="grpc",
    )


@eagerly
def serve_coordinator(config):
    """What a worker or ps of a cluster does: serves the chief, which coordinates. Never returns."""
    resolver = _resolver(config)
    cluster = resolver.cluster_spec()
    # With fewer threads than there are workers, steps that wait for each other would wait for ever.
    threads = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=max(os.cpu_count() or 1, 8))
    tf.distribute.Server(
        cluster, job_name=config.task_type, task_index=config.task_id, protocol="grpc", config=threads
    ).join()


def strategy_of(config):
    """The strategy that a RunConfig asks for, or the cluster that it has parameter servers in; None for one device."""
    if config.train_distribute is None and config.num_ps_replicas:
        return tf.distribute.ParameterServerStrategy(_resolver(config))
    return modern_strategy(config.train_distribute)


def any_worker(strategy):
    """A function that tells all workers, who call it together, whether one of them says yes."""

    def ask(says):
        answers = strategy.run(lambda: tf.constant(float(says)))
        return bool(strategy.reduce(tf.distribute.ReduceOp.SUM, answers, axis=None) > 0)

    return ask


def least_of_workers(strategy):
    """A function that tells all workers, who call it together, the least of the numbers that they give."""

    @tf.function(autograph=False)
    def ask(number):
        def own():
            replica = tf.distribute.get_replica_context().replica_id_in_sync_group
            return tf.one_hot(replica, strategy.num_replicas_in_sync) * number

        return tf.reduce_min(strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(own), axis=None))

    return lambda number: int(ask(tf.constant(number, tf.float32)))
