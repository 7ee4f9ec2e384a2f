"""Estimators that go from one function, attribute or file to another: what is done with them, wherever that is.

Such a program keeps its driver: an object with the methods of an Estimator takes its place, and trains a Keras model.
Specs and RunConfigs that go the same ways become dicts of what they say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial

import libcst as cst

from migrator.ir.program import Program
from migrator.ir.values import Constant, Function, Method, Operation, Partial, Value, alternatives
from migrator.names.bare import says
from migrator.names.bindings import read_bindings, values_given
from migrator.program.calls import bind, is_none, is_true, nodes_in
from migrator.program.exports import EXPORTS, Exporter, check_export, read_exporters
from migrator.program.flow import Mentioning
from migrator.program.known import program_of, values_at
from migrator.program.leftovers import leftovers
from migrator.program.model_reference import ModelReference
from migrator.program.parsed import Blocked, ParsedFile, Project, name_nodes, names_in
from migrator.program.reached import Asked, Given, Reached, reached_by
from migrator.program.refusals import Refusals
from migrator.program.run_config import read_run_config
from migrator.program.scopes import path_to, rebound
from migrator.program.tasks import TASK, WORDS
from migrator.program.training import (
    EVAL_SPEC,
    METHODS,
    TRAIN_SPEC,
    Arguments,
    Flowing,
    FlowingUse,
    Place,
    ProgramReader,
    TrainingProgram,
    estimator_parameters,
    is_estimator,
    on_tensorflow,
)
from migrator.rules.arrays import is_array_input
from migrator.rules.hooks import Hooks, read_hooks
from migrator.rules.inputs import check_returns

_BOTH = "tf.estimator.train_and_evaluate"
_CONFIG = "tf.estimator.RunConfig"
_SPECS = {
    "train_spec": ("tf.estimator.TrainSpec", TRAIN_SPEC, "train"),
    "eval_spec": ("tf.estimator.EvalSpec", EVAL_SPEC, "evaluate"),
}
_PHASES = {"train": "train", "evaluate": "test", "predict": "predict"}
_READ = ("model_dir", "params")  # attributes
_CALLED = (*_PHASES, *EXPORTS, "latest_checkpoint")
_SETTINGS = ("model_dir", "save_checkpoints_steps", "tf_random_seed")
_SURROUNDS = re.compile(r"\.as_default\(|\.scope\(|Session\(")  # graphs, strategies, sessions
_IMPORTS = re.compile(r"\b(?:import|from)\b(?:[^\n(\\]|\\\n|\([^)]*\))*")
_STRINGS = re.compile(r"[\"']([\w./-]+)[\"']")
_WORD = re.compile(r"\w+")
_SCRIPTS = 12  # are evaluated; what further ones give is not known
_SHOW = ("print", "repr", "str")
_CHOSEN = ("checkpoint_path", "predict_keys", "yield_single_examples")
_LEFT_OUT = ("name", "start_delay_secs", "throttle_secs")


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
    passes_params = False

    def read(self) -> list[TrainingProgram]:
        refused = self.refusals
        self.exporters: list[tuple[ParsedFile, cst.CSTNode, Exporter]] = []
        self.exports: list[tuple[ParsedFile, cst.CSTNode, cst.Call, cst.BaseExpression, cst.BaseExpression]] = []
        self.asks: set[str] = set()
        self.config_asks: list[tuple[ParsedFile, cst.Attribute]] = []
        self.config_for: list[cst.Call] = []
        self.unserved: dict[tuple[ParsedFile, cst.CSTNode], list[cst.CSTNode]] = {}
        self.gone: list[tuple[ParsedFile, cst.BaseStatement]] = []
        if self.place.name != "tf.estimator.Estimator":
            refused.refuse(
                "TFM103", self.place.call, f"a `{self.place.name}` that escapes the function creating it is unsupported"
            )
            return []
        bound = self._bound()
        models = self._model_fns(bound)
        if not models:
            return []
        reached = reached_by(self.project, self._in_one_run, self.file, self.place.call, frozenset(["train"]))
        reached.given = [given for given in reached.given if not _is_shown(given)]
        self._check_reached(reached)
        if refused:
            return []
        given = bound.get("config")
        trial = Refusals()
        beside: Arguments = {}
        config = trial.of(lambda: self.read_config(given), beside)
        configs = self._configs(given) if trial and given is not None else ()
        self._check_settings(config)
        self._check_steady_config()
        if self.session.first or any(self.session.lines.values()):
            refused.refuse(
                "TFM103",
                self.place.call,
                (
                    "session settings are unsupported when the Estimator escapes its function: create and "
                    "use it in one function"
                ),
            )
        model_dir = bound.get("model_dir")
        if is_none(model_dir):
            model_dir = config.get("model_dir")
        folders = [arguments["model_dir"] for _, _, arguments in configs if not is_none(arguments.get("model_dir"))]
        if folders and not is_none(model_dir):
            refused.refuse("TFM108", folders[0], "both the Estimator and its RunConfig set model_dir: keep one")
        self._check_start(bound.get("warm_start_from"), model_dir)
        self._check_around(self.file, self.place.call)
        uses, both = self._all_uses(reached)
        concerned = [*self._importing, *(file for use in uses for file in (use.file, *use.homes))]
        refused.of(lambda: self._check_callers(concerned, bool(both)), None)
        periods = [a["save_checkpoints_steps"] for a in (config, *(one for _, _, one in configs)) if _has_periods(a)]
        for _, _, exporter in self.exporters if periods else ():
            if exporter.kind == "Best":
                message = "BestExporter is unsupported with several evaluations"
                refused.refuse("TFM142", exporter.call, message)
        params = bound.get("params")
        kept = self.kept | self.session.kept
        left = [*self.dropped, *(line for line, made in self.session.lines.items() if not made)]
        self.removed += leftovers(self.file, self.scope, left, self.removed, keep=kept, own=set())
        for (where, scope), nodes in self.unserved.items():
            gone = [line for file, line in self.gone if file is where]
            self.gone += [(where, line) for line in leftovers(where, scope, nodes, gone, own=self.hook_makers)]
        program = TrainingProgram(
            file=self.file,
            scope=self.scope,
            place=self.place,
            variable="",
            model=models[0],
            params=None if is_none(params) else params,
            model_dir=None if is_none(model_dir) else model_dir,
            config=config,
            uses=(),
            train_and_evaluate=None,
            removed=tuple(self.removed),
            remarks=tuple(self.remarks),
            session=self.session,
            hooks=tuple(self.hooks),
            flowing=Flowing(
                tuple(uses),
                tuple(both),
                given if configs else None,
                any(isinstance(one, Constant) for one in self._values(given)) if configs and given else False,
                configs,
                tuple(self.gone),
                self.passes_params,
                tuple(self.exporters),
                tuple(self.exports),
                frozenset(self.asks),
                tuple(dict.fromkeys(self.config_asks)),
                tuple(dict.fromkeys(self.config_for)),
            ),
        )
        return [] if refused else [replace(program, model=model) for model in models]

    def _model_fns(self, bound: Arguments) -> Sequence[ModelReference]:
        models = self._models(bound)
        if not models or any(model.lambdas or model.ready for model in models):
            self.refusals.refuse(
                "TFM104",
                self.place.call,
                (
                    "this model_fn is unsupported when the Estimator escapes its function: create and use "
                    "it in one function"
                ),
            )
            return ()
        return models

    def _check_settings(self, config: Arguments) -> None:
        for key, value in config.items():
            if key not in _SETTINGS and not is_none(value):
                self.refusals.refuse(
                    "TFM108",
                    value,
                    (
                        f"RunConfig's `{key}` is unsupported when the Estimator escapes its function: create "
                        "and use it in one function"
                    ),
                )

    def _check_steady_config(self) -> None:
        """The arguments of a RunConfig are evaluated with the Estimator: their names must not change before."""
        read = [(call, arg.value) for call in self.made for arg in call.args if not arg.star]
        for place, value in [*read, *self.values]:
            changed = rebound(self.file, self.scope, value, place, self.place.call)
            if changed is not None:
                message = (
                    f"`{changed[0]}`, which a spec or RunConfig reads, changes before it is used: use another name"
                )
                self.refusals.refuse("TFM109", changed[1], message)

    def _check_around(self, file: ParsedFile, call: cst.Call) -> None:
        for node in path_to(file.module, call):
            if isinstance(node, cst.With) and on_tensorflow(file, node):
                message = "the Estimator is inside a `with` on a TensorFlow object: move it out"
                self.refusals.refuse("TFM103", call, message)

    @cached_property
    def _importing(self) -> list[ParsedFile]:
        """The file of the Estimator, and all that import it, directly or not."""
        found = [self.file]
        for file in found:
            for other in self.project.files:
                if other not in found and any(self._imports(other, origin, file) for origin in _origins(other)):
                    found.append(other)
        return found

    @cached_property
    def _started(self) -> list[Program]:
        """The scripts that may come to the Estimator, as they are understood."""
        return [program_of(main, self.project.files) for main in self._importing[:_SCRIPTS]]

    def _check_callers(self, files: Iterable[ParsedFile], on_clusters: bool) -> None:
        """Refuses graphs and scopes that functions may be called in, where an Estimator made a graph of its own, and
        what may differ by the tasks of a cluster."""
        for file in dict.fromkeys(files):
            if says(file.text, "TF_CONFIG") or (on_clusters and _may_read_task(file)):
                message = (
                    f"`{file.path.name}` may read the cluster task (TF_CONFIG), which is unsupported when "
                    "the Estimator escapes its function"
                )
                raise Blocked("TFM704", self.place.call, message)
            for node in _withs(file):
                if any(_SURROUNDS.search(file.code(item.item)) for item in node.items) and self._may_drive(node.body):
                    message = (
                        "this `with` may contain uses of an Estimator from another function: create and use it "
                        "in one function"
                    )
                    raise Blocked("TFM103", node, message)

    def _may_drive(self, block: cst.CSTNode) -> bool:
        """Whether some lines may come to the Estimator: they name something of the project, or a method of one."""
        names = {node.value for node in nodes_in(block) if isinstance(node, cst.Name)}
        return not names.isdisjoint(self._defined) or not names.isdisjoint((*METHODS, "train_and_evaluate"))

    @cached_property
    def _defined(self) -> set[str]:
        """The names of all functions and classes of the project."""
        kinds = (cst.FunctionDef, cst.ClassDef)
        return {node.name.value for file in self.project.files for node in file.parents if isinstance(node, kinds)}

    def _in_one_run(self, names: Collection[str]) -> list[ParsedFile]:
        """The files that mention some names, and that may run in a process with the Estimator: an attribute of a script
        that nobody imports, and that does not come to the Estimator's file, is no attribute that it gets to."""
        found = self.mentioning(names)
        known = [file for file in found if file in self.project.files]
        others = {file.path for file in known if file not in self._importing and not self._may_be_imported(file)}
        return [file for file in found if file.path not in others]

    def _may_be_imported(self, file: ParsedFile) -> bool:
        """Whether another file names one in an import, or as a string of a module or a path."""
        stem = file.path.parent.name if file.path.stem == "__init__" else file.path.stem
        return any(other is not file and stem in _modules_in(other.text) for other in self.project.files)

    def _imports(self, file: ParsedFile, origin: str, of: ParsedFile) -> bool:
        module = origin
        while module:
            if self.project.sibling(file, module) is of:
                return True
            module = module.rpartition(".")[0]
        return False

    # -- values from elsewhere -------------------------------------------------------------------------------------

    def _values(self, given: cst.BaseExpression) -> list[Value]:
        """What an argument may be each time that its call is made, in whatever file the program starts.

        None where nothing is known of it; what somebody outside of the project would give counts for nothing.
        """
        found: list[Value] = []
        for program in self._started:
            values = values_at(program, given)
            found += [one for value in values for one in alternatives(value)]
        known = [one for one in found if not (isinstance(one, Operation) and one.symbol == "parameter")]
        return list(dict.fromkeys(known))

    def _made(self, given: cst.BaseExpression, symbol: str, code: str) -> list[tuple[ParsedFile, cst.Call]]:
        """The calls of a symbol that an argument may be the results of. Raises Blocked where it may be another."""
        values = [given] if isinstance(given, cst.Call) else self._values(given)
        if not values:
            raise Blocked(code, given, f"cannot tell that this is a `{symbol}`")
        return self._made_of(values, given, symbol, code)

    def _made_of(
        self, values: Iterable[Value | cst.Call], given: cst.BaseExpression, symbol: str, code: str
    ) -> list[tuple[ParsedFile, cst.Call]]:
        """The calls of a symbol that make some values. Raises Blocked where one is not made by it."""
        made: dict[cst.Call, ParsedFile] = {}
        for value in values:
            if isinstance(value, Constant) and value.value is None and symbol.endswith("RunConfig"):
                continue
            node = value if isinstance(value, cst.Call) else None
            if isinstance(value, Operation) and value.symbol == symbol and value.site is not None:
                node = value.site.node if isinstance(value.site.node, cst.Call) else None
            file = None if node is None else next((one for one in self.project.files if node in one.parents), None)
            if node is None or file is None or file.imports.resolve(node.func) != symbol:
                raise Blocked(code, given, f"cannot tell that this is a `{symbol}`")
            made[node] = file
        return [(file, node) for node, file in made.items()]

    def _check_ways(
        self, file: ParsedFile, made: cst.Call, to: Sequence[cst.Call], code: str, asks: Collection[cst.CSTNode] = ()
    ) -> None:
        """Refuses a spec or a RunConfig that gets to other calls than some, or that is asked for anything else than
        some attributes."""
        returning = frozenset(["replace"]) if asks else frozenset[str]()
        reached = reached_by(self.project, self._in_one_run, file, made, returning)
        others = [one.value for one in reached.given if not any(one.call is other for other in to)]
        others += [asked.node for asked in reached.asked if asked.node not in asks]
        for node in [*others, *(node for _, node in reached.unknown)]:
            raise Blocked(code, node, "this is not used by the Estimator alone: create a separate one for it")

    def _made_configs(self, given: cst.BaseExpression) -> list[tuple[ParsedFile, cst.Call]]:
        """The calls that make the RunConfigs which an argument may be: `RunConfig(...)`, then `.replace(...)` of it."""
        replaced: list[tuple[ParsedFile, cst.Call]] = []
        pending = [] if isinstance(given, cst.Call) else self._values(given)
        made: list[tuple[ParsedFile, cst.Call]] = self._made(given, _CONFIG, "TFM108") if not pending else []
        while pending:
            value = pending.pop()
            node = value.site.node if isinstance(value, Operation) and value.site is not None else None
            if isinstance(value, Operation) and value.symbol == ".replace" and isinstance(node, cst.Call):
                home = next((one for one in self.project.files if node in one.parents), None)
                if home is None or not isinstance(node.func, cst.Attribute):
                    raise Blocked("TFM108", given, f"cannot tell that this is a `{_CONFIG}`")
                replaced.insert(0, (home, node))
                pending += alternatives(value.args[0])
            else:
                made += self._made_of([value], given, _CONFIG, "TFM108")
        return list(dict.fromkeys([*made, *replaced]))

    def _is_config_of(self, given: Given) -> bool:
        """Whether a call that a RunConfig is given to makes an Estimator, which has it as its `config`."""
        place = Place(given.file.imports.resolve(given.call.func) or "", given.call, None, None)
        if not is_estimator(place.name):
            return False
        return bind(given.call, estimator_parameters(place), place.name, "TFM108").get("config") is given.value

    def _configs(self, given: cst.BaseExpression) -> tuple[tuple[ParsedFile, cst.Call, Arguments], ...]:
        """The RunConfigs that an Estimator may be given, made elsewhere, those that others are made of before these."""
        found: list[tuple[ParsedFile, cst.Call, Arguments]] = []
        calls = self._made_configs(given)
        replaced = {made.func for _, made in calls if isinstance(made.func, cst.Attribute)}
        for file, made in calls:
            reached = reached_by(self.project, self._in_one_run, file, made, frozenset(["replace"]))
            reads = [one for one in reached.asked if one.name == "model_dir" and _is_read(one)]
            self.config_asks += [(one.file, one.node) for one in reads]
            asks = {*replaced, *(one.node for one in reads)}
            to = [one.call for one in reached.given if self._is_config_of(one)]
            self.config_for += [call for call in to if call is not self.place.call]
            self._check_ways(file, made, to, "TFM108", asks)
            is_replaced = made.func in replaced and file.imports.resolve(made.func) is None
            scope = next(
                (one for one in reversed(path_to(file.module, made)) if isinstance(one, cst.FunctionDef)), None
            )
            around = path_to(scope or file.module, made)
            nothing: Callable[[cst.CSTNode], bool] = lambda node: False  # noqa: E731
            read = read_run_config(file, scope or file.module, around, made, nothing, nothing, alone=is_replaced)
            if read.session is not None:
                raise Blocked(
                    "TFM108",
                    made,
                    "a RunConfig with session settings is created away from its Estimator: create it next to it",
                )
            self._check_settings(read.arguments)
            self.remarks += read.remarks
            found.append((file, made, read.arguments))
        return tuple(found)

    # -- uses ------------------------------------------------------------------------------------------------------

    def _check_reached(self, reached: Reached) -> None:
        for _, node in reached.unknown:
            self.refusals.refuse("TFM103", node, "this use of the Estimator is unsupported")
        for asked in reached.asked:
            calls = asked.call is not None
            if asked.name not in (_CALLED if calls else _READ):
                self.refusals.refuse("TFM103", asked.node, f"`{asked.name}` of an Estimator is unsupported")
            elif asked.name in ("latest_checkpoint", "params"):
                self.asks.add(asked.name)
        for given in reached.given:
            if given.file.imports.resolve(given.call.func) != _BOTH:
                message = "the Estimator is passed to a call that cannot be resolved"
                self.refusals.refuse("TFM103", given.value, message)

    def _all_uses(
        self, reached: Reached
    ) -> tuple[list[FlowingUse], list[tuple[ParsedFile, cst.Call, tuple[cst.BaseExpression, ...]]]]:
        uses: list[FlowingUse] = []
        for asked in reached.asked:
            if asked.name in _PHASES and asked.call is not None:
                use = self.refusals.of(partial(self._use, asked, asked.call), None)
                uses += [] if use is None else [use]
            elif asked.name in EXPORTS and asked.call is not None:
                self.refusals.of(partial(self._export, asked, asked.call), None)
        both: list[tuple[ParsedFile, cst.Call, tuple[cst.BaseExpression, ...]]] = []
        calls = [given.call for given in reached.given]
        for given in reached.given:
            found = self.refusals.of(partial(self._specs, given, calls), None)
            if found is not None:
                both.append((given.file, given.call, found[0]))
                uses += [one for one in found[1] if not any(one.call is use.call for use in uses)]
        unused = not reached.asked and self._is_of_a_script()
        if not uses and not self.exports and not self.refusals and not unused:
            self.refusals.refuse("TFM103", self.place.call, "this Estimator is never used in these files")
        return uses, both

    def _is_of_a_script(self) -> bool:
        """Whether the Estimator is made by a script that no other file mentions: nobody else does anything with it."""
        path = self.file.path
        name = path.parent.name if path.stem == "__init__" else path.stem
        others = [one for one in self.mentioning([name]) if one.path != path]
        return self.scope is self.file.module and not others

    def _use(self, asked: Asked, call: cst.Call) -> FlowingUse:
        arguments = bind(call, METHODS[asked.name], f"Estimator.{asked.name}", "TFM103")
        self._check_around(asked.file, call)
        return self._read(asked.file, asked.scope, asked.name, call, arguments)

    def _export(self, asked: Asked, call: cst.Call) -> None:
        """A SavedModel that is written."""
        arguments = bind(call, EXPORTS[asked.name], f"Estimator.{asked.name}", "TFM142")
        self.remarks += check_export(arguments, call)
        if "export_dir_base" not in arguments:
            raise Blocked("TFM142", call, "the export has no `export_dir_base`")
        self._check_around(asked.file, call)
        folder, serving = arguments["export_dir_base"], arguments["serving_input_receiver_fn"]
        self.exports.append((asked.file, asked.scope, call, folder, serving))

    def _exporters_of(self, file: ParsedFile, scope: cst.CSTNode, given: cst.BaseExpression) -> cst.BaseExpression:
        """The exporters of an EvalSpec: a list of what they become, which stands where they stood."""
        found, remarks = read_exporters(file, scope, given)
        self.remarks += remarks
        for exporter in found:
            if exporter.kind != "Final":
                message = f"the {exporter.kind}Exporter writes once, after training"
                self.remarks.append(Blocked("TFM143", exporter.call, message))
            self._check_place(file, scope, exporter.call, given)
            self.exporters.append((file, scope, exporter))
        whole = [one.call for one in found]
        value = self._named_value(scope, given)
        if isinstance(value, (cst.List, cst.Tuple)):
            return given
        if len(whole) != 1 or value is not whole[0]:
            raise Blocked("TFM142", given, "this exporter is not created next to the Estimator: create it there")
        return cst.List([cst.Element(given)])

    def _named_value(self, scope: cst.CSTNode, given: cst.BaseExpression) -> cst.BaseExpression:
        """What a name stands for where it gets one value."""
        found = values_given(scope, given.value) if isinstance(given, cst.Name) else []
        return found[0] if len(found) == 1 else given

    def _check_place(self, file: ParsedFile, scope: cst.CSTNode, made: cst.Call, given: cst.BaseExpression) -> None:
        """Refuses an exporter that may get to something else than its spec. Raises Blocked (TFM142)."""
        node: cst.CSTNode | None = made
        while node is not None and node is not given:
            around = file.parents.get(node)
            target = around.targets[0].target if isinstance(around, cst.Assign) and len(around.targets) == 1 else None
            if isinstance(target, cst.Name):
                other = [one for one in name_nodes(scope) if one.value == target.value and one is not target]
                node = other[0] if len(other) == 1 else None
            else:
                node = around if isinstance(around, (cst.Element, cst.List, cst.Tuple)) else None
        if node is None:
            raise Blocked("TFM142", made, "this exporter may reach several EvalSpecs: create it inside its own")

    def _specs(
        self, given: Given, calls: Sequence[cst.Call]
    ) -> tuple[tuple[cst.BaseExpression, ...], list[FlowingUse]]:
        """The arguments of a call of train_and_evaluate, and its specs."""
        self._check_around(given.file, given.call)
        bound = bind(given.call, ("estimator", *_SPECS), _BOTH, "TFM103")
        uses: list[FlowingUse] = []
        for key, (symbol, parameters, method) in _SPECS.items():
            if key not in bound:
                raise Blocked(
                    "TFM103",
                    given.call,
                    "train_and_evaluate is called without both specs: pass a TrainSpec and an EvalSpec",
                )
            for file, made in self._made(bound[key], symbol, "TFM109"):
                self._check_ways(file, made, calls, "TFM109")
                scope = next((n for n in reversed(path_to(file.module, made)) if isinstance(n, cst.FunctionDef)), None)
                arguments = bind(made, parameters, symbol, "TFM109")
                uses.append(self._read(file, scope or file.module, method, made, arguments, is_spec=True))
        return tuple(bound.values()), uses

    def _read(
        self,
        file: ParsedFile,
        scope: cst.CSTNode,
        method: str,
        call: cst.Call,
        arguments: Arguments,
        is_spec: bool = False,
    ) -> FlowingUse:
        counting = ("steps", "max_steps") if method == "train" else ("steps",) if method == "evaluate" else ()
        settings: Arguments = {}
        for key, value in arguments.items():
            if key == "steps" and is_spec and method == "evaluate":
                settings[key] = value  # None takes all, and nothing 100
            elif key == "hooks" and not is_none(value):
                settings.update(self._hooks_of(file, scope, _PHASES[method], value))
            elif key == "exporters" and not is_none(value):
                settings[key] = self._exporters_of(file, scope, value)
            elif key in _CHOSEN and not is_spec and not is_none(value):
                if key == "checkpoint_path" and any(says(one.text, "model.ckpt") for one in self._importing):
                    message = "the program reads the Estimator's checkpoints by file name, and these names change"
                    raise Blocked("TFM110", value, message)
                if key != "yield_single_examples" or not is_true(value):
                    settings[key] = value
                    self.asks.add(key)
            elif key in counting and not is_none(value):
                settings[key] = value
            elif key not in ("input_fn", "hooks", *counting, *_LEFT_OUT) and not is_none(value):
                raise Blocked(
                    "TFM110",
                    value,
                    (
                        f"`{key}` is unsupported when the Estimator escapes its function: create and use it in "
                        "one function"
                    ),
                )
        given = arguments.get("input_fn")
        if given is None:
            raise Blocked("TFM602", call, "no input_fn is given")
        homes = tuple(dict.fromkeys(self._homes(file, given)))
        return FlowingUse(file, method, call, given, settings, homes, is_spec)

    def _hooks_of(self, file: ParsedFile, scope: cst.CSTNode, phase: str, given: cst.BaseExpression) -> Arguments:
        """What becomes of hooks: arguments of the call; the others are left out."""
        found: Hooks = read_hooks(file, scope, given, phase, self.project, self.tensors)
        if found.steps is not None or found.max_steps is not None or found.iterators or found.gone:
            raise Blocked(
                "TFM110",
                given,
                (
                    "these hooks are unsupported when the Estimator escapes its function: create and use "
                    "it in one function"
                ),
            )
        if found.reads_evaluations or (found.callbacks is not None and phase != "train"):
            raise Blocked(
                "TFM110",
                given,
                (
                    "these hooks are unsupported when the Estimator escapes its function: create and use "
                    "it in one function"
                ),
            )
        self.hooks.append((phase, found))
        self.remarks += found.remarks
        self.unserved.setdefault((file, scope), []).extend(found.nodes)
        if found.callbacks is None:
            return {}
        self.kept |= names_in(found.callbacks)
        return {"callbacks": found.callbacks}

    def _homes(self, file: ParsedFile, given: cst.BaseExpression) -> list[ParsedFile]:
        """The files of the functions that an input function may be.

        Raises Blocked (TFM601, TFM602) where it is not known that it takes nothing and gives a dataset.
        """
        values = self._values(given)
        if not values:
            raise Blocked("TFM602", given, "cannot tell which input_fn this is: pass the function itself")
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
        if isinstance(value, Method) and value.function is not None:
            value, left = value.function, left + 1
        if not isinstance(value, Function):
            raise Blocked("TFM602", given, "cannot tell which input_fn this is: pass the function itself")
        params = value.node.params
        for one in [*[*params.posonly_params, *params.params][left:], *params.kwonly_params]:
            name = one.name.value
            if name == "params" and name in taken:
                raise Blocked("TFM602", given, "a partial binds the input_fn's `params`: rename that parameter")
            if name == "params":
                self.passes_params = True
            elif name not in taken and (one.default is None or name in ("config", "mode", "input_context")):
                raise Blocked("TFM602", given, f"the input_fn takes `{name}`: bind it with functools.partial")
        where = next((one for one in self.project.files if path_to(one.module, value.node)), None)
        if where is None:
            raise Blocked("TFM602", given, "cannot tell which input_fn this is: pass the function itself")
        if isinstance(value.node, cst.FunctionDef):
            try:
                check_returns(value.node, where.imports, where.functions.keys())
            except Blocked as problem:
                raise Blocked(problem.code, given, problem.message) from problem
        elif isinstance(value.node.body, cst.Tuple):
            raise Blocked("TFM602", given, "the input_fn returns tensors: return a `tf.data.Dataset`")
        return where


