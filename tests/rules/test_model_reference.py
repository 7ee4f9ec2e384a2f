"""model_fns that are not top-level functions given by their own name."""

from __future__ import annotations

import ast

import pytest

from migrator.findings import Severity
from tests.rules.programs import program, run, run_project

BODY = """\
    net = tf.layers.dense(features, {units}, activation=tf.nn.relu)
    logits = tf.layers.dense(net, 1)
    loss = tf.losses.mean_squared_error(labels, logits)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
"""
HEAD = """\
import functools

import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


"""
TOP = "def my_model(features, labels, mode, params{more}):\n" + BODY


def deeper(text: str) -> str:
    return "".join(f"    {line}\n" if line else "\n" for line in text.splitlines())


PLAIN = TOP.format(more="", units='params["units"]')
WITH_UNITS = TOP.format(more=", units", units="units")
BUILDER = "def model_fn_builder(units):\n" + deeper(
    "def model_fn(features, labels, mode, params):\n" + BODY.format(units="units") + "\nreturn model_fn"
)
CLASS = "class Net(object):\n    def __init__(self, units):\n        self.units = units\n\n" + deeper(
    "def model_fn(self, features, labels, mode):\n" + BODY.format(units="self.units")
)
STATIC = "class Net:\n    units = 3\n\n    @staticmethod\n" + deeper(
    "def model_fn(features, labels, mode):\n" + BODY.format(units="Net.units")
)
TRAINER = (
    CLASS
    + "\n    def run(self):\n        estimator = tf.estimator.Estimator(model_fn=self.model_fn)\n"
    + "        estimator.train(input_fn, steps=3)\n\n\nNet(3).run()\n"
)
NESTED = (
    "def main():\n    units = 3\n\n"
    + deeper("def model_fn(features, labels, mode):\n" + BODY.format(units="units"))
    + "\n    estimator = tf.estimator.Estimator(model_fn)\n    estimator.train(input_fn, steps=3)\n\n\nmain()\n"
)
TRAIN = "estimator.train(input_fn, steps=3)\n"

# how the model_fn is given -> (the program after its head, what must stand in the new one, what must not)
FORMS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "what a builder returns, by name": (
        f"{BUILDER}\n\nmodel_fn = model_fn_builder(units=3)\nestimator = tf.estimator.Estimator(model_fn=model_fn)\n"
        + TRAIN,
        ("model_fn = model_fn_builder(units=3)\nmodel = model_fn(make_inputs(input_fn()), {})\n", "    def model_fn("),
        (),
    ),
    "what a builder returns, in place": (
        f"{BUILDER}\n\nestimator = tf.estimator.Estimator(model_fn_builder(3), params={{'a': 1}})\n{TRAIN}",
        ("model = model_fn_builder(3)(make_inputs(input_fn()), {'a': 1})\n", "    return model_fn\n"),
        (),
    ),
    "a method of this object": (
        TRAINER,
        ("    def model_fn(self, features):", "        model = self.model_fn(make_inputs(input_fn()))\n"),
        (),
    ),
    "a method of an object": (
        f"{CLASS}\n\nnet = Net(3)\nestimator = tf.estimator.Estimator(net.model_fn)\n{TRAIN}",
        ("model = net.model_fn(make_inputs(input_fn()))\n",),
        (),
    ),
    "a method of an object made in place": (
        f"{CLASS}\n\nestimator = tf.estimator.Estimator(Net(3).model_fn)\n{TRAIN}",
        ("model = Net(3).model_fn(make_inputs(input_fn()))\n",),
        (),
    ),
    "a static method": (
        f"{STATIC}\n\nestimator = tf.estimator.Estimator(Net.model_fn)\n{TRAIN}",
        ("    @staticmethod\n    def model_fn(features):", "model = Net.model_fn(make_inputs(input_fn()))\n"),
        (),
    ),
    "a function inside main": (NESTED, ("    def model_fn(features):", "    model = model_fn(make_inputs("), ()),
    "a partial in place": (
        f"{WITH_UNITS}\n\nestimator = tf.estimator.Estimator(functools.partial(my_model, units=3))\n{TRAIN}",
        ("def my_model(features, params, units):", "model = my_model(make_inputs(input_fn()), {}, units=3)\n"),
        ("partial",),
    ),
    "a partial with a name": (
        f"{WITH_UNITS}\n\nfn = functools.partial(my_model, units=3)\nestimator = tf.estimator.Estimator(fn)\n{TRAIN}",
        ("fn = functools.partial(my_model, units=3)\nmodel = fn(make_inputs(input_fn()), {})\n",),
        (),
    ),
    "another name": (
        f"{PLAIN}\n\nfn = my_model\nestimator = tf.estimator.Estimator(fn, params=dict(units=3))\n{TRAIN}",
        ("fn = my_model\nmodel = fn(make_inputs(input_fn()), dict(units=3))\n",),
        (),
    ),
    "a lambda in place": (
        f"{WITH_UNITS}\n\nestimator = tf.estimator.Estimator(\n"
        "    model_fn=lambda features, labels, mode, params: my_model(features, labels, mode, params, units=3))\n"
        + TRAIN,
        ("model = my_model(make_inputs(input_fn()), {}, units=3)\n",),
        ("lambda features",),
    ),
    "a lambda with a name": (
        f"{WITH_UNITS}\n\nfn = lambda features, labels, mode: my_model(features, labels, mode, {{}}, 3)\n"
        f"estimator = tf.estimator.Estimator(fn)\n{TRAIN}",
        ("fn = lambda features: my_model(features, {}, 3)\n", "model = fn(make_inputs(input_fn()))\n"),
        (),
    ),
    "a builder of a partial": (
        f"{WITH_UNITS}\n\ndef build(units):\n    return functools.partial(my_model, units=units)\n\n\n"
        f"estimator = tf.estimator.Estimator(build(3))\n{TRAIN}",
        ("    return functools.partial(my_model, units=units)\n", "model = build(3)(make_inputs(input_fn()), {})\n"),
        (),
    ),
}

