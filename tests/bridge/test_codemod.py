"""One file of a bridged program: whole texts before and after, those that stay first."""

from __future__ import annotations

import pytest

from migrator.bridge.codemod import Support, bridge_file

SUPPORT = Support("keras_estimator")


def bridged(text: str, **more: object) -> str:
    found = bridge_file(text, SUPPORT, **more)  # type: ignore[arg-type]
    assert not found.blocking
    return found.text


STAYS = {
    "no TensorFlow": "import numpy as np\n\ntf = np.float32\nprint(tf.estimator)\n",
    "compat.v1 already": "import tensorflow.compat.v1 as tf\n\nx = tf.layers.dense(tf.zeros([1, 1]), 3)\n",
    "compat.v1 spelled out": 'import tensorflow as tf\n\nx = tf.compat.v1.layers.dense\nz = tf.io.gfile.exists("")\n',
    "TensorFlow 2": "import tensorflow as tf\n\ntf.random.set_seed(1)\nx = tf.keras.optimizers.Adam()\n",
    "private and still there": "from tensorflow.python.ops import array_ops\n\nx = array_ops.zeros([3])\n",
    "bridged": """import keras_estimator  # before TensorFlow: it chooses Keras 2
import tensorflow.compat.v1 as tf

x = keras_estimator.Estimator(lambda features: tf.layers.dense(features, 3))
""",
    "a parameter of that name": "import numpy\n\ndef f(estimator):\n    return estimator.EvalSpec\n",
}


@pytest.mark.parametrize("text", STAYS.values(), ids=STAYS)
def test_stays(text: str) -> None:
    assert bridged(text) == text


