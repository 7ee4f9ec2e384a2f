"""Keras as a package of its own, in programs that keep their sessions: its names below `tensorflow.keras`.

Beside TensorFlow 1 that package was Keras 2, on TensorFlow's graph. The one beside TensorFlow 2.21 is Keras 3, which
has no graphs and no sessions; Keras 2 is in `tf.compat.v1.keras`, where `tf_keras` is installed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from migrator.bridge.homes import is_in_compat
from migrator.names.references import Names, Reference, read_names

#: The package as a name.
PACKAGE = "keras"
_NEW = "tensorflow.keras"
#: Where names of modules inside of Keras are, beside the module that holds these.
_ELSEWHERE = {"engine": ("layers", "models"), "objectives": ("losses",)}
#: Modules inside of Keras 1.2 to 2.3, whose names are those of the module that holds them.
_INSIDE = frozenset(
    (
        *("advanced_activations", "convolutional", "convolutional_recurrent", "core", "cudnn_recurrent", "embeddings"),
        *("local", "merge", "noise", "normalization", "pooling", "recurrent", "wrappers", "tensorflow_backend"),
        *("conv_utils", "data_utils", "generic_utils", "io_utils", "layer_utils", "np_utils", "vis_utils"),
        *("multi_gpu_utils", "callbacks", "base_layer", "topology", "training", "input_layer", "network"),
    )
)


@dataclass(frozen=True)
class Moved:
    """A file with the names of Keras moved, and the line of the first such name; 0: it has none.

    `left` are names that are not in `tf.keras`, with their lines: the text is as it was then.
    """

    text: str
    line: int = 0
    left: tuple[tuple[str, int], ...] = ()


def moved_keras(text: str, tree: ast.Module) -> Moved:
    """Moves the names of Keras that a file imports below `tensorflow.keras`."""
    names = read_names(tree)
    bindings = [one for one in names.imported() if _is_keras(one.origin)]
    if not bindings:
        return Moved(text)
    file = _File(text, names)
    for statement in dict.fromkeys(one.statement for one in bindings):
        assert statement is not None
        file.move_import(statement)
    for reference in names.references:
        if _is_keras(reference.origin):
            file.move(reference)
    line = min(one.statement.lineno for one in bindings if one.statement is not None)
    return Moved(text, line, tuple(file.left)) if file.left else Moved(file.written(), line)


def _is_keras(origin: str | None) -> bool:
    return origin == PACKAGE or (origin or "").startswith(f"{PACKAGE}.")


def _home(name: str) -> str | None:
    """Where `tensorflow.keras` has a name of Keras, or a module; None where it has not."""
    if name == PACKAGE:
        return _NEW
    parts = name.split(".")[1:]
    for candidate in _candidates(parts):
        if is_in_compat(".".join(["tf.keras", *candidate])):
            return ".".join([_NEW, *candidate])
    return None


def _candidates(parts: list[str]) -> Iterator[list[str]]:
    yield parts
    outer = [part for part in parts[:-1] if part not in _INSIDE]
    if parts[-1] in _INSIDE:  # a module
        yield from ([module] for module in _ELSEWHERE.get(parts[0], ())[:1])
        yield outer or parts[:1]
        return
    yield [*outer, parts[-1]]
    for module in _ELSEWHERE.get(parts[0], ()):
        yield [module, *parts[1:][-1:]]


class _File:
    def __init__(self, text: str, names: Names) -> None:
        self.raw = text.encode("utf-8")
        self.starts = [0]
        for line in self.raw.split(b"\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.names = names
        self.left: list[tuple[str, int]] = []
        self.edits: dict[tuple[int, int], str] = {}

    def move_import(self, statement: ast.Import | ast.ImportFrom) -> None:
        lines: list[tuple[str, str]] = []  # the module ("" where it is imported as a whole), and what of it
        for alias in statement.names:
            if isinstance(statement, ast.Import):
                lines.append(("", self._whole(alias, statement)))
                continue
            home = _home(f"{statement.module}.{alias.name}")
            if home is None:
                self.left.append((f"{statement.module}.{alias.name}", statement.lineno))
                return
            module, _, last = home.rpartition(".")
            local = alias.asname or alias.name
            lines.append((module, last if last == local else f"{last} as {local}"))
        grouped: dict[str, list[str]] = {}
        for module, what in lines:
            grouped.setdefault(module, []).append(what)
        if isinstance(statement, ast.ImportFrom) and len(grouped) == 1 and [w for _, w in lines] == _written(statement):
            start = self.raw.index((statement.module or "").encode("utf-8"), self._start(statement))
            self.edits[start, start + len(statement.module or "")] = next(iter(grouped))
            return
        new = [
            f"from {module} import {', '.join(what)}" if module else f"import {', '.join(what)}"
            for module, what in grouped.items()
        ]
        self.edits[self._start(statement), self._end(statement)] = "; ".join(new)

    def _whole(self, alias: ast.alias, statement: ast.Import) -> str:
        """`import keras.x`, which gives the name `keras`, or another one."""
        if not _is_keras(alias.name):
            return alias.name if alias.asname is None else f"{alias.name} as {alias.asname}"
        home = _home(alias.name if alias.asname else PACKAGE)
        if home is None:
            self.left.append((alias.name, statement.lineno))
        return f"{home} as {alias.asname or PACKAGE}"

    def move(self, reference: Reference) -> None:
        """A dotted name: what it begins with is imported already."""
        head = reference.head_origin
        start = _home(head)
        if start is None or len(reference.nodes) == 1:
            return  # told at the import
        parts = reference.origin.split(".")
        least = head.count(".") + 1
        homes = ((end, _home(".".join(parts[:end]))) for end in range(len(parts), least, -1))
        end, home = next(((n, one) for n, one in homes if one and one.startswith(f"{start}.")), (least, start))
        if end < len(parts) and parts[end - 1].islower() and not parts[end].startswith("_"):  # a module has not got it
            self.left.append((reference.origin, reference.nodes[0].lineno))
            return
        depth = len(parts) - end
        last = reference.nodes[len(reference.nodes) - 1 - depth]
        new = f"{self._code(reference.nodes[0])}{home.removeprefix(start)}"
        if new != self.raw[self._start(reference.nodes[0]) : self._end(last)].decode("utf-8"):
            self.edits[self._start(reference.nodes[0]), self._end(last)] = new

    def _code(self, node: ast.expr) -> str:
        return self.raw[self._start(node) : self._end(node)].decode("utf-8")

    def _start(self, node: ast.stmt | ast.expr) -> int:
        return self.starts[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.stmt | ast.expr) -> int:
        return self.starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)

    def written(self) -> str:
        """The text with all edits made."""
        raw = self.raw
        for (start, end), new in sorted(self.edits.items(), reverse=True):
            raw = raw[:start] + new.encode("utf-8") + raw[end:]
        return raw.decode("utf-8")


def _written(statement: ast.ImportFrom) -> list[str]:
    return [one.name if one.asname is None else f"{one.name} as {one.asname}" for one in statement.names]
