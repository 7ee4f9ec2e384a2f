"""`walk` shows a visitor what libcst's `visit` shows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import libcst as cst
import pytest

from migrator import walking
from migrator.walking import OF_PUNCTUATION, Kinds, all_in, children_of, of_kinds, parents_in, remade, transformed, walk

SYNTAX = '''\
import a.b as c, d
from . import (e, f as g,)
from ..h import *

@decorator(1)
async def function(x, /, y: int = 1, *args: str, z=2, **kwargs) -> None:  # comment
    """Text."""
    global one, two
    async with a as b, c:
        await d
    async for x in y:
        yield x
    else:
        yield from z
    nonlocal_ = lambda a, *, b=1: (a, b)
    del x[1:2, ::3], y.z
    raise ValueError from None

class Of(Base, *more, metaclass=Meta):
    one: int = 1; two: "str"
    try:
        pass
    except (A, B) as error:
        ...
    else:
        x = y = f"a{one!r:>{two}} b{three=}" "c"
    finally:
        x += -1 if not x else +2 ** 3

def generic[T: int, *Ts, **P](x: T) -> T:
    def inner():
        nonlocal x
        x = [i for i in j if i for k in l]
        return {a: b for a, b in c}, {**d, 1: 2}, {*e, 1}, (x async for x in y), (yield)
    assert x < y <= z is not None and a or b not in c, "message"
    while (n := 1) > 0:
        if a: break
        elif b:
            continue
    match x:
        case [1, *rest] | {"a": 1, **others} if x: pass
        case Point(x=0, y=0) as p: pass
        case _: pass
type Alias = int
with (a as b, c as d,):
    with (e): pass
x[*a] = call(*b, c=d, **e)
'''


class Seen(cst.CSTVisitor):
    def __init__(self, leave_out: type[cst.CSTNode] | None = None) -> None:
        super().__init__()
        self.leave_out = leave_out
        self.calls: list[tuple[str, cst.CSTNode]] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        self.calls.append(("visit", node))
        return self.leave_out is None or not isinstance(node, self.leave_out)

    def on_leave(self, original_node: cst.CSTNode) -> None:
        self.calls.append(("leave", original_node))


class Methods(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[cst.CSTNode] = []

    def visit_Name(self, node: cst.Name) -> None:
        self.calls.append(node)

    def visit_Call(self, node: cst.Call) -> bool:
        self.calls.append(node)
        return False

    def leave_Call(self, original_node: cst.Call) -> None:
        self.calls.append(original_node)

    def leave_Attribute(self, original_node: cst.Attribute) -> None:
        self.calls.append(original_node)


class Names(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def visit_Arg_keyword(self, node: cst.Arg) -> None:
        self.found.append("keyword")

    def visit_Name(self, node: cst.Name) -> None:
        self.found.append(node.value)


@pytest.fixture(params=["", "f'{a}'", "f'{a:{b}}'"], autouse=True)
def seen_before(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept of a class of nodes must not depend on which of them came first."""
    monkeypatch.setattr(walking, "_ATTRIBUTES", {})
    walk(cst.parse_module(request.param), Seen())


@pytest.mark.parametrize("leave_out", [None, cst.FunctionDef, cst.BaseExpression])
def test_the_same_nodes_in_the_same_order(leave_out: type[cst.CSTNode] | None) -> None:
    own = Path(__file__).read_text(encoding="utf-8")
    for text in (SYNTAX, own, *(p.read_text(encoding="utf-8") for p in Path(__file__).parent.glob("rules/pro*.py"))):
        module = cst.parse_module(text)
        expected, found = Seen(leave_out), Seen(leave_out)
        module.visit(expected)
        walk(module, found)
        assert len(found.calls) == len(expected.calls) > 100
        for (kind, node), (other_kind, other) in zip(found.calls, expected.calls, strict=True):
            assert kind == other_kind and node is other


def test_the_methods_of_a_visitor() -> None:
    module = cst.parse_module(SYNTAX)
    expected, found = Methods(), Methods()
    module.visit(expected)
    walk(module, found)
    assert len(expected.calls) > 100 and [*map(id, expected.calls)] == [*map(id, found.calls)]


def test_visitors_of_attributes_see_them() -> None:
    module = cst.parse_module(SYNTAX)
    expected, found = Names(), Names()
    module.visit(expected)
    walk(module, found)
    assert found.found == expected.found and "keyword" in found.found


