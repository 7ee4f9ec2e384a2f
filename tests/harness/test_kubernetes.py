"""What Kubernetes would run, against its own schemas and that of a TFJob."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
from click.testing import CliRunner

from migrator.cli.program import program
from migrator.harness.cluster.kubernetes import ManifestError, PodRun, jobs, name_of, tfjob
from migrator.harness.cluster.tasks import ClusterShape

VERSION = "1.30"
#: What the definition of the resource asks of a TFJob (kubeflow.org/v1).
TFJOB = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "additionalProperties": False,
    "properties": {
        "apiVersion": {"const": "kubeflow.org/v1"},
        "kind": {"const": "TFJob"},
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "required": ["tfReplicaSpecs"],
            "additionalProperties": False,
            "properties": {
                "runPolicy": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "cleanPodPolicy": {"enum": ["All", "Running", "None"]},
                        "backoffLimit": {"type": "integer"},
                        "activeDeadlineSeconds": {"type": "integer"},
                        "ttlSecondsAfterFinished": {"type": "integer"},
                        "suspend": {"type": "boolean"},
                    },
                },
                "tfReplicaSpecs": {
                    "type": "object",
                    "additionalProperties": False,
                    "patternProperties": {
                        "^(Chief|Master|Worker|PS|Evaluator)$": {
                            "type": "object",
                            "required": ["template"],
                            "additionalProperties": False,
                            "properties": {
                                "replicas": {"type": "integer", "minimum": 1},
                                "restartPolicy": {"enum": ["Always", "OnFailure", "Never", "ExitCode"]},
                                "template": {"type": "object", "required": ["spec"]},
                            },
                        }
                    },
                },
            },
        },
    },
}


def run(cluster: str, *args: str, **changes: Any) -> PodRun:
    given = {"name": "mnist", "image": "mine/tensorflow:1", "script": Path("train/mnist.py"), "args": args}
    return PodRun(**{**given, "shape": ClusterShape.parse(cluster), **changes})


def as_of_tfjob(one: dict[str, Any]) -> None:
    """Raises unless an object is a TFJob, whose pods Kubernetes would take."""
    jsonschema.validate(one, TFJOB)
    for spec in one["spec"]["tfReplicaSpecs"].values():
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec["template"]["spec"]}
        kubernetes_validate.validate(pod, VERSION, strict=True)
        assert spec["template"]["spec"]["containers"][0]["name"] == "tensorflow", "as the operator looks for it"


@pytest.mark.parametrize("cluster", ["", "worker=2", "chief=1,worker=2,ps=2,evaluator=1", "master=1,ps=1"])
def test_kubernetes_takes_the_jobs(cluster: str) -> None:
    found = jobs(run(cluster, "--x", "1", environment={"A": "b"}))
    for one in found:
        kubernetes_validate.validate(one, VERSION, strict=True)
    shape = ClusterShape.parse(cluster)
    names = [one["metadata"]["name"] for one in found if one["kind"] == "Job"]
    assert names == [f"mnist-{task.folder}" for task in shape.tasks()]
    assert sum(one["kind"] == "Service" for one in found) == bool(shape.counts)


def test_the_schemas_would_find_a_mistake() -> None:
    (job,) = jobs(run(""))
    job["spec"]["template"]["spec"]["containers"][0]["commands"] = ["x"]
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, VERSION, strict=True)
    (job,) = tfjob(run("worker=1"))
    job["spec"]["tfReplicaSpecs"]["Boss"] = job["spec"]["tfReplicaSpecs"]["Worker"]
    with pytest.raises(jsonschema.ValidationError):
        as_of_tfjob(job)


def test_tasks_find_each_other_by_the_service() -> None:
    service, *rest = jobs(run("chief=1,worker=1,ps=1", "--ps={ps_hosts}", "--at={task_index}", "$(HOME)"))
    chief = next(one for one in rest if one["metadata"]["name"] == "mnist-chief-0")["spec"]["template"]
    assert service["spec"]["clusterIP"] == "None"
    selector = service["spec"]["selector"].items()
    assert all(selector <= one["spec"]["template"]["metadata"]["labels"].items() for one in rest)
    assert (chief["spec"]["hostname"], chief["spec"]["subdomain"]) == ("chief-0", service["metadata"]["name"])
    container = chief["spec"]["containers"][0]
    words = ["python", "train/mnist.py", "--ps=ps-0.mnist:2222", "--at=0", "$$(HOME)"]
    assert container["command"] == words, "Kubernetes puts no variable into a word of the program"
    config = json.loads(next(one["value"] for one in container["env"] if one["name"] == "TF_CONFIG"))
    assert config == {
        "cluster": {"ps": ["ps-0.mnist:2222"], "worker": ["worker-0.mnist:2222"], "chief": ["chief-0.mnist:2222"]},
        "task": {"type": "chief", "index": 0},
    }


def test_a_tfjob_has_the_cluster_by_kinds() -> None:
    (job,) = tfjob(run("chief=1,worker=2,ps=2,evaluator=1", module="train.mnist", seconds=90.4))
    as_of_tfjob(job)
    assert {kind: spec["replicas"] for kind, spec in job["spec"]["tfReplicaSpecs"].items()} == {
        "Chief": 1,
        "Worker": 2,
        "PS": 2,
        "Evaluator": 1,
    }
    assert job["spec"]["runPolicy"]["activeDeadlineSeconds"] == 90
    container = job["spec"]["tfReplicaSpecs"]["Chief"]["template"]["spec"]["containers"][0]
    assert container["command"] == ["python", "-m", "train.mnist"]
    with pytest.raises(ManifestError, match="same arguments"):
        tfjob(run("worker=1", "--ps={ps_hosts}"))
    with pytest.raises(ManifestError, match="--cluster"):
        tfjob(run(""))


@pytest.mark.parametrize(
    ("text", "name"),
    [("Train_MNIST.v2-original", "train-mnist-v2-original"), ("2_layers", "run-2-layers"), ("ü" * 3, "run")],
)
def test_names(text: str, name: str) -> None:
    assert name_of(text) == name
    assert len(name_of(text * 30)) <= 40


def test_verify_prints_both_and_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    for name in ("old.py", "new.py"):
        (tmp_path / name).write_text("x = 1\n")
    words = ["verify", "old.py", "new.py", "--cluster", "chief=1,worker=1,ps=1", "--manifests", "jobs"]
    refused = CliRunner().invoke(program, words)
    assert refused.exit_code == 2 and "--images" in refused.output
    result = CliRunner().invoke(program, [*words, "--images", "a:1", "b:2", "--", "--x"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert found["kind"] == "List"
    by_image: dict[str, list[str]] = {}
    for one in found["items"]:
        kubernetes_validate.validate(one, VERSION, strict=True)
        if one["kind"] == "Job":
            image = one["spec"]["template"]["spec"]["containers"][0]["image"]
            by_image.setdefault(image, []).append(one["metadata"]["name"])
    # A coordinator does not train: the migrated cluster has a worker more.
    assert by_image == {
        "a:1": ["old-original-ps-0", "old-original-worker-0", "old-original-chief-0"],
        "b:2": ["new-migrated-ps-0", "new-migrated-worker-0", "new-migrated-worker-1", "new-migrated-chief-0"],
    }