CHANGES = {
    "everything of modules": (
        """import tensorflow as tf
from tensorflow.python.feature_column.feature_column import *
from tensorflow.contrib.layers import *

def build(features, numeric_columns):
    size = range(3)
    columns = [numeric_column(one) for one in numeric_columns]
    return xavier_initializer(), input_layer(features, columns)
""",
        """import keras_estimator  # before TensorFlow: it chooses Keras 2
import tensorflow.compat.v1 as tf

def build(features, numeric_columns):
    size = range(3)
    columns = [tf.feature_column.numeric_column(one) for one in numeric_columns]
    return keras_estimator.xavier_initializer(), tf.feature_column.input_layer(features, columns)
""",
    ),
    "everything of TensorFlow, which has a range of its own": (
        "from tensorflow import *\n\nx = zeros([3], float32), range(3), len(y)\ny = []\n",
        "import tensorflow.compat.v1 as tf\n\nx = tf.zeros([3], tf.float32), tf.range(3), len(y)\ny = []\n",
    ),
    "a module that has another name": (
        """from tensorflow.python.training import training_util, distribute as lib

training_util.get_global_step(lib.increment_var(x))
""",
        """from tensorflow.python.training import training_util
from tensorflow.python.distribute import distribute_lib as lib

training_util.get_global_step(lib.increment_var(x))
""",
    ),
    "names by both roots": (
        """import tensorflow as tf

tf.compat.v1.keras.backend.set_session(tf.compat.v1.Session(config=tf.compat.v1.ConfigProto()))
x = tf.layers.dense(tf.compat.v1.placeholder(tf.float32, [None, 3]), 3)
""",
        """import keras_estimator  # before TensorFlow: it chooses Keras 2
import tensorflow.compat.v1 as tf

tf.keras.backend.set_session(tf.Session(config=tf.ConfigProto()))
x = tf.layers.dense(tf.placeholder(tf.float32, [None, 3]), 3)
""",
    ),
    "the least difference": (
        "import tensorflow as tf\n\nx = tf.layers.dense(y, 3)\n",
        "import tensorflow.compat.v1 as tf\n\nx = tf.layers.dense(y, 3)\n",
    ),
    "an Estimator": (
        """# -*- coding: utf-8 -*-
"Grüße"
import os
import tensorflow as tf

def model_fn(features, mode):
    "ü"; return tf.estimator.EstimatorSpec(mode, loss=tf.reduce_sum(features["x"]))  # tf.estimator stays in comments

est = (tf.estimator
       .Estimator(model_fn))
""",
        """# -*- coding: utf-8 -*-
"Grüße"
import os
import keras_estimator  # before TensorFlow: it chooses Keras 2
import tensorflow.compat.v1 as tf

def model_fn(features, mode):
    "ü"; return keras_estimator.EstimatorSpec(mode, loss=tf.reduce_sum(features["x"]))  # tf.estimator stays in comments

est = (keras_estimator.Estimator(model_fn))
""",
    ),
    "names that are imported": (
        """import tensorflow
from tensorflow import estimator, layers as L
from tensorflow.estimator import (
    ModeKeys,
    Estimator as Est,
)
from tensorflow.python.estimator.run_config import RunConfig
from tensorflow.contrib.rnn import LSTMCell

e = estimator.Estimator(Est, ModeKeys.TRAIN, RunConfig(), L.dense, LSTMCell)
estimator.inputs.numpy_input_fn({})
estimator.export.ServingInputReceiver
tensorflow.estimator.Estimator
tensorflow.zeros(3)
""",
        """import keras_estimator  # before TensorFlow: it chooses Keras 2
import tensorflow.compat.v1 as tensorflow
import keras_estimator as estimator
from tensorflow.compat.v1 import layers as L
from keras_estimator import (
    ModeKeys,
    Estimator as Est,
)
from keras_estimator import RunConfig
from tensorflow.compat.v1.nn.rnn_cell import LSTMCell

e = estimator.Estimator(Est, ModeKeys.TRAIN, RunConfig(), L.dense, LSTMCell)
estimator.numpy_input_fn({})
estimator.ServingInputReceiver
keras_estimator.Estimator
tensorflow.zeros(3)
""",
    ),
    "names of contrib that are public ones": (
        """import tensorflow as tf
import tensorflow.contrib.rnn as rnn
from tensorflow.contrib.framework import nest

cell = tf.contrib.rnn.DropoutWrapper(rnn.LSTMCell(3))
nest.map_structure(tf.contrib.framework.nest.flatten, tf.contrib.rnn.static_rnn)
with tf.contrib.tpu.bfloat16_scope():
    tf.contrib.cluster_resolver.TPUClusterResolver()
""",
        """import tensorflow.compat.v1 as tf
from tensorflow.compat.v1 import nest

cell = tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.LSTMCell(3))
nest.map_structure(tf.nest.flatten, tf.nn.static_rnn)
with tf.tpu.bfloat16_scope():
    tf.distribute.cluster_resolver.TPUClusterResolver()
""",
    ),
    "modules with another name": (
        """import tensorflow as tf
import tensorflow.contrib.slim as slim
from tensorflow.contrib import layers
from tensorflow.contrib import rnn, learn

contrib = tf.contrib
e = tf.estimator

def f(x):
    cell = rnn.GRUCell(3)
    x = slim.conv2d(x, 3, 3) + layers.fully_connected(x, 3) + contrib.layers.flatten(x)
    x = tf.contrib.layers.python.layers.layers.batch_norm(x)
    return e.EstimatorSpec(e.ModeKeys.TRAIN, x), e.export.PredictOutput(x), contrib.framework.nest.flatten(x)
""",
        """import keras_estimator  # before TensorFlow: it chooses Keras 2
import tensorflow.compat.v1 as tf
import tf_slim as slim
import tf_slim as layers

e = keras_estimator

def f(x):
    cell = tf.nn.rnn_cell.GRUCell(3)
    x = slim.conv2d(x, 3, 3) + layers.fully_connected(x, 3) + slim.flatten(x)
    x = slim.batch_norm(x)
    return e.EstimatorSpec(e.ModeKeys.TRAIN, x), e.PredictOutput(x), tf.nest.flatten(x)
""",
    ),
    "one name for many things": (
        """from tensorflow.estimator import Estimator
import tensorflow as tf

class Own(tf.estimator.Estimator):
    def __init__(self):
        super().__init__(tf.estimator.ModeKeys.EVAL)
""",
        """import keras_estimator  # before TensorFlow: it chooses Keras 2
from keras_estimator import Estimator

class Own(keras_estimator.Estimator):
    def __init__(self):
        super().__init__(keras_estimator.ModeKeys.EVAL)
""",
    ),
    "TensorFlow 2 with Estimators": (
        "import tensorflow as tf\n\ntf.random.set_seed(1)\n"
        "x = tf.estimator.Estimator(f, tf.compat.v1.estimator.RunConfig())\n",
        "import keras_estimator  # before TensorFlow: it chooses Keras 2\nimport tensorflow as tf\n\n"
        "tf.random.set_seed(1)\nx = keras_estimator.Estimator(f, keras_estimator.RunConfig())\n",
    ),
    "switches": (
        """import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
tf.enable_eager_execution()

if __name__ == "__main__":
    tf.disable_eager_execution()
""",
        """import tensorflow.compat.v1 as tf
tf.enable_eager_execution()

if __name__ == "__main__":
    pass
""",
    ),
    "imports in one line and in functions": (
        "import tensorflow as tf, numpy as np; import os\n\n"
        "def f():\n    from tensorflow import layers; return layers, np\n",
        "import tensorflow.compat.v1 as tf, numpy as np; import os\n\n"
        "def f():\n    from tensorflow.compat.v1 import layers; return layers, np\n",
    ),
    "private and elsewhere": (
        """from tensorflow.python.ops.variable_scope import variable
from tensorflow.python.keras.layers import Dense
from tensorflow.contrib.tpu.python.tpu import tpu_function

x = variable(3), Dense(3), tpu_function.get_tpu_context()
""",
        """from tensorflow.compat.v1 import Variable as variable
from tensorflow.compat.v1.keras.layers import Dense
from tensorflow.python.tpu import tpu_function

x = variable(3), Dense(3), tpu_function.get_tpu_context()
""",
    ),
    "optimizers of TPUs": (
        """import tensorflow as tf
from tensorflow.contrib.tpu.python.ops import tpu_ops
from tensorflow.contrib.tpu.python.tpu.tpu_optimizer import CrossShardOptimizer as Sharded

def f(x):
    return tf.tpu.CrossShardOptimizer(Sharded(tf.add)), tpu_ops.cross_replica_sum(x), tpu_ops
""",
        """import keras_estimator  # before TensorFlow: it chooses Keras 2
import tensorflow.compat.v1 as tf
from tensorflow.python.tpu.ops import tpu_ops
from keras_estimator import CrossShardOptimizer as Sharded

def f(x):
    return keras_estimator.CrossShardOptimizer(Sharded(tf.add)), keras_estimator.cross_replica_sum(x), tpu_ops
""",
    ),
    "no name for TensorFlow yet": (
        "from tensorflow.contrib import rnn\n\ndef f():\n    return rnn.LSTMCell(3)\n",
        "import tensorflow.compat.v1 as tf\n\ndef f():\n    return tf.nn.rnn_cell.LSTMCell(3)\n",
    ),
}


