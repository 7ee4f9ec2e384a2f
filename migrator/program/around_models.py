"""What stands around the body of a model_fn and only tells somebody something: timers, loggers, handlers that raise.

`with timed("model"):`, a decorator that prints what is built, and a `try` whose handlers print and raise again change
nothing of what the model_fn builds. A Keras model is built at another time, and once: they are left out, and said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import libcst as cst

from migrator.names.bindings import Form, read_bindings
from migrator.program.calls import calls_in, functions_in, is_docstring, nodes_in, parameters_of
from migrator.program.folding import lines_instead
from migrator.program.parsed import Blocked, ParsedFile, Remover, name_nodes, removed_by
from migrator.program.scopes import always_returns
from migrator.program.telling import called, only_looks, only_tells
from migrator.rules.beside import AROUND

_ENTERED = ("__init__", "__enter__", "__exit__")


def without_what_only_tells(file: ParsedFile) -> tuple[ParsedFile, list[Blocked]]:
    """The file with model_fns that stand by themselves, and a remark for each thing that was left out."""
    if "EstimatorSpec" not in file.bare or not any(word in file.bare for word in ("try", "with ", "@")):
        return file, []
    models = [one for one in functions_in(file.module) if _makes_spec(file, one)]
    return removed_by(_Remover(file, models), file)


def _makes_spec(file: ParsedFile, node: cst.CSTNode) -> bool:
    return any((file.imports.tensorflow(call.func) or "").endswith("EstimatorSpec") for call in calls_in(node))


class _Remover(Remover):
    """Puts what is inside in the place of what only tells, in some functions."""

    def __init__(self, file: ParsedFile, models: Sequence[cst.FunctionDef]) -> None:
        super().__init__()
        self.file = file
        self.models = models
        self.inside = {node for model in models for node in nodes_in(model.body)}

    def _say(self, node: cst.CSTNode, what: str) -> None:
        self.gone.append(Blocked(AROUND, node, f"{what} only reports something, and is dropped"))

    def leave_Try(self, original_node: cst.Try, updated_node: cst.Try) -> Any:
        if original_node not in self.inside or not _makes_spec(self.file, original_node.body):
            return updated_node
        if not isinstance(updated_node.body, cst.IndentedBlock) or original_node.orelse is not None:
            return updated_node
        last = original_node.finalbody
        ends = any(original_node is model.body.body[-1] for model in self.models if not self._is_called(model))
        if not all(
            _raises_again(self.file, one) or (ends and _tells_all(self.file, one)) for one in original_node.handlers
        ):
            return updated_node
        if last is not None and not _is_quiet_block(self.file, last.body):
            return updated_node
        if last is not None and read_bindings(last.body) and not always_returns(original_node.body):
            return updated_node  # what stands behind may read these names
        self._say(original_node, "this `try`")
        return lines_instead(updated_node.body.body, updated_node.leading_lines)

    def _is_called(self, model: cst.FunctionDef) -> bool:
        """Whether code of the file calls a function: then it is not known that None in place of a spec is an error."""
        name = model.name.value
        called = [call.func for call in calls_in(self.file.module)]
        return any((one.attr if isinstance(one, cst.Attribute) else one).deep_equals(cst.Name(name)) for one in called)

    def leave_With(self, original_node: cst.With, updated_node: cst.With) -> Any:
        if original_node not in self.inside or not isinstance(updated_node.body, cst.IndentedBlock):
            return updated_node
        if not all(item.asname is None and _is_quiet_context(self.file, item.item) for item in original_node.items):
            return updated_node
        self._say(original_node, f"`{self.file.code(original_node.items[0].item)}`")
        return lines_instead(updated_node.body.body, updated_node.leading_lines)

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        if original_node not in self.models:
            return updated_node
        names = [one.name.value for one in parameters_of(original_node)]
        stay = []
        for old, new in zip(original_node.decorators, updated_node.decorators):
            if _passes_on(self.file, old.decorator, names):
                self._say(old, f"`@{self.file.code(old.decorator)}`")
            else:
                stay.append(new)
        return (
            updated_node if len(stay) == len(original_node.decorators) else updated_node.with_changes(decorators=stay)
        )


# -- what is quiet -----------------------------------------------------------------------------------------------------


def _is_quiet(file: ParsedFile, line: cst.CSTNode, of_context: bool = False) -> bool:
    """Whether a line prints, logs, or notes something for that in a name, or an attribute of a context's own `self`."""
    if only_tells(file, line) or is_docstring(line):
        return True
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    if isinstance(small, cst.Assign):
        targets = [one.target for one in small.targets]
        own = all(
            isinstance(one, cst.Name) or (of_context and isinstance(one, cst.Attribute) and _is_self(one))
            for one in targets
        )
        return own and only_looks(file, small.value)
    return isinstance(small, cst.Pass)


