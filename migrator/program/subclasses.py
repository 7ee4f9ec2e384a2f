"""Classes of a program that are derived from an Estimator."""

from __future__ import annotations

import libcst as cst

from migrator.names.imports import dotted
from migrator.program.calls import calls_in, classes_in
from migrator.program.parsed import ParsedFile


def estimator_subclasses(file: ParsedFile) -> list[tuple[cst.ClassDef, str, cst.Call | None]]:
    """Classes derived from an Estimator: the class, the symbol, and the call of its `__init__`."""
    if "stimator" not in file.bare:
        return []
    found = []
    for node in classes_in(file.module):
        for base in node.bases:
            name = file.imports.resolve(base.value)
            if name is not None and name.startswith("tf.") and name.rpartition(".")[2].endswith(_BASES):
                calls = _init_calls(node)
                found.append((node, name, calls[0] if len(calls) == 1 else None))
    return found


def _init_calls(node: cst.ClassDef) -> list[cst.Call]:
    """`super().__init__(...)` and `super(Own, self).__init__(...)` in the `__init__` of a class."""
    own = [one for one in node.body.body if isinstance(one, cst.FunctionDef) and one.name.value == "__init__"]
    return [
        call
        for method in own
        for call in calls_in(method)
        if isinstance(call.func, cst.Attribute)
        and call.func.attr.value == "__init__"
        and isinstance(call.func.value, cst.Call)
        and dotted(call.func.value.func) == "super"
    ]


_BASES = ("Estimator", "Classifier", "Regressor")
