"""Input functions in the spellings that people use, and those that are refused."""

from __future__ import annotations

import ast

import pytest

from migrator.findings import Finding, Severity
from tests.rules.programs import program, run


def manual(findings: list[Finding]) -> list[str]:
    return [f.code for f in findings if f.severity is Severity.MANUAL]


def migrated(text: str) -> str:
    new, findings = run(text)
    assert not manual(findings), findings
    ast.parse(new)
    return new


def with_input(body: str, before: str = "", name: str = "input_fn()", driver: str = "") -> str:
    text = program(driver=driver or "estimator.train(input_fn, steps=3)")
    start, end = text.index("def input_fn"), text.index("def model_fn")
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{text[:start]}{before}def {name}:\n{lines}\n\n{text[end:]}"


DATASET = "ds = tf.data.Dataset.from_tensors(([[1.0]], [[2.0]]))\n"
WORK = {
    "two statements": (
        DATASET
        + "x, y = ds.make_one_shot_iterator().get_next()\nx = x / 255.0\ny = tf.to_int32(y)\nreturn {'x': x}, y",
        "    def prepare(x, y):\n        x = x / 255.0\n        y = tf.cast(y, tf.int32)\n"
        "        return {'x': x}, y\n\n    return ds.map(prepare)\n",
    ),
    "an iterator with a name and a comment": (
        DATASET + "it = tf.data.make_one_shot_iterator(ds)\nx, y = it.get_next()\n# to columns\n"
        "x = tf.reshape(x, [-1, 1])\nreturn x, y",
        "    def prepare(x, y):\n        # to columns\n        x = tf.reshape(x, [-1, 1])\n        return x, y\n\n"
        "    return ds.map(prepare)\n",
    ),
    "a dict that loses its label": (
        DATASET
        + "features = ds.make_one_shot_iterator().get_next()\nlabels = features.pop('y')\nreturn features, labels",
        "    def prepare(features):\n        labels = features.pop('y')\n        return features, labels\n\n"
        "    return ds.map(prepare)\n",
    ),
    "a tuple by index": (
        DATASET + "batch = ds.make_one_shot_iterator().get_next()\nreturn batch[0], batch[1]",
        "    def prepare(*batch):\n        return batch[0], batch[1]\n\n    return ds.map(prepare)\n",
    ),
    "a helper": (
        DATASET + "x, y = ds.make_one_shot_iterator().get_next()\nx = scale(x)\nreturn x, y",
        "    def prepare(x, y):\n        x = scale(x)\n        return x, y\n\n    return ds.map(prepare)\n",
    ),
}


@pytest.mark.parametrize("name", WORK)
def test_work_on_the_tensors_moves_into_a_map(name: str) -> None:
    body, expected = WORK[name]
    new = migrated(with_input(body, before="def scale(x):\n    return x / 2.0\n\n\n"))
    assert expected in new
    assert new.count("to columns") == ("comment" in name)
    assert "iterator" not in new and "get_next" not in new


REFUSED_WORK = {
    "a branch": DATASET + "x, y = ds.make_one_shot_iterator().get_next()\nif y is None:\n    x = x * 2\nreturn x, y",
    "effects": DATASET + "x, y = ds.make_one_shot_iterator().get_next()\nx = fetch(x)\nreturn x, y",
    "a name from outside": (
        "s = 1.0\n" + DATASET + "x, y = ds.make_one_shot_iterator().get_next()\ns = s + x\nreturn s, y"
    ),
    "a tensor from outside": (
        "s = tf.random_normal([])\n" + DATASET + "x, y = ds.make_one_shot_iterator().get_next()\nx = x * s\nreturn x, y"
    ),
    "either": DATASET + "b = ds.make_one_shot_iterator().get_next()\nx = b['x']\nreturn x, b[1]",
    "initializable": DATASET + "it = ds.make_initializable_iterator()\nx, y = it.get_next()\nreturn x, y",
}


@pytest.mark.parametrize("name", REFUSED_WORK)
def test_work_that_is_not_understood_is_refused(name: str) -> None:
    text = with_input(REFUSED_WORK[name])
    new, findings = run(text)
    assert new == text and "TFM601" in manual(findings)


def arrays(call: str, after: str = "") -> str:
    lines = "import numpy as np\nimages = np.ones((8, 1), np.float32)\nlabels = np.ones((8, 1), np.float32)\n"
    return program(driver=f"{lines}train_fn = {call}\n{after}estimator.train(train_fn, steps=3)")


