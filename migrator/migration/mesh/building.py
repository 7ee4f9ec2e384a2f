"""Models of a mesh: their layers, the shapes of their inputs, their variables, and the check of layouts."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrator.migration.mesh.draft import Draft, refuse
from migrator.migration.mesh.edits import method, put_after, with_more, with_node
from migrator.migration.mesh.given import reach
from migrator.program.assignments import assignments
from migrator.targets import dtensor


def replace_layers(draft: Draft) -> None:
    """Layers that have no form on a mesh become those of classes of the file."""
    draft.helpers.update(draft.models.classes)
    for call in draft.models.replaced:
        draft.edit(call.func, with_node(cst.Name(draft.models.replaced[call])))


def build_model(draft: Draft, name: str | None) -> None:
    """A Sequential model gets its input's shape where it is made. Without one its first call on a mesh makes it
    anew for inputs of one axis more: dense layers take them, and convolutions raise (TensorFlow 2.21).
    """
    deferred = deferred_model(draft)
    if deferred is None:
        return
    line, data = _line_of_model(draft, name), _data_of_loop(draft, name)
    if line is not None and data is not None and draft.above(line, cst.With) is not None:
        given = data.args[0].value
        if isinstance(given, cst.Name) and draft.file.parsed.position(data) < draft.file.parsed.position(line):
            new = draft.lines(f"{name}.build({given.value}.element_spec[0].shape)")
            draft.edit(line, with_more(new))
            return
    message = "a Sequential model without input shape is unsupported on a mesh: give its first layer `input_shape=`"
    refuse(deferred, message)


def deferred_model(draft: Draft) -> cst.Call | None:
    """What makes a Sequential model of no known input, which nothing builds."""
    if draft.models.own or any(method(call) == "build" for call in draft.calls):
        return None
    return next((call for call in draft.calls if _is_deferred(draft, call)), None)


def _is_deferred(draft: Draft, call: cst.Call) -> bool:
    """Whether a call makes a Sequential model whose first layer does not say what its input is."""
    if (draft.file.name(call.func) or "").rpartition(".")[2] != "Sequential":
        return False
    layers = call.args[0].value if call.args else None
    inner: Sequence[cst.BaseExpression] = [one for one in draft.calls if method(one) == "add"]
    if isinstance(layers, (cst.List, cst.Tuple)) and layers.elements:
        first = layers.elements[0].value
        inner = [draft.file.value_of(first) or first]
    text = " ".join(draft.text(one) for one in inner)
    return not any(word in text for word in ("input_shape", "input_dim", "Input(", "InputLayer(", "Embedding("))


def _line_of_model(draft: Draft, model: str | None) -> cst.SimpleStatementLine | None:
    """The line that makes the model of a loop of the program's own, where the strategy is made."""
    around = (draft.strategy.around or draft.module).body
    given = around.body if isinstance(around, cst.BaseSuite) else around
    made = [value for one in given for name, value in assignments(one) if name == model]
    return draft.above(made[0], cst.SimpleStatementLine) if len(made) == 1 else None


def _data_of_loop(draft: Draft, model: str | None) -> cst.Call | None:
    """What divides the first data of such a loop, in the same function."""
    line = _line_of_model(draft, model)
    return next(
        (
            call
            for call in draft.calls
            if line is not None
            and method(call) == "experimental_distribute_dataset"
            and call.args
            and draft.above(call, cst.FunctionDef) is draft.above(line, cst.FunctionDef)
        ),
        None,
    )


def finish_model(draft: Draft, model: str | None) -> None:
    """A model of a loop of the program's own gets its variables, and its layouts are checked."""
    if model is None or not (draft.models.own or draft.layouts.variables):
        return
    line = _line_of_model(draft, model)
    if line is None:
        message = f"`{model}` is not created on one line beside the strategy: create it there for a mesh"
        refuse(draft.strategy.call, message)
    new: list[cst.BaseStatement] = []
    places: list[cst.CSTNode] = [line]
    if draft.models.own:
        built = next((call for call in draft.calls if method(call) == "build"), None)
        if built is not None:
            refuse(built, "a subclassed model gets its variables from its data on a mesh: leave `build` out")
        data = _data_of_loop(draft, model)
        target = draft.parents[data] if data is not None else None
        if data is None or not isinstance(target, cst.Assign) or len(target.targets) > 1:
            message = (
                "on a mesh a subclassed model gets its variables from the shapes of its data: call `data = "
                "strategy.experimental_distribute_dataset(...)` where the model is created"
            )
            refuse(line, message)
        new += made_variables(draft, model, f"{draft.text(target.targets[0].target)}.dataset")
        places.append(data)
    new += checked(draft, line, model)
    last = max((_whole_statement(draft, one) for one in places), key=draft.file.parsed.position)
    draft.edit(last, lambda node: put_after(node, new))


def _whole_statement(draft: Draft, node: cst.CSTNode) -> cst.CSTNode:
    """The statement around a node of the block in which the strategy is made."""
    block = draft.module if draft.strategy.around is None else draft.strategy.around.body
    while draft.parents[node] is not block:
        node = draft.parents[node]
    return node


def made_variables(draft: Draft, model: str, dataset: str) -> Sequence[cst.BaseStatement]:
    """A line that makes the variables of a model of the program's own class."""
    make = draft.helper("make_variables", lambda name: dtensor.make_variables(name, "    "))
    return draft.lines(f"{make}({model}, {dataset}, {draft.mesh})")


def checked(draft: Draft, place: cst.CSTNode, model: str) -> Sequence[cst.BaseStatement]:
    """Lines that check that all layouts are those of a variable."""
    if not draft.layouts.variables:
        return []
    reach(draft, place, draft.scope)
    own = bool(draft.models.own)
    check = draft.helper("check_layouts", lambda name: dtensor.check_layouts(name, "    ", own), ("re",))
    return draft.lines(f"{check}({model}, {draft.scope})")
