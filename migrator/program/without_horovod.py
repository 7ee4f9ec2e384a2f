"""Programs that use Horovod where it is installed, and train in one process where it is not.

    try:
        import horovod.tensorflow as hvd
        hvd.init()
        workers = hvd.size()
    except ImportError:
        workers = 0

What such a program does without Horovod it does by itself, so that is what is read: the names have the values of the
handler, and branches on them are decided, also those of functions that only ever get such a value.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import libcst as cst

from migrator.names.bare import bare
from migrator.names.bindings import Binding, dotted, read_bindings
from migrator.program.calls import calls_in, functions_in, parameters_of
from migrator.program.folding import Folding, catches_the_import, lines_instead
from migrator.program.parsed import Blocked, NameCollector, ParsedFile, Project, Tracked, name_nodes, names_in
from migrator.walking import of_kinds, walk

CODE = "TFM196"
_MESSAGE = "Horovod is dropped: the new program is the code path without it, in one process"
_HOROVOD = "horovod"
_TELLING = ("print", "warn", "warning", "info", "debug", "error", "exception", "log")
_COMMENT = re.compile(r"horovod|\bhvd\b|\bmpi\b", re.IGNORECASE)


@dataclass(frozen=True)
class _Known:
    """A value that is known: a constant, or (`exact` False) one of several that are all false."""

    value: object = None
    exact: bool = True

    def joined(self, other: _Known) -> _Known | None:
        """What is known of a value that is this one or another."""
        if self == other:
            return self
        return _Known(exact=False) if not self.truth and not other.truth else None

    @property
    def truth(self) -> bool:
        return bool(self.value) if self.exact else False


@dataclass(frozen=True)
class _Optional:
    """A `try` at the top of a file that imports Horovod, and what the names are worth where there is none."""

    file: ParsedFile
    node: cst.Try
    values: Mapping[str, _Known]


@dataclass
class _Values:
    """What is known of names: those of each file's top level, and parameters of functions at the top level."""

    project: Project
    names: dict[Path, Mapping[str, _Known]] = field(default_factory=dict)
    parameters: dict[cst.FunctionDef, dict[str, _Known]] = field(default_factory=dict)


def without_horovod(
    files: Sequence[ParsedFile], texts: Mapping[Path, str]
) -> tuple[list[ParsedFile], dict[Path, list[Blocked]]]:
    """The files without the Horovod that they can do without, and remarks. `texts` are those of all files given.

    A file in which Horovod is needed, or may be, stays as it is.
    """
    asking = [found for file in files if _HOROVOD in file.bare for found in [_optional(file)] if found is not None]
    while asking:
        project = Project.of(files)
        values = _Values(project, {found.file.path: found.values for found in asking})
        _follow(values, files, texts)
        new, needed = _fold(values, files, {found.file.path: found for found in asking})
        if not needed:
            new = _without_parameters(values, files, new)
            own = {found.file.path: found for found in asking}
            new = [_without_unread(file, own[file.path], texts) if file.path in own else file for file in new]
            remarks = {found.file.path: [Blocked(CODE, found.node, _MESSAGE)] for found in asking}
            return new, remarks
        if needed.isdisjoint(found.file.path for found in asking):
            break  # a function needs it, whoever calls that
        asking = [found for found in asking if found.file.path not in needed]
    return list(files), {}


# -- the import --------------------------------------------------------------------------------------------------------