def test_arrays_become_a_function_of_the_same_name() -> None:
    new = migrated(arrays("tf.estimator.inputs.numpy_input_fn(images, labels, batch_size=4, shuffle=False)"))
    line = "def train_fn():\n    return tf.data.Dataset.from_tensor_slices((images, labels)).batch(4)\n\n\n"
    assert line in new and "make_inputs(train_fn())" in new
    long = 'tf.estimator.inputs.numpy_input_fn(x={"a_long_feature": images}, y=labels, num_epochs=None, shuffle=True)'
    new = migrated(arrays(long))
    assert "    return dataset.repeat().shuffle(1000).batch(128)\n" in new
    found = [f.code for f in run(arrays(long))[1] if f.severity is Severity.REVIEW]
    assert found == ["TFM611"]


def test_arrays_in_place() -> None:
    call = "tf.estimator.inputs.numpy_input_fn(images, labels, shuffle=False)"
    text = arrays("None").replace("train(train_fn", f"train(input_fn={call}").replace("train_fn = None\n", "")
    assert "fit(tf.data.Dataset.from_tensor_slices((images, labels)).batch(128).take(3))" in migrated(text)


def test_arrays_that_change_are_kept_or_refused() -> None:
    text = arrays("tf.estimator.inputs.numpy_input_fn(images, labels, shuffle=False)", "images = images * 2\n")
    assert "def train_fn(arrays=(images, labels)):\n    return tf.data.Dataset.from_tensor_slices(arrays)" in migrated(
        text
    )
    text = arrays("tf.estimator.inputs.numpy_input_fn(images, labels, size, shuffle=False)", "size = size * 2\n")
    text = text.replace("train_fn = ", "size = 2\ntrain_fn = ", 1)
    assert "def train_fn(size=size):\n    return" in migrated(text) and ".batch(size)" in migrated(text)
    same = migrated(text.replace("size = size * 2", "size = 2"))
    call = "tf.estimator.inputs.numpy_input_fn(images, labels, shuffle=False)"
    kept = arrays(f"keep({call})", "images = images * 2\n")
    assert "TFM613" in manual(run(kept)[1])
    assert "def train_fn():\n" in same and ".batch(size)" in same


@pytest.mark.parametrize("part", ["sizes[0]", "sizes.train"])
def test_arrays_of_a_part_that_changes_are_refused(part: str) -> None:
    """NumPy's input functions keep the size that they are given: 1.15.5 trains in batches of the first."""
    text = arrays(f"tf.estimator.inputs.numpy_input_fn(images, labels, {part}, shuffle=False)", f"{part} = 2\n")
    assert "TFM613" in manual(run(text)[1])
    before = text.replace(f"{part} = 2\n", "").replace("train_fn = ", f"{part} = 2\ntrain_fn = ", 1)
    assert f".batch({part})" in migrated(before)


def test_arrays_that_got_their_last_value_before() -> None:
    call = "tf.estimator.inputs.numpy_input_fn(images, labels, shuffle=False)"
    text = arrays(call).replace("train_fn = ", "images = images / 2\ntrain_fn = ", 1)
    assert "tf.data.Dataset.from_tensor_slices((images, labels))" in migrated(text)
    loop = arrays("None").replace(
        "train_fn = None\n", f"for _ in range(2):\n    images = images / 2\n    train_fn = {call}\n"
    )
    assert "TFM613" not in manual(run(loop)[1])


GIVEN = {
    "params and mode": ("input_fn(mode, params)", "input_fn", 'input_fn("train", {"rate": 0.1})'),
    "params after a default": ("input_fn(n=1, params=None)", "input_fn", 'input_fn(params={"rate": 0.1})'),
    "lambda of params": ("input_fn(params)", "lambda params: input_fn(params)", 'input_fn({"rate": 0.1})'),
    "partial in place": ("input_fn(n, params)", "functools.partial(input_fn, 1)", 'input_fn(1, {"rate": 0.1})'),
    "partial with a name": ("input_fn(n, params)", "named", 'named({"rate": 0.1})'),
    "maker": ("input_fn(params)", "make(2)", 'make(2)({"rate": 0.1})'),
    "maker with a name": ("input_fn(params)", "made", 'made({"rate": 0.1})'),
}
MAKER = "def make(n):\n    def inner(params):\n        return input_fn(params)\n    return inner\n\n"


@pytest.mark.parametrize("name", GIVEN)
def test_what_estimator_passes(name: str) -> None:
    signature, argument, expected = GIVEN[name]
    text = with_input(DATASET + "return ds", name=signature, driver=f"estimator.train({argument}, steps=3)")
    lines = MAKER + "\nnamed = functools.partial(input_fn, 1)\nmade = make(2)\nestimator = "
    new = migrated(
        text.replace("estimator = ", lines, 1).replace("import tensorflow", "import functools\nimport tensorflow")
    )
    assert f"make_inputs({expected})" in new and f"fit({expected}.take(3))" in new


