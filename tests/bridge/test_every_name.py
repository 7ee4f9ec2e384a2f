"""Each name that has a home comes out, however it is spelled, and none is left that TensorFlow 2.21 lacks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import migrator.bridge
from migrator.bridge.codemod import Support, bridge_file
from migrator.bridge.homes import Kind, home_of
from migrator.bridge.table import MOVED, SUPPLIED
from migrator.names.aliases import OF_CONTRIB, public_names
from migrator.names.spelling import canonical
from migrator.names.standing import standing

MOVED_FILE = Path(migrator.bridge.__file__).with_name("moved.json")


def _from(name: str) -> str:
    module, _, last = name.rpartition(".")
    return f"from {module} import {last} as spelled\nx = spelled\n"


def _of_module(name: str) -> str:
    module, _, last = name.rpartition(".")
    return f"import {module} as module\nx = module.{last}\n"


SPELLINGS: dict[str, Callable[[str], str]] = {
    "dotted": lambda name: f"import tensorflow as tf\nx = {name.replace('tensorflow', 'tf', 1)}\n",
    "plain import": lambda name: f"import tensorflow\nx = {name}\n",
    "from": _from,
    "module": _of_module,
}


def names() -> list[str]:
    """The names with rows of their own that have a home in a public module."""
    behind = {f"{module}.{name}" for module, names in public_names().items() for name in names}
    found = {*OF_CONTRIB, *behind, *SUPPLIED, *MOVED, *json.loads(MOVED_FILE.read_text())}
    return sorted(name for name in found if home_of(canonical(name)).kind not in (Kind.NONE, Kind.PRIVATE))


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_nothing_is_left(spelling: str) -> None:
    left = {}
    for name in names():
        text = SPELLINGS[spelling](name.replace("tf.", "tensorflow.", 1))
        bridged = bridge_file(text, Support("keras_estimator"))
        rest = [one.name for one in standing(bridged.text)]
        if bridged.blocking or rest:
            left[name] = (bridged.text, rest)
    assert not left