FORMS.update(
    {
        "a parameter": (
            f"{PLAIN}\n\ndef train(fn):\n    estimator = tf.estimator.Estimator(fn)\n    {TRAIN}\n\ntrain(my_model)\n",
            ("def train(fn):\n    model = fn(make_inputs(input_fn()), {})\n", "\ntrain(my_model)\n"),
            (),
        ),
        "one of a dict": (
            f"{PLAIN}\n\n{PLAIN.replace('my_model', 'other')}\n\nMODELS = {{'a': my_model, 'b': other}}\n"
            f"estimator = tf.estimator.Estimator(MODELS[name], params=dict(units=3))\n{TRAIN}",
            ("model = MODELS[name](make_inputs(input_fn()), dict(units=3))\n", "def other(features, params):"),
            (),
        ),
        "one of two": (
            f"{PLAIN}\n\n{PLAIN.replace('my_model', 'other')}\n\nif deep:\n    fn = my_model\nelse:\n    fn = other\n"
            f"estimator = tf.estimator.Estimator(fn, params=dict(units=3))\n{TRAIN}",
            ("model = fn(make_inputs(input_fn()), dict(units=3))\n", "def other(features, params):"),
            (),
        ),
        "a builder that returns one of two": (
            f"{PLAIN}\n\n{PLAIN.replace('my_model', 'other')}\n\ndef build(deep):\n    if deep:\n"
            "        return my_model\n    else:\n        return other\n\n\n"
            f"estimator = tf.estimator.Estimator(build(1), params=dict(units=3))\n{TRAIN}",
            ("model = build(1)(make_inputs(input_fn()), dict(units=3))\n", "def other(features, params):"),
            (),
        ),
        "one of two in place": (
            f"{PLAIN}\n\n{PLAIN.replace('my_model', 'other')}\n\n"
            f"estimator = tf.estimator.Estimator(my_model if deep else other, params=dict(units=3))\n{TRAIN}",
            ("model = (my_model if deep else other)(make_inputs(input_fn()), dict(units=3))\n",),
            (),
        ),
        "an object that can be called": (
            f"{CLASS.replace('def model_fn', 'def __call__')}\n\n"
            f"net = Net(3)\nestimator = tf.estimator.Estimator(net)\n{TRAIN}",
            ("    def __call__(self, features):", "model = net(make_inputs(input_fn()))\n"),
            (),
        ),
        "an attribute": (
            f"{PLAIN}\n\nclass Runner:\n    def __init__(self, fn):\n        self.fn = fn\n\n"
            f"    def run(self):\n        estimator = tf.estimator.Estimator(self.fn)\n        {TRAIN}\n\n"
            "Runner(my_model).run()\n",
            ("        model = self.fn(make_inputs(input_fn()), {})\n", "\nRunner(my_model).run()\n"),
            (),
        ),
    }
)


