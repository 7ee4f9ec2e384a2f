"""Half precision inside a program: in which formats it multiplies, and the least that its numbers move."""

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
def halves(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module as a training process has it: among its siblings, under plain names."""
    monkeypatch.syspath_prepend(str(INSIDE))
    import halves  # type: ignore[import-not-found]

    yield halves
    for name in ("halves", "parts"):
        sys.modules.pop(name, None)


def tensor(kind: str, *inputs: Any, name: str = "", dtype: str = "float32") -> Any:
    """An output of an operation in a graph, made of others."""
    base = SimpleNamespace(name=dtype)
    made = SimpleNamespace(dtype=SimpleNamespace(base_dtype=base))
    made.op = SimpleNamespace(type=kind, inputs=inputs, name=name or kind, outputs=[made])
    return made


def graph(monkeypatch: pytest.MonkeyPatch, *outputs: Any) -> Any:
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(as_dtype=None))
    return SimpleNamespace(get_operations=lambda: [one.op for one in outputs])


class TestFormats:
    def test_products_count_and_casts_do_not(self, halves: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
        half = tensor("Cast", tensor("Placeholder"), dtype="float16")
        narrow = tensor("Cast", dtype="bfloat16")
        made = graph(monkeypatch, half, narrow, tensor("MatMul", half), tensor("Conv2DBackpropFilter", narrow))
        assert halves.formats(made) == ["bfloat16", "float16"]
        assert halves.formats(made, {"MatMul"}) == ["float16"]
        assert halves.coarsest(["bfloat16", "float16"]) == "bfloat16"

    def test_what_is_joined_is_no_product(self, halves: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
        half = tensor("Cast", dtype="float16")
        made = graph(monkeypatch, tensor("ConcatV2", half), tensor("MatMul", tensor("Cast")))
        assert halves.formats(made) == []
        assert halves.coarsest([]) is None

    def test_a_weight_that_is_cast_is_that_weight(self, halves: ModuleType) -> None:
        stored = tensor("VariableV2", name="kernel")
        cast = tensor("Cast", tensor("Identity", stored), dtype="float16")
        moved = tensor("Cast", tensor("Mul", tensor("Cast", cast), name="net/moved_cast/mul"), dtype="float16")
        assert halves.source(moved) is stored
        scaled = tensor("Mul", cast, name="net/mul")
        assert halves.source(scaled) is scaled  # the program's own product is no weight


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_a_weight_moves_to_a_neighbour_of_the_format_it_is_cast_to(halves: ModuleType, name: str) -> None:
    values = np.random.RandomState(1).normal(size=1000).astype(np.float32)
    digits = halves.DIGITS[name]
    moved = halves.parts.moved_one_ulp({"w": values}, 3, digits)["w"]
    assert moved.dtype == np.float32
    unit = 2.0 ** (np.floor(np.log2(np.abs(values))) - digits)
    assert np.allclose(np.abs(moved - values) / unit, 1.0, atol=1e-3)
    if name == "float16":
        assert np.mean(moved.astype(np.float16) == values.astype(np.float16)) < 0.01
        kept = halves.parts.moved_one_ulp({"w": values}, 3)["w"]
        assert np.mean(kept.astype(np.float16) == values.astype(np.float16)) > 0.99  # and so says nothing
