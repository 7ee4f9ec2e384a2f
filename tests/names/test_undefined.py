"""Names that nothing of a module binds."""

from __future__ import annotations

import pytest

from migrator.names.undefined import undefined


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1\ndef f():\n    return x + y\n", {"y"}),
        ("def f(a, *b, c=0, **d):\n    e = [g for g in a]\n    return b, c, d, e, __file__, len\n", set()),
        ("def f():\n    global x\n    x = 1\ndef g():\n    return x\n", set()),
        ("def f():\n    def g():\n        return made\n    made = 1\n    return g\n", set()),
        ("def f():\n    def g():\n        return made\n    return g\n", {"made"}),
        ("class A:\n    n = 1\n    def f(self):\n        return n\n", {"n"}),
        ("import a.b as c, d.e\nfrom f import g\nprint(c, d, g, e)\n", {"e"}),
        ("from a import *\nprint(b)\n", set()),
        ("print 'Python 2'\n", set()),
        ("try:\n    import a\nexcept ImportError as e:\n    print(e)\nwith a as b: b\nfor i in b: i\n", set()),
        ("match x:\n    case [y, *z]:\n        print(y, z)\n", {"x"}),
    ],
)
def test_undefined(text: str, expected: set[str]) -> None:
    assert undefined(text) == expected
