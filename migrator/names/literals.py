"""The values of literals: what `evaluated_value` of libcst says, which has Python parse each of them as a program."""

from __future__ import annotations

from typing import Any

import libcst as cst


def literal_value(node: cst.Integer | cst.Float | cst.SimpleString) -> Any:
    """The value of a number, or of a string, which may be one of bytes."""
    text = node.value
    kind = type(node)
    if kind is cst.SimpleString:
        quote = text[0]
        if quote in "'\"" and "\\" not in text and "\r" not in text:  # no prefix, and nothing to be put in
            width = 3 if text[:3] == quote * 3 and len(text) > 5 else 1
            return text[width:-width]
    elif kind is cst.Integer and text.isdecimal() and text.isascii():
        return int(text)
    return node.evaluated_value


__all__ = ["literal_value"]
