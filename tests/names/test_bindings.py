"""The binding table against Python's own: `symtable` on generated and on real source."""

from __future__ import annotations

import symtable
import sysconfig
from collections import Counter
from pathlib import Path

import libcst as cst
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from migrator.names.bindings import (
    Form,
    all_given,
    bound_by,
    bound_in,
    changes_in,
    read_bindings,
    value_given,
    values_given,
)

Scopes = Counter[tuple[str, frozenset[str]]]
_FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
_STDLIB = Path(sysconfig.get_paths()["stdlib"])
#: Long, old, and full of what Python can do.
_MODULES = (
    *("ast", "contextlib", "dataclasses", "functools", "typing", "asyncio/tasks"),
    *("test/test_named_expressions", "test/test_patma", "test/test_scope"),
)


def _of_python(text: str) -> Scopes:
    """By symtable: what each scope is called, and the names that are bound in it and belong to it."""
    found: Scopes = Counter()

    def add(table: symtable.SymbolTable, private: str) -> None:
        if isinstance(table, symtable.Class):
            private = f"_{table.get_name().lstrip('_')}__"
        names = set()
        for symbol in table.get_symbols():
            binds = symbol.is_assigned() or symbol.is_imported() or symbol.is_parameter()
            outside = symbol.is_declared_global() or symbol.is_nonlocal()
            name = symbol.get_name()
            if binds and not outside and not name.startswith("."):  # `.0` is what a comprehension goes over
                names.add(name.replace(private, "__", 1) if private and name.startswith(private) else name)
        if table.get_type() != "module":
            found[table.get_name(), frozenset(names)] += 1
        for child in table.get_children():
            add(child, private)

    add(symtable.symtable(text, "x.py", "exec"), "")
    return found


def _of_the_table(module: cst.Module) -> Scopes:
    """The same by the binding table."""
    own: dict[cst.CSTNode, set[str]] = {}

    class Scoping(cst.CSTVisitor):
        def on_visit(self, node: cst.CSTNode) -> bool:
            kinds = cst.FunctionDef | cst.Lambda | cst.ClassDef
            if isinstance(node, kinds | cst.GeneratorExp | cst.ListComp | cst.SetComp | cst.DictComp):
                own[node] = set()
            return True

    module.visit(Scoping())
    for binding in read_bindings(module):
        # symtable counts a name as bound that is only annotated
        if binding.scope is not None and binding.form is not Form.SCOPED:
            own[binding.scope].add(binding.name)
    return Counter((_title(node), frozenset(names)) for node, names in own.items())


def _title(node: cst.CSTNode) -> str:
    """What Python calls a scope."""
    if isinstance(node, cst.FunctionDef | cst.ClassDef):
        return node.name.value
    return {"Lambda": "lambda", "GeneratorExp": "genexpr"}.get(type(node).__name__, type(node).__name__.lower())


def _agree(text: str) -> None:
    module = cst.parse_module(text)
    theirs, ours = _of_python(text), _of_the_table(module)
    assert ours - theirs == theirs - ours == Counter()
    symbols = symtable.symtable(text, "x.py", "exec").get_symbols()
    top = {s.get_name() for s in symbols if s.is_assigned() or s.is_imported()}
    # symtable does not say of a name that functions declare `global` whether the module binds it, too
    declared = {binding.name for binding in read_bindings(module) if binding.form is Form.SCOPED}
    own = {binding.name for binding in read_bindings(module) if binding.is_global and binding.form is not Form.SCOPED}
    walrus = {b.name for b in bound_in(module) if b.form is Form.WALRUS}  # in a comprehension as if it were `global`
    assert own ^ top <= declared | walrus


@pytest.mark.parametrize("name", _MODULES)
def test_real_source(name: str) -> None:
    _agree((_STDLIB / f"{name}.py").read_text(encoding="utf-8"))


@pytest.mark.parametrize("folder", sorted(one.name for one in _FIXTURES.iterdir() if one.is_dir()))
def test_fixtures(folder: str) -> None:
    for path in (_FIXTURES / folder).rglob("*.py"):
        if path.name != "keras_estimator.py":  # the same in every folder, and long
            _agree(path.read_text(encoding="utf-8"))


NAMES = st.sampled_from(["a", "b", "c", "d"])


def _target(draw: st.DrawFn, depth: int = 0) -> str:
    kind = draw(st.integers(0, 6 if depth < 2 else 3))
    name = draw(NAMES)
    plain = [name, f"{name}.x", f"{name}[0]", f"({name})"]
    if kind < 4:
        return plain[kind]
    inner = ", ".join([_target(draw, depth + 1), _target(draw, depth + 1)])
    return (f"({inner})", f"[{inner}]", f"({_target(draw, depth + 1)}, *{name})")[kind - 4]


