"""Constructs of Estimator programs on a mesh of devices: rates, clipped gradients, losses, metrics."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from migrator.harness.recording import Recording
from tests.end_to_end.meshes import WEIGHTS, Seen, assert_same, begin, run_all, write
from tests.end_to_end.proving import Servers, record

pytestmark = pytest.mark.tensorflow

PROGRAM = """
import numpy as np
import tensorflow as tf


def input_fn():
    random = np.random.RandomState(0)
    values = random.normal(size=(35, 6)).astype(np.float32)
    labels = {labels}
    features = {{"values": values, "weight": random.randint(0, 3, size=(len(values), 1)).astype(np.float32)}}
    return tf.data.Dataset.from_tensor_slices((features, labels)).batch(8)


{network}


def model_fn(features, labels, mode):
    output = network(features["values"], mode == tf.estimator.ModeKeys.TRAIN)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={{"output": output, "sign": tf.sign(output)}})
    {loss}
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={metrics})
    step = tf.train.get_global_step()
    {train}
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main():
    estimator = tf.estimator.Estimator(model_fn)
    estimator.train(input_fn)
    print(estimator.evaluate(input_fn)["loss"])
    np.save("PREDICTED", [answer["output"] for answer in estimator.predict(input_fn)])


if __name__ == "__main__":
    main()
"""
DENSE = """def network(values, training):
    net = tf.layers.dense(values, 8, activation=tf.nn.tanh)
    return tf.layers.dense(net, {units})"""
MINIMIZED = "train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())"
UPDATED = f"""with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    {MINIMIZED}"""
APPLIED = "train_op = optimizer.apply_gradients(zip(gradients, variables), global_step=tf.train.get_global_step())"
GRADIENTS = "gradients, variables = zip(*optimizer.compute_gradients(loss))"
MOMENTUM = f"optimizer = tf.train.MomentumOptimizer(0.05, 0.9)\n{MINIMIZED}"
HELPERS = """def block(values, units, training):
    net = tf.layers.dense(values, units, use_bias=False)
    net = tf.layers.batch_normalization(net, momentum=0.8, training=training)
    return tf.nn.relu(net)


