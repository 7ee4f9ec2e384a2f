"""The text of a file whose training by hand is written out: what stays, what moves, and what takes its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import libcst as cst

from migrator.names.annotated import parse_module
from migrator.pairing import equal_zip
from migrator.program.by_hand.caller import without_server
from migrator.program.by_hand.cluster import is_sync_hook
from migrator.program.by_hand.session import body_of
from migrator.program.by_hand.training import Line, Training
from migrator.program.clusters import Cluster
from migrator.program.parsed import Blocked, ParsedFile
from migrator.program.scopes import path_to
from migrator.program.spread import Edit, Written, spread


def edited(
    training: Training,
    functions: list[list[Written]],
    inner: bool,
    stays: list[Line],
    driver: tuple[str, str],
) -> ParsedFile:
    """The file with two functions before, or `inner` at, the place of the training, and the lines of the driver."""
    file = training.file
    around = path_to(file.module, training.call)
    body = body_of(training)
    own = "" if isinstance(training.scope, cst.Module) else _indent_of(training, body[0])
    anchor = file.range(training.call)[0]
    text, name = driver
    pieces: list[Written] = []
    first = next(i for i, s in enumerate(body) if _touched(training, s, stays))
    for statement in body[first:]:
        pieces += _kept(training, statement, stays, own)
        if path_to(statement, training.session):
            if inner:
                if first and (not pieces or not pieces[-1].text.endswith("\n\n")):
                    pieces.append(Written("\n", anchor))
                for function in functions:
                    pieces += [
                        *(Written(_shifted(one.text, own), one.anchor) for one in function),
                        Written("\n", anchor),
                    ]
            pieces.append(Written(_shifted(text, own), anchor))
            pieces += [moved(training, s, own) for s in training.suffix]
            break
    start = _start_of(training, body[first])
    last = next(s for s in body if path_to(s, training.session))
    end = _start_of(training, body[-1]) + _length(training, body[-1])
    if isinstance(training.scope, cst.Module) or last is not body[-1]:
        end = _start_of(training, body[-1]) + _length(training, body[-1])
    edits = [Edit(start, end, tuple(pieces))]
    if not inner:
        top = around[1]
        before = start if isinstance(training.scope, cst.Module) else _start_of(training, top)  # type: ignore[arg-type]
        blank = Written("\n\n", anchor)
        pieces = [piece for function in functions for piece in (blank, *function)]
        if isinstance(training.scope, cst.Module):
            edits = [Edit(start, end, (*pieces, blank, *edits[0].pieces))]
        else:
            edits.append(Edit(before, before, tuple(pieces)))
    for unused in training.unused:
        begin = _start_of(training, unused)
        edits.append(Edit(begin, begin + _length(training, unused), ()))
    for changed, dropped in training.fewer.items():
        left = [param for param in changed.params.params if param.name.value not in dropped]
        edits.append(_of_parameters(training, changed, left))
    if training.caller is not None:
        edits += _of_caller(training)
    made = spread(file.text, edits)
    try:
        module = parse_module(made.text)
    except cst.ParserSyntaxError:
        raise Blocked("TFM760", training.call, "the blocks around the training cannot be split") from None
    clusters = {}
    if training.server is not None and training.spec is not None:
        texts = [file.code(node) for node in (training.spec, *training.task)]
        clusters[name] = Cluster(texts[0], texts[1], texts[2], training.synchronous is not None)
    towers = frozenset({name}) if training.towers else frozenset()
    said = (*file.said, *training.said)
    written = replace(file, module=module, spread=made, said=said, clusters=clusters, towers=towers)
    for key in ("imports", "_positions", "parents", "functions", "classes", "names", "names_at_top", "constants"):
        written.__dict__.pop(key, None)
    return written


def _of_parameters(training: Training, function: cst.FunctionDef, params: Sequence[cst.Param]) -> Edit:
    """Other parameters of a function that has only plain ones."""
    file, old = training.file, function.params.params
    start = file.range(old[0])[0]
    end = start + sum(len(file.code(param)) for param in old)  # a range leaves defaults and commas out
    text = ", ".join(file.code(param.with_changes(comma=cst.MaybeSentinel.DEFAULT)) for param in params)
    return Edit(start, end, (Written(text, start),))


def _of_caller(training: Training) -> list[Edit]:
    """What becomes of the function that made the server, and of the parameters that it gave it to."""
    caller, file, scope = training.caller, training.file, training.scope
    assert caller is not None and isinstance(scope, cst.FunctionDef)
    params, call = without_server(training)
    edits = []
    if caller.dropped:
        edits.append(_of_parameters(training, scope, params))
    body = body_of(caller.here)
    own = _indent_of(training, body[0])
    stays = [line for line in caller.here.lines if line.kind != "removed"]
    first = next(s for s in body if _touched(training, s, stays))
    pieces: list[Written] = []
    for statement in body[body.index(first) :]:
        pieces += _kept(training, statement, stays, own)
        if path_to(statement, caller.statement):
            anchor = file.range(caller.statement)[0]
            pieces.append(Written(_shifted(file.module.code_for_node(call), own), anchor))
            pieces += [moved(training, one, own) for one in caller.here.suffix]
            break
    start = _start_of(training, first)
    return [*edits, Edit(start, _start_of(training, body[-1]) + _length(training, body[-1]), tuple(pieces))]


def moved(training: Training, node: cst.BaseStatement, indent: str) -> Written:
    """A statement on another level."""
    text = training.file.module.code_for_node(node)
    if '"""' in text or "'''" in text:
        raise Blocked("TFM760", node, "a multi-line string is in code whose indentation changes")
    lines = text.split("\n")
    text = "\n".join(f"{indent}{line}" if line.strip() else "" for line in lines)
    node = training.origins.get(node, node)  # type: ignore[assignment]
    known = node in training.file.parents
    return Written(text, training.file.range(node)[0] if known else 0)


