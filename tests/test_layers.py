"""Imports go one way. Counted are all of them: those for types only, and those inside functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1] / "migrator"
#: What the packages of the new house may import, beside themselves.
BELOW = {
    "pairing": set[str](),
    "syntax": set[str](),
    "walking": set[str](),
    "source": {"findings", "full_disk", "pairing", "syntax"},
    "names": {"pairing", "syntax", "walking"},
    "ir": {"names", "pairing", "source", "walking"},
    "query": {"ir", "names", "pairing", "source", "walking"},
}


def _modules() -> dict[str, Path]:
    found = {}
    for path in ROOT.rglob("*.py"):
        relative = path.relative_to(ROOT.parent).with_suffix("")
        if "inside" in relative.parts or "library" in relative.parts:
            continue  # runs in users' interpreters, without the rest
        parts = relative.parts[:-1] if relative.name == "__init__" else relative.parts
        found[".".join(parts)] = path
    return found


def _imports(path: Path, modules: dict[str, Path]) -> Iterator[str]:
    """The modules that a file imports, a name of a package as the module that it is."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules else str(node.module)


def _graph() -> dict[str, set[str]]:
    modules = _modules()
    return {name: set(_imports(path, modules)) - {name} for name, path in modules.items()}


def _cycles(graph: dict[str, set[str]]) -> list[set[str]]:
    """The groups of modules that import each other (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = set(stack[stack.index(name) :])
            del stack[stack.index(name) :]
            if len(group) > 1:
                found.append(group)

    for name in sorted(graph):
        if name not in index:
            visit(name)
    return found


def _package(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def test_a_cycle_is_found() -> None:
    assert _cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [{"b", "c"}]


def test_modules_do_not_import_each_other() -> None:
    assert _cycles(_graph()) == []


def test_the_new_house_imports_downward_only() -> None:
    for module, imported in _graph().items():
        package = _package(module)
        if package in BELOW:
            assert {_package(one) for one in imported} - {package} <= BELOW[package], module
