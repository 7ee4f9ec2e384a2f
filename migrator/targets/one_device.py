"""One device, no TF_CONFIG: nothing is set up, and fit gets the user's own dataset."""

from __future__ import annotations

from migrator.targets.target import Target

TARGET = Target("one-device", classes=("OneDeviceStrategy",), fits_on_keras3=True)
