"""The evaluator against Python: programs of which everything, or all but some conditions, is known."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrator.ir.calls import HANDING_ON, LOOKED_INTO
from migrator.ir.evaluate import Evaluator
from migrator.ir.files import Parsed, Together
from migrator.ir.operators import BUILTINS
from migrator.ir.values import Function, Operation, Value
from tests.ir.concrete import NotKnown, concrete

_SEEN: Counter[str] = Counter()


def _evaluated(text: str) -> tuple[Evaluator, Value]:
    """What `main(p, q)` of a text gives where p and q are not known."""
    file = Parsed.of(Path("main.py"), text)
    evaluator = Evaluator(Together.of([file]), file)
    module = evaluator.load(file)
    main = evaluator.store.get((module.scope, "main"))
    assert isinstance(main, Function)
    return evaluator, evaluator.enter_function(main)


def _by_python(text: str, p: object, q: object) -> Any:
    names: dict[str, Any] = {}
    exec(compile(text, "main.py", "exec"), names)
    return names["main"](p, q)


def _agree(text: str, values: tuple[object, ...] = (True, False)) -> None:
    evaluator, value = _evaluated(text)
    for p, q in itertools.product(values, values):
        try:
            expected = _by_python(text, p, q)
        except Exception:
            continue
        try:
            found = concrete(evaluator, value, {"p": p, "q": q})
        except (NotKnown, RecursionError):
            _SEEN["not known"] += 1
            continue
        _SEEN["known"] += 1
        assert found == expected, (p, q)


NAMES = ("a", "b", "c")


def _expression(draw: st.DrawFn, depth: int = 0) -> str:
    name, number = draw(st.sampled_from(NAMES)), draw(st.integers(0, 3))
    kinds = ["name", "number", "name", "flag"]
    if depth < 2:
        kinds += ["add", "if", "list", "get", "call", "lambda", "comprehension", "walrus", "and", "compare", "dict"]
    kind = draw(st.sampled_from(kinds))
    if kind in ("name", "number", "flag"):
        return {"name": name, "number": str(number), "flag": draw(st.sampled_from("pq"))}[kind]
    first, second = _expression(draw, depth + 1), _expression(draw, depth + 1)
    return {
        "add": f"({first} + {second})",
        "if": f"({first} if {draw(st.sampled_from(['p', 'q', 'not p', 'p and q', name]))} else {second})",
        "list": f"[{first}, *[{second}]]",
        "get": f"[{first}, {second}, 7][{number}]",
        "call": f"f{draw(st.integers(0, 1))}({first}, y={second})",
        "lambda": f"(lambda x, k={first}: [x, k])({second})",
        "comprehension": f"[({first}, i) for i in range({number}) if i != 1]",
        "walrus": f"({name} := {first})",
        "and": f"({first} {draw(st.sampled_from(['and', 'or']))} {second})",
        "compare": f"({first} {draw(st.sampled_from(['==', 'is', '!=', 'in']))} {second})",
        "dict": f"dict(**{{'k': {first}}}, j={second}).get({draw(st.sampled_from(['chr(107)', repr('z')]))}, {number})",
    }[kind]


def _block(draw: st.DrawFn, depth: int, loop: bool) -> list[str]:
    return [line for _ in range(draw(st.integers(1, 3))) for line in _statement(draw, depth, loop)]


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _statement(draw: st.DrawFn, depth: int, loop: bool) -> list[str]:
    name, other = draw(st.sampled_from(NAMES)), draw(st.sampled_from(NAMES))
    kinds = ["assign", "assign", "augment", "unpack", "append", "item", "swap", "return"]
    kinds += ["break", "continue"] if loop else []
    kinds += ["if", "if", "for", "while", "try", "def"] if depth < 2 else []
    kind = draw(st.sampled_from(kinds))
    value = _expression(draw)
    if kind == "assign":
        return [f"{name} = {value}"]
    if kind == "augment":
        return [f"{name} += {value}"]
    if kind == "unpack":
        return [f"{name}, *{other} = [{value}, {name}, 5]"]
    if kind == "append":
        return [f"{name} = [{other}]", f"{other} = {name}", f"{name}.append({value})"]
    if kind == "item":
        return [f"d[{draw(st.integers(0, 1))}] = {value}", f"{name} = d.get(1, 9)"]
    if kind == "swap":
        return [f"{name}, {other} = {other}, {name}"]
    if kind == "return":
        return [f"if {draw(st.sampled_from(['p', 'q', 'a == 1']))}: return [{value}, a]"]
    if kind in ("break", "continue"):
        return [f"if {draw(st.sampled_from(['p', 'not q', 'i == 1']))}: {kind}"]
    body = _indented(_block(draw, depth + 1, loop or kind in ("for", "while")))
    if kind == "if":
        test = draw(st.sampled_from(["p", "q", "not p", "p or q", "a", "a == 1", "p == q"]))
        return [f"if {test}:", *body, "else:", *_indented(_block(draw, depth + 1, loop))]
    if kind == "for":
        over = draw(st.sampled_from(["range(3)", "(1, a)", "[a, b, c]"]))
        return [f"for i in {over}:", *body, "else:", *_indented(_block(draw, depth + 1, loop))]
    if kind == "while":
        return ["w = 0", "while w < 3:", "    w += 1", *_indented(["i = w", *(line[4:] for line in body)])]
    if kind == "try":
        return ["try:", *body, "finally:", f"    {name} = {value}"]
    declared = draw(st.sampled_from(["nonlocal a", "pass"]))
    return [
        "def g(x=b):",
        f"    {declared}",
        f"    {'a = x' if declared != 'pass' else 'x = x'}",
        "    return [x, a]",
        f"{name} = g({value})",
    ]


@st.composite
def _programs(draw: st.DrawFn) -> str:
    lines = [
        *("def f0(x, y=1):", "    if x: return [x, y]", "    return y"),
        *("def f1(*x, **k):", "    return [*x, k.get('y')]"),
        *("def main(p, q):", "    a, b, c, d, i = 1, 2, [3], {0: 4}, 0"),
        *_indented(_block(draw, 0, False)),
        "    return [a, b, c, d]",
    ]
    return "\n".join(lines) + "\n"


@settings(max_examples=100, deadline=None, derandomize=True)
@given(_programs())
def _programs_agree(text: str) -> None:
    _agree(text)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_programs_give_what_they_give_in_python() -> None:
    _SEEN.clear()
    _programs_agree()
    assert _SEEN["known"] > 6 * _SEEN["not known"], _SEEN


KNOWN = [
    "return [(y := x + 1) for x in range(2)] + [y]",
    "class A:\n    k = 1\n    def __init__(self, v=2): self.v = v\n    def get(self): return self.v + self.k\n"
    "class B(A):\n    def get(self): return super().get() * 10\nreturn [B(5).get(), A().get(), isinstance(B(), A)]",
    "class A:\n    @property\n    def p(self): return self.q\n    @staticmethod\n    def s(x): return x\n"
    "    @classmethod\n    def c(cls): return cls.z\n    z = 3\na = A()\na.q = p\nreturn [a.p, A.s(1), a.s(2), A.c()]",
    "import functools\nf = functools.partial(lambda a, b, c=0: [a, b, c], 1, c=p)\nreturn f(2)",
    "import collections\nT = collections.namedtuple('T', 'a b')\nt = T(1, b=p)\nx, y = t\n"
    "return [t.a, t[1], x, y, t._replace(a=3).a]",
    "d = {'a': 1}\nd.update(b=2)\nif p: d['c'] = 3\nelse: d.pop('a')\n"
    "return [list(d), d.get('c', 0), [k for k in d], {**d}, d.pop('c', 1)]",
    "out = []\nfor i, (a, *b) in enumerate(zip([1, 2], 'xy', (p, q))):\n    if i and p: continue\n"
    "    out += [a, b]\nreturn out",
    "try:\n    x = 1\nexcept ValueError:\n    x = 2\nelse:\n    x += 1\nfinally:\n    y = x\n"
    "return [1 if x in (2, 3) else 0, 7]",
    "n = 0\nwhile n < 5:\n    n += 1\n    if n == 3 and q: break\nelse:\n    n = 9\nreturn n",
    "def f(*a, k=1, **o): return [list(a), k, o]\nreturn f(1, *[2, 3], **{'k': p, 'z': 4})",
    "x = 'a-%s-%d' % ('b', 3) + f'{1}{\"c\"}' + ','.join(['d', 'e'])\nreturn [x, x.split('-'), x[1:3], x.upper()]",
    "def f(n): return 1 if n == 0 else n * f(n - 1)\nreturn [f(2), [f(i) for i in range(2)]]",
    "def outer():\n    c = 0\n    def inc():\n        nonlocal c\n        c += 1\n        return c\n    return inc\n"
    "i = outer()\nif p: i()\nreturn [i(), i()]",
    "x = [1, 2]\nx[0], x[1] = x[1], x[0]\nreturn x",
]


@pytest.mark.parametrize("body", KNOWN)
def test_what_python_can_do(body: str) -> None:
    text = "def main(p, q):\n" + "\n".join(f"    {line}" for line in body.splitlines()) + "\n"
    _SEEN.clear()
    _agree(text)
    assert _SEEN["not known"] == 0 and _SEEN["known"] == 4


LEFT_BEHIND_FINALLY = [
    "a = 1\nfor i in range(3):\n    try:\n        if p: break\n        a = 2\n    finally:\n        a += 10\nreturn a",
    "a = 1\nwhile a < 3:\n    try:\n        if p: break\n        if q: continue\n        a = 5\n    finally:\n"
    "        a = a + 1\nreturn a",
    "a = [1]\ntry:\n    if p: return list(a)\n    a.append(2)\nfinally:\n    a.append(3)\nreturn a",
    "a = 1\nfor i in range(2):\n    for j in range(2):\n        try:\n            if q: break\n            a += 1\n"
    "        finally:\n            if p: a = 7\nreturn a",
]


@pytest.mark.parametrize("body", LEFT_BEHIND_FINALLY)
def test_ways_out_of_a_try_are_never_wrong(body: str) -> None:
    """What a finally clause changes on the ways out may be unknown."""
    text = "def main(p, q):\n" + "\n".join(f"    {line}" for line in body.splitlines()) + "\n"
    _SEEN.clear()
    _agree(text)
    assert sum(_SEEN.values()) == 4


_STOPS_EARLY = """
import tensorflow as tf
def main(p, q):
  wait = best = 0
  seen = []
  for turn in range(100):
    loss = tf.size(p)
    wait += 1
    if loss < best:
      best = loss
      wait = 0
    seen.append(turn)
    if {test}:
      {then}
  return seen
