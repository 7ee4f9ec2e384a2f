"""Mirrored workers: the same variables in every worker, gradients summed over all of them in every step."""

from __future__ import annotations

from migrator.targets import feeding, tf_config
from migrator.targets.plan import Target


def _make_strategy(name: str, partitioner: str | None, indent: str) -> str:
    return tf_config.make_strategy(name, partitioner, indent, parameter_servers=False, mirrored_workers=True)


TARGET = Target(
    "multi-worker-mirrored",
    classes=("MultiWorkerMirroredStrategy", "CollectiveAllReduceStrategy"),
    reads_cluster=True,
    mirrored_workers=True,
    helper=_make_strategy,
    loops_on_keras3=True,
    set_up=tf_config.set_up,
    feed=feeding.to_workers,
    creates=True,
)
