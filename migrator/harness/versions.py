"""Which TensorFlow an original was written for, so that it is run as its users run it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

import libcst as cst

from migrator.names.compat import in_compat, only_two
from migrator.names.imports import dotted
from migrator.program.parsed import ParsedFile
from migrator.walking import walk

# What trains, or switches TensorFlow 2 off, where it is spelled as one of `tf.compat.v1`. Other names of `tf.compat.v1`
# (partitioners, ConfigProto, logging) stand in programs of TensorFlow 2 as well.
_TRAINS = (
    "tf.estimator.",
    "tf.Session",
    "tf.InteractiveSession",
    "tf.placeholder",
    "tf.get_variable",
    "tf.layers.",
    "tf.train.MonitoredTrainingSession",
    "tf.train.MonitoredSession",
    "tf.train.SingularMonitoredSession",
    "tf.train.Supervisor",
    "tf.disable_v2_behavior",
    "tf.disable_eager_execution",
)
_OPTIMIZER = "Optimizer"


class OriginalRuns(Enum):
    """How the original is run: the values are those of `--original-tensorflow`."""

    TENSORFLOW1 = "1"  # in 2.15.1, with the behaviour of TensorFlow 1
    TENSORFLOW115 = "1.15"  # as it is, in 1.15.5, where that is to be had; else as the one above
    FIRST_KERAS2 = "2.15"  # as it is, in 2.15.1, whose Keras is Keras 2
    AS_MIGRATED = "2.21"  # as it is, in the interpreter of the migrated program

    @property
    def of_one(self) -> bool:
        """Whether it is a program of TensorFlow 1."""
        return self in (OriginalRuns.TENSORFLOW1, OriginalRuns.TENSORFLOW115)


def written_for(script: Path) -> OriginalRuns:
    """How a script is to be run as an original: with TensorFlow 1's behaviour, or as it is, as TensorFlow 2.

    It is one of TensorFlow 2 if it uses TensorFlow, and neither it nor a module beside it that it imports names
    anything that only TensorFlow 1 has (or `tf.compat.v1` to train with). What is in `tf.contrib` nothing has but
    TensorFlow 1 itself. A file that is not Python is no matter here.
    """
    found = first = False
    for path in _reached(script):
        try:
            names = _names_of(ParsedFile.parse(path, path.read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError, cst.ParserSyntaxError):
            continue
        if names.contrib:
            return OriginalRuns.TENSORFLOW115
        first |= names.first
        found |= names.any
    if first:
        return OriginalRuns.TENSORFLOW1
    return OriginalRuns.FIRST_KERAS2 if found else OriginalRuns.TENSORFLOW1


def _reached(script: Path) -> Iterator[Path]:
    """The script and the modules in its folder and below that it imports, directly or not."""
    queue, seen = [script], {script}
    while queue:
        path = queue.pop()
        yield path
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue
        for name in _imported(tree):
            base = script.parent.joinpath(*name.split("."))
            for candidate in (base.with_suffix(".py"), base / "__init__.py"):
                if candidate.is_file() and candidate not in seen:
                    seen.add(candidate)
                    queue.append(candidate)


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or node.level):
            base = node.module or ""
            yield from filter(None, [base, *(f"{base}.{alias.name}".lstrip(".") for alias in node.names)])


def _names_of(file: ParsedFile) -> _Names:
    """What a file names of TensorFlow: as it is written where that says enough, and else as it is reduced."""
    names = _Names(file)
    walk(file.module, names)
    if names.first and "contrib" not in file.module.code:
        return names
    # The reader of whole programs takes as long to import as all else that this command needs.
    from migrator.program.reductions import reduced

    plain = reduced(file, lambda name: False)
    if plain is not file:
        names = _Names(plain)
        walk(plain.module, names)
    return names


class _Names(cst.CSTVisitor):
    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self._imports = file.imports
        self.any = False
        self.first = False
        self.contrib = False

    def visit_Name(self, node: cst.Name) -> None:
        self._look(node)

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        self._look(node)
        return dotted(node) is None

    def _look(self, node: cst.BaseExpression) -> None:
        name = self._imports.tensorflow(node)
        if name is None:
            return
        self.any = True
        self.contrib |= name == "tf.contrib" or name.startswith("tf.contrib.")
        trains = name.startswith(_TRAINS) or (name.startswith("tf.train.") and name.endswith(_OPTIMIZER))
        if self._imports.is_compat(node):
            self.first |= trains
        else:
            parts = name.split(".")
            prefixes = (".".join(parts[:end]) for end in range(2, len(parts) + 1))
            only_one = any(in_compat(one) and not only_two(one) for one in prefixes)
            self.first |= only_one or name.startswith(("tf.estimator.", "tf.contrib."))
