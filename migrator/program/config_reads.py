"""What a program reads of its RunConfig beside the Estimator: the task of this process, and what it was given itself.

`print(config.task_type)`, `if config.is_chief:`, `os.path.join(config.model_dir, ...)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

from migrator.names.bindings import read_bindings
from migrator.names.imports import dotted
from migrator.pairing import pairwise
from migrator.program.calls import is_none, number, string
from migrator.program.parsed import Blocked, ParsedFile, name_nodes, names_in
from migrator.program.scopes import bindings, path_to, rebound
from migrator.program.telling import called, tells
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
#: Calls without an effect.
_PLAIN = (
    *("str", "repr", "format", "len", "int", "float", "bool", "type", "isinstance"),
    *("os.getcwd", "os.getpid", "os.getenv", "os.environ.get", "os.listdir", "time.time", "time.strftime"),
    *("socket.gethostname", "json.dumps", "datetime.datetime.now", "tf.gfile.Exists", "tf.io.gfile.exists"),
    *("tf.gfile.IsDirectory", "tf.io.gfile.isdir", "tf.gfile.ListDirectory", "tf.io.gfile.listdir"),
    *("tf.gfile.Glob", "tf.io.gfile.glob"),
)
#: Calls that change nothing but files, folders and what is logged.
_OF_FILES = (
    *("os.makedirs", "os.mkdir", "os.remove", "os.unlink", "os.rmdir", "os.rename", "open", "json.dump"),
    *("shutil.rmtree", "shutil.copy", "shutil.copyfile", "shutil.copytree", "shutil.move"),
    *("tf.logging.set_verbosity", "absl.logging.set_verbosity"),
)
_FILES = ("open", "tf.gfile.Open", "tf.gfile.GFile", "tf.gfile.FastGFile", "tf.io.gfile.GFile")
_OF_FILE = ("write", "writelines", "flush", "close")
_OF_CLUSTER = ("as_dict", "num_tasks", "job_tasks", "task_indices", "task_address")


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
        raise Blocked(
            "TFM108",
            node,
            f"the RunConfig `{node.value}` is not used by the Estimator alone: create a separate one for it",
        )
    key = attribute.attr.value
    what = f"`{node.value}.{key}`"
    if any(isinstance(one, (cst.FunctionDef, cst.Lambda, cst.ClassDef)) for one in path[1:]):
        message = f"{what} is read in a function, which may run in another process: read it next to the RunConfig"
        raise Blocked("TFM108", node, message)
    if file.position(node) < file.position(line):
        raise Blocked("TFM108", node, f"{what} is read before the line that sets it")
    if key in _GIVEN and key in given and not is_none(given[key]):
        _check_given(file, scope, path, what, given[key], line)
        reads.given[attribute] = given[key]
        return
    if key in _SESSIONS:
        message = f"{what} is read, and it only configures sessions, which are gone: delete the line"
        raise Blocked("TFM108", node, message)
    if key not in TASK:
        raise Blocked("TFM108", node, f"{what} is read, but this RunConfig does not set it: use its value instead")
    if "train_distribute" in given or "experimental_distribute" in given:
        message = f"{what} is read, but under a strategy it does not reflect TF_CONFIG: read TF_CONFIG instead"
        raise Blocked("TFM108", node, message)
    acts = _Acts(file, node.value)
    if not _is_told(path, acts) and not (key in _ASKED and _is_asked(scope, path, _estimators(file, scope), acts)):
        message = (
            f"{what} controls more than printing: on parameter servers the chief does not train, "
            "and one process makes the data of all; read TF_CONFIG where the number is needed"
        )
        if acts.found is not None:
            message += f" (`{file.code(acts.found).strip().splitlines()[0]}` may affect other code)"
        raise Blocked("TFM108", node, message)
    reads.name, reads.line = node.value, line
    reads.task.add(key)


def _check_given(
    file: ParsedFile,
    scope: cst.CSTNode,
    path: Sequence[cst.CSTNode],
    what: str,
    value: cst.BaseExpression,
    line: cst.SimpleStatementLine,
) -> None:
    """Raises Blocked (TFM108) unless a value that the RunConfig was given may be written where it is read."""
    node = path[-1]
    if not _is_plain(value):
        raise Blocked("TFM108", node, f"{what} is read, and the RunConfig computes it: assign it to a name first")
    changed = rebound(file, scope, value, line, node)
    if changed is not None:
        raise Blocked("TFM108", node, f"{what} is read, and `{changed[0]}` has changed since: read it before that")
    if dotted(value) is not None:
        # What stands in a call of the Estimator may be written further down than it is read.
        names = names_in(value) - file.imports.names.keys()
        later = next((b for b in bindings(scope) if b[0] in names and file.position(b[1]) > file.position(line)), None)
        hidden = {b.name for b in read_bindings(file.module) if isinstance(b.node, cst.NameItem)}
        for above in path:
            if isinstance(above, cst.BaseComp):
                hidden |= {b.name for b in read_bindings(above)}
        if later is not None or names & hidden:
            name = later[0] if later is not None else min(names & hidden)
            raise Blocked("TFM108", node, f"{what} is read, and `{name}` changes elsewhere: read it before that")
    for above, below in pairwise(path):
        if isinstance(above, cst.FormattedStringExpression) and (above.equal is not None or string(value) is not None):
            raise Blocked("TFM108", node, f"{what} is read inside an f-string: assign its value to a name first")
        target = below is getattr(above, "target", None)
        if isinstance(above, (cst.AssignTarget, cst.Del)) or target:
            raise Blocked("TFM108", node, f"{what} is read in an assignment target: assign its value to a name first")


def written(file: ParsedFile, place: cst.CSTNode, value: cst.BaseExpression) -> cst.BaseExpression:
    """A value as it is written in place of the read of a RunConfig, in parentheses where it would stick to others."""
    assert isinstance(place, cst.Attribute)
    around = file.parents.get(place)
    sticks = isinstance(around, (cst.Attribute, cst.Subscript, cst.Call, cst.UnaryOperation, cst.BinaryOperation))
    sign = isinstance(value, cst.UnaryOperation)
    if isinstance(around, (cst.BinaryOperation, cst.UnaryOperation)) and not sign:
        sticks = False  # `2 * 60`
    if dotted(value) is not None or not (place.lpar or (sticks and string(value) is None)):
        return value
    return value if value.lpar else value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _is_plain(node: cst.BaseExpression) -> bool:
    return dotted(node) is not None or string(node) is not None or number(node) is not None


def _is_told(path: Sequence[cst.CSTNode], acts: _Acts) -> bool:
    """Whether a read stands in a line that only prints or logs."""
    line = next((n for n in reversed(path) if isinstance(n, cst.SimpleStatementLine)), None)
    small = line.body[0] if line is not None and len(line.body) == 1 else None
    call = small.value if isinstance(small, cst.Expr) else None
    if not isinstance(call, cst.Call) or not tells(acts.file, call.func):
        return False
    for arg in call.args:
        walk(arg, acts)
    return acts.found is None


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


def _is_asked(scope: cst.CSTNode, path: Sequence[cst.CSTNode], estimators: set[str], acts: _Acts) -> bool:
    """Whether a read stands in the test of an `if` that neither changes things nor has to do with the Estimator."""
    for index, node in enumerate(path):
        if isinstance(node, cst.If) and path[index + 1] is node.test:
            walk(node.test, acts)
            acts.in_branch = True
            for part in (node.body, node.orelse):
                if part is not None:
                    walk(part, acts)
            # `with open(...) as file` gives a value to a name, which nothing else may read
            inside = {id(name) for name in name_nodes(node)}
            if any(name.value in acts.given and id(name) not in inside for name in name_nodes(scope)):
                return False
            return acts.found is None and not names_in(node) & estimators
    return False


class _Acts(cst.CSTVisitor):
    """What may have an effect that the rest of the program sees, or that needs every process: the first is `found`.

    Only calls that are known are taken for harmless; `in_branch` those that change files, too. `given` are names that
    `with` gives to files, `config` is the name of the RunConfig.
    """

    def __init__(self, file: ParsedFile, config: str) -> None:
        super().__init__()
        self.file = file
        self.config = config
        self.in_branch = False
        self.found: cst.CSTNode | None = None
        self.given: set[str] = set()
        self.files: set[str] = set()

    def on_visit(self, node: cst.CSTNode) -> bool:
        acts = (
            *(cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.NamedExpr, cst.For, cst.While, cst.Del, cst.Return),
            *(cst.Raise, cst.Assert, cst.FunctionDef, cst.ClassDef, cst.Import, cst.ImportFrom, cst.Break, cst.Lambda),
            *(cst.Continue, cst.CompFor, cst.Await, cst.Yield, cst.Global, cst.Nonlocal, cst.Match),
        )
        if isinstance(node, acts):
            self.found = self.found or node
        return super().on_visit(node)

    def visit_Call(self, node: cst.Call) -> None:
        if not self._is_harmless(node.func):
            self.found = self.found or node

    def visit_WithItem(self, node: cst.WithItem) -> None:
        if not isinstance(node.item, cst.Call) or called(self.file, node.item.func) not in _FILES:
            self.found = self.found or node.item
        elif node.asname is not None and isinstance(node.asname.name, cst.Name):
            self.files.add(node.asname.name.value)

    def visit_AsName(self, node: cst.AsName) -> None:
        if isinstance(node.name, cst.Name):
            self.given.add(node.name.value)
        else:
            self.found = self.found or node.name

    def _is_harmless(self, func: cst.BaseExpression) -> bool:
        name = called(self.file, func) or ""
        if name in _PLAIN or name.startswith("os.path."):
            return True
        told = dotted(func) or ""
        if told.startswith(f"{self.config}.task_type.") or told in [
            f"{self.config}.cluster_spec.{method}" for method in _OF_CLUSTER
        ]:
            return True
        if isinstance(func, cst.Attribute):
            strings = (cst.SimpleString, cst.FormattedString, cst.ConcatenatedString)
            if isinstance(func.value, strings):
                return True
        if not self.in_branch:
            return False
        if name in _OF_FILES or name.startswith(("tf.gfile.", "tf.io.gfile.")) or tells(self.file, func):
            return True
        if not isinstance(func, cst.Attribute) or func.attr.value not in _OF_FILE:
            return False
        held = func.value
        if isinstance(held, cst.Call):
            return called(self.file, held.func) in _FILES
        return isinstance(held, cst.Name) and held.value in self.files
