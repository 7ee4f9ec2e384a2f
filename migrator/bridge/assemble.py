"""The support file of a bridged project: just the classes that its programs use, as one readable module.

The classes are written in `library/`, whose modules hold a docstring, imports and definitions, and import each other
by `from .other import Name`. What a project uses is copied with all that it needs, in the order of the library.
"""

from __future__ import annotations

import ast
import re
from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from graphlib import TopologicalSorter
from pathlib import Path

from migrator.bridge.support import MARK_INSIDE
from migrator.names.standard import STANDARD_MODULES
from migrator.syntax import walked

#: Functions of the library that are called where the support file is imported, if it holds them.
SETUP = (
    *("keep_tensorflow_1_shapes", "let_tf_slim_find_its_layers", "let_keras_models_take_any_shape"),
    *("tell_version_of_keras", "build_in_default_graph", "start_servers"),
)
#: Constants that the user of a support file may give other values, as may the command line.
SETTINGS = ("EVALUATES_ON", "SERVERS")

#: The modules that a support file begins with. The order of all of them is that of every run: files are extended later.
_READ_FIRST = ("specs", "config", "eager", "graph")
_SIBLING = re.compile(r"(?m)^from \.(\w+) import")
_DEFINED = re.compile(r"(?m)^(?:(?:class|def) (\w+)|(\w+)(?:: [^=\n]+)? = )")
_FOLDER = Path(__file__).with_name("library")
_DOCSTRING = '''"""Estimators on tf.keras and tf.distribute: what this project uses of them.

tf-migrate wrote this file when the project left TensorFlow 1. It belongs to the project, which may change it, and
needs nothing but TensorFlow. Import it before TensorFlow: it chooses Keras 2, which the layers of TensorFlow 1 need.
"""'''
# What the first line says where no Estimator is among it.
_OF_ESTIMATORS = "Estimators on tf.keras and tf.distribute: what this project uses of them."
_OF_SESSIONS = "What TensorFlow 1 had and TensorFlow 2.21 has not: what this project uses of it."
_RULE = "# " + "-" * 98
_HEAD = f"""{_RULE}
# Estimators on tf.keras and tf.distribute: what this program uses of them. The program itself begins behind it.
#
# {MARK_INSIDE}. It belongs to the program, which may change it, and
# needs nothing but TensorFlow. It comes before TensorFlow is imported: it chooses Keras 2, which the layers of
# TensorFlow 1 need. It is one function, so that none of its names is in the way of the program's.
{_RULE}"""
_FOOT = f"""{_RULE}
# Here the program begins.
{_RULE}"""
_KERAS_2 = """if importlib.util.find_spec("tf_keras"):  # Keras 2, which TensorFlow has no more itself from 2.16 on
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")"""


@dataclass(frozen=True)
class Definition:
    """A top-level definition of the library: its text, and the names of the library and of imports that it reads."""

    name: str
    text: str
    needs: frozenset[str]
    imports: frozenset[str]
    is_constant: bool


@dataclass(frozen=True)
class Library:
    """All definitions in their order, and the import statement of each name that is imported.

    Both may be read only when they are asked for: the imports are those of the definitions that were.
    """

    definitions: Mapping[str, Definition]
    imports: Mapping[str, str]

    @cached_property
    def public(self) -> frozenset[str]:
        """What a program may ask for."""
        return frozenset(name for name in self.definitions if not name.startswith("_"))

    def closure(self, names: Iterable[str]) -> list[Definition]:
        """The definitions of some names and of all that they need, in the order of the library.

        Raises KeyError for a name that the library has not.
        """
        found: set[str] = set()
        queue = list(names)
        while queue:
            name = queue.pop()
            if name not in found:
                found.add(name)
                queue += self.definitions[name].needs
        return [self.definitions[name] for name in self.definitions if name in found]

    def with_settings(self, values: Mapping[str, str]) -> Library:
        """The same with other values of some constants, as source text."""
        some = {name: self.definitions[name] for name in self.definitions if name in values}
        changed = {n: replace(one, text=with_settings(one.text, {n: values[n]})) for n, one in some.items()}
        return Library(ChainMap(changed, self.definitions), self.imports)  # type: ignore[arg-type]  # only read


