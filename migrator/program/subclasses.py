"""Classes of a program that are derived from an Estimator."""

from __future__ import annotations

import libcst as cst

from migrator.names.imports import dotted
from migrator.program.parsed import ParsedFile
from migrator.walking import walk


def estimator_subclasses(file: ParsedFile) -> list[tuple[cst.ClassDef, str, cst.Call | None]]:
    """Classes derived from an Estimator: the class, the symbol, and the call of its `__init__`."""
    if "stimator" not in file.bare:
        return []
    finder = _Subclasses(file)
    walk(file.module, finder)
    return finder.found


class _Subclasses(cst.CSTVisitor):
    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self.found: list[tuple[cst.ClassDef, str, cst.Call | None]] = []

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        for base in node.bases:
            name = self.file.imports.resolve(base.value)
            if name is None or not name.startswith("tf.") or not name.rpartition(".")[2].endswith(_BASES):
                continue
            calls = _InitCalls()
            for method in node.body.body:
                if isinstance(method, cst.FunctionDef) and method.name.value == "__init__":
                    walk(method, calls)
            self.found.append((node, name, calls.found[0] if len(calls.found) == 1 else None))


_BASES = ("Estimator", "Classifier", "Regressor")


class _InitCalls(cst.CSTVisitor):
    """`super().__init__(...)` and `super(Own, self).__init__(...)`."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[cst.Call] = []

    def visit_Call(self, node: cst.Call) -> None:
        func = node.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "__init__":
            return
        if isinstance(func.value, cst.Call) and dotted(func.value.func) == "super":
            self.found.append(node)
