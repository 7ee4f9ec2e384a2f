"""Session hooks: those that only report are left out, those that end the training become its number of steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst

from migrator.findings import Severity
from migrator.program.calls import bind, is_none
from migrator.program.parsed import Blocked, ParsedFile
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM110",
        "hooks, listeners and scaffolds",
        Severity.MANUAL,
        """
Hooks that only report are left out (TFM141), and `StopAtStepHook` becomes the number of steps. Other session hooks,
early stopping, saving listeners and scaffolds may change the training and are not carried over. Keras callbacks take
their place: `tf.keras.callbacks.EarlyStopping` for `stop_if_no_decrease_hook` and its kin (it counts epochs, they count
steps and read the clock), `on_train_batch_end` of a callback of your own for `after_run`. Remove them from the program
and write the callback by hand.
""",
    ),
    Rule(
        "TFM141",
        "hooks that only report are left out",
        Severity.REVIEW,
        """
`LoggingTensorHook`, `SummarySaverHook`, `StepCounterHook`, `ProfilerHook`, `CheckpointSaverHook` and
`GlobalStepWaiterHook` do not change what is trained. `Model.fit` prints loss and metrics itself;
`tf.keras.callbacks.TensorBoard(log_dir, update_freq=..., profile_batch=...)` writes summaries, step rate and profiles,
and the migrated program writes checkpoints where the Estimator has a `model_dir`. `NanTensorHook` stopped the program
at a loss that is not a number, as every Estimator did anyway: `tf.keras.callbacks.TerminateOnNaN()` does that. A hook
of the program's own that only looks at values and prints or logs them is left out with its class; where you miss it,
print from `on_train_batch_end(batch, logs)` of a `tf.keras.callbacks.Callback`.
""",
    ),
)

_REPORTS = frozenset(
    (
        "LoggingTensorHook",
        "SummarySaverHook",
        "StepCounterHook",
        "ProfilerHook",
        "CheckpointSaverHook",
        "GlobalStepWaiterHook",
        "NanTensorHook",
    )
)
_MODULES = ("tf.train.", "tf.estimator.", "tf.contrib.")


@dataclass
class Hooks:
    """What becomes of the hooks of a call: remarks about those left out, and the steps that one of them sets.

    `nodes` are the expressions that are left out, `classes` the program's own hooks among them; `steps` and `max_steps`
    come from a StopAtStepHook.
    """

    remarks: list[Blocked] = field(default_factory=list)
    nodes: list[cst.BaseExpression] = field(default_factory=list)
    classes: list[cst.ClassDef] = field(default_factory=list)
    steps: cst.BaseExpression | None = None
    max_steps: cst.BaseExpression | None = None


def read_hooks(file: ParsedFile, scope: cst.CSTNode, node: cst.BaseExpression | None, training: bool) -> Hooks:
    """Judges the hooks that an argument gives. Raises Blocked (TFM110) for one that may change the training."""
    found = Hooks()
    if is_none(node):
        return found
    assert node is not None
    found.nodes.append(node)
    sure = isinstance(node, cst.List | cst.Tuple)
    for hook in _elements(file, scope, node, frozenset()):
        name = file.imports.resolve(hook.func) if isinstance(hook, cst.Call) else None
        last = (name or "").rpartition(".")[2]
        own = _own_class(file, hook)
        if own is not None:
            _check_observes(file, own, hook)
            found.classes.append(own)
            message = f"`{own.name.value}` is left out: it changes nothing in the training"
            found.remarks.append(Blocked("TFM141", hook, message))
            continue
        if name is None or not name.startswith(_MODULES):
            raise Blocked("TFM110", hook, "this hook may change the training: it is not carried over")
        assert isinstance(hook, cst.Call)
        if last in _REPORTS:
            found.remarks.append(
                Blocked("TFM141", hook, f"the `{last}` is left out: it changes nothing in the training")
            )
        elif last == "StopAtStepHook" and training and sure and found.steps is None and found.max_steps is None:
            bound = bind(hook, ("num_steps", "last_step"), name, "TFM110")
            found.steps, found.max_steps = bound.get("num_steps"), bound.get("last_step")
        else:
            raise Blocked("TFM110", hook, f"`{last}` is not carried over: write a Keras callback in its place")
    return found


_HOOK = tuple(f"{module}.SessionRunHook" for module in ("tf.train", "tf.estimator"))
_TELLS = frozenset(
    ("print", "len", "str", "int", "float", "range", "zip", "dict", "list", "sorted", "super", "isinstance")
)
_METHODS = frozenset(
    (
        *("format", "join", "items", "keys", "values", "get", "append", "__init__", "time", "total_seconds", "now"),
        *("get_tensor_by_name", "get_operation_by_name", "should_trigger_for_step", "update_last_triggered_step"),
        *("add_summary", "info", "warning", "debug", "error", "log", "reset", "flush"),
    )
)
_SYMBOLS = (
    *("tf.logging.", "tf.train.SessionRunArgs", "tf.estimator.SessionRunArgs", "tf.train.SecondOrStepTimer"),
    *("tf.train.get_global_step", "tf.train.get_or_create_global_step", "tf.get_default_graph", "tf.Summary"),
    *("tf.summary.FileWriter", "tf.train.basic_session_run_hooks", "tf.estimator.SecondOrStepTimer"),
)


def _own_class(file: ParsedFile, node: cst.BaseExpression) -> cst.ClassDef | None:
    """The class of the file that a call makes a hook of."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Name):
        return None
    found = [s for s in file.module.body if isinstance(s, cst.ClassDef) and s.name.value == node.func.value]
    if len(found) != 1 or [file.imports.tensorflow(base.value) for base in found[0].bases] not in [[h] for h in _HOOK]:
        return None
    return found[0]


