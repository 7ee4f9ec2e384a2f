"""A run's tasks as objects of Kubernetes, from the specification that local processes are started from.

Nothing is sent anywhere: the objects are shown, to be looked at and applied by whoever has a cluster.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrator.harness.cluster.tasks import ClusterShape, Task

PORT = 2222
_LABEL = "tf-migrate/run"
_REPLICAS = {"chief": "Chief", "master": "Master", "worker": "Worker", "ps": "PS", "evaluator": "Evaluator"}
#: What the addresses of a cluster's tasks are filled in for; the operator of TFJobs gives every task the same words.
_FILLED = re.compile(r"\{(ps_hosts|worker_hosts|job_name|task_index)\}")

Object = dict[str, Any]


class ManifestError(ValueError):
    """A run that has no such form; the message says why."""


@dataclass(frozen=True)
class PodRun:
    """One program on a cluster of pods.

    `name` is that of the run, as Kubernetes takes it (see `name_of`). `image` holds Python, TensorFlow and the project,
    whose folder is the image's working directory; `script` is relative to that, and run as `module` if there is one.
    `seconds` is the longest that the run may take.
    """

    name: str
    image: str
    script: Path
    args: tuple[str, ...]
    shape: ClusterShape
    module: str = ""
    environment: Mapping[str, str] | None = None
    seconds: float = 600.0


def name_of(text: str) -> str:
    """A name for objects of Kubernetes: at most 40 small letters, digits and dashes, beginning with a letter."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return (name if name[:1].isalpha() else f"run-{name}".rstrip("-"))[:40].rstrip("-")


def jobs(run: PodRun) -> list[Object]:
    """A headless Service, by which the tasks find each other, and a Job for each task, in start order.

    The Jobs of servers (ps) do not complete by themselves: they end when the run's time is over, or are deleted.
    """
    addresses = {task: f"{task.folder}.{run.name}:{PORT}" for task in run.shape.addressed()}
    found = [] if not run.shape.counts else [_service(run)]
    for task in run.shape.tasks():
        config = run.shape.tf_config(task, addresses)
        environment = dict(run.environment or {}) | ({"TF_CONFIG": json.dumps(config)} if config else {})
        pod: Object = {
            "restartPolicy": "Never",
            "containers": [_container(run, run.shape.arguments(run.args, task, addresses), environment)],
        }
        if run.shape.counts:
            pod |= {"hostname": task.folder, "subdomain": run.name}
        labels = _labels(run, task)
        found.append(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": f"{run.name}-{task.folder}", "labels": labels},
                "spec": {
                    "backoffLimit": 0,
                    "activeDeadlineSeconds": max(1, round(run.seconds)),
                    "template": {"metadata": {"labels": labels}, "spec": pod},
                },
            }
        )
    return found


def tfjob(run: PodRun) -> list[Object]:
    """A TFJob, whose operator makes the pods, gives each its TF_CONFIG and ends the servers. Raises ManifestError."""
    if any(_FILLED.search(arg) for arg in run.args):
        raise ManifestError("a TFJob gives all tasks the same arguments: {ps_hosts} and the like need plain jobs")
    if not run.shape.counts:
        raise ManifestError("a TFJob needs a cluster: set --cluster, such as worker=1")
    container = _container(run, list(run.args), dict(run.environment or {}))
    container["ports"] = [{"name": "tfjob-port", "containerPort": PORT}]
    specs = {}
    for kind, count in run.shape.counts:
        specs[_REPLICAS[kind]] = {
            "replicas": count,
            "restartPolicy": "Never",
            "template": {
                "metadata": {"labels": {_LABEL: run.name}},
                "spec": {"restartPolicy": "Never", "containers": [container]},
            },
        }
    return [
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "TFJob",
            "metadata": {"name": run.name, "labels": {_LABEL: run.name}},
            "spec": {
                "runPolicy": {
                    "cleanPodPolicy": "All",
                    "backoffLimit": 0,
                    "activeDeadlineSeconds": max(1, round(run.seconds)),
                },
                "tfReplicaSpecs": specs,
            },
        }
    ]


def text_of(objects: list[Object]) -> str:
    """The objects as a List in JSON, which `kubectl apply -f -` takes."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=2) + "\n"


def _service(run: PodRun) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": run.name, "labels": {_LABEL: run.name}},
        "spec": {
            "clusterIP": "None",
            # Tasks look each other up before they are ready: they are when they have found each other.
            "publishNotReadyAddresses": True,
            "selector": {_LABEL: run.name},
            "ports": [{"name": "grpc", "port": PORT}],
        },
    }


def _labels(run: PodRun, task: Task) -> dict[str, str]:
    return {_LABEL: run.name, "tf-migrate/task": task.folder}


def _container(run: PodRun, args: list[str], environment: Mapping[str, str]) -> Object:
    said = ["-m", run.module] if run.module else [run.script.as_posix()]
    # Kubernetes would put variables in the place of $(NAME).
    command = [word.replace("$(", "$$(") for word in ("python", *said, *args)]
    container: Object = {"name": "tensorflow", "image": run.image, "command": command}
    if run.shape.counts:
        container["ports"] = [{"containerPort": PORT}]
    if environment:
        container["env"] = [{"name": name, "value": value.replace("$(", "$$(")} for name, value in environment.items()]
    return container
