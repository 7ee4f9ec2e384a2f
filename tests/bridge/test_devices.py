"""A strategy that names devices which are not there: told at once; TensorFlow would wait for them for ever."""

from __future__ import annotations

import subprocess

import pytest

from migrator.harness.environments import migrated_python
from tests.bridge.sides import LIBRARY

pytestmark = pytest.mark.tensorflow

PROGRAM = """
import os, sys
os.environ.update(TF_USE_LEGACY_KERAS="1", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
sys.path.insert(0, sys.argv[1])
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from library.strategies import modern_strategy
for make in (tf.distribute.MirroredStrategy, tf2.distribute.MirroredStrategy):
    assert modern_strategy(make(["/cpu:0"])) is not None
    try:
        modern_strategy(make(["/cpu:0", "/cpu:1"]))
    except ValueError as error:
        print(error)
"""


def test_a_device_that_is_not_there_is_named() -> None:
    python = migrated_python()
    if python is None:
        pytest.skip("no TensorFlow environments: make environments")
    done = subprocess.run([python, "-c", PROGRAM, LIBRARY], capture_output=True, text=True, timeout=120, check=False)
    assert not done.returncode, done.stderr[-3000:]
    said = "The strategy names /cpu:1, which TensorFlow does not have here. It has /cpu:0. "
    assert [line.startswith(said) for line in done.stdout.splitlines()] == [True, True]
