"""Input functions that return tensors which are always the same become datasets that repeat them.

`input_fn=lambda: input_fn(df)` of a function that returns `tf.constant(...)` and the like is one batch, over and over:
`input_fn=lambda: tf.data.Dataset.from_tensors(input_fn(df)).repeat()`. The function itself stays as it is. Whether its
tensors are always the same, the evaluator says: of what it calls of TensorFlow, all computes from its arguments alone.
"""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from migrator.ir.machine import Arguments, TooMuch
from migrator.ir.program import METHODS, Graph, called, parameters_of
from migrator.ir.values import Function, Partial, Value
from migrator.names.bare import says
from migrator.names.pure import PURE
from migrator.program.calls import calls_in
from migrator.program.known import program_of, values_at
from migrator.program.parsed import ParsedFile
from migrator.program.spread import Edit, Kept, Written
from migrator.query.learn import is_learn

_SPECS = ("tf.estimator.TrainSpec", "tf.estimator.EvalSpec")
_METHODS = ("train", "evaluate")
_CONSTANT = frozenset(
    f"tf.{name}"
    for name in (
        *("SparseTensor", "cast", "concat", "constant", "convert_to_tensor", "identity", "one_hot", "ones", "reshape"),
        *("sparse.SparseTensor", "stack", "to_float", "to_int32", "to_int64", "zeros"),
    )
)


def may_have_constant_inputs(text: str) -> bool:
    """Whether a text may hold input functions that return constants."""
    made = any(says(text, name) for name in ("constant(", "SparseTensor(", "convert_to_tensor("))
    return made and says(text, "input_fn")


def with_constant_inputs(file: ParsedFile, spelled: Callable[[cst.Call], str]) -> list[Edit]:
    """The edits that make datasets of such input functions; `spelled` says how a call's file writes TensorFlow."""
    if not may_have_constant_inputs(file.text):
        return []
    edits = []
    estimators = [one for one in program_of(file).estimators if not is_learn(one.operation.symbol)]
    used = {use.operation.site.node for one in estimators for use in one.uses if use.operation.site}
    for call in calls_in(file.module):
        method = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
        is_spec = file.imports.resolve(call.func) in _SPECS
        if not is_spec and (method not in _METHODS or call not in used):
            continue
        parameters = METHODS[method][0] if not is_spec else ("input_fn", "max_steps" if "Train" in method else "steps")
        given = {
            a.keyword.value if a.keyword else parameters[i]: a.value for i, a in enumerate(call.args) if not a.star
        }
        argument = given.get("input_fn")
        ends = bool(given.keys() & {"steps", "max_steps"}) or "EvalSpec" in (file.imports.resolve(call.func) or "")
        if argument is not None and ends and is_constant(file, argument):
            edits += [Edit(*file.range(argument), pieces_of(file, argument, spelled(call), repeats=True))]
    return edits


def is_constant(file: ParsedFile, argument: cst.BaseExpression) -> bool:
    """Whether an argument is a function whose tensors are the same whenever it is called."""
    program = program_of(file)
    evaluator = program.evaluator
    values = values_at(program, argument)
    if not values or not isinstance(argument, (cst.Lambda, cst.Name, cst.Attribute)):
        return False
    for value in values:
        if not isinstance(value, (Function, Partial)) or parameters_of(value) - {"labels"}:
            return False
        evaluator.work = 0
        try:
            graph = called(evaluator, "input", value, Arguments())
        except (TooMuch, RecursionError):
            return False
        finally:
            evaluator.work = 0
        if not _is_constant(graph) or not _is_element(evaluator.content_of, graph.result):
            return False
    return True


def _is_constant(graph: Graph) -> bool:
    symbols = [effect.operation.symbol for effect in graph.effects]
    return not graph.changes and all(
        name in _CONSTANT or name in PURE or (name.startswith((".", "numpy.", "pandas.")) and not _draws(name))
        for name in symbols
    )


def _draws(name: str) -> bool:
    """Whether a name of a library may be that of something random."""
    return any(word in name for word in ("random", "rand", "shuffle", "sample", "choice", "next"))


def _is_element(content_of: Callable[[Value], object], value: Value) -> bool:
    """Whether a value is a batch of features, or of features and labels, and no list of them or dataset."""
    return getattr(value, "kind", "tuple") == "tuple"


def pieces_of(file: ParsedFile, argument: cst.BaseExpression, tf: str, repeats: bool) -> tuple[Kept | Written, ...]:
    """What stands in the place of such an argument: a function that returns the dataset of one batch."""
    start, end = file.range(argument)
    first = Written(f"lambda: {tf}.data.Dataset.from_tensors(", start)
    last = Written((")" if isinstance(argument, cst.Lambda) else "())") + ".repeat()" * repeats, end)
    kept = Kept(*file.range(argument.body)) if isinstance(argument, cst.Lambda) else Kept(start, end)
    return first, kept, last


__all__ = ["is_constant", "may_have_constant_inputs", "pieces_of", "with_constant_inputs"]
