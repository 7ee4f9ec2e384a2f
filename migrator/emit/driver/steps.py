"""How many steps and batches the calls of a driver are told."""

from __future__ import annotations

import re
from collections.abc import Mapping

import libcst as cst

from migrator.emit.driver.draft import Draft
from migrator.names.bindings import values_given
from migrator.program.calls import is_none, number
from migrator.program.parsed import Blocked, names_in
from migrator.program.results import looks_at_all
from migrator.program.starts import asks_global_step
from migrator.program.tpu import TpuUse
from migrator.program.training import Use, path_to
from migrator.rules import endless
from migrator.targets.plan import primary


def never_end(draft: Draft, arguments: Mapping[str, cst.BaseExpression], mode: str) -> bool:
    """Whether `fit` and `evaluate` are told the steps of data that have no end.

    They start what `take` leaves of it twice before the first batch, so that a shuffle reads its second order.
    """
    return endless.never_end(draft.project, draft.program, arguments.get("input_fn"), mode)


def may_end(draft: Draft) -> bool:
    """Whether the data of train_and_evaluate may end before the last of its periods."""
    both = draft.program.train_and_evaluate
    if both is None or is_none(draft.program.config.get("save_checkpoints_steps")):
        return False
    if draft.loop.own and draft.target.parameter_servers:
        return False  # TFM742
    return not never_end(draft, both.train, "train")


def batches(draft: Draft, count: cst.BaseExpression) -> str:
    """A number of batches, which an Estimator also took as a float: it went on until that was reached."""
    count = draft.of_config(count)
    known = draft.file.constants.get(count.value, count) if isinstance(count, cst.Name) else count
    value = number(known)
    if isinstance(known, cst.Float) and value is not None and value == int(value) and known is count:
        return str(int(value))
    divided = isinstance(known, cst.BinaryOperation) and isinstance(known.operator, cst.Divide)
    if not divided and not isinstance(known, cst.Float):
        return draft.text(count)
    draft.needs.add("math")
    return f"math.ceil({draft.text(count)})"


def _limited(draft: Draft, dataset: str, steps: cst.BaseExpression | None, default: str | None) -> str:
    """A dataset of at most `steps` batches."""
    if steps is None:
        return dataset if default is None else f"{primary(dataset)}.take({default})"
    if is_none(steps):
        return dataset
    text = batches(draft, steps)
    if _may_be_none(draft, steps):
        text = f"-1 if {text} is None else {text}"  # -1 takes all
    return f"{primary(dataset)}.take({text})"


def counted(
    draft: Draft, dataset: str, steps: cst.BaseExpression | None, default: str | None, endless: bool
) -> tuple[str, str | None]:
    """A dataset of at most `steps` batches; or the whole, and the steps for a call that is told them."""
    told = draft.target.counts or (endless and draft.keras.cuts_executions)
    if not told or draft.loop.own:
        return _limited(draft, dataset, steps, default), None
    if steps is None:
        return dataset, default
    return dataset, None if is_none(steps) else batches(draft, steps)


def _may_be_none(draft: Draft, node: cst.BaseExpression) -> bool:
    """Whether an expression is a name that is None somewhere in the scope of the program."""
    node = draft.of_config(node)
    if not isinstance(node, cst.Name):
        return False
    return any(is_none(value) for value in values_given(draft.program.scope, node.value))


def is_counted(draft: Draft) -> bool:
    """Whether every training is surely told its steps."""
    given = draft.program.trainings
    return bool(given) and all(
        draft.model.stop is not None or any(_is_number(draft, arguments.get(name)) for name in ("steps", "max_steps"))
        for arguments in given
    )


def _is_number(draft: Draft, node: cst.BaseExpression | None) -> bool:
    """Whether an argument is surely not None when the program runs, as far as can be seen."""
    if node is None or is_none(node) or _may_be_none(draft, node):
        return False
    flag = node.attr.value if isinstance(node, cst.Attribute) else None
    empty = rf"""DEFINE_\w+\(\s*(?:name=)?["']{flag}["'],\s*(?:default=)?None\b"""
    return flag is None or re.search(empty, draft.file.bare) is None


def is_endless(draft: Draft, steps: cst.BaseExpression | None) -> bool:
    """Whether the steps of a training, which are given, may be None when the program runs; `fit` is told of."""
    if steps is None or is_none(steps) or _is_number(draft, steps):
        return False
    if draft.loop.own and draft.target.parameter_servers:
        message = "the steps may be None: a custom loop on parameter servers needs a number"
        raise Blocked("TFM737", steps, message)
    if not draft.loop.own:
        message = "with steps=None the Estimator trained on all data, but `fit` fails: give a number"
        draft.say("TFM115", steps, message)
    return True


def steps_per_call(draft: Draft, tpu: TpuUse | None) -> str | None:
    """How many steps a loop of the program's own makes in one call, where the program says it."""
    if tpu is None or tpu.iterations is None or not draft.loop.own or not is_counted(draft):
        return None
    return draft.text(tpu.iterations)


def limits(
    draft: Draft, arguments: Mapping[str, cst.BaseExpression], place: cst.Call
) -> Mapping[str, cst.BaseExpression]:
    """The arguments of a training, with the end that a hook of the model_fn sets it."""
    if draft.model.stop is None:
        return arguments
    name, value = draft.model.stop
    model_file = draft.program.model_file
    known = names_in(value) <= (draft.file.constants.keys() if model_file is draft.file else set())
    if not known:
        message = "a StopAtStepHook in the model_fn reads a name unknown in the driver: pass the steps to `train`"
        raise Blocked("TFM110", value, message)
    given = [key for key in ("steps", "max_steps") if not is_none(arguments.get(key))]
    if not given:
        return {**arguments, name: value}
    if given != [name]:
        raise Blocked("TFM110", place, "a StopAtStepHook in the model_fn conflicts with the steps given here: keep one")
    both = [draft.file.code(arguments[name]), draft.file.code(value)]
    return {**arguments, name: cst.parse_expression(f"min({', '.join(both)})")}


def trains_again(draft: Draft) -> bool:
    """Whether a training of this Estimator may follow another: several calls, or one in a loop or a function."""
    program = draft.program
    training = [use.place.call for use in program.uses if use.method == "train"]
    if program.train_and_evaluate is not None:
        training.append(program.train_and_evaluate.place.call)
    if len(training) != 1:
        return bool(training)
    around = path_to(program.scope, program.place.call)
    repeats = (cst.For, cst.While, cst.FunctionDef)
    inside = path_to(program.scope, training[0])
    return any(isinstance(node, repeats) and not any(node is other for other in around) for node in inside)


def reads_steps(draft: Draft) -> bool:
    """Whether the program looks at the number of steps behind a training."""
    both = draft.program.train_and_evaluate
    return (both is not None and both.answers) or any(
        asks_global_step(draft.file, use.arguments.get("name"))
        if use.method == "get_variable_value"
        else use.method == "evaluate" and tells_steps(draft, use, scope)
        for use, scope in draft.program.places_of_uses
    )


def tells_steps(draft: Draft, use: Use, scope: cst.CSTNode) -> bool:
    """Whether the result of an evaluation may be asked for the number of steps."""
    return draft.program.reads_global_step or looks_at_all(scope, use.place.call, draft.file.imports)


__all__ = [
    "batches",
    "counted",
    "is_counted",
    "is_endless",
    "limits",
    "may_end",
    "never_end",
    "reads_steps",
    "steps_per_call",
    "tells_steps",
    "trains_again",
]
