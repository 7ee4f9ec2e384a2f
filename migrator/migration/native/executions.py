"""How many steps `fit` makes in one execution."""

from __future__ import annotations

from migrator.migration.native.strategies import strategy_of
from migrator.migration.state import GroupState
from migrator.program.training import TrainingProgram
from migrator.rules.executions import (
    STEPS_OF_EXECUTION,
    ends_early,
    epochs_are_executions,
    may_end,
    steps_of_execution,
    steps_on_servers,
)
from migrator.rules.generation import KERAS_2
from migrator.targets.registry import AUTO, TPU

#: What stands in the way of a strategy that the program asks for.
_OF_STRATEGIES = ("TFM704", "TFM707", "TFM708", "TFM721", "TFM790")
#: What may stand in the way of writing a driver anew, and not of leaving it.
_OF_DRIVERS = frozenset(("TFM103", "TFM109", "TFM110", "TFM602"))
#: What a program is made of: symbols that have no home, and need none where it is carried over.
_OF_PROGRAMS = (
    *("tf.estimator.", "tf.contrib.estimator.", "tf.contrib.tpu.", "tf.tpu.", "tf.keras.estimator.", "tf.metrics."),
    *("tf.contrib.distribute.", "tf.distribute.", "tf.contrib.cluster_resolver.", "tf.contrib.learn."),
)
#: Strategies under which several steps in one execution are the same steps, to the last bit (measured).
_SAME_STEPS = ("mirrored", "multi-worker-mirrored", "central-storage")


def takes_steps(state: GroupState, program: TrainingProgram) -> bool:
    """Whether the driver says how many steps `fit` makes in one execution. A lambda would not take that."""
    if executes_apart(state, program):
        return True
    if program.tpu is None or program.tpu.iterations is None or program.model.lambdas or state.loop.own:
        return False
    return strategy_of(state, program) is TPU


def executes_apart(state: GroupState, program: TrainingProgram) -> bool:
    """Whether the steps of an execution depend on the parameter servers that the program finds when it starts."""
    if strategy_of(state, program) is not AUTO or program.model.lambdas or program.train_and_evaluate is None:
        return False
    return 0 < steps_of_servers(state, program) < STEPS_OF_EXECUTION == steps_of_execution(state.project, program)


def many_on_clusters(state: GroupState, program: TrainingProgram) -> bool:
    """Whether `fit` makes several steps in one execution on the clusters that the program may find."""
    return strategy_of(state, program).reads_cluster and (
        executes_apart(state, program) or steps_of_fit(state, program) > 1
    )


def steps_of_servers(state: GroupState, program: TrainingProgram) -> int:
    """How many steps a worker of parameter servers makes in one execution; 0 where it was not looked at."""
    if not strategy_of(state, program).parameter_servers:
        return 0
    if state.loop.own or state.keras is not KERAS_2:
        return 0
    if may_end(state.project, program):
        return 0
    return steps_on_servers(state.project, program)


def steps_of_fit(state: GroupState, program: TrainingProgram) -> int:
    """How many steps `fit` makes in one execution, whatever the driver says."""
    strategy = strategy_of(state, program)
    if program.flowing is not None:
        return 1
    if state.loop.own or not (state.keras.cuts_executions or (strategy.alone and epochs_are_executions(program))):
        return 1
    if strategy.parameter_servers:
        apart = strategy is AUTO and steps_of_servers(state, program) < STEPS_OF_EXECUTION
        return 1 if apart else steps_of_servers(state, program) or 1
    if not strategy.alone and strategy.word not in _SAME_STEPS:
        return 1
    if strategy.creates and ends_early(state.project, program):
        return 1  # an execution whose data end in it is lost: what it has done is not told of
    return steps_of_execution(state.project, program)
