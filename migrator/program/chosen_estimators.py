"""One Estimator of several, or one RunConfig, by a condition: a single construction, of what the condition chooses.

`if wide: model = Estimator(a, ...)`, `else: model = Estimator(b, ...)` is `Estimator(model_fn, ...)` with a `model_fn`
that the condition chooses: the program has one Estimator, whose model_fn may be one of two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import libcst as cst

from migrator.names.free import free
from migrator.program.calls import bind, calls_in, in_parentheses, keyword_argument, with_arguments
from migrator.program.parsed import Blocked, ParsedFile
from migrator.program.plain_lines import as_statements
from migrator.program.training import Place, estimator_parameters, is_estimator
from migrator.rules.run_config import RUN_CONFIG
from migrator.walking import of_kinds

#: What an Estimator, or a RunConfig, takes to be None where it is not given.
_OPTIONAL = frozenset(
    (
        *("model_dir", "config", "params", "warm_start_from", "session_config", "tf_random_seed", "device_fn"),
        *("train_distribute", "eval_distribute", "experimental_distribute", "protocol"),
    )
)
_DISTRIBUTED = frozenset(("train_distribute", "eval_distribute"))
_ESTIMATOR, _CONFIG = "tf.estimator.Estimator", "tf.estimator.RunConfig"
_Arguments = Mapping[str, cst.BaseExpression]


@dataclass(frozen=True)
class Chosen:
    """The lines that stand in the place of a statement: its branches, and one construction behind them.

    `made` are new names, `call` is the construction, and `calls` are those that it takes the place of. `symbol` is what
    they call.
    """

    statement: cst.BaseStatement
    lines: tuple[cst.BaseStatement, ...]
    made: frozenset[str]
    call: cst.Call
    calls: tuple[cst.Call, ...]
    symbol: str


@dataclass(frozen=True)
class _Branch:
    """A branch that ends by making an Estimator under a name."""

    block: cst.IndentedBlock
    target: str
    call: cst.Call
    arguments: _Arguments


def chosen(file: ParsedFile) -> Chosen | None:
    """The first construction of a file that is one of several; None where there is none."""
    for line, value in _chosen_values(file.module):
        found = _of_value(file, line, value)
        if found is not None:
            return found
    for statement in reversed(_chains(file.module)):  # the inner ones first
        found = _of_chain(file, statement, statement)
        if found is not None:
            return found
    return None


def _of_value(file: ParsedFile, line: cst.SimpleStatementLine, value: cst.IfExp) -> Chosen | None:
    """`model = Estimator(a) if wide else Estimator(b)`, read as the statement that it is short for."""
    if file.may_have_comment(value):
        return None
    return _of_chain(file, line, as_statements(line, cst.ensure_type(line.body[0], cst.Assign), value))


def _of_chain(file: ParsedFile, statement: cst.BaseStatement, chain: cst.If) -> Chosen | None:
    branches: list[_Branch] = []
    for block in _blocks(chain):
        found = _branch(file, block) if isinstance(block, cst.IndentedBlock) else None
        if found is not None:
            branches.append(found)
        elif block is None or not _ends(block):
            return None
    symbols = {file.imports.resolve(one.call.func) for one in branches}
    if len(branches) < 2 or len(symbols) != 1 or len({one.target for one in branches}) != 1:
        return None
    branches = _with_config(file, branches)
    different = _different(file, branches)
    if different is None or (symbols == {_CONFIG} and not _DISTRIBUTED & set(different)):
        return None
    taken = set(file.names)
    names = {}
    for parameter in different:
        names[parameter] = free(parameter, taken)
        taken.add(names[parameter])
    new = chain.visit(_Branches({one.block: _assignments(one, names) for one in branches}))
    first = branches[0]
    given = {**first.arguments, **{parameter: cst.Name(name) for parameter, name in names.items()}}
    call = with_arguments(first.call, [keyword_argument(key, value) for key, value in given.items()])
    line = cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(first.target))], call)])
    calls = tuple(one.call for one in branches)
    return Chosen(
        statement, (cst.ensure_type(new, cst.If), line), frozenset(names.values()), call, calls, str(*symbols)
    )


def _blocks(chain: cst.If) -> Iterator[cst.BaseSuite | None]:
    """What each way through an `if` runs; None for one that runs nothing."""
    node: cst.If | cst.Else | None = chain
    while isinstance(node, cst.If):
        yield node.body
        node = node.orelse
    yield node.body if node is not None else None


def _branch(file: ParsedFile, block: cst.IndentedBlock) -> _Branch | None:
    line = block.body[-1]
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    if not isinstance(small, cst.Assign) or len(small.targets) != 1 or not isinstance(small.value, cst.Call):
        return None
    target, call = small.targets[0].target, small.value
    name = file.imports.resolve(call.func)
    if not isinstance(target, cst.Name) or name is None or not (is_estimator(name) or name == _CONFIG):
        return None
    parameters = RUN_CONFIG if name == _CONFIG else estimator_parameters(Place(name, call, None, None))
    try:
        arguments = bind(call, parameters, name, "TFM103")
    except Blocked:
        return None
    return _Branch(block, target.value, call, arguments)


def _with_config(file: ParsedFile, branches: Sequence[_Branch]) -> list[_Branch]:
    """The branches, each with a RunConfig where one of them has one: that of an Estimator without one says nothing."""
    given = [one for one in branches if "config" in one.arguments]
    func = branches[0].call.func if branches else None
    if not 0 < len(given) < len(branches) or not isinstance(func, cst.Attribute):
        return list(branches)
    made = func.with_changes(attr=cst.Name("RunConfig"))
    if file.imports.resolve(func) != _ESTIMATOR or file.imports.resolve(made) != _CONFIG:
        return list(branches)
    none = cst.Call(made)
    return [one if one in given else replace(one, arguments={**one.arguments, "config": none}) for one in branches]


def _ends(block: cst.BaseSuite) -> bool:
    """Whether nothing runs behind a branch."""
    line = block.body[-1] if block.body else None
    return isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[-1], (cst.Raise, cst.Return))


def _different(file: ParsedFile, branches: Sequence[_Branch]) -> list[str] | None:
    """The parameters that the branches give different things, in order; None where one cannot be chosen so.

    All are computed in the same order as before: where one of those that differ calls something, so do all that call.
    """
    parameters = list(dict.fromkeys(name for one in branches for name in one.arguments))
    found = [p for p in parameters if len({_code(file, one.arguments.get(p)) for one in branches}) > 1]
    if any(p not in one.arguments and p not in _OPTIONAL for p in found for one in branches):
        return None
    if any(_computes(one.arguments[p]) for p in found for one in branches if p in one.arguments):
        found = [p for p in parameters if p in found or any(_computes(one.arguments[p]) for one in branches)]
    return found or None


def _code(file: ParsedFile, node: cst.BaseExpression | None) -> str:
    return "None" if node is None else file.code(node)


def _computes(node: cst.BaseExpression) -> bool:
    return not isinstance(node, cst.Lambda) and bool(calls_in(node))


def _assignments(branch: _Branch, names: Mapping[str, str]) -> list[cst.BaseStatement]:
    """The lines of a branch, which gives the chosen things their names in the end."""
    *lines, last = branch.block.body
    assert isinstance(last, cst.SimpleStatementLine)
    order = [p for p in branch.arguments if p in names] + [p for p in names if p not in branch.arguments]
    made: list[cst.SimpleStatementLine] = []
    for parameter in order:
        value = branch.arguments.get(parameter, cst.Name("None"))
        target = cst.AssignTarget(cst.Name(names[parameter]))
        made.append(cst.SimpleStatementLine([cst.Assign([target], in_parentheses(value))]))
    made[0] = made[0].with_changes(leading_lines=last.leading_lines)
    made[-1] = made[-1].with_changes(trailing_whitespace=last.trailing_whitespace)
    return [*lines, *made]


class _Branches(cst.CSTTransformer):
    """Gives blocks other lines."""

    def __init__(self, lines: Mapping[cst.IndentedBlock, Sequence[cst.BaseStatement]]) -> None:
        super().__init__()
        self.lines = lines

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        lines = self.lines.get(original_node)
        return updated_node if lines is None else updated_node.with_changes(body=lines)


__all__ = ["Chosen", "chosen"]


def _chains(module: cst.Module) -> list[cst.If]:
    """Statements that choose, each chain once, outer ones first."""
    found = of_kinds(module, cst.If)
    further = {one.orelse for one in found}
    return [one for one in found if one not in further]


def _chosen_values(module: cst.Module) -> list[tuple[cst.SimpleStatementLine, cst.IfExp]]:
    """Assignments of a conditional expression."""
    lines = [one for one in of_kinds(module, cst.SimpleStatementLine) if len(one.body) == 1]
    assigns = [(one, one.body[0].value) for one in lines if isinstance(one.body[0], cst.Assign)]
    return [(line, value) for line, value in assigns if isinstance(value, cst.IfExp)]
