"""Trainings in the session of a Supervisor, read as those of a MonitoredTrainingSession, which does the same.

A Supervisor initializes or restores, saves now and then, and ends when it is told to stop; so does that session. What
tells it to stop is the loop: by a count of its own, or by the count of the steps that it fetched. Loops of the other
session may end so, too.
"""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from migrator.program.by_hand.loop import fetched_names, maker_of, method_of_session
from migrator.program.by_hand.session import is_initializer
from migrator.program.by_hand.training import Supervisor, Training, counted_step, methods_in, value_of
from migrator.program.calls import bind, calls_in, is_none, nodes_in
from migrator.program.parsed import Blocked, names_in
from migrator.program.scopes import bindings
from migrator.rules import sessions

_MANAGED = ("managed_session", "prepare_or_wait_for_session")
_STOPS = ("stop", "request_stop")
_STEPS = ("tf.train.get_or_create_global_step", "tf.train.get_global_step", "tf.train.create_global_step")


def find_supervisor(training: Training) -> None:
    """Makes the call for the Supervisor's session the one to look for the training at. Raises Blocked (TFM733)."""
    call = training.call
    line = training.file.parents.get(training.file.parents.get(call, call), call)
    target = line.body[0].targets[0].target if _is_assignment(line) else None  # type: ignore[attr-defined]
    if not isinstance(target, cst.Name):
        raise Blocked(
            "TFM733", call, "assign the Supervisor to a plain variable: `supervisor = tf.train.Supervisor(...)`"
        )
    given = bind(call, sessions.SUPERVISOR_PARAMETERS, "tf.train.Supervisor", "TFM733")
    for one in calls_in(training.file.module):
        if training.tf(one) == "tf.train.SyncReplicasOptimizer":
            message = (
                "a SyncReplicasOptimizer in the session of a Supervisor is unsupported: write `with "
                "tf.train.MonitoredTrainingSession(master=server.target, is_chief=is_chief, "
                "hooks=[optimizer.make_session_run_hook(is_chief), "
                "tf.train.StopAtStepHook(last_step=n)]) as session:`, whose hook replaces the tokens, "
                "queue runner and initial operations"
            )
            raise Blocked("TFM764", one, message)
    for key in sessions.SUPERVISOR_NOT_CARRIED:
        if not is_none(given.get(key)):
            raise Blocked("TFM733", given[key], f"`{key}` of the Supervisor is unsupported")
    made = [one for one in calls_in(training.file.module) if _method(one, target.value) in _MANAGED]
    if len(made) != 1:
        place = made[1] if len(made) > 1 else call
        raise Blocked(
            "TFM733", place, "the Supervisor has no single `with supervisor.managed_session(...) as session:`"
        )
    training.supervisor = Supervisor(call, target.value, given)
    training.call = made[0]


def _is_assignment(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.SimpleStatementLine) and value_of(node) is not None


def _method(call: cst.Call, name: str) -> str | None:
    func = call.func
    if isinstance(func, cst.Attribute) and isinstance(func.value, cst.Name) and func.value.value == name:
        return func.attr.value
    return None


def given_to_session(training: Training) -> dict[str, cst.BaseExpression]:
    """What a MonitoredTrainingSession would be given. Raises Blocked (TFM733)."""
    supervisor = training.supervisor
    assert supervisor is not None
    for key in sessions.SUPERVISOR_INITIALIZERS:
        operation = supervisor.given.get(key)
        if operation is not None and not is_none(operation) and not is_initializer(training, operation):
            raise Blocked("TFM733", operation, f"`{key}` does more than initialize variables")
    given = bind(training.call, sessions.MANAGED_PARAMETERS, "the session of the Supervisor", "TFM733")
    found: dict[str, cst.BaseExpression] = {key: given[key] for key in ("master", "config") if key in given}
    names = {"is_chief": "is_chief", "logdir": "checkpoint_dir", "save_model_secs": "save_checkpoint_secs"}
    if "saver" in supervisor.given and is_none(supervisor.given["saver"]):
        del names["logdir"]  # of summaries only
    elif not is_none(supervisor.given.get("logdir")):
        _check_saves(training, supervisor.given)
    found |= {new: supervisor.given[old] for old, new in names.items() if old in supervisor.given}
    return found if training.stop is None else found | {"hooks": training.stop}


