"""A strategy that names devices which are not there: told at once; TensorFlow would wait for them for ever."""

from __future__ import annotations

import pytest

from migrator.harness.environments import migrated_python
from tests import warm
from tests.bridge.sides import LIBRARY

pytestmark = pytest.mark.tensorflow

PROGRAM = """
import os, sys
os.environ.update(TF_USE_LEGACY_KERAS="1", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
sys.path.insert(0, sys.argv[1])
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from library.strategies import modern_strategy
if sys.argv[2:]:
    from library.config import RunConfig
    for _ in range(2):
        RunConfig(session_config=tf.ConfigProto(device_count={"CPU": 3}))
    print(modern_strategy(tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:2"])).extended.worker_devices)
    RunConfig(session_config=tf.ConfigProto(device_count={"CPU": 4}))
    print(len(tf2.config.list_logical_devices()))
    sys.exit()
for make in (tf.distribute.MirroredStrategy, tf2.distribute.MirroredStrategy):
    assert modern_strategy(make(["/cpu:0"])) is not None
    try:
        modern_strategy(make(["/cpu:0", "/cpu:1"]))
    except ValueError as error:
        print(error)
"""


def test_a_session_config_makes_cpus() -> None:
    """As many as the session would have had; what TensorFlow has begun with stays."""
    first, second = output("cpus")
    assert "CPU:0" in first and "CPU:2" in first and second == "3"


def test_a_device_that_is_not_there_is_named() -> None:
    said = "The strategy names /cpu:1, which TensorFlow does not have here. It has /cpu:0. "
    assert [line.startswith(said) for line in output()] == [True, True]


def output(*args: str) -> list[str]:
    python = migrated_python()
    if python is None:
        pytest.skip("no TensorFlow environments: make environments")
    done = warm.run(python, "-c", PROGRAM, str(LIBRARY), *args)
    assert not done.returncode, done.stderr[-3000:]
    return done.stdout.splitlines()
