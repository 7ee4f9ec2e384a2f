"""Initializable iterators: input functions that give tensors of one, and the hooks that initialize it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from migrator.findings import Severity
from migrator.names.imports import ImportMap
from migrator.program.calls import is_name, is_none
from migrator.program.classes import find_class, methods_named
from migrator.program.parsed import ParsedFile, Project, name_nodes
from migrator.program.scopes import returns_in
from migrator.rules.callbacks import is_hook_base
from migrator.rules.rule import Rule
from migrator.walking import of_kinds, walk

if TYPE_CHECKING:
    from typing import TypeGuard

RULES = (
    Rule(
        "TFM165",
        "hooks that initialize iterators",
        Severity.MANUAL,
        """
An input function that makes an initializable iterator needs a hook that runs the iterator's initializer, often to feed
it arrays through placeholders. Understood is a function that returns the input function and such a hook (TFM614): the
hook is made by a call of a class that does nothing but call the function that it is given, in `after_create_session`,
and the input function gives it `lambda session: session.run(iterator.initializer, feed_dict={...})`. Anything else is
left: write `return dataset` in the place of the iterator, its `get_next()` and the hook's function (and make the
dataset of the arrays themselves: `tf.data.Dataset.from_tensor_slices(arrays)`, or `from_generator`), return the input
function alone, and leave the hook out of `hooks=`.
""",
    ),
    Rule(
        "TFM614",
        "an input_fn returns its dataset instead of initializing an iterator",
        Severity.REVIEW,
        """
The hook that ran the iterator's initializer is left out, with its class where nothing else names that, and the input
function returns the dataset; `make_initializable_iterator` with its initializer in the collection
`TABLE_INITIALIZERS` is the same. Arrays that were fed through placeholders are given to the dataset themselves.
`Estimator` did exactly this with the dataset that an input function returns, so that the same batches come in the same
order. Docstrings that speak of the hook are yours to change.
""",
    ),
    Rule(
        "TFM615",
        "an input_fn for TensorFlow 1 and 2",
        Severity.REVIEW,
        """
The function that gives the input function and the hook is also used by code that is no Estimator's and stays TensorFlow
1, such as a `MonitoredTrainingSession` with the hook. Both still get what they got there: in TensorFlow 2 the input
function returns its dataset, in TensorFlow 1 the tensors of its iterator. Once the other code is gone, only the
`return` of the dataset has to stay.
""",
    ),
    Rule(
        "TFM620",
        "code that inspects the data outside the training",
        Severity.REVIEW,
        """
