"""Keras as a package of its own: what a program of sessions took of it is below `tf.compat.v1.keras`."""

from __future__ import annotations

import ast
import re
import subprocess
import textwrap
from pathlib import Path

import pytest

from migrator.bridge.project import Bridges, bridge_project
from migrator.bridge.standalone_keras import moved_keras
from migrator.findings import Severity
from migrator.harness.environments import migrated_python
from migrator.project.imports import is_concerned

TRAIN = """\
import tensorflow as tf
from model import network

with tf.Session() as sess:
    x = tf.placeholder(tf.float32, [None, 3])
    y = network(x, sess)
    sess.run(tf.global_variables_initializer())
    print("FOUND", sess.run(y, {x: [[1.0, 2.0, 3.0]]}).tolist())
"""
MODEL = """\
import keras.backend as K
from keras.layers.core import Dense
from keras.utils import np_utils


def network(x, sess):
    K.set_session(sess)
    return Dense(2, kernel_initializer="ones")(x) + np_utils.to_categorical([1], 2)
"""

MOVED = {
    "import keras": "import tensorflow.keras as keras",
    "import keras, numpy as np": "import tensorflow.keras as keras, numpy as np",
    "import keras.layers": "import tensorflow.keras as keras",
    "import keras.backend.tensorflow_backend as KTF": "import tensorflow.keras.backend as KTF",
    "from keras import backend as K": "from tensorflow.keras import backend as K",
    "from keras.utils import np_utils": "from tensorflow.keras import utils as np_utils",
    "from keras.engine.topology import Layer, InputSpec": "from tensorflow.keras.layers import Layer, InputSpec",
    "from keras.engine import Model, Layer": (
        "from tensorflow.keras.models import Model; from tensorflow.keras.layers import Layer"
    ),
    "from keras.layers import (Dense,\n    LSTM as L)": "from tensorflow.keras.layers import (Dense,\n    LSTM as L)",
    "import keras\nx = keras.layers.core.Dense(3).units, keras.__version__": (
        "import tensorflow.keras as keras\nx = keras.layers.Dense(3).units, keras.__version__"
    ),
    "from keras import utils\nx = utils.np_utils.to_categorical": (
        "from tensorflow.keras import utils\nx = utils.to_categorical"
    ),
    "from keras_preprocessing import text": "from keras_preprocessing import text",
    "from .keras import layers": "from .keras import layers",
}


@pytest.mark.parametrize(("before", "after"), MOVED.items(), ids=MOVED)
def test_names_are_below_tensorflow(before: str, after: str) -> None:
    found = moved_keras(before, ast.parse(before))
    assert (found.text, found.left) == (after, ())


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("from keras.layers import Dense, Merge", ("keras.layers.Merge", 1)),
        ("import keras.backend as K\n\nK.image_dim_ordering()", ("keras.backend.image_dim_ordering", 3)),
        ("import keras\nx = keras.legacy.interfaces", ("keras.legacy.interfaces", 2)),
    ],
)
def test_what_tensorflow_has_not_is_told_and_nothing_moves(text: str, left: tuple[str, int]) -> None:
    found = moved_keras(text, ast.parse(text))
    assert (found.text, found.left) == (text, (left,))


def bridged(train: str = TRAIN, model: str = MODEL) -> Bridges:
    return bridge_project({Path("train.py"): train, Path("model.py"): model})


def test_files_of_a_program_of_sessions() -> None:
    found = bridged()
    assert found.texts[Path("model.py")] == MODEL.replace(
        "import keras.backend as K\nfrom keras.layers.core import Dense\nfrom keras.utils import np_utils\n",
        "import keras_estimator  # before TensorFlow: it chooses Keras 2\nimport tensorflow.compat.v1 as tf\n"
        "tf.disable_v2_behavior()\nimport tensorflow.compat.v1.keras.backend as K\n"
        "from tensorflow.compat.v1.keras.layers import Dense\n"
        "from tensorflow.compat.v1.keras import utils as np_utils\n",
    )
    told = {(str(path), one.line, one.code) for path, many in found.findings.items() for one in many}
    assert told == {("model.py", 1, "TFM277"), ("train.py", 4, "TFM199")}


def test_what_is_nowhere_blocks_the_program() -> None:
    found = bridged(model=MODEL.replace("K.set_session(sess)", "K.set_image_dim_ordering('tf')"))
    assert not found.texts
    (blocked,) = found.findings[Path("model.py")]
    assert (blocked.line, blocked.code, blocked.severity) == (7, "TFM157", Severity.MANUAL)
    assert "`keras.backend.set_image_dim_ordering` belongs to Keras 2" in blocked.message


def test_files_with_keras_alone_are_read() -> None:
    assert is_concerned(MODEL.encode()) and not is_concerned(b"import numpy\nkeras = 1\n# import keras\n")


@pytest.mark.tensorflow
def test_the_program_runs(tmp_path: Path) -> None:
    python = migrated_python()
    if python is None:
        pytest.skip("no TensorFlow environments: make environments")
    for path, text in bridged().texts.items():
        (tmp_path / path).write_text(textwrap.dedent(text), encoding="utf-8")
    command = [str(python), "-W", "ignore", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert "FOUND [[6.0, 7.0]]" in done.stdout, done.stderr[-2000:]


@pytest.mark.tensorflow
def test_keras_says_its_version_after_any_import(tmp_path: Path) -> None:
    python = migrated_python()
    if python is None:
        pytest.skip("no TensorFlow environments: make environments")
    program = """\
        import tensorflow as tf
        from tensorflow.compat.v1.keras import layers

        print("VERSION", tf.keras.__version__, layers.Dense(3).units)
        session = tf.Session()
    """
    found = bridge_project({Path("train.py"): textwrap.dedent(program)})
    for path, text in found.texts.items():
        (tmp_path / path).write_text(text, encoding="utf-8")
    assert "tell_version_of_keras" in (tmp_path / "keras_estimator.py").read_text(encoding="utf-8")
    command = [str(python), "-W", "ignore", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert re.search(r"^VERSION 2\.\d+\.\d+ 3$", done.stdout, re.MULTILINE), done.stderr[-2000:]
