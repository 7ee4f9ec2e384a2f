"""Classes derived from an Estimator that only say how it is made: functions that make one.

`class Model(tf.estimator.Estimator)` whose one method is an `__init__` that ends in `super().__init__(model_fn=...)` is
what `def Model(...): return tf.estimator.Estimator(model_fn=...)` is, where nobody asks for the class: derives from it,
hands it on or looks at what is of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import libcst as cst

from migrator.program.calls import is_docstring, nodes_in
from migrator.program.parsed import ParsedFile, names_in
from migrator.program.reductions import Edits, applied
from migrator.program.scopes import returns_in
from migrator.program.subclasses import estimator_subclasses


def with_functions_for_classes(files: Sequence[ParsedFile], words: Mapping[Path, frozenset[str]]) -> list[ParsedFile]:
    """The files with such functions in the place of such classes.

    `words` are those that stand in each text of the project: a class that another text may know stays.
    """
    found: list[ParsedFile] = []
    for file in files:
        edits = Edits()
        for node, _, call in estimator_subclasses(file) if "super" in file.bare else ():
            function = _function(file, node, call)
            if function is not None and _is_only_called(file, node, files, words):
                edits.lines[node] = [function]
                returned = function.body.body[-1]
                edits.came[returned] = node
        found.append(applied(file, edits) if edits else file)
    return found


def _function(file: ParsedFile, node: cst.ClassDef, call: cst.Call | None) -> cst.FunctionDef | None:
    """What makes the same Estimators as a class; None where the class says more than that."""
    lines = list(node.body.body)
    first = lines[0] if lines else None
    docstring = lines.pop(0) if isinstance(first, cst.BaseStatement) and is_docstring(first) else None
    method = lines[0] if len(lines) == 1 else None
    if (
        not (isinstance(method, cst.FunctionDef) and method.name.value == "__init__")
        or call is None
        or len(node.bases) != 1
        or node.keywords
        or node.decorators
        or method.decorators
        or method.asynchronous is not None
        or not isinstance(method.body, cst.IndentedBlock)
        or node not in file.module.body
    ):
        return None
    params = method.params
    if params.posonly_params or not params.params or params.params[0].default is not None:
        return None
    body = list(method.body.body)
    last = body[-1]
    small = last.body[0] if isinstance(last, cst.SimpleStatementLine) and len(last.body) == 1 else None
    if not isinstance(last, cst.SimpleStatementLine) or not isinstance(small, cst.Expr) or small.value is not call:
        return None
    # The object is there to be initialized, and for nothing else; every way through the method comes to that.
    own = {params.params[0].name.value, node.name.value, "super", "__class__"}
    if any(own & names_in(one) for one in (*body[:-1], *call.args, *params.params[1:], *params.kwonly_params)):
        return None
    if any(returns_in(one) for one in body[:-1]):
        return None
    kept = (*body, *([docstring] if docstring is not None else []))
    if file.code(node).count("#") != sum(file.code(one).count("#") for one in kept):
        return None  # a comment would be lost
    made = cst.Return(call.with_changes(func=node.bases[0].value))
    body[-1] = last.with_changes(body=[made])
    if isinstance(docstring, cst.BaseStatement) and not is_docstring(body[0]):
        body.insert(0, docstring)
    return method.with_changes(
        name=node.name,
        params=params.with_changes(params=params.params[1:]),
        body=method.body.with_changes(body=body),
        leading_lines=node.leading_lines,
        lines_after_decorators=[],
    )


def _is_only_called(
    file: ParsedFile, node: cst.ClassDef, files: Sequence[ParsedFile], words: Mapping[Path, frozenset[str]]
) -> bool:
    """Whether all that is done with a class is to import and to call it."""
    name = node.name.value
    module = file.path.parent.name if file.path.stem == "__init__" else file.path.stem
    known = {one.path for one in files}
    if any({name, module} <= said for path, said in words.items() if path not in known):
        return False
    inside = set(nodes_in(node))
    for other in files:
        if other is not file and name not in words.get(other.path, ()):
            continue
        for one in nodes_in(other.module):  # attributes, too
            if isinstance(one, cst.Name) and one.value == name and one not in inside and not _is_called(other, one):
                return False
    return True


def _is_called(file: ParsedFile, name: cst.Name) -> bool:
    """Whether a name, or `module.name`, is called or imported."""
    node: cst.CSTNode = name
    above = file.parents.get(node)
    if isinstance(above, cst.Attribute) and above.attr is name:
        node, above = above, file.parents.get(above)
    return (isinstance(above, cst.Call) and above.func is node) or isinstance(above, cst.ImportAlias)


__all__ = ["with_functions_for_classes"]