def _optional(file: ParsedFile) -> _Optional | None:
    """The one `try` around all imports of Horovod at the top of a file, where its handler says what is without."""
    tries = [s for s in file.module.body if isinstance(s, cst.Try) and _imports_horovod(s)]
    if len(tries) != 1 or any(s is not tries[0] and _imports_horovod(s) for s in file.module.body if _is_line(s)):
        return None
    node = tries[0]
    if node.orelse is not None or node.finalbody is not None or len(node.handlers) != 1:
        return None
    handler = node.handlers[0]
    if not catches_the_import(handler.type) or handler.name is not None or _ends_the_program(handler):
        return None
    given = _assigned(node.body)
    without = _assigned(handler.body)
    if given is None or without is None or not given.keys() <= without.keys() | _imported(node):
        return None
    bound = read_bindings(file.module)
    values: dict[str, _Known] = {}
    for name, value in without.items():
        known = _constant(value)
        if known is None or (known.truth and name in given):
            continue
        if _bound_elsewhere(bound, name, node) or _is_global_somewhere(file, name):
            return None
        values[name] = known
    return _Optional(file, node, values) if values else None


def _is_line(statement: cst.CSTNode) -> bool:
    return isinstance(statement, (cst.SimpleStatementLine, cst.If, cst.With, cst.Try))


def _ends_the_program(handler: cst.ExceptHandler) -> bool:
    names = [dotted(call.func) or "" for call in calls_in(handler.body)]
    return any(name.rpartition(".")[2] in ("exit", "_exit", "quit", "abort") for name in names)


def _imports_horovod(node: cst.CSTNode) -> bool:
    return any((b.origin or "").partition(".")[0] == _HOROVOD for b in read_bindings(node))


def _imported(node: cst.CSTNode) -> set[str]:
    return {b.name for b in read_bindings(node) if b.origin is not None}


def _assigned(suite: cst.BaseSuite) -> dict[str, cst.BaseExpression] | None:
    """The names that plain lines give values to; None where there are other statements than lines."""
    found: dict[str, cst.BaseExpression] = {}
    if not isinstance(suite, cst.IndentedBlock):
        return None
    for line in suite.body:
        if not isinstance(line, cst.SimpleStatementLine):
            return None
        for small in line.body:
            if isinstance(small, cst.Assign):
                target = small.targets[0].target
                if len(small.targets) != 1 or not isinstance(target, cst.Name):
                    return None
                found[target.value] = small.value
            elif not isinstance(small, (cst.Import, cst.ImportFrom, cst.Expr, cst.Pass)):
                return None
    return found


def _bound_elsewhere(bound: Iterable[Binding], name: str, node: cst.Try) -> bool:
    inside = {b.node for b in read_bindings(node)}
    others = [b for b in bound if b.node not in inside and not isinstance(b.node, cst.NameItem)]
    return any(b.name == name and b.is_global for b in others)


def _is_global_somewhere(file: ParsedFile, name: str) -> bool:
    told = [node for function in functions_in(file.module) for node in of_kinds(function.body, cst.Global)]
    return any(item.name.value == name for node in told for item in node.names)


def _constant(node: cst.BaseExpression | None) -> _Known | None:
    if isinstance(node, cst.Integer):
        return _Known(int(node.evaluated_value))
    if isinstance(node, cst.Name) and node.value in ("None", "False", "True"):
        return _Known({"None": None, "False": False, "True": True}[node.value])
    return None


# -- what is known of an expression ------------------------------------------------------------------------------------


