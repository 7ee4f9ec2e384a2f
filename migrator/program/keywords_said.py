"""Keywords that a driver gives as a dict, one by one: `estimator.train(fn, **more)`, `RunConfig(**CONFIG["run"])`.

Which keywords a dict holds when the call is made is asked of the evaluator. Where they are always the same, they stand
in the call, each read from the dict: `steps=more["steps"]`; a dict that is always empty goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import libcst as cst

from migrator.names.bindings import owns
from migrator.program.calls import calls_in, keyword_argument, string
from migrator.program.known import program_of
from migrator.program.parsed import ParsedFile
from migrator.program.reductions import Edits, applied
from migrator.program.scopes import path_to
from migrator.program.training import METHODS

_MADE = ("tf.estimator.", "tf.contrib.tpu.", "tf.contrib.learn.RunConfig")


def with_keywords_said(file: ParsedFile, others: Iterable[ParsedFile], elsewhere: Callable[[str], bool]) -> ParsedFile:
    """The file with such keywords written out; `elsewhere` says whether a name stands in another file."""
    if "**" not in file.bare:
        return file
    calls = [call for call in calls_in(file.module) if _is_concerned(file, call, elsewhere)]
    if not calls:
        return file  # before the program is evaluated, which takes the longest
    program = program_of(file, others)
    if not program.is_complete:
        return file
    edits = Edits()
    for call in calls:
        made = [one.operation for one in program.effects if one.operation.site is not None]
        given = {tuple(one.kwargs) for one in made if one.site is not None and one.site.node is call}
        if len(given) == 1:
            [names] = given
            if not {"*", "**"}.isdisjoint(names):
                continue  # there may be others
            edits.expressions[call] = _written(call, names)
    return applied(file, edits) if edits.expressions else file


def _is_concerned(file: ParsedFile, call: cst.Call, elsewhere: Callable[[str], bool]) -> bool:
    """Whether a call makes something of a driver, or drives an Estimator, with one dict of keywords that has a name."""
    stars = [arg for arg in call.args if arg.star]
    if len(stars) != 1 or stars[0].star != "**" or file.may_have_comment(call):
        return False
    symbol = file.imports.tensorflow(call.func)
    is_method = symbol is None and isinstance(call.func, cst.Attribute) and call.func.attr.value in METHODS
    root = _root(stars[0].value)
    if root is None or not (is_method or (symbol or "").startswith(_MADE)):
        return False
    # What another file gives a parameter is not seen here.
    around = [one for one in path_to(file.module, call) if isinstance(one, (cst.FunctionDef, cst.Lambda))]
    owners = [one for one in around if owns(one, root)]
    return not any(isinstance(one, cst.FunctionDef) and elsewhere(one.name.value) for one in owners)


def _root(node: cst.BaseExpression) -> str | None:
    """The name of `name`, `name.attribute` or `name["entry"]`; None for what may do something when it is read."""
    while not isinstance(node, cst.Name):
        if isinstance(node, cst.Attribute):
            node = node.value
        elif isinstance(node, cst.Subscript) and len(node.slice) == 1:
            index = node.slice[0].slice
            if not isinstance(index, cst.Index) or string(index.value) is None:
                return None
            node = node.value
        else:
            return None
    return node.value


def _written(call: cst.Call, names: Iterable[str]) -> cst.Call:
    """The call with the keywords that its dict holds."""
    said = {arg.keyword.value for arg in call.args if arg.keyword is not None}
    args: list[cst.Arg] = []
    for arg in call.args:
        if not arg.star:
            args.append(arg)
            continue
        for name in names:
            if name not in said:
                entry = cst.SubscriptElement(cst.Index(cst.SimpleString(f'"{name}"')))
                args.append(keyword_argument(name, cst.Subscript(arg.value, [entry])))
    plain = [arg.with_changes(comma=cst.MaybeSentinel.DEFAULT) for arg in args]
    return call.with_changes(args=plain)


__all__ = ["with_keywords_said"]