"""


@pytest.mark.parametrize(("test", "then"), [("wait >= 5", "break"), ("loss > 5", "break")])
def test_a_loop_that_may_stop_in_each_turn_is_evaluated_in_seconds(test: str, then: str) -> None:
    # Each turn is under all conditions before it: what asks for the truth of one asked for those 2 ** turns times.
    before = time.process_time()
    evaluator, value = _evaluated(_STOPS_EARLY.format(test=test, then=then))
    assert time.process_time() - before < 10
    content = evaluator.content_of(value)
    assert content is not None and len(content.items) >= 12 and content.more == (then == "break")


def _given(text: str) -> list[Value]:
    """The values of the tuple that `main(p, q)` of a text returns."""
    evaluator, value = _evaluated(text)
    found = evaluator.elements(value)
    assert found is not None
    return found


@pytest.mark.parametrize("name", sorted(BUILTINS - HANDING_ON))
def test_what_python_has_but_for_a_few_gives_something_new(name: str) -> None:
    for call in (f"{name}(p)", f"{name}(p, q)", f"{name}(x)", f"{name}(x, q)", f"{name}(*x)", f"{name}(p, *x, k=q)"):
        *before, found = _given(f"def main(p, q):\n    x = [p, q]\n    return p, q, x, {call}\n")
        assert not any(found is one for one in before), call


def test_what_hands_something_on_does_so() -> None:
    handed = _given("def main(p, q):\n    return p, next(iter([p])), getattr(p, 'x', q), p.x\n")
    assert handed[0] is handed[1] and handed[2] is handed[3]
    cast = _given("import typing\n\n\ndef main(p, q):\n    return p, typing.cast(int, p)\n")
    assert cast[0] is cast[1]


@pytest.mark.parametrize("name", ["os.path.join", "functools.reduce", "json.loads", "random.choice", "itertools.chain"])
def test_functions_of_libraries_that_are_only_names_give_operations(name: str) -> None:
    module = name.partition(".")[0]
    assert name not in LOOKED_INTO
    values = _given(f"import {module}\n\n\ndef main(p, q):\n    r = {name}(p, q)\n    return p, q, r, r[0], r.x\n")
    assert all(isinstance(one, Operation) for one in values[2:])
    assert not any(new is old for new in values[2:] for old in values[:2])
