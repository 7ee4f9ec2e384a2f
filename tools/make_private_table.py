"""Writes migrator/names/private.json: what of TensorFlow 1.15's `tensorflow.python` TensorFlow 2.21 has no more.

Two runs, the first with TensorFlow 1.15.5, the second with 2.21 (and tf_keras):

    python tools/make_private_table.py list of_one.json
    python tools/make_private_table.py compare of_one.json migrator/names/private.json

`modules` are modules that are gone with all below them, `names` those that are gone from modules that are still there.
tests/names/test_fate.py looks for each of them in the real 2.21.
"""

import importlib
import json
import os
import sys
import types
import warnings
from pathlib import Path

# What is there for TensorFlow's own tests and tools.
_LEFT_OUT = ("kernel_tests", "debug", "tools", "autograph", "_api", "user_ops", "profiler")
_OF_PYTHON_2 = {"absolute_import", "division", "print_function", "unicode_literals", "xrange"}


def modules(base):
    for root, folders, files in os.walk(base):
        folders[:] = [folder for folder in folders if folder not in _LEFT_OUT]
        for file in sorted(files):
            below = Path(root, file).relative_to(base).with_suffix("")
            if file.endswith(".py") and "test" not in str(below):
                yield ".".join(part for part in below.parts if part != "__init__")


def of_one():
    import tensorflow.python as base

    found = {}
    for below in modules(Path(base.__file__).parent):
        if not below:
            continue
        try:
            module = importlib.import_module("tensorflow.python." + below)
        except BaseException:  # what cannot be imported there was of no use to programs
            continue
        values = [(name, getattr(module, name, None)) for name in dir(module)]  # also of what wraps a module
        names = [name for name, value in values if name[:2] != "__" and not isinstance(value, types.ModuleType)]
        found["tf.python." + below] = sorted(set(names) - _OF_PYTHON_2)
    return found


def has(module, name):
    try:
        return hasattr(module, name)
    except BaseException:  # a lazy name
        return name in vars(module)


def compare(known):
    gone, names = [], {}
    for dotted in sorted(known):
        if ".api." in dotted or "_internal" in dotted or any(dotted.startswith(above + ".") for above in gone):
            continue
        try:
            module = importlib.import_module("tensorflow" + dotted[len("tf") :])
        except ModuleNotFoundError:
            gone.append(dotted)
            continue
        missing = [name for name in known[dotted] if not has(module, name)]
        if missing:
            names[dotted] = missing
    return {"modules": gone, "names": names}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    if sys.argv[1] == "list":
        result, target = of_one(), sys.argv[2]
    else:
        result, target = compare(json.loads(Path(sys.argv[2]).read_text())), sys.argv[3]
    Path(target).write_text(json.dumps(result, indent=0, sort_keys=True) + "\n")
