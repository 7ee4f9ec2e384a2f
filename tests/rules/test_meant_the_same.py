"""Model functions that are said otherwise come out natively, and what is not certain is told."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import program, run

EVALUATES = "estimator.train(input_fn, steps=3)\nestimator.evaluate(input_fn, steps=1)"
BRANCH = """\
if {test}:
    metrics = {{"m": tf.metrics.mean(logits)}}
    return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)"""
LOSS = "loss = tf.losses.mean_squared_error(labels, logits)\n"


def manual(text: str) -> set[str]:
    return {one.code for one in run(text)[1] if one.severity is Severity.MANUAL}


def branched(test: str, functions: str = "") -> str:
    """A program whose model_fn has a branch for evaluations, and functions before it."""
    text = program(loss=LOSS + BRANCH.format(test=test), driver=EVALUATES)
    return text.replace("def model_fn", f"{functions}def model_fn")


def test_a_device_is_left_out_and_told() -> None:
    text = program(network='with tf.device("/gpu:0"):\n    net = tf.nn.relu(net)')
    new, findings = run(text)
    assert "tf.device" not in new and "net = tf.nn.relu(net)" in new
    assert [(one.code, one.severity) for one in findings if one.code == "TFM129"] == [("TFM129", Severity.REVIEW)]


def test_other_keywords() -> None:
    text = program().replace("mode, params):", "mode, params, **others):")
    new, _ = run(text)
    assert not manual(text) and "others" not in new
    assert "TFM105" in manual(text.replace("net = features", 'net = others.get("net", features)'))


@pytest.mark.parametrize(
    "test",
    [
        "is_evaluation(mode)",
        "not is_training(mode)",
        "{tf.estimator.ModeKeys.EVAL: True}.get(mode, False)",
        '{"train": 1, "eval": 2, "infer": 3}[mode] == 2',
    ],
)
def test_what_the_mode_means(test: str) -> None:
    functions = (
        "def is_evaluation(mode):\n    return mode == tf.estimator.ModeKeys.EVAL\n\n\n"
        "def is_training(mode):\n    if mode == 'eval':\n        return False\n    return True\n\n\n"
    )
    assert not manual(branched(test, functions))
    new, _ = run(branched(test, functions))
    plain, _ = run(branched("mode == tf.estimator.ModeKeys.EVAL", functions))
    assert new == plain


def test_a_function_that_asks_for_more_than_the_mode() -> None:
    functions = "def is_evaluation(mode):\n    return mode == 'eval' and input() == 'yes'\n\n\n"
    assert manual(branched("is_evaluation(mode)", functions))


REPLACED = """\
spec = tf.estimator.EstimatorSpec(mode, loss=loss)
{between}
if mode == tf.estimator.ModeKeys.EVAL:
    return spec._replace(eval_metric_ops={{"m": tf.metrics.mean(logits)}})"""


def test_a_spec_that_is_given_more() -> None:
    assert not manual(program(loss=LOSS + REPLACED.format(between="pass"), driver=EVALUATES))
    assert "TFM105" in manual(program(loss=LOSS + REPLACED.format(between="loss = loss * 2.0"), driver=EVALUATES))


SCOPE = """\
with tf.variable_scope("part", partitioner=tf.fixed_size_partitioner({number})):
    net = tf.layers.dense(net, 4, name="wide")"""


@pytest.mark.parametrize(
    ("number", "blocked"), [("shards()", False), ("shards() * 2", False), ("int(input())", True), ("of(mode)", True)]
)
def test_numbers_of_partitioners(number: str, blocked: bool) -> None:
    functions = (
        "def shards():\n    kept = {'parts': 2}\n    return kept['parts']\n\n\n"
        "def of(mode):\n    return 2 if mode == 'train' else 3\n\n\n"
    )
    text = program(network=SCOPE.format(number=number), driver=EVALUATES)
    text = text.replace("def model_fn", f"{functions}def model_fn")
    new, findings = run(text, strategy="parameter-server")
    assert bool({one.code for one in findings if one.severity is Severity.MANUAL} & {"TFM701"}) is blocked
    if not blocked:
        assert f"FixedShardsPartitioner(num_shards={4 if '*' in number else 2})" in new


BASE = """\
class Base(object):
    def build(self, net):
        raise NotImplementedError

    def model_fn(self, features, labels, mode):
        logits = self.build(features)
        loss = tf.losses.mean_squared_error(labels, logits)
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


class Model(Base):
    def build(self, net):
        return tf.layers.dense(net, 1)


"""
OTHER = "class Other(Base):\n    def build(self, net):\n        return tf.layers.dense(net, 2)\n\n\n"


def of_a_class(more: str = "") -> str:
    """A program whose model_fn is a method that the class inherits, which calls one that the class defines."""
    text = program(driver="estimator.train(input_fn, steps=3)")
    start, end = text.index("def model_fn"), text.index("estimator = ")
    driver = text[end:].replace('model_fn, params={"rate": 0.1}', "Model().model_fn")
    return f"{text[:start]}{BASE}{more}{driver}"


def test_a_method_that_the_class_inherits() -> None:
    new, _ = run(of_a_class())
    assert not manual(of_a_class())
    assert "tf.keras.layers.Dense(1)" in new and "Model().model_fn" in new


def test_a_method_that_two_classes_define_stays_theirs() -> None:
    new, _ = run(of_a_class(OTHER))
    assert "self.build(features)" in new
    assert "tf.keras.layers.Dense(1)" in new and "tf.keras.layers.Dense(2)" in new


HANDING_ON = "def fc(x, *args, **kwargs):\n    return tf.layers.dense(x, *args, **kwargs)\n\n\n"


def test_a_function_that_hands_all_on() -> None:
    text = program(network="net = fc(net, 3, activation=tf.nn.relu)")
    text = text.replace("def model_fn", f"{HANDING_ON}def model_fn")
    new, _ = run(text)
    assert not manual(text) and "tf.keras.layers.Dense(3, activation=tf.nn.relu" in new
    changed = text.replace("return tf.layers.dense(x,", "return tf.layers.dense(x + 1.0,")
    assert "TFM202" in manual(changed)


def test_statements_of_one_line_keep_their_order() -> None:
    """The model is built of the data's shapes, behind what prepares the data."""
    functions = "def prepare():\n    open('x.csv', 'w').close()\n\n\n"
    text = program(driver="prepare(); estimator.train(input_fn, steps=3)").replace(
        "def model_fn", f"{functions}def model_fn"
    )
    text = text.replace("def input_fn():\n", "def input_fn():\n    open('x.csv').close()\n")
    new, _ = run(text)
    apart, _ = run(text.replace("prepare(); ", "prepare()\n"))
    assert new == apart
    assert new.index("\nprepare()\n") < new.index("make_inputs(input_fn())")
