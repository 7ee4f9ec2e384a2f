"""Configurations and specifications that code of the file makes, written where they are used: `config=Run(9).config()`.

What such a call gives is asked of the evaluator. Where it is always one `RunConfig`, `TrainSpec` or `EvalSpec` (or a
tuple of them) whose arguments can be said at the place of the call, it stands there as it is made, and what only served
to make it goes: a function, a lambda, a class of static methods, whatever branches and dicts of arguments it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import libcst as cst

from migrator.ir.evaluate import Evaluator
from migrator.ir.program import Program
from migrator.ir.values import Constant, Function, Operation, Site, Value
from migrator.ir.values import Sequence as Items
from migrator.names.bindings import owns
from migrator.program.calls import calls_in, keyword_argument, nodes_in
from migrator.program.known import program_of, values_at
from migrator.program.parsed import ParsedFile, name_nodes, names_in
from migrator.program.reductions import Edits, applied, is_harmless
from migrator.program.scopes import path_to
from migrator.walking import of_kinds

#: What may be made anew for each call: it says something, and does nothing.
_SAID = (
    *("tf.estimator.RunConfig", "tf.contrib.tpu.RunConfig", "tf.estimator.tpu.RunConfig"),
    *("tf.estimator.TrainSpec", "tf.estimator.EvalSpec"),
)
_SMALLS = (cst.Assign, cst.Return, cst.Pass)
_BLOCKS = (cst.If, cst.Else, cst.SimpleStatementLine)
_PLAIN = ("dict", "int", "float", "str", "bool")


def with_settings_in_place(
    file: ParsedFile, others: Iterable[ParsedFile], elsewhere: Callable[[str], bool]
) -> ParsedFile:
    """The file with such settings where they are used; `elsewhere` says whether a name stands in another file."""
    if not any(one.rpartition(".")[2] + "(" in file.bare for one in _SAID):
        return file
    calls = [call for call in calls_in(file.module) if _may_make(file, call)]
    if not calls or not any(_is_made_in_a_function(file, call) for call in calls_in(file.module)):
        return file  # before the program is evaluated, which takes the longest
    program = program_of(file, others)
    if not program.is_complete:
        return file
    edits = Edits()
    makers: set[str] = set()
    for call in calls:
        if any(node in edits.expressions for node in nodes_in(call)) or file.may_have_comment(call):
            continue
        new = _Place(file, program, call).edit()
        if new is not None:
            edits.expressions[new[0]] = new[1]
            makers |= names_in(call.func)
    if not edits:
        return file
    changed = applied(file, edits)
    gone = _gone(changed, makers, elsewhere)
    return changed if gone is None else gone


def _may_make(file: ParsedFile, call: cst.Call) -> bool:
    """Whether a call may be one of the file's own code that makes a setting."""
    names = names_in(call.func)
    first = next(iter(name_nodes(call.func)), None)
    if first is None or first.value not in file.names_at_top or first.value in file.imports.names:
        return False
    return len(names) == 1


def _is_made_in_a_function(file: ParsedFile, call: cst.Call, makes: Callable[[str], bool] = _SAID.__contains__) -> bool:
    """Whether a call makes what `makes` knows, in functions that do nothing else."""
    if not makes(file.imports.tensorflow(call.func) or ""):
        return False
    around = [one for one in path_to(file.module, call) if isinstance(one, (cst.FunctionDef, cst.Lambda))]
    return bool(around) and all(_is_quiet(one, file, makes) for one in around)


def made_at(file: ParsedFile, call: cst.Call, makes: Callable[[str], bool]) -> cst.BaseExpression | None:
    """What a call of the file's own code gives, as an expression for its place: a call of what `makes` knows.

    None where it may give something else, or does more than to make that.
    """
    if not _may_make(file, call):
        return None
    program = program_of(file)
    values = values_at(program, call) if program.is_complete else []
    return _Place(file, program, call, makes).said(values)


