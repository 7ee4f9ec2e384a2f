"""Where an Estimator goes: the names, attributes, containers, parameters and results that hold it, over all files.

An Estimator that a function returns, that an object keeps or that a dict holds is the same object wherever it comes
up. It is followed from the call that makes it to everything that is done with it; what cannot be followed is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

import libcst as cst

from migrator.names.imports import dotted
from migrator.program.calls import classes_in
from migrator.program.parsed import Blocked, ParsedFile, Project
from migrator.program.scopes import bindings, mentions_of, method_of, returns_in
from migrator.walking import walk

CODE = "TFM103"
#: The layers of containers around a value: the place in a tuple, or None for any place.
Layers = tuple[int | None, ...]

_ASKS = frozenset(("print", "str", "repr", "id", "type", "isinstance", "bool", "len", "hasattr", "callable"))
_SAME = frozenset(("list", "tuple", "sorted", "reversed", "dict", "OrderedDict"))
_BOTH = "tf.estimator.train_and_evaluate"

Mentioning = Callable[[Collection[str]], list[ParsedFile]]


@dataclass(frozen=True)
class HeldUse:
    """A method of the Estimator that is called, or train_and_evaluate: the call, its file and the function around."""

    method: str
    file: ParsedFile
    function: cst.FunctionDef | None
    call: cst.Call

    @property
    def scope(self) -> cst.CSTNode:
        return self.function if self.function is not None else self.file.module


@dataclass
class Flow:
    """What is done with an Estimator, wherever it goes.

    `reads` are its attributes that are read. `seen` are the expressions that are the Estimator (or hold it), `assumed`
    those that stand in the same places and must be one too.
    """

    uses: list[HeldUse] = field(default_factory=list)
    reads: list[tuple[ParsedFile, cst.Attribute]] = field(default_factory=list)
    seen: set[cst.CSTNode] = field(default_factory=set)
    assumed: list[tuple[ParsedFile, cst.BaseExpression]] = field(default_factory=list)
    files: list[ParsedFile] = field(default_factory=list)

    def stranger(self, known: Collection[cst.CSTNode]) -> tuple[ParsedFile, cst.BaseExpression] | None:
        """A value that comes where the Estimator does, and is none."""
        for file, node in self.assumed:
            if node not in known and not _is_nothing(node):
                return file, node
        return None


def follow_value(
    project: Project, mentioning: Mentioning, starts: Iterable[tuple[ParsedFile, cst.BaseExpression]], what: str
) -> Flow:
    """Follows values from the expressions that make them. Raises Blocked (TFM103) where one is lost sight of."""
    follower = _Follower(project, mentioning, what)
    for file, node in starts:
        follower.follow(file, node, ())
    return follower.flow


class Parents:
    """The node around each node, by file."""

    def __call__(self, file: ParsedFile, node: cst.CSTNode) -> cst.CSTNode | None:
        return file.parents.get(node)

    def above(self, file: ParsedFile, node: cst.CSTNode) -> Iterable[cst.CSTNode]:
        """The nodes around a node, innermost first."""
        around = self(file, node)
        while around is not None:
            yield around
            around = self(file, around)

    def function(self, file: ParsedFile, node: cst.CSTNode) -> cst.FunctionDef | None:
        """The innermost function around a node (lambdas and classes are looked through)."""
        return next((n for n in self.above(file, node) if isinstance(n, cst.FunctionDef)), None)

    def owner(self, file: ParsedFile, function: cst.FunctionDef) -> cst.ClassDef | None:
        """The class that a function is a method of."""
        around = next((n for n in self.above(file, function) if isinstance(n, cst.FunctionDef | cst.ClassDef)), None)
        return around if isinstance(around, cst.ClassDef) else None

    def own_class(self, file: ParsedFile, node: cst.BaseExpression) -> cst.ClassDef | None:
        """The class that `self` (or `cls`) means in the method around it."""
        if not isinstance(node, cst.Name):
            return None
        for function in self.above(file, node):
            if isinstance(function, cst.FunctionDef):
                owner = self.owner(file, function)
                first = [p.name.value for p in (*function.params.posonly_params, *function.params.params)][:1]
                if owner is not None and first == [node.value] and "staticmethod" not in decorators(function):
                    return owner
                if any(name == node.value for name, _ in bindings(function)):
                    return None
        return None


def decorators(function: cst.FunctionDef) -> set[str]:
    """The last names of a function's decorators; "?" for one that has none."""
    return {(dotted(d.decorator) or "?").rpartition(".")[2] for d in function.decorators}


