"""The ConfigProto of a RunConfig: the lines that make it, and what they say in TensorFlow 2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

from migrator.names.imports import SWITCHES
from migrator.program.calls import calls_in, is_docstring
from migrator.program.parsed import Blocked, ParsedFile, Project, name_nodes, names_in
from migrator.program.scopes import path_to, returns_in
from migrator.rules.session_config import CONFIG, PARTS, Setting, settings
from migrator.walking import walk

_LEFT_OUT = "is dropped: configure devices and threads with `tf.config` if needed"


@dataclass
class Session:
    """What becomes of a ConfigProto.

    `lines` are statements that made it, with what stands in their place (nothing: they go); `first` are statements
    that the program starts with, `gone` functions of which nothing is left, `names` the names of the messages.
    """

    lines: dict[cst.BaseStatement, list[Setting]] = field(default_factory=dict)
    first: list[Setting] = field(default_factory=list)
    gone: list[cst.FunctionDef] = field(default_factory=list)
    remarks: list[Blocked] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    @property
    def kept(self) -> set[str]:
        """The names that are taken care of: those of messages, and those that the new statements read."""
        made = [*self.first, *(one for several in self.lines.values() for one in several)]
        return self.names.union(*(names_in(one.value) for one in made if one.value is not None))


def read_session(
    project: Project, file: ParsedFile, scope: cst.CSTNode, place: cst.Call, node: cst.BaseExpression
) -> Session | None:
    """Reads the `session_config` of a RunConfig; None when not all of it, or of what is done with it, is understood.

    `place` is the call of the Estimator, in `scope`.
    """
    session = _Reader(file).read(scope, node)
    if session is None:
        return None
    late = [line for line, made in session.lines.items() if made]
    order = _Order(project)
    if any(order.may_have_started(file, line) for line in late):
        return None
    if session.first and order.may_have_started(file, place):
        return None
    if late or session.first:
        message = "session settings are now `tf.config` calls: no operation may run before them"
        session.remarks.append(Blocked("TFM170", node, message))
    return session


class _Reader:
    def __init__(self, file: ParsedFile) -> None:
        self.file = file
        self.session = Session()
        self.given = _given_configs(file)
        self.parts: list[cst.Name] = []  # arguments that are the names of parts

    def read(self, scope: cst.CSTNode, node: cst.BaseExpression) -> Session | None:
        if isinstance(node, cst.Name):
            at_top = scope is not self.file.module and self._name(self.file.module, node.value, CONFIG, "")
            return self.session if at_top or self._name(scope, node.value, CONFIG, "") else None
        if not isinstance(node, cst.Call):
            return None
        if self.file.imports.tensorflow(node.func) == CONFIG:
            made = self._call(scope, node, "")
            if made is None:
                return None
            self.session.first += made
            return self.session
        return self._helper(node)

    def _helper(self, node: cst.Call) -> Session | None:
        """A function of the file that returns a ConfigProto, and that nothing else calls."""
        function = self.file.functions.get(node.func.value) if isinstance(node.func, cst.Name) else None
        if function is None or function.decorators or not isinstance(function.body, cst.IndentedBlock):
            return None
        calls = [given.func for given in self.given if isinstance(given, cst.Call)]
        mentions = [n for n in name_nodes(self.file.module) if n.value == function.name.value]
        if any(n is not function.name and not any(n is call for call in calls) for n in mentions):
            return None
        returned = returns_in(function.body)
        last = function.body.body[-1]
        if len(returned) != 1 or not isinstance(last, cst.SimpleStatementLine) or last.body[0] is not returned[0]:
            return None
        value = returned[0].value
        made: list[Setting] | None = []
        if isinstance(value, cst.Name):
            made = [] if self._name(function, value.value, CONFIG, "", value) else None
        elif isinstance(value, cst.Call) and self.file.imports.tensorflow(value.func) == CONFIG:
            made = self._call(function, value, "")
        else:
            return None
        if made is None:
            return None
        self.session.lines[last] = made
        if all(self.session.lines.get(s) == [] or is_docstring(s) for s in function.body.body):
            self.session.gone.append(function)
            self.session.lines.clear()
        else:
            self.session.first.append(Setting("{value}", node))
        return self.session

    def _name(self, scope: cst.CSTNode, name: str, kind: str, prefix: str, end: cst.CSTNode | None = None) -> bool:
        """Reads the lines that give a name its value, and its fields theirs; False when there is more to it.

        `prefix` is the field that a part (GPUOptions) is given to, `end` the return of the name.
        """
        lines = _Lines(name)
        walk(scope, lines)
        explained = {id(node) for node in (*self.given, *self.parts, end)}
        if not lines.made:
            return False
        found: dict[cst.BaseStatement, list[Setting] | None] = {}
        for line, target, value in lines.made:
            if not isinstance(value, cst.Call) or self.file.imports.tensorflow(value.func) != kind:
                return False
            found[line] = self._call(scope, value, prefix)
            explained.add(id(target))
        for line, path, root, value in lines.fields:
            found[line] = self._value(scope, f"{prefix}{path}", value)
            explained.add(id(root))
        if any(n.value == name and id(n) not in explained for n in name_nodes(scope)):
            return False
        for statement, made in found.items():
            if made is None:
                return False
            self.session.lines[statement] = made
        self.session.names.add(name)
        return True

    def _call(self, scope: cst.CSTNode, call: cst.Call, prefix: str) -> list[Setting] | None:
        made: list[Setting] = []
        for arg in call.args:
            if arg.keyword is None or arg.star:
                return None
            part = self._value(scope, f"{prefix}{arg.keyword.value}", arg.value)
            if part is None:
                return None
            made += part
        return made

    def _value(self, scope: cst.CSTNode, path: str, value: cst.BaseExpression) -> list[Setting] | None:
        """What a field given a value becomes; a field without a counterpart is a remark."""
        kind = next((k for k, part in PARTS.items() if path == part or path.endswith(f".{part}")), None)
        if kind is not None:
            if isinstance(value, cst.Call) and self.file.imports.tensorflow(value.func) == kind:
                return self._call(scope, value, f"{path}.")
            if isinstance(value, cst.Name):
                self.parts.append(value)
                return [] if self._name(scope, value.value, kind, f"{path}.") else None
            return None
        answer = settings(path, value, self.file.imports.resolve)
        if answer is None:
            if not calls_in(value):
                self.session.remarks.append(Blocked("TFM140", value, f"the session's `{path}` {_LEFT_OUT}"))
                return []
            return None
        return answer


class _Lines(cst.CSTVisitor):
    """The lines `name = value` and `name.field.field = value` of a scope."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.made: list[tuple[cst.SimpleStatementLine, cst.Name, cst.BaseExpression]] = []
        self.fields: list[tuple[cst.SimpleStatementLine, str, cst.Name, cst.BaseExpression]] = []

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        small = node.body[0]
        if len(node.body) != 1 or not isinstance(small, cst.Assign) or len(small.targets) != 1:
            return
        target: cst.BaseExpression = small.targets[0].target
        if isinstance(target, cst.Name) and target.value == self.name:
            self.made.append((node, target, small.value))
            return
        path: list[str] = []
        while isinstance(target, cst.Attribute):
            path.insert(0, target.attr.value)
            target = target.value
        if path and isinstance(target, cst.Name) and target.value == self.name:
            self.fields.append((node, ".".join(path), target, small.value))


