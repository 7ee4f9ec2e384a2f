"""Lookup tables of tf.contrib in input functions."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import program, run

LINE, NUMBER = "tf.lookup.TextFileIndex.WHOLE_LINE", "tf.lookup.TextFileIndex.LINE_NUMBER"


def with_table(table: str) -> str:
    """A program whose input function makes a table."""
    return program().replace("def input_fn():\n", f"def input_fn(n=2):\n    table = {table}\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "index_table_from_tensor(mapping=WORDS)",
            "StaticHashTable(tf.lookup.KeyValueTensorInitializer(WORDS, tf.range(tf.size(WORDS, tf.int64))), -1)",
        ),
        (
            "index_table_from_tensor(WORDS, num_oov_buckets=n)",
            "StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(WORDS, tf.range(tf.size(WORDS, tf.int64))), n)",
        ),
        (
            'index_to_string_table_from_file("words.txt", default_value="?")',
            f'StaticHashTable(tf.lookup.TextFileInitializer("words.txt", tf.int64, {NUMBER}, tf.string, {LINE}), "?")',
        ),
    ],
)
def test_a_table_is_made_of_an_initializer(before: str, after: str) -> None:
    new, findings = run(with_table(f"tf.contrib.lookup.{before}"))
    assert f"    table = tf.lookup.{after}\n" in new
    assert ("TFM251" in {f.code for f in findings}) == ("=n" in before)


def test_what_has_no_counterpart_is_refused() -> None:
    for text in (
        with_table('tf.contrib.lookup.index_table_from_file("words.txt", vocab_size=10)'),
        program(network="table = tf.contrib.lookup.index_table_from_tensor(['a'])"),
    ):
        new, findings = run(text)
        assert new == text
        assert [f.code for f in findings if f.severity is Severity.MANUAL] == ["TFM250"]