def with_settings(text: str, values: Mapping[str, str]) -> str:
    """A text whose lines give some constants other values, as source text."""
    for name, value in values.items():
        text = re.sub(rf"(?m)^{name} = .*$", f"{name} = {value}".replace("\\", r"\\"), text)
    return text


@lru_cache(maxsize=1)
def library() -> Library:
    """The library as it is in this version: what a program uses of it is read, and no more."""
    unread = _Unread({path.stem: path.read_text(encoding="utf-8") for path in sorted(_FOLDER.glob("*.py"))})
    return Library(unread, unread.imports)


def read_library(texts: Mapping[str, str]) -> Library:
    """Reads the modules of a library, by name. Raises ValueError where they hold what cannot be copied."""
    modules = {name: _Module.read(name, text) for name, text in texts.items()}
    definitions: dict[str, Definition] = {}
    imports: dict[str, str] = {}
    for name in _in_order({name: module.siblings for name, module in modules.items()}):
        if name not in modules:
            raise ValueError(f"the library has no module {name}")
        module = modules[name]
        for one in module.definitions:
            if one.name in definitions:
                raise ValueError(f"{one.name} is defined twice in the library")
            definitions[one.name] = one
        for local, statement in module.imports.items():
            if imports.setdefault(local, statement) != statement:
                raise ValueError(f"{local} is imported in two ways: {statement}; {imports[local]}")
    for one in definitions.values():
        missing = one.needs - definitions.keys()
        if missing:
            raise ValueError(f"{one.name} needs {', '.join(sorted(missing))}, which the library has not")
    return Library(definitions, imports)


def _in_order(siblings: Mapping[str, Collection[str]]) -> Iterable[str]:
    """The modules of a library, each behind those that it imports."""
    names = [*(name for name in _READ_FIRST if name in siblings), *sorted(siblings)]
    return TopologicalSorter({name: sorted(siblings[name]) for name in names}).static_order()


