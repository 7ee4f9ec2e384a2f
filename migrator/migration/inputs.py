"""Input functions of the programs of a group."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import libcst as cst

from migrator.emit.layout import statements
from migrator.emit.names import free
from migrator.migration.state import GroupState
from migrator.program.calls import calls_in, functions_in, is_none
from migrator.program.parsed import Blocked, ParsedFile
from migrator.program.region import reach
from migrator.program.training import Arguments, TrainingProgram
from migrator.rules.arrays import array_inputs, as_function
from migrator.rules.endless import functions_behind, never_end
from migrator.rules.inputs import InputChanges, rewrite_returns, seeded_shuffles
from migrator.rules.iterators import initializable
from migrator.targets.plan import Target


def write_inputs(state: GroupState, path: Path, file: ParsedFile, function: cst.FunctionDef) -> None:
    """An input function returns its dataset, and what it calls is called by its TensorFlow 2 name."""
    rewriter = state.rewriters[path]
    changes = rewrite_returns(function, file.imports, file.functions.keys(), state.setters)
    if function in state.for_both:
        write_for_both(state, file, function, changes)
        return
    for statement, made in changes.functions.items():
        state.changes[path].statements[statement] = [made.visit(rewriter)]  # type: ignore[list-item]
    state.changes[path].moved |= changes.moved
    for node, new in changes.expressions.items():
        if new is None:
            state.changes[path].statements[node] = []
        else:
            replaced = new.visit(rewriter)
            assert isinstance(replaced, cst.BaseExpression)
            state.changes[path].expressions[node] = replaced


def tell_shuffles(state: GroupState, driven: Iterable[tuple[TrainingProgram, Target]]) -> None:
    """Remarks on shuffles with a seed, but for those of data that every program starts once, as an Estimator does."""
    if state.loop.own:
        return
    once: set[cst.CSTNode] = set()
    again: set[cst.CSTNode] = set()
    for program, target in driven:
        for mode, calls in (("train", program.trainings), ("eval", program.evaluations)):
            for arguments in calls:
                given = arguments.get("input_fn")
                if given is None:
                    continue
                found = {*reach(state.project, program.file, given)}
                found |= functions_behind(state.project, program, given, mode)
                (once if _starts_once(state, program, target, arguments, mode) else again).update(found)
    for path, file in state.group.files.items():
        for function in functions_in(file.module):
            if function not in once or function in again:
                known = [one for one in functions_in(function.body) if one in once and one not in again]
                inner = {call for one in known for call in calls_in(one)}
                state.remarks[path] += [one for one in seeded_shuffles(function) if one.node not in inner]


def _starts_once(state: GroupState, program: TrainingProgram, target: Target, arguments: Arguments, mode: str) -> bool:
    """Whether the data of a training or an evaluation are started once only, before the first batch."""
    both = program.train_and_evaluate
    if both is not None and arguments is both.evaluate and program.config.get("save_checkpoints_steps") is not None:
        return False  # every evaluation starts the same dataset
    if state.keras.number == 3:
        return target.alone
    if mode == "train" and target.creates:
        return True
    given = [arguments.get(name) for name in ("steps", "max_steps")]
    told = not all(map(is_none, given)) or (both is not None and arguments is both.evaluate)
    return told and never_end(state.project, program, arguments.get("input_fn"), mode)


def write_for_both(state: GroupState, file: ParsedFile, function: cst.FunctionDef, found: InputChanges) -> None:
    """An input function that returns its dataset in TensorFlow 2, and tensors in TensorFlow 1."""
    new = [value for value in found.expressions.values() if value is not None]
    lines = [line for line, value in found.expressions.items() if value is None]
    at_top = [line for line in function.body.body if line in lines]
    first = at_top[0] if at_top else None
    if found.functions or found.fed or len(new) != 1 or first is None:
        message = "code that stays TensorFlow 1 also uses this input function: give it its own copy"
        raise Blocked("TFM165", function.name, message)
    rewriter = state.rewriters[file.path]
    text = file.code(new[0].visit(rewriter))  # type: ignore[arg-type]
    indent, name = file.module.default_indent, free("eagerly", file.names)
    # What compat.v1.executing_eagerly_outside_functions asks, which TensorFlow 1.15 has not got.
    asked = f"with tf.init_scope():\n{indent}{name} = tf.executing_eagerly()\n"
    scope, check = statements(f"{asked}if {name}:\n{indent}return {text}\n", file.module)
    assert isinstance(check, cst.If) and isinstance(check.body, cst.IndentedBlock)
    body = check.body.with_changes(footer=[cst.EmptyLine(indent=False)])
    rewriter.before[first] = [scope, check.with_changes(body=body)]
    assert isinstance(first, cst.SimpleStatementLine) and isinstance(first.body[0], cst.Assign)
    made = first.body[0].value
    dataset = initializable(made, file.imports)
    if dataset is not None:
        spelled = cst.parse_expression("tf.compat.v1.data.make_initializable_iterator")
        argument = dataset.visit(rewriter)
        assert isinstance(argument, cst.BaseExpression)
        state.changes[file.path].expressions[made] = cst.Call(spelled, [cst.Arg(argument)])


def write_arrays(state: GroupState, path: Path, file: ParsedFile) -> None:
    """Input functions over arrays: `name = numpy_input_fn(...)` becomes a function of that name."""
    found, problems, remarks = array_inputs(file)
    state.problems[path] += problems
    state.remarks[path] += remarks
    for one in found:
        if one.line is not None:
            made = one.call.visit(state.rewriters[path])
            if isinstance(made, cst.Lambda):
                state.changes[path].statements[one.line] = [as_function(one, made.body, file.module)]
