"""What Python and NumPy have no more is spelled anew, and computes what it did."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from migrator.harness.environments import migrated_python
from migrator.migrate import Options, migrate
from migrator.rules.later_python import own_methods, respelled
from migrator.source.reading import Source
from tests.bridge.sides import TENSORFLOW1

IMPORTS = "import collections\nimport json\nimport math\nimport time\n\nimport numpy as np\n"
#: What NumPy 2 has, has another meaning, or is not NumPy's.
SAME = [
    "x = np.float64(1), np.str_, np.bool_, np.long, np.exceptions",
    "x.reshape(newshape)\nnp.reshape(x, [2])\ntf.reshape(x, newshape=[2])",
    "np.fromstring('1 2', sep=' ')\nnp.fromstring('1 2', int, 2, ' ')",
    "np.sum([x for x in y])\nnp.sum((x for x in y), axis=0)\nnp.vstack([x for x in y])\nnp.vstack(rows)",
    "np.array(x, copy=True)\nnp.array(x, copy=copy)\nx.astype(int, copy=False)",
    "json.dumps(x, encoding='utf-8')\nopen('U', 'rb')\nopen(name)",
    "ET.tostring(element)\nx.tostring(element)",
    "try:\n    Iterable = collections.Iterable\nexcept AttributeError:\n    Iterable = collections.abc.Iterable",
    "if not hasattr(np, 'isin'):\n    x = np.in1d(x, y)",
    "def f(np):\n    return np.float_, np.int",
    "np.float = float\nx = np.float(3)",
    "def f():\n    np.int = np.int64\nx = np.int(3)",
    "from numpy import *\nfrom other import *\nx = float_(3), rate",
    "x.tostring('unicode')\nET.tostring(x, order)",
    "def f():\n    time = Timer()\n    return time.clock()",
    "from numpy import float64\nfrom collections import OrderedDict",
]


@pytest.mark.parametrize("text", SAME)
def test_all_else_stays(text: str) -> None:
    found = respelled("a.py", IMPORTS + text)
    assert (found.text, found.findings) == (IMPORTS + text, ())


CHANGED = {
    "x = np.int, np.float_(2), np.Inf, -np.NINF": "x = int, np.float64(2), np.inf, -(-np.inf)",
    "np.VisibleDeprecationWarning, np.lib.pad, np.math.pi": (
        "np.exceptions.VisibleDeprecationWarning, np.pad, math.pi"
    ),
    "np.reshape(x, newshape=[2], order='F')": "np.reshape(x, [2], order='F')",
    "np.reshape(x, order='F', newshape=[2])": "np.reshape(x, order='F', shape=[2])",
    "len('é'), np.in1d(np.fromstring(x.tostring(), 'u1'), [1])": (
        "len('é'), np.isin(np.ravel(np.frombuffer(x.tobytes(), 'u1').copy()), [1])"
    ),
    "np.asscalar(np.asfarray(x)); np.msort(x); np.alen(x)": (
        "np.asarray(np.asarray(x, dtype=np.float64)).item(); np.sort(x, axis=0); len(x)"
    ),
    "np.array(x, copy=False)": "np.array(x, copy=None)",
    "np.histogram(x, normed=True), np.percentile(x, 5, interpolation='lower')": (
        "np.histogram(x, density=True), np.percentile(x, 5, method='lower')"
    ),
    "np.vstack(map(f, x)); np.hstack(x for x in y); np.stack((x for x in y), 1); np.dstack(d.values())": (
        "np.vstack(list(map(f, x))); np.hstack(list(x for x in y)); np.stack(list((x for x in y)), 1); "
        "np.dstack(list(d.values()))"
    ),
    "np.sum(x * 2 for x in y)": "sum(x * 2 for x in y)",
    "np.reshape(x, newshape=(-1)), np.reshape(x, newshape = (a * b), order='F')": (
        "np.reshape(x, (-1)), np.reshape(x, (a * b), order='F')"
    ),
    "np.reshape(a=x, newshape=s), np.reshape(a=x, order='F', newshape=s)": (
        "np.reshape(x, s), np.reshape(x, order='F', shape=s)"
    ),
    "np.msort((x)), np.asfarray((x  # rows\n)), np.in1d((x), y)": (
        "np.sort((x), axis=0), np.asarray((x  # rows\n), dtype=np.float64), np.isin((np.ravel(x)), y)"
    ),
    "json.loads((x), encoding=('utf-8')), json.loads(x,  # é\n    encoding='utf-8', cls=C)": (
        "json.loads((x)), json.loads(x,  # é\n    cls=C)"
    ),
    "import xml.etree.ElementTree as ET\n(a or b).getchildren()": "import xml.etree.ElementTree as ET\nlist((a or b))",
    "import inspect\na, b, c, d = inspect.getargspec(f)\ninspect.getargspec(f).keywords, inspect.getargspec(f).args": (
        "import inspect\na, b, c, d = inspect.getfullargspec(f)[:4]\n"
        "inspect.getfullargspec(f).varkw, inspect.getfullargspec(f).args"
    ),
    "x.tostring('F'), x.tostring(order='A')": "x.tobytes('F'), x.tobytes(order='A')",
    "import collections as c\nc.Iterable": "import collections as c\nc.abc.Iterable",
    "if True:\r\n    from collections import Mapping, OrderedDict": (
        "if True:\r\n    from collections import OrderedDict\r\n    from collections.abc import Mapping"
    ),
    "from numpy import *\nproduct([float_(x), int(y)])": "from numpy import *\nprod([float64(x), int(y)])",
    "f'é {np.float(x):>5} {np.asscalar(x)!r}'": "f'é {float(x):>5} {np.asarray(x).item()!r}'",
    "isinstance(x, (collections.Iterable, collections.OrderedDict)); time.clock()": (
        "isinstance(x, (collections.abc.Iterable, collections.OrderedDict)); time.perf_counter()"
    ),
    "json.load(open('a', 'rU'), encoding='utf-8'); json.loads(s=x, encoding='utf-8')": (
        "json.load(open('a', 'r')); json.loads(s=x)"
    ),
    'open("a", mode="U"); open("b", "wU")': 'open("a", mode="r"); open("b", "w")',
    "if True:\n    from collections import Mapping, OrderedDict as O": (
        "if True:\n    from collections import OrderedDict as O\n    from collections.abc import Mapping"
    ),
    "from fractions import gcd; from time import clock": "from math import gcd; from time import perf_counter as clock",
    "from scipy.misc import logsumexp as total, comb": "from scipy.special import logsumexp as total, comb",
    "import threading\nthreading.Thread().isAlive()": "import threading\nthreading.Thread().is_alive()",
    "import xml.etree.ElementTree as ET\nfor x in ET.parse(f).getroot().getchildren(): x.getiterator('a')": (
        "import xml.etree.ElementTree as ET\nfor x in list(ET.parse(f).getroot()): x.iter('a')"
    ),
}


@pytest.mark.parametrize("text", CHANGED, ids=str)
def test_spelled_anew(text: str) -> None:
    found = respelled("a.py", IMPORTS + text)
    assert found.text == IMPORTS + CHANGED[text]
    assert found.findings and {one.code for one in found.findings} == {"TFM275"}
    assert respelled("a.py", found.text).text == found.text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("np.cast['f'](x)", "x.astype"),
        ("np.asfarray(x, 'i')", "numpy.asarray"),
        ("np.in1d(x, ar2=y)", "numpy.isin"),
        ("np.reshape(newshape=s, a=x)", "positionally"),
        ("(lambda float: np.float(float))(x)", "Python's `float`"),
        ("sum = len; np.sum(x for x in y)", "make a list"),
        ("from numpy import int", "Python's `int`"),
        ("from numpy import *; asscalar(x)", "`asscalar` is gone"),
        ("from numpy import asscalar", "numpy.asscalar"),
        ("np.warnings.simplefilter('ignore')", "import warnings"),
        ("np.npv(0.1, x)", "numpy_financial"),
        ("from scipy.misc import imread", "is gone from SciPy: use imageio"),
        ("from scipy import misc; misc.imresize(x, 2)", "PIL.Image"),
        ("import scipy.misc; scipy.misc.toimage(x).save(f)", "scaled to 0 to 255"),
    ],
)
def test_what_nothing_stands_for_is_told(text: str, says: str) -> None:
    found = respelled("a.py", IMPORTS + text)
    assert found.text == IMPORTS + text
    assert [(one.code, one.line) for one in found.findings] == [("TFM276", 7)] and says in found.findings[0].message


def test_histograms_of_bins_that_may_differ_are_told() -> None:
    """NumPy 1.18.5: `normed` of the bins [0, 2, 10] and 1, 2, 3, 9 is [0.0385, 0.1154], `density` [0.125, 0.0938]."""
    text = "import numpy as np\nnp.histogram(x, bins=[0, 2, 10], normed=True)\n"
    found = respelled("a.py", text)
    assert found.text == text.replace("normed", "density")
    assert [one.code for one in found.findings] == ["TFM276"]
    even = respelled("a.py", text.replace("[0, 2, 10]", "np.linspace(0, 1, 5)"))
    assert [one.code for one in even.findings] == ["TFM275"]


def test_methods_of_the_project_stay() -> None:
    own = own_methods(["class Tree:\n    def tostring(self):\n        pass\n"])
    assert respelled("a.py", "x.tostring()", own).text == "x.tostring()"
    assert respelled("a.py", "x.tostring()").text == "x.tobytes()"


def _migrated(texts: dict[str, str], **options: str) -> dict[str, tuple[str, list[str]]]:
    sources = [Source(Path(name), text.encode(), text, "utf-8", False) for name, text in texts.items()]
    results = migrate(sources, Options(bridge=True, **options))  # type: ignore[arg-type]
    return {str(one.source.path): (one.text, [f"{f.code} {f.line}" for f in one.findings]) for one in results}


PROGRAM = """\
import numpy as np
import tensorflow as tf

