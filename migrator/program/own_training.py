"""Training that a program writes out itself: `tf.gradients`, an optimizer class of its own, `assign`.

No Keras optimizer computes such an update. In the mapped form it need not: the train_op is TensorFlow 1 code like the
rest of the model_fn, and a train_step runs it as it is.
"""

from __future__ import annotations

import libcst as cst

from migrator.program.parsed import Blocked, ParsedFile
from migrator.program.region import Region, symbols
from migrator.rules.schedules import GLOBAL_STEPS, is_schedule
from migrator.walking import walk

#: What a train_op may use beside what any model_fn may. Run in TensorFlow 2.21, in a function that Keras traces, all of
#: these do what they do in an Estimator's graph; the collections are those that the Keras model fills.
_OF_TRAINING = (
    "tf.gradients",
    "tf.trainable_variables",
    "tf.assign",
    "tf.assign_add",
    "tf.assign_sub",
    "tf.train.Optimizer",
    "tf.GraphKeys.TRAINABLE_VARIABLES",
    "tf.GraphKeys.UPDATE_OPS",
)
_KEYS = ("tf.GraphKeys.TRAINABLE_VARIABLES", "tf.GraphKeys.UPDATE_OPS")
_CHOOSING = ("tf.cond", "tf.case", "tf.while_loop")
_CODE = "TFM422"


def is_of_training(name: str) -> bool:
    """Whether a symbol may stand in a train_op that a Keras model runs as it is."""
    return name in _OF_TRAINING or name in GLOBAL_STEPS or is_schedule(name)


def is_kept_collection(file: ParsedFile, node: cst.Call) -> bool:
    """Whether `tf.get_collection(...)` asks for a collection that the Keras model fills, or that is empty there."""
    return any(file.imports.tensorflow(arg.value) in _KEYS for arg in node.args[:1])


def trains_itself(region: Region) -> bool:
    """Whether the functions that a model_fn reaches compute and apply their gradients themselves."""
    named = symbols(region)
    return "tf.gradients" in named or any(_applies(node, file) for node, file in region.items())


def check_own_training(region: Region, file: ParsedFile, place: cst.CSTNode) -> None:
    """Raises Blocked for a train_op that would not do in a Keras model what it did in an Estimator's graph."""
    for node, where in region.items():
        stock = _Stock(where)
        walk(node, stock)
        if stock.found is not None:
            name, call = stock.found
            message = f"`{name}` makes its variables anew at every call there: use an optimizer class of your own"
            raise Blocked(_CODE, call if where is file else place, message)
        unused = _Unused(where)
        walk(node, unused)
        if unused.found is not None:
            message = "nothing uses the result of this assignment: it never ran, but would in a Keras model"
            raise Blocked(_CODE, unused.found if where is file else place, message)


def counts_by_condition(region: Region) -> bool:
    """Whether not every batch may count as a step: gradients are accumulated, say."""
    return any(
        named & set(GLOBAL_STEPS) and named & set(_CHOOSING)
        for named in (symbols({node: where}) for node, where in region.items())
    )


def counted_in_any_order(region: Region) -> list[tuple[ParsedFile, cst.CSTNode]]:
    """Where the global step is counted under no control dependency, so that its readers may see it before or after."""
    found: list[tuple[ParsedFile, cst.CSTNode]] = []
    for node, file in region.items():
        finder = _Counts(file)
        walk(node, finder)
        found += [(file, one) for one in finder.found]
    return found


class _Counts(cst.CSTVisitor):
    """`step.assign(...)` and `step.assign_add(...)` of names of the global step, outside of control dependencies."""

    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self.names: set[str] = set()
        self.found: list[cst.CSTNode] = []

    def visit_Assign(self, node: cst.Assign) -> None:
        if isinstance(node.value, cst.Call) and self.file.imports.resolve(node.value.func) in GLOBAL_STEPS:
            self.names |= {t.target.value for t in node.targets if isinstance(t.target, cst.Name)}

    def visit_With(self, node: cst.With) -> bool:
        calls = [item.item for item in node.items if isinstance(item.item, cst.Call)]
        return not any(self.file.imports.resolve(call.func) == "tf.control_dependencies" for call in calls)

    def visit_Call(self, node: cst.Call) -> None:
        method, owner = (node.func.attr.value, node.func.value) if isinstance(node.func, cst.Attribute) else ("", None)
        if method in ("assign", "assign_add") and isinstance(owner, cst.Name) and owner.value in self.names:
            self.found.append(node)


def _applies(node: cst.CSTNode, file: ParsedFile) -> bool:
    """Whether a node is an optimizer class that applies gradients its own way."""
    if not isinstance(node, cst.ClassDef):
        return False
    of_optimizers = any(file.imports.resolve(base.value) == "tf.train.Optimizer" for base in node.bases)
    own = {s.name.value for s in node.body.body if isinstance(s, cst.FunctionDef)}
    return of_optimizers and "apply_gradients" in own


class _Stock(cst.CSTVisitor):
    """The first optimizer of TensorFlow's own."""

    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self.found: tuple[str, cst.CSTNode] | None = None

    def visit_Attribute(self, node: cst.Attribute) -> None:
        name = self.file.imports.tensorflow(node) or ""
        if name.endswith("Optimizer") and name != "tf.train.Optimizer":
            self.found = self.found or (name, node)


class _Unused(cst.CSTVisitor):
    """The first assignment to a variable whose result is dropped."""

    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self.found: cst.CSTNode | None = None

    def visit_Expr(self, node: cst.Expr) -> None:
        call = node.value
        if not isinstance(call, cst.Call) or self.found is not None:
            return
        method = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
        if (self.file.imports.resolve(call.func) or method) in (
            *("assign", "assign_add", "assign_sub", "apply_gradients", "scatter_update"),
            *("tf.assign", "tf.assign_add", "tf.assign_sub"),
        ):
            self.found = node


__all__ = [
    "check_own_training",
    "counted_in_any_order",
    "counts_by_condition",
    "is_kept_collection",
    "is_of_training",
    "trains_itself",
]
