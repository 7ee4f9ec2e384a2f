"""Private names that are read as public ones mean the same objects in a true TensorFlow 1.15.5."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from migrator.names import private
from migrator.names.private import PUBLIC

PYTHON = os.environ.get("TF_MIGRATE_TENSORFLOW1_PYTHON", "")
pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(not PYTHON, reason="no TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set"),
]
COMPARE = """
import functools, importlib, json, sys
import tensorflow as tf

def found(name):
    parts = name.split(".")[1:]
    if parts[0] != "python":
        return functools.reduce(getattr, parts, tf)
    for length in range(len(parts) - 1, 0, -1):
        try:
            module = importlib.import_module(".".join(["tensorflow"] + parts[:length]))
        except ImportError:
            continue
        return functools.reduce(getattr, parts[length:], module)

def known(name):
    try:
        return found(name)
    except AttributeError:
        return None

names = json.load(sys.stdin)
names = {private: public for private, public in names.items() if known(public) is not None}
print(json.dumps([[private, public] for private, public in names.items() if known(private) is not found(public)]))
"""


def test_they_are_the_same_objects() -> None:
    table = json.loads((Path(private.__file__).with_name("symbols.json")).read_text())
    names = [name.removeprefix("tf.keras.") for name in (*table["same"], *table["renamed"])]
    inner = [f"tf.python.keras.{name}" for name in names if not name.startswith("tf.")]
    keras = {name: public for name in inner if (public := private.public_keras(name)) is not None}
    assert len(keras) > 300
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "2"}
    done = subprocess.run(
        [PYTHON, "-c", COMPARE],
        input=json.dumps({**PUBLIC, **keras}),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == []
