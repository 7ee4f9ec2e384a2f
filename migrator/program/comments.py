"""Comments of a tree, so that none is lost with the statement that it stood in."""

from __future__ import annotations

import libcst as cst

from migrator.walking import walk


def comment_lines(node: cst.CSTNode, leading: bool = True) -> list[cst.EmptyLine]:
    """The lines over a statement, if one is a comment, and a line for every comment inside or behind it."""
    lines: list[cst.EmptyLine] = []
    above = node.leading_lines if isinstance(node, cst.SimpleStatementLine | cst.BaseCompoundStatement) else ()
    if leading and any(line.comment is not None for line in above):
        lines += above
    known = {line.comment for line in above if line.comment is not None}
    collector = _Comments()
    walk(node, collector)
    lines += [cst.EmptyLine(comment=comment) for comment in collector.found if comment not in known]
    return lines


class _Comments(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[cst.Comment] = []

    def visit_Comment(self, node: cst.Comment) -> None:
        self.found.append(node)