class _Scopes:
    """What is known of the names at the place that a visitor has come to."""

    def __init__(self, values: _Values, file: ParsedFile) -> None:
        self.values = values
        self.stack: list[Mapping[str, _Known | None]] = [values.names.get(file.path, {})]

    def enter(self, function: cst.FunctionDef | cst.Lambda) -> None:
        known = self.values.parameters.get(function, {}) if isinstance(function, cst.FunctionDef) else {}
        self.stack.append({name: known.get(name) for name in _local(function)})

    def leave(self) -> None:
        self.stack.pop()

    def name(self, name: str) -> _Known | None:
        for scope in reversed(self.stack):
            if name in scope:
                return scope[name]
        return None

    def mentions(self, node: cst.CSTNode) -> bool:
        """Whether something that is known only without Horovod stands in an expression."""
        return any(self.name(name.value) is not None for name in name_nodes(node))

    def value(self, node: cst.BaseExpression) -> _Known | None:
        """What is known of an expression's value."""
        constant = _constant(node)
        if constant is not None:
            return constant
        if isinstance(node, cst.Name):
            return self.name(node.value)
        if isinstance(node, cst.IfExp):
            test = self.value(node.test)
            if test is not None:
                return self.value(node.body if test.truth else node.orelse)
            body, orelse = self.value(node.body), self.value(node.orelse)
            return body.joined(orelse) if body is not None and orelse is not None and not calls_in(node.test) else None
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
            inner = self.value(node.expression)
            return None if inner is None else _Known(not inner.truth)
        if isinstance(node, cst.BooleanOperation):
            return self._both(node)
        if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
            return self._compared(node.left, node.comparisons[0])
        return None

    def _both(self, node: cst.BooleanOperation) -> _Known | None:
        left, right = self.value(node.left), self.value(node.right)
        decides = isinstance(node.operator, cst.Or)  # the truth that makes the other side not matter
        if left is not None:
            return left if left.truth is decides else right
        if right is not None and right.truth is decides and not calls_in(node.left):
            return _Known(decides)
        return None

    def _compared(self, left: cst.BaseExpression, target: cst.ComparisonTarget) -> _Known | None:
        one, other = self.value(left), self.value(target.comparator)
        if one is None or other is None or not one.exact or not other.exact:
            return None
        first, second = one.value, other.value
        if isinstance(target.operator, cst.Is):
            return _Known(first is second) if first is None or second is None else None
        if isinstance(target.operator, cst.IsNot):
            return _Known(first is not second) if first is None or second is None else None
        if isinstance(target.operator, cst.Equal):
            return _Known(first == second)
        if isinstance(target.operator, cst.NotEqual):
            return _Known(first != second)
        if isinstance(first, int) and isinstance(second, int):
            if isinstance(target.operator, cst.GreaterThan):
                return _Known(first > second)
            if isinstance(target.operator, cst.GreaterThanEqual):
                return _Known(first >= second)
            if isinstance(target.operator, cst.LessThan):
                return _Known(first < second)
            if isinstance(target.operator, cst.LessThanEqual):
                return _Known(first <= second)
        return None


def _local(function: cst.FunctionDef | cst.Lambda) -> set[str]:
    """The names that are a function's own, those of functions inside it left out."""
    if isinstance(function, cst.Lambda):
        return {parameter.name.value for parameter in parameters_of(function)}
    inner = {b.node for one in functions_in(function.body) for b in read_bindings(one) if b.node is not one}
    return {b.name for b in read_bindings(function) if b.node is not function and b.node not in inner}


# -- parameters --------------------------------------------------------------------------------------------------------


def _follow(values: _Values, files: Sequence[ParsedFile], texts: Mapping[Path, str]) -> None:
    """Finds the parameters that only ever get known values, at least one of which is known for want of Horovod."""
    changed = True
    while changed:
        changed = False
        here = [file for file in files if file.path in values.names or _among(values, file)]
        wanted = {(c.function, c.home) for file in here for c in _calls_of(values, file) if c.touched}
        for function, home in sorted(wanted, key=lambda one: (one[1].path, one[0].name.value)):
            named = [file for file in files if function.name.value in file.bare]
            mine = [call for file in named for call in _calls_of(values, file) if call.function is function]
            known = values.parameters.setdefault(function, {})
            for parameter in parameters_of(function):
                name = parameter.name.value
                if name in known or not any(name in call.touched for call in mine):
                    continue
                found = _always(values, home, function, parameter, mine)
                if found is not None and _is_all(
                    values.project, files, texts, function, name, mine, _keeps(values, home, parameter, found)
                ):
                    known[name] = found
                    changed = True


def _among(values: _Values, file: ParsedFile) -> bool:
    """Whether a parameter of one of a file's functions is known."""
    return any(values.parameters.get(function) for function in file.functions.values())


