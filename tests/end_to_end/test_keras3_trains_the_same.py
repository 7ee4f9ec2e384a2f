"""`--keras 3`: every function of its table computes the same, and programs train, resume and serve the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import libcst as cst
import pytest

from migrator.harness.environments import migrated_python, original_python
from migrator.harness.runs import Session
from migrator.rules.keras3 import OPS, WRAPPED, known_names, on_symbolic
from tests import warm
from tests.end_to_end.proving import Servers, prove, prove_project
from tests.end_to_end.test_metrics_train_the_same import CASES as METRICS
from tests.end_to_end.test_metrics_train_the_same import PROGRAM as METRICS_PROGRAM
from tests.end_to_end.test_metrics_train_the_same import UNLABELLED
from tests.end_to_end.test_own_loops_train_the_same import CLASSES, PERIODS, TWICE
from tests.end_to_end.test_own_loops_train_the_same import PROGRAM as WITH_LOOP
from tests.end_to_end.test_strategies_train_the_same import ALL, BOTH, MEAN, MIRRORED, MOMENTUM, NORMALIZED
from tests.end_to_end.test_strategies_train_the_same import PROGRAM as REPLICAS
from tests.rules.programs import run

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def servers(session_for: Callable[[int], Session]) -> Servers:
    opened = session_for(3)
    return opened.original, opened.migrated


def run_program(script: Path, python: Path, *arguments: str) -> str:
    done = warm.run(python, str(script), *arguments, cwd=script.parent, keras=3)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


# -- functions ---------------------------------------------------------------------------------------------------------

# x, y: [batch, 4], x with negative numbers; z: [batch, 4, 4, 3]; p: positive [batch, 4]; n: [batch] of whole numbers;
# b: [batch, 4] of truth values
SAMPLES: dict[str, tuple[str, ...]] = {
    "tf.reshape": ("tf.reshape(z, [-1, 16, 3])", "tf.reshape(z, [tf.shape(z)[0], 48])"),
    "tf.expand_dims": ("tf.expand_dims(x, 1)", "tf.expand_dims(x, axis=-1)"),
    "tf.squeeze": ("tf.squeeze(tf.expand_dims(x, 1), [1])", "tf.squeeze(tf.expand_dims(x, 2), axis=2)"),
    "tf.concat": ("tf.concat([x, y], 1)", "tf.concat(axis=-1, values=[x, y])"),
    "tf.stack": ("tf.stack([x, y])[1]", "tf.stack([x, y], axis=2)"),
    "tf.unstack": ("tf.unstack(x, axis=1)[2]", "tf.unstack(z, num=4, axis=2)[3]"),
    "tf.split": ("tf.split(x, 2, axis=1)[1]", "tf.split(z, [1, 2], 3)[1]"),
    "tf.cast": ("tf.cast(x, tf.int32)", "tf.cast(x > 0.0, tf.float32)"),
    "tf.transpose": ("tf.transpose(z, [0, 3, 1, 2])",),
    "tf.tile": ("tf.tile(x, [1, 3])",),
    "tf.gather": ("tf.gather(x, [2, 0], axis=1)", "tf.gather(tf.constant([[1.0], [2.0], [3.0]]), n)"),
    "tf.where": ("tf.where(x > 0.0, x, y)",),
    "tf.pad": ("tf.pad(x, [[0, 0], [1, 2]])",),
    "tf.reverse": ("tf.reverse(z, [1])",),
    "tf.one_hot": ("tf.one_hot(n, 3)", "tf.one_hot(n, depth=4, dtype=tf.float32)"),
    "tf.zeros_like": ("tf.zeros_like(x)",),
    "tf.ones_like": ("tf.ones_like(x)",),
    "tf.clip_by_value": ("tf.clip_by_value(x, -0.5, 0.5)",),
    "tf.norm": ("tf.norm(x, axis=1)", "tf.norm(x, axis=-1, keepdims=True)"),
    "tf.stop_gradient": ("tf.stop_gradient(x)",),
    "tf.matmul": ("tf.matmul(x, tf.ones([4, 2]))",),
    "tf.linalg.matmul": ("tf.linalg.matmul(z, tf.ones([5, 4, 3, 2]))",),
    "tf.tensordot": ("tf.tensordot(x, tf.ones([4, 2]), 1)",),
    "tf.math.reduce_std": ("tf.math.reduce_std(x, 1)",),
    "tf.math.reduce_variance": ("tf.math.reduce_variance(z, axis=[1, 2])",),
    "tf.reduce_any": ("tf.reduce_any(b, 1)",),
    "tf.math.reduce_any": ("tf.math.reduce_any(b, axis=1)",),
    "tf.reduce_all": ("tf.reduce_all(b, 1)",),
    "tf.math.reduce_all": ("tf.math.reduce_all(b, axis=1)",),
    "tf.argmax": ("tf.argmax(x, 1)", "tf.argmax(x, axis=-1)"),
    "tf.argmin": ("tf.argmin(x, 1)",),
    "tf.cumsum": ("tf.cumsum(x, 1)", "tf.cumsum(x, axis=1)"),
    "tf.nn.moments": ("tf.nn.moments(z, [1, 2])[1]",),
    "tf.nn.softmax": ("tf.nn.softmax(x)", "tf.nn.softmax(z, axis=1)"),
    "tf.nn.gelu": ("tf.nn.gelu(x)", "tf.nn.gelu(x, approximate=True)"),
    "tf.nn.leaky_relu": ("tf.nn.leaky_relu(x)", "tf.nn.leaky_relu(x, alpha=0.1)"),
    "tf.nn.top_k": ("tf.nn.top_k(x, 2)[0]", "tf.nn.top_k(x)[0]"),
    "tf.nn.lrn": ("tf.nn.lrn(z, 2, bias=1.0)",),
    "tf.nn.local_response_normalization": ("tf.nn.local_response_normalization(z)",),
    "tf.image.rgb_to_grayscale": ("tf.image.rgb_to_grayscale(z)",),
    "tf.image.per_image_standardization": ("tf.image.per_image_standardization(z)",),
    "tf.nn.max_pool2d": ('tf.nn.max_pool2d(z, 2, 2, "SAME")',),
    "tf.nn.max_pool": ('tf.nn.max_pool(z, 2, 2, "SAME")',),
    "tf.nn.avg_pool2d": ('tf.nn.avg_pool2d(z, 2, 2, "VALID")',),
    "tf.nn.avg_pool": ('tf.nn.avg_pool(z, 2, 2, "VALID")',),
    "tf.nn.max_pool1d": ('tf.nn.max_pool1d(z[:, 0], 2, 2, "SAME")',),
    "tf.nn.avg_pool1d": ('tf.nn.avg_pool1d(z[:, 0], 2, 2, "SAME")',),
    "tf.nn.space_to_depth": ("tf.nn.space_to_depth(z, 2)",),
    "tf.nn.depth_to_space": ("tf.nn.depth_to_space(tf.concat([z, z, z, z], 3), 2)",),
    "tf.image.resize": ("tf.image.resize(z, [8, 8])",),
    "tf.sequence_mask": ("tf.sequence_mask(n, 5)",),
}
_TWO = (
    *("add", "subtract", "multiply", "divide", "truediv", "maximum", "minimum", "equal", "not_equal", "greater"),
    *("greater_equal", "less", "less_equal", "divide_no_nan", "pow"),
)
_FURTHER = (
    "tf.math.squared_difference(x, y)",
    "tf.add_n([x, y])",
    "tf.identity(x)",
    "tf.reshape(z, [-1, tf.shape(z)[1] * 12])",
)


def sample(name: str) -> tuple[str, ...]:
    """Calls of a function; those of one tensor, or of two, need not be written down."""
    last = name.rpartition(".")[2]
    if name in SAMPLES:
        return SAMPLES[name]
    if last.startswith("reduce_"):
        return (f"{name}(x, 1)", f"{name}(z, axis=[1, 2], keepdims=True)")
    if last in ("argmax", "argmin", "cumsum", "cumprod", "top_k"):
        return tuple(text.replace("tf.nn.", "tf.math.").replace(f"tf.{last}", name) for text in _axis(last))
    if last == "l2_normalize":
        return (f"{name}(x, axis=1)",)
    if last in ("logical_and", "logical_or"):
        return (f"{name}(x > 0.0, b)",)
    if last == "logical_not":
        return (f"{name}(b)",)
    if last in _TWO:
        return (f"{name}({'p' if last == 'pow' else 'x'}, y)",)
    return (f"{name}({'p' if last in ('log', 'log1p', 'sqrt', 'rsqrt', 'reciprocal') else 'x'})",)


def _axis(last: str) -> tuple[str, ...]:
    return SAMPLES["tf.nn.top_k"] if last == "top_k" else (f"tf.{last}(x, 1)", f"tf.{last}(x, axis=1)")


COMPARE = """\
import json, sys
import numpy as np
import tensorflow as tf
random = np.random.RandomState(1)
x, y = random.normal(size=(2, 5, 4)).astype(np.float32)
values = {
    "x": x, "y": y, "z": random.normal(size=(5, 4, 4, 3)).astype(np.float32),
    "p": np.abs(x) + 0.1, "n": random.randint(0, 3, size=5).astype(np.int32), "b": x > y,
}
inputs = {k: tf.keras.Input(v.shape[1:], dtype=v.dtype, name=k) for k, v in values.items()}
tensors = {k: tf.constant(v) for k, v in values.items()}
found = {}
for old, new in json.load(open("pairs.json")):
    expected = eval(old, {"tf": tf, **tensors})
    output = eval(new, {"tf": tf, **inputs})
    model = tf.keras.Model(inputs, {"out": output, "all": inputs})
    answers = [model(tensors)["out"], eval(new, {"tf": tf, **tensors})]
    for answer in answers:
        assert answer.dtype == expected.dtype or "int" in answer.dtype.name, (old, answer.dtype, expected.dtype)
        assert answer.shape == expected.shape, (old, answer.shape, expected.shape)
        difference = np.abs(answer.numpy().astype(np.float64) - expected.numpy().astype(np.float64)).max()
        found[old] = max(found.get(old, 0.0), float(difference))
