"""Writes migrator/names/public.json: every public name of TensorFlow 1.15, `tf.X` and `tf.contrib.X`.

    python tools/make_public_names.py /path/of/TensorFlow-1.15/site-packages migrator/names/public.json

Nothing is imported: the interface of TensorFlow is files of import statements, and so are the packages of tf.contrib,
whose documentation and `_allowed_symbols` name what is public. The names are written by module:
`{"tf.train": ["AdamOptimizer", ...], ...}`. `tf.compat` is left out, whose names are those of `tf`.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

_DOCUMENTED = re.compile(r"^@@(\w+)", re.MULTILINE)
_FOREIGN = ("six", "np", "numpy", "sys", "os", "remove_undocumented", "lazy_loader", "LazyLoader", "make_all")
_ROOTS = {  # where the interface of `tf` and what it loads lazily is written
    "tf": "tensorflow_core/_api/v1",
    "tf.estimator": "tensorflow_estimator/_api/v1/estimator",
    "tf.keras": "tensorflow_core/python/keras/api/_v1/keras",
}


def statements(path: Path) -> list[ast.stmt]:
    """The statements of a file, those in a `try` or an `if` at the top among them; none where there is no file."""
    if not path.exists():
        return []
    found: list[ast.stmt] = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        found += node.body if isinstance(node, (ast.Try, ast.If)) else [node]
    return found


def interface(folder: Path, name: str) -> Iterator[tuple[str, str]]:
    """The modules and names below a package of import statements."""
    for node in statements(folder / "__init__.py") + (statements(folder / "v1.py") if name == "tf" else []):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                local = alias.asname or alias.name
                below = folder / local
                if not (below / "__init__.py").exists() and not local.startswith("_") and local not in _FOREIGN:
                    yield name, local
    for below in sorted(folder.iterdir()):
        if (below / "__init__.py").exists() and below.name not in ("compat", "_v1", "_v2", "v1", "v2"):
            yield from interface(below, f"{name}.{below.name}")


def contrib(folder: Path, site: Path, name: str) -> Iterator[tuple[str, str]]:
    """The modules and names that the packages of tf.contrib give."""
    path = folder / "__init__.py"
    if path.exists() and name != "tf.contrib":
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documented = set(_DOCUMENTED.findall(ast.get_docstring(tree) or ""))
        allowed: set[str] = set()
        given: set[str] = set()
        for node in statements(path):
            if isinstance(node, ast.Assign) and "_allowed_symbols" in ast.unparse(node.targets[0]):
                allowed |= {one.value for one in ast.walk(node.value) if isinstance(one, ast.Constant)}
            elif isinstance(node, ast.ImportFrom):
                given |= _given(node, site)
        closed = "remove_undocumented" in path.read_text(encoding="utf-8")
        for one in sorted(documented | allowed | set(() if closed and documented | allowed else given)):
            if one and not one.startswith("_") and one not in _FOREIGN and not (folder / str(one)).is_dir():
                yield name, one
    for below in sorted(folder.iterdir()):
        if (below / "__init__.py").exists() and below.name not in ("python", "tests", "testing", "proto", "ops"):
            yield from contrib(below, site, f"{name}.{below.name}")


def _given(node: ast.ImportFrom, site: Path, above: frozenset[Path] = frozenset()) -> set[str]:
    """The names that an import of TensorFlow's own gives."""
    if node.level or not (node.module or "").startswith("tensorflow"):
        return set()
    names = {alias.asname or alias.name for alias in node.names} - {"*"}
    if any(alias.name == "*" for alias in node.names):
        parts = (node.module or "").split(".")
        base = site.joinpath("tensorflow_core", *parts[1:])
        path = base.with_suffix(".py") if base.with_suffix(".py").exists() else base / "__init__.py"
        if path in above:
            return names
        own: set[str] = set()
        for one in statements(path):
            if isinstance(one, (ast.FunctionDef, ast.ClassDef)):
                own.add(one.name)
            elif isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
                own.add(one.targets[0].id)
                if one.targets[0].id == "__all__":
                    listed = {str(c.value) for c in ast.walk(one.value) if isinstance(c, ast.Constant)}
                    return names | listed
            elif isinstance(one, ast.ImportFrom) and base.is_dir():
                own |= _given(one, site, above | {path})
        names |= own
    return {one for one in names if not one.startswith("_")}


def table(site: Path) -> dict[str, list[str]]:
    """The names of each module, sorted."""
    found: dict[str, set[str]] = {}
    for name, folder in _ROOTS.items():
        for module, one in interface(site / folder, name):
            found.setdefault(module, set()).add(one)
    for module, one in contrib(site / "tensorflow_core/contrib", site, "tf.contrib"):
        found.setdefault(module, set()).add(str(one))
    return {module: sorted(names) for module, names in sorted(found.items())}


if __name__ == "__main__":
    made = table(Path(sys.argv[1]))
    rows = [f"{json.dumps(one)}: {json.dumps(made[one])}" for one in sorted(made)]
    Path(sys.argv[2]).write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
    print(sum(map(len, made.values())), "names in", len(made), "modules")
