"""Where the Estimators of a run keep their checkpoints. Without TensorFlow."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

INSIDE = Path(__file__).parents[2] / "migrator" / "harness" / "inside"
MODULES = ("estimator_patches", "even", "parts", "sources", "redirect")


@pytest.fixture
def patches(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(INSIDE))
    import estimator_patches

    yield estimator_patches
    for name in MODULES:
        sys.modules.pop(name, None)


def places(patches: Any, task: str, root: Path, *model_dirs: str | None) -> list[str]:
    """Where one task's Estimators of these folders are, one after another, relative to the run's."""

    class Estimator:
        def __init__(self, model_fn: object, model_dir: str | None = None, config: object = None) -> None:
            self.model_dir = model_dir

    redirect = patches.importlib.import_module("redirect").Redirect(str(root))
    recorder = SimpleNamespace(redirect=redirect, unnamed_models=0, folder=SimpleNamespace(task=task))
    patches.patch_model_dir(Estimator, recorder)
    return [str(Path(str(Estimator(None, one).model_dir)).relative_to(root)) for one in model_dirs]


def test_tasks_without_a_model_dir_train_one_model_and_an_evaluator_does_not_see_it(
    patches: Any, tmp_path: Path
) -> None:
    chief, worker = (places(patches, task, tmp_path, None, None) for task in ("chief:0", "worker:1"))
    assert chief == worker and len(set(chief)) == 2
    assert not set(places(patches, "evaluator:0", tmp_path, None, None)) & set(chief)


def test_an_evaluator_sees_the_checkpoints_of_a_model_dir(patches: Any, tmp_path: Path) -> None:
    assert places(patches, "evaluator:0", tmp_path, "/models/a") == places(patches, "chief:0", tmp_path, "/models/a")


@pytest.mark.parametrize("by_name", [True, False])
def test_an_estimator_begins_from_the_checkpoints_that_another_one_of_the_run_has_written(
    patches: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_name: bool
) -> None:
    class Estimator:
        def __init__(
            self,
            model_fn: object,
            model_dir: str | None = None,
            config: object = None,
            params: object = None,
            warm_start_from: object = None,
        ) -> None:
            self.model_dir, self.begins_from = model_dir, warm_start_from

    class Settings(NamedTuple):
        ckpt_to_initialize_from: str

    monkeypatch.chdir(tmp_path)
    redirect = patches.importlib.import_module("redirect").Redirect(str(tmp_path / "run"))
    recorder = SimpleNamespace(redirect=redirect, unnamed_models=0, folder=SimpleNamespace(task="local:0"))
    patches.patch_model_dir(Estimator, recorder)

    def begun(given: object) -> Any:
        made = Estimator(None, "b", warm_start_from=given) if by_name else Estimator(None, "b", None, None, given)
        return made.begins_from

    Path("given").mkdir()
    assert begun("given") == "given" and begun(None) is None
    first = Estimator(None, "a")
    Path(str(first.model_dir), "checkpoint").parent.mkdir(parents=True)
    assert begun("a") == begun(Settings("a")).ckpt_to_initialize_from == first.model_dir