@pytest.mark.parametrize(("before", "after"), CHANGES.values(), ids=CHANGES)
def test_changes(before: str, after: str) -> None:
    assert bridged(before) == after
    assert bridged(after) == after


def test_names_that_reach_the_file_through_others() -> None:
    text = "from common import *\n\nx = tf.estimator.Estimator(tf.layers.dense)\n"
    assert bridged(text, given={"tf": "tensorflow"}) == (
        "import keras_estimator  # before TensorFlow: it chooses Keras 2\nfrom common import *\n\n"
        "x = keras_estimator.Estimator(tf.layers.dense)\n"
    )


def test_first_file_of_a_process_imports_the_support_file() -> None:
    text = '"""Doc."""\nimport os\nimport model\nimport tensorflow as tf\n\ntf.app.run(model.main)\n'
    assert bridged(text, first=True) == (
        '"""Doc."""\nimport os\nimport keras_estimator  # before TensorFlow: it chooses Keras 2\nimport model\n'
        "import tensorflow.compat.v1 as tf\n\ntf.app.run(model.main)\n"
    )


@pytest.mark.parametrize(
    ("support", "lines"),
    [
        (
            Support("keras_estimator", "pkg"),
            "from pkg import keras_estimator{}from pkg.keras_estimator import ModeKeys",
        ),
        (Support("keras_estimator", "."), "from . import keras_estimator{}from .keras_estimator import ModeKeys"),
        (Support("keras_estimator", ".."), "from .. import keras_estimator{}from ..keras_estimator import ModeKeys"),
    ],
)
def test_import_of_a_support_file_in_a_package(support: Support, lines: str) -> None:
    text = "from tensorflow.estimator import ModeKeys\n\nx = ModeKeys\n"
    found = bridge_file(text, support, first=True)
    assert found.text == lines.format("  # before TensorFlow: it chooses Keras 2\n") + "\n\nx = ModeKeys\n"


