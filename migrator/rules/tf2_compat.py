"""What TensorFlow 2 programs take of `tf.compat.v1` and give to Keras or to a strategy of TensorFlow 2."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import libcst as cst

from migrator.findings import Severity
from migrator.names.fate import needs_keras_2
from migrator.names.imports import dotted
from migrator.names.spelling import canonical
from migrator.program.calls import bind, number
from migrator.program.modern import Change, ModernFile, is_edit_of, keyword
from migrator.program.parsed import Blocked
from migrator.rules.partitioners import TABLE
from migrator.rules.rule import Example, Rule
from migrator.rules.tf2_names import spelled_here

RULES = (
    Rule(
        "TFM745",
        "tf.compat.v1 partitioners of a ParameterServerStrategy",
        Severity.MIGRATED,
        """
`tf.compat.v1.fixed_size_partitioner`, `min_max_variable_partitioner` and `variable_axis_size_partitioner` give the same
shards as `FixedShardsPartitioner`, `MinSizePartitioner` and `MaxSizePartitioner` of
`tf.distribute.experimental.partitioners` (compared on 3,000 random shapes), which a ParameterServerStrategy is made
for. Their arguments stand in another order; keywords are written. An `axis` other than 0 stays, and is reported: a
ParameterServerStrategy divides the first axis only, and refuses the variable.
""",
        (
            Example(
                "tf.distribute.ParameterServerStrategy(resolver, tf.compat.v1.fixed_size_partitioner(2))",
                "tf.distribute.ParameterServerStrategy(resolver, "
                "tf.distribute.experimental.partitioners.FixedShardsPartitioner(num_shards=2))",
            ),
        ),
    ),
)

_STRATEGIES = tuple(f"tf.distribute.{module}ParameterServerStrategy" for module in ("", "experimental."))
_MODULE = "tf.distribute.experimental.partitioners"
_EQUAL = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
_OPTIMIZERS = "tf.train."


def check_compat_names(file: ModernFile) -> Iterable[Change]:
    """Names of tf.compat.v1 that are made of Keras 2 (layers, recurrent cells), and optimizers that Keras is given."""
    for node in file.attributes:
        name = file.parsed.imports.resolve(node)
        if name is not None and file.parsed.imports.is_compat(node):
            if needs_keras_2(f"tf.compat.v1{name.removeprefix('tf')}"):
                yield Change("TFM712", node, f"`{file.parsed.code(node)}` exists on Keras 2 only", keras_2=True)
    for statement in file.imports_from:
        module = dotted(statement.module) or ""
        if statement.relative or "compat.v1" not in module or isinstance(statement.names, cst.ImportStar):
            continue
        for alias in statement.names:
            name = canonical(f"{module}.{dotted(alias.name)}")
            if needs_keras_2(f"tf.compat.v1{name.removeprefix('tf')}"):
                yield Change("TFM712", alias, f"`{module}.{dotted(alias.name)}` exists on Keras 2 only", keras_2=True)
    for call in file.calls:
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "compile":
            continue
        given = keyword(call, "optimizer") or next((arg for arg in call.args[:1] if arg.keyword is None), None)
        made = _call_behind(file, given)
        name = file.parsed.imports.resolve(made.func) if made is not None else None
        if given is not None and name is not None and name.startswith(_OPTIMIZERS) and name.endswith("Optimizer"):
            yield Change("TFM712", given, f"Keras 3 does not accept tf.compat.v1 optimizers ({name})", keras_2=True)


def check_partitioners(file: ModernFile) -> Iterable[Change]:
    """The partitioner of a ParameterServerStrategy."""
    for call in file.calls:
        if file.name(call.func) not in _STRATEGIES:
            continue
        given = keyword(call, "variable_partitioner")
        if given is None and len(call.args) > 1 and call.args[1].keyword is None:
            given = call.args[1]
        made = _call_behind(file, given)
        if made is not None:
            yield from _partitioner(file, made)


def _call_behind(file: ModernFile, given: cst.Arg | None) -> cst.Call | None:
    """The call that an argument is, or that the name is given which it is."""
    if given is None:
        return None
    value = given.value if isinstance(given.value, cst.Call) else file.value_of(given.value)
    return value if isinstance(value, cst.Call) else None


def _partitioner(file: ModernFile, made: cst.Call) -> Iterable[Change]:
    name = (file.parsed.imports.resolve(made.func) or "").removeprefix("tf.")
    if name not in TABLE:
        return
    parameters, new, keywords, defaults = TABLE[name]
    code = file.parsed.code(made.func)
    try:
        bound = bind(made, parameters, code, "TFM745")
    except Blocked as blocked:
        yield Change("TFM745", made, blocked.message, severity=Severity.MANUAL)
        return
    axis = bound.pop("axis", None)
    if axis is not None and number(axis) != 0:
        message = "a ParameterServerStrategy splits the first axis of a variable only: remove `axis`"
        yield Change("TFM745", axis, message, severity=Severity.MANUAL)
        return
    spelled = spelled_here(file, made.func, f"{_MODULE}.{new}")
    if spelled is None:
        message = f"`{code}` is now `{_MODULE}.{new}`: import tensorflow as tf, and use that"
        yield Change("TFM745", made, message, severity=Severity.MANUAL)
        return
    values = {name: cst.parse_expression(text) for name, text in defaults.items()} | bound
    arguments = [(keywords[one], values[one]) for one in keywords if one in values]
    yield Change("TFM745", made, f"`{code}` is `{spelled}` now", partial(_made, spelled, arguments))


def _made(spelled: str, arguments: list[tuple[str, cst.BaseExpression]], node: cst.CSTNode) -> cst.CSTNode:
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    args = [cst.Arg(value, cst.Name(name), _EQUAL, comma) for name, value in arguments]
    if args:
        args[-1] = args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return is_edit_of(node, cst.Call).with_changes(
        func=cst.parse_expression(spelled), args=args, whitespace_before_args=cst.SimpleWhitespace("")
    )


CHECKS = (check_compat_names, check_partitioners)
