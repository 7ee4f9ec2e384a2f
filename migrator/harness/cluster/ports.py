"""Ports that nobody else is given until TensorFlow binds them."""

from __future__ import annotations

from collections.abc import Sequence

from ephemeral_port_reserve import LOCALHOST, reserve

from migrator.harness.cluster.tasks import Task

#: What a task prints when somebody else had its port.
TAKEN = ("Could not start gRPC server", "Address already in use", "Failed to add port to server")


def addresses(tasks: Sequence[Task]) -> dict[Task, str]:
    """A loopback address with a fresh port for each task.

    The kernel keeps each port out of its own choice for 60 seconds (TIME_WAIT), far longer than a forked
    task needs to bind it, and lets TensorFlow bind it explicitly meanwhile.
    """
    return {task: f"{LOCALHOST}:{reserve(LOCALHOST)}" for task in tasks}