import reading


def model_fn(features, labels, mode):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features["x"], 1))
    train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


x, y = reading.read(np.float_)
estimator = tf.estimator.Estimator(model_fn)
estimator.train(tf.estimator.inputs.numpy_input_fn({"x": x}, y, shuffle=False))
"""
READING = "import numpy as np\n\n\ndef read(kind):\n    return np.ones([4, 1], kind), np.ones([4, 1], np.int)\n"


@pytest.mark.parametrize("style", ["native", "bridge"])
def test_programs_and_what_they_import(style: str) -> None:
    new = _migrated({"train.py": PROGRAM, "reading.py": READING, "other.py": READING}, style=style)
    assert "np.float64" in new["train.py"][0] and "TFM275 13" in new["train.py"][1]
    assert new["reading.py"] == (READING.replace("np.int)", "int)"), ["TFM275 5"])
    assert new["other.py"] == (READING, [])  # no file with TensorFlow imports it


def test_blocked_programs_stay_with_all_that_they_import() -> None:
    program = PROGRAM.replace("mean_squared_error(", "nosuch(tf.contrib.nosuch.x, ")
    new = _migrated({"train.py": program, "reading.py": READING})
    assert (new["train.py"][0], new["reading.py"][0]) == (program, READING)


def test_programs_beside_a_blocked_one_do_not_stay() -> None:
    program = PROGRAM.replace("mean_squared_error(", "nosuch(tf.contrib.nosuch.x, ")
    new = _migrated({"train.py": PROGRAM, "other.py": program, "reading.py": READING.replace("np.int", "int")})
    assert "np.float64" in new["train.py"][0] and new["other.py"][0] == program


def test_programs_of_tensorflow_2_too() -> None:
    text = "import numpy as np\nimport tensorflow as tf\n\nx = tf.constant(np.zeros(3, np.float))\n"
    assert _migrated({"a.py": text}) == {"a.py": (text.replace("np.float)", "float)"), ["TFM275 4"])}


#: Expressions of Python 3.7 and NumPy 1.18, whose values are those of 1.18.5.
VALUES = [
    "np.fromstring(np.arange(3, dtype='u2').tostring(), dtype=np.uint8)",
    "np.reshape(np.arange(6), newshape=(3, 2), order='F')",
    "np.in1d([[1, 2], [3, 4]], [2, 3], invert=True)",
    "np.asscalar(np.array([3]))",
    "np.asfarray([1, 2]).dtype.name",
    "np.msort(([[3, 1], [2, 4]]))",
    "np.histogram([0, 1, 1, 4], bins=4, normed=True)[0]",
    "np.percentile([1, 2, 4, 8], 40, interpolation='higher')",
    "np.vstack(map(np.array, [[1, 2], [3, 4]]))",
    "np.sum(x * x for x in [1, 2, 3])",
    "np.array(np.array([1, 2]), dtype=np.float, copy=False)",
    "[np.int(3.7), np.float_(2), np.alen([1, 2]), np.product([2, 3]), np.NINF < 0]",
    "json.loads('[1]', encoding='utf-8')",
]
SHOW = """
import sys
if __name__ == "__main__":
    def plain(x):
        x = x.tolist() if isinstance(x, (np.ndarray, np.generic)) else x
        return [plain(one) for one in x] if isinstance(x, list) else x
    with open(sys.argv[1], "w") as file:
        json.dump([plain(one) for one in values], file)
