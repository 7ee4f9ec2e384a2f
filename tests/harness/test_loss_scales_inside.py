"""The loss of a step that multiplies it before it takes gradients, and divides these again."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

INSIDE = Path(__file__).parents[2] / "migrator" / "harness" / "inside"


@pytest.fixture
def scales(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module as a training process has it: among its siblings, under plain names."""
    monkeypatch.syspath_prepend(str(INSIDE))
    import loss_scales  # type: ignore[import-not-found]

    monkeypatch.setattr(loss_scales.parts, "constant", lambda operation: np.array(operation.value))
    yield loss_scales
    sys.modules.pop("loss_scales", None)


class Tensor:
    """An output of an operation in a graph, made of others."""

    graph = "graph"
    value_index = 0

    def __init__(self, kind: str, *inputs: Tensor, rank: int = 0, value: float | None = None, name: str = "") -> None:
        self.op = SimpleNamespace(type=kind, inputs=inputs, outputs=[self], value=value, name=name)
        self.shape = SimpleNamespace(rank=rank)
        self.dtype = SimpleNamespace(is_floating=True)
        self.used: list[Any] = []
        for one in inputs:
            one.used.append(self.op)

    def consumers(self) -> list[Any]:
        return self.used


def constant(value: float) -> Tensor:
    return Tensor("Const", value=value)


def a_loss() -> Tensor:
    return Tensor("Mean")


def of_a_kernel() -> Tensor:
    return Tensor("MatMul", rank=2)


def of_a_bias() -> Tensor:
    return Tensor("Sum", rank=1)


def test_a_loss_whose_gradients_are_divided_again(scales: ModuleType) -> None:
    loss, kernel, bias = a_loss(), of_a_kernel(), of_a_bias()
    scaled = Tensor("Mul", loss, constant(128.0))
    Tensor("RealDiv", kernel, constant(128.0), rank=2)
    Tensor("Mul", constant(1 / 128.0), bias, rank=1)
    assert scales.unscaled(scaled, [kernel, None, bias]) is loss


def test_gradients_that_stay_multiplied_are_those_of_the_product(scales: ModuleType) -> None:
    """A scale that is lost, or another than that of the loss, has to show in the loss."""
    loss, kernel, bias = a_loss(), of_a_kernel(), of_a_bias()
    scaled = Tensor("Mul", constant(128.0), loss)
    Tensor("RealDiv", kernel, constant(128.0), rank=2)
    assert scales.unscaled(scaled, [kernel, bias]) is scaled
    loss, kernel = a_loss(), of_a_kernel()
    scaled = Tensor("Mul", loss, constant(128.0))
    Tensor("RealDiv", kernel, constant(64.0), rank=2)
    assert scales.unscaled(scaled, [kernel]) is scaled
    assert scales.unscaled(scaled, []) is scaled


def test_a_scale_that_changes_is_known_by_its_variable(scales: ModuleType) -> None:
    """As in a LossScaleOptimizer: the inverse is made once, and casts lie in between."""
    handle, other = Tensor("Placeholder", name="scale"), Tensor("Placeholder", name="another")
    for source, right in ((handle, True), (other, False)):
        loss, kernel = a_loss(), of_a_kernel()
        scaled = Tensor("Mul", loss, Tensor("Cast", Tensor("ReadVariableOp", handle)))
        inverse = Tensor("RealDiv", constant(1.0), Tensor("ReadVariableOp", source))
        Tensor("Mul", Tensor("Cast", kernel, rank=2), inverse, rank=2)
        assert (scales.unscaled(scaled, [kernel]) is loss) is right


def test_a_factor_of_the_loss_itself_stays(scales: ModuleType) -> None:
    loss, kernel = a_loss(), of_a_kernel()
    half = Tensor("Mul", constant(0.5), loss)
    scaled = Tensor("Mul", half, constant(8.0))
    Tensor("RealDiv", kernel, constant(8.0), rank=2)
    assert scales.unscaled(scaled, [kernel]) is half


def test_numbers_that_are_computed_eagerly_stay(scales: ModuleType) -> None:
    eager = SimpleNamespace()
    assert scales.unscaled(eager, [eager]) is eager


def test_gradients_that_are_clipped_before_they_are_divided(scales: ModuleType) -> None:
    """The loss is that without the factor; the clipping is at a smaller value than it says."""
    loss, kernel, bias = a_loss(), of_a_kernel(), of_a_bias()
    scaled = Tensor("Mul", loss, constant(128.0))
    norm = Tensor("Sqrt")
    clipped = [Tensor("Mul", one, norm, rank=2) for one in (kernel, bias)]
    bounded = [Tensor("Minimum", one, constant(5.0), rank=2) for one in clipped]
    for one in bounded:
        Tensor("RealDiv", one, constant(128.0), rank=2)
    assert scales.unscaled(scaled, [kernel, bias]) is loss
    assert scales.at(clipped, loss) == 128.0
    assert scales.at([kernel], of_a_bias()) == 1.0  # nothing is a multiple of that one


def test_gradients_that_are_clipped_when_they_are_divided(scales: ModuleType) -> None:
    loss, kernel = a_loss(), of_a_kernel()
    Tensor("Mul", loss, constant(128.0))
    divided = Tensor("RealDiv", kernel, constant(128.0), rank=2)
    assert scales.at([Tensor("Mul", divided, Tensor("Sqrt"), rank=2)], loss) == 1.0


def test_a_scale_that_is_computed_has_no_number(scales: ModuleType) -> None:
    handle = Tensor("Placeholder", name="scale")
    loss, kernel = a_loss(), of_a_kernel()
    Tensor("Mul", loss, Tensor("ReadVariableOp", handle))
    Tensor("RealDiv", kernel, Tensor("ReadVariableOp", handle), rank=2)
    assert scales.at([kernel], loss) is None
