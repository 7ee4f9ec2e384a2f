"""Partitioners of variables, which move into the strategy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

import libcst as cst

from migrator.emit.driver.draft import FileNames
from migrator.emit.model_function import EmittedModel
from migrator.ir.values import Value
from migrator.migration.state import GroupState
from migrator.pairing import equal_zip
from migrator.program.calls import string
from migrator.program.known import program_of, values_at
from migrator.program.parsed import Blocked, ParsedFile, names_in
from migrator.program.training import TrainingProgram, bindings, path_to
from migrator.rules import partitioners
from migrator.targets import dtensor
from migrator.targets.plan import Target


def partitioner_of(state: GroupState, program: TrainingProgram, emitted: EmittedModel, strategy: Target) -> str | None:
    """The text of the partitioner that the strategy of a program is given; None where it gets none."""
    own = len(emitted.partitioners)
    found = _partitioners(state, program, emitted)
    if not found or strategy.mesh:
        return None
    if not strategy.parameter_servers:
        file, node, _ = found[0]
        message = "the partitioner is dropped: without parameter servers variables are not split"
        state.remarks[file.path].append(Blocked("TFM703", node, message))
        return None
    texts: list[str | None] = []
    roles = program.model.parameters
    for number, (file, node, made) in enumerate(found):
        names = (roles.config, roles.params) if number < own else (None, None)
        given = partitioners.Given(*names, partial(_param, state, program, node))
        try:
            text = partitioners.for_strategy(node, made, file.imports, file.code, given)
            if text is not None:
                _check_partitioner(program, file, node, text)
        except Blocked as problem:
            # What the params are when the program runs is not asked here: they are copied when the Estimator is made.
            is_known = names_in(made).isdisjoint(name for name in names if name is not None)
            text = partitioners.of_values(_values(state, program, file, node)) if is_known else None
            if text is None:
                state.problems[file.path].append(problem)
                return None
        texts.append(text)
    if any(texts) and (emitted.unsplit or len(set(texts)) > 1):
        scoped = _by_scopes(state, program, emitted, {id(found[i][1]): text for i, text in enumerate(texts)})
        if scoped is not None:
            return scoped
    first: tuple[ParsedFile, cst.CSTNode] = found[0][:2]
    for (file, node, _), text in equal_zip(found, texts):
        if text != texts[0]:
            line = first[0].position(first[1])[0]
            message = (
                f"a second partitioner differs from that of line {line}: ParameterServerStrategy supports "
                "one, which sees shape and type of a variable, not its scope. Use the same in both scopes"
            )
            state.problems[file.path].append(Blocked("TFM702", node, message))
            break
    if texts[0] is not None and own and emitted.unsplit:
        message = "this is outside the partitioner's scope, but the partitioner now splits all variables"
        state.remarks[program.model_file.path].append(Blocked("TFM890", emitted.unsplit[0], message))
    return texts[0]


_OF_SCOPES = '''class {name}(tf.distribute.experimental.partitioners.Partitioner):
{i}"""Splits a variable as the innermost `with` around its layer says, and leaves it whole outside of all of them."""

{i}def __init__(self):
{i}{i}self._given = []

{i}@contextlib.contextmanager
{i}def splitting(self, partitioner):
{i}{i}self._given.append(partitioner)
{i}{i}try:
{i}{i}{i}yield
{i}{i}finally:
{i}{i}{i}self._given.pop()

{i}def __call__(self, shape, dtype, axis=0):
{i}{i}partitioner = self._given[-1] if self._given else None
{i}{i}return partitioner(shape, dtype, axis) if partitioner else [1] * len(shape)
'''


def _by_scopes(
    state: GroupState, program: TrainingProgram, emitted: EmittedModel, texts: Mapping[int, str | None]
) -> str | None:
    """The name of a partitioner that splits by scopes, as TensorFlow 1 did: each `with` of the new model function gives
    it the one of its scope. None where a partitioner is not one of such a scope, or is not known there.
    """
    if program.model_fn in state.split_by_scopes:
        return state.split_by_scopes[program.model_fn]  # of another Estimator
    file = program.model_file
    changes = state.changes[file.path]
    own = {id(given): call for given, call in emitted.split_scopes}
    if (
        file is not program.file
        or own.keys() != texts.keys()
        or changes.statements.get(program.model_fn) != [emitted.node]
    ):
        return None
    if any(text is not None and "cluster" in names_in(cst.parse_expression(text)) for text in texts.values()):
        return None
    names = state.names[file.path]
    indent = file.module.default_indent

    def build(name: str) -> str:
        return _OF_SCOPES.format(name=name, i=indent)

    kind = _named(names, "ScopePartitioner", build("ScopePartitioner"))
    made = _named(names, "scope_partitioner", f"scope_partitioner = {kind}()\n")
    given = {call: text for key, call in own.items() if (text := texts[key]) is not None}
    splitting = _Splitting(made, indent, given)
    new = emitted.node.visit(splitting)
    if splitting.left:
        return None
    changes.statements[program.model_fn] = [cst.ensure_type(new, cst.FunctionDef)]
    changes.helpers += [text for text in (build(kind), f"{made} = {kind}()\n") if text not in changes.helpers]
    changes.needs.add("contextlib")
    state.split_by_scopes[program.model_fn] = made
    return made


def _named(names: FileNames, wanted: str, text: str) -> str:
    """The name of what a file gets once, whatever its programs."""
    if text not in names.helpers:
        names.helpers[text] = names.free(wanted)
    return names.helpers[text]


class _Splitting(cst.CSTTransformer):
    """Adds to each `with` of a scope what splits the variables made in it; `left` are scopes that were not found."""

    def __init__(self, name: str, indent: str, given: Mapping[cst.Call, str]) -> None:
        super().__init__()
        self.name = name
        self.indent = indent
        self.left = dict(given)

    def leave_With(self, original_node: cst.With, updated_node: cst.With) -> cst.With:
        first = original_node.items[0].item
        text = self.left.pop(first, None) if isinstance(first, cst.Call) else None
        if text is None:
            return updated_node
        line = cst.ParenthesizedWhitespace(indent=True, last_line=cst.SimpleWhitespace(self.indent))
        after = cst.ParenthesizedWhitespace(indent=True)
        call = cst.Call(
            cst.parse_expression(f"{self.name}.splitting"),
            [cst.Arg(cst.parse_expression(text), whitespace_after_arg=after)],
            whitespace_before_args=line,
        )
        return updated_node.with_changes(items=[*updated_node.items, cst.WithItem(call)])


def _partitioners(
    state: GroupState, program: TrainingProgram, emitted: EmittedModel
) -> list[tuple[ParsedFile, cst.CSTNode, cst.BaseExpression]]:
    """The partitioners of a program, those of its model_fn first."""
    own = sorted(emitted.partitioners, key=lambda given: program.model_file.position(given[0]))
    return [*((program.model_file, *given) for given in own), *state.partitioners]


def on_mesh(state: GroupState, program: TrainingProgram, emitted: EmittedModel, strategy: Target) -> Target:
    """The mesh of a program: what a partitioner divided over parameter servers is divided over a dimension of it."""
    _check_widths(state, program, emitted, strategy)
    found = _partitioners(state, program, emitted)
    if not found:
        return strategy
    file, node, made = found[0]
    fixed = isinstance(made, cst.Call) and file.imports.resolve(made.func) == "tf.fixed_size_partitioner"
    parts = file.integer(made.args[0].value) if fixed and isinstance(made, cst.Call) and made.args else None
    new, message = strategy, ""
    if strategy.layouts or strategy.by_size:
        message = "the partitioner is dropped: `--layout` says which variables are sharded"
    elif emitted.matrices is None:
        message = "the partitioner is dropped: the names of the layers are unknown; set `--layout`"
    elif state.partitioners or any(one.split is None and (one.table or fixed) for one in emitted.matrices):
        message = "the partitioner is dropped: its variables are known only at run time; set `--layout`"
    elif len({place.code(one) for place, _, one in found}) > 1:
        message = "the partitioner is dropped: there is a second, different one; set `--layout`"
    elif not partitioners.divides_rows(made, file.imports):
        message = "the partitioner is dropped: it splits another axis than the first; set `--layout`"
    else:
        size = strategy.dimensions[0][1] if strategy.dimensions else parts or 1
        chosen = [one for one in emitted.matrices if one.split and (one.table or fixed)]
        names = [one.name for one in chosen if one.rows is not None and one.rows % size == 0]
        whole = ", ".join(f"`{one.name}`" for one in chosen if one.name not in names)
        divided = dtensor.partitioned(strategy, parts, names)
        if divided is None:
            message = "the partitioner's number of parts is known only at run time: set it, as in `--mesh model=2`"
        elif not names or size == 1:
            message = "the partitioner is dropped: no variable is known that it splits evenly; set `--layout`"
        else:
            new = divided
            what = ", ".join(f"`{name}`" for name in names)
            over = f"`{divided.dimensions[0][0]}` of the mesh ({size} parts)"
            message = f"the rows of {what} are sharded over the dimension {over}, as the partitioner split variables"
            if whole:
                message += f"; {whole} of its scope stays unsharded: its rows may not divide by {size} (`--layout`)"
    remark = Blocked("TFM795", node, message)
    if remark not in state.remarks[file.path]:
        state.remarks[file.path].append(remark)
    return new


def _check_widths(state: GroupState, program: TrainingProgram, emitted: EmittedModel, strategy: Target) -> None:
    """Layouts that divide what has a size that is written down, and that their dimension does not divide: a mesh raises
    when it makes the variable.
    """
    sizes = dict(strategy.dimensions)
    for one in emitted.matrices or ():
        axes = next((axes for pattern, axes in strategy.layouts if re.match(pattern, one.name)), ())
        if len(axes) != 2:
            continue
        for axis, size, what in equal_zip(axes, (one.rows, one.columns), ("rows", "columns")):
            if size is None or axis not in sizes or size % sizes[axis] == 0:
                continue
            instead = f"use `{dtensor.UNSHARDED}` for that axis"
            if size == 1:
                message = f"`{one.name}` has only one of its {what}, which `{axis}` cannot divide: {instead}"
            else:
                message = (
                    f"the {size} {what} of `{one.name}` are not divisible by the {sizes[axis]} "
                    f"parts of `{axis}`, so a mesh raises an error: {instead}, or set `--mesh` to a "
                    f"divisor of {size} for `{axis}`"
                )
            state.problems[program.model_file.path].append(Blocked("TFM790", program.model_fn, message))


def _param(state: GroupState, program: TrainingProgram, place: cst.CSTNode, key: str) -> cst.BaseExpression | None:
    """What the Estimator's params hold under a key; None if they do not have it."""
    params = program.params
    if isinstance(params, cst.Name):
        changes = r"\[[^\]]*\]\s*[-+*/]?=(?!=)|\.(?:update|pop|setdefault|clear|popitem)\("
        changed = re.compile(rf"\b{params.value}\s*(?:{changes})")
        known = not any(changed.search(file.bare) for file in state.group.files.values())
        params = program.file.constants.get(params.value) if known else params
    if program.params is None:
        return None
    if isinstance(params, cst.Dict) and all(
        isinstance(e, cst.DictElement) and string(e.key) is not None for e in params.elements
    ):
        held = {string(e.key): e.value for e in params.elements if isinstance(e, cst.DictElement)}
        return held.get(key)
    called = isinstance(params, cst.Call) and isinstance(params.func, cst.Name) and params.func.value == "dict"
    if isinstance(params, cst.Call) and called and all(a.keyword is not None for a in params.args):
        return {a.keyword.value: a.value for a in params.args if a.keyword is not None}.get(key)
    message = f"the partitioner reads `{key}` of `params`, whose value is known only at run time"
    raise Blocked("TFM701", place, message)


