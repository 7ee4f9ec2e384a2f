"""The cluster that a program makes by hand: its servers and workers, and what may not differ between them."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrator.names.imports import dotted
from migrator.program.by_hand.caller import lines_told, parameters_told, pass_cluster_on, say_there
from migrator.program.by_hand.training import Caller, Line, Training, appended, value_of
from migrator.program.calls import bind, calls_in, is_none, string
from migrator.program.parsed import Blocked, names_in
from migrator.rules import sessions


def is_sync_hook(training: Training, node: cst.BaseExpression | None) -> bool:
    """Whether an expression is the hook that makes workers wait for each other."""
    if isinstance(node, cst.Name):
        return node.value in training.hook_names
    made = isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute)
    return made and node.func.attr.value == "make_session_run_hook"  # type: ignore[union-attr]


def adds_sync_hook(training: Training, node: cst.BaseStatement) -> bool:
    """Whether a line only appends that hook to a list."""
    added = appended(node)
    return added is not None and is_sync_hook(training, added)


def check_cluster(training: Training) -> None:
    """Reads the cluster that the program makes, if it makes one. Raises Blocked (TFM762, TFM764)."""
    if training.server is None:
        if training.joins is not None or training.setter or training.synchronous is not None:
            message = "no `tf.train.Server` of this cluster is created in this function or its caller"
            raise Blocked("TFM762", training.call, message)
        return
    given = bind(training.server, sessions.SERVER, "tf.train.Server", "TFM762")
    spec = given.get("server_or_cluster_def")
    lines = training.lines if training.caller is None else training.caller.here.lines
    made = [line for line in lines if isinstance(spec, cst.Name) and spec.value in line.binds]
    value = spec if spec is not None and not made else value_of(made[0].node) if len(made) == 1 else None
    if not isinstance(value, cst.Call) or training.tf(value) != "tf.train.ClusterSpec" or len(value.args) != 1:
        raise Blocked("TFM762", training.server, "the cluster is not a ClusterSpec created in this function")
    jobs = value.args[0].value
    if not isinstance(jobs, cst.Dict):
        text = training.file.code(jobs) if not calls_in(jobs) else "jobs"
        message = (
            "cannot tell which jobs the cluster has: if they are `ps` and `worker`, and the first "
            f'worker is the chief, write `tf.train.ClusterSpec({{"ps": {text}["ps"], "worker": {text}["worker"]}})`'
        )
        raise Blocked("TFM762", value, message)
    keys = [string(e.key) for e in jobs.elements if isinstance(e, cst.DictElement)]
    if sorted(key or "" for key in keys) != ["ps", "worker"]:
        message = "the cluster is not a dict literal with the jobs `ps` and `worker`: write one"
        raise Blocked("TFM762", value, message)
    if training.joins is None or not training.setter:
        message = (
            'parameter servers do not join in `if job_name == "ps": server.join()`, or '
            "replica_device_setter is not used"
        )
        raise Blocked("TFM762", training.server, message)
    for key in ("job_name", "task_index"):
        if key not in given:
            raise Blocked("TFM762", training.server, f"the server has no `{key}`")
        if any(training.tf(call) for call in calls_in(given[key])):
            raise Blocked("TFM762", given[key], f"`{key}` is computed with TensorFlow operations")
    pass_cluster_on(training, spec)  # type: ignore[arg-type]
    training.spec = say_there(training, spec)  # type: ignore[arg-type]
    training.task = say_there(training, given["job_name"]), say_there(training, given["task_index"])
    training.told = given["task_index"]
    if training.synchronous is not None:
        _check_synchronous(training, training.synchronous)


def _check_synchronous(training: Training, call: cst.Call) -> None:
    given = bind(call, sessions.SYNCHRONOUS, "tf.train.SyncReplicasOptimizer", "TFM764")
    for key in ("variable_averages", "variables_to_average"):
        if not is_none(given.get(key)):
            raise Blocked("TFM764", given[key], f"`{key}` of a SyncReplicasOptimizer has no counterpart")
    several, total = given.get("replicas_to_aggregate"), given.get("total_num_replicas")
    if several is None:
        raise Blocked("TFM764", call, "`replicas_to_aggregate` is missing: pass the number of workers")
    if is_none(total) or training.file.code(several) == training.file.code(total):  # type: ignore[arg-type]
        if _counts_workers(training, several):
            return
    message = "mirrored workers all take part in each step: set `replicas_to_aggregate` to the number of workers"
    raise Blocked("TFM764", several, message)


def _counts_workers(training: Training, node: cst.BaseExpression, depth: int = 0) -> bool:
    """Whether an expression is the number of workers: `len(...)` of the hosts in the cluster."""
    if isinstance(node, cst.Name) and depth < 3:
        value = _value_of(training, node.value)
        return value is not None and _counts_workers(training, value, depth + 1)
    if isinstance(node, cst.Call) and dotted(node.func) == "len" and len(node.args) == 1:
        return training.file.code(node.args[0].value).replace("'", '"') == _workers(training).replace("'", '"')
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "num_tasks":
        return len(node.args) == 1 and string(node.args[0].value) == "worker"
    return False


def _value_of(training: Training, name: str) -> cst.BaseExpression | None:
    """What gives a name its only value, in this function or the one that calls it."""
    value, caller = training.value_of(name), training.caller
    if value is not None or caller is None:
        return value
    rebound = name in {bound for line in training.lines for bound in line.binds}
    return None if rebound else caller.given.get(name) or caller.here.value_of(name)


def _workers(training: Training) -> str:
    """The expression of the workers' hosts in the ClusterSpec."""
    for statement in lines_told(training):
        for call in calls_in(statement):
            if training.tf(call) == "tf.train.ClusterSpec":
                jobs = call.args[0].value
                assert isinstance(jobs, cst.Dict)
                for element in jobs.elements:
                    if isinstance(element, cst.DictElement) and string(element.key) == "worker":
                        return training.file.code(element.value)
    return ""


