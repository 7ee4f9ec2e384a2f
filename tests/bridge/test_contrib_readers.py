"""What tf.contrib.learn.io read from files: batches of examples through queues, as 1.15.5 gives them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bridge.sides import TENSORFLOW1, run_new, run_old
from tests.bridge.test_core import close

pytestmark = pytest.mark.tensorflow

SETUP = """\
    from tensorflow import contrib
    est = contrib.learn.io
"""
MODULES = ("contrib_readers", "specs", "config", "estimator", "training")
NOTED = Path(__file__).with_name("noted") / "contrib_readers.json"
PROGRAM = """
def example(number):
    values = {"a": tf.train.Feature(float_list=tf.train.FloatList(value=[number, number + 0.5])),
              "some": tf.train.Feature(int64_list=tf.train.Int64List(value=list(range(number % 3)))),
              "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[number]))}
    return tf.train.Example(features=tf.train.Features(feature=values)).SerializeToString()


paths = [os.path.join(FOLDER, "part-%d" % part) for part in range(2)]
for part, path in enumerate(paths):
    with tf.python_io.TFRecordWriter(path) as writer:
        for number in range(5):
            writer.write(example(10 * part + number))
with open(os.path.join(FOLDER, "lines"), "w") as file:
    file.write("x\\ny\\nz\\n")
pattern = os.path.join(FOLDER, "part-*")
spec = {"a": tf.FixedLenFeature([2], tf.float32), "some": tf.VarLenFeature(tf.int64),
        "label": tf.FixedLenFeature([], tf.int64)}


def collect(name, build, at_most=20):
    with tf.Graph().as_default():
        tf.set_random_seed(7)
        made = build()
        flat = tf.nest.flatten(made, expand_composites=True)
        found[name + " shapes"] = [one.shape.as_list() if one.shape.rank is not None else None for one in flat]
        batches = []
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            ends = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(session, ends)
            try:
                for _ in range(at_most):
                    batches.append([value.tolist() for value in session.run(flat)])
            except tf.errors.OutOfRangeError:
                pass
            ends.request_stop()
            session.close()
            ends.join(threads, stop_grace_period_secs=5, ignore_live_threads=True)
        return batches


text = lambda one: one.decode().replace(FOLDER, "") if isinstance(one, bytes) else one
for name, build in {
    "records": lambda: est.read_batch_examples(
        pattern, 3, tf.TFRecordReader, randomize_input=False, num_epochs=1,
        parse_fn=lambda one: tf.parse_single_example(one, {"label": tf.FixedLenFeature([], tf.int64)})),
    "lines": lambda: est.read_batch_examples(
        [os.path.join(FOLDER, "lines")], 2, tf.TextLineReader, randomize_input=False, num_epochs=2),
    "keyed": lambda: est.read_keyed_batch_examples(
        os.path.join(FOLDER, "lines"), 2, tf.TextLineReader, False, 1, read_batch_size=2),
    "features": lambda: est.read_batch_features(
        pattern, 4, spec, tf.TFRecordReader, randomize_input=False, num_epochs=1, num_enqueue_threads=1),
    "without end": lambda: est.read_batch_features(
        pattern, 4, spec, tf.TFRecordReader, randomize_input=False, num_enqueue_threads=1)["label"],
}.items():
    given = collect(name, build, 6)
    found[name] = [[[text(one) for one in value] for value in batch] for batch in given]
shuffled = collect("shuffled", lambda: est.read_batch_record_features(pattern, 3, spec, num_epochs=2)["label"])
found["shuffled"] = [[len(batch[0]) for batch in shuffled], sorted(sum((batch[0] for batch in shuffled), []))]
keys = collect("keys", lambda: est.read_keyed_batch_features(
    pattern, 5, spec, tf.TFRecordReader, False, 1, num_enqueue_threads=1)[0])
found["keys"] = [[text(one) for one in batch[0]] for batch in keys]
for name, settings in {"no files": dict(file_pattern=pattern + "none", batch_size=1),
                       "no list": dict(file_pattern=[], batch_size=1),
                       "too many": dict(file_pattern=pattern, batch_size=9, queue_capacity=9),
                       "epochs": dict(file_pattern=pattern, batch_size=1, num_epochs=0)}.items():
    try:
        est.read_batch_examples(reader=tf.TFRecordReader, **settings)
    except ValueError as error:
        found[name] = str(error).replace(FOLDER, "")


def input_of(epochs):
    def input_fn():
        read = est.read_batch_features(pattern, 4, spec, tf.TFRecordReader, False, epochs, num_enqueue_threads=1)
        return read, tf.cast(read.pop("label"), tf.float32)

    return input_fn


def model_fn(features, labels, mode):
    weights = tf.get_variable("weights", [2, 1], initializer=tf.constant_initializer(0.1))
    loss = tf.reduce_mean(tf.square(tf.matmul(features["a"], weights)[:, 0] - labels))
    train_op = tf.train.GradientDescentOptimizer(1e-3).minimize(loss, tf.train.get_global_step())
    made = tf.estimator.EstimatorSpec if OLD else est.EstimatorSpec
    return made(mode, loss=loss, train_op=train_op)


estimator = (tf.estimator.Estimator if OLD else est.Estimator)(model_fn, os.path.join(FOLDER, "model"))
estimator.train(input_of(None), steps=7)
found["trained"] = np.round(estimator.get_variable_value("weights"), 6)
found["evaluated"] = round(float(estimator.evaluate(input_of(1))["loss"]), 4)
"""


def test_batches_noted_from_1_15_5(tmp_path: Path) -> None:
    noted, new = json.loads(NOTED.read_text()), run_new(PROGRAM, tmp_path, MODULES)
    assert not {what: (noted[what], new[what]) for what in noted if not close(noted[what], new[what])}


@pytest.mark.skipif(not TENSORFLOW1, reason="no TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set")
def test_batches_noted_are_those_of_1_15_5(tmp_path: Path) -> None:
    assert close(json.loads(NOTED.read_text()), run_old(PROGRAM, tmp_path, MODULES, SETUP))
