"""Keras optimizers as TensorFlow 2.0 to 2.10 had them."""

from __future__ import annotations

import re
from collections.abc import Iterable

import libcst as cst

from migrator.findings import Severity
from migrator.names.imports import dotted
from migrator.program.calls import number, string
from migrator.program.comments import without_argument
from migrator.program.modern import Change, ModernFile, is_edit_of, keyword
from migrator.rules.rule import Example, Rule

RULES = (
    Rule(
        "TFM713",
        "arguments of Keras optimizers of TensorFlow 2.0 to 2.10",
        Severity.MIGRATED,
        """
`lr=` is `learning_rate=`, and `optimizer.lr` is `optimizer.learning_rate`: Keras 3 knows neither. `decay=` divided the
learning rate by `1 + decay * step`. Keras 2 of TensorFlow 2.11 and newer raises ValueError for it, and Keras 3 ignores
it with a warning (both measured on 2.21): an `InverseTimeDecay` of one step computes the same rates.

`Nadam` and `RMSprop` of TensorFlow 2.10 and older are `legacy.Nadam` and `legacy.RMSprop` of Keras 2 now; the classes
without `legacy` compute something else (the other optimizers agree to 1e-5). Of Nadam a weight was at 0.8351 after 20
steps, and at 0.8411 with today's. RMSprop without momentum adds its epsilon below the root since: after 30 steps at a
rate of 0.1 weights are 0.0035 apart with gradients about 0.5, 0.7 with gradients about 0.0005.
""",
        (
            Example("tf.keras.optimizers.Adam(lr=0.1)", "tf.keras.optimizers.Adam(learning_rate=0.1)"),
            Example(
                "tf.keras.optimizers.SGD(0.1, decay=1e-4)",
                "tf.keras.optimizers.SGD(tf.keras.optimizers.schedules.InverseTimeDecay(0.1, 1, 1e-4))",
            ),
        ),
    ),
)

_OPTIMIZERS = frozenset(["Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Ftrl", "Nadam", "RMSprop", "SGD"])
# What Keras 2 takes where no rate is given (TensorFlow 2.0 to 2.15).
_DEFAULT_RATE = {"SGD": "0.01"}
# What sets the rate of an optimizer, and cannot where that is a schedule.
_SETTERS = ("LearningRateScheduler", "ReduceLROnPlateau", ".lr", ".learning_rate")


_INSTEAD = {"lr": "rename it `learning_rate`", "decay": "pass an InverseTimeDecay as `learning_rate`"}
_OLDER_KEY = re.compile(r"[\"'](lr|decay)[\"']\s*[:\]]|\bdict\([^()]*\b(lr|decay)=")


def check_optimizers(file: ModernFile) -> Iterable[Change]:
    """Calls of Keras optimizers, and what is read of them."""
    for call in file.calls:
        name = file.name(call.func)
        if name is None or not _is_optimizer(name):
            continue
        yield from _unpacked(file, call)
        rate, decay = keyword(call, "lr"), keyword(call, "decay")
        legacy = ".legacy." in name
        if name.endswith((".Nadam", ".RMSprop")) and not legacy:
            yield from _otherwise(call, name.rpartition(".")[2], rate is not None or decay is not None)
        if decay is not None and not legacy:
            if _has_schedule(file, call):
                message = (
                    "`decay` is gone, and this learning rate is already a schedule: write one schedule that does both"
                )
                yield Change("TFM713", decay, message, severity=Severity.MANUAL)
            elif number(decay.value) != 0 and any(word in file.parsed.bare for word in _SETTERS):
                message = "`decay` is gone, and a callback cannot set a schedule in its place: keep one of the two"
                yield Change("TFM713", decay, message, severity=Severity.MANUAL)
            else:
                yield _without_decay(call, name.rpartition(".")[2], decay)
        elif rate is not None and rate.keyword is not None:
            yield Change("TFM713", rate.keyword, "`lr` is `learning_rate` now", lambda _: cst.Name("learning_rate"))
    for node in file.attributes:
        if node.attr.value != "lr":
            continue
        made, spelled = file.made_by(node.value), dotted(node.value) or ""
        if (made is not None and _is_optimizer(made)) or (made is None and spelled.rpartition(".")[2] == "optimizer"):
            yield Change("TFM713", node.attr, "`lr` is `learning_rate` now", lambda _: cst.Name("learning_rate"))


