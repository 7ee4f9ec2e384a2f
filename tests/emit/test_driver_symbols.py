"""Symbols that drivers use beside the Estimator: data of tutorials, messages, TensorFlow 2 names, TensorFlow Hub."""

from __future__ import annotations

import csv
import logging
import types
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
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


@pytest.mark.parametrize("line", ["", "import numpy as np\n"])
def test_labels_may_be_one_hot(line: str) -> None:
    loader = 'input_data.read_data_sets("d", one_hot=True, reshape=False, validation_size=10)'
    new, _ = run(line + IMPORT + program().replace("estimator = ", f"data = {loader}\nestimator = ", 1))
    numpy_name = "np" if line else "numpy"
    assert f"labels, test_labels = {numpy_name}.eye(10)[labels], {numpy_name}.eye(10)[test_labels]\n" in new
    assert "reshape(-1, 28, 28, 1)" in new and "labels=labels[10:]" in new and "import types\n" in new
    assert ("import numpy\n" in new) is not bool(line)


@pytest.mark.parametrize(
    "code",
    [
        LOADERS["load_dataset"].replace("mnist", "iris"),
        LOADERS["load_dataset"] + ".train.next_batch(3)",
        'input_data.read_data_sets("d", one_hot=bool(1))',
        'input_data.read_data_sets("d", fake_data=True)',
        'input_data.read_data_sets("d", validation_size=int("5"))',
        'input_data.read_data_sets("d", seed=3)',
    ],
)
def test_other_data_are_refused(code: str) -> None:
    text = IMPORT + program().replace("estimator = ", f"data = {code}\nestimator = ", 1)
    assert run(text)[0] == text and "TFM752" in of(Severity.MANUAL, text)


CSV = "tf.contrib.learn.datasets.base.load_csv_with{}_header('a.csv', np.int64, np.float32)"


@pytest.mark.parametrize(("kind", "file"), [("", "2,3,x,y,z\n1,2,3,7\n4,5,6,8\n"), ("out", "1,2,3,7\n4,5,6,8\n")])
def test_tables_are_read_by_a_function_of_the_file(kind: str, file: str, tmp_path: Path) -> None:
    line = f"table = {CSV.format(kind)}\nprint(table.data, table.target)\n"
    text = "import numpy as np\n" + program().replace("estimator = ", f"{line}estimator = ", 1)
    new, _ = run(text)
    wanted = f"load_csv_with{kind}_header"
    assert f"table = {wanted}('a.csv', np.int64, np.float32)\n" in new and "import csv\n" in new
    lines = new[new.index(f"def {wanted}") :].partition("\n\n\n")[0]
    (tmp_path / "a.csv").write_text(file)
    tensorflow = SimpleNamespace(io=SimpleNamespace(gfile=SimpleNamespace(GFile=open)))
    names: dict[str, Any] = {"tf": tensorflow, "np": numpy, "csv": csv, "types": types}
    exec(compile(lines, "reader", "exec"), names)
    table = names[wanted](tmp_path / "a.csv", numpy.int64, numpy.float32)
    assert table.data.dtype == numpy.float32 and table.data.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    assert table.target.dtype == numpy.int64 and table.target.tolist() == [7, 8]


def test_tables_bring_numpy() -> None:
    line = f"table = {CSV.format('').replace('np.', 'tf.').replace('tf.int64', 'int').replace('tf.float32', 'float')}"
    new, _ = run(program().replace("estimator = ", f"{line}\nestimator = ", 1))
    assert "import numpy\n" in new and "data = numpy.zeros(" in new and "('a.csv', int, float)" in new


def test_private_names_of_keras_are_public_ones() -> None:
    imports = "from tensorflow.python.keras import layers\nfrom tensorflow.python.keras.models import Sequential\n"
    network = "net = Sequential([layers.Dense(2, input_shape=(1,))])(net)"
    new, findings = run(
        program(network=network).replace("import tensorflow as tf\n", f"import tensorflow as tf\n{imports}")
    )
    assert not [f for f in findings if f.severity is Severity.MANUAL]
    assert "tf.keras.Sequential([tf.keras.layers.Dense(2" in new.replace("tf.keras.models.", "tf.keras.")
    assert "tensorflow.python" not in new


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


CLOUD = """\
from tensorflow.contrib.training.python.training import hparam
from tensorflow.python.lib.io import file_io

def main(args):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = str(tf.logging.__dict__[args.verbosity] / 10)
    hparams = hparam.HParams(**args.__dict__)
    with file_io.FileIO("names.csv", mode="r") as file:
        print(file.read(), file_io.file_exists("names.csv"), hparams.steps)
"""


def test_the_driver_of_a_sample_of_cloud_ml() -> None:
    """Names behind TensorFlow's interface are the public ones, and levels of the log those of Python's."""
    new, findings = run("import os\n" + program().replace("estimator = ", f"{CLOUD}\n\nestimator = ", 1))
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "str(logging.__dict__[args.verbosity] / 10)" in new and "import logging\n" in new
    assert "hparams = types.SimpleNamespace(**args.__dict__)" in new and "import types\n" in new
    assert 'with tf.io.gfile.GFile("names.csv", mode="r") as file:' in new and "file_io" not in new
    for level in ("DEBUG", "INFO", "WARN", "ERROR", "FATAL"):
        assert LEVELS[level] == logging.__dict__[level]


#: The numbers that TensorFlow 1.15.5 has in `tf.logging`.
LEVELS = {"DEBUG": 10, "INFO": 20, "WARN": 30, "ERROR": 40, "FATAL": 50}