def parameters_of(function: cst.FunctionDef) -> list[str]:
    """The parameters that can be given by position."""
    return [p.name.value for p in (*function.params.posonly_params, *function.params.params)]


class Calls:
    """The calls of the functions, methods and classes of a project, and what they are called with."""

    def __init__(self, project: Project, mentioning: Mentioning, parents: Parents) -> None:
        self.project = project
        self.mentioning = mentioning
        self.parents = parents
        self.beside: list[tuple[ParsedFile, cst.BaseExpression]] = []  # what else comes out of these

    def of(self, file: ParsedFile, function: cst.FunctionDef) -> list[tuple[ParsedFile, cst.BaseExpression]]:
        """The calls of a function (for a property: where it is read).

        Raises Blocked where it is mentioned otherwise, or decorated.
        """
        owner = self.parents.owner(file, function)
        name = function.name.value
        kinds = decorators(function)
        if owner is not None and name == "__init__":
            return self.of_class(file, owner)
        allowed = {"staticmethod", "classmethod", "property"} if owner is not None else set()
        if kinds - allowed or function.asynchronous is not None:
            raise Blocked(CODE, function, f"`{name}` is decorated, so that its calls cannot be followed")
        if owner is not None:
            return [self._called(f, n, "property" in kinds) for f, n in self._method_mentions(file, owner, name)]
        if file.functions.get(name) is function:
            found = []
            for other in self.mentioning([name]):
                for node in _meaning(self.project, self.parents, other, function, name):
                    found += self._through_parameter(other, node) or [self._called(other, node, False)]
            return found
        outer = next((n for n in self.parents.above(file, function) if isinstance(n, cst.FunctionDef)), file.module)
        return [
            self._called(file, node, False) for node in mentions_of(outer, name) if isinstance(node, cst.BaseExpression)
        ]

    def of_class(self, file: ParsedFile, owner: cst.ClassDef) -> list[tuple[ParsedFile, cst.BaseExpression]]:
        """The calls that make objects of a class, or of one derived from it that has no `__init__` of its own."""
        name = owner.name.value
        found: list[tuple[ParsedFile, cst.BaseExpression]] = []
        for other in self.mentioning([name]):
            for node in _class_mentions(self.project, self.parents, other, owner, file, name):
                parent = self.parents(other, node)
                if isinstance(parent, cst.Call) and parent.func is node:
                    found.append((other, parent))
                elif isinstance(parent, cst.Arg):
                    around = self.parents(other, parent)
                    if isinstance(around, cst.ClassDef):
                        raise Blocked(CODE, around, f"`{around.name.value}` is derived from `{name}`")
        return found

    def _through_parameter(
        self, file: ParsedFile, node: cst.BaseExpression
    ) -> list[tuple[ParsedFile, cst.BaseExpression]]:
        """The calls of a function that is given to another one, which does nothing but call it; none where that is not
        sure. What other functions, given in its place, return is `beside`.
        """
        arg = self.parents(file, node)
        call = self.parents(file, arg) if isinstance(arg, cst.Arg) and not arg.star else None
        target = self.project.function(file, call.func) if isinstance(call, cst.Call) else None
        if target is None or not isinstance(arg, cst.Arg) or not isinstance(call, cst.Call):
            return []
        where, function = target
        names = parameters_of(function)
        index = next(i for i, a in enumerate(call.args) if a is arg)
        name = arg.keyword.value if arg.keyword is not None else names[index] if index < len(names) else ""
        bound = [by for one, by in bindings(function) if one == name]
        reads = [n for n in mentions_of(function, name) if not any(n is p.name for p in function.params.params)]
        if len(bound) != 1 or not isinstance(bound[0], cst.Param) or not reads:
            return []
        found: list[tuple[ParsedFile, cst.BaseExpression]] = []
        for read in reads:
            parent = self.parents(where, read)
            if not isinstance(parent, cst.Call) or parent.func is not read:
                return []
            found.append((where, parent))
        for other_file, other in self.of(where, function):
            given = self.argument(where, function, other, name) if isinstance(other, cst.Call) else None
            maker = None if given is None else self.project.function(other_file, given)
            if maker is None:
                return []
            values = [r.value for r in returns_in(maker[1].body) if r.value is not None]
            self.beside += [(maker[0], value) for value in values]
        return found

    def _called(
        self, file: ParsedFile, node: cst.BaseExpression, is_property: bool
    ) -> tuple[ParsedFile, cst.BaseExpression]:
        parent = self.parents(file, node)
        if is_property:
            return file, node
        if isinstance(parent, cst.Call) and parent.func is node:
            return file, parent
        raise Blocked(CODE, node, f"`{file.code(node)}` is handed on here instead of being called")

    def _method_mentions(
        self, file: ParsedFile, owner: cst.ClassDef, name: str
    ) -> list[tuple[ParsedFile, cst.BaseExpression]]:
        found: list[tuple[ParsedFile, cst.BaseExpression]] = []
        defining = self._defining(name)
        for other in self.mentioning([name]):
            finder = _Attributes(name)
            walk(other.module, finder)
            for node in finder.found:
                own = self.parents.own_class(other, node.value)
                if own is not None and own is not owner:
                    if own in defining or not self._related(own, owner):
                        continue
                elif own is None and not (isinstance(node.value, cst.Name) and node.value.value == owner.name.value):
                    if other.imports.resolve(node) is not None:
                        continue  # of a module
                    if len(defining) > 1:
                        message = f"which class's `{name}` this is cannot be told: give the methods names of their own"
                        raise Blocked(CODE, node, message)
                found.append((other, node))
        return found

    def _defining(self, name: str) -> list[cst.ClassDef]:
        found = []
        for file in self.mentioning([f"def {name}"]):
            for one in classes_in(file.module):
                if any(isinstance(s, cst.FunctionDef) and s.name.value == name for s in one.body.body):
                    found.append(one)
        return found

    def _related(self, one: cst.ClassDef, other: cst.ClassDef) -> bool:
        """Whether one of two classes is derived from the other, or both from a third (by the names of their bases)."""
        first, second = (
            {c.name.value, *((dotted(b.value) or "").rpartition(".")[2] for b in c.bases)} for c in (one, other)
        )
        return bool(first & second - {"object", "ABC"})

    def argument(
        self, file: ParsedFile, function: cst.FunctionDef, call: cst.Call, parameter: str
    ) -> cst.BaseExpression | None:
        """What a call gives for a parameter of a function; None when it gives nothing. Raises Blocked for stars."""
        names = parameters_of(function)
        if self.parents.owner(file, function) is not None and "staticmethod" not in decorators(function):
            names = names[1:]
        for index, arg in enumerate(call.args):
            if arg.star:
                raise Blocked(CODE, arg, "what is given with * or ** cannot be followed: write the arguments out")
            if arg.keyword is not None:
                if arg.keyword.value == parameter:
                    return arg.value
            elif index < len(names) and names[index] == parameter:
                return arg.value
        return None


