"""Writes migrator/names/aliases.json: names behind TensorFlow 1.15's interface that are other names of public symbols.

Run it with the interpreter of TensorFlow 1.15:

    python tools/make_alias_table.py migrator/names/aliases.json

Each module of `tensorflow.python`, `tensorflow_estimator.python` and those behind `tensorflow.contrib` is imported.
What it holds that is the same object as a public symbol has that name; of several public names one that ends alike
counts, then the one with the fewest parts, then the shortest, names of contrib last. Numbers and strings, which have no
identity, count where their value and their name in capitals are those of a public constant. The table maps a module to
the public modules of its symbols, and these to the symbols: one name where both have the same, `old=new` otherwise.
tests/end_to_end/test_public_names.py compares it with 1.15.5.
"""

import importlib
import json
import os
import pkgutil
import sys
import types
import warnings
from collections import defaultdict
from pathlib import Path

from make_moved_table import names_below

# What is there for TensorFlow's own tests and tools, or wraps each of the operations.
_LEFT_OUT = (
    *("_test", "test_util", ".testing", ".kernel_tests", "._api", ".api.", ".autograph.", ".user_ops", ".profiler"),
    *(".debug.", ".tools.", ".examples.", ".gen_", ".ops.gen_", ".quantization", ".pywrap_", ".tf_stack", ".lite."),
    *("standard_ops", ".tests", "tf.compiler"),
)
_NOT_PUBLIC = ("tf.tools.", "tf.raw_ops.", "tf.compiler.", "tf.contrib.quantization.", "tf.core.")
_CONSTANTS = (int, float, str, bytes)
_NOT_THEIRS = {"absolute_import", "division", "print_function", "unicode_literals", "tf_export", "estimator_export"}


def public_names():
    """The public names of each object, by its identity, and the constants by their name and value."""
    import tensorflow as tf

    def order(name):
        return name.startswith("tf.contrib"), name.count("."), len(name), name

    found = {name: value for name, value in names_below(tf, "tf", 6).items() if not name.startswith(_NOT_PUBLIC)}
    objects, constants = defaultdict(list), {}
    for name in sorted(found, key=order):
        if ".python." not in name:
            objects[id(found[name])].append(name)
    for name, value in sorted(values_below(tf, "tf", 4), key=lambda one: order(one[0])):
        if isinstance(value, _CONSTANTS):
            constants.setdefault((name.rpartition(".")[2], value), name)
        else:
            objects[id(value)].append(name)
    return objects, constants


def values_below(module, prefix, depth):
    """Values of a public module and of those below it that are neither functions, classes nor modules."""
    for name in dir(module):
        if name.startswith("_") or (prefix == "tf" and name in ("contrib", "compat", "python", "tools", "raw_ops")):
            continue
        value = getattr(module, name)
        if isinstance(value, types.ModuleType):
            if depth and value.__name__.startswith(("tensorflow", "tensorflow_core", "tensorflow_estimator")):
                yield from values_below(value, f"{prefix}.{name}", depth - 1)
        elif (
            type(value).__name__ == "DType"
            or name == "AUTO_REUSE"
            or (isinstance(value, _CONSTANTS) and name.isupper())
        ):
            yield f"{prefix}.{name}", value


def modules():
    import tensorflow.contrib as contrib
    import tensorflow.python as python
    import tensorflow_estimator.python as estimator  # of its own since TensorFlow 1.13

    roots = (("tensorflow.python", python), ("tensorflow.contrib", contrib), ("tensorflow_estimator.python", estimator))
    for root, package in roots:
        for found in pkgutil.walk_packages(package.__path__, root + ".", onerror=lambda name: None):
            if any(one in found.name for one in _LEFT_OUT) or (
                root.endswith("contrib") and ".python" not in found.name
            ):
                continue
            try:
                yield found.name, importlib.import_module(found.name)
            except BaseException:  # what cannot be imported there was of no use to programs
                continue


def table():
    objects, constants = public_names()
    found = defaultdict(lambda: defaultdict(list))
    for dotted, module in modules():
        for name in sorted(set(dir(module)) - _NOT_THEIRS):
            value = getattr(module, name, None)
            if name.startswith("__") or isinstance(value, types.ModuleType) or value is None:
                continue
            is_constant = isinstance(value, _CONSTANTS)
            if is_constant:
                public = constants.get((name, value))
            else:
                known = objects.get(id(value), [None])
                public = next((one for one in known if one and one.endswith(f".{name}")), known[0])
            if public:
                home, _, new = public.rpartition(".")
                found[dotted.replace("tensorflow.", "tf.", 1)][home].append(name if name == new else f"{name}={new}")
    return {
        module: {home: " ".join(sorted(names)) for home, names in sorted(homes.items())}
        for module, homes in sorted(found.items())
    }


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    warnings.simplefilter("ignore")
    Path(sys.argv[1]).write_text(json.dumps(table(), indent=0, sort_keys=True) + "\n", encoding="utf-8")
