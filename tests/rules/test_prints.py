"""`tf.Print`: the value stands in its place."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import program, run

LOSS = "loss = tf.losses.mean_squared_error(labels, logits)\n"
PRINTS = [
    ("network", 'net = tf.Print(net, [tf.shape(net)], "shape", summarize=3)', ""),
    ("network", "# how wide\ntf.Print(input_=net, data=[net])", "# how wide"),
    ("network", "net = tf.nn.relu(tf.Print(net, [net]))", "net = tf.nn.relu(net)"),
    ("network", "net = tf.Print(tf.nn.relu(net), [net], first_n=5)", "net = tf.nn.relu(net)"),
    ("loss", LOSS + 'loss = tf.compat.v1.Print(loss, [loss, tf.reduce_mean(labels)], "loss")', LOSS),
    ("loss", LOSS + "if mode == tf.estimator.ModeKeys.TRAIN:\n    loss = tf.Print(loss, [loss])", LOSS),
]


def lines_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("part, lines, instead", PRINTS)
def test_values_stand_in_the_place_of_prints(part: str, lines: str, instead: str) -> None:
    plain, _ = run(program(**{part: instead or "pass"}))
    new, findings = run(program(**{part: lines}))
    assert [f.code for f in findings if f.severity is Severity.MANUAL] == []
    assert lines_of(new) == [line for line in lines_of(plain) if instead or line.strip() != "pass"]
    assert [f.code for f in findings].count("TFM130") == 1


MORE = [
    "net = tf.Print(net, [tf.assign_add(seen, 1)])",
    "net = tf.Print(net, [note(net)])",
    "net = tf.Print(net, [tf.losses.absolute_difference(labels, net)])",  # in the collection of losses
    "net = tf.Print(net, [tf.layers.dense(net, 2)])",  # whose variables are trained variables
]


@pytest.mark.parametrize("line", MORE)
def test_prints_that_do_more_stay(line: str) -> None:
    text = program(network=line)
    new, findings = run(text)
    assert new == text and "TFM203" in {f.code for f in findings if f.severity is Severity.MANUAL}


def test_functions_of_the_same_name_stay() -> None:
    own = "class log:\n    def Print(x, data):\n        return x * 2.0\n\n\n"
    new, findings = run(own + program(network="net = log.Print(net, [net])"))
    assert "net = log.Print(net, [net])" in new and "TFM130" not in {f.code for f in findings}
