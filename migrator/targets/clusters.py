"""What is asked of programs for clusters: who evaluates there, and which servers a program starts by itself."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SERVERS = re.compile(r"\s*worker\s*=\s*([1-9]\d?)\s*,\s*ps\s*=\s*([1-9]\d?)\s*")


class ServersError(ValueError):
    """Servers that cannot be started, with one sentence that says why."""


@dataclass(frozen=True)
class Clusters:
    """Who evaluates on a cluster, and what runs in one process where TF_CONFIG names no cluster.

    `coordinates`: the coordinator (of parameter servers the chief, of mirrored workers their chief, which trains, too)
    evaluates each new checkpoint while the others wait; else the evaluator task does, beside the training.
    `workers` and `ps` are the servers that a program starts in its own process, none where they are 0: then it trains
    on one device there.
    """

    coordinates: bool = False
    workers: int = 0
    ps: int = 0

    @property
    def in_process(self) -> bool:
        """Whether a program starts servers."""
        return self.workers > 0


#: What is not asked for otherwise.
ONE_EVALUATOR = Clusters()


def parse(evaluate_on: str, servers: str) -> Clusters:
    """What a command line asks for: `evaluator` or `coordinator`, and `worker=2,ps=1`. Raises ServersError.

    A cluster in one process has no evaluator: with servers the coordinator evaluates.
    """
    if not servers:
        return Clusters(evaluate_on == "coordinator")
    found = _SERVERS.fullmatch(servers)
    if found is None:
        raise ServersError(f"`{servers}`: give servers as worker=2,ps=1, from 1 to 99 of each")
    return Clusters(True, int(found[1]), int(found[2]))
