"""Writes migrator/bridge/moved.json: names of tf.contrib that are other names of objects of the public interface.

Run it with the interpreter of TensorFlow 1.15:

    python tools/make_moved_table.py migrator/bridge/moved.json

Functions, classes and modules are compared by identity. Where an object has several public names, the shortest is
taken. tests/bridge/test_table.py makes the table again and compares.
"""

import json
import sys
import types
from pathlib import Path

# Modules of tf.contrib that only import all of TensorFlow, or hold what the support file has.
_LEFT_OUT = ("quantization", "specs", "solvers", "keras", "estimator", "grid_rnn", "testing", "tensor_forest")
_LIBRARIES = ("six", "np", "numpy", "absolute_import", "division", "print_function")


def names_below(module, prefix, depth):
    """The objects in a module and in the modules below it, by their dotted names."""
    found = {}
    for name in sorted(dir(module)):
        if (
            name.startswith("_")
            or name in _LIBRARIES
            or (prefix == "tf" and name in ("contrib", "compat", "python", "pywrap_tensorflow"))
        ):
            continue
        try:
            value = getattr(module, name)
        except Exception:  # a lazy module that cannot be loaded here
            continue
        if isinstance(value, types.ModuleType):
            if depth and value.__name__.startswith(("tensorflow", "tensorflow_core", "tensorflow_estimator")):
                found.update(names_below(value, f"{prefix}.{name}", depth - 1))
        elif isinstance(value, type) or callable(value):
            found[f"{prefix}.{name}"] = value
    return found


def table():
    """Maps `tf.contrib.X` to `tf.Y`."""
    import tensorflow as tf

    public = {}
    for name, value in sorted(names_below(tf, "tf", 5).items(), key=lambda one: (one[0].count("."), len(one[0]), one)):
        public.setdefault(id(value), name)
    modules = sorted(name for name in dir(tf.contrib) if not name.startswith("_") and name not in _LEFT_OUT)
    found = {}
    for module in modules:
        try:
            value = getattr(tf.contrib, module)
        except Exception:
            continue
        if isinstance(value, types.ModuleType):
            for name, one in names_below(value, f"tf.contrib.{module}", module == "framework").items():
                if id(one) in public and ".python." not in name:
                    found[name] = public[id(one)]
    return found


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(table(), indent=0, sort_keys=True) + "\n", encoding="utf-8")
