"""Functions that only make an Estimator, as `build_estimator` of `model.py`, for `task.py` to train, or a configuration
or specification for one, as `get_train_spec(input_fn, steps)`: what they make stands where they are called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import libcst as cst

from migrator.names.bindings import dotted, owns, read_bindings
from migrator.program.calls import calls_in, is_docstring
from migrator.program.parsed import ParsedFile, Project, name_nodes, names_in
from migrator.program.reductions import Edits, applied, bound_arguments, is_harmless, returned, substituted

_ESTIMATOR = "tf.estimator.Estimator"
#: What may be made anew for each call: it says something, and does nothing before it trains.
_SAID = (
    _ESTIMATOR,
    *("tf.estimator.RunConfig", "tf.contrib.tpu.RunConfig", "tf.estimator.tpu.RunConfig"),
    *("tf.estimator.TrainSpec", "tf.estimator.EvalSpec"),
    *("tf.estimator.LatestExporter", "tf.estimator.FinalExporter", "tf.estimator.BestExporter"),
)


def with_builders_in_place(files: Sequence[ParsedFile], words: Mapping[Path, frozenset[str]]) -> list[ParsedFile]:
    """The files with such a construction in the place of each call of its function.

    `words` are those that stand in each text of the project: a function that a further one may know stays.
    """
    made = {file.path: file for file in files}
    for path in [file.path for file in files if any(one.rpartition(".")[2] in file.bare for one in _SAID)]:
        for name in list(made[path].functions):
            made.update({file.path: file for file in _Said(made, made[path], name, words).in_place()})
    return [made[file.path] for file in files]


def _may_stand(given: Mapping[str, cst.BaseExpression], value: cst.BaseExpression) -> bool:
    """Whether arguments may stand where a construction reads them: once, where they are what `**` hands on."""
    read = [node.value for node in name_nodes(value)]
    for name, one in given.items():
        values: list[cst.BaseExpression] = [one]
        if isinstance(one, (cst.Dict, cst.Tuple)) and read.count(name) < 2:
            values = [entry.value for entry in one.elements]
        if not all(map(is_harmless, values)):
            return False
    return True


class _Said:
    """A function that makes a configuration or a specification, and the calls of it."""

    def __init__(
        self, files: Mapping[Path, ParsedFile], file: ParsedFile, name: str, words: Mapping[Path, frozenset[str]]
    ) -> None:
        self.files = files
        self.file = file
        self.function = file.functions[name]
        self.name = name
        self.words = words

    def in_place(self) -> list[ParsedFile]:
        """The files that change; none where somebody else than calls that are understood mentions the function."""
        file, value = self.file, _said(self.function)
        symbol = file.imports.resolve(value.func) if isinstance(value, cst.Call) else None
        if not isinstance(value, cst.Call) or symbol not in _SAID:
            return []
        if self.function.decorators or self.function.asynchronous is not None:
            return []
        if file.code(self.function.body).count("#") != file.code(value).count("#"):
            return []  # a comment would be lost
        module = file.path.parent.name if file.path.stem == "__init__" else file.path.stem
        if any({self.name, module} <= said for path, said in self.words.items() if path not in self.files):
            return []
        if any(f"{quote}{self.name}{quote}" in one.text for one in self.files.values() for quote in "'\""):
            return []  # somebody may ask for it by a text
        project = Project.of(list(self.files.values()))
        edits: dict[Path, Edits] = {file.path: Edits(lines={self.function: []})}
        built: dict[Path, dict[tuple[int, int], tuple[Path, tuple[int, int]]]] = {}
        for caller in self.files.values():
            if self.name not in self.words.get(caller.path, ()):
                continue
            found = self._edits(project, caller, value)
            if found is None:
                return []
            if not found.expressions:
                continue
            if caller is file:
                found.lines[self.function] = []
            edits[caller.path] = found
            at = file.path, file.position(value)
            built[caller.path] = {caller.position(call): at for call in found.expressions}
        if not built or (symbol == _ESTIMATOR and (len(built.get(file.path, ())) or sum(map(len, built.values())) > 1)):
            return []  # the driver keeps a function of its own, and one that makes several
        changed = []
        for path, one in edits.items():
            edited = applied(self.files[path], one)
            new = replace(edited, built={**edited.built, **built.get(path, {})})
            new.keep_positions({}, edited)
            changed.append(new)
        return changed

    def _edits(self, project: Project, caller: ParsedFile, value: cst.Call) -> Edits | None:
        """The edits of a file that may call the function; None where it does something else with it."""
        own = caller is self.file
        calls: list[cst.Call] = []
        for call in calls_in(caller.module):
            if project.function(caller, call.func) == (self.file, self.function):
                calls.append(call)
        if not own and any(isinstance(c.func, cst.Name) and c.func.value not in caller.imports.names for c in calls):
            return None  # `import *` gives it the name, and may not give it those that the function reads
        mine = {id(node) for call in calls for node in name_nodes(call.func)}
        bound = [one for one in caller.imports.names if one.isidentifier()]  # `from x import *` stands there as "*x"
        names = {one for one in bound if self._is_it(project, caller, one)} | ({self.name} if own else set())
        others = [node for node in name_nodes(caller.module) if node.value in names | {self.name}]
        lines = [line for line in _import_lines(caller) if names & set(_bound_by(line))]
        known = {id(node) for line in lines for node in name_nodes(line)} | {id(self.function.name)} | mine
        if any(id(node) not in known and (node.value in names or not self._is_other(caller)) for node in others):
            return None
        if own and _mentions(caller, self.name) != len(calls) + 1:
            return None
        edits = Edits()
        needed: set[str] = set()
        from_there = {one for line in lines for one in _bound_by(line)}
        for call in calls:
            new = self._instead(caller, call, value, needed, from_there)
            if new is None:
                return None
            edits.expressions[call] = new
        for line in lines if not own else ():
            left = _without(line, names, needed if calls else set())
            if left is None:
                return None
            edits.lines[line] = [left]
        return edits

    def _is_it(self, project: Project, caller: ParsedFile, name: str) -> bool:
        """Whether a name that a file imports is the function; what `import *` stands for there is no name."""
        return name.isidentifier() and project.function(caller, cst.Name(name)) == (self.file, self.function)

    def _is_other(self, caller: ParsedFile) -> bool:
        """Whether the function's name is that of something else in a file."""
        return any(one.name == self.name for one in read_bindings(caller.module)) and caller is not self.file

    def _instead(
        self, caller: ParsedFile, call: cst.Call, value: cst.Call, needed: set[str], from_there: set[str]
    ) -> cst.BaseExpression | None:
        """What a call makes, written where it stands; `needed` gets the names that are to be imported for that, where
        they are not known `from_there` yet.
        """
        given = bound_arguments(self.function, call)
        if given is None or caller.may_have_comment(call) or not _may_stand(given, value):
            return None
        read = names_in(value) - set(given)
        names: dict[str, cst.BaseExpression] = {}
        if caller is not self.file and isinstance(call.func, cst.Attribute):
            there = _names_there(self.file, caller, read, call.func.value)
            if there is None:
                return None
            names = there
        elif caller is not self.file:
            bound = [one.name for one in read_bindings(caller.module)]
            for name in read:
                origin = self.file.imports.names.get(name)
                same = [one for one, of in caller.imports.names.items() if of == origin and bound.count(one) == 1]
                if origin is not None and (not same or name in self.file.imports.relative):
                    return None
                if origin is not None:
                    names[name] = cst.Name(same[0])
                elif name in self.file.names_at_top and bound.count(name) == (name in from_there):
                    needed.add(name)
                elif name in bound:
                    return None
        written = {name for name in read if name not in names} | set().union(*map(names_in, names.values()), set())
        around = _around(caller, call)
        if any(owns(one, name) for one in around for name in written if one is not caller.module):
            return None
        return substituted(self.file, value, {**given, **names})