A session that runs nothing but what an iterator gives (`sess.run(iterator.get_next())`) is a look at the data. The new
program takes the elements of the dataset itself: `iterator = dataset.as_numpy_iterator()`, and `next(iterator)` in each
place where one was run; at the end that is a `StopIteration`, which `except tf.errors.OutOfRangeError` becomes. The
elements are arrays that cannot be written to. Tensors that were only printed are those of `next(iter(dataset))`, and
have values now. Sessions that run anything else beside an Estimator are left, and the program becomes a bridge.
""",
    ),
)

#: The code of iterators that a program asks for a look at its data.
LOOKED_AT = "TFM620"
_MAKERS = ("tf.data.make_initializable_iterator", "tf.compat.v1.data.make_initializable_iterator")


@dataclass(frozen=True)
class Initializer:
    """A function that returns an input function, and a hook that initializes its iterator.

    `index` is the place of the hook in what is returned and `name` what it is called, `made` the line that makes it of
    the class `owner`, `setters` the lines that give it what to run.
    """

    file: ParsedFile
    maker: cst.FunctionDef
    index: int
    name: str
    made: cst.SimpleStatementLine
    owner: tuple[ParsedFile, cst.ClassDef]
    setters: tuple[tuple[cst.FunctionDef, cst.SimpleStatementLine], ...]

    @property
    def returns(self) -> list[cst.Tuple]:
        """What the function returns, the hook among it."""
        return [r.value for r in returns_in(self.maker.body) if isinstance(r.value, cst.Tuple)]


@dataclass(frozen=True)
class Unpacked:
    """`input_fn, hook = maker(...)` in a scope of a file: the call, the targets, and what the function is."""

    file: ParsedFile
    scope: cst.CSTNode
    call: cst.Call
    target: cst.Tuple
    initializer: Initializer

    @property
    def hook(self) -> cst.Name:
        """The target of the hook."""
        found = self.target.elements[self.initializer.index].value
        assert isinstance(found, cst.Name)
        return found


def read_unpacked(project: Project, file: ParsedFile, scope: cst.CSTNode, name: str) -> Unpacked | None:
    """The line that gives a name a hook which only initializes an iterator; None where that is not sure."""
    found = unpackings(scope, name)
    if len(found) != 1 or not isinstance(found[0][0].targets[0].target, cst.Tuple):
        return None
    assign, call, index = found[0]
    target = assign.targets[0].target
    assert isinstance(target, cst.Tuple)
    made = _made_by(project, file, call.func)
    initializer = None if made is None else _initializer(project, *made, index, len(target.elements))
    return None if initializer is None else Unpacked(file, scope, call, target, initializer)


def looks_like_one(project: Project, file: ParsedFile, scope: cst.CSTNode, name: str) -> str | None:
    """The class of a hook that seems to initialize an iterator, for a name that `read_unpacked` does not understand."""
    for _, call, index in unpackings(scope, name):
        made = _made_by(project, file, call.func)
        for returned in returns_in(made[1].body) if made is not None else ():
            value = returned.value
            if made is None or not isinstance(value, cst.Tuple) or len(value.elements) <= index:
                continue
            hook = value.elements[index].value
            for line in made[1].body.body:
                small = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
                if not isinstance(hook, cst.Name) or not isinstance(small, cst.Assign) or not _gives(line, hook.value):
                    continue
                owner = find_class(project, made[0], made[1], small.value.func) if _is_call(small.value) else None
                if owner is not None and "after_create_session" in _methods(owner[1]):
                    return owner[1].name.value
    return None


def _is_call(node: cst.BaseExpression) -> TypeGuard[cst.Call]:
    return isinstance(node, cst.Call)


def _methods(owner: cst.ClassDef) -> dict[str, cst.FunctionDef]:
    return {s.name.value: s for s in owner.body.body if isinstance(s, cst.FunctionDef)}


def unpackings(scope: cst.CSTNode, name: str) -> list[tuple[cst.Assign, cst.Call, int]]:
    """`a, name = call(...)` in a scope: the assignment, the call, and the place of the name."""
    return [
        (node, node.value, index)
        for node in of_kinds(scope, cst.Assign)
        if isinstance(node.value, cst.Call)
        for target in node.targets
        if isinstance(target.target, cst.Tuple)
        for index, element in enumerate(target.target.elements)
        if is_name(element.value, name)
    ]


def _made_by(project: Project, file: ParsedFile, func: cst.BaseExpression) -> tuple[ParsedFile, cst.FunctionDef] | None:
    """The function that is called, or the only method of its name in the given files."""
    known = project.function(file, func)
    if known is not None:
        return known
    if not isinstance(func, cst.Attribute) or file.imports.resolve(func) is not None:
        return None
    found = methods_named(project, func.attr.value)
    return found[0] if len(found) == 1 else None


def _initializer(
    project: Project, file: ParsedFile, maker: cst.FunctionDef, index: int, length: int
) -> Initializer | None:
    returns = returns_in(maker.body)
    hooks: list[cst.Name] = []
    for returned in returns:
        value = returned.value
        if not isinstance(value, cst.Tuple) or len(value.elements) != length:
            return None
        hook = value.elements[index].value
        if not isinstance(hook, cst.Name):
            return None
        hooks.append(hook)
    if len({hook.value for hook in hooks}) != 1 or maker.decorators:
        return None
    name = hooks[0].value
    made = [line for line in maker.body.body if _gives(line, name)]
    if len(made) != 1:
        return None
    line = made[0]
    assert isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[0], cst.Assign)
    call = line.body[0].value
    owner = find_class(project, file, maker, call.func) if isinstance(call, cst.Call) and not call.args else None
    attribute = None if owner is None else _runs(*owner)
    if owner is None or attribute is None:
        return None
    finder = _Setters(name, attribute)
    walk(maker, finder)
    explained = [line.body[0].targets[0].target, *hooks, *finder.receivers]
    if any(n.value == name and not any(n is e for e in explained) for n in name_nodes(maker)):
        return None
    return Initializer(file, maker, index, name, line, owner, tuple(finder.found)) if finder.found else None


def _gives(line: cst.BaseStatement | cst.BaseSmallStatement, name: str) -> bool:
    """Whether a line is `name = ...` and nothing else."""
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return False
    small = line.body[0]
    if not isinstance(small, cst.Assign) or len(small.targets) != 1:
        return False
    target = small.targets[0].target
    return isinstance(target, cst.Name) and target.value == name


def _runs(file: ParsedFile, owner: cst.ClassDef) -> str | None:
    """The attribute that a hook calls with the session, where it does nothing else."""
    methods = _methods(owner)
    base = len(owner.bases) == 1 and is_hook_base(file.imports.tensorflow(owner.bases[0].value))
    if not base or not methods.keys() <= {"__init__", "after_create_session"} or "after_create_session" not in methods:
        return None
    runs = _without_docstring(methods["after_create_session"])
    params = [p.name.value for p in methods["after_create_session"].params.params]
    small = runs[0].body[0] if len(runs) == 1 and isinstance(runs[0], cst.SimpleStatementLine) else None
    called = small.value if isinstance(small, cst.Expr) else None
    if not isinstance(called, cst.Call) or len(called.args) != 1 or len(params) != 3:
        return None
    attribute = _own(called.func, params[0])
    if attribute is None or file.code(called.args[0].value) != params[1]:
        return None
    for line in _without_docstring(methods["__init__"]) if "__init__" in methods else ():
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
        if isinstance(small, cst.Assign) and len(small.targets) == 1 and is_none(small.value):
            if _own(small.targets[0].target, "self") == attribute:
                continue
        if isinstance(small, cst.Expr) and file.code(small.value).startswith("super("):
            continue
        return None
    return attribute


def _own(node: cst.BaseExpression, me: str) -> str | None:
    """`name` of `self.name`."""
    if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name) and node.value.value == me:
        return node.attr.value
    return None


def _without_docstring(function: cst.FunctionDef) -> Sequence[cst.BaseStatement | cst.BaseSmallStatement]:
    body = function.body.body
    first = body[0].body[0] if body and isinstance(body[0], cst.SimpleStatementLine) else None
    doc = isinstance(first, cst.Expr) and isinstance(first.value, (cst.SimpleString, cst.ConcatenatedString))
    return body[1:] if doc else body


class _Setters(cst.CSTVisitor):
    """`hook.attribute = lambda session: session.run(...)` in the functions inside another one."""

    def __init__(self, name: str, attribute: str) -> None:
        super().__init__()
        self.name = name
        self.attribute = attribute
        self.found: list[tuple[cst.FunctionDef, cst.SimpleStatementLine]] = []
        self.receivers: list[cst.Name] = []
        self._functions: list[cst.FunctionDef] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._functions.append(node)

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        self._functions.pop()

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        if len(node.body) != 1 or not isinstance(node.body[0], cst.Assign) or len(self._functions) < 2:
            return
        small = node.body[0]
        target = small.targets[0].target
        if len(small.targets) == 1 and _own(target, self.name) == self.attribute:
            if initialization(small.value) is not None:
                assert isinstance(target, cst.Attribute) and isinstance(target.value, cst.Name)
                self.found.append((self._functions[-1], node))
                self.receivers.append(target.value)


# -- in the input function ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Initialization:
    """The iterator whose initializer is run, and what the placeholders are fed."""

    iterator: str
    fed: dict[str, cst.BaseExpression]


def initialization(node: cst.BaseExpression) -> Initialization | None:
    """`lambda session: session.run(iterator.initializer, feed_dict={placeholder: array})`."""
    if not isinstance(node, cst.Lambda) or len(node.params.params) != 1 or not isinstance(node.body, cst.Call):
        return None
    call, session = node.body, node.params.params[0].name.value
    if _own(call.func, session) != "run" or not 1 <= len(call.args) <= 2 or any(arg.star for arg in call.args):
        return None
    iterator = _initialized(call.args[0].value)
    if iterator is None or call.args[0].keyword is not None:
        return None
    if len(call.args) == 1:
        return Initialization(iterator, {})
    keyword, value = call.args[1].keyword, call.args[1].value
    if (keyword is not None and keyword.value != "feed_dict") or not isinstance(value, cst.Dict):
        return None
    fed: dict[str, cst.BaseExpression] = {}
    for element in value.elements:
        if not isinstance(element, cst.DictElement) or not isinstance(element.key, cst.Name):
            return None
        fed[element.key.value] = element.value
    return Initialization(iterator, fed)


def _initialized(node: cst.BaseExpression) -> str | None:
    """`iterator` of `iterator.initializer`."""
    if isinstance(node, cst.Attribute) and node.attr.value == "initializer" and isinstance(node.value, cst.Name):
        return node.value.value
    return None


def of_collection(node: cst.BaseSmallStatement, imports: ImportMap) -> str | None:
    """`iterator` of `tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)`."""
    call = node.value if isinstance(node, cst.Expr) else None
    if not isinstance(call, cst.Call) or imports.resolve(call.func) != "tf.add_to_collection" or len(call.args) != 2:
        return None
    if imports.resolve(call.args[0].value) != "tf.GraphKeys.TABLE_INITIALIZERS":
        return None
    return _initialized(call.args[1].value)


def initializable(node: cst.BaseExpression, imports: ImportMap) -> cst.BaseExpression | None:
    """The dataset of `d.make_initializable_iterator()` or `tf.data.make_initializable_iterator(d)`."""
    if not isinstance(node, cst.Call):
        return None
    if imports.resolve(node.func) in _MAKERS:
        return node.args[0].value if len(node.args) == 1 else None
    if isinstance(node.func, cst.Attribute) and node.func.attr.value == "make_initializable_iterator" and not node.args:
        return node.func.value
    return None


def setting_of(line: cst.CSTNode) -> Initialization | None:
    """What a line that gives a hook its function initializes."""
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
    return initialization(small.value) if isinstance(small, cst.Assign) else None


def without_element(node: cst.Tuple, index: int) -> cst.BaseExpression:
    """A tuple without one of its elements; of two the other alone."""
    rest = [element for i, element in enumerate(node.elements) if i != index]
    if len(rest) == 1:
        return rest[0].value
    last = rest[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return node.with_changes(elements=[*rest[:-1], last])
