"""`places_of` and `text_of` say what libcst's PositionProvider and `code_for_node` say."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest
from libcst.metadata import MetadataWrapper, PositionProvider

from migrator.names.annotated import parse_module
from migrator.places import LAYOUT, places_of, text_of
from migrator.program.calls import nodes_in
from tests.test_walking import SYNTAX

TEXTS = {
    "syntax": SYNTAX,
    "this file": Path(__file__).read_text(encoding="utf-8"),
    "carriage returns": SYNTAX.replace("\n", "\r\n"),
    "old carriage returns": "a = '''x\ry'''\rb = (a,\r     b)",
    "tabs": SYNTAX.replace("    ", "\t"),
    "lines in strings": 'def f():\n    """One.\n\n    Two.\n    """\n    return f"""{a}\n{b}""" + \\\n        c\n',
    "no last newline": "if a:\n    b  # c",
    "nothing": "",
    "comments only": "# one\n\n# two",
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_same_as_libcst(name: str) -> None:
    module = parse_module(TEXTS[name])
    expected = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
    found = places_of(module)
    asked_for = {node: place for node, place in expected.items() if type(node) not in LAYOUT}
    assert asked_for.keys() <= found.keys() <= expected.keys() <= set(nodes_in(module))
    for node, place in asked_for.items():
        assert found[node][0] == (place.start.line, place.start.column)  # type: ignore[attr-defined]
        assert found[node][1] == (place.end.line, place.end.column)  # type: ignore[attr-defined]
    assert text_of(module, module) == module.code == TEXTS[name]
    for node in found:
        if isinstance(node, (cst.BaseExpression, cst.BaseStatement, cst.BaseSmallStatement)):
            assert text_of(module, node) == module.code_for_node(node)
