"""MNIST of the tutorials in a bridged program: the arrays and the batches of TensorFlow 1.15.5."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from migrator.harness.environments import migrated_python
from tests.bridge.sides import FOOT, HEAD, LIBRARY, NEW, TENSORFLOW1, run_both
from tests.bridge.test_codemod import bridged

FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
PROGRAM = """
def shown(data):
    return [data.num_examples, data.images[:2], data.labels[:3], data.epochs_completed]

folder = os.path.join(FOLDER, "data")
one = est.read_data_sets(folder, one_hot=True, validation_size=5, seed=3)
found["parts"] = [shown(part) for part in one]
found["batches"] = [one.train.next_batch(7) for _ in range(5)] + [shown(one.train)]
tf.set_random_seed(1)
two = est.read_data_sets(folder, dtype=tf.uint8, reshape=False, validation_size=0)
found["bytes"] = shown(two.train), [two.train.next_batch(9, shuffle=False) for _ in range(4)]
found["fake"] = est.read_data_sets(folder, fake_data=True, one_hot=True).train.next_batch(2, fake_data=True)
"""
OLD_SETUP = """\
    from tensorflow.contrib.learn.python.learn.datasets import mnist as est
"""


def write_files(folder: Path) -> tuple[Any, Any]:
    """Twenty-three images of 3 by 4 to train with and six to test with, in MNIST's own format."""
    folder.mkdir()
    random = np.random.RandomState(0)
    arrays = []
    for count in (23, 6):
        arrays += [random.randint(0, 256, (count, 3, 4)), random.randint(0, 10, count)]
    for name, array in zip(FILES, arrays, strict=True):
        head = np.array([0x800 + array.ndim, *array.shape], ">i4").tobytes()
        (folder / f"{name}.gz").write_bytes(gzip.compress(head + array.astype(np.uint8).tobytes()))
    return arrays[0], arrays[1]


@pytest.mark.tensorflow
@pytest.mark.skipif(not TENSORFLOW1, reason="TensorFlow 1.15 is not here: TF_MIGRATE_TENSORFLOW1_PYTHON")
def test_arrays_and_batches_are_those_of_tensorflow_1(tmp_path: Path) -> None:
    write_files(tmp_path / "data")
    old, new = run_both(PROGRAM, tmp_path, ("mnist",), OLD_SETUP)
    assert old == new and old["batches"][4] != old["batches"][0]


@pytest.mark.tensorflow
def test_parts_are_of_the_files(tmp_path: Path) -> None:
    images, labels = write_files(tmp_path / "data")
    script = tmp_path / "program.py"
    script.write_text(
        HEAD + "if OLD:\n    pass\n" + NEW.format(library=str(LIBRARY), modules=("mnist",)) + PROGRAM + FOOT
    )
    python = migrated_python()
    assert python is not None
    subprocess.run([python, script, "new", tmp_path], check=True, timeout=300, capture_output=True)
    found = json.loads((tmp_path / "new.json").read_text())
    assert [part[0] for part in found["parts"]] == [18, 5, 6]
    assert np.allclose(found["parts"][1][1], images[:2].reshape(2, 12) / 255)
    assert np.argmax(found["parts"][0][2], axis=1).tolist() == labels[5:8].tolist()
    assert found["batches"][5][3] == 1  # 35 of 18 examples
    assert found["bytes"][0][1] == images[:2, :, :, np.newaxis].tolist()
    assert found["bytes"][1][2][1] == [*labels[18:], *labels[:4]]
    assert found["fake"][1] == [[1] + [0] * 9] * 2


def test_the_module_of_the_tutorials_is_the_support_file() -> None:
    text = "import tensorflow as tf\nfrom tensorflow.examples.tutorials.mnist import input_data\n\n"
    text += 'data = input_data.read_data_sets("folder")\ntf.estimator.Estimator(print)\n'
    new = bridged(text)
    assert 'data = keras_estimator.read_data_sets("folder")' in new and "input_data" not in new
