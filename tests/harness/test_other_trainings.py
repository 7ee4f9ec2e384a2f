"""A script that trains more than one model: each run records one of them, the one that is asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from migrator.harness.protocol import name_map
from migrator.harness.recording import Recording
from tests.end_to_end.proving import Servers, record
from tests.rules.programs import run_project

pytestmark = pytest.mark.tensorflow

PROGRAM = """
import numpy as np
import tensorflow as tf
from tensorflow import feature_column as fc

X = np.random.RandomState(1).rand(40, 2).astype(np.float32)
Y = X.sum(1)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"a": X[:, 0], "b": X[:, 1]}, Y)).batch(8)


def eval_input_fn():
    return tf.data.Dataset.from_tensor_slices(({"a": X[:, 0], "b": X[:, 1]}, 2 * Y)).batch(8)


narrow = tf.estimator.LinearRegressor([fc.numeric_column("a")])
narrow.train(input_fn)
wide = tf.estimator.LinearRegressor([fc.numeric_column("a"), fc.numeric_column("b")])
wide.train(input_fn)
wide.evaluate(eval_input_fn)
print(narrow.evaluate(input_fn))
"""


@pytest.mark.parametrize(("training", "weights"), [(0, 2), (1, 3)])
def test_one_of_the_models_is_recorded(servers: Servers, tmp_path: Path, training: int, weights: int) -> None:
    new, _ = run_project({"train.py": PROGRAM})["train.py"]
    recordings: list[Recording] = []
    for server, kind, text in zip(servers, ("original", "migrated"), (PROGRAM, new), strict=True):
        script = tmp_path / f"{kind}.py"
        script.write_text(text)
        recordings.append(record(server, kind, script, tmp_path / kind, None, training=training))
    original, migrated = recordings
    for one in recordings:
        assert (len(one.steps), len(one.evaluations), one.other_trainings) == (5, 1, 1)
        assert one.training == training
        assert sum(int(np.prod(variable.shape)) for variable in one.variables) == weights
    assert name_map.build(original.variables, migrated.variables).complete
    assert original.evaluations[0].results["loss"] == pytest.approx(migrated.evaluations[0].results["loss"], rel=1e-5)
