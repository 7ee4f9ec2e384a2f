"""The code of a text alone: what stands in comments and in texts for people says nothing about what a program does."""

from __future__ import annotations

import io
import token
import tokenize
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

_LAYOUT = (token.INDENT, token.DEDENT, tokenize.NL, tokenize.COMMENT)
_ENDS = (token.NEWLINE, token.ENDMARKER)


@lru_cache(maxsize=4096)
def bare(text: str) -> str:
    """A text of the same lines and columns, blank where only people read it.

    Blank are comments, strings that are statements (docstrings) or values of names that are never read, and what other
    strings say in several words. A part of a file may be given; what Python cannot split into tokens stays as it is.
    """
    if "#" not in text and '"' not in text and "'" not in text:
        return text
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return text
    blank = [one for one in tokens if one.type == tokenize.COMMENT]
    counts = Counter(one.string for one in tokens if one.type == token.NAME)
    for statement in _statements(tokens):
        strings = [one for one in statement if one.type == token.STRING]
        alone = len(strings) == len(statement) or (
            [one.type for one in statement[:2]] == [token.NAME, token.OP]
            and statement[1].string == "="
            and len(strings) == len(statement) - 2
            and counts[statement[0].string] == 1
        )
        blank += [one for one in strings if alone or len(one.string.split()) > 1]
    return _without(text, blank)


def says(text: str, *parts: str) -> bool:
    """Whether the code of a text holds one of some parts."""
    return any(part in text for part in parts) and any(part in bare(text) for part in parts)


def _statements(tokens: Iterable[tokenize.TokenInfo]) -> Iterable[Sequence[tokenize.TokenInfo]]:
    """The tokens of each simple statement, or of the head of each compound one, without layout."""
    found: list[tokenize.TokenInfo] = []
    depth = 0
    for one in tokens:
        if one.type in _LAYOUT:
            continue
        depth += (one.string in ("(", "[", "{")) - (one.string in (")", "]", "}")) if one.type == token.OP else 0
        if one.type in _ENDS or (depth == 0 and one.type == token.OP and one.string in (";", ":")):
            yield found
            found = []
        else:
            found.append(one)
    yield found


def _without(text: str, tokens: Iterable[tokenize.TokenInfo]) -> str:
    """The text with spaces in place of some tokens, the quotes of strings left."""
    lines = text.splitlines(keepends=True)
    for one in tokens:
        (first, start), (last, end) = one.start, one.end
        for row in range(first, last + 1):
            line = lines[row - 1]
            left = start if row == first else 0
            right = end if row == last else len(line.rstrip("\r\n"))
            if one.type == token.STRING and row == first:
                left += 1
            if one.type == token.STRING and row == last:
                right = max(left, right - 1)
            lines[row - 1] = line[:left] + " " * (right - left) + line[right:]
    return "".join(lines)


__all__ = ["bare", "says"]
