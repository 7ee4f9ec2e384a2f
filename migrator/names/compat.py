"""Which symbols TensorFlow 2 has under `tf.compat.v1` alone, and which version of TensorFlow a file was written for."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Collection, Iterator

from migrator.names.fate import Compat, New, Other, fate, is_module, symbol
from migrator.names.symbols import home, is_new

# What TensorFlow 2.15 has in both places, and 2.21 in one or none.
_MOVED = ("tf.estimator.", "tf.keras.")


_RULES_OF_THEIR_OWN = ("tf.estimator.", "tf.raw_ops.", "tf.compat.")


def in_compat(name: str) -> bool:
    """Whether TensorFlow 2.21 has `tf.X` of TensorFlow 1 as `tf.compat.v1.X`, and nowhere else."""
    return isinstance(fate(name), (Compat, Other)) and _is_symbol(name)


def only_two(name: str) -> bool:
    """Whether TensorFlow 2.21 has a `tf.X` that is not what TensorFlow 1 called so."""
    known = isinstance(fate(name), (Other, New)) and _is_symbol(name)
    return known and not is_new(name) and not name.startswith(_RULES_OF_THEIR_OWN)


def _is_symbol(name: str) -> bool:
    """Whether the table has just this name, not what it belongs to, and it is no module."""
    return symbol(name) == name and not is_module(name)


def written_for_two(text: str, heads: Collection[str], compat_heads: Collection[str] = ()) -> bool:
    """Whether a file names symbols of TensorFlow 1 as TensorFlow 2 does, `tf.compat.v1.X`, and none of them plainly.

    Such a file runs in TensorFlow 2, so that a plain `tf.X` in it means what it means there. `heads` are the names that
    it gives to TensorFlow, `compat_heads` those that it gives to `tensorflow.compat.v1`.
    """
    spelled = False
    try:
        for name in _dotted(text):
            head, _, rest = name.partition(".")
            if head in compat_heads or (head in heads and rest.startswith("compat.v1.")):
                name = f"tf.{rest.removeprefix('compat.v1.')}"
                spelled |= in_compat(name) or _is_only_one(name)
            elif head in heads and _is_only_one(f"tf.{rest}"):
                return False
    except (tokenize.TokenError, SyntaxError):
        return False
    return spelled


def _is_only_one(name: str) -> bool:
    """Whether a symbol, or what one is taken of, is one that TensorFlow 2 has not got under its own name."""
    parts = name.split(".")
    prefixes = [".".join(parts[:end]) for end in range(2, len(parts) + 1)]
    return name.startswith("tf.contrib.") or any(
        in_compat(one) and not only_two(one) and not _is_plain(one) and not one.startswith(_MOVED) for one in prefixes
    )


def _is_plain(name: str) -> bool:
    found = home(name)
    return found is not None and found.name == name


def _dotted(text: str) -> Iterator[str]:
    """The dotted names of a file, those in comments and strings left out."""
    name, after_dot = "", False
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and (after_dot or not name):
            name, after_dot = name + token.string, False
        elif token.type == tokenize.OP and token.string == "." and name and not after_dot:
            name, after_dot = f"{name}.", True
        else:
            if name:
                yield name.rstrip(".")
            name, after_dot = (token.string if token.type == tokenize.NAME else ""), False
    if name:
        yield name.rstrip(".")


__all__ = ["in_compat", "only_two", "written_for_two"]
