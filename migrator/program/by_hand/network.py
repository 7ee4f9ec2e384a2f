"""What of a training by hand belongs to the function that makes the model."""

from __future__ import annotations

import libcst as cst

from migrator.program.by_hand.batches import lines_behind
from migrator.program.by_hand.training import Line, Training, counted_step, methods_in, value_of
from migrator.program.calls import calls_in
from migrator.program.parsed import Blocked, names_in
from migrator.rules import sessions

# Methods that only compute, of tensors and arrays.
_PURE = (
    "get_shape",
    "as_list",
    "mean",
    "sum",
    "astype",
    "reshape",
    "format",
    "split",
    "join",
    "items",
    "keys",
    "values",
)


def read_network(training: Training) -> list[Line]:
    """The lines of the model_fn: what the train_op and its loss need, and what has effects of its own."""
    training.loss = _loss(training)
    batch = {training.features, training.labels}
    # What had the names of the batch before has nothing to do with the model.
    at = next(i for i, line in enumerate(training.lines) if line.node is training.next_line)
    for line in training.lines[:at]:
        if line.binds & batch and line.binds - batch:
            raise Blocked("TFM761", line.node, "the name of the batch has another value before: rename it")
    known = [line for i, line in enumerate(training.lines) if i > at or not line.binds & batch]
    needed = lines_behind(training, {training.loss, training.train_op}, known, "model")
    keep = [
        line for line in training.lines if line in needed or (line.kind == "graph" and not _is_idle(training, line))
    ]
    more = set().union(*(line.mentions for line in keep)) if keep else set()
    found = [line for line in training.lines if line in keep or line in lines_behind(training, more, known, "model")]
    for line in found:
        for name in sorted(line.mentions & training.gone):
            message = f"the training needs `{name}`, which collects something of every tower"
            raise Blocked("TFM766", training.origins.get(line.node, line.node), message)
    return found


def _loss(training: Training) -> str:
    """The name of the loss that is minimized."""
    for call in methods_in(training.maker.node):
        if call.func.attr.value == "minimize" and call.args and isinstance(call.args[0].value, cst.Name):
            return call.args[0].value.value
        for arg in call.args:
            if arg.keyword is not None and arg.keyword.value == "loss" and isinstance(arg.value, cst.Name):
                return arg.value.value
    for line in training.lines:
        for call in methods_in(line.node):
            if call.func.attr.value == "compute_gradients" and call.args and isinstance(call.args[0].value, cst.Name):
                return call.args[0].value.value
        for other in calls_in(line.node):
            if training.tf(other) == "tf.gradients" and other.args and isinstance(other.args[0].value, cst.Name):
                return other.args[0].value.value
    raise Blocked("TFM760", training.maker.node, "cannot tell which loss is minimized: assign it to a name")


def _is_idle(training: Training, line: Line) -> bool:
    """Whether a statement only computes something that nothing of the training needs."""
    if not isinstance(line.node, cst.SimpleStatementLine) or len(line.node.body) != 1:
        return False
    names = [training.tf(call) for call in calls_in(line.node)]
    if any(name is not None and name.startswith("tf.summary.") for name in names):
        return True
    if not isinstance(line.node.body[0], cst.Assign):
        return False
    called = [c.func for c in calls_in(line.node) if training.tf(c) is None]
    own = [one for one in called if not isinstance(one, cst.Attribute) or one.attr.value not in _PURE]
    return not own and not any(sessions.makes_variables(name) for name in names if name is not None)


def count_steps(training: Training) -> None:
    """Has the train_op count the steps, which Estimators need and programs with a plain session may leave out."""
    if training.tf(training.call) == sessions.SESSION:
        return
    line = training.maker
    call = next(c for c in methods_in(line.node) if c.func.attr.value in ("minimize", "apply_gradients"))
    counted = counted_step(call)
    step = cst.parse_expression(f"{training.tensorflow}.train.get_or_create_global_step()")
    if counted is None and len(call.args) == 1:
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
        given = cst.Arg(step, keyword=cst.Name("global_step"), equal=equal)
        wanted = cst.Call(call.func, [call.args[0].with_changes(comma=comma), given])
        new = line.node.deep_replace(call, wanted)
        assert isinstance(new, cst.BaseStatement)
        training.origins[new] = line.node
        line.node, line.mentions = new, names_in(new)
        return
    made = training.line_of(counted.value) if isinstance(counted, cst.Name) else None
    value = None if made is None else value_of(made.node)
    if made is not None and isinstance(value, cst.Call) and training.tf(value) == "tf.Variable" and value.args:
        if training.file.code(value.args[0].value) == "0":
            new = made.node.deep_replace(value, step)  # type: ignore[arg-type]
            assert isinstance(new, cst.BaseStatement)
            training.origins[new] = made.node
            made.node = new
