"""A model that is compiled, trained by `fit` and measured by `evaluate`: a loop of a mesh takes their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import libcst as cst

from migrator.migration.mesh.building import checked, deferred_model, made_variables
from migrator.migration.mesh.draft import Draft, refuse
from migrator.migration.mesh.edits import method, put_before, put_in_place, receiver, with_text
from migrator.migration.mesh.given import reach
from migrator.names.imports import dotted
from migrator.program.assignments import assignments
from migrator.program.calls import string
from migrator.program.parsed import name_nodes
from migrator.program.scopes import returns_in
from migrator.rules.mesh import OPTIMIZERS
from migrator.targets import dtensor
from migrator.targets.plan import LoopShape

_WORDS = {name.lower(): name for name in OPTIMIZERS}
_METRIC_WORDS = frozenset(
    (
        *("accuracy", "acc", "mae", "mean_absolute_error", "mean_squared_error", "mse"),
        *("binary_accuracy", "categorical_accuracy", "sparse_categorical_accuracy"),
    )
)
#: What a model of the program may be asked for, beside what is written anew.
_OF_MODEL = frozenset(
    (
        *("add", "build", "compile", "count_params", "evaluate", "fit", "get_layer", "layers", "losses", "metrics"),
        *("name", "non_trainable_variables", "optimizer", "summary", "trainable_variables", "trainable_weights"),
        *("variables", "weights"),
    )
)


def rewrite_fits(draft: Draft) -> bool:
    """Keras' own loops become one of a mesh; whether there are any."""
    compiled = [call for call in draft.calls if method(call) == "compile"]
    models = {dotted(call.func.value) for call in compiled if isinstance(call.func, cst.Attribute)}
    for attribute in draft.attributes:
        if dotted(attribute.value) in models and attribute.attr.value not in _OF_MODEL:
            message = (
                f"`{draft.text(attribute)}` is unsupported on a mesh, where Keras' own loops do not run: "
                "move it to a separate program"
            )
            refuse(attribute, message)
    for call in compiled:  # in a function that gives the model to others
        builder = draft.above(call, cst.FunctionDef)
        models |= _given_by(draft, builder) if builder is not None else set()
    fits, tests = ([call for call in draft.calls if method(call) == word] for word in ("fit", "evaluate"))
    if compiled and not draft.own:
        for call in (*fits, *tests):
            if receiver(call) not in models:
                message = "is not known to be the model compiled here: compile it where it is trained"
                refuse(call, f"`{draft.text(call.func)}` {message}")
    fits, tests = ([call for call in several if receiver(call) in models] for several in (fits, tests))
    if not fits and not tests:
        return False
    if len(compiled) != 1:
        refuse(compiled[-1], "several compiled models in one file are unsupported on a mesh: keep one")
    measures = _rewrite_compile(draft, compiled[0])
    first = min([*fits, *tests], key=draft.file.parsed.position)
    model = receiver(first) or ""
    reach(draft, first, draft.mesh)
    line = draft.line_of(first)
    block = draft.parents[line]
    for call in (*fits, *tests):
        if not _inside(draft, call, block):
            message = "trained and evaluated in several functions, unsupported on a mesh: use one function"
            refuse(call, f"`{model}` is {message}")
    loop, kind = draft.new("loop"), draft.new("TrainingLoop")
    shape = LoopShape(of_class=False, saves=False, measures=measures, of_batch=True)
    draft.helpers[kind] = dtensor.training_loop(kind, "    ", shape)
    draft.imports.append("itertools")
    for call in tests:
        _rewrite_evaluate(draft, call, loop, measures)
    for call in fits:
        _rewrite_fit(draft, call, loop)
    data = next((arg.value for arg in first.args if arg.keyword is None or arg.keyword.value == "x"), None)
    made: list[cst.BaseStatement] = []
    if deferred_model(draft) is not None and data is not None:
        reach(draft, first, draft.scope)
        shape_of_data = f"{draft.text(data)}.element_spec[0].shape"
        made += draft.lines(f"with {draft.scope}.scope():\n{draft.indent}{model}.build({shape_of_data})")
    if draft.models.own and data is not None:
        made += made_variables(draft, model, draft.text(data))
    made += [*checked(draft, first, model), *draft.lines(f"{loop} = {kind}({model}, {draft.mesh})")]
    draft.edit(line, lambda node: put_before(node, made))
    return True


def _given_by(draft: Draft, function: cst.FunctionDef) -> set[str | None]:
    """The names that are given what a function returns."""
    returns = {name.value for one in returns_in(function.body) if one.value is not None for name in name_nodes(one)}
    if not returns:
        return set()
    return {
        name
        for block in (draft.module, *(one.body for one in draft.file.functions))
        for name, value in assignments(block)
        if isinstance(value, cst.Call) and dotted(value.func) == function.name.value
    }


def _inside(draft: Draft, node: cst.CSTNode, block: cst.CSTNode) -> bool:
    one: cst.CSTNode | None = node
    while one is not None and one is not block:
        one = draft.parents.get(one)
        if isinstance(one, (cst.FunctionDef, cst.Lambda)) and one is not block:
            return False
    return one is block


