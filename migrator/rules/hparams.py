"""`tf.contrib.training.HParams`, which only carries values, to `types.SimpleNamespace`."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrator.findings import Severity
from migrator.names.imports import dotted
from migrator.program.parsed import Blocked, ParsedFile
from migrator.rules.rule import Example, Rule
from migrator.rules.site import CallRule, Site
from migrator.walking import walk

RULES = (
    Rule(
        "TFM123",
        "HParams",
        Severity.MANUAL,
        """
`tf.contrib.training.HParams(units=10)` becomes `types.SimpleNamespace(units=10)`: both answer `params.units`, and
`params.units = 20` changes it. What only HParams can do (`parse`, `override_from_dict`, `add_hparam`, `set_hparam`,
`values`, `get`, `to_json`, `in`) has no counterpart there: write `vars(params)`, or a dict, by hand first.
""",
        (
            Example("tf.contrib.training.HParams(units=10)", "types.SimpleNamespace(units=10)"),
            Example("tf.contrib.training.HParams(definition)", None),
        ),
    ),
)

_NAME = "tf.contrib.training.HParams"
#: Methods that no other object in such a program has: they are refused wherever they are called.
_METHODS = (
    "add_hparam",
    "del_hparam",
    "override_from_dict",
    "parse_json",
    "set_hparam",
    "set_model_structure",
    "get_model_structure",
    "to_proto",
)
#: Methods that other objects have too.
_COMMON = ("get", "parse", "to_json", "values")
#: What parameters are usually called where they come from elsewhere.
_USUAL = frozenset(("params", "hparams", "hparam", "hps", "hp", "config"))


def _namespace(site: Site) -> cst.BaseExpression:
    if any(arg.keyword is None and arg.star != "**" for arg in site.call.args):
        raise Blocked("TFM123", site.original, "HParams is made from something else than keywords")
    if any(
        arg.keyword is not None and arg.keyword.value in ("hparam_def", "model_structure") for arg in site.call.args
    ):
        raise Blocked("TFM123", site.original, "HParams is made from a proto")
    return site.call.with_changes(func=cst.parse_expression("types.SimpleNamespace"))


CALLS: dict[str, CallRule] = {_NAME: _namespace}


def check_uses(files: Sequence[ParsedFile]) -> list[tuple[ParsedFile, Blocked]]:
    """Uses of HParams in a program that more than read and set attributes."""
    uses = [(file, _Uses(file)) for file in files]
    for file, finder in uses:
        walk(file.module, finder)
    if not any(finder.made for _, finder in uses):
        return []
    found: list[tuple[ParsedFile, Blocked]] = []
    named = _USUAL | {name for _, finder in uses for name in finder.names}
    for file, finder in uses:
        for call, receiver, method in finder.calls:
            if method in _METHODS or receiver is None or receiver in named:
                found.append((file, Blocked("TFM123", call, f"`{method}` of HParams: a SimpleNamespace has none")))
        if finder.made and "types" in file.names and file.imports.names.get("types") != "types":
            found.append((file, Blocked("TFM123", finder.made[0], "`types` means something else in this file")))
    return found


class _Uses(cst.CSTVisitor):
    """Where HParams are made, what they are called, and calls of methods that they may have."""

    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self.made: list[cst.Call] = []
        self.names: set[str] = set()
        self.calls: list[tuple[cst.Call, str | None, str]] = []  # with the receiver's name, None for HParams(...)

    def visit_Assign(self, node: cst.Assign) -> None:
        if self._makes(node.value):
            for target in node.targets:
                self.names.add((dotted(target.target) or "").rpartition(".")[2])

    def _makes(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Call) and self.file.imports.resolve(node.func) == _NAME

    def visit_Call(self, node: cst.Call) -> None:
        if self._makes(node):
            self.made.append(node)
        if not isinstance(node.func, cst.Attribute) or node.func.attr.value not in (*_METHODS, *_COMMON):
            return
        receiver = dotted(node.func.value)
        if receiver is not None:
            self.calls.append((node, receiver.rpartition(".")[2], node.func.attr.value))
        elif self._makes(node.func.value):
            self.calls.append((node, None, node.func.attr.value))