missing = []
for name in json.load(open("names.json")):
    node = tf
    for part in name.split(".")[1:]:
        node = getattr(node, part, None)
    if node is None:
        missing.append(name)
print(json.dumps({"found": found, "missing": missing}))
"""


def test_functions_of_the_table_compute_the_same_and_names_exist(tmp_path: Path) -> None:
    """Bit for bit, on symbolic tensors and on real ones."""
    module = cst.parse_module("")
    pairs = []
    for old in (*_FURTHER, *(text for name in (*OPS, *WRAPPED) for text in sample(name))):
        carried = on_symbolic(cst.parse_expression(old), module.code_for_node)
        assert not carried.problems, (old, carried.problems)
        pairs.append((old, module.code_for_node(carried.node)))
    (tmp_path / "pairs.json").write_text(json.dumps(pairs))
    (tmp_path / "names.json").write_text(json.dumps(sorted(known_names())))
    (tmp_path / "compare.py").write_text(COMPARE)
    answer = json.loads(run_program(tmp_path / "compare.py", migrated_python()).splitlines()[-1])
    assert not answer["missing"]
    assert len(answer["found"]) == len(dict(pairs))
    assert {text: value for text, value in answer["found"].items() if value != 0.0} == {}


# -- programs ----------------------------------------------------------------------------------------------------------

PROGRAM = """\
import numpy as np
import tensorflow as tf