BLOCKS = {
    "every line at once": (
        """import tensorflow as tf
from tensorflow.contrib import crf, nosuch
from tensorflow.examples.tutorials.mnist import input_data

tf.nosuch(1)
crf.nosuch(2); tf.contrib.layers.nosuch(3)
input_data.nosuch("x")
""",
        [(5, "TFM156"), (6, "TFM156"), (6, "TFM156"), (7, "TFM156")],
    ),
    "libraries": (
        "import adanet\nimport tensorflow_hub as hub\n\n"
        "adanet.Estimator()\nx = hub.create_module_spec(f)\ny = hub.load('y')\nz = hub.Module('z')\n",
        [(1, "TFM157"), (5, "TFM157")],
    ),
    "everything of TensorFlow, and what it has not": ("from tensorflow import *\n\nx = zeros(n)\n", [(1, "TFM156")]),
    "everything of two modules": ("from tensorflow import *\nfrom numpy import *\n\nx = zeros(3)\n", [(1, "TFM156")]),
}


@pytest.mark.parametrize(("text", "places"), BLOCKS.values(), ids=BLOCKS)
def test_blocks(text: str, places: list[tuple[int, str]]) -> None:
    assert sorted((one.line, one.code) for one in bridge_file(text, SUPPORT).blocking) == places


def test_names_of_other_versions_that_are_tried_stay() -> None:
    text = (
        "import tensorflow as tf\ntry:\n    f = tf.nn.conv2d_transpose\n    g = tf.nn.nosuch\n"
        "except AttributeError:\n    f = tf.nn.deconv2d\nh = tf.mul(1, tf.sub(2, 3))\n"
    )
    new = bridged(text)
    assert "g = tf.nn.nosuch\n" in new and "f = tf.nn.deconv2d\n" in new  # as in 1.15, which has neither
    assert new.endswith("h = tf.multiply(1, tf.subtract(2, 3))\n")
    for code in ("nosuch", "contrib.bayesflow.X"):  # the second may be one of 1.15
        tried = f"import tensorflow as tf\ntry:\n    f = tf.{code}\nexcept {{}}:\n    pass\n"
        assert bool(bridge_file(tried.format("ImportError"), SUPPORT).blocking)
        assert bool(bridge_file(tried.format("AttributeError"), SUPPORT).blocking) is ("contrib" in code)


def test_modules_of_tensorflow_hub_are_of_the_support_file() -> None:
    text = "import tensorflow_hub as hub\nfrom tensorflow_hub import Module\nx = hub.Module('x')(y)\nz = Module('z')\n"
    made = bridge_file(text, SUPPORT)
    assert not made.blocking and made.used == {"HubModule"}
    assert f"x = {SUPPORT.name}.HubModule('x')(y)\n" in made.text and "HubModule as Module" in made.text


