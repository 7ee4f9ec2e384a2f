"""One program on both sides: on TensorFlow 1.15.5 (else on the Estimator of 2.15.1), and on the bridge's library.

The program fills `found`, a dictionary of plain values, from `tf` (compat.v1) and `est`: there tf.estimator, here the
library.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from migrator.harness.environments import migrated_python, original_python
from tests import warm

TENSORFLOW1 = os.environ.get("TF_MIGRATE_TENSORFLOW1_PYTHON", "")
LIBRARY = Path(__file__).parents[2] / "migrator" / "bridge"

HEAD = """\
import importlib.util, json, os, sys, warnings
warnings.simplefilter("ignore")
OLD = sys.argv[1] == "old"
if not OLD and importlib.util.find_spec("tf_keras"):
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow.compat.v1 as tf
tf.logging.set_verbosity(tf.logging.ERROR)
FOLDER = sys.argv[2]
found = {}


def plain(value):
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode()
    return plain(value.tolist()) if hasattr(value, "tolist") else value


"""
OLD = """\
if OLD:
    est = tf.estimator
"""
# TensorFlow 1's reference variables may be read before or after what is written to them in the same step, so that
# 1.15.5 differs from itself. It has resource variables for that, as 2.15.1 has.
RESOURCES = """\
    tf.enable_resource_variables()
"""
NEW = """\
else:
    import importlib, pkgutil, types
    sys.path.insert(0, {library!r})
    import library
    est = types.SimpleNamespace()
    for module in {modules!r}:
        vars(est).update(vars(importlib.import_module("library." + module)))
"""
FOOT = """
with open(os.path.join(FOLDER, sys.argv[1] + ".json"), "w") as file:
    json.dump(plain(found), file)
"""


def run_both(
    program: str, folder: Path, modules: tuple[str, ...], setup: str = "", new: Path | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `program` finds on the old side, whose variables are resources, then on the new one.

    `setup` is run on the old side, before it.
    """
    script = _script(program, folder, modules, RESOURCES + setup)
    old_python, new_python = Path(TENSORFLOW1) if TENSORFLOW1 else original_python(), new or migrated_python()
    if old_python is None or new_python is None:
        pytest.skip("no TensorFlow environments: make environments")
    return _run(script, "old", old_python), _run(script, "new", new_python)


def run_new(program: str, folder: Path, modules: tuple[str, ...]) -> dict[str, Any]:
    """What `program` finds on the new side alone."""
    python = migrated_python()
    if python is None:
        pytest.skip("no TensorFlow environments: make environments")
    return _run(_script(program, folder, modules), "new", python)


def run_old(program: str, folder: Path, modules: tuple[str, ...], setup: str) -> dict[str, Any]:
    """What `program` finds on TensorFlow 1.15.5 alone."""
    return _run(_script(program, folder, modules, setup), "old", Path(TENSORFLOW1))


def _script(program: str, folder: Path, modules: tuple[str, ...], setup: str = "") -> Path:
    script = folder / "program.py"
    script.write_text(
        HEAD + OLD + (setup or "    pass\n") + NEW.format(library=str(LIBRARY), modules=modules) + program + FOOT
    )
    return script


def _run(script: Path, side: str, python: Path) -> dict[str, Any]:
    folder = script.parent
    done = warm.run(python, str(script), side, str(folder), cwd=folder)
    assert not done.returncode, f"{side}: {done.stderr[-6000:]}"
    found: dict[str, Any] = json.loads((folder / f"{side}.json").read_text())
    return found
