"""What each statement before the session does: data, the graph, hooks, or something that only the session needs."""

from __future__ import annotations

import libcst as cst

from migrator.names.bare import says
from migrator.names.imports import dotted
from migrator.program.by_hand.cluster import adds_sync_hook, check_cluster, is_sync_hook
from migrator.program.by_hand.supervisor import given_to_session
from migrator.program.by_hand.training import Training, methods_in, value_of
from migrator.program.calls import bind, calls_in, is_none
from migrator.program.parsed import Blocked, names_in
from migrator.program.scopes import path_to
from migrator.rules import sessions
from migrator.rules.scaffolds import SCAFFOLDS

SYNCHRONOUS = "tf.train.SyncReplicasOptimizer"


def classify(training: Training) -> None:
    """Says of each line before the session what kind it is, and what the session is given. Raises Blocked."""
    tensors: set[str] = set()
    if training.supervisor is not None:
        given = given_to_session(training)
    elif training.tf(training.call) == sessions.SESSION:
        given = bind(training.call, sessions.PARAMETERS, "MonitoredTrainingSession", "TFM760")
    else:
        given = bind(training.call, sessions.PLAIN_PARAMETERS, "tf.Session", "TFM733")
        for key in ("target", "graph"):
            if not is_none(given.get(key)):
                raise Blocked("TFM733", given[key], f"`{key}` of the session is unsupported")
    hooks = set()
    for key in ("hooks", "chief_only_hooks"):
        if key in given:
            hooks |= names_in(given[key])
    training.given = given
    for line in training.lines:
        if line.kind == "removed":
            continue
        names = [name for name in (training.tf(call) for call in calls_in(line.node)) if name is not None]
        methods = [call.func.attr.value for call in methods_in(line.node)]
        if is_sync_hook(training, value_of(line.node)) or adds_sync_hook(training, line.node):
            line.kind = "removed"
            training.hook_names |= line.binds - hooks | (line.binds if value_of(line.node) is not None else set())
        elif "tf.train.Server" in names:
            training.server = next(c for c in calls_in(line.node) if training.tf(c) == "tf.train.Server")
            line.kind = "removed"
        elif sessions.SUPERVISOR in names:
            line.kind = "removed"
        elif any(name in (*sessions.LEFT_OUT, *SCAFFOLDS) for name in names):
            if not isinstance(line.node, cst.SimpleStatementLine) or len(line.node.body) != 1:
                message = "code that only the session needs shares a block with other code: move it out"
                raise Blocked("TFM760", line.node, message)
            line.kind = "removed"
        elif line.binds & hooks and not tensors & line.binds:
            line.kind = "hooks"
        elif "get_next" in methods or returns_next(training, line.node):
            line.kind = "next"
            tensors |= line.binds
        elif line.mentions & tensors or any(sessions.is_graph(name) for name in names):
            line.kind = "graph"
            tensors |= line.binds
        for call in calls_in(line.node):
            if training.tf(call) == SYNCHRONOUS and call.args:
                around = path_to(line.node, call)
                if any(isinstance(one, (cst.If, cst.IfExp, cst.For, cst.While, cst.Try)) for one in around):
                    message = (
                        "a runtime condition chooses synchronous training, which needs another strategy: "
                        "remove the `if` here, and the one around `make_session_run_hook`, to keep one of the "
                        "two"
                    )
                    raise Blocked("TFM764", call, message)
                training.synchronous = call
                line.mentions = names_in(line.node.deep_replace(call, call.args[0].value))
    data: set[str] = set()
    for line in training.lines:
        names = [name for name in (training.tf(call) for call in calls_in(line.node)) if name is not None]
        if line.kind == "plain" and (line.mentions & data or any(name.startswith("tf.data.") for name in names)):
            line.kind = "data"
            data |= line.binds
    check_cluster(training)


def returns_next(training: Training, node: cst.BaseStatement) -> bool:
    """Whether a statement gets the next batch of an input function of the file."""
    value = value_of(node)
    function = training.file.functions.get(dotted(value.func) or "") if isinstance(value, cst.Call) else None
    return function is not None and says(training.file.code(function), ".get_next()")
