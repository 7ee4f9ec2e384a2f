"""How a model_fn leaves: one exit or many, arguments that are None, in a dict, or chosen by the mode; HParams."""

from __future__ import annotations

import ast
import json
import numbers
import re
from pathlib import Path
from typing import Any

import pytest

from migrator.findings import Finding, Severity
from tests.rules.programs import run

HEAD = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


"""
TAIL = """

estimator = tf.estimator.Estimator(model_fn, params={params})
estimator.train(input_fn, steps=3)
print(estimator.evaluate(input_fn))
"""
KEYS = "tf.estimator.ModeKeys"
LOGITS = "logits = tf.layers.dense(features, 1)\n"
LOSS = "loss = tf.losses.mean_squared_error(labels, logits)\n"
OP = "tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=tf.train.get_global_step())"
MAE = '{"mae": tf.metrics.mean_absolute_error(labels, logits)}'
SPEC = "tf.estimator.EstimatorSpec"


def text_of(body: str, helpers: str = "", params: str = "None") -> str:
    lines = "".join(f"    {line}\n" if line else "\n" for line in body.rstrip("\n").split("\n"))
    return f"{HEAD}{helpers}def model_fn(features, labels, mode, params):\n{lines}{TAIL.format(params=params)}"


def manual(findings: list[Finding]) -> list[str]:
    return [f.code for f in findings if f.severity is Severity.MANUAL]


EXPECTED = """\
def model_fn(features, params):
    logits = tf.keras.layers.Dense(1)(features)
    model = tf.keras.Model(features, logits)
    model.compile(
        optimizer=tf.keras.optimizers.legacy.SGD(learning_rate=0.1),
        loss=tf.keras.losses.MeanSquaredError(),
        metrics=[tf.keras.metrics.MeanAbsoluteError(name="mae")],
    )
    return model
