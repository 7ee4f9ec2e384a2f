"""What nothing uses any more, or what programs never ran: it goes, or stays as it was."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import libcst as cst

from migrator.emit.beside import respelled, respelled_session, respelled_test
from migrator.emit.file import FileChanges, FileRewriter
from migrator.emit.helper import emit_helper
from migrator.emit.mesh import called, helper_on_mesh
from migrator.migration.everything import mentions_by_function, mentions_of_functions
from migrator.migration.state import GroupState, is_within
from migrator.names.imports import dotted
from migrator.program.beside import tests, unused
from migrator.program.calls import classes_in
from migrator.program.classes import find_class, methods_named
from migrator.program.flow import decorators
from migrator.program.helpers import Stays
from migrator.program.own_graphs import runs_own_graph
from migrator.program.parsed import Blocked, ParsedFile
from migrator.program.relevant import importing
from migrator.program.training import path_to
from migrator.targets import dtensor
from migrator.walking import transformed, walk


def leave_beside(state: GroupState) -> list[cst.FunctionDef | cst.ClassDef]:
    """Functions and classes that the programs do not run stay what they are where they would be in the way."""
    roots: list[cst.CSTNode] = [p.model_fn for p in state.group.programs]
    roots += [p.place.function for p in state.group.programs if p.place.function is not None]
    files = state.group.files
    # What drives a program runs, whoever calls it: a test runner, or an entry point that no file names.
    driving = _with_around(files.values(), _own_nodes(state))
    roots += [
        unit
        for file in files.values()
        for unit in file.module.body
        if isinstance(unit, (cst.FunctionDef, cst.ClassDef)) and unit in driving
    ]
    blocking = {
        unit
        for path, units in unused(files.values(), [], roots).items()
        for unit in units
        if is_in_the_way(files[path], unit)
    }
    left = [*_leave_tests(state), *_leave_own_graphs(state)]
    blocking -= set(left)
    if not blocking:
        return left
    mentioning = state.everything.mentioning({unit.name.value for unit in blocking})
    # A file that does not import one of these, through whatever files, means another thing by the name.
    users = importing(state.everything.imported, files)
    others = [file for file in mentioning if file.path not in files and file.path in users]
    found = []
    for path, units in unused(files.values(), others, roots).items():
        for unit in units:
            if unit in blocking:
                new, remarks = respelled(unit, files[path].imports)
                state.changes[path].statements[unit] = [new]
                state.remarks[path] += remarks
                found.append(unit)
    return [*left, *found]


def _with_around(files: Iterable[ParsedFile], nodes: Iterable[cst.CSTNode]) -> set[cst.CSTNode]:
    """Some nodes, and all that is around them in their files."""
    found = set(nodes)
    for file in files:
        for node in list(found):
            above = file.parents.get(node)
            while above is not None:
                found.add(above)
                above = file.parents.get(above)
    return found


def _leave_tests(state: GroupState) -> list[cst.FunctionDef | cst.ClassDef]:
    """Tests that have nothing to do with the programs stay what they are where they would be in the way."""
    own = _own_nodes(state)
    found: list[cst.FunctionDef | cst.ClassDef] = []
    for path, file in state.group.files.items():
        for test in tests(file):
            if is_in_the_way(file, test) and not any(path_to(test, node) for node in own):
                new, remarks = respelled_test(test, file.imports)
                state.changes[path].statements[test] = [new]
                state.remarks[path] += remarks
                found.append(test)
    return found


def _leave_own_graphs(state: GroupState) -> list[cst.FunctionDef | cst.ClassDef]:
    """Functions that run graphs of their own beside the programs stay what they are where they would be in the way."""
    own = _own_nodes(state)
    found: list[cst.FunctionDef | cst.ClassDef] = []
    for path, file in state.group.files.items():
        for unit in file.functions.values():
            if any(path_to(unit, node) for node in own) or not runs_own_graph(state.project, file, unit):
                continue
            new = respelled_session(unit, file.imports) if is_in_the_way(file, unit) else None
            if new is not None:
                state.changes[path].statements[unit] = [new[0]]
                state.remarks[path] += new[1]
                found.append(unit)
    return found


def _own_nodes(state: GroupState) -> list[cst.CSTNode]:
    """Where the programs' Estimators are made and driven."""
    programs = state.group.programs
    return [node for p in programs for node in (p.place.call, *p.calls)]


def is_in_the_way(file: ParsedFile, unit: cst.FunctionDef | cst.ClassDef) -> bool:
    """Whether something in a function or class cannot be carried over."""
    probe = FileRewriter(file.imports, file.code, definition=file.constants.get)
    probe.prepare(file.module, FileChanges())
    known = len(probe.problems)
    transformed(unit, probe)
    return len(probe.problems) > known


