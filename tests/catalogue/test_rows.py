"""What the catalogue says of a symbol is what becomes of it."""

from __future__ import annotations

import ast

import pytest

from migrator.catalogue.page import measured, page, table
from migrator.catalogue.rows import row, symbols
from migrator.rules.catalogue import all_rules, call_rules

SYMBOLS = symbols()
CODES = {rule.code for rule in all_rules()}


def test_every_call_that_rules_rewrite_has_a_row() -> None:
    left = set(call_rules()) - set(SYMBOLS)
    steps = {name for name in left if name.endswith("global_step")}
    assert left - steps == {
        "tf.cond",
        "tf.keras.optimizers.get",  # which gives what the rows of the optimizers give
        "tf.python.estimator.canned.optimizers.get_optimizer_instance",
        "tf.train.WideAndDeepOptimizer",
    }
    assert len(steps) == 6


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_a_row_is_true(symbol: str) -> None:
    one = row(symbol)
    assert one.symbol == symbol and f"{symbol}(" in one.call
    assert set(one.codes) <= CODES
    for form in (one.keras2, one.keras3):
        if form.text is None:
            assert form.codes
            continue
        ast.parse(form.text)
        for text in form.classes.values():
            ast.parse(text)
        for gone in ("tf.layers.", "tf.contrib.", "tf.train.", "tf.losses.", "tf.metrics.", "compat.v1"):
            assert gone not in form.text


@pytest.mark.parametrize(
    ("symbol", "keras2", "keras3"),
    [
        ("tf.train.AdagradDAOptimizer", "AdagradDAOptimizer(", "AdagradDAOptimizer("),
        ("tf.layers.dropout", "tf.keras.layers.Dropout(", "tf.keras.layers.Identity("),
        ("tf.contrib.slim.one_hot_encoding", "tf.one_hot(", "tf.keras.ops.one_hot("),
        ("tf.keras.optimizers.RMSprop", "tf.keras.optimizers.legacy.RMSprop(", None),
        ("tf.train.natural_exp_decay", "tf.keras.optimizers.schedules.ExponentialDecay(", "tf.keras.optimizers.sch"),
    ],
)
def test_rows(symbol: str, keras2: str, keras3: str | None) -> None:
    found = row(symbol)
    assert found.keras2.text is not None and found.keras2.text.startswith(keras2)
    assert (found.keras3.text or "").startswith(keras3 or "") and (found.keras3.text is None) == (keras3 is None)


def test_pages() -> None:
    text = page(row("tf.train.RMSPropOptimizer"))
    assert "class RMSPropOptimizer(tf.keras.optimizers.legacy.RMSprop):" in text
    assert "Compared with TensorFlow 1.15.5." in text and "TFM410" in text
    assert "refused with TFM612" in page(row("tf.TFRecordReader"))


def test_the_table_has_a_line_for_each_symbol_and_counts_them() -> None:
    text = table([row(symbol) for symbol in SYMBOLS], {"tf.nn.dropout": ["test_rules_train_the_same"]})
    assert len([line for line in text.splitlines() if line.startswith("| `")]) == len(SYMBOLS)
    assert f"{len(SYMBOLS)} symbols" in text and f"{len(measured())} are computed on both sides" in text
    assert "test_rules_train_the_same |" in text