def _values(state: GroupState, program: TrainingProgram, file: ParsedFile, node: cst.CSTNode) -> list[Value]:
    """What a partitioner is, each time that the program makes it; nothing where the program is not known in full."""
    evaluated = program_of(program.file, state.project.files)
    return values_at(evaluated, file.home(node)[1] or node) if evaluated.is_complete else []


def _check_partitioner(program: TrainingProgram, file: ParsedFile, node: cst.CSTNode, text: str) -> None:
    """The text moves to a top-level function of the driver's file: it must mean the same there. Raises Blocked."""
    for name in sorted(names_in(cst.parse_expression(text)) - {"tf", "None", "True", "False", "cluster"}):
        around = [n for n in path_to(file.module, node) if isinstance(n, cst.FunctionDef)]
        local = any(name == bound for function in around for bound, n in bindings(function) if n is not function)
        here = {bound for bound, _ in bindings(program.file.module)}
        origins = file.imports.names.get(name), program.file.imports.names.get(name)
        elsewhere = file is not program.file and (origins[0] is None or origins[0] != origins[1])
        own = here | {bound for bound, _ in bindings(file.module)}
        if name in ("int", "len", "max", "min") and not local and name not in own:
            continue
        if local or elsewhere or name not in here:
            message = f"the partitioner reads `{name}`, which the strategy's function in the driver cannot see"
            raise Blocked("TFM701", node, message)
