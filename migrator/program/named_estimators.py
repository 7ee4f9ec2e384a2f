"""Estimators and Keras models that are given in place: `train_and_evaluate(Estimator(...), ...)`."""

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


def with_named_estimators(file: ParsedFile) -> ParsedFile:
    """The file with such Estimators and models on a line of their own before that call, under a name."""
    if not any(name.rpartition(".")[2] in file.bare for name in _FIRST):
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
            return updated_node
        self.changed = True
        at, name = found
        made = cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(name))], outer.args[at].value)])
        named = outer.args[at].with_changes(value=cst.Name(name))
        call = outer.with_changes(args=[*outer.args[:at], named, *outer.args[at + 1 :]])
        line = updated_node.with_deep_changes(updated_node.body[0], value=call).with_changes(leading_lines=())
        self.made.update({named.value: original_node, call: original_node, made: original_node})
        return cst.FlattenSentinel([made.with_changes(leading_lines=updated_node.leading_lines), line])

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
