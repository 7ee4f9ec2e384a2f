"""Towers: a loop that builds the same network on every GPU, averages the gradients of all, and applies them once.

Every tower takes its part of a batch, or a batch of its own, and the mean of the towers' gradients is that of the whole
batch where the loss is a mean over examples (measured: two towers of 16 examples, an Estimator under MirroredStrategy
and a batch of 32 agree to 1e-7, guides.md §4). So one tower on the whole batch takes the place of the loop, and the
replicas of a MirroredStrategy divide the batch again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst

from migrator.names.imports import dotted
from migrator.pairing import equal_zip
from migrator.program.by_hand.averages import averages_towers
from migrator.program.by_hand.caller import has_plain_parameters
from migrator.program.by_hand.kinds import returns_next
from migrator.program.by_hand.means import check_mean, simple_lines
from migrator.program.by_hand.training import Line, Training, appended, methods_in, value_of
from migrator.program.calls import bind, calls_in, is_none
from migrator.program.parsed import Blocked, name_nodes, names_in
from migrator.program.scopes import bindings, path_to

_SPLIT = ("value", "num_or_size_splits", "axis", "num", "name")
_SCOPE = ("name_or_scope", "default_name", "values", "initializer", "regularizer", "caching_device", "partitioner")


@dataclass
class _Tower:
    """The loop over the towers: its index, how many there are (source text), what its names stand for."""

    node: cst.For
    index: str
    count: str
    before: list[Line]
    names: set[str] = field(default_factory=set)  # of scopes, which only name things
    reuses: bool = False
    outside: list[cst.BaseStatement] = field(default_factory=list)  # of what shares the variables


@dataclass(frozen=True)
class OneTower:
    """What stands in the place of the towers: its lines, and what of it each list held of all of them, by list."""

    lines: list[Line]
    lists: Mapping[str, str]


def inline_towers(training: Training) -> OneTower | None:
    """Puts one tower, which gets the whole batch, in the place of a loop over towers. Raises Blocked (TFM766-769)."""
    loops = [line for line in training.lines if _is_loop(training, line.node)]
    if not loops:
        return None
    training.lines = [one for line in training.lines for one in _apart(training, line)]
    if len(loops) > 1:
        raise Blocked("TFM766", loops[1].node, "there is a second loop over the devices: build the towers in one")
    at = training.lines.index(loops[0])
    assert isinstance(loops[0].node, cst.For)
    tower = _read(training, loops[0].node, training.lines[:at])
    loop = _with_computed(training, loops[0].node, training.lines[at + 1 :])
    body = loop.body.body if isinstance(loop.body, cst.IndentedBlock) else ()
    statements = _opened(training, tower, [one for one in body if isinstance(one, cst.BaseStatement)], False)
    _check_shared(training, tower)
    statements = _without_scopes(training, tower, statements)
    splits = _splits(training, tower)
    statements = [_replaced(one, _Parts(training, tower, splits)) for one in statements]
    statements, lists = _without_lists(tower, statements)
    gradients, place = _gradients(tower, statements, lists)
    after = training.lines[at + 1 :]
    after, renamed = _averaged(training, place, after, {name for one in statements for name, _ in bindings(one)})
    made = [_renamed(one, gradients, renamed) for one in statements] if renamed else statements
    lines = [Line(one, {name for name, _ in bindings(one)}, names_in(one)) for one in made]
    _check_draws(training, tower, lines)
    for line in lines:
        left = line.mentions & {tower.index, *tower.names, *splits}
        if left & tower.names:
            message = (
                f"`{sorted(left & tower.names)[0]}`, the scope of a tower, is used in it: if a "
                "collection of this scope gives its losses, add them up where they are created, and "
                "remove the scope"
            )
            raise Blocked("TFM766", tower.node, message)
        if left:
            message = (
                f"`{sorted(left)[0]}` makes this differ between towers: a tower may only select its part of the batch"
            )
            raise Blocked("TFM766", tower.node, message)
    check_mean(training, lines)
    used = {name for line in (*lines, *after) for name in line.mentions}
    gone = {*lists, *(set(splits) - used)}
    before = [line for line in training.lines[:at] if not line.binds <= gone or not line.binds]
    before = [_cut(training, line, gone) if line.binds & gone else line for line in before]
    for line in lines:
        training.origins[line.node] = tower.node
    training.lines = [*before, *lines, *after]
    training.towers = tower.count
    # A list may have given its name to what one tower computes.
    training.gone |= set(lists) - {name for line in lines for name in line.binds}
    training.whole = not any("get_next" in [c.func.attr.value for c in methods_in(line.node)] for line in lines)
    held = {name: value.value if isinstance(value, cst.Name) else name for name, value in lists.items()}
    return OneTower(lines, {name: value for name, value in held.items() if name != place[0]})


def _with_computed(training: Training, loop: cst.For, after: list[Line]) -> cst.For:
    """The loop with `optimizer.compute_gradients(loss)` where it says the same by `tf.gradients`.

    `grads = tf.gradients(loss, tvars)`, then `towers.append(zip(grads, tvars))`, where `tvars` is all that is trained.
    """
    lines = [line for statement in loop.body.body for line in simple_lines(statement)]
    applied = [c for line in after for c in methods_in(line.node) if c.func.attr.value == "apply_gradients"]
    optimizer = applied[0].func.value if len(applied) == 1 and isinstance(applied[0].func, cst.Attribute) else None
    for line in lines:
        pairs = appended(line)
        if isinstance(pairs, cst.Call) and dotted(pairs.func) == "list" and len(pairs.args) == 1:
            pairs = pairs.args[0].value
        names = [arg.value for arg in pairs.args] if isinstance(pairs, cst.Call) else []
        if not isinstance(pairs, cst.Call) or dotted(pairs.func) != "zip" or len(names) != 2:
            continue
        made = [_made_once(training, loop, lines, after, name) for name in names]
        taken, trained = (value_of(one) if one is not None else None for one in made)
        if not isinstance(taken, cst.Call) or training.tf(taken) != "tf.gradients" or len(taken.args) != 2:
            continue
        every = isinstance(trained, cst.Call) and training.tf(trained) == "tf.trainable_variables" and not trained.args
        plain = all(arg.keyword is None and not arg.star for arg in taken.args)
        of_them = training.file.code(taken.args[1].value) == training.file.code(names[1])
        if not every or not plain or not of_them or not isinstance(optimizer, cst.Name):
            continue
        start = next(number for number, one in enumerate(lines) if one is made[1])
        between = [one for one in lines[start + 1 : lines.index(line)] if one is not made[0]]
        if any(calls_in(one) for one in between) or made[0] in lines[:start]:
            continue  # what is called may make variables that are not among those asked for
        loss = taken.args[0].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        new = cst.Call(cst.Attribute(optimizer, cst.Name("compute_gradients")), [loss])
        small = line.body[0]
        assert isinstance(small, cst.Expr) and isinstance(small.value, cst.Call)
        appends = small.value.with_changes(args=[cst.Arg(new)])
        new_line = line.with_changes(body=[small.with_changes(value=appends)])
        changed = _replaced(loop, _Lines({line: new_line, **{one: None for one in made if one is not None}}))
        assert isinstance(changed, cst.For)
        return changed
    return loop


def _made_once(
    training: Training,
    loop: cst.For,
    lines: list[cst.SimpleStatementLine],
    after: list[Line],
    node: cst.BaseExpression,
) -> cst.SimpleStatementLine | None:
    """The line of a loop that gives a name its value, where it is for the gradients of this loop alone."""
    if not isinstance(node, cst.Name) or _is_read([line.node for line in after], node.value):
        return None
    bound = [line for line in lines if any(name == node.value for name, _ in bindings(line))]
    known = bound[0] if len(bound) == 1 and value_of(bound[0]) is not None else None
    readers = [line for line in lines if node.value in names_in(line) and line is not known]
    mentions = sum(name.value == node.value for name in name_nodes(loop))
    if known is None or mentions != 1 + sum(n.value == node.value for line in readers for n in name_nodes(line)):
        return None
    kinds = [appended(line) is not None or _takes(training, line) for line in readers]
    return known if all(kinds) and len(readers) <= 2 else None


def _is_read(statements: Sequence[cst.CSTNode], name: str) -> bool | None:
    """Whether statements read what a name stands for before them; None where they neither do nor give it a value."""
    for statement in statements:
        if name not in names_in(statement):
            continue
        if isinstance(statement, cst.If) and name not in names_in(statement.test):
            branches = [statement.body, *([] if statement.orelse is None else [statement.orelse])]
            found = [_is_read([one] if isinstance(one, cst.If) else _statements(one), name) for one in branches]
            if any(found):
                return True
            if len(found) == 2 and found == [False, False]:
                return False
            continue
        value = value_of(statement)
        given = [target for target, _ in bindings(statement)] == [name]
        return not (given and value is not None and name not in names_in(value))
    return None


def _statements(block: cst.CSTNode) -> Sequence[cst.CSTNode]:
    inner = block.body if isinstance(block, cst.Else) else block
    return inner.body if isinstance(inner, cst.IndentedBlock) else [inner]


def _takes(training: Training, line: cst.BaseStatement) -> bool:
    value = value_of(line)
    return isinstance(value, cst.Call) and training.tf(value) == "tf.gradients"


class _Lines(cst.CSTTransformer):
    """Puts lines in the places of others, or takes them out (None)."""

    def __init__(self, new: Mapping[cst.CSTNode, cst.SimpleStatementLine | None]) -> None:
        super().__init__()
        self.new = new

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.RemovalSentinel:
        if original_node not in self.new:
            return updated_node
        new = self.new[original_node]
        return cst.RemoveFromParent() if new is None else new


def _check_draws(training: Training, tower: _Tower, lines: list[Line]) -> None:
    """A tower may draw from the iterator of all; one of its own would begin with the same batch in every tower."""
    ready = {name for line in tower.before for name in line.binds}
    for line in lines:
        own = [
            call
            for call in calls_in(line.node)
            if (training.tf(call) or "").startswith(("tf.data.", "tf.contrib.data."))
        ]
        makes = [call for call in methods_in(line.node) if call.func.attr.value.startswith("make_")]
        if own or makes or returns_next(training, line.node):
            raise Blocked("TFM766", tower.node, "every tower has its own iterator, and so the same batches")
        for call in methods_in(line.node):
            drawn = call.func.attr.value == "get_next"
            if drawn and not (isinstance(call.func.value, cst.Name) and call.func.value.value in ready):
                raise Blocked("TFM766", tower.node, "the towers create the data that they draw their batches from")


def _apart(training: Training, line: Line) -> list[Line]:
    """`gradients, losses = [], []` as two lines; any other line as it is."""
    small = line.node.body[0] if isinstance(line.node, cst.SimpleStatementLine) and len(line.node.body) == 1 else None
    if not isinstance(small, cst.Assign) or len(small.targets) != 1 or not isinstance(small.value, cst.Tuple):
        return [line]
    target, values = small.targets[0].target, [element.value for element in small.value.elements]
    names = [element.value for element in target.elements] if isinstance(target, cst.Tuple) else []
    empty = all(isinstance(value, cst.List) and not value.elements for value in values)
    if not empty or len(names) != len(values) or not all(isinstance(name, cst.Name) for name in names):
        return [line]
    found = []
    for name, value in equal_zip(names, values):
        assert isinstance(name, cst.Name)
        node = cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(name)], value)])
        training.origins[node] = line.node
        found.append(Line(node, {name.value}, {name.value}))
    return found


def _is_loop(training: Training, node: cst.CSTNode) -> bool:
    """Whether a statement is a loop that puts each turn on a device of its own."""
    if not isinstance(node, cst.For):
        return False
    targets = names_in(node.target)
    return any(training.tf(call) == "tf.device" and names_in(call) & targets for call in calls_in(node.body))


def _read(training: Training, node: cst.For, before: list[Line]) -> _Tower:
    count = node.iter
    ranged = isinstance(count, cst.Call) and dotted(count.func) in ("range", "xrange") and len(count.args) == 1
    if not ranged or not isinstance(node.target, cst.Name) or node.orelse is not None:
        raise Blocked("TFM766", node, "a loop over towers must be `for i in range(number of towers):`")
    assert isinstance(count, cst.Call)
    if training.server is not None or training.setter or training.joins is not None:
        raise Blocked("TFM766", node, "towers on the workers of a cluster are unsupported")
    return _Tower(node, node.target.value, training.file.code(count.args[0].value), before)


def _opened(training: Training, tower: _Tower, body: list[cst.BaseStatement], shared: bool) -> list[cst.BaseStatement]:
    """The statements of a tower, without the blocks that only say where and under which names it is built."""
    found: list[cst.BaseStatement] = []
    for statement in body:
        if isinstance(statement, cst.With) and isinstance(statement.body, cst.IndentedBlock):
            items, inside = [], shared
            for item in statement.items:
                kept, reuses = _scope(training, tower, item)
                inside = inside or reuses
                if kept is not None:
                    items.append(kept)
            nested = [one for one in statement.body.body if isinstance(one, cst.BaseStatement)]
            inner = _opened(training, tower, nested, inside)
            if items:
                last = items[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
                block = statement.body.with_changes(body=inner)
                found.append(statement.with_changes(items=[*items[:-1], last], body=block))
            else:
                found += inner
            continue
        if _reuses_variables(training, statement):
            tower.reuses = True
            continue
        if training.of_model and isinstance(statement, cst.If):
            found.append(_branches(training, tower, statement, shared))
            continue
        if not isinstance(statement, cst.SimpleStatementLine):
            raise Blocked("TFM766", statement, "a tower with branches or loops is unsupported")
        if not shared:
            tower.outside.append(statement)
        found.append(statement)
    return found


def _without_scopes(training: Training, tower: _Tower, statements: list[cst.BaseStatement]) -> list[cst.BaseStatement]:
    """The statements without the name of the tower's scope, where a function is given it and does nothing with it."""
    found = []
    for statement in statements:
        for call in calls_in(statement):
            function = training.file.functions.get(dotted(call.func) or "")
            params = [param.name.value for param in function.params.params] if function is not None else []
            if function is None or not has_plain_parameters(function) or any(arg.star for arg in call.args):
                continue
            given = [
                arg.keyword.value if arg.keyword else "".join(params[i : i + 1]) for i, arg in enumerate(call.args)
            ]
            pairs = list(equal_zip(given, call.args))
            idle = {k for k, a in pairs if isinstance(a.value, cst.Name) and a.value.value in tower.names}
            idle = {key for key in idle if key in params and key not in names_in(function.body)}
            mentioned = [name for name in name_nodes(training.file.module) if name.value == function.name.value]
            if not idle or len(mentioned) != 2:  # the definition and this call
                continue
            kept = [arg for key, arg in pairs if key not in idle]
            if kept:
                kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
            new = statement.deep_replace(call, call.with_changes(args=kept))
            assert isinstance(new, cst.BaseStatement)
            statement = new
            training.fewer[function] = idle
            break
        found.append(statement)
    return found


