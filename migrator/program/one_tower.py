"""Towers inside a model_fn: one of them, which gets the whole batch, takes the place of the loop over all.

What a model_fn does with the towers' results stays what it was: the mean of their losses is the loss of the whole
batch, and their rows behind each other are its rows (see `by_hand.towers`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import libcst as cst

from migrator.names.imports import ImportMap
from migrator.pairing import equal_zip
from migrator.program.by_hand.means import check_mean_of, check_rows
from migrator.program.by_hand.towers import OneTower, inline_towers
from migrator.program.by_hand.training import Line, Training, value_of
from migrator.program.calls import calls_in, functions_in, nodes_in
from migrator.program.parsed import Blocked, ParsedFile, Tracked, names_in
from migrator.program.scopes import bindings, path_to
from migrator.rules.model_towers import CODE, find_towers


def with_one_tower(file: ParsedFile) -> ParsedFile:
    """The file with one tower in each of its model_fns that builds some; why one stays as it is is noted in it."""
    gradients = "compute_gradients" in file.bare or "tf.gradients" in file.bare
    if not gradients or "EstimatorSpec" not in file.bare or ".device(" not in file.bare:
        return file
    bodies: dict[cst.FunctionDef, _Body] = {}
    refused = dict(file.refused)
    for function in functions_in(file.module):
        loop = find_towers(function, file.imports) if _makes_spec(function, file.imports) else None
        if loop is None:
            continue
        try:
            bodies[function] = _body(file, function, loop)
        except Blocked as problem:
            refused[file.position(loop)] = (
                CODE,
                f"these towers do not reduce to one on the whole batch: {problem.message}",
            )
    if not bodies:
        return replace(file, refused=refused) if refused else file
    writer = _Writer(bodies)
    module = file.module.visit(writer)
    assert isinstance(module, cst.Module)
    names = frozenset(function.name.value for function in bodies)
    new = replace(file, module=module, refused=refused, tower_models=names)
    new.keep_positions(writer.made, file)
    return new


def _makes_spec(function: cst.FunctionDef, imports: ImportMap) -> bool:
    return any((imports.tensorflow(call.func) or "").endswith("EstimatorSpec") for call in calls_in(function.body))


class _Body:
    """The new statements of a model_fn, those that were made for the loop, and functions that nothing calls now."""

    def __init__(self, statements: Sequence[cst.BaseStatement], loop: cst.For, made: Iterable[cst.CSTNode]) -> None:
        self.statements = statements
        self.loop = loop
        self.made = list(made)
        self.unused: list[cst.FunctionDef] = []


class _Writer(Tracked):
    """Puts the new bodies in."""

    def __init__(self, bodies: Mapping[cst.FunctionDef, _Body]) -> None:
        super().__init__()
        self.bodies = bodies
        self.unused = [function for body in bodies.values() for function in body.unused]

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return node not in self.bodies

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef | cst.RemovalSentinel:
        if original_node in self.unused:
            return cst.RemoveFromParent()
        body = self.bodies.get(original_node)
        if body is None:
            return updated_node
        made = [node for statement in body.made for node in nodes_in(statement)]
        self.made.update(dict.fromkeys(made, body.loop))
        return updated_node.with_changes(body=updated_node.body.with_changes(body=body.statements))


def _body(file: ParsedFile, function: cst.FunctionDef, loop: cst.For) -> _Body:
    """The body of a model_fn with one tower. Raises Blocked."""
    training = Training(file, calls_in(loop)[0], of_model=True)
    training.lines = list(_lines(training, function.body, loop))
    before = {line.node for line in training.lines}
    one = inline_towers(training)
    if one is None:
        raise Blocked(CODE, loop, "the device of the loop does not change with its iterations")
    lines = _without_lists(training, one)
    lines = _without_the_number(lines, training.towers)
    body = _Body([line.node for line in lines], loop, [line.node for line in lines if line.node not in before])
    body.unused = training.unused
    return body


def _lines(training: Training, block: cst.BaseSuite, loop: cst.For) -> Iterator[Line]:
    """The statements of a model_fn, those of a block around the loop that says only where it is, too."""
    for statement in block.body:
        if not isinstance(statement, cst.BaseStatement):
            raise Blocked(CODE, loop, "the function is on one line")
        if statement is not loop and path_to(statement, loop):
            if not isinstance(statement, cst.With) or not all(_only_places(training, i) for i in statement.items):
                raise Blocked(CODE, loop, "the loop is in a block: move it to the body of the model_fn")
            yield from _lines(training, statement.body, loop)
            continue
        for line in _apart(statement):
            # `tf.logging.info(...)` as a statement changes nothing of `tf`.
            binds = {name for name, _ in bindings(line) if name not in training.file.imports.names}
            yield Line(line, binds, names_in(line))


def _apart(statement: cst.BaseStatement) -> list[cst.BaseStatement]:
    """`losses, gradients = [], []` as a line for each list; any other statement as it is."""
    value = value_of(statement)
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    target = small.targets[0].target if isinstance(small, cst.Assign) and value is not None else None
    if not isinstance(value, cst.Tuple) or not isinstance(target, cst.Tuple):
        return [statement]
    lists = [one.value for one in value.elements if isinstance(one.value, cst.List) and not one.value.elements]
    names = [one.value for one in target.elements if isinstance(one.value, cst.Name)]
    if not len(lists) == len(names) == len(value.elements) == len(target.elements):
        return [statement]
    return [
        cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(name)], empty)])
        for name, empty in equal_zip(names, lists)
    ]


def _only_places(training: Training, item: cst.WithItem) -> bool:
    """Whether an item of a `with` says nothing but where operations are, or goes on in the scope that there is."""
    call = item.item
    if not isinstance(call, cst.Call) or item.asname is not None:
        return False
    if training.tf(call) == "tf.variable_scope" and len(call.args) == 1:
        first = call.args[0].value
        return isinstance(first, cst.Call) and training.tf(first) == "tf.get_variable_scope"
    return training.tf(call) == "tf.device"


def _without_lists(training: Training, one: OneTower) -> list[Line]:
    """The lines, with the one tower's results where those of all were put together. Raises Blocked."""
    found: list[Line] = []
    other: dict[str, str] = {}  # names of what was put together, and those that the tower gives the same
    for line in training.lines:
        if line in one.lines or not line.mentions & (one.lists.keys() | other.keys()):
            found.append(line)
            continue
        uses = _Uses(training, one, other)
        node = line.node.visit(uses)
        assert isinstance(node, cst.BaseStatement)
        value = value_of(node)
        if isinstance(value, cst.Name) and value.value in uses.known.values():
            if line.binds == {value.value}:
                continue  # `loss = loss`
            if _keep_their_values(training.lines, line, value.value):
                other.update(dict.fromkeys(line.binds, value.value))
                continue
        found.append(Line(node, line.binds, names_in(node)))
    return found