"""

# how the model_fn ends -> its body; all of them are the same program
EXITS = {
    "early returns": (
        f"{LOGITS}if mode == {KEYS}.PREDICT:\n    return {SPEC}(mode, predictions=logits)\n{LOSS}"
        f"if mode == {KEYS}.EVAL:\n    return {SPEC}(mode, loss=loss, eval_metric_ops={MAE})\n"
        f"return {SPEC}(mode, loss=loss, train_op={OP})\n"
    ),
    "one exit and names that are None": (
        f"loss = None\ntrain_op = None\neval_metric_ops = None\nexport_outputs = None\nscaffold = None\n{LOGITS}"
        f"if mode != {KEYS}.PREDICT:\n    {LOSS}"
        f"if mode == {KEYS}.TRAIN:\n    train_op = {OP}\nelif mode == {KEYS}.EVAL:\n    eval_metric_ops = {MAE}\n"
        f"return {SPEC}(mode=mode, predictions=logits, loss=loss, train_op=train_op, scaffold=scaffold,\n"
        "    eval_metric_ops=eval_metric_ops, export_outputs=export_outputs)\n"
    ),
    "names given together": (
        f"loss, train_op = None, None\nmetrics = scaffold = None\n{LOGITS}if mode != {KEYS}.PREDICT:\n    {LOSS}"
        f"if mode == {KEYS}.TRAIN:\n    train_op = {OP}\nif mode == {KEYS}.EVAL:\n    metrics = {MAE}\n"
        f"return {SPEC}(mode, logits, loss, train_op, eval_metric_ops=metrics, scaffold=scaffold)\n"
    ),
    "nothing in the other branch": (
        f"{LOGITS}if mode in ({KEYS}.TRAIN, {KEYS}.EVAL):\n    {LOSS}else:\n    loss = None\n"
        f"if mode == {KEYS}.TRAIN:\n    train_op = {OP}\nelse:\n    train_op = None\n"
        f"if mode == {KEYS}.EVAL:\n    metrics = {MAE}\nelse:\n    metrics = {{}}\n"
        f"return {SPEC}(mode=mode, loss=loss, train_op=train_op, eval_metric_ops=metrics, predictions=logits)\n"
    ),
    "a dict of arguments": (
        f"{LOGITS}spec = dict(mode=mode, predictions=logits)\nif mode != {KEYS}.PREDICT:\n    {LOSS}"
        f'    spec["loss"] = loss\n    if mode == {KEYS}.TRAIN:\n        spec["train_op"] = {OP}\n'
        f"    else:\n        spec.update(eval_metric_ops={MAE})\nreturn {SPEC}(**spec)\n"
    ),
    "arguments chosen by the mode": (
        f"{LOGITS}{LOSS}training = mode == {KEYS}.TRAIN\n"
        f"return {SPEC}(mode, loss=loss, train_op={OP} if training else None,\n"
        f"    eval_metric_ops=None if training else {MAE})\n"
    ),
    "functions of the modes": (
        f"{LOGITS}\ndef train():\n    {LOSS}    return {SPEC}(mode, loss=loss, train_op={OP})\n\n"
        f"def evaluate():\n    {LOSS}    return {SPEC}(mode, loss=loss, eval_metric_ops={MAE})\n\n"
        f"if mode == {KEYS}.TRAIN:\n    return train()\nelif mode == {KEYS}.EVAL:\n    return evaluate()\n"
        "raise ValueError(mode)\n"
    ),
    "asserts": (
        f"assert mode in ({KEYS}.TRAIN, {KEYS}.EVAL)\n{LOGITS}{LOSS}if mode == {KEYS}.TRAIN:\n"
        f"    return {SPEC}(mode, loss=loss, train_op={OP})\nassert mode == {KEYS}.EVAL\n"
        f"return {SPEC}(mode, loss=loss, eval_metric_ops={MAE})\n"
    ),
}


@pytest.mark.parametrize("name", EXITS)
def test_every_exit_gives_the_same_program(name: str) -> None:
    new, findings = run(text_of(EXITS[name]))
    assert not manual(findings), findings
    ast.parse(new)
    assert EXPECTED in "\n".join(line for line in new.split("\n") if line) + "\n", new


def test_results_in_a_dict() -> None:
    helpers = (
        "def build(features, labels):\n    net = tf.layers.dense(features, 1)\n"
        "    loss = tf.losses.mean_squared_error(labels, net)\n"
        '    return {"loss": loss, "logits": net, "unused": net * 2.0}\n\n\n'
    )
    body = (
        f"outputs = build(features, labels)\nloss = outputs['loss']\nlogits = outputs['logits']\n"
        f"return {SPEC}(mode, loss=loss, train_op={OP}, eval_metric_ops={MAE})\n"
    )
    new, findings = run(text_of(body, helpers))
    assert not manual(findings), findings
    assert "net = tf.keras.layers.Dense(1)(features)" in new and "outputs" not in new and "def build" not in new


REFUSED = {
    "a dict that is read": (
        f"{LOGITS}{LOSS}spec = dict(mode=mode, loss=loss, train_op={OP})\nprint(spec)\nreturn {SPEC}(**spec)\n",
        "TFM105",
        "print(spec)",
    ),
    "a dict from elsewhere": (
        f"{LOGITS}{LOSS}spec = make(loss, {OP})\nreturn {SPEC}(mode=mode, **spec)\n",
        "TFM105",
        "spec = make(",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_resolved_is_refused(name: str) -> None:
    body, code, part = REFUSED[name]
    text = text_of(body)
    new, findings = run(text)
    assert new == text
    lines = [text.splitlines()[f.line - 1] for f in findings if f.code == code]
    assert any(part in line for line in lines), findings


def test_none_that_the_network_reads_stays() -> None:
    body = f"activation = None\nlogits = tf.layers.dense(features, 1, activation=activation)\n{LOSS}"
    new, findings = run(text_of(f"{body}return {SPEC}(mode, loss=loss, train_op={OP})\n"))
    assert not manual(findings)
    assert "    activation = None\n    logits = tf.keras.layers.Dense(1, activation=activation)(features)\n" in new


# -- params ------------------------------------------------------------------------------------------------------------

BY_ATTRIBUTE = (
    f"net = tf.layers.dense(features, params.units)\nlogits = tf.layers.dense(net, 1)\n{LOSS}"
    f"return {SPEC}(mode, loss=loss, train_op={OP})\n"
)


def test_hparams_become_a_namespace() -> None:
    text = text_of(BY_ATTRIBUTE, params="tf.contrib.training.HParams(units=3, rate=0.1)")
    new, findings = run(text)
    assert not manual(findings), findings
    assert "model = model_fn(make_inputs(input_fn()), types.SimpleNamespace(units=3, rate=0.1))" in new
    assert new.index("import types") < new.index("import tensorflow as tf")


def with_hparams(use: str, made: str = "units=3") -> str:
    text = text_of(BY_ATTRIBUTE, params="hparams")
    return text.replace("\n\nestimator =", f"\n\nhparams = tf.contrib.training.HParams({made})\n{use}\nestimator =")


@pytest.mark.parametrize("use", ["hparams.to_proto()", "hparams.set_model_structure(None)"])
def test_what_only_hparams_can_do_is_refused(use: str) -> None:
    text = with_hparams(use)
    new, findings = run(text)
    assert new == text
    assert [(f.code, text.splitlines()[f.line - 1]) for f in findings] == [("TFM123", use)]


def test_the_class_has_the_methods_that_are_asked_for() -> None:
    new, findings = run(with_hparams("print('units' in hparams, hparams.values())"))
    assert not manual(findings), findings
    assert "def __contains__" in new and "def values" in new and "def parse" not in new
    assert "import re\n" not in new and "import types" not in new and "hparams = HParams(units=3)" in new
    imported = f"from tensorflow.contrib.training import HParams\n{with_hparams('hparams.parse(str(3))')}"
    parsed = run(imported.replace("tf.contrib.training.HParams", "HParams"))[0]
    assert "class HParams:" in parsed and "hparams = HParams(units=3)" in parsed
    assert all(f"import {module}\n" in parsed for module in ("numbers", "re"))


@pytest.mark.parametrize(
    "use",
    [
        "hparams.add_hparam('more', 4)",
        "other = copy.deepcopy(hparams)\nother.set_hparam('units', 4)",
        "for one in [hparams]:\n    one.parse('units=4')",
        "def more(options):\n    return options.values()\n\n\nprint(more(hparams))",
        "def made():\n    return hparams\n\n\nprint(made().get('units', 2))",
    ],
)
def test_whatever_may_be_hparams_has_their_methods(use: str) -> None:
    new, findings = run("import copy\n" + with_hparams(use))
    assert not manual(findings), findings
    assert "class HParams" in new and use.partition("\n")[0] in new


@pytest.mark.parametrize(
    "use", ["print({}.get('a'))", "import os\nos.environ.get('a')", "ways = [1]\nprint(2 in ways)"]
)
def test_what_is_no_hparams_asks_for_nothing(use: str) -> None:
    assert "types.SimpleNamespace(units=3)" in run(with_hparams(use))[0]


HPARAMS = (
    *("units=4", "rate=2", "rate=.5,units=-2", "names=[x, y],deep=true", "deep=0", "many=[1,2]", "title=a b", ""),
    *("units=4.5", "units=1,units=2", "many=3", "many[0]=3", "other=1", "units", "deep=yes", "units=[1]", "many=[a]"),
)
SET = (
    *(("units", 4), ("units", 4.0), ("units", True), ("rate", 3), ("rate", "x"), ("title", 3), ("deep", 1)),
    *(("deep", False), ("many", [4]), ("many", 4), ("none", 3), ("other", 3)),
)
MADE = "units=3, rate=0.1, deep=False, many=[1.5], names=['a'], title='t', none=None"
ASKED = f"""
def tried(function, *values):
    try:
        answer = function(*values)
        return str(answer) if answer is hparams else answer
    except (KeyError, ValueError) as error:
        return type(error).__name__


