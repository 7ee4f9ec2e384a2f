"""Local clusters: one process per TF_CONFIG task, started, watched and ended by the tool."""

from migrator.harness.cluster.forkserver import ForkServer
from migrator.harness.cluster.launch import FAILURE_KINDS, Failure, FailureKind, Launch, RunOutcome, TaskOutcome
from migrator.harness.cluster.runner import Runner
from migrator.harness.cluster.supervise import ForkServerError
from migrator.harness.cluster.tasks import LOCAL, ClusterShape, Task
from migrator.harness.cluster.writes import Write

__all__ = [
    "FAILURE_KINDS",
    "LOCAL",
    "ClusterShape",
    "Failure",
    "FailureKind",
    "ForkServer",
    "ForkServerError",
    "Launch",
    "RunOutcome",
    "Runner",
    "Task",
    "TaskOutcome",
    "Write",
]
