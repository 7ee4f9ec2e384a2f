"""Estimators and Keras models that are made where they are used.

`train_and_evaluate(Estimator(...), ...)` and `Estimator(...).train(...)` get a line before, which gives them a name.
"""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from migrator.names.free import free
from migrator.program.parsed import ParsedFile, Tracked, names_in
from migrator.program.training import is_estimator

#: Of which functions the first argument is given a line of its own: how it is called, and the name that it gets.
_FIRST = {
    "tf.estimator.train_and_evaluate": ("estimator", "estimator"),
    "tf.keras.estimator.model_to_estimator": ("keras_model", "model"),
}
_METHODS = ("train", "evaluate", "predict", "export_saved_model", "export_savedmodel")


def with_named_estimators(file: ParsedFile) -> ParsedFile:
    """The file with such Estimators and models on a line of their own before that call, under a name."""
    words = (*(name.rpartition(".")[2] for name in _FIRST), *(f").{name}(" for name in _METHODS))
    if not any(word in file.bare for word in words):
        return file
    writer = _Writer(file)
    module = file.module.visit(writer)
    assert isinstance(module, cst.Module)
    if not writer.changed:
        return file
    new = replace(file, module=module)
    new.keep_positions(writer.made, file)
    return new


class _Writer(Tracked):
    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        taken = names_in(file.module) | set(file.imports.names)
        self.names = {wanted: free(wanted, taken) for _, wanted in _FIRST.values()}
        self.changed = False

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.SimpleStatementLine]:
        found, outer = self._in_place(original_node), _call(updated_node)
        if found is None or outer is None:
            return self._asked_in_place(original_node, updated_node)
        self.changed = True
        at, name = found
        made = cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(name))], outer.args[at].value)])
        named = outer.args[at].with_changes(value=cst.Name(name))
        call = outer.with_changes(args=[*outer.args[:at], named, *outer.args[at + 1 :]])
        line = updated_node.with_deep_changes(updated_node.body[0], value=call).with_changes(leading_lines=())
        self.made.update({named.value: original_node, call: original_node, made: original_node})
        return cst.FlattenSentinel([made.with_changes(leading_lines=updated_node.leading_lines), line])

    def _asked_in_place(
        self, node: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.SimpleStatementLine]:
        """`Estimator(...).train(...)` with a line before it that gives the Estimator a name."""
        call, outer = _call(node), _call(updated)
        asked = call.func if call is not None else None
        if outer is None or not isinstance(asked, cst.Attribute) or not isinstance(asked.value, cst.Call):
            return updated
        symbol = self.file.imports.resolve(asked.value.func) or ""
        if asked.attr.value not in _METHODS or not is_estimator(symbol):
            return updated
        self.changed = True
        name = self.names["estimator"]
        func = cst.ensure_type(outer.func, cst.Attribute)
        made = cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(name))], func.value)])
        by_name = func.with_changes(value=cst.Name(name))
        new = outer.with_changes(func=by_name)
        line = updated.with_deep_changes(updated.body[0], value=new).with_changes(leading_lines=())
        self.made.update({by_name.value: node, by_name: node, new: node, made: node})
        return cst.FlattenSentinel([made.with_changes(leading_lines=updated.leading_lines), line])

    def _in_place(self, node: cst.SimpleStatementLine) -> tuple[int, str] | None:
        """Which argument of a line's call is made there, and the name that it gets; None where none is."""
        call = _call(node)
        called = self.file.imports.resolve(call.func) if call is not None else None
        if call is None or called not in _FIRST:
            return None
        first, name = _FIRST[called]
        for at, arg in enumerate(call.args):
            given = arg.keyword.value if arg.keyword is not None else (first if at == 0 else "")
            if given == first and not arg.star and isinstance(arg.value, cst.Call):
                # Another Estimator may be what a function returns.
                if first != "estimator" or is_estimator(self.file.imports.resolve(arg.value.func) or ""):
                    return at, self.names[name]
        return None


def _call(node: cst.SimpleStatementLine) -> cst.Call | None:
    """The call that a line consists of, its result kept or not."""
    small = node.body[0] if len(node.body) == 1 else None
    value = small.value if isinstance(small, (cst.Expr, cst.Assign)) else None
    return value if isinstance(value, cst.Call) else None


__all__ = ["with_named_estimators"]
