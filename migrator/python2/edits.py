"""Edits of a text at the nodes of its tree: all other bytes stay as they are."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field


@dataclass(eq=False)
class Edits:
    """What is put in the place of nodes of one text, whose newlines are LF."""

    text: str
    put: dict[tuple[int, int], list[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.raw = self.text.encode("utf-8", "surrogatepass")
        self.starts = [0]
        for line in self.raw.split(b"\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)

    def start(self, node: ast.expr | ast.stmt | ast.keyword | ast.alias) -> int:
        """The byte that a node begins at. An alias has no place before Python 3.10."""
        return self.starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        """The byte behind a node."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.starts[node.end_lineno - 1] + node.end_col_offset

    def code(self, node: ast.expr | ast.stmt) -> str:
        """The text of a node."""
        return self.raw[self.start(node) : self.end(node)].decode("utf-8", "surrogatepass")

    def replace(self, node: ast.expr, new: str) -> None:
        """Puts other code in the place of a node."""
        self.between(self.start(node), self.end(node), new)

    def between(self, start: int, end: int, new: str) -> None:
        """Puts other code between two bytes; what is inserted at one place stands in the order of the calls."""
        self.put.setdefault((start, end), []).append(new.encode("utf-8", "surrogatepass"))

    def written(self) -> str:
        """The text with all edits; of two that overlap, the outer one is made."""
        made = bytearray()
        done = 0
        for (start, end), new in sorted(self.put.items(), key=lambda one: (one[0][0], -one[0][1])):
            if start < done:
                continue
            made += self.raw[done:start] + b"".join(new)
            done = end
        return (bytes(made) + self.raw[done:]).decode("utf-8", "surrogatepass")
