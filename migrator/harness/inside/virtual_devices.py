"""Virtual CPUs in the place of the devices of one machine, for strategies that train several replicas on it.

Both programs run unchanged: a MirroredStrategy or CentralStorageStrategy of so many GPUs gets as many virtual CPUs, one
that takes what there is gets all of them.
"""

import importlib

from parts import wrap

_THREADS = 32


def divide(tf, device, count):
    """Makes ``count`` virtual devices of one.

    A distributed dataset holds a thread for each replica while it waits. With as many threads as a small machine has
    cores, two such datasets that are read in turns wait for each other for ever: 2.15.1 on two cores did so in 2 of 2
    runs, with 8 threads for each device in 1 of 3, with 32 in none of 3.
    """
    tf.config.set_logical_device_configuration(device, [tf.config.LogicalDeviceConfiguration()] * count)
    tf.config.threading.set_inter_op_parallelism_threads(_THREADS * count)


def install(plan, program):
    """Obeys ``plan["devices"]``, the number of virtual CPUs; 1 or None: the devices are those that there are."""
    count = int(plan.get("devices") or 1)
    if count < 2:
        return
    if program == "original":
        _patch_sessions(count)
    else:
        tf = importlib.import_module("tensorflow")
        device = tf.config.list_physical_devices("CPU")[0]
        divide(tf, device, count)
        for place in (tf.config, tf.config.experimental):
            # What the program says of its CPUs is said already.
            for name in ("set_logical_device_configuration", "set_virtual_device_configuration"):
                if hasattr(place, name):
                    wrap(place, name, _of_others)
    _patch_strategies(count)


def _of_others(original, device, *args, **kwargs):
    return None if device.device_type == "CPU" else original(device, *args, **kwargs)


def _patch_sessions(count):
    """Every session has the virtual CPUs, whatever its ConfigProto says."""
    session = importlib.import_module("tensorflow.python.client.session").BaseSession
    protos = importlib.import_module("tensorflow.core.protobuf.config_pb2")

    def create(original, self, target="", graph=None, config=None):
        own = protos.ConfigProto()
        if config is not None:
            own.CopyFrom(config)
        own.device_count["CPU"] = count
        return original(self, target, graph, own)

    wrap(session, "__init__", create)


def _patch_strategies(count):
    def cpus(devices):
        wanted = count if devices is None else len(devices)
        if wanted > count:
            raise RuntimeError("the strategy has %d devices, but there are %d virtual ones (devices)" % (wanted, count))
        return ["/cpu:%d" % number for number in range(wanted)]

    mirrored = importlib.import_module("tensorflow.python.distribute.mirrored_strategy").MirroredExtended

    def mirror(original, self, container, devices=None, *args, **kwargs):
        return original(self, container, cpus(devices), *args, **kwargs)

    wrap(mirrored, "__init__", mirror)
    server = importlib.import_module("tensorflow.python.distribute.parameter_server_strategy")

    def centralize(original, self, container, *args, **kwargs):
        if type(container).__name__.startswith("CentralStorage"):
            kwargs.update(compute_devices=cpus(kwargs.get("compute_devices")), parameter_device="/cpu:0")
        return original(self, container, *args, **kwargs)

    wrap(server.ParameterServerStrategyExtended, "__init__", centralize)
