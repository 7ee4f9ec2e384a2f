"""Where functions of a program read which task of a cluster their process is: TF_CONFIG, flags, what is made of them.

`ds.shard(n, json.loads(os.environ["TF_CONFIG"])["task"]["index"])`, `shuffle(seed=FLAGS.task_index)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import IntEnum
from functools import lru_cache

import libcst as cst

from migrator.names.imports import dotted
from migrator.program.calls import string
from migrator.program.parsed import ParsedFile, Project
from migrator.program.scopes import bindings
from migrator.walking import of_kinds, walk

#: Attributes of flags, of resolvers and of RunConfigs that say which task this is.
TASK = (
    *("task_index", "task_id", "worker_index", "worker_id", "worker_rank", "global_id_in_cluster"),
    "is_chief",
)
#: What stands in a file that may read the task itself.
WORDS = ("TF_CONFIG", "RANK", "PROCID", "TASK_", "WORKER_", *TASK)
#: Environment variables of launchers that do.
_RANK = re.compile(r"(^|_)(RANK|PROCID|(TASK|WORKER)_(ID|INDEX))$")
#: Calls whose arguments have no effect but on their result.
_PURE = (
    *("str", "repr", "format", "len", "int", "float", "bool", "min", "max", "sum", "sorted", "isinstance", "range"),
    *("json.loads", "json.dumps", "os.path.join", "os.environ.get", "os.getenv", "dict", "list", "tuple", "getattr"),
)
_PURE_METHODS = ("format", "get", "join", "split", "strip", "lower", "replace", "startswith", "endswith", "zfill")
_TELLING = ("info", "warning", "warn", "error", "debug", "log", "vlog")
#: What a strategy or Keras does in another way, whatever it was told.
_LEFT_OUT = ("tf.device", "tf.train.replica_device_setter", "tf.logging.", "tf.summary.", "absl.logging.", "logging.")
#: The scope of attributes and keys.
_ANYWHERE = 0
#: Tasks that read no training data: to ask for them says nothing of the workers.
_IDLE = ("ps", "evaluator")


class Says(IntEnum):
    """What an expression says: nothing of this task, all of TF_CONFIG (the same cluster for all), or which task."""

    NOTHING = 0
    CONFIG = 1
    TASK = 2


class TaskReads:
    """What the names of a project's files say of the task. A name is looked up in the function that binds it."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.names: dict[tuple[int, str], Says] = {}
        givers = [(file, giver) for file in project.files if _may_say(file.text) for giver in _givers(file)]
        # Functions of other files may be given it, or return it.
        givers += [(f, g) for f in project.files if givers and not _may_say(f.text) for g in _givers(f)]
        changed = bool(givers)
        while changed:
            before = dict(self.names)
            for file, giver in givers:
                self._give(file, giver)
            changed = before != self.names

    def told(self, file: ParsedFile, node: cst.CSTNode) -> cst.CSTNode | None:
        """The first place below a node that does something with the task that may change data or a model."""
        finder = _Uses(self, file)
        walk(node, finder)
        return finder.found

    def says(self, file: ParsedFile, node: cst.CSTNode) -> Says:
        """What an expression says."""
        if isinstance(node, cst.Name):
            return self._name(file, node)
        if isinstance(node, cst.SimpleString):
            return Says.CONFIG if string(node) == "TF_CONFIG" else Says.NOTHING
        if isinstance(node, cst.Attribute):
            kept = self.names.get((_ANYWHERE, f".{node.attr.value}"), Says.NOTHING)
            return Says.TASK if node.attr.value in TASK else max(kept, self.says(file, node.value))
        if isinstance(node, cst.Subscript) and len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
            return self._entry(file, node.value, node.slice[0].slice.value)
        if isinstance(node, cst.Call):
            return self._call(file, node)
        if isinstance(node, cst.Comparison) and len(node.comparisons) == 1 and _asks_idle(node):
            return Says.NOTHING
        if isinstance(node, cst.IfExp):
            test = self.says(file, node.test)
            found = [self.says(file, node.body), self.says(file, node.orelse)]
            return max([*found, test if test is Says.TASK else Says.NOTHING])
        if isinstance(node, cst.Arg):
            return self.says(file, node.value)
        return max((self.says(file, child) for child in node.children), default=Says.NOTHING)

    def _entry(self, file: ParsedFile, of: cst.BaseExpression, key: cst.BaseExpression) -> Says:
        """What `of[key]` says: of TF_CONFIG the task only, the cluster is the same for all."""
        name, said = string(key), self.says(file, of)
        if name is not None and (_RANK.search(name) or self.names.get((_ANYWHERE, f"[{name}]")) is Says.TASK):
            return Says.TASK
        if name is None or said is not Says.CONFIG:
            return max(said, self.says(file, key))
        return Says.TASK if name in ("task", "index", "type") else Says.NOTHING

    def _call(self, file: ParsedFile, node: cst.Call) -> Says:
        func = node.func
        if isinstance(func, cst.Attribute) and func.attr.value == "get" and node.args:
            return max(
                [self._entry(file, func.value, node.args[0].value), *(self.says(file, a) for a in node.args[1:])]
            )
        if (dotted(func) or "") == "os.getenv" and node.args:
            return self._entry(file, func, node.args[0].value)
        if self.is_telling(file, func):
            return Says.NOTHING
        called = self.project.function(file, func) if isinstance(func, (cst.Name, cst.Attribute)) else None
        if called is not None:
            return self._of(called[0], called[0].module, called[1].name.value)
        return max([self.says(file, func), *(self.says(file, arg) for arg in node.args)])

    def is_telling(self, file: ParsedFile, func: cst.BaseExpression) -> bool:
        """Whether a call of `func` only tells something, or does what no new program does."""
        name = file.imports.resolve(func) or dotted(func) or ""
        if name == "print" or name.startswith(_LEFT_OUT):
            return True
        return isinstance(func, cst.Attribute) and func.attr.value in _TELLING and "log" in (dotted(func.value) or "")

    # -- names -----------------------------------------------------------------------------------------------------

    def _name(self, file: ParsedFile, node: cst.Name) -> Says:
        called = self.project.function(file, node)
        if called is not None:
            return self._of(called[0], called[0].module, called[1].name.value)
        said = self._of(file, _scope_of(file, node), node.value)
        if said is Says.NOTHING:
            module, _, name = (file.imports.resolve(node) or "").rpartition(".")
            other = self.project.sibling(file, module) if module else None
            if other is not None:
                return self._of(other, other.module, name)
        return said

    def _of(self, file: ParsedFile, scope: cst.CSTNode, name: str) -> Says:
        return self.names.get((id(scope), name), Says.NOTHING)

    def _give(self, file: ParsedFile, giver: _Giver) -> None:
        if isinstance(giver.value, cst.Call):
            self._give_arguments(file, giver.value)
        if giver.name is None:
            return
        said = self.says(file, giver.value)
        if any(self.says(file, test) is Says.TASK for test in giver.tests):
            said = Says.TASK
        key = _ANYWHERE if giver.scope is None else id(giver.scope), giver.name
        self.names[key] = max(said, self.names.get(key, Says.NOTHING))

    def _give_arguments(self, file: ParsedFile, call: cst.Call) -> None:
        """What a function of the project is given."""
        called = self.project.function(file, call.func) if isinstance(call.func, (cst.Name, cst.Attribute)) else None
        if called is None:
            return
        function = called[1]
        names = [p.name.value for p in (*function.params.params, *function.params.kwonly_params)]
        for index, arg in enumerate(call.args):
            said = self.says(file, arg.value)
            if said is Says.NOTHING:
                continue
            given = names if arg.star else names[index : index + 1] if arg.keyword is None else [arg.keyword.value]
            for name in given:
                key = id(function), name
                self.names[key] = max(said, self.names.get(key, Says.NOTHING))


