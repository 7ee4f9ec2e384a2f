"""What people write around Estimators that says nothing, and is left out before anything else looks at the file.

`model = model.train(...)` gives a name what it has, since `train` returns the Estimator itself; a RunConfig that no
Estimator is given, and a `config.replace(...)` whose result nobody takes, never did anything. `del params` says that a
model_fn or input_fn does not use what an Estimator gives it; the new program gives it less. The default graph and the
cache of writers were never an Estimator's: it makes a graph of its own for everything that it does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import libcst as cst

from migrator.findings import Finding, Severity
from migrator.names.bare import bare
from migrator.program.calls import calls_in, functions_in
from migrator.program.liveness import is_read_behind
from migrator.program.made_optimizers import WRAPPERS
from migrator.program.parsed import ParsedFile, name_nodes
from migrator.program.scopes import bindings
from migrator.program.spread import Edit, Written
from migrator.program.telling import is_look
from migrator.rules.optimizers import is_optimizer
from migrator.walking import of_kinds, walk

_CHAINED = re.compile(r"\b(\w+)\s*=\s*\1\s*\.\s*train\s*\(")
_RUN_CONFIGS = ("tf.estimator.RunConfig", "tf.contrib.tpu.RunConfig", "tf.estimator.tpu.RunConfig")
_DELETED = re.compile(r"^\s*del[\s(]", re.MULTILINE)
_GIVEN = {"features", "labels", "mode", "params", "config"}
_MADE = ("Estimator", "Classifier", "Regressor")
_PARTS = (*_MADE, "TrainSpec", "EvalSpec", "RunConfig")
#: Calls that change nothing for an Estimator.
_NOT_ITS_OWN = ("tf.reset_default_graph", "tf.summary.FileWriterCache.clear")
_RESET = re.compile(r"\b(reset_default_graph|FileWriterCache\s*\.\s*clear)\s*\(")
_SESSIONS = ("tf.Session", "tf.InteractiveSession")
_SESSION = re.compile(r"\b(Interactive)?Session\s*\(")
_ESTIMATORS = re.compile(r"(?s)(Estimator|Classifier|Regressor)\s*\(.*(Estimator|Classifier|Regressor)\s*\(")
_OPTIMIZER = re.compile(r"=[^=\n]*Optimizer\s*\(")


def says_nothing(text: str) -> bool:
    """Whether a text may hold such a line."""
    text = bare(text)
    return (
        "RunConfig" in text
        or _ESTIMATORS.search(text) is not None
        or any(one.search(text) for one in (_CHAINED, _DELETED, _RESET, _SESSION, _OPTIMIZER))
    )


def without_what_says_nothing(file: ParsedFile) -> tuple[list[Edit], list[Finding]]:
    """The edits that take such lines out, and what is to be said about them."""
    edits: list[Edit] = []
    said: list[Finding] = []
    if not says_nothing(file.text):
        return edits, said
    gone: list[tuple[cst.Module | cst.IndentedBlock, cst.SimpleStatementLine]] = []
    scopes: list[cst.Module | cst.FunctionDef] = [file.module, *functions_in(file.module)]
    names = [file.imports.tensorflow(call.func) or "" for call in calls_in(file.module)]
    makes = any(n.endswith(_MADE) for n in names)
    used = sum(n.endswith(_MADE) for n in names) > 1
    idle = _idle_session(file) if makes else None
    only_estimators = makes and sum(n.endswith("Session") for n in names) == (idle is not None)
    for scope in scopes:
        for block, line in _lines(scope):
            small = line.body[0]
            if isinstance(small, cst.Assign) and _is_chained(file, scope, small):
                edits.append(Edit(file.range(line)[0], file.range(small.value)[0], ()))
            elif isinstance(scope, cst.FunctionDef) and _is_idle_config(file, scope, small):
                gone.append((block, line))
                message = "this RunConfig is unused, and is dropped"
                said.append(file.finding("TFM124", Severity.REVIEW, small, message))
            elif isinstance(scope, cst.FunctionDef) and _is_idle_optimizer(file, scope, small):
                gone.append((block, line))
                message = "this optimizer is unused, and is dropped"
                said.append(file.finding("TFM124", Severity.REVIEW, small, message))
            elif isinstance(scope, cst.FunctionDef) and used and _is_idle_estimator(file, scope, line):
                gone.append((block, line))
                message = "this Estimator is unused, and is dropped"
                said.append(file.finding("TFM124", Severity.REVIEW, small, message))
            elif only_estimators and _is_beside(file, small):
                gone.append((block, line))
                message = "this never affected the Estimator, which creates its own graphs, and is dropped"
                said.append(file.finding("TFM124", Severity.REVIEW, small, message))
            elif small is idle:
                gone.append((block, line))
                message = (
                    f"nothing runs in this session, and an Estimator creates its own: it is dropped{gpus_of(file)}"
                )
                said.append(file.finding("TFM124", Severity.REVIEW, small, message))
            elif _is_deletion(file, scope, small):
                gone.append((block, line))
            elif _is_idle_replace(file, scope, small):
                gone.append((block, line))
                message = "`replace` returns a new RunConfig, which is unused: the setting never had an effect"
                said.append(file.finding("TFM124", Severity.REVIEW, small, message))
    for block, line in gone:
        first = next(one for other, one in gone if other is block)
        empty = sum(other is block for other, _ in gone) == len(block.body)
        edits.append(removal(file, line, keeps_block=empty and line is first))
    return edits, said


def gpus_of(file: ParsedFile) -> str:
    """What to say where a session of the file may set how much memory of a GPU the process takes.

    The first session of a process settles that for all of them, an Estimator's included (TensorFlow 1's devices).
    """
    if not any(word in file.bare for word in ("allow_growth", "per_process_gpu_memory_fraction")):
        return ""
    return "; if it set GPU memory growth, write `tf.config.experimental.set_memory_growth`"


class _Lines(cst.CSTVisitor):
    """The lines of one statement of a scope, with the blocks that they stand in."""

    def __init__(self, scope: cst.CSTNode) -> None:
        super().__init__()
        self.scope = scope
        self.found: list[tuple[cst.Module | cst.IndentedBlock, cst.SimpleStatementLine]] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return node is self.scope

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        return False

    def visit_Module(self, node: cst.Module) -> None:
        self._take(node)

    def visit_IndentedBlock(self, node: cst.IndentedBlock) -> None:
        self._take(node)

    def _take(self, block: cst.Module | cst.IndentedBlock) -> None:
        for line in block.body:
            if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
                self.found.append((block, line))


def _lines(scope: cst.CSTNode) -> Iterator[tuple[cst.Module | cst.IndentedBlock, cst.SimpleStatementLine]]:
    finder = _Lines(scope)
    walk(scope, finder)
    yield from finder.found


def _made(file: ParsedFile, scope: cst.CSTNode, name: str, endings: Sequence[str]) -> bool:
    """Whether some line of a scope gives a name the result of a call of TensorFlow's Estimators."""
    for _, line in _lines(scope):
        small = line.body[0]
        if isinstance(small, cst.Assign) and isinstance(small.value, cst.Call):
            symbol = file.imports.tensorflow(small.value.func) or ""
            if symbol.endswith(tuple(endings)) and any(
                isinstance(t.target, cst.Name) and t.target.value == name for t in small.targets
            ):
                return True
    return False


