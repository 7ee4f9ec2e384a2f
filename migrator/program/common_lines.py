"""Lines that several branches of the mode have in common, said once.

A model_fn without its branches is one list of statements for each mode. Where two modes run the same line, the list
holds it twice (`if mode == TRAIN: loss = tf.reduce_mean(errors)`, and the same under EVAL): here it becomes one line of
both, as long as no mode runs its own lines in another order than before, but for `b = a`, which passes lines that have
nothing to do with either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import libcst as cst

from migrator.pairing import equal_zip
from migrator.program.body import names_given
from migrator.program.modes import TRAIN, ModalStatement, ModeNames, Spec, SpecialisedBody
from migrator.program.parsed import ParsedFile, names_in
from migrator.rules.dropout import drops_nothing, is_training_dropout
from migrator.walking import of_kinds


def with_common_lines(file: ParsedFile, body: SpecialisedBody) -> SpecialisedBody:
    """The same body with such lines merged, and without dropouts that drop nothing in the modes that run them."""
    statements, specs = _with_dropouts_apart(file, body)
    while True:
        pair = _pair(file, statements, specs)
        if pair is None:
            return replace(body, statements=tuple(statements), specs=tuple(specs))
        first, second, goes = pair
        kept, gone = (first, second) if goes == second else (second, first)
        both = replace(
            statements[kept],
            modes=statements[first].modes | statements[second].modes,
            comments=_comments(statements[kept], statements[gone]),
        )
        statements[kept] = both
        del statements[gone]
        specs = [replace(one, position=one.position - (one.position > gone)) for one in specs]


def _with_dropouts_apart(file: ParsedFile, body: SpecialisedBody) -> tuple[list[ModalStatement], list[Spec]]:
    """The statements where `b = dropout(a)` of the training is two, as `b = a` is what the other modes have."""
    names, specs = body.names, list(body.specs)
    plain = [_without_idle_dropout(file, statement, names) for statement in body.statements]
    copies = {(target, source) for one in plain if one is not None for target, source in _copies(one)}
    statements: list[ModalStatement] = []
    for old, new in equal_zip(body.statements, plain):
        at = len(statements)
        if new is None:
            specs = [replace(one, position=one.position - (one.position > at)) for one in specs]
            continue
        small = _assignment(new)
        call = small.value if small is not None else None
        first = call.args[0] if isinstance(call, cst.Call) and call.args else None
        target = small.targets[0].target if small is not None else None
        if first is None or not isinstance(target, cst.Name) or not isinstance(first.value, cst.Name):
            statements.append(new)
            continue
        assert isinstance(call, cst.Call) and small is not None and isinstance(new.node, cst.SimpleStatementLine)
        apart = new.modes == {TRAIN} and (target.value, first.value.value) in copies
        if not apart or not is_training_dropout(call, first.value, file.imports):
            statements.append(new)
            continue
        again = call.with_changes(args=[first.with_changes(value=target), *call.args[1:]])
        for value in (first.value, again):
            line = new.node.with_changes(body=[small.with_changes(value=value)])
            line = line.with_changes(leading_lines=()) if value is again else line
            file.origins[line] = file.origins.get(old.node, old.node)
            statements.append(replace(new, node=line, comments=new.comments if value is not again else ()))
        specs = [replace(one, position=one.position + (one.position > at)) for one in specs]
    return statements, specs


def _assignment(statement: ModalStatement) -> cst.Assign | None:
    """The assignment to one name that a statement is."""
    line = statement.node
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    if not isinstance(small, cst.Assign) or len(small.targets) != 1:
        return None
    return small if isinstance(small.targets[0].target, cst.Name) else None


def _copies(statement: ModalStatement) -> Iterator[tuple[str, str]]:
    """`b = a`: both names."""
    small = _assignment(statement)
    if small is not None and isinstance(small.value, cst.Name):
        assert isinstance(small.targets[0].target, cst.Name)
        yield small.targets[0].target.value, small.value.value


def _without_idle_dropout(file: ParsedFile, statement: ModalStatement, names: ModeNames) -> ModalStatement | None:
    """`b = a` for `b = dropout(a)` that drops nothing; None where that says nothing."""
    small = _assignment(statement)
    through = None if small is None else drops_nothing(small.value, statement.modes, names)
    if small is None or not isinstance(through, cst.Name) or statement.modes & {TRAIN}:
        return statement
    if through.deep_equals(small.targets[0].target):
        return None
    assert isinstance(statement.node, cst.SimpleStatementLine)
    line = statement.node.with_changes(body=[small.with_changes(value=through)])
    file.origins[line] = file.origins.get(statement.node, statement.node)
    return replace(statement, node=line)


def _pair(file: ParsedFile, statements: list[ModalStatement], specs: list[Spec]) -> tuple[int, int, int] | None:
    """The first two lines that are one, and which of them goes to where the other stands."""
    texts = [_said(file, one) for one in statements]
    for second in range(len(statements)):
        for first in range(second):
            one, other = statements[first], statements[second]
            if texts[first] != texts[second] or one.modes & other.modes or not _same_dependencies(file, one, other):
                continue
            for goes, modes in ((second, other.modes), (first, one.modes)):
                ran = [statement for statement in statements[first + 1 : second] if modes & statement.modes]
                between = bool(ran) and not _may_pass(one, ran, statements)
                if not between and not any(modes & spec.modes and first < spec.position <= second for spec in specs):
                    return first, second, goes
    return None


def _may_pass(line: ModalStatement, others: Sequence[ModalStatement], statements: Sequence[ModalStatement]) -> bool:
    """Whether a line is `b = a`, which means the same before some others and behind them."""
    for target, source in _copies(line):
        late = any(
            target in names_in(one.node) and of_kinds(one.node, cst.FunctionDef, cst.Lambda) for one in statements
        )
        read = any(target in names_in(one.node) or source in names_given((one,)) for one in others)
        return not late and not read
    return False


def _said(file: ParsedFile, statement: ModalStatement) -> str:
    node = statement.node
    if isinstance(node, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
        return file.code(node.with_changes(leading_lines=())).strip()
    return file.code(node).strip()


def _same_dependencies(file: ParsedFile, one: ModalStatement, other: ModalStatement) -> bool:
    """Whether both lines run behind the same operations."""
    if len(one.after) != len(other.after):
        return False
    return all(file.code(a) == file.code(b) for a, b in equal_zip(one.after, other.after))


def _comments(kept: ModalStatement, gone: ModalStatement) -> tuple[cst.EmptyLine, ...]:
    """What stands above both: the comments of each, once."""
    known = {line.comment.value for line in _lines(kept) if line.comment is not None}
    more = [line for line in _lines(gone) if line.comment is not None and line.comment.value not in known]
    return (*more, *kept.comments)


def _lines(statement: ModalStatement) -> tuple[cst.EmptyLine, ...]:
    node = statement.node
    own = node.leading_lines if isinstance(node, (cst.SimpleStatementLine, cst.BaseCompoundStatement)) else ()
    return (*statement.comments, *own)


__all__ = ["with_common_lines"]
