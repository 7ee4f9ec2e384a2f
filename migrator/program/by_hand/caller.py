"""The function that makes the server of a cluster, where another one trains: it calls that one, and tells it things.

`server = tf.train.Server(cluster, ...)`, `if job_name == "ps": server.join()` and `train(server, cluster)` in `main`:
the server goes, every task calls `train`, and what `main` knows of the cluster is said in the words of `train`.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrator.names.imports import dotted
from migrator.program.by_hand.session import body_of, flatten
from migrator.program.by_hand.training import Caller, Training, value_of
from migrator.program.calls import bind, calls_in
from migrator.program.parsed import Blocked, name_nodes, names_in
from migrator.program.scopes import bindings, path_to

SERVER = "tf.train.Server"


def find_caller(training: Training) -> None:
    """Finds the function that makes the server, if it is another one. Raises Blocked (TFM762)."""
    file, scope = training.file, training.scope
    servers = [call for call in calls_in(file.module) if training.tf(call) == SERVER]
    if len(servers) != 1 or not isinstance(scope, cst.FunctionDef) or path_to(scope, servers[0]):
        return
    server, name = servers[0], scope.name.value
    functions = [node for node in path_to(file.module, server) if isinstance(node, (cst.FunctionDef, cst.ClassDef))]
    outer = functions[0] if len(functions) == 1 else None
    if not isinstance(outer, cst.FunctionDef):
        message = f"the server is created neither in the training function nor in its caller: create it in `{name}`"
        raise Blocked("TFM762", server, message)
    calls = [call for call in calls_in(outer) if dotted(call.func) == name]
    mentioned = [node for node in name_nodes(file.module) if node.value == name]
    if len(calls) != 1 or len(mentioned) != 2:  # the definition and this call
        message = (
            f"the server is created here, but the training function `{name}` is not called exactly "
            "once, from here: create it in there"
        )
        raise Blocked("TFM762", server, message)
    call = calls[0]
    statement = next(n for n in reversed(path_to(outer, call)) if isinstance(n, cst.BaseStatement))
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 else None
    whole = small.value if isinstance(small, (cst.Expr, cst.Return)) else None
    if whole is not call or not isinstance(statement, cst.SimpleStatementLine):
        raise Blocked(
            "TFM762", call, f"the call of `{name}` shares its line with something else: put it on its own line"
        )
    here = Training(file, call, training.others)
    here.scope, here.session = outer, statement
    flatten(here, body_of(here))
    if here.joins is not None and training.joins is not None:
        raise Blocked("TFM760", training.joins, "parameter servers and workers are told apart twice")
    training.joins = training.joins or here.joins
    training.setter = training.setter or here.setter
    training.caller = Caller(here, call, statement, _given(scope, call), set())
    _take_server_out(training, training.caller, server)


def _given(scope: cst.FunctionDef, call: cst.Call) -> dict[str, cst.BaseExpression]:
    if not has_plain_parameters(scope):
        message = f"the training function `{scope.name.value}` has a decorator, or parameters other than plain ones"
        raise Blocked("TFM762", scope, message)
    return bind(call, [one.name.value for one in scope.params.params], scope.name.value, "TFM762")


def has_plain_parameters(function: cst.FunctionDef) -> bool:
    """Whether a function has no decorator, and only parameters that may be given by place or by keyword."""
    params = function.params
    stars = not isinstance(params.star_arg, cst.MaybeSentinel) or params.star_kwarg is not None
    return not (stars or params.kwonly_params or params.posonly_params or function.decorators)


def _take_server_out(training: Training, caller: Caller, server: cst.Call) -> None:
    """Takes the line of the server out, and notes what is given it. Raises Blocked (TFM762) where more uses it."""
    made = [line for line in caller.here.lines if value_of(line.node) is server]
    if len(made) != 1 or len(made[0].binds) != 1:
        raise Blocked("TFM762", server, "assign the server to a plain variable before the training function is called")
    made[0].kind = "removed"
    training.server = server
    names = made[0].binds
    caller.dropped |= {key for key, value in caller.given.items() if names_in(value) & names}
    for other in (*(line.node for line in caller.here.lines if line is not made[0]), *caller.here.suffix):
        if names_in(other) & names:
            raise Blocked("TFM762", other, "the server is used for more than joining it and training with it")


def say_there(training: Training, node: cst.BaseExpression, depth: int = 0) -> cst.BaseExpression:
    """An expression of the caller in the words of the function that it calls. Raises Blocked (TFM762)."""
    caller, scope = training.caller, training.scope
    if caller is None or not isinstance(scope, cst.FunctionDef):
        return node
    kept = {key: value for key, value in caller.given.items() if key not in caller.dropped}
    params = {param.name.value for param in scope.params.params}
    bound_there = [name for name, bound in bindings(scope) if not isinstance(bound, cst.Param)]
    bound_here = [name for name, _ in bindings(caller.here.scope)]
    if isinstance(node, cst.Name) and node.value == caller.cluster:
        return node
    for name in sorted(names_in(node)):
        if bound_here.count(name) > 1:
            raise Blocked("TFM762", node, f"`{name}` is reassigned in this function")
    whole = [key for key, value in kept.items() if training.file.code(value) == training.file.code(node)]
    if whole and whole[0] not in bound_there:
        return cst.Name(whole[0])
    new: cst.BaseExpression = node
    for one in name_nodes(node):
        same = [k for k, v in kept.items() if isinstance(v, cst.Name) and v.value == one.value]
        if one.value not in bound_here and one.value not in bound_there and one.value not in params:
            continue  # of the module
        if one.value in bound_here and same and same[0] not in bound_there:
            replaced = cst.Name(same[0]) if node is one else new.deep_replace(one, cst.Name(same[0]))
            assert isinstance(replaced, cst.BaseExpression)
            new = replaced
            continue
        value = caller.here.value_of(node.value) if isinstance(node, cst.Name) and depth < 3 else None
        if value is not None and not calls_in(value):
            return say_there(training, value, depth + 1)
        message = f"the training function `{scope.name.value}` does not receive `{training.file.code(node)}`: pass it"
        raise Blocked("TFM762", caller.call, message)
    return new


def pass_cluster_on(training: Training, spec: cst.BaseExpression) -> None:
    """Has a parameter that took the server take the cluster, where the function is not told of that."""
    caller, scope = training.caller, training.scope
    if caller is None or not isinstance(scope, cst.FunctionDef) or not isinstance(spec, cst.Name):
        return
    told = any(isinstance(value, cst.Name) and value.value == spec.value for value in caller.given.values())
    local = spec.value in {name for name, _ in bindings(caller.here.scope)}
    if local and not told and caller.dropped and spec.value not in names_in(scope):
        caller.cluster = spec.value


def parameters_told(training: Training, names: set[str], index: str) -> set[str]:
    """The parameters of the function that are given some names of the caller, or the text of an expression."""
    caller = training.caller
    if caller is None:
        return set()
    return {k for k, v in caller.given.items() if names_in(v) & names or index in training.file.code(v)}


def without_server(training: Training) -> tuple[list[cst.Param], cst.SimpleStatementLine]:
    """The parameters of the function that are left, and the statement that calls it without the others."""
    caller, scope = training.caller, training.scope
    assert caller is not None and isinstance(scope, cst.FunctionDef)
    replaced = next(iter(sorted(caller.dropped)), "") if caller.cluster else ""
    params, args = [], []
    for param in scope.params.params:
        name = param.name.value
        if name == replaced:
            params.append(param.with_changes(name=cst.Name(caller.cluster)))
        elif name not in caller.dropped:
            params.append(param)
    names = [param.name.value for param in scope.params.params]
    for place, arg in enumerate(caller.call.args):
        name = arg.keyword.value if arg.keyword is not None else names[place]
        if name == replaced:
            keyword = None if arg.keyword is None else cst.Name(caller.cluster)
            args.append(arg.with_changes(keyword=keyword, value=cst.Name(caller.cluster)))
        elif name not in caller.dropped:
            args.append(arg)
    if args:
        args[-1] = args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    statement = caller.statement.deep_replace(caller.call, caller.call.with_changes(args=args))
    assert isinstance(statement, cst.SimpleStatementLine)
    return [param.with_changes(comma=cst.MaybeSentinel.DEFAULT) for param in params], statement


def lines_told(training: Training) -> Sequence[cst.BaseStatement]:
    """The statements before the training, those of the function that calls it included."""
    before = training.caller.here.lines if training.caller is not None else []
    return [line.node for line in (*before, *training.lines)]
