"""Programs that use packages where these are installed, which they are not here, run before and after."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.proving import Servers, prove_project
from tests.rules.test_horovod import OPTIMIZATION, PROGRAM

pytestmark = pytest.mark.tensorflow

DATA = "tf.data.Dataset.from_tensor_slices(([[0.5], [2.0], [-1.0]], [[2.0], [1.0], [0.5]])).repeat().batch(2)"

NETWORK = """\
        activation = tf.nn.relu
        try:
            import intel_extension_for_tensorflow as itex
            activation = itex.ops.gelu
        except ImportError:
            activation = tf.nn.softplus
        features = tf.layers.dense(features, 3, activation=activation)
        logits ="""


def test_what_runs_without_horovod(servers: Servers, tmp_path: Path) -> None:
    program = PROGRAM.replace("tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).repeat().batch(1)", DATA)
    assert DATA in program
    program = program.replace("several=workers), folder)", "several=workers))")
    assert "), folder" not in program
    program = program.replace("        logits =", NETWORK)
    assert NETWORK in program
    new = prove_project({"train.py": program, "optimization.py": OPTIMIZATION}, "train.py", servers, tmp_path)
    assert "hvd" not in new["train.py"] + new["optimization.py"] and "itex" not in new["train.py"]
