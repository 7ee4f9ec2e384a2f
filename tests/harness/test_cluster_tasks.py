"""Cluster shapes, TF_CONFIG and ports."""

import socket
from dataclasses import replace

import pytest

from migrator.harness.cluster import LOCAL, ClusterShape, Task
from migrator.harness.cluster.ports import address


def names(tasks: list[Task]) -> list[str]:
    return [str(task) for task in tasks]


def test_parse_gives_tasks_in_start_order() -> None:
    shape = ClusterShape.parse(" chief=1, worker=2,ps=2,evaluator=1")
    assert names(shape.tasks()) == ["ps:0", "ps:1", "worker:0", "worker:1", "chief:0", "evaluator:0"]
    assert names(shape.trainers()) == ["chief:0", "worker:0", "worker:1"]
    assert str(shape) == "chief=1,worker=2,ps=2,evaluator=1"
    assert ClusterShape.parse(str(shape)) == shape


@pytest.mark.parametrize("text", ["", "worker=0", " , "])
def test_nothing_is_one_local_task(text: str) -> None:
    shape = ClusterShape.parse(text)
    assert shape == ClusterShape()
    assert shape.tasks() == shape.trainers() == [LOCAL]
    assert shape.tf_config(LOCAL, {}) == {}
    assert shape.addressed() == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("worker", "TYPE=NUMBER"),
        ("worker=two", "TYPE=NUMBER"),
        ("worker=-1", "TYPE=NUMBER"),
        ("boss=1", "no task type"),
        ("worker=1,worker=2", "twice"),
        ("chief=2", "at most one chief"),
        ("chief=1,master=1", "not both"),
        ("ps=2", "no task that trains"),
    ],
)
def test_malformed_shapes_say_what_is_wrong(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        ClusterShape.parse(text)


def test_tf_config_leaves_the_evaluator_out_when_there_are_parameter_servers() -> None:
    shape = ClusterShape.parse("chief=1,worker=1,ps=1,evaluator=1")
    known = {task: f"127.0.0.1:{9000 + place}" for place, task in enumerate(shape.addressed())}
    assert shape.tf_config(Task("evaluator", 0), known) == {
        "cluster": {"ps": ["127.0.0.1:9000"], "worker": ["127.0.0.1:9001"], "chief": ["127.0.0.1:9002"]},
        "task": {"type": "evaluator", "index": 0},
    }


def test_tf_config_lists_the_evaluator_of_a_cluster_without_parameter_servers() -> None:
    shape = ClusterShape.parse("chief=1,worker=2,evaluator=1")
    known = {task: str(task) for task in shape.addressed()}
    config = shape.tf_config(Task("worker", 1), known)
    assert config["cluster"]["evaluator"] == ["evaluator:0"]
    assert config["cluster"]["worker"] == ["worker:0", "worker:1"]
    assert config["task"] == {"type": "worker", "index": 1}


def test_who_never_exits_depends_on_the_program() -> None:
    shape = ClusterShape.parse("chief=1,worker=2,ps=1,evaluator=1")
    assert names(shape.servers()) == ["ps:0"]
    assert names(replace(shape, coordinated=True).servers()) == ["ps:0", "worker:0", "worker:1"]
    assert ClusterShape.parse("chief=1,worker=2", coordinated=True).servers() == []


@pytest.mark.parametrize("text", ["worker", "worker:x", ":1", ""])
def test_task_parse_refuses_what_is_no_task(text: str) -> None:
    with pytest.raises(ValueError, match="TYPE:INDEX"):
        Task.parse(text)
    assert Task.parse("worker:12") == Task("worker", 12)


def test_ports_are_kept_from_others_and_can_be_bound() -> None:
    ports = {int(address().rpartition(":")[2]) for _ in range(20)}
    assert len(ports) == 20
    strangers = []
    try:
        for _ in range(300):
            stranger = socket.socket()
            strangers.append(stranger)
            stranger.bind(("127.0.0.1", 0))
            assert stranger.getsockname()[1] not in ports
    finally:
        for stranger in strangers:
            stranger.close()
    for port in ports:
        with socket.socket() as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind(("0.0.0.0", port))
            server.listen()


def test_arguments_name_the_tasks_of_a_cluster_without_tf_config() -> None:
    shape = ClusterShape.parse("chief=1,worker=1,ps=1")
    addresses = {task: f"{task.type}{task.index}:1" for task in shape.tasks()}
    args = ("--ps={ps_hosts}", "--workers={worker_hosts}", "{job_name}", "{task_index}", "{other}")
    hosts = ["--ps=ps0:1", "--workers=chief0:1,worker0:1"]
    given = {str(task): shape.arguments(args, task, addresses) for task in shape.tasks()}
    assert given == {
        "ps:0": [*hosts, "ps", "0", "{other}"],
        "chief:0": [*hosts, "worker", "0", "{other}"],
        "worker:0": [*hosts, "worker", "1", "{other}"],
    }
    assert ClusterShape().arguments(args, LOCAL, {}) == ["--ps=", "--workers=", "worker", "0", "{other}"]
