"""Values that Python can say in a roundabout way, dicts, tables, classes and attributes: what each comes down to.

As in `plain_lines`, every function finds those of one kind in a file, and gives the statements that mean the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Union, cast

import libcst as cst

from migrator.names.bindings import bound_in, dotted, names_changed, read_bindings
from migrator.names.free import free
from migrator.program.calls import calls_in, functions_in, is_identifier, nodes_in
from migrator.program.parsed import ParsedFile, name_nodes, names_in
from migrator.program.plain_lines import Lines, Names, bare, is_text, lines_of
from migrator.walking import of_kinds

_Scope = Union[cst.Module, cst.FunctionDef]


def attributes_said(file: ParsedFile) -> Lines:
    """What a method that is told the mode gives attributes, by a line each, for `a = self.b = c` and `setattr`."""
    found: Lines = {}
    for owner in [one for one in file.module.body if isinstance(one, cst.ClassDef)]:
        for method in [one for one in owner.body.body if isinstance(one, cst.FunctionDef)]:
            if "mode" not in {one.name.value for one in method.params.params}:
                continue
            for node in nodes_in(method.body):
                if file.may_have_comment(node):
                    continue
                if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1:
                    said = _attributes_apart(file, node.body[0])
                elif isinstance(node, cst.If):
                    said = _truth_given(node)
                else:
                    continue
                if said:
                    lines = [cst.SimpleStatementLine([one]) for one in said]
                    above = node.leading_lines
                    found[node] = [lines[0].with_changes(leading_lines=above), *lines[1:]]
    return found


def _attributes_apart(file: ParsedFile, small: cst.BaseSmallStatement) -> list[cst.Assign]:
    if isinstance(small, cst.Assign) and len(small.targets) > 1:
        targets = [one.target for one in small.targets]
        names = [one for one in targets if isinstance(one, cst.Name)]
        others = [one for one in targets if isinstance(one, cst.Attribute) and isinstance(one.value, cst.Name)]
        if not others or len(names) + len(others) != len(targets) or len(names) > 1:
            return []
        if names and names[0].value in {name for one in others for name in names_in(one)}:
            return []
        first = names[0] if names else others[0]
        again = first if calls_in(small.value) else small.value  # a comparison says more than a name of it
        rest = [one for one in targets if one is not first]
        return [
            cst.Assign([cst.AssignTarget(first)], small.value),
            *(cst.Assign([cst.AssignTarget(one)], again.deep_clone()) for one in rest),
        ]
    call = small.value if isinstance(small, cst.Expr) else None
    if not isinstance(call, cst.Call) or dotted(call.func) != "setattr" or len(call.args) != 3:
        return []
    if any(arg.star or arg.keyword is not None for arg in call.args) or "setattr" in file.names_at_top:
        return []
    of, name, value = (arg.value for arg in call.args)
    said = name.evaluated_value if isinstance(name, cst.SimpleString) else None
    if not isinstance(of, cst.Name) or not isinstance(said, str) or not is_identifier(said) or said.startswith("__"):
        return []
    return [cst.Assign([cst.AssignTarget(cst.Attribute(of, cst.Name(said)))], value)]


def _truth_given(node: cst.If) -> list[cst.Assign]:
    """`if mode == TRAIN: self.a = True`, `else: self.a = False`: what is compared."""
    ways = [node.body, node.orelse.body if isinstance(node.orelse, cst.Else) else None]
    lines = [way.body for way in ways if isinstance(way, cst.IndentedBlock)]
    smalls = [
        one.body[0] for line in lines for one in line if isinstance(one, cst.SimpleStatementLine) and len(one.body) == 1
    ]
    given = [one for one in smalls if isinstance(one, cst.Assign) and len(one.targets) == 1]
    if len(lines) != 2 or any(len(line) != 1 for line in lines) or len(given) != 2:
        return []
    first, second = given
    values = [dotted(one.value) for one in given]
    target = first.targets[0].target
    if not isinstance(target, cst.Attribute) or not target.deep_equals(second.targets[0].target):
        return []
    if not isinstance(node.test, cst.Comparison) or values != ["True", "False"]:
        return []
    return [first.with_changes(value=bare(node.test))]


def tables_of_classes(file: ParsedFile, elsewhere: Callable[[str], bool]) -> tuple[Lines, Names]:
    """`Choices.OPTIMIZERS`, a table that a class has and nobody changes: a name of the module.

    The class stays, with what else it has; a class that was there for the table goes.
    """
    lines: Lines = {}
    names: Names = {}
    taken = {one.name for one in read_bindings(file.module)} | names_in(file.module)
    attributes = of_kinds(file.module, cst.Attribute)
    bound = Counter(one.name for one in read_bindings(file.module) if one.scope is None)
    for owner in [one for one in file.module.body if isinstance(one, cst.ClassDef)]:
        name = owner.name.value
        own = Counter(one.name for one in bound_in(owner))
        if bound[name] != 1 or owner.decorators or not isinstance(owner.body, cst.IndentedBlock) or elsewhere(name):
            continue
        tables: list[cst.SimpleStatementLine] = []
        for line in owner.body.body:
            small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
            target = small.targets[0].target if isinstance(small, cst.Assign) and len(small.targets) == 1 else None
            if not isinstance(small, cst.Assign) or not isinstance(target, cst.Name) or own[target.value] != 1:
                continue
            table = target.value
            reads = [one for one in attributes if one.attr.value == table]
            ours = all(dotted(one.value) == name and isinstance(file.parents.get(one), cst.Subscript) for one in reads)
            if (
                not reads
                or not ours
                or elsewhere(table)
                or not _is_table(file, small.value)
                or table in taken - {table}
            ):
                continue
            if names_in(small.value) & set(own) or sum(one.value == table for one in name_nodes(file.module)) != 1:
                continue
            tables.append(cast("cst.SimpleStatementLine", line))
            new = free(table, (taken - {table}) | set(file.imports.names))
            taken.add(new)
            names.update({one: cst.Name(new) for one in reads})
        if tables:
            rest = [line for line in owner.body.body if line not in tables and not is_text(line)]
            mentions = [one for one in name_nodes(file.module) if one.value == name and one is not owner.name]
            asked = {next(iter(name_nodes(one))) for one in names if isinstance(one, cst.Attribute)}
            gone = not rest and all(one in asked for one in mentions)
            body = owner.body.with_changes(body=rest or [cst.SimpleStatementLine([cst.Pass()])])
            above = [] if gone else [owner.with_changes(body=body, leading_lines=())]
            first = tables[0].with_changes(leading_lines=owner.leading_lines)
            lines[owner] = [first, *tables[1:], *above]
            return lines, names
    return lines, names


def _is_table(file: ParsedFile, node: cst.BaseExpression) -> bool:
    """Whether an expression is a dict of functions and classes of TensorFlow or of the file, by texts."""
    if not isinstance(node, cst.Dict) or not node.elements or file.may_have_comment(node):
        return False
    for one in node.elements:
        if not isinstance(one, cst.DictElement) or not isinstance(one.key, cst.SimpleString):
            return False
        named = isinstance(one.value, cst.Name) and one.value.value in file.functions
        if not named and not isinstance(one.value, cst.Lambda) and file.imports.tensorflow(one.value) is None:
            return False
    return True


def dicts_whole(file: ParsedFile, is_concerned: Callable[[cst.FunctionDef], bool]) -> Lines:
    """`more = {}`, `more["a"] = b`, then only `f(**more)`: a dict that is written out."""
    found: Lines = {}
    scopes: list[_Scope] = [file.module, *filter(is_concerned, functions_in(file.module))]
    for scope in scopes:
        bound = Counter(one.name for one in bound_in(scope))
        for line in lines_of(scope):
            small = line.body[0] if len(line.body) == 1 else None
            target = small.targets[0].target if isinstance(small, cst.Assign) and len(small.targets) == 1 else None
            block = file.parents.get(line)
            if not isinstance(small, cst.Assign) or not isinstance(target, cst.Name) or bound[target.value] != 1:
                continue
            if not isinstance(small.value, cst.Dict) or not isinstance(block, (cst.Module, cst.IndentedBlock)):
                continue
            entries = _entries_behind(file, block, line, target.value)
            uses = [one for one in name_nodes(scope) if one.value == target.value]
            last = [one for one in uses if isinstance(file.parents.get(one), cst.Arg)]
            starred = len(last) == 1 and getattr(file.parents.get(last[0]), "star", "") == "**"
            if not entries or not starred or len(uses) != len(entries) + 2:
                continue
            elements = [*small.value.elements, *(cst.DictElement(key, value) for key, value in entries.values())]
            plain = [one.with_changes(comma=cst.MaybeSentinel.DEFAULT) for one in elements]
            keys = [one.key for one in plain if isinstance(one, cst.DictElement)]
            said = {key.evaluated_value for key in keys if isinstance(key, cst.SimpleString)}
            if len(said) != len(plain):
                continue
            made = small.with_changes(value=cst.Dict(plain))
            found.update({one: [] for one in entries})
            found[line] = [line.with_changes(body=[made])]
            return found
    return found


def _entries_behind(
    file: ParsedFile, block: cst.Module | cst.IndentedBlock, line: cst.SimpleStatementLine, name: str
) -> dict[cst.BaseStatement, tuple[cst.BaseExpression, cst.BaseExpression]]:
    """The lines directly behind one that each give a dict of a name an entry, with key and value."""
    found: dict[cst.BaseStatement, tuple[cst.BaseExpression, cst.BaseExpression]] = {}
    lines = list(block.body)
    for one in lines[lines.index(line) + 1 :]:
        small = one.body[0] if isinstance(one, cst.SimpleStatementLine) and len(one.body) == 1 else None
        target = small.targets[0].target if isinstance(small, cst.Assign) and len(small.targets) == 1 else None
        if not isinstance(target, cst.Subscript) or dotted(target.value) != name or file.may_have_comment(one):
            break
        index = target.slice[0].slice if len(target.slice) == 1 else None
        key = index.value if isinstance(index, cst.Index) else None
        if not isinstance(small, cst.Assign) or not isinstance(key, cst.SimpleString) or name in names_in(small.value):
            break
        found[one] = key, small.value
    return found


def classes_chosen(file: ParsedFile, is_concerned: Callable[[cst.FunctionDef], bool]) -> Lines:
    """`if a: kind = Adam`, `else: kind = Ftrl`, then `kind(rate)` in the next lines: the calls, in the branches."""
    found: Lines = {}
    for function in filter(is_concerned, functions_in(file.module)):
        bound = Counter(one.name for one in bound_in(function))
        for node in of_kinds(function.body, cst.If):
            block, kinds = file.parents.get(node), _kinds(file, node)
            if kinds is None or not isinstance(block, cst.IndentedBlock) or calls_in(node.test):
                continue
            name, count = kinds
            uses = [one for one in name_nodes(function) if one.value == name]
            call = next((above for one in uses if isinstance(above := file.parents.get(one), cst.Call)), None)
            lines = list(block.body)
            after = lines[lines.index(node) + 1 :]
            at = next((i for i, one in enumerate(after) if call is not None and call in nodes_in(one)), None)
            if call is None or at is None or bound[name] != count or len(uses) != count + 1:
                continue
            line = after[at]
            small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
            if not isinstance(small, (cst.Assign, cst.Return)) or small.value is not call or call.func not in uses:
                continue
            tests = {one for each in _tests_of(node) for one in names_in(each)}
            if names_changed(after[:at]) & tests or file.may_have_comment(small) or any(map(calls_in, _tests_of(node))):
                continue
            found[node] = []
            comments = [*node.leading_lines, *getattr(line, "leading_lines", ())]
            found[line] = [_with_calls(node, small, call).with_changes(leading_lines=comments)]
            return found
    return found


def _kinds(file: ParsedFile, node: cst.If | cst.Else) -> tuple[str, int] | None:
    """The name to which all branches give an optimizer's class of TensorFlow, and how many; None for other branches."""
    line = node.body.body[0] if isinstance(node.body, cst.IndentedBlock) and len(node.body.body) == 1 else None
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    target = small.targets[0].target if isinstance(small, cst.Assign) and len(small.targets) == 1 else None
    if isinstance(small, cst.Raise) and isinstance(node, cst.Else):
        return "", 0
    if not isinstance(small, cst.Assign) or not isinstance(target, cst.Name):
        return None
    if not (file.imports.tensorflow(small.value) or "").endswith("Optimizer"):
        return None
    if isinstance(node, cst.Else):
        return target.value, 1
    rest = _kinds(file, node.orelse) if node.orelse is not None else None
    return (target.value, rest[1] + 1) if rest is not None and rest[0] in ("", target.value) else None


def _tests_of(node: cst.If | cst.Else | None) -> list[cst.BaseExpression]:
    return [node.test, *_tests_of(node.orelse)] if isinstance(node, cst.If) else []


def _with_calls(node: Any, small: cst.Assign | cst.Return, call: cst.Call) -> Any:
    """Branches that call what they gave a name."""
    line = node.body.body[0]
    given = line.body[0]
    if isinstance(given, cst.Assign):
        made = small.with_changes(value=call.deep_clone().with_changes(func=given.value))
        node = node.with_changes(body=node.body.with_changes(body=[line.with_changes(body=[made])]))
    if isinstance(node, cst.If) and node.orelse is not None:
        node = node.with_changes(orelse=_with_calls(node.orelse, small, call))
    return node


__all__ = ["attributes_said", "classes_chosen", "dicts_whole", "tables_of_classes"]
