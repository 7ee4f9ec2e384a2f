"""Which data never end: `fit` and `evaluate` are told their steps for those, and take batches of others."""

from __future__ import annotations

import pytest

from tests.rules.programs import program, run

SOURCE = "tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]]))"
TRAIN = "estimator.train(input_fn, steps=30)"
PLAIN = f"""
def input_fn():
    return {SOURCE}.{{}}
"""
OLD = """
def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)
"""
NEVER = {
    "repeat()": PLAIN.format("repeat().batch(1)"),
    "repeat(None)": PLAIN.format("repeat(None).shuffle(3, seed=1).batch(1).prefetch(1)"),
    "repeat(count=-1)": PLAIN.format("repeat(count=-1).filter(lambda x, y: True).batch(1)"),
    "line by line": f"""
def input_fn():
    dataset = {SOURCE}
    dataset = dataset.shuffle(9)
    dataset = dataset.repeat()
    return dataset.batch(1)
""",
    "an iterator": f"""
def input_fn():
    iterator = {SOURCE}.repeat().batch(1).make_one_shot_iterator()
    features, labels = iterator.get_next()
    return features, labels
""",
    "where it trains": f"""
def input_fn(training=True):
    dataset = {SOURCE}
    if training:
        dataset = dataset.repeat()
    return dataset.batch(1)
""",
    "by the mode": f"""
def input_fn(mode):
    dataset = {SOURCE}
    if mode == tf.estimator.ModeKeys.TRAIN:
        dataset = dataset.repeat()
    else:
        dataset = dataset.take(1)
    return dataset.batch(1)
""",
    "both branches": f"""
import os


def input_fn():
    dataset = {SOURCE}
    if os.environ.get("SHUFFLE"):
        dataset = dataset.shuffle(9).repeat()
    else:
        dataset = dataset.repeat()
    return dataset.batch(1)
""",
    "a maker": f"""
def make(epochs, training):
    def input_fn():
        dataset = {SOURCE}
        if not training and epochs is None:
            return dataset.batch(1)
        return dataset.repeat(epochs).batch(1)

    return input_fn


input_fn = make(None, training=True)
""",
    "a partial": f"""
import functools


def data(batch_size, epochs=1):
    return {SOURCE}.repeat(epochs).batch(batch_size)


input_fn = functools.partial(data, 1, epochs=None)
""",
    "several": """
def input_fn():
    x = tf.data.Dataset.from_tensor_slices([[1.0], [2.0]]).repeat()
    y = tf.data.Dataset.from_tensor_slices([[1.0], [2.0]]).repeat()
    return tf.data.Dataset.zip((x, y)).batch(1)
""",
    "a transformation": PLAIN.format("apply(tf.data.experimental.shuffle_and_repeat(9)).batch(1)"),
    "arrays": """
import numpy as np

input_fn = tf.estimator.inputs.numpy_input_fn(np.ones((9, 1)), np.ones((9, 1)), num_epochs=None, shuffle=False)
""",
    "steps of a loop": f"""
def input_fn():
    dataset = {SOURCE}
    for step, given in (("shuffle", {{"buffer_size": 9}}), ("repeat", {{}}), ("batch", {{"batch_size": 1}})):
        dataset = getattr(dataset, step)(**given)
    return dataset
""",
    "an object that keeps its settings": f"""
class Data:
    def __init__(self, **settings):
        self.settings = {{"epochs": 1, **settings}}

    @property
    def epochs(self):
        return self.settings["epochs"]

    def read(self):
        return {SOURCE}.repeat(self.epochs).batch(1)


input_fn = Data(epochs=None).read
""",
}
MAY_END = {
    "no repeat": PLAIN.format("batch(1)"),
    "a number": PLAIN.format("repeat(40).batch(1)"),
    "a flag": "import os\n" + PLAIN.format('repeat(int(os.environ["EPOCHS"])).batch(1)'),
    "what is taken": PLAIN.format("repeat().take(7).batch(1)"),
    "one branch": f"""
import os


def input_fn():
    dataset = {SOURCE}
    if os.environ.get("FOR_EVER"):
        dataset = dataset.repeat()
    return dataset.batch(1)
""",
    "in a loop": f"""
def input_fn():
    dataset = {SOURCE}.repeat()
    for _ in range(2):
        dataset = dataset.take(9)
    return dataset.batch(1)
""",
    "where it does not train": f"""
def input_fn(mode):
    dataset = {SOURCE}
    if mode != tf.estimator.ModeKeys.TRAIN:
        dataset = dataset.repeat()
    return dataset.batch(1)
""",
    "params of the Estimator": f"""
def input_fn(mode, params=None):
    epochs = params["epochs"] if params else None
    return {SOURCE}.repeat(epochs).batch(1)
""",
    "what else is given": f"""
def input_fn(**params):
    return {SOURCE}.repeat(None if not params else 2).batch(1)
""",
    "one of several": """
def input_fn():
    x = tf.data.Dataset.from_tensor_slices([[1.0], [2.0]]).repeat()
    y = tf.data.Dataset.from_tensor_slices([[1.0], [2.0]])
    return tf.data.Dataset.zip(x, y).batch(1)
""",
    "one of a dict": """
def input_fn():
    x = tf.data.Dataset.from_tensor_slices([[1.0], [2.0]]).repeat()
    y = tf.data.Dataset.from_tensor_slices([[1.0], [2.0]])
    return tf.data.Dataset.zip(({"x": x}, y)).batch(1)
""",
    "a function of another library": """
from elsewhere import endless


def input_fn():
    return endless().map(lambda x: ([[x]], [[x]]))
""",
    "two functions of one name": PLAIN.format("repeat().batch(1)") + PLAIN.format("batch(1)"),
    "an object whose settings change": f"""
class Data:
    epochs = None

    def read(self):
        return {SOURCE}.repeat(self.epochs).batch(1)


data = Data()
data.epochs = 3
input_fn = data.read
""",
    "itself": """
def data(again):
    return data(again) if again else None


def input_fn():
    return data(True)
""",
    "arrays": """
import numpy as np

input_fn = tf.estimator.inputs.numpy_input_fn(np.ones((9, 1)), np.ones((9, 1)), shuffle=False)
""",
}