def remove_helpers(state: GroupState) -> None:
    """Helpers that were inlined, and that nothing else mentions, go, and with them their imports."""
    helpers = {helper: file for read in state.read.values() for file, helper in read.helpers}
    helpers |= {maker: file for _, hooks in state.all_hooks() for file, maker in hooks.makers}
    helpers |= {made: file for made, (file, _) in state.inlined.items()}
    makers = set(helpers) & {maker for _, hooks in state.all_hooks() for _, maker in hooks.makers}
    tables = _tables(state, makers)
    unused = _unused_helpers(state, helpers, makers, tables)
    if tables and not makers <= unused.keys():
        # Something else calls one of the functions, which reads the table: it stays with all that it holds.
        tables = {}
        unused = _unused_helpers(state, helpers, makers, tables)
    helpers = unused
    for helper, file in helpers.items():
        if file.path not in state.changes:
            continue
        others = [path for path, imports in _importers(state, helper) if imports and path not in state.changes]
        if all(helper in makers and _is_test(state, path) for path in others):
            state.changes[file.path].moved.add(helper)
            if helper in makers:
                _tell_tests(state, helper)
    for file in state.group.files.values():
        state.changes[file.path].moved |= _declarations(state, file)
    for line, kept in tables.items():
        for path, file in state.group.files.items():
            if line in file.module.body:
                state.changes[path].statements[line] = [] if kept is None else [kept]
                if kept is not None:
                    message = "the functions in this table are dropped: what reads their names now uses these"
                    state.remarks[path].append(Blocked("TFM125", line, message))
    for path, file in state.group.files.items():
        gone = {
            name
            for helper in helpers
            if helper in state.changes[helpers[helper].path].moved
            for importer, names in _importers(state, helper)
            if importer == path
            for name in names
        }
        state.changes[path].statements.update(without_imports(file, gone))
    _remove_classes(state, [*_left_out(state, tables), *state.gone_hooks])


def _declarations(state: GroupState, file: ParsedFile) -> set[cst.FunctionDef]:
    """The abstract methods of a file that only methods define which go: a class without these could not be made."""
    moved = [one for changes in state.changes.values() for one in changes.moved]
    gone = [one for one in moved if isinstance(one, cst.FunctionDef)]
    names = {one.name.value for one in gone}
    found: set[cst.FunctionDef] = set()
    for owner in classes_in(file.module):
        methods = [one for one in owner.body.body if isinstance(one, cst.FunctionDef)]
        for method in methods:
            if method.name.value in names and "abstractmethod" in decorators(method):
                defined = methods_named(state.project, method.name.value)
                if all(one is method or one in gone for _, one in defined):
                    found.add(method)
    return found


def _is_test(state: GroupState, path: Path) -> bool:
    """Whether a file holds tests."""
    return any(tests(file) for file in state.everything.mentioning(["TestCase"]) if file.path == path)


def _tell_tests(state: GroupState, maker: cst.FunctionDef) -> None:
    """Says which tests are about a function that is left out."""
    name = maker.name.value
    told: set[cst.ClassDef] = set()
    for file, node in mentions_of_functions(state.project, state.everything, {maker}):
        test = _test_around(file, node)
        if test is None or test in told:
            continue
        told.add(test)
        message = f"this test is removed: it tests `{name}`, which made hooks and is dropped"
        state.remarks.setdefault(file.path, []).append(Blocked("TFM125", node, message))
        if file.path not in state.group.files:
            state.outside[file.path] = file
            state.problems.setdefault(file.path, [])


def _tables(
    state: GroupState, makers: Collection[cst.FunctionDef]
) -> dict[cst.SimpleStatementLine, cst.SimpleStatementLine | None]:
    """The dicts of functions that make hooks, with what stays of them: the names, where something else reads these."""
    found: dict[cst.SimpleStatementLine, cst.SimpleStatementLine | None] = {}
    for _, hooks in state.all_hooks():
        for file, name in hooks.tables:
            for line in file.module.body:
                if not isinstance(line, cst.SimpleStatementLine) or not _gives(line, name):
                    continue
                mentions = [(f, n) for f, n in _said(state, name) if not is_within(n, [*makers, line])]
                mentions = [(f, n) for f, n in mentions if _test_around(f, n) is None]
                names = _only_the_names(line) if all(_reads_names(f, n) for f, n in mentions) else None
                if not mentions or names is not None:
                    found[line] = names if mentions else None
    return found


def _said(state: GroupState, name: str) -> list[tuple[ParsedFile, cst.BaseExpression]]:
    """The mentions of a name in all files that were given, also as `module.name`."""
    found = []
    for file in state.everything.mentioning([name]):
        finder = _NamedSo(name)
        walk(file.module, finder)
        found += [(file, node) for node in finder.found]
    return found


