"""Entries of dicts and attributes of objects that a model_fn makes are names of the model, in whatever words."""

from __future__ import annotations

import ast

import pytest

from migrator.findings import Severity
from tests.rules.programs import run, run_project

HEAD = """\
import types

import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


"""
TAIL = """

estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=3)
print(list(estimator.predict(input_fn)))
"""
OP = "tf.train.GradientDescentOptimizer(0.1).minimize({}, global_step=tf.train.get_global_step())"
PREDICT = "mode == tf.estimator.ModeKeys.PREDICT"
PLAIN = f"""\
def model_fn(features, labels, mode):
    hidden = tf.layers.dense(features, 2)
    logits = tf.layers.dense(hidden, 1)
    if {PREDICT}:
        return tf.estimator.EstimatorSpec(mode, predictions=logits)
    loss = tf.losses.mean_squared_error(labels, logits)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op={OP.format("loss")})
"""


def migrated(text: str) -> str:
    new, findings = run(HEAD + text + TAIL)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    return ast.unparse(ast.parse(new))


GROWN = f"""\
def model_fn(features, labels, mode):
    made = {{}}
    made["hidden"] = tf.layers.dense(features, 2)
    made["logits"] = tf.layers.dense(made["hidden"], 1)
    if {PREDICT}:
        return tf.estimator.EstimatorSpec(mode, predictions=made["logits"])
    made["loss"] = tf.losses.mean_squared_error(labels, made["logits"])
    return tf.estimator.EstimatorSpec(mode, loss=made["loss"], train_op={OP.format('made["loss"]')})
"""
UPDATED = f"""\
def model_fn(features, labels, mode):
    hidden = tf.layers.dense(features, 2)
    made = dict(logits=tf.layers.dense(hidden, 1))
    logits = made["logits"]
    if {PREDICT}:
        return tf.estimator.EstimatorSpec(mode, predictions=logits)
    made.update(loss=tf.losses.mean_squared_error(labels, logits))
    return tf.estimator.EstimatorSpec(mode, loss=made["loss"], train_op={OP.format('made["loss"]')})
"""
SPREAD = f"""\
def model_fn(features, labels, mode):
    hidden = tf.layers.dense(features, 2)
    logits = tf.layers.dense(hidden, 1)
    spec = dict(mode=mode, predictions=logits)
    if mode != tf.estimator.ModeKeys.PREDICT:
        spec["loss"] = tf.losses.mean_squared_error(labels, logits)
        spec["train_op"] = {OP.format('spec["loss"]')}
    return tf.estimator.EstimatorSpec(**spec)
"""
RETURNED = f"""\
def outputs(features, labels, mode):
    out = {{"hidden": tf.layers.dense(features, 2)}}
    out["logits"] = tf.layers.dense(out["hidden"], 1)
    if {PREDICT}:
        return out
    out["loss"] = tf.losses.mean_squared_error(labels, out["logits"])
    return out


def model_fn(features, labels, mode):
    out = outputs(features, labels, mode)
    if {PREDICT}:
        return tf.estimator.EstimatorSpec(mode, predictions=out["logits"])
    return tf.estimator.EstimatorSpec(mode, loss=out.get("loss"), train_op={OP.format('out["loss"]')})
"""
OBJECT = f"""\
class Model(object):
    rate = 0.1

    def __init__(self, features, labels, mode):
        self.features, self.labels = features, labels
        self.loss = self.train_op = None
        self.build(2)
        if mode != tf.estimator.ModeKeys.PREDICT:
            self.loss = tf.losses.mean_squared_error(self.labels, self.logits)
            self.train_op = self.optimizer().minimize(self.loss, global_step=tf.train.get_global_step())

    def build(self, units):
        self.hidden = tf.layers.dense(self.features, units)
        self.logits = tf.layers.dense(self.hidden, 1)

    def optimizer(self):
        return tf.train.GradientDescentOptimizer(self.rate)


def model_fn(features, labels, mode):
    net = Model(features, labels, mode)
    if {PREDICT}:
        return tf.estimator.EstimatorSpec(mode, predictions=net.logits)
    return tf.estimator.EstimatorSpec(mode, loss=net.loss, train_op=net.train_op)
"""
DEEP = "class Deep(Model):\n    def build(self, units):\n        super().shared(units)\n"
DERIVED = (
    OBJECT.replace("    def build", "    def shared")
    .replace(
        "def model_fn",
        "class Deep(Model):\n    def build(self, units):\n        super().shared(units)\n\n\ndef model_fn",
    )
    .replace("Model(features, labels", "Deep(features, labels")
)


