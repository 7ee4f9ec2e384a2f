"""What a program reads of its RunConfig beside the Estimator: the task of this process, and what it was given itself.

`print(config.task_type)`, `if config.is_chief:`, `os.path.join(config.model_dir, ...)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

from migrator.names.imports import dotted
from migrator.program.calls import number, string
from migrator.program.parsed import Blocked, ParsedFile, names_in
from migrator.program.scopes import bindings, path_to, rebound
from migrator.walking import walk

#: What a RunConfig read from TF_CONFIG that a task of a Keras program can be told as well, see setup.cluster_task.
TASK = ("is_chief", "task_type", "task_id", "num_ps_replicas", "num_worker_replicas", "cluster_spec")
#: Those of them that a condition may ask for: they are the same in both programs.
_ASKED = ("is_chief", "task_type", "num_ps_replicas")
_GIVEN = (
    *("model_dir", "tf_random_seed", "save_summary_steps", "save_checkpoints_steps", "save_checkpoints_secs"),
    *("keep_checkpoint_max", "keep_checkpoint_every_n_hours", "log_step_count_steps"),
)
_SESSIONS = ("master", "evaluation_master", "global_id_in_cluster", "session_config", "device_fn", "protocol")
_TELLING = ("print", "info", "warning", "warn", "error", "debug", "log")
_DRIVES = ("train", "evaluate", "predict", "export_savedmodel", "export_saved_model", "train_and_evaluate")


@dataclass
class ConfigReads:
    """The reads of one RunConfig: the `line` that makes it, the properties of its `task` that are read, and the places
    that read what it was given, with that.
    """

    name: str = ""
    line: cst.SimpleStatementLine | None = None
    task: set[str] = field(default_factory=set)
    given: dict[cst.CSTNode, cst.BaseExpression] = field(default_factory=dict)


def read_of(
    file: ParsedFile,
    scope: cst.CSTNode,
    node: cst.Name,
    line: cst.SimpleStatementLine,
    given: dict[str, cst.BaseExpression],
    reads: ConfigReads,
) -> None:
    """Notes one read of a RunConfig that a `line` of the scope makes. Raises Blocked (TFM108) for what would change."""
    path = path_to(scope, node)
    attribute = path[-2] if len(path) > 1 else None
    if not isinstance(attribute, cst.Attribute) or attribute.value is not node:
        raise Blocked("TFM108", node, f"`{node.value}` is used for more than the Estimator")
    key = attribute.attr.value
    what = f"`{node.value}.{key}`"
    if any(isinstance(one, cst.FunctionDef | cst.Lambda | cst.ClassDef) for one in path[1:]):
        message = f"{what} is read in a function, which may run in another process than the RunConfig's: read it beside"
        raise Blocked("TFM108", node, message)
    if file.position(node) < file.position(line):
        raise Blocked("TFM108", node, f"{what} is read before the line that makes it")
    if key in _GIVEN and key in given:
        value = given[key]
        if not _is_plain(value):
            raise Blocked("TFM108", node, f"{what} is read, and computed in the RunConfig: give it a name before")
        changed = rebound(file, scope, value, line, node)
        if changed is not None:
            raise Blocked("TFM108", node, f"{what} is read, and `{changed[0]}` has changed since: read that before")
        reads.given[attribute] = value
        return
    if key in _SESSIONS:
        message = f"{what} is read, which sessions were given, and there are none any more: take the line out"
        raise Blocked("TFM108", node, message)
    if key not in TASK:
        raise Blocked("TFM108", node, f"{what} is read, which the RunConfig is not given here: write its value instead")
    if "train_distribute" in given or "experimental_distribute" in given:
        message = f"{what} is read, and with a strategy it says nothing of TF_CONFIG: read that instead"
        raise Blocked("TFM108", node, message)
    if not _is_told(path) and not (key in _ASKED and _is_asked(path, _estimators(file, scope))):
        message = (
            f"{what} decides more than what is printed: on parameter servers the chief does not train, and one process "
            "makes the data of all; read TF_CONFIG where the number is needed"
        )
        raise Blocked("TFM108", node, message)
    reads.name, reads.line = node.value, line
    reads.task.add(key)


def _is_plain(node: cst.BaseExpression) -> bool:
    return dotted(node) is not None or string(node) is not None or number(node) is not None


def _is_told(path: Sequence[cst.CSTNode]) -> bool:
    """Whether a read stands in a line that only prints or logs."""
    line = next((n for n in reversed(path) if isinstance(n, cst.SimpleStatementLine)), None)
    small = line.body[0] if line is not None and len(line.body) == 1 else None
    if not isinstance(small, cst.Expr) or not isinstance(small.value, cst.Call):
        return False
    func = small.value.func
    if isinstance(func, cst.Attribute):
        return func.attr.value in _TELLING[1:] and "log" in (dotted(func.value) or "").lower()
    return isinstance(func, cst.Name) and func.value == "print"


def _estimators(file: ParsedFile, scope: cst.CSTNode) -> set[str]:
    """The names of Estimators in a scope."""
    found = set()
    for name, node in bindings(scope):
        way = path_to(scope, node)
        assign = way[-3] if len(way) > 2 else None
        value = assign.value if isinstance(assign, cst.Assign) else None
        made = file.imports.resolve(value.func) if isinstance(value, cst.Call) else None
        if made is not None and made.endswith(("Estimator", "Classifier", "Regressor")):
            found.add(name)
    return found


def _is_asked(path: Sequence[cst.CSTNode], estimators: set[str]) -> bool:
    """Whether a read stands in the test of an `if` that neither binds names nor has to do with the Estimator."""
    for index, node in enumerate(path):
        if isinstance(node, cst.If) and path[index + 1] is node.test:
            acts = _Acts()
            walk(node, acts)
            return not acts.found and not names_in(node) & estimators
    return False


class _Acts(cst.CSTVisitor):
    """What a branch does that the rest of the program sees, or that needs every process."""

    def __init__(self) -> None:
        super().__init__()
        self.found = False

    def on_visit(self, node: cst.CSTNode) -> bool:
        acts = (
            *(cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.NamedExpr, cst.For, cst.Del, cst.Return, cst.Raise),
            *(cst.FunctionDef, cst.ClassDef, cst.Import, cst.ImportFrom, cst.Break, cst.Continue, cst.Lambda),
        )
        self.found = self.found or isinstance(node, acts)
        return super().on_visit(node)

    def visit_Call(self, node: cst.Call) -> None:
        name = (dotted(node.func) or "").rpartition(".")[2]
        self.found = self.found or name in _DRIVES or name in ("exit", "_exit", "quit", "abort")
