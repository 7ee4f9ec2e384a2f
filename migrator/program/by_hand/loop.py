"""The loop of a training by hand: what it runs, how often, and that it does nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrator.findings import Severity
from migrator.names.imports import dotted
from migrator.program.by_hand.training import Line, Training, methods_in, value_of
from migrator.program.calls import bind, calls_in, is_none
from migrator.program.parsed import Blocked, name_nodes, names_in
from migrator.program.scopes import bindings, path_to
from migrator.rules import sessions
from migrator.walking import walk

# How calls begin that may change something when a session runs them.
_ACTING = (
    *("assign", "scatter", "apply", "group", "count_up_to", "increment", "py_func", "numpy_function", "get_collection"),
    *("Print", "print", "write", "enqueue", "tuple", "update", "no_op", "control_dependencies"),
)


def read_loop(training: Training) -> None:
    """Reads the loop that runs the train_op, and how many steps it takes by itself. Raises Blocked."""
    body = training.inside
    loops = [s for s in body if isinstance(s, (cst.While, cst.For))]
    if len(loops) != 1:
        raise Blocked("TFM760", training.session, "the session has no single training loop")
    loop = loops[0]
    at = next(index for index, statement in enumerate(body) if statement is loop)
    training.suffix = [*body[at + 1 :], *training.suffix]
    for statement in body[:at]:
        acts = any(not tells(call) for call in calls_in(statement))
        if not isinstance(statement, cst.SimpleStatementLine) or value_of(statement) is None or acts:
            message = "code between the session and its loop is unsupported: move it before the session"
            raise Blocked("TFM760", statement, message)
        counted = {name for name, _ in bindings(statement)}
        if any(counted & names_in(other) for other in training.suffix):
            raise Blocked("TFM760", statement, "a counter of the loop is used after it")
    for statement in body:
        if statement is not loop and _uses_session(training, statement):
            message = "running the session outside the training loop is unsupported: do it after the session"
            raise Blocked("TFM760", statement, message)
    runs = [c for c in calls_in(loop.body) if method_of_session(training, c) == "run"]
    if len(runs) != 1 or _count_session(training, loop.body) != 1:
        place = runs[1] if len(runs) > 1 else loop
        raise Blocked("TFM760", place, "the loop runs the session more than once per iteration")
    run = bind(runs[0], ("fetches", "feed_dict", "options", "run_metadata"), "run", "TFM760")
    if not is_none(run.get("feed_dict")):
        message = (
            "batches are fed to placeholders: make them a `tf.data.Dataset`, and train on its iterator's get_next()"
        )
        raise Blocked("TFM761", run["feed_dict"], message)
    between = path_to(loop.body, runs[0])[1:]
    if any(isinstance(n, (cst.If, cst.For, cst.While, cst.Try, cst.IfExp, cst.BooleanOperation)) for n in between):
        raise Blocked("TFM760", runs[0], "the training step does not run in every iteration of the loop")
    if loop.orelse is not None:
        raise Blocked("TFM760", loop.orelse, "the `else` of the loop is unsupported: move it after the session")
    counted = {name for statement in body[:at] for name, _ in bindings(statement)}
    if isinstance(loop, cst.For) and counted & names_in(loop.iter):
        raise Blocked("TFM760", loop, "the number of steps is set inside the session: set it before")
    _only_tells(training, loop)
    if isinstance(loop, cst.While):
        if not _asks_to_stop(training, loop.test):
            raise Blocked(
                "TFM760",
                loop.test,
                "the loop ends by another condition than `session.should_stop()`: use a StopAtStepHook",
            )
    else:
        count = loop.iter
        if not isinstance(count, cst.Call) or dotted(count.func) not in ("range", "xrange") or len(count.args) != 1:
            raise Blocked("TFM760", loop, "cannot tell how many steps this loop takes: write `for ... in range(n)`")
        training.steps = training.file.code(count.args[0].value)
    fetched = fetched_names(run["fetches"])
    trained = [name for name in fetched if maker_of(training, name) is not None]
    maker = maker_of(training, trained[0]) if len(trained) == 1 else None
    if maker is None:
        message = "the loop does not run a single train_op of `minimize` or `apply_gradients` created here"
        raise Blocked("TFM760", runs[0], message)
    training.maker = maker
    only_reads(training, [name for name in fetched if name != trained[0]])
    training.train_op, training.loop = trained[0], loop


def maker_of(training: Training, name: str) -> Line | None:
    """The line that makes a train_op of this name."""
    for line in training.lines:
        applies = any(c.func.attr.value in ("minimize", "apply_gradients") for c in methods_in(line.node))
        if name in line.binds and applies:
            return line
    return None


def tells(call: cst.Call) -> bool:
    """Whether a call only tells of the training, or of the time."""
    name = dotted(call.func) or ""
    return name in sessions.TELLING or name.split(".")[-1] in sessions.TELLING_METHODS


def only_reads(training: Training, names: Sequence[str]) -> None:
    """What is fetched beside the train_op may change nothing: it is not fetched any more."""
    seen: set[int] = set()
    queue = list(names)
    while queue:
        name = queue.pop()
        for line in training.lines:
            if name not in line.binds or id(line) in seen or line is training.maker:
                continue
            seen.add(id(line))
            for call in _calls_behind(training, line.node):
                word = call.func.attr.value if isinstance(call.func, cst.Attribute) else dotted(call.func) or ""
                if word.startswith(_ACTING):
                    place = call if call in training.file.parents else training.call
                    message = f"`{names[0]}` is run with the train_op, and may have side effects: move it to a hook"
                    raise Blocked("TFM760", place, message)
            queue += line.mentions


def _calls_behind(training: Training, node: cst.CSTNode) -> list[cst.Call]:
    """The calls in a node, and in the functions of the file that it calls."""
    found: list[cst.Call] = []
    nodes, seen = [node], set()
    while nodes:
        for call in calls_in(nodes.pop()):
            found.append(call)
            function = training.file.functions.get(dotted(call.func) or "")
            if function is not None and function not in seen:
                seen.add(function)
                nodes.append(function)
    return found


def _uses_session(training: Training, node: cst.CSTNode) -> bool:
    return training.session_name in names_in(node)


def _count_session(training: Training, node: cst.CSTNode) -> int:
    return sum(1 for name in name_nodes(node) if name.value == training.session_name)


def method_of_session(training: Training, call: cst.Call) -> str | None:
    """The method of the session that is called; None for any other call."""
    func = call.func
    if (
        isinstance(func, cst.Attribute)
        and isinstance(func.value, cst.Name)
        and func.value.value == training.session_name
    ):
        return func.attr.value
    return None


def _asks_to_stop(training: Training, node: cst.BaseExpression) -> bool:
    if not isinstance(node, cst.UnaryOperation) or not isinstance(node.operator, cst.Not):
        return False
    return isinstance(node.expression, cst.Call) and method_of_session(training, node.expression) == "should_stop"


def fetched_names(node: cst.BaseExpression) -> list[str]:
    """The names that a session is asked for. Raises Blocked (TFM760) where it is asked for something else."""
    if isinstance(node, cst.Name):
        return [node.value]
    if isinstance(node, (cst.List, cst.Tuple)) and all(isinstance(e.value, cst.Name) for e in node.elements):
        return [e.value.value for e in node.elements if isinstance(e.value, cst.Name)]
    raise Blocked("TFM760", node, "the fetches of the loop are neither a name nor a list of names")


def _only_tells(training: Training, loop: cst.While | cst.For) -> None:
    """The rest of the loop may print what was fetched, and count; anything else is not known."""
    finder = Deeds()
    walk(loop.body, finder)
    for call in finder.calls:
        name = dotted(call.func) or ""
        if method_of_session(training, call) != "run" and not tells(call):
            message = (
                f"`{name or training.file.code(call.func)}` is called between the steps, which `fit` "
                "does not do: move it to a hook"
            )
            raise Blocked("TFM760", call, message)
    if finder.ends:
        message = "this condition ends the loop: use a StopAtStepHook"
        raise Blocked("TFM760", finder.ends[0], message)
    for target in finder.places:
        message = "results of the session are stored in an object or a list, which `fit` does not do"
        raise Blocked("TFM760", target, message)
    bound = {name for name, _ in bindings(loop)} - {"_"}
    later = set().union(*(names_in(s) for s in training.suffix)) if training.suffix else set()
    for name in sorted(bound & later):
        raise Blocked("TFM760", loop, f"`{name}`, a result of the session, is used after the loop")
    if len(loop.body.body) > 1:
        message = "the loop's own printing is dropped: `fit` prints the loss and the metrics"
        training.said.append(
            training.file.finding("TFM763", Severity.REVIEW, training.origins.get(loop, loop), message)
        )


class Deeds(cst.CSTVisitor):
    """The calls of a loop, and what ends it."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[cst.Call] = []
        self.ends: list[cst.CSTNode] = []
        self.places: list[cst.CSTNode] = []  # parts of objects that are assigned to

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        targets: list[cst.BaseExpression] = [node.target]
        while targets:
            target = targets.pop()
            if isinstance(target, (cst.Tuple, cst.List)):
                targets += [element.value for element in target.elements]
            elif not isinstance(target, cst.Name):
                self.places.append(target)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        if not isinstance(node.target, cst.Name):
            self.places.append(node.target)

    def visit_Global(self, node: cst.Global) -> None:
        self.places.append(node)

    def visit_Continue(self, node: cst.Continue) -> None:
        self.ends.append(node)

    def visit_Call(self, node: cst.Call) -> None:
        self.calls.append(node)

    def visit_Break(self, node: cst.Break) -> None:
        self.ends.append(node)

    def visit_Return(self, node: cst.Return) -> None:
        self.ends.append(node)

    def visit_Raise(self, node: cst.Raise) -> None:
        self.ends.append(node)
