"""The new form of a program whose Estimator is handed around: a class with the same methods in its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import libcst as cst

from migrator.emit.driver import FileNames, session_lines
from migrator.emit.file import FileChanges
from migrator.emit.layout import statements
from migrator.program.calls import is_none
from migrator.program.comments import comment_lines
from migrator.program.exports import EXPORTS, Signatures
from migrator.program.handed import Handed, HandedUse
from migrator.program.parsed import Blocked, ParsedFile
from migrator.program.training import TrainingProgram, estimator_parameters, predicts_batches
from migrator.rules.rewriter import Rewriter
from migrator.rules.session_config import Setting
from migrator.targets import setup
from migrator.targets.plan import primary
from migrator.targets.trainer import TrainerShape, trainer

_MAKING = ("model_fn", "model_dir", "params")


@dataclass
class EmittedTrainer:
    """Functions and classes to put before the Estimator, as source text, what its file needs, and remarks by file.

    `before` are statements to put before the one that makes the Estimator.
    """

    helpers: list[str] = field(default_factory=list)
    needs: set[str] = field(default_factory=set)
    remarks: list[tuple[ParsedFile, Blocked]] = field(default_factory=list)
    before: list[cst.BaseStatement] = field(default_factory=list)


def emit_trainer(
    program: TrainingProgram,
    rewriters: Mapping[Path, Rewriter],
    changes: Mapping[Path, FileChanges],
    names: FileNames,
    has_predictor: bool,
    of_dicts: bool,
    mapped: bool,
    served: Signatures | None,
    late: bool = False,
    rates: str = "",
) -> EmittedTrainer:
    """Puts the replacements into `changes`, by file; `rewriters` are those that the files are rewritten with.

    A `mapped` model that is `late` is made without data, and gets its variables before each of its uses. `rates` says
    whose learning rates a checkpoint leaves as they are.
    """
    return _Emitter(program, rewriters, changes, names, has_predictor, of_dicts, mapped, served, late, rates).emit()


class _Emitter:
    def __init__(
        self,
        program: TrainingProgram,
        rewriters: Mapping[Path, Rewriter],
        changes: Mapping[Path, FileChanges],
        names: FileNames,
        has_predictor: bool,
        of_dicts: bool,
        mapped: bool,
        served: Signatures | None,
        late: bool,
        rates: str,
    ) -> None:
        assert program.handed is not None
        self.program = program
        self.handed: Handed = program.handed
        self.rewriters = rewriters
        self.changes = changes
        self.file_names = names
        self.mapped = mapped
        self.late = late
        self.rates = rates
        self.served = served or Signatures()
        self.indent = program.file.module.default_indent
        self.made = EmittedTrainer()
        self.shape = self._shape(has_predictor, of_dicts)

    def _shape(self, has_predictor: bool, of_dicts: bool) -> TrainerShape:
        handed, program = self.handed, self.program
        reads = {node.attr.value for _, node in handed.flow.reads} | {name for _, _, name in handed.renamed}
        template = program.model.template
        takes = (
            any(value == "params" for _, value in template)
            if template is not None
            else (program.model.parameters.params is not None)
        )
        asked = {use.method for use in handed.flow.uses}
        exports = handed.does(*EXPORTS)
        return TrainerShape(
            trains=handed.does("train", "train_and_evaluate"),
            evaluates=handed.does("evaluate", "train_and_evaluate"),
            predicts=handed.does("predict"),
            has_predictor=has_predictor,
            of_dicts=of_dicts,
            mapped=self.mapped,
            late=self.late,
            takes_params=takes,
            has_params=takes or handed.tells or "params" in reads or program.params is not None,
            tells=handed.tells,
            has_seed=program.config.get("tf_random_seed") is not None,
            has_model_dir=program.model_dir is not None or bool({"model_dir"} & reads),
            asks_checkpoint="latest_checkpoint" in asked,
            asks_step=bool(handed.steps),
            checkpoint_paths=any(not is_none(use.arguments.get("checkpoint_path")) for use in handed.uses),
            eval_dir="eval_dir" in asked,
            serves=self.served.names if exports else None,
            watched=frozenset(
                {"train_and_evaluate": "train"}.get(use.use.method, use.use.method)
                for use in handed.uses
                if "callbacks" in use.arguments
            )
            | frozenset("evaluate" for use in handed.uses if "callbacks" in (use.evaluate or {})),
            ends=any(hooks.stops for phase, hooks in program.hooks if phase == "predict"),
            saves=program.model_dir is not None and program.config.get("save_checkpoints_steps") is not None,
            rates=self.rates,
            of_batches=predicts_batches([one.arguments for one in handed.uses if one.use.method == "predict"]),
        )

    def emit(self) -> EmittedTrainer:
        shape = self.shape
        if (shape.asks_checkpoint or shape.eval_dir) and not shape.has_model_dir:
            message = "the Estimator is asked for its checkpoints, but was not given a model_dir"
            raise Blocked("TFM103", self.program.place.call, message)
        labelled = not shape.predicts and self.program.model.reads_labels
        make_inputs = ""
        if not self.mapped:
            make_inputs = self._helper("make_inputs", lambda name: setup.make_inputs(name, self.indent, labelled))
        counted = ""
        if shape.trains:
            counted = self._helper("CountedSteps", lambda name: setup.counted_steps(name, self.indent))
        name = self._helper("Trainer", lambda name: trainer(name, make_inputs, counted, shape, self.indent))
        self.made.needs |= {"os"} if shape.has_model_dir else set()
        self.made.needs |= {"os", "time"} if shape.serves is not None else set()
        self.made.needs |= {"copy"} if shape.has_params else set()
        self.made.needs |= {"inspect"} if shape.tells else set()
        self._making(name)
        self._session()
        for file, node, new in self.handed.renamed:
            self.changes[file.path].expressions[node] = node.with_changes(attr=cst.Name(new))
        self._gone()
        for file, step, held in self.handed.steps:
            asked = cst.parse_expression(f"int({primary(self._text(file, held))}.latest_step())")
            self.changes[file.path].expressions[step] = asked
        for use in reversed(self.handed.uses):
            self._use(use)
        for file, statement in self.handed.statements:
            self.changes[file.path].statements[statement] = []
            if isinstance(statement, cst.ClassDef):
                self.changes[file.path].moved.add(statement)
        self.made.remarks += self.handed.remarks
        message = "the Estimator is handed around: a class with its methods takes its place, on one device"
        self.made.remarks.append((self.program.file, Blocked("TFM180", self.program.place.call, message)))
        if self.program.model_dir is not None:
            message = (
                "an Estimator's checkpoints in the `model_dir` are not read: `tf-migrate checkpoint` carries them over"
            )
            self.made.remarks.append((self.program.file, Blocked("TFM850", self.program.place.call, message)))
        return self.made

    def _helper(self, wanted: str, build) -> str:  # type: ignore[no-untyped-def]
        """A function or class beside the program; the programs of a file share those of the same text."""
        key = build(wanted)
        if key not in self.file_names.helpers:
            self.file_names.helpers[key] = self.file_names.free(wanted)
        name = self.file_names.helpers[key]
        self.made.helpers.append(build(name))
        return name

    # -- where it is made ------------------------------------------------------------------------------------------

    def _making(self, name: str) -> None:
        program, call = self.program, self.program.place.call
        names = estimator_parameters(program.place)
        args: list[cst.Arg] = []
        given: set[str] = set()
        for index, arg in enumerate(call.args):
            keyword = arg.keyword.value if arg.keyword is not None else names[index]
            if keyword not in _MAKING or is_none(arg.value):
                continue
            given.add(keyword)
            value = arg.value
            if keyword == "model_fn" and program.model.template is not None and isinstance(value, cst.Lambda):
                arg = arg.with_changes(value=self._template())
            if index and arg.keyword is None:
                arg = arg.with_changes(keyword=cst.Name(keyword), equal=_EQUAL)
            args.append(arg)
        wanted = {"model_dir": program.model_dir, "seed": program.config.get("tf_random_seed")}
        wanted |= {"save_every": program.config["save_checkpoints_steps"]} if self.shape.saves else {}
        args += [_keyword(key, value) for key, value in wanted.items() if value is not None and key not in given]
        func = call.func
        if self.handed.subclass is None:
            func = cst.Name(name)
        else:
            for base in self.handed.subclass.bases:
                if program.file.imports.resolve(base.value) == program.place.name:
                    self.changes[program.file.path].expressions[base.value] = cst.Name(name)
        self._put(program.file, call, call.with_changes(func=func, args=_laid_out(args, call)))

    def _template(self) -> cst.BaseExpression:
        """The lambda that the Estimator was given, for the inputs and params of a Keras model."""
        model = self.program.model
        assert model.template is not None
        arguments = []
        for keyword, value in model.template:
            if self.late and value == "features":
                continue
            text = {"features": "inputs"}.get(value, value) if isinstance(value, str) else self.program.file.code(value)
            arguments.append(text if keyword is None else f"{keyword}={text}")
        given = [*([] if self.late else ["inputs"]), *(["params"] if self.shape.takes_params else [])]
        parameters = " " + ", ".join(given) if given else ""
        callee = self.program.file.code(model.callee)
        return cst.parse_expression(f"lambda{parameters}: {callee}({', '.join(arguments)})")

    def _put(self, file: ParsedFile, old: cst.Call, new: cst.Call) -> None:
        """Replaces a call; what is in it and is replaced already is found there."""
        file.origins[new] = old
        rewritten = new.visit(self.rewriters[file.path])
        assert isinstance(rewritten, cst.BaseExpression)
        self.changes[file.path].expressions[old] = rewritten

    def _session(self) -> None:
        """What the ConfigProto said, where it was made or before the Estimator is."""
        program = self.program
        made = [*program.session.first, *(one for several in program.session.lines.values() for one in several)]
        gpu = self.file_names.free("gpu") if any("{gpu}" in setting.text for setting in made) else ""

        def lines(settings: Sequence[Setting]) -> list[cst.BaseStatement]:
            return session_lines(settings, lambda node: self._text(program.file, node), gpu, program.file)

        for line, settings in program.session.lines.items():
            self.changes[program.file.path].statements[line] = lines(settings)
        if program.session.first:
            self.made.before = lines(program.session.first)

    # -- uses ------------------------------------------------------------------------------------------------------

    def _use(self, one: HandedUse) -> None:
        use = one.use
        if use.method == "train_and_evaluate":
            self._both(one)
            return
        if use.method in EXPORTS:
            self._export(one)
            return
        old = {id(arg.value): arg for arg in use.call.args}
        args: list[cst.Arg] = []
        for key in ("input_fn", "steps", "max_steps", "checkpoint_path", "callbacks"):
            value = one.arguments.get(key)
            if value is None or (is_none(value) and key != "input_fn"):
                continue
            arg = old.get(id(value)) or _keyword(key, value)
            if arg.keyword is not None and arg.keyword.value != key:
                arg = arg.with_changes(keyword=cst.Name(key))
            if args and arg.keyword is None:
                arg = arg.with_changes(keyword=cst.Name(key), equal=_EQUAL)
            args.append(arg)
        assert isinstance(use.call.func, cst.Attribute)
        if [id(a.value) for a in args] == [id(a.value) for a in use.call.args]:
            return
        self._put(use.file, use.call, use.call.with_changes(args=_laid_out(args, use.call)))

    def _export(self, one: HandedUse) -> None:
        call, func = one.use.call, one.use.call.func
        assert isinstance(func, cst.Attribute)
        given = [one.arguments["export_dir_base"], one.arguments["serving_input_receiver_fn"]]
        args = [next(arg for arg in call.args if arg.value is value) for value in given]
        args = [arg.with_changes(keyword=None, equal=cst.MaybeSentinel.DEFAULT) for arg in args]
        new = call.with_changes(func=func.with_changes(attr=cst.Name("export_saved_model")), args=_laid_out(args, call))
        self._put(one.use.file, call, new)

    def _both(self, one: HandedUse) -> None:
        """`train_and_evaluate(estimator, ...)` as a training and an evaluation."""
        use = one.use
        file = use.file
        place = next(u.place for u in self.program.uses if u.place.call is use.call)
        assert place.statement is not None and one.evaluate is not None
        given = next(
            (a.value for a in use.call.args if a.keyword is not None and a.keyword.value == "estimator"),
            use.call.args[0].value,
        )
        receiver = primary(self._text(file, given))
        train = [self._text(file, one.arguments["input_fn"])]
        if not is_none(one.arguments.get("max_steps")):
            train.append(f"max_steps={self._text(file, one.arguments['max_steps'])}")
        train += self._watching(file, one.arguments)
        evaluate = [self._text(file, one.evaluate["input_fn"])]
        steps = one.evaluate.get("steps")
        if steps is None:
            evaluate.append("steps=100")
        elif not is_none(steps):
            evaluate.append(f"steps={self._text(file, steps)}")
        evaluate += self._watching(file, one.evaluate)
        text = f"{receiver}.train({', '.join(train)})\n{receiver}.evaluate({', '.join(evaluate)})\n"
        lines = statements(text, file.module)
        kept = [line for line in comment_lines(place.statement, leading=False) if line.comment is not None]
        assert isinstance(lines[0], cst.SimpleStatementLine)
        lines[0] = lines[0].with_changes(leading_lines=[*kept, *lines[0].leading_lines])
        self.changes[file.path].statements[place.statement] = lines

    def _watching(self, file: ParsedFile, arguments: Mapping[str, cst.BaseExpression]) -> list[str]:
        """The callbacks that the hooks of a spec have become."""
        node = arguments.get("callbacks")
        return [] if node is None else [f"callbacks={self._text(file, node)}"]

    def _text(self, file: ParsedFile, node: cst.BaseExpression) -> str:
        new = node.visit(self.rewriters[file.path])
        assert isinstance(new, cst.BaseExpression)
        return file.code(new)

    # -- what goes -------------------------------------------------------------------------------------------------

    def _gone(self) -> None:
        """Parameters that handed a RunConfig on, and the arguments for them."""
        for file, function, param in self.handed.parameters:
            params = [*function.params.params, *function.params.kwonly_params]
            self.changes[file.path].moved.add(param)
            if params[-1] is param and len(params) > 1 and params[-2] not in self.changes[file.path].moved:
                last = params[-2].with_changes(comma=cst.MaybeSentinel.DEFAULT)
                self.changes[file.path].parameters[params[-2]] = last
        by_call: dict[cst.Call, list[cst.Arg]] = {}
        files = {}
        for file, call, arg in self.handed.arguments:
            by_call.setdefault(call, []).append(arg)
            files[call] = file
        for call, gone in by_call.items():
            args = [a for a in call.args if not any(a is g for g in gone)]
            file = files[call]
            for _, where, name, value in self.handed.new_arguments:
                if where is call:
                    args = [a for a in args if a.keyword is None or a.keyword.value != name]
                    args.append(_keyword(name, value))
            self._put(file, call, call.with_changes(args=_laid_out(args, call)))


_EQUAL = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))


def _keyword(name: str, value: cst.BaseExpression) -> cst.Arg:
    return cst.Arg(value, keyword=cst.Name(name), equal=_EQUAL)


def _laid_out(args: Sequence[cst.Arg], old: cst.Call) -> list[cst.Arg]:
    """Arguments with commas between them, on lines of their own where those of the old call were."""
    new = []
    between = next((a.comma for a in old.args if isinstance(a.comma, cst.Comma)), cst.MaybeSentinel.DEFAULT)
    behind = old.args[-1].comma if old.args and len(old.args) > 1 else cst.MaybeSentinel.DEFAULT
    for index, arg in enumerate(args):
        last = index == len(args) - 1
        comma = behind if last else (arg.comma if isinstance(arg.comma, cst.Comma) else between)
        if not last and comma is behind:
            comma = between
        new.append(arg.with_changes(comma=comma))
    return new