RECORD = f"""\
Made = collections.namedtuple("Made", "logits loss")


def outputs(features, labels, mode):
    logits = tf.layers.dense(tf.layers.dense(features, 2), 1)
    loss = None
    if mode != tf.estimator.ModeKeys.PREDICT:
        loss = tf.losses.mean_squared_error(labels, logits)
    return Made(logits, loss=loss)


def model_fn(features, labels, mode):
    out = outputs(features, labels, mode)
    if {PREDICT}:
        return tf.estimator.EstimatorSpec(mode, predictions=out.logits)
    return tf.estimator.EstimatorSpec(mode, loss=out.loss, train_op={OP.format("out.loss")})
"""
NAMESPACE = f"""\
def model_fn(features, labels, mode):
    made = types.SimpleNamespace(hidden=tf.layers.dense(features, 2))
    made.logits = tf.layers.dense(made.hidden, 1)
    if {PREDICT}:
        return tf.estimator.EstimatorSpec(mode, predictions=made.logits)
    made.loss = tf.losses.mean_squared_error(labels, made.logits)
    return tf.estimator.EstimatorSpec(mode, loss=made.loss, train_op={OP.format("made.loss")})
"""
PROPERTIES = (
    OBJECT.replace("    def optimizer(", "    @property\n    def optimizer(")
    .replace("self.optimizer()", "self.optimizer")
    .replace("    def build(", "    def __call__(")
    .replace("        self.build(2)\n", "        self(2)\n")
)


@pytest.mark.parametrize("text", [GROWN, UPDATED, SPREAD, RETURNED, OBJECT, DERIVED, NAMESPACE, PROPERTIES])
def test_the_same_program(text: str) -> None:
    assert migrated(text) == migrated(PLAIN)


@pytest.mark.parametrize("said", ['"logits loss"', '["logits", "loss"]', 'field_names="logits, loss"'])
def test_named_tuples_of_helpers(said: str) -> None:
    new = migrated("import collections\n" + RECORD.replace('"logits loss"', said))
    assert "loss=tf.keras.losses.MeanSquaredError()" in new and "Made(" not in new and "out" not in new


WHOLE = f"""\
def model_fn(features, labels, mode):
    made = {{"features": features}}
    made["logits"] = tf.layers.dense(features, 1)
    if {PREDICT}:
        return tf.estimator.EstimatorSpec(mode, predictions=made)
    made["loss"] = tf.losses.mean_squared_error(labels, made["logits"])
    return tf.estimator.EstimatorSpec(mode, loss=made["loss"], train_op={OP.format('made["loss"]')})
"""


def test_a_dict_that_is_given_away_stays_with_what_it_had_then() -> None:
    new = migrated(WHOLE)
    assert "made['logits'] = logits" in new and "made['loss']" not in new and "'features': features" in new


CHANGED = f"""\
def extended(made):
    made["logits"] = made["logits"] * 2.0


def model_fn(features, labels, mode):
    made = {{}}
    made["logits"] = tf.layers.dense(features, 1)
    extended(made)
    loss = tf.losses.mean_squared_error(labels, made["logits"])
    return tf.estimator.EstimatorSpec(mode, made["logits"], loss, {OP.format("loss")})
"""
DELETED = CHANGED.replace(
    "    extended(made)\n", '    made["other"] = made.pop("logits")\n    made["logits"] = made["other"]\n'
)
BY_NAME = CHANGED.replace(
    "    extended(made)\n", '    for name in ["logits"]:\n        made[name] = 2.0 * made[name]\n'
)


