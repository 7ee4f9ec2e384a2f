"""Values of literals are those that Python gives them."""

from __future__ import annotations

import ast

import libcst as cst
import pytest

from migrator.names.literals import literal_value


@pytest.mark.parametrize(
    "text",
    [
        *("0", "00", "17", "1_000", "0x1f", "0b11", "0o17", "1.5", "1e-3", "''", '""', "'a'", '"a\'b"', "r'\\d'"),
        *("b'x'", "u'x'", "'\\n'", "'''a'''", "''''''", "'''a\r\nb'''"),
    ],
)
def test_value_is_that_of_python(text: str) -> None:
    node = cst.parse_expression(text)
    assert isinstance(node, cst.Integer | cst.Float | cst.SimpleString)
    found = literal_value(node)
    assert found == ast.literal_eval(node.value) and type(found) is type(ast.literal_eval(node.value))
