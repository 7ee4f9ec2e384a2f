"""A program whose Estimator is handed around: returned by a function, kept in an object, given to functions.

Where the Estimator stays in the function that makes it, `training` reads the program, and the new lines stand in the
place of the old. Where it does not, an object with the same methods takes its place, and all that is done with it,
in whatever file, has to be known: see `flow`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import libcst as cst

from migrator.names.imports import dotted
from migrator.program import tpu
from migrator.program.calls import bind, is_none
from migrator.program.exports import EXPORTS
from migrator.program.flow import Calls, Flow, HeldUse, InFile, Mentioning, Parents, decorators, follow_value
from migrator.program.leftovers import leftovers
from migrator.program.model_reference import ModelReference, find_models
from migrator.program.parsed import Blocked, ParsedFile, Project, names_in
from migrator.program.run_config import read_run_config
from migrator.program.scopes import bindings, free_names, mentions_of, path_to, rebound, returns_in
from migrator.program.tensor_names import tensor_names
from migrator.program.training import (
    Arguments,
    Place,
    ProgramReader,
    TrainingProgram,
    Use,
    estimator_parameters,
)
from migrator.rules.hooks import Tensors
from migrator.rules.inputs import check_returns
from migrator.walking import walk

#: The symbols that make Estimators which may be handed around.
ESTIMATORS = ("tf.estimator.Estimator", *tpu.ESTIMATORS)
_KEPT = ("model_dir", "params", "eval_dir", "latest_checkpoint")
_OWN = {"_params": "params", "_model_dir": "model_dir", "params": "params", "model_dir": "model_dir"}
_TOLD = frozenset(("params", "mode"))


@dataclass(frozen=True)
class HandedUse:
    """What is done with the Estimator: the call, and its arguments that count.

    For train_and_evaluate these are the arguments of the TrainSpec, and `evaluate` those of the EvalSpec.
    """

    use: HeldUse
    arguments: Arguments
    evaluate: Arguments | None = None


@dataclass(frozen=True)
class Handed:
    """Everything that is done with an Estimator that is handed around.

    `statements` serve nothing any more, `remarks` are to be told, both by file. `arguments` and `parameters` gave a
    RunConfig from one function to another and go; `new_arguments` are what it said, to be given to a parameter instead.
    `subclass` is the class that is derived from Estimator, with the
    reads of what Estimator gave to `self`. `tells` says that input functions are told the params or the mode. `steps`
    are the expressions that read the step from the name of the newest checkpoint, with what stands for the Estimator.
    """

    uses: tuple[HandedUse, ...]
    flow: Flow
    statements: tuple[tuple[ParsedFile, cst.BaseStatement], ...]
    remarks: tuple[tuple[ParsedFile, Blocked], ...]
    arguments: tuple[tuple[ParsedFile, cst.Call, cst.Arg], ...]
    parameters: tuple[tuple[ParsedFile, cst.FunctionDef, cst.Param], ...]
    new_arguments: tuple[tuple[ParsedFile, cst.Call, str, cst.BaseExpression], ...]
    subclass: cst.ClassDef | None
    renamed: tuple[tuple[ParsedFile, cst.Attribute, str], ...]
    tells: bool
    steps: tuple[tuple[ParsedFile, cst.Call, cst.BaseExpression], ...] = ()

    def does(self, *methods: str) -> bool:
        """Whether one of some methods is called."""
        return any(one.use.method in methods for one in self.uses)


def read_handed_programs(
    project: Project,
    mentioning: Mentioning,
    file: ParsedFile,
    place: Place,
    places: Mapping[Path, Sequence[Place]],
) -> list[TrainingProgram]:
    """Reads the program around an Estimator that is handed around: one for each model_fn that it may have.

    Raises Blocked (or InFile, where the line is in another file) for the first construct that cannot be carried over.
    """
    return _HandedReader(project, mentioning, file, place, places).read()


class _HandedReader:
    def __init__(
        self,
        project: Project,
        mentioning: Mentioning,
        file: ParsedFile,
        place: Place,
        places: Mapping[Path, Sequence[Place]],
    ) -> None:
        self.project = project
        self.mentioning = mentioning
        self.file = file
        self.place = place
        self.places = places
        self.parents = Parents()
        self.readers: dict[tuple[int, int], ProgramReader] = {}
        self.gone_arguments: list[tuple[ParsedFile, cst.Call, cst.Arg]] = []
        self.gone_parameters: list[tuple[ParsedFile, cst.FunctionDef, cst.Param]] = []
        self.new_arguments: list[tuple[ParsedFile, cst.Call, str, cst.BaseExpression]] = []
        self.remarks: list[tuple[ParsedFile, Blocked]] = []
        self.tells = False
        self.tensors: Tensors = lambda name: None
        self.exports: list[HeldUse] = []

    def read(self) -> list[TrainingProgram]:
        place = self.place
        bound = bind(place.call, estimator_parameters(place), place.name, "TFM104")
        if place.name in tpu.ESTIMATORS:
            given = tpu.read_tpu(bound)
            if given.asks and given.flag is None:
                message = "this TPUEstimator wants a TPU and is handed around: make and train it in one function"
                raise Blocked("TFM145", bound.get("use_tpu", place.call), message)
            if given.flag is not None:
                self.remarks.append((self.file, Blocked("TFM144", given.flag, tpu.ANYWAY)))
            if given.batch_sizes:
                message = "this TPUEstimator is handed around, and tells its batch sizes to functions elsewhere"
                raise Blocked("TFM145", place.call, message)
        reference = bound.get("model_fn")
        if reference is None:
            raise Blocked("TFM104", place.call, "the Estimator is made without a model_fn")
        self._warm_start(bound.get("warm_start_from"))
        models = find_models(self.project, self.mentioning, self.file, place.call, reference)
        subclass = self._subclass()
        self.tensors = tensor_names(self.project, models)
        flow = self._flow(subclass)
        reader = self._reader(self.file, place.function)
        config = self._config(reader, bound.get("config"))
        self._check_made(reader, reader.made, place.call)
        self._check_values(reader)
        uses = tuple(self._use(use) for use in flow.uses if use.method not in _KEPT)
        if not uses:
            raise Blocked("TFM103", place.call, "nothing is done with this Estimator in the given files")
        for export in self.exports:
            self._check_export(export, flow)
        renamed = self._reads(flow, subclass)
        for one in self.readers.values():
            self._surroundings(one)
        hooks = tuple(found for one in self.readers.values() for found in one.hooks)
        if any(found.reads_evaluations for _, found in hooks):
            raise Blocked("TFM164", place.call, "a hook reads the evaluations of an Estimator that is handed around")
        model_dir = bound.get("model_dir")
        asked = [node for _, node in flow.reads if node.attr.value == "model_dir"]
        if asked and is_none(model_dir) and "model_dir" not in config:
            message = "the Estimator is asked for its model_dir, but was not given one"
            raise InFile(next(f for f, node in flow.reads if node is asked[0]), "TFM103", asked[0], message)
        model_dir = config.get("model_dir") if is_none(model_dir) else model_dir
        params = bound.get("params")
        handed = Handed(
            uses,
            flow,
            tuple(self._leftovers()),
            tuple(self.remarks),
            tuple(self.gone_arguments),
            tuple(self.gone_parameters),
            tuple(self.new_arguments),
            subclass,
            tuple(renamed),
            self.tells,
            tuple(self._steps(flow)),
        )
        scope: cst.CSTNode = place.function if place.function is not None else self.file.module
        return [
            TrainingProgram(
                file=self.file,
                scope=scope,
                place=place,
                variable="estimator",
                model=model,
                params=None if is_none(params) else params,
                model_dir=None if is_none(model_dir) else model_dir,
                config=config,
                uses=tuple(self._plain(use) for use in uses),
                train_and_evaluate=None,
                removed=(),
                remarks=(),
                session=reader.session,
                hooks=hooks,
                tensors=reader.tensors,
                handed=handed,
            )
            for model in self._steady(models)
        ]

    def _steady(self, models: list[ModelReference]) -> list[ModelReference]:
        if len({(m.parameters.params is None, m.template is None) for m in models}) > 1:
            message = "of the model_fns that this Estimator may have some take params, others do not"
            raise Blocked("TFM105", self.place.call, message)
        for model in models:
            self._check_model_reads(model)
        return models

    def _steps(self, flow: Flow) -> Iterator[tuple[ParsedFile, cst.Call, cst.BaseExpression]]:
        """`int(estimator.latest_checkpoint().split("-")[-1])`: the names of the new checkpoints have no step."""
        for use in flow.uses:
            above = list(self.parents.above(use.file, use.call))
            if use.method != "latest_checkpoint" or not above:
                continue
            step = next((n for n in above[:8] if isinstance(n, cst.Call) and dotted(n.func) == "int"), None)
            assert isinstance(use.call.func, cst.Attribute)
            held = use.file.code(use.call)
            if step is not None and use.file.code(step.args[0].value) in (
                f"{held}.split({quote}-{quote})[-1]" for quote in "'\""
            ):
                yield use.file, step, use.call.func.value
                continue
            name = above[0].targets[0].target if isinstance(above[0], cst.Assign) else None
            taken = isinstance(above[0], cst.Attribute)
            if isinstance(name, cst.Name):
                mentions = [n for n in mentions_of(use.scope, name.value) if isinstance(n, cst.Name)]
                taken = any(isinstance(self.parents(use.file, n), cst.Attribute) for n in mentions)
            if taken:
                message = "the name of a checkpoint is taken apart here: that of a Keras model does not hold the step"
                raise InFile(use.file, "TFM255", use.call, message)

    def _check_export(self, export: HeldUse, flow: Flow) -> None:
        """An export needs the model, which is made in a training or an evaluation: one must have run before."""
        places = [(export.file, export.scope, export.call)]
        if export.function is not None and not any(u.scope is export.scope for u in flow.uses if u is not export):
            calls = Calls(self.project, self.mentioning, self.parents)
            try:
                found = calls.of(export.file, export.function)
            except Blocked:
                found = []
            around = [(file, self.parents.function(file, call) or file.module, call) for file, call in found]
            places = [(f, s, c) for f, s, c in around if isinstance(c, cst.Call)] or places
        looped = False
        for file, scope, call in places:
            ways = [self._is_before(use, file, scope, call) for use in flow.uses]
            if not any(way is not None for way in ways):
                message = "the model is made for the data of a training or evaluation: do one before this, in the same"
                raise InFile(export.file, "TFM142", export.call, f"{message} block")
            looped |= not any(way is False for way in ways)
        if looped:
            message = "the export needs the model, which the training makes: where that never comes to run, it fails"
            self.remarks.append((export.file, Blocked("TFM117", export.call, message)))

    def _is_before(self, use: HeldUse, file: ParsedFile, scope: cst.CSTNode, call: cst.Call) -> bool | None:
        """Whether something that makes the model comes before a call only in a loop; None where it may not come."""
        makes = use.method in (*_METHODS, "train_and_evaluate") and use.method != "predict"
        if not makes or use.scope is not scope or not file.position(use.call) < file.position(call):
            return None
        around = [n for n in self.parents.above(file, call) if isinstance(n, _BLOCKS)]
        own = [n for n in self.parents.above(use.file, use.call) if isinstance(n, _BLOCKS)]
        more = [n for n in own if not any(n is other for other in around)]
        if not all(isinstance(n, cst.For | cst.While | cst.Try) for n in more):
            return None
        return bool(more)

    def _check_made(self, reader: ProgramReader, made: Sequence[cst.Call], until: cst.Call) -> None:
        """The arguments of a RunConfig or spec are evaluated later than they were: their names must stay the same."""
        for call in made:
            for arg in call.args:
                changed = rebound(reader.file, reader.scope, arg.value, call, until)
                if changed is not None and not any(arg.value is node for node in reader.dropped):
                    message = f"`{changed[0]}`, which a spec or RunConfig reads, changes before its use"
                    raise InFile(reader.file, "TFM109", changed[1], message)

    def _check_values(self, reader: ProgramReader) -> None:
        for line, value in reader.values:
            changed = rebound(reader.file, reader.scope, value, line, self.place.call)
            if changed is not None and not any(value is node for node in reader.dropped):
                message = f"`{changed[0]}`, which a RunConfig reads, changes before its use"
                raise InFile(reader.file, "TFM109", changed[1], message)

    def _check_model_reads(self, model: ModelReference) -> None:
        """TensorFlow 1 called the model_fn anew in every training and evaluation: what it reads must not change."""
        reader = self._reader(self.file, self.place.function)
        read = [value for _, value in model.template or () if not isinstance(value, str)]
        read += [new for _, new in model.lambdas.values()]
        names = {name for value in read for name in names_in(value)}
        if path_to(reader.scope, model.function):
            names |= free_names(model.function) - {model.function.name.value}
        names -= self.file.imports.names.keys()
        for name, node in bindings(reader.scope):
            if name in names and self.file.position(node) > self.file.position(self.place.call):
                if isinstance(node, cst.Name | cst.Subscript | cst.Attribute):
                    message = f"`{name}`, which the model_fn reads, changes after the Estimator is made"
                    raise Blocked("TFM103", node, message)

    def _plain(self, use: HandedUse) -> Use:
        line = next((n for n in self.parents.above(use.use.file, use.use.call) if _is_line(n)), None)
        statement = line if isinstance(line, cst.SimpleStatementLine) else None
        return Use(use.use.method, Place(use.use.method, use.use.call, statement, use.use.function), use.arguments)

    # -- where it goes ---------------------------------------------------------------------------------------------

    def _subclass(self) -> cst.ClassDef | None:
        """The class derived from Estimator whose `__init__` holds the call."""
        func = self.place.call.func
        if self.file.imports.resolve(func) == self.place.name:
            return None  # an Estimator like any other
        around = self.parents.above(self.file, self.place.call)
        return next((n for n in around if isinstance(n, cst.ClassDef)), None)

    def _flow(self, subclass: cst.ClassDef | None) -> Flow:
        if subclass is None:
            return follow_value(self.project, self.mentioning, [(self.file, self.place.call)], "the Estimator")
        calls = Calls(self.project, self.mentioning, self.parents).of_class(self.file, subclass)
        if not calls:
            name = subclass.name.value
            raise Blocked("TFM103", subclass, f"no object of `{name}` is made in the given files")
        finder = follow_value(self.project, self.mentioning, calls, f"an object of `{subclass.name.value}`")
        own = {s.name.value for s in subclass.body.body if isinstance(s, cst.FunctionDef)}
        finder.uses = [use for use in finder.uses if use.method not in own or use.method in _METHODS]
        for name in sorted(own & {*_METHODS, *_KEPT, "prepare", "dataset"}):
            method = next(s for s in subclass.body.body if isinstance(s, cst.FunctionDef) and s.name.value == name)
            raise Blocked("TFM103", method, f"`{subclass.name.value}` has a `{name}` of its own")
        if not any(self.file is other for other in finder.files):
            finder.files.append(self.file)
        return finder

    def _reads(self, flow: Flow, subclass: cst.ClassDef | None) -> list[tuple[ParsedFile, cst.Attribute, str]]:
        """The attributes of the Estimator that are read: those that its successor has."""
        renamed = []
        own: set[str] = set()
        if subclass is not None:
            finder = _SelfAttributes(self.parents, self.file, subclass)
            walk(subclass, finder)
            own = finder.stored | {s.name.value for s in subclass.body.body if isinstance(s, cst.FunctionDef)}
            taken = sorted(finder.stored & _TAKEN)
            if taken:
                message = f"`{subclass.name.value}` keeps a `{taken[0]}` of its own: give it another name"
                raise Blocked("TFM103", subclass.name, message)
            for node in finder.read:
                name = node.attr.value
                if name in own:
                    continue
                if name not in _OWN:
                    raise Blocked("TFM103", node, f"`{self.file.code(node)}` of the Estimator is not carried over")
                if _OWN[name] != name:
                    renamed.append((self.file, node, _OWN[name]))
        for file, node in flow.reads:
            if node.attr.value not in (*_KEPT[:2], *own):
                raise InFile(file, "TFM103", node, f"`{node.attr.value}` of the Estimator is not carried over")
        return renamed

    # -- readers by function ---------------------------------------------------------------------------------------

    def _reader(self, file: ParsedFile, function: cst.FunctionDef | None) -> ProgramReader:
        """What reads the hooks, specs and leftovers of one function of one file."""
        scope: cst.CSTNode = function if function is not None else file.module
        key = (id(file), id(scope))
        if key not in self.readers:
            call = self.place.call
            place = Place(self.place.name, call, None, function)
            self.readers[key] = ProgramReader(
                self.project, self.mentioning, file, place, self.places.get(file.path, ())
            )
            self.readers[key].tensors = self.tensors
        return self.readers[key]

    def _surroundings(self, reader: ProgramReader) -> None:
        calls = [use.place.call for use in reader.read_uses]
        for call in calls:
            for node in self.parents.above(reader.file, call):
                if isinstance(node, cst.With) and reader.is_tensorflow(node):
                    message = "the Estimator is used inside a `with` on a TensorFlow object"
                    raise InFile(reader.file, "TFM103", node, message)

    def _leftovers(self) -> Iterator[tuple[ParsedFile, cst.BaseStatement]]:
        for reader in self.readers.values():
            self.remarks += [(reader.file, remark) for remark in reader.remarks]
            own = reader.hook_makers
            gone = [*reader.dropped, *(line for line, made in reader.session.lines.items() if not made)]
            kept = reader.kept | reader.session.kept
            reader.removed += leftovers(reader.file, reader.scope, gone, reader.removed, keep=kept, own=own)
            for statement in reader.removed:
                yield reader.file, statement

    # -- the configuration -----------------------------------------------------------------------------------------

    def _config(self, reader: ProgramReader, node: cst.BaseExpression | None) -> Arguments:
        """The arguments of the RunConfig that count."""
        function = self.place.function
        if not isinstance(node, cst.Name) or function is None or not _is_parameter(function, node.value):
            return reader.read_config(node)
        for file, given in self._given(function, node.value, "TFM108"):
            if given is None or is_none(given):
                continue
            caller = self.parents.function(file, given)
            around = self._reader(file, caller)
            reads = mentions_of(around.scope, given.value) if isinstance(given, cst.Name) else []
            try:
                path = path_to(around.scope, given)
                known = partial(_is_elsewhere, reads, given)
                found = read_run_config(file, around.scope, path, given, known, _never)
            except InFile:
                raise
            except Blocked as problem:
                raise InFile(file, problem.code, problem.node, problem.message) from problem
            self._hand_on(file, given, found.arguments)
            around.removed += found.lines
            around.dropped += found.dropped
            around.remarks += found.remarks
        return {}

    def _hand_on(self, file: ParsedFile, given: cst.BaseExpression, arguments: Arguments) -> None:
        """What a RunConfig says besides, given in its place: its model_dir, where the function takes one for that."""
        function = self.place.function
        assert function is not None
        for key in ("tf_random_seed", "train_distribute"):
            if key in arguments:
                message = f"give the RunConfig's `{key}` to the Estimator's function itself: the RunConfig goes"
                raise InFile(file, "TFM108", arguments[key], message)
        folder = arguments.get("model_dir")
        if folder is None:
            return
        own = bind(self.place.call, estimator_parameters(self.place), self.place.name, "TFM104").get("model_dir")
        call = next(call for _, call, arg in self.gone_arguments if arg.value is given)
        name = own.value if isinstance(own, cst.Name) and _is_parameter(function, own.value) else None
        calls = Calls(self.project, self.mentioning, self.parents)
        if name is None:
            message = "give the RunConfig's `model_dir` to the Estimator's function itself: the RunConfig goes"
            raise InFile(file, "TFM108", folder, message)
        if is_none(calls.argument(self.file, function, call, name)):
            changed = rebound(file, self._reader(file, self.parents.function(file, call)).scope, folder, given, call)
            if changed is not None:
                message = f"`{changed[0]}`, which the RunConfig reads, changes before its use"
                raise InFile(file, "TFM109", changed[1], message)
            self.new_arguments.append((file, call, name, folder))

    def _warm_start(self, node: cst.BaseExpression | None) -> None:
        function = self.place.function
        if is_none(node):
            return
        assert node is not None
        if isinstance(node, cst.Name) and function is not None and _is_parameter(function, node.value):
            if all(is_none(value) for _, value in self._given(function, node.value, "TFM146")):
                return
        raise Blocked("TFM146", node, "`warm_start_from` of an Estimator that is handed around is not carried over")

    def _given(
        self, function: cst.FunctionDef, parameter: str, code: str
    ) -> list[tuple[ParsedFile, cst.BaseExpression | None]]:
        """What the calls of a function give for a parameter that only serves the Estimator; parameter and arguments go.

        None where a call gives nothing, and the default is None.
        """
        mentions = [n for n in _names(function) if n.value == parameter]
        params = [*function.params.params, *function.params.kwonly_params]
        own = next(p for p in params if p.name.value == parameter)
        if len(mentions) != 2:
            raise Blocked(code, own, f"`{parameter}` serves more than the Estimator here")
        calls = Calls(self.project, self.mentioning, self.parents)
        found: list[tuple[ParsedFile, cst.BaseExpression | None]] = []
        for file, call in calls.of(self.file, function):
            assert isinstance(call, cst.Call)
            value = calls.argument(self.file, function, call, parameter)
            if value is None:
                if not is_none(own.default):
                    raise Blocked(code, own, f"the default of `{parameter}` is not carried over")
                found.append((file, None))
                continue
            arg = next(a for a in call.args if a.value is value)
            index = next(i for i, a in enumerate(call.args) if a is arg)
            if arg.keyword is None and any(a.keyword is None for a in call.args[index + 1 :]):
                pass  # the parameters behind it move up with their arguments
            found.append((file, value))
            self.gone_arguments.append((file, call, arg))
        self.gone_parameters.append((self.file, function, own))
        return found

    # -- uses ------------------------------------------------------------------------------------------------------

    def _use(self, use: HeldUse) -> HandedUse:
        try:
            return self._read_use(use)
        except InFile:
            raise
        except Blocked as problem:
            raise InFile(use.file, problem.code, problem.node or use.call, problem.message) from problem

    def _read_use(self, use: HeldUse) -> HandedUse:
        reader = self._reader(use.file, use.function)
        plain = self._plain(HandedUse(use, {}))
        reader.read_uses.append(plain)
        if use.method == "train_and_evaluate":
            arguments = bind(use.call, ("estimator", "train_spec", "eval_spec"), use.method, "TFM103")
            before = len(reader.made)
            both = reader.read_both(plain.place, arguments)
            self._check_made(reader, reader.made[before:], use.call)
            if both.exporters:
                message = "exporters of an Estimator that is handed around are not carried over"
                raise Blocked("TFM142", both.exporters[0].call, message)
            message = "checkpoint and evaluation come once, at the end of the training"
            self.remarks.append((use.file, Blocked("TFM109", use.call, message)))
            for spec in (both.train, both.evaluate):
                self._input_function(use.file, use.function, spec.get("input_fn"))
            return HandedUse(use, both.train, both.evaluate)
        if use.method in EXPORTS:
            arguments = reader.arguments(use.call, use.method, None, reader.scope)
            self.exports.append(use)
            return HandedUse(use, arguments)
        if use.method not in _METHODS:
            message = f"`{use.method}` of an Estimator that is handed around is not carried over"
            raise Blocked("TFM103", use.call, message)
        arguments = reader.arguments(use.call, use.method, None, reader.scope)
        if "input_fn" not in arguments:
            raise Blocked("TFM602", use.call, "no input function is given")
        self._input_function(use.file, use.function, arguments["input_fn"])
        return HandedUse(use, arguments)

    def _input_function(
        self, file: ParsedFile, function: cst.FunctionDef | None, node: cst.BaseExpression | None
    ) -> None:
        """Refuses input functions that give tensors; sees whether they are told params or the mode."""
        if node is None:
            raise Blocked("TFM602", None, "no input function is given")
        if isinstance(node, cst.Lambda) and isinstance(node.body, cst.Tuple):
            raise Blocked("TFM602", node, "the input function gives tensors, not a dataset")
        for where, found, given in self._functions(file, function, node, 0):
            names = [p.name.value for p in (*found.params.params, *found.params.kwonly_params)]
            asked = set(names) - given
            if "config" in asked:
                raise Blocked("TFM602", node, "the input function takes `config`, which Keras does not pass")
            self.tells |= bool(asked & _TOLD)
            if isinstance(found, cst.FunctionDef):
                try:
                    check_returns(found, where.imports, where.functions.keys())
                except Blocked as problem:
                    raise InFile(where, problem.code, problem.node, problem.message) from problem

    def _functions(
        self, file: ParsedFile, function: cst.FunctionDef | None, node: cst.BaseExpression, depth: int
    ) -> Iterator[tuple[ParsedFile, cst.FunctionDef | cst.Lambda, set[str]]]:
        """The functions that an expression may stand for, and which of their parameters are given already."""
        if depth > 6:
            return
        if isinstance(node, cst.Lambda):
            yield file, node, set()
            if isinstance(node.body, cst.Call):
                for where, found, _ in self._functions(file, function, node.body.func, depth + 1):
                    yield where, found, {*_TOLD, "config"}
        elif isinstance(node, cst.Call):
            if file.imports.resolve(node.func) == "functools.partial" and node.args:
                given = {a.keyword.value for a in node.args[1:] if a.keyword is not None}
                count = len(node.args) - 1 - len(given)
                for where, found, known in self._functions(file, function, node.args[0].value, depth + 1):
                    names = [p.name.value for p in found.params.params]
                    yield where, found, known | given | set(names[:count])
                return
            for where, maker, _ in self._functions(file, function, node.func, depth + 1):
                if isinstance(maker, cst.FunctionDef):
                    for statement in returns_in(maker.body):
                        if isinstance(statement.value, cst.Name | cst.Lambda | cst.Call):
                            yield from self._functions(where, maker, statement.value, depth + 1)
        elif isinstance(node, cst.Name):
            yield from self._named(file, function, node, depth)
        elif isinstance(node, cst.Attribute):
            known_function = self.project.function(file, node)
            if known_function is not None:
                yield (*known_function, set())
            elif file.imports.resolve(node) is None:
                yield from self._methods(node.attr.value)

    def _named(
        self, file: ParsedFile, function: cst.FunctionDef | None, node: cst.Name, depth: int
    ) -> Iterator[tuple[ParsedFile, cst.FunctionDef | cst.Lambda, set[str]]]:
        for scope in (*([function, *self.parents.above(file, function)] if function is not None else ()), file.module):
            if not isinstance(scope, cst.FunctionDef | cst.Module):
                continue
            bound = [by for name, by in bindings(scope) if name == node.value and by is not scope]
            if not bound or (isinstance(scope, cst.Module) and node.value in file.imports.names):
                continue
            for by in bound:
                if isinstance(by, cst.FunctionDef):
                    yield file, by, set()
                elif isinstance(by, cst.Name):
                    parent = self.parents(file, by)
                    statement = self.parents(file, parent) if parent is not None else None
                    if isinstance(statement, cst.Assign):
                        inside = scope if isinstance(scope, cst.FunctionDef) else None
                        if isinstance(statement.value, cst.Lambda | cst.Call | cst.Name | cst.Attribute):
                            yield from self._functions(file, inside, statement.value, depth + 1)
                elif isinstance(by, cst.Param) and isinstance(scope, cst.FunctionDef):
                    yield from self._from_calls(file, scope, node.value, depth)
            return
        found = self.project.function(file, node)
        if found is not None:
            yield (*found, set())

    def _from_calls(
        self, file: ParsedFile, function: cst.FunctionDef, parameter: str, depth: int
    ) -> Iterator[tuple[ParsedFile, cst.FunctionDef | cst.Lambda, set[str]]]:
        calls = Calls(self.project, self.mentioning, self.parents)
        try:
            given = [
                (where, call, calls.argument(file, function, call, parameter))
                for where, call in calls.of(file, function)
                if isinstance(call, cst.Call)
            ]
        except Blocked:
            return
        for where, call, value in given:
            if value is not None:
                yield from self._functions(where, self.parents.function(where, call), value, depth + 1)

    def _methods(self, name: str) -> Iterator[tuple[ParsedFile, cst.FunctionDef, set[str]]]:
        """The methods of a name, of whatever class."""
        for file in self.mentioning([f"def {name}"]):
            finder = _Methods(name)
            walk(file.module, finder)
            for method in finder.found:
                first = [] if "staticmethod" in decorators(method) else [p.name.value for p in method.params.params[:1]]
                yield file, method, set(first)


_METHODS = ("train", "evaluate", "predict")
_BLOCKS = (cst.If, cst.Else, cst.For, cst.While, cst.Try, cst.ExceptHandler, cst.Lambda, cst.FunctionDef)
_TAKEN = frozenset(("model", "predictor", "model_fn", "params", "model_dir", "seed", *_METHODS))


def _is_elsewhere(reads: Sequence[cst.CSTNode], given: cst.CSTNode, name: cst.Name) -> bool:
    """Whether a name is the one that is given, or another function's of the same spelling."""
    return name is given or not any(name is node for node in reads)


