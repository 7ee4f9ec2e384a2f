"""Names that get a value in a way that the readers of programs do not follow."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from pathlib import Path

import libcst as cst

from migrator.findings import Severity
from migrator.ir.files import Together
from migrator.names.bindings import Binding, Form, bound_in, dotted
from migrator.program.calls import string
from migrator.program.parsed import Blocked, ParsedFile, Project, name_nodes, names_in
from migrator.program.scopes import path_to
from migrator.rules.rule import Rule
from migrator.walking import of_kinds, walk

CODE = "TFM128"
RULES = (
    Rule(
        CODE,
        "an assignment that cannot be resolved",
        Severity.MANUAL,
        """
What a name stands for decides what a program trains, so a native model is only written where every value of a name can
be resolved. Assignments of all kinds are, and an assignment expression (`:=`) that can be written as a line of its own.
An assignment expression in a comprehension, a loop's condition or an `elif`, a capture of a `match` statement, and a
name that is also bound by an `except`, `import`, `def`, `class` or `type` statement are not, unless the name is used in
that statement alone. Nor is a name that is imported from two files of the project, by a condition say. Give the value
to the name in a line `name = value`, or use another name there. Nor is what no statement names: `exec(...)`,
`globals()["rate"] = ...`, `setattr(config, "rate", ...)` of a module, another value for a name of TensorFlow
(`tf.layers.dense = ...`).
""",
    ),
)

#: Values that no reader takes apart: they may only be used where they are given.
_APART = (Form.WALRUS, Form.CAPTURED)
#: Ways to bind a name that mean something else than a value of the program's.
_OTHER = (Form.EXCEPTION, Form.FUNCTION, Form.IMPORTED, Form.CLASS, Form.TYPE)


def check_names(scope: cst.CSTNode, names: Collection[str] | None = None) -> None:
    """Refuses a function or module, those inside it included, where it binds a name in a way that is not followed.

    With `names`, only those of them that belong to the scope itself. Raises Blocked (TFM128).
    """
    for one in _functions(scope) if names is None else (scope,):
        found: dict[str, list[Binding]] = {}
        for binding in bound_in(one):
            found.setdefault(binding.name, []).append(binding)
        for name, bindings in found.items():
            if names is None or name in names:
                _check(one, name, bindings)


def check_mode(function: cst.FunctionDef | cst.Lambda, mode: str | None) -> None:
    """Refuses a model_fn that gives its mode another value. Raises Blocked (TFM128)."""
    for binding in bound_in(function):
        if binding.name == mode and binding.form is not Form.PARAMETER:
            raise Blocked(CODE, binding.node, f"`{mode}` is reassigned: use another name")


def check_hidden(project: Project, file: ParsedFile, scope: cst.CSTNode) -> None:
    """Refuses code that gives values to names which no statement binds: `exec(...)`, `globals()["rate"] = ...`.

    Looked at is what runs with a scope: of a module what is in no function. Raises Blocked (TFM128).
    """
    finder = _Hidden(project, file, scope)
    walk(scope, finder)
    for node, names, how in finder.found:
        elsewhere = how.endswith(_ELSEWHERE)
        read = None if names is None else sorted(name for name in names if elsewhere or name in file.names)
        if read is None or read:
            what = "names" if not read else f"`{read[0]}`"
            raise Blocked(CODE, node, f"{what} may be reassigned by {how}, which is unsupported: write `name = ...`")


def check_imports(project: Project, file: ParsedFile) -> None:
    """Refuses a file that imports one name from several files of the project: it depends on the run which it is.

    Raises Blocked (TFM128).
    """
    files = Together.of(project.files)
    origins: dict[str, Path] = {}
    for node in of_kinds(file.module, cst.Import, cst.ImportFrom):
        for name, module, level in _modules(node):
            found = next(filter(None, (files.imported(file.path, one, level) for one in module)), None)
            if found is not None and origins.setdefault(name, found.path) != found.path:
                message = f"`{name}` is imported from several files: import it from one, or use another name here"
                raise Blocked(CODE, node, message)


def _modules(node: cst.Import | cst.ImportFrom) -> Iterator[tuple[str, tuple[str, ...], int]]:
    """The names that an import gives values, each with the modules that it may be or come from, and the level."""
    aliases = () if isinstance(node.names, cst.ImportStar) else node.names
    for alias in aliases:
        name = dotted(alias.name) or ""
        given = alias.asname.name.value if alias.asname is not None and isinstance(alias.asname.name, cst.Name) else ""
        if isinstance(node, cst.ImportFrom):
            base = dotted(node.module) or ""
            yield given or name, (f"{base}.{name}" if base else name, base), len(node.relative)
        elif given or "." not in name:
            yield given or name, (name,), 0


def names_behind(scope: cst.CSTNode, nodes: Collection[cst.CSTNode]) -> set[str]:
    """The names that some code in a scope reads, and those that the statements read which bind them."""
    bindings = bound_in(scope)
    found: set[str] = set()
    queue = {name for node in nodes for name in names_in(node)}
    while queue:
        found |= queue
        queue = {n for b in bindings if b.name in queue for n in names_in(_statement(scope, b.node, False))} - found
    return found


def _check(scope: cst.CSTNode, name: str, bindings: list[Binding]) -> None:
    for binding in bindings:
        if binding.form in _APART:
            inside = _statement(scope, binding.node, binding.form is Form.CAPTURED)
            own = set(name_nodes(inside)) | {b.place for b in bindings if path_to(inside, b.node)}
            elsewhere = [b for b in bindings if not path_to(inside, b.node)]
            if elsewhere or any(node not in own for node in name_nodes(scope) if node.value == name):
                message = f"`{name}` is assigned by {binding.form.value}: write `{name} = ...` on its own line"
                raise Blocked(CODE, binding.node, message)
        elif binding.form in _OTHER and len({b.form for b in bindings}) > 1:
            if _is_module(name, bindings):
                continue
            message = f"`{name}` is bound by {binding.form.value}, and by other lines: use another name here"
            raise Blocked(CODE, binding.node, message)


def _is_module(name: str, bindings: list[Binding]) -> bool:
    """Whether a name is imported and given a part of itself, `tf = tf.compat.v1`, which the import map follows."""
    values = [dotted(b.value) for b in bindings if b.form is not Form.IMPORTED]
    return all(value is not None and value.partition(".")[0] == name for value in values)


def _statement(scope: cst.CSTNode, node: cst.CSTNode, match: bool) -> cst.CSTNode:
    """The innermost statement around a node, or the innermost `match` statement."""
    kinds = (cst.Match,) if match else (cst.SimpleStatementLine, cst.SimpleStatementSuite, cst.BaseCompoundStatement)
    path = path_to(scope, node)
    return next((one for one in reversed(path) if isinstance(one, kinds) and one is not scope), node)


_ELSEWHERE = " of a module"
_SPACES = ("globals", "locals", "vars")
_CHANGES = ("update", "setdefault", "pop", "clear", "__setitem__", "__delitem__", "popitem")


class _Hidden(cst.CSTVisitor):
    """Finds what binds names without saying so: the place, the names (None: any), and how."""

    def __init__(self, project: Project, file: ParsedFile, scope: cst.CSTNode) -> None:
        super().__init__()
        self.project = project
        self.file = file
        self.scope = scope
        self.found: list[tuple[cst.CSTNode, set[str] | None, str]] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return not isinstance(self.scope, cst.Module)

    def visit_Lambda(self, node: cst.Lambda) -> bool:
        return not isinstance(self.scope, cst.Module)

    def visit_Call(self, node: cst.Call) -> None:
        func = node.func
        if isinstance(func, cst.Name) and func.value == "exec" and node.args:
            spaces = [arg.value for arg in node.args[1:]]
            if all(self._is_space(one) for one in spaces):
                self.found.append((node, _bound_by_text(string(node.args[0].value)), "`exec`"))
        elif isinstance(func, cst.Name) and func.value in ("setattr", "delattr") and len(node.args) > 1:
            if self._is_module(node.args[0].value):
                self._add(node, node.args[1].value, f"`{func.value}`{_ELSEWHERE}")
        elif isinstance(func, cst.Attribute) and func.attr.value in _CHANGES and self._is_space(func.value):
            how = f"`{self.file.code(func)}`"
            if func.attr.value == "update" and node.args and all(arg.keyword is not None for arg in node.args):
                self.found.append((node, {arg.keyword.value for arg in node.args if arg.keyword is not None}, how))
            else:
                self._add(node, node.args[0].value if node.args else None, how)

    def visit_Assign(self, node: cst.Assign) -> None:
        for target in node.targets:
            self._target(target.target)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self._target(node.target)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        self._target(node.target)

    def visit_For(self, node: cst.For) -> None:
        self._target(node.target)

    def _target(self, target: cst.BaseExpression) -> None:
        if isinstance(target, (cst.Tuple, cst.List)):
            for element in target.elements:
                self._target(element.value)
        elif isinstance(target, cst.Subscript) and self._is_space(target.value):
            index = target.slice[0].slice
            key = index.value if isinstance(index, cst.Index) else None
            self._add(target, key, f"`{self.file.code(target)}`")
        elif isinstance(target, cst.Attribute):
            name = self.file.imports.tensorflow(target)
            if name is not None and "FLAGS" not in name:
                self.found.append((target, {target.attr.value}, f"`{self.file.code(target)} =`{_ELSEWHERE}"))

    def _add(self, node: cst.CSTNode, key: cst.BaseExpression | None, how: str) -> None:
        name = string(key) if key is not None else None
        self.found.append((node, None if name is None else {name}, how))

    def _is_space(self, node: cst.BaseExpression) -> bool:
        """`globals()`, `vars(module)`, `sys.modules[__name__].__dict__`."""
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value in _SPACES:
            return not node.args or self._is_module(node.args[0].value)
        return isinstance(node, cst.Attribute) and node.attr.value == "__dict__" and self._is_module(node.value)

    def _is_module(self, node: cst.BaseExpression) -> bool:
        if isinstance(node, cst.Subscript):
            return self.file.imports.resolve(node.value) == "sys.modules"
        if isinstance(node, cst.Call):
            return (self.file.imports.resolve(node.func) or "") in ("importlib.import_module", "__import__")
        name = self.file.imports.resolve(node)
        if name is None:
            return False
        if self.file.imports.tensorflow(node) is not None:
            return "FLAGS" not in name
        return self.project.sibling(self.file, name) is not None


def _bound_by_text(text: str | None) -> set[str] | None:
    """The names that a text of statements binds, None where it is not known."""
    if text is None:
        return None
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    if any(isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)) for node in ast.walk(tree)):
        return None
    return found


def _functions(scope: cst.CSTNode) -> Iterator[cst.CSTNode]:
    found = of_kinds(scope, cst.FunctionDef, cst.Lambda)
    if scope not in found:
        yield scope
    yield from found
