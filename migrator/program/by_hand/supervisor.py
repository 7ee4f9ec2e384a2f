"""Trainings in the session of a Supervisor, read as those of a MonitoredTrainingSession, which does the same.

A Supervisor initializes or restores, saves now and then, and ends when it is told to stop; so does that session. What
tells it to stop is the loop: by a count of its own, or by the count of the steps that it fetched.
"""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst
from libcst import matchers as m

from migrator.program.by_hand.loop import fetched_names, maker_of, method_of_session
from migrator.program.by_hand.session import is_initializer
from migrator.program.by_hand.training import Supervisor, Training, counted_step, methods_in, value_of
from migrator.program.calls import bind, calls_in, is_none
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
        raise Blocked("TFM733", call, "the Supervisor is not given one name: `supervisor = tf.train.Supervisor(...)`")
    given = bind(call, sessions.SUPERVISOR_PARAMETERS, "tf.train.Supervisor", "TFM733")
    for key in sessions.SUPERVISOR_NOT_CARRIED:
        if not is_none(given.get(key)):
            raise Blocked("TFM733", given[key], f"`{key}` of the Supervisor is not carried over")
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
        message = "the saver is not a `tf.train.Saver()` of all variables that is made here"
        raise Blocked("TFM733", given["saver"], message)
    seconds = given.get("save_model_secs")
    if seconds is not None and _mentions_zero(seconds):
        message = "whether checkpoints are written is not known (`save_model_secs=0`): leave it out, or the `logdir`"
        raise Blocked("TFM733", seconds, message)


def _mentions_zero(node: cst.BaseExpression) -> bool:
    return any(isinstance(one, cst.Integer) and one.evaluated_value == 0 for one in m.findall(node, m.Integer()))


def _only_some(saver: cst.BaseExpression) -> bool:
    """Whether a Saver is told which variables it saves."""
    assert isinstance(saver, cst.Call)
    return any(arg.keyword is None or arg.keyword.value == "var_list" for arg in saver.args)


def read_stops(training: Training) -> None:
    """Leaves out of the loop what asks the Supervisor, or the count of the steps, whether it is over; the hook that
    stops there instead is left in `training.stop`. Raises Blocked (TFM733).
    """
    supervisor = training.supervisor
    if supervisor is None:
        return
    training.inside = [s for s in training.inside if _alone(s, supervisor.name) not in _STOPS]
    training.suffix = [s for s in training.suffix if _alone(s, supervisor.name) not in _STOPS]
    for statement in training.inside:
        if isinstance(statement, cst.While | cst.For):
            new = _without_stops(training, supervisor, statement)
            training.origins[new] = statement
            training.inside = [new if one is statement else one for one in training.inside]


def _alone(statement: cst.BaseStatement, name: str) -> str | None:
    """The method of the Supervisor that a statement calls and does nothing else."""
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 else None
    return _method(small.value, name) if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call) else None


def _without_stops(training: Training, supervisor: Supervisor, loop: cst.While | cst.For) -> cst.While | cst.For:
    if not isinstance(loop.body, cst.IndentedBlock):
        raise Blocked("TFM760", loop, "the loop stands on one line")
    counts = []
    kept = []
    for statement in loop.body.body:
        test = _breaks(statement)
        if test is None:
            kept.append(statement)
        elif not _asks(supervisor, test):
            counts.append(_last_step(training, loop, test, after=True))
    body = loop.body.with_changes(body=kept)
    if isinstance(loop, cst.For):
        if counts:
            raise Blocked("TFM733", counts[0], "the loop ends by its own count and by that of the steps: keep one")
        return loop.with_changes(body=body)
    tests = [loop.test]
    while tests:
        test = tests.pop()
        if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
            tests += [test.left, test.right]
        elif isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            if not _asks(supervisor, test.expression):
                raise Blocked("TFM733", test, "the loop ends by something that is not known here")
        elif not (isinstance(test, cst.Name) and test.value == "True"):
            counts.append(_last_step(training, loop, test, after=False))
    if len(counts) > 1:
        raise Blocked("TFM733", counts[1], "the loop ends by two counts: keep one")
    if counts:
        hook = f"{training.tensorflow}.train.StopAtStepHook(last_step={training.file.code(counts[0])})"
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


def _asks(supervisor: Supervisor, node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and _method(node, supervisor.name) == "should_stop"


def _last_step(training: Training, loop: cst.CSTNode, test: cst.BaseExpression, after: bool) -> cst.BaseExpression:
    """The count of steps in `step < n` (before a step) or `step >= n` (`after` it). Raises Blocked (TFM733)."""
    message = "the loop ends by something else than the Supervisor or the number of steps: `while step < n`"
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        raise Blocked("TFM733", test, message)
    only = test.comparisons[0]
    wanted = cst.GreaterThanEqual if after else cst.LessThan
    if not isinstance(test.left, cst.Name) or not isinstance(only.operator, wanted):
        raise Blocked("TFM733", test, message)
    changing = {name for name, _ in bindings(loop)}
    if names_in(only.comparator) & changing or not _is_step(training, loop, test.left.value):
        raise Blocked("TFM733", test, message)
    inside = {name for statement in training.inside for name, _ in bindings(statement)}
    if names_in(only.comparator) & inside:
        raise Blocked("TFM733", test, "how many steps the loop takes is said inside the session: say it before it")
    return only.comparator


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
