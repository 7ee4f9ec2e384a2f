"""The parts of a training loop of the program's own that differ on parameter servers.

A coordinator hands a few steps at a time to a worker that is free (`ClusterCoordinator.schedule`), which draws the next
batches of its own data (`create_per_worker_dataset`). `optimizer.iterations` counts the steps of all workers together,
as the global step of an Estimator did. Without a cluster, and in an evaluator, the same class trains and evaluates in
its own process. Where there are no more batches, `next` raises: the programs that get here repeat their data (TFM742).
"""

from __future__ import annotations

# How many steps a worker is given at a time. Measured on 2.21 with one worker and two servers, CPU milliseconds of all
# tasks for a step: 13 to 16 one by one, 7 to 8 with 5, 6 to 7 with 10; the Estimator takes 8.5 to 11.
STEPS_PER_CALL = 5

COORDINATOR = """
        self.coordinator = None
        if isinstance(self.strategy, tf.distribute.ParameterServerStrategy):
            self.coordinator = tf.distribute.coordinator.ClusterCoordinator(self.strategy)"""

# Who evaluates has no workers.
BATCHES = '''
    def batches(self, dataset):
        """Returns an iterator over the batches of a dataset, in this process."""
        return iter(dataset)
'''

OWN_BATCHES = '''
    def own_batches(self, make_dataset):
        """Returns an iterator that draws batches of its own in every worker, as an Estimator's workers do."""

        def of_worker():
            return self.strategy.distribute_datasets_from_function(make_dataset)

        if self.coordinator is None:
            return iter(of_worker())
        return iter(self.coordinator.create_per_worker_dataset(of_worker))
'''

STEPS = '''
    @tf.function
    def train_steps(self, batches, steps):
        """Makes so many steps, a Python number, and returns the loss of the last one."""
        for _ in range(steps):  # written out: in each round of a `tf.range` all servers would wait for each other
            losses = self.strategy.run(self.train_step, args=(next(batches),))
        return self.strategy.reduce("SUM", losses, axis=None)
'''

TRAIN = '''
    def train(self, batches, steps):
        """Makes so many steps, some of them at a time on a worker that is free."""
        for done in range(0, steps, self.steps_per_call):
            count = int(min(self.steps_per_call, steps - done))
            if self.coordinator is None:
                loss = self.train_steps(batches, count)
            else:
                loss = self.coordinator.schedule(self.train_steps, args=(batches, count))
        if self.coordinator is not None:
            self.coordinator.join()
            loss = loss.fetch()
        print("step %d: loss = %.6g" % (self.model.optimizer.iterations.numpy(), loss)){average}{save}
'''
