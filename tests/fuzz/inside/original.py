"""Runs programs of TensorFlow 1: on 1.15, or on the last TensorFlow with Estimator behind the harness's shim.

python original.py JOBS SHIM_FOLDER
"""

import os
import sys
import warnings

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1")
warnings.filterwarnings("ignore")

import tensorflow as real  # noqa: E402

from running import RANDOM, even, patch, pattern, plain, serve  # noqa: E402

tf = real.compat.v1
tf.logging.set_verbosity("ERROR")
_TRUE = real.__version__.startswith("1.")
if _TRUE:
    import tensorflow.contrib  # (takes seconds: once, not in every program)
    from tensorflow.python.keras import backend
else:
    sys.path.append(sys.argv[2])
    import shim
    from keras.src import backend
    from keras.src.initializers import initializers, initializers_v1
from tensorflow.python.data.ops import dataset_ops  # noqa: E402
from tensorflow.python.ops import init_ops, init_ops_v2, nn_ops, random_ops  # noqa: E402
from tensorflow_estimator.python.estimator import estimator as estimators  # noqa: E402


def _initial(self, shape, dtype=None, partition_info=None, **_):
    dtype = dtype or getattr(self, "dtype", None) or tf.float32
    sizes = tf.TensorShape(shape).as_list()
    if partition_info is None:
        return tf.constant(pattern(sizes), dtype=dtype)
    return tf.constant(pattern(sizes, partition_info.var_offset, partition_info.full_shape), dtype=dtype)


def _uniform(original):
    def uniform(shape, minval=0, maxval=None, dtype=tf.float32, seed=None, name=None):
        if tf.as_dtype(dtype).is_integer:
            return original(shape, minval, maxval, dtype, seed, name)
        drawn = tf.py_func(lambda sizes: even(sizes), [shape], tf.float32, stateful=False)
        drawn.set_shape(tf.TensorShape(tf.get_static_value(shape)) if tf.get_static_value(shape) is not None else None)
        return tf.cast(drawn, dtype) * ((1.0 if maxval is None else maxval) - minval) + minval

    return uniform


def _dropped(original):
    def dropout(self, inputs, rate, noise_shape=None, nonce=None):
        return nn_ops.dropout(inputs, rate=rate, noise_shape=noise_shape)

    return dropout


class Original:
    """Notes what every Estimator has trained and evaluated."""

    def __init__(self):
        self.trained = {}
        self.evaluations = []
        self.losses = []
        self.own = set()

    def begin(self):
        """In the program's process, before it."""
        for module in (init_ops, init_ops_v2) if _TRUE else (init_ops, init_ops_v2, initializers, initializers_v1):
            for name in RANDOM:
                patch(getattr(module, name, None), "__call__", lambda _: _initial)
        random_ops.random_uniform = _uniform(random_ops.random_uniform)
        if not _TRUE:
            patch(backend.RandomGenerator, "dropout", _dropped)
            # tf.nn.dropout of 2.x draws without a name that could be patched.
            patch(nn_ops, "_dropout", self._dropout)
        for kind in (dataset_ops.DatasetV1, dataset_ops.DatasetV2):
            kind.shuffle = lambda self, *_, **__: self
        patch(estimators.Estimator, "train", self._train)
        patch(estimators.Estimator, "evaluate", self._evaluated)
        patch(estimators.Estimator, "_train_with_estimator_spec", self._watched)
        if not _TRUE:
            shim.install(real)

    def _dropout(self, original):
        def dropout(x, rate, noise_shape, uniform_sampler, *rest, **options):
            return original(
                x,
                rate,
                noise_shape,
                lambda shape, dtype=tf.float32, **_: random_ops.random_uniform(shape, dtype=dtype),
                *rest,
                **options,
            )

        return dropout

    def _train(self, original):
        def train(estimator, *arguments, **options):
            found = original(estimator, *arguments, **options)
            self.trained[estimator] = self._weights(estimator.model_dir)
            return found

        return train

    def _evaluated(self, original):
        def evaluate(estimator, *arguments, **options):
            found = original(estimator, *arguments, **options)
            self.evaluations.append(plain(found))
            return found

        return evaluate

    def _watched(self, original):
        losses, own = self.losses, self.own

        class Watch(tf.train.SessionRunHook):
            def __init__(self, loss):
                self.loss = loss

            def before_run(self, run_context):
                return tf.train.SessionRunArgs(self.loss)

            def after_run(self, run_context, run_values):
                losses.append(float(run_values.results))

        def train(estimator, spec, hooks, *arguments, **options):
            own.update(variable.op.name for variable in tf.trainable_variables())
            return original(estimator, spec, [*hooks, Watch(spec.loss)], *arguments, **options)

        return train

    def end(self):
        """In the program's process, after it: what is to be compared."""
        weights, steps = zip(*self.trained.values()) if self.trained else ((), ())
        return {"weights": weights, "steps": steps, "evaluations": self.evaluations, "losses": self.losses}

    def _weights(self, folder):
        """The weights by name and the steps of the newest checkpoint."""
        reader = tf.train.load_checkpoint(tf.train.latest_checkpoint(folder))
        found = {name: reader.get_tensor(name) for name in sorted(reader.get_variable_to_shape_map())}
        steps = int(found.pop("global_step"))
        return {name: plain(value) for name, value in found.items() if not self._is_state(name, found)}, steps

    def _is_state(self, name, names):
        # Slots are named below their variables; Adam's powers and Keras's own counters are no weights either.
        if name in self.own:
            return False
        if any(name.startswith(other + "/") for other in names if other != name):
            return True
        return names[name].dtype.kind != "f" or name.rsplit("/", 1)[-1] not in ("moving_mean", "moving_variance")


if __name__ == "__main__":
    serve(Original())
