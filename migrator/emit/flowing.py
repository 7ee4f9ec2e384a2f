"""The driver of an Estimator that goes from one function to another: it stays, and another object is used there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import libcst as cst

from migrator.emit.driver.draft import FileNames
from migrator.emit.file import FileRewriter
from migrator.emit.layout import call
from migrator.emit.model_function import EmittedModel
from migrator.emit.names import free
from migrator.program.calls import is_none
from migrator.program.model_reference import ModelReference
from migrator.program.parsed import Blocked, ParsedFile, Project, names_in
from migrator.program.training import Flowing, FlowingUse, TrainingProgram
from migrator.rules.batches import LOSS_OF_EXAMPLES, check_batches, reads_batch
from migrator.rules.datasets import runs_python
from migrator.targets import setup
from migrator.targets.keras_estimator import ObjectShape, keras_estimator
from migrator.targets.plan import primary

_CHECKPOINTS = "Estimator checkpoints in the `model_dir` are not loaded: `tf-migrate checkpoint` converts them"


@dataclass(frozen=True)
class FlowingDriver:
    """Expressions in the place of others by file, classes beside the program as text, what they import, remarks."""

    expressions: dict[Path, dict[cst.CSTNode, cst.BaseExpression]]
    helpers: tuple[str, ...]
    remarks: tuple[tuple[ParsedFile, Blocked], ...]
    needs: frozenset[str]


def emit_flowing(
    project: Project,
    program: TrainingProgram,
    rewriters: Mapping[Path, FileRewriter],
    emitted: EmittedModel,
    of_dicts: bool,
    names: FileNames,
    rates: str,
    beside: Sequence[Flowing],
    make_strategy: Callable[[str], str] | None,
    signatures: Sequence[str],
) -> FlowingDriver:
    """What takes the place of the Estimator, of its specs and RunConfigs, and of the calls on it that give more than
    the new object takes. `beside` are all such Estimators of the file, which share a class. `make_strategy` is the text
    of the function that makes the strategy of a cluster (None: one device), `signatures` are those of exports.

    Raises Blocked (TFM104) for a model_fn that it is not written for; see also check_model.
    """
    flowing = program.flowing
    assert flowing is not None
    place = program.place.call
    indent = program.file.module.default_indent
    helpers: list[str] = []

    def helper(wanted: str, build: Callable[[str], str]) -> str:
        key = build(wanted)
        if key not in names.helpers:
            names.helpers[key] = names.free(wanted)
        helpers.append(build(names.helpers[key]))
        return names.helpers[key]

    counted = helper("CountedSteps", partial(setup.counted_steps, indent=indent))
    takes_params = _takes_params(program.model)
    asks = {one for flow in beside for one in flow.asks}
    if "predict_keys" in asks and not of_dicts:
        raise Blocked("TFM110", place, "`predict_keys` needs predictions that are a dict")
    shape = ObjectShape(
        counted=counted,
        predicts=emitted.has_predictor,
        of_dicts=of_dicts,
        takes_params=takes_params,
        rates=rates,
        both=any(one.both for one in beside),
        passes_params=any(one.passes_params for one in beside),
        make_strategy="" if make_strategy is None else helper("make_strategy", make_strategy),
        exports=any(one.servings for one in beside),
        signatures=signatures,
        exporters=any(one.exporters for one in beside),
        asks_checkpoint="latest_checkpoint" in asks,
        chooses="checkpoint_path" in asks,
        of_keys="predict_keys" in asks,
        whole="yield_single_examples" in asks,
        on_demand=runs_python(project.files),
        trains=any(one.both or any(use.method == "train" for use in one.uses) for one in beside),
    )
    name = helper("KerasEstimator", partial(keras_estimator, indent=indent, shape=shape))
    expressions: dict[Path, dict[cst.CSTNode, cst.BaseExpression]] = {}

    def put(file: ParsedFile, node: cst.CSTNode, new: cst.BaseExpression | str) -> None:
        new = cst.parse_expression(new) if isinstance(new, str) else new
        expressions.setdefault(file.path, {})[node] = new
        rewriters[file.path].changes.expressions.setdefault(node, new)  # what stands around it has it in its text

    texts = {path: _Texts(rewriter, program) for path, rewriter in rewriters.items()}
    for file, made, arguments in flowing.configs:
        of = (
            []
            if _makes_config(file, made)
            else [texts[file.path].text(cst.ensure_type(made.func, cst.Attribute).value)]
        )
        put(file, made, call("dict", [*of, *_settings(arguments, texts[file.path])], indent, 0))
    put(program.file, place, _construction(program, texts[program.file.path], name, takes_params))
    for file, node in flowing.config_asks:
        put(file, node, f'{primary(texts[file.path].text(node.value))}.get("{node.attr.value}")')
    for file, _, exporter in flowing.exporters:
        pair = [texts[file.path].text(one) for one in (exporter.name, exporter.serving)]
        put(file, exporter.call, f"({', '.join(pair)})")
    for use in flowing.uses:
        if use.is_spec:
            given = texts[use.file.path].named({"input_fn": use.given, **use.settings})
            put(use.file, use.call, call("dict", given, indent, 0))
        elif not _says_only(use):
            put(use.file, use.call, _use(use, rewriters[use.file.path]))
    for file, _, made, folder, serving in flowing.exports:
        assert isinstance(made.func, cst.Attribute)
        target = primary(texts[file.path].text(made.func.value))
        given = [texts[file.path].text(one) for one in (folder, serving)]
        put(file, made, call(f"{target}.export_saved_model", given, indent, 0))
    remarks = [(program.file, Blocked("TFM850", place, _CHECKPOINTS))]
    for file, place_of_both, (estimator, *specs) in flowing.both:
        given = [texts[file.path].text(spec) for spec in specs]
        put(
            file,
            place_of_both,
            call(f"{primary(texts[file.path].text(estimator))}.train_and_evaluate", given, indent, 0),
        )
    if not emitted.loss_of_batch:
        first = next((use for use in flowing.uses if use.method == "evaluate"), None)
        remarks += [] if first is None else [(first.file, Blocked("TFM303", first.call, LOSS_OF_EXAMPLES))]
    remarks += [(_home(project, program, remark), remark) for remark in program.remarks]
    needs = {"copy", "math", "os", "tempfile"}
    needs |= {"time"} if shape.exports else set()
    needs |= {"inspect"} if any(one.passes_params for one in beside) else set()
    needs |= {"functools"} if program.model.more or _is_canned(program) else set()
    return FlowingDriver(expressions, tuple(helpers), tuple(remarks), frozenset(needs))


def _home(project: Project, program: TrainingProgram, remark: Blocked) -> ParsedFile:
    """The file that a remark is about."""
    return next((file for file in project.files if remark.node in file.parents), program.file)


def check_model(project: Project, program: TrainingProgram, emitted: EmittedModel) -> None:
    """Refuses models that the object is not written for. Raises Blocked (TFM103, TFM403, TFM619)."""
    place = program.place.call
    if emitted.hooks.stop is not None or emitted.hooks.checkpoint is not None or emitted.hooks.averages is not None:
        raise Blocked(
            "TFM103", place, "hooks in the model_fn are unsupported for an Estimator passed between functions"
        )
    if emitted.outside is not None:
        raise Blocked("TFM403", emitted.outside, "each use rebuilds the model: create its optimizer in the model_fn")
    if reads_batch(project, program):
        message = "a network that reads its batch size is unsupported for an Estimator passed between functions"
        raise Blocked("TFM619", place, message)
    check_batches(project, program)


@dataclass(frozen=True)
class _Texts:
    """The new text of expressions of a file."""

    rewriter: FileRewriter
    program: TrainingProgram

    def text(self, node: cst.BaseExpression) -> str:
        """The text of one."""
        new = node.visit(self.rewriter)
        assert isinstance(new, cst.BaseExpression)
        return self.program.file.code(new)

    def named(self, given: Mapping[str, cst.BaseExpression]) -> list[str]:
        """The texts of arguments by name."""
        return [f"{key}={self.text(value)}" for key, value in given.items()]


def _makes_config(file: ParsedFile, made: cst.Call) -> bool:
    """Whether a call makes a RunConfig, and not another one of it."""
    return file.imports.resolve(made.func) is not None


_NAMES = {"model_dir": "model_dir", "save_checkpoints_steps": "save_steps", "tf_random_seed": "seed"}


def _settings(config: Mapping[str, cst.BaseExpression], texts: _Texts) -> list[str]:
    return texts.named({_NAMES[key]: value for key, value in config.items() if not is_none(value)})


def _construction(program: TrainingProgram, texts: _Texts, name: str, params: bool) -> str:
    flowing = program.flowing
    assert flowing is not None
    given = {} if program.model_dir is None else {"model_dir": program.model_dir}
    if (params or flowing.passes_params or "params" in flowing.asks) and program.params is not None:
        given["params"] = program.params
    beside = {key: value for key, value in program.config.items() if key != "model_dir"}
    arguments = [_maker(program, texts), *texts.named(given), *_settings(beside, texts)]
    if flowing.config is not None:
        config = texts.text(flowing.config)
        arguments.append(f"**({config} or {{}})" if flowing.may_be_none else f"**{primary(config)}")
    return call(name, arguments, program.file.module.default_indent, 0)


def _takes_params(model: ModelReference) -> bool:
    if model.template is None:
        return model.parameters.params is not None
    return any(value == "params" for _, value in model.template)


def _maker(program: TrainingProgram, texts: _Texts) -> str:
    """What makes the model of its inputs (and `params`): the function, or what gives it more, when it is called.

    Raises Blocked (TFM104). What a canned Estimator is given counts when it is made, as with a partial; what a lambda
    reads counts when it is called.
    """
    model = program.model
    callee = texts.text(model.callee)
    more = [f"{arg.keyword.value}={texts.text(arg.value)}" for arg in model.more if arg.keyword is not None]
    template = model.template or ()
    if _is_canned(program):
        given = [(keyword, value) for keyword, value in template if not isinstance(value, str)]
        if any(keyword is None for keyword, _ in given) or "params" in [value for _, value in template]:
            raise Blocked(
                "TFM104",
                program.place.call,
                "this canned Estimator is unsupported when it is created and used in different functions",
            )
        more = [f"{keyword}={texts.text(value)}" for keyword, value in given if not isinstance(value, str)] + more
    elif template:
        taken = program.file.names
        names = {"features": free("inputs", taken), "params": "params"}
        texts_given = []
        for keyword, value in template:
            text = names[value] if isinstance(value, str) else texts.text(value)
            texts_given.append(text if keyword is None else f"{keyword}={text}")
        if _takes_params(model) and any("params" in names_in(v) for _, v in template if not isinstance(v, str)):
            raise Blocked(
                "TFM104", program.place.call, "this lambda is unsupported for an Estimator passed between functions"
            )
        head = f"{names['features']}, params" if _takes_params(model) else names["features"]
        return f"lambda {head}: {primary(callee)}({', '.join([*texts_given, *more])})"
    return f"functools.partial({', '.join([callee, *more])})" if more else callee


def _is_canned(program: TrainingProgram) -> bool:
    """Whether the tool has written the model_fn, for an Estimator that TensorFlow has one for."""
    file = program.model_file
    return file.spread is not None and f"def {program.model_fn.name.value}(" not in file.text


def _says_only(use: FlowingUse) -> bool:
    """Whether a call gives just what counts, and all but its data by name."""
    given = {arg.keyword.value if arg.keyword is not None else "" for arg in use.call.args[1:]}
    return given == use.settings.keys() and not (
        use.call.args[0].keyword and use.call.args[0].keyword.value != "input_fn"
    )


def _use(use: FlowingUse, rewriter: FileRewriter) -> cst.BaseExpression:
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    named = [cst.Arg(value, keyword=cst.Name(key), equal=equal) for key, value in use.settings.items()]
    args = [cst.Arg(use.given), *named]
    new = use.call.with_changes(args=args, whitespace_before_args=cst.SimpleWhitespace("")).visit(rewriter)
    assert isinstance(new, cst.BaseExpression)
    return new


__all__ = ["FlowingDriver", "check_model", "emit_flowing"]