@dataclass(frozen=True)
class _CallOf:
    """A call of a function at the top of a file: what is known of its arguments by parameter (None: nothing).

    `touched` are the parameters whose arguments name something that is known for want of Horovod.
    """

    file: ParsedFile
    node: cst.Call
    home: ParsedFile
    function: cst.FunctionDef
    given: Mapping[str, _Known | None]
    touched: frozenset[str]
    whole: bool


def _calls_of(values: _Values, file: ParsedFile) -> list[_CallOf]:
    finder = _Finder(values, file)
    walk(file.module, finder)
    return finder.found


class _Finder(cst.CSTVisitor):
    def __init__(self, values: _Values, file: ParsedFile) -> None:
        super().__init__()
        self.values = values
        self.file = file
        self.scopes = _Scopes(values, file)
        self.found: list[_CallOf] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        for part in (*node.decorators, node.params):
            walk(part, self)
        self.scopes.enter(node)
        walk(node.body, self)
        self.scopes.leave()
        return False

    def visit_Call(self, node: cst.Call) -> None:
        function = self.values.project.function(self.file, node.func)
        if function is None:
            return
        home, made = function
        names = [parameter.name.value for parameter in parameters_of(made)]
        given: dict[str, _Known | None] = {}
        touched: set[str] = set()
        whole = not any(arg.star for arg in node.args)
        for index, arg in enumerate(node.args):
            if arg.star or (arg.keyword is None and index >= len(names)):
                whole = False
                continue
            name = arg.keyword.value if arg.keyword is not None else names[index]
            given[name] = self.scopes.value(arg.value)
            if self.scopes.mentions(arg.value):
                touched.add(name)
        self.found.append(_CallOf(self.file, node, home, made, given, frozenset(touched), whole))


def _always(
    values: _Values, home: ParsedFile, function: cst.FunctionDef, parameter: cst.Param, calls: Sequence[_CallOf]
) -> _Known | None:
    """What is known of a parameter that all calls give a known value, or its default."""
    name = parameter.name.value
    rebound = [b for b in read_bindings(function) if b.name == name and b.node is not parameter]
    if rebound or (function.params.star_kwarg is not None and function.params.star_kwarg is parameter):
        return None
    default = _Scopes(values, home).value(parameter.default) if parameter.default is not None else None
    found: _Known | None = None
    for call in calls:
        value = call.given.get(name, default)
        if value is None or not call.whole:
            return None
        joined = value if found is None else found.joined(value)
        if joined is None:
            return None
        found = joined
    return found


def _keeps(values: _Values, home: ParsedFile, parameter: cst.Param, known: _Known) -> bool:
    """Whether a parameter's default is as much as is known of it."""
    default = _Scopes(values, home).value(parameter.default) if parameter.default is not None else None
    return default is not None and known.joined(default) == known


def _is_all(
    project: Project,
    files: Sequence[ParsedFile],
    texts: Mapping[Path, str],
    function: cst.FunctionDef,
    parameter: str,
    calls: Sequence[_CallOf],
    by_default: bool,
) -> bool:
    """Whether some calls are all that is ever done with a function: nobody else can give the parameter a value.

    `by_default`: calls that give it none do no harm, its default being what the calls give it.
    """
    known = {id(call.node.func) for call in calls}
    name = function.name.value
    for file in files:
        if name not in file.bare:
            continue
        harmless = known | (_without(file.module, function, parameter) if by_default else set())
        for node in _mentions(name, file.module):
            if id(node) not in harmless and node is not function.name:
                meant = project.function(file, node)
                if meant is None or meant[1] is function:
                    return False
    read = {file.path for file in files}
    unread = [text for path, text in texts.items() if path not in read and name in text]
    return all(by_default and _gives_nowhere(text, function, parameter) for text in unread)


def _mentions(name: str, module: cst.Module) -> list[cst.BaseExpression]:
    mentions = _MentionsOf(name)
    walk(module, mentions)
    return [*mentions.attributes, *(one for one in mentions.found if one.value == name)]