def _never(line: cst.CSTNode) -> bool:
    return False


def _is_line(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.SimpleStatementLine | cst.BaseCompoundStatement)


def _is_parameter(function: cst.FunctionDef, name: str) -> bool:
    return [by for bound, by in bindings(function) if bound == name and not isinstance(by, cst.Param)] == [] and any(
        bound == name for bound, _ in bindings(function)
    )


def _names(function: cst.FunctionDef) -> list[cst.Name]:
    finder = _ReadNames()
    walk(function, finder)
    return finder.found


class _ReadNames(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[cst.Name] = []

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        walk(node.value, self)
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        walk(node.value, self)
        return False

    def visit_Name(self, node: cst.Name) -> None:
        self.found.append(node)


class _Methods(cst.CSTVisitor):
    """The methods of a name in the classes of a file."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.found: list[cst.FunctionDef] = []

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self.found += [s for s in node.body.body if isinstance(s, cst.FunctionDef) and s.name.value == self.name]


class _SelfAttributes(cst.CSTVisitor):
    """`self.name` in the methods of one class: those that are given a value, and those that are read."""

    def __init__(self, parents: Parents, file: ParsedFile, owner: cst.ClassDef) -> None:
        super().__init__()
        self.parents = parents
        self.file = file
        self.owner = owner
        self.stored: set[str] = set()
        self.read: list[cst.Attribute] = []

    def visit_Attribute(self, node: cst.Attribute) -> None:
        if self.parents.own_class(self.file, node.value) is not self.owner:
            return
        if isinstance(self.parents(self.file, node), cst.AssignTarget):
            self.stored.add(node.attr.value)
        else:
            self.read.append(node)


def estimator_subclasses(file: ParsedFile) -> list[tuple[cst.ClassDef, str, cst.Call | None]]:
    """Classes derived from an Estimator: the class, the symbol, and the call of its `__init__`."""
    if "stimator" not in file.bare:
        return []
    finder = _Subclasses(file)
    walk(file.module, finder)
    return finder.found


class _Subclasses(cst.CSTVisitor):
    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self.found: list[tuple[cst.ClassDef, str, cst.Call | None]] = []

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        for base in node.bases:
            name = self.file.imports.resolve(base.value)
            if name is None or not name.startswith("tf.") or not name.rpartition(".")[2].endswith(_BASES):
                continue
            calls = _InitCalls()
            for method in node.body.body:
                if isinstance(method, cst.FunctionDef) and method.name.value == "__init__":
                    walk(method, calls)
            self.found.append((node, name, calls.found[0] if len(calls.found) == 1 else None))


_BASES = ("Estimator", "Classifier", "Regressor")


class _InitCalls(cst.CSTVisitor):
    """`super().__init__(...)` and `super(Own, self).__init__(...)`."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[cst.Call] = []

    def visit_Call(self, node: cst.Call) -> None:
        func = node.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "__init__":
            return
        if isinstance(func.value, cst.Call) and dotted(func.value.func) == "super":
            self.found.append(node)


__all__ = ["Handed", "HandedUse", "estimator_subclasses", "read_handed_programs"]
