"""Where an Estimator goes: the names, attributes, containers, parameters and results that hold it, over all files.

An Estimator that a function returns, that an object keeps or that a dict holds is the same object wherever it comes
up. It is followed from the call that makes it to everything that is done with it; what cannot be followed is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import libcst as cst

from migrator.names.bindings import Form, bound_in
from migrator.names.imports import dotted
from migrator.program.calls import classes_in, is_docstring
from migrator.program.parsed import Blocked, ParsedFile, Project, attributes_named
from migrator.program.scopes import bindings, mentions_of, returns_in
from migrator.walking import names_below, walk

CODE = "TFM103"

Mentioning = Callable[[Collection[str]], list[ParsedFile]]


class Parents:
    """The node around each node, by file."""

    def __call__(self, file: ParsedFile, node: cst.CSTNode) -> cst.CSTNode | None:
        return file.parents.get(node)

    def above(self, file: ParsedFile, node: cst.CSTNode) -> Iterable[cst.CSTNode]:
        """The nodes around a node, innermost first."""
        return file.above(node)

    def function(self, file: ParsedFile, node: cst.CSTNode) -> cst.FunctionDef | None:
        """The innermost function around a node (lambdas and classes are looked through)."""
        return next((n for n in self.above(file, node) if isinstance(n, cst.FunctionDef)), None)

    def owner(self, file: ParsedFile, function: cst.FunctionDef) -> cst.ClassDef | None:
        """The class that a function is a method of."""
        around = next((n for n in self.above(file, function) if isinstance(n, (cst.FunctionDef, cst.ClassDef))), None)
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
            raise Blocked(CODE, function, f"`{name}` has a decorator, so its calls cannot be resolved")
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
                        raise Blocked(CODE, around, f"`{around.name.value}` is a subclass of `{name}`")
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
        raise Blocked(CODE, node, f"`{file.code(node)}` is passed around here instead of being called")

    def _method_mentions(
        self, file: ParsedFile, owner: cst.ClassDef, name: str
    ) -> list[tuple[ParsedFile, cst.BaseExpression]]:
        found: list[tuple[ParsedFile, cst.BaseExpression]] = []
        defining = self._defining(name)
        for other in self.mentioning([name]):
            for node in attributes_named(other.module, name):
                own = self.parents.own_class(other, node.value)
                if own is not None and own is not owner:
                    if own in defining or not self._related(own, owner):
                        continue
                elif own is None and not (isinstance(node.value, cst.Name) and node.value.value == owner.name.value):
                    if other.imports.resolve(node) is not None:
                        continue  # of a module
                    if len(defining) > 1:
                        message = f"cannot tell which class's `{name}` this is: give the methods unique names"
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
                raise Blocked(CODE, arg, "* or ** arguments cannot be resolved: write the arguments out")
            if arg.keyword is not None:
                if arg.keyword.value == parameter:
                    return arg.value
            elif index < len(names) and names[index] == parameter:
                return arg.value
        return None


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


Method = tuple[ParsedFile, cst.FunctionDef]
_PLAIN_BASES = ("object", "abc.ABC", "typing.Generic", "typing.Protocol")


def method_of(project: Project, file: ParsedFile, owner: cst.ClassDef, name: str) -> Method | None:
    """The method that a name means of an object of a class, or of one that is derived from it, with its file.

    None where it may be one of several. One that is left to others (`raise NotImplementedError`) is none of them.
    """
    own = _methods(owner, name)
    if len(own) > 1:
        return None
    first = (file, own[0]) if own else inherited(project, file, owner, name)
    below = _derived(project, owner)
    if any(_is_assigned(c, name) for _, c in (*with_bases(project, file, owner), *below)):
        return None
    others = [(where, one) for where, c in below for one in _methods(c, name)]
    found = [one for one in (first, *others) if one is not None and not is_left_open(one[1])]
    if not found and not others:
        return first
    if len(found) == 1:
        return found[0]
    made = made_of(project, file, owner)
    methods = methods_by_name(project, *made) if made is not None else None
    return methods.get(name) if methods is not None else None


def made_of(project: Project, file: ParsedFile, owner: cst.ClassDef) -> tuple[ParsedFile, cst.ClassDef] | None:
    """The class that objects with the methods of `owner` are of: itself, or one derived from it.

    None where the project mentions several of them, other than as bases of others, or none.
    """
    classes = [(file, owner), *_derived(project, owner)]
    names = {one.name.value for _, one in classes}
    mentioned = {
        node.value
        for other in project.files
        if any(name in other.text for name in names)
        for node in names_below(other.module)
        if node.value in names and not _only_derives(other, node)
    }
    found = [one for one in classes if one[1].name.value in mentioned]
    return found[0] if len(found) == 1 else None


def _only_derives(file: ParsedFile, name: cst.Name) -> bool:
    """Whether a name of a class defines or imports it, derives another from it, or asks for its bases (`super`)."""
    above = file.above(name)
    around = next(above)
    while isinstance(around, cst.Attribute):
        around = next(above)
    if isinstance(around, cst.Arg):
        outer = next(above)
        return isinstance(outer, cst.ClassDef) or (isinstance(outer, cst.Call) and dotted(outer.func) == "super")
    return isinstance(around, (cst.ClassDef, cst.ImportAlias, cst.AsName, cst.Annotation))


def _derived(project: Project, owner: cst.ClassDef) -> list[tuple[ParsedFile, cst.ClassDef]]:
    """The classes of the project that are derived from one, by the names of their bases."""
    classes = [(where, one) for where in project.files for one in classes_in(where.module)]
    bases = {c.name.value: {(dotted(b.value) or "").rpartition(".")[2] for b in c.bases} for _, c in classes}
    derived, more = {owner.name.value}, True
    while more:
        new = {name for name, above in bases.items() if above & derived} - derived
        derived |= new
        more = bool(new)
    return [(where, c) for where, c in classes if c is not owner and c.name.value in derived - {owner.name.value}]


def inherited(project: Project, file: ParsedFile, owner: cst.ClassDef, name: str) -> Method | None:
    """The method that the bases of a class have by a name; None where it is not certain which."""
    for base in owner.bases:
        made = class_of(project, file, base.value)
        if made is None:
            spelled = file.imports.resolve(base.value) or dotted(base.value) or ""
            if spelled not in _PLAIN_BASES:
                return None
            continue
        own = _methods(made[1], name)
        if own:
            return (made[0], own[0]) if len(own) == 1 else None
        above = inherited(project, *made, name) if made[1] is not owner else None
        if above is not None:
            return above
    return None


def with_bases(project: Project, file: ParsedFile, owner: cst.ClassDef) -> list[tuple[ParsedFile, cst.ClassDef]]:
    """A class, and those of the project that it is derived from, with their files; a class before its bases."""
    found = [(file, owner)]
    for base in owner.bases:
        made = class_of(project, file, base.value)
        if made is not None and made[1] is not owner:
            found += [one for one in with_bases(project, *made) if one not in found]
    return found


def methods_by_name(project: Project, file: ParsedFile, owner: cst.ClassDef) -> dict[str, Method] | None:
    """The methods of objects of a class itself, by name; None where some may come from elsewhere."""
    found: dict[str, Method] = {}
    for where, one in reversed(with_bases(project, file, owner)):
        if one.keywords or len(one.bases) > 1 or not all(_is_known(project, where, base.value) for base in one.bases):
            return None
        found |= {method.name.value: (where, method) for method in _all_methods(one)}
    return found


def _is_known(project: Project, file: ParsedFile, base: cst.BaseExpression) -> bool:
    """Whether a base of a class is one of the project, or has no methods that matter."""
    named = file.imports.resolve(base) or dotted(base) or ""
    return named in _PLAIN_BASES or class_of(project, file, base) is not None


def _all_methods(owner: cst.ClassDef) -> list[cst.FunctionDef]:
    return [one for one in owner.body.body if isinstance(one, cst.FunctionDef)]


def _methods(owner: cst.ClassDef, name: str) -> list[cst.FunctionDef]:
    return [one for one in _all_methods(owner) if one.name.value == name]


def _is_assigned(owner: cst.ClassDef, name: str) -> bool:
    """Whether a class says by an assignment what a method is: `network = other_network`."""
    return any(one.name == name and one.form is not Form.FUNCTION for one in bound_in(owner))


def is_left_open(method: cst.FunctionDef) -> bool:
    """Whether a method does nothing, or says that classes derived from its own define it."""
    if any((dotted(one.decorator) or "").rpartition(".")[2] == "abstractmethod" for one in method.decorators):
        return True
    lines = [line for line in method.body.body if not is_docstring(line)]
    smalls = lines[0].body if len(lines) == 1 and isinstance(lines[0], cst.SimpleStatementLine) else ()
    last = smalls[0] if len(smalls) == 1 else None
    if isinstance(last, cst.Raise) and last.exc is not None:
        made = last.exc.func if isinstance(last.exc, cst.Call) else last.exc
        return dotted(made) == "NotImplementedError"
    return not lines or isinstance(last, cst.Pass)


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
    return isinstance(node, (cst.List, cst.Dict, cst.Tuple)) and not node.elements


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
        if known is None or known[1] is not function or _is_definition(parents, file, node):
            continue
        if isinstance(node, cst.Name) and _is_local(parents, file, node):
            continue
        found.append(node)
    return found


def _is_definition(parents: Parents, file: ParsedFile, node: cst.BaseExpression) -> bool:
    """Whether a name is that of a function where it is defined: its own, or a method's of the same name."""
    around = parents(file, node)
    return isinstance(around, cst.FunctionDef) and around.name is node


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


def imported(project: Project, file: ParsedFile, home: ParsedFile, name: str) -> list[cst.BaseExpression]:
    """Where a file reads a module-level name of another one."""
    found = []
    for node in _named(file, name):
        module, _, last = (file.imports.resolve(node) or "").rpartition(".")
        if last == name and module and project.sibling(file, module) is home:
            found.append(node)
    return found
