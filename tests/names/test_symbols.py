"""The symbol table is what the installed TensorFlow says."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from migrator.names import symbols
from migrator.names.spelling import canonical
from migrator.rules.catalogue import all_rules
from tests import warm

ROOT = Path(__file__).resolve().parents[2]

CHECK = """
import json, sys
import tensorflow as tf

missing = []
for name in json.load(sys.stdin):
    value = tf
    try:
        for part in name.split(".")[1:]:
            value = getattr(value, part)
    except AttributeError:
        missing.append(name)
print(json.dumps(missing))
"""


def test_lookups() -> None:
    assert symbols.home("tf.nn.relu") == symbols.Home("tf.nn.relu")
    assert symbols.home("tf.log") == symbols.Home("tf.math.log")
    assert symbols.home("tf.train.Server") == symbols.Home("tf.distribute.Server")
    assert symbols.home("tf.keras.losses.Reduction") == symbols.Home("tf.keras.losses.Reduction")
    assert symbols.home("tf.placeholder") is None
    assert symbols.home("tf.layers.dense") is None
    assert symbols.is_namespace("tf.nn") and not symbols.is_namespace("tf.placeholder")


def test_private_names_of_keras() -> None:
    same = {
        "layers.Dense": "layers.Dense",
        "models.Model": "Model",
        "datasets.mnist.load_data": "datasets.mnist.load_data",
        "preprocessing.sequence.pad_sequences": "preprocessing.sequence.pad_sequences",
        "Model": "Model",
        "layers.convolutional.Conv2D": "layers.Conv2D",
        "engine.training.Model": "Model",
    }
    for private, public in same.items():
        assert canonical(f"tensorflow.python.keras.{private}") == f"tf.keras.{public}"
    # Other classes than those of tf.keras (compared in 1.15.5), or modules that have no public name.
    for other in ("optimizers.Adam", "callbacks.TensorBoard", "layers.convolutional", "engine.training.no_such_name"):
        assert canonical(f"tensorflow.python.keras.{other}") == f"tf.python.keras.{other}"


def environment() -> dict[str, str]:
    return {**os.environ, "TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}


@pytest.mark.tensorflow
def test_table_is_up_to_date(tmp_path: Path) -> None:
    from migrator.harness.environments import migrated_python

    made = tmp_path / "symbols.json"
    command = [str(migrated_python()), str(ROOT / "tools" / "make_symbol_table.py"), str(made)]
    subprocess.run(command, check=True, timeout=120, env=environment(), capture_output=True)
    new, committed = json.loads(made.read_text()), json.loads((ROOT / "migrator/names/symbols.json").read_text())
    assert {key: new[key] for key in ("same", "renamed", "new")} == {
        key: committed[key] for key in ("same", "renamed", "new")
    }


@pytest.mark.tensorflow
def test_every_target_exists() -> None:
    """Each name that the table or a rule's example sends a symbol to is there in TensorFlow 2.21 with tf_keras."""
    from migrator.harness.environments import migrated_python

    names = {symbols.home(name).name for name in symbols._CHECKED}  # type: ignore[union-attr]
    for rule in all_rules():
        for example in rule.examples:
            head = (example.after or "").partition("(")[0]
            if head.startswith("tf."):
                names.add(head)
    run = warm.run(migrated_python(), "-c", CHECK, stdin=json.dumps(sorted(names)))
    assert json.loads(run.stdout.splitlines()[-1]) == []