def network(values, training):
    net = block(values, 8, training)
    return tf.layers.dense(net, {units})"""
IMAGES = """def network(values, training):
    net = tf.reshape(tf.layers.dense(values, 50), [-1, 5, 5, 2])
    net = tf.layers.conv2d(net, 4, 3, padding="same", use_bias=False)
    net = tf.nn.relu(tf.layers.batch_normalization(net, momentum=0.8, training=training))
    net = tf.layers.flatten(tf.layers.average_pooling2d(net, 2, 2))
    net = tf.layers.dense(net, 8)
    return tf.layers.dense(net, {units})"""
DROPPING = """def network(values, training):
    net = tf.layers.dropout(tf.layers.dense(values, 8), 0.25, training=training)
    return tf.layers.dense(net, {units})"""
NORMALIZED = tuple(f"batch_normalization/{name}" for name in ("gamma", "beta", "moving_mean", "moving_variance"))
NUMBERS = "values.sum(axis=1, keepdims=True)"
POSITIVE = f"({NUMBERS} > 0.0).astype(np.float32)"


@dataclass(frozen=True)
class Case:
    """A program: its labels, the lines of its loss, its metrics, the lines that train, its network and units.

    `weights` are the names of all weights, of which the kernel `divided` is divided over the mesh's second dimension.
    """

    labels: str
    loss: str
    metrics: dict[str, str]
    train: str
    network: str = DENSE
    units: int = 1
    weights: tuple[str, ...] = WEIGHTS
    divided: str = "dense/kernel"

    @property
    def text(self) -> str:
        listed = ", ".join(f'"{name}": {metric}' for name, metric in self.metrics.items())
        loss, train = (text.replace("\n", "\n    ") for text in (self.loss, self.train))
        network = self.network.format(units=self.units)
        return PROGRAM.format(network=network, labels=self.labels, loss=loss, metrics=f"{{{listed}}}", train=train)


SQUARES = Case(
    labels=NUMBERS,
    loss="loss = tf.losses.mean_squared_error(labels, output)",
    metrics={"error": "tf.metrics.mean_absolute_error(labels, output)"},
    train=MOMENTUM,
)
CASES = {
    "a rate that decays, weighted examples, a block in a function": Case(
        labels=POSITIVE,
        loss='weight = features["weight"]\nloss = tf.losses.sigmoid_cross_entropy(labels, output, weights=weight)',
        metrics={
            "area": "tf.metrics.auc(labels, tf.sigmoid(output))",
            "precision": "tf.metrics.precision(labels, output > 0.1)",
            "recall": "tf.metrics.recall(labels, output > 0.1, weights=weight)",
            "accuracy": "tf.metrics.accuracy(labels, tf.round(tf.sigmoid(output)), weights=weight)",
            "weight": "tf.metrics.mean(weight)",
        },
        train="rate = tf.train.exponential_decay(0.1, step, 2, 0.5, staircase=True)\n"
        f"optimizer = tf.train.MomentumOptimizer(rate, 0.9)\n{UPDATED}",
        network=HELPERS,
        weights=(WEIGHTS[0], *NORMALIZED, *WEIGHTS[2:]),
    ),
    "a warm-up by hand, a global norm, a loss of all variables and of the step": Case(
        labels=NUMBERS,
        loss="loss = tf.losses.huber_loss(labels, output, delta=0.5)\n"
        "loss += 0.01 * tf.add_n([tf.nn.l2_loss(variable) for variable in tf.trainable_variables()])\n"
        "loss += 0.1 * tf.reduce_sum(tf.square(output)) / (1.0 + tf.to_float(tf.train.get_global_step()))",
        metrics={
            "deviation": "tf.metrics.root_mean_squared_error(labels, output)",
            "squares": "tf.metrics.mean_squared_error(labels, output)",
            "below": "tf.metrics.percentage_below(output, 0.1)",
        },
        train="done = tf.to_float(step)\n"
        "decayed = tf.train.polynomial_decay(0.1, step, 5, 0.01)\n"
        "rate = tf.cond(step < 2, lambda: 0.1 * (done + 1.0) / 2.0, lambda: decayed)\n"
        f"optimizer = tf.train.AdamOptimizer(rate, epsilon=1e-3)\n{GRADIENTS}\n"
        f"gradients, _ = tf.clip_by_global_norm(gradients, 0.3)\n{APPLIED}",
    ),
    "RMSProp in pieces, values, logarithms, images": Case(
        labels=POSITIVE,
        loss="loss = tf.losses.log_loss(labels, tf.sigmoid(output))",
        metrics={
            "curve": 'tf.metrics.auc(labels, tf.sigmoid(output), curve="PR")',
            "sensitivity": "tf.metrics.sensitivity_at_specificity(labels, tf.sigmoid(output), 0.5)",
            "misses": "tf.metrics.false_negatives(labels, output > 0.0)",
        },
        train="rate = tf.train.piecewise_constant(step, [1, 3], [0.02, 0.01, 0.005])\n"
        f"optimizer = tf.train.RMSPropOptimizer(rate)\n{GRADIENTS}\n"
        "gradients = [tf.clip_by_value(gradient, -0.05, 0.05) for gradient in gradients]\n"
        f"with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):\n    {APPLIED}",
        network=IMAGES,
        weights=(*WEIGHTS[:2], "conv2d/kernel", *NORMALIZED, *WEIGHTS[2:], "dense_2/kernel", "dense_2/bias"),
        divided="dense_1/kernel",
    ),
    "Ftrl with a cosine, norms, classes": Case(
        labels="(values.sum(axis=1) > 0.0).astype(np.int64)",
        loss="loss = tf.losses.softmax_cross_entropy(tf.one_hot(labels, 3), output, label_smoothing=0.1)",
        metrics={
            "accuracy": "tf.metrics.accuracy(labels, tf.argmax(output, 1))",
            "hits": "tf.metrics.mean(tf.to_float(tf.equal(tf.argmax(output, 1), labels)))",
            "two": "tf.metrics.recall_at_k(labels, output, 2)",
        },
        train="optimizer = tf.train.FtrlOptimizer(\n"
        "    tf.train.linear_cosine_decay(0.2, step, 5),\n"
        "    l1_regularization_strength=0.01,\n"
        "    l2_regularization_strength=0.02,\n"
        f")\n{GRADIENTS}\n"
        f"gradients = [tf.clip_by_norm(gradient, 0.2) for gradient in gradients]\n{APPLIED}",
        units=3,
    ),
}
MIRRORED = """estimator = tf.estimator.Estimator(
        model_fn,
        config=tf.estimator.RunConfig(
            train_distribute=tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"]),
            session_config=tf.ConfigProto(device_count={"CPU": 2}),
        ),
    )"""


def mirrored() -> str:
    """Each replica draws a batch for a step: of eleven the last has no other beside it, and is left out."""
    text = SQUARES.text.replace("size=(35, ", "size=(44, ").replace(".batch(8)", ".batch(4)")
    return text.replace("estimator = tf.estimator.Estimator(model_fn)", MIRRORED)


def test_programs_on_a_mesh(servers: Servers, tmp_path: Path) -> None:
    """On 2 x 2 devices with a divided kernel, the last on two devices too: all in one process."""
    programs = [(case.text, case) for case in CASES.values()] + [(mirrored(), SQUARES)]
    originals: list[Recording] = []
    runs: dict[str, tuple[Path, list[tuple[str, int]] | None, Path | None]] = {}
    for number, (text, case) in enumerate(programs):
        path = tmp_path / f"original{number}.py"
        path.write_text(text.replace("PREDICTED", f"{tmp_path}/original{number}.npy"), encoding="utf-8")
        originals.append(record(servers[0], "original", path, tmp_path / f"run{number}", None))
        assert len(originals[-1].steps) == 5
        initial = begin(originals[-1], tmp_path / f"initial{number}.npz", case.weights)
        if number == len(programs) - 1:
            two = write(text.replace("PREDICTED", f"{tmp_path}/two{number}.npy"), tmp_path, f"two{number}.py")
            runs[f"two{number}"] = two, [("batch", 2)], initial
        kernel, bias = (case.divided.replace("kernel", kind) for kind in ("kernel", "bias"))
        layouts = [re.escape(kernel.replace("/", ".")) + "=unsharded,model"]
        layouts += [re.escape(bias.replace("/", ".")) + "=model"] if bias in case.weights else []
        new = text.replace("PREDICTED", f"{tmp_path}/both{number}.npy")
        both = write(new, tmp_path, f"both{number}.py", "model=2", tuple(layouts))
        runs[f"both{number}"] = both, [("batch", 2), ("model", 2)], initial
    dropping = replace(SQUARES, network=DROPPING).text.replace("PREDICTED", f"{tmp_path}/dropped.npy")
    runs["dropping"] = write(dropping, tmp_path, "dropping.py", "model=2"), [("batch", 2), ("model", 2)], None
    seen = run_all(runs, tmp_path)
    for name, one in seen.items():
        if name == "dropping":
            continue
        number = int(name[-1])
        original, case = originals[number], programs[number][1]
        assert_same(one, original, weights=case.weights)
        assert set(one.results) == set(original.evaluations[-1].results or ()) - {"global_step"}
        predicted, wanted = (np.load(tmp_path / f"{kind}.npy") for kind in (name, f"original{number}"))
        np.testing.assert_allclose(predicted, wanted, rtol=1e-4, atol=1e-5)
        if name.startswith("both"):
            divided = case.weights.index(case.divided)
            rows, columns = one.weights[divided].shape
            assert one.parts[divided] == [[rows, columns // 2]] * 4
    check_drops(seen["dropping"])


def check_drops(seen: Seen) -> None:
    """Devices with other examples drop other units, those with the same examples the same ones; each step others."""
    assert len(seen.losses) == 5 and np.isfinite(seen.losses).all()
    first, second = (np.array(parts) for parts in seen.drops)  # of each device, in the order of the mesh
    assert {float(value) for value in first.ravel()} == {0.0, float(np.float32(1.0) / np.float32(0.75))}
    assert abs((first[::2] == 0).mean() - 0.25) < 0.05  # 2 x 400 x 8 draws: nine deviations
    assert (first[0] == first[1]).all() and (first[2] == first[3]).all()
    assert (first[0] != first[2]).any() and (first != second).any()
