"""Serving functions that are made in the argument of an export get a name, on a line before.

What reads and writes exports replaces the line that makes a serving function, and so wants one of its own.
"""

from __future__ import annotations

import libcst as cst

from migrator.emit.names import free
from migrator.names.bare import says
from migrator.program.calls import calls_in
from migrator.program.parsed import ParsedFile
from migrator.program.spread import Edit, Kept, Written

_MAKERS = (
    "tf.estimator.export.build_parsing_serving_input_receiver_fn",
    "tf.estimator.export.build_raw_serving_input_receiver_fn",
)
_EXPORTS = ("export_savedmodel", "export_saved_model")
_EXPORTERS = ("tf.estimator.FinalExporter", "tf.estimator.LatestExporter", "tf.estimator.BestExporter")
_NAME = "serving_input_receiver_fn"


def may_make_servings(text: str) -> bool:
    """Whether a text may hold such an export."""
    return says(text, "serving_input_receiver_fn(")


def with_named_servings(file: ParsedFile, taken: set[str]) -> list[Edit]:
    """The edits that give such serving functions names, which are free in the file."""
    if not may_make_servings(file.text):
        return []
    edits: list[Edit] = []
    for call in calls_in(file.module):
        if file.imports.resolve(call.func) not in _MAKERS or not _is_of_export(file, call):
            continue
        line = _line_of(file, call)
        if line is None:
            continue
        name = free(_NAME, taken)
        taken.add(name)
        (begin, end), (start, _) = file.range(call), file.range(line)
        indent = file.text[file.text.rfind("\n", 0, start) + 1 : start]
        made = (Written(f"{name} = ", begin), Kept(begin, end), Written(f"\n{indent}", begin))
        edits += [Edit(start, start, made), Edit(begin, end, (Written(name, begin),))]
    return edits


def _is_of_export(file: ParsedFile, call: cst.Call) -> bool:
    """Whether a call is an argument of an export or of an exporter."""
    arg = file.parents[call]
    around = file.parents[arg] if isinstance(arg, cst.Arg) else None
    if not isinstance(around, cst.Call) or around.func is arg:
        return False
    method = around.func.attr.value if isinstance(around.func, cst.Attribute) else ""
    return method in _EXPORTS or file.imports.resolve(around.func) in _EXPORTERS


def _line_of(file: ParsedFile, call: cst.Call) -> cst.SimpleStatementLine | None:
    """The line of one statement that a call stands in, outside of lambdas, comprehensions and conditions."""
    node: cst.CSTNode = call
    while not isinstance(node, (cst.BaseStatement, cst.SimpleStatementSuite, cst.Module)):
        if isinstance(node, (cst.Lambda, cst.BaseComp, cst.IfExp, cst.BooleanOperation)):
            return None
        node = file.parents[node]
    return node if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1 else None
