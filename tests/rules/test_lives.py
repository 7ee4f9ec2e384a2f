"""One name for several Estimators, one after the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.program.lives import with_a_name_each
from migrator.program.parsed import ParsedFile
from tests.rules.programs import program, run

TWICE = """\
print(estimator.evaluate(input_fn))
estimator = tf.estimator.Estimator(model_fn, params={"rate": 0.2})
estimator.train(input_fn, steps=4)
print([len(row) for row in [estimator.evaluate(input_fn)]])"""
HEAD = "import tensorflow as tf\n"
MADE = "one = tf.estimator.Estimator(f)\n"


def written(text: str) -> str:
    return with_a_name_each(ParsedFile.parse(Path("train.py"), HEAD + text)).module.code.removeprefix(HEAD)


def test_each_is_a_model_of_its_own() -> None:
    new, _ = run(program(driver="estimator.train(input_fn, steps=3)\n" + TWICE))
    named = (
        TWICE.replace("estimator.", "second.").replace("tf.second.", "tf.estimator.").replace("estimator =", "second =")
    )
    named = named.replace("second.evaluate", "estimator.evaluate", 1)
    other, _ = run(program(driver="estimator.train(input_fn, steps=3)\n" + named))
    assert "tf.estimator" not in new + other
    assert new.replace("model_2", "second") == other


def test_the_last_value_keeps_the_name() -> None:
    assert written(MADE + "print(one)\n" + MADE + "one.train(g)\n" + MADE) == (
        "one_1 = tf.estimator.Estimator(f)\nprint(one_1)\none_2 = tf.estimator.Estimator(f)\none_2.train(g)\n" + MADE
    )


def test_a_value_that_the_next_one_is_made_of() -> None:
    assert written(MADE + "one = tf.contrib.estimator.add_metrics(one, m)\nuse(one=one)\n") == (
        "one_1 = tf.estimator.Estimator(f)\none = tf.contrib.estimator.add_metrics(one_1, m)\nuse(one=one)\n"
    )


def test_in_a_block_and_below_others() -> None:
    text = "def main():\n    {}one = 1\n    for k in range(one):\n        print(one, [one for one in k])\n"
    first = "one = tf.estimator.RunConfig()\n    if one:\n        one.go(lambda one: one)\n    "
    new = first.replace("one =", "one_1 =").replace("if one", "if one_1").replace("one.go", "one_1.go")
    assert written(text.format(first)) == text.format(new)


@pytest.mark.parametrize(
    "text",
    [
        MADE + "print(one)\n",
        "one = 1\nprint(one)\none = 2\n",
        MADE + "if a:\n    one = other\none.train(g)\n",
        "if a:\n    " + MADE + "else:\n    " + MADE + "one.train(g)\n",
        MADE + "def train():\n    one.train(g)\n\n\n" + MADE + "train()\n",
        MADE + "later = lambda: one\n" + MADE,
        MADE + "rows = (row for row in one.predict(g))\n" + MADE,
        MADE + "def make():\n    global one\n    one = None\n\n\n" + MADE,
        MADE + "del one\n" + MADE,
        MADE + "for one in []:\n    pass\n",
        MADE + "one += 1\n",
        "try:\n    " + MADE + "    " + MADE + "except E:\n    print(one)\n",
        "for k in a:\n    print(one)\n    " + MADE + "    " + MADE,
        MADE.replace("one", "other = one") + MADE,
    ],
)
def test_what_may_mean_either_stays(text: str) -> None:
    assert written(text) == text


BRANCHES = """\
def main(a):
    if a == 1:
        {0} = tf.estimator.Estimator(f)
        {0}.train(g)
        for k in a:
            print({0})
    elif a:
        with a:
            {1} = tf.estimator.Estimator(f)
            print({1})
    else:
        {2} = tf.estimator.Estimator(f)
        print({2})
        if a == 2:
            print({2})
"""


def test_in_the_branches_of_a_condition() -> None:
    assert written(BRANCHES.format("one", "one", "one")) == BRANCHES.format("one_1", "one_2", "one")
    guarded = BRANCHES.replace("def main(a):", 'if __name__ == "__main__":')
    assert written(guarded.format("one", "one", "one")) == guarded.format("one_1", "one_2", "one")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def main(a):", "if True:"),  # whoever imports the file reads either
        ("            print({1})\n", "            print({1})\n        print({1})\n"),
        ("    if a == 1:\n", "    print({0})\n    if a == 1:\n"),
        ("        if a == 2:\n            print({2})\n", "    def later():\n        print({2})\n"),
    ],
)
def test_branches_that_meet_again_stay(old: str, new: str) -> None:
    text = BRANCHES.replace(old, new)
    assert text != BRANCHES
    assert written(text.format("one", "one", "one")) == text.format("one", "one", "one")


def test_a_loop_that_goes_round_stays() -> None:
    text = "def main(a):\n    for k in a:\n        if k:\n            one.train(g)\n            " + MADE
    text += "        else:\n            " + MADE + "            one.train(g)\n"
    assert written(text) == text
