"""A disk without room is called full by every command, with an exit code and no traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """import tensorflow as tf
def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": [[1.0]]}, [1])).batch(1).repeat()
def model_fn(features, labels, mode):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features["x"], 1))
    step = tf.train.get_global_step()
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.train.AdamOptimizer(0.1).minimize(loss, step))
tf.estimator.Estimator(model_fn, "/tmp/nowhere").train(input_fn, max_steps=3)
"""

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="only Linux has /dev/full")
@pytest.mark.parametrize(
    "words",
    ["--version", "--help", "--check plain.py", "--diff a.py", "--check --format json plain.py", "-", "rules"],
)
def test_output_to_a_full_disk(tmp_path: Path, words: str) -> None:
    (tmp_path / "a.py").write_text(PROGRAM)
    (tmp_path / "plain.py").write_text("x = 1\n")
    with FULL.open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "migrator", *words.split()],
            cwd=tmp_path,
            input=PROGRAM.encode(),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 2
    *_, last = done.stderr.decode().splitlines()
    assert last == "Error: the disk is full (No space left on device): the output could not be written."
    assert b"Traceback" not in done.stderr and b"Exception ignored" not in done.stderr
    assert (tmp_path / "a.py").read_text() == PROGRAM


def test_a_reader_that_goes_away_is_no_failure_of_ours(tmp_path: Path) -> None:
    command = f"{sys.executable} -m migrator rules | head -n 1"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (len(done.stdout.splitlines()), done.stderr) == (1, "")