class _Place:
    """A call of the file's own code, and what it gives: something that symbols make which `makes` knows."""

    def __init__(
        self, file: ParsedFile, program: Program, call: cst.Call, makes: Callable[[str], bool] = _SAID.__contains__
    ) -> None:
        self.file = file
        self.makes = makes
        self.evaluator: Evaluator = program.evaluator
        self.program = program
        self.call = call
        self.parent = file.parents.get(call)
        self.inner = [call, *calls_in(call.func)]
        self.given = [(arg.value, values_at(program, arg.value)) for one in self.inner for arg in one.args]

    def edit(self) -> tuple[cst.CSTNode, cst.BaseExpression] | None:
        """What is replaced, and what stands there then; None where the call stays."""
        values = values_at(self.program, self.call)
        if len(values) != 1 or not self._only_makes():
            return None
        [value] = values
        star = self.parent.star if isinstance(self.parent, cst.Arg) else ""
        if isinstance(value, Items) and value.kind == "tuple" and star == "*":
            return self._apart(value)
        said = self._setting(value) if not star else None
        return None if said is None else (self.call, said)

    def said(self, values: Sequence[Value]) -> cst.BaseExpression | None:
        """The expression for the only one of some values."""
        return self._setting(values[0]) if len(values) == 1 and self._only_makes() else None

    def _apart(self, value: Items) -> tuple[cst.CSTNode, cst.BaseExpression] | None:
        """`train_and_evaluate(estimator, *specs())`, with each of them as an argument."""
        assert isinstance(self.parent, cst.Arg)
        outer = self.file.parents.get(self.parent)
        content = self.evaluator.content_of(value)
        if not isinstance(outer, cst.Call) or content is None or content.more:
            return None
        made = [self._setting(one) for one in content.items]
        if None in made:
            return None
        args: list[cst.Arg] = []
        for arg in outer.args:
            args += [cst.Arg(one) for one in made if one is not None] if arg is self.parent else [arg]
        return outer, outer.with_changes(args=args)

    def _only_makes(self) -> bool:
        """Whether the call does nothing but to make settings, in code that changes nothing but names of its own."""
        classes = [one for one in self.file.module.body if isinstance(one, cst.ClassDef)]
        for one in self.inner[1:]:
            made = [c for c in classes if isinstance(one.func, cst.Name) and c.name.value == one.func.value]
            if len(made) != 1 or not _is_made_quietly(made[0]):
                return False
        for effect in self.program.effects:
            if self._is_inside(effect.operation.site) and not self.makes(effect.operation.symbol):
                return False
        return True

    def _is_inside(self, site: Site | None) -> bool:
        """Whether code ran in the call."""
        while site is not None:
            if any(site.node is one for one in self.inner):
                return True
            site = site.frame.caller if site.frame is not None else None
        return False

    def _setting(self, value: Value) -> cst.BaseExpression | None:
        """The expression that makes a setting, for this place."""
        if not isinstance(value, Operation) or not self.makes(value.symbol) or value.scopes or value.site is None:
            return None
        node, path, frame = value.site.node, value.site.path, value.site.frame
        if frame is None or frame.caller is None or frame.caller.node is not self.call:
            return None  # another function made it
        if path != self.file.path or not isinstance(node, cst.Call):
            return None
        if self.file.imports.tensorflow(node.func) != value.symbol or not self._means_the_same(node.func, node):
            return None
        if not _is_made_in_a_function(self.file, node, self.makes):
            return None
        args: list[cst.Arg] = []
        for name, one in _arguments(value):
            written = self._argument(one, _written(node, name, len(args)), node)
            if written is None:
                return None
            args.append(cst.Arg(written) if name is None else keyword_argument(name, written))
        return cst.Call(node.func, args)

    def _argument(self, value: Value, written: cst.BaseExpression | None, node: cst.Call) -> cst.BaseExpression | None:
        """What an argument of a setting is called at this place."""
        for one, values in self.given:
            if is_harmless(one) and len(values) == 1 and values[0] is value:
                return one
        for known in (written, *self._given_inside(value, node)):
            if known is not None and _is_read(known) and self._means_the_same(known, node):
                return known
        if isinstance(value, Constant) and isinstance(value.value, (int, float, str, bool, type(None))):
            inside = value.site is not None and value.site.frame is not None
            text = repr(value.value)
            return cst.parse_expression(text) if inside and "\\" not in text and text not in ("nan", "inf") else None
        if isinstance(value, Function) and isinstance(value.node, cst.FunctionDef):
            function = self.file.functions.get(value.name)
            name = cst.Name(value.name)
            return name if function is value.node and self._means_the_same(name, node) else None
        return self._setting(value)

    def _given_inside(self, value: Value, node: cst.Call) -> list[cst.BaseExpression]:
        """The expressions for a value in the function that makes the setting."""
        functions = [one for one in path_to(self.file.module, node) if isinstance(one, cst.FunctionDef)]
        inside = nodes_in(functions[-1].body) if functions else ()
        known = [one for one in inside if isinstance(one, cst.BaseExpression)]
        return [one for one in known if any(value is other for other in values_at(self.program, one))]

    def _means_the_same(self, node: cst.BaseExpression, at: cst.CSTNode) -> bool:
        """Whether the names of an expression are those of the module, where it stands as where the call does."""
        around = [*path_to(self.file.module, at)[1:], *path_to(self.file.module, self.call)[1:]]
        return not any(owns(one, name) for one in around for name in names_in(node))


def _arguments(value: Operation) -> list[tuple[str | None, Value]]:
    return [*((None, one) for one in value.args), *value.kwargs.items()]


def _written(node: cst.Call, name: str | None, at: int) -> cst.BaseExpression | None:
    """The expression that a call gives for an argument."""
    if any(arg.star for arg in node.args):
        return None
    for index, arg in enumerate(node.args):
        if (arg.keyword.value if arg.keyword is not None else None) == name and (name is not None or index == at):
            return arg.value
    return None


