"""Which datasets of a program tell the shapes of its features, and which have to be made before their use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import libcst as cst

from migrator.emit.datasets import Datasets
from migrator.program.parsed import Blocked, Project
from migrator.program.training import TrainingProgram, bindings, names_behind, path_to, rebound
from migrator.rules.repeatable import Effect, acts, effect_of
from migrator.targets.plan import Target
from migrator.targets.registry import TPU

#: The modes that an Estimator calls its input functions in, by its methods.
MODES: Mapping[str, str] = {"train": "train", "evaluate": "eval", "predict": "infer"}


@dataclass
class DriverData:
    """The datasets of a driver. `kept` are those that are made before their use: input function -> name."""

    project: Project
    program: TrainingProgram
    target: Target
    datasets: Datasets
    names: Mapping[str, str]
    free: Callable[[str], str]
    kept: dict[cst.BaseExpression, str] = field(default_factory=dict)
    effects: dict[cst.BaseExpression | None, Effect] = field(default_factory=dict)

    def first(self) -> tuple[str, cst.CSTNode | None]:
        """The dataset that tells the shapes of the features, and the statement that the set-up stands before.

        None for the place of the Estimator. It is too early when the dataset reads a name that is bound later; then
        the set-up goes before the statement, in the Estimator's own block, that uses the Estimator first.
        """
        program = self.program
        if program.model.ready:
            return "", None
        datasets = replace(self.datasets, only_shapes=True)
        candidates = self._candidates()
        top = self._first_use()
        if self.kept:  # the first use is given the dataset that tells the shapes
            assert top is not None
            if self.target is TPU and program.model_batch is not None:
                message = "the model_fn reads the batch size per core, but its input function "
                message += "can be called only once, for the global batch: read the size from the shape of a tensor"
                raise Blocked("TFM145", program.place.call, message)
            return next(iter(self.kept.values())), top if self._acts_before(top) else None
        late: tuple[str, cst.CSTNode] | None = None
        for node, place, mode in candidates:
            dataset = datasets.text(node, place, mode)
            assert node is not None
            bound = self._bound_later(node, place)
            if not bound:
                if top is None or self.effect(node) is Effect.NONE or not self._acts_before(top):
                    return dataset, None
                self._check_move(top)
                return dataset, top
            late = late or bound[0]
            if top is not None and all(self._position(b) < self._position(top) for _, b in bound):
                self._check_move(top)
                return dataset, top
        if late is None:
            message = "no input function gives the shapes of the features: the program must train or evaluate here"
            raise Blocked("TFM103", program.place.call, message)
        message = f"`{late[0]}` is assigned after the Estimator is created, but the new model needs it: move it up"
        raise Blocked("TFM103", late[1], message)

    def keep_first(self) -> list[str]:
        """Lines that make the dataset of the first use early, where no other one may tell the shapes.

        Raises Blocked (TFM618) where it is not known which use comes first.
        """
        candidates = self._candidates()
        if not candidates or self.effect(candidates[0][0]) is not Effect.DRAWS:
            return []
        first = self.program.calls[0]
        given, place, mode = next((one for one in candidates if one[1] is first), candidates[0])
        top = self._first_use()
        assert given is not None
        if place is not first or not isinstance(top, cst.SimpleStatementLine):
            message = (
                "calling this input function again for its shapes would change the data: draw random numbers "
                "outside of it"
            )
            raise Blocked("TFM618", given, message)
        self._check_move(top)
        return self._keep(given, mode)

    def keep_counted(self, given: cst.BaseExpression | None, max_steps: str | None) -> list[str]:
        """The line that makes a dataset whose batches are counted before a training on all of them.

        `max_steps` are those of train_and_evaluate.
        """
        both = self.program.train_and_evaluate
        if given is None or given in self.kept or not self.target.creates or self.effect(given) is not Effect.DRAWS:
            return []
        if both is not None and given is both.train.get("input_fn"):
            if max_steps is None:
                message = "counting the batches of this input function would change the data: set `max_steps`"
                raise Blocked("TFM618", given, message)
            return []
        return self._keep(given, "train")

    def _keep(self, given: cst.BaseExpression | None, mode: str) -> list[str]:
        """The line that makes a dataset for all that wants it before, or in, the use of its input function."""
        assert given is not None
        text = self.datasets.text(given, self.program.place.call, mode)
        self.kept[given] = self.free({"train": "train_data", "eval": "eval_data"}.get(mode, "data"))
        return [f"{self.kept[given]} = {text}"]

    def dataset(self, given: cst.BaseExpression | None, place: cst.Call, mode: str) -> str:
        """The dataset of an input function, or its name where it is made already; tasks of a cluster make their own."""
        if given is None or given not in self.kept:
            return self.datasets.text(given, place, mode)
        if not self.target.reads_cluster:
            return self.kept[given]
        jobs = f"{self.names['resolver']}.cluster_spec().jobs"
        return f"{self.datasets.text(given, place, mode)} if {jobs} else {self.kept[given]}"

    def _candidates(self) -> list[tuple[cst.BaseExpression | None, cst.Call, str]]:
        """The input functions that can tell the shapes, best first, with the calls that they are given to.

        Those that may be called once more come before those that may not.
        """
        program = self.program
        found: list[tuple[cst.BaseExpression | None, cst.Call, str]] = []
        both = program.train_and_evaluate
        if both is not None:
            found.append((both.train.get("input_fn"), both.place.call, "train"))
        fed = [use for use in program.uses if use.method in MODES]
        order = sorted(fed, key=lambda use: ("train", "evaluate", "predict").index(use.method))
        labelled = bool(found) or any(use.method != "predict" for use in order)
        found += [
            (use.arguments.get("input_fn"), use.place.call, MODES[use.method])
            for use in order
            if use.method != "predict" or not labelled
        ]
        if any(self.effect(node) is Effect.DRAWS for node, _, _ in found):
            if both is not None:
                found.insert(1, (both.evaluate.get("input_fn"), both.place.call, "eval"))
            found.sort(key=lambda one: self.effect(one[0]) is Effect.DRAWS)
        return found

    def effect(self, given: cst.BaseExpression | None) -> Effect:
        """What one more call of an input function does."""
        if given not in self.effects:
            self.effects[given] = effect_of(self.project, self.program, given)
        return self.effects[given]

    def _first_use(self) -> cst.CSTNode | None:
        """The statement of the Estimator's own block that holds its first use."""
        program = self.program
        around = path_to(program.scope, program.place.call)
        assert program.place.statement is not None
        block = around[next(i for i, n in enumerate(around) if n is program.place.statement) - 1]
        inside = path_to(program.scope, program.calls[0])
        at = next((i for i, n in enumerate(inside) if n is block), None)
        return None if at is None else inside[at + 1]

    def _acts_before(self, top: cst.CSTNode) -> bool:
        """Whether the program does something between the Estimator and its first use that changes what is read."""
        made = self._position(self.program.place.call)
        block = path_to(self.program.scope, top)[-2]
        assert isinstance(block, (cst.Module, cst.IndentedBlock))
        return any(
            made < self._position(one) < self._position(top) and acts(self.program.file, one)
            for one in block.body
            if one not in self.program.removed
        )

    def _bound_later(self, node: cst.BaseExpression, place: cst.Call) -> list[tuple[str, cst.CSTNode]]:
        """What binds names that the dataset reads, between the Estimator and the call that gets the dataset."""
        program = self.program
        names = names_behind(self.program.file, program.scope, node) - {program.variable}
        inner = [n for n in path_to(program.scope, place)[1:] if isinstance(n, cst.FunctionDef)]
        since, until = self._position(program.place.call), self._position(place)
        found = [
            (name, bound)
            for name, bound in bindings(program.scope)
            if name in names
            and bound not in inner
            and self._position(bound) > since
            and (inner or self._position(bound) < until)
            and not (
                name in self.program.file.imports.names and isinstance(bound, cst.Attribute)
            )  # module.function(...)
        ]
        for function in inner:
            found += [(name, bound) for name, bound in bindings(function) if name in names and bound is not function]
        return found

    def _check_move(self, top: cst.CSTNode) -> None:
        """What the set-up reads besides the dataset must be the same at its new place."""
        program = self.program
        read = [
            program.params,
            program.model_dir,
            program.model.callee,
            *self._given_to_model(),
            *program.config.values(),
        ]
        for node in read:
            if node is None:
                continue
            changed = rebound(self.program.file, program.scope, node, program.place.call, top)
            if changed is not None:
                message = f"`{changed[0]}` changes between the creation of the Estimator and its first use"
                raise Blocked("TFM103", changed[1], message)

    def _given_to_model(self) -> list[cst.BaseExpression]:
        """What a partial or a lambda in the Estimator's own call gives the model_fn."""
        model = self.program.model
        template = [value for _, value in model.template or () if not isinstance(value, str)]
        return [*template, *(arg.value for arg in model.more)]

    def _position(self, node: cst.CSTNode) -> tuple[int, int]:
        return self.program.file.position(node)


__all__ = ["MODES", "DriverData"]
