"""Which variables of callbacks are recorded beside a Keras model's own. Without TensorFlow."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

INSIDE = Path(__file__).parents[2] / "migrator" / "harness" / "inside"
MODULES = ("callback_variables", "keras_variables", "parts", "record_mesh")


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(INSIDE))
    import callback_variables

    yield callback_variables
    for name in MODULES:
        sys.modules.pop(name, None)


class Variable:
    """What `tf.Variable` is to callback_variables.py."""

    count = 0

    def __init__(self, name: str, shape: tuple[int, ...], dtype: str = "float32") -> None:
        Variable.count += 1
        self.name, self._unique_id = f"{name}:0", f"{name}_{Variable.count}"
        self.shape = SimpleNamespace(as_list=lambda: list(shape))
        self.dtype = SimpleNamespace(base_dtype=SimpleNamespace(name=dtype))


class Averages:
    """A callback of a program's own."""

    def __init__(self, **values: Any) -> None:
        vars(self).update(values)

    def on_train_batch_end(self, batch: int, logs: object = None) -> None:
        """Moves the averages."""


def test_what_is_formed_as_a_weight_is_kept_in_the_order_of_creation(variables: Any) -> None:
    kernel, bias = Variable("kernel", (3, 2)), Variable("bias", (2,))
    model = SimpleNamespace(variables=[kernel, bias])
    known = [
        variables.parts.Part(one.name[:-2], one, [0] * len(shape), shape, shape, "float32", True)
        for one, shape in ((kernel, [3, 2]), (bias, [2]))
    ]
    first, second, count = Variable("kernel/ema", (3, 2)), Variable("bias/ema", (2,)), Variable("count", (), "int64")
    one = Averages(model=model, shadow={"b": [second], "k": (first,)}, count=count, weights=[kernel, bias], decay=0.9)
    found = variables.kept(SimpleNamespace(Variable=Variable), [one], model, known)
    assert [(part.name, part.variable, part.whole, part.trainable) for part in found] == [
        ("Averages/kernel/ema", first, (3, 2), False),
        ("Averages/bias/ema", second, (2,), False),
    ]


def test_callbacks_that_do_nothing_after_a_batch_are_left_alone(variables: Any) -> None:
    class OfEpochs:
        def on_epoch_end(self, epoch: int, logs: object = None) -> None:
            """Prints."""

    own, of_epochs = Averages(), OfEpochs()
    stock = type("Stock", (Averages,), {"__module__": "tf_keras.src.callbacks"})()
    assert variables.of_program([own, of_epochs, stock]) == [own]
