"""Strategies that a program finds in TF_CONFIG: the resolver, and the function that makes the strategy."""

from __future__ import annotations

from migrator.emit.layout import call
from migrator.targets.plan import TrainingPlan


def set_up(plan: TrainingPlan) -> list[str]:
    """Lines that read TF_CONFIG and make the strategy; without a cluster there, servers start in this process."""
    servers = []
    if plan.start_servers:
        count = f"num_workers={plan.clusters.workers}, num_ps={plan.clusters.ps}"
        servers = [
            f"if not {plan.resolver}.cluster_spec().jobs:",
            f"{plan.indent}{plan.resolver} = {plan.start_servers}({count})",
        ]
    return [
        f"{plan.resolver} = tf.distribute.cluster_resolver.TFConfigClusterResolver()",
        *servers,
        f"{plan.strategy_name} = {plan.make_strategy}({plan.resolver})",
    ]


def make_strategy(
    name: str, partitioner: str | None, indent: str, parameter_servers: bool, mirrored_workers: bool
) -> str:
    """The function that returns the strategy of the cluster in TF_CONFIG, as source text."""
    served = " A worker or ps serves the coordinator and never returns." if parameter_servers else ""
    lines = [
        f"def {name}(resolver):",
        f'{indent}"""Returns the strategy for the cluster in TF_CONFIG.{served}"""',
        f"{indent}cluster = resolver.cluster_spec()",
        f'{indent}if not cluster.jobs or resolver.task_type == "evaluator":',
        f"{indent * 2}return tf.distribute.get_strategy()",
    ]
    mirrored = "return tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)"
    if not parameter_servers:
        return "\n".join([*lines, f"{indent}{mirrored}"]) + "\n"
    if mirrored_workers:
        lines += [f'{indent}if "ps" not in cluster.jobs:', f"{indent * 2}{mirrored}"]
    else:
        # A strategy of TensorFlow 1's took the first worker for one (a RunConfig without it raises an error itself).
        message = 'TF_CONFIG names no "chief", which coordinates: call one of the workers that'
        lines += [f'{indent}if "chief" not in cluster.jobs:', f"{indent * 2}raise ValueError('{message}')"]
    server = call(
        "tf.distribute.Server",
        ["cluster", "job_name=resolver.task_type", "task_index=resolver.task_id"],
        indent,
        2,
        ".join()",
    )
    arguments = ["resolver"]
    if partitioner is not None:
        arguments.append(f"variable_partitioner={partitioner}")
    lines += [
        f'{indent}if resolver.task_type in ("worker", "ps"):',
        f"{indent * 2}{server}",
        indent + call("return tf.distribute.ParameterServerStrategy", arguments, indent, 1),
    ]
    return "\n".join(lines) + "\n"


def start_servers(name: str, indent: str) -> str:
    """The function that starts the servers of a cluster in the process of the program, as source text."""
    return _START_SERVERS.format(name=name).replace("    ", indent)


_START_SERVERS = '''\
def {name}(num_workers, num_ps):
    """Starts the servers of a cluster in this process, which coordinates it. Returns the resolver of the cluster."""
    sockets = [socket.create_server(("localhost", 0)) for _ in range(1 + num_workers + num_ps)]
    addresses = [f"localhost:{{one.getsockname()[1]}}" for one in sockets]
    for one in sockets:
        one.close()
    cluster = tf.train.ClusterSpec(
        {{"chief": addresses[:1], "worker": addresses[1 : num_workers + 1], "ps": addresses[num_workers + 1 :]}}
    )
    # With fewer threads than there are workers, steps that wait for each other would wait for ever.
    threads = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=max(os.cpu_count() or 1, num_workers + 1))
    for job in ("worker", "ps"):
        for index in range(cluster.num_tasks(job)):
            tf.distribute.Server(cluster, job_name=job, task_index=index, config=threads)
    return tf.distribute.cluster_resolver.SimpleClusterResolver(
        cluster,
        task_type="chief",
        task_id=0,
        rpc_layer="grpc",
    )
'''