@pytest.mark.parametrize("form", FORMS)
def test_a_model_fn_is_found_however_it_is_given(form: str) -> None:
    program, wanted, unwanted = FORMS[form]
    new, findings = run(HEAD + program)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    ast.parse(new)
    assert "tf.estimator" not in new and "labels, mode" not in new
    for text in wanted:
        assert text in new, new
    for text in unwanted:
        assert text not in new, new


# how the model_fn is given or used -> (the program after its head, the code, a text in the finding's line)
REFUSED: dict[str, tuple[str, str, str]] = {
    "a builder that chooses": (
        f"{PLAIN}\n\ndef choose(deep):\n    if deep:\n        return my_model\n    return None\n\n\n"
        f"estimator = tf.estimator.Estimator(choose(1))\n{TRAIN}",
        "TFM104",
        "return None",
    ),
    "a name with two values": (
        f"{PLAIN}\n\nfn = my_model\nfn = print\nestimator = tf.estimator.Estimator(fn)\n{TRAIN}",
        "TFM104",
        "fn = print",
    ),
    "a parameter that nothing is given for": (
        f"{PLAIN}\n\ndef train(fn):\n    estimator = tf.estimator.Estimator(fn)\n    {TRAIN}\n",
        "TFM104",
        "Estimator(fn)",
    ),
    "a parameter of a function that is handed on": (
        f"{PLAIN}\n\ndef train(fn):\n    estimator = tf.estimator.Estimator(fn)\n    {TRAIN}\n\nrun(train)\n",
        "TFM104",
        "Estimator(fn)",
    ),
    "a function that is decorated": (
        f"@retried\n{PLAIN}\n\nestimator = tf.estimator.Estimator(my_model)\n{TRAIN}",
        "TFM104",
        "def my_model",
    ),
    "a dict that is changed": (
        f"{PLAIN}\n\nMODELS = {{'a': my_model}}\nMODELS['b'] = other\n"
        f"estimator = tf.estimator.Estimator(MODELS[name])\n{TRAIN}",
        "TFM104",
        "MODELS[name]",
    ),
    "an object that cannot be called": (
        f"{CLASS}\n\nestimator = tf.estimator.Estimator(Net(3))\n{TRAIN}",
        "TFM104",
        "Estimator(Net(3))",
    ),
    "a partial by position": (
        f"{WITH_UNITS}\n\nestimator = tf.estimator.Estimator(functools.partial(my_model, 3))\n{TRAIN}",
        "TFM105",
        "partial(my_model, 3)",
    ),
    "a partial that gives the mode": (
        f"{PLAIN}\n\nestimator = tf.estimator.Estimator(functools.partial(my_model, mode='train'))\n{TRAIN}",
        "TFM105",
        "def my_model",
    ),
    "a lambda that computes": (
        f"{PLAIN}\n\nestimator = tf.estimator.Estimator(\n"
        f"    lambda features, labels, mode: my_model(features * 2, labels, mode, {{}}))\n{TRAIN}",
        "TFM105",
        "features * 2",
    ),
    "another use of the builder": (
        f"{BUILDER}\n\nestimator = tf.estimator.Estimator(model_fn_builder(3))\n{TRAIN}test = model_fn_builder(4)\n",
        "TFM113",
        "test =",
    ),
    "another use of the name": (
        f"{BUILDER}\n\nfn = model_fn_builder(3)\nestimator = tf.estimator.Estimator(fn)\n{TRAIN}print(fn)\n",
        "TFM113",
        "print(fn)",
    ),
    "another use of the method": (
        f"{CLASS}\n\nestimator = tf.estimator.Estimator(Net(3).model_fn)\n{TRAIN}print(Net(4).model_fn)\n",
        "TFM113",
        "print(Net(4)",
    ),
}


@pytest.mark.parametrize("form", REFUSED)
def test_what_cannot_be_followed_is_refused(form: str) -> None:
    program, code, part = REFUSED[form]
    text = HEAD + program
    new, findings = run(text)
    assert new == text
    lines = [text.splitlines()[f.line - 1] for f in findings if f.code == code and f.severity is Severity.MANUAL]
    assert any(part in line for line in lines), findings


