"""Programs that share files with blocked ones."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import run_project

SHARED = """\
import tensorflow as tf


def read(path):
    with tf.gfile.Open(path) as file:
        return [[float(line)] for line in file]


def table():
    with tf.variable_scope("table"):
        return tf.get_variable("weights", [1, 2])
"""
PROGRAM = """\
import tensorflow as tf

import shared{imports}


def input_fn():
    return tf.data.Dataset.from_tensor_slices((shared.read("a.txt"), [[2.0]])).batch(1)


def model_fn(features, labels, mode):
    logits = {network}
    loss = tf.losses.mean_squared_error(labels, tf.reduce_sum(logits, 1, keepdims=True))
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


if __name__ == "__main__":
    estimator = tf.estimator.Estimator(model_fn)
    estimator.train(input_fn, steps=3)
"""
SESSION = "tf.matmul(features, tf.contrib.boosted_trees.table(shared.table()))"
NATIVE = PROGRAM.format(imports="", network="tf.layers.dense(features, 2)")
BRIDGED = PROGRAM.format(imports="", network="tf.matmul(features, shared.table())")
STUCK = PROGRAM.format(imports="", network=SESSION)


def migrate(**programs: str) -> dict[str, tuple[str, dict[str, str]]]:
    """The programs and what they share, by name: the new text, and the messages of what was said by code."""
    texts = {f"{name}.py": text for name, text in programs.items()} | {"shared.py": SHARED}
    found = run_project(texts, style="auto")
    return {
        path.removesuffix(".py"): (
            text,
            {f.code: f.message for f in findings if f.severity in (Severity.MANUAL, Severity.REVIEW)},
        )
        for path, (text, findings) in found.items()
    }


def test_a_bridged_program_takes_what_it_shares_to_a_spelling_that_both_know() -> None:
    found = migrate(one=BRIDGED, stuck=STUCK)
    assert found["stuck"][0] == STUCK and "TFM203" in found["stuck"][1]
    assert "keras_estimator.Estimator(model_fn)" in found["one"][0] and "TFM155" in found["one"][1]
    assert found["shared"][0] == SHARED.replace("import tensorflow as tf", "import tensorflow.compat.v1 as tf")


def test_a_native_program_stays_native_where_only_names_change_in_what_is_shared() -> None:
    shared = SHARED.partition("\n\ndef table")[0]
    stuck = PROGRAM.format(imports="", network="tf.matmul(features, tf.contrib.boosted_trees.table(tf.ones([1, 2])))")
    found = run_project({"one.py": NATIVE, "stuck.py": stuck, "shared.py": shared}, style="auto")
    assert "tf.keras.layers.Dense" in found["one.py"][0]
    assert "tf.io.gfile.GFile" in found["shared.py"][0] and found["stuck.py"][0] == stuck
    assert "TFM424" in {finding.code for finding in found["shared.py"][1]}


def importing(reads: str) -> str:
    """A blocked program that takes something of another."""
    return PROGRAM.format(imports="\nimport one", network=SESSION).replace("shared.read(", f"{reads} or shared.read(")


START = "try:\n    import horovod.tensorflow as hvd\n    hvd.init()\n    workers = hvd.size()\n"
HOROVOD = f"\nglobal workers\n{START}except ImportError:\n    workers = 0\n\n\ndef input_fn():"


@pytest.mark.parametrize("reads", ["one.workers", "__import__('horovod').size() and one.input_fn"])
def test_but_what_is_asked_for_stays(reads: str) -> None:
    one = BRIDGED.replace("\ndef input_fn():", HOROVOD)
    stuck = importing(reads)
    if "horovod" in reads:
        stuck = stuck.replace("import one", "import horovod\nimport one").replace("__import__('horovod')", "horovod")
    found = migrate(one=one, stuck=stuck)
    assert found["stuck"][0] == stuck
    assert "    workers = keras_estimator.worker_count()\n" in found["one"][0]  # as a bridge, with its workers


def test_a_program_in_which_nothing_stands_in_the_way_is_told_why_it_stays() -> None:
    shared = SHARED.partition("\n\ndef table")[0] + "\n\ndef net(features):\n    return tf.layers.dense(features, 2)\n"
    one = PROGRAM.format(imports="", network="shared.net(features)")
    stuck = PROGRAM.format(imports="", network="tf.Session().run(shared.net(features))")
    found = run_project({"one.py": one, "stuck.py": stuck, "shared.py": shared}, style="native")
    assert [found[name][0] for name in ("one.py", "stuck.py", "shared.py")] == [one, stuck, shared]
    (told,) = found["one.py"][1]
    assert told.code == "TFM114" and "blocked at stuck.py:11" in told.message


ROWS = """\
import tensorflow as tf


def parse(line):
    columns = tf.decode_csv(line, [[0.0], [0.0]])
    return columns[0], columns[1]


def rows(path):
    return tf.data.TextLineDataset(path).map(parse).batch(2)
"""
TRAINED = PROGRAM.format(imports="", network="tf.layers.dense(tf.expand_dims(features, 1), 2)").replace(
    'tf.data.Dataset.from_tensor_slices((shared.read("a.txt"), [[2.0]])).batch(1)', 'shared.rows("a.csv")'
)
BY_HAND = """\
import tensorflow as tf

import shared

x, y = shared.rows("a.csv"){asked}
loss = tf.reduce_mean(tf.cond(tf.reduce_sum(x) > 0.0, lambda: tf.square(tf.get_variable("w", []) * x - y), lambda: y))
train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(train_op)
"""


def test_files_that_decode_csv_serve_a_native_program_and_one_of_sessions() -> None:
    asked = ".make_one_shot_iterator().get_next()"
    texts = {"native.py": TRAINED, "session.py": BY_HAND.format(asked=asked), "shared.py": ROWS}
    found = run_project(texts, style="auto")
    assert "TFM101" in {f.code for f in found["native.py"][1]}
    assert "TFM199" in {f.code for f in found["session.py"][1]}
    shared = found["shared.py"][0]
    # Run on 2.21: without the dataset of TensorFlow 1 the session has no make_one_shot_iterator to call.
    assert "tf.io.decode_csv(line" in shared and "tf.compat.v1.data.TextLineDataset(path)" in shared


def test_what_a_shared_file_asks_of_datasets_is_asked_of_all_of_them() -> None:
    asked = ".make_one_shot_iterator().get_next()"
    rows = f"{ROWS}\n\ndef is_dataset(one):\n    return isinstance(one, tf.data.Dataset)\n"
    texts = {"native.py": TRAINED, "session.py": BY_HAND.format(asked=asked), "shared.py": rows}
    shared = run_project(texts, style="auto")["shared.py"][0]
    # A dataset of TensorFlow 2 is no tf.compat.v1.data.Dataset; the other way round it is.
    assert "isinstance(one, tf.data.Dataset)" in shared and "tf.compat.v1.data.TextLineDataset(path)" in shared


def test_datasets_stay_those_of_tensorflow_2_where_nobody_asks_them_for_iterators() -> None:
    stuck = TRAINED.replace(
        "tf.layers.dense(tf.expand_dims(features, 1), 2)", "tf.contrib.boosted_trees.table(features)"
    )
    found = run_project({"native.py": TRAINED, "stuck.py": stuck, "shared.py": ROWS}, style="auto")
    assert "TFM101" in {f.code for f in found["native.py"][1]}
    assert "tf.data.TextLineDataset(path)" in found["shared.py"][0]
