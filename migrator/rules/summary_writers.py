"""Summaries that a driver writes for TensorBoard itself: `tf.summary.FileWriter` and the messages that it is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import libcst as cst

from migrator.emit.layout import call as layout
from migrator.emit.layout import reindent, statements
from migrator.findings import Severity
from migrator.names.bindings import values_given
from migrator.program.calls import bind, calls_in, classes_in, is_none, number
from migrator.program.parsed import Blocked, ParsedFile
from migrator.program.scopes import path_to
from migrator.rules.rule import Example, Rule
from migrator.rules.site import CallRule, Site, call_text, expression

RULES = (
    Rule(
        "TFM253",
        "summaries that the driver writes for TensorBoard",
        Severity.MIGRATED,
        """
`tf.summary.FileWriter` does not run eagerly. `tf.summary.create_file_writer` takes its place, and
`writer.add_summary(summary, step)` becomes

    with writer.as_default():
        tf.summary.experimental.write_raw_pb(summary.SerializeToString(), step=step)

The messages stay what they are, so the event files hold the same tags, steps and values (read back and compared:
TensorFlow 2.15.1 and 2.21). `tf.summary.scalar` would need the package `tensorboard`, which TensorFlow 2.21 does not
install, and stops the program where it is missing.
""",
        (
            Example('tf.summary.FileWriter("logs")', 'tf.summary.create_file_writer("logs")'),
            Example(
                "tf.summary.FileWriter(folder, flush_secs=30)",
                "tf.summary.create_file_writer(folder, flush_millis=30000)",
            ),
            Example(
                'tf.Summary(value=[tf.Summary.Value(tag="score", simple_value=score)])',
                'tf.compat.v1.Summary(value=[tf.compat.v1.Summary.Value(tag="score", simple_value=score)])',
            ),
        ),
    ),
    Rule(
        "TFM252",
        "the writes of a FileWriter cannot be resolved",
        Severity.MANUAL,
        """
Of what `tf.summary.FileWriter` writes only messages are supported (TFM253): `add_summary` with a `tf.Summary` that is
made in the same function, and a step. Graphs, run metadata, and summaries that come out of a session have no such
counterpart. Write them with the functions of `tf.summary` in `with writer.as_default(step=...)`, or leave them out.
""",
        (Example('tf.summary.FileWriter("logs", graph)', None),),
    ),
)

_PARAMETERS = ("logdir", "graph", "max_queue", "flush_secs", "graph_def", "filename_suffix", "session")
_ONLY_FILE_WRITERS = ("add_summary", "add_graph", "add_event", "add_run_metadata", "add_session_log", "add_meta_graph")
_SESSION_METHODS = ("before_run", "after_run", "after_create_session")


def _writer(site: Site) -> cst.BaseExpression:
    given = site.arguments(_PARAMETERS, "TFM252")
    for key in ("graph", "graph_def", "session"):
        if not is_none(given.get(key)):
            raise Blocked("TFM252", given[key], f"`{key}` of a FileWriter is unsupported")
    if "logdir" not in given:
        raise Blocked("TFM252", site.original, "a FileWriter has no logdir: pass one")
    arguments = [site.code(given["logdir"])]
    if "max_queue" in given:
        arguments.append(f"max_queue={site.code(given['max_queue'])}")
    if "flush_secs" in given:
        seconds = number(given["flush_secs"])
        text = f"{seconds * 1000:.0f}" if seconds is not None else f"1000 * ({site.code(given['flush_secs'])})"
        arguments.append(f"flush_millis={text}")
    if not is_none(given.get("filename_suffix")):
        arguments.append(f"filename_suffix={site.code(given['filename_suffix'])}")
    return expression(call_text("tf.summary.create_file_writer", arguments))


CALLS: dict[str, CallRule] = {"tf.summary.FileWriter": _writer}


@dataclass
class WrittenSummaries:
    """What becomes of statements that write summaries, and what is not understood."""

    statements: dict[cst.CSTNode, list[cst.BaseStatement]] = field(default_factory=dict)
    problems: list[Blocked] = field(default_factory=list)


def written_summaries(file: ParsedFile, rewrite: Callable[[cst.BaseExpression], str]) -> WrittenSummaries:
    """What a file does with FileWriters, `rewrite` giving the new text of an expression.

    Classes of hooks are left alone: what becomes of them is another rule's to say.
    """
    found = WrittenSummaries()
    if "add_" not in file.bare:
        return found
    hooks = [one for one in classes_in(file.module) if _is_hook(one)]
    inside = {call for one in hooks for call in calls_in(one)}
    for call in calls_in(file.module):
        if call in inside or not isinstance(call.func, cst.Attribute) or call.func.attr.value not in _ONLY_FILE_WRITERS:
            continue
        try:
            line, text = _write(file, call, rewrite)
            found.statements[line] = statements(text, file.module)
        except Blocked as problem:
            found.problems.append(problem)
    return found


def _write(
    file: ParsedFile, call: cst.Call, rewrite: Callable[[cst.BaseExpression], str]
) -> tuple[cst.SimpleStatementLine, str]:
    """The line that writes a summary, and its new text."""
    assert isinstance(call.func, cst.Attribute)
    method = call.func.attr.value
    if method != "add_summary":
        raise Blocked("TFM252", call, f"`{method}` of a FileWriter is unsupported")
    around = path_to(file.module, call)
    line = around[-3] if len(around) > 3 else None
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1 or not isinstance(around[-2], cst.Expr):
        raise Blocked("TFM252", call, "this line does more than write a summary: put the call on its own line")
    given = bind(call, ("summary", "global_step"), method, "TFM252")
    summary, step = given.get("summary"), given.get("global_step")
    if summary is None or step is None or is_none(step):
        raise Blocked("TFM252", call, "a summary has no step: pass `global_step`")
    function = next((n for n in reversed(around) if isinstance(n, cst.FunctionDef)), file.module)
    values = values_given(function, summary.value) if isinstance(summary, cst.Name) else [summary]
    if not values or not all(_is_message(file, value) for value in values):
        raise Blocked("TFM252", summary, "cannot tell that this is a `tf.Summary`")
    indent = file.module.default_indent
    message = f"{rewrite(summary)}.SerializeToString()"
    write = layout("tf.summary.experimental.write_raw_pb", [message, f"step={rewrite(step)}"], indent, 2)
    return line, f"with {rewrite(call.func.value)}.as_default():\n{indent}{reindent(write, 1, indent)}\n"


def _is_message(file: ParsedFile, node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and file.imports.tensorflow(node.func) == "tf.Summary"


def _is_hook(node: cst.ClassDef) -> bool:
    return any(isinstance(s, cst.FunctionDef) and s.name.value in _SESSION_METHODS for s in node.body.body)
