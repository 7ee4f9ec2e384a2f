"""What XLA says, on TensorFlow 2.21, of the steps that a stand-in for a TPU ran."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from migrator.harness import environments

pytestmark = pytest.mark.tensorflow

INSIDE = Path(__file__).parents[2] / "migrator" / "harness" / "inside"
PROGRAM = """
import json, os, sys, types
import numpy as np
import tensorflow as tf

import tpu_stand_in

here = os.getcwd()
folder = types.SimpleNamespace(file=lambda *names: os.path.join(here, *names), write_json=lambda *args: None)
tpu_stand_in.install({"tpu_cores": 1, "evaluate": True}, folder, "migrated")
strategy = tf.distribute.TPUStrategy(tf.distribute.cluster_resolver.TPUClusterResolver("any"))
table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1, 2], [3.0, 4.0]), 0.0)


def train(change, drop_remainder=True):
    with strategy.scope():
        features = tf.keras.Input((4,))
        hidden = tf.keras.layers.Dense(4)(features)
        model = tf.keras.Model(features, tf.keras.layers.Dense(1)(change(hidden)))
        model.compile("adam", "mse")
    rows = np.ones((12, 4), np.float32), np.ones((12, 1), np.float32)
    model.fit(tf.data.Dataset.from_tensor_slices(rows).batch(8, drop_remainder=drop_remainder), verbose=0)


def masked(x):
    return x + tf.reduce_sum(tf.boolean_mask(x, x > 0)) + tf.cast(tf.shape(tf.where(x > 0))[0], tf.float32)


def printed(x):
    tf.print("x", tf.reduce_sum(x))
    return x


def lengths(x):
    return x + tf.cast(tf.strings.length(tf.strings.as_string(x)), tf.float32)  # line of strings


def found(x):
    return x + table.lookup(tf.cast(x, tf.int32))  # line of the table


@tf.function
def doubled(x):
    while tf.reduce_sum(tf.abs(x)) < 10.0:  # line of the loop
        x = x * 2.0 + 1.0
    return x


layer = lambda function: tf.keras.layers.Lambda(function)
train(lambda x: x, drop_remainder=False)
train(layer(masked))
train(layer(printed))
train(lengths)
train(layer(found))
train(layer(doubled))
"""


def line(words: str) -> int:
    return next(n for n, text in enumerate(PROGRAM.splitlines(), 1) if text.endswith(f"# line of {words}"))


def compiled(folder: Path) -> list[dict[str, Any]]:
    """The answers for the steps of the program, in their order."""
    (folder / "program.py").write_text(PROGRAM)
    python = str(environments.migrated_python())
    told = {
        "PYTHONPATH": str(INSIDE),
        "TF_USE_LEGACY_KERAS": "1",
        "CUDA_VISIBLE_DEVICES": "-1",
        "PATH": "/usr/bin:/bin",
    }
    subprocess.run([python, "program.py"], cwd=folder, env=told, check=True, capture_output=True, timeout=170)
    job = {
        "graphs": [str(path.with_suffix("")) for path in sorted((folder / "cores").glob("*.pb"))],
        "components": [["float32", [8, 4]], ["float32", [8, 1]]],
        "cores": 1,
        "result": str(folder / "result.json"),
    }
    (folder / "job.json").write_text(json.dumps(job))
    script = [python, str(INSIDE / "compile_steps.py"), "job.json"]
    subprocess.run(script, cwd=folder, env=told, check=True, capture_output=True, timeout=170)
    found: list[dict[str, Any]] = json.loads((folder / "result.json").read_text())
    return found


def test_what_a_tpu_does_not_compile_is_found_and_nothing_else(tmp_path: Path) -> None:
    plain, masked, printed, strings, table, loop = compiled(tmp_path)
    for one in (plain, masked, printed):
        assert one["trains"] and one["refused"] is None and one["open"] is None and one["host"] == []
        assert one["operations"] > 100
    assert [one["sizes"] for one in (plain, masked)] == [False, True]
    file = str(tmp_path / "program.py")
    words = [[name, "strings", [file, line("strings")]] for name in ("AsString", "StringLength")]
    assert sorted(strings["host"]) == words and strings["refused"] is None and not strings["soft_placement"]
    assert table["host"] == [["LookupTableFindV2", "tables", [file, line("the table")]]]
    _, said, place = loop["refused"]
    assert "fixed tensor list size" in said and place == [file, line("the loop")]