def _test_around(file: ParsedFile, node: cst.CSTNode) -> cst.ClassDef | None:
    """The class of tests (of the top level of a file) that a node stands in."""
    for unit in file.module.body:
        if isinstance(unit, cst.ClassDef) and path_to(unit, node):
            return unit if any((dotted(base.value) or "").endswith("TestCase") for base in unit.bases) else None
    return None


def _reads_names(file: ParsedFile, node: cst.BaseExpression) -> bool:
    """Whether a mention of a dict is one that would do with its keys: `for key in table`, `key in table`."""
    around = path_to(file.module, node)
    above = around[-2] if len(around) > 1 else None
    if isinstance(above, (cst.For, cst.CompFor)):
        return above.iter is node
    if isinstance(above, cst.ComparisonTarget):
        return isinstance(above.operator, (cst.In, cst.NotIn))
    call = around[-3] if isinstance(above, cst.Arg) and len(around) > 2 else None
    return isinstance(call, cst.Call) and dotted(call.func) in ("list", "sorted", "tuple", "set", "len")


def _only_the_names(line: cst.SimpleStatementLine) -> cst.SimpleStatementLine | None:
    """`name = {key: function, ...}` as `name = (key, ...)`, laid out as it was."""
    small = line.body[0]
    if not isinstance(small, cst.Assign) or not isinstance(small.value, cst.Dict):
        return None
    table = small.value
    elements: list[cst.Element] = []
    for element in table.elements:
        if not isinstance(element, cst.DictElement) or not isinstance(element.key, cst.SimpleString):
            return None
        elements.append(cst.Element(element.key, comma=element.comma))
    if len(elements) == 1 and isinstance(elements[0].comma, cst.MaybeSentinel):
        elements = [elements[0].with_changes(comma=cst.Comma())]
    names = cst.Tuple(
        elements,
        lpar=[cst.LeftParen(whitespace_after=table.lbrace.whitespace_after)],
        rpar=[cst.RightParen(whitespace_before=table.rbrace.whitespace_before)],
    )
    return line.with_changes(body=[small.with_changes(value=names)])


def _left_out(state: GroupState, tables: Iterable[cst.CSTNode]) -> list[cst.CSTNode]:
    """What goes besides functions."""
    found = [*tables, *(node for _, hooks in state.all_hooks() for node in hooks.nodes)]
    for program in state.group.programs:
        found += program.removed
    return found


def _unused_helpers(
    state: GroupState,
    helpers: dict[cst.FunctionDef, ParsedFile],
    makers: Collection[cst.FunctionDef],
    tables: Iterable[cst.CSTNode],
) -> dict[cst.FunctionDef, ParsedFile]:
    """The helpers that nothing mentions but one another and what is left out."""
    left_out = _left_out(state, tables)
    mentions = [
        (file, node, helper)
        for file, node, helper in mentions_by_function(state.project, state.everything, helpers.keys())
        if helper not in makers or _test_around(file, node) is None
    ]
    while True:
        inside = {node for _, node, _ in mentions for other in (*helpers, *left_out) if path_to(other, node)}
        for _, node, helper in mentions:
            _, models = state.inlined.get(helper, (None, []))
            inside |= {node} if any(path_to(model, node) for model in models) else set()
        used = {helper for _, node, helper in mentions if node not in inside and not _is_read(state, node)}
        if not used:
            return helpers
        helpers = {helper: file for helper, file in helpers.items() if helper not in used}
        mentions = [one for one in mentions if one[2] in helpers]


def _remove_classes(state: GroupState, left_out: Sequence[cst.CSTNode]) -> None:
    """Classes of hooks that are left out, and of objects that a model_fn made and makes no more, go with their imports
    where nothing that stays mentions them."""
    classes = {node: file for _, hooks in state.all_hooks() for file, node in hooks.classes}
    classes |= {node: file for read in state.read.values() for file, node in read.classes}
    classes = {node: home for node, home in classes.items() if home.path in state.changes}
    moved = [node for changes in state.changes.values() for node in changes.moved]
    mentions = {node: _mentions_of_class(state, node) for node in classes}
    while True:
        gone = [*classes, *moved, *left_out]
        kept = [
            node
            for node in classes
            if not all(is_within(one, gone) or _is_read(state, one) for _, one in mentions[node])
        ]
        if not kept:
            break
        classes = {node: home for node, home in classes.items() if node not in kept}
    for node, home in classes.items():
        state.changes[home.path].moved.add(node)
        for path, file in state.group.files.items():
            if path == home.path or all(where != path for where, _ in mentions[node]):
                continue
            state.changes[path].statements.update(without_imports(file, {node.name.value}))


def _mentions_of_class(state: GroupState, node: cst.ClassDef) -> list[tuple[Path, cst.CSTNode]]:
    """Where the name of a class means it, by file."""
    found: list[tuple[Path, cst.CSTNode]] = []
    for file in state.everything.mentioning([node.name.value]):
        finder = _NamedSo(node.name.value)
        walk(file.module, finder)
        known = ((one, find_class(state.project, file, file.module, one)) for one in finder.found)
        found += [(file.path, one) for one, meant in known if meant is not None and meant[1] is node]
    return found


