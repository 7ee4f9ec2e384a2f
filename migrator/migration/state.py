"""What the steps of the migration of programs that share files have in common."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import libcst as cst

from migrator.emit.driver.draft import FileNames
from migrator.emit.file import FileChanges, FileRewriter, Within
from migrator.emit.model_function import EmittedModel
from migrator.migration.everything import Everything, References
from migrator.program.exports import Form, Signatures
from migrator.program.flow import InFile
from migrator.program.helpers import HelperPlan
from migrator.program.inlining import Inlined
from migrator.program.own_weights import OwnWeights
from migrator.program.parsed import Blocked, ParsedFile, Project
from migrator.program.ready_scopes import Scoped
from migrator.program.refusals import Refusals
from migrator.program.training import TrainingProgram, path_to
from migrator.rules import hparams
from migrator.rules.generation import Keras
from migrator.rules.hooks import Hooks
from migrator.rules.optimizers import may_be_sparse
from migrator.rules.site import TrainingContext
from migrator.targets.choosing import divides_batches
from migrator.targets.clusters import ONE_EVALUATOR, Clusters
from migrator.targets.plan import Loop, Target
from migrator.targets.registry import TPU
from migrator.walking import OF_LINES


@dataclass
class Group:
    """Programs that share files: they are migrated together or not at all."""

    programs: list[TrainingProgram] = field(default_factory=list)
    files: dict[Path, ParsedFile] = field(default_factory=dict)


class Rewriter(FileRewriter):
    """A FileRewriter that also puts statements before others.

    `in_both` says that a program which stays TensorFlow 1 reads the file, too.
    """

    def prepare(self, module: cst.Module, changes: FileChanges) -> Rewriter:
        """Begins with a file; see FileRewriter."""
        super().prepare(module, changes)
        self.before: dict[cst.CSTNode, list[cst.BaseStatement]] = {}
        self.in_both = False
        self.network: Collection[cst.CSTNode] = ()  # functions that build networks
        return self

    def is_gone(self, node: cst.CSTNode) -> bool:
        """Whether nothing will stand in a statement's place."""
        return self.changes.statements.get(node) == [] or node in self.changes.moved or self._is_removed(node)

    def on_leave(self, original_node, updated_node):  # type: ignore[no-untyped-def]
        """Puts the statements of `before` before a statement, below the empty lines that stand there."""
        new = super().on_leave(original_node, updated_node)  # type: ignore[no-untyped-call]
        if not OF_LINES[type(original_node)]:
            return new
        if original_node in self.network and isinstance(new, cst.FunctionDef):
            if original_node not in self.changes.statements:
                new = self.of_network(new, original_node.name)
        within = self.changes.within.get(original_node)
        if within is not None:
            new = self._within(within, original_node, new)
        new = self._behind(original_node, new)
        if within is not None and original_node is within.statements[-1]:
            if any(statement is self.changes.helpers_before for statement in within.statements):
                new = self.with_helpers(new)
        elif original_node is self.changes.helpers_before and within is None and self.puts_before(original_node):
            new = self.with_helpers(new)
        return new

    def puts_before(self, node: cst.CSTNode | None) -> bool:
        """Whether there are statements of `before`."""
        return node in self.before

    def _within(self, within: Within, node: cst.CSTNode, new):  # type: ignore[no-untyped-def]
        """Holds a statement back until the last of those that get a line around them, where all of them stand."""
        if not isinstance(new, cst.RemovalSentinel):
            within.held += list(new) if isinstance(new, cst.FlattenSentinel) else [new]
        if node is not within.statements[-1] or not within.held:
            return cst.RemoveFromParent()
        held: list[Any] = list(within.held)
        within.held.clear()
        lines = held[0].leading_lines
        held[0] = held[0].with_changes(leading_lines=())
        text = f"{within.line}\n{self.module.default_indent}pass\n"
        made = cst.parse_module(text, config=self.module.config_for_parsing).body[0]
        assert isinstance(made, cst.With)
        return made.with_changes(leading_lines=lines, body=made.body.with_changes(body=held))

    def _behind(self, original_node: cst.CSTNode, new):  # type: ignore[no-untyped-def]
        """A statement, behind those of `before`."""
        if original_node not in self.before:
            return new
        first, *rest = self.before[original_node]
        if isinstance(new, cst.RemovalSentinel):  # what comes before a line stays where the line goes
            return cst.FlattenSentinel([first, *rest])
        after = list(new) if isinstance(new, cst.FlattenSentinel) else [new]
        above: list[cst.EmptyLine] = []
        if isinstance(after[0], (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            lines = list(after[0].leading_lines)
            while lines and lines[0].comment is None:
                above.append(lines.pop(0))
            after[0] = after[0].with_changes(leading_lines=lines)
        assert isinstance(first, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
        first = first.with_changes(leading_lines=[*above, *first.leading_lines])
        return cst.FlattenSentinel([first, *rest, *after])


@dataclass(frozen=True)
class Request:
    """What is asked for a project: the target, the generation of Keras and the loop, beside what was read of it.

    `blocked_files` are the files of programs that cannot be read, each with the file that holds the Estimator, and
    `references` where model_fns are mentioned otherwise than as that of an Estimator. `for_both` are the files that
    programs which stay TensorFlow 1 read, too. `clusters` is what is asked of programs that run on them. `flowing`
    reads a program as one whose driver stays; there is none where that is refused.
    """

    project: Project
    everything: Everything
    references: References
    blocked_files: Mapping[Path, Path]
    keras: Keras
    asked: Target
    loop: Loop
    for_both: frozenset[Path] = frozenset()
    clusters: Clusters = ONE_EVALUATOR
    flowing: Callable[[TrainingProgram], list[TrainingProgram]] = lambda program: []


class GroupState:
    """What the steps of a group's migration share: its files, what changes in them, what stands in the way."""

    def __init__(self, group: Group, request: Request) -> None:
        self.group = group
        self.project = request.project
        self.asked = request.asked
        self.blocked_files = request.blocked_files
        self.references = request.references
        self.everything = everything = request.everything
        self.keras = keras = request.keras
        self.loop = request.loop
        self.clusters = request.clusters
        self.outside: dict[Path, ParsedFile] = {}
        self.names = {path: FileNames(set(file.names)) for path, file in group.files.items()}
        self.regularized: dict[cst.FunctionDef, bool] = {}
        self.sharing_penalties: set[cst.FunctionDef] = set()  # whose regularizers weigh a share under their strategy
        self.updating: dict[cst.FunctionDef, bool] = {}  # whether a step runs UPDATE_OPS
        self.read: dict[cst.FunctionDef, Inlined] = {}
        # Functions that are read with model_fns, as those of the metrics of a TPUEstimatorSpec, with these model_fns.
        self.inlined: dict[cst.FunctionDef, tuple[ParsedFile, list[cst.FunctionDef]]] = {}
        self.plan = HelperPlan()
        self.partitioners: list[tuple[ParsedFile, cst.CSTNode, cst.BaseExpression]] = []
        self.split_by_scopes: dict[
            cst.FunctionDef, str
        ] = {}  # model_fns, and the name of the partitioner of their scopes
        self.changes = {path: FileChanges() for path in group.files}
        self.rewriters = {
            path: Rewriter(file.imports, file.code, definition=file.constants.get).prepare(
                file.module, self.changes[path]
            )
            for path, file in group.files.items()
        }
        self.problems: dict[Path, list[Blocked]] = {path: [] for path in group.files}
        self.remarks: dict[Path, list[Blocked]] = {path: [*everything.remarks.get(path, [])] for path in group.files}
        self.setters: set[cst.CSTNode] = set()  # lines that give a hook which is left out an iterator to initialize
        self.for_both: set[cst.FunctionDef] = set()  # input functions that TensorFlow 1 code uses, too
        self.gone_hooks: list[cst.CSTNode] = []  # the lines that made hooks which only initialized iterators
        self.used_in_both: dict[Path, cst.FunctionDef | cst.ClassDef] = {}  # that code uses which stays TensorFlow 1
        self.serving_files: dict[Path, Collection[str]] = {}  # symbols of functions that nothing but exports run
        self.only_exported: dict[Path, Collection[str]] = {}  # those, where these are exports of this group
        self.strategies: list[Target] = []
        self.draws = False  # whether functions of the network have layers that draw random numbers, on a mesh
        self.drivers: list[TrainingProgram] = []
        self.models: dict[cst.FunctionDef, tuple[EmittedModel, bool]] = {}  # and whether one predicts dicts
        self.stuck_before_drivers = False  # whether something stood in the way before drivers were written
        self.by_drivers = False  # whether nothing but the drivers of the programs stands in the way
        self.scoped: dict[cst.Call, Scoped] = {}  # what makes the models that are there already, by their Estimators
        self.driven: dict[cst.Call, tuple[bool, bool, bool, Signatures | None]] = {}
        self.signatures: dict[cst.FunctionDef, Signatures] = {}
        self.layer_names: dict[cst.CSTNode, str] = {}  # of layers that share theirs, for all files
        self.own_weights = OwnWeights()
        self.served: dict[cst.CSTNode, list[Form]] = {}  # serving functions, see exports.joined
        self.hparams = hparams.uses(list(group.files.values()))
        sparse = any(may_be_sparse(file.text) for file in group.files.values())
        on_tpu = self.asked is TPU or any(program.tpu is not None for program in group.programs)
        self.training = {
            path: TrainingContext(
                sparse=sparse,
                fused=self.asked.fuses and not (sparse and on_tpu),
                taken={name for name in file.names if file.imports.resolve(cst.Name(name)) != hparams.NAME},
                keras=keras,
                exports=any(program.servings for program in group.programs),
                layer_names=self.layer_names,
                own=self.own_weights,
                hparams=self.hparams.methods,
                by_name=any(program.asks_for_weights for program in group.programs),
                divided=self.loop.own and any(divides_batches(program, self.asked) for program in group.programs),
            )
            for path, file in group.files.items()
        }
        for path, rewriter in self.rewriters.items():
            rewriter.training = self.training[path]
            rewriter.of_keras_models = all(program.model.ready for program in group.programs)
        for path in request.for_both & group.files.keys():
            self.rewriters[path].in_both = True
        for program in group.programs:
            # Also where the driver is not written, because the model is blocked: these lines are in nobody's way.
            gone = [*program.removed, *program.session.lines]
            self.changes[program.file.path].statements.update({line: [] for line in gone})

    def guarded(self, file: ParsedFile, step: Callable[[], None]) -> None:
        """Takes a step; what stands in its way is a problem of the file."""
        refusals = Refusals()
        refusals.of(step, None)
        self.refuse(file, refusals)

    def refuse(self, file: ParsedFile, refusals: Refusals) -> None:
        """Notes what stands in the way in a file, or in that which a refusal names."""
        for problem in refusals.found:
            if isinstance(problem, InFile):
                self.problems.setdefault(problem.file.path, []).append(problem)
                if problem.file.path not in self.group.files:
                    self.outside[problem.file.path] = problem.file
            else:
                self.problems[file.path].append(problem)

    def write_for_both(self, path: Path, unit: cst.FunctionDef | cst.ClassDef) -> None:
        """Notes that code which stays TensorFlow 1 uses a function or class of a file."""
        self.used_in_both[path] = unit
        self.rewriters[path].in_both = True

    def all_hooks(self) -> list[tuple[str, Hooks]]:
        """The hooks of all programs, by the phase that they are given to."""
        return [found for program in self.group.programs for found in program.hooks]


def is_within(node: cst.CSTNode, places: Iterable[cst.CSTNode]) -> bool:
    """Whether a node is one of some places, or in one."""
    return any(path_to(place, node) for place in places)
