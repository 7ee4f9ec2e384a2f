"""What stands around the Estimator in a driver: TensorFlow 1 and the new program are run, and the numbers compared."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from migrator.harness.environments import migrated_python, original_python
from tests import warm
from tests.end_to_end.proving import Servers, prove, prove_project
from tests.rules.programs import run

pytestmark = pytest.mark.tensorflow

PROGRAM = """\
import numpy as np
import tensorflow as tf

random = np.random.RandomState(7)
x = random.normal(size=(40, 6)).astype(np.float32)
y = x.sum(axis=1, keepdims=True) / 6


def input_fn():
    return tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(8)


def eval_fn():
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(8)


def model_fn(features, labels, mode):
    outputs = tf.compat.v1.layers.dense(features, 1)
    loss = tf.compat.v1.losses.mean_squared_error(labels, outputs)
    optimizer = tf.compat.v1.train.AdagradOptimizer(0.1)
    train_op = optimizer.minimize(loss, global_step=tf.compat.v1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


{lines}
estimator = tf.estimator.Estimator(model_fn, config={config})
estimator.train(input_fn, steps=5)
estimator.evaluate(eval_fn)
"""

CASES = {
    "session settings": (
        "session = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=1, device_count={'GPU': 0, 'CPU': 2},\n"
        "                                   log_device_placement=False, allow_soft_placement=False)\n"
        "session.intra_op_parallelism_threads = 1\n"
        "session.gpu_options.allow_growth = True\n"
        "session.graph_options.optimizer_options.global_jit_level = tf.compat.v1.OptimizerOptions.ON_1\n",
        "tf.estimator.RunConfig(session_config=session)",
        "tf.config.threading.set_inter_op_parallelism_threads(1)",
    ),
}


@pytest.mark.parametrize("construct", CASES)
def test_construct(construct: str, servers: Servers, tmp_path: Path) -> None:
    lines, config, written = CASES[construct]
    new = prove(PROGRAM.format(lines=lines, config=config), servers, tmp_path)
    assert written in new


OLD = """\
import numpy as np
import tensorflow as tf


def eval_data(x, y):
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(8)


def old_score():
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, [None, 3])
        with tf.compat.v1.variable_scope("old", reuse=tf.compat.v1.AUTO_REUSE):
            w = tf.compat.v1.get_variable("w", [x.shape[1], 2], initializer=tf.compat.v1.ones_initializer())
        y = tf.compat.v1.layers.dense(x @ w, 2, kernel_initializer=tf.compat.v1.constant_initializer(0.5), name="d")
        best = tf.compat.v1.argmax(y * [1.0, 2.0], dimension=1)
        config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1)
        with tf.compat.v1.Session(config=config) as session:
            session.run(tf.compat.v1.global_variables_initializer())
            feed = {x: np.arange(6.0).reshape(2, 3)}
            return [a.tolist() for a in session.run([tf.compat.v1.log(y), best, tf.compat.v1.rsqrt(y)], feed)]
"""


def test_unused_code_still_computes_what_it_did(servers: Servers, tmp_path: Path) -> None:
    text = PROGRAM.format(lines="", config="None").replace(
        "import tensorflow as tf\n", "import old\nimport tensorflow as tf\n"
    )
    text = text.replace("return tf.data.Dataset.from_tensor_slices((x, y)).batch(8)", "return old.eval_data(x, y)")
    new = prove_project({"train.py": text, "old.py": OLD}, "train.py", servers, tmp_path)
    assert "v1.get_variable" in new["old.py"]
    answers = []
    for kind, python in (("original", original_python()), ("migrated", migrated_python())):
        done = warm.run(python, "-c", "import old; print(old.old_score())", cwd=tmp_path / kind)
        assert done.returncode == 0, done.stderr[-2000:]
        answers.append(done.stdout.strip().splitlines()[-1])
    assert answers[0] == answers[1]


IMAGES = """\
import numpy as np
random = np.random.RandomState(3)
images = random.randint(0, 256, (5020, 28, 28)).astype(np.uint8)
labels = random.randint(0, 10, 5020).astype(np.uint8)
"""
AS_FILES = """\
import gzip, struct
for name, many in (("train", 5020), ("t10k", 7)):
    with gzip.open(name + "-images-idx3-ubyte.gz", "wb") as file:
        file.write(struct.pack(">4i", 2051, many, 28, 28) + images[:many].tobytes())
    with gzip.open(name + "-labels-idx1-ubyte.gz", "wb") as file:
        file.write(struct.pack(">2i", 2049, many) + labels[:many].tobytes())
"""
DIGESTS = """\
import hashlib, json
parts = [getattr(data, name) for name in ("train", "validation", "test")]
arrays = [array for part in parts for array in (part.images, part.labels)]
print(json.dumps([(str(a.dtype), a.shape, hashlib.sha1(np.ascontiguousarray(a)).hexdigest()) for a in arrays]))
"""


@pytest.mark.parametrize("more", ["", ", one_hot=True", ", reshape=False, validation_size=10"])
def test_the_images_of_the_tutorials_are_the_same_bits(more: str, tmp_path: Path) -> None:
    python = os.environ.get("TF_MIGRATE_TENSORFLOW1_PYTHON")
    if not python:
        pytest.skip("tf.contrib needs TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set")
    loader = f'tf.contrib.learn.datasets.mnist.read_data_sets("."{more})'
    text = PROGRAM.format(lines=f"data = {loader}", config="None")
    new = run(text)[0]
    helper = new[new.index("def load_mnist") : new.index("def input_fn")]
    old = f"import tensorflow as tf\ndata = {loader}\n"
    stub = "tf.keras.datasets.mnist.load_data = lambda: ((images, labels), (images[:7], labels[:7]))\n"
    made = f"import types\nimport tensorflow as tf\n{helper}{stub}data = load_mnist()\n"
    answers = []
    for interpreter, code in ((python, AS_FILES + old), (str(migrated_python()), made)):
        done = warm.run(interpreter, "-c", IMAGES + code + DIGESTS, cwd=tmp_path)
        assert done.returncode == 0, done.stderr[-2000:]
        answers.append(json.loads(done.stdout.strip().splitlines()[-1]))
    assert answers[0] == answers[1]
