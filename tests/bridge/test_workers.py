"""Programs that Horovod distributed, on the workers of TF_CONFIG: whole texts, and the numbers of both."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TypeGuard

import pytest
from ephemeral_port_reserve import LOCALHOST, reserve

from migrator.bridge.assemble import assemble
from migrator.bridge.codemod import Support, bridge_file
from migrator.bridge.project import bridge_project
from migrator.bridge.table import OF_HOROVOD, WORKERS
from migrator.harness.environments import migrated_python, original_python
from migrator.migrate import Options, migrate
from migrator.source.reading import Source
from tests import warm

SUBSTITUTES = Path(__file__).parents[2] / "migrator" / "harness" / "inside" / "substitutes"
SUPPORT = Support("keras_estimator")

BEFORE = """\
import tensorflow as tf
import horovod.tensorflow as hvd


def model_fn(features, labels, mode):
    loss = tf.reduce_mean(features)
    optimizer = hvd.DistributedOptimizer(tf.train.AdamOptimizer(0.1 * hvd.size()), compression=hvd.Compression.fp16)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(loss))


hvd.init()
config = tf.ConfigProto()
config.gpu_options.visible_device_list = str(hvd.local_rank())
estimator = tf.estimator.Estimator(model_fn, "model" if hvd.rank() == 0 else None)
estimator.train(input_fn, steps=100 // hvd.size(), hooks=[hvd.BroadcastGlobalVariablesHook(0)])
"""
AFTER = """\
import keras_estimator  # before TensorFlow: it chooses Keras 2
import tensorflow.compat.v1 as tf


def model_fn(features, labels, mode):
    loss = tf.reduce_mean(features)
    optimizer = keras_estimator.DistributedOptimizer(tf.train.AdamOptimizer(0.1 * keras_estimator.worker_count()), \
compression=keras_estimator.Compression.fp16)
    return keras_estimator.EstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(loss))


keras_estimator.start_worker()
config = tf.ConfigProto()
config.gpu_options.visible_device_list = str(keras_estimator.worker_local_rank())
estimator = keras_estimator.Estimator(model_fn, "model" if keras_estimator.worker_rank() == 0 else None)
estimator.train(input_fn, steps=100 // keras_estimator.worker_count(), \
hooks=[keras_estimator.BroadcastVariablesHook(0)])
"""


def test_nothing_of_horovod_is_left() -> None:
    made = bridge_file(BEFORE, SUPPORT)
    assert not made.blocking
    assert made.text == AFTER


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            "try:\n    import horovod.tensorflow as hvd\nexcept ImportError:\n    hvd = None\n"
            "if hvd is not None:\n    hvd.init()\nn = hvd.size() if hvd else 1\n",
            "import keras_estimator  # before TensorFlow: it chooses Keras 2\n"
            "if keras_estimator is not None:\n    keras_estimator.start_worker()\n"
            "n = keras_estimator.worker_count() if keras_estimator else 1\n",
            id="where it may be missing",
        ),
        pytest.param(
            "def run():\n    import horovod.tensorflow as hvd\n    return hvd.rank()\n",
            "import keras_estimator  # before TensorFlow: it chooses Keras 2\n"
            "def run():\n    return keras_estimator.worker_rank()\n",
            id="imported in a function",
        ),
        pytest.param(
            "from horovod.tensorflow import init, rank\ninit()\nprint(rank())\n",
            "from keras_estimator import start_worker as init, worker_rank as rank\ninit()\nprint(rank())\n",
            id="imported by name",
        ),
    ],
)
def test_ways_to_import_it(before: str, after: str) -> None:
    made = bridge_file(before, SUPPORT)
    assert not made.blocking
    assert made.text == after


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        ("hvd.join()\n", 2),
        ("hvd.elastic.run(f)\n", 2),
        ("optimizer = hvd.DistributedOptimizer(o, op=hvd.Adasum)\n", 2),
        ("from horovod.tensorflow import keras\nkeras.DistributedOptimizer(o)\n", 3),
    ],
)
def test_what_nothing_stands_for_is_told_at_its_line(lines: str, line: int) -> None:
    made = bridge_file(f"import horovod.tensorflow as hvd\n{lines}", SUPPORT)
    assert [(one.line, one.code) for one in made.blocking] == [(line, "TFM157")]


def test_the_module_that_is_handed_on_has_the_names_of_horovod() -> None:
    made = bridge_file("import horovod.tensorflow as hvd\ntrain(hvd, comm=hvd)\n", SUPPORT)
    assert not made.blocking
    assert made.text.endswith("train(keras_estimator.AllWorkers, comm=keras_estimator.AllWorkers)\n")
    values = assemble(made.used)
    body = next(node for node in ast.parse(values).body if isinstance(node, ast.ClassDef) and node.name == WORKERS)
    held = {target.id for node in body.body for target in ast.walk(node) if _is_bound(target)}
    assert held == OF_HOROVOD


def _is_bound(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


HELPER = "import horovod.tensorflow as hvd\n\n\ndef workers():\n    return hvd.size()\n"
BY_HELPER = """\
import tensorflow as tf
{importing}


