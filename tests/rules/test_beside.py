"""Code beside the training program that nothing runs."""

from __future__ import annotations

import ast

import pytest

from migrator.findings import Severity
from tests.rules.programs import program, run, run_project

OLD = '''\
def old_layer(x, size):
    """As it was."""
    with tf.variable_scope("old", reuse=tf.AUTO_REUSE):
        w = tf.get_variable("w", [x.shape[1], size])  # one
    return tf.layers.dense(tf.nn.dropout(x @ w, 0.5), tf.argmax(w, dimension=1), name="d")


class OldModel(object):
    def run(self):
        with tf.Session(config=tf.ConfigProto()) as session:
            tf.logging.info(session.run(tf.log(old_layer(tf.placeholder(tf.float32, [None, 3]), 2))))


'''


def beside(code: str) -> str:
    return program().replace("estimator = ", f"{code}estimator = ", 1)


def codes(text: str, severity: Severity) -> list[str]:
    return sorted({f.code for f in run(text)[1] if f.severity is severity})


def test_unused_code_stays_and_is_respelled() -> None:
    text = beside(OLD)
    new, _ = run(text)
    assert codes(text, Severity.MANUAL) == [] and codes(text, Severity.REVIEW) == ["TFM171"]
    ast.parse(new)
    for line in (
        '    """As it was."""\n',
        'with tf.compat.v1.variable_scope("old", reuse=tf.compat.v1.AUTO_REUSE):\n',
        'w = tf.compat.v1.get_variable("w", [x.shape[1], size])  # one\n',
        "return tf.compat.v1.layers.dense(tf.compat.v1.nn.dropout(x @ w, 0.5), tf.compat.v1.argmax(w, dimension=1),",
        "with tf.compat.v1.Session(config=tf.compat.v1.ConfigProto()) as session:\n",
        "tf.compat.v1.logging.info(session.run(tf.math.log(old_layer(tf.compat.v1.placeholder(tf.float32, [None, 3]),",
    ):
        assert line in new
    assert run(new)[0] == new


def test_unused_code_that_is_no_trouble_is_migrated_as_ever() -> None:
    assert "return tf.math.log(x)" in run(beside("def log(x):\n    return tf.log(x)\n\n\n"))[0]


def test_gone_symbols_in_unused_code_are_said() -> None:
    text = beside("def old(x):\n    return tf.contrib.seq2seq.TrainingHelper(x, 3)\n\n\n")
    assert codes(text, Severity.MANUAL) == [] and codes(text, Severity.REVIEW) == ["TFM171", "TFM172"]
    assert "return tf.contrib.seq2seq.TrainingHelper(x, 3)" in run(text)[0]


USED = {
    "called": "print(old_layer)\n",
    "by another": "def use():\n    return OldModel()\n\n\nuse()\n",
    "as a word": 'print("old_layer")\n',
    "as an attribute": "import os\nos.old_layer()\n",
    "looked up": "print(globals()['old' + '_layer'])\n",
    "decorated": "import atexit\n\n\n@atexit.register\ndef f():\n    return tf.placeholder(tf.int32)\n\n\n",
}


@pytest.mark.parametrize("name", USED)
def test_code_that_may_run_blocks(name: str) -> None:
    text = beside(OLD + USED[name])
    assert "TFM203" in codes(text, Severity.MANUAL)
    assert run(text)[0] == text


def test_code_that_another_file_names_blocks() -> None:
    texts = {"train.py": beside("import old\n"), "old.py": "import tensorflow as tf\n\n\n" + OLD}
    found = run_project(texts)
    assert all(f.severity is not Severity.MANUAL for f in found["old.py"][1])
    assert "tf.compat.v1.get_variable" in found["old.py"][0]
    found = run_project({**texts, "other.py": "from old import old_layer\n\nold_layer(1, 2)\n"})
    assert found["old.py"][0] == texts["old.py"]


def test_a_symbol_alone_on_its_line_goes() -> None:
    text = beside("tf.metrics.precision\n")
    assert codes(text, Severity.MANUAL) == [] and "precision" not in run(text)[0]


def test_the_same_name_in_files_that_do_not_import_this_one_says_nothing() -> None:
    unused = "def old(x):\n    return tf.placeholder(x)\n\n\n"
    files = {"a/train.py": beside(unused), "b/tools.py": "import tensorflow as tf\n\n\ndef old(x):\n    return x\n"}
    assert "tf.compat.v1.placeholder(x)" in run_project(files)["a/train.py"][0]
    files["a/other.py"] = "import train\n\ntrain.old(3)\n"
    assert run_project(files)["a/train.py"][0] == files["a/train.py"]


BUILT = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


def model_fn(features, labels, mode):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features, 1))
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main(model_dir):
    estimator = tf.estimator.Estimator(model_fn, model_dir=model_dir)
    estimator.train(input_fn)


if __name__ == "__main__":
    main("m")
"""
TEST = """

class TrainTest(tf.test.TestCase):
    def test_input_fn(self):
        with self.test_session() as session:
            self.assertEqual(session.run(tf.log(tf.placeholder_with_default([1.0], [1]))).shape, (1,))
"""


def test_a_test_of_something_else_is_left_alone() -> None:
    new, findings = run_project({"train.py": BUILT + TEST})["train.py"]
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "TFM118" in [f.code for f in findings]
    assert "session.run(tf.math.log(tf.compat.v1.placeholder_with_default([1.0], [1])))" in new
