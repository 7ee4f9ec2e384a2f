"""A cluster of parameter servers in one process, for a machine without TF_CONFIG."""

from __future__ import annotations

import contextlib
import json
import os
import socket

import tensorflow as tf

# How many servers of each kind start in this process, where TF_CONFIG names no cluster.
SERVERS = {"worker": 1, "ps": 1}


def _free_address(stack):
    """An address of this machine that nobody listens on."""
    one = stack.enter_context(socket.create_server(("localhost", 0)))
    return f"localhost:{one.getsockname()[1]}"


def start_servers():
    """Without TF_CONFIG, starts the servers of a cluster in this process, and makes it their coordinator."""
    if os.environ.get("TF_CONFIG"):
        return
    jobs = {"chief": 1, **SERVERS}
    with contextlib.ExitStack() as stack:  # all ports are taken before one is free again
        cluster = {job: [_free_address(stack) for _ in range(count)] for job, count in jobs.items()}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": "chief", "index": 0}})
    # With fewer threads than there are workers, steps that wait for each other would wait for ever.
    threads = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=max(os.cpu_count() or 1, 8, SERVERS["worker"] + 1))
    for job, count in SERVERS.items():
        for index in range(count):
            tf.distribute.Server(
                tf.train.ClusterSpec(cluster), job_name=job, task_index=index, protocol="grpc", config=threads
            )
