"""What a migrated program's recordings are in the original's terms."""

from __future__ import annotations

from dataclasses import replace

from numpy_programs import Program, migrated_of, run

from migrator.harness.protocol import name_map
from migrator.harness.terms import applies_others


def test_gradients_of_a_program_by_hand_that_are_not_those_it_applies() -> None:
    """What its tape gives is clipped, or has a decay added; the weights tell that what it applies is the original's."""
    original = run(Program(steps=3))
    other = replace(run(migrated_of(Program(steps=3))), by_hand=True)
    rename = name_map.build(original.variables, other.variables).to_original()
    assert not applies_others(original, other, rename)
    larger = {step: {name: 3.0 * value for name, value in of.items()} for step, of in other.gradients.items()}
    assert applies_others(original, replace(other, gradients=larger), rename)
    assert not applies_others(original, replace(other, gradients=larger, by_hand=False), rename)
    # Where the weights move otherwise too, the gradients are a finding.
    moved = {step: {name: 1.01 * value for name, value in of.items()} for step, of in other.states.items()}
    assert not applies_others(original, replace(other, gradients=larger, states=moved), rename)
