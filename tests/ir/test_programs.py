"""The fixtures as the evaluator understands them; `python -m tests.ir.golden` writes the expected texts anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.ir.files import Parsed, Together
from migrator.ir.printing import printed
from migrator.ir.program import understood
from tests.ir.golden import FOLDER, cases, program
from tests.ir.shadow import by_chance, disagreements, fixtures, reworded
from tests.rewording.rewordings import FIRST


@pytest.mark.parametrize("name", sorted(cases()))
def test_fixtures(name: str) -> None:
    expected = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert printed(program(cases()[name])) == expected
    assert expected == "program original.py\n" or "return" in expected


def test_there_is_a_text_for_each_fixture_only() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(cases())


#: Where readers read programs that hold no Estimator: they write one out first.
BY_HAND = ("between_graph", "between_graph_sync", "towers")


def test_readers_say_the_same() -> None:
    total = 0
    for name, sources, options in (*fixtures(), *by_chance(5)):
        if name not in BY_HAND:
            count, found = disagreements(sources, options)
            assert found == []
            total += count
    assert total > 100


@pytest.mark.parametrize("number", range(3))
def test_other_words_change_nothing(number: int) -> None:
    names = sorted(cases())
    tried = 0
    for index, rewording in enumerate(FIRST):
        both = reworded(rewording, names[(index + number * 7) % len(names)])
        if both is not None:
            tried += 1
            assert both[0] == both[1], rewording
    assert tried > 10


def _printed(text: str) -> str:
    file = Parsed.of(Path("train.py"), text)
    return printed(understood(Together.of([file]), file))


def test_what_is_not_known_stays_open() -> None:
    text = """\
import tensorflow as tf
from absl import flags
flags.DEFINE_bool("wide", False, "")
FLAGS = flags.FLAGS

def model_fn(features, labels, mode, params):
    net = features["x"]
    for units in FLAGS.units:
        net = tf.layers.dense(net, units)
    if FLAGS.wide:
        net = net + params["bias"]
    loss = tf.reduce_mean(tf.square(net - labels))
    hooks = []
    if FLAGS.wide:
        hooks.append(tf.train.StopAtStepHook(3))
    step = tf.train.GradientDescentOptimizer(params.get("rate", 0.5)).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step, training_hooks=hooks)

def main(_):
    estimator = tf.estimator.Estimator(model_fn, params=dict(bias=1.0))
    estimator.train(lambda: None, steps=1)

if __name__ == "__main__":
    tf.app.run()
"""
    expected = """\
  graph train
    if <a loop goes on>:
      * %0 = tf.layers.dense(carried(features['x']), element(flag 'units'))  # 9
    always:
"""
    found = _printed(text)
    assert expected in found
    assert "(loop(features['x'], %0) + 1.0) if flag 'wide' else loop(features['x'], %0)" in found
    assert "training_hooks=[(%3 if flag 'wide' else nothing)]" in found
    assert "tf.train.GradientDescentOptimizer(0.5)" in found
