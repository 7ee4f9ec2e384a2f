"""Every use of a name of TensorFlow in a file, by the standard library's parser: quick, and of code alone.

Imports are followed through their aliases and through Python's scopes. What a file gives a name besides, in the scope
where it is read, makes the name unknown there. Comments and texts have no say.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Union

from migrator.names.patterns import captured
from migrator.syntax import NOT_PYTHON, children_of, tree_of

_TENSORFLOW = "tensorflow"
_V1_OF_TWO = "tf.compat.v2.compat.v1."  # the same module as tf.compat.v1
_Function = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda]
# For isinstance, which is asked for every node: a union that is made each time is slow.
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_NAMES = (ast.Attribute, ast.Name)
_CHOICES = (ast.If, ast.IfExp)
_ELSEWHERE = (ast.Global, ast.Nonlocal)
_STORES = (ast.Store, ast.Del)
_LEAVES = (ast.Constant, ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)
#: What an import that fails, or a name that is not there, raises.
_EXPECTED = frozenset({"ImportError", "ModuleNotFoundError", "AttributeError", "Exception", "BaseException"})


@dataclass(frozen=True)
class Use:
    """A dotted name of TensorFlow where it stands.

    `name` is `tf.X` or `tf.compat.v1.X`: what is reached by it, in that spelling. `guarded` says that the program
    asks for the version of TensorFlow first, or is ready for an error. `imported` marks an import statement. `called`
    says that it is the function of a call, and `keywords` what that is given by name.
    """

    name: str
    line: int
    column: int
    guarded: bool = False
    imported: bool = False
    called: bool = False
    keywords: tuple[str, ...] = ()


def uses(text: str) -> tuple[Use, ...]:
    """The uses of a file, in the order of their lines; none of a text that is no Python."""
    return _uses(text) if _TENSORFLOW in text else ()


@lru_cache(maxsize=512)
def _uses(text: str) -> tuple[Use, ...]:
    try:
        tree = tree_of(text)
    except NOT_PYTHON:
        return ()
    found = _Reader().read(tree)
    return tuple(sorted(found, key=lambda use: (use.line, use.column)))


@dataclass
class _Scope:
    """The names that one scope binds: what they stand for, None for anything but TensorFlow."""

    names: dict[str, set[str | None]] = field(default_factory=dict)
    is_class: bool = False


class _Reader:
    """Walks a file, scope by scope."""

    def __init__(self) -> None:
        self.found: list[Use] = []

    def read(self, tree: ast.Module) -> list[Use]:
        """All uses of a file, in no order."""
        scope = _Scope()
        _bind(tree.body, scope, scope)
        self._block(tree.body, (scope,), False)
        return self.found

    def _block(self, nodes: list[ast.stmt], scopes: tuple[_Scope, ...], guarded: bool) -> None:
        for node in nodes:
            self._visit(node, scopes, guarded)

    def _visit(self, node: ast.AST, scopes: tuple[_Scope, ...], guarded: bool) -> None:
        if isinstance(node, _LEAVES):
            return
        if isinstance(node, _NAMES):
            use = _use(node, scopes, guarded)
            if use is not None:
                self.found.append(use)
            elif isinstance(node, ast.Attribute):
                self._visit(node.value, scopes, guarded)
        elif isinstance(node, ast.Call):
            keywords = tuple(keyword.arg for keyword in node.keywords if keyword.arg is not None)
            use = _use(node.func, scopes, guarded, called=True, keywords=keywords)
            if use is None:
                self._visit(node.func, scopes, guarded)
            else:
                self.found.append(use)
            for given in (*node.args, *node.keywords):
                self._visit(given, scopes, guarded)
        elif isinstance(node, _IMPORTS):
            self.found.extend(_imported(node, guarded))
        elif isinstance(node, ast.Try):
            ready = guarded or any(_expects(handler) for handler in node.handlers)
            self._block(node.body, scopes, ready)
            for handler in node.handlers:
                if handler.type is not None:
                    self._visit(handler.type, scopes, guarded)
                self._block(handler.body, scopes, guarded or _expects(handler))
            self._block([*node.orelse, *node.finalbody], scopes, guarded)
        elif isinstance(node, _CHOICES):
            self._visit(node.test, scopes, guarded)
            asks = guarded or _asks_version(node.test)
            for part in (node.body, node.orelse):
                for each in part if isinstance(part, list) else [part]:
                    self._visit(each, scopes, asks)
        elif isinstance(node, _FUNCTIONS):
            self._function(node, scopes, guarded)
        elif isinstance(node, ast.ClassDef):
            for outer in (*node.decorator_list, *node.bases, *node.keywords):
                self._visit(outer, scopes, guarded)
            inner = _Scope(is_class=True)
            _bind(node.body, inner, scopes[0])
            self._block(node.body, (*scopes, inner), guarded)
        elif isinstance(node, _COMPREHENSIONS):
            inner = _Scope()
            for generator in node.generators:
                _targets(generator.target, inner)
            for child in children_of(node):
                self._visit(child, (*scopes, inner), guarded)
        else:
            for child in children_of(node):
                self._visit(child, scopes, guarded)

    def _function(self, node: _Function, scopes: tuple[_Scope, ...], guarded: bool) -> None:
        inner = _Scope()
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        for argument in every:
            if argument is not None:
                inner.names.setdefault(argument.arg, set()).add(None)
                if argument.annotation is not None:
                    self._visit(argument.annotation, scopes, guarded)
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                self._visit(default, scopes, guarded)
        around = tuple(scope for scope in scopes if not scope.is_class)  # what a class binds is no name of its methods
        if isinstance(node, ast.Lambda):
            self._visit(node.body, (*around, inner), guarded)
            return
        for each in (*node.decorator_list, node.returns):
            if each is not None:
                self._visit(each, scopes, guarded)
        _bind(node.body, inner, scopes[0])
        self._block(node.body, (*around, inner), guarded)


def _use(
    node: ast.expr, scopes: tuple[_Scope, ...], guarded: bool, called: bool = False, keywords: tuple[str, ...] = ()
) -> Use | None:
    parts: list[str] = []
    inner = node
    while isinstance(inner, ast.Attribute):
        parts.append(inner.attr)
        inner = inner.value
    if not isinstance(inner, ast.Name) or not isinstance(inner.ctx, ast.Load):
        return None
    scope = next((each for each in reversed(scopes) if inner.id in each.names), None)
    origins = scope.names[inner.id] if scope is not None else set()
    if None in origins or not origins:
        return None
    names = {".".join([origin or "", *reversed(parts)]) for origin in origins}
    # Of several imports one is made, which nobody knows before: the names are looked at when all of them lack it.
    name = min(names, key=lambda each: (not each.startswith("tf.compat.v1"), each))
    name = f"{name}.".replace(_V1_OF_TWO, "tf.compat.v1.", 1).removesuffix(".")
    return Use(name, node.lineno, node.col_offset + 1, guarded or len(names) > 1, False, called, keywords)


def _imported(node: ast.Import | ast.ImportFrom, guarded: bool) -> Iterator[Use]:
    for alias in node.names:
        place = alias if hasattr(alias, "lineno") else node  # Python 3.9 does not say where a name stands
        if isinstance(node, ast.Import):
            name = _tensorflow(alias.name)
        else:
            module = _tensorflow(node.module or "") if not node.level else None
            name = module if module is None or alias.name == "*" else f"{module}.{alias.name}"
        if name is not None:
            yield Use(name, place.lineno, place.col_offset + 1, guarded, imported=True)


def _tensorflow(module: str) -> str | None:
    """`tf.X` for a module of TensorFlow."""
    head, dot, rest = module.partition(".")
    return f"tf{dot}{rest}" if head == _TENSORFLOW else None


def _bind(body: list[ast.stmt], scope: _Scope, module: _Scope) -> None:
    """Enters what the statements of a scope bind, those of the scopes inside of it left out."""
    elsewhere: set[str] = set()
    queue: list[ast.AST] = list(reversed(body))
    aliases: list[tuple[str, ast.expr]] = []
    while queue:
        node = queue.pop()
        if isinstance(node, _IMPORTS):
            _bind_import(node, scope)
        elif isinstance(node, _DEFINITIONS):
            scope.names.setdefault(node.name, set()).add(None)
            continue
        elif isinstance(node, ast.Lambda):
            continue
        elif isinstance(node, _COMPREHENSIONS):
            # A walrus inside binds around it.
            queue += [each for each in ast.walk(node) if isinstance(each, ast.NamedExpr)]
            continue
        elif isinstance(node, _ELSEWHERE):
            elsewhere.update(node.names)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            aliases.append((node.targets[0].id, node.value))
            queue.append(node.value)
            continue
        elif isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
            aliases.append((node.target.id, node.value))
            queue += [node.annotation, node.value]
            continue
        elif isinstance(node, ast.Name) and isinstance(node.ctx, _STORES):
            scope.names.setdefault(node.id, set()).add(None)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            scope.names.setdefault(node.name, set()).add(None)
        elif name := captured(node):
            scope.names.setdefault(name, set()).add(None)
        queue += [child for child in children_of(node) if not isinstance(child, _LEAVES)][::-1]
    for name, value in aliases:
        use = _use(value, (module, scope), False)
        # `tf = tf.compat.v1` gives the name another meaning in the lines that follow; others are only shorter.
        scope.names.setdefault(name, set()).add(use.name if use is not None else None)
    for name in elsewhere:
        module.names.setdefault(name, set()).update(scope.names.pop(name, {None}))


def _bind_import(node: ast.Import | ast.ImportFrom, scope: _Scope) -> None:
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            module = _tensorflow(node.module or "") if not node.level else None
            origin = None if module is None else f"{module}.{alias.name}"
            scope.names.setdefault(alias.asname or alias.name, set()).add(origin)
        elif alias.asname is not None:
            scope.names.setdefault(alias.asname, set()).add(_tensorflow(alias.name))
        else:
            head = alias.name.partition(".")[0]
            scope.names.setdefault(head, set()).add(_tensorflow(head))


def _targets(target: ast.expr, scope: _Scope) -> None:
    for each in ast.walk(target):
        if isinstance(each, ast.Name):
            scope.names.setdefault(each.id, set()).add(None)


def _expects(handler: ast.ExceptHandler) -> bool:
    """Whether a handler is for what a missing name raises."""
    if handler.type is None:
        return True
    return any(isinstance(each, ast.Name) and each.id in _EXPECTED for each in ast.walk(handler.type))


def _asks_version(test: ast.expr) -> bool:
    """Whether a condition asks which TensorFlow there is, or whether it has a name."""
    return any(
        (isinstance(each, ast.Attribute) and each.attr in ("__version__", "VERSION"))
        or (isinstance(each, ast.Name) and each.id == "hasattr")
        for each in ast.walk(test)
    )
