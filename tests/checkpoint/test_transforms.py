"""The arithmetic of the name map: transforms, their inverses, parts and rows."""

from __future__ import annotations

import numpy as np
import pytest

from migrator.checkpoint.transforms import Array, Entry, Gates, Scale, Transform, Transpose, back, describe, lstm


def values(*shape: int) -> Array:
    return np.random.RandomState(3).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(
    "transform", [Transpose((2, 0, 1)), Gates((0, 2, 1, 3), (0.0, 1.0, 0.0, 0.0)), Gates((2, 0, 3, 1))]
)
def test_a_transform_and_its_inverse(transform: Transform) -> None:
    given = values(3, 4, 8)
    there = transform.apply(given)
    assert there.dtype == given.dtype
    assert not np.array_equal(there, given)
    np.testing.assert_allclose(transform.inverse.apply(there), given, rtol=0, atol=1e-6)


def test_a_scale_and_its_inverse() -> None:
    given = values(5)
    np.testing.assert_allclose(Scale(-0.02).apply(given), -0.02 * given, rtol=1e-6)
    np.testing.assert_allclose(Scale(-0.02).inverse.apply(Scale(-0.02).apply(given)), given, rtol=1e-6)


def test_parts_are_joined_and_taken_apart() -> None:
    parts = {"w/part_0": values(3, 2), "w/part_1": values(4, 2)}
    entry = Entry("weight:w", ("w/part_0", "w/part_1"))
    whole = entry.to_keras(parts)
    assert whole.shape == (7, 2)
    again = back([entry], {"weight:w": whole}, {name: value.shape for name, value in parts.items()})
    assert all(np.array_equal(again[name], parts[name]) for name in parts)
    assert describe(entry) == "2 parts joined"


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def test_an_lstm_computes_the_same() -> None:
    inputs, units = 3, 2
    stored = {"cell/kernel": values(inputs + units, 4 * units), "cell/bias": values(4 * units)}
    targets = ("weight:kernel", "weight:recurrent_kernel", "weight:bias")
    entries = lstm("cell/kernel", "cell/bias", targets, inputs, units)
    keras = {entry.target: entry.to_keras(stored) for entry in entries}
    x, h, c = values(1, inputs), values(1, units) + 1, values(1, units) - 1

    i, j, f, o = np.split(np.concatenate([x, h], 1) @ stored["cell/kernel"] + stored["cell/bias"], 4, axis=1)
    state = sigmoid(f + 1.0) * c + sigmoid(i) * np.tanh(j)  # of TensorFlow 1
    expected = sigmoid(o) * np.tanh(state)

    gates = x @ keras["weight:kernel"] + h @ keras["weight:recurrent_kernel"] + keras["weight:bias"]
    i, f, new, o = np.split(gates, 4, axis=1)
    state = sigmoid(f) * c + sigmoid(i) * np.tanh(new)  # of Keras
    np.testing.assert_allclose(sigmoid(o) * np.tanh(state), expected, rtol=1e-6)

    again = back(entries, keras, {name: value.shape for name, value in stored.items()})
    for name, value in stored.items():
        np.testing.assert_allclose(again[name], value, atol=1e-6)
    assert describe(entries[2]) == "gates reordered, forget bias added"
