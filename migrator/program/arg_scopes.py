"""`with slim.arg_scope([slim.conv2d], padding="SAME"):` written out: the calls inside are given the arguments.

An arg_scope gives keyword arguments to all calls of some functions that run inside its `with`, those in functions that
are called there included; what a call gives itself goes before. `batch_norm` as a `normalizer_fn` is such a call, too.
Where all calls can be seen, the arguments are put there and the `with` goes; else it stays, with a reason.
"""

from __future__ import annotations

import builtins
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Union

import libcst as cst

from migrator.names.bindings import read_bindings, values_given
from migrator.names.imports import dotted
from migrator.names.standard import STANDARD_MODULES
from migrator.pairing import equal_zip
from migrator.program.calls import (
    bind,
    calls_in,
    classes_in,
    functions_in,
    is_docstring,
    is_none,
    nodes_in,
    parameters_of,
    string,
)
from migrator.program.parsed import Blocked, ParsedFile, Project, Tracked, name_nodes, names_in
from migrator.program.scopes import assigned_lambdas, bindings, path_to, returns_in, with_values
from migrator.rules.contrib_layers import ScopedCall, scoped_call
from migrator.walking import walk

_SCOPES = ("tf.contrib.slim.arg_scope", "tf.contrib.framework.arg_scope")
_KNOWN_MODULES = frozenset(STANDARD_MODULES) | {"numpy", "scipy", "six", "absl"}
# What is another tensor or variable whenever it is called.
_EACH_TIME = ("tf.random", "tf.get_variable", "tf.Variable", "tf.placeholder", "tf.contrib.framework.")
# Methods that run no layers, whatever they are called of: those of tensors, containers, strings and loggers.
_OF_TENSORS = (
    "as_list assign assign_add assign_sub astype get_next get_shape initialized_value is_fully_defined merge_with "
    "read_value reshape set_shape tolist with_rank"
)
_OF_CONTAINERS = (
    "append clear copy count extend get index insert items iteritems iterkeys itervalues keys pop popitem remove "
    "reverse setdefault sort update values"
)
_OF_STRINGS = (
    "decode encode endswith find format join lower lstrip replace rfind rsplit rstrip split splitlines startswith "
    "strip title upper zfill"
)
_METHODS = frozenset(f"{_OF_TENSORS} {_OF_CONTAINERS} {_OF_STRINGS} debug error info warn warning".split())

#: What calls of functions are given: the function's key, the keyword, the value.
Given = Mapping[str, Mapping[str, cst.BaseExpression]]
Frame = Union[cst.FunctionDef, cst.Module]


def with_arguments_written_out(files: Sequence[ParsedFile], texts: Mapping[Path, str]) -> list[ParsedFile]:
    """The files without their arg_scopes, as far as all calls inside them can be seen."""
    if not any("arg_scope" in file.bare for file in files):
        return list(files)
    plan = _Plan(files, texts)
    return [plan.rewritten(file) for file in files]


@dataclass(frozen=True)
class _Site:
    """A call: of a function of the project (`target`), one that arg_scopes are for (`scoped`), or of what is not known.

    It stands in a `frame`; `given` is what the arg_scopes around it in its own function say.
    """

    file: ParsedFile
    frame: Frame
    call: cst.Call
    given: Given
    target: tuple[ParsedFile, cst.FunctionDef] | None = None
    scoped: ScopedCall | None = None


@dataclass
class _Found:
    """What is found in one file: the calls, the `with`s, and mentions of functions that are no calls of them."""

    sites: list[_Site] = field(default_factory=list)
    withs: list[tuple[Frame, cst.With]] = field(default_factory=list)
    makers: list[tuple[ParsedFile, cst.FunctionDef, cst.Call]] = field(default_factory=list)
    mentions: list[cst.FunctionDef] = field(default_factory=list)


