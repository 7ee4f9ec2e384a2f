"""Names, arguments and methods of Python and NumPy that programs of TensorFlow 1 use, and that are gone since.

TensorFlow 2.21 needs Python 3.10 and comes with NumPy 2; a program of TensorFlow 1 was written for Python 3.5 to 3.7
and NumPy 1.18 at most. What is gone was found by comparing the public names of NumPy 1.18.5 and 2.4.6, and by
calling the functions below on both.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from migrator.findings import Finding, Severity
from migrator.names.references import Binding, Names, Reference, read_names
from migrator.rules.rule import Rule
from migrator.syntax import NOT_PYTHON, parents_in, tree_of, walked

RULES = (
    Rule(
        "TFM275",
        "names and arguments that Python and NumPy removed",
        Severity.MIGRATED,
        """
TensorFlow 2.21 needs Python 3.10 and comes with NumPy 2, in which much is gone that programs of TensorFlow 1 use. What
has another name, or does the same in another way, is renamed in every file that a program consists of:

| before | now |
|---|---|
| `np.float`, `np.int`, `np.bool`, `np.object`, `np.str` | `float`, `int`, `bool`, `object`, `str` |
| `np.float_`, `np.string_`, `np.Inf`, `np.NaN`, `np.product`, `np.alltrue` and others | their later names |
| `np.VisibleDeprecationWarning`, `np.AxisError` and their kin | those of `np.exceptions` |
| `x.tostring()` | `x.tobytes()` |
| `np.fromstring(data, dtype)` | `np.frombuffer(data, dtype).copy()`: as before, the array can be written to |
| `np.reshape(x, newshape=s)` | `np.reshape(x, s)` |
| `np.array(x, copy=False)` | `np.array(x, copy=None)`: a copy where one is needed, as before |
| `np.histogram(x, normed=True)`, `np.percentile(x, q, interpolation=way)` | `density=True`, `method=way` |
| `np.in1d(x, y)`, `np.asscalar(x)`, `np.asfarray(x)`, `np.msort(x)`, `np.alen(x)` | what they computed |
| `np.vstack(map(f, x))`, `np.sum(f(y) for y in x)` | `np.vstack(list(map(f, x)))`, `sum(f(y) for y in x)` |
| `collections.Iterable` and its kin | `collections.abc.Iterable` |
| `time.clock()`, `inspect.getargspec` | `time.perf_counter()`, `inspect.getfullargspec` |
| `json.loads(text, encoding=...)`, `open(name, "rU")` | without what had no effect |
| `base64.encodestring`, `fractions.gcd` | `base64.encodebytes`, `math.gcd` |
| `thread.isAlive()`, `element.getchildren()` | `thread.is_alive()`, `list(element)` |

Names in a branch that only an ImportError or AttributeError leads to stay as they are.
""",
    ),
    Rule(
        "TFM276",
        "names and arguments that Python and NumPy removed without a replacement",
        Severity.REVIEW,
        """