def _keep_their_values(lines: Sequence[Line], line: Line, name: str) -> bool:
    """Whether nothing else gives what a line binds a value, and nothing behind it does so to a name."""
    alone = all(not one.binds & line.binds for one in lines if one is not line)
    return alone and all(name not in one.binds for one in lines[lines.index(line) :])


class _Uses(cst.CSTTransformer):
    """Puts what one tower made in the place of what was made of all."""

    def __init__(self, training: Training, one: OneTower, other: Mapping[str, str]) -> None:
        super().__init__()
        self.training = training
        self.one = one
        self.other = other
        self.known: dict[cst.CSTNode, str] = {}  # what is replaced, and by which name

    def visit_Call(self, node: cst.Call) -> bool:
        listed = self._of_rows(node)
        if listed is not None:
            check_rows(self.training, self.one.lines, cst.Name(self.one.lists[listed]))
            self.known[node] = self.one.lists[listed]
            return False
        return self._visit_mean(node, _mean_of(self.training, node))

    def visit_BinaryOperation(self, node: cst.BinaryOperation) -> bool:
        total = node.left
        if not isinstance(node.operator, cst.Divide) or not isinstance(total, cst.Call) or len(total.args) != 1:
            return True
        added = self.training.tf(total) == "tf.add_n" or self.training.file.code(total.func) == "sum"
        listed = total.args[0].value
        number = self.training.file.code(node.right).removeprefix("float(").removesuffix(")")
        counted = number in (self.training.towers, f"len({self.training.file.code(listed)}")
        return self._visit_mean(node, listed if added and counted else None)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        return self._instead(original_node, updated_node)

    def leave_BinaryOperation(
        self, original_node: cst.BinaryOperation, updated_node: cst.BinaryOperation
    ) -> cst.BaseExpression:
        return self._instead(original_node, updated_node)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        if original_node.value in self.one.lists:
            message = f"use the mean (`tf.reduce_mean`) or all rows (`tf.concat(..., 0)`) of `{original_node.value}`"
            raise Blocked(CODE, original_node, message)
        return updated_node.with_changes(value=self.other.get(original_node.value, original_node.value))

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)

    def _instead(self, original: cst.BaseExpression, updated: cst.BaseExpression) -> cst.BaseExpression:
        name = self.known.get(original)
        return updated if name is None else cst.Name(name)

    def _visit_mean(self, node: cst.BaseExpression, listed: cst.BaseExpression | None) -> bool:
        if not isinstance(listed, cst.Name) or listed.value not in self.one.lists:
            return True
        name = self.one.lists[listed.value]
        check_mean_of(self.training, self.one.lines, cst.Name(name))
        self.known[node] = name
        return False

    def _of_rows(self, node: cst.Call) -> str | None:
        """The list whose tensors a `tf.concat` puts behind each other."""
        if self.training.tf(node) != "tf.concat" or len(node.args) != 2:
            return None
        values = [arg.value for arg in node.args if not _says_axis(self.training, arg)]
        axes = len(node.args) - len(values)
        listed = values[0] if len(values) == 1 and axes == 1 else None
        return listed.value if isinstance(listed, cst.Name) and listed.value in self.one.lists else None


def _says_axis(training: Training, arg: cst.Arg) -> bool:
    keyword = arg.keyword.value if arg.keyword is not None else "axis"
    return keyword in ("axis", "concat_dim") and training.file.code(arg.value) == "0"


def _mean_of(training: Training, node: cst.Call) -> cst.BaseExpression | None:
    """What a `tf.reduce_mean` takes the mean of, a list also where it is stacked first."""
    if training.tf(node) != "tf.reduce_mean" or not node.args:
        return None
    if any(not _says_axis(training, arg) for arg in node.args[1:]):
        return None
    given = node.args[0].value
    if isinstance(given, cst.Call) and training.tf(given) == "tf.stack" and len(given.args) == 1:
        return given.args[0].value
    return given


def _without_the_number(lines: list[Line], number: str) -> list[Line]:
    """The lines without the one that says how many towers there are, where nothing asks for it any more."""
    made = [line for line in lines if line.binds == {number} and value_of(line.node) is not None]
    asked = [line for line in lines if number in line.mentions - line.binds]
    return [line for line in lines if line not in made or asked or len(made) != 1]