class _Giver:
    """A value that a name of a scope is given, under some tests; or a call (no name), for its arguments.

    What attributes and keys are given (`.name`, `[name]`) has no scope.
    """

    def __init__(
        self, scope: cst.CSTNode | None, name: str | None, value: cst.CSTNode, tests: Iterable[cst.CSTNode] = ()
    ) -> None:
        self.scope, self.name, self.value, self.tests = scope, name, value, tuple(tests)


def _may_say(text: str) -> bool:
    return any(word in text for word in WORDS)


def _givers(file: ParsedFile) -> list[_Giver]:
    finder = _Givers(file)
    walk(file.module, finder)
    return finder.found


class _Givers(cst.CSTVisitor):
    """Everything that gives names of a file values: assignments, loops, `return`s, calls."""

    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self.found: list[_Giver] = []
        self._scopes: list[cst.FunctionDef] = []
        self._tests: list[tuple[cst.CSTNode | None, cst.BaseExpression]] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._scopes.append(node)

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        self._scopes.pop()

    def visit_If(self, node: cst.If) -> None:
        self._tests.append((self._scope, node.test))

    def leave_If(self, original_node: cst.If) -> None:
        self._tests.pop()

    @property
    def _scope(self) -> cst.FunctionDef | None:
        return self._scopes[-1] if self._scopes else None

    @property
    def _asked(self) -> list[cst.BaseExpression]:
        """The tests of the function that is visited, around what is visited."""
        return [test for scope, test in self._tests if scope is self._scope]

    def _add(self, target: cst.BaseExpression, value: cst.BaseExpression) -> None:
        if isinstance(target, cst.Name):
            scope = _scope_of(self.file, target)
            self.found.append(_Giver(scope, target.value, value, self._asked))
        elif isinstance(target, cst.Attribute):
            self.found.append(_Giver(None, f".{target.attr.value}", value, self._asked))
        elif isinstance(target, cst.Subscript):
            index = target.slice[0].slice
            name = string(index.value) if isinstance(index, cst.Index) else None
            if name is not None and name != "TF_CONFIG":  # of which the cluster is the same for all
                self.found.append(_Giver(None, f"[{name}]", value, self._asked))
        elif isinstance(target, (cst.Tuple, cst.List)):
            same = isinstance(value, (cst.Tuple, cst.List)) and len(value.elements) == len(target.elements)
            for number, element in enumerate(target.elements):
                self._add(element.value, value.elements[number].value if same else value)  # type: ignore[attr-defined]

    def visit_Assign(self, node: cst.Assign) -> None:
        for target in node.targets:
            self._add(target.target, node.value)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        if node.value is not None:
            self._add(node.target, node.value)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self._add(node.target, node.value)

    def visit_NamedExpr(self, node: cst.NamedExpr) -> None:
        self._add(node.target, node.value)

    def visit_For(self, node: cst.For) -> None:
        self._add(node.target, node.iter)

    def visit_CompFor(self, node: cst.CompFor) -> None:
        self._add(node.target, node.iter)

    def visit_Return(self, node: cst.Return) -> None:
        if node.value is not None and self._scopes:
            function = self._scopes[-1]
            outer = _scope_of(self.file, function.name)
            self.found.append(_Giver(outer, function.name.value, node.value, self._asked))

    def visit_Call(self, node: cst.Call) -> None:
        self.found.append(_Giver(self.file.module, None, node))