The program uses a name that Python 3.10, NumPy 2 or SciPy no longer has (`scipy.misc.imread` and its kin went with
SciPy 1.3), and there is no other name that means the same by itself. It fails there with an AttributeError or
ImportError: write what the finding says.
""",
    ),
)
_SAME_MODULE = {
    "numpy": {
        "float_": "float64",
        "complex_": "complex128",
        "string_": "bytes_",
        "unicode_": "str_",
        "bool8": "bool_",
        "Inf": "inf",
        "Infinity": "inf",
        "infty": "inf",
        "PINF": "inf",
        "NaN": "nan",
        "NAN": "nan",
        "product": "prod",
        "cumproduct": "cumprod",
        "sometrue": "any",
        "alltrue": "all",
        "round_": "round",
        "row_stack": "vstack",
        "trapz": "trapezoid",
        "mat": "asmatrix",
        "int0": "intp",
        "uint0": "uintp",
        "str0": "str_",
        "bytes0": "bytes_",
        "object0": "object_",
        "void0": "void",
        "singlecomplex": "complex64",
        "cfloat": "complex128",
        "longfloat": "longdouble",
        "longcomplex": "clongdouble",
        "clongfloat": "clongdouble",
        "typeDict": "sctypeDict",
        "rank": "ndim",
        "DataSource": "lib.npyio.DataSource",
        "compare_chararrays": "char.compare_chararrays",
        "format_parser": "rec.format_parser",
        "byte_bounds": "lib.array_utils.byte_bounds",
        **{
            name: f"exceptions.{name}"
            for name in (
                *("AxisError", "ComplexWarning", "ModuleDeprecationWarning", "RankWarning", "TooHardError"),
                "VisibleDeprecationWarning",
            )
        },
    },
    "collections": {
        name: f"abc.{name}"
        for name in (
            *("Callable", "Container", "Generator", "Hashable", "ItemsView", "Iterable", "Iterator", "KeysView"),
            *("Mapping", "MutableMapping", "MutableSequence", "MutableSet", "Sequence", "Set", "Sized", "ValuesView"),
            *("MappingView", "ByteString", "Awaitable", "Coroutine", "AsyncIterable", "AsyncIterator"),
        )
    },
    "inspect": {"getargspec": "getfullargspec"},
    "time": {"clock": "perf_counter"},
    "base64": {"encodestring": "encodebytes", "decodestring": "decodebytes"},
}
#: Names by their modules: what they are called now. Those without a dot are built in.
LATER = {
    **{f"{module}.{old}": f"{module}.{new}" for module, names in _SAME_MODULE.items() for old, new in names.items()},
    **{f"numpy.{name}": name for name in ("int", "float", "bool", "object", "str", "complex")},
    "numpy.unicode": "str",
    "numpy.alen": "len",
    "numpy.lib.pad": "numpy.pad",
    "fractions.gcd": "math.gcd",
    "numpy.math": "math",
    "numpy.warnings": "warnings",
    "numpy.sys": "sys",
    **{
        f"scipy.misc.{name}": f"scipy.special.{name}"
        for name in ("comb", "factorial", "factorial2", "factorialk", "logsumexp")
    },
}
_EXPRESSIONS = {"numpy.NINF": "(-{numpy}.inf)", "numpy.PZERO": "0.0", "numpy.NZERO": "(-0.0)"}
_OF_NUMPY = ("numpy.math", "numpy.warnings", "numpy.sys")
_GONE_CALLS = ("asscalar", "asfarray", "in1d", "msort")
_NOTHING = {
    "numpy.cast": "use x.astype(dtype)",
    "numpy.sctypes": "name the types",
    "numpy.maximum_sctype": "name the type",
    "numpy.obj2sctype": "use numpy.dtype(x).type",
    "numpy.find_common_type": "use numpy.result_type or numpy.promote_types",
    "numpy.issubclass_": "use issubclass",
    "numpy.issubsctype": "use numpy.issubdtype",
    "numpy.safe_eval": "use ast.literal_eval",
    "numpy.loads": "use pickle.loads",
    "numpy.disp": "use print",
    "numpy.source": "use inspect.getsource",
    "numpy.recfromcsv": "use numpy.genfromtxt",
    "numpy.recfromtxt": "use numpy.genfromtxt",
    "numpy.nbytes": "use numpy.dtype(x).itemsize",
    "numpy.MachAr": "use numpy.finfo",
    "numpy.deprecate": "use warnings.warn",
    "numpy.set_string_function": "use numpy.set_printoptions",
    **{
        f"numpy.{name}": "take it from numpy_financial"
        for name in ("fv", "ipmt", "irr", "mirr", "nper", "npv", "pmt", "ppmt", "pv", "rate")
    },
    "scipy.misc.imread": "use imageio.v3.imread",
    "scipy.misc.imsave": "use imageio.v3.imwrite, of an array that is scaled to 0 to 255",
    "scipy.misc.imresize": "use numpy.array(PIL.Image.fromarray(x).resize((width, height)))",
    "scipy.misc.imrotate": "use PIL.Image.fromarray(x).rotate",
    "scipy.misc.imshow": "use PIL.Image.fromarray(x).show",
    "scipy.misc.toimage": "use PIL.Image.fromarray, of an array that is scaled to 0 to 255",
    "scipy.misc.fromimage": "use numpy.array(image)",
    "scipy.misc.bytescale": "scale the array by hand",
    "scipy.misc.face": "use scipy.datasets.face",
    "scipy.misc.ascent": "use scipy.datasets.ascent",
    "scipy.misc.derivative": "use the difference quotient",
}
#: Arguments by their functions: what they are called now. None: the argument is given by its place.
_ARGUMENTS: dict[str, dict[str, str | None]] = {
    "numpy.reshape": {"newshape": None},
    **{f"numpy.{name}": {"normed": "density"} for name in ("histogram", "histogram2d", "histogramdd")},
    **{
        f"numpy.{name}": {"interpolation": "method"}
        for name in ("percentile", "nanpercentile", "quantile", "nanquantile")
    },
}
_STACKS = ("vstack", "hstack", "dstack", "stack", "column_stack")
_METHODS = ("tostring", "isAlive", "getchildren", "getiterator")
#: Words that a file must hold one of, beside names of NumPy: looked for one by one, which is faster than a pattern.
_WORDS = (
    "collections as",
    *("newshape", "normed", "interpolation", "copy=False", "copy = False", "getargspec", "clock", "fractions", ".misc"),
    *("import misc", "codestring(", "from numpy import", *(f".{name}(" for name in _METHODS)),
    *(f"{quote}{mode}{quote}" for quote in "\"'" for mode in ("U", "rU", "Ur", "rUb", "rbU", "Urb", "wU", "rUt")),
)
_ABSTRACT = re.compile(
    r"collections(?:\.|\s+import\b(?:\s*\([^)]*|[^\n]*)\b)(?:" + "|".join(_SAME_MODULE["collections"]) + r")\b"
)
_OF_NUMPY_NAMES = (
    r"\.(?:(?:lib\.)?(?:"
    + "|".join(
        sorted(
            {name.split(".")[1] for name in (*LATER, *_EXPRESSIONS, *_NOTHING) if name.startswith("numpy.")}
            | {"pad", "fromstring", "asscalar", "asfarray", "in1d", "msort"}
        )
    )
    + r")\b|(?:[vhd]|column_)?stack\(|sum\([^\n]*\bfor\b)"
)


@dataclass(frozen=True)
class Respelled:
    """A file in the words of Python 3.10 and NumPy 2, and what was found in it."""

    text: str
    findings: tuple[Finding, ...] = ()


def respelled(path: str, text: str, own: Collection[str] = ()) -> Respelled:
    """A file whose names, arguments and methods that are gone are spelled anew, where something means the same.

    `own` are methods that the project defines itself. The text is the same where it does not parse.
    """
    if not _may_change(text):
        return Respelled(text)
    try:
        tree = tree_of(text)
    except NOT_PYTHON:
        return Respelled(text)
    file = _File(path, text, tree, read_names(tree), frozenset(own))
    file.read()
    new = file.written()
    try:
        ast.parse(new)
    except SyntaxError:
        return Respelled(text)
    return Respelled(new, tuple(sorted(file.findings)))


_CALLED = re.compile(r"\bnumpy\s+as\s+(\w+)")
_CLOSING = re.compile(rb"(?:\s|\\\r?\n|#[^\n]*\n)*\)")
_COMMA = re.compile(rb"\s*,[ \t]*")
#: Built-in names that `from numpy import *` makes those of NumPy.
_STARRED = frozenset({"abs", "all", "any", "bool", "max", "min", "round", "sum"})


def _may_change(text: str) -> bool:
    if any(word in text for word in _WORDS) or ("json.load" in text and "encoding" in text):
        return True
    if "collections" in text and _ABSTRACT.search(text) is not None:
        return True
    return "numpy" in text and any(_names_of(name).search(text) for name in {"numpy", *_CALLED.findall(text)})


@lru_cache(maxsize=32)
def _names_of(numpy: str) -> re.Pattern[str]:
    return re.compile(re.escape(numpy) + _OF_NUMPY_NAMES)


def own_methods(texts: Iterable[str]) -> frozenset[str]:
    """Those of the methods that are gone which a class of the project defines."""
    return frozenset(name for text in texts for name in _METHODS if f"def {name}(" in text)


@dataclass(eq=False)
class _File:
    path: str
    text: str
    tree: ast.Module
    names: Names
    own: frozenset[str]
    findings: list[Finding] = field(default_factory=list)
    edits: dict[tuple[int, int], bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.raw = self.text.encode("utf-8")
        self.starts = [0]
        for line in self.raw.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.parents = parents_in(self.tree)
        self.bound = {binding.name for binding in self.names.bindings}
        if any(star.module == "numpy" for star in self.names.stars):
            self.bound |= _STARRED
        self.given = {
            reference.origin
            for reference in self.names.references
            if not isinstance(getattr(reference.nodes[-1], "ctx", ast.Load()), ast.Load)
        }
        self.modules = {
            b.origin: b.name for b in self.names.imported() if b.scope is self.names.module and b.origin == _whole(b)
        }

    def read(self) -> None:
        calls = {call.func: call for call in walked(self.tree) if isinstance(call, ast.Call)}
        # What stands inside of a call first: what is put behind both comes in this order.
        for reference in sorted(self.names.references, key=lambda one: self._start(one.nodes[-1]), reverse=True):
            last = reference.nodes[-1]
            if reference.origin not in self.given and self._is_placed(reference) and not self._is_instead(last):
                if len(reference.nodes) > 1:
                    self._name(reference)
                if (call := calls.pop(last, None)) is not None:
                    self._call(call, reference)
        for func, call in calls.items():
            if isinstance(func, ast.Attribute) and not self._is_instead(func):
                self._method(call, func)
            elif isinstance(func, ast.Name) and func.id == "open" and "open" not in self.bound:
                self._opened(call)
        starred = {star.module for star in self.names.stars} == {"numpy"}
        for node in walked(self.tree):
            if isinstance(node, ast.ImportFrom) and not node.level and not self._is_instead(node):
                self._import(node)
            elif starred and isinstance(node, ast.Name) and node.id in self.names.unbound:
                self._starred(node)

    def _is_placed(self, reference: Reference) -> bool:
        """Whether Python tells where a name stands: of formats inside of texts it does not before 3.12."""
        last = reference.nodes[-1]
        name = last.attr if isinstance(last, ast.Attribute) else reference.spelled
        return self._code(last).endswith(name) and self._code(reference.nodes[0]) == reference.spelled.split(".")[0]

    # -- places ------------------------------------------------------------------------------------------------------

    def _is_instead(self, node: ast.AST) -> bool:
        """Whether code is there for the case that something is gone, or asks first whether it is there."""
        above: ast.AST | None = node
        while above is not None:
            if isinstance(above, ast.ExceptHandler) and above.type is not None:
                if {"ImportError", "ModuleNotFoundError", "AttributeError"} & set(_words(above.type)):
                    return True
            parent = self.parents.get(above)
            if isinstance(parent, ast.Try) and above in parent.body:
                caught = {word for one in parent.handlers if one.type is not None for word in _words(one.type)}
                if caught & {"ImportError", "ModuleNotFoundError", "AttributeError"}:
                    return True
            if isinstance(parent, (ast.If, ast.IfExp)) and {"hasattr", "version_info", "PY2", "PY3"} & set(
                _words(parent.test)
            ):
                return True
            above = parent
        return False

    def _start(self, node: ast.AST) -> int:
        return self.starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined,no-any-return]

    def _end(self, node: ast.AST) -> int:
        return self.starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined,no-any-return]

    def _closed(self, node: ast.AST, call: ast.Call) -> int:
        """Where an argument of a call ends, with the parentheses that it stands in."""
        end, last = self._end(node), self._end(call)
        while (match := _CLOSING.match(self.raw, end)) is not None and match.end() < last:
            end = match.end()
        return end

    def _code(self, node: ast.AST) -> str:
        return self.raw[self._start(node) : self._end(node)].decode("utf-8")

    def _tell(self, node: ast.AST, message: str, code: str = "TFM275") -> None:
        severity = next(rule.severity for rule in RULES if rule.code == code)
        line: int = node.lineno  # type: ignore[attr-defined]
        before = self.raw[self.starts[line - 1] : self._start(node)].decode("utf-8")
        self.findings.append(Finding(self.path, line, len(before) + 1, code, severity, message))

    def _put(self, start: int, end: int, new: str) -> None:
        self.edits[start, end] = self.edits.get((start, end), b"") + new.encode("utf-8")

    def written(self) -> str:
        """The text with all edits made."""
        raw = self.raw
        for (start, end), new in sorted(self.edits.items(), reverse=True):
            raw = raw[:start] + new + raw[end:]
        return raw.decode("utf-8")

    # -- names -------------------------------------------------------------------------------------------------------

    def _name(self, reference: Reference) -> None:
        last, origin, spelled = reference.nodes[-1], reference.origin, reference.spelled
        module = ".".join(origin.split(".")[:2])
        if module in _OF_NUMPY or origin == "fractions.gcd":
            self._elsewhere(reference, module)
        elif (why := _NOTHING.get(origin)) is not None:
            self._tell(last, f"`{spelled}` is gone from {_whose(origin)}: {why}", "TFM276")
        elif (new := self._later(origin, spelled)) is not None:
            self._put(self._start(reference.nodes[0]), self._end(last), new)
            self._tell(last, f"`{spelled}` is `{new.strip('()')}` now")
        elif "." not in LATER.get(origin, "."):
            message = f"`{spelled}` is gone from NumPy 2: it was Python's `{LATER[origin]}`, which this file redefines"
            self._tell(last, message, "TFM276")

    def _starred(self, name: ast.Name) -> None:
        """A name that `from numpy import *` gave."""
        later = LATER.get(f"numpy.{name.id}", "").removeprefix("numpy.")
        gone = name.id in _GONE_CALLS or f"numpy.{name.id}" in _NOTHING or f"numpy.{name.id}" in _EXPRESSIONS
        if hasattr(builtins, name.id) or not (later or gone):
            return
        if later in _STARRED or (later and "." not in later and later not in self.bound):
            self._put(self._start(name), self._end(name), later)
            self._tell(name, f"`{name.id}` is `{later}` now")
        else:
            why = _NOTHING.get(f"numpy.{name.id}", f"use `numpy.{later}`" if later else "use what it computed")
            self._tell(name, f"`{name.id}` is gone from NumPy 2: {why}", "TFM276")

    def _later(self, origin: str, spelled: str) -> str | None:
        """What a name is spelled like now; None where it is to stay."""
        if origin in _EXPRESSIONS:
            return _EXPRESSIONS[origin].format(numpy=spelled.rpartition(".")[0])
        later = LATER.get(origin)
        if later is None or "." not in later:
            return later if later not in self.bound else None
        package = later.partition(".")[0]
        inside = origin.removeprefix(package)
        return spelled.removesuffix(inside) + later.removeprefix(package) if spelled.endswith(inside) else None

    def _elsewhere(self, reference: Reference, name: str) -> None:
        """A module that another one had imported: by the name that the file gives it."""
        module = LATER[name].partition(".")[0]
        local = self.modules.get(module)
        at = reference.nodes[0]
        inside = name.partition(".")[2]
        end = next(
            (node for node in reference.nodes[1:] if isinstance(node, ast.Attribute) and node.attr == inside), at
        )
        if local is None:
            self._tell(at, f"`{reference.spelled}` is gone: import {module}, and use `{LATER[name]}`", "TFM276")
        else:
            new = local + LATER[name].removeprefix(module)
            self._put(self._start(at), self._end(end), new)
            self._tell(at, f"`{self._code(end)}` is `{new}` now")

    def _import(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            origin = f"{node.module}.{alias.name}"
            later = LATER.get(origin, ".")
            gone = origin in _NOTHING or origin in _EXPRESSIONS or origin.removeprefix("numpy.") in _GONE_CALLS
            if gone or "." not in later:
                why = _NOTHING.get(origin, "use what it computed" if gone else f"use Python's `{later}`")
                self._tell(node, f"`{origin}` is gone from {_whose(origin)}: {why}", "TFM276")
        moved = {alias: LATER[f"{node.module}.{alias.name}"] for alias in node.names if self._moves(node, alias)}
        if not moved:
            return
        kept = [alias for alias in node.names if alias not in moved]
        modules: dict[str, list[str]] = {}
        for alias in kept:
            modules.setdefault(str(node.module), []).append(_as(alias.name, alias.asname))
        for alias, later in moved.items():
            module, _, last = later.rpartition(".")
            local = alias.asname or alias.name
            modules.setdefault(module, []).append(_as(last, None if local == last else local))
        line = self.raw[self.starts[node.lineno - 1] : self._start(node)].decode("utf-8")
        newline = "\r\n" if b"\r\n" in self.raw else "\n"
        between = f"{newline}{line}" if not line.strip() else "; "
        lines = [f"from {module} import {', '.join(words)}" for module, words in modules.items()]
        self._put(self._start(node), self._end(node), between.join(lines))
        for alias, later in moved.items():
            self._tell(node, f"`{node.module}.{alias.name}` is `{later}` now")

    def _moves(self, node: ast.ImportFrom, alias: ast.alias) -> bool:
        return "." in LATER.get(f"{node.module}.{alias.name}", "")

    # -- calls -------------------------------------------------------------------------------------------------------

    def _call(self, call: ast.Call, reference: Reference) -> None:
        origin = reference.origin
        for word in call.keywords:
            renamed = _ARGUMENTS.get(origin, {})
            if word.arg in renamed:
                self._argument(call, word, renamed[word.arg])
        if origin in ("json.load", "json.loads"):
            for number, word in enumerate(call.keywords):
                if word.arg == "encoding" and (call.args or number):
                    self._left_out(call, [*call.args, *call.keywords[:number]][-1], word)
                    self._tell(word, "`encoding` had no effect, and is removed")
        if origin == "inspect.getargspec":
            self._four(call)
        if origin == "numpy.array":
            for word in call.keywords:
                if word.arg == "copy" and isinstance(word.value, ast.Constant) and word.value.value is False:
                    self._put(self._start(word.value), self._end(word.value), "None")
                    self._tell(word, "`copy=False` is `copy=None` now")
        name = origin.removeprefix("numpy.")
        rewrite = _CALLS.get(name) if origin.startswith("numpy.") else None
        if rewrite is not None and self.numpy_of(reference) and not any(isinstance(a, ast.Starred) for a in call.args):
            rewrite(self, call, reference)

    def _argument(self, call: ast.Call, word: ast.keyword, later: str | None) -> None:
        assert word.arg is not None
        start = self._start(word)
        if later is None:
            self._by_place(call, word)
            return
        self._put(start, start + len(word.arg), later)
        if word.arg == "normed" and not _is_even(call):
            message = "`normed` is now `density`: for bins of unequal width, `normed` gave other numbers"
            self._tell(word, message, "TFM276")
        else:
            self._tell(word, f"`{word.arg}` is `{later}` now")

    def _by_place(self, call: ast.Call, word: ast.keyword) -> None:
        """`np.reshape(x, newshape=s)`: the array has no name any more, and the shape another one."""
        array = next((one for one in call.keywords if one.arg == "a"), None)
        if array is not None and (call.args or array is not call.keywords[0]):
            self._tell(word, "`newshape` was renamed: pass the array and the shape positionally", "TFM276")
            return
        before = call.keywords[: call.keywords.index(word)]
        for one in (array, word):
            if one is not None:
                name = re.compile(rb"\w+\s*=[ \t]*").match(self.raw, self._start(one))
                assert name is not None
                by_place = one is array or before in ([], [array])
                self._put(name.start(), name.end(), "" if by_place else "shape=")
        last = "is now positional" if before in ([], [array]) else "is `shape` now"
        self._tell(word, f"`{word.arg}` {last}")

    def _left_out(self, call: ast.Call, before: ast.AST, word: ast.keyword) -> None:
        """Leaves an argument out, and a comma with it, but no comment."""
        start, end = self._closed(before, call), self._closed(word, call)
        if b"#" in self.raw[start : self._start(word)]:
            start = self._start(word)
            comma = _COMMA.match(self.raw, end)
            end = comma.end() if comma is not None else end
        self._put(start, end, "")

    def _four(self, call: ast.Call) -> None:
        """`getfullargspec` gives seven things where `getargspec` gave four, and one has another name."""
        parent = self.parents.get(call)
        if isinstance(parent, ast.Attribute) and parent.attr == "keywords":
            self._put(self._end(parent) - len(parent.attr), self._end(parent), "varkw")
        elif isinstance(parent, ast.Assign) and isinstance(parent.targets[0], (ast.Tuple, ast.List)):
            self._put(self._end(call), self._end(call), "[:4]")

    def behind(self, call: ast.Call, argument: ast.expr, new: str) -> None:
        """Puts another argument behind one of a call."""
        end = self._closed(argument, call)
        self._put(end, end, new)

    def renamed(self, reference: Reference, new: str) -> None:
        """Gives a function of NumPy another name, by what the file calls NumPy."""
        last = reference.nodes[-1]
        if isinstance(last, ast.Attribute):
            self._put(self._end(last) - len(last.attr), self._end(last), new)

    def around(self, node: ast.AST, before: str, behind: str) -> None:
        """Puts something around a piece of code."""
        self._put(self._start(node), self._start(node), before)
        self._put(self._end(node), self._end(node), behind)

    def listed(self, call: ast.Call, rows: ast.expr) -> None:
        """Makes a list of what a call is given."""
        inside = int(self._end(rows) == self._end(call))  # a generator that has the parentheses of the call
        start, end = self._start(rows) + inside, self._end(rows) - inside
        self._put(start, start, "list(")
        self._put(end, end, ")")

    def built_in(self, reference: Reference, name: str) -> None:
        """Calls a function of Python in the place of one of NumPy."""
        self._put(self._start(reference.nodes[0]), self._end(reference.nodes[-1]), name)

    def unsure(self, call: ast.Call, reference: Reference, why: str) -> None:
        """Tells of a call that has to be written anew by hand."""
        self._tell(call, f"`{reference.spelled}` is gone from NumPy 2: {why}", "TFM276")

    def told(self, call: ast.Call, reference: Reference, new: str) -> None:
        """Tells what a call became."""
        self._tell(call, f"`{reference.spelled}` is `{new}` now")

    def numpy_of(self, reference: Reference) -> str | None:
        """What the file calls NumPy where a function is called by it; None where it has the function by name."""
        return reference.spelled.rpartition(".")[0] or None

    def is_free(self, name: str) -> bool:
        """Whether a built-in name means what it does everywhere."""
        return name not in self.bound

    # -- methods -----------------------------------------------------------------------------------------------------

    def _method(self, call: ast.Call, func: ast.Attribute) -> None:
        name = func.attr
        if name == "tostring" and _is_order(call):
            call = ast.Call(func, [], [])
        if name in self.own or call.keywords:
            return
        whole = (self._end(func) - len(name), self._end(func))
        if name == "tostring" and not call.args:
            self._put(*whole, "tobytes")
            self._tell(func, "`tostring()` is `tobytes()` now")
        elif name == "isAlive" and not call.args and "threading" in self.text:
            self._put(*whole, "is_alive")
            self._tell(func, "`isAlive()` is `is_alive()` now")
        elif name in ("getchildren", "getiterator") and ("xml.etree" in self.text or "lxml" in self.text):
            if name == "getiterator":
                self._put(*whole, "iter")
                self._tell(func, "`getiterator()` is `iter()` now")
            elif not call.args and self.is_free("list"):
                self._put(self._start(call), self._start(call), "list(")
                dot = self.raw.rfind(b".", self._end(func.value), whole[0])
                self._put(dot, self._end(call), ")")
                self._tell(func, "`x.getchildren()` is `list(x)` now")

    def _opened(self, call: ast.Call) -> None:
        modes = [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "mode")]
        for mode in modes:
            if isinstance(mode, ast.Constant) and isinstance(mode.value, str) and "U" in mode.value:
                new = mode.value.replace("U", "")
                new = new if set(new) & set("rwax") else f"r{new}"
                self._put(self._start(mode), self._end(mode), repr(new).replace("'", self._code(mode)[-1]))
                self._tell(mode, "mode `U` had no effect, and is removed")


def _is_even(call: ast.Call) -> bool:
    """Whether the bins of a histogram are known to be of one width."""
    given = [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "bins")]
    names = {"linspace", "arange", "range", "len", "int"}
    return all(
        isinstance(bins, ast.Constant) or (isinstance(bins, ast.Call) and not names.isdisjoint(_words(bins.func)))
        for bins in given
    )


def _is_order(call: ast.Call) -> bool:
    """Whether the one argument of a call is an order of arrays."""
    given = [*call.args, *(word.value for word in call.keywords if word.arg == "order")]
    orders = [one for one in given if isinstance(one, ast.Constant) and one.value in ("C", "F", "A")]
    return len(given) == len(orders) == len(call.args) + len(call.keywords) == 1


def _whose(origin: str) -> str:
    return "SciPy" if origin.startswith("scipy.") else "NumPy 2"


def _words(node: ast.AST) -> Iterator[str]:
    for one in walked(node):
        if isinstance(one, ast.Name):
            yield one.id
        elif isinstance(one, ast.Attribute):
            yield one.attr


def _whole(binding: Binding) -> str | None:
    """The module that an import statement binds as a whole."""
    statement, alias = binding.statement, binding.node
    return alias.name if isinstance(statement, ast.Import) and isinstance(alias, ast.alias) else None


def _as(name: str, local: str | None) -> str:
    return name if local is None else f"{name} as {local}"


def _from_string(file: _File, call: ast.Call, reference: Reference) -> None:
    """Bytes read as numbers: the array of `frombuffer` cannot be written to, its copy can."""
    if len(call.args) > 3 or any(word.arg in ("sep", "string", None) for word in call.keywords):
        return
    file.renamed(reference, "frombuffer")
    file.around(call, "", ".copy()")
    file.told(call, reference, f"{file.numpy_of(reference)}.frombuffer(...).copy()")


def _scalar(file: _File, call: ast.Call, reference: Reference) -> None:
    file.renamed(reference, "asarray")
    file.around(call, "", ".item()")
    file.told(call, reference, f"{file.numpy_of(reference)}.asarray(...).item()")


def _floats(file: _File, call: ast.Call, reference: Reference) -> None:
    if len(call.args) != 1 or call.keywords:
        file.unsure(call, reference, "use numpy.asarray with a dtype")
        return
    file.renamed(reference, "asarray")
    file.behind(call, call.args[0], f", dtype={file.numpy_of(reference)}.float64")
    file.told(call, reference, f"{file.numpy_of(reference)}.asarray")


def _is_in(file: _File, call: ast.Call, reference: Reference) -> None:
    if len(call.args) < 2:
        file.unsure(call, reference, "use numpy.isin")
        return
    numpy = file.numpy_of(reference)
    file.renamed(reference, "isin")
    file.around(call.args[0], f"{numpy}.ravel(", ")")
    file.told(call, reference, f"{numpy}.isin")


def _sorted_rows(file: _File, call: ast.Call, reference: Reference) -> None:
    if len(call.args) == 1:
        file.renamed(reference, "sort")
        file.behind(call, call.args[0], ", axis=0")
        file.told(call, reference, f"{file.numpy_of(reference)}.sort(..., axis=0)")


def _stacked(file: _File, call: ast.Call, reference: Reference) -> None:
    """Rows of a generator, which NumPy 2 does not take."""
    if not call.args or not file.is_free("list"):
        return
    rows = call.args[0]
    lazy = isinstance(rows, ast.GeneratorExp)
    if isinstance(rows, ast.Call) and isinstance(rows.func, ast.Name):
        lazy = rows.func.id in ("map", "zip", "filter", "reversed") and file.is_free(rows.func.id)
    elif isinstance(rows, ast.Call) and isinstance(rows.func, ast.Attribute):
        lazy = rows.func.attr in ("values", "keys") and not rows.args and not rows.keywords
    if lazy:
        file.listed(call, rows)
        file.told(call, reference, f"{reference.spelled}(list(...))")


def _summed(file: _File, call: ast.Call, reference: Reference) -> None:
    """NumPy gave generators to Python's `sum`."""
    if len(call.args) != 1 or call.keywords or not isinstance(call.args[0], ast.GeneratorExp):
        return
    if file.is_free("sum"):
        file.built_in(reference, "sum")
        file.told(call, reference, "sum")
    else:
        file.unsure(call, reference, "of a generator, which Python's `sum` took: make a list of it")


_CALLS: dict[str, Callable[[_File, ast.Call, Reference], None]] = {
    "fromstring": _from_string,
    "asscalar": _scalar,
    "asfarray": _floats,
    "in1d": _is_in,
    "msort": _sorted_rows,
    **dict.fromkeys(_STACKS, _stacked),
    "sum": _summed,
}