def _said(function: cst.FunctionDef) -> cst.BaseExpression | None:
    """The expression that a function consists of, which it may give a name first."""
    value = returned(function)
    if value is not None or not isinstance(function.body, cst.IndentedBlock):
        return value if not read_bindings(function.body) else None
    body = list(function.body.body)
    if len(body) > 1 and is_docstring(body[0]):
        del body[0]
    smalls = [line.body[0] for line in body if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1]
    if len(body) != 2 or len(smalls) != 2:
        return None
    first, last = smalls
    if not isinstance(first, cst.Assign) or len(first.targets) != 1 or not isinstance(last, cst.Return):
        return None
    target = first.targets[0].target
    same = isinstance(target, cst.Name) and isinstance(last.value, cst.Name) and target.value == last.value.value
    return first.value if same and len(read_bindings(function.body)) == 1 else None


def _around(file: ParsedFile, node: cst.CSTNode) -> list[cst.CSTNode]:
    found: list[cst.CSTNode] = []
    above = file.parents.get(node)
    while above is not None:
        found.append(above)
        above = file.parents.get(above)
    return found


def _import_lines(file: ParsedFile) -> list[cst.SimpleStatementLine]:
    lines = [line for line in file.module.body if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1]
    return [line for line in lines if isinstance(line.body[0], cst.ImportFrom)]


def _bound_by(line: cst.SimpleStatementLine) -> list[str]:
    """The names that `from module import ...` gives, those of the module or others."""
    small = line.body[0]
    aliases = small.names if isinstance(small, cst.ImportFrom) and not isinstance(small.names, cst.ImportStar) else ()
    return [_local(one) for one in aliases]


def _local(alias: cst.ImportAlias) -> str:
    name = alias.asname.name if alias.asname is not None else alias.name
    return name.value if isinstance(name, cst.Name) else ""


def _without(line: cst.SimpleStatementLine, names: set[str], needed: set[str]) -> cst.SimpleStatementLine | None:
    """An import without some names, and with others; None where nothing would be imported."""
    small = cst.ensure_type(line.body[0], cst.ImportFrom)
    if isinstance(small.names, cst.ImportStar):
        return None
    stay = [one for one in small.names if _local(one) not in names]
    known = {_local(one) for one in stay}
    stay += [cst.ImportAlias(cst.Name(name)) for name in sorted(needed - known)]
    if not stay:
        return None
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    stay = [one.with_changes(comma=comma) if isinstance(one.comma, cst.MaybeSentinel) else one for one in stay[:-1]] + [
        stay[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    ]
    return line.with_changes(body=[small.with_changes(names=stay)])


def _mentions(file: ParsedFile, name: str) -> int:
    return file.written.count(name)


def _names_there(
    file: ParsedFile, caller: ParsedFile, names: set[str], module: cst.BaseExpression
) -> dict[str, cst.BaseExpression] | None:
    """What names of a file are in one that knows it as `module`; None where one has no name there."""
    bound = [one.name for one in read_bindings(caller.module)]
    head = (dotted(module) or "").partition(".")[0]
    if bound.count(head) != 1:
        return None
    found: dict[str, cst.BaseExpression] = {}
    for name in names:
        origin = file.imports.names.get(name)
        if origin is not None:
            same = [one for one, of in caller.imports.names.items() if of == origin and bound.count(one) == 1]
            if not same or name in file.imports.relative:
                return None
            found[name] = cst.Name(same[0])
        elif name in file.names_at_top:
            found[name] = cst.Attribute(module.deep_clone(), cst.Name(name))
        elif name in bound:
            return None
    return found
