"""Newlines of mixed kinds, for engines that know one kind only."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from difflib import SequenceMatcher

from migrator.pairing import equal_zip

_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|$)")


def unified(text: str) -> str:
    """Returns ``text`` with every newline written as LF."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def with_newlines_of(original: str, changed: str) -> str:
    """Returns ``changed`` with the newlines of ``original``.

    A line that both have, or that takes the place of an old one, keeps its newline; a new line gets the
    commonest newline of ``original`` (LF when it has none).
    """
    if "\r" not in original:
        return changed
    before = _lines(original)
    after = _lines(changed)
    counts = Counter(ending for _, ending in before if ending)
    common = counts.most_common(1)[0][0] if counts else "\n"
    endings = [common if ending else "" for _, ending in after]
    if len(counts) > 1:
        matcher = SequenceMatcher(None, [line for line, _ in before], [line for line, _ in after], autojunk=False)
        for _, start, end, target, target_end in matcher.get_opcodes():
            # Line by line also where lines were replaced; what is beyond the old lines is new.
            for offset in range(min(end - start, target_end - target)):
                if endings[target + offset] and before[start + offset][1]:
                    endings[target + offset] = before[start + offset][1]
    for index in range(1, len(after)):
        # A lone CR and the LF of an empty line after it would become one newline.
        if after[index][0] == "" and (endings[index - 1], endings[index]) == ("\r", "\n"):
            endings[index] = "\r"
    return "".join(line + ending for (line, _), ending in equal_zip(after, endings))


def _lines(text: str) -> list[tuple[str, str]]:
    lines = _LINE.findall(text)
    return [pair for pair in lines if pair != ("", "")]


def old_lines(old: str, new: str) -> Callable[[int], int]:
    """Says of a line of the new text, from 1, which line of the old one it was; of one that is new, what it follows."""
    before, after = old.splitlines(), new.splitlines()
    if before == after:
        return lambda line: line
    opcodes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()

    def found(line: int) -> int:
        for _, start, end, new_start, new_end in opcodes:
            if line <= new_end:
                return max(1, min(start + line - new_start, end))
        return line

    return found
