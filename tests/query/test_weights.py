"""The weights of Keras models, however their sizes are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.ir.files import Parsed, Together
from migrator.ir.program import understood
from migrator.query.weights import Training, Unclear, training


def _training(body: str) -> Training:
    file = Parsed.of(
        Path("train.py"), f"import numpy as np\nimport tensorflow as tf\nlayers = tf.keras.layers\n{body}\n"
    )
    return training(understood(Together.of([file]), file).evaluator)


def _sizes(body: str) -> dict[str, tuple[int, ...]]:
    return {one.name: one.shape for one in _training(body).weights if not one.name.endswith("bias")}


SEQUENTIAL = "model = tf.keras.Sequential([{}])"
WRITTEN = {
    SEQUENTIAL.format("layers.Dense(4, input_shape=(7,)), layers.Dense(2)"): {
        "dense.kernel": (7, 4),
        "dense_1.kernel": (4, 2),
    },
    SEQUENTIAL.format("layers.Input([7]), layers.Dropout(0.1), layers.Dense(4)"): {"dense.kernel": (7, 4)},
    "m = tf.keras.Sequential()\nm.add(layers.Flatten(input_shape=(3, 4)))\nm.add(layers.Dense(2, name='a'))": {
        "a.kernel": (12, 2)
    },
    "x = tf.keras.Input((6,))\ny = layers.Dense(3)(tf.nn.relu(x) * 2.0)\nz = layers.Dense(1)(tf.concat([x, y], 1))": {
        "dense.kernel": (6, 3),
        "dense_1.kernel": (9, 1),
    },
    "x = tf.keras.Input((5,))\ny = layers.Embedding(9, 4)(x)\nlayers.Dense(2)(tf.reduce_mean(y, axis=1))": {
        "embedding.embeddings": (9, 4),
        "dense.kernel": (4, 2),
    },
    "x = layers.MaxPooling2D()(layers.Conv2D(5, 3)(tf.keras.Input((8, 8, 3))))\nlayers.Dense(2)(layers.Flatten()(x))": {
        "conv2d.kernel": (3, 3, 3, 5),
        "dense.kernel": (45, 2),
    },
    "class M(tf.keras.Model):\n"
    "    def __init__(self, n):\n"
    "        super().__init__()\n"
    "        self.blocks = [layers.Dense(4) for _ in range(n)]\n"
    "        self.out = layers.Dense(2)\n"
    "    def call(self, x, training=False):\n"
    "        for block in self.blocks:\n"
    "            x = block(x)\n"
    "        return self.out(x)\n"
    "M(2)(tf.zeros([3, 6]))": {"blocks.0.kernel": (6, 4), "blocks.1.kernel": (4, 4), "out.kernel": (4, 2)},
}


@pytest.mark.parametrize("body", WRITTEN)
def test_shapes(body: str) -> None:
    assert _sizes(body) == WRITTEN[body]


def test_bytes_and_what_is_trained() -> None:
    found = _training(
        SEQUENTIAL.format(
            "layers.Dense(4, input_shape=(7,), dtype='float64', use_bias=False), layers.BatchNormalization(), "
            "layers.Dense(2, trainable=False)"
        )
        + "\nmodel.compile(tf.keras.optimizers.RMSprop(momentum=0.5))"
    )
    assert [(one.name, one.bytes, one.trained) for one in found.weights] == [
        ("dense.kernel", 224, True),
        ("batch_normalization.gamma", 16, True),
        ("batch_normalization.beta", 16, True),
        ("batch_normalization.moving_mean", 16, False),
        ("batch_normalization.moving_variance", 16, False),
        ("dense_1.kernel", 32, False),
        ("dense_1.bias", 8, False),
    ]
    assert (found.optimizer, found.given) == ("RMSprop", {"momentum": 0.5})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (SEQUENTIAL.format("layers.Dense(4)"), "the rows of `dense.kernel`"),
        (SEQUENTIAL.format("layers.Dense(int(input()), input_shape=(7,))"), "the columns of `dense.kernel`"),
        (SEQUENTIAL.format("layers.LSTM(4, input_shape=(7, 2))"), "the weights of a `LSTM`"),
        ("x = tf.keras.Input((6,))\nfor _ in range(int(input())):\n    x = layers.Dense(3)(x)", "in a loop"),
        ("x = tf.keras.Input((6,))\nif input():\n    x = layers.Dense(3)(x)", "under a condition"),
        ("x = tf.keras.Input((6,))\nx = layers.Dense(3, name=input())(x)", "the name of a `Dense`"),
        ("print(tf.zeros([3]))", "no layer"),
    ],
)
def test_what_is_not_known(body: str, message: str) -> None:
    with pytest.raises(Unclear) as raised:
        _training(body)
    assert message in raised.value.message


def test_functions_that_nobody_calls_make_nothing() -> None:
    unused = "def unused():\n    return layers.Dense(99, input_shape=(99,))\n"
    assert _sizes(unused + SEQUENTIAL.format("layers.Dense(4, input_shape=(7,))")) == {"dense.kernel": (7, 4)}
