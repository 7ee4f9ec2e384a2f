"""tf.contrib.mixed_precision: steps, scales and names of TensorFlow 1.15.5, gradients that overflow included."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bridge.sides import TENSORFLOW1, run_new, run_old
from tests.bridge.test_core import close

pytestmark = pytest.mark.tensorflow

SETUP = """\
    import tensorflow
"""
MODULES = ("contrib_mixed_precision", "estimator", "specs")
NOTED = Path(__file__).with_name("noted") / "contrib_mixed_precision.json"
PROGRAM = """
mixed = tensorflow.contrib.mixed_precision if OLD else est
BAD = (3, 4, 8)


def run(name, manager, base):
    def model_fn(features, labels, mode):
        kernel = tf.get_variable("kernel", initializer=np.sin(np.arange(6.0)).reshape(2, 3).astype("f"))
        step = tf.train.get_or_create_global_step()
        loss = tf.reduce_sum(tf.square(tf.matmul(features["x"], kernel) - 0.3)) * features["factor"][0]
        optimizer = mixed.LossScaleOptimizer(base(), manager())
        pairs = [(grad * 0.5, variable) for grad, variable in optimizer.compute_gradients(loss)]
        return est.EstimatorSpec(mode, loss=loss, train_op=optimizer.apply_gradients(pairs, step))

    rows = 12
    factors = np.ones(rows, "f")
    factors[list(BAD)] = np.inf
    data = {"x": np.cos(np.arange(2.0 * rows)).reshape(rows, 2).astype("f"), "factor": factors}
    input_fn = lambda: tf.data.Dataset.from_tensor_slices(data).batch(1)
    estimator = est.Estimator(model_fn, os.path.join(FOLDER, sys.argv[1], name))
    # A count of batches: steps whose gradients are not finite do not count.
    estimator.train(input_fn)
    found[name] = {key: estimator.get_variable_value(key) for key in estimator.get_variable_names()}


run("fixed", lambda: mixed.FixedLossScaleManager(64), lambda: tf.train.GradientDescentOptimizer(0.1))
run("grows", lambda: mixed.ExponentialUpdateLossScaleManager(8, 3), lambda: tf.train.AdamOptimizer(0.1))
run("shrinks", lambda: mixed.ExponentialUpdateLossScaleManager(2.0, 100, 1, 2, 0.25),
    lambda: tf.train.MomentumOptimizer(0.1, 0.9))
run("no more", lambda: mixed.ExponentialUpdateLossScaleManager(2.0 ** 126, 2), lambda: tf.train.AdamOptimizer(0.1))
"""


def test_numbers_noted_from_1_15_5(tmp_path: Path) -> None:
    noted, new = json.loads(NOTED.read_text()), run_new(PROGRAM, tmp_path, MODULES)
    assert not {what: (noted[what], new[what]) for what in noted if not close(noted[what], new[what])}


@pytest.mark.skipif(not TENSORFLOW1, reason="no TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set")
def test_numbers_noted_are_those_of_1_15_5(tmp_path: Path) -> None:
    assert close(json.loads(NOTED.read_text()), run_old(PROGRAM, tmp_path, MODULES, SETUP))
