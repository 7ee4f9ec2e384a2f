"""The examples of two programs, by names that those have in common which are the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy_programs import Program, migrated_of, run

from migrator.harness import examples
from migrator.harness.cluster import RunOutcome
from migrator.harness.original import OriginalEvidence
from migrator.harness.protocol import batch_map, l2_data
from migrator.harness.protocol.results import LevelResult, Status
from migrator.harness.recording import Array, Batch
from migrator.harness.runs import Run
from migrator.harness.terms import Terms

RANDOM = np.random.RandomState(3)
SHADES = RANDOM.randint(0, 256, (24, 5)).astype(np.float32)
WORDS = np.array([b"a", b"bb", b"c"] * 8, object)
COUNTS = RANDOM.randint(0, 9, 24).astype(np.int64)


def batches(pixels: Array, words: Array = WORDS, counts: Array = COUNTS, seed: int = 0) -> list[dict[str, Array]]:
    """Two passes over the examples in batches of eight, each in an order of its own."""
    made = []
    for number in range(2):
        order = np.random.RandomState(2 * seed + number).permutation(len(pixels))
        for at in range(0, len(pixels), 8):
            some = order[at : at + 8]
            made.append({"features/x": pixels[some], "features/word": words[some], "labels": counts[some]})
    return made


def level(monkeypatch: pytest.MonkeyPatch, theirs: list[dict[str, Array]], terms: Terms | None = None) -> LevelResult:
    """L2 of an original that divides by 255, and a migrated program that reads `theirs`, both in a random order."""
    quotient = SHADES / np.float32(255)
    sides = {"original": batches(quotient), "again": batches(quotient, seed=1), "migrated": theirs}
    monkeypatch.setattr(examples, "read_batch", lambda folder, batch: sides[folder.parent.name][batch.step - 1])

    def made(role: str) -> Run:
        program = Program(steps=len(sides[role]), batch_size=8)
        recording = run(program if role != "migrated" else migrated_of(program, data_seed=2))
        kept = tuple(
            Batch("local:0", number, f"{role} {number}", len(one["labels"]), (), True)
            for number, one in enumerate(sides[role], start=1)
        )
        return Run(role, role, RunOutcome(Path(role), (), None, 1.0), replace(recording, batches=kept))

    evidence = OriginalEvidence(made("original"), made("again"), None, random_order=True)
    read, unread = examples.read(evidence, made("migrated"), terms or Terms(), random=True)
    assert read is not None and unread == ()
    ours, other = evidence.main.recording, made("migrated").recording
    assert ours is not None and other is not None
    return l2_data.judge(ours, other, random_order=True, examples=read).level


PRODUCT = SHADES * np.float32(1 / 255)


def test_rounding_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not np.array_equal(SHADES / np.float32(255), PRODUCT)
    found = level(monkeypatch, batches(PRODUCT, seed=5))
    assert found.status is Status.EQUIVALENT, found.summary
    assert "the same 24 distinct examples, each read as often" in found.summary


@pytest.mark.parametrize(
    "theirs",
    [
        batches(SHADES / np.float32(256), seed=5),
        batches(PRODUCT + np.float32(1e-3) * RANDOM.normal(size=PRODUCT.shape).astype(np.float32), seed=5),
        batches(PRODUCT, words=np.roll(WORDS, 1), seed=5),
        batches(PRODUCT, counts=COUNTS + (np.arange(24) == 3), seed=5),
        batches(PRODUCT[np.r_[:23, 0]], WORDS[np.r_[:23, 0]], COUNTS[np.r_[:23, 0]], seed=5),
        batches(PRODUCT[:16], WORDS[:16], COUNTS[:16], seed=5),
    ],
    ids=["scale", "noise", "string", "label", "twice", "missing"],
)
def test_other_data_are_different(monkeypatch: pytest.MonkeyPatch, theirs: list[dict[str, Array]]) -> None:
    assert level(monkeypatch, theirs).status is Status.DIFFERENT


def test_what_has_another_form_and_is_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = [{"features/x": one["features/x"], "labels": one["labels"]} for one in batches(PRODUCT, seed=5)]
    ours = batches(SHADES / np.float32(255))
    found = batch_map.find(ours, theirs, in_order=False)
    assert found is not None and [one.kind for one in found] == ["rounded", "same"]
    assert level(monkeypatch, theirs, Terms(data=found)).status is Status.EQUIVALENT


def test_a_batch_of_another_training_stays_as_it_is() -> None:
    conversion = batch_map.Conversion("features", "features/x", "same", np.dtype("f4"))
    other = {"features/y": PRODUCT}
    assert examples._converted(other, Terms(data=(conversion,))) is other
    assert list(examples._converted({"features/x": PRODUCT}, Terms(data=(conversion,)))) == ["features"]
