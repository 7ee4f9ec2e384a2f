"""How the replicas of a strategy are given batches."""

from __future__ import annotations

from migrator.targets.plan import TrainingPlan

# An Estimator gives every replica whole batches of the input function, one after the other (measured: two replicas with
# batches of 16 train as one device does with batches of 32). So does a DatasetCreator; a dataset that fit is given is
# split instead, which would need batches as many times as large as there are replicas.
_WORKERS = "# Every worker draws batches of its own: the batch size is per replica, as an Estimator's is."
_REPLICAS = "# Every replica gets a batch of its own: the batch size is per replica, as an Estimator's is."


def to_workers(plan: TrainingPlan, dataset: str, depth: int) -> str:
    """The dataset of every worker, in a function, for workers that draw batches of their own."""
    return _creator(plan, _WORKERS, dataset, depth)


def to_replicas(plan: TrainingPlan, dataset: str, depth: int) -> str:
    """The dataset of all replicas of one process, in a function, of which each gets whole batches."""
    return _creator(plan, _REPLICAS, dataset, depth)


def _creator(plan: TrainingPlan, comment: str, dataset: str, depth: int) -> str:
    indent = plan.indent * (depth + 1)
    return f"{comment}\n{indent}tf.keras.utils.experimental.DatasetCreator(lambda context: {dataset})"