def _is_chained(file: ParsedFile, scope: cst.CSTNode, small: cst.Assign) -> bool:
    """`model = model.train(...)` of a name that an Estimator was given in the same scope."""
    target, value = small.targets[0].target, small.value
    if len(small.targets) != 1 or not isinstance(target, cst.Name) or not isinstance(value, cst.Call):
        return False
    func = value.func
    if not isinstance(func, cst.Attribute) or func.attr.value != "train" or not isinstance(func.value, cst.Name):
        return False
    return func.value.value == target.value and _made(file, scope, target.value, _MADE)


def _is_config(file: ParsedFile, node: cst.BaseExpression) -> bool:
    """`RunConfig(...)`, with any number of `.replace(...)`."""
    while isinstance(node, cst.Call):
        if file.imports.resolve(node.func) in _RUN_CONFIGS:
            return True
        if not isinstance(node.func, cst.Attribute) or node.func.attr.value != "replace":
            return False
        node = node.func.value
    return False


def _only_settings(file: ParsedFile, node: cst.CSTNode) -> bool:
    """Whether all calls in an expression make (parts of) a RunConfig."""
    for call in calls_in(node):
        symbol = file.imports.tensorflow(call.func) or ""
        replaces = isinstance(call.func, cst.Attribute) and call.func.attr.value == "replace"
        if not (symbol in _RUN_CONFIGS or symbol.endswith(("ConfigProto", "Options")) or replaces):
            return False
    return True


def _is_idle_config(file: ParsedFile, scope: cst.FunctionDef, small: cst.BaseSmallStatement) -> bool:
    """A RunConfig that is given a name which nothing reads."""
    if not isinstance(small, cst.Assign) or len(small.targets) != 1 or not _is_config(file, small.value):
        return False
    target = small.targets[0].target
    return (
        isinstance(target, cst.Name)
        and len([n for n in name_nodes(scope) if n.value == target.value]) == 1
        and _only_settings(file, small.value)
    )


def _is_idle_optimizer(file: ParsedFile, scope: cst.FunctionDef, small: cst.BaseSmallStatement) -> bool:
    """An optimizer whose name only lines read that make another one of it: `opt = clip_gradients_by_norm(opt)`."""
    name = _name_of_optimizer(file, small)
    if name is None:
        return False
    lines = [line.body[0] for _, line in _lines(scope) if _name_of_optimizer(file, line.body[0]) == name]
    inside = [node for line in lines for node in name_nodes(line) if node.value == name]
    return len(inside) == len([node for node in name_nodes(scope) if node.value == name])


def _name_of_optimizer(file: ParsedFile, small: cst.BaseSmallStatement) -> str | None:
    """The name that a line gives an optimizer, where it calls nothing else."""
    if not isinstance(small, cst.Assign) or len(small.targets) != 1 or not isinstance(small.value, cst.Call):
        return None
    symbols = [file.imports.resolve(call.func) or "" for call in calls_in(small.value)]
    target = small.targets[0].target
    own = all(symbol in WRAPPERS or is_optimizer(symbol) for symbol in symbols)
    return target.value if own and isinstance(target, cst.Name) else None