def free_name(training: Training, wanted: str) -> str:
    """A name like the wanted one that the file does not use."""
    name, number = wanted, 2
    while name in training.file.names:
        name, number = f"{wanted}_{number}", number + 1
    return name


def _touched(training: Training, statement: cst.BaseStatement, stays: Sequence[Line]) -> bool:
    return not any(line.node is statement for line in stays)


def _kept(training: Training, statement: cst.BaseStatement, stays: Sequence[Line], own: str) -> list[Written]:
    """What of a statement of the scope stays, on the scope's own level."""
    pieces = [_stayed(training, line, own) for line in stays if path_to(statement, line.node)]
    if training.joins is not None and path_to(statement, training.joins) and training.synchronous is not None:
        leave = "return" if isinstance(training.scope, cst.FunctionDef) else "raise SystemExit"
        test = training.file.code(training.joins.test)
        note = "  # mirrored workers hold the variables themselves"
        block = f"if {test}:\n{training.file.module.default_indent}{leave}{note}\n"
        pieces.insert(0, Written(_shifted(block, own), training.file.range(training.joins)[0]))
    return pieces


def _stayed(training: Training, line: Line, own: str) -> Written:
    """A line that stays, its lists of hooks without those that make workers wait for each other."""
    if line.kind != "hooks":
        return moved(training, line.node, own)
    new = line.node.visit(_Without(lambda node: is_sync_hook(training, node)))
    assert isinstance(new, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    return Written(moved(training, new, own).text, training.file.range(line.node)[0])


def _indent_of(training: Training, node: cst.CSTNode) -> str:
    row = training.file.text.splitlines()[training.file.position(node)[0] - 1]
    return row[: len(row) - len(row.lstrip())]


def _start_of(training: Training, node: cst.BaseStatement) -> int:
    """The offset of the first line that belongs to a statement, its comments included."""
    lines = training.file.text.splitlines(keepends=True)
    nodes = [node, *getattr(node, "decorators", ())]
    row = min(training.file.position(one)[0] for one in nodes) - 1 - len(getattr(node, "leading_lines", ()))
    return sum(len(line) for line in lines[:row])


def _length(training: Training, node: cst.BaseStatement) -> int:
    """How long the lines of a statement are."""
    start = _start_of(training, node)
    rows = training.file.module.code_for_node(node).count("\n")
    lines = training.file.text[start:].splitlines(keepends=True)
    return sum(len(line) for line in lines[:rows])


def _shifted(text: str, indent: str) -> str:
    return "\n".join(f"{indent}{line}" if line.strip() else line for line in text.split("\n"))


class _Without(cst.CSTTransformer):
    """Lists without some elements."""

    def __init__(self, drop: Callable[[cst.BaseExpression | None], bool]) -> None:
        super().__init__()
        self.drop = drop

    def leave_List(self, original_node: cst.List, updated_node: cst.List) -> cst.List:
        both = equal_zip(original_node.elements, updated_node.elements)
        kept = [new for old, new in both if not self.drop(old.value)]
        if len(kept) == len(updated_node.elements):
            return updated_node
        if kept:
            kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return updated_node.with_changes(elements=kept)
