"""Ports that nobody else is given until TensorFlow binds them."""

from __future__ import annotations

from ephemeral_port_reserve import LOCALHOST, reserve

#: What a task prints when somebody else had its port.
TAKEN = ("Could not start gRPC server", "Address already in use", "Failed to add port to server")


def address(host: str = LOCALHOST) -> str:
    """A fresh port of this machine, "host:port" for one of its addresses.

    The kernel keeps each port out of its own choice for 60 seconds (TIME_WAIT), far longer than a forked
    task needs to bind it, and lets TensorFlow bind it explicitly meanwhile.
    """
    return f"{host}:{reserve(host)}"