def test_a_builder_in_a_module_beside_the_driver() -> None:
    files = {
        "network.py": f"import tensorflow as tf\n\n\n{BUILDER}",
        "train.py": HEAD.replace("import functools\n\n", "")
        + f"import network\n\nestimator = tf.estimator.Estimator(network.model_fn_builder(3))\n{TRAIN}",
    }
    results = run_project(files)
    assert "model = network.model_fn_builder(3)(make_inputs(input_fn()), {})" in results["train.py"][0]
    assert "def model_fn(features, params):" in results["network.py"][0]


def test_parameters_stand_in_any_order() -> None:
    """Estimator passes features and labels by their names (TensorFlow 1.15.5)."""
    text = program()
    mixed = text.replace("(features, labels, mode, params)", "(mode, labels, features, params)")
    assert mixed != text and run(mixed)[0] == run(text)[0]
    mixed = text.replace("(features, labels, mode, params)", "(params, features, labels, mode)")
    new, findings = run(mixed)
    assert new == mixed and "TFM105" in [finding.code for finding in findings]


OF_OBJECTS = HEAD + (
    "class Model:\n    def __init__(self, units):\n        self.units = units\n\n"
    + deeper("def my_model(self, features, labels, mode):\n" + BODY.format(units="self.units"))
    + "\n\n"
)
DRIVEN = """\
        estimator = tf.estimator.Estimator(self.model.my_model)
        estimator.train(input_fn, steps=3)
        print(estimator.evaluate(input_fn))


"""
OBJECTS = [
    "class Runner:\n    def __init__(self, model):\n        self.model = model\n\n    def run(self):\n"
    + DRIVEN
    + "Runner(Model(3)).run()\n",
    "class Runner:\n    def __init__(self, model=None):\n        self.model = model or Model(2)\n\n    def run(self):\n"
    + DRIVEN
    + "Runner(Model(3)).run()\n",
    "def make(units):\n    return Model(units)\n\n\ndef run(model):\n"
    "    estimator = tf.estimator.Estimator(model.my_model)\n"
    "    estimator.train(input_fn, steps=3)\n    print(estimator.evaluate(input_fn))\n\n\n"
    "run(make(3))\nrun(Model(2))\n",
]


@pytest.mark.parametrize("driver", OBJECTS)
def test_a_model_fn_of_an_object_is_found_wherever_the_object_comes_from(driver: str) -> None:
    new, findings = run(OF_OBJECTS + driver)
    assert [f for f in findings if f.severity is Severity.MANUAL] == []
    assert ".fit(" in new and "EstimatorSpec" not in new


def test_an_object_that_code_elsewhere_replaces_is_not_known() -> None:
    driver = OBJECTS[0].replace(
        "Runner(Model(3)).run()\n", "runner = Runner(Model(3))\nrunner.model = other\nrunner.run()\n"
    )
    _, findings = run(OF_OBJECTS + driver)
    assert "TFM104" in [f.code for f in findings if f.severity is Severity.MANUAL]


MODEL_FN = """\
import tensorflow as tf


def model_fn(units, features, labels, mode):
    logits = tf.layers.dense(features, units)
    loss = tf.losses.mean_squared_error(labels, logits)
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)
"""
OF_AN_OBJECT = """\
from model_fns import model_fn
from training import train


class Model:
    def __init__(self, units):
        self.units = units
        self.model_fn = lambda features, labels, mode: model_fn(self.units, features, labels, mode)

    def train(self):
        train(self.model_fn, "out")


if __name__ == "__main__":
    Model(1).train()
"""
ELSEWHERE = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


def train(model_fn, model_dir):
    estimator = tf.estimator.Estimator(model_fn=model_fn, model_dir=model_dir)
    estimator.train(input_fn, steps=3)
"""


def test_a_lambda_of_a_file_that_does_not_change() -> None:
    results = run_project({"model_fns.py": MODEL_FN, "models.py": OF_AN_OBJECT, "training.py": ELSEWHERE})
    assert [f.code for f in results["training.py"][1]] == ["TFM104"] and results["training.py"][0] == ELSEWHERE