def _given_configs(file: ParsedFile) -> list[cst.BaseExpression]:
    """The `session_config` arguments of a file. All of them go, or the file's programs stay as they were."""
    args = [arg for call in calls_in(file.module) for arg in call.args]
    return [arg.value for arg in args if arg.keyword is not None and arg.keyword.value == "session_config"]


# -- whether TensorFlow may have started ---------------------------------------------------------------------------

# Measured on TensorFlow 2.21: none of these initialises the devices.
_QUIET = (
    *("tf.app.", "tf.flags.", "tf.logging.", "tf.gfile.", "tf.io.gfile.", "tf.feature_column.", "tf.estimator."),
    *("tf.contrib.training.HParams", "tf.contrib.tpu.", "tf.train.latest_checkpoint", "tf.set_random_seed"),
    *("tf.random.set_random_seed", "tf.random.set_seed", "tf.config.", "tf.debugging.set_log", CONFIG, *PARTS),
    # The strategy of a RunConfig is made where the Estimator was.
    *("tf.distribute.", "tf.contrib.distribute."),
    *("tf.compat.as_", "tf.test.is_built_with", "tf.summary.", "tf.train.LoggingTensorHook", "tf.DType", "tf.dtypes."),
)
_DRIVES = ("train", "evaluate", "predict", "train_and_evaluate", "fit", "export_savedmodel", "export_saved_model")
_ON_TENSORFLOW = ("tensorflow_hub", "tensorflow_datasets", "keras", "tensorflow_text", "horovod")


