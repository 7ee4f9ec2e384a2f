"""Writes migrator/names/fates.json: what TensorFlow 2.21 has of every public name, under `tf` and `tf.compat.v1`.

Run it with the interpreter of the migrated environment (TensorFlow 2.21 with tf_keras):

    python tools/make_fate_table.py migrator/names/fates.json

Names are those of TensorFlow 1 (`tf.compat.v1.X` is listed as `tf.X`). A name is

- `same` when `tf.X` and `tf.compat.v1.X` are one thing (the test of make_symbol_table.py), a module when all in it is;
- `other` when both exist and differ;
- `renamed` when `tf.compat.v1.X` is the object of another public name, which is given;
- `compat` when only `tf.compat.v1.X` exists, `new` when only `tf.X` does.

What is in none of these is not in TensorFlow 2.21. `modules` are the names of modules: what they hold is listed
completely, while attributes of classes and values are not. `keras_2` and `keras_3` are spelled as programs do, and
exist on that generation of Keras alone; the rest is of Keras 2, where both have a name. `keywords` are the parameters
of `tf.compat.v1.X` that `tf.X` does not take. tests/names/test_fate.py makes the table again and compares.
"""

import inspect
import json
import os
import subprocess
import sys
import types
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
_SURFACE = "--surface"


def surface(root):
    """Maps the public dotted names below a module to their values, and the set of those that are modules."""
    found, modules = {}, set()

    def visit(module, prefix, above):
        for attribute in sorted(dir(module)):
            if attribute.startswith("_") or (prefix == "tf" and attribute == "compat"):
                continue
            try:
                value = getattr(module, attribute)
                public = isinstance(value, types.ModuleType) and _is_public(value) and bool(dir(value))
            except Exception:  # a lazy module, or a name that this generation of Keras has not
                continue
            dotted = f"{prefix}.{attribute}"
            if public:
                if id(value) in above:
                    continue
                modules.add(dotted)
                found[dotted] = value
                visit(value, dotted, above | {id(value)})
            else:
                found[dotted] = value

    visit(root, "tf", frozenset({id(root)}))
    # Helpers that stand beside the two versions of the interface, and are the same in both.
    import tensorflow as tf

    for attribute in dir(tf.compat):
        if not attribute.startswith("_") and attribute not in ("v1", "v2"):
            found[f"tf.compat.{attribute}"] = getattr(tf.compat, attribute)
    return found, modules


def _is_public(module):
    """Whether a module is part of the interface, and not of what is behind it (`tf.app.flags` is absl's)."""
    if type(module).__name__ == "KerasLazyLoader":
        return True
    folders = Path(getattr(module, "__file__", None) or "").parts
    return bool({"_api", "api", "_tf_keras"} & set(folders)) or ("keras" in folders and "src" not in folders)


def names_by_spelling():
    """Every public name as programs spell it."""
    import tensorflow as tf

    plain, compat = surface(tf)[0], surface(tf.compat.v1)[0]
    return [*plain, *(f"tf.compat.v1.{name[3:]}" for name in compat if not name.startswith("tf.compat."))]


def parameters(value):
    """The names of what a symbol may be called with; None where everything may be given, or nobody knows."""
    from tensorflow.python.util import tf_decorator

    if not callable(value):
        return None
    try:
        found = inspect.signature(value.__init__ if isinstance(value, type) else tf_decorator.unwrap(value)[1])
    except (TypeError, ValueError):
        return None
    if any(one.kind is one.VAR_KEYWORD for one in found.parameters.values()):
        return None
    return {one.name for one in found.parameters.values() if one.kind is not one.VAR_POSITIONAL} - {"self"}


def table():
    from make_symbol_table import identity, is_constant

    # As the other generation of Keras, in a process of its own: TensorFlow chooses when it is imported.
    environment = {key: value for key, value in os.environ.items() if key != "TF_USE_LEGACY_KERAS"}
    command = [sys.executable, __file__, _SURFACE]
    run = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    of_keras_3 = set(json.loads(run.stdout.splitlines()[-1]))
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    import tensorflow as tf

    of_keras_2 = set(names_by_spelling())
    old, modules = surface(tf.compat.v1)
    new, more = surface(tf)
    homes = {}
    for dotted, value in sorted(new.items(), key=lambda item: (item[0].count("."), "experimental" in item[0], item[0])):
        if dotted not in more and not is_constant(value) and not dotted.startswith("tf.raw_ops."):
            homes.setdefault(identity(value), dotted)

    def is_same(name):
        one, two = old[name], new[name]
        if is_constant(one):
            return type(one) is type(two) and one == two
        return not is_constant(two) and identity(one) == identity(two)

    result = {"same": [], "other": [], "renamed": {}, "compat": [], "keywords": {}}
    for name in sorted(old):
        if name in modules and name in more:
            below = [each for each in {*old, *new} if each.startswith(f"{name}.") and each not in modules | more]
            kind = "same" if all(each in old and each in new and is_same(each) for each in below) else "other"
            result[kind].append(name)
        elif name in new:
            if is_same(name):
                result["same"].append(name)
                continue
            result["other"].append(name)
            given, taken = parameters(old[name]), parameters(new[name])
            if given is not None and taken is not None and given - taken:
                result["keywords"][name] = sorted(given - taken)
        elif name not in modules and not is_constant(old[name]) and identity(old[name]) in homes:
            result["renamed"][name] = homes[identity(old[name])]
        else:
            result["compat"].append(name)
    plain_3 = {name for name in of_keras_3 if not name.startswith("tf.compat.v1.")}
    result["new"] = sorted((new.keys() | plain_3) - old.keys())
    result["modules"] = sorted(modules | more)
    result["keras_2"] = sorted(of_keras_2 - of_keras_3)
    result["keras_3"] = sorted(plain_3 - of_keras_2)
    return {"tensorflow": tf.__version__, **result}


if __name__ == "__main__":
    if sys.argv[1] == _SURFACE:
        print(json.dumps(names_by_spelling()))
    else:
        Path(sys.argv[1]).write_text(json.dumps(table(), indent=0, sort_keys=True) + "\n", encoding="utf-8")