def _branches(training: Training, tower: _Tower, node: cst.If, shared: bool) -> cst.If:
    """A branch of a model_fn, which asks for its mode, with its blocks opened."""

    def opened(block: cst.BaseSuite) -> cst.BaseSuite:
        if not isinstance(block, cst.IndentedBlock):
            raise Blocked("TFM766", node, "put the branch of a tower on its own lines")
        body = [one for one in block.body if isinstance(one, cst.BaseStatement)]
        return block.with_changes(body=_opened(training, tower, body, shared))

    other = node.orelse
    if isinstance(other, cst.If):
        other = _branches(training, tower, other, shared)
    elif other is not None:
        other = other.with_changes(body=opened(other.body))
    return node.with_changes(body=opened(node.body), orelse=other)


def _scope(training: Training, tower: _Tower, item: cst.WithItem) -> tuple[cst.WithItem | None, bool]:
    """What is left of an item of a `with` around a tower, and whether the towers share their variables in it."""
    call = item.item
    name = training.tf(call) if isinstance(call, cst.Call) else None
    if item.asname is not None:
        if not isinstance(item.asname.name, cst.Name):
            raise Blocked("TFM766", item, "this block around a tower is unsupported")
        tower.names.add(item.asname.name.value)
    if name in ("tf.device", "tf.name_scope"):
        return None, False
    if name != "tf.variable_scope" or not isinstance(call, cst.Call):
        raise Blocked("TFM766", item, "this block around a tower is unsupported")
    given = bind(call, (*_SCOPE, "custom_getter", "reuse"), "tf.variable_scope", "TFM766")
    if set(given) - {"name_or_scope", "reuse"} or "name_or_scope" not in given:
        raise Blocked("TFM766", call, "a variable_scope around a tower has more arguments than its name and `reuse`")
    first = given["name_or_scope"]
    if tower.index in names_in(first):
        raise Blocked("TFM766", first, "every tower has its own variables here: share them")
    reuse = given.get("reuse")
    shares = not is_none(reuse)
    if shares and not _from_second_on(training, tower, reuse):
        message = "cannot tell whether towers share variables: `reuse` must be `i > 0` of the loop, or `tf.AUTO_REUSE`"
        raise Blocked("TFM766", call, message)
    if isinstance(first, cst.Call) and training.tf(first) == "tf.get_variable_scope":
        return None, shares
    new = call.with_changes(args=[cst.Arg(first)])
    return item.with_changes(item=new, asname=None), shares


