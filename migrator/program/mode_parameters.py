"""What a model_fn tells its object of the mode, told to its methods instead.

`self.is_training = mode == TRAIN`, which the methods that make the network read, says in an attribute what an argument
says: `is_training = mode == TRAIN`, and `self.network(features, is_training=is_training)`. A property that only asks
for such an attribute is what it asks. A method that is told the mode is then read like any helper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import libcst as cst

from migrator.names.bindings import Form, bound_in, dotted, read_bindings
from migrator.program.calls import calls_in, nodes_in, number, parameters_of, string
from migrator.program.flow import is_left_open
from migrator.program.modes import ModeNames
from migrator.program.parsed import ParsedFile, names_in
from migrator.program.reductions import Edits, applied, fitting, returned
from migrator.walking import of_kinds

_MODE = "mode"  # an Estimator gives it by this name
_STORED = (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.Del, cst.Element, cst.StarredElement, cst.NamedExpr)
_NONE = cst.MaybeSentinel.DEFAULT
_BY_NAME = ("getattr", "hasattr", "setattr", "delattr")


def with_mode_parameters(
    files: Sequence[ParsedFile], unread: Callable[[Path, str], bool] = lambda path, name: False
) -> list[ParsedFile]:
    """The files with such attributes as parameters; those of which a reader cannot be followed stay.

    `unread` says whether a text beside the files that may have names of one of them says a name.
    """
    made = list(files)
    if not any("EstimatorSpec" in file.bare and "class " in file.bare for file in made):
        return made
    tried: set[tuple[str, str]] = set()
    while True:
        told = next((one for one in _told(made) if (one.owner.name.value, one.attribute) not in tried), None)
        if told is None:
            return made
        tried.add((told.owner.name.value, told.attribute))
        edits = _Reader(made, told, unread).read()
        if edits is not None:
            made = [applied(file, edits[file.path]) if file.path in edits else file for file in made]


@dataclass(frozen=True)
class _Told:
    """A line of a model_fn, the method of a class, that gives an attribute of its object what says the mode."""

    file: ParsedFile
    owner: cst.ClassDef
    model_fn: cst.FunctionDef
    index: int
    attribute: str
    value: cst.BaseExpression


def _told(files: Sequence[ParsedFile]) -> Iterator[_Told]:
    for file in files:
        if _MODE not in file.bare or "class " not in file.bare:
            continue
        for owner in (one for one in file.module.body if isinstance(one, cst.ClassDef)):
            for function in _methods(owner):
                if _MODE in [one.name.value for one in parameters_of(function)]:
                    yield from _told_by(file, owner, function)


def _told_by(file: ParsedFile, owner: cst.ClassDef, function: cst.FunctionDef) -> Iterator[_Told]:
    given = [one.name for one in bound_in(function)]
    if given.count(_MODE) != 1 or not isinstance(function.body, cst.IndentedBlock):
        return
    names = ModeNames(file.imports, _MODE)
    for index, line in enumerate(function.body.body):
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
        if not isinstance(small, cst.Assign) or len(small.targets) != 1:
            continue
        target = small.targets[0].target
        when = names.when(small.value)
        is_mode = isinstance(small.value, cst.Name) and small.value.value == _MODE
        if when is None and not is_mode:
            continue
        if isinstance(target, cst.Name) and when is not None and given.count(target.value) == 1:
            names = replace(names, flags={**names.flags, target.value: when})
        if isinstance(target, cst.Attribute) and _is(target.value, _self_of(function)):
            if is_mode or names_in(small.value) & names.about:
                yield _Told(file, owner, function, index, target.attr.value, small.value)


@dataclass
class _Mention:
    """An attribute of the object that a method of the family reads, writes or calls."""

    file: ParsedFile
    method: cst.FunctionDef
    node: cst.Attribute


@dataclass
class _Reader:
    """Reads one attribute of all classes that share their methods with the one of a model_fn."""

    files: Sequence[ParsedFile]
    told: _Told
    unread: Callable[[Path, str], bool]
    edits: dict[Any, Edits] = field(default_factory=dict)

    def read(self) -> dict[Any, Edits] | None:
        """The edits of each file by its path; None where somebody may read the attribute who cannot be followed."""
        family = self._family()
        if family is None or any("__dict__" in file.bare for file, _ in family):
            return None
        self.methods = [(file, one) for file, owner in family for one in _methods(owner)]
        self.of_method = {one: file for file, one in self.methods}
        if any(self._asks_by_name(file, call) for file in self.files for call in calls_in(file.module)):
            return None
        mentions = self._mentions(self.told.attribute)
        if mentions is None:
            return None
        reads: list[tuple[_Mention, cst.BaseExpression | None]] = []
        for one in mentions:
            if not isinstance(one.file.parents.get(one.node), _STORED):
                reads.append((one, None))
            elif not self._stores(one):
                return None
        properties = {one.method for one, _ in reads if _decorators(one.method) == ["property"]}
        for method in properties:
            more = self._of_property(method)
            if more is None:
                return None
            reads += more
        reads = [(one, value) for one, value in reads if one.method not in properties]
        lifted = self._lifted({one.method for one, _ in reads})
        if lifted is None or not all(self._is_after(one) for one, _ in reads if one.method is self.told.model_fn):
            return None
        name = self.told.attribute
        if not self._is_free(name, lifted):
            return None
        changed = {name, *(one.name.value for one in (*lifted, *properties))}
        if any(self.unread(file.path, one) for file, _ in family for one in changed):
            return None
        for one, value in reads:
            new = cst.Name(name) if value is None else self._asked(value, name)
            self._of(one.file).expressions[one.node] = fitting(one.file.parents.get(one.node), one.node, new)
        for method in properties:
            self._of(self.of_method[method]).lines[method] = []
        self._tell(name)
        return self.edits

    def _of(self, file: ParsedFile) -> Edits:
        return self.edits.setdefault(file.path, Edits())

    # -- who reads it

    def _family(self) -> list[tuple[ParsedFile, cst.ClassDef]] | None:
        """The classes that are derived from each other, and have the model_fn's; None where two share a name."""
        classes = [(file, one) for file in self.files for one in of_kinds(file.module, cst.ClassDef)]
        above = {one.name.value: {_last(base.value) for base in one.bases} for _, one in classes}
        names = {self.told.owner.name.value}
        while True:
            more = {name for name, bases in above.items() if name in names or bases & names}
            more |= {base for name in more for base in above.get(name, ()) if base in above}
            if more <= names:
                break
            names |= more
        found = [(file, one) for file, one in classes if one.name.value in names]
        if len(found) != len(names) or any(file.parents.get(one) is not file.module for file, one in found):
            return None
        return found

    def _asks_by_name(self, file: ParsedFile, call: cst.Call) -> bool:
        """Whether a call may ask the object for the attribute, or a method, by a text: `hasattr(self, "training")`."""
        asked = _last(call.func)
        if asked not in (*_BY_NAME, "vars", "dir") or not call.args or file.imports.resolve(call.args[0].value):
            return False
        method = self._method_around(file, call)
        if asked not in _BY_NAME:
            return method is not None and _is(call.args[0].value, _self_of(method))
        name = string(call.args[1].value) if len(call.args) > 1 else None
        return name is None or name in {self.told.attribute, *(one.name.value for _, one in self.methods)}

    def _mentions(self, name: str) -> list[_Mention] | None:
        """Where methods of the family mention an attribute of their object; None where others may mean it."""
        found: list[_Mention] = []
        for file in self.files:
            if name not in file.bare:
                continue
            for node in nodes_in(file.module):
                if not isinstance(node, cst.Attribute) or node.attr.value != name:
                    continue
                method = self._method_around(file, node)
                own = method is not None and (_is(node.value, _self_of(method)) or _is_super(node.value))
                if own and method is not None:
                    found.append(_Mention(file, method, node))
                elif not self._is_of_another(file, node):
                    return None
        return found

    def _method_around(self, file: ParsedFile, node: cst.CSTNode) -> cst.FunctionDef | None:
        for around in file.above(node):
            if isinstance(around, cst.FunctionDef) and around in self.of_method:
                return around
        return None

    def _is_of_another(self, file: ParsedFile, node: cst.Attribute) -> bool:
        """Whether an attribute is certainly none of the object: of a module, of flags, or of another class's own."""
        if file.imports.resolve(node) is not None:
            return True
        if not isinstance(node.value, cst.Name):
            return False
        name = node.value.value
        for around in file.above(node):
            if isinstance(around, (cst.FunctionDef, cst.Module)):
                bound = [one for one in bound_in(around) if one.name == name]
                if len(bound) == 1 and isinstance(bound[0].node, cst.Assign):
                    value = bound[0].node.value
                    return isinstance(value, cst.Call) and _last(value.func) == "parse_args"
                if bound:
                    owner = file.parents.get(file.parents.get(around, around))
                    own = isinstance(owner, cst.ClassDef) and isinstance(around, cst.FunctionDef)
                    return own and isinstance(around, cst.FunctionDef) and _self_of(around) == name
        return False

    def _stores(self, one: _Mention) -> bool:
        """Whether a mention is the line of the model_fn, or one of a constructor that says nothing yet."""
        target = one.file.parents.get(one.node)
        small = one.file.parents.get(target) if target is not None else None
        line = one.file.parents.get(small) if small is not None else None
        if not isinstance(small, cst.Assign) or len(small.targets) != 1:
            return False
        if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
            return False
        if one.method is self.told.model_fn:
            return line is self.told.model_fn.body.body[self.told.index]
        literal = _last(small.value) in ("None", "True", "False") or number(small.value) is not None
        if one.method.name.value != "__init__" or not (literal or string(small.value) is not None):
            return False
        self._of(one.file).lines[line] = []
        return True

    def _of_property(self, method: cst.FunctionDef) -> list[tuple[_Mention, cst.BaseExpression | None]] | None:
        """Where a property is read that only asks for the attribute, and what it asks."""
        value, this = returned(method), _self_of(method)
        if value is None or this is None:
            return None
        own = [node for node in of_kinds(value, cst.Attribute) if _is(node.value, this)]
        others = names_in(value) - {this} - self.of_method[method].imports.names.keys()
        if {one.attr.value for one in own} != {self.told.attribute} or others:
            return None
        if sum(_is(node, this) for node in nodes_in(value)) != len(own):
            return None
        mentions = self._mentions(method.name.value)
        if mentions is None or sum(one.name.value == method.name.value for _, one in self.methods) != 1:
            return None
        if any(one.file is not self.of_method[method] for one in mentions):
            return None  # it may call TensorFlow by another name
        if any(isinstance(one.file.parents.get(one.node), _STORED) for one in mentions):
            return None
        return [(one, value) for one in mentions]

    def _asked(self, value: cst.BaseExpression, name: str) -> cst.BaseExpression:
        """What a property asks, of a name."""
        nodes = of_kinds(value, cst.Attribute)
        own = [node for node in nodes if node.attr.value == self.told.attribute and isinstance(node.value, cst.Name)]
        return cast("cst.BaseExpression", _Named(dict.fromkeys(own, name)).of(value))

    # -- who is told

    def _lifted(self, needing: set[cst.FunctionDef]) -> set[cst.FunctionDef] | None:
        """The methods that get the parameter: those that read it, and those that call such a method."""
        wanted = {one.name.value for one in needing if one is not self.told.model_fn}
        done: set[str] = set()
        self.calls: list[tuple[_Mention, cst.Call]] = []
        while wanted - done:
            name = min(wanted - done)
            done.add(name)
            mentions = self._mentions(name)
            if mentions is None or name.startswith("__") or name == self.told.model_fn.name.value:
                return None
            for one in mentions:
                call = one.file.parents.get(one.node)
                if not isinstance(call, cst.Call) or call.func is not one.node:
                    return None
                if one.method is not self.told.model_fn:
                    wanted.add(one.method.name.value)
                elif not self._is_after(one):
                    return None
                self.calls.append((one, call))
        lifted = {one for _, one in self.methods if one.name.value in done}
        return None if any(one.decorators or one.asynchronous is not None for one in lifted) else lifted

    def _is_after(self, one: _Mention) -> bool:
        """Whether a mention in the model_fn stands behind the line that says the mode."""
        body = self.told.model_fn.body.body
        at = next(index for index, statement in enumerate(body) if one.node in nodes_in(statement))
        return at > self.told.index

    def _is_free(self, name: str, lifted: set[cst.FunctionDef]) -> bool:
        """Whether nothing else is called so in the methods that get the parameter, and in the model_fn."""
        self.lifted = lifted
        for method in lifted:
            if any(one.name == name for one in read_bindings(method) if one.form is not Form.SCOPED):
                return False
            if name in names_in(method.body) and name in self.of_method[method].names_at_top:
                return False
        bound = [one for one in read_bindings(self.told.model_fn) if one.name == name]
        return not bound or _is(self.told.value, name)

    def _tell(self, name: str) -> None:
        """Gives the methods their parameter, the calls their argument, and the model_fn its name."""
        equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
        for one, call in self.calls:
            arg = cst.Arg(cst.Name(name), keyword=cst.Name(name), equal=equal)
            args = [*call.args, arg]
            if len(args) > 1:
                comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
                args[-2] = (
                    args[-2].with_changes(comma=comma) if args[-2].comma == cst.MaybeSentinel.DEFAULT else args[-2]
                )
            self._of(one.file).expressions[call] = call.with_changes(args=args)
        for method in (one for one in self.lifted if not is_left_open(one)):
            params = method.params
            if params.kwonly_params or params.star_kwarg is not None or isinstance(params.star_arg, cst.Param):
                new = params.with_changes(kwonly_params=[*params.kwonly_params, cst.Param(cst.Name(name))])
            else:
                default = cst.Name("None") if any(one.default is not None for one in params.params) else None
                new = params.with_changes(
                    params=[
                        *params.params,
                        cst.Param(cst.Name(name), default=default, equal=equal if default else _NONE),
                    ]
                )
            edits = self._of(self.of_method[method])
            cast("dict[Any, Any]", edits.expressions)[params] = new
        line = self.told.model_fn.body.body[self.told.index]
        assign = cst.Assign([cst.AssignTarget(cst.Name(name))], self.told.value)
        lines: list[cst.BaseStatement] = []
        if not _is(self.told.value, name):
            lines = [cast("cst.SimpleStatementLine", line).with_changes(body=[assign])]
        self._of(self.told.file).lines[cast("cst.BaseStatement", line)] = lines


