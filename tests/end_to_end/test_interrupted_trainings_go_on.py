"""A training that is interrupted, and what goes on from its newest checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from migrator.harness.session import Session
from tests.end_to_end.proving import Servers, record_both
from tests.rules.programs import run_project

pytestmark = pytest.mark.tensorflow

# The training ends in its fourth step, one step behind the newest checkpoint.
PROGRAM = """\
import tempfile

import numpy as np
import tensorflow as tf

rng = np.random.RandomState(0)
DATA = rng.rand(60, 4).astype(np.float32), rng.rand(60, 1).astype(np.float32)
MODEL_DIR = tempfile.mkdtemp()
EVERY = 3


def input_fn():
    return tf.data.Dataset.from_tensor_slices(DATA).batch(6)


def model_fn(features, labels, mode):
    net = tf.compat.v1.layers.dense(features, 5, activation=tf.nn.tanh)
    loss = tf.compat.v1.losses.mean_squared_error(labels, tf.compat.v1.layers.dense(net, 1))
    optimizer = tf.compat.v1.train.MomentumOptimizer(0.1, 0.9)
    train_op = optimizer.minimize(loss, global_step=tf.compat.v1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


class Interrupt(tf.compat.v1.train.SessionRunHook):
    def begin(self):
        self.step = 0

    def after_run(self, run_context, run_values):
        self.step += 1
        if self.step == 4:
            raise RuntimeError("interrupted")

"""

DRIVER = """
config = tf.estimator.RunConfig(save_checkpoints_steps=EVERY)
first = tf.estimator.Estimator(model_fn, model_dir=MODEL_DIR, config=config)
try:
    first.train(input_fn, hooks=[Interrupt()], max_steps=8)
except RuntimeError as error:
    print(error)
second = tf.estimator.Estimator(model_fn, model_dir=MODEL_DIR, config=config)
second.train(input_fn, max_steps=8)
"""

HANDED = """

def build():
    config = tf.estimator.RunConfig(save_checkpoints_steps=EVERY)
    return tf.estimator.Estimator(model_fn, model_dir=MODEL_DIR, config=config)


try:
    build().train(input_fn, hooks=[Interrupt()], max_steps=8)
except RuntimeError as error:
    print(error)
build().train(input_fn, max_steps=8)
"""

# Three steps, and then five in periods of four: the first one ends what the three began. All batches are alike.
BETWEEN = """

def all_data():
    return tf.data.Dataset.from_tensor_slices(DATA).repeat().batch(60)


config = tf.estimator.RunConfig(save_checkpoints_steps=4)
estimator = tf.estimator.Estimator(model_fn, model_dir=MODEL_DIR, config=config)
estimator.train(all_data, steps=3)
training = tf.estimator.TrainSpec(all_data, max_steps=8)
tf.estimator.train_and_evaluate(estimator, training, tf.estimator.EvalSpec(input_fn, steps=None))
"""

ORDERED = """

def shuffled():
    data = tf.data.Dataset.from_tensor_slices(DATA).repeat().shuffle(60, seed=5)
    return data.filter(lambda features, labels: features[0] < 0.9).batch(6)


config = tf.estimator.RunConfig(tf_random_seed=7, save_checkpoints_steps=3)
estimator = tf.estimator.Estimator(model_fn, model_dir=MODEL_DIR, config=config)
"""

# Every training reads its data from their start, in the order of the seed.
SHUFFLED = f"""{ORDERED}
for _ in range(2):
    estimator.train(shuffled, steps=3)
"""

# Behind an evaluation, the training goes on in its data.
PERIODS = f"""{ORDERED}
training = tf.estimator.TrainSpec(shuffled, max_steps=6)
tf.estimator.train_and_evaluate(estimator, training, tf.estimator.EvalSpec(shuffled, steps=2))
"""


def written(text: str, folder: Path, style: str = "native", loop: str = "fit", keras: str = "2") -> tuple[Path, Path]:
    """The original and the migrated program, written into folders of their own."""
    results = run_project({"train.py": text}, style=style, loop=loop, keras=keras)
    assert results["train.py"][0] != text, results["train.py"][1]
    for kind, files in (("original", {"train.py": text}), ("migrated", {n: new for n, (new, _) in results.items()})):
        (folder / kind).mkdir()
        for name, content in files.items():
            (folder / kind / name).write_text(content, encoding="utf-8")
    return folder / "original" / "train.py", folder / "migrated" / "train.py"


@pytest.mark.parametrize(
    ("driver", "style", "says"),
    [(DRIVER, "native", "save_freq="), (HANDED, "bridge", "keras_estimator")],
    ids=["driver", "handed"],
)
def test_the_training_goes_on_from_the_newest_checkpoint(
    driver: str, style: str, says: str, servers: Servers, tmp_path: Path
) -> None:
    """Three steps, the one that is lost, the same again from the checkpoint, and the rest: the losses say which."""
    programs = written(PROGRAM + driver, tmp_path, style)
    assert says in programs[1].read_text(encoding="utf-8")
    original, migrated, _ = record_both(servers, *programs, tmp_path)
    before = [step.loss for step in original.steps]
    assert len(before) == len(migrated.steps) == 9
    np.testing.assert_allclose([step.loss for step in migrated.steps], before, rtol=1e-5)
    # The model that goes on has layers with other numbers; its variables are those of the first one all the same.
    assert migrated.states[5].keys() == migrated.states[1].keys()


@pytest.mark.parametrize(
    ("driver", "steps"), [(BETWEEN, 8), (SHUFFLED, 6), (PERIODS, 6)], ids=["between", "shuffled", "periods"]
)
def test_trainings_on_data_without_an_end(driver: str, steps: int, servers: Servers, tmp_path: Path) -> None:
    """As many steps as the Estimator makes, on the same batches: the losses say which."""
    programs = written(PROGRAM + driver, tmp_path)
    new = programs[1].read_text(encoding="utf-8")
    assert "steps_per_epoch=3" in new and ".take(" not in new and "CountedSteps" not in new
    original, migrated, _ = record_both(servers, *programs, tmp_path)
    before = [step.loss for step in original.steps]
    assert len(before) == len(migrated.steps) == steps
    np.testing.assert_allclose([step.loss for step in migrated.steps], before, rtol=1e-5)


RATED = PROGRAM.replace("labels, mode)", "labels, mode, params)").replace("Optimizer(0.1", 'Optimizer(params["rate"]')
AT_RATES = """
for rate in (0.1, 0.001):
    estimator = tf.estimator.Estimator(model_fn, model_dir=MODEL_DIR, params={"rate": rate})
    estimator.train(input_fn, steps=3)
"""
HANDED_AT_RATES = """

def go_on(rate):
    estimator = tf.estimator.Estimator(model_fn, model_dir=MODEL_DIR, params={"rate": rate})
    return train(estimator)


def train(estimator):
    return estimator.train(input_fn, steps=3)


go_on(0.1)
go_on(0.001)
"""

CASES = {
    "fit": (RATED + AT_RATES, "native", "fit", 2),
    "loop": (RATED + AT_RATES, "native", "custom", 2),
    "handed": (RATED + HANDED_AT_RATES, "bridge", "fit", 2),
    "keras 3": (RATED + AT_RATES, "native", "fit", 3),
}


@pytest.mark.parametrize("case", CASES)
def test_it_goes_on_at_the_rate_that_the_program_gives_now(
    case: str, session_for: Callable[[int], Session], tmp_path: Path
) -> None:
    """A checkpoint of Keras has the rate, too: it is not taken. The losses of later steps tell the rate."""
    text, style, loop, keras = CASES[case]
    opened = session_for(keras)
    programs = written(text, tmp_path, style, loop, str(keras))
    original, migrated, _ = record_both((opened.original, opened.migrated), *programs, tmp_path)
    before = [step.loss for step in original.steps]
    assert len(before) == 6
    np.testing.assert_allclose([step.loss for step in migrated.steps], before, rtol=1e-5)
