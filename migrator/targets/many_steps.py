"""A train function for `fit` of Keras 2 on a cluster, whose steps of one execution cost the tasks less than its own.

`fit` makes a loop (`tf.range`) of `steps_per_execution`. On parameter servers every server has a part of it, and they
tell each other of each round. Measured on 2.21 with one worker and two servers (a network of seven variables, Adam, one
metric; CPU milliseconds of all tasks for a step): 14 to 17 in a loop of 20 steps, 8 with 10 steps written out; the
Estimator takes 8.5 to 12. What is written out is traced as often: ten steps take ten times as long to trace.

Mirrored workers exchange what the means of the loss and of every metric are made of, in each step, since
`Model.train_step` returns them, and workers of parameter servers read it from them; what `fit` shows are those of the
last step of an execution, which are computed once for it here. Measured on 2.21 with two workers (a network of four
variables, no metric): 5.1 milliseconds a step with 20 in an execution, 2.6 to 3.8 where they are computed once for it;
the Estimator takes 3.5 to 5.
"""

from __future__ import annotations

_HEAD = '''\
def {name}(model):
    """Gives `fit` a function of many steps in which the tasks of a cluster tell each other less than in its own."""
    strategy, results = model.distribute_strategy, model.get_metrics_result
'''
_SERVERS = """\
    if isinstance(strategy, tf.distribute.ParameterServerStrategy):
        coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

        @tf.function
        def train_steps(batches, steps):
            model.get_metrics_result = dict  # of every step none: they would be read from the servers
            for _ in range(steps):  # written out: servers tell each other of each round of a loop
                strategy.run(model.train_step, args=(next(batches),))
            model.get_metrics_result = results
            return results()

        def train_function(batches):
            return coordinator.schedule(train_steps, args=(batches, int(model.steps_per_execution)))

        model.train_function = train_function
"""
_WORKERS = """\
    if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):

        @tf.function
        def train_function(batches):
            model.get_metrics_result = dict  # of every step none: workers would exchange them
            for _ in tf.range(model.steps_per_execution):
                strategy.run(model.train_step, args=(next(batches),))
            model.get_metrics_result = results
            return results()

        model.train_function = train_function
"""


def set_train_function(name: str, indent: str, servers: bool, workers: bool) -> str:
    """The function that gives a compiled model its train function, as source text.

    `servers` says that the strategy may be one of parameter servers, `workers` that it may be one of mirrored workers.
    """
    text = _HEAD.format(name=name) + (_SERVERS if servers else "") + (_WORKERS if workers else "")
    return text.replace("    ", indent)