class _Follower:
    def __init__(self, project: Project, mentioning: Mentioning, what: str) -> None:
        self.project = project
        self.what = what
        self.parents = Parents()
        self.calls = Calls(project, mentioning, self.parents)
        self.mentioning = mentioning
        self.flow = Flow()
        self._done: set[tuple[cst.CSTNode, Layers]] = set()
        self._held: set[tuple[int, str, Layers]] = set()

    def lost(self, file: ParsedFile, node: cst.CSTNode, message: str) -> Blocked:
        """A Blocked at a node of whatever file."""
        return InFile(file, CODE, node, message)

    def follow(self, file: ParsedFile, node: cst.BaseExpression, layers: Layers) -> None:
        """An expression whose value is the Estimator, or a container that holds it."""
        if (node, layers) in self._done:
            return
        self._done.add((node, layers))
        self.flow.seen.add(node)
        if not any(file is other for other in self.flow.files):
            self.flow.files.append(file)
        parent = self.parents(file, node)
        if isinstance(parent, cst.Assign) and parent.value is node:
            for target in parent.targets:
                self._bind(file, target.target, layers)
        elif isinstance(parent, cst.AnnAssign) and parent.value is node:
            self._bind(file, parent.target, layers)
        elif isinstance(parent, cst.Return):
            self._returned(file, parent, layers)
        elif isinstance(parent, cst.Attribute) and parent.value is node:
            self._attribute(file, node, parent, layers)
        elif isinstance(parent, cst.Arg):
            self._argument(file, node, parent, layers)
        elif isinstance(parent, cst.IfExp) and parent.test is not node:
            other = parent.orelse if parent.body is node else parent.body
            self.flow.assumed.append((file, other))
            self.follow(file, parent, layers)
        elif isinstance(parent, cst.Element):
            display = self.parents(file, parent)
            assert isinstance(display, cst.Tuple | cst.List | cst.Set)
            index = next(i for i, e in enumerate(display.elements) if e is parent)
            self.follow(file, display, (index if isinstance(display, cst.Tuple) else None, *layers))
        elif isinstance(parent, cst.DictElement) and parent.value is node:
            display = self.parents(file, parent)
            assert isinstance(display, cst.Dict)
            self.follow(file, display, (None, *layers))
        elif isinstance(parent, cst.Subscript) and parent.value is node and layers:
            index_of = _literal_index(parent)
            if layers[0] is None or index_of is None or index_of == layers[0]:
                self.follow(file, parent, layers[1:])
        elif isinstance(parent, cst.For) and parent.iter is node and layers:
            self._bind(file, parent.target, layers[1:])
        elif not isinstance(
            parent,
            cst.Expr
            | cst.If
            | cst.While
            | cst.Assert
            | cst.AssignTarget
            | cst.Comparison
            | cst.ComparisonTarget
            | cst.UnaryOperation,
        ):
            raise self.lost(file, node, f"{self.what} cannot be followed from here")

    # -- names and attributes --------------------------------------------------------------------------------------

    def _bind(self, file: ParsedFile, target: cst.BaseExpression, layers: Layers) -> None:
        if isinstance(target, cst.Name):
            scopes = cst.FunctionDef | cst.ClassDef
            scope = next((n for n in self.parents.above(file, target) if isinstance(n, scopes)), None)
            if isinstance(scope, cst.ClassDef):
                self._kept(file, scope, target.value, layers)
                if any(node is not target for node in mentions_of(scope, target.value)):
                    raise self.lost(file, target, f"{self.what} is used in the body of a class")
                return
            self._name(file, scope, target.value, layers)
        elif isinstance(target, cst.Tuple | cst.List):
            for index, element in enumerate(target.elements):
                if layers and layers[0] in (None, index):
                    self._bind(file, element.value, layers[1:])
        elif isinstance(target, cst.Attribute):
            owner = self.parents.own_class(file, target.value)
            if owner is None:
                raise self.lost(file, target, f"{self.what} is kept in an attribute of something else than `self`")
            self._kept(file, owner, target.attr.value, layers)
        elif isinstance(target, cst.Subscript):
            self._bind(file, target.value, (None, *layers))
        else:
            raise self.lost(file, target, f"{self.what} cannot be followed from here")

    def _name(self, file: ParsedFile, function: cst.FunctionDef | None, name: str, layers: Layers) -> None:
        scope: cst.CSTNode = function if function is not None else file.module
        if (id(scope), name, layers) in self._held:
            return
        self._held.add((id(scope), name, layers))
        for bound, node in bindings(scope):
            if bound == name and isinstance(node, cst.Name):
                value = self._value_of(file, node)
                if value is not None:
                    self.flow.assumed.append((file, value))
            elif bound == name and isinstance(node, cst.FunctionDef | cst.ClassDef):
                raise self.lost(file, node, f"`{name}` is more than {self.what}")
        if function is not None and _declares(function, name):
            raise self.lost(file, function, f"`{name}` belongs to another function or to the module: `global` is used")
        for mention in mentions_of(scope, name):
            if isinstance(mention, cst.BaseExpression):
                self.follow(file, mention, layers)
        if function is None:
            for other in self.mentioning([name]):
                if other is not file:
                    for found in _imported(self.project, other, file, name):
                        self.follow(other, found, layers)

    def _value_of(self, file: ParsedFile, target: cst.Name) -> cst.BaseExpression | None:
        """The value that a plain assignment gives to a name; None for targets of loops and tuples."""
        parent = self.parents(file, target)
        statement = self.parents(file, parent) if isinstance(parent, cst.AssignTarget) else parent
        if isinstance(statement, cst.Assign | cst.AnnAssign):
            return statement.value
        return None

    def _kept(self, file: ParsedFile, owner: cst.ClassDef, name: str, layers: Layers) -> None:
        """An attribute of objects of a class."""
        if (id(owner), name, layers) in self._held:
            return
        self._held.add((id(owner), name, layers))
        only = self._is_stored_once(owner, name)
        for other in self.mentioning([f".{name}"]):
            finder = _Attributes(name)
            walk(other.module, finder)
            for node in finder.found:
                own = self.parents.own_class(other, node.value)
                if own is not None and own is not owner and not self.calls._related(own, owner):
                    continue
                if own is None and other.imports.resolve(node) is not None:
                    continue
                around = self.parents(other, node)
                if isinstance(around, cst.AssignTarget):
                    statement = self.parents(other, around)
                    if own is not None and isinstance(statement, cst.Assign):
                        self.flow.assumed.append((other, statement.value))
                    continue
                if own is None and not only and not self._is_used_as_estimator(other, node):
                    continue
                self.follow(other, node, layers)

    def _is_stored_once(self, owner: cst.ClassDef, name: str) -> bool:
        """Whether objects of no other class keep something under this name."""
        for file in self.mentioning([f".{name}"]):
            finder = _Attributes(name)
            walk(file.module, finder)
            for node in finder.found:
                if isinstance(self.parents(file, node), cst.AssignTarget):
                    own = self.parents.own_class(file, node.value)
                    if own is None or not (own is owner or self.calls._related(own, owner)):
                        return False
        return True

    def _is_used_as_estimator(self, file: ParsedFile, node: cst.Attribute) -> bool:
        """Whether an attribute of an unknown object is asked to train, evaluate or predict."""
        around = self.parents(file, node)
        return isinstance(around, cst.Attribute) and around.attr.value in ("train", "evaluate", "predict")

    # -- functions -------------------------------------------------------------------------------------------------

    def _returned(self, file: ParsedFile, statement: cst.Return, layers: Layers) -> None:
        function = self.parents.function(file, statement)
        if function is None:
            return
        for other in returns_in(function.body):
            if other.value is not None and not layers:
                self.flow.assumed.append((file, other.value))
        try:
            calls = self.calls.of(file, function)
        except InFile:
            raise
        except Blocked as problem:
            raise self.lost(self._file_of(problem.node, file), problem.node or statement, problem.message) from problem
        self.flow.assumed += self.calls.beside if not layers else []
        for where, call in calls:
            self.follow(where, call, layers)

    def _file_of(self, node: cst.CSTNode | None, file: ParsedFile) -> ParsedFile:
        for other in (file, *self.project.files):
            if node is not None and (node is other.module or self.parents(other, node) is not None):
                return other
        return file

    def _argument(self, file: ParsedFile, node: cst.BaseExpression, arg: cst.Arg, layers: Layers) -> None:
        call = self.parents(file, arg)
        if not isinstance(call, cst.Call) or arg.star:
            raise self.lost(file, arg, f"{self.what} is handed on with * or **")
        name = file.imports.resolve(call.func)
        if name == _BOTH and not layers:
            self.flow.uses.append(HeldUse("train_and_evaluate", file, self.parents.function(file, call), call))
            return
        plain = call.func.value if isinstance(call.func, cst.Name) and name is None else ""
        if plain in _ASKS:
            return
        if layers and plain == "enumerate":
            self.follow(file, call, (None, 1, *layers[1:]))
            return
        if layers and plain == "zip":
            index = next(i for i, a in enumerate(call.args) if a is arg)
            self.follow(file, call, (None, index, *layers[1:]))
            return
        if layers and plain in _SAME:
            self.follow(file, call, layers)
            return
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in ("append", "add", "insert", "setdefault"):
            self._bind(file, call.func.value, (None, *layers))
            return
        target = self._function_of(file, call.func)
        if target is None:
            text = file.code(call.func)
            raise self.lost(file, call, f"{self.what} is handed to `{text}`, which is not among the given files")
        where, function = target
        parameter = self._parameter(where, function, call, arg)
        if parameter is None:
            raise self.lost(file, call, f"which parameter of `{file.code(call.func)}` this is cannot be told")
        try:
            others = self.calls.of(where, function)
            for other_file, other in others:
                if isinstance(other, cst.Call):
                    given = self.calls.argument(where, function, other, parameter)
                    if given is not None:
                        self.flow.assumed.append((other_file, given))
        except InFile:
            raise
        except Blocked as problem:
            raise self.lost(self._file_of(problem.node, file), problem.node or call, problem.message) from problem
        self._name(where, function, parameter, layers)

    def _function_of(self, file: ParsedFile, node: cst.BaseExpression) -> tuple[ParsedFile, cst.FunctionDef] | None:
        """The function that is called: of the project, inside another one, a method of the own class, `__init__`."""
        if isinstance(node, cst.Name):
            for scope in self.parents.above(file, node):
                if isinstance(scope, cst.FunctionDef):
                    bound = [n for name, n in bindings(scope) if name == node.value]
                    if bound:
                        only = bound[0]
                        return (file, only) if len(bound) == 1 and isinstance(only, cst.FunctionDef) else None
        if isinstance(node, cst.Attribute):
            owner = self.parents.own_class(file, node.value)
            if owner is not None:
                method = method_of(self.project, owner, node.attr.value)
                return (file, method) if method is not None else None
        found = self.project.function(file, node)
        if found is not None:
            return found
        made = class_of(self.project, file, node)
        if made is not None:
            inits = [s for s in made[1].body.body if isinstance(s, cst.FunctionDef) and s.name.value == "__init__"]
            return (made[0], inits[0]) if len(inits) == 1 else None
        return None

    def _parameter(self, file: ParsedFile, function: cst.FunctionDef, call: cst.Call, arg: cst.Arg) -> str | None:
        every = [p.name.value for p in (*function.params.params, *function.params.kwonly_params)]
        if arg.keyword is not None:
            return arg.keyword.value if arg.keyword.value in every else None
        names = parameters_of(function)
        if self.parents.owner(file, function) is not None and "staticmethod" not in decorators(function):
            names = names[1:]
        index = next(i for i, a in enumerate(call.args) if a is arg)
        if any(a.star for a in call.args[:index]) or index >= len(names):
            return None
        return names[index]

    # -- uses ------------------------------------------------------------------------------------------------------

    def _attribute(self, file: ParsedFile, node: cst.BaseExpression, attribute: cst.Attribute, layers: Layers) -> None:
        name = attribute.attr.value
        parent = self.parents(file, attribute)
        call = parent if isinstance(parent, cst.Call) and parent.func is attribute else None
        if layers:
            if call is not None and name == "items":
                self.follow(file, call, (None, 1, *layers[1:]))
            elif call is not None and name in ("values", "copy"):
                self.follow(file, call, layers)
            elif call is not None and name in ("get", "pop"):
                self.follow(file, call, layers[1:])
            elif call is None or name not in ("keys", "append", "add", "insert", "clear", "setdefault"):
                raise self.lost(file, attribute, f"{self.what} cannot be followed through `{file.code(attribute)}`")
            return
        if call is not None:
            self.flow.uses.append(HeldUse(name, file, self.parents.function(file, call), call))
        else:
            self.flow.reads.append((file, attribute))


