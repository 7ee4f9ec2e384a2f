"""Which file of a project imports which."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.project.imports import above, below, edges, imported, joined


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import a, b.c as d", {(0, ("a",)), (0, ("b", "c"))}),
        ("from a.b import (  # why\n    c,  # that\n    d as e,\n)", {(0, ("a", "b", "c")), (0, ("a", "b", "d"))}),
        ("from a import b, \\\n  c", {(0, ("a", "b")), (0, ("a", "c"))}),
        ("from a import b, \\\r\n  c\r\n", {(0, ("a", "b")), (0, ("a", "c"))}),
        ("from a import *", {(0, ("a",))}),
        ("from . import a", {(1, ("a",))}),
        ("from ..a.b import c", {(2, ("a", "b", "c"))}),
        ("try: import a\nexcept ImportError: from b import c", {(0, ("a",)), (0, ("b", "c"))}),
        ("x = 1; import a", {(0, ("a",))}),
        ("if x:\n\timport a  # import b", {(0, ("a",))}),
        ("important = fromage", set()),
    ],
)
def test_imports_are_read(text: str, expected: set[tuple[int, tuple[str, ...]]]) -> None:
    assert set(imported(text.encode())) == expected


def test_files_are_found_where_python_would_look() -> None:
    texts = {
        "train.py": "import model",
        "model.py": "",
        "other/train.py": "import model",
        "other/model.py": "",
        "other/sub/a.py": "from ..model import f\nfrom . import b",
        "other/sub/__init__.py": "",
        "other/sub/b.py": "import model, os, json",
        "src/pack/__init__.py": "",
        "src/pack/net.py": "from pack import layers",
        "src/pack/layers.py": "import numpy",
        "tests/test_net.py": "from pack.net import Net",
    }
    raws = {Path(name): text.encode() for name, text in texts.items()}
    found = {str(path): sorted(map(str, some)) for path, some in edges(raws, raws).items() if some}
    assert found == {
        "train.py": ["model.py"],
        "other/train.py": ["other/model.py"],
        "other/sub/a.py": ["other/model.py", "other/sub/__init__.py", "other/sub/b.py"],
        "other/sub/b.py": ["other/model.py"],
        "src/pack/net.py": ["src/pack/__init__.py", "src/pack/layers.py"],
        "tests/test_net.py": ["src/pack/__init__.py", "src/pack/net.py"],
    }
    absolute = {Path("/root") / path: raw for path, raw in raws.items()}
    assert {
        str(path.relative_to("/root")): sorted(str(one.relative_to("/root")) for one in some)
        for path, some in edges(absolute, absolute).items()
        if some
    } == found


def test_what_is_above_and_below() -> None:
    a, b, c, d = (Path(name) for name in "abcd")
    of = {a: frozenset({b}), b: frozenset({c}), c: frozenset({a}), d: frozenset({b})}
    assert below(of, [a]) == {a, b, c}
    assert below(of, [d]) == {a, b, c, d}
    assert above(of, [d]) == {d}
    assert above(of, [b]) == {a, b, c, d}


def test_sets_that_share_a_file_are_one() -> None:
    paths = [Path(name) for name in "abcdef"]
    a, b, c, d, e, f = paths
    assert joined([[a], [b, c], [d], [c, d], [e, f]]) == [{a}, {b, c, d}, {e, f}]
    assert joined([[a, b], [c, d], [e, f], [b, c], [d, e]]) == [set(paths)]
