"""What became of a symbol: whether TensorFlow 2.21 has it, under which name, and with which meaning.

The answer is that of `fates.json`, which tools/make_fate_table.py makes from an installed TensorFlow 2.21 with
tf_keras: of every public name of `tf` and of `tf.compat.v1`. `fate` is asked with the name of TensorFlow 1 (`tf.X`,
however it is spelled), `exists` with a name as a program spells it for TensorFlow 2.21. Nothing here needs libcst.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Union

from migrator.names.spelling import canonical


@dataclass(frozen=True)
class Same:
    """`tf.X` of TensorFlow 2.21 is `tf.X` of TensorFlow 1: one and the same object."""


@dataclass(frozen=True)
class New:
    """`tf.X` is there, and only TensorFlow 2 has it: a program that says it means TensorFlow 2."""


@dataclass(frozen=True)
class Other:
    """`tf.X` is there and is another object than `to`, a `tf.compat.v1.X`: what TensorFlow 1 called `tf.X`."""

    to: str


@dataclass(frozen=True)
class Renamed:
    """`tf.X` is not there: the same object is `to`, a name of TensorFlow 2 (`tf.log` -> `tf.math.log`)."""

    to: str


@dataclass(frozen=True)
class Compat:
    """`tf.X` is not there, and what it was is `to`, a `tf.compat.v1.X`."""

    to: str


@dataclass(frozen=True)
class Gone:
    """TensorFlow 2.21 has neither `tf.X` nor `tf.compat.v1.X`."""


@dataclass(frozen=True)
class Private:
    """A name behind the public interface (`tensorflow.python.X`) that is not known to be gone."""


Fate = Union[Same, New, Other, Renamed, Compat, Gone, Private]

_COMPAT = "tf.compat.v1."
# Names that are there and fail when they are used: they need packages that are no longer made.
_DEAD = ("tf.keras.estimator",)
# What `tensorflow` holds beside its interface: packages that programs import by their full names.
_BEHIND = ("tf.python", "tf.core", "tf.tools", "tf.compiler", "tf.dtensor", "tf.security")


@dataclass(frozen=True)
class _Table:
    same: frozenset[str]
    other: frozenset[str]
    renamed: dict[str, str]
    compat: frozenset[str]
    new: frozenset[str]
    modules: frozenset[str]
    keras_2: frozenset[str]
    keywords: dict[str, frozenset[str]]

    def plain(self, name: str) -> bool:
        """Whether there is a `tf.X`."""
        return name in self.same or name in self.new or name in self.other

    def behind_compat(self, name: str) -> bool:
        """Whether there is a `tf.compat.v1.X`, for a name `tf.X`."""
        return name in self.same or name in self.other or name in self.renamed or name in self.compat


@lru_cache(maxsize=1)
def _table() -> _Table:
    data = json.loads(Path(__file__).with_name("fates.json").read_text(encoding="utf-8"))
    sets = {key: frozenset(data[key]) for key in ("same", "other", "compat", "new", "modules", "keras_2")}
    keywords = {name: frozenset(gone) for name, gone in data["keywords"].items()}
    return _Table(renamed=data["renamed"], keywords=keywords, **sets)


def fate(name: str) -> Fate:
    """What became of `tf.X` of TensorFlow 1, in whatever way `name` spells it (`tensorflow.X`, `tf.compat.v1.X`).

    An attribute of a class or a value (`tf.estimator.ModeKeys.TRAIN`, `tf.GraphKeys.LOSSES`) has the fate of what it
    belongs to. A module (`tf.layers`) is `Same` when all in it is, and `Other` when both versions have one.
    """
    name = canonical(name).replace("tf.compat.v2.", "tf.", 1)
    if _is_below(name, *_DEAD):
        return Gone()
    table = _table()
    if name in ("tf", "tf.compat"):
        return Same()
    known, rest = _known(name)
    if known in table.same:
        return Same()
    if known in table.new:
        return New()
    if known in table.renamed:
        return Renamed(table.renamed[known] + rest)
    if known in table.other:
        return Other(_COMPAT + name.removeprefix("tf."))
    if known in table.compat:
        return Compat(_COMPAT + name.removeprefix("tf."))
    return Private() if _is_hidden(name) else Gone()


def exists(name: str) -> bool:
    """Whether TensorFlow 2.21 (with tf_keras) has a name just as it is spelled: `tf.X` or `tf.compat.v1.X`.

    A name behind the public interface is said to be there, unless TensorFlow 1.15 had it and 2.21 has not.
    """
    name = _of_module(name)
    in_compat = name.startswith(_COMPAT)
    table = _table()
    if _is_below(name.replace(_COMPAT, "tf.", 1), *_DEAD):
        return False
    if in_compat and not name.startswith(_COMPAT + "compat."):
        known, _ = _known("tf." + name.removeprefix(_COMPAT))
        return table.behind_compat(known) or _is_hidden(name)
    name = name.replace(_COMPAT + "compat.", "tf.compat.", 1).replace("tf.compat.v2.", "tf.", 1)
    if name in ("tf", "tf.compat", "tf.compat.v1", "tf.compat.v2"):
        return True
    known, _ = _known(name)
    return table.plain(known) or _is_hidden(name)


def is_module(name: str) -> bool:
    """Whether a name is that of a module of the public interface, in either version."""
    return canonical(name) in _table().modules


def needs_keras_2(name: str) -> bool:
    """Whether only Keras 2 (tf_keras, chosen by TF_USE_LEGACY_KERAS=1) has a name as it is spelled."""
    return _of_module(name) in _table().keras_2


def gone_keywords(name: str) -> frozenset[str]:
    """The parameters of `tf.X` in TensorFlow 1 that the `tf.X` of TensorFlow 2.21 does not take."""
    return _table().keywords.get(canonical(name), frozenset())


def for_one(name: str) -> str | None:
    """How TensorFlow 2.21 spells what TensorFlow 1 called `tf.X`: `tf.X` where it is the same, else its compat.v1 name.

    None where it is gone. The names that moved (`Renamed`) are those of TensorFlow 2.
    """
    found = fate(name)
    if isinstance(found, (Other, Renamed, Compat)):
        return found.to
    return None if isinstance(found, Gone) else canonical(name)


def _known(name: str) -> tuple[str, str]:
    """The longest part of a name that the table decides about, and what follows it.

    What a module holds is listed completely; what a class or a value holds is not, and follows it.
    """
    table, known = _table(), name
    while known.count(".") > 0:
        if known in table.renamed or known in table.compat or table.plain(known):
            return (name, "") if known in table.modules and known != name else (known, name[len(known) :])
        known = known.rpartition(".")[0]
    return name, ""


def _is_below(name: str, *modules: str) -> bool:
    return any(name == module or name.startswith(f"{module}.") for module in modules)


@lru_cache(maxsize=1)
def _private() -> tuple[frozenset[str], dict[str, frozenset[str]]]:
    """Modules behind the interface of TensorFlow 1.15 that are gone, and names that are gone from others."""
    data = json.loads(Path(__file__).with_name("private.json").read_text(encoding="utf-8"))
    return frozenset(data["modules"]), {module: frozenset(names) for module, names in data["names"].items()}


def _is_hidden(name: str) -> bool:
    """Whether a name stands behind the interface, and is not known to be gone."""
    plain = name.replace(_COMPAT, "tf.", 1)
    if not _is_below(plain, *_BEHIND):
        return any(part.startswith("_") for part in plain.split(".")[1:])  # `tf.__version__.split` of a hidden one
    modules, names = _private()
    parts = plain.split(".")
    above = [".".join(parts[:end]) for end in range(2, len(parts) + 1)]
    return not any(one in modules for one in above) and not any(
        parts[end] in names.get(one, ()) for end, one in enumerate(above, 2) if end < len(parts)
    )


def _of_module(name: str) -> str:
    """`tf.X` for `tensorflow.X`."""
    return f"tf{name.removeprefix('tensorflow')}" if _is_below(name, "tensorflow") else name


def without_native_form(name: str) -> str:
    """What TensorFlow 2.21 has of a symbol of TensorFlow 1, for a message that tf-migrate has no native code for it."""
    found = fate(name)
    if isinstance(found, Gone):
        return f"`{name}` is not in TensorFlow 2.21, and tf-migrate knows no replacement"
    if isinstance(found, Compat):
        return f"`{name}` exists only as `{found.to}` in TensorFlow 2.21: tf-migrate has no native rule for it"
    if isinstance(found, Other):
        return (
            f"`{name}` of TensorFlow 2.21 differs from TensorFlow 1's, which is `{found.to}`: "
            "tf-migrate has no native rule for it"
        )
    if isinstance(found, Renamed):
        return f"`{name}` is `{found.to}` in TensorFlow 2.21, but tf-migrate has no native rule for it"
    return f"`{name}` exists in TensorFlow 2.21, but tf-migrate has no native rule for it"


def symbol(name: str) -> str:
    """The part of a name that the answer is about, without attributes of classes and values: as `tf.X`."""
    name = canonical(name)
    known, _ = _known(name)
    return known
