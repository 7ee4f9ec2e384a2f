"""Computes every row of the catalogue in TensorFlow 1 and in Keras, and prints how far they are apart.

usage: python benchmarks/catalogue.py [--write]

A row is a call of TensorFlow 1 and its form on tf_keras and on Keras 3 (migrator/catalogue/rows.py). Layers get equal
weights and give their output and its gradient; optimizers make 30 steps, rates are asked every 7th step up to 147,
metrics are updated twice, of random initializers the mean, the deviation and two quantiles are compared, of shuffled
data all elements. The difference is |old - new| / max(1, |old|), the largest of a row. TensorFlow 1 is 1.15.5 where
TF_MIGRATE_TENSORFLOW1_PYTHON names it (tf.contrib is only there), and compat.v1 of 2.15 otherwise. `--write` keeps the
differences in migrator/catalogue/measured.json, from which `make docs` and `tf-migrate rules SYMBOL` tell them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import libcst as cst

from migrator.catalogue.rows import Form, Row, row, symbols
from migrator.harness.environments import migrated_python, original_python
from migrator.names.imports import read_imports
from migrator.rules.metrics import read_metric

INSIDE = Path(__file__).parent / "catalogue_inside.py"
MEASURED = Path(__file__).resolve().parent.parent / "migrator" / "catalogue" / "measured.json"
Answers = Mapping[str, "list[list[float]] | str"]
Item = dict[str, object]
# What draws random numbers, looks up in weights or needs TPUs, and two that no version at hand has.
_ELSEWHERE = (
    "tf.nn.dropout",
    "tf.nn.embedding_lookup",
    "tf.tpu.",
    "tf.contrib.tpu.",
    "tf.contrib.data.map_and_batch_with_legacy_function",
    "tf.data.experimental.batch_and_drop_remainder",
)
# Feature columns are no numbers; those of tf.contrib.layers that are written otherwise.
_COLUMNS = ("_column", "_with_hash_bucket", "_with_keys", "_with_integerized_feature")
_KINDS = (
    ("tf.metrics.", "metric"),
    ("tf.contrib.data.", "dataset"),
    ("tf.data.", "dataset"),
    ("tf.losses.", "value"),
    ("tf.nn.", "value"),
    ("tf.where", "value"),
    ("tf.div", "value"),
    ("tf.string_split", "strings"),
    ("tf.python_io.", "records"),
    ("tf.io.", "records"),
    ("tf.layers.", "layer"),
    ("tf.contrib.layers.", "layer"),
    ("tf.contrib.slim.", "layer"),
)


def kind_of(symbol: str) -> str:
    """How a row is computed; empty where it is not."""
    last = symbol.rpartition(".")[2]
    if symbol.startswith(_ELSEWHERE) or (last.endswith(_COLUMNS) and symbol.startswith("tf.contrib.layers.")):
        return ""
    if "initializer" in last or ".initializers." in symbol:
        return "initializer"
    if last.endswith("regularizer"):
        return "regularizer"
    if last.endswith("Optimizer") or ".optimizers." in symbol:
        return "optimizer"
    if symbol.startswith("tf.train.") and ("decay" in last or "piecewise" in last):
        return "schedule"
    return next((kind for start, kind in _KINDS if symbol.startswith(start)), "")


def item(given: Row, text: str, classes: Sequence[str] = ()) -> Item:
    """What one side has to compute."""
    update = ""
    if given.symbol.startswith("tf.metrics."):
        module = cst.parse_module(f"import tensorflow as tf\n{given.call}\n")
        line = module.body[1]
        assert isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[0], cst.Expr)
        assert isinstance(line.body[0].value, cst.Call)
        update = read_metric(line.body[0].value, read_imports(module), module.code_for_node).update
    kind = kind_of(given.symbol)
    return {
        "symbol": given.symbol,
        "kind": kind,
        "text": text,
        "call": given.call,
        "classes": list(classes),
        "update": update,
    }


def computed() -> list[Row]:
    """The rows that this module computes: those that are carried over, and are numbers."""
    rows = [row(symbol) for symbol in symbols() if kind_of(symbol)]
    return [one for one in rows if one.keras2.text is not None]


def in_tensorflow1(rows: Sequence[Row], python: Path) -> Answers:
    """The numbers of the TensorFlow 1 calls."""
    return _run(python, [item(one, one.call) for one in rows], "tensorflow1", {})


def in_keras(rows: Sequence[Row], python: Path, number: int, more: Sequence[Item] = ()) -> Answers:
    """The numbers of the Keras forms of a generation, and of what is given `more`."""
    items: list[Item] = list(more)
    for one in rows:
        form: Form = one.keras3 if number == 3 else one.keras2
        if form.text is not None:
            items.append(item(one, form.text, list(form.classes.values())))
    return _run(python, items, "keras", {"TF_USE_LEGACY_KERAS": "1"} if number == 2 else {})


def _run(python: Path, items: Sequence[Item], side: str, more: Mapping[str, str]) -> Answers:
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "TF_USE_LEGACY_KERAS")}
    environment.update({"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3", **more})
    with tempfile.TemporaryDirectory() as folder:
        given, answers = Path(folder, "items.json"), Path(folder, "answers.json")
        given.write_text(json.dumps(items))
        command = [str(python), str(INSIDE), str(given), str(answers), side]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)
        if done.returncode:
            raise RuntimeError(done.stderr[-3000:])
        found: Answers = json.loads(answers.read_text())
        return found


def difference(old: list[list[float]] | str, new: list[list[float]] | str) -> float:
    """How far two answers are apart. Raises ValueError where one is an error, or they have other shapes."""
    if isinstance(old, str) or isinstance(new, str) or [len(a) for a in old] != [len(b) for b in new]:
        raise ValueError(f"{old if isinstance(old, str) else 'numbers'} / {new if isinstance(new, str) else 'numbers'}")
    pairs = [pair for a, b in zip(old, new, strict=True) for pair in zip(a, b, strict=True)]
    return max((abs(a - b) / max(1.0, abs(a)) for a, b in pairs), default=0.0)


def main() -> int:
    """Prints the table."""
    rows = computed()
    true = os.environ.get("TF_MIGRATE_TENSORFLOW1_PYTHON")
    old = dict(in_tensorflow1(rows, original_python()))
    version = dict.fromkeys(old, "2.15.1")
    if true:
        exact = in_tensorflow1(rows, Path(true))
        better = {symbol: answer for symbol, answer in exact.items() if not isinstance(answer, str)}
        old.update(better)
        version.update(dict.fromkeys(better, "1.15.5"))
    new = {number: in_keras(rows, migrated_python(), number) for number in (2, 3)}
    measured: dict[str, dict[str, object]] = {}
    for one in rows:
        found: dict[str, object] = {"tensorflow": version[one.symbol]}
        for number, answers in new.items():
            if one.symbol in answers:
                try:
                    found[f"keras{number}"] = float(f"{difference(old[one.symbol], answers[one.symbol]):.1e}")
                except ValueError as error:
                    print(f"{one.symbol}: keras {number}: {error}", file=sys.stderr)
        print(one.symbol, *(f"{key}: {value}" for key, value in found.items()), sep="  ")
        if len(found) > 1:
            measured[one.symbol] = found
    if "--write" in sys.argv:
        MEASURED.write_text(json.dumps(measured, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