def test_what_is_left_out_is_told() -> None:
    found = bridge_file("import tensorflow as tf\ntf.disable_v2_behavior()\n", SUPPORT)
    assert [(one.line, one.code) for one in found.remarks] == [(2, "TFM168")]


def test_used_names_are_those_of_the_support_file() -> None:
    found = bridge_file(CHANGES["names that are imported"][0], SUPPORT)
    assert found.used == {"Estimator", "ModeKeys", "RunConfig", "numpy_input_fn", "ServingInputReceiver"}
    assert not found.slim
    assert bridge_file(CHANGES["modules with another name"][0], SUPPORT).slim


SESSIONS = """import tensorflow as tf


def export(path):
    saver = tf.train.Saver()
    with tf.Session() as session:
        saver.restore(session, path)


class Demo:
    def ask(self):
        session = tf.Session()
        return session.run(tf.zeros(3))


def right():
    with tf.Session() as session:
        return session.run(tf.placeholder(tf.float32))


def right_as_well():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32)
        return tf.Session().run(x)


def graph_of_its_own():
    graph = tf.Graph()
    return tf.Session(graph=graph)


def model_fn(features):
    return tf.train.Saver(), tf.placeholder(tf.float32)


tf.estimator.Estimator(model_fn).train(right)
"""


def test_sessions_of_the_programs_own() -> None:
    found = bridge_file(SESSIONS, SUPPORT)
    lines = found.text.splitlines()
    marked = [
        lines[i + 1].strip() for i, line in enumerate(lines) if line.strip() == "@keras_estimator.in_default_graph"
    ]
    assert marked == ["def export(path):", "def ask(self):"]
    assert found.remarks == []
    assert found.used == {"Estimator", "in_default_graph"}
    assert found.text.count("in_default_graph") == 2
    assert bridge_file(found.text, SUPPORT).text == found.text


def test_names_of_tensorflow_2_that_moved() -> None:
    """In files of either version: none passes without a word."""
    experimental = "tf.keras.mixed_precision.experimental."
    one = bridge_file(f"import tensorflow as tf\ntf.get_variable('x', [])\n{experimental}set_policy('x')\n", SUPPORT)
    assert "\ntf.compat.v2.keras.mixed_precision.set_global_policy('x')\n" in one.text
    head = (
        "import tensorflow as tf\ntf.keras.optimizers.schedules.CosineDecay(1, 2)\ntf.compat.v1.get_variable('x', [])\n"
    )
    two = bridge_file(f"{head}{experimental}set_policy('x')\n", SUPPORT)
    assert two.text == f"{head}tf.keras.mixed_precision.set_global_policy('x')\n" and two.blocking == []
    for gone in (f"{experimental}LossScaleOptimizer", "tf.keras.experimental.LinearCosineDecay"):
        found = bridge_file(f"{head}{gone}(1)\n", SUPPORT)
        assert [(told.line, told.code) for told in found.blocking] == [(4, "TFM156")]
        assert "is gone in TensorFlow 2.21: " in found.blocking[0].message