def _expression(draw: st.DrawFn, depth: int = 0) -> str:
    kind = draw(st.integers(0, 9 if depth < 2 else 1))
    name, other = draw(NAMES), draw(NAMES)
    if kind < 2:
        return (name, "1")[kind]
    inner = _expression(draw, depth + 1)
    if kind == 2:
        return f"({name} := {inner})"
    if kind == 3:
        return f"(lambda {name}, *rest, {other}x={inner}: {_expression(draw, depth + 1)})"
    if kind == 4:
        return f"f({inner}, key={_expression(draw, depth + 1)})"
    # A walrus may not bind the name that the comprehension goes over, nor stand in what it goes over.
    if kind == 5:
        return f"[({name} := i) for i in range(3) if ({other} := i)]"
    if kind == 6:
        return f"{{i: j for i, (j, *k) in {name}.items()}}"
    if kind == 7:
        return f"{{i for i in {name} for j in i}}"
    if kind == 8:
        return f"list(({name} := i + j) for i in {other} for j in [i])"
    return f"({inner} if {name} else {_expression(draw, depth + 1)})"


def _indented(block: str) -> str:
    return "\n".join(f"    {line}" for line in block.splitlines())


def _block(draw: st.DrawFn, depth: int, function: bool) -> str:
    return "\n".join(_statement(draw, depth, function) for _ in range(draw(st.integers(1, 3))))


def _statement(draw: st.DrawFn, depth: int, function: bool) -> str:
    name, other = draw(NAMES), draw(NAMES)
    value = _expression(draw)
    simple = [
        f"{_target(draw)} = {_target(draw)} = {value}",
        f"{name}: {other}x = {value}",
        f"{name}.x: int = {value}",
        f"{name} += {value}",
        f"print({value})",
        f"del {name}, ({other}, {name}.x), {other}[0]",
        f"import {name}.sub, os.path as {other}",
        f"from m import {name}, x as {other}",
        f"from .m import ({name})",
    ]
    kind = draw(st.integers(0, len(simple) + (9 if depth < 3 else -1)))
    if kind < len(simple):
        return simple[kind]
    body = _indented(_block(draw, depth + 1, function))
    kind -= len(simple)
    if kind == 0:
        return f"for {_target(draw)} in {value}:\n{body}\nelse:\n    {name} = 1"
    if kind == 1:
        return f"with {value} as {_target(draw)}, open({name}):\n{body}"
    if kind == 2:
        return (
            f"try:\n{body}\nexcept ValueError as {name}:\n    pass\nexcept OSError:\n    {other} = 1\nfinally: {name}"
        )
    if kind == 3:
        return f"try:\n{body}\nexcept* ValueError as {name}:\n    pass"
    if kind == 4:
        patterns = [
            f"{{'k': {name}, **{other}_}}",
            f"[{name}, *{name}_]",
            f"C(x={name}) | C({name})",
            f"(1 | 2) as {name}",
            f"{name}.constant",
            name,
        ]
        return f"match {value}:\n    case {draw(st.sampled_from(patterns))} if {other}:\n{_indented(body)}"
    if kind == 5:
        return f"if {value}:\n{body}\nelif ({name} := 1):\n    pass"
    if kind == 6:
        return f"while {value}:\n{body}"
    if kind == 7:
        return f"class {name}({_expression(draw)}):\n{_indented(_block(draw, 3, False))}"
    head = ""
    own = "".join(f"    {line}\n" for line in _indented_block(draw, depth))
    if kind == 8:
        scoped = draw(st.sampled_from(["", "global a\n", "global b, c\n", "nonlocal a\n" if function else ""]))
        if scoped:
            head = f"    {scoped}"
        return f"def {name}(p={value}):\n{head}{own}"
    return f"@f({value})\nasync def {name}(a, /, b: ({name}), *c, d=1, **e) -> {other}x:\n{own}"


def _indented_block(draw: st.DrawFn, depth: int) -> list[str]:
    return _block(draw, depth + 1, True).splitlines()


@st.composite
def _programs(draw: st.DrawFn) -> str:
    return "\n".join(_statement(draw, 0, False) for _ in range(draw(st.integers(1, 5)))) + "\n"


@settings(max_examples=200, deadline=None, derandomize=True)
@given(_programs())
def test_generated_source(text: str) -> None:
    try:
        symtable.symtable(text, "x.py", "exec")
    except SyntaxError:
        assume(False)  # a name that is used before it is declared, say
    _agree(text)


