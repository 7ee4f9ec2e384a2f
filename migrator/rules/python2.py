"""Rules about files of Python 2. The code is in python2/."""

from migrator.findings import Severity
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM940",
        "a Python 2 file is converted to Python 3",
        Severity.MIGRATED,
        """
`tf-migrate --python2 PATH` converts the Python 2 files of PATH before it migrates programs, those without TensorFlow
as well: what only Python 2 parses, and what uses names that only Python 2 has (`xrange`, `.iteritems()`, `import
cPickle`). fissix, the maintained fork of lib2to3, writes the syntax and the names; `pip install
'tf-migrate[python2]'` brings it. What it leaves out is done beside it:

| before | now |
|---|---|
| `a / b` of whole numbers, without `from __future__ import division` | `a // b` |
| `sorted(xs, f)`, `xs.sort(cmp=f)`, `cmp(a, b)` | `key=functools.cmp_to_key(f)`, `(a > b) - (a < b)` |
| `pickle.load(f)` of `open(path)` | `pickle.load(f, encoding="latin1")` of `open(path, "rb")` (TFM942) |
| `csv.reader(open(path, "rb"))` | `csv.reader(open(path, "r", newline=""))` |
| `string.letters`, `string.join(xs, ",")` | `string.ascii_letters`, `",".join(xs)` |
| `types.StringType`, `file(path)` | `str`, `open(path)` |
| `def __div__` | `def __truediv__` |
| `import reader`, of a file beside, in a package | `from . import reader` |
| `reload(sys)`, `sys.setdefaultencoding("utf-8")` | nothing: Python 3 has no other encoding |
| tabs and spaces in one block | spaces, as Python 2 counted tabs |

All other lines stay as they are, with their comments and line ends. A file is converted also where its program is
blocked afterwards by something else. A second run finds no Python 2, and says nothing.
""",
    ),
    Rule(
        "TFM941",
        "a division that may have been truncated in Python 2",
        Severity.REVIEW,
        """
In Python 2 `7 / 2` is 3, in Python 3 it is 3.5, and nothing fails: a learning rate, a number of steps or a mean is
another one. Where both sides are whole numbers for certain, `//` is written (TFM940), and where one is a float for
certain, both Pythons compute the same. This division is neither, mostly because a side is an argument of a function:
write `//` if both are whole numbers or arrays of such, and leave it if one is a float. Files with `from __future__
import division` are not looked at.

No helper that looks at the types when the program runs is put in: it would stay for ever, hide the arithmetic of a
model from everybody who reads it, and has to know each kind of array and tensor.
""",
    ),
    Rule(
        "TFM942",
        "code with another result in Python 3",
        Severity.REVIEW,
        """
This line runs in both Pythons and gives something else: `round` (halves, and its type), `hash` of a text (another
number in every run), `random.seed` before shuffles and choices (other draws; `random.random` and NumPy draw the
same), texts in a pickle that Python 2 wrote, a `StringIO` that bytes go into, the name of a loop inside of `[...]`
that is read behind it, methods that Python 3 never calls (`__cmp__`), an import that depends on where the program is
started; or it is what the fixer says it cannot convert. The finding says what to write.
""",
    ),
    Rule(
        "TFM943",
        "a program with Python 2 names",
        Severity.REVIEW,
        """
The file uses names that only Python 2 has, and nothing in it gives them a meaning in Python 3: it would stop there
with a NameError or AttributeError. `tf-migrate --python2 PATH` converts it first, and looks at what Python 2 computes
otherwise, as `/`.
""",
    ),
    Rule(
        "TFM944",
        "a file for Python 2 and 3, in a Python 2 project",
        Severity.REVIEW,
        """
The file runs in both Pythons, and other files of the project in Python 2 only. So it is read as Python 2: `/` of
whole numbers is `//` now, and what `map`, `filter`, `zip`, `keys()`, `values()` and `items()` give is a list where
that may matter. Where the file was written for Python 3, take that back. Files that say `from __future__ import
division`, or that have what only Python 3 has (annotations, f-strings), are left alone.
""",
    ),
    Rule(
        "TFM945",
        "the fixer for Python 2 is not installed",
        Severity.ERROR,
        "`--python2` converts syntax by fissix, an extra: `pip install 'tf-migrate[python2]'`. Nothing was done.",
    ),
)