DRIVERS = {
    "x = tf.placeholder(tf.float32)": True,
    "session = tf.Session()": True,
    "x = tf.placeholder(tf.float32, [None], 'x')": True,
    "session = tf.Session(graph=tf.Graph())": False,
    "a = tf.zeros([2])\nwith tf.Session() as session:\n  session.run(a)": True,
    "with tf.Session() as session:\n  a = tf.zeros([2])\n  session.run([a, tf.ones([2])])": False,
    "a = tf.zeros([2])\nwith tf.Session():\n  print(a.eval())": True,
    "def look(data):\n  x = data.make_one_shot_iterator().get_next()\n  with tf.Session() as s:\n    s.run(x)": True,
    "class A:\n  def __init__(self):\n    self.x = tf.zeros([2])\n  def show(self):\n    with tf.Session() as s:\n"
    "      return s.run(self.x)": True,
    "class A:\n  def __init__(self):\n    self.x = tf.zeros([2])\n  def show(self):\n    s = tf.Session()\n"
    "    return s.run(self.x)": True,
    "a: tf.Tensor = tf.zeros([2])\nwith tf.Session() as s:\n  b = a\n  s.run(b)": True,
    "a = tf.zeros([2])\nwith tf.Session() as s:\n  s.run(**{'fetches': a})": True,
    "a = tf.zeros([2])\nwith tf.Session() as s:\n  run = s.run\n  run(a)": True,
    "def fetch(s, x):\n  return s.run(x)\na = tf.zeros([2])\nwith tf.Session() as s:\n  fetch(s, a)": True,
    "def fetch(s):\n  return s.run(tf.zeros([2]))\nwith tf.Session() as s:\n  fetch(s)": False,
    "g = tf.Graph()\nwith g.as_default():\n  a = tf.zeros([2])\nwith tf.Session(graph=g) as s:\n  s.run(a)": False,
    "def total():\n  a = tf.zeros([2])\n  with tf.Session() as s:\n    return s.run(a)": False,  # its function alone
    "queue = tf.train.string_input_producer(['x'])": True,
    "def main(_):\n  read()\ndef read():\n  return tf.TFRecordReader()": True,
    "def main(_):\n  x = tf.placeholder(tf.float32)": True,
    "def run():\n  tf.estimator.Estimator(print)\n  tf.get_variable('x', [])": True,
    "def run(e):\n  e.evaluate(inputs())\ndef inputs():\n  return tf.placeholder(tf.float32)": True,
    "def run(e):\n  e.evaluate(inputs)\ndef inputs():\n  return tf.placeholder(tf.float32)": False,
    "class Told:\n  def __init__(self):\n    self.writer = tf.summary.FileWriter('x')": True,
    "def columns():\n  return tf.feature_column.shared_embedding_columns([], 2)": True,
    "with tf.Graph().as_default():\n  tf.summary.FileWriter('x')\n  tf.placeholder(tf.float32)": False,
    "def model_fn(features):\n  tf.get_variable('x', [])\n  return tf.estimator.EstimatorSpec('eval')": False,
}


@pytest.mark.parametrize("code", DRIVERS)
def test_drivers_that_need_the_default_graph(code: str) -> None:
    found = bridge_file(f"import tensorflow as tf\n{code}\n", SUPPORT)
    assert ("build_in_default_graph" in found.used) is DRIVERS[code]
    assert found.remarks == [] and ("import keras_estimator" in found.text) >= DRIVERS[code]


@pytest.mark.parametrize("eager", ["tf.enable_eager_execution()", "tf.keras.estimator.model_to_estimator(1)"])
def test_drivers_that_run_operations_at_once(eager: str) -> None:
    found = bridge_file(f"import tensorflow as tf\n{eager}\nx = tf.placeholder(tf.float32)\n", SUPPORT)
    assert found.eager and "build_in_default_graph" not in found.used
    assert [(one.line, one.code) for one in found.remarks] == [(3, "TFM158")]


def test_modules_of_tensorflow_before_1() -> None:
    text = """import tensorflow as tf
from tensorflow.models.rnn import rnn, rnn_cell, seq2seq
seq = tf.nn.seq2seq
a = tf.nn.seq2seq.basic_rnn_seq2seq(x, y, rnn_cell.GRUCell(3))
b = seq.sequence_loss(a, y, w), seq2seq.sequence_loss_by_example(a, y, w)
c = rnn.rnn(tf.nn.rnn_cell.OutputProjectionWrapper(cell, 2), x)
"""
    assert (
        bridged(text)
        == """import keras_estimator  # before TensorFlow: it chooses Keras 2
import tensorflow.compat.v1 as tf
a = keras_estimator.basic_rnn_seq2seq(x, y, tf.nn.rnn_cell.GRUCell(3))
b = keras_estimator.legacy_sequence_loss(a, y, w), keras_estimator.legacy_sequence_loss_by_example(a, y, w)
c = tf.nn.static_rnn(keras_estimator.OutputProjectionWrapper(cell, 2), x)
"""
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tf.estimator.export.PredictedOutput", "did you mean `tf.estimator.export.PredictOutput`?"),
        ("tf.estimator.BoostedTreesClassifier", "with another library, such as TF Decision Forests"),
        ("tf.estimator.experimental.KMeans", "with tf.keras.Model, and callbacks in the place of hooks"),
        ("tf.contrib.bayesflow.x", "without a successor: replace it by hand"),
        (
            "tf.contrib.distributions.WishartCholesky",
            "with tfp.distributions and tfp.bijectors; `pip install tensorflow-probability`",
        ),
        ("tf.contrib.nosuch.thing", "without a successor: replace it by hand"),
    ],
)
def test_name_that_is_nowhere(name: str, said: str) -> None:
    text = f"import tensorflow as tf\ntf.estimator.Estimator({name}())\n"
    assert [one.message.endswith(said) for one in bridge_file(text, Support("keras_estimator")).blocking] == [True]


