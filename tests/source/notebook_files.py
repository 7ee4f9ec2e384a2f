"""Notebooks for tests, laid out as Jupyter writes them."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from typing import Any


def notebook(cells: Sequence[str | None], indent: int | None = 1, minor: int = 5, **metadata: Any) -> str:
    """A notebook with these cells of code (None: one of Markdown), each with an output and metadata of its own."""
    made = []
    for number, code in enumerate(cells):
        cell: dict[str, Any] = {"cell_type": "markdown", "metadata": {}, "source": ["Words\n", "on tensorflow"]}
        if code is not None:
            output = {"name": "stdout", "output_type": "stream", "text": [f"caf\u00e9 {number}\n"]}
            cell = {"cell_type": "code", "execution_count": number, "metadata": {"scrolled": True}, "outputs": [output]}
            cell["source"] = code.splitlines(keepends=True)
        if minor >= 5:
            cell["id"] = f"cell-{number}"
        made.append(dict(sorted(cell.items())))
    about = metadata or {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    data = {"cells": made, "metadata": about, "nbformat": 4, "nbformat_minor": minor}
    return json.dumps(data, indent=indent, ensure_ascii=False) + "\n"


def sources(document: str) -> list[str]:
    """The code of all code cells."""
    cells = json.loads(document)["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def cut(text: str, statements: int) -> list[str]:
    """A script in pieces of some statements, each with the comments above them."""
    lines = text.splitlines(keepends=True)
    starts = []
    for node in ast.parse(text).body:
        start = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))]) - 1
        while start > 0 and lines[start - 1].startswith("#"):
            start -= 1
        starts.append(start)
    starts = sorted({0, *starts[::statements]})
    return ["".join(lines[a:b]).strip("\n") for a, b in zip(starts, [*starts[1:], len(lines)], strict=True)]
