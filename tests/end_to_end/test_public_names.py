"""Private names that are read as public ones mean the same objects in a true TensorFlow 1.15.5."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from migrator.names.aliases import OF_CONTRIB, public_names

PYTHON = os.environ.get("TF_MIGRATE_TENSORFLOW1_PYTHON", "")
pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(not PYTHON, reason="no TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set"),
]
COMPARE = """
import functools, importlib, json, sys
import tensorflow as tf

def found(name):
    root, *parts = name.split(".")
    if root == "tf" and parts[0] != "python" and ".python." not in name:
        return functools.reduce(getattr, parts, tf)
    for length in range(len(parts) - 1, 0, -1):
        try:
            module = importlib.import_module(".".join(["tensorflow" if root == "tf" else root] + parts[:length]))
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
def differ(one, other):
    if one is not other and isinstance(one, type) and isinstance(other, type) and issubclass(other, one):
        # A public class that is the private one with other defaults.
        more = [name for name in vars(other) if not name.startswith("_tf_api")]
        return not set(more) <= {"__init__", "__doc__", "__module__"}
    return one is not other and not (isinstance(one, (int, float, str, bytes)) and one == other)

print(json.dumps([[private, public] for private, public in names.items() if differ(known(private), found(public))]))
"""


def test_they_are_the_same_objects() -> None:
    behind = {f"{module}.{name}": public for module, names in public_names().items() for name, public in names.items()}
    assert len(behind) > 3500
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "2"}
    done = subprocess.run(
        [PYTHON, "-c", COMPARE],
        input=json.dumps({**OF_CONTRIB, **behind}),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == []
