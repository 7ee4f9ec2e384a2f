"""Which version of TensorFlow a file was written for, and what a plain name in it means then."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from migrator.names.compat import in_compat, only_two, written_for_two
from tests.rules.programs import program, run

FOR_TWO = "scale = tf.compat.v1.get_variable('scale', [1])\n"


def test_the_table() -> None:
    assert in_compat("tf.get_variable") and not in_compat("tf.nn.relu")
    assert only_two("tf.nn.dropout") and not only_two("tf.get_variable")


@pytest.mark.parametrize(
    ("text", "two"),
    [
        ("", False),
        ("tf.nn.relu(x)", False),
        ("tf.compat.v1.get_variable('a')", True),
        ("tf.compat.v1.where(a, b, c)", True),
        ("tf.compat.v1.get_variable('a')\ntf.math.rsqrt(x)\ntf.nn.dropout(x, 0.1)\ntf.estimator.EstimatorSpec()", True),
        ("tf.compat.v1.get_variable('a')\ntf.layers.dense(x, 1)", False),
        ("tf.compat.v1.get_variable('a')\ntf.train.AdamOptimizer(1.0)", False),
        ("tf.compat.v1.get_variable('a')\ntf.contrib.layers.flatten(x)", False),
        ("tf.compat.v1.get_variable('a')  # once tf.layers.dense\n'''tf.layers'''", True),
        ("tf.compat.v1.get_variable('a')\nother.tf.layers.dense(x, 1)", True),
        ("tf.compat.v1.get_variable(", False),
    ],
)
def test_files_that_run_in_tensorflow_2(text: str, two: bool) -> None:
    assert written_for_two(text, {"tf"}) is two


def plain(network: str, also: str = FOR_TWO) -> str:
    """A program whose network is spelled for TensorFlow 2, as its other lines are."""
    text = program(network=f"{also}{network}")
    for name in ("layers.dense", "losses.", "train."):
        text = text.replace(f"tf.{name}", f"tf.compat.v1.{name}")
    return text


def test_what_is_dropped_and_what_is_kept() -> None:
    new, findings = run(plain("net = tf.nn.dropout(net, 0.1)", ""))
    assert "tf.keras.layers.Dropout(0.1)(net, training=True)" in new and "TFM189" in {
        finding.code for finding in findings
    }


@pytest.mark.parametrize("line", ["net = tf.nn.dropout(net, 0.9)", "net = tf.where(tf.zeros([1]) > 0, net, net)"])
def test_a_file_with_both_ways_is_refused(line: str) -> None:
    text = plain(f"{line}\nnet = tf.layers.flatten(net)", "")
    new, findings = run(text)
    codes = {finding.code for finding in findings if finding.severity is Severity.MANUAL}
    assert new == text and codes & {"TFM204", "TFM240"}, codes


def test_by_name_both_mean_the_same() -> None:
    text = plain("net = tf.nn.dropout(net, rate=0.1)\nnet = tf.layers.flatten(net)", "")
    assert "tf.keras.layers.Dropout(0.1)" in run(text)[0]
