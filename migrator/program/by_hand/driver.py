"""The text of the Estimator of a training by hand: its settings, its hooks, and the call that trains."""

from __future__ import annotations

import libcst as cst

from migrator.findings import Severity
from migrator.program.by_hand.cluster import is_sync_hook
from migrator.program.by_hand.edits import free_name
from migrator.program.by_hand.session import is_initializer
from migrator.program.by_hand.training import Training, appended, value_of
from migrator.program.calls import is_none
from migrator.program.parsed import Blocked
from migrator.rules import sessions
from migrator.rules.scaffolds import SCAFFOLDS, read_scaffolds


def estimator_lines(training: Training, tf: str, model_fn: str, input_fn: str) -> tuple[str, str]:
    """The lines of the Estimator and its training, and the Estimator's name."""
    given = training.given
    name = free_name(training, "estimator")
    _check_scaffold(training)
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
            message = "every worker counts only its own steps: use a StopAtStepHook, which counts all of them"
            if training.supervisor is not None:
                message = (
                    "every worker counts only its own steps: fetch the global step, which counts all of "
                    "them, with the train_op (`_, step = session.run([train_op, global_step])`), and loop "
                    "`while step < n:`"
                )
            raise Blocked("TFM762", training.loop, message)
        train.append(f"steps={training.steps}")
    line = f"{name} = {tf}.estimator.Estimator({', '.join(arguments)})\n"
    return f"{line}{name}.train({', '.join(train)})\n", name


def _check_scaffold(training: Training) -> None:
    """Leaves a scaffold out that only initializes, or says how checkpoints are kept. Raises Blocked (TFM760, 855)."""
    given = training.given.get("scaffold")
    if given is None or is_none(given):
        return
    made = training.value_of(given.value) if isinstance(given, cst.Name) else given
    if not isinstance(made, cst.Call) or training.tf(made) not in SCAFFOLDS:
        raise Blocked(
            "TFM760", given, "the scaffold of the session is not a single `tf.train.Scaffold(...)` created here"
        )
    plain = [
        arg
        for arg in made.args
        if arg.keyword is None
        or arg.keyword.value not in ("init_op", "local_init_op")
        or not is_initializer(training, arg.value)
    ]
    assert isinstance(training.scope, (cst.FunctionDef, cst.Module))
    kept = made.with_changes(args=plain)
    _, remarks = read_scaffolds(training.file, training.scope, [{"scaffold": kept}])
    for remark in remarks:
        if remark.code != "TFM854":
            raise Blocked("TFM760", given, "this scaffold does more than keep checkpoints, and is unsupported")
        training.said.append(training.file.finding("TFM854", Severity.REVIEW, given, remark.message))


def hooks_of(training: Training) -> str:
    """What the training is given as its hooks."""
    texts = []
    # Of a Supervisor it is among the hooks that are given.
    stop = training.stop if training.supervisor is None else None
    for key in ("hooks", "chief_only_hooks"):
        value = training.given.get(key)
        if is_none(value):
            continue
        assert value is not None
        new = _spelled_out(training, value)
        if stop is not None and isinstance(new, cst.List):
            elements = [one.with_changes(comma=cst.MaybeSentinel.DEFAULT) for one in (*stop.elements, *new.elements)]
            new, stop = new.with_changes(elements=elements), None
        text = training.file.code(new)
        if text not in ("[]", "()"):
            texts.append(text)
    if stop is not None:
        texts.insert(0, training.file.code(stop))
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