class InFile(Blocked):
    """A construct that cannot be carried over, in a file that is named."""

    def __init__(self, file: ParsedFile, code: str, node: cst.CSTNode | None, message: str) -> None:
        super().__init__(code, node, message)
        self.file = file


def class_of(project: Project, file: ParsedFile, node: cst.BaseExpression) -> tuple[ParsedFile, cst.ClassDef] | None:
    """The top-level class of the project that an expression names."""
    if isinstance(node, cst.Name):
        own = [s for s in file.module.body if isinstance(s, cst.ClassDef) and s.name.value == node.value]
        if own:
            return (file, own[0]) if len(own) == 1 else None
    origin = file.imports.resolve(node)
    if origin is None and isinstance(node, cst.Name):
        return _through_stars(project, file, node.value, [file])
    module, _, name = (origin or "").rpartition(".")
    if isinstance(node, cst.Name) and node.value in file.imports.relative:
        module = file.imports.relative[node.value][1].rpartition(".")[0] or module
    other = project.sibling(file, module) if module else None
    if other is None or other is file:
        return None
    classes = [s for s in other.module.body if isinstance(s, cst.ClassDef) and s.name.value == name]
    return (other, classes[0]) if len(classes) == 1 else None


def _through_stars(
    project: Project, file: ParsedFile, name: str, seen: list[ParsedFile]
) -> tuple[ParsedFile, cst.ClassDef] | None:
    """The class that a name means by `from module import *`."""
    for star in reversed(file.imports.stars):
        other = project.sibling(file, star)
        if other is None or any(other is known for known in seen):
            continue
        seen.append(other)
        classes = [s for s in other.module.body if isinstance(s, cst.ClassDef) and s.name.value == name]
        found = (other, classes[0]) if len(classes) == 1 else _through_stars(project, other, name, seen)
        if found is not None:
            return found
    return None


