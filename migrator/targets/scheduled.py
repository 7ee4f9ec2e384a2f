"""The parts of a training loop of the program's own that differ on parameter servers.

A coordinator hands each step to a worker that is free (`ClusterCoordinator.schedule`), which draws the next batch of
its own data (`create_per_worker_dataset`). `optimizer.iterations` counts the steps of all workers together, as the
global step of an Estimator did. Without a cluster, and in an evaluator, the same class trains and evaluates in its own
process. Where there are no more batches, `next` raises: the programs that get here repeat their data (TFM742).
"""

from __future__ import annotations

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

STEP = """
    @tf.function
    def distributed_train_step(self, batches):
        losses = self.strategy.run(self.train_step, args=(next(batches),))
        return self.strategy.reduce("SUM", losses, axis=None)
"""

TRAIN = '''
    def train(self, batches, steps):
        """Makes so many steps, each on a worker that is free."""
        for _ in range(steps):
            if self.coordinator is None:
                loss = self.{train_step}(batches)
            else:
                loss = self.coordinator.schedule(self.{train_step}, args=(batches,))
        if self.coordinator is not None:
            self.coordinator.join()
            loss = loss.fetch()
        print("step %d: loss = %.6g" % (self.model.optimizer.iterations.numpy(), loss)){average}{save}
'''
