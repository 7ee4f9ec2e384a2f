"""Programs put together from pieces (tests/fuzz) train, evaluate and print the same once they are migrated, or are
refused: a fixed set here, chosen one by one; `python tools/fuzz.py` draws others.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.fuzz.axes import parse
from tests.fuzz.judging import Kind, Outcome, after_running
from tests.fuzz.sides import Setting, run_sides
from tests.fuzz.trying import Trial, attempt

pytestmark = pytest.mark.tensorflow

TENSORFLOW1 = os.environ.get("TF_MIGRATE_TENSORFLOW1_PYTHON", "")

#: What must come out, and with the same numbers.
SAME = (
    "driver=twice; predictions=all",
    "task=numbers; optimizer=nesterov; rate=staircase; dropout=layer; normalization=one; driver=train_and_evaluate",
    "scope=variable scopes; regularization=layers; optimizer=adam; gradients=global norm; input=generator",
)
#: By class of fault: programs that commit e2954ce made train, evaluate or print otherwise. They may be refused.
ONCE_WRONG = {
    "a resumed training keeps the old rate": ("optimizer=momentum; driver=resumed with another rate",),
    "conditions on names of variables": (
        "scope=variable scopes; regularization=name starts",
        "regularization=name starts not; driver=two models",
        "regularization=op name",
    ),
    "variables by number": ("network=towers; regularization=by number",),
    "update operations are not the list at their line": (
        "normalization=one; updates=after",
        "normalization=two; updates=early list",
    ),
    "the input function is called more often, or too early": (
        "input=permuted; driver=epochs",
        "input=counted",
        "input=file; layout=app.run",
    ),
    "params that change after the Estimator was made": ("rate=formula; params=changed after",),
    "names that are bound in other ways": (
        "rebound=logits after the loss; binding=annotated",
        "rebound=logits after the loss; binding=walrus",
        "rebound=loss after minimize; binding=walrus",
    ),
    "words of comments": ("optimizer=momentum; comment=embedding",),
    "params that are changed twice": ("network=variables; params=deleted",),
    "an evaluation's loss with a smaller last batch": ("batches=uneven; driver=epochs",),
    "a step too many where the data end": ("driver=train_and_evaluate until the data end",),
    "metrics and optimizers of a ready model": (
        "family=ready model",
        "family=ready model; task=numbers; metrics=several",
        "family=ready model; features=small; optimizer=rmsprop; metrics=none",
    ),
    "a batch size that the network knows": ("network=static batch",),
    "a layer that the loss does not read is gone from a penalty": (
        "network=unused layer; regularization=all variables",
    ),
}
PROGRAMS = [*SAME, *(program for programs in ONCE_WRONG.values() for program in programs)]


@pytest.fixture(scope="module")
def trials(request: pytest.FixtureRequest) -> dict[str, Trial]:
    """Every program that is asked for, tried in two interpreters."""
    items = (item for item in request.session.items if isinstance(item, pytest.Function))
    asked = {item.callspec.params["program"] for item in items if item.module is request.module and _has_one(item)}
    programs = [program for program in PROGRAMS if program in {*asked, SAME[0]}]
    return dict(zip(programs, attempt([parse(program) for program in programs], Setting()), strict=True))


def _has_one(item: pytest.Function) -> bool:
    return hasattr(item, "callspec") and "program" in item.callspec.params


@pytest.mark.parametrize("program", PROGRAMS)
def test_trains_the_same_or_is_refused(program: str, trials: dict[str, Trial]) -> None:
    outcome = trials[program].outcome
    assert outcome.kind is Kind.SAME or (outcome.kind is Kind.REFUSED and program not in SAME), outcome


def test_wrong_programs_are_seen(trials: dict[str, Trial]) -> None:
    trial = trials[SAME[0]]
    new = trial.migration.texts["train.py"]
    wrongs = {
        "SGD(learning_rate=rate)": "SGD(learning_rate=1.01 * rate)",
        "steps_per_epoch=3": "steps_per_epoch=4",
        'print("shown", found["class"]': 'print("shown", 2 - found["class"]',
        "from_logits=True": "from_logits=False",
        "model.fit(": "model.fits(",
    }
    assert all(wrong in new for wrong in wrongs)
    _, runs = run_sides([], [{"train.py": new.replace(wrong, other)} for wrong, other in wrongs.items()], Setting())
    assert trial.original is not None
    outcomes = [after_running(trial.original, run) for run in runs]
    assert [outcome.kind for outcome in outcomes] == [Kind.DIFFERENT] * 4 + [Kind.CRASHED], outcomes


@pytest.mark.skipif(not TENSORFLOW1, reason="no TensorFlow 1.15.5: TF_MIGRATE_TENSORFLOW1_PYTHON is not set")
def test_the_same_as_tensorflow_1() -> None:
    setting = Setting(original=Path(TENSORFLOW1))
    outcomes: dict[str, Outcome] = {}
    for program, trial in zip(PROGRAMS, attempt([parse(program) for program in PROGRAMS], setting), strict=True):
        outcomes[program] = trial.outcome
    assert not {program: outcome for program, outcome in outcomes.items() if outcome.failed}