def _is_nothing(node: cst.BaseExpression) -> bool:
    """None, or an empty container."""
    if isinstance(node, cst.Name):
        return node.value == "None"
    if isinstance(node, cst.Call):
        return dotted(node.func) in ("dict", "list", "collections.OrderedDict", "OrderedDict") and not node.args
    return isinstance(node, cst.List | cst.Dict | cst.Tuple) and not node.elements


def _literal_index(node: cst.Subscript) -> int | None:
    if len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
        value = node.slice[0].slice.value
        if isinstance(value, cst.Integer):
            return int(value.evaluated_value)
    return None


def _declares(function: cst.FunctionDef, name: str) -> bool:
    finder = _Declarations()
    walk(function.body, finder)
    return name in finder.found


class _Declarations(cst.CSTVisitor):
    """Names that are declared `global` or `nonlocal`."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def visit_Global(self, node: cst.Global) -> None:
        self.found |= {item.name.value for item in node.names}

    def visit_Nonlocal(self, node: cst.Nonlocal) -> None:
        self.found |= {item.name.value for item in node.names}


class _Attributes(cst.CSTVisitor):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.found: list[cst.Attribute] = []

    def visit_Attribute(self, node: cst.Attribute) -> None:
        if node.attr.value == self.name:
            self.found.append(node)


class _Named(cst.CSTVisitor):
    """Names, and attributes that end in a name, that are read: imports, keywords and parameters left out."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.found: list[cst.BaseExpression] = []

    def visit_Import(self, node: cst.Import) -> bool:
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        walk(node.value, self)
        return False

    def visit_Param(self, node: cst.Param) -> bool:
        if node.default is not None:
            walk(node.default, self)
        return False

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        if node.attr.value == self.name:
            self.found.append(node)
        walk(node.value, self)
        return False

    def visit_Name(self, node: cst.Name) -> None:
        self.found.append(node)


