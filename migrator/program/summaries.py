"""Lines that only write summaries."""

from __future__ import annotations

import libcst as cst

from migrator.names.imports import ImportMap


def called_for_effect(small: cst.CSTNode) -> cst.Call | None:
    """The call that is all of a statement, or that a list comprehension makes whose list nobody keeps."""
    value = small.value if isinstance(small, cst.Expr) else None
    if isinstance(value, cst.ListComp):
        value = value.elt
    return value if isinstance(value, cst.Call) else None


def summary_symbol(small: cst.CSTNode, imports: ImportMap) -> str | None:
    """The symbol of `tf.summary` that a statement calls, and does nothing else."""
    call = called_for_effect(small)
    name = None if call is None else imports.resolve(call.func)
    return name if name is not None and name.startswith("tf.summary.") else None


__all__ = ["called_for_effect", "summary_symbol"]