REFUSED_GIVEN = {
    "another": ("input_fn(n)", "input_fn"),
    "lambda of another": ("input_fn(n)", "lambda n: input_fn(n)"),
}


@pytest.mark.parametrize("name", REFUSED_GIVEN)
def test_input_functions_that_are_refused(name: str) -> None:
    signature, argument = REFUSED_GIVEN[name]
    text = with_input(DATASET + "return ds", name=signature, driver=f"estimator.train({argument}, steps=3)")
    new, findings = run(text)
    assert new == text and manual(findings) == ["TFM602"]


def test_a_function_that_a_maker_returns_must_return_a_dataset() -> None:
    maker = "def make(n):\n    def inner():\n        return {'x': tf.ones([n])}, tf.ones([n])\n    return inner\n\n\n"
    text = with_input("return 1", before=maker, driver="estimator.train(make(2), steps=3)")
    assert manual(run(text)[1]) == ["TFM601"]


RETURNS_A_LAMBDA = "def from_dataset(ds):\n    return lambda: {body}\n\n\n"
OF_A_DATASET = "ds = tf.data.Dataset.from_tensors(([[1.0]], [[2.0]]))\nestimator.train(from_dataset(ds), steps=3)"


def test_a_lambda_that_a_maker_returns() -> None:
    before = RETURNS_A_LAMBDA.format(body="ds.make_one_shot_iterator().get_next()")
    new = migrated(with_input(DATASET + "return ds", before=before, driver=OF_A_DATASET))
    assert "def from_dataset(ds):\n    return lambda: ds\n" in new
    assert "model.fit(from_dataset(ds)().take(3))" in new


@pytest.mark.parametrize("body", ["(ds.make_one_shot_iterator().get_next(), 1)", "ds.make_initializable_iterator()"])
def test_a_lambda_that_does_more_is_refused(body: str) -> None:
    text = with_input(DATASET + "return ds", before=RETURNS_A_LAMBDA.format(body=body), driver=OF_A_DATASET)
    new, findings = run(text)
    assert new == text and "TFM601" in manual(findings)


@pytest.mark.parametrize(("shuffle", "told"), [("9, seed=3", 1), ("9, 3", 1), ("9", 0), ("9, seed=None", 0)])
def test_a_shuffle_with_a_seed_is_told(shuffle: str, told: int) -> None:
    text = with_input(DATASET + f"return ds.repeat(9).shuffle({shuffle}).batch(2)")
    assert [finding.code for finding in run(text)[1]].count("TFM616") == told
    assert "TFM616" not in [finding.code for finding in run(text, keras="3")[1]]
    assert "TFM616" not in [finding.code for finding in run(text.replace("repeat(9)", "repeat()"))[1]]
    assert "TFM616" not in [finding.code for finding in run(text, loop="custom")[1]]


@pytest.mark.parametrize(
    ("name", "given"), [("input_fn(config)", "None"), ("input_fn(mode, config=None)", '"train", None')]
)
def test_the_config_that_an_estimator_passes(name: str, given: str) -> None:
    new = migrated(with_input(DATASET + "return ds", name=name))
    assert f"model.fit(input_fn({given}).take(3))" in new
    read = "ds = ds.shuffle(config.tf_random_seed)\nreturn ds"
    assert manual(run(with_input(DATASET + read, name=name))[1]) == ["TFM602"]


CHOSEN = """\
import tensorflow as tf


def model_fn(features, labels, mode):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features, 1))
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main(fast):
    if fast:
        def data():
            return tf.data.Dataset.from_tensors(([[1.0]], [[2.0]])).repeat()
    else:
        data = lambda: tf.data.Dataset.from_tensors(([[1.0]], [[2.0]])).repeat()
    estimator = tf.estimator.Estimator(model_fn)
    estimator.train(data, steps=3)


main(True)
"""


def test_a_function_under_a_condition_that_is_assigned_otherwise() -> None:
    new = migrated(CHOSEN)
    assert "        def data_1():\n" in new and "\n        data = data_1\n    else:" in new
    assert "make_inputs(data())" in new
    assert manual(run(CHOSEN.replace("        def data", "        @noted\n        def data"))[1]) == ["TFM128"]
    free = CHOSEN.replace("    else:\n        data =", "    data =")  # it stands in no branch of its own
    assert manual(run(free.replace("    if fast:\n        def data():\n            ", "    def data():\n        "))[1])