def _check_observes(file: ParsedFile, node: cst.ClassDef, hook: cst.BaseExpression) -> None:
    """Refuses a hook class that may do more than look at values and report them."""
    finder = _Deeds(file)
    node.body.visit(finder)
    if finder.found:
        text = file.code(finder.found[0])
        message = f"`{node.name.value}` may change the training (`{text.strip()[:40]}`): write a Keras callback instead"
        raise Blocked("TFM110", hook, message)


class _Deeds(cst.CSTVisitor):
    """What a hook does beside looking at values, keeping some of its own, and reporting them."""

    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self.found: list[cst.CSTNode] = []

    def visit_Call(self, node: cst.Call) -> None:
        name = self.file.imports.resolve(node.func) or ""
        tells = isinstance(node.func, cst.Name) and node.func.value in _TELLS
        method = isinstance(node.func, cst.Attribute) and node.func.attr.value in _METHODS
        symbol = name.startswith(_SYMBOLS) or name.startswith(("time.", "datetime.", "logging."))
        if not (tells or symbol or (method and not name.startswith("tf."))):
            self.found.append(node)

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        root: cst.BaseExpression = node.target
        while isinstance(root, cst.Attribute | cst.Subscript):
            root = root.value
        if root is not node.target and not (isinstance(root, cst.Name) and root.value == "self"):
            self.found.append(node)

    def visit_Raise(self, node: cst.Raise) -> None:
        self.found.append(node)

    def visit_Global(self, node: cst.Global) -> None:
        self.found.append(node)


def _elements(
    file: ParsedFile, scope: cst.CSTNode, node: cst.BaseExpression, seen: frozenset[str]
) -> Iterator[cst.BaseExpression]:
    """The hooks that an expression may hold, names of the scope followed; what is not understood is given as it is."""
    if is_none(node):
        return
    if isinstance(node, cst.List | cst.Tuple):
        for element in node.elements:
            yield from _elements(file, scope, element.value, seen)
    elif isinstance(node, cst.IfExp):
        yield from _elements(file, scope, node.body, seen)
        yield from _elements(file, scope, node.orelse, seen)
    elif isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
        yield from _elements(file, scope, node.left, seen)
        yield from _elements(file, scope, node.right, seen)
    elif isinstance(node, cst.Name) and node.value not in seen:
        finder = _Given(node.value)
        scope.visit(finder)
        if not finder.found and scope is not file.module:
            file.module.visit(finder)
        if not finder.found or not finder.plain:
            yield node
        for value in finder.found:
            yield from _elements(file, scope, value, seen | {node.value})
    else:
        yield node


class _Given(cst.CSTVisitor):
    """Everything that a name is given, and that is added to the list that it stands for."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.found: list[cst.BaseExpression] = []
        self.plain = True

    def _is_name(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Name) and node.value == self.name

    def visit_Assign(self, node: cst.Assign) -> None:
        for target in node.targets:
            if self._is_name(target.target):
                self.found.append(node.value)
            elif isinstance(target.target, cst.Tuple | cst.List):
                self.plain = self.plain and not any(self._is_name(e.value) for e in target.target.elements)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        if self._is_name(node.target):
            self.found.append(node.value)

    def visit_Param(self, node: cst.Param) -> None:
        self.plain = self.plain and node.name.value != self.name

    def visit_For(self, node: cst.For) -> None:
        self.plain = self.plain and not self._is_name(node.target)

    def visit_Call(self, node: cst.Call) -> None:
        if isinstance(node.func, cst.Attribute) and self._is_name(node.func.value) and node.args:
            if node.func.attr.value in ("append", "extend", "insert"):
                self.found.append(node.args[-1].value)
            else:
                self.plain = False
