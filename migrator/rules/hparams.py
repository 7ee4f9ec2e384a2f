"""`tf.contrib.training.HParams` to `types.SimpleNamespace`, or to a class with the methods that are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from migrator.findings import Severity
from migrator.names.bindings import values_given
from migrator.program.parsed import Blocked, ParsedFile
from migrator.rules.rule import Example, Rule
from migrator.rules.site import CallRule, Site
from migrator.walking import walk

RULES = (
    Rule(
        "TFM123",
        "HParams",
        Severity.MANUAL,
        """
`tf.contrib.training.HParams(units=10)` becomes `types.SimpleNamespace(units=10)`: both answer `params.units`, and
`params.units = 20` changes it. Where the program asks for more (`parse`, `override_from_dict`, `add_hparam`,
`set_hparam`, `values`, `get`, `to_json`, `in`), the file gets a small class `HParams` with these methods, which take
the same texts and values and refuse the same ones as TensorFlow 1.15.5 (compared on both). What is made of a proto, or
asks for a model structure, has no counterpart: write keywords by hand first.
""",
        (
            Example("tf.contrib.training.HParams(units=10)", "types.SimpleNamespace(units=10)"),
            Example("tf.contrib.training.HParams(definition)", None),
        ),
    ),
)

#: What becomes a class of the same name; its import goes.
NAME = "tf.contrib.training.HParams"
#: Methods that are not carried over; no other object in such a program has them.
_REFUSED = ("set_model_structure", "get_model_structure", "to_proto")
#: Methods that no other object in such a program has, and one that every class HParams has.
_OWN = frozenset(("add_hparam", "del_hparam", "override_from_dict", "parse_json", "set_hparam", "to_json"))
#: Names of what is something else, where it has such a method.
_OTHERS = frozenset(("features", "labels", "inputs"))

_START = '''\
class {name}:
    """Hyperparameters: attributes, whose values keep the type that they were made with."""

    def __init__(self, **values):
        self._types = {}
        for key, value in values.items():
            self.add_hparam(key, value)

    def __str__(self):
        return ",".join(f"{key}={getattr(self, key)}" for key in self._types)

    def add_hparam(self, key, value):
        if getattr(self, key, None) is not None:
            raise ValueError(f"{key} is taken")
        many = isinstance(value, (list, tuple))
        if many and not value:
            raise ValueError(f"{key} is an empty list")
        self._types[key] = type(value[0] if many else value), many
        setattr(self, key, value)
'''
_METHODS = {
    "__contains__": """
    def __contains__(self, key):
        return key in self._types
""",
    "del_hparam": """
    def del_hparam(self, key):
        if hasattr(self, key):
            delattr(self, key)
            del self._types[key]
""",
    "get": """
    def get(self, key, default=None):
        if key not in self._types:
            return default
        if default is not None:
            self._checked(key, default)
        return getattr(self, key)
""",
    "override_from_dict": """
    def override_from_dict(self, values):
        for key, value in values.items():
            self.set_hparam(key, value)
        return self
""",
    "parse": '''
    def parse(self, text):
        """Takes values from a text like "rate=0.1,units=[64,32],name=x"."""
        pair = re.compile(r"([a-zA-Z][\\w.]*)\\s*=\\s*(?:([^,\\[]*)|\\[([^\\]]*)\\])(?:$|,\\s*)")
        values, place = {}, 0
        while place < len(text):
            found = pair.match(text, place)
            if not found or found[1] not in self._types or found[1] in values:
                raise ValueError(f"no value can be read from {text[place:]}")
            place = found.end()
            key, one, several = found.groups()
            read = self._types[key][0]
            if read is bool:
                read = lambda word: word in ("true", "True") or (word not in ("false", "False") and bool(int(word)))
            values[key] = read(one) if several is None else [read(word) for word in re.split("[ ,]", several) if word]
        return self.override_from_dict(values)
''',
    "parse_json": """
    def parse_json(self, text):
        return self.override_from_dict(json.loads(text))
""",
    "set_hparam": """
    def set_hparam(self, key, value):
        setattr(self, key, self._checked(key, value))
""",
    "to_json": """
    def to_json(self, indent=None, separators=None, sort_keys=False):
        return json.dumps(self.values(), indent=indent, separators=separators, sort_keys=sort_keys)
""",
    "values": """
    def values(self):
        return {key: getattr(self, key) for key in self._types}
