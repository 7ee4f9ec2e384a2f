"""What input functions give: whether their data ever end."""

from __future__ import annotations

from migrator.ir.machine import Machine, present
from migrator.ir.values import Constant, Either, Operation, Value

#: Methods that give something without an end for something without one. A `filter` may keep nothing: TensorFlow 1 would
#: look for a batch for ever, too.
_KEEP = frozenset(
    (
        *("batch", "cache", "concatenate", "enumerate", "filter", "flat_map", "interleave", "map", "padded_batch"),
        *("prefetch", "repeat", "shard", "shuffle", "skip", "unbatch", "window", "with_options"),
        *("get_next", "make_initializable_iterator", "make_one_shot_iterator"),
    )
)
_ITERATORS = ("tf.data.make_initializable_iterator", "tf.data.make_one_shot_iterator")
#: Transformations for `apply` that do the same, by the ends of their names.
_APPLIED = frozenset(
    (
        *("assert_cardinality", "bucket_by_sequence_length", "copy_to_device", "dense_to_ragged_batch"),
        *("dense_to_sparse_batch", "ignore_errors", "map_and_batch", "parallel_interleave", "prefetch_to_device"),
        *("shuffle_and_repeat", "unbatch"),
    )
)
_ARRAYS = (".inputs.numpy_input_fn", ".inputs.pandas_input_fn", ".io.numpy_input_fn", ".io.pandas_input_fn")


def endless(machine: Machine, value: Value | None) -> bool:
    """Whether a dataset, an iterator, or what comes of one surely has no end. Tuples and dicts end with their first."""
    if value is None:
        return False
    if isinstance(value, Either):
        return endless(machine, value.then) and endless(machine, value.otherwise)
    content, entries = machine.content_of(value), machine.entries_of(value)
    if content is not None or entries is not None:
        parts = content.items if content is not None else [one for _, one in entries.items.values()] if entries else []
        more = content.more if content is not None else entries is None or entries.more
        return bool(parts) and not more and all(endless(machine, present(one)) for one in parts)
    return isinstance(value, Operation) and _is_endless(machine, value)


def _is_endless(machine: Machine, value: Operation) -> bool:
    name = value.symbol
    if name == "tf.data.Dataset.zip":
        given = [*value.args, *(one for key, one in value.kwargs.items() if key == "datasets")]
        return bool(given) and all(endless(machine, one) for one in given)
    if name in _ITERATORS or name in ("getitem", "element"):
        return bool(value.args) and endless(machine, value.args[0])
    if not name.startswith(".") or name[1:] not in (*_KEEP, "apply"):
        return False
    if name == ".repeat" and _for_ever(value, 1, "count", None):
        return True
    if name == ".apply":
        made = value.argument(1, "transformation_func")
        module, _, kind = made.symbol.rpartition(".") if isinstance(made, Operation) else ("", "", "")
        if "data" not in module or kind not in _APPLIED or not isinstance(made, Operation):
            return False
        if kind == "shuffle_and_repeat" and _for_ever(made, 1, "count", None):
            return True
    return endless(machine, value.args[0])


def _for_ever(value: Operation, position: int, keyword: str, default: object) -> bool:
    """Whether a call that repeats data is told to do so for ever: by None or -1."""
    if "*" in value.kwargs or "**" in value.kwargs:
        return False
    count = value.argument(position, keyword)
    known = count.value if isinstance(count, Constant) else default if count is None else ...
    return known is None or known == -1


def endless_arrays(value: Value) -> bool:
    """Whether a value is an input function of arrays that are repeated for ever."""
    return isinstance(value, Operation) and value.symbol.endswith(_ARRAYS) and _for_ever(value, 3, "num_epochs", 1)


__all__ = ["endless", "endless_arrays"]
