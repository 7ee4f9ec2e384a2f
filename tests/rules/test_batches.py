"""What is known of the sizes of batches: the loss of an evaluation, and networks that ask for the size."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import program, run

EVALUATES = "estimator.train(input_fn, steps=3)\nprint(estimator.evaluate(input_fn, steps=2))"


def text_of(batches: str, driver: str = EVALUATES, network: str = "net = tf.nn.relu(net)") -> str:
    return program(driver=driver, network=network).replace(".batch(1)", batches)


@pytest.mark.parametrize(
    ("batches", "partial"),
    [
        (".batch(8)", True),
        (".repeat(3).batch(8)", True),
        (".batch(8).repeat()", True),
        (".padded_batch(8, ([1], [1]))", True),
        (".repeat().batch(8)", False),
        (".repeat(-1).shuffle(9).batch(8)", False),
        (".batch(8, drop_remainder=True)", False),
        (".batch(8, True)", False),
        (".padded_batch(8, ([1], [1]), None, True)", False),
        (".apply(tf.contrib.data.batch_and_drop_remainder(8))", False),
        (".batch(1)", False),
    ],
)
def test_a_smaller_last_batch_is_told_of(batches: str, partial: bool) -> None:
    _, findings = run(text_of(batches))
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert [f.line for f in findings if f.code == "TFM303"] == [20] * partial
    assert "TFM303" not in [f.code for f in run(text_of(batches, driver="estimator.train(input_fn, steps=3)"))[1]]


def test_means_of_batches_are_what_they_were() -> None:
    """A loop of the program's own and a model with its own `compute_loss` keep the mean of batches."""
    text = text_of(".batch(8)")
    own = text.replace("tf.losses.mean_squared_error(labels, logits)", "tf.reduce_sum(tf.square(labels - logits))")
    assert "TFM303" not in [f.code for f in run(text, loop="custom")[1]]
    assert "TFM303" not in [f.code for f in run(own)[1]]


STATIC = "tf.keras.Input(spec.shape[1:], batch_size=spec.shape[0], dtype=spec.dtype)"
SIZE = "size = net.shape[0]\nnet = tf.reshape(net, [size, -1])"


@pytest.mark.parametrize("network", [SIZE, SIZE.replace("net.shape[0]", "net.get_shape().as_list()[0]")])
@pytest.mark.parametrize("batches", [".batch(8, drop_remainder=True)", ".repeat().batch(8, True)"])
def test_the_size_of_batches_that_drop_the_rest(network: str, batches: str) -> None:
    assert STATIC in run(text_of(batches, network=network))[0]


@pytest.mark.parametrize(
    ("batches", "network"),
    [(".batch(8)", SIZE), (".batch(8, drop_remainder=True)", "net = tf.reshape(net, [-1, net.shape[1]])")],
)
def test_other_sizes_stay_open(batches: str, network: str) -> None:
    new, _ = run(text_of(batches, network=network))
    assert "batch_size" not in new


def test_two_sizes_stay_open() -> None:
    other = """\
def other_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]] * 4, [[2.0]] * 4)).batch({}, drop_remainder=True)


estimator = tf"""
    driver = "estimator.train(input_fn, steps=3)\nestimator.evaluate(other_fn)"
    text = text_of(".batch(8, drop_remainder=True)", driver, SIZE)
    two = text.replace("estimator = tf", other.format(4))
    new, findings = run(two)
    assert new == two
    assert [(f.code, f.line) for f in findings if f.severity is Severity.MANUAL] == [("TFM619", 10)]
    assert STATIC in run(text.replace("estimator = tf", other.format(8)))[0]
    tolerant = two.replace("size = net.shape[0]", "size = -1").replace("[size, -1]", "[size, net.shape[1]]")
    assert run(tolerant)[0] != tolerant


OBJECT = """\
class Input(Parent):
    def __init__(self, size):
        self.size = size

    def {name}(self):
        return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch({size}, drop_remainder=True)


estimator = tf"""


@pytest.mark.parametrize(("name", "given"), [("__call__", "Input(8)"), ("__call__", "data"), ("give", "data.give")])
def test_input_functions_of_objects(name: str, given: str) -> None:
    for base in ("", "class Parent:\n    pass\n\n\n"):
        made = base + OBJECT.replace("Parent", "Parent" if base else "object").format(name=name, size="8")
        text = text_of(".batch(8)", f"data = Input(8)\nestimator.train({given}, steps=3)", SIZE)
        assert STATIC in run(text.replace("estimator = tf", made))[0]


def test_objects_that_give_two_sizes() -> None:
    text = text_of(".batch(8)", "estimator.train(Input(8), steps=3)\nestimator.evaluate(Input(4), steps=3)", SIZE)
    text = text.replace("estimator = tf", OBJECT.replace("Parent", "object").format(name="__call__", size="self.size"))
    assert "TFM619" in [f.code for f in run(text)[1]]
    assert "keras_estimator.Estimator" in run(text, style="auto")[0]
