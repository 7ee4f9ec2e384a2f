"""Writes migrator/names/symbols.json: which TensorFlow 1 symbols live on, and where, in TensorFlow 2.

Run it with the interpreter of the migrated environment (TensorFlow 2.21 with tf_keras):

    TF_USE_LEGACY_KERAS=1 python tools/make_symbol_table.py migrator/names/symbols.json

A symbol is `same` when `tf.compat.v1.X` and `tf.X` are one and the same Python object (so its arguments and its
meaning are the same too), and `renamed` when that object is found in the TensorFlow 2 namespace under another
name. Constants are compared by type and value. tests/names/test_symbols.py repeats the comparison.
"""

import json
import os
import sys
import types
from pathlib import Path

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


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


def compare():
    import tensorflow as tf

    old = public_symbols(tf.compat.v1, "tf")
    new = public_symbols(tf, "tf")
    homes = {}
    for dotted, value in sorted(new.items(), key=lambda item: (item[0].count("."), "experimental" in item[0], item[0])):
        if not is_constant(value):
            homes.setdefault(id(value), dotted)
    same, renamed = [], {}
    for dotted, value in sorted(old.items()):
        if dotted in new and (
            new[dotted] is value or (is_constant(value) and type(value) is type(new[dotted]) and value == new[dotted])
        ):
            same.append(dotted)
        elif not is_constant(value) and id(value) in homes:
            renamed[dotted] = homes[id(value)]
    return {"tensorflow": tf.__version__, "same": same, "renamed": renamed}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(compare(), indent=0, sort_keys=True) + "\n", encoding="utf-8")
