"""Programs that train by hand in a MonitoredTrainingSession, written out as the Estimator programs that they are.

What is computed from a batch becomes a model_fn, what makes the batches an input function, and the loop around
`session.run(train_op)` one call of `train`, before anything else looks at the file; every rule and reader then treats
them as any other. The text that a user sees is never this one, see `canned`. Where variables live on parameter servers,
the file says which cluster the strategy is made of.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrator.findings import Finding, Severity
from migrator.program.by_hand.batches import read_batches
from migrator.program.by_hand.functions import written
from migrator.program.by_hand.kinds import classify
from migrator.program.by_hand.loop import read_loop
from migrator.program.by_hand.network import read_network
from migrator.program.by_hand.session import find_session
from migrator.program.by_hand.towers import inline_towers
from migrator.program.by_hand.training import Cluster, Training
from migrator.program.calls import calls_in
from migrator.program.parsed import Blocked, ParsedFile
from migrator.rules import sessions

__all__ = ["Cluster", "write_out"]


def write_out(files: Sequence[ParsedFile]) -> tuple[list[ParsedFile], list[Finding]]:
    """The files with their trainings by hand written out, and findings about those that cannot be."""
    found: list[ParsedFile] = []
    findings: list[Finding] = []
    for file in files:
        is_as_written = file.spread is None and file.module.code == file.text
        places = _sessions_of(file) if is_as_written and sessions.may_train(file.text) else []
        try:
            if len(places) > 1:
                message = "a second MonitoredTrainingSession in this file: put the trainings into files of their own"
                raise Blocked("TFM760", places[1], message)
            found.append(_estimator_program(Training(file, places[0], files)) if places else file)
        except Blocked as problem:
            found.append(file)
            node = problem.node if problem.node is not None else places[0]
            findings.append(file.finding(problem.code, Severity.MANUAL, node, problem.message))
    return found, findings


def _estimator_program(training: Training) -> ParsedFile:
    find_session(training)
    inline_towers(training)
    read_loop(training)
    classify(training)
    data = read_batches(training)
    model = read_network(training)
    return written(training, data, model)


def _sessions_of(file: ParsedFile) -> list[cst.Call]:
    """The calls that make sessions to train in."""
    return [call for call in calls_in(file.module) if file.imports.tensorflow(call.func) == sessions.SESSION]