def check_task(training: Training, lines: Sequence[Line], expression: str = "None") -> None:
    """On parameter servers data and model are made by the coordinator, which is no worker."""
    if training.server is None or training.synchronous is not None:
        return
    index = training.file.code(training.task[1])
    names = {index} if isinstance(training.task[1], cst.Name) else set()
    workers = _workers(training)  # one more of them is wanted, since the coordinator does not train
    if training.caller is not None:
        names |= _told_by_task(training, training.caller, workers)
    elif workers.isidentifier():
        names.add(workers)
    _spread(training, training.lines, names, index)
    texts: list[tuple[cst.CSTNode, str, set[str]]]
    texts = [(line.node, training.file.code(line.node), line.mentions) for line in lines]
    texts.append((training.call, expression, names_in(cst.parse_expression(expression))))
    for node, text, mentions in texts:
        counts = "num_tasks" in text or (workers and not workers.isidentifier() and workers in text)
        if mentions & names or index in text or counts or _reads_task(training, mentions, index, names):
            message = (
                "this may differ between workers, but with parameter servers the coordinator creates it for all of them"
            )
            raise Blocked("TFM765", node, message)


def _spread(training: Training, lines: Sequence[Line], names: set[str], index: str) -> None:
    """Adds to some names those that follow from them, or from the index of the task."""
    for line in lines:
        reads = line.mentions & names or index in training.file.code(line.node)
        if line.kind == "plain" and reads and not any(training.tf(c) for c in calls_in(line.node)):
            names |= line.binds


def _told_by_task(training: Training, caller: Caller, workers: str) -> set[str]:
    """The parameters that may differ by worker."""
    index = training.file.code(training.told)
    names = {index} if isinstance(training.told, cst.Name) else set()
    if workers.isidentifier():
        names.add(workers)
    _spread(training, caller.here.lines, names, index)
    return parameters_told(training, names, index)


def _reads_task(training: Training, mentions: set[str], index: str, names: set[str]) -> bool:
    """Whether functions of some names read which worker this is; those of other files that speak of it may."""
    word = index.rpartition(".")[2]
    seen: set[str] = set()
    queue = list(mentions)
    while queue:
        name = queue.pop()
        function = training.file.functions.get(name)
        origin = training.file.imports.names.get(name, "")
        if (
            function is None
            and origin
            and any(word in other.bare for other in training.others if other is not training.file)
        ):
            if not origin.startswith(("tensorflow", "numpy")):
                return True
        if function is None or name in seen:
            continue
        seen.add(name)
        inside = names_in(function)
        if index in training.file.code(function) or inside & names:
            return True
        queue += inside
    return False
