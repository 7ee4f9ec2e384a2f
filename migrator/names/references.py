"""What the names of a file mean, scope by scope: every dotted name that begins with something imported.

The bridge changes names only, so it reads files as names only: by `ast`, with Python's rules for scopes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from migrator.names.patterns import captured
from migrator.syntax import children_of, statements_in

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(eq=False)
class Binding:
    """One place that binds a name: an import (`origin`, `statement`), an alias (`chain`), or anything else."""

    name: str
    node: ast.AST
    origin: str | None = None
    statement: ast.Import | ast.ImportFrom | None = None
    chain: ast.expr | None = None
    scope: Scope | None = None


@dataclass(eq=False)
class Scope:
    """A module, class, function or comprehension: the names that it binds."""

    node: ast.AST
    parent: Scope | None
    names: dict[str, list[Binding]] = field(default_factory=dict)
    elsewhere: dict[str, str] = field(default_factory=dict)  # name -> "global" or "nonlocal"

    @property
    def is_class(self) -> bool:
        """Whether functions inside do not see its names."""
        return isinstance(self.node, ast.ClassDef)

    def bind(self, binding: Binding) -> None:
        """Notes a binding, in the scope that `global` and `nonlocal` say."""
        if binding.name in self.elsewhere and self.parent is not None:
            target = self.parent
            while target.parent is not None and (self.elsewhere[binding.name] == "global" or target.is_class):
                target = target.parent
            target.bind(binding)
            return
        binding.scope = self
        self.names.setdefault(binding.name, []).append(binding)

    def look_up(self, name: str) -> list[Binding]:
        """The bindings that a name read here may have."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names and (scope is self or not scope.is_class):
                return scope.names[name]
            scope = scope.parent
        return []


@dataclass(eq=False)
class Reference:
    """A dotted name that is read: `nodes` are the name and the attributes on it, `origin` what it means.

    `binding` is what gives the first name its meaning (None: an `import *` of the project).
    """

    nodes: tuple[ast.expr, ...]
    origin: str
    head_origin: str
    binding: Binding | None
    scope: Scope

    @property
    def spelled(self) -> str:
        """The dotted name as it stands there."""
        head = self.nodes[0]
        assert isinstance(head, ast.Name)
        return ".".join([head.id, *(node.attr for node in self.nodes[1:] if isinstance(node, ast.Attribute))])


@dataclass(frozen=True)
class Names:
    """All that a file imports and reads."""

    tree: ast.Module
    module: Scope
    references: tuple[Reference, ...]
    bindings: tuple[Binding, ...]
    stars: tuple[ast.ImportFrom, ...]
    unbound: frozenset[str]  # names that are read and that nothing binds here: built in, or of an `import *`

    def imported(self) -> Iterator[Binding]:
        """The bindings by import statements."""
        return (binding for binding in self.bindings if binding.statement is not None)


def read_names(tree: ast.Module, given: Mapping[str, str] | None = None) -> Names:
    """Reads a file. `given` are names that it gets from other files, and what they mean there."""
    reader = _Reader(tree, given or {})
    reader.bind_all()
    references, bindings, stars = tuple(reader.references()), tuple(reader.bindings), tuple(reader.stars)
    return Names(tree, reader.module, references, bindings, stars, frozenset(reader.unbound))


def chain_of(node: ast.expr) -> tuple[ast.expr, ...]:
    """The nodes of `a.b.c` from `a` on; empty for anything else."""
    nodes: list[ast.expr] = []
    while isinstance(node, ast.Attribute):
        nodes.append(node)
        node = node.value
    return (node, *reversed(nodes)) if isinstance(node, ast.Name) else ()


def own_nodes(block: ast.AST) -> Iterator[ast.AST]:
    """The nodes below a node, those of the functions in it left out."""
    queue = children_of(block)
    while queue:
        node = queue.pop()
        yield node
        if not isinstance(node, _FUNCTIONS):
            queue += children_of(node)


