"""What TF_CONFIG asks for when the program starts: parameter servers, mirrored workers, or one device."""

from __future__ import annotations

from migrator.targets import feeding, tf_config
from migrator.targets.plan import Target


def _make_strategy(name: str, partitioner: str | None, indent: str) -> str:
    return tf_config.make_strategy(name, partitioner, indent, parameter_servers=True, mirrored_workers=True)


TARGET = Target(
    "auto",
    reads_cluster=True,
    parameter_servers=True,
    mirrored_workers=True,
    helper=_make_strategy,
    set_up=tf_config.set_up,
    feed=feeding.to_workers,
    creates=True,
)
