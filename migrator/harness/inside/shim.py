"""TensorFlow 1 for a user's program on TensorFlow 2: what its `import tensorflow` gets is the v1 API.

Only files of the user are served: modules of the standard library and of site-packages keep the real
TensorFlow.
"""

from __future__ import annotations

import ast
import builtins
import os
import sysconfig
from collections.abc import Sequence
from types import ModuleType
from typing import Any

# Parts of the package that are no API: the same in both versions, always the real modules.
_INTERNAL = ("python", "core", "compiler", "tools", "tsl", "dtensor", "_api", "include")


class Facade(ModuleType):
    """The module `tensorflow` as TensorFlow 1 shows it: the v1 API and the internal subpackages."""

    def __init__(self, v1: Any, real: Any) -> None:
        super().__init__("tensorflow", v1.__doc__)
        self.__dict__["_v1"] = v1
        self.__dict__["_real"] = real
        self.__dict__["__all__"] = [name for name in dir(v1) if not name.startswith("_")]
        self.__dict__["__path__"] = list(real.__path__)
        self.__dict__["__file__"] = real.__file__

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(self.__dict__["_v1"], name)
        except AttributeError:
            if name in _INTERNAL:
                return getattr(self.__dict__["_real"], name)
            raise AttributeError(f"module 'tensorflow' has no attribute {name!r}") from None

    def __dir__(self) -> list[str]:
        return sorted(set(dir(self.__dict__["_v1"])))


class _Importer:
    """Replaces builtins.__import__; decides by the file that imports."""

    def __init__(self, real: Any) -> None:
        self._import = builtins.__import__
        self._real = real
        self._v1 = real.compat.v1
        self._facade = Facade(self._v1, real)
        self._libraries = _library_folders()
        self._wants_v1: dict[str, bool] = {}
        self._disabled = False

    def __call__(
        self,
        name: str,
        globals: dict[str, Any] | None = None,
        locals: dict[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if level == 0 and (name == "tensorflow" or name.startswith("tensorflow.")):
            path = (globals or {}).get("__file__")
            if isinstance(path, str) and self._serves(path):
                return self._import_v1(name, globals, locals, fromlist)
        return self._import(name, globals, locals, fromlist or (), level)

    def _serves(self, path: str) -> bool:
        if path not in self._wants_v1:
            self._wants_v1[path] = not self._is_library(path) and wants_v1(path, self._v1, self._real)
        return self._wants_v1[path]

    def _is_library(self, path: str) -> bool:
        real = os.path.realpath(path)
        if any(part in real.split(os.sep) for part in ("site-packages", "dist-packages")):
            return True
        return any(real.startswith(folder + os.sep) for folder in self._libraries)

    def _import_v1(
        self,
        name: str,
        globals: dict[str, Any] | None,
        locals: dict[str, Any] | None,
        fromlist: Sequence[str] | None,
    ) -> Any:
        parts = name.split(".")[1:]
        if not self._disabled:
            self._disabled = True
            self._v1.disable_v2_behavior()
        if not parts:
            return self._facade
        if parts[0] in _INTERNAL or parts[0] == "compat":
            module = self._import(name, globals, locals, fromlist or (), 0)
            return module if fromlist else self._facade
        found = _walk(self._v1, parts)
        if found is None:
            # Not in the v1 API (tensorflow.contrib, say): let Python itself say so.
            module = self._import(name, globals, locals, fromlist or (), 0)
            return module if fromlist else self._facade
        return found if fromlist else self._facade


def install(real: Any) -> None:
    """Serve the v1 API to the user's files from now on.

    `real` is the imported tensorflow module, 2.x. v2 behaviour is disabled at the first import that is
    served, so a program that only imports tensorflow.compat.v1 keeps the behaviour it asks for itself.
    """
    builtins.__import__ = _Importer(real)  # type: ignore[assignment]


def wants_v1(path: str, v1: Any, v2: Any) -> bool:
    """Whether the file at `path` means TensorFlow 1 when it says `tensorflow`.

    A file that also imports tensorflow.compat.v1 was written for TensorFlow 2 and its compatibility layer,
    unless it uses names that only TensorFlow 1 has. Any other file means TensorFlow 1, unless it uses names
    that only TensorFlow 2 has (as what tf_upgrade_v2 leaves behind does), or what works eagerly only.
    """
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read(), path)
    except (OSError, SyntaxError, ValueError):
        return True
    aliases: set[str] = set()
    imports_v1 = False
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module + "." + alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            aliases.update(alias.asname or "tensorflow" for alias in node.names if alias.name == "tensorflow")
        else:
            continue
        if any((name + ".").startswith("tensorflow.compat.v1.") for name in names):
            imports_v1 = True
    only_v1 = only_v2 = 0
    for node in ast.walk(tree):
        chain = _chain(node)
        if chain is None or chain[0] not in aliases:
            continue
        in_v1 = _walk(v1, chain[1:]) is not None
        in_v2 = _walk(v2, chain[1:]) is not None
        only_v1 += in_v1 and not in_v2
        only_v2 += in_v2 and not in_v1
    if imports_v1:
        return only_v1 > 0 and only_v2 == 0
    eager = any(_is_eager(node) for node in ast.walk(tree))
    return only_v1 > 0 or (only_v2 == 0 and not eager)


def _is_eager(node: ast.AST) -> bool:
    """Whether this is `x.numpy()`, `x.as_numpy_iterator()` or `for batch in x.take(n)`."""
    if isinstance(node, ast.For):
        return (
            isinstance(node.iter, ast.Call)
            and isinstance(node.iter.func, ast.Attribute)
            and node.iter.func.attr == "take"
        )
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr in ("numpy", "as_numpy_iterator") and not (node.args or node.keywords)


def _chain(node: ast.AST) -> list[str] | None:
    """["tf", "train", "AdamOptimizer"] for the expression tf.train.AdamOptimizer."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not names or not isinstance(node, ast.Name):
        return None
    return [node.id, *names[::-1]]


def _walk(module: Any, names: Sequence[str]) -> Any:
    # Stops at the first thing that is no module: attributes of classes and values say nothing about the
    # version.
    for name in names:
        if not isinstance(module, ModuleType):
            return module
        try:
            module = getattr(module, name)
        except (AttributeError, ImportError):
            return None
    return module


def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    keys = ("stdlib", "platstdlib", "purelib", "platlib")
    inside = os.path.dirname(os.path.abspath(__file__))
    folders = {os.path.realpath(paths[key]) for key in keys if paths.get(key)}
    return tuple(sorted(folders | {os.path.realpath(inside), os.path.realpath(os.path.dirname(os.__file__))}))