def _is_idle_estimator(file: ParsedFile, scope: cst.FunctionDef, line: cst.SimpleStatementLine) -> bool:
    """An Estimator that is given a name which nothing reads before it is another's, made of what has no effect."""
    small = line.body[0]
    if not isinstance(small, cst.Assign) or len(small.targets) != 1 or not isinstance(small.value, cst.Call):
        return False
    target, made = small.targets[0].target, small.value
    if not isinstance(target, cst.Name) or not (file.imports.tensorflow(made.func) or "").endswith(_MADE):
        return False
    calls = [call for arg in made.args for call in calls_in(arg)]
    plain = all(file.imports.tensorflow(call.func) is not None or is_look(file, call.func) for call in calls)
    declared = of_kinds(scope, cst.Global, cst.Nonlocal)
    shared = any(item.name.value == target.value for one in declared for item in one.names)
    return plain and not shared and not is_read_behind(file, scope, line, target.value)


def _is_beside(file: ParsedFile, small: cst.BaseSmallStatement) -> bool:
    """Whether a line does something to the default graph, or to writers, that Estimators do not share."""
    call = small.value if isinstance(small, cst.Expr) else None
    return isinstance(call, cst.Call) and not call.args and file.imports.tensorflow(call.func) in _NOT_ITS_OWN


def _idle_session(file: ParsedFile) -> cst.BaseSmallStatement | None:
    """The line that makes the only session of a file, in which nothing is run: nobody reads its name or asks for it."""
    made = [c for c in calls_in(file.module) if (file.imports.tensorflow(c.func) or "").endswith("Session")]
    if len(made) != 1 or file.imports.tensorflow(made[0].func) not in _SESSIONS:
        return None
    small = file.parents.get(made[0])
    target = small.targets[0].target if isinstance(small, cst.Assign) and len(small.targets) == 1 else None
    named = isinstance(small, cst.Assign) and isinstance(target, cst.Name)
    if not isinstance(small, (cst.Assign, cst.Expr)) or (isinstance(small, cst.Assign) and not named):
        return None
    name = target.value if isinstance(target, cst.Name) else None
    if sum(node.value == name for node in name_nodes(file.module)) > 1 or not _only_settings_inside(file, made[0]):
        return None
    for call in calls_in(file.module):
        # A tensor and an operation run in the session of `InteractiveSession` without a mention of it.
        method = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
        of_tensor = method in ("eval", "run") and file.imports.resolve(call.func) is None
        if of_tensor or (file.imports.tensorflow(call.func) or "").endswith(("get_default_session", "get_session")):
            return None
    return small


def _only_settings_inside(file: ParsedFile, call: cst.Call) -> bool:
    """Whether all calls in the arguments of a call make settings."""
    return all(_only_settings(file, arg.value) for arg in call.args)


def _is_deletion(file: ParsedFile, scope: cst.Module | cst.FunctionDef, small: cst.BaseSmallStatement) -> bool:
    """`del params, config` of what an Estimator gives a function, or of an Estimator; nothing reads them after it."""
    if not isinstance(small, cst.Del):
        return False
    target = small.target
    targets = [e.value for e in target.elements] if isinstance(target, (cst.Tuple, cst.List)) else [target]
    deleted = {one.value for one in targets if isinstance(one, cst.Name)}
    params = (*scope.params.params, *scope.params.kwonly_params) if isinstance(scope, cst.FunctionDef) else ()
    given = deleted <= {p.name.value for p in params} & _GIVEN
    if len(deleted) != len(targets) or not (given or any(_made(file, scope, one, _PARTS) for one in deleted)):
        return False
    names = list(name_nodes(scope))
    last = max(index for index, node in enumerate(names) if any(node is one for one in targets))
    return not any(node.value in deleted for node in names[last + 1 :])


def _is_idle_replace(file: ParsedFile, scope: cst.CSTNode, small: cst.BaseSmallStatement) -> bool:
    """`config.replace(...)` of a RunConfig, as a line."""
    if not isinstance(small, cst.Expr) or not isinstance(small.value, cst.Call):
        return False
    func = small.value.func
    if not isinstance(func, cst.Attribute) or func.attr.value != "replace" or not isinstance(func.value, cst.Name):
        return False
    name = func.value.value
    bound = [node for known, node in bindings(scope) if known == name]
    return bool(bound) and _made(file, scope, name, ("RunConfig",)) and _only_settings(file, small.value)


def removal(file: ParsedFile, line: cst.SimpleStatementLine, keeps_block: bool) -> Edit:
    """A line without what it holds; `pass` in its place where its block would be empty."""
    start, end = file.range(line.body[0])
    if keeps_block:
        return Edit(start, end, (Written("pass", start),))
    text = file.text
    start = text.rfind("\n", 0, start) + 1
    end = text.find("\n", end) + 1 or len(text)
    return Edit(start, end, ())
