"""Which training a step of a program's own loops is of. Without TensorFlow."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

INSIDE = Path(__file__).parents[2] / "migrator" / "harness" / "inside"


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes those of a program of which the model at a place is recorded."""
    monkeypatch.syspath_prepend(str(INSIDE))
    import loop_trainings

    def make(training: int, apart: bool = True) -> Any:
        noted: list[int] = []
        recorder = SimpleNamespace(plan={"apart": apart}, training=training, others=[], started=False, model=None)
        recorder.folder = SimpleNamespace(another_training=noted.append)
        return loop_trainings.LoopTrainings(recorder), noted

    return make


def folds() -> list[list[object]]:
    return [[SimpleNamespace(), SimpleNamespace()] for _ in range(3)]


@pytest.mark.parametrize(("training", "noted"), [(0, [0, 1]), (1, [0, 1]), (2, [0, 1])])
def test_what_trains_other_variables_is_another_training(trainings: Any, training: int, noted: list[int]) -> None:
    made, others = trainings(training)
    for place, model in enumerate(folds()):
        for _ in range(2):
            assert made.is_other(model, False) is (place != training)
        assert made.is_other(model[:1], False) is (place != training)  # the rest is frozen
    assert others == noted


def test_a_training_may_go_on_after_another(trainings: Any) -> None:
    made, others = trainings(0)
    first, second, _ = folds()
    assert [made.is_other(one, False) for one in (first, second, first, second)] == [False, True, False, True]
    assert others == [0]


def test_what_trains_on_the_same_batch_is_of_the_same_training(trainings: Any) -> None:
    made, others = trainings(0)
    critic, generator, _ = folds()
    assert not made.is_other(critic, False)
    assert not made.is_other(generator, True) and not made.is_other(generator, False)
    assert others == []


def test_where_the_original_trains_one_model_so_does_the_loop(trainings: Any) -> None:
    made, others = trainings(0, apart=False)
    assert not any(made.is_other(one, False) for one in folds()) and others == []


def test_what_is_called_tells_whose_model_is_evaluated(trainings: Any) -> None:
    made, _ = trainings(1)
    first, second, third = folds()
    models = [SimpleNamespace(variables=one) for one in (first, second, third)]
    assert made.lies_elsewhere(models[:1]) is None  # nothing was trained
    for one in (first, second):
        made.is_other(one, False)
    assert [made.lies_elsewhere([one]) for one in models] == [True, False, None]
    assert made.lies_elsewhere(models[:2]) is None  # both at once
    assert made.lies_elsewhere([SimpleNamespace(variables=[])]) is None


def test_what_a_loop_trains_beside_a_model_that_fit_has_trained_is_another_training(trainings: Any) -> None:
    made, others = trainings(0, apart=False)
    fitted, second, _ = folds()
    made.recorder.model, made.recorder.started, made.recorder.by_batch = SimpleNamespace(variables=fitted), True, False
    assert not made.is_other(fitted[:1], False)  # the loop goes on with what was fitted
    assert made.is_other(second, False) and made.is_other(second, False) and others == [0]
    # `train_on_batch` and a tape take turns, as the two networks of a GAN do.
    made, others = trainings(0, apart=False)
    made.recorder.model, made.recorder.started, made.recorder.by_batch = SimpleNamespace(variables=fitted), True, True
    assert not made.is_other(second, False) and others == []
