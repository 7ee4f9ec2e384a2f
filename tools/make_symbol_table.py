"""Writes migrator/names/symbols.json: which TensorFlow 1 symbols live on, and where, in TensorFlow 2.

Run it with the interpreter of the migrated environment (TensorFlow 2.21 with tf_keras):

    TF_USE_LEGACY_KERAS=1 python tools/make_symbol_table.py migrator/names/symbols.json

A symbol is `same` when `tf.compat.v1.X` and `tf.X` are one and the same Python object (so its arguments and its
meaning are the same too), `renamed` when that object is found in the TensorFlow 2 namespace under another name, and
`new` when TensorFlow 1 has no such name: a program that says it means TensorFlow 2. Functions are compared below their
decorators, which only dispatch, check types and warn: they are the same where the code, the defaults and what the code
closes over are. Constants are compared by type and value.
tests/names/test_symbols.py repeats the comparison.
"""

import json
import os
import sys
import types
from pathlib import Path

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


# What has rules of its own, or is not for users' programs.
_OWN_RULES = (
    "tf.distribute.",
    "tf.estimator.",
    "tf.raw_ops.",
    "tf.experimental.",
    "tf.keras.optimizers.",
    "tf.optimizers.",
)


def public_symbols(root, name):
    """Maps dotted names below `root` to objects, modules walked once each."""
    found, seen, queue = {}, {id(root)}, [(name, root)]
    while queue:
        prefix, module = queue.pop()
        for attribute in sorted(dir(module)):
            if attribute.startswith("_") or (prefix == "tf" and attribute == "compat"):
                continue
            try:
                value = getattr(module, attribute)
            except Exception:  # a lazy module that is not installed
                continue
            dotted = f"{prefix}.{attribute}"
            if isinstance(value, types.ModuleType):
                if "._api." in value.__name__ or ".api." in value.__name__:
                    if id(value) not in seen:
                        seen.add(id(value))
                        queue.append((dotted, value))
            else:
                found[dotted] = value
    return found


def is_constant(value):
    return isinstance(value, (int, float, str, bytes, bool, tuple)) or value is None


def identity(value):
    """What tells two symbols apart: an object, or what makes up the function below its decorators."""
    from tensorflow.python.util import tf_decorator

    if isinstance(value, type) or not callable(value):
        return id(value)
    function = tf_decorator.unwrap(value)[1]
    if not isinstance(function, types.FunctionType):
        return id(value)
    closed = tuple(id(cell.cell_contents) for cell in function.__closure__ or ())
    defaults = (function.__defaults__, tuple(sorted((function.__kwdefaults__ or {}).items())))
    return id(function.__code__), closed, repr(defaults)


def compare():
    import tensorflow as tf

    old = public_symbols(tf.compat.v1, "tf")
    new = public_symbols(tf, "tf")
    homes = {}
    for dotted, value in sorted(new.items(), key=lambda item: (item[0].count("."), "experimental" in item[0], item[0])):
        if not is_constant(value) and not dotted.startswith("tf.raw_ops."):  # these take keywords only
            homes.setdefault(identity(value), dotted)
    same, renamed = [], {}
    for dotted, value in sorted(old.items()):
        if dotted in new and (
            (not is_constant(value) and identity(new[dotted]) == identity(value))
            or (is_constant(value) and type(value) is type(new[dotted]) and value == new[dotted])
        ):
            same.append(dotted)
        elif not is_constant(value) and identity(value) in homes:
            renamed[dotted] = homes[identity(value)]
    young = sorted(name for name in new.keys() - old.keys() if not name.startswith(_OWN_RULES))
    return {"tensorflow": tf.__version__, "same": same, "renamed": renamed, "new": young}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(compare(), indent=0, sort_keys=True) + "\n", encoding="utf-8")