class Outer(cst.CSTVisitor):
    """Does not look into functions, nor does it have a method for what is in them only."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        self.found.append(node.name.value)
        return False

    def visit_Return(self, node: cst.Return) -> None:
        self.found.append("return")

    def visit_Assign(self, node: cst.Assign) -> None:
        self.found.append("=")

    def leave_ClassDef(self, original_node: cst.ClassDef) -> None:
        self.found.append(original_node.name.value)


def test_what_a_visitor_leaves_out_is_left_out() -> None:
    module = cst.parse_module("def f():\n    return 1\nclass A:\n    x = 1\n    def g(self):\n        y = 1\nz = 1\n")
    for _ in range(2):
        found = Outer()
        walk(module, found)
        assert found.found == ["f", "=", "g", "A", "="]


def test_classes_of_nodes_that_are_met_later() -> None:
    found = Names(), Methods()
    walk(cst.parse_module("x"), found[1])
    walk(cst.parse_module("x.y(z)"), found[1])
    assert [type(node) for node in found[1].calls] == [cst.Name, cst.Call, cst.Call]


def test_trees_that_are_no_longer_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """More nodes than are kept: none of them is taken for another, also where a walk begins inside a walk."""

    class Nested(cst.CSTVisitor):
        def __init__(self) -> None:
            super().__init__()
            self.found: list[str] = []

        def visit_Call(self, node: cst.Call) -> bool:
            for arg in node.args:
                walk(arg.value, self)
            return False

        def visit_Name(self, node: cst.Name) -> None:
            self.found.append(node.value)

    monkeypatch.setattr(walking, "_MOST_PARTS", 5)
    for i in range(200):
        found = Nested()
        walk(cst.parse_module(f"f{i}(a{i}, g{i}(b{i}), c{i})\nd{i}\n"), found)
        assert found.found == [f"a{i}", f"b{i}", f"c{i}", f"d{i}"]
        assert len(walking._PARTS) < 50


class _Changes(cst.CSTTransformer):
    """Renames, removes and adds, and counts the nodes that are no punctuation."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[cst.CSTNode] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if type(node) in OF_PUNCTUATION:
            return False
        self.seen.append(node)
        return not isinstance(node, cst.Lambda)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        return (
            updated_node.with_changes(value=f"{updated_node.value}_") if len(updated_node.value) == 1 else updated_node
        )

    def leave_Raise(self, original_node: cst.Raise, updated_node: cst.Raise) -> cst.RemovalSentinel:
        return cst.RemoveFromParent()

    def leave_Assert(self, original_node: cst.Assert, updated_node: cst.Assert) -> cst.RemovalSentinel:
        return cst.RemoveFromParent()

    def leave_Annotation(self, original_node: cst.Annotation, updated_node: cst.Annotation) -> cst.RemovalSentinel:
        return cst.RemoveFromParent()

    def leave_Finally(self, original_node: cst.Finally, updated_node: cst.Finally) -> cst.RemovalSentinel:
        return cst.RemoveFromParent()

    def leave_Del(self, original_node: cst.Del, updated_node: cst.Del) -> cst.FlattenSentinel[cst.BaseSmallStatement]:
        return cst.FlattenSentinel([cst.Pass(), updated_node])


def test_a_transformed_tree_is_what_libcst_makes_of_it() -> None:
    module = cst.parse_module(SYNTAX.replace('one: int = 1; two: "str"', "one = 1"))
    by_libcst, by_us = _Changes(), _Changes()
    assert transformed(module, by_us).code == module.visit(by_libcst).code != module.code  # type: ignore[union-attr]
    assert [id(node) for node in by_us.seen] == [id(node) for node in by_libcst.seen]


def test_what_nothing_changes_below_stays_the_same_node() -> None:
    module = cst.parse_module("def function():\n    return long(x)\n\nother(long)\n")
    new = transformed(module, _Changes())
    assert new.body[0] is not module.body[0] and new.body[1] is module.body[1]


def test_a_remade_tree_has_new_nodes_and_the_same_text() -> None:
    module = cst.parse_module(SYNTAX.replace('one: int = 1; two: "str"', "one = 1"))
    by_libcst, by_us = _Changes(), _Changes()
    new = remade(module, by_us)
    assert new.code == module.visit(by_libcst).code  # type: ignore[union-attr]
    assert [id(node) for node in by_us.seen] == [id(node) for node in by_libcst.seen]
    inside = {node for one in all_in(module) if isinstance(one, cst.Lambda) for node in all_in(one)}  # left alone
    old = {id(node) for node in all_in(module) if type(node) not in OF_PUNCTUATION and node not in inside}
    assert not [node for node in all_in(new) if id(node) in old]


def _below(node: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
    for child in children_of(node):
        yield child, node
        yield from _below(child)


def test_nodes_of_some_classes() -> None:
    module = cst.parse_module(SYNTAX)
    for kinds in ((cst.Call,), (cst.Name, cst.Attribute), (cst.BaseExpression,), (cst.Match, cst.BaseSmallStatement)):
        found = of_kinds(module, *kinds)
        assert found
        assert [id(one) for one in found] == [id(one) for one in all_in(module) if isinstance(one, kinds)]
    assert of_kinds(cst.parse_module("x = 1\n"), cst.Call) == []


def test_nodes_around_nodes() -> None:
    module = cst.parse_module(SYNTAX)
    every = list(_below(module))
    assert [id(node) for node, _ in every] == [id(node) for node in all_in(module)[1:]]
    told = [(id(node), id(around)) for node, around in parents_in(module)]
    layout = {id(node) for node, _ in every if type(node) in OF_PUNCTUATION}
    assert [one for one in told if one[0] not in layout] == [
        (id(node), id(around)) for node, around in every if id(node) not in layout
    ]


def test_classes_below_others() -> None:
    kinds = Kinds(cst.BaseCompoundStatement, cst.SimpleStatementLine)
    for node in all_in(cst.parse_module(SYNTAX)):
        assert kinds[type(node)] == isinstance(node, (cst.BaseCompoundStatement, cst.SimpleStatementLine))


def test_what_there_has_to_be_is_not_removed() -> None:
    class Remover(_Changes):
        def leave_Integer(self, original_node: cst.Integer, updated_node: cst.Integer) -> cst.RemovalSentinel:
            return cst.RemoveFromParent()

    with pytest.raises(TypeError, match="`value` of a Assign"):
        transformed(cst.parse_module("x = 1\n"), Remover())
