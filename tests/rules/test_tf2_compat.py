"""Names of tf.compat.v1 among TensorFlow 2 code, and losses that Keras 2 refuses in the steps of replicas."""

from __future__ import annotations

import pytest

from tests.rules.test_tensorflow2 import HEADER, modern

PARTITIONERS = "tf.distribute.experimental.partitioners"
ON_SERVERS = """\
import tensorflow as tf
import tensorflow.compat.v1 as v1
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tf.compat.v1.fixed_size_partitioner(2)", "FixedShardsPartitioner(num_shards=2)"),
        ("v1.fixed_size_partitioner(num_shards=n + 1, axis=0)", "FixedShardsPartitioner(num_shards=n + 1)"),
        (
            "v1.min_max_variable_partitioner(max_partitions=2)",
            "MinSizePartitioner(min_shard_bytes=256 << 10, max_shards=2)",
        ),
        (
            "tf.compat.v1.variable_axis_size_partitioner(16, 0, 8, 4)",
            "MaxSizePartitioner(max_shard_bytes=16, max_shards=4, bytes_per_string=8)",
        ),
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "s = tf.distribute.ParameterServerStrategy(resolver, variable_partitioner={})\n",
        "s = tf.distribute.ParameterServerStrategy(resolver, {})\n",
        "part = {}\ns = tf.distribute.ParameterServerStrategy(resolver, part)\n",
    ],
)
def test_partitioners_of_a_strategy(text: str, old: str, new: str) -> None:
    text = ON_SERVERS + text
    line = 4
    assert modern(text.format(old)) == (text.format(f"{PARTITIONERS}.{new}"), [f"TFM745 {line}"])


@pytest.mark.parametrize(
    "given",
    ["v1.fixed_size_partitioner(2, axis=1)", "v1.fixed_size_partitioner(*a)", "v1.fixed_size_partitioner(2, axis=k)"],
)
def test_partitioners_that_the_strategy_refuses_are_told(given: str) -> None:
    text = ON_SERVERS + f"s = tf.distribute.ParameterServerStrategy(resolver, {given})\n"
    assert modern(text) == (text, ["TFM745 4"])


def test_partitioners_elsewhere_stay() -> None:
    text = ON_SERVERS + "with v1.variable_scope('a', partitioner=v1.fixed_size_partitioner(2)):\n    pass\n"
    assert modern(text)[0] == text


@pytest.mark.parametrize(
    "line",
    [
        "h = tf.compat.v1.layers.dense(x, 3)",
        "cell = v1.nn.rnn_cell.BasicLSTMCell(3)",
        "model.compile(tf.compat.v1.train.AdamOptimizer(0.1), 'mse')",
        "opt = v1.train.AdamOptimizer(0.1)\nmodel.compile(loss='mse', optimizer=opt)",
        "from tensorflow.compat.v1.layers import Dense",
    ],
)
def test_what_keras_3_lacks_chooses_keras_2(line: str) -> None:
    """Measured on 2.21: an AttributeError or a ValueError on Keras 3, and works on Keras 2."""
    text = f"import tensorflow as tf\nimport tensorflow.compat.v1 as v1\nmodel = tf.keras.Sequential()\n{line}\n"
    new, findings = modern(text)
    assert new.startswith(HEADER) and new.endswith(f"{line}\n")
    assert [finding.split()[0] for finding in findings] == ["TFM712"]


@pytest.mark.parametrize(
    "line",
    [
        "model.compile('sgd', loss=v1.losses.mean_squared_error)",
        "opt = v1.train.AdamOptimizer(0.1)\nopt.minimize(loss, var_list=model.variables)",
        "step = v1.train.get_or_create_global_step()",
        "x = v1.keras.layers.Dense(3)",
    ],
)
def test_what_keras_3_has_too_stays(line: str) -> None:
    text = f"import tensorflow as tf\nimport tensorflow.compat.v1 as v1\nmodel = tf.keras.Sequential()\n{line}\n"
    assert modern(text) == (text, [])


def test_older_name_of_several_steps() -> None:
    text = """\
import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse", experimental_steps_per_execution=5)
"""
    assert modern(text) == (text.replace("experimental_", ""), ["TFM710 3"])
    replicas = text.replace("model = ", "strategy = tf.distribute.MirroredStrategy()\nmodel = ")
    new, findings = modern(replicas)
    assert new == replicas.replace("import tensorflow", HEADER + "import tensorflow", 1).replace("experimental_", "")
    assert sorted(findings) == ["TFM710 4", "TFM712 4"]


def test_fit_on_a_tpu_chooses_keras_2() -> None:
    text = """\
import tensorflow as tf
strategy = tf.distribute.TPUStrategy(resolver)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
"""
    assert modern(text) == (text, [])
    new, findings = modern(text + "model.fit(data)\n")
    assert new.startswith(HEADER) and findings == ["TFM712 5"]


LOOP = """\
import tensorflow as tf
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.SGD(0.1)
    loss_object = {loss}


def train_step(inputs):
    x, y = inputs
    with tf.GradientTape() as tape:
        loss = {value}
    optimizer.apply_gradients(zip(tape.gradient(loss, model.weights), model.weights))
    return loss


strategy.run(train_step, args=(batch,))
"""
EACH = "loss_object(y, model(x))"


@pytest.mark.parametrize(
    "loss",
    ["tf.keras.losses.Huber()", "tf.keras.losses.Huber(0.5)", "tf.losses.Huber(reduction='sum_over_batch_size')"],
)
@pytest.mark.parametrize("value", [EACH, f"{EACH} / strategy.num_replicas_in_sync", f"tf.reduce_sum({EACH}) * (1 / 8)"])
def test_a_loss_that_keras_2_refuses_in_a_step_is_told(loss: str, value: str) -> None:
    """It stays on its Keras: on Keras 2 the program would end with a ValueError."""
    text = LOOP.format(loss=loss, value=value)
    assert modern(text) == (text, ["TFM716 12"])


@pytest.mark.parametrize(
    "loss", ["tf.keras.losses.Huber(1.0, 'none')", "tf.losses.Huber(1.0, tf.losses.Reduction.SUM)", "make_loss()"]
)
def test_other_losses_of_steps_choose_keras_2(loss: str) -> None:
    new, findings = modern(LOOP.format(loss=loss, value=f"tf.nn.compute_average_loss({EACH}, global_batch_size=8)"))
    assert new.startswith(HEADER) and [one.split()[0] for one in findings] == ["TFM712"]


@pytest.mark.parametrize(
    "name", ["to_int32", "div", "image.resize_bilinear", "nn.softmax_cross_entropy_with_logits_v2"]
)
def test_functions_of_tensorflow_1_among_code_of_2(name: str) -> None:
    """What is computed from the arguments alone is spelled anew; what belongs to a graph is told."""
    text = f"import tensorflow as tf\n\n\n@tf.function\ndef f(x):\n    return tf.{name}(x)\n"
    assert modern(text) == (text.replace(f"tf.{name}", f"tf.compat.v1.{name}"), ["TFM272 6"])
    graph = text.replace(f"tf.{name}(x)", "tf.get_collection('a')")
    assert modern(graph) == (graph, [])
