"""The data of parameter servers' workers in a loop of the program's own: a step that finds no batch fails."""

from __future__ import annotations

import re

from migrator.migration.state import GroupState
from migrator.migration.workers import feeding
from migrator.program.calls import is_none
from migrator.program.parsed import Blocked
from migrator.program.training import TrainingProgram

_REPEATS = re.compile(r"\b(shuffle_and_)?repeat\(|num_epochs\s*=\s*None|\bmake_(csv|batched_features)_dataset\(")


def check_data(state: GroupState, program: TrainingProgram) -> None:
    """Refuses data that may end before the steps do. Raises Blocked (TFM742)."""
    both = program.train_and_evaluate
    if both is None or is_none(both.train.get("max_steps")):
        return
    node = both.train.get("input_fn")
    if node is None:
        return
    texts = [file.code(one) for one, file in feeding(state, program, node).items()]
    if not any(_REPEATS.search(text) for text in texts):
        message = "nothing repeats the data of this training, and a step that finds no batch fails: `.repeat()` them"
        raise Blocked("TFM742", node, message)