def _is_read(asked: Asked) -> bool:
    """Whether an attribute is read, where another expression may take its place: not in the text of an f-string."""
    targets = (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.Del, cst.For, cst.NameItem, cst.AsName)
    around = asked.file.parents.get(asked.node)
    changed = isinstance(around, targets) and getattr(around, "value", None) is not asked.node
    inside = path_to(asked.file.module, asked.node)
    return (
        asked.call is None
        and not changed
        and not any(isinstance(one, (cst.FormattedString, cst.AssignTarget)) for one in inside)
    )


def _is_shown(given: Given) -> bool:
    """Whether an object is given to what only shows that it is one."""
    func = given.call.func
    known = {binding.name for binding in read_bindings(given.file.module)}
    return isinstance(func, cst.Name) and func.value in _SHOW and func.value not in known


def _may_read_task(file: ParsedFile) -> bool:
    """Whether a file may ask which task it is: by an attribute of that name, or in the environment."""
    return says(file.text, *TASK) or (says(file.text, "environ", "getenv") and says(file.text, *WORDS))


def _has_periods(config: Arguments) -> bool:
    return not is_none(config.get("save_checkpoints_steps"))


def _withs(file: ParsedFile) -> list[cst.With]:
    return [node for node in file.parents if isinstance(node, cst.With)]


@lru_cache(maxsize=4096)
def _modules_in(text: str) -> frozenset[str]:
    """The words of a file's imports, and of its strings that may be a module or a path."""
    said = [*_IMPORTS.findall(text), *_STRINGS.findall(text)]
    return frozenset(word for one in said for word in _WORD.findall(one))


def _origins(file: ParsedFile) -> list[str]:
    return list(dict.fromkeys(file.imports.names.values()))


__all__ = ["read_flowing"]
