"""Lookup tables of tf.contrib give the ids in TensorFlow 1.15.5 that their new form gives in TensorFlow 2."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from migrator.harness.environments import migrated_python
from tests.rules.programs import program, run

PYTHON = os.environ.get("TF_MIGRATE_TENSORFLOW1_PYTHON", "")
pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(not PYTHON, reason="no TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set"),
]
TABLES = (
    "tf.contrib.lookup.index_table_from_file('words.txt', num_oov_buckets=7)",
    "tf.contrib.lookup.index_table_from_file('words.txt')",
    "tf.contrib.lookup.index_table_from_tensor(['a', 'b', 'c'], num_oov_buckets=5)",
    "tf.contrib.lookup.index_table_from_tensor(['a', 'b', 'c'], default_value=1)",
)
BACK = (
    "tf.contrib.lookup.index_to_string_table_from_file('words.txt')",
    "tf.contrib.lookup.index_to_string_table_from_tensor(['a', 'b', 'c'], default_value='?')",
)
WORDS = "tf.constant(['b', 'a', 'c', 'x', 'yy', 'zzz', '', 'longer word'])"
IDS = "tf.constant([1, 0, 2, 7], tf.int64)"
OLD = """
import json
import tensorflow as tf
found = [table.lookup(words) for table, words in [{pairs}]]
with tf.Session() as session:
    session.run(tf.tables_initializer())
    print(json.dumps([value.tolist() for value in session.run(found)], default=bytes.decode))
"""
NEW = """
import json
import tensorflow as tf
found = [table.lookup(words) for table, words in [{pairs}]]
print(json.dumps([value.numpy().tolist() for value in found], default=bytes.decode))
"""


def new_form(table: str) -> str:
    """What a table becomes in a migrated program."""
    text = program().replace("def input_fn():\n", f"def input_fn():\n    table = {table}\n")
    new, findings = run(text, style="native")
    line = next(line for line in new.splitlines() if "table = " in line)
    assert "contrib" not in line, findings
    return line.strip().removeprefix("table = ")


def test_the_ids_are_the_same(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("a\nb\nc\n", encoding="utf-8")
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "2"}
    answers = []
    for python, script, form in ((PYTHON, OLD, str), (str(migrated_python()), NEW, new_form)):
        pairs = [*((form(table), WORDS) for table in TABLES), *((form(table), IDS) for table in BACK)]
        text = script.format(pairs=", ".join(f"({table}, {words})" for table, words in pairs))
        done = subprocess.run(
            [python, "-c", text], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        answers.append(json.loads(done.stdout.splitlines()[-1]))
    assert answers[0] == answers[1]
    assert len({tuple(ids) for ids in answers[0]}) == len(answers[0])
