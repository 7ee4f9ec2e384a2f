"""Which files are Python 2, and what becomes of them beside `/`."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.findings import Severity
from migrator.python2.convert import Conversion, convert
from migrator.python2.signs import is_of_python_3, parsed, signs

A = Path("a.py")


def _made(text: str) -> Conversion:
    return convert({A: text})[A]


BECOMES = {
    "print": ("print 'a', b\n", "print('a', b)\n"),
    "print that goes on": ("print('%d') % a\nprint('a'), b\n", "print(('%d') % a)\nprint(('a'), b)\n"),
    "print with parentheses": ("print ('%d' % a)\nprint\n", "print('%d' % a)\nprint()\n"),
    "print of a tuple": ("print ('a', b)\nprint\n", "print(('a', b))\nprint()\n"),
    "print to a file": ("print >>f, 'a'\n", "print('a', file=f)\n"),
    "comments and layout": (
        "x = {1:2 ,3 : 4}  # as it is\nprint  x # here\n",
        "x = {1:2 ,3 : 4}  # as it is\nprint(x) # here\n",
    ),
    "no final newline": ("x = 1\nprint x", "x = 1\nprint(x)"),
    "except": ("try:\n  f()\nexcept (A, B), e:\n  g(e)\n", "try:\n  f()\nexcept (A, B) as e:\n  g(e)\n"),
    "iteration": ("for k, v in d.iteritems(): f(k)\n", "for k, v in d.items(): f(k)\n"),
    "lists": ("ks = d.keys()\nn = len(xrange(3))\n", "ks = list(d.keys())\nn = len(range(3))\n"),
    "input": ("a = raw_input()\nb = input()\n", "a = input()\nb = eval(input())\n"),
    "literals": ("a = 0777 + 10L\nb = `a`\nc = ur'\\d'\n", "a = 0o777 + 10\nb = repr(a)\nc = r'\\d'\n"),
    "cmp": ("x = cmp(a, b[0])\ny = xrange(1)\n", "x = ((a > b[0]) - (a < b[0]))\ny = range(1)\n"),
    "cmp of calls": ("x = cmp(f(), g())\n", "x = (lambda a, b: (a > b) - (a < b))(f(), g())\n"),
    "sorted": (
        "import os\nprint sorted(a, cmp=f, reverse=True)\n",
        "import functools\nimport os\nprint(sorted(a, key=functools.cmp_to_key(f), reverse=True))\n",
    ),
    "sort of an array": (
        "import numpy as np\nprint np.sort(a, 0), a.sort(1)\n",
        "import numpy as np\nprint(np.sort(a, 0), a.sort(1))\n",
    ),
    "file": ("f = file('x')\n", "f = open('x')\n"),
    "string": (
        "import string\nx = string.join(a, ',') + string.letters\ny = string.replace(a + b, 'c', 'd')\n",
        "import string\nx = ','.join(a) + string.ascii_letters\ny = (a + b).replace('c', 'd')\n",
    ),
    "types": ("import types\nx = isinstance(a, types.StringType)\n", "import types\nx = isinstance(a, str)\n"),
    "division of a class": (
        "class A(object):\n  def __div__(self, other):\n    print 1\n",
        "class A(object):\n  def __truediv__(self, other):\n    print(1)\n",
    ),
    "csv": (
        "import csv\nr = csv.reader(open(p, 'rb'))\nprint 1\n",
        "import csv\nr = csv.reader(open(p, 'r', newline=''))\nprint(1)\n",
    ),
    "the encoding of texts": (
        "import sys\nreload(sys)\nsys.setdefaultencoding('utf-8')\nprint 1\n",
        "import sys\nprint(1)\n",
    ),
    "a parameter of two": ("def f((a, b), c):\n    return a\n", "def f(a_b, c):\n    (a, b) = a_b\n    return a\n"),
    "tabs and spaces": (
        "if a:\n        b = 1\n\tc = '''\n\td'''\n\tprint c\n",
        "if a:\n        b = 1\n        c = '''\n\td'''\n        print(c)\n",
    ),
    "tabs alone": ("if a:\n\tb = 1\n\tprint b\n", "if a:\n\tb = 1\n\tprint(b)\n"),
}


@pytest.mark.parametrize(("before", "after"), BECOMES.values(), ids=BECOMES.keys())
def test_becomes(before: str, after: str) -> None:
    assert _made(before).text == after
    assert convert({A: after}) == {}, "a second run changes nothing"


TOLD = {
    "round": ("print round(x)\n", "TFM942", "`round`"),
    "hash": ("print hash(word) % 10\n", "TFM942", "zlib.crc32"),
    "seed": ("import random\nrandom.seed(1)\nrandom.shuffle(a)\nprint a\n", "TFM942", "random.shuffle"),
    "pickle": ("import pickle\nprint pickle.load(f)\n", "TFM942", "latin-1"),
    "cmp method": ("class A:\n  def __cmp__(self, o):\n    print 1\n", "TFM942", "__cmp__"),
    "a loop's name": ("x = [i for i in a]\nprint i\n", "TFM942", "last value"),
    "map of several": ("print map(None, a, b)\n", "TFM942", "could not be converted"),
}


@pytest.mark.parametrize(("text", "code", "said"), TOLD.values(), ids=TOLD.keys())
def test_told(text: str, code: str, said: str) -> None:
    found = [one for one in _made(text).findings if one.severity is Severity.REVIEW]
    assert [one.code for one in found] == [code]
    assert said in found[0].message


@pytest.mark.parametrize(
    "text",
    [
        "x = [i for i in a]\nfor i in b:\n  print i\n",
        "x = [i for i in a]\ny = [i for i in b]\nprint 1\n",
        "import random\nrandom.seed(1)\nprint random.random()\n",
        "print hash(3)\n",
    ],
)
def test_not_told(text: str) -> None:
    assert [one.code for one in _made(text).findings] == ["TFM940"]


SIGNS = {
    "xrange(3)\n": ["xrange"],
    "d.iteritems()\n": [".iteritems()"],
    "import cPickle\n": ["cPickle"],
    "from urllib2 import urlopen\n": ["urllib2"],
    "import sys\nx = sys.maxint\n": ["sys.maxint"],
    "import itertools as it\nit.izip(a, b)\n": ["itertools.izip"],
    "print >>f, 1\n": ["print >>"],
    "print\n": ["print"],
    "print('%d') % 3\n": ["print"],
    "if a:\n    print ('loss'), x\n": ["print"],
    "import sys as s\ns.maxint\n": ["sys.maxint"],
    # For both Pythons:
    "print('a'), print('b')\n": [],
    "print('a'),\n": [],
    "x = [print(1), 2]\n": [],
    "from six.moves import xrange\nxrange(3)\n": [],
    "import six\nsix.iteritems(d)\n": [],
    "try:\n  import cPickle as pickle\nexcept ImportError:\n  import pickle\n": [],
    "try:\n  unicode\nexcept NameError:\n  unicode = str\nunicode(x)\n": [],
    "import sys\nif sys.version_info[0] < 3:\n  x = unicode(y)\n": [],
    "PY2 = True\nx = unicode(y) if PY2 else y\n": [],
    "class A:\n  def has_key(self, k):\n    return 1\nA().has_key(2)\n": [],
    "def f(file):\n  return file(1)\n": [],
    "x = 'xrange'  # xrange\n": [],
}


@pytest.mark.parametrize(("text", "found"), SIGNS.items(), ids=map(repr, SIGNS))
def test_signs(text: str, found: list[str]) -> None:
    assert [name for _, name in signs(text)] == found
    if found:
        assert not signs(_made(text).text), "nothing of it is left, so that a second run does nothing"


@pytest.mark.parametrize(
    "text", ["x = f'{y}'\n", "x: int = 1\n", "def f(*, a): pass\n", "super().f()\n", "print(1, end='')\n"]
)
def test_python_3_is_left(text: str) -> None:
    assert is_of_python_3(text)
    both = Path("both.py")
    assert both not in convert({A: "print 1\n", both: f"{text}x = 7 / 2\n"})


def test_files_of_both_pythons_are_read_as_those_beside_them() -> None:
    both, divides = Path("both.py"), Path("divides.py")
    files = {both: "ks = d.keys()\nx = 7 / 2\n", divides: "from __future__ import division\nx = 7 / 2\n"}
    assert convert(files) == {}, "nothing says that they are Python 2"
    made = convert({**files, A: "print 1\n"})
    assert made.keys() == {A, both}
    assert made[both].text == "ks = list(d.keys())\nx = 7 // 2\n"
    assert {(one.code, one.severity) for one in made[both].findings} == {("TFM944", Severity.REVIEW)}


def test_what_no_python_parses_stays() -> None:
    made = _made("print 'a'\nx = = 1\n")
    assert made.text == "print 'a'\nx = = 1\n"
    assert made.problem is not None
    assert (made.problem.code, made.problem.line) == ("TFM902", 2)
    assert "neither Python 2 nor Python 3" in made.problem.message


def test_lines_of_findings_are_those_of_the_file() -> None:
    made = _made("import sys\nreload(sys)\nsys.setdefaultencoding('utf8')\nxs.sort(cmp=f)\nprint a / b\n")
    assert parsed(made.text) is not None
    assert [one.line for one in made.findings if one.code == "TFM941"] == [5]


PACKAGE = {
    Path("p/__init__.py"): "",
    Path("p/reader.py"): "x = 1\n",
    Path("p/model.py"): "import reader\nfrom reader import x\nimport reader as r\nprint x\n",
}
RELATIVE = "from . import reader\nfrom .reader import x\nfrom . import reader as r\nprint(x)\n"
ABSOLUTE = "import reader\nfrom reader import x\nimport reader as r\nprint(x)\n"


def test_imports_of_files_beside() -> None:
    model = Path("p/model.py")
    script = {Path("p/main.py"): "import model\nif __name__ == '__main__':\n  print 1\n"}
    outside = {Path("run.py"): "from p import model\nprint 1\n"}
    assert convert({**PACKAGE, **outside})[model].text == RELATIVE
    started = convert({**PACKAGE, **script})[model]
    assert started.text == ABSOLUTE
    assert [one.code for one in started.findings] == ["TFM940"]
    both = convert({**PACKAGE, **script, **outside})[model]
    assert both.text == ABSOLUTE
    assert sorted(one.code for one in both.findings) == ["TFM940", "TFM942", "TFM942", "TFM942"]
    without = {path: text for path, text in PACKAGE.items() if path.name != "__init__.py"}
    assert convert({**without, **outside})[model].text == ABSOLUTE
