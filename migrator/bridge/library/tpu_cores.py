"""A model_fn on the cores of a TPU: its update runs there in one operation, and its tensors come to the host."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from .data import Data
from .estimator import ModelOfModelFn, _losses_scaled
from .graph import Graph, Session, Variables, as_one_operation
from .specs import ModeKeys


class BatchesOfCores(Data):
    """The batches of an input_fn, divided among the cores of a TPU.

    Args:
        input_fn: called once, for all cores.
        cores: how many there are.
        of_each: whether what the input_fn gives is the batch of one core, and not of all.
        shared: whether all cores are given the same.
        padded_to: the examples that a last batch is filled up to; None: it is not.
    """

    def __init__(self, input_fn, cores, of_each=False, shared=False, padded_to=None, seed=None):
        super().__init__(input_fn, seed=seed, only_features=padded_to is not None)
        self.cores = cores
        self._shared = shared
        self._padded_to = padded_to
        self.count = None  # of the examples of the last batch that were no filling
        if padded_to is not None and self._dataset is not None:
            with self.graph.graph.as_default():
                self._dataset = self._dataset.unbatch().batch(padded_to)
        self._of_each = of_each and padded_to is None
        if not self._of_each and not shared:
            self.spec = tf.nest.map_structure(self._divided_spec, self.spec)

    def _divided_spec(self, spec):
        whole = spec.shape[:1].as_list()[0] if spec.shape.rank else None
        if self._padded_to is not None:
            whole = self._padded_to
        if spec.shape.rank == 0:
            raise ValueError("Features and labels of a TPUEstimator are batches; one is a scalar.")
        part = None if whole is None else whole // self.cores
        shape = None if spec.shape.rank is None else [part, *spec.shape[1:].as_list()]
        return type(spec)(shape, spec.dtype)

    def batch_of(self, iterator):
        """The next batch: the tensors of all cores, one behind the other."""
        if self._of_each:
            return [one for _ in range(self.cores) for one in super(BatchesOfCores, self).batch_of(iterator)]
        flat = super().batch_of(iterator)
        if self._shared:
            return flat * self.cores
        parts = zip(*(self._divided(one) for one in self._packed(flat)), strict=True)
        return [tensor for part in parts for tensor in tf.nest.flatten(list(part), expand_composites=True)]

    def _packed(self, flat):
        """The tensors of a batch, sparse ones whole."""
        return tf.nest.flatten(tf.nest.pack_sequence_as(self.spec, flat, expand_composites=True))

    def _divided(self, tensor):
        if isinstance(tensor, tf.SparseTensor):
            return tf.sparse.split(tensor, self.cores, axis=0)
        count = tf.shape(tensor)[0]
        if self._padded_to is not None:
            if tf.executing_eagerly():
                self.count = int(count)
            tensor = tf.concat([tensor, tf.repeat(tensor[-1:], self._padded_to - count, axis=0)], axis=0)
        elif tf.executing_eagerly() and int(count) % self.cores:
            raise ValueError(
                f"A batch of {int(count)} examples cannot be divided among {self.cores} cores. Give the dataset "
                "`batch(..., drop_remainder=True)`."
            )
        return tf.split(tensor, self.cores)


class ModelOnCores(ModelOfModelFn):
    """A model_fn of a TPUEstimator in one mode, run by all cores; host calls and metrics are computed on the host."""

    def __init__(self, model_fn, data, strategy, seed=None):
        tf.keras.Model.__init__(self, name="model")
        leaves = tf.nest.flatten(data.spec, expand_composites=True)
        cores = data.cores
        specs, structures = [], []  # of each core that the model_fn is called for: of one on a TPU

        def on_core(batch):
            spec = model_fn(*tf.nest.pack_sequence_as(data.spec, batch, expand_composites=True))
            if not hasattr(spec, "eval_metrics"):
                raise ValueError("On a TPU the model_fn has to return a TPUEstimatorSpec.")
            specs.append(spec)
            loss = None if spec.loss is None else tf.reshape(spec.loss, [])
            if spec.mode == ModeKeys.TRAIN:
                with tf.control_dependencies([spec.train_op]):
                    loss = tf.identity(loss)
            calls = [
                _tensors_of(spec.host_call),
                _tensors_of(spec.eval_metrics) if spec.mode == ModeKeys.EVAL else None,
                spec.predictions if spec.mode == ModeKeys.PREDICT else None,
            ]
            found = {"loss": loss, "calls": calls}
            found = tf.nest.map_structure(lambda one: None if one is None else tf.convert_to_tensor(one), found)
            structures.append(found)
            return [one for one in tf.nest.flatten(found) if one is not None]

        def on_cores(*tensors):
            batches = [list(tensors[start : start + len(leaves)]) for start in range(0, len(tensors), len(leaves))]
            given = strategy.experimental_distribute_values_from_function(
                lambda context: batches[context.replica_id_in_sync_group]
            )
            with _losses_scaled(strategy):
                results = strategy.run(on_core, args=(given,))
            return [strategy.experimental_local_results(one) for one in results]

        def on_host(*tensors):
            with variables.under(strategy), strategy.scope(), tf.variable_creator_scope(variables.make):
                self.step = tf.compat.v1.train.get_or_create_global_step()
                tf.compat.v1.add_to_collection("global_step_read_op_cache", self.step.read_value() + 0)
                results = as_one_operation(on_cores, tensors, variables, seed)
            results = [results[start : start + cores] for start in range(0, len(results), cores)]
            return self._on_host(specs[0], structures[0], iter(results), strategy)

        variables = Variables(tf.distribute.get_strategy())
        self.traced = Graph(on_host, leaves * cores, None, seed, variables)
        self.data = data
        self.spec, metrics = self.traced.result
        self.loss = self.spec.loss
        self.train_ops = []  # in what the loss is computed by
        self.metric_values = {key: metrics[key][0] for key in sorted(metrics)}
        self.metric_updates = [update for _, update in metrics.values()]
        self.weights_by_name = variables.by_name
        self.session = Session(self.traced, data.draw, [data.graph])
        self.workers = None

    @staticmethod
    def _on_host(spec, structure, results, strategy):
        """The EstimatorSpec and the metrics, of what the cores gave: for each tensor, that of every core."""
        flat = [None if one is None else next(results) for one in tf.nest.flatten(structure)]
        loss = None if flat[-1] is None else tf.add_n(flat[-1]) / len(flat[-1])
        called = tf.nest.pack_sequence_as(structure["calls"], [one and _whole(one) for one in flat[:-1]])
        spec = spec._replace(loss=loss, train_op=tf.no_op() if spec.mode == ModeKeys.TRAIN else None)
        if spec.host_call is not None:
            spec = spec._replace(host_call=(spec.host_call[0], called[0]))
        if spec.eval_metrics is not None:
            spec = spec._replace(eval_metrics=(spec.eval_metrics[0], called[1]))
        spec = spec._replace(predictions=called[2])
        with strategy.scope():
            scaffold = spec.scaffold_fn() if spec.scaffold_fn else None
        spec = spec._replace(scaffold_fn=lambda: scaffold).as_estimator_spec()
        if spec.mode != ModeKeys.EVAL:
            return spec, {}
        return spec, {"loss": tf.compat.v1.metrics.mean(loss), **spec.eval_metric_ops}

    def run(self, fetches, hooks=(), most=None):
        """See the base class. What a last batch was filled up with is cut off."""
        values, stopped = super().run(fetches, hooks, most)
        if self.spec.mode == ModeKeys.PREDICT and self.data.count is not None:
            values = tf.nest.map_structure(lambda one: one[: self.data.count] if np.ndim(one) else one, values)
        return values, stopped


def _tensors_of(call):
    return None if call is None else call[1]


def _whole(parts):
    """The tensors of all cores, one behind the other."""
    if parts[0].shape.rank == 0:
        raise ValueError(
            f"What comes from the cores of a TPU has to keep its batch dimension, and {parts[0].name} is a scalar: "
            "use `tf.reshape(tensor, [1])`."
        )
    return tf.concat(parts, 0)