def _check_saves(training: Training, given: Mapping[str, cst.BaseExpression]) -> None:
    """Refuses checkpoints that are not written as the new program will: all variables, now and then."""
    saver = given.get("saver")
    if isinstance(saver, cst.Name):
        saver = training.value_of(saver.value) or saver
    plain = isinstance(saver, cst.Call) and training.tf(saver) == "tf.train.Saver"
    if saver is not None and not (plain and not _only_some(saver)):
        message = "the saver is not a `tf.train.Saver()` of all variables created here"
        raise Blocked("TFM733", given["saver"], message)
    seconds = given.get("save_model_secs")
    if seconds is not None and _mentions_zero(seconds):
        message = "cannot tell whether checkpoints are written (`save_model_secs=0`): remove it, or the `logdir`"
        raise Blocked("TFM733", seconds, message)


def _mentions_zero(node: cst.BaseExpression) -> bool:
    return any(isinstance(one, cst.Integer) and one.evaluated_value == 0 for one in nodes_in(node))


def _only_some(saver: cst.BaseExpression) -> bool:
    """Whether a Saver is told which variables it saves."""
    assert isinstance(saver, cst.Call)
    return any(arg.keyword is None or arg.keyword.value == "var_list" for arg in saver.args)


def read_stops(training: Training) -> None:
    """Leaves out of the loop what asks the Supervisor, or the count of the steps, whether it is over; the hook that
    stops there instead is left in `training.stop`. Raises Blocked (TFM733, or TFM760 without a Supervisor).
    """
    supervisor = training.supervisor
    if supervisor is not None:
        training.inside = [s for s in training.inside if _alone(s, supervisor.name) not in _STOPS]
        training.suffix = [s for s in training.suffix if _alone(s, supervisor.name) not in _STOPS]
    elif training.tf(training.call) != sessions.SESSION:
        return
    for statement in training.inside:
        if isinstance(statement, (cst.While, cst.For)) and (
            supervisor is not None or _ends_by_more(training, statement)
        ):
            new = _without_stops(training, statement)
            training.origins[new] = statement
            training.inside = [new if one is statement else one for one in training.inside]


def _ends_by_more(training: Training, loop: cst.While | cst.For) -> bool:
    """Whether the loop of a monitored session ends by something beside `not session.should_stop()`."""
    test = loop.test if isinstance(loop, cst.While) else None
    plain = (
        isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not) and _asks(training, test.expression)
    )
    more = test is not None and not plain
    return more or any(_breaks(one) is not None for one in loop.body.body if isinstance(one, cst.BaseStatement))


def _alone(statement: cst.BaseStatement, name: str) -> str | None:
    """The method of the Supervisor that a statement calls and does nothing else."""
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 else None
    return _method(small.value, name) if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call) else None


def _code(training: Training) -> str:
    return "TFM760" if training.supervisor is None else "TFM733"


def _without_stops(training: Training, loop: cst.While | cst.For) -> cst.While | cst.For:
    code = _code(training)
    if not isinstance(loop.body, cst.IndentedBlock):
        raise Blocked("TFM760", loop, "the loop is on one line: put its body on its own lines")
    counts = []
    kept = []
    for statement in loop.body.body:
        test = _breaks(statement) if isinstance(statement, cst.BaseStatement) else None
        if test is None:
            kept.append(statement)
        elif not _asks(training, test):
            counts.append((test, True))
    body = loop.body.with_changes(body=kept)
    if isinstance(loop, cst.For):
        if counts:
            raise Blocked(code, counts[0][0], "the loop ends by its own counter and by the global step: keep one")
        return loop.with_changes(body=body)
    tests = [loop.test]
    while tests:
        test = tests.pop()
        if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
            tests += [test.left, test.right]
        elif isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            if not _asks(training, test.expression):
                raise Blocked(code, test, "the end of the loop cannot be resolved")
        elif not (isinstance(test, cst.Name) and test.value == "True"):
            counts.append((test, False))
    if len(counts) > 1:
        raise Blocked(code, counts[1][0], "two counters end the loop: keep one")
    if counts:
        count = _last_step(training, loop, *counts[0])
        if isinstance(count, cst.For):
            return count.with_changes(body=_uncounted(body, count))
        hook = f"{training.tensorflow}.train.StopAtStepHook(last_step={training.file.code(count)})"
        training.stop = cst.List([cst.Element(cst.parse_expression(hook))])
    stop = cst.parse_expression(f"not {training.session_name}.should_stop()")
    return loop.with_changes(test=stop, body=body)


def _breaks(statement: cst.BaseStatement) -> cst.BaseExpression | None:
    """The condition of a statement that only ends the loop."""
    if not isinstance(statement, cst.If) or statement.orelse is not None:
        return None
    inside = statement.body.body
    lines = inside[0].body if len(inside) == 1 and isinstance(inside[0], cst.SimpleStatementLine) else inside
    return statement.test if len(lines) == 1 and isinstance(lines[0], cst.Break) else None


def _asks(training: Training, node: cst.BaseExpression) -> bool:
    name = training.session_name if training.supervisor is None else training.supervisor.name
    return isinstance(node, cst.Call) and _method(node, name) == "should_stop"


