"""Every row of the catalogue computes in Keras what it computed in TensorFlow 1 (see benchmarks/catalogue.py)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks import catalogue
from migrator.catalogue.page import measured
from migrator.harness.environments import migrated_python, original_python

pytestmark = pytest.mark.tensorflow
TRUE = os.environ.get("TF_MIGRATE_TENSORFLOW1_PYTHON", "")
ROWS = catalogue.computed()
#: Of 120,000 random numbers: ten times the widest distance of their means, deviations and quantiles that was seen.
CHANCE = 0.02
#: Twice the largest difference that was measured (a convolution against 1.15.5).
ROUNDING = 5e-6
STOCK = {  # what the forms in the catalogue are there to avoid
    "tf.train.RMSPropOptimizer": "tf.keras.optimizers.RMSprop(0.001, momentum=0.9)",
    "tf.keras.optimizers.RMSprop": "tf.keras.optimizers.RMSprop(0.1)",
    "tf.train.AdagradOptimizer": "tf.keras.optimizers.Adagrad(0.05, initial_accumulator_value=0.01)",
    "tf.layers.batch_normalization": "tf.keras.layers.BatchNormalization(epsilon=0.01)(net)",
    "tf.contrib.layers.fully_connected": "tf.keras.layers.Dense(10)(net)",
    "tf.contrib.layers.l2_regularizer": "tf.keras.regularizers.L2(0.01)",
    "tf.losses.sigmoid_cross_entropy": "tf.reduce_mean(tf.keras.losses.binary_crossentropy(labels, logits))",
    "tf.train.natural_exp_decay": "tf.keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5)",
    "tf.metrics.precision": "tf.keras.metrics.Recall()",
}


@pytest.fixture(scope="module")
def answers(request: pytest.FixtureRequest) -> Mapping[str, catalogue.Answers]:
    """What the versions that are asked for answer, by version."""
    bad = [
        catalogue.item(row, STOCK[row.symbol]) | {"symbol": f"bad {row.symbol}"} for row in ROWS if row.symbol in STOCK
    ]
    with ThreadPoolExecutor(2) as pool:
        running = {
            "2.15": pool.submit(catalogue.in_tensorflow1, ROWS, original_python()),
            "keras2": pool.submit(catalogue.in_keras, ROWS, migrated_python(), 2, bad),
            "keras3": pool.submit(catalogue.in_keras, ROWS, migrated_python(), 3),
        }
        if TRUE and any(_asks_for_1_15(item) for item in request.session.items):
            running["1.15"] = pool.submit(catalogue.in_tensorflow1, ROWS, Path(TRUE))
        return {side: future.result() for side, future in running.items()}


def of_contrib(symbol: str) -> bool:
    return symbol.startswith("tf.contrib.")


def _asks_for_1_15(item: pytest.Item) -> bool:
    if not isinstance(item, pytest.Function) or item.path != Path(__file__) or not hasattr(item, "callspec"):
        return False
    given = item.callspec.params
    return given.get("version") == "1.15" or of_contrib(given.get("symbol", ""))


@pytest.mark.parametrize("version", ["2.15", "1.15"])
@pytest.mark.parametrize("keras", ["keras2", "keras3"])
def test_all_rows_compute_the_same(answers: Mapping[str, catalogue.Answers], keras: str, version: str) -> None:
    if version not in answers:
        pytest.skip("no TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set")
    apart: dict[str, float | str] = {}
    looked_at = 0
    for row in ROWS:
        # 1.15.5 has tf.contrib, but no Keras optimizers that are called legacy.
        if row.symbol not in answers[keras] or (
            of_contrib(row.symbol) if version == "2.15" else ".keras.op" in row.symbol
        ):
            continue
        looked_at += 1
        try:
            found = catalogue.difference(answers[version][row.symbol], answers[keras][row.symbol])
        except ValueError as error:
            apart[row.symbol] = str(error)
            continue
        if not found <= (CHANCE if catalogue.kind_of(row.symbol) == "initializer" else ROUNDING):
            apart[row.symbol] = found
    assert not apart
    assert looked_at > (100 if version == "2.15" else 160)


@pytest.mark.parametrize("symbol", STOCK)
def test_other_forms_are_found_out(answers: Mapping[str, catalogue.Answers], symbol: str) -> None:
    if of_contrib(symbol) and not TRUE:
        pytest.skip("no TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set")
    version = "1.15" if of_contrib(symbol) else "2.15"
    assert catalogue.difference(answers[version][symbol], answers["keras2"][f"bad {symbol}"]) > 100 * ROUNDING


def test_what_was_measured_is_of_these_rows() -> None:
    assert {row.symbol for row in ROWS} == set(measured())
