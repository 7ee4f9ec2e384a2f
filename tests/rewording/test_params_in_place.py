"""Symbols of TensorFlow in params stand where the model_fn reads them: those that stay first."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.program.local_names import with_symbols_in_place
from migrator.program.params_in_place import with_params_in_place
from migrator.program.parsed import ParsedFile

TOP = "import tensorflow as tf\n\n\n"
MODEL = "def model_fn(features, labels, mode, params):\n{}    return make(features)\n\n\n"
MADE = 'tf.estimator.Estimator(model_fn, params={"rate": 0.1, "kind": tf.train.AdamOptimizer})\n'
READS = "    optimizer = params['kind'](params['rate'])\n"
GETS = '    optimizer = params.get("kind", tf.train.FtrlOptimizer)(0.1)\n'
PROGRAM = TOP + MODEL.format(READS) + MADE


def said(text: str, *elsewhere: str) -> str:
    file = ParsedFile.parse(Path("train.py"), text)
    return with_params_in_place(file, elsewhere.__contains__).module.code


STAYS = {
    "nobody reads it": TOP + MODEL.format("") + MADE,
    "the params are handed on": TOP + MODEL.format(READS + "    net = build(features, params)\n") + MADE,
    "an entry is given": TOP + MODEL.format("    params['kind'] = own\n" + READS) + MADE,
    "the params are others": TOP + MODEL.format("    params = dict(params)\n" + READS) + MADE,
    "somebody else speaks of it": PROGRAM + 'print("kind")\n',
    "two Estimators": PROGRAM + MADE,
    "a key that is computed": TOP + MODEL.format("    net = params[name()]\n" + READS) + MADE,
    "what is the same in Keras": PROGRAM.replace("tf.train.AdamOptimizer", "tf.nn.relu"),
    "params that somebody else reads": PROGRAM.replace(
        MADE,
        'P = {"rate": 0.1, "kind": tf.train.AdamOptimizer}\ntf.estimator.Estimator(model_fn, params=P)\nprint(P)\n',
    ),
    "params that others are added to": PROGRAM.replace('{"rate"', '{**more(), "rate"').replace("r}", "r, **own()}"),
    "params with a comment": PROGRAM.replace('0.1, "kind"', '0.1,  # slow\n    "kind"'),
    "params with two names": PROGRAM.replace(
        MADE, 'P = Q = {"rate": 0.1, "kind": tf.train.AdamOptimizer}\ntf.estimator.Estimator(model_fn, params=P)\n'
    ),
    "another name that is given twice": TOP + MODEL.format("    p = params\n    p = own\n" + READS) + MADE,
    "a number": PROGRAM.replace("tf.train.AdamOptimizer", "3"),
    "a function of the program": PROGRAM.replace("tf.train.AdamOptimizer", "make"),
}


@pytest.mark.parametrize("name", STAYS)
def test_what_stays(name: str) -> None:
    assert said(STAYS[name]) == STAYS[name]


def test_another_file_knows_the_model_fn() -> None:
    assert said(PROGRAM, "model_fn") == PROGRAM


@pytest.mark.parametrize(("reads", "rate"), [(READS, "params['rate']"), (GETS, "0.1")])
def test_it_stands_where_it_is_read(reads: str, rate: str) -> None:
    body = f"    optimizer = tf.train.AdamOptimizer({rate})\n"
    made = 'tf.estimator.Estimator(model_fn, params={"rate": 0.1})\n'
    assert said(TOP + MODEL.format(reads) + MADE) == TOP + MODEL.format(body) + made


def test_a_default_that_the_params_leave() -> None:
    made = 'tf.estimator.Estimator(model_fn, params={"rate": 0.1})\n'
    text = TOP + MODEL.format(GETS) + made
    assert said(text) == TOP + MODEL.format("    optimizer = tf.train.FtrlOptimizer(0.1)\n") + made
    unknown = text.replace('{"rate"', '{KEY: 2, "rate"')  # which may be that key
    assert said(unknown) == unknown
    assert said(text, "model_fn") == text
    assert said(text.replace("{", "load({").replace("}", "})")) == text.replace("{", "load({").replace("}", "})")


def test_a_class_of_which_the_next_line_makes_an_object() -> None:
    lines = "    if mode:\n        made = tf.train.AdamOptimizer\n        made = made(0.1)\n"
    text = TOP + MODEL.format(lines)
    new = TOP + MODEL.format("    if mode:\n        made = tf.train.AdamOptimizer(0.1)\n")
    assert with_symbols_in_place(ParsedFile.parse(Path("train.py"), text)).module.code == new
    for other in ("made = made(made)", "made = made + 1", "other = made(0.1)", "made = make(0.1)"):
        stays = text.replace("made = made(0.1)", other)
        assert with_symbols_in_place(ParsedFile.parse(Path("train.py"), stays)).module.code == stays


@pytest.mark.parametrize("name", ["P", "P: dict"])
def test_params_with_a_name(name: str) -> None:
    made = "{} = {{{}}}\ntf.estimator.Estimator(model_fn, params=P)\n"
    before, after = (made.format(name, one) for one in ('"rate": 0.1, "kind": tf.train.AdamOptimizer', '"rate": 0.1'))
    body = "    p = params\n    optimizer = {}(p['rate'])\n"
    new = TOP + MODEL.format(body.format("tf.train.AdamOptimizer")) + after
    assert said(TOP + MODEL.format(body.format("p['kind']")) + before) == new


def test_params_by_keywords() -> None:
    made = "tf.estimator.Estimator(model_fn, params=dict(rate=0.1{}))\n"
    new = TOP + MODEL.format("    optimizer = tf.train.AdamOptimizer(params['rate'])\n") + made.format("")
    assert said(TOP + MODEL.format(READS) + made.format(", kind=tf.train.AdamOptimizer")) == new