def _is_self(node: cst.Attribute) -> bool:
    return isinstance(node.value, cst.Name) and node.value.value == "self"


def _is_quiet_block(file: ParsedFile, block: cst.BaseSuite) -> bool:
    return isinstance(block, cst.IndentedBlock) and all(_is_quiet(file, line) for line in block.body)


def _raises_again(file: ParsedFile, handler: cst.ExceptHandler) -> bool:
    """Whether a handler tells about an error and raises it again, or another one."""
    lines = list(handler.body.body)
    last = lines.pop() if lines else None
    small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) and len(last.body) == 1 else None
    return isinstance(small, cst.Raise) and all(_is_quiet(file, line) for line in lines)


def _tells_all(file: ParsedFile, handler: cst.ExceptHandler) -> bool:
    """Whether a handler prints about an error and does no more. An Estimator fails then, as no spec comes of it."""
    smalls = [small for line in handler.body.body for small in getattr(line, "body", ())]
    lines = [one for one in handler.body.body if not isinstance(one, cst.BaseCompoundStatement)]
    if len(lines) != len(handler.body.body) or not smalls:
        return False
    calls = [small.value for small in smalls if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call)]
    printed = [one for one in calls if called(file, one.func) == "print"]
    return all(isinstance(one, cst.Pass) or (isinstance(one, cst.Expr) and one.value in printed) for one in smalls)


def _definition(file: ParsedFile, node: cst.BaseExpression) -> cst.FunctionDef | cst.ClassDef | None:
    """The function or class of the file's top level that a name is, and nothing else."""
    if not isinstance(node, cst.Name):
        return None
    bound = [one for one in read_bindings(file.module) if one.name == node.value]
    made = [one for one in file.module.body if isinstance(one, (cst.FunctionDef, cst.ClassDef))]
    found = [one for one in made if one.name.value == node.value]
    only = [one.form for one in bound] in ([Form.FUNCTION], [Form.CLASS])
    return found[0] if only and len(found) == 1 else None


def _is_quiet_context(file: ParsedFile, node: cst.BaseExpression) -> bool:
    """Whether an expression makes a context manager of the file that only tells something."""
    if not isinstance(node, cst.Call) or not all(only_looks(file, arg.value) for arg in node.args):
        return False
    if called(file, node.func) == "contextlib.nullcontext":
        return True
    made = _definition(file, node.func)
    if isinstance(made, cst.FunctionDef):
        marks = [called(file, one.decorator) for one in made.decorators]
        return marks == ["contextlib.contextmanager"] and _yields_once(file, made.body)
    if not isinstance(made, cst.ClassDef) or made.decorators or made.keywords:
        return False
    if any(called(file, one.value) != "object" for one in made.bases):
        return False
    methods = [line for line in made.body.body if not is_docstring(line)]
    return all(isinstance(one, cst.FunctionDef) and _is_quiet_method(file, one) for one in methods)


def _yields_once(file: ParsedFile, block: cst.BaseSuite) -> bool:
    """Whether lines of a generator tell something around one `yield` of nothing."""
    found = 0
    for line in block.body:
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
        if isinstance(small, cst.Expr) and isinstance(small.value, cst.Yield) and small.value.value is None:
            found += 1
        elif isinstance(line, cst.Try) and not line.handlers and line.orelse is None and line.finalbody is not None:
            if not _yields_once(file, line.body) or not _is_quiet_block(file, line.finalbody.body):
                return False
            found += 1
        elif not _is_quiet(file, line):
            return False
    return found == 1


def _is_quiet_method(file: ParsedFile, method: cst.FunctionDef) -> bool:
    if method.name.value not in _ENTERED or method.decorators:
        return False
    lines = list(method.body.body)
    last = lines[-1] if lines else None
    small = last.body[0] if isinstance(last, cst.SimpleStatementLine) and len(last.body) == 1 else None
    if isinstance(small, cst.Return):
        given = small.value.value if isinstance(small.value, cst.Name) else "" if small.value is not None else "None"
        if given not in (("self",) if method.name.value == "__enter__" else ("None", "False")):
            return False
        del lines[-1]
    return all(_is_quiet(file, line, of_context=True) for line in lines)


# -- decorators --------------------------------------------------------------------------------------------------------


