"""Keras models of the program's own under a strategy: the statements that make one, which go into its scope."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from migrator.names.bare import bare
from migrator.names.bindings import values_given
from migrator.names.standard import STANDARD_MODULES
from migrator.pairing import pairwise
from migrator.program.calls import calls_in, is_none, string
from migrator.program.parsed import Blocked, ParsedFile, Project, names_in
from migrator.program.ready import VARIABLES, WORDS
from migrator.program.region import Region, reach
from migrator.program.scopes import bindings, path_to, returns_in
from migrator.program.training import TrainingProgram

#: What of TensorFlow makes no part of a model: the others may make variables, which belong into the scope.
_NO_PART = (
    *(
        "tf.data.",
        "tf.keras.datasets.",
        "tf.keras.utils.",
        "tf.keras.preprocessing.",
        "tf.feature_column.",
        "tf.gfile.",
    ),
    *("tf.logging.", "tf.distribute.", "tf.contrib.distribute.", "tf.estimator.", "tf.io.", "tf.flags.", "tf.app."),
    *("tf.set_random_seed", "tf.random.set_seed", "tf.enable_", "tf.disable_", "tf.ConfigProto", "tf.config."),
)
#: Packages that make no part of a model.
OTHERS = frozenset(("numpy", "pandas", "sklearn", "scipy", "absl", "matplotlib", "PIL", *STANDARD_MODULES))
_STAY = (cst.FunctionDef, cst.ClassDef)
_OPTIMIZERS = ("tf.keras.optimizers.", "tf.optimizers.")
_LOSSES = ("tf.keras.losses.", "tf.keras.metrics.")
# An optimizer that is changed, or put into the place of another, after it was given.
_CHANGED = re.compile(r"\.(optimizer|clipnorm|clipvalue|global_clipnorm)\s*=[^=]|\bsetattr\(")


@dataclass(frozen=True)
class Scoped:
    """The statements that make a model: `runs` of neighbours in one block, in their order.

    `region` are the functions and statements that make the model, with their files. `unknown` says that code which was
    not given makes some of it.
    """

    runs: tuple[tuple[cst.BaseStatement, ...], ...]
    region: Region
    unknown: bool

    @property
    def first(self) -> cst.BaseStatement:
        """The first of all statements."""
        return self.runs[0][0]


def scoped_model(project: Project, program: TrainingProgram, own_scope: str | None) -> Scoped:
    """The statements that make the model which an Estimator is made of.

    `own_scope` is the name of the program's own strategy: what stands in its scope stays there. Raises Blocked (TFM727)
    where a statement of another function, or of no known place, makes the model.
    """
    return _Reader(project, program, own_scope).read()


class _Reader:
    def __init__(self, project: Project, program: TrainingProgram, own_scope: str | None) -> None:
        self.project = project
        self.program = program
        self.file = program.file
        self.scope = program.scope
        self.own_scope = own_scope
        self.model = names_in(program.model.callee)
        self.unknown = False
        self.region: dict[cst.CSTNode, ParsedFile] = {}

    def read(self) -> Scoped:
        gone = {*self.program.removed, *self.program.session.lines}
        blocks = [[s for s in block if s not in gone] for block in self._blocks()]
        candidates = [s for block in blocks for s in block if not isinstance(s, _STAY)]
        needed, makers = self._closure(candidates)
        self._check(needed, makers)
        runs: list[list[cst.BaseStatement]] = []
        for block in blocks:
            previous: cst.BaseStatement | None = None
            for statement in block:
                if statement in makers and not self._is_within_own(statement):
                    if previous is not None and runs and runs[-1][-1] is previous:
                        runs[-1].append(statement)
                    else:
                        runs.append([statement])
                previous = statement
        for statement in makers:
            self.region[statement] = self.file
        if not runs and not any(self._is_within_own(s) for s in makers):
            raise Blocked("TFM727", self.program.place.call, self._message("no statement here creates the model"))
        return Scoped(tuple(tuple(run) for run in runs), self.region, self.unknown)

    def _message(self, why: str) -> str:
        return f"{why}, which must be created in the strategy's scope: create it next to its Estimator"

    def _blocks(self) -> Iterator[Sequence[cst.BaseStatement]]:
        """The statements before the Estimator in its own block, and in those around it, the outermost first."""
        path = path_to(self.scope, self.program.place.call)
        for node, inner in pairwise(path):
            if isinstance(node, (cst.Module, cst.IndentedBlock)):
                at = next(i for i, statement in enumerate(node.body) if statement is inner)
                yield [s for s in node.body[:at] if isinstance(s, cst.BaseStatement)]

    def _closure(self, candidates: Sequence[cst.BaseStatement]) -> tuple[set[str], list[cst.BaseStatement]]:
        """The names that the model is made of, and the statements that may make a part of it."""
        needed = set(self.model)
        bound = {s: {name for name, node in bindings(self.scope) if path_to(s, node)} for s in candidates}
        own = {name for name, node in bindings(self.scope) if not isinstance(node, (cst.FunctionDef, cst.ClassDef))}
        own -= self.file.imports.names.keys()
        of_model: set[cst.BaseStatement] = set()
        size = -1
        while size != len(needed) + len(of_model):
            size = len(needed) + len(of_model)
            for statement in candidates:
                if bound[statement] & needed or names_in(statement) & self.model:
                    of_model.add(statement)
                    needed |= names_in(statement) & own
        makers = [s for s in candidates if s in of_model and self._makes(s, needed)]
        return needed, makers

    def _makes(self, statement: cst.BaseStatement, needed: set[str]) -> bool:
        """Whether a statement may make a part of the model."""
        found = bool(names_in(statement) & self.model)
        for call in calls_in(statement):
            found = self._call_makes(call, needed) or found
        return found

    def _call_makes(self, call: cst.Call, needed: set[str]) -> bool:
        function = self.project.function(self.file, call.func)
        if function is not None:
            made = reach(self.project, *function)
            self.region.update(made)
            return any(word in file.code(node) for node, file in made.items() for word in WORDS)
        name = self.file.imports.tensorflow(call.func)
        if name is not None:
            return not name.startswith(_NO_PART)
        resolved = self.file.imports.resolve(call.func)
        if resolved is not None and resolved.partition(".")[0] not in OTHERS:
            self.unknown = True
            return True
        root = call.func
        while isinstance(root, cst.Attribute):
            root = root.value
        local = [node for n, node in bindings(self.scope) if isinstance(root, cst.Name) and n == root.value]
        for node in local:
            if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
                self.region.update(reach(self.project, self.file, node))
        return bool(local) and isinstance(root, cst.Name) and resolved is None

    def _check(self, needed: set[str], makers: Sequence[cst.BaseStatement]) -> None:
        """Refuses parts of the model that are made where no scope reaches them. Raises Blocked (TFM727)."""
        given = [node for name, node in bindings(self.scope) if name in self.model and isinstance(node, cst.Param)]
        if given:
            raise Blocked("TFM727", given[0], self._message("the model is an argument of the function"))
        path = path_to(self.scope, self.program.place.call)
        if any(isinstance(node, (cst.For, cst.While)) for node in path):
            raise Blocked("TFM727", self.program.place.call, self._message("the Estimator is created in a loop"))
        for name, node in bindings(self.scope):
            if name in self.model and isinstance(node, cst.Name) and not any(path_to(s, node) for s in makers):
                if self.file.position(node) < self.file.position(self.program.place.call):
                    raise Blocked("TFM727", node, self._message("this is not a statement before the Estimator"))
        inside = set(makers)
        nodes: list[tuple[cst.CSTNode, ParsedFile]] = [*((s, self.file) for s in makers), *self.region.items()]
        for node, file in nodes:
            local = {name for name, _ in bindings(node)} if node not in inside else set()
            for name in names_in(node) - local - file.imports.names.keys():
                if file is self.file and (self.scope is file.module and name in needed):
                    continue
                if self.scope is not file.module and node in inside and name in needed:
                    continue
                for value in values_of_module(file, name):
                    if any((file.imports.tensorflow(c.func) or "").startswith(VARIABLES) for c in calls_in(value)):
                        raise Blocked("TFM727", value, self._message(f"`{name}` is created outside that function"))

    def _is_within_own(self, statement: cst.BaseStatement) -> bool:
        """Whether a statement is `with strategy.scope():` of the program's own strategy."""
        if self.own_scope is None or not isinstance(statement, cst.With) or len(statement.items) != 1:
            return False
        item = statement.items[0].item
        return isinstance(item, cst.Call) and self.file.code(item.func) == f"{self.own_scope}.scope"


