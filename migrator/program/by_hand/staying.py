"""What of a training by hand stays in its driver."""

from __future__ import annotations

import libcst as cst

from migrator.program.by_hand.training import Line, Training, value_of
from migrator.program.parsed import Blocked, name_nodes, names_in
from migrator.rules import sessions


def check_names(training: Training, stays: list[Line]) -> None:
    """What stays must not need what moves, nor change what that reads."""
    moved = [line for line in training.lines if line not in stays]
    for line in stays:
        if line.node in training.origins:
            message = "this belongs to a tower, but code outside needs it"
            raise Blocked("TFM766", training.origins[line.node], message)
    left = {name for line in stays for name in line.binds}
    gone = {name for line in moved for name in line.binds} - left
    if training.caller is not None:
        gone |= training.caller.dropped
        for line in training.lines:
            if line.kind != "removed" and line.mentions & training.caller.dropped:
                name = sorted(line.mentions & training.caller.dropped)[0]
                message = f"`{name}` belongs to the server, but has uses beyond the session here"
                raise Blocked("TFM762", line.node, message)
    for line in stays:
        for name in sorted((line.mentions - line.binds) & gone):
            message = f"`{name}` belongs to the graph or the cluster, but has other uses here"
            raise Blocked("TFM760", line.node, message)
    for statement in training.generator:
        for name in sorted(names_in(statement) & gone):
            message = f"`{name}` belongs to the graph, but the batches are built with it"
            raise Blocked("TFM732", training.loop, message)
    for statement in training.suffix:
        for name in sorted(names_in(statement) & gone):
            message = f"`{name}` belongs to the graph or the cluster, but is used after the training"
            raise Blocked("TFM760", statement, message)
    for index, line in enumerate(training.lines):
        if line in moved:
            for later in training.lines[index + 1 :]:
                if later in stays and later.binds & line.mentions:
                    name = sorted(later.binds & line.mentions)[0]
                    raise Blocked("TFM760", later.node, f"`{name}` is reassigned after the graph has read it")


def lines_that_stay(training: Training, data: list[Line], model: list[Line]) -> list[Line]:
    """The lines that stay in the driver: those that neither function needs, or that others need as well."""
    moved = [line for line in training.lines if line in data or line in model]
    rest = [line for line in training.lines if line not in moved and line.kind in ("plain", "data", "hooks")]
    left = set().union(*(line.mentions for line in rest), names_in(training.call)) if rest else set()
    left |= names_in(training.call)
    left |= training.used_later()
    if training.spec is not None:
        left |= names_in(training.spec) | names_in(training.task[0]) | names_in(training.task[1])
    stay: list[Line] = list(rest)
    for line in reversed(training.lines):
        plain = line.kind == "plain"
        both = line in data and line in model
        global_name = isinstance(training.scope, cst.Module)  # every function sees it where it is
        if line not in stay and plain and (global_name or line.binds & left or both) and line in moved:
            stay.append(line)
        if line in stay:
            left |= line.mentions
    return _without_dead(training, [line for line in training.lines if line in stay], data, model)


def _without_dead(training: Training, stays: list[Line], data: list[Line], model: list[Line]) -> list[Line]:
    """The lines that stay without those that only served the session and the devices."""
    served = names_in(training.call) | (names_in(training.synchronous) if training.synchronous is not None else set())
    served |= set().union(*(line.mentions for line in training.lines if line not in stays))
    served |= training.around
    inside = {name for line in training.lines for name in line.mentions}
    elsewhere = [n.value for n in name_nodes(training.file.module)]
    while True:
        read = [training.file.code(n) for n in (training.spec, *training.task)] if training.spec is not None else []
        left = set().union(*(names_in(cst.parse_expression(text)) for text in read)) if read else set()
        left |= set().union(*(line.mentions - line.binds for line in stays)) if stays else set()
        left |= set().union(*(line.mentions for line in (*data, *model))) if data or model else set()
        left |= training.used_later()
        left |= names_in(cst.parse_expression(training.hooks)) if training.hooks else set()
        for key in ("checkpoint_dir", *sessions.CONFIG):
            left |= names_in(training.given[key]) if key in training.given else set()
        if isinstance(training.loop, cst.For):
            left |= names_in(training.loop.iter)
        own = [name for name in elsewhere if isinstance(training.scope, cst.Module) and name not in inside]
        dead = [
            line
            for line in stays
            if line.kind == "plain" and value_of(line.node) is not None and line.binds
            if line.binds <= served - left - set(own)
        ]
        if not dead:
            return stays
        stays = [line for line in stays if line not in dead]
