"""The text of the Estimator of a training by hand: its settings, its hooks, and the call that trains."""

from __future__ import annotations

import libcst as cst

from migrator.program.by_hand.cluster import is_sync_hook
from migrator.program.by_hand.edits import free_name
from migrator.program.by_hand.training import Training, appended, value_of
from migrator.program.calls import is_none
from migrator.program.parsed import Blocked
from migrator.rules import sessions


def estimator_lines(training: Training, tf: str, model_fn: str, input_fn: str) -> tuple[str, str]:
    """The lines of the Estimator and its training, and the Estimator's name."""
    given = training.given
    name = free_name(training, "estimator")
    for key in sessions.NOT_CARRIED:
        if not is_none(given.get(key)):
            raise Blocked("TFM760", given[key], f"`{key}` of the session is not carried over")
    config = []
    for key, setting in sessions.CONFIG.items():
        if not is_none(given.get(key)):
            config.append(f"{setting}={training.file.code(given[key])}")
    arguments = [model_fn]
    if not is_none(given.get("checkpoint_dir")):
        arguments.append(f"model_dir={training.file.code(given['checkpoint_dir'])}")
    if config:
        arguments.append(f"config={tf}.estimator.RunConfig({', '.join(config)})")
    train = [input_fn]
    if training.hooks:
        train.append(f"hooks={training.hooks}")
    if training.steps is not None:
        if training.server is not None:
            message = "every worker counts its own steps: give the session a StopAtStepHook, which counts all of them"
            raise Blocked("TFM762", training.loop, message)
        train.append(f"steps={training.steps}")
    line = f"{name} = {tf}.estimator.Estimator({', '.join(arguments)})\n"
    return f"{line}{name}.train({', '.join(train)})\n", name


def hooks_of(training: Training) -> str:
    """What the training is given as its hooks."""
    texts = []
    for key in ("hooks", "chief_only_hooks"):
        value = training.given.get(key)
        if is_none(value):
            continue
        assert value is not None
        new = _spelled_out(training, value)
        text = training.file.code(new)
        if text not in ("[]", "()"):
            texts.append(text)
    return " + ".join(texts)


def _spelled_out(training: Training, node: cst.BaseExpression) -> cst.BaseExpression:
    """A list of hooks in place of its name, without those that make workers wait for each other."""
    if isinstance(node, cst.Name):
        made = [line for line in training.lines if node.value in line.binds]
        value = value_of(made[0].node) if made else None
        first = value is not None and made[0].binds == {node.value}
        added = [appended(line.node) for line in made[1:] if line.kind != "removed"]
        if first and isinstance(value, cst.List) and all(one is not None for one in added):
            for line in made:
                line.kind = "removed"
            more = [cst.Element(one) for one in added if one is not None]
            elements = [e.with_changes(comma=cst.MaybeSentinel.DEFAULT) for e in value.elements] + more
            node = value.with_changes(elements=elements, lbracket=cst.LeftSquareBracket())
        elif first and isinstance(value, cst.Call) and len(made) == 1 and not is_sync_hook(training, node):
            made[0].kind = "removed"
            node = value
    if isinstance(node, cst.List):
        kept = [e for e in node.elements if not is_sync_hook(training, e.value)]
        new = [cst.Element(_spelled_out(training, e.value)) for e in kept]
        return cst.List(new)
    return node