def _bound(text: str) -> set[tuple[str, Form]]:
    """What a statement binds around it."""
    return {(binding.name, binding.form) for binding in bound_by(*cst.parse_module(text).body)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x: int = 1", {("x", Form.ANNOTATED)}),
        ("x: int", set()),
        ("print(x := 1)", {("x", Form.WALRUS)}),
        ("[y := x for x in z]", {("y", Form.WALRUS)}),
        ("f(lambda a=(x := 1): (y := a))", {("x", Form.WALRUS)}),
        ("(a, [b, *c]), d.e, f[0] = z", {(name, Form.ASSIGNED) for name in "abc"}),
        ("for i in z: x += 1", {("i", Form.LOOP), ("x", Form.AUGMENTED)}),
        ("with z as (a, b): pass", {("a", Form.CONTEXT), ("b", Form.CONTEXT)}),
        ("try: pass\nexcept E as e: pass", {("e", Form.EXCEPTION)}),
        ("match z:\n case [x, *y] | {**w}: pass", {(name, Form.CAPTURED) for name in "xyw"}),
        ("import a.b, c as d", {("a", Form.IMPORTED), ("d", Form.IMPORTED)}),
        ("def f(a):\n b = 1", {("f", Form.FUNCTION)}),
        ("def f(a):\n nonlocal b\n b = 1", {("f", Form.FUNCTION), ("b", Form.ASSIGNED)}),
        ("class C:\n x = 1", {("C", Form.CLASS)}),
        ("del x, (y, z.w)", {("x", Form.DELETED), ("y", Form.DELETED)}),
        # Python 3.12, which the interpreter that runs the tests need not know
        ("type X[T] = list[T]", {("X", Form.TYPE)}),
        ("def f[T: (x := 1)](a: T) -> T: pass", {("f", Form.FUNCTION)}),
        ("class C[*Ts, **P](z): x = 1", {("C", Form.CLASS)}),
    ],
)
def test_what_a_statement_binds_around_it(text: str, expected: set[tuple[str, Form]]) -> None:
    assert _bound(text) == expected


def test_a_name_belongs_to_the_function_that_nonlocal_means() -> None:
    module = cst.parse_module(
        """\
def outer(x):
    y = 1
    def middle():
        def inner():
            nonlocal x, y
            global z
            x, y, z = 1, 2, 3
        y = 2
"""
    )
    outer = next(one for one in module.body if isinstance(one, cst.FunctionDef))
    middle = next(one for one in outer.body.body if isinstance(one, cst.FunctionDef))
    assert [b.name for b in bound_in(outer)] == ["x", "y", "middle", "x"]
    assert [b.name for b in bound_in(middle)] == ["inner", "y", "y"]
    assert [b.name for b in bound_in(module)] == ["outer", "z"]
    assert [b.name for b in bound_by(middle)] == ["middle", "x", "z"]


_CHANGES = """\
a, b.c = d[0] = 1, 2
e.append(3)
(f := 4)
g: int = 5
h += 6
with i as (j, k.l): pass
def m(n, o=(p := 7)):
    q = 8
    global r
    r = 9
class s:
    t = 10
[u for u in v if (w := u)]
e.append(3).x()
print(x.y())
"""


def test_what_code_does_to_names() -> None:
    module = cst.parse_module(_CHANGES)
    found = [(b.name, b.form.name) for b in changes_in(module)]
    assert sorted(found) == sorted(
        [
            *(("a", "ASSIGNED"), ("b", "PART"), ("d", "PART"), ("e", "CALLED"), ("f", "WALRUS"), ("g", "ANNOTATED")),
            *(("h", "AUGMENTED"), ("j", "CONTEXT"), ("k", "PART"), ("m", "FUNCTION"), ("p", "WALRUS")),
            *(("s", "CLASS"), ("w", "WALRUS")),
        ]
    )
    function = next(one for one in module.body if isinstance(one, cst.FunctionDef))
    inside = [(b.name, b.form.name) for b in changes_in(function)]
    assert inside == [("n", "PARAMETER"), ("o", "PARAMETER"), ("q", "ASSIGNED"), ("r", "ASSIGNED")]


def test_what_names_are_given() -> None:
    module = cst.parse_module("x = y.z = 1\nprint(x := 2)\nx, w = 3, 4\ndef f():\n    x: int = 5\n    w += 6\n")
    assert [module.code_for_node(value) for value in values_given(module, "x")] == ["1", "2", "5"]
    assert values_given(module, "w") == values_given(module, "y") == []
    whole = [(module.code_for_node(target), module.code_for_node(value)) for target, value in all_given(module)]
    assert whole == [("x", "1"), ("y.z", "1"), ("x", "2"), ("x", "5")]
    targets = [b.target for b in read_bindings(module) if b.name == "w" and b.target is not None]
    assert [value_given(module, target) for target in targets] == [None, None]