def _is_read(node: cst.BaseExpression) -> bool:
    """A name, or an attribute of one: what it stands for is read anew wherever it stands."""
    return is_harmless(node) and not isinstance(node, (cst.SimpleString, cst.Integer, cst.Float))


def _is_quiet(function: cst.FunctionDef | cst.Lambda, file: ParsedFile, makes: Callable[[str], bool]) -> bool:
    """Whether a function changes nothing but names of its own, and calls nothing but what makes settings."""
    if isinstance(function, cst.FunctionDef):
        if function.asynchronous is not None or not isinstance(function.body, cst.IndentedBlock):
            return False
        decorators = [one.decorator for one in function.decorators]
        if not all(isinstance(one, cst.Name) and one.value in ("staticmethod", "classmethod") for one in decorators):
            return False
    body = function.body
    if file.may_have_comment(body):
        return False
    for node in nodes_in(body):
        if isinstance(node, cst.BaseCompoundStatement) and not isinstance(node, _BLOCKS):
            return False
        if isinstance(node, cst.BaseSmallStatement) and not isinstance(node, _SMALLS) and not _says_nothing(node):
            return False
        if isinstance(node, cst.Call) and not _makes(node, function, file, makes):
            return False
        if isinstance(node, cst.Assign) and not all(_is_own(one.target, function) for one in node.targets):
            return False
        if isinstance(node, (cst.Lambda, cst.NamedExpr, cst.Yield, cst.Await)) and node is not body:
            return False
    return True


def _is_made_quietly(owner: cst.ClassDef) -> bool:
    """Whether making an object of a class does nothing but to give it attributes."""
    if owner.bases and not all(isinstance(one.value, cst.Name) and one.value.value == "object" for one in owner.bases):
        return False
    methods = of_kinds(owner.body, cst.FunctionDef)
    made = [one for one in methods if one.name.value in ("__init__", "__new__", "__call__", "__getattribute__")]
    smalls = [one for method in made for one in of_kinds(method.body, cst.BaseSmallStatement)]
    plain = all(isinstance(one, (cst.Assign, cst.Pass)) for one in smalls) and not owner.decorators
    targets = [target.target for one in smalls if isinstance(one, cst.Assign) for target in one.targets]
    own = all(isinstance(one, cst.Attribute) and isinstance(one.value, cst.Name) for one in targets)
    return plain and own and not any(calls_in(method.body) for method in made)


def _says_nothing(small: cst.BaseSmallStatement) -> bool:
    return isinstance(small, cst.Expr) and isinstance(small.value, (cst.SimpleString, cst.Call))


def _makes(
    call: cst.Call, function: cst.FunctionDef | cst.Lambda, file: ParsedFile, makes: Callable[[str], bool]
) -> bool:
    if isinstance(call.func, cst.Attribute) and call.func.attr.value in ("update", "get"):
        return call.func.attr.value == "get" or _is_own(call.func.value, function)
    known = isinstance(call.func, cst.Name) and call.func.value in _PLAIN and call.func.value not in file.names_at_top
    return known or makes(file.imports.tensorflow(call.func) or "")


def _is_own(target: cst.BaseExpression, function: cst.FunctionDef | cst.Lambda) -> bool:
    """Whether a target is a name of the function's own that is no parameter, or an entry of what it made itself."""
    entry = isinstance(target, cst.Subscript)
    while isinstance(target, cst.Subscript):
        target = target.value
    if not isinstance(target, cst.Name) or not owns(function, target.value):
        return False
    given = of_kinds(function.body, cst.Assign)
    values = [a.value for a in given if any(t.target.deep_equals(target) for t in a.targets)]
    made = all(isinstance(one, (cst.Dict, cst.Call)) for one in values) and bool(values)
    return made or not entry


def _gone(file: ParsedFile, makers: Sequence[str] | set[str], elsewhere: Callable[[str], bool]) -> ParsedFile | None:
    """The file without the functions, lambdas and classes that nothing speaks of now."""
    said = [node.value for node in name_nodes(file.module)]
    edits = Edits()
    for statement in file.module.body:
        named: cst.BaseExpression | None = None
        if isinstance(statement, (cst.FunctionDef, cst.ClassDef)) and not statement.decorators:
            named = statement.name
        if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
            small = statement.body[0]
            if isinstance(small, cst.Assign) and isinstance(small.value, cst.Lambda) and len(small.targets) == 1:
                named = small.targets[0].target
        if isinstance(named, cst.Name) and named.value in makers and said.count(named.value) == 1:
            if not elsewhere(named.value):
                edits.lines[statement] = []
    return applied(file, edits) if edits else None


__all__ = ["made_at", "with_settings_in_place"]
