"""The import map of one file: which local name stands for which module or symbol.

Every spelling of TensorFlow 1 ends in the same canonical form `tf.X`: plain `import tensorflow as tf`,
`tensorflow.compat.v1 as tf`, `tf.compat.v1.X`, `tf1.X`, `from tensorflow import estimator`.
"""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

_ROOTS = (
    ("tensorflow.compat.v1", "tf"),
    ("tensorflow_core.compat.v1", "tf"),
    ("tensorflow", "tf"),
    ("tf.compat.v1", "tf"),
)


def dotted(node: cst.BaseExpression | None) -> str | None:
    """`a.b.c` for a chain of attributes on a name, else None."""
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name):
        return None
    parts.append(node.value)
    return ".".join(reversed(parts))


def canonical(name: str) -> str:
    """`tf.X` for whatever way `name` spells the TensorFlow module; other names as they are."""
    changed = True
    while changed:
        changed = False
        for prefix, short in _ROOTS:
            if name == prefix or name.startswith(prefix + "."):
                name, changed = short + name[len(prefix) :], True
                break
    return name


@dataclass(frozen=True)
class ImportMap:
    """Local name -> dotted name that it was imported from (`np` -> `numpy`, `tf` -> `tensorflow`)."""

    names: dict[str, str]
    relative: dict[str, tuple[int, str]]

    def resolve(self, node: cst.BaseExpression | None) -> str | None:
        """The canonical dotted name of an expression, when its first part was imported; else None."""
        name = dotted(node)
        if name is None:
            return None
        head, _, rest = name.partition(".")
        origin = self.names.get(head)
        if origin is None:
            return None
        return canonical(f"{origin}.{rest}" if rest else origin)

    def tensorflow(self, node: cst.BaseExpression | None) -> str | None:
        """Like resolve, but only for TensorFlow symbols (`tf` or `tf.X`)."""
        name = self.resolve(node)
        return name if name is not None and (name == "tf" or name.startswith("tf.")) else None


def read_imports(module: cst.Module) -> ImportMap:
    """Collects the imports anywhere in a module (function bodies included)."""
    collector = _Collector()
    module.visit(collector)
    return ImportMap(collector.names, collector.relative)


class _Collector(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, str] = {}
        self.relative: dict[str, tuple[int, str]] = {}

    def visit_Import(self, node: cst.Import) -> None:
        for alias in node.names:
            origin = dotted(alias.name) or ""
            if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
                self.names[alias.asname.name.value] = origin
            else:
                head = origin.partition(".")[0]
                self.names[head] = head

    def visit_ImportFrom(self, node: cst.ImportFrom) -> None:
        if isinstance(node.names, cst.ImportStar):
            return
        origin = dotted(node.module) or ""
        level = len(node.relative)
        for alias in node.names:
            name = alias.name.value if isinstance(alias.name, cst.Name) else ""
            local = alias.asname.name.value if alias.asname and isinstance(alias.asname.name, cst.Name) else name
            full = f"{origin}.{name}" if origin else name
            if level:
                self.relative[local] = (level, full)
            self.names[local] = full