def _scope_of(file: ParsedFile, node: cst.Name) -> cst.CSTNode:
    """The innermost function around a name that gives it a value, or else the module."""
    parents: Mapping[cst.CSTNode, cst.CSTNode] = file.parents
    above = parents.get(node)
    if isinstance(above, cst.FunctionDef) and above.name is node:
        above = parents.get(above)  # the name of a function is bound around it
    while above is not None:
        if isinstance(above, cst.FunctionDef) and node.value in _own_names(above):
            return above
        above = parents.get(above)
    return file.module


@lru_cache(maxsize=4096)
def _own_names(function: cst.FunctionDef) -> frozenset[str]:
    """The names that a function gives values to, but for those of the module."""
    declared = {item.name.value for node in of_kinds(function, cst.Global) for item in node.names}
    changed = (name for name, bound in bindings(function) if not isinstance(bound, (cst.Attribute, cst.Subscript)))
    return frozenset(set(changed) - declared)


def _asks_idle(node: cst.Comparison) -> bool:
    """Whether a comparison asks for a task that reads no training data, or whether TF_CONFIG is there."""
    with_what = node.comparisons[0]
    if isinstance(with_what.operator, (cst.In, cst.NotIn)) and string(node.left) == "TF_CONFIG":
        return True
    other = with_what.comparator
    values = [e.value for e in other.elements] if isinstance(other, (cst.Tuple, cst.List, cst.Set)) else [other]
    return bool(values) and all(string(value) in _IDLE for value in values)


class _Uses(cst.CSTVisitor):
    """The first use of the task: an argument of a call that does more than compute, or a condition."""

    def __init__(self, reads: TaskReads, file: ParsedFile) -> None:
        super().__init__()
        self.reads = reads
        self.file = file
        self.found: cst.CSTNode | None = None

    def _asks(self, test: cst.BaseExpression) -> None:
        if self.found is None and self.reads.says(self.file, test) is Says.TASK:
            self.found = test

    def visit_Call(self, node: cst.Call) -> bool:
        if self.reads.is_telling(self.file, node.func):
            return False
        func = node.func
        name = self.file.imports.resolve(func) or dotted(func) or ""
        pure = name in _PURE or (isinstance(func, cst.Attribute) and func.attr.value in _PURE_METHODS)
        own = isinstance(func, (cst.Name, cst.Attribute)) and self.reads.project.function(self.file, func) is not None
        if self.found is None and not pure and not own:
            if any(self.reads.says(self.file, arg.value) is Says.TASK for arg in node.args):
                self.found = node
        return self.found is None

    def visit_If(self, node: cst.If) -> None:
        if not _only(self, node):
            self._asks(node.test)

    def visit_IfExp(self, node: cst.IfExp) -> None:
        self._asks(node.test)

    def visit_While(self, node: cst.While) -> None:
        self._asks(node.test)

    def visit_CompIf(self, node: cst.CompIf) -> None:
        self._asks(node.test)


def _only(uses: _Uses, node: cst.If) -> bool:
    """Whether the branches of an `if` only print and log."""
    blocks = [node.body, node.orelse.body if isinstance(node.orelse, cst.Else) else None]
    if isinstance(node.orelse, cst.If) and not _only(uses, node.orelse):
        return False
    for block in blocks:
        for line in block.body if block is not None else ():
            small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
            if isinstance(small, cst.Pass):
                continue
            if not isinstance(small, cst.Expr) or not isinstance(small.value, cst.Call):
                return False
            if not uses.reads.is_telling(uses.file, small.value.func):
                return False
    return True