""",
    "_checked": """
    def _checked(self, key, value):
        kind, many = self._types[key]
        if isinstance(value, list) != many:
            raise ValueError(f"{key} is {'a list' if many else 'no list'}: {value}")
        return [self._cast(key, kind, one) for one in value] if many else self._cast(key, kind, value)

    def _cast(self, key, kind, value):
        if kind is type(None) or type(value) is kind:
            return value
        alike = ((str, bytes), bool, numbers.Integral, numbers.Number)
        strange = any(issubclass(kind, types) and not isinstance(value, types) for types in alike)
        if strange or isinstance(value, bool) != issubclass(kind, bool):
            raise ValueError(f"{key} is of type {kind.__name__}: {value!r}")
        return kind(value)
""",
}
#: What a method calls, and the modules that it reads.
_CALLED = {
    "get": ("_checked",),
    "override_from_dict": ("set_hparam",),
    "parse": ("override_from_dict",),
    "parse_json": ("override_from_dict",),
    "set_hparam": ("_checked",),
    "to_json": ("values",),
}
_MODULES = {"_checked": "numbers", "parse": "re", "parse_json": "json", "to_json": "json"}


def _made(site: Site) -> cst.BaseExpression:
    if any(arg.keyword is None and arg.star != "**" for arg in site.call.args):
        raise Blocked("TFM123", site.original, "HParams is not created from keyword arguments: use them")
    if any(
        arg.keyword is not None and arg.keyword.value in ("hparam_def", "model_structure") for arg in site.call.args
    ):
        raise Blocked("TFM123", site.original, "HParams is created from a proto")
    name = "types.SimpleNamespace"
    asked = site.training.hparams
    if asked:
        name = site.training.helper("HParams", _START + "".join(_METHODS[key] for key in _METHODS if key in asked))
    site.training.needs.update({_MODULES[method] for method in asked & _MODULES.keys()} if asked else {"types"})
    return site.call.with_changes(func=cst.parse_expression(name))


CALLS: dict[str, CallRule] = {NAME: _made}


@dataclass(frozen=True)
class Uses:
    """What a program does with its HParams: which methods it needs (none: attributes only), and what is refused."""

    methods: frozenset[str]
    problems: tuple[tuple[ParsedFile, Blocked], ...]


def uses(files: Sequence[ParsedFile]) -> Uses:
    """What the files of a program do with HParams, if one makes them."""
    if not any("HParams" in file.bare for file in files):
        return Uses(frozenset(), ())
    finders = [_Uses(file) for file in files]
    for finder in finders:
        walk(finder.file.module, finder)
    if not any(finder.made for finder in finders):
        return Uses(frozenset(), ())
    problems: list[tuple[ParsedFile, Blocked]] = []
    methods: set[str] = set()
    for finder in finders:
        for node, receiver, method in finder.asked:
            if method in _REFUSED:
                problems.append((finder.file, Blocked("TFM123", node, f"`{method}` of HParams is unsupported")))
            elif method in _OWN or not finder.is_other(receiver):
                methods |= _with_called(method)
    for finder in finders:
        if finder.made and not methods and "types" in finder.file.names:
            if finder.file.imports.names.get("types") != "types":
                message = "`types` is something else in this file"
                problems.append((finder.file, Blocked("TFM123", finder.made[0], message)))
    return Uses(frozenset(methods), tuple(problems))


def _with_called(method: str) -> set[str]:
    """A method, and those that it calls."""
    return {method}.union(*(_with_called(called) for called in _CALLED.get(method, ())))


class _Uses(cst.CSTVisitor):
    """Where HParams are made, and what is asked for by the name of one of their methods."""

    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self.made: list[cst.Call] = []
        self.asked: list[tuple[cst.CSTNode, cst.BaseExpression, str]] = []  # with what is asked

    def is_other(self, node: cst.BaseExpression) -> bool:
        """Whether something cannot be HParams; those that methods are missing of would fail."""
        if isinstance(node, cst.Name):
            given = values_given(self.file.module, node.value)
            return node.value in _OTHERS or (bool(given) and all(self.is_other(value) for value in given))
        if isinstance(node, cst.Call):
            return isinstance(node.func, cst.Name) and node.func.value in ("dict", "list", "set", "sorted", "tuple")
        if isinstance(node, cst.Attribute):
            return self.file.imports.resolve(node) is not None
        collections = (cst.BaseDict, cst.List, cst.ListComp, cst.Tuple, cst.BaseSet, cst.BaseString)
        return isinstance(node, collections)

    def visit_Call(self, node: cst.Call) -> None:
        if self.file.imports.resolve(node.func) == NAME:
            self.made.append(node)

    def visit_Attribute(self, node: cst.Attribute) -> None:
        if node.attr.value in (*_METHODS, *_REFUSED, *_OWN):
            self.asked.append((node, node.value, node.attr.value))

    def visit_ComparisonTarget(self, node: cst.ComparisonTarget) -> None:
        if isinstance(node.operator, (cst.In, cst.NotIn)):
            self.asked.append((node, node.comparator, "__contains__"))
