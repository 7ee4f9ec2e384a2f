"""`/` of Python 2: `//` where both sides are whole for certain, as it is where one is a float, told elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.python2.convert import convert

A, B = Path("a.py"), Path("b.py")
HEAD = "import math\nimport time\nimport numpy as np\nimport tensorflow as tf\nprint 1\n"

WHOLE = {
    "constants": "x = 7 / 2",
    "a range": "def f(a, size):\n    for i in xrange(given(a) / size):\n        print i",
    "a range through a name": "def f(a, size):\n    n = given(a) / size\n    print n\n    return range(1, n + 1)",
    "a slice": "def f(a, n):\n    return a[:2 * (n / 3)], a[n / 3 :]",
    "lengths": "x = len(a) / 2",
    "a name": "n = 10\nx = n / 3",
    "a counter": "n = 0\nfor line in lines:\n    n += 1\nx = n / 2",
    "a loop's name": "for i in range(n):\n    print i / 10",
    "of enumerate": "for i, v in enumerate(a):\n    print i / 10",
    "a shape": "x = image.shape[0] / 2",
    "unpacked": "h, w = image.shape\nx = (h - w) / 2",
    "a shape with a name": "s = x.get_shape().as_list()\ny = s[1] / 2",
    "of a tensor": "n = tf.shape(x)[0] / 2",
    "a flag": "tf.app.flags.DEFINE_integer('size', 3, '')\nFLAGS = tf.app.flags.FLAGS\nx = FLAGS.size / 2",
    "of argparse": "p.add_argument('--batch-size', type=int)\nargs = p.parse_args()\nx = args.batch_size / 2",
    "a choice": "x = (3 if flag else 4) / 2",
    "a quotient": "x = len(a) / 2 / 3",
    "power": "x = 2 ** 10 / 3",
    "over a comment": "x = (10 /  # of 3 / 4\n     3)",
    "in place": "n = len(a)\nn /= 2",
    "a function's": "def half(n=4):\n    return n / 2\nprint half(), half(5), half(n=len(a))",
    "what it returns": "def f():\n    return len(a)\nx = f() / 2",
    "a sum": "x = sum([1, 2, 3]) / 3",
    "an attribute": "class C(object):\n  def __init__(self):\n    self.n = 0\n  def f(self):\n    return self.n / 2",
    "astype": "x = y.astype(np.int32) / np.int32(2)",
    "int": "x = int(y) / int(z)",
    "a method's": "class C(object):\n  def f(self, n):\n    return n / 2\nC().f(3)\nC().f(n=len(a))",
    "a class's": (
        "class C(object):\n  def __init__(self, n, m=2):\n    self.n = n\n    self.m = m\n"
        "  def f(self):\n    return self.n / self.m\nC(3)\nC(4, m=len(a))"
    ),
    "called elsewhere": "def whole(n):\n    return n / 2\nprint whole(3)",
    "boolean": "x = True / 2",
}
FLOAT = {
    "a shadowed name": "def len(x):\n    return 0.5 * x\nx = len(a) / 2",
    "a constant": "x = n / 255.0",
    "float": "x = float(n) / m",
    "time": "x = (time.time() - start) / n",
    "math": "x = math.sqrt(n) / n",
    "numpy": "x = np.mean(a) / n",
    "cast": "x = tf.cast(y, tf.float32) / n",
    "zeros": "x = np.zeros(3) / n",
    "a sum from zero": "loss = 0\nfor x in a:\n    loss += 0.5 * x\nprint loss / len(a)",
    "a list": "losses = []\nfor x in a:\n    losses.append(0.5 * x)\nprint sum(losses) / len(losses)",
    "a float flag": "tf.app.flags.DEFINE_float('size', 3, '')\nFLAGS = tf.app.flags.FLAGS\nx = FLAGS.size / 2",
}
UNKNOWN = {
    "a name that is given more": "def f(a, b):\n    n = a / b\n    n = read()\n    return range(n)",
    "a range of something else": "def f(a, b, range):\n    return range(a / b)",
    "a power of it": "def f(a, b):\n    return range((a / b) ** 2)",
    "names in a circle": "def f(a, b):\n    n = a / b\n    m = n + k\n    k = m + 1",
    "arguments": "def f(a, b):\n    return a / b",
    "an argument that is called elsewhere": "def shared(n):\n    return n / 2\nprint shared(3)",
    "a class that is called elsewhere": (
        "class Shared(object):\n  def __init__(self, n):\n    self.n = n\n  def f(self):\n    return self.n / 2\n"
        "Shared(3)"
    ),
    "a base of others": (
        "class C(object):\n  def __init__(self, n):\n    self.n = n\n  def f(self):\n    return self.n / 2\n"
        "class D(C):\n  pass\nC(3)"
    ),
    "a method that is passed on": "class C(object):\n  def f(self, n):\n    return n / 2\nC().f(3)\nmap(C().f, a)",
    "both": "n = 3\nif flag:\n    n = 0.5\nx = n / 2",
    "called with anything": "def f(n):\n    return n / 2\nprint f(3), f(given)",
    "passed on": "def f(n):\n    return n / 2\nprint map(f, a)",
    "global": "n = 3\ndef f():\n    global n\n    n = read()\nx = n / 2",
    "set from outside": "class C(object):\n  def f(self):\n    self.n = 0\n    return self.n / 2\nC().n = 0.5",
    "a list that others fill": "xs = [1, 2]\nxs.extend(given)\nx = sum(xs) / 2",
    "a power": "x = 2 ** n / 3",
    "formatted": "x = '%d' % 3 / 2",
    "a sum of booleans": "x = np.sum(a == b) / len(a)",
}


def _quotients(snippet: str, other: str = "import a\na.whole(len([]))\n") -> tuple[str, list[str]]:
    made = convert({A: f"{HEAD}{snippet}\n", B: other})[A]
    head = HEAD.replace("print 1", "print(1)")
    assert made.text.startswith(head)
    return made.text[len(head) :], [one.code for one in made.findings if one.code == "TFM941"]


@pytest.mark.parametrize("snippet", WHOLE.values(), ids=WHOLE.keys())
def test_whole_numbers(snippet: str) -> None:
    text, told = _quotients(snippet)
    assert not told
    assert text.count("//") >= 1
    code = "".join(line.split("#")[0] for line in text.splitlines())
    assert "/" not in code.replace("//", "")


@pytest.mark.parametrize("snippet", FLOAT.values(), ids=FLOAT.keys())
def test_floats_stay(snippet: str) -> None:
    text, told = _quotients(snippet)
    assert "//" not in text
    assert not told


@pytest.mark.parametrize("snippet", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_what_is_not_known_is_told(snippet: str) -> None:
    text, told = _quotients(snippet, "from a import shared, Shared\nshared(given)\nShared(given)\n")
    assert "//" not in text
    assert told == ["TFM941"]


def test_a_file_that_imports_division_is_left() -> None:
    made = convert({A: "from __future__ import division\nprint 7 / 2, a / b\n"})[A]
    assert made.text == "from __future__ import division\nprint(7 / 2, a / b)\n"
    assert [one.code for one in made.findings] == ["TFM940"]


def test_flags_of_another_file_count() -> None:
    flags = "import tensorflow as tf\ntf.flags.DEFINE_integer('steps', 3, '')\n"
    made = convert({A: "from b import FLAGS\nprint FLAGS.steps / 2\n", B: flags})
    assert made[A].text == "from b import FLAGS\nprint(FLAGS.steps // 2)\n"