def _gives_nowhere(text: str, function: cst.FunctionDef, parameter: str) -> bool:
    """Whether a file without TensorFlow does nothing with a function but calls that leave a parameter out."""
    try:
        module = cst.parse_module(text)
    except cst.ParserSyntaxError:
        return False
    harmless = _without(module, function, parameter)
    return all(id(node) in harmless for node in _mentions(function.name.value, module))


def _without(module: cst.Module, function: cst.FunctionDef, parameter: str) -> set[int]:
    """What is called by the calls that may be of a function, and leave a parameter out."""
    return {id(call.func) for call in calls_in(module) if _leaves_out(call, function, parameter)}


def _leaves_out(call: cst.Call, function: cst.FunctionDef, parameter: str) -> bool:
    """Whether a call, should it be one of this function, leaves a parameter at its default."""
    names = [one.name.value for one in parameters_of(function)]
    places = sum(arg.keyword is None for arg in call.args)
    if any(arg.star or (arg.keyword is not None and arg.keyword.value == parameter) for arg in call.args):
        return False
    return (dotted(call.func) or "").rpartition(".")[2] == function.name.value and parameter not in names[:places]


class _MentionsOf(NameCollector):
    """Names, and the attributes of one name, imports left out."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.attributes: list[cst.Attribute] = []

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        if node.attr.value == self.name:
            self.attributes.append(node)
        return super().visit_Attribute(node)


# -- the new files -----------------------------------------------------------------------------------------------------


def _fold(
    values: _Values, files: Sequence[ParsedFile], asking: Mapping[Path, _Optional]
) -> tuple[list[ParsedFile], set[Path]]:
    """The files with the branches decided, and those that need Horovod all the same."""
    found: list[ParsedFile] = []
    needed: set[Path] = set()
    for file in files:
        own = asking.get(file.path)
        if own is None and not _among(values, file):
            found.append(file)
            continue
        folder = _Folder(values, file, own)
        module = file.module.visit(folder)
        assert isinstance(module, cst.Module)
        found.append(_changed(file, module, folder.made))
        if _imports_horovod(module) or (
            own is not None and (_imported(own.node) - own.values.keys()) & names_in(module)
        ):
            needed.add(file.path)
    return found, needed


def _without_unread(file: ParsedFile, own: _Optional, texts: Mapping[Path, str]) -> ParsedFile:
    """The file without the values that only decided its branches."""
    module = file.path.parent.name if file.path.stem == "__init__" else file.path.stem
    elsewhere = re.compile(rf"from\s+\S*\b{module}\s+import|\b{module}\.({'|'.join(own.values)})\b")
    if any(path != file.path and elsewhere.search(bare(text)) for path, text in texts.items()):
        return file
    lines = [line for line in file.module.body if isinstance(line, cst.SimpleStatementLine)]
    declared = [small for line in lines for small in line.body if isinstance(small, cst.Global)]
    known = Counter(item.name.value for small in declared for item in small.names)
    named = Counter(name.value for name in name_nodes(file.module))
    unread = {name for name in own.values if named[name] - known[name] == 1}
    body: list[Any] = []
    for line in file.module.body:
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
        if isinstance(small, cst.Assign) and isinstance(small.targets[0].target, cst.Name):
            if small.targets[0].target.value in unread:
                continue
        if isinstance(small, cst.Global) and {item.name.value for item in small.names} <= unread:
            continue
        body.append(line)
    return _changed(file, file.module.with_changes(body=body), {})


def _changed(file: ParsedFile, module: cst.Module, made: Mapping[cst.CSTNode, cst.CSTNode]) -> ParsedFile:
    new = ParsedFile(file.path, file.text, module, left_out=file.left_out)
    new.keep_positions(made, file)
    return new


_Key = tuple[Path, str, str]


def _without_parameters(values: _Values, old: Sequence[ParsedFile], files: Sequence[ParsedFile]) -> list[ParsedFile]:
    """The files without the parameters that nothing reads any more, and without what calls give them."""
    homes = {function: file.path for file in old for function in file.functions.values()}
    keys = {(homes[f], f.name.value, name) for f, known in values.parameters.items() for name in known if f in homes}
    project = Project.of(files)
    while keys:
        stay: set[_Key] = set()
        for file in files:
            if not any(name in file.bare for _, name, _ in keys):
                continue
            reads = _ReadsOf(project, file, keys)
            walk(file.module, reads)
            stay |= reads.stay
        if not stay & keys:
            break
        keys -= stay
    found: list[ParsedFile] = []
    for file in files:
        remover = _Parameters(project, file, keys)
        named = any(name in file.bare for _, name, _ in keys)
        module = file.module.visit(remover) if named else file.module
        assert isinstance(module, cst.Module)
        found.append(file if module is file.module else _changed(file, module, remover.made))
    return found


def _key(project: Project, file: ParsedFile, call: cst.Call, name: str) -> _Key | None:
    function = project.function(file, call.func)
    return None if function is None else (function[0].path, function[1].name.value, name)


def _last_place(call: cst.Call) -> int:
    """The last argument that is given by its place, which can go without moving others; -1 where none can."""
    places = [index for index, arg in enumerate(call.args) if arg.keyword is None]
    return -1 if not places or any(arg.star for arg in call.args) else places[-1]


def _given(arg: cst.Arg, index: int, names: Sequence[str], last: int) -> str | None:
    """The parameter that an argument is for, where it can go."""
    if arg.keyword is not None:
        return arg.keyword.value
    return names[index] if index == last < len(names) else None


class _ReadsOf(cst.CSTVisitor):
    """Which of some parameters (`keys`) must stay: something reads them, or a call gives them by their place."""

    def __init__(self, project: Project, file: ParsedFile, keys: set[_Key]) -> None:
        super().__init__()
        self.project = project
        self.file = file
        self.keys = keys
        self.stay: set[_Key] = set()
        self._inside: list[str] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        at_top = self.file.functions.get(node.name.value) is node
        if at_top:
            self._inside.append(node.name.value)
        for parameter in parameters_of(node):
            key = self.file.path, node.name.value, parameter.name.value
            if parameter.default is not None and key not in self.keys:
                walk(parameter.default, self)
        walk(node.body, self)
        if at_top:
            self._inside.pop()
        return False

    def visit_Call(self, node: cst.Call) -> bool:
        function = self.project.function(self.file, node.func)
        walk(node.func, self)
        names = [p.name.value for p in parameters_of(function[1])] if function is not None else []
        places = sum(arg.keyword is None for arg in node.args)
        last = _last_place(node)
        for index, place in enumerate(names[:places]):
            key = _key(self.project, self.file, node, place)
            if key is not None and index != last:
                self.stay.add(key)
        for index, arg in enumerate(node.args):
            name = _given(arg, index, names, last)
            if name is None or _key(self.project, self.file, node, name) not in self.keys:
                walk(arg.value, self)
        return False

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        walk(node.value, self)
        return False

    def visit_Name(self, node: cst.Name) -> None:
        for function in self._inside:
            self.stay.add((self.file.path, function, node.value))


class _Parameters(Tracked):
    """Removes parameters, and the arguments of calls for them."""

    def __init__(self, project: Project, file: ParsedFile, keys: set[_Key]) -> None:
        super().__init__()
        self.project = project
        self.file = file
        self.keys = keys

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        if self.file.functions.get(original_node.name.value) is not original_node:
            return updated_node
        parameters = updated_node.params
        own = (self.file.path, original_node.name.value)
        plain = [p for p in parameters.params if (*own, p.name.value) not in self.keys]
        named = [p for p in parameters.kwonly_params if (*own, p.name.value) not in self.keys]
        if len(plain) == len(parameters.params) and len(named) == len(parameters.kwonly_params):
            return updated_node
        if plain and not named and parameters.star_kwarg is None:
            plain[-1] = plain[-1].with_changes(
                comma=cst.MaybeSentinel.DEFAULT, whitespace_after_param=parameters.params[-1].whitespace_after_param
            )
        star = parameters.star_arg if named else cst.MaybeSentinel.DEFAULT
        if isinstance(parameters.star_arg, cst.Param):
            star = parameters.star_arg
        changed = parameters.with_changes(params=plain, kwonly_params=named, star_arg=star)
        return updated_node.with_changes(params=changed)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        function = self.project.function(self.file, original_node.func)
        names = [p.name.value for p in parameters_of(function[1])] if function is not None else []
        last = _last_place(original_node)
        stay = []
        for index, arg in enumerate(original_node.args):
            name = _given(arg, index, names, last)
            if name is None or _key(self.project, self.file, original_node, name) not in self.keys:
                stay.append(updated_node.args[index])
        if len(stay) == len(updated_node.args):
            return updated_node
        if stay:
            space = updated_node.args[-1].whitespace_after_arg
            stay[-1] = stay[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=space)
        return updated_node.with_changes(args=stay)


class _Folder(Folding):
    """Decides what is known, and puts what runs without Horovod in the place of the `try` that imports it."""

    def __init__(self, values: _Values, file: ParsedFile, own: _Optional | None) -> None:
        super().__init__()
        self.values = values
        self.file = file
        self.own = own
        self.scopes = _Scopes(values, file)
        self.decided: dict[cst.CSTNode, bool] = {}

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.scopes.enter(node)

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        self.scopes.leave()
        return updated_node

    def visit_If(self, node: cst.If) -> None:
        super().visit_If(node)
        self._decide(node)

    def visit_IfExp(self, node: cst.IfExp) -> None:
        self._decide(node)

    def _decide(self, node: cst.If | cst.IfExp) -> None:
        known = self.scopes.value(node.test) if self.scopes.mentions(node.test) else None
        if known is not None:
            self.decided[node] = known.truth

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> Any:
        truth = self.decided.get(original_node)
        if truth is None:
            return updated_node
        if self.is_elif(original_node):
            if truth:
                return cst.Else(body=updated_node.body, leading_lines=updated_node.leading_lines)
            return updated_node.orelse or cst.RemoveFromParent()
        updated_node = updated_node.with_changes(leading_lines=_without_comment(updated_node.leading_lines))
        if truth:
            return self.body_instead(original_node, updated_node)
        return self.orelse_instead(original_node, updated_node)

    def leave_IfExp(self, original_node: cst.IfExp, updated_node: cst.IfExp) -> cst.BaseExpression:
        truth = self.decided.get(original_node)
        if truth is None:
            return updated_node
        return updated_node.body if truth else updated_node.orelse

    def leave_Try(self, original_node: cst.Try, updated_node: cst.Try) -> Any:
        if self.own is None or original_node is not self.own.node:
            return updated_node
        body = updated_node.handlers[0].body
        assert isinstance(body, cst.IndentedBlock)
        lines = [line for line in body.body if isinstance(line, cst.SimpleStatementLine) and not _says(line)]
        return lines_instead(lines, _without_comment(updated_node.leading_lines))


def _says(line: cst.SimpleStatementLine) -> bool:
    """Whether a line only passes, or says that there is no Horovod."""
    small = line.body[0]
    if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
        text = cst.Module(()).code_for_node(small.value)
        return (dotted(small.value.func) or "").rpartition(".")[2] in _TELLING and bool(_COMMENT.search(text))
    return isinstance(small, cst.Pass)


def _without_comment(lines: Sequence[cst.EmptyLine]) -> list[cst.EmptyLine]:
    """The lines above a statement without its comment, where that is about Horovod."""
    own = len(lines)
    while own and lines[own - 1].comment is not None:
        own -= 1
    comments = [line.comment.value for line in lines[own:] if line.comment is not None]
    return list(lines[:own]) if any(_COMMENT.search(text) for text in comments) else list(lines)


__all__ = ["without_horovod"]