def asked():
    global hparams
    for text in {HPARAMS!r}:
        hparams = new()
        yield text, tried(hparams.parse, text), sorted(hparams.values().items(), key=str)
    for name, value in {SET!r}:
        hparams = new()
        yield name, value, tried(hparams.set_hparam, name, value), hparams.get(name), str(hparams)
        yield tried(hparams.get, name, value), tried(hparams.add_hparam, name, value), name in hparams
        yield tried(hparams.override_from_dict, {{name: value}}), hparams.del_hparam(name), str(hparams)
    hparams = new()
    yield tried(hparams.parse_json, '{{"units": 5}}'), hparams.to_json(sort_keys=True)
    yield tried(hparams.add_hparam, "empty", [])
"""


def hparams_program() -> str:
    new = f"def new():\n    return tf.contrib.training.HParams({MADE})\n"
    return with_hparams(f"{new}\n{ASKED}\nhparams = new()\nfor one in asked():\n    print(one)")


def test_hparams_answer_as_those_of_tensorflow1() -> None:
    new, findings = run(hparams_program())
    assert not manual(findings), findings
    begin, end = new.index("class HParams"), new.index("\n\n\n", new.index("class HParams"))
    scope: dict[str, Any] = {"json": json, "numbers": numbers, "re": re}
    exec(new[begin:end] + f"\n\ndef new():\n    return HParams({MADE})\n{ASKED}", scope)
    answers = "".join(f"{one}\n" for one in scope["asked"]())
    # What 1.15.5 printed for the same lines.
    assert answers == (Path(__file__).parent / "hparams_of_tensorflow1.txt").read_text()


def test_params_that_may_be_missing() -> None:
    body = (
        f"params = params or {{}}\nunits = params.get('units', 3)\nnet = tf.layers.dense(features, units)\n"
        f"logits = tf.layers.dense(net, 1)\n{LOSS}optimizer = tf.train.AdamOptimizer(params.get('rate', 0.1))\n"
        f"{'train_op = optimizer.minimize(loss, tf.train.get_global_step())'}\n"
        f"return {SPEC}(mode, loss=loss, train_op=train_op)\n"
    )
    new, findings = run(text_of(body))
    assert not manual(findings), findings
    assert "    params = params or {}\n    units = params.get('units', 3)\n" in new
    assert "learning_rate=params.get('rate', 0.1)" in new
