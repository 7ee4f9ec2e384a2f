"""One name for each symbol of TensorFlow 1, whichever way a program spells it."""

from __future__ import annotations

from functools import lru_cache

from migrator.names.aliases import without_alias

_ROOTS = (
    ("tensorflow.compat.v1", "tf"),
    ("tensorflow_core.compat.v1", "tf"),
    ("tensorflow", "tf"),
    ("tf.compat.v1", "tf"),
    ("tf.compat.v2.compat.v1", "tf"),
    ("tensorflow_estimator.compat.v1.estimator", "tf.estimator"),
    ("tensorflow_estimator.estimator", "tf.estimator"),  # the same module, as editors like to import it
)


@lru_cache(maxsize=4096)
def canonical(name: str) -> str:
    """`tf.X` for whatever way `name` spells the TensorFlow module, or a symbol of it; other names as they are."""
    return without_alias(rooted(name))


def rooted(name: str) -> str:
    """`name` with the TensorFlow module as `tf`, the rest as it is spelled (`tf.contrib.rnn.LSTMCell`)."""
    changed = True
    while changed:
        changed = False
        for prefix, short in _ROOTS:
            if name == prefix or name.startswith(prefix + "."):
                name, changed = short + name[len(prefix) :], True
                break
    return name
