"""What cannot be carried over: one coded finding at its line, and not a byte changed."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import program, run, run_project

# construct -> (the program, the finding's code, a text that must stand in the finding's line)
BLOCKED: dict[str, tuple[str, str, str]] = {
    "placeholder": (program(network="net = tf.placeholder(tf.float32)"), "TFM203", "tf.placeholder"),
    "get_variable": (
        program(network='w = tf.get_variable("w", [1])\ntf.assign(w, w * 2)\nnet = net * w'),
        "TFM203",
        "tf.get_variable",
    ),
    "verify_shape": (
        program(network="net += tf.constant(1.0, shape=[1], verify_shape=True)"),
        "TFM204",
        "verify_shape",
    ),
    "layer reuse": (program(network="net = tf.layers.dense(net, 2, reuse=True)"), "TFM202", "reuse"),
    "batch renorm": (program(network="net = tf.layers.batch_normalization(net, renorm=True)"), "TFM202", "renorm"),
    "star arguments": (program(network="net = tf.layers.dense(*net)"), "TFM202", "*net"),
    "scope initializer": (
        program(network='with tf.variable_scope("s", initializer=tf.zeros_initializer()):\n    net = tf.nn.relu(net)'),
        "TFM705",
        "initializer",
    ),
    "unknown loss": (
        program(loss="loss = tf.losses.mean_pairwise_squared_error(labels, logits)"),
        "TFM203",
        "pairwise",
    ),
    "variables made by the loss": (
        program(loss="loss = tf.reduce_mean(tf.layers.dense(logits, 2) * labels)"),
        "TFM311",
        "tf.layers.dense(logits",
    ),
    "another weight in training": (
        program(
            loss="if mode == 'train':\n    params['weight'] = 2.0\n"
            "loss = params['weight'] * tf.reduce_mean((logits - labels) ** 2)"
        ),
        "TFM301",
        "weight",
    ),
    "unknown optimizer": (program(optimizer="tf.train.SyncReplicasOptimizer(0.1)"), "TFM401", "SyncReplicas"),
    "schedule": (
        program(optimizer="tf.train.GradientDescentOptimizer(tf.train.exponential_decay(0.1, 1, 1, 1))"),
        "TFM402",
        "exponential_decay",
    ),
    "hooks in the spec": (program(spec=", training_hooks=[hook]"), "TFM110", "training_hooks"),
    "labels in the network": (program(network="net = tf.concat([net, labels], 1)"), "TFM304", "concat"),
    "mode passed on": (program(network="net = helper(net, mode)"), "TFM106", "helper"),
    "unknown method": (program(driver="print(estimator._call_model_fn())"), "TFM103", "_call_model_fn"),
    "estimator passed on": (program(driver="estimator.train(input_fn)\nkeep(estimator)"), "TFM103", "keep"),
    "hooks": (program(driver="estimator.train(input_fn, hooks=[h])"), "TFM110", "hooks"),
    "input with parameters": (program(driver="estimator.train(lambda n: input_fn())"), "TFM602", "lambda n"),
    "input function of tensors": (
        program().replace(
            "return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)",
            "return tf.random_normal([1, 1]), tf.constant([[2.0]])",
        ),
        "TFM601",
        "tf.random_normal",
    ),
    "unknown metric": (
        program(spec=', eval_metric_ops={"f": tf.metrics.average_precision_at_k(labels, logits, 2)}'),
        "TFM501",
        "average_precision_at_k",
    ),
    "metric of what a function makes of the labels": (
        program(
            loss="loss = tf.losses.mean_squared_error(labels, logits)\nfound = tf.py_func(len, [labels], tf.int64)",
            spec=', eval_metric_ops={"m": tf.metrics.mean(found)}',
        ),
        "TFM503",
        "metrics.mean",
    ),
    "metric of what changes after it": (
        program(
            loss="loss = tf.losses.mean_squared_error(labels, logits)\n"
            "big = features + 1\nmean = tf.metrics.mean(big, weights=features)\nbig = big * 2",
            spec=', eval_metric_ops={"m": mean}',
        ),
        "TFM503",
        "metrics.mean",
    ),
    "metric of two calls": (
        program(
            loss="loss = tf.losses.mean_squared_error(labels, logits)\n"
            "a = tf.metrics.mean(logits)\nb = tf.metrics.mean(labels)",
            spec=', eval_metric_ops={"m": (a[0], b[1])}',
        ),
        "TFM501",
        "eval_metric_ops",
    ),
    "metric used for more": (
        program(
            loss="loss = tf.losses.mean_squared_error(labels, logits)\na = tf.metrics.mean(logits)\nnet = net * a[0]",
            spec=', eval_metric_ops={"m": a}',
        ),
        "TFM501",
        "net * a",
    ),
    "at k of one class": (
        program(spec=', eval_metric_ops={"m": tf.metrics.recall_at_k(labels, logits, 2, class_id=1)}'),
        "TFM502",
        "class_id",
    ),
    "session": (program(driver="estimator.train(input_fn)\nprint(tf.Session())"), "TFM203", "Session"),
    "missing model_fn": (
        "import tensorflow as tf\nfrom elsewhere import model_fn\ne = tf.estimator.Estimator(model_fn)\ne.train(f)\n",
        "TFM104",
        "Estimator",
    ),
    "canned": (
        "import tensorflow as tf\ne = tf.estimator.BoostedTreesClassifier([], 3)\ne.train(f)\n",
        "TFM102",
        "BoostedTreesClassifier",
    ),
    "initializable iterator": (
        program(driver="estimator.train(input_fn)").replace(".batch(1)", ".batch(1).make_initializable_iterator()"),
        "TFM601",
        "make_initializable_iterator",
    ),
}


@pytest.mark.parametrize("construct", BLOCKED)
def test_blocked(construct: str) -> None:
    text, code, part = BLOCKED[construct]
    new, findings = run(text)
    assert new == text
    manual = [f for f in findings if f.severity is Severity.MANUAL]
    assert code in [f.code for f in manual], findings
    line = next(f.line for f in manual if f.code == code)
    assert part in text.splitlines()[line - 1]


def test_a_blocked_model_leaves_the_driver_alone() -> None:
    whole = program(network="net = tf.placeholder(tf.float32)")
    head, _, tail = whole.partition("def model_fn")
    model_fn, _, driver = tail.partition("\n\n\nestimator")
    files = {
        "model.py": "import tensorflow as tf\n\n\ndef model_fn" + model_fn + "\n",
        "train.py": head.replace("tf\n", "tf\nfrom model import model_fn\n", 1) + "estimator" + driver,
    }
    results = run_project(files)
    assert {path: text for path, (text, _) in results.items()} == files
    assert [f.code for f in results["model.py"][1]] == ["TFM203"]


def test_one_blocked_program_does_not_stop_another() -> None:
    files = {"good.py": program(), "bad.py": program(network="net = tf.placeholder(tf.float32)")}
    results = run_project(files)
    assert results["bad.py"][0] == files["bad.py"]
    assert "tf.keras.Model" in results["good.py"][0]


@pytest.mark.parametrize(
    ("made", "code"),
    [
        ("tf.keras.estimator.model_to_estimator(model)", "TFM194"),
        ("tf.contrib.estimator.DNNEstimator()", "TFM102"),
    ],
)
def test_no_estimator_is_passed_over_in_silence(made: str, code: str) -> None:
    text = f"import tensorflow as tf\n\nestimator = {made}\n"
    new, findings = run(text)
    assert new == text
    assert code in [f.code for f in findings]
