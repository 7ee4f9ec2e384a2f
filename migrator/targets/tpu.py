"""A TPU: set up first, then the same variables on each core, gradients summed over the cores in every step."""

from __future__ import annotations

from migrator.emit.layout import call
from migrator.targets.plan import Target, TrainingPlan


def _make_strategy(name: str, partitioner: str | None, indent: str) -> str:
    """A TPUEstimator's variables are not split between cores, whatever a partitioner says."""
    lines = [
        f"def {name}(resolver):",
        f'{indent}"""Connects to a TPU and returns its strategy; what was on the TPU is lost."""',
        f"{indent}tf.config.experimental_connect_to_cluster(resolver)",
        f"{indent}tf.tpu.experimental.initialize_tpu_system(resolver)",
        f"{indent}return tf.distribute.TPUStrategy(resolver)",
    ]
    return "\n".join(lines) + "\n"


def _set_up(plan: TrainingPlan) -> list[str]:
    depth = 0 if plan.tpu_flag is None else 1
    resolver = f"{plan.resolver} = tf.distribute.cluster_resolver.TPUClusterResolver"
    lines = [f"{plan.strategy_name} = {plan.make_strategy}({plan.resolver})"]
    if plan.tpu_resolver is not None:
        lines.insert(0, call(resolver, list(plan.tpu_resolver), plan.indent, depth))
    if plan.tpu_flag is None:
        return lines
    return [
        f"if {plan.tpu_flag}:",
        *(plan.indent + line for line in lines),
        "else:",
        f"{plan.indent}{plan.strategy_name} = tf.distribute.get_strategy()",
    ]


# The batch size of a TPUEstimator is that of all cores together, and fit divides the batches that it is given: the
# dataset stays as it is. Not tried on Keras 3, which has no stand-in for what several steps in one execution do there
# (measured: `fit` on two mirrored CPUs fails with steps_per_execution above 1).
TARGET = Target("tpu", replicas=True, counts=True, helper=_make_strategy, set_up=_set_up)
