"""Lines that only write summaries."""

from __future__ import annotations

import builtins
from collections.abc import Iterator

import libcst as cst

from migrator.names.bindings import names_changed
from migrator.names.imports import ImportMap
from migrator.program.calls import calls_in, is_docstring, nodes_in
from migrator.program.parsed import ParsedFile, name_nodes
from migrator.program.scopes import path_to
from migrator.walking import of_kinds

#: What reads tensors, variables and their names, and does nothing else.
_READING = ("tf.math.", "tf.linalg.", "tf.reduce_")
_READS = frozenset(
    f"tf.{name}"
    for name in (
        *("abs", "add", "cast", "concat", "divide", "exp", "global_norm", "identity", "log", "multiply", "norm"),
        *(
            "nn.l2_loss",
            "nn.softmax",
            "nn.sigmoid",
            "nn.zero_fraction",
            "reshape",
            "sqrt",
            "square",
            "squeeze",
            "stack",
        ),
        *("trainable_variables", "transpose", "expand_dims", "subtract", "is_nan", "to_float"),
    )
)
_OF_TEXTS = frozenset(("endswith", "format", "get_shape", "join", "lower", "replace", "split", "startswith", "strip"))
_OF_PYTHON = frozenset(("enumerate", "float", "int", "isinstance", "len", "list", "range", "str", "zip"))


def called_for_effect(small: cst.CSTNode) -> cst.Call | None:
    """The call that is all of a statement, or that a list comprehension makes whose list nobody keeps."""
    value = small.value if isinstance(small, cst.Expr) else None
    if isinstance(value, cst.ListComp):
        value = value.elt
    return value if isinstance(value, cst.Call) else None


def summary_symbol(small: cst.CSTNode, imports: ImportMap) -> str | None:
    """The symbol of `tf.summary` that a statement calls, and does nothing else."""
    call = called_for_effect(small)
    name = None if call is None else imports.resolve(call.func)
    return name if name is not None and name.startswith("tf.summary.") else None


def only_summarizes(file: ParsedFile, statement: cst.CSTNode, scope: cst.CSTNode) -> bool:
    """Whether a loop, a condition, or a call of a function of the file does nothing but to write summaries.

    What it computes for them has names that nothing else in its scope reads.
    """
    if not _summarizes(file, statement, ()) or not any(_writes(file, node) for node in _reached(file, statement)):
        return False
    names = names_changed((statement,))
    inside = {id(node) for node in nodes_in(statement)}
    others = [node for node in name_nodes(scope) if node.value in names and id(node) not in inside]
    return all(_is_another(file, scope, node) for node in others)


def _is_another(file: ParsedFile, scope: cst.CSTNode, name: cst.Name) -> bool:
    """Whether a name is that of a comprehension, or of another loop that only writes summaries."""
    for node in path_to(scope, name):
        bound = {one.value for one in name_nodes(node.target)} if isinstance(node, cst.For) else set()
        if name.value in bound and _summarizes(file, node, ()):
            return True
        if isinstance(node, cst.BaseComp) and name.value in _given_in(node.for_in):
            return True
    return False


def _given_in(given: cst.CompFor) -> set[str]:
    inner = set() if given.inner_for_in is None else _given_in(given.inner_for_in)
    return inner | {node.value for node in name_nodes(given.target)}


def _summarizes(file: ParsedFile, node: cst.CSTNode, around: tuple[str, ...]) -> bool:
    """Whether a statement only computes, and writes summaries; `around` are the functions that it is a line of."""
    if isinstance(node, cst.SimpleStatementLine):
        return is_docstring(node) or all(_is_quiet(file, small, around) for small in node.body)
    if isinstance(node, (cst.For, cst.If)):
        head = node.iter if isinstance(node, cst.For) else node.test
        blocks = [node.body, *([] if node.orelse is None else [node.orelse])]
        plain = not isinstance(node, cst.For) or not _changes_objects(node.target)
        return plain and _computes(file, head, around) and all(_summarizes(file, one, around) for one in blocks)
    if isinstance(node, cst.With):
        named = all(
            isinstance(item.item, cst.Call)
            and item.asname is None
            and file.imports.resolve(item.item.func) == "tf.name_scope"
            for item in node.items
        )
        return named and _summarizes(file, node.body, around)
    if isinstance(node, cst.Else):
        return _summarizes(file, node.body, around)
    if isinstance(node, cst.IndentedBlock):
        return all(_summarizes(file, one, around) for one in node.body)
    return False


def _changes_objects(target: cst.CSTNode) -> bool:
    """Whether a target is something else than a name, or several."""
    return bool(of_kinds(target, cst.Attribute, cst.Subscript))


def _is_quiet(file: ParsedFile, small: cst.BaseSmallStatement, around: tuple[str, ...]) -> bool:
    if isinstance(small, (cst.Pass, cst.Continue)):
        return True
    if isinstance(small, cst.Assign):
        named = all(isinstance(one.target, cst.Name) for one in small.targets)
        return named and _computes(file, small.value, around)
    if not isinstance(small, cst.Expr):
        return False
    call = called_for_effect(small)
    return call is not None and _computes(file, small.value, around)


def _computes(file: ParsedFile, value: cst.BaseExpression, around: tuple[str, ...]) -> bool:
    """Whether an expression calls nothing but what reads, writes summaries, or is a function that does just that."""
    if of_kinds(value, cst.Await, cst.Lambda, cst.NamedExpr, cst.Yield):
        return False
    return all(_reads(file, call, around) for call in calls_in(value))


def _reads(file: ParsedFile, call: cst.Call, around: tuple[str, ...]) -> bool:
    symbol = file.imports.resolve(call.func)
    if symbol is not None:
        return symbol in _READS or symbol.startswith(("tf.summary.", *_READING))
    if isinstance(call.func, cst.Attribute):
        return call.func.attr.value in _OF_TEXTS
    name = call.func.value if isinstance(call.func, cst.Name) else ""
    function = file.functions.get(name)
    if function is None:
        return name in _OF_PYTHON and hasattr(builtins, name) and name not in file.names_at_top
    if name in around or function.decorators or not isinstance(function.body, cst.IndentedBlock):
        return False
    lines = list(function.body.body)
    end = lines[-1]
    last = end.body[-1] if isinstance(end, cst.SimpleStatementLine) else None
    if isinstance(end, cst.SimpleStatementLine) and isinstance(last, cst.Return):
        if len(end.body) != 1 or (last.value is not None and not _computes(file, last.value, (*around, name))):
            return False
        lines.pop()
    return all(_summarizes(file, line, (*around, name)) for line in lines)


def _reached(file: ParsedFile, node: cst.CSTNode) -> Iterator[cst.Call]:
    """The calls of a statement, and of the functions of the file that it calls."""
    pending, known = [node], set[str]()
    while pending:
        for call in calls_in(pending.pop()):
            yield call
            name = call.func.value if isinstance(call.func, cst.Name) else ""
            if name in file.functions and name not in known:
                known.add(name)
                pending.append(file.functions[name])


def _writes(file: ParsedFile, call: cst.Call) -> bool:
    return (file.imports.resolve(call.func) or "").startswith("tf.summary.")


__all__ = ["called_for_effect", "only_summarizes", "summary_symbol"]
