"""Which calls of a program's functions are parts of one step."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

INSIDE = Path(__file__).parents[2] / "migrator" / "harness" / "inside"
with patch.object(sys, "path", [str(INSIDE), *sys.path]):
    import batches  # type: ignore[import-not-found]
    import step_parts  # type: ignore[import-not-found]


class Program:
    """Functions that train, and batches that are asked for in between."""

    def __init__(self) -> None:
        self.batch = 0
        self.parts: Any = step_parts.StepParts(None, lambda: self.batch, lambda asked: asked == self.batch)
        self.parts.number = SimpleNamespace(assign=lambda value: setattr(self, "place", value))
        self.place = 0

    def train(self, key: str, tensors: tuple[object, ...] = ()) -> tuple[bool, int]:
        self.parts.begin_call(key)
        self.parts.give(list(tensors))
        found = self.parts.goes_on, self.place
        self.parts.end_call(key)
        return found


def step(*variables: object) -> SimpleNamespace:
    return SimpleNamespace(gradients=[(None, variable) for variable in variables])


def test_other_networks_on_the_same_batch_are_further_parts() -> None:
    program = Program()
    assert program.train("discriminator") == (False, 0)
    assert program.train("generator") == (True, 1)
    assert program.train("encoder") == (True, 2)


def test_another_batch_or_the_same_network_begins_a_step() -> None:
    program = Program()
    program.train("discriminator")
    program.batch += 1
    assert program.train("generator") == (False, 0)
    assert program.train("generator") == (False, 0)
    assert program.train("discriminator") == (True, 1)


def test_tensors_of_a_further_part_are_those_of_the_first_or_its_own() -> None:
    program = Program()
    pictures, labels, noise = object(), object(), object()
    program.train("discriminator", (pictures, labels))
    program.parts.begin_call("generator")
    program.parts.give([labels, noise])
    assert program.parts.of_first(2) == [1, None]
    assert program.parts.of_first(3) == [None, None, None]  # others than those that it was called with
    program.batch += 1
    program.parts.begin_call("generator")
    assert program.parts.of_first(2) == [0, 1]


def test_what_functions_train_is_known_by_their_variables() -> None:
    program = Program()
    first, second = object(), object()
    assert program.parts.note(step(first, second), "traced") == ["traced"]
    assert program.parts.knows(step(second, first)) and not program.parts.knows(step(first))
    assert program.parts.note(step(second, first), "traced again") == ["traced again"]
    assert program.parts.add_optimizers([first, second]) == [first, second]
    assert program.parts.add_optimizers([second]) == []


def test_all_that_a_step_is_given_is_its_batch() -> None:
    tf = SimpleNamespace(nest=SimpleNamespace(flatten=lambda value, expand_composites: [value]))
    found = batches.leaves(tf, ({"x": 1}, 2, 3, 4, [5, 6]))
    assert found == [("features/x", 1), ("labels", 2), ("weights", 3), ("more/0", 4), ("more/1/0", 5), ("more/1/1", 6)]
    assert batches.leaves(tf, (1, 2)) == [("features", 1), ("labels", 2)]
