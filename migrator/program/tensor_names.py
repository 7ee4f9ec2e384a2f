"""What the names mean that a model_fn gives to tensors for session hooks: `tf.identity(loss, name="loss")`."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrator.program.calls import bind, calls_in, string
from migrator.program.model_reference import ModelReference
from migrator.program.modes import SPEC
from migrator.program.parsed import Blocked, ParsedFile, Project
from migrator.program.region import reach
from migrator.rules.callbacks import is_global_step
from migrator.rules.hooks import Tensors
from migrator.walking import walk

_RATES = ("learning_rate", "lr")


def tensor_names(project: Project, models: Sequence[ModelReference]) -> Tensors:
    """What a tensor of the model_fns is, by its name in the graph: "loss", "step", "rate", or None when that is not
    sure. A hook may say a name with the scopes around it.
    """

    def meaning(name: str) -> str | None:
        found = {_meaning(project, model, name.rpartition("/")[2]) for model in models}
        return found.pop() if len(found) == 1 else None

    return meaning


def _meaning(project: Project, model: ModelReference, name: str) -> str | None:
    named: list[tuple[ParsedFile, cst.FunctionDef, cst.Call]] = []
    for node, file in reach(project, model.file, model.function).items():
        if not isinstance(node, cst.FunctionDef):
            continue
        named += [(file, node, call) for call in calls_in(node) if _gives_name(file, call, name)]
    if len({id(call) for _, _, call in named}) != 1:
        return None
    file, function, call = named[0]
    if file.imports.resolve(call.func) != "tf.identity" or not call.args:
        return None
    return _kind(file, function, call)


def _kind(file: ParsedFile, function: cst.FunctionDef, call: cst.Call) -> str | None:
    """What the argument of an identity is in a function."""
    finder = _Roles(file)
    walk(function, finder)
    value = call.args[0].value
    texts = {file.code(value), *(finder.given.get(id(call), ()))}
    if isinstance(value, cst.Call) and is_global_step(file.imports.resolve(value.func)):
        return "step"
    found = [kind for kind, known in finder.known.items() if texts & known]
    return found[0] if len(found) == 1 else None


class _Roles(cst.CSTVisitor):
    """The expressions of a function that are its loss, its step and its learning rate, as text; `given` are the names
    that a call's result is given to.
    """

    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self.known: dict[str, set[str]] = {"loss": set(), "step": set(), "rate": set()}
        self.given: dict[int, set[str]] = {}

    def visit_Assign(self, node: cst.Assign) -> None:
        names = {self.file.code(target.target) for target in node.targets}
        if isinstance(node.value, cst.Call):
            self.given[id(node.value)] = names
            if is_global_step(self.file.imports.resolve(node.value.func)):
                self.known["step"] |= names

    def visit_Call(self, node: cst.Call) -> None:
        name = self.file.imports.resolve(node.func) or ""
        last = name.rpartition(".")[2]
        if last in ("EstimatorSpec", "TPUEstimatorSpec"):
            self._spec(node, name)
        elif name.startswith("tf.") and last.endswith("Optimizer"):
            for index, arg in enumerate(node.args):
                if arg.keyword.value in _RATES if arg.keyword is not None else index == 0:
                    self.known["rate"].add(self.file.code(arg.value))

    def _spec(self, node: cst.Call, name: str) -> None:
        if any(arg.keyword is not None and arg.keyword.value == "loss" for arg in node.args):
            self.known["loss"] |= {
                self.file.code(a.value) for a in node.args if a.keyword is not None and a.keyword.value == "loss"
            }
            return
        try:
            loss = bind(node, SPEC, name, "TFM105").get("loss")
        except Blocked:
            return
        if loss is not None:
            self.known["loss"].add(self.file.code(loss))


def _gives_name(file: ParsedFile, call: cst.Call, name: str) -> bool:
    """Whether a call gives a tensor a name."""
    of_identity = file.imports.resolve(call.func) == "tf.identity"
    for index, arg in enumerate(call.args):
        named = arg.keyword.value == "name" if arg.keyword is not None else index == 1 and of_identity
        if named and (string(arg.value) or "").rpartition("/")[2] == name:
            return True
    return False
