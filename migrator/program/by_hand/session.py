"""The way to the session of a training by hand: the statements before it, through blocks of devices and graphs."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrator.names.imports import dotted
from migrator.program.by_hand.training import Line, Training, value_of
from migrator.program.calls import calls_in, string
from migrator.program.devices import SETTER, check_setter
from migrator.program.parsed import Blocked, names_in
from migrator.program.scopes import bindings, free_names, path_to
from migrator.rules import sessions


def find_session(training: Training) -> None:
    """Finds the `with` of the session and what stands before and after it. Raises Blocked (TFM760, TFM762)."""
    call = training.call
    around = path_to(training.file.module, call)
    functions = [n for n in around if isinstance(n, cst.FunctionDef)]
    if len(functions) > 1 or any(isinstance(n, cst.ClassDef) for n in around):
        raise Blocked(
            "TFM760", call, "the session is created in a class or a nested function: train in a plain function"
        )
    training.scope = functions[0] if functions else training.file.module
    session = next((n for n in reversed(around) if isinstance(n, cst.With)), None)
    if session is None or session.items[0].item is not call or session.items[0].asname is None:
        raise Blocked("TFM760", call, "create the session with `with ... as session:`")
    if len(session.items) != 1 or not isinstance(session.items[0].asname.name, cst.Name):
        raise Blocked("TFM760", call, "the `with` of the session has several items: put it on its own line")
    training.session = session
    training.session_name = session.items[0].asname.name.value
    inside = session.body.body if isinstance(session.body, cst.IndentedBlock) else ()
    flatten(training, body_of(training))
    plain = training.tf(call) == sessions.PLAIN
    statements = [one for one in inside if isinstance(one, cst.BaseStatement)]
    training.inside = [one for one in statements if not (plain and _initializes(training, one))]


def _initializes(training: Training, statement: cst.BaseStatement) -> bool:
    """Whether a statement only runs what initializes variables, or makes what the session saves with."""
    value = value_of(statement)
    if isinstance(value, cst.Call) and training.tf(value) in sessions.LEFT_OUT:
        training.lines.append(Line(statement, {name for name, _ in bindings(statement)}, set(), "removed"))
        return True
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 else None
    call = small.value if isinstance(small, cst.Expr) else None
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or call.func.attr.value != "run":
        return False
    if is_initializer(training, call.func.value):
        return not call.args
    given = call.args[0].value if len(call.args) == 1 else None
    parts = [e.value for e in given.elements] if isinstance(given, (cst.List, cst.Tuple)) else [given]
    of_session = isinstance(call.func.value, cst.Name) and call.func.value.value == training.session_name
    return of_session and all(part is not None and is_initializer(training, part) for part in parts)


def is_initializer(training: Training, node: cst.BaseExpression) -> bool:
    """Whether an expression is an operation that initializes all variables."""
    if isinstance(node, cst.Name):
        value = training.value_of(node.value)
        return value is not None and not isinstance(value, cst.Name) and is_initializer(training, value)
    if not isinstance(node, cst.Call):
        return False
    grouped = training.tf(node) == "tf.group" and node.args
    if grouped:
        return all(is_initializer(training, arg.value) for arg in node.args)
    return training.tf(node) in sessions.INITIALIZERS


def body_of(training: Training) -> Sequence[cst.BaseStatement]:
    """The statements of the function, or module, that holds the training. Raises Blocked (TFM760)."""
    scope = training.scope
    if isinstance(scope, cst.Module):
        return scope.body
    if not isinstance(scope.body, cst.IndentedBlock):
        raise Blocked("TFM760", training.call, "the training is on the line of its `def`: put it on its own line")
    return scope.body.body


def flatten(training: Training, body: Sequence[cst.BaseStatement]) -> bool:
    """Collects the statements before the session, those in blocks around graph and devices too; whether it came."""
    for index, statement in enumerate(body):
        if statement is training.session:
            training.suffix = [*body[index + 1 :], *training.suffix]
            return True
        holds = bool(path_to(statement, training.session))
        inner = _block(training, statement, holds)
        if inner is not None:
            if flatten(training, inner):
                training.suffix = [*training.suffix, *body[index + 1 :]]
                return True
        elif holds:
            raise Blocked("TFM760", statement, "the training is in a block that cannot be resolved")
        else:
            defines = isinstance(statement, cst.FunctionDef)
            mentions = free_names(statement) if defines else names_in(statement)  # type: ignore[arg-type]
            own = [] if isinstance(statement, (cst.FunctionDef, cst.ClassDef)) else bindings(statement)
            # `tf.gfile.MakeDirs(...)` as a statement changes nothing of `tf`.
            binds = {name for name, _ in own if not _is_tensorflow(training, name)}
            if isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
                binds = {statement.name.value}
            training.lines.append(Line(statement, binds, mentions))
    return False


def _is_tensorflow(training: Training, name: str) -> bool:
    return training.file.imports.names.get(name, "").partition(".")[0] == "tensorflow"


def _block(training: Training, statement: cst.BaseStatement, holds: bool) -> Sequence[cst.BaseStatement] | None:
    """What a block around devices, graphs or jobs holds; None for any other statement."""
    if isinstance(statement, cst.With) and isinstance(statement.body, cst.IndentedBlock):
        if all(_places_only(training, item.item) or _names_only(training, item) for item in statement.items):
            return statement.body.body
    if isinstance(statement, cst.If) and _is_server(training, statement.test):
        if training.joins is not None:
            raise Blocked("TFM760", statement, "parameter servers and workers are told apart twice")
        training.joins = statement
        joined = [call for call in calls_in(statement.body) if (dotted(call.func) or "").endswith(".join")]
        inside = statement.body.body if isinstance(statement.body, cst.IndentedBlock) else ()
        # What stands behind the call is never run: a server waits for ever.
        if len(joined) != 1 or not inside or joined[0] not in calls_in(inside[0]):
            raise Blocked("TFM762", statement, "the branch of parameter servers does more than `server.join()`")
        other = statement.orelse
        if isinstance(other, cst.If):
            if other.orelse is not None:
                raise Blocked("TFM760", other, "jobs other than `ps` and `worker` are unsupported")
            return other.body.body if isinstance(other.body, cst.IndentedBlock) else None
        if isinstance(other, cst.Else) and isinstance(other.body, cst.IndentedBlock):
            return other.body.body
        return []
    return None


def _places_only(training: Training, node: cst.BaseExpression) -> bool:
    """Whether a `with` only says where operations are: the devices of a cluster, or a new graph."""
    if not isinstance(node, cst.Call):
        return False
    training.around |= names_in(node)
    if isinstance(node.func, cst.Attribute) and node.func.attr.value == "as_default":
        return isinstance(node.func.value, cst.Call) and training.tf(node.func.value) == "tf.Graph"
    if training.tf(node) != "tf.device" or len(node.args) != 1:
        return False
    given = node.args[0].value
    if isinstance(given, cst.Name):
        given = training.value_of(given.value) or given
    if isinstance(given, cst.Call) and training.tf(given) == SETTER:
        check_setter(given, "TFM762")
        training.setter = True
        return True
    text = string(given)
    return text is not None and text.lower().rstrip("0123456789").rstrip(":").rsplit(":", 1)[-1].strip("/") in (
        "cpu",
        "gpu",
    )


def _names_only(training: Training, item: cst.WithItem) -> bool:
    """Whether an item of a `with` only goes on in the scope that there is, as around a loop over towers."""
    call = item.item
    if item.asname is not None or not isinstance(call, cst.Call) or training.tf(call) != "tf.variable_scope":
        return False
    first = call.args[0].value if len(call.args) == 1 else None
    return isinstance(first, cst.Call) and training.tf(first) == "tf.get_variable_scope"


def _is_server(training: Training, node: cst.BaseExpression) -> bool:
    """Whether a condition is that this task is a parameter server."""
    if not isinstance(node, cst.Comparison) or len(node.comparisons) != 1:
        return False
    only = node.comparisons[0]
    return isinstance(only.operator, cst.Equal) and "ps" in (string(node.left), string(only.comparator))
