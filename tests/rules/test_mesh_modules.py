"""`--style module`: a tf.Module with DVariables, an optimizer by hand and steps in a tf.function, without Keras."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from click.testing import CliRunner

from migrator.cli.program import program as command
from migrator.findings import Finding, Severity
from migrator.migrate import Options, migrate
from migrator.source.reading import Source, decode
from tests.rules.test_mesh_sizes import MIRRORED

PROGRAM = """\
import numpy as np
import tensorflow as tf


def input_fn():
    features = {{"x": np.random.rand(64, 12).astype(np.float32)}}
    return tf.data.Dataset.from_tensor_slices((features, np.zeros(64, np.int32))).batch(8)


def model_fn(features, labels, mode, params):
    {network}
    loss = {loss}
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={metrics})
    train_op = tf.train.{optimizer}.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main():
    estimator = tf.estimator.Estimator(model_fn, params={{"units": 32, "rate": 0.1}})
    estimator.train(input_fn, steps=3)
    print(estimator.evaluate(input_fn))


main()
"""
NETWORK = """units = params["units"]
    net = tf.layers.dense(features["x"], units, activation=tf.nn.relu, name="first")
    logits = tf.layers.dense(tf.nn.tanh(net * params["rate"]), 4, use_bias=False)"""
LOSS = "tf.losses.sparse_softmax_cross_entropy(labels, logits)"
DECAY = "tf.train.exponential_decay(0.1, tf.train.get_global_step(), 2, 0.9)"
ACCURACY = '{"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))}'


def text(
    network: str = NETWORK, loss: str = LOSS, metrics: str = ACCURACY, optimizer: str = "AdamOptimizer(0.1)"
) -> str:
    return PROGRAM.format(network=network, loss=loss, metrics=metrics, optimizer=optimizer)


def modules(text: str, layouts: tuple[str, ...] = (), memory: str = "") -> tuple[str, list[Finding]]:
    source = decode(Path("train.py"), text.encode())
    assert isinstance(source, Source)
    options = Options("dtensor", "module", mesh="model=2", layouts=layouts, device_memory=memory)
    [result] = migrate([source], options)
    return result.text, list(result.findings)


def test_a_program_of_the_core_api() -> None:
    new, findings = modules(text(), ("first.kernel=unsharded,model",))
    ast.parse(new)
    assert not [one for one in findings if one.severity is Severity.MANUAL]
    assert "keras" not in new.lower() and "import importlib" not in new and "make_inputs" not in new
    assert "import tensorflow as tf\nfrom tensorflow.experimental import dtensor\n" in new
    for line in (
        "class Network(tf.Module):",
        "    def __init__(self, params, mesh, layouts):",
        "        self.params = params",
        '        units = params["units"]',
        '        self.first = Dense("first", 12, units, mesh, layouts, activation=tf.nn.relu)',
        '        self.dense = Dense("dense", 32, 4, mesh, layouts, use_bias=False)',
        '        net = self.first(features["x"])',
        '        logits = self.dense(tf.nn.tanh(net * self.params["rate"]))',
        "        return logits",
        "    layouts = {}",
        '    model = Network({"units": 32, "rate": 0.1}, mesh=mesh, layouts=layouts)',
        "    loop = TrainingLoop(model, mesh)",
        "    def train_step(self, batch):",
    ):
        assert f"\n{line}\n" in new, line
    assert new.index("@tf.function\n    def train_step") < new.index("self.model.optimizer.apply_gradients(")


def test_layouts_from_sizes() -> None:
    new, findings = modules(text(), ("auto",), "7KiB")
    assert r'layouts[r"first\.kernel"]' in new and "class Network(tf.Module)" in new
    assert "TFM781" in [one.code for one in findings]


@pytest.mark.parametrize(
    ("optimizer", "made"),
    [
        ("GradientDescentOptimizer(0.1)", "GradientDescent(self.trainable_variables, mesh, learning_rate=0.1)"),
        ("MomentumOptimizer(0.1, 0.9)", "Momentum(self.trainable_variables, mesh, learning_rate=0.1, momentum=0.9)"),
    ],
)
def test_optimizers(optimizer: str, made: str) -> None:
    new, _ = modules(text(optimizer=optimizer))
    assert f"        self.optimizer = {made}\n" in new and "class Adam" not in new


def test_a_program_without_metrics() -> None:
    new, _ = modules(text(loss="tf.losses.mean_squared_error(labels, logits)", metrics="{}"))
    assert "return tf.reduce_mean(tf.math.squared_difference(predictions, labels))" in new
    assert 'return {"loss": sum(losses) / max(len(losses), 1)}' in new and "def correct" not in new
    assert "        return self.model.loss(labels, predictions)\n" in new


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (
            text(NETWORK.replace("32", "8") + "\n    logits = tf.layers.dropout(logits, 0.5)"),
            "`Dropout` is unsupported in a tf.Module",
        ),
        (text(NETWORK.replace("use_bias=False", "kernel_initializer=tf.zeros_initializer()")), "`kernel_initializer`"),
        (
            text(
                "net = features['x']\n    for _ in range(2):\n        net = tf.layers.dense(net, 4)\n    logits = net"
            ),
            "blocks",
        ),
        (text(optimizer="RMSPropOptimizer(0.1)"), "RMSPropOptimizer"),
        (text(optimizer="AdagradOptimizer(0.1)"), "`Adagrad` is unsupported"),
        (text(optimizer=f"AdamOptimizer({DECAY})"), "`learning_rate` of `Adam`"),
        (text(metrics='{"auc": tf.metrics.mean(logits)}'), "metric"),
        (
            text().replace("np.random.rand(64, 12)", "np.load('x.npy')"),
            "the rows of `first.kernel` are not literals",
        ),
        (text().replace("def main", "def dtensor():\n    pass\n\n\ndef main"), "its own name `dtensor`"),
        (MIRRORED.format(shape=12, layers=""), "a TensorFlow 2 program with a MirroredStrategy"),
    ],
)
def test_what_has_no_form_is_told_and_left(program: str, said: str) -> None:
    new, findings = modules(program)
    assert new == program
    blocking = [one for one in findings if one.severity is Severity.MANUAL]
    assert [one.code for one in blocking] == ["TFM783"], findings
    assert said in blocking[0].message


def test_it_is_for_meshes(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(text(), encoding="utf-8")
    assert CliRunner().invoke(command, [str(path), "--style", "module"]).exit_code == 2
    assert (
        CliRunner().invoke(command, [str(path), "--no-cache", "--strategy", "dtensor", "--style", "module"]).exit_code
        < 2
    )
    assert "class Network(tf.Module)" in path.read_text(encoding="utf-8")
