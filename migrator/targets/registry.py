"""All targets and all loops, by the words of the command line."""

from __future__ import annotations

from migrator.targets import (
    auto,
    central_storage,
    custom,
    dtensor,
    fit,
    mirrored,
    multi_worker_mirrored,
    one_device,
    parameter_server,
    tpu,
)
from migrator.targets.plan import Loop, Target

#: The words are those of `migrator.targets.STRATEGIES`.
TARGETS: dict[str, Target] = {
    target.word: target
    for target in (
        auto.TARGET,
        one_device.TARGET,
        mirrored.TARGET,
        multi_worker_mirrored.TARGET,
        parameter_server.TARGET,
        central_storage.TARGET,
        tpu.TARGET,
        dtensor.TARGET,
    )
}
#: The words are those of `migrator.targets.LOOPS`.
LOOPS: dict[str, Loop] = {loop.word: loop for loop in (fit.LOOP, custom.LOOP)}

AUTO = auto.TARGET
ONE_DEVICE = one_device.TARGET
TPU = tpu.TARGET


def target_of(name: str) -> Target | None:
    """The target that a TensorFlow 1 strategy class asks for, by the class's full name."""
    last = name.rpartition(".")[2]
    return next((target for target in TARGETS.values() if last in target.classes), None)