class _Unread(Mapping[str, Definition]):
    """The definitions of a library that `read_library` takes, each read with its module when it is asked for.

    `imports` grows with what is read. The names stand at the beginning of lines, and no line of a string there looks
    like a definition (a test reads all of them both ways).
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.imports: dict[str, str] = {}
        self._texts = texts
        self._read: dict[str, Definition] = {}
        self._homes = {
            found[1] or found[2]: name
            for name in _in_order({name: {*_SIBLING.findall(text)} for name, text in texts.items()})
            for found in _DEFINED.finditer(texts[name])
        }

    def __getitem__(self, name: str) -> Definition:
        home = self._homes[name]
        if name not in self._read:
            module = _Module.read(home, self._texts[home])
            self._read.update({one.name: one for one in module.definitions})
            self.imports.update(module.imports)
        return self._read[name]

    def __contains__(self, name: object) -> bool:
        return name in self._homes

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)


@dataclass(frozen=True)
class _Module:
    definitions: tuple[Definition, ...]
    imports: Mapping[str, str]
    siblings: frozenset[str]

    @staticmethod
    def read(name: str, text: str) -> _Module:
        tree, lines = ast.parse(text), text.split("\n")
        imports: dict[str, str] = {}
        inside: set[str] = set()
        siblings: set[str] = set()
        nodes: list[tuple[str, ast.stmt]] = []
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.level:
                if any(alias.asname for alias in node.names) or node.module is None:
                    raise ValueError(f"{name}.py:{node.lineno}: import by name, and keep it: from .other import Name")
                siblings.add(node.module)
                inside |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module == "__future__":
                continue  # annotations, which every support file has
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                imports.update(_statements(node))
            elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                nodes.append((node.name, node))
            elif isinstance(node, (ast.Assign, ast.AnnAssign)) and (target := _target(node)) is not None:
                nodes.append((target, node))
            elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
                raise ValueError(f"{name}.py:{node.lineno}: only imports, definitions and constants can be copied")
        own = inside | {one for one, _ in nodes}
        definitions = []
        for one, node in nodes:
            read = {n.id for n in walked(node) if isinstance(n, ast.Name)}
            constant = isinstance(node, (ast.Assign, ast.AnnAssign))
            needs = frozenset((read & own) - {one})
            definitions.append(Definition(one, _text(node, lines), needs, frozenset(read & imports.keys()), constant))
        return _Module(tuple(definitions), imports, frozenset(siblings))


def _target(node: ast.Assign | ast.AnnAssign) -> str | None:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else None


def _statements(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """The statement for each name that an import gives."""
    found = {}
    for alias in node.names:
        what = alias.name + (f" as {alias.asname}" if alias.asname else "")
        local = alias.asname or alias.name.partition(".")[0]
        found[local] = f"import {what}" if isinstance(node, ast.Import) else f"from {node.module} import {what}"
    return found


def _text(node: ast.stmt, lines: list[str]) -> str:
    """The lines of a definition, with its decorators and the comments right above it."""
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(one.lineno for one in decorators)]) - 1
    while first > 0 and lines[first - 1].startswith("#"):
        first -= 1
    return "\n".join(lines[first : node.end_lineno])


def assemble(names: Iterable[str], library: Library | None = None) -> str:
    """The text of a support file that gives some names of the library: always the same for the same names.

    Raises KeyError for a name that the library has not.
    """
    standard, others, definitions, calls = _parts(names, library or _library())
    head = _DOCSTRING if "\nclass Estimator" in definitions else _DOCSTRING.replace(_OF_ESTIMATORS, _OF_SESSIONS)
    parts = [
        head,
        "from __future__ import annotations",
        "\n".join(standard),
        _KERAS_2,
        "\n".join(f"{one}  # noqa: E402" for one in others),
    ]
    text = "\n\n".join(parts) + definitions
    if calls:
        text += "\n\n\n" + "\n".join(calls)
    return text + "\n"


def section(names: Collection[str], name: str, library: Library | None = None) -> str:
    """The same as a section of a program, which makes an object `name` that has some names of the library.

    Raises KeyError for a name that the library has not.
    """
    standard, others, definitions, calls = _parts(names, library or _library())
    standard = sorted({*standard, "import types"}, key=_import_key)
    fields = "".join(f"\n    {one}={one}," for one in sorted(names) if one not in SETUP)
    parts = [
        "\n".join(standard),
        _KERAS_2,
        "\n".join(others),
        re.sub("\n{3,}", "\n\n", definitions.strip("\n")),
        "\n".join(calls),
        f"return types.SimpleNamespace({fields}\n)" if fields else "return types.SimpleNamespace()",
    ]
    body = _indented("\n\n".join(part for part in parts if part))
    return (
        f"{_HEAD}\n\n\ndef make_{name}():\n"
        f'    """Returns what the program uses, as a module would have it."""\n{body}\n\n\n'
        f"{name} = make_{name}()\n\n{_FOOT}\n"
    )


def without_section(text: str) -> str:
    """A program with empty lines in the place of its section."""
    start, end = text.find(_HEAD), text.find(_FOOT)
    if start < 0 or end < start:
        return text
    return text[:start] + "\n" * text.count("\n", start, end) + text[end:]


def _indented(text: str) -> str:
    """Code for the body of a function; strings of several lines stay, but for docstrings."""
    tree = ast.parse(text)
    documentation = {id(node.value) for node in walked(tree) if isinstance(node, ast.Expr)}
    inside: set[int] = set()
    for node in walked(tree):
        if isinstance(node, (ast.JoinedStr, ast.Constant)) and id(node) not in documentation:
            inside |= set(range(node.lineno + 1, (node.end_lineno or node.lineno) + 1))
    lines = text.split("\n")
    return "\n".join(f"    {line}" if line and number not in inside else line for number, line in enumerate(lines, 1))


def _parts(names: Iterable[str], source: Library) -> tuple[list[str], list[str], str, list[str]]:
    """Imports of Python and of others, the text of all definitions, and the calls that end it."""
    kept = source.closure(names)
    statements = {source.imports[local] for one in kept for local in one.imports} | {"import tensorflow as tf"}
    standard = sorted(
        {"import importlib.util", "import os", *(one for one in statements if _is_standard(one))}, key=_import_key
    )
    others = sorted((one for one in statements if not _is_standard(one)), key=_import_key)
    text = ""
    before = None
    for one in kept:
        together = one.is_constant and (before is None or before.is_constant)
        text += ("\n" if together and before is not None else "\n\n" if together else "\n\n\n") + one.text
        before = one
    calls = [f"{name}()" for name in SETUP if name in {one.name for one in kept}]
    return standard, others, text, calls


def _library() -> Library:
    return library()


def _is_standard(statement: str) -> bool:
    return statement.split()[1].partition(".")[0] in STANDARD_MODULES


def _import_key(statement: str) -> tuple[bool, str]:
    """Plain imports before those of names, each by module: as import sorters have them."""
    return statement.startswith("from "), statement.split(" ", 1)[1].lower()


def held_by(text: str, library: Library | None = None) -> frozenset[str]:
    """The names of the library that a support file holds; none where it cannot be parsed."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return frozenset()
    found = {node.name for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    found |= {one for node in tree.body if isinstance(node, ast.Assign) and (one := _target(node)) is not None}
    return frozenset(found & (library or _library()).definitions.keys())


def extended(text: str, names: Collection[str], library: Library | None = None) -> str | None:
    """A support file with some names more.

    Where its user changed it, or another version of this tool wrote it, what it lacks comes to its end, and the rest
    stays. None where that is not possible: see `in_the_way`.
    """
    source = _with_own_settings(text, library or _library())
    held = held_by(text, source)
    if set(names) <= held:
        return text
    if text == assemble(held, source):
        return assemble({*held, *names}, source)
    return None if in_the_way(text, names, source) else _with_more(text, names, source)


def _with_own_settings(text: str, source: Library) -> Library:
    """A library with the values that a support file gives its settings."""
    values = {}
    for name in SETTINGS:
        given = re.search(rf"(?m)^{name} = (.*)$", text)
        if given is not None:
            values[name] = given[1]
    return source.with_settings(values) if values else source


def in_the_way(text: str, names: Collection[str], library: Library | None = None) -> tuple[str, ...]:
    """What a support file has otherwise than the library, of all that some names need; `("its syntax",)` where it
    cannot be read.
    """
    source = _with_own_settings(text, library or _library())
    try:
        defined, imported = _top_level(text)
    except (SyntaxError, ValueError):
        return ("its syntax",)
    needed = source.closure(names)
    other = [one.name for one in needed if defined.get(one.name, one.text) != one.text or one.name in imported]
    reads = {local for one in needed if one.name not in defined for local in one.imports}
    ways = {local: imported.get(local, source.imports[local]) for local in sorted(reads)}
    other += [local for local, way in ways.items() if local in defined or way != source.imports[local]]
    return tuple(other)


def _top_level(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """The text of each definition of a module, and the statement of each name that it imports."""
    tree, lines = ast.parse(text), text.split("\n")
    defined, imported = {}, {}
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            defined[node.name] = _text(node, lines)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and (target := _target(node)) is not None:
            defined[target] = _text(node, lines)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            imported.update(_statements(node))
    return defined, imported


def _with_more(text: str, names: Collection[str], source: Library) -> str:
    """The text of a module with what it lacks of some names at its end, and the imports of it behind its own."""
    defined, imported = _top_level(text)
    lacking = [one for one in source.closure(names) if one.name not in defined]
    reads = {local for one in lacking for local in one.imports} - imported.keys()
    statements = sorted((source.imports[local] for local in reads), key=_import_key)
    lines = text.rstrip("\n").split("\n")
    own = [node for node in ast.parse(text).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    last = max((node.end_lineno or 0 for node in own), default=0)
    lines[last:last] = [f"{one}  # noqa: E402" for one in statements]
    parts = ["\n".join(lines), *(one.text for one in lacking)]
    calls = [f"{one}()" for one in SETUP if one in {more.name for more in lacking}]
    return "\n\n\n".join([*parts, *(["\n".join(calls)] if calls else [])]) + "\n"
