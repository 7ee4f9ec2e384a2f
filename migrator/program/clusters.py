"""The cluster that a program makes by hand."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cluster:
    """What a program makes its strategy of: expressions, as source text. `synchronous` workers train in step."""

    spec: str
    job_name: str
    task_index: str
    synchronous: bool


__all__ = ["Cluster"]
