"""Estimators that go from one function, attribute or file to another: what is done with them, wherever that is.

Such a program keeps its driver: an object with the methods of an Estimator takes its place, and trains a Keras model.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import libcst as cst

from migrator.ir.values import Function, Operation, Partial, Value
from migrator.program.calls import bind, is_none, is_true
from migrator.program.flow import Mentioning
from migrator.program.known import program_of, values_at
from migrator.program.leftovers import leftovers
from migrator.program.model_reference import ModelReference
from migrator.program.parsed import Blocked, ParsedFile, Project
from migrator.program.reached import Asked, reached_by
from migrator.program.refusals import Refusals
from migrator.program.scopes import path_to
from migrator.program.training import (
    METHODS,
    Arguments,
    Flowing,
    FlowingUse,
    Place,
    ProgramReader,
    TrainingProgram,
    on_tensorflow,
)
from migrator.rules.arrays import is_array_input
from migrator.rules.inputs import check_returns

_DRIVES = ("train", "evaluate", "predict")
_ASKED = {"latest_checkpoint": True, "model_dir": False}
_SETTINGS = ("model_dir", "save_checkpoints_steps", "tf_random_seed")


def read_flowing(
    project: Project,
    mentioning: Mentioning,
    file: ParsedFile,
    place: Place,
    places: Sequence[Place],
    refusals: Refusals,
) -> list[TrainingProgram]:
    """Reads the program of an Estimator that is used wherever it gets to; nothing where that is refused."""
    return _FlowReader(project, mentioning, file, place, places, refusals).read()


class _FlowReader(ProgramReader):
    def read(self) -> list[TrainingProgram]:
        refused = self.refusals
        if self.place.name != "tf.estimator.Estimator":
            refused.refuse("TFM103", self.place.call, f"a `{self.place.name}` is only followed in its own function")
            return []
        bound = self._bound()
        model = self._model(bound)
        if model is None:
            return []
        config = self.read_config(bound.get("config"))
        if self.session.first or any(self.session.lines.values()):
            refused.refuse("TFM103", self.place.call, "settings of the session go with an Estimator of one function")
        for key, value in config.items():
            if key not in _SETTINGS and not is_none(value):
                refused.refuse("TFM108", value, f"RunConfig's `{key}` goes with an Estimator of one function")
        model_dir = bound.get("model_dir")
        if is_none(model_dir):
            model_dir = config.get("model_dir")
        self._check_start(bound.get("warm_start_from"), model_dir)
        self._check_around(self.file, self.place.call)
        uses = self._all_uses()
        params = bound.get("params")
        kept = self.kept | self.session.kept
        gone = [*self.dropped, *(line for line, made in self.session.lines.items() if not made)]
        self.removed += leftovers(self.file, self.scope, gone, self.removed, keep=kept, own=set())
        program = TrainingProgram(
            file=self.file,
            scope=self.scope,
            place=self.place,
            variable="",
            model=model,
            params=None if is_none(params) else params,
            model_dir=None if is_none(model_dir) else model_dir,
            config=config,
            uses=(),
            train_and_evaluate=None,
            removed=tuple(self.removed),
            remarks=tuple(self.remarks),
            session=self.session,
            flowing=Flowing(tuple(uses)),
        )
        return [] if refused else [program]

    def _model(self, bound: Arguments) -> ModelReference | None:
        models = self._models(bound)
        model = models[0] if len(models) == 1 else None
        if model is None or model.template is not None or model.more or model.lambdas or model.ready:
            self.refusals.refuse("TFM104", self.place.call, "this model_fn goes with an Estimator of one function")
            return None
        return model

    def _check_around(self, file: ParsedFile, call: cst.Call) -> None:
        for node in path_to(file.module, call):
            if isinstance(node, cst.With) and on_tensorflow(file, node):
                message = "the Estimator stands inside a `with` on a TensorFlow object"
                self.refusals.refuse("TFM103", call, message)

    def _all_uses(self) -> list[FlowingUse]:
        reached = reached_by(self.project, self.file, self.place.call, frozenset(["train"]))
        for _, node in reached.unknown:
            self.refusals.refuse("TFM103", node, "the Estimator is used here in a way that is not followed")
        for given in reached.given:
            self.refusals.refuse("TFM103", given.value, "the Estimator is given to something that is not followed")
        uses: list[FlowingUse] = []
        for asked in reached.asked:
            if asked.name in _DRIVES and asked.call is not None:
                use = self.refusals.of(partial(self._use, asked, asked.call), None)
                uses += [] if use is None else [use]
            elif _ASKED.get(asked.name) is not (asked.call is not None) or (asked.call and asked.call.args):
                self.refusals.refuse("TFM103", asked.node, f"`{asked.name}` of an Estimator is not carried over yet")
        if not uses:
            self.refusals.refuse("TFM103", self.place.call, "nothing is done with this Estimator in these files")
        return uses

    def _use(self, asked: Asked, call: cst.Call) -> FlowingUse:
        arguments = bind(call, METHODS[asked.name], f"Estimator.{asked.name}", "TFM103")
        for key, value in arguments.items():
            plain = key in ("input_fn", "steps", "max_steps", "name") or is_none(value)
            if not plain and not (key == "yield_single_examples" and is_true(value)):
                raise Blocked("TFM110", value, f"`{key}` of `{asked.name}` goes with an Estimator of one function")
        given = arguments.get("input_fn")
        if given is None:
            raise Blocked("TFM602", call, "no input function is given")
        self._check_around(asked.file, call)
        homes = tuple(dict.fromkeys(self._homes(asked.file, given)))
        kept = ("steps", "max_steps") if asked.name == "train" else ("steps",) if asked.name == "evaluate" else ()
        settings = {key: arguments[key] for key in kept if not is_none(arguments.get(key))}
        return FlowingUse(asked.file, asked.name, call, given, settings, homes)

    def _homes(self, file: ParsedFile, given: cst.BaseExpression) -> list[ParsedFile]:
        """The files of the functions that an input function may be.

        Raises Blocked (TFM601, TFM602) where it is not known that it takes nothing and gives a dataset.
        """
        values: list[Value] = []
        for main in dict.fromkeys([file.path, self.file.path, *(one.path for one in self.project.files)]):
            start = next(one for one in self.project.files if one.path == main)
            values = values_at(program_of(start, self.project.files), given)
            if values:
                break
        if not values:
            raise Blocked("TFM602", given, "it is not known which input function this is")
        return [self._home(value, given) or file for value in values]

    def _home(self, value: Value, given: cst.BaseExpression) -> ParsedFile | None:
        if isinstance(value, Operation) and is_array_input(value.symbol):
            return None
        taken: set[str] = set()
        left = 0
        while isinstance(value, Partial):
            taken |= value.kwargs.keys()
            left += len(value.args)
            value = value.function
        if not isinstance(value, Function):
            raise Blocked("TFM602", given, "it is not known which input function this is")
        params = value.node.params
        for one in [*[*params.posonly_params, *params.params][left:], *params.kwonly_params]:
            name = one.name.value
            if name not in taken and (one.default is None or name in ("params", "config", "mode", "input_context")):
                raise Blocked("TFM602", given, f"the input function takes `{name}`")
        where = next((one for one in self.project.files if path_to(one.module, value.node)), None)
        if where is None:
            raise Blocked("TFM602", given, "it is not known which input function this is")
        if isinstance(value.node, cst.FunctionDef):
            try:
                check_returns(value.node, where.imports, where.functions.keys())
            except Blocked as problem:
                raise Blocked(problem.code, given, problem.message) from problem
        elif isinstance(value.node.body, cst.Tuple):
            raise Blocked("TFM602", given, "the input function gives tensors, not a dataset")
        return where


__all__ = ["read_flowing"]
