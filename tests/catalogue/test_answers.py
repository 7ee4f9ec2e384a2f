"""Every public name of TensorFlow 1.15 has an answer, and the answers lead somewhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import migrator.names
from migrator.bridge.answers import Answer, answer, is_public, public_names, rows
from migrator.bridge.assemble import library
from migrator.catalogue.answers import page
from migrator.cli.program import program
from migrator.names.advice import INSTEAD, LIBRARY
from migrator.names.fate import exists

ROOT = Path(__file__).parents[2]
TENSORFLOW1 = os.environ.get("TF_MIGRATE_TENSORFLOW1_PYTHON", "")


def test_every_name_has_an_answer_that_leads_somewhere() -> None:
    found = list(rows())
    assert len(found) > 5000
    for row in found:
        if row.answer is Answer.SUPPORT:
            assert row.now == "keras_estimator" or row.now.split(".")[1] in library().public, row
        elif row.answer in (Answer.SAME, Answer.RENAMED, Answer.COMPAT):
            assert exists(row.now.removesuffix("()").replace("tensorflow.", "tf.", 1)), row
        else:
            assert row.now


def test_what_people_use_most_is_not_gone() -> None:
    """Of the calls of public programs that a session counted, at least 98 of 100 come out."""
    for name in (
        *("tf.placeholder", "tf.layers.dense", "tf.train.AdamOptimizer", "tf.contrib.layers.fully_connected"),
        *("tf.estimator.Estimator", "tf.contrib.rnn.LSTMCell", "tf.nn.dynamic_rnn", "tf.contrib.slim.conv2d"),
        *("tf.contrib.learn.Estimator", "tf.contrib.lookup.index_table_from_file", "tf.contrib.training.HParams"),
        *("tf.contrib.data.map_and_batch", "tf.contrib.seq2seq.BasicDecoder", "tf.contrib.crf.crf_log_likelihood"),
        *("tf.train.string_input_producer", "tf.app.run", "tf.flags.DEFINE_string", "tf.gfile.Exists", "tf.log"),
    ):
        assert is_public(name) and answer(name).answer is not Answer.GONE


def test_names_that_are_gone_have_advice_of_their_own_module() -> None:
    general = {INSTEAD[one].text for one in ("tf", "tf.contrib", "tf.keras", "tf.raw_ops", "tf.test")}
    gone = [row for row in rows() if row.answer is Answer.GONE]
    assert len([row for row in gone if row.now in general]) < 0.1 * len(gone)
    modules = {".".join(name.split(".")[:3]) for name in public_names()} | {"tf"}
    unknown = [one for one in (*LIBRARY, *INSTEAD) if not is_public(one) and one not in modules]
    allowed = ("tf.contrib", "tf.examples", "tf.keras.estimator", "tf.contrib.lite", "tf.contrib.quantization")
    assert [one for one in unknown if one not in allowed and one.count(".") > 2] == []


def test_the_page_counts_every_name_once() -> None:
    text = page(list(rows()))
    counts = [int(one.replace(",", "")) for one in re.findall(r"^\| [\w. ]+ \| ([\d,]+) \|", text, re.MULTILINE)]
    assert len(counts) == len(Answer) and sum(counts) == sum(map(len, public_names().values()))
    assert f"{sum(counts):,} of them" in text
    assert re.search(r"^\| `tf.contrib.distributions` \|.*tensorflow-probability", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tf.log", "Now: `tf.math.log`"),
        ("tensorflow.compat.v1.contrib.distributions.WishartCholesky", "tensorflow-probability"),
        ("tf.contrib.rnn.GRUBlockCell", "`keras_estimator.GRUBlockCell`"),
        ("tf.GraphKeys.LOSSES", "`tf.compat.v1.GraphKeys.LOSSES`"),
    ],
)
def test_rules_shows_the_answer(name: str, said: str) -> None:
    done = CliRunner().invoke(program, ["rules", name])
    assert done.exit_code == 0 and said in done.output


def test_rules_knows_no_name_that_tensorflow_had_not() -> None:
    assert CliRunner().invoke(program, ["rules", "tf.nosuch"]).exit_code != 0


@pytest.mark.skipif(not TENSORFLOW1, reason="no TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set")
def test_the_names_are_those_of_tensorflow_1(tmp_path: Path) -> None:
    (site,) = Path(TENSORFLOW1).parents[1].glob("lib/python3*/site-packages")
    made = tmp_path / "public.json"
    subprocess.run([sys.executable, ROOT / "tools/make_public_names.py", site, made], check=True, capture_output=True)
    kept = Path(migrator.names.__file__).with_name("public.json")
    assert json.loads(made.read_text()) == json.loads(kept.read_text())
