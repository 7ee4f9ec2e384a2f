"""Devices that a program of TensorFlow 1 chooses for variables and operations of a cluster."""

from __future__ import annotations

import libcst as cst

from migrator.program.calls import is_none
from migrator.program.parsed import Blocked

SETTER = "tf.train.replica_device_setter"


def check_setter(call: cst.Call, code: str) -> None:
    """Refuses a replica_device_setter that is told how to choose. Raises Blocked with this code."""
    for arg in call.args:
        name = arg.keyword.value if arg.keyword is not None else ""
        if name in ("ps_strategy", "ps_ops", "merge_devices") and not is_none(arg.value):
            message = f"`{name}` places variables, which the strategy does itself: remove it"
            raise Blocked(code, arg, message)
