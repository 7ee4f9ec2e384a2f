"""Where a symbol of TensorFlow 1 is found in a bridged project: in `tf.compat.v1`, in the support file, or nowhere."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path

from migrator.bridge.assemble import library
from migrator.bridge.table import MOVED, NAMESPACES, SLIM, SLIM_MODULES, SLIM_NETS, SLIM_OF, SUPPLIED
from migrator.names.fate import exists
from migrator.rules.tf2_names import RENAMED


class Kind(Enum):
    """The module that has a symbol now."""

    COMPAT = "tensorflow.compat.v1"
    SUPPORT = "the support file"
    SLIM = "tf_slim"
    PRIVATE = "tensorflow.python"
    NONE = "nowhere"


@dataclass(frozen=True)
class Home:
    """The new place of a symbol.

    `name` is its name there: `tf.X` for COMPAT, the name in the module for SUPPORT and SLIM (empty: the module itself).
    `parts` is how many parts of the old dotted name it stands for; what follows them stays.
    """

    kind: Kind
    name: str
    parts: int


_BEHIND_SLIM = "tf.contrib.slim.python.slim."
_SLIM_MODULES = ("tf.contrib.slim", "tf.contrib.layers", "tf.contrib.framework")


def home_of(name: str) -> Home:
    """The home of a canonical name, `tf.X` of TensorFlow 1."""
    if name.startswith(_BEHIND_SLIM):
        found = home_of(name.replace(_BEHIND_SLIM, "tf.contrib.slim.", 1))
        return Home(found.kind, found.name, found.parts + 2)
    parts = name.split(".")
    for end in range(len(parts), 1, -1):
        prefix = ".".join(parts[:end])
        supplied = SUPPLIED.get(prefix)
        if supplied is not None and supplied in library().public:
            return Home(Kind.SUPPORT, supplied, end)
        if prefix in SLIM_OF:
            return Home(Kind.SLIM, SLIM_OF[prefix], end)
        moved = _moved().get(prefix)
        if moved is not None and moved != prefix:
            found = home_of(moved)
            if found.kind is not Kind.NONE:
                return Home(found.kind, found.name, end)
    if name in NAMESPACES:
        return Home(Kind.SUPPORT, "", len(parts))
    if name in SLIM_MODULES:
        return Home(Kind.SLIM, SLIM_MODULES[name], len(parts))
    public = _of_contrib(parts)
    if public is not None:
        return public
    slim = _slim(parts)
    if slim is not None:
        return slim
    if parts[:3] == ["tf", "contrib", "slim"]:  # it has all that contrib.layers has
        return home_of(".".join(["tf", "contrib", "layers", *parts[3:]]))
    if name.startswith(("tf.python.", "tf.core.")):
        return _private(name)
    if not name.startswith("tf.") and name != "tf":
        return Home(Kind.NONE, name, len(parts))
    return Home(Kind.COMPAT if is_in_compat(name) else Kind.NONE, name, len(parts))


def _of_contrib(parts: list[str]) -> Home | None:
    """What a module behind tf.contrib has of the public names, by its whole path or by its name alone
    (`tf.contrib.layers.python.layers.layers.batch_norm`, `tf.contrib.layers.feature_column.sparse_column_with_keys`).
    """
    if len(parts) < 4 or parts[1] != "contrib":
        return None
    if parts[2] == "keras":
        rest = parts[3:]
        while rest[:2] in (["python", "keras"], ["api", "keras"]):
            rest = rest[2:]
        name = ".".join(["tf", "keras", *rest])
        return Home(Kind.COMPAT, name, len(parts)) if is_in_compat(name) else None
    if parts[2:4] == ["tpu", "python"]:
        folder = ["tpu"] if parts[4:5] == ["ops"] else []  # tf.contrib.tpu.python.ops is tf.python.tpu.ops now
        found = _private(".".join(["tf", "python", *folder, *parts[4:]]))
        if found.kind is Kind.PRIVATE:
            return Home(Kind.PRIVATE, found.name, len(parts))
    for start in range(4, len(parts)):
        found = home_of(".".join([*parts[:3], *parts[start:]]))
        if found.kind is not Kind.NONE:
            return Home(found.kind, found.name, found.parts + start - 3)
    return None


def _slim(parts: list[str]) -> Home | None:
    for end in range(len(parts) - 1, 3, -1):
        if (prefix := ".".join(parts[:end])) in SLIM_MODULES:
            return Home(Kind.SLIM, SLIM_MODULES[prefix], end)
    module = ".".join(parts[:3])
    if module not in _SLIM_MODULES:
        return None
    if len(parts) == 3:
        return Home(Kind.SLIM, "", 3)
    if parts[3] in SLIM:
        return Home(Kind.SLIM, parts[3], 4)
    if module == "tf.contrib.slim" and parts[3] == "nets":
        if len(parts) == 4:
            return Home(Kind.SLIM, "nets", 4)
        if parts[4] in SLIM_NETS:
            return Home(Kind.SLIM, f"nets.{parts[4]}", 5)
    return None


def _private(name: str) -> Home:
    """A name below tensorflow.python, which TensorFlow 2.21 has, or not."""
    count = name.count(".") + 1
    if name.startswith("tf.python.keras."):  # a second Keras, which tf_keras does not know
        public = name.replace("tf.python.keras.", "tf.keras.")
        return Home(Kind.COMPAT, public, count) if is_in_compat(public) else Home(Kind.NONE, name, count)
    if not exists(name):
        return Home(Kind.NONE, name, count)
    return Home(Kind.PRIVATE, name, count)


def is_in_compat(name: str) -> bool:
    """Whether `tf.X` of TensorFlow 1 is `tf.compat.v1.X` in TensorFlow 2.21 with Keras 2, or an attribute of one."""
    if name.startswith("tf.compat.v2."):
        return exists(name)
    if name.startswith("tf.contrib."):
        return False
    return name == "tf" or exists(f"tf.compat.v1{name.removeprefix('tf').removesuffix('()')}")


@lru_cache(maxsize=1)
def _moved() -> dict[str, str]:
    moved = json.loads(Path(__file__).with_name("moved.json").read_text(encoding="utf-8"))
    # Names of TensorFlow 2.0 to 2.15, where tf.compat.v1 has not got them either.
    later = {old: f"tf.compat.v2{new.removeprefix('tf')}" for old, new in RENAMED.items() if not is_in_compat(old)}
    return {**later, **moved, **MOVED}
