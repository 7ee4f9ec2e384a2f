"""Laying out calls and parsing the result as statements of a given file."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrator.walking import Transformer

WIDTH = 100


def call(head: str, arguments: Sequence[str], indent: str, depth: int, tail: str = "") -> str:
    r"""`head(arguments)tail` on one line when it fits, else one argument a line.

    `indent` is one level of the file's indentation and `depth` the number of levels that the statement stands at.
    An argument may hold line breaks (a nested call already laid out at depth + 1) and may end with a comment line
    before it, `# ...\\n` first.
    """
    single = f"{head}({', '.join(arguments)}){tail}"
    if len(indent) * depth + len(single) <= WIDTH and "\n" not in single and "#" not in single:
        return single
    inner = indent * (depth + 1)
    lines = "".join(f"{inner}{argument},\n" for argument in arguments)
    return f"{head}(\n{lines}{indent * depth}){tail}"


def bracket(items: Sequence[str], indent: str, depth: int) -> str:
    """A list display, laid out like a call."""
    single = f"[{', '.join(items)}]"
    if len(indent) * depth + len(single) <= WIDTH - 12 and "\n" not in single:
        return single
    inner = indent * (depth + 1)
    return "[\n" + "".join(f"{inner}{item},\n" for item in items) + f"{indent * depth}]"


def statements(text: str, module: cst.Module) -> list[cst.BaseStatement]:
    """Parses statements (at depth 0) in the indentation and newlines of `module`."""
    parsed = cst.parse_module(text, config=module.config_for_parsing)
    if any(not line.strip() for line in text.splitlines()):
        parsed = parsed.visit(_BareEmptyLines())
    return list(parsed.body)


class _BareEmptyLines(Transformer):
    """Empty lines stay empty wherever the statement ends up."""

    def leave_EmptyLine(self, original_node: cst.EmptyLine, updated_node: cst.EmptyLine) -> cst.EmptyLine:
        return updated_node if updated_node.comment is not None else updated_node.with_changes(indent=False)


def reindent(text: str, depth: int, indent: str) -> str:
    """`text` with every line but the first moved in by `depth` levels."""
    return text.replace("\n", "\n" + indent * depth)