def values_of_module(file: ParsedFile, name: str) -> list[cst.BaseExpression]:
    """What statements of the module, functions left out, give to a name."""
    if not any(bound == name and isinstance(node, cst.Name) for bound, node in bindings(file.module)):
        return []
    return [value for s in file.module.body if not isinstance(s, _STAY) for value in values_given(s, name)]


def compile_calls(scoped: Scoped) -> list[tuple[ParsedFile, cst.CSTNode, cst.Call]]:
    """The calls that compile the model, each with its file and the statement or function around it."""
    found: list[tuple[ParsedFile, cst.CSTNode, cst.Call]] = []
    seen: set[cst.Call] = set()
    for node, file in scoped.region.items():
        for call in calls_in(node):
            func = call.func
            if isinstance(func, cst.Attribute) and func.attr.value == "compile" and call not in seen:
                if file.imports.resolve(func) is None:
                    seen.add(call)
                    found.append((file, node, call))
    return found


def _argument(call: cst.Call, name: str, at: int) -> cst.BaseExpression | None:
    for index, arg in enumerate(call.args):
        if arg.star or (arg.keyword.value == name if arg.keyword is not None else index == at):
            return arg.value
    return None


def check_optimizers(program: TrainingProgram, scoped: Scoped) -> None:
    """Refuses optimizers that replicas of an Estimator used in another way than Keras' do. Raises Blocked (TFM731)."""
    message = (
        "replicas of an Estimator divided the gradients of such an optimizer twice, or clipped "
        "their own: compile with one of `tf.keras.optimizers` without clipping, or migrate "
        "for `--strategy one-device`"
    )
    for node, file in scoped.region.items():
        if _CHANGED.search(bare(file.code(node))):
            raise Blocked("TFM731", node if file is program.file else program.place.call, message)
    for file, node, call in compile_calls(scoped):
        given = _argument(call, "optimizer", 0)
        scope = program.scope if node in {s for run in scoped.runs for s in run} else node
        if given is not None and not _all_are(file, (scope, file.module), given, _is_plain_optimizer):
            raise Blocked("TFM731", given if file is program.file else program.place.call, message)


