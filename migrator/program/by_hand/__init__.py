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
from migrator.program.by_hand.caller import find_caller
from migrator.program.by_hand.fed import feeds, read_fed_loop
from migrator.program.by_hand.functions import written
from migrator.program.by_hand.kinds import classify
from migrator.program.by_hand.loop import read_loop
from migrator.program.by_hand.network import count_steps, read_network
from migrator.program.by_hand.session import find_session
from migrator.program.by_hand.supervisor import find_supervisor, read_stops
from migrator.program.by_hand.towers import inline_towers
from migrator.program.by_hand.training import Training, methods_in
from migrator.program.calls import calls_in
from migrator.program.clusters import Cluster
from migrator.program.parsed import Blocked, ParsedFile
from migrator.program.scopes import path_to
from migrator.rules import sessions

__all__ = ["Cluster", "write_out"]


def write_out(files: Sequence[ParsedFile]) -> tuple[list[ParsedFile], list[Finding]]:
    """The files with their trainings by hand written out, and findings about those that cannot be."""
    found: list[ParsedFile] = []
    findings: list[Finding] = []
    for file in files:
        may_train = file.spread is None and sessions.may_train(file.text)
        places = _sessions_of(file) if may_train and file.is_as_written else []
        try:
            if len(places) > 1:
                message = "there is a second session in this file: move each training to its own file"
                raise Blocked("TFM760", places[1], message)
            found.append(_estimator_program(file, places[0], files) if places else file)
        except Blocked as problem:
            found.append(file)
            node = problem.node if problem.node is not None else places[0]
            findings.append(file.finding(problem.code, Severity.MANUAL, node, problem.message))
    return found, findings


def _estimator_program(file: ParsedFile, call: cst.Call, files: Sequence[ParsedFile]) -> ParsedFile:
    training = Training(file, call, files)
    try:
        return _written_out(training)
    except Blocked as problem:
        place = training.origins.get(problem.node) if problem.node is not None else None
        raise Blocked(problem.code, place or problem.node, problem.message) from None


def _written_out(training: Training) -> ParsedFile:
    if training.tf(training.call) == sessions.SUPERVISOR:
        find_supervisor(training)
    find_session(training)
    find_caller(training)
    read_stops(training)
    inline_towers(training)
    if feeds(training):
        read_fed_loop(training)
    else:
        read_loop(training)
    count_steps(training)
    classify(training)
    data = read_batches(training)
    model = read_network(training)
    return written(training, data, model)


def _sessions_of(file: ParsedFile) -> list[cst.Call]:
    """The calls that make sessions to train in: plain ones where the same function, or module, makes the train_op."""
    found = []
    for call in calls_in(file.module):
        name = file.imports.tensorflow(call.func)
        plain = name in (sessions.PLAIN, sessions.SUPERVISOR) and "stimator" not in file.bare
        if name == sessions.SESSION or (plain and _makes_train_op(file, call)):
            found.append(call)
    return found


def _makes_train_op(file: ParsedFile, call: cst.Call) -> bool:
    around = path_to(file.module, call)
    if any(isinstance(node, cst.ClassDef) for node in around):
        return False
    functions = [node for node in around if isinstance(node, cst.FunctionDef)]
    scopes: Sequence[cst.CSTNode] = functions[:1] or [
        one for one in file.module.body if not isinstance(one, (cst.FunctionDef, cst.ClassDef))
    ]
    methods = [method.func.attr.value for scope in scopes for method in methods_in(scope)]
    return "minimize" in methods or "apply_gradients" in methods
