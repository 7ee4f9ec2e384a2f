"""The devices of one machine: the same variables on each, gradients summed over them in every step."""

from __future__ import annotations

from migrator.targets import feeding
from migrator.targets.plan import Target, TrainingPlan


def _set_up(plan: TrainingPlan) -> list[str]:
    return [f"{plan.strategy_name} = tf.distribute.MirroredStrategy({plan.devices})"]


TARGET = Target(
    "mirrored",
    classes=("MirroredStrategy",),
    replicas=True,
    fits_on_keras3=True,
    loops_on_keras3=True,
    set_up=_set_up,
    feed=feeding.to_replicas,
    creates=True,
)