def _named(file: ParsedFile, name: str) -> list[cst.BaseExpression]:
    """Names and dotted names of a file that may mean something of this name (also under another, by an import)."""
    finder = _Named(name)
    walk(file.module, finder)
    also = {local for local, origin in file.imports.names.items() if origin.rpartition(".")[2] == name} | {name}
    return [n for n in finder.found if isinstance(n, cst.Attribute) or (isinstance(n, cst.Name) and n.value in also)]


def _meaning(
    project: Project, parents: Parents, file: ParsedFile, function: cst.FunctionDef, name: str
) -> list[cst.BaseExpression]:
    """Where a file mentions a top-level function."""
    found = []
    for node in _named(file, name):
        known = project.function(file, node)
        if known is None or known[1] is not function or node is function.name:
            continue
        if isinstance(node, cst.Name) and _is_local(parents, file, node):
            continue
        found.append(node)
    return found


def _class_mentions(
    project: Project, parents: Parents, file: ParsedFile, owner: cst.ClassDef, home: ParsedFile, name: str
) -> list[cst.BaseExpression]:
    found = []
    at_top = any(s is owner for s in home.module.body)
    for node in _named(file, name):
        if node is owner.name or (isinstance(node, cst.Name) and at_top and _is_local(parents, file, node)):
            continue
        known = class_of(project, file, node)
        if (known is not None and known[1] is owner) or (
            not at_top and file is home and isinstance(node, cst.Name) and node.value == name
        ):
            found.append(node)
    return found


def _is_local(parents: Parents, file: ParsedFile, node: cst.Name) -> bool:
    """Whether a name is bound in a function around it, and not by an import."""
    for scope in parents.above(file, node):
        if isinstance(scope, cst.FunctionDef):
            bound = [n for name, n in bindings(scope) if name == node.value and n is not scope]
            if bound and node.value not in file.imports.names:
                return True
    return False


def _imported(project: Project, file: ParsedFile, home: ParsedFile, name: str) -> list[cst.BaseExpression]:
    """Where a file reads a module-level name of another one."""
    found = []
    for node in _named(file, name):
        module, _, last = (file.imports.resolve(node) or "").rpartition(".")
        if last == name and module and project.sibling(file, module) is home:
            found.append(node)
    return found
