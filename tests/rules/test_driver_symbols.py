"""Symbols that drivers use beside the Estimator: data of tutorials, messages, TensorFlow 2 names, TensorFlow Hub."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import program, run

LOADERS = {
    "load_dataset": 'tf.contrib.learn.datasets.load_dataset("mnist")',
    "read_data_sets": 'input_data.read_data_sets("MNIST_data")',
}
IMPORT = "from tensorflow.examples.tutorials.mnist import input_data\n"


def of(severity: Severity, text: str) -> list[str]:
    return sorted({f.code for f in run(text)[1] if f.severity is severity})


@pytest.mark.parametrize("name", LOADERS)
def test_mnist_comes_from_keras(name: str) -> None:
    text = IMPORT + program().replace("estimator = ", f"data = {LOADERS[name]}\nx = data.train.images\nestimator = ", 1)
    new, _ = run(text)
    assert "data = load_mnist()\nx = data.train.images\n" in new and "input_data" not in new
    assert "def load_mnist():" in new and "import types\n" in new and "TFM751" in of(Severity.REVIEW, text)


@pytest.mark.parametrize(
    "code",
    [
        LOADERS["load_dataset"].replace("mnist", "iris"),
        LOADERS["load_dataset"] + ".train.next_batch(3)",
        'input_data.read_data_sets("d", one_hot=True)',
    ],
)
def test_other_data_are_refused(code: str) -> None:
    text = IMPORT + program().replace("estimator = ", f"data = {code}\nestimator = ", 1)
    assert run(text)[0] == text and "TFM752" in of(Severity.MANUAL, text)


def test_messages_keep_their_classes() -> None:
    line = 'made = tf.Summary(value=[tf.Summary.Value(tag="a", simple_value=1.0)]), tf.GraphDef()\n'
    new, _ = run(program().replace("estimator = ", f"{line}estimator = ", 1))
    assert 'tf.compat.v1.Summary(value=[tf.compat.v1.Summary.Value(tag="a", simple_value=1.0)])' in new
    assert "tf.compat.v1.GraphDef()" in new


def test_plain_names_mean_tensorflow_2_where_both_are_imported() -> None:
    line = "made = tf.Variable(tf.image.resize(tf.zeros([1, 2, 2, 1]), [4, 4]))\n"
    old = program().replace("estimator = ", f"{line}estimator = ", 1)
    assert "TFM203" in of(Severity.MANUAL, old)
    for name in ("layers", "losses", "train"):
        old = old.replace(f"tf.{name}.", f"tf1.{name}.")
    new, _ = run(
        old.replace("import tensorflow as tf\n", "import tensorflow as tf\nimport tensorflow.compat.v1 as tf1\n")
    )
    assert line in new


def test_modules_of_tensorflow_hub_are_refused() -> None:
    text = "import tensorflow_hub as hub\n" + program("net = hub.Module('handle')(net)")
    assert run(text)[0] == text and "TFM175" in of(Severity.MANUAL, text)
