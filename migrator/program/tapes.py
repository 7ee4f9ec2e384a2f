"""Gradient tapes of model_fns, which a graph does not need: `tape.gradient` tells there what `tf.gradients` does.

The block of a tape is written without it before anything else looks at the file, so that all rules read the gradients.
Measured on TensorFlow 2.15.1: both give the same tensors of gradients, and None for what is not connected.
"""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from migrator.names.bare import says
from migrator.program.calls import bind, functions_in
from migrator.program.parsed import Blocked, ParsedFile, name_nodes
from migrator.program.scopes import path_to
from migrator.program.spread import Edit, Kept, Written
from migrator.walking import walk


def may_hold_tapes(text: str) -> bool:
    """Whether a text may hold a model_fn with a tape."""
    return says(text, "GradientTape") and says(text, "EstimatorSpec")


def without_tapes(file: ParsedFile, tensorflow: Callable[[cst.Call], str]) -> list[Edit]:
    """The edits that take the tapes of model_fns away; `tensorflow` tells how TensorFlow 1 is spelled beside a call."""
    if not may_hold_tapes(file.text):
        return []
    functions = [f for f in functions_in(file.module) if "EstimatorSpec" in file.code(f)]
    around = {id(outer) for function in functions for outer in path_to(file.module, function)[:-1]}
    return [e for f in functions if id(f) not in around for e in _Tapes(file, f, tensorflow).edits()]


class _Tapes(cst.CSTVisitor):
    """The tapes of a function, and what is asked of them."""

    def __init__(self, file: ParsedFile, function: cst.FunctionDef, tensorflow: Callable[[cst.Call], str]) -> None:
        super().__init__()
        self.file = file
        self.function = function
        self.tensorflow = tensorflow
        self.tapes: list[tuple[cst.With, cst.Call, str]] = []
        self.asked: list[tuple[cst.Call, str]] = []

    def visit_With(self, node: cst.With) -> None:
        item = node.items[0]
        made, target = item.item, item.asname.name if item.asname is not None else None
        if len(node.items) == 1 and isinstance(made, cst.Call) and isinstance(target, cst.Name):
            if self.file.imports.tensorflow(made.func) == "tf.GradientTape" and not made.args:
                self.tapes.append((node, made, target.value))

    def visit_Call(self, node: cst.Call) -> None:
        if isinstance(node.func, cst.Attribute) and isinstance(node.func.value, cst.Name):
            if node.func.attr.value == "gradient":
                self.asked.append((node, node.func.value.value))

    def edits(self) -> list[Edit]:
        walk(self.function, self)
        return self._without(*self.tapes[0]) if len(self.tapes) == 1 else []

    def _without(self, node: cst.With, made: cst.Call, name: str) -> list[Edit]:
        """The edits for one tape; none where something else is done with it than asking for gradients of its block."""
        asked = [call for call, of in self.asked if of == name]
        uses = [n for n in name_nodes(self.function) if n.value == name]
        start, end = self.file.range(node)
        text = self.file.text
        plain = (
            isinstance(node.body, cst.IndentedBlock) and '"""' not in text[start:end] and "'''" not in text[start:end]
        )
        if not plain or len(uses) != len(asked) + 1 or any(self.file.range(call)[0] < end for call in asked):
            return []
        found: list[Edit] = []
        for call in asked:
            try:
                bound = bind(call, ("target", "sources"), "tape.gradient", "TFM403")
                spelled = self.tensorflow(made)
            except Blocked:
                return []
            first, last = self.file.range(call)
            kept = [Kept(*self.file.range(bound[key])) for key in ("target", "sources") if key in bound]
            if len(kept) != 2:
                return []
            written = Written(f"{spelled}.gradients(", first), kept[0], Written(", ", first), kept[1]
            found.append(Edit(first, last, (*written, Written(")", first))))
        return [*self._moved_out(node, start, end), *found]

    def _moved_out(self, node: cst.With, start: int, end: int) -> list[Edit]:
        """The block without its first line, at the place of the `with`."""
        text = self.file.text
        first = text.rfind("\n", 0, start) + 1
        at = text.index("\n", self.file.range(node.items[0])[1]) + 1
        width = self.file.position(node.body.body[0])[1] - 1 - (start - first)
        found = [Edit(first, at, ())]
        while at < end:
            line_end = text.find("\n", at) + 1 or len(text)
            blank = len(text[at:line_end]) - len(text[at:line_end].lstrip(" \t"))
            if text[at:line_end].strip() and blank >= width:
                found.append(Edit(at, at + width, ()))
            at = line_end
        return found