def test_monitored_sessions_run_in_the_default_graph() -> None:
    text = """import tensorflow as tf


def rows(input_fn):
    features, labels = input_fn()
    with tf.train.MonitoredTrainingSession() as session:
        return session.run([features, labels])


def in_own_graph(input_fn):
    with tf.Graph().as_default():
        made = input_fn()
        with tf.train.MonitoredTrainingSession() as session:
            return session.run(made)


tf.estimator.Estimator(rows)
"""
    new = bridge_file(text, Support("keras_estimator")).text
    assert "@keras_estimator.in_default_graph\ndef rows(input_fn):" in new
    assert "\n\n\ndef in_own_graph(input_fn):" in new


LATE = """import tensorflow as tf
def model_fn(features, labels, mode):
    one, two = tf.train.AdamOptimizer(0.1), tf.train.RMSPropOptimizer(0.1)
    first, second = tf.reduce_sum(features), tf.reduce_mean(features)
    update = one.minimize(first)
{block}
"""
# The line that the finding names: None where nothing changes variables before the gradients.
WAITING = {
    "    with tf.control_dependencies([update]):\n        last = two.minimize(second)": 7,
    "    both = [tf.group(update)]\n    with tf.control_dependencies(both):\n        g = tf.gradients(second, [])": 8,
    "    both = []\n    both.append(update)\n    with tf.control_dependencies(both):\n"
    "        with tf.name_scope('x'):\n            g, v = zip(*two.compute_gradients(second))": 10,
    "    with tf.control_dependencies([one.apply_gradients([])]):\n        last = two.minimize(loss=second)": 7,
    "    with tf.control_dependencies(tf.get_collection('update_ops')):\n        last = two.minimize(second)": None,
    "    with tf.control_dependencies([first]):\n        last = two.minimize(second)": None,
    "    with tf.control_dependencies([update]):\n        third = tf.abs(features)\n        two.minimize(third)": None,
    "    with tf.control_dependencies([update]):\n        two.minimize(tf.reduce_max(features))": None,
    "    grads = two.compute_gradients(second)\n    with tf.control_dependencies([update]):\n"
    "        two.apply_gradients(grads)": None,
    "    with tf.name_scope('x'):\n        last = two.minimize(second)": None,
}


@pytest.mark.parametrize("block", WAITING)
def test_gradients_that_wait_for_another_update(block: str) -> None:
    text = LATE.replace("{block}", block)
    line = WAITING[block]
    told = [(one.line, one.code) for one in bridge_file(text, SUPPORT).remarks]
    assert told == ([(line, "TFM184")] if line else [])
    resources = bridge_file(text.replace("as tf\n", "as tf; tf.enable_resource_variables()\n", 1), SUPPORT)
    assert "TFM184" not in {one.code for one in resources.remarks}


def test_sessions_that_stay_have_the_variables_of_tensorflow_1() -> None:
    text = LATE.replace("{block}", next(iter(WAITING)))
    assert not bridge_file(text, Support("keras_estimator", graphs=True)).remarks
