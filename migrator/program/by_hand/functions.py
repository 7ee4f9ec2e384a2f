"""The text of a training by hand as two functions: what makes its batches, and what makes its model."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from migrator.program.by_hand.cluster import check_task
from migrator.program.by_hand.driver import estimator_lines, hooks_of
from migrator.program.by_hand.edits import edited, free_name, moved
from migrator.program.by_hand.staying import check_names, lines_that_stay
from migrator.program.by_hand.training import Line, Training, value_of
from migrator.program.parsed import ParsedFile, names_in
from migrator.program.scopes import bindings, path_to
from migrator.program.spread import Written

_JOIN = '''\
def {name}(*batches):
    """Returns the batches that the towers drew for one step as one."""
    return {tf}.nest.map_structure(lambda batch: {tf}.reshape(batch, [-1, *batch.shape[2:]]), batches)
'''


def _of_towers(training: Training, dataset: str, join: str) -> str:
    """A dataset whose batches are those of all towers together, where each of them draws one."""
    if not training.towers or training.whole:
        return dataset
    return f"{dataset}.batch({training.towers}, drop_remainder=True).map({join})"


def written(training: Training, data: list[Line], model: list[Line]) -> ParsedFile:
    """The file as the Estimator program that it is; `data` and `model` are the lines of its two functions."""
    file, indent = training.file, training.file.module.default_indent
    tf = training.tensorflow
    training.hooks = hooks_of(training)
    stays = lines_that_stay(training, data, model)
    check_names(training, stays)
    taken = {name for line in stays for name in line.binds}
    taken |= {name for name, _ in bindings(training.scope)} - {n for line in training.lines for n in line.binds}
    local = taken if isinstance(training.scope, cst.FunctionDef) else set()
    functions: list[list[Written]] = []
    free: set[str] = set()
    anchor = file.range(training.call)[0]
    join = free_name(training, "join_batches")
    if training.towers and not training.whole:
        text = _JOIN.format(name=join, tf=tf).replace("    ", indent)
        functions.append([Written(text, anchor)])
        free |= names_in(cst.parse_expression(training.towers))
    if training.generator:
        name = free_name(training, "train_batches")
        kept = [moved(training, one, indent) for one in training.generator]
        functions.append([Written(f"def {name}():\n", anchor), *_closed_up(kept)])
        free |= {name for one in training.generator for name in names_in(one)}
        specs = ", ".join(f"{tf}.{spec}" for spec in training.specs)
        training.dataset = f"{tf}.data.Dataset.from_generator({name}, output_signature=({specs}))"
    if training.input_fn is None:
        name = free_name(training, "train_input_fn")
        lines = [line for line in data if line not in stays]
        check_task(training, data, training.dataset)
        body = [moved(training, line.node, indent) for line in lines]
        last = value_of(lines[-1].node) if lines and lines[-1].binds == {training.dataset} else None
        if last is not None:
            comments = [one for one in body.pop().text.split("\n") if one.strip().startswith("#")]
            body += [Written("".join(f"{one}\n" for one in comments), anchor)]
        returned = training.dataset if last is None else training.file.code(last)
        functions.append(
            [
                Written(f"def {name}():\n", anchor),
                *_closed_up(body),
                Written(f"{indent}return {_of_towers(training, returned, join)}\n", anchor),
            ]
        )
        free |= set().union(names_in(cst.parse_expression(training.dataset)), *(line.mentions for line in lines))
        input_text = name
    else:
        check_task(training, [], training.input_fn)
        input_text = f"lambda: {_of_towers(training, training.input_fn, join)}"
    check_task(training, model)
    model_name = free_name(training, "model_fn")
    lines = [line for line in model if line not in stays]
    spec = f"return {tf}.estimator.EstimatorSpec(mode, loss={training.loss}, train_op={training.train_op})\n"
    functions.append(
        [
            Written(f"def {model_name}({training.features}, {training.labels}, mode):\n", anchor),
            *_closed_up([_without_wrapper(training, line, indent) for line in lines]),
            Written(f"{indent}{spec}", anchor),
        ]
    )
    free |= set().union(*(line.mentions for line in lines)) if lines else set()
    inner = bool(free & local)
    return edited(training, functions, inner, stays, estimator_lines(training, tf, model_name, input_text))


def _without_wrapper(training: Training, line: Line, indent: str) -> Written:
    """A line of the model_fn, without the wrapper of its optimizer that makes workers wait for each other."""
    node = line.node
    if training.synchronous is not None and path_to(node, training.synchronous):
        inner = training.synchronous.args[0].value
        small = node.body[0] if isinstance(node, cst.SimpleStatementLine) else None
        if isinstance(small, cst.Assign) and small.value is training.synchronous and isinstance(inner, cst.Name):
            target = small.targets[0].target
            if isinstance(target, cst.Name) and target.value == inner.value:
                return Written("", training.file.range(node)[0])
        new = node.deep_replace(training.synchronous, inner)
        assert isinstance(new, cst.BaseStatement)
        node = new
    text = moved(training, node, indent)
    return text if node is line.node else Written(text.text, training.file.range(line.node)[0])


def _closed_up(pieces: list[Written]) -> list[Written]:
    """The lines of a function without blank ones at its beginning."""
    pieces = [piece for piece in pieces if piece.text]
    return [replace(pieces[0], text=pieces[0].text.lstrip("\n")), *pieces[1:]] if pieces else []
