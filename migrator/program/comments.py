"""Comments of a tree, so that none is lost with the statement that it stood in."""

from __future__ import annotations

import libcst as cst

from migrator.walking import walk


def comment_lines(node: cst.CSTNode, leading: bool = True) -> list[cst.EmptyLine]:
    """The lines over a statement, if one is a comment, and a line for every comment inside or behind it."""
    lines: list[cst.EmptyLine] = []
    above = node.leading_lines if isinstance(node, (cst.SimpleStatementLine, cst.BaseCompoundStatement)) else ()
    if leading and any(line.comment is not None for line in above):
        lines += above
    known = {line.comment for line in above if line.comment is not None}
    collector = _Comments()
    walk(node, collector)
    lines += [cst.EmptyLine(comment=comment) for comment in collector.found if comment not in known]
    return lines


def without_argument(call: cst.Call, gone: cst.Arg) -> cst.Call:
    """A call without one of its arguments; the comments that stood behind that get lines of their own."""
    index = call.args.index(gone)
    before, after = call.args[:index], call.args[index + 1 :]
    if before and not after:
        return call.with_changes(args=[*before[:-1], _as_last(before[-1], gone)])
    said = comment_lines(gone)
    if before and isinstance(before[-1].comma, cst.Comma):
        comma = before[-1].comma
        space = _with_lines(comma.whitespace_after, said)
        before = [*before[:-1], before[-1].with_changes(comma=comma.with_changes(whitespace_after=space))]
    else:
        call = call.with_changes(whitespace_before_args=_with_lines(call.whitespace_before_args, said))
    return call.with_changes(args=[*before, *after])


def _as_last(kept: cst.Arg, gone: cst.Arg) -> cst.Arg:
    """An argument in the place of the last one: what stood before the bracket stands there still."""
    assert isinstance(kept.comma, cst.Comma)
    space = kept.comma.whitespace_after
    ending = gone.comma.whitespace_after if isinstance(gone.comma, cst.Comma) else gone.whitespace_after_arg
    if not isinstance(space, cst.ParenthesizedWhitespace) or not comment_lines(kept.comma):
        return kept.with_changes(comma=gone.comma, whitespace_after_arg=gone.whitespace_after_arg)
    if not isinstance(ending, cst.ParenthesizedWhitespace):
        comma = kept.comma.with_changes(whitespace_after=_with_lines(space, comment_lines(gone)))
        return kept.with_changes(comma=comma)
    first = [] if ending.first_line.comment is None else [cst.EmptyLine(comment=ending.first_line.comment)]
    lines = _with_lines(space, first).empty_lines  # type: ignore[attr-defined]
    new = ending.with_changes(first_line=space.first_line, empty_lines=[*lines, *ending.empty_lines])
    return kept.with_changes(comma=kept.comma.with_changes(whitespace_after=new))


def _with_lines(
    space: cst.BaseParenthesizableWhitespace, lines: list[cst.EmptyLine]
) -> cst.BaseParenthesizableWhitespace:
    """White space of several lines with more of them; that of one line has no place for any."""
    if not isinstance(space, cst.ParenthesizedWhitespace) or not lines:
        return space
    more = [line.with_changes(indent=True, whitespace=space.last_line) for line in lines]
    return space.with_changes(empty_lines=[*space.empty_lines, *more])


class _Comments(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[cst.Comment] = []

    def visit_Comment(self, node: cst.Comment) -> None:
        self.found.append(node)
