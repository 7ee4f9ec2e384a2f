"""The driver of an Estimator that goes from one function to another: it stays, and another object is used there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import libcst as cst

from migrator.emit.driver import FileNames
from migrator.emit.layout import call
from migrator.emit.model_function import EmittedModel
from migrator.program.parsed import Blocked, ParsedFile, Project
from migrator.program.training import FlowingUse, TrainingProgram
from migrator.rules.batches import LOSS_OF_EXAMPLES, check_batches, reads_batch
from migrator.rules.rewriter import Rewriter
from migrator.targets import setup
from migrator.targets.keras_estimator import keras_estimator

_CHECKPOINTS = "an Estimator's checkpoints in the `model_dir` are not read: `tf-migrate checkpoint` carries them over"


@dataclass(frozen=True)
class FlowingDriver:
    """Expressions in the place of others by file, classes beside the program as text, what they import, remarks."""

    expressions: dict[Path, dict[cst.CSTNode, cst.BaseExpression]]
    helpers: tuple[str, ...]
    remarks: tuple[tuple[ParsedFile, Blocked], ...]
    needs: frozenset[str] = frozenset(("copy", "os", "tempfile"))


def emit_flowing(
    project: Project,
    program: TrainingProgram,
    rewriters: Mapping[Path, Rewriter],
    emitted: EmittedModel,
    of_dicts: bool,
    names: FileNames,
    rates: str,
) -> FlowingDriver:
    """What takes the place of the Estimator, and of the calls on it that give more than the new object takes.

    Raises Blocked (TFM103, TFM619) for models that the object is not written for.
    """
    assert program.flowing is not None
    place = program.place.call
    if emitted.hooks.stop is not None or emitted.hooks.checkpoint is not None or emitted.hooks.averages is not None:
        raise Blocked("TFM103", place, "the hooks of this model_fn go with an Estimator of one function")
    if emitted.outside is not None:
        raise Blocked("TFM403", emitted.outside, "every use makes the model anew: make its optimizer in the model_fn")
    if reads_batch(project, program):
        message = "the network reads the size of its batches, and a Keras model is not made for one size here"
        raise Blocked("TFM619", place, message)
    check_batches(project, program)
    indent = program.file.module.default_indent
    helpers: list[str] = []

    def helper(wanted: str, build: partial[str]) -> str:
        key = build(wanted)
        if key not in names.helpers:
            names.helpers[key] = names.free(wanted)
        helpers.append(build(names.helpers[key]))
        return names.helpers[key]

    counted = helper("CountedSteps", partial(setup.counted_steps, indent=indent))
    takes_params = program.model.parameters.params is not None
    make = partial(
        keras_estimator,
        counted=counted,
        indent=indent,
        predicts=emitted.has_predictor,
        of_dicts=of_dicts,
        takes_params=takes_params,
        rates=rates,
    )
    name = helper("KerasEstimator", make)
    expressions: dict[Path, dict[cst.CSTNode, cst.BaseExpression]] = {}
    rewriter = rewriters[program.file.path]
    made = expressions.setdefault(program.file.path, {})
    made[place] = _construction(program, rewriter, name, takes_params)
    for use in program.flowing.uses:
        if not _says_only(use):
            expressions.setdefault(use.file.path, {})[use.call] = _use(use, rewriters[use.file.path])
    remarks = [(program.file, Blocked("TFM850", place, _CHECKPOINTS))]
    if not emitted.loss_of_batch:
        first = next((use for use in program.flowing.uses if use.method == "evaluate"), None)
        remarks += [] if first is None else [(first.file, Blocked("TFM303", first.call, LOSS_OF_EXAMPLES))]
    remarks += [(program.file, remark) for remark in program.remarks]
    return FlowingDriver(expressions, tuple(helpers), tuple(remarks))


def _construction(program: TrainingProgram, rewriter: Rewriter, name: str, params: bool) -> cst.BaseExpression:
    def text(node: cst.BaseExpression) -> str:
        new = node.visit(rewriter)
        assert isinstance(new, cst.BaseExpression)
        return program.file.code(new)

    given = [
        ("model_dir", program.model_dir),
        ("params", program.params if params else None),
        ("save_steps", program.config.get("save_checkpoints_steps")),
        ("seed", program.config.get("tf_random_seed")),
    ]
    arguments = [text(program.model.callee), *(f"{key}={text(value)}" for key, value in given if value is not None)]
    return cst.parse_expression(call(name, arguments, program.file.module.default_indent, 0))


def _says_only(use: FlowingUse) -> bool:
    """Whether a call gives just what counts, and all but its data by name."""
    given = {arg.keyword.value if arg.keyword is not None else "" for arg in use.call.args[1:]}
    return given == use.settings.keys()


def _use(use: FlowingUse, rewriter: Rewriter) -> cst.BaseExpression:
    values = [("input_fn", use.given), *use.settings.items()]
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    args = [cst.Arg(value, keyword=cst.Name(key), equal=equal) for key, value in values]
    args[0] = cst.Arg(use.given)
    new = use.call.with_changes(args=args, whitespace_before_args=cst.SimpleWhitespace("")).visit(rewriter)
    assert isinstance(new, cst.BaseExpression)
    return new


__all__ = ["FlowingDriver", "emit_flowing"]
