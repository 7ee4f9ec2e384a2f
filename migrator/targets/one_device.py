"""One device, no TF_CONFIG: nothing is set up unless the program names it, and fit gets the user's own dataset."""

from __future__ import annotations

from migrator.targets.plan import Target, TrainingPlan


def _set_up(plan: TrainingPlan) -> list[str]:
    return [f"{plan.strategy_name} = tf.distribute.OneDeviceStrategy({plan.devices})"] if plan.devices else []


TARGET = Target("one-device", classes=("OneDeviceStrategy",), fits_on_keras3=True, set_up=_set_up)