class _Plan:
    def __init__(self, files: Sequence[ParsedFile], texts: Mapping[Path, str]) -> None:
        self.project = Project(tuple(files), {Path.cwd() / file.path: file for file in files})
        others = texts.keys() - {file.path for file in files}
        self.elsewhere = [texts[path] for path in others]
        calling = _Calling(files)
        self.touching = calling.reaching(calling.scoped)
        self.setting = calling.reaching(calling.setting)
        self.classes = {node.name.value for file in files for node in classes_in(file.module)}
        self.functions = {node.name.value for file in files for node in functions_in(file.module)}
        self.refused: dict[Frame, tuple[cst.CSTNode, str]] = {}
        self.found = {file.path: self._read(file) for file in files}
        unknown = {site.frame.name.value for site in self._unknown() if isinstance(site.frame, cst.FunctionDef)}
        if unknown - self.touching:
            self.touching = calling.reaching(calling.scoped | unknown)
            self.refused = {}
            self.found = {file.path: self._read(file) for file in files}
        self.sites = [site for found in self.found.values() for site in found.sites]
        self.to: dict[cst.FunctionDef, list[_Site]] = defaultdict(list)
        for site in self.sites:
            if site.target is not None:
                self.to[site.target[1]].append(site)
        self.around: dict[Frame, Given] = {}
        self.mentioned = [function for found in self.found.values() for function in found.mentions]
        self._settle()

    def _read(self, file: ParsedFile) -> _Found:
        reader = _Reader(self, file)
        walk(file.module, reader)
        return reader.found

    def _unknown(self) -> Iterator[_Site]:
        """The calls of what is not known."""
        for found in self.found.values():
            yield from (site for site in found.sites if site.target is None and site.scoped is None)

    def refuse(self, frame: Frame, node: cst.CSTNode, why: str) -> None:
        self.refused.setdefault(frame, (node, why))

    # -- functions that are called inside --------------------------------------------------------------------------

    def _settle(self) -> None:
        """Refuses functions until what the others are called with is certain."""
        before = -1
        while before < len(self.refused):
            before = len(self.refused)
            for function, sites in self.to.items():
                problem = self._problem(function, sites)
                for site in sites if problem else ():
                    if self._all_given(site):
                        self.refuse(site.frame, site.call, f"`{function.name.value}` is called inside and {problem}")
            for site in self.sites:
                if site.target is None and site.frame not in self.refused:
                    try:
                        _arguments(site.file, site, self._all_given(site))
                    except Blocked as problem_there:
                        self.refuse(site.frame, problem_there.node or site.call, problem_there.message)

    def _problem(self, function: cst.FunctionDef, sites: Sequence[_Site]) -> str:
        """Why what arg_scopes give cannot be given inside of a function that is called in them."""
        all_given = [self._all_given(site) for site in sites]
        if not any(all_given):
            return ""
        if function in self.refused:
            return f"cannot be passed its arguments: {self.refused[function][1]}"
        if any(function is other for other in self.mentioned) or any(function.name.value in t for t in self.elsewhere):
            return "is used elsewhere as well"
        inside = [self._inside(site, given) for site, given in equal_zip(sites, all_given)]
        texts = {_text(given) for given in inside if given is not None}
        if any(site.frame in self.refused for site in sites) or len(texts) > 1:
            return "is called with other arguments elsewhere"
        if any(given is None for given in inside):
            return "cannot see where these arguments come from: pass them to the calls in it"
        return ""

    def _inside(self, site: _Site, given: Given) -> Given | None:
        """What a scope gives, as the function that is called in it says it; None where that does not know it.

        A name of the caller that is given to a parameter is that parameter.
        """
        assert site.target is not None
        file, function = site.target
        bound = [name for name, _ in bindings(function)]
        parameters = [param.name.value for param in parameters_of(function)]
        try:
            arguments = bind(site.call, parameters, function.name.value, "TFM224")
        except Blocked:
            arguments = {}
        called = {v.value: p for p, v in arguments.items() if isinstance(v, cst.Name) and bound.count(p) == 1}
        found: dict[str, dict[str, cst.BaseExpression]] = {}
        for key, named in given.items():
            found[key] = {}
            for keyword, value in named.items():
                if is_same(site.file, site.frame, file, function, value):
                    found[key][keyword] = value
                elif isinstance(value, cst.Name) and value.value in called:
                    found[key][keyword] = cst.Name(called[value.value])
                else:
                    return None
        return found

    def _all_given(self, site: _Site) -> Given:
        return _layered(self._around(site.frame), site.given)

    def _around(self, frame: Frame) -> Given:
        """What the arg_scopes give that a function is called in, as that says it.

        Where functions call each other in a circle, this may miss some; then their calls differ (`_problem`).
        """
        if frame not in self.around:
            self.around[frame] = {}
            found = [self._inside(site, self._all_given(site)) for site in self._calls(frame)]
            self.around[frame] = next((given for given in found if given), {})
        return self.around[frame]

    def _calls(self, frame: Frame) -> Sequence[_Site]:
        return self.to.get(frame, ()) if isinstance(frame, cst.FunctionDef) else ()

    # -- writing ---------------------------------------------------------------------------------------------------

    def rewritten(self, file: ParsedFile) -> ParsedFile:
        found = self.found[file.path]
        arguments: dict[cst.CSTNode, list[cst.Arg]] = {}
        for site in found.sites:
            if site.scoped is not None and site.frame not in self.refused:
                new = _arguments(file, site, self._all_given(site))
                if new is not None:
                    arguments[site.call] = new
        gone = [node for frame, node in found.withs if frame not in self.refused]
        kept = {f for frame in self.refused for f in self._makers_in(frame)}
        makers = [
            function
            for other in self.found.values()
            for where, function, _ in other.makers
            if where is file and function not in kept and self._only_makes(function)
        ]
        imported = self._imported(file, kept)
        if not arguments and not gone and not imported:
            return replace(file, refused=self._reasons(file)) if self._reasons(file) else file
        writer = _Writer(file, arguments, gone, makers, imported)
        module = file.module.visit(writer)
        assert isinstance(module, cst.Module)
        new_file = replace(file, module=module, refused=self._reasons(file))
        new_file.keep_positions(writer.made, file)
        return new_file

    def _imported(self, file: ParsedFile, kept: Collection[cst.FunctionDef]) -> set[str]:
        """The functions of other files that a file imports by name and that go, since they only made arg_scopes."""
        found: set[str] = set()
        for other in self.found.values():
            for _, function, _ in other.makers:
                name = function.name.value
                own = self.project.function(file, cst.Name(name)) if name in file.imports.names else None
                if own is not None and own[1] is function and function not in kept and self._only_makes(function):
                    found.add(name)
        return found

    def _makers_in(self, frame: Frame) -> list[cst.FunctionDef]:
        return [f for found in self.found.values() for _, f, call in found.makers if path_to(frame, call)]

    def _only_makes(self, function: cst.FunctionDef) -> bool:
        """Whether a function only made arg_scopes that are written out, so that it goes."""
        calls = [call for found in self.found.values() for _, f, call in found.makers if f is function]
        mentions = [n for f in self.project.files for n in _mentions(f.module, function.name.value)]
        elsewhere = any(function.name.value in text for text in self.elsewhere)
        return not elsewhere and all(any(n is call.func for call in calls) for n in mentions)

    def _reasons(self, file: ParsedFile) -> Mapping[tuple[int, int], tuple[str, str]]:
        found = dict(file.refused)
        for frame, node in self.found[file.path].withs:
            if frame in self.refused:
                where, why = self.refused[frame]
                line = file.position(where)[0]
                for item in node.items:
                    found[file.position(item.item)] = ("TFM224", f"this `arg_scope` stays: {why} (line {line})")
        return found