class _Reader:
    def __init__(self, tree: ast.Module, given: Mapping[str, str]) -> None:
        self.tree = tree
        self.given = given
        self.module = Scope(tree, None)
        self.bindings: list[Binding] = []
        self.stars: list[ast.ImportFrom] = []
        self.reads: list[tuple[ast.expr, Scope]] = []
        self.unbound: set[str] = set()
        self._resolving: set[int] = set()

    def bind_all(self) -> None:
        for node in self.tree.body:
            self._visit(node, self.module)

    # -- binding -------------------------------------------------------------------------------------------------

    def _bind(self, scope: Scope, binding: Binding) -> None:
        self.bindings.append(binding)
        scope.bind(binding)

    def _visit(self, node: ast.AST, scope: Scope) -> None:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            self._import(node, scope)
        elif isinstance(node, _FUNCTIONS):
            self._function(node, scope)
        elif isinstance(node, ast.ClassDef):
            self._bind(scope, Binding(node.name, node))
            for part in (*node.decorator_list, *node.bases, *node.keywords):
                self._visit(part, scope)
            inner = Scope(node, scope)
            for part in node.body:
                self._visit(part, inner)
        elif isinstance(node, _COMPREHENSIONS):
            inner = Scope(node, scope)
            for part in children_of(node):
                self._visit(part, inner)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            kind = "global" if isinstance(node, ast.Global) else "nonlocal"
            scope.elsewhere.update(dict.fromkeys(node.names, kind))
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            chain = node.value if chain_of(node.value) else None
            self._bind(scope, Binding(node.targets[0].id, node, chain=chain))
            self._visit(node.value, scope)
        elif isinstance(node, ast.ExceptHandler):
            if node.name:
                self._bind(scope, Binding(node.name, node))
            self._children(node, scope)
        elif isinstance(node, (ast.Attribute, ast.Name)):
            self._name(node, scope)
        elif isinstance(node, ast.arg):
            self._bind(scope, Binding(node.arg, node))
            if node.annotation is not None:
                self._visit(node.annotation, scope)
        else:
            if name := captured(node):
                self._bind(scope, Binding(name, node))
            self._children(node, scope)

    def _children(self, node: ast.AST, scope: Scope) -> None:
        for part in children_of(node):
            self._visit(part, scope)

    def _name(self, node: ast.Attribute | ast.Name, scope: Scope) -> None:
        nodes = chain_of(node)
        if not nodes:
            self._children(node, scope)
            return
        head = nodes[0]
        assert isinstance(head, ast.Name)
        if len(nodes) == 1 and not isinstance(head.ctx, ast.Load):
            target = scope
            while isinstance(target.node, _COMPREHENSIONS) and _is_walrus(node, target) and target.parent is not None:
                target = target.parent
            self._bind(target, Binding(head.id, node))
        else:
            self.reads.append((node, scope))

    def _import(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                local = alias.asname or alias.name.partition(".")[0]
                origin = alias.name if alias.asname else local
            elif alias.name == "*":
                self.stars.append(node)
                continue
            else:
                local = alias.asname or alias.name
                module = "." * node.level + (node.module or "")
                origin = f"{module}.{alias.name}" if node.module else f"{module}{alias.name}"
            self._bind(scope, Binding(local, alias, origin, node))

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scope: Scope) -> None:
        arguments = node.args
        if not isinstance(node, ast.Lambda):
            self._bind(scope, Binding(node.name, node))
            for part in node.decorator_list:
                self._visit(part, scope)
            if node.returns is not None:
                self._visit(node.returns, scope)
        for default in (*arguments.defaults, *(d for d in arguments.kw_defaults if d is not None)):
            self._visit(default, scope)
        inner = Scope(node, scope)
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        for one in (*every, arguments.vararg, arguments.kwarg):
            if one is not None:
                self._visit(one, inner)
        body = node.body if isinstance(node.body, list) else [node.body]
        for statement in body:  # first what `global` says, for it may stand below a binding in a branch
            for inside in statements_in(statement):
                if isinstance(inside, (ast.Global, ast.Nonlocal)):
                    self._visit(inside, inner)
        for statement in body:
            self._visit(statement, inner)

    # -- meaning -------------------------------------------------------------------------------------------------

    def references(self) -> Iterator[Reference]:
        for node, scope in self.reads:
            nodes = chain_of(node)
            head = nodes[0]
            assert isinstance(head, ast.Name)
            found = self._meaning(head.id, scope)
            if found is None and not scope.look_up(head.id):
                self.unbound.add(head.id)
            if found is not None:
                origin, binding = found
                rest = [one.attr for one in nodes[1:] if isinstance(one, ast.Attribute)]
                yield Reference(nodes, ".".join([origin, *rest]), origin, binding, scope)

    def _meaning(self, name: str, scope: Scope) -> tuple[str, Binding | None] | None:
        bindings = scope.look_up(name)
        if not bindings:
            return (self.given[name], None) if name in self.given else None
        for binding in bindings:
            origin = self._origin(binding)
            if origin is not None:
                return origin, binding
        return None

    def _origin(self, binding: Binding) -> str | None:
        if binding.origin is not None:
            if binding.scope is self.module and binding.name in self.given:
                return self.given[binding.name]
            return binding.origin
        if binding.chain is None or id(binding) in self._resolving or binding.scope is None:
            return None
        self._resolving.add(id(binding))
        nodes = chain_of(binding.chain)
        head = nodes[0]
        assert isinstance(head, ast.Name)
        scope = binding.scope
        if head.id == binding.name and scope.parent is not None and scope is not self.module:
            scope = scope.parent
        found = self._meaning(head.id, scope)
        self._resolving.discard(id(binding))
        if found is None:
            return None
        rest = [one.attr for one in nodes[1:] if isinstance(one, ast.Attribute)]
        return ".".join([found[0], *rest])


def _is_walrus(node: ast.AST, scope: Scope) -> bool:
    return any(isinstance(one, ast.NamedExpr) and one.target is node for one in ast.walk(scope.node))
