"""The table of features: what it says yes to, a test shows, and that test is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in (ROOT / "docs/features.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| feature ")
]


def test_every_row_is_read() -> None:
    assert len(ROWS) > 30
    assert {len(row) for row in ROWS} == {4}
    assert {row[1] for row in ROWS} == {"yes", "partly", "no"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_what_is_said_is_shown(row: list[str]) -> None:
    shown = re.fullmatch(r"`(tests/[\w/]+\.py)::(test_\w+)`", row[3].strip("| "))
    if shown is None:
        assert row[1] != "yes" and not row[3].strip("| "), "a yes names its test"
        return
    path, name = shown.groups()
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