def _rewrite_compile(draft: Draft, call: cst.Call) -> bool:
    """Gives the optimizer the mesh; whether the model has metrics."""
    measures = False
    for arg in call.args:
        word = arg.keyword.value if arg.keyword is not None else None
        if word not in ("optimizer", "loss", "metrics"):
            name = "an argument is passed without a name: write it as a keyword" if word is None else f"`{word}`"
            refuse(arg, f"{name} of `compile` is unsupported on a mesh: give optimizer=, loss= and metrics= only")
        named = string(arg.value)
        if word == "optimizer" and named is not None:
            kind = _WORDS.get(named.lower())
            if kind is None:
                refuse(arg, f"the optimizer `{named}` is untested on a mesh: use Adam, for example", "TFM792")
            reach(draft, arg.value, draft.mesh)
            draft.edit(arg.value, with_text(f"tf.keras.optimizers.{kind}(mesh={draft.mesh})"))
        elif word == "metrics":
            measures = _check_metrics(draft, arg.value)
    return measures


def _check_metrics(draft: Draft, node: cst.BaseExpression) -> bool:
    if not isinstance(node, (cst.List, cst.Tuple)):
        refuse(node, "the metrics are not listed here: give `compile` a list of them", "TFM793")
    for element in node.elements:
        word = string(element.value)
        if word is not None and word not in _METRIC_WORDS:
            refuse(element, f"the metric `{word}` is untested on a mesh: leave it out", "TFM793")
        if word is None and not isinstance(element.value, cst.Call):
            refuse(element, "a metric is not created here: create it in the list", "TFM793")
    return bool(node.elements)


def _rewrite_fit(draft: Draft, call: cst.Call, loop: str) -> None:
    line = draft.line_of(call)
    small = line.body[0]
    if isinstance(small, cst.Assign) and small.value is call and len(small.targets) == 1:
        target = small.targets[0].target
        read = [
            node for node in name_nodes(draft.module) if isinstance(target, cst.Name) and node.value == target.value
        ]
        if len(read) != 1:
            message = f"`{draft.text(target)}` is read, but a mesh has no `fit` history: print the values to keep"
            refuse(call, message)
    elif not isinstance(small, cst.Expr) or small.value is not call:
        refuse(call, "the result of `fit` is used, but a mesh has no history: call it on its own line")
    given = _arguments(draft, call, ("epochs", "validation_data", "steps_per_epoch", "verbose"))
    epochs = draft.text(given["epochs"]) if "epochs" in given else "1"
    data = given["x"]
    steps = given.get("steps_per_epoch")
    validation = given.get("validation_data")
    if isinstance(validation, (cst.Tuple, cst.List)):
        refuse(validation, "arrays as validation data are unsupported on a mesh: use a tf.data.Dataset of batches")
    shown = []
    batches = f"{loop}.batches({draft.text(data)})"
    lines = []
    if steps is not None:
        name = draft.new("batches")
        lines.append(f"{name} = {batches}")
        batches = f"{name}, {draft.text(steps)}"
    if validation is not None:
        shown = [f"print({loop}.evaluate({loop}.batches({draft.text(validation)})))"]
    body = [f"{loop}.train({batches})", *shown]
    if epochs == "1":
        lines += body
    else:
        lines += [f"for _ in range({epochs}):", *(draft.indent + one for one in body)]
    new = draft.lines("\n".join(lines))
    draft.edit(line, lambda node: put_in_place(node, line, new))


def _rewrite_evaluate(draft: Draft, call: cst.Call, loop: str, measures: bool) -> None:
    given = _arguments(draft, call, ("verbose", "return_dict"))
    text = f"{loop}.evaluate({loop}.batches({draft.text(given['x'])}))"
    above = draft.parents[call]
    if isinstance(above, cst.Expr):
        text = f"print({text})"
    elif "return_dict" not in given or draft.text(given["return_dict"]) != "True":
        text = f"list({text}.values())" if measures else f'{text}["loss"]'
    draft.edit(call, with_text(text))


def _arguments(draft: Draft, call: cst.Call, known: Sequence[str]) -> Mapping[str, cst.BaseExpression]:
    """The arguments of a call of Keras' loops, of which `x` is a dataset."""
    found: dict[str, cst.BaseExpression] = {}
    for place, arg in enumerate(call.args):
        word = arg.keyword.value if arg.keyword is not None else "x" if place == 0 and not arg.star else None
        if word == "x" or word in known:
            found[word or ""] = arg.value
        elif word in (None, "y", "batch_size", "sample_weight", "validation_split", "shuffle"):
            refuse(arg, "arrays are unsupported on a mesh: use a tf.data.Dataset, shuffled and batched")
        else:
            name = method(call)
            refuse(arg, f"`{word}` of `{name}` is unsupported on a mesh: write its effect around the loop by hand")
    if "x" not in found:
        refuse(call, "no dataset is given")
    return found