@pytest.mark.parametrize("text", [CHANGED, DELETED, BY_NAME])
def test_a_dict_that_others_change_keeps_its_entries(text: str) -> None:
    new, _ = run(HEAD + text + TAIL)
    assert 'made["logits"] = ' in new, "an entry that something else changes is no name"


LEAKING = OBJECT.replace(
    "    return tf.estimator.EstimatorSpec(mode, loss",
    "    print(net)\n    return tf.estimator.EstimatorSpec(mode, loss",
)


def test_an_object_that_is_used_as_a_whole_stays() -> None:
    new, findings = run(HEAD + LEAKING + TAIL)
    assert new == HEAD + LEAKING + TAIL
    assert "TFM120" in [f.code for f in findings if f.severity is Severity.MANUAL]


RECURSIVE = OBJECT.replace(
    "    def build(self, units):\n", "    def build(self, units):\n        self.build(units - 1)\n"
)


def test_a_method_that_calls_itself_stays() -> None:
    new, findings = run(HEAD + RECURSIVE + TAIL)
    assert new == HEAD + RECURSIVE + TAIL
    assert "TFM120" in [f.code for f in findings if f.severity is Severity.MANUAL]


def test_a_class_that_another_file_uses_stays() -> None:
    model = HEAD.partition("\n\n\n")[0] + "\n\n\n" + OBJECT.partition("\n\n\ndef model_fn")[0] + "\n"
    main = "from model import Model\n" + HEAD + OBJECT.partition("\n\n\n")[2] + TAIL
    other = "from model import Model\n\n\ndef rate():\n    return Model.rate\n"
    new = run_project({"model.py": model, "main.py": main})
    assert "class Model" not in new["model.py"][0] and "Model(" not in new["main.py"][0].replace("keras.Model(", "")
    new = run_project({"model.py": model, "main.py": main, "other.py": other})
    assert "class Model" in new["model.py"][0]


def test_abstract_methods_go_with_those_that_define_them() -> None:
    text = f"""\
class Base(abc.ABC):
    @abc.abstractmethod
    def loss(self, labels, logits): ...

    def __call__(self, features, labels, mode):
        logits = tf.layers.dense(features, 1)
        if {PREDICT}:
            return tf.estimator.EstimatorSpec(mode, predictions=logits)
        loss = self.loss(labels, logits)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op={OP.format("loss")})


class Squares(Base):
    def loss(self, labels, logits):
        return tf.losses.mean_squared_error(labels, logits)


model_fn = Squares()
"""
    new = migrated("import abc\n\n" + text)
    assert "def loss" not in new and "MeanSquaredError" in new


LATER = f"""\
def model_fn(features, labels, mode):
    given = {{}}
    given["logits"] = tf.layers.dense(features, 1)
    spec = {{"mode": mode, "predictions": given}}
    given["twice"] = 2.0 * given["logits"]
    spec["loss"] = tf.losses.mean_squared_error(labels, given["logits"])
    return tf.estimator.EstimatorSpec(train_op={OP.format('spec["loss"]')}, **spec)
"""


def test_what_is_kept_elsewhere_gets_later_entries_as_well() -> None:
    text = LATER.replace("labels, given", "labels, 1.0 * given")
    new, findings = run(HEAD + text + TAIL)
    if not [f for f in findings if f.severity is Severity.MANUAL]:
        assert "twice" in new, new


GONE = CHANGED.replace(
    "    extended(made)\n", '    made["other"] = features\n    del made["other"], made["logits"]\n'
).replace("    loss =", '    made["logits"] = features\n    loss =')


def test_entries_that_are_deleted_stay_entries() -> None:
    new, _ = run(HEAD + GONE + TAIL)
    assert 'del made["other"], made["logits"]' in new
