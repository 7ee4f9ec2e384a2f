"""What became of each symbol: known answers, and the table against the real TensorFlow 2.21."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from migrator.names import fate as fates
from migrator.names.compat import in_compat
from migrator.names.fate import Compat, Fate, Gone, New, Other, Private, Renamed, Same, exists, fate, for_one
from migrator.names.symbols import home

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "migrator" / "names" / "fates.json"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tf.matmul", Same()),
        ("tf.nn.relu", Same()),
        ("tf.map_fn", Other("tf.compat.v1.map_fn")),
        ("tf.keras.layers.BatchNormalization", Other("tf.compat.v1.keras.layers.BatchNormalization")),
        ("tf.keras.callbacks.TensorBoard", Other("tf.compat.v1.keras.callbacks.TensorBoard")),
        ("tf.keras.layers.Dense", Same()),
        ("tf.nn.dropout", Other("tf.compat.v1.nn.dropout")),
        ("tf.reduce_sum", Other("tf.compat.v1.reduce_sum")),
        ("tf.losses", Other("tf.compat.v1.losses")),
        ("tf.losses.mean_squared_error", Other("tf.compat.v1.losses.mean_squared_error")),
        ("tf.losses.sparse_softmax_cross_entropy", Compat("tf.compat.v1.losses.sparse_softmax_cross_entropy")),
        ("tf.log", Renamed("tf.math.log")),
        ("tf.train.Server", Renamed("tf.distribute.Server")),
        ("tf.get_variable", Compat("tf.compat.v1.get_variable")),
        ("tf.Session", Compat("tf.compat.v1.Session")),
        ("tf.layers", Compat("tf.compat.v1.layers")),
        ("tf.layers.dense", Compat("tf.compat.v1.layers.dense")),
        ("tf.app.flags.DEFINE_string", Compat("tf.compat.v1.app.flags.DEFINE_string")),
        ("tf.GraphKeys.LOSSES", Compat("tf.compat.v1.GraphKeys.LOSSES")),
        ("tf.data.Dataset.from_tensors", Other("tf.compat.v1.data.Dataset.from_tensors")),
        ("tf.train.Checkpoint.restore", Other("tf.compat.v1.train.Checkpoint.restore")),
        ("tf.autodiff.GradientTape", New()),
        ("tf.keras.optimizers.Lion", New()),  # of Keras 3 alone
        ("tf.estimator", Gone()),
        ("tf.estimator.ModeKeys.TRAIN", Gone()),
        ("tf.contrib.layers.flatten", Gone()),
        ("tf.keras.estimator.model_to_estimator", Gone()),  # is there, and fails
        ("tf.layers.no_such_layer", Gone()),
        ("tf.no_such_name", Gone()),
        ("tf.python.no.such.place", Private()),
        ("tf.python.estimator.model_fn.ModeKeys", Gone()),
        ("tf.__version__", Private()),
    ],
)
def test_fates(name: str, expected: Fate) -> None:
    below = name.removeprefix("tf.")
    for spelled in (name, f"tensorflow.{below}", f"tf.compat.v1.{below}", f"tensorflow.compat.v1.{below}"):
        assert fate(spelled) == expected, spelled


def test_how_what_tensorflow_1_called_so_is_spelled() -> None:
    names = ("tf.matmul", "tf.log", "tensorflow.nn.dropout", "tf.compat.v1.Session", "tf.estimator.Estimator")
    spelled = ["tf.matmul", "tf.math.log", "tf.compat.v1.nn.dropout", "tf.compat.v1.Session", None]
    assert [for_one(name) for name in names] == spelled


def test_names_as_programs_spell_them() -> None:
    there = ("tf.nn.dropout", "tf.compat.v1.nn.dropout", "tf.compat.v1.log", "tf.compat.v1.layers.dense")
    there += ("tf.compat.as_text", "tf.compat.v2.math.log", "tensorflow.keras.layers.Dense", "tf.GradientTape")
    there += ("tensorflow.python.framework.ops", "tf.compat.v1.app.run", "tf.compat.v1.logging.INFO", "tf.compat.v1")
    assert [name for name in there if not exists(name)] == []
    absent = ("tf.log", "tf.layers", "tf.layers.dense", "tf.compat.v1.estimator", "tf.contrib", "tf.logging.info")
    absent += (
        "tf.compat.v1.autodiff.GradientTape",
        "tf.app",
        "tf.compat.v2.log",
        "tf.keras.estimator.model_to_estimator",
    )
    assert [name for name in absent if exists(name)] == []


def test_what_keras_2_alone_has() -> None:
    names = ("tf.compat.v1.layers.dense", "tf.keras.layers.DenseFeatures", "tf.compat.v1.nn.rnn_cell.LSTMCell")
    assert all(map(fates.needs_keras_2, names))
    assert not any(map(fates.needs_keras_2, ("tf.keras.layers.Dense", "tf.compat.v1.get_variable")))


def test_arguments_that_are_gone() -> None:
    assert fates.gone_keywords("tf.reduce_sum") == {"keep_dims", "reduction_indices"}
    assert fates.gone_keywords("tf.matmul") == frozenset()


def test_no_name_that_is_there_is_said_to_be_gone() -> None:
    """What the messages say of a name is what the table has."""
    data = json.loads(TABLE.read_text(encoding="utf-8"))
    names = {name for kind in ("same", "other", "renamed", "compat") for name in data[kind]} - set(data["modules"])
    names -= {"tf.keras.estimator.model_to_estimator"}
    assert [name for name in names if "not in TensorFlow" in fates.without_native_form(name)] == []
    assert [name for name in names if home(name) is None and not in_compat(name)] == []
    for name in ("tf.contrib.learn", "tf.estimator.Estimator", "tf.no_such_name"):
        assert "is not in TensorFlow 2.21" in fates.without_native_form(name)


def test_every_name_has_one_fate() -> None:
    data = json.loads(TABLE.read_text(encoding="utf-8"))
    kinds = [set(data[kind]) for kind in ("same", "other", "renamed", "compat", "new")]
    assert sum(map(len, kinds)) == len(set().union(*kinds)) > 5000


def test_it_needs_no_libcst() -> None:
    script = "import sys, migrator.names.fate as f; f.fate('tf.log'); assert 'libcst' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT)


@pytest.mark.tensorflow
def test_the_table_is_what_tensorflow_says(tmp_path: Path) -> None:
    from migrator.harness.environments import migrated_python

    made = tmp_path / "fates.json"
    environment = {key: value for key, value in os.environ.items() if key != "TF_USE_LEGACY_KERAS"}
    command = [str(migrated_python()), str(ROOT / "tools" / "make_fate_table.py"), str(made)]
    subprocess.run(command, check=True, timeout=240, env=environment, capture_output=True)
    assert json.loads(made.read_text(encoding="utf-8")) == json.loads(TABLE.read_text(encoding="utf-8"))


OF_PRIVATE = """
import importlib, json, sys
found = []
table = json.load(sys.stdin)
for name in table["modules"]:
    try:
        importlib.import_module("tensorflow" + name[2:])
        found.append(name)
    except ModuleNotFoundError:
        pass
for module, names in table["names"].items():
    values = vars(importlib.import_module("tensorflow" + module[2:]))
    found += [f"{module}.{name}" for name in names if name in values]
print(json.dumps(found))
"""


@pytest.mark.tensorflow
def test_what_is_gone_behind_the_interface_is_not_there() -> None:
    from migrator.harness.environments import migrated_python

    run = subprocess.run(
        [str(migrated_python()), "-c", OF_PRIVATE],
        input=TABLE.with_name("private.json").read_text(encoding="utf-8"),
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
        env={**os.environ, "TF_USE_LEGACY_KERAS": "1"},
    )
    assert json.loads(run.stdout.splitlines()[-1]) == []
