"""Input functions: back from iterators to datasets."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrator.findings import Severity
from migrator.names.imports import ImportMap
from migrator.program.parsed import Blocked
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM601",
        "an input function returns its dataset",
        Severity.MANUAL,
        """
`return dataset.make_one_shot_iterator().get_next()`, in one line or over several statements, becomes `return dataset`.
An input function that changes the tensors after `get_next()`, or that uses another kind of iterator, is left: do that
work in `dataset.map` and return the dataset.
""",
    ),
    Rule(
        "TFM602",
        "how the input function is given",
        Severity.MANUAL,
        """
Understood: the name of a function without required parameters (or with `params`), a lambda without parameters,
`functools.partial(function, ...)`, and a call that returns the input function.
""",
    ),
)


def rewrite_returns(function: cst.FunctionDef, imports: ImportMap) -> dict[cst.CSTNode, cst.BaseExpression | None]:
    """What to replace in a function that hands out `get_next()`: node -> new expression, or None to remove a statement.

    Raises Blocked (TFM601) when a one-shot iterator is used in a way that is not understood.
    """
    if not isinstance(function.body, cst.IndentedBlock):
        return {}
    finder = _Iterators(imports)
    function.body.visit(finder)
    if not finder.found:
        return {}
    found = _read(function.body.body, imports)
    if found is None:
        raise Blocked("TFM601", finder.found[0], "the tensors of this iterator are used otherwise than being returned")
    return found


def _read(body: Sequence[cst.BaseStatement], imports: ImportMap) -> dict[cst.CSTNode, cst.BaseExpression | None] | None:
    """Follows `iterator = ...`, `x, y = iterator.get_next()` and `return ...` at the end of a block."""
    changes: dict[cst.CSTNode, cst.BaseExpression | None] = {}
    iterators: dict[str, cst.BaseExpression] = {}
    elements: dict[str, cst.BaseExpression] = {}
    for statement in body:
        if isinstance(statement, cst.With):
            inner = _read(statement.body.body, imports) if isinstance(statement.body, cst.IndentedBlock) else None
            if inner:
                return {**changes, **inner}
            continue
        if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
            continue
        small = statement.body[0]
        if isinstance(small, cst.Assign) and len(small.targets) == 1:
            dataset = _one_shot(small.value, imports)
            target = small.targets[0].target
            if dataset is not None and isinstance(target, cst.Name):
                iterators[target.value] = dataset
                changes[statement] = None
                continue
            source = _next(small.value, imports, iterators)
            if source is not None:
                elements[_shape(target)] = source
                changes[statement] = None
        elif isinstance(small, cst.Return) and small.value is not None:
            source = _next(small.value, imports, iterators) or elements.get(_shape(small.value))
            if source is None:
                return None
            changes[small.value] = source
            return changes
    return None


def _one_shot(node: cst.BaseExpression, imports: ImportMap) -> cst.BaseExpression | None:
    """The dataset of `d.make_one_shot_iterator()` or `tf.data.make_one_shot_iterator(d)`."""
    if not isinstance(node, cst.Call):
        return None
    if imports.resolve(node.func) in ("tf.data.make_one_shot_iterator", "tf.compat.v1.data.make_one_shot_iterator"):
        return node.args[0].value if len(node.args) == 1 else None
    if isinstance(node.func, cst.Attribute) and node.func.attr.value == "make_one_shot_iterator" and not node.args:
        return node.func.value
    return None


def _next(
    node: cst.BaseExpression, imports: ImportMap, iterators: dict[str, cst.BaseExpression]
) -> cst.BaseExpression | None:
    """The dataset of `iterator.get_next()`."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or node.func.attr.value != "get_next":
        return None
    iterator = node.func.value
    if isinstance(iterator, cst.Name):
        return iterators.get(iterator.value)
    return _one_shot(iterator, imports)


def _shape(node: cst.BaseExpression) -> str:
    """`x` or `x, y` as text without parentheses, to compare a target with what is returned."""
    text = cst.Module([]).code_for_node(node)
    return text.strip("() ").replace(" ", "")


class _Iterators(cst.CSTVisitor):
    def __init__(self, imports: ImportMap) -> None:
        super().__init__()
        self.imports = imports
        self.found: list[cst.Call] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False

    def visit_Call(self, node: cst.Call) -> None:
        if isinstance(node.func, cst.Attribute) and node.func.attr.value in (
            "make_one_shot_iterator",
            "make_initializable_iterator",
        ):
            self.found.append(node)