def _text(given: Given) -> str:
    module = cst.Module([])
    return repr({key: {k: module.code_for_node(v) for k, v in named.items()} for key, named in given.items()})


def _values(given: Given) -> Iterator[cst.BaseExpression]:
    for named in given.values():
        yield from named.values()


def _layered(outer: Given, inner: Given) -> Given:
    keys = [*outer, *(key for key in inner if key not in outer)]
    return {key: {**outer.get(key, {}), **inner.get(key, {})} for key in keys}


def is_same(file: ParsedFile, frame: Frame, other: ParsedFile, there: Frame, value: cst.BaseExpression) -> bool:
    """Whether an expression of one function says the same in another: it reads what both files call the same."""
    own, theirs = _names_of(frame), _names_of(there)
    for name in names_in(value) - {"True", "False", "None"}:
        if name in own or name in theirs:
            return False
        if file is other:
            continue
        origin = file.imports.names.get(name)
        if origin is None or other.imports.names.get(name) != origin:
            return False
    return True


def _names_of(frame: Frame) -> set[str]:
    """The names that a function has for itself."""
    if isinstance(frame, cst.Module):
        return set()
    return {name for name, node in bindings(frame) if isinstance(node, (cst.Name, cst.Param, cst.FunctionDef))}


class _Calling:
    """The names of functions and classes, and the words in them.

    `scoped` are those with calls that arg_scopes are for, `setting` those that give a global name another value.
    """

    def __init__(self, files: Iterable[ParsedFile]) -> None:
        self.inside: dict[str, set[str]] = defaultdict(set)
        self.scoped: set[str] = set()
        self.setting: set[str] = set()
        for file in files:
            named: list[cst.FunctionDef | cst.ClassDef] = [*functions_in(file.module), *classes_in(file.module)]
            for node in named:
                words = _Words(file)
                walk(node.body, words)
                self.inside[node.name.value] |= words.found
                if words.scoped:
                    self.scoped.add(node.name.value)
                if words.globals:
                    self.setting.add(node.name.value)

    def reaching(self, names: Collection[str]) -> set[str]:
        """The names of functions and classes that may run some, these included."""
        found = set(names)
        while True:
            more = {name for name, words in self.inside.items() if words & found} - found
            if not more:
                return found
            found |= more


