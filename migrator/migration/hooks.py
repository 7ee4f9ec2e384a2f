"""Hooks of the programs of a group: those that become callbacks, and those that are left out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import libcst as cst

from migrator.emit.beside import respelled
from migrator.emit.file import FileChanges
from migrator.migration.everything import mentions_of_functions
from migrator.migration.state import GroupState, Rewriter, is_within
from migrator.program.classes import find_class
from migrator.program.parsed import Blocked, ParsedFile, name_nodes
from migrator.program.training import TrainingProgram, path_to
from migrator.rules.callbacks import as_callback
from migrator.rules.hooks import Hooks, SpecHooks
from migrator.rules.iterators import Unpacked, without_element


def leave_out_iterators(state: GroupState) -> None:
    """Hooks that initialize the iterators of input functions are left out where these are unpacked and made."""
    found: dict[cst.FunctionDef, list[Unpacked]] = {}
    for _, hooks in state.all_hooks():
        for one in hooks.iterators:
            known = found.setdefault(one.initializer.maker, [])
            if not any(one.call is other.call for other in known):
                known.append(one)
    for several in found.values():
        state.guarded(several[0].file, partial(_leave_out_iterator, state, several))


def _leave_out_iterator(state: GroupState, unpacked: Sequence[Unpacked]) -> None:
    initializer = unpacked[0].initializer
    path, maker = initializer.file.path, initializer.maker
    if any(f.path not in state.changes for f in (initializer.file, initializer.owner[0])):
        raise Blocked("TFM165", unpacked[0].call, "the file that makes this hook is not migrated")
    left_out = [node for _, hooks in state.all_hooks() for node in hooks.nodes]
    for one in unpacked:
        for name in name_nodes(one.scope):
            if name.value == one.hook.value and name is not one.hook and not is_within(name, left_out):
                raise Blocked("TFM165", name, "the hook is dropped, but it is used here too")
    own = [one.call.func for one in unpacked]
    others = [
        (file, node)
        for file, node in mentions_of_functions(state.project, state.everything, {maker})
        if not any(node is func for func in own)
    ]
    state.setters |= {line for _, line in initializer.setters}
    for one in unpacked:
        target: cst.BaseExpression
        if others:
            hidden = one.hook.with_changes(value="_")
            target = one.target.with_deep_changes(one.hook, value=hidden.value)
        else:
            target = without_element(one.target, initializer.index)
        state.changes[one.file.path].expressions[one.target] = target
    if others:
        where, node = others[0]
        state.for_both |= {function for function, _ in initializer.setters}
        state.write_for_both(path, maker)
        home, owner = initializer.owner
        state.changes[home.path].statements[owner] = [respelled(owner, home.imports)[0]]
        message = (
            f"`{maker.name.value}` is also used at {where.path}:{where.position(node)[0]}: it supports "
            "both TensorFlow versions"
        )
        state.remarks[path].append(Blocked("TFM615", maker.name, message))
        return
    changes = state.changes[path]
    changes.statements[initializer.made] = []
    state.gone_hooks.append(initializer.made)
    for returned in initializer.returns:
        changes.expressions[returned] = without_element(returned, initializer.index)
    for _, hooks in state.all_hooks():
        if any(one in unpacked for one in hooks.iterators):
            hooks.classes.append(initializer.owner)


def write_hooks(state: GroupState) -> None:
    """Hooks that stay become callbacks: their classes, the calls that make them, and the lists that hold them."""
    own: dict[cst.ClassDef, tuple[TrainingProgram, ParsedFile, set[str], list[cst.Call]]] = {}
    for program in state.group.programs:
        for phase, hooks in program.hooks:
            for hook in hooks.own:
                _, _, phases, calls = own.setdefault(hook.node, (program, hook.file, set(), []))
                phases.add(phase)
                calls.append(hook.call)
            state.guarded(program.file, partial(_write_lists, state, hooks))
    for node, (program, file, phases, calls) in own.items():
        state.guarded(file, partial(_write_callback, state, program, file, node, phases, calls))


def _write_callback(
    state: GroupState,
    program: TrainingProgram,
    file: ParsedFile,
    node: cst.ClassDef,
    phases: set[str],
    calls: list[cst.Call],
) -> None:
    if file.path not in state.changes:
        raise Blocked("TFM162", None, f"`{node.name.value}` is a hook, but its file is not migrated")
    known = {id(call.func) for call in calls} | {id(node.name)}
    for where in state.group.files.values():
        for name in name_nodes(where.module):
            if name.value == node.name.value and id(name) not in known and not path_to(node, name):
                found = find_class(state.project, where, where.module, name)
                if found is not None and found[1] is node:
                    message = f"`{node.name.value}` becomes a callback, but is used here too"
                    state.problems[where.path].append(Blocked("TFM162", name, message))
    new = as_callback(file, node, phases, program.tensors)
    state.changes[file.path].statements[node] = [new.visit(state.rewriters[file.path])]  # type: ignore[list-item]


def _write_lists(state: GroupState, hooks: Hooks) -> None:
    """What holds hooks, without those that are left out, and the new calls of stock hooks."""
    for file, call, stock in hooks.made:
        changes, rewriter = _changes_of(state, file, call)
        name = state.training[file.path].helper(stock.name, stock.text)
        texts = []
        for key, value in stock.arguments.items():
            text = stock.defaults[key] if value is None else file.code(value.visit(rewriter))  # type: ignore[arg-type]
            texts.append(f"{key}={text}")
        changes.expressions[call] = cst.parse_expression(f"{name}({', '.join(texts)})")
        changes.needs |= stock.needs
    for file, line in (*hooks.gone, *hooks.kept_in):
        changes, _ = _changes_of(state, file, line)
        block = file.parents.get(line)
        body = block.body if isinstance(block, (cst.Module, cst.IndentedBlock)) else ()
        gone = {id(statement) for _, statement in (*hooks.gone, *hooks.kept_in)}
        stays = any(id(one) not in gone and changes.statements.get(one) != [] for one in body)
        changes.statements[line] = [] if stays else [cst.SimpleStatementLine([cst.Pass()])]
    for file, display, stay in hooks.shorter:
        changes, rewriter = _changes_of(state, file, display)
        elements = [e.visit(rewriter) for e in stay]
        if elements:
            last = elements[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)  # type: ignore[union-attr]
            one = isinstance(display, cst.Tuple) and len(elements) == 1
            elements[-1] = last.with_changes(comma=cst.Comma()) if one else last
        changes.expressions[display] = display.with_changes(elements=elements)
    for file, whole, part in hooks.instead:
        changes, rewriter = _changes_of(state, file, whole)
        changes.expressions[whole] = part.visit(rewriter)  # type: ignore[assignment]


def _changes_of(state: GroupState, file: ParsedFile, node: cst.CSTNode) -> tuple[FileChanges, Rewriter]:
    if file.path not in state.changes:
        raise Blocked("TFM162", None, f"hooks are made in `{file.path}`, which is not migrated")
    return state.changes[file.path], state.rewriters[file.path]


def remove_hooks_of_specs(state: GroupState, file: ParsedFile, program: TrainingProgram, hooks: SpecHooks) -> None:
    """Classes of hooks that only EstimatorSpecs named go with these."""
    for where, node in hooks.classes:
        if where is not file:
            continue
        own = {id(name) for part in (node, program.model_fn) for name in name_nodes(part)}
        if not any(n.value == node.name.value and id(n) not in own for n in name_nodes(file.module)):
            state.changes[file.path].moved.add(node)