def is_mean(program: TrainingProgram, scoped: Scoped) -> bool:
    """Whether losses and metrics are surely means over the examples of a batch, which replicas may divide."""
    if scoped.unknown:
        return False
    calls = compile_calls(scoped)
    for file, node, call in calls:
        scope = program.scope if node in {s for run in scoped.runs for s in run} else node
        for name, at in (("loss", 1), ("metrics", 2), ("weighted_metrics", 5)):
            given = _argument(call, name, at)
            if given is not None and not _all_are(file, (scope, file.module), given, _is_of_examples):
                return False
    text = "".join(bare(file.code(node)) for node, file in scoped.region.items())
    return bool(calls) and "add_loss(" not in text and "add_metric(" not in text


def _all_are(
    file: ParsedFile, scopes: Sequence[cst.CSTNode], node: cst.BaseExpression, test: object, deep: int = 4
) -> bool:
    """Whether all that an expression may stand for passes a test; lists and dicts are what they hold."""
    if is_none(node):
        return True
    if isinstance(node, (cst.List, cst.Tuple, cst.Dict)):
        return all(_all_are(file, scopes, element.value, test, deep) for element in node.elements)
    if isinstance(node, cst.IfExp):
        return all(_all_are(file, scopes, one, test, deep) for one in (node.body, node.orelse))
    if isinstance(node, cst.Name) and file.imports.resolve(node) is None and deep:
        for scope in scopes:
            bound = [n for name, n in bindings(scope) if name == node.value]
            values = values_given(scope, node.value)
            if bound:
                plain = len(bound) == len(values) and all(isinstance(n, cst.Name) for n in bound)
                return plain and all(_all_are(file, scopes, value, test, deep - 1) for value in values)
        function = file.functions.get(node.value)
        return False if function is None else test(file, node)  # type: ignore[operator]
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value in file.functions and deep:
        function = file.functions[node.func.value]
        returned = [found.value for found in returns_in(function.body)]
        return bool(returned) and all(
            one is not None and _all_are(file, (function, file.module), one, test, deep - 1) for one in returned
        )
    return bool(test(file, node))  # type: ignore[operator]


def _is_plain_optimizer(file: ParsedFile, node: cst.BaseExpression) -> bool:
    if string(node) is not None:
        return True
    name = (file.imports.tensorflow(node.func) or "") if isinstance(node, cst.Call) else ""
    if not isinstance(node, cst.Call) or not name.startswith(_OPTIMIZERS) or not name.rpartition(".")[2][0].isupper():
        return False
    names = [arg.keyword.value if arg.keyword is not None else arg.star for arg in node.args]
    return not any(name in ("*", "**") or "clip" in name for name in names)


def _is_of_examples(file: ParsedFile, node: cst.BaseExpression) -> bool:
    if string(node) is not None:
        return True
    called = node.func if isinstance(node, cst.Call) else node
    if not (file.imports.tensorflow(called) or "").startswith(_LOSSES):
        return False
    args = node.args if isinstance(node, cst.Call) else ()
    return not any(arg.star or (arg.keyword is not None and arg.keyword.value == "reduction") for arg in args)