def _unpacked(file: ModernFile, call: cst.Call) -> Iterable[Change]:
    """`Adam(**{"lr": 0.1})`: the key is renamed where the dict is seen in the call, and told of elsewhere."""
    for arg in call.args:
        if arg.star != "**":
            continue
        here = isinstance(arg.value, cst.Dict)
        given = arg.value if here else file.value_of(arg.value)
        keys = _keys(given)
        for key, text in keys.items():
            if text == "lr" and here:
                yield Change("TFM713", key, "`lr` is `learning_rate` now", _longer)
            elif text in ("lr", "decay"):
                message = f"`**` passes `{text}` to an optimizer, which Keras 3 rejects: {_INSTEAD[text]}"
                yield Change("TFM713", arg, message, severity=Severity.MANUAL)
        if not keys and _OLDER_KEY.search(file.parsed.bare):
            message = "Keras 3 optimizers take neither `lr` nor `decay`: check what `**` passes"
            yield Change("TFM713", arg, message, severity=Severity.REVIEW)


def _keys(node: cst.BaseExpression | None) -> dict[cst.CSTNode, str]:
    """The keys of a dict that is written out, or of `dict(lr=...)`."""
    if isinstance(node, cst.Call) and dotted(node.func) == "dict":
        return {arg.keyword: arg.keyword.value for arg in node.args if arg.keyword is not None}
    elements = node.elements if isinstance(node, cst.Dict) else ()
    texts = {one.key: string(one.key) for one in elements if isinstance(one, cst.DictElement)}
    return {key: text for key, text in texts.items() if text is not None}


def _longer(node: cst.CSTNode) -> cst.CSTNode:
    old = is_edit_of(node, cst.SimpleString)
    return old.with_changes(value=f"{old.prefix}{old.quote}learning_rate{old.quote}")


def _otherwise(call: cst.Call, name: str, older: bool) -> Iterable[Change]:
    """Nadam or RMSprop, whose formula is another since TensorFlow 2.11; `older` calls were written before."""
    gone = keyword(call, "schedule_decay")
    if gone is not None:
        message = "`schedule_decay` is gone: use tf.keras.optimizers.legacy.Nadam of Keras 2"
        yield Change("TFM713", gone, message, severity=Severity.MANUAL)
    elif older:
        message = f"{name} has another formula since TensorFlow 2.11: legacy.{name} of Keras 2 is the old one"
        yield Change("TFM713", call.func, message, severity=Severity.REVIEW)


def _has_schedule(file: ModernFile, call: cst.Call) -> bool:
    """Whether the rate of an optimizer is a schedule."""
    given = keyword(call, "lr") or keyword(call, "learning_rate")
    if given is None and call.args and call.args[0].keyword is None:
        given = call.args[0]
    value = None if given is None else given.value
    made = file.name(value.func) if isinstance(value, cst.Call) else None if value is None else file.made_by(value)
    return ".schedules." in (made or "")


def _is_optimizer(name: str) -> bool:
    return name.startswith(("tf.keras.optimizers.", "tf.optimizers.")) and name.rpartition(".")[2] in _OPTIMIZERS


def _without_decay(call: cst.Call, kind: str, decay: cst.Arg) -> Change:
    if number(decay.value) == 0:
        return Change("TFM713", call, "`decay=0` is the default, and is removed", _without_zero)
    root = (dotted(call.func) or "").rpartition("optimizers")[0] + "optimizers"

    def edit(node: cst.CSTNode) -> cst.CSTNode:
        new = is_edit_of(node, cst.Call)
        share = keyword(new, "decay")
        assert share is not None
        new = without_argument(new, share)
        rest = list(new.args)
        rate = next((arg for arg in rest if arg.keyword is None or arg.keyword.value in ("lr", "learning_rate")), None)
        if rate is not None and rate.keyword is None and rest[0] is not rate:
            rate = None
        value = cst.parse_expression(_DEFAULT_RATE.get(kind, "0.001")) if rate is None else rate.value
        code = cst.Module([]).code_for_node
        schedule = cst.parse_expression(f"{root}.schedules.InverseTimeDecay({code(value)}, 1, {code(share.value)})")
        made = (
            cst.Arg(schedule)
            if rate is None
            else rate.with_changes(value=schedule)
            if rate.keyword is None
            else rate.with_changes(value=schedule, keyword=cst.Name("learning_rate"))
        )
        args = [made, *rest] if rate is None else [made if arg is rate else arg for arg in rest]
        return new.with_changes(args=args)

    return Change("TFM713", call, "`decay` is now an InverseTimeDecay of the learning rate", edit)


def _without_zero(node: cst.CSTNode) -> cst.CSTNode:
    call = is_edit_of(node, cst.Call)
    share = keyword(call, "decay")
    assert share is not None
    call = without_argument(call, share)
    args = [
        arg.with_changes(keyword=cst.Name("learning_rate")) if arg.keyword and arg.keyword.value == "lr" else arg
        for arg in call.args
    ]
    return call.with_changes(args=args)


CHECKS = (check_optimizers,)
