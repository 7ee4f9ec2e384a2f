"""The data of parameter servers' workers in a loop of the program's own: a step that finds no batch fails."""

from __future__ import annotations

import re

from migrator.migration.state import GroupState
from migrator.migration.workers import feeding
from migrator.program.calls import is_none
from migrator.program.parsed import Blocked
from migrator.program.training import TrainingProgram

_WITHOUT_AN_END = re.compile(
    r"\brepeat\(\s*(count\s*=\s*)?(None|-1)?\s*\)"
    r"|\bshuffle_and_repeat\(\s*[^,()]+(\([^()]*\))?\s*(,\s*(count\s*=\s*)?(None|-1)\s*|,\s*seed\s*=[^,()]+)?\)"
    r"|num_epochs\s*=\s*None"
    r"|\bmake_(csv|batched_features)_dataset\((?![^#]*num_epochs)"
)
_ENDS = re.compile(r"\.take\(|\btake_while\(")


def check_data(state: GroupState, program: TrainingProgram) -> None:
    """Refuses data that may end before the steps do. Raises Blocked (TFM742)."""
    both = program.train_and_evaluate
    if both is None or is_none(both.train.get("max_steps")):
        return
    node = both.train.get("input_fn")
    if node is None:
        return
    texts = [file.code(one) for one, file in feeding(state, program, node).items()]
    if not any(_WITHOUT_AN_END.search(text) for text in texts) or any(_ENDS.search(text) for text in texts):
        message = "it is not known that these data have no end, and a step that finds no batch fails: `.repeat()` them"
        raise Blocked("TFM742", node, message)