"""
NOTED = [
    [0, 0, 1, 0, 2, 0],
    [[0, 3], [1, 4], [2, 5]],
    [True, False, False, True],
    3,
    "float64",
    [[2, 1], [3, 4]],
    [0.25, 0.5, 0.0, 0.25],
    4,
    [[1, 2], [3, 4]],
    14,
    [1.0, 2.0],
    [3, 2.0, 2, 6, True],
    [1],
]


def _values(python: str, text: str, folder: Path) -> list[object]:
    script, values = folder / "script.py", folder / "values.json"
    script.write_text(text, encoding="utf-8")
    subprocess.run([python, str(script), str(values)], check=True, capture_output=True)
    found: list[object] = json.loads(values.read_text())
    return found


TEXT = IMPORTS + "values = [\n" + "".join(f"    {one},\n" for one in VALUES) + "]\n" + SHOW


@pytest.mark.skipif(not TENSORFLOW1, reason="no TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set")
@pytest.mark.tensorflow
def test_values_noted_are_those_of_python_3_7_and_numpy_1_18(tmp_path: Path) -> None:
    assert _values(str(TENSORFLOW1), TEXT, tmp_path) == NOTED


@pytest.mark.tensorflow
def test_values_stay(tmp_path: Path) -> None:
    assert _values(str(migrated_python()), respelled("a.py", TEXT).text, tmp_path) == NOTED