def model_fn(features, labels, mode, params):
    loss = tf.reduce_mean(features)
    optimizer = {hvd}.DistributedOptimizer(tf.train.AdamOptimizer(0.1))
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(loss))


{hvd}.init()
estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=100)
"""


@pytest.mark.parametrize(
    ("importing", "hvd"),
    [("from utils import hvd", "hvd"), ("import utils", "utils.hvd"), ("from utils import *", "hvd")],
)
def test_horovod_by_way_of_another_file(importing: str, hvd: str) -> None:
    train, utils = Path("train.py"), Path("utils.py")
    texts = {train: BY_HELPER.format(importing=importing, hvd=hvd), utils: HELPER}
    made = bridge_project(texts)
    assert "from keras_estimator import AllWorkers as hvd\n" in made.texts[utils]
    assert "return keras_estimator.worker_count()\n" in made.texts[utils]
    assert f"\n{importing}\n" in made.texts[train]
    assert f"{hvd}.init()\n" in made.texts[train]


@pytest.mark.parametrize(
    ("importing", "hvd"),
    [("from utils import hvd", "hvd"), ("import utils", "utils.hvd"), ("from utils import *", "hvd")],
)
def test_what_nothing_stands_for_in_another_file(importing: str, hvd: str) -> None:
    train, utils = Path("train.py"), Path("utils.py")
    text = BY_HELPER.format(importing=importing, hvd=hvd) + f"{hvd}.join()\n"
    made = bridge_project({train: text, utils: HELPER})
    assert not made.texts
    assert [(one.line, one.code) for one in made.findings[train]] == [(14, "TFM157")]


def test_what_nothing_stands_for_of_a_parameter() -> None:
    train, optimizers = Path("train.py"), Path("optimizers.py")
    text = BEFORE.replace("import horovod", "import optimizers\nimport horovod") + "optimizers.make(hvd)\n"
    asked = "import tensorflow as tf\n\n\ndef make(hvd):\n    hvd.elastic.run(hvd.rank())\n"
    made = bridge_project({train: text, optimizers: asked})
    assert not made.texts
    assert [(one.line, one.code) for one in made.findings[optimizers]] == [(5, "TFM157")]


def _source(name: str, text: str) -> Source:
    return Source(Path(name), text.encode(), text, "utf-8", False)


def test_horovod_of_the_data_alone_has_no_native_form() -> None:
    data = "import horovod.tensorflow as hvd\n\n\ndef shard(data):\n    return data.shard(hvd.size(), hvd.rank())\n"
    train = """\
import tensorflow as tf
import data


def model_fn(features, labels, mode):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features, 1))
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    return data.shard(tf.data.Dataset.from_tensor_slices(([[1.0]] * 8, [[1.0]] * 8))).batch(2)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=4)
"""
    sources = [_source(name, text) for name, text in (("train.py", train), ("data.py", data))]
    native = migrate(sources, Options(style="native"))
    assert [one.text for one in native] == [train, data]
    assert {finding.code for one in native for finding in one.findings} == {"TFM160"}
    made = {one.source.path.name: one for one in migrate(sources, Options(bridge=True))}
    assert "keras_estimator.worker_rank()" in made["data.py"].text
    assert "horovod" not in made["data.py"].text


def test_a_program_that_is_blocked_stays_as_a_whole() -> None:
    text = """\
import tensorflow as tf
import horovod.tensorflow.keras as hvd