class _Named:
    """Writes attributes as a name."""

    def __init__(self, nodes: Mapping[cst.Attribute, str]) -> None:
        self.nodes = nodes

    def of(self, value: cst.BaseExpression) -> cst.CSTNode:
        new: cst.CSTNode = value
        for node, name in self.nodes.items():
            new = new.deep_replace(node, cst.Name(name)) if new is not node else cst.Name(name)
        return new.deep_clone()


def _methods(owner: cst.ClassDef) -> list[cst.FunctionDef]:
    """The methods of a class that have their object for the first parameter."""
    found = [one for one in owner.body.body if isinstance(one, cst.FunctionDef)]
    return [one for one in found if not {"staticmethod", "classmethod"} & set(_decorators(one)) and _self_of(one)]


def _decorators(function: cst.FunctionDef) -> list[str]:
    return [dotted(one.decorator) or "" for one in function.decorators]


def _self_of(function: cst.FunctionDef) -> str | None:
    params = [*function.params.posonly_params, *function.params.params]
    return params[0].name.value if params else None


def _is(node: cst.CSTNode, name: str | None) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def _is_super(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and _is(node.func, "super")


def _last(node: cst.BaseExpression) -> str:
    return (dotted(node) or "").rpartition(".")[2]


__all__ = ["with_mode_parameters"]
