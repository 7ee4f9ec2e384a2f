"""The mean over batches of an evaluation's loss, which is what Estimator reports.

`tf_keras` reports the mean over examples: another number where the last batch is partial. Both are summed up here,
so that who compares them can tell a different mean from a different loss.
"""

import weakref

import numpy as np

OF_BATCHES, OF_EXAMPLES = "loss, mean of batches", "loss, mean of examples"


class BatchLosses:
    """Sums the losses of a model's test steps, in one process with one replica."""

    def __init__(self, tf):
        self.tf = tf
        self.sums = weakref.WeakKeyDictionary()
        self.depth = 0

    def measured(self, model, run):
        """The results of `run()`, an evaluation of the model, and the two means of its loss by name.

        The means are left out where they cannot be summed up: several replicas, workers, or a test step of the
        program's own that does not ask `compute_loss`.
        """
        if not self._watch(model):
            return run(), {}
        sums = self.sums[model]
        sums.assign(np.zeros(4))
        self.depth += 1
        try:
            results = run()
        finally:
            self.depth -= 1
        batches, of_batches, examples, of_examples = sums.numpy()
        if not batches or not examples:
            return results, {}
        return results, {OF_BATCHES: float(of_batches / batches), OF_EXAMPLES: float(of_examples / examples)}

    def _watch(self, model):
        if model in self.sums:
            return True
        strategy = getattr(model, "distribute_strategy", None)
        if getattr(model, "_cluster_coordinator", None) is not None or not hasattr(model, "compute_loss"):
            return False
        if strategy is None or strategy.num_replicas_in_sync > 1 or strategy.extended._in_multi_worker_mode():
            return False
        tf, original = self.tf, model.compute_loss
        with tf.init_scope():
            sums = tf.Variable(np.zeros(4), trainable=False)

        def adding(*args, **kwargs):
            loss = original(*args, **kwargs)
            if self.depth:
                value = tf.reduce_mean(tf.cast(loss, tf.float64))  # that of each example, where a model gives it
                given = dict(zip(("x", "y", "y_pred"), args), **kwargs)
                # The output of a model may be its loss, which says nothing of the batch.
                tensors = tf.nest.flatten([given.get(key) for key in ("y_pred", "y", "x")])
                sized = [t for t in tensors if t is not None and t.shape.rank != 0]
                count = tf.cast(tf.shape(sized[0])[0] if sized else 1, tf.float64)
                sums.assign_add(tf.stack([tf.ones_like(value), value, count, count * value]))
            return loss

        self.sums[model] = sums
        model.compute_loss = adding
        model.test_function = None
        return True