def data():
    random = np.random.RandomState(4)
    x = {x}
    y = {y}
    return x, y


def input_fn():
    return tf.data.Dataset.from_tensor_slices(data()).batch(8)


def block(net, units, is_training):
    net = tf.layers.dense(net, units, tf.nn.relu)
    return tf.layers.dropout(net, 0.3, training=is_training)


def model_fn(features, labels, mode):
    is_training = mode == tf.estimator.ModeKeys.TRAIN
{network}
    metrics = {metrics}
{train}
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=train_op, eval_metric_ops=metrics, predictions={{"out": logits}})


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=5)
print(sorted(estimator.evaluate(input_fn).items()))
"""
IMAGES = PROGRAM.format(
    x="random.normal(size=(40, 8, 8, 2)).astype(np.float32)",
    y="random.randint(0, 4, size=40).astype(np.int64)",
    network="""\
    net = tf.layers.conv2d(features, 4, 3, padding="SAME", use_bias=False)
    net = tf.layers.batch_normalization(net, momentum=0.9, training=is_training)
    net = tf.nn.leaky_relu(net)
    net = tf.layers.max_pooling2d(net, 2, 2, padding="SAME")
    net = tf.nn.lrn(net, 2, bias=1.0)
    net = tf.concat([net, tf.square(net)], axis=-1)
    net = tf.reshape(net, [tf.shape(net)[0], 4 * 4 * 8])
    net = block(net, 6, is_training)
    net = tf.layers.dropout(net)
    net = tf.layers.dense(net, 5, use_bias=False)
    net = tf.layers.batch_normalization(net, momentum=0.7, training=is_training)
    logits = tf.layers.dense(net, 4)""",
    metrics='{"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))}',
    train="""\
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    rate = tf.train.exponential_decay(0.1, tf.train.get_global_step(), 2, 0.5)
    optimizer = tf.train.MomentumOptimizer(rate, 0.9)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, tf.train.get_global_step())""",
)
EMBEDDINGS = PROGRAM.format(
    x="""{"id": random.randint(0, 6, size=(40, 5)).astype(np.int32),
         "weight": random.uniform(0.5, 2.0, size=(40, 1)).astype(np.float32)}""",
    y="random.randint(0, 2, size=(40, 1)).astype(np.float32)",
    network="""\
    net = tf.reduce_mean(tf.keras.layers.Embedding(6, 4)(features["id"]), 1)
    net = tf.layers.batch_normalization(net, training=False)
    logits = tf.layers.dense(net, 1)""",
    metrics="""{
        "auc": tf.metrics.auc(labels, tf.sigmoid(logits)),
        "weighted": tf.metrics.mean(logits, weights=features["weight"])}""",
    train="""\
    loss = tf.losses.sigmoid_cross_entropy(labels, logits, weights=features["weight"])
    optimizer = OPTIMIZER
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    gradients, _ = tf.clip_by_global_norm(gradients, 0.05)
    train_op = optimizer.apply_gradients(zip(gradients, variables), tf.train.get_global_step())""",
)
SPARSE = (
    "tf.train.AdamOptimizer(0.005)",
    "tf.train.RMSPropOptimizer(0.01)",
)


def test_images(servers: Servers, tmp_path: Path) -> None:
    new = prove(IMAGES, servers, tmp_path, keras="3")
    for said in (
        "ImageBatchNormalization(momentum=0.9)",
        "tf.keras.layers.Identity()",
        "Lambda(",
    ):
        assert said in new


@pytest.mark.parametrize("optimizer", SPARSE)
def test_embeddings(optimizer: str, servers: Servers, tmp_path: Path) -> None:
    new = prove(EMBEDDINGS.replace("OPTIMIZER", optimizer), servers, tmp_path, keras="3")
    assert "add_up_rows" in new and "FrozenBatchNormalization()" in new
    assert "def compute_loss(" in new and "def compute_metrics(" in new


PREDICTING = """\
    predictions = {"value": out, "positive": out > 0.0}
    if mode == tf.estimator.ModeKeys.PREDICT:
        outputs = {"serving_default": tf.estimator.export.PredictOutput(predictions)}
        return tf.estimator.EstimatorSpec(mode, predictions=predictions, export_outputs=outputs)
    loss = """
RESUMING = """\
import numpy as np
import tensorflow.compat.v1 as tf

