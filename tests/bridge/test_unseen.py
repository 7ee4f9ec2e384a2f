"""Several steps in one call of TensorFlow: what hooks see, write and find is what it is in TensorFlow 1."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.bridge.sides import run_both
from tests.bridge.test_core import close

pytestmark = pytest.mark.tensorflow

PROGRAM = """
if not OLD:
    est.UnseenSteps.slowest = est.UnseenSteps.longest = 1e9  # whatever this machine is doing
    taken, call = [], est.SeveralSteps.__call__
    def counted(self, count, first):
        taken.append(int(count))
        return call(self, count, first)
    est.SeveralSteps.__call__ = counted
x = np.random.RandomState(0).normal(size=(640, 4)).astype(np.float32)
batches = lambda: tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(8)
one_shot = lambda: tf.data.make_one_shot_iterator(batches().repeat()).get_next()

def model_fn(features, labels, mode, params):
    w = tf.get_variable("w", initializer=np.ones([4, 1], np.float32))
    step = tf.train.get_global_step()
    last = tf.get_variable("last", [], tf.int64, tf.zeros_initializer(), trainable=False)
    loss = tf.reduce_mean(tf.square(tf.matmul(features, w) - labels))
    if params.get("nan"):
        loss = tf.where(step < 33, loss, loss * np.nan)
    tf.identity(loss, name="watched")
    steps = {"one": 1, "several": 1 + tf.cast(tf.equal(step, 30), tf.int64), "none": 0}[params.get("moves", "one")]
    with tf.control_dependencies([loss]):
        move = tf.train.AdamOptimizer(params.get("rate", 0.1)).minimize(loss)
        with tf.control_dependencies([move, last.assign(step)]):
            train_op = step.assign_add(steps)
    return est.EstimatorSpec(mode, loss=loss, train_op=train_op)

class Logged(__import__("logging").Handler):
    def emit(self, record):
        lines.append(record.getMessage())

tf.logging.set_verbosity(tf.logging.INFO)
tf.get_logger().addHandler(Logged())
def train(name, input_fn=lambda: batches().repeat(), params={}, hooks=(), **steps):
    global lines
    lines = []
    folder = os.path.join(FOLDER, sys.argv[1] + name)
    config = est.RunConfig(save_checkpoints_steps=25, save_summary_steps=7, log_step_count_steps=20)
    estimator = est.Estimator(model_fn, folder, config, params)
    try:
        estimator.train(input_fn, list(hooks), **steps)
    except Exception as error:
        found[name + " error"] = type(error).__name__
    tf.summary.FileWriterCache.get(folder).flush()
    found[name] = {one: estimator.get_variable_value(one) for one in sorted(estimator.get_variable_names())}
    found[name + " checkpoints"] = sorted(one for one in os.listdir(folder) if one.endswith(".index"))
    found[name + " summaries"] = [
        [event.step, value.simple_value]
        for file in sorted(os.listdir(folder)) if "tfevents" in file
        for event in tf.train.summary_iterator(os.path.join(folder, file))
        for value in event.summary.value if value.tag == "loss"
    ]
    found[name + " log"] = [
        float(line.split(" = ")[1].split(",")[0]) for line in lines if line.startswith("loss =")
    ] + [float(line.split(": ")[1].rstrip(".")) for line in lines if line.startswith("Loss for")]

train("steps", max_steps=130)
train("data that end", batches)
train("an iterator", one_shot, steps=90)
train("not a number", params={"nan": True}, max_steps=60)
train("a step that jumps", params={"moves": "several"}, max_steps=70)
train("a hook of a clock", hooks=[tf.train.LoggingTensorHook(["watched:0"], every_n_secs=1e6)], max_steps=60)
if not OLD:
    found["taken"] = taken
"""
NAMES = ["steps", "data that end", "an iterator", "not a number", "a step that jumps", "a hook of a clock"]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    return run_both(PROGRAM, tmp_path_factory.mktemp("unseen"), ("specs", "config", "estimator", "unseen"))


@pytest.mark.parametrize("name", NAMES)
def test_several_steps_are_those_of_tensorflow_1(name: str, sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    old, new = sides
    for key in [key for key in old if key.startswith(name) and not key.endswith(" summaries")]:
        assert close(old[key], new[key]), f"{key}: {old[key]}\n{new[key]}"
    # In TensorFlow 1, too, the hook reads the step before or behind the update: one in six or seven is written.
    first, second = (dict(side[f"{name} summaries"]) for side in (old, new))
    assert all(close(first[step], second[step]) for step in first.keys() & second.keys())
    steps = list(second)
    assert steps[0] == 1
    assert all(after - before in (6, 7, 8) for before, after in pairwise(steps))
    assert abs(len(first) - len(second)) <= len(first) // 5


def test_they_are_taken(sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """Summaries are written in every seventh step: six are not seen in between, some fewer before other hooks."""
    assert max(sides[1]["taken"]) == 6
    assert len(sides[1]["taken"]) > 40
