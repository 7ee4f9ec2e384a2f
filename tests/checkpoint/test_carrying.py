"""What keeps values from being carried over, told before anything is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from migrator.checkpoint.carrying import Order, _plan, _power_remarks
from migrator.checkpoint.matching import CheckpointError, CheckpointMap

ADAM = {"class": "Adam", "settings": {"beta_1": 0.9, "beta_2": 0.999}}
FACTS: dict[str, Any] = {
    "tf1": {"problem": None, "created": None, "other": []},
    "problem": None,
    "keras_problem": None,
    "weights": [],
    "slots": [],
    "optimizer": ADAM,
    "folder": None,
}


@pytest.mark.parametrize(
    ("facts", "code", "says"),
    [
        ({"tf1": {"problem": "no checkpoint"}}, "TFM860", "old: no checkpoint"),
        ({"problem": "no model was made"}, "TFM865", "train.py: no model was made"),
        ({"keras_problem": "no checkpoint"}, "TFM860", "new: no checkpoint"),
        ({}, "TFM866", "looks for no checkpoint of its own"),
        ({"folder": "."}, "TFM866", "holds a checkpoint of the migrated program already"),
    ],
)
def test_what_is_told(facts: dict[str, Any], code: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("")
    (tmp_path / "ckpt.index").write_text("")
    np.savez(tmp_path / "tf1.npz", **{"t:global_step": np.int64(3)})
    keras = Path("new") if "keras_problem" in facts else None
    order = Order(Path("python"), Path("train.py"), (), Path("old"), keras, None, {})
    merged = {**FACTS, **facts}
    if "folder" in facts:
        merged["folder"] = str(tmp_path)
    with pytest.raises(CheckpointError, match=says) as problem:
        _plan(order, tmp_path, merged)
    assert problem.value.code == code


def test_adam_has_counted_other_steps() -> None:
    found = CheckpointMap((), "", {"beta1_power": "beta_1"}, step="global_step")
    step = np.array(3)
    same = {"global_step": step, "beta1_power": np.array(0.9**4)}
    assert _power_remarks(found, same, FACTS) == []
    ((code, message),) = _power_remarks(found, {**same, "beta1_power": np.array(0.9**9)}, FACTS)
    assert code == "TFM867" and "`beta1_power` is 0.38742, not 0.6561" in message
