"""One answer for every public name of TensorFlow 1.15: what stands for it where TensorFlow 2.21 runs the program."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path

import migrator.names
from migrator.bridge.homes import Kind, home_of
from migrator.names.advice import advice
from migrator.names.fate import Renamed, Same, fate


class Answer(Enum):
    """What became of a name; the value is how pages call it."""

    SAME = "the same"
    RENAMED = "another name"
    COMPAT = "tf.compat.v1"
    SUPPORT = "the support file"
    LIBRARY = "another package"
    GONE = "gone"


@dataclass(frozen=True)
class Row:
    """A name, what became of it, and `now`: how a program spells it, or what it does instead."""

    name: str
    answer: Answer
    now: str


def answer(name: str) -> Row:
    """The answer for a canonical name, `tf.X`. Every name has one."""
    found, home = fate(name), home_of(name)
    if isinstance(found, Same) and not name.startswith("tf.contrib."):
        return Row(name, Answer.SAME, name)
    if isinstance(found, Renamed):
        return Row(name, Answer.RENAMED, found.to)
    rest = "".join(f".{part}" for part in name.split(".")[home.parts :])
    if home.kind is Kind.SUPPORT:
        return Row(name, Answer.SUPPORT, ".".join(part for part in ("keras_estimator", home.name) if part) + rest)
    if home.kind is Kind.SLIM:
        return Row(name, Answer.LIBRARY, ".".join(part for part in ("tf_slim", home.name) if part) + rest)
    if home.kind is Kind.PRIVATE:
        return Row(name, Answer.RENAMED, f"tensorflow{home.name.removeprefix('tf')}")
    if home.kind is Kind.COMPAT:
        spelled = home.name + rest
        moved = fate(spelled)
        if spelled != name and isinstance(moved, Same):
            return Row(name, Answer.RENAMED, spelled)
        if spelled.startswith("tf.compat.v2."):
            return Row(name, Answer.RENAMED, spelled.replace("tf.compat.v2.", "tf."))
        if isinstance(moved, Renamed):
            return Row(name, Answer.RENAMED, moved.to)
        return Row(name, Answer.COMPAT, f"tf.compat.v1{spelled.removeprefix('tf')}")
    told = advice(name)
    if told.package:
        return Row(name, Answer.LIBRARY, f"{told.text} ({told.package})")
    return Row(name, Answer.GONE, told.text)


@lru_cache(maxsize=1)
def public_names() -> Mapping[str, tuple[str, ...]]:
    """The public names of TensorFlow 1.15.5 by module; made by tools/make_public_names.py."""
    path = Path(migrator.names.__file__).with_name("public.json")
    return {module: tuple(names) for module, names in json.loads(path.read_text(encoding="utf-8")).items()}


def is_public(name: str) -> bool:
    """Whether TensorFlow 1.15 had a public name `tf.X`, a module or in one, or it lies in a class of it."""
    parts = name.split(".")
    names = public_names()
    if name in names:
        return True
    end = next((end for end in range(len(parts) - 1, 0, -1) if ".".join(parts[:end]) in names), 0)
    return end > 0 and parts[end] in names[".".join(parts[:end])]


def rows() -> Iterator[Row]:
    """The answers for all public names."""
    for module, names in public_names().items():
        for name in names:
            yield answer(f"{module}.{name}")
