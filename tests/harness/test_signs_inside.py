"""Signs of life of what a program does beside the training that is recorded. Without TensorFlow."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

INSIDE = Path(__file__).parents[2] / "migrator" / "harness" / "inside"


@pytest.fixture
def signs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(INSIDE))
    import signs

    yield signs
    for name in ("signs", "parts"):
        sys.modules.pop(name, None)


def test_batches_of_keras_and_steps_of_sessions_are_signs(
    signs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `fit` of another model is not recorded: without these its minutes would be a stall."""

    class Callback:
        pass

    class CallbackList:
        def on_train_batch_end(self, batch: int) -> int:
            return batch

    class Session:
        def run(self, fetches: str) -> str:
            return fetches

    Callback.__module__ = "the_callbacks"
    monkeypatch.setitem(sys.modules, "the_callbacks", SimpleNamespace(CallbackList=CallbackList))
    sessions = SimpleNamespace(_MonitoredSession=Session)
    monkeypatch.setitem(sys.modules, "tensorflow.python.training.monitored_session", sessions)
    now = [100.0]
    monkeypatch.setattr(signs, "time", SimpleNamespace(time=lambda: now[0]))
    tf = SimpleNamespace(keras=SimpleNamespace(callbacks=SimpleNamespace(Callback=Callback)))
    signs.install(tf, SimpleNamespace(path=str(tmp_path)))
    sign = tmp_path / "signs"
    assert not sign.exists()
    assert CallbackList().on_train_batch_end(3) == 3 and sign.read_text() == "100.000000"
    now[0] += 0.5  # thousands of batches are no thousands of files
    CallbackList().on_train_batch_end(4)
    assert sign.read_text() == "100.000000"
    now[0] += 0.5
    assert Session().run("loss") == "loss" and sign.read_text() == "101.000000"
