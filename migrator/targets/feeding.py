"""How the replicas of a strategy are given batches."""

from __future__ import annotations

from migrator.targets.plan import TrainingPlan

_WORKERS = "# Every worker draws batches of its own: the batch size is per replica, as an Estimator's is."


def to_workers(plan: TrainingPlan, dataset: str, depth: int) -> str:
    """The dataset of every worker, in a function, for workers that draw batches of their own."""
    indent = plan.indent * (depth + 1)
    return f"{_WORKERS}\n{indent}tf.keras.utils.experimental.DatasetCreator(lambda context: {dataset})"


def to_replicas(plan: TrainingPlan, dataset: str, depth: int) -> str:
    """The dataset of all replicas of one process, of which each gets whole batches (see setup.per_replica)."""
    strategy = f"{plan.strategy_name}, " if plan.keras.number == 3 else ""
    return f"{plan.per_replica}({strategy}lambda: {dataset})"
