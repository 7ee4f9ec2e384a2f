"""The code of a text alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.names.bare import bare, says


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1  # gather\n", "x = 1          \n"),
        ('"""Notes\non gather."""\nx = 1\n', '"       \n            "\nx = 1\n'),
        ("def f():\n    'gather'\n    return 'gather'\n", "def f():\n    '      '\n    return 'gather'\n"),
        ("note = 'gather'\n", "note = '      '\n"),
        ("note = 'gather'\nprint(note)\n", "note = 'gather'\nprint(note)\n"),
        ("print('how to gather')\n", "print('             ')\n"),
        ("a = {'gather': b}; 'gather'\n", "a = {'gather': b}; '      '\n"),
        ("    'gather'\n    tf.gather(a)\n", "    '      '\n    tf.gather(a)\n"),
        ("x = (\n", "x = (\n"),
        ("tf.gather(a)\n", "tf.gather(a)\n"),
    ],
)
def test_only_what_people_read_is_blank(text: str, expected: str) -> None:
    assert bare(text) == expected
    assert [len(line) for line in bare(text).splitlines()] == [len(line) for line in text.splitlines()]


def test_code_stays_as_it_is() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert "pytest.mark.parametrize(" in bare(text)
    assert "The code of a text alone" in text and "The code of a text alone" not in bare(text)
    assert says(text, "Path(__file__)") and not says("# Path(__file__)\n", "Path(__file__)")
