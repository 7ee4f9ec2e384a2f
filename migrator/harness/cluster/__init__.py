"""Local clusters: one process per TF_CONFIG task, started, watched and ended by the tool."""

from migrator.harness.cluster.forkserver import ForkServer
from migrator.harness.cluster.launch import Failure, Launch, RunOutcome, TaskOutcome
from migrator.harness.cluster.supervise import ForkServerError
from migrator.harness.cluster.tasks import LOCAL, ClusterShape, Task

__all__ = [
    "LOCAL",
    "ClusterShape",
    "Failure",
    "ForkServer",
    "ForkServerError",
    "Launch",
    "RunOutcome",
    "Task",
    "TaskOutcome",
]
