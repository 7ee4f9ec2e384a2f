"""Loops that feed the batches to placeholders: their Python code becomes a generator of the same batches.

What the loop does to make a batch stays as it is, in the order in which it was done, and `yield` takes the place of the
training step. What only told of the steps is left out. A number that is fed in every step (a rate of dropout) takes the
place of its placeholder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

from migrator.findings import Severity
from migrator.program.by_hand.loop import Deeds, fetched_names, maker_of, method_of_session, only_reads, tells
from migrator.program.by_hand.training import Line, Training, value_of
from migrator.program.calls import bind, calls_in, is_none
from migrator.program.parsed import Blocked, names_in
from migrator.program.scopes import bindings, path_to
from migrator.walking import walk

_RUN = ("fetches", "feed_dict", "options", "run_metadata")
_PLACEHOLDER = ("dtype", "shape", "name")
_NOT_FED = (
    "workers and towers cannot be fed: their strategy reads batches from a function that "
    "returns a `tf.data.Dataset`, which on parameter servers the workers run without this "
    "program. First write `x, y = tf.data.Dataset.from_tensor_slices((images, "
    "labels)).shuffle(n).repeat().batch(size).make_one_shot_iterator().get_next()` "
    "instead of the placeholders"
)


@dataclass
class _Loop:
    """The loop while it is read: the call that trains, and the names that results of the session have."""

    node: cst.For | cst.While
    run: cst.Call
    results: set[str] = field(default_factory=set)
    told: bool = False


def feeds(training: Training) -> bool:
    """Whether the loop of the session feeds its batches."""
    for statement in training.inside:
        for call in calls_in(statement):
            if method_of_session(training, call) == "run" and isinstance(statement, (cst.For, cst.While)):
                given = bind(call, _RUN, "run", "TFM760")
                if not is_none(given.get("feed_dict")) and _trains(training, given):
                    return True
    return False


def _trains(training: Training, given: dict[str, cst.BaseExpression]) -> bool:
    fetches = given.get("fetches")
    return fetches is not None and any(maker_of(training, name) is not None for name in names_in(fetches))


def read_fed_loop(training: Training) -> None:
    """Reads the loop, and puts a generator of its batches in the place of the placeholders. Raises Blocked (TFM732)."""
    runs = [
        (statement, call)
        for statement in training.inside
        for call in calls_in(statement)
        if method_of_session(training, call) == "run" and _trains(training, bind(call, _RUN, "run", "TFM760"))
    ]
    if len(runs) != 1 or not isinstance(runs[0][0], (cst.For, cst.While)):
        place = runs[1][1] if len(runs) > 1 else training.call
        raise Blocked("TFM732", place, "the session must train in one place of one loop")
    if training.server is not None or training.setter or training.towers:
        raise Blocked("TFM732", runs[0][1], _NOT_FED)
    loop = _Loop(runs[0][0], runs[0][1])
    at = next(i for i, statement in enumerate(training.inside) if statement is loop.node)
    before, after = training.inside[:at], training.inside[at + 1 :]
    given = bind(loop.run, _RUN, "run", "TFM760")
    names = fetched_names(given["fetches"])
    training.suffix = [*after, *training.suffix]
    trained = [name for name in names if maker_of(training, name) is not None]
    if len(trained) != 1:
        raise Blocked("TFM760", loop.run, "the loop does not run a single train_op created here")
    maker = maker_of(training, trained[0])
    assert maker is not None
    training.train_op, training.maker, training.loop = trained[0], maker, loop.node
    only_reads(training, [name for name in names if name != trained[0]])
    fed = _fed(training, given["feed_dict"])
    yielded = _placeholders(training, loop, fed)
    _results(training, loop)
    drawn = set().union(*(names_in(value) for _, value in fed))
    if drawn & loop.results:
        raise Blocked("TFM732", loop.run, "the batches depend on results of the session")
    body = [one for one in (_kept(training, loop, s, yielded) for s in [*before, loop.node]) if one is not None]
    _check_order(training, loop, before, body)
    training.generator = body
    if loop.told:
        message = "the loop's own printing is dropped: `fit` prints the loss and the metrics"
        training.said.append(training.file.finding("TFM763", Severity.REVIEW, loop.node, message))


def _fed(training: Training, node: cst.BaseExpression) -> list[tuple[str, cst.BaseExpression]]:
    """(placeholder, what it is fed)."""
    if isinstance(node, cst.Dict):
        found = []
        for element in node.elements:
            if not isinstance(element, cst.DictElement) or not isinstance(element.key, cst.Name):
                raise Blocked("TFM732", node, "feed_dict is not a dict of placeholders by name")
            found.append((element.key.value, element.value))
        return found
    raise Blocked("TFM732", node, "feed_dict is not a dict literal at the call: write it there")


def _placeholders(training: Training, loop: _Loop, fed: list[tuple[str, cst.BaseExpression]]) -> str:
    """Takes the placeholders out of the graph; the text of what the generator yields."""
    tensors: list[tuple[str, Line, cst.BaseExpression, str]] = []
    for name, value in fed:
        made = [line for line in training.lines if name in line.binds]
        call = value_of(made[0].node) if len(made) == 1 else None
        known = isinstance(call, cst.Call) and training.tf(call) in ("tf.placeholder", "tf.placeholder_with_default")
        if not known or not isinstance(call, cst.Call) or made[0].binds != {name}:
            raise Blocked("TFM732", value, f"`{name}` is not a placeholder created in this function")
        if _is_number(training, loop, call, value):
            new = cst.parse_statement(f"{name} = {training.file.code(value)}\n")
            assert isinstance(new, cst.BaseStatement)
            training.origins[new] = made[0].node
            training.lines[training.lines.index(made[0])] = Line(new, {name}, names_in(new))
            continue
        given = bind(call, _PLACEHOLDER, "tf.placeholder", "TFM732")
        shape = given.get("shape")
        if training.tf(call) != "tf.placeholder" or not isinstance(shape, (cst.List, cst.Tuple)) or not shape.elements:
            message = f"the shape of `{name}` is not a literal, and a Keras input needs it"
            raise Blocked("TFM732", call, message)
        sizes = [training.file.code(element.value) for element in shape.elements]
        dtype = training.file.code(given["dtype"])
        spec = f"TensorSpec([{', '.join(sizes)}], {dtype})"
        tensors.append((name, made[0], value, spec))
    if len(tensors) != 2:
        message = "the training must be fed two placeholders, features and labels, and otherwise plain numbers only"
        raise Blocked("TFM732", loop.run, message)
    first = [_first_use(training, name) for name, _, _, _ in tensors]
    if first[0] == first[1]:
        raise Blocked(
            "TFM732",
            loop.run,
            "cannot tell which placeholder holds the labels: first use it on a later line than the features",
        )
    features, labels = tensors if first[0] < first[1] else tensors[::-1]
    training.features, training.labels = features[0], labels[0]
    training.specs = features[3], labels[3]
    lines = [features[1], labels[1]]
    for line in lines:
        line.kind = "removed"
    training.next_line = max(lines, key=training.lines.index).node
    return f"yield {training.file.code(features[2])}, {training.file.code(labels[2])}\n"


def _is_number(training: Training, loop: _Loop, call: cst.Call, value: cst.BaseExpression) -> bool:
    """Whether a placeholder is fed the same number, or truth, in every step."""
    if training.tf(call) == "tf.placeholder":
        shape = bind(call, _PLACEHOLDER, "tf.placeholder", "TFM732").get("shape")
        if shape is not None and not (isinstance(shape, (cst.List, cst.Tuple)) and not shape.elements):
            return False
    changing = {name for name, _ in bindings(loop.node)}
    simple = isinstance(value, (cst.Name, cst.Float, cst.Integer, cst.Attribute))
    return simple and not names_in(value) & changing


def _first_use(training: Training, name: str) -> int:
    """Where a placeholder is first used."""
    for index, line in enumerate(training.lines):
        if name in line.mentions and name not in line.binds:
            return index
    return len(training.lines)


def _results(training: Training, loop: _Loop) -> None:
    """What the names of the loop are that hold results of the session, or follow from them."""
    found: set[str] = set()
    while True:
        more = set(found)
        for line in _simple(loop.node):
            mentions = names_in(line)
            if training.session_name in mentions or mentions & found:
                more |= {name for name, _ in bindings(line)} - {training.session_name}
        if more == found:
            break
        found = more
    loop.results = found


def _simple(node: cst.CSTNode) -> list[cst.BaseStatement]:
    """The lines of a block, those of blocks inside too."""
    found: list[cst.BaseStatement] = []

    class Lines(cst.CSTVisitor):
        def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
            found.append(node)

    walk(node, Lines())
    return found


def _loops(body: Sequence[cst.BaseStatement]) -> list[cst.For]:
    """The loops that count in some statements."""
    found: list[cst.For] = []

    class Loops(cst.CSTVisitor):
        def visit_For(self, node: cst.For) -> None:
            found.append(node)

    for statement in body:
        walk(statement, Loops())
    return found


def _kept(training: Training, loop: _Loop, node: cst.BaseStatement, yielded: str) -> cst.BaseStatement | None:
    """What of a statement the generator needs; None for what only tells of the training. Raises Blocked (TFM732)."""
    if path_to(node, loop.run):
        if isinstance(node, cst.SimpleStatementLine):
            others = [
                c for c in calls_in(node) if c is not loop.run and not any(c is one for one in calls_in(loop.run))
            ]
            if others or len(node.body) != 1:
                raise Blocked(
                    "TFM732", node, "the training step shares its line with something else: put it on its own line"
                )
            new = cst.parse_statement(yielded, config=training.file.module.config_for_parsing)
            assert isinstance(new, cst.SimpleStatementLine)
            return new.with_changes(leading_lines=node.leading_lines)
        if not isinstance(node, (cst.For, cst.While)) or not isinstance(node.body, cst.IndentedBlock):
            raise Blocked("TFM732", node, "the training step does not run in every iteration of the loop")
        head = node.iter if isinstance(node, cst.For) else node.test
        if names_in(head) & {*loop.results, training.session_name} or node.orelse is not None:
            raise Blocked("TFM732", node, "the length of this loop depends on results of the session")
        if isinstance(node, cst.While) and not names_in(head):
            raise Blocked("TFM732", node, "this loop ends by a condition in its body: state the number of steps")
        inner = [_kept(training, loop, one, yielded) for one in node.body.body if isinstance(one, cst.BaseStatement)]
        return node.with_changes(body=node.body.with_changes(body=[one for one in inner if one is not None]))
    mentions = names_in(node)
    small = node.body[0] if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1 else None
    alone = small.value if isinstance(small, cst.Expr) else None
    if isinstance(alone, cst.Call) and method_of_session(training, alone) is not None:
        raise Blocked(
            "TFM732", alone, "the session runs something whose result is unused, and which may have side effects"
        )
    acts = [call for call in calls_in(node) if not _only_tells(training, loop, call)]
    about = mentions & {*loop.results, training.session_name} or {name for name, _ in bindings(node)} & loop.results
    deeds = Deeds()
    walk(node, deeds)
    if about or (calls_in(node) and not acts and not bindings(node)):
        if acts:
            message = f"`{training.file.code(acts[0].func)}` is called with results of the session: do it in a hook"
            raise Blocked("TFM732", acts[0], message)
        if deeds.ends:
            raise Blocked("TFM732", deeds.ends[0], "results of the session end the loop")
        if any(names_in(place) for place in deeds.places):
            raise Blocked("TFM732", deeds.places[0], "results of the session are stored in an object or a list")
        loop.told = True
        return None
    if any(isinstance(end, (cst.Return, cst.Raise)) for end in deeds.ends):
        raise Blocked("TFM732", deeds.ends[0], "this leaves the loop: state the number of steps")
    return node


def _only_tells(training: Training, loop: _Loop, call: cst.Call) -> bool:
    """Whether a call only shows something: it prints, or reads from the session without an effect."""
    method = method_of_session(training, call)
    if method != "run":
        return method is None and (tells(call) or _inside_reading(training, loop, call))
    given = bind(call, _RUN, "run", "TFM760")
    only_reads(training, fetched_names(given["fetches"]))
    fed = given.get("feed_dict")
    if fed is not None and calls_in(fed):
        raise Blocked("TFM732", fed, "batches that are only inspected are drawn from the training data")
    return not _trains(training, given)


def _inside_reading(training: Training, loop: _Loop, call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value == "add_summary"


def _check_order(
    training: Training, loop: _Loop, before: Sequence[cst.BaseStatement], body: Sequence[cst.BaseStatement]
) -> None:
    """A generator may not change names of the function around it, nor may those be used afterwards."""
    bound = {name for one in body for name, _ in bindings(one)}
    outside = {name for line in training.lines for name in line.binds}
    if isinstance(training.scope, cst.FunctionDef):
        outside |= names_in(training.scope.params)
    gone = {name for one in before for name, _ in bindings(one)} | {name for name, _ in bindings(loop.node)}
    for statement in training.suffix:
        used = sorted(names_in(statement) & (gone | {training.session_name}))
        if used:
            message = f"`{used[0]}` is used after the training, when the session and the loop's variables are gone"
            raise Blocked("TFM733", statement, message)
    ready: set[str] = set()
    counted = {name for call in _loops(body) for name in names_in(call.target)}
    for one in body:
        for line in _simple(one):
            owned = {name for name, _ in bindings(line)}
            own = value_of(line)
            reads = names_in(line) if own is None else names_in(own)
            early = sorted((reads & bound & outside) - ready - counted)
            if early:
                message = f"`{early[0]}` is set before the session and changed in the loop: set it in the loop"
                raise Blocked("TFM732", loop.node, message)
            ready |= owned
        ready |= {name for name, _ in bindings(one)}