def _passes_on(file: ParsedFile, decorator: cst.BaseExpression, names: Sequence[str]) -> bool:
    """Whether a decorator of the file gives a function of parameters `names` that calls the decorated one as it is."""
    if isinstance(decorator, cst.Call):
        made = _definition(file, decorator.func)
        if not isinstance(made, cst.FunctionDef) or not all(only_looks(file, arg.value) for arg in decorator.args):
            return False
        inner = _returned_function(file, made)
        return inner is not None and _is_handing(file, inner, names)
    made = _definition(file, decorator)
    return isinstance(made, cst.FunctionDef) and _is_handing(file, made, names)


def _returned_function(file: ParsedFile, function: cst.FunctionDef) -> cst.FunctionDef | None:
    """The function that another one makes and returns, where it only tells something beside."""
    if function.decorators or function.asynchronous is not None:
        return None
    *lines, last = function.body.body
    small = last.body[0] if isinstance(last, cst.SimpleStatementLine) and len(last.body) == 1 else None
    name = small.value.value if isinstance(small, cst.Return) and isinstance(small.value, cst.Name) else None
    made = [one for one in lines if isinstance(one, cst.FunctionDef)]
    if len(made) != 1 or made[0].name.value != name or sum(n.value == name for n in name_nodes(function)) != 2:
        return None
    return made[0] if all(one is made[0] or _is_quiet(file, one) for one in lines) else None


def _is_handing(file: ParsedFile, decorator: cst.FunctionDef, names: Sequence[str]) -> bool:
    """Whether a function of one function gives another, which calls it once as it is called, and returns its result."""
    params = decorator.params
    plain = len(params.params) == 1 == len(parameters_of(decorator)) and params.star_kwarg is None
    if not plain or isinstance(params.star_arg, cst.Param):
        return False
    own = params.params[0].name.value
    inner = _returned_function(file, decorator)
    if inner is None or inner.asynchronous is not None:
        return False
    for one in inner.decorators:
        wraps = one.decorator
        if not isinstance(wraps, cst.Call) or called(file, wraps.func) != "functools.wraps" or len(wraps.args) != 1:
            return False
    calls = [call for call in calls_in(inner.body) if isinstance(call.func, cst.Name) and call.func.value == own]
    mentions = [n for n in name_nodes(inner.body) if n.value == own and not _is_name_of(file, n)]
    if len(calls) != 1 or len(mentions) != 1 or not _passes_all(inner, calls[0], names):
        return False
    result: str | None = None
    for line in inner.body.body:
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
        if isinstance(small, cst.Return):
            given = small.value
            return given is calls[0] or (isinstance(given, cst.Name) and given.value == result and result is not None)
        target = small.targets[0].target if isinstance(small, cst.Assign) and len(small.targets) == 1 else None
        if isinstance(small, cst.Assign) and small.value is calls[0] and isinstance(target, cst.Name):
            result = target.value
        elif not _is_quiet(file, line) or (result is not None and _gives(line, result)):
            return False
    return False


def _is_name_of(file: ParsedFile, node: cst.Name) -> bool:
    """Whether a function is only asked for its name."""
    around = file.parents.get(node)
    return isinstance(around, cst.Attribute) and around.value is node and around.attr.value == "__name__"


def _gives(line: cst.CSTNode, name: str) -> bool:
    return any(one.name == name for one in read_bindings(line))


def _passes_all(inner: cst.FunctionDef, call: cst.Call, names: Sequence[str]) -> bool:
    """Whether a function of the parameters of another, or of any, gives these to it in their places."""
    params = inner.params
    if params.kwonly_params or params.posonly_params:
        return False
    own = [one.name.value for one in params.params]
    given = [arg for arg in call.args if not arg.star]
    stars = [(arg.star, arg.value.value) for arg in call.args if arg.star and isinstance(arg.value, cst.Name)]
    rest = [params.star_arg if isinstance(params.star_arg, cst.Param) else None, params.star_kwarg]
    wanted = [(star, one.name.value) for star, one in zip(("*", "**"), rest) if one is not None]
    if own != list(names[: len(own)]) or (len(own) < len(names) and not wanted) or len(given) != len(own):
        return False
    for name, arg in zip(own, given):
        if not isinstance(arg.value, cst.Name) or arg.value.value != name:
            return False
        if arg.keyword is not None and arg.keyword.value != name:
            return False
    changed = {one.name for one in read_bindings(inner.body)} & {*own, *(name for _, name in wanted)}
    return stars == wanted and not changed


__all__ = ["without_what_only_tells"]
