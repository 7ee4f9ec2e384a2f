"""Clusters that a program makes by hand, of the hosts that it is told: parameter servers, or mirrored workers."""

from __future__ import annotations

from dataclasses import replace

from migrator.emit.layout import call
from migrator.program.clusters import Cluster
from migrator.targets import multi_worker_mirrored, parameter_server
from migrator.targets.plan import Target, TrainingPlan

_SERVERS = '''\
def {name}(cluster, job_name, task_index):
    """Returns the strategy of a cluster, whose first worker coordinates. The others, and a ps, serve it for ever."""
    jobs = cluster.as_dict()
    jobs["chief"], jobs["worker"] = jobs["worker"][:1], jobs["worker"][1:]
    cluster = tf.train.ClusterSpec(jobs)
    if job_name == "worker":
        job_name, task_index = ("worker", task_index - 1) if task_index else ("chief", 0)
    if job_name != "chief":
        tf.distribute.Server(cluster, job_name=job_name, task_index=task_index).join()
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        cluster,
        task_type=job_name,
        task_id=task_index,
        rpc_layer="grpc",
    )
    {strategy}
'''

_WORKERS = '''\
def {name}(cluster, task_index):
    """Returns the strategy of the workers of a cluster, which train in step."""
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec({{"worker": cluster.as_dict()["worker"]}}),
        task_type="worker",
        task_id=task_index,
        rpc_layer="grpc",
    )
    return tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)
'''


def _on_servers(name: str, partitioner: str | None, indent: str) -> str:
    arguments = ["resolver"] if partitioner is None else ["resolver", f"variable_partitioner={partitioner}"]
    strategy = call("return tf.distribute.ParameterServerStrategy", arguments, "    ", 1)
    return _SERVERS.format(name=name, strategy=strategy).replace("    ", indent)


def _on_workers(name: str, partitioner: str | None, indent: str) -> str:
    return _WORKERS.format(name=name).replace("    ", indent)


def target(cluster: Cluster) -> Target:
    """The target of a program that makes this cluster."""
    task = [cluster.task_index] if cluster.synchronous else [cluster.job_name, cluster.task_index]
    arguments = ", ".join([cluster.spec, *task])

    def set_up(plan: TrainingPlan) -> list[str]:
        return [f"{plan.strategy_name} = {plan.make_strategy}({arguments})"]

    known = multi_worker_mirrored.TARGET if cluster.synchronous else parameter_server.TARGET
    return replace(known, helper=_on_workers if cluster.synchronous else _on_servers, set_up=set_up)