def _from_second_on(training: Training, tower: _Tower, node: cst.BaseExpression | None) -> bool:
    """Whether `reuse` is true for every tower but the first, or creates what is not there."""
    assert node is not None
    if training.file.imports.tensorflow(node) == "tf.AUTO_REUSE":
        return True
    text = training.file.code(node.with_changes(lpar=[], rpar=[]) if hasattr(node, "lpar") else node)
    index = tower.index
    tests = (f"{index} > 0", f"{index} != 0", f"{index} >= 1", f"bool({index})", f"{index}>0", f"{index}!=0")
    if text in tests:
        return True
    if isinstance(node, cst.IfExp) and training.file.code(node.body) == "True":
        return training.file.code(node.test) in tests and training.file.code(node.orelse) in ("None", "False")
    return False


def _reuses_variables(training: Training, statement: cst.BaseStatement) -> bool:
    """Whether a statement is `tf.get_variable_scope().reuse_variables()`."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return False
    small = statement.body[0]
    call = small.value if isinstance(small, cst.Expr) else None
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or call.args:
        return False
    scope = call.func.value
    of_scope = isinstance(scope, cst.Call) and training.tf(scope) == "tf.get_variable_scope"
    return of_scope and call.func.attr.value == "reuse_variables"


def _check_shared(training: Training, tower: _Tower) -> None:
    """Every variable must be made where the towers share it; else each tower would train weights of its own."""
    if tower.reuses:
        return
    for statement in tower.outside:
        for call in calls_in(statement):
            method = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
            if training.tf(call) is not None or method not in ("get_next", "append", "compute_gradients"):
                message = (
                    "this is outside a `variable_scope(..., reuse=...)`, so every tower may create its own "
                    "variables: put it into one"
                )
                raise Blocked("TFM766", call, message)


def _splits(training: Training, tower: _Tower) -> dict[str, cst.BaseExpression]:
    """The lists of the parts of a batch, by name, and the batch."""
    found: dict[str, cst.BaseExpression] = {}
    for line in tower.before:
        for one in _lines_of(line.node) if training.of_model else [line.node]:
            whole, names = _whole(training, tower, value_of(one)), {name for name, _ in bindings(one)}
            if whole is not None and len(names) == 1:
                found[names.pop()] = whole
    return found


def _whole(training: Training, tower: _Tower, value: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """The batch that a `tf.split` divides among the towers: a name, or what a dict of features holds."""
    if not isinstance(value, cst.Call) or training.tf(value) != "tf.split":
        return None
    given = bind(value, _SPLIT, "tf.split", "TFM766")
    count, axis = given.get("num_or_size_splits"), given.get("axis")
    whole = given.get("value")
    along = is_none(axis) or (axis is not None and training.file.code(axis) == "0")
    named = whole.value if isinstance(whole, cst.Subscript) and len(whole.slice) == 1 else whole
    if not isinstance(named, cst.Name) or whole is None or count is None or not along:
        return None
    return whole if training.file.code(count) == tower.count and tower.index not in names_in(whole) else None


class _Parts(cst.CSTTransformer):
    """`parts[i]` becomes the whole batch."""

    def __init__(self, training: Training, tower: _Tower, wholes: Mapping[str, cst.BaseExpression]) -> None:
        super().__init__()
        self.training = training
        self.tower = tower
        self.wholes = wholes

    def leave_Subscript(self, original_node: cst.Subscript, updated_node: cst.Subscript) -> cst.BaseExpression:
        only = original_node.slice[0].slice
        at = only.value if isinstance(only, cst.Index) and len(original_node.slice) == 1 else None
        if not isinstance(at, cst.Name) or at.value != self.tower.index:
            return updated_node
        parts = original_node.value
        if isinstance(parts, cst.Name):
            whole = self.wholes.get(parts.value)
        else:
            whole = _whole(self.training, self.tower, parts)
        return updated_node if whole is None else whole.deep_clone()


def _replaced(node: cst.BaseStatement, transformer: cst.CSTTransformer) -> cst.BaseStatement:
    new = node.visit(transformer)
    assert isinstance(new, cst.BaseStatement)
    return new


@dataclass(frozen=True)
class _Kept:
    """What every tower appends to a list."""

    list_name: str
    value: cst.BaseExpression


class _Branches(cst.CSTTransformer):
    """Takes branches out that nothing is left of."""

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> cst.If | cst.RemovalSentinel:
        other = updated_node.orelse
        if isinstance(other, cst.Else) and _is_empty(other.body):
            other = None
        if not _is_empty(updated_node.body):
            return updated_node.with_changes(orelse=other)
        if other is None:
            return cst.RemoveFromParent()
        body = updated_node.body.with_changes(body=[cst.SimpleStatementLine([cst.Pass()])])
        return updated_node.with_changes(body=body, orelse=other)


def _is_empty(block: cst.BaseSuite) -> bool:
    return isinstance(block, cst.IndentedBlock) and not block.body


class _Cut(_Branches):
    """Takes the lines out that only give names their values which are gone."""

    def __init__(self, gone: set[str]) -> None:
        super().__init__()
        self.gone = gone

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.RemovalSentinel:
        bound = {name for name, _ in bindings(original_node)}
        return cst.RemoveFromParent() if bound and bound <= self.gone else updated_node


def _cut(training: Training, line: Line, gone: set[str]) -> Line:
    """A branch before the loop without the lines that the towers needed."""
    node = line.node.visit(_Cut(gone)) if isinstance(line.node, cst.If) and training.of_model else line.node
    if not isinstance(node, cst.BaseStatement) or node is line.node:
        return line
    training.origins[node] = line.node
    return Line(node, {name for name, _ in bindings(node)}, names_in(node))


class _Appends(_Branches):
    """Takes appends to lists out; those of a call of compute_gradients become an assignment to a name."""

    def __init__(self, empty: set[str]) -> None:
        super().__init__()
        self.empty = empty
        self.found: list[_Kept] = []

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.RemovalSentinel:
        value = appended(original_node)
        if value is None:
            return updated_node
        small = original_node.body[0]
        assert isinstance(small, cst.Expr) and isinstance(small.value, cst.Call)
        assert isinstance(small.value.func, cst.Attribute)
        target = small.value.func.value
        if not isinstance(target, cst.Name) or target.value not in self.empty:
            return updated_node
        self.found.append(_Kept(target.value, value))
        if isinstance(value, cst.Name):
            return cst.RemoveFromParent()
        name = target.value
        new = cst.Assign([cst.AssignTarget(cst.Name(name))], value)
        return updated_node.with_changes(body=[new])


def _without_lists(
    tower: _Tower, statements: list[cst.BaseStatement]
) -> tuple[list[cst.BaseStatement], dict[str, cst.BaseExpression]]:
    """The statements without what they append to lists that the towers fill, and what that is, by list."""
    empty = set()
    for line in tower.before:
        value = value_of(line.node)
        if isinstance(value, cst.List) and not value.elements and len(line.binds) == 1:
            empty |= line.binds
    transformer = _Appends(empty)
    module = cst.Module(statements).visit(transformer)  # type: ignore[arg-type]
    lists = {one.list_name: one.value for one in transformer.found}
    if len(lists) != len(transformer.found):
        raise Blocked("TFM766", tower.node, "a tower appends twice to one list")
    return list(module.body), lists


def _gradients(
    tower: _Tower, statements: list[cst.BaseStatement], lists: dict[str, cst.BaseExpression]
) -> tuple[str, tuple[str, cst.CSTNode]]:
    """The name of a tower's gradients; the list that all towers' are in, and what is appended to it."""
    computed = {
        name
        for statement in statements
        for inner in _lines_of(statement)
        for name, _ in bindings(inner)
        if isinstance(value := value_of(inner), cst.Call)
        and isinstance(value.func, cst.Attribute)
        and value.func.attr.value == "compute_gradients"
    }
    found = [
        (name, value)
        for name, value in lists.items()
        if (value.value if isinstance(value, cst.Name) else name) in computed
    ]
    if len(found) != 1:
        message = (
            "the towers must append the results of `compute_gradients` to one list that is empty "
            "before them (`gradients = []`)"
        )
        raise Blocked("TFM766", tower.node, message)
    name, value = found[0]
    return (value.value if isinstance(value, cst.Name) else name), (name, value)


def _lines_of(statement: cst.BaseStatement) -> list[cst.BaseStatement]:
    return list(simple_lines(statement)) or [statement]


def _averaged(
    training: Training, place: tuple[str, cst.CSTNode], after: list[Line], taken: set[str]
) -> tuple[list[Line], str]:
    """The lines behind the loop with the tower's gradients for the mean of all, and the name that these have there."""
    listed = place[0]
    gradients = place[1].value if isinstance(place[1], cst.Name) else listed
    using = [line for line in after if listed in line.mentions]
    if len(using) != 1:
        node = using[1].node if len(using) > 1 else training.call
        raise Blocked("TFM767", node, "the gradients of all towers must be averaged in one place")
    line = using[0]
    calls = [call for call in calls_in(line.node) if any(_is_name(arg.value, listed) for arg in call.args)]
    function = training.file.functions.get(dotted(calls[0].func) or "") if len(calls) == 1 else None
    if function is None or len(calls[0].args) != 1 or not averages_towers(function, training.file):
        message = (
            "cannot tell that this averages the gradients of all towers: use a function that "
            "returns `[(tf.reduce_mean(tf.stack([g for g, _ in pair]), 0), pair[0][1]) for pair "
            "in zip(*gradients)]`"
        )
        raise Blocked("TFM767", line.node, message)
    mentioned = [name for name in name_nodes(training.file.module) if name.value == function.name.value]
    if len(mentioned) == 2:  # the definition and this call
        training.unused.append(function)
    rest = [one for one in after if one is not line]
    own = next(one for one in (*_lines_of(line.node), line.node) if path_to(one, calls[0]))
    bound = {name for name, _ in bindings(own)}
    if value_of(own) is calls[0] and len(bound) == 1:
        target = next(iter(bound))
        if (target == gradients or target not in taken) and own is line.node:
            return rest, target
        if target == gradients or target not in taken:
            shorter = line.node.deep_remove(own)
            assert isinstance(shorter, cst.BaseStatement)
            training.origins[shorter] = line.node
            return [Line(shorter, line.binds, names_in(shorter)) if one is line else one for one in after], target
    new = line.node.deep_replace(calls[0], cst.Name(gradients))
    assert isinstance(new, cst.BaseStatement)
    training.origins[new] = line.node
    changed = Line(new, line.binds, names_in(new))
    return [changed if one is line else one for one in after], ""


def _is_name(node: cst.BaseExpression, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


class _Rename(cst.CSTTransformer):
    def __init__(self, old: str, new: str) -> None:
        super().__init__()
        self.old, self.new = old, new

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        return updated_node.with_changes(value=self.new) if updated_node.value == self.old else updated_node


def _renamed(node: cst.BaseStatement, old: str, new: str) -> cst.BaseStatement:
    return node if old == new else _replaced(node, _Rename(old, new))
