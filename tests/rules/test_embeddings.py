"""Tables of embeddings that are variables become layers; other uses of variables stay what they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.findings import Severity
from migrator.migrate import Options, migrate
from migrator.source.reading import Source, decode

PROGRAM = """
import tensorflow as tf

ROWS = 12


def input_fn():
    return tf.data.Dataset.from_tensors(({"ids": [[1, 2]] * 8}, [0] * 8)).repeat(3)


def model_fn(features, labels, mode):
    TABLE
    NET
    logits = tf.layers.dense(net, 3)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn)
"""
TABLE = 'table = tf.get_variable("table", [ROWS, 4])'
SPLIT = 'table = tf.get_variable("table", [ROWS, 4], partitioner=tf.fixed_size_partitioner(2))'
NET = 'net = tf.layers.flatten(tf.nn.embedding_lookup(table, features["ids"]))'
DIVIDED = NET.replace('["ids"])', '["ids"], partition_strategy="div")')


def migrated(table: str, net: str, keras: str = "2", style: str = "native") -> tuple[str, list[str]]:
    """The new text, and the codes of what blocks it."""
    text = PROGRAM.replace("TABLE", table).replace("NET", net)
    source = decode(Path("train.py"), text.encode())
    assert isinstance(source, Source)
    [result] = migrate([source], Options("one-device", style, keras))
    blocked = [f.code for f in result.findings if f.severity is Severity.MANUAL]
    assert bool(blocked) == (result.text == text)
    return result.text, blocked


@pytest.mark.parametrize(
    ("table", "initializer"),
    [
        (TABLE, '"glorot_uniform"'),
        (TABLE.replace("[ROWS, 4]", "shape=(ROWS, 4), dtype=tf.float32, initializer=None"), '"glorot_uniform"'),
        (
            TABLE.replace("4]", "4], initializer=tf.random_uniform_initializer(-1.0, 1.0)"),
            "tf.compat.v1.random_uniform_initializer(-1.0, 1.0)",
        ),
    ],
)
def test_a_table_becomes_a_layer(table: str, initializer: str) -> None:
    new, blocked = migrated(table, NET)
    assert not blocked
    made = [line for line in new.splitlines() if "Embedding(" in line]
    assert len(made) == 1 and made[0].startswith("    table = tf.keras.layers.Embedding(ROWS, 4, embeddings_init")
    assert made[0].endswith(', name="table")')
    assert 'net = tf.keras.layers.Flatten()(table(features["ids"]))' in new


def test_a_table_may_be_looked_up_in_twice() -> None:
    twice = NET + "\n    net += tf.layers.flatten(tf.nn.embedding_lookup(table, 1 - features['ids']))"
    new, blocked = migrated(TABLE, twice)
    assert not blocked and "table(features['ids'])" not in new and "table(1 - features['ids'])" in new


@pytest.mark.parametrize(
    ("table", "net", "code"),
    [
        (
            "",
            'with tf.variable_scope("words", partitioner=tf.fixed_size_partitioner(2)):\n'
            '        net = tf.reduce_mean(tf.contrib.layers.embed_sequence(features["ids"], 12, 4), 1)',
            "TFM796",
        ),
        (SPLIT, NET, "TFM796"),  # of 12 rows in two parts, id 1 is row 6
        ("tf.get_variable_scope().set_partitioner(tf.fixed_size_partitioner(2))\n    " + TABLE, NET, "TFM796"),
    ],
)
def test_a_table_whose_rows_are_mixed_is_refused(table: str, net: str, code: str) -> None:
    _, blocked = migrated(table, net)
    assert code in blocked


@pytest.mark.parametrize(
    ("table", "net"),
    [
        (TABLE, NET + "\n    net += tf.reduce_sum(table)"),  # read as a whole
        (TABLE.replace("4]", "4], trainable=False"), NET),
        (TABLE.replace("[ROWS, 4]", "[ROWS]"), NET),
        (TABLE.replace("4]", "4], dtype=tf.float64"), NET),
        (TABLE.replace('"table"', "str(ROWS)"), NET),
        (TABLE, NET.replace('["ids"])', '["ids"], max_norm=1.0)')),
        (TABLE, NET.replace("(table,", "([table],")),
    ],
)
def test_what_is_no_plain_table_is_a_weight(table: str, net: str) -> None:
    new, blocked = migrated(table, net)
    assert not blocked and "Embedding(" not in new and "table = Weight(" in new


def test_a_table_that_is_split_is_looked_up_as_it_lies() -> None:
    new, blocked = migrated(SPLIT, DIVIDED)
    assert not blocked and 'table(features["ids"])' in new and "artitioner" not in new


SCOPED = f'with tf.variable_scope("words", partitioner=PARTS):\n        {TABLE}'


def test_keras_3_was_not_tried() -> None:
    assert "TFM203" in migrated(TABLE, NET, "3")[1]