def _last_step(
    training: Training, loop: cst.While, test: cst.BaseExpression, after: bool
) -> cst.BaseExpression | cst.For:
    """The count of steps in `step < n` (before a step) or `step >= n` (`after` it).

    A loop over a range, where the loop counts by itself. Raises Blocked (TFM733, TFM760).
    """
    code, message = (
        _code(training),
        "the loop ends by something other than its session or the number of steps: write `while step < n`",
    )
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        raise Blocked(code, test, message)
    only = test.comparisons[0]
    wanted = cst.GreaterThanEqual if after else cst.LessThan
    if not isinstance(test.left, cst.Name) or not isinstance(only.operator, wanted):
        raise Blocked(code, test, message)
    changing = {name for name, _ in bindings(loop)}
    if names_in(only.comparator) & changing:
        raise Blocked(code, test, message)
    inside = {name for statement in training.inside for name, _ in bindings(statement)}
    if names_in(only.comparator) & inside:
        raise Blocked(code, test, "the number of steps is set inside the session: set it before")
    if _is_step(training, loop, test.left.value):
        return only.comparator
    if not after and _counts_itself(training, loop, test.left.value):
        range_of = cst.Call(cst.Name("range"), [cst.Arg(only.comparator)])
        return cst.For(test.left, range_of, loop.body, leading_lines=loop.leading_lines)
    message = (
        f"cannot tell that `{test.left.value}` counts the steps: fetch the global step with the "
        f"train_op (`_, {test.left.value} = session.run([train_op, global_step])`)"
    )
    raise Blocked(code, test, message)


def _counts_itself(training: Training, loop: cst.While, name: str) -> bool:
    """Whether a name is 0 before the loop, and one more after each of its turns."""
    before = [line.node for line in training.lines if name in line.binds]
    before += [one for one in training.inside if one is not loop and name in {bound for bound, _ in bindings(one)}]
    start = value_of(before[0]) if len(before) == 1 else None
    counted = [one for one in loop.body.body if isinstance(one, cst.BaseStatement) and _counts_one(one, name)]
    once = [bound for bound, _ in bindings(loop)].count(name) == 1 and len(counted) == 1
    return once and isinstance(start, cst.Integer) and start.value == "0"


def _counts_one(statement: cst.BaseStatement, name: str) -> bool:
    """Whether a statement is `name += 1`."""
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 else None
    if not isinstance(small, cst.AugAssign) or not isinstance(small.operator, cst.AddAssign):
        return False
    one = isinstance(small.value, cst.Integer) and small.value.value == "1"
    return one and isinstance(small.target, cst.Name) and small.target.value == name


def _uncounted(body: cst.IndentedBlock, loop: cst.For) -> cst.IndentedBlock:
    """The body of a loop without the line that counts its turns."""
    assert isinstance(loop.target, cst.Name)
    name = loop.target.value
    return body.with_changes(
        body=[one for one in body.body if not (isinstance(one, cst.BaseStatement) and _counts_one(one, name))]
    )


def _is_step(training: Training, loop: cst.CSTNode, name: str) -> bool:
    """Whether a name of the loop is the count of the steps that its session gave, and that the train_op counts."""
    if [bound for bound, _ in bindings(loop)].count(name) != 1:
        return False
    for statement in training.inside:
        for line in [statement, *getattr(getattr(statement, "body", None), "body", ())]:
            small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
            run = small.value if isinstance(small, cst.Assign) and isinstance(small.value, cst.Call) else None
            if not isinstance(small, cst.Assign) or run is None or method_of_session(training, run) != "run":
                continue
            target = small.targets[0].target
            if not run.args or not isinstance(target, cst.Tuple):
                continue
            given = [e.value.value if isinstance(e.value, cst.Name) else "" for e in target.elements]
            asked = fetched_names(run.args[0].value)
            if name in given and len(given) == len(asked):
                return _counts(training, asked[given.index(name)], asked)
    return False


def _counts(training: Training, step: str, fetched: list[str]) -> bool:
    """Whether a name is the global step, and one of the fetched operations a train_op that counts it."""
    value = training.value_of(step)
    known = isinstance(value, cst.Call) and training.tf(value)
    if known == "tf.Variable" and isinstance(value, cst.Call):
        first = value.args[0].value if value.args else None
        known = isinstance(first, cst.Integer) and first.value == "0" and _STEPS[0]
    makers = [maker for maker in (maker_of(training, name) for name in fetched) if maker is not None]
    if known not in _STEPS or len(makers) != 1:
        return False
    for call in methods_in(makers[0].node):
        given = counted_step(call)
        if isinstance(given, cst.Name) and given.value == step:
            return True
    return False