hvd.init()
config = tf.ConfigProto()
tf.keras.backend.set_session(tf.Session(config=config))
optimizer = tf.keras.optimizers.Adadelta(lr=1.0 * hvd.size())
"""
    (result,) = migrate([_source("train.py", text)], Options(bridge=True))
    assert result.text == text
    assert [finding.line for finding in result.findings if finding.code == "TFM157"] == [4, 7]


SESSION = """\
import numpy as np
import tensorflow as tf
import horovod.tensorflow as hvd

hvd.init()
rng = np.random.RandomState(0)
data = rng.normal(size=(64, 4)).astype(np.float32)[hvd.rank()::hvd.size()]
x = tf.placeholder(tf.float32, [None, 4])
w = tf.get_variable("w", [4, 1], initializer=tf.constant_initializer(0.5 + hvd.rank()))
count = tf.get_variable("count", [], tf.int32, initializer=tf.zeros_initializer())
loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - tf.reduce_sum(x, 1, keepdims=True)))
mean = hvd.allreduce(loss)
rows = hvd.allgather(tf.fill([hvd.rank() + 1, 1], float(hvd.rank())))
told = hvd.broadcast(count + hvd.rank() + 7, hvd.size() - 1)
optimizer = hvd.DistributedOptimizer(tf.train.AdamOptimizer(0.1 * hvd.size()))
step = tf.train.get_or_create_global_step()
train_op = optimizer.minimize(loss, global_step=step)
hooks = [hvd.BroadcastGlobalVariablesHook(0), tf.train.StopAtStepHook(last_step=12 // hvd.size())]
config = tf.ConfigProto()
config.gpu_options.visible_device_list = str(hvd.local_rank())
with tf.train.MonitoredTrainingSession(hooks=hooks, config=config) as session:
    taken = 0
    while not session.should_stop():
        batch = data[8 * taken % 32:8 * taken % 32 + 8]
        _, own, both = session.run([train_op, loss, mean], feed_dict={x: batch})
        taken += 1
        print("FOUND", hvd.rank(), float(own), float(both))
        if taken == 1:
            print("FOUND", hvd.rank(), session.run([rows, told], {x: batch})[1])
print("END", hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(), taken)
"""


def test_sessions_keep_their_code() -> None:
    path = Path("train.py")
    made = bridge_project({path: SESSION})
    assert "tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\n" in made.texts[path]
    assert "keras_estimator.start_worker()\n" in made.texts[path]
    assert "hvd" not in made.texts[path] and "horovod" not in made.texts[path]
    assert "(TFM186)" in made.findings[path][0].message


def test_only_a_program_of_horovod_is_told_of_its_workers() -> None:
    shared = "import tensorflow as tf\n\n\ndef scaled(x):\n    return tf.log(x)\n"
    alone = "import tensorflow as tf\nfrom shared import scaled\n\nprint(tf.Session().run(scaled(tf.ones([]))))\n"
    several = SESSION.replace("import numpy", "from shared import scaled\nimport numpy")
    texts = {Path("shared.py"): shared, Path("alone.py"): alone, Path("several.py"): several}
    found = bridge_project(texts).findings
    told = {path.stem: "(TFM186)" in one.message for path, many in found.items() for one in many}
    assert told == {"alone": False, "several": True}


# -- the numbers of both --

ESTIMATOR = """\
import os
import numpy as np
import tensorflow as tf
import horovod.tensorflow as hvd


def model_fn(features, labels, mode):
    table = tf.get_variable("table", [10, 3])
    hidden = tf.layers.dense(tf.concat([features["x"], tf.nn.embedding_lookup(table, features["id"])], 1), 5)
    out = tf.layers.dense(tf.nn.relu(hidden), 1)
    loss = tf.losses.mean_squared_error(labels, out)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"mean": tf.metrics.mean(out)})
    optimizer = hvd.DistributedOptimizer(tf.train.MomentumOptimizer(0.01 * hvd.size(), 0.9))
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
    train_op = optimizer.apply_gradients(zip(gradients, variables), tf.train.get_or_create_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    rng = np.random.RandomState(0)
    x = rng.normal(size=(97, 4)).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices(({"x": x, "id": rng.randint(10, size=97)}, x.sum(1, keepdims=True)))
    return data.shard(hvd.size(), hvd.rank()).batch(7).repeat()  # the 7th batch has 7 rows, and 6 at the other


class Losses(tf.train.SessionRunHook):
    def before_run(self, context):
        return tf.train.SessionRunArgs(tf.get_collection("losses")[-1])

    def after_run(self, context, values):
        print("FOUND", hvd.rank(), float(values.results))


hvd.init()
config = tf.ConfigProto()
config.gpu_options.visible_device_list = str(hvd.local_rank())
# Rank 0 goes on from a checkpoint, and the others begin with what it has read.
model_dir = "model" if hvd.rank() == 0 else None
estimator = tf.estimator.Estimator(model_fn, model_dir, tf.estimator.RunConfig(session_config=config))
estimator.train(input_fn, steps=16 // hvd.size(), hooks=[hvd.BroadcastGlobalVariablesHook(0), Losses()])
if hvd.rank() == 0:
    print("FOUND", hvd.rank(), float(estimator.evaluate(input_fn, steps=3)["loss"]))
print("END", hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size())
"""
FIRST = """\
import sys
import numpy as np
import tensorflow.compat.v1 as tf
names = {"table": (10, 3), "dense/kernel": (7, 5), "dense/bias": (5,), "dense_1/kernel": (5, 1), "dense_1/bias": (1,)}
with tf.Graph().as_default(), tf.Session() as session:
    for name, shape in names.items():
        value = np.sin(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape)
        for one, start in ((name, value), (name + "/Momentum", 0 * value)):
            tf.get_variable(one, initializer=start)
    tf.train.create_global_step()
    session.run(tf.global_variables_initializer())
    tf.train.Saver().save(session, sys.argv[1] + "/model.ckpt", 0)
"""


def on_workers(count: int, python: Path, script: Path) -> list[str]:
    """What workers print of what they find, in their order. One is without a TF_CONFIG."""
    if count == 1:
        done = warm.run(python, str(script), cwd=script.parent)
        assert not done.returncode, done.stderr[-3000:]
        return found_in(done.stdout)
    addresses = [f"{LOCALHOST}:{reserve()}" for _ in range(count)]
    running = []
    for index in range(count):
        told = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        environment = {**os.environ, "TF_CONFIG": json.dumps(told), "TF_CPP_MIN_LOG_LEVEL": "3"}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = [python, "-u", script]
        running.append(subprocess.Popen(command, cwd=script.parent, env=environment, text=True, **pipes))
    try:
        ended = [one.communicate(timeout=280) for one in running]
    finally:
        for one in running:
            one.kill()
    assert all(one.returncode == 0 for one in running), [errors[-3000:] for _, errors in ended]
    return found_in("".join(out for out, _ in ended))


def found_in(out: str) -> list[str]:
    return [line for line in out.splitlines() if line.startswith(("FOUND", "END"))]


@pytest.mark.tensorflow
@pytest.mark.parametrize("program", [ESTIMATOR, SESSION], ids=["Estimator", "session"])
@pytest.mark.parametrize("workers", [1, 2])
def test_workers_train_as_processes_of_horovod_did(tmp_path: Path, program: str, workers: int) -> None:
    old, new = original_python(), migrated_python()
    if old is None or new is None:
        pytest.skip("no TensorFlow environments: make environments")
    before, after = tmp_path / "before", tmp_path / "after"
    shutil.copytree(SUBSTITUTES, before)
    # The original runs on 2.15, whose own names are those of TensorFlow 2.
    v1 = program.replace("import tensorflow as tf", "import tensorflow.compat.v1 as tf")
    (before / "train.py").write_text(v1.replace("as tf\n", "as tf\ntf.disable_v2_behavior()\n", 1))
    after.mkdir()
    made = bridge_project({after / "train.py": program})
    assert not any("hvd" in text or "horovod" in text for text in made.texts.values())
    for path, text in made.texts.items():
        path.write_text(text)
    if program is ESTIMATOR:
        for folder in (before, after):
            (folder / "model").mkdir()
            assert not warm.run(old, "-c", FIRST, str(folder / "model")).returncode
    ours, theirs = (on_workers(workers, new, after / "train.py"), on_workers(workers, old, before / "train.py"))
    assert len(ours) == len(theirs) > 12
    number = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
    for one, other in zip(ours, theirs, strict=True):
        assert number.sub("", one) == number.sub("", other)
        found, wanted = ([float(value) for value in number.findall(line)] for line in (one, other))
        assert found == pytest.approx(wanted, rel=2e-5, abs=1e-7), (one, other)