class _Words(cst.CSTVisitor):
    """Every identifier below a node, whether one is of tf.contrib's layers, and those that are declared `global`."""

    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self.found: set[str] = set()
        self.globals: set[str] = set()
        self.scoped = False

    def visit_NameItem(self, node: cst.NameItem) -> None:
        self.globals.add(node.name.value)

    def visit_Name(self, node: cst.Name) -> None:
        self.found.add(node.value)
        self._look(node)

    def visit_Attribute(self, node: cst.Attribute) -> None:
        self._look(node)

    def _look(self, node: cst.BaseExpression) -> None:
        name = self.file.imports.tensorflow(node) or ""
        self.scoped = self.scoped or name.startswith(("tf.contrib.slim.", "tf.contrib.layers.", *_SCOPES))


def _mentions(module: cst.Module, name: str) -> list[cst.CSTNode]:
    finder = _Mentions(name)
    walk(module, finder)
    return finder.found


class _Mentions(cst.CSTVisitor):
    """Reads of a name, or of an attribute of that name, imports and definitions left out."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.found: list[cst.CSTNode] = []

    def visit_Import(self, node: cst.Import) -> bool:
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        for part in (*node.decorators, node.params, node.body):
            walk(part, self)
        return False

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        if node.attr.value == self.name:
            self.found.append(node)
        walk(node.value, self)
        return False

    def visit_Name(self, node: cst.Name) -> None:
        if node.value == self.name:
            self.found.append(node)


# -- reading one file --------------------------------------------------------------------------------------------------


class _Reader(cst.CSTVisitor):
    def __init__(self, plan: _Plan, file: ParsedFile) -> None:
        super().__init__()
        self.plan = plan
        self.file = file
        self.found = _Found()
        self.frames: list[Frame] = [file.module]
        self.around: list[list[Given]] = [[]]  # of each frame the arg_scopes around
        self.seen: set[cst.CSTNode] = set()

    @property
    def frame(self) -> Frame:
        return self.frames[-1]

    @property
    def given(self) -> Given:
        return self.around[-1][-1] if self.around[-1] else {}

    def _refuse(self, node: cst.CSTNode, why: str) -> None:
        self.plan.refuse(self.frame, node, why)

    def _touches(self, node: cst.CSTNode) -> bool:
        words = _Words(self.file)
        walk(node, words)
        return words.scoped or bool(words.found & self.plan.touching)

    # -- functions --

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        if self.around[-1] and self._touches(node.body):
            self._refuse(node, f"`{node.name.value}` is defined inside, and may run anywhere")
        for part in (*node.decorators, node.params):
            walk(part, self)
        self.frames.append(node)
        self.around.append([])
        walk(node.body, self)
        self.frames.pop()
        self.around.pop()
        return False

    def visit_Lambda(self, node: cst.Lambda) -> None:
        if self.around[-1] and self._touches(node.body):
            self._refuse(node, "a lambda is defined inside, and may run anywhere")

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        if self.around[-1]:
            self._refuse(node, "a class is defined inside")

    def visit_Yield(self, node: cst.Yield) -> None:
        if self.around[-1]:
            self._refuse(node, "a `yield` leaves and re-enters it")

    # -- scopes --

    def visit_With(self, node: cst.With) -> bool:
        calls = [item.item for item in node.items if self._is_scope(item.item)]
        if not calls:
            return True
        outer = self.given
        self.found.withs.append((self.frame, node))
        for item in node.items:
            if not self._is_scope(item.item):
                walk(item, self)
                continue
            assert isinstance(item.item, cst.Call)
            self.around[-1].append(self.given)
            try:
                new = self._read_scope(item.item)
                self._check_unchanged(node, new)
                self._check_name(node, item)
                self.around[-1][-1] = _layered(self.around[-1][-1], new)
            except Blocked as problem:
                self._refuse(problem.node or node, problem.message)
        walk(node.body, self)
        del self.around[-1][len(self.around[-1]) - len(calls) :]
        assert self.given is outer or self.given == outer
        return False

    def _is_scope(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Call) and self.file.imports.tensorflow(node.func) in _SCOPES

    def _check_name(self, node: cst.With, item: cst.WithItem) -> None:
        """The name that a scope is given must be read by nobody, or be returned by the function that makes it."""
        name = item.asname.name if item.asname is not None else None
        if name is None:
            return
        reads = [n for n in name_nodes(self.frame) if isinstance(name, cst.Name) and n.value == name.value]
        if not isinstance(name, cst.Name) or len(reads) > 1:
            returned = any(isinstance(r.value, cst.Name) and r.value in reads for r in returns_in(self.frame))
            what = "it is returned, and its uses cannot be resolved" if returned else "its `as` name is read"
            raise Blocked("TFM224", item, what)

    def _check_unchanged(self, node: cst.With, given: Given) -> None:
        read = {name for value in _values(given) for name in names_in(value)}
        for call in (call for value in _values(given) for call in calls_in(value)):
            symbol = self.file.imports.tensorflow(call.func) or ""
            if symbol.startswith(_EACH_TIME) and not symbol.endswith("initializer"):
                raise Blocked("TFM224", node, f"`{symbol}` is created once for all calls inside")
        bound = {binding.name for binding in read_bindings(node.body)}
        words = _Words(self.file)
        walk(node.body, words)
        if words.found & self.plan.setting:
            bound |= {b.name for b in read_bindings(self.file.module) if isinstance(b.node, cst.NameItem)}
        if read & bound:
            raise Blocked("TFM224", node, f"`{sorted(read & bound)[0]}` is reassigned inside")

    def _read_scope(self, call: cst.Call) -> Given:
        return _read_scope(self.plan.project, self.file, self.frame, call, self.found)

    # -- calls --

    def visit_Call(self, node: cst.Call) -> None:
        self.seen.add(node.func)
        symbol = self.file.imports.tensorflow(node.func)
        scoped = scoped_call(symbol) if symbol is not None else None
        if scoped is not None:
            for arg in node.args:
                if arg.keyword is not None and arg.keyword.value == "normalizer_fn":
                    self.seen.add(arg.value)
            self.found.sites.append(_Site(self.file, self.frame, node, self.given, scoped=scoped))
            try:
                _arguments(self.file, self.found.sites[-1], self.given)
            except Blocked as problem:
                self._refuse(problem.node or node, problem.message)
            return
        if symbol is not None:
            return
        target = self.plan.project.function(self.file, node.func)
        if target is not None:
            if target[1].name.value in self.plan.touching:
                self.found.sites.append(_Site(self.file, self.frame, node, self.given, target=target))
            return
        self.seen.discard(node.func)
        if not self._is_known(node.func):
            site = _Site(self.file, self.frame, node, self.given)
            self.found.sites.append(site)
            if self.around[-1]:
                self._refuse(node, _unknown_call(site))

    def _is_known(self, func: cst.BaseExpression) -> bool:
        """Whether a function that is called has nothing to do with layers."""
        name = dotted(func)
        last = func.attr.value if isinstance(func, cst.Attribute) else name
        if last is None or last in self.plan.touching:
            return False
        head = (name or "").partition(".")[0]
        origin = self.file.imports.names.get(head)
        if origin is not None:
            return origin.partition(".")[0] in _KNOWN_MODULES or last in self.plan.classes
        if isinstance(func, cst.Attribute):
            own = head in ("self", "cls") and last in self.plan.functions
            return own or last in _METHODS or self._is_tensorflows(func.value)
        if any(bound == head for bound, _ in bindings(self.frame)) and isinstance(self.frame, cst.FunctionDef):
            return any(f.name.value == head for f in functions_in(self.frame))
        return head in self.plan.classes or (hasattr(builtins, head) and head not in self.file.names_at_top)

    def _is_tensorflows(self, owner: cst.BaseExpression) -> bool:
        """Whether what a method is called of is made by TensorFlow."""
        made = [owner]
        if isinstance(owner, cst.Name):
            made = values_given(self.frame, owner.value) if isinstance(self.frame, cst.FunctionDef) else []
            bound = [n for b, n in bindings(self.frame) if b == owner.value and isinstance(n, (cst.Name, cst.Param))]
            made = made if len(made) == len(bound) else []
        calls = [value for value in made if isinstance(value, cst.Call) and self.file.imports.tensorflow(value.func)]
        return bool(made) and len(calls) == len(made)

    # -- functions that are not called --

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        return self._mention(node)

    def visit_Name(self, node: cst.Name) -> None:
        self._mention(node)

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False

    def visit_Import(self, node: cst.Import) -> bool:
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        walk(node.value, self)
        return False

    def _mention(self, node: cst.Name | cst.Attribute) -> bool:
        """Notes a function that is handed on; whether to look at the parts of an attribute."""
        if node in self.seen:
            return False
        symbol = self.file.imports.tensorflow(node)
        if symbol is not None and scoped_call(symbol) is not None:
            if self.around[-1]:
                self._refuse(node, f"`{self.file.code(node)}` is passed around inside")
            return False
        target = self.plan.project.function(self.file, node)
        if target is None and self.around[-1] and isinstance(node, cst.Name) and self._is_own(node.value):
            self._refuse(node, f"`{node.value}` is passed around inside")
        if target is not None and target[1].name.value in self.plan.touching:
            self.found.mentions.append(target[1])
            if self.around[-1]:
                self._refuse(node, f"`{target[1].name.value}` is passed around inside")
            return False
        return True

    def _is_own(self, name: str) -> bool:
        """Whether a name of this function stands for one of its own, or a lambda, that may run such calls."""
        lambdas = assigned_lambdas(self.frame)
        return name in self.plan.touching or (name in lambdas and self._touches(lambdas[name]))


# -- what a scope says -------------------------------------------------------------------------------------------------


def _read_scope(project: Project, file: ParsedFile, frame: Frame, call: cst.Call, found: _Found) -> Given:
    """What `arg_scope(...)` gives. Raises Blocked (TFM224)."""
    first = call.args[0].value if call.args and call.args[0].keyword is None and not call.args[0].star else None
    if isinstance(first, cst.Name):
        values = (
            values_given(frame, first.value) if first.value not in file.constants else [file.constants[first.value]]
        )
        if len(values) != 1 or isinstance(values[0], cst.Call):
            raise Blocked("TFM224", call, f"`{first.value}` is not one literal list of functions")
        first = values[0]
    if isinstance(first, cst.Call) and len(call.args) == 1:
        return _made_by(project, file, frame, first, found)
    if not isinstance(first, (cst.List, cst.Tuple)):
        raise Blocked("TFM224", call, "its first argument is not a list of functions")
    named: dict[str, cst.BaseExpression] = {}
    for arg in call.args[1:]:
        if arg.star == "**" and isinstance(arg.value, cst.Name):
            named.update(_entries(file, frame, arg.value, call))
        elif arg.keyword is None or arg.star:
            raise Blocked("TFM224", call, "its arguments are not literal keywords")
        else:
            named[arg.keyword.value] = arg.value
    keys: dict[str, dict[str, cst.BaseExpression]] = {}
    for element in first.elements:
        symbol = file.imports.tensorflow(element.value)
        scoped = scoped_call(symbol) if symbol is not None else None
        if scoped is None or scoped.fixed:
            raise Blocked("TFM224", call, f"`{file.code(element.value)}` is not a supported function of tf.contrib")
        unknown = named.keys() - set(scoped.parameters)
        if unknown:
            raise Blocked("TFM224", call, f"`{file.code(element.value)}` has no `{sorted(unknown)[0]}`")
        keys[scoped.key] = {**keys.get(scoped.key, {}), **named}
    return keys


def _entries(file: ParsedFile, frame: Frame, name: cst.Name, call: cst.Call) -> dict[str, cst.BaseExpression]:
    """The entries of a dict that is written out once, behind a name. Raises Blocked (TFM224)."""
    values = values_given(frame, name.value) or [v for k, v in file.constants.items() if k == name.value]
    changes = [node for bound, node in bindings(frame) if bound == name.value]
    entries = dict_entries(values[0]) if len(values) == 1 and len(changes) <= 1 else None
    if entries is None:
        raise Blocked("TFM224", call, f"`{name.value}` is not a single dict literal")
    return entries


def dict_entries(node: cst.BaseExpression | None) -> dict[str, cst.BaseExpression] | None:
    """The entries of `{"a": b}` or `dict(a=b)`; None for anything else."""
    if isinstance(node, cst.Dict):
        keys = [string(e.key) if isinstance(e, cst.DictElement) else None for e in node.elements]
        if all(key is not None for key in keys):
            return {str(key): element.value for key, element in equal_zip(keys, node.elements)}
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "dict":
        if all(arg.keyword is not None and not arg.star for arg in node.args):
            return {arg.keyword.value: arg.value for arg in node.args if arg.keyword is not None}
    return None


def _made_by(project: Project, file: ParsedFile, frame: Frame, call: cst.Call, found: _Found) -> Given:
    """What the scope gives that a function of the project makes: `with arg_scope(...) as scope: return scope`."""
    target = project.function(file, call.func)
    name = file.code(call.func).strip()
    if target is None:
        raise Blocked("TFM224", call, f"cannot tell what `{name}` returns")
    where, function = target
    if isinstance(call.func, cst.Name) and call.func.value != function.name.value:
        raise Blocked("TFM224", call, f"`{name}` is imported under another name")
    if function.decorators or function.params.star_kwarg or not isinstance(function.params.star_arg, cst.MaybeSentinel):
        raise Blocked("TFM224", call, f"`{name}` has a decorator, * or ** parameters")
    parameters = [param.name.value for param in function.params.params]
    values = {p.name.value: p.default for p in function.params.params if p.default is not None}
    given = bind(call, parameters, name, "TFM224")
    own: Given = {}
    returned = False
    block: Sequence[cst.BaseStatement | cst.BaseSmallStatement] = function.body.body
    known: dict[str, cst.BaseExpression] = {}
    while block:
        statement, *rest = block
        small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
        if is_docstring(statement):
            block = rest
        elif (
            isinstance(small, cst.Assign) and len(small.targets) == 1 and isinstance(small.targets[0].target, cst.Name)
        ):
            target_name = small.targets[0].target.value
            if len([1 for bound, _ in bindings(function) if bound == target_name]) != 1:
                raise Blocked("TFM224", call, f"`{target_name}` of `{name}` is assigned more than once")
            known[target_name] = small.value
            block = rest
        elif isinstance(statement, cst.With) and not rest:
            for item in statement.items:
                if not isinstance(item.item, cst.Call) or where.imports.tensorflow(item.item.func) not in _SCOPES:
                    raise Blocked("TFM224", call, f"`{name}` does more than create a scope")
                own = _layered(own, _read_scope(project, where, function, item.item, found))
            asname = statement.items[-1].asname
            last = asname.name.value if asname is not None and isinstance(asname.name, cst.Name) else ""
            block = statement.body.body
        elif isinstance(small, cst.Return) and isinstance(small.value, cst.Name) and own and small.value.value == last:
            returned, block = True, rest
        else:
            raise Blocked("TFM224", call, f"`{name}` does more than create a scope")
    if not returned:
        raise Blocked("TFM224", call, f"`{name}` does more than create a scope")
    locals_of = {*parameters, *known}
    said = {p: _default(where, file, frame, value) for p, value in values.items() if p not in given}
    defaults = {p: value for p, value in said.items() if value is not None}
    new: dict[str, dict[str, cst.BaseExpression]] = {}
    for key, named in own.items():
        new[key] = {}
        for keyword, value in named.items():
            while names_in(value) & known.keys():
                value = with_values(value, known)
            outside = [n for n in names_in(value) if n not in locals_of]
            if not all(is_same(where, where.module, file, frame, cst.Name(n)) for n in outside):
                raise Blocked("TFM224", call, f"`{keyword}` in `{name}` reads names that the caller lacks")
            unsaid = names_in(value) & (said.keys() - defaults.keys())
            if unsaid:
                raise Blocked(
                    "TFM224", call, f"the default of `{sorted(unsaid)[0]}` in `{name}` has another meaning here"
                )
            missing = (names_in(value) & set(parameters)) - values.keys() - given.keys()
            if missing:
                raise Blocked("TFM224", call, f"`{name}` is called without `{sorted(missing)[0]}`")
            new[key][keyword] = with_values(value, {**defaults, **given})
    found.makers.append((where, function, call))
    return new


def _default(where: ParsedFile, file: ParsedFile, frame: Frame, value: cst.BaseExpression) -> cst.BaseExpression | None:
    """A default of a function of the file `where`, as a function of `file` says it; None where that cannot.

    It is computed where the function is made: a name in it must have one value only. Names of numbers are these.
    """
    numbers: dict[str, cst.BaseExpression] = {
        name: constant
        for name, constant in where.constants.items()
        if isinstance(constant, (cst.Integer, cst.Float))
        and not is_same(where, where.module, file, frame, cst.Name(name))
    }
    value = with_values(value, numbers)
    names = names_in(value) - {"True", "False", "None"}
    at_top = where.names_at_top - where.constants.keys() - where.imports.names.keys() - where.functions.keys()
    return None if names & at_top or not is_same(where, where.module, file, frame, value) else value


# -- what a call is given ----------------------------------------------------------------------------------------------


def _arguments(file: ParsedFile, site: _Site, given: Given) -> list[cst.Arg] | None:
    """The arguments of a call inside of scopes; None where they are its own. Raises Blocked (TFM224)."""
    scoped, call = site.scoped, site.call
    if scoped is None:
        if given:
            raise Blocked("TFM224", call, _unknown_call(site))
        return None
    named = {k: v for k, v in given.get(scoped.key, {}).items() if k not in scoped.fixed}
    own = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
    if any(arg.star for arg in call.args) and (named or given):
        raise Blocked("TFM224", call, "a call inside has * or ** arguments: write them out")
    by_position = scoped.parameters[: len([arg for arg in call.args if arg.keyword is None])]
    doubled = sorted(named.keys() & set(by_position))
    if doubled:
        raise Blocked("TFM224", call, f"`{doubled[0]}` is also a positional argument of a call inside")
    new = {key: value for key, value in named.items() if key not in own}
    positional = dict(zip(by_position, (arg.value for arg in call.args)))
    normalizer = {**named, **positional, **own}.get("normalizer_fn")
    if not is_none(normalizer):
        params = _normalizer_params(file, site, given, normalizer, {**named, **positional, **own})
        if params is not None:
            new["normalizer_params"] = params
            if "normalizer_params" in own:
                kept = [arg for arg in call.args if arg.keyword is None or arg.keyword.value != "normalizer_params"]
                return [*kept, *_keywords(new)]
    return [*call.args, *_keywords(new)] if new else None


def _unknown_call(site: _Site) -> str:
    return f"`{site.file.code(site.call.func).strip()[:40]}` is called inside and cannot be resolved"


def _keywords(named: Mapping[str, cst.BaseExpression]) -> list[cst.Arg]:
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    return [cst.Arg(value.deep_clone(), keyword=cst.Name(key), equal=equal) for key, value in named.items()]


def _normalizer_params(
    file: ParsedFile,
    site: _Site,
    given: Given,
    normalizer: cst.BaseExpression | None,
    named: Mapping[str, cst.BaseExpression],
) -> cst.BaseExpression | None:
    """The `normalizer_params` of a call whose normalizer is given arguments by a scope, too."""
    symbol = file.imports.tensorflow(normalizer)
    scoped = scoped_call(symbol) if symbol is not None else None
    if scoped is None:
        if any(key in given for key in ("batch_norm", "layer_norm")):
            raise Blocked("TFM224", site.call, "the normalizer_fn of a call inside cannot be resolved")
        return None
    more = given.get(scoped.key, {})
    if not more:
        return None
    written = named.get("normalizer_params")
    entries: dict[str, cst.BaseExpression] | None = {}
    if isinstance(written, cst.Name) and not is_none(written):
        entries = _entries(file, site.frame, written, site.call)
    elif not is_none(written):
        entries = dict_entries(written)
    if entries is None:
        raise Blocked("TFM224", site.call, "the normalizer_params of a call inside are not literals")
    elements = [
        cst.DictElement(cst.SimpleString(f'"{key}"'), value.deep_clone()) for key, value in {**more, **entries}.items()
    ]
    return cst.Dict(elements)


# -- writing -----------------------------------------------------------------------------------------------------------


class _Writer(Tracked):
    def __init__(
        self,
        file: ParsedFile,
        arguments: Mapping[cst.CSTNode, list[cst.Arg]],
        gone: Collection[cst.With],
        makers: Collection[cst.FunctionDef],
        imported: Collection[str],
    ) -> None:
        super().__init__()
        self.imported = imported
        self.file = file
        self.arguments = arguments
        self.gone = set(gone)
        self.makers = set(makers)

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node not in self.makers and super().on_visit(node)

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        if original_node in self.makers:
            return cst.RemoveFromParent()
        if isinstance(original_node, cst.SimpleStatementLine) and self._only_imports_makers(original_node):
            return cst.RemoveFromParent()
        if isinstance(updated_node, cst.ImportFrom) and not isinstance(updated_node.names, cst.ImportStar):
            updated_node = self._without_makers(updated_node, updated_node.names)
        if original_node in self.arguments:
            updated_node = self._with_arguments(original_node, updated_node)
        if original_node in self.gone:
            updated_node = self._without(original_node, updated_node)
        return super().on_leave(original_node, updated_node)

    def _only_imports_makers(self, line: cst.SimpleStatementLine) -> bool:
        small = line.body[0]
        if len(line.body) != 1 or not isinstance(small, cst.ImportFrom) or isinstance(small.names, cst.ImportStar):
            return False
        return all(dotted(alias.name) in self.imported for alias in small.names)

    def _without_makers(self, line: cst.ImportFrom, names: Sequence[cst.ImportAlias]) -> cst.ImportFrom:
        """An import of more than functions that are gone, without these."""
        left = [alias for alias in names if dotted(alias.name) not in self.imported]
        if not left or len(left) == len(names):
            return line
        return line.with_changes(names=[*left[:-1], left[-1].with_changes(comma=names[-1].comma)])

    def _with_arguments(self, original: cst.Call, updated: cst.Call) -> cst.Call:
        """The call with its own arguments as they are now, and those of its scopes."""
        now = dict(equal_zip(original.args, updated.args))
        args: list[cst.Arg] = []
        for arg in self.arguments[original]:
            if arg not in now:
                for node in nodes_in(arg):
                    self.made[node] = original
            args.append(now.get(arg, arg))
        spaced = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        new = [arg if isinstance(arg.comma, cst.Comma) else arg.with_changes(comma=spaced) for arg in args[:-1]]
        for arg, before in zip(new, args):
            if before in self.made:
                self.made[arg] = self.made[before]
        last = args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        self.made[last] = original
        return updated.with_changes(args=[*new, last])

    def _without(self, original: cst.With, updated: cst.With) -> Any:
        items = [
            new
            for old, new in equal_zip(original.items, updated.items)
            if not isinstance(old.item, cst.Call) or self.file.imports.tensorflow(old.item.func) not in _SCOPES
        ]
        if items:
            last = items[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
            return updated.with_changes(items=[*items[:-1], last])
        assert isinstance(updated.body, cst.IndentedBlock)
        first, *rest = updated.body.body
        assert isinstance(first, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
        above = [*updated.leading_lines, *(line for line in first.leading_lines if line.comment is not None)]
        moved = first.with_changes(leading_lines=above)
        self.made[moved] = self.made.get(first, original)
        return cst.FlattenSentinel([moved, *rest])


__all__ = ["with_arguments_written_out"]
