"""Looks at data in sessions beside an Estimator (program/looked_at.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.program.looked_at import without_looks
from migrator.program.parsed import ParsedFile

TOP = "import tensorflow as tf\n\nestimator = tf.estimator.Estimator(model_fn)\ndata = read()\n"
ONE = "x, y = data.make_one_shot_iterator().get_next()\n"
BOTH = "rows = data.make_initializable_iterator()\nbatch = rows.get_next()\n"
LOOKS = {
    "a batch in a session": (
        ONE + "with tf.Session() as sess:\n    a, b = sess.run([x, y])\n    print(a, b)\n",
        "iterator = data.as_numpy_iterator()\na, b = next(iterator)\nprint(a, b)\n",
    ),
    "another order": (
        ONE + "with tf.Session() as sess:\n    b, a = sess.run([y, x])\n    print(a, b)\n",
        "iterator = data.as_numpy_iterator()\nx, y = next(iterator)\nb, a = [y, x]\nprint(a, b)\n",
    ),
    "an entry of a batch": (
        "batch = data.make_one_shot_iterator().get_next()\nwith tf.Session() as sess:\n"
        "    a, b = sess.run(batch['x'])\n    print(a, b)\n",
        "iterator = data.as_numpy_iterator()\nbatch = next(iterator)\na, b = batch['x']\nprint(a, b)\n",
    ),
    "tensors that get their values": (
        ONE + "with tf.Session() as sess:\n    x, y = sess.run((x, y))\nprint(x.mean(), y)\n",
        "iterator = data.as_numpy_iterator()\nx, y = next(iterator)\nprint(x.mean(), y)\n",
    ),
    "batches of an iterator that is initialized": (
        BOTH + "sess = tf.Session()\nsess.run(rows.initializer)\nfor _ in range(2):\n    print(sess.run(batch))\n"
        "sess.close()\n",
        "rows = data.as_numpy_iterator()\nfor _ in range(2):\n    print(next(rows))\n",
    ),
    "all batches": (
        "def look():\n    batch = data.make_one_shot_iterator().get_next()\n    with tf.Session() as sess:\n"
        "        while True:\n            try:\n                print(sess.run(batch))\n"
        "            except tf.errors.OutOfRangeError:\n                break\n",
        "def look():\n    iterator = data.as_numpy_iterator()\n    while True:\n        try:\n"
        "            print(next(iterator))\n        except StopIteration:\n            break\n",
    ),
    "a copy that is written to": (
        ONE + "with tf.Session() as sess:\n    a = sess.run(x)\nb = a / 2\nb[0] = a.sum()\n",
        "iterator = data.as_numpy_iterator()\nx, y = next(iterator)\na = x\nb = a / 2\nb[0] = a.sum()\n",
    ),
    "tensors that are printed": (
        ONE + "print(list(x.keys()), y.shape)\n",
        "iterator = iter(data)\nx, y = next(iterator)\nprint(list(x.keys()), y.shape)\n",
    ),
}
STAYS = {
    "an operation on what is looked at": ONE + "m = tf.reduce_mean(x)\nwith tf.Session() as s:\n    print(s.run(m))\n",
    "another thing that is run": ONE + "with tf.Session() as s:\n    print(s.run(x), s.run(total))\n",
    "values that are run again": ONE + "with tf.Session() as s:\n    x = s.run(x)\n    print(x, s.run(y))\n",
    "values in a loop": ONE + "with tf.Session() as s:\n    for _ in range(2):\n        x = s.run(x)\n",
    "a name that gets something else": ONE + "x = 1\nwith tf.Session() as s:\n    print(s.run(y))\n",
    "values that are fed": ONE + "with tf.Session() as s:\n    print(s.run(x, feed_dict={rate: 1.0}))\n",
    "what is told and run": ONE + "print(x)\nwith tf.Session() as s:\n    print(s.run(y))\n",
    "what is told of a graph": ONE + "print(x.op.name)\n",
    "an iterator that begins again": BOTH
    + "with tf.Session() as s:\n    for _ in range(2):\n        s.run(rows.initializer)\n        print(s.run(batch))\n",
    "two elements of a run": BOTH
    + "other = rows.get_next()\nwith tf.Session() as s:\n    print(s.run([batch, other]))\n",
    "an array that is written to": ONE + "with tf.Session() as s:\n    a = s.run(x)\n    a[0] = 1.0\n",
    "a run in a list": ONE + "with tf.Session() as s:\n    print([s.run(x) for _ in range(2)])\n",
    "a generator": "def rows():\n    x = data.make_one_shot_iterator().get_next()\n    with tf.Session() as s:\n"
    "        while True:\n            yield s.run(x)\n",
    "an input function": "def input_fn():\n    x, y = data.make_one_shot_iterator().get_next()\n    return x, y\n",
    "another error of TensorFlow": ONE + "with tf.Session() as s:\n    try:\n        print(s.run(x))\n"
    "    except tf.errors.InvalidArgumentError:\n        pass\n",
    "another session, where an iterator begins anew": ONE
    + "with tf.Session() as s:\n    print(s.run(x))\nwith tf.Session() as s:\n    print(s.run(x))\n",
    "sessions of one name": ONE + "s = tf.Session()\nprint(s.run(x))\ns = tf.Session()\nprint(s.run(x))\n",
    "a session in each turn": ONE + "for _ in range(2):\n    with tf.Session() as s:\n        print(s.run(x))\n",
    "arrays in a list that are written to": ONE + "rows = []\nwith tf.Session() as s:\n    rows.append(s.run(x))\n"
    "for row in rows:\n    row[0] = 1.0\n",
    "an array that another function writes to": "def first():\n    x = data.make_one_shot_iterator().get_next()\n"
    "    with tf.Session() as s:\n        return s.run(x)\n\n\ndef centred(a):\n    a -= a.mean()\n    return a\n\n\n"
    "print(centred(first()))\n",
    "an array that is sorted": ONE + "with tf.Session() as s:\n    a = s.run(x)\n    b = a[0]\nb.sort()\n",
    "an end that a caller waits for": "def look():\n    x = data.make_one_shot_iterator().get_next()\n"
    "    with tf.Session() as s:\n        while True:\n            print(s.run(x))\n\n\n"
    "try:\n    look()\nexcept tf.errors.OutOfRangeError:\n    pass\n",
    "a tensor that evaluates itself": ONE + "with tf.Session() as s:\n    print(x.eval())\n",
}


def looked(text: str) -> tuple[str, list[str]]:
    file, told = without_looks(ParsedFile.parse(Path("train.py"), TOP + text))
    return file.module.code.removeprefix(TOP), [one.code for one in told]


@pytest.mark.parametrize("name", LOOKS)
def test_looks_take_elements_of_the_dataset(name: str) -> None:
    before, after = LOOKS[name]
    assert looked(before) == (after, ["TFM620"])


@pytest.mark.parametrize("name", STAYS)
def test_what_is_more_than_a_look_stays(name: str) -> None:
    assert looked(STAYS[name]) == (STAYS[name], [])
