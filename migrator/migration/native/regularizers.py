"""Regularizers outside of model_fns."""

from __future__ import annotations

from migrator.migration.state import GroupState
from migrator.program.parsed import Blocked


def keep_regularizers(state: GroupState) -> None:
    """Regularizers outside the model_fns count or not as the model_fns say."""
    keep = bool(state.regularized) and all(state.regularized.values())
    updates = set(state.updating.values())
    for rewriter in state.rewriters.values():
        rewriter.keep_regularizers = keep or not state.regularized
        rewriter.updates = next(iter(updates), True) if len(updates) < 2 else None


def tell_regularizers(state: GroupState) -> None:
    """Tells of regularizers that are left out, or finds that the model_fns disagree about them (TFM206)."""
    agree = len(set(state.regularized.values())) < 2
    for path, rewriter in state.rewriters.items():
        for node in rewriter.dropped_regularizers:
            if agree:
                message = "the regularizer is dropped: the loss of the model_fn never had its term"
                state.remarks[path].append(Blocked("TFM206", node, message))
            else:
                message = "one model_fn adds the regularization terms to its loss, another does not"
                state.problems[path].append(Blocked("TFM206", node, message))