x = np.linspace(-1.0, 1.0, 24).reshape(8, 3).astype(np.float32)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": x}, x.sum(axis=1, keepdims=True))).batch(4).repeat()


def model_fn(features, labels, mode):
    out = tf.layers.dense(features["x"], 1, kernel_initializer=tf.constant_initializer(0.3))
    loss = tf.losses.mean_squared_error(labels, out)
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn, model_dir="FOLDER")
estimator.train(input_fn, max_steps=STEPS)
print("%.9f" % estimator.evaluate(input_fn, steps=2)["loss"])
"""


def test_a_training_goes_on_where_it_ended(tmp_path: Path) -> None:
    """Six steps, and four and two more with a new process between, give the same loss: Adam's slots and step too."""
    said = []
    for folder, steps in (("whole", 6), ("parts", 4), ("parts", 6)):
        text = RESUMING.replace("FOLDER", folder).replace("STEPS", str(steps))
        script = tmp_path / f"{folder}{steps}.py"
        new, _ = run(text, keras="3")
        script.write_text(new)
        said.append(float(run_program(script, migrated_python()).split()[-1]))
    assert said[0] == pytest.approx(said[2], rel=1e-6) and said[1] != pytest.approx(said[0], rel=1e-3)


EXPORTING = (
    RESUMING.replace("    loss = ", PREDICTING)
    .replace("FOLDER", "model")
    .replace("STEPS", "2")
    .replace(
        "estimator =",
        """def serving_fn():
    pixels = tf.placeholder(tf.float32, [None, 3], name="pixels")
    return tf.estimator.export.ServingInputReceiver({"x": pixels / 2.0}, {"pixels": pixels})


estimator =""",
    )
    + 'estimator.export_savedmodel("plain", serving_fn)\n'
)
ASK = """\
import glob, json, sys
import tensorflow as tf
for folder in sys.argv[1:]:
    (path,) = glob.glob(folder + "/plain/*")
    answer = tf.saved_model.load(path).signatures["serving_default"](pixels=tf.constant([[0.1, 0.2, -0.4]]))
    print(json.dumps({k: v.numpy().tolist() for k, v in answer.items()}))
"""