class _Order:
    """Looks for operations that may run before a node of a file."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.known: dict[int, bool] = {}

    def may_have_started(self, file: ParsedFile, node: cst.CSTNode, depth: int = 0) -> bool:
        """Whether an operation may run before `node` does: above it, or before the function around it is called."""
        path = path_to(file.module, node)
        scopes = [n for n in path if isinstance(n, (cst.FunctionDef, cst.ClassDef, cst.Lambda))]
        loops = any(isinstance(n, (cst.For, cst.While)) for n in path)
        if depth > 6 or loops or len(scopes) > 1:
            return True
        if not scopes:
            return self._before(file, file.module, node) or self._imported(file)
        function = scopes[0]
        if not isinstance(function, cst.FunctionDef) or self._before(file, function.body, node):
            return True
        callers = [n for n in self._callers(file, function) if not path_to(function, n)]
        return not callers or any(self.may_have_started(file, caller, depth + 1) for caller in callers)

    def _callers(self, file: ParsedFile, function: cst.FunctionDef) -> list[cst.CSTNode]:
        """Where a function is mentioned; nothing when that is in another file, too."""
        name = function.name.value
        for other in self.project.files:
            found = self.project.function(other, cst.Name(name)) if other is not file else None
            if found is not None and found[1] is function:
                return []
        callers: list[cst.CSTNode] = [n for n in name_nodes(file.module) if n.value == name and n is not function.name]
        if name == "main":
            callers += [c for c in calls_in(file.module) if not c.args and self._is_run(file, c)]
        return callers

    def _is_run(self, file: ParsedFile, call: cst.Call) -> bool:
        return file.imports.resolve(call.func) in ("tf.app.run", "absl.app.run")

    def _imported(self, file: ParsedFile) -> bool:
        """Whether modules of the project that a file imports run operations when they are imported."""
        seen = {file.path}
        queue = [file]
        while queue:
            one = queue.pop()
            for origin in one.imports.names.values():
                parts = origin.split(".")
                for length in range(len(parts), 0, -1):
                    other = self.project.sibling(one, ".".join(parts[:length]))
                    if other is None:
                        continue
                    if other.path not in seen:
                        seen.add(other.path)
                        queue.append(other)
                        if self._before(other, other.module, None):
                            return True
                    break
        return False

    def _before(self, file: ParsedFile, block: cst.CSTNode, node: cst.CSTNode | None) -> bool:
        return any(self._starts(file, call) for call in _Above(block, node).calls)

    def _starts(self, file: ParsedFile, call: cst.Call) -> bool:
        name = file.imports.tensorflow(call.func)
        if name is not None:
            return name not in SWITCHES and not name.startswith(_QUIET)
        resolved = file.imports.resolve(call.func)
        if resolved is not None and resolved.startswith(_ON_TENSORFLOW):
            return True
        found = self.project.function(file, call.func)
        if found is not None:
            return self._runs(*found)
        if isinstance(call.func, cst.Attribute):
            return call.func.attr.value in _DRIVES or self._method(call.func.attr.value)
        if isinstance(call.func, cst.Name):
            return self._method(call.func.value)
        return True

    def _runs(self, file: ParsedFile, function: cst.CSTNode) -> bool:
        """Whether a function of the project, or one that it calls, runs an operation."""
        key = id(function)
        if key not in self.known:
            self.known[key] = False  # of a recursion: what the rest says
            body = function.body if isinstance(function, (cst.FunctionDef, cst.ClassDef)) else function
            self.known[key] = any(self._starts(file, call) for call in calls_in(body))
        return self.known[key]

    def _method(self, name: str) -> bool:
        """Whether a method (or a class) of that name runs an operation, in whichever class of the project it is."""
        for file in self.project.files:
            for statement in file.module.body:
                if not isinstance(statement, cst.ClassDef):
                    continue
                if statement.name.value == name:
                    if self._runs(file, statement):
                        return True
                for inner in statement.body.body:
                    if isinstance(inner, cst.FunctionDef) and inner.name.value == name and self._runs(file, inner):
                        return True
        return False


class _Above(cst.CSTVisitor):
    """The calls that run in a block before a node: all of them, in functions and classes inside left out.

    Without a node, those of the whole block. What stands under `if __name__ == "__main__":` runs last.
    """

    def __init__(self, block: cst.CSTNode, node: cst.CSTNode | None) -> None:
        super().__init__()
        self.node = node
        self.done = False
        self.calls: list[cst.Call] = []
        self.around: Sequence[cst.CSTNode] = path_to(block, node) if node is not None else ()
        walk(block, self)

    def on_visit(self, node: cst.CSTNode) -> bool:
        if node is self.node:
            self.done = True
        if self.done:
            return False
        return super().on_visit(node)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return any(node is other for other in self.around)

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        return any(node is other for other in self.around)

    def visit_Lambda(self, node: cst.Lambda) -> bool:
        return any(node is other for other in self.around)

    def visit_If(self, node: cst.If) -> bool:
        if self.node is None and isinstance(node.test, cst.Comparison):
            left = node.test.left
            return not (isinstance(left, cst.Name) and left.value == "__name__")
        return True

    def visit_Call(self, node: cst.Call) -> None:
        if not any(node is other for other in self.around):
            self.calls.append(node)
