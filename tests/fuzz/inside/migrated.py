"""Runs migrated programs on TensorFlow 2 with Keras 2.

python migrated.py JOBS
"""

import os
import sys
import warnings

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1", TF_USE_LEGACY_KERAS="1")
warnings.filterwarnings("ignore")

import tensorflow as tf  # noqa: E402
import tf_keras  # noqa: E402
from tensorflow.python.data.ops import dataset_ops  # noqa: E402
from tensorflow.python.ops import init_ops, init_ops_v2, nn_ops, random_ops  # noqa: E402
from tf_keras.src import backend  # noqa: E402
from tf_keras.src.engine import training  # noqa: E402
from tf_keras.src.initializers import initializers, initializers_v1  # noqa: E402

from running import RANDOM, even, patch, pattern, plain, serve  # noqa: E402

tf.get_logger().setLevel("ERROR")


def _initial(self, shape, dtype=None, partition_info=None, partition_shape=None, partition_offset=None, **_):
    sizes = tf.TensorShape(shape).as_list()
    if partition_shape is not None:
        values = pattern(partition_shape, partition_offset, sizes)
    elif partition_info is not None:
        values = pattern(sizes, partition_info.var_offset, partition_info.full_shape)
    else:
        values = pattern(sizes)
    return tf.constant(values, dtype=dtype or tf.float32)


def _uniform(original):
    def uniform(shape, minval=0, maxval=None, dtype=tf.float32, seed=None, name=None):
        if tf.as_dtype(dtype).is_integer:
            return original(shape, minval, maxval, dtype, seed, name)
        known = tf.get_static_value(tf.convert_to_tensor(shape))
        drawn = tf.numpy_function(even, [shape], tf.float32, stateful=False)
        drawn.set_shape(None if known is None else [int(size) for size in known])
        return tf.cast(drawn, dtype) * ((1.0 if maxval is None else maxval) - minval) + minval

    return uniform


def _dropped(original):
    def dropout(self, inputs, rate, noise_shape=None, nonce=None):
        return tf.nn.dropout(inputs, rate=rate, noise_shape=noise_shape)

    return dropout


def _sampled(original):
    def dropout(x, rate, noise_shape, uniform_sampler, *rest, **options):
        def sampler(shape, dtype=tf.float32, **_):
            return random_ops.random_uniform(shape, dtype=dtype)

        return original(x, rate, noise_shape, sampler, *rest, **options)

    return dropout


class Migrated:
    """Notes what every Keras model has trained and evaluated."""

    def __init__(self):
        self.models = []
        self.evaluations = []
        self.losses = []

    def begin(self):
        """In the program's process, before it."""
        for module in (initializers, initializers_v1, init_ops, init_ops_v2):
            for name in RANDOM:
                patch(getattr(module, name, None), "__call__", lambda _: _initial)
        random_ops.random_uniform = _uniform(random_ops.random_uniform)
        patch(backend.RandomGenerator, "dropout", _dropped)
        patch(nn_ops, "_dropout", _sampled)
        for kind in (dataset_ops.DatasetV1, dataset_ops.DatasetV2):
            kind.shuffle = lambda self, *_, **__: self
        patch(training.Model, "fit", self._trained)
        patch(training.Model, "evaluate", self._evaluated)

    def _trained(self, original):
        losses = self.losses

        class Watch(tf_keras.callbacks.Callback):
            def on_train_batch_end(self, batch, logs=None):
                losses.append(float((logs or {}).get("loss", float("nan"))))

        def fit(model, *arguments, **options):
            if not any(model is other for other in self.models):
                self.models.append(model)
            options["callbacks"] = [*(options.get("callbacks") or ()), Watch()]
            return original(model, *arguments, **options)

        return fit

    def _evaluated(self, original):
        def evaluate(model, *arguments, return_dict=False, **options):
            # By name in any case: the names that a model tells are not always those of its results.
            found = original(model, *arguments, return_dict=True, **options)
            self.evaluations.append(plain(found))
            if return_dict:
                return found
            return list(found.values()) if len(found) > 1 else found["loss"]

        return evaluate

    def end(self):
        """In the program's process, after it: what is to be compared."""
        weights, steps = [], []
        for model in self.models:
            counters = {id(variable) for metric in model.metrics for variable in metric.variables}
            own = [variable for variable in model.weights if id(variable) not in counters]
            weights.append({"%s (%d)" % (v.name, i): plain(v.numpy()) for i, v in enumerate(own)})
            steps.append(int(model.optimizer.iterations.numpy()))
        return {"weights": weights, "steps": steps, "evaluations": self.evaluations, "losses": self.losses}


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    serve(Migrated())