def test_an_exported_model_serves(tmp_path: Path) -> None:
    new, findings = run(EXPORTING, keras="3")
    assert "export_model(" in new, findings
    for name, text, python in (("a", EXPORTING, original_python()), ("b", new, migrated_python())):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(text)
        run_program(tmp_path / name / "train.py", python)
    (tmp_path / "ask.py").write_text(ASK)
    asked = run_program(tmp_path / "ask.py", migrated_python(), str(tmp_path / "a"), str(tmp_path / "b"))
    before, after = (json.loads(line) for line in asked.splitlines()[-2:])
    assert sorted(before) == sorted(after) == ["positive", "value"]
    assert before["positive"] == after["positive"]
    assert after["value"][0][0] == pytest.approx(before["value"][0][0], rel=1e-5)


@pytest.mark.parametrize(
    ("driver", "steps", "strategy", "devices", "clusters"),
    [
        pytest.param(TWICE, 5, "auto", 1, ("", ""), id="one-device"),
        pytest.param(TWICE, 5, "mirrored", 2, ("", ""), id="two-replicas"),
        pytest.param(PERIODS, 10, "multi-worker-mirrored", 1, ("", "worker=2,evaluator=1"), id="two-workers"),
    ],
)
def test_a_loop_of_its_own(
    driver: str,
    steps: int,
    strategy: str,
    devices: int,
    clusters: tuple[str, str],
    servers: Servers,
    tmp_path: Path,
) -> None:
    text = WITH_LOOP.format(**CLASSES, driver=driver)
    new = prove_project(
        {"train.py": text},
        "train.py",
        servers,
        tmp_path,
        steps=steps,
        keras="3",
        loop="custom",
        strategy=strategy,
        devices=devices,
        clusters=clusters,
    )["train.py"]
    assert "self.model.optimizer.apply(" in new and "self.model.compute_metrics(" in new and ".fit(" not in new


@pytest.mark.parametrize(
    ("driver", "saves"),
    [(ALL, ""), (BOTH, 'model_dir="/tmp/replicas_that_fit", save_checkpoints_steps=5, ')],
    ids=["trains", "saves"],
)
def test_replicas_that_fit(driver: str, saves: str, servers: Servers, tmp_path: Path) -> None:
    """Whole batches for every replica, moving averages and an evaluation that they divide."""
    parts = {"strategy": MIRRORED, "network": NORMALIZED, "loss": MEAN, "optimizer": MOMENTUM, "driver": driver}
    new = prove(REPLICAS.format(**parts, count=80, evaluation=saves), servers, tmp_path, keras="3")
    assert "model.fit(\n" in new and "strategy.distribute_datasets_from_function(whole_rounds)" in new
    assert "callbacks=[replica_averages(model)" in new or "callbacks=[\n" in new


@pytest.mark.parametrize("construct", ["truth values and curves with weights", "classes"])
def test_metrics(construct: str, servers: Servers, tmp_path: Path) -> None:
    labels, network, metrics, _ = METRICS[construct]
    new = prove(METRICS_PROGRAM.format(labels=labels, network=network, metrics=metrics), servers, tmp_path, keras="3")
    assert "class MeanPerClassAccuracy(tf" in new or "class SpecificityAtSensitivity(tf" in new


def test_means_of_data_of_unknown_size(servers: Servers, tmp_path: Path) -> None:
    """Keras 3 looks for a batch behind the last, and counted one more in means of what is computed for each batch."""
    program = UNLABELLED.replace("data(44))", "data(44)).filter(lambda one: True)")
    assert "with tf.control_dependencies" in prove(program, servers, tmp_path, keras="3")