def _importers(state: GroupState, helper: cst.FunctionDef) -> list[tuple[Path, list[str]]]:
    """The files that import a function, and under which names."""
    found = []
    for file in state.everything.mentioning([helper.name.value]):
        names = [
            name
            for name in file.imports.names
            if name not in file.functions
            and not name.startswith("*")
            and (known := state.project.function(file, cst.Name(name))) is not None
            and known[1] is helper
        ]
        found.append((file.path, names))
    return found


def write_helper(state: GroupState, stays: Stays) -> None:
    """A helper that stays, without the parameters that told it the mode, and as a mesh wants it."""
    path, name = stays.file.path, stays.node.name.value
    if path not in state.changes:
        why = "takes the mode" if stays.gone else "creates layers of a mesh"
        raise Blocked("TFM122", stays.node.name, f"`{name}` {why}, but its file is not migrated")
    mentions = mentions_of_functions(state.project, state.everything, {stays.node}) if stays.gone else ()
    for file, node in mentions:
        if not _is_planned(state, file, node):
            message = f"`{name}` loses its mode parameter, but is used here too"
            state.problems.setdefault(file.path, []).append(Blocked("TFM122", node, message))
            if file.path not in state.group.files:
                state.outside[file.path] = file
    mine = state.rewriters[path]
    emitted = emit_helper(stays, state.plan, mine, stays.file.constants.get)
    classes = emitted.rewriter.classes
    state.changes[path].statements[stays.node] = [emitted.node]
    state.problems[path] += emitted.rewriter.problems
    if state.asked.mesh and not emitted.rewriter.problems:
        known = called(state.plan.visited)
        gathers = dtensor.gathers(state.asked.layouts)
        new, classes, draws = helper_on_mesh(emitted.node, classes, stays.file.names, stays.node.name, known, gathers)
        state.draws = state.draws or draws
        state.changes[path].statements[stays.node] = [new]
    state.remarks[path] += emitted.rewriter.remarks
    state.partitioners += [(stays.file, node, text) for node, text in emitted.rewriter.partitioners]
    mine.dropped_regularizers += emitted.rewriter.dropped_regularizers
    mine.classes.update(classes)
    mine.needs |= emitted.rewriter.needs


def _is_planned(state: GroupState, file: ParsedFile, node: cst.CSTNode) -> bool:
    """Whether a mention of a helper that stays is in a call of which it is known what goes."""
    functions = {call.func for call in state.plan.calls if isinstance(call, cst.Call)}
    if node in functions or _is_read(state, node):
        return True
    homes = {where.home(function)[1] for where in state.group.files.values() for function in functions}
    gone: list[cst.CSTNode] = [program.model_fn for program in state.group.programs]
    if file.path in state.changes:
        gone += [one for one in state.changes[file.path].moved if isinstance(one, (cst.FunctionDef, cst.ClassDef))]
    return node in homes and any(path_to(function, node) for function in gone)


def _is_read(state: GroupState, node: cst.CSTNode) -> bool:
    """Whether a mention of a helper is in a call that is gone."""
    return any(node in read.mentions for read in state.read.values())


def without_imports(file: ParsedFile, gone: Collection[str]) -> dict[cst.CSTNode, list[cst.BaseStatement]]:
    """The import statements of a file that import names which are gone, without these."""
    new: dict[cst.CSTNode, list[cst.BaseStatement]] = {}
    for line in file.module.body:
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
        if not isinstance(small, cst.ImportFrom) or isinstance(small.names, cst.ImportStar):
            continue
        kept = [a for a in small.names if dotted(a.asname.name if a.asname is not None else a.name) not in gone]
        if len(kept) != len(small.names):
            if kept:
                kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
            new[line] = [line.with_changes(body=[small.with_changes(names=kept)], leading_lines=[])] if kept else []
    return new


class _NamedSo(cst.CSTVisitor):
    """`name` and `module.name` outside imports."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.found: list[cst.BaseExpression] = []

    def visit_ImportAlias(self, node: cst.ImportAlias) -> bool:
        return False

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        if node.attr.value == self.name:
            self.found.append(node)
            return False
        walk(node.value, self)
        return False

    def visit_Name(self, node: cst.Name) -> None:
        if node.value == self.name:
            self.found.append(node)


def _gives(line: cst.SimpleStatementLine, name: str) -> bool:
    """Whether a line is `name = ...`."""
    small = line.body[0]
    return (
        isinstance(small, cst.Assign)
        and len(small.targets) == 1
        and isinstance(small.targets[0].target, cst.Name)
        and small.targets[0].target.value == name
    )
