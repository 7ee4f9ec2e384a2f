"""Where the batches of a training by hand come from."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrator.names.imports import dotted
from migrator.program.by_hand.kinds import returns_next
from migrator.program.by_hand.training import Line, Training, value_of
from migrator.program.parsed import Blocked, names_in


def read_batches(training: Training) -> list[Line]:
    """Reads what the batches are: names of features and labels, and an input function's call, or the lines (returned)
    that make the dataset. Raises Blocked (TFM761)."""
    if training.generator:
        return []
    nexts = [line for line in training.lines if line.kind == "next"]
    if len(nexts) != 1:
        place = nexts[1].node if nexts else training.call
        message = "the batch comes neither from a single iterator's `get_next()` nor from an input_fn in this function"
        raise Blocked("TFM761", place, message)
    line = nexts[0]
    training.next_line = line.node
    small = line.node.body[0] if isinstance(line.node, cst.SimpleStatementLine) else None
    if not isinstance(small, cst.Assign) or len(small.targets) != 1:
        raise Blocked("TFM761", line.node, "assign the next batch to plain variables")
    target = small.targets[0].target
    if not isinstance(target, cst.Tuple) or len(target.elements) != 2:
        raise Blocked("TFM761", line.node, "assign the next batch to two variables, features and labels")
    pair = [e.value.value if isinstance(e.value, cst.Name) else "" for e in target.elements]
    if not all(pair):
        raise Blocked("TFM761", line.node, "assign the next batch to two variables, features and labels")
    training.features, training.labels = pair
    value = small.value
    if returns_next(training, line.node):
        line.kind = "removed"
        training.input_fn = training.file.code(value)
        return []
    assert isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute)
    dataset, used = _dataset(training, value.func.value)
    line.kind = "removed"
    needed = lines_behind(training, used, training.lines[: training.lines.index(line)], "data")
    if not needed and isinstance(dataset, cst.Call) and dotted(dataset.func) in training.file.functions:
        training.input_fn = training.file.code(dataset)
        return []
    training.dataset = training.file.code(dataset)
    return needed


def _dataset(training: Training, node: cst.BaseExpression) -> tuple[cst.BaseExpression, set[str]]:
    """The dataset behind an iterator, and the names that it reads."""
    if isinstance(node, cst.Name):
        line = training.line_of(node.value)
        value = None if line is None else value_of(line.node)
        if line is None or value is None:
            raise Blocked("TFM761", node, f"`{node.value}` is not a single iterator created in this function")
        line.kind = "removed"
        return _dataset(training, value)
    if isinstance(node, cst.Call):
        method = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
        if method == "make_one_shot_iterator" and isinstance(node.func, cst.Attribute):
            given = node.args[0].value if training.tf(node) and len(node.args) == 1 else node.func.value
            return given, names_in(given)
    raise Blocked("TFM761", node, "this iterator is not a `make_one_shot_iterator` of a dataset")


def lines_behind(training: Training, names: set[str], lines: Sequence[Line], kind: str) -> list[Line]:
    """The lines that make some names, and so on, which become lines of `kind`."""
    wanted = set(names)
    found: list[Line] = []
    for line in reversed(lines):
        if line.kind != "removed" and line.binds & wanted:
            if line.kind == "next" or (kind == "data" and line.kind == "graph"):
                raise Blocked("TFM761", line.node, "the data are computed in the model's graph")
            if isinstance(line.node, cst.SimpleStatementLine) or line.kind == "graph":
                found.append(line)
                wanted |= line.mentions
    return found[::-1]