INSIDE = """
def outer():
    def data():
        return input_fn().{0}

    def inner():
        estimator = tf.estimator.Estimator(model_fn, params={{}})
        estimator.train(data, steps=30)

    inner()


outer()
"""


def with_inputs(text: str, driver: str) -> str:
    """The program with another input function."""
    return program(driver=driver).replace(OLD, text)


@pytest.mark.parametrize("text", NEVER.values(), ids=NEVER)
@pytest.mark.parametrize("keras", [2, 3])
def test_fit_is_told_the_steps_of_data_without_an_end(text: str, keras: int) -> None:
    new, _ = run(with_inputs(text, TRAIN), keras=str(keras))
    # Keras 3 makes whole executions of the steps that it is told.
    assert ", steps_per_epoch=30)" in new and ".take(30)" not in new if keras == 2 else ".take(30))" in new


@pytest.mark.parametrize("text", MAY_END.values(), ids=MAY_END)
def test_of_other_data_batches_are_taken(text: str) -> None:
    new, _ = run(with_inputs(text, TRAIN))
    assert "steps_per_epoch" not in new


@pytest.mark.parametrize(("held", "told"), [("take(3)", False), ("shuffle(3)", True)])
def test_the_data_of_a_function_around_the_training(held: str, told: bool) -> None:
    module = PLAIN.format("repeat().batch(1)") + "\n\ndef data():\n    return input_fn()\n"
    text = with_inputs(module, "")
    first = text.index("estimator = ")
    text = text[:first] + text[text.index("\n", first) :] + INSIDE.format(held)
    new, _ = run(text)
    assert (", steps_per_epoch=30)" in new) is told and ("data().take(30)" in new) is not told


def test_evaluations_are_told_theirs() -> None:
    driver = TRAIN + "\nestimator.evaluate(input_fn, steps=4)"
    new, findings = run(with_inputs(PLAIN.format("repeat().shuffle(9, seed=3).batch(1)"), driver))
    assert "model.evaluate(input_fn(), steps=4, return_dict=True)" in new
    assert "TFM616" not in [finding.code for finding in findings]
